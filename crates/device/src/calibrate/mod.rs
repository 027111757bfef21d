//! Calibration: measures by reads what a device can do, for the record on which admission relies.
//!
//! It has four parts within a time budget: the queue depth; sweeps of reads in the worst
//! placements (`offsets.rs`) for each read size; sequential reads by place; and, on a rotating
//! disk, timed single reads from which the arm is fitted (`geometry.rs`). A long run of reads
//! without a pause may follow. All of them only read. A last part, the cost of a writer beside
//! the readers, is measured only where the caller names a range that may be overwritten. The
//! order is in `procedure.rs`, the conclusions from the reads' times in `pace.rs`; neither has a
//! clock. Reads are made and timed in `device_timer.rs`.
//!
//! On a shared disk every few reads wait for a permit ([`DiskAccess`]), and only the time under
//! permits counts.

mod device_timer;
mod geometry;
mod offsets;
mod pace;
mod procedure;

use crate::{BlockDevice, DeviceError, DeviceKind, Pool};
use device_timer::DeviceTimer;
use disk::Calibration;
use offsets::ReadableArea;
use procedure::{Procedure, ReadTimer};
use std::any::Any;
use std::fmt;
use std::ops::Range;
use std::time::{Duration, SystemTime};
use units::{ByteCount, Reason};

/// The options of a calibration.
#[derive(Clone, Debug)]
pub struct CalibrateOptions {
    /// The scheduling period that the guarantee is for.
    pub slot: Duration,
    /// Sizes of reads to measure, each a multiple of 4,096 and at most the pool's largest buffer.
    pub read_sizes: Vec<ByteCount>,
    /// The queue depths to try.
    pub depths: Vec<u32>,
    /// The approximate duration. Every measurement is made at least once, so that a slow disk with
    /// many read sizes takes longer. Up to four times as long on a disk that works in bursts.
    pub budget: Duration,
    /// The additional time of one stretch of reads without a pause at the end, which shows whether
    /// the disk keeps its pace; zero for none. 64 slots are the most that is recorded.
    pub long_run: Duration,
    /// The part of the device to read from; a part beyond its end is left out.
    pub area: Range<u64>,
    /// The range that may be overwritten to measure the cost of writes; without one, or if it is
    /// too small, that part is left out.
    pub scratch: Option<Range<u64>>,
    /// The seed of the random placements: equal seeds read at equal places.
    pub seed: u64,
}

impl CalibrateOptions {
    /// With a long run, in proportion to the budget: the whole 64 slots with the default.
    #[must_use]
    pub fn with_long_run(self) -> Self {
        Self { long_run: self.budget.mul_f64(LONG_RUN), ..self }
    }
}

/// The time of the long run, as a part of the budget.
const LONG_RUN: f64 = 2.7;

/// The options of `tenuto calibrate` and of a server's first start: 12 s over the whole device.
impl Default for CalibrateOptions {
    fn default() -> Self {
        Self {
            slot: Duration::from_millis(500),
            read_sizes: [64, 256, 1024, 4096].map(ByteCount::kib).into(),
            // Not 1: the disk would be idle whenever the host is late.
            depths: vec![2, 4, 8, 16, 32],
            budget: Duration::from_secs(12),
            long_run: Duration::ZERO,
            area: 0..u64::MAX,
            scratch: None,
            seed: 1,
        }
    }
}

/// Progress of a calibration.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CalibrateProgress {
    /// The current measurement.
    pub stage: &'static str,
    /// The share of the whole calibration that is complete, from 0 to 1.
    pub done: f64,
}

/// Whether a calibration has the disk to itself or shares it.
#[derive(Clone, Copy)]
pub enum DiskAccess<'a> {
    /// Nothing else uses the disk.
    Exclusive,
    /// Others use the disk, too, and reads are made in turns.
    Shared {
        /// Called with the bytes of the next turn; blocks until it may begin. Its permit is
        /// dropped when the turn is complete. `None` ends the calibration.
        permit: &'a dyn Fn(ByteCount) -> Option<Box<dyn Any>>,
        /// The most bytes of one turn, where that is more than one read.
        turn: ByteCount,
    },
}

impl fmt::Debug for DiskAccess<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if matches!(self, Self::Exclusive) { "Exclusive" } else { "Shared" })
    }
}

/// Measures `device`. Its guarantee per read size is the larger of
///
/// ```text
///   minRead = (slot - longest single read) / slowest round's time per read, rounded down
///   minRead = fewest reads in any slot of reading without a pause
/// ```
///
/// where a round is one sweep of about minRead reads and starts with the arm at the far end. The
/// longest read is subtracted as a margin, because a read that is in flight when a slot begins
/// must end first. For longer stretches of slots, the fewest reads are counted in the same way,
/// and a line ([`disk::ReadPace`]) is a bound for any number of reads. No guarantee exceeds the
/// rate of an endless read.
///
/// A disk that works in bursts (a throttle, a volume with a token bucket) is measured until twenty
/// of its longest pauses fit in. A delay that stands out is looked for in a repeated measurement;
/// one that does not recur is named in the record ([`Calibration::outliers`]) and not counted.
///
/// Sizes larger than every written part of the area are left out, because a read of unwritten
/// bytes does not reach the disk. The record has the size of the written part; of too small a
/// part it is provisional ([`Calibration::is_provisional`]).
///
/// # Errors
/// Fails when a read fails, when a turn is not permitted, when too little was written for every
/// size, or when the pool has no buffers of the requested sizes.
pub fn calibrate(
    device: &dyn BlockDevice,
    pool: &Pool,
    options: &CalibrateOptions,
    turns: DiskAccess<'_>,
    progress: &mut dyn FnMut(CalibrateProgress),
) -> Result<Calibration, DeviceError> {
    let depth = options.depths.iter().copied().max().unwrap_or(1).max(1);
    let queue = device.queue(depth, pool)?;
    let (places, options) = measurable(device, options)?;
    let method = format!("{}{}", queue.method(), places.remark());
    let mut bench = DeviceTimer::new(device, queue, pool, turns);
    // A first read wakes a sleeping disk and touches the buffers.
    bench.round(
        &places.spread(0.0..1.0, 4, LARGEST_BLOCK, &mut offsets::Random::new(0)),
        LARGEST_BLOCK,
        2,
    )?;
    // The first reads must not use up the budget.
    bench.restart();
    let calibration = Procedure::new(&mut bench, &places, &options, progress).run()?;
    let measured_at = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    Ok(Calibration {
        method: format!("{method}; {}", calibration.method),
        measured_at: measured_at.map_or(0, |since| since.as_secs()),
        measured: Some(places.measured()),
        ..calibration
    })
}

fn measurable(
    device: &dyn BlockDevice,
    options: &CalibrateOptions,
) -> Result<(ReadableArea, CalibrateOptions), DeviceError> {
    let mut options = options.clone();
    options.read_sizes.sort_unstable();
    loop {
        match places_of(device, &options) {
            Err(DeviceError::Unusable { .. } | DeviceError::NotWritten { .. })
                if options.read_sizes.len() > 1 =>
            {
                // The largest size needs the largest written piece; smaller ones may still fit.
                options.read_sizes.pop();
            }
            places => return Ok((places?, options)),
        }
    }
}

fn places_of(
    device: &dyn BlockDevice,
    options: &CalibrateOptions,
) -> Result<ReadableArea, DeviceError> {
    let geometry = device.geometry();
    let path = match geometry.kind {
        DeviceKind::Memory => "(memory)",
        DeviceKind::File => "the file",
        DeviceKind::Block => "the device",
    };
    let unusable = |reason| Err(DeviceError::unusable(path, reason));
    let Some(largest) = options.read_sizes.iter().max().filter(|_| !options.slot.is_zero()) else {
        return unusable(Reason::from("calibrating needs a slot and at least one read size"));
    };
    let area = options.area.start..options.area.end.min(geometry.size.0);
    let whole = area.end.saturating_sub(area.start);
    if whole < largest.0.max(LARGEST_BLOCK) {
        let room = ByteCount(whole);
        let message = format!("{room} is too little to calibrate reads of {largest} in");
        return unusable(Reason::new(message, "take a larger one"));
    }
    let written = device.written(area.clone())?;
    let places = ReadableArea::new(area, &written, largest.0);
    places.map_or_else(
        || {
            let message = format!(
                "nothing was ever written there in a piece of {largest}, so reading it would not \
                 reach the disk"
            );
            let hint = "write to it first (into a store with `tenuto ingest`)";
            Err(DeviceError::NotWritten { path: path.into(), reason: Reason::new(message, hint) })
        },
        Ok,
    )
}

/// The largest block of any disk in bytes: reads of this size are whole blocks on all disks.
const LARGEST_BLOCK: u64 = 4096;
