//! A label: a copy of the title's record in front of its index region, so that a scan over the
//! chunks finds every title even when the catalogue is lost.
//!
//! ```text
//!  index region
//!     0      label, 16 KiB
//!               0   8  magic "TNLABEL\n"
//!               8   4  CRC-32C of the 16 KiB with this field zero
//!              12   4  bytes of the record
//!              16  16  uuid of the store
//!              32      the title's record, then zeros
//!  16384     the encoded index
//! ```
//!
//! The catalogue takes precedence. A label is written with the title and keeps the title's first
//! name. It is overwritten when the title's chunks are freed.

use super::record::{MAX_RECORD, decode_title, encode_title};
use crate::TitleRecord;
use media::checksum;
use units::{Decoder, Encoder};
use uuid::Uuid;

/// The length of a label; the encoded index follows it.
pub(crate) const SIZE: usize = 16 * 1024;

// The offsets of the fields, each derived from the one before it as drawn above.
const CHECKSUM: usize = MAGIC.len();
const LENGTH: usize = CHECKSUM + size_of::<u32>();
const UUID: usize = LENGTH + size_of::<u32>();
const RECORD: usize = UUID + size_of::<Uuid>();
const _: () = assert!(CHECKSUM == 8 && LENGTH == 12 && UUID == 16 && RECORD == 32);
const _: () = assert!(SIZE == 16_384 && RECORD + MAX_RECORD <= SIZE);

/// The label of a title.
pub(crate) fn encode(title: &TitleRecord, uuid: Uuid) -> Vec<u8> {
    let mut encoder = Encoder::default();
    encode_title(title, &mut encoder);
    let record = encoder.finish();
    let mut out = Encoder::default();
    out.bytes(MAGIC);
    out.at(CHECKSUM).u32(0);
    out.at(LENGTH).u32(u32::try_from(record.len()).expect("a record is bounded"));
    out.at(UUID).bytes(uuid.as_bytes());
    out.at(RECORD).bytes(&record);
    let mut bytes = out.finish();
    assert!(bytes.len() <= SIZE, "a record is shorter than a label");
    bytes.resize(SIZE, 0);
    let sum = checksum(&bytes);
    bytes[CHECKSUM..LENGTH].copy_from_slice(&sum.to_le_bytes());
    bytes
}

/// The title in a label; `None` if the bytes are no label of this store.
pub(crate) fn decode(bytes: &[u8], uuid: Uuid) -> Option<TitleRecord> {
    let mut whole = bytes.get(..SIZE)?.to_vec();
    let mut header = Decoder::new(bytes);
    if header.bytes(8).ok()? != MAGIC {
        return None;
    }
    let (sum, length) = (header.u32().ok()?, header.u32().ok()?);
    whole[CHECKSUM..LENGTH].fill(0);
    // A device formatted again still has labels of the store before; only the uuid tells them
    // apart.
    if header.array().ok()? != *uuid.as_bytes() || checksum(&whole) != sum {
        return None;
    }
    let record = header.bytes(usize::try_from(length).ok()?).ok()?;
    decode_title(&mut Decoder::new(record)).ok()
}

const MAGIC: &[u8] = b"TNLABEL\n";
