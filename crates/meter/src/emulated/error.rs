//! Errors of runs on an emulated disk.

use device::DeviceError;
use std::io;
use std::path::PathBuf;
use units::{ByteCount, Hinted};

/// An error that ended a run on an emulated disk.
#[derive(Debug, thiserror::Error)]
pub enum EmulatedError {
    /// An error of the disk or of a read.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// A program that makes file systems is not installed.
    #[error("{program} is not there")]
    Missing {
        /// The program's name, such as `mkfs.xfs`.
        program: String,
        /// The package that has it in Debian and Fedora.
        package: &'static str,
        /// The file system as typed by the user: `xfs`.
        system: &'static str,
    },
    /// A program failed.
    #[error("{program} failed: {said}")]
    Program {
        /// The program with its arguments.
        program: String,
        /// The text that it wrote.
        said: String,
    },
    /// An operation on a file failed.
    #[error("cannot {doing} {path}: {source}")]
    File {
        /// The operation: `write`, `make`, ...
        doing: &'static str,
        /// The path of the file.
        path: PathBuf,
        /// The kernel's error.
        source: io::Error,
    },
    /// The rounds read more of a stream's file than it has.
    #[error("{rounds} rounds of {block} are not from 1 byte to the {file} of a stream's file")]
    TooMuch {
        /// The bytes that each round reads.
        block: ByteCount,
        /// The requested number of rounds.
        rounds: u32,
        /// The length of a stream's file.
        file: ByteCount,
    },
    /// The user asked to stop.
    #[error("interrupted")]
    Interrupted,
}

impl Hinted for EmulatedError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::Device(error) => error.hint(),
            Self::Missing { package, system, .. } => {
                Some(format!("install the package {package}, or leave {system} out"))
            }
            Self::TooMuch { .. } => Some("ask for fewer or smaller ones".to_owned()),
            Self::Program { .. } | Self::File { .. } | Self::Interrupted => None,
        }
    }
}

impl EmulatedError {
    /// Makes a [`EmulatedError::File`], for `map_err`.
    pub(super) fn file(
        doing: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::File { doing, path, source }
    }
}
