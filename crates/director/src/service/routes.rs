//! The resources of a director.

use super::admission::Viewer;
use super::pages::PageKind;
use super::{ServiceState, caches, metrics, pages, request, status, steering};
use cluster::AdmissionClass;
use http_service::{HttpRequest, HttpResponse, console_file};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

/// The answer to a request.
pub(super) fn answer(state: &Arc<ServiceState>, request: &HttpRequest<'_>) -> HttpResponse {
    if !is_page(request) {
        return resource(state, request);
    }
    if matches!(request.method, "GET" | "HEAD")
        && let Some(refused) = pages::refusal(state, request)
    {
        return refused;
    }
    match state.page() {
        Some(permit) => resource(state, request).holding(permit),
        None => HttpResponse::problem(503, "busy", "too many pages are being sent", json!({}))
            .retry_after(Some(PAUSE)),
    }
}

/// Whether the answer is a page of any size.
fn is_page(request: &HttpRequest<'_>) -> bool {
    matches!(request.path(), "/status" | "/titles" | "/metrics")
}

fn resource(state: &Arc<ServiceState>, request: &HttpRequest<'_>) -> HttpResponse {
    let is_title = request.path().starts_with("/t/");
    match request.method {
        "GET" => {}
        "HEAD" if !is_title => {}
        "OPTIONS" => return preflight(is_title),
        _ => {
            let message = "this resource has no such method";
            let answer = HttpResponse::problem(405, "method-not-allowed", message, json!({}));
            return answer.field("Allow", methods(is_title));
        }
    }
    if let Some(title) = request::title(request) {
        if let Some(refused) = pages::title_refusal(state, request, PageKind::Title(title.as_str()))
        {
            return refused;
        }
        let viewer = Viewer {
            target: request.target,
            authorization: request.field("authorization"),
            traceparent: request.field("traceparent"),
            client: request.client,
            base: request::base(request),
            class: AdmissionClass::New,
        };
        return state.admission.admit(&title, &viewer, &state.counters).over_http();
    }
    if let Some(title) = steering::title_of(request) {
        // Players have no token there, and the ticket of the session from its manifest.
        let ticket = request.query("ticket");
        let is_viewer = ticket.is_some_and(|it| state.admission.has_admitted(&it, &title));
        if !is_viewer
            && let Some(refused) =
                pages::title_refusal(state, request, PageKind::Title(title.as_str()))
        {
            return refused;
        }
        return steering::manifest(state, request, &title);
    }
    if let Some(wanted) = caches::wanted(request) {
        let title = PageKind::Origin(wanted.title.as_str());
        let refused = pages::title_refusal(state, request, title);
        return refused.unwrap_or_else(|| caches::answer(state, request, &wanted));
    }
    if let Some(name) = request.path().strip_prefix("/console/") {
        return console_file(name).unwrap_or_else(|| {
            let message = "the console has no such file";
            HttpResponse::problem(404, "not-found", message, json!({}))
        });
    }
    match request.path() {
        "/" | "/console" => HttpResponse::empty(302).field("Location", "/console/"),
        "/healthz" => status::health(state),
        "/status" => status::status(state),
        "/titles" => status::titles(state),
        "/metrics" => metrics::metrics(state),
        _ => HttpResponse::problem(404, "not-found", "a director has no such resource", json!({})),
    }
}

/// The answer to a browser that asks before a request with a field such as `Authorization`.
fn preflight(is_title: bool) -> HttpResponse {
    HttpResponse::empty(204)
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
/// Time until a page may be sent again.
const PAUSE: Duration = Duration::from_millis(50);
