//! Time-domain vbrSim by chance: the same windows, but not every visit is charged a whole
//! revolution. Of all the visits since the disk last waited together, so much is charged that more
//! is needed once in 10^12 times.
//!
//! ```text
//!   revolutions of m visits since then    m R/2 + min( m R/2, R √(m ln(10^12) / 2) )
//! ```
//!
//! Source of the inequality: W. Hoeffding, "Probability inequalities for sums of bounded random
//! variables" (J. American Statistical Association 58, 1963), theorem 1. It gains from the 56th
//! visit on.
//!
//! No guarantee: it takes each wait for independent of the others, and a disk that always waits
//! longest breaks it. Where no revolution is known: [`TimeDomain`].

use super::chance::Waits;
use super::schedule::{ByWindow, Charge, walk};
use super::time_domain::TimeDomain;
use super::{AdmissionRequest, Policy, Verdict};
use crate::disk_timings::DiskTimings;
use crate::visits::Swept;
use disk::Costs;

pub(super) struct TimeDomainByChance;

impl Policy for TimeDomainByChance {
    fn decide(&self, request: AdmissionRequest<'_>) -> Verdict {
        let AdmissionRequest { books, supply, demand } = request;
        let timings = supply.timings;
        let (Some(costs), Some(waits)) = (&timings.costs, Waits::of(timings)) else {
            return ByWindow(TimeDomain).decide(request);
        };
        match walk(books, supply, demand, &Mostly { timings, costs, waits }) {
            Verdict::Admit { slack, mut plan } => {
                plan.trust();
                Verdict::Admit { slack, plan }
            }
            refused @ Verdict::Refuse(_) => refused,
        }
    }
}

struct Mostly<'a> {
    timings: &'a DiskTimings,
    costs: &'a Costs,
    waits: Waits,
}

impl Charge for Mostly<'_> {
    fn takes(&self, before: u64, swept: Swept) -> u64 {
        let waits = |visits| self.waits.hoeffding(visits, EXPONENT);
        let Swept { reads, follows, transfer, .. } = swept;
        let visits = swept.visits();
        // The bound holds for the sum over all visits since the last wait; a window is charged its
        // part.
        let waiting = waits(before + visits) - waits(before);
        let sure = self.costs.sweep(reads, follows, transfer);
        self.timings.stretch(self.waits.of_sweep(sure, visits, waiting))
    }
}

/// ln(10^12).
const EXPONENT: f64 = 27.631_021_115_928_547;
