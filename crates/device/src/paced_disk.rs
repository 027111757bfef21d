//! A device with the times of a modelled disk: real reads and writes, completed when that disk
//! would complete them, with seeks, rotation, zones and write cache. Needs no privileges.
//!
//! The modelled disk serves one request after another in the order of submission, over all callers.
//! Its first and last byte are those of the device below, however small that is
//! ([`DiskModel::scaled_to`]). The device below must be faster than the model; its late completions
//! are returned late, and [`BlockDevice::lateness`] counts them. The model's moments come from the
//! clock, so that two runs differ by the position of the platter.

use crate::block::ByteSpan;
use crate::paced::{PacedDevice, Timing};
use crate::{BlockDevice, DeviceError, Direction, Geometry, Lateness, Pool, Queue};
use disk::{DiskModel, Head};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use units::Moment;

/// A device that reads and writes at the speed of a modelled disk, in real time.
#[derive(Debug)]
pub struct PacedDisk {
    paced: PacedDevice,
    model: DiskModel,
    pass_through: AtomicBool,
}

impl PacedDisk {
    /// Wraps `device` with the times of `model`, whose places are stretched over it.
    pub fn new(device: Arc<dyn BlockDevice>, model: &DiskModel) -> Self {
        let model = model.scaled_to(device.geometry().size);
        let paced = PacedDevice::new(device, Box::new(model.head()));
        Self { paced, model, pass_through: AtomicBool::new(false) }
    }

    /// Switches pass-through: while it is set, blocking reads, writes and flushes have the speed of
    /// the device below and do not affect the model, for filling a store. Queues keep the model's
    /// times.
    pub fn set_pass_through(&self, on: bool) {
        self.pass_through.store(on, Ordering::Relaxed);
    }

    fn passes_through(&self) -> bool {
        self.pass_through.load(Ordering::Relaxed)
    }
}

impl BlockDevice for PacedDisk {
    fn geometry(&self) -> Geometry {
        Geometry { rotational: self.model.rotational(), ..self.paced.inner.geometry() }
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<(), DeviceError> {
        if self.passes_through() {
            return self.paced.inner.read_at(offset, into);
        }
        self.paced.read_at(offset, into)
    }

    fn write_at(&self, offset: u64, from: &[u8]) -> Result<(), DeviceError> {
        if self.passes_through() {
            return self.paced.inner.write_at(offset, from);
        }
        self.paced.write_at(offset, from)
    }

    /// Takes the time that the modelled disk needs to empty its write-back cache, if it has one.
    fn flush(&self) -> Result<(), DeviceError> {
        if self.passes_through() {
            return self.paced.inner.flush();
        }
        self.paced.flush()
    }

    /// All of `area`: the model's time does not depend on what was written.
    fn written(&self, area: Range<u64>) -> Result<Vec<Range<u64>>, DeviceError> {
        Ok(vec![area])
    }

    /// Lateness after the model's moments. Requests that pass through are not counted.
    fn lateness(&self) -> Option<Lateness> {
        Some(self.paced.lateness())
    }

    fn queue(&self, depth: u32, pool: &Pool) -> Result<Box<dyn Queue>, DeviceError> {
        self.paced.queue(format!("as slow as {}", self.model.name()), depth, pool)
    }
}

impl Timing for Head {
    fn finish(&mut self, now: Moment, place: ByteSpan, direction: Direction) -> Moment {
        self.serve(now, place.offset, place.len as u64, direction == Direction::Write).finish
    }

    fn flush(&mut self, now: Moment) -> Moment {
        Head::flush(self, now)
    }
}
