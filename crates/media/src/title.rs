//! A title in the store: tracks, each with the index of its LDUs.
//!
//! These are the types in memory; `index_region` has their encoding.

use crate::codec::SampleEntry;
use crate::dolby_vision::DolbyVision;
use crate::subsamples::SubsampleMap;
use crate::{SharedList, TextTrack, Thumbnails};
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
    /// What sound is for, beside what every viewer hears.
    pub purposes: SoundPurposes,
    /// Whether the pictures at some key frames are complete only after further ones (gradual
    /// refresh of H.264): decoding may begin there, and what is shown at first is damaged.
    pub gradual_refresh: bool,
}

/// What a track of sound is for. None: for every viewer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SoundPurposes {
    /// Whether it describes the pictures, for viewers who do not see them.
    pub visual_impaired: bool,
    /// Whether its speech is easier to understand, for viewers who hear badly.
    pub hearing_impaired: bool,
    /// Whether it is a commentary.
    pub comment: bool,
    /// Whether it is a translation that is spoken over or instead of the original.
    pub dub: bool,
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
            purposes: SoundPurposes::default(),
            gradual_refresh: false,
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

    /// The record of Dolby Vision, if the track has one.
    pub fn dolby_vision(&self) -> Option<DolbyVision> {
        DolbyVision::of(SampleEntry(&self.sample_entry))
    }

    /// The ending of the name of a picture file, where each LDU of the track is one (`jpg`, for
    /// example). JPEG 2000 may also be without the file format that its ending `jp2` means.
    pub fn picture_file(&self) -> Option<&'static str> {
        let entry = SampleEntry(&self.sample_entry);
        match &entry.kind() {
            b"jpeg" => Some("jpg"),
            b"png " => Some("png"),
            b"mjp2" => Some("jp2"),
            b"dpx " => Some("dpx"),
            b"exr " => Some("exr"),
            b"tiff" => Some("tiff"),
            // Object types of ISO/IEC 14496-1.
            b"mp4v" => match entry.descriptor()?.object_type {
                0x6c => Some("jpg"),
                0x6d => Some("png"),
                0x6e => Some("jp2"),
                _ => None,
            },
            _ => None,
        }
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
/// A copy shares all but the last LDUs, so that it costs the same however many there are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LduIndex {
    entries: SharedList<Entry, BLOCK>,
    // Decode time of every 64th LDU, so that any other is at most 63 additions away.
    sparse_times: SharedList<u64, BLOCK>,
    duration_ticks: u64,
    subsamples: Option<SubsampleMap>,
}

/// An LDU in memory. 3 h of video at 25 fps are 270,000 of them: packed they have 21 bytes each;
/// aligned, as an [`Ldu`], they would take 32.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(Rust, packed)]
struct Entry {
    end: u64,
    size: u32,
    duration: u32,
    composition_offset: i32,
    flags: u8,
}

const SYNC: u8 = 1;
const DROPPABLE: u8 = 2;
const SPARSE: usize = 64;
/// LDUs that copies of an index share as one: some 86 KB, so that a copy of a day of pictures has
/// some 500 references.
const BLOCK: usize = 4096;

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
        if self.len().is_multiple_of(SPARSE) {
            self.sparse_times.push(self.duration_ticks);
        }
        let end = self.data_len() + u64::from(size);
        let flags = (u8::from(sync) * SYNC) | (u8::from(droppable) * DROPPABLE);
        self.entries.push(Entry { end, size, duration, composition_offset, flags });
        self.duration_ticks += u64::from(duration);
    }

    /// Corrects the duration of the last LDU, once the time of the next one is known.
    pub(crate) fn set_last_duration(&mut self, duration: u32) {
        // `sparse_times` stays valid: none of its entries lies after the last LDU.
        if let Some(last) = self.entries.last_mut() {
            let before = last.duration;
            self.duration_ticks = self.duration_ticks - u64::from(before) + u64::from(duration);
            last.duration = duration;
        }
    }

    /// Ends the index: a last LDU of unknown duration gets that of the one before.
    pub fn end(&mut self) {
        if let Some(last) = self.len().checked_sub(1)
            && last > 0
            && self.duration(last) == 0
        {
            self.set_last_duration(self.duration(last - 1));
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

    /// The first LDUs, as an index of their own. It shares them with this one.
    pub(crate) fn first(&self, count: usize) -> Self {
        let count = count.min(self.len());
        Self {
            entries: self.entries.prefix(count),
            sparse_times: self.sparse_times.prefix(count.div_ceil(SPARSE)),
            duration_ticks: self.begin(count),
            subsamples: self.subsamples.as_ref().map(|map| map.first(count)),
        }
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
        self.entries.len()
    }

    /// Whether there are no LDUs.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The bytes of all LDUs together.
    pub fn data_len(&self) -> u64 {
        self.entries.last().map_or(0, |last| last.end)
    }

    /// The number of LDUs that end within the first `bytes` of the data.
    pub(crate) fn count_within(&self, bytes: u64) -> usize {
        self.entries.partition_point(|entry| entry.end <= bytes)
    }

    /// The sum of all durations, in ticks.
    pub fn duration_ticks(&self) -> u64 {
        self.duration_ticks
    }

    /// The `i`th LDU. Panics beyond the end, like a slice.
    pub fn get(&self, i: usize) -> Ldu {
        self.entries[i].ldu(self.decode_time(i))
    }

    /// The offset of the `i`th LDU in the track's data; for the LDU after the last one, the end of
    /// the data. Panics beyond that, like a slice.
    pub(crate) fn offset(&self, i: usize) -> u64 {
        if i == self.len() {
            return self.data_len();
        }
        let entry = self.entries[i];
        entry.end - u64::from(entry.size)
    }

    /// The duration of the `i`th LDU. Panics beyond the end, like a slice.
    pub(crate) fn duration(&self, i: usize) -> u32 {
        self.entries[i].duration
    }

    /// The decode time of the `i`th LDU; for the LDU after the last one, the end of the last.
    pub(crate) fn begin(&self, i: usize) -> u64 {
        if i == self.len() { self.duration_ticks } else { self.decode_time(i) }
    }

    fn decode_time(&self, i: usize) -> u64 {
        let run: u64 =
            self.entries.range(i - i % SPARSE..i).map(|entry| u64::from(entry.duration)).sum();
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
        self.entries.range(ldus).map(move |entry| {
            let ldu = entry.ldu(decode_time);
            decode_time += u64::from(entry.duration);
            #[cfg(test)]
            visits::add(1);
            ldu
        })
    }

    /// The memory of the index in bytes.
    pub fn memory(&self) -> u64 {
        let subsamples = self.subsamples.as_ref().map_or(0, SubsampleMap::memory);
        (self.len() * size_of::<Entry>() + self.sparse_times.len() * 8) as u64 + subsamples
    }

    /// The bytes of LDUs that a copy of the index does not share with it.
    #[cfg(test)]
    pub(crate) fn unshared_bytes(&self) -> usize {
        self.entries.unshared() * size_of::<Entry>() + self.sparse_times.unshared() * 8
    }
}

impl Entry {
    fn ldu(&self, decode_time: u64) -> Ldu {
        Ldu {
            offset: self.end - u64::from(self.size),
            size: self.size,
            decode_time,
            duration: self.duration,
            composition_offset: self.composition_offset,
            sync: self.flags & SYNC != 0,
            droppable: self.flags & DROPPABLE != 0,
        }
    }
}

/// The CRC-32C of each [`CHECKSUM_SPAN`] bytes of a track's data. A copy shares all but the last
/// ones.
pub type Checksums = SharedList<u32, BLOCK>;

/// The LDUs that a test has walked over.
#[cfg(test)]
pub(crate) mod visits {
    use std::cell::Cell;

    thread_local! {
        static VISITS: Cell<u64> = const { Cell::new(0) };
    }

    pub(crate) fn add(ldus: u64) {
        VISITS.set(VISITS.get() + ldus);
    }

    /// The number of LDUs that `work` walks over in this thread.
    pub(crate) fn of<T>(work: impl FnOnce() -> T) -> (u64, T) {
        let before = VISITS.get();
        let result = work();
        (VISITS.get() - before, result)
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
    pub checksums: Checksums,
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
        for i in 0..10_000u32 {
            index.push(i % 7, 40 + i % 3, 0, i % 25 == 0, i % 2 == 1);
        }
        let walked: Vec<Ldu> = index.iter().collect();
        for (i, ldu) in walked.iter().enumerate() {
            assert_eq!(index.get(i), *ldu);
        }
        assert!(index.range(130..870).eq(walked[130..870].iter().copied()));
        for count in (0..=index.len()).step_by(64).chain([1, 63, 4095, 4096, 4097, 9999]) {
            let mut first = LduIndex::default();
            for ldu in &walked[..count] {
                first.push(ldu.size, ldu.duration, 0, ldu.sync, ldu.droppable);
            }
            assert_eq!(index.first(count), first, "the first {count}");
        }
        let last = walked[9999];
        assert_eq!(last.offset + u64::from(last.size), index.data_len());
        assert_eq!(last.decode_time + u64::from(last.duration), index.duration_ticks());
    }
}
