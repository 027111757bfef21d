//! The list of policies: names, what they mean, what they promise.

use super::Policy;
use super::rounds::ByRound;
use super::schedule::ByWindow;
use crate::disk_timings::DiskTimings;

/// The admission policies that can be chosen at run time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PolicyKind {
    /// Simulation of the schedule in disk time. Where no times are known:
    /// [`PolicyKind::ServiceCurve`].
    TimeDomain,
    /// Simulation of the schedule by a measured service curve. Without one: [`PolicyKind::VbrSim`].
    ServiceCurve,
    /// Simulation of the schedule slot by slot (Makaroff, Neufeld & Hutchinson's vbrSim).
    VbrSim,
    /// Four terms of reads, bytes and writes. Without them: [`PolicyKind::TimeDomain`].
    Rates,
    /// A sweep's bound in each slot. Where no times are known:
    /// [`PolicyKind::InstantaneousMaximum`].
    Scan,
    /// Four sweeps' bound in each slot. Where no times are known:
    /// [`PolicyKind::InstantaneousMaximum`].
    GroupedSweeps,
    /// Özden, Rastogi & Silberschatz's round; no guarantee. Where the mechanics are not known:
    /// [`PolicyKind::Scan`].
    FullStroke,
    /// Lee & Srivastava's equations; no guarantee. Without r0 and t0: [`PolicyKind::Average`].
    ServiceCycle,
    /// Sum of the peaks.
    SimpleMaximum,
    /// Sum of the demands in each slot, nothing carried over.
    InstantaneousMaximum,
    /// Disk time, with Hoeffding's bound on the revolutions; no guarantee. Where no revolution is
    /// known: [`PolicyKind::TimeDomain`].
    TimeDomainByChance,
    /// Chernoff's bound on each slot; no guarantee. Where no revolution is known:
    /// [`PolicyKind::Scan`].
    Chernoff,
    /// The normal approximation; no guarantee. Where no revolution is known: [`PolicyKind::Scan`].
    Normal,
    /// Vin's statistical admission; no guarantee. Where no revolution is known:
    /// [`PolicyKind::Scan`].
    Overflow,
    /// vbrSim with the least observed; no guarantee. Without an observation:
    /// [`PolicyKind::VbrSim`].
    Observed,
    /// Sum of the means; no guarantee.
    Average,
    /// Everybody comes in; no guarantee. For comparison.
    None,
}

struct PolicyRow {
    kind: PolicyKind,
    name: &'static str,
    guarantees: bool,
    /// Whether it counts the disk's time, where that is known.
    by_time: bool,
    policy: &'static dyn Policy,
}

const TABLE: [PolicyRow; 17] = [
    PolicyRow {
        kind: PolicyKind::TimeDomain,
        name: "time-domain",
        guarantees: true,
        by_time: true,
        policy: &ByWindow(super::time_domain::TimeDomain),
    },
    PolicyRow {
        kind: PolicyKind::ServiceCurve,
        name: "service-curve",
        guarantees: true,
        by_time: false,
        policy: &super::service_curve::ServiceCurvePolicy,
    },
    PolicyRow {
        kind: PolicyKind::VbrSim,
        name: "vbrsim",
        guarantees: true,
        by_time: false,
        policy: &super::vbr_sim::VbrSim,
    },
    PolicyRow {
        kind: PolicyKind::Rates,
        name: "rates",
        guarantees: true,
        by_time: true,
        policy: &ByWindow(super::rates::RatesPolicy),
    },
    PolicyRow {
        kind: PolicyKind::Scan,
        name: "scan",
        guarantees: true,
        by_time: true,
        policy: &ByRound(super::scan::Scan),
    },
    PolicyRow {
        kind: PolicyKind::GroupedSweeps,
        name: "grouped-sweeps",
        guarantees: true,
        by_time: true,
        policy: &ByRound(super::grouped_sweeps::GroupedSweeps),
    },
    PolicyRow {
        kind: PolicyKind::FullStroke,
        name: "full-stroke",
        guarantees: false,
        by_time: true,
        policy: &ByRound(super::full_stroke::FullStroke),
    },
    PolicyRow {
        kind: PolicyKind::ServiceCycle,
        name: "service-cycle",
        guarantees: false,
        by_time: false,
        policy: &super::service_cycle::ServiceCycle,
    },
    PolicyRow {
        kind: PolicyKind::SimpleMaximum,
        name: "simple-maximum",
        guarantees: true,
        by_time: false,
        policy: &super::simple_maximum::SimpleMaximum,
    },
    PolicyRow {
        kind: PolicyKind::InstantaneousMaximum,
        name: "instantaneous-maximum",
        guarantees: true,
        by_time: false,
        policy: &super::instantaneous_maximum::InstantaneousMaximum,
    },
    PolicyRow {
        kind: PolicyKind::TimeDomainByChance,
        name: "time-domain-by-chance",
        guarantees: false,
        by_time: true,
        policy: &super::time_domain_by_chance::TimeDomainByChance,
    },
    PolicyRow {
        kind: PolicyKind::Chernoff,
        name: "chernoff",
        guarantees: false,
        by_time: true,
        policy: &ByRound(super::chernoff::Chernoff),
    },
    PolicyRow {
        kind: PolicyKind::Normal,
        name: "normal",
        guarantees: false,
        by_time: true,
        policy: &ByRound(super::normal::Normal),
    },
    PolicyRow {
        kind: PolicyKind::Overflow,
        name: "overflow",
        guarantees: false,
        by_time: true,
        policy: &ByRound(super::overflow::Overflow),
    },
    PolicyRow {
        kind: PolicyKind::Observed,
        name: "observed",
        guarantees: false,
        by_time: false,
        policy: &super::observed::Observed,
    },
    PolicyRow {
        kind: PolicyKind::Average,
        name: "average",
        guarantees: false,
        by_time: false,
        policy: &super::average::Average,
    },
    PolicyRow {
        kind: PolicyKind::None,
        name: "none",
        guarantees: false,
        by_time: false,
        policy: &super::admit_all::AdmitAll,
    },
];

impl PolicyKind {
    /// All of them, the default first.
    pub fn all() -> impl ExactSizeIterator<Item = Self> {
        TABLE.iter().map(|row| row.kind)
    }

    /// The one of this name.
    pub fn named(name: &str) -> Option<Self> {
        TABLE.iter().find(|row| row.name == name).map(|row| row.kind)
    }

    /// The policy's name on command lines and in reports.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// The policy itself.
    pub fn policy(self) -> &'static dyn Policy {
        self.row().policy
    }

    /// Whether an admitted stream is sure to be on time while the disk keeps its guarantee.
    pub fn guarantees(self) -> bool {
        self.row().guarantees
    }

    /// Whether a demand that it refuses for an empty disk and unlimited memory is refused as well
    /// if reads of it are due earlier. Then one refusal of the most favourable case rules out all.
    pub fn is_monotone(self) -> bool {
        // `observed` counts with a number that may rise; policies that look at each slot alone may
        // find two reads in one slot that earlier deadlines would part.
        matches!(self, Self::TimeDomain | Self::ServiceCurve | Self::VbrSim)
    }

    /// Whether it counts the disk's time, given these timings: then the run follows a
    /// [`WindowPlan`](crate::WindowPlan); otherwise it makes the guaranteed number of reads in each
    /// slot.
    pub fn plans(self, timings: &DiskTimings) -> bool {
        self.row().by_time && timings.costs.is_some()
    }

    fn row(self) -> &'static PolicyRow {
        TABLE.iter().find(|row| row.kind == self).expect("every policy has a row")
    }
}
