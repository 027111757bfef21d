//! What a collector of OpenTelemetry gets (`--otlp`): spans of sessions, and the lines of the log.
//!
//! ```text
//!   core: a session ends, a step of it is over ──┐
//!   all threads: a line of the log ──────────────┴▶ queue of 2048 ──▶ thread `otlp` ──POST──▶ URL
//!                                                     │ full             │ not taken now: again
//!                                                     └▶ dropped, counted│ never taken: dropped,
//!                                                                        └▶ counted
//! ```
//!
//! Nothing here waits for the collector, and a server without one does nothing. Metrics are not
//! sent: a collector scrapes `/metrics`, as Prometheus does. There is no span for each request of a
//! segment: its line of the log has the identifiers of its session's span.

mod context;
mod otlp;
mod sender;
mod session_trace;
mod target;

pub(crate) use context::TraceContext;
pub use context::TracedPart;
pub(crate) use otlp::SpanRecord;
pub(crate) use sender::{FLUSHED_WITHIN, Signal, TelemetrySender, TelemetryThread};
pub(crate) use session_trace::{Protocol, SessionTrace};
pub use target::{OtlpHeaders, OtlpTarget};

use crossbeam_channel::{Sender, TrySendError, bounded};
use otlp::LogRecord;
use ring::rand::{SecureRandom, SystemRandom};
use sender::ExportCounters;
use serde_json::Value;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::SystemTime;
use units::Reason;

/// Takes spans and lines of the log; without a collector they are discarded. Clones send to the
/// same one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Telemetry(Option<Arc<Exporter>>);

/// What all handles share.
struct Exporter {
    records: Sender<Exported>,
    traced: TracedPart,
    counters: Arc<ExportCounters>,
    random: SystemRandom,
    // Disconnected when the last handle is gone: the thread pauses no longer.
    _open: Sender<()>,
}

/// A record on its way to the collector.
#[derive(Debug)]
enum Exported {
    Span(Box<SpanRecord>),
    Log(Box<LogRecord>),
}

impl Telemetry {
    /// Whether the target can be used, as far as that is known without asking it.
    pub(crate) fn check(target: &OtlpTarget) -> Result<(), Reason> {
        Self::new(Some(target), "").map(drop)
    }

    /// A handle, and what [`TelemetrySender::start`] runs. `instance`: what tells the server from
    /// others.
    pub(crate) fn new(
        target: Option<&OtlpTarget>,
        instance: &str,
    ) -> Result<(Self, Option<TelemetrySender>), Reason> {
        let Some(target) = target else { return Ok((Self::default(), None)) };
        let (records, queue) = bounded(QUEUE);
        let (open, closing) = bounded(0);
        let counters = Arc::<ExportCounters>::default();
        let sender = TelemetrySender::new(target, instance, queue, closing, Arc::clone(&counters))?;
        let (traced, random) = (target.traced, SystemRandom::new());
        let exporter = Exporter { records, traced, counters, random, _open: open };
        Ok((Self(Some(Arc::new(exporter))), Some(sender)))
    }

    /// Whether there is a collector.
    pub(crate) fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// What has become of records so far; `None` without a collector.
    pub(crate) fn counters(&self) -> Option<&ExportCounters> {
        self.0.as_ref().map(|exporter| &*exporter.counters)
    }

    /// The trace of a session that is asked for now: that of its player or a proxy, if it has sent
    /// one. `None` without a collector.
    pub(crate) fn begin(
        &self,
        asked: SystemTime,
        protocol: Protocol,
        parent: Option<TraceContext>,
    ) -> Option<SessionTrace> {
        let exporter = self.0.as_ref()?;
        let mut random = context::RandomIds { trace: [0; 16], span: [0; 8] };
        exporter.random.fill(&mut random.trace).ok()?;
        exporter.random.fill(&mut random.span).ok()?;
        let context = TraceContext::new(parent, exporter.traced, random);
        let parent = parent.map(|parent| parent.span);
        Some(SessionTrace { context, parent, asked, protocol })
    }

    /// A step of a session, which is over now. `attributes` makes those of its span, and is called
    /// only where the session is traced.
    pub(crate) fn step(
        &self,
        trace: Option<SessionTrace>,
        name: &'static str,
        begun: SystemTime,
        error: Option<String>,
        attributes: impl FnOnce() -> Vec<(&'static str, Value)>,
    ) {
        let Some((exporter, trace)) = self.0.as_ref().zip(trace) else { return };
        let mut id = [0; 8];
        if !trace.context.is_sampled || exporter.random.fill(&mut id).is_err() {
            return;
        }
        let attributes = attributes();
        exporter.export(Exported::Span(Box::new(trace.step(id, name, begun, error, attributes))));
    }

    /// A session is over, or was refused.
    pub(crate) fn session(
        &self,
        trace: Option<SessionTrace>,
        name: &'static str,
        error: Option<String>,
        attributes: impl FnOnce() -> Vec<(&'static str, Value)>,
    ) {
        let Some((exporter, trace)) = self.0.as_ref().zip(trace) else { return };
        if trace.context.is_sampled {
            let span = trace.whole(name, error, attributes());
            exporter.export(Exported::Span(Box::new(span)));
        }
    }

    /// A line of the log, which may be about a session.
    pub(crate) fn log(&self, at: SystemTime, line: &Arc<Value>, session: Option<TraceContext>) {
        if let Some(exporter) = &self.0 {
            let line = Arc::clone(line);
            exporter.export(Exported::Log(Box::new(LogRecord { at, line, session })));
        }
    }
}

impl Exporter {
    /// Never waits: a record that does not fit the queue is dropped.
    fn export(&self, record: Exported) {
        if let Err(TrySendError::Full(record)) = self.records.try_send(record) {
            let signal = match record {
                Exported::Span(_) => Signal::Spans,
                Exported::Log(_) => Signal::Logs,
            };
            self.counters.of(signal).dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl fmt::Debug for Exporter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exporter").field("waiting", &self.records.len()).finish_non_exhaustive()
    }
}

/// Records that wait to be sent, as in other programs with OpenTelemetry.
const QUEUE: usize = 2048;

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn target() -> OtlpTarget {
        OtlpTarget::new(Some("http://127.0.0.1:9".to_owned()), TracedPart::ALL, |_| None).unwrap()
    }

    #[test]
    fn records_beyond_the_queue_are_dropped_and_counted_and_nothing_waits() {
        let (telemetry, _sender) = Telemetry::new(Some(&target()), "a").unwrap();
        let line = Arc::new(json!({ "event": "decision" }));
        let now = SystemTime::now();
        let trace = telemetry.begin(now, Protocol::Hls, None);
        for number in 0..QUEUE + 5 {
            match number % 2 {
                0 => telemetry.log(now, &line, None),
                _ => telemetry.session(trace, "session", None, Vec::new),
            }
        }
        let counters = telemetry.counters().unwrap();
        let dropped = |signal| counters.of(signal).dropped.load(Ordering::Relaxed);
        assert_eq!([Signal::Logs, Signal::Spans].map(dropped), [3, 2]);
    }

    #[test]
    fn a_trace_that_its_sender_does_not_export_has_no_spans_here_either() {
        let (telemetry, _sender) = Telemetry::new(Some(&target()), "a").unwrap();
        let waiting = || telemetry.0.as_ref().unwrap().records.len();
        let now = SystemTime::now();
        for (flags, spans) in [("00", 0), ("01", 2)] {
            let parent = format!("00-{}-{}-{flags}", "1".repeat(32), "2".repeat(16));
            let trace = telemetry.begin(now, Protocol::Hls, TraceContext::parse(&parent));
            telemetry.step(trace, "admission", now, None, Vec::new);
            telemetry.session(trace, "session", None, Vec::new);
            assert_eq!(waiting(), spans, "{parent}");
        }
        // Without a collector nothing is made.
        let none = Telemetry::default();
        assert!(none.begin(now, Protocol::Hls, None).is_none() && !none.is_on());
    }
}
