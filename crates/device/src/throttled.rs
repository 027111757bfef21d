//! A device slowed down to a rate: reads and writes pass one after another through a pipe with this
//! many bits per second. There are no seeks; [`PacedDevice::as_disk`] has those.

use crate::block::ByteSpan;
use crate::paced::{PacedDevice, SlowDevice, Timing};
use crate::{BlockDevice, Direction};
use std::sync::Arc;
use units::{BitRate, ByteCount, Moment};

impl PacedDevice {
    /// Wraps `device` with a limit of `rate`. A rate of zero would never deliver.
    pub fn throttled(device: Arc<dyn BlockDevice>, rate: BitRate) -> Self {
        assert!(rate.0 > 0, "a throttle lets something through");
        let (name, rotational) = (format!("throttled to {rate}"), device.geometry().rotational);
        let slow = SlowDevice { name, rotational, depends_on_data: true };
        Self::new(device, Box::new(Pipe { rate, free: Moment::ZERO }), slow)
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
