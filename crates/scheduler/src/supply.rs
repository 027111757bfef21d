//! The supply side of an admission request: what one disk and its share of memory can give.

use crate::disk_timings::DiskTimings;
use std::time::Duration;
use units::Moment;

/// What one disk and its memory can give.
#[derive(Clone, Copy, Debug)]
pub struct Supply<'a> {
    /// Reads it completes in any slot.
    pub min_read: u32,
    /// Bytes of the largest read.
    pub read_size: u64,
    /// Bytes of buffers: the disk's share.
    pub memory: u64,
    /// The scheduling period.
    pub slot: Duration,
    /// When everything that is in the device, and the writes that may come at once, are certainly
    /// done; not before now.
    pub free_at: Moment,
    /// Reads of other work that may be left in the device when the next slot begins, and are made
    /// before any other. Zero where time is counted: there `free_at` has them.
    pub owed: u32,
    /// What else is known of it.
    pub timings: &'a DiskTimings,
}
