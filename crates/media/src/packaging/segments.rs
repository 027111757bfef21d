//! Cutting tracks into segments.
//!
//! Video is cut at the sync LDUs nearest to the multiples of the target length. Audio is cut where
//! the video is, to within one packet, so that a player that changes between tracks finds the same
//! boundaries. Audio without video, and audio that continues after it, is cut by time.

use super::cuts::nearest_cuts;
use super::timeline::{Timeline, nearest, shown_until, ticks};
use crate::{Ldu, LduIndex, TrackIndex, TrackKind};
use std::ops::Range;
use std::time::Duration;
use units::MediaTime;

/// A track's segments: their LDUs, and their times on the played timeline.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Segments {
    /// All parts in order.
    parts: Vec<LduRun>,
    /// The number of the first part of each segment, then the number of parts.
    cuts: Vec<usize>,
    /// The start of each segment, then the end of the last one. Begins with zero, never decreases.
    times: Vec<MediaTime>,
}

/// LDUs that are contiguous in the track and in playback.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LduRun {
    pub(super) ldus: Range<usize>,
    /// The ticks by which it is played earlier than in the whole title (later, if negative).
    pub(super) earlier: i64,
    /// The track's decode times within which it is decoded, where those of the whole title would
    /// overlap with the run before or after it, or leave a gap.
    pub(super) decoded: Option<Range<i64>>,
}

impl LduRun {
    /// LDUs with the decode times of the whole title.
    pub(super) fn new(ldus: Range<usize>, earlier: i64) -> Self {
        Self { ldus, earlier, decoded: None }
    }

    /// Bounds the decode times, in ticks of the track, where they do not fill these bounds.
    pub(super) fn decode_within(&mut self, index: &LduIndex, bounds: Range<i64>) {
        let begins = ticks(index.begin(self.ldus.start));
        let fits = begins >= bounds.start && ticks(index.begin(self.ldus.end)) == bounds.end;
        self.decoded = (!fits).then_some(bounds);
    }

    /// The LDUs, with the decode times at which they are played: later ones move as little as
    /// the range allows, and the last one goes on until its end. The presentation times stay.
    pub(super) fn range<'a>(&self, index: &'a LduIndex) -> impl Iterator<Item = Ldu> + use<'a> {
        let mut left = self.ldus.len();
        let within = self.decoded.clone().map(|within| {
            let late = ticks(index.begin(self.ldus.start)).saturating_sub(within.start).max(0);
            (within, late)
        });
        let mut at = within.as_ref().map_or(0, |(within, _)| within.start.max(0));
        index.range(self.ldus.clone()).map(move |ldu| {
            let Some((within, late)) = &within else { return ldu };
            let next = ticks(ldu.decode_time).saturating_add(ldu.duration.into());
            left -= 1;
            // Each has at least one tick.
            let latest = within.end.saturating_sub(i64::try_from(left).unwrap_or(i64::MAX));
            let next = if left == 0 { latest } else { next.saturating_sub(*late).min(latest) };
            let next = next.max(at.saturating_add(1));
            let shown = ticks(ldu.decode_time).saturating_add(ldu.composition_offset.into());
            let moved = Ldu {
                decode_time: at.unsigned_abs(),
                duration: u32::try_from(next - at).unwrap_or(u32::MAX),
                composition_offset: clamped(shown.saturating_sub(at)),
                ..ldu
            };
            at = next;
            moved
        })
    }

    /// The first LDU, with the decode time at which it is played.
    pub(super) fn first(&self, index: &LduIndex) -> Ldu {
        self.range(index).next().expect("a run has an LDU")
    }
}

/// An offset as `trun` has it.
fn clamped(ticks: i64) -> i32 {
    i32::try_from(ticks).unwrap_or(if ticks < 0 { i32::MIN } else { i32::MAX })
}

impl Segments {
    /// Segments of one part each: `firsts` are their first LDUs, `end` is the LDU after the last,
    /// and `until` their end in the title; playback begins at `from` there.
    pub(super) fn new(
        firsts: &[usize],
        end: usize,
        until: MediaTime,
        track: &TrackIndex,
        line: &Timeline,
        from: MediaTime,
    ) -> Self {
        let earlier = nearest(from, line.scale);
        let after = firsts.iter().copied().skip(1).chain([end]);
        let parts: Vec<LduRun> =
            firsts.iter().zip(after).map(|(&a, b)| LduRun::new(a..b, earlier)).collect();
        let mut times: Vec<MediaTime> = Vec::with_capacity(firsts.len() + 1);
        for (number, &first) in firsts.iter().enumerate() {
            // LDUs before the first presented one belong to the first segment.
            let begins = line.begins(track, first) - from;
            let time = if number == 0 { MediaTime::ZERO } else { begins };
            // Playlists have no negative lengths, but reordered pictures may begin before the cut.
            times.push(time.max(times.last().copied().unwrap_or_default()));
        }
        if let Some(&last) = times.last() {
            times.push((until - from).max(last));
        }
        let cuts = if parts.is_empty() { Vec::new() } else { (0..=parts.len()).collect() };
        Self { parts, cuts, times }
    }

    /// Segments of one part each, of all LDUs of the title. Each begins where the one before ends,
    /// by the LDUs before it alone: its start is known before its own first LDU is.
    pub(super) fn back_to_back(firsts: &[usize], track: &TrackIndex, line: &Timeline) -> Self {
        let mut segments = Self::default();
        segments.append(firsts, track.ldus.len(), track, line);
        segments
    }

    /// Appends segments of one part each to such as are [`Self::back_to_back`]: `firsts` are their
    /// first LDUs, of which the first one is the LDU after the last segment, and `end` is the LDU
    /// after the last.
    pub(super) fn append(
        &mut self,
        firsts: &[usize],
        end: usize,
        track: &TrackIndex,
        line: &Timeline,
    ) {
        if self.parts.is_empty() && !firsts.is_empty() {
            self.times.push(MediaTime::ZERO);
            self.cuts.push(0);
        }
        let after = firsts.iter().copied().skip(1).chain([end]);
        for (&first, after) in firsts.iter().zip(after) {
            let last = shown_until(track, first..after).map(|end| line.time(line.place(end)));
            self.times.push(last.unwrap_or_default().max(self.end()));
            self.parts.push(LduRun::new(first..after, 0));
            self.cuts.push(self.parts.len());
        }
    }

    /// The LDU after the last part.
    pub(super) fn end_ldu(&self) -> usize {
        self.parts.last().map_or(0, |part| part.ldus.end)
    }

    /// Segments of these parts, each with its play-out time, of about the length `target`.
    pub(super) fn of_parts(parts: Vec<(LduRun, MediaTime)>, target: MediaTime) -> Self {
        let mut starts = Vec::with_capacity(parts.len());
        let mut end = MediaTime::ZERO;
        for (_, length) in &parts {
            starts.push(end.0);
            end = end + *length;
        }
        let mut cuts = nearest_cuts(&starts, end.0, target.0);
        let mut times: Vec<MediaTime> = cuts.iter().map(|&cut| MediaTime(starts[cut])).collect();
        if !parts.is_empty() {
            cuts.push(parts.len());
            times.push(end);
        }
        Self { parts: parts.into_iter().map(|(part, _)| part).collect(), cuts, times }
    }

    pub(super) fn count(&self) -> usize {
        self.cuts.len().saturating_sub(1)
    }

    /// The parts of a segment, if it exists.
    pub(super) fn parts(&self, number: usize) -> Option<&[LduRun]> {
        self.parts.get(*self.cuts.get(number)?..*self.cuts.get(number + 1)?)
    }

    /// The number of a segment's first part, among all parts.
    pub(super) fn first_of(&self, number: usize) -> u32 {
        u32::try_from(self.cuts[number]).expect("fewer parts than LDUs")
    }

    /// The parts of all segments, in order.
    pub(super) fn runs(&self) -> &[LduRun] {
        &self.parts
    }

    /// The start and the end of a segment.
    pub(super) fn time(&self, number: usize) -> Range<MediaTime> {
        self.times[number]..self.times[number + 1]
    }

    /// The length of each segment in microseconds, as playlists state it. Boundaries are rounded,
    /// not lengths, so that the lengths add up to the track's.
    pub(super) fn lengths(&self) -> impl Iterator<Item = u64> + Clone + '_ {
        self.times.windows(2).map(|pair| micros(pair[1]) - micros(pair[0]))
    }

    /// The length of one segment in microseconds; `None` if there is no such segment.
    pub(super) fn length(&self, number: usize) -> Option<u64> {
        let (start, end) = (self.times.get(number)?, self.times.get(number + 1)?);
        Some(micros(*end) - micros(*start))
    }

    /// The starts of all segments.
    pub(super) fn starts(&self) -> &[MediaTime] {
        &self.times[..self.count()]
    }

    /// The ends of all segments.
    pub(super) fn ends(&self) -> &[MediaTime] {
        self.times.get(1..).unwrap_or_default()
    }

    /// The end of the last segment.
    pub(super) fn end(&self) -> MediaTime {
        self.times.last().copied().unwrap_or_default()
    }
}

/// Cuts a video track at its sync LDUs.
pub(super) fn cut_video(track: &TrackIndex, line: &Timeline, target: Duration) -> Segments {
    let firsts = video_firsts(track, line, target, 0..track.ldus.len(), nearest_cuts);
    Segments::new(&firsts, track.ldus.len(), line.time(line.end), track, line, MediaTime::ZERO)
}

/// The first LDUs of the segments of a video track. `cut`: chooses the places, as [`nearest_cuts`].
pub(super) fn video_firsts(
    track: &TrackIndex,
    line: &Timeline,
    target: Duration,
    ldus: Range<usize>,
    cut: impl Fn(&[i64], i64, i64) -> Vec<usize>,
) -> Vec<usize> {
    let (mut firsts, mut starts, mut end) = (Vec::new(), Vec::new(), 0);
    for (i, ldu) in ldus.clone().zip(track.ldus.range(ldus.clone())) {
        // Decode times grow in storage order; presentation times need not.
        let at = ticks(ldu.decode_time);
        if i == ldus.start || ldu.sync {
            firsts.push(i);
            starts.push(at);
        }
        end = at.saturating_add(i64::from(ldu.duration));
    }
    let cuts = cut(&starts, end, target_ticks(line, target));
    cuts.into_iter().map(|cut| firsts[cut]).collect()
}

/// Cuts an audio track at `video`'s boundaries, if there is one, and by time.
pub(super) fn cut_audio(
    track: &TrackIndex,
    line: &Timeline,
    video: Option<&Segments>,
    target: Duration,
) -> Segments {
    let all = 0..track.ldus.len();
    let (from, longest) = (MediaTime::ZERO, MediaTime(i64::MAX));
    let cuts = VideoCuts { segments: video, from, longest };
    let firsts = audio_firsts(track, line, &cuts, target, all);
    Segments::new(&firsts, track.ldus.len(), line.time(line.end), track, line, MediaTime::ZERO)
}

/// The segments of a video track that audio follows.
pub(super) struct VideoCuts<'a> {
    /// The video's segments; `None` without video.
    pub(super) segments: Option<&'a Segments>,
    /// The time of the title at which they begin.
    pub(super) from: MediaTime,
    /// Where one of them is longer than this, audio is cut within it.
    pub(super) longest: MediaTime,
}

/// The first time behind `at` at which audio is cut beside a segment of pictures of this time: its
/// end, or where it is longer than `longest`, an earlier one.
pub(super) fn cut_behind(
    at: MediaTime,
    pictures: Range<MediaTime>,
    longest: MediaTime,
) -> MediaTime {
    let from = pictures.start.0;
    let longest = longest.0.max(1);
    let count = (at.0.saturating_sub(from).max(0) / longest).saturating_add(1);
    MediaTime(from.saturating_add(longest.saturating_mul(count))).min(pictures.end)
}

/// The first LDUs of the segments of an audio track, beside the segments of a video track.
pub(super) fn audio_firsts(
    track: &TrackIndex,
    line: &Timeline,
    video: &VideoCuts<'_>,
    target: Duration,
    ldus: Range<usize>,
) -> Vec<usize> {
    // At least one nanosecond, so that the boundaries below advance.
    let target = MediaTime(i64::try_from(target.as_nanos()).unwrap_or(i64::MAX).max(1));
    let starts = video.segments.map_or(&[][..], Segments::starts);
    let mut given = starts.iter().skip(1).copied();
    // Beyond the video: the first cut of its own would make a segment of the target length.
    let beyond = video.segments.map_or(MediaTime::ZERO, Segments::end) + target;
    let mut pictures = MediaTime::ZERO..given.next().unwrap_or(beyond);
    let mut next = cut_behind(MediaTime::ZERO, pictures.clone(), video.longest);
    let mut firsts = Vec::new();
    for (i, ldu) in ldus.clone().zip(track.ldus.range(ldus.clone())) {
        let at = line.time(line.place(ticks(ldu.decode_time))) - video.from;
        if i == ldus.start {
            firsts.push(i);
        }
        if at < next {
            continue;
        }
        if i > ldus.start {
            firsts.push(i);
        }
        // Several boundaries may fall into one pause: one cut is enough for all.
        while next <= at {
            if next == pictures.end {
                pictures = next..given.next().unwrap_or(next.max(beyond - target) + target);
            }
            next = cut_behind(next, pictures.clone(), video.longest);
        }
    }
    firsts
}

/// The end of the LDUs before the `i`th.
pub(super) fn ends(track: &TrackIndex, line: &Timeline, i: usize) -> MediaTime {
    if i < track.ldus.len() { line.begins(track, i) } else { line.time(line.end) }
}

/// Whether each segment can be decoded without the others: it begins with a sync LDU, and no
/// picture after that one is shown before it. Such leading pictures of an open group of pictures
/// are decoded from the previous group, and so is a part of the pictures of a gradual refresh.
pub(super) fn are_independent(segments: &Segments, track: &TrackIndex) -> bool {
    // Audio can be decoded from any packet on.
    let is_independent = |part: &LduRun| {
        track.ldus.get(part.ldus.start).sync && !has_leading(track, part.ldus.clone())
    };
    track.description.kind == TrackKind::Audio
        || (!track.description.gradual_refresh && segments.parts.iter().all(is_independent))
}

/// Whether any of these LDUs is shown before the first one.
pub(super) fn has_leading(track: &TrackIndex, ldus: Range<usize>) -> bool {
    let shown = |ldu: Ldu| ticks(ldu.decode_time).saturating_add(i64::from(ldu.composition_offset));
    let first = shown(track.ldus.get(ldus.start));
    track.ldus.range(ldus).any(|ldu| shown(ldu) < first)
}

/// The bytes of the track's data in a run of LDUs.
pub(super) fn data(index: &LduIndex, ldus: Range<usize>) -> Range<u64> {
    index.offset(ldus.start)..index.offset(ldus.end)
}

/// Microseconds since the start, rounded.
pub(super) fn micros(time: MediaTime) -> u64 {
    u64::try_from(time.0).unwrap_or(0).saturating_add(500) / 1000
}

/// The length of a segment in a track's ticks.
pub(super) fn target_ticks(line: &Timeline, target: Duration) -> i64 {
    let ticks = target.as_nanos() * u128::from(line.scale.0) / 1_000_000_000;
    i64::try_from(ticks).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Checksums, Edit, TrackDescription};
    use units::Timescale;

    fn track(kind: TrackKind, scale: u32, ldus: LduIndex, edits: Vec<Edit>) -> TrackIndex {
        let description =
            TrackDescription { edits, ..TrackDescription::plain(kind, Timescale(scale)) };
        TrackIndex { description, data_len: ldus.data_len(), ldus, checksums: Checksums::default() }
    }

    /// A video track; `sync` tells at which frames decoding may start.
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

    /// Segments as text: the first LDU of each, and the boundaries in ms.
    fn shown(segments: &Segments) -> String {
        let times: Vec<i64> = segments.times.iter().map(|time| time.0 / 1_000_000).collect();
        let firsts: Vec<usize> = segments.parts.iter().map(|part| part.ldus.start).collect();
        let end = segments.parts.last().map(|part| part.ldus.end);
        let cuts: Vec<usize> = firsts.into_iter().chain(end).collect();
        format!("{cuts:?} {times:?}")
    }

    const TARGET: Duration = Duration::from_secs(2);

    #[test]
    fn video_is_cut_at_the_key_frames_nearest_to_the_multiples_of_the_target() {
        let cut = |track: TrackIndex| shown(&cut_video(&track, &Timeline::new(&track), TARGET));
        let every_12 = video(150, |i| i % 12 == 0);
        assert_eq!(cut(every_12), "[0, 48, 96, 150] [0, 1920, 3840, 6000]");
        assert_eq!(cut(video(150, |_| true)), "[0, 50, 100, 150] [0, 2000, 4000, 6000]");
        assert_eq!(cut(video(150, |i| i == 0)), "[0, 150] [0, 6000]");
        assert_eq!(cut(video(100, |i| i == 99)), "[0, 100] [0, 4000]");
        assert_eq!(cut(video(0, |_| true)), "[] []");
    }

    /// A video track of groups of four pictures with these composition offsets.
    fn groups(offsets: [i32; 4]) -> TrackIndex {
        let mut ldus = LduIndex::default();
        for i in 0..200 {
            ldus.push(1, 40, offsets[i % 4], i % 4 == 0, false);
        }
        track(TrackKind::Video, 1000, ldus, Vec::new())
    }

    #[test]
    fn segments_with_leading_pictures_depend_on_the_one_before() {
        let independent = |track: TrackIndex| {
            are_independent(&cut_video(&track, &Timeline::new(&track), TARGET), &track)
        };
        // Stored I P B B, shown I B B P.
        assert!(independent(groups([40, 120, 0, 0])));
        // Stored I B B P, shown B B I P.
        assert!(!independent(groups([80, 0, 0, 40])));
        assert!(independent(video(150, |i| i % 12 == 0)));
        // The first LDU is not a sync LDU.
        assert!(!independent(video(150, |i| i == 20)));
        assert!(independent(audio(200, vec![])));
    }

    #[test]
    fn audio_is_cut_where_the_video_is() {
        let pictures = video(150, |i| i % 60 == 0);
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
        // 4 s longer than the video.
        assert_eq!(
            cut(audio(469, vec![]), Some(&pictures)),
            "[0, 113, 225, 375, 469] [0, 2410, 4800, 8000, 10005]"
        );
        assert_eq!(cut(audio(281, vec![]), None), "[0, 94, 188, 281] [0, 2005, 4010, 5994]");
        // Audio that starts after two of the video's boundaries.
        let late = vec![Edit { duration: Some(MediaTime(5_000_000_000)), media_time: None }];
        assert_eq!(cut(audio(47, late), Some(&pictures)), "[0, 47] [0, 6002]");
    }
}
