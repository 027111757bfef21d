//! Demand: the pieces of one or several streams as sums per slot.
//!
//! ```text
//!   slot        3    4    5    6        first() = 3
//!   reads       1    2    0    1        due by the end of the slot
//!   freed       0    0    1    2        buffers released at the end of the slot, in bytes
//! ```

use crate::blocks::{BLOCK, Block};
use crate::books::DiskBooks;
use crate::ledger::SlotLoad;
use crate::piece::PieceDue;
use crate::sums::sums;
use crate::visits::{SequentialReads, Since};
use units::SlotIndex;

/// A candidate's demand: sums per slot from its first slot on. Kept and refilled by its owner, so
/// that a decision allocates nothing once it has grown.
#[derive(Clone, Debug, Default)]
pub struct Demand {
    current: SlotIndex,
    first: SlotIndex,
    slots: Vec<SlotLoad>,
    // Their reads by blocks of slots, before any shift.
    blocks: Vec<Block>,
    shifted: u64,
    reads: u64,
    bytes: u64,
    held: u64,
    summary: RateSummary,
    /// Memory that the candidate takes beside the schedule: what its sockets may hold.
    pub reserve: u64,
}

/// Peak and mean rates of streams, for the policies that look at nothing else.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RateSummary {
    /// The most reads due in any one slot.
    pub peak: u64,
    /// Mean reads per slot until the last is due, in [`MEAN_UNIT`]ths, rounded up.
    pub mean: u64,
    /// Mean bytes per slot until the last is due, rounded up.
    pub rate: u64,
    /// Number of streams.
    pub streams: u64,
}

sums!(RateSummary { peak, mean, rate, streams }, "the books balance");

impl Demand {
    /// Begins an empty demand, decided on in slot `current`.
    pub fn begin(&mut self, current: SlotIndex) {
        // `first` is not reset: `reach` sets it with the first piece.
        self.slots.clear();
        self.blocks.clear();
        (self.current, self.shifted) = (current, 0);
        (self.reads, self.bytes, self.held, self.reserve) = (0, 0, 0, 0);
        self.summary = RateSummary::default();
    }

    /// Adds the unread pieces of one track, in order; returns their peak and mean rates.
    pub fn add_track(&mut self, pieces: impl Iterator<Item = PieceDue>) -> RateSummary {
        let mut summary = RateSummary { streams: 1, ..RateSummary::default() };
        let (mut slot, mut in_slot, mut reads, mut bytes) = (SlotIndex(0), 0, 0, 0);
        let (mut number, mut block) = (Block::number(self.current), Block::default());
        for piece in pieces {
            // An overdue piece is summed into the current slot (`at`), so it counts in that slot's
            // block.
            let of = Block::number(piece.due.max(self.current));
            // Pieces come in order of their due slots, so a block is complete when the next begins.
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
        // A track that is due at once has no slots to divide by.
        let slots = slot.0.saturating_sub(self.current.0).max(1);
        summary.mean = (reads * MEAN_UNIT).div_ceil(slots);
        summary.rate = bytes.div_ceil(slots);
        self.summary += summary;
        summary
    }

    /// Adds a piece that is in memory already: it takes a buffer until it is let go.
    pub fn add_held(&mut self, piece: PieceDue) {
        let len = u64::from(piece.len);
        *self.at(piece.release) += SlotLoad { freed: len, ..SlotLoad::default() };
        self.held += len;
    }

    /// Charges each read a positioning of its own from now on.
    pub fn forget_visits(&mut self) {
        self.slots.iter_mut().for_each(|load| load.follows = SequentialReads::NONE);
    }

    /// Becomes the sum of another demand and of what is unread on these books, decided on in slot
    /// `current`. What is past is due at once.
    pub(crate) fn sum(&mut self, current: SlotIndex, other: &Self, books: &DiskBooks) {
        self.begin(current);
        self.first = current;
        let behind = usize::try_from(current.0.saturating_sub(books.current().0));
        let ahead = books.ahead_of_now();
        // The books may not have been advanced to `current` yet: what lies between is late.
        let (late, booked) = ahead.split_at(behind.unwrap_or(usize::MAX).min(ahead.len()));
        let ours = other.slots();
        debug_assert!(ours.is_empty() || other.first >= current, "nobody asks for the past");
        let lead = usize::try_from(other.first.0.saturating_sub(current.0)).unwrap_or(usize::MAX);
        // Slots before the other demand begins are copied; after that both are added.
        let (alone, beside) = booked.split_at(lead.min(booked.len()));
        self.slots.extend_from_slice(alone);
        if !ours.is_empty() {
            // Only where the other demand has slots: the gap would otherwise be trailing zeros.
            self.slots.resize(lead, SlotLoad::default());
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
            if *load != SlotLoad::default() {
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

    /// Whether this asks for no more than `other` by the end of any slot: of reads, visits, bytes,
    /// transfer and buffers. Every schedule that is kept with the other is kept with this in its
    /// place, so nothing has to be evaluated.
    pub fn is_within(&self, other: &Self) -> bool {
        let ends = |demand: &Self| demand.first.0 + demand.slots().len() as u64;
        let starts = [self, other].into_iter().filter(|demand| !demand.slots().is_empty());
        let Some(start) = starts.map(|demand| demand.first.0).min() else {
            return self.held <= other.held && self.reserve <= other.reserve;
        };
        let at = |demand: &Self, slot: u64| {
            let ahead = slot.checked_sub(demand.first.0).and_then(|at| usize::try_from(at).ok());
            ahead.and_then(|at| demand.slots.get(at)).copied().unwrap_or_default()
        };
        let (mut ours, mut theirs) = (SlotLoad::default(), SlotLoad::default());
        // The most by which the other has let go more buffers than this at the end of a slot.
        let mut let_go_more = 0;
        let within = |slot| {
            ours += at(self, slot);
            theirs += at(other, slot);
            let visits = |load: &SlotLoad, since| u64::from(load.reads) - load.follows.since(since);
            let buffers = ours.bytes + self.held + let_go_more <= theirs.bytes + other.held;
            let_go_more = let_go_more.max(theirs.freed.saturating_sub(ours.freed));
            buffers
                && (ours.reads <= theirs.reads && ours.bytes <= theirs.bytes)
                && ours.transfer <= theirs.transfer
                && visits(&ours, Since::NOW) <= visits(&theirs, Since::EVER)
        };
        self.reserve <= other.reserve && (start..ends(self).max(ends(other))).all(within)
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
        let ahead = number.0.saturating_sub(Block::number(self.current).0);
        let at = usize::try_from(ahead).expect("bounded by the horizon");
        if at >= self.blocks.len() {
            self.blocks.resize(at + REACH, Block::default());
        }
        self.blocks[at] += block;
    }

    #[inline]
    fn at(&mut self, slot: SlotIndex) -> &mut SlotLoad {
        // A slot before `first` wraps to a huge index, so one comparison covers both ends.
        let at = slot.0.wrapping_sub(self.first.0);
        match usize::try_from(at) {
            Ok(at) if at < self.slots.len() => &mut self.slots[at],
            _ => self.reach(slot.max(self.current)),
        }
    }

    // The sum of a slot outside of those there are.
    #[cold]
    fn reach(&mut self, slot: SlotIndex) -> &mut SlotLoad {
        if self.slots.is_empty() {
            self.first = slot;
        }
        // A track that begins earlier than those before moves the sums up: rare, so the copy is
        // cheaper than room in front.
        if slot < self.first {
            let shift = usize::try_from(self.first.0 - slot.0).expect("bounded by the horizon");
            self.slots.splice(..0, std::iter::repeat_n(SlotLoad::default(), shift));
            self.first = slot;
        }
        let at = usize::try_from(slot.0 - self.first.0).expect("bounded by the horizon");
        if at >= self.slots.len() {
            // Some more at once: what is to come is mostly a little later.
            self.slots.resize(at + REACH, SlotLoad::default());
        }
        &mut self.slots[at]
    }

    /// The slot of the first sum.
    pub fn first(&self) -> SlotIndex {
        self.first
    }

    /// The sums from [`Demand::first`] on, without zeros at the end.
    pub fn slots(&self) -> &[SlotLoad] {
        // `reach` grows by REACH slots at once; callers take the length for the end of the demand.
        let zeros =
            self.slots.iter().rev().take_while(|load| **load == SlotLoad::default()).count();
        &self.slots[..self.slots.len() - zeros]
    }

    /// The sums by blocks of slots, and the first block's number; `None` where a shift has put
    /// other slots together.
    pub(crate) fn blocks(&self) -> Option<(SlotIndex, &[Block])> {
        // A shift by whole blocks moves the first block's number; any other shift would split
        // blocks.
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
    pub fn summary(&self) -> RateSummary {
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

/// Slots by which a demand's sums grow at once.
const REACH: usize = 64;

/// Parts of a read in which means are added up.
pub const MEAN_UNIT: u64 = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

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
                let of = |loads: &[SlotLoad], first: SlotIndex| {
                    let ahead = at.checked_sub(first.0).and_then(|at| usize::try_from(at).ok());
                    ahead.and_then(|at| loads.get(at)).copied().unwrap_or_default()
                };
                let mut sum = of(newcomer.slots(), newcomer.first());
                sum += of(books.ahead_of_now(), now);
                sum += if at == now.0 { books.overdue() } else { SlotLoad::default() };
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
