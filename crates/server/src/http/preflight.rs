//! The response to OPTIONS: the methods of a resource, and what pages of other origins may send.
//!
//! A browser asks before a request with a field such as `Authorization` or `CMCD-Session` (a CORS
//! preflight). Nothing here depends on cookies, so every origin may send all of them, and the
//! response is the same for all: caches need no `Vary`.

use super::response::{Head, METHODS, Response};
use super::routes::Route;

/// The response to OPTIONS for a path, which is empty for `*`.
pub(super) fn response(path: &[String]) -> Response {
    let methods = match Route::of(path) {
        _ if path.is_empty() => METHODS,
        Some(route) => allowed(&route),
        None => READ,
    };
    let head = Head::new(204)
        .field("Allow", methods)
        .field("Access-Control-Allow-Methods", methods)
        .field("Access-Control-Allow-Headers", FIELDS)
        .field("Access-Control-Max-Age", ONE_DAY);
    Response::only_head(head, 0)
}

/// The methods of a resource. Sessions are only ended, all else is only read.
pub(super) fn allowed(route: &Route) -> &'static str {
    if matches!(route, Route::Session { .. }) { END } else { READ }
}

const READ: &str = "GET, HEAD, OPTIONS";
const END: &str = "DELETE, POST, OPTIONS";
/// The fields that players' pages send. Old browsers take `*` for a name, and for no browser it
/// stands for `Authorization`.
const FIELDS: &str = "Authorization, Range, If-Match, If-None-Match, If-Modified-Since, \
                      If-Unmodified-Since, If-Range, Cache-Control, Content-Type, CMCD-Object, \
                      CMCD-Request, CMCD-Session, CMCD-Status, *";
/// In seconds; no browser keeps it for longer.
const ONE_DAY: u32 = 86_400;
