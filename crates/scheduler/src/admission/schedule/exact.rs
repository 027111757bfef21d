//! The walk slot by slot: each into the window that is open, if that is done in time with it and
//! fits into memory; or else a new one.
//!
//! ```text
//!   window open     ├ 1 ├ 2 ├ 3 ├ 4 ├ 5 ┤  6 ...  1 to 5 join; 6 is late or too many: close, open
//!   asked at once   └───────  8  ───────┴───┘     several together: if all are in time, each is
//!   crowded         │ 1 │ 2 │ 3 │ 4 │ ...         no two neighbours fit: no window is kept open
//! ```
//!
//! What is done together comes to the same as one by one: no charge falls with more reads.

use super::memory::MemoryModel;
use super::state::{Schedule, Short, Window};
use super::{Charge, Merged};
use crate::visits::Since;
use crate::windows::{MOST_READS, WindowPlan};
use std::ops::{ControlFlow, Range};

/// Whether these slots, which come next, are on time.
pub(super) fn exact<C: Charge, R: MemoryModel>(
    state: &mut Schedule,
    slots: &Merged<'_>,
    charge: &C,
    memory: &mut R,
    plan: &mut WindowPlan,
    range: Range<usize>,
) -> bool {
    let (mut walk, mut ahead, mut on_time) = (*state, range.start, true);
    while ahead < range.end && on_time {
        let slot = slots.pair(ahead);
        if walk.window.swept.reads + slot.reads() > MOST_READS {
            // `crowded` begins without an open window.
            memory.take(walk.window.swept.bytes);
            walk.close(plan);
            (ahead, on_time) = crowded(&mut walk, slots, charge, memory, ahead..range.end);
            continue;
        }
        // One charge for several slots. If all of them are too late, each is tried by itself below.
        let together = ahead..(ahead + TOGETHER).min(range.end);
        let joined = walk.joins_all(charge, slots, together, memory.most());
        if joined > 0 {
            ahead += joined;
            continue;
        }
        let fits = walk.window.swept.bytes + slot.bytes() <= memory.most();
        walk.end = walk.end.saturating_add(walk.slot);
        if slot.reads() > 0 && !(fits && walk.joins(charge, ahead, slot)) {
            memory.take(walk.window.swept.bytes);
            walk.close(plan);
            on_time = match memory.begins(slots, ahead, walk.free, slot.bytes()) {
                Ok(begins) => walk.open(charge, ahead, slot, begins),
                Err(bytes) => walk.lacks(ahead, bytes),
            };
        }
        ahead += 1;
    }
    *state = walk;
    on_time
}

// Slots of which no two neighbours fit into a window, so that each is one and the last is left
// open: where they end, and whether all were on time. What `Walk::open` and `Walk::close` do,
// without a window to keep.
fn crowded<C: Charge, R: MemoryModel>(
    walk: &mut Schedule,
    slots: &Merged<'_>,
    charge: &C,
    memory: &mut R,
    range: Range<usize>,
) -> (usize, bool) {
    let (mut buffers, length) = (*memory, walk.slot);
    let (mut free, mut before, mut slack, mut end) = (walk.free, walk.before, walk.slack, walk.end);
    // What is open: before the first slot nothing, and nobody joins that.
    let (mut reads, mut visits, mut ends) = (MOST_READS + 1, 0, free);
    let mut spare = u64::MAX;
    let stopped = slots.each(range.clone(), |ahead, slot| {
        let swept = slot.swept(Since::NOW);
        if reads + swept.reads <= MOST_READS {
            return ControlFlow::Break((ahead, true));
        }
        // The previous slot's window closes here: its end and its slack count from now on.
        (free, before, slack) = (ends, before + visits, slack.min(spare));
        end = end.saturating_add(length);
        let begins = match buffers.begins(slots, ahead, free, swept.bytes) {
            Ok(begins) => begins,
            Err(bytes) => return ControlFlow::Break((ahead, walk.lacks(ahead, bytes))),
        };
        // The disk waits for buffers here, and `before` counts visits since the last wait.
        before = if begins > free { 0 } else { before };
        let takes = charge.takes(before, swept);
        ends = begins.saturating_add(takes);
        if ends > end {
            walk.short = Short { ahead, bytes: 0, reads: swept.reads, takes, ends };
            return ControlFlow::Break((ahead, false));
        }
        buffers.take(swept.bytes);
        (reads, visits, spare) = (swept.reads, swept.visits(), end - ends);
        ControlFlow::Continue(())
    });
    let (ahead, on_time) = stopped.break_value().unwrap_or((range.end, true));
    if on_time {
        let last = ahead - 1;
        let swept = slots.pair(last).swept(Since::NOW);
        // It is taken when the window is closed.
        buffers.give_back(swept.bytes);
        let begins = ends - charge.takes(before, swept);
        walk.window = Window { first: last, last, swept, begins, ends, deadline: end };
    }
    *memory = buffers;
    (walk.free, walk.before, walk.slack, walk.end) = (free, before, slack, end);
    (ahead, on_time)
}

/// Slots that are put into a window at once, where they fit.
const TOGETHER: usize = 8;
