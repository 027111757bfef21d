//! Rates: what a solid-state disk can do is so many bytes a second or so many reads a second, or some
//! of both, less what it writes. Counted in the parts of its time that these take, and carried
//! forward as vbrSim carries reads.
//!
//! ```text
//!   reads / (reads/s) + bytes / (bytes/s) + kept for writes  ≤  1        for every deadline, summed up
//! ```
//!
//! The constants come from a measured curve, reads completed in a slot over their size: see
//! [`crate::Rates`], with its source. It is sure as long as the device keeps what was measured, mixtures
//! of sizes included. Where no rates are known: [`TimeDomain`].

use super::time_domain::TimeDomain;
use super::walk::{self, Charge};
use super::{Policy, Resource, Shortage, Supply, Verdict};
use crate::books::DiskBooks;
use crate::demand::Demand;
use crate::facts::Facts;
use crate::windows::Plan;

pub(super) struct Rates;

impl Policy for Rates {
    fn verdict(
        &self,
        books: &DiskBooks,
        supply: &Supply<'_>,
        demand: &Demand,
        plan: &mut Plan,
    ) -> Verdict {
        match &supply.facts.rates {
            Some(rates) => walk::walk(books, supply, demand, &Terms(supply.facts, rates), plan),
            None => TimeDomain.verdict(books, supply, demand, plan),
        }
    }

    fn ruled_out(
        &self,
        books: &DiskBooks,
        supply: &Supply<'_>,
        demand: &Demand,
        refused: Shortage,
    ) -> u64 {
        match &supply.facts.rates {
            Some(rates) if refused.resource == Resource::Disk => {
                walk::ruled_out(books, supply, demand, &Terms(supply.facts, rates), refused)
            }
            _ => 1,
        }
    }
}

struct Terms<'a>(&'a Facts, &'a crate::rates::Rates);

impl Charge for Terms<'_> {
    #[inline]
    fn takes(&self, _: u64, reads: u64, _: u64, bytes: u64) -> u64 {
        self.0.stretch(self.1.nanos(reads, bytes))
    }
}
