//! The asking side of the control socket.

use super::{Line, Reply, Request, is_ours, socket_directory, socket_path};
use crate::wire;
use std::io::{self, BufRead, BufReader, ErrorKind, Write};
use std::os::unix::net::UnixStream;
use uuid::Uuid;

/// A connection to the server that owns a store.
#[derive(Debug)]
pub struct Client {
    stream: BufReader<UnixStream>,
}

/// Why a request was not answered.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// The connection broke.
    #[error("the server that owns the store went away: {0}; ask again when it is back")]
    Io(#[from] io::Error),
    /// The server answered what this program does not understand.
    #[error(
        "the server answered what this program does not know ({0}); use the same version of both"
    )]
    Protocol(String),
    /// The server did not do it.
    #[error("{}", .0.message)]
    Failed(wire::Failure),
}

impl Client {
    /// Connects to the server of the store with this uuid; `None`: nobody serves it (for this
    /// user).
    pub fn connect(uuid: Uuid) -> io::Result<Option<Self>> {
        if !is_ours(&socket_directory())? {
            return Ok(None);
        }
        match UnixStream::connect(socket_path(uuid)) {
            Ok(stream) => Ok(Some(Self { stream: BufReader::new(stream) })),
            // No socket, or one that a server left behind when it was killed.
            Err(error)
                if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused) =>
            {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Asks, and waits for the answer; long work tells how far it is.
    pub fn call(
        &mut self,
        request: &Request,
        mut on_progress: impl FnMut(wire::Progress),
    ) -> Result<Reply, ControlError> {
        let mut line = serde_json::to_string(request).map_err(protocol)?;
        line.push('\n');
        // A server with too many clients says so and hangs up before it is asked.
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

#[expect(clippy::needless_pass_by_value, reason = "used as a function to map errors with")]
fn protocol(error: serde_json::Error) -> ControlError {
    ControlError::Protocol(error.to_string())
}
