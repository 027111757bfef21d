//! Simple Maximum: the sum of the streams' peaks must not exceed what the disk reads in a slot.
//!
//! Safe and wasteful: it books every stream's worst slot for its whole length. A baseline.

use super::{Policy, Resource, Supply, Verdict, memory};
use crate::books::DiskBooks;
use crate::demand::Demand;
use crate::windows::Plan;

pub(super) struct SimpleMaximum;

impl Policy for SimpleMaximum {
    fn verdict(
        &self,
        books: &DiskBooks,
        supply: &Supply<'_>,
        demand: &Demand,
        _: &mut Plan,
    ) -> Verdict {
        let peaks = books.summary().peak + demand.summary().peak;
        let can = u64::from(supply.min_read);
        if peaks > can {
            return Verdict::refuse(Resource::Disk, demand.first(), peaks - can);
        }
        memory::just_in_time(books, supply, demand)
    }
}
