//! One disk, its books and its viewers in virtual time: the scheduler's own policy decides who
//! comes in, the scheduler's own rule what is read next, and a disk model how long that takes.
//!
//! ```text
//!   viewer ─▶ Policy::verdict ──yes──▶ DiskBooks, Plan
//!                  ▲                       │ Plan::next (disk time) or minRead a slot (reads)
//!           guard ─┘                       ▼
//!             ▲   late? ◀── finish ◀── Head ◀── sweep: what is due first, in order of place
//!             └── charged, took ◀────────┘
//! ```
//!
//! No server stands around it: no sessions, sockets or titles' indexes, so that one run takes
//! milliseconds and a table of thousands minutes. The engine that ships is simulated with
//! everything around it by the crate `simulator`.

mod counters;
mod reading;
mod rules;
mod streams;

pub use counters::RunCounters;
pub(crate) use rules::due_slot;
pub use rules::{RotationalDelay, Rules, SlowPeriod};
pub use streams::Viewer;

use super::random::RandomSource;
use super::requests::ReadSchedule;
use counters::BusyTime;
use disk::Head;
use reading::{ReadInFlight, Sweep};
use rules::piece_of;
use scheduler::{
    Demand, DiskBooks, DiskTimings, EdfQueue, PolicyKind, RateSummary, Shortage, Supply, TimeGuard,
    Verdict, WindowPlan,
};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use streams::ActiveStream;
use units::{Moment, SlotIndex};

/// A server of one disk in virtual time: streams, their reads, and the scheduler that orders them.
#[derive(Clone)]
pub struct SingleDiskServer<'a> {
    rules: &'a Rules,
    now: Moment,
    head: Head,
    arm: u64,
    /// The rules' facts, and how far the disk is behind them.
    timings: Arc<DiskTimings>,
    guard: TimeGuard,
    sweep: Sweep,
    books: DiskBooks,
    plan: WindowPlan,
    demand: Demand,
    viewers: Vec<ActiveStream>,
    queue: EdfQueue<usize>,
    batch: VecDeque<(usize, usize)>,
    inward: bool,
    waits: bool,
    flight: Option<ReadInFlight>,
    held: BTreeMap<SlotIndex, Vec<(usize, usize)>>,
    random: RandomSource,
    busy: BusyTime,
    counters: RunCounters,
}

impl<'a> SingleDiskServer<'a> {
    /// Nobody is in. `seed` is that of the platter's angle.
    pub fn new(rules: &'a Rules, seed: u64) -> Self {
        Self {
            rules,
            now: Moment::ZERO,
            head: rules.model.head(),
            arm: 0,
            timings: Arc::clone(&rules.timings),
            guard: TimeGuard::default(),
            sweep: Sweep::default(),
            books: DiskBooks::default(),
            plan: WindowPlan::default(),
            demand: Demand::default(),
            viewers: Vec::new(),
            queue: EdfQueue::default(),
            batch: VecDeque::new(),
            inward: false,
            waits: false,
            flight: None,
            held: BTreeMap::new(),
            random: RandomSource::new(seed, ROTATION),
            busy: BusyTime::default(),
            counters: RunCounters::default(),
        }
    }

    /// What has happened so far.
    pub fn counters(&self) -> RunCounters {
        self.counters
    }

    /// Stretches of slots in which the disk was never idle: the reads completed in each.
    pub(super) fn into_stretches(self) -> Vec<Vec<u32>> {
        self.busy.into_stretches()
    }

    /// A copy of this server that continues by other rules.
    pub(super) fn under(&self, rules: &'a Rules) -> Self {
        Self { rules, ..self.clone() }
    }

    pub(super) fn rules(&self) -> &'a Rules {
        self.rules
    }

    /// What time it is.
    pub fn now(&self) -> Moment {
        self.now
    }

    /// Whether nothing at all is on the books.
    pub fn is_empty(&self) -> bool {
        self.books.is_empty()
    }

    /// By how much more than the model says everything is charged now: 0 is not at all.
    pub fn behind(&self) -> f64 {
        scheduler::slowdown_part(self.timings.slowdown)
    }

    /// A viewer asks for this, now.
    pub fn arrive(&mut self, schedule: Arc<ReadSchedule>) -> Result<Viewer, Shortage> {
        let (first, summary) = self.ask(&schedule);
        if let Some(policy) = self.rules.policy {
            let (verdict, took) = self.verdict(policy);
            self.counters.decisions += 1;
            self.counters.deciding += took;
            match verdict {
                Verdict::Admit { plan, .. } => self.plan = plan,
                Verdict::Refuse(shortage) => {
                    self.counters.refused += 1;
                    return Err(shortage);
                }
            }
        }
        self.counters.admitted += 1;
        let number = self.viewers.len();
        self.books.book_demand(&self.demand);
        self.books.book_summary(summary);
        self.viewers.push(ActiveStream::new(schedule, first, summary));
        self.enqueue(number);
        // The new plan covers all that is unread, so that the batch is chosen again by it.
        self.drop_batch();
        self.busy.begins(self.now);
        Ok(Viewer(number))
    }

    /// Whether each of these policies would let a viewer in who asks for this now, and how long it
    /// took to say so. For policies that leave no plan: whom they let in changes the run, they
    /// do not.
    pub fn consult(
        &mut self,
        schedule: &ReadSchedule,
        policies: impl Iterator<Item = PolicyKind>,
    ) -> Vec<(bool, Duration)> {
        self.ask(schedule);
        let says = |policy| {
            let (verdict, took) = self.verdict(policy);
            (verdict.is_admit(), took)
        };
        policies.map(says).collect()
    }

    /// A viewer asks for something else instead. What it had stays booked until that is granted,
    /// and stays where it is not.
    pub fn seek(
        &mut self,
        viewer: Viewer,
        schedule: Arc<ReadSchedule>,
    ) -> Result<Viewer, Shortage> {
        let instead = self.arrive(schedule)?;
        self.leave(viewer);
        Ok(instead)
    }

    /// Goes on until this moment.
    pub fn run_until(&mut self, end: Moment) {
        while self.now < end {
            if self.flight.is_none() {
                self.begin_next();
            }
            let slot_ends = SlotIndex::at(self.now, self.rules.slot).next().start(self.rules.slot);
            // Time moves to the next event: a completion, the end of a slot, or the end of the run.
            let mut until = end.min(slot_ends);
            if let Some(flight) = self.flight {
                until = until.min(flight.finish);
            } else {
                self.busy.pauses();
            }
            self.now = until;
            // Before the slot ends: a read that is done with its slot is on time.
            if self.flight.is_some_and(|flight| flight.finish == until) {
                self.complete();
            }
            if until == slot_ends {
                self.tick();
            }
        }
    }

    /// Goes on until everything has been shown or everybody has left. Then the books must be empty.
    pub fn finish(&mut self) {
        self.finish_unless(|_| false);
    }

    /// Runs until everything is read, or until the counters are `enough`.
    pub fn finish_unless(&mut self, enough: impl Fn(&RunCounters) -> bool) {
        while !self.queue.is_empty()
            || !self.batch.is_empty()
            || self.flight.is_some()
            || !self.held.is_empty()
        {
            if enough(&self.counters) {
                return;
            }
            let next = SlotIndex::at(self.now, self.rules.slot).next();
            self.run_until(next.start(self.rules.slot));
        }
    }

    /// Puts what `wanted` would take into `self.demand`.
    fn ask(&mut self, schedule: &ReadSchedule) -> (SlotIndex, RateSummary) {
        let first = self.rules.first_slot(self.now);
        self.demand.begin(self.books.current());
        let pieces = schedule.reads.iter().zip(0..).map(|(read, i)| piece_of(read, i, first));
        let summary = self.demand.add_track(pieces);
        (first, summary)
    }

    /// Whether what is in `self.demand` fits, and how long the decision took.
    fn verdict(&self, policy: PolicyKind) -> (Verdict, Duration) {
        let supply = self.supply();
        let clock = self.rules.clock.unwrap_or(|| Duration::ZERO);
        let began = clock();
        let verdict = policy.policy().verdict(&self.books, &supply, &self.demand);
        (verdict, clock().saturating_sub(began))
    }

    fn supply(&self) -> Supply<'_> {
        // A policy must not know the drawn rotational delay: the read in the device counts with its
        // longest time.
        let free_at = self.flight.map_or(self.now, |flight| {
            let piece = self.piece(flight.viewer, flight.read);
            let costs = self.timings.costs.as_ref();
            let most = costs.map_or(0, |costs| costs.batch(1, u64::from(piece.transfer)));
            self.now.max(flight.begun + Duration::from_nanos(most))
        });
        Supply {
            min_read: self.rules.min_read,
            read_size: self.rules.read_size,
            memory: self.rules.memory,
            slot: self.rules.slot,
            free_at,
            timings: &self.timings,
        }
    }

    /// A slot begins.
    fn tick(&mut self) {
        let current = SlotIndex::at(self.now, self.rules.slot);
        while let Some(entry) = self.held.first_entry() {
            // Buffers of past slots are free before anything is read in the new one.
            if *entry.key() >= current {
                break;
            }
            let (slot, reads) = entry.remove_entry();
            self.shown(slot, reads);
        }
        self.books.advance(current);
        self.busy.slot_ends(self.now, self.rules.slot, &mut self.counters);
    }
}

// The name of a source of chance.
const ROTATION: u64 = 3;
