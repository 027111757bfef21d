//! The decisions on viewers as the log, the admin API and the control socket show them, each with
//! its reason. Nothing is decided here.
//!
//! ```text
//!   admission ──────────────────────────┐
//!   a request while the server stops ───┤
//!   a seek that is refused ─────────────┼──▶ Shared::decided ──▶ the last 256, and the log
//!   a session that is cut short ────────┘
//! ```
//!
//! Two kinds of decisions are not shown, because they are taken for each segment: seeks and fills
//! of caches that are admitted.

use super::Core;
use crate::clients::ClientAddress;
use crate::sessions::PlayerSession;
use crate::shared::Shared;
use crate::telemetry::TraceContext;
use crate::wire::ViewerDecision;
use engine::{
    AdmissionDecision, CutShort, FillFor, Priority, Refusal, RefusalCause, RequestId, RetryAfter,
    SessionId,
};
use serde_json::json;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

impl Core {
    /// Shows the answer to an admission request, of which `about` has the title, the client and the
    /// best offer that it may have.
    pub(super) fn show_admission(
        &self,
        about: ViewerDecision,
        fill: Option<FillFor>,
        trace: Option<TraceContext>,
        answer: &AdmissionDecision,
    ) {
        let subject = subject(fill);
        match answer {
            AdmissionDecision::Refused(refusal) => {
                self.shared.decided(refused(ViewerDecision { subject, ..about }, refusal), trace);
            }
            AdmissionDecision::Admitted { .. } if fill.is_some() => {}
            AdmissionDecision::Admitted { session, offer, wait, preempted } => {
                let verdict = verdict(*wait, *offer);
                let decision = ViewerDecision {
                    subject,
                    verdict: verdict.to_owned(),
                    session: Some(session.0),
                    offer: Some(about.offer.unwrap_or(0) + offer),
                    until: (!wait.is_zero()).then(|| unix_seconds(*wait)),
                    preempted: preempted.iter().map(|session| session.0).collect(),
                    ..about
                };
                self.shared.decided(decision, trace);
            }
        }
    }

    /// Shows that a session's request for another place or another rendition is refused.
    pub(super) fn show_refused_seek(&self, request: RequestId, refusal: &Refusal) {
        let Some(session) = self.session_of(request) else { return };
        let subject = "seek".to_owned();
        let decision = refused(ViewerDecision { subject, ..about(session) }, refusal);
        self.shared.decided(decision, session.trace.map(|trace| trace.context()));
    }

    /// Shows why a session that plays has ended, and tells it to the webhook.
    pub(super) fn show_cut_short(&self, id: SessionId, why: CutShort) {
        let Some(open) = self.sessions.get(&id) else { return };
        if why != CutShort::DiskLost {
            let ViewerDecision { title, priority, .. } = about(&open.session);
            let subject = open.session.permit.subject();
            self.shared.webhook.tell("session-preempted", || {
                json!({
                    "session": id.0, "title": title, "subject": subject, "priority": priority,
                    "cause": why.word(),
                })
            });
        }
        self.show_end(id, why.word());
    }

    /// Shows that the server has ended a session, and why.
    pub(super) fn show_end(&self, id: SessionId, why: &str) {
        let Some(open) = self.sessions.get(&id) else { return };
        let decision = ViewerDecision {
            subject: "end".to_owned(),
            verdict: "ended".to_owned(),
            reason: Some(why.to_owned()),
            ..about(&open.session)
        };
        self.shared.decided(decision, open.session.trace.map(|trace| trace.context()));
    }
}

/// The word for what is asked for: the session of a viewer, or a fill.
fn subject(fill: Option<FillFor>) -> String {
    if fill.is_some() { "fill".to_owned() } else { "session".to_owned() }
}

impl Shared {
    /// Counts and shows that a request for admission is refused because the server is stopping. The
    /// engine is not asked then. A request for a title that does not exist is none.
    pub(crate) fn refuse_at_stop(
        &self,
        title: &str,
        client: Option<ClientAddress>,
        priority: Priority,
        fill: Option<FillFor>,
    ) {
        if !self.content.has(title) {
            return;
        }
        self.refused_at_stop.by_priority[priority as usize].fetch_add(1, Ordering::Relaxed);
        match fill {
            Some(FillFor::Cache) => self.refused_at_stop.fills.fetch_add(1, Ordering::Relaxed),
            Some(FillFor::Node) => self.refused_at_stop.parts.fetch_add(1, Ordering::Relaxed),
            None => 0,
        };
        let client = client.map_or_else(String::new, |client| client.to_string());
        let refusal = Refusal {
            cause: RefusalCause::Server,
            resource: None,
            retry: RetryAfter::Unknown,
            waiting_helps: false,
            detail: "the server is stopping".to_owned(),
        };
        let about = of_request(title, client, priority, 0);
        let about = ViewerDecision { subject: subject(fill), ..about };
        self.decided(refused(about, &refusal), None);
    }
}

/// The word for an acceptance after this wait, of the offer with this number among those asked for.
pub(super) fn verdict(wait: Duration, offer: usize) -> &'static str {
    match (wait.is_zero(), offer) {
        (false, _) => "later",
        (true, 1..) => "smaller",
        (true, 0) => "admitted",
    }
}

/// What is known of the viewer of a session.
fn about(session: &PlayerSession) -> ViewerDecision {
    ViewerDecision {
        at: unix_seconds(Duration::ZERO),
        session: Some(session.id.0),
        title: session.name.clone(),
        priority: session.permit.priority.word().to_owned(),
        client: session.client.to_string(),
        ..ViewerDecision::default()
    }
}

/// What is known of the viewer of a request, whose best offer is `best`.
pub(super) fn of_request(
    title: &str,
    client: String,
    priority: Priority,
    best: usize,
) -> ViewerDecision {
    ViewerDecision {
        at: unix_seconds(Duration::ZERO),
        title: title.to_owned(),
        priority: priority.word().to_owned(),
        client,
        offer: Some(best),
        ..ViewerDecision::default()
    }
}

fn refused(about: ViewerDecision, refusal: &Refusal) -> ViewerDecision {
    ViewerDecision {
        verdict: "refused".to_owned(),
        offer: None,
        resource: refusal.resource.map(|resource| resource.word().to_owned()),
        reason: Some(refusal.cause.word().to_owned()),
        detail: Some(refusal.detail.clone()),
        until: refusal.retry.after().map(unix_seconds),
        ..about
    }
}

/// Unix seconds of the time that comes so much later than now.
fn unix_seconds(later: Duration) -> f64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    since.saturating_add(later).as_secs_f64()
}

/// Why a session ends whose viewer was allowed to play until now.
pub(super) const EXPIRED: &str = "expired";
