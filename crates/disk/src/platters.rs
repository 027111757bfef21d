//! The geometry of spinning platters: where a byte is, and when it passes the head.
//!
//! One number gives both: the *streamed* time of an offset, the nanoseconds in which a disk that
//! reads without interruption from its first byte reaches it. Between tracks the disk switches
//! heads, between cylinders it moves the head by one; tracks are skewed by exactly that time, so
//! that the first byte of the next track arrives when the head is ready.
//!
//! ```text
//!   ├─ track ─┤hs├─ track ─┤hs├─ track ─┤cs├─ track ─ ...      streamed time, track = revolution
//!   └────────────── cylinder ─────────────┘
//!
//!   transfer of [a, b)  =  streamed(b) - streamed(a)
//!   cylinder of a       =  streamed(a) / streamed(end) × cylinders
//!   angle of a          =  streamed(a) mod one revolution
//! ```
//!
//! The sustained rate of a zone determines the bytes of its tracks: those that pass in a revolution
//! and the mean switch. A read of n bytes takes at most n at the sustained rate and one cylinder
//! switch: a window of the picture above deviates by no more, because a cylinder switch is the
//! longest.
//!
//! The streamed time is that of the medium. A read or write of the host takes no less than its
//! bytes at the rate of the interface, which may be slower ([`Platters::transfer`]); rates of a
//! zone or of the disk are the slower of the two.

use crate::parameters::Spinning;
use crate::seek::SeekCurve;
use std::time::Duration;
use units::{BitRate, float, rounded};

/// The geometry of a spinning disk, precomputed. Times in nanoseconds.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Platters {
    pub(crate) revolution: u64,
    pub(crate) overhead: u64,
    pub(crate) seek: SeekCurve,
    pub(crate) read_ahead: u64,
    pub(crate) write_back: u64,
    pub(crate) bus_per_byte: f64,
    pub(crate) capacity: u64,
    /// The largest excess of a transfer over its bytes at the sustained rate.
    pub(crate) cylinder_switch: f64,
    head_switch: f64,
    heads: f64,
    cylinders: f64,
    sustained_total: f64,
    zones: Vec<ZoneStart>,
    streamed_total: f64,
}

#[derive(Clone, Debug, PartialEq)]
struct ZoneStart {
    offset: u64,
    streamed: f64,
    /// The sustained time per byte of the medium.
    per_byte: f64,
    track_bytes: f64,
}

impl Platters {
    /// Makes the geometry. `capacity` may differ from the disk's `native` one: zones and stroke are
    /// then stretched over it; rates and tracks stay.
    pub(crate) fn new(spinning: &Spinning, native: u64, capacity: u64) -> Self {
        let revolution = 60_000_000_000 / u64::from(spinning.rpm);
        let heads = f64::from(spinning.heads);
        let (head_switch, cylinder_switch) =
            (spinning.head_switch_ms * 1e6, spinning.cylinder_switch_ms * 1e6);
        let cylinder_time =
            heads * float(revolution) + (heads - 1.0) * head_switch + cylinder_switch;
        let whole_disk: f64 = spinning
            .zones
            .iter()
            .scan(0.0, |start, zone| {
                let part = zone.until - *start;
                *start = zone.until;
                Some(part * float(native) * 1e3 / zone.mb_s)
            })
            .sum();
        let mut platters = Self {
            revolution,
            overhead: rounded(spinning.overhead_ms * 1e6),
            seek: SeekCurve::new(&spinning.seek),
            read_ahead: spinning.read_ahead,
            write_back: spinning.write_back,
            bus_per_byte: 1e3 / spinning.bus_mb_s,
            capacity,
            cylinder_switch,
            head_switch,
            heads,
            // From the native capacity: a scaled disk has as many cylinders, so that seeks stay.
            cylinders: (whole_disk / cylinder_time).round().max(1.0),
            zones: Vec::with_capacity(spinning.zones.len()),
            streamed_total: 0.0,
            sustained_total: 0.0,
        };
        let mut offset = 0;
        for zone in &spinning.zones {
            let end = part_of(capacity, zone.until);
            let per_byte = 1e3 / zone.mb_s;
            let track_bytes = cylinder_time / heads / per_byte;
            let streamed = platters.streamed_total;
            platters.zones.push(ZoneStart { offset, streamed, per_byte, track_bytes });
            platters.streamed_total +=
                platters.within(&platters.zones[platters.zones.len() - 1], end);
            platters.sustained_total += float(end - offset) * per_byte.max(platters.bus_per_byte);
            offset = end;
        }
        assert_eq!(offset, capacity, "the last zone ends where the disk ends");
        platters
    }

    /// The streamed time from byte 0 to `offset`, which is at most the capacity.
    pub(crate) fn streamed(&self, offset: u64) -> f64 {
        let zone = self.zone(offset);
        zone.streamed + self.within(zone, offset)
    }

    /// Nanoseconds in which the bytes from `from` to `end`, once reached, are read or written.
    pub(crate) fn transfer(&self, from: u64, end: u64) -> f64 {
        (self.streamed(end) - self.streamed(from)).max(float(end - from) * self.bus_per_byte)
    }

    /// The streamed time from the zone's start; every zone begins a cylinder.
    fn within(&self, zone: &ZoneStart, offset: u64) -> f64 {
        let tracks = float(offset - zone.offset) / zone.track_bytes;
        let passed = tracks.floor();
        let cylinders = (passed / self.heads).floor();
        passed * self.head_switch
            // The line before counts a head switch after each track; a cylinder's last track has
            // the longer one.
            + cylinders * (self.cylinder_switch - self.head_switch)
            + tracks * float(self.revolution)
    }

    /// The cylinder at a streamed time, as a share of the stroke (in steps of one cylinder).
    pub(crate) fn place(&self, streamed: f64) -> f64 {
        (streamed / self.streamed_total * self.cylinders).floor() / self.cylinders
    }

    /// Nanoseconds from `now` until the byte at this streamed time passes the head next, less than
    /// a revolution.
    pub(crate) fn rotation(&self, now: u64, streamed: f64) -> f64 {
        // The byte may have just passed: then it comes with the next revolution.
        (streamed - float(now % self.revolution)).rem_euclid(float(self.revolution))
    }

    /// The longest sustained time per byte of any zone, in nanoseconds.
    pub(crate) fn slowest_per_byte(&self) -> f64 {
        self.slowest_of_medium().max(self.bus_per_byte)
    }

    /// The longest time per byte of the medium, in nanoseconds.
    fn slowest_of_medium(&self) -> f64 {
        self.zones.iter().map(|z| z.per_byte).fold(0.0, f64::max)
    }

    /// The shortest time per byte of the medium, in nanoseconds.
    pub(crate) fn quickest_of_medium(&self) -> f64 {
        self.zones.iter().map(|z| z.per_byte).fold(f64::INFINITY, f64::min)
    }

    /// The mean sustained time per byte over the whole disk, in nanoseconds.
    pub(crate) fn mean_per_byte(&self) -> f64 {
        self.sustained_total / float(self.capacity)
    }

    /// The largest share of the stroke that `length` contiguous bytes cover.
    pub(crate) fn widest(&self, length: u64) -> f64 {
        let time = float(length) * self.slowest_of_medium() + self.cylinder_switch;
        (time / self.streamed_total).min(1.0)
    }

    /// The number of cylinders of the disk, whatever it is scaled to.
    pub(crate) fn cylinders(&self) -> u64 {
        rounded(self.cylinders)
    }

    /// The offset and sustained rate of each zone, outermost first.
    pub(crate) fn zone_rates(&self) -> Vec<(u64, BitRate)> {
        let rate = |z: &ZoneStart| BitRate(rounded(8e9 / z.per_byte.max(self.bus_per_byte)));
        self.zones.iter().map(|z| (z.offset, rate(z))).collect()
    }

    fn zone(&self, offset: u64) -> &ZoneStart {
        debug_assert!(offset <= self.capacity, "{offset} is beyond the disk's {}", self.capacity);
        let after = self.zones.partition_point(|z| z.offset <= offset);
        &self.zones[after.saturating_sub(1)]
    }
}

/// Nanoseconds as a duration, rounded up: a model's guarantee must not be too early.
pub(crate) fn duration(nanos: f64) -> Duration {
    Duration::from_nanos(rounded(nanos.ceil()))
}

fn part_of(capacity: u64, part: f64) -> u64 {
    // Exact for the last zone: a product of floats could miss the capacity by some bytes.
    if part >= 1.0 { capacity } else { rounded(float(capacity) * part).min(capacity) }
}
