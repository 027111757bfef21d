//! Why a server did not start, or did not end in order.

use crate::access::KeyFileError;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use units::{Hinted, Reason};

/// Why a server did not start, or stopped by itself.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// The address is in use, or is not an address of this machine.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The configured address.
        address: SocketAddr,
        /// The kernel's error.
        source: io::Error,
    },
    /// A file, thread or socket that the server needs could not be had.
    #[error("cannot {what}: {source}")]
    Io {
        /// What the server tried to do.
        what: String,
        /// The kernel's error.
        source: io::Error,
    },
    /// The configuration is invalid; the message says what to change.
    #[error("{0}")]
    Config(Reason),
    /// The keys of the tokens cannot be read.
    #[error("the keys of --tokens: {0}")]
    Keys(#[from] KeyFileError),
    /// A store cannot be served.
    #[error("{} cannot be served: {reason}", path.display())]
    Store {
        /// The store.
        path: PathBuf,
        /// The reason, and what to do about it.
        reason: Reason,
    },
    /// A thread panicked; its name.
    #[error("the server failed: its thread {0} ended unexpectedly")]
    ThreadFailed(String),
}

impl Hinted for ServerError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::Listen { .. } => Some("choose another address with --listen".to_owned()),
            Self::Io { source, .. } => source.hint(),
            Self::Keys(error) => error.hint(),
            Self::Config(reason) | Self::Store { reason, .. } => reason.hint.clone(),
            Self::ThreadFailed(_) => Some("start it again and report this".to_owned()),
        }
    }
}
