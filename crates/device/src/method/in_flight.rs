//! The transfers of an asynchronous method: the state of each and the meaning of the kernel's
//! result.
//! Shared by io_uring, libaio and POSIX aio, so that ends of files, errors and short transfers are
//! handled alike. It makes no system calls.
//!
//! ```text
//!   submit ──▶ fresh ──taken──▶ in the kernel ──answered──▶ done
//!                ▲                                 │
//!                └────────── short transfer ───────┘
//! ```

use crate::open_file::OpenFile;
use crate::{Completion, DeviceError, Direction, Transfer};
use rustix::io::Errno;
use std::ptr::NonNull;
use std::sync::Arc;
use units::index;

/// A transfer in flight.
struct Slot {
    transfer: Transfer,
    /// Number of bytes transferred so far.
    moved: usize,
}

/// The rest of a transfer in the form that kernels need. The memory must not move until the
/// transfer is complete.
pub(super) struct Remainder {
    pub(super) direction: Direction,
    pub(super) memory: NonNull<u8>,
    pub(super) len: usize,
    pub(super) offset: u64,
}

/// The transfers that a queue has submitted, or will submit, to the kernel. The slot identifies a
/// transfer in the kernel.
pub(super) struct InFlight {
    file: Arc<OpenFile>,
    slots: Vec<Option<Slot>>,
    free: Vec<usize>,
    /// Transfers that ended without the kernel: refused, or cancelled before they began.
    finished: Vec<Completion>,
    /// Transfers not yet submitted to the kernel, in order.
    fresh: Vec<usize>,
}

impl InFlight {
    pub(super) fn new(file: &Arc<OpenFile>, depth: u32) -> Self {
        let slots = index(depth);
        Self {
            file: Arc::clone(file),
            slots: (0..slots).map(|_| None).collect(),
            // Reversed, so that the first transfers get the lowest slots.
            free: (0..slots).rev().collect(),
            finished: Vec::new(),
            fresh: Vec::new(),
        }
    }

    /// Accepts a transfer, which is fresh at first. One that the file cannot do is completed with
    /// an error.
    pub(super) fn submit(&mut self, transfer: Transfer) {
        match self.file.check(transfer.direction, transfer.place()) {
            Ok(()) => self.submit_unchecked(transfer),
            Err(error) => self.finished.push(transfer.ended(Err(error))),
        }
    }

    /// Accepts a transfer without the checks of [`InFlight::submit`]: for test reads.
    pub(super) fn submit_unchecked(&mut self, transfer: Transfer) {
        let slot = self.free.pop().expect("no more transfers in flight than the queue's depth");
        self.slots[slot] = Some(Slot { transfer, moved: 0 });
        self.fresh.push(slot);
    }

    /// The transfers to be submitted, oldest first.
    pub(super) fn fresh(&self) -> &[usize] {
        &self.fresh
    }

    /// Notes that the kernel has taken the first `count` fresh transfers.
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

    /// Handles the kernel's result of a transfer: bytes, or a negated error number. A short
    /// transfer continues and is fresh again.
    pub(super) fn answered(&mut self, slot: usize, answer: i64, done: &mut Vec<Completion>) {
        match self.settle(slot, answer) {
            // It keeps its slot, so the rest of the transfer needs no room in the queue.
            None => self.fresh.push(slot),
            Some(result) => done.push(self.end(slot, result)),
        }
    }

    /// Returns transfers that ended without the kernel.
    pub(super) fn drain(&mut self, done: &mut Vec<Completion>) {
        done.append(&mut self.finished);
    }

    /// Cancels transfers that the kernel has not received.
    pub(super) fn cancel_fresh(&mut self) {
        for slot in std::mem::take(&mut self.fresh) {
            let transfer = self.transfer(slot);
            let (direction, place) = (transfer.direction, transfer.place());
            let called_off = DeviceError::cancelled(direction, &self.file.path, place);
            let ended = self.end(slot, Err(called_off));
            self.finished.push(ended);
        }
    }

    /// Number of transfers accepted and not yet returned.
    pub(super) fn count(&self) -> u32 {
        let count = self.slots.len() - self.free.len() + self.finished.len();
        u32::try_from(count).unwrap_or(u32::MAX)
    }

    /// Number of transfers in the kernel.
    pub(super) fn in_kernel(&self) -> usize {
        self.slots.len() - self.free.len() - self.fresh.len()
    }

    /// Abandons the buffers that the kernel may still use.
    pub(super) fn abandon(&mut self) {
        for under_way in self.slots.drain(..).flatten() {
            // Leaked on purpose: giving it back would let the kernel write into another owner's
            // buffer.
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

    /// The result of the transfer in this slot; `None` if it must continue.
    fn settle(&mut self, slot: usize, answer: i64) -> Option<Result<(), DeviceError>> {
        let file = &self.file;
        let Slot { transfer, moved } = self.slots[slot].as_mut().expect("a transfer in flight");
        let (direction, place) = (transfer.direction, transfer.place());
        let Ok(now) = usize::try_from(answer) else {
            let errno = i32::try_from(-answer).map_or(Errno::IO, Errno::from_raw_os_error);
            return match errno {
                // Nothing was moved and nothing is wrong: the same transfer is handed over again.
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
        // A direct transfer can only go on at a block; a shorter end is the end of the file.
        if now == 0 || (file.direct && !whole_blocks) {
            return Some(Err(DeviceError::ends_early(direction, &file.path, place, *moved)));
        }
        None
    }
}

/// Whether the result of a test read means that the kernel refuses the method, or refuses it for
/// this file. An error of the disk (`EIO`) does not count.
pub(super) fn refuses_method(answer: i64) -> Option<Errno> {
    let error = i32::try_from(answer.checked_neg()?).ok().filter(|error| *error > 0)?;
    let errno = Errno::from_raw_os_error(error);
    METHOD_REFUSED.contains(&errno).then_some(errno)
}

const METHOD_REFUSED: [Errno; 6] =
    [Errno::INVAL, Errno::OPNOTSUPP, Errno::NOSYS, Errno::PERM, Errno::ACCESS, Errno::FAULT];
