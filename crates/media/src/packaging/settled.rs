//! The settled segments of a title that is being recorded, kept from one look to the next.
//!
//! ```text
//!   a look        ├─ segments ──────────────┤─ key frames ─┤        kept
//!   the next                                │              ├─ new ─┤
//!                 ├─ segments ─────────────────────┤─ key frames ──┤
//! ```
//! A look walks over the LDUs that are new since the one before, and over those of the segments
//! that have become settled: each LDU is seen a few times while the title grows, however long it
//! is. What is copied for players is some 60 bytes for each segment. The rules are those of
//! [`super::growing`].

use super::cuts::{final_cuts, growing_cuts};
use super::growing::{Growth, as_time, divide_long, target_duration};
use super::picture::DensestSecond;
use super::segments::{Segments, cut_behind, target_ticks};
use super::timeline::{REORDERED, Timeline, longest_preroll, shown, ticks};
use super::{
    CutTrack, Packaging, PackagingError, PackagingOptions, manifest, media_segment, partition,
};
use crate::{CHECKSUM_SPAN, TitleIndex, TrackIndex, TrackKind};
use std::sync::Arc;
use std::time::Duration;
use units::MediaTime;

/// The segments of a growing title that are final whatever follows.
#[derive(Clone, Debug)]
pub struct SettledSegments {
    target: Duration,
    /// The time by which all tracks begin later in segments; `None` before it is known.
    preroll: Option<MediaTime>,
    /// The target duration in seconds, which no segment exceeds; `None` before the first segment of
    /// the pictures that sound follows is settled.
    longest: Option<u64>,
    tracks: Vec<SettledTrack>,
}

#[derive(Clone, Debug, Default)]
struct SettledTrack {
    segments: Segments,
    boundaries: Vec<u64>,
    sizes: Vec<u64>,
    /// When the last shown one of the settled LDUs is shown, in ticks of the track.
    last_shown: Option<i64>,
    /// Until when.
    shown_until: Option<i64>,
    frame_rate: DensestSecond,
    /// The key frames of video from the end of the settled segments on, and the LDUs among which
    /// they were looked for.
    keys: KeyFrames,
}

#[derive(Clone, Debug, Default)]
struct KeyFrames {
    ldus: Vec<usize>,
    times: Vec<i64>,
    seen: usize,
}

impl SettledSegments {
    /// None yet, of about this length.
    pub fn new(target: Duration) -> Self {
        Self { target, preroll: None, longest: None, tracks: Vec::new() }
    }

    /// Adds what has become settled. `known` is the same recording as before, as far as it has
    /// come; of track `i` only LDUs below `held[i]` are taken (none if there is no such entry). The
    /// last known LDU of a track is never taken: its duration may change.
    ///
    /// Nothing is settled before 16 pictures of each video track are known: pictures that are
    /// hidden by an edit list are among these, and move all tracks.
    pub fn extend(&mut self, known: &TitleIndex, held: &[u64]) {
        self.tracks.resize_with(known.tracks.len(), SettledTrack::default);
        self.preroll = self.preroll.or_else(|| preroll(&known.tracks));
        let Some(preroll) = self.preroll else { return };
        let line = |track: &TrackIndex| Timeline::until(&track.description, 0).beginning(preroll);
        let within =
            |i: usize| known.tracks[i].ldus.count_within(held.get(i).copied().unwrap_or(0));
        let kinds = || known.tracks.iter().map(|track| track.description.kind);
        // The one that sound follows is the first even while it has no pictures yet. Before it has
        // a segment, the target duration of all tracks is not known.
        let pictures = kinds().position(|kind| kind == TrackKind::Video);
        for (i, track) in known.tracks.iter().enumerate() {
            let is_video = track.description.kind == TrackKind::Video;
            if is_video && (pictures == Some(i) || self.longest.is_some()) {
                let (target, longest) = (self.target, &mut self.longest);
                self.tracks[i].extend_video(track, &line(track), target, longest, within(i));
            }
        }
        for (i, track) in known.tracks.iter().enumerate() {
            if track.description.kind == TrackKind::Audio {
                let pictures = pictures.map(|it| &self.tracks[it].segments);
                let cuts = SoundCuts::of(pictures, self.target, self.longest);
                let from = self.tracks[i].segments.end_ldu();
                let firsts = sound_firsts(track, &line(track), &cuts, from);
                self.tracks[i].settle_sound(track, &line(track), &firsts, within(i));
            }
        }
    }

    /// The settled part of a recording: whole segments only, of some tracks or of all of them none,
    /// and neither texts nor thumbnails. `known` is what was added last.
    pub fn index(&self, known: &TitleIndex) -> TitleIndex {
        let tracks = known.tracks.iter().zip(&self.tracks);
        let tracks = tracks.map(|(track, settled)| first_ldus(track, settled.segments.end_ldu()));
        TitleIndex {
            kind: known.kind,
            tracks: tracks.collect(),
            texts: Vec::new(),
            thumbnails: None,
        }
    }

    /// The title as players see it that began at this time, in Unix seconds. `index` is that of the
    /// settled part; tracks that have no LDUs there are left out.
    ///
    /// # Errors
    /// No segment is settled.
    pub fn packaging(
        &self,
        index: Arc<TitleIndex>,
        began: u64,
    ) -> Result<Packaging, PackagingError> {
        let none = SettledTrack::default();
        let is_told = |track: &TrackIndex| !track.ldus.is_empty();
        let settled: Vec<&SettledTrack> = index
            .tracks
            .iter()
            .zip(&self.tracks)
            .map(|(track, settled)| if is_told(track) { settled } else { &none })
            .collect();
        let line = |(track, settled): (&TrackIndex, &&SettledTrack)| {
            Timeline::until(&track.description, settled.shown_until.unwrap_or(0))
        };
        let lines = index.tracks.iter().zip(&settled).map(line).collect();
        let cut = |(track, settled): (&TrackIndex, &&SettledTrack)| CutTrack {
            segments: settled.segments.clone(),
            boundaries: settled.boundaries.clone(),
            sizes: settled.sizes.clone(),
            frame_rate: settled.frame_rate.frame_rate(track),
        };
        let cuts = index.tracks.iter().zip(&settled).map(cut).collect();
        let growth = Growth::Growing { began };
        let options = PackagingOptions { segment: self.target, encryption: None, growth };
        let preroll = self.preroll.unwrap_or_default();
        Packaging::unpackaged(index, lines, preroll, &options).packaged(cuts)
    }
}

/// The preroll of all tracks, once what the edit lists hide is known.
fn preroll(tracks: &[TrackIndex]) -> Option<MediaTime> {
    let is_known = |track: &TrackIndex| {
        track.description.kind != TrackKind::Video || track.ldus.len() >= REORDERED
    };
    let lines = || tracks.iter().map(|track| Timeline::until(&track.description, 0));
    tracks.iter().all(is_known).then(|| longest_preroll(tracks, &lines().collect::<Vec<_>>()))
}

impl SettledTrack {
    fn extend_video(
        &mut self,
        track: &TrackIndex,
        line: &Timeline,
        target: Duration,
        longest: &mut Option<u64>,
        within: usize,
    ) {
        // What follows is decoded when the last known LDU is, or later.
        let Some(last) = track.ldus.len().checked_sub(1) else { return };
        let keys = &mut self.keys;
        keys.see(track, last);
        let segment = target;
        let target = target_ticks(line, segment);
        let cuts = final_cuts(&keys.times, 0, ticks(track.ldus.begin(last)), target);
        let is_held = |cut: &usize| keys.ldus[*cut] <= within;
        let Some(cut) = cuts.into_iter().rfind(is_held).filter(|cut| *cut > 0) else { return };
        let (until, end) = (keys.ldus[cut], keys.times[cut]);
        let firsts = growing_cuts(&keys.times[..cut], 0, end, target);
        let firsts: Vec<usize> = firsts.into_iter().map(|first| keys.ldus[first]).collect();
        keys.ldus.drain(..cut);
        keys.times.drain(..cut);
        let first = || (track, firsts.get(1).copied().unwrap_or(until));
        let longest = *longest.get_or_insert_with(|| target_duration(segment, Some(first())));
        let firsts = divide_long(track, &firsts, until, longest);
        self.settle(track, line, &firsts, until);
    }

    /// Takes the segments of sound that begin with these LDUs, as far as the next one is known.
    fn settle_sound(
        &mut self,
        track: &TrackIndex,
        line: &Timeline,
        firsts: &[usize],
        within: usize,
    ) {
        let count = firsts.iter().rposition(|&first| first <= within).unwrap_or(0);
        if count > 0 {
            self.settle(track, line, &firsts[..count], firsts[count]);
        }
    }

    /// Adds the segments with these first LDUs; the last one ends before the LDU `until`.
    fn settle(&mut self, track: &TrackIndex, line: &Timeline, firsts: &[usize], until: usize) {
        let new = self.segments.end_ldu()..until;
        self.segments.append(firsts, until, track, line);
        manifest::continue_boundaries(&mut self.boundaries, track, line, &self.segments);
        let size = |number| media_segment::segment_size(&track.ldus, &self.segments, number, None);
        self.sizes.extend((self.sizes.len()..self.segments.count()).map(size));
        let shown = track.ldus.range(new).map(|ldu| shown(track, &ldu)).max();
        self.last_shown = self.last_shown.max(shown);
        let length = until.checked_sub(1).map_or(0, |last| track.ldus.duration(last));
        self.shown_until = self.last_shown.map(|at| at.saturating_add(length.into()));
        self.frame_rate.extend(track, until);
    }
}

impl KeyFrames {
    /// Looks for further ones before the LDU `end`.
    fn see(&mut self, track: &TrackIndex, end: usize) {
        let new = self.seen..end.max(self.seen);
        for (i, ldu) in new.clone().zip(track.ldus.range(new)) {
            if i == 0 || ldu.sync {
                self.ldus.push(i);
                // Decode times grow in storage order; presentation times need not.
                self.times.push(ticks(ldu.decode_time));
            }
        }
        self.seen = end.max(self.seen);
    }
}

/// The times at which sound is cut: the ends of the settled segments of pictures, and within those
/// that are longer than the target duration; or by time.
enum SoundCuts<'a> {
    Pictures { ends: &'a [MediaTime], longest: MediaTime },
    Multiples(MediaTime),
}

impl<'a> SoundCuts<'a> {
    fn of(pictures: Option<&'a Segments>, target: Duration, longest: Option<u64>) -> Self {
        // At least one nanosecond, so that the multiples advance.
        let nanos = i64::try_from(target.as_nanos()).unwrap_or(i64::MAX).max(1);
        let longest = longest.map_or(MediaTime(i64::MAX), as_time);
        let beside = |it: &'a Segments| Self::Pictures { ends: it.ends(), longest };
        pictures.map_or(Self::Multiples(MediaTime(nanos)), beside)
    }

    /// The first one behind a time.
    fn behind(&self, at: MediaTime) -> Option<MediaTime> {
        match self {
            Self::Pictures { ends, longest } => {
                let number = ends.partition_point(|end| *end <= at);
                let from = number.checked_sub(1).map_or(MediaTime::ZERO, |before| ends[before]);
                Some(cut_behind(at, from..*ends.get(number)?, *longest))
            }
            Self::Multiples(target) => {
                let multiple = at.0.max(0) / target.0 + 1;
                Some(MediaTime(multiple.saturating_mul(target.0)))
            }
        }
    }
}

/// The first LDUs of the segments of sound from the LDU `from` on, with which one begins. Of
/// several cuts within a pause one is enough.
fn sound_firsts(
    track: &TrackIndex,
    line: &Timeline,
    cuts: &SoundCuts<'_>,
    from: usize,
) -> Vec<usize> {
    let count = track.ldus.len();
    let mut firsts = Vec::new();
    let mut first = from;
    while first < count {
        firsts.push(first);
        let Some(next) = cuts.behind(line.begins(track, first)) else { break };
        first = partition(first..count, |i| line.begins(track, i) < next);
    }
    firsts
}

/// The track with its first LDUs only.
pub(super) fn first_ldus(track: &TrackIndex, count: usize) -> TrackIndex {
    let ldus = track.ldus.first(count);
    let data_len = ldus.data_len();
    let spans = usize::try_from(data_len.div_ceil(CHECKSUM_SPAN)).unwrap_or(usize::MAX);
    let checksums = track.checksums.prefix(spans);
    TrackIndex { description: track.description.clone(), ldus, data_len, checksums }
}

#[cfg(test)]
pub(super) mod oracle;
