//! Stored bytes into encrypted ones (ISO/IEC 23001-7, 9 and 10).
//!
//! A writer takes stored bytes in pieces of any size and fills what room it is given: the bytes are
//! copied once, into memory of the transfer, and encrypted there, so that a buffer from which
//! several viewers are sent is never written to. That costs a pass over each byte that clear titles
//! do not have, and of AES all blocks of `cenc`, which a processor with AES instructions does
//! several at once, or a tenth of the blocks of `cbcs` video, one after another.

use super::block::CipherBlock;
use super::{BLOCK, EncryptionScheme, PATTERN};
use aes::Aes128;
use aes::cipher::{Block, BlockModeEncrypt, InnerIvInit, StreamCipher};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// Encrypts a range of a block.
pub struct CipherWriter {
    block: Arc<CipherBlock>,
    range: Range<u64>,
    /// The place in the block behind the last byte made.
    at: u64,
    /// The LDUs and subsamples that have begun.
    ldu: usize,
    subsample: usize,
    /// Bytes of the LDU's present run to come, and what is done with them.
    run: CipherRun,
    /// Protected bytes of the subsample behind the run.
    protected: u32,
    counter: Option<ctr::Ctr64BE<Aes128>>,
    chain: Option<cbc::Encryptor<Aes128>>,
    /// A block of which not all bytes have come, or that has not found room.
    partial: [u8; BLOCK as usize],
    filled: usize,
    ready: Range<usize>,
}

/// Bytes with which the same is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CipherRun {
    Clear(u32),
    Counter(u32),
    /// Whole blocks.
    Chain(u32),
}

impl CipherRun {
    fn left(self) -> u32 {
        match self {
            Self::Clear(left) | Self::Counter(left) | Self::Chain(left) => left,
        }
    }

    fn without(self, taken: usize) -> Self {
        let less = |left: u32| left - u32::try_from(taken).expect("a part of the run");
        match self {
            Self::Clear(left) => Self::Clear(less(left)),
            Self::Counter(left) => Self::Counter(less(left)),
            Self::Chain(left) => Self::Chain(less(left)),
        }
    }
}

impl CipherWriter {
    /// A writer of a range of a block. It takes the bytes of [`CipherBlock::part`], all of them,
    /// though it may be done before.
    pub fn new(block: Arc<CipherBlock>, range: Range<u64>) -> Self {
        let ldu = block.first(range.start);
        let mut writer = Self {
            at: block.ldus.get(ldu).map_or(range.start, |ldu| ldu.at),
            range: range.start..range.end.min(block.len()),
            ldu,
            subsample: 0,
            run: CipherRun::Clear(0),
            protected: 0,
            counter: None,
            chain: None,
            partial: [0; BLOCK as usize],
            filled: 0,
            ready: 0..0,
            block,
        };
        writer.begin_ldu();
        writer
    }

    /// Whether all bytes of the range have been made.
    pub fn is_done(&self) -> bool {
        self.at >= self.range.end
    }

    /// Encrypts `stored`, from which it removes what it has used, to the beginning of `room`.
    /// Returns the part of `room` that has bytes of the range; empty: it needs further stored
    /// bytes, or is done.
    pub fn write(&mut self, stored: &mut &[u8], room: &mut [u8]) -> Range<usize> {
        let mut made = 0;
        while !self.is_done() && made < room.len() {
            let most = usize::try_from(self.range.end - self.at).unwrap_or(usize::MAX);
            let end = room.len().min(made.saturating_add(most));
            let count = self.step(stored, &mut room[made..end]);
            if count == 0 {
                break;
            }
            let before = self.range.start.saturating_sub(self.at);
            self.at += count as u64;
            // Bytes in front of the range are overwritten by the next.
            let skipped = usize::try_from(before).unwrap_or(usize::MAX).min(count);
            room.copy_within(made + skipped..made + count, made);
            made += count - skipped;
        }
        if self.is_done() {
            // What completed the last block of AES.
            *stored = &stored[stored.len()..];
        }
        0..made
    }

    /// Makes some bytes at the beginning of `room`, and returns how many; zero: it needs more
    /// stored ones.
    fn step(&mut self, stored: &mut &[u8], room: &mut [u8]) -> usize {
        if !self.ready.is_empty() {
            let count = self.ready.len().min(room.len());
            let from = self.ready.start;
            room[..count].copy_from_slice(&self.partial[from..from + count]);
            self.ready.start += count;
            return count;
        }
        while self.run.left() == 0 {
            self.next_run();
        }
        let left = usize::try_from(self.run.left()).unwrap_or(usize::MAX);
        let mut count = left.min(stored.len()).min(room.len());
        match self.run {
            CipherRun::Chain(_) if self.filled > 0 || count < self.partial.len() => {
                return self.fill_partial(stored, room);
            }
            CipherRun::Chain(_) => count -= count % self.partial.len(),
            CipherRun::Clear(_) | CipherRun::Counter(_) => {}
        }
        let room = &mut room[..count];
        room.copy_from_slice(&stored[..count]);
        *stored = &stored[count..];
        match self.run {
            CipherRun::Clear(_) => {}
            CipherRun::Counter(_) => {
                let counter = self.counter.as_mut().expect("an LDU of cenc has begun");
                counter.apply_keystream(room);
            }
            CipherRun::Chain(_) => {
                let chain = self.chain.as_mut().expect("a subsample of cbcs has begun");
                let (blocks, _) = Block::<Aes128>::slice_as_chunks_mut(room);
                chain.encrypt_blocks(blocks);
            }
        }
        self.run = self.run.without(count);
        count
    }

    /// Collects a block of AES, and makes its bytes when it is complete.
    fn fill_partial(&mut self, stored: &mut &[u8], room: &mut [u8]) -> usize {
        let taken = (self.partial.len() - self.filled).min(stored.len());
        self.partial[self.filled..self.filled + taken].copy_from_slice(&stored[..taken]);
        self.filled += taken;
        *stored = &stored[taken..];
        if self.filled < self.partial.len() {
            return 0;
        }
        self.filled = 0;
        let chain = self.chain.as_mut().expect("a subsample of cbcs has begun");
        chain.encrypt_block((&mut self.partial).into());
        self.run = self.run.without(self.partial.len());
        self.ready = 0..self.partial.len();
        self.step(stored, room)
    }

    /// Begins the next run: of the pattern, of the LDU, or of the next LDU.
    fn next_run(&mut self) {
        let cipher = &self.block.cipher;
        if self.protected > 0 {
            let blocks = self.protected / BLOCK * BLOCK;
            self.run = match (cipher.scheme, self.run) {
                (EncryptionScheme::Cenc, _) => CipherRun::Counter(self.protected),
                (EncryptionScheme::Cbcs, _) if blocks == 0 => CipherRun::Clear(self.protected),
                (EncryptionScheme::Cbcs, _) if !cipher.is_divided => CipherRun::Chain(blocks),
                (EncryptionScheme::Cbcs, CipherRun::Chain(_)) => {
                    CipherRun::Clear(self.protected.min((PATTERN - 1) * BLOCK))
                }
                (EncryptionScheme::Cbcs, _) => CipherRun::Chain(BLOCK),
            };
            self.protected -= self.run.left();
            return;
        }
        let ldu = &self.block.ldus[self.ldu];
        if self.subsample < ldu.subsamples.end {
            let next = self.block.subsamples[self.subsample];
            self.subsample += 1;
            self.run = CipherRun::Clear(next.clear);
            self.protected = next.protected;
            self.begin_chain();
        } else {
            self.ldu += 1;
            self.begin_ldu();
        }
    }

    fn begin_ldu(&mut self) {
        let Some(ldu) = self.block.ldus.get(self.ldu) else { return };
        self.subsample = ldu.subsamples.start;
        self.run = CipherRun::Clear(0);
        if ldu.subsamples.is_empty() {
            self.protected = ldu.size;
        }
        if self.block.cipher.scheme == EncryptionScheme::Cenc {
            let mut vector = [0; BLOCK as usize];
            vector[..8].copy_from_slice(&ldu.vector);
            let core =
                ctr::CtrCore::inner_iv_init(self.block.cipher.cipher.clone(), &vector.into());
            self.counter = Some(ctr::Ctr64BE::from_core(core));
        }
        self.begin_chain();
    }

    fn begin_chain(&mut self) {
        let cipher = &self.block.cipher;
        if cipher.scheme == EncryptionScheme::Cbcs {
            let vector = (&cipher.vector).into();
            self.chain = Some(cbc::Encryptor::inner_iv_init(cipher.cipher.clone(), vector));
        }
    }
}

impl fmt::Debug for CipherWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} of {:?}, made to {}", self.range, self.block, self.at)
    }
}
