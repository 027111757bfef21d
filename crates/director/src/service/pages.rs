//! Who may see what a director shows of itself, and be told of a title: decided by whoever runs it,
//! by token and address.
//!
//! ```text
//!   GET /status, /metrics ─▶ PageKind::Numbers ─┐                     ┌─▶ the page
//!   GET /titles ───────────▶ PageKind::Titles ──┴─▶ PageCheck ────────┴─▶ 401, 403
//!   /t/TITLE ──────────────▶ PageKind::Title ───┤                     └─▶ the question to nodes
//!   /steer/TITLE without a ticket ──────────────┤           /healthz, /console/: for everybody
//!   /origin/TITLE/.. ──────▶ PageKind::Origin ──┘
//! ```

use super::ServiceState;
use super::counters::{CacheOutcome, Cause};
use http_service::{HttpRequest, HttpResponse};
use serde_json::{Value, json};
use std::fmt;
use std::net::IpAddr;

/// What a page shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageKind<'a> {
    /// The title of this name: whether it is there, and where.
    Title(&'a str),
    /// The title of this name for a cache, which may fetch any of it.
    Origin(&'a str),
    /// The titles of the cluster.
    Titles,
    /// Nodes and numbers.
    Numbers,
}

/// Why a page is not shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageRefusal {
    /// The status of the answer: 401 or 403.
    pub status: u16,
    /// A stable word for programs.
    pub error: &'static str,
    /// A sentence for people.
    pub message: String,
    /// The value of `WWW-Authenticate`.
    pub challenge: String,
}

type Check = dyn Fn(PageKind<'_>, Option<&str>, IpAddr) -> Result<(), PageRefusal> + Send + Sync;

/// The question whether a client at an address, with a token or without, may see a page.
pub struct PageCheck(Box<Check>);

impl PageCheck {
    /// A check, asked for each request of a page.
    pub fn new(
        check: impl Fn(PageKind<'_>, Option<&str>, IpAddr) -> Result<(), PageRefusal>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        Self(Box::new(check))
    }
}

impl fmt::Debug for PageCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PageCheck")
    }
}

/// The answer to a client that may not see a page; `None` to one that may.
pub(super) fn refusal(state: &ServiceState, request: &HttpRequest<'_>) -> Option<HttpResponse> {
    let kind = if request.path() == "/titles" { PageKind::Titles } else { PageKind::Numbers };
    refused(state, request, kind).map(|refused| over_http(&refused, json!({ "hint": HINT })))
}

/// The answer to a client that may not be told of a title; `None` to one that may. The nodes check
/// the token, too; without this check a stranger would learn which titles there are.
pub(super) fn title_refusal(
    state: &ServiceState,
    request: &HttpRequest<'_>,
    title: PageKind<'_>,
) -> Option<HttpResponse> {
    let refused = refused(state, request, title)?;
    match title {
        PageKind::Origin(_) => state.counters.answered_cache(CacheOutcome::NotAllowed),
        _ => state.counters.refused(Cause::NotAllowed),
    }
    Some(over_http(&refused, json!({})))
}

/// Why a client may not see this, by the token of its request.
fn refused(
    state: &ServiceState,
    request: &HttpRequest<'_>,
    kind: PageKind<'_>,
) -> Option<PageRefusal> {
    let bearer = request.text_field("authorization").and_then(bearer);
    let token = bearer.map(str::to_owned).or_else(|| request.query("token"));
    refusal_of(state, kind, token.as_deref(), request.client)
}

/// Why a client with this token may not see this; `None`: it may.
pub(super) fn refusal_of(
    state: &ServiceState,
    kind: PageKind<'_>,
    token: Option<&str>,
    client: IpAddr,
) -> Option<PageRefusal> {
    let PageCheck(check) = state.check.as_ref()?;
    check(kind, token, client).err()
}

/// The token of an `Authorization` field.
pub(super) fn bearer(field: &str) -> Option<&str> {
    let (scheme, token) = field.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

fn over_http(refused: &PageRefusal, more: Value) -> HttpResponse {
    let answer = HttpResponse::problem(refused.status, refused.error, &refused.message, more);
    answer.field("WWW-Authenticate", &refused.challenge)
}

const HINT: &str = "open the console as /console/?token=TOKEN, with a token of `tenuto token KEYS \
                    --operator`; programs send it as Authorization: Bearer";
