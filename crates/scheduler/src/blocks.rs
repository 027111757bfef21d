//! Reads and transfer of several slots, kept beside the slots' own sums, so that who only wants to
//! see that there is time enough need not add them up.
//!
//! ```text
//!   slots     ... 14 15 │16 17 18 19 20 21 22 23│24 25 26 ...  blocks begin at multiples of their
//!   blocks         1    │          2            │     3        length, whatever slot it is now
//! ```

use crate::ledger::SlotLoad;
use crate::piece::PieceDue;
use crate::sums::sums;
use units::SlotIndex;

/// What is due in the slots of one block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Block {
    pub(crate) reads: u64,
    pub(crate) transfer: u64,
}

impl Block {
    /// Which block a slot is in. Blocks are counted as slots are, so that a ledger takes them.
    #[inline]
    pub(crate) fn number(slot: SlotIndex) -> SlotIndex {
        SlotIndex(slot.0 / BLOCK as u64)
    }

    #[inline]
    pub(crate) fn of_piece(piece: &PieceDue) -> Self {
        Self { reads: 1, transfer: piece.transfer.into() }
    }

    /// The blocks of slots one after another, and their numbers.
    pub(crate) fn all(
        first: SlotIndex,
        mut loads: &[SlotLoad],
    ) -> impl Iterator<Item = (SlotIndex, Self)> {
        let (mut number, begun) = (Self::number(first), first.0 % BLOCK as u64);
        // The first slot may be in the middle of its block; all later blocks are whole.
        let mut slots = BLOCK - usize::try_from(begun).expect("of a block");
        std::iter::from_fn(move || {
            let (block, rest) = loads.split_at(slots.min(loads.len()));
            (loads, slots) = (rest, BLOCK);
            let mut sum = Self::default();
            block.iter().for_each(|load| sum += Self::of(load));
            let of = number;
            number = number.next();
            (!block.is_empty()).then_some((of, sum))
        })
    }

    #[inline]
    pub(crate) fn of(load: &SlotLoad) -> Self {
        Self { reads: load.reads.into(), transfer: load.transfer }
    }
}

sums!(Block { reads, transfer }, "the books balance");

/// Slots in one: few enough that a disk that reads some seconds ahead has time for all of them
/// before the first is due.
pub(crate) const BLOCK: usize = 8;
