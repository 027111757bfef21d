//! SCAN bound: in each slot, one sweep over everything due in it must be done within the slot, at
//! the most that it can take.
//!
//! ```text
//!   n seek(C/n) + n (rotation + overhead) + Σ b_i / r_i  ≤  T
//! ```
//!
//! with the concave hull of the seek curve, so that equal distances are the worst; `disk::Costs` is
//! this bound, with each read's own zone, and the way to the sweep's beginning. Source: the round
//! of D. J. Gemmell et al., "Multimedia storage servers: a tutorial" (IEEE Computer 28(5), 1995).
//!
//! Safe; nothing is carried over from quiet slots. Without the disk's times:
//! [`InstantaneousMaximum`].

use super::instantaneous_maximum::InstantaneousMaximum;
use super::rounds::Round;
use super::{Policy, Supply};
use crate::ledger::BookedLoad;
use disk::Costs;

pub(super) struct Scan;

impl Round for Scan {
    const OTHERWISE: &'static dyn Policy = &InstantaneousMaximum;

    fn takes(supply: &Supply<'_>, costs: &Costs) -> Option<impl FnMut(BookedLoad) -> u64> {
        let timings = supply.timings;
        Some(|all: BookedLoad| timings.stretch(costs.batch(u64::from(all.reads), all.transfer)))
    }
}
