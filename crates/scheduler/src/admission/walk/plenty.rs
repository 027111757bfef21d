//! The walk where there is memory for everything: quickly where there is time to spare, closely where
//! there is little.
//!
//! ```text
//!   slots      ├──── closely ────┼─ block ─┼─ block ─┼─ ? ─┤       a block: a line above what its slots
//!                                ▲                    too near        cost one by one
//!              known exactly ────┘
//!              ├──── closely ────┴─────── closely ───┼─ ? ...     what the line was for is walked closely
//! ```
//!
//! By the line the disk is done later than it is, so that a block for which there is time by the line has
//! time; where there is not enough, it says nothing. Then the walk goes back to where it was last
//! exact, and comes to the same place closely. So nobody is refused but by what is known exactly, and
//! each slot is walked closely at most once. It is refused who is refused when every slot is walked
//! closely, and nobody else.

use super::closely::closely;
use super::room::Plenty;
use super::state::Walk;
use super::{Charge, Merged};
use crate::blocks::{BLOCK, Block};
use crate::windows::Plan;

/// Whether every window is done by its deadline. Where there is more time than anywhere before, slots
/// are taken by the block, each for a window of its own: none of them is the tightest.
pub(super) fn with_plenty<C: Charge>(
    walk: &mut Walk,
    slots: &Merged<'_>,
    charge: &C,
    plan: &mut Plan,
) -> bool {
    // To where the first block begins.
    let (mut ahead, mut blocks) = (slots.first_block().min(slots.count()), 1);
    if !closely(walk, slots, charge, &mut Plenty, plan, 0..ahead) {
        return false;
    }
    loop {
        let (exact, from, windows) = (*walk, ahead, plan.windows().len());
        while ahead < slots.count() && has_time(walk, slots, charge, plan, ahead) {
            ahead += BLOCK;
        }
        if ahead >= slots.count() {
            return true;
        }
        // The line is not worth its while where it does not come far.
        blocks = if ahead - from > blocks * BLOCK { 1 } else { (2 * blocks).min(MOST_BLOCKS) };
        if ahead > from {
            *walk = exact;
            plan.truncate(windows);
        }
        ahead = (ahead + blocks * BLOCK).min(slots.count());
        if !closely(walk, slots, charge, &mut Plenty, plan, from..ahead) {
            return false;
        }
    }
}

// Whether the line above what the next block costs leaves more time than there was anywhere before;
// then it is taken up.
fn has_time<C: Charge>(
    walk: &mut Walk,
    slots: &Merged<'_>,
    charge: &C,
    plan: &mut Plan,
    ahead: usize,
) -> bool {
    let (done, slack) = walk.so_far();
    let time = walk.end.saturating_add(walk.slot).saturating_sub(slack);
    if time <= done {
        return false;
    }
    let Block { reads, transfer } = slots.block(ahead);
    let ends = done.saturating_add(charge.sweeps_take(BLOCK as u64, reads, transfer));
    if ends > time {
        return false;
    }
    walk.close(plan);
    walk.free = ends;
    walk.before += reads;
    walk.end = walk.end.saturating_add(walk.slot.saturating_mul(BLOCK as u64));
    true
}

/// Blocks that are walked closely before the line is tried again, at most.
const MOST_BLOCKS: usize = 64;
