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
use super::rounds::{ByRound, Round};
use super::scan::Scan;
use super::{Policy, Supply};
use crate::ledger::BookedLoad;
use disk::Costs;

pub(super) struct Normal;

impl Round for Normal {
    const OTHERWISE: &'static dyn Policy = &ByRound(Scan);

    fn takes(supply: &Supply<'_>, costs: &Costs) -> Option<impl FnMut(BookedLoad) -> u64> {
        let timings = supply.timings;
        let waits = Waits::of(timings)?;
        Some(move |all: BookedLoad| {
            let reads = u64::from(all.reads);
            let waiting = waits.normal(reads, DEVIATIONS);
            timings.stretch(waits.sweep(costs, reads, all.transfer, waiting))
        })
    }
}
