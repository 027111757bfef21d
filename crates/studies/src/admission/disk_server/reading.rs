//! What is read next, in which order, and what comes of it.
//!
//! ```text
//!   queue, earliest due first ──▶ batch: a window of the plan, or minRead reads; in order of place
//!                                   │ one at a time
//!                                   ▼
//!                                flight ──▶ held until shown; late if done after its deadline
//! ```

use super::super::requests::Read;
use super::streams::State;
use super::{RotationalDelay, SingleDiskServer};
use scheduler::NextSweep;
use std::collections::BTreeMap;
use std::time::Duration;
use units::{Moment, SlotIndex, nanos};

/// A read in the device.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReadInFlight {
    pub(super) viewer: usize,
    pub(super) read: usize,
    pub(super) begun: Moment,
    pub(super) finish: Moment,
}

/// The sweep under way, for the guard: what it is charged, and how long it has taken.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sweep {
    reads: u64,
    /// Reads that begin where the one before ended.
    follows: u64,
    transfer: u64,
    took: u64,
    /// What goes on where the last one ended, and counts as such.
    next: Option<(usize, u64)>,
}

// Reads of one viewer that lie one behind the other.
#[derive(Debug)]
struct Visit {
    offset: u64,
    reads: Vec<(usize, usize)>,
}

impl SingleDiskServer<'_> {
    pub(super) fn begin_next(&mut self) {
        if self.batch.is_empty() && !self.waits {
            // The sweep ends with its batch, and is compared with its charge before the next is
            // chosen.
            self.sweep_is_over();
            if self.rules.windows { self.choose_window() } else { self.choose_reads() }
        }
        let Some((viewer, read)) = self.batch.pop_front() else { return };
        let piece = self.piece(viewer, read);
        self.books.start_read(piece);
        self.counters.buffers = self.counters.buffers.max(self.books.held());
        let turn = match self.rules.rotation {
            RotationalDelay::Random => self.random.part(),
            RotationalDelay::Worst => 1.0,
        };
        let Read { offset, len, .. } = self.viewers[viewer].schedule.reads[read];
        let service = self.head.serve_turned(self.now, offset, u64::from(len), turn);
        self.arm = offset + u64::from(len);
        self.viewers[viewer].state[read] = State::ReadMode;
        let finish = self.rules.finish(self.now, service.finish);
        self.flight = Some(ReadInFlight { viewer, read, begun: self.now, finish });
    }

    /// As the plan says.
    fn choose_window(&mut self) {
        match self.plan.next(&self.books, &self.supply()) {
            NextSweep::Batch { through } => self.choose(|_, due, _| due <= through),
            // Asked again when a buffer is let go, which happens at the ends of slots.
            NextSweep::Wait { .. } => self.waits = true,
            NextSweep::Nothing => {}
        }
    }

    /// As many as a slot is sure to read, and what else is due with the last of them: a visit to
    /// a title is not cut in two.
    fn choose_reads(&mut self) {
        let most = usize::try_from(self.rules.min_read).unwrap_or(usize::MAX);
        self.choose(|taken, _, same_visit| taken < most || same_visit);
    }

    /// Takes reads, earliest due first, while `goes_on` (of their number, when the next is due,
    /// and whether it is due with the last one, for the same viewer) and while memory lasts; then
    /// puts them in order of place.
    fn choose(&mut self, goes_on: impl Fn(usize, SlotIndex, bool) -> bool) {
        let held = self.books.held() + self.books.reserved();
        let mut room = self.rules.memory.saturating_sub(held);
        let mut chosen: Vec<(u64, usize, usize)> = Vec::new();
        let mut last = None;
        while let Some((due, viewer)) = self.queue.first() {
            let read = self.viewers[viewer].next;
            let schedule = self.viewers[viewer].schedule.reads[read];
            if !goes_on(chosen.len(), due, last == Some((due, viewer))) {
                break;
            }
            last = Some((due, viewer));
            if u64::from(schedule.len) > room {
                // With reads chosen the disk has work; it waits only if not even the first one
                // fits.
                self.waits = chosen.is_empty();
                break;
            }
            room -= u64::from(schedule.len);
            self.dequeue(viewer);
            self.viewers[viewer].state[read] = State::Chosen;
            chosen.push((schedule.offset, viewer, read));
            self.enqueue(viewer);
        }
        let mut visits = if self.rules.windows { self.visits(chosen) } else { self.runs(chosen) };
        self.inward =
            if self.rules.windows { self.far_end_is_nearer(&visits) } else { !self.inward };
        if self.inward {
            visits.reverse();
        }
        self.batch.extend(visits.into_iter().flat_map(|visit| visit.reads));
    }

    /// What a viewer has in one place, in the order in which it lies there, whichever way the arm
    /// goes; in order of place.
    fn visits(&self, chosen: Vec<(u64, usize, usize)>) -> Vec<Visit> {
        let mut visits: Vec<Visit> = Vec::new();
        let mut ends = BTreeMap::<(usize, u64), usize>::new();
        for (offset, viewer, read) in chosen {
            let end = offset + u64::from(self.viewers[viewer].schedule.reads[read].len);
            let goes_on = ends.remove(&(viewer, offset));
            let visit = goes_on.unwrap_or(visits.len());
            if goes_on.is_none() {
                visits.push(Visit { offset, reads: Vec::new() });
            }
            visits[visit].reads.push((viewer, read));
            ends.insert((viewer, end), visit);
        }
        // The first read makes the order definite where two visits begin at one place.
        visits.sort_by_key(|visit| (visit.offset, visit.reads[0]));
        visits
    }

    /// Neighbouring blocks, whoever they are for.
    fn runs(&self, mut chosen: Vec<(u64, usize, usize)>) -> Vec<Visit> {
        let end = |&(offset, viewer, read): &(u64, usize, usize)| {
            offset + u64::from(self.viewers[viewer].schedule.reads[read].len)
        };
        chosen.sort_unstable();
        let visit = |run: &[(u64, usize, usize)]| Visit {
            offset: run[0].0,
            reads: run.iter().map(|(_, viewer, read)| (*viewer, *read)).collect(),
        };
        chosen.chunk_by(|earlier, later| end(earlier) == later.0).map(visit).collect()
    }

    fn far_end_is_nearer(&self, visits: &[Visit]) -> bool {
        let Some(costs) = &self.rules.timings.costs else { return false };
        let (Some(near), Some(far)) = (visits.first(), visits.last()) else { return false };
        let arm = costs.place(self.arm);
        (costs.place(far.offset) - arm).abs() < (costs.place(near.offset) - arm).abs()
    }

    pub(super) fn complete(&mut self) {
        let Some(flight) = self.flight.take() else { return };
        let piece = self.piece(flight.viewer, flight.read);
        let deadline = piece.due.next().start(self.rules.slot);
        let took = flight.finish.since(flight.begun);
        self.counters.reads += 1;
        self.busy.reads();
        self.counters.bytes += u64::from(piece.len);
        self.counters.busy += took;
        self.counters.transfer += Duration::from_nanos(piece.transfer.into());
        self.sweep.reads += 1;
        let Read { offset, len, .. } = self.viewers[flight.viewer].schedule.reads[flight.read];
        self.sweep.follows += u64::from(self.sweep.next == Some((flight.viewer, offset)));
        let end = offset + u64::from(len);
        self.sweep.next = piece.followed_after.map(|_| (flight.viewer, end));
        self.sweep.transfer += u64::from(piece.transfer);
        self.sweep.took += nanos(took);
        let watching = &mut self.viewers[flight.viewer];
        // The viewer left while its read was in the device: nobody needs the buffer.
        if watching.gone {
            self.books.release(piece);
            watching.state[flight.read] = State::Done;
            self.waits = false;
            return;
        }
        if self.now > deadline {
            self.counters.late += 1;
            self.counters.latest = self.counters.latest.max(self.now.since(deadline));
        }
        // A late read may be past its release slot: its buffer is held to the end of this slot.
        let until = piece.release.max(self.books.current());
        watching.state[flight.read] = State::Held(until);
        self.books.hold_until(piece, until);
        self.held.entry(until).or_default().push((flight.viewer, flight.read));
    }

    /// What is chosen and not begun is chosen anew.
    pub(super) fn drop_batch(&mut self) {
        for (viewer, read) in std::mem::take(&mut self.batch) {
            self.dequeue(viewer);
            let watching = &mut self.viewers[viewer];
            watching.state[read] = State::Unread;
            // A batch is in order of place, so that an earlier read may be dropped after a later
            // one.
            watching.next = watching.next.min(read);
            self.enqueue(viewer);
        }
        self.waits = false;
    }

    /// Tells the guard how long a sweep took beside what it was charged.
    fn sweep_is_over(&mut self) {
        let sweep = std::mem::take(&mut self.sweep);
        let Some(costs) = self.rules.timings.costs.as_ref().filter(|_| sweep.reads > 0) else {
            return;
        };
        let charged = costs.sweep(sweep.reads, sweep.follows, sweep.transfer);
        self.guard.swept(charged, sweep.took);
        if self.rules.guarded && self.timings.slowdown != self.guard.slowdown() {
            // The timings are shared and copied only here: most runs never slow down.
            std::sync::Arc::make_mut(&mut self.timings).slowdown = self.guard.slowdown();
        }
    }
}
