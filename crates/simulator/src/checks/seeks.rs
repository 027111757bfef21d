//! What counts as a seek, told from the segments that the player names. The rule is the server's
//! contract with its players and knows nothing of how a track is cut into reads:
//!
//! ```text
//!   a request names segments  ... │ 4 │ 5 │ 6 │ 7 │ ...     of one track, each a range of bytes
//!
//!   continues   its first segment is the one that a grant was given for, or the one after the last
//!               segment of one of the two latest requests; a request that was hung up before
//!               anything of a segment was handed over ends before that segment
//!   either      it begins within a read of such a place: that read is in memory for the viewer
//!               anyway, so the server may serve it as it is or decide anew
//!   seeks       anywhere else, also to what has been handed over already: the server must decide
//!               anew, at once
//! ```
//!
//! "Within a read": not more than the length of one read before the place. A track of which only a
//! part is played may also leave out up to a read. After a grant, before the first request, the
//! player may begin up to two reads away, because a segment can begin within the read before it.

use server::engine::{Part, TrackLayout, TrackNumber};
use std::collections::VecDeque;
use std::ops::Range;
use std::time::Duration;

/// A title as its player names it.
#[derive(Clone, Debug)]
pub(crate) struct Segments {
    /// How long each segment is shown; the last one may be shorter.
    pub(crate) length: Duration,
    /// By track: the first byte of every segment, and the end of the last.
    pub(crate) starts: Vec<Vec<u64>>,
}

impl Segments {
    /// The first byte of the segment that is shown at a time.
    pub(super) fn byte_at(&self, track: TrackNumber, time: Duration) -> u64 {
        let starts = &self.starts[usize::from(track)];
        let segment = time.as_nanos() / self.length.as_nanos();
        let last = starts.len().saturating_sub(2);
        starts[usize::try_from(segment).unwrap_or(last).min(last)]
    }

    /// The segment that holds a byte, and whether the segment begins with it. The end of a track is
    /// the beginning of a segment that there is not.
    fn at(&self, track: TrackNumber, byte: u64) -> Place {
        let starts = &self.starts[usize::from(track)];
        let after = starts.partition_point(|start| *start <= byte);
        let segment = after.saturating_sub(1);
        Place { segment, byte, cut: starts[segment] != byte }
    }
}

/// Whether a request goes on where the player was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Contiguity {
    Continues,
    Either,
    Seeks,
}

/// A place in a track at which the player may go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    segment: usize,
    byte: u64,
    /// A part of the segment has been handed over.
    cut: bool,
}

/// The places at which the player may go on with one track.
#[derive(Debug)]
pub(super) struct SeekRule {
    /// Where it certainly may: ends of the latest requests, oldest first.
    sure: VecDeque<Place>,
    /// Where the server may let it: whether an end is still one of the latest two depends on
    /// what the server made of a request that it could take either way.
    possible: Vec<Place>,
    /// Nothing was asked for since the grant.
    fresh: bool,
}

impl SeekRule {
    /// A grant for the segment that holds `byte`.
    pub(super) fn granted(segments: &Segments, track: TrackNumber, byte: u64) -> Self {
        let place = segments.at(track, byte);
        Self { sure: VecDeque::from([place]), possible: Vec::new(), fresh: true }
    }

    /// What a request is that begins at byte `start` of the track.
    pub(super) fn judge(&self, segments: &Segments, layout: &TrackLayout, ask: &Ask) -> Contiguity {
        let wanted = segments.at(ask.track, ask.bytes.start);
        let goes_on = |place: &Place| !place.cut && place.segment == wanted.segment;
        if self.sure.iter().any(goes_on) {
            return Contiguity::Continues;
        }
        let read = u64::from(layout.piece);
        let (before, after) = match (self.fresh, layout.stored.is_empty()) {
            (true, _) => (2 * read, 2 * read),
            (false, true) => (read, 1),
            (false, false) => (read, 2 * read),
        };
        let near = |place: &Place| {
            let reach = place.byte.saturating_sub(before)..place.byte.saturating_add(after);
            reach.contains(&wanted.byte)
        };
        if self.sure.iter().chain(&self.possible).any(near) {
            Contiguity::Either
        } else {
            Contiguity::Seeks
        }
    }

    /// The server has taken a request on as going on where the player was.
    pub(super) fn note_request(&mut self, segments: &Segments, ask: &Ask) {
        let (first, end) =
            (ask.place(segments, ask.bytes.start), ask.place(segments, ask.bytes.end));
        let known = self.sure.len();
        self.sure.retain(|place| place.cut || place.segment != first.segment);
        if self.sure.len() == known {
            self.possible.extend(self.sure.drain(..));
        }
        if self.sure.len() == LATEST_REQUESTS {
            self.sure.pop_front();
        }
        self.sure.push_back(end);
        self.fresh = false;
    }

    /// Nothing more is handed over of a request, of which `left` was not.
    pub(super) fn stopped(&mut self, segments: &Segments, left: &Ask) {
        let (from, end) =
            (left.place(segments, left.bytes.start), left.place(segments, left.bytes.end));
        for place in self.sure.iter_mut().chain(&mut self.possible).filter(|place| **place == end) {
            *place = from;
        }
    }
}

/// What a request asks for of a track: all of it first, then what it has not been handed.
#[derive(Clone, Debug)]
pub(super) struct Ask {
    pub(super) track: TrackNumber,
    pub(super) bytes: Range<u64>,
}

impl Ask {
    /// By track: from the first byte asked for to the last.
    pub(super) fn all(parts: &[Part]) -> Vec<Self> {
        let mut all: Vec<Self> = Vec::new();
        for Part { track, bytes } in parts {
            match all.iter_mut().find(|ask| ask.track == *track) {
                Some(ask) => ask.bytes.end = ask.bytes.end.max(bytes.end),
                None => all.push(Self { track: *track, bytes: bytes.clone() }),
            }
        }
        all
    }

    fn place(&self, segments: &Segments, byte: u64) -> Place {
        segments.at(self.track, byte)
    }
}

/// Requests of one track that a player may have under way and still go on with each.
const LATEST_REQUESTS: usize = 2;

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::OnceLock;

    const READ: u32 = 100;

    fn layout(stored: Vec<u32>) -> TrackLayout {
        TrackLayout {
            bytes: 10_000,
            piece: READ,
            runs: Vec::new(),
            due: Vec::new(),
            stored,
            times: OnceLock::new(),
        }
    }

    /// Ten segments of so many bytes.
    fn segments_of(bytes: u64) -> Segments {
        let starts = vec![(0..=10).map(|segment| segment * bytes).collect()];
        Segments { length: Duration::from_secs(1), starts }
    }

    /// Ten segments of 1,000 bytes; the first request was for segments 2 and 3.
    fn fixture() -> (Segments, SeekRule) {
        let segments = segments_of(1000);
        let mut rule = SeekRule::granted(&segments, 0, 2500);
        rule.sure[0] = segments.at(0, 2000);
        rule.note_request(&segments, &Ask { track: 0, bytes: 2000..4000 });
        (segments, rule)
    }

    fn judged(segments: &Segments, rule: &SeekRule, start: u64) -> Contiguity {
        let ask = Ask { track: 0, bytes: start..start + 1000 };
        rule.judge(segments, &layout(Vec::new()), &ask)
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
    fn a_request_that_was_cut_goes_on_with_what_it_was_not_handed() {
        let (segments, mut rule) = fixture();
        rule.stopped(&segments, &Ask { track: 0, bytes: 3000..4000 });
        assert_eq!(judged(&segments, &rule, 3000), Contiguity::Continues);
        assert_eq!(judged(&segments, &rule, 4000), Contiguity::Seeks);
        let (segments, mut rule) = fixture();
        rule.stopped(&segments, &Ask { track: 0, bytes: 3050..4000 });
        assert_eq!(judged(&segments, &rule, 3000), Contiguity::Either, "within a read");
        let (segments, mut rule) = fixture();
        rule.stopped(&segments, &Ask { track: 0, bytes: 3700..4000 });
        assert_eq!(judged(&segments, &rule, 3000), Contiguity::Seeks, "handed over already");
    }

    #[test]
    fn two_requests_under_way_can_both_be_continued() {
        let (segments, mut rule) = fixture();
        rule.sure.push_back(segments.at(0, 7000));
        rule.note_request(&segments, &Ask { track: 0, bytes: 4000..5000 });
        for start in [5000, 7000] {
            assert_eq!(judged(&segments, &rule, start), Contiguity::Continues, "{start}");
        }
    }

    #[test]
    fn a_track_played_in_part_may_leave_out_a_read() {
        let segments = segments_of(150);
        let mut rule = SeekRule::granted(&segments, 0, 0);
        rule.note_request(&segments, &Ask { track: 0, bytes: 0..150 });
        let ask = Ask { track: 0, bytes: 300..450 };
        let part = layout(vec![0, 2, 4]);
        assert_eq!(rule.judge(&segments, &part, &ask), Contiguity::Either);
        assert_eq!(rule.judge(&segments, &layout(Vec::new()), &ask), Contiguity::Seeks);
    }
}
