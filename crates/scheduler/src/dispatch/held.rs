//! Buffers by the time of their release.

use std::collections::BTreeMap;
use units::SlotIndex;

/// Buffers that are held, by the slot at whose end each is released.
#[derive(Clone, Debug)]
pub struct ReleaseQueue<T> {
    by_slot: BTreeMap<SlotIndex, Vec<T>>,
}

impl<T> Default for ReleaseQueue<T> {
    fn default() -> Self {
        Self { by_slot: BTreeMap::new() }
    }
}

impl<T> ReleaseQueue<T> {
    /// Holds a buffer until the end of `slot`.
    pub fn hold(&mut self, slot: SlotIndex, buffer: T) {
        self.by_slot.entry(slot).or_default().push(buffer);
    }

    /// Removes the buffers that are released at the end of `over` or before, with their slots, in
    /// order.
    pub fn expired(&mut self, over: SlotIndex) -> impl Iterator<Item = (SlotIndex, T)> + use<T> {
        let later = self.by_slot.split_off(&over.next());
        let expired = std::mem::replace(&mut self.by_slot, later);
        expired.into_iter().flat_map(|(slot, all)| all.into_iter().map(move |one| (slot, one)))
    }

    /// The slot at whose end the next buffer is released.
    pub fn first(&self) -> Option<SlotIndex> {
        self.by_slot.first_key_value().map(|(slot, _)| *slot)
    }

    /// Whether no buffer is held.
    pub fn is_empty(&self) -> bool {
        self.by_slot.is_empty()
    }
}
