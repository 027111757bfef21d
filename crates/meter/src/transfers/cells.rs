//! Positions that do not repeat: a permutation over the cells of a file, without a table.
//!
//! A file is divided into cells as long as the longest transfer. Each transfer, and each block of a
//! random one, takes the next cell of the permutation: no byte is requested twice before all cells
//! have been used, so that no cache helps. The permutation is a Feistel network of four rounds on
//! the next power of four, repeated until the result is within the file (Black and Rogaway,
//! "Ciphers with arbitrary finite domains", 2002, section 4).

/// The positions of a file in random order, none repeated before all were used.
#[derive(Clone, Debug)]
pub(crate) struct Cells {
    count: u64,
    cell: u64,
    half: u32,
    key: u64,
    taken: u64,
}

impl Cells {
    /// The cells of a file of `length` bytes. There is at least one.
    pub(crate) fn new(length: u64, cell: u64, key: u64) -> Self {
        let count = (length / cell).max(1);
        // At least one bit in each half: the network needs two halves.
        let bits = u64::BITS - (count - 1).leading_zeros();
        Self { count, cell, half: bits.div_ceil(2).max(1), key, taken: 0 }
    }

    /// The beginning of the next cell. After the last cell they are repeated in another order.
    pub(super) fn next(&mut self) -> u64 {
        let (round, number) = (self.taken / self.count, self.taken % self.count);
        self.taken += 1;
        self.permuted(number, round) * self.cell
    }

    /// The size of a cell in bytes.
    pub(crate) fn cell(&self) -> u64 {
        self.cell
    }

    /// The position of a byte after the permutation of the cells; bytes behind the last cell stay.
    pub(crate) fn moved(&self, place: u64) -> u64 {
        let (number, within) = (place / self.cell, place % self.cell);
        if number < self.count { self.permuted(number, 0) * self.cell + within } else { place }
    }

    /// The index of a cell in the permutation.
    fn permuted(&self, mut place: u64, round: u64) -> u64 {
        loop {
            place = self.mixed(place, round);
            if place < self.count {
                return place;
            }
        }
    }

    fn mixed(&self, place: u64, round: u64) -> u64 {
        let mask = (1 << self.half) - 1;
        let (mut left, mut right) = (place >> self.half, place & mask);
        for turn in 0..4 {
            // The turns need two bits; the number of the round begins above them.
            let salt = self.key ^ round << 3 ^ turn;
            let hashed = (right ^ salt.rotate_left(17))
                .wrapping_add(salt)
                .wrapping_mul(0x9e37_79b9_7f4a_7c15)
                .rotate_left(29)
                .wrapping_mul(0xbf58_476d_1ce4_e5b9);
            (left, right) = (right, left ^ hashed >> 32 & mask);
        }
        left << self.half | right
    }
}

#[cfg(test)]
mod tests {
    use super::Cells;
    use std::collections::BTreeSet;

    #[test]
    fn every_cell_is_used_once_and_then_again_in_another_order() {
        for count in [1, 2, 3, 5, 64, 100, 1000] {
            let mut cells = Cells::new(count * 4096 + 100, 4096, 7);
            let mut round = || (0..count).map(|_| cells.next()).collect::<Vec<u64>>();
            let (first, second) = (round(), round());
            let all: BTreeSet<u64> = (0..count).map(|cell| cell * 4096).collect();
            assert_eq!(first.iter().copied().collect::<BTreeSet<_>>(), all, "{count} cells");
            assert_eq!(second.iter().copied().collect::<BTreeSet<_>>(), all, "{count} cells");
            assert!(count < 64 || first != second && !first.is_sorted(), "{count} cells");
        }
    }
}
