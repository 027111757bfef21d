//! The number of extents of a file, as its file system reports it (FIEMAP).
//!
//! ```text
//!   struct fiemap, 32 bytes:  start u64 │ length u64 │ flags u32 │ mapped u32 │ count u32 │ 0
//!                             all of the file: 0, !0 │ SYNC      │ ◀ answer   │ 0: only count
//! ```
//!
//! A contiguous part longer than the file system's largest extent (128 MiB on ext4) counts as
//! several.
//! Layers beneath the file system (volume managers, arrays, remapping disks) are not considered.

#![expect(unsafe_code, reason = "FIEMAP is an ioctl")]

use crate::DeviceError;
use crate::refusal::cannot_open;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::Path;

/// Number of fragments of the file at `path`; `None` where its file system does not report it.
pub fn fragments(path: &Path) -> Result<Option<u64>, DeviceError> {
    let file = File::open(path).map_err(|error| cannot_open(path, error))?;
    let mut map = Fiemap { length: u64::MAX, flags: SYNC, ..Fiemap::default() };
    // SAFETY: the argument points to a `struct fiemap` that lives through the call; with a count of
    // zero the kernel writes no extents behind it.
    let done = unsafe { libc::ioctl(file.as_raw_fd(), FS_IOC_FIEMAP, &raw mut map) };
    Ok((done == 0).then(|| map.mapped.into()))
}

/// `struct fiemap` of linux/fiemap.h, without extents.
#[repr(C)]
#[derive(Default)]
struct Fiemap {
    start: u64,
    length: u64,
    flags: u32,
    mapped: u32,
    count: u32,
    reserved: u32,
}

/// `FIEMAP_FLAG_SYNC`: delayed allocations are made first.
const SYNC: u32 = 1;

/// `_IOWR('f', 11, struct fiemap)`; a signed number where the C library is musl.
const FS_IOC_FIEMAP: libc::Ioctl = 0xC020_660B_u32 as libc::Ioctl;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hole_has_no_extent_and_a_byte_has_one() {
        let path = std::env::temp_dir().join(format!("tenuto-fragments-{}", std::process::id()));
        std::fs::write(&path, b"").unwrap();
        let empty = fragments(&path).unwrap();
        std::fs::write(&path, vec![1; 4096]).unwrap();
        let one = fragments(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        // Some file systems do not report it.
        assert!(matches!((empty, one), (Some(0), Some(1)) | (None, None)), "{empty:?} {one:?}");
        assert!(fragments(&path).is_err());
    }
}
