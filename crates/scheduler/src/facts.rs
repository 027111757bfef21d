//! What is known of a disk beside the reads that it completes in any slot: whatever a policy may
//! want to count with. Numbers only; a policy says what it makes of them.

use disk::{Calibration, Costs, DiskModel};
use units::ByteCount;

/// What is known of one disk. By default nothing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Facts {
    /// What reads cost at most, in time.
    pub costs: Option<Costs>,
    /// How much longer than that the disk lately takes, in 1,024ths: see
    /// [`TimeGuard`](crate::TimeGuard).
    pub behind: u64,
}

impl Facts {
    /// Of a disk exactly as modelled, for reads of at most `largest`, `depth` of them in the device
    /// at once.
    pub fn of_model(model: &DiskModel, largest: ByteCount, depth: u32) -> Self {
        Self { costs: Some(Costs::of_model(model, largest, depth)), behind: 0 }
    }

    /// Of a disk as measured.
    pub fn of_calibration(calibration: &Calibration, largest: ByteCount) -> Self {
        Self { costs: Costs::of_calibration(calibration, largest), behind: 0 }
    }

    /// Nanoseconds that a sweep takes at most, as the disk is lately; see [`Costs::batch`].
    #[inline]
    pub fn charge(&self, costs: &Costs, reads: u64, transfer: u64) -> u64 {
        let time = costs.batch(reads, transfer);
        // Nearly always zero; then the multiplication is all it costs.
        time.saturating_add(time.saturating_mul(self.behind) >> 10)
    }
}
