//! State that all threads of a server read: titles, sessions, counters, and the last published
//! snapshot of the engine's status. No decision is made from it.

use crate::ServerConfig;
use crate::access::AccessControl;
use crate::auth_request::AuthRequests;
use crate::clients::{CLIENT_CONNECTIONS, ClientAddress, ClientCounts, ClientLimit};
use crate::clock::Clock;
use crate::library::Library;
use crate::log::Log;
use crate::membership::Membership;
use crate::missing_stores::MissingStore;
use crate::player_reports::ReportCounters;
use crate::rtsp::{ChannelCounters, RtspCounters};
use crate::sessions::SessionTable;
use crate::telemetry::{Telemetry, TraceContext};
use crate::tls::ServerTls;
use crate::webhook::Webhook;
use crate::wire;
use engine::{self, Counters, Priority, RefusalCause, Resource, SessionSummary};
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use serde_json::json;
use std::collections::VecDeque;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread;
use std::time::Duration;
use units::{Hinted, Moment, SlotIndex};

/// Counts what the metrics have of mounts: reads at reserved rates, for the most part.
#[derive(Debug, Default)]
pub(crate) struct ReaderCounters {
    /// Files with a reservation now.
    pub(crate) active: AtomicU64,
    /// Reservations that were refused.
    pub(crate) refused: AtomicU64,
    /// Bytes read at a reserved rate.
    pub(crate) bytes: AtomicU64,
    /// Bytes read without the reservation that their file had.
    pub(crate) missed: AtomicU64,
    /// Mounts that have ended without the server's doing.
    pub(crate) unmounted: AtomicU64,
}

/// What has become of recordings into the stores of a server. A part of a series is one.
#[derive(Debug, Default)]
pub(crate) struct RecordingCounters {
    /// Recordings whose titles are in a catalogue.
    pub(crate) done: AtomicU64,
    /// Recordings that did not begin, or that an error has ended.
    pub(crate) failed: AtomicU64,
    /// Times that the input of one was lost, which is opened again.
    pub(crate) interrupted: AtomicU64,
}

/// Requests for admission that were refused because the server is stopping, of which the engine is
/// not asked.
#[derive(Debug, Default)]
pub(crate) struct RefusedAtStop {
    /// The lowest priority first.
    pub(crate) by_priority: [AtomicU64; Priority::ALL.len()],
    /// Fills of caches.
    pub(crate) fills: AtomicU64,
    /// Parts of titles for other nodes.
    pub(crate) parts: AtomicU64,
}

/// State that all threads of a server read.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) clock: Clock,
    pub(crate) content: Library,
    pub(crate) sessions: SessionTable,
    pub(crate) access: AccessControl,
    pub(crate) auth: AuthRequests,
    /// `None`: the server answers in the clear.
    pub(crate) tls: Option<Arc<ServerTls>>,
    /// `None`: the server is alone.
    pub(crate) membership: Option<Arc<Membership>>,
    pub(crate) log: Log,
    pub(crate) webhook: Webhook,
    pub(crate) telemetry: Telemetry,
    pub(crate) http: HttpCounters,
    pub(crate) rtsp: RtspCounters,
    pub(crate) channels: ChannelCounters,
    pub(crate) readers: Arc<ReaderCounters>,
    pub(crate) recordings: RecordingCounters,
    pub(crate) reports: ReportCounters,
    /// Seconds from admission to the first media bytes.
    pub(crate) startup: Histogram,
    /// Per ended session, the least time in seconds by which its reads were early.
    pub(crate) slack: Histogram,
    pub(crate) stopping: AtomicBool,
    pub(crate) refused_at_stop: RefusedAtStop,
    /// Set when a thread that serves clients has panicked: its clients wait for nothing.
    pub(crate) has_failed: AtomicBool,
    /// Set when a store that was missing at the start can be opened.
    pub(crate) store_is_back: AtomicBool,
    pub(crate) info: ServerInfo,
    /// Lines for people that wait to be shown.
    notices: Mutex<VecDeque<String>>,
    /// Each ingest, export, check and calibration that runs holds a reference.
    pub(crate) work: Arc<()>,
    settings: Mutex<Arc<LiveSettings>>,
    snapshot: Mutex<Arc<Snapshot>>,
    decisions: Mutex<Decisions>,
}

/// The latest decisions on viewers, the oldest first, and the number of all.
#[derive(Debug, Default)]
struct Decisions {
    latest: VecDeque<wire::ViewerDecision>,
    total: u64,
}

/// Properties of a server that do not change while it runs.
#[derive(Clone, Debug)]
pub(crate) struct ServerInfo {
    pub(crate) policy: &'static str,
    pub(crate) survive_loss: bool,
    pub(crate) slot: Duration,
    /// Description of the socket method.
    pub(crate) socket_method: String,
    /// The time in which all titles are read once; `None`: they are not.
    pub(crate) scrub: Option<Duration>,
    /// When the server started, in seconds since 1970.
    pub(crate) started: u64,
    /// Stores of the configuration that are not served.
    pub(crate) missing: Vec<MissingStore>,
}

/// Settings of a server that may change while it runs.
#[derive(Clone, Debug)]
pub(crate) struct LiveSettings {
    /// How long a player waits for its admission that does not say so itself.
    pub(crate) wait: Duration,
    /// The most fills of caches at a time; `None`: there are no addresses for caches.
    pub(crate) fills: Option<u32>,
    /// Connections of all clients together.
    pub(crate) max_connections: u64,
    /// Connections of one client.
    pub(crate) client_connections: ClientLimit,
}

impl LiveSettings {
    pub(crate) fn of(config: &ServerConfig) -> Self {
        Self {
            wait: config.wait.min(ServerConfig::LONGEST_WAIT),
            fills: config.fills,
            max_connections: config.max_connections as u64,
            client_connections: ClientLimit::new(config.max_client_connections, CLIENT_CONNECTIONS),
        }
    }
}

/// Counters of the HTTP threads.
#[derive(Debug, Default)]
pub(crate) struct HttpCounters {
    pub(crate) connections: AtomicU64,
    /// Requests over HTTP/2 that are being received or answered.
    pub(crate) lanes: AtomicU64,
    /// The connections and lanes of each client.
    pub(crate) clients: Mutex<ClientCounts>,
    pub(crate) sent_bytes: AtomicU64,
    /// Responses by the first digit of their status, from 1.
    pub(crate) responses: [AtomicU64; 5],
    /// Connections closed because the peer took no bytes for the send timeout.
    pub(crate) send_timeouts: AtomicU64,
    /// Responses that ended early because the rest of their bytes could not be read.
    pub(crate) aborted: AtomicU64,
    /// Every body being sent holds a reference.
    pub(crate) under_way: Arc<()>,
}

impl HttpCounters {
    /// Counts a new connection, or a lane of one; returns how many there were before of both.
    pub(crate) fn count(&self, is_lane: bool) -> u64 {
        let (connections, lanes) = (&self.connections, &self.lanes);
        let (new, other) = if is_lane { (lanes, connections) } else { (connections, lanes) };
        new.fetch_add(1, Ordering::Relaxed) + other.load(Ordering::Relaxed)
    }

    /// Counts a new connection; returns how many its client had before.
    pub(crate) fn connected(&self, client: ClientAddress) -> usize {
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        let held = clients.held(client);
        clients.add(client);
        held
    }

    /// A counted connection has ended.
    pub(crate) fn disconnected(&self, client: ClientAddress) {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner).remove(client);
    }

    /// Whether any body of media is being sent, or waits for its next bytes.
    pub(crate) fn is_sending(&self) -> bool {
        // One reference is this field's own.
        Arc::strong_count(&self.under_way) > 1
    }
}

/// The engine's status at the start of a slot.
#[derive(Clone, Debug, Default)]
pub(crate) struct Snapshot {
    /// When it was published; `None`: nothing was as yet.
    pub(crate) at: Option<Moment>,
    pub(crate) engine: engine::Status,
    /// Per disk, the time for which its thread has waited for a processor.
    pub(crate) waited: Vec<Duration>,
    /// Per disk, the last slots, oldest first.
    pub(crate) slots: Vec<VecDeque<wire::SlotUse>>,
    pub(crate) playing: Vec<wire::TitleSessions>,
}

/// Who may watch, and who else is asked, how connections are encrypted, and which directors are
/// believed.
pub(crate) struct Security {
    pub(crate) access: AccessControl,
    pub(crate) auth: AuthRequests,
    pub(crate) tls: Option<Arc<ServerTls>>,
    pub(crate) membership: Option<Arc<Membership>>,
}

/// Where a server tells what happens.
pub(crate) struct Outlets {
    pub(crate) log: Log,
    pub(crate) webhook: Webhook,
    pub(crate) telemetry: Telemetry,
}

impl Shared {
    pub(crate) fn new(
        clock: Clock,
        content: Library,
        sessions: SessionTable,
        Security { access, auth, tls, membership }: Security,
        Outlets { log, webhook, telemetry }: Outlets,
        info: ServerInfo,
        settings: LiveSettings,
    ) -> Self {
        Self {
            clock,
            content,
            sessions,
            access,
            auth,
            tls,
            membership,
            log,
            webhook,
            telemetry,
            http: HttpCounters::default(),
            rtsp: RtspCounters::default(),
            channels: ChannelCounters::default(),
            readers: Arc::default(),
            recordings: RecordingCounters::default(),
            reports: ReportCounters::default(),
            // 10 ms to 20 s.
            startup: Histogram::new(exponential_buckets(0.01, 2.0, 12)),
            // 1 ms to half a minute.
            slack: Histogram::new(exponential_buckets(0.001, 2.0, 16)),
            stopping: AtomicBool::new(false),
            refused_at_stop: RefusedAtStop::default(),
            has_failed: AtomicBool::new(false),
            store_is_back: AtomicBool::new(false),
            info,
            notices: Mutex::default(),
            work: Arc::default(),
            settings: Mutex::new(Arc::new(settings)),
            snapshot: Mutex::default(),
            decisions: Mutex::default(),
        }
    }

    /// Sleeps for `time`; false at once when the server is stopping, or has ended. For threads that
    /// nobody waits for: what they kept of the server would keep its other threads from ending.
    pub(crate) fn sleep_unless_stopping(shared: &Weak<Self>, time: Duration) -> bool {
        let mut left = time;
        while !left.is_zero() {
            if shared.upgrade().is_none_or(|shared| shared.stopping.load(Ordering::Relaxed)) {
                return false;
            }
            let step = left.min(STOP_POLL);
            thread::sleep(step);
            left -= step;
        }
        true
    }

    /// Whether an ingest, an export, a check or a calibration runs.
    pub(crate) fn works(&self) -> bool {
        // One reference is the field's own.
        Arc::strong_count(&self.work) > 1
    }

    /// The last published snapshot.
    pub(crate) fn snapshot(&self) -> Arc<Snapshot> {
        Arc::clone(&self.snapshot.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether the thread that decides has published nothing for so long that nobody can count on
    /// it: it publishes once a slot.
    pub(crate) fn is_stuck(&self, now: Moment) -> bool {
        let slot = self.info.slot;
        self.snapshot().at.is_some_and(|at| now.since(at) > STUCK_AFTER.max(slot * 3))
    }

    /// Publishes the engine's status at the start of `slot`.
    pub(crate) fn publish(
        &self,
        slot: SlotIndex,
        engine: engine::Status,
        waited: Vec<Duration>,
        playing: Vec<wire::TitleSessions>,
    ) {
        let mut slots = self.snapshot().slots.clone();
        slots.resize_with(engine.disks.len(), VecDeque::new);
        for (disk, slots) in engine.disks.iter().zip(&mut slots) {
            // The status counts the reads of the slot that has just ended, if one has.
            let Some(ended) = slot.0.checked_sub(1) else { continue };
            if slots.len() == SLOTS_KEPT {
                slots.pop_front();
            }
            slots.push_back(wire::SlotUse {
                slot: ended,
                reads: disk.last_slot.reads,
                due: disk.last_slot.reads - disk.last_slot.ahead,
                ahead: disk.last_slot.ahead,
                best_effort: disk.last_slot.best_effort,
                writes: disk.last_slot.writes,
                min_read: disk.min_read,
                active: engine.active,
            });
        }
        let at = Some(self.clock.now());
        let snapshot = Snapshot { at, engine, waited, slots, playing };
        *self.snapshot.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(snapshot);
    }

    /// The settings as they are now.
    pub(crate) fn settings(&self) -> Arc<LiveSettings> {
        Arc::clone(&self.settings.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn set_settings(&self, settings: LiveSettings) {
        *self.settings.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(settings);
    }

    /// Keeps a decision on a viewer, and writes it to the log. `session`: its span.
    pub(crate) fn decided(&self, decision: wire::ViewerDecision, session: Option<TraceContext>) {
        self.log.line_of(session, || {
            let mut line = json!(decision);
            line["event"] = "decision".into();
            line
        });
        let mut decisions = self.decisions.lock().unwrap_or_else(PoisonError::into_inner);
        if decisions.latest.len() == DECISIONS_KEPT {
            decisions.latest.pop_front();
        }
        decisions.latest.push_back(decision);
        decisions.total += 1;
    }

    /// The latest decisions on viewers, the newest first.
    pub(crate) fn decisions(&self) -> wire::DecisionList {
        self.decisions_after(0)
    }

    /// The decisions behind the first `known` of all, the newest first, as far as they are kept.
    pub(crate) fn decisions_after(&self, known: u64) -> wire::DecisionList {
        let decisions = self.decisions.lock().unwrap_or_else(PoisonError::into_inner);
        let new = usize::try_from(decisions.total.saturating_sub(known)).unwrap_or(usize::MAX);
        let latest = decisions.latest.iter().rev().take(new).cloned().collect();
        wire::DecisionList { total: decisions.total, decisions: latest }
    }

    /// Tells an event of this name in the log and to the webhook. `fields` makes its object.
    /// Beside the path of a store it has the uuid, by which the API knows its disk.
    pub(crate) fn tell(&self, event: &str, fields: impl Fn() -> serde_json::Value) {
        let fields = || {
            let mut fields = fields();
            let is_it =
                |path: &Path| fields["store"].as_str().is_some_and(|it| path == Path::new(it));
            let found = self.content.stores.iter().find(|opened| is_it(&opened.path));
            if let Some(opened) = found {
                fields["uuid"] = opened.store.identity().to_string().into();
            }
            fields
        };
        self.webhook.tell(event, fields);
        self.log.line(|| {
            let mut line = fields();
            line["event"] = event.into();
            line
        });
    }

    /// Adds a line for people, beside the log.
    pub(crate) fn notice(&self, line: String) {
        let mut notices = self.notices.lock().unwrap_or_else(PoisonError::into_inner);
        if notices.len() == NOTICES {
            notices.pop_front();
        }
        notices.push_back(line);
    }

    /// The lines for people that have not been shown.
    pub(crate) fn take_notices(&self) -> Vec<String> {
        let mut notices = self.notices.lock().unwrap_or_else(PoisonError::into_inner);
        notices.drain(..).chain(self.log.take_notes()).collect()
    }

    /// Tells of each store once that nothing more is written to it.
    pub(crate) fn tell_write_failures(&self) {
        for opened in &self.content.stores {
            let Some(why) = opened.store.write_failure() else { continue };
            if !opened.told_write_failure.swap(true, Ordering::Relaxed) {
                let store = opened.path.display().to_string();
                self.tell("disk-write-failed", || json!({ "store": store, "error": why }));
                self.notice(format!(
                    "{store}: nothing more is written to it, because a write failed ({why}); its \
                     titles are played on; restart the server in place when the disk is well"
                ));
            }
        }
    }

    /// Adds an ended session to the histogram of slack.
    pub(crate) fn session_ended(&self, summary: &SessionSummary) {
        if let Some(slack) = summary.observed_slack {
            self.slack.observe(slack.as_secs_f64());
        }
    }

    /// Requests that were refused because the server is stopping, by priority, the lowest first.
    pub(crate) fn refusals_at_stop(&self) -> [u64; Priority::ALL.len()] {
        self.refused_at_stop.by_priority.each_ref().map(|count| count.load(Ordering::Relaxed))
    }

    /// Fills of caches that were refused, also because the server is stopping.
    pub(crate) fn fills_refused(&self, counters: &Counters) -> u64 {
        counters.fills_refused + self.refused_at_stop.fills.load(Ordering::Relaxed)
    }

    /// The server at this moment, for `/status`.
    pub(crate) fn status(&self) -> wire::ServerStatus {
        let snapshot = self.snapshot();
        let engine = &snapshot.engine;
        let counters = &engine.counters;
        let at_stop = self.refusals_at_stop();
        wire::ServerStatus {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            uptime: self.clock.uptime().as_secs_f64(),
            stopping: self.stopping.load(Ordering::Relaxed),
            survive_loss: self.info.survive_loss,
            cluster: self.membership.as_ref().map(|membership| membership.status()),
            authorizations: self.auth.status(),
            policy: self.info.policy.to_owned(),
            slot: self.info.slot.as_secs_f64(),
            socket_method: self.info.socket_method.clone(),
            sessions: engine.sessions,
            active: engine.active,
            revocable: engine.revocable,
            revoked: counters.revoked,
            sessions_by_priority: by_priority(engine.by_priority),
            sessions_preempted: wire::Preempted {
                priority: counters.preempted_by_priority,
                overload: counters.preempted_by_overload,
            },
            admitted: counters.admitted,
            admitted_downgraded: counters.admitted_downgraded,
            refused: wire::RefusedCounts {
                disk: counters.refused.of_resource(Resource::Disk),
                memory: counters.refused.of_resource(Resource::Memory),
                network: counters.refused.of_resource(Resource::Network),
            },
            refused_by_cause: wire::RefusedCauses {
                sessions: counters.refused.of_cause(RefusalCause::Sessions),
                slow_disk: counters.refused.of_cause(RefusalCause::SlowDisk),
                less_memory: counters.refused.of_cause(RefusalCause::LessMemory),
                title: counters.refused.of_cause(RefusalCause::Title),
                disk_lost: counters.refused.of_cause(RefusalCause::DiskLost),
                background: counters.refused.of_cause(RefusalCause::Background),
                server: counters.refused.of_cause(RefusalCause::Server)
                    + at_stop.iter().sum::<u64>(),
                fills: counters.refused.of_cause(RefusalCause::Fills),
            },
            refused_by_priority: by_priority(std::array::from_fn(|priority| {
                counters.refused_by_priority[priority] + at_stop[priority]
            })),
            fills: wire::Fills {
                limit: self.settings().fills,
                active: engine.fills,
                admitted: counters.fills_admitted,
                refused: self.fills_refused(counters),
                sent_bytes: counters.fill_bytes,
            },
            refused_for_failover: counters.refused_for_loss,
            sessions_failed_over: counters.failed_over,
            sessions_ended_by_disk_loss: counters.ended_by_disk_loss,
            deadlines_met: counters.deadlines_met,
            deadline_misses: counters.deadline_misses,
            guarantee_violations: wire::Violations {
                disk: counters.violations_by_disk,
                scheduler: counters.violations_by_scheduler,
            },
            worst_lateness: counters.worst_lateness.as_secs_f64(),
            buffers_used: engine.buffers_used,
            buffers_limit: engine.buffers_total,
            buffers_target: engine.buffers_limit,
            cache_hits: counters.cache_hits,
            sessions_following: engine.following,
            intervals: engine.intervals,
            shared_reads: counters.shared_reads,
            connections: self.http.connections.load(Ordering::Relaxed),
            sent_bytes: self.http.sent_bytes.load(Ordering::Relaxed),
            disks: self.disk_reports(&snapshot),
            missing_stores: self.info.missing.iter().map(missing_report).collect(),
            playing: snapshot.playing.clone(),
        }
    }

    /// The drain of the disk of the store with this index.
    pub(crate) fn drain_report(&self, number: usize) -> wire::DrainReport {
        let snapshot = self.snapshot();
        let disks = &snapshot.engine.disks;
        let stays = |other: usize| disks.get(other).is_none_or(|it| !it.lost && !it.draining);
        let mut titles = self.content.only_in(number, stays);
        let titles_only_here = titles.len() as u64;
        titles.truncate(TITLES_NAMED);
        wire::DrainReport {
            store: self.content.stores[number].path.display().to_string(),
            draining: disks.get(number).is_some_and(|disk| disk.draining),
            sessions: disks.get(number).map_or(0, |disk| disk.sessions),
            recordings: self.content.stores[number].recordings(),
            ingests: self.content.stores[number].writes.ingests(),
            titles_only_here,
            titles,
        }
    }

    fn disk_reports(&self, snapshot: &Snapshot) -> Vec<wire::DiskReport> {
        let disks = snapshot.engine.disks.iter().zip(&snapshot.slots).zip(&snapshot.waited);
        let stores = self.content.stores.iter().zip(disks);
        let reports = stores.map(|(opened, ((disk, slots), waited))| {
            let emulation = opened.store.device().lateness();
            wire::DiskReport {
                store: opened.path.display().to_string(),
                uuid: opened.store.info().uuid.to_string(),
                read_method: opened.method.clone(),
                read_size: opened.read_size.0,
                min_read: disk.min_read,
                provisional: opened.provisional.load(Ordering::Relaxed),
                reads: disk.reads,
                bytes: disk.bytes,
                failures: disk.failures,
                in_flight: disk.in_flight,
                sessions: disk.sessions,
                lost: disk.lost,
                write_failure: opened.store.write_failure().map(str::to_owned),
                draining: disk.draining,
                recordings: disk.recordings as u64,
                recording_share: disk.write_share.ratio(),
                slowdown: disk.slowdown_part(),
                thread_delay: waited.as_secs_f64(),
                booked_rate: disk.booked_rate.0,
                slowest_slot_reads: disk.slowest_slot_reads,
                observed_slot_reads: disk.observed_slot_reads,
                slack_reads: disk.slack_reads,
                guaranteed_slack: disk.guaranteed_slack.map(|slack| slack.as_secs_f64()),
                scrub: wire::Scrub::of(&opened.store),
                emulation: emulation.map(|late| wire::EmulationLateness {
                    requests: late.requests,
                    late_median: late.median.as_secs_f64(),
                    late_p99: late.p99.as_secs_f64(),
                    late_max: late.longest.as_secs_f64(),
                }),
                slots: slots.iter().copied().collect(),
            }
        });
        reports.collect()
    }
}

/// Titles that a report of a drain names.
const TITLES_NAMED: usize = 1000;
/// Lines for people that are kept until they are shown.
const NOTICES: usize = 64;
fn by_priority([low, normal, high]: [u64; 3]) -> wire::ByPriority {
    wire::ByPriority { low, normal, high }
}

/// Decisions that are kept for the admin API: some minutes of a busy server.
const DECISIONS_KEPT: usize = 256;

/// Slots in a snapshot, for plots: ten minutes of the default 500 ms.
const SLOTS_KEPT: usize = 1200;

/// Longer than anything that the thread that decides ever does at once.
const STUCK_AFTER: Duration = Duration::from_secs(10);
/// Interval at which a sleeping thread looks whether the server is stopping.
const STOP_POLL: Duration = Duration::from_millis(250);

fn missing_report(missing: &MissingStore) -> wire::MissingStoreReport {
    wire::MissingStoreReport {
        store: missing.path.display().to_string(),
        reason: missing.reason().one_line(),
    }
}
