//! Average: the sum of the streams' mean demands must not exceed what the disk reads in a slot.
//!
//! Not deterministic: peaks that coincide are late. A baseline.

use super::{AdmissionRequest, Policy, Resource, Verdict, memory};
use crate::demand::MEAN_UNIT;

pub(super) struct Average;

impl Policy for Average {
    fn decide(&self, request: AdmissionRequest<'_>) -> Verdict {
        let AdmissionRequest { books, supply, demand } = request;
        let means = books.summary().mean + demand.summary().mean;
        let can = u64::from(supply.min_read) * MEAN_UNIT;
        if means > can {
            let missing = (means - can).div_ceil(MEAN_UNIT);
            return Verdict::refuse(Resource::Disk, demand.first(), missing);
        }
        memory::just_in_time(books, supply, demand)
    }
}
