//! Demand: when each piece of a track must be in memory, and the sums of that per slot.
//!
//! ```text
//!   due (ms of media)      0   0   0   4000  4000  8000 ...
//!   deadline (clock)       o+startup    o+max(startup, 4 s − slot)  ...
//!   due slot               the last slot that ends by the deadline
//!   let go                 HOLD_SLOTS after the *next* piece's due slot: a segment's end and the
//!                          next one's start share a piece
//! ```
//!
//! A piece is due one slot before a player that started the moment it was admitted would play it
//! (double buffering: read in one slot, sent in the next). It is deliberately ignorant of what the
//! player has asked for.

use crate::blocks::{BLOCK, Block};
use crate::books::DiskBooks;
use crate::ledger::Load;
use crate::visits::Follows;
use std::ops::{AddAssign, SubAssign};
use std::time::Duration;
use units::{Moment, SlotIndex};

/// A track as demand sees it: pieces of one size, and when each is due.
#[derive(Clone, Copy, Debug)]
pub struct Curve<'a> {
    /// Per piece, media time in milliseconds; never decreases.
    pub due: &'a [u32],
    /// Bytes of a piece; not zero.
    pub piece: u32,
    /// Bytes of the track; the last piece has what is left.
    pub bytes: u64,
    /// Per piece, nanoseconds that its disk transfers ([`disk::Costs::transfer`]); empty where disk
    /// time is not counted.
    pub transfer: &'a [u32],
    /// Per piece, whether the next one goes on where it ends, and both are long enough for their
    /// disk to take them for one visit ([`disk::Costs::shortest_following`]). Where the list is
    /// too short, it does not.
    pub followed: &'a [bool],
}

impl Curve<'_> {
    /// How many pieces there are.
    pub fn pieces(&self) -> u32 {
        let pieces = self.bytes.div_ceil(u64::from(self.piece.max(1)));
        u32::try_from(pieces).unwrap_or(u32::MAX)
    }

    /// Bytes of `piece`; zero beyond the end.
    pub fn len(&self, piece: u32) -> u32 {
        let from = u64::from(piece) * u64::from(self.piece);
        let left = self.bytes.saturating_sub(from).min(u64::from(self.piece));
        u32::try_from(left).expect("not above a piece")
    }

    /// Nanoseconds that the disk transfers for `piece`; nothing where that is not counted.
    pub fn transfer(&self, piece: u32) -> u32 {
        let i = usize::try_from(piece).unwrap_or(usize::MAX);
        self.transfer.get(i).or(self.transfer.last()).copied().unwrap_or(0)
    }

    /// Whether the next piece goes on where `piece` ends.
    pub fn is_followed(&self, piece: u32) -> bool {
        let i = usize::try_from(piece).unwrap_or(usize::MAX);
        self.followed.get(i).copied().unwrap_or(false) && piece.saturating_add(1) < self.pieces()
    }

    /// Whether the track has no bytes.
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// When `piece` is due in media time. A list that is too short goes on with its last entry.
    pub fn due(&self, piece: u32) -> u32 {
        let i = usize::try_from(piece).unwrap_or(usize::MAX);
        self.due.get(i).or(self.due.last()).copied().unwrap_or(0)
    }

    /// Whether this is a track at all: pieces of some size, due times that never decrease.
    pub fn is_sound(&self) -> bool {
        self.piece > 0 && self.due.is_sorted()
    }

    /// The first piece that is needed to play from `from_ms`: of all pieces due by then, the one
    /// before the first of the last due time (a segment starts within the piece before its own).
    pub fn first_needed(&self, from_ms: u32) -> u32 {
        let after = self.due.partition_point(|due| *due <= from_ms);
        let Some(last_due) = after.checked_sub(1).map(|i| self.due[i]) else { return 0 };
        let first = self.due.partition_point(|due| *due < last_due).saturating_sub(1);
        let pieces = self.pieces();
        u32::try_from(first).unwrap_or(u32::MAX).min(pieces.saturating_sub(1))
    }
}

/// How media time becomes the clock's time for one play-out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// When the play-out was granted.
    pub origin: Moment,
    /// From there until the first piece must be in memory.
    pub startup: Duration,
    /// Where it starts, in milliseconds of media time, at the latest: pieces are due as if here.
    pub from_ms: u32,
    /// Where it starts at the earliest: buffers are kept as if here. Not above `from_ms`.
    pub kept_from_ms: u32,
    /// The scheduling period.
    pub slot: Duration,
    /// Slots by which pieces are due before the last that would do; not more than lie between
    /// `origin` and the first deadline. Buffers are kept as if it were zero.
    pub early: u32,
}

impl Timing {
    /// When a piece due at `due_ms` of media time must be in memory.
    pub fn deadline(&self, due_ms: u32) -> Moment {
        let ahead = Duration::from_millis(u64::from(due_ms.saturating_sub(self.from_ms)));
        // Not before the first piece: a promise of a later one earlier would turn EDF round.
        let wait = ahead.saturating_sub(self.slot).max(self.startup);
        self.origin + wait.min(self.horizon())
    }

    /// The last slot that ends by the deadline, or so much earlier.
    pub fn due_slot(&self, due_ms: u32) -> SlotIndex {
        let last = SlotIndex::at(self.deadline(due_ms), self.slot).0;
        SlotIndex(last.saturating_sub(1 + u64::from(self.early)))
    }

    /// At the end of which slot the buffer of `piece` is let go if nobody came for it.
    pub fn release_slot(&self, curve: &Curve<'_>, piece: u32) -> SlotIndex {
        let next = piece.saturating_add(1).min(curve.pieces().saturating_sub(1)).max(piece);
        Self { early: 0, ..self.kept() }.due_slot(curve.due(next)) + HOLD_SLOTS
    }

    /// How many slots after `piece` the next one is due, if that goes on where it ends.
    pub fn followed_after(&self, curve: &Curve<'_>, piece: u32) -> Option<u8> {
        let due = |piece| self.due_slot(curve.due(piece));
        gap(curve, piece, due(piece), due(piece.saturating_add(1)))
    }

    // The same play-out if it starts as early as it may.
    fn kept(&self) -> Self {
        Self { from_ms: self.kept_from_ms.min(self.from_ms), ..*self }
    }

    /// All pieces from `first` on with their slots, in order. The same numbers as the methods
    /// above, without a division per piece.
    pub fn pieces<'a>(
        &self,
        curve: Curve<'a>,
        first: u32,
    ) -> impl Iterator<Item = PieceDue> + use<'a> {
        let (early, walked) = (u64::from(self.early), Self { early: 0, ..*self });
        let mut walk = SlotWalk::new(walked);
        // Usually the same walk.
        let mut kept = (walked.kept() != walked).then(|| SlotWalk::new(walked.kept()));
        let end = curve.pieces();
        let mut next_due = walk.slot(curve.due(first));
        let mut left = curve.bytes.saturating_sub(u64::from(first) * u64::from(curve.piece));
        let one_transfer = (curve.transfer.len() == 1).then(|| curve.transfer(0));
        // What has a due time of its own after it, and what a list that is too short says nothing
        // of, or comes last.
        let listed = curve.due.get(usize::try_from(first).unwrap_or(usize::MAX)..);
        let mut nexts = listed.unwrap_or(&[]).iter().skip(1);
        let mut last_ms = curve.due(first);
        (first..end).map(move |piece| {
            last_ms = nexts.next().copied().unwrap_or(last_ms);
            let next_ms = if piece + 1 < end { last_ms } else { curve.due(piece) };
            let due = std::mem::replace(&mut next_due, walk.slot(next_ms));
            let next = kept.as_mut().map_or(next_due, |kept| kept.slot(next_ms));
            let len = u32::try_from(left).unwrap_or(u32::MAX).min(curve.piece);
            left -= u64::from(len);
            let transfer = one_transfer.unwrap_or_else(|| curve.transfer(piece));
            let early = |slot: SlotIndex| SlotIndex(slot.0.saturating_sub(early));
            let followed_after = gap(&curve, piece, early(due), early(next_due));
            let (due, release) = (early(due), next + HOLD_SLOTS);
            PieceDue { piece, due, release, len, transfer, followed_after }
        })
    }

    fn horizon(&self) -> Duration {
        self.slot.saturating_mul(MAX_HORIZON_SLOTS)
    }
}

/// One piece of a demand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PieceDue {
    /// Which.
    pub piece: u32,
    /// It must be in memory by the end of this slot.
    pub due: SlotIndex,
    /// Its buffer is let go at the end of this slot.
    pub release: SlotIndex,
    /// Its bytes.
    pub len: u32,
    /// Nanoseconds that its disk transfers for it, where that is counted.
    pub transfer: u32,
    /// Slots until the next piece is due, if it goes on where this one ends.
    pub followed_after: Option<u8>,
}

impl PieceDue {
    /// Where the piece that goes on where this one ends is counted, and as what.
    #[inline]
    pub(crate) fn follower(&self) -> Option<(SlotIndex, Follows)> {
        self.followed_after.map(|slots| (self.due + u64::from(slots), Follows::one(slots)))
    }
}

// Slots from a piece to the one that goes on where it ends, if that is not too far off to matter.
fn gap(curve: &Curve<'_>, piece: u32, due: SlotIndex, next_due: SlotIndex) -> Option<u8> {
    let followed = curve.is_followed(piece);
    followed.then(|| u8::try_from(next_due.0.saturating_sub(due.0)).ok()).flatten()
}

// Finds the slots of a never decreasing sequence of due times by walking forward. The same numbers
// as `Timing`'s methods, in plain nanoseconds: an hour's title has thousands of pieces, and whoever
// decides on it asks for all of them several times.
struct SlotWalk {
    from_ms: u32,
    origin: u64,
    slot_nanos: u64,
    startup: u64,
    horizon: u64,
    slot: SlotIndex,
    next_start: u64,
}

impl SlotWalk {
    fn new(timing: Timing) -> Self {
        let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let slot_nanos = nanos(timing.slot);
        let slot = timing.due_slot(timing.from_ms);
        Self {
            from_ms: timing.from_ms,
            origin: timing.origin.0,
            slot_nanos,
            startup: nanos(timing.startup),
            horizon: nanos(timing.horizon()),
            slot,
            next_start: (slot.0 + 2).saturating_mul(slot_nanos),
        }
    }

    fn deadline(&self, due_ms: u32) -> u64 {
        let ahead = u64::from(due_ms.saturating_sub(self.from_ms)) * 1_000_000;
        let wait = ahead.saturating_sub(self.slot_nanos).max(self.startup);
        self.origin.saturating_add(wait.min(self.horizon))
    }

    fn slot(&mut self, due_ms: u32) -> SlotIndex {
        let deadline = self.deadline(due_ms);
        if deadline >= self.next_start && self.next_start != u64::MAX {
            let slots = (deadline - self.next_start) / self.slot_nanos + 1;
            self.slot = self.slot + slots;
            self.next_start = self.next_start.saturating_add(slots.saturating_mul(self.slot_nanos));
        }
        self.slot
    }
}

/// A candidate's demand: sums per slot from its first slot on. Kept and refilled by its owner, so
/// that a decision allocates nothing once it has grown.
#[derive(Clone, Debug, Default)]
pub struct Demand {
    current: SlotIndex,
    first: SlotIndex,
    slots: Vec<Load>,
    // Their reads by blocks of slots, before any shift.
    blocks: Vec<Block>,
    shifted: u64,
    reads: u64,
    bytes: u64,
    held: u64,
    summary: Summary,
    /// Memory that the candidate takes beside the schedule: what its sockets may hold.
    pub reserve: u64,
}

/// What the policies see that look at nothing else.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// The most reads due in any one slot.
    pub peak: u64,
    /// Mean reads per slot until the last is due, in [`MEAN_UNIT`]ths, rounded up.
    pub mean: u64,
    /// Mean bytes per slot until the last is due, rounded up.
    pub rate: u64,
    /// Streams.
    pub streams: u64,
}

impl AddAssign for Summary {
    fn add_assign(&mut self, other: Self) {
        self.peak += other.peak;
        self.mean += other.mean;
        self.rate += other.rate;
        self.streams += other.streams;
    }
}

/// Panics when more is taken off than was put on, as the books do.
impl SubAssign for Summary {
    fn sub_assign(&mut self, other: Self) {
        let take = |from: u64, n: u64| from.checked_sub(n).expect("the books balance");
        self.peak = take(self.peak, other.peak);
        self.mean = take(self.mean, other.mean);
        self.rate = take(self.rate, other.rate);
        self.streams = take(self.streams, other.streams);
    }
}

impl Demand {
    /// Begins an empty demand, decided on in slot `current`.
    pub fn begin(&mut self, current: SlotIndex) {
        self.slots.clear();
        self.blocks.clear();
        (self.current, self.shifted) = (current, 0);
        (self.reads, self.bytes, self.held, self.reserve) = (0, 0, 0, 0);
        self.summary = Summary::default();
    }

    /// Adds the unread pieces of one track, in order; says what their peak and mean are.
    pub fn add_track(&mut self, pieces: impl Iterator<Item = PieceDue>) -> Summary {
        let mut summary = Summary { streams: 1, ..Summary::default() };
        let (mut slot, mut in_slot, mut reads, mut bytes) = (SlotIndex(0), 0, 0, 0);
        let (mut number, mut block) = (Block::number(self.current), Block::default());
        for piece in pieces {
            let of = Block::number(piece.due.max(self.current));
            if of != number {
                self.add_block(number, std::mem::take(&mut block));
                number = of;
            }
            block += Block::of_piece(&piece);
            in_slot = if piece.due == slot { in_slot + 1 } else { 1 };
            slot = piece.due;
            reads += 1;
            bytes += u64::from(piece.len);
            summary.peak = summary.peak.max(in_slot);
            self.add_piece(piece);
        }
        self.add_block(number, block);
        let slots = slot.0.saturating_sub(self.current.0).max(1);
        summary.mean = (reads * MEAN_UNIT).div_ceil(slots);
        summary.rate = bytes.div_ceil(slots);
        self.summary += summary;
        summary
    }

    /// Adds a piece that is in memory already: it takes a buffer until it is let go.
    pub fn add_held(&mut self, piece: PieceDue) {
        let len = u64::from(piece.len);
        *self.at(piece.release) += Load { freed: len, ..Load::default() };
        self.held += len;
    }

    /// From now on each read is a visit by itself.
    pub fn forget_visits(&mut self) {
        self.slots.iter_mut().for_each(|load| load.follows = Follows::NONE);
    }

    /// Becomes the sum of another demand and of what is unread on these books, decided on in slot
    /// `current`. What is past is due at once.
    pub(crate) fn sum(&mut self, current: SlotIndex, other: &Self, books: &DiskBooks) {
        self.begin(current);
        self.first = current;
        let behind = usize::try_from(current.0.saturating_sub(books.current().0));
        let ahead = books.ahead_of_now();
        let (late, booked) = ahead.split_at(behind.unwrap_or(usize::MAX).min(ahead.len()));
        let ours = other.slots();
        debug_assert!(ours.is_empty() || other.first >= current, "nobody asks for the past");
        let lead = usize::try_from(other.first.0.saturating_sub(current.0)).unwrap_or(usize::MAX);
        let (alone, beside) = booked.split_at(lead.min(booked.len()));
        self.slots.extend_from_slice(alone);
        if !ours.is_empty() {
            self.slots.resize(lead, Load::default());
        }
        let both = beside.len().min(ours.len());
        self.slots.extend(beside.iter().zip(ours).map(|(theirs, ours)| {
            let mut sum = *theirs;
            sum += *ours;
            sum
        }));
        self.slots.extend_from_slice(&beside[both..]);
        self.slots.extend_from_slice(&ours[both..]);
        for load in late.iter().chain([&books.overdue()]) {
            if *load != Load::default() {
                *self.reach(current) += *load;
            }
        }
        self.blocks.extend(Block::all(current, &self.slots).map(|(_, block)| block));
        self.reads = self.blocks.iter().map(|block| block.reads).sum();
        self.bytes = other.bytes + books.unread();
        (self.held, self.reserve) = (other.held + books.held(), other.reserve + books.reserved());
        self.summary = other.summary;
        self.summary += books.summary();
    }

    #[inline]
    fn add_piece(&mut self, piece: PieceDue) {
        let (len, transfer) = (u64::from(piece.len), u64::from(piece.transfer));
        let due = self.at(piece.due);
        due.reads += 1;
        due.bytes += len;
        due.transfer += transfer;
        self.at(piece.release).freed += len;
        if let Some((slot, follows)) = piece.follower() {
            self.at(slot).follows += follows;
        }
        self.reads += 1;
        self.bytes += len;
    }

    #[inline]
    fn add_block(&mut self, number: SlotIndex, block: Block) {
        let at = number.0.saturating_sub(Block::number(self.current).0);
        let at = usize::try_from(at).expect("bounded by the horizon");
        if at >= self.blocks.len() {
            self.blocks.resize(at + REACH, Block::default());
        }
        self.blocks[at] += block;
    }

    #[inline]
    fn at(&mut self, slot: SlotIndex) -> &mut Load {
        let at = slot.0.wrapping_sub(self.first.0);
        match usize::try_from(at) {
            Ok(at) if at < self.slots.len() => &mut self.slots[at],
            _ => self.reach(slot.max(self.current)),
        }
    }

    // The sum of a slot outside of those there are.
    #[cold]
    fn reach(&mut self, slot: SlotIndex) -> &mut Load {
        if self.slots.is_empty() {
            self.first = slot;
        }
        if slot < self.first {
            let shift = usize::try_from(self.first.0 - slot.0).expect("bounded by the horizon");
            self.slots.splice(..0, std::iter::repeat_n(Load::default(), shift));
            self.first = slot;
        }
        let at = usize::try_from(slot.0 - self.first.0).expect("bounded by the horizon");
        if at >= self.slots.len() {
            // Some more at once: what is to come is mostly a little later.
            self.slots.resize(at + REACH, Load::default());
        }
        &mut self.slots[at]
    }

    /// The slot of the first sum.
    pub fn first(&self) -> SlotIndex {
        self.first
    }

    /// The sums from there on, as far as any is not zero.
    pub fn slots(&self) -> &[Load] {
        let zeros = self.slots.iter().rev().take_while(|load| **load == Load::default()).count();
        &self.slots[..self.slots.len() - zeros]
    }

    /// The same by blocks of slots, and the first one's number; `None` where a shift has put other
    /// slots together.
    pub(crate) fn blocks(&self) -> Option<(SlotIndex, &[Block])> {
        let whole = self.shifted.is_multiple_of(BLOCK as u64);
        let first = Block::number(self.current) + self.shifted / BLOCK as u64;
        whole.then_some((first, self.blocks.as_slice()))
    }

    /// Reads in all.
    pub fn reads(&self) -> u64 {
        self.reads
    }

    /// Bytes in all, still to be read.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Bytes in memory already.
    pub fn held(&self) -> u64 {
        self.held
    }

    /// The tracks' peaks and means added up.
    pub fn summary(&self) -> Summary {
        self.summary
    }

    /// Starts `slots` later than it did when it was built.
    pub fn shift(&mut self, slots: u64) {
        self.first = self.first + slots;
        self.shifted += slots;
    }

    /// Takes a shift back.
    pub fn unshift(&mut self, slots: u64) {
        self.first = SlotIndex(self.first.0 - slots);
        self.shifted -= slots;
    }
}

/// Slots that a buffer is kept after the next piece is due: one in which an on-time player
/// fetches it, one for the socket to take it.
pub const HOLD_SLOTS: u64 = 2;

/// No deadline lies further ahead than this (three days of 500 ms slots): bounds the books of a
/// title with absurd times. What is due later is due then, which only asks more of the disk.
pub const MAX_HORIZON_SLOTS: u32 = 1 << 19;

/// Slots by which a demand's sums grow at once.
const REACH: usize = 64;

/// Parts of a read in which means are added up.
pub const MEAN_UNIT: u64 = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    const SLOT: Duration = Duration::from_millis(500);

    fn timing(origin_ms: u64, from_ms: u32) -> Timing {
        Timing {
            origin: Moment::from_millis(origin_ms),
            startup: Duration::from_secs(2),
            from_ms,
            kept_from_ms: from_ms,
            slot: SLOT,
            early: 0,
        }
    }

    #[test]
    fn pieces_are_due_a_slot_before_they_are_played_and_never_before_the_first() {
        let due = [0, 0, 4000, 4200, 8000];
        let curve = Curve { due: &due, piece: 100, bytes: 450, transfer: &[], followed: &[] };
        let table: Vec<_> = timing(10_250, 0)
            .pieces(curve, 0)
            .map(|p| (p.piece, p.due.0, p.release.0, p.len))
            .collect();
        // Admitted at 10.25 s, in slot 20. The first segment must be there at 12.25 s: by the end
        // of slot 23 (12.0 s). The second is played at 14.25 s, so it is there by 13.75 s.
        assert_eq!(
            table,
            [
                (0, 23, 25, 100),
                (1, 23, 28, 100),
                (2, 26, 28, 100),
                (3, 26, 36, 100),
                (4, 34, 36, 50)
            ]
        );
    }

    #[test]
    fn walking_gives_the_same_slots_as_computing_each() {
        for seed in 0..300 {
            let mut random = fastrand::Rng::with_seed(seed);
            let mut ms = 0;
            let due: Vec<u32> = (0..random.u32(1..60))
                .map(|_| {
                    ms += random.u32(0..3000);
                    ms
                })
                .collect();
            let followed: Vec<bool> = due.iter().map(|_| random.bool()).collect();
            let curve = Curve {
                due: &due,
                piece: 64,
                bytes: 64 * due.len() as u64 - 7,
                transfer: &[],
                followed: &followed,
            };
            let from_ms = random.u32(0..20_000);
            let timing = Timing {
                kept_from_ms: random.u32(0..=from_ms),
                early: random.u32(0..3),
                ..timing(random.u64(0..9999), from_ms)
            };
            let first = random.u32(0..curve.pieces());
            for piece in timing.pieces(curve, first) {
                let followed_after = timing.followed_after(&curve, piece.piece);
                assert_eq!(piece.followed_after, followed_after, "seed {seed}");
                assert_eq!(piece.due, timing.due_slot(curve.due(piece.piece)), "seed {seed}");
                assert_eq!(piece.release, timing.release_slot(&curve, piece.piece), "seed {seed}");
                assert!(
                    (piece.due + 1).start(SLOT) <= timing.deadline(curve.due(piece.piece)),
                    "the due slot ends by the deadline; seed {seed}"
                );
                let late = Timing { early: 0, ..timing };
                let due = late.due_slot(curve.due(piece.piece));
                assert_eq!(piece.due + u64::from(timing.early), due, "seed {seed}");
                assert_eq!(piece.release, late.release_slot(&curve, piece.piece), "seed {seed}");
            }
        }
    }

    #[test]
    fn where_the_start_is_not_known_pieces_come_early_and_stay_late() {
        let due = [0, 4000, 8000, 12_000];
        let curve = Curve { due: &due, piece: 100, bytes: 400, transfer: &[], followed: &[] };
        let slots = |from_ms, kept_from_ms| -> Vec<_> {
            let timing = Timing { kept_from_ms, ..timing(0, from_ms) };
            timing.pieces(curve, 0).map(|p| (p.due.0, p.release.0)).collect()
        };
        assert_eq!(slots(0, 0), [(3, 8), (6, 16), (14, 24), (22, 24)]);
        assert_eq!(slots(4000, 4000), [(3, 5), (3, 8), (6, 16), (14, 16)]);
        assert_eq!(slots(4000, 0), [(3, 8), (3, 16), (6, 24), (14, 24)]);
    }

    #[test]
    fn playing_from_the_middle_starts_with_the_segment_that_holds_it() {
        let due = [0, 0, 4000, 4000, 8000];
        let curve = Curve { due: &due, piece: 100, bytes: 500, transfer: &[], followed: &[] };
        let first: Vec<u32> =
            [0, 3999, 4000, 7999, 8000, 99_999].map(|ms| curve.first_needed(ms)).into();
        assert_eq!(first, [0, 0, 1, 1, 3, 3]);
    }

    #[test]
    fn absurd_tracks_give_defined_answers() {
        let empty = Curve { due: &[], piece: 100, bytes: 0, transfer: &[], followed: &[] };
        assert_eq!((empty.pieces(), empty.first_needed(5), empty.len(3)), (0, 0, 0));
        let no_times = Curve { due: &[], piece: 100, bytes: 250, transfer: &[], followed: &[] };
        assert_eq!((no_times.pieces(), no_times.due(2), no_times.len(2)), (3, 0, 50));
        assert!(
            !Curve { due: &[5, 4], piece: 100, bytes: 200, transfer: &[], followed: &[] }
                .is_sound()
        );
        assert!(!Curve { due: &[], piece: 0, bytes: 200, transfer: &[], followed: &[] }.is_sound());
        let far = timing(0, 0).due_slot(u32::MAX);
        assert!(far.0 <= u64::from(MAX_HORIZON_SLOTS) + 4, "{far:?}");
    }

    #[test]
    fn what_stands_by_beside_a_newcomer_is_the_sum_of_both() {
        for seed in 0..500 {
            let mut random = fastrand::Rng::with_seed(seed);
            let now = SlotIndex(random.u64(0..20));
            let mut pieces = |from: u64| -> Vec<PieceDue> {
                let mut due: Vec<u64> =
                    (0..random.u64(0..30)).map(|_| from + random.u64(0..50)).collect();
                due.sort_unstable();
                let piece = |due| PieceDue {
                    piece: 0,
                    due: SlotIndex(due),
                    release: SlotIndex(due + random.u64(0..5)),
                    len: random.u32(1..9),
                    transfer: random.u32(0..9),
                    followed_after: random.bool().then(|| random.u8(0..3)),
                };
                due.into_iter().map(piece).collect()
            };
            let (booked, ours) = (pieces(0), pieces(now.0));
            let mut books = DiskBooks::default();
            booked.iter().for_each(|piece| books.book(*piece));
            books.advance(now);
            let (mut newcomer, mut both) = (Demand::default(), Demand::default());
            newcomer.begin(now);
            newcomer.add_track(ours.iter().copied());
            let later = if random.bool() { random.u64(0..20) } else { 0 };
            newcomer.shift(later);
            both.sum(now, &newcomer, &books);

            let slot = |at: u64| {
                let of = |loads: &[Load], first: SlotIndex| {
                    let ahead = at.checked_sub(first.0).and_then(|at| usize::try_from(at).ok());
                    ahead.and_then(|at| loads.get(at)).copied().unwrap_or_default()
                };
                let mut sum = of(newcomer.slots(), newcomer.first());
                sum += of(books.ahead_of_now(), now);
                sum += if at == now.0 { books.overdue() } else { Load::default() };
                (sum, of(both.slots(), both.first()))
            };
            let (mut reads, mut blocks) = (0, vec![Block::default(); 30]);
            for at in now.0..now.0 + 90 {
                let (expected, sum) = slot(at);
                assert_eq!(sum, expected, "seed {seed}: slot {at}");
                reads += u64::from(sum.reads);
                blocks[usize::try_from(Block::number(SlotIndex(at)).0).unwrap()] += Block::of(&sum);
            }
            assert_eq!((both.reads(), both.bytes()), (reads, books.unread() + newcomer.bytes()));
            let (first, sums) = both.blocks().expect("not shifted");
            let first = usize::try_from(first.0).unwrap();
            let nothing = Block::default();
            for (block, sum) in
                blocks[first..].iter().zip(sums.iter().chain(std::iter::repeat(&nothing)))
            {
                assert_eq!(block, sum, "seed {seed}");
            }
        }
    }
}
