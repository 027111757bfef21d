//! How many streams of one title a policy lets in: the audience comes, the disk reads, in books
//! and slots only.
//!
//! ```text
//!   each slot, counted in reads:  read what is booked, earliest due first, minRead of it, while a
//!                                 buffer is free; then `arrivals` viewers ask, until one is refused
//!   or in time:                   they ask first; then sweep after sweep as the plan says, each
//!                                 for as long as it takes at most
//!   in the end:                   let go of the buffers whose time is up
//! ```
//!
//! The rules are those of the engine, on a disk that does what it promised and nothing more; there
//! are no players, no seeks and no sharing of what is in memory. A planner asks it; it decides
//! nothing.

use crate::admission::{PolicyKind, Resource, Supply, Verdict};
use crate::books::DiskBooks;
use crate::demand::{Curve, Demand, PieceDue, Timing};
use crate::facts::Facts;
use crate::windows::{Next, Plan};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
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
    /// disk time is not counted.
    pub places: &'a [Vec<[u32; 1]>],
    /// Memory beside the schedule for each viewer: [`sending_reserve`](crate::sending_reserve).
    pub reserve: u64,
    /// Viewers that ask in each slot.
    pub arrivals: u32,
    /// The house is full when nobody came in for so many slots.
    pub patience: u64,
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
            if slot.0 - last_came.0 >= self.patience || stage.first_ended {
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
            let Some(due) = self.take_next(slot, SlotIndex(u64::MAX)) else { break };
            self.result.late += u64::from(due.0 < slot);
        }
    }

    /// Sweeps that begin in this slot.
    fn sweep(&mut self, slot: SlotIndex) {
        let (begin, end) =
            (slot.start(self.rehearsal.slot), slot.next().start(self.rehearsal.slot));
        self.free = self.free.max(begin);
        while self.free < end {
            let Next::Batch { through } = self.plan.next(&self.books, &self.supply(self.free))
            else {
                break;
            };
            let (mut reads, mut transfer, mut first) = (0, 0, None);
            while let Some((due, nanos)) = self.take_next(slot, through) {
                (reads, transfer) = (reads + 1, transfer + u64::from(nanos));
                first.get_or_insert(due);
            }
            let (Some(first), Some(costs)) = (first, &self.rehearsal.facts.costs) else { break };
            self.free = self.free + Duration::from_nanos(costs.batch(reads, transfer));
            if self.free > first.next().start(self.rehearsal.slot) {
                self.result.late += reads;
            }
        }
    }

    /// Takes the most urgent read up, if it is due by `through` and a buffer is free: when it is
    /// due, and its transfer.
    fn take_next(&mut self, slot: SlotIndex, through: SlotIndex) -> Option<(SlotIndex, u32)> {
        let Reverse((due, track)) = self.next.peek().copied().filter(|next| next.0.0 <= through)?;
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
        Some((due, piece.transfer))
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
        match places.get(viewer % places.len().max(1)) {
            Some(transfer) => Curve { transfer, ..curve },
            None => curve,
        }
    }

    fn seat(&mut self, timing: Timing) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use disk::DiskModel;
    use units::ByteCount;

    const SLOT: Duration = Duration::from_millis(500);
    const MIB: u64 = 1 << 20;

    /// Ten minutes of one piece every `every_ms`, in bytes of which the last piece is whole.
    fn flat(every_ms: u32) -> Vec<u32> {
        (0..600_000 / every_ms).map(|i| i * every_ms).collect()
    }

    fn held(policy: PolicyKind, min_read: u32, memory: u64, due: &[u32]) -> Rehearsed {
        let curve = Curve {
            due,
            piece: 1 << 20,
            bytes: MIB * due.len() as u64,
            transfer: &[],
            followed: &[],
        };
        Rehearsal {
            policy,
            min_read,
            read_size: MIB,
            memory,
            facts: &Facts::default(),
            slot: SLOT,
            startup: SLOT * 2,
            tracks: &[curve],
            places: &[],
            reserve: 2 * MIB,
            arrivals: 1,
            patience: 60,
        }
        .run()
    }

    /// One read in 2 s each, 5 in 500 ms in all: 20 streams, to the last read.
    #[test]
    fn streams_of_constant_rate_fill_the_disk() {
        for (policy, streams) in [
            (PolicyKind::VbrSim, 20),
            (PolicyKind::InstantaneousMaximum, 18), // everybody begins with two reads
            (PolicyKind::SimpleMaximum, 5),
        ] {
            let full = held(policy, 5, 1 << 40, &flat(2000));
            assert_eq!((full.streams, full.late), (streams, 0), "{policy:?}");
            assert_eq!(full.short_of, Some(Resource::Disk));
        }
    }

    #[test]
    fn with_little_memory_memory_is_short() {
        let full = held(PolicyKind::VbrSim, 5, 40 * MIB, &flat(2000));
        assert_eq!(full.short_of, Some(Resource::Memory));
        assert!((5..12).contains(&full.streams), "{full:?}");
        assert!(full.memory <= 40 * MIB && full.late == 0, "{full:?}");
    }

    /// A title that is all peak in its second half: reading ahead carries it, the mean does not.
    #[test]
    fn a_promise_is_kept_where_the_mean_breaks_it() {
        let quiet = (0..75).map(|i| i * 4000);
        let due: Vec<u32> = quiet.chain((0..600).map(|i| 300_000 + i * 500)).collect();
        let tight = 64 * MIB;
        let kept = held(PolicyKind::VbrSim, 5, tight, &due);
        assert!(kept.streams > 0 && kept.late == 0, "{kept:?}");
        let broken = held(PolicyKind::None, 5, 1 << 40, &due);
        assert!(broken.late > 0 && broken.streams > kept.streams, "{broken:?}");
    }

    /// In its own time a disk does more than it is guaranteed to do by count, and keeps it.
    #[test]
    fn counted_in_time_more_come_in_and_nobody_is_late() {
        let model = DiskModel::preset("hdd-20tb").unwrap();
        let facts = Facts::of_model(&model, ByteCount(MIB), 4);
        let costs = facts.costs.as_ref().unwrap();
        let places: Vec<[u32; 1]> = (0..10)
            .map(|i| [u32::try_from(costs.transfer(model.capacity().0 / 11 * i, MIB)).unwrap()])
            .collect();
        let due = flat(2000);
        let curve = Curve {
            due: &due,
            piece: 1 << 20,
            bytes: MIB * due.len() as u64,
            transfer: &[],
            followed: &[],
        };
        let by = |policy, memory| {
            Rehearsal {
                policy,
                min_read: model.guaranteed_reads(ByteCount(MIB), SLOT),
                read_size: MIB,
                memory,
                facts: &facts,
                slot: SLOT,
                startup: SLOT * 2,
                tracks: &[curve],
                places: std::slice::from_ref(&places),
                reserve: 2 * MIB,
                arrivals: 2,
                patience: 60,
            }
            .run()
        };
        let (time, count) = (by(PolicyKind::TimeDomain, 1 << 40), by(PolicyKind::VbrSim, 1 << 40));
        assert_eq!((time.late, count.late), (0, 0));
        // 24 reads in a slot, and one more for the start-up time of all.
        assert!((96..=97).contains(&count.streams), "{count:?}");
        assert!(time.streams > 110, "{time:?}");
        let little = by(PolicyKind::TimeDomain, 200 * MIB);
        assert_eq!((little.late, little.short_of), (0, Some(Resource::Memory)), "{little:?}");
        assert!(little.memory <= 200 * MIB && little.streams < time.streams, "{little:?}");
    }

    #[test]
    fn nothing_to_play_and_nothing_to_play_from_are_no_streams() {
        assert_eq!(held(PolicyKind::VbrSim, 5, 1 << 40, &[]), Rehearsed::default());
        assert_eq!(held(PolicyKind::VbrSim, 0, 1 << 40, &flat(2000)).streams, 0);
    }
}
