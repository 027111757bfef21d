//! Time-domain vbrSim by chance: the same windows, but not every read is charged a whole revolution.
//! Of all the reads since the disk last waited together, so much is charged that more is needed once
//! in 10^12 times.
//!
//! ```text
//!   revolutions of m reads since then    m R/2 + min( m R/2, R √(m ln(10^12) / 2) )
//! ```
//!
//! Source of the inequality: W. Hoeffding, "Probability inequalities for sums of bounded random
//! variables" (J. American Statistical Association 58, 1963), theorem 1. It gains from the 56th read on.
//!
//! No guarantee: it takes each wait for independent of the others, and a disk that always waits
//! longest breaks it. Where no revolution is known: [`TimeDomain`].

use super::chance::Waits;
use super::time_domain::TimeDomain;
use super::walk::{ByWindow, Charge, walk};
use super::{Policy, Supply, Verdict};
use crate::books::DiskBooks;
use crate::demand::Demand;
use crate::facts::Facts;
use crate::windows::Plan;
use disk::Costs;

pub(super) struct TimeDomainByChance;

impl Policy for TimeDomainByChance {
    fn verdict(
        &self,
        books: &DiskBooks,
        supply: &Supply<'_>,
        demand: &Demand,
        plan: &mut Plan,
    ) -> Verdict {
        let facts = supply.facts;
        let (Some(costs), Some(waits)) = (&facts.costs, Waits::of(facts)) else {
            return ByWindow(TimeDomain).verdict(books, supply, demand, plan);
        };
        let verdict = walk(books, supply, demand, &Mostly { facts, costs, waits }, plan);
        plan.trust();
        verdict
    }
}

struct Mostly<'a> {
    facts: &'a Facts,
    costs: &'a Costs,
    waits: Waits,
}

impl Charge for Mostly<'_> {
    fn takes(&self, before: u64, reads: u64, transfer: u64, _: u64) -> u64 {
        let waits = |reads| self.waits.hoeffding(reads, EXPONENT);
        let waiting = waits(before + reads) - waits(before);
        self.facts.stretch(self.waits.sweep(self.costs, reads, transfer, waiting))
    }
}

/// ln(10^12).
const EXPONENT: f64 = 27.631_021_115_928_547;
