//! Spans of sessions, as a collector gets them, and the log's lines for their ends. Nothing is
//! decided here, and nothing waits.
//!
//! ```text
//!   session ├── admission ──┬── start-up ──┬───── plays ──┬── seek ──┬───── plays ─────┤
//!           asked           decided, and   first bytes    sought     first bytes    ended
//!                           its wait over                            from there
//! ```
//!
//! A refused viewer has a session of an admission alone, both with an error. A fill of a cache or
//! of another node has the same spans, the first of them called `fill`.

use super::{Core, decisions};
use crate::clients::ClientAddress;
use crate::messages::{AdmissionError, PlayRequest};
use crate::sessions::PlayerSession;
use crate::telemetry::SessionTrace;
use engine::{CutShort, Priority, RequestId, SessionId, SessionSummary};
use serde_json::{Value, json};
use std::time::{Duration, SystemTime};

/// What is known of a viewer who asks.
pub(super) struct Applicant {
    title: String,
    client: ClientAddress,
    priority: Priority,
    is_fill: bool,
}

type Attributes = Vec<(&'static str, Value)>;

impl Applicant {
    pub(super) fn new(client: ClientAddress, request: &PlayRequest) -> Self {
        let (priority, is_fill) = (request.permit.priority, request.fill.is_some());
        Self { title: request.name.clone(), client, priority, is_fill }
    }

    fn attributes(&self) -> Attributes {
        vec![
            ("tenuto.title", self.title.as_str().into()),
            ("tenuto.priority", self.priority.word().into()),
            ("client.address", self.client.to_string().into()),
        ]
    }
}

impl Core {
    /// A viewer is not admitted.
    pub(super) fn trace_refusal(
        &self,
        trace: Option<SessionTrace>,
        applicant: &Applicant,
        why: &AdmissionError,
    ) {
        let Some(asked) = trace.map(|trace| trace.asked()) else { return };
        let (reason, detail) = why.reason();
        let resource = match why {
            AdmissionError::Refused(refusal) => refusal.resource.map(engine::Resource::word),
            _ => None,
        };
        let attributes = || {
            vec![
                ("tenuto.decision", Value::from("refused")),
                ("tenuto.reason", reason.into()),
                ("tenuto.resource", resource.into()),
                ("error.type", reason.into()),
            ]
        };
        let telemetry = &self.shared.telemetry;
        telemetry.step(trace, "admission", asked, Some(detail.clone()), attributes);
        telemetry.session(trace, span_name(applicant.is_fill), Some(detail), || {
            applicant.attributes().into_iter().chain(attributes()).collect()
        });
    }

    /// A viewer is admitted, and its wait is over.
    pub(super) fn trace_admission(&self, session: &PlayerSession) {
        let Some(asked) = session.trace.map(|trace| trace.asked()) else { return };
        self.shared.telemetry.step(session.trace, "admission", asked, None, || {
            vec![
                ("tenuto.decision", decision(session).into()),
                ("tenuto.offer", session.offer.into()),
                ("tenuto.wait", session.wait.as_secs_f64().into()),
            ]
        });
    }

    /// A viewer who was admitted gets its first media.
    pub(super) fn trace_startup(&self, session: &PlayerSession) {
        let waited = session.admitted.elapsed().saturating_sub(session.wait);
        self.shared.telemetry.step(session.trace, "start-up", ago(waited), None, Vec::new);
    }

    /// A session goes on elsewhere with a request: its next bytes are a seek's first.
    pub(super) fn note_seek(&mut self, request: RequestId) {
        if self.shared.telemetry.is_on()
            && let Some(pending) = self.requests.get_mut(&request)
        {
            pending.sought.get_or_insert_with(SystemTime::now);
        }
    }

    /// A session that has sought gets its first media from there.
    pub(super) fn trace_seek(&self, session: &PlayerSession, sought: SystemTime) {
        self.shared.telemetry.step(session.trace, "seek", sought, None, Vec::new);
    }

    /// A seek is refused.
    pub(super) fn trace_refused_seek(&self, request: RequestId, refusal: &engine::Refusal) {
        let Some(session) = self.session_of(request) else { return };
        let (now, detail) = (SystemTime::now(), Some(refusal.detail.clone()));
        self.shared.telemetry.step(session.trace, "seek", now, detail, || {
            vec![
                ("tenuto.reason", refusal.cause.word().into()),
                ("tenuto.resource", refusal.resource.map(engine::Resource::word).into()),
                ("error.type", refusal.cause.word().into()),
            ]
        });
    }

    /// A session is over. `summary`: its account, if it has begun; `why`: the cause, where the
    /// server has one.
    pub(super) fn trace_end(
        &self,
        id: SessionId,
        summary: Option<&SessionSummary>,
        why: Option<&str>,
    ) {
        let Some(session) = self.sessions.get(&id).map(|open| &open.session) else { return };
        let cut_short = summary.and_then(|summary| summary.cut_short).map(CutShort::word);
        let error = cut_short.map(|why| format!("the server has ended it: {why}"));
        let name = span_name(session.is_fill());
        self.shared.telemetry.session(session.trace, name, error, || {
            let applicant = Applicant {
                title: session.name.clone(),
                client: session.client,
                priority: session.permit.priority,
                is_fill: session.is_fill(),
            };
            let mut all = applicant.attributes();
            all.extend([
                ("tenuto.session", Value::from(id.0)),
                ("tenuto.decision", decision(session).into()),
                ("tenuto.offer", session.offer.into()),
                ("tenuto.played", session.has_played().into()),
                ("tenuto.end", cut_short.or(why).into()),
                ("error.type", cut_short.into()),
            ]);
            if let Some(summary) = summary {
                all.extend([
                    ("tenuto.delivered_bytes", Value::from(summary.delivered)),
                    ("tenuto.deadline_misses", summary.deadline_misses.into()),
                    ("tenuto.worst_lateness", summary.worst_lateness.as_secs_f64().into()),
                ]);
            }
            all
        });
    }

    /// The server ends, and these sessions do not go on in another one.
    pub(super) fn tell_all_ends(&self, goes_on: impl Fn(SessionId) -> bool) {
        let now = self.clock.now();
        for id in self.sessions.keys().copied().filter(|id| !goes_on(*id)) {
            let status = self.engine.session(now, id);
            let summary = status.as_ref().map(|it| &it.summary);
            self.trace_end(id, summary, Some(SERVER_STOPPED));
            if let Some(summary) = summary {
                self.log_end(id, summary, Some(SERVER_STOPPED));
            }
        }
    }

    /// The log's line for a session that is over. `why`: the cause, where it did not end by itself.
    pub(super) fn log_end(&self, id: SessionId, summary: &SessionSummary, why: Option<&str>) {
        let open = self.sessions.get(&id);
        let name = open.map(|open| open.session.name.clone());
        let trace = open.and_then(|open| open.session.trace).map(|trace| trace.context());
        let permit = open.map(|open| open.session.permit.clone()).unwrap_or_default();
        let is_expired = open.is_some_and(|open| open.is_expired);
        self.shared.log.line_of(trace, || {
            json!({
                "event": if summary.is_fill { "fill-ended" } else { "session-ended" },
                "session": id.0,
                "title": name,
                "subject": permit.subject(),
                "token_id": permit.token_id(),
                "deadlines_met": summary.deadlines_met,
                "deadline_misses": summary.deadline_misses,
                "worst_lateness": summary.worst_lateness.as_secs_f64(),
                "guaranteed_slack": summary.guaranteed_slack.map(|slack| slack.as_secs_f64()),
                "observed_slack": summary.observed_slack.map(|slack| slack.as_secs_f64()),
                "guarantee_violations": { "disk": summary.violations_by_disk, "scheduler": summary.violations_by_scheduler },
                "delivered": summary.delivered,
                "priority": summary.priority.word(),
                "cut_short": why,
                "expired": is_expired,
            })
        });
    }
}

/// Why a session has ended that the end of its server has cut short.
const SERVER_STOPPED: &str = "server-stopped";

/// The word for the acceptance of a session.
fn decision(session: &PlayerSession) -> &'static str {
    let best = session.presentation.best_offer(session.format, &session.permit).unwrap_or(0);
    decisions::verdict(session.wait, session.offer.saturating_sub(best))
}

fn span_name(is_fill: bool) -> &'static str {
    if is_fill { "fill" } else { "session" }
}

fn ago(time: Duration) -> SystemTime {
    let now = SystemTime::now();
    now.checked_sub(time).unwrap_or(now)
}
