//! Average: the sum of the streams' mean demands must not exceed what the disk reads in a slot.
//!
//! Not deterministic: peaks that coincide are late. A baseline.

use super::{Policy, Resource, Supply, Verdict, memory};
use crate::books::DiskBooks;
use crate::demand::{Demand, MEAN_UNIT};
use crate::windows::Plan;

pub(super) struct Average;

impl Policy for Average {
    fn verdict(
        &self,
        books: &DiskBooks,
        supply: &Supply<'_>,
        demand: &Demand,
        _: &mut Plan,
    ) -> Verdict {
        let means = books.summary().mean + demand.summary().mean;
        let can = u64::from(supply.min_read) * MEAN_UNIT;
        if means > can {
            let missing = (means - can).div_ceil(MEAN_UNIT);
            return Verdict::refuse(Resource::Disk, demand.first(), missing);
        }
        memory::just_in_time(books, supply, demand)
    }
}
