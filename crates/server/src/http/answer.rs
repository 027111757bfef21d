//! Decides how a request is answered: with a response made here, with a body of media, or after
//! the opener or the core has done something first.
//!
//! Owns no connection and sends nothing. A request that had to wait for the opener is decided again
//! from the start.

use super::authorize::session_of_director;
use super::conditions::Validators;
use super::ranged::{KeptBy, MediaBody, modified, ranged, with_validators};
use super::refusals::{
    bad_parameter, forwards_only, is_recorded, manifests_only, no_on_demand, no_transport,
    not_admitted, not_found, not_opened, not_permitted, rate_missing, stopping,
};
use super::request::{HttpRequest, Method};
use super::resource::{self, MediaResource, PLAYLIST, TitleResource, content_type, file_etag};
use super::response::{Head, Response};
use super::routes::{Route, escape};
use super::{failover, origin, over_rtsp, parts, preflight};
use crate::access::Permit;
use crate::clients::ClientAddress;
use crate::layout::DeliveryFormat;
use crate::library::{OpenError, OpenTitle, StoredCopy};
use crate::messages::{AdmissionError, Manifest, PlayRequest};
use crate::metrics;
use crate::playback_params::{self, BadParameter, PlaybackParams};
use crate::presentation::{BuiltFile, Presentation};
use crate::sessions::{PlayerSession, TokenLookup};
use crate::shared::Shared;
use crate::wire;
use engine::{FillFor, MaxWait, SessionId};
use media::{ContentSteering, CueClock, KeyAccess, Links, Packaging, TextForm, TrackKind};
use serde_json::json;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use store::TitleSelection;
use units::BitRate;
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
            let title = title_to_play(shared, request, &name, opened, None)?;
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
            let title = title_to_play(shared, request, name, opened, Some(FillFor::Node))?;
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

/// The response to an admission request for the title `name`.
pub(crate) fn admitted(
    shared: &Shared,
    name: &str,
    manifest: Manifest,
    result: Result<Arc<PlayerSession>, AdmissionError>,
) -> Response {
    match result {
        Ok(session) if matches!(manifest, Manifest::OverRtsp { .. }) => {
            over_rtsp::admitted(shared, &session)
        }
        Ok(session) if session.is_directed => {
            Response::created(&format!("{}{}", address(manifest, name), session.query()))
        }
        Ok(session) => {
            let is_file = matches!(manifest, Manifest::File | Manifest::TransportFile);
            let mut response = if is_file {
                // With the token in the URL, all further ranges of the file are of this session.
                Response::redirect(&format!("{}{}", address(manifest, name), session.query()))
            } else {
                let links = Links { query: &session.query(), ..Links::default() };
                listing(&session.presentation, manifest, &videos(&session), links)
            };
            if !session.wait.is_zero() {
                // Browsers show it beside the request (W3C Server Timing), in milliseconds.
                let field = format!("admission;dur={}", session.wait.as_millis());
                response.head.add("Server-Timing", field);
            }
            response
        }
        Err(why) => not_admitted(name, why),
    }
}

/// A file of the console.
fn console_file(name: &str) -> Option<Response> {
    let file = web_console::file(name)?;
    let mut response = Response::new(200, file.content_type, file.bytes.to_vec());
    response.head.add("Cache-Control", file.cache_control);
    for (name, value) in web_console::SECURITY {
        response.head.add(name, value);
    }
    Some(response)
}

/// The address at which a player asks for a manifest of the title `name`.
fn address(manifest: Manifest, name: &str) -> String {
    let file = match manifest {
        Manifest::Hls(TextForm::WebVtt) => "/master.m3u8",
        Manifest::Hls(TextForm::Imsc) => "/master-imsc.m3u8",
        Manifest::HlsTransport => "/master-ts.m3u8",
        Manifest::Dash(TextForm::WebVtt) => "/manifest.mpd",
        Manifest::Dash(TextForm::Imsc) => "/manifest-imsc.mpd",
        Manifest::OnDemand(TextForm::WebVtt) => "/ondemand.mpd",
        Manifest::OnDemand(TextForm::Imsc) => "/ondemand-imsc.mpd",
        Manifest::File => ".mp4",
        Manifest::TransportFile => ".ts",
        Manifest::OverRtsp { .. } => "/rtsp",
    };
    format!("/t/{}{file}", escape(name))
}

/// Answers a request for a manifest of segments: it begins a session.
fn segmented(
    shared: &Arc<Shared>,
    request: &HttpRequest,
    name: String,
    manifest: Manifest,
    (of_director, opened): (Option<Arc<PlayerSession>>, Option<Arc<OpenTitle>>),
) -> Result<Decision, Decision> {
    let known = of_director.or_else(|| session_of_recording(shared, request, &name, manifest));
    if let Some(session) = known {
        extend_first(shared, &session, opened)?;
        return Ok(session_listing(shared, &session, manifest).into());
    }
    let title = title_or_recording(shared, request, &name, opened)?;
    let presentation = find_presentation(request, &title)?;
    if manifest == Manifest::HlsTransport {
        let packaging = &presentation.packaging;
        packaging.transport_offers().map_err(|why| no_transport(&name, &why))?;
        if !packaging.is_transport_planned() {
            return Ok(Decision::PlanTransport(title, presentation));
        }
    }
    if matches!(manifest, Manifest::OnDemand(_)) {
        presentation.packaging.on_demand().map_err(|why| no_on_demand(&name, &why))?;
    }
    if request.method == Method::Head {
        // A HEAD request begins no session, so nothing is reserved and all offers are listed.
        let best = presentation.best_offer(manifest.format(), &request.permit);
        let best = best.ok_or_else(|| not_permitted(&request.permit))?;
        let videos = all_videos(&presentation, manifest, best);
        return Ok(listing(&presentation, manifest, &videos, Links::default()).into());
    }
    // A manifest that is requested with a session's token goes on in place of that session, with
    // another part or speed.
    let replaces = match request.query("s").map(|token| shared.sessions.find(token)) {
        Some(TokenLookup::Live(session)) => Some(session.id),
        _ => None,
    };
    let max_wait = max_wait(shared, request)?;
    let play = play(title, presentation, name, max_wait);
    let (format, permit) = (manifest.format(), permit(request)?);
    let start = play.title.start(shared.content.segment());
    let is_directed = request.viewer.is_some();
    let play = PlayRequest { format, start, replaces, permit, is_directed, ..play };
    // Only these have addresses that mean the same at another node from the first request on.
    let goes_on = matches!(manifest, Manifest::Hls(_) | Manifest::Dash(_));
    let asked = shared.membership.as_ref().zip(request.question.as_ref()).filter(|_| goes_on);
    let failover = asked.and_then(|(membership, question)| membership.failover_nodes(question));
    let play = PlayRequest { failover, ..play };
    Ok(Decision::Admit(Box::new(play), manifest))
}

/// The session of a recording that a request's token names, if the manifest is of its format.
fn session_of_recording(
    shared: &Shared,
    request: &HttpRequest,
    name: &str,
    manifest: Manifest,
) -> Option<Arc<PlayerSession>> {
    let TokenLookup::Live(session) = shared.sessions.find(request.query("s")?) else { return None };
    let is_it = session.name == name
        && session.title.is_recorded()
        && session.format == manifest.format()
        && !playback_params::has_any(&request.query);
    is_it.then_some(session)
}

/// What is to be done before a session of a recording can be told of all of it, if anything.
fn extend_first(
    shared: &Shared,
    session: &PlayerSession,
    opened: Option<Arc<OpenTitle>>,
) -> Result<(), Decision> {
    let Some(copy) = session.title.grows() else { return Ok(()) };
    let newest = match opened {
        Some(newest) => newest,
        None => newest_look(shared, copy, &session.name)?,
    };
    match Arc::ptr_eq(&newest, &session.title) {
        true => Ok(()),
        false => Err(Decision::Extend(session.id, newest)),
    }
}

/// The newest look at a recording, or what to do instead.
fn newest_look(shared: &Shared, copy: StoredCopy, name: &str) -> Result<Arc<OpenTitle>, Decision> {
    match shared.content.newest(copy) {
        Some(look) => look.map_err(|why| not_opened(shared, name, &why).into()),
        None => Err(Decision::Look(copy, name.to_owned())),
    }
}

/// The request of a player that takes the best offer of a file and plays from the beginning.
pub(super) fn play(
    title: Arc<OpenTitle>,
    presentation: Arc<Presentation>,
    name: String,
    max_wait: MaxWait,
) -> PlayRequest {
    PlayRequest::new(title, presentation, name, DeliveryFormat::Progressive, max_wait)
}

/// The manifest of a session, with other nodes where it may go on.
fn session_listing(shared: &Shared, session: &PlayerSession, manifest: Manifest) -> Response {
    let (videos, mut query) = (videos(session), session.query());
    let membership = shared.membership.as_ref();
    let failover = membership.and_then(|membership| membership.failover_links(session));
    let mut steered = String::new();
    if let Some(links) = &failover {
        let (and, server, names) = match manifest {
            Manifest::Dash(_) => ("&amp;", links.steering.replace('&', "&amp;"), LOCATIONS),
            _ => ("&", links.steering.clone(), PLAYLISTS),
        };
        query += &format!("{and}ticket={}", links.ticket);
        steered = format!("{server}{and}{names}=");
    }
    let steering =
        failover.as_ref().map(|it| ContentSteering { server_uri: &steered, pathways: &it.servers });
    let links = Links { query: &query, steering, ..Links::default() };
    listing(&session.presentation, manifest, &videos, links)
}

/// A manifest that names the segments of these video tracks.
fn listing(
    presentation: &Presentation,
    manifest: Manifest,
    videos: &[u16],
    links: Links<'_>,
) -> Response {
    let query = links.query;
    // A player asks for the manifest of a recording again, with the token of its session.
    let location = match manifest {
        Manifest::Dash(TextForm::Imsc) => format!("manifest-imsc.mpd{query}"),
        _ => format!("manifest.mpd{query}"),
    };
    let links = Links { location: &location, clock: CLOCK, ..links };
    let (kind, text) = manifest_text(&presentation.packaging, manifest, videos, links);
    uncached(Response::new(200, kind, text))
}

/// The content type and the text of a manifest, which names text in its own form.
pub(super) fn manifest_text(
    packaging: &Packaging,
    manifest: Manifest,
    videos: &[u16],
    links: Links<'_>,
) -> (&'static str, String) {
    match manifest {
        Manifest::Dash(text) => {
            let links = Links { text, ..links };
            ("application/dash+xml", packaging.dash_manifest(videos, links))
        }
        Manifest::OnDemand(text) => {
            ("application/dash+xml", packaging.on_demand_manifest(videos, Links { text, ..links }))
        }
        Manifest::HlsTransport => (PLAYLIST, packaging.transport_multivariant(videos, links)),
        Manifest::Hls(text) => {
            (PLAYLIST, packaging.multivariant_playlist(videos, Links { text, ..links }))
        }
        // None of them has a manifest.
        Manifest::File | Manifest::TransportFile | Manifest::OverRtsp { .. } => {
            (PLAYLIST, packaging.multivariant_playlist(videos, links))
        }
    }
}

/// The video tracks of the offers from this one on.
pub(super) fn all_videos(presentation: &Presentation, manifest: Manifest, best: usize) -> Vec<u16> {
    let offers = presentation.offers(manifest.format())[best..].iter();
    offers.filter_map(|offer| offer.first().copied()).collect()
}

/// The presentation that a request's parameters describe, or what to do instead.
fn find_presentation(
    request: &HttpRequest,
    title: &Arc<OpenTitle>,
) -> Result<Arc<Presentation>, Decision> {
    let params = PlaybackParams::of(&request.query).map_err(|why| bad_parameter(&why))?;
    presentation_of(title, params)
}

/// The presentation with these parameters, or what to do instead.
fn presentation_of(
    title: &Arc<OpenTitle>,
    params: PlaybackParams,
) -> Result<Arc<Presentation>, Decision> {
    if title.is_recorded() && params != PlaybackParams::default() {
        let why = "this title is being recorded; parts of it and other speeds can be had when that \
                   has ended";
        return Err(bad_parameter(&BadParameter(why.to_owned())).into());
    }
    match title.cached_presentation(&params) {
        Some(Ok(presentation)) => Ok(presentation),
        Some(Err(why)) => Err(bad_parameter(&BadParameter(why.to_string())).into()),
        None => Err(Decision::BuildPresentation(Arc::clone(title), params)),
    }
}

/// The longest time for which a director's viewer waits for the disk, and for the operator's
/// service: directors wait a second for the answer.
pub(super) const BEFORE_A_DIRECTOR: Duration = Duration::from_millis(600);

/// What is left of that after the operator's service has decided.
fn before_a_director(request: &HttpRequest) -> Duration {
    BEFORE_A_DIRECTOR.saturating_sub(request.authorized.unwrap_or_default())
}

/// The longest time that the player waits for its start: its own, else the server's. For a director
/// it is the disk's: behind others its viewer does not wait, because it asks another node.
fn max_wait(shared: &Shared, request: &HttpRequest) -> Result<MaxWait, Decision> {
    if request.viewer.is_some() {
        let for_disk = shared.settings().wait.min(before_a_director(request));
        return Ok(MaxWait { for_disk, ..MaxWait::default() });
    }
    let asked = playback_params::max_wait(&request.query).map_err(|why| bad_parameter(&why))?;
    Ok(MaxWait {
        time: asked.unwrap_or(shared.settings().wait),
        is_chosen: asked.is_some(),
        ..MaxWait::default()
    })
}

/// What the player's token permits, with the priority that the player asks for if that is lower.
fn permit(request: &HttpRequest) -> Result<Permit, Decision> {
    let asked = playback_params::priority(&request.query).map_err(|why| bad_parameter(&why))?;
    Ok(request.permit.lowered_to(asked))
}

fn progressive(
    shared: &Arc<Shared>,
    request: &HttpRequest,
    name: String,
    opened: Option<Arc<OpenTitle>>,
) -> Result<Decision, Decision> {
    if request.query("s").is_some() {
        let session = find_session_of_file(shared, request, &name, DeliveryFormat::Progressive)?;
        let tracks = session.tracks().to_vec();
        let (title, part) = (&session.title, &session.presentation);
        let file = BuiltFile::Movie(tracks.clone());
        let Some(body) = part.cached_file(&file) else {
            return Ok(Decision::BuildFile(Arc::clone(title), Arc::clone(part), file));
        };
        // The token determines what is played, so parameters beside it would have no effect.
        if playback_params::has_any(&request.query) {
            return Ok(manifests_only().into());
        }
        let media = MediaResource::file(title, part, &tracks, body);
        return Ok(media_of_session(request, session, media));
    }
    let title = title_to_play(shared, request, &name, opened, None)?;
    let presentation = find_presentation(request, &title)?;
    clear_file(&name, &presentation.packaging)?;
    if presentation.layouts(DeliveryFormat::Progressive).is_empty() {
        return Ok(forwards_only().into());
    }
    if request.method == Method::Head {
        // HEAD begins no session, so the best offer stands for all. A title that opened has one.
        let best = presentation.best_offer(DeliveryFormat::Progressive, &request.permit);
        let best = best.ok_or_else(|| not_permitted(&request.permit))?;
        let tracks = presentation.offers(DeliveryFormat::Progressive)[best].clone();
        let file = BuiltFile::Movie(tracks.clone());
        let Some(body) = presentation.cached_file(&file) else {
            return Ok(Decision::BuildFile(title, presentation, file));
        };
        let etag = &*file_etag(&title, &presentation, &tracks);
        let present = Validators { etag, modified: modified(&title, SystemTime::now()) };
        let head = with_validators(Head::new(200), present, &title)
            .field("Content-Type", content_type(&title, &tracks))
            .field("Accept-Ranges", "bytes");
        return Ok(Response::only_head(head, body.len()).into());
    }
    let max_wait = max_wait(shared, request)?;
    let play = play(title, presentation, name, max_wait);
    let is_directed = request.viewer.is_some();
    let play = PlayRequest { permit: permit(request)?, is_directed, ..play };
    Ok(Decision::Admit(Box::new(play), Manifest::File))
}

/// Answers a request for the transport stream of a title at a constant rate.
fn transport_file(
    shared: &Arc<Shared>,
    request: &HttpRequest,
    name: String,
    opened: Option<Arc<OpenTitle>>,
) -> Result<Decision, Decision> {
    let asked = playback_params::rate(&request.query).map_err(|why| bad_parameter(&why))?;
    if request.query("s").is_some() {
        let session =
            find_session_of_file(shared, request, &name, DeliveryFormat::TransportStream)?;
        let (title, part) = (&session.title, &session.presentation);
        let lead = session.tracks().first().filter(|_| part.params.rate.is_some());
        let file = BuiltFile::Transport(*lead.ok_or_else(not_found)?);
        let Some(body) = part.cached_file(&file) else {
            return Ok(Decision::BuildFile(Arc::clone(title), Arc::clone(part), file));
        };
        if asked.is_some() || playback_params::has_any(&request.query) {
            return Ok(manifests_only().into());
        }
        let media = MediaResource::track_file(title, part, &file, body);
        return Ok(media_of_session(request, session, media));
    }
    let rate = asked.ok_or_else(|| rate_missing(&format!("/t/{}", escape(&name))))?;
    let title = title_to_play(shared, request, &name, opened, None)?;
    let params = PlaybackParams::of(&request.query).map_err(|why| bad_parameter(&why))?;
    let params = PlaybackParams { rate: Some(rate), ..params };
    let (presentation, lead) = at_constant_rate(&name, &title, params, &request.permit)?;
    let manifest = Manifest::TransportFile;
    if request.method == Method::Head {
        // As for MP4, the best offer stands for all.
        let file = BuiltFile::Transport(lead);
        let Some(body) = presentation.cached_file(&file) else {
            return Ok(Decision::BuildFile(title, presentation, file));
        };
        let media = MediaResource::track_file(&title, &presentation, &file, body);
        let present =
            Validators { etag: &media.etag, modified: modified(&title, SystemTime::now()) };
        let head = with_validators(Head::new(200), present, &title)
            .field("Content-Type", media.kind)
            .field("Accept-Ranges", "bytes");
        return Ok(Response::only_head(head, media.body.len()).into());
    }
    let max_wait = max_wait(shared, request)?;
    let play = play(title, presentation, name, max_wait);
    let (format, permit) = (manifest.format(), permit(request)?);
    let play = PlayRequest { format, permit, is_directed: request.viewer.is_some(), ..play };
    Ok(Decision::Admit(Box::new(play), manifest))
}

/// The presentation of a title with a transport stream at the constant rate of `params`, and the
/// track that leads its best offer, or what to do instead.
pub(super) fn at_constant_rate(
    name: &str,
    title: &Arc<OpenTitle>,
    params: PlaybackParams,
    permit: &Permit,
) -> Result<(Arc<Presentation>, u16), Decision> {
    let presentation = presentation_of(title, params)?;
    let packaging = &presentation.packaging;
    clear_file(name, packaging)?;
    if params.excerpt.backwards || params.excerpt.skip > 0 {
        return Err(forwards_only().into());
    }
    packaging.transport_offers().map_err(|why| no_transport(name, &why))?;
    if !packaging.is_transport_planned() {
        return Err(Decision::PlanTransport(Arc::clone(title), presentation));
    }
    let format = Manifest::TransportFile.format();
    let best = presentation.best_offer(format, permit).ok_or_else(|| not_permitted(permit))?;
    let lead = *presentation.offers(format)[best].first().ok_or_else(not_found)?;
    let lowest = packaging.lowest_constant_rate(lead).ok_or_else(not_found)?;
    check_rate(lowest, params.rate.ok_or_else(not_found)?)?;
    Ok((presentation, lead))
}

/// Refuses a constant rate that a title with this lowest one cannot have.
fn check_rate(lowest: BitRate, rate: BitRate) -> Result<(), Response> {
    let highest = BitRate(lowest.0.saturating_mul(MOST_FILLED));
    let (word, message) = if rate < lowest {
        (
            "rate-too-low",
            format!(
                "at {rate} packets of this title would come later than they are decoded, or its \
                 clock later than every 40 ms"
            ),
        )
    } else if rate > highest {
        ("rate-too-high", format!("{rate} is more than {MOST_FILLED} times what this title needs"))
    } else {
        return Ok(());
    };
    let hint = format!("ask for a rate from rate={} to rate={}", lowest.0, highest.0);
    Err(Response::json(400, &json!({ "error": word, "message": message, "hint": hint })))
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

/// The file behind an index that a route names.
pub(super) fn indexed_file(route: &Route) -> Option<BuiltFile> {
    match *route {
        Route::TrackFile { track, .. } => Some(BuiltFile::Track(track)),
        Route::IframeFile { track, .. } => Some(BuiltFile::Iframes(track)),
        _ => None,
    }
}

/// The segments, or the I-frames, of a track as one file, or what to do instead.
pub(super) fn track_file(
    title: &Arc<OpenTitle>,
    presentation: &Arc<Presentation>,
    file: BuiltFile,
) -> Result<MediaResource, Decision> {
    let packaging = &presentation.packaging;
    if let Some(body) = presentation.cached_file(&file) {
        return match body.is_empty() {
            true => Err(not_found().into()),
            false => Ok(MediaResource::track_file(title, presentation, &file, body)),
        };
    }
    let exists = match file {
        BuiltFile::Movie(_) | BuiltFile::Transport(_) => false,
        BuiltFile::Track(track) => packaging.segment_count(track) > 0,
        BuiltFile::Iframes(track) => !packaging.iframe_runs(track).is_empty(),
    };
    if !exists || packaging.on_demand().is_err() {
        return Err(not_found().into());
    }
    Err(Decision::BuildFile(Arc::clone(title), Arc::clone(presentation), file))
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

/// The open title of this name, or a recording of it that is running, or what to do instead.
fn title_or_recording(
    shared: &Arc<Shared>,
    request: &HttpRequest,
    name: &str,
    opened: Option<Arc<OpenTitle>>,
) -> Result<Arc<OpenTitle>, Decision> {
    let is_stopping = shared.stopping.load(Ordering::Relaxed);
    let recording = || shared.content.recording(name).filter(|_| !is_stopping);
    match opened.is_none().then(recording).flatten() {
        Some(copy) => newest_look(shared, copy, name),
        None => title_to_play(shared, request, name, opened, None),
    }
}

/// The open title of this name for a request for admission, or what to do instead.
pub(super) fn title_to_play(
    shared: &Arc<Shared>,
    request: &HttpRequest,
    name: &str,
    opened: Option<Arc<OpenTitle>>,
    fill: Option<FillFor>,
) -> Result<Arc<OpenTitle>, Decision> {
    // HEAD begins no session.
    if request.method == Method::Get && shared.stopping.load(Ordering::Relaxed) {
        let client = request.viewer.or(request.peer).map(ClientAddress::of);
        let priority = permit(request).map_or(request.permit.priority, |it| it.priority);
        shared.refuse_at_stop(name, client, priority, fill);
    }
    open_title(shared, name, opened)
}

/// The open title of this name, or what to do instead.
pub(super) fn open_title(
    shared: &Arc<Shared>,
    name: &str,
    opened: Option<Arc<OpenTitle>>,
) -> Result<Arc<OpenTitle>, Decision> {
    if shared.stopping.load(Ordering::Relaxed) {
        return Err(stopping().into());
    }
    if let Some(title) = opened {
        return Ok(title);
    }
    match shared.content.opened(name) {
        Ok(Some(title)) => Ok(title),
        Ok(None) => Err(Decision::Open(name.to_owned())),
        Err(OpenError::NoTitle { .. }) if shared.content.recording(name).is_some() => {
            Err(is_recorded(name).into())
        }
        Err(why) => Err(not_opened(shared, name, &why).into()),
    }
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

/// The session of a request's token, if it is a session of the title `name`.
fn find_session(
    shared: &Shared,
    request: &HttpRequest,
    name: &str,
) -> Result<Arc<PlayerSession>, Response> {
    let failed = |status: u16, code: &str, what: &str| {
        let url = format!("/t/{}", escape(name));
        let manifests = format!("{url}/master.m3u8, {url}/manifest.mpd or {url}.mp4");
        let message = format!("{what}; begin again at {manifests}");
        Err(Response::error(status, code, &message))
    };
    let Some(token) = request.query("s") else {
        return failed(404, "session-missing", "this URL needs the session token of a manifest");
    };
    match shared.sessions.find(token) {
        TokenLookup::Live(session) if session.name == name => Ok(session),
        // 410 tells a player that this URL stays invalid, so that it begins again.
        TokenLookup::Ended => failed(410, "session-ended", "this session has ended"),
        TokenLookup::Live(_) | TokenLookup::Unknown => {
            failed(404, "session-unknown", "this title has no session with this token")
        }
    }
}

/// The session of a request's token, if it began at a file of the title `name` in this format: the
/// session of a manifest may be of a title that is encrypted in segments alone, or of a part that
/// no file has.
fn find_session_of_file(
    shared: &Shared,
    request: &HttpRequest,
    name: &str,
    format: DeliveryFormat,
) -> Result<Arc<PlayerSession>, Response> {
    let session = find_session(shared, request, name)?;
    if session.format == format {
        return Ok(session);
    }
    let message = "the session with this token has segments; request this file without a token of a \
                   session, and it begins its own";
    Err(Response::error(404, "session-unknown", message))
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

/// Refuses the file of a title, in which nothing is encrypted, if the title is to be encrypted.
pub(super) fn clear_file(name: &str, packaging: &Packaging) -> Result<(), Response> {
    if packaging.encryption().is_none() {
        return Ok(());
    }
    let message = "this title is encrypted, which one file cannot be";
    let name = escape(name);
    let hint = format!("play /t/{name}/master.m3u8 or /t/{name}/manifest.mpd");
    let error = json!({ "error": "encrypted", "message": message, "hint": hint });
    Err(Response::json(403, &error))
}

/// The video renditions to list: the admitted one and those below it, so that a player that
/// switches never requests more than was reserved.
fn videos(session: &PlayerSession) -> Vec<u16> {
    let offers = session.presentation.offers(session.format)[session.offer..].iter();
    let tracks = &session.presentation.packaging.index().tracks;
    let is_video = |track: &u16| tracks[usize::from(*track)].description.kind == TrackKind::Video;
    offers.filter_map(|offer| offer.iter().copied().find(is_video)).collect()
}

/// Titles and recordings, with the URLs of those that can be played.
fn title_list(request: &HttpRequest, shared: &Shared) -> Response {
    let limit = match request.query("limit").map(str::parse::<NonZeroU32>) {
        Some(Err(_)) => {
            let why = "limit is a number of titles, at least 1";
            return bad_parameter(&BadParameter(why.to_owned()));
        }
        Some(Ok(limit)) => limit.min(LARGEST_LIST),
        None => LARGEST_LIST,
    };
    let text = |key| request.query(key).map(str::to_owned);
    let (folder, after, search) = (text("folder"), text("after"), text("search"));
    let wanted = TitleSelection { folder, after, search, limit: Some(limit) };
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let mut list = shared.content.list(&wanted, now.as_secs());
    for title in list.titles.iter_mut().filter(|title| title.kind == wire::MEDIA_KIND) {
        let is_encrypted = shared.content.is_encrypted(&title.name);
        if title.growing && is_encrypted {
            continue;
        }
        let name = escape(&title.name);
        title.hls = Some(format!("/t/{name}/master.m3u8"));
        title.dash = Some(format!("/t/{name}/manifest.mpd"));
        title.mp4 = (!is_encrypted && !title.growing).then(|| format!("/t/{name}.mp4"));
    }
    Response::json(200, &list)
}

/// Titles in one list, at most: an HTTP thread makes it, which has other viewers to serve.
const LARGEST_LIST: NonZeroU32 = NonZeroU32::new(10_000).expect("more than zero");

/// A response that names a session must not be given to another player.
fn uncached(mut response: Response) -> Response {
    response.head = response.head.field("Cache-Control", "no-store");
    response
}

fn health(shared: &Shared) -> Response {
    if shared.stopping.load(Ordering::Relaxed) {
        return stopping();
    }
    let has_failed = shared.has_failed.load(Ordering::Relaxed);
    if has_failed || shared.is_stuck(shared.clock.now()) {
        let message = "this server does not serve all its viewers any more; restart it";
        return Response::error(503, "stuck", message);
    }
    Response::json(200, &json!({ "status": "ok" }))
}

/// The highest constant rate, in multiples of the lowest one that a title can have. The network is
/// reserved for what the title has, not for null packets.
const MOST_FILLED: u64 = 4;
/// The address of the server's time from a manifest of a session, `/t/TITLE/manifest.mpd`:
/// relative, so that it is right behind a proxy, too.
const CLOCK: &str = "../../time";
/// A cache asks each time, so that the player of an ended session learns of its end.
pub(super) const ASK_EACH_TIME: &str = "private, no-cache";
/// The parameter of the steering server with the names of a manifest's media playlists.
const PLAYLISTS: &str = "names";
/// The parameter of the steering server with the names of the nodes in a DASH manifest.
const LOCATIONS: &str = "locations";
