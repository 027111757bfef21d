//! Time-domain vbrSim: vbrSim in the disk's time. The schedule is played forward in windows (see
//! `walk`), each charged the most that its sweep can take.
//!
//! ```text
//!   a window takes   Σ transfer + positioning(visits) + following reads     (disk::Costs)
//! ```
//!
//! A visit is what a stream reads in one go: reads that lie one behind the other wait for the head
//! and the platter once.
//!
//! Counting time where vbrSim counts reads charges a read with its own length and its own zone, and
//! a sweep of many with less seek time than many single ones. An own development, after vbrSim.
//!
//! A disk without a model is charged the pace of its reads as measured ([`disk::ReadPace`]):
//!
//! ```text
//!   n reads without a pause take at most   once + n × each      in every stretch measured
//!   a window of n reads takes              n × each             and is delayed by `once` if a
//!                                                               pause may have come before it
//! ```
//!
//! `schedule` says when a pause may have come, and why `once` is charged only there. Disks that
//! work in bursts (throttles, token buckets) gain most: the service curve of one slot pays for the
//! longest delay in every slot, this charge once for all that is read until memory is full.
//!
//! Where not even reads of that size were measured: [`ServiceCurve`].

use super::Policy;
use super::schedule::{Charge, Windowed};
use super::service_curve::ServiceCurvePolicy;
use crate::disk_timings::DiskTimings;
use crate::visits::Swept;
use disk::Costs;

pub(super) struct TimeDomain;

impl Windowed for TimeDomain {
    const OTHERWISE: &'static dyn Policy = &ServiceCurvePolicy;

    fn charge(timings: &DiskTimings) -> Option<impl Charge> {
        timings.costs.as_ref().map(|costs| {
            let after_pause = timings.stretch(costs.after_pause());
            AtMost { timings, costs, after_pause }
        })
    }
}

struct AtMost<'a> {
    timings: &'a DiskTimings,
    costs: &'a Costs,
    /// Asked for in every slot.
    after_pause: u64,
}

impl Charge for AtMost<'_> {
    #[inline(always)]
    fn takes(&self, _: u64, swept: Swept) -> u64 {
        let Swept { reads, follows, transfer, .. } = swept;
        self.timings.stretch(self.costs.sweep_without_pause(reads, follows, transfer))
    }

    #[inline(always)]
    fn after_pause(&self) -> u64 {
        self.after_pause
    }

    #[inline(always)]
    fn sweeps_take(&self, sweeps: u64, reads: u64, transfer: u64) -> u64 {
        let positioning = self.costs.positioning_of_sweeps(sweeps, reads);
        self.timings.stretch(positioning.saturating_add(transfer))
    }
}
