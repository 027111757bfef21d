//! Admission: whom to let in. One interface, many policies; the answer is a value.
//!
//! ```text
//!   counted in      one slot by itself                      carried over from quiet slots
//!   ──────────────────────────────────────────────────────────────────────────────────────────
//!   reads           simple maximum, instantaneous maximum,  vbrSim, observed, service curve
//!                   average
//!   disk time       SCAN, grouped sweeps, full stroke       time-domain, rates
//!     by chance     Chernoff, normal, overflow              time-domain by chance
//!   mean rates      service cycle
//! ```
//!
//! Each is one file, with its source and what it does where a disk's [`Facts`](crate::Facts) do not
//! suffice; [`PolicyKind`] is the list. No policy knows the others' names but for its fallback.

mod average;
mod chance;
mod chernoff;
mod full_stroke;
mod grouped_sweeps;
mod instantaneous_maximum;
mod kinds;
mod memory;
mod none;
mod normal;
mod observed;
mod overflow;
mod rates;
mod rounds;
mod scan;
mod service_curve;
mod service_cycle;
mod shift;
mod simple_maximum;
mod time_domain;
mod time_domain_by_chance;
mod vbr_sim;
mod walk;

use crate::books::DiskBooks;
use crate::demand::Demand;
use crate::facts::Facts;
use crate::windows::Plan;
use std::time::Duration;
use units::{Moment, SlotIndex};

pub use kinds::PolicyKind;
pub use shift::{EXACT_TESTS, earliest_shift};
pub use vbr_sim::{least_slack, spare_reads};

/// Decides about one disk.
pub trait Policy: Sync {
    /// Whether `demand` fits beside what is booked.
    ///
    /// Where reads are counted, everything due is read in the slots *after* the current one: what
    /// runs now was decided when it began. Where time is counted, reading goes on at
    /// `supply.free_at`, and a yes leaves in `plan` what the run must follow from now on, should
    /// the demand be booked. Nobody else touches `plan`.
    fn verdict(
        &self,
        books: &DiskBooks,
        supply: &Supply<'_>,
        demand: &Demand,
        plan: &mut Plan,
    ) -> Verdict;

    /// Of a demand that was refused with this shortage, the same books and supply: how many slots,
    /// from where it begins on, it cannot begin in for certain. At least one; a policy need know
    /// nothing better.
    fn ruled_out(
        &self,
        _: &DiskBooks,
        _: &Supply<'_>,
        _demand: &Demand,
        _refused: Shortage,
    ) -> u64 {
        1
    }
}

/// What one disk and its memory can give.
#[derive(Clone, Copy, Debug)]
pub struct Supply<'a> {
    /// Reads it completes in any slot.
    pub min_read: u32,
    /// Bytes of the largest read.
    pub read_size: u64,
    /// Bytes of buffers: the disk's share.
    pub memory: u64,
    /// The scheduling period.
    pub slot: Duration,
    /// When everything that is in the device is certainly done; not before now.
    pub free_at: Moment,
    /// What else is known of it.
    pub facts: &'a Facts,
}

/// The answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Come in.
    Admit {
        /// By how much, at the least.
        slack: Slack,
    },
    /// No room.
    Refuse(Shortage),
}

/// What an admitted schedule has to spare where it is tightest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slack {
    /// The policy does not look ahead.
    Unknown,
    /// The least, over all slots, by which what the disk will have read exceeds what is due.
    Reads(u64),
    /// The least, over all windows, between their last read's end and their deadline.
    Time(Duration),
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
