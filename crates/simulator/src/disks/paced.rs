//! A disk that completes reads as late as its pace allows: a throttle that works in bursts.
//!
//! ```text
//!   reads without a pause, of costs c(1), c(2), ...     each read costs `each` for its share of the
//!                                                       read size
//!   e(j)  ≤  once + e(i) + c(i+1) + ... + c(j)          for any i < j, and from the end of a pause
//! ```
//!
//! Nothing else is promised: the disk may be quick for a while and then make up for it. A pause is
//! a moment at which the device has nothing to do.

use crate::scenario::Timing;
use disk::{Calibration, LONGER, ReadGuarantee, ReadPace};
use engine::DiskGuarantee;
use std::time::Duration;
use units::{BitRate, ByteCount, Moment, nanos};

/// A disk whose reads fall behind its pace by `once` at most.
#[derive(Debug)]
pub(super) struct PacedTiming {
    pace: ReadPace,
    read_size: ByteCount,
    timing: Timing,
    /// The end of the last read.
    last_end: Moment,
    /// The least of e(i) + c(i+1) + ... + c(j) since the last pause.
    envelope: Moment,
}

impl PacedTiming {
    pub(super) fn new(pace: ReadPace, read_size: ByteCount, timing: Timing) -> Self {
        Self { pace, read_size, timing, last_end: Moment::ZERO, envelope: Moment::ZERO }
    }

    /// The end of a read that starts now.
    pub(super) fn serve(&mut self, now: Moment, len: u32, rng: &mut fastrand::Rng) -> Moment {
        if now > self.last_end {
            (self.last_end, self.envelope) = (now, now);
        }
        // A shorter read than the calibrated size takes its part of the time.
        let product = u128::from(nanos(self.pace.each)) * u128::from(len);
        let nanos = product.div_ceil(u128::from(self.read_size.0));
        let cost = Duration::from_nanos(u64::try_from(nanos).expect("short"));
        self.envelope = self.envelope.min(self.last_end) + cost;
        let earliest = self.last_end + cost / FASTEST_FACTOR;
        let latest = (self.envelope + self.pace.once).max(earliest);
        self.last_end = match self.timing {
            Timing::Early => earliest,
            Timing::Late => latest,
            Timing::Even => (self.last_end + cost).min(latest),
            // Long quick times, and then as late as allowed.
            Timing::Mixed if rng.u8(..64) == 0 => latest,
            Timing::Mixed => Moment(rng.u64(earliest.0..=(earliest + cost).min(latest).0)),
        };
        self.last_end
    }
}

/// The pace of a disk with this guarantee in reads per slot: half a slot of delay at most.
pub(super) fn pace_of(slot: Duration, guarantee: DiskGuarantee) -> ReadPace {
    let once = guarantee.longest_read.min(slot / 2);
    ReadPace { once, each: (slot - once) / guarantee.min_read }
}

/// The record that a calibration of such a disk would give.
pub(super) fn calibration_of(slot: Duration, guarantee: DiskGuarantee) -> Calibration {
    let pace = pace_of(slot, guarantee);
    let reads = ReadGuarantee {
        read_size: guarantee.read_size,
        min_read: guarantee.min_read,
        mean_read: slot.as_secs_f64() / pace.each.as_secs_f64(),
        longest_read: pace.once + pace.each,
        longer: [0; LONGER],
        pace,
    };
    Calibration {
        slot,
        guarantees: vec![reads],
        queue_depth: guarantee.queue_depth,
        r0: BitRate::of(guarantee.read_size, pace.each),
        method: "of a simulated disk".to_owned(),
        ..Calibration::default()
    }
}

/// How many times as fast as its pace the disk is at its fastest.
const FASTEST_FACTOR: u32 = 4;
