//! A disk as arithmetic: its properties, the places of its bytes, and the service of requests.
//!
//! A model has no state: the moving part is the [`Head`]. The guarantees of a disk are in
//! `guarantee.rs`.

use crate::Head;
use crate::models;
use crate::parameters::{Flash, Mechanics, Parameters};
use crate::platters::{Platters, duration};
use std::sync::Arc;
use std::time::Duration;
use units::{BitRate, ByteCount, Reason, float, rounded};

/// A modelled disk. Cheap to clone.
#[derive(Clone, Debug, PartialEq)]
pub struct DiskModel {
    parameters: Arc<Parameters>,
    capacity: u64,
    pub(crate) kind: Kind,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Kind {
    Spinning(Platters),
    Flash(Chips),
}

/// A disk without an actuator, in nanoseconds.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Chips {
    pub(crate) latency: u64,
    pub(crate) lanes: u32,
    pub(crate) read_per_byte: f64,
    pub(crate) write_per_byte: f64,
}

impl DiskModel {
    /// The built-in disk with this name: one of [`DiskModel::presets`].
    pub fn preset(name: &str) -> Option<Self> {
        models::all().iter().find(|p| p.name == name).map(|p| Self::of(Arc::clone(p), p.capacity))
    }

    /// All built-in disks, in the order of `tenuto disk models`.
    pub fn presets() -> Vec<Self> {
        models::all().iter().map(|p| Self::of(Arc::clone(p), p.capacity)).collect()
    }

    /// The text of the parameter file of a built-in disk.
    pub fn preset_text(name: &str) -> Option<&'static str> {
        models::TEXTS.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
    }

    /// A disk with these parameters, if it is possible.
    pub fn new(parameters: Parameters) -> Result<Self, Reason> {
        parameters.check()?;
        let capacity = parameters.capacity;
        Ok(Self::of(Arc::new(parameters), capacity))
    }

    /// This disk with the places of `size` bytes stretched evenly over its whole range: first to
    /// last byte is a full stroke through all zones, while transfer times are unchanged. So a small
    /// store has the seeks and zones of the whole disk. `size` is not zero.
    pub fn scaled_to(&self, size: ByteCount) -> Self {
        assert!(size.0 > 0, "a disk has at least one byte");
        Self::of(Arc::clone(&self.parameters), size.0)
    }

    fn of(parameters: Arc<Parameters>, capacity: u64) -> Self {
        let kind = match &parameters.mechanics {
            Mechanics::Spinning(spinning) => {
                Kind::Spinning(Platters::new(spinning, parameters.capacity, capacity))
            }
            Mechanics::Flash(flash) => Kind::Flash(Chips::new(flash)),
        };
        Self { parameters, capacity, kind }
    }

    /// The name that users type: `hdd-20tb`.
    pub fn name(&self) -> &str {
        &self.parameters.name
    }

    /// A description for users.
    pub fn title(&self) -> &str {
        &self.parameters.title
    }

    /// The parameters of the model.
    pub fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// The capacity after scaling.
    pub fn capacity(&self) -> ByteCount {
        ByteCount(self.capacity)
    }

    /// Whether it has an actuator.
    pub fn rotational(&self) -> bool {
        matches!(self.kind, Kind::Spinning(_))
    }

    /// The time of one revolution; zero without an actuator.
    pub fn revolution(&self) -> Duration {
        match &self.kind {
            Kind::Spinning(platters) => Duration::from_nanos(platters.revolution),
            Kind::Flash(_) => Duration::ZERO,
        }
    }

    /// The number of cylinders, as capacity, rates and heads imply; zero without an actuator.
    pub fn cylinders(&self) -> u64 {
        match &self.kind {
            Kind::Spinning(platters) => platters.cylinders(),
            Kind::Flash(_) => 0,
        }
    }

    /// The time of a seek over a share of the stroke (0 to 1): 0 is the shortest seek, to the next
    /// cylinder. Zero without an actuator.
    pub fn seek_time(&self, part: f64) -> Duration {
        match &self.kind {
            Kind::Spinning(p) => duration(p.seek.time(part.clamp(1.0 / float(p.cylinders()), 1.0))),
            Kind::Flash(_) => Duration::ZERO,
        }
    }

    /// The mean time of seeks between uniformly distributed places.
    pub fn mean_seek_time(&self) -> Duration {
        // Two such places have the distance x with density 2 (1 - x).
        let steps = 1000;
        let seek = |i: u32| {
            let x = (f64::from(i) + 0.5) / f64::from(steps);
            self.seek_time(x).as_secs_f64() * 2.0 * (1.0 - x) / f64::from(steps)
        };
        Duration::from_secs_f64((0..steps).map(seek).sum())
    }

    /// The sequential rate by place: (offset, rate), lowest offset first.
    pub fn zones(&self) -> Vec<(ByteCount, BitRate)> {
        match &self.kind {
            Kind::Spinning(p) => {
                p.zone_rates().into_iter().map(|(at, rate)| (ByteCount(at), rate)).collect()
            }
            Kind::Flash(chips) => vec![(ByteCount::ZERO, rate(chips.read_per_byte))],
        }
    }

    /// The sequential rate in the slowest zone.
    pub fn slowest_rate(&self) -> BitRate {
        match &self.kind {
            Kind::Spinning(platters) => rate(platters.slowest_per_byte()),
            Kind::Flash(chips) => rate(chips.read_per_byte),
        }
    }

    /// The mean sequential rate of the whole disk.
    pub fn mean_rate(&self) -> BitRate {
        match &self.kind {
            Kind::Spinning(platters) => rate(platters.mean_per_byte()),
            Kind::Flash(chips) => rate(chips.read_per_byte),
        }
    }

    /// The time in which a solid-state disk takes a large write of this size; `None` for a hard
    /// disk, which writes as fast as it reads.
    pub fn write_time(&self, size: ByteCount) -> Option<Duration> {
        let Kind::Flash(chips) = &self.kind else { return None };
        Some(Duration::from_nanos(rounded((float(size.0) * chips.write_per_byte).ceil())))
    }

    /// The head, at rest at the first byte at time zero.
    pub fn head(&self) -> Head {
        Head::new(self.clone())
    }
}

impl Chips {
    fn new(flash: &Flash) -> Self {
        Self {
            latency: rounded(flash.latency_ms * 1e6),
            lanes: flash.lanes,
            read_per_byte: 1e3 / flash.read_mb_s,
            write_per_byte: 1e3 / flash.write_mb_s,
        }
    }
}

fn rate(per_byte: f64) -> BitRate {
    BitRate(rounded(8e9 / per_byte))
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;
    use std::fmt::Write;

    #[test]
    fn the_built_in_disks_have_their_published_figures() {
        let mut table = String::new();
        for model in DiskModel::presets() {
            let zones = model.zones();
            writeln!(
                table,
                "{:<14} {:>9}  outer {:>11}  mean {:>11}  inner {:>11}  zones {:>2}",
                model.name(),
                model.capacity().to_string(),
                zones[0].1.to_string(),
                model.mean_rate().to_string(),
                model.slowest_rate().to_string(),
                zones.len(),
            )
            .unwrap();
            assert_eq!(DiskModel::preset(model.name()), Some(model));
        }
        expect![[r#"
            st39183w         8.5 GiB  outer 115.94 Mb/s  mean  102.6 Mb/s  inner  73.39 Mb/s  zones 18
            atlas-iv         8.5 GiB  outer 163.76 Mb/s  mean 132.42 Mb/s  inner 103.68 Mb/s  zones 11
            st318406lw      17.1 GiB  outer 461.92 Mb/s  mean 394.47 Mb/s  inner 311.36 Mb/s  zones 14
            hdd-20tb        18.2 TiB  outer   2.28 Gb/s  mean   1.73 Gb/s  inner   1.14 Gb/s  zones 24
            ssd-sata         1.7 TiB  outer    4.4 Gb/s  mean    4.4 Gb/s  inner    4.4 Gb/s  zones  1
            ssd-nvme         3.5 TiB  outer     52 Gb/s  mean     52 Gb/s  inner     52 Gb/s  zones  1
            makaroff-small   8.5 GiB  outer  96.99 Mb/s  mean  84.28 Mb/s  inner   63.7 Mb/s  zones  9
            makaroff-large  11.7 GiB  outer  461.9 Mb/s  mean 394.47 Mb/s  inner 311.39 Mb/s  zones 14
        "#]]
        .assert_eq(&table);
        assert_eq!(DiskModel::preset("floppy"), None);
    }

    #[test]
    fn a_small_store_has_the_seeks_of_the_whole_disk() {
        let disk = DiskModel::preset("hdd-20tb").unwrap();
        let small = disk.scaled_to(ByteCount(1 << 30));
        assert_eq!(small.capacity(), ByteCount(1 << 30));
        assert_eq!(small.slowest_rate(), disk.slowest_rate());
        assert_eq!(small.zones().len(), disk.zones().len());
        let (far, near) = ((1 << 30) - 4096, 1 << 30);
        let full = small.head().serve(units::Moment::ZERO, far, 4096, false);
        assert!(full.seek > Duration::from_millis(14), "end to end is a full stroke: {full:?}");
        let local = disk.head().serve(units::Moment::ZERO, near, 4096, false);
        assert!(local.seek < Duration::from_millis(2), "1 GiB of 20 TB is next door: {local:?}");
    }
}
