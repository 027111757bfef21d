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
use crate::windows::{MOST_READS, Plan};
use disk::Costs;
use std::time::Duration;

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

/// A window that grows.
#[derive(Clone, Copy, Default)]
struct Window {
    /// Slots from the current one to its last.
    last: u64,
    reads: u64,
    transfer: u64,
    bytes: u64,
    begins: u64,
    ends: u64,
    deadline: u64,
}

fn walk(
    books: &DiskBooks,
    supply: &Supply<'_>,
    demand: &Demand,
    costs: &Costs,
    plan: &mut Plan,
) -> Verdict {
    plan.clear();
    let slots = Merged::new(books, demand);
    let current = books.current();
    let end_of = |ahead: u64| (current + ahead + 1).start(supply.slot).0;
    let reserved = books.reserved() + demand.reserve;
    if reserved > supply.memory {
        return Verdict::refuse(Resource::Memory, current.next(), reserved - supply.memory);
    }
    let memory = supply.memory - reserved;
    let overdue = books.overdue();
    let mut used = books.held() + demand.held() + overdue.bytes;
    let mut freed_to = 0; // what is let go at the ends of slots before this one is off `used`
    let mut free = supply.free_at.0;
    if overdue.reads > 0 {
        free += costs.batch(overdue.reads, overdue.transfer);
    }
    let mut slack = u64::MAX;
    let mut window = Window::default();
    for ahead in 0..slots.len() {
        let load = slots.at(ahead);
        if load.reads == 0 {
            continue;
        }
        if window.reads > 0 {
            let (reads, transfer) = (window.reads + load.reads, window.transfer + load.transfer);
            let bytes = window.bytes + load.bytes;
            let ends = window.begins.saturating_add(costs.batch(reads, transfer));
            if reads <= MOST_READS && ends <= window.deadline && used + bytes <= memory {
                window = Window { last: ahead, reads, transfer, bytes, ends, ..window };
                continue;
            }
            plan.cut(current + window.last);
            slack = slack.min(window.deadline - window.ends);
            used += window.bytes;
            free = window.ends;
        }
        let deadline = end_of(ahead);
        let mut begins = free;
        while freed_to < ahead && end_of(freed_to) <= begins {
            used = used.saturating_sub(slots.at(freed_to).freed);
            freed_to += 1;
        }
        while used + load.bytes > memory {
            if freed_to >= ahead {
                let missing = used + load.bytes - memory;
                return Verdict::refuse(Resource::Memory, current + ahead, missing);
            }
            begins = begins.max(end_of(freed_to));
            used = used.saturating_sub(slots.at(freed_to).freed);
            freed_to += 1;
        }
        let takes = costs.batch(load.reads, load.transfer);
        let ends = begins.saturating_add(takes);
        if ends > deadline {
            let waited = free.saturating_add(takes) <= deadline;
            let late = ends - deadline;
            let missing = late.div_ceil((takes / load.reads).max(1)).min(load.reads);
            let resource = if waited { Resource::Memory } else { Resource::Disk };
            return Verdict::refuse(resource, current + ahead, missing);
        }
        window = Window {
            last: ahead,
            reads: load.reads,
            transfer: load.transfer,
            bytes: load.bytes,
            begins,
            ends,
            deadline,
        };
    }
    if window.reads > 0 {
        plan.cut(current + window.last);
        slack = slack.min(window.deadline - window.ends);
    }
    Verdict::Admit { slack: Slack::Time(Duration::from_nanos(slack)) }
}
