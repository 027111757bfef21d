//! A device with the times of a modelled disk: real reads and writes, completed when that disk
//! would complete them, with seeks, rotation, zones and write cache. Needs no privileges.
//!
//! The modelled disk serves one request after another in the order of submission, over all callers.
//! Its first and last byte are those of the device below, however small that is
//! ([`DiskModel::scaled_to`]). The model's moments come from the clock, so that two runs differ by
//! the position of the platter.

use crate::block::ByteSpan;
use crate::paced::{PacedDevice, SlowDevice, Timing};
use crate::{BlockDevice, Direction};
use disk::{DiskModel, Head};
use std::sync::Arc;
use units::Moment;

impl PacedDevice {
    /// Wraps `device` with the times of `model`, whose places are stretched over it.
    pub fn as_disk(device: Arc<dyn BlockDevice>, model: &DiskModel) -> Self {
        let model = model.scaled_to(device.geometry().size);
        let (name, rotational) = (format!("as slow as {}", model.name()), model.rotational());
        let slow = SlowDevice { name, rotational, depends_on_data: false };
        Self::new(device, Box::new(model.head()), slow)
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
