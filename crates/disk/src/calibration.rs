//! What calibration learned of one device: the numbers that admission stands on.

use std::time::Duration;
use units::{BitRate, ByteCount};

/// The guarantee for reads of one size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReadGuarantee {
    /// Bytes of each read.
    pub read_size: ByteCount,
    /// Reads completed in any slot under the worst placement tried (`minRead`).
    pub min_read: u32,
    /// Mean reads per slot over the same runs: what the disk usually does.
    pub mean_read: f64,
    /// The longest single read seen.
    pub longest_read: Duration,
}

/// A calibration record.
#[derive(Clone, Debug, PartialEq)]
pub struct Calibration {
    /// The slot that the guarantees speak of.
    pub slot: Duration,
    /// Smallest read first.
    pub guarantees: Vec<ReadGuarantee>,
    /// Reads in the device at once that held the most.
    pub queue_depth: u32,
    /// Fitted `r0` of t = b/r0 + t0 (Lee & Srivastava eq. 1): the rate of an endless read.
    pub r0: BitRate,
    /// Fitted `t0`: what a read costs before its first byte.
    pub t0: Duration,
    /// Sequential rate by place: (offset, rate), lowest offset first.
    pub zones: Vec<(ByteCount, BitRate)>,
    /// How the reads were made, and of what: for people.
    pub method: String,
    /// Unix time in seconds.
    pub measured_at: u64,
}
