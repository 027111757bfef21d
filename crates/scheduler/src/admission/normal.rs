//! Normal approximation: in each slot, the sweep's time is taken to be normally distributed about
//! its mean, and must be within the slot but for a chance of one in a million.
//!
//! ```text
//!   SEEK(n) + Σ transfer + n R/2 + z √(n R²/12)  ≤  T          z = 4.75
//! ```
//!
//! Source: R. Zimmermann, K. Fu, "Comprehensive statistical admission control for streaming media
//! servers" (ACM Multimedia, 2003); there demand is a random variable as well, here it is known.
//!
//! No guarantee. Where no revolution is known: [`Scan`].

use super::chance::{DEVIATIONS, Waits};
use super::scan::Scan;
use super::{Policy, Supply, Verdict, rounds};
use crate::books::DiskBooks;
use crate::demand::Demand;
use crate::windows::Plan;

pub(super) struct Normal;

impl Policy for Normal {
    fn verdict(
        &self,
        books: &DiskBooks,
        supply: &Supply<'_>,
        demand: &Demand,
        plan: &mut Plan,
    ) -> Verdict {
        let facts = supply.facts;
        let (Some(costs), Some(waits)) = (&facts.costs, Waits::of(facts)) else {
            return Scan.verdict(books, supply, demand, plan);
        };
        rounds::verdict(books, supply, demand, costs, plan, |all| {
            let reads = u64::from(all.reads);
            let waiting = waits.normal(reads, DEVIATIONS);
            facts.stretch(waits.sweep(costs, reads, all.transfer, waiting))
        })
    }
}
