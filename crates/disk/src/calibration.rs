//! The calibration of one device: the numbers on which admission relies.

use crate::bounds::ReadCost;
use crate::platters::duration;
use crate::{Actuator, DiskModel};
use serde::{Deserialize, Serialize};
use std::time::Duration;
use units::{BitRate, ByteCount, float, nanos};

/// The guarantee for reads of one size.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReadGuarantee {
    /// The size of each read.
    pub read_size: ByteCount,
    /// Reads completed in any slot under the worst placement tried (`minRead`).
    pub min_read: u32,
    /// Mean reads per slot over the same runs: the usual performance of the disk.
    pub mean_read: f64,
    /// The longest single read observed.
    pub longest_read: Duration,
    /// Fewest reads in any 2, 4, 8, 16, 32 and 64 consecutive slots of reading without a pause;
    /// zero where no stretch of so many slots was measured.
    pub longer: [u32; LONGER],
    /// A bound for any number of reads that are made without a pause.
    pub pace: ReadPace,
}

/// The number of longer stretches of slots in a [`ReadGuarantee`]: 2, 4, 8, 16, 32, 64.
pub const LONGER: usize = 6;

/// A bound for reads made without a pause: `n` of them take at most `once + n × each`, wherever
/// they are. In network calculus a rate-latency service curve.
///
/// ```text
///   reads done                          ╱        A throttle that lets reads pass in bursts every
///                                  ┌──╱─         100 ms is behind its mean rate by up to 100 ms,
///                             ┌──╱─┘             once, however many reads follow.
///                        ┌──╱─┘
///                   ─────╱─┘                     each: the slope; once: the longest delay
///   time                └ once
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadPace {
    /// The longest time by which reads fell behind `each`.
    pub once: Duration,
    /// The time of a read in the long run.
    pub each: Duration,
}

/// A delay that did not recur when the measurement was repeated, and is not part of the guarantees.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outlier {
    /// The size of the reads that were delayed.
    pub read_size: ByteCount,
    /// Time from the beginning of the calibration until the round with the delay.
    pub at: Duration,
    /// The delay.
    pub delay: Duration,
}

impl ReadGuarantee {
    /// A guarantee of which no more is known than one slot: a longer stretch holds as many times
    /// the reads, and any reads are behind by the longest one.
    pub fn of_slot(
        slot: Duration,
        read_size: ByteCount,
        min_read: u32,
        mean_read: f64,
        longest_read: Duration,
    ) -> Self {
        let each = match min_read {
            0 => longest_read,
            // Rounded up: so many reads take no less than a slot.
            _ => Duration::from_nanos(nanos(slot).div_ceil(u64::from(min_read))),
        };
        let pace = ReadPace { once: longest_read.saturating_sub(each), each };
        let longer = std::array::from_fn(|at| min_read.saturating_mul(2 << at));
        Self { read_size, min_read, mean_read, longest_read, longer, pace }
    }

    /// Fewest reads of any 1, 2, 4, ... 64 slots, as (slots, reads), as far as was measured.
    pub fn fewest(&self) -> impl Iterator<Item = (u64, u32)> + '_ {
        let longer = (1..).zip(&self.longer).map(|(power, reads)| (1 << power, *reads));
        std::iter::once((1, self.min_read)).chain(longer.take_while(|(_, reads)| *reads > 0))
    }
}

impl ReadPace {
    /// Fewest reads that are complete in any `time` of reading without a pause.
    pub fn reads_in(&self, time: Duration) -> u32 {
        let left = time.saturating_sub(self.once).as_nanos();
        u32::try_from(left / self.each.as_nanos().max(1)).unwrap_or(u32::MAX)
    }
}

/// The disk time that writes take from concurrent reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WriteCost {
    /// The size of each write; writes are sequential.
    pub write_size: ByteCount,
    /// The mean disk time that a write, with its share of a flush, takes from the reads.
    pub mean: Duration,
    /// The time of one write in the worst round measured.
    pub slowest: Duration,
}

/// The time of reads made without a pause, wherever they are: at most `once`, and for each read
/// `each` and its bytes. All in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadLine {
    /// The longest delay, once.
    pub once: u64,
    /// The time of a read beside its bytes.
    pub each: u64,
    /// The time of 2^20 bytes.
    pub per_mib: u64,
}

/// The part of a device that a calibration could read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MeasuredPart {
    /// The bytes that were written before, of which reads reach the medium.
    pub bytes: ByteCount,
    /// The bytes of the whole area.
    pub whole: ByteCount,
}

impl MeasuredPart {
    /// The bytes that must have been written in an area of `whole` bytes before a measurement is
    /// more than one of a cache: 256 MiB or 1 %, whichever is more, and of a small area the half.
    pub fn enough_of(whole: ByteCount) -> ByteCount {
        ByteCount((whole.0 / 100).max(MORE_THAN_A_CACHE.0).min(whole.0 / 2))
    }

    /// Whether the part is large enough for guarantees that are kept.
    pub fn is_enough(self) -> bool {
        self.bytes >= Self::enough_of(self.whole)
    }
}

/// More than the caches of most disks hold.
const MORE_THAN_A_CACHE: ByteCount = ByteCount::mib(256);

/// A calibration record.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
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
    /// The part of the device that was read; `None` where the record was computed.
    pub measured: Option<MeasuredPart>,
    /// Delays that were measured once and did not recur.
    #[serde(default)]
    pub outliers: Vec<Outlier>,
}

impl Calibration {
    /// Whether too little of the device was written for guarantees that are kept: the reads of the
    /// measurement may have been answered by a cache.
    pub fn is_provisional(&self) -> bool {
        self.measured.is_some_and(|part| !part.is_enough())
    }

    /// The rate of an endless read: the fitted rate or the mean of the zones, whichever is less.
    /// `None` if neither is known.
    pub fn endless_rate(&self) -> Option<BitRate> {
        let rates: u64 = self.zones.iter().map(|(_, rate)| rate.0).sum();
        let zones = rates.checked_div(self.zones.len() as u64);
        [Some(self.r0.0), zones].into_iter().flatten().filter(|rate| *rate > 0).min().map(BitRate)
    }

    /// Reduces every guarantee and mean to the rate of an endless read, which no read of a limited
    /// size exceeds; the method then says so. A cache or an error of the fit can measure more.
    #[must_use]
    pub fn limited_to_endless_rate(mut self) -> Self {
        let Some(rate) = self.endless_rate() else { return self };
        let mut limited = false;
        for guarantee in &mut self.guarantees {
            let bytes = rate.bytes_in(self.slot).0;
            let most = u32::try_from(bytes / guarantee.read_size.0.max(1)).unwrap_or(u32::MAX);
            let mean = float(bytes) / float(guarantee.read_size.0.max(1));
            limited |= guarantee.min_read > most || guarantee.mean_read > mean;
            guarantee.min_read = guarantee.min_read.min(most);
            guarantee.mean_read = guarantee.mean_read.min(mean);
            for (power, reads) in (1u64..).zip(&mut guarantee.longer) {
                let most = (bytes << power) / guarantee.read_size.0.max(1);
                *reads = (*reads).min(u32::try_from(most).unwrap_or(u32::MAX));
            }
            let each = guarantee.read_size.time_at(rate);
            guarantee.pace.each = guarantee.pace.each.max(each);
        }
        if limited {
            self.method.push_str("; limited to the rate of an endless read");
        }
        self
    }

    /// The guarantee that covers reads of `read_size`: that of the next larger measured size, which
    /// takes at least as long. `None` if all measured sizes are smaller.
    pub fn guarantee_for(&self, read_size: ByteCount) -> Option<ReadGuarantee> {
        self.guarantees.iter().find(|g| g.read_size >= read_size).copied()
    }

    /// A calibration of this disk for slots of another length, with guarantees that are not larger.
    #[must_use]
    pub fn in_slots(mut self, slot: Duration) -> Self {
        if slot == self.slot {
            return self;
        }
        // A longer slot contains whole measured slots. For a shorter slot only the mean is known,
        // and half of the mean allows for reads that complete unevenly.
        let measured = self.slot.as_nanos().max(1);
        let whole = slot.as_nanos() / measured;
        for g in &mut self.guarantees {
            let reads = match whole {
                0 => u128::from(g.min_read) * slot.as_nanos() / measured / 2,
                whole => u128::from(g.min_read) * whole,
            };
            g.min_read = u32::try_from(reads).unwrap_or(u32::MAX);
            g.longer = std::array::from_fn(|at| g.min_read.saturating_mul(2 << at));
            g.mean_read *= slot.as_secs_f64() / self.slot.as_secs_f64();
        }
        Self { slot, ..self }
    }

    /// What reads of at most `largest` cost wherever they are, as a straight line over their bytes:
    /// the least line above the measured time of a read of each size. `None` where no guarantee
    /// covers such reads.
    pub fn line(&self, largest: ByteCount) -> Option<ReadLine> {
        let top = self.guarantee_for(largest).filter(|g| g.min_read > 0)?;
        let each_of = |g: &ReadGuarantee| nanos(g.pace.each).max(1);
        let (whole, size) = (each_of(&top), top.read_size.0.max(1));
        let smaller = || {
            let covered = |g: &&ReadGuarantee| g.read_size.0 < size && g.min_read > 0;
            self.guarantees.iter().filter(covered)
        };
        // As steep as can be without the time of any smaller read above the line.
        let mut per_mib = (u128::from(whole) << 20) / u128::from(size);
        for g in smaller() {
            let rise = u128::from(whole.saturating_sub(each_of(g))) << 20;
            per_mib = per_mib.min(rise / u128::from(size - g.read_size.0));
        }
        let once = smaller().map(|g| g.pace.once).fold(top.pace.once, Duration::max);
        let per_mib = u64::try_from(per_mib).ok()?;
        let bytes = u64::try_from((u128::from(size) * u128::from(per_mib)) >> 20).ok()?;
        // The time of bytes is rounded down; one nanosecond more keeps the line above.
        Some(ReadLine { once: nanos(once), each: whole.saturating_sub(bytes) + 1, per_mib })
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
            method: format!("computed from the model {}", model.name()),
            // No actuator: the model itself is known and more precise.
            ..Self::default()
        }
    }

    /// The line through the mean times of these reads; with only one size, also of reads of twice
    /// that size.
    fn cost_of(model: &DiskModel, slot: Duration, sizes: &[ByteCount]) -> ReadCost {
        let largest = sizes.last().copied().unwrap_or(ByteCount::MIB);
        let points: Vec<(f64, f64)> = sizes
            .iter()
            .copied()
            .chain([ByteCount(largest.0 * 2)])
            .map(|size| (float(size.0), model.mean_read_nanos(size, slot)))
            .collect();
        let none = ReadCost { r0: model.mean_rate(), t0: Duration::ZERO };
        ReadCost::fit_nanos(&points).unwrap_or(none)
    }
}

impl DiskModel {
    fn guarantee(&self, read_size: ByteCount, slot: Duration) -> ReadGuarantee {
        let mean = self.mean_read(read_size, slot);
        let usual = slot.as_secs_f64() / mean.as_secs_f64();
        let min_read = self.guaranteed_reads(read_size, slot);
        ReadGuarantee::of_slot(slot, read_size, min_read, usual, self.worst_read(read_size))
    }

    /// The mean time of a read when as many as fit in a slot are spread evenly over the disk.
    fn mean_read(&self, size: ByteCount, slot: Duration) -> Duration {
        // Not zero: callers divide by it.
        duration(self.mean_read_nanos(size, slot).max(1.0))
    }

    /// Nanoseconds of a read when as many as fit in a slot are spread evenly over the disk.
    fn mean_read_nanos(&self, size: ByteCount, slot: Duration) -> f64 {
        let mut count = 1;
        // With more reads in a sweep they are closer together and faster; this converges quickly.
        for _ in 0..4 {
            let time = self.mean_read_time(size, count);
            let reads = slot.as_nanos() / time.as_nanos().max(1);
            count = u32::try_from(reads).unwrap_or(u32::MAX);
        }
        self.mean_nanos(size, count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;
    use std::fmt::Write;

    /// 4.4 Gb/s are 88 times 50 Mb/s: no part of a nanosecond is lost on the way there.
    #[test]
    fn a_rate_that_is_a_whole_number_of_streams_holds_as_many() {
        let model = DiskModel::preset("ssd-sata").unwrap();
        for mib in [1, 2, 4, 8] {
            let sizes = [ByteCount::mib(mib)];
            let record = Calibration::from_model(&model, Duration::from_secs(1), &sizes);
            let cost = ReadCost { r0: record.r0, t0: record.t0 };
            assert_eq!((cost.r0, cost.streams(BitRate(50_000_000))), (BitRate(4_400_000_000), 88));
        }
    }

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
    fn a_measurement_of_little_data_is_provisional() {
        let model = DiskModel::preset("ssd-sata").unwrap();
        let slot = Duration::from_millis(500);
        let provisional = |bytes, whole| {
            let measured = Some(MeasuredPart { bytes, whole });
            let record = Calibration::from_model(&model, slot, &[ByteCount::MIB]);
            Calibration { measured, ..record }.is_provisional()
        };
        let mib = ByteCount::mib;
        assert!(provisional(ByteCount::kib(464), mib(200)));
        assert!(provisional(mib(99), mib(200)) && !provisional(mib(100), mib(200)));
        assert!(provisional(mib(255), mib(4096)) && !provisional(mib(256), mib(4096)));
        assert!(provisional(mib(1023), mib(102_400)) && !provisional(mib(1024), mib(102_400)));
        assert!(!Calibration::from_model(&model, slot, &[ByteCount::MIB]).is_provisional());
    }

    #[test]
    fn no_guarantee_exceeds_an_endless_read() {
        let model = DiskModel::preset("ssd-sata").unwrap();
        let sizes = [ByteCount::kib(256), ByteCount::mib(4)];
        let mut record = Calibration::from_model(&model, Duration::from_millis(500), &sizes);
        assert_eq!(record.clone().limited_to_endless_rate(), record, "a model is consistent");
        // 512 KiB and 32 MiB in a slot, at 12.5 MB a slot.
        record.guarantees[0].min_read = 8889;
        record.guarantees[1].min_read = 2;
        (record.r0, record.zones) = (BitRate(200_000_000), Vec::new());
        let limited = record.clone().limited_to_endless_rate();
        let counts: Vec<u32> = limited.guarantees.iter().map(|g| g.min_read).collect();
        assert_eq!(counts, [47, 2]);
        assert!(limited.method.ends_with("; limited to the rate of an endless read"));
        // The slower of the fitted rate and the zones.
        record.zones =
            vec![(ByteCount(0), BitRate(60_000_000)), (ByteCount(1), BitRate(140_000_000))];
        assert_eq!(record.limited_to_endless_rate().guarantees[0].min_read, 23);
    }

    #[test]
    fn a_guarantee_converted_to_other_slots_is_not_larger() {
        let ms = Duration::from_millis;
        let guarantee = ReadGuarantee::of_slot(ms(500), ByteCount::MIB, 10, 12.0, ms(60));
        let model = DiskModel::preset("ssd-sata").unwrap();
        let record = Calibration {
            guarantees: vec![guarantee],
            ..Calibration::from_model(&model, ms(500), &[])
        };
        let reads = |slot| record.clone().in_slots(ms(slot)).guarantees[0].min_read;
        assert_eq!([500, 1900, 250].map(reads), [10, 30, 2]);
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
