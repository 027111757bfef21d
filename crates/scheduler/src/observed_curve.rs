//! The slowest that a disk was observed during the last minutes: the memory of the guard.
//!
//! [`Guard`](crate::Guard) trusts a disk again some seconds after a slow slot. A disk that is slow
//! every minute or so (it collects garbage, reads bad sectors again, turns a worn head aside) would
//! be believed each time, and be late each time. So the fewest reads in any so many slots one after
//! another are kept for a while, as a [`ServiceCurve`]: a slow slot now and then costs some slack
//! and hardly any viewers, a slow disk costs what it is slower.
//!
//! ```text
//!   reads of each slot     40 40 30 40 40 40 40 │ 40 40 40 ...  in blocks of BLOCK slots
//!   a block's fewest       1 slot 30, 2 slots 70, 4 slots 150 ...  up to 64
//!   seen                   the fewest of the last BLOCKS blocks; what is older is forgotten
//! ```
//!
//! A slot in which all that was asked for was done counts as the guarantee, whatever was asked for:
//! it proves nothing better. So what was seen never promises more than the calibration.

use crate::curve::{LONGEST, ServiceCurve};
use std::collections::VecDeque;

/// The fewest reads that a disk completed in any number of consecutive slots during the last five
/// minutes in which any slot was slow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObservedCurve {
    // The last slots, latest last; at most LONGEST.
    pub(crate) last: VecDeque<u32>,
    // Oldest first; the last is being filled. Each: the fewest reads of 1, 2, 4, ... slots.
    pub(crate) blocks: VecDeque<[u64; LENGTHS]>,
    // Slots in the block that is being filled.
    pub(crate) filled: u32,
    // Slots until all that is kept is what was guaranteed; zero: nothing was slow.
    pub(crate) slow_for: u32,
}

impl ObservedCurve {
    /// Records a slot in which the disk proved `reads` reads, where `guaranteed` were guaranteed.
    pub fn slot_ended(&mut self, reads: u32, guaranteed: u32) {
        if reads < guaranteed {
            self.slow_for = LONG;
        } else if self.slow_for == 0 {
            // Nothing to remember, and a stretch that begins now has nothing slow before it.
            return;
        } else {
            self.slow_for -= 1;
        }
        if self.slow_for == 0 {
            *self = Self::default();
            return;
        }
        if self.last.len() == LONGEST {
            self.last.pop_front();
        }
        // A fast slot must not make up for a slow one: observations never exceed the guarantee.
        self.last.push_back(reads.min(guaranteed));
        if self.filled == 0 {
            if self.blocks.len() == BLOCKS as usize {
                self.blocks.pop_front();
            }
            self.blocks.push_back([u64::MAX; LENGTHS]);
        }
        self.filled = (self.filled + 1) % BLOCK;
        let block = self.blocks.back_mut().expect("pushed when it was begun");
        let mut sum = 0;
        let mut lengths = (0..).map(|power| 1 << power).zip(block).peekable();
        // Every stretch that ends with this slot, the shortest first.
        for (slots, reads) in (1..).zip(self.last.iter().rev()) {
            sum += u64::from(*reads);
            if let Some((_, fewest)) = lengths.next_if(|(length, _)| *length == slots) {
                *fewest = sum.min(*fewest);
            }
        }
    }

    /// The slots are of an earlier run: half a minute of good ones is enough to forget them.
    pub fn is_of_earlier_run(&mut self) {
        self.slow_for = self.slow_for.min(BLOCK);
    }

    /// The fewest reads in any number of consecutive slots that are recorded; `None` if none was
    /// below the guarantee.
    pub fn curve(&self) -> Option<ServiceCurve> {
        let mut least = [u64::MAX; LENGTHS];
        for block in &self.blocks {
            least.iter_mut().zip(block).for_each(|(least, fewest)| *least = (*least).min(*fewest));
        }
        let seen = (0..).map(|power| 1 << power).zip(least).take_while(|seen| seen.1 < u64::MAX);
        (least[0] < u64::MAX).then(|| ServiceCurve::of_fewest(seen))
    }

    /// Whether the state is one that recording slots can lead to: slots are kept if and only if one
    /// of them was slow, and no block counts more reads than its slots can have.
    pub(crate) fn is_valid(&self) -> bool {
        let nothing = [self.last.is_empty(), self.blocks.is_empty(), self.slow_for == 0];
        let most = |(slots, fewest): (u64, &u64)| {
            *fewest == u64::MAX || *fewest <= slots * u64::from(u32::MAX)
        };
        let begun = self.filled == 0 || !self.blocks.is_empty();
        let lengths = || (0..).map(|power| 1 << power);
        let blocks = || self.blocks.iter().flat_map(|block| lengths().zip(block));
        (nothing == [true; 3] || nothing == [false; 3]) && begun && blocks().all(most)
    }
}

/// Stretches of 1, 2, 4, ... 64 slots.
pub(crate) const LENGTHS: usize = LONGEST.ilog2() as usize + 1;
/// Half a minute of slots of 500 ms: what is remembered ends by so much at once.
pub(crate) const BLOCK: u32 = 60;
/// Five minutes. A disk that was not slow for so long is believed again as calibrated.
pub(crate) const BLOCKS: u32 = 10;
pub(crate) const LONG: u32 = BLOCK * BLOCKS;

#[cfg(test)]
mod tests {
    use super::*;

    /// The obvious way: all slots kept, and looked through each time.
    fn slow_curve(slots: &[u32]) -> Vec<u64> {
        let sums = |h| slots.windows(h).map(|w| w.iter().map(|r| u64::from(*r)).sum());
        (1..=slots.len().min(LONGEST)).map(|h| sums(h).min().unwrap()).collect()
    }

    #[test]
    fn a_disk_that_keeps_its_word_leaves_nothing_to_remember() {
        let mut seen = ObservedCurve::default();
        (0..10_000).for_each(|_| seen.slot_ended(40, 40));
        assert_eq!(seen.curve(), None);
    }

    #[test]
    fn one_slow_slot_costs_itself_and_is_forgotten_after_five_minutes() {
        let mut seen = ObservedCurve::default();
        seen.slot_ended(30, 40);
        let at_once = seen.curve().unwrap();
        assert_eq!([1, 2, 10].map(|slots| at_once.least(slots)), [30, 60, 300], "all there is");
        for _ in 0..40 {
            seen.slot_ended(40, 40);
        }
        let later = seen.curve().unwrap();
        assert_eq!([1, 2, 32, 64].map(|slots| later.least(slots)), [30, 70, 1270, 2540]);
        assert_eq!(later.least(48), 1270 + 630, "as 32 and 16");
        let mut remembered = 40;
        while seen.curve().is_some() {
            seen.slot_ended(40, 40);
            remembered += 1;
        }
        assert_eq!(remembered, LONG);
    }

    #[test]
    fn it_is_the_fewest_of_what_was_seen_and_never_more_than_guaranteed() {
        for seed in 0..100 {
            let mut random = fastrand::Rng::with_seed(seed);
            // Less than what is remembered, so that nothing is forgotten yet.
            let slots: Vec<u32> = (0..random.usize(1..500))
                .map(|at| if at == 0 || random.u8(..9) == 0 { random.u32(10..40) } else { 40 })
                .collect();
            let mut seen = ObservedCurve::default();
            slots.iter().for_each(|reads| seen.slot_ended(*reads, 40));
            let curve = seen.curve().unwrap();
            for (h, fewest) in (1..=curve.longest()).zip(slow_curve(&slots)) {
                let parts = (1..h).map(|part| curve.least(part) + curve.least(h - part));
                let parts = parts.max().unwrap_or(0);
                let expected = if h.is_power_of_two() { fewest.max(parts) } else { parts };
                assert_eq!(curve.least(h), expected, "seed {seed}, {h} slots");
                assert!(curve.least(h) <= 40 * h, "seed {seed}, {h} slots");
            }
        }
    }
}
