//! Which later starts a refusal rules out, so that nobody is asked about each of them.
//!
//! Whatever windows are made, what is due by the end of the slot in which somebody was refused takes
//! at least so long:
//!
//! ```text
//!   slot          0   1   2   3   4   5   6   7   8 ▲ refused      time: until the end of slot 8
//!   booked       40  70  90  60 210 190 220 200 205
//!               └── one sweep ───┘ │   │   │   │   │                no windows take less together than
//!                of what is left   └── each by itself              the one that they could be joined to
//!   the newcomer    ├─ 1 ─┴─ 2 ─┴─ 1 ─ ... ─┤                     what the disk transfers for it by then
//!        later ──▶      ├─ 1 ─┴─ 2 ─┴─ 1 ─ ...                      is the less, the later it begins
//! ```
//!
//! Slots of which no two neighbours fit into a window, by what is booked alone, are windows by themselves
//! whoever comes, and most of a full solid-state disk's are. There a newcomer's reads are charged
//! what they transfer, and no positioning: how many lanes are idle anyhow is different in each slot.

use super::Charge;
use crate::admission::{Shortage, Supply};
use crate::books::DiskBooks;
use crate::demand::Demand;
use crate::ledger::Load;
use crate::visits::{Since, Swept};
use crate::windows::MOST_READS;
use units::SlotIndex;

/// How many slots from its own on the demand cannot begin in. For charges that are subadditive.
pub(super) fn ruled_out(
    books: &DiskBooks,
    supply: &Supply<'_>,
    demand: &Demand,
    charge: &impl Charge,
    refused: Shortage,
) -> u64 {
    let slot = u64::try_from(supply.slot.as_nanos()).unwrap_or(u64::MAX);
    let time = refused.slot.next().0.saturating_mul(slot).saturating_sub(supply.free_at.0);
    let ahead = |from: SlotIndex| {
        let ahead = refused.slot.next().0.saturating_sub(from.0);
        usize::try_from(ahead).unwrap_or(usize::MAX)
    };
    let Booked { alone, slots, mut sweep } = booked(books, charge, ahead(books.current()));
    // Wherever they come to lie: as many as may follow.
    let swept = |load: &Load| match (Swept::of(load, Since::EVER), slots) {
        (swept, 0) => swept,
        (swept, _) => Swept { reads: 0, follows: 0, ..swept },
    };
    let ours = &demand.slots()[..ahead(demand.first()).min(demand.slots().len())];
    for load in ours {
        sweep = sweep.and(swept(load));
    }
    // Where the demand ended before that slot, the first slots only move what is due later.
    let later = ahead(demand.first()) - ours.len();
    let rounding = ROUNDING.saturating_mul(slots);
    let too_long = |sweep: Swept| {
        let least = alone.saturating_add(charge.takes(0, sweep)).saturating_sub(rounding);
        least > time
    };
    if !too_long(sweep) {
        return 1;
    }
    let moved = |sweep: &mut Swept, load: &Load| {
        *sweep = sweep.without(swept(load));
        too_long(*sweep)
    };
    let out = ours.iter().rev().take_while(|load| moved(&mut sweep, load)).count();
    (later + out + 1) as u64
}

// What is booked by some slot.
struct Booked {
    /// Nanoseconds of the slots that are windows by themselves, and how many they are.
    alone: u64,
    slots: u64,
    /// All the others.
    sweep: Swept,
}

fn booked(books: &DiskBooks, charge: &impl Charge, until: usize) -> Booked {
    let mut sweep = Swept { follows: 0, ..Swept::of(&books.overdue(), Since::NOW) };
    let (mut alone, mut slots) = (0_u64, 0);
    let loads = books.ahead_of_now();
    let until = until.min(loads.len());
    // Whether a slot and the next one are too many for a window.
    let parted = |(slot, next): (&Load, Option<&Load>)| {
        u64::from(slot.reads) + next.map_or(0, |next| u64::from(next.reads)) > MOST_READS
    };
    let mut before = true;
    for (since, load) in loads[..until].iter().enumerate() {
        let after = parted((load, loads.get(since + 1)));
        if before && after {
            slots += 1;
            alone = alone.saturating_add(charge.takes(0, Swept::of(load, Since::NOW)));
        } else {
            sweep = sweep.and(Swept::of(load, Since::slots(since)));
        }
        before = after;
    }
    Booked { alone, slots, sweep }
}

/// Nanoseconds by which a charge may be rounded down more often where sums are charged in parts.
const ROUNDING: u64 = 4;
