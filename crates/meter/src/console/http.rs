//! What the console reads of a request, and how it refuses.

use http_service::{HttpRequest, HttpResponse};
use serde_json::json;

/// The header field of requests that change something. The browser sends it to another origin only
/// after that has allowed it, which the console does not.
pub(super) const OWN: &str = "Tenuto-Console";

/// The token of `Authorization: Bearer`.
pub(super) fn bearer<'a>(request: &HttpRequest<'a>) -> Option<&'a str> {
    request.text_field("authorization")?.strip_prefix("Bearer ")
}

/// An error: a stable word, a sentence, and what to do about it.
pub(super) fn problem(status: u16, error: &str, message: &str, hint: Option<&str>) -> HttpResponse {
    HttpResponse::problem(status, error, message, json!({ "hint": hint.unwrap_or_default() }))
}
