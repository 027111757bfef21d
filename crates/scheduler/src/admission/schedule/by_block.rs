//! The walk where there is memory for everything: quickly where there is time to spare, closely
//! where there is little.
//!
//! ```text
//!   slots   ├─── exact ───┼─ block ─┼─ block ─┼─ ? ─┤   a block: an upper bound of what its slots
//!                         ▲                    no room   take one by one
//!           known exactly ┘
//!           ├─── exact ───┴────── exact ──────┼─ ? ...   blocks were tried: now slot by slot
//! ```
//!
//! By the line the disk is done later than it is, so that a block for which there is time by the
//! line has time; where there is not enough, it says nothing. Then the walk goes back to where it
//! was last exact, and comes to the same place closely. So nobody is refused but by what is known
//! exactly, and each slot is walked closely at most once. It is refused who is refused when every
//! slot is walked closely, and nobody else.

use super::exact::exact;
use super::memory::UnlimitedMemory;
use super::state::Schedule;
use super::{Charge, Merged};
use crate::blocks::{BLOCK, Block};
use crate::windows::WindowPlan;

/// Whether every window is done by its deadline. Where there is more time than anywhere before,
/// slots are taken by the block, each for a window of its own: none of them is the tightest.
pub(super) fn by_block<C: Charge>(
    walk: &mut Schedule,
    slots: &Merged<'_>,
    charge: &C,
    plan: &mut WindowPlan,
) -> bool {
    // To where the first block begins.
    let (mut ahead, mut blocks) = (slots.first_block().min(slots.count()), 1);
    if !exact(walk, slots, charge, &mut UnlimitedMemory, plan, 0..ahead) {
        return false;
    }
    loop {
        let (from, windows) = (ahead, plan.windows().len());
        // Blocks are tried on a copy: `walk` stays where it is known exactly.
        let mut tried = *walk;
        tried.close(plan);
        while ahead < slots.count() && has_time(&mut tried, slots, charge, ahead) {
            ahead += BLOCK;
        }
        if ahead >= slots.count() {
            *walk = tried;
            return true;
        }
        // The line is not worth its while where it does not come far.
        blocks = if ahead - from > blocks * BLOCK { 1 } else { (2 * blocks).min(MOST_BLOCKS) };
        plan.truncate(windows);
        ahead = (ahead + blocks * BLOCK).min(slots.count());
        if !exact(walk, slots, charge, &mut UnlimitedMemory, plan, from..ahead) {
            return false;
        }
    }
}

// Whether the line above what the next block costs leaves more time than there was anywhere before;
// then it is taken up. No window is open.
fn has_time<C: Charge>(walk: &mut Schedule, slots: &Merged<'_>, charge: &C, ahead: usize) -> bool {
    // With less to spare than `slack` the block would be the tightest place, and that must be known
    // exactly.
    let time = walk.end.saturating_add(walk.slot).saturating_sub(walk.slack);
    if time <= walk.free {
        return false;
    }
    let Block { reads, transfer } = slots.block(ahead);
    let ends = walk.free.saturating_add(charge.sweeps_take(BLOCK as u64, reads, transfer));
    if ends > time {
        return false;
    }
    walk.free = ends;
    walk.before += reads;
    walk.end = walk.end.saturating_add(walk.slot.saturating_mul(BLOCK as u64));
    true
}

/// Blocks that are walked closely before the line is tried again, at most.
const MOST_BLOCKS: usize = 64;
