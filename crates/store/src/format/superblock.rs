//! The superblock: the data that is needed before all other. Four identical copies.
//!
//! ```text
//!     0   8  magic "TENUTO\r\n"
//!     8   4  format version
//!    12   4  CRC-32C of the 4,096 bytes with this field zero
//!    16   8  sequence: one more with each update
//!    24   4  parent: the CRC of the superblock before this one (0: none before)
//!    28   4  zero
//!    32  16  uuid of the store
//!    48   8  size of the store        56  8  size of a chunk
//!    64  16  journal: offset, bytes
//!    80  16  checkpoint slot 0        96 16  checkpoint slot 1
//!   112  16  scratch
//!   128  40  newest checkpoint        168 40  the one before
//!   208   2  bytes of label          210 64  label, UTF-8
//!   280  16  uuid given by `tenuto relabel` (0: none given), then zeros to 4,096
//!
//!   a checkpoint:
//!     0   4  slot        4  4  CRC-32C of its bytes      8  8  its bytes
//!    16   8  journal: place of the next entry, counted in bytes since format
//!    24   8  journal: sequence of the next entry
//!    32   4  journal: chain before the next entry       36  4  zero
//! ```
//!
//! An update writes copies 0 and 2, flushes, writes 1 and 3, and flushes: at any moment at least
//! two copies of either the old or the new one are whole, and one of them is at the front, which
//! does not depend on the size. The newest with two valid copies wins, so that a single misdirected
//! or stale sector is never chosen. The version precedes the checksum, so that a program of any
//! version can report it.
//!
//! Journal entries, checkpoints and labels carry the uuid of the format for ever. A uuid given
//! later replaces it only where stores are told apart, so that giving one is one update of the
//! superblock.

use super::bytes::Malformed;
use super::journal::JournalPosition;
use super::layout::StoreLayout;
use super::{BLOCK, VERSION};
use media::checksum;
use units::{Decoder, Encoder};
use uuid::Uuid;

/// The contents of a superblock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Superblock {
    pub(crate) sequence: u64,
    pub(crate) parent: u32,
    /// The uuid of the format, which every other structure of the store carries.
    pub(crate) uuid: Uuid,
    pub(crate) layout: StoreLayout,
    /// The two checkpoints, newest first, always in different slots.
    pub(crate) checkpoints: [CheckpointRef; 2],
    pub(crate) label: String,
    /// The uuid given by [`crate::Store::relabel`] to tell this store from a copy.
    pub(crate) given: Option<Uuid>,
}

/// A reference to a checkpoint: its slot, checksum and length, and its position in the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CheckpointRef {
    pub(crate) slot: usize,
    pub(crate) checksum: u32,
    pub(crate) bytes: u64,
    /// Position of the first journal entry that the checkpoint does not contain.
    pub(crate) next: JournalPosition,
}

/// The content of a block where a superblock copy should be.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum SuperblockCopy {
    /// A superblock.
    Valid(Box<Superblock>),
    /// A superblock of another version.
    OtherVersion(u32),
    /// A block with a superblock's magic that does not decode.
    Broken(Malformed),
    /// No superblock.
    Nothing,
}

impl Superblock {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Encoder::default();
        out.bytes(MAGIC);
        out.at(FORMAT_VERSION).u32(VERSION);
        out.at(CHECKSUM).u32(0);
        out.at(SEQUENCE).u64(self.sequence);
        out.at(PARENT).u32(self.parent);
        out.u32(0);
        out.at(UUID).bytes(self.uuid.as_bytes());
        self.layout.encode(out.at(LAYOUT));
        for (checkpoint, offset) in self.checkpoints.iter().zip(CHECKPOINTS) {
            checkpoint.encode(out.at(offset));
        }
        out.at(LABEL).text16(&self.label);
        let mut bytes = out.finish();
        bytes.resize(SIZE, 0);
        let given = self.given.unwrap_or_else(Uuid::nil);
        bytes[GIVEN..GIVEN + size_of::<Uuid>()].copy_from_slice(given.as_bytes());
        let sum = checksum(&bytes);
        bytes[CHECKSUM..SEQUENCE].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    /// The uuid that tells this store from all others.
    pub(crate) fn identity(&self) -> Uuid {
        self.given.unwrap_or(self.uuid)
    }

    /// The checksum of its encoding, which identifies it in the hash chain.
    pub(crate) fn checksum(&self) -> u32 {
        let bytes = self.encode();
        u32::from_le_bytes(bytes[CHECKSUM..SEQUENCE].try_into().expect("four bytes"))
    }

    /// Decodes the block of one copy.
    pub(crate) fn decode(block: &[u8]) -> SuperblockCopy {
        if block.len() != SIZE || !block.starts_with(MAGIC) {
            return SuperblockCopy::Nothing;
        }
        let version =
            u32::from_le_bytes(block[FORMAT_VERSION..CHECKSUM].try_into().expect("four bytes"));
        // Before the checksum: another version may compute it differently, and its name helps more.
        if version != VERSION {
            return SuperblockCopy::OtherVersion(version);
        }
        Self::decode_body(block)
            .map_or_else(SuperblockCopy::Broken, |it| SuperblockCopy::Valid(Box::new(it)))
    }

    fn decode_body(block: &[u8]) -> Result<Self, Malformed> {
        let mut zeroed = block.to_vec();
        zeroed[CHECKSUM..SEQUENCE].fill(0);
        if checksum(&zeroed).to_le_bytes() != block[CHECKSUM..SEQUENCE] {
            return Err("its checksum does not match".into());
        }
        let mut bytes = Decoder::new(&block[SEQUENCE..]);
        let sequence = bytes.u64()?;
        let parent = bytes.u32()?;
        bytes.u32()?;
        let uuid = Uuid::from_bytes(bytes.array()?);
        let layout = StoreLayout::decode(&mut bytes)?;
        // The checksum does not exclude a value made by a foreign program; arithmetic relies on the
        // bound.
        if sequence > MAX_PLACE {
            return Err("a sequence that cannot be".into());
        }
        let newest = CheckpointRef::decode(&mut bytes, &layout)?;
        let before = CheckpointRef::decode(&mut bytes, &layout)?;
        // The next checkpoint would overwrite the only one there is.
        if newest.slot == before.slot {
            return Err("both checkpoints in one slot".into());
        }
        let label = bytes.text16(MAX_LABEL)?.to_owned();
        let given = Uuid::from_bytes(Decoder::new(&block[GIVEN..]).array()?);
        let given = (!given.is_nil()).then_some(given);
        Ok(Self { sequence, parent, uuid, layout, checkpoints: [newest, before], label, given })
    }
}

impl CheckpointRef {
    /// The encoded length: slot, checksum, length, then place, sequence, chain and a zero.
    const ENCODED: usize = 4 + 4 + 8 + 8 + 8 + 4 + 4;

    fn encode(&self, out: &mut Encoder) {
        out.u32(u32::from(self.slot != 0));
        out.u32(self.checksum);
        out.u64(self.bytes);
        out.u64(self.next.place);
        out.u64(self.next.sequence);
        out.u32(self.next.chain);
        out.u32(0);
    }

    fn decode(bytes: &mut Decoder<'_>, layout: &StoreLayout) -> Result<Self, Malformed> {
        let slot = usize::from(bytes.u32()? != 0);
        let (checksum, length) = (bytes.u32()?, bytes.u64()?);
        let next =
            JournalPosition { place: bytes.u64()?, sequence: bytes.u64()?, chain: bytes.u32()? };
        bytes.u32()?;
        let room = &layout.checkpoints[slot];
        if length > room.end - room.start {
            return Err("a checkpoint longer than its slot".into());
        }
        let sane = next.place.is_multiple_of(BLOCK) && next.place.max(next.sequence) < MAX_PLACE;
        if !sane {
            return Err("a place in the journal that cannot be".into());
        }
        Ok(Self { slot, checksum, bytes: length, next })
    }
}

/// The longest prefix of `label` that fits in a superblock, cut between characters.
pub(crate) fn fitting_label(label: &str) -> &str {
    let end = (0..=label.len().min(MAX_LABEL)).rev().find(|at| label.is_char_boundary(*at));
    &label[..end.unwrap_or(0)]
}

/// Identifies a store; a copy in text mode would change the line end.
const MAGIC: &[u8] = b"TENUTO\r\n";

/// The length of a superblock.
#[expect(clippy::cast_possible_truncation, reason = "4,096")]
pub(crate) const SIZE: usize = BLOCK as usize;

// The offsets of the fields, each derived from the one before it as drawn above.
const FORMAT_VERSION: usize = MAGIC.len();
const CHECKSUM: usize = FORMAT_VERSION + size_of::<u32>();
const SEQUENCE: usize = CHECKSUM + size_of::<u32>();
const PARENT: usize = SEQUENCE + size_of::<u64>();
const UUID: usize = PARENT + 2 * size_of::<u32>();
const LAYOUT: usize = UUID + size_of::<Uuid>();
const CHECKPOINTS: [usize; 2] =
    [LAYOUT + StoreLayout::ENCODED, LAYOUT + StoreLayout::ENCODED + CheckpointRef::ENCODED];
const LABEL: usize = CHECKPOINTS[1] + CheckpointRef::ENCODED;
const _: () = assert!(FORMAT_VERSION == 8 && CHECKSUM == 12 && SEQUENCE == 16 && PARENT == 24);
const _: () = assert!(UUID == 32 && LAYOUT == 48 && StoreLayout::ENCODED == 80);
const _: () = assert!(CHECKPOINTS[0] == 128 && CHECKPOINTS[1] == 168 && LABEL == 208);
/// Aligned, unlike the end of the label.
const GIVEN: usize = (LABEL + 2 + MAX_LABEL).next_multiple_of(8);
const _: () = assert!(CheckpointRef::ENCODED == 40 && GIVEN == 280 && GIVEN + 16 <= SIZE);

/// A bound on places that leaves room for arithmetic: no store writes as much.
const MAX_PLACE: u64 = 1 << 62;

/// The longest label in bytes: file systems keep 12 to 255.
const MAX_LABEL: usize = 64;
