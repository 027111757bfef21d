//! What a player is told whose request the engine does not serve, or not any more: a status that makes
//! it do the right thing, one stable word, and a sentence.

use super::response::Reply;
use crate::core::Undone;
use crate::engine::{Declined, ReadOutcome};
use std::fmt;
use std::time::Duration;

/// The answer, where nothing of another has been sent yet.
pub(crate) fn reply(why: &Undone) -> Reply {
    let message = why.to_string();
    match why {
        Undone::Refused(refusal) => Reply::refused(refusal),
        Undone::Declined(Declined::TooMany { .. }) => {
            Reply::later(429, "requests", &message, COME_BACK)
        }
        // After a 503 players ask again, which after a 4xx most do not; then they have the place.
        Undone::Declined(Declined::Elsewhere) => Reply::busy("elsewhere", &message, COME_BACK),
        Undone::Failed(_) => Reply::error(500, "bytes-lost", &message),
        Undone::Lost => Reply::busy("disk-lost", &message, COME_BACK),
        Undone::Ended => Reply::error(410, "session-ended", &message),
    }
}

impl fmt::Display for Undone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Refused(_) => "a seek or another track does not fit now",
            Self::Declined(Declined::TooMany { most }) => {
                return write!(
                    f,
                    "this session has {most} requests open, as many as it may have; take their \
                     answers first, or begin a session of your own at the manifest"
                );
            }
            Self::Declined(Declined::Elsewhere) => {
                "a later request of this session has gone on at another place, and a session has one \
                 place in each track; ask again to come back to this one, or begin a session of your \
                 own at the manifest"
            }
            Self::Failed(ReadOutcome::Damaged) => {
                "the stored bytes are damaged; `tenuto check` says where"
            }
            Self::Failed(_) => "the disk did not give the bytes",
            Self::Lost => {
                "the disk with this title is lost, and no other has a copy and room for you"
            }
            Self::Ended => "the session has ended; start again at the manifest",
        })
    }
}

/// Who lost its disk may ask at once whether there is another way; so may who was in its own way.
const COME_BACK: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_not_served_is_told_why_and_whether_to_ask_again() {
        let table = [
            (
                Undone::Declined(Declined::TooMany { most: 16 }),
                429,
                "requests",
                true,
                "16 requests",
            ),
            (Undone::Declined(Declined::Elsewhere), 503, "elsewhere", true, "one place in each"),
            (Undone::Failed(ReadOutcome::Damaged), 500, "bytes-lost", false, "tenuto check"),
            (Undone::Failed(ReadOutcome::Failed), 500, "bytes-lost", false, "did not give"),
            (Undone::Lost, 503, "disk-lost", true, "no other has a copy"),
            (Undone::Ended, 410, "session-ended", false, "at the manifest"),
        ];
        for (why, status, word, again, says) in table {
            let reply = reply(&why);
            let body: serde_json::Value = serde_json::from_slice(&reply.body).unwrap();
            let message = body["message"].as_str().unwrap();
            assert_eq!((reply.head.status(), body["error"].as_str().unwrap()), (status, word));
            assert!(message.contains(says), "{message}");
            assert!(!message.contains("booked"), "nobody else is in the way: {message}");
            let head = String::from_utf8(reply.head.finish(reply.length, true)).unwrap();
            assert_eq!(head.contains("\r\nRetry-After: 1\r\n"), again, "{head}");
        }
    }
}
