//! The memory test of the policies that do not simulate: buffers needed if every read were made
//! in the very slot by the end of which it is due.

use super::{Resource, Slack, Supply, Verdict};
use crate::blocks::{BLOCK, Block};
use crate::books::DiskBooks;
use crate::demand::Demand;
use crate::ledger::SlotLoad;
use crate::visits::{Since, Swept};
use std::ops::{ControlFlow, Range};
use units::SlotIndex;

pub(super) fn just_in_time(books: &DiskBooks, supply: &Supply<'_>, demand: &Demand) -> Verdict {
    let reserved = books.reserved() + demand.reserve;
    let memory = supply.memory.saturating_sub(reserved);
    let slots = Merged::new(books, demand);
    // Reads that are overdue or due in the running slot take their buffers now, before the slot
    // frees any: a sweep that was chosen may have been taken back for a newcomer, whose reserve
    // counts from now on. Streams that come from a lost disk bring reads that are due now; they are
    // taken where the slots to come have memory for them.
    let none_due = demand.reads() == 0 || demand.first() > books.current();
    let is_newcomer = demand.held() == 0 && none_due;
    let mut used = books.held() + demand.held() + books.overdue().bytes;
    for ahead in 0..slots.len() {
        let load = slots.at(ahead);
        used += load.bytes;
        if used > memory && (ahead > 0 || is_newcomer) {
            return Verdict::refuse(Resource::Memory, books.current() + ahead, used - memory);
        }
        used = used.saturating_sub(load.freed);
    }
    // Where no bytes are due the loop compares nothing, but the reserve alone may be too large.
    if reserved > supply.memory {
        return Verdict::refuse(Resource::Memory, books.current().next(), reserved - supply.memory);
    }
    Verdict::admit(Slack::Unknown)
}

/// Whether memory is no matter even where each slot's reads are made in the very slot, at most so
/// many in one. Who reads ahead, earliest due first, while there is room, and finds none for a read
/// that is due now, has nothing in memory but what is due by now: it would lie there all the same.
/// So nobody who could do `reads` in each slot would be late for want of memory.
pub(super) fn each_in_its_slot(
    slots: &Merged<'_>,
    books: &DiskBooks,
    held: u64,
    memory: u64,
    reads: u64,
) -> bool {
    // What is due in the current slot, or was before, is read in the next.
    let now = slots.pair(0);
    let mut used = held.saturating_sub(now.freed()) + books.overdue().bytes + now.bytes();
    let stopped = slots.each(1..slots.count().max(2), |_, slot| {
        used += slot.bytes();
        if slot.reads() > reads || used > memory {
            return ControlFlow::Break(());
        }
        used = used.saturating_sub(slot.freed());
        ControlFlow::Continue(())
    });
    stopped.is_continue()
}

/// Books and candidate added up, by slots from the current one.
pub(super) struct Merged<'a> {
    current: SlotIndex,
    booked: &'a [SlotLoad],
    ours: &'a [SlotLoad],
    booked_blocks: &'a [Block],
    our_blocks: Option<(SlotIndex, &'a [Block])>,
    // Where the candidate's first slot is.
    offset: usize,
    len: u64,
}

impl<'a> Merged<'a> {
    pub(super) fn new(books: &'a DiskBooks, demand: &'a Demand) -> Self {
        let (booked, ours) = (books.ahead_of_now(), demand.slots());
        let lead = demand.first().0.saturating_sub(books.current().0);
        let ours_end = if ours.is_empty() { 0 } else { lead + ours.len() as u64 };
        let offset = usize::try_from(lead).unwrap_or(usize::MAX);
        Self {
            current: books.current(),
            booked,
            ours,
            booked_blocks: books.blocks(),
            our_blocks: demand.blocks(),
            offset,
            len: ours_end.max(booked.len() as u64),
        }
    }

    /// These sums, if the candidate began `slots` slots later.
    pub(super) fn later(mut self, slots: usize) -> Self {
        self.offset = self.offset.saturating_add(slots);
        let ours_end = self.offset.saturating_add(self.ours.len()) as u64;
        // The candidate's blocks are those of its first start; `block` sums its slots anew.
        self.our_blocks = None;
        self.len = if self.ours.is_empty() { self.len } else { self.len.max(ours_end) };
        self
    }

    /// Slots from the current one until nothing is booked any more.
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// Number of slots, as an index.
    pub(super) fn count(&self) -> usize {
        usize::try_from(self.len).expect("bounded by the horizon")
    }

    /// The sum `ahead` slots from the current one.
    #[inline]
    pub(super) fn at(&self, ahead: u64) -> SlotLoad {
        let ahead = usize::try_from(ahead).unwrap_or(usize::MAX);
        let mut sum = self.booked.get(ahead).copied().unwrap_or_default();
        // Before the candidate's first slot the index wraps and finds nothing.
        if let Some(ours) = self.ours.get(ahead.wrapping_sub(self.offset)) {
            sum += *ours;
        }
        sum
    }

    /// The next few of these slots: what is booked, and the candidate's part, as two lists of one
    /// length.
    #[inline]
    fn stretch(&self, range: Range<usize>) -> (&'a [SlotLoad], &'a [SlotLoad]) {
        // Up to the next slot where either list begins or ends, so that the loop over the stretch
        // tests no bounds.
        let until = |list: &[SlotLoad], begins: usize| match range.start.checked_sub(begins) {
            None => begins - range.start,
            Some(at) if at < list.len() => list.len() - at,
            Some(_) => usize::MAX,
        };
        let most = until(self.booked, 0).min(until(self.ours, self.offset));
        let len = most.min(range.len()).min(STRETCH);
        let of = |list: &'a [SlotLoad], begins: usize| match range.start.checked_sub(begins) {
            Some(at) if at < list.len() => &list[at..at + len],
            _ => &NOTHING[..len],
        };
        (of(self.booked, 0), of(self.ours, self.offset))
    }

    /// Looks at these slots one after another, until it is told to stop.
    #[inline(always)]
    pub(super) fn each<B>(
        &self,
        range: Range<usize>,
        mut look: impl FnMut(usize, Pair<'a>) -> ControlFlow<B>,
    ) -> ControlFlow<B> {
        let mut ahead = range.start;
        while ahead < range.end {
            let (theirs, ours) = self.stretch(ahead..range.end);
            for (theirs, ours) in theirs.iter().zip(ours) {
                look(ahead, Pair(theirs, ours))?;
                ahead += 1;
            }
        }
        ControlFlow::Continue(())
    }

    /// The two that make that sum, by index.
    #[inline(always)]
    pub(super) fn pair(&self, ahead: usize) -> Pair<'a> {
        let of = |loads: &'a [SlotLoad], at: usize| loads.get(at).unwrap_or(&SlotLoad::NOTHING);
        Pair(of(self.booked, ahead), of(self.ours, ahead.wrapping_sub(self.offset)))
    }

    /// Bytes that are let go at the end of a slot.
    #[inline(always)]
    pub(super) fn freed(&self, ahead: usize) -> u64 {
        let of = |loads: &[SlotLoad], at: usize| loads.get(at).map_or(0, |load| load.freed);
        of(self.booked, ahead) + of(self.ours, ahead.wrapping_sub(self.offset))
    }

    /// How many slots ahead the first whole block begins.
    pub(super) fn first_block(&self) -> usize {
        let begun = self.current.0 % BLOCK as u64;
        usize::try_from((BLOCK as u64 - begun) % BLOCK as u64).expect("of a block")
    }

    /// Reads and transfer of a whole block, which begins so many slots ahead.
    #[inline(always)]
    pub(super) fn block(&self, ahead: usize) -> Block {
        let (now, number) =
            (Block::number(self.current), Block::number(self.current + ahead as u64));
        let of = |blocks: &[Block], first: SlotIndex| {
            let at = usize::try_from(number.0.wrapping_sub(first.0)).unwrap_or(usize::MAX);
            blocks.get(at).copied().unwrap_or_default()
        };
        let mut sum = of(self.booked_blocks, now);
        match self.our_blocks {
            Some((first, blocks)) => sum += of(blocks, first),
            None => {
                // Shifted by part of a block: the candidate's slots of this block are summed one by
                // one.
                let ours = |end: usize| end.saturating_sub(self.offset).min(self.ours.len());
                let loads = &self.ours[ours(ahead)..ours(ahead + BLOCK)];
                loads.iter().for_each(|load| sum += Block::of(load));
            }
        }
        debug_assert_eq!(sum, self.slow_block(ahead), "blocks are sums of slots");
        sum
    }

    fn slow_block(&self, ahead: usize) -> Block {
        let mut sum = Block::default();
        for Pair(theirs, ours) in (ahead..ahead + BLOCK).map(|ahead| self.pair(ahead)) {
            sum += Block::of(theirs);
            sum += Block::of(ours);
        }
        sum
    }

    /// The reads of that sum.
    #[inline]
    pub(super) fn reads(&self, ahead: u64) -> u64 {
        self.pair(usize::try_from(ahead).unwrap_or(usize::MAX)).reads()
    }
}

/// Slots that are looked at together; as many without anything are kept for that.
const STRETCH: usize = 64;
static NOTHING: [SlotLoad; STRETCH] = [SlotLoad::NOTHING; STRETCH];

/// What is booked in a slot, and the candidate's part, not yet added up: a decision looks at
/// thousands of them, and mostly at two or three sums of each.
#[derive(Clone, Copy)]
pub(super) struct Pair<'a>(&'a SlotLoad, &'a SlotLoad);

impl Pair<'_> {
    #[inline(always)]
    pub(super) fn reads(self) -> u64 {
        u64::from(self.0.reads) + u64::from(self.1.reads)
    }

    #[inline(always)]
    pub(super) fn bytes(self) -> u64 {
        self.0.bytes + self.1.bytes
    }

    #[inline(always)]
    pub(super) fn freed(self) -> u64 {
        self.0.freed + self.1.freed
    }

    /// In a window that begins so long before.
    #[inline(always)]
    pub(super) fn swept(self, since: Since) -> Swept {
        Swept::of(self.0, since).and(Swept::of(self.1, since))
    }
}
