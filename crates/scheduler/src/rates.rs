//! What a device's reads and bytes cost by themselves: the four terms of a solid-state disk.
//!
//! ```text
//!   bytes read     reads         written
//!   ────────── + ─────────── +  ─────────  ≤ 1        in any second
//!   bytes/s max   reads/s max   (a share)
//!   └── per_byte   └── each     └── crate::WriteShare
//! ```
//!
//! Source: the Seastar framework's I/O scheduler, whose token bucket this inequality is (its
//! documentation, "io_properties"); there measured by `iotune`, here by calibration. A mixture of
//! reads of several sizes is taken to cost the sum of its parts, which is what measuring reads of
//! each size alone cannot show.

use disk::{Calibration, Costs, ReadLine};
use units::ByteCount;

/// What a solid-state disk's reads and bytes cost by themselves. Times are nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rates {
    /// Time of a read beside its bytes: the inverse of reads a second.
    pub each: u64,
    /// Time of 2^20 bytes: the inverse of the bandwidth.
    pub per_mib: u64,
    /// Time that the first reads after a pause take beyond that.
    pub once: u64,
}

impl Rates {
    /// The least line above the measured costs of reads of each size.
    ///
    /// `None` where nothing covers reads of `largest`, or nothing is guaranteed.
    pub fn of_calibration(calibration: &Calibration, largest: ByteCount) -> Option<Self> {
        let ReadLine { once, each, per_mib } = calibration.line(largest)?;
        Some(Self { each, per_mib, once })
    }

    /// Rates of a disk whose costs are known, wherever its reads lie.
    pub fn of_costs(costs: &Costs, largest: ByteCount) -> Self {
        let size = largest.0.max(1);
        let per_mib = (u128::from(costs.slowest_transfer(size)) << 20).div_ceil(u128::from(size));
        let each = costs.positioning(MANY).div_ceil(MANY) + ROUNDING;
        // A read costs less positioning in a longer sweep. The line through a long sweep is too low
        // for short ones, by at most `once`.
        let beyond = |n: u64| costs.positioning(n).saturating_sub(n.saturating_mul(each));
        let once = (1..=MANY).map(beyond).max().unwrap_or(0);
        Self { each, per_mib: u64::try_from(per_mib).unwrap_or(u64::MAX), once }
    }

    /// Nanoseconds that the device is busy with so many reads of so many bytes in all, in a row.
    #[inline]
    pub fn nanos(&self, reads: u64, bytes: u64) -> u64 {
        let scaled = u128::from(bytes) * u128::from(self.per_mib);
        let transfer = u64::try_from(scaled >> 20).unwrap_or(u64::MAX);
        let once = if reads == 0 { 0 } else { self.once };
        reads.saturating_mul(self.each).saturating_add(transfer).saturating_add(once)
    }
}

/// Reads by which what each costs in a long row is known: [`Costs`] goes on in such sweeps.
const MANY: u64 = 1024;

/// Each transfer is rounded up to a nanosecond, and some more.
const ROUNDING: u64 = 3;

#[cfg(test)]
mod tests {
    use super::*;
    use disk::{DiskModel, ReadGuarantee};
    use std::time::Duration;
    use units::BitRate;

    fn record(reads: &[(u64, u32)]) -> Calibration {
        let (slot, longest) = (Duration::from_millis(500), Duration::from_millis(6));
        let guarantees = reads.iter().map(|(size, min_read)| {
            ReadGuarantee::of_slot(slot, ByteCount(*size), *min_read, 0.0, longest)
        });
        Calibration {
            slot,
            guarantees: guarantees.collect(),
            queue_depth: 16,
            r0: BitRate(0),
            t0: Duration::ZERO,
            zones: Vec::new(),
            actuator: None,
            writing: None,
            method: String::new(),
            measured_at: 0,
            measured: None,
            outliers: Vec::new(),
        }
    }

    /// 1 MiB: 250 reads, 2 ms each. 64 KiB: 2,500, 0.2 ms each. So 1.92 ms a MiB, and 0.08 a read.
    #[test]
    fn the_line_goes_through_what_was_measured() {
        let measured = record(&[(64 << 10, 2500), (1 << 20, 250)]);
        let rates = Rates::of_calibration(&measured, ByteCount(1 << 20)).unwrap();
        assert_eq!((rates.per_mib, rates.each), (1_920_000, 80_001));
        assert_eq!(rates.once, 5_800_000, "the longest took 6 ms, and a small read takes 0.2");
        assert_eq!(rates.nanos(3, 2 << 20) - rates.once, 3 * 80_001 + 2 * 1_920_000);
        // A small read that costs nearly as much as a large one: bytes are cheap.
        let flat = record(&[(64 << 10, 260), (512 << 10, 255), (1 << 20, 250)]);
        let rates = Rates::of_calibration(&flat, ByteCount(1 << 20)).unwrap();
        for (size, reads) in [(64 << 10, 260), (512 << 10, 255), (1 << 20, 250)] {
            let slot = rates.nanos(reads, reads * size);
            assert!(slot >= 500_000_000, "{size}: {slot}");
        }
        assert_eq!(Rates::of_calibration(&measured, ByteCount(2 << 20)), None, "not measured");
        assert_eq!(Rates::of_calibration(&record(&[(1 << 20, 0)]), ByteCount(1 << 20)), None);
    }

    #[test]
    fn no_sweep_is_charged_less_than_by_its_costs() {
        for model in DiskModel::presets() {
            let costs = Costs::of_model(&model, ByteCount::MIB, 4);
            let rates = Rates::of_costs(&costs, ByteCount::MIB);
            for reads in [1, 2, 3, 7, 40, 255, 1024, 1025, 3000] {
                let exact = costs.batch(reads, reads * costs.slowest_transfer(1 << 20));
                assert!(rates.nanos(reads, reads << 20) >= exact, "{}: {reads}", model.name());
            }
        }
    }
}
