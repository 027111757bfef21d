//! The response to a request for bytes that the engine does not serve: a status after which players
//! do the right thing, one stable word, and a sentence.

use super::response::Response;
use crate::messages::RequestError;
use engine::{CutShort, DeclineReason, ReadOutcome};
use std::fmt;
use std::time::Duration;

/// The response, for a request of which no bytes have been sent.
pub(crate) fn of(why: &RequestError) -> Response {
    let message = why.to_string();
    match why {
        RequestError::Refused(refusal) => Response::refused(refusal),
        RequestError::Declined(DeclineReason::TooManyRequests { .. }) => {
            Response::retry_later(429, "too-many-requests", &message, RETRY_AFTER)
        }
        // Players repeat a request after a 503, most do not after a 4xx; the repeated request
        // then moves the session's position.
        RequestError::Declined(DeclineReason::Superseded) => {
            Response::unavailable("superseded", &message, RETRY_AFTER)
        }
        RequestError::ReadFailed(_) => Response::error(500, "read-failed", &message),
        RequestError::CutShort(CutShort::DiskLost) => {
            Response::unavailable("disk-lost", &message, RETRY_AFTER)
        }
        RequestError::CutShort(_) => Response::error(410, "session-preempted", &message),
        RequestError::SessionEnded => Response::error(410, "session-ended", &message),
    }
}

impl fmt::Display for RequestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Refused(_) => "the server has no capacity for this seek or change of tracks now",
            Self::Declined(DeclineReason::TooManyRequests { most }) => {
                return write!(
                    f,
                    "this session has {most} requests open, the most it may have; read their \
                     responses first, or begin another session at the manifest"
                );
            }
            Self::Declined(DeclineReason::Superseded) => {
                "a later request of this session has moved its position in this track, and a \
                 session has one position in each track; repeat this request to return to it, or \
                 begin another session at the manifest"
            }
            Self::ReadFailed(ReadOutcome::Damaged) => {
                "the stored bytes are damaged; `tenuto check` finds where"
            }
            Self::ReadFailed(_) => {
                "the disk failed to read these bytes; `tenuto check` finds where"
            }
            Self::CutShort(CutShort::DiskLost) => {
                "the disk with this title is lost, and no other disk has a copy and room for this \
                 session; begin again at the manifest"
            }
            Self::CutShort(CutShort::Priority) => {
                "a viewer of a higher priority has the place of this session now; begin again at \
                 the manifest when there is room"
            }
            Self::CutShort(CutShort::Overload) => {
                "the disk with this title has become too slow for all its viewers, and this session \
                 has ended; begin again at the manifest when there is room"
            }
            Self::SessionEnded => "the session has ended; begin again at the manifest",
        })
    }
}

/// After the loss of a disk or a conflict within its session, a player may retry at once.
const RETRY_AFTER: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_error_has_its_status_word_and_retry_advice() {
        let table = [
            (
                RequestError::Declined(DeclineReason::TooManyRequests { most: 16 }),
                429,
                "too-many-requests",
                true,
                "16 requests",
            ),
            (
                RequestError::Declined(DeclineReason::Superseded),
                503,
                "superseded",
                true,
                "one position",
            ),
            (
                RequestError::ReadFailed(ReadOutcome::Damaged),
                500,
                "read-failed",
                false,
                "tenuto check",
            ),
            (
                RequestError::ReadFailed(ReadOutcome::Failed),
                500,
                "read-failed",
                false,
                "failed to read",
            ),
            (
                RequestError::CutShort(CutShort::DiskLost),
                503,
                "disk-lost",
                true,
                "no other disk has a copy",
            ),
            (
                RequestError::CutShort(CutShort::Priority),
                410,
                "session-preempted",
                false,
                "a higher priority",
            ),
            (
                RequestError::CutShort(CutShort::Overload),
                410,
                "session-preempted",
                false,
                "too slow",
            ),
            (RequestError::SessionEnded, 410, "session-ended", false, "at the manifest"),
        ];
        for (why, status, word, retry, says) in table {
            let response = of(&why);
            let body: serde_json::Value = serde_json::from_slice(&response.body).unwrap();
            let message = body["message"].as_str().unwrap();
            assert_eq!((response.head.status(), body["error"].as_str().unwrap()), (status, word));
            assert!(message.contains(says), "{message}");
            assert!(!message.contains("booked"), "no other session is the reason: {message}");
            let head = String::from_utf8(response.head.finish(response.length, true)).unwrap();
            assert_eq!(head.contains("\r\nRetry-After: 1\r\n"), retry, "{head}");
        }
    }
}
