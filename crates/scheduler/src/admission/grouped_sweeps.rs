//! Grouped sweeps (GSS): the streams of a slot are read in [`GROUPS`] sweeps, one group after the
//! other, which costs more of the arm than one sweep and less memory.
//!
//! ```text
//!   g [ (n/g) (seek(C g/n) + rotation + overhead) + seek(C) ] + Σ b_i / r_i  ≤  T
//! ```
//!
//! Each sweep is charged what one sweep of a part of the reads costs at most, the way to its
//! beginning included (`disk::Costs`). With g = 1 this is the SCAN bound, with g = n everybody is
//! read in a fixed order. Source: P. S. Yu, M.-S. Chen, D. D. Kandlur, "Grouped sweeping scheduling
//! for DASD-based multimedia storage management" (Multimedia Systems 1, 1993).
//!
//! A baseline: the run here reads a slot in one sweep all the same, which takes no longer; so it needs
//! the buffers of one sweep, and is tested for those. Safe. Without the disk's times:
//! [`InstantaneousMaximum`].

use super::instantaneous_maximum::InstantaneousMaximum;
use super::{Policy, Supply, Verdict, rounds};
use crate::books::DiskBooks;
use crate::demand::Demand;
use crate::windows::Plan;

pub(super) struct GroupedSweeps;

impl Policy for GroupedSweeps {
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
            let (each, more) = (u64::from(all.reads) / GROUPS, u64::from(all.reads) % GROUPS);
            let larger = costs.positioning(each + 1).saturating_mul(more);
            let smaller = costs.positioning(each).saturating_mul(GROUPS - more);
            facts.stretch(larger.saturating_add(smaller).saturating_add(all.transfer))
        })
    }
}

/// The paper's curves of memory over groups are lowest between a few and a dozen; each costs a
/// stroke.
const GROUPS: u64 = 4;
