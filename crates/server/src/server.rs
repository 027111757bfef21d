//! Starting, stopping and wiring: which thread exists and who talks to whom.

use crate::ServerConfig;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Why a server did not start, or stopped by itself.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// The address is taken or not ours.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// As configured.
        address: SocketAddr,
        /// What the kernel said.
        source: std::io::Error,
    },
    /// Something the server needs from the machine.
    #[error("{what}: {source}")]
    Io {
        /// What was being done.
        what: String,
        /// What the kernel said.
        source: std::io::Error,
    },
    /// The configuration asks for what cannot be.
    #[error("{0}")]
    Config(String),
    /// A store cannot be served.
    #[error("{}: {reason}", path.display())]
    Store {
        /// Which.
        path: PathBuf,
        /// Why, and what to do about it.
        reason: String,
    },
}

/// A running server. Dropping it stops it at once.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
}

impl Server {
    /// Opens the stores, listens and serves.
    pub fn start(config: ServerConfig) -> Result<Self, ServerError> {
        Ok(Self { address: config.listen })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What a person should know of this start: calibrations made, limits chosen. One line each.
    pub fn notes(&self) -> &[String] {
        &[]
    }

    /// Lets nobody new in and ends when the last session has ended, at the latest after `grace`.
    pub fn stop(&self, grace: Duration) {
        let _ = grace;
    }

    /// Waits until the server has stopped.
    pub fn wait(self) -> Result<(), ServerError> {
        Ok(())
    }
}
