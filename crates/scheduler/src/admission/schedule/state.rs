//! Where a walk has come to: the window that is open, and what the closed ones came to.

use super::Charge;
use crate::admission::memory::{Merged, Pair};
use crate::admission::{Resource, Verdict};
use crate::visits::{Since, Swept};
use crate::windows::{MOST_READS, WindowPlan};
use std::ops::Range;
use units::SlotIndex;

/// Times in nanoseconds of the engine's clock, slots from the current one.
#[derive(Clone, Copy)]
pub(super) struct Schedule {
    pub(super) current: SlotIndex,
    /// Nanoseconds of a slot.
    pub(super) slot: u64,
    /// When the windows that are closed are done.
    pub(super) free: u64,
    /// Visits in them, since the disk last waited.
    pub(super) before: u64,
    /// The least time between a closed window's end and its deadline.
    pub(super) slack: u64,
    /// The end of the slot that was taken up last.
    pub(super) end: u64,
    pub(super) window: Window,
    pub(super) short: Short,
}

/// What could not be done.
#[derive(Clone, Copy, Default)]
pub(super) struct Short {
    pub(super) ahead: usize,
    /// Bytes of buffers; if there are enough, it is the disk's time.
    pub(super) bytes: u64,
    pub(super) reads: u64,
    pub(super) takes: u64,
    pub(super) ends: u64,
}

/// A window that grows; none, while it has no reads.
#[derive(Clone, Copy, Default)]
pub(super) struct Window {
    pub(super) first: usize,
    pub(super) last: usize,
    pub(super) swept: Swept,
    pub(super) begins: u64,
    pub(super) ends: u64,
    pub(super) deadline: u64,
}

impl Schedule {
    /// Before the first slot, with a disk that is free at this time.
    pub(super) fn new(current: SlotIndex, slot: u64, free: u64) -> Self {
        Self {
            current,
            slot,
            free,
            before: 0,
            slack: u64::MAX,
            end: current.0.saturating_mul(slot),
            window: Window::default(),
            short: Short::default(),
        }
    }

    /// When everything taken up is done, and the least time that any window had to spare.
    #[inline(always)]
    pub(super) fn so_far(&self) -> (u64, u64) {
        let Window { swept, ends, deadline, .. } = self.window;
        if swept.reads > 0 {
            (ends, self.slack.min(deadline - ends))
        } else {
            (self.free, self.slack)
        }
    }

    /// Whether the slot's reads go into the window that is open, which is then done later.
    #[inline(always)]
    pub(super) fn joins(&mut self, charge: &impl Charge, ahead: usize, slot: Pair<'_>) -> bool {
        let window = &mut self.window;
        if window.swept.reads == 0 || window.swept.reads + slot.reads() > MOST_READS {
            return false;
        }
        let swept = window.swept.and(slot.swept(Since::slots(ahead - window.first)));
        let ends = window.begins.saturating_add(charge.takes(self.before, swept));
        // The window keeps the deadline of its first slot, the earliest of its reads.
        if ends > window.deadline {
            return false;
        }
        (window.last, window.swept, window.ends) = (ahead, swept, ends);
        true
    }

    /// Puts several slots into the open window at once, without those at the end that would make
    /// too many reads or bytes; returns how many joined. None join if they would be done too late.
    #[inline(always)]
    pub(super) fn joins_all(
        &mut self,
        charge: &impl Charge,
        slots: &Merged<'_>,
        range: Range<usize>,
        most_bytes: u64,
    ) -> usize {
        let window = &mut self.window;
        if window.swept.reads == 0 {
            return 0;
        }
        let (mut swept, mut last, mut ahead) = (window.swept, window.last, range.start);
        while ahead < range.end {
            let slot = slots.pair(ahead);
            let (reads, bytes) = (swept.reads + slot.reads(), swept.bytes + slot.bytes());
            if reads > MOST_READS || bytes > most_bytes {
                break;
            }
            swept = swept.and(slot.swept(Since::slots(ahead - window.first)));
            // Slots without reads at the end are left out of the plan's window.
            last = if slot.reads() > 0 { ahead } else { last };
            ahead += 1;
        }
        let joined = ahead - range.start;
        if joined == 0 {
            return 0;
        }
        let ends = window.begins.saturating_add(charge.takes(self.before, swept));
        if ends > window.deadline {
            return 0;
        }
        (window.last, window.swept, window.ends) = (last, swept, ends);
        self.end = self.end.saturating_add(self.slot.saturating_mul(joined as u64));
        joined
    }

    /// The window that is open, if there is one, is read as it is.
    #[inline(always)]
    pub(super) fn close(&mut self, plan: &mut WindowPlan) {
        let window = &self.window;
        if window.swept.reads > 0 {
            // The plan stores only windows of several slots.
            if window.last > window.first {
                plan.join(self.current + window.first as u64, self.current + window.last as u64);
            }
            self.slack = self.slack.min(window.deadline - window.ends);
            self.free = window.ends;
            self.before += window.swept.visits();
            self.window.swept = Swept::default();
        }
    }

    /// A window begins with this slot's reads at this time; not, if it would be done too late.
    #[inline(always)]
    pub(super) fn open(
        &mut self,
        charge: &impl Charge,
        ahead: usize,
        slot: Pair<'_>,
        begins: u64,
    ) -> bool {
        let swept = slot.swept(Since::NOW);
        // The disk waits for buffers here, and `before` counts visits since the last wait.
        if begins > self.free {
            self.before = 0;
        }
        let takes = charge.takes(self.before, swept);
        let (ends, deadline) = (begins.saturating_add(takes), self.end);
        if ends > deadline {
            self.short = Short { ahead, bytes: 0, reads: swept.reads, takes, ends };
            return false;
        }
        let (first, last) = (ahead, ahead);
        self.window = Window { first, last, swept, begins, ends, deadline };
        true
    }

    /// Notes that a slot's reads lack `bytes` of buffers; returns false (not on time).
    pub(super) fn lacks(&mut self, ahead: usize, bytes: u64) -> bool {
        self.short = Short { ahead, bytes, ..self.short };
        false
    }

    pub(super) fn refuse(self) -> Verdict {
        let Short { ahead, bytes, reads, takes, ends } = self.short;
        let slot = self.current + ahead as u64;
        if bytes > 0 {
            return Verdict::refuse(Resource::Memory, slot, bytes);
        }
        // Begun as soon as the disk was free, the window would be in time: the wait for memory made
        // it late.
        let waited = self.free.saturating_add(takes) <= self.end;
        let missing = (ends - self.end).div_ceil((takes / reads).max(1)).min(reads);
        let resource = if waited { Resource::Memory } else { Resource::Disk };
        Verdict::refuse(resource, slot, missing)
    }
}
