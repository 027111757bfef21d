//! The reads that an asynchronous method has in the kernel: where each stands and what the kernel's
//! answer means. Shared by io_uring, libaio and POSIX aio, so that an end of file, an error and a
//! short read are the same by each. Talks to nobody.

use crate::file::OpenFile;
use crate::frames::index;
use crate::{Buffer, Completion, DeviceError};
use rustix::io::Errno;
use std::sync::Arc;

/// A read under way.
pub(super) struct Read {
    pub(super) tag: u64,
    pub(super) offset: u64,
    pub(super) buffer: Buffer,
    /// Bytes that have arrived.
    pub(super) got: usize,
}

/// See the head of this file. A read's slot is its name in the kernel.
pub(super) struct InFlight {
    file: Arc<OpenFile>,
    reads: Vec<Option<Read>>,
    free: Vec<usize>,
    /// Finished without the kernel: not within the device, or called off before it began.
    finished: Vec<Completion>,
    /// Not yet handed to the kernel, in order.
    fresh: Vec<usize>,
}

impl InFlight {
    pub(super) fn new(file: &Arc<OpenFile>, depth: u32) -> Self {
        let slots = index(depth);
        Self {
            file: Arc::clone(file),
            reads: (0..slots).map(|_| None).collect(),
            free: (0..slots).rev().collect(),
            finished: Vec::new(),
            fresh: Vec::new(),
        }
    }

    /// Takes a read on; it waits among the fresh ones. What is not within the device is finished.
    pub(super) fn submit(&mut self, tag: u64, offset: u64, buffer: Buffer) {
        let place = (offset, buffer.len());
        if let Err(error) = self.file.geometry.check("reading", &self.file.path, place) {
            self.finished.push(Completion { tag, buffer, result: Err(error) });
            return;
        }
        let slot = self.free.pop().expect("no more reads in flight than the queue's depth");
        self.reads[slot] = Some(Read { tag, offset, buffer, got: 0 });
        self.fresh.push(slot);
    }

    /// Reads to hand to the kernel, oldest first.
    pub(super) fn take_fresh(&mut self) -> Vec<usize> {
        std::mem::take(&mut self.fresh)
    }

    /// They could not be handed over; they come first next time.
    pub(super) fn put_back(&mut self, slots: &[usize]) {
        self.fresh.splice(0..0, slots.iter().copied());
    }

    pub(super) fn read(&self, slot: usize) -> &Read {
        self.reads[slot].as_ref().expect("a read in flight")
    }

    /// What the kernel says of a read: bytes, or a negated error number. Short of its end it goes
    /// on, and is among the fresh ones again.
    pub(super) fn answered(&mut self, slot: usize, answer: i64, done: &mut Vec<Completion>) {
        match self.settle(slot, answer) {
            None => self.fresh.push(slot),
            Some(result) => done.push(self.end(slot, result)),
        }
    }

    /// Hands out what finished without the kernel.
    pub(super) fn drain(&mut self, done: &mut Vec<Completion>) {
        done.append(&mut self.finished);
    }

    /// Calls off what the kernel has not seen.
    pub(super) fn cancel_fresh(&mut self) {
        for slot in self.take_fresh() {
            let Read { offset, ref buffer, .. } = *self.read(slot);
            let called_off = DeviceError::cancelled(&self.file.path, (offset, buffer.len()));
            let ended = self.end(slot, Err(called_off));
            self.finished.push(ended);
        }
    }

    /// Submitted and not handed out.
    pub(super) fn count(&self) -> u32 {
        let count = self.reads.len() - self.free.len() + self.finished.len();
        u32::try_from(count).unwrap_or(u32::MAX)
    }

    /// In the kernel now.
    pub(super) fn in_kernel(&self) -> usize {
        self.reads.len() - self.free.len() - self.fresh.len()
    }

    /// Gives the buffers that the kernel may still write to up for good.
    pub(super) fn abandon(&mut self) {
        for read in self.reads.drain(..).flatten() {
            std::mem::forget(read.buffer);
        }
    }

    fn end(&mut self, slot: usize, result: Result<(), DeviceError>) -> Completion {
        let read = self.reads[slot].take().expect("a read in flight");
        self.free.push(slot);
        Completion { tag: read.tag, buffer: read.buffer, result }
    }

    /// How the read of this slot ended; `None`: it must go on.
    fn settle(&mut self, slot: usize, answer: i64) -> Option<Result<(), DeviceError>> {
        let file = &self.file;
        let read = self.reads[slot].as_mut().expect("a read in flight");
        let place = (read.offset, read.buffer.len());
        let Ok(arrived) = usize::try_from(answer) else {
            let errno = i32::try_from(-answer).map_or(Errno::IO, Errno::from_raw_os_error);
            return match errno {
                Errno::INTR | Errno::AGAIN => None,
                Errno::CANCELED => Some(Err(DeviceError::cancelled(&file.path, place))),
                _ => Some(Err(DeviceError::io("reading", &file.path, place, errno.into()))),
            };
        };
        read.got += arrived;
        if read.got == read.buffer.len() {
            return Some(Ok(()));
        }
        let whole_blocks = read.got.is_multiple_of(index(file.geometry.block));
        if arrived == 0 || (file.direct && !whole_blocks) {
            return Some(Err(DeviceError::ends_early(&file.path, place, read.got)));
        }
        None
    }
}

/// Whether the kernel said of a probing read that it does not do the method, or not on this file.
/// What the disk says (`EIO`) is not for or against the method.
pub(super) fn refuses_method(answer: i64) -> Option<Errno> {
    let error = i32::try_from(answer.checked_neg()?).ok().filter(|error| *error > 0)?;
    let errno = Errno::from_raw_os_error(error);
    METHOD_REFUSED.contains(&errno).then_some(errno)
}

const METHOD_REFUSED: [Errno; 6] =
    [Errno::INVAL, Errno::OPNOTSUPP, Errno::NOSYS, Errno::PERM, Errno::ACCESS, Errno::FAULT];
