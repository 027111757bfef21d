//! The thread that sends spans and log records to a collector: in batches, again later where it is
//! asked to, and for two seconds more when the server ends.
//!
//! One batch is under way at a time; what comes meanwhile waits in the queue, which is bounded.

use super::otlp::{self, LogRecord, SpanRecord};
use super::{Exported, OtlpTarget};
use crate::outgoing;
use crossbeam_channel::{Receiver, Sender, TryRecvError, bounded};
use serde_json::{Value, json};
use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use units::Reason;
use ureq::Agent;
use uuid::Uuid;

/// What a record is, to a collector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Signal {
    Spans,
    Logs,
}

impl Signal {
    pub(crate) const ALL: [Self; 2] = [Self::Spans, Self::Logs];

    /// The word in metrics and in the log.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Spans => "spans",
            Self::Logs => "logs",
        }
    }

    fn path(self) -> &'static str {
        match self {
            Self::Spans => "/v1/traces",
            Self::Logs => "/v1/logs",
        }
    }

    /// The field of an answer with the number of records that were not taken.
    fn rejected(self) -> &'static str {
        match self {
            Self::Spans => "rejectedSpans",
            Self::Logs => "rejectedLogRecords",
        }
    }
}

/// What has become of records.
#[derive(Debug, Default)]
pub(crate) struct ExportCounters([SignalCounters; Signal::ALL.len()]);

/// What has become of the records of one signal.
#[derive(Debug, Default)]
pub(crate) struct SignalCounters {
    /// Records that the collector has taken.
    pub(crate) sent: AtomicU64,
    /// Records that it has not: the queue was full, or it refused them.
    pub(crate) dropped: AtomicU64,
    /// Whether the last request was not taken, or not all of it.
    pub(crate) is_failing: AtomicBool,
}

impl ExportCounters {
    pub(crate) fn of(&self, signal: Signal) -> &SignalCounters {
        &self.0[signal as usize]
    }
}

/// The other end of [`Telemetry`](super::Telemetry), before its thread runs.
pub(crate) struct TelemetrySender {
    records: Receiver<Exported>,
    closing: Receiver<()>,
    counters: Arc<ExportCounters>,
    agent: Agent,
    url: String,
    fields: Vec<(String, String)>,
    resource: Value,
    // When the server ends: until when records are sent.
    ends: Option<Instant>,
}

/// The thread, to those who wait for its end.
#[derive(Debug)]
pub(crate) struct TelemetryThread(Receiver<()>);

impl TelemetryThread {
    /// Waits until the last records are sent, at most so long. It is not waited for any longer: a
    /// collector that does not answer must not delay the end of the server.
    pub(crate) fn wait(&self, within: Duration) {
        let _ = self.0.recv_timeout(within);
    }
}

impl TelemetrySender {
    pub(super) fn new(
        target: &OtlpTarget,
        instance: &str,
        records: Receiver<Exported>,
        closing: Receiver<()>,
        counters: Arc<ExportCounters>,
    ) -> Result<Self, Reason> {
        let hint = "for example --otlp http://127.0.0.1:4318, the collector's port for HTTP";
        // A password in it is for nobody who reads what a server says.
        let shown = target.url.rsplit('@').next().unwrap_or_default();
        let bad = |why: &str| Reason::new(format!("--otlp {shown} {why}"), hint);
        let agent = outgoing::agent(&target.url, PATIENCE).map_err(bad)?;
        let fields = target.fields()?;
        let is_field = |(name, value): &(String, String)| {
            let value = ureq::http::HeaderValue::from_str(value);
            name.parse::<ureq::http::HeaderName>().is_ok() && value.is_ok()
        };
        if !fields.iter().all(is_field) {
            let why = "OTEL_EXPORTER_OTLP_HEADERS has what cannot be a field of HTTP";
            return Err(Reason::new(why, "name=value, with commas between them"));
        }
        Ok(Self {
            records,
            closing,
            counters,
            agent,
            url: target.url.trim_end_matches('/').to_owned(),
            fields,
            resource: otlp::resource(&target.resource(instance)?),
            ends: None,
        })
    }

    /// Starts the thread. It ends when the last handle is gone and what waited is sent, or given
    /// up. `log` adds a line to the log of the server.
    pub(crate) fn start(
        mut self,
        log: impl Fn(Value) + Send + 'static,
    ) -> io::Result<TelemetryThread> {
        let (running, ended) = bounded(0);
        thread::Builder::new().name("otlp".to_owned()).spawn(move || {
            self.run(&log);
            drop::<Sender<()>>(running);
        })?;
        Ok(TelemetryThread(ended))
    }

    fn run(&mut self, log: &dyn Fn(Value)) {
        while let Ok(first) = self.records.recv() {
            let (mut spans, mut records) = (Vec::new(), Vec::new());
            let mut add = |record| match record {
                Exported::Span(span) => spans.push(*span),
                Exported::Log(record) => records.push(*record),
            };
            add(first);
            let until = Instant::now() + INTERVAL;
            // Its size is bounded, and so are the bytes of a request.
            for _ in 1..BATCH {
                let Ok(record) = self.records.recv_deadline(until) else { break };
                add(record);
            }
            self.deliver_spans(&spans, log);
            self.deliver_logs(&records, log);
        }
    }

    fn deliver_spans(&mut self, spans: &[SpanRecord], log: &dyn Fn(Value)) {
        if !spans.is_empty() {
            let body = otlp::traces(&self.resource, spans).to_string();
            self.deliver(Signal::Spans, spans.len() as u64, &body, log);
        }
    }

    fn deliver_logs(&mut self, records: &[LogRecord], log: &dyn Fn(Value)) {
        if !records.is_empty() {
            let body = otlp::logs(&self.resource, records).to_string();
            self.deliver(Signal::Logs, records.len() as u64, &body, log);
        }
    }

    /// Sends a batch until it is taken, or never will be.
    fn deliver(&mut self, signal: Signal, count: u64, body: &str, log: &dyn Fn(Value)) {
        for failures in 0.. {
            let is_last = self.ends.is_some();
            let reply = match self.time_left() {
                Some(time) => self.post(signal, body, time),
                None => CollectorReply::Refused("the server has ended".to_owned()),
            };
            let (rejected, why) = match reply {
                CollectorReply::Taken { rejected, why } => (rejected.min(count), why),
                CollectorReply::Refused(why) => (count, why),
                CollectorReply::Later(why, _) if is_last => (count, why),
                CollectorReply::Later(why, after) => {
                    self.note(signal, Some(&why), log);
                    let pause = pause(failures, after, Uuid::new_v4().as_bytes()[0]);
                    // An end of the server ends the pause, and there is one more attempt.
                    let _ = self.closing.recv_timeout(pause);
                    continue;
                }
            };
            let counters = self.counters.of(signal);
            counters.sent.fetch_add(count - rejected, Ordering::Relaxed);
            counters.dropped.fetch_add(rejected, Ordering::Relaxed);
            return self.note(signal, (rejected > 0).then_some(&why), log);
        }
    }

    /// Notes whether a request was taken, and logs it where that has changed.
    fn note(&self, signal: Signal, failed: Option<&String>, log: &dyn Fn(Value)) {
        let counters = self.counters.of(signal);
        let before = counters.is_failing.swap(failed.is_some(), Ordering::Relaxed);
        let word = signal.word();
        match (before, failed) {
            (false, Some(why)) => {
                log(json!({ "event": "otlp-failing", "signal": word, "error": why }));
            }
            (true, None) => {
                let dropped = counters.dropped.load(Ordering::Relaxed);
                log(json!({ "event": "otlp-resumed", "signal": word, "dropped": dropped }));
            }
            _ => {}
        }
    }

    /// Time for one attempt; `None` once the server has ended for too long.
    fn time_left(&mut self) -> Option<Duration> {
        let now = Instant::now();
        if self.ends.is_none() && self.closing.try_recv() == Err(TryRecvError::Disconnected) {
            self.ends = Some(now + FLUSHED_WITHIN);
        }
        let Some(ends) = self.ends else { return Some(PATIENCE) };
        Some(ends.saturating_duration_since(now)).filter(|left| !left.is_zero())
    }

    fn post(&self, signal: Signal, body: &str, within: Duration) -> CollectorReply {
        let mut request = self.agent.post(format!("{}{}", self.url, signal.path()));
        request = request.header("Content-Type", "application/json");
        for (name, value) in &self.fields {
            request = request.header(name, value);
        }
        let sent = request.config().timeout_global(Some(within)).build().send(body);
        let mut response = match sent {
            Ok(response) => response,
            Err(error) => return CollectorReply::Later(error.to_string(), None),
        };
        let (status, after) = (response.status().as_u16(), retry_after(response.headers()));
        let body = response.body_mut().with_config().limit(LONGEST_ANSWER).read_to_string();
        CollectorReply::of(signal, status, after, &body.unwrap_or_default())
    }
}

/// What a collector has answered.
#[derive(Debug, PartialEq, Eq)]
enum CollectorReply {
    /// All records but these are taken; why these are not.
    Taken { rejected: u64, why: String },
    /// None of the records is ever taken.
    Refused(String),
    /// The records may be taken later, at the earliest after this time.
    Later(String, Option<Duration>),
}

impl CollectorReply {
    fn of(signal: Signal, status: u16, after: Option<Duration>, body: &str) -> Self {
        let body: Value = serde_json::from_str(body).unwrap_or_default();
        if (200..300).contains(&status) {
            let partial = &body["partialSuccess"];
            let rejected = &partial[signal.rejected()];
            // A 64-bit integer is a string, and may be a number, too.
            let number = rejected.as_str().and_then(|text| text.parse().ok());
            let rejected = number.or_else(|| rejected.as_u64()).unwrap_or(0);
            let why = partial["errorMessage"].as_str().unwrap_or("records were rejected");
            return Self::Taken { rejected, why: why.to_owned() };
        }
        // The body is a `Status` of gRPC.
        let said = body["message"].as_str().map(|said| format!(": {said}")).unwrap_or_default();
        let why = format!("answered with {status}{said}");
        match status {
            429 | 502 | 503 | 504 => Self::Later(why, after),
            _ => Self::Refused(why),
        }
    }
}

/// The seconds of a `Retry-After` field.
fn retry_after(fields: &ureq::http::HeaderMap) -> Option<Duration> {
    let seconds = fields.get("retry-after")?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds))
}

/// The pause after so many failures before this one: twice as long each time, and at least as long
/// as the collector asks for. `random` spreads those of many servers.
fn pause(failures: u32, asked: Option<Duration>, random: u8) -> Duration {
    let doubled = FIRST_PAUSE.saturating_mul(1 << failures.min(16)).min(LONGEST_PAUSE);
    let pause = doubled * (256 + u32::from(random)) / 512;
    asked.map_or(pause, |asked| pause.max(asked.min(LONGEST_ASKED)))
}

impl fmt::Debug for TelemetrySender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The fields may be secret.
        f.debug_struct("TelemetrySender").field("url", &self.url).finish_non_exhaustive()
    }
}

/// Records of one request.
const BATCH: usize = 512;
/// The longest time for which a record waits for others.
const INTERVAL: Duration = Duration::from_secs(1);
/// Time for one attempt, as in other programs with OpenTelemetry.
const PATIENCE: Duration = Duration::from_secs(10);
/// Time in which the last records are sent when the server ends.
pub(crate) const FLUSHED_WITHIN: Duration = Duration::from_secs(2);
const FIRST_PAUSE: Duration = Duration::from_secs(2);
/// A collector that is back gets records soon.
const LONGEST_PAUSE: Duration = Duration::from_secs(32);
/// The longest pause that a collector may ask for.
const LONGEST_ASKED: Duration = Duration::from_secs(300);
/// Bytes of an answer that are read.
const LONGEST_ANSWER: u64 = 64 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_answer_says_what_becomes_of_the_records() {
        let taken = |rejected, why: &str| CollectorReply::Taken { rejected, why: why.to_owned() };
        let all = taken(0, "records were rejected");
        let some = r#"{"partialSuccess":{"rejectedSpans":"3","errorMessage":"too old"}}"#;
        let number = r#"{"partialSuccess":{"rejectedSpans":3,"errorMessage":"too old"}}"#;
        let later = |why: &str, seconds: Option<u64>| {
            CollectorReply::Later(format!("answered with {why}"), seconds.map(Duration::from_secs))
        };
        let never = |why: &str| CollectorReply::Refused(format!("answered with {why}"));
        for (status, after, body, expected) in [
            (200, None, "{}", all),
            (200, None, some, taken(3, "too old")),
            (200, None, number, taken(3, "too old")),
            (204, None, "", taken(0, "records were rejected")),
            (400, None, r#"{"code":3,"message":"bad span"}"#, never("400: bad span")),
            (404, Some(1), "404 page not found", never("404")),
            (301, None, "", never("301")),
            (500, None, "", never("500")),
            (429, Some(7), "", later("429", Some(7))),
            (503, None, "", later("503", None)),
        ] {
            let after = after.map(Duration::from_secs);
            assert_eq!(
                CollectorReply::of(Signal::Spans, status, after, body),
                expected,
                "{status} {body}"
            );
        }
        let other = CollectorReply::of(Signal::Logs, 200, None, some);
        assert_eq!(other, taken(0, "too old"), "of spans, and these are log records");
    }

    #[test]
    fn pauses_double_and_are_as_long_as_the_collector_asks() {
        let millis = |failures, asked: Option<u64>, random| {
            pause(failures, asked.map(Duration::from_secs), random).as_millis()
        };
        let doubled = [0, 1, 2, 3, 4, 5, u32::MAX].map(|failures| millis(failures, None, 0));
        assert_eq!(doubled, [1000, 2000, 4000, 8000, 16_000, 16_000, 16_000]);
        assert_eq!([millis(0, None, 128), millis(0, None, 255)], [1500, 1996]);
        let asked = [0, 3, 1_000_000].map(|asked| millis(0, Some(asked), 0));
        assert_eq!(asked, [1000, 3000, 300_000]);
    }
}
