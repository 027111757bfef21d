//! The writes in a disk's cache that are not on the platter yet.
//!
//! It is only a set of areas: the [`Head`](crate::Head) decides when they are written, namely while
//! the disk is idle, when the memory is full, and at a flush. Areas are written in the order of
//! their places from the head on, and then from the front again (C-SCAN).

use std::collections::BTreeMap;

/// The areas in the disk's memory.
#[derive(Clone, Debug, Default)]
pub(crate) struct WriteCache {
    /// The end of each area by its offset. Areas do not overlap.
    dirty: BTreeMap<u64, u64>,
    bytes: u64,
}

impl WriteCache {
    /// The number of cached bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether all of [offset, end) is cached.
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

    /// Adds [offset, end), replacing cached parts of it.
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

    /// Removes and returns the next area to be written by a head at `at`.
    pub(crate) fn next(&mut self, at: u64) -> Option<(u64, u64)> {
        let ahead = self.dirty.range(at..).next();
        let (offset, end) = ahead.or_else(|| self.dirty.iter().next()).map(|(o, e)| (*o, *e))?;
        self.dirty.remove(&offset);
        self.bytes -= end - offset;
        Some((offset, end))
    }

    /// Removes [offset, end), and keeps the parts of areas outside of it.
    fn cut(&mut self, offset: u64, end: u64) {
        let before = self.dirty.range(..offset).next_back().map(|(o, e)| (*o, *e));
        let inside: Vec<(u64, u64)> =
            self.dirty.range(offset..end).map(|(o, e)| (*o, *e)).collect();
        // The area before may reach into the range, or beyond its end.
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

/// The longest area to which later writes are joined, so that a read never waits long for it.
const LONGEST: u64 = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    /// Compared with a plain list of bytes.
    #[test]
    fn the_cache_holds_inserted_areas_until_they_are_taken() {
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
