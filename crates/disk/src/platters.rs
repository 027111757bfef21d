//! Where a byte lies on spinning platters, and when it passes the head.
//!
//! One number says both: the *streamed* time of an offset, the nanoseconds in which a disk that
//! reads from its first byte on, never interrupted, would come to it. Track and head switches are
//! folded into each zone's sustained rate, so that it grows evenly within a zone.
//!
//! ```text
//!   transfer of [a, b)  =  streamed(b) - streamed(a)
//!   cylinder of a       =  streamed(a) / streamed(end) × cylinders   (tracks are revolutions)
//!   angle of a          =  streamed(a) mod one revolution
//! ```

use crate::parameters::Spinning;
use crate::seek::SeekCurve;
use std::time::Duration;
use units::BitRate;

/// The geometry of a spinning disk, ready for arithmetic. Times in nanoseconds.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Platters {
    pub(crate) revolution: u64,
    pub(crate) overhead: u64,
    pub(crate) seek: SeekCurve,
    pub(crate) read_ahead: u64,
    pub(crate) bus_per_byte: f64,
    pub(crate) capacity: u64,
    cylinders: f64,
    zones: Vec<ZoneStart>,
    streamed_total: f64,
}

#[derive(Clone, Debug, PartialEq)]
struct ZoneStart {
    offset: u64,
    streamed: f64,
    per_byte: f64,
}

impl Platters {
    /// `capacity` may differ from the disk's: zones and stroke are then stretched over it, rates
    /// stay.
    pub(crate) fn new(spinning: &Spinning, capacity: u64) -> Self {
        let mut zones: Vec<ZoneStart> = Vec::with_capacity(spinning.zones.len());
        let (mut offset, mut streamed) = (0, 0.0);
        for zone in spinning.zones {
            let end = part_of(capacity, zone.until);
            let per_byte = 1e3 / zone.mb_s;
            zones.push(ZoneStart { offset, streamed, per_byte });
            streamed += float(end - offset) * per_byte;
            offset = end;
        }
        assert_eq!(offset, capacity, "the last zone ends where the disk ends");
        Self {
            revolution: 60_000_000_000 / u64::from(spinning.rpm),
            overhead: whole(spinning.overhead_ms * 1e6),
            seek: SeekCurve::new(&spinning.seek),
            read_ahead: spinning.read_ahead,
            bus_per_byte: 1e3 / spinning.bus_mb_s,
            capacity,
            cylinders: f64::from(spinning.cylinders),
            zones,
            streamed_total: streamed,
        }
    }

    /// See the head of this file. `offset` <= capacity.
    pub(crate) fn streamed(&self, offset: u64) -> f64 {
        let zone = self.zone(offset);
        zone.streamed + float(offset - zone.offset) * zone.per_byte
    }

    /// The cylinder at a streamed time, as a part of the stroke (in steps of one cylinder).
    pub(crate) fn place(&self, streamed: f64) -> f64 {
        (streamed / self.streamed_total * self.cylinders).floor() / self.cylinders
    }

    /// Nanoseconds from `now` until the byte at this streamed time next passes the head, less
    /// than a revolution.
    pub(crate) fn rotation(&self, now: u64, streamed: f64) -> f64 {
        (streamed - float(now % self.revolution)).rem_euclid(float(self.revolution))
    }

    /// Nanoseconds a byte, where it takes longest.
    pub(crate) fn slowest_per_byte(&self) -> f64 {
        self.zones.iter().map(|z| z.per_byte).fold(0.0, f64::max)
    }

    /// Nanoseconds a byte, over the whole disk.
    pub(crate) fn mean_per_byte(&self) -> f64 {
        self.streamed_total / float(self.capacity)
    }

    /// The largest part of the stroke that `length` contiguous bytes cover.
    pub(crate) fn widest(&self, length: u64) -> f64 {
        (float(length) * self.slowest_per_byte() / self.streamed_total).min(1.0)
    }

    /// (offset, rate) of each zone, outermost first.
    pub(crate) fn zone_rates(&self) -> Vec<(u64, BitRate)> {
        self.zones.iter().map(|z| (z.offset, BitRate(whole(8e9 / z.per_byte)))).collect()
    }

    fn zone(&self, offset: u64) -> &ZoneStart {
        debug_assert!(offset <= self.capacity, "{offset} is beyond the disk's {}", self.capacity);
        let after = self.zones.partition_point(|z| z.offset <= offset);
        &self.zones[after.saturating_sub(1)]
    }
}

/// Nanoseconds as a duration, rounded up: a model never promises a moment too early.
pub(crate) fn duration(nanos: f64) -> Duration {
    Duration::from_nanos(whole(nanos.ceil()))
}

#[expect(clippy::cast_precision_loss, reason = "times and sizes stay below 2^53")]
pub(crate) fn float(value: u64) -> f64 {
    value as f64
}

/// To an integer, nearest; 0 for what is negative or no number.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "float to integer casts saturate"
)]
pub(crate) fn whole(value: f64) -> u64 {
    value.round() as u64
}

fn part_of(capacity: u64, part: f64) -> u64 {
    if part >= 1.0 { capacity } else { whole(float(capacity) * part).min(capacity) }
}
