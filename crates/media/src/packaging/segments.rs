//! Cutting tracks into segments.
//!
//! Pictures are cut at the first sync LDU that lies the wanted time or more behind the last cut.
//! Sound is cut where the pictures are, to within one packet, so that a player that changes
//! between tracks finds the same boundaries. Sound alone, and sound that goes on after the
//! pictures, is cut by time.

use super::timeline::{Timeline, ticks};
use crate::{LduIndex, TrackIndex, TrackKind};
use std::ops::Range;
use std::time::Duration;
use units::MediaTime;

/// A track's segments: which LDUs, and where they lie on the title's time line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Segments {
    /// Number of the first LDU of each segment, then the number of LDUs.
    cuts: Vec<usize>,
    /// Where each segment begins on the title's time line, then where the last one ends. Begins
    /// with zero, never decreases.
    times: Vec<MediaTime>,
}

impl Segments {
    pub(super) fn count(&self) -> usize {
        self.cuts.len().saturating_sub(1)
    }

    /// The LDUs of a segment, if there is such a segment.
    pub(super) fn ldus(&self, number: usize) -> Option<Range<usize>> {
        Some(*self.cuts.get(number)?..*self.cuts.get(number + 1)?)
    }

    /// Beginning and end of a segment.
    pub(super) fn time(&self, number: usize) -> Range<MediaTime> {
        self.times[number]..self.times[number + 1]
    }

    /// Where segments begin.
    pub(super) fn starts(&self) -> &[MediaTime] {
        &self.times[..self.count()]
    }

    /// Where the last segment ends.
    pub(super) fn end(&self) -> MediaTime {
        self.times.last().copied().unwrap_or_default()
    }

    /// `firsts`: the first LDU of each segment.
    fn new(mut firsts: Vec<usize>, track: &TrackIndex, line: &Timeline) -> Self {
        let mut times: Vec<MediaTime> = Vec::with_capacity(firsts.len() + 1);
        for (number, &first) in firsts.iter().enumerate() {
            // What comes before the first picture or sound belongs to the first segment.
            let time = if number == 0 { MediaTime::ZERO } else { line.begins(track, first) };
            times.push(time.max(times.last().copied().unwrap_or_default()));
        }
        if let Some(&last) = times.last() {
            times.push(line.time(line.end).max(last));
            firsts.push(track.ldus.len());
        }
        Self { cuts: firsts, times }
    }
}

/// Cuts a video track at its sync LDUs.
pub(super) fn cut_video(track: &TrackIndex, line: &Timeline, target: Duration) -> Segments {
    let target = target_ticks(line, target);
    let mut firsts = Vec::new();
    let mut started = 0;
    for (i, ldu) in track.ldus.iter().enumerate() {
        let at = ticks(ldu.decode_time);
        if i == 0 || (ldu.sync && at - started >= target) {
            firsts.push(i);
            started = at;
        }
    }
    Segments::new(firsts, track, line)
}

/// Cuts a track of sound by `video`'s boundaries if there is one, and by time.
pub(super) fn cut_audio(
    track: &TrackIndex,
    line: &Timeline,
    video: Option<&Segments>,
    target: Duration,
) -> Segments {
    let target = MediaTime(i64::try_from(target.as_nanos()).unwrap_or(i64::MAX).max(1));
    let mut given = video.map_or(&[][..], |video| video.starts()).iter().skip(1).copied();
    // Beyond the pictures: the first cut of its own would make a segment of the wanted length.
    let beyond = video.map_or(MediaTime::ZERO, Segments::end) + target;
    let mut next = given.next().unwrap_or(beyond);
    let mut firsts = Vec::new();
    for (i, ldu) in track.ldus.iter().enumerate() {
        let at = line.time(line.place(ticks(ldu.decode_time)));
        if i == 0 {
            firsts.push(i);
        }
        if at < next {
            continue;
        }
        if i > 0 {
            firsts.push(i);
        }
        // Several boundaries may lie in one pause: one cut does for all.
        while next <= at {
            next = given.next().unwrap_or(next.max(beyond - target) + target);
        }
    }
    Segments::new(firsts, track, line)
}

/// Whether decoding can start at every segment.
pub(super) fn are_independent(segments: &Segments, track: &TrackIndex) -> bool {
    let firsts = &segments.cuts[..segments.count()];
    track.description.kind == TrackKind::Audio || firsts.iter().all(|&i| track.ldus.get(i).sync)
}

/// Which bytes of the track's data a run of LDUs takes.
pub(super) fn data(index: &LduIndex, ldus: Range<usize>) -> Range<u64> {
    let at = |i| if i == index.len() { index.data_len() } else { index.get(i).offset };
    at(ldus.start)..at(ldus.end)
}

fn target_ticks(line: &Timeline, target: Duration) -> i64 {
    let ticks = target.as_nanos() * u128::from(line.scale.0) / 1_000_000_000;
    i64::try_from(ticks).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Edit, TrackDescription};
    use units::Timescale;

    fn track(kind: TrackKind, scale: u32, ldus: LduIndex, edits: Vec<Edit>) -> TrackIndex {
        let description = TrackDescription {
            kind,
            timescale: Timescale(scale),
            sample_entry: Vec::new(),
            codec: String::new(),
            language: "und".to_owned(),
            width: 0,
            height: 0,
            matrix: [0; 9],
            sample_rate: 0,
            channels: 0,
            edits,
            default: true,
        };
        TrackIndex { description, data_len: ldus.data_len(), ldus, checksums: Vec::new() }
    }

    /// `sync` tells which frames decoding may start at.
    fn video(frames: usize, sync: impl Fn(usize) -> bool) -> TrackIndex {
        let mut ldus = LduIndex::default();
        (0..frames).for_each(|i| ldus.push(1, 40, 0, sync(i), false));
        track(TrackKind::Video, 1000, ldus, Vec::new())
    }

    fn audio(packets: usize, edits: Vec<Edit>) -> TrackIndex {
        let mut ldus = LduIndex::default();
        (0..packets).for_each(|_| ldus.push(1, 1024, 0, true, false));
        track(TrackKind::Audio, 48_000, ldus, edits)
    }

    /// Segments as text: first LDU of each, and the boundaries in ms.
    fn shown(segments: &Segments) -> String {
        let times: Vec<i64> = segments.times.iter().map(|time| time.0 / 1_000_000).collect();
        format!("{:?} {times:?}", segments.cuts)
    }

    const TARGET: Duration = Duration::from_secs(2);

    #[test]
    fn pictures_are_cut_at_key_frames_not_before_the_target() {
        let cut = |track: TrackIndex| shown(&cut_video(&track, &Timeline::new(&track), TARGET));
        let every_12 = video(150, |i| i % 12 == 0);
        assert_eq!(cut(every_12), "[0, 60, 120, 150] [0, 2400, 4800, 6000]");
        assert_eq!(cut(video(150, |_| true)), "[0, 50, 100, 150] [0, 2000, 4000, 6000]");
        assert_eq!(cut(video(150, |i| i == 0)), "[0, 150] [0, 6000]");
        assert_eq!(cut(video(100, |i| i == 99)), "[0, 99, 100] [0, 3960, 4000]");
        assert_eq!(cut(video(0, |_| true)), "[] []");
    }

    #[test]
    fn sound_is_cut_where_the_pictures_are() {
        let pictures = video(150, |i| i % 12 == 0);
        let pictures = cut_video(&pictures, &Timeline::new(&pictures), TARGET);
        let cut = |track: TrackIndex, video| {
            shown(&cut_audio(&track, &Timeline::new(&track), video, TARGET))
        };
        let primed = vec![Edit { duration: None, media_time: Some(1024) }];
        // 2400 ms are 112.5 packets; the first one at or after it starts at 2410 ms.
        assert_eq!(
            cut(audio(281, vec![]), Some(&pictures)),
            "[0, 113, 225, 281] [0, 2410, 4800, 5994]"
        );
        assert_eq!(
            cut(audio(282, primed), Some(&pictures)),
            "[0, 114, 226, 282] [0, 2410, 4800, 5994]"
        );
        // 4 s longer than the pictures.
        assert_eq!(
            cut(audio(469, vec![]), Some(&pictures)),
            "[0, 113, 225, 375, 469] [0, 2410, 4800, 8000, 10005]"
        );
        assert_eq!(cut(audio(281, vec![]), None), "[0, 94, 188, 281] [0, 2005, 4010, 5994]");
        // Sound that starts after two of the pictures' boundaries.
        let late = vec![Edit { duration: Some(MediaTime(5_000_000_000)), media_time: None }];
        assert_eq!(cut(audio(47, late), Some(&pictures)), "[0, 47] [0, 6002]");
    }
}
