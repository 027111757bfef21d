//! Preallocation of a store's file: all of its space, before anything is written.

use crate::DeviceError;
use crate::describe::STAT_BLOCK;
use crate::no_links::{self, Links};
use rustix::fs::{FallocateFlags, OFlags, fallocate, fstatvfs};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use units::{ByteCount, Reason};

/// Makes or extends the file at `path` so that all of its `size` bytes are allocated. Its content
/// stays, and a larger file is unchanged. Without enough space the file is as before (removed, if
/// it did not exist).
pub fn preallocate(path: &Path, size: ByteCount) -> Result<(), DeviceError> {
    allocate(path, size, Links::Followed)
}

/// Allocates as [`preallocate`] does; `links` says whether the path may have symbolic links.
pub(crate) fn allocate(path: &Path, size: ByteCount, links: Links) -> Result<(), DeviceError> {
    let was_there = path.exists();
    let file = no_links::open_file(path, OFlags::RDWR | OFlags::CREATE, links);
    let file = file.map_err(|source| {
        DeviceError::open(path, "the directory must exist and be writable", source)
    })?;
    let about = file.metadata().map_err(|e| failed(path, size, e))?;
    let before = about.len();
    // Of a sparse file only the allocated blocks count as already there.
    let has_place = about.blocks() * STAT_BLOCK;
    let reserved = reserve(&file, before, has_place, size.0);
    if let Err(error) = reserved {
        // Only the refusal matters; the remains are at worst a few spare blocks.
        let _ = if was_there { file.set_len(before) } else { std::fs::remove_file(path) };
        return Err(no_room(path, &file, has_place, size, error));
    }
    // The allocation must survive a power cut: the superblocks will name this size.
    file.sync_all().map_err(|e| failed(path, size, e))
}

/// Allocates a part of an existing file, wherever the file system has space, and extends the file
/// as far as necessary. Symbolic links in its path are refused. If the file system does not support
/// it, nothing is done, and space is allocated when the part is written.
pub fn preallocate_part(path: &Path, from: u64, size: ByteCount) -> Result<(), DeviceError> {
    let file = no_links::open_file(path, OFlags::WRONLY, Links::Refused);
    let file = file.map_err(|e| failed(path, size, e))?;
    match fallocate(&file, FallocateFlags::empty(), from, size.0) {
        Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(()),
        Err(error) => Err(no_room(path, &file, 0, size, error.into())),
    }
}

/// Checks the free space first: a file system would otherwise take all of it before it fails, and
/// other writers would find none.
fn reserve(file: &File, before: u64, has_place: u64, size: u64) -> io::Result<()> {
    if size == 0 {
        return Ok(());
    }
    if free(file).is_some_and(|free| size.saturating_sub(has_place) > free) {
        return Err(Errno::NOSPC.into());
    }
    match fallocate(file, FallocateFlags::empty(), 0, size) {
        Ok(()) => Ok(()),
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => write_zeros(file, before, size),
        Err(error) => Err(error.into()),
    }
}

/// Writes zeros where the file system cannot reserve: slower, with the same effect.
fn write_zeros(file: &File, before: u64, size: u64) -> io::Result<()> {
    let zeros = vec![0; 1 << 20];
    let mut at = before;
    while at < size {
        let piece = usize::try_from(size - at).unwrap_or(usize::MAX).min(zeros.len());
        file.write_all_at(&zeros[..piece], at)?;
        at += piece as u64;
    }
    Ok(())
}

fn no_room(
    path: &Path,
    file: &File,
    has_place: u64,
    size: ByteCount,
    error: io::Error,
) -> DeviceError {
    if error.kind() != io::ErrorKind::StorageFull {
        return failed(path, size, error);
    }
    let message = format!(
        "its file system has {} free and needs {} more for {size}",
        ByteCount(free(file).unwrap_or(0)),
        ByteCount(size.0.saturating_sub(has_place)),
    );
    DeviceError::unusable(path, Reason::new(message, "free some, or make it smaller"))
}

/// The free bytes that this process may use there; `None` where the file system does not report it.
fn free(file: &File) -> Option<u64> {
    let about = fstatvfs(file).ok().filter(|about| about.f_blocks > 0)?;
    Some(about.f_bavail * about.f_frsize)
}

fn failed(path: &Path, size: ByteCount, source: io::Error) -> DeviceError {
    let length = size.0;
    DeviceError::Io { action: "reserving", path: path.to_owned(), offset: 0, length, source }
}
