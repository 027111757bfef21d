//! The transfers that an asynchronous method has in the kernel: where each stands and what the
//! kernel's answer means. Shared by io_uring, libaio and POSIX aio, so that an end of file, an
//! error and a short transfer are the same by each. Talks to nobody.
//!
//! ```text
//!   submit ──▶ fresh ──taken──▶ in the kernel ──answered──▶ done
//!                ▲                                 │
//!                └────────── short of its end ─────┘
//! ```

use crate::frames::index;
use crate::open_file::OpenFile;
use crate::{Completion, DeviceError, Direction, Transfer};
use rustix::io::Errno;
use std::ptr::NonNull;
use std::sync::Arc;

/// A transfer under way.
struct Slot {
    transfer: Transfer,
    /// Bytes that have been moved.
    moved: usize,
}

/// What is still to do of a transfer, as kernels want it. The memory stays where it is until the
/// transfer has been answered.
pub(super) struct Remainder {
    pub(super) direction: Direction,
    pub(super) memory: NonNull<u8>,
    pub(super) len: usize,
    pub(super) offset: u64,
}

/// The transfers that a queue has handed, or will hand, to the kernel. A transfer's slot is its
/// name in the kernel.
pub(super) struct InFlight {
    file: Arc<OpenFile>,
    slots: Vec<Option<Slot>>,
    free: Vec<usize>,
    /// Finished without the kernel: refused, or called off before it began.
    finished: Vec<Completion>,
    /// Not yet handed to the kernel, in order.
    fresh: Vec<usize>,
}

impl InFlight {
    pub(super) fn new(file: &Arc<OpenFile>, depth: u32) -> Self {
        let slots = index(depth);
        Self {
            file: Arc::clone(file),
            slots: (0..slots).map(|_| None).collect(),
            free: (0..slots).rev().collect(),
            finished: Vec::new(),
            fresh: Vec::new(),
        }
    }

    /// Takes a transfer on; it waits among the fresh ones. What the file cannot do is finished.
    pub(super) fn submit(&mut self, transfer: Transfer) {
        match self.file.check(transfer.direction, transfer.place()) {
            Ok(()) => self.submit_unchecked(transfer),
            Err(error) => self.finished.push(transfer.ended(Err(error))),
        }
    }

    /// As [`InFlight::submit`], whatever the file is: for probes.
    pub(super) fn submit_unchecked(&mut self, transfer: Transfer) {
        let slot = self.free.pop().expect("no more transfers in flight than the queue's depth");
        self.slots[slot] = Some(Slot { transfer, moved: 0 });
        self.fresh.push(slot);
    }

    /// Transfers to hand to the kernel, oldest first.
    pub(super) fn fresh(&self) -> &[usize] {
        &self.fresh
    }

    /// The kernel has the first so many of the fresh ones.
    pub(super) fn taken(&mut self, count: usize) {
        self.fresh.drain(..count);
    }

    pub(super) fn transfer(&self, slot: usize) -> &Transfer {
        &self.under_way(slot).transfer
    }

    pub(super) fn rest(&self, slot: usize) -> Remainder {
        let Slot { transfer, moved } = self.under_way(slot);
        Remainder {
            direction: transfer.direction,
            memory: transfer.buffer.place(*moved),
            len: transfer.buffer.len() - moved,
            offset: transfer.offset + *moved as u64,
        }
    }

    /// What the kernel says of a transfer: bytes, or a negated error number. Short of its end it
    /// goes on, and is among the fresh ones again.
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
        for slot in std::mem::take(&mut self.fresh) {
            let transfer = self.transfer(slot);
            let (direction, place) = (transfer.direction, transfer.place());
            let called_off = DeviceError::cancelled(direction, &self.file.path, place);
            let ended = self.end(slot, Err(called_off));
            self.finished.push(ended);
        }
    }

    /// Submitted and not handed out.
    pub(super) fn count(&self) -> u32 {
        let count = self.slots.len() - self.free.len() + self.finished.len();
        u32::try_from(count).unwrap_or(u32::MAX)
    }

    /// In the kernel now.
    pub(super) fn in_kernel(&self) -> usize {
        self.slots.len() - self.free.len() - self.fresh.len()
    }

    /// Gives the buffers that the kernel may still use up for good.
    pub(super) fn abandon(&mut self) {
        for under_way in self.slots.drain(..).flatten() {
            std::mem::forget(under_way.transfer.buffer);
        }
    }

    fn under_way(&self, slot: usize) -> &Slot {
        self.slots[slot].as_ref().expect("a transfer in flight")
    }

    fn end(&mut self, slot: usize, result: Result<(), DeviceError>) -> Completion {
        let under_way = self.slots[slot].take().expect("a transfer in flight");
        self.free.push(slot);
        under_way.transfer.ended(result)
    }

    /// How the transfer of this slot ended; `None`: it must go on.
    fn settle(&mut self, slot: usize, answer: i64) -> Option<Result<(), DeviceError>> {
        let file = &self.file;
        let Slot { transfer, moved } = self.slots[slot].as_mut().expect("a transfer in flight");
        let (direction, place) = (transfer.direction, transfer.place());
        let Ok(now) = usize::try_from(answer) else {
            let errno = i32::try_from(-answer).map_or(Errno::IO, Errno::from_raw_os_error);
            return match errno {
                Errno::INTR | Errno::AGAIN => None,
                Errno::CANCELED => Some(Err(DeviceError::cancelled(direction, &file.path, place))),
                _ => Some(Err(file.failed(direction, place, errno.into()))),
            };
        };
        *moved += now;
        if *moved == place.len {
            return Some(Ok(()));
        }
        let whole_blocks = moved.is_multiple_of(index(file.geometry.block));
        if now == 0 || (file.direct && !whole_blocks) {
            return Some(Err(DeviceError::ends_early(direction, &file.path, place, *moved)));
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
