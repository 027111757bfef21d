//! What was observed of a disk in use, as a record that outlives the server: the guard, the slow
//! slots of the last minutes, and the fewest reads of busy slots.
//!
//! ```text
//!   0  magic "TNTOseen"
//!   8  words u64, little-endian:
//!        version = 3
//!        key: slot ns, bytes of a read, reads guaranteed, ns that one read is charged
//!        guard: reads guaranteed now │ time guard: slowdown in 1,024ths
//!        slow slots: filled, slow for, then counted lists: the last slots; each block, all LENGTHS
//!        busy slots: filled, then a counted list: each block's fewest
//! ```
//!
//! The caller that stores the bytes guards them with a checksum. A record that contradicts itself,
//! or that was observed with other reads, is refused here. The age of a record does not matter: it
//! is provisional. A few seconds of good reads contradict what it says of the guards, and half a
//! minute what it says of slow slots.

use crate::busy::{self, BusySlots};
use crate::curve::LONGEST;
use crate::guard::{Guard, TimeGuard};
use crate::observed_curve::{self, LENGTHS, ObservedCurve};
use std::collections::VecDeque;
use std::time::Duration;
use units::{Decoder, Encoder, Malformed, nanos};

/// What was observed of one disk in use, to be kept while no server uses it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskHistory {
    /// The reads that were observed.
    pub key: HistoryKey,
    /// The guarantee in reads, as reduced after slow slots.
    pub guard: Guard,
    /// The slowdown of the disk, where admission counts disk time.
    pub time_guard: TimeGuard,
    /// The slow slots of the last minutes.
    pub observed_curve: ObservedCurve,
    /// The fewest reads of slots in which the disk was never idle.
    pub busy_slots: BusySlots,
}

/// The reads that a [`DiskHistory`] was observed with: it is valid for the same reads only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HistoryKey {
    /// The scheduling period.
    pub slot: Duration,
    /// Bytes of the largest read.
    pub read_size: u64,
    /// Reads guaranteed in a slot.
    pub min_read: u32,
    /// Nanoseconds that one read by itself is charged; zero where disk time is not counted.
    pub charged: u64,
}

/// Why bytes are not a [`DiskHistory`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HistoryError {
    /// The magic is missing.
    #[error("they are not what a server keeps")]
    NotOne,
    /// Another version of Tenuto wrote it.
    #[error("they are of version {0}, and this program knows version 3")]
    Version(u64),
    /// The bytes end too early, go on too long, or contradict themselves.
    #[error("they do not hold together")]
    Malformed,
}

impl From<Malformed> for HistoryError {
    fn from(_: Malformed) -> Self {
        Self::Malformed
    }
}

impl DiskHistory {
    /// Whether there is nothing worth keeping: no slot was slow, and none was busy.
    pub fn is_nothing(&self) -> bool {
        self.guard == Guard::new(self.key.min_read)
            && self.time_guard == TimeGuard::default()
            && self.observed_curve == ObservedCurve::default()
            && self.busy_slots == BusySlots::default()
    }

    /// The record's bytes; at most [`DiskHistory::MOST_BYTES`].
    pub fn encode(&self) -> Vec<u8> {
        let HistoryKey { slot, read_size, min_read, charged } = self.key;
        let ObservedCurve { last, blocks, filled, slow_for } = &self.observed_curve;
        let BusySlots { blocks: busy, filled: busy_filled } = &self.busy_slots;
        let mut words = vec![VERSION, nanos(slot), read_size, min_read.into(), charged];
        words.extend([self.guard.word(), self.time_guard.word()]);
        words.extend([u64::from(*filled), u64::from(*slow_for), last.len() as u64]);
        words.extend(last.iter().copied().map(u64::from));
        words.push(blocks.len() as u64);
        words.extend(blocks.iter().flatten());
        words.extend([u64::from(*busy_filled), busy.len() as u64]);
        words.extend(busy.iter().copied().map(u64::from));
        let mut out = Encoder::default();
        out.bytes(&MAGIC);
        words.into_iter().for_each(|word| out.u64(word));
        out.finish()
    }

    /// A record from its bytes, all of them.
    pub fn decode(bytes: &[u8]) -> Result<Self, HistoryError> {
        let body = bytes.strip_prefix(&MAGIC).ok_or(HistoryError::NotOne)?;
        let mut rest = Decoder::new(body);
        let version = rest.u64()?;
        if version != VERSION {
            return Err(HistoryError::Version(version));
        }
        let key = HistoryKey {
            slot: Duration::from_nanos(rest.u64()?),
            read_size: rest.u64()?,
            min_read: number(&mut rest, u32::MAX)?,
            charged: rest.u64()?,
        };
        let guard = Guard::of_word(key.min_read, rest.u64()?);
        let time_guard = TimeGuard::of_word(rest.u64()?);
        let observed_curve = decode_observed_curve(&mut rest)?;
        // A full block wraps to zero, so `filled` never reaches BLOCK.
        let filled = number(&mut rest, busy::BLOCK - 1)?;
        let busy_slots = BusySlots { blocks: numbers(&mut rest, busy::BLOCKS)?, filled };
        // A checksum only shows that these bytes were written. A state that no sequence of slots
        // leads to would break the invariants of the guards.
        let whole = rest.is_empty() && observed_curve.is_valid() && busy_slots.is_valid();
        match (guard, time_guard) {
            (Some(guard), Some(time_guard)) if whole => {
                Ok(Self { key, guard, time_guard, observed_curve, busy_slots })
            }
            _ => Err(HistoryError::Malformed),
        }
    }

    /// The most bytes that [`DiskHistory::encode`] returns: magic, version and key, guards, slow
    /// slots, busy slots.
    pub const MOST_BYTES: usize = {
        let slow = 3 + LONGEST + 1 + observed_curve::BLOCKS as usize * LENGTHS;
        let busy = 2 + busy::BLOCKS;
        8 * (1 + 5 + 2 + slow + busy)
    };
}

fn decode_observed_curve(rest: &mut Decoder<'_>) -> Result<ObservedCurve, HistoryError> {
    let filled = number(rest, observed_curve::BLOCK - 1)?;
    let slow_for = number(rest, observed_curve::LONG)?;
    let last = numbers(rest, LONGEST)?;
    let count = number(rest, observed_curve::BLOCKS)?;
    let block = |_| {
        let mut block = [0; LENGTHS];
        for fewest in &mut block {
            *fewest = rest.u64()?;
        }
        Ok(block)
    };
    let blocks = (0..count).map(block).collect::<Result<_, HistoryError>>()?;
    Ok(ObservedCurve { last, blocks, filled, slow_for })
}

fn number(rest: &mut Decoder<'_>, most: u32) -> Result<u32, HistoryError> {
    let number = u32::try_from(rest.u64()?).ok().filter(|number| *number <= most);
    number.ok_or(HistoryError::Malformed)
}

/// A counted list of at most `most` numbers.
fn numbers(rest: &mut Decoder<'_>, most: usize) -> Result<VecDeque<u32>, HistoryError> {
    // The count is bounded before the list is allocated.
    let bounded = usize::try_from(rest.u64()?).ok().filter(|count| *count <= most);
    let count = bounded.ok_or(HistoryError::Malformed)?;
    (0..count).map(|_| number(rest, u32::MAX)).collect()
}

const MAGIC: [u8; 8] = *b"TNTOseen";
const VERSION: u64 = 3;

#[cfg(test)]
mod tests {
    use super::*;

    /// The history of a disk that was slow now and then, and busy.
    fn remembered(random: &mut fastrand::Rng) -> DiskHistory {
        let key = HistoryKey {
            slot: Duration::from_millis(500),
            read_size: 1 << 20,
            min_read: 40,
            charged: random.u64(..30_000_000),
        };
        let (mut guard, mut time_guard) = (Guard::new(40), TimeGuard::default());
        let (mut observed_curve, mut busy_slots) = (ObservedCurve::default(), BusySlots::default());
        for _ in 0..random.usize(..1500) {
            let reads = if random.u8(..20) == 0 { random.u32(..40) } else { 40 };
            guard.slot_ended(40, reads);
            observed_curve.slot_ended(reads, 40);
            time_guard.swept(1000, random.u64(900..1005));
            busy_slots.slot_ended(reads + random.u32(..40));
        }
        DiskHistory { key, guard, time_guard, observed_curve, busy_slots }
    }

    #[test]
    fn what_was_kept_is_what_was_seen_and_goes_on_alike() {
        for seed in 0..200 {
            let mut random = fastrand::Rng::with_seed(seed);
            let mut before = remembered(&mut random);
            let bytes = before.encode();
            assert!(bytes.len() <= DiskHistory::MOST_BYTES, "seed {seed}: {}", bytes.len());
            let mut after = DiskHistory::decode(&bytes).unwrap();
            let guards = |history: &DiskHistory| {
                (history.key, history.guard.min_read(), history.time_guard.slowdown())
            };
            assert_eq!(guards(&after), guards(&before), "seed {seed}");
            for _ in 0..1300 {
                let reads = random.u32(30..=40);
                for remembered in [&mut before, &mut after] {
                    remembered.observed_curve.slot_ended(reads, 40);
                    remembered.busy_slots.slot_ended(reads);
                }
                assert_eq!(
                    after.observed_curve.curve(),
                    before.observed_curve.curve(),
                    "seed {seed}"
                );
            }
            assert_eq!(after.observed_curve, before.observed_curve, "seed {seed}");
            assert_eq!(after.busy_slots, before.busy_slots, "seed {seed}");
        }
    }

    #[test]
    fn no_bytes_whatever_are_more_than_refused() {
        let mut random = fastrand::Rng::with_seed(1);
        let good = remembered(&mut random).encode();
        for end in 0..good.len() {
            assert!(DiskHistory::decode(&good[..end]).is_err(), "cut at {end}");
        }
        assert_eq!(DiskHistory::decode(b"something else"), Err(HistoryError::NotOne));
        let other = [&good[..8], &[1], &good[9..]].concat();
        assert_eq!(DiskHistory::decode(&other), Err(HistoryError::Version(1)));
        for _ in 0..20_000 {
            let mut bytes = good.clone();
            for _ in 0..random.usize(1..8) {
                let at = random.usize(8..bytes.len());
                bytes[at] = random.u8(..);
            }
            if let Ok(mut remembered) = DiskHistory::decode(&bytes) {
                assert_eq!(remembered.encode(), bytes, "what is accepted means what it says");
                let min_read = remembered.key.min_read;
                (0..100).for_each(|_| remembered.observed_curve.slot_ended(min_read / 2, min_read));
                remembered.guard.slot_ended(min_read, 0);
                let _ = (remembered.observed_curve.curve(), remembered.busy_slots.fewest());
            }
        }
    }

    #[test]
    fn a_disk_that_does_what_it_should_and_is_not_busy_leaves_nothing_to_keep() {
        let key =
            HistoryKey { slot: Duration::from_secs(1), read_size: 1, min_read: 7, charged: 0 };
        let (guard, time_guard) = (Guard::new(7), TimeGuard::default());
        let (observed_curve, busy_slots) = (ObservedCurve::default(), BusySlots::default());
        let mut remembered = DiskHistory { key, guard, time_guard, observed_curve, busy_slots };
        remembered.guard.slot_ended(7, 7);
        assert!(remembered.is_nothing());
        remembered.guard.slot_ended(7, 6);
        assert!(!remembered.is_nothing());
    }
}
