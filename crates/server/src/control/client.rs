//! The client side of the control socket.

use super::{Line, Reply, Request, is_safe, socket_directory, socket_path};
use crate::wire;
use std::io::{self, BufRead, BufReader, ErrorKind, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use store::StoreIdentity;
use units::{Hinted, Reason};
use uuid::Uuid;

/// A connection to the server that serves a store.
#[derive(Debug)]
pub struct Client {
    stream: BufReader<UnixStream>,
}

/// Why a request failed.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// The connection was lost.
    #[error("lost the connection to the store's server: {0}")]
    Io(#[from] io::Error),
    /// The server's reply is not of this version's protocol.
    #[error("the server's reply is unknown to this program ({0})")]
    Protocol(String),
    /// The request names a file that cannot be written in the protocol's JSON.
    #[error("a file's name is not UTF-8, and requests to a store's server are")]
    NotUtf8,
    /// The server has another store with the same identity; its path.
    #[error("{0} is served under this store's identity, and one is a copy of the other")]
    OtherStore(String),
    /// The server could not execute the request.
    #[error("{}", .0.message)]
    Failed(wire::Failure),
}

impl Hinted for ControlError {
    fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Io(error) => {
                return error.hint().or_else(|| Some("try again when it runs".to_owned()));
            }
            Self::Failed(failure) => return failure.hint.clone(),
            Self::Protocol(_) => "use the same version of both",
            Self::NotUtf8 => "rename the file, or ingest it while no server runs",
            Self::OtherStore(_) => "run `tenuto relabel STORE --new-identity` on the copy",
        };
        Some(hint.to_owned())
    }
}

impl Client {
    /// Connects to the server of a store; `None` where this user serves no such store.
    ///
    /// # Errors
    /// [`ControlError::OtherStore`] if the server has a copy of the store.
    pub fn connect(store: &StoreIdentity) -> Result<Option<Self>, ControlError> {
        let Some(mut client) = Self::open(store.uuid)? else { return Ok(None) };
        match client.call(&Request::ServedFile, |_| {})? {
            Reply::ServedFile(served) if served.file == store.file.to_string() => Ok(Some(client)),
            Reply::ServedFile(served) => Err(ControlError::OtherStore(served.path)),
            other => Err(ControlError::Protocol(format!("{other:?}"))),
        }
    }

    /// Connects to the server of a store with this uuid, which may be a copy of the store that is
    /// meant.
    pub(super) fn open(uuid: Uuid) -> io::Result<Option<Self>> {
        if !is_safe(&socket_directory())? {
            return Ok(None);
        }
        match UnixStream::connect(socket_path(uuid)) {
            Ok(stream) if is_trusted(&stream) => Ok(Some(Self { stream: BufReader::new(stream) })),
            Ok(_) => {
                let why = Reason::new("its control socket is another user's", "remove the socket");
                Err(io::Error::new(ErrorKind::PermissionDenied, why))
            }
            // No socket, or one that remained when a server was killed.
            Err(error)
                if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused) =>
            {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Sends a request and waits for its reply. `on_progress` is called during long requests.
    pub fn call(
        &mut self,
        request: &Request,
        on_progress: impl FnMut(wire::Progress),
    ) -> Result<Reply, ControlError> {
        self.call_until(request, &AtomicBool::new(false), on_progress)
    }

    /// Sends a last request, as [`Client::call`] does. When `cancel` is set, the server is to end
    /// it, and its reply is waited for.
    pub fn call_until(
        &mut self,
        request: &Request,
        cancel: &AtomicBool,
        mut on_progress: impl FnMut(wire::Progress),
    ) -> Result<Reply, ControlError> {
        // Paths are the only part of a request that may have no form in JSON.
        let mut line = serde_json::to_string(request).map_err(|_| ControlError::NotUtf8)?;
        line.push('\n');
        // A server with too many clients replies and disconnects before it has read the request:
        // its reply explains more than the failed write.
        let sent = self.stream.get_mut().write_all(line.as_bytes());
        loop {
            line.clear();
            if self.stream.read_line(&mut line)? == 0 {
                sent?;
                return Err(io::Error::from(ErrorKind::UnexpectedEof).into());
            }
            match serde_json::from_str(&line).map_err(protocol)? {
                Line::Progress(progress) => {
                    on_progress(progress);
                    if cancel.load(Ordering::Relaxed) {
                        // It cancels the request, as the end of the connection does, and can reply.
                        // One that has gone meanwhile says nothing more.
                        let _ = self.stream.get_ref().shutdown(Shutdown::Write);
                    }
                }
                Line::Reply(reply) => return Ok(*reply),
                Line::Failed(failure) => return Err(ControlError::Failed(failure)),
            }
        }
    }
}

/// Whether the other end of a connection is of root or of this process's user.
pub(super) fn is_trusted(stream: &UnixStream) -> bool {
    rustix::net::sockopt::socket_peercred(stream)
        .is_ok_and(|peer| peer.uid.is_root() || peer.uid == rustix::process::geteuid())
}

#[expect(clippy::needless_pass_by_value, reason = "passed to map_err")]
fn protocol(error: serde_json::Error) -> ControlError {
    ControlError::Protocol(error.to_string())
}
