//! Parts of titles for other nodes of the cluster, which copy them: bytes of a track as they are
//! stored.
//!
//! ```text
//!   GET /parts/film?content=..&track=0&from=0&to=16777216&rate=25000000&expires=1795862400
//!   Tenuto-Peer: 5f2c..    HMAC of the target with the secret of the cluster
//! ```
//!
//! A part is a fill: a session of one response, admitted at the rate that the other node asks for,
//! and refused at once where that does not fit. The other node compares the hash of what it gets
//! with that in the bucket, so that nothing is verified here but what the disk returns.
//!
//! A request that is recorded and sent again is answered until it expires. A title that players get
//! encrypted is sent over TLS only.

use super::ranged::MediaBody;
use super::request::{HttpRequest, Method};
use super::response::{Head, Response};
use super::routes::escape;
use crate::layout::DeliveryFormat;
use crate::library::OpenTitle;
use crate::membership::{in_no_cluster, unix_now};
use crate::messages::PlayRequest;
use crate::presentation::Presentation;
use crate::shared::Shared;
use crate::telemetry::Protocol;
use director::clock::{ClockDifference, SYNCHRONISE};
use engine::{FillFor, MaxWait};
use media::Body;
use percent_encoding::utf8_percent_encode;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;
use units::BitRate;

/// What a node asks another one for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PartRequest {
    /// The identity of the title's content.
    pub(crate) content: String,
    pub(crate) track: u16,
    /// Bytes of the track's data.
    pub(crate) range: Range<u64>,
    pub(crate) rate: BitRate,
}

impl PartRequest {
    /// The path and query that ask for it, from now on for a few minutes.
    pub(crate) fn target(&self, title: &str) -> String {
        let Self { content, track, range, rate } = self;
        let content = utf8_percent_encode(content, percent_encoding::NON_ALPHANUMERIC);
        let (Range { start, end }, expires) = (range, unix_now() + VALID.as_secs());
        let title = escape(title);
        format!(
            "/parts/{title}?content={content}&track={track}&from={start}&to={end}&rate={}\
             &expires={expires}",
            rate.0
        )
    }

    /// What a query asks for; `None` where a part of it is missing or cannot be.
    fn of(request: &HttpRequest) -> Option<Self> {
        let number = |name: &str| request.query(name)?.parse::<u64>().ok();
        let range = number("from")?..number("to")?;
        let rate = BitRate(number("rate").filter(|rate| *rate > 0)?);
        let bytes = range.end.checked_sub(range.start)?;
        (1..=LARGEST).contains(&bytes).then_some(())?;
        let track = u16::try_from(number("track")?).ok()?;
        Some(Self { content: request.query("content")?.to_owned(), track, range, rate })
    }
}

/// What a node of this cluster asks for; otherwise the response to a request that is none.
pub(super) fn wanted(shared: &Shared, request: &HttpRequest) -> Result<PartRequest, Response> {
    let membership = shared.membership.as_ref().ok_or_else(in_no_cluster)?;
    let signed = request.of_peer.as_deref();
    let (signature, target) = signed.map_or(("", ""), |(signature, target)| (signature, target));
    membership.check_peer(signature, target)?;
    let now = unix_now();
    let expires = request.query("expires").and_then(|at| at.parse::<u64>().ok());
    if expires.is_none_or(|at| at < now || at > now + 2 * VALID.as_secs()) {
        // Nodes make a request when they send it.
        let asked = expires.unwrap_or(0).saturating_sub(VALID.as_secs());
        let clock = ClockDifference::between(asked, now);
        let message = format!(
            "the request is an old one, or the clock of the node that asks is {clock} this one's; \
             {SYNCHRONISE}"
        );
        return Err(Response::error(403, "peer-unknown", &message));
    }
    let part = PartRequest::of(request).filter(|_| request.method == Method::Get);
    part.ok_or_else(|| Response::error(400, "bad-part", "this is no part of a title"))
}

/// The fill that sends a part of the title `name`; the response where the title has no such part.
pub(super) fn fill(
    shared: &Shared,
    part: PartRequest,
    name: &str,
    title: Arc<OpenTitle>,
) -> Result<(PlayRequest, MediaBody), Response> {
    let packaging = &title.whole.packaging;
    let track = packaging.index().tracks.get(usize::from(part.track));
    let has_range = track.is_some_and(|track| part.range.end <= track.data_len);
    if title.content != part.content || !has_range {
        let message = "the title of this name has other content here";
        return Err(Response::error(404, "version-unknown", message));
    }
    if packaging.encryption().is_some() && shared.tls.is_none() {
        let message = "this title is encrypted for players, and goes to other nodes over TLS only";
        return Err(Response::error(403, "encrypted", message));
    }
    let body = Body::of_track(part.track, part.range);
    let presentation = Presentation::node_fill(&title.whole, &body, part.rate)
        .ok_or_else(|| Response::error(400, "bad-part", "this is no part of a title"))?;
    let (presentation, name) = (Arc::new(presentation), name.to_owned());
    let now = MaxWait { time: Duration::ZERO, is_chosen: true, ..MaxWait::default() };
    let play = PlayRequest::new(title, presentation, name, DeliveryFormat::Segmented, now);
    let play = PlayRequest { fill: Some(FillFor::Node), protocol: Protocol::Node, ..play };
    let head = Head::new(200)
        .field("Content-Type", "application/octet-stream")
        .field("Cache-Control", "no-store");
    let range = 0..body.len();
    Ok((play, MediaBody { head, body: Arc::new(body), range, ends: Vec::new() }))
}

/// Time for which a request is valid: clocks may differ by as much.
const VALID: Duration = Duration::from_secs(300);
/// Bytes of a part: those of one object of a bucket.
const LARGEST: u64 = 16 << 20;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::parsed;

    #[test]
    fn a_target_asks_for_what_it_was_made_of() {
        let part = PartRequest {
            content: "5f5e100-10-3-0000abcd".to_owned(),
            track: 1,
            range: 16 << 20..20 << 20,
            rate: BitRate(25_000_000),
        };
        let request = |target: &str| parsed(&format!("GET {target} HTTP/1.1\r\nHost: x\r\n\r\n"));
        let target = part.target("a/b c");
        let read = request(&target);
        assert_eq!(read.path, ["parts", "a/b c"]);
        assert_eq!(PartRequest::of(&read), Some(part));
        for (from, to) in [
            ("&to=20971520", "&to=16777216"),
            ("&to=20971520", "&to=1"),
            ("&to=20971520", "&to=33554433"),
            ("&rate=25000000", "&rate=0"),
            ("&track=1", "&track=65536"),
            ("content=", "c="),
        ] {
            assert!(target.contains(from), "{target}");
            assert_eq!(PartRequest::of(&request(&target.replace(from, to))), None, "{to}");
        }
    }
}
