//! The device of a served store, whose reads and writes beside those for sessions tell the core
//! when the device is gone: those of a scrub, of an operator, of titles that are opened.
//!
//! ```text
//!   scrub, API, mount, opener ──▶ WatchedDevice ──▶ device
//!                                      └─ gone ──▶ Event::DeviceGone ──▶ the disk is lost
//! ```
//! Reads for sessions go through a queue, and each is reported to the core by itself
//! (`disk_thread`).

use crate::messages::{CoreHandle, Event};
use device::{BlockDevice, DeviceError, Geometry, KernelCounters, Lateness, Pool, Queue};
use engine::DiskNumber;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

/// A device that is watched once somebody is there to be told.
#[derive(Debug)]
pub(crate) struct WatchedDevice {
    device: Arc<dyn BlockDevice>,
    told: OnceLock<(CoreHandle, DiskNumber)>,
}

impl WatchedDevice {
    pub(crate) fn new(device: Arc<dyn BlockDevice>) -> Self {
        Self { device, told: OnceLock::new() }
    }

    /// Tells this core from now on, which knows the device as this disk.
    pub(crate) fn tell(&self, core: CoreHandle, disk: DiskNumber) {
        let _ = self.told.set((core, disk));
    }

    fn watched<T>(&self, result: Result<T, DeviceError>) -> Result<T, DeviceError> {
        if let Err(error) = &result
            && error.is_of_gone_device()
            && let Some((core, disk)) = self.told.get()
        {
            core.send(Event::DeviceGone { disk: *disk });
        }
        result
    }
}

impl BlockDevice for WatchedDevice {
    fn geometry(&self) -> Geometry {
        self.device.geometry()
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<(), DeviceError> {
        self.watched(self.device.read_at(offset, into))
    }

    fn write_at(&self, offset: u64, from: &[u8]) -> Result<(), DeviceError> {
        self.watched(self.device.write_at(offset, from))
    }

    fn flush(&self) -> Result<(), DeviceError> {
        self.watched(self.device.flush())
    }

    fn written(&self, area: Range<u64>) -> Result<Vec<Range<u64>>, DeviceError> {
        self.device.written(area)
    }

    fn discard(&self, area: Range<u64>) -> Result<bool, DeviceError> {
        self.watched(self.device.discard(area))
    }

    fn kernel_counters(&self) -> KernelCounters {
        self.device.kernel_counters()
    }

    fn lateness(&self) -> Option<Lateness> {
        self.device.lateness()
    }

    fn queue(&self, depth: u32, pool: &Pool) -> Result<Box<dyn Queue>, DeviceError> {
        self.device.queue(depth, pool)
    }
}
