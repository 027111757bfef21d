//! Which requests need a token, what it permits, and the responses to those without one.

use super::request::{HttpRequest, Method};
use super::response::Response;
use super::routes::Route;
use crate::access::{CheckedToken, TokenNeed};
use crate::membership::in_no_cluster;
use crate::playback_params;
use crate::sessions::{PlayerSession, TokenLookup};
use crate::shared::Shared;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::SystemTime;

/// What the client at `peer` may play by the token of its request, or the response to a request
/// that it may not make.
pub(super) fn permit(
    shared: &Shared,
    request: &HttpRequest,
    peer: IpAddr,
) -> Result<CheckedToken, Response> {
    // Browsers send OPTIONS without credentials, to ask whether they may send them.
    if request.method == Method::Options {
        return Ok(CheckedToken::default());
    }
    let route = Route::of(&request.path);
    let needed = route.as_ref().and_then(|route| needed(route, request.query("s").is_some()));
    let Some(access) = needed else { return Ok(CheckedToken::default()) };
    let directed = route.as_ref().and_then(|route| session_of_director(shared, request, route));
    if directed.is_some() {
        return Ok(CheckedToken::default());
    }
    let token = request.token.as_deref();
    let checked = shared.access.check_token(access, token, peer, SystemTime::now());
    checked.map_err(|why| {
        let (status, code) = why.status();
        let mut response = Response::error(status, code, &why.to_string());
        response.head.add("WWW-Authenticate", why.challenge());
        response
    })
}

/// The response to a client at `peer` with a session whose token of access is for another address.
pub(super) fn other_client(peer: IpAddr) -> Response {
    let message = format!(
        "this session was begun with a token that is for another address than {peer}; begin another \
         session at the manifest"
    );
    Response::error(403, "token-not-allowed", &message)
}

/// The viewer for whom a director asks; `None` for a request that is no director's. `Err`: the
/// answer to a question that is not to be answered.
pub(super) fn viewer(shared: &Shared, request: &HttpRequest) -> Result<Option<IpAddr>, Response> {
    let Some(question) = &request.question else { return Ok(None) };
    let membership = shared.membership.as_ref().ok_or_else(in_no_cluster)?;
    let viewer = membership.viewer_of(question)?;
    let route = Route::of(&request.path);
    let begins = route.is_some_and(|route| route.begins_session() && request.query("s").is_none());
    if !begins || request.method != Method::Get {
        let message =
            "a director asks with GET for a manifest, a file or RTSP, as a viewer who begins";
        return Err(Response::error(400, "bad-question", message));
    }
    Ok(Some(viewer))
}

/// The session that a director has asked for, at the manifest for which it did.
pub(super) fn session_of_director(
    shared: &Shared,
    request: &HttpRequest,
    route: &Route,
) -> Option<Arc<PlayerSession>> {
    let (title, manifest) = route.manifest()?;
    let TokenLookup::Live(session) = shared.sessions.find(request.query("s")?) else { return None };
    let is_it = session.is_directed
        && session.name == title
        && session.format == manifest.format()
        && !playback_params::has_any(&request.query);
    is_it.then_some(session)
}

/// What a request needs a token for; `None` if for nothing. `of_session`: it names a session, whose
/// own token is checked instead.
fn needed(route: &Route, of_session: bool) -> Option<TokenNeed<'_>> {
    match route {
        Route::Progressive { .. }
        | Route::TransportFile { .. }
        | Route::TextFile { .. }
        | Route::ThumbnailCues { .. }
        | Route::ThumbnailImage { .. }
            if of_session =>
        {
            None
        }
        Route::Master { title, .. }
        | Route::TransportMaster { title }
        | Route::DashManifest { title, .. }
        | Route::OnDemandManifest { title, .. }
        | Route::Progressive { title }
        | Route::TransportFile { title, .. }
        | Route::OverRtsp { title, .. }
        | Route::TextFile { title, .. }
        | Route::ThumbnailCues { title }
        | Route::ThumbnailImage { title, .. } => Some(TokenNeed::Title(title)),
        Route::Origin { title, .. } => Some(TokenNeed::Origin(title)),
        Route::Titles => Some(TokenNeed::TitleList),
        Route::Sessions | Route::Status | Route::Metrics => Some(TokenNeed::Server),
        // The page holds no data; a load balancer asks for the health, and all responses have the
        // time.
        Route::Root | Route::Console(_) | Route::Health | Route::Time => None,
        // Signed with the secret of the cluster, which is checked with all else that it says.
        Route::Part { .. } => None,
        Route::Playlist { .. }
        | Route::TransportPlaylist { .. }
        | Route::TransportSegment { .. }
        | Route::IframePlaylist { .. }
        | Route::Iframe { .. }
        | Route::Init { .. }
        | Route::DashInit { .. }
        | Route::TrackFile { .. }
        | Route::IframeFile { .. }
        | Route::Segment { .. }
        | Route::TextPlaylist { .. }
        | Route::TextInit { .. }
        | Route::ThumbnailPlaylist { .. }
        | Route::TextSegment { .. }
        | Route::Key { .. }
        | Route::Session { .. } => None,
    }
}
