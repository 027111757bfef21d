//! The dispatcher: what one disk reads next.
//!
//! ```text
//!   streams ─▶ EdfQueue ─── earliest due first ──▶ Batch ─── SCAN ──▶ chosen ─── issue ──▶ device
//!              by the due     │ limit: a sweep of      │ by place     │ buffers held
//!              slot of the    │ the WindowPlan, or     │              │
//!              next read      │ minRead reads          ▼              ▼
//!                             │ memory              charge       a newcomer is admitted:
//!                             ▼                     of the       unread again, chosen anew
//!                           closed                  sweep        by the new plan
//! ```
//!
//! The rule, for one disk:
//!
//! 1. **When.** Where the disk's time is counted: when nothing chosen is left and the device has
//!    room for a read; batches outlast slots. Where it is counted in reads: when a slot begins.
//! 2. **How much.** By time: the windows that [`WindowPlan::next`] joins, given when the device is
//!    certainly done ([`Dispatcher::next_sweep`]). By reads: minRead of them.
//! 3. **Which.** The stream whose next read is due first; among equals the older stream. The first
//!    read that does not fit into memory closes the batch ([`Batch`]).
//! 4. **In which order.** By place on the device. By time, reads of one stream that lie one behind
//!    the other are a *visit* and stay together in their order; the pass begins with the end that
//!    is nearer to the head. By reads, each read stands alone and the direction alternates.
//! 5. **At what charge.** Reads, how many of them are sequential, and transfer ([`SweepCharge`]).
//! 6. **Buffers.** A read holds its buffer from the choice, not from the issue, until the end of
//!    the slot in which it is released ([`ReleaseQueue`]), and at least to the end of the current
//!    slot.
//! 7. **Other work.** Best-effort work leaves the head anywhere ([`Dispatcher::forget_head`]): the
//!    next sweep is charged the way back to it, in what the caller gives as the time at which the
//!    device is done.
//! 8. **Newcomers.** An admission request is decided on as if what is chosen and not issued were
//!    unread. If it is accepted that is made true, and the next sweep follows the new plan.
//!    Otherwise the sweep goes on: broken off and begun anew it could cost more than it was
//!    charged.
//!
//! State: the books, the window plan, the queue, the position and direction of the head, what is
//! chosen and not issued. Inputs: the slot, the room in memory, when the device is certainly done,
//! and a [`ReadSource`] that says what a stream reads next and where that lies. Outputs: reads in
//! order of issue, and the charge of the sweep.
//!
//! The engine drives devices with it; studies and reproductions drive simulated disks; a
//! [`Forecast`] has no disk at all and takes each sweep to last as long as it is charged.
//!
//! It knows neither titles nor players, and not who shares a buffer: a [`ReadSource`] takes care of
//! what is in memory already.

mod batch;
mod forecast;
mod held;
mod path;
mod queue;

pub use batch::{Batch, BatchLimit, ChosenRead, NextRead, ReadSource, ScanDirection, SweepCharge};
pub use forecast::Forecast;
pub use held::ReleaseQueue;
pub use path::PathCharge;
pub use queue::EdfQueue;

use crate::admission::Supply;
use crate::books::DiskBooks;
use crate::piece::PieceDue;
use crate::windows::{NextSweep, WindowPlan};
use disk::Costs;
use std::collections::VecDeque;
use units::SlotIndex;

/// One disk's dispatcher: books, window plan, streams by deadline, and what is chosen for the
/// device. `S` names a stream, `R` a read.
#[derive(Clone, Debug)]
pub struct Dispatcher<S, R> {
    /// What is booked on the disk.
    pub books: DiskBooks,
    queue: EdfQueue<S>,
    plan: WindowPlan,
    head: Option<u64>,
    direction: ScanDirection,
    chosen: VecDeque<ChosenRead<S, R>>,
}

impl<S, R> Default for Dispatcher<S, R> {
    fn default() -> Self {
        Self {
            books: DiskBooks::default(),
            queue: EdfQueue::default(),
            plan: WindowPlan::default(),
            head: None,
            direction: ScanDirection::default(),
            chosen: VecDeque::new(),
        }
    }
}

impl<S: Copy + Ord, R> Dispatcher<S, R> {
    /// Queues a stream whose next read is `next`, if it has any.
    pub fn enqueue(&mut self, stream: S, next: Option<PieceDue>) {
        if let Some(next) = next {
            self.queue.insert(next.due, stream);
        }
    }

    /// Removes a stream, whose next read is `next`, from the queue.
    pub fn dequeue(&mut self, stream: S, next: Option<PieceDue>) {
        if let Some(next) = next {
            self.queue.remove(next.due, stream);
        }
    }

    /// The streams that have something to read.
    pub fn queue(&self) -> &EdfQueue<S> {
        &self.queue
    }

    /// `piece`, the next read of `stream`, is made, or was found in memory: from now on it holds a
    /// buffer. `after` is the stream's next read from now on.
    pub fn start_read(&mut self, stream: S, piece: PieceDue, after: Option<PieceDue>) {
        // A stream is in the queue once, by the due slot of its next read, which changes here.
        self.queue.remove(piece.due, stream);
        self.books.start_read(piece);
        self.enqueue(stream, after);
    }

    /// The reverse of [`Dispatcher::start_read`]: `piece` is unread again.
    pub fn undo_read(&mut self, stream: S, piece: PieceDue, after: Option<PieceDue>) {
        self.dequeue(stream, after);
        self.books.undo_read(piece);
        self.queue.insert(piece.due, stream);
    }

    /// What is chosen for stream `from` is chosen for `to` from now on.
    pub fn rename_chosen(&mut self, from: S, to: S) {
        let of_it = self.chosen.iter_mut().filter(|chosen| chosen.stream == from);
        of_it.for_each(|chosen| chosen.stream = to);
    }

    /// Bytes of `memory` that are neither held nor reserved.
    pub fn room(&self, memory: u64) -> u64 {
        memory.saturating_sub(self.books.held() + self.books.reserved())
    }

    /// The plan that sweeps follow.
    pub fn plan(&self) -> &WindowPlan {
        &self.plan
    }

    /// An admission request was accepted: from now on sweeps follow its plan.
    pub fn follow(&mut self, plan: WindowPlan) {
        self.plan = plan;
    }

    /// The sweep that is to be made next, by the plan; `None` where nothing is to be read, or a
    /// buffer must be released first. `supply.free_at` says when the device is certainly done with
    /// all that it has been given.
    pub fn next_sweep(&self, supply: &Supply<'_>) -> Option<BatchLimit> {
        match self.plan.next(&self.books, supply) {
            NextSweep::Batch { through } => Some(BatchLimit::Through(through)),
            NextSweep::Wait { .. } | NextSweep::Nothing => None,
        }
    }

    /// Puts the reads of a batch behind those that are chosen already, in order of issue. `costs`
    /// are those of a disk whose time is counted.
    pub fn choose(&mut self, batch: Batch<S, R>, costs: Option<&Costs>) {
        self.direction = match costs.zip(batch.span()) {
            Some((costs, (lowest, highest))) => {
                // From an unknown place either end may be the nearer one.
                let nearer = |head| ScanDirection::from_nearer_end(costs, head, lowest, highest);
                self.head.map_or(ScanDirection::Outward, nearer)
            }
            // A disk that is counted in reads has no known geometry. Alternating directions avoids
            // a seek across the disk between batches.
            None => self.direction.turned(),
        };
        self.chosen.extend(batch.in_order(self.direction));
    }

    /// Takes the next read for the device.
    pub fn issue(&mut self) -> Option<ChosenRead<S, R>> {
        self.chosen.pop_front()
    }

    /// The device was given a read that ends at this offset.
    pub fn head_moves_to(&mut self, end: u64) {
        self.head = Some(end);
    }

    /// The device was given other work, which may leave the head anywhere.
    pub fn forget_head(&mut self) {
        self.head = None;
    }

    /// The offset at which the last read issued ends; `None` if other work came after it.
    pub fn head(&self) -> Option<u64> {
        self.head
    }

    /// The charge, along the path of the head, of the reads that are chosen, not issued, and not
    /// left out, behind all that is in the device. `is_busy`: the device makes no pause before the
    /// first.
    pub fn path_of_chosen(
        &self,
        costs: &Costs,
        is_busy: bool,
        is_left_out: impl Fn(&ChosenRead<S, R>) -> bool,
    ) -> PathCharge {
        let (mut charge, mut head, mut is_busy) = (PathCharge::default(), self.head, is_busy);
        for chosen in self.chosen.iter().filter(|chosen| !is_left_out(chosen)) {
            let ChosenRead { piece, offset, .. } = chosen;
            let from = head.filter(|_| is_busy);
            let transfer = u64::from(piece.transfer);
            charge += PathCharge::of_read(costs, head, from, *offset, transfer);
            (head, is_busy) = (Some(offset + u64::from(piece.len)), true);
        }
        charge
    }

    /// The reads that are chosen and not issued, in order of issue.
    pub fn chosen(&self) -> impl ExactSizeIterator<Item = &ChosenRead<S, R>> {
        self.chosen.iter()
    }

    /// Bytes of buffers of the reads that are chosen and not issued.
    pub fn unissued_bytes(&self) -> u64 {
        self.chosen().map(|chosen| u64::from(chosen.piece.len)).sum()
    }

    /// Removes from what is chosen the reads for which `is` holds.
    pub fn withdraw(&mut self, is: impl Fn(&ChosenRead<S, R>) -> bool) {
        self.chosen.retain(|chosen| !is(chosen));
    }

    /// Time has come to `slot`.
    pub fn advance(&mut self, slot: SlotIndex) {
        self.books.advance(slot);
    }
}

#[cfg(test)]
mod tests;
