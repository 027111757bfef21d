//! The list of policies: names, what they mean, what they promise.

use super::Policy;
use super::admit_all::AdmitAll;
use super::average::Average;
use super::chernoff::Chernoff;
use super::full_stroke::FullStroke;
use super::grouped_sweeps::GroupedSweeps;
use super::instantaneous_maximum::InstantaneousMaximum;
use super::normal::Normal;
use super::observed::Observed;
use super::overflow::Overflow;
use super::rates::RatesPolicy;
use super::rounds::ByRound;
use super::scan::Scan;
use super::schedule::ByWindow;
use super::service_curve::ServiceCurvePolicy;
use super::service_cycle::ServiceCycle;
use super::simple_maximum::SimpleMaximum;
use super::time_domain::TimeDomain;
use super::time_domain_by_chance::TimeDomainByChance;
use super::vbr_sim::VbrSim;
use crate::disk_timings::DiskTimings;
use PlanUnit::{Reads, Time};

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

/// In what a policy plans.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PlanUnit {
    /// The disk's time, where that is known.
    Time,
    Reads,
}

struct PolicyRow {
    kind: PolicyKind,
    name: &'static str,
    guarantees: bool,
    unit: PlanUnit,
    policy: &'static dyn Policy,
}

const TABLE: [PolicyRow; 17] = [
    sure(PolicyKind::TimeDomain, "time-domain", Time, &ByWindow(TimeDomain)),
    sure(PolicyKind::ServiceCurve, "service-curve", Reads, &ServiceCurvePolicy),
    sure(PolicyKind::VbrSim, "vbrsim", Reads, &VbrSim),
    sure(PolicyKind::Rates, "rates", Time, &ByWindow(RatesPolicy)),
    sure(PolicyKind::Scan, "scan", Time, &ByRound(Scan)),
    sure(PolicyKind::GroupedSweeps, "grouped-sweeps", Time, &ByRound(GroupedSweeps)),
    hoped(PolicyKind::FullStroke, "full-stroke", Time, &ByRound(FullStroke)),
    hoped(PolicyKind::ServiceCycle, "service-cycle", Reads, &ServiceCycle),
    sure(PolicyKind::SimpleMaximum, "simple-maximum", Reads, &SimpleMaximum),
    sure(PolicyKind::InstantaneousMaximum, "instantaneous-maximum", Reads, &InstantaneousMaximum),
    hoped(PolicyKind::TimeDomainByChance, "time-domain-by-chance", Time, &TimeDomainByChance),
    hoped(PolicyKind::Chernoff, "chernoff", Time, &ByRound(Chernoff)),
    hoped(PolicyKind::Normal, "normal", Time, &ByRound(Normal)),
    hoped(PolicyKind::Overflow, "overflow", Time, &ByRound(Overflow)),
    hoped(PolicyKind::Observed, "observed", Reads, &Observed),
    hoped(PolicyKind::Average, "average", Reads, &Average),
    hoped(PolicyKind::None, "none", Reads, &AdmitAll),
];

/// A policy that guarantees deadlines.
const fn sure(
    kind: PolicyKind,
    name: &'static str,
    unit: PlanUnit,
    policy: &'static dyn Policy,
) -> PolicyRow {
    PolicyRow { kind, name, guarantees: true, unit, policy }
}

/// A policy that admits more, and guarantees nothing.
const fn hoped(
    kind: PolicyKind,
    name: &'static str,
    unit: PlanUnit,
    policy: &'static dyn Policy,
) -> PolicyRow {
    PolicyRow { guarantees: false, ..sure(kind, name, unit, policy) }
}

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
        self.row().unit == Time && timings.costs.is_some()
    }

    fn row(self) -> &'static PolicyRow {
        TABLE.iter().find(|row| row.kind == self).expect("every policy has a row")
    }
}
