//! The index region: a title's tracks, LDU indexes and checksums as bytes on disk.
//!
//! It is written once when a title is sealed, and read whole when it is opened. It is explicitly
//! little-endian, and every byte is covered by a CRC-32C, so that changed bytes are found before
//! they are used. Chunks and extents are unknown here: bytes behind its own length are ignored.
//!
//! ```text
//! header, 32 bytes
//!   0  magic "TENUTOIX"      16  tracks   u32
//!   8  version  u16 = 4      20  length   u64, of everything, header included
//!  10  kind     u8           28  CRC-32C  u32, of the 28 bytes before
//!  11  thumbnails u8, 0 or 1
//!  12  texts    u32
//! then per track four sections: description, LDUs, subsamples, checksums; then one per text track
//! (`text`); then one with the thumbnails (`thumbnails`), if there are any. A section:
//!   0  tag      u32          12  CRC-32C  u32, of the 12 bytes before and the payload
//!   4  length   u64          16  payload
//!
//! Version 5 has purposes of sound and gradual refresh, and is written only for titles that have
//! one of them.
//!
//! description: kind u8, flags u8 (1 default; of sound 2 visual impaired, 4 hearing impaired,
//!              8 comment, 16 dub; of pictures 32 gradual refresh), timescale u32, width u32,
//!              height u32, sample rate u32, channels u16, matrix 9 × i32, language, title,
//!              codec, sample entry (each u32 length and bytes), edits u32, per edit: duration
//!              i64 ns (-1: to the end), has media time u8, media time i64
//! LDUs:        see `ldu_coding`
//! subsamples:  known u8, 0 or 1; if 1, see `subsamples`
//! checksums:   data length u64, count u32, CRC-32C u32 per span of the data
//! ```

use crate::ldu_coding::{self, IMPOSSIBLE};
use crate::subsamples::SubsampleMap;
use crate::title::{
    CHECKSUM_SPAN, Edit, LduIndex, SoundPurposes, TitleIndex, TitleKind, TrackDescription,
    TrackIndex, TrackKind,
};
use crate::{Checksums, TextTrack, Thumbnails};
use units::{Decoder, Encoder, Malformed, MediaTime, Timescale};

/// The reason why bytes are no index region.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IndexError {
    /// The magic number is missing.
    #[error("no index region: it does not start with its magic")]
    NotAnIndex,
    /// The region was written by a program of another version.
    #[error(
        "index region of version {0}, and this program reads versions {VERSION} and \
         {VERSION_WITH_MARKS}: use the program that wrote it, or ingest the title again"
    )]
    Version(u16),
    /// There are fewer bytes than the header declares.
    #[error("index region cut short: {given} of {wanted} bytes")]
    CutShort {
        /// The declared number of bytes.
        wanted: u64,
        /// The available number of bytes.
        given: u64,
    },
    /// A checksum does not match: the bytes have changed since they were written.
    #[error("index region damaged: the checksum of {0} does not match")]
    Checksum(Section),
    /// The checksum matches, but the content is inconsistent.
    #[error("index region malformed in {0}")]
    Malformed(Section),
}

/// A part of the index region, for errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Section {
    /// The first 32 bytes.
    Header,
    /// A track's description.
    Description(u32),
    /// A track's LDUs.
    Ldus(u32),
    /// A track's subsamples.
    Subsamples(u32),
    /// A track's data checksums.
    Checksums(u32),
    /// A text track.
    Text(u32),
    /// The thumbnails.
    Thumbnails,
}

impl std::fmt::Display for Section {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Header => write!(f, "the header"),
            Self::Description(track) => write!(f, "track {track}'s description"),
            Self::Ldus(track) => write!(f, "track {track}'s LDUs"),
            Self::Subsamples(track) => write!(f, "track {track}'s subsamples"),
            Self::Checksums(track) => write!(f, "track {track}'s checksums"),
            Self::Text(text) => write!(f, "text track {text}"),
            Self::Thumbnails => write!(f, "the thumbnails"),
        }
    }
}

/// The CRC-32C (Castagnoli) that is kept for each [`CHECKSUM_SPAN`] of data.
pub fn checksum(bytes: &[u8]) -> u32 {
    u32::try_from(crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32Iscsi, bytes))
        .expect("a 32-bit checksum")
}

impl TitleIndex {
    /// The index region of this title. Panics if a track's checksums or LDUs do not match its data:
    /// such an index cannot have been sealed.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Encoder::default();
        out.bytes(&MAGIC);
        let none = SoundPurposes::default();
        let mut described = self.tracks.iter().map(|track| &track.description);
        let has_marks = described.any(|it| it.purposes != none || it.gradual_refresh);
        out.u16(if has_marks { VERSION_WITH_MARKS } else { VERSION });
        out.u8(match self.kind {
            TitleKind::Media => KIND_MEDIA,
            TitleKind::File => KIND_FILE,
        });
        out.u8(u8::from(self.thumbnails.is_some()));
        out.count32(self.texts.len());
        out.count32(self.tracks.len());
        out.u64(0); // the length, known at the end
        out.u32(0);
        for track in &self.tracks {
            assert!(is_consistent(self.kind, track), "sealed with data and index at odds");
            section(&mut out, TAG_DESCRIPTION, |out| encode_description(&track.description, out));
            section(&mut out, TAG_LDUS, |out| ldu_coding::encode(&track.ldus, out));
            section(&mut out, TAG_SUBSAMPLES, |out| encode_subsamples(&track.ldus, out));
            section(&mut out, TAG_CHECKSUMS, |out| encode_checksums(track, out));
        }
        for text in &self.texts {
            section(&mut out, TAG_TEXT, |out| text.encode(out));
        }
        if let Some(thumbnails) = &self.thumbnails {
            section(&mut out, TAG_THUMBNAILS, |out| thumbnails.encode(out));
        }
        let length = out.len() as u64;
        out.overwrite(20, &length.to_le_bytes());
        let crc = checksum(&out.written()[..28]);
        out.overwrite(28, &crc.to_le_bytes());
        out.finish()
    }

    /// Decodes an index region; bytes behind its end are ignored.
    pub fn decode(bytes: &[u8]) -> Result<Self, IndexError> {
        let Header { kind, has_thumbnails, tracks, texts, bytes } = decode_header(bytes)?;
        let mut rest = Decoder::new(&bytes[HEADER_LEN..]);
        let mut index = Self { kind, tracks: Vec::new(), texts: Vec::new(), thumbnails: None };
        for number in 0..tracks {
            let track = decode_track(&mut rest, number)?;
            if !is_consistent(kind, &track) {
                return Err(IndexError::Malformed(Section::Checksums(number)));
            }
            index.tracks.push(track);
        }
        for number in 0..texts {
            let section = Section::Text(number);
            index.texts.push(decode_section(&mut rest, TAG_TEXT, section, TextTrack::decode)?);
        }
        if has_thumbnails {
            let section = Section::Thumbnails;
            let found = decode_section(&mut rest, TAG_THUMBNAILS, section, Thumbnails::decode)?;
            index.thumbnails = Some(found);
        }
        if !rest.is_empty() {
            return Err(IndexError::Malformed(Section::Header));
        }
        Ok(index)
    }
}

/// Whether LDUs, data length and checksums match.
fn is_consistent(kind: TitleKind, track: &TrackIndex) -> bool {
    let spans = track.data_len.div_ceil(CHECKSUM_SPAN);
    track.checksums.len() as u64 == spans
        && track.description.timescale.0 != 0
        // A file has no LDUs; its length is bounded by its checksums alone.
        && (kind == TitleKind::File || track.ldus.data_len() == track.data_len)
}

fn section(out: &mut Encoder, tag: u32, payload: impl FnOnce(&mut Encoder)) {
    let start = out.len();
    out.u32(tag);
    out.u64(0);
    out.u32(0);
    payload(out);
    let length = (out.len() - start - SECTION_LEN) as u64;
    out.overwrite(start + 4, &length.to_le_bytes());
    let crc = section_checksum(&out.written()[start..]);
    out.overwrite(start + 12, &crc.to_le_bytes());
}

/// The checksum of a section without the checksum itself.
fn section_checksum(section: &[u8]) -> u32 {
    let mut digest = crc_fast::Digest::new(crc_fast::CrcAlgorithm::Crc32Iscsi);
    digest.update(&section[..12]);
    digest.update(&section[SECTION_LEN..]);
    u32::try_from(digest.finalize()).expect("a 32-bit checksum")
}

fn encode_description(track: &TrackDescription, out: &mut Encoder) {
    out.u8(match track.kind {
        TrackKind::Video => 0,
        TrackKind::Audio => 1,
        TrackKind::File => 2,
    });
    let SoundPurposes { visual_impaired, hearing_impaired, comment, dub } = track.purposes;
    let flags = [
        (track.default, DEFAULT),
        (visual_impaired, VISUAL_IMPAIRED),
        (hearing_impaired, HEARING_IMPAIRED),
        (comment, COMMENT),
        (dub, DUB),
        (track.gradual_refresh, GRADUAL_REFRESH),
    ];
    out.u8(flags.iter().filter(|(is_set, _)| *is_set).map(|(_, flag)| flag).sum());
    out.u32(track.timescale.0);
    out.u32(track.width);
    out.u32(track.height);
    out.u32(track.sample_rate);
    out.u16(track.channels);
    track.matrix.iter().for_each(|cell| out.u32(cell.cast_unsigned()));
    out.bytes32(track.language.as_bytes());
    out.bytes32(track.title.as_bytes());
    out.bytes32(track.codec.as_bytes());
    out.bytes32(&track.sample_entry);
    out.count32(track.edits.len());
    for edit in &track.edits {
        out.i64(edit.duration.map_or(-1, |d| d.0));
        out.u8(u8::from(edit.media_time.is_some()));
        out.i64(edit.media_time.unwrap_or(0));
    }
}

pub(crate) fn encode_subsamples(ldus: &LduIndex, out: &mut Encoder) {
    out.u8(u8::from(ldus.subsamples().is_some()));
    if let Some(map) = ldus.subsamples() {
        map.encode(out);
    }
}

fn encode_checksums(track: &TrackIndex, out: &mut Encoder) {
    out.u64(track.data_len);
    out.count32(track.checksums.len());
    track.checksums.iter().for_each(|&crc| out.u32(crc));
}

/// The fields of the header, and exactly the bytes of the region.
struct Header<'a> {
    kind: TitleKind,
    has_thumbnails: bool,
    tracks: u32,
    texts: u32,
    bytes: &'a [u8],
}

fn decode_header(bytes: &[u8]) -> Result<Header<'_>, IndexError> {
    if !bytes.starts_with(&MAGIC) {
        return Err(IndexError::NotAnIndex);
    }
    let given = bytes.len() as u64;
    let header =
        bytes.get(..HEADER_LEN).ok_or(IndexError::CutShort { wanted: HEADER_LEN as u64, given })?;
    let malformed = |_: Malformed| IndexError::Malformed(Section::Header);
    let mut reader = Decoder::new(&header[MAGIC.len()..]);
    let version = reader.u16().map_err(malformed)?;
    let kind = reader.u8().map_err(malformed)?;
    let thumbnails = reader.u8().map_err(malformed)?;
    let texts = reader.u32().map_err(malformed)?;
    let tracks = reader.u32().map_err(malformed)?;
    let length = reader.u64().map_err(malformed)?;
    // Before the version: a damaged header must not be reported as one of a newer program.
    if reader.u32().map_err(malformed)? != checksum(&header[..28]) {
        return Err(IndexError::Checksum(Section::Header));
    }
    if !matches!(version, VERSION | VERSION_WITH_MARKS) {
        return Err(IndexError::Version(version));
    }
    let kind = match kind {
        KIND_MEDIA => TitleKind::Media,
        KIND_FILE => TitleKind::File,
        _ => return Err(IndexError::Malformed(Section::Header)),
    };
    if thumbnails > 1 {
        return Err(IndexError::Malformed(Section::Header));
    }
    let possible = usize::try_from(length).ok().filter(|&l| l >= HEADER_LEN);
    let whole = possible.ok_or(IndexError::Malformed(Section::Header))?;
    let bytes = bytes.get(..whole).ok_or(IndexError::CutShort { wanted: length, given })?;
    Ok(Header { kind, has_thumbnails: thumbnails == 1, tracks, texts, bytes })
}

fn decode_track(rest: &mut Decoder<'_>, number: u32) -> Result<TrackIndex, IndexError> {
    let description =
        decode_section(rest, TAG_DESCRIPTION, Section::Description(number), decode_description)?;
    let mut ldus: LduIndex =
        decode_section(rest, TAG_LDUS, Section::Ldus(number), ldu_coding::decode)?;
    let subsamples = decode_section(rest, TAG_SUBSAMPLES, Section::Subsamples(number), |reader| {
        let sizes = || ldus.iter().map(|ldu| ldu.size);
        decode_bool(reader)?.then(|| SubsampleMap::decode(reader, sizes())).transpose()
    })?;
    subsamples.into_iter().for_each(|map| ldus.set_subsamples(map));
    let (data_len, checksums) =
        decode_section(rest, TAG_CHECKSUMS, Section::Checksums(number), decode_checksums)?;
    Ok(TrackIndex { description, ldus, data_len, checksums })
}

/// Verifies the next section and lets `payload` decode its whole payload.
fn decode_section<'a, T>(
    rest: &mut Decoder<'a>,
    tag: u32,
    name: Section,
    payload: impl FnOnce(&mut Decoder<'a>) -> Result<T, Malformed>,
) -> Result<T, IndexError> {
    let malformed = |_: Malformed| IndexError::Malformed(name);
    let whole = rest.rest();
    let given_tag = rest.u32().map_err(malformed)?;
    let length = rest.u64().map_err(malformed)?;
    let crc = rest.u32().map_err(malformed)?;
    let length = usize::try_from(length).map_err(|_| IndexError::Malformed(name))?;
    let mut bytes = Decoder::new(rest.bytes(length).map_err(malformed)?);
    // Before decoding: damage must be reported as damage, not as a malformed index.
    if crc != section_checksum(&whole[..SECTION_LEN + length]) {
        return Err(IndexError::Checksum(name));
    }
    let value = payload(&mut bytes).map_err(malformed)?;
    // The checksum covers the tag, so that a wrong tag is an error of the writer.
    if given_tag != tag || !bytes.is_empty() {
        return Err(IndexError::Malformed(name));
    }
    Ok(value)
}

fn decode_description(reader: &mut Decoder<'_>) -> Result<TrackDescription, Malformed> {
    // In the order of the picture at the head of this file. The checksum was right, so an
    // impossible value means another writer, not damage.
    let kind = match reader.u8()? {
        0 => TrackKind::Video,
        1 => TrackKind::Audio,
        2 => TrackKind::File,
        _ => return Err(IMPOSSIBLE),
    };
    let flags = reader.u8()?;
    if flags & !ALL_FLAGS != 0 {
        return Err(IMPOSSIBLE);
    }
    let timescale = Timescale(reader.u32()?);
    let (width, height) = (reader.u32()?, reader.u32()?);
    let (sample_rate, channels) = (reader.u32()?, reader.u16()?);
    let mut matrix = [0; 9];
    for cell in &mut matrix {
        *cell = reader.u32()?.cast_signed();
    }
    let language = decode_text(reader)?;
    let title = decode_text(reader)?;
    let codec = decode_text(reader)?;
    let sample_entry = reader.bytes32()?.to_vec();
    // The count is checked against the remaining bytes before memory is reserved for it.
    let edits =
        (0..reader.count32(EDIT_LEN)?).map(|_| decode_edit(reader)).collect::<Result<_, _>>();
    Ok(TrackDescription {
        kind,
        timescale,
        sample_entry,
        codec,
        language,
        title,
        width,
        height,
        matrix,
        sample_rate,
        channels,
        edits: edits?,
        default: flags & DEFAULT != 0,
        purposes: SoundPurposes {
            visual_impaired: flags & VISUAL_IMPAIRED != 0,
            hearing_impaired: flags & HEARING_IMPAIRED != 0,
            comment: flags & COMMENT != 0,
            dub: flags & DUB != 0,
        },
        gradual_refresh: flags & GRADUAL_REFRESH != 0,
    })
}

pub(crate) fn decode_bool(reader: &mut Decoder<'_>) -> Result<bool, Malformed> {
    match reader.u8()? {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(IMPOSSIBLE),
    }
}

fn decode_text(reader: &mut Decoder<'_>) -> Result<String, Malformed> {
    String::from_utf8(reader.bytes32()?.to_vec()).map_err(|_| IMPOSSIBLE)
}

fn decode_edit(reader: &mut Decoder<'_>) -> Result<Edit, Malformed> {
    let duration = match reader.i64()? {
        -1 => None,
        nanos if nanos >= 0 => Some(MediaTime(nanos)),
        _ => return Err(IMPOSSIBLE),
    };
    let has_media_time = decode_bool(reader)?;
    // The field is always present; the flag before it says whether it counts.
    let media_time = Some(reader.i64()?).filter(|_| has_media_time);
    Ok(Edit { duration, media_time })
}

fn decode_checksums(reader: &mut Decoder<'_>) -> Result<(u64, Checksums), Malformed> {
    let data_len = reader.u64()?;
    let count = reader.count32(4)?;
    let checksums = (0..count).map(|_| reader.u32()).collect::<Result<_, _>>()?;
    Ok((data_len, checksums))
}

const MAGIC: [u8; 8] = *b"TENUTOIX";
const VERSION: u16 = 4;
const VERSION_WITH_MARKS: u16 = 5;
const DEFAULT: u8 = 1;
const VISUAL_IMPAIRED: u8 = 2;
const HEARING_IMPAIRED: u8 = 4;
const COMMENT: u8 = 8;
const DUB: u8 = 16;
const GRADUAL_REFRESH: u8 = 32;
const ALL_FLAGS: u8 =
    DEFAULT | VISUAL_IMPAIRED | HEARING_IMPAIRED | COMMENT | DUB | GRADUAL_REFRESH;
const HEADER_LEN: usize = 32;
const SECTION_LEN: usize = 16;
const EDIT_LEN: usize = 17;
const KIND_MEDIA: u8 = 1;
const KIND_FILE: u8 = 2;
const TAG_DESCRIPTION: u32 = u32::from_le_bytes(*b"desc");
const TAG_LDUS: u32 = u32::from_le_bytes(*b"ldus");
const TAG_SUBSAMPLES: u32 = u32::from_le_bytes(*b"subs");
const TAG_CHECKSUMS: u32 = u32::from_le_bytes(*b"crcs");
const TAG_TEXT: u32 = u32::from_le_bytes(*b"text");
const TAG_THUMBNAILS: u32 = u32::from_le_bytes(*b"thmb");
