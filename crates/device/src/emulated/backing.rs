//! The backing file of an emulated disk: its requirements, and reads and writes.
//!
//! The page cache is used on purpose: the emulated disk must be slower than its backing storage,
//! and a cached file answers in microseconds. (The loop device on top is direct, so that this is
//! the only cache of these bytes.)

use crate::DeviceError;
use crate::opening::lock;
use crate::preallocate::preallocate;
use disk::DiskModel;
use std::fs::{File, Metadata};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use units::{ByteCount, Reason, align_down};

/// An open, locked and fully allocated backing file.
#[derive(Debug)]
pub(super) struct Backing {
    file: File,
    pub(super) size: ByteCount,
}

impl Backing {
    /// Opens or makes the file at `path` for an emulated disk of `size`; the default size is the
    /// length of the file.
    pub(super) fn open(
        path: &Path,
        size: Option<ByteCount>,
        model: &DiskModel,
    ) -> Result<Self, DeviceError> {
        let refuse = |reason| DeviceError::unusable(path, reason);
        let existing = path.metadata().ok();
        if existing.as_ref().is_some_and(|about| !about.is_file()) {
            let hint = "name one, or a new one to be made";
            return Err(refuse(Reason::new("it is no regular file", hint)));
        }
        let size = match (&existing, size) {
            (_, Some(size)) => size,
            (Some(about), None) => ByteCount(about.len()),
            (None, None) => {
                return Err(refuse(Reason::new("it is not there", "say --size to make it")));
            }
        };
        let size = ByteCount(align_down(size.0, BLOCK));
        if size == ByteCount::ZERO {
            let message = format!("a disk has at least {BLOCK} bytes");
            return Err(refuse(Reason::new(message, "make it larger")));
        }
        if size > model.capacity() {
            let (name, capacity) = (model.name(), model.capacity());
            let message =
                format!("{size} are more than a {name} has ({capacity}, {} bytes)", capacity.0);
            return Err(refuse(Reason::new(message, "take less or a larger model")));
        }
        if let Some(about) = &existing {
            usable(about, size).map_err(refuse)?;
        } else {
            preallocate(path, size)?;
        }
        let file = File::options().read(true).write(true).open(path).map_err(|source| {
            DeviceError::open(path, "it must be readable and writable", source)
        })?;
        lock(path, &file)?;
        Ok(Self { file, size })
    }

    /// Unlocks the file, so that another process can use it; later reads and writes would still
    /// work.
    pub(super) fn unlock(&self) {
        // A failure means that it is not locked, which is the aim.
        let _ = self.file.unlock();
    }

    /// Fills `into` from `offset`.
    pub(super) fn read(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(into, offset)
    }

    pub(super) fn write(&self, offset: u64, from: &[u8]) -> io::Result<()> {
        self.file.write_all_at(from, offset)
    }
}

impl AsFd for Backing {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

fn usable(about: &Metadata, size: ByteCount) -> Result<(), Reason> {
    if about.len() < size.0 {
        let has = ByteCount(about.len());
        let message = format!("it has {has} and {size} are asked for");
        return Err(Reason::new(message, "take a larger file or a smaller disk"));
    }
    let allocated = about.blocks().saturating_mul(512);
    if allocated < size.0 {
        let missing = ByteCount(size.0 - allocated);
        let message = format!(
            "it is sparse: {missing} of it have no place on disk, and a disk that runs full as it \
             is written is no disk"
        );
        return Err(Reason::new(message, format!("fill it with `fallocate -l {} FILE`", size.0)));
    }
    Ok(())
}

/// The block size of file systems.
const BLOCK: u64 = 4096;
