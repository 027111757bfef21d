//! What a request is about: a title, a part of it, a session; or what is to be done first.

use super::Decision;
use super::admission::permit;
use crate::clients::ClientAddress;
use crate::http::refusals::{bad_parameter, is_recorded, not_opened, stopping};
use crate::http::request::{HttpRequest, Method};
use crate::http::response::Response;
use crate::http::routes::escape;
use crate::library::{OpenError, OpenTitle, StoredCopy};
use crate::playback_params::{BadParameter, PlaybackParams};
use crate::presentation::Presentation;
use crate::sessions::{PlayerSession, TokenLookup};
use crate::shared::Shared;
use engine::FillFor;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The open title of this name, or a recording of it that is running, or what to do instead.
pub(super) fn title_or_recording(
    shared: &Arc<Shared>,
    request: &HttpRequest,
    name: &str,
    opened: Option<Arc<OpenTitle>>,
) -> Result<Arc<OpenTitle>, Decision> {
    let is_stopping = shared.stopping.load(Ordering::Relaxed);
    let recording = || shared.content.recording(name).filter(|_| !is_stopping);
    match opened.is_none().then(recording).flatten() {
        Some(copy) => newest_look(shared, copy, name),
        None => title_to_admit(shared, request, name, opened, None),
    }
}

/// The newest look at a recording, or what to do instead.
pub(super) fn newest_look(
    shared: &Shared,
    copy: StoredCopy,
    name: &str,
) -> Result<Arc<OpenTitle>, Decision> {
    match shared.content.newest(copy) {
        Some(look) => look.map_err(|why| not_opened(shared, name, &why).into()),
        None => Err(Decision::Look(copy, name.to_owned())),
    }
}

/// The open title of this name for a request for admission, or what to do instead.
pub(crate) fn title_to_admit(
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
pub(crate) fn open_title(
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

/// The presentation that a request's parameters describe, or what to do instead.
pub(super) fn find_presentation(
    request: &HttpRequest,
    title: &Arc<OpenTitle>,
) -> Result<Arc<Presentation>, Decision> {
    let params = PlaybackParams::of(&request.query).map_err(|why| bad_parameter(&why))?;
    presentation_of(title, params)
}

/// The presentation with these parameters, or what to do instead.
pub(super) fn presentation_of(
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

/// The session of a request's token, if it is a session of the title `name`.
pub(super) fn find_session(
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
