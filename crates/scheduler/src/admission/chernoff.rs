//! Chernoff (after Nerjes): in each slot, the sweep over everything due in it is done within the
//! slot but for a chance of one in a million.
//!
//! ```text
//!   P(T_n ≥ T)  ≤  min over θ of  exp(-θ (T - SEEK(n) - Σ transfer)) × ( (e^{θR} - 1) / (θR) )^n
//! ```
//!
//! Source: G. Nerjes, P. Muth, G. Weikum, "Stochastic service guarantees for continuous data on
//! multi-zone disks" (ACM PODS, 1997). There sizes and zones are drawn from distributions; here
//! both are known of each read, and what remains to chance is the revolution.
//!
//! No guarantee. Where no revolution is known: [`Scan`].

use super::chance::{ONE_IN_A_MILLION, Waits};
use super::rounds::{ByRound, Round};
use super::scan::Scan;
use super::{Policy, Supply};
use crate::ledger::BookedLoad;
use disk::Costs;

pub(super) struct Chernoff;

impl Round for Chernoff {
    const OTHERWISE: &'static dyn Policy = &ByRound(Scan);

    fn takes(supply: &Supply<'_>, costs: &Costs) -> Option<impl FnMut(BookedLoad) -> u64> {
        let timings = supply.timings;
        let waits = Waits::of(timings)?;
        // Slots have much the same number of reads: the bound of each is found once.
        let mut found: Vec<Option<u64>> = Vec::new();
        Some(move |all: BookedLoad| {
            let at = all.reads as usize;
            if at >= found.len() {
                found.resize(at + 1, None);
            }
            let reads = u64::from(all.reads);
            let waiting = *found[at].get_or_insert_with(|| waits.chernoff(reads, ONE_IN_A_MILLION));
            timings.stretch(waits.sweep(costs, reads, all.transfer, waiting))
        })
    }
}
