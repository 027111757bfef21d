//! Whole segments of transport streams in AES-128 (RFC 8216, 4.3.2.4 and 5.2): CBC through all
//! bytes of a segment, the number of the segment as the vector, and padding by PKCS #7.
//!
//! ```text
//!   segment   tables | packets of block 0 | packets of block 1 | ...           as in the clear
//!   sent      ------------------ in whole blocks of AES ----------------- | padding
//! ```
//! Each block of AES depends on all before it, so that a range is made from the begin of its
//! segment on. Packets are made as in the clear, and encrypted in the memory of the transfer.

use super::{BLOCK, TrackCipher};
use crate::packaging::{Body, PacketWriter, Slice};
use aes::Aes128;
use aes::cipher::{Block, BlockModeEncrypt, InnerIvInit};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// A segment that is encrypted as a whole.
pub struct ChainedSegment {
    body: Body,
    cipher: Arc<TrackCipher>,
    /// The number of the segment in its playlist.
    number: u32,
}

impl ChainedSegment {
    /// The body of a segment that is encrypted as a whole. `clear` has tables and packets.
    pub(in crate::packaging) fn body(clear: Body, cipher: &Arc<TrackCipher>, number: u32) -> Body {
        let segment = Self { body: clear, cipher: Arc::clone(cipher), number };
        let range = 0..segment.len();
        [Slice::Chained { segment: Arc::new(segment), range }].into_iter().collect()
    }

    /// The number of bytes of which `clear` bytes become.
    pub(in crate::packaging) fn padded(clear: u64) -> u64 {
        (clear / u64::from(BLOCK) + 1) * u64::from(BLOCK)
    }

    /// The number of bytes, padding included.
    pub fn len(&self) -> u64 {
        Self::padded(self.body.len())
    }

    /// Whether it has no bytes: never, there is padding.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// The stored bytes that a range is made of, in the order in which a writer takes them, as
    /// [`super::super::PacketBlock::parts`].
    pub fn parts(&self, range: &Range<u64>) -> Vec<(u16, Range<u64>)> {
        let mut parts = Vec::new();
        let mut at = 0;
        for slice in self.body.slices() {
            if at >= range.end {
                break;
            }
            at += slice.len();
            if let Slice::Packets { block, range } = slice {
                parts.extend(block.parts(range));
            }
        }
        parts
    }
}

impl PartialEq for ChainedSegment {
    fn eq(&self, other: &Self) -> bool {
        let of = |it: &Self| (it.cipher.key_id, it.number);
        self.body == other.body && of(self) == of(other)
    }
}

impl Eq for ChainedSegment {}

impl fmt::Debug for ChainedSegment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "segment {} in {:?}", self.number, self.cipher)
    }
}

/// Makes a range of a segment that is encrypted as a whole.
pub struct ChainWriter {
    segment: Arc<ChainedSegment>,
    range: Range<u64>,
    /// The place in the segment behind the last byte made.
    at: u64,
    chain: cbc::Encryptor<Aes128>,
    /// The slice of the segment that is made, and the writer of its packets.
    slice: usize,
    packets: Option<PacketWriter>,
    /// Stored bytes of the slice to come.
    coming: u64,
    /// Bytes in the clear that have been made, from `used` on not yet encrypted.
    clear: Vec<u8>,
    used: usize,
    is_padded: bool,
}

impl ChainWriter {
    /// A writer of a range of a segment. It takes the bytes of [`ChainedSegment::parts`], all of
    /// them, though it may be done before.
    pub fn new(segment: Arc<ChainedSegment>, range: Range<u64>) -> Self {
        let mut vector = [0; BLOCK as usize];
        vector[12..].copy_from_slice(&segment.number.to_be_bytes());
        let chain = cbc::Encryptor::inner_iv_init(segment.cipher.cipher.clone(), &vector.into());
        Self {
            range: range.start..range.end.min(segment.len()),
            at: 0,
            chain,
            slice: 0,
            packets: None,
            coming: 0,
            clear: Vec::new(),
            used: 0,
            is_padded: false,
            segment,
        }
    }

    /// Whether all bytes of the range have been made.
    pub fn is_done(&self) -> bool {
        self.at >= self.range.end
    }

    /// Makes encrypted bytes of `stored`, from which it removes what it has used, in whole blocks
    /// of AES at the beginning of `room`. Returns the part of `room` that has bytes of the range;
    /// empty: it needs further stored bytes, or is done.
    pub fn write(&mut self, stored: &mut &[u8], room: &mut [u8]) -> Range<usize> {
        let mut made = 0;
        while !self.is_done() && room.len() - made >= BLOCK as usize {
            let clear = &self.clear[self.used..];
            let count = clear.len().min(room.len() - made) / BLOCK as usize * BLOCK as usize;
            if count == 0 {
                if !self.make_clear(stored) {
                    break;
                }
                continue;
            }
            let here = &mut room[made..made + count];
            here.copy_from_slice(&clear[..count]);
            let (blocks, _) = Block::<Aes128>::slice_as_chunks_mut(here);
            self.chain.encrypt_blocks(blocks);
            self.used += count;
            let (first, end) = (self.at, self.at + count as u64);
            self.at = end;
            // Bytes in front of the range are overwritten by the next; those behind it are left
            // out.
            let within =
                |place: u64| usize::try_from(place.clamp(first, end) - first).expect("in the room");
            let kept = within(self.range.start)..within(self.range.end);
            room.copy_within(made + kept.start..made + kept.end, made);
            made += kept.len();
        }
        if self.is_done() {
            *stored = &[];
        }
        0..made
    }

    /// Makes more bytes in the clear, or the padding. False: stored bytes are missing.
    fn make_clear(&mut self, stored: &mut &[u8]) -> bool {
        self.clear.drain(..self.used);
        self.used = 0;
        match self.segment.body.slice(self.slice) {
            None if self.is_padded => return false,
            None => {
                let missing = BLOCK - u32::try_from(self.clear.len()).expect("less than a block");
                let byte = u8::try_from(missing).expect("at most a block");
                self.clear.extend(std::iter::repeat_n(byte, byte.into()));
                self.is_padded = true;
            }
            Some(Slice::Packets { block, range }) => {
                let new = || PacketWriter::new(Arc::clone(block), range.clone());
                if self.packets.is_none() {
                    let parts = block.parts(range);
                    self.coming = parts.iter().map(|(_, bytes)| bytes.end - bytes.start).sum();
                }
                let writer = self.packets.get_or_insert_with(new);
                // A writer that is done takes all that it is given.
                let own = usize::try_from(self.coming).unwrap_or(usize::MAX).min(stored.len());
                let (mut given, behind) = stored.split_at(own);
                let kept = self.clear.len();
                self.clear.resize(kept + CLEAR_BYTES, 0);
                let made = writer.write(&mut given, &mut self.clear[kept..]);
                self.clear.truncate(kept + made.end);
                self.clear.drain(kept..kept + made.start);
                let taken = own - given.len();
                self.coming -= taken as u64;
                *stored = &stored[taken..];
                debug_assert!(stored.len() == given.len() + behind.len());
                if writer.is_done() && self.coming == 0 {
                    self.packets = None;
                    self.slice += 1;
                } else if made.is_empty() {
                    return taken > 0 && !stored.is_empty();
                }
            }
            Some(slice) => {
                if let Slice::Generated { bytes, range } = slice {
                    self.clear.extend_from_slice(&bytes[range.clone()]);
                }
                self.slice += 1;
            }
        }
        true
    }
}

impl fmt::Debug for ChainWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} of {:?}, made to {}", self.range, self.segment, self.at)
    }
}

/// Bytes of packets that are made at once: whole packets that stay in the processor's cache.
const CLEAR_BYTES: usize = 188 * 128;
