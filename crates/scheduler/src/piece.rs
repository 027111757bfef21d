//! One piece of a stream: what is read at once, and the slots in which it must be in memory.

use crate::visits::SequentialReads;
use units::SlotIndex;

/// One piece of a demand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PieceDue {
    /// Number of the piece.
    pub piece: u32,
    /// The piece must be in memory by the end of this slot.
    pub due: SlotIndex,
    /// The piece's buffer is released at the end of this slot.
    pub release: SlotIndex,
    /// Bytes of the piece.
    pub len: u32,
    /// Nanoseconds that its disk transfers for it, where that is counted.
    pub transfer: u32,
    /// Slots until the next piece is due, if it goes on where this one ends.
    pub followed_after: Option<u8>,
}

impl PieceDue {
    /// Where the piece that goes on where this one ends is counted, and as what.
    #[inline]
    pub(crate) fn follower(&self) -> Option<(SlotIndex, SequentialReads)> {
        self.followed_after.map(|slots| (self.due + u64::from(slots), SequentialReads::one(slots)))
    }
}
