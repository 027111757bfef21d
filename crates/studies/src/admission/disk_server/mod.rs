//! One disk, its books and its viewers in virtual time: the scheduler's policy decides who is
//! admitted, the scheduler's dispatcher what is read next, and a disk model how long that takes.
//!
//! ```text
//!   viewer ─▶ Policy::verdict ──yes──▶ Dispatcher: books, plan
//!                  ▲                       │ a sweep of the plan (disk time) or minRead reads
//!           guard ─┘                       ▼
//!             ▲   late? ◀── finish ◀── Head ◀── chosen reads, one at a time
//!             └── charged, took ◀────────┘
//! ```
//!
//! A batch by reads begins when the one before has ended, not when a slot begins: the paper's
//! server reads on while it has buffers.
//!
//! The disk is only a `Head`, not `device::SimulatedDisk`: the study may draw the rotational delay
//! of each read, moves no bytes, and has one read at a time, so that nothing queues.
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
pub use streams::ViewerNumber;

use super::random::RandomSource;
use super::requests::ReadSchedule;
use counters::BusyTime;
use disk::{Costs, Head};
use reading::{ReadInFlight, Sweep};
use rules::piece_of;
use scheduler::{
    Demand, DiskTimings, Dispatcher, PieceDue, PolicyKind, ReleaseQueue, Shortage, Supply,
    TimeGuard, Verdict,
};
use std::sync::Arc;
use std::time::Duration;
use streams::{ActiveViewer, StreamId};
use units::{Moment, SlotIndex};

/// A server of one disk in virtual time: streams, their reads, and the scheduler that orders them.
#[derive(Clone)]
pub struct SingleDiskServer<'a> {
    rules: &'a Rules,
    now: Moment,
    head: Head,
    /// The rules' facts, and how far the disk is behind them.
    timings: Arc<DiskTimings>,
    guard: TimeGuard,
    sweep: Sweep,
    dispatcher: Dispatcher<StreamId, ()>,
    demand: Demand,
    viewers: Vec<ActiveViewer>,
    /// Nothing can be read before a buffer is released or a viewer comes or goes.
    waits: bool,
    flight: Option<ReadInFlight>,
    /// Pieces in memory, with the number of their viewer.
    held: ReleaseQueue<(usize, PieceDue)>,
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
            timings: Arc::clone(&rules.timings),
            guard: TimeGuard::default(),
            sweep: Sweep::default(),
            dispatcher: Dispatcher::default(),
            demand: Demand::default(),
            viewers: Vec::new(),
            waits: false,
            flight: None,
            held: ReleaseQueue::default(),
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
        self.dispatcher.books.is_empty()
    }

    /// By how much more than the model says everything is charged now: 0 is not at all.
    pub fn behind(&self) -> f64 {
        scheduler::slowdown_part(self.timings.slowdown)
    }

    /// Admits a viewer who asks for this now, or refuses it.
    pub fn arrive(&mut self, schedule: Arc<ReadSchedule>) -> Result<ViewerNumber, Shortage> {
        let first = self.ask(&schedule);
        if let Some(policy) = self.rules.policy {
            let (verdict, took) = self.with_unissued_unread(|server| server.verdict(policy));
            self.counters.decisions += 1;
            self.counters.deciding += took;
            match verdict {
                Verdict::Admit { plan, .. } => self.dispatcher.follow(plan),
                Verdict::Refuse(shortage) => {
                    self.counters.refused += 1;
                    return Err(shortage);
                }
            }
        }
        self.counters.admitted += 1;
        // The new plan covers all that is unread, so that the sweep is chosen again by it.
        self.break_off_sweep();
        let (number, summary) = (self.viewers.len(), self.demand.summary());
        self.dispatcher.books.book_demand(&self.demand);
        self.dispatcher.books.book_summary(summary);
        self.viewers.push(ActiveViewer::new(schedule, first, summary));
        for stream in self.streams_of(number) {
            let next = self.next_piece(stream);
            self.dispatcher.enqueue(stream, next);
        }
        self.busy.begins(self.now);
        Ok(ViewerNumber(number))
    }

    /// Whether each of these policies would admit a viewer who asks for this now, and how long its
    /// decision took. For policies without a plan: a policy with one decides what is read, so that
    /// its run is another.
    pub fn consult(
        &mut self,
        schedule: &ReadSchedule,
        policies: impl Iterator<Item = PolicyKind>,
    ) -> Vec<(bool, Duration)> {
        self.ask(schedule);
        self.with_unissued_unread(|server| {
            let says = |policy| {
                let (verdict, took) = server.verdict(policy);
                (verdict.is_admit(), took)
            };
            policies.map(says).collect()
        })
    }

    /// A viewer asks for something else instead. What it had stays booked until that is granted,
    /// and stays where it is not.
    pub fn seek(
        &mut self,
        viewer: ViewerNumber,
        schedule: Arc<ReadSchedule>,
    ) -> Result<ViewerNumber, Shortage> {
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
        while !self.dispatcher.queue().is_empty()
            || self.dispatcher.chosen().len() > 0
            || self.flight.is_some()
            || !self.held.is_empty()
        {
            if enough(&self.counters) {
                return;
            }
            // One slot at a time, so that a run in which the first late read decides ends with its
            // slot.
            let next = SlotIndex::at(self.now, self.rules.slot).next();
            self.run_until(next.start(self.rules.slot));
        }
    }

    /// Makes `self.demand` that of a schedule; returns the slot in which its first frame is shown.
    fn ask(&mut self, schedule: &ReadSchedule) -> SlotIndex {
        let first = self.rules.first_slot(self.now);
        self.demand.begin(self.dispatcher.books.current());
        for track in schedule.tracks() {
            let numbers = u32::try_from(track.start).expect("few reads")..;
            let reads = schedule.reads[track].iter().zip(numbers);
            self.demand.add_track(reads.map(|(read, number)| piece_of(read, number, first)));
        }
        first
    }

    /// Whether what is in `self.demand` fits, and how long the decision took.
    fn verdict(&self, policy: PolicyKind) -> (Verdict, Duration) {
        let supply = self.supply();
        let clock = self.rules.clock.unwrap_or(|| Duration::ZERO);
        let began = clock();
        let verdict = policy.policy().verdict(&self.dispatcher.books, &supply, &self.demand);
        (verdict, clock().saturating_sub(began))
    }

    fn supply(&self) -> Supply<'_> {
        // A policy must not know the drawn rotational delay: the read in the device counts with its
        // longest time.
        let free_at = self.flight.map_or(self.now, |flight| {
            let transfer = u64::from(flight.piece.transfer);
            let longest = |costs: &Costs| Duration::from_nanos(costs.batch(1, transfer));
            let charge = self.timings.costs.as_ref().map_or(Duration::ZERO, longest);
            self.now.max(flight.begun + charge)
        });
        Supply {
            min_read: self.rules.min_read,
            read_size: self.rules.read_size,
            memory: self.rules.memory,
            slot: self.rules.slot,
            free_at,
            owed: 0,
            timings: &self.timings,
        }
    }

    /// A slot begins.
    fn tick(&mut self) {
        let current = SlotIndex::at(self.now, self.rules.slot);
        // Before the books advance: what was shown in the last slot must be free for the reads of
        // this one.
        for (slot, (viewer, piece)) in self.held.expired(SlotIndex(current.0 - 1)) {
            self.shown(slot, viewer, piece);
        }
        self.dispatcher.advance(current);
        self.busy.slot_ends(self.now, self.rules.slot, &mut self.counters);
    }
}

// The name of a source of chance.
const ROTATION: u64 = 3;
