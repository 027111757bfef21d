//! The properties of video tracks that a multivariant playlist states, and which video tracks are
//! variants of each other.

use super::timeline::{Timeline, ticks};
use crate::codec::SampleEntry;
use crate::{TitleIndex, TrackDescription, TrackIndex, TrackKind};
use std::cmp::Reverse;
use std::time::Duration;

/// The video tracks that show the same content, best first: the one that lasts longest (of several
/// the largest), and those that end at about the same time. Variants must present the same content
/// (RFC 8216, 6.2.4); others are a second programme or the pictures of a photo, for example.
pub(super) fn variants(index: &TitleIndex, lines: &[Timeline], segment: Duration) -> Vec<u16> {
    let end = |video: u16| {
        let line = &lines[usize::from(video)];
        line.time(line.end).since_start()
    };
    let mut videos = all_videos(index);
    let longest = videos.iter().map(|&video| end(video)).max().unwrap_or_default();
    // In a short title less than a segment is a large part of it.
    let tolerance = segment.min((longest / 10).max(SHORT));
    videos.retain(|&video| longest - end(video) <= tolerance);
    videos
}

/// The video tracks that have pictures, best first.
pub(super) fn all_videos(index: &TitleIndex) -> Vec<u16> {
    let better = |video: u16| {
        let track = &index.tracks[usize::from(video)];
        let (description, time) = (&track.description, track.ldus.duration_ticks());
        let pixels = u64::from(description.width) * u64::from(description.height);
        // Bytes per second, in the tracks' own ticks.
        let scale = u128::from(description.timescale.0);
        (pixels, u128::from(track.ldus.data_len()) * scale / u128::from(time.max(1)))
    };
    let is_video =
        |track: &TrackIndex| track.description.kind == TrackKind::Video && !track.ldus.is_empty();
    let numbered = (0..=u16::MAX).zip(&index.tracks).filter(|(_, track)| is_video(track));
    let mut videos: Vec<u16> = numbered.map(|(number, _)| number).collect();
    videos.sort_by_key(|&video| Reverse(better(video)));
    videos
}

/// `VIDEO-RANGE` by the transfer characteristics (ISO/IEC 23091-2): `None` if they are unspecified
/// or have no name in HLS, which players take as SDR.
pub(super) fn video_range(track: &TrackDescription) -> Option<&'static str> {
    let entry = SampleEntry(&track.sample_entry);
    // The colours of Dolby Vision without a base layer have no number there.
    if matches!(&entry.kind(), b"dvh1" | b"dvhe") {
        return Some("PQ");
    }
    match entry.colours()?.transfer {
        1 | 6 | 13 | 14 | 15 => Some("SDR"),
        16 => Some("PQ"),
        18 => Some("HLG"),
        _ => None,
    }
}

/// The largest frame rate in pictures per 1000 s: the mean rate, or the rate of the densest second
/// where that is clearly higher. (Containers round times, so that single distances mislead.)
pub(super) fn frame_rate(track: &TrackIndex) -> Option<u64> {
    let mut seconds = DensestSecond::default();
    seconds.extend(track, track.ldus.len());
    seconds.frame_rate(track)
}

/// The densest second of a track's first LDUs.
#[derive(Clone, Debug, Default)]
pub(super) struct DensestSecond {
    /// The number of these LDUs.
    known: usize,
    /// The first LDU of the shortest run of them that ends with the last and lasts a second, and
    /// the time at which it is decoded.
    first: usize,
    first_time: i64,
    /// Pictures per 1000 s.
    rate: u64,
}

impl DensestSecond {
    /// Adds the LDUs before `until`.
    pub(super) fn extend(&mut self, track: &TrackIndex, until: usize) {
        if track.description.kind != TrackKind::Video {
            return;
        }
        let scale = track.description.timescale.0;
        for (i, ldu) in (self.known + 1..).zip(track.ldus.range(self.known..until)) {
            let end = ticks(ldu.decode_time) + i64::from(ldu.duration);
            // The shortest run of pictures that ends here and lasts a second.
            loop {
                let next = self.first_time + i64::from(track.ldus.duration(self.first));
                if end - next < i64::from(scale) {
                    break;
                }
                (self.first, self.first_time) = (self.first + 1, next);
            }
            let lasts = u64::try_from(end - self.first_time).unwrap_or(0);
            if lasts >= u64::from(scale) {
                self.rate = self.rate.max(per_1000_s((i - self.first) as u64, lasts, scale));
            }
        }
        self.known = until;
    }

    /// The largest frame rate of a track that has these LDUs and no others, as [`frame_rate`].
    pub(super) fn frame_rate(&self, track: &TrackIndex) -> Option<u64> {
        let (count, length) = (track.ldus.len() as u64, track.ldus.duration_ticks());
        if track.description.kind != TrackKind::Video || length == 0 {
            return None;
        }
        let mean = per_1000_s(count, length, track.description.timescale.0);
        Some(if self.rate > mean + mean / ROUNDING { self.rate } else { mean })
    }
}

/// The rate of so many pictures in so many ticks.
fn per_1000_s(pictures: u64, length: u64, scale: u32) -> u64 {
    let pictures = u128::from(pictures) * u128::from(scale) * 1000;
    let length = u128::from(length);
    u64::try_from((pictures + length / 2) / length).unwrap_or(u64::MAX)
}

/// The difference between the ends of variants that is always allowed: a few pictures.
const SHORT: Duration = Duration::from_millis(500);
/// The inverse of the part by which rounded times change the rate of a second: Matroska rounds to
/// a millisecond, so that two pictures of 60 may move into it.
const ROUNDING: u64 = 20;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::boxes::write_box;
    use crate::{Checksums, LduIndex};
    use units::Timescale;

    fn video(size: (u32, u32), ldus: LduIndex, boxes: &[(&[u8; 4], &[u8])]) -> TrackIndex {
        let mut sample_entry = Vec::new();
        write_box(&mut sample_entry, b"avc1", |out| {
            out.extend_from_slice(&[0; 24]);
            for side in [size.0, size.1] {
                out.extend_from_slice(&u16::try_from(side).unwrap().to_be_bytes());
            }
            out.extend_from_slice(&[0; 50]);
            boxes.iter().for_each(|(kind, it)| write_box(out, kind, |o| o.extend_from_slice(it)));
        });
        let (width, height) = size;
        let plain = TrackDescription::plain(TrackKind::Video, Timescale(1000));
        let description = TrackDescription { sample_entry, width, height, ..plain };
        TrackIndex { description, data_len: ldus.data_len(), ldus, checksums: Checksums::default() }
    }

    fn pictures(durations: impl IntoIterator<Item = u32>) -> LduIndex {
        let mut ldus = LduIndex::default();
        durations.into_iter().for_each(|duration| ldus.push(1000, duration, 0, true, false));
        ldus
    }

    #[test]
    fn tracks_of_other_lengths_are_no_variants() {
        let chosen = |tracks: &[((u32, u32), u32)]| {
            let tracks: Vec<TrackIndex> = tracks
                .iter()
                .map(|&(size, count)| video(size, pictures((0..count).map(|_| 40)), &[]))
                .collect();
            let lines: Vec<Timeline> = tracks.iter().map(Timeline::new).collect();
            let index = TitleIndex {
                kind: crate::TitleKind::Media,
                tracks,
                texts: Vec::new(),
                thumbnails: None,
            };
            variants(&index, &lines, Duration::from_secs(4))
        };
        let (large, small) = ((1920, 1080), (640, 360));
        assert_eq!(chosen(&[(small, 1000), (large, 1001)]), [1, 0]);
        assert_eq!(chosen(&[(small, 1000), (large, 899)]), [0], "4.04 s shorter");
        assert_eq!(chosen(&[(small, 1000), (large, 900)]), [1, 0], "4 s shorter");
        assert_eq!(chosen(&[(large, 2), (small, 45)]), [1], "a photo and its film");
        assert_eq!(chosen(&[(large, 0), (small, 45)]), [1]);
        assert_eq!(chosen(&[]), [0u16; 0]);
    }

    #[test]
    fn sizes_are_those_shown() {
        let shown = |size, pasp: &[u8], turned: bool| {
            let mut track = video(size, LduIndex::default(), &[(b"pasp", pasp)]).description;
            if turned {
                track.matrix = [0, 1 << 16, 0, -(1 << 16), 0, 0, 0, 0, 1 << 30];
            }
            track.resolution()
        };
        let wide = [0, 0, 0, 64, 0, 0, 0, 45];
        assert_eq!(shown((720, 576), &wide, false), Some((1024, 576)));
        assert_eq!(shown((720, 576), &wide, true), Some((576, 1024)));
        assert_eq!(shown((720, 576), &[0, 0, 0, 1, 0, 0, 0, 1], false), Some((720, 576)));
        assert_eq!(shown((720, 576), &[0; 8], false), Some((720, 576)));
        assert_eq!(shown((0, 0), &wide, false), None);
        // The header of the track has the size as shown already.
        let mut track = video((720, 576), LduIndex::default(), &[(b"pasp", &wide)]).description;
        track.width = 1024;
        assert_eq!(track.resolution(), Some((1024, 576)));
    }

    #[test]
    fn the_range_follows_from_the_transfer_characteristics() {
        let range = |kind: &[u8; 4], it: &[u8]| {
            video_range(&video((16, 16), LduIndex::default(), &[(kind, it)]).description)
        };
        for (transfer, wanted) in
            [(1, Some("SDR")), (16, Some("PQ")), (18, Some("HLG")), (2, None), (8, None)]
        {
            let nclx = [b"nclx".as_slice(), &[0, 9, 0, transfer, 0, 9, 0]].concat();
            assert_eq!(range(b"colr", &nclx), wanted, "{transfer}");
            let nclc = [b"nclc".as_slice(), &[0, 9, 0, transfer, 0, 9]].concat();
            assert_eq!(range(b"colr", &nclc), wanted, "{transfer}");
            assert_eq!(range(b"vpcC", &[1, 0, 0, 0, 2, 31, 0xa2, 9, transfer, 9]), wanted);
        }
        assert_eq!(range(b"colr", b"prof\0\0\0\x10"), None, "a colour profile");
    }

    #[test]
    fn the_frame_rate_is_the_mean_or_that_of_the_densest_second() {
        let rate = |durations: Vec<u32>| frame_rate(&video((16, 16), pictures(durations), &[]));
        assert_eq!(rate(vec![40; 100]), Some(25_000));
        // 30 per second in whole milliseconds.
        assert_eq!(rate([33, 33, 34].repeat(100)), Some(30_000));
        assert_eq!(rate(vec![5000; 6]), Some(200));
        // Ten seconds at 25, then ten at 50.
        assert_eq!(rate([vec![40; 250], vec![20; 500]].concat()), Some(50_000));
        assert_eq!(rate(Vec::new()), None);
    }
}
