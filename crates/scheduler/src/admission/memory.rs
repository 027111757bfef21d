//! The memory test of the policies that do not simulate: buffers needed if every read were made
//! in the very slot by the end of which it is due.

use super::{Resource, Slack, Supply, Verdict};
use crate::books::DiskBooks;
use crate::demand::Demand;
use crate::ledger::Load;

pub(super) fn just_in_time(books: &DiskBooks, supply: &Supply<'_>, demand: &Demand) -> Verdict {
    let reserved = books.reserved() + demand.reserve;
    let memory = supply.memory.saturating_sub(reserved);
    let slots = Merged::new(books, demand);
    let mut used = books.held() + demand.held() + books.overdue().bytes + slots.at(0).bytes;
    used = used.saturating_sub(slots.at(0).freed);
    for ahead in 1..slots.len() {
        let load = slots.at(ahead);
        used += load.bytes;
        if used > memory {
            return Verdict::refuse(Resource::Memory, books.current() + ahead, used - memory);
        }
        used = used.saturating_sub(load.freed);
    }
    if reserved > supply.memory {
        return Verdict::refuse(Resource::Memory, books.current().next(), reserved - supply.memory);
    }
    Verdict::Admit { slack: Slack::Unknown }
}

/// Books and candidate added up, by slots from the current one.
pub(super) struct Merged<'a> {
    booked: &'a [Load],
    ours: &'a [Load],
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
        Self { booked, ours, offset, len: ours_end.max(booked.len() as u64) }
    }

    /// Slots from the current one until nothing is booked any more.
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// The sum `ahead` slots from the current one.
    #[inline]
    pub(super) fn at(&self, ahead: u64) -> Load {
        self.sum_at(usize::try_from(ahead).unwrap_or(usize::MAX))
    }

    /// The same as [`Merged::at`], by index.
    #[inline(always)]
    pub(super) fn sum_at(&self, ahead: usize) -> Load {
        let mut sum = self.booked.get(ahead).copied().unwrap_or_default();
        if let Some(ours) = self.ours.get(ahead.wrapping_sub(self.offset)) {
            sum += *ours;
        }
        sum
    }

    /// Reads and transfer of the slots from one to before another.
    #[inline(always)]
    pub(super) fn sums(&self, from: usize, until: usize) -> (u64, u64) {
        let part = |loads: &[Load], from: usize, until: usize| {
            let until = until.min(loads.len());
            let loads = &loads[from.min(until)..until];
            let add = |(reads, transfer), load: &Load| {
                (reads + u64::from(load.reads), transfer + load.transfer)
            };
            loads.iter().fold((0, 0), add)
        };
        let theirs = part(self.booked, from, until);
        let (from, until) = (from.saturating_sub(self.offset), until.saturating_sub(self.offset));
        let ours = part(self.ours, from, until);
        (theirs.0 + ours.0, theirs.1 + ours.1)
    }

    /// The reads of that sum.
    #[inline]
    pub(super) fn reads(&self, ahead: u64) -> u64 {
        let ahead = usize::try_from(ahead).unwrap_or(usize::MAX);
        let theirs = self.booked.get(ahead).map_or(0, |load| load.reads);
        let ours = self.ours.get(ahead.wrapping_sub(self.offset)).map_or(0, |load| load.reads);
        u64::from(theirs) + u64::from(ours)
    }
}
