//! The mapping of a track's own ticks to the title's timeline, edit list applied.
//!
//! ```text
//! title time   0 ......... wait ........................................ end
//! track ticks              media_start (first shown) ...................
//!              <---- priming, B-frame delay: before media_start, decoded but not shown
//! ```
//! FFmpeg's remux leaves at most two edits: a wait, then one that runs from `media_start`. For
//! longer lists segments use the first two; a progressive file has the whole list.

use crate::{Ldu, TrackDescription, TrackIndex, TrackKind};
use std::ops::Range;
use units::{MediaTime, Timescale};

/// One track's timeline. All numbers are in its ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Timeline {
    pub(super) scale: Timescale,
    /// The time before which nothing is shown.
    pub(super) wait: i64,
    /// The presentation time that is shown first.
    pub(super) media_start: i64,
    /// The end of the last LDU on the title's timeline.
    pub(super) end: i64,
}

impl Timeline {
    pub(super) fn new(track: &TrackIndex) -> Self {
        // The LDU that is shown last need not be the one that is decoded last.
        let end = shown_until(track, 0..track.ldus.len()).unwrap_or(0);
        Self::until(&track.description, end)
    }

    /// The timeline of a track that is shown until this time of its own.
    pub(super) fn until(track: &TrackDescription, end: i64) -> Self {
        let scale = track.timescale;
        let edits = &track.edits;
        let waits = edits.iter().take_while(|edit| edit.media_time.is_none());
        let wait = waits.map(|edit| nearest(edit.duration.unwrap_or_default(), scale)).sum();
        let media_start = edits.iter().find_map(|edit| edit.media_time).unwrap_or(0);
        let mut line = Self { scale, wait, media_start, end: 0 };
        line.end = line.place(end).max(0);
        line
    }

    /// The time by which the first stored picture precedes the first shown one, beyond the delay of
    /// reordering: such pictures are kept only because later ones are decoded from them.
    pub(super) fn preroll(&self, track: &TrackIndex) -> MediaTime {
        let first =
            track.ldus.iter().take(REORDERED).map(|ldu| {
                ticks(ldu.decode_time).saturating_add(i64::from(ldu.composition_offset))
            });
        let unseen = first.min().map_or(0, |first| self.media_start.saturating_sub(first));
        // Only pictures: players cut hidden sound by the edit list, but cannot hide pictures.
        self.time(if track.description.kind == TrackKind::Video { unseen.max(0) } else { 0 })
    }

    /// This timeline if the title began `earlier`: pictures that the edit list hid are shown as far
    /// as they go, and the rest is a wait.
    pub(super) fn beginning(&self, earlier: MediaTime) -> Self {
        let earlier = nearest(earlier, self.scale);
        let uncovered = earlier.min(self.media_start).max(0);
        Self {
            media_start: self.media_start - uncovered,
            wait: self.wait.saturating_add(earlier - uncovered),
            end: self.end.saturating_add(earlier),
            scale: self.scale,
        }
    }

    /// This timeline for an excerpt that begins in the middle: nothing is hidden by an edit list.
    pub(super) fn uncovered(&self) -> Self {
        let wait = self.wait.saturating_sub(self.media_start);
        Self { media_start: 0, wait, ..*self }
    }

    /// The position of a time of the track, in ticks, on the title's timeline.
    pub(super) fn place(&self, ticks: i64) -> i64 {
        ticks.saturating_sub(self.media_start).saturating_add(self.wait)
    }

    /// Ticks of the title's time line as time.
    pub(super) fn time(&self, ticks: i64) -> MediaTime {
        MediaTime::from_ticks(ticks, self.scale)
    }

    /// The start of the `i`th LDU: the presentation time of video, the decode time of audio, which
    /// differ only by the edit list there.
    pub(super) fn begins(&self, track: &TrackIndex, i: usize) -> MediaTime {
        let ldu = track.ldus.get(i);
        self.time(self.place(shown(track, &ldu)))
    }
}

/// The time of a track, in ticks, until which the last shown one of these LDUs is shown; `None` of
/// no LDUs. The stored durations are those between decode times: that of a reordered picture may
/// be a pause which comes before it. Only the last decoded one has that of a picture.
pub(super) fn shown_until(track: &TrackIndex, ldus: Range<usize>) -> Option<i64> {
    let length = track.ldus.duration(ldus.end.checked_sub(1)?);
    let last = track.ldus.range(ldus).map(|ldu| shown(track, &ldu)).max()?;
    Some(last.saturating_add(length.into()))
}

/// When an LDU is shown, in ticks of the track: pictures later than they are decoded.
pub(super) fn shown(track: &TrackIndex, ldu: &Ldu) -> i64 {
    let delay = match track.description.kind {
        TrackKind::Video => i64::from(ldu.composition_offset),
        _ => 0,
    };
    ticks(ldu.decode_time).saturating_add(delay)
}

/// The time by which all tracks begin later in segments than in the title: that of the longest
/// preroll, so that they stay in step.
pub(super) fn longest_preroll(tracks: &[TrackIndex], lines: &[Timeline]) -> MediaTime {
    let prerolls = tracks.iter().zip(lines).map(|(track, line)| line.preroll(track));
    prerolls.max().unwrap_or_default()
}

/// The number of first decoded pictures among which the first shown one is: no codec reorders
/// further.
pub(super) const REORDERED: usize = 16;

/// A decode time as signed ticks; none is near the limit.
pub(super) fn ticks(decode_time: u64) -> i64 {
    i64::try_from(decode_time).unwrap_or(i64::MAX)
}

/// Converts to the nearest tick, so that a time that was rounded to nanoseconds is recovered.
pub(super) fn nearest(time: MediaTime, scale: Timescale) -> i64 {
    let half = 500_000_000;
    // `div_euclid` rounds to the same side before zero as after it.
    let ticks = (i128::from(time.0) * i128::from(scale.0) + half).div_euclid(1_000_000_000);
    i64::try_from(ticks).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Checksums, LduIndex};

    /// The end of a track of pictures by duration and composition offset.
    fn end(ldus: &[(u32, i32)]) -> i64 {
        let mut index = LduIndex::default();
        ldus.iter().for_each(|(duration, offset)| index.push(1, *duration, *offset, true, false));
        let description = TrackDescription::plain(TrackKind::Video, Timescale(1000));
        let data_len = index.data_len();
        let track =
            TrackIndex { description, data_len, ldus: index, checksums: Checksums::default() };
        Timeline::new(&track).end
    }

    #[test]
    fn a_track_ends_with_its_last_shown_picture() {
        // Stored I P B B, shown I B B P.
        assert_eq!(end(&[(40, 40), (40, 120), (40, 0), (40, 0)]), 200);
        // The pause before the last two is the duration of the key frame, as it is decoded then.
        let paused = [(40, 40), (40, 40), (40_000, 40_000), (40, 40)];
        assert_eq!(end(&paused), 40_160);
        assert_eq!(end(&[(40, 0), (90, 0)]), 130);
        assert_eq!(end(&[]), 0);
    }
}
