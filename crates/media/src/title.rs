//! A title in the store: tracks, each with the index of its LDUs.
//!
//! These are the types in memory; `index_region` has their encoding.

use crate::codec::SampleEntry;
use crate::subsamples::SubsampleMap;
use crate::{TextTrack, Thumbnails};
use std::ops::Range;
use units::{Malformed, MediaTime, Timescale};

/// The number of bytes of track data that each CRC-32C in [`TrackIndex::checksums`] covers; the
/// last one covers the rest.
pub const CHECKSUM_SPAN: u64 = 64 * 1024;

/// The kind of a track.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TrackKind {
    /// Pictures.
    Video,
    /// Sound.
    Audio,
    /// Any bytes, kept as they are (`--as file`); never packaged.
    File,
}

/// The kind of a title.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TitleKind {
    /// Tracks with times; can be packaged for players.
    #[default]
    Media,
    /// One track of opaque bytes; export is bit-exact.
    File,
}

/// One entry of an edit list (ISO/IEC 14496-12, 8.6.6), at normal speed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edit {
    /// How long the edit plays, in nanoseconds; `None`: to the end of the track.
    pub duration: Option<MediaTime>,
    /// The start in the track's own time, in ticks; `None`: an empty edit (a wait).
    pub media_time: Option<i64>,
}

/// The properties of a track without its LDUs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrackDescription {
    /// The kind of the track.
    pub kind: TrackKind,
    /// Ticks per second of the LDUs' times.
    pub timescale: Timescale,
    /// The sample entry box (of `stsd`) as the muxer wrote it, byte for byte: codec and its
    /// configuration. Empty for [`TrackKind::File`].
    pub sample_entry: Vec<u8>,
    /// RFC 6381 codec string (`avc1.64001f`), or the sample entry's four characters where the RFC
    /// has none.
    pub codec: String,
    /// ISO 639-2 code, `und` if unknown.
    pub language: String,
    /// The title of the track, for menus ("Director's commentary"); empty if it has none.
    pub title: String,
    /// The width of the picture as shown, in pixels (track header); zero for audio.
    pub width: u32,
    /// The height of the picture as shown, in pixels; zero for audio.
    pub height: u32,
    /// Track header's transformation matrix (rotation), as ISO BMFF fixed-point.
    pub matrix: [i32; 9],
    /// Samples per second of sound; zero for pictures.
    pub sample_rate: u32,
    /// Channels of sound; zero for pictures.
    pub channels: u16,
    /// The edit list, with which playback begins at the right place.
    pub edits: Vec<Edit>,
    /// Whether players should select it by default.
    pub default: bool,
}

impl TrackDescription {
    /// A track of which nothing else is known: no codec, no language, shown as it is.
    pub fn plain(kind: TrackKind, timescale: Timescale) -> Self {
        Self {
            kind,
            timescale,
            sample_entry: Vec::new(),
            codec: String::new(),
            language: "und".to_owned(),
            title: String::new(),
            width: 0,
            height: 0,
            matrix: [0x1_0000, 0, 0, 0, 0x1_0000, 0, 0, 0, 0x4000_0000],
            sample_rate: 0,
            channels: 0,
            edits: Vec::new(),
            default: true,
        }
    }

    /// The size as shown in pixels: with square pixels, and rotated where the track header rotates
    /// it by a right angle. `None` if it is unknown.
    pub fn resolution(&self) -> Option<(u32, u32)> {
        let entry = SampleEntry(&self.sample_entry);
        let (mut width, height) = (self.width, self.height);
        // ISO track headers have the size as shown, QuickTime's that of the stored pixels.
        if let Some((across, down)) = entry.pixel_aspect()
            && entry.stored_size() == Some((width, height))
        {
            let (across, down) = (u64::from(across), u64::from(down));
            width = u32::try_from((u64::from(width) * across + down / 2) / down).unwrap_or(width);
        }
        let turned = self.matrix[0] == 0 && self.matrix[4] == 0 && self.matrix[1] != 0;
        let (width, height) = if turned { (height, width) } else { (width, height) };
        (width > 0 && height > 0).then_some((width, height))
    }
}

/// One logical data unit: a video frame, an audio packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ldu {
    /// The offset in the track's data.
    pub offset: u64,
    /// The size in bytes.
    pub size: u32,
    /// Decode time in track ticks from the track's start.
    pub decode_time: u64,
    /// Ticks until the next LDU's decode time (for the last one, its own duration).
    pub duration: u32,
    /// Presentation minus decode time, in ticks.
    pub composition_offset: i32,
    /// Whether decoding may start here.
    pub sync: bool,
    /// Whether no other LDU depends on it.
    pub droppable: bool,
}

/// The LDUs of one track in decode order, back to back: an LDU starts where the one before ends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LduIndex {
    // Structure of arrays: 3 h of video at 25 fps are 270,000 entries with 21 bytes each; an array
    // of `Ldu` would take 32.
    sizes: Vec<u32>,
    ends: Vec<u64>,
    durations: Vec<u32>,
    composition_offsets: Vec<i32>,
    flags: Vec<u8>,
    // Decode time of every 64th LDU, so that any other is at most 63 additions away.
    sparse_times: Vec<u64>,
    duration_ticks: u64,
    subsamples: Option<SubsampleMap>,
}

const SYNC: u8 = 1;
const DROPPABLE: u8 = 2;
const SPARSE: usize = 64;

impl LduIndex {
    /// Appends the next LDU; `offset` and `decode_time` follow from those before it.
    pub fn push(
        &mut self,
        size: u32,
        duration: u32,
        composition_offset: i32,
        sync: bool,
        droppable: bool,
    ) {
        // Before the LDU is added: this is the decode time at which it begins.
        if self.sizes.len().is_multiple_of(SPARSE) {
            self.sparse_times.push(self.duration_ticks);
        }
        self.ends.push(self.data_len() + u64::from(size));
        self.sizes.push(size);
        self.durations.push(duration);
        self.composition_offsets.push(composition_offset);
        self.flags.push((u8::from(sync) * SYNC) | (u8::from(droppable) * DROPPABLE));
        self.duration_ticks += u64::from(duration);
    }

    /// Corrects the duration of the last LDU, once the time of the next one is known.
    pub(crate) fn set_last_duration(&mut self, duration: u32) {
        // `sparse_times` stays valid: none of its entries lies after the last LDU.
        if let Some(last) = self.durations.last_mut() {
            self.duration_ticks = self.duration_ticks - u64::from(*last) + u64::from(duration);
            *last = duration;
        }
    }

    /// Ends the index: a last LDU of unknown duration gets that of the one before.
    pub fn end(&mut self) {
        if let Some(last) = self.len().checked_sub(1)
            && last > 0
            && self.durations[last] == 0
        {
            self.set_last_duration(self.durations[last - 1]);
        }
    }

    /// Which bytes of each LDU may be encrypted; `None` where the codec has no NAL units that were
    /// found when the title was taken in.
    pub(crate) fn subsamples(&self) -> Option<&SubsampleMap> {
        self.subsamples.as_ref()
    }

    /// Adds which bytes of each LDU may be encrypted.
    pub(crate) fn set_subsamples(&mut self, map: SubsampleMap) {
        assert_eq!(map.len(), self.len(), "the subsamples of every LDU");
        self.subsamples = Some(map);
    }

    /// The LDUs of a range, as an index of their own; `subsamples` are those of all LDUs.
    pub(crate) fn part(&self, ldus: Range<usize>, subsamples: Option<&SubsampleMap>) -> Self {
        let mut part = Self::default();
        for ldu in self.range(ldus.clone()) {
            part.push(ldu.size, ldu.duration, ldu.composition_offset, ldu.sync, ldu.droppable);
        }
        part.subsamples = subsamples.map(|map| map.part(ldus));
        part
    }

    /// Appends the LDUs of another index.
    pub(crate) fn append(&mut self, more: &Self) -> Result<(), Malformed> {
        if more.is_empty() {
            return Ok(());
        }
        if !self.is_empty() && self.subsamples.is_some() != more.subsamples.is_some() {
            return Err(Malformed("subsamples of some LDUs and not of others"));
        }
        if let Some(map) = &more.subsamples {
            self.subsamples.get_or_insert_default().append(map);
        }
        for ldu in more.iter() {
            self.push(ldu.size, ldu.duration, ldu.composition_offset, ldu.sync, ldu.droppable);
        }
        Ok(())
    }

    /// The number of LDUs.
    pub fn len(&self) -> usize {
        self.sizes.len()
    }

    /// Whether there are no LDUs.
    pub fn is_empty(&self) -> bool {
        self.sizes.is_empty()
    }

    /// The bytes of all LDUs together.
    pub fn data_len(&self) -> u64 {
        self.ends.last().copied().unwrap_or(0)
    }

    /// The number of LDUs that end within the first `bytes` of the data.
    pub(crate) fn count_within(&self, bytes: u64) -> usize {
        self.ends.partition_point(|end| *end <= bytes)
    }

    /// The sum of all durations, in ticks.
    pub fn duration_ticks(&self) -> u64 {
        self.duration_ticks
    }

    /// The `i`th LDU. Panics beyond the end, like a slice.
    pub fn get(&self, i: usize) -> Ldu {
        Ldu {
            offset: self.ends[i] - u64::from(self.sizes[i]),
            size: self.sizes[i],
            decode_time: self.decode_time(i),
            duration: self.durations[i],
            composition_offset: self.composition_offsets[i],
            sync: self.flags[i] & SYNC != 0,
            droppable: self.flags[i] & DROPPABLE != 0,
        }
    }

    /// The duration of the `i`th LDU. Panics beyond the end, like a slice.
    pub(crate) fn duration(&self, i: usize) -> u32 {
        self.durations[i]
    }

    fn decode_time(&self, i: usize) -> u64 {
        let from = i - i % SPARSE;
        let run: u64 = self.durations[from..i].iter().copied().map(u64::from).sum();
        self.sparse_times[i / SPARSE] + run
    }

    /// All LDUs in decode order.
    pub fn iter(&self) -> impl Iterator<Item = Ldu> + '_ {
        self.range(0..self.len())
    }

    /// A range of LDUs in decode order. Panics beyond the end, like a slice.
    pub fn range(&self, ldus: Range<usize>) -> impl Iterator<Item = Ldu> + '_ {
        // Looked up once and then added up: a look-up per LDU costs up to 63 additions.
        let mut decode_time = if ldus.is_empty() { 0 } else { self.decode_time(ldus.start) };
        ldus.map(move |i| {
            let ldu = Ldu {
                offset: self.ends[i] - u64::from(self.sizes[i]),
                size: self.sizes[i],
                decode_time,
                duration: self.durations[i],
                composition_offset: self.composition_offsets[i],
                sync: self.flags[i] & SYNC != 0,
                droppable: self.flags[i] & DROPPABLE != 0,
            };
            decode_time += u64::from(self.durations[i]);
            ldu
        })
    }

    /// The memory of the index in bytes.
    pub fn memory(&self) -> u64 {
        let subsamples = self.subsamples.as_ref().map_or(0, SubsampleMap::memory);
        (self.sizes.len() * 21 + self.sparse_times.len() * 8) as u64 + subsamples
    }
}

/// One track: description, LDUs, checksums of its data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrackIndex {
    /// The properties without the LDUs.
    pub description: TrackDescription,
    /// The LDUs. Empty for [`TrackKind::File`].
    pub ldus: LduIndex,
    /// The bytes of data in the store (for media: `ldus.data_len()`).
    pub data_len: u64,
    /// The CRC-32C of each [`CHECKSUM_SPAN`] bytes of data.
    pub checksums: Vec<u32>,
}

/// A title's index region: the data needed to read and package it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TitleIndex {
    /// Media or file.
    pub kind: TitleKind,
    /// The tracks in their order on disk.
    pub tracks: Vec<TrackIndex>,
    /// The text tracks. They have no data on disk beside the index region.
    pub texts: Vec<TextTrack>,
    /// The thumbnails, if it has any. They have no data on disk beside the index region.
    pub thumbnails: Option<Thumbnails>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_ldu_equals_the_one_found_by_iterating() {
        let mut index = LduIndex::default();
        for i in 0..1000u32 {
            index.push(i % 7, 40 + i % 3, 0, i % 25 == 0, i % 2 == 1);
        }
        let walked: Vec<Ldu> = index.iter().collect();
        for (i, ldu) in walked.iter().enumerate() {
            assert_eq!(index.get(i), *ldu);
        }
        assert!(index.range(130..870).eq(walked[130..870].iter().copied()));
        let last = walked[999];
        assert_eq!(last.offset + u64::from(last.size), index.data_len());
        assert_eq!(last.decode_time + u64::from(last.duration), index.duration_ticks());
    }
}
