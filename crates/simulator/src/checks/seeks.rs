//! Seeks: whether a request continues where the player was, told from the segments that the player
//! names.
//!
//! Written from outside the engine. The rule is the server's contract with its players: it compares
//! numbers of segments. The engine compares numbers of pieces, which this file does not compute.
//!
//! ```text
//!   a request names segments  ... │ 4 │ 5 │ 6 │ 7 │ ...     of one track, each a range of bytes
//!
//!   continues   its first segment is the one for which the grant was given, or the one after the
//!               last segment of one of the two latest requests; a request that was cancelled
//!               before a byte of a segment was delivered ends before that segment
//!   either      its first byte is at most the length of one read away from such a place: that read
//!               is in memory for the viewer anyway, so the server may continue or readmit
//!   seeks       anywhere else, also segments that were delivered already: the server must evaluate
//!               the request at once
//! ```
//!
//! The length of one read is part of the contract, as a tolerance in bytes; nothing else of the
//! reads is used here. Where only a part of a track is played, a request may also skip up to one
//! read. The first request after a grant may begin up to two reads away, because a segment can
//! begin within the read before its own; and from the segment before the granted one to its end.

use engine::{Part, TrackLayout, TrackNumber};
use std::collections::VecDeque;
use std::ops::Range;
use std::time::Duration;

/// The segments of a title, as its player names them.
#[derive(Clone, Debug)]
pub(crate) struct Segments {
    /// Play-out time of each segment; the last one may be shorter.
    pub(crate) length: Duration,
    /// By track: the first byte of every segment, and the end of the last.
    pub(crate) starts: Vec<Vec<u64>>,
}

impl Segments {
    /// The first byte of the segment that is played at a time.
    pub(super) fn byte_at(&self, track: TrackNumber, time: Duration) -> u64 {
        let starts = &self.starts[usize::from(track)];
        let segment = time.as_nanos() / self.length.as_nanos();
        let last = starts.len().saturating_sub(2);
        starts[usize::try_from(segment).unwrap_or(last).min(last)]
    }

    /// The segment that holds a byte. The end of the track counts as the start of one more segment.
    fn place(&self, track: TrackNumber, byte: u64) -> Place {
        let starts = &self.starts[usize::from(track)];
        let after = starts.partition_point(|start| *start <= byte);
        let segment = after.saturating_sub(1);
        Place { segment, byte, partial: starts[segment] != byte }
    }
}

/// Whether a request continues where the player was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Contiguity {
    Continues,
    /// The server may continue or readmit.
    Either,
    Seeks,
}

/// A place in a track at which the player may continue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    segment: usize,
    byte: u64,
    /// A part of the segment was delivered: the byte is not its first.
    partial: bool,
}

/// The places at which the player may continue with one track.
#[derive(Debug)]
pub(super) struct SeekRule {
    /// Places at which the server must let it continue: ends of the latest requests, oldest first.
    certain: VecDeque<Place>,
    /// Places at which the server may let it continue. Whether an end still is one of the latest
    /// two depends on how the server took a request of kind [`Contiguity::Either`].
    possible: Vec<Place>,
    /// No request was made since the grant.
    unused: bool,
}

impl SeekRule {
    /// A grant for the segment that holds `byte`.
    pub(super) fn granted(segments: &Segments, track: TrackNumber, byte: u64) -> Self {
        let place = segments.place(track, byte);
        Self { certain: VecDeque::from([place]), possible: Vec::new(), unused: true }
    }

    /// Whether a request continues, by its first byte.
    pub(super) fn judge(
        &self,
        segments: &Segments,
        layout: &TrackLayout,
        request: &TrackRequest,
    ) -> Contiguity {
        let wanted = segments.place(request.track, request.bytes.start);
        let continues = |place: &Place| !place.partial && place.segment == wanted.segment;
        if self.certain.iter().any(continues) {
            return Contiguity::Continues;
        }
        let read = u64::from(layout.piece);
        // How far from a place the server may still continue, in bytes.
        let (before, after) = match (self.unused, layout.stored.is_empty()) {
            (true, _) => (2 * read, 2 * read),
            (false, true) => (read, 1),
            (false, false) => (read, 2 * read),
        };
        let starts = &segments.starts[usize::from(request.track)];
        let is_near = |place: &Place| {
            let mut reach = place.byte.saturating_sub(before)..place.byte.saturating_add(after);
            // The first request may begin in any read of the granted segment. The first of them is
            // due with the segment before, and the last may hold the begin of the next.
            if self.unused {
                reach.start = reach.start.min(starts[place.segment.saturating_sub(1)]);
                reach.end = reach.end.max(starts.get(place.segment + 1).map_or(0, |end| end + 1));
            }
            reach.contains(&wanted.byte)
        };
        if self.certain.iter().chain(&self.possible).any(is_near) {
            Contiguity::Either
        } else {
            Contiguity::Seeks
        }
    }

    /// Notes a request that the server accepted as continuing.
    pub(super) fn note_request(&mut self, segments: &Segments, request: &TrackRequest) {
        let first = segments.place(request.track, request.bytes.start);
        let end = segments.place(request.track, request.bytes.end);
        let known = self.certain.len();
        self.certain.retain(|place| place.partial || place.segment != first.segment);
        // The request continues none of the certain places: the server has taken it as it was
        // free to, and which ends it has kept cannot be told from outside.
        if self.certain.len() == known {
            self.possible.extend(self.certain.drain(..));
        }
        if self.certain.len() == LATEST_REQUESTS {
            self.certain.pop_front();
        }
        self.certain.push_back(end);
        self.unused = false;
    }

    /// Notes that `undelivered`, the rest of a request, will not be delivered.
    pub(super) fn note_stopped(&mut self, segments: &Segments, undelivered: &TrackRequest) {
        let from = segments.place(undelivered.track, undelivered.bytes.start);
        let end = segments.place(undelivered.track, undelivered.bytes.end);
        let places = self.certain.iter_mut().chain(&mut self.possible);
        for place in places.filter(|place| **place == end) {
            *place = from;
        }
    }
}

/// The bytes of one track that a request asks for; after deliveries, those not yet delivered.
#[derive(Clone, Debug)]
pub(super) struct TrackRequest {
    pub(super) track: TrackNumber,
    pub(super) bytes: Range<u64>,
}

impl TrackRequest {
    /// Splits a request by track: from the first byte of the track to the last.
    pub(super) fn split(parts: &[Part]) -> Vec<Self> {
        let mut requests: Vec<Self> = Vec::new();
        for Part { track, bytes } in parts {
            match requests.iter_mut().find(|request| request.track == *track) {
                Some(request) => request.bytes.end = request.bytes.end.max(bytes.end),
                None => requests.push(Self { track: *track, bytes: bytes.clone() }),
            }
        }
        requests
    }
}

/// Requests of one track that a player may have open at once and still continue after each.
const LATEST_REQUESTS: usize = 2;

#[cfg(test)]
mod tests {
    use super::*;
    use engine::Lead;
    use std::sync::OnceLock;

    const READ: u32 = 100;

    fn layout(stored: Vec<u32>) -> TrackLayout {
        TrackLayout {
            bytes: 10_000,
            piece: READ,
            lead: Lead::default(),
            runs: Vec::new(),
            due: Vec::new(),
            stored,
            key_frames_of: None,
            times: OnceLock::new(),
        }
    }

    /// Ten segments of `bytes` bytes each.
    fn segments_of(bytes: u64) -> Segments {
        let starts = vec![(0..=10).map(|segment| segment * bytes).collect()];
        Segments { length: Duration::from_secs(1), starts }
    }

    /// Ten segments of 1,000 bytes; the first request was for segments 2 and 3.
    fn fixture() -> (Segments, SeekRule) {
        let segments = segments_of(1000);
        let mut rule = SeekRule::granted(&segments, 0, 2500);
        rule.certain[0] = segments.place(0, 2000);
        rule.note_request(&segments, &TrackRequest { track: 0, bytes: 2000..4000 });
        (segments, rule)
    }

    fn judged(segments: &Segments, rule: &SeekRule, start: u64) -> Contiguity {
        let request = TrackRequest { track: 0, bytes: start..start + 1000 };
        rule.judge(segments, &layout(Vec::new()), &request)
    }

    #[test]
    fn the_next_segment_continues_and_any_other_is_a_seek() {
        let (segments, rule) = fixture();
        assert_eq!(judged(&segments, &rule, 4000), Contiguity::Continues);
        for start in [0, 2000, 3000, 5000, 9000] {
            assert_eq!(judged(&segments, &rule, start), Contiguity::Seeks, "{start}");
        }
    }

    #[test]
    fn a_cancelled_request_continues_with_its_first_undelivered_segment() {
        let (segments, mut rule) = fixture();
        rule.note_stopped(&segments, &TrackRequest { track: 0, bytes: 3000..4000 });
        assert_eq!(judged(&segments, &rule, 3000), Contiguity::Continues);
        assert_eq!(judged(&segments, &rule, 4000), Contiguity::Seeks);
        let (segments, mut rule) = fixture();
        rule.note_stopped(&segments, &TrackRequest { track: 0, bytes: 3050..4000 });
        assert_eq!(judged(&segments, &rule, 3000), Contiguity::Either, "within a read");
        let (segments, mut rule) = fixture();
        rule.note_stopped(&segments, &TrackRequest { track: 0, bytes: 3700..4000 });
        assert_eq!(judged(&segments, &rule, 3000), Contiguity::Seeks, "delivered already");
    }

    #[test]
    fn two_requests_under_way_can_both_be_continued() {
        let (segments, mut rule) = fixture();
        rule.certain.push_back(segments.place(0, 7000));
        rule.note_request(&segments, &TrackRequest { track: 0, bytes: 4000..5000 });
        for start in [5000, 7000] {
            assert_eq!(judged(&segments, &rule, start), Contiguity::Continues, "{start}");
        }
    }

    #[test]
    fn a_partially_played_track_may_skip_one_read() {
        let segments = segments_of(150);
        let mut rule = SeekRule::granted(&segments, 0, 0);
        rule.note_request(&segments, &TrackRequest { track: 0, bytes: 0..150 });
        let request = TrackRequest { track: 0, bytes: 300..450 };
        let partial = layout(vec![0, 2, 4]);
        assert_eq!(rule.judge(&segments, &partial, &request), Contiguity::Either);
        assert_eq!(rule.judge(&segments, &layout(Vec::new()), &request), Contiguity::Seeks);
    }
}
