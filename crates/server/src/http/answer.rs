//! From a request to its answer: a reply made here, a body to be sent, or whom to ask first.
//!
//! Owns no connection and sends nothing. A request that has to wait (for a title to open, for
//! admission) is answered anew from the start when that has happened.

use super::request::{Method, Request};
use super::response::{Head, Reply};
use super::routes::{Route, escape};
use crate::console;
use crate::core::{NotAdmitted, Visit};
use crate::engine::SessionId;
use crate::layout::Shape;
use crate::library::{NotOpened, OpenTitle};
use crate::metrics;
use crate::sessions::{Found, Session};
use crate::shared::Shared;
use crate::showing::Showing;
use crate::wanted::{self, BadParameter, Wanted};
use media::{Body, NotPackaged, Slice, TrackKind};
use serde_json::json;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// What to do with a request.
pub(crate) enum Answer {
    /// Send this.
    Reply(Reply),
    /// Send this range of a body, stored bytes and all.
    Body { head: Head, body: Arc<Body>, range: Range<u64>, session: Arc<Session> },
    /// Ask the opener for the title of this name, then answer anew.
    Open(String),
    /// Ask the opener for the file of these tracks, then answer anew.
    Make(Arc<OpenTitle>, Vec<u16>),
    /// Ask the opener for what is wanted of a title, then answer anew.
    Show(Arc<OpenTitle>, Wanted),
    /// Ask the core whether the viewer may come in; the answer is [`admitted`].
    Admit(Visit),
    /// Ask the core who plays what, and send that.
    List,
}

/// The answer to a request. `opened`: the title it names, if that has just been opened for it.
pub(crate) fn answer(
    shared: &Arc<Shared>,
    request: &Request,
    opened: Option<Arc<OpenTitle>>,
) -> Answer {
    if request.method == Method::Options {
        return Answer::Reply(Reply::options());
    }
    let Some(route) = Route::of(&request.path) else { return Answer::Reply(nothing_here()) };
    match route {
        Route::Root => Answer::Reply(Reply::redirect("/console/")),
        Route::Console(name) => Answer::Reply(console_file(&name)),
        Route::Titles => {
            Answer::Reply(Reply::json(200, &json!({ "titles": shared.titles.list() })))
        }
        Route::Sessions => Answer::List,
        Route::Status => Answer::Reply(Reply::json(200, &shared.status())),
        Route::Metrics => Answer::Reply(match metrics::text(shared) {
            Ok(text) => Reply::new(200, metrics::CONTENT_TYPE, text),
            Err(_) => Reply::error(500, "metrics", "the metrics could not be written as text"),
        }),
        Route::Health => Answer::Reply(health(shared)),
        Route::Master { title } => master(shared, request, title, opened),
        Route::Progressive { title } => progressive(shared, request, title, opened),
        Route::Playlist { ref title, .. }
        | Route::Init { ref title, .. }
        | Route::Segment { ref title, .. } => match session(shared, request, title) {
            Ok(session) => of_session(request, &route, session),
            Err(reply) => Answer::Reply(reply),
        },
    }
}

/// The answer to a viewer that was at the door.
pub(crate) fn admitted(
    name: &str,
    shape: Shape,
    result: Result<Arc<Session>, NotAdmitted>,
) -> Reply {
    match result {
        Ok(session) => match shape {
            Shape::Segmented => {
                let query = format!("?s={}", session.token);
                playlist(session.showing.packaging.multivariant_playlist(&videos(&session), &query))
            }
            Shape::Progressive => {
                Reply::redirect(&format!("/t/{}.mp4?s={}", escape(name), session.token))
            }
        },
        Err(NotAdmitted::Refused(refusal)) => Reply::refused(&refusal),
        Err(NotAdmitted::Gone) => no_title(name),
        Err(NotAdmitted::Stopping) => stopping(),
        Err(NotAdmitted::NoShape) => whole_file_only(),
        Err(NotAdmitted::Failed(error)) => Reply::error(500, "internal", &error),
    }
}

/// Why a title did not open.
pub(crate) fn not_opened(name: &str, why: &NotOpened) -> Reply {
    match why {
        NotOpened::NoTitle => no_title(name),
        NotOpened::NotPlayable(NotPackaged::File) => Reply::error(
            404,
            "not-media",
            "this title was taken in as a file, not as media; `tenuto export` gives it back",
        ),
        NotOpened::NotPlayable(why) => Reply::error(404, "not-playable", &why.to_string()),
        NotOpened::Busy => Reply::busy(
            "busy",
            "the disk serves other viewers and had no time to open this title; try again",
            BUSY_RETRY,
        ),
        NotOpened::Failed(error) => Reply::error(500, "store-failed", error),
    }
}

fn master(
    shared: &Arc<Shared>,
    request: &Request,
    name: String,
    opened: Option<Arc<OpenTitle>>,
) -> Answer {
    let title = match title(shared, name, opened) {
        Ok((title, name)) => (title, name),
        Err(answer) => return answer,
    };
    let (title, name) = title;
    let showing = match showing(request, &title) {
        Ok(showing) => showing,
        Err(answer) => return answer,
    };
    if request.method == Method::Head {
        // Only looking: nothing is reserved for it.
        let firsts = showing.offers().iter().filter_map(|offer| offer.first().copied());
        let videos: Vec<u16> = firsts.collect();
        return Answer::Reply(playlist(showing.packaging.multivariant_playlist(&videos, "")));
    }
    let instead_of = match request.query("s").map(|token| shared.sessions.find(token)) {
        Some(Found::Live(session)) => Some(session.id),
        _ => None,
    };
    admit(request, (title, showing), (name, Shape::Segmented), instead_of)
}

/// What a request wants of a title, or what to answer instead.
fn showing(request: &Request, title: &Arc<OpenTitle>) -> Result<Arc<Showing>, Answer> {
    let wanted = Wanted::of(request).map_err(|why| Answer::Reply(bad_parameter(&why)))?;
    match title.made_showing(&wanted) {
        Some(Ok(showing)) => Ok(showing),
        Some(Err(why)) => Err(Answer::Reply(bad_parameter(&BadParameter(why.to_string())))),
        None => Err(Answer::Show(Arc::clone(title), wanted)),
    }
}

fn admit(
    request: &Request,
    (title, showing): (Arc<OpenTitle>, Arc<Showing>),
    (name, shape): (String, Shape),
    instead_of: Option<SessionId>,
) -> Answer {
    match wanted::patience(request) {
        Ok(patience) => Answer::Admit(Visit { title, showing, name, shape, patience, instead_of }),
        Err(why) => Answer::Reply(bad_parameter(&why)),
    }
}

fn progressive(
    shared: &Arc<Shared>,
    request: &Request,
    name: String,
    opened: Option<Arc<OpenTitle>>,
) -> Answer {
    if request.query("s").is_some() {
        let session = match session(shared, request, &name) {
            Ok(session) => session,
            Err(reply) => return Answer::Reply(reply),
        };
        let tracks = session.tracks().to_vec();
        let Some(body) = session.title.made_body(&tracks) else {
            return Answer::Make(Arc::clone(&session.title), tracks);
        };
        if wanted::asks(request) {
            return Answer::Reply(manifests_only());
        }
        let etag = session.title.etag(&format!("mp4-{}", session.offer));
        let kind = kind_of(&session.title, &tracks);
        return ranged(request, body, session, &etag, kind);
    }
    let (title, name) = match title(shared, name, opened) {
        Ok(found) => found,
        Err(answer) => return answer,
    };
    let showing = match showing(request, &title) {
        Ok(showing) => showing,
        Err(answer) => return answer,
    };
    if showing.layouts(Shape::Progressive).is_empty() {
        return Answer::Reply(whole_file_only());
    }
    if request.method == Method::Head {
        let tracks = title.whole.offers()[0].clone();
        let Some(body) = title.made_body(&tracks) else { return Answer::Make(title, tracks) };
        let head = Head::new(200)
            .field("Content-Type", kind_of(&title, &tracks))
            .field("Accept-Ranges", "bytes")
            .field("ETag", title.etag("mp4-0"));
        return Answer::Reply(Reply::only_head(head, body.len()));
    }
    admit(request, (title, showing), (name, Shape::Progressive), None)
}

/// Resources that belong to a session.
fn of_session(request: &Request, route: &Route, session: Arc<Session>) -> Answer {
    if wanted::asks(request) {
        return Answer::Reply(manifests_only());
    }
    let (packaging, tag) = (&session.showing.packaging, session.showing.tag());
    match *route {
        Route::Playlist { track, .. } => {
            let query = format!("?s={}", session.token);
            Answer::Reply(
                packaging.media_playlist(track, &query).map_or_else(nothing_here, playlist),
            )
        }
        Route::Init { track, .. } => {
            let Some(bytes) = packaging.init_segment(track) else {
                return Answer::Reply(nothing_here());
            };
            let range = 0..bytes.len();
            let body = [Slice::Generated { bytes, range }].into_iter().collect();
            let etag = session.title.etag(&format!("i{track}{tag}"));
            let kind = kind_of(&session.title, &[track]);
            ranged(request, Arc::new(body), session, &etag, kind)
        }
        Route::Segment { track, number, .. } => {
            let Some(body) = packaging.segment(track, number) else {
                return Answer::Reply(nothing_here());
            };
            let etag = session.title.etag(&format!("s{track}-{number}{tag}"));
            let kind = kind_of(&session.title, &[track]);
            ranged(request, Arc::new(body), session, &etag, kind)
        }
        _ => Answer::Reply(nothing_here()),
    }
}

/// A body, or the range of it that was asked for, or why not.
fn ranged(
    request: &Request,
    body: Arc<Body>,
    session: Arc<Session>,
    etag: &str,
    kind: &str,
) -> Answer {
    let length = body.len();
    if request.if_none_match.as_deref().is_some_and(|tags| matches(tags, etag)) {
        let head = Head::new(304).field("ETag", etag);
        return Answer::Reply(Reply { head, body: Vec::new(), length: 0 });
    }
    let fresh = request.if_range.as_deref().is_none_or(|tag| tag == etag);
    let range = match request.range.filter(|_| fresh).map(|range| range.of(length)) {
        None => None,
        Some(Some(range)) => Some(range),
        Some(None) => {
            let message = format!("the body has {length} bytes; ask for some of them");
            let mut reply = Reply::error(416, "range-not-satisfiable", &message);
            reply.head = reply.head.field("Content-Range", format_args!("bytes */{length}"));
            return Answer::Reply(reply);
        }
    };
    let mut head = Head::new(if range.is_some() { 206 } else { 200 })
        .field("Content-Type", kind)
        .field("Accept-Ranges", "bytes")
        .field("ETag", etag)
        .field("Cache-Control", "private, max-age=3600");
    if let Some(range) = &range {
        let last = range.end - 1;
        head = head.field("Content-Range", format_args!("bytes {}-{last}/{length}", range.start));
    }
    let range = range.unwrap_or(0..length);
    if request.method == Method::Head {
        return Answer::Reply(Reply::only_head(head, range.end - range.start));
    }
    Answer::Body { head, body, range, session }
}

/// Whether a list of entity tags has this one, or is `*`.
fn matches(tags: &str, etag: &str) -> bool {
    let mut tags = tags.split(',').map(str::trim);
    tags.any(|tag| tag == "*" || tag.strip_prefix("W/").unwrap_or(tag) == etag)
}

/// The open title of a name, or what to answer instead.
fn title(
    shared: &Arc<Shared>,
    name: String,
    opened: Option<Arc<OpenTitle>>,
) -> Result<(Arc<OpenTitle>, String), Answer> {
    if shared.stopping.load(Ordering::Relaxed) {
        return Err(Answer::Reply(stopping()));
    }
    if let Some(title) = opened {
        return Ok((title, name));
    }
    match shared.titles.opened(&name) {
        Ok(Some(title)) => Ok((title, name)),
        Ok(None) => Err(Answer::Open(name)),
        Err(why) => Err(Answer::Reply(not_opened(&name, &why))),
    }
}

/// The session that a request belongs to, if it is one of this title.
fn session(shared: &Shared, request: &Request, name: &str) -> Result<Arc<Session>, Reply> {
    let again = format!("start again at /t/{0}/master.m3u8 or /t/{0}.mp4", escape(name));
    let Some(token) = request.query("s") else {
        let message = format!("this URL needs the session that a manifest gives it; {again}");
        return Err(Reply::error(404, "session-missing", &message));
    };
    match shared.sessions.find(token) {
        Found::Live(session) if session.name == name => Ok(session),
        Found::Ended => {
            let message = format!("this session has ended; {again}");
            Err(Reply::error(410, "session-ended", &message))
        }
        Found::Live(_) | Found::Unknown => {
            let message = format!("there is no such session of this title; {again}");
            Err(Reply::error(404, "session-unknown", &message))
        }
    }
}

/// The video renditions to list: the admitted one and those below it, so that a player that
/// switches never asks for more than was booked.
fn videos(session: &Session) -> Vec<u16> {
    let offers = session.showing.offers()[session.offer..].iter();
    let tracks = &session.showing.packaging.index().tracks;
    let is_video = |track: &u16| tracks[usize::from(*track)].description.kind == TrackKind::Video;
    offers.filter_map(|offer| offer.iter().copied().find(is_video)).collect()
}

fn kind_of(title: &OpenTitle, tracks: &[u16]) -> &'static str {
    let all = &title.whole.packaging.index().tracks;
    let is_video = |track: &u16| {
        all.get(usize::from(*track)).is_some_and(|t| t.description.kind == TrackKind::Video)
    };
    if tracks.iter().any(is_video) { "video/mp4" } else { "audio/mp4" }
}

fn playlist(text: String) -> Reply {
    let mut reply = Reply::new(200, "application/vnd.apple.mpegurl", text);
    reply.head = reply.head.field("Cache-Control", "no-store");
    reply
}

fn bad_parameter(BadParameter(why): &BadParameter) -> Reply {
    Reply::error(400, "bad-parameter", why)
}

fn whole_file_only() -> Reply {
    let why = "one file has all of a title in its order; take start, stop, skip and backwards \
               with master.m3u8";
    Reply::error(400, "whole-file-only", why)
}

fn manifests_only() -> Reply {
    let why = "start, stop, speed, skip and wait belong to the manifest: what a session plays is \
               what its manifest was asked for";
    Reply::error(400, "bad-parameter", why)
}

fn console_file(name: &str) -> Reply {
    console::file(name).map_or_else(nothing_here, |(kind, text)| Reply::new(200, kind, text))
}

fn health(shared: &Shared) -> Reply {
    if shared.stopping.load(Ordering::Relaxed) {
        return stopping();
    }
    Reply::json(200, &json!({ "status": "ok" }))
}

fn stopping() -> Reply {
    Reply::busy("stopping", "this server is about to stop and lets nobody new in", STOPPING_RETRY)
}

fn no_title(name: &str) -> Reply {
    let message = format!("there is no title '{}'; /titles lists them", name.escape_debug());
    Reply::error(404, "no-title", &message)
}

fn nothing_here() -> Reply {
    Reply::error(404, "not-found", "there is nothing here; /titles lists what can be played")
}

const BUSY_RETRY: Duration = Duration::from_secs(2);
/// A restart takes some seconds.
const STOPPING_RETRY: Duration = Duration::from_secs(10);
