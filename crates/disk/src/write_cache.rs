//! Writes that a disk has called done and not yet put on the platter.
//!
//! A set of areas, nothing more: when they are written is up to the [`Head`](crate::Head), which
//! does it while nobody asks for anything, when the memory is full, and at a flush. Takes the areas
//! in the order of place from the head on, and from the front again (C-SCAN).

use std::collections::BTreeMap;

/// What is in the disk's memory.
#[derive(Clone, Debug, Default)]
pub(crate) struct WriteCache {
    /// Offset to end. Areas do not overlap.
    dirty: BTreeMap<u64, u64>,
    bytes: u64,
}

impl WriteCache {
    /// Bytes waiting.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether all of [offset, end) is here.
    pub(crate) fn holds(&self, offset: u64, end: u64) -> bool {
        let mut from = offset;
        while from < end {
            match self.dirty.range(..=from).next_back() {
                Some((_, until)) if *until > from => from = *until,
                _ => return false,
            }
        }
        true
    }

    /// Takes [offset, end) in, in place of what was here of it.
    pub(crate) fn insert(&mut self, offset: u64, end: u64) {
        self.cut(offset, end);
        self.bytes += end - offset;
        match self.dirty.range_mut(..offset).next_back() {
            Some((start, until)) if *until == offset && end - *start <= LONGEST => *until = end,
            _ => {
                self.dirty.insert(offset, end);
            }
        }
    }

    /// The next area to be written by a head at `at`; it leaves the memory.
    pub(crate) fn next(&mut self, at: u64) -> Option<(u64, u64)> {
        let ahead = self.dirty.range(at..).next();
        let (offset, end) = ahead.or_else(|| self.dirty.iter().next()).map(|(o, e)| (*o, *e))?;
        self.dirty.remove(&offset);
        self.bytes -= end - offset;
        Some((offset, end))
    }

    /// Forgets [offset, end), and keeps what sticks out on either side.
    fn cut(&mut self, offset: u64, end: u64) {
        let before = self.dirty.range(..offset).next_back().map(|(o, e)| (*o, *e));
        let inside: Vec<(u64, u64)> =
            self.dirty.range(offset..end).map(|(o, e)| (*o, *e)).collect();
        for (start, until) in before.into_iter().filter(|(_, e)| *e > offset).chain(inside) {
            self.dirty.remove(&start);
            self.bytes -= until - start;
            for (from, to) in [(start, offset.min(until)), (end.max(start), until)] {
                if from < to {
                    self.dirty.insert(from, to);
                    self.bytes += to - from;
                }
            }
        }
    }
}

/// An area grows no longer than this by being written on, so that a read never waits long for it.
const LONGEST: u64 = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    /// Against a plain list of bytes.
    #[test]
    fn holds_what_was_put_in_and_not_yet_taken() {
        for seed in 0..200 {
            let mut rng = fastrand::Rng::with_seed(seed);
            let (mut cache, mut plain) = (WriteCache::default(), [false; 64]);
            for _ in 0..40 {
                let offset = rng.u64(0..63);
                let end = rng.u64(offset + 1..=64);
                let range = usize::try_from(offset).unwrap()..usize::try_from(end).unwrap();
                assert_eq!(cache.holds(offset, end), plain[range.clone()].iter().all(|b| *b));
                if rng.u8(..3) == 0 {
                    if let Some((from, to)) = cache.next(offset) {
                        let skipped = offset.min(from)..from.max(offset);
                        let passed = from >= offset && cache.dirty.range(skipped).next().is_some();
                        assert!(from < to && !passed, "the next one ahead; seed {seed}");
                        for byte in from..to {
                            assert!(std::mem::take(&mut plain[usize::try_from(byte).unwrap()]));
                        }
                    }
                } else {
                    cache.insert(offset, end);
                    plain[range].fill(true);
                }
                let bytes = plain.iter().filter(|b| **b).count() as u64;
                assert_eq!(cache.bytes(), bytes, "seed {seed}");
            }
        }
    }
}
