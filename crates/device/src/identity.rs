//! Which file or block device an open one is, whatever path it was opened by.

use std::fmt;
use std::fs::File;
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};

/// The kernel's identity of a file or block device: equal for all its paths, another one for a copy
/// of its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FileIdentity {
    /// A regular file.
    File {
        /// The number of the file system.
        system: u64,
        /// The number of the file in it.
        inode: u64,
    },
    /// A block device.
    Block {
        /// The number of the device.
        device: u64,
    },
}

impl FileIdentity {
    /// The identity of an open file.
    pub(crate) fn of(file: &File) -> io::Result<Self> {
        let about = file.metadata()?;
        Ok(if about.file_type().is_block_device() {
            // The file system of the node in /dev says nothing: a device can have several nodes.
            Self::Block { device: about.rdev() }
        } else {
            Self::File { system: about.dev(), inode: about.ino() }
        })
    }
}

impl fmt::Display for FileIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { system, inode } => write!(f, "file {system:x}:{inode}"),
            Self::Block { device } => write!(f, "block {device:x}"),
        }
    }
}
