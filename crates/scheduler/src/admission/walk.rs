//! Playing the schedule forward in the disk's time, window by window, each a sweep that is charged
//! what it takes: what all policies share that count time and carry over what is read ahead.
//!
//! ```text
//!   free ──▶ window: due slots t, t+1, ... as many as are done by the end of t and fit into memory
//!            takes   what its reads are charged                 (a policy's `Charge`; see [`Walk`])
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
use super::{Policy, Resource, Shortage, Slack, Supply, Verdict};
use crate::books::DiskBooks;
use crate::demand::Demand;
use crate::facts::Facts;
use crate::ledger::Load;
use crate::visits::Swept;
use crate::windows::{MOST_READS, Plan};
use std::time::Duration;
use units::SlotIndex;

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
}

/// A policy that plays the schedule forward by windows, each charged the most that it can take.
pub(super) trait Windowed: Sync {
    /// Whom to ask where the disk's facts do not suffice.
    const OTHERWISE: &'static dyn Policy;

    /// What sweeps take; `None` where the facts do not suffice.
    fn charge(facts: &Facts) -> Option<impl Charge>;
}

/// Lets in while no window would be done too late.
pub(super) struct ByWindow<W>(pub(super) W);

impl<W: Windowed> Policy for ByWindow<W> {
    fn verdict(
        &self,
        books: &DiskBooks,
        supply: &Supply<'_>,
        demand: &Demand,
        plan: &mut Plan,
    ) -> Verdict {
        match W::charge(supply.facts) {
            Some(charge) => walk(books, supply, demand, &charge, plan),
            None => W::OTHERWISE.verdict(books, supply, demand, plan),
        }
    }

    fn ruled_out(
        &self,
        books: &DiskBooks,
        supply: &Supply<'_>,
        demand: &Demand,
        refused: Shortage,
    ) -> u64 {
        match W::charge(supply.facts) {
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
        current,
        slot,
        free: supply.free_at.0,
        before: 0,
        slack: u64::MAX,
        end: current.0.saturating_mul(slot),
        window: Window::default(),
        short: Short::default(),
    };
    if overdue.reads > 0 {
        let Load { transfer, bytes, .. } = overdue;
        let all = Swept { reads: overdue.reads.into(), follows: 0, transfer, bytes };
        (walk.free, walk.before) = (walk.free.saturating_add(charge.takes(0, all)), all.visits());
    }
    // With memory for everything at once it never binds.
    let binds = memory.used.saturating_add(books.unread() + demand.bytes()) > memory.most;
    if binds
        && demand.reads() > 0
        && let Some(slack) = slot_by_slot(&walk, &merged, &memory, charge)
    {
        plan.promise(slack);
        return Verdict::Admit { slack: Slack::Time(Duration::from_nanos(slack)) };
    }
    let on_time = if binds {
        in_memory(&mut walk, &merged, memory, charge, plan)
    } else {
        let begun = walk;
        with_plenty(&mut walk, &merged, charge, plan, BLOCK) || {
            // The line may have been too far above.
            let again = !surely_late(&walk, &merged, supply.free_at.0, charge);
            again && {
                plan.clear();
                walk = begun;
                with_plenty(&mut walk, &merged, charge, plan, 1)
            }
        }
    };
    if on_time { walk.admit(plan) } else { walk.refuse() }
}

// With memory for everything. Where there is more time than anywhere before, slots are taken by
// the `block`, each for a window of its own: the line above what they cost is enough to see that
// none of them is the tightest. By one slot: each is looked at closely.
fn with_plenty<C: Charge>(
    state: &mut Walk,
    slots: &Merged<'_>,
    charge: &C,
    plan: &mut Plan,
    block: usize,
) -> bool {
    let mut walk = *state;
    let len = usize::try_from(slots.len()).expect("bounded by the horizon");
    let (mut ahead, mut on_time) = (0, true);
    'walk: while ahead < len {
        let until = (ahead + block).min(len);
        let (done, slack) = walk.so_far();
        let time = walk.end.saturating_add(walk.slot).saturating_sub(slack);
        if time > done && block > 1 {
            let (reads, transfer) = slots.sums(ahead, until);
            let takes = charge.sweeps_take(block as u64, reads, transfer);
            let ends = done.saturating_add(takes);
            if ends <= time {
                walk.close(plan);
                walk.window.swept.reads = 0;
                walk.free = ends;
                walk.before += reads;
                walk.end = walk.end.saturating_add(walk.slot.saturating_mul(block as u64));
                ahead = until;
                continue;
            }
        }
        while ahead < until {
            let load = slots.sum_at(ahead);
            walk.end = walk.end.saturating_add(walk.slot);
            if load.reads > 0 && !walk.joins(charge, ahead, load) {
                walk.close(plan);
                if !walk.open(charge, ahead, load, walk.free) {
                    on_time = false;
                    break 'walk;
                }
            }
            ahead += 1;
        }
    }
    *state = walk;
    on_time
}

// Whether what is due by the slot that was refused is not done in time even in one sweep.
fn surely_late(refused: &Walk, slots: &Merged<'_>, free_at: u64, charge: &impl Charge) -> bool {
    let due = (0..=refused.short.ahead).map(|ahead| Swept::of(slots.sum_at(ahead), ahead));
    let all = due.fold(Swept::default(), Swept::and);
    free_at.saturating_add(charge.takes(0, all)) > refused.end
}

// The simplest plan of all: each slot's reads in the slot itself, or as soon after as the disk has
// done those before. Where that is on time and fits into memory, nothing needs to be looked at more
// closely. The least time to spare, or `None` if it is not.
fn slot_by_slot<C: Charge>(
    walk: &Walk,
    slots: &Merged<'_>,
    memory: &Memory,
    charge: &C,
) -> Option<u64> {
    let (mut free, mut begins, mut slack) = (walk.free, walk.end, u64::MAX);
    let mut used = memory.used;
    for ahead in 0..usize::try_from(slots.len()).expect("bounded by the horizon") {
        let Load { reads, transfer, bytes, freed, .. } = slots.sum_at(ahead);
        let ends = begins.saturating_add(walk.slot);
        used += bytes;
        if reads > 0 {
            let takes = charge.sweeps_take(1, u64::from(reads), transfer);
            free = free.max(begins).saturating_add(takes);
            if free > ends || used > memory.most {
                return None;
            }
            slack = slack.min(ends - free);
        }
        used = used.saturating_sub(freed);
        begins = ends;
    }
    Some(slack)
}

fn in_memory<C: Charge>(
    state: &mut Walk,
    slots: &Merged<'_>,
    mut memory: Memory,
    charge: &C,
    plan: &mut Plan,
) -> bool {
    let (mut walk, mut on_time) = (*state, true);
    // The end of the slot `memory.to`.
    let mut frees = walk.end.saturating_add(walk.slot);
    let len = usize::try_from(slots.len()).expect("bounded by the horizon");
    for ahead in 0..len {
        let load = slots.sum_at(ahead);
        walk.end = walk.end.saturating_add(walk.slot);
        if load.reads == 0 {
            continue;
        }
        let with = memory.used + walk.window.swept.bytes + load.bytes;
        if with <= memory.most && walk.joins(charge, ahead, load) {
            continue;
        }
        memory.used += walk.window.swept.bytes;
        walk.close(plan);
        let mut begins = walk.free;
        while memory.to < ahead && frees <= begins {
            memory.used = memory.used.saturating_sub(slots.sum_at(memory.to).freed);
            memory.to += 1;
            frees = frees.saturating_add(walk.slot);
        }
        while memory.used + load.bytes > memory.most && memory.to < ahead {
            begins = begins.max(frees);
            memory.used = memory.used.saturating_sub(slots.sum_at(memory.to).freed);
            memory.to += 1;
            frees = frees.saturating_add(walk.slot);
        }
        let bytes = (memory.used + load.bytes).saturating_sub(memory.most);
        if bytes > 0 {
            walk.short = Short { ahead, bytes, ..walk.short };
            on_time = false;
            break;
        }
        if begins > walk.free {
            walk.before = 0;
        }
        if !walk.open(charge, ahead, load, begins) {
            on_time = false;
            break;
        }
    }
    *state = walk;
    on_time
}

/// How many slots from its own on the demand cannot begin in, because by the end of the slot in
/// which it was refused not even one sweep of everything due is done: no windows take less together
/// than the one sweep that they could be joined to. For charges that are subadditive.
fn ruled_out(
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
    let mut sweep = Swept::of(books.overdue(), 0);
    let booked = books.ahead_of_now();
    for (since, load) in booked[..ahead(books.current()).min(booked.len())].iter().enumerate() {
        sweep = sweep.and(Swept::of(*load, since));
    }
    let ours = &demand.slots()[..ahead(demand.first()).min(demand.slots().len())];
    // Wherever they come to lie: as many as may follow.
    let swept = |load: &Load| Swept::of(*load, usize::MAX);
    for load in ours {
        sweep = sweep.and(swept(load));
    }
    // Where the demand ended before that slot, the first slots only move what is due later.
    let later = ahead(demand.first()) - ours.len();
    let moved = |sweep: &mut Swept, load: &Load| {
        *sweep = sweep.without(swept(load));
        charge.takes(0, *sweep) > time
    };
    if charge.takes(0, sweep) <= time {
        return 1;
    }
    let out = ours.iter().rev().take_while(|load| moved(&mut sweep, load)).count();
    (later + out + 1) as u64
}

// Where the walk has come to. Times in nanoseconds of the engine's clock, slots from the current one.
#[derive(Clone, Copy)]
struct Walk {
    current: SlotIndex,
    /// Nanoseconds of a slot.
    slot: u64,
    /// When the windows that are closed are done.
    free: u64,
    /// Visits in them, since the disk last waited.
    before: u64,
    /// The least time between a closed window's end and its deadline.
    slack: u64,
    /// The end of the slot that was taken up last.
    end: u64,
    window: Window,
    short: Short,
}

// What could not be done.
#[derive(Clone, Copy, Default)]
struct Short {
    ahead: usize,
    /// Bytes of buffers; if there are enough, it is the disk's time.
    bytes: u64,
    reads: u64,
    takes: u64,
    ends: u64,
}

// A window that grows; none, while it has no reads.
#[derive(Clone, Copy, Default)]
struct Window {
    first: usize,
    last: usize,
    swept: Swept,
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

impl Walk {
    /// When everything taken up is done, and the least time that any window had to spare.
    #[inline(always)]
    fn so_far(&self) -> (u64, u64) {
        let Window { swept, ends, deadline, .. } = self.window;
        if swept.reads > 0 {
            (ends, self.slack.min(deadline - ends))
        } else {
            (self.free, self.slack)
        }
    }

    /// Whether the slot's reads go into the window that is open, which is then done later.
    #[inline(always)]
    fn joins(&mut self, charge: &impl Charge, ahead: usize, load: Load) -> bool {
        let window = self.window;
        let swept = window.swept.and(Swept::of(load, ahead - window.first));
        if window.swept.reads == 0 || swept.reads > MOST_READS {
            return false;
        }
        let takes = charge.takes(self.before, swept);
        let ends = window.begins.saturating_add(takes);
        if ends > window.deadline {
            return false;
        }
        self.window = Window { last: ahead, swept, ends, ..window };
        true
    }

    /// The window that is open, if there is one, is read as it is.
    #[inline(always)]
    fn close(&mut self, plan: &mut Plan) {
        let window = self.window;
        if window.swept.reads > 0 {
            if window.last > window.first {
                plan.join(self.current + window.first as u64, self.current + window.last as u64);
            }
            self.slack = self.slack.min(window.deadline - window.ends);
            self.free = window.ends;
            self.before += window.swept.visits();
        }
    }

    /// A window begins with this slot's reads.
    #[inline(always)]
    fn open(&mut self, charge: &impl Charge, ahead: usize, load: Load, begins: u64) -> bool {
        let swept = Swept::of(load, 0);
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

    fn refuse(self) -> Verdict {
        let Short { ahead, bytes, reads, takes, ends } = self.short;
        let slot = self.current + ahead as u64;
        if bytes > 0 {
            return Verdict::refuse(Resource::Memory, slot, bytes);
        }
        let waited = self.free.saturating_add(takes) <= self.end;
        let missing = (ends - self.end).div_ceil((takes / reads).max(1)).min(reads);
        let resource = if waited { Resource::Memory } else { Resource::Disk };
        Verdict::refuse(resource, slot, missing)
    }

    fn admit(mut self, plan: &mut Plan) -> Verdict {
        self.close(plan);
        plan.promise(self.slack);
        Verdict::Admit { slack: Slack::Time(Duration::from_nanos(self.slack)) }
    }
}

/// Slots that are looked at together: few enough that a disk that reads some seconds ahead has time
/// for all of them before the first is due.
const BLOCK: usize = 8;
