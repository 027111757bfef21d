//! The exact bounds of a part of a title, which need not be at key frames.
//!
//! ```text
//!   shown order       I0 B1 B2 P3 B4 B5 P6 | I7 ...         start at B4, stop at P6
//!   decoding order    I0 P3 B1 B2 P6 B4 B5 | I7 ...
//!   decoded           └────────── all ────┘                 from the key frame at or before the
//!   shown                         B4 B5                     start to the last picture before the
//!                     └ preroll ┘    └ P6, only decoded     stop, in decoding order
//! ```
//! A picture belongs to the part if its time, rounded to the millisecond, is at or after the start
//! and before the stop, so that parts that follow each other have each picture once. The times of
//! the first picture of the part and of the first one behind it are the bounds of all tracks.
//!
//! What is decoded and not shown is hidden by the edit list of a file. Segments have no means for
//! it: players on Media Source Extensions show all that they are given, or nothing until the next
//! key frame. There the playlist says where playback starts.

use super::excerpt::{Excerpt, Groups};
use super::partition;
use super::timeline::{Timeline, nearest, ticks};
use crate::{Edit, TrackIndex, TrackKind};
use std::ops::Range;
use std::time::Duration;
use units::MediaTime;

/// The bounds of a part of a title, on the timelines with which it was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Clip {
    /// When the first picture of the part is shown.
    pub(super) start: MediaTime,
    /// When the first picture behind the part is shown; `None`: the part goes to the end.
    pub(super) stop: Option<MediaTime>,
}

impl Clip {
    /// The bounds by the pictures of a track, or, of a title without pictures, by its packets.
    pub(super) fn of(track: &TrackIndex, line: &Timeline, wanted: &Excerpt) -> Self {
        if track.description.kind != TrackKind::Video {
            let groups = Groups::of(track, line);
            let shown = groups.shown(wanted);
            let stop = (shown.end < groups.count()).then(|| groups.begins[shown.end]);
            return Self { start: groups.begins[shown.start], stop };
        }
        let times = || (0..track.ldus.len()).map(|i| line.begins(track, i));
        let (asked, first) = (time(wanted.start), times().min().unwrap_or_default());
        let start = if is_before(asked, first) {
            // Sound may begin before the pictures.
            asked
        } else {
            let reached = times().filter(|at| !is_before(*at, asked)).min();
            // The last picture is shown until the sound ends.
            reached.or(times().max()).unwrap_or_default()
        };
        let stop = wanted.stop.map(|stop| {
            let stop = time(stop);
            let behind = |at: &MediaTime| !is_before(*at, stop) && *at > start.max(first);
            times().filter(behind).min().unwrap_or(stop.max(start + MediaTime(1)))
        });
        Self { start, stop }
    }

    /// One past the last LDU of a track that is decoded for the part, in decoding order.
    pub(super) fn end(&self, track: &TrackIndex, line: &Timeline) -> usize {
        let Some(stop) = self.stop else { return track.ldus.len() };
        let last = match track.description.kind {
            TrackKind::Video => (0..track.ldus.len())
                .rev()
                .find(|ldu| is_before(line.begins(track, *ldu), stop))
                .map(|ldu| ldu + 1),
            _ => Some(partition(0..track.ldus.len(), |ldu| line.begins(track, ldu) < stop)),
        };
        last.unwrap_or(0)
    }

    /// The time at which pictures decoded for the part end: some that are shown after its end are
    /// decoded before its last one.
    pub(super) fn shown_until(
        track: &TrackIndex,
        line: &Timeline,
        ldus: Range<usize>,
    ) -> MediaTime {
        let ends = track.ldus.range(ldus).map(|ldu| {
            let end = ticks(ldu.decode_time).saturating_add(i64::from(ldu.duration));
            line.place(end.saturating_add(i64::from(ldu.composition_offset)))
        });
        line.time(ends.max().unwrap_or(0))
    }

    /// The LDUs of a track that a decoder needs to show the part exactly.
    pub(super) fn ldus(&self, track: &TrackIndex, line: &Timeline) -> Range<usize> {
        let first = match track.description.kind {
            TrackKind::Video => {
                let groups = Groups::of(track, line);
                groups.firsts[groups.at(self.start)]
            }
            _ if self.start <= MediaTime::ZERO => 0,
            _ => partition(0..track.ldus.len(), |ldu| {
                let length = line.time(i64::from(track.ldus.duration(ldu)));
                line.begins(track, ldu) + length + SOUND_PREROLL <= self.start
            }),
        };
        first..self.end(track, line).max(first)
    }

    /// The edit list of a file that has these LDUs of a track: a wait, if the track begins later
    /// than the part, then what is shown. Empty if nothing of the track is shown.
    pub(super) fn edits(
        &self,
        track: &TrackIndex,
        line: &Timeline,
        ldus: &Range<usize>,
    ) -> Vec<Edit> {
        let start = nearest(self.start, line.scale);
        let end = self.stop.map_or(line.end, |stop| nearest(stop, line.scale).min(line.end));
        let shown = start.max(line.wait);
        if ldus.is_empty() || end <= shown {
            return Vec::new();
        }
        let decoded_first = ticks(track.ldus.get(ldus.start).decode_time);
        let media_time = shown - line.wait + line.media_start - decoded_first;
        let wait = (shown > start)
            .then(|| Edit { duration: Some(line.time(shown - start)), media_time: None });
        let edit =
            Edit { duration: Some(line.time(end - shown)), media_time: Some(media_time.max(0)) };
        wait.into_iter().chain([edit]).collect()
    }
}

/// Whether a time is before a bound by more than rounding to milliseconds explains.
pub(super) fn is_before(at: MediaTime, bound: MediaTime) -> bool {
    at + HALF_A_MILLISECOND < bound
}

/// A position as time of a title.
pub(super) fn time(at: Duration) -> MediaTime {
    MediaTime(i64::try_from(at.as_nanos()).unwrap_or(i64::MAX))
}

const HALF_A_MILLISECOND: MediaTime = MediaTime(500_000);
/// The sound that is decoded before the first that is heard: 80 ms for Opus (RFC 7845, 4.6), one
/// packet of AAC, and the bit reservoir of MP3.
const SOUND_PREROLL: MediaTime = MediaTime(80_000_000);
