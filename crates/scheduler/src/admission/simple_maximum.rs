//! Simple Maximum: the sum of the streams' peaks must not exceed what the disk reads in a slot.
//!
//! Safe and wasteful: it books every stream's worst slot for its whole length. A baseline.

use super::{AdmissionRequest, Policy, Resource, Verdict, memory};

pub(super) struct SimpleMaximum;

impl Policy for SimpleMaximum {
    fn decide(&self, request: AdmissionRequest<'_>) -> Verdict {
        let AdmissionRequest { books, supply, demand } = request;
        let peaks = books.summary().peak + demand.summary().peak;
        let can = u64::from(supply.min_read);
        if peaks > can {
            return Verdict::refuse(Resource::Disk, demand.first(), peaks - can);
        }
        memory::just_in_time(books, supply, demand)
    }
}
