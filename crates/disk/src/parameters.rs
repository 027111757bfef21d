//! What a disk is, in the numbers a data sheet or a measurement gives: the input of a
//! [`DiskModel`](crate::DiskModel).
//!
//! Plain constants in the units people use (milliseconds, MB/s of 10^6 bytes). No arithmetic here.

/// One disk.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameters {
    /// As typed on the command line: `hdd-20tb`.
    pub name: &'static str,
    /// For people: maker, family, year.
    pub title: &'static str,
    /// Bytes.
    pub capacity: u64,
    /// How it comes to a place.
    pub mechanics: Mechanics,
}

/// Arms and platters, or chips.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Mechanics {
    /// One arm over spinning platters.
    Spinning(Spinning),
    /// No moving parts.
    Flash(Flash),
}

/// A disk with an arm.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spinning {
    /// Revolutions per minute.
    pub rpm: u32,
    /// Cylinders: within one, the arm does not move.
    pub cylinders: u32,
    /// From the command's arrival until the arm starts, in ms.
    pub overhead_ms: f64,
    /// How long the arm takes.
    pub seek: SeekTimes,
    /// What the disk reads on, unasked, after a read: bytes.
    pub read_ahead: u64,
    /// Of the interface, in MB/s: what is in the disk's memory comes at this rate.
    pub bus_mb_s: f64,
    /// Outermost first.
    pub zones: &'static [Zone],
}

/// The time of an arm movement over `x` of the full stroke (0 < x <= 1): settle +
/// track + root × √x up to the knee, from there a straight line to `full` at x = 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SeekTimes {
    /// Until the head is quiet enough to read, in ms; part of every movement.
    pub settle_ms: f64,
    /// The rest of the shortest movement, in ms.
    pub track_ms: f64,
    /// Coefficient of √x, in ms.
    pub root_ms: f64,
    /// Where the arm reaches its full speed, as a part of the stroke.
    pub knee: f64,
    /// The longest movement, settle included, in ms.
    pub full_ms: f64,
}

/// A zone of a spinning disk.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Zone {
    /// Where it ends, as a part of the capacity in bytes; the last ends at 1.
    pub until: f64,
    /// Sustained, head and track switches included, in MB/s.
    pub mb_s: f64,
}

/// A disk without an arm.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Flash {
    /// From a command's arrival to its first byte, in ms.
    pub latency_ms: f64,
    /// Commands whose latencies overlap.
    pub lanes: u32,
    /// Sequential, in MB/s.
    pub read_mb_s: f64,
    /// Sequential, in MB/s.
    pub write_mb_s: f64,
}

/// Shorthand for the tables: (until, MB/s).
pub(crate) const fn zone(until: f64, mb_s: f64) -> Zone {
    Zone { until, mb_s }
}
