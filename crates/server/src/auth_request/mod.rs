//! A service of the operator's that decides on each viewer before a session begins
//! (`--auth-request`).
//!
//! ```text
//!   HTTP and RTSP threads ──ask──▶ queue ──▶ thread `auth` ──▶ threads `auth-0`.. ──POST──▶ service
//!            ▲                                  │   ▲                  │
//!            │                                  │   └──── answer ◀─────┘ 401, 403, 2xx, or none
//!            └──WorkerMessage::Authorized───────┘ answer, kept answer, or the end of the time limit
//! ```
//!
//! A thread that serves clients never waits for the service: the thread `auth` answers each viewer
//! within the time limit, whatever the service does. Its books ([`questions`]) are pure. Only the
//! beginning of a session is asked for; the service is not told of its end.
//!
//! The threads are not joined: a service that does not answer must not delay the end of the
//! server, nor a new configuration.

pub(crate) mod answer;
pub(crate) mod decision;
mod dispatcher;
mod questions;
mod service;

use crate::access::Allowance;
use crate::clients::ClientAddress;
use crate::config::AuthRequestTarget;
use crate::messages::{Caller, WorkerHandle};
use crate::signature::SigningKey;
use crate::telemetry::Protocol;
use crate::wire;
use answer::{AuthAnswer, AuthVerdict};
use crossbeam_channel::Sender;
use engine::Priority;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use questions::{Ask, QuestionKey};
use ring::digest::{SHA256, digest};
use serde_json::{Map, Value, json};
use service::AuthService;
use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};
use units::show::iso_date;
use units::{Hinted, Reason, locked};
use uuid::Uuid;

/// Asks the operator's service whether viewers may begin; without one all may.
#[derive(Debug)]
pub(crate) struct AuthRequests {
    current: Mutex<Option<Arc<AuthRequester>>>,
    workers: Vec<WorkerHandle>,
    pub(crate) counters: Arc<AuthCounters>,
}

/// A service that is asked. Its threads end when this is dropped and all that was asked is settled.
pub(crate) struct AuthRequester {
    target: AuthRequestTarget,
    key: Option<SigningKey>,
    asked: Sender<Ask>,
}

/// Counts what the metrics have of the service.
#[derive(Debug)]
pub(crate) struct AuthCounters {
    /// Viewers whom it has allowed, with kept answers, too.
    pub(crate) allowed: AtomicU64,
    pub(crate) refused: AtomicU64,
    /// Viewers for whom it gave no answer that can be used.
    pub(crate) unanswered: AtomicU64,
    /// Viewers who were refused because too many waited.
    pub(crate) busy: AtomicU64,
    /// Viewers who got a kept answer, or that to the question of another viewer.
    pub(crate) shared: AtomicU64,
    /// Viewers who wait for an answer now.
    pub(crate) waiting: AtomicU64,
    /// Questions without an answer that can be used, by [`NoAnswer`].
    pub(crate) failures: [AtomicU64; NoAnswer::ALL.len()],
    /// Seconds from a question to its answer.
    pub(crate) answers: Histogram,
}

/// What a service is told of a viewer.
#[derive(Debug)]
pub(crate) struct ViewerQuestion<'a> {
    pub(crate) title: &'a str,
    pub(crate) protocol: Protocol,
    pub(crate) client: IpAddr,
    pub(crate) priority: Priority,
    pub(crate) user_agent: Option<&'a str>,
    pub(crate) forwarded_for: Option<&'a str>,
    /// The claims of the viewer's token, where one was checked.
    pub(crate) claims: Option<&'a Map<String, Value>>,
}

/// Why there is no answer that can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoAnswer {
    /// None came in time.
    Timeout,
    /// The service was not reached, or the connection broke.
    Connection,
    /// One came whose form is not known.
    Form,
}

impl NoAnswer {
    pub(crate) const ALL: [Self; 3] = [Self::Timeout, Self::Connection, Self::Form];

    /// A stable word for it.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Timeout => "timeout",
            Self::Connection => "connection",
            Self::Form => "form",
        }
    }
}

impl Default for AuthCounters {
    fn default() -> Self {
        Self {
            allowed: AtomicU64::default(),
            refused: AtomicU64::default(),
            unanswered: AtomicU64::default(),
            busy: AtomicU64::default(),
            shared: AtomicU64::default(),
            waiting: AtomicU64::default(),
            failures: Default::default(),
            // 1 ms to 32 s: a service beside the server, and the longest time limit.
            answers: Histogram::new(exponential_buckets(0.001, 2.0, 16)),
        }
    }
}

impl AuthRequests {
    /// Whether a service can be asked, as far as that is known without asking it.
    pub(crate) fn check(target: &AuthRequestTarget) -> Result<(), Reason> {
        AuthService::new(target, key(target)?).map(drop)
    }

    /// Asks nobody before [`AuthRequests::replace`]. `workers`: the threads that serve clients.
    pub(crate) fn new(workers: Vec<WorkerHandle>) -> Self {
        Self { current: Mutex::default(), workers, counters: Arc::default() }
    }

    /// Prepares to ask a service, for [`AuthRequests::replace`]. One that is asked as it is already
    /// goes on, with the answers that it has given.
    pub(crate) fn prepare(
        &self,
        target: Option<&AuthRequestTarget>,
    ) -> Result<Option<Arc<AuthRequester>>, Reason> {
        let Some(target) = target else { return Ok(None) };
        // Of a file of the same name the secret may be another one now.
        let key = key(target)?;
        let is_same = |it: &Arc<AuthRequester>| it.target == *target && it.key == key;
        let current = locked(&self.current).clone().filter(is_same);
        if current.is_some() {
            return Ok(current);
        }
        let service = AuthService::new(target, key.clone())?;
        let (workers, counters) = (self.workers.clone(), Arc::clone(&self.counters));
        let started = dispatcher::start(target, service, workers, counters);
        let asked = started.map_err(|error| error.reason().about("cannot start a thread"))?;
        Ok(Some(Arc::new(AuthRequester { target: target.clone(), key, asked })))
    }

    /// Asks this service from now on, or none.
    pub(crate) fn replace(&self, requester: Option<Arc<AuthRequester>>) {
        *locked(&self.current) = requester;
    }

    /// Whether a service is asked.
    pub(crate) fn is_on(&self) -> bool {
        locked(&self.current).is_some()
    }

    /// Asks whether a viewer may begin. The answer comes as `WorkerMessage::Authorized`, unless it
    /// is known at once. `patience`: the viewer's own, where it is shorter than the time limit.
    pub(crate) fn ask(
        &self,
        caller: Caller,
        viewer: &ViewerQuestion<'_>,
        patience: Option<Duration>,
    ) -> Option<AuthAnswer> {
        let id = Uuid::new_v4();
        let at_once = |verdict| Some(AuthAnswer { id, verdict });
        let Some(current) = locked(&self.current).clone() else {
            return at_once(AuthVerdict::Allowed(Allowance::default()));
        };
        let limit = current.target.timeout;
        let until = Instant::now() + patience.map_or(limit, |it| it.min(limit));
        let mut body = viewer.body();
        let key = QuestionKey::of(digest(&SHA256, body.to_string().as_bytes()).as_ref());
        body["id"] = id.to_string().into();
        body["time"] = iso_date(SystemTime::now()).into();
        let (client, body) = (ClientAddress::of(viewer.client), body.to_string());
        let ask = Ask { key, id, body, caller, client, until };
        match current.asked.try_send(ask) {
            Ok(()) => None,
            // The thread takes what it is asked in microseconds.
            Err(_) => at_once(AuthVerdict::Busy),
        }
    }

    /// The counters, for `/status`; `None`: no service is asked.
    pub(crate) fn status(&self) -> Option<wire::Authorizations> {
        let counters = &self.counters;
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        self.is_on().then(|| wire::Authorizations {
            allowed: count(&counters.allowed),
            refused: count(&counters.refused),
            unanswered: count(&counters.unanswered),
            busy: count(&counters.busy),
            waiting: count(&counters.waiting),
        })
    }
}

impl ViewerQuestion<'_> {
    /// All that an answer may depend on: what the service is sent, but for number and time.
    fn body(&self) -> Value {
        let Self { title, protocol, client, priority, user_agent, forwarded_for, claims } = self;
        let mut body = json!({
            "title": title,
            "protocol": protocol.word(),
            "client": client.to_canonical().to_string(),
            "priority": priority.word(),
        });
        for (name, text) in [("user_agent", user_agent), ("forwarded_for", forwarded_for)] {
            if let Some(text) = text {
                body[name] = text.chars().take(LONGEST_TEXT).collect::<String>().into();
            }
        }
        if let Some(claims) = claims {
            body["claims"] = Value::Object((*claims).clone());
        }
        body
    }
}

impl fmt::Debug for AuthRequester {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The address may have a secret.
        f.debug_struct("AuthRequester").finish_non_exhaustive()
    }
}

/// What questions are signed with.
fn key(target: &AuthRequestTarget) -> Result<Option<SigningKey>, Reason> {
    let read = |path: &PathBuf| SigningKey::read("--auth-request-secret", path);
    target.secret.as_ref().map(read).transpose()
}

/// Characters of a field of the player's: more than any browser calls itself by.
const LONGEST_TEXT: usize = 1024;
