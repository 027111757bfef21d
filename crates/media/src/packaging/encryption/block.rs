//! LDUs of a segment that are encrypted on their way to the socket: where they are stored, and
//! which of their bytes are encrypted with which vector.

use super::TrackCipher;
use crate::TrackIndex;
use crate::subsamples::Subsample;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// LDUs to be encrypted. Has as many bytes as they have.
pub struct CipherBlock {
    /// The track that is read.
    track: u16,
    /// The bytes of the LDUs in the track's data.
    stored: Range<u64>,
    pub(super) cipher: Arc<TrackCipher>,
    pub(super) ldus: Vec<CipherLdu>,
    pub(super) subsamples: Vec<Subsample>,
}

/// An LDU of a block.
pub(super) struct CipherLdu {
    /// Where in the block it begins.
    pub(super) at: u64,
    pub(super) size: u32,
    pub(super) vector: [u8; 8],
    /// Among the block's; none: all of it is protected.
    pub(super) subsamples: Range<usize>,
}

impl CipherBlock {
    /// Blocks of these LDUs, which are read as track `number`, each of about [`BLOCK_BYTES`].
    pub(in crate::packaging) fn blocks(
        track: &TrackIndex,
        number: u16,
        ldus: Range<usize>,
        cipher: &Arc<TrackCipher>,
    ) -> Vec<Self> {
        let mut blocks: Vec<Self> = Vec::new();
        let mut next = track.ldus.range(ldus.clone()).zip(ldus.clone());
        cipher.for_each(&track.ldus, ldus, |subsamples| {
            let (ldu, i) = next.next().expect("as many as there are LDUs");
            if blocks.last().is_none_or(|last| last.len() >= BLOCK_BYTES) {
                blocks.push(Self {
                    track: number,
                    stored: ldu.offset..ldu.offset,
                    cipher: Arc::clone(cipher),
                    ldus: Vec::new(),
                    subsamples: Vec::new(),
                });
            }
            let block = blocks.last_mut().expect("one was added");
            let first = block.subsamples.len();
            block.subsamples.extend_from_slice(subsamples);
            block.ldus.push(CipherLdu {
                at: block.len(),
                size: ldu.size,
                vector: cipher.counter_vector(i),
                subsamples: first..block.subsamples.len(),
            });
            block.stored.end += u64::from(ldu.size);
        });
        blocks
    }

    /// The number of bytes.
    pub fn len(&self) -> u64 {
        self.stored.end - self.stored.start
    }

    /// Whether it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The stored bytes that a range is made of, as track and bytes of its data: from the start of
    /// an LDU on, because each block is encrypted with the one before, and to the end of a block.
    pub fn part(&self, range: &Range<u64>) -> (u16, Range<u64>) {
        let start = self.ldus.get(self.first(range.start)).map_or(range.start, |ldu| ldu.at);
        let last = self.ldus.get(self.first(range.end.saturating_sub(1)));
        let end = last.map_or(range.end, |ldu| ldu.at + u64::from(ldu.size));
        let end = end.min(range.end.saturating_add(MADE_AHEAD)).min(self.len());
        (self.track, self.stored.start + start..self.stored.start + end)
    }

    /// The last LDU that begins at or before a place.
    pub(super) fn first(&self, at: u64) -> usize {
        self.ldus.partition_point(|ldu| ldu.at <= at).saturating_sub(1)
    }
}

impl PartialEq for CipherBlock {
    fn eq(&self, other: &Self) -> bool {
        let of = |it: &Self| (it.track, it.stored.clone(), it.cipher.key_id, it.cipher.scheme);
        of(self) == of(other)
    }
}

impl Eq for CipherBlock {}

impl fmt::Debug for CipherBlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "track {} {:?}, {:?}", self.track, self.stored, self.cipher)
    }
}

/// Bytes of a block, and less than an LDU more: as much as a window of a transfer requests at once.
const BLOCK_BYTES: u64 = 1 << 20;
/// Bytes behind a range that complete the last block of AES.
const MADE_AHEAD: u64 = 15;
