//! SCAN bound: in each slot, one sweep over everything due in it must be done within the slot, at
//! the most that it can take.
//!
//! ```text
//!   n seek(C/n) + n (rotation + overhead) + Σ b_i / r_i  ≤  T
//! ```
//!
//! with the concave hull of the seek curve, so that equal distances are the worst; `disk::Costs` is
//! this bound, with each read's own zone, and the way to the sweep's beginning. Source: the round of
//! D. J. Gemmell et al., "Multimedia storage servers: a tutorial" (IEEE Computer 28(5), 1995).
//!
//! Safe; nothing is carried over from quiet slots. Without the disk's times:
//! [`InstantaneousMaximum`].

use super::instantaneous_maximum::InstantaneousMaximum;
use super::{Policy, Supply, Verdict, rounds};
use crate::books::DiskBooks;
use crate::demand::Demand;
use crate::windows::Plan;

pub(super) struct Scan;

impl Policy for Scan {
    fn verdict(
        &self,
        books: &DiskBooks,
        supply: &Supply<'_>,
        demand: &Demand,
        plan: &mut Plan,
    ) -> Verdict {
        let facts = supply.facts;
        let Some(costs) = &facts.costs else {
            return InstantaneousMaximum.verdict(books, supply, demand, plan);
        };
        rounds::verdict(books, supply, demand, costs, plan, |all| {
            facts.charge(costs, u64::from(all.reads), all.transfer)
        })
    }
}
