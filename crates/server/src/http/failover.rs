//! Viewers who were admitted at another node of the cluster, lost it, and go on here.
//!
//! ```text
//!   playlist, init, key, text   ──ticket──▶ answered from memory, its addresses with the ticket
//!   segment                     ──ticket──▶ admission at the time of the segment, under the token
//!                                           of the session ──▶ the usual path of a session
//! ```
//!
//! The segment tells where the viewer is, so that nothing before it is reserved. The ticket stands
//! for the access token that the viewer showed at the other node; whether the viewer fits is
//! decided as for any other.

use super::answer::{ASK_EACH_TIME, Decision, key, play, title_to_admit};
use super::authorize;
use super::refusals::{not_found, not_permitted};
use super::request::HttpRequest;
use super::resource::{self, TitleResource};
use super::response::Response;
use super::routes::Route;
use crate::access::Permit;
use crate::layout::DeliveryFormat;
use crate::library::OpenTitle;
use crate::membership::permit_of;
use crate::messages::PlayRequest;
use crate::playback_params::PlaybackParams;
use crate::presentation::Presentation;
use crate::sessions::{Token, TokenLookup};
use crate::shared::Shared;
use engine::MaxWait;
use media::CueClock;
use std::sync::Arc;

/// A viewer of another node.
pub(super) struct FailoverViewer {
    token: Token,
    name: String,
    title: Arc<OpenTitle>,
    presentation: Arc<Presentation>,
    permit: Permit,
    /// The query of all addresses that the viewer gets.
    query: String,
}

/// The viewer of another node from whom a request comes; `None` if from another. `Err`: what to do
/// first, or the answer to a ticket that is not accepted.
pub(super) fn of(
    shared: &Arc<Shared>,
    request: &HttpRequest,
    route: &Route,
    opened: Option<&Arc<OpenTitle>>,
) -> Result<Option<FailoverViewer>, Decision> {
    let asked =
        (route.failover_title(), request.query("ticket"), request.query("s"), &shared.membership);
    let (Some(name), Some(text), Some(session), Some(membership)) = asked else { return Ok(None) };
    // Once admitted, or ended, the session is one of this node.
    if !matches!(shared.sessions.find(session), TokenLookup::Unknown) {
        return Ok(None);
    }
    let ticket = membership.ticket(text).map_err(|why| invalid(&format!("{why}; begin again")))?;
    let token: Token = session.parse().map_err(|()| invalid("the session's token is none"))?;
    if ticket.session != session || ticket.title != name {
        return Err(invalid("the ticket is of another session or title").into());
    }
    let permit = permit_of(&ticket);
    if let Some(peer) = request.peer.filter(|peer| !permit.is_for(*peer)) {
        return Err(authorize::other_client(peer).into());
    }
    let title = title_to_admit(shared, request, name, opened.cloned(), None)?;
    // While nodes are upgraded one after the other, viewers go on at those of either version.
    if title.version != ticket.version && !title.is_of_other_program(&ticket.version) {
        let message = "this node has another version of the title, whose segments differ";
        return Err(Response::error(404, "other-version", message).into());
    }
    let params = PlaybackParams::of_text(&ticket.part);
    let params = params.map_err(|_| invalid("the ticket names no part of a title"))?;
    let presentation = match title.cached_presentation(&params) {
        Some(Ok(presentation)) => presentation,
        Some(Err(_)) => return Err(invalid("the ticket names no part of this title").into()),
        None => return Err(Decision::BuildPresentation(title, params)),
    };
    let query = format!("?s={token}&ticket={text}");
    let name = name.to_owned();
    Ok(Some(FailoverViewer { token, name, title, presentation, permit, query }))
}

/// Answers a viewer of another node.
pub(super) fn answer(
    shared: &Arc<Shared>,
    route: &Route,
    viewer: FailoverViewer,
) -> Result<Decision, Decision> {
    let FailoverViewer { token, name, title, presentation, permit, query } = viewer;
    if route.track().is_some_and(|track| !presentation.permits(&permit, track)) {
        return Ok(not_permitted(&permit).into());
    }
    if let Route::Key { id, .. } = route {
        return Ok(key(&presentation, id).into());
    }
    let found = resource::find(route, &title, &presentation, CueClock::Segments, &query);
    match found.ok_or_else(not_found)? {
        TitleResource::InMemory(found) => Ok(found.response(&title, ASK_EACH_TIME).into()),
        TitleResource::Media(_) => {
            let start = match *route {
                Route::Segment { track, number, .. } => {
                    presentation.packaging.segment_start(track, number)
                }
                _ => None,
            };
            let segment = shared.content.segment();
            let start = start.unwrap_or_else(|| title.start(segment));
            let for_disk = shared.settings().wait;
            let max_wait = MaxWait { for_disk, ..MaxWait::default() };
            let play = play(title, presentation, name, max_wait);
            Ok(Decision::FailOver(Box::new(PlayRequest {
                format: DeliveryFormat::Segmented,
                start,
                permit,
                is_directed: true,
                token: Some(token),
                ..play
            })))
        }
    }
}

fn invalid(message: &str) -> Response {
    Response::error(403, "ticket-invalid", message)
}
