//! Who may see what a director shows of itself: decided by whoever runs it, by token and address.
//!
//! ```text
//!   GET /status, /metrics ─▶ PageKind::Numbers ─┐                     ┌─▶ the page
//!   GET /titles ───────────▶ PageKind::Titles ──┴─▶ PageCheck ────────┴─▶ 401, 403
//!   /t/TITLE, /steer/TITLE: the nodes decide        /healthz, /console/: for everybody
//! ```

use super::ServiceState;
use http_service::{HttpRequest, HttpResponse};
use serde_json::json;
use std::fmt;
use std::net::IpAddr;

/// What a page shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageKind {
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

type Check = dyn Fn(PageKind, Option<&str>, IpAddr) -> Result<(), PageRefusal> + Send + Sync;

/// The question whether a client at an address, with a token or without, may see a page.
pub struct PageCheck(Box<Check>);

impl PageCheck {
    /// A check, asked for each request of a page.
    pub fn new(
        check: impl Fn(PageKind, Option<&str>, IpAddr) -> Result<(), PageRefusal>
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
    let PageCheck(check) = state.check.as_ref()?;
    let kind = if request.path() == "/titles" { PageKind::Titles } else { PageKind::Numbers };
    let bearer = request.text_field("authorization").and_then(|it| it.strip_prefix("Bearer "));
    let token = bearer.map(str::to_owned).or_else(|| request.query("token"));
    let refused = check(kind, token.as_deref(), request.client).err()?;
    let hint = json!({ "hint": HINT });
    let answer = HttpResponse::problem(refused.status, refused.error, &refused.message, hint);
    Some(answer.field("WWW-Authenticate", &refused.challenge))
}

const HINT: &str = "open the console as /console/?token=TOKEN, with a token of `tenuto token KEYS \
                    --operator`; programs send it as Authorization: Bearer";
