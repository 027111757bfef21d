//! The superblock: what must be known before anything else. Four copies, all alike.
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
//!   208   2  bytes of label          210 64  label, UTF-8, then zeros to 4,096
//!
//!   a checkpoint:
//!     0   4  slot        4  4  CRC-32C of its bytes      8  8  its bytes
//!    16   8  journal: place of the next entry, counted in bytes since format
//!    24   8  journal: sequence of the next entry
//!    32   4  journal: chain before the next entry       36  4  zero
//! ```
//!
//! An update writes copies 0 and 1, flushes, writes 2 and 3, flushes: at any moment at least two
//! copies of either the old or the new one are whole. The newest with two valid copies wins, so
//! one misdirected or stale sector cannot pass for the truth. The version stands before the
//! checksum so that every version can tell any other.

use super::bytes::{Decoder, Encoder, Malformed};
use super::journal::Position;
use super::layout::Layout;
use super::{BLOCK, VERSION};
use media::checksum;
use uuid::Uuid;

/// A superblock's contents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Superblock {
    pub(crate) sequence: u64,
    pub(crate) parent: u32,
    pub(crate) uuid: Uuid,
    pub(crate) layout: Layout,
    /// Newest first. Always in different slots.
    pub(crate) checkpoints: [CheckpointRef; 2],
    pub(crate) label: String,
}

/// Where a checkpoint lies and where in the journal it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CheckpointRef {
    pub(crate) slot: usize,
    pub(crate) checksum: u32,
    pub(crate) bytes: u64,
    /// Of the first journal entry that it does not contain.
    pub(crate) next: Position,
}

/// What a block that should be a superblock is.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Copy {
    /// A superblock.
    Valid(Box<Superblock>),
    /// A superblock of another version.
    OtherVersion(u32),
    /// One that was, or pretends to be.
    Broken(Malformed),
    /// No superblock.
    Nothing,
}

impl Superblock {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Encoder::default();
        out.bytes(MAGIC);
        out.u32(VERSION);
        out.u32(0);
        out.u64(self.sequence);
        out.u32(self.parent);
        out.u32(0);
        out.bytes(self.uuid.as_bytes());
        self.layout.encode(&mut out);
        for checkpoint in &self.checkpoints {
            checkpoint.encode(&mut out);
        }
        out.text(&self.label);
        let mut bytes = out.finish();
        bytes.resize(SIZE, 0);
        let sum = checksum(&bytes);
        bytes[CHECKSUM_AT..CHECKSUM_AT + 4].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    /// The checksum that its encoding carries: its name in the hash chain.
    pub(crate) fn checksum(&self) -> u32 {
        let bytes = self.encode();
        u32::from_le_bytes(bytes[CHECKSUM_AT..CHECKSUM_AT + 4].try_into().expect("four bytes"))
    }

    /// What one copy's block holds.
    pub(crate) fn decode(block: &[u8]) -> Copy {
        if block.len() != SIZE || !block.starts_with(MAGIC) {
            return Copy::Nothing;
        }
        let version = u32::from_le_bytes(block[8..12].try_into().expect("four bytes"));
        if version != VERSION {
            return Copy::OtherVersion(version);
        }
        Self::decode_body(block).map_or_else(Copy::Broken, |it| Copy::Valid(Box::new(it)))
    }

    fn decode_body(block: &[u8]) -> Result<Self, Malformed> {
        let mut zeroed = block.to_vec();
        zeroed[CHECKSUM_AT..CHECKSUM_AT + 4].fill(0);
        if checksum(&zeroed).to_le_bytes() != block[CHECKSUM_AT..CHECKSUM_AT + 4] {
            return Err("its checksum does not match".into());
        }
        let mut bytes = Decoder::new(&block[CHECKSUM_AT + 4..]);
        let sequence = bytes.u64()?;
        let parent = bytes.u32()?;
        bytes.u32()?;
        let uuid = Uuid::from_bytes(bytes.array()?);
        let layout = Layout::decode(&mut bytes)?;
        if sequence > MAX_PLACE {
            return Err("a sequence that cannot be".into());
        }
        let newest = CheckpointRef::decode(&mut bytes, &layout)?;
        let before = CheckpointRef::decode(&mut bytes, &layout)?;
        if newest.slot == before.slot {
            return Err("both checkpoints in one slot".into());
        }
        let label = bytes.text(MAX_LABEL)?.to_owned();
        Ok(Self { sequence, parent, uuid, layout, checkpoints: [newest, before], label })
    }
}

impl CheckpointRef {
    fn encode(&self, out: &mut Encoder) {
        out.u32(u32::from(self.slot != 0));
        out.u32(self.checksum);
        out.u64(self.bytes);
        out.u64(self.next.place);
        out.u64(self.next.sequence);
        out.u32(self.next.chain);
        out.u32(0);
    }

    fn decode(bytes: &mut Decoder<'_>, layout: &Layout) -> Result<Self, Malformed> {
        let slot = usize::from(bytes.u32()? != 0);
        let (checksum, length) = (bytes.u32()?, bytes.u64()?);
        let next = Position { place: bytes.u64()?, sequence: bytes.u64()?, chain: bytes.u32()? };
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

/// As much of `label` as a superblock keeps, cut between characters.
pub(crate) fn fitting_label(label: &str) -> &str {
    let end = (0..=label.len().min(MAX_LABEL)).rev().find(|at| label.is_char_boundary(*at));
    &label[..end.unwrap_or(0)]
}

/// Tells a store from anything else, and a binary copy from one mangled as text.
const MAGIC: &[u8] = b"TENUTO\r\n";

/// Bytes of a superblock.
#[expect(clippy::cast_possible_truncation, reason = "4,096")]
pub(crate) const SIZE: usize = BLOCK as usize;

const CHECKSUM_AT: usize = 12;

/// No store lives to write so much: leaves room for arithmetic.
const MAX_PLACE: u64 = 1 << 62;

/// What file systems keep of a label is 12 to 255 bytes; a person's name for a disk fits in 64.
const MAX_LABEL: usize = 64;
