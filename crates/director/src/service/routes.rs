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
    if let Some(name) = request.path().strip_prefix("/console/") {
        return console_file(name);
    }
    match request.path() {
        "/" | "/console" => ViewerAnswer::empty(302).field("Location", "/console/"),
        "/healthz" => status::health(state),
        "/status" => status::status(state),
        "/titles" => status::titles(state),
        "/metrics" => metrics::metrics(state),
        _ => ViewerAnswer::problem(404, "not-found", "a director has no such resource", json!({})),
    }
}

/// A file of the console.
fn console_file(name: &str) -> ViewerAnswer {
    let Some(file) = web_console::file(name) else {
        let message = "the console has no such file";
        return ViewerAnswer::problem(404, "not-found", message, json!({}));
    };
    let answer = ViewerAnswer::with_body(200, file.content_type, file.bytes);
    let answer = answer.kept(file.cache_control);
    web_console::SECURITY.iter().fold(answer, |answer, (name, value)| answer.field(name, value))
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
