//! The calibration of one device: the numbers on which admission relies.

use crate::bounds::ReadCost;
use crate::platters::duration;
use crate::{Actuator, DiskModel};
use std::time::Duration;
use units::{BitRate, ByteCount};

/// The guarantee for reads of one size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReadGuarantee {
    /// The size of each read.
    pub read_size: ByteCount,
    /// Reads completed in any slot under the worst placement tried (`minRead`).
    pub min_read: u32,
    /// Mean reads per slot over the same runs: the usual performance of the disk.
    pub mean_read: f64,
    /// The longest single read observed.
    pub longest_read: Duration,
}

/// The disk time that writes take from concurrent reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteCost {
    /// The size of each write; writes are sequential.
    pub write_size: ByteCount,
    /// The mean disk time that a write, with its share of a flush, takes from the reads.
    pub mean: Duration,
    /// The time of one write in the worst round measured.
    pub slowest: Duration,
}

/// A calibration record.
#[derive(Clone, Debug, PartialEq)]
pub struct Calibration {
    /// The slot for which the guarantees hold.
    pub slot: Duration,
    /// The guarantees, smallest read size first.
    pub guarantees: Vec<ReadGuarantee>,
    /// The queue depth with the best result.
    pub queue_depth: u32,
    /// Fitted `r0` of t = b/r0 + t0 (Lee & Srivastava eq. 1): the rate of an endless read.
    pub r0: BitRate,
    /// Fitted `t0`: the time of a read before its first byte.
    pub t0: Duration,
    /// Sequential rate by place: (offset, rate), lowest offset first.
    pub zones: Vec<(ByteCount, BitRate)>,
    /// Seek curve and revolution of a hard disk, where they could be fitted to timed reads.
    pub actuator: Option<Actuator>,
    /// The cost of a concurrent writer; `None` where nothing could be overwritten to measure it.
    pub writing: Option<WriteCost>,
    /// A description of the reads and the device, for the user.
    pub method: String,
    /// The time of the calibration in Unix seconds.
    pub measured_at: u64,
}

impl Calibration {
    /// The guarantee that covers reads of `read_size`: that of the next larger measured size, which
    /// takes at least as long. `None` if all measured sizes are smaller.
    pub fn guarantee_for(&self, read_size: ByteCount) -> Option<ReadGuarantee> {
        self.guarantees.iter().find(|g| g.read_size >= read_size).copied()
    }

    /// The guarantees of a disk exactly as modelled, by arithmetic: without measurement and without
    /// margin.
    pub fn from_model(model: &DiskModel, slot: Duration, read_sizes: &[ByteCount]) -> Self {
        let mut sizes = read_sizes.to_vec();
        sizes.sort_unstable();
        sizes.dedup();
        let cost = Self::cost_of(model, slot, &sizes);
        Self {
            slot,
            guarantees: sizes.iter().map(|size| model.guarantee(*size, slot)).collect(),
            queue_depth: sizes.iter().map(|size| model.queue_depth(*size)).max().unwrap_or(1),
            r0: cost.r0,
            t0: cost.t0,
            zones: model.zones(),
            // The model itself is known and more precise.
            actuator: None,
            writing: None,
            method: format!("computed from the model {}", model.name()),
            measured_at: 0,
        }
    }

    /// The line through the mean times of these reads; with only one size, also of reads of twice
    /// that size.
    fn cost_of(model: &DiskModel, slot: Duration, sizes: &[ByteCount]) -> ReadCost {
        let largest = sizes.last().copied().unwrap_or(ByteCount::MIB);
        let points: Vec<(ByteCount, Duration)> = sizes
            .iter()
            .copied()
            .chain([ByteCount(largest.0 * 2)])
            .map(|size| (size, model.mean_read(size, slot)))
            .collect();
        let none = ReadCost { r0: model.mean_rate(), t0: Duration::ZERO };
        ReadCost::fit(&points).unwrap_or(none)
    }
}

impl DiskModel {
    fn guarantee(&self, read_size: ByteCount, slot: Duration) -> ReadGuarantee {
        let mean = self.mean_read(read_size, slot);
        ReadGuarantee {
            read_size,
            min_read: self.guaranteed_reads(read_size, slot),
            mean_read: slot.as_secs_f64() / mean.as_secs_f64(),
            longest_read: self.worst_read(read_size),
        }
    }

    /// The mean time of a read when as many as fit in a slot are spread evenly over the disk.
    fn mean_read(&self, size: ByteCount, slot: Duration) -> Duration {
        let mut time = self.mean_read_time(size, 1);
        // With more reads in a sweep they are closer together and faster; this converges quickly.
        for _ in 0..4 {
            let count = slot.as_nanos() / time.as_nanos().max(1);
            time = self.mean_read_time(size, u32::try_from(count).unwrap_or(u32::MAX));
        }
        // Not zero: callers divide by it.
        time.max(duration(1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;
    use std::fmt::Write;

    #[test]
    fn a_model_calibrates_by_arithmetic() {
        let sizes = [ByteCount::mib(4), ByteCount::MIB, ByteCount::MIB];
        let mut shown = String::new();
        for name in ["hdd-20tb", "ssd-nvme"] {
            let model = DiskModel::preset(name).unwrap();
            let slot = Duration::from_millis(500);
            let calibration = Calibration::from_model(&model, slot, &sizes);
            for g in &calibration.guarantees {
                writeln!(
                    shown,
                    "{name}: {} reads of {} guaranteed, {:.1} usual, longest {:.1} ms",
                    g.min_read,
                    g.read_size,
                    g.mean_read,
                    g.longest_read.as_secs_f64() * 1e3,
                )
                .unwrap();
            }
            let Calibration { queue_depth, r0, t0, method, .. } = calibration;
            writeln!(shown, "depth {queue_depth}, r0 {r0}, t0 {t0:.2?}, {method}").unwrap();
        }
        expect![[r#"
            hdd-20tb: 24 reads of 1 MiB guaranteed, 41.9 usual, longest 31.8 ms
            hdd-20tb: 11 reads of 4 MiB guaranteed, 18.2 usual, longest 53.9 ms
            depth 4, r0 1.64 Gb/s, t0 6.86ms, computed from the model hdd-20tb
            ssd-nvme: 3000 reads of 1 MiB guaranteed, 3000.6 usual, longest 0.2 ms
            ssd-nvme: 750 reads of 4 MiB guaranteed, 750.2 usual, longest 0.7 ms
            depth 16, r0 50.34 Gb/s, t0 0.00ns, computed from the model ssd-nvme
        "#]]
        .assert_eq(&shown);
    }

    #[test]
    fn a_guarantee_covers_smaller_reads_too() {
        let model = DiskModel::preset("hdd-20tb").unwrap();
        let sizes = [ByteCount::MIB, ByteCount::mib(4)];
        let calibration = Calibration::from_model(&model, Duration::from_millis(500), &sizes);
        let covering = |size| calibration.guarantee_for(size).map(|g| g.read_size);
        assert_eq!(covering(ByteCount::kib(64)), Some(ByteCount::MIB));
        assert_eq!(covering(ByteCount::mib(2)), Some(ByteCount::mib(4)));
        assert_eq!(covering(ByteCount::mib(8)), None);
    }
}
