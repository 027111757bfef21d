//! Players of RTSP who come through a director: the director asks over HTTP, as for any viewer, and
//! the answer is an address of this node's RTSP port with a ticket.
//!
//! ```text
//!   director ──GET /t/film/rtsp──▶ tracks that a description names ──▶ admission, from ?start= on
//!            ◀──201, Location: rtsp://node/t/film?ticket=.. ─────────────┘ kept for 15 s
//!   player ──DESCRIBE rtsp://node/t/film?ticket=..──▶ the RTSP thread, whose PLAY goes on with it
//! ```
//!
//! Only directors may ask: a player of this node alone reserves with its PLAY.

use super::response::Response;
use crate::access::Permit;
use crate::library::OpenTitle;
use crate::messages::{Manifest, PlayRequest};
use crate::rtsp::{self, OfferedStream};
use crate::sessions::PlayerSession;
use crate::shared::Shared;
use engine::MaxWait;
use rtsp_message::headers::StreamName;
use std::sync::Arc;
use std::time::Duration;

/// The response to a director that asks for a player of a title which cannot be sent over RTSP, or
/// not by this node.
pub(super) fn refusal(shared: &Shared, name: &str) -> Option<Response> {
    let has_rtsp = shared.membership.as_ref().is_some_and(|membership| membership.has_rtsp());
    if !has_rtsp {
        return Some(no_rtsp());
    }
    let message = "this title is encrypted, which RTSP cannot be; play it with HLS or DASH";
    let encrypted = || Response::error(403, "encrypted", message);
    shared.content.is_encrypted(name).then(encrypted)
}

/// The admission request of a player, for the tracks that a description names. `start`: where a
/// player goes on with a title that it has begun at another node; `for_disk`: how long it waits
/// where the disk needs that also without other viewers.
pub(super) fn play_request(
    for_disk: Duration,
    title: Arc<OpenTitle>,
    name: String,
    is_transport: bool,
    permit: Permit,
    start: Option<Duration>,
) -> Result<PlayRequest, Response> {
    let stream = is_transport.then_some(StreamName::Transport);
    let streams = rtsp::described(&title, stream, &permit)
        .map_err(|reply| Response::error(reply.status, "not-over-rtsp", reply.text().trim()))?;
    let tracks = streams.iter().flat_map(OfferedStream::tracks).copied().collect();
    let whole = Arc::clone(&title.whole);
    let start = start.filter(|start| *start < whole.packaging.duration()).unwrap_or_default();
    let format = Manifest::OverRtsp { is_transport }.format();
    let max_wait = MaxWait { for_disk, ..MaxWait::default() };
    Ok(PlayRequest {
        tracks: Some(tracks),
        start,
        permit,
        is_directed: true,
        ..PlayRequest::new(title, whole, name, format, max_wait)
    })
}

/// The response with the address at which the player goes on.
pub(super) fn admitted(shared: &Shared, session: &PlayerSession) -> Response {
    let membership = shared.membership.as_ref();
    let location = membership.and_then(|membership| membership.rtsp_location(session));
    location.map_or_else(no_rtsp, |location| Response::created(&location))
}

fn no_rtsp() -> Response {
    Response::error(503, "no-rtsp", "this node has no RTSP; start it with --rtsp")
}
