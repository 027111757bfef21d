//! What the policies share that look at each slot as a round by itself: everything due in a slot
//! is read in that slot, in one sweep, and nothing is carried over from quiet slots.
//!
//! ```text
//!   slot t:   reads n, bytes b, transfer x, of everybody, as booked   ─▶  takes(n, b, x) ≤ T ?
//! ```
//!
//! They differ in `takes` only: each is a [`Round`], and [`ByRound`] makes the policy. Like the
//! rounds of the literature they look at the demand as booked, whether or not some of it has been
//! read ahead since. The plan that they leave has no windows: each slot is one, and the run joins
//! those that it has time for.
//!
//! Beside the rounds themselves it is tested that the disk is done with what it is at now, and with
//! what is still due in the meantime, by the beginning of some slot: from there on each sweep
//! begins with its slot at the latest.

use super::memory::{self, Merged};
use super::{AdmissionRequest, Policy, Resource, Supply, Verdict};
use crate::books::DiskBooks;
use crate::demand::Demand;
use crate::ledger::BookedLoad;
use disk::Costs;
use units::{SlotIndex, nanos};

/// What the round of a slot takes.
pub(super) trait Round: Sync {
    /// The policy that decides where the disk's timings do not suffice.
    const OTHERWISE: &'static dyn Policy;

    /// Nanoseconds that a round takes; `None` where the timings do not suffice.
    fn takes(supply: &Supply<'_>, costs: &Costs) -> Option<impl FnMut(BookedLoad) -> u64>;
}

/// Lets in while every slot's round is done within its slot.
pub(super) struct ByRound<R>(pub(super) R);

impl<R: Round> Policy for ByRound<R> {
    fn decide(&self, request: AdmissionRequest<'_>) -> Verdict {
        let AdmissionRequest { books, supply, demand } = request;
        let costs = supply.timings.costs.as_ref();
        match costs.and_then(|costs| Some((costs, R::takes(supply, costs)?))) {
            Some((costs, takes)) => verdict(books, supply, demand, costs, takes),
            None => R::OTHERWISE.decide(request),
        }
    }
}

/// Whether every slot's round is done within a slot, if it takes `takes` nanoseconds, and memory
/// suffices.
fn verdict(
    books: &DiskBooks,
    supply: &Supply<'_>,
    demand: &Demand,
    costs: &Costs,
    mut takes: impl FnMut(BookedLoad) -> u64,
) -> Verdict {
    let slot = nanos(supply.slot);
    for (due, all) in concerned(books, demand) {
        let takes = takes(all).saturating_add(supply.timings.writes_at_once());
        if takes > slot {
            return too_long(due, takes - slot, takes / u64::from(all.reads.max(1)), all.reads);
        }
    }
    match catch_up(books, supply, demand, costs, slot) {
        Ok(()) => memory::just_in_time(books, supply, demand),
        Err(refused) => refused,
    }
}

/// The slots that a demand makes fuller, with all that is booked in them. A slot in which it reads
/// nothing is as full as without it. Without a demand: all that is booked ahead.
pub(super) fn concerned(
    books: &DiskBooks,
    demand: &Demand,
) -> impl Iterator<Item = (SlotIndex, BookedLoad)> {
    let (current, booked) = (books.current(), books.booked_ahead());
    let slots = demand.slots();
    let at = move |due: SlotIndex| {
        let ahead = due.0.checked_sub(current.0).and_then(|at| usize::try_from(at).ok());
        ahead.and_then(|at| booked.get(at)).copied().unwrap_or_default()
    };
    let fuller = slots.iter().enumerate().filter(|(_, load)| load.reads > 0);
    let fuller = fuller.map(move |(slot, load)| {
        let due = demand.first() + slot as u64;
        let mut all = BookedLoad::of(load);
        all += at(due);
        (due, all)
    });
    let count = if slots.is_empty() { booked.len() } else { 0 };
    // What runs now was decided on before.
    let standing = (1..count).map(move |slot| (current + slot as u64, booked[slot]));
    fuller.chain(standing.filter(|(_, all)| all.reads > 0))
}

// From the true state of now, as long as the disk is behind the slots.
fn catch_up(
    books: &DiskBooks,
    supply: &Supply<'_>,
    demand: &Demand,
    costs: &Costs,
    slot: u64,
) -> Result<(), Verdict> {
    let slots = Merged::new(books, demand);
    let overdue = books.overdue();
    let mut free = supply.free_at.0;
    if overdue.reads > 0 {
        let late = supply.timings.stretch(costs.batch(u64::from(overdue.reads), overdue.transfer));
        free = free.saturating_add(late);
    }
    for ahead in 0..slots.len() {
        let due = books.current() + ahead;
        let begins = due.0.saturating_mul(slot);
        // From here on each sweep begins with its slot at the latest, which is tested already.
        if free <= begins {
            return Ok(());
        }
        let load = slots.at(ahead);
        let takes = supply.timings.stretch(costs.batch(u64::from(load.reads), load.transfer));
        free = free.saturating_add(if load.reads > 0 { takes } else { 0 });
        let late = free.saturating_sub(begins.saturating_add(slot));
        if late > 0 && load.reads > 0 {
            return Err(too_long(due, late, takes / u64::from(load.reads), load.reads));
        }
    }
    Ok(())
}

fn too_long(due: SlotIndex, late: u64, each: u64, reads: u32) -> Verdict {
    let missing = late.div_ceil(each.max(1)).min(u64::from(reads));
    Verdict::refuse(Resource::Disk, due, missing)
}
