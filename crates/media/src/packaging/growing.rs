//! Titles that are played while they are recorded: HLS EVENT playlists, DASH manifests of type
//! `dynamic`.
//!
//! ```text
//! recorded     |-------|------|--------|-----|..      segments of the title as it would be cut now
//! settled      |-------|------|                       those that are the same whatever follows
//! later        |-------|------|---------|------|..
//! ended        |-------|------|---------|------|---|  a short rest stays a segment
//! ```
//! Players keep the segments that they have been told of, so each presentation of the recording
//! begins with all segments of those before. [`super::SettledSegments`] has the part of the index
//! that has such segments only. The part ends with a segment, and all rules here give it the same
//! segments with any continuation:
//!
//! - Pictures are cut by [`growing_cuts`]; a cut is settled when no later picture can be nearer to
//!   its multiple of the target ([`super::cuts::final_cuts`]).
//! - A segment begins where the one before ends ([`Segments::back_to_back`]).
//! - Sound beside pictures is cut at the boundaries of the first video track, and is settled where
//!   the first packet of the next segment is known.
//! - `EXT-X-TARGETDURATION` must not change in a playlist that is loaded again (RFC 8216, 4.3.3.1
//!   and 6.2.1), and no segment may be longer. It follows from the length that is asked for and
//!   from the first segment of pictures, both of which are known before the first playlist
//!   ([`target_duration`]). A longer group of pictures that comes later is cut within
//!   ([`divide_long`]). One picture or packet, which is held while nothing comes, cannot be cut:
//!   the playlist lists its segment as far as that length, and the rest as gaps
//!   ([`super::playlist`]), behind which it goes on when enough follows for a player to begin
//!   there.
//! - Nothing that is stated beside the segments may need to be taken back: that they are
//!   independent, for example.

use super::cuts::growing_cuts;
use super::segments::{Segments, VideoCuts, audio_firsts, video_firsts};
use super::timeline::Timeline;
use super::{CutTrack, partition};
use crate::{TrackIndex, TrackKind};
use std::ops::Range;
use std::time::Duration;
use units::{MediaTime, Timescale};

/// Whether further segments will follow those of a title.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Growth {
    /// A title as it was ingested: none will follow.
    #[default]
    Complete,
    /// A recording that goes on: more segments will follow those of this index, which has settled
    /// ones only ([`super::SettledSegments`]).
    Growing {
        /// The start of the recording in Unix seconds.
        began: u64,
    },
    /// A recording that has ended, cut as while it grew, so that players that have its first
    /// segments can go on.
    Grown {
        /// The start of the recording in Unix seconds.
        began: u64,
    },
}

/// The segments of each track of a title that is, or was, played while it is recorded.
pub(super) fn cut(tracks: &[TrackIndex], lines: &[Timeline], target: Duration) -> Vec<Segments> {
    let longest = longest(tracks, lines, target);
    let pictures = pictures(tracks, lines, target);
    let cut = |(track, line): (&TrackIndex, &Timeline)| match track.description.kind {
        TrackKind::Video => cut_video(track, line, target, longest),
        _ => {
            let longest = as_time(longest);
            let from = MediaTime::ZERO;
            let video = VideoCuts { segments: pictures.as_ref(), from, longest };
            let firsts = audio_firsts(track, line, &video, target, 0..track.ldus.len());
            Segments::back_to_back(&firsts, track, line)
        }
    };
    tracks.iter().zip(lines).map(cut).collect()
}

/// `EXT-X-TARGETDURATION` in seconds of a title that is, or was, played while it is recorded: one
/// and a half of the length that is asked for, or that of the first segment of pictures, if this is
/// more. A camera with a key frame every ten seconds has segments that begin with one. `first`: the
/// video track that sound follows, and the LDU after its first segment.
pub(super) fn target_duration(segment: Duration, first: Option<(&TrackIndex, usize)>) -> u64 {
    let usual = (segment.as_nanos() * 3).div_ceil(2_000_000_000);
    // Far below the limit, so that multiples of it have room.
    let usual = u64::from(u32::try_from(usual).unwrap_or(u32::MAX));
    let first = first.map_or(0, |(track, end)| {
        track.ldus.begin(end).div_ceil(track.description.timescale.0.into())
    });
    usual.max(first).max(1)
}

/// The target duration of a title whose tracks are cut like this.
pub(super) fn target_duration_of(
    tracks: &[TrackIndex],
    cuts: &[CutTrack],
    segment: Duration,
) -> u64 {
    let mut pairs = tracks.iter().zip(cuts);
    let video = pairs.find(|(track, _)| track.description.kind == TrackKind::Video);
    let first = video.and_then(|(track, cut)| Some((track, cut.segments.runs().first()?.ldus.end)));
    target_duration(segment, first)
}

/// The first LDUs of segments with further ones, so that no segment is longer than so many
/// seconds: at the last key frame within them, or at the last picture where there is none, which
/// players decode behind the segment before. `until` is the LDU after the last segment. Only a
/// picture that is held for longer makes a segment longer, and is its last one.
pub(super) fn divide_long(
    track: &TrackIndex,
    firsts: &[usize],
    until: usize,
    longest: u64,
) -> Vec<usize> {
    let longest = longest.saturating_mul(track.description.timescale.0.into());
    let length = |ldus: Range<usize>| track.ldus.begin(ldus.end) - track.ldus.begin(ldus.start);
    let mut all = Vec::with_capacity(firsts.len());
    let after = firsts.iter().copied().skip(1).chain([until]);
    for (&first, after) in firsts.iter().zip(after) {
        all.push(first);
        let mut from = first;
        while after - from > 1 && length(from..after) > longest {
            let end = partition(from + 1..after, |i| length(from..i) <= longest);
            let key = (from + 1..end).rfind(|&i| track.ldus.get(i).sync);
            // One that is held cannot be cut, and stays with those before it.
            let is_held = length(end - 1..end) > longest;
            from = key.unwrap_or(if is_held { end } else { end - 1 });
            if from == after {
                break;
            }
            all.push(from);
        }
    }
    all
}

/// Whole seconds, as all times are.
pub(super) fn as_time(seconds: u64) -> MediaTime {
    MediaTime::from_ticks(i64::try_from(seconds).unwrap_or(i64::MAX), Timescale(1))
}

/// The target duration of a title, found before its tracks are cut.
pub(super) fn longest(tracks: &[TrackIndex], lines: &[Timeline], target: Duration) -> u64 {
    let mut pairs = tracks.iter().zip(lines);
    let video = pairs.find(|(track, _)| track.description.kind == TrackKind::Video);
    let first = video.map(|(track, line)| {
        (track, key_firsts(track, line, target).get(1).copied().unwrap_or(track.ldus.len()))
    });
    target_duration(target, first)
}

/// The segments of the video track that sound follows. It is the first one even while it has no
/// pictures yet.
pub(super) fn pictures(
    tracks: &[TrackIndex],
    lines: &[Timeline],
    target: Duration,
) -> Option<Segments> {
    let mut pairs = tracks.iter().zip(lines);
    let (track, line) = pairs.find(|(track, _)| track.description.kind == TrackKind::Video)?;
    Some(cut_video(track, line, target, longest(tracks, lines, target)))
}

fn cut_video(track: &TrackIndex, line: &Timeline, target: Duration, longest: u64) -> Segments {
    let firsts = key_firsts(track, line, target);
    let firsts = divide_long(track, &firsts, track.ldus.len(), longest);
    Segments::back_to_back(&firsts, track, line)
}

/// The first LDUs of segments that begin with key frames only, however long they are.
fn key_firsts(track: &TrackIndex, line: &Timeline, target: Duration) -> Vec<usize> {
    let cuts = |places: &[i64], end, target| growing_cuts(places, 0, end, target);
    video_firsts(track, line, target, 0..track.ldus.len(), cuts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packaging::settled::first_ldus;
    use crate::packaging::settled::oracle::{settled, settled_video};
    use crate::packaging::{
        GrowingFile, LATE_TRACK, PackagedTrack, Packaging, PackagingOptions, SettledSegments,
    };
    use crate::title::visits;
    use crate::{
        CHECKSUM_SPAN, Edit, LduIndex, NoSegmentIndex, Slice, TitleIndex, TitleKind,
        TrackDescription,
    };
    use fastrand::Rng;
    use std::sync::Arc;

    const S: i64 = 1_000_000_000;
    const ALL: &[u64] = &[u64::MAX; 3];

    fn track(kind: TrackKind, scale: u32, ldus: LduIndex, edits: Vec<Edit>) -> TrackIndex {
        let description =
            TrackDescription { edits, ..TrackDescription::plain(kind, Timescale(scale)) };
        let data_len = ldus.data_len();
        let checksums = (0..u32::try_from(data_len.div_ceil(CHECKSUM_SPAN)).unwrap()).collect();
        TrackIndex { description, data_len, ldus, checksums }
    }

    fn title(tracks: Vec<TrackIndex>) -> TitleIndex {
        TitleIndex { kind: TitleKind::Media, tracks, texts: Vec::new(), thumbnails: None }
    }

    /// Pictures at 25 per second in groups of these lengths, in pictures.
    fn groups(lengths: &[u32]) -> TrackIndex {
        let mut ldus = LduIndex::default();
        for &length in lengths {
            (0..length).for_each(|i| ldus.push(1000, 40, 0, i == 0, false));
        }
        track(TrackKind::Video, 1000, ldus, Vec::new())
    }

    fn sound(packets: u32) -> TrackIndex {
        let mut ldus = LduIndex::default();
        (0..packets).for_each(|_| ldus.push(300, 1024, 0, true, false));
        track(TrackKind::Audio, 48_000, ldus, Vec::new())
    }

    /// An edit list that waits, and shows what is stored from `from` on.
    fn edits(wait: i64, from: i64) -> Vec<Edit> {
        let wait = Edit { duration: Some(MediaTime(wait)), media_time: None };
        vec![wait, Edit { duration: None, media_time: Some(from) }]
    }

    /// Pictures in groups of 0.3 s to 9 s, in order or reordered, perhaps in open groups, at a
    /// constant rate or not.
    fn any_video(random: &mut Rng, seconds: u32) -> TrackIndex {
        let scale = [25, 1000, 12_800, 90_000][random.usize(0..4)];
        let picture = scale / 25;
        // Of groups of four pictures, in pictures: in order, closed groups, open groups.
        let offsets: [i32; 4] =
            [[0, 0, 0, 0], [1, 3, 0, 0], [3, 0, 0, 1], [2, 4, -1, 1]][random.usize(0..4)];
        let (is_even, is_constant) = (random.bool(), random.bool());
        let even = random.u32(8..225);
        let mut ldus = LduIndex::default();
        let (mut in_group, mut length) = (0, even);
        while ldus.duration_ticks() < u64::from(seconds * scale) {
            if in_group == length {
                in_group = 0;
                length = if is_even { even } else { random.u32(8..225) };
            }
            let offset = offsets[in_group as usize % 4] * i32::try_from(picture).unwrap();
            let duration = if is_constant { picture } else { random.u32(0..=2 * picture) };
            let size = random.u32(0..2000);
            ldus.push(size, duration, offset, in_group == 0, false);
            in_group += 1;
        }
        let edits = match random.u32(0..4) {
            0 => edits(random.i64(0..6 * S), random.i64(0..i64::from(scale))),
            1 => edits(0, i64::from(random.u32(0..4) * picture)),
            _ => Vec::new(),
        };
        track(TrackKind::Video, scale, ldus, edits)
    }

    fn any_audio(random: &mut Rng, seconds: u32) -> TrackIndex {
        let mut ldus = sound(seconds * 48_000 / 1024).ldus;
        if random.u32(0..4) == 0 {
            // A pause, into which boundaries may fall.
            ldus.push(10, random.u32(0..20 * 48_000), 0, true, false);
        }
        (0..random.u32(0..200)).for_each(|_| ldus.push(300, 1024, 0, true, false));
        let edits = match random.u32(0..3) {
            0 => edits(random.i64(0..9 * S), 0),
            1 => edits(0, 1024),
            _ => Vec::new(),
        };
        track(TrackKind::Audio, 48_000, ldus, edits)
    }

    fn any_recording(random: &mut Rng) -> TitleIndex {
        let seconds = random.u32(1..60);
        let kinds = ["va", "a", "vva", "v", "av", "vv", "aa", "vaa"][random.usize(0..8)];
        let tracks = kinds.chars().map(|kind| {
            let seconds = seconds.saturating_sub(random.u32(0..4)).max(1);
            if kind == 'v' { any_video(random, seconds) } else { any_audio(random, seconds) }
        });
        title(tracks.collect())
    }

    /// A recording when this many LDUs of each track are known, the last with a wrong duration.
    fn known(whole: &TitleIndex, counts: &[usize], random: &mut Rng) -> TitleIndex {
        let tracks = whole.tracks.iter().zip(counts).map(|(track, &count)| {
            let mut ldus = track.ldus.part(0..count, None);
            ldus.set_last_duration(random.u32(0..5000));
            TrackIndex { data_len: ldus.data_len(), ldus, ..track.clone() }
        });
        title(tracks.collect())
    }

    fn package(index: TitleIndex, segment: Duration, growth: Growth) -> Option<Packaging> {
        let options = PackagingOptions { segment, growth, ..PackagingOptions::default() };
        Packaging::new(Arc::new(index), &options).ok()
    }

    fn growing(index: TitleIndex, segment: Duration) -> Option<Packaging> {
        package(index, segment, Growth::Growing { began: 0 })
    }

    /// Segments as text: the first LDU of each, and the boundaries in ms.
    fn shown(packaging: Option<&Packaging>, track: u16) -> String {
        let Some(packaging) = packaging else { return "none".to_owned() };
        let segments = packaging.segments(track);
        let ends: Vec<usize> = segments.runs().iter().map(|part| part.ldus.end).collect();
        let times = (0..segments.count()).map(|k| segments.time(k).end.0 / 1_000_000);
        format!("{ends:?} {:?}", times.collect::<Vec<_>>())
    }

    /// What players know of one track: of each segment its LDUs, its time, and its bytes.
    fn told(
        packaging: &Packaging,
        track: u16,
    ) -> Vec<(Range<usize>, Range<MediaTime>, crate::Body)> {
        let segments = packaging.segments(track);
        let segment = |k: usize| {
            let body = packaging.segment(track, u32::try_from(k).unwrap()).unwrap();
            (segments.parts(k).unwrap()[0].ldus.clone(), segments.time(k), body)
        };
        (0..segments.count()).map(segment).collect()
    }

    fn assert_continues(earlier: &Packaging, later: &Packaging, what: &str) {
        for track in 0..u16::try_from(earlier.index().tracks.len()).unwrap() {
            let what = format!("{what}, track {track}");
            if earlier.segment_count(track) == 0 {
                continue;
            }
            let (first, all) = (told(earlier, track), told(later, track));
            assert!(first.len() <= all.len(), "{what}: {first:?}\n{all:?}");
            let same = first.iter().zip(&all).take_while(|(a, b)| a == b).count();
            assert_eq!(same, first.len(), "{what}: {:?}\n{:?}", &first[same..], &all[same..]);
            assert!(later.boundaries(track).starts_with(earlier.boundaries(track)), "{what}");
            assert_eq!(earlier.init_segment(track), later.init_segment(track), "{what}");
            assert_eq!(earlier.dash_init_segment(track), later.dash_init_segment(track), "{what}");
            let [a, b] = [earlier, later].map(|it| it.media_playlist(track, "?s=T").unwrap());
            assert!(b.starts_with(&a), "{what}: {a}\n{b}");
        }
    }

    /// The file as it is at a look has that of the look before at its beginning, and is the same to
    /// who looks for the first time, unless a track was late.
    fn assert_appended(file: &mut GrowingFile, now: &Packaging, is_late: &mut bool, what: &str) {
        let before = file.body().clone();
        file.extend(now);
        assert_eq!(file.body().range(0..before.len()), before, "{what}");
        if matches!(now.growth, Growth::Growing { .. }) {
            let ends = now.tracks.iter().map(|track| track.segments.end());
            *is_late |= ends.clone().max().unwrap() - ends.min().unwrap() >= LATE_TRACK;
        }
        if *is_late {
            return;
        }
        let mut anew = GrowingFile::default();
        anew.extend(now);
        assert_eq!((file.body(), file.duration()), (anew.body(), anew.duration()), "{what}");
    }

    /// What is kept from look to look gives the part that is found anew, and its packaging.
    fn assert_same_as(
        state: &SettledSegments,
        known: &TitleIndex,
        part: &TitleIndex,
        segment: Duration,
        what: &str,
    ) {
        let kept = state.index(known);
        let anew = growing(part.clone(), segment);
        let packaging = state.packaging(Arc::new(kept.clone()), 0).ok();
        let Some(anew) = anew else {
            // Nothing is found anew while settled pictures alone do not tell what edits hide.
            assert!(
                packaging.is_none() || part.tracks.iter().all(|it| it.ldus.is_empty()),
                "{what}"
            );
            return;
        };
        assert_eq!(kept, *part, "{what}");
        let packaging = packaging.unwrap();
        for (track, wanted) in packaging.tracks.iter().zip(&anew.tracks) {
            let shown = |it: &PackagedTrack| (it.segments.clone(), it.boundaries.clone());
            assert_eq!(shown(track), shown(wanted), "{what}");
            let measured = |it: &PackagedTrack| (it.sizes.clone(), it.rates, it.frame_rate);
            assert_eq!(measured(track), measured(wanted), "{what}");
        }
        let lines = |it: &Packaging| (it.lines.clone(), it.segment_lines.clone(), it.duration);
        assert_eq!(lines(&packaging), lines(&anew), "{what}");
        assert_eq!(packaging.dash_manifest(&[0, 1], ""), anew.dash_manifest(&[0, 1], ""), "{what}");
    }

    #[test]
    fn segments_stay_the_same_while_a_title_grows_and_when_it_has_grown() {
        let (mut listed, mut told, mut in_file, mut of_file, mut late) = (0, 0, 0, 0, 0);
        for seed in 0..200 {
            let mut random = Rng::with_seed(seed);
            let whole = any_recording(&mut random);
            let segment = Duration::from_millis([500, 2000, 4000, 3333][random.usize(0..4)]);
            let grown = package(whole.clone(), segment, Growth::Grown { began: 0 }).unwrap();
            told += grown.segment_count(0);
            let mut counts = vec![0; whole.tracks.len()];
            let mut held = vec![0; whole.tracks.len()];
            let (mut before, mut was_listed) = (None, 0);
            let (mut file, mut is_late) = (GrowingFile::default(), false);
            let mut state = SettledSegments::new(segment);
            let pauses = random.bool().then(|| random.usize(0..whole.tracks.len()));
            for step in 0..8 {
                for (i, track) in whole.tracks.iter().enumerate() {
                    if pauses == Some(i) && (1..7).contains(&step) {
                        continue;
                    }
                    counts[i] += random.usize(0..=(track.ldus.len() - counts[i]) / 2);
                    held[i] += random.u64(0..=track.data_len / 4);
                }
                if random.u32(0..3) == 0 {
                    held = whole.tracks.iter().map(|track| track.data_len).collect();
                }
                let what = format!("seed {seed}, step {step}");
                let known = known(&whole, &counts, &mut random);
                let part = settled(&known, segment, &held);
                state.extend(&known, &held);
                assert_same_as(&state, &known, &part, segment, &what);
                for (i, track) in part.tracks.iter().enumerate() {
                    assert!(track.ldus.is_empty() || track.ldus.len() < counts[i], "{what}");
                    assert!(track.data_len <= held[i], "{what}");
                    let spans = track.data_len.div_ceil(CHECKSUM_SPAN);
                    assert_eq!(track.checksums.len() as u64, spans, "{what}");
                }
                let Some(now) = growing(part, segment) else { continue };
                if let Some(before) = &before {
                    assert_continues(before, &now, &what);
                }
                assert_continues(&now, &grown, &what);
                assert_appended(&mut file, &now, &mut is_late, &what);
                was_listed = now.segment_count(0);
                before = Some(now);
            }
            listed += was_listed;
            in_file += file.body().slices().len();
            assert_appended(&mut file, &grown, &mut is_late, &format!("seed {seed}, at the end"));
            late += usize::from(is_late);
            of_file += file.body().slices().len();
            for (i, track) in (0..).zip(&whole.tracks) {
                let is_of =
                    |slice: &&Slice| matches!(slice, Slice::Stored { track, .. } if *track == i);
                let stored = file.body().slices().filter(is_of).map(Slice::len);
                assert_eq!(stored.sum::<u64>(), track.data_len, "seed {seed}, track {i}");
            }
        }
        // Most segments are listed before the end.
        assert!(listed * 2 > told, "{listed} of {told}");
        assert!(in_file * 2 > of_file, "{in_file} of {of_file} pieces of files");
        assert!((5..100).contains(&late), "{late} files with a late track");
    }

    /// The numbers of the tracks of a file's fragments, in order.
    fn order(file: &GrowingFile) -> String {
        let stored = file.body().slices().filter_map(|slice| match slice {
            Slice::Stored { track, .. } => Some(char::from(b'0' + u8::try_from(*track).unwrap())),
            _ => None,
        });
        stored.collect()
    }

    #[test]
    fn a_late_track_keeps_no_other_back_and_loses_nothing() {
        let target = Duration::from_secs(4);
        let look = |file: &mut GrowingFile, groups_of_2s: usize, packets: u32| {
            let index = title(vec![groups(&vec![50; groups_of_2s]), sound(packets)]);
            if let Some(now) = growing(settled(&index, target, ALL), target) {
                file.extend(&now);
            }
            order(file)
        };
        // Sound that never comes: the pictures go on without it after 30 s.
        let mut file = GrowingFile::default();
        assert_eq!(look(&mut file, 16, 0), "");
        assert_eq!(look(&mut file, 18, 0), "00000000");
        assert_eq!(look(&mut file, 22, 0), "0000000000");
        // Sound that pauses after 12 s: what of it is there is in its place, then it is late.
        let mut file = GrowingFile::default();
        assert_eq!(look(&mut file, 10, 600), "0101010");
        assert_eq!(look(&mut file, 20, 600), "0101010");
        assert_eq!(look(&mut file, 25, 600), "01010100000000");
        // It comes at last, where the file is.
        assert_eq!(look(&mut file, 25, 2400), "0101010000000011111111");
        let index = title(vec![groups(&[50; 25]), sound(2400)]);
        file.extend(&package(index, target, Growth::Grown { began: 0 }).unwrap());
        for track in [0, 1] {
            let of =
                |slice: &&Slice| matches!(slice, Slice::Stored { track: it, .. } if *it == track);
            let stored: u64 = file.body().slices().filter(of).map(Slice::len).sum();
            assert_eq!(stored, [1_250_000, 720_000][usize::from(track)]);
        }
    }

    #[test]
    fn pictures_are_settled_soon_after_their_group_has_ended() {
        let target = Duration::from_secs(4);
        for seed in 0..300 {
            let mut random = Rng::with_seed(seed);
            let video = any_video(&mut random, 40);
            let known = random.usize(1..=video.ldus.len());
            let video = first_ldus(&video, known);
            let line = Timeline::new(&video);
            let at = |i: usize| if i < known { video.ldus.get(i).decode_time } else { 0 };
            let mut starts: Vec<u64> =
                video.ldus.iter().filter(|ldu| ldu.sync).map(|ldu| ldu.decode_time).collect();
            starts.push(at(known - 1));
            let longest = starts.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(0);
            let delay = longest + 2 * 4 * u64::from(line.scale.0);
            let end = at(settled_video(&video, &line, target, u64::MAX));
            assert!(end + delay >= at(known - 1), "seed {seed}: {end} of {}", at(known - 1));
        }
    }

    #[test]
    fn segments_are_settled_when_no_later_picture_can_change_them() {
        let target = Duration::from_secs(4);
        // (groups in pictures, packets of sound, bytes of pictures held, pictures, sound)
        type Row<'a> = (&'a [u32], u32, u64, &'a str, &'a str);
        let table: &[Row<'_>] = &[
            // The picture at 6 s is the first that cannot be nearer to 4 s.
            (&[50, 50, 50], 300, u64::MAX, "none", "none"),
            (&[50, 50, 50, 1], 300, u64::MAX, "[100] [4000]", "[188] [4010]"),
            (&[50, 50, 51], 300, u64::MAX, "[100] [4000]", "[188] [4010]"),
            // The sound is behind the pictures: packet 188 is not known yet.
            (&[50, 50, 51], 188, u64::MAX, "[100] [4000]", "[] []"),
            (&[50, 50, 51], 189, u64::MAX, "[100] [4000]", "[188] [4010]"),
            (&[50, 50, 51], 300, 100_000, "[100] [4000]", "[188] [4010]"),
            (&[50, 50, 51], 300, 99_999, "none", "none"),
            // A long group, and the gap after a picture that is near to no further multiple.
            (&[225, 26], 500, u64::MAX, "[225] [9000]", "[422] [9002]"),
            (&[75, 50, 125, 100, 10], 900, u64::MAX, "[75, 125, 250] [3000, 5000, 10000]", ""),
            (&[50], 0, u64::MAX, "none", "none"),
            (&[], 0, u64::MAX, "none", "none"),
        ];
        for (lengths, packets, held, pictures, sounds) in table {
            let index = title(vec![groups(lengths), sound(*packets)]);
            let part = settled(&index, target, &[*held, u64::MAX]);
            let packaging = growing(part, target);
            let what = format!("{lengths:?} {packets} {held}");
            assert_eq!(shown(packaging.as_ref(), 0), *pictures, "{what}");
            if !sounds.is_empty() {
                assert_eq!(shown(packaging.as_ref(), 1), *sounds, "{what}");
            }
        }
    }

    #[test]
    fn sound_without_pictures_is_settled_where_its_next_segment_begins() {
        let target = Duration::from_secs(4);
        for (packets, held, wanted) in [
            (188, u64::MAX, "none"),
            (189, u64::MAX, "[188] [4010]"),
            (376, u64::MAX, "[188, 375] [4010, 8000]"),
            (376, 188 * 300, "[188] [4010]"),
            (376, 188 * 300 - 1, "none"),
        ] {
            let part = settled(&title(vec![sound(packets)]), target, &[held]);
            assert_eq!(shown(growing(part, target).as_ref(), 0), wanted, "{packets} {held}");
        }
        assert_eq!(settled(&title(vec![sound(376)]), target, &[]).tracks[0].data_len, 0);
    }

    #[test]
    fn nothing_is_settled_before_what_edit_lists_hide_is_known() {
        let target = Duration::from_millis(400);
        let mut video = groups(&[10; 5]);
        video.description.edits = edits(0, 200);
        let mut counts = [0; 51];
        for (known, count) in counts.iter_mut().enumerate() {
            let part = settled(&title(vec![first_ldus(&video, known)]), target, ALL);
            *count = part.tracks[0].ldus.len();
        }
        let wanted: Vec<usize> =
            (0..51).map(|known| if known < 16 { 0 } else { (known - 6) / 10 * 10 }).collect();
        assert_eq!(counts, wanted[..]);
        // A second video track of which nothing is known may hide more.
        let second = settled(&title(vec![video, groups(&[])]), target, ALL);
        assert!(second.tracks[0].ldus.is_empty());
    }

    #[test]
    fn a_growing_title_is_in_no_form_that_states_its_end() {
        let index = title(vec![groups(&[50; 8]), sound(800)]);
        for growth in [Growth::Growing { began: 0 }, Growth::Grown { began: 0 }] {
            let packaging = package(index.clone(), Duration::from_secs(4), growth).unwrap();
            assert_eq!(packaging.on_demand(), Err(NoSegmentIndex::Growing));
            assert_eq!((packaging.track_file(0), packaging.iframe_playlist(0, "")), (None, None));
            let refused = packaging.transport_offers().unwrap_err().to_string();
            assert!(refused.ends_with("is, or was, played while it is recorded"), "{refused}");
            assert_eq!(packaging.transport_playlist(0, ""), None);
            // A part of it is complete.
            let part = packaging.excerpt(&crate::Excerpt::default()).unwrap();
            assert_eq!(part.on_demand(), Ok(()));
            assert!(part.media_playlist(0, "").unwrap().contains("TYPE:VOD"));
        }
    }

    #[test]
    fn the_target_duration_has_room_for_one_and_a_half_segments() {
        let millis = [0, 500, 2000, 3000, 3333, 4000, 10_000];
        let given = millis.map(|it| target_duration(Duration::from_millis(it), None));
        assert_eq!(given, [1, 1, 3, 5, 5, 6, 15]);
        assert_eq!(target_duration(Duration::MAX, None), u64::from(u32::MAX));
        // A first segment of pictures at 25 per second.
        for (pictures, wanted) in [(100, 6), (150, 6), (151, 7), (250, 10)] {
            let video = groups(&[pictures, 25]);
            let first = Some((&video, pictures as usize));
            assert_eq!(target_duration(Duration::from_secs(4), first), wanted, "{pictures}");
        }
    }

    /// Pictures at 25 per second in groups of two seconds, and of `long` seconds. The last picture
    /// of the second group is held for `held` seconds.
    fn interrupted(held: u32, long: u32) -> TrackIndex {
        let mut ldus = LduIndex::default();
        let groups = [50, 50, 50, 50, long * 25].into_iter().chain([50; 10]);
        for (group, pictures) in groups.enumerate() {
            for i in 0..pictures {
                let length = if group == 1 && i == 49 { held * 1000 } else { 40 };
                ldus.push(1000, length, 0, i == 0, false);
            }
        }
        track(TrackKind::Video, 1000, ldus, Vec::new())
    }

    /// The lines of a playlist that say how long what is: `4.0`, or `gap 4.0`.
    fn listed(playlist: &str) -> String {
        let mut listed = String::new();
        for line in playlist.lines() {
            match line.strip_prefix("#EXTINF:") {
                Some(length) => listed += &format!("{} ", &length[..length.find('.').unwrap() + 2]),
                None if line == "#EXT-X-GAP" => listed += "gap ",
                None => {}
            }
        }
        listed.trim_end().to_owned()
    }

    /// Whether a player that begins three target durations of 6 s before the end is in a gap
    /// behind the first segment.
    fn begins_in_a_gap(playlist: &str) -> bool {
        let entries = listed(playlist);
        let (mut left, mut is_gap, mut entries) = (18.0, false, entries.rsplit(' ').peekable());
        while let Some(length) = entries.next() {
            is_gap = entries.next_if_eq(&"gap").is_some();
            left -= length.parse::<f64>().unwrap() + 0.1;
            if left <= 0.0 {
                break;
            }
        }
        is_gap && entries.any(|it| it != "gap" && it != "6.0")
    }

    #[test]
    fn no_pause_and_no_long_group_changes_the_target_duration() {
        let target = Duration::from_secs(4);
        // (tracks, of each playlist what it lists)
        let table: [(Vec<TrackIndex>, &[&str]); 4] = [
            // The picture before 20 s without input has a segment, which goes on as gaps.
            (
                vec![interrupted(20, 2)],
                &["2.0 6.0 gap 6.0 gap 6.0 gap 3.9 4.0 4.0 4.0 4.0 4.0 4.0 2.0"],
            ),
            // Sound goes on meanwhile, or pauses as well.
            (
                vec![interrupted(20, 2), sound(1600)],
                &[
                    "2.0 6.0 gap 6.0 gap 6.0 gap 3.9 4.0 4.0 4.0 4.0 4.0 4.0 2.0",
                    "2.0 5.9 6.0 5.9 3.9 3.9 4.0 2.1",
                ],
            ),
            // No key frame for 15 s: cut within, the last time at the key frame behind.
            (vec![interrupted(0, 15)], &["3.9 4.0 6.0 6.0 3.0 2.0 4.0 4.0 4.0 4.0 2.0"]),
            // Sound that begins after 14 s begins with gaps.
            (
                vec![TrackIndex {
                    description: TrackDescription {
                        edits: edits(14 * S, 0),
                        ..sound(0).description
                    },
                    ..sound(400)
                }],
                &["gap 6.0 gap 6.0 gap 2.0 2.0 4.0 2.5"],
            ),
        ];
        for (tracks, wanted) in table {
            let whole = title(tracks);
            let grown = package(whole.clone(), target, Growth::Grown { began: 0 }).unwrap();
            for (i, wanted) in (0..).zip(wanted) {
                let playlist = grown.media_playlist(i, "").unwrap();
                assert!(playlist.contains("#EXT-X-TARGETDURATION:6\n"), "{playlist}");
                assert_eq!(listed(&playlist), *wanted, "{playlist}");
            }
            // While it grows the playlists are only added to, and no player begins in a gap.
            let mut state = SettledSegments::new(target);
            let mut before: Vec<String> = Vec::new();
            for step in 1..=40 {
                let part = |track: &TrackIndex| first_ldus(track, track.ldus.len() * step / 40);
                let known = title(whole.tracks.iter().map(part).collect());
                state.extend(&known, ALL);
                let Ok(now) = state.packaging(Arc::new(state.index(&known)), 0) else { continue };
                let has_all = (0..whole.tracks.len()).all(|i| now.tracks[i].segments.count() > 0);
                if has_all {
                    let tracks = 0..u16::try_from(whole.tracks.len()).unwrap();
                    let all: Vec<_> = tracks.map(|i| now.media_playlist(i, "").unwrap()).collect();
                    let is_longer = |(a, b): (&String, &String)| b.starts_with(a);
                    assert!(before.iter().zip(&all).all(is_longer), "{before:?} {all:?}");
                    assert!(!all.iter().any(|it| begins_in_a_gap(it)), "{all:?}");
                    before = all;
                }
            }
            // Behind the gap, too, as soon as there is enough.
            let lines = |it: &str| it.lines().count();
            let all = grown.media_playlist(0, "").unwrap();
            assert!(lines(&before[0]) + 7 >= lines(&all), "{}\n{all}", before[0]);
            for (i, last) in (0..).zip(&before) {
                assert!(grown.media_playlist(i, "").unwrap().starts_with(last), "{last}");
            }
        }
    }

    /// Pictures in groups of two seconds beside sound, for so many hours.
    fn hours(count: u32) -> TitleIndex {
        title(vec![groups(&vec![50; count as usize * 1800]), sound(count * 168_750)])
    }

    /// Prints the table of `docs/reference/figures.md`:
    /// `cargo test -p media --lib a_look_costs_what_is_new -- --nocapture`
    #[test]
    #[expect(clippy::print_stdout, reason = "the table, with --nocapture")]
    fn a_look_costs_what_is_new() {
        let target = Duration::from_secs(4);
        println!("length       LDUs   walked anew   walked, kept   bytes of LDUs copied");
        let mut all = Vec::new();
        for length in [1, 24] {
            let whole = hours(length);
            let ldus = whole.tracks.iter().map(|track| track.ldus.len()).sum::<usize>();
            // Ten seconds before the end.
            let counts = [250, 469].into_iter().zip(&whole.tracks);
            let counts: Vec<usize> = counts.map(|(new, it)| it.ldus.len() - new).collect();
            let known = known(&whole, &counts, &mut Rng::with_seed(1));
            let mut state = SettledSegments::new(target);
            state.extend(&known, ALL);
            let (kept, looked) = visits::of(|| {
                state.extend(&whole, ALL);
                let index = state.index(&whole);
                state.packaging(Arc::new(index), 0).unwrap()
            });
            let (anew, _) = visits::of(|| growing(settled(&whole, target, ALL), target).unwrap());
            let copied = looked.index().tracks.iter().map(|track| track.ldus.unshared_bytes());
            let copied: usize = copied.sum();
            println!("{length:>4} h {ldus:>11} {anew:>13} {kept:>14} {copied:>22}");
            all.push((kept, copied));
        }
        // Two or three segments of both tracks, a few times each.
        assert!(all.iter().all(|(kept, _)| *kept < 10_000), "{all:?}");
        assert!(all.iter().all(|(_, copied)| *copied < 400_000), "{all:?}");
    }
}
