//! The viewers inside: which of their reads are made, and which comes next for each.

use super::super::requests::ReadSchedule;
use super::SingleDiskServer;
use super::rules::{due_slot, piece_of};
use scheduler::{PieceDue, RateSummary};
use std::sync::Arc;
use units::SlotIndex;

/// Who is in: a number that the station gives out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Viewer(pub(super) usize);

#[derive(Clone, Debug)]
pub(super) struct ActiveStream {
    pub(super) schedule: Arc<ReadSchedule>,
    /// The slot in which its first frame is shown.
    pub(super) first: SlotIndex,
    pub(super) summary: RateSummary,
    pub(super) state: Vec<State>,
    /// The first read that is neither begun nor in the batch.
    pub(super) next: usize,
    /// Reads that are not shown yet.
    pub(super) left: usize,
    pub(super) gone: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Unread,
    Chosen,
    ReadMode,
    /// Until the end of this slot.
    Held(SlotIndex),
    Done,
}

impl ActiveStream {
    pub(super) fn new(schedule: Arc<ReadSchedule>, first: SlotIndex, summary: RateSummary) -> Self {
        let state = vec![State::Unread; schedule.reads.len()];
        let left = state.len();
        Self { schedule, first, summary, state, next: 0, left, gone: false }
    }
}

impl SingleDiskServer<'_> {
    /// A viewer goes. What it was to read is off the books, its buffers are free.
    pub fn leave(&mut self, viewer: Viewer) {
        let number = viewer.0;
        if self.viewers[number].gone {
            return;
        }
        self.dequeue(number);
        self.batch.retain(|(of, _)| *of != number);
        for read in 0..self.viewers[number].state.len() {
            let piece = self.piece(number, read);
            match self.viewers[number].state[read] {
                State::Unread | State::Chosen => self.books.unbook(piece),
                State::Held(release) => self.books.release(PieceDue { release, ..piece }),
                // Let go when it is done.
                State::ReadMode => continue,
                State::Done => {}
            }
            self.viewers[number].state[read] = State::Done;
        }
        let watching = &mut self.viewers[number];
        watching.gone = true;
        self.books.unbook_summary(watching.summary);
        self.waits = false;
    }

    /// Whether the viewer is still being served.
    pub fn watches(&self, viewer: Viewer) -> bool {
        !self.viewers[viewer.0].gone
    }

    /// What was shown by the end of `slot` is let go.
    pub(super) fn shown(&mut self, slot: SlotIndex, reads: Vec<(usize, usize)>) {
        for (viewer, read) in reads {
            // A viewer that left has released its buffers already.
            if self.viewers[viewer].state[read] != State::Held(slot) {
                continue;
            }
            let piece = PieceDue { release: slot, ..self.piece(viewer, read) };
            self.books.release(piece);
            self.waits = false;
            let watching = &mut self.viewers[viewer];
            watching.state[read] = State::Done;
            watching.left -= 1;
            if watching.left == 0 {
                watching.gone = true;
                self.books.unbook_summary(watching.summary);
            }
        }
    }

    pub(super) fn enqueue(&mut self, viewer: usize) {
        let watching = &mut self.viewers[viewer];
        // Reads after a dropped one may be done already.
        while watching.state.get(watching.next).is_some_and(|state| *state != State::Unread) {
            watching.next += 1;
        }
        if let Some(due) = self.next_due(viewer) {
            self.queue.insert(due, viewer);
        }
    }

    pub(super) fn dequeue(&mut self, viewer: usize) {
        if let Some(due) = self.next_due(viewer) {
            self.queue.remove(due, viewer);
        }
    }

    fn next_due(&self, viewer: usize) -> Option<SlotIndex> {
        let watching = &self.viewers[viewer];
        let read = watching.schedule.reads.get(watching.next)?;
        Some(due_slot(read, watching.first))
    }

    pub(super) fn piece(&self, viewer: usize, read: usize) -> PieceDue {
        let watching = &self.viewers[viewer];
        let number = u32::try_from(read).unwrap_or(u32::MAX);
        piece_of(&watching.schedule.reads[read], number, watching.first)
    }
}
