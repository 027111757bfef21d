//! Reads by mapping the file and touching the pages, one read after another.
//!
//! ```text
//!   in turn   submit, submit, ...   wait: map ▶ touch and copy ▶ unmap, for one read
//!   all       submit: map ...       wait: touch and copy ▶ unmap, for one read
//! ```
//!
//! The two forms of the first paper (Alderman and Diallo, section 5.6: a map and a touch for each
//! read; it asks what mapping all first would do). There the program touches the pages, and a page
//! that cannot be had (a bad sector, a file cut short) is a signal that ends the process. Here the
//! kernel touches and copies them on our behalf (`process_vm_readv` of ourselves): the same page
//! faults, in the same order, but what goes wrong is an error of one read.
//!
//! Pages come from the page cache always. For a direct file what the cache holds of a read is
//! thrown out first, so that the disk answers; pages that somebody else has mapped or made dirty
//! stay.
#![expect(unsafe_code, reason = "a mapping, read by the kernel")]

use super::one_by_one::OneRead;
use crate::file::OpenFile;
use crate::{Buffer, DeviceError, Pool};
use rustix::fs::{Advice, fadvise};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::io;
use std::num::NonZeroU64;
use std::ptr::NonNull;

/// See the head of this file.
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

    /// Fails with the kernel's reason if a file cannot be read so.
    fn probed(self, file: &OpenFile, pool: &Pool) -> io::Result<Self> {
        let spare = Pool::new(units::ByteCount::mib(2), units::ByteCount::mib(2));
        let mut buffer = pool.take(4096).or_else(|| spare.take(4096)).expect("a pool of its own");
        let mapping = Mapping::new(file, (0, buffer.len()))?;
        match mapping.copy(&mut buffer) {
            Err(error) if REFUSED.contains(&error) => Err(error.into()),
            _ => Ok(self),
        }
    }
}

impl OneRead for Mmap {
    type Prepared = Option<Mapping>;

    fn prepare(
        &mut self,
        file: &OpenFile,
        place: (u64, usize),
    ) -> Result<Option<Mapping>, DeviceError> {
        if !self.all {
            return Ok(None);
        }
        let mapping = Mapping::new(file, place);
        mapping.map(Some).map_err(|e| DeviceError::io("mapping", &file.path, place, e.into()))
    }

    fn read(
        &mut self,
        file: &OpenFile,
        offset: u64,
        buffer: &mut Buffer,
        prepared: Option<Mapping>,
    ) -> Result<(), DeviceError> {
        let place = (offset, buffer.len());
        let mapping = match prepared {
            Some(mapping) => mapping,
            None => Mapping::new(file, place)
                .map_err(|e| DeviceError::io("mapping", &file.path, place, e.into()))?,
        };
        let copied = mapping.copy(buffer);
        // Behind the end of a file the last page is zeros, which look like what was read.
        let end = file.end().map_err(|e| DeviceError::io("reading", &file.path, place, e))?;
        let there = usize::try_from(end.saturating_sub(offset)).unwrap_or(usize::MAX);
        if there < place.1 {
            return Err(DeviceError::ends_early(&file.path, place, there));
        }
        copied.map_err(|errno| {
            let errno = if errno == Errno::FAULT { Errno::IO } else { errno };
            DeviceError::io("reading", &file.path, place, errno.into())
        })
    }

    fn method(&self, file: &OpenFile) -> String {
        let when = if self.all { ", all mapped first" } else { "" };
        let cache = if file.direct { "emptied before each read" } else { "used" };
        format!("mmap{when}, page cache {cache}")
    }
}

/// A part of a file as memory, never touched by this program itself.
pub(super) struct Mapping {
    start: NonNull<u8>,
    len: usize,
    /// From `start` to what was asked for.
    skip: usize,
}

// SAFETY: an address range that is this object's own.
unsafe impl Send for Mapping {}

impl Mapping {
    fn new(file: &OpenFile, (offset, len): (u64, usize)) -> Result<Self, Errno> {
        let page = rustix::param::page_size() as u64;
        let begin = units::align_down(offset, page);
        let skip = usize::try_from(offset - begin).expect("below a page");
        let len = len + skip;
        if file.direct {
            // Refused: then the cache may answer, as it would have.
            let _ = fadvise(&file.file, begin, NonZeroU64::new(len as u64), Advice::DontNeed);
        }
        let (access, flags) = (ProtFlags::READ, MapFlags::SHARED);
        // SAFETY: a new mapping at an address of the kernel's choice.
        let start = unsafe { mmap(std::ptr::null_mut(), len, access, flags, &file.file, begin) }?;
        let start = NonNull::new(start.cast()).expect("a mapping is not at zero");
        Ok(Self { start, len, skip })
    }

    /// Fills the buffer; `FAULT` where a page cannot be had.
    fn copy(&self, buffer: &mut Buffer) -> Result<(), Errno> {
        let wanted = buffer.len().min(self.len - self.skip);
        let mut got = 0;
        while got < wanted {
            let into =
                libc::iovec { iov_base: buffer[got..].as_mut_ptr().cast(), iov_len: wanted - got };
            // SAFETY: within the mapping: `got` is below its length less `skip`.
            let from = unsafe { self.start.add(self.skip + got) };
            let from = libc::iovec { iov_base: from.as_ptr().cast(), iov_len: wanted - got };
            let us = rustix::process::getpid().as_raw_pid();
            // SAFETY: writes only to `into`, which is the rest of the buffer, borrowed mutably;
            // what cannot be read of `from` is an error, not a signal.
            let copied =
                unsafe { libc::process_vm_readv(us, &raw const into, 1, &raw const from, 1, 0) };
            match usize::try_from(copied) {
                Ok(0) => return Err(Errno::FAULT),
                Ok(copied) => got += copied,
                Err(_) => match Errno::from_io_error(&io::Error::last_os_error()) {
                    Some(Errno::INTR) => {}
                    errno => return Err(errno.unwrap_or(Errno::IO)),
                },
            }
        }
        Ok(())
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: nothing points into the mapping any more: `copy` has returned.
        let unmapped = unsafe { munmap(self.start.as_ptr().cast(), self.len) };
        debug_assert!(unmapped.is_ok(), "{unmapped:?}");
    }
}

/// What a kernel or a container answers that does not let a process read itself so.
const REFUSED: [Errno; 3] = [Errno::NOSYS, Errno::PERM, Errno::ACCESS];
