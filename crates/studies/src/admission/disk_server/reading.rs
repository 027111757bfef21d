//! What is read next, and what comes of it: the scheduler's dispatcher chooses, the disk model says
//! how long each read takes.
//!
//! ```text
//!   Dispatcher: a window of the plan, or minRead reads ──▶ chosen, in order of place
//!        ▲                                                   │ issued one at a time
//!        └── unread again: a newcomer is admitted            ▼
//!                                                          flight ──▶ held until shown;
//!                                                                     late if done too late
//! ```

use super::super::requests::Read;
use super::streams::{ReadState, StreamId};
use super::{RotationalDelay, SingleDiskServer};
use scheduler::{Batch, BatchLimit, ChosenRead, NextRead, PieceDue, ReadSource, SweepCharge};
use std::cmp::Reverse;
use std::time::Duration;
use units::{Moment, nanos};

/// A read in the device.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReadInFlight {
    pub(super) stream: StreamId,
    pub(super) piece: PieceDue,
    pub(super) begun: Moment,
    pub(super) finish: Moment,
}

/// The completed reads of the sweep under way, for the guard: their charge, and how long they took.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sweep {
    charge: SweepCharge,
    took: u64,
    /// The stream of the last read and the piece that is sequential to it, if any.
    sequel: Option<(StreamId, u32)>,
}

impl Sweep {
    fn completed(&mut self, flight: &ReadInFlight) {
        let ReadInFlight { stream, piece, begun, finish } = *flight;
        let sequential = self.sequel == Some((stream, piece.piece));
        self.sequel = piece.followed_after.map(|_| (stream, piece.piece + 1));
        self.charge.reads += 1;
        self.charge.sequential += u64::from(sequential);
        self.charge.transfer += u64::from(piece.transfer);
        self.took += nanos(finish.since(begun));
    }
}

impl SingleDiskServer<'_> {
    /// Gives the device its next read. The device must be idle.
    pub(super) fn begin_next(&mut self) {
        if self.dispatcher.chosen().len() == 0 && !self.waits {
            // The sweep is compared with its charge before the next is chosen.
            self.sweep_is_over();
            self.choose_sweep();
        }
        let Some(ChosenRead { stream, piece, .. }) = self.dispatcher.issue() else { return };
        let turn = match self.rules.rotation {
            RotationalDelay::Random => self.random.part(),
            RotationalDelay::Worst => 1.0,
        };
        let Read { offset, len, .. } = self.read(stream.viewer, piece);
        let service = self.head.serve_turned(self.now, offset, u64::from(len), turn);
        self.dispatcher.head_moves_to(offset + u64::from(len));
        *self.state(stream.viewer, piece) = ReadState::InFlight;
        let finish = self.rules.finish(self.now, service.finish);
        self.flight = Some(ReadInFlight { stream, piece, begun: self.now, finish });
    }

    // A window of the plan; or as many reads as a slot is sure to complete, and what else is due
    // with the last of them.
    fn choose_sweep(&mut self) {
        let limit = if self.rules.windows {
            self.dispatcher.next_sweep(&self.supply())
        } else {
            Some(BatchLimit::WholeVisits(self.rules.min_read))
        };
        // Whether the plan waits for a buffer or nothing is left: nothing changes before a buffer
        // is released or a viewer comes or goes.
        let Some(limit) = limit else {
            self.waits = true;
            return;
        };
        let batch = Batch::new(limit).fill(&mut Source(self));
        self.waits = batch.reads().len() == 0 && !self.dispatcher.queue().is_empty();
        let timings = &self.rules.timings;
        self.dispatcher.choose(batch, timings.costs.as_ref().filter(|_| self.rules.windows));
    }

    /// The read in flight is done.
    pub(super) fn complete(&mut self) {
        let Some(flight) = self.flight.take() else { return };
        let ReadInFlight { stream, piece, begun, finish } = flight;
        let deadline = piece.due.next().start(self.rules.slot);
        // Also for a viewer who has left: the guard compares charges with the time of all reads.
        self.sweep.completed(&flight);
        self.busy.reads();
        self.counters.reads += 1;
        self.counters.bytes += u64::from(piece.len);
        self.counters.busy += finish.since(begun);
        self.counters.transfer += Duration::from_nanos(piece.transfer.into());
        if self.viewers[stream.viewer].gone {
            // The viewer left while its read was in the device: nobody needs the buffer.
            self.dispatcher.books.release(piece);
            *self.state(stream.viewer, piece) = ReadState::Done;
            self.waits = false;
            return;
        }
        if self.now > deadline {
            self.counters.late += 1;
            self.counters.latest = self.counters.latest.max(self.now.since(deadline));
        }
        // A late read may be past its release slot: its buffer is held to the end of this slot.
        let until = piece.release.max(self.dispatcher.books.current());
        *self.state(stream.viewer, piece) = ReadState::Held(until);
        self.dispatcher.books.hold_until(piece, until);
        self.held.hold(until, (stream.viewer, piece));
    }

    /// The answer of `ask` with all chosen reads unread that the device was not given: an admission
    /// request is decided on as if the sweep ended now.
    pub(super) fn with_unissued_unread<T>(&mut self, ask: impl FnOnce(&Self) -> T) -> T {
        let pieces: Vec<PieceDue> = self.dispatcher.chosen().map(|chosen| chosen.piece).collect();
        pieces.iter().for_each(|piece| self.dispatcher.books.undo_read(*piece));
        let answer = ask(self);
        pieces.iter().for_each(|piece| self.dispatcher.books.start_read(*piece));
        answer
    }

    /// Ends the sweep: the chosen reads that the device was not given are unread again.
    pub(super) fn break_off_sweep(&mut self) {
        let mut unissued: Vec<_> = std::iter::from_fn(|| self.dispatcher.issue()).collect();
        // A stream's reads are undone in the reverse order of their choice.
        unissued.sort_by_key(|chosen| Reverse(chosen.piece.piece));
        for ChosenRead { stream, piece, .. } in unissued {
            let after = self.next_piece(stream);
            *self.state(stream.viewer, piece) = ReadState::Unread;
            self.viewers[stream.viewer].next[stream.track] = piece.piece as usize;
            self.dispatcher.undo_read(stream, piece, after);
        }
        self.waits = false;
    }

    // Tells the guard how long a sweep took beside what it was charged.
    fn sweep_is_over(&mut self) {
        let Sweep { charge, took, .. } = std::mem::take(&mut self.sweep);
        let Some(costs) = self.rules.timings.costs.as_ref().filter(|_| charge.reads > 0) else {
            return;
        };
        self.guard.passed(Duration::from_nanos(took));
        self.guard.swept(charge.nanos(costs), took);
        if self.rules.guarded && self.timings.slowdown != self.guard.slowdown() {
            // The timings are shared and copied only here: most runs never slow down.
            std::sync::Arc::make_mut(&mut self.timings).slowdown = self.guard.slowdown();
        }
    }
}

// What the dispatcher sees of the server: its streams and its memory.
struct Source<'s, 'a>(&'s mut SingleDiskServer<'a>);

impl ReadSource for Source<'_, '_> {
    type Stream = StreamId;
    type Read = ();

    fn most_urgent(&mut self) -> Option<NextRead<StreamId>> {
        let (_, stream) = self.0.dispatcher.queue().first()?;
        let piece = self.0.next_piece(stream)?;
        Some(NextRead { stream, piece, offset: self.0.read(stream.viewer, piece).offset })
    }

    fn room(&self) -> u64 {
        self.0.dispatcher.room(self.0.rules.memory)
    }

    fn start_read(&mut self, next: &NextRead<StreamId>) -> Option<()> {
        let server = &mut *self.0;
        *server.state(next.stream.viewer, next.piece) = ReadState::Chosen;
        let after = server.next_piece(next.stream);
        server.dispatcher.start_read(next.stream, next.piece, after);
        server.counters.buffers = server.counters.buffers.max(server.dispatcher.books.held());
        Some(())
    }
}
