//! A store's title as an admission study asks for it: its first video and audio track, groups of
//! pictures and places.
//!
//! A track in several extents is placed where its first extent lies, in one: the scenarios model
//! seeks between titles, not within.

use super::titles::{Title, Track};
use media::{TitleIndex, TrackIndex, TrackKind};
use std::ops::Range;

/// The title of an index; `None` where it has no times, or is empty.
pub fn stored_title(index: &TitleIndex, runs: impl Fn(u16) -> Vec<Range<u64>>) -> Option<Title> {
    let first = |kind| index.tracks.iter().position(|track| track.description.kind == kind);
    let numbers: Vec<usize> =
        [TrackKind::Video, TrackKind::Audio].into_iter().filter_map(first).collect();
    // A viewer that skips, skips groups of pictures, and sound is cut at the same times.
    let leader = &index.tracks[*numbers.first()?];
    let groups = group_times(leader);
    let tracks: Vec<Track> = numbers
        .into_iter()
        .filter_map(|number| {
            let place = runs(u16::try_from(number).ok()?).first()?.start;
            track(&index.tracks[number], place, &groups)
        })
        .collect();
    (!tracks.is_empty()).then_some(Title { tracks })
}

/// Start times of groups of pictures, in seconds; without pictures, every second.
fn group_times(leader: &TrackIndex) -> Vec<f64> {
    let scale = f64::from(leader.description.timescale.0);
    if leader.description.kind != TrackKind::Video {
        let seconds = leader.ldus.duration_ticks() / u64::from(leader.description.timescale.0);
        return (0..=seconds).map(|second| second as f64).collect();
    }
    leader.ldus.iter().filter(|ldu| ldu.sync).map(|ldu| ldu.decode_time as f64 / scale).collect()
}

fn track(index: &TrackIndex, offset: u64, group_times: &[f64]) -> Option<Track> {
    let scale = f64::from(index.description.timescale.0);
    let at: Vec<f64> = index.ldus.iter().map(|ldu| ldu.decode_time as f64 / scale).collect();
    let ends = index.ldus.iter().map(|ldu| ldu.offset + u64::from(ldu.size)).collect();
    let mut groups: Vec<usize> =
        group_times.iter().map(|time| at.partition_point(|shown| shown < time)).collect();
    // A track that is shorter than the leader has no LDUs for the last groups.
    groups.retain(|frame| *frame < at.len());
    groups.dedup();
    // LDUs before the first key frame belong to the first group.
    if groups.first() != Some(&0) {
        groups.insert(0, 0);
    }
    let duration = index.ldus.duration_ticks() as f64 / scale;
    (!at.is_empty()).then_some(Track { offset, ends, at, groups, duration })
}
