//! The counters of a run while it is running, as OpenMetrics text over HTTP.
//!
//! ```text
//!   streams, transfers ── Record ──▶ Metered ──▶ log
//!   viewers ── Sample ──────────────┐  │ counts
//!   agents ── AgentState ───────────┤  │
//!   GET /metrics ──▶ Endpoint ────▶ Live
//! ```
//!
//! Counters increase over all runs of a program (a search makes many); the state of the current run
//! is a gauge. Viewers and agents report totals of the current run: a counter grows by the
//! difference from the last total. The endpoint has no TLS and no
//! password: it serves counters only, at the address that the user names.

use crate::fleet::AgentState;
use crate::log::{NONE, OperationKind, Record, RecordSink};
use http_service::{HttpRequest, HttpResponse, HttpService, OpenConnections, ServiceSetup};
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Metric, Registry, Unit};
use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tenuto_client::ViewerSample;
use units::locked;

/// The metrics.
#[derive(Debug)]
pub(crate) struct Live {
    registry: Registry,
    runs: Counter,
    clients: Gauge,
    /// Operations by kind, reads first.
    operations: [Counter; 2],
    bytes: [Counter; 2],
    failed: Counter,
    frames: Counter,
    late_by_storage: Counter,
    late_by_meter: Counter,
    response: Histogram,
    /// Viewers by state.
    viewers: Family<Labels, Gauge>,
    stalls: Counter,
    /// Agents by state.
    agents: Family<Labels, Gauge>,
    /// The last totals that were reported in the current run.
    told: Mutex<Told>,
}

/// Totals of the current run as a source last reported them.
#[derive(Clone, Copy, Debug, Default)]
struct Told {
    bytes: u64,
    stalls: u64,
    frames: u64,
    late: u64,
}

type Labels = [(&'static str, &'static str); 1];

impl Default for Live {
    fn default() -> Self {
        let mut registry = Registry::with_prefix("tenuto_meter");
        let all = &mut registry;
        let runs = registered(all, "runs", "Runs started");
        let clients = registered(all, "clients", "Streams or clients of the current run");
        let operations = registered(all, "operations", "Completed reads and writes");
        let bytes = Family::default();
        all.register_with_unit("moved", "Bytes read and written", Unit::Bytes, bytes.clone());
        let failed = registered(all, "failed", "Reads and writes that failed");
        let frames = registered(all, "frames", "Frames that were judged");
        let late: Family<Labels, Counter> = registered(all, "late_frames", "Late frames by cause");
        // Buckets from half a millisecond to 16 seconds.
        let response = Histogram::new(exponential_buckets(0.0005, 2.0, 16));
        let about = "Time from the intended start of an operation to its completion";
        all.register_with_unit("response", about, Unit::Seconds, response.clone());
        let viewers = registered(all, "viewers", "Viewers of a title by state");
        let stalls = registered(all, "stalls", "Stalls of viewers");
        let agents = registered(all, "agents", "Agents of a fleet by state");
        let by_kind = |family: &Family<Labels, Counter>| {
            let kinds = [OperationKind::Read, OperationKind::Write];
            kinds.map(|kind| family.get_or_create(&[("kind", kind.word())]).clone())
        };
        let late_by = |whose| late.get_or_create(&[("by", whose)]).clone();
        Self {
            runs,
            clients,
            operations: by_kind(&operations),
            bytes: by_kind(&bytes),
            failed,
            frames,
            late_by_storage: late_by("storage"),
            late_by_meter: late_by("meter"),
            response,
            viewers,
            stalls,
            agents,
            told: Mutex::default(),
            registry,
        }
    }
}

/// A metric that is in the registry.
fn registered<M: Metric + Default + Clone>(registry: &mut Registry, name: &str, about: &str) -> M {
    let metric = M::default();
    registry.register(name, about, metric.clone());
    metric
}

impl Live {
    /// Begins another run with a number of streams or clients.
    pub(crate) fn begin(&self, clients: u32) {
        self.runs.inc();
        self.clients.set(clients.into());
        // The sources count from zero in each run.
        *locked(&self.told) = Told::default();
    }

    /// Sets the states of the current run's viewers.
    pub(crate) fn viewers(&self, sample: &ViewerSample) {
        let ViewerSample { waiting, playing, stalled, refused, failed, gone, .. } = *sample;
        let states = [
            ("waiting", waiting),
            ("playing", playing),
            ("stalled", stalled),
            ("refused", refused),
            ("failed", failed),
            ("gone", gone),
        ];
        for (state, count) in states {
            self.viewers.get_or_create(&[("state", state)]).set(count.into());
        }
        let mut told = locked(&self.told);
        self.stalls.inc_by(sample.stalls.saturating_sub(told.stalls));
        self.bytes[0].inc_by(sample.bytes.saturating_sub(told.bytes));
        (told.stalls, told.bytes) = (sample.stalls, sample.bytes);
    }

    /// Sets the states of the current run's agents, and adds what they have counted.
    pub(crate) fn agents(&self, seen: &[AgentState]) {
        let mut counts = [("preparing", 0), ("running", 0), ("done", 0), ("lost", 0)];
        for AgentState { workers, lost, .. } in seen {
            let state = match lost {
                Some(_) => 3,
                None if workers.iter().any(|worker| worker.facts.is_none()) => 0,
                None if workers.iter().any(|worker| worker.busy) => 1,
                None => 2,
            };
            counts[state].1 += 1;
        }
        for (state, count) in counts {
            self.agents.get_or_create(&[("state", state)]).set(count);
        }
        let workers = || seen.iter().flat_map(|agent| &agent.workers);
        let frames = workers().map(|worker| worker.progress.judged).sum();
        let late = workers().map(|worker| worker.progress.late).sum();
        let mut told = locked(&self.told);
        self.frames.inc_by(u64::saturating_sub(frames, told.frames));
        self.late_by_storage.inc_by(u64::saturating_sub(late, told.late));
        (told.frames, told.late) = (frames, late);
    }

    /// Counts an operation that completed or never will.
    pub(crate) fn count(&self, record: &Record) {
        let kind = usize::from(record.kind == OperationKind::Write);
        let came = record.end != NONE && record.errno == 0;
        self.operations[kind].inc();
        self.failed.inc_by(u64::from(record.errno != 0));
        if came {
            self.bytes[kind].inc_by(record.bytes.into());
            let response = record.end.saturating_sub(record.intended);
            self.response.observe(Duration::from_nanos(response).as_secs_f64());
        }
        if record.deadline == NONE {
            return;
        }
        self.frames.inc();
        if record.is_late() {
            let by =
                if record.is_late_by_meter() { &self.late_by_meter } else { &self.late_by_storage };
            by.inc();
        }
    }

    /// The current value of all metrics, as text.
    pub(crate) fn text(&self) -> Result<String, fmt::Error> {
        let mut text = String::new();
        encode(&mut text, &self.registry)?;
        Ok(text)
    }
}

/// A log that also counts its records, if a [`Live`] is given.
pub(crate) struct Metered<'a> {
    /// The sink of the records.
    pub(crate) log: &'a mut dyn RecordSink,
    /// The metrics.
    pub(crate) live: Option<&'a Live>,
}

impl RecordSink for Metered<'_> {
    fn keep(&mut self, record: &Record) {
        if let Some(live) = self.live {
            live.count(record);
        }
        self.log.keep(record);
    }
}

/// Serves requests until it is dropped.
pub(crate) struct Endpoint {
    http: HttpService,
    live: Arc<Live>,
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "metrics at {}", self.address())
    }
}

impl Endpoint {
    /// Listens at `listen`; port 0 means any free port.
    pub(crate) fn open(listen: SocketAddr) -> io::Result<Self> {
        let live = Arc::<Live>::default();
        let setup = ServiceSetup {
            thread: "metrics",
            open: Arc::new(OpenConnections::new(MOST_CONNECTIONS, MOST_CONNECTIONS)),
            largest_body: 0,
            fields_of_all: "",
            tls: None,
        };
        let shown = Arc::clone(&live);
        let answer = move |request: &HttpRequest<'_>| answer(request, &shown);
        let http = HttpService::start(TcpListener::bind(listen)?, setup, answer)?;
        Ok(Self { http, live })
    }

    /// The counters that are served.
    pub(crate) fn live(&self) -> &Live {
        &self.live
    }

    /// The bound address.
    pub(crate) fn address(&self) -> SocketAddr {
        self.http.address()
    }
}

fn answer(request: &HttpRequest<'_>, live: &Live) -> HttpResponse {
    if !matches!((request.method, request.path()), ("GET" | "HEAD", "/metrics")) {
        return HttpResponse::with_body(404, "text/plain", "there is only /metrics\n");
    }
    match live.text() {
        Ok(text) => HttpResponse::with_body(200, CONTENT_TYPE, text),
        Err(error) => HttpResponse::with_body(500, "text/plain", format!("{error}\n")),
    }
}

const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
/// Connections at a time: a scraper opens one.
const MOST_CONNECTIONS: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blame::Stack;
    use crate::fleet::{TargetFacts, WorkerState};
    use crate::progress::RunProgress;
    use crate::target::{FileSet, Layout};
    use std::io::{Read, Write};
    use std::net::TcpStream;
    use units::ByteCount;

    fn scraped(endpoint: &Endpoint, path: &str) -> String {
        let mut stream = TcpStream::connect(endpoint.address()).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nConnection: close\r\n\r\n").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn records_are_counted_and_can_be_scraped() {
        let endpoint = Endpoint::open("127.0.0.1:0".parse().unwrap()).unwrap();
        let live = endpoint.live();
        live.begin(3);
        let (mut log, ms) = (Vec::new(), 1_000_000);
        let good = Record { bytes: 500, end: 40 * ms, deadline: 50 * ms, ..Record::default() };
        let late = Record { end: 60 * ms, ..good };
        let by_meter = Record { meter: 20 * ms, kind: OperationKind::Write, ..late };
        let failed = Record { errno: 5, ..good };
        let never = Record { end: NONE, ..good };
        let transfer = Record { deadline: NONE, ..good };
        let mut metered = Metered { log: &mut log, live: Some(live) };
        for record in [good, late, by_meter, failed, never, transfer] {
            metered.keep(&record);
        }
        assert_eq!(log.len(), 6);
        let text = scraped(&endpoint, "/metrics");
        assert!(text.starts_with("HTTP/1.1 200") && text.ends_with("# EOF\n"), "{text}");
        for line in [
            "tenuto_meter_runs_total 1",
            "tenuto_meter_clients 3",
            "tenuto_meter_operations_total{kind=\"read\"} 5",
            "tenuto_meter_operations_total{kind=\"write\"} 1",
            "tenuto_meter_moved_bytes_total{kind=\"read\"} 1500",
            "tenuto_meter_moved_bytes_total{kind=\"write\"} 500",
            "tenuto_meter_failed_total 1",
            "tenuto_meter_frames_total 5",
            "tenuto_meter_late_frames_total{by=\"storage\"} 3",
            "tenuto_meter_late_frames_total{by=\"meter\"} 1",
            "tenuto_meter_response_seconds_count 4",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} is not in {text}");
        }
        assert!(scraped(&endpoint, "/").starts_with("HTTP/1.1 404"));
    }

    fn shows(live: &Live, lines: &[&str]) {
        let text = live.text().unwrap();
        for line in lines {
            assert!(text.lines().any(|found| found == *line), "{line} is not in {text}");
        }
    }

    #[test]
    fn the_state_of_viewers_is_a_gauge_and_new_events_are_counted() {
        let live = Live::default();
        live.begin(3);
        let sample = ViewerSample {
            playing: 2,
            stalled: 1,
            stalls: 4,
            bytes: 700,
            ..ViewerSample::default()
        };
        live.viewers(&ViewerSample { stalls: 1, bytes: 200, ..sample });
        live.viewers(&sample);
        let state = "tenuto_meter_viewers{state=\"playing\"} 2";
        let (stalls, bytes) = ("tenuto_meter_stalls_total", "tenuto_meter_moved_bytes_total");
        let bytes = format!("{bytes}{{kind=\"read\"}}");
        shows(&live, &[state, &format!("{stalls} 4"), &format!("{bytes} 700")]);
        // The totals of the next run of a search start from zero.
        live.begin(4);
        live.viewers(&ViewerSample { gone: 4, stalls: 1, bytes: 50, ..ViewerSample::default() });
        let state = "tenuto_meter_viewers{state=\"playing\"} 0";
        shows(&live, &[state, &format!("{stalls} 5"), &format!("{bytes} 750")]);
    }

    #[test]
    fn the_state_of_agents_is_a_gauge_and_their_counts_are_added_once() {
        let live = Live::default();
        live.begin(4);
        let shape = FileSet { layout: Layout::OneFile, files: 1, each: ByteCount(1) };
        let facts = TargetFacts { shape, caches: String::new(), stack: Stack::default() };
        let worker = |ready: bool, busy: bool, judged, late| WorkerState {
            facts: ready.then(|| facts.clone()),
            busy,
            progress: RunProgress { judged, late, ..RunProgress::default() },
            ..WorkerState::default()
        };
        let agent = |workers| AgentState { workers, ..AgentState::default() };
        let running = agent(vec![worker(true, true, 60, 1), worker(true, false, 40, 2)]);
        let preparing = agent(vec![worker(true, false, 0, 0), worker(false, false, 0, 0)]);
        let done = agent(vec![worker(true, false, 100, 3)]);
        let lost = AgentState { lost: Some("gone".into()), ..done.clone() };
        for _ in 0..2 {
            live.agents(&[running.clone(), preparing.clone(), done.clone(), lost.clone()]);
        }
        let state = |state, count| format!("tenuto_meter_agents{{state=\"{state}\"}} {count}");
        let states = ["preparing", "running", "done", "lost"].map(|name| state(name, 1));
        shows(&live, &states.each_ref().map(String::as_str));
        shows(
            &live,
            &["tenuto_meter_frames_total 300", "tenuto_meter_late_frames_total{by=\"storage\"} 9"],
        );
    }
}
