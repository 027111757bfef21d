//! A file that is opened with one call and asked nothing else: for who measures what opening,
//! moving and closing take. Everybody else opens a [`FileDevice`](crate::FileDevice), which looks
//! at a file before it uses it.

use crate::DeviceError;
use crate::block::ByteSpan;
use crate::file::forget;
use crate::open_file::read_whole;
use crate::refusal::cannot_open;
use rustix::fs::OFlags;
use std::fs::File;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// A file opened with one call and used without any check.
#[derive(Debug)]
pub struct RawFile {
    file: File,
    path: PathBuf,
}

/// What a [`RawFile`] is opened for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenMode {
    /// To be read.
    Read,
    /// To be read, and written over in places; it is there.
    Update,
    /// To be written anew; what was there is gone.
    Create,
}

impl RawFile {
    /// Opens it. `direct`: past the page cache; fails where the file system cannot.
    pub fn open(path: &Path, opening: OpenMode, direct: bool) -> Result<Self, DeviceError> {
        let flags = if direct { OFlags::DIRECT } else { OFlags::empty() };
        let flags = i32::try_from(flags.bits()).expect("open flags are an int");
        let write = opening != OpenMode::Read;
        let create = opening == OpenMode::Create;
        let file = File::options()
            .read(!create)
            .write(write)
            .create(create)
            .truncate(create)
            .custom_flags(flags)
            .open(path)
            .map_err(|error| cannot_open(path, error))?;
        Ok(Self { file, path: path.to_owned() })
    }

    /// As [`FileDevice::forget`](crate::FileDevice::forget).
    pub fn forget(&self) -> Result<(), DeviceError> {
        forget(&self.file).map_err(|error| cannot_open(&self.path, error))
    }

    /// Fills `into` from `offset`, wholly or not at all. Where it was opened direct, place, length
    /// and memory are whole blocks.
    pub fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<(), DeviceError> {
        read_whole(&self.file, &self.path, offset, into)
    }

    /// Writes all of `from` at `offset`; as for reading.
    pub fn write_at(&self, offset: u64, from: &[u8]) -> Result<(), DeviceError> {
        let done = self.file.write_all_at(from, offset);
        done.map_err(|e| {
            DeviceError::io("writing", &self.path, ByteSpan::new(offset, from.len()), e)
        })
    }
}
