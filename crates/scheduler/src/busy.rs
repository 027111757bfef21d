//! The fewest reads that a disk completed in slots in which it always had some to make: the
//! observed minRead.
//!
//! ```text
//!   slots that were busy whole     67 71 69 70 68 ...  in blocks of BLOCK
//!   a block's fewest               67
//!   observed                       the fewest of the last BLOCKS blocks, once one is full
//! ```
//!
//! Source: D. Makaroff, J. Coutu, F. Liu, "Disk performance and VBR admission control for media
//! servers". It proves nothing, because nobody tried to make the disk slow; only the policy of that
//! name counts with it. What was slower than guaranteed is
//! [`ObservedCurve`](crate::ObservedCurve)'s, which all are held to.

use std::collections::VecDeque;

/// The fewest reads that a disk completed in any slot in which it was never idle, during the last
/// half hour of such slots.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BusySlots {
    // Each block's fewest, oldest first; the last is being filled.
    pub(crate) blocks: VecDeque<u32>,
    // Slots in the block that is being filled.
    pub(crate) filled: u32,
}

impl BusySlots {
    /// Records the reads of a slot in which the disk was never idle.
    pub fn slot_ended(&mut self, reads: u32) {
        if self.filled == 0 {
            if self.blocks.len() == BLOCKS {
                self.blocks.pop_front();
            }
            self.blocks.push_back(reads);
        }
        self.filled = (self.filled + 1) % BLOCK;
        let fewest = self.blocks.back_mut().expect("pushed when it was begun");
        *fewest = reads.min(*fewest);
    }

    /// The fewest reads of a busy slot; `None` until half a minute of busy slots is recorded.
    pub fn fewest(&self) -> Option<u32> {
        let whole = self.blocks.len() - usize::from(self.filled > 0);
        (whole > 0).then(|| self.blocks.iter().copied().min()).flatten()
    }

    /// Whether the state is one that recording slots can lead to.
    pub(crate) fn is_valid(&self) -> bool {
        self.filled == 0 || !self.blocks.is_empty()
    }
}

/// Half a minute of slots of 500 ms: so many are a sample.
pub(crate) const BLOCK: u32 = 60;
/// Half an hour of a busy disk.
pub(crate) const BLOCKS: usize = 60;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_fewest_of_the_last_half_hour_once_half_a_minute_was_seen() {
        let mut busy = BusySlots::default();
        busy.slot_ended(40);
        (2..BLOCK).for_each(|_| busy.slot_ended(70));
        assert_eq!(busy.fewest(), None, "too few to go by");
        busy.slot_ended(70);
        assert_eq!(busy.fewest(), Some(40));
        busy.slot_ended(30);
        assert_eq!(busy.fewest(), Some(30), "a slower one counts at once");
        let slots_kept = BLOCK as usize * BLOCKS;
        (1..slots_kept).for_each(|_| busy.slot_ended(65));
        assert_eq!(busy.fewest(), Some(30), "the 40 is forgotten, the 30 is the oldest");
        busy.slot_ended(65);
        assert_eq!(busy.fewest(), Some(65));
    }
}
