//! Decides how a request is answered: with a response made here, with a body of media, or after
//! the opener or the core has done something first.
//!
//! Owns no connection and sends nothing. A request that had to wait for the opener is decided again
//! from the start.

mod admission;
mod files;
mod found;
mod manifests;
mod pages;

pub(crate) use admission::{BEFORE_A_DIRECTOR, play};
pub(crate) use files::{at_constant_rate, clear_file, indexed_file, track_file};
pub(crate) use found::{open_title, title_to_admit};
pub(crate) use manifests::{admitted, all_videos, manifest_text};

use super::authorize::session_of_director;
use super::ranged::{KeptBy, MediaBody, ranged};
use super::refusals::{bad_parameter, manifests_only, not_found, not_permitted};
use super::request::{HttpRequest, Method};
use super::resource::{self, MediaResource, TitleResource};
use super::response::Response;
use super::routes::{Route, escape};
use super::{failover, origin, over_rtsp, parts, preflight};
use crate::layout::DeliveryFormat;
use crate::library::{OpenTitle, StoredCopy};
use crate::messages::{Manifest, PlayRequest};
use crate::metrics;
use crate::playback_params::{self, PlaybackParams};
use crate::presentation::{BuiltFile, Presentation};
use crate::sessions::{PlayerSession, TokenLookup};
use crate::shared::Shared;
use admission::before_a_director;
use engine::{FillFor, SessionId};
use files::{progressive, transport_file};
use found::{find_presentation, find_session};
use manifests::{extend_first, segmented};
use media::{CueClock, KeyAccess};
use pages::{console_file, health, title_list};
use std::sync::Arc;
use std::time::SystemTime;
use units::show::iso_date;

/// How to answer a request.
pub(crate) enum Decision {
    /// Send this response.
    Respond(Response),
    /// Send a range of a body of media to the player of a session.
    SendBody(MediaBody, Arc<PlayerSession>),
    /// Pass this fill to the core, and send the range when it is admitted.
    Fill(Box<PlayRequest>, MediaBody),
    /// Let the opener open the title of this name, then decide again.
    Open(String),
    /// Let the opener look at this recording, of this name, then decide again.
    Look(StoredCopy, String),
    /// Let the core extend a session to this, then decide again.
    Extend(SessionId, Arc<OpenTitle>),
    /// Let the opener build a file of a presentation, then decide again.
    BuildFile(Arc<OpenTitle>, Arc<Presentation>, BuiltFile),
    /// Let the opener build a presentation of a title, then decide again.
    BuildPresentation(Arc<OpenTitle>, PlaybackParams),
    /// Let the opener plan the transport streams of a presentation, then decide again.
    PlanTransport(Arc<OpenTitle>, Arc<Presentation>),
    /// Pass the admission request of a viewer of another node to the core, then decide again.
    FailOver(Box<PlayRequest>),
    /// Pass this admission request to the core; [`admitted`] makes its verdict a response.
    Admit(Box<PlayRequest>, Manifest),
    /// Send the core's list of sessions.
    ListSessions,
    /// Let the core end this session, and say that it has ended.
    EndSession(SessionId),
}

impl From<Response> for Decision {
    fn from(response: Response) -> Self {
        Self::Respond(response)
    }
}

/// Decides how to answer a request. `opened`: its title, where that has just been opened for it.
pub(crate) fn answer(
    shared: &Arc<Shared>,
    request: &HttpRequest,
    opened: Option<Arc<OpenTitle>>,
) -> Decision {
    decide(shared, request, opened).unwrap_or_else(|decision| decision)
}

/// The decision on a request; `Err` where the usual course ends early.
fn decide(
    shared: &Arc<Shared>,
    request: &HttpRequest,
    opened: Option<Arc<OpenTitle>>,
) -> Result<Decision, Decision> {
    if request.method == Method::Options {
        return Ok(preflight::response(&request.path).into());
    }
    let route = Route::of(&request.path).ok_or_else(not_found)?;
    // Sessions are only ended, by DELETE or by the beacon of a closing page (POST); all else is
    // only read.
    let fits = match request.method {
        Method::Delete | Method::Post => matches!(route, Route::Session { .. }),
        Method::Get | Method::Head => !matches!(route, Route::Session { .. }),
        Method::Put | Method::Patch | Method::Options => false,
    };
    if !fits {
        return Ok(Response::method_not_allowed(preflight::allowed(&route)).into());
    }
    if let Some(viewer) = failover::of(shared, request, &route, opened.as_ref())? {
        return failover::answer(shared, &route, viewer);
    }
    let response = match route {
        Route::Session { title } => return Ok(end_session(shared, request, &title)),
        Route::Root => Response::redirect("/console/"),
        Route::Console(name) => console_file(&name).ok_or_else(not_found)?,
        Route::Titles => title_list(request, shared),
        Route::Sessions => return Ok(Decision::ListSessions),
        Route::Status => Response::json(200, &shared.status()),
        Route::Metrics => match metrics::text(shared) {
            Ok(text) => Response::new(200, metrics::CONTENT_TYPE, text),
            Err(_) => Response::error(500, "metrics", "the metrics could not be encoded"),
        },
        Route::Health => health(shared),
        // Without an end of line, at which `Date.parse` of a player may fail.
        Route::Time => uncached(Response::new(200, "text/plain", iso_date(SystemTime::now()))),
        Route::Master { .. }
        | Route::TransportMaster { .. }
        | Route::DashManifest { .. }
        | Route::OnDemandManifest { .. } => {
            let of_director = session_of_director(shared, request, &route);
            let Some((title, manifest)) = route.manifest() else { return Err(not_found().into()) };
            return segmented(shared, request, title.to_owned(), manifest, (of_director, opened));
        }
        Route::Progressive { title } => return progressive(shared, request, title, opened),
        Route::TransportFile { title, .. } => {
            return transport_file(shared, request, title, opened);
        }
        Route::OverRtsp { .. } if request.viewer.is_none() => not_found(),
        Route::OverRtsp { title: name, is_transport } => {
            if let Some(refused) = over_rtsp::refusal(shared, &name) {
                return Ok(refused.into());
            }
            let title = title_to_admit(shared, request, &name, opened, None)?;
            let start =
                playback_params::start(&request.query).map_err(|why| bad_parameter(&why))?;
            let (for_disk, permit) =
                (shared.settings().wait.min(before_a_director(request)), request.permit.clone());
            let play = over_rtsp::play_request(for_disk, title, name, is_transport, permit, start)?;
            if is_transport && !play.presentation.packaging.is_transport_planned() {
                return Ok(Decision::PlanTransport(play.title, play.presentation));
            }
            return Ok(Decision::Admit(Box::new(play), Manifest::OverRtsp { is_transport }));
        }
        Route::TextFile { ref title, .. }
        | Route::ThumbnailCues { ref title }
        | Route::ThumbnailImage { ref title, .. } => {
            return in_memory(shared, request, &route, title, opened);
        }
        Route::Playlist { ref title, .. } => {
            let session = find_session(shared, request, title)?;
            extend_first(shared, &session, opened)?;
            return of_session(request, &route, session);
        }
        Route::TextPlaylist { ref title, .. }
        | Route::TextInit { ref title, .. }
        | Route::TextSegment { ref title, .. }
        | Route::ThumbnailPlaylist { ref title }
        | Route::TransportPlaylist { ref title, .. }
        | Route::TransportSegment { ref title, .. }
        | Route::IframePlaylist { ref title, .. }
        | Route::Iframe { ref title, .. }
        | Route::Init { ref title, .. }
        | Route::DashInit { ref title, .. }
        | Route::TrackFile { ref title, .. }
        | Route::IframeFile { ref title, .. }
        | Route::Segment { ref title, .. } => {
            return of_session(request, &route, find_session(shared, request, title)?);
        }
        Route::Key { ref title, ref id } => {
            let session = find_session(shared, request, title)?;
            return Ok(key(&session.presentation, id).into());
        }
        Route::Part { title: ref name } => {
            let part = parts::wanted(shared, request)?;
            let title = title_to_admit(shared, request, name, opened, Some(FillFor::Node))?;
            let (play, media) = parts::fill(shared, part, name, title)?;
            return Ok(Decision::Fill(Box::new(play), media));
        }
        Route::Origin { ref title, ref version, ref resource } => {
            let of = (title.as_str(), version.as_deref());
            return origin::answer(shared, request, of, resource, opened);
        }
    };
    Ok(response.into())
}

/// Answers a request for a session's playlist, initialization segment, media segment or I-frame.
fn of_session(
    request: &HttpRequest,
    route: &Route,
    session: Arc<PlayerSession>,
) -> Result<Decision, Decision> {
    if playback_params::has_any(&request.query) {
        return Ok(manifests_only().into());
    }
    let is_transport =
        matches!(route, Route::TransportPlaylist { .. } | Route::TransportSegment { .. });
    // Planned when a session of transport streams began.
    if is_transport && session.format != DeliveryFormat::TransportStream {
        return Ok(not_found().into());
    }
    if route.track().is_some_and(|track| !session.presentation.permits(&session.permit, track)) {
        return Ok(not_permitted(&session.permit).into());
    }
    let clock = clock_of(session.format);
    let (title, part) = (&session.title, &session.presentation);
    if let Some(file) = indexed_file(route) {
        let media = track_file(title, part, file)?;
        return Ok(media_of_session(request, session, media));
    }
    let found = resource::find(route, title, part, clock, &session.query());
    Ok(match found.ok_or_else(not_found)? {
        TitleResource::InMemory(found) => found.response(&session.title, ASK_EACH_TIME).into(),
        TitleResource::Media(media) => media_of_session(request, session, media),
    })
}

/// Media for the player of a session.
fn media_of_session(
    request: &HttpRequest,
    session: Arc<PlayerSession>,
    mut media: MediaResource,
) -> Decision {
    media.cmsd = media.cmsd.map(|cmsd| cmsd.reserved_by(&session));
    match ranged(request, &session.title, media, KeptBy::Player) {
        Ok(media) => Decision::SendBody(media, session),
        Err(response) => response.into(),
    }
}

/// Answers a request for a text track as one file or for thumbnails: of a session's presentation,
/// else of the title, whole or the part that the parameters describe. They are in memory, so that
/// nothing is reserved.
fn in_memory(
    shared: &Arc<Shared>,
    request: &HttpRequest,
    route: &Route,
    name: &str,
    opened: Option<Arc<OpenTitle>>,
) -> Result<Decision, Decision> {
    let (title, presentation, clock) = if request.query("s").is_some() {
        if playback_params::has_any(&request.query) {
            return Ok(manifests_only().into());
        }
        let session = find_session(shared, request, name)?;
        let clock = clock_of(session.format);
        (Arc::clone(&session.title), Arc::clone(&session.presentation), clock)
    } else {
        let title = open_title(shared, name, opened)?;
        let presentation = find_presentation(request, &title)?;
        (title, presentation, CueClock::File)
    };
    match resource::find(route, &title, &presentation, clock, &same_token(request)) {
        Some(TitleResource::InMemory(found)) => Ok(found.response(&title, ASK_EACH_TIME).into()),
        _ => Ok(not_found().into()),
    }
}

/// The clock of what is shown beside media in this format.
fn clock_of(format: DeliveryFormat) -> CueClock {
    match format {
        DeliveryFormat::Progressive => CueClock::File,
        _ => CueClock::Segments,
    }
}

/// The query by which a request's token reaches the addresses that its response names.
fn same_token(request: &HttpRequest) -> String {
    let token = |name| request.query(name).map(|token| format!("?{name}={}", escape(token)));
    token("s").or_else(|| token("token")).unwrap_or_default()
}

/// Ends the session of a request's token. A session that has ended stays ended.
fn end_session(shared: &Shared, request: &HttpRequest, name: &str) -> Decision {
    match request.query("s").map(|token| shared.sessions.find(token)) {
        Some(TokenLookup::Ended) => Response::no_content().into(),
        _ => match find_session(shared, request, name) {
            Ok(session) => Decision::EndSession(session.id),
            Err(response) => response.into(),
        },
    }
}

/// The key of this number, for a player of a session of a title that is encrypted with it.
pub(super) fn key(presentation: &Presentation, id: &str) -> Response {
    let encryption = presentation.packaging.encryption();
    let found = encryption.and_then(|it| {
        it.keys().find(|key| key.access == KeyAccess::Server && media::uuid(&key.id) == id)
    });
    found.map_or_else(not_found, |key| {
        uncached(Response::new(200, "application/octet-stream", key.key))
    })
}

/// A response that names a session must not be given to another player.
pub(super) fn uncached(mut response: Response) -> Response {
    response.head = response.head.field("Cache-Control", "no-store");
    response
}

/// A cache asks each time, so that the player of an ended session learns of its end.
pub(super) const ASK_EACH_TIME: &str = "private, no-cache";
