//! What is known of a disk from using it, as it is kept while nobody uses it: the second guard, the slow
//! slots of the last minutes, the fewest reads of busy ones. Whoever keeps the bytes guards them with a
//! checksum; what does not hold together, or was seen of other reads, is refused here in any case.
//!
//! ```text
//!   0  magic "TNTOseen"
//!   8  words u64, little-endian:
//!        version = 1; of what: slot ns, bytes of a read, reads guaranteed, ns that a read is charged
//!        guard: reads believed, good slots │ time guard: behind in 1,024ths, good sweeps
//!        slow slots: filled, slow for, then counted lists: the last slots; each block, all LONGEST
//!        busy slots: filled, then a counted list: each block's fewest
//! ```
//!
//! How long it was kept counts for nothing: a disk is forgiven for what it did since, not for time.

use crate::busy::{self, BusySlots};
use crate::curve::LONGEST;
use crate::guard::{Guard, TimeGuard};
use crate::seen::{self, Seen};
use std::time::Duration;

/// See the head of this file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remembered {
    /// Of which reads.
    pub of: Seeing,
    /// Where reads are counted: what is promised now.
    pub guard: Guard,
    /// Where time is counted: how far the disk is behind.
    pub time_guard: TimeGuard,
    /// The slow slots.
    pub seen: Seen,
    /// The busy ones.
    pub busy: BusySlots,
}

/// What it was that was seen: reads made in another way say nothing of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seeing {
    /// The scheduling period.
    pub slot: Duration,
    /// Bytes of the largest read.
    pub read_size: u64,
    /// Reads guaranteed in a slot.
    pub min_read: u32,
    /// Nanoseconds that a read by itself is charged; zero where time is not counted.
    pub charged: u64,
}

/// Why bytes are not remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotRemembered {
    /// They do not begin as such.
    #[error("they are not what a server keeps")]
    NotOne,
    /// Written by another Tenuto.
    #[error("they are of version {0}, and this program knows version 1")]
    Version(u64),
    /// They end too early, go on too long, or say what cannot be.
    #[error("they do not hold together")]
    Malformed,
}

impl Remembered {
    /// Whether there is nothing worth keeping: the disk did what it should, and was never busy.
    pub fn is_nothing(&self) -> bool {
        let promised = self.guard == Guard::new(self.of.min_read);
        let slow = self.seen != Seen::default() || self.time_guard != TimeGuard::default();
        promised && !slow && self.busy == BusySlots::default()
    }

    /// As bytes; at most [`Remembered::MOST_BYTES`].
    pub fn encode(&self) -> Vec<u8> {
        let Seeing { slot, read_size, min_read, charged } = self.of;
        let slot = u64::try_from(slot.as_nanos()).unwrap_or(u64::MAX);
        let mut words = vec![VERSION, slot, read_size, min_read.into(), charged];
        words.extend(self.guard.words());
        words.extend(self.time_guard.words());
        let Seen { last, blocks, filled, slow_for } = &self.seen;
        words.extend([u64::from(*filled), u64::from(*slow_for), last.len() as u64]);
        words.extend(last.iter().copied().map(u64::from));
        words.push(blocks.len() as u64);
        words.extend(blocks.iter().flatten());
        words.extend([u64::from(self.busy.filled), self.busy.blocks.len() as u64]);
        words.extend(self.busy.blocks.iter().copied().map(u64::from));
        let words = words.into_iter().flat_map(u64::to_le_bytes);
        MAGIC.into_iter().chain(words).collect()
    }

    /// From those bytes, all of them.
    pub fn decode(bytes: &[u8]) -> Result<Self, NotRemembered> {
        let rest = bytes.strip_prefix(&MAGIC).ok_or(NotRemembered::NotOne)?;
        let (words, odd) = rest.as_chunks::<8>();
        let mut words = Words(words);
        let version = words.next()?;
        if version != VERSION {
            return Err(NotRemembered::Version(version));
        }
        let of = Seeing {
            slot: Duration::from_nanos(words.next()?),
            read_size: words.next()?,
            min_read: words.short(u32::MAX)?,
            charged: words.next()?,
        };
        let guard = Guard::of_words(of.min_read, [words.next()?, words.next()?]);
        let time_guard = TimeGuard::of_words([words.next()?, words.next()?]);
        let (filled, slow_for) = (words.short(seen::BLOCK - 1)?, words.short(seen::LONG)?);
        let last = (0..words.count(LONGEST)?).map(|_| words.short(u32::MAX));
        let last = last.collect::<Result<_, _>>()?;
        let blocks = (0..words.count(seen::BLOCKS as usize)?).map(|_| words.block());
        let seen = Seen { last, blocks: blocks.collect::<Result<_, _>>()?, filled, slow_for };
        let filled = words.short(busy::BLOCK - 1)?;
        let blocks = (0..words.count(busy::BLOCKS)?).map(|_| words.short(u32::MAX));
        let busy = BusySlots { blocks: blocks.collect::<Result<_, _>>()?, filled };
        let whole = odd.is_empty() && words.0.is_empty() && seen.is_sound() && busy.is_sound();
        match (guard, time_guard) {
            (Some(guard), Some(time_guard)) if whole => {
                Ok(Self { of, guard, time_guard, seen, busy })
            }
            _ => Err(NotRemembered::Malformed),
        }
    }

    /// What [`Remembered::encode`] makes at most.
    pub const MOST_BYTES: usize =
        8 * (1 + 5 + 4 + 3 + LONGEST + 1 + seen::BLOCKS as usize * LONGEST + 2 + busy::BLOCKS);
}

/// Words that are still to be read.
struct Words<'a>(&'a [[u8; 8]]);

impl Words<'_> {
    fn next(&mut self) -> Result<u64, NotRemembered> {
        let (first, rest) = self.0.split_first().ok_or(NotRemembered::Malformed)?;
        self.0 = rest;
        Ok(u64::from_le_bytes(*first))
    }

    fn short(&mut self, most: u32) -> Result<u32, NotRemembered> {
        let word = u32::try_from(self.next()?).ok().filter(|word| *word <= most);
        word.ok_or(NotRemembered::Malformed)
    }

    fn count(&mut self, most: usize) -> Result<usize, NotRemembered> {
        let count = usize::try_from(self.next()?).ok().filter(|count| *count <= most);
        count.ok_or(NotRemembered::Malformed)
    }

    fn block(&mut self) -> Result<[u64; LONGEST], NotRemembered> {
        let mut block = [0; LONGEST];
        for fewest in &mut block {
            *fewest = self.next()?;
        }
        Ok(block)
    }
}

const MAGIC: [u8; 8] = *b"TNTOseen";
const VERSION: u64 = 1;

#[cfg(test)]
mod tests {
    use super::*;

    /// Of a disk that was slow now and then, and busy.
    fn remembered(random: &mut fastrand::Rng) -> Remembered {
        let of = Seeing {
            slot: Duration::from_millis(500),
            read_size: 1 << 20,
            min_read: 40,
            charged: random.u64(..30_000_000),
        };
        let (mut guard, mut time_guard) = (Guard::new(40), TimeGuard::default());
        let (mut seen, mut busy) = (Seen::default(), BusySlots::default());
        for _ in 0..random.usize(..1500) {
            let reads = if random.u8(..20) == 0 { random.u32(..40) } else { 40 };
            guard.slot_ended(40, reads);
            seen.slot_ended(reads, 40);
            time_guard.swept(1000, random.u64(900..1005));
            busy.slot_ended(reads + random.u32(..40));
        }
        Remembered { of, guard, time_guard, seen, busy }
    }

    #[test]
    fn what_was_kept_is_what_was_seen_and_goes_on_alike() {
        for seed in 0..200 {
            let mut random = fastrand::Rng::with_seed(seed);
            let mut before = remembered(&mut random);
            let bytes = before.encode();
            assert!(bytes.len() <= Remembered::MOST_BYTES, "seed {seed}: {}", bytes.len());
            let mut after = Remembered::decode(&bytes).unwrap();
            assert_eq!(after, before, "seed {seed}");
            for _ in 0..1300 {
                let reads = random.u32(30..=40);
                for remembered in [&mut before, &mut after] {
                    remembered.seen.slot_ended(reads, 40);
                    remembered.busy.slot_ended(reads);
                }
                assert_eq!(after.seen.curve(), before.seen.curve(), "seed {seed}");
            }
            assert_eq!(after, before, "seed {seed}");
        }
    }

    #[test]
    fn no_bytes_whatever_are_more_than_refused() {
        let mut random = fastrand::Rng::with_seed(1);
        let good = remembered(&mut random).encode();
        for end in 0..good.len() {
            assert!(Remembered::decode(&good[..end]).is_err(), "cut at {end}");
        }
        assert_eq!(Remembered::decode(b"something else"), Err(NotRemembered::NotOne));
        let other = [&good[..8], &[2], &good[9..]].concat();
        assert_eq!(Remembered::decode(&other), Err(NotRemembered::Version(2)));
        for _ in 0..20_000 {
            let mut bytes = good.clone();
            for _ in 0..random.usize(1..8) {
                let at = random.usize(8..bytes.len());
                bytes[at] = random.u8(..);
            }
            if let Ok(mut remembered) = Remembered::decode(&bytes) {
                assert_eq!(remembered.encode(), bytes, "what is accepted means what it says");
                let min_read = remembered.of.min_read;
                (0..100).for_each(|_| remembered.seen.slot_ended(min_read / 2, min_read));
                remembered.guard.slot_ended(min_read, 0);
                let _ = (remembered.seen.curve(), remembered.busy.fewest());
            }
        }
    }

    #[test]
    fn a_disk_that_does_what_it_should_and_is_not_busy_leaves_nothing_to_keep() {
        let of = Seeing { slot: Duration::from_secs(1), read_size: 1, min_read: 7, charged: 0 };
        let (guard, time_guard) = (Guard::new(7), TimeGuard::default());
        let (seen, busy) = (Seen::default(), BusySlots::default());
        let mut remembered = Remembered { of, guard, time_guard, seen, busy };
        remembered.guard.slot_ended(7, 7);
        assert!(remembered.is_nothing());
        remembered.guard.slot_ended(7, 6);
        assert!(!remembered.is_nothing());
    }
}
