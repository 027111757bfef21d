//! Events of the server, sent to an address of the operator's (`--webhook`).
//!
//! ```text
//!   core, control, API ──tell──▶ queue of 256 ──▶ thread `webhook` ──POST──▶ URL
//!                                 │ full                 │ not taken: again after 1, 4, 16 and 64 s
//!                                 └▶ dropped, counted    └▶ given up, logged
//! ```
//!
//! Telling an event never waits. The thread is not joined: an address that does not answer must not
//! delay the end of the server.

use crate::config::WebhookTarget;
use crate::outgoing;
use crate::shared::Shared;
use crate::signature::{SIGNATURE, SigningKey};
use crossbeam_channel::{Receiver, Sender, TrySendError, bounded};
use serde_json::{Value, json};
use std::fmt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::{Duration, Instant, SystemTime};
use units::Reason;
use units::show::iso_date;
use ureq::Agent;
use uuid::Uuid;

/// Tells events; without a target they are discarded.
#[derive(Debug, Default)]
pub(crate) struct Webhook {
    events: Option<Sender<Value>>,
    counters: Arc<WebhookCounters>,
}

/// Why an attempt to send an event has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotTaken {
    /// The answer has another status than one of success.
    Status,
    /// There was no answer in time.
    Timeout,
    /// The address was not reached, or the connection broke.
    Connection,
}

impl NotTaken {
    /// All of them, in the order of their declaration.
    pub(crate) const ALL: [Self; 3] = [Self::Status, Self::Timeout, Self::Connection];

    /// The word in metrics.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Status => "status",
            Self::Timeout => "timeout",
            Self::Connection => "connection",
        }
    }
}

/// What has become of the events of a server.
#[derive(Debug, Default)]
pub(crate) struct WebhookCounters {
    /// Events that the address has taken.
    pub(crate) delivered: AtomicU64,
    /// Events that it had not taken after the last attempt.
    pub(crate) given_up: AtomicU64,
    /// Events that did not fit the queue.
    pub(crate) dropped: AtomicU64,
    /// Dropped events that no later event has told of yet.
    dropped_untold: AtomicU64,
    /// Events that wait, or are being sent.
    pub(crate) waiting: AtomicU64,
    /// Failed attempts, by their cause.
    pub(crate) failed: [AtomicU64; NotTaken::ALL.len()],
}

/// The other end of [`Webhook`], before its thread runs.
pub(crate) struct WebhookSender {
    url: String,
    key: Option<SigningKey>,
    agent: Agent,
    events: Receiver<Value>,
    counters: Arc<WebhookCounters>,
}

impl Webhook {
    /// Whether events can be sent to a target, as far as that is known without sending one.
    pub(crate) fn check(target: &WebhookTarget) -> Result<(), Reason> {
        agent(&target.url)?;
        target.secret.as_deref().map(key).transpose().map(drop)
    }

    /// A webhook, and what [`WebhookSender::start`] runs.
    pub(crate) fn new(
        target: Option<&WebhookTarget>,
    ) -> Result<(Self, Option<WebhookSender>), Reason> {
        let Some(target) = target else { return Ok((Self::default(), None)) };
        let (sender, events) = bounded(QUEUE);
        let counters = Arc::<WebhookCounters>::default();
        let other_end = WebhookSender {
            url: target.url.clone(),
            key: target.secret.as_deref().map(key).transpose()?,
            agent: agent(&target.url)?,
            events,
            counters: Arc::clone(&counters),
        };
        Ok((Self { events: Some(sender), counters }, Some(other_end)))
    }

    /// What has become of events; `None` without a target.
    pub(crate) fn counters(&self) -> Option<&WebhookCounters> {
        self.events.as_ref().map(|_| &*self.counters)
    }

    /// Sends an event of this name, with the fields of an object. Never waits: an event that does
    /// not fit the queue is dropped.
    pub(crate) fn tell(&self, event: &str, fields: impl FnOnce() -> Value) {
        let Some(events) = &self.events else { return };
        let mut body = fields();
        body["event"] = event.into();
        body["id"] = Uuid::new_v4().to_string().into();
        body["time"] = iso_date(SystemTime::now()).into();
        // Before it is sent: the thread may be done with it at once.
        self.counters.waiting.fetch_add(1, Ordering::Relaxed);
        if let Err(not_sent) = events.try_send(body) {
            self.counters.waiting.fetch_sub(1, Ordering::Relaxed);
            if matches!(not_sent, TrySendError::Full(_)) {
                self.counters.dropped.fetch_add(1, Ordering::Relaxed);
                self.counters.dropped_untold.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

impl WebhookSender {
    /// Starts the thread. It ends with the server, whose state it does not keep.
    pub(crate) fn start(self, shared: &Arc<Shared>) -> std::io::Result<()> {
        let shared = Arc::downgrade(shared);
        thread::Builder::new().name("webhook".to_owned()).spawn(move || {
            while let Ok(event) = self.events.recv() {
                self.deliver(&event, &shared);
                self.counters.waiting.fetch_sub(1, Ordering::Relaxed);
            }
        })?;
        Ok(())
    }

    fn deliver(&self, event: &Value, server: &Weak<Shared>) {
        let mut body = event.clone();
        body["dropped"] = self.counters.dropped_untold.swap(0, Ordering::Relaxed).into();
        let body = body.to_string();
        let mut failed = String::new();
        for pause in PAUSES {
            if !sleep_while_running(Duration::from_secs(pause), server) {
                return;
            }
            match self.post(&body) {
                Ok(()) => {
                    self.counters.delivered.fetch_add(1, Ordering::Relaxed);
                    return;
                }
                Err((cause, why)) => {
                    self.counters.failed[cause as usize].fetch_add(1, Ordering::Relaxed);
                    failed = why;
                }
            }
        }
        self.counters.given_up.fetch_add(1, Ordering::Relaxed);
        if let Some(server) = server.upgrade() {
            let (what, id) = (&event["event"], &event["id"]);
            server.log.line(
                || json!({ "event": "webhook-failed", "of": what, "id": id, "error": failed }),
            );
        }
    }

    fn post(&self, body: &str) -> Result<(), (NotTaken, String)> {
        let mut request = self.agent.post(&self.url).header("Content-Type", "application/json");
        if let Some(key) = &self.key {
            request = request.header(SIGNATURE, key.sign(body.as_bytes()));
        }
        match request.send(body).map(|response| response.status()) {
            Ok(status) if status.is_success() => Ok(()),
            Ok(status) => Err((NotTaken::Status, format!("answered with {status}"))),
            Err(error @ ureq::Error::Timeout(_)) => Err((NotTaken::Timeout, error.to_string())),
            Err(error) => Err((NotTaken::Connection, error.to_string())),
        }
    }
}

impl fmt::Debug for WebhookSender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The key is secret.
        f.debug_struct("WebhookSender").field("url", &self.url).finish_non_exhaustive()
    }
}

/// Sleeps; false if the server has ended meanwhile.
fn sleep_while_running(pause: Duration, server: &Weak<Shared>) -> bool {
    let start = Instant::now();
    while start.elapsed() < pause && server.strong_count() > 0 {
        thread::sleep(LOOK.min(pause));
    }
    server.strong_count() > 0
}

/// An HTTP client for this address.
fn agent(url: &str) -> Result<Agent, Reason> {
    let bad = |why: &str| {
        let hint = "for example --webhook https://alerts.example/tenuto; --webhook-secret signs";
        Reason::new(format!("--webhook {url} {why}"), hint)
    };
    outgoing::agent(url, PATIENCE).map_err(bad)
}

fn key(path: &Path) -> Result<SigningKey, Reason> {
    SigningKey::read("--webhook-secret", path)
}

/// Events that wait to be sent.
const QUEUE: usize = 256;
/// Seconds of the pauses before each attempt to send an event.
const PAUSES: [u64; 5] = [0, 1, 4, 16, 64];
/// Time for one attempt.
const PATIENCE: Duration = Duration::from_secs(10);
/// Time between two looks at whether the server has ended.
const LOOK: Duration = Duration::from_millis(250);
