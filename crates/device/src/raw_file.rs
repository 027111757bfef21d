//! A file that is opened by one call without checks, for measuring the times of opening, reading,
//! writing and closing. All other code uses a [`FileDevice`](crate::FileDevice), which checks a
//! file before its use.

use crate::DeviceError;
use crate::block::ByteSpan;
use crate::file::forget;
use crate::no_links::{self, Links};
use crate::open_file::{read_at_least, read_whole};
use crate::refusal::cannot_open;
use rustix::fs::OFlags;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// A file opened with one call and used without any check.
#[derive(Debug)]
pub struct RawFile {
    file: File,
    path: PathBuf,
}

/// The purpose for which a [`RawFile`] is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenMode {
    /// To read an existing file.
    Read,
    /// To read an existing file and overwrite parts of it.
    Update,
    /// To write a new file; an existing one is truncated.
    Create,
}

impl RawFile {
    /// Opens a file by a path in which symbolic links are refused. `direct` requests direct I/O,
    /// and fails where the file system does not support it.
    pub fn open(path: &Path, opening: OpenMode, direct: bool) -> Result<Self, DeviceError> {
        let access = match opening {
            OpenMode::Read => OFlags::RDONLY,
            OpenMode::Update => OFlags::RDWR,
            OpenMode::Create => OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC,
        };
        let flags = if direct { OFlags::DIRECT } else { OFlags::empty() };
        let file = no_links::open_file(path, access | flags, Links::Refused)
            .map_err(|error| cannot_open(path, error))?;
        Ok(Self { file, path: path.to_owned() })
    }

    /// Drops its pages from the page cache like [`FileDevice::forget`](crate::FileDevice::forget).
    pub fn forget(&self) -> Result<(), DeviceError> {
        forget(&self.file).map_err(|error| cannot_open(&self.path, error))
    }

    /// Fills `into` from `offset`, completely or not at all. With direct I/O, offset, length and
    /// memory are whole blocks.
    pub fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<(), DeviceError> {
        read_whole(&self.file, &self.path, offset, into)
    }

    /// Reads into `into` from `offset` until it is full or the file ends, and at least `least`
    /// bytes: a file may end within the last block of a direct read.
    pub fn read_at_least(
        &self,
        offset: u64,
        into: &mut [u8],
        least: usize,
    ) -> Result<(), DeviceError> {
        read_at_least(&self.file, &self.path, offset, into, least)
    }

    /// Writes all of `from` at `offset`. With direct I/O, offset, length and memory are whole
    /// blocks.
    pub fn write_at(&self, offset: u64, from: &[u8]) -> Result<(), DeviceError> {
        let done = self.file.write_all_at(from, offset);
        done.map_err(|e| {
            DeviceError::io("writing", &self.path, ByteSpan::new(offset, from.len()), e)
        })
    }
}
