//! Instantaneous Maximum: in no slot may more be due than the disk reads in one.
//!
//! Safe; nothing is carried over from quiet slots, so one shared peak refuses. A baseline. It
//! looks at the demand as booked, whether or not some of it has been read ahead since.

use super::rounds::concerned;
use super::{AdmissionRequest, Policy, Resource, Verdict, memory};

pub(super) struct InstantaneousMaximum;

impl Policy for InstantaneousMaximum {
    fn decide(&self, request: AdmissionRequest<'_>) -> Verdict {
        let AdmissionRequest { books, supply, demand } = request;
        let can = u64::from(supply.min_read);
        for (slot, all) in concerned(books, demand) {
            let due = u64::from(all.reads);
            if due > can {
                return Verdict::refuse(Resource::Disk, slot, due - can);
            }
        }
        memory::just_in_time(books, supply, demand)
    }
}
