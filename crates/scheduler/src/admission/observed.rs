//! vbrSim with the least that was seen in use for minRead: the fewest reads that the disk completed
//! in any slot so far, though nobody tried to make it slow.
//!
//! Source: D. Makaroff, J. Coutu, F. Liu, "Disk performance and VBR admission control for media
//! servers", where the difference between the calibrated and the observed minRead is the subject.
//!
//! No guarantee: a slot that is slower than any before it is late. Without an observation: minRead.

use super::vbr_sim::VbrSim;
use super::{AdmissionRequest, Policy, Supply, Verdict};
use units::nanos;

pub(super) struct Observed;

impl Policy for Observed {
    fn decide(&self, request: AdmissionRequest<'_>) -> Verdict {
        let supply = request.supply;
        let timings = supply.timings;
        let seen = timings.observed_min_read.map(|reads| {
            timings.reads_beside_writes(timings.shrink(reads.into()), 1, nanos(supply.slot))
        });
        let observed = seen.and_then(|reads| u32::try_from(reads).ok());
        let min_read = observed.unwrap_or(supply.min_read);
        VbrSim.decide(AdmissionRequest { supply: &Supply { min_read, ..*supply }, ..request })
    }
}
