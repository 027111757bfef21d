//! A device slowed down to a rate: reads and writes pass one after another through a pipe with this
//! many bits per second. There are no seeks; [`PacedDisk`](crate::PacedDisk) has those.

use crate::block::ByteSpan;
use crate::paced::{PacedDevice, Timing};
use crate::{BlockDevice, DeviceError, Direction, Geometry, Lateness, Pool, Queue};
use std::ops::Range;
use std::sync::Arc;
use units::{BitRate, ByteCount, Moment};

/// A device slowed down to a rate.
#[derive(Debug)]
pub struct Throttled {
    paced: PacedDevice,
    rate: BitRate,
}

impl Throttled {
    /// Wraps `device` with a limit of `rate`. A rate of zero would never deliver.
    pub fn new(device: Arc<dyn BlockDevice>, rate: BitRate) -> Self {
        assert!(rate.0 > 0, "a throttle lets something through");
        let pipe = Pipe { rate, free: Moment::ZERO };
        Self { paced: PacedDevice::new(device, Box::new(pipe)), rate }
    }
}

impl BlockDevice for Throttled {
    fn geometry(&self) -> Geometry {
        self.paced.inner.geometry()
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<(), DeviceError> {
        self.paced.read_at(offset, into)
    }

    fn write_at(&self, offset: u64, from: &[u8]) -> Result<(), DeviceError> {
        self.paced.write_at(offset, from)
    }

    fn flush(&self) -> Result<(), DeviceError> {
        self.paced.flush()
    }

    fn written(&self, area: Range<u64>) -> Result<Vec<Range<u64>>, DeviceError> {
        self.paced.inner.written(area)
    }

    /// Lateness after the moments at which the rate allows a completion.
    fn lateness(&self) -> Option<Lateness> {
        Some(self.paced.lateness())
    }

    fn queue(&self, depth: u32, pool: &Pool) -> Result<Box<dyn Queue>, DeviceError> {
        self.paced.queue(format!("throttled to {}", self.rate), depth, pool)
    }
}

/// A pipe that is free from a moment on.
#[derive(Debug)]
struct Pipe {
    rate: BitRate,
    free: Moment,
}

impl Timing for Pipe {
    fn finish(&mut self, now: Moment, place: ByteSpan, _direction: Direction) -> Moment {
        self.free = self.free.max(now) + ByteCount(place.len as u64).time_at(self.rate);
        self.free
    }

    /// Completes now: written bytes have already passed the pipe.
    fn flush(&mut self, now: Moment) -> Moment {
        now
    }
}
