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
//! ```

use super::bytes::Malformed;
use crate::{StoreError, TitleId, TitleRecord, TrackRecord};
use disk::Calibration;
use media::TitleKind;
use std::time::Duration;
use units::{ChunkIndex, Decoder, Encoder, Extent, Hinted, nanos, show};

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
}

impl Record {
    pub(crate) fn encode(&self, out: &mut Encoder) {
        match self {
            Self::Title(title) => {
                out.u8(TITLE);
                encode_title(title, out);
            }
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
            kind => Err(Malformed(format!("a record of unknown kind {kind}"))),
        }
    }

    /// The encoded length in bytes.
    pub(crate) fn encoded_len(&self) -> u64 {
        let mut out = Encoder::default();
        self.encode(&mut out);
        out.finish().len() as u64
    }

    /// Decodes records until the bytes end.
    pub(crate) fn decode_all(bytes: &[u8]) -> Result<Vec<Self>, Malformed> {
        let mut bytes = Decoder::new(bytes);
        let mut records = Vec::new();
        while !bytes.is_empty() {
            records.push(Self::decode(&mut bytes)?);
        }
        Ok(records)
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
pub(crate) fn check_name(name: &str) -> Result<(), StoreError> {
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
    let tracks = (0..bytes.count16(MAX_TRACKS, "too many tracks")?)
        .map(|_| Ok(TrackRecord { bytes: bytes.u64()?, extents: decode_extents(bytes)? }))
        .collect::<Result<Vec<_>, Malformed>>()?;
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

fn encode_extents(extents: &[Extent], out: &mut Encoder) {
    out.count16(extents.len());
    for extent in extents {
        out.u64(extent.start.0);
        out.u64(extent.chunks);
    }
}

fn decode_extents(bytes: &mut Decoder<'_>) -> Result<Vec<Extent>, Malformed> {
    (0..bytes.count16(MAX_EXTENTS, "too many extents")?)
        .map(|_| {
            let extent = Extent { start: ChunkIndex(bytes.u64()?), chunks: bytes.u64()? };
            // Code behind this computes `end()` without a check. No writer makes an empty extent.
            if extent.chunks == 0 || extent.start.0.checked_add(extent.chunks).is_none() {
                return Err("an extent that cannot be".into());
            }
            Ok(extent)
        })
        .collect()
}

const TITLE: u8 = 1;
const REMOVAL: u8 = 2;
const RENAMING: u8 = 3;
const CALIBRATION: u8 = 4;
const DISK_HISTORY: u8 = 5;
const NEXT_ID: u8 = 6;

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

/// The longest record: 512 extents of 16 bytes, 65 lists of 2 and 64 tracks of 8 bytes, a name.
pub(crate) const MAX_RECORD: usize = 12 * 1024;

const _: () = {
    let fixed = 1 + 8 + 1 + 8 + 8 + 2 + MAX_NAME + 8 + 4 + 2;
    assert!(fixed + MAX_TITLE_EXTENTS * 16 + MAX_TRACKS * 8 + (MAX_TRACKS + 1) * 2 <= MAX_RECORD);
    assert!(MAX_CALIBRATION + 3 <= MAX_RECORD && MAX_DISK_HISTORY + 3 <= MAX_RECORD);
};
