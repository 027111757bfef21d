//! Streams by the deadline of their next read.

use std::collections::BTreeSet;
use units::SlotIndex;

/// Streams that have something to read, by the due slot of their next read. Among streams that are
/// due in the same slot the smaller key is first.
#[derive(Clone, Debug)]
pub struct EdfQueue<S> {
    queue: BTreeSet<(SlotIndex, S)>,
}

impl<S> Default for EdfQueue<S> {
    fn default() -> Self {
        Self { queue: BTreeSet::new() }
    }
}

impl<S: Ord + Copy> EdfQueue<S> {
    /// Inserts `stream`, whose next read is due in slot `due`.
    pub fn insert(&mut self, due: SlotIndex, stream: S) {
        self.queue.insert((due, stream));
    }

    /// Removes `stream`, whose next read is due in slot `due`.
    pub fn remove(&mut self, due: SlotIndex, stream: S) {
        self.queue.remove(&(due, stream));
    }

    /// The stream with the earliest deadline.
    pub fn first(&self) -> Option<(SlotIndex, S)> {
        self.queue.first().copied()
    }

    /// Number of streams that have something to read.
    pub fn len(&self) -> usize {
        self.queue.len()
    }

    /// Whether no stream has anything to read.
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }
}
