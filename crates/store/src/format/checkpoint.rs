//! A checkpoint: the whole catalogue at one position of the journal.
//!
//! ```text
//!     0   8  magic "TCHECKPT"
//!     8  16  uuid of the store
//!    24   8  sequence of the first journal entry that it does not contain
//!    32      records to its end: the next id, the calibration if there is one, all titles
//! ```
//!
//! Its length and CRC-32C are in the superblock, which is written after the checkpoint is durable:
//! a checkpoint that no superblock refers to does not exist. Two slots are written alternately, and
//! the journal keeps all entries since the older one, so that either one is enough.

use super::bytes::Malformed;
use super::superblock::CheckpointRef;
use media::checksum;
use units::{Decoder, Encoder};
use uuid::Uuid;

/// The length of the header before the records.
pub(crate) const HEADER: u64 = RECORDS as u64;

// The offsets of the fields, each derived from the one before it as drawn above.
const UUID: usize = MAGIC.len();
const SEQUENCE: usize = UUID + size_of::<Uuid>();
const RECORDS: usize = SEQUENCE + size_of::<u64>();
const _: () = assert!(UUID == 8 && SEQUENCE == 24 && RECORDS == 32);

/// The bytes of a checkpoint with encoded records.
pub(crate) fn encode(uuid: Uuid, sequence: u64, records: &[u8]) -> Vec<u8> {
    let mut out = Encoder::default();
    out.bytes(MAGIC);
    out.at(UUID).bytes(uuid.as_bytes());
    out.at(SEQUENCE).u64(sequence);
    out.at(RECORDS).bytes(records);
    out.finish()
}

/// The encoded records of the checkpoint that `place` refers to, whose checksum matches. `bytes`
/// may be longer (padded).
pub(crate) fn records<'a>(
    bytes: &'a [u8],
    place: &CheckpointRef,
    uuid: Uuid,
) -> Result<&'a [u8], Malformed> {
    let length = usize::try_from(place.bytes).map_err(|_| "a length that cannot be")?;
    let bytes = bytes.get(..length).ok_or("it ends too early")?;
    if checksum(bytes) != place.checksum {
        return Err("its checksum does not match".into());
    }
    let mut header = Decoder::new(bytes);
    if header.bytes(8)? != MAGIC {
        return Err("its magic is missing".into());
    }
    // Of another store or an older update: a write that was lost leaves a whole checkpoint like
    // this.
    if header.array()? != *uuid.as_bytes() || header.u64()? != place.next.sequence {
        return Err("it belongs elsewhere".into());
    }
    Ok(&bytes[RECORDS..])
}

const MAGIC: &[u8] = b"TCHECKPT";
