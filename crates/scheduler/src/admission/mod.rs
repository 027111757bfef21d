//! Admission: whom to let in. One interface, many policies; the answer is a value.
//!
//! | policy | test per disk | holds what it promises |
//! |---|---|---|
//! | [`PolicyKind::VbrSim`] | simulate: every read by its slot, in finite memory | yes |
//! | [`PolicyKind::SimpleMaximum`] | sum of peaks ≤ minRead | yes, at a price |
//! | [`PolicyKind::InstantaneousMaximum`] | sum per slot ≤ minRead | yes, at a price |
//! | [`PolicyKind::Average`] | sum of means ≤ minRead | no |
//! | [`PolicyKind::None`] | none | no |
//!
//! Source: D. Makaroff, J. Coutu, F. Liu, "Admission control for variable bit rate continuous
//! media streams" and the papers it compares; in words of reads per slot.

mod average;
mod instantaneous_maximum;
mod memory;
mod none;
mod shift;
mod simple_maximum;
mod vbr_sim;

use crate::books::DiskBooks;
use crate::demand::Demand;
use units::SlotIndex;

pub use shift::earliest_shift;
pub use vbr_sim::{least_slack, spare_reads};

/// The admission policies that can be chosen at run time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PolicyKind {
    /// Simulation of the schedule slot by slot (Makaroff, Neufeld & Hutchinson's vbrSim).
    VbrSim,
    /// Sum of the peaks.
    SimpleMaximum,
    /// Sum of the demands in each slot, nothing carried over.
    InstantaneousMaximum,
    /// Sum of the means; no guarantee.
    Average,
    /// Everybody comes in; no guarantee. For comparison.
    None,
}

impl PolicyKind {
    /// The policy itself.
    pub fn policy(self) -> &'static dyn Policy {
        match self {
            Self::VbrSim => &vbr_sim::VbrSim,
            Self::SimpleMaximum => &simple_maximum::SimpleMaximum,
            Self::InstantaneousMaximum => &instantaneous_maximum::InstantaneousMaximum,
            Self::Average => &average::Average,
            Self::None => &none::None,
        }
    }

    /// Whether an admitted stream is sure to be on time while the disk keeps its guarantee.
    pub fn guarantees(self) -> bool {
        matches!(self, Self::VbrSim | Self::SimpleMaximum | Self::InstantaneousMaximum)
    }
}

/// Decides about one disk.
pub trait Policy: Sync {
    /// Whether `demand` fits beside what is booked.
    ///
    /// Everything due is read in the slots *after* the current one: what runs now was decided
    /// when it began.
    fn verdict(&self, books: &DiskBooks, supply: &Supply, demand: &Demand) -> Verdict;
}

/// What one disk and its memory can give.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Supply {
    /// Reads it completes in any slot.
    pub min_read: u32,
    /// Bytes of the largest read.
    pub read_size: u64,
    /// Bytes of buffers: the disk's share.
    pub memory: u64,
}

/// The answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Come in.
    Admit {
        /// The least, over all slots, by which what the disk will have read exceeds what is due;
        /// in reads. What a policy that does not look ahead cannot know is zero.
        slack: u64,
    },
    /// No room.
    Refuse(Shortage),
}

/// What is short, when, and by how much.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shortage {
    /// The scarce thing.
    pub resource: Resource,
    /// The slot by the end of which it would be missed.
    pub slot: SlotIndex,
    /// Reads (disk) or bytes (memory, network) too many, at least one.
    pub missing: u64,
}

/// What can run out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Resource {
    /// Reads per slot of one disk.
    Disk,
    /// Buffers.
    Memory,
    /// Bits per second to viewers.
    Network,
}

impl Verdict {
    fn refuse(resource: Resource, slot: SlotIndex, missing: u64) -> Self {
        Self::Refuse(Shortage { resource, slot, missing: missing.max(1) })
    }

    /// Whether the answer is yes.
    pub fn is_admit(&self) -> bool {
        matches!(self, Self::Admit { .. })
    }
}

#[cfg(test)]
mod tests;
