//! The journal: a ring of entries, each an acknowledged change of the catalogue.
//!
//! ```text
//!  ring   │ entry 41, copy 0 │ entry 41, copy 1 │ entry 42, copy 0 │ entry 42, copy 1 │ ...
//!         └──────────── one aligned write, then one flush ─────────┘
//!
//!  a copy, padded with zeros to a multiple of 4,096:
//!     0   4  magic "TJRN"
//!     4   4  CRC-32C of the whole copy, padding too, with this field zero
//!     8   8  sequence: one more with each entry
//!    16  16  uuid of the store
//!    32   8  place of this copy, in bytes since format (its offset modulo the ring's length)
//!    40   4  chain before: CRC-32C over (chain before, sequence, records) of the entry before
//!    44   2  copy, 0 or 1
//!    46   2  zero
//!    48   4  bytes of records
//!    52      records
//! ```
//!
//! Each entry is written twice in one write, so that a torn last entry, which was never
//! acknowledged, differs from a damaged one, which was. One good copy is enough for the entry to
//! count. An entry does not cross the ring's end: one that does not fit begins at the ring's start.
//! Uuid, place, sequence and chain together ensure that no older, misdirected or foreign entry is
//! replayed.

use super::BLOCK;
use super::record::MAX_RECORD;
use media::checksum;
use units::{Decoder, Encoder, align_up};
use uuid::Uuid;

/// The position of the next entry, with the sequence and chain that it must carry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct JournalPosition {
    /// The place of the next entry: bytes since format, including those skipped at the ring's end.
    pub(crate) place: u64,
    /// Sequence number of the next entry.
    pub(crate) sequence: u64,
    /// Chain checksum before the next entry.
    pub(crate) chain: u32,
}

impl JournalPosition {
    /// The start of an entry of `bytes`: this position, or the ring's start if the entry would
    /// cross the end.
    pub(crate) fn start_for(&self, bytes: u64, ring: u64) -> u64 {
        let left = ring - self.place % ring;
        // The skipped bytes count in `place`, so that `place % ring` is the offset and older laps
        // are told apart.
        if bytes <= left { self.place } else { self.place + left }
    }

    /// The position after an entry that starts at `start`.
    fn after(&self, start: u64, bytes: u64, records: &[u8]) -> Self {
        Self {
            place: start + bytes,
            sequence: self.sequence + 1,
            chain: link(self.chain, self.sequence, records),
        }
    }
}

/// An encoded entry that is ready to be written.
#[derive(Debug)]
pub(crate) struct EncodedEntry {
    /// Both copies of the entry.
    pub(crate) bytes: Vec<u8>,
    /// The place of the first copy, in bytes since format.
    pub(crate) start: u64,
    /// The position after the entry.
    pub(crate) after: JournalPosition,
}

/// The bytes in the ring of an entry with `records` bytes of records.
pub(crate) fn footprint(records: usize) -> u64 {
    2 * align_up((HEADER + records) as u64, BLOCK)
}

/// The entry at `position` with these records.
pub(crate) fn encode(
    position: &JournalPosition,
    ring: u64,
    uuid: Uuid,
    records: &[u8],
) -> EncodedEntry {
    let bytes = footprint(records.len());
    let start = position.start_for(bytes, ring);
    let mut both = Vec::new();
    for copy in 0..2u16 {
        let place = start + u64::from(copy) * bytes / 2;
        both.extend(encode_copy(position, place, copy, uuid, records));
    }
    EncodedEntry { bytes: both, start, after: position.after(start, bytes, records) }
}

fn encode_copy(
    position: &JournalPosition,
    place: u64,
    copy: u16,
    uuid: Uuid,
    records: &[u8],
) -> Vec<u8> {
    let mut out = Encoder::default();
    out.bytes(MAGIC);
    out.at(CHECKSUM).u32(0);
    out.at(SEQUENCE).u64(position.sequence);
    out.at(UUID).bytes(uuid.as_bytes());
    out.at(PLACE).u64(place);
    out.at(CHAIN).u32(position.chain);
    out.at(COPY).u16(copy);
    out.u16(0);
    out.at(LENGTH).u32(u32::try_from(records.len()).expect("records are bounded"));
    out.at(HEADER).bytes(records);
    let mut bytes = out.finish();
    bytes.resize(bytes.len().next_multiple_of(4096), 0);
    let sum = checksum(&bytes);
    bytes[CHECKSUM..SEQUENCE].copy_from_slice(&sum.to_le_bytes());
    bytes
}

/// One valid copy of an entry in the ring.
#[derive(Debug)]
struct EntryCopy<'a> {
    sequence: u64,
    place: u64,
    chain: u32,
    copy: u16,
    records: &'a [u8],
    /// The length of this copy.
    bytes: u64,
}

/// The copy that starts at `at` of the ring, if it is valid and belongs to this store.
fn read_copy(ring: &[u8], at: usize, uuid: Uuid) -> Option<EntryCopy<'_>> {
    let rest = &ring[at..];
    let mut header = Decoder::new(rest);
    if header.bytes(4).ok()? != MAGIC {
        return None;
    }
    let sum = header.u32().ok()?;
    let sequence = header.u64().ok()?;
    let found_uuid = Uuid::from_bytes(header.array().ok()?);
    let (place, chain) = (header.u64().ok()?, header.u32().ok()?);
    let (copy, _) = (header.u16().ok()?, header.u16().ok()?);
    let length = usize::try_from(header.u32().ok()?).ok()?;
    // An intact block of another store or another place is no entry here. The bound on the length
    // keeps a damaged one from reaching far.
    if found_uuid != uuid || length > MAX_ENTRY || place % ring.len() as u64 != at as u64 {
        return None;
    }
    let bytes = (HEADER + length).next_multiple_of(4096);
    let mut whole = rest.get(..bytes)?.to_vec();
    whole[CHECKSUM..SEQUENCE].fill(0);
    if checksum(&whole) != sum {
        return None;
    }
    let records = &rest[HEADER..HEADER + length];
    Some(EntryCopy { sequence, place, chain, copy, records, bytes: bytes as u64 })
}

/// An entry that was read back.
#[derive(Debug)]
pub(crate) struct ReplayedEntry<'a> {
    /// The encoded records of the entry.
    pub(crate) records: &'a [u8],
    /// Whether both copies are good.
    pub(crate) whole: bool,
    /// The position after the entry.
    pub(crate) after: JournalPosition,
}

/// The entry at `position` of `ring`; if there is none, the entry at the ring's start.
pub(crate) fn read<'a>(
    ring: &'a [u8],
    position: &JournalPosition,
    uuid: Uuid,
) -> Option<ReplayedEntry<'a>> {
    let length = ring.len() as u64;
    read_at(ring, position.place, position, uuid).or_else(|| {
        // The writer skips the ring's end if an entry does not fit, and nothing on the disk marks
        // the skip.
        let next_lap = position.place + length - position.place % length;
        (!position.place.is_multiple_of(length))
            .then(|| read_at(ring, next_lap, position, uuid))
            .flatten()
    })
}

fn read_at<'a>(
    ring: &'a [u8],
    start: u64,
    position: &JournalPosition,
    uuid: Uuid,
) -> Option<ReplayedEntry<'a>> {
    let at = usize::try_from(start % ring.len() as u64).expect("the ring is in memory");
    // The place of the second copy depends on the entry's length, which only a good copy tells.
    let places =
        (0..=(MAX_ENTRY + HEADER).next_multiple_of(4096)).step_by(4096).map(|ahead| at + ahead);
    let mut good = places.take_while(|at| *at < ring.len()).filter_map(|at| {
        let found = read_copy(ring, at, uuid)?;
        let begins = found.place - u64::from(found.copy.min(1)) * found.bytes;
        // Sequence and chain exclude an entry of a history that was given up, which can lie here
        // intact.
        let ours =
            found.sequence == position.sequence && found.chain == position.chain && begins == start;
        ours.then_some(found)
    });
    let found = good.next()?;
    let whole = found.copy == 0 && good.next().is_some();
    let after = position.after(start, 2 * found.bytes, found.records);
    Some(ReplayedEntry { records: found.records, whole, after })
}

/// The newest entry at or after `sequence` anywhere in the ring. If it exists although the entry at
/// the head is missing, entries are lost.
pub(crate) fn newest_beyond(ring: &[u8], sequence: u64, uuid: Uuid) -> Option<u64> {
    (0..ring.len())
        .step_by(4096)
        .filter_map(|at| read_copy(ring, at, uuid))
        .map(|found| found.sequence)
        // The older entries that one lap leaves behind are normal.
        .filter(|found| *found >= sequence)
        .max()
}

fn link(chain: u32, sequence: u64, records: &[u8]) -> u32 {
    let mut bytes = Vec::with_capacity(12 + records.len());
    bytes.extend(chain.to_le_bytes());
    bytes.extend(sequence.to_le_bytes());
    bytes.extend(records);
    checksum(&bytes)
}

const MAGIC: &[u8] = b"TJRN";

// The offsets of a copy's fields, each derived from the one before it as drawn above.
const CHECKSUM: usize = MAGIC.len();
const SEQUENCE: usize = CHECKSUM + size_of::<u32>();
const UUID: usize = SEQUENCE + size_of::<u64>();
const PLACE: usize = UUID + size_of::<Uuid>();
const CHAIN: usize = PLACE + size_of::<u64>();
const COPY: usize = CHAIN + size_of::<u32>();
const LENGTH: usize = COPY + 2 * size_of::<u16>();
/// The length of the header before the records.
const HEADER: usize = LENGTH + size_of::<u32>();
const _: () = assert!(CHECKSUM == 4 && SEQUENCE == 8 && UUID == 16 && PLACE == 32);
const _: () = assert!(CHAIN == 40 && COPY == 44 && LENGTH == 48 && HEADER == 52);

/// The most bytes of records in one entry: two of the longest kind, or the progress of some
/// recordings.
pub(crate) const MAX_ENTRY: usize = 2 * MAX_RECORD;
