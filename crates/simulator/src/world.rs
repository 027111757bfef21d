//! The world: one queue of events in virtual time around one engine.
//!
//! ```text
//!   run loop:   1. the earliest of: next event, the engine's wake-up, next look at a deadline
//!               2. tell the engine (or a viewer) what happened
//!               3. carry out actions and look after viewers until nobody has anything to do
//!               4. check the books now and then; end when all is at rest
//! ```
//!
//! At one moment events come before the engine's tick, and looks at deadlines after both: what
//! happens at the deadline is in time.

use crate::checks::{
    Contract, DeadlineCheck, Deadlines, Deliveries, Liveness, Memory, ViolationLog,
};
use crate::disks::{Disk, Work};
use crate::outcome::WorldOutcome;
use crate::scenario::Scenario;
use crate::titles::{self, Title};
use crate::trace::{Trace, TraceLine};
use crate::viewers::{Request, Viewer, ViewerProfile};
use server::engine::{
    Action, DiskNumber, Engine, EngineConfig, PermitId, ReadOutcome, RequestId, SessionId, Status,
};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, VecDeque};
use std::time::Duration;
use units::{ByteCount, Moment};

mod actions;
mod audience;
mod background;

/// Runs a scenario to its end.
pub fn run(scenario: &Scenario) -> WorldOutcome {
    run_observed(scenario, &mut |_| {})
}

/// Runs a scenario to its end and gives every line of the trace to `observer` as it happens.
pub fn run_observed(scenario: &Scenario, observer: &mut dyn FnMut(&TraceLine)) -> WorldOutcome {
    let mut world = World::new(scenario, observer);
    world.run();
    world.finish()
}

/// What can happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// A viewer comes, or comes back.
    Arrive(usize),
    /// It begins to fetch.
    StartPlayer(usize),
    /// It asked to be looked after now.
    WakePlayer(usize),
    /// It drops what is under way.
    CancelRequests(usize),
    /// It tries again what it could not have.
    Retry(usize),
    /// Its socket is dead.
    SocketStalls(usize),
    /// The server's patience with a dead socket is over.
    SendTimeout(usize),
    /// A socket has taken a delivery.
    Sent(RequestId),
    /// A disk has done, or failed to do, what it was asked.
    DiskDone(usize, Work, Done),
    RequestBestEffort,
    /// Whoever asked for a permit does not want it any more.
    AbandonPermit(PermitId),
    RemoveTitle,
    Recalibrate,
    /// A lost disk is looked at, so long after the last time.
    Probe(usize, Duration),
    /// A deadline to look at.
    CheckDeadline(DeadlineCheck),
}

/// [`ReadOutcome`], in an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Done {
    Good,
    Failed,
    Damaged,
    Gone,
}

struct World<'a> {
    scenario: &'a Scenario,
    observer: &'a mut dyn FnMut(&TraceLine),
    now: Moment,
    /// When somebody last got something, came in or left.
    progress: Moment,
    engine: Engine,
    /// (when, looks last, in order of making, what).
    events: BinaryHeap<Reverse<(Moment, bool, u64, Event)>>,
    made: u64,
    actions: VecDeque<Action>,
    /// Viewers to look after now.
    runnable: VecDeque<usize>,
    titles: Vec<Title>,
    disks: Vec<Disk>,
    viewers: Vec<Viewer>,
    sessions: BTreeMap<SessionId, usize>,
    requests: BTreeMap<RequestId, Request>,
    last_request: u64,
    /// Cancelled while something said about them may be on its way.
    cancelled: BTreeSet<RequestId>,
    /// Asked for and not granted: disk and bytes.
    tickets: BTreeMap<PermitId, (usize, u32)>,
    chance: fastrand::Rng,
    /// Viewers still to come or here.
    present: usize,
    trace: Trace,
    violations: ViolationLog,
    memory: Memory,
    deliveries: Deliveries,
    deadlines: Deadlines,
    liveness: Liveness,
    outcome: WorldOutcome,
}

impl<'a> World<'a> {
    fn new(scenario: &'a Scenario, observer: &'a mut dyn FnMut(&TraceLine)) -> Self {
        let mut chance = fastrand::Rng::with_seed(scenario.seed);
        let disks: Vec<Disk> = (0..scenario.disks.len())
            .map(|number| Disk::new(scenario, number, chance.fork()))
            .collect();
        let capacities: Vec<u64> = disks.iter().map(Disk::capacity).collect();
        let titles = titles::make(scenario, &capacities, &mut chance.fork());
        let mut engine = Engine::new(config(scenario, &disks));
        for (disk, number) in disks.iter().zip(0..) {
            engine.set_timings(Moment::ZERO, DiskNumber(number), disk.timings.clone());
        }
        let mut world = Self {
            engine,
            scenario,
            observer,
            now: Moment::ZERO,
            progress: Moment::ZERO,
            events: BinaryHeap::new(),
            made: 0,
            actions: VecDeque::new(),
            runnable: VecDeque::new(),
            titles,
            disks,
            viewers: Vec::new(),
            sessions: BTreeMap::new(),
            requests: BTreeMap::new(),
            last_request: 0,
            cancelled: BTreeSet::new(),
            tickets: BTreeMap::new(),
            present: 0,
            trace: Trace::new(KEPT_LINES),
            violations: ViolationLog::default(),
            memory: Memory::new(scenario.memory.0),
            deliveries: Deliveries::default(),
            deadlines: Deadlines::new(Contract {
                slot: scenario.slot,
                startup: scenario.startup,
                idle_after: scenario.idle_after,
            }),
            liveness: Liveness::default(),
            outcome: WorldOutcome {
                seed: scenario.seed,
                lowest_min_read_share: 1.0,
                ..WorldOutcome::default()
            },
            chance,
        };
        world.schedule_arrivals();
        world.plan_background_work();
        world
    }

    /// Everybody's arrival, and what each will do.
    fn schedule_arrivals(&mut self) {
        let mut at = Moment::ZERO + self.scenario.slot;
        for number in 0..self.scenario.viewers.count as usize {
            let profile = ViewerProfile::draw(self.scenario, &self.titles, &mut self.chance.fork());
            self.viewers.push(Viewer::new(profile));
            self.at(at, Event::Arrive(number));
            at = at + self.exponential(self.scenario.viewers.every);
        }
        self.present = self.viewers.len();
    }

    /// A time between two events of a Poisson process.
    fn exponential(&mut self, mean: Duration) -> Duration {
        mean.mul_f64(-(1.0 - self.chance.f64()).ln())
    }

    fn run(&mut self) {
        let patience = self.patience();
        let (mut rounds, mut stood_still) = (0u64, 0);
        while !self.at_rest() {
            let event = self.events.peek().map(|Reverse((at, looks, ..))| (*at, *looks));
            let wakeup = self.engine.next_wakeup().max(self.now);
            let tick =
                event.is_none_or(|event| (wakeup, false) < event && event != (wakeup, false));
            let next = event.map_or(wakeup, |(at, _)| at.min(wakeup));
            stood_still = if next > self.now { 0 } else { stood_still + 1 };
            if next > self.progress + patience || stood_still > MOST_EVENTS_AT_ONCE {
                self.liveness.time_is_up(&mut self.violations);
                let (present, requests) = (self.present, self.requests.len());
                self.violations.require(present == 0 && requests == 0, "all viewers leave", || {
                    let staying = self.viewers.iter().position(|viewer| !viewer.gone);
                    format!("{present} stay, first {staying:?}; {requests} requests")
                });
                break;
            }
            self.now = next;
            self.violations.now = next;
            if tick {
                self.engine.tick(next);
            } else if let Some(Reverse((.., event))) = self.events.pop() {
                self.handle_event(event);
            }
            self.settle();
            rounds += 1;
            if rounds.is_multiple_of(ROUNDS_PER_AUDIT) {
                self.audit();
            }
        }
    }

    /// Carries out and looks after until nobody has anything to do at this moment.
    fn settle(&mut self) {
        loop {
            self.actions.extend(self.engine.take_actions());
            if let Some(action) = self.actions.pop_front() {
                self.execute(action);
            } else if let Some(viewer) = self.runnable.pop_front() {
                self.run_player(viewer);
            } else {
                self.cancelled.clear();
                return;
            }
        }
    }

    /// Carries out what the engine has said so far.
    fn execute_actions(&mut self) {
        loop {
            self.actions.extend(self.engine.take_actions());
            let Some(action) = self.actions.pop_front() else { return };
            self.execute(action);
        }
    }

    fn handle_event(&mut self, event: Event) {
        match event {
            Event::Arrive(viewer) => self.arrive(viewer),
            Event::StartPlayer(viewer) => self.begin(viewer),
            Event::WakePlayer(viewer) => self.wake(viewer),
            Event::CancelRequests(viewer) => self.drop_requests(viewer),
            Event::Retry(viewer) => self.retry(viewer),
            Event::SocketStalls(viewer) => self.stuck(viewer),
            Event::SendTimeout(viewer) => self.leave(viewer),
            Event::Sent(request) => self.sent(request),
            Event::DiskDone(disk, work, done) => self.disk_done(disk, work, done),
            Event::RequestBestEffort => self.request_best_effort(),
            Event::AbandonPermit(ticket) => self.give_up(ticket),
            Event::RemoveTitle => self.remove_a_title(),
            Event::Recalibrate => self.recalibrate(),
            Event::Probe(disk, pause) => self.probe(disk, pause),
            Event::CheckDeadline(check) => self.look(check),
        }
    }

    /// A deadline has passed: was it kept?
    fn look(&mut self, check: DeadlineCheck) {
        let mut misses = Vec::new();
        let next = self.deadlines.look(self.now, check, &self.memory, &mut misses);
        self.schedule_checks(next);
        for miss in misses {
            let piece = miss.piece;
            let numbers = [miss.session.0, piece.track.into(), piece.piece.into(), miss.deadline.0];
            self.note("missed: session, track, piece", numbers);
            let promised = self.scenario.guarantees_deadlines();
            self.violations
                .require(!promised, "no admitted stream misses a deadline", || format!("{miss:?}"));
        }
    }

    /// The engine's books beside the world's own.
    fn audit(&mut self) -> Status {
        let status = self.engine.status(self.now);
        let violations = &mut self.violations;
        let (sessions, used) = (self.sessions.len() as u64, self.memory.used());
        violations.require(status.sessions == sessions, "the books count the sessions", || {
            format!("{} in the books, {sessions} there are", status.sessions)
        });
        violations.require(status.buffers_used == used, "the books count the memory", || {
            format!("{} in the books, {used} there are", status.buffers_used)
        });
        violations
            .require(status.active <= sessions, "only sessions hold", || format!("{status:?}"));
        let promised = self.scenario.guarantees_deadlines();
        let misses = status.deadline_misses;
        violations.require(!promised || misses == 0, "the engine counts no deadline miss", || {
            format!("{misses} deadline misses")
        });
        if let Err(wrong) = self.engine.audit() {
            violations.add("the books add up", || wrong);
        }
        for (disk, books) in self.disks.iter().zip(&status.disks) {
            let promise = disk.guarantee.min_read;
            let belief = f64::from(books.min_read) / f64::from(promise.max(1));
            self.outcome.lowest_min_read_share = self.outcome.lowest_min_read_share.min(belief);
            self.outcome.highest_slowdown =
                self.outcome.highest_slowdown.max(books.slowdown_part());
            let believed = books.min_read == promise || books.lost;
            let kept = books.min_read <= promise && (!promised || believed);
            violations.require(kept, "a disk is believed what it keeps", || {
                format!("{} believed of {promise}", books.min_read)
            });
        }
        (self.outcome.on_time, self.outcome.deadline_misses) =
            (status.deadlines_met, status.deadline_misses);
        (self.outcome.failed_over, self.outcome.ended_by_loss) =
            (status.failed_over, status.ended_by_disk_loss);
        self.outcome.refused_for_loss = status.refused_for_loss;
        status
    }

    fn at_rest(&self) -> bool {
        self.present == 0
            && self.memory.in_flight == 0
            && self.requests.is_empty()
            && self.liveness.at_rest()
    }

    /// Somebody must get, get in or leave at least this often, or nothing ever comes to an end.
    fn patience(&self) -> Duration {
        let wanted = self.scenario.viewers.every * self.scenario.viewers.count;
        let each = self.scenario.titles.longest + self.scenario.ended_after * 2;
        wanted + each + self.scenario.reservation_hold + PATIENCE
    }

    fn finish(mut self) -> WorldOutcome {
        let status = self.audit();
        self.violations.require(status.active == 0, "nobody holds when all have left", || {
            format!("{status:?}")
        });
        self.violations.require(
            self.engine.is_empty(),
            "nothing is booked when all have left",
            || format!("{status:?}"),
        );
        WorldOutcome {
            ended: self.now,
            reads: self.memory.reads,
            bytes: self.memory.bytes,
            peak_memory: ByteCount(self.memory.peak),
            checked_on_time: self.deadlines.on_time,
            checked_late: self.deadlines.missed,
            violations: self.violations.list,
            trace_hash: self.trace.hash(),
            last_lines: self.trace.into_last(),
            ..self.outcome
        }
    }

    fn at(&mut self, at: Moment, event: Event) {
        self.made += 1;
        let looks = matches!(event, Event::CheckDeadline(_));
        self.events.push(Reverse((at, looks, self.made, event)));
    }

    fn schedule_checks(&mut self, all: impl IntoIterator<Item = (Moment, DeadlineCheck)>) {
        for (at, check) in all {
            self.at(at, Event::CheckDeadline(check));
        }
    }

    /// Something that a viewer lives for.
    fn note_progress(&mut self, what: &'static str, numbers: [u64; 4]) {
        self.progress = self.now;
        self.note(what, numbers);
    }

    fn note(&mut self, what: &'static str, numbers: [u64; 4]) {
        let line = TraceLine { at: self.now, what, numbers };
        self.trace.note(line, self.violations.list.is_empty());
        (self.observer)(&line);
    }
}

fn config(scenario: &Scenario, disks: &[Disk]) -> EngineConfig {
    EngineConfig {
        slot: scenario.slot,
        policy: scenario.policy,
        startup: scenario.startup,
        buffers: scenario.memory,
        network: scenario.network,
        reservation_hold: scenario.reservation_hold,
        idle_timeout: scenario.idle_after,
        session_timeout: scenario.ended_after,
        survive_loss: scenario.survive_loss,
        disks: disks.iter().map(|disk| disk.guarantee).collect(),
    }
}

impl From<Done> for ReadOutcome {
    fn from(done: Done) -> Self {
        match done {
            Done::Good => Self::Good,
            Done::Failed => Self::Failed,
            Done::Damaged => Self::Damaged,
            Done::Gone => Self::Gone,
        }
    }
}

impl From<ReadOutcome> for Done {
    fn from(outcome: ReadOutcome) -> Self {
        match outcome {
            ReadOutcome::Good => Self::Good,
            ReadOutcome::Failed => Self::Failed,
            ReadOutcome::Damaged => Self::Damaged,
            ReadOutcome::Gone => Self::Gone,
        }
    }
}

/// Lines of the trace that a failing run shows.
const KEPT_LINES: usize = 400;

/// Often enough to find when the books went wrong, seldom enough to cost little.
const ROUNDS_PER_AUDIT: u64 = 32;

/// More at one moment is an engine (or a world) that goes in circles.
const MOST_EVENTS_AT_ONCE: u32 = 100_000;

/// On top of what the longest viewer takes.
const PATIENCE: Duration = Duration::from_secs(300);
