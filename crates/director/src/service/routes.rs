//! The resources of a director.

use super::answer::ViewerAnswer;
use super::request::ViewerRequest;
use super::{ServiceState, metrics, status, steering};
use serde_json::json;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

/// Whether the answer is a page of any size.
pub(super) fn is_page(request: &ViewerRequest<'_>) -> bool {
    matches!(request.path(), "/status" | "/titles" | "/metrics")
}

/// The answer to a request.
pub(super) fn answer(
    state: &Arc<ServiceState>,
    request: &ViewerRequest<'_>,
    client: IpAddr,
) -> ViewerAnswer {
    let is_title = request.path().starts_with("/t/");
    match request.method {
        "GET" => {}
        "HEAD" if !is_title => {}
        "OPTIONS" => return preflight(is_title),
        _ => {
            let message = "this resource has no such method";
            let answer = ViewerAnswer::problem(405, "method-not-allowed", message, json!({}));
            return answer.field("Allow", methods(is_title));
        }
    }
    if let Some(title) = request.title() {
        let started = Instant::now();
        let answer = state.admission.admit(&title, request, client, &state.counters);
        state.counters.took(started.elapsed());
        return answer;
    }
    if let Some(title) = steering::title_of(request) {
        return steering::manifest(state, request, &title);
    }
    match request.path() {
        "/healthz" => status::health(state),
        "/status" => status::status(state),
        "/titles" => status::titles(state),
        "/metrics" => metrics::metrics(state),
        _ => ViewerAnswer::problem(404, "not-found", "a director has no such resource", json!({})),
    }
}

/// The answer to a browser that asks before a request with a field such as `Authorization`.
fn preflight(is_title: bool) -> ViewerAnswer {
    ViewerAnswer::empty(204)
        .field("Allow", methods(is_title))
        .field("Access-Control-Allow-Methods", methods(is_title))
        .field("Access-Control-Allow-Headers", FIELDS)
        .field("Access-Control-Max-Age", "86400")
}

/// A question reserves, which HEAD must not.
fn methods(is_title: bool) -> &'static str {
    if is_title { "GET, OPTIONS" } else { "GET, HEAD, OPTIONS" }
}

/// The fields that players' pages send. Old browsers take `*` for a name, and for no browser it
/// stands for `Authorization`.
const FIELDS: &str = "Authorization, Range, Cache-Control, Content-Type, CMCD-Object, \
                      CMCD-Request, CMCD-Session, CMCD-Status, *";
