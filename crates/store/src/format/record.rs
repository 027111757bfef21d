//! The catalogue's records, as they stand in journal entries, checkpoints and labels.
//!
//! ```text
//!   title (the inode)                          extents
//!     1  kind of record: 1                       2  how many
//!     8  id                                     16  each: first chunk (8), chunks (8)
//!     1  kind of title: 1 media, 2 file
//!     8  created, Unix seconds                 removal:      1  kind: 2    8  id
//!     8  duration, nanoseconds                 renaming:     1  kind: 3    8  id   2+n name
//!   2+n  name, UTF-8                           calibration:  1  kind: 4    fields, below
//!     8  bytes of the index                    next id:      1  kind: 5    8  id
//!     4  CRC-32C of the index
//!   2+n  extents of the index region
//!     2  tracks, each: 8 bytes of data, then its extents
//!                                              calibration with the cost of writes:
//!                                                1  kind: 6    fields, then write size (8),
//!                                                mean (8) and slowest (8), nanoseconds
//!                                              calibration with an arm: 1  kind: 7
//!                                              2+n  as `disk` writes a calibration
//!                                              what the disk was seen to do: 1  kind: 8
//!                                              2+n  as whoever serves it writes that
//! ```

use super::bytes::{Decoder, Encoder, Malformed};
use crate::{StoreError, TitleId, TitleRecord, TrackRecord};
use disk::{Calibration, ReadGuarantee, WriteCost};
use media::TitleKind;
use std::time::Duration;
use units::{BitRate, ByteCount, ChunkIndex, Extent};

/// One change of the catalogue.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Record {
    /// A new title.
    Title(TitleRecord),
    /// A title is gone.
    Removal(TitleId),
    /// A title has another name.
    Renaming(TitleId, String),
    /// The calibration is this one now.
    Calibration(Calibration),
    /// What the disk was seen to do in use, as whoever serves it writes that.
    Seen(Vec<u8>),
    /// No title below this id will be made any more.
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
                out.text(name);
            }
            Self::Calibration(calibration) if calibration.arm.is_some() => {
                out.u8(CALIBRATION_ARM);
                let bytes = calibration.encode();
                out.count(bytes.len());
                out.bytes(&bytes);
            }
            Self::Calibration(calibration) => {
                out.u8(if calibration.writing.is_some() {
                    CALIBRATION_WRITING
                } else {
                    CALIBRATION
                });
                encode_calibration(calibration, out);
            }
            Self::Seen(bytes) => {
                out.u8(SEEN);
                out.count(bytes.len());
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
            RENAMING => Ok(Self::Renaming(TitleId(bytes.u64()?), bytes.text(MAX_NAME)?.to_owned())),
            CALIBRATION => decode_calibration(bytes).map(Self::Calibration),
            CALIBRATION_WRITING => {
                let calibration = decode_calibration(bytes)?;
                let writing = Some(decode_writing(bytes)?);
                Ok(Self::Calibration(Calibration { writing, ..calibration }))
            }
            CALIBRATION_ARM => {
                let count = bytes.count(MAX_CALIBRATION, "bytes of calibration")?;
                let calibration = Calibration::decode(bytes.bytes(count)?);
                calibration.map(Self::Calibration).map_err(|error| Malformed(error.to_string()))
            }
            SEEN => {
                let count = bytes.count(MAX_SEEN, "bytes of what was seen")?;
                Ok(Self::Seen(bytes.bytes(count)?.to_vec()))
            }
            NEXT_ID => Ok(Self::NextId(TitleId(bytes.u64()?))),
            kind => Err(Malformed(format!("a record of unknown kind {kind}"))),
        }
    }

    /// Bytes that it takes.
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

/// Whether a name may be given to a title: any text that fits and can be shown on one line.
pub(crate) fn check_name(name: &str) -> Result<(), StoreError> {
    let reason = match name {
        "" => "it is empty",
        "." | ".." => "it means a folder",
        _ if name.len() > MAX_NAME => "it is longer than 255 bytes",
        _ if name.chars().any(char::is_control) => "it has control characters in it",
        _ => return Ok(()),
    };
    Err(StoreError::BadName { name: name.to_owned(), reason })
}

/// Whether the format can say so much of a title.
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

/// Whether the format can say so much of a calibration.
pub(crate) fn check_calibration(calibration: &Calibration) -> Result<(), StoreError> {
    let (guarantees, zones) = (calibration.guarantees.len(), calibration.zones.len());
    if guarantees > MAX_GUARANTEES || zones > MAX_ZONES || calibration.method.len() > MAX_METHOD {
        let what = format!("a calibration with {guarantees} read sizes and {zones} zones");
        return Err(StoreError::TooMuch { what });
    }
    Ok(())
}

/// Whether the format can keep so much of what a disk was seen to do.
pub(crate) fn check_seen(bytes: &[u8]) -> Result<(), StoreError> {
    if bytes.len() > MAX_SEEN {
        let what = format!("{} bytes of what was seen; {MAX_SEEN} are the most", bytes.len());
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
    out.text(&title.name);
    out.u64(title.index_bytes);
    out.u32(title.index_checksum);
    encode_extents(&title.index, out);
    out.count(title.tracks.len());
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
    let name = bytes.text(MAX_NAME)?.to_owned();
    check_name(&name).map_err(|error| Malformed(error.to_string()))?;
    let (index_bytes, index_checksum) = (bytes.u64()?, bytes.u32()?);
    let index = decode_extents(bytes)?;
    let tracks = (0..bytes.count(MAX_TRACKS, "tracks")?)
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
    out.count(extents.len());
    for extent in extents {
        out.u64(extent.start.0);
        out.u64(extent.chunks);
    }
}

fn decode_extents(bytes: &mut Decoder<'_>) -> Result<Vec<Extent>, Malformed> {
    (0..bytes.count(MAX_EXTENTS, "extents")?)
        .map(|_| {
            let extent = Extent { start: ChunkIndex(bytes.u64()?), chunks: bytes.u64()? };
            if extent.chunks == 0 || extent.start.0.checked_add(extent.chunks).is_none() {
                return Err("an extent that cannot be".into());
            }
            Ok(extent)
        })
        .collect()
}

fn encode_calibration(calibration: &Calibration, out: &mut Encoder) {
    out.u64(nanos(calibration.slot));
    out.u32(calibration.queue_depth);
    out.u64(calibration.r0.0);
    out.u64(nanos(calibration.t0));
    out.u64(calibration.measured_at);
    out.text(&calibration.method);
    out.count(calibration.guarantees.len());
    for guarantee in &calibration.guarantees {
        out.u64(guarantee.read_size.0);
        out.u32(guarantee.min_read);
        out.u64(guarantee.mean_read.to_bits());
        out.u64(nanos(guarantee.longest_read));
    }
    out.count(calibration.zones.len());
    for (offset, rate) in &calibration.zones {
        out.u64(offset.0);
        out.u64(rate.0);
    }
    if let Some(WriteCost { write_size, mean, slowest }) = calibration.writing {
        out.u64(write_size.0);
        out.u64(nanos(mean));
        out.u64(nanos(slowest));
    }
}

fn decode_writing(bytes: &mut Decoder<'_>) -> Result<WriteCost, Malformed> {
    Ok(WriteCost {
        write_size: ByteCount(bytes.u64()?),
        mean: Duration::from_nanos(bytes.u64()?),
        slowest: Duration::from_nanos(bytes.u64()?),
    })
}

fn decode_calibration(bytes: &mut Decoder<'_>) -> Result<Calibration, Malformed> {
    let slot = Duration::from_nanos(bytes.u64()?);
    let queue_depth = bytes.u32()?;
    let r0 = BitRate(bytes.u64()?);
    let t0 = Duration::from_nanos(bytes.u64()?);
    let measured_at = bytes.u64()?;
    let method = bytes.text(MAX_METHOD)?.to_owned();
    let guarantees = (0..bytes.count(MAX_GUARANTEES, "read sizes")?)
        .map(|_| {
            Ok(ReadGuarantee {
                read_size: ByteCount(bytes.u64()?),
                min_read: bytes.u32()?,
                mean_read: f64::from_bits(bytes.u64()?),
                longest_read: Duration::from_nanos(bytes.u64()?),
            })
        })
        .collect::<Result<_, Malformed>>()?;
    let zones = (0..bytes.count(MAX_ZONES, "zones")?)
        .map(|_| Ok((ByteCount(bytes.u64()?), BitRate(bytes.u64()?))))
        .collect::<Result<_, Malformed>>()?;
    Ok(Calibration {
        slot,
        guarantees,
        queue_depth,
        r0,
        t0,
        zones,
        arm: None,
        writing: None,
        method,
        measured_at,
    })
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

const TITLE: u8 = 1;
const REMOVAL: u8 = 2;
const RENAMING: u8 = 3;
const CALIBRATION: u8 = 4;
const NEXT_ID: u8 = 5;
const CALIBRATION_WRITING: u8 = 6;
const CALIBRATION_ARM: u8 = 7;
const SEEN: u8 = 8;

const MEDIA: u8 = 1;
const FILE: u8 = 2;

/// What every file system allows, so that a title's name is a file's name on export.
pub(crate) const MAX_NAME: usize = 255;

/// Renditions and languages of the richest programme, with room to spare.
pub(crate) const MAX_TRACKS: usize = 64;

/// Extents of one track. The allocator takes as few as it can (one, if any hole is large enough);
/// an aged store is better used badly than refused.
pub(crate) const MAX_EXTENTS: usize = 64;

/// Extents of all tracks and the index together, so that a title's record stays below
/// [`MAX_RECORD`].
pub(crate) const MAX_TITLE_EXTENTS: usize = 512;

/// Bounded by `disk`'s own bounds of a record.
const MAX_CALIBRATION: usize = 20_000;

/// A record of it stays well below [`MAX_RECORD`].
const MAX_SEEN: usize = 4096;

const MAX_GUARANTEES: usize = 64;
const MAX_ZONES: usize = 256;
const MAX_METHOD: usize = 1024;

/// No record is longer: 512 extents of 16 bytes, 64 tracks of 10, a name.
pub(crate) const MAX_RECORD: usize = 12 * 1024;
