//! Grouped sweeps (GSS): the streams of a slot are read in [`GROUPS`] sweeps, one group after the
//! other, which costs more seek time than one sweep and less memory.
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
//! A baseline: the run here reads a slot in one sweep all the same, which takes no longer; so it
//! needs the buffers of one sweep, and is tested for those. Safe. Without the disk's times:
//! [`InstantaneousMaximum`].

use super::instantaneous_maximum::InstantaneousMaximum;
use super::rounds::Round;
use super::{Policy, Supply};
use crate::ledger::BookedLoad;
use disk::Costs;

pub(super) struct GroupedSweeps;

impl Round for GroupedSweeps {
    const OTHERWISE: &'static dyn Policy = &InstantaneousMaximum;

    fn takes(supply: &Supply<'_>, costs: &Costs) -> Option<impl FnMut(BookedLoad) -> u64> {
        let timings = supply.timings;
        Some(|all: BookedLoad| {
            let (each, more) = (u64::from(all.reads) / GROUPS, u64::from(all.reads) % GROUPS);
            // Only `more` groups have one read more: rounding all of them up would charge reads
            // that nobody makes.
            let larger = costs.positioning(each + 1).saturating_mul(more);
            let smaller = costs.positioning(each).saturating_mul(GROUPS - more);
            timings.stretch(larger.saturating_add(smaller).saturating_add(all.transfer))
        })
    }
}

/// The paper's curves of memory over groups are lowest between a few and a dozen; each costs a
/// stroke.
const GROUPS: u64 = 4;
