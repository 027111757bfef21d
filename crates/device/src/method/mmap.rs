//! Reads and writes by mapping the file and touching its pages, one transfer after another.
//!
//! ```text
//!   in turn   submit, submit, ...   wait: map ▶ touch and copy ▶ unmap, for one transfer
//!   all       submit: map ...       wait: touch and copy ▶ unmap, for one transfer
//! ```
//!
//! These are the two forms of the first paper (Alderman and Diallo, section 5.6: a map and a touch
//! for each read; it suggests mapping all first). There the program touches the pages, and a page
//! that cannot be read (a bad sector, a truncated file) is a signal that ends the process. Here the
//! kernel touches and copies them (`process_vm_readv` and `process_vm_writev` on this process): the
//! same page faults in the same order, but a failure is an error of one transfer.
//!
//! Pages always come from the page cache. For a direct file the cached pages of a read are dropped
//! first, so that the disk is read; pages that are mapped elsewhere or dirty stay. Written pages go
//! to the disk before the write completes (`msync`), so that the disk's time and errors belong to
//! the write; for a buffered file they stay in the cache.
#![expect(unsafe_code, reason = "a mapping, read and written by the kernel")]

use super::probe_buffer;
use super::serial::BlockingMethod;
use crate::block::ByteSpan;
use crate::open_file::OpenFile;
use crate::{Buffer, DeviceError, DeviceKind, Direction, Pool, Transfer};
use rustix::fs::{Advice, FallocateFlags, fadvise, fallocate};
use rustix::io::Errno;
use rustix::mm::{MapFlags, MsyncFlags, ProtFlags, mmap, msync, munmap};
use std::io;
use std::num::NonZeroU64;
use std::ptr::NonNull;

/// Reads and writes by copying from and to mappings of the file.
pub(super) struct Mmap {
    all: bool,
}

impl Mmap {
    pub(super) fn in_turn(file: &OpenFile, pool: &Pool) -> io::Result<Self> {
        Self { all: false }.probed(file, pool)
    }

    pub(super) fn all(file: &OpenFile, pool: &Pool) -> io::Result<Self> {
        Self { all: true }.probed(file, pool)
    }

    /// Fails with the kernel's reason if a file cannot be read by it.
    fn probed(self, file: &OpenFile, pool: &Pool) -> io::Result<Self> {
        let (_, mut buffer) = probe_buffer(pool);
        let mapping = Mapping::new(file, Direction::Read, ByteSpan::new(0, buffer.len()))?;
        match mapping.copy(Direction::Read, &mut buffer) {
            Err(error) if REFUSED.contains(&error) => Err(error.into()),
            _ => Ok(self),
        }
    }
}

impl BlockingMethod for Mmap {
    type Prepared = Option<Mapping>;

    fn prepare(
        &mut self,
        file: &OpenFile,
        transfer: &Transfer,
    ) -> Result<Option<Mapping>, DeviceError> {
        self.all.then(|| mapped(file, transfer)).transpose()
    }

    fn transfer(
        &mut self,
        file: &OpenFile,
        transfer: &mut Transfer,
        prepared: Option<Mapping>,
    ) -> Result<(), DeviceError> {
        let (direction, place) = (transfer.direction, transfer.place());
        let mapping = match prepared {
            Some(mapping) => mapping,
            None => mapped(file, transfer)?,
        };
        let mut copied = mapping.copy(direction, &mut transfer.buffer);
        if copied.is_ok() && direction == Direction::Write && file.direct {
            copied = mapping.write_out();
        }
        // Behind the end of a file the last page is zeros, which would pass for data, and writes to
        // it are lost.
        file.check_end(direction, place)?;
        copied.map_err(|errno| {
            let errno = if errno == Errno::FAULT { reason(file, direction, place) } else { errno };
            file.failed(direction, place, errno.into())
        })
    }

    fn method(&self, file: &OpenFile) -> String {
        let when = if self.all { ", all mapped first" } else { "" };
        let cache = if file.direct { "emptied before each read" } else { "used" };
        format!("mmap{when}, page cache {cache}")
    }
}

fn mapped(file: &OpenFile, transfer: &Transfer) -> Result<Mapping, DeviceError> {
    let place = transfer.place();
    let mapping = Mapping::new(file, transfer.direction, place);
    mapping.map_err(|e| DeviceError::io("mapping", &file.path, place, e.into()))
}

/// The reason of a page fault's failure. The fault has none; for a hole in a file, an attempt to
/// allocate it has.
fn reason(file: &OpenFile, direction: Direction, place: ByteSpan) -> Errno {
    if direction == Direction::Read || file.geometry.kind == DeviceKind::Block {
        return Errno::IO;
    }
    let asked = fallocate(&file.file, FallocateFlags::KEEP_SIZE, place.offset, place.len as u64);
    match asked {
        Err(errno @ (Errno::NOSPC | Errno::DQUOT)) => errno,
        _ => Errno::IO,
    }
}

/// A mapped part of a file, never touched by this program directly.
pub(super) struct Mapping {
    start: NonNull<u8>,
    len: usize,
    /// The distance from `start` to the requested place.
    skip: usize,
}

// SAFETY: an address range that is this object's own.
unsafe impl Send for Mapping {}

impl Mapping {
    fn new(file: &OpenFile, direction: Direction, place: ByteSpan) -> Result<Self, Errno> {
        let page = rustix::param::page_size() as u64;
        // `mmap` takes whole pages only; a block may be smaller than a page.
        let begin = units::align_down(place.offset, page);
        let skip = usize::try_from(place.offset - begin).expect("below a page");
        let len = place.len + skip;
        if file.direct && direction == Direction::Read {
            // If the kernel refuses, the cache may answer, which is no error.
            let _ = fadvise(&file.file, begin, NonZeroU64::new(len as u64), Advice::DontNeed);
        }
        let access = match direction {
            Direction::Read => ProtFlags::READ,
            Direction::Write => ProtFlags::READ | ProtFlags::WRITE,
        };
        let (anywhere, flags) = (std::ptr::null_mut(), MapFlags::SHARED);
        // SAFETY: a new mapping at an address of the kernel's choice.
        let start = unsafe { mmap(anywhere, len, access, flags, &file.file, begin) }?;
        let start = NonNull::new(start.cast()).expect("a mapping is not at zero");
        Ok(Self { start, len, skip })
    }

    /// Fills the buffer from the mapping, or the mapping from it; `FAULT` where a page cannot be
    /// had.
    fn copy(&self, direction: Direction, buffer: &mut Buffer) -> Result<(), Errno> {
        let wanted = buffer.len().min(self.len - self.skip);
        let mut moved = 0;
        while moved < wanted {
            let iov_len = wanted - moved;
            let ours = libc::iovec { iov_base: buffer[moved..].as_mut_ptr().cast(), iov_len };
            // SAFETY: within the mapping: `moved` is below its length less `skip`.
            let position = unsafe { self.start.add(self.skip + moved) };
            let there = libc::iovec { iov_base: position.as_ptr().cast(), iov_len };
            let us = rustix::process::getpid().as_raw_pid();
            let (ours, there) = (&raw const ours, &raw const there);
            // SAFETY: `ours` is the rest of the buffer, borrowed mutably, and `there` the rest of
            // the mapping, which nobody has a reference to; what cannot be touched of it is an
            // error, not a signal.
            let copied = unsafe {
                match direction {
                    Direction::Read => libc::process_vm_readv(us, ours, 1, there, 1, 0),
                    Direction::Write => libc::process_vm_writev(us, ours, 1, there, 1, 0),
                }
            };
            match usize::try_from(copied) {
                // Would loop for ever: nothing moved and no error.
                Ok(0) => return Err(Errno::FAULT),
                Ok(copied) => moved += copied,
                Err(_) => match Errno::from_io_error(&io::Error::last_os_error()) {
                    Some(Errno::INTR) => {}
                    errno => return Err(errno.unwrap_or(Errno::IO)),
                },
            }
        }
        Ok(())
    }

    /// Returns when the written pages are on the disk.
    fn write_out(&self) -> Result<(), Errno> {
        // SAFETY: the mapping is ours.
        unsafe { msync(self.start.as_ptr().cast(), self.len, MsyncFlags::SYNC) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: nothing points into the mapping any more: `copy` has returned.
        let unmapped = unsafe { munmap(self.start.as_ptr().cast(), self.len) };
        debug_assert!(unmapped.is_ok(), "{unmapped:?}");
    }
}

/// The errors of kernels or containers that do not let a process read itself.
const REFUSED: [Errno; 3] = [Errno::NOSYS, Errno::PERM, Errno::ACCESS];
