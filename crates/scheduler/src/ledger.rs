//! A sum per slot: what is booked, exactly. What is added is later taken off with the very same
//! numbers, so that the books of an idle disk are empty.

use crate::sums::sums;
use crate::visits::SequentialReads;
use std::ops::{AddAssign, SubAssign};
use units::SlotIndex;

/// What one slot carries on one disk. A cache line: a decision walks thousands of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SlotLoad {
    /// Bytes of the reads that must be complete by the end of the slot and have not been issued.
    pub bytes: u64,
    /// Nanoseconds that the disk transfers for those reads: see [`disk::Costs::transfer`].
    pub transfer: u64,
    /// Bytes of buffers (held now, or held once those reads are done) that are let go at the end
    /// of the slot.
    pub freed: u64,
    /// How many those reads are.
    pub reads: u32,
    /// How many of them go on where another ends.
    pub follows: SequentialReads,
}

/// What was booked for one slot, issued or not: the streams' demand as it was decided on, for the
/// policies that give no credit for reading ahead.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BookedLoad {
    /// Bytes of the reads that are due by the end of the slot.
    pub bytes: u64,
    /// Nanoseconds that the disk transfers for them.
    pub transfer: u64,
    /// How many they are.
    pub reads: u32,
}

impl BookedLoad {
    /// The booked part of a slot of a demand of which nothing has been read.
    #[inline]
    pub(crate) fn of(load: &SlotLoad) -> Self {
        Self { bytes: load.bytes, transfer: load.transfer, reads: load.reads }
    }
}

sums!(BookedLoad { bytes, transfer, reads }, "the books balance");

impl SlotLoad {
    pub(crate) const NOTHING: Self =
        Self { bytes: 0, transfer: 0, freed: 0, reads: 0, follows: SequentialReads::NONE };
}

// Reads are streams times pieces of one slot, both bounded far below the largest number.
sums!(SlotLoad { bytes, transfer, freed, reads, follows }, "the books balance");

/// One sum per slot from the current slot on, and one for all slots that are past.
#[derive(Clone, Debug, Default)]
pub struct Ledger<T> {
    current: SlotIndex,
    // Slot `current + i` is `slots[start + i]`; the front is cut off lazily, the tail holds no
    // trailing zeros, so its length is how far the bookings reach.
    slots: Vec<T>,
    start: usize,
    past: T,
}

impl<T: Copy + Default + PartialEq + AddAssign + SubAssign> Ledger<T> {
    /// The slot of the first sum that is kept apart.
    pub fn current(&self) -> SlotIndex {
        self.current
    }

    /// Puts `amount` on `slot`; on the past if the slot is over.
    pub fn add(&mut self, slot: SlotIndex, amount: T) {
        // A zero must not lengthen the list: its length is how far bookings reach.
        if amount == T::default() {
            return;
        }
        let Some(ahead) = self.ahead(slot) else {
            self.past += amount;
            return;
        };
        let at = self.start + ahead;
        if at >= self.slots.len() {
            self.slots.resize(at + 1, T::default());
        }
        self.slots[at] += amount;
    }

    /// Puts `amounts` on the slots from `first` on; none of them is past.
    pub fn add_all(&mut self, first: SlotIndex, amounts: impl ExactSizeIterator<Item = T>) {
        if amounts.len() == 0 {
            return;
        }
        // A demand is booked in the slot in which it was decided on, and begins there or later.
        let from = self.start + self.ahead(first).expect("only slots to come");
        let end = from + amounts.len();
        if end > self.slots.len() {
            self.slots.resize(end, T::default());
        }
        for (sum, amount) in self.slots[from..end].iter_mut().zip(amounts) {
            *sum += amount;
        }
        // The amounts may end in zeros, and the list has no trailing zeros.
        self.trim();
    }

    /// Takes off what [`Ledger::add`] put on, whenever that was.
    pub fn sub(&mut self, slot: SlotIndex, amount: T) {
        if amount == T::default() {
            return;
        }
        let Some(ahead) = self.ahead(slot) else {
            self.past -= amount;
            return;
        };
        // The index exists as long as the books balance: what is taken off here was added here.
        self.slots[self.start + ahead] -= amount;
        self.trim();
    }

    fn trim(&mut self) {
        while self.slots.len() > self.start && self.slots.last() == Some(&T::default()) {
            self.slots.pop();
        }
    }

    /// Makes `slot` the current one; what was booked before it becomes past.
    pub fn advance(&mut self, slot: SlotIndex) {
        let steps = usize::try_from(slot.0.saturating_sub(self.current.0)).unwrap_or(usize::MAX);
        let cut = steps.min(self.slots.len() - self.start);
        // Past sums are kept: an overdue read is still taken off with its own numbers.
        for i in self.start..self.start + cut {
            self.past += self.slots[i];
        }
        self.start += cut;
        self.current = self.current.max(slot);
        if self.start == self.slots.len() {
            self.slots.clear();
            self.start = 0;
        } else if self.start > COMPACT_AFTER && self.start * 2 > self.slots.len() {
            // What is moved is shorter than what was cut off, so the copy costs constant time per
            // slot.
            self.slots.drain(..self.start);
            self.start = 0;
        }
    }

    /// Sums from the current slot on, as far as any is not zero.
    pub fn ahead_of_now(&self) -> &[T] {
        &self.slots[self.start..]
    }

    /// The sum of everything that is past.
    pub fn past(&self) -> T {
        self.past
    }

    /// Forgets the past, for sums that mean nothing once their slot is over. What was added to it
    /// must not be taken off any more.
    pub fn forget_past(&mut self) {
        self.past = T::default();
    }

    /// Everything that is booked.
    pub fn total(&self) -> T {
        let mut total = self.past;
        for amount in self.ahead_of_now() {
            total += *amount;
        }
        total
    }

    fn ahead(&self, slot: SlotIndex) -> Option<usize> {
        let ahead = slot.0.checked_sub(self.current.0)?;
        Some(usize::try_from(ahead).expect("slots ahead are bounded by the horizon"))
    }
}

/// The cut-off front is given back when it is this long and more than half of the whole: an
/// hour's slots, copied once an hour.
const COMPACT_AFTER: usize = 7200;

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn a_ledger_is_a_map_from_slot_to_sum() {
        for seed in 0..200 {
            let mut random = fastrand::Rng::with_seed(seed);
            let mut ledger = Ledger::<u64>::default();
            let mut oracle = BTreeMap::<u64, u64>::new();
            let mut booked = Vec::new();
            let mut now = 0;
            for _ in 0..200 {
                match random.u8(0..5) {
                    4 => {
                        let amounts: Vec<u64> =
                            (0..random.usize(0..9)).map(|_| random.u64(0..3)).collect();
                        ledger.add_all(SlotIndex(now + 2), amounts.iter().copied());
                        for (slot, amount) in (now + 2..).zip(amounts) {
                            *oracle.entry(slot).or_default() += amount;
                            booked.push((slot, amount));
                        }
                    }
                    0 | 1 => {
                        let entry = (now + random.u64(0..50), random.u64(1..9));
                        ledger.add(SlotIndex(entry.0), entry.1);
                        *oracle.entry(entry.0).or_default() += entry.1;
                        booked.push(entry);
                    }
                    2 if !booked.is_empty() => {
                        let entry = booked.swap_remove(random.usize(..booked.len()));
                        ledger.sub(SlotIndex(entry.0), entry.1);
                        *oracle.get_mut(&entry.0).unwrap() -= entry.1;
                    }
                    _ => {
                        now += random.u64(0..5);
                        ledger.advance(SlotIndex(now));
                    }
                }
                let past: u64 = oracle.range(..now).map(|(_, n)| n).sum();
                assert_eq!(ledger.past(), past, "seed {seed}");
                for (i, sum) in ledger.ahead_of_now().iter().enumerate() {
                    assert_eq!(
                        *sum,
                        oracle.get(&(now + i as u64)).copied().unwrap_or(0),
                        "seed {seed}"
                    );
                }
                assert_eq!(ledger.total(), oracle.values().sum::<u64>(), "seed {seed}");
            }
            for (slot, amount) in booked {
                ledger.sub(SlotIndex(slot), amount);
            }
            assert_eq!((ledger.total(), ledger.ahead_of_now().len()), (0, 0), "seed {seed}");
        }
    }

    #[test]
    #[should_panic(expected = "the books balance")]
    fn taking_off_what_was_never_put_on_is_a_broken_belief() {
        let mut ledger = Ledger::<SlotLoad>::default();
        ledger.add(SlotIndex(3), SlotLoad { reads: 1, ..SlotLoad::default() });
        ledger.sub(SlotIndex(3), SlotLoad { reads: 2, ..SlotLoad::default() });
    }
}
