//! `preadv2` and `pwritev2`, one after another.
//!
//! A buffered read first uses `RWF_NOWAIT`, which returns cached data and never waits for the disk,
//! and reads the rest by a second call that waits. So the number of reads that the page cache
//! answered is known, and reported.
//!
//! A direct read uses no flag. `RWF_HIPRI` once polled for the completion instead of sleeping;
//! since Linux 5.19 (commit 9650b453a3d4) the kernel accepts and ignores it, also on disks with
//! polled queues. io_uring can poll (`uring.rs`).

use super::cached;
use super::in_flight::refuses_method;
use super::serial::BlockingMethod;
use crate::bounce::Bounce;
use crate::open_file::OpenFile;
use crate::{DeviceError, Direction, Transfer};
use rustix::io::{Errno, ReadWriteFlags, preadv2, pwritev2};
use std::io::{self, IoSlice, IoSliceMut};
use units::show::count;

/// Reads by `preadv2`, first without waiting, then with waiting.
pub(super) struct Preadv2 {
    /// The flags of the first attempt, which does not wait.
    first: ReadWriteFlags,
    reads: u64,
    /// Number of reads that the page cache answered completely.
    from_cache: u64,
}

impl Preadv2 {
    /// Fails with the kernel's reason if it does not support the call.
    pub(super) fn new(file: &OpenFile) -> io::Result<Self> {
        let first = if file.direct { ReadWriteFlags::empty() } else { ReadWriteFlags::NOWAIT };
        let mut it = Self { first, reads: 0, from_cache: 0 };
        it.probe(file)?;
        Ok(it)
    }

    /// Falls back to no flag where the file system supports none.
    fn probe(&mut self, file: &OpenFile) -> io::Result<()> {
        let mut answer = Ok(0);
        let mut one = |flags| {
            let length = Bounce::ALIGNMENT.min(usize::try_from(file.geometry.size.0).unwrap_or(0));
            // The closure is called once and never fails; the kernel's result is kept in a
            // variable.
            let _ = Bounce::default().pieces(length, |_, aligned| {
                answer = preadv2(&file.file, &mut [IoSliceMut::new(aligned)], 0, flags);
                Ok(())
            });
            match answer {
                Err(errno) => refuses_method(-i64::from(errno.raw_os_error())),
                Ok(_) => None,
            }
        };
        if one(self.first).is_some() {
            self.first = ReadWriteFlags::empty();
        }
        one(self.first).map_or(Ok(()), |errno| Err(errno.into()))
    }
}

impl BlockingMethod for Preadv2 {
    type Prepared = ();

    fn transfer(
        &mut self,
        file: &OpenFile,
        transfer: &mut Transfer,
        (): (),
    ) -> Result<(), DeviceError> {
        let (direction, place) = (transfer.direction, transfer.place());
        let reading = direction == Direction::Read;
        let (mut moved, mut calls) = (0, 0);
        let mut flags = if reading { self.first } else { self.first - ReadWriteFlags::NOWAIT };
        while moved < place.len {
            let at = place.offset + moved as u64;
            let rest = &mut transfer.buffer[moved..];
            let answer = match direction {
                Direction::Read => preadv2(&file.file, &mut [IoSliceMut::new(rest)], at, flags),
                Direction::Write => pwritev2(&file.file, &[IoSlice::new(rest)], at, flags),
            };
            match answer {
                Ok(0) => {
                    return Err(DeviceError::ends_early(direction, &file.path, place, moved));
                }
                Ok(n) => moved += n,
                Err(Errno::INTR) => continue,
                // The data is not in the cache: the next call waits.
                Err(Errno::AGAIN) if flags == ReadWriteFlags::NOWAIT => {}
                Err(errno) => return Err(file.failed(direction, place, errno.into())),
            }
            calls += 1;
            // Only the first call is tried without waiting: the rest of a short read is on the
            // disk.
            flags -= ReadWriteFlags::NOWAIT;
        }
        self.reads += u64::from(reading);
        // One call that did not wait and had all of it: the page cache answered.
        let cached = reading && calls == 1 && self.first == ReadWriteFlags::NOWAIT;
        self.from_cache += u64::from(cached);
        Ok(())
    }

    fn method(&self, file: &OpenFile) -> String {
        let Self { reads, from_cache, .. } = self;
        let how = match self.first {
            ReadWriteFlags::NOWAIT if *reads > 0 => {
                format!(", {from_cache} of {} from the page cache", count(*reads, "read"))
            }
            _ => String::new(),
        };
        format!("preadv2, {}{how}", cached(file))
    }
}
