//! Reads a title's index from its index region, for an open store and for a rebuild.

use crate::byte_runs::{pieces, runs};
use crate::format::{BLOCK, label};
use crate::{StoreError, TitleRecord};
use device::BlockDevice;
use media::{CHECKSUM_SPAN, TitleIndex, checksum};

/// Reads and verifies the index that `record` refers to; chunks have `chunk` bytes.
pub(crate) fn read_index(
    device: &dyn BlockDevice,
    chunk: u64,
    record: &TitleRecord,
) -> Result<TitleIndex, StoreError> {
    let damaged = |what: &str| StoreError::Damaged {
        what: format!("the index of title '{}' {what}", record.name),
    };
    let length = usize::try_from(record.index_bytes).map_err(|_| damaged("is too long"))?;
    let mut bytes = vec![0; length.next_multiple_of(BLOCK_SIZE)];
    for (place, part) in pieces(&runs(&record.index, chunk), label::SIZE as u64, bytes.len()) {
        device.read_at(place, &mut bytes[part])?;
    }
    bytes.truncate(length);
    if checksum(&bytes) != record.index_checksum {
        return Err(damaged("does not match its checksum"));
    }
    let index = TitleIndex::decode(&bytes).map_err(|error| damaged(&error.to_string()))?;
    // A valid index may still belong to another title, if the record or the region is wrong.
    let fits = index.kind == record.kind
        && index.tracks.len() == record.tracks.len()
        && index.tracks.iter().zip(&record.tracks).all(|(index, track)| {
            index.data_len == track.bytes
                && index.checksums.len() as u64 == track.bytes.div_ceil(CHECKSUM_SPAN)
        });
    if fits { Ok(index) } else { Err(damaged("is another title's")) }
}

#[expect(clippy::cast_possible_truncation, reason = "4,096")]
const BLOCK_SIZE: usize = BLOCK as usize;
