//! How many streams of one title a policy lets in: the audience comes, the disk reads, in books
//! and slots only.
//!
//! ```text
//!   each slot, counted in reads:  read what is booked, earliest due first, minRead of it, while a
//!                                 buffer is free; then `arrivals` viewers ask, until one is refused
//!   or in time:                   they ask first; then sweep after sweep as the plan says, each
//!                                 for as long as it takes at most; broken off for who comes in
//!   in the end:                   let go of the buffers whose time is up
//! ```
//!
//! The house is what it is when it has filled up. A policy that charges more than a sweep takes lets
//! one more in whenever the disk has got ahead by enough; on what was read ahead of titles that end,
//! more could be in for a while than the disk can transfer for. That is not counted.
//!
//! The rules are those of the engine, on a disk that does what it promised and nothing more; there
//! are no players, no seeks and no sharing of what is in memory. A planner asks it; it decides
//! nothing.

use crate::admission::{PolicyKind, Resource, Supply, Verdict};
use crate::books::DiskBooks;
use crate::demand::{Curve, Demand, PieceDue, Timing};
use crate::facts::Facts;
use crate::windows::{Next, Plan};
use disk::Costs;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::time::Duration;
use units::{Moment, SlotIndex};

/// What is rehearsed.
#[derive(Clone, Copy, Debug)]
pub struct Rehearsal<'a> {
    /// Who decides.
    pub policy: PolicyKind,
    /// Reads the disk completes in any slot.
    pub min_read: u32,
    /// Bytes of the largest read.
    pub read_size: u64,
    /// Bytes of buffers.
    pub memory: u64,
    /// What else is known of the disk.
    pub facts: &'a Facts,
    /// The scheduling period; not zero.
    pub slot: Duration,
    /// From admission until a stream's first piece is in memory.
    pub startup: Duration,
    /// The tracks that each viewer takes.
    pub tracks: &'a [Curve<'a>],
    /// Of each track, what its disk transfers for a piece, in ns, by where the viewer's copy lies:
    /// the first viewer has the first place, and after the last the first comes again. Empty where
    /// disk time is not counted. Where that is too short for pieces to go on where another ends, none
    /// does, whatever the track says.
    pub places: &'a [Vec<[u32; 1]>],
    /// Memory beside the schedule for each viewer: [`sending_reserve`](crate::sending_reserve).
    pub reserve: u64,
    /// Viewers that ask in each slot.
    pub arrivals: u32,
    /// The house is full when nobody came in for so many slots.
    pub patience: u64,
    /// And after so many slots, whoever could still come in.
    pub filling: u64,
}

/// How it went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rehearsed {
    /// The most streams that were in at once. (Viewers; each may take several tracks.)
    pub streams: u64,
    /// What was short when the last one was refused; `None` if nobody was.
    pub short_of: Option<Resource>,
    /// The most bytes of buffers in use, reserves included.
    pub memory: u64,
    /// Reads done after their slot: zero for a policy that guarantees.
    pub late: u64,
}

impl Rehearsal<'_> {
    /// Runs until the house is full, or the first viewer has seen all.
    pub fn run(&self) -> Rehearsed {
        let mut stage = Stage::new(self);
        if self.tracks.iter().all(Curve::is_empty) || self.slot.is_zero() {
            return stage.result;
        }
        let by_time = self.policy.plans(self.facts);
        let (mut slot, mut last_came) = (SlotIndex(0), SlotIndex(0));
        loop {
            stage.books.advance(slot);
            if !by_time {
                stage.read(slot);
            }
            if stage.welcome(slot) {
                last_came = slot;
            }
            if by_time {
                stage.sweep(slot);
            }
            stage.let_go(slot);
            let full = slot.0 - last_came.0 >= self.patience || slot.0 >= self.filling;
            if full || stage.first_ended {
                return stage.result;
            }
            slot = slot.next();
        }
    }
}

struct Stage<'a> {
    rehearsal: &'a Rehearsal<'a>,
    /// What the run keeps to where time is counted, and what the next decision proposes.
    plan: Plan,
    proposal: Plan,
    /// When the disk has done what it was given, in time.
    free: Moment,
    /// What it goes on with then, unless somebody comes in.
    under_way: Option<Sweep>,
    books: DiskBooks,
    /// Each track in play: its pieces to come.
    playing: Vec<Box<dyn Iterator<Item = PieceDue> + 'a>>,
    /// The next piece of each, earliest due first.
    next: BinaryHeap<Reverse<(SlotIndex, usize)>>,
    pieces: Vec<Option<PieceDue>>,
    /// Buffers by the slot at whose end they are let go.
    held: BTreeMap<SlotIndex, Vec<PieceDue>>,
    demand: Demand,
    first_ended: bool,
    result: Rehearsed,
}

impl<'a> Stage<'a> {
    fn new(rehearsal: &'a Rehearsal<'a>) -> Self {
        Self {
            rehearsal,
            plan: Plan::default(),
            proposal: Plan::default(),
            free: Moment::ZERO,
            under_way: None,
            books: DiskBooks::default(),
            playing: Vec::new(),
            next: BinaryHeap::new(),
            pieces: Vec::new(),
            held: BTreeMap::new(),
            demand: Demand::default(),
            first_ended: false,
            result: Rehearsed::default(),
        }
    }

    fn supply(&self, free_at: Moment) -> Supply<'a> {
        let Rehearsal { min_read, read_size, memory, facts, slot, .. } = *self.rehearsal;
        Supply { min_read, read_size, memory, slot, free_at, facts }
    }

    /// One slot's reads.
    fn read(&mut self, slot: SlotIndex) {
        for _ in 0..self.rehearsal.min_read {
            let Some((_, piece)) = self.take_next(slot, SlotIndex(u64::MAX)) else { break };
            self.result.late += u64::from(piece.due < slot);
        }
    }

    /// What of sweeps is read in this slot.
    fn sweep(&mut self, slot: SlotIndex) {
        let (begin, end) =
            (slot.start(self.rehearsal.slot), slot.next().start(self.rehearsal.slot));
        let Some(costs) = &self.rehearsal.facts.costs else { return };
        self.free = self.free.max(begin);
        while self.free < end {
            let mut sweep = match self.under_way.take() {
                Some(sweep) => sweep,
                None => match self.plan.next(&self.books, &self.supply(self.free)) {
                    Next::Batch { through } => Sweep::begins(self.free, through),
                    _ => return,
                },
            };
            match self.take_next(slot, sweep.through) {
                Some((track, piece)) => {
                    sweep.takes_up(track, &piece);
                    let takes = costs.sweep(sweep.reads, sweep.follows, sweep.transfer);
                    self.free = sweep.begun + Duration::from_nanos(takes);
                    self.under_way = Some(sweep);
                }
                // No buffer was free.
                None if sweep.reads == 0 => return,
                None => self.sweep_ends(&sweep),
            }
        }
    }

    fn sweep_ends(&mut self, sweep: &Sweep) {
        if self.free > sweep.first.next().start(self.rehearsal.slot) {
            self.result.late += sweep.reads;
        }
    }

    /// Takes the most urgent read up, if it is due by `through` and a buffer is free: whose it is.
    fn take_next(&mut self, slot: SlotIndex, through: SlotIndex) -> Option<(usize, PieceDue)> {
        let Reverse((_, track)) = self.next.peek().copied().filter(|next| next.0.0 <= through)?;
        let piece = self.pieces[track].expect("a track in the queue has a piece");
        let used = self.books.held() + self.books.reserved() + u64::from(piece.len);
        if used > self.rehearsal.memory {
            return None;
        }
        self.next.pop();
        self.books.take_up(piece);
        self.result.memory = self.result.memory.max(used);
        self.held.entry(piece.release.max(slot)).or_default().push(piece);
        self.go_on(track);
        Some((track, piece))
    }

    /// Lets viewers in until one is refused; whether any came in.
    fn welcome(&mut self, slot: SlotIndex) -> bool {
        let rehearsal = self.rehearsal;
        let origin = slot.start(rehearsal.slot);
        let timing = Timing {
            origin,
            startup: rehearsal.startup,
            from_ms: 0,
            kept_from_ms: 0,
            slot: rehearsal.slot,
            early: 0,
        };
        let policy = rehearsal.policy.policy();
        let before = self.result.streams;
        for _ in 0..rehearsal.arrivals {
            self.demand.begin(slot);
            self.demand.reserve = rehearsal.reserve;
            for track in 0..rehearsal.tracks.len() {
                let curve = self.curve(track);
                self.demand.add_track(timing.pieces(curve, 0));
            }
            let supply = self.supply(self.free.max(origin));
            match policy.verdict(&self.books, &supply, &self.demand, &mut self.proposal) {
                Verdict::Admit { .. } => self.seat(timing),
                Verdict::Refuse(shortage) => {
                    self.result.short_of = Some(shortage.resource);
                    break;
                }
            }
        }
        self.result.streams > before
    }

    /// The next viewer's copy of a track.
    fn curve(&self, track: usize) -> Curve<'a> {
        let curve = self.rehearsal.tracks[track];
        let places = self.rehearsal.places.get(track).map_or(&[][..], Vec::as_slice);
        let viewer = usize::try_from(self.result.streams).unwrap_or(0);
        let shortest = self.rehearsal.facts.costs.as_ref().and_then(Costs::shortest_following);
        let long = |nanos: u32| shortest.is_some_and(|shortest| u64::from(nanos) >= shortest);
        match places.get(viewer % places.len().max(1)) {
            Some(transfer) if long(transfer[0]) => Curve { transfer, ..curve },
            Some(transfer) => Curve { transfer, followed: &[], ..curve },
            None => curve,
        }
    }

    fn seat(&mut self, timing: Timing) {
        if let Some(sweep) = self.under_way.take() {
            self.sweep_ends(&sweep);
        }
        std::mem::swap(&mut self.plan, &mut self.proposal);
        self.books.book_demand(&self.demand);
        self.books.book_summary(self.demand.summary());
        self.books.reserve(self.rehearsal.reserve);
        for track in 0..self.rehearsal.tracks.len() {
            self.playing.push(Box::new(timing.pieces(self.curve(track), 0)));
            self.pieces.push(None);
            self.go_on(self.playing.len() - 1);
        }
        self.result.streams += 1;
    }

    fn go_on(&mut self, track: usize) {
        self.pieces[track] = self.playing[track].next();
        match self.pieces[track] {
            Some(piece) => self.next.push(Reverse((piece.due, track))),
            None => self.first_ended = true,
        }
    }

    fn let_go(&mut self, slot: SlotIndex) {
        while let Some(entry) = self.held.first_entry().filter(|entry| *entry.key() <= slot) {
            for piece in entry.remove() {
                self.books.let_go(piece);
            }
        }
    }
}

/// A sweep, as far as it has come. What has been read of it takes at most what a sweep of just that
/// would take.
struct Sweep {
    begun: Moment,
    through: SlotIndex,
    /// The earliest that any of its reads is due.
    first: SlotIndex,
    reads: u64,
    follows: u64,
    transfer: u64,
    /// Tracks whose next piece goes on where the last one taken up ends.
    goes_on: BTreeSet<usize>,
}

impl Sweep {
    fn begins(begun: Moment, through: SlotIndex) -> Self {
        let goes_on = BTreeSet::new();
        Self { begun, through, first: through, reads: 0, follows: 0, transfer: 0, goes_on }
    }

    fn takes_up(&mut self, track: usize, piece: &PieceDue) {
        self.first = self.first.min(piece.due);
        self.reads += 1;
        self.transfer += u64::from(piece.transfer);
        self.follows += u64::from(self.goes_on.remove(&track));
        if piece.followed_after.is_some() {
            self.goes_on.insert(track);
        }
    }
}

#[cfg(test)]
mod tests;
