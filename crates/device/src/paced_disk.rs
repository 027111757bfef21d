//! A device that takes the time of a modelled disk: real reads and writes, handed out when that
//! disk would have had them, its seeks, turns, zones and write cache included. Needs no privileges.
//!
//! The modelled disk serves one request after another in the order in which they are asked for,
//! whoever asks. Its first and last byte are those of the device below, however small that is
//! ([`DiskModel::scaled_to`]). The device below must be faster than the model; what it delivers
//! late comes late, and [`BlockDevice::lateness`] says how late. The model's moments come from the
//! clock, so two runs differ by where the platter was.

use crate::block::ByteSpan;
use crate::paced::{PacedDevice, Timing};
use crate::{BlockDevice, DeviceError, Direction, Geometry, Lateness, Pool, Queue};
use disk::{DiskModel, Head};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use units::Moment;

/// A device that reads and writes at the pace of a modelled disk, in real time.
#[derive(Debug)]
pub struct PacedDisk {
    paced: PacedDevice,
    model: DiskModel,
    pass_through: AtomicBool,
}

impl PacedDisk {
    /// `device`, as slow as `model`, whose places are stretched over it.
    pub fn new(device: Arc<dyn BlockDevice>, model: &DiskModel) -> Self {
        let model = model.scaled_to(device.geometry().size);
        let paced = PacedDevice::new(device, Box::new(model.head()));
        Self { paced, model, pass_through: AtomicBool::new(false) }
    }

    /// The model as it is applied: scaled to the device.
    pub fn model(&self) -> &DiskModel {
        &self.model
    }

    /// While set, blocking reads, writes and flushes go to the device below at its own speed,
    /// unseen by the model: for filling a store. Queues keep the model's time.
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

    /// Everywhere: the model's time does not depend on what was written.
    fn written(&self, area: Range<u64>) -> Result<Vec<Range<u64>>, DeviceError> {
        Ok(vec![area])
    }

    /// After the moments that the model says. Requests that pass through are not counted.
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
