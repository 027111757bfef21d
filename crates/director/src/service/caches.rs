//! Caches: a request for an address of theirs is answered with the same address at a node that has
//! the title. Nothing is reserved: the node admits what it sends, response by response.
//!
//! ```text
//!   cache ──GET /origin/film/VERSION/0/17.m4s──▶ director
//!         ◀──307, Location: http://n1/origin/film/VERSION/0/17.m4s──
//!         ──GET──▶ n1
//! ```
//! Of the nodes each is named in proportion to what it has free. Addresses have no session, so that
//! each may be of another node; those with a version are of nodes with its content.

use super::admission::{known, problem};
use super::counters::Cause;
use super::{ServiceState, steering};
use cluster::{ContentTag, TitleName};
use http_service::{CachePath, HttpRequest, HttpResponse};
use percent_encoding::percent_decode_str;
use std::time::Duration;

/// What a cache asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CacheRequest {
    pub(super) title: TitleName,
    /// The content that the address is of; `None`: the present one.
    content: Option<ContentTag>,
}

/// The title of a request below `/origin/`. `None` for other paths and for what cannot be the name
/// of a title.
pub(super) fn wanted(request: &HttpRequest<'_>) -> Option<CacheRequest> {
    let below = request.path().strip_prefix(PREFIX)?;
    let decoded = below.split('/').map(|name| percent_decode_str(name).decode_utf8());
    let path: Vec<String> =
        decoded.map(|name| Some(name.ok()?.into_owned())).collect::<Option<_>>()?;
    let reading = CachePath::readings(&path).next()?;
    let title = TitleName::new(reading.title_name()?).ok()?;
    Some(CacheRequest { title, content: reading.content().map(|it| ContentTag::of(&it)) })
}

/// The way to a node, or why there is none.
pub(super) fn answer(
    state: &ServiceState,
    request: &HttpRequest<'_>,
    wanted: &CacheRequest,
) -> HttpResponse {
    if !state.watched.is_listed() {
        return refused(Cause::NotReady, "this director does not know the cluster yet");
    }
    let (now, kept, salt) =
        (state.watched.now(), state.admission.kept(), state.admission.next_seed().to_le_bytes());
    let view = state.watched.view();
    let Some((number, _)) = known(&view, &wanted.title) else {
        return refused(
            Cause::NoTitle,
            "no node has this title; /titles lists those of the cluster",
        );
    };
    let present = view.title(number).contents().first().copied();
    let nodes = steering::nodes_with(&view, number, now, kept, &salt);
    drop(view);
    let content = wanted.content.or(present);
    // One that has another content says so.
    let node = nodes.iter().find(|node| node.has(content)).or(nodes.first());
    match node {
        Some(node) => {
            let location = format!("{}{}", node.address, request.target);
            HttpResponse::empty(307).field("Location", &location)
        }
        None => refused(
            Cause::NoCopy,
            "no node that answers has this title; ask again, or start a node that has it",
        ),
    }
}

fn refused(cause: Cause, message: &str) -> HttpResponse {
    let time = (cause != Cause::NoTitle).then_some(ASKED_AGAIN);
    let status = if cause == Cause::NoTitle { 404 } else { 503 };
    HttpResponse::json(status, &problem(cause, message, time)).retry_after(time)
}

/// The folder of all addresses for caches.
pub(super) const PREFIX: &str = "/origin/";
/// Time after which a node may be there.
const ASKED_AGAIN: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_caches_name_titles_and_contents() {
        let version = "1f-2-3-09ab12cd-7d0~0.1.0";
        for (target, title, content) in [
            ("/origin/film/master.m3u8", Some("film"), None),
            ("/origin/news/evening.mp4?x=/", Some("news/evening"), None),
            ("/origin/news%2Fevening/manifest.mpd", Some("news/evening"), None),
            (&format!("/origin/a/b/{version}/0/1.m4s"), Some("a/b"), Some("1f-2-3-09ab12cd")),
            ("/origin/film", None, None),
            ("/origin/%ff.mp4", None, None),
            ("/t/film.mp4", None, None),
        ] {
            let bytes = format!("GET {target} HTTP/1.1\r\n\r\n");
            let found = HttpRequest::for_test(bytes.as_bytes(), wanted);
            assert_eq!(found.as_ref().map(|it| it.title.as_str()), title, "{target}");
            let tag = content.map(ContentTag::of);
            assert_eq!(found.and_then(|it| it.content), tag, "{target}");
        }
    }
}
