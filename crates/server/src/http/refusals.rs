//! Responses to requests that get no media: why, in one stable word and a sentence, and what to do
//! instead.

use super::error_response;
use super::response::Response;
use super::routes::escape;
use crate::access::Permit;
use crate::library::OpenError;
use crate::messages::AdmissionError;
use crate::playback_params::BadParameter;
use crate::shared::Shared;
use media::{NoSegmentIndex, NoTransportForm, PackagingError};
use serde_json::json;
use std::time::Duration;

/// The response to a player of the title `name` that was not admitted.
pub(crate) fn not_admitted(name: &str, why: AdmissionError) -> Response {
    match why {
        AdmissionError::Refused(refusal) => Response::refused(&refusal),
        AdmissionError::TitleRemoved => no_title(name, None),
        AdmissionError::Stopping => stopping(),
        AdmissionError::TooManyUnplayed { client, most } => {
            let message = format!(
                "{client} has {most} sessions that it has not begun to play, the most it may have; \
                 play one of them, or try again when they have expired"
            );
            Response::retry_later(429, "too-many-unplayed", &message, UNPLAYED_RETRY)
        }
        AdmissionError::FormatUnavailable => forwards_only(),
        AdmissionError::NotPermitted(permit) => not_permitted(&permit),
        AdmissionError::Ended(why) => error_response::of(&why),
        AdmissionError::Failed(error) => Response::error(500, "internal", &error),
    }
}

/// The response to a request for pictures that a viewer is not permitted, by the token or by the
/// operator's service.
pub(super) fn not_permitted(permit: &Permit) -> Response {
    let most = permit.max_height.unwrap_or(u32::MAX);
    let message =
        format!("this viewer may play pictures up to a height of {most}, and these are higher");
    Response::error(403, "token-not-allowed", &message)
}

/// The response to a player whose title could not be opened. Where tokens open titles, none is told
/// of another than it has asked for.
pub(crate) fn not_opened(shared: &Shared, name: &str, why: &OpenError) -> Response {
    match why {
        OpenError::NoTitle { .. } if shared.access.has_keys() => no_title(name, None),
        why => open_failed(name, why),
    }
}

/// The response to a request whose title could not be opened.
pub(crate) fn open_failed(name: &str, why: &OpenError) -> Response {
    match why {
        OpenError::NoTitle { nearest } => no_title(name, nearest.as_deref()),
        OpenError::NotPlayable(PackagingError::File) => Response::error(
            404,
            "not-media",
            "this title was ingested as a file, not as media; `tenuto export` writes it out",
        ),
        OpenError::NotPlayable(why) => Response::error(404, "not-playable", &why.to_string()),
        OpenError::NotEncryptedYet => Response::error(
            403,
            "encrypted",
            "this title is to be encrypted, which is done when its recording has ended; play it then",
        ),
        OpenError::NoKeys(_) => Response::unavailable(
            "no-keys",
            "this title is encrypted, and its key server does not give its keys; try again in a \
             few seconds",
            NO_KEYS_RETRY,
        ),
        OpenError::NotYet => Response::unavailable(
            "not-yet",
            "the recording of this title has just begun, and no segment of it is there; try again \
             in a few seconds",
            NOT_YET_RETRY,
        ),
        OpenError::DiskBusy => Response::unavailable(
            "busy",
            "all disk time is reserved by sessions, and this title could not be opened in time; \
             try again later",
            BUSY_RETRY,
        ),
        OpenError::Failed(error) => Response::error(500, "store-failed", error),
    }
}

pub(super) fn bad_parameter(BadParameter(why): &BadParameter) -> Response {
    Response::error(400, "bad-parameter", why)
}

pub(super) fn forwards_only() -> Response {
    let why = "a file leaves out no pictures and has them forwards; use skip and a negative speed \
               with master.m3u8 or manifest.mpd";
    Response::error(400, "forwards-only", why)
}

/// `url`: the path of the title, without an extension.
pub(super) fn rate_missing(url: &str) -> Response {
    let message = "a transport stream in one file has a constant rate, and the address names none";
    let hint = format!("ask for {url}.ts?rate=8Mbps, or play {url}/master-ts.m3u8");
    Response::json(400, &json!({ "error": "rate-missing", "message": message, "hint": hint }))
}

pub(super) fn manifests_only() -> Response {
    let why = "start, stop, speed, skip, wait, priority and rate belong to the address that a \
               session begins with; request that with them";
    Response::error(400, "bad-parameter", why)
}

pub(super) fn stopping() -> Response {
    let message = "this server is stopping and admits no new session; try again later";
    Response::unavailable("stopping", message, STOPPING_RETRY)
}

/// The response to a request for a form of a title that is not there while it is recorded.
pub(super) fn is_recorded(name: &str) -> Response {
    let message = format!("the title '{}' is being recorded", name.escape_debug());
    let url = format!("/t/{}", escape(name));
    let hint = format!(
        "play {url}/master.m3u8 or {url}/manifest.mpd; its other forms are there when the recording \
         has ended"
    );
    Response::json(404, &json!({ "error": "no-title", "message": message, "hint": hint }))
}

pub(super) fn no_title(name: &str, nearest: Option<&str>) -> Response {
    let message = format!("there is no title '{}'", name.escape_debug());
    let hint = nearest.map_or_else(
        || "/titles lists the titles".to_owned(),
        |title| format!("did you mean '{}'?", title.escape_debug()),
    );
    let error = json!({ "error": "no-title", "message": message, "hint": hint });
    Response::json(404, &error)
}

pub(super) fn no_transport(name: &str, why: &NoTransportForm) -> Response {
    let message = format!("this title is not offered as HLS with transport streams: {why}");
    let hint = format!("/t/{}/master.m3u8 has it in fragmented MP4", escape(name));
    let error = json!({ "error": "no-transport-stream", "message": message, "hint": hint });
    Response::json(404, &error)
}

pub(super) fn no_on_demand(name: &str, why: &NoSegmentIndex) -> Response {
    let message = format!("this title is not offered as files with an index of segments: {why}");
    let hint =
        format!("/t/{}/manifest.mpd has each segment at an address of its own", escape(name));
    let error = json!({ "error": "no-segment-index", "message": message, "hint": hint });
    Response::json(404, &error)
}

pub(super) fn not_found() -> Response {
    Response::error(404, "not-found", "there is nothing here; /titles lists what can be played")
}

/// After this long, players behind the same address have begun to play.
const UNPLAYED_RETRY: Duration = Duration::from_secs(2);
/// A segment takes some seconds.
const NOT_YET_RETRY: Duration = Duration::from_secs(2);
const BUSY_RETRY: Duration = Duration::from_secs(2);
/// After this long the key server is asked again.
const NO_KEYS_RETRY: Duration = Duration::from_secs(10);
/// A restart takes some seconds.
const STOPPING_RETRY: Duration = Duration::from_secs(10);
