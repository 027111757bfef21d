//! The response with a body of media, or with the parts of it that a request asks for.

use super::conditions::{ConditionResult, Validators};
use super::multipart::{MultipartBody, multipart};
use super::range::BodyPart;
use super::request::{HttpRequest, Method};
use super::resource::MediaResource;
use super::response::{Head, Response};
use crate::library::OpenTitle;
use media::Body;
use std::ops::Range;
use std::sync::Arc;
use std::time::SystemTime;

/// A range of a body of media, and the head that goes before it.
#[derive(Debug)]
pub(crate) struct MediaBody {
    pub(crate) head: Head,
    pub(crate) body: Arc<Body>,
    pub(crate) range: Range<u64>,
    /// Where the body's parts end, if it has several.
    pub(crate) ends: Vec<u64>,
}

/// Who may keep media.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeptBy {
    /// One session's player, whose token is in the address.
    Player,
    /// Caches, and all players behind them. They ask for one range or for all.
    Caches,
}

impl KeptBy {
    /// Who may keep a response, and for how long.
    fn cache_rule(self) -> &'static str {
        match self {
            Self::Player => "private, max-age=3600",
            Self::Caches => FOR_EVER,
        }
    }
}

/// A body or the requested ranges of it (RFC 9110: 200 or 206); `Err`: the response without media
/// (304, 412, 416, or to HEAD).
pub(super) fn ranged(
    request: &HttpRequest,
    title: &OpenTitle,
    media: MediaResource,
    kept_by: KeptBy,
) -> Result<MediaBody, Response> {
    let MediaResource { body, etag, kind, cmsd } = media;
    let (length, now) = (body.len(), SystemTime::now());
    let present = Validators { etag: &etag, modified: modified(title, now) };
    let head = |status| {
        let head = with_validators(Head::new(status), present, title);
        head.field("Cache-Control", kept_by.cache_rule())
    };
    // Evaluated before the range, as RFC 9110, 13.2.2 requires.
    match request.conditions.evaluate(present) {
        ConditionResult::Proceed => {}
        ConditionResult::NotModified => return Err(Response::only_head(head(304), 0)),
        ConditionResult::Failed => return Err(Response::precondition_failed()),
    }
    // If the body has changed, all of it is sent: the client's parts are of another one.
    // No other method knows ranges (RFC 9110, 14.2).
    let is_get = request.method == Method::Get;
    let holds = |_: &&_| is_get && request.conditions.range_holds(present, now);
    let field = request.range.as_ref().filter(holds);
    let part = field.map(|field| field.of(length));
    let whole = |status, kind: &str| {
        let mut head = head(status).field("Content-Type", kind).field("Accept-Ranges", "bytes");
        cmsd.iter().for_each(|cmsd| cmsd.add_to(&mut head));
        head
    };
    let media = match part {
        Some(BodyPart::One(range)) => {
            let Range { start, end } = range;
            let content = format!("bytes {start}-{}/{length}", end - 1);
            let head = whole(206, kind).field("Content-Range", content);
            MediaBody { head, body, range, ends: Vec::new() }
        }
        Some(BodyPart::Several(ranges)) if kept_by == KeptBy::Player => {
            let MultipartBody { content_type, body, ends } = multipart(&body, &ranges, kind);
            let range = 0..body.len();
            MediaBody { head: whole(206, &content_type), body: Arc::new(body), range, ends }
        }
        Some(BodyPart::Nothing) => {
            let message = format!("the body has {length} bytes; request a range within them");
            let mut response = Response::error(416, "range-not-satisfiable", &message);
            response.head = response.head.field("Content-Range", format_args!("bytes */{length}"));
            return Err(response);
        }
        None | Some(BodyPart::Several(_)) => {
            MediaBody { head: whole(200, kind), body, range: 0..length, ends: Vec::new() }
        }
    };
    if request.method == Method::Head {
        return Err(Response::only_head(media.head, media.range.end - media.range.start));
    }
    Ok(media)
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

/// A year, as good as for ever, for what never changes under its address.
pub(super) const FOR_EVER: &str = "public, max-age=31536000, immutable";
