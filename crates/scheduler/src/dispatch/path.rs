//! The charge of reads that a disk makes in a known order: what is left of a sweep, with the
//! beginning of the next one behind it.
//!
//! ```text
//!   place       0                       1
//!   in device     ◀── b ◀────── a ◀─ arm         the end of one sweep: a, b
//!                     └────▶ c ────▶ d           the beginning of the next: c, d
//!   steps       arm → a, a → b, b → c, c → d     each at the bound of its own distance
//! ```
//!
//! The bound of a sweep does not apply here: the head may cross the disk more than once, and what
//! is left of a sweep may contain its longest seeks. Each read has its own charge, so the charge of
//! the rest falls by at least the time that a read took.

use crate::sums::sums;
use disk::Costs;

/// The charge of reads along the path of the head.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathCharge {
    reads: u64,
    /// Nanoseconds of positioning, step by step.
    steps: u64,
    /// Nanoseconds of transfer.
    transfer: u64,
}

impl PathCharge {
    /// The charge of one read. `head` is where the read before it ends, if that is known;
    /// `sequel` is the same if the device makes no pause between the two.
    pub fn of_read(
        costs: &Costs,
        head: Option<u64>,
        sequel: Option<u64>,
        offset: u64,
        transfer: u64,
    ) -> Self {
        let following = costs.following().filter(|_| sequel == Some(offset));
        let steps = following.unwrap_or_else(|| costs.step(head, offset));
        Self { reads: 1, steps, transfer }
    }

    /// Number of reads.
    pub fn reads(self) -> u64 {
        self.reads
    }

    /// Nanoseconds that the reads take at most.
    pub fn nanos(self, costs: &Costs) -> u64 {
        if costs.has_path() {
            return self.steps.saturating_add(self.transfer);
        }
        // Without an actuator the order does not matter, and reads may overlap.
        costs.batch(self.reads, self.transfer)
    }
}

sums!(PathCharge { reads, steps, transfer }, "it was added");
