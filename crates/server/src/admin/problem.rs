//! Errors of the admin API: problem details (RFC 9457), with the word and the hint that the same
//! failure has in a command.

use crate::http::{PROBLEM_TYPE, Response, refusal_without_wait, whole_seconds};
use crate::wire::{self, words};
use engine::{Refusal, RetryAfter};
use schemars::JsonSchema;
use serde::Serialize;
use std::time::Duration;
use store::StoreError;

/// Why an operation failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    status: u16,
    failure: wire::Failure,
    retry_after: Option<Duration>,
    refusal: Option<Box<RefusalDetails>>,
}

/// What the answer to a refused viewer has, too.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(super) struct RefusalDetails {
    /// Why it does not fit.
    #[schemars(extend("enum" = words::causes()))]
    cause: String,
    /// What is short: `disk`, `memory`, `network`, or null.
    #[schemars(extend("enum" = words::resources_or_none()))]
    resource: Option<String>,
    /// What is known of the time at which the same request is accepted: `exact`, `estimate`,
    /// `unknown` or `never`.
    #[schemars(extend("enum" = ["exact", "estimate", "unknown", "never"]))]
    retry: String,
    /// Milliseconds until that time, where one is known.
    retry_after_ms: Option<u64>,
}

/// The body of an error (RFC 9457). The type is `about:blank`: `error` tells errors apart.
#[derive(Serialize, JsonSchema)]
pub(super) struct ProblemDetails {
    /// The status in words.
    title: &'static str,
    /// The status of the response.
    status: u16,
    /// One sentence: what failed.
    detail: String,
    /// One stable word.
    error: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
    /// The refusal of a session by admission control.
    #[serde(flatten)]
    refusal: Option<RefusalDetails>,
}

impl Problem {
    pub(crate) fn new(status: u16, code: &str, message: impl Into<String>, hint: &str) -> Self {
        Self::with(status, wire::Failure::new(code, message, hint))
    }

    fn with(status: u16, failure: wire::Failure) -> Self {
        let retry_after = (status == 503).then_some(RETRY_AFTER);
        Self { status, failure, retry_after, refusal: None }
    }

    /// A session that admission refuses, and that cannot wait for its start.
    pub(super) fn refused(refusal: &Refusal) -> Self {
        let message = refusal_without_wait(refusal);
        let retry_after = refusal.retry.after();
        let hint = match refusal.retry {
            RetryAfter::Never => "/api/v1/headroom?title=TITLE has how many of a title fit",
            RetryAfter::Unknown => "end a session, or try again later",
            RetryAfter::Exact(_) | RetryAfter::Estimated(_) => "ask again after that time",
        };
        let details = RefusalDetails {
            cause: refusal.cause.word().to_owned(),
            resource: refusal.resource.map(|resource| resource.word().to_owned()),
            retry: refusal.retry.word().to_owned(),
            retry_after_ms: retry_after
                .map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX)),
        };
        let problem = Self::new(503, "refused", message, hint);
        Self { retry_after, refusal: Some(Box::new(details)), ..problem }
    }

    /// Something that is full, and will not be later.
    pub(crate) fn busy(message: &str) -> Self {
        Self::new(503, "busy", message, "try again later")
    }

    /// A body that comes too slowly.
    pub(crate) fn too_slow() -> Self {
        let message = "too few bytes of the body came in the send timeout";
        Self::new(408, "request-timeout", message, "send it faster")
    }

    /// The problem that the response to a player states.
    pub(crate) fn of_player(response: &Response) -> Self {
        let body: serde_json::Value = serde_json::from_slice(&response.body).unwrap_or_default();
        let word = |name: &str| body[name].as_str().unwrap_or_default().to_owned();
        let hint = match word("hint") {
            hint if hint.is_empty() && response.head.status() < 500 => {
                "/titles lists what can be played".to_owned()
            }
            hint if hint.is_empty() => "try again later".to_owned(),
            hint => hint,
        };
        let (status, code) = match (response.head.status(), word("error")) {
            // The title is there: what is wrong is what is asked of it.
            (404, code) if code == "not-media" || code == "not-playable" => {
                (422, "not-playable".to_owned())
            }
            answered => answered,
        };
        let retry = response.head.value("Retry-After").and_then(|time| time.parse().ok());
        let problem = Self::new(status, &code, word("message"), &hint);
        Self { retry_after: retry.map(Duration::from_secs).or(problem.retry_after), ..problem }
    }

    /// The status of the response.
    pub(super) fn status(&self) -> u16 {
        self.status
    }

    pub(crate) fn failure(&self) -> &wire::Failure {
        &self.failure
    }

    pub(crate) fn into_response(self) -> Response {
        let Self { status, failure, retry_after, refusal } = self;
        let wire::Failure { code: error, message: detail, hint } = failure;
        let title = http_service::status_words(status);
        let refusal = refusal.map(|refusal| *refusal);
        let details = ProblemDetails { title, status, detail, error, hint, refusal };
        let mut response = Response::api(status, PROBLEM_TYPE, &details);
        if let Some(time) = retry_after {
            response.head.add("Retry-After", whole_seconds(time));
        }
        response
    }
}

impl From<wire::Failure> for Problem {
    fn from(mut failure: wire::Failure) -> Self {
        // The hint for people at a terminal.
        if failure.code == "no-title"
            && failure.hint.as_deref().is_some_and(|it| it.contains("tenuto"))
        {
            failure.hint = Some("/api/v1/disks/{disk}/titles lists them".to_owned());
        }
        if failure.code == "not-written" {
            failure.hint = Some("ingest a title into the disk first, then calibrate it".to_owned());
        }
        let status = match failure.code.as_str() {
            "no-title" | "no-session" | "no-recording" => 404,
            "exists" | "being-recorded" | "being-written" | "draining" | "disk-lost" => 409,
            "bad-name" => 400,
            "refused" | "mismatch" | "not-written" | "not-reloaded" | "not-restarted" => 422,
            "full" | "too-many-pieces" | "catalogue-full" | "too-much" => 507,
            "cancelled" | "stopped" => 503,
            _ => 500,
        };
        Self::with(status, failure)
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        Self::from(wire::Failure::from(&error))
    }
}

const RETRY_AFTER: Duration = Duration::from_secs(2);
