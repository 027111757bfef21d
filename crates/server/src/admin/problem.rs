//! Errors of the admin API: problem details (RFC 9457), with the word and the hint that the same
//! failure has in a command.

use crate::http::Response;
use crate::wire;
use schemars::JsonSchema;
use serde::Serialize;
use std::time::Duration;
use store::StoreError;

/// Why an operation failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    status: u16,
    failure: wire::Failure,
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
}

impl Problem {
    pub(crate) fn new(status: u16, code: &str, message: impl Into<String>, hint: &str) -> Self {
        Self { status, failure: wire::Failure::new(code, message, hint) }
    }

    /// Something that is full, and will not be later.
    pub(crate) fn busy(message: &str) -> Self {
        Self::new(503, "busy", message, "try again later")
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
        Self::new(response.head.status(), &word("error"), word("message"), &hint)
    }

    pub(crate) fn failure(&self) -> &wire::Failure {
        &self.failure
    }

    pub(crate) fn into_response(self) -> Response {
        let Self { status, failure: wire::Failure { code, message, hint } } = self;
        let title = http_service::status_words(status);
        let details = ProblemDetails { title, status, detail: message, error: code, hint };
        let mut response = Response::api(status, CONTENT_TYPE, &details);
        if status == 503 {
            response.head.add("Retry-After", RETRY_AFTER.as_secs());
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
        let status = match failure.code.as_str() {
            "no-title" | "no-session" | "no-recording" => 404,
            "exists" | "being-recorded" | "being-written" | "draining" => 409,
            "bad-name" => 400,
            "refused" | "mismatch" | "not-reloaded" | "not-restarted" => 422,
            "full" | "too-many-pieces" | "catalogue-full" | "too-much" => 507,
            "cancelled" | "stopped" => 503,
            _ => 500,
        };
        Self { status, failure }
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        Self::from(wire::Failure::from(&error))
    }
}

/// The content type of errors.
pub(super) const CONTENT_TYPE: &str = "application/problem+json";
const RETRY_AFTER: Duration = Duration::from_secs(2);
