//! The world: one queue of events in virtual time around one engine.
//!
//! ```text
//!   run loop:   1. take the earliest of: next event, the engine's wake-up, next deadline check
//!               2. pass it to the engine or to a viewer
//!               3. execute actions and run players until neither has more to do
//!               4. audit the engine now and then; end when the world is at rest
//! ```
//!
//! At one moment, events come first, then the engine's tick, then deadline checks: data that
//! arrives exactly at its deadline is in time.

use crate::checks::{
    Contract, DeadlineCheck, Deadlines, Deliveries, Liveness, Memory, Priorities, Refusals,
    ViolationLog,
};
use crate::disks::{Disk, Work};
use crate::outcome::WorldOutcome;
use crate::scenario::Scenario;
use crate::titles::{self, Title};
use crate::trace::{Trace, TraceLine};
use crate::viewers::{Viewer, ViewerProfile, ViewerRequest};
use engine::{
    Action, DiskNumber, Engine, EngineConfig, PermitId, ReadOutcome, RequestId, SessionId, Status,
};
use recordings::{GroupWrite, Recording};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;
use units::{ByteCount, Moment};

mod actions;
mod audience;
mod background;
mod recordings;
mod requests;

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

/// Whether the viewer of an admission request, counted from 1, would be admitted if it had the
/// lowest priority: nobody ends for it then. `None`: there are not so many requests.
pub fn would_be_admitted_as_lowest(scenario: &Scenario, request: u64) -> Option<bool> {
    let mut observer = |_: &TraceLine| {};
    let mut world = World::new(scenario, &mut observer);
    world.lowered = Some(request);
    world.run();
    world.lowered_is_admitted
}

/// An event of the world. A `usize` is the index of a viewer or of a disk.
#[derive(Debug)]
enum Event {
    /// A viewer requests admission, for the first time or again.
    Arrive(usize),
    /// The player of an admitted viewer starts to fetch.
    StartPlayer(usize),
    /// The time for which a player asked to be polled.
    WakePlayer(usize),
    /// A viewer cancels its open requests, because it seeks or leaves.
    CancelRequests(usize),
    /// A viewer repeats fetches that were refused or failed.
    Retry(usize),
    /// A viewer asks again for what was not offered yet.
    Poll(usize),
    /// A viewer closes its connection, if nothing is open.
    GoAway(usize),
    /// A viewer's socket takes no more data.
    SocketStalls(usize),
    /// The server closes a socket that takes no data.
    SendTimeout(usize),
    /// A socket has taken a delivery.
    Sent(RequestId),
    /// A disk has completed a work item.
    DiskDone {
        disk: usize,
        work: Work,
        outcome: ReadOutcome,
    },
    /// Background work asks for a best-effort permit.
    RequestBestEffort,
    /// Background work withdraws its request for a permit.
    AbandonPermit(PermitId),
    /// A recording begins, a round of its writes is due, it ends.
    StartRecording(usize),
    RecordingRound(usize),
    EndRecording(usize),
    /// A part of a series has ended, and has been kept for long enough.
    PartEnds(usize),
    PartExpires(usize),
    /// The power fails, with which the world ends.
    FailPower,
    /// A title is removed from the library.
    RemoveTitle,
    /// The first disk gets a new calibration.
    Recalibrate,
    /// The memory for buffers shrinks or grows.
    ChangeMemory,
    /// A lost disk is probed; `pause` is the time since the previous probe.
    Probe {
        disk: usize,
        pause: Duration,
    },
    /// A deadline has come.
    CheckDeadline(DeadlineCheck),
}

/// The place of an event in the queue; keys are compared field by field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct EventKey {
    at: Moment,
    /// Deadline checks come after all other events of the same moment.
    is_check: bool,
    /// Number of the event in the order of scheduling; unique, so that the order is total.
    sequence: u64,
}

/// A request for a best-effort permit that the engine has not granted.
#[derive(Clone, Copy, Debug)]
struct PermitRequest {
    disk: usize,
    /// The bytes of each read, and how many there are.
    len: u32,
    reads: u32,
}

struct World<'a> {
    scenario: &'a Scenario,
    observer: &'a mut dyn FnMut(&TraceLine),
    now: Moment,
    /// When a viewer last received data, was admitted or left.
    last_progress: Moment,
    engine: Engine,
    events: BTreeMap<EventKey, Event>,
    /// Events scheduled so far.
    scheduled: u64,
    /// Actions of the engine that are not executed yet.
    actions: VecDeque<Action>,
    /// Viewers whose player must be polled at this moment.
    runnable: VecDeque<usize>,
    titles: Vec<Title>,
    disks: Vec<Disk>,
    viewers: Vec<Viewer>,
    /// Open sessions and their viewers.
    sessions: BTreeMap<SessionId, usize>,
    /// Requests as the viewers made them, by the engine's first request for each.
    requests: BTreeMap<RequestId, ViewerRequest>,
    /// The first request for the same response, by each later one.
    responses: BTreeMap<RequestId, RequestId>,
    last_request: u64,
    /// Requests cancelled at this moment; actions about them may still be in the queue.
    cancelled: BTreeSet<RequestId>,
    permit_requests: BTreeMap<PermitId, PermitRequest>,
    /// The reads of each granted permit that are not done.
    permit_reads: BTreeMap<PermitId, u32>,
    /// Titles that have ended as parts of a series and were not removed, oldest first.
    parts: VecDeque<usize>,
    recordings: Vec<Recording>,
    group_writes: Vec<GroupWrite>,
    power_has_failed: bool,
    rng: fastrand::Rng,
    /// Viewers that have not left, those who have not arrived yet included.
    present: usize,
    trace: Trace,
    violations: ViolationLog,
    memory: Memory,
    deliveries: Deliveries,
    deadlines: Deadlines,
    liveness: Liveness,
    refusals: Refusals,
    priorities: Priorities,
    /// Admission requests so far.
    asked: u64,
    /// The number of the request that has the lowest priority, whatever its viewer has; the world
    /// ends with it.
    lowered: Option<u64>,
    lowered_is_admitted: Option<bool>,
    outcome: WorldOutcome,
}

impl<'a> World<'a> {
    fn new(scenario: &'a Scenario, observer: &'a mut dyn FnMut(&TraceLine)) -> Self {
        // Every disk, the library and every viewer has a random stream of its own, so that a
        // change in one of them does not change the others.
        let mut rng = fastrand::Rng::with_seed(scenario.seed);
        let disks: Vec<Disk> = (0..scenario.disks.len())
            .map(|number| Disk::new(scenario, number, rng.fork()))
            .collect();
        let capacities: Vec<u64> = disks.iter().map(Disk::capacity).collect();
        let titles = titles::draw_library(scenario, &capacities, &mut rng.fork());
        let mut engine = Engine::new(config(scenario, &disks));
        for (disk, number) in disks.iter().zip(0..) {
            engine.set_timings(Moment::ZERO, DiskNumber(number), disk.timings.clone());
        }
        let mut world = Self {
            engine,
            scenario,
            observer,
            now: Moment::ZERO,
            last_progress: Moment::ZERO,
            events: BTreeMap::new(),
            scheduled: 0,
            actions: VecDeque::new(),
            runnable: VecDeque::new(),
            titles,
            disks,
            viewers: Vec::new(),
            sessions: BTreeMap::new(),
            requests: BTreeMap::new(),
            last_request: 0,
            cancelled: BTreeSet::new(),
            responses: BTreeMap::new(),
            permit_requests: BTreeMap::new(),
            permit_reads: BTreeMap::new(),
            parts: VecDeque::new(),
            recordings: Vec::new(),
            group_writes: Vec::new(),
            power_has_failed: false,
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
            refusals: Refusals::new(scenario.guarantees_deadlines()),
            priorities: Priorities::default(),
            asked: 0,
            lowered: None,
            lowered_is_admitted: None,
            outcome: WorldOutcome {
                seed: scenario.seed,
                lowest_min_read_share: 1.0,
                ..WorldOutcome::default()
            },
            rng,
        };
        world.schedule_arrivals();
        world.schedule_background_work();
        world.schedule_recordings();
        world
    }

    /// Draws the profile of every viewer and schedules its arrival.
    fn schedule_arrivals(&mut self) {
        let mut at = Moment::ZERO + self.scenario.slot;
        for number in 0..self.scenario.viewers.count as usize {
            let profile = ViewerProfile::draw(self.scenario, &self.titles, &mut self.rng.fork());
            self.viewers.push(Viewer::new(profile));
            self.schedule(at, Event::Arrive(number));
            at = at + self.exponential(self.scenario.viewers.every);
        }
        self.present = self.viewers.len();
    }

    /// Draws the time between two events of a Poisson process.
    fn exponential(&mut self, mean: Duration) -> Duration {
        mean.mul_f64(-(1.0 - self.rng.f64()).ln())
    }

    fn run(&mut self) {
        let timeout = self.progress_timeout();
        let (mut iterations, mut at_this_moment) = (0u64, 0);
        while !self.is_at_rest() && !self.power_has_failed && self.lowered_is_admitted.is_none() {
            let event = self.events.first_key_value().map(|(key, _)| (key.at, key.is_check));
            let wakeup = self.engine.next_wakeup().max(self.now);
            // The tick is later than the events of its moment and earlier than the checks.
            let is_tick = event.is_none_or(|event| (wakeup, false) < event);
            let next = event.map_or(wakeup, |(at, _)| at.min(wakeup));
            at_this_moment = if next > self.now { 0 } else { at_this_moment + 1 };
            if next > self.last_progress + timeout || at_this_moment > MAX_EVENTS_AT_ONCE {
                self.report_no_progress();
                break;
            }
            self.now = next;
            self.violations.now = next;
            if is_tick {
                self.engine.tick(next);
            } else if let Some((_, event)) = self.events.pop_first() {
                self.handle_event(event);
            }
            self.settle();
            iterations += 1;
            if iterations.is_multiple_of(ITERATIONS_PER_AUDIT) {
                self.audit();
            }
        }
    }

    /// Records what is still open when the world makes no progress.
    fn report_no_progress(&mut self) {
        self.liveness.report_open(&mut self.violations);
        let (present, requests) = (self.present, self.requests.len());
        self.violations.require(present == 0 && requests == 0, "all viewers leave", || {
            let first = self.viewers.iter().position(|viewer| !viewer.has_left);
            format!("{present} viewers present, first {first:?}; {requests} requests open")
        });
    }

    /// Executes actions and runs players until nothing is left to do at this moment.
    fn settle(&mut self) {
        loop {
            self.take_actions();
            if let Some(action) = self.actions.pop_front() {
                self.execute(action);
            } else if let Some(viewer) = self.runnable.pop_front() {
                // Players run only when no action is left: they must know all that has arrived by
                // now before they decide what to fetch.
                self.run_player(viewer);
            } else {
                // Only here is the queue of actions empty, so that none from before a cancellation
                // is left.
                self.cancelled.clear();
                return;
            }
        }
    }

    /// Queues what the engine has emitted so far.
    fn take_actions(&mut self) {
        let actions = self.engine.take_actions();
        self.queue_actions(actions);
    }

    /// Queues actions of the engine.
    fn queue_actions(&mut self, actions: Vec<Action>) {
        use Action::{Deliver, Forget, Read};
        // What the engine could not know of when it named exact times.
        if actions
            .iter()
            .any(|action| !matches!(action, Read { .. } | Deliver { .. } | Forget { .. }))
        {
            self.refusals.changed();
        }
        self.actions.extend(actions);
    }

    /// Executes all actions that the engine has emitted so far.
    fn execute_actions(&mut self) {
        loop {
            self.take_actions();
            let Some(action) = self.actions.pop_front() else { return };
            self.execute(action);
        }
    }

    fn handle_event(&mut self, event: Event) {
        match event {
            Event::Arrive(viewer) => self.arrive(viewer),
            Event::StartPlayer(viewer) => self.start_player(viewer),
            Event::WakePlayer(viewer) => self.wake_player(viewer),
            Event::CancelRequests(viewer) => self.cancel_requests(viewer),
            Event::Retry(viewer) => self.retry(viewer),
            Event::Poll(viewer) => {
                self.viewers[viewer].polls -= 1;
                self.retry(viewer);
            }
            Event::GoAway(viewer) => self.go_away(viewer),
            Event::SocketStalls(viewer) => self.stall_socket(viewer),
            Event::SendTimeout(viewer) => self.leave(viewer),
            Event::Sent(request) => self.delivery_sent(request),
            Event::DiskDone { disk, work, outcome } => self.disk_done(disk, work, outcome),
            Event::RequestBestEffort => self.request_best_effort(),
            Event::AbandonPermit(permit) => self.abandon_permit(permit),
            Event::StartRecording(number) => self.start_recording(number),
            Event::RecordingRound(number) => self.recording_round(number),
            Event::EndRecording(number) => self.end_recording(number),
            Event::PartEnds(title) => self.part_ends(title),
            Event::PartExpires(title) => self.part_expires(title),
            Event::FailPower => self.fail_power(),
            Event::RemoveTitle => self.remove_title(),
            Event::Recalibrate => self.recalibrate(),
            Event::ChangeMemory => self.change_memory(),
            Event::Probe { disk, pause } => self.probe(disk, pause),
            Event::CheckDeadline(check) => self.check_deadline(check),
        }
    }

    /// Records the pieces that are not in memory at their deadline.
    fn check_deadline(&mut self, check: DeadlineCheck) {
        let mut misses = Vec::new();
        let next = self.deadlines.check(self.now, check, &self.memory, &mut misses);
        self.schedule_checks(next);
        for miss in misses {
            let piece = miss.piece;
            let numbers =
                [miss.session.0, piece.track.into(), piece.number.into(), miss.deadline.0];
            self.note("missed: session, track, piece", numbers);
            self.break_guarantee("no admitted stream misses a deadline", || format!("{miss:?}"));
        }
    }

    /// Compares the engine's status with what the world has counted.
    fn audit(&mut self) -> Status {
        let status = self.engine.status(self.now);
        let violations = &mut self.violations;
        let (sessions, used) = (self.sessions.len() as u64, self.memory.used());
        violations.require(
            status.sessions == sessions,
            "the engine counts its sessions correctly",
            || format!("{} counted, {sessions} open", status.sessions),
        );
        violations.require(
            status.buffers_used == used,
            "the engine counts its memory correctly",
            || format!("{} counted, {used} in use", status.buffers_used),
        );
        self.memory.has_limits(status.buffers_total, status.buffers_limit, violations);
        violations.require(status.active <= sessions, "only sessions hold reservations", || {
            format!("{status:?}")
        });
        let misses = status.counters.deadline_misses;
        // Not a plain violation: with a disk that breaks its guarantee misses are expected.
        if misses > 0 {
            self.break_guarantee("the engine counts no deadline miss", || {
                format!("{misses} counted")
            });
        }
        // Rebuilds all books from the sessions; the comparison above uses only what is visible
        // outside.
        if let Err(error) = self.engine.audit() {
            self.violations.add("the engine's audit passes", || error);
        }
        self.audit_disks(&status);
        (self.outcome.on_time, self.outcome.deadline_misses) =
            (status.counters.deadlines_met, status.counters.deadline_misses);
        self.outcome.revoked = status.counters.revoked;
        (self.outcome.failed_over, self.outcome.ended_by_loss) =
            (status.counters.failed_over, status.counters.ended_by_disk_loss);
        self.outcome.refused_for_loss = status.counters.refused_for_loss;
        status
    }

    /// The engine may reduce its estimate of a slow disk, and must never exceed the guarantee.
    fn audit_disks(&mut self, status: &Status) {
        let guaranteed = self.scenario.guarantees_deadlines();
        let outcome = &mut self.outcome;
        for (disk, estimate) in self.disks.iter().zip(&status.disks) {
            let guarantee = disk.guarantee.min_read;
            let share = f64::from(estimate.min_read) / f64::from(guarantee.max(1));
            outcome.lowest_min_read_share = outcome.lowest_min_read_share.min(share);
            outcome.highest_slowdown = outcome.highest_slowdown.max(estimate.slowdown_part());
            let unchanged = estimate.min_read == guarantee || estimate.lost;
            let plausible = estimate.min_read <= guarantee && (!guaranteed || unchanged);
            self.violations.require(
                plausible,
                "the estimate of a disk is at most its guarantee, and equal while it is kept",
                || format!("estimate {} reads, guarantee {guarantee}", estimate.min_read),
            );
        }
    }

    /// Records a violation if the engine guarantees deadlines in this world.
    fn break_guarantee(&mut self, rule: &'static str, seen: impl FnOnce() -> String) {
        if self.scenario.guarantees_deadlines() {
            self.violations.add(rule, seen);
        }
    }

    fn is_at_rest(&self) -> bool {
        self.present == 0
            // Reads outlast the viewers for whom they were issued. Their buffers must be released
            // too.
            && self.memory.in_flight == 0
            && self.requests.is_empty()
            && self.has_recorded_all()
            && self.liveness.is_at_rest()
    }

    /// The longest time without progress that a correct engine can cause: all arrivals, the
    /// longest viewer and the longest time-outs of a session, one after another.
    fn progress_timeout(&self) -> Duration {
        let arrivals = self.scenario.viewers.every * self.scenario.viewers.count;
        let longest_viewer = self.scenario.titles.longest + self.scenario.ended_after * 2;
        arrivals + longest_viewer + self.scenario.reservation_hold + PROGRESS_MARGIN
    }

    fn finish(mut self) -> WorldOutcome {
        // Nothing comes to rest where the power has failed.
        if !self.power_has_failed {
            self.come_to_rest();
        }
        WorldOutcome {
            ended: self.now,
            reads: self.memory.reads,
            bytes: self.memory.bytes,
            peak_memory: ByteCount(self.memory.peak),
            checked_on_time: self.deadlines.on_time,
            checked_late: self.deadlines.missed,
            preempted: self.priorities.preempted,
            overloaded: self.priorities.overloaded,
            refused_for_ever: self.refusals.for_ever,
            exact_retries: self.refusals.at_exact_time,
            violations: self.violations.list,
            trace_hash: self.trace.hash(),
            last_lines: self.trace.into_last(),
            ..self.outcome
        }
    }

    /// Whether the books are empty when all viewers have left and all is written.
    fn come_to_rest(&mut self) {
        // Memory that is still to be given back is when the next slot begins.
        self.engine.tick(self.now + self.scenario.slot);
        self.execute_actions();
        self.check_recordings();
        let status = self.audit();
        let kept = &status.disks;
        self.violations.require(
            kept.iter().all(|disk| disk.recordings == 0 && !disk.write_share.is_some()),
            "no disk time is kept when all recordings have ended",
            || format!("{kept:?}"),
        );
        self.violations.require(
            status.buffers_total == status.buffers_limit,
            "no more memory is kept than there is to be when nobody needs it",
            || format!("{status:?}"),
        );
        self.violations.require(
            status.active == 0,
            "no session is active after all viewers have left",
            || format!("{status:?}"),
        );
        self.violations.require(
            self.engine.is_empty(),
            "nothing is booked after all viewers have left",
            || format!("{status:?}"),
        );
    }

    fn schedule(&mut self, at: Moment, event: Event) {
        self.scheduled += 1;
        let is_check = matches!(event, Event::CheckDeadline(_));
        self.events.insert(EventKey { at, is_check, sequence: self.scheduled }, event);
    }

    fn schedule_checks(&mut self, checks: impl IntoIterator<Item = (Moment, DeadlineCheck)>) {
        for (at, check) in checks {
            self.schedule(at, Event::CheckDeadline(check));
        }
    }

    /// Notes an event that counts as progress of a viewer.
    fn note_progress(&mut self, what: &'static str, numbers: [u64; 4]) {
        self.last_progress = self.now;
        self.note(what, numbers);
    }

    fn note(&mut self, what: &'static str, numbers: [u64; 4]) {
        let line = TraceLine { at: self.now, what, numbers };
        // No lines after the first violation: the last lines of the report are those that led to
        // it.
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
        fills: 0,
        disks: disks.iter().map(|disk| disk.guarantee).collect(),
    }
}

/// Lines of the trace that a failing run shows.
const KEPT_LINES: usize = 400;

/// Iterations of the run loop between two audits: few enough to find where the engine's state
/// became wrong, and enough to keep the cost low.
const ITERATIONS_PER_AUDIT: u64 = 128;

/// Iterations at one moment after which the engine or the world is considered to loop for ever.
const MAX_EVENTS_AT_ONCE: u32 = 100_000;

/// Allowance for retries and for a hanging disk, on top of the longest viewer.
const PROGRESS_MARGIN: Duration = Duration::from_secs(300);
