//! Service-curve vbrSim: vbrSim, but with a measured curve of how many reads the disk completes in
//! any stretch of slots ([`crate::ServiceCurve`], β) where vbrSim has one number for one slot.
//!
//! ```text
//!   reads due by the end of slot t            C(t)
//!   never less than this has been read        β(t - now)          in memory for everything
//!                                   and       cap(u) + β(t - u)   after a slot u in which memory
//!                                                                 was full
//! ```
//!
//! cap(u) is how many reads, earliest due first, have room by slot u at the least: what is freed
//! depends on the clock alone. Why admitted means on time: a disk that has been busy since slot u
//! has completed β(t - u) since; if it was not busy in u, memory was full then, or nothing was
//! left. An own development, after vbrSim.
//!
//! It is the default where the disk's geometry is not known. Without a measured curve it is vbrSim:
//! β(h) = h minRead.
//!
//! What the disk was seen to do lately, where that was less, only tightens: β(h) is the least of
//! the measured curve, shrunk as the disk is behind now, and of the fewest reads seen in h slots
//! ([`crate::ObservedCurve`]).

use super::memory::{Merged, each_in_its_slot};
use super::vbr_sim::{VbrSim, disk_only};
use super::{AdmissionRequest, Policy, Resource, Supply, Verdict};
use crate::books::DiskBooks;
use crate::curve::ServiceCurve;
use std::ops::ControlFlow;
use units::nanos;

pub(super) struct ServiceCurvePolicy;

impl Policy for ServiceCurvePolicy {
    fn decide(&self, request: AdmissionRequest<'_>) -> Verdict {
        let AdmissionRequest { books, supply, demand } = request;
        let Some(curve) = &supply.timings.curve else {
            return VbrSim.decide(request);
        };
        let beta = Beta::new(curve, supply);
        let slots = Merged::new(books, demand);
        let reserved = books.reserved() + demand.reserve;
        let memory = supply.memory.saturating_sub(reserved);
        // C(t) ≤ β(t - now).
        let verdict = disk_only(&slots, books, beta.all());
        if !verdict.is_admit() {
            return verdict;
        }
        let held = books.held() + demand.held();
        if reserved + held + books.unread() + demand.bytes() <= supply.memory {
            return verdict; // memory for everything at once: it never binds
        }
        // The sums over all pairs of slots below are quadratic; this test is one pass.
        if supply.owed == 0 && each_in_its_slot(&slots, books, held, memory, beta.0[0]) {
            return verdict;
        }
        match after_full_memory(&slots, books, supply, &beta, held, memory) {
            Ok(()) => verdict,
            Err(refused) => refused,
        }
    }
}

// β as the disk is lately, by slots from one on, as far as it was measured.
struct Beta(Vec<u64>);

impl Beta {
    fn new(curve: &ServiceCurve, supply: &Supply<'_>) -> Self {
        let timings = supply.timings;
        let seen = timings.observed_curve.as_ref();
        let longest = seen.map_or(1, ServiceCurve::longest).max(curve.longest());
        let least = |slots| {
            // The slowdown shrinks the calibrated curve only: what was observed contains it
            // already.
            let now = timings.shrink(curve.least(slots));
            let all = seen.map_or(now, |seen| seen.least(slots).min(now));
            let reads = timings.reads_beside_writes(all, slots, nanos(supply.slot));
            reads.saturating_sub(supply.owed.into())
        };
        Self((1..=longest).map(least).collect())
    }

    /// Reads of the longest stretch that was measured.
    fn whole(&self) -> u64 {
        self.0[self.0.len() - 1]
    }

    /// β(1), β(2), ... without end.
    fn all(&self) -> impl Iterator<Item = u64> + '_ {
        let periods =
            std::iter::successors(Some(0_u64), |before| Some(before.saturating_add(self.whole())));
        periods.flat_map(|before| self.0.iter().map(move |reads| before.saturating_add(*reads)))
    }
}

// C(t) ≤ cap(t), and C(t) ≤ cap(u) + β(t - u) for all u < t.
fn after_full_memory(
    slots: &Merged<'_>,
    books: &DiskBooks,
    supply: &Supply<'_>,
    beta: &Beta,
    held: u64,
    memory: u64,
) -> Result<(), Verdict> {
    let caps = caps(slots, books, supply, held, memory)?;
    let mut due = u64::from(books.overdue().reads);
    let mut wanted: Vec<u64> = Vec::with_capacity(slots.count());
    let _ = slots.each(0..slots.count(), |_, slot| {
        due += slot.reads();
        wanted.push(due);
        ControlFlow::<()>::Continue(())
    });
    let period = beta.0.len();
    // What must have been read by slot t for all that comes whole periods after it:
    // max over q of C(t + q period) - q β(period).
    for t in (0..wanted.len().saturating_sub(period)).rev() {
        wanted[t] = wanted[t].max(wanted[t + period].saturating_sub(beta.whole()));
    }
    // Slots further than a period after `u` are covered by the maximum above.
    for (u, cap) in caps.iter().enumerate().skip(1) {
        for (at, (wanted, reads)) in wanted[u + 1..].iter().zip(&beta.0).enumerate() {
            let can = cap + reads;
            if *wanted > can {
                let slot = books.current() + (u + 1 + at) as u64;
                return Err(Verdict::refuse(Resource::Memory, slot, wanted - can));
            }
        }
    }
    Ok(())
}

// By slot: how many reads, earliest due first, have certainly had room in it. Of reads that are due
// together, as many as fit if they are the largest.
fn caps(
    slots: &Merged<'_>,
    books: &DiskBooks,
    supply: &Supply<'_>,
    held: u64,
    memory: u64,
) -> Result<Vec<u64>, Verdict> {
    let overdue = books.overdue();
    let count = slots.count();
    let mut caps = Vec::with_capacity(count);
    let mut group = (u64::from(overdue.reads), overdue.bytes);
    let (mut reads, mut bytes, mut next) = (0, 0, 0);
    // What may have been read by now, in bytes: all that is free, and what has been let go since.
    let mut room = memory.saturating_sub(held);
    let mut over = held.saturating_sub(memory);
    let full = slots.each(0..count, |ahead, slot| {
        // Whole slots, earliest due first, as long as they fit.
        while bytes + group.1 <= room {
            (reads, bytes) = (reads + group.0, bytes + group.1);
            group = (0, 0);
            if next >= count {
                break;
            }
            let slot = slots.pair(next);
            group = (slot.reads(), slot.bytes());
            next += 1;
        }
        // Of the first slot that does not fit whole, as many as fit if they are the largest reads;
        // not all of them, or it would have fitted.
        let some = room.saturating_sub(bytes) / supply.read_size.max(1);
        let most = group.0.saturating_sub(u64::from(group.0 > 0));
        caps.push(reads + some.min(most));
        // Everything due in this slot must have had room.
        if ahead > 0 && group.0 > 0 && next <= ahead + 1 {
            return ControlFlow::Break(books.current() + ahead as u64);
        }
        // What is released pays first for memory that is in use beyond the limit.
        let more = slot.freed().saturating_sub(over);
        over = over.saturating_sub(slot.freed());
        room += more;
        ControlFlow::Continue(())
    });
    match full {
        ControlFlow::Break(at) => Err(Verdict::refuse(Resource::Memory, at, group.0)),
        ControlFlow::Continue(()) => Ok(caps),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admission::tests::fixture;

    #[test]
    fn who_could_be_read_slot_by_slot_never_waits_for_memory() {
        let mut quick = 0;
        for seed in 0..20_000 {
            let mut random = fastrand::Rng::with_seed(seed);
            let alike = random.bool();
            let fixture = fixture(&mut random, alike);
            let (books, demand, supply) =
                (fixture.books(), fixture.demand(), fixture.supply.supply());
            let seen: Vec<u32> = (0..random.usize(1..5)).map(|_| random.u32(1..5)).collect();
            let curve = ServiceCurve::of_slots([&seen[..]]).expect("a slot was seen");
            let beta = Beta::new(&curve, &supply);
            let slots = Merged::new(&books, &demand);
            let (held, memory) = (books.held(), supply.memory);
            if disk_only(&slots, &books, beta.all()).is_admit()
                && each_in_its_slot(&slots, &books, held, memory, beta.0[0])
            {
                quick += 1;
                let whole = after_full_memory(&slots, &books, &supply, &beta, held, memory);
                assert_eq!(whole, Ok(()), "seed {seed}: {fixture:#?}");
            }
        }
        assert!(quick > 1000, "{quick}");
    }
}
