//! Which reads a disk gets next: chosen by deadline, issued by place.
//!
//! ```text
//!   EdfQueue: streams by the due slot of their next read
//!      │ earliest first, as many as the slot guarantees, as long as each fits into memory
//!      ▼
//!   Batch ──▶ sorted by place (SCAN), every other batch from the far end
//! ```
//!
//! A batch is closed by the first read that does not fit: letting a later, smaller one slip
//! through would fill memory with what is not urgent and make the urgent one late (priority
//! inversion; a prototype lost a deadline to exactly that).

use disk::Costs;
use std::collections::BTreeSet;
use units::SlotIndex;

/// Streams with something to read, by the due slot of their next read; ties go to the older key.
#[derive(Clone, Debug)]
pub struct EdfQueue<K> {
    queue: BTreeSet<(SlotIndex, K)>,
}

impl<K> Default for EdfQueue<K> {
    fn default() -> Self {
        Self { queue: BTreeSet::new() }
    }
}

impl<K: Ord + Copy> EdfQueue<K> {
    /// Puts `key` where its next read belongs.
    pub fn insert(&mut self, due: SlotIndex, key: K) {
        self.queue.insert((due, key));
    }

    /// Takes it out.
    pub fn remove(&mut self, due: SlotIndex, key: K) {
        self.queue.remove(&(due, key));
    }

    /// The most urgent.
    pub fn first(&self) -> Option<(SlotIndex, K)> {
        self.queue.first().copied()
    }

    /// How many streams have something to read.
    pub fn len(&self) -> usize {
        self.queue.len()
    }

    /// Whether none has.
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }
}

/// Reads chosen for one disk, each offered in EDF order.
#[derive(Clone, Debug)]
pub struct Batch<T> {
    reads: u32,
    chosen: Vec<(u64, T)>,
}

impl<T> Batch<T> {
    /// Room for `reads` reads.
    pub fn new(reads: u32) -> Self {
        Self { reads, chosen: Vec::new() }
    }

    /// Whether a read of `len` bytes may be taken with `room` bytes of buffers free. Once the
    /// answer was no, stop offering.
    pub fn fits(&self, len: u64, room: u64) -> bool {
        self.reads > 0 && len <= room
    }

    /// Takes a read that lies at `place`. There must be room.
    pub fn take(&mut self, place: u64, read: T) {
        self.reads = self.reads.checked_sub(1).expect("asked before taking");
        self.chosen.push((place, read));
    }

    /// The reads in the order of issue.
    pub fn in_order(mut self, sweep: Sweep) -> impl Iterator<Item = T> {
        self.chosen.sort_by_key(|(place, _)| *place);
        if sweep == Sweep::Inward {
            self.chosen.reverse();
        }
        self.chosen.into_iter().map(|(_, read)| read)
    }
}

/// The direction in which the heads move through a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sweep {
    /// Low offsets first.
    #[default]
    Outward,
    /// High offsets first.
    Inward,
}

impl Sweep {
    /// The direction that begins with the end of a batch that is nearer to the arm, which is where
    /// the last read issued ended: what [`Costs`] is about.
    pub fn from_nearer_end(costs: &Costs, arm: u64, lowest: u64, highest: u64) -> Self {
        let far = |offset: u64| (costs.place(offset) - costs.place(arm)).abs();
        if far(highest) < far(lowest) { Self::Inward } else { Self::Outward }
    }

    /// The other one: the next batch starts where this one ended, without a seek across the disk.
    pub fn turned(self) -> Self {
        match self {
            Self::Outward => Self::Inward,
            Self::Inward => Self::Outward,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chosen_by_deadline_issued_by_place() {
        let reads = [(7, 50, "b"), (9, 10, "d"), (3, 90, "a"), (8, 30, "c")];
        let mut queue = EdfQueue::default();
        for (due, place, name) in reads {
            queue.insert(SlotIndex(due), (place, name));
        }
        let mut batch = Batch::new(3);
        while let Some((due, (place, name))) = queue.first() {
            if !batch.fits(100, 1000) {
                break;
            }
            queue.remove(due, (place, name));
            batch.take(place, name);
        }
        let out: Vec<_> = batch.clone().in_order(Sweep::Outward).collect();
        let back: Vec<_> = batch.in_order(Sweep::Outward.turned()).collect();
        assert_eq!(
            (out, back),
            (vec!["c", "b", "a"], vec!["a", "b", "c"]),
            "d is not urgent enough"
        );
    }

    #[test]
    fn reads_or_memory_close_a_batch() {
        let mut batch = Batch::new(1);
        assert!(batch.fits(50, 50) && !batch.fits(51, 50));
        batch.take(0, ());
        assert!(!batch.fits(50, 50), "no reads left");
    }
}
