//! Files: MP4 and transport streams, of which players fetch ranges.

use super::admission::{max_wait, permit, play};
use super::found::{find_presentation, find_session, presentation_of, title_to_admit};
use super::{Decision, media_of_session};
use crate::access::Permit;
use crate::http::conditions::Validators;
use crate::http::ranged::{modified, with_validators};
use crate::http::refusals::{
    bad_parameter, forwards_only, manifests_only, no_transport, not_found, not_permitted,
    rate_missing,
};
use crate::http::request::{HttpRequest, Method};
use crate::http::resource::{MediaResource, content_type, file_etag};
use crate::http::response::{Head, Response};
use crate::http::routes::{Route, escape};
use crate::layout::DeliveryFormat;
use crate::library::OpenTitle;
use crate::messages::{Manifest, PlayRequest};
use crate::playback_params::{self, PlaybackParams};
use crate::presentation::{BuiltFile, Presentation};
use crate::sessions::PlayerSession;
use crate::shared::Shared;
use media::Packaging;
use serde_json::json;
use std::sync::Arc;
use std::time::SystemTime;
use units::BitRate;

pub(super) fn progressive(
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
    let title = title_to_admit(shared, request, &name, opened, None)?;
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
pub(super) fn transport_file(
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
    let title = title_to_admit(shared, request, &name, opened, None)?;
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
pub(crate) fn at_constant_rate(
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

/// The file behind an index that a route names.
pub(crate) fn indexed_file(route: &Route) -> Option<BuiltFile> {
    match *route {
        Route::TrackFile { track, .. } => Some(BuiltFile::Track(track)),
        Route::IframeFile { track, .. } => Some(BuiltFile::Iframes(track)),
        _ => None,
    }
}

/// The segments, or the I-frames, of a track as one file, or what to do instead.
pub(crate) fn track_file(
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

/// Refuses the file of a title, in which nothing is encrypted, if the title is to be encrypted.
pub(crate) fn clear_file(name: &str, packaging: &Packaging) -> Result<(), Response> {
    if packaging.encryption().is_none() {
        return Ok(());
    }
    let message = "this title is encrypted, which one file cannot be";
    let name = escape(name);
    let hint = format!("play /t/{name}/master.m3u8 or /t/{name}/manifest.mpd");
    let error = json!({ "error": "encrypted", "message": message, "hint": hint });
    Err(Response::json(403, &error))
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

/// The highest constant rate, in multiples of the lowest one that a title can have. The network is
/// reserved for what the title has, not for null packets.
const MOST_FILLED: u64 = 4;
