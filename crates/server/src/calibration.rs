//! The calibration of a store's disk: measured, or computed for a modelled or throttled disk.

use crate::read_size::ReadChoice;
use device::{
    BlockDevice, CalibrateOptions, CalibrateProgress, DeviceError, DiskAccess, Pool, calibrate,
};
use disk::{Calibration, DiskModel, ReadGuarantee, ReadPace};
use engine::DiskGuarantee;
use scheduler::DiskTimings;
use std::time::Duration;
use units::{BitRate, ByteCount};

/// Read sizes that a calibration measures.
pub(crate) const READ_SIZES: [ByteCount; 5] = [
    ByteCount::kib(64),
    ByteCount::kib(256),
    ByteCount::MIB,
    ByteCount::mib(4),
    ByteCount::mib(16),
];

/// Measures a device with reads of up to `largest`; the slot, the time and the rest are as in
/// `options`.
pub(crate) fn measure(
    device: &dyn BlockDevice,
    options: CalibrateOptions,
    largest: ByteCount,
    turns: DiskAccess<'_>,
    progress: &mut dyn FnMut(CalibrateProgress),
) -> Result<Calibration, DeviceError> {
    let read_sizes: Vec<ByteCount> =
        READ_SIZES.into_iter().filter(|size| *size <= largest).collect();
    let options = CalibrateOptions { read_sizes, ..options };
    let depth = options.depths.iter().copied().max().unwrap_or(1);
    let pool = Pool::new(ByteCount(largest.0 * u64::from(depth)), largest);
    calibrate(device, &pool, &options, turns, progress)
}

/// The calibration of a modelled disk, by arithmetic.
pub(crate) fn of_model(model: &DiskModel, slot: Duration) -> Calibration {
    Calibration::from_model(model, slot, &every_size())
}

/// The calibration of a throttle to `rate`, by arithmetic: reads pass the throttle one after
/// another.
pub(crate) fn of_throttle(rate: BitRate, slot: Duration) -> Calibration {
    let guarantee = |size: ByteCount| {
        let each = size.time_at(rate);
        // One read may already be half through the throttle when a slot begins.
        let reads_in = |time: Duration| {
            let reads = (time.as_nanos() / each.as_nanos().max(1)).saturating_sub(1);
            u32::try_from(reads).unwrap_or(u32::MAX)
        };
        ReadGuarantee {
            read_size: size,
            min_read: reads_in(slot),
            mean_read: slot.as_secs_f64() / each.as_secs_f64(),
            longest_read: each,
            longer: std::array::from_fn(|at| reads_in(slot * (2 << at))),
            pace: ReadPace { once: each, each },
        }
    };
    Calibration {
        slot,
        guarantees: every_size().into_iter().map(guarantee).collect(),
        queue_depth: THROTTLE_DEPTH,
        r0: rate,
        zones: vec![(ByteCount::ZERO, rate)],
        method: format!("computed from a throttle to {rate}"),
        ..Calibration::default()
    }
}

/// What stands for the calibration of a disk behind the page cache, for the policy `none`, which
/// guarantees nothing: one read at a time, as a program reads a file, and no limit of reads in a
/// slot that a disk could reach.
pub(crate) fn of_page_cache(slot: Duration) -> Calibration {
    Calibration {
        queue_depth: 1,
        method: "through the page cache, without a guarantee".to_owned(),
        ..of_throttle(PAGE_CACHE_RATE, slot)
    }
}

/// The calibration of a modelled disk behind a throttle: the smaller guarantee of the two.
pub(crate) fn both(modelled: &Calibration, throttled: &Calibration) -> Calibration {
    let guarantees = modelled.guarantees.iter().filter_map(|a| {
        let b = throttled.guarantee_for(a.read_size)?;
        Some(ReadGuarantee {
            read_size: a.read_size,
            min_read: a.min_read.min(b.min_read),
            mean_read: a.mean_read.min(b.mean_read),
            // A read passes the disk and then the throttle: delays add up, and the slower of the
            // two sets the pace.
            longest_read: a.longest_read + b.longest_read,
            longer: std::array::from_fn(|at| a.min_read.min(b.min_read).saturating_mul(2 << at)),
            pace: ReadPace { once: a.pace.once + b.pace.once, each: a.pace.each.max(b.pace.each) },
        })
    });
    Calibration {
        guarantees: guarantees.collect(),
        method: format!("{}; {}", modelled.method, throttled.method),
        ..modelled.clone()
    }
}

/// Every size that reads may have: `only`, or all from 64 KiB to the largest measured, smallest
/// first; with the disk's times for it. A size that completes no read in a slot is left out.
pub(crate) fn candidates<'a>(
    calibration: &'a Calibration,
    only: Option<ByteCount>,
    timings: impl Fn(&DiskGuarantee) -> DiskTimings + 'a,
) -> impl Iterator<Item = ReadChoice> + 'a {
    let sizes = every_size().into_iter().filter(move |size| only.is_none_or(|only| only == *size));
    sizes.filter_map(move |size| {
        let guarantee = guarantee_of(calibration, size)?;
        Some(ReadChoice { guarantee, timings: timings(&guarantee) })
    })
}

/// The guarantee of reads of one size; `None` where the size is not calibrated, or no read of it
/// completes in a slot.
pub(crate) fn guarantee_of(
    calibration: &Calibration,
    read_size: ByteCount,
) -> Option<DiskGuarantee> {
    let ReadGuarantee { min_read, longest_read, .. } = calibration.guarantee_for(read_size)?;
    let queue_depth = calibration.queue_depth.max(1);
    // The measured time includes waiting behind other reads in the device.
    (min_read > 0).then_some(DiskGuarantee { min_read, read_size, longest_read, queue_depth })
}

/// Read sizes of a modelled disk, whose guarantees are computed.
fn every_size() -> Vec<ByteCount> {
    (16..=24).map(|power| ByteCount(1 << power)).collect()
}

/// Queue depth of a throttle: one read that passes it, and one that waits.
const THROTTLE_DEPTH: u32 = 2;

/// The rate of the page cache in arithmetic: more than any disk that is read through it.
const PAGE_CACHE_RATE: BitRate = BitRate(8_000_000_000);

#[cfg(test)]
mod tests {
    use super::*;

    const SLOT: Duration = Duration::from_millis(500);

    #[test]
    fn small_reads_have_a_guarantee_of_their_own() {
        let calibration = of_model(&DiskModel::preset("st39183w").unwrap(), SLOT);
        let reads = |kib| guarantee_of(&calibration, ByteCount::kib(kib)).unwrap().min_read;
        assert_eq!((reads(64), reads(256)), (23, 11));
    }

    #[test]
    fn a_throttle_guarantees_no_more_than_its_rate() {
        let calibration = of_throttle(BitRate(80_000_000), SLOT);
        let mib = calibration.guarantee_for(ByteCount::MIB).unwrap();
        assert_eq!(mib.min_read, 3, "5 MB per slot are 4.7 reads, less the one in progress");
        assert_eq!(mib.longest_read, Duration::from_nanos(104_857_600));
    }

    #[test]
    fn a_disk_that_completes_no_read_in_a_slot_has_no_guarantee() {
        let calibration = of_throttle(BitRate(1_000_000), SLOT);
        assert_eq!(guarantee_of(&calibration, ByteCount::mib(4)), None);
        let timings = |_: &DiskGuarantee| DiskTimings::default();
        assert_eq!(candidates(&calibration, None, timings).count(), 0);
    }
}
