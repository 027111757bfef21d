//! The memory test of the policies that do not simulate: buffers needed if every read were made
//! in the very slot by the end of which it is due.

use super::{Resource, Slack, Supply, Verdict};
use crate::books::DiskBooks;
use crate::demand::Demand;
use crate::ledger::Load;
use std::ops::ControlFlow;

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
    lead: u64,
    len: u64,
}

impl<'a> Merged<'a> {
    pub(super) fn new(books: &'a DiskBooks, demand: &'a Demand) -> Self {
        let (booked, ours) = (books.ahead_of_now(), demand.slots());
        let lead = demand.first().0.saturating_sub(books.current().0);
        let ours_end = if ours.is_empty() { 0 } else { lead + ours.len() as u64 };
        Self { booked, ours, lead, len: ours_end.max(booked.len() as u64) }
    }

    /// Slots from the current one until nothing is booked any more.
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// The sum `ahead` slots from the current one.
    #[inline]
    pub(super) fn at(&self, ahead: u64) -> Load {
        let mut load = self.theirs(ahead).copied().unwrap_or_default();
        if let Some(ours) = self.ours(ahead) {
            load += *ours;
        }
        load
    }

    /// All sums in one list, the current slot's first.
    pub(super) fn add_up(&self, sums: &mut Vec<Load>) {
        let len = usize::try_from(self.len).expect("bounded by the horizon");
        sums.resize(len, Load::default());
        let (booked, rest) = sums.split_at_mut(self.booked.len());
        booked.copy_from_slice(self.booked);
        rest.fill(Load::default());
        let lead = usize::try_from(self.lead).unwrap_or(usize::MAX).min(len);
        for (sum, ours) in sums[lead..].iter_mut().zip(self.ours) {
            *sum += *ours;
        }
    }

    /// Calls `with` for each slot from the current one, in order, until it breaks off.
    #[inline(always)]
    pub(super) fn each<B>(
        &self,
        mut with: impl FnMut(usize, Load) -> ControlFlow<B>,
    ) -> ControlFlow<B> {
        let lead = usize::try_from(self.lead).unwrap_or(usize::MAX);
        let (alone, beside) = self.booked.split_at(lead.min(self.booked.len()));
        for (ahead, theirs) in alone.iter().enumerate() {
            with(ahead, *theirs)?;
        }
        if self.ours.is_empty() {
            return ControlFlow::Continue(());
        }
        for ahead in alone.len()..lead {
            with(ahead, Load::default())?;
        }
        let mut ahead = lead;
        for (theirs, ours) in beside.iter().zip(self.ours) {
            let mut sum = *theirs;
            sum += *ours;
            with(ahead, sum)?;
            ahead += 1;
        }
        let together = beside.len().min(self.ours.len());
        for load in beside[together..].iter().chain(&self.ours[together..]) {
            with(ahead, *load)?;
            ahead += 1;
        }
        ControlFlow::Continue(())
    }

    /// The reads of that sum.
    #[inline]
    pub(super) fn reads(&self, ahead: u64) -> u64 {
        let reads = |load: Option<&Load>| load.map_or(0, |load| load.reads);
        u64::from(reads(self.theirs(ahead)) + reads(self.ours(ahead)))
    }

    #[inline]
    fn theirs(&self, ahead: u64) -> Option<&Load> {
        self.booked.get(usize::try_from(ahead).ok()?)
    }

    #[inline]
    fn ours(&self, ahead: u64) -> Option<&Load> {
        self.ours.get(usize::try_from(ahead.checked_sub(self.lead)?).ok()?)
    }
}
