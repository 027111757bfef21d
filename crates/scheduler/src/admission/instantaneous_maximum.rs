//! Instantaneous Maximum: in no slot may more be due than the disk reads in one.
//!
//! Safe; nothing is carried over from quiet slots, so one shared peak refuses. A baseline. It
//! looks at the demand as booked, whether or not some of it has been read ahead since.

use super::{AdmissionRequest, Policy, Resource, Verdict, memory};
use units::SlotIndex;

pub(super) struct InstantaneousMaximum;

impl Policy for InstantaneousMaximum {
    fn decide(&self, request: AdmissionRequest<'_>) -> Verdict {
        let AdmissionRequest { books, supply, demand } = request;
        let can = u64::from(supply.min_read);
        let booked = books.booked_ahead();
        for (i, load) in demand.slots().iter().enumerate() {
            let slot = SlotIndex(demand.first().0 + i as u64);
            let ahead =
                slot.0.checked_sub(books.current().0).and_then(|at| usize::try_from(at).ok());
            let theirs = ahead.and_then(|at| booked.get(at)).map_or(0, |load| load.reads);
            let due = u64::from(theirs + load.reads);
            // A slot in which the candidate reads nothing is as full as without it.
            if load.reads > 0 && due > can {
                return Verdict::refuse(Resource::Disk, slot, due - can);
            }
        }
        memory::just_in_time(books, supply, demand)
    }
}
