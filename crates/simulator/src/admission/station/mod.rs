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
//! everything around it by [`crate::run`].

mod reading;
mod rules;
mod tally;
mod watching;

pub(crate) use rules::due_slot;
pub use rules::{Rules, Trouble, Turns};
pub use tally::Tally;
pub use watching::Viewer;

use super::chance::Chance;
use super::requests::Wanted;
use disk::Head;
use reading::{Flight, Sweep};
use rules::piece_of;
use scheduler::{
    Demand, DiskBooks, EdfQueue, Facts, Plan, PolicyKind, Shortage, Summary, Supply, TimeGuard,
    Verdict,
};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use tally::Busy;
use units::{Moment, SlotIndex};
use watching::Watching;

/// See the head of this file.
#[derive(Clone)]
pub struct Station<'a> {
    rules: &'a Rules,
    now: Moment,
    head: Head,
    arm: u64,
    /// The rules' facts, and how far the disk is behind them.
    facts: Arc<Facts>,
    guard: TimeGuard,
    sweep: Sweep,
    books: DiskBooks,
    plan: Plan,
    proposal: Plan,
    demand: Demand,
    viewers: Vec<Watching>,
    queue: EdfQueue<usize>,
    batch: VecDeque<(usize, usize)>,
    inward: bool,
    waits: bool,
    flight: Option<Flight>,
    held: BTreeMap<SlotIndex, Vec<(usize, usize)>>,
    chance: Chance,
    busy: Busy,
    tally: Tally,
}

impl<'a> Station<'a> {
    /// Nobody is in. `seed` is that of the platter's angle.
    pub fn new(rules: &'a Rules, seed: u64) -> Self {
        Self {
            rules,
            now: Moment::ZERO,
            head: rules.model.head(),
            arm: 0,
            facts: Arc::clone(&rules.facts),
            guard: TimeGuard::default(),
            sweep: Sweep::default(),
            books: DiskBooks::default(),
            plan: Plan::default(),
            proposal: Plan::default(),
            demand: Demand::default(),
            viewers: Vec::new(),
            queue: EdfQueue::default(),
            batch: VecDeque::new(),
            inward: false,
            waits: false,
            flight: None,
            held: BTreeMap::new(),
            chance: Chance::new(seed, TURNS),
            busy: Busy::default(),
            tally: Tally::default(),
        }
    }

    /// What has happened so far.
    pub fn tally(&self) -> Tally {
        self.tally
    }

    /// Stretches of slots in which the disk was never idle: the reads completed in each.
    pub(super) fn into_stretches(self) -> Vec<Vec<u32>> {
        self.busy.into_stretches()
    }

    /// The same from now on by other rules: what would come of it.
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
        scheduler::behind_part(self.facts.behind)
    }

    /// A viewer asks for this, now.
    pub fn arrive(&mut self, wanted: Arc<Wanted>) -> Result<Viewer, Shortage> {
        let (first, summary) = self.ask(&wanted);
        if let Some(policy) = self.rules.policy {
            let (verdict, took) = self.verdict(policy);
            self.tally.decisions += 1;
            self.tally.deciding += took;
            if let Verdict::Refuse(shortage) = verdict {
                self.tally.refused += 1;
                return Err(shortage);
            }
            std::mem::swap(&mut self.plan, &mut self.proposal);
        }
        self.tally.admitted += 1;
        let number = self.viewers.len();
        self.books.book_demand(&self.demand);
        self.books.book_summary(summary);
        self.viewers.push(Watching::new(wanted, first, summary));
        self.enqueue(number);
        self.drop_batch();
        self.busy.begins(self.now);
        Ok(Viewer(number))
    }

    /// Whether each of these policies would let a viewer in who asks for this now, and how long it
    /// took to say so. For policies that leave no plan: whom they let in changes the run, they
    /// do not.
    pub fn consult(
        &mut self,
        wanted: &Wanted,
        policies: impl Iterator<Item = PolicyKind>,
    ) -> Vec<(bool, Duration)> {
        self.ask(wanted);
        let says = |policy| {
            let (verdict, took) = self.verdict(policy);
            (verdict.is_admit(), took)
        };
        policies.map(says).collect()
    }

    /// A viewer asks for something else instead. What it had stays booked until that is granted,
    /// and stays where it is not.
    pub fn seek(&mut self, viewer: Viewer, wanted: Arc<Wanted>) -> Result<Viewer, Shortage> {
        let instead = self.arrive(wanted)?;
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

    /// The same, or until there is `enough`.
    pub fn finish_unless(&mut self, enough: impl Fn(&Tally) -> bool) {
        while !self.queue.is_empty()
            || !self.batch.is_empty()
            || self.flight.is_some()
            || !self.held.is_empty()
        {
            if enough(&self.tally) {
                return;
            }
            let next = SlotIndex::at(self.now, self.rules.slot).next();
            self.run_until(next.start(self.rules.slot));
        }
    }

    /// Puts what `wanted` would take into `self.demand`.
    fn ask(&mut self, wanted: &Wanted) -> (SlotIndex, Summary) {
        let first = self.rules.first_slot(self.now);
        self.demand.begin(self.books.current());
        let pieces = wanted.reads.iter().zip(0..).map(|(read, i)| piece_of(read, i, first));
        let summary = self.demand.add_track(pieces);
        (first, summary)
    }

    /// About what is in `self.demand`; a plan is left in `self.proposal`.
    fn verdict(&mut self, policy: PolicyKind) -> (Verdict, Duration) {
        let facts = Arc::clone(&self.facts);
        let supply = Supply { facts: &facts, ..self.supply() };
        let clock = self.rules.clock.unwrap_or(|| Duration::ZERO);
        let began = clock();
        let verdict =
            policy.policy().verdict(&self.books, &supply, &self.demand, &mut self.proposal);
        (verdict, clock().saturating_sub(began))
    }

    fn supply(&self) -> Supply<'_> {
        let free_at = self.flight.map_or(self.now, |flight| {
            let piece = self.piece(flight.viewer, flight.read);
            let most = self.facts.costs.as_ref();
            let most = most.map_or(0, |costs| costs.batch(1, u64::from(piece.transfer)));
            self.now.max(flight.begun + Duration::from_nanos(most))
        });
        Supply {
            min_read: self.rules.min_read,
            read_size: self.rules.read_size,
            memory: self.rules.memory,
            slot: self.rules.slot,
            free_at,
            facts: &self.facts,
        }
    }

    /// A slot begins.
    fn tick(&mut self) {
        let current = SlotIndex::at(self.now, self.rules.slot);
        while let Some(entry) = self.held.first_entry() {
            if *entry.key() >= current {
                break;
            }
            let (slot, reads) = entry.remove_entry();
            self.shown(slot, reads);
        }
        self.books.advance(current);
        self.busy.slot_ends(self.now, self.rules.slot, &mut self.tally);
    }
}

// The name of a source of chance.
const TURNS: u64 = 3;
