//! vbrSim in the disk's time: play the schedule forward in windows, each a sweep that is charged
//! what it takes at most; admit if each is done by its deadline.
//!
//! ```text
//!   free ──▶ window: due slots t, t+1, ... as many as are done by the end of t and fit into memory
//!            takes   Σ transfer + positioning(reads)            (disk::Costs)
//!            done by the end of slot t?  no → refuse (disk; memory, if it waited for buffers)
//!   free at its end; the next window begins with the next due slot
//! ```
//!
//! The windows are left in the [`Plan`], which the run keeps: see `windows` for the rule, and for
//! why a run that is early, or has lost a stream, is never late for it. Counting time where
//! vbrSim counts reads charges a read with its own length and its own zone, and a sweep of many
//! with less of the arm than many single ones.
//!
//! Memory: a window begins when all of it fits. Letting a part of it in early would fill memory
//! with what is not urgent and leave an urgent read without a buffer (priority inversion).

use super::memory::Merged;
use super::{Policy, Resource, Slack, Supply, Verdict, vbr_sim};
use crate::books::DiskBooks;
use crate::demand::Demand;
use crate::ledger::Load;
use crate::windows::{MOST_READS, Plan};
use disk::Costs;
use std::time::Duration;
use units::SlotIndex;

pub(super) struct TimeDomain;

impl Policy for TimeDomain {
    fn verdict(
        &self,
        books: &DiskBooks,
        supply: &Supply<'_>,
        demand: &Demand,
        plan: &mut Plan,
    ) -> Verdict {
        match &supply.facts.costs {
            Some(costs) => walk(books, supply, demand, costs, plan),
            None => vbr_sim::VbrSim.verdict(books, supply, demand, plan),
        }
    }
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

fn walk(
    books: &DiskBooks,
    supply: &Supply<'_>,
    demand: &Demand,
    costs: &Costs,
    plan: &mut Plan,
) -> Verdict {
    plan.clear();
    let current = books.current();
    let reserved = books.reserved() + demand.reserve;
    if reserved > supply.memory {
        return Verdict::refuse(Resource::Memory, current.next(), reserved - supply.memory);
    }
    let mut sums = std::mem::take(&mut plan.sums);
    Merged::new(books, demand).add_up(&mut sums);
    let overdue = books.overdue();
    let used = books.held() + demand.held() + overdue.bytes;
    let memory = Memory { most: supply.memory - reserved, used, to: 0 };
    let mut free = supply.free_at.0;
    if overdue.reads > 0 {
        let time = supply.facts.charge(costs, u64::from(overdue.reads), overdue.transfer);
        free = free.saturating_add(time);
    }
    let charge = |reads: u64, transfer| supply.facts.charge(costs, reads, transfer);
    // With memory for everything at once it never binds.
    let verdict = if used.saturating_add(books.unread() + demand.bytes()) > memory.most {
        go::<true>(&sums, current, nanos(supply.slot), free, memory, &charge, plan)
    } else {
        go::<false>(&sums, current, nanos(supply.slot), free, memory, &charge, plan)
    };
    plan.sums = sums;
    verdict
}

fn go<const BINDS: bool>(
    sums: &[Load],
    current: SlotIndex,
    slot: u64,
    mut free: u64,
    mut memory: Memory,
    charge: &impl Fn(u64, u64) -> u64,
    plan: &mut Plan,
) -> Verdict {
    let ends_of = |ahead: usize| (current.0 + ahead as u64 + 1).saturating_mul(slot);
    let mut window = Window::default();
    let (mut slack, mut end) = (u64::MAX, current.0.saturating_mul(slot));
    for (ahead, load) in sums.iter().enumerate() {
        end = end.saturating_add(slot);
        if load.reads == 0 {
            continue;
        }
        if window.reads > 0 {
            let (reads, transfer) =
                (window.reads + u64::from(load.reads), window.transfer + load.transfer);
            let bytes = window.bytes + load.bytes;
            if reads <= MOST_READS && (!BINDS || memory.used + bytes <= memory.most) {
                let ends = window.begins.saturating_add(charge(reads, transfer));
                if ends <= window.deadline {
                    window = Window { last: ahead, reads, transfer, bytes, ends, ..window };
                    continue;
                }
            }
            plan.cut(current + window.last as u64);
            slack = slack.min(window.deadline - window.ends);
            memory.used += window.bytes;
            free = window.ends;
        }
        let mut begins = free;
        if BINDS {
            while memory.to < ahead && ends_of(memory.to) <= begins {
                memory.used = memory.used.saturating_sub(sums[memory.to].freed);
                memory.to += 1;
            }
            while memory.used + load.bytes > memory.most {
                if memory.to >= ahead {
                    let missing = memory.used + load.bytes - memory.most;
                    return Verdict::refuse(Resource::Memory, current + ahead as u64, missing);
                }
                begins = begins.max(ends_of(memory.to));
                memory.used = memory.used.saturating_sub(sums[memory.to].freed);
                memory.to += 1;
            }
        }
        let takes = charge(u64::from(load.reads), load.transfer);
        let ends = begins.saturating_add(takes);
        if ends > end {
            let waited = free.saturating_add(takes) <= end;
            let reads = u64::from(load.reads);
            let missing = (ends - end).div_ceil((takes / reads).max(1)).min(reads);
            let resource = if waited { Resource::Memory } else { Resource::Disk };
            return Verdict::refuse(resource, current + ahead as u64, missing);
        }
        window = Window {
            last: ahead,
            reads: u64::from(load.reads),
            transfer: load.transfer,
            bytes: load.bytes,
            begins,
            ends,
            deadline: end,
        };
    }
    if window.reads > 0 {
        plan.cut(current + window.last as u64);
        slack = slack.min(window.deadline - window.ends);
    }
    Verdict::Admit { slack: Slack::Time(Duration::from_nanos(slack)) }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
