//! Which later starts a refusal rules out, so that nobody is asked about each of them.
//!
//! Whatever windows are made, what is due by the end of the slot in which somebody was refused
//! takes at least so long:
//!
//! ```text
//!   slot          0   1   2   3   4   5   6   7   8 ▲ refused    time: until the end of slot 8
//!   booked       40  70  90  60 210 190 220 200 205
//!               └── one sweep ───┘ │   │   │   │   │            no windows take less together
//!                of what is left   └── each by itself          than one window of all
//!   the newcomer    ├─ 1 ─┴─ 2 ─┴─ 1 ─ ... ─┤                 what the disk transfers for it by
//!        later ──▶      ├─ 1 ─┴─ 2 ─┴─ 1 ─ ...                  then is less, the later it begins
//! ```
//!
//! Slots of which no two neighbours fit into a window, by what is booked alone, are windows by
//! themselves whoever comes, and most of a full solid-state disk's are ([`Booked`]). If all are
//! from some slot on, the schedule is walked only to there for each start that the sums above do
//! not rule out; beyond, what is booked takes the same each time, and the newcomer's reads what
//! they add to their slots ([`Tail`]).

use super::exact::exact;
use super::memory::UnlimitedMemory;
use super::{Charge, Setting};
use crate::admission::memory::Merged;
use crate::admission::{Shortage, Supply};
use crate::books::DiskBooks;
use crate::demand::Demand;
use crate::ledger::SlotLoad;
use crate::visits::{Since, Swept};
use crate::windows::{MOST_READS, WindowPlan};
use std::ops::Range;
use units::{SlotIndex, nanos};

/// How many slots from its own on the demand cannot begin in. For charges that are subadditive.
pub(super) fn ruled_out(
    books: &DiskBooks,
    supply: &Supply<'_>,
    demand: &Demand,
    charge: &impl Charge,
    refused: Shortage,
) -> u64 {
    let slot = nanos(supply.slot);
    let end = refused.slot.next().0.saturating_mul(slot);
    let time = end.saturating_sub(supply.free_at.0).saturating_sub(charge.after_pause());
    let ahead = |from: SlotIndex| {
        let ahead = refused.slot.next().0.saturating_sub(from.0);
        usize::try_from(ahead).unwrap_or(usize::MAX)
    };
    let booked = Booked::new(books, charge, ahead(books.current()));
    let ours = &demand.slots()[..ahead(demand.first()).min(demand.slots().len())];
    // Where the demand ended before that slot, the first slots only move what is due later.
    let idle = ahead(demand.first()) - ours.len();
    let mut sweep = ours.iter().fold(booked.sweep, |sweep, load| sweep.and(booked.swept(load)));
    let setting = Setting::new(books, supply, demand, charge);
    // The walk ignores memory, so it is used only where memory refuses nobody.
    let walked = !setting.binds && booked.tail <= booked.loads.len() / WORTH_WHILE;
    let mut tail: Option<Tail<'_>> = None;
    let mut later = 1;
    loop {
        if later > idle {
            match ours.len().checked_sub(later - idle) {
                Some(leaves) => sweep = sweep.without(booked.swept(&ours[leaves])),
                None => return later as u64,
            }
        }
        // The lower bound leaves time for this start: it may fit.
        if booked.alone.saturating_add(charge.takes(0, sweep)) <= time {
            if !walked || later > MOST_WALKED {
                return later as u64;
            }
            let mut walk = setting.walk;
            let slots = Merged::new(books, demand).later(later);
            let mut plan = WindowPlan::default();
            if exact(&mut walk, &slots, charge, &mut UnlimitedMemory, &mut plan, 0..booked.tail) {
                let tail = tail.get_or_insert_with(|| Tail::new(&booked, charge, ours));
                let lead = ahead(books.current()).saturating_sub(ahead(demand.first()));
                if walk.so_far().0.saturating_add(tail.takes(charge, lead + later)) <= end {
                    return later as u64;
                }
            }
        } else if later < idle {
            // As long as nothing leaves.
            later = idle;
        }
        later += 1;
    }
}

// What is booked by some slot.
struct Booked<'a> {
    loads: &'a [SlotLoad],
    /// Nanoseconds that slots take at least that are windows by themselves, and how many they are.
    alone: u64,
    singles: u64,
    /// All the others.
    sweep: Swept,
    /// From this slot on there are no others, and these take so long.
    tail: usize,
    of_tail: u64,
}

impl<'a> Booked<'a> {
    fn new(books: &'a DiskBooks, charge: &impl Charge, until: usize) -> Self {
        let all = books.ahead_of_now();
        let loads = &all[..until.min(all.len())];
        let sweep = Swept { follows: 0, ..Swept::of(&books.overdue(), Since::NOW) };
        let mut booked = Self { loads, alone: 0, singles: 0, sweep, tail: 0, of_tail: 0 };
        // No slot before the first one can join it.
        let mut parted = true;
        for (slot, load) in loads.iter().enumerate() {
            let next = all.get(slot + 1).map_or(0, |next| u64::from(next.reads));
            let before = std::mem::replace(&mut parted, u64::from(load.reads) + next > MOST_READS);
            if before && parted {
                let takes = charge.takes(0, Swept::of(load, Since::NOW)).saturating_sub(ROUNDING);
                booked.singles += 1;
                booked.alone = booked.alone.saturating_add(takes);
                booked.of_tail = booked.of_tail.saturating_add(takes);
            } else {
                booked.sweep = booked.sweep.and(Swept::of(load, Since::slots(slot)));
                (booked.tail, booked.of_tail) = (slot + 1, 0);
            }
        }
        booked
    }

    /// What a newcomer's slot adds to the sweep of the others, wherever it comes to lie: as many
    /// may follow as can. Where it may be one that is alone, not more than what is transferred.
    fn swept(&self, load: &SlotLoad) -> Swept {
        // A lower bound: too few positionings are allowed here, too many are not.
        match Swept::of(load, Since::EVER) {
            swept if self.singles == 0 => swept,
            swept => Swept { reads: 0, follows: 0, ..swept },
        }
    }
}

// What slots take at least that are windows by themselves, with a newcomer's reads in them.
struct Tail<'a> {
    booked: &'a Booked<'a>,
    /// The newcomer's slots in which it makes one read, and those in which it makes more.
    one: Single,
    more: Vec<(usize, Swept)>,
}

impl<'a> Tail<'a> {
    fn new(booked: &'a Booked<'a>, charge: &impl Charge, ours: &[SlotLoad]) -> Self {
        let of = |(at, load): (usize, &SlotLoad)| (at, Swept::of(load, Since::NOW));
        let reads = ours.iter().enumerate().filter(|(_, load)| load.reads > 0).map(of);
        let (one, more) = reads.partition(|(_, swept)| (swept.reads, swept.visits()) == (1, 1));
        Self { booked, one: Single::new(booked, charge, one), more }
    }

    /// Nanoseconds, if the newcomer's first slot is that.
    fn takes(&self, charge: &impl Charge, first: usize) -> u64 {
        let mut sum = self.booked.of_tail;
        for (at, swept) in &self.more {
            match self.booked.loads.get(first + at) {
                Some(load) if first + at >= self.booked.tail => {
                    sum = sum.saturating_add(added(charge, load, *swept));
                }
                _ => {}
            }
        }
        let tail = self.booked.tail..self.booked.loads.len();
        sum.saturating_add(self.one.takes(charge, &tail, first))
    }
}

// A newcomer's slots with one read each.
struct Single {
    /// By slot from the current one on: what one read more costs there beside transfer.
    positioning: Vec<u64>,
    /// Slots of the stream with reads, from its first slot on; and what is transferred in those
    /// before each, and in all.
    slots: Vec<usize>,
    transfer: Vec<Swept>,
}

impl Single {
    fn new(booked: &Booked<'_>, charge: &impl Charge, slots: Vec<(usize, Swept)>) -> Self {
        let one = Swept { reads: 1, ..Swept::default() };
        let mut transfer = Vec::with_capacity(slots.len() + 1);
        transfer.push(Swept::default());
        transfer.extend(slots.iter().scan(Swept::default(), |sum, (_, swept)| {
            *sum = sum.and(Swept { reads: 0, follows: 0, ..*swept });
            Some(*sum)
        }));
        let slots = slots.into_iter().map(|(at, _)| at).collect();
        let positioning = booked.loads.iter().map(|load| added(charge, load, one)).collect();
        Self { positioning, slots, transfer }
    }

    /// Nanoseconds of those that lie in these slots, if the first is that.
    fn takes(&self, charge: &impl Charge, within: &Range<usize>, first: usize) -> u64 {
        let [from, to] =
            [within.start, within.end].map(|end| self.slots.partition_point(|at| first + at < end));
        let here = self.positioning.get(first..).unwrap_or_default();
        let slots = self.slots[from..to].iter();
        let positioning = slots.fold(0_u64, |sum, at| sum.saturating_add(here[*at]));
        let transfer = self.transfer[to].without(self.transfer[from]);
        positioning.saturating_add(charge.takes(0, transfer))
    }
}

// What is added to what a slot takes by these reads in it.
#[inline(always)]
fn added(charge: &impl Charge, load: &SlotLoad, reads: Swept) -> u64 {
    let there = Swept::of(load, Since::NOW);
    charge.takes(0, there.and(reads)).saturating_sub(charge.takes(0, there))
}

/// Nanoseconds by which a charge may be rounded down more often where sums are charged in parts.
const ROUNDING: u64 = 8;

/// Starts are walked to the tail if that is at most one part of so many of the way.
const WORTH_WHILE: usize = 4;

/// Starts further off than this many slots are not walked: each walk takes some microseconds.
const MOST_WALKED: usize = 24;
