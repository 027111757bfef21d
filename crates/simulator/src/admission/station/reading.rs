//! What is read next, in which order, and what comes of it.
//!
//! ```text
//!   queue, earliest due first ──▶ batch: a window of the plan, or minRead reads; in order of place
//!                                   │ one at a time
//!                                   ▼
//!                                flight ──▶ held until shown; late if done after its deadline
//! ```

use super::super::requests::Read;
use super::watching::State;
use super::{Station, Turns};
use scheduler::Next;
use std::collections::BTreeMap;
use std::time::Duration;
use units::{Moment, SlotIndex};

/// A read in the device.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flight {
    pub(super) viewer: usize,
    pub(super) read: usize,
    pub(super) begun: Moment,
    pub(super) finish: Moment,
}

/// The sweep under way, for the guard: what it is charged, and how long it has taken.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sweep {
    reads: u64,
    /// Of them, those that went on where the one before ended.
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

impl Station<'_> {
    pub(super) fn begin_next(&mut self) {
        if self.batch.is_empty() && !self.waits {
            self.sweep_is_over();
            if self.rules.windows { self.choose_window() } else { self.choose_reads() }
        }
        let Some((viewer, read)) = self.batch.pop_front() else { return };
        let piece = self.piece(viewer, read);
        self.books.take_up(piece);
        self.tally.buffers = self.tally.buffers.max(self.books.held());
        let turn = match self.rules.turns {
            Turns::Random => self.chance.part(),
            Turns::Worst => 1.0,
        };
        let Read { offset, len, .. } = self.viewers[viewer].wanted.reads[read];
        let service = self.head.serve_turned(self.now, offset, u64::from(len), turn);
        self.arm = offset + u64::from(len);
        self.viewers[viewer].state[read] = State::Reading;
        let finish = self.rules.finish(self.now, service.finish);
        self.flight = Some(Flight { viewer, read, begun: self.now, finish });
    }

    /// As the plan says.
    fn choose_window(&mut self) {
        match self.plan.next(&self.books, &self.supply()) {
            Next::Batch { through } => self.choose(|_, due, _| due <= through),
            // Asked again when a buffer is let go, which happens at the ends of slots.
            Next::Wait { .. } => self.waits = true,
            Next::Nothing => {}
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
            let wanted = self.viewers[viewer].wanted.reads[read];
            if !goes_on(chosen.len(), due, last == Some((due, viewer))) {
                break;
            }
            last = Some((due, viewer));
            if u64::from(wanted.len) > room {
                self.waits = chosen.is_empty();
                break;
            }
            room -= u64::from(wanted.len);
            self.dequeue(viewer);
            self.viewers[viewer].state[read] = State::Chosen;
            chosen.push((wanted.offset, viewer, read));
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
            let end = offset + u64::from(self.viewers[viewer].wanted.reads[read].len);
            let goes_on = ends.remove(&(viewer, offset));
            let visit = goes_on.unwrap_or(visits.len());
            if goes_on.is_none() {
                visits.push(Visit { offset, reads: Vec::new() });
            }
            visits[visit].reads.push((viewer, read));
            ends.insert((viewer, end), visit);
        }
        visits.sort_by_key(|visit| (visit.offset, visit.reads[0]));
        visits
    }

    /// Neighbouring blocks, whoever they are for.
    fn runs(&self, mut chosen: Vec<(u64, usize, usize)>) -> Vec<Visit> {
        let end = |&(offset, viewer, read): &(u64, usize, usize)| {
            offset + u64::from(self.viewers[viewer].wanted.reads[read].len)
        };
        chosen.sort_unstable();
        let visit = |run: &[(u64, usize, usize)]| Visit {
            offset: run[0].0,
            reads: run.iter().map(|(_, viewer, read)| (*viewer, *read)).collect(),
        };
        chosen.chunk_by(|earlier, later| end(earlier) == later.0).map(visit).collect()
    }

    fn far_end_is_nearer(&self, visits: &[Visit]) -> bool {
        let Some(costs) = &self.rules.facts.costs else { return false };
        let (Some(near), Some(far)) = (visits.first(), visits.last()) else { return false };
        let arm = costs.place(self.arm);
        (costs.place(far.offset) - arm).abs() < (costs.place(near.offset) - arm).abs()
    }

    pub(super) fn complete(&mut self) {
        let Some(flight) = self.flight.take() else { return };
        let piece = self.piece(flight.viewer, flight.read);
        let deadline = piece.due.next().start(self.rules.slot);
        let took = flight.finish.since(flight.begun);
        self.tally.reads += 1;
        self.busy.reads();
        self.tally.bytes += u64::from(piece.len);
        self.tally.busy += took;
        self.tally.transfer += Duration::from_nanos(piece.transfer.into());
        self.sweep.reads += 1;
        let Read { offset, len, .. } = self.viewers[flight.viewer].wanted.reads[flight.read];
        self.sweep.follows += u64::from(self.sweep.next == Some((flight.viewer, offset)));
        let end = offset + u64::from(len);
        self.sweep.next = piece.followed_after.map(|_| (flight.viewer, end));
        self.sweep.transfer += u64::from(piece.transfer);
        self.sweep.took += u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        let watching = &mut self.viewers[flight.viewer];
        if watching.gone {
            self.books.let_go(piece);
            watching.state[flight.read] = State::Done;
            self.waits = false;
            return;
        }
        if self.now > deadline {
            self.tally.late += 1;
            self.tally.latest = self.tally.latest.max(self.now.since(deadline));
        }
        let until = piece.release.max(self.books.current());
        watching.state[flight.read] = State::Held(until);
        self.books.keep_until(piece, until);
        self.held.entry(until).or_default().push((flight.viewer, flight.read));
    }

    /// What is chosen and not begun is chosen anew.
    pub(super) fn drop_batch(&mut self) {
        for (viewer, read) in std::mem::take(&mut self.batch) {
            self.dequeue(viewer);
            let watching = &mut self.viewers[viewer];
            watching.state[read] = State::Unread;
            watching.next = watching.next.min(read);
            self.enqueue(viewer);
        }
        self.waits = false;
    }

    /// Tells the guard how long a sweep took beside what it was charged.
    fn sweep_is_over(&mut self) {
        let sweep = std::mem::take(&mut self.sweep);
        let Some(costs) = self.rules.facts.costs.as_ref().filter(|_| sweep.reads > 0) else {
            return;
        };
        let charged = costs.sweep(sweep.reads, sweep.follows, sweep.transfer);
        self.guard.swept(charged, sweep.took);
        if self.rules.guarded && self.facts.behind != self.guard.behind() {
            std::sync::Arc::make_mut(&mut self.facts).behind = self.guard.behind();
        }
    }
}
