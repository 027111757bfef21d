//! The settled part of a title, found anew at each look by walking over all of it: the slow,
//! obvious way, against which [`super::SettledSegments`] is tested. Not for use outside tests.

use super::first_ldus;
use crate::packaging::cuts::final_cuts;
use crate::packaging::growing::{as_time, longest, pictures};
use crate::packaging::partition;
use crate::packaging::segments::{Segments, VideoCuts, audio_firsts, cut_behind, video_firsts};
use crate::packaging::timeline::{REORDERED, Timeline, longest_preroll};
use crate::{TitleIndex, TrackIndex, TrackKind};
use std::time::Duration;
use units::MediaTime;

/// The part of a growing title whose segments of about this length are final whatever follows, and
/// whose bytes of track `i` all lie below `held[i]` (zero if there is no such entry). It has whole
/// segments only, of some tracks or of all of them none, and neither texts nor thumbnails. The last
/// known LDU of a track is never in it: its duration may change.
///
/// Nothing is settled before 16 pictures of each video track are known: pictures that are hidden by
/// an edit list are among these, and move all tracks.
pub(crate) fn settled(index: &TitleIndex, segment: Duration, held: &[u64]) -> TitleIndex {
    let title_lines: Vec<Timeline> = index.tracks.iter().map(Timeline::new).collect();
    let preroll = longest_preroll(&index.tracks, &title_lines);
    let lines: Vec<Timeline> = title_lines.iter().map(|line| line.beginning(preroll)).collect();
    let held = |i: usize| held.get(i).copied().unwrap_or(0);
    let is_video = |track: &TrackIndex| track.description.kind == TrackKind::Video;
    let mut tracks: Vec<TrackIndex> = Vec::with_capacity(index.tracks.len());
    for (i, (track, line)) in index.tracks.iter().zip(&lines).enumerate() {
        let count = if is_video(track) { settled_video(track, line, segment, held(i)) } else { 0 };
        // No video is settled before the first one is.
        let first = tracks.iter().find(|track| is_video(track));
        let is_first_there = first.is_none_or(|track| !track.ldus.is_empty());
        tracks.push(first_ldus(track, if is_first_there { count } else { 0 }));
    }
    // What the edit lists hide is the same in every later part, and in the whole recording.
    let is_known = |track: &TrackIndex| track.ldus.len() >= REORDERED;
    let has_all_hidden = index.tracks.iter().filter(|track| is_video(track)).all(is_known)
        && longest_preroll(&tracks, &title_lines) == preroll;
    if has_all_hidden {
        let longest = as_time(longest(&tracks, &lines, segment));
        let pictures = pictures(&tracks, &lines, segment).map(|pictures| (pictures, longest));
        for (i, (track, line)) in index.tracks.iter().zip(&lines).enumerate() {
            if track.description.kind == TrackKind::Audio {
                let count = settled_audio(track, line, pictures.as_ref(), segment, held(i));
                tracks[i] = first_ldus(track, count);
            }
        }
    } else {
        tracks = index.tracks.iter().map(|track| first_ldus(track, 0)).collect();
    }
    TitleIndex { kind: index.kind, tracks, texts: Vec::new(), thumbnails: None }
}

/// The number of LDUs in the settled segments of a video track.
pub(crate) fn settled_video(
    track: &TrackIndex,
    line: &Timeline,
    target: Duration,
    held: u64,
) -> usize {
    // What follows is decoded when the last known LDU is, or later.
    let Some(last) = track.ldus.len().checked_sub(1) else { return 0 };
    let cuts = |places: &[i64], known, target| final_cuts(places, 0, known, target);
    let firsts = video_firsts(track, line, target, 0..last, cuts);
    let within = track.ldus.count_within(held);
    firsts.into_iter().rfind(|&first| first <= within).unwrap_or(0)
}

/// The number of LDUs in the settled segments of an audio track beside settled pictures.
fn settled_audio(
    track: &TrackIndex,
    line: &Timeline,
    pictures: Option<&(Segments, MediaTime)>,
    target: Duration,
    held: u64,
) -> usize {
    let all = 0..track.ldus.len();
    let within = track.ldus.count_within(held);
    let Some((pictures, longest)) = pictures else {
        let (from, longest) = (MediaTime::ZERO, MediaTime(i64::MAX));
        let none = VideoCuts { segments: None, from, longest };
        let firsts = audio_firsts(track, line, &none, target, all);
        return firsts.into_iter().rfind(|&first| first <= within).unwrap_or(0);
    };
    let mut ends = Vec::new();
    let mut at = MediaTime::ZERO;
    for k in 0..pictures.count() {
        while at < pictures.time(k).end {
            at = cut_behind(at, pictures.time(k), *longest);
            ends.push(at);
        }
    }
    let mut firsts =
        ends.into_iter().rev().map(|end| partition(all.clone(), |i| line.begins(track, i) < end));
    firsts.find(|&first| first < all.end && first <= within).unwrap_or(0)
}
