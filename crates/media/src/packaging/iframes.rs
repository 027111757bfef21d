//! The I-frames of a video track, each as a segment of its own: what a player shows while its
//! viewer winds forwards or backwards (HLS I-frame playlists, the trick mode set of DASH).
//!
//! ```text
//!   the track              I p p p I p p p I p p p I p p p      pictures; I: a key frame
//!   listed, 1 s apart      I ───────────── I ─────────────      each is shown until the next
//!   segment                moof (one sample) | mdat header | one stored slice
//! ```
//! The I-frames are key frames of the track as it is stored; nothing is stored for them. They
//! are segments of their own, and no byte ranges of the track's segments: there the box in front of
//! a key frame describes all pictures of the segment, and a player would have to guess how long to
//! show this one. The initialization segment is that of the track. A single picture needs no
//! reordering, so each is decoded at the time at which it is shown.
//!
//! Manifests list the I-frames of one rendition of each codec, the smallest, and of it one list for
//! all speeds:
//!
//! - A disk with an arm comes to an I-frame in 12 ms, and reads a second of 5 Mb/s in less. Winding
//!   within 1.5 times the disk time of normal play would be one I-frame in 2 s, at any speed. A
//!   rendition of 0.4 Mb/s costs a twelfth: read whole, in large pieces, at 16 times its speed.
//! - Of several lists with the resolution that is played, players choose by rate, not by speed
//!   (Shaka Player the one of the least). A second list with fewer I-frames would be the only one.
//!
//! The piece in which I-frames are read is chosen in `server` (`presentation`): it knows the disk.

use super::cuts::nearest_cuts;
use super::encryption::TrackCipher;
use super::media_segment;
use super::rates::Rates;
use super::segments::{Segments, data, micros};
use super::timeline::{Timeline, nearest, shown};
use crate::codec::SampleEntry;
use crate::{TrackDescription, TrackIndex, TrackKind};
use std::ops::Range;
use units::MediaTime;

/// The listed I-frames of a video track.
#[derive(Debug)]
pub(super) struct IFrames {
    /// The LDUs, in order.
    ldus: Vec<usize>,
    /// The start of each in ticks on the played timeline, then the end of the last. Strictly
    /// rising.
    pub(super) boundaries: Vec<u64>,
    /// The boundaries as playlists count them: from zero.
    times: Vec<MediaTime>,
    pub(super) rates: Rates,
    /// `EXT-X-TARGETDURATION` of the I-frame playlist, in seconds.
    pub(super) target_duration: u64,
}

impl IFrames {
    /// The I-frames of a track that is played in these segments. `None` where the player has no use
    /// for them: there is no second one, the presentation itself skips groups of pictures, or key
    /// frames alone are not whole pictures.
    pub(super) fn of(
        track: &TrackIndex,
        line: &Timeline,
        segments: &Segments,
        cipher: Option<&TrackCipher>,
    ) -> Option<Self> {
        let runs = segments.runs();
        let (first, last) = (runs.first()?, runs.last()?);
        let contiguous = runs.windows(2).all(|pair| pair[0].ldus.end == pair[1].ldus.start);
        let TrackDescription { kind, gradual_refresh, .. } = track.description;
        if kind != TrackKind::Video || gradual_refresh || !contiguous {
            return None;
        }
        let (mut ldus, mut starts) = (Vec::new(), Vec::<i64>::new());
        for (i, at) in closed_groups(track, line, first.ldus.start..last.ldus.end) {
            let at = at.saturating_sub(first.earlier).max(0);
            if starts.last().is_none_or(|last| *last < at) {
                ldus.push(i);
                starts.push(at);
            }
        }
        let end = nearest(segments.end(), line.scale).max(starts.last()? + 1);
        let cuts = nearest_cuts(&starts, end, i64::from(line.scale.0) * DISTANCE_SECONDS);
        if cuts.len() < 2 {
            return None;
        }
        let boundaries: Vec<i64> = cuts.iter().map(|&cut| starts[cut]).chain([end]).collect();
        // A playlist has no time before its first segment.
        let shown = boundaries.iter().skip(1).map(|&at| line.time(at));
        let times: Vec<MediaTime> = std::iter::once(MediaTime::ZERO).chain(shown).collect();
        let mut iframes = Self {
            ldus: cuts.iter().map(|&cut| ldus[cut]).collect(),
            boundaries: boundaries.iter().map(|at| at.unsigned_abs()).collect(),
            times,
            rates: Rates::default(),
            target_duration: 1,
        };
        let longest = iframes.lengths().max().unwrap_or(0);
        iframes.target_duration = ((longest + 500_000) / 1_000_000).max(1);
        iframes.rates = iframes.rates(track, cipher);
        Some(iframes)
    }

    fn rates(&self, track: &TrackIndex, cipher: Option<&TrackCipher>) -> Rates {
        let sizes = self.sizes(track, cipher);
        let lengths: Vec<u64> = self.lengths().collect();
        let scale = track.description.timescale;
        Rates::of_sizes(&sizes, &lengths, &self.boundaries, scale, self.target_duration)
    }

    /// The bytes of each as a segment.
    pub(super) fn sizes(&self, track: &TrackIndex, cipher: Option<&TrackCipher>) -> Vec<u64> {
        let size = |&ldu: &usize| media_segment::picture_size(&track.ldus, ldu, cipher);
        self.ldus.iter().map(size).collect()
    }

    /// The LDU of an I-frame, and the ticks at which it begins and ends to be shown.
    pub(super) fn get(&self, number: usize) -> Option<(usize, Range<u64>)> {
        let ldu = *self.ldus.get(number)?;
        Some((ldu, self.boundaries[number]..self.boundaries[number + 1]))
    }

    /// The length of each in microseconds, as playlists state it.
    pub(super) fn lengths(&self) -> impl Iterator<Item = u64> + '_ {
        self.times.windows(2).map(|pair| micros(pair[1]) - micros(pair[0]))
    }

    /// The byte range of each in the track's data, and when it is due in ms of the played time.
    pub(super) fn runs<'a>(
        &'a self,
        track: &'a TrackIndex,
    ) -> impl Iterator<Item = (Range<u64>, u32)> + 'a {
        self.ldus
            .iter()
            .zip(&self.times)
            .map(|(&ldu, &time)| (data(&track.ldus, ldu..ldu + 1), super::millis(time)))
    }

    /// How many times faster than normal a decoder that can decode the track can show its I-frames
    /// (`maxPlayoutRate` by ISO/IEC 23009-1), for a track of this frame rate per 1000 s.
    pub(super) fn max_playout_rate(&self, frame_rate: u64, ticks_per_second: u32) -> u64 {
        let distances = self.boundaries.windows(2).map(|pair| pair[1] - pair[0]);
        let shortest = u128::from(distances.min().unwrap_or(0));
        let pictures = shortest * u128::from(frame_rate) / 1000;
        u64::try_from(pictures / u128::from(ticks_per_second.max(1))).unwrap_or(u64::MAX).max(1)
    }
}

/// The key frames at which closed groups begin, and when they are shown. The key frame of an open
/// group, which has pictures that are shown before it, need not begin a new count of pictures: a
/// decoder that has not seen those between may show it out of order. Where H.264 and HEVC have such
/// groups, the others may begin with such a key frame as well (x264 writes recovery points alone,
/// and no IDR pictures), and there are none.
fn closed_groups(track: &TrackIndex, line: &Timeline, ldus: Range<usize>) -> Vec<(usize, i64)> {
    let kind = SampleEntry(&track.description.sample_entry).kind();
    let counts_on = matches!(&kind, b"avc1" | b"avc3" | b"hvc1" | b"hev1" | b"dvh1" | b"dvhe");
    let searched = if counts_on { 0..track.ldus.len() } else { ldus.clone() };
    let mut groups: Vec<(usize, i64)> = Vec::new();
    let mut is_open = false;
    let mut shown_first = i64::MIN;
    for (i, ldu) in searched.clone().zip(track.ldus.range(searched)) {
        let at = line.place(shown(track, &ldu));
        if ldu.sync {
            (is_open, shown_first) = (false, at);
            groups.push((i, at));
        } else if at < shown_first && !is_open && groups.len() > 1 {
            // Before the first group nothing is missing.
            if counts_on {
                return Vec::new();
            }
            is_open = true;
            groups.pop();
        }
    }
    groups.retain(|(i, _)| ldus.contains(i));
    groups
}

/// The usual distance between two listed I-frames. At eight times the normal speed it is eight
/// pictures in a second; more are hardly told apart.
const DISTANCE_SECONDS: i64 = 1;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Checksums, LduIndex};
    use units::Timescale;

    /// The key frames of closed groups of a track of this codec, among those of groups of four
    /// pictures that are open (stored I B B P, shown B B I P) or closed.
    fn closed(kind: &[u8; 4], groups: &[bool]) -> Vec<usize> {
        let mut ldus = LduIndex::default();
        for is_open in groups {
            let offsets = if *is_open { [80, 0, 0, 40] } else { [40, 120, 0, 0] };
            (0..4).for_each(|i| ldus.push(1, 40, offsets[i], i == 0, false));
        }
        let sample_entry = [&[0, 0, 0, 8], &kind[..]].concat();
        let description = TrackDescription {
            sample_entry,
            ..TrackDescription::plain(TrackKind::Video, Timescale(1000))
        };
        let data_len = ldus.data_len();
        let track = TrackIndex { description, ldus, data_len, checksums: Checksums::default() };
        let all = 0..track.ldus.len();
        let found = closed_groups(&track, &Timeline::new(&track), all);
        found.into_iter().map(|(ldu, _)| ldu / 4).collect()
    }

    #[test]
    fn groups_beside_open_ones_are_listed_only_where_key_frames_begin_a_count() {
        assert_eq!(closed(b"avc1", &[false, false, false]), [0, 1, 2]);
        // What the first group is decoded from is not missed.
        assert_eq!(closed(b"avc1", &[true, false, false]), [0, 1, 2]);
        assert_eq!(closed(b"avc1", &[false, true, false, false]), [0; 0]);
        assert_eq!(closed(b"hvc1", &[false, false, true]), [0; 0]);
        assert_eq!(closed(b"mp4v", &[false, true, false, false]), [0, 2, 3]);
    }
}
