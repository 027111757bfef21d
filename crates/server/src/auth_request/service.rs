//! One question to the operator's service over HTTP, and what its answer says.
//!
//! | answer | meaning |
//! |---|---|
//! | 2xx without a body, or with a JSON object of limits | the viewer may begin, within them |
//! | 401, 403 | the viewer may not begin; the body is the reason |
//! | any other status or body, or none in time | no answer |
//!
//! The limits are those of access tokens; `exp` is the end of the session. A field with another
//! name, and `null`, make it no answer: an operator who has misspelt a limit wants it, and not
//! none.

use super::NoAnswer;
use super::answer::AuthVerdict;
use crate::access::Allowance;
use crate::config::AuthRequestTarget;
use crate::membership::unix_now;
use crate::outgoing;
use crate::signature::{SIGNATURE, SigningKey};
use serde_json::{Map, Value};
use std::time::{Duration, Instant};
use units::Reason;
use ureq::http::{HeaderMap, StatusCode, header};
use ureq::{Agent, Body};

/// A service that can be asked.
pub(super) struct AuthService {
    url: String,
    timeout: Duration,
    agent: Agent,
    key: Option<SigningKey>,
}

/// An answer that can be used.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ServiceAnswer {
    pub(super) verdict: AuthVerdict,
    /// How long it may be kept.
    pub(super) keep: Duration,
}

impl AuthService {
    /// `key`: what questions are signed with.
    pub(super) fn new(target: &AuthRequestTarget, key: Option<SigningKey>) -> Result<Self, Reason> {
        let AuthRequestTarget { url, timeout, .. } = target;
        let bad = |why: &str| {
            let hint = "for example --auth-request https://site.example/may-play";
            // A query may have a secret, and reasons are logged.
            let shown = url.split('?').next().unwrap_or_default();
            Reason::new(format!("--auth-request {shown} {why}"), hint)
        };
        let agent = outgoing::agent(url, *timeout).map_err(bad)?;
        Ok(Self { url: url.clone(), timeout: *timeout, agent, key })
    }

    /// Asks. Waits for the time limit at most.
    pub(super) fn ask(&self, body: &str) -> Result<ServiceAnswer, (NoAnswer, String)> {
        let begun = Instant::now();
        match self.post(body, self.timeout) {
            // A service that was restarted has closed the connection that was kept to it.
            Err((NoAnswer::Connection, _)) => {
                self.post(body, self.timeout.saturating_sub(begun.elapsed()))
            }
            other => other,
        }
    }

    fn post(&self, body: &str, limit: Duration) -> Result<ServiceAnswer, (NoAnswer, String)> {
        if limit.is_zero() {
            return Err((NoAnswer::Timeout, "no answer in time".to_owned()));
        }
        let mut request = self.agent.post(&self.url).header(header::CONTENT_TYPE, JSON);
        if let Some(key) = &self.key {
            request = request.header(SIGNATURE, key.sign(body.as_bytes()));
        }
        let request = request.config().timeout_global(Some(limit)).build();
        let mut answer = request.send(body).map_err(|error| no_answer(&error))?;
        let (status, keep) = (answer.status(), keep(answer.headers()));
        let verdict = verdict(status, answer.body_mut())?;
        // After the end of what it allows it is no answer to anybody: whoever comes then is asked
        // for. Whole seconds are cut off, and the time until it is kept passes, too.
        let keep = match &verdict {
            AuthVerdict::Allowed(Allowance { until: Some(until), .. }) => {
                keep.min(Duration::from_secs(until.saturating_sub(unix_now() + BEFORE_END)))
            }
            _ => keep,
        };
        Ok(ServiceAnswer { verdict, keep })
    }
}

fn verdict(status: StatusCode, body: &mut Body) -> Result<AuthVerdict, (NoAnswer, String)> {
    let text = body.with_config().limit(LONGEST_ANSWER).read_to_string();
    if matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
        // The status is the answer, whatever has become of the reason.
        let reason = text.unwrap_or_default();
        let shown = |c: char| if c.is_control() { ' ' } else { c };
        let reason = reason.trim().chars().take(LONGEST_REASON).map(shown).collect();
        return Ok(AuthVerdict::Refused { status: status.as_u16(), reason });
    }
    if !status.is_success() {
        return Err((NoAnswer::Form, format!("answered with {status}")));
    }
    let text = text.map_err(|error| match error {
        ureq::Error::BodyExceedsLimit(_) => {
            (NoAnswer::Form, "its body is longer than 16 KiB".to_owned())
        }
        other => no_answer(&other),
    })?;
    allowance(&text).map(AuthVerdict::Allowed).map_err(|why| (NoAnswer::Form, why))
}

/// The limits in the body of an answer.
fn allowance(text: &str) -> Result<Allowance, String> {
    if text.trim().is_empty() {
        return Ok(Allowance::default());
    }
    let fields: Map<String, Value> = serde_json::from_str(text)
        .map_err(|_| "its body is neither empty nor a JSON object of limits".to_owned())?;
    if let Some(name) = fields.keys().find(|name| !Allowance::FIELDS.contains(&name.as_str())) {
        let known = Allowance::FIELDS.join(", ");
        let name: String = name.chars().take(SHOWN).collect();
        return Err(format!("its field `{}` is unknown; limits are {known}", name.escape_debug()));
    }
    if let Some((name, _)) = fields.iter().find(|(_, value)| value.is_null()) {
        return Err(format!("its field `{name}` is null"));
    }
    serde_json::from_value(Value::Object(fields)).map_err(|error| format!("its limits: {error}"))
}

/// How long an answer may be kept (RFC 9111, 5.2.2).
fn keep(fields: &HeaderMap) -> Duration {
    let values = fields.get_all(header::CACHE_CONTROL).iter();
    let values: Vec<&str> = values.filter_map(|value| value.to_str().ok()).collect();
    let directives = || values.iter().flat_map(|value| value.split(',')).map(str::trim);
    let has = |name: &str| directives().any(|it| it.eq_ignore_ascii_case(name));
    if has("no-store") || has("no-cache") {
        return Duration::ZERO;
    }
    let age = directives().find_map(|directive| {
        let (name, age) = directive.split_once('=')?;
        name.trim().eq_ignore_ascii_case("max-age").then(|| age.trim().parse().ok()).flatten()
    });
    Duration::from_secs(age.unwrap_or(0)).min(LONGEST_KEPT)
}

fn no_answer(error: &ureq::Error) -> (NoAnswer, String) {
    let cause = match error {
        ureq::Error::Timeout(_) => NoAnswer::Timeout,
        ureq::Error::Protocol(_) | ureq::Error::Http(_) => NoAnswer::Form,
        _ => NoAnswer::Connection,
    };
    (cause, format!("no answer: {error}"))
}

const JSON: &str = "application/json";
/// Longer than any object of limits, and than a page that says why not.
const LONGEST_ANSWER: u64 = 16 * 1024;
/// Characters of a reason that are logged.
const LONGEST_REASON: usize = 200;
/// Characters of a name that an error shows.
const SHOWN: usize = 40;
/// Seconds before the end of a session from which on its answer is not kept.
const BEFORE_END: u64 = 2;
/// The longest time for which an answer is kept, whatever it says: rights change.
const LONGEST_KEPT: Duration = Duration::from_secs(3600);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::ViewerLimits;
    use engine::Priority;

    #[test]
    fn a_body_has_limits_or_is_no_answer() {
        let none = Allowance::default();
        let of = |limits| Allowance { limits, ..none };
        let height = of(ViewerLimits { max_height: Some(720), ..none.limits });
        let low = of(ViewerLimits { priority: Some(Priority::Low), ..none.limits });
        let end = Allowance { until: Some(1_800_000_000), ..none };
        for (body, limits) in [
            ("", Ok(none)),
            (" \r\n", Ok(none)),
            ("{}", Ok(none)),
            (r#"{"max_height":720}"#, Ok(height)),
            (r#"{"priority":"low"}"#, Ok(low)),
            (r#"{"exp":1800000000}"#, Ok(end)),
            (r#"{"exp":1800000000.9}"#, Ok(end)),
            (
                r#"{"max_height":720,"exp":1800000000}"#,
                Ok(Allowance { until: end.until, ..height }),
            ),
            ("OK", Err("its body is neither empty nor a JSON object of limits")),
            ("[]", Err("its body is neither empty nor a JSON object of limits")),
            ("null", Err("its body is neither empty nor a JSON object of limits")),
            (r#"{"max_height":"#, Err("its body is neither empty nor a JSON object of limits")),
            (
                r#"{"allow":false}"#,
                Err("its field `allow` is unknown; limits are max_height, priority, exp"),
            ),
            (r#"{"max_height":null}"#, Err("its field `max_height` is null")),
            (r#"{"exp":null}"#, Err("its field `exp` is null")),
            (r#"{"exp":"2027-01-15"}"#, Err("its limits: ")),
            (r#"{"exp":-1}"#, Err("its limits: ")),
            (r#"{"max_height":-1}"#, Err("its limits: ")),
            (r#"{"max_height":"720"}"#, Err("its limits: ")),
            (r#"{"priority":"first"}"#, Err("its limits: ")),
        ] {
            match (super::allowance(body), limits) {
                (Ok(found), Ok(wanted)) => assert_eq!(found, wanted, "{body}"),
                (Err(found), Err(wanted)) => assert!(found.starts_with(wanted), "{body}: {found}"),
                (found, _) => panic!("{body}: {found:?}"),
            }
        }
    }

    #[test]
    fn an_answer_is_kept_as_long_as_it_says_and_an_hour_at_most() {
        for (values, seconds) in [
            (&[][..], 0),
            (&["max-age=60"], 60),
            (&["private, Max-Age = 60"], 60),
            (&["private", "max-age=60"], 60),
            (&["max-age=60, no-store"], 0),
            (&["no-cache", "max-age=60"], 0),
            (&["max-age=-1"], 0),
            (&["max-age=soon"], 0),
            (&["s-maxage=60"], 0),
            (&["max-age=86400"], 3600),
            (&["max-age=99999999999999999999"], 0),
        ] {
            let mut fields = HeaderMap::new();
            for value in values {
                fields.append(header::CACHE_CONTROL, value.parse().unwrap());
            }
            assert_eq!(keep(&fields), Duration::from_secs(seconds), "{values:?}");
        }
    }
}
