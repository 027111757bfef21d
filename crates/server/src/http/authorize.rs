//! Which requests need a token, what it permits, and the responses to those without one.

use super::request::{HttpRequest, Method};
use super::response::Response;
use super::routes::Route;
use crate::access::{Permit, TokenNeed};
use crate::shared::Shared;
use std::net::IpAddr;
use std::time::SystemTime;

/// What the client at `peer` may play by the token of its request, or the response to a request
/// that it may not make.
pub(super) fn permit(
    shared: &Shared,
    request: &HttpRequest,
    peer: IpAddr,
) -> Result<Permit, Response> {
    // Browsers send OPTIONS without credentials, to ask whether they may send them.
    if request.method == Method::Options {
        return Ok(Permit::default());
    }
    let route = Route::of(&request.path);
    let needed = route.as_ref().and_then(|route| needed(route, request.query("s").is_some()));
    let Some(access) = needed else { return Ok(Permit::default()) };
    let permit = shared.access.check(access, request.token.as_deref(), peer, SystemTime::now());
    permit.map_err(|why| {
        let (status, code) = why.status();
        let mut response = Response::error(status, code, &why.to_string());
        response.head.add("WWW-Authenticate", why.challenge());
        response
    })
}

/// What a request needs a token for; `None` if for nothing. `of_session`: it names a session, whose
/// own token is checked instead.
fn needed(route: &Route, of_session: bool) -> Option<TokenNeed<'_>> {
    match route {
        Route::Progressive { .. }
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
        | Route::TextFile { title, .. }
        | Route::ThumbnailCues { title }
        | Route::ThumbnailImage { title, .. } => Some(TokenNeed::Title(title)),
        Route::Origin { title, .. } => Some(TokenNeed::Origin(title)),
        Route::Titles => Some(TokenNeed::TitleList),
        Route::Sessions | Route::Status | Route::Metrics => Some(TokenNeed::Server),
        // The page holds no data; a load balancer asks for the health.
        Route::Root | Route::Console(_) | Route::Health => None,
        Route::Playlist { .. }
        | Route::TransportPlaylist { .. }
        | Route::TransportSegment { .. }
        | Route::IframePlaylist { .. }
        | Route::Iframe { .. }
        | Route::Init { .. }
        | Route::DashInit { .. }
        | Route::TrackFile { .. }
        | Route::Segment { .. }
        | Route::TextPlaylist { .. }
        | Route::TextInit { .. }
        | Route::ThumbnailPlaylist { .. }
        | Route::TextSegment { .. }
        | Route::Key { .. }
        | Route::Session { .. } => None,
    }
}
