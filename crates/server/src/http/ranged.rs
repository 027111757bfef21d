//! The response with a body of media, or with the parts of it that a request asks for.

use super::answer::{Decision, MediaBody};
use super::conditions::{ConditionResult, Validators};
use super::multipart::{MultipartBody, multipart};
use super::range::BodyPart;
use super::request::{HttpRequest, Method};
use super::response::{Head, Response};
use crate::library::OpenTitle;
use crate::sessions::PlayerSession;
use media::Body;
use std::ops::Range;
use std::sync::Arc;
use std::time::SystemTime;

/// A body or the requested ranges of it (RFC 9110: 200, 206, 304, 412 or 416).
pub(super) fn ranged(
    request: &HttpRequest,
    body: Arc<Body>,
    session: Arc<PlayerSession>,
    etag: &str,
    kind: &str,
) -> Result<Decision, Decision> {
    let (length, now) = (body.len(), SystemTime::now());
    let present = Validators { etag, modified: modified(&session.title, now) };
    // Evaluated before the range, as RFC 9110, 13.2.2 requires.
    match request.conditions.evaluate(present) {
        ConditionResult::Proceed => {}
        ConditionResult::NotModified => {
            let head = with_validators(Head::new(304), present, &session.title);
            return Ok(Response::only_head(head.field("Cache-Control", CACHED), 0).into());
        }
        ConditionResult::Failed => return Ok(Response::precondition_failed().into()),
    }
    // If the body has changed, all of it is sent: the client's parts are of another one.
    let field = request.range.as_ref().filter(|_| request.conditions.range_holds(present, now));
    let title = Arc::clone(&session.title);
    let head =
        |status| with_validators(Head::new(status), present, &title).field("Cache-Control", CACHED);
    match field.map(|field| field.of(length)) {
        None => {
            let head = head(200).field("Content-Type", kind).field("Accept-Ranges", "bytes");
            Ok(send(request, MediaBody { head, body, range: 0..length, ends: Vec::new(), session }))
        }
        Some(BodyPart::One(range)) => {
            let Range { start, end } = range;
            let head = head(206)
                .field("Content-Type", kind)
                .field("Accept-Ranges", "bytes")
                .field("Content-Range", format_args!("bytes {start}-{}/{length}", end - 1));
            Ok(send(request, MediaBody { head, body, range, ends: Vec::new(), session }))
        }
        Some(BodyPart::Several(ranges)) => {
            let MultipartBody { content_type, body, ends } = multipart(&body, &ranges, kind);
            let head =
                head(206).field("Content-Type", content_type).field("Accept-Ranges", "bytes");
            let range = 0..body.len();
            Ok(send(request, MediaBody { head, body: Arc::new(body), range, ends, session }))
        }
        Some(BodyPart::Nothing) => {
            let message = format!("the body has {length} bytes; request a range within them");
            let mut response = Response::error(416, "range-not-satisfiable", &message);
            response.head = response.head.field("Content-Range", format_args!("bytes */{length}"));
            Ok(response.into())
        }
    }
}

/// When a title's bytes came to be. A title never changes, so that is when it was ingested; `None`
/// if the clock was wrong then, because no response may be younger than itself (RFC 9110, 8.8.2.1).
pub(super) fn modified(title: &OpenTitle, now: SystemTime) -> Option<SystemTime> {
    title.created.filter(|created| *created <= now)
}

/// Adds the fields by which a client asks again later.
pub(super) fn with_validators(head: Head, present: Validators<'_>, title: &OpenTitle) -> Head {
    let head = head.field("ETag", present.etag);
    match present.modified {
        Some(_) => head.field("Last-Modified", &title.created_date),
        None => head,
    }
}

fn send(request: &HttpRequest, media: MediaBody) -> Decision {
    if request.method == Method::Head {
        return Response::only_head(media.head, media.range.end - media.range.start).into();
    }
    Decision::SendBody(media)
}

/// The URL holds the token of one session.
const CACHED: &str = "private, max-age=3600";
