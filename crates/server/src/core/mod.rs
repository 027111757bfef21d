//! The core: one thread that owns the engine, passes every event to it and executes the actions
//! that it returns. All decisions about sessions and disks are made on this thread, by the engine.
//!
//! ```text
//!   HTTP threads ──Admit, Request, Sent───▶ ┌────────┐ ──Accepted, Deliver, ...─▶ HTTP threads
//!   disk threads ──ReadDone───────────────▶ │  Core  │ ──ReadJob────────────────▶ disk threads
//!   ingest, opener ──RequestPermit────────▶ │ Engine │ ──grant──────────────────▶ ingest, opener
//!   control ──Withdraw, Stop──────────────▶ └────────┘
//! ```
//!
//! `requests` handles requests for bytes (event to engine, action to HTTP thread), `sessions`
//! admission and the removal of titles, `handover` sessions of another server, `actions` the other
//! actions; `decisions` shows what was decided on viewers, `tracing` what became of them.

mod actions;
mod alerts;
mod decisions;
mod handover;
mod requests;
mod sessions;
mod tracing;

use crate::background_io::GuaranteedWrites;
use crate::buffer_memory::MemoryWatch;
use crate::clients::{ClientCounts, ClientLimit};
use crate::clock::Clock;
use crate::disk_history_writer::{self, HistoryRecord};
use crate::disk_thread::DiskThread;
use crate::library::{OpenStore, StoredCopy};
use crate::messages::{
    Caller, CoreHandle, Event, PermitRequestId, RateRefusal, RequestError, WorkerHandle,
    WorkerMessage,
};
use crate::opening::disk_number;
use crate::sessions::PlayerSession;
use crate::shared::Shared;
use crate::wire::TitleSessions;
use alerts::Alerts;
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender};
use device::{Pool, SharedBuffer};
use engine::{
    Action, DiskNumber, Engine, PermitId, ReadId, ReadOutcome, RecordingId, RequestId, SessionId,
    Status, TitleKey,
};
use handover::HandingOver;
use requests::PendingRequest;
use serde_json::json;
use sessions::{OpenSession, PlayingTitle, WaitingFill};
use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use units::{BitRate, Moment, SlotIndex};

/// The thread that owns the engine: events in, actions executed.
pub(crate) struct Core {
    engine: Engine,
    clock: Clock,
    slot: Duration,
    shared: Arc<Shared>,
    // A handle to this core, for threads that it starts.
    handle: CoreHandle,
    events: Receiver<Event>,
    workers: Vec<WorkerHandle>,
    disks: Vec<DiskThread>,
    pool: Pool,
    memory: MemoryWatch,
    memory_looked_at: Moment,
    sessions: HashMap<SessionId, OpenSession>,
    requests: HashMap<RequestId, PendingRequest>,
    buffers: HashMap<ReadId, SharedBuffer>,
    titles: HashMap<TitleKey, PlayingTitle>,
    // Sessions admitted with a later start, and when their players get the answer.
    deferred: Vec<(Moment, Caller, Arc<PlayerSession>)>,
    // Fills beyond those that may be under way, in the order in which they came.
    waiting_fills: VecDeque<WaitingFill>,
    withdrawn: HashSet<TitleKey>,
    // Hidden copies whose space is in use, and the titles in play that they are copies of.
    leaving: Vec<(StoredCopy, HashSet<TitleKey>)>,
    permits: HashMap<PermitRequestId, PermitId>,
    grants: HashMap<PermitId, Sender<()>>,
    actions: Vec<Action>,
    published: Option<SlotIndex>,
    history_writer: Sender<HistoryRecord>,
    history_saved_at: Moment,
    // Per disk, how long its thread had waited for a processor when the history was last saved.
    waited: Vec<Duration>,
    alerts: Alerts,
    stop_at: Option<Moment>,
    stop_asked: Option<Moment>,
    /// Whether players were told that the server ends.
    dismisses: bool,
    handing_over: Option<HandingOver>,
    // Per disk, what was told of its drain.
    drain_told: Vec<DrainStage>,
    // The sessions of each client that have delivered nothing, and the most of them.
    unplayed: ClientCounts,
    unplayed_limit: ClientLimit,
    // The sessions that end at a second since 1970, the first to end first.
    ends: BTreeSet<(u64, SessionId)>,
}

/// How far a disk is drained, as far as people were told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DrainStage {
    /// The disk is not drained, or sessions are read from it.
    None,
    /// No session is read from it, and titles are still written to it.
    Writing,
    /// No session is read from it, and nothing else is written to it than what files become that
    /// wait in the folder `.ingest` of its mount.
    Waiting,
    /// No session is read from it, and no title is written to it.
    Empty,
}

/// The parts from which a core is built.
pub(crate) struct CoreParts {
    pub(crate) engine: Engine,
    pub(crate) slot: Duration,
    pub(crate) shared: Arc<Shared>,
    pub(crate) handle: CoreHandle,
    /// The queue that `handle` feeds.
    pub(crate) events: Receiver<Event>,
    pub(crate) workers: Vec<WorkerHandle>,
    pub(crate) disks: Vec<DiskThread>,
    pub(crate) history_writer: Sender<HistoryRecord>,
    pub(crate) pool: Pool,
    pub(crate) memory: MemoryWatch,
    /// The most sessions of one client that have delivered nothing.
    pub(crate) unplayed_limit: ClientLimit,
}

impl Core {
    pub(crate) fn new(parts: CoreParts) -> Self {
        Self {
            engine: parts.engine,
            clock: parts.shared.clock,
            slot: parts.slot,
            shared: parts.shared,
            handle: parts.handle,
            events: parts.events,
            workers: parts.workers,
            disks: parts.disks,
            pool: parts.pool,
            memory: parts.memory,
            memory_looked_at: Moment::ZERO,
            sessions: HashMap::new(),
            requests: HashMap::new(),
            buffers: HashMap::new(),
            titles: HashMap::new(),
            deferred: Vec::new(),
            waiting_fills: VecDeque::new(),
            withdrawn: HashSet::new(),
            leaving: Vec::new(),
            permits: HashMap::new(),
            grants: HashMap::new(),
            actions: Vec::new(),
            published: None,
            history_writer: parts.history_writer,
            history_saved_at: Moment::ZERO,
            waited: Vec::new(),
            alerts: Alerts::default(),
            stop_at: None,
            stop_asked: None,
            dismisses: false,
            handing_over: None,
            drain_told: Vec::new(),
            unplayed: ClientCounts::default(),
            unplayed_limit: parts.unplayed_limit,
            ends: BTreeSet::new(),
        }
    }

    /// Serves until a stop was requested and no session is active.
    pub(crate) fn run(mut self) {
        loop {
            let next_deferred = self.deferred.iter().map(|(at, ..)| *at).min();
            let next_fill = self.waiting_fills.front().map(|fill| fill.until);
            let wake_up = self
                .engine
                .next_wakeup()
                // The status is published once a slot, also while the engine needs no tick.
                .min(self.next_slot())
                .min(next_deferred.unwrap_or(Moment::MAX))
                .min(next_fill.unwrap_or(Moment::MAX));
            let wait = wake_up.since(self.clock.now()).min(LONGEST_WAIT);
            match self.events.recv_timeout(wait) {
                Ok(event) => {
                    self.handle_event(event);
                    // A burst of events is handled before the time is read again; its size is
                    // limited so that the engine's tick is not delayed.
                    for _ in 0..BURST {
                        let Ok(event) = self.events.try_recv() else { break };
                        self.handle_event(event);
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            let now = self.clock.now();
            // Every event advances the engine, too: a tick is due only in a slot without events.
            if now >= self.engine.next_wakeup() {
                self.engine.tick(now);
            }
            self.decide_waiting_fills(now);
            self.execute_actions();
            self.end_expired(now);
            self.notify_deferred_admissions(now);
            self.publish();
            self.dismiss_in_time(now);
            // No later interval writes what was observed since the last one.
            if self.is_over(now) {
                self.save_disk_history(now);
                return self.hand_over();
            }
        }
    }

    fn handle_event(&mut self, event: Event) {
        let now = self.clock.now();
        match event {
            Event::Admit { caller, client, request } => self.admit(caller, client, *request),
            Event::Extend { caller, session, title } => self.extend(caller, session, &title),
            Event::List { caller } => {
                let (connection, list) = (caller.connection, self.session_list(None, None));
                self.send(caller.worker, WorkerMessage::Listed { connection, list });
            }
            Event::ReportSessions { session, subject, answer } => {
                let _ = answer.send(self.session_list(session, subject.as_deref()));
            }
            Event::CopyEngine { answer } => {
                let _ = answer.send(Box::new(self.engine.clone()));
            }
            Event::Close { session } => {
                self.trace_end(session, None, Some("left"));
                self.engine.close(now, session);
                self.end_session(session, RequestError::SessionEnded);
            }
            Event::End { session } => self.engine.end(now, session),
            Event::EndListed { number } => self.engine.end(now, self.listed(number)),
            Event::EndOfSubject { subject, answer } => {
                let numbers = self.sessions_of(&subject);
                numbers.iter().for_each(|number| self.engine.end(now, *number));
                let _ = answer.send(numbers.len() as u64);
            }
            Event::Connected { session } => self.session_connected(session),
            Event::Disconnected { session, how } => self.session_disconnected(now, session, how),
            Event::Request { caller, place, request } => {
                self.request_media(now, caller, place, request);
            }
            Event::Sent { request, read } => self.engine.sent(now, request, read),
            Event::Cancel { request } => {
                self.engine.cancel(now, request);
                self.remove_request(request);
            }
            Event::ReadDone { read, result, device } => {
                let outcome = match result {
                    Ok(buffer) => {
                        // Before the engine is told: it may deliver from this buffer at once.
                        self.buffers.insert(read, buffer);
                        ReadOutcome::Good
                    }
                    Err(outcome) => outcome,
                };
                self.engine.read_done_within(now, read, outcome, device);
            }
            Event::Damaged { disk, title, place } => {
                self.shared.damage_played(usize::from(disk.0), &title, place);
            }
            Event::DeviceGone { disk } => self.engine.device_gone(now, disk),
            Event::RequestPermit { id, disk, bytes, grant } => {
                let permit = self.engine.request_best_effort(now, disk, bytes);
                self.permits.insert(id, permit);
                self.grants.insert(permit, grant);
            }
            Event::RequestWrite { id, disk, recording, job, grant } => {
                let permit = self.engine.request_write(now, disk, recording, job);
                self.permits.insert(id, permit);
                self.grants.insert(permit, grant);
            }
            Event::AdmitRecording { disk, writes, answer } => {
                let decision = self.admit_recording(now, disk, writes);
                if let Err(unheard) = answer.send(decision)
                    && let Ok(recording) = unheard.into_inner()
                {
                    self.engine.end_recording(now, recording);
                }
            }
            Event::EndRecording { recording } => self.engine.end_recording(now, recording),
            Event::ReleasePermit { id } => {
                if let Some(permit) = self.permits.remove(&id) {
                    // Work that was given up may never have been granted its permit.
                    self.grants.remove(&permit);
                    self.engine.best_effort_done(now, permit);
                }
            }
            Event::Withdraw { copy, in_use } => self.withdraw(copy, &in_use),
            Event::Guarantee { disk, guarantee, timings } => {
                self.engine.set_guarantee(now, disk, guarantee);
                self.engine.set_timings(now, disk, *timings);
            }
            Event::Restore { disk, restored } => {
                // The probe may have ended with the server.
                let is_restored = self.engine.restore_disk(now, disk);
                if is_restored {
                    self.shared.content.stores[usize::from(disk.0)].store.resume_writes();
                }
                let _ = restored.send(is_restored);
            }
            Event::Drain { disk, drains, done } => {
                self.drain_disk(now, disk, drains);
                // Whoever asked finds it in the status.
                self.published = None;
                self.publish();
                let _ = done.send(());
            }
            Event::Reconfigure { network, fills, unplayed } => {
                self.engine.set_limits(now, network, fills);
                self.unplayed_limit = unplayed;
            }
            Event::HandOver { within, to } => self.begin_handover(now, within, to),
            Event::Answered => {
                if let Some(handing_over) = &mut self.handing_over {
                    handing_over.busy = handing_over.busy.saturating_sub(1);
                }
            }
            Event::Stop { grace, by } => {
                if self.stop_asked.is_none() {
                    let (why, sessions, grace) =
                        (by.word(), self.sessions.len(), grace.as_secs_f64());
                    self.shared.log.line(|| {
                        json!({
                            "event": "stopping", "why": why, "sessions": sessions, "grace": grace,
                        })
                    });
                }
                self.engine.stop_admitting();
                self.shared.stopping.store(true, Ordering::Relaxed);
                self.stop_asked.get_or_insert(now);
                // A second request to stop may shorten the grace period, never extend it.
                self.stop_at = Some(self.stop_at.map_or(now + grace, |at| at.min(now + grace)));
            }
        }
        self.execute_actions();
    }

    fn next_slot(&self) -> Moment {
        self.published.map_or(Moment::ZERO, |slot| slot.next().start(self.slot))
    }

    /// Publishes the engine's status for metrics and the console, unless this slot's is published.
    pub(crate) fn publish(&mut self) {
        let now = self.clock.now();
        let slot = SlotIndex::at(now, self.slot);
        if self.published == Some(slot) {
            return;
        }
        self.published = Some(slot);
        if now.since(self.history_saved_at) >= disk_history_writer::INTERVAL {
            self.log_late_threads(now);
            self.save_disk_history(now);
        }
        self.follow_memory_limit(now);
        let viewers = self.engine.viewers(now);
        let sessions_of = |(title, playing): (&TitleKey, &PlayingTitle)| TitleSessions {
            title: playing.name.clone(),
            sessions: playing.sessions,
            viewers: viewers.get(title).copied().unwrap_or_default(),
        };
        let playing = self.titles.iter().map(sessions_of).collect();
        let status = self.engine.status(now);
        if let Some(kept) = self.memory.kept_for(status.buffers_total)
            && self.pool.keep_at_most(kept)
        {
            self.disks.iter().for_each(DiskThread::release_returned);
        }
        self.log_disk_health(&status);
        self.shared.tell_write_failures();
        let counters = &status.counters;
        let violations = (counters.violations_by_disk, counters.violations_by_scheduler);
        if let Some(new) = self.alerts.violations(now, violations) {
            self.shared.tell("guarantee-violated", || new.clone());
        }
        let waited = self.disks.iter().map(DiskThread::waited).collect();
        self.shared.publish(slot, status, waited, playing);
    }

    /// Gives the engine less memory or more when a limit of the process has changed.
    fn follow_memory_limit(&mut self, now: Moment) {
        if now.since(self.memory_looked_at) < MEMORY_LOOK {
            return;
        }
        self.memory_looked_at = now;
        let Some(limit) = self.memory.look() else { return };
        let buffers = self.memory.usable();
        self.engine.set_memory(now, buffers);
        // Pieces that it has forgotten take memory until their buffers are dropped.
        self.execute_actions();
        let needed = self.engine.status(now).buffers_total;
        self.shared.log.line(|| {
            json!({ "event": "memory-limit", "limit": limit.0, "buffers_target": buffers.0, "buffers_limit": needed })
        });
    }

    /// Sends what the engine has observed of each disk to the history writer.
    fn save_disk_history(&mut self, now: Moment) {
        self.history_saved_at = now;
        for disk in (0..self.disks.len()).map(disk_number) {
            if let Some(history) = self.engine.disk_history(disk) {
                // A full queue is not waited for: the next interval's record replaces this one.
                let _ = self.history_writer.try_send(HistoryRecord { disk, history });
            }
        }
    }

    /// Logs when a disk becomes slower than calibrated, is as calibrated again, or completes
    /// another number of reads in its busy slots.
    fn log_disk_health(&mut self, status: &Status) {
        // The new status is published after this call, so the snapshot is the last slot's.
        let shared = Arc::clone(&self.shared);
        let before = shared.snapshot();
        self.drain_told.resize(status.disks.len(), DrainStage::None);
        let disks = before.engine.disks.iter().zip(&status.disks);
        for (number, ((before, disk), opened)) in disks.zip(&shared.content.stores).enumerate() {
            let store = || opened.path.display().to_string();
            if disk.observed_slot_reads.is_some()
                && before.observed_slot_reads != disk.observed_slot_reads
            {
                self.shared.log.line(|| {
                    let reads = disk.observed_slot_reads;
                    json!({ "event": "disk-observed", "store": store(), "slot_reads": reads })
                });
            }
            let stage = match disk.draining && disk.sessions == 0 {
                false => DrainStage::None,
                true => drain_stage(opened),
            };
            if self.drain_told[number] != stage {
                self.drain_told[number] = stage;
                self.tell_drain(number, stage);
            }
            let event = match (before.slowdown, disk.slowdown) {
                (0, 1..) => "disk-slow",
                (1.., 0) => "disk-as-calibrated",
                _ => continue,
            };
            let slowdown = disk.slowdown_part();
            let fields = || json!({ "store": store(), "slowdown": slowdown });
            self.shared.tell(event, fields);
        }
    }

    /// Keeps time for a recording or a copy, or finds out for which rate there would be time.
    fn admit_recording(
        &mut self,
        now: Moment,
        disk: DiskNumber,
        writes: GuaranteedWrites,
    ) -> Result<RecordingId, RateRefusal> {
        let refused = match self.engine.admit_recording(now, disk, writes.demand()) {
            Ok(recording) => return Ok(recording),
            Err(short) => short,
        };
        let mut fits = |rate: &BitRate| {
            let smaller = writes.at_rate(*rate).demand();
            let admitted = self.engine.admit_recording(now, disk, smaller);
            admitted.is_ok_and(|recording| {
                self.engine.end_recording(now, recording);
                true
            })
        };
        // The highest of 1, 1/2, 1/4, ... that fits, and up to three quarters more of it.
        let halves = (1..HALVES).map(|times| BitRate(writes.rate().0 >> times));
        let half = halves.take_while(|rate| rate.0 > 0).find(&mut fits);
        let holds = half.map(|half| {
            let more = (1..4).rev().map(|quarters| BitRate(half.0 + half.0 / 4 * quarters));
            more.into_iter().find(&mut fits).unwrap_or(half)
        });
        Err(RateRefusal { resource: refused.resource, holds })
    }

    /// Drains a disk from now on, or ends that: sessions leave it, and no title is written to it.
    fn drain_disk(&mut self, now: Moment, disk: DiskNumber, drains: bool) {
        if let Some(opened) = self.shared.content.stores.get(usize::from(disk.0)) {
            opened.writes.set_draining(drains);
        }
        self.engine.drain_disk(now, disk, drains);
    }

    /// Tells that no session is read from a disk that is drained, and whether it can go.
    fn tell_drain(&self, number: usize, stage: DrainStage) {
        let report = self.shared.drain_report(number);
        let store = &report.store;
        match stage {
            DrainStage::None => {}
            DrainStage::Writing => {
                let (recordings, ingests) = (report.recordings.len(), report.ingests.len());
                let first = report.recordings.first().map(|it| Some(&*it.title));
                let first = first.or(report.ingests.first().map(|it| it.title.as_deref()));
                let first = first.flatten().map_or(String::new(), |title| format!(" ('{title}')"));
                let counts = [(recordings, "recording"), (ingests, "ingest")].into_iter();
                let running = counts.filter(|(count, _)| *count > 0);
                let running: Vec<String> =
                    running.map(|(count, what)| units::show::count(count, what)).collect();
                self.shared.notice(format!(
                    "{store}: not drained yet: no session is read from it, and {running} {go} on \
                     there{first}; {remedy}",
                    running = running.join(" and "),
                    go = if recordings + ingests == 1 { "goes" } else { "go" },
                    remedy = match recordings {
                        0 => "wait for its end",
                        _ => "end what is recorded there",
                    },
                ));
            }
            DrainStage::Waiting => {
                let paths = report.ingests.iter().filter_map(|it| it.waits_at.as_deref());
                let (count, first) = (paths.clone().count(), paths.into_iter().next());
                self.shared.notice(format!(
                    "{store}: not drained yet: no session is read from it, and {files} {wait} in \
                     its mount ('{first}'): rename each to the name that it is to have, write to \
                     it if it is empty, or remove it",
                    files = units::show::count(count, "file"),
                    wait = if count == 1 { "waits" } else { "wait" },
                    first = first.unwrap_or_default(),
                ));
            }
            DrainStage::Empty => {
                let only_here = report.titles_only_here;
                let fields = || json!({ "store": store, "titles_only_here": only_here });
                self.shared.tell("disk-drained", fields);
                let titles = units::show::count(only_here, "title");
                self.shared.notice(format!(
                    "{store}: drained: no session is read from it, and nothing is written there; \
                     {titles} with no copy elsewhere"
                ));
            }
        }
    }

    /// Logs which disks' threads have waited for a processor for a large part of the time since the
    /// history was last saved.
    fn log_late_threads(&mut self, now: Moment) {
        let long = now.since(self.history_saved_at) / LATE_PART;
        let total: Vec<Duration> = self.disks.iter().map(DiskThread::waited).collect();
        let before = std::mem::replace(&mut self.waited, total);
        let before = before.into_iter().chain(std::iter::repeat(Duration::ZERO));
        for ((total, before), opened) in
            self.waited.iter().zip(before).zip(&self.shared.content.stores)
        {
            let waited = total.saturating_sub(before);
            if waited >= long {
                let (store, seconds) = (opened.path.display().to_string(), waited.as_secs_f64());
                self.shared.log.line(
                    || json!({ "event": "disk-thread-late", "store": store, "seconds": seconds }),
                );
            }
        }
    }

    /// In a cluster, players that are not told of other nodes are let go before the end.
    fn dismiss_in_time(&mut self, now: Moment) {
        let Some(at) = self.stop_at.filter(|_| self.shared.membership.is_some()) else { return };
        let within = at.since(now);
        if !self.dismisses && within <= DISMISSAL {
            self.dismisses = true;
            self.workers.iter().for_each(|it| it.send(WorkerMessage::Dismiss { within }));
        }
    }

    fn is_over(&self, now: Moment) -> bool {
        if let Some(HandingOver { until, busy, .. }) = &self.handing_over {
            return now >= *until || *busy == 0 && self.requests.is_empty();
        }
        let Some(at) = self.stop_at else { return false };
        // A body is requested in parts: between two of them no request is pending.
        let idle = self.requests.is_empty() && !self.shared.http.is_sending();
        // Responses in one piece may still be on their way to the socket.
        let answered = self.stop_asked.is_none_or(|asked| now.since(asked) >= ANSWERED_WITHIN);
        let status = self.engine.status(now);
        // Viewers who have gone are not waited for.
        now >= at || idle && answered && status.active == status.revocable
    }

    fn send(&self, worker: usize, message: WorkerMessage) {
        self.workers[worker].send(message);
    }
}

/// However the core ends, the HTTP threads must end, too.
impl Drop for Core {
    fn drop(&mut self) {
        for worker in &self.workers {
            worker.send(WorkerMessage::Quit);
        }
    }
}

/// How far a disk is drained that no session is read from.
fn drain_stage(opened: &OpenStore) -> DrainStage {
    let ingests = opened.writes.ingests();
    match opened.recordings().is_empty() {
        true if ingests.is_empty() => DrainStage::Empty,
        true if ingests.iter().all(|it| it.waits_at.is_some()) => DrainStage::Waiting,
        _ => DrainStage::Writing,
    }
}

/// Time between two looks at the memory limits of the process: some small files of the kernel.
const MEMORY_LOOK: Duration = Duration::from_secs(1);
/// The part of the time from which a thread's waiting for a processor is logged.
const LATE_PART: u32 = 50;
/// What was asked for is halved so often to find a rate of a recording that is held.
const HALVES: u32 = 16;

/// Time in which players go, at the end of the time of grace: a director reserves for some hundreds
/// in it.
const DISMISSAL: Duration = Duration::from_secs(10);

/// Events handled before the time is read again.
const BURST: usize = 256;
/// Time in which responses that were made before a request to stop, or to it, reach the kernel.
const ANSWERED_WITHIN: Duration = Duration::from_millis(250);
/// The longest wait for an event, so that a clock that jumps does not stop the server for long.
const LONGEST_WAIT: Duration = Duration::from_secs(1);
