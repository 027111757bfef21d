//! Reads that go on where another ends: how many of a window's, so that a visit to a place on the
//! disk is charged one positioning, however many reads it is made in.
//!
//! ```text
//!   due slot       10   11   12   13   14   15       one stream, its reads sequential
//!   reads           a         b              c
//!   sequential                2              3       slots after the read that each one follows
//!
//!   window 10 - 15  a b c: one visit         window 11 - 15  b c: one visit; a is read before
//!   window 12 - 14  b: one visit
//! ```
//!
//! A read is counted in the slot it is due in, by how many slots before the other is due: in a
//! window that begins `n` slots before, those follow that are at most so far from theirs. Far ones
//! are rounded up to a few classes, and beyond the last not counted: a visit more is charged than
//! is made, never less.
//!
//! On the books is only what is unread, so a read whose forerunner was taken up, or found in
//! memory, begins a visit again.

use crate::ledger::SlotLoad;
use std::ops::AddAssign;

/// How many of the reads due in one slot are sequential to a read that is due shortly before,
/// counted by classes of that distance in slots.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SequentialReads([u32; CLASSES.len()]);

impl SequentialReads {
    pub(crate) const NONE: Self = Self([0; CLASSES.len()]);

    /// One that follows a read due `slots` before.
    #[inline]
    pub(crate) fn one(slots: u8) -> Self {
        // Counted in each class that is wide enough, so that `since` reads one number, not a sum.
        Self(CLASSES.map(|class| u32::from(slots <= class)))
    }

    /// How many follow in a window that begins so long before.
    #[inline(always)]
    pub(crate) fn since(&self, since: Since) -> u64 {
        self.0[since.0].into()
    }

    /// The rest without `other`; `None` when more is taken off than was put on.
    #[inline]
    pub(crate) fn checked_sub(mut self, other: Self) -> Option<Self> {
        for (sum, n) in self.0.iter_mut().zip(other.0) {
            *sum = sum.checked_sub(n)?;
        }
        Some(self)
    }
}

/// How many slots before a slot the window begins that it is read in, as far as it matters.
#[derive(Clone, Copy)]
pub(crate) struct Since(usize);

impl Since {
    /// Wherever the window begins: as many as may follow.
    pub(crate) const EVER: Self = Self(CLASSES.len() - 1);
    /// The window begins with the slot.
    pub(crate) const NOW: Self = Self(0);

    #[inline(always)]
    pub(crate) fn slots(slots: usize) -> Self {
        // Between two classes the narrower one is taken: a follower that is missed is charged a
        // visit too many, never too few.
        CLASS_OF.get(slots).map_or(Self::EVER, |class| Self(usize::from(*class)))
    }
}

impl AddAssign for SequentialReads {
    #[inline]
    fn add_assign(&mut self, other: Self) {
        self.0.iter_mut().zip(other.0).for_each(|(sum, n)| *sum += n);
    }
}

/// What is read in a sweep.
#[derive(Clone, Copy, Default)]
pub(crate) struct Swept {
    pub(crate) reads: u64,
    /// How many of them go on where another of them ends.
    pub(crate) follows: u64,
    pub(crate) transfer: u64,
    pub(crate) bytes: u64,
}

impl Swept {
    /// All reads of one slot, in a window that begins `since` before it.
    #[inline(always)]
    pub(crate) fn of(load: &SlotLoad, since: Since) -> Self {
        let SlotLoad { transfer, bytes, .. } = *load;
        Self { reads: load.reads.into(), follows: load.follows.since(since), transfer, bytes }
    }

    #[inline(always)]
    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            reads: self.reads + other.reads,
            follows: self.follows + other.follows,
            transfer: self.transfer + other.transfer,
            bytes: self.bytes + other.bytes,
        }
    }

    #[inline(always)]
    pub(crate) fn without(self, other: Self) -> Self {
        Self {
            reads: self.reads - other.reads,
            follows: self.follows - other.follows,
            transfer: self.transfer - other.transfer,
            bytes: self.bytes - other.bytes,
        }
    }

    /// Places that are gone to.
    #[inline(always)]
    pub(crate) fn visits(self) -> u64 {
        self.reads - self.follows
    }
}

/// Distances in slots by which sequential reads are counted, up to 6 s of 500 ms slots: a mebibyte
/// at 1.4 Mb/s.
const CLASSES: [u8; 8] = [0, 1, 2, 3, 4, 6, 8, 12];

/// The widest class that fits into so many slots.
const CLASS_OF: [u8; 12] = [0, 1, 2, 3, 4, 4, 5, 5, 6, 6, 6, 6];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_follow_whose_forerunner_is_in_the_window_or_a_little_fewer() {
        let distances = [0, 0, 1, 3, 5, 6, 8, 9, 12, 13, 200];
        let mut sum = SequentialReads::default();
        distances.iter().for_each(|slots| sum += SequentialReads::one(*slots));
        for since in 0..40 {
            let exact = distances.iter().filter(|slots| usize::from(**slots) <= since).count();
            let exact = exact as u64;
            let follow = sum.since(Since::slots(since));
            assert!(follow <= exact.min(sum.since(Since::EVER)), "{since}");
            let class = CLASSES.iter().any(|class| usize::from(*class) == since);
            assert!(!class || follow == exact, "{since}");
        }
        assert_eq!((sum.since(Since::NOW), sum.since(Since::EVER)), (2, 9));
        distances
            .iter()
            .for_each(|slots| sum = sum.checked_sub(SequentialReads::one(*slots)).unwrap());
        assert_eq!(sum, SequentialReads::default());
    }
}
