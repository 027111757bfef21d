//! Manifests: those of segments begin sessions, and an admitted player gets its own.

use super::admission::{max_wait, permit, play};
use super::found::{find_presentation, newest_look, title_or_recording};
use super::{Decision, uncached};
use crate::http::over_rtsp;
use crate::http::refusals::{no_on_demand, no_transport, not_admitted, not_permitted};
use crate::http::request::{HttpRequest, Method};
use crate::http::resource::PLAYLIST;
use crate::http::response::Response;
use crate::http::routes::escape;
use crate::library::OpenTitle;
use crate::messages::{AdmissionError, Manifest, PlayRequest};
use crate::playback_params;
use crate::presentation::Presentation;
use crate::sessions::{PlayerSession, TokenLookup};
use crate::shared::Shared;
use media::{ContentSteering, Links, Packaging, TextForm, TrackKind};
use std::sync::Arc;

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
pub(super) fn segmented(
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
pub(super) fn extend_first(
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
pub(crate) fn manifest_text(
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
pub(crate) fn all_videos(presentation: &Presentation, manifest: Manifest, best: usize) -> Vec<u16> {
    let offers = presentation.offers(manifest.format())[best..].iter();
    offers.filter_map(|offer| offer.first().copied()).collect()
}

/// The video renditions to list: the admitted one and those below it, so that a player that
/// switches never requests more than was reserved.
fn videos(session: &PlayerSession) -> Vec<u16> {
    let offers = session.presentation.offers(session.format)[session.offer..].iter();
    let tracks = &session.presentation.packaging.index().tracks;
    let is_video = |track: &u16| tracks[usize::from(*track)].description.kind == TrackKind::Video;
    offers.filter_map(|offer| offer.iter().copied().find(is_video)).collect()
}

/// The address of the server's time from a manifest of a session, `/t/TITLE/manifest.mpd`:
/// relative, so that it is right behind a proxy, too.
const CLOCK: &str = "../../time";

/// The parameter of the steering server with the names of a manifest's media playlists.
const PLAYLISTS: &str = "names";

/// The parameter of the steering server with the names of the nodes in a DASH manifest.
const LOCATIONS: &str = "locations";
