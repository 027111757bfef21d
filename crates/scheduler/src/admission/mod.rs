//! Admission: whom to let in. One interface, many policies; the answer is a value.
//!
//! | policy | test per disk | holds what it promises |
//! |---|---|---|
//! | [`PolicyKind::TimeDomain`] | simulate in disk time: every sweep by its deadline, in finite memory | yes |
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
mod time_domain;
mod vbr_sim;

use crate::books::DiskBooks;
use crate::demand::Demand;
use crate::facts::Facts;
use crate::windows::Plan;
use std::time::Duration;
use units::{Moment, SlotIndex};

pub use shift::earliest_shift;
pub use vbr_sim::{least_slack, spare_reads};

/// The admission policies that can be chosen at run time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PolicyKind {
    /// Simulation of the schedule in disk time. Where no times are known: [`PolicyKind::VbrSim`].
    TimeDomain,
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

struct Row {
    kind: PolicyKind,
    name: &'static str,
    about: &'static str,
    guarantees: bool,
    policy: &'static dyn Policy,
}

const TABLE: [Row; 6] = [
    Row {
        kind: PolicyKind::TimeDomain,
        name: "time-domain",
        about: "as many as keep every deadline, counted in the disk's time; the default",
        guarantees: true,
        policy: &time_domain::TimeDomain,
    },
    Row {
        kind: PolicyKind::VbrSim,
        name: "vbrsim",
        about: "as many as keep every deadline, counted in reads of one size",
        guarantees: true,
        policy: &vbr_sim::VbrSim,
    },
    Row {
        kind: PolicyKind::SimpleMaximum,
        name: "simple-maximum",
        about: "the sum of everybody's peaks",
        guarantees: true,
        policy: &simple_maximum::SimpleMaximum,
    },
    Row {
        kind: PolicyKind::InstantaneousMaximum,
        name: "instantaneous-maximum",
        about: "what is due in each slot, without working ahead",
        guarantees: true,
        policy: &instantaneous_maximum::InstantaneousMaximum,
    },
    Row {
        kind: PolicyKind::Average,
        name: "average",
        about: "the sum of the means; guarantees nothing",
        guarantees: false,
        policy: &average::Average,
    },
    Row {
        kind: PolicyKind::None,
        name: "none",
        about: "everybody; guarantees nothing, for comparison",
        guarantees: false,
        policy: &none::None,
    },
];

impl PolicyKind {
    /// Names and what they mean, the default first: for a command line.
    pub const CHOICES: &[(&str, &str)] = &choices();

    /// All of them, the default first.
    pub fn all() -> impl ExactSizeIterator<Item = Self> {
        TABLE.iter().map(|row| row.kind)
    }

    /// The one of this name.
    pub fn named(name: &str) -> Option<Self> {
        TABLE.iter().find(|row| row.name == name).map(|row| row.kind)
    }

    /// Its name on command lines and in reports.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// Whom it lets in, in a few words.
    pub fn about(self) -> &'static str {
        self.row().about
    }

    /// The policy itself.
    pub fn policy(self) -> &'static dyn Policy {
        self.row().policy
    }

    /// Whether an admitted stream is sure to be on time while the disk keeps its guarantee.
    pub fn guarantees(self) -> bool {
        self.row().guarantees
    }

    /// Whether it counts the disk's time, given these facts: then the run follows a [`Plan`];
    /// otherwise it makes the guaranteed number of reads in each slot.
    pub fn plans(self, facts: &Facts) -> bool {
        matches!(self, Self::TimeDomain) && facts.costs.is_some()
    }

    fn row(self) -> &'static Row {
        TABLE.iter().find(|row| row.kind == self).expect("every policy has a row")
    }
}

const fn choices() -> [(&'static str, &'static str); TABLE.len()] {
    let mut choices = [("", ""); TABLE.len()];
    let mut i = 0;
    while i < TABLE.len() {
        choices[i] = (TABLE[i].name, TABLE[i].about);
        i += 1;
    }
    choices
}

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
