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
//! The verdict carries the windows as a [`WindowPlan`], which the run follows: see `windows` for
//! the rule, and for why a run that is early, or has lost a stream, is never late for it.
//!
//! Memory: a window begins when all of it fits. Letting a part of it in early would fill memory
//! with what is not urgent and leave an urgent read without a buffer (priority inversion).
//!
//! # Delays after a pause
//!
//! A disk that is known by its pace may delay reads by so much more after each pause
//! ([`Charge::after_pause`], `once`). The schedule is an upper bound of when windows are done. It
//! may have no pause where the run has one: the run, being early, fills the memory and waits for
//! buffers there. So each window is charged as if the last pause had come at the worst place:
//!
//! ```text
//!   window i is done by   f(i) = max( f(i-1), m(i) + once ) + W(i)       f(0) = free + once
//!   m(i)                  when the clock has released the buffers without which it does not fit;
//!                         no such term, if it fits into what was free from the beginning
//! ```
//!
//! In the run, a pause before window `j` ends at `m(j)` at the latest, because window `j` begins as
//! soon as it fits, and the clock alone releases buffers. From then on reads follow each other
//! without a pause up to the end of window `i`, if no later pause comes, and take at most
//! `once + W(j) + ... + W(i)`: the sum that the maximum above contains. Without a pause they follow
//! each other from `free` on. There is no other kind of pause: the run waits for buffers only, as
//! long as anything is unread.
//!
//! Writes at a guaranteed rate are such a delay, too, on every disk: `W` is longer by their part,
//! and after a pause there may be a burst of them ([`crate::WriteShare`]). In `free` there are the
//! writes that may come at once now.

mod by_block;
mod exact;
mod later;
mod memory;
mod state;

use super::memory::Merged;
use super::{AdmissionRequest, Policy, Resource, Shortage, Slack, Supply, Verdict};
use crate::books::DiskBooks;
use crate::demand::Demand;
use crate::disk_timings::DiskTimings;
use crate::visits::{Since, Swept};
use crate::windows::WindowPlan;
use by_block::by_block;
use exact::exact;
use later::ruled_out;
use memory::LimitedMemory;
use state::Schedule;
use std::ops::ControlFlow;
use std::time::Duration;
use units::nanos;

/// What a sweep is taken to take.
pub(super) trait Charge {
    /// Nanoseconds of a sweep, `before` visits having been made since the disk last waited. Never
    /// falls with visits, reads, transfer or bytes.
    fn takes(&self, before: u64, swept: Swept) -> u64;

    /// Nanoseconds that so many sweeps take at most that have so much between them, however it is
    /// shared out; `u64::MAX` where nothing is known.
    #[inline(always)]
    fn sweeps_take(&self, _sweeps: u64, _reads: u64, _transfer: u64) -> u64 {
        u64::MAX
    }

    /// Nanoseconds by which all reads after a pause may be delayed, until the next pause.
    #[inline(always)]
    fn after_pause(&self) -> u64 {
        0
    }
}

/// A policy that plays the schedule forward by windows, each charged the most that it can take.
pub(super) trait Windowed: Sync {
    /// The policy that decides where the disk's timings do not suffice.
    const OTHERWISE: &'static dyn Policy;

    /// What sweeps take; `None` where the timings do not suffice.
    fn charge(timings: &DiskTimings) -> Option<impl Charge>;
}

/// Lets in while no window would be done too late.
pub(super) struct ByWindow<W>(pub(super) W);

impl<W: Windowed> Policy for ByWindow<W> {
    fn decide(&self, request: AdmissionRequest<'_>) -> Verdict {
        let AdmissionRequest { books, supply, demand } = request;
        match W::charge(supply.timings) {
            Some(charge) => walk(books, supply, demand, &charge),
            None => W::OTHERWISE.decide(request),
        }
    }

    fn later_starts_ruled_out(&self, request: AdmissionRequest<'_>, refused: Shortage) -> u64 {
        let AdmissionRequest { books, supply, demand } = request;
        match W::charge(supply.timings) {
            Some(charge) if refused.resource == Resource::Disk => {
                ruled_out(books, supply, demand, &charge, refused)
            }
            _ => 1,
        }
    }
}

/// Whether every window is done by its deadline, in finite memory.
pub(super) fn walk(
    books: &DiskBooks,
    supply: &Supply<'_>,
    demand: &Demand,
    charge: &impl Charge,
) -> Verdict {
    let reserved = books.reserved() + demand.reserve;
    if reserved > supply.memory {
        return Verdict::refuse(Resource::Memory, books.current().next(), reserved - supply.memory);
    }
    let merged = Merged::new(books, demand);
    let Setting { mut walk, mut memory, binds, pause } =
        Setting::new(books, supply, demand, charge);
    // Where memory is short, the plan without joined windows often fits, and testing it is one
    // pass.
    if binds
        && demand.reads() > 0
        && let Some(slack) = slot_by_slot(&walk, &merged, &memory, charge, pause)
    {
        return admit(WindowPlan::default(), slack);
    }
    let mut plan = WindowPlan::default();
    let on_time = if binds {
        exact(&mut walk, &merged, charge, &mut memory, &mut plan, 0..merged.count())
    } else {
        by_block(&mut walk, &merged, charge, &mut plan)
    };
    if !on_time {
        return walk.refuse();
    }
    walk.close(&mut plan);
    admit(plan, walk.slack)
}

// Every window of `plan` is done `slack` nanoseconds before its deadline.
fn admit(mut plan: WindowPlan, slack: u64) -> Verdict {
    plan.promise(slack);
    Verdict::Admit { slack: Slack::Time(Duration::from_nanos(slack)), plan }
}

// What a walk begins with.
struct Setting {
    walk: Schedule,
    memory: LimitedMemory,
    /// Whether there is less memory than for everything at once.
    binds: bool,
    /// Nanoseconds by which all that is read after a pause may be delayed.
    pause: u64,
}

impl Setting {
    fn new(books: &DiskBooks, supply: &Supply<'_>, demand: &Demand, charge: &impl Charge) -> Self {
        let overdue = books.overdue();
        let slot = nanos(supply.slot);
        // Before the first window the disk may be idle.
        let free = supply.free_at.0.saturating_add(charge.after_pause());
        let mut walk = Schedule::new(books.current(), slot, free);
        let most = supply.memory.saturating_sub(books.reserved() + demand.reserve);
        let used = books.held() + demand.held() + overdue.bytes;
        let pause = charge.after_pause().saturating_add(supply.timings.writes_at_once());
        let frees = walk.end.saturating_add(slot).saturating_add(pause);
        let memory = LimitedMemory::new(most, used, frees, slot);
        if overdue.reads > 0 {
            // Past slots are one sum, so the distances between their reads are lost: each read is
            // charged a positioning.
            let all = Swept { follows: 0, ..Swept::of(&overdue, Since::NOW) };
            walk.free = walk.free.saturating_add(charge.takes(0, all));
            walk.before = all.visits();
        }
        let binds = used.saturating_add(books.unread() + demand.bytes()) > most;
        Self { walk, memory, binds, pause }
    }
}

// The simplest plan of all: each slot's reads in the slot itself, or as soon after as the disk has
// done those before. Where that is on time and fits into memory, nothing needs to be looked at more
// closely. The least time to spare, or `None` if it is not.
fn slot_by_slot<C: Charge>(
    walk: &Schedule,
    slots: &Merged<'_>,
    memory: &LimitedMemory,
    charge: &C,
    pause: u64,
) -> Option<u64> {
    let (mut free, mut begins, mut slack) = (walk.free, walk.end, u64::MAX);
    let mut used = memory.used;
    let stopped = slots.each(0..slots.count(), |_, slot| {
        let ends = begins.saturating_add(walk.slot);
        let Swept { reads, transfer, bytes, .. } = slot.swept(Since::NOW);
        used += bytes;
        if reads > 0 {
            // Sequential reads are charged in full: an upper bound. Where it does not fit, the
            // exact walk decides.
            let takes = charge.sweeps_take(1, reads, transfer);
            let begins = begins.saturating_add(pause);
            free = free.max(begins).saturating_add(takes);
            if free > ends || used > memory.most {
                return ControlFlow::Break(());
            }
            slack = slack.min(ends - free);
        }
        used = used.saturating_sub(slot.freed());
        begins = ends;
        ControlFlow::Continue(())
    });
    stopped.is_continue().then_some(slack)
}

#[cfg(test)]
mod tests;
