//! Parts of a title as titles: from one picture to another, each n-th group of pictures, last group
//! first. Nothing is stored for them; the same bytes get other times.
//!
//! ```text
//!   groups of the title   g0    g1    g2    g3    g4    g5         start in g1, stop in g5
//!   skip 0                      g1 ── g2 ── g3 ── g4 ── g5         with its sound
//!   skip 1                      g1 ──────── g3 ──────── g5         pictures only; shown one after
//!   skip 1, backwards           g5 ──────── g3 ──────── g1         the other, each in its own time
//! ```
//!
//! An excerpt begins at time zero, so that players handle it like any title. Segments begin with
//! the key frame at or before the start, and the playlists say where playback starts; a file
//! begins exactly there ([`Clip`]). Where groups are skipped or the last comes first, starts and
//! stops move outwards to key frames, and a group is played whole and forwards, because it cannot
//! be decoded otherwise. The speed is unknown here: players themselves play faster.

use super::clip::{Clip, is_before, time};
use super::cuts::nearest_cuts;
use super::growing::Growth;
use super::segments::{self, LduRun, Segments, VideoCuts};
use super::text::TextLine;
use super::timeline::{Timeline, nearest, ticks};
use super::{Packaging, partition};
use crate::{TrackIndex, TrackKind};
use std::ops::Range;
use std::sync::OnceLock;
use std::time::Duration;
use units::MediaTime;

/// The selection of a part of a title.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Excerpt {
    /// The start: the first picture at or after it is the first one shown, to the millisecond.
    pub start: Duration,
    /// The stop: the first picture at or after it is not shown; `None` for the end.
    pub stop: Option<Duration>,
    /// Number of groups of pictures that are skipped after each one played.
    pub skip: u32,
    /// Whether the groups are played in reverse order.
    pub backwards: bool,
}

/// The reason why a title has no such part.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum ExcerptError {
    /// The title ends before the start.
    #[error("the title is {:.3} s long; start and stop must lie within that", .0.as_secs_f64())]
    BeyondTheEnd(Duration),
    /// There is nothing between start and stop.
    #[error("stop must be later than start")]
    Empty,
    /// The title has audio only.
    #[error("only pictures can be skipped or played backwards, and this title has none")]
    NoPictures,
    /// No group would be left after skipping.
    #[error("{0} groups of pictures lie between start and stop; skip must be less than that")]
    SkipsAll(usize),
    /// The groups cannot be decoded independently.
    #[error(
        "this title's groups of pictures depend on each other (open groups or gradual refresh), so \
         none can be left out; use start and stop alone, or encode it with closed groups"
    )]
    OpenGroups,
}

impl Packaging {
    /// The part of the title, packaged as a title; takes time proportional to its LDUs.
    pub fn excerpt(&self, wanted: &Excerpt) -> Result<Self, ExcerptError> {
        let whole = self.duration();
        if wanted.start >= whole || wanted.stop.is_some_and(|stop| stop > whole) {
            return Err(ExcerptError::BeyondTheEnd(whole));
        }
        if wanted.stop.is_some_and(|stop| stop <= wanted.start) {
            return Err(ExcerptError::Empty);
        }
        let (all_segments, cut) = if wanted.skip > 0 || wanted.backwards {
            (self.skipping(wanted)?, None)
        } else {
            let (segments, cut) = self.cut(wanted);
            (segments, Some(cut))
        };
        let mut lines = Vec::with_capacity(all_segments.len());
        for ((track, line), segments) in
            self.index.tracks.iter().zip(&self.segment_lines).zip(&all_segments)
        {
            let mid = segments.runs().first().is_some_and(|part| part.ldus.start > 0);
            let sound = track.description.kind == TrackKind::Audio;
            // Audio that is decoded before the first audible packet is cut off at the title's
            // start.
            lines.push(if mid && sound { line.uncovered() } else { *line });
        }
        let end = all_segments.iter().map(Segments::end).max();
        // Pictures that come one after the other from different times have no text, as they have no
        // sound.
        let text_line = self.text_line.zip(cut).map(|(line, cut)| {
            let end = cut.clip.stop.map(|stop| stop - cut.from).or(end);
            TextLine { later: line.later - cut.from, end }
        });
        let mut excerpt = Self {
            index: self.index.clone(),
            lines: self.lines.clone(),
            segment_lines: lines,
            tracks: Vec::new(),
            transport: OnceLock::new(),
            videos: self.videos.clone(),
            target: self.target,
            target_duration: 0,
            duration: end.unwrap_or_default().since_start(),
            text_line,
            text_rates: Default::default(),
            is_whole: false,
            playback_start: cut.map_or(MediaTime::ZERO, |cut| cut.playback_start),
            file_clip: cut.map(|_| {
                let lead = usize::from(self.lead());
                Clip::of(&self.index.tracks[lead], &self.lines[lead], wanted)
            }),
            encryption: self.encryption.clone(),
            // Of a title that still grows: a part of what was recorded until now.
            growth: Growth::Complete,
        };
        let cuts = all_segments.into_iter().enumerate();
        excerpt.package(cuts.map(|(number, it)| excerpt.measured(number, it)).collect());
        Ok(excerpt)
    }

    /// The segments of each track, and where they begin and end.
    fn cut(&self, wanted: &Excerpt) -> (Vec<Segments>, SegmentedClip) {
        let pictures = self.videos().into_iter().min().map(usize::from);
        let lead = usize::from(self.lead());
        let groups = self.groups(lead);
        let (track, line) = (&self.index.tracks[lead], &self.segment_lines[lead]);
        let clip = Clip::of(track, line, wanted);
        let entry = groups.at(clip.start);
        let first = groups.firsts[entry];
        let from = if entry == 0 { MediaTime::ZERO } else { earliest(track, line, first) };
        let is_inside = is_before(groups.begins[entry], clip.start);
        let playback_start = if is_inside { clip.start - from } else { MediaTime::ZERO };
        let cut = SegmentedClip { clip, from, playback_start };
        let cut_pictures = |i: usize, ldus: Range<usize>| {
            let (track, line) = (&self.index.tracks[i], &self.segment_lines[i]);
            let firsts =
                segments::video_firsts(track, line, self.target, ldus.clone(), nearest_cuts);
            let end = Clip::shown_until(track, line, ldus.clone());
            Segments::new(&firsts, ldus.end, end, track, line, from)
        };
        let lead_segments =
            pictures.map(|lead| cut_pictures(lead, first..clip.end(track, line).max(first)));
        let segments = |i: usize| {
            let (track, line) = (&self.index.tracks[i], &self.segment_lines[i]);
            match track.description.kind {
                TrackKind::Video if Some(i) == pictures => {
                    lead_segments.clone().unwrap_or_default()
                }
                TrackKind::Video => {
                    let groups = self.groups(i);
                    let at = |time| {
                        groups.begins[..groups.count()].partition_point(|b| *b + NEARLY < time)
                    };
                    let first = groups.firsts[at(from)];
                    cut_pictures(i, first..clip.end(track, line).max(first))
                }
                TrackKind::Audio => {
                    let begins = |j: usize| line.begins(track, j);
                    // At the title's start the packets before time zero stay: decoders need them
                    // (priming).
                    let first = if from > MediaTime::ZERO {
                        partition(0..track.ldus.len(), |j| begins(j) < from)
                    } else {
                        0
                    };
                    // A short audio track may end before the excerpt begins.
                    let ldus = first..clip.end(track, line).max(first);
                    let longest = MediaTime(i64::MAX);
                    let video = VideoCuts { segments: lead_segments.as_ref(), from, longest };
                    let firsts =
                        segments::audio_firsts(track, line, &video, self.target, ldus.clone());
                    let end = segments::ends(track, line, ldus.end);
                    Segments::new(&firsts, ldus.end, end, track, line, from)
                }
                _ => Segments::default(),
            }
        };
        ((0..self.index.tracks.len()).map(segments).collect(), cut)
    }

    /// The track whose times bound a part: a video track, else the default sound.
    fn lead(&self) -> u16 {
        self.videos().into_iter().min().or_else(|| self.default_audio()).unwrap_or(0)
    }

    fn skipping(&self, wanted: &Excerpt) -> Result<Vec<Segments>, ExcerptError> {
        if self.playable(Some(TrackKind::Video)).next().is_none() {
            return Err(ExcerptError::NoPictures);
        }
        let videos: Vec<u16> = self.playable(Some(TrackKind::Video)).collect();
        let mut all = vec![Segments::default(); self.index.tracks.len()];
        for i in videos.into_iter().map(usize::from) {
            let (track, line) = (&self.index.tracks[i], &self.segment_lines[i]);
            let groups = self.groups(i);
            let shown = groups.shown(wanted);
            let step = usize::try_from(wanted.skip).unwrap_or(usize::MAX).saturating_add(1);
            if step > shown.len() {
                return Err(ExcerptError::SkipsAll(shown.len()));
            }
            let mut chosen: Vec<usize> = shown.step_by(step).collect();
            if wanted.backwards {
                chosen.reverse();
            }
            // An open group is decoded from the one before, which is not played before it here, and
            // so are the pictures of a gradual refresh.
            let is_gradual = track.description.gradual_refresh;
            if is_gradual || chosen.iter().any(|&group| groups.is_open(group, track)) {
                return Err(ExcerptError::OpenGroups);
            }
            let delay = delay(track, line);
            let mut at = 0;
            let parts = chosen.into_iter().map(|group| {
                let ldus = groups.firsts[group]..groups.firsts[group + 1];
                let shown = groups.shown_from(group, track, line)..groups.begins[group + 1];
                let shown = nearest(shown.start, line.scale)..nearest(shown.end, line.scale);
                let length = (shown.end - shown.start).max(0);
                let mut run = LduRun::new(ldus, shown.start - delay - at);
                let from = shown.start - delay - line.wait;
                run.decode_within(&track.ldus, from..from + length);
                let length = line.time(at + length) - line.time(at);
                at += nearest(length, line.scale);
                (run, length)
            });
            let mut parts: Vec<(LduRun, MediaTime)> = parts.collect();
            // By this all pictures are shown late.
            if let Some((_, length)) = parts.last_mut() {
                *length = *length + line.time(delay);
            }
            all[i] = Segments::of_parts(parts, self.target_time());
        }
        Ok(all)
    }

    pub(super) fn target_time(&self) -> MediaTime {
        MediaTime(i64::try_from(self.target.as_nanos()).unwrap_or(i64::MAX))
    }

    fn groups(&self, i: usize) -> Groups {
        Groups::of(&self.index.tracks[i], &self.segment_lines[i])
    }
}

/// Where the segments of a part begin, on their timeline, and what of them is the part.
#[derive(Clone, Copy)]
struct SegmentedClip {
    clip: Clip,
    /// The time of the title that is zero of the segments.
    from: MediaTime,
    /// The time from there to the first picture of the part; zero where that is at a key frame.
    playback_start: MediaTime,
}

/// The entry points of a track: LDUs, and their times in the title. The last entry of both is the
/// end.
pub(super) struct Groups {
    pub(super) firsts: Vec<usize>,
    pub(super) begins: Vec<MediaTime>,
}

impl Groups {
    pub(super) fn of(track: &TrackIndex, line: &Timeline) -> Self {
        let mut groups = Self { firsts: Vec::new(), begins: Vec::new() };
        for (i, ldu) in track.ldus.iter().enumerate() {
            if i > 0 && !ldu.sync {
                continue;
            }
            let shown = match track.description.kind {
                TrackKind::Video => i64::from(ldu.composition_offset),
                _ => 0,
            };
            let begins = line.time(line.place(ticks(ldu.decode_time).saturating_add(shown)));
            // LDUs before the first sync LDU belong to the first group.
            groups.push(i, if i == 0 { MediaTime::ZERO } else { begins });
        }
        groups.push(track.ldus.len(), line.time(line.end));
        groups
    }

    fn push(&mut self, first: usize, begins: MediaTime) {
        // The searches below need an order, which composition offsets alone do not ensure.
        let last = self.begins.last().copied().unwrap_or_default();
        self.firsts.push(first);
        self.begins.push(begins.max(last));
    }

    pub(super) fn count(&self) -> usize {
        self.firsts.len() - 1
    }

    /// The group from whose beginning on all that is shown from `time` on can be decoded.
    pub(super) fn at(&self, time: MediaTime) -> usize {
        self.begins[..self.count()].partition_point(|at| *at <= time).saturating_sub(1)
    }

    /// The groups from the one at the start to the last that begins before the stop.
    pub(super) fn shown(&self, wanted: &Excerpt) -> Range<usize> {
        let begins = &self.begins[..self.count()];
        let first = self.at(time(wanted.start));
        let end = wanted.stop.map_or(begins.len(), |stop| {
            let stop = time(stop);
            begins.partition_point(|at| *at < stop)
        });
        first..end.max(first + 1).min(begins.len())
    }

    /// When the first picture of a group is shown: in the first group that of the title.
    fn shown_from(&self, group: usize, track: &TrackIndex, line: &Timeline) -> MediaTime {
        let first = || (0..self.firsts[1]).map(|ldu| line.begins(track, ldu)).min();
        let first = (group == 0).then(first).flatten().map(|at| at.max(MediaTime::ZERO));
        first.unwrap_or(self.begins[group])
    }

    /// Whether any picture of a group is shown before the one that can be decoded independently.
    fn is_open(&self, group: usize, track: &TrackIndex) -> bool {
        group > 0 && segments::has_leading(track, self.firsts[group]..self.firsts[group + 1])
    }
}

/// The ticks by which the first picture of a track is shown after it is decoded, beyond what the
/// edit list hides: none, unless the edit list was lost.
fn delay(track: &TrackIndex, line: &Timeline) -> i64 {
    let first = track.ldus.range(0..1.min(track.ldus.len())).next();
    first.map_or(0, |first| i64::from(first.composition_offset) - line.media_start).max(0)
}

/// The presentation time of an LDU, or its decode time if that is earlier: segments have no
/// negative times.
fn earliest(track: &TrackIndex, line: &Timeline, i: usize) -> MediaTime {
    let decoded = ticks(track.ldus.get(i).decode_time).saturating_add(line.wait);
    line.begins(track, i).min(line.time(decoded))
}

/// The tolerance between tracks: they count in their own ticks, so that one time may differ by
/// this.
const NEARLY: MediaTime = MediaTime(1_000_000);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packaging::PackagingOptions;
    use crate::{Checksums, Edit, LduIndex, TitleIndex, TitleKind, TrackDescription};
    use std::sync::Arc;
    use units::Timescale;

    const PICTURE: i64 = 40;

    /// A title of pictures with these times in ms, in groups of four, stored I P B B, shown
    /// I B B P. They are decoded `delay` pictures ahead, as encoders do it: at the time at which
    /// the one so many pictures before is shown. The edit list hides the delay, and waits.
    fn title(shown: &[i64], delay: usize, wait: i64) -> Packaging {
        let before = shown[delay] - shown[0];
        let decoded: Vec<i64> = (0..shown.len())
            .map(|i| match i.checked_sub(delay) {
                Some(earlier) => shown[earlier],
                None => shown[i] - before,
            })
            .collect();
        let mut ldus = LduIndex::default();
        for i in 0..shown.len() {
            let stored = (i / 4 * 4 + [0, 3, 1, 2][i % 4]).min(shown.len() - 1);
            let next = decoded.get(i + 1).copied().unwrap_or(decoded[i] + PICTURE);
            let duration = u32::try_from(next - decoded[i]).unwrap();
            let offset = i32::try_from(shown[stored] - decoded[i]).unwrap();
            ldus.push(10, duration, offset, i % 4 == 0, false);
        }
        let waits = Edit { duration: Some(MediaTime(wait * 1_000_000)), media_time: None };
        let shows = Edit { duration: None, media_time: Some(shown[0] - decoded[0]) };
        let description = TrackDescription {
            edits: if wait > 0 { vec![waits, shows] } else { vec![shows] },
            ..TrackDescription::plain(TrackKind::Video, Timescale(1000))
        };
        let data_len = ldus.data_len();
        let track =
            TrackIndex { description, data_len, ldus, checksums: Checksums::from(vec![0; 1]) };
        let index = TitleIndex {
            kind: TitleKind::Media,
            tracks: vec![track],
            texts: Vec::new(),
            thumbnails: None,
        };
        let segment = Duration::from_millis(100);
        let options = PackagingOptions { segment, ..PackagingOptions::default() };
        Packaging::new(Arc::new(index), &options).unwrap()
    }

    /// Pictures at 25 per second, with a pause of this many ms before each of these.
    fn pauses(pictures: usize, pauses: &[(usize, i64)]) -> Vec<i64> {
        let mut at = 0;
        let times = (0..pictures).map(|i| {
            let (_, pause) = pauses.iter().find(|(before, _)| *before == i).unwrap_or(&(0, 0));
            let shown = at + pause;
            at = shown + PICTURE;
            shown
        });
        times.collect()
    }

    /// The groups that an excerpt plays, in words: when it decodes them, and when it shows each of
    /// their pictures, in order, in ms.
    fn played(title: &Packaging, wanted: &Excerpt) -> Vec<(Range<i64>, Vec<i64>)> {
        let excerpt = title.excerpt(wanted).unwrap();
        let (track, line) = (&excerpt.index.tracks[0], &excerpt.segment_lines[0]);
        let group = |run: &LduRun| {
            let ldus: Vec<crate::Ldu> = run.range(&track.ldus).collect();
            let begins = |at: u64| ticks(at) + line.wait - run.earlier;
            let last = ldus.last().unwrap();
            let decoded =
                begins(ldus[0].decode_time)..begins(last.decode_time + u64::from(last.duration));
            let shown = ldus.iter().map(|ldu| {
                line.place(ticks(ldu.decode_time) + i64::from(ldu.composition_offset)) - run.earlier
            });
            let mut shown: Vec<i64> = shown.collect();
            shown.sort_unstable();
            (decoded, shown)
        };
        excerpt.segments(0).runs().iter().map(group).collect()
    }

    fn backwards() -> Excerpt {
        Excerpt { backwards: true, ..Excerpt::default() }
    }

    #[test]
    fn groups_follow_one_another_whatever_pauses_their_pictures_have() {
        let steady = title(&pauses(12, &[]), 1, 0);
        let expected = [
            (0..160, vec![0, 40, 80, 120]),
            (160..320, vec![160, 200, 240, 280]),
            (320..480, vec![320, 360, 400, 440]),
        ];
        assert_eq!(played(&steady, &backwards()), expected);
        // A pause before the second group is the time of the first.
        let between = title(&pauses(12, &[(4, 6000)]), 1, 0);
        let expected = [
            (0..160, vec![0, 40, 80, 120]),
            (160..320, vec![160, 200, 240, 280]),
            (320..6480, vec![320, 360, 400, 440]),
        ];
        assert_eq!(played(&between, &backwards()), expected);
        // Pauses within the groups stay there.
        let within = title(&pauses(12, &[(2, 1000), (7, 2000), (9, 500)]), 1, 0);
        let expected = [
            (0..660, vec![0, 540, 580, 620]),
            (660..2820, vec![660, 700, 740, 2780]),
            (2820..3980, vec![2820, 2860, 3900, 3940]),
        ];
        assert_eq!(played(&within, &backwards()), expected);
        let skip = Excerpt { skip: 1, ..Excerpt::default() };
        let expected =
            [(0..1160, vec![0, 40, 1080, 1120]), (1160..1820, vec![1160, 1700, 1740, 1780])];
        assert_eq!(played(&within, &skip), expected);
    }

    #[test]
    fn an_initial_wait_is_not_shown_between_groups() {
        let late = title(&pauses(8, &[]), 1, 3000);
        let expected = [(0..160, vec![0, 40, 80, 120]), (160..320, vec![160, 200, 240, 280])];
        assert_eq!(played(&late, &backwards()), expected);
        assert_eq!(late.excerpt(&backwards()).unwrap().duration(), Duration::from_millis(320));
    }

    #[test]
    fn decoding_never_goes_back_and_no_picture_is_lost() {
        for seed in 0..300 {
            let mut random = fastrand::Rng::with_seed(seed);
            let pictures = random.usize(3..10) * 4;
            let delay = random.usize(1..4);
            let mut breaks: Vec<(usize, i64)> = Vec::new();
            for _ in 0..random.usize(0..4) {
                breaks.push((random.usize(1..pictures), random.i64(1..9000)));
            }
            let times = pauses(pictures, &breaks);
            let title = title(&times, delay, random.i64(0..2) * 3000);
            let skip = random.u32(0..2);
            let wanted = Excerpt { skip, backwards: random.bool(), ..Excerpt::default() };
            let groups = played(&title, &wanted);
            if !wanted.backwards && skip == 0 {
                continue;
            }
            let mut at = 0;
            for (decoded, shown) in &groups {
                assert_eq!((decoded.start, shown[0]), (at, at), "{seed}: {wanted:?} {times:?}");
                assert!(shown[3] < decoded.end, "{seed}: {wanted:?} {times:?}");
                at = decoded.end;
            }
            let length = title.excerpt(&wanted).unwrap().duration();
            let all = Duration::from_millis(at.unsigned_abs());
            assert_eq!(length, all, "{seed}: {wanted:?} {times:?}");
        }
    }
}
