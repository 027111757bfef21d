//! vbrSim: play the schedule forward, slot by slot, at the guaranteed rate and in finite memory;
//! admit if no read would be late.
//!
//! ```text
//!   for each slot t after the current one:
//!       read up to minRead pieces, earliest due first, while a buffer is free
//!       anything due by the end of t not read?  → refuse (disk, or memory if that stopped it)
//!       let go of the buffers whose time is up at the end of t
//! ```
//!
//! Why admitted means on time, while the disk completes `min_read` reads per slot: the run takes
//! reads in the same order (by due slot) and stops for the same reasons, so by induction over
//! slots it is never behind the simulation. Where pieces differ in size, a group of reads due in
//! the same slot is taken to use the most memory that any order of them could (`n` reads of a
//! group of `b` bytes use at most `min(b, n × read_size)`), and the run may use less. What is
//! already in memory counts as read; newcomers are tested against that true state.
//!
//! The current slot is left out: what is due in it was issued when it began, or is late already.
//! Other work that is left in the device then ([`Supply::owed`]) comes first.

use super::memory::{Merged, each_in_its_slot};
use super::{AdmissionRequest, Policy, Resource, Slack, Supply, Verdict};
use crate::books::DiskBooks;
use crate::demand::Demand;
use std::ops::ControlFlow;

pub(super) struct VbrSim;

impl Policy for VbrSim {
    fn decide(&self, request: AdmissionRequest<'_>) -> Verdict {
        let AdmissionRequest { books, supply, demand } = request;
        simulate(books, supply, demand)
    }
}

/// The least, over all slots ahead, by which the reads guaranteed exceed those due; zero if some
/// would be late, `u64::MAX` if nothing is due. Looks at the disk only.
pub fn least_slack(books: &DiskBooks, supply: &Supply<'_>) -> u64 {
    let can = at_least(supply);
    match disk_only(&Merged::new(books, &Demand::default()), books, can) {
        Verdict::Admit { slack: Slack::Reads(slack), .. } => slack,
        _ => 0,
    }
}

/// How many of the coming slot's reads, at most `wanted`, can be given to work without deadlines
/// such that everything booked stays on time. To be asked before the slot's batch is chosen.
pub fn spare_reads(books: &DiskBooks, supply: &Supply<'_>, wanted: u32) -> u32 {
    // The slot that is about to begin is the books' current one; the simulation starts one
    // later, as if that slot were still to come.
    let fits = |spare: &u32| {
        let owed = supply.owed.saturating_add(*spare);
        owed <= supply.min_read && starting_now(books, &Supply { owed, ..*supply }).is_admit()
    };
    (1..=wanted).take_while(fits).last().unwrap_or(0)
}

fn starting_now(books: &DiskBooks, supply: &Supply<'_>) -> Verdict {
    let nothing = Demand::default();
    run(books, supply, &nothing, 0)
}

fn simulate(books: &DiskBooks, supply: &Supply<'_>, demand: &Demand) -> Verdict {
    let slots = Merged::new(books, demand);
    let verdict = disk_only(&slots, books, at_least(supply));
    let Verdict::Admit { slack, .. } = verdict else { return verdict };
    let reserved = books.reserved() + demand.reserve;
    let held = books.held() + demand.held();
    if reserved + held + books.unread() + demand.bytes() <= supply.memory {
        return verdict; // memory for everything at once: it never binds
    }
    let memory = supply.memory.saturating_sub(reserved);
    // One pass; the simulation below is needed only where memory stops reading ahead.
    let reads = supply.min_read.into();
    if supply.owed == 0 && each_in_its_slot(&slots, books, held, memory, reads) {
        return verdict;
    }
    match run(books, supply, demand, 1) {
        Verdict::Admit { .. } => Verdict::admit(slack),
        refused @ Verdict::Refuse(_) => refused,
    }
}

/// With memory for everything the simulation is one comparison per slot: by the end of the next
/// slot, and of each after it, the disk `can` have made so many reads in all.
pub(super) fn disk_only(
    slots: &Merged<'_>,
    books: &DiskBooks,
    mut can: impl Iterator<Item = u64>,
) -> Verdict {
    let mut due = u64::from(books.overdue().reads) + slots.reads(0);
    let mut slack = u64::MAX;
    // Slot 1 is compared even if nothing is booked for it: overdue reads are made there.
    let missed = slots.each(1..slots.count().max(2), |ahead, slot| {
        let (reads, can) = (slot.reads(), can.next().unwrap_or(u64::MAX));
        due += reads;
        if due > can {
            return ControlFlow::Break((ahead, due - can));
        }
        slack = if reads > 0 { slack.min(can - due) } else { slack };
        ControlFlow::Continue(())
    });
    match missed {
        ControlFlow::Continue(()) => Verdict::admit(Slack::Reads(slack)),
        ControlFlow::Break((ahead, missing)) => {
            Verdict::refuse(Resource::Disk, books.current() + ahead as u64, missing)
        }
    }
}

/// minRead in the next slot and in each after it, but for what the disk owes other work.
pub(super) fn at_least(supply: &Supply<'_>) -> impl Iterator<Item = u64> + use<> {
    let (min_read, owed) = (u64::from(supply.min_read), u64::from(supply.owed));
    std::iter::successors(Some(min_read), move |all| Some(all + min_read))
        .map(move |all| all.saturating_sub(owed))
}

// The whole simulation, from slot `from` (counted from the current one) on.
fn run(books: &DiskBooks, supply: &Supply<'_>, demand: &Demand, from: usize) -> Verdict {
    let slots = Merged::new(books, demand);
    let memory = supply.memory.saturating_sub(books.reserved() + demand.reserve);
    let mut used = books.held() + demand.held();
    // Reads are simulated in groups of the same due slot: what is left of one is all that the
    // simulation needs to know of single reads.
    let mut group = Group::default();
    group.add(u64::from(books.overdue().reads), books.overdue().bytes);
    for past in 0..from {
        let slot = slots.pair(past);
        group.add(slot.reads(), slot.bytes());
        used = used.saturating_sub(slot.freed());
    }
    let len = slots.count().max(from + 1);
    let mut next = from; // the first slot whose reads are not in `group`
    let mut owed = u64::from(supply.owed);
    let late = slots.each(from..len, |ahead, slot| {
        let mut short_of = Resource::Disk;
        let mut reads = u64::from(supply.min_read);
        let first = owed.min(reads);
        (owed, reads) = (owed - first, reads - first);
        loop {
            while group.reads == 0 && next < len {
                let slot = slots.pair(next);
                group.add(slot.reads(), slot.bytes());
                next += 1;
            }
            if reads == 0 || group.reads == 0 {
                break;
            }
            let (taken, bytes) = group.take(reads, memory.saturating_sub(used), supply.read_size);
            // No buffer for the most urgent read: the disk idles for the rest of the slot.
            if taken == 0 {
                short_of = Resource::Memory;
                break;
            }
            reads -= taken;
            used += bytes;
        }
        // Slots before `next` are read but for what is left in `group`: late is what is left of
        // this slot's group, and whole slots that were not reached.
        if next <= ahead || (group.reads > 0 && next == ahead + 1) {
            let late: u64 =
                group.reads + (next..=ahead).map(|i| slots.pair(i).reads()).sum::<u64>();
            if late > 0 {
                let slot = books.current() + ahead as u64;
                return ControlFlow::Break(Verdict::refuse(short_of, slot, late));
            }
        }
        // Buffers are released by the clock at the end of the slot, read ahead or not.
        used = used.saturating_sub(slot.freed());
        ControlFlow::Continue(())
    });
    match late {
        ControlFlow::Break(refused) => refused,
        ControlFlow::Continue(()) => Verdict::admit(Slack::Unknown),
    }
}

/// Reads due in the same slot, not yet simulated.
#[derive(Default)]
struct Group {
    reads: u64,
    bytes: u64,
}

impl Group {
    fn add(&mut self, reads: u64, bytes: u64) {
        self.reads += reads;
        self.bytes += bytes;
    }

    /// Takes as many reads as are sure to fit: their number, and the most bytes they can have.
    fn take(&mut self, most: u64, room: u64, read_size: u64) -> (u64, u64) {
        let mut reads = self.reads.min(most);
        if self.most_bytes(reads, read_size) > room {
            // It is not known which reads come first, so each counts as the largest.
            reads = reads.min(room / read_size.max(1));
        }
        let bytes = self.most_bytes(reads, read_size);
        self.reads -= reads;
        self.bytes -= bytes;
        (reads, bytes)
    }

    fn most_bytes(&self, reads: u64, read_size: u64) -> u64 {
        if reads == self.reads {
            self.bytes
        } else {
            // Some of a group may be its largest reads, but never more bytes than the group has.
            self.bytes.min(reads.saturating_mul(read_size))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admission::tests::fixture;
    use units::SlotIndex;

    #[test]
    fn who_could_be_read_slot_by_slot_is_let_in_by_the_whole_simulation() {
        let (mut quick, mut overdue) = (0, 0);
        for seed in 0..20_000 {
            let mut random = fastrand::Rng::with_seed(seed);
            let alike = random.bool();
            let fixture = fixture(&mut random, alike);
            let (mut books, demand, supply) =
                (fixture.books(), fixture.demand(), fixture.supply.supply());
            if demand.reads() == 0 || demand.first() > SlotIndex(1) {
                books.advance(SlotIndex(random.u64(0..3)));
            }
            let slots = Merged::new(&books, &demand);
            let disk = disk_only(&slots, &books, at_least(&supply));
            let (held, reads) = (books.held(), supply.min_read.into());
            if disk.is_admit() && each_in_its_slot(&slots, &books, held, supply.memory, reads) {
                quick += 1;
                overdue += u32::from(books.overdue().reads > 0);
                let whole = run(&books, &supply, &demand, 1);
                assert!(whole.is_admit(), "seed {seed}: {fixture:#?}");
            }
        }
        assert!(quick > 1000 && overdue > 50, "{quick} {overdue}");
    }
}
