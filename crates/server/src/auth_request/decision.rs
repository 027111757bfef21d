//! What becomes of a viewer by the answer of the operator's service: counted, logged, and told.

use super::answer::{AuthAnswer, AuthVerdict};
use crate::access::Allowance;
use crate::config::Unanswered;
use crate::http::Response;
use crate::membership::unix_now;
use crate::shared::Shared;
use serde_json::json;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// How far a viewer of this title may begin, or the response to one who may not. Counts and logs
/// the decision.
pub(crate) fn allowance(
    shared: &Shared,
    answer: AuthAnswer,
    title: &str,
    client: IpAddr,
) -> Result<Allowance, Response> {
    let counters = &shared.auth.counters;
    let count = |counter: &AtomicU64| counter.fetch_add(1, Ordering::Relaxed);
    let id = answer.id.to_string();
    let event = |event: &str| {
        let client = client.to_canonical().to_string();
        json!({ "event": event, "id": id, "title": title, "client": client })
    };
    let verdict = match answer.verdict {
        AuthVerdict::Allowed(allowance) if allowance.is_over(unix_now()) => {
            AuthVerdict::Refused { status: 200, reason: "its `exp` has passed".to_owned() }
        }
        verdict => verdict,
    };
    match verdict {
        AuthVerdict::Allowed(allowance) => {
            count(&counters.allowed);
            Ok(allowance)
        }
        AuthVerdict::Refused { status, reason } => {
            count(&counters.refused);
            shared.log.line(|| {
                let mut line = event("auth-refused");
                line["status"] = status.into();
                line["reason"] = reason.into();
                line
            });
            Err(not_authorized())
        }
        AuthVerdict::Unanswered { why, then } => {
            count(&counters.unanswered);
            shared.log.line(|| {
                let mut line = event("auth-unanswered");
                line["admitted"] = (then == Unanswered::Allow).into();
                line["error"] = why.into();
                line
            });
            match then {
                Unanswered::Allow => Ok(Allowance::default()),
                Unanswered::Refuse => Err(unanswered()),
            }
        }
        AuthVerdict::Busy => {
            count(&counters.busy);
            Err(busy())
        }
    }
}

/// The response to a viewer whom the service refuses. Its reason is for the operator.
fn not_authorized() -> Response {
    let message = "the operator of this server does not let this viewer play this title now; ask \
                   where the address came from";
    Response::error(403, "not-authorized", message)
}

fn unanswered() -> Response {
    let message = "the service that decides who may play this title does not answer; try again in a \
                   few seconds";
    Response::unavailable("authorization-unanswered", message, RETRY)
}

fn busy() -> Response {
    let message = "too many viewers wait for the service that decides who may play; try again in a \
                   few seconds";
    Response::unavailable("busy", message, RETRY)
}

/// A service that was restarted answers again after some seconds.
const RETRY: Duration = Duration::from_secs(5);
