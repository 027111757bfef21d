//! Why a run on an emulated disk came to nothing.

use device::DeviceError;
use std::io;
use std::path::PathBuf;
use units::ByteCount;

/// An error that ended a run on an emulated disk.
#[derive(Debug, thiserror::Error)]
pub enum EmulatedError {
    /// The disk, or a read of it.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// A program that makes file systems is not there.
    #[error("{program} is not there; install the package {package}, or leave {system} out")]
    Missing {
        /// `mkfs.xfs`.
        program: String,
        /// As Debian and Fedora call it.
        package: &'static str,
        /// As typed: `xfs`.
        system: &'static str,
    },
    /// A program failed.
    #[error("{program} failed: {said}")]
    Program {
        /// With its arguments.
        program: String,
        /// What it wrote.
        said: String,
    },
    /// A file could not be made or set.
    #[error("cannot {doing} {path}: {source}")]
    File {
        /// `write`, `make`, ...
        doing: &'static str,
        /// Which.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
    /// More is to be read of a stream's file than it has.
    #[error(
        "{rounds} rounds of {block} are not from 1 byte to the {file} of a stream's file; ask for fewer or smaller ones"
    )]
    TooMuch {
        /// Read in a round.
        block: ByteCount,
        /// As asked for.
        rounds: u32,
        /// What a file has.
        file: ByteCount,
    },
    /// Somebody asked it to stop.
    #[error("interrupted")]
    Interrupted,
}

impl EmulatedError {
    /// For `map_err`.
    pub(super) fn file(
        doing: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::File { doing, path, source }
    }
}
