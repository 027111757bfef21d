//! Caches: a request for an address of theirs is answered with the same address at a node that has
//! the title. Nothing is reserved: the node admits what it sends, response by response.
//!
//! ```text
//!   cache ──GET /origin/film/VERSION/0/17.m4s──▶ director
//!         ◀──307, Location: http://n1/origin/film/VERSION/0/17.m4s──
//!         ──GET──▶ n1
//! ```
//! Of the nodes each is named in proportion to what it has free. Addresses have no session, so that
//! each may be of another node; those with a version are of nodes with its content. A cache that
//! was failed by a node says so in its next question (`?failed=ADDRESS`), and is sent to another
//! one if there is any.

use super::admission::{known, problem};
use super::counters::{CacheOutcome, Cause};
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
        let message = "this director does not know the cluster yet";
        return refused(state, CacheOutcome::NotReady, Cause::NotReady, message);
    }
    let (now, kept, salt) =
        (state.watched.now(), state.admission.kept(), state.admission.next_seed().to_le_bytes());
    let view = state.watched.view();
    let Some((number, _)) = known(&view, &wanted.title) else {
        let message = "no node has this title; /titles lists those of the cluster";
        return refused(state, CacheOutcome::NoTitle, Cause::NoTitle, message);
    };
    let present = view.title(number).contents().first().copied();
    let mut nodes = steering::nodes_with(&view, number, now, kept, &salt);
    drop(view);
    let content = wanted.content.or(present);
    if let Some(failed) = request.query(FAILED) {
        state.counters.cache_retried();
        // Stable: those that have not failed stay in their order. A node that is alone is named
        // again, because it may have room by now.
        nodes.sort_by_key(|node| is_at(&failed, &node.address));
    }
    // One that has another content says so.
    let node = nodes.iter().find(|node| node.has(content)).or(nodes.first());
    let Some(node) = node else {
        let message = "no node that answers has this title; ask again, or start a node that has it";
        return refused(state, CacheOutcome::NoCopy, Cause::NoCopy, message);
    };
    state.counters.answered_cache(match node.has(content) {
        true => CacheOutcome::Sent,
        false => CacheOutcome::OtherContent,
    });
    let location = format!("{}{}", node.address, without_failed(request.target));
    HttpResponse::empty(307).field("Location", &location)
}

/// Whether a URL is one of the node at this address.
fn is_at(url: &str, address: &str) -> bool {
    let rest = url.strip_prefix(address);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// A target without what it tells a director.
fn without_failed(target: &str) -> String {
    let Some((path, query)) = target.split_once('?') else { return target.to_owned() };
    let is_other = |pair: &&str| pair.split('=').next() != Some(FAILED);
    let others: Vec<&str> = query.split('&').filter(is_other).collect();
    match others.is_empty() {
        true => path.to_owned(),
        false => format!("{path}?{}", others.join("&")),
    }
}

fn refused(
    state: &ServiceState,
    outcome: CacheOutcome,
    cause: Cause,
    message: &str,
) -> HttpResponse {
    state.counters.answered_cache(outcome);
    let time = (cause != Cause::NoTitle).then_some(ASKED_AGAIN);
    let status = if cause == Cause::NoTitle { 404 } else { 503 };
    HttpResponse::json(status, &problem(cause, message, time)).retry_after(time)
}

/// The folder of all addresses for caches.
pub(super) const PREFIX: &str = "/origin/";
/// The name in the query of the URL that another node has not answered.
const FAILED: &str = "failed";
/// Time after which a node may be there.
const ASKED_AGAIN: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_that_failed_are_known_by_their_address() {
        for (url, wanted) in [
            ("http://n1:8080", true),
            ("http://n1:8080/origin/film.ts?rate=8Mbps", true),
            ("http://n1:80801/origin/film.mp4", false),
            ("http://n2:8080/origin/film.mp4", false),
            ("", false),
        ] {
            assert_eq!(is_at(url, "http://n1:8080"), wanted, "{url}");
        }
        for (target, wanted) in [
            ("/origin/film.mp4", "/origin/film.mp4"),
            ("/origin/film.mp4?failed=http://n1/", "/origin/film.mp4"),
            ("/origin/film.ts?failed=http://n1/?rate=8&rate=8", "/origin/film.ts?rate=8"),
            ("/origin/film.ts?rate=8&failed=x&token=y", "/origin/film.ts?rate=8&token=y"),
        ] {
            assert_eq!(without_failed(target), wanted);
        }
    }

    #[test]
    fn addresses_of_caches_name_titles_and_contents() {
        let version = "1f-2-3-09ab12cd-7d0~0.1.0";
        for (target, title, content) in [
            ("/origin/film/master.m3u8", Some("film"), None),
            ("/origin/news/evening.mp4?x=/", Some("news/evening"), None),
            ("/origin/news%2Fevening/manifest.mpd", Some("news/evening"), None),
            (&format!("/origin/a/b/{version}/0/1.m4s"), Some("a/b"), Some("1f-2-3-09ab12cd")),
            (&format!("/origin/a/{version}/a/b/file.mp4"), Some("a/b"), Some("1f-2-3-09ab12cd")),
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
