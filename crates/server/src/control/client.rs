//! The client side of the control socket.

use super::{Line, Reply, Request, belongs_to_user, socket_directory, socket_path};
use crate::wire;
use std::io::{self, BufRead, BufReader, ErrorKind, Write};
use std::os::unix::net::UnixStream;
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
    #[error("lost the connection to the store's server: {0}; try again when it runs")]
    Io(#[from] io::Error),
    /// The server's reply is not of this version's protocol.
    #[error("the server's reply is unknown to this program ({0}); use the same version of both")]
    Protocol(String),
    /// The server could not execute the request.
    #[error("{}", .0.message)]
    Failed(wire::Failure),
}

impl Client {
    /// Connects to the server of the store with this uuid; `None` where this user serves no such
    /// store.
    pub fn connect(uuid: Uuid) -> io::Result<Option<Self>> {
        if !belongs_to_user(&socket_directory())? {
            return Ok(None);
        }
        match UnixStream::connect(socket_path(uuid)) {
            Ok(stream) => Ok(Some(Self { stream: BufReader::new(stream) })),
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
        mut on_progress: impl FnMut(wire::Progress),
    ) -> Result<Reply, ControlError> {
        let mut line = serde_json::to_string(request).map_err(protocol)?;
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
                Line::Progress(progress) => on_progress(progress),
                Line::Reply(reply) => return Ok(*reply),
                Line::Failed(failure) => return Err(ControlError::Failed(failure)),
            }
        }
    }
}

#[expect(clippy::needless_pass_by_value, reason = "passed to map_err")]
fn protocol(error: serde_json::Error) -> ControlError {
    ControlError::Protocol(error.to_string())
}
