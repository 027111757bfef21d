//! Discarding: a disk or a file system is told that the bytes of an area are no longer needed.
//!
//! ```text
//!   block device   BLKDISCARD    the disk may forget them; a thin volume gives its space back
//!   file           a hole        the file system gives its space back; the length stays
//! ```

#![expect(unsafe_code, reason = "BLKDISCARD is an ioctl")]

use crate::DeviceKind;
use crate::open_file::OpenFile;
use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::Errno;
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;

/// Discards an area of whole blocks; false where device or file system cannot.
pub(crate) fn discard(file: &OpenFile, area: &Range<u64>) -> io::Result<bool> {
    let length = area.end - area.start;
    let done = if file.geometry.kind == DeviceKind::Block {
        let range = [area.start, length];
        // SAFETY: the kernel reads two numbers of 64 bits, which live across the call.
        let refused =
            unsafe { libc::ioctl(file.file.as_raw_fd(), BLKDISCARD, range.as_ptr()) } != 0;
        if refused { Err(io::Error::last_os_error()) } else { Ok(()) }
    } else {
        let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        fallocate(&file.file, hole, area.start, length).map_err(io::Error::from)
    };
    match done {
        Ok(()) => Ok(true),
        Err(error) => match Errno::from_io_error(&error) {
            Some(Errno::OPNOTSUPP | Errno::NOSYS | Errno::NOTTY) => Ok(false),
            _ => Err(error),
        },
    }
}

/// `_IO(0x12, 119)`; a signed number where the C library is musl.
const BLKDISCARD: libc::Ioctl = 0x1277_u32 as libc::Ioctl;
