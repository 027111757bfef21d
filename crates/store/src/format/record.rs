//! The catalogue's records in journal entries, checkpoints and labels.
//!
//! ```text
//!   each record begins with its kind, 1 byte; a text or a list with its length, 2 bytes
//!
//!   1  title (the inode)                    2  removal       8  id
//!        8  id                              3  renaming      8  id   2+n  name
//!        1  kind of title: 1 media, 2 file  4  calibration   2+n  as `disk` encodes it
//!        8  created, Unix seconds           5  disk history  2+n  as the server encodes it
//!        8  duration, nanoseconds           6  next id       8  id
//!      2+n  name, UTF-8
//!        8  bytes of the index              extents
//!        4  CRC-32C of the index              2  how many
//!      2+n  extents of the index region      16  each: first chunk (8), chunks (8)
//!        2  tracks, each: 8 bytes of data, then its extents
//!
//!   a title that is being recorded, until its record of kind 1 or 2 follows
//!
//!   7  recording                            8  extents of a recording
//!        8  id                                   8  id
//!        8  created, Unix seconds                2  region: a track, or 0xFFFF: index parts,
//!      2+n  name, UTF-8                                     0xFFFE: the coming index region
//!      4+n  index region without LDUs          2+n  all its extents
//!
//!   9  progress of a track                  10  index parts that were moved to their region
//!        8  id                                   8  id
//!        2  track                                8  offset in the region
//!      4+n  index part                           4  bytes
//!        8  bytes of data in place               4  CRC-32C
//!      2+n  the data behind them
//!
//!  11  scrub: how far all titles have been read and compared with their checksums
//!        8  when the pass began, Unix seconds
//!        8  id, 2  track, 8  offset: what it reads next
//!        8  bytes read    4  pieces of damage found
//!        8  when the last complete pass ended, Unix seconds (0: none)    4  its pieces of damage
//!
//!  12  siblings: the other stores of the set   13  a change that a sibling missed
//!        2  how many, each:                          16  uuid of the sibling
//!           16  uuid                                   8  when it was made, Unix seconds
//!            8  away since, Unix seconds             2+n  the title's content
//!               (0: it is not)                       2+n  its name
//!          2+n  path, UTF-8; may be empty            2+n  its new name (empty: it was removed)
//!  14  changes that a sibling does not miss any more
//!       16  uuid of the sibling    2  how many, the oldest first
//! ```

use super::bytes::Malformed;
use crate::{
    MissedChange, ScrubPosition, ScrubResult, ScrubState, Sibling, StoreError, TitleId,
    TitleRecord, TrackRecord,
};
use disk::Calibration;
use media::{TitleIndex, TitleKind};
use std::time::Duration;
use units::{ChunkIndex, Decoder, Encoder, Extent, Hinted, nanos, show};
use uuid::Uuid;

/// One change of the catalogue.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Record {
    /// A new title.
    Title(TitleRecord),
    /// A title was removed.
    Removal(TitleId),
    /// A title was renamed.
    Renaming(TitleId, String),
    /// The calibration was replaced by this one.
    Calibration(Calibration),
    /// The performance of the disk in use, in the server's encoding.
    DiskHistory(Vec<u8>),
    /// Ids below this one are never used again.
    NextId(TitleId),
    /// A title is being recorded.
    Recording(RecordingStart),
    /// The extents of a region of a recording, all of them.
    RecordingExtents(TitleId, RecordingRegion, Vec<Extent>),
    /// More of a track of a recording is durable.
    Progress(TrackProgress),
    /// The index parts of a recording so far are in its region for them.
    Spill(TitleId, SpilledParts),
    /// How far all titles have been read and compared with their checksums.
    Scrub(ScrubState),
    /// The other stores of the set, all of them.
    Siblings(Vec<Sibling>),
    /// A sibling that was away missed a change of a title.
    Missed(MissedChange),
    /// A sibling does not miss this many of its oldest changes any more.
    CaughtUp(Uuid, u16),
}

/// The beginning of a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RecordingStart {
    pub(crate) id: TitleId,
    pub(crate) name: String,
    /// The Unix time in seconds.
    pub(crate) created: u64,
    /// The encoded index of a title with these tracks and no LDUs.
    pub(crate) index: Vec<u8>,
}

/// A region of a recording with extents of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum RecordingRegion {
    /// The data of a track.
    Track(u16),
    /// The index parts that are no longer in the catalogue.
    Parts,
    /// Room for the index region of the title.
    Index,
}

/// The durable data of a track of a recording, with the part of its index that became durable with
/// it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TrackProgress {
    pub(crate) id: TitleId,
    pub(crate) track: u16,
    /// An encoded [`media::IndexPart`].
    pub(crate) part: Vec<u8>,
    /// The bytes of data that are in their place: whole blocks.
    pub(crate) in_place: u64,
    /// The bytes behind them, less than a block: a block that was acknowledged is never written
    /// again.
    pub(crate) tail: Vec<u8>,
}

/// Index parts of a recording in its region for them: encoded records of [`TrackProgress`] without
/// tails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SpilledParts {
    /// The offset in the region, a multiple of [`super::BLOCK`].
    pub(crate) offset: u64,
    pub(crate) bytes: u32,
    pub(crate) checksum: u32,
}

impl Record {
    pub(crate) fn encode(&self, out: &mut Encoder) {
        match self {
            Self::Title(title) => encode_title_record(title, out),
            Self::Removal(id) => {
                out.u8(REMOVAL);
                out.u64(id.0);
            }
            Self::Renaming(id, name) => {
                out.u8(RENAMING);
                out.u64(id.0);
                out.text16(name);
            }
            Self::Calibration(calibration) => {
                out.u8(CALIBRATION);
                let bytes = calibration.encode();
                out.count16(bytes.len());
                out.bytes(&bytes);
            }
            Self::DiskHistory(bytes) => {
                out.u8(DISK_HISTORY);
                out.count16(bytes.len());
                out.bytes(bytes);
            }
            Self::NextId(id) => {
                out.u8(NEXT_ID);
                out.u64(id.0);
            }
            Self::Recording(start) => {
                out.u8(RECORDING);
                out.u64(start.id.0);
                out.u64(start.created);
                out.text16(&start.name);
                out.bytes32(&start.index);
            }
            Self::RecordingExtents(id, region, extents) => {
                out.u8(RECORDING_EXTENTS);
                out.u64(id.0);
                out.u16(match region {
                    RecordingRegion::Track(track) => *track,
                    RecordingRegion::Parts => PARTS,
                    RecordingRegion::Index => INDEX,
                });
                encode_extents(extents, out);
            }
            Self::Progress(progress) => {
                out.u8(PROGRESS);
                out.u64(progress.id.0);
                out.u16(progress.track);
                out.bytes32(&progress.part);
                out.u64(progress.in_place);
                out.count16(progress.tail.len());
                out.bytes(&progress.tail);
            }
            Self::Spill(id, spilled) => {
                out.u8(SPILL);
                out.u64(id.0);
                out.u64(spilled.offset);
                out.u32(spilled.bytes);
                out.u32(spilled.checksum);
            }
            Self::Scrub(state) => {
                out.u8(SCRUB);
                out.u64(state.begun);
                out.u64(state.next.title.0);
                out.u16(state.next.track);
                out.u64(state.next.offset);
                out.u64(state.bytes);
                out.u32(state.found);
                out.u64(state.last.map_or(0, |last| last.finished));
                out.u32(state.last.map_or(0, |last| last.found));
            }
            Self::Siblings(siblings) => {
                out.u8(SIBLINGS);
                out.count16(siblings.len());
                for sibling in siblings {
                    out.bytes(sibling.uuid.as_bytes());
                    out.u64(sibling.away_since);
                    out.text16(&sibling.path);
                }
            }
            Self::Missed(change) => {
                out.u8(MISSED);
                out.bytes(change.store.as_bytes());
                out.u64(change.at);
                out.text16(&change.content);
                out.text16(&change.name);
                out.text16(change.new_name.as_deref().unwrap_or_default());
            }
            Self::CaughtUp(store, count) => {
                out.u8(CAUGHT_UP);
                out.bytes(store.as_bytes());
                out.u16(*count);
            }
        }
    }

    pub(crate) fn decode(bytes: &mut Decoder<'_>) -> Result<Self, Malformed> {
        match bytes.u8()? {
            TITLE => decode_title(bytes).map(Self::Title),
            REMOVAL => Ok(Self::Removal(TitleId(bytes.u64()?))),
            RENAMING => {
                Ok(Self::Renaming(TitleId(bytes.u64()?), bytes.text16(MAX_NAME)?.to_owned()))
            }
            CALIBRATION => {
                let count = bytes.count16(MAX_CALIBRATION, "too many bytes of calibration")?;
                let calibration = Calibration::decode(bytes.bytes(count)?);
                calibration.map(Self::Calibration).map_err(|error| Malformed(error.one_line()))
            }
            DISK_HISTORY => {
                let count = bytes.count16(MAX_DISK_HISTORY, "too many bytes of disk history")?;
                Ok(Self::DiskHistory(bytes.bytes(count)?.to_vec()))
            }
            NEXT_ID => Ok(Self::NextId(TitleId(bytes.u64()?))),
            RECORDING => decode_recording(bytes).map(Self::Recording),
            RECORDING_EXTENTS => {
                let id = TitleId(bytes.u64()?);
                let region = match bytes.u16()? {
                    PARTS => RecordingRegion::Parts,
                    INDEX => RecordingRegion::Index,
                    track => RecordingRegion::Track(track),
                };
                Ok(Self::RecordingExtents(id, region, decode_extents(bytes)?))
            }
            PROGRESS => {
                let (id, track) = (TitleId(bytes.u64()?), bytes.u16()?);
                let (part, in_place) = (bytes.bytes32()?.to_vec(), bytes.u64()?);
                let count = bytes.count16(TAIL, "more than a block behind the data in place")?;
                let tail = bytes.bytes(count)?.to_vec();
                if !in_place.is_multiple_of(super::BLOCK) {
                    return Err("data in place that is not whole blocks".into());
                }
                Ok(Self::Progress(TrackProgress { id, track, part, in_place, tail }))
            }
            SPILL => {
                let (id, offset) = (TitleId(bytes.u64()?), bytes.u64()?);
                let (length, checksum) = (bytes.u32()?, bytes.u32()?);
                Ok(Self::Spill(id, SpilledParts { offset, bytes: length, checksum }))
            }
            SCRUB => {
                let begun = bytes.u64()?;
                let title = TitleId(bytes.u64()?);
                let next = ScrubPosition { title, track: bytes.u16()?, offset: bytes.u64()? };
                let (read, found) = (bytes.u64()?, bytes.u32()?);
                let last = ScrubResult { finished: bytes.u64()?, found: bytes.u32()? };
                let last = (last.finished != 0).then_some(last);
                Ok(Self::Scrub(ScrubState { begun, next, bytes: read, found, last }))
            }
            SIBLINGS => decode_siblings(bytes).map(Self::Siblings),
            MISSED => {
                let store = Uuid::from_bytes(bytes.array()?);
                let at = bytes.u64()?;
                let content = bytes.text16(MAX_NAME)?.to_owned();
                let mut name = || Ok::<_, Malformed>(bytes.text16(MAX_NAME)?.to_owned());
                let (name, new_name) = (name()?, name()?);
                let new_name = (!new_name.is_empty()).then_some(new_name);
                Ok(Self::Missed(MissedChange { store, at, content, name, new_name }))
            }
            CAUGHT_UP => Ok(Self::CaughtUp(Uuid::from_bytes(bytes.array()?), bytes.u16()?)),
            kind => Err(Malformed(format!("a record of unknown kind {kind}"))),
        }
    }

    /// The title or recording by which a list of all of them is another one afterwards.
    pub(crate) fn changed_title(&self) -> Option<TitleId> {
        match self {
            Self::Title(title) => Some(title.id),
            Self::Removal(id) | Self::Renaming(id, _) => Some(*id),
            Self::Recording(start) => Some(start.id),
            _ => None,
        }
    }

    /// The encoded length in bytes.
    pub(crate) fn encoded_len(&self) -> u64 {
        if let Self::Title(title) = self {
            return title_len(title);
        }
        let mut out = Encoder::default();
        self.encode(&mut out);
        out.finish().len() as u64
    }

    /// Decodes records until the bytes end; `each` gets one after the other.
    pub(crate) fn decode_all(
        bytes: &[u8],
        mut each: impl FnMut(Self) -> Result<(), Malformed>,
    ) -> Result<(), Malformed> {
        let mut bytes = Decoder::new(bytes);
        while !bytes.is_empty() {
            each(Self::decode(&mut bytes)?)?;
        }
        Ok(())
    }
}

/// Refuses a name that a new title cannot have: one that no title can have, or that looks like
/// another one.
pub(crate) fn check_new_name(name: &str) -> Result<(), StoreError> {
    check_name(name)?;
    match name.chars().find(|c| show::is_control(*c)) {
        Some(found) => Err(controlled(name, found)),
        None => Ok(()),
    }
}

fn controlled(name: &str, found: char) -> StoreError {
    let reason = format!("it has control characters in it (U+{:04X})", u32::from(found));
    StoreError::BadName { name: name.to_owned(), reason }
}

/// Refuses a name that no title of a store can have: too long, or not one line of text.
pub fn check_name(name: &str) -> Result<(), StoreError> {
    let reason = match name {
        "" => "it is empty",
        "." | ".." => "it means a folder",
        _ if name.len() > MAX_NAME => "it is longer than 255 bytes",
        _ => match name.chars().find(|c| c.is_control()) {
            Some(found) => return Err(controlled(name, found)),
            None => return Ok(()),
        },
    };
    Err(StoreError::BadName { name: name.to_owned(), reason: reason.to_owned() })
}

/// Refuses a title with more tracks or extents than the format has room for.
pub(crate) fn check_limits(title: &TitleRecord) -> Result<(), StoreError> {
    let extents = title.extents().count();
    if title.tracks.len() > MAX_TRACKS {
        let what = format!("{} tracks; {MAX_TRACKS} are the most", title.tracks.len());
        return Err(StoreError::TooMuch { what });
    }
    if extents > MAX_TITLE_EXTENTS {
        let what = format!("{extents} extents; {MAX_TITLE_EXTENTS} are the most");
        return Err(StoreError::TooMuch { what });
    }
    Ok(())
}

/// Refuses a calibration that could not be read back: too long, or invalid.
pub(crate) fn check_calibration(calibration: &Calibration) -> Result<(), StoreError> {
    let refused = |reason: String| Err(StoreError::BadCalibration { reason });
    let bytes = calibration.encode();
    if bytes.len() > MAX_CALIBRATION {
        let (guarantees, zones) = (calibration.guarantees.len(), calibration.zones.len());
        return refused(format!("it has {guarantees} read sizes and {zones} zones"));
    }
    // A calibration that the decoder refuses must not enter the journal: the store would not open
    // again.
    Calibration::decode(&bytes).map(drop).or_else(|error| refused(error.to_string()))
}

/// Refuses a disk history that exceeds the length of a record.
pub(crate) fn check_disk_history(bytes: &[u8]) -> Result<(), StoreError> {
    if bytes.len() > MAX_DISK_HISTORY {
        let what =
            format!("{} bytes of disk history; {MAX_DISK_HISTORY} are the most", bytes.len());
        return Err(StoreError::TooMuch { what });
    }
    Ok(())
}

/// The encoded record of a new title.
pub(crate) fn encode_title_record(title: &TitleRecord, out: &mut Encoder) {
    let before = out.len();
    out.u8(TITLE);
    encode_title(title, out);
    debug_assert_eq!((out.len() - before) as u64, title_len(title));
}

/// The encoded length of the record of a new title, in bytes.
pub(crate) fn title_len(title: &TitleRecord) -> u64 {
    let extents = |extents: &[Extent]| 2 + 16 * extents.len();
    let tracks = title.tracks.iter().map(|track| 8 + extents(&track.extents));
    let fixed = 1 + 8 + 1 + 8 + 8 + 2 + 8 + 4 + 2;
    (fixed + title.name.len() + extents(&title.index) + tracks.sum::<usize>()) as u64
}

pub(crate) fn encode_title(title: &TitleRecord, out: &mut Encoder) {
    out.u64(title.id.0);
    out.u8(match title.kind {
        TitleKind::Media => MEDIA,
        TitleKind::File => FILE,
    });
    out.u64(title.created);
    out.u64(nanos(title.duration));
    out.text16(&title.name);
    out.u64(title.index_bytes);
    out.u32(title.index_checksum);
    encode_extents(&title.index, out);
    out.count16(title.tracks.len());
    for track in &title.tracks {
        out.u64(track.bytes);
        encode_extents(&track.extents, out);
    }
}

pub(crate) fn decode_title(bytes: &mut Decoder<'_>) -> Result<TitleRecord, Malformed> {
    let id = TitleId(bytes.u64()?);
    let kind = match bytes.u8()? {
        MEDIA => TitleKind::Media,
        FILE => TitleKind::File,
        kind => return Err(Malformed(format!("a title of unknown kind {kind}"))),
    };
    let created = bytes.u64()?;
    let duration = Duration::from_nanos(bytes.u64()?);
    let name = bytes.text16(MAX_NAME)?.to_owned();
    check_name(&name).map_err(|error| Malformed(error.to_string()))?;
    let (index_bytes, index_checksum) = (bytes.u64()?, bytes.u32()?);
    let index = decode_extents(bytes)?;
    let count = bytes.count16(MAX_TRACKS, "too many tracks")?;
    // Of the right capacity: collecting results would begin with four, and there are many titles.
    let mut tracks = Vec::with_capacity(count);
    for _ in 0..count {
        tracks.push(TrackRecord { bytes: bytes.u64()?, extents: decode_extents(bytes)? });
    }
    let total = tracks.iter().try_fold(0u64, |sum, track| sum.checked_add(track.bytes));
    let title = TitleRecord {
        id,
        name,
        kind,
        created,
        bytes: total.ok_or("more bytes than can be")?,
        duration,
        tracks,
        index,
        index_bytes,
        index_checksum,
    };
    check_limits(&title).map_err(|error| Malformed(error.to_string()))?;
    Ok(title)
}

fn decode_recording(bytes: &mut Decoder<'_>) -> Result<RecordingStart, Malformed> {
    let (id, created) = (TitleId(bytes.u64()?), bytes.u64()?);
    let name = bytes.text16(MAX_NAME)?.to_owned();
    check_name(&name).map_err(|error| Malformed(error.to_string()))?;
    let index = bytes.bytes32()?.to_vec();
    let tracks = TitleIndex::decode(&index).map_err(|error| Malformed(error.to_string()))?.tracks;
    if tracks.is_empty() || tracks.len() > MAX_TRACKS {
        return Err("a recording without tracks, or with too many".into());
    }
    Ok(RecordingStart { id, name, created, index })
}

fn decode_siblings(bytes: &mut Decoder<'_>) -> Result<Vec<Sibling>, Malformed> {
    let count = bytes.count16(MAX_SIBLINGS, "too many siblings")?;
    let mut siblings = Vec::with_capacity(count);
    for _ in 0..count {
        let uuid = Uuid::from_bytes(bytes.array()?);
        let (away_since, path) = (bytes.u64()?, bytes.text16(MAX_PATH)?.to_owned());
        siblings.push(Sibling { uuid, path, away_since });
    }
    Ok(siblings)
}

fn encode_extents(extents: &[Extent], out: &mut Encoder) {
    out.count16(extents.len());
    for extent in extents {
        out.u64(extent.start.0);
        out.u64(extent.chunks);
    }
}

fn decode_extents(bytes: &mut Decoder<'_>) -> Result<Vec<Extent>, Malformed> {
    let count = bytes.count16(MAX_EXTENTS, "too many extents")?;
    let mut extents = Vec::with_capacity(count);
    for _ in 0..count {
        let extent = Extent { start: ChunkIndex(bytes.u64()?), chunks: bytes.u64()? };
        // Code behind this computes `end()` without a check. No writer makes an empty extent.
        if extent.chunks == 0 || extent.start.0.checked_add(extent.chunks).is_none() {
            return Err("an extent that cannot be".into());
        }
        extents.push(extent);
    }
    Ok(extents)
}

const TITLE: u8 = 1;
const REMOVAL: u8 = 2;
const RENAMING: u8 = 3;
const CALIBRATION: u8 = 4;
const DISK_HISTORY: u8 = 5;
const NEXT_ID: u8 = 6;
const RECORDING: u8 = 7;
const RECORDING_EXTENTS: u8 = 8;
const PROGRESS: u8 = 9;
const SPILL: u8 = 10;
const SCRUB: u8 = 11;
const SIBLINGS: u8 = 12;
const MISSED: u8 = 13;
const CAUGHT_UP: u8 = 14;

/// The numbers of the regions of a recording that are not tracks.
const PARTS: u16 = 0xFFFF;
const INDEX: u16 = 0xFFFE;

/// The most bytes behind those in place: a block less one.
pub(crate) const TAIL: usize = 4095;

const MEDIA: u8 = 1;
const FILE: u8 = 2;

/// The longest name in bytes: all file systems allow it, so that a title's name is a file's name on
/// export.
pub(crate) const MAX_NAME: usize = 255;

/// The largest number of tracks: more than the renditions and languages of any programme.
pub(crate) const MAX_TRACKS: usize = 64;

/// The largest number of extents of one track. The allocator uses as few as possible (one, if any
/// hole is large enough), and this limit allows a fragmented store to be used.
pub(crate) const MAX_EXTENTS: usize = 64;

/// The largest number of extents of all tracks and the index together, so that a title's record
/// stays below [`MAX_RECORD`].
pub(crate) const MAX_TITLE_EXTENTS: usize = 512;

/// The longest encoded calibration, below [`MAX_RECORD`]: 25 read sizes and 100 zones fit.
const MAX_CALIBRATION: usize = 10 * 1024;

/// The longest disk history, well below [`MAX_RECORD`].
const MAX_DISK_HISTORY: usize = 4096;

/// The largest number of other stores of a set that a store knows: as many as fit into a record.
pub(crate) const MAX_SIBLINGS: usize = 40;

/// The longest path of a sibling in bytes; a longer one is not kept.
pub(crate) const MAX_PATH: usize = 255;

/// The longest record: 512 extents of 16 bytes, 65 lists of 2 and 64 tracks of 8 bytes, a name.
pub(crate) const MAX_RECORD: usize = 12 * 1024;

const _: () = {
    let fixed = 1 + 8 + 1 + 8 + 8 + 2 + MAX_NAME + 8 + 4 + 2;
    assert!(fixed + MAX_TITLE_EXTENTS * 16 + MAX_TRACKS * 8 + (MAX_TRACKS + 1) * 2 <= MAX_RECORD);
    assert!(3 + MAX_SIBLINGS * (16 + 8 + 2 + MAX_PATH) <= MAX_RECORD);
    assert!(MAX_CALIBRATION + 3 <= MAX_RECORD && MAX_DISK_HISTORY + 3 <= MAX_RECORD);
};
