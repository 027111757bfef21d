//! Playing the schedule forward in the disk's time, window by window, each a sweep that is charged
//! what it takes: what all policies share that count time and carry over what is read ahead.
//!
//! ```text
//!   free ──▶ window: due slots t, t+1, ... as many as are done by the end of t and fit into memory
//!            takes   what its reads are charged                 (a policy's `Charge`)
//!            done by the end of slot t?  no → refuse (disk; memory, if it waited for buffers)
//!   free at its end; the next window begins with the next due slot
//! ```
//!
//! The windows are left in the [`Plan`], which the run keeps: see `windows` for the rule, and for
//! why a run that is early, or has lost a stream, is never late for it.
//!
//! Memory: a window begins when all of it fits. Letting a part of it in early would fill memory
//! with what is not urgent and leave an urgent read without a buffer (priority inversion).

use super::memory::Merged;
use super::{Resource, Shortage, Slack, Supply, Verdict};
use crate::books::DiskBooks;
use crate::demand::Demand;
use crate::ledger::Load;
use crate::windows::{MOST_READS, Plan};
use std::ops::ControlFlow;
use std::time::Duration;
use units::SlotIndex;

/// What a sweep is taken to take.
pub(super) trait Charge {
    /// Nanoseconds of a sweep of so many reads, `before` of them having been made since the disk
    /// last waited. Never falls with reads, transfer or bytes.
    fn takes(&self, before: u64, reads: u64, transfer: u64, bytes: u64) -> u64;
}

/// Whether every window is done by its deadline, in finite memory.
pub(super) fn walk(
    books: &DiskBooks,
    supply: &Supply<'_>,
    demand: &Demand,
    charge: &impl Charge,
    plan: &mut Plan,
) -> Verdict {
    plan.clear();
    let current = books.current();
    let reserved = books.reserved() + demand.reserve;
    if reserved > supply.memory {
        return Verdict::refuse(Resource::Memory, current.next(), reserved - supply.memory);
    }
    let merged = Merged::new(books, demand);
    let overdue = books.overdue();
    let memory = Memory {
        most: supply.memory - reserved,
        used: books.held() + demand.held() + overdue.bytes,
        to: 0,
    };
    let slot = u64::try_from(supply.slot.as_nanos()).unwrap_or(u64::MAX);
    let mut walk = Walk {
        charge,
        plan,
        current,
        slot,
        free: supply.free_at.0,
        before: 0,
        slack: u64::MAX,
        end: current.0.saturating_mul(slot),
        window: Window::default(),
    };
    if overdue.reads > 0 {
        let reads = u64::from(overdue.reads);
        let takes = charge.takes(0, reads, overdue.transfer, overdue.bytes);
        (walk.free, walk.before) = (walk.free.saturating_add(takes), reads);
    }
    // With memory for everything at once it never binds.
    let gone = if memory.used.saturating_add(books.unread() + demand.bytes()) > memory.most {
        let mut sums = std::mem::take(&mut walk.plan.sums);
        merged.add_up(&mut sums);
        let gone = walk.in_memory(&sums, memory);
        walk.plan.sums = sums;
        gone
    } else {
        merged.each(|ahead, load| walk.take_up(ahead, load))
    };
    match gone {
        ControlFlow::Break(refused) => refused,
        ControlFlow::Continue(()) => walk.admit(),
    }
}

/// How many slots from its own on the demand cannot begin in, because by the end of the slot in
/// which it was refused not even one sweep of everything due is done: no windows take less together
/// than the one sweep that they could be joined to. For charges that are subadditive.
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
    let mut sweep = books.overdue();
    let booked = books.ahead_of_now();
    for load in &booked[..ahead(books.current()).min(booked.len())] {
        sweep += *load;
    }
    let ours = &demand.slots()[..ahead(demand.first()).min(demand.slots().len())];
    for load in ours {
        sweep += *load;
    }
    // Where the demand ended before that slot, the first slots only move what is due later.
    let later = ahead(demand.first()) - ours.len();
    let moved = |sweep: &mut Load, load: &Load| {
        *sweep -= *load;
        charge.takes(0, sweep.reads.into(), sweep.transfer, sweep.bytes) > time
    };
    if charge.takes(0, sweep.reads.into(), sweep.transfer, sweep.bytes) <= time {
        return 1;
    }
    let out = ours.iter().rev().take_while(|load| moved(&mut sweep, load)).count();
    (later + out + 1) as u64
}

struct Walk<'a, C> {
    charge: &'a C,
    plan: &'a mut Plan,
    current: SlotIndex,
    /// Nanoseconds of a slot.
    slot: u64,
    /// When the windows that are closed are done.
    free: u64,
    /// Reads in them, since the disk last waited.
    before: u64,
    /// The least time between a closed window's end and its deadline.
    slack: u64,
    /// The end of the slot that was taken up last.
    end: u64,
    window: Window,
}

// A window that grows. Times in nanoseconds of the engine's clock, slots from the current one.
#[derive(Clone, Copy, Default)]
struct Window {
    last: usize,
    reads: u64,
    transfer: u64,
    bytes: u64,
    begins: u64,
    ends: u64,
    deadline: u64,
}

// The buffers while the walk goes on.
struct Memory {
    most: u64,
    /// Read and not let go at the moment that the walk has come to.
    used: u64,
    /// What is let go at the ends of slots before this one is off.
    to: usize,
}

impl<C: Charge> Walk<'_, C> {
    /// The next slot's reads, with memory for everything.
    #[inline(always)]
    fn take_up(&mut self, ahead: usize, load: Load) -> ControlFlow<Verdict> {
        self.end = self.end.saturating_add(self.slot);
        if load.reads == 0 || self.joins(ahead, load) {
            return ControlFlow::Continue(());
        }
        self.close();
        self.open(ahead, load, self.free)
    }

    fn in_memory(&mut self, sums: &[Load], mut memory: Memory) -> ControlFlow<Verdict> {
        let (current, slot) = (self.current.0, self.slot);
        let ends_of = |ahead: usize| (current + ahead as u64 + 1).saturating_mul(slot);
        for (ahead, load) in sums.iter().enumerate() {
            self.end = self.end.saturating_add(slot);
            if load.reads == 0 {
                continue;
            }
            let with = memory.used + self.window.bytes + load.bytes;
            if with <= memory.most && self.joins(ahead, *load) {
                continue;
            }
            memory.used += self.window.bytes;
            self.close();
            let mut begins = self.free;
            while memory.to < ahead && ends_of(memory.to) <= begins {
                memory.used = memory.used.saturating_sub(sums[memory.to].freed);
                memory.to += 1;
            }
            while memory.used + load.bytes > memory.most {
                if memory.to >= ahead {
                    let missing = memory.used + load.bytes - memory.most;
                    return refuse(Resource::Memory, self.current + ahead as u64, missing);
                }
                begins = begins.max(ends_of(memory.to));
                memory.used = memory.used.saturating_sub(sums[memory.to].freed);
                memory.to += 1;
            }
            if begins > self.free {
                self.before = 0;
            }
            self.open(ahead, *load, begins)?;
        }
        ControlFlow::Continue(())
    }

    /// Whether the slot's reads go into the window that is open, which is then done later.
    #[inline(always)]
    fn joins(&mut self, ahead: usize, load: Load) -> bool {
        let window = self.window;
        let reads = window.reads + u64::from(load.reads);
        if window.reads == 0 || reads > MOST_READS {
            return false;
        }
        let (transfer, bytes) = (window.transfer + load.transfer, window.bytes + load.bytes);
        let takes = self.charge.takes(self.before, reads, transfer, bytes);
        let ends = window.begins.saturating_add(takes);
        if ends > window.deadline {
            return false;
        }
        self.window = Window { last: ahead, reads, transfer, bytes, ends, ..window };
        true
    }

    /// The window that is open, if there is one, is read as it is.
    #[inline(always)]
    fn close(&mut self) {
        let window = self.window;
        if window.reads > 0 {
            self.plan.cut(self.current + window.last as u64);
            self.slack = self.slack.min(window.deadline - window.ends);
            self.free = window.ends;
            self.before += window.reads;
        }
    }

    /// A window begins with this slot's reads.
    #[inline(always)]
    fn open(&mut self, ahead: usize, load: Load, begins: u64) -> ControlFlow<Verdict> {
        let reads = u64::from(load.reads);
        let takes = self.charge.takes(self.before, reads, load.transfer, load.bytes);
        let ends = begins.saturating_add(takes);
        if ends > self.end {
            return self.too_late(ahead, reads, takes, ends);
        }
        let Load { transfer, bytes, .. } = load;
        let deadline = self.end;
        self.window = Window { last: ahead, reads, transfer, bytes, begins, ends, deadline };
        ControlFlow::Continue(())
    }

    #[cold]
    fn too_late(&self, ahead: usize, reads: u64, takes: u64, ends: u64) -> ControlFlow<Verdict> {
        let waited = self.free.saturating_add(takes) <= self.end;
        let missing = (ends - self.end).div_ceil((takes / reads).max(1)).min(reads);
        let resource = if waited { Resource::Memory } else { Resource::Disk };
        refuse(resource, self.current + ahead as u64, missing)
    }

    fn admit(mut self) -> Verdict {
        self.close();
        Verdict::Admit { slack: Slack::Time(Duration::from_nanos(self.slack)) }
    }
}

fn refuse(resource: Resource, slot: SlotIndex, missing: u64) -> ControlFlow<Verdict> {
    ControlFlow::Break(Verdict::refuse(resource, slot, missing))
}
