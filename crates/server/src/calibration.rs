//! The calibration of a store's disk (measured, or computed for a modelled or throttled disk), and
//! the choice of the read size.

use crate::engine::DiskGuarantee;
use device::{
    BlockDevice, CalibrateOptions, CalibrateProgress, DeviceError, DiskAccess, Pool, calibrate,
};
use disk::{Calibration, DiskModel, ReadGuarantee};
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
    Calibration::from_model(model, slot, &READ_SIZES)
}

/// The calibration of a throttle to `rate`, by arithmetic: reads pass the throttle one after
/// another.
pub(crate) fn of_throttle(rate: BitRate, slot: Duration) -> Calibration {
    let guarantee = |size: ByteCount| {
        let each = size.time_at(rate);
        let reads = slot.as_nanos() / each.as_nanos().max(1);
        ReadGuarantee {
            read_size: size,
            // One read may already be half through the throttle when the slot begins.
            min_read: u32::try_from(reads.saturating_sub(1)).unwrap_or(u32::MAX),
            mean_read: slot.as_secs_f64() / each.as_secs_f64(),
            longest_read: each,
        }
    };
    Calibration {
        slot,
        guarantees: READ_SIZES.map(guarantee).into(),
        queue_depth: THROTTLE_DEPTH,
        r0: rate,
        t0: Duration::ZERO,
        zones: vec![(ByteCount::ZERO, rate)],
        actuator: None,
        writing: None,
        method: format!("computed from a throttle to {rate}"),
        measured_at: 0,
        measured: None,
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
            // A read passes the disk and then the throttle.
            longest_read: a.longest_read + b.longest_read,
        })
    });
    Calibration {
        guarantees: guarantees.collect(),
        method: format!("{}; {}", modelled.method, throttled.method),
        ..modelled.clone()
    }
}

/// The expected audience of a store, on which the choice of the read size depends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Audience {
    /// Mean rate of its titles.
    pub(crate) rate: BitRate,
    /// Memory for this disk's buffers.
    pub(crate) memory: ByteCount,
}

/// Chooses the guarantee to schedule by: of all measured read sizes, the one with which most
/// streams of the audience's rate fit, by disk and by memory. `None` where no size guarantees a
/// read.
pub(crate) fn choose(
    calibration: &Calibration,
    slot: Duration,
    audience: Audience,
) -> Option<DiskGuarantee> {
    let mut sizes: Vec<ByteCount> = calibration.guarantees.iter().map(|g| g.read_size).collect();
    // In ascending order, because below the larger of two equal choices may win.
    sizes.sort_unstable();
    let guarantees = sizes.into_iter().filter_map(|size| guarantee_of(calibration, slot, size));
    let held = |guarantee: &DiskGuarantee| streams(guarantee, slot, audience).min(ENOUGH);
    guarantees.reduce(|best, next| {
        // Where both hold as many streams, larger reads cost less processor time, up to a size;
        // above it, smaller reads start sessions sooner.
        let cheap = next.read_size <= CHEAP_READ && held(&next) == held(&best);
        if held(&next) > held(&best) || cheap { next } else { best }
    })
}

/// The guarantee of reads of one size; `None` where the size is not calibrated, or no read of it
/// completes in a slot.
pub(crate) fn guarantee_of(
    calibration: &Calibration,
    slot: Duration,
    read_size: ByteCount,
) -> Option<DiskGuarantee> {
    let measured = calibration.guarantee_for(read_size)?;
    let min_read = in_slot(measured.min_read, calibration.slot, slot);
    let queue_depth = calibration.queue_depth.max(1);
    // The measured time includes waiting behind other reads in the device.
    let longest_read = measured.longest_read;
    (min_read > 0).then_some(DiskGuarantee { min_read, read_size, longest_read, queue_depth })
}

/// Number of streams that a guarantee holds: by disk (reads in a slot) and by memory (buffers of a
/// stream).
fn streams(guarantee: &DiskGuarantee, slot: Duration, audience: Audience) -> u64 {
    let needed = audience.rate.bytes_in(slot).0.max(1);
    let by_disk = u64::from(guarantee.min_read) * guarantee.read_size.0 / needed;
    let by_memory = audience.memory.0 / (BUFFERS_PER_STREAM * guarantee.read_size.0);
    by_disk.min(by_memory)
}

/// Converts a guarantee measured with slots of one length to slots of another length.
fn in_slot(min_read: u32, measured: Duration, slot: Duration) -> u32 {
    if slot == measured {
        return min_read;
    }
    // A longer slot contains whole measured slots. For a shorter slot only the mean is known, and
    // half of the mean allows for reads that complete unevenly.
    let whole = slot.as_nanos() / measured.as_nanos().max(1);
    let reads = match whole {
        0 => u128::from(min_read) * slot.as_nanos() / measured.as_nanos().max(1) / 2,
        whole => u128::from(min_read) * whole,
    };
    u32::try_from(reads).unwrap_or(u32::MAX)
}

/// Queue depth of a throttle: one read that passes it, and one that waits.
const THROTTLE_DEPTH: u32 = 2;
/// Number of streams beyond which network and processor are likely to be the limit, and the choice
/// does not try to hold more.
const ENOUGH: u64 = 256;
/// The size from which larger reads hardly save processor time per byte.
const CHEAP_READ: ByteCount = ByteCount::MIB;
/// Buffers of a stream, in reads: one being filled, one being sent, and two read ahead.
const BUFFERS_PER_STREAM: u64 = 4;

#[cfg(test)]
mod tests {
    use super::*;

    const SLOT: Duration = Duration::from_millis(500);

    fn choice(model: &str, memory_mib: u64, wanted: Option<ByteCount>) -> (u64, u32) {
        let calibration = of_model(&DiskModel::preset(model).unwrap(), SLOT);
        let audience = Audience { rate: BitRate(8_000_000), memory: ByteCount::mib(memory_mib) };
        let chosen = match wanted {
            Some(size) => guarantee_of(&calibration, SLOT, size).unwrap(),
            None => choose(&calibration, SLOT, audience).unwrap(),
        };
        assert_eq!(calibration.guarantee_for(chosen.read_size).unwrap().min_read, chosen.min_read);
        (chosen.read_size.0 >> 10, chosen.queue_depth)
    }

    #[test]
    fn small_reads_have_a_guarantee_of_their_own() {
        let calibration = of_model(&DiskModel::preset("st39183w").unwrap(), SLOT);
        let reads = |kib| guarantee_of(&calibration, SLOT, ByteCount::kib(kib)).unwrap().min_read;
        assert_eq!((reads(64), reads(256)), (23, 11));
    }

    #[test]
    fn a_hard_disk_gets_large_reads_if_memory_allows() {
        assert_eq!(choice("hdd-20tb", 16 * 1024, None).0, 16 * 1024);
        assert_eq!(choice("hdd-20tb", 2 * 1024, None).0, 4 * 1024);
        assert_eq!(choice("hdd-20tb", 64, None).0, 256);
        assert_eq!(choice("hdd-20tb", 64, Some(ByteCount::kib(512))).0, 512);
    }

    #[test]
    fn a_fast_disk_gets_reads_of_low_processor_cost_if_memory_allows() {
        assert_eq!(choice("ssd-nvme", 2 * 1024, None).0, 1024);
        assert_eq!(choice("ssd-nvme", 256, None).0, 256);
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
        let audience = Audience { rate: BitRate(8_000_000), memory: ByteCount::mib(64) };
        assert_eq!(guarantee_of(&calibration, SLOT, ByteCount::mib(4)), None);
        assert_eq!(choose(&calibration, SLOT, audience), None);
    }

    #[test]
    fn a_guarantee_converted_to_other_slots_is_not_larger() {
        let ms = Duration::from_millis;
        assert_eq!(in_slot(10, ms(500), ms(500)), 10);
        assert_eq!(in_slot(10, ms(500), ms(1900)), 30);
        assert_eq!(in_slot(10, ms(500), ms(250)), 2);
    }
}
