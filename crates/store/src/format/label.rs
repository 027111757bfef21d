//! A label: the title's own record, in front of its index region, so that a scan over the chunks
//! finds every title even when the catalogue is lost.
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
//! The catalogue is the truth: a label is written with the title and its name is not followed when
//! the title is renamed. When a title's chunks are freed its label is overwritten.

use super::bytes::{Decoder, Encoder};
use super::record::{decode_title, encode_title};
use crate::TitleRecord;
use media::checksum;
use uuid::Uuid;

/// Bytes of a label; the encoded index starts behind it.
pub(crate) const SIZE: usize = 16 * 1024;

/// The label of a title.
pub(crate) fn encode(title: &TitleRecord, uuid: Uuid) -> Vec<u8> {
    let mut record = Encoder::default();
    encode_title(title, &mut record);
    let record = record.finish();
    let mut out = Encoder::default();
    out.bytes(MAGIC);
    out.u32(0);
    out.u32(u32::try_from(record.len()).expect("a record is bounded"));
    out.bytes(uuid.as_bytes());
    out.bytes(&record);
    let mut bytes = out.finish();
    assert!(bytes.len() <= SIZE, "a record is shorter than a label");
    bytes.resize(SIZE, 0);
    let sum = checksum(&bytes);
    bytes[8..12].copy_from_slice(&sum.to_le_bytes());
    bytes
}

/// The title that a label names; `None` if it is no label of this store.
pub(crate) fn decode(bytes: &[u8], uuid: Uuid) -> Option<TitleRecord> {
    let mut whole = bytes.get(..SIZE)?.to_vec();
    let mut header = Decoder::new(bytes);
    if header.bytes(8).ok()? != MAGIC {
        return None;
    }
    let (sum, length) = (header.u32().ok()?, header.u32().ok()?);
    whole[8..12].fill(0);
    if header.array().ok()? != *uuid.as_bytes() || checksum(&whole) != sum {
        return None;
    }
    let record = header.bytes(usize::try_from(length).ok()?).ok()?;
    decode_title(&mut Decoder::new(record)).ok()
}

const MAGIC: &[u8] = b"TNLABEL\n";
