//! Initialization and media segments of one track (CMAF-like fragmented MP4).
//!
//! ```text
//! init      ftyp | moov: mvhd, trak (empty tables, and a note of a sound's priming), mvex
//!           (of a file of several tracks: a trak for each)
//! segment   moof: mfhd, traf: tfhd, tfdt, trun | mdat header | one stored slice, or one to encrypt
//!           (once for each part: of an excerpt that leaves something out, there are several)
//! picture   the same with one sample: an I-frame that is shown until the next
//! text      the same with one sample, which is generated: the document of a segment
//! ```
//! An initial wait of a track is part of its decode times, not of its edit list, because players on
//! Media Source Extensions ignore empty edits. LDUs that are decoded but not shown stay in the edit
//! list, which they apply.

use super::ManifestKind;
use super::body::{Body, Slice};
use super::encryption::{self, AuxiliaryInfo, CipherBlock, Encryption, TrackCipher};
use super::segments::{LduRun, Segments, data};
use super::timeline::{Timeline, ticks};
use super::track_boxes::{self, Handler, TrackHeader};
use crate::boxes::{write_atom, write_box};
use crate::codec::SampleEntry;
use crate::{
    Ldu, LduIndex, TextDescription, TrackDescription, TrackIndex, TrackKind, dolby_vision,
};
use mp4_atom::{
    ElstEntry, Mfhd, Stco, Stsc, Stsz, Stts, Tfdt, Tfhd, Trex, Trun, TrunEntry, TrunSamples,
};
use std::ops::Range;
use std::sync::Arc;
use units::Timescale;

/// The initialization segment of a track for one kind of manifest.
pub(super) fn init(
    track: &TrackIndex,
    line: &Timeline,
    manifest: ManifestKind,
    encryption: Option<(&Encryption, &TrackCipher)>,
) -> Vec<u8> {
    // DASH has no note, because FFmpeg's DASH reader opens each segment as a file of its own and
    // would cut off the priming at the start of each.
    let is_noted = manifest == ManifestKind::Hls;
    let brands: &[&[u8; 4]] = match manifest {
        ManifestKind::Dash { cmaf: true } => &[b"iso6", b"iso5", b"mp41", b"cmfc"],
        _ => BRANDS,
    };
    let brands: Vec<&[u8; 4]> = brands
        .iter()
        .copied()
        .chain(dolby_vision::brand(SampleEntry(&track.description.sample_entry)))
        .collect();
    let entry =
        encryption.map(|(_, cipher)| encryption::protected_entry(&track.description, cipher));
    let entry = entry.as_ref().unwrap_or(&track.description.sample_entry);
    let track = InitTrack::of(track, line, TRACK_ID, entry, is_noted);
    write_init(&brands, &[track], encryption.map(|(encryption, _)| encryption))
}

/// The header of a file of fragments of these tracks, whose numbers count from one.
pub(super) fn file_header<'a>(
    tracks: impl Iterator<Item = (&'a TrackIndex, &'a Timeline)>,
) -> Vec<u8> {
    let tracks: Vec<InitTrack<'_>> = (TRACK_ID..)
        .zip(tracks)
        .map(|(id, (track, line))| {
            InitTrack::of(track, line, id, &track.description.sample_entry, true)
        })
        .collect();
    write_init(BRANDS, &tracks, None)
}

/// The initialization segment of a text track with this sample entry and these ticks.
pub(super) fn text_init(text: &TextDescription, sample_entry: &[u8], scale: Timescale) -> Vec<u8> {
    let description = TrackDescription {
        language: text.language.clone(),
        title: text.title.clone(),
        ..TrackDescription::plain(TrackKind::File, scale)
    };
    let brands = &[b"iso6", b"iso5", b"mp41", b"cmfc", b"im1t"];
    let track = InitTrack {
        description: &description,
        sample_entry,
        id: TRACK_ID,
        handler: Handler::Subtitles,
        edit: None,
        noted_priming: None,
    };
    write_init(brands, &[track], None)
}

/// A track in the header of fragments.
struct InitTrack<'a> {
    description: &'a TrackDescription,
    sample_entry: &'a [u8],
    id: u32,
    handler: Handler,
    edit: Option<ElstEntry>,
    noted_priming: Option<u32>,
}

impl<'a> InitTrack<'a> {
    /// A track on this timeline; `is_noted`: a sound's priming is noted, too.
    fn of(
        track: &'a TrackIndex,
        line: &Timeline,
        id: u32,
        sample_entry: &'a [u8],
        is_noted: bool,
    ) -> Self {
        let description = &track.description;
        // Only what is decoded and not shown needs an edit; a wait is part of the decode times.
        let shown_from = u64::try_from(line.media_start).ok().filter(|&start| start > 0);
        let edit = shown_from.map(|start| ElstEntry {
            // Zero means the rest of the track: the fragments to come have no known total.
            segment_duration: 0,
            media_time: Some(start),
            media_rate: 1.into(),
        });
        let is_noted = is_noted && description.kind == TrackKind::Audio;
        let noted_priming = shown_from.and_then(|it| u32::try_from(it).ok()).filter(|_| is_noted);
        let handler = description.kind.into();
        Self { description, sample_entry, id, handler, edit, noted_priming }
    }
}

fn write_init(
    brands: &[&[u8; 4]],
    tracks: &[InitTrack<'_>],
    encryption: Option<&Encryption>,
) -> Vec<u8> {
    let quicktime = track_boxes::is_quicktime(tracks.iter().map(|track| track.description));
    let next_id = tracks.iter().map(|track| track.id + 1).max().unwrap_or(TRACK_ID);
    let mut out = Vec::new();
    track_boxes::write_file_type(&mut out, quicktime, brands);
    write_box(&mut out, b"moov", |out| {
        track_boxes::write_movie_header(out, 0, next_id);
        for track in tracks {
            let header = TrackHeader {
                id: track.id,
                handler: track.handler,
                enabled: true,
                duration: 0,
                media_duration: 0,
                edits: track.edit.as_slice(),
                noted_priming: track.noted_priming,
                quicktime,
            };
            track_boxes::write_track(out, track.description, track.sample_entry, &header, |out| {
                write_atom(out, &Stts::default());
                write_atom(out, &Stsc::default());
                write_atom(out, &Stsz::default());
                write_atom(out, &Stco::default());
            });
        }
        write_box(out, b"mvex", |out| {
            for track in tracks {
                let (track_id, default_sample_description_index) = (track.id, 1);
                let defaults =
                    Trex { track_id, default_sample_description_index, ..Trex::default() };
                write_atom(out, &defaults);
            }
        });
        if let Some(encryption) = encryption {
            encryption::write_systems(out, encryption);
        }
    });
    out
}

/// One media segment: these parts of track `number`, each as a fragment. The first fragment has
/// `sequence_number`.
pub(super) fn segment(
    track: &TrackIndex,
    line: &Timeline,
    number: u16,
    parts: &[LduRun],
    sequence_number: u32,
    cipher: Option<&Arc<TrackCipher>>,
) -> Body {
    let mut body = Body::default();
    for (part, sequence_number) in parts.iter().zip(sequence_number..) {
        let info = cipher.and_then(|it| AuxiliaryInfo::of(it, &track.ldus, part.ldus.clone()));
        let numbers = FragmentNumbers { track_id: TRACK_ID, sequence_number };
        body.push_generated(fragment_head(track, line, part, numbers, info.as_ref()));
        push_payload(&mut body, track, number, part.ldus.clone(), cipher);
    }
    body
}

/// Appends a fragment of a file ([`file_header`]): a part of track `number`.
pub(super) fn push_fragment(
    body: &mut Body,
    track: &TrackIndex,
    line: &Timeline,
    number: u16,
    part: &LduRun,
    sequence_number: u32,
) {
    let numbers = FragmentNumbers { track_id: TRACK_ID + u32::from(number), sequence_number };
    body.push_generated(fragment_head(track, line, part, numbers, None));
    push_payload(body, track, number, part.ldus.clone(), None);
}

/// `moof` and `mdat` header of a part of a track.
fn fragment_head(
    track: &TrackIndex,
    line: &Timeline,
    part: &LduRun,
    numbers: FragmentNumbers,
    info: Option<&AuxiliaryInfo>,
) -> Vec<u8> {
    let bytes = data(&track.ldus, part.ldus.clone());
    let mut mdat = Vec::new();
    write_mdat_header(&mut mdat, bytes.end - bytes.start);
    // The offset of the payload counts from the start of the `moof` and does not change its size.
    let length = write_fragment(track, line, part, numbers, 0, info).len() + mdat.len();
    let offset = i32::try_from(length).expect("a moof stays below 2 GiB");
    let mut head = write_fragment(track, line, part, numbers, offset, info);
    head.extend_from_slice(&mdat);
    head
}

/// Appends these LDUs of a track, which are read as track `number`.
fn push_payload(
    body: &mut Body,
    track: &TrackIndex,
    number: u16,
    ldus: Range<usize>,
    cipher: Option<&Arc<TrackCipher>>,
) {
    let Some(cipher) = cipher else {
        return body.push(Slice::Stored { track: number, bytes: data(&track.ldus, ldus) });
    };
    for block in CipherBlock::blocks(track, number, ldus, cipher) {
        body.push(Slice::Encrypted { range: 0..block.len(), block: Arc::new(block) });
    }
}

/// A segment of one picture: the sync LDU `ldu` of track `number`, decoded and shown at `time` in
/// ticks of the played timeline.
pub(super) fn picture(
    track: &TrackIndex,
    line: &Timeline,
    number: u16,
    ldu: usize,
    time: Range<u64>,
    sequence_number: u32,
    cipher: Option<&Arc<TrackCipher>>,
) -> Body {
    let shown = track.ldus.get(ldu);
    let info = cipher.and_then(|it| AuxiliaryInfo::of(it, &track.ldus, ldu..ldu + 1));
    // The edit list of the track takes off what is hidden before its first picture.
    let hidden = u64::try_from(line.media_start).unwrap_or(0);
    let time = time.start + hidden..time.end + hidden;
    let mut body = Body::default();
    let (size, flags) = (shown.size, flags(&shown));
    body.push_generated(single_sample_head(size, flags, time, sequence_number, info.as_ref()));
    push_payload(&mut body, track, number, ldu..ldu + 1, cipher);
    body
}

/// A segment of one generated sample: a document that is shown at `time` in ticks.
pub(super) fn text(document: &[u8], time: Range<u64>, sequence_number: u32) -> Vec<u8> {
    let size = u32::try_from(document.len()).expect("text is bounded");
    let mut out = single_sample_head(size, DEPENDS_ON_NONE, time, sequence_number, None);
    out.extend_from_slice(document);
    out
}

/// `moof` with one sample of this size, which is decoded and shown at `time`, and `mdat` header.
fn single_sample_head(
    size: u32,
    flags: u32,
    time: Range<u64>,
    sequence_number: u32,
    info: Option<&AuxiliaryInfo>,
) -> Vec<u8> {
    let mut mdat = Vec::new();
    write_mdat_header(&mut mdat, u64::from(size));
    let header = Tfhd {
        track_id: TRACK_ID,
        default_sample_duration: Some(u32::try_from(time.end - time.start).unwrap_or(u32::MAX)),
        default_sample_size: Some(size),
        default_sample_flags: Some(flags),
        default_base_is_moof: true,
        ..Tfhd::default()
    };
    let moof = SINGLE_SAMPLE_MOOF_BYTES + info.map_or(0, AuxiliaryInfo::len);
    let offset = moof + mdat.len() as u64;
    let run = Trun {
        data_offset: Some(i32::try_from(offset).expect("two headers")),
        samples: TrunSamples::Inherited { count: 1, first_flags: None },
    };
    let mut head = Vec::new();
    write_moof(&mut head, sequence_number, &header, time.start, &run, info);
    debug_assert_eq!(head.len() as u64, moof, "sizes are stated before it is written");
    head.extend_from_slice(&mdat);
    head
}

/// The bytes of a segment of one picture, headers included.
pub(super) fn picture_size(index: &LduIndex, ldu: usize, cipher: Option<&TrackCipher>) -> u64 {
    let bytes = data(index, ldu..ldu + 1);
    let payload = bytes.end - bytes.start;
    let info = info_bytes(index, ldu..ldu + 1, cipher);
    SINGLE_SAMPLE_MOOF_BYTES + info + mdat_header_bytes(payload) + payload
}

/// The bytes of each segment, headers included.
pub(super) fn sizes(
    index: &LduIndex,
    segments: &Segments,
    cipher: Option<&TrackCipher>,
) -> Vec<u64> {
    (0..segments.count()).map(|number| segment_size(index, segments, number, cipher)).collect()
}

/// The bytes of a segment, headers included.
pub(super) fn segment_size(
    index: &LduIndex,
    segments: &Segments,
    number: usize,
    cipher: Option<&TrackCipher>,
) -> u64 {
    let parts = segments.parts(number).unwrap_or_default();
    parts.iter().map(|part| size(index, part, cipher)).sum()
}

/// The bytes of a part in a media segment, headers included.
fn size(index: &LduIndex, part: &LduRun, cipher: Option<&TrackCipher>) -> u64 {
    let bytes = data(index, part.ldus.clone());
    let payload = bytes.end - bytes.start;
    let shape = Shape::of(index, part);
    let info = info_bytes(index, part.ldus.clone(), cipher);
    shape.moof_bytes(index, part) + info + mdat_header_bytes(payload) + payload
}

/// The bytes of what a fragment states of the encryption of these LDUs.
fn info_bytes(index: &LduIndex, ldus: Range<usize>, cipher: Option<&TrackCipher>) -> u64 {
    cipher.and_then(|it| AuxiliaryInfo::of(it, index, ldus)).map_or(0, |info| info.len())
}

fn mdat_header_bytes(payload: u64) -> u64 {
    if u32::try_from(payload + 8).is_ok() { 8 } else { 16 }
}

/// Writes the header of an `mdat` with this much payload, with a large size only if necessary.
pub(super) fn write_mdat_header(out: &mut Vec<u8>, payload: u64) {
    if let Ok(size) = u32::try_from(payload + 8) {
        out.extend_from_slice(&size.to_be_bytes());
        out.extend_from_slice(b"mdat");
    } else {
        out.extend_from_slice(&[0, 0, 0, 1]);
        out.extend_from_slice(b"mdat");
        out.extend_from_slice(&(payload + 16).to_be_bytes());
    }
}

fn write_fragment(
    track: &TrackIndex,
    line: &Timeline,
    part: &LduRun,
    FragmentNumbers { track_id, sequence_number }: FragmentNumbers,
    data_offset: i32,
    info: Option<&AuxiliaryInfo>,
) -> Vec<u8> {
    let first = part.first(&track.ldus);
    let decode_time =
        ticks(first.decode_time).saturating_add(line.wait).saturating_sub(part.earlier);
    let shape = Shape::of(&track.ldus, part);
    let header = Tfhd {
        track_id,
        default_sample_duration: shape.duration,
        default_sample_size: shape.size,
        default_sample_flags: Some(shape.flags),
        default_base_is_moof: true,
        ..Tfhd::default()
    };
    let samples = shape.samples(&track.ldus, part);
    let run = Trun { data_offset: Some(data_offset), samples };
    // `tfdt` has no negative times: what would be decoded before zero begins at zero.
    let decode_time = u64::try_from(decode_time).unwrap_or(0);
    let mut out = Vec::new();
    write_moof(&mut out, sequence_number, &header, decode_time, &run, info);
    out
}

fn write_moof(
    out: &mut Vec<u8>,
    sequence_number: u32,
    header: &Tfhd,
    base_media_decode_time: u64,
    run: &Trun,
    info: Option<&AuxiliaryInfo>,
) {
    let start = out.len();
    write_box(out, b"moof", |out| {
        write_atom(out, &Mfhd { sequence_number });
        write_box(out, b"traf", |out| {
            write_atom(out, header);
            write_atom(out, &Tfdt { base_media_decode_time });
            write_atom(out, run);
            info.into_iter().for_each(|info| info.write(out, (out.len() - start) as u64));
        });
    });
}

/// The numbers of a fragment.
#[derive(Clone, Copy)]
struct FragmentNumbers {
    track_id: u32,
    sequence_number: u32,
}

/// The properties that all LDUs of a segment share and that need not be repeated.
struct Shape {
    duration: Option<u32>,
    size: Option<u32>,
    /// The flags of all LDUs except possibly the first.
    flags: u32,
    /// Whether all LDUs but the first have these flags.
    flags_are_common: bool,
    composed: bool,
}

impl Shape {
    fn of(index: &LduIndex, part: &LduRun) -> Self {
        let first = part.first(index);
        // The second LDU has the common flags: often only the first one is a key frame.
        let flags = flags(&index.get((part.ldus.start + 1).min(part.ldus.end - 1)));
        let mut shape = Self {
            duration: Some(first.duration),
            size: Some(first.size),
            flags,
            flags_are_common: true,
            composed: false,
        };
        for (i, ldu) in part.range(index).enumerate() {
            shape.duration = shape.duration.filter(|&duration| duration == ldu.duration);
            shape.size = shape.size.filter(|&size| size == ldu.size);
            shape.flags_are_common &= i == 0 || self::flags(&ldu) == flags;
            shape.composed |= ldu.composition_offset != 0;
        }
        shape
    }

    /// The flags of the first LDU where only they differ from the common ones.
    fn first_flags(&self, index: &LduIndex, part: &LduRun) -> Option<u32> {
        Some(flags(&index.get(part.ldus.start)))
            .filter(|&first| self.flags_are_common && first != self.flags)
    }

    /// The size of the `moof` of these LDUs.
    fn moof_bytes(&self, index: &LduIndex, part: &LduRun) -> u64 {
        let defaults = u64::from(self.duration.is_some()) + u64::from(self.size.is_some());
        let first_flags = u64::from(self.first_flags(index, part).is_some());
        let fields = (2 - defaults) + u64::from(!self.flags_are_common) + u64::from(self.composed);
        MOOF_BYTES + 4 * (defaults + first_flags) + 4 * fields * part.ldus.len() as u64
    }

    fn samples(&self, index: &LduIndex, part: &LduRun) -> TrunSamples {
        let first_flags = self.first_flags(index, part);
        // All values are in the `tfhd` then: a `trun` of constant size, whatever the number of
        // LDUs.
        let nothing_differs = self.duration.is_some() && self.size.is_some() && !self.composed;
        if nothing_differs && self.flags_are_common {
            let count = u32::try_from(part.ldus.len()).expect("an index has fewer LDUs");
            return TrunSamples::Inherited { count, first_flags };
        }
        let entry = |(i, ldu): (usize, Ldu)| TrunEntry {
            duration: Some(ldu.duration).filter(|_| self.duration.is_none()),
            size: Some(ldu.size).filter(|_| self.size.is_none()),
            flags: if self.flags_are_common {
                first_flags.filter(|_| i == 0)
            } else {
                Some(flags(&ldu))
            },
            cts: Some(i64::from(ldu.composition_offset)).filter(|_| self.composed),
        };
        TrunSamples::Explicit(part.range(index).enumerate().map(entry).collect())
    }
}

/// The sample flags of an LDU by ISO/IEC 14496-12, 8.8.3.1.
fn flags(ldu: &Ldu) -> u32 {
    let depends = if ldu.sync { DEPENDS_ON_NONE } else { DEPENDS_ON_OTHERS | NON_SYNC };
    depends | if ldu.droppable { NONE_DEPENDS } else { 0 }
}

/// The track number in a segment, which has one track, and of the first track of a file.
const TRACK_ID: u32 = 1;
/// The brands of fragmented MP4.
const BRANDS: &[&[u8; 4]] = &[b"iso6", b"iso5", b"mp41"];
const DEPENDS_ON_NONE: u32 = 2 << 24;
const DEPENDS_ON_OTHERS: u32 = 1 << 24;
const NONE_DEPENDS: u32 = 2 << 22;
const NON_SYNC: u32 = 1 << 16;
/// Bytes of a `moof` without defaults and samples: its header and `mfhd` (8 + 16), the header of
/// `traf`, `tfhd` with the default flags, `tfdt`, `trun` with an offset (8 + 20 + 20 + 20).
const MOOF_BYTES: u64 = 92;
/// Bytes of a `moof` of one sample whose duration and size are defaults.
const SINGLE_SAMPLE_MOOF_BYTES: u64 = MOOF_BYTES + 8;
/// Bytes of a segment of text before its document, which is far below 4 GiB.
pub(super) const TEXT_HEAD_BYTES: u64 = SINGLE_SAMPLE_MOOF_BYTES + 8;
