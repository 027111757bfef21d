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
//! the first picture of the part and of the first one behind it are the bounds of all tracks. Where
//! that one is later by more than a tenth of a second, a picture is shown for long, and the bound
//! is the position itself, within that picture.
//!
//! What is decoded and not shown is hidden by the edit list of a file. Segments have no means for
//! it: players on Media Source Extensions show all that they are given, or nothing until the next
//! key frame. There the playlist says where playback starts.

use super::excerpt::{Excerpt, Groups};
use super::partition;
use super::timeline::{self, REORDERED, Timeline, nearest, shown, ticks};
use crate::{Edit, TrackIndex, TrackKind};
use std::ops::Range;
use std::time::Duration;
use units::MediaTime;

/// The bounds of a part of a title, on the timelines with which it was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Clip {
    /// When the first picture of the part is shown, or the part begins within a longer one.
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
            // The last picture is shown until the sound ends, which may be long after it.
            let nearest = match reached {
                Some(at) => Some(at).filter(|at| !is_before(asked + LONG, *at)),
                None => times().max().filter(|at| !is_before(*at + LONG, asked)),
            };
            nearest.unwrap_or(asked)
        };
        let stop = wanted.stop.map(|stop| {
            let stop = time(stop);
            let behind = |at: &MediaTime| !is_before(*at, stop) && *at > start.max(first);
            let reached = times().filter(behind).min();
            let reached = reached.filter(|at| !is_before(stop + LONG, *at));
            reached.unwrap_or(stop.max(start + MediaTime(1)))
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
        let behind = ldus.end..track.ldus.len().min(ldus.end.saturating_add(REORDERED));
        if behind.is_empty() {
            return line.time(timeline::shown_until(track, ldus).map_or(0, |end| line.place(end)));
        }
        let last = track.ldus.range(ldus.clone()).map(|ldu| shown(track, &ldu)).max();
        let next = track.ldus.range(behind).map(|ldu| shown(track, &ldu));
        let next = next.filter(|next| last.is_some_and(|last| *next > last)).min();
        // The duration of a reordered picture may be a pause before it.
        let ends = track.ldus.range(ldus).map(|ldu| shown(track, &ldu) + i64::from(ldu.duration));
        let end = ends.max().map(|end| next.map_or(end, |next| end.min(next)));
        line.time(end.map_or(0, |end| line.place(end)))
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

/// The time after a position within which a picture is waited for: that of ten pictures a second.
const LONG: MediaTime = MediaTime(100_000_000);
const HALF_A_MILLISECOND: MediaTime = MediaTime(500_000);
/// The sound that is decoded before the first that is heard: 80 ms for Opus (RFC 7845, 4.6), one
/// packet of AAC, and the bit reservoir of MP3.
const SOUND_PREROLL: MediaTime = MediaTime(80_000_000);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Checksums, LduIndex, TrackDescription};
    use units::Timescale;

    /// A track of these LDUs, by duration and composition offset, with a group each 4; its edit
    /// list hides what is before `media_time`.
    fn track(kind: TrackKind, scale: u32, media_time: i64, ldus: &[(u32, i32)]) -> TrackIndex {
        let mut index = LduIndex::default();
        for (i, (duration, offset)) in ldus.iter().enumerate() {
            let sync = kind == TrackKind::Audio || i % 4 == 0;
            index.push(1, *duration, *offset, sync, false);
        }
        let mut description = TrackDescription::plain(kind, Timescale(scale));
        description.edits = vec![Edit { duration: None, media_time: Some(media_time) }];
        let data_len = index.data_len();
        TrackIndex { description, ldus: index, data_len, checksums: Checksums::default() }
    }

    fn milliseconds(time: MediaTime) -> i64 {
        time.0 / 1_000_000
    }

    /// The LDUs of a track in a clip, where its edit begins in their media, and its duration.
    fn cut(clip: &Clip, track: &TrackIndex) -> (Range<usize>, i64, i64) {
        let line = Timeline::new(track);
        let ldus = clip.ldus(track, &line);
        let edits = clip.edits(track, &line, &ldus);
        let [edit] = edits.as_slice() else { panic!("one edit, not {edits:?}") };
        (ldus, edit.media_time.unwrap(), milliseconds(edit.duration.unwrap()))
    }

    #[test]
    fn bounds_ldus_and_edits_of_clips() {
        // Stored I P B B and shown I B B P, 40 ms each: at 0, 120, 40, 80; 160, 280, 200, 240.
        let group = [(40, 40), (40, 120), (40, 0), (40, 0)];
        let pictures = track(TrackKind::Video, 1000, 40, &[group, group].concat());
        let sound = track(TrackKind::Audio, 48_000, 1024, &[(1024, 0); 16]);
        let row = |start: u64, stop: Option<u64>| {
            let ms = Duration::from_millis;
            let wanted = Excerpt { start: ms(start), stop: stop.map(ms), ..Excerpt::default() };
            let clip = Clip::of(&pictures, &Timeline::new(&pictures), &wanted);
            let bounds = (milliseconds(clip.start), clip.stop.map(milliseconds));
            (bounds, cut(&clip, &pictures), cut(&clip, &sound))
        };
        // From one picture to another; the sound has its priming, or 80 ms before it is heard.
        assert_eq!(row(0, Some(80)), ((0, Some(80)), (0..3, 40, 80), (0..5, 1024, 80)));
        assert_eq!(row(40, Some(120)), ((40, Some(120)), (0..4, 80, 80), (0..7, 2944, 80)));
        // Between two pictures the later one is the first.
        assert_eq!(row(41, Some(120)), ((80, Some(120)), (0..4, 120, 40), (1..7, 3840, 40)));
        // From a key frame to the end, which is that of each track.
        assert_eq!(row(160, None), ((160, None), (4..8, 40, 160), (4..16, 4608, 160)));
        // Shorter than a picture.
        assert_eq!(row(200, Some(201)), ((200, Some(240)), (4..7, 80, 40), (6..13, 4480, 40)));
        // Within the last picture.
        assert_eq!(row(310, Some(320)), ((280, Some(320)), (4..8, 160, 40), (10..16, 4224, 40)));
    }

    #[test]
    fn a_picture_that_is_shown_for_long_is_cut_where_the_part_is() {
        // Shown at 0, 40, 2040 and 2080 ms; the sound is 3.2 s long.
        let pictures = [(40, 0), (2000, 0), (40, 0), (40, 0)];
        let pictures = track(TrackKind::Video, 1000, 0, &pictures);
        let sound = track(TrackKind::Audio, 48_000, 0, &[(1024, 0); 150]);
        let line = Timeline::new(&pictures);
        let clip = |start: u64, stop: u64| {
            let ms = Duration::from_millis;
            let wanted = Excerpt { start: ms(start), stop: Some(ms(stop)), ..Excerpt::default() };
            let clip = Clip::of(&pictures, &line, &wanted);
            let bounds = (milliseconds(clip.start), clip.stop.map(milliseconds));
            let shown = clip.edits(&pictures, &line, &clip.ldus(&pictures, &line));
            let shown = shown.first().map(|edit| milliseconds(edit.duration.unwrap()));
            let (_, _, heard) = cut(&clip, &sound);
            (bounds, shown, heard)
        };
        assert_eq!(clip(1000, 1500), ((1000, Some(1500)), Some(500), 500));
        assert_eq!(clip(500, 2050), ((500, Some(2080)), Some(1580), 1580));
        // The next picture is near.
        assert_eq!(clip(1950, 2050), ((2040, Some(2080)), Some(40), 40));
        // Behind the last picture there is sound alone.
        assert_eq!(clip(2700, 3000), ((2700, Some(3000)), None, 300));
    }

    #[test]
    fn a_track_that_begins_later_waits_and_one_that_has_ended_is_left_out() {
        let mut late = track(TrackKind::Video, 1000, 0, &[(40, 0); 4]);
        let wait = Edit { duration: Some(MediaTime(100_000_000)), media_time: None };
        late.description.edits.insert(0, wait);
        let line = Timeline::new(&late);
        let clip = |start: i64, stop: i64| Clip {
            start: MediaTime(start * 1_000_000),
            stop: Some(MediaTime(stop * 1_000_000)),
        };
        let edits = |clip: Clip| {
            let edits = clip.edits(&late, &line, &clip.ldus(&late, &line)).into_iter();
            let shown = edits.map(|edit| (edit.media_time, milliseconds(edit.duration.unwrap())));
            shown.collect::<Vec<_>>()
        };
        assert_eq!(edits(clip(60, 180)), [(None, 40), (Some(0), 80)]);
        assert_eq!(edits(clip(140, 180)), [(Some(40), 40)]);
        assert_eq!(edits(clip(300, 400)), []);
        assert_eq!(edits(clip(0, 90)), []);
    }
}
