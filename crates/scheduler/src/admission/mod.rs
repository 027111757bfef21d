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
//! Each is one file, with its source and what it does where a disk's
//! [`DiskTimings`](crate::DiskTimings) do not suffice; [`PolicyKind`] is the list. No policy knows
//! the others' names but for its fallback.

mod admit_all;
mod average;
mod chance;
mod chernoff;
mod full_stroke;
mod grouped_sweeps;
mod instantaneous_maximum;
mod kinds;
mod memory;
mod normal;
mod observed;
mod overflow;
mod rates;
mod rounds;
mod scan;
mod schedule;
mod service_curve;
mod service_cycle;
mod shift;
mod simple_maximum;
mod time_domain;
mod time_domain_by_chance;
mod vbr_sim;

use self::memory::Merged;
use self::vbr_sim::{at_least, disk_only};
use crate::books::DiskBooks;
use crate::demand::Demand;
use crate::windows::WindowPlan;
use std::time::Duration;
use units::SlotIndex;

pub use crate::supply::Supply;
pub use kinds::PolicyKind;
pub use shift::{EXACT_TESTS, earliest_shift};
pub use vbr_sim::{least_slack, spare_reads};

/// Admission control for one disk.
pub trait Policy: Sync {
    /// Whether `demand` fits beside what is booked.
    ///
    /// Where reads are counted, everything due is read in the slots *after* the current one: what
    /// runs now was decided when it began. Where time is counted, reading continues at
    /// `supply.free_at`, and the verdict carries the plan that the disk must follow from now on if
    /// the demand is booked.
    ///
    /// An empty demand asks whether what is booked fits, for instance beside more writes.
    fn decide(&self, request: AdmissionRequest<'_>) -> Verdict;

    /// How many slots, from its own on, a demand that was refused with this shortage certainly
    /// cannot begin in, with the books and supply of that refusal. At least one, which is always
    /// right.
    fn later_starts_ruled_out(&self, _request: AdmissionRequest<'_>, _refused: Shortage) -> u64 {
        1
    }
}

/// What a policy decides on: whether `demand` fits beside what is booked on a disk.
#[derive(Clone, Copy, Debug)]
pub struct AdmissionRequest<'a> {
    /// What is booked on the disk.
    pub books: &'a DiskBooks,
    /// What the disk and its memory can give.
    pub supply: &'a Supply<'a>,
    /// What the candidate needs.
    pub demand: &'a Demand,
}

impl dyn Policy + '_ {
    /// Whether `demand` fits beside `books`; see [`Policy::decide`].
    pub fn verdict(&self, books: &DiskBooks, supply: &Supply<'_>, demand: &Demand) -> Verdict {
        // Policies that look at each slot by itself know no slot in which the disk does less.
        if supply.owed > 0 {
            let slots = Merged::new(books, demand);
            let fits = disk_only(&slots, books, at_least(supply));
            if !fits.is_admit() {
                return fits;
            }
        }
        self.decide(AdmissionRequest { books, supply, demand })
    }

    /// How many starts are ruled out by a refusal; see [`Policy::later_starts_ruled_out`].
    pub fn ruled_out(
        &self,
        books: &DiskBooks,
        supply: &Supply<'_>,
        demand: &Demand,
        refused: Shortage,
    ) -> u64 {
        self.later_starts_ruled_out(AdmissionRequest { books, supply, demand }, refused)
    }
}

/// Answer of admission control for one disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The demand fits.
    Admit {
        /// What the schedule has to spare where it is tightest.
        slack: Slack,
        /// What the disk must follow if the demand is booked. Empty, and without meaning, where
        /// reads are counted.
        plan: WindowPlan,
    },
    /// The demand does not fit.
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

impl Slack {
    /// [`Slack::Time`] of a schedule in which nothing is due.
    pub const NOTHING_DUE: Duration = Duration::from_nanos(u64::MAX);
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

impl Resource {
    /// The resource's word in JSON and metrics.
    pub fn word(self) -> &'static str {
        match self {
            Self::Disk => "disk",
            Self::Memory => "memory",
            Self::Network => "network",
        }
    }
}

impl Verdict {
    // For policies that count reads: the disk needs no plan.
    fn admit(slack: Slack) -> Self {
        Self::Admit { slack, plan: WindowPlan::default() }
    }

    fn refuse(resource: Resource, slot: SlotIndex, missing: u64) -> Self {
        // Rounding may leave nothing missing, and a shortage of zero would read as a fit.
        Self::Refuse(Shortage { resource, slot, missing: missing.max(1) })
    }

    /// Whether the answer is yes.
    pub fn is_admit(&self) -> bool {
        matches!(self, Self::Admit { .. })
    }
}

#[cfg(test)]
mod tests;
