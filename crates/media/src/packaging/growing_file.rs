//! A growing title as one file: fragmented MP4, to which segments are appended.
//!
//! ```text
//! ftyp | moov: a trak for each track, mvex | moof, mdat | moof, mdat | moof, mdat | ...
//!                                            pictures     sound        pictures
//!                                            segment 0    segment 0    segment 1
//! ```
//! The fragments are the segments that HLS and DASH name to players, so that all that a recording
//! can have (each codec, each rate) is in the file as it is stored. A transport stream could be cut
//! anywhere, but has a form for few codecs, and its packets are copies of the payload.
//!
//! Bytes that a reader has seen stay the same whatever follows: segments do ([`super::settled`]),
//! and their order follows from times that are known before they are. The next segment is that of
//! the track that has come least far, the first one of several; where it is not settled yet, the
//! file ends. The file begins when each track has a segment: its header has all tracks.
//!
//! A track that is [`LATE_TRACK`] behind another one keeps it back no longer, and has its segments
//! where they become settled, also in the middle of later ones of others. So the order of such a
//! file is that in which it was looked at.

use super::body::Body;
use super::growing::Growth;
use super::media_segment;
use super::{Packaging, Segments};
use std::time::Duration;
use units::MediaTime;

/// The file of a title that grows.
#[derive(Clone, Debug, Default)]
pub struct GrowingFile {
    body: Body,
    /// The number of segments of each track in it.
    segments: Vec<usize>,
    fragments: u32,
    /// The end of the latest segment in it.
    end: MediaTime,
}

impl GrowingFile {
    /// The file as far as it has come; empty before it begins.
    pub fn body(&self) -> &Body {
        &self.body
    }

    /// The play-out time of what is in it.
    pub fn duration(&self) -> Duration {
        self.end.since_start()
    }

    /// Appends the segments that have become settled. `title` is the same recording as before, in
    /// segments of the same length; of one that has ended, all the rest is appended.
    pub fn extend(&mut self, title: &Packaging) {
        let is_growing = matches!(title.growth, Growth::Growing { .. });
        let all: Vec<&Segments> = title.tracks.iter().map(|track| &track.segments).collect();
        let furthest = all.iter().map(|segments| segments.end()).max().unwrap_or_default();
        if self.body.is_empty() {
            if is_growing
                && furthest < LATE_TRACK
                && all.iter().any(|segments| segments.count() == 0)
            {
                return;
            }
            let tracks = title.index.tracks.iter().zip(&title.segment_lines);
            self.body.push_generated(media_segment::file_header(tracks));
            self.segments = vec![0; all.len()];
        }
        loop {
            let begins = |(track, next): (usize, &usize)| {
                let segments = all[track];
                let is_there = *next < segments.count();
                // Without a segment to come, a track of a complete title keeps no other one back.
                let at = if *next == 0 { MediaTime::ZERO } else { segments.time(next - 1).end };
                (is_there || is_growing).then_some((at, track, is_there))
            };
            let next: Vec<_> = self.segments.iter().enumerate().filter_map(begins).collect();
            let Some(&(at, track, _)) = next.iter().filter(|(.., is_there)| *is_there).min() else {
                return;
            };
            // What is not there, of a track that has come less far: it is waited for.
            let is_awaited = |other: &(MediaTime, usize, bool)| {
                *other < (at, track, true) && !other.2 && furthest - other.0 < LATE_TRACK
            };
            if next.iter().any(is_awaited) {
                return;
            }
            self.append(title, track);
        }
    }

    /// Appends the next segment of a track.
    fn append(&mut self, title: &Packaging, track: usize) {
        let (stored, line) = (&title.index.tracks[track], &title.segment_lines[track]);
        let (segments, number) = (&title.tracks[track].segments, self.segments[track]);
        let of = u16::try_from(track).expect("tracks are few");
        for part in segments.parts(number).unwrap_or_default() {
            self.fragments += 1;
            media_segment::push_fragment(&mut self.body, stored, line, of, part, self.fragments);
        }
        self.end = self.end.max(segments.time(number).end);
        self.segments[track] += 1;
    }
}

/// How far a track may be behind another one before it keeps that one back no longer. Sound of
/// 18 kb/s fills the smallest piece of a recording that can be verified, 64 KiB, in less.
pub const LATE_TRACK: MediaTime = MediaTime(30_000_000_000);
