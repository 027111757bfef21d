//! A batch: the reads that a disk makes in one pass of the head, chosen by deadline, issued by
//! place, and what they are charged.
//!
//! ```text
//!   ReadSource::most_urgent ─▶ within the limit? ─▶ fits into memory? ─▶ start_read ─▶ Batch
//!                                  │ no                 │ no
//!                                  └──── closed ◀───────┘
//! ```
//!
//! The first read that does not fit closes the batch. If a later, smaller read were taken instead,
//! memory would fill with what is not urgent and the urgent read would be late (priority
//! inversion).

use crate::disk_timings::DiskTimings;
use crate::piece::PieceDue;
use disk::Costs;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use units::SlotIndex;

/// What ends a batch, besides memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchLimit {
    /// This number of reads: for a disk that is counted in reads per slot.
    Reads(u32),
    /// This number of reads, and all that are due in the slot of the last one for its stream: for a
    /// server that reads small blocks and does not come back for the rest of them. Neighbouring
    /// blocks are read in one visit, whichever stream they are for.
    WholeVisits(u32),
    /// Every read that is due by the end of this slot: for a disk whose time is counted.
    Through(SlotIndex),
}

/// The next read of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NextRead<S> {
    /// The stream.
    pub stream: S,
    /// The piece that is read.
    pub piece: PieceDue,
    /// Byte offset on the device.
    pub offset: u64,
}

/// Where a dispatcher takes reads from: streams, and the memory that is free for them.
pub trait ReadSource {
    /// Names a stream.
    type Stream: Copy + Ord;
    /// Names a read that was started.
    type Read;

    /// The read with the earliest deadline, if any stream has one to make.
    fn most_urgent(&mut self) -> Option<NextRead<Self::Stream>>;

    /// Bytes of buffers that are free.
    fn room(&self) -> u64;

    /// Takes a buffer for `next` and goes on to the read after it. `None`: there is no buffer after
    /// all.
    fn start_read(&mut self, next: &NextRead<Self::Stream>) -> Option<Self::Read>;
}

/// A read that was chosen: it has a buffer, and the device has not been given it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChosenRead<S, R> {
    /// The stream it is made for.
    pub stream: S,
    /// The piece that is read. Its slots are those in which it was chosen; its stream may have
    /// moved since.
    pub piece: PieceDue,
    /// Byte offset on the device.
    pub offset: u64,
    /// The read.
    pub read: R,
}

/// What the reads of a sweep are charged by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SweepCharge {
    /// Number of reads.
    pub reads: u64,
    /// Reads that go on where the read before them ended: they need no positioning.
    pub sequential: u64,
    /// Nanoseconds of transfer.
    pub transfer: u64,
}

impl SweepCharge {
    /// Nanoseconds that the sweep takes at most, by the disk's costs.
    pub fn nanos(self, costs: &Costs) -> u64 {
        costs.sweep(self.reads, self.sequential, self.transfer)
    }

    /// Nanoseconds that the sweep takes at most on a disk that is as slow as it lately was; zero
    /// where the disk's costs are not known.
    pub fn slowed_nanos(self, timings: &DiskTimings) -> u64 {
        let Self { reads, sequential, transfer } = self;
        let slowed = |costs| timings.charge_visits(costs, reads, sequential, transfer);
        timings.costs.as_ref().map_or(0, slowed)
    }

    /// [`SweepCharge::slowed_nanos`] of a sweep that follows another without a pause.
    pub(crate) fn without_pause(self, timings: &DiskTimings) -> u64 {
        let Self { reads, sequential, transfer } = self;
        let takes = |costs: &Costs| costs.sweep_without_pause(reads, sequential, transfer);
        timings.costs.as_ref().map_or(0, |costs| timings.slowed(takes(costs)))
    }
}

/// Reads chosen for one pass over a disk, each offered in order of deadline.
#[derive(Clone, Debug)]
pub struct Batch<S, R> {
    limit: BatchLimit,
    closed: bool,
    reads: Vec<PlacedRead<S, R>>,
    last: Option<(SlotIndex, S)>,
    visits: u32,
    // Of each stream the visit of its last read, and where that read ends.
    ends: BTreeMap<S, (Visit, u64)>,
    // Of streams whose next piece goes on where the last one ends, the number of that piece.
    follows: BTreeMap<S, u32>,
    charge: SweepCharge,
}

// Reads of one stream that lie one behind the other. They stay in that order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Visit {
    begins: u64,
    // In order of choice: of visits to one place the more urgent is first.
    number: u32,
}

#[derive(Clone, Debug)]
struct PlacedRead<S, R> {
    visit: Visit,
    chosen: ChosenRead<S, R>,
}

impl<S: Copy + Ord, R> Batch<S, R> {
    /// An empty batch.
    pub fn new(limit: BatchLimit) -> Self {
        Self {
            limit,
            closed: false,
            reads: Vec::new(),
            last: None,
            visits: 0,
            ends: BTreeMap::new(),
            follows: BTreeMap::new(),
            charge: SweepCharge::default(),
        }
    }

    /// Takes reads from `source` until the batch is closed.
    pub fn fill(mut self, source: &mut impl ReadSource<Stream = S, Read = R>) -> Self {
        while self.take_next(source) {}
        self
    }

    /// Takes one read more. False: the batch is closed.
    pub fn take_next(&mut self, source: &mut impl ReadSource<Stream = S, Read = R>) -> bool {
        self.closed = self.closed || !self.try_next(source);
        !self.closed
    }

    fn try_next(&mut self, source: &mut impl ReadSource<Stream = S, Read = R>) -> bool {
        let Some(next) = source.most_urgent() else { return false };
        let taken = self.charge.reads;
        let within = match self.limit {
            BatchLimit::Reads(most) => taken < u64::from(most),
            BatchLimit::WholeVisits(most) => {
                taken < u64::from(most) || self.last == Some((next.piece.due, next.stream))
            }
            BatchLimit::Through(slot) => next.piece.due <= slot,
        };
        // The most urgent read ends the batch if it does not fit. A less urgent one that fits would
        // take the memory that it needs (priority inversion).
        if !within || u64::from(next.piece.len) > source.room() {
            return false;
        }
        let Some(read) = source.start_read(&next) else { return false };
        self.add(next, read);
        true
    }

    fn add(&mut self, next: NextRead<S>, read: R) {
        let NextRead { stream, piece, offset } = next;
        self.charge.reads += 1;
        self.charge.transfer += u64::from(piece.transfer);
        // A piece between the two may have been found in memory: then the head does not go on.
        let follows = self.follows.remove(&stream) == Some(piece.piece);
        self.charge.sequential += u64::from(follows);
        if piece.followed_after.is_some() {
            self.follows.insert(stream, piece.piece + 1);
        }
        let visit = self.visit_of(stream, offset, u64::from(piece.len));
        self.last = Some((piece.due, stream));
        self.reads.push(PlacedRead { visit, chosen: ChosenRead { stream, piece, offset, read } });
    }

    fn visit_of(&mut self, stream: S, offset: u64, len: u64) -> Visit {
        let new = Visit { begins: offset, number: self.visits };
        // Where a disk is counted in reads each of them is charged as a visit of its own.
        if matches!(self.limit, BatchLimit::Through(_)) {
            let end = offset + len;
            match self.ends.get_mut(&stream) {
                Some((visit, before)) if *before == offset => {
                    *before = end;
                    return *visit;
                }
                _ => self.ends.insert(stream, (new, end)),
            };
        }
        self.visits += 1;
        new
    }

    /// The reads in order of choice: by deadline.
    pub fn reads(&self) -> impl ExactSizeIterator<Item = &ChosenRead<S, R>> {
        self.reads.iter().map(|placed| &placed.chosen)
    }

    /// What its reads are charged by.
    pub fn charge(&self) -> SweepCharge {
        self.charge
    }

    /// The earliest slot that any of its reads is due in; `None` without reads.
    pub fn first_due(&self) -> Option<SlotIndex> {
        self.reads().next().map(|first| first.piece.due)
    }

    /// The device offsets of the visits that are first and last in order of place.
    pub fn span(&self) -> Option<(u64, u64)> {
        let begins = || self.reads.iter().map(|placed| placed.visit.begins);
        begins().min().zip(begins().max())
    }

    /// The reads in order of issue: visit after visit in `direction`. The reads of a visit stay in
    /// the order in which they lie on the device, whichever way the head goes.
    pub fn in_order(mut self, direction: ScanDirection) -> impl Iterator<Item = ChosenRead<S, R>> {
        if matches!(self.limit, BatchLimit::WholeVisits(_)) {
            self.join_neighbours();
        }
        // The sort is stable and all reads of a visit have one key: they stay in order of choice.
        match direction {
            ScanDirection::Outward => self.reads.sort_by_key(|placed| placed.visit),
            ScanDirection::Inward => self.reads.sort_by_key(|placed| Reverse(placed.visit)),
        }
        self.reads.into_iter().map(|placed| placed.chosen)
    }
}

impl<S, R> Batch<S, R> {
    // Makes one visit of reads that lie one behind the other, also if they are for several streams
    // or are due in the opposite order.
    fn join_neighbours(&mut self) {
        self.reads.sort_by_key(|placed| placed.visit);
        let mut run: Option<(Visit, u64)> = None;
        for placed in &mut self.reads {
            let begins = placed.visit.begins;
            let visit = match run {
                Some((visit, end)) if end == begins => visit,
                _ => placed.visit,
            };
            run = Some((visit, begins + u64::from(placed.chosen.piece.len)));
            placed.visit = visit;
        }
    }
}

/// The direction in which the head passes over the reads of a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ScanDirection {
    /// Low offsets first.
    #[default]
    Outward,
    /// High offsets first.
    Inward,
}

impl ScanDirection {
    /// The direction that begins with the end of a batch that is nearer to the head. `head` is the
    /// device offset where the last read issued ends: what [`Costs`] is about.
    pub fn from_nearer_end(costs: &Costs, head: u64, lowest: u64, highest: u64) -> Self {
        let distance = |offset: u64| (costs.place(offset) - costs.place(head)).abs();
        if distance(highest) < distance(lowest) { Self::Inward } else { Self::Outward }
    }

    /// The other direction: the next batch starts where this one ended, without a seek across the
    /// disk.
    pub fn turned(self) -> Self {
        match self {
            Self::Outward => Self::Inward,
            Self::Inward => Self::Outward,
        }
    }
}
