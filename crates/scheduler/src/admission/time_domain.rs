//! Time-domain vbrSim: vbrSim in the disk's time. The schedule is played forward in windows (see
//! `walk`), each charged the most that its sweep can take.
//!
//! ```text
//!   a window takes   Σ transfer + positioning(reads)            (disk::Costs)
//! ```
//!
//! Counting time where vbrSim counts reads charges a read with its own length and its own zone, and
//! a sweep of many with less of the arm than many single ones. An own development, after vbrSim.
//!
//! Where neither a model nor measured zones say what reads cost: [`ServiceCurve`].

use super::service_curve::ServiceCurve;
use super::walk::{self, Charge};
use super::{Policy, Resource, Shortage, Supply, Verdict};
use crate::books::DiskBooks;
use crate::demand::Demand;
use crate::facts::Facts;
use crate::windows::Plan;
use disk::Costs;

pub(super) struct TimeDomain;

impl Policy for TimeDomain {
    fn verdict(
        &self,
        books: &DiskBooks,
        supply: &Supply<'_>,
        demand: &Demand,
        plan: &mut Plan,
    ) -> Verdict {
        match &supply.facts.costs {
            Some(costs) => walk::walk(books, supply, demand, &AtMost(supply.facts, costs), plan),
            None => ServiceCurve.verdict(books, supply, demand, plan),
        }
    }

    fn ruled_out(
        &self,
        books: &DiskBooks,
        supply: &Supply<'_>,
        demand: &Demand,
        refused: Shortage,
    ) -> u64 {
        match &supply.facts.costs {
            Some(costs) if refused.resource == Resource::Disk => {
                walk::ruled_out(books, supply, demand, &AtMost(supply.facts, costs), refused)
            }
            _ => 1,
        }
    }
}

struct AtMost<'a>(&'a Facts, &'a Costs);

impl Charge for AtMost<'_> {
    #[inline(always)]
    fn takes(&self, _: u64, reads: u64, transfer: u64, _: u64) -> u64 {
        self.0.charge(self.1, reads, transfer)
    }

    #[inline(always)]
    fn sweeps_take(&self, sweeps: u64, reads: u64, transfer: u64) -> u64 {
        let positioning = self.1.positioning_of_sweeps(sweeps, reads);
        self.0.stretch(positioning.saturating_add(transfer))
    }
}
