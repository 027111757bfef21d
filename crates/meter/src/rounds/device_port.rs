//! Rounds on a real device, file or file system, by the clock on the wall.

use super::{Arrived, Port};
use device::{BlockDevice, DeviceError, Pool, Queue};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use units::{ByteCount, Moment};

/// Reads through a device's queue into buffers of its own. Blocks that do not lie on the device's
/// block boundaries are read with what is around them.
pub struct DevicePort {
    queue: Box<dyn Queue>,
    pool: Pool,
    grain: u64,
    origin: Instant,
    done: Vec<device::Completion>,
    /// Of what failed before it began.
    failed: BTreeMap<u64, DeviceError>,
}

impl DevicePort {
    /// The memory for `at_once` reads of up to `block` bytes: what [`DevicePort::new`] needs.
    pub fn pool(at_once: u32, block: ByteCount) -> Pool {
        // What is around an unaligned block is less than a page on either side.
        let largest = units::align_up(block.0, PAGE) + PAGE;
        Pool::new(ByteCount(largest.saturating_mul(at_once.into())), ByteCount(largest))
    }

    /// Reads `device` through one of its queues, made with this pool. `origin` is moment zero.
    pub fn new(
        device: &dyn BlockDevice,
        queue: Box<dyn Queue>,
        pool: Pool,
        origin: Instant,
    ) -> Self {
        let grain = u64::from(device.geometry().block).max(PAGE);
        Self { queue, pool, grain, origin, done: Vec::new(), failed: BTreeMap::new() }
    }
}

impl Port for DevicePort {
    fn now(&self) -> Moment {
        Moment::ZERO + self.origin.elapsed()
    }

    fn begin(&mut self, tag: u64, offset: u64, len: u64) -> Result<(), DeviceError> {
        let from = units::align_down(offset, self.grain);
        let len = units::align_up(offset + len, self.grain) - from;
        let len = usize::try_from(len).expect("a block fits in memory");
        let buffer = self.pool.take(len).expect("a buffer for each read under way");
        match self.queue.submit(tag, from, buffer) {
            Ok(()) => {}
            Err(error) => {
                self.failed.insert(tag, error);
            }
        }
        Ok(())
    }

    fn wait(&mut self, until: Moment, done: &mut Vec<Arrived>) -> Result<(), DeviceError> {
        let at = self.now();
        for (tag, error) in std::mem::take(&mut self.failed) {
            done.push(Arrived { tag, at, result: Err(error) });
        }
        if !done.is_empty() {
            return Ok(());
        }
        if self.queue.in_flight() == 0 {
            if until != Moment::MAX {
                std::thread::sleep(until.since(at));
            }
            return Ok(());
        }
        self.queue.wait(until.since(at).min(PATIENCE), &mut self.done)?;
        let at = self.now();
        done.extend(self.done.drain(..).map(|completion| Arrived {
            tag: completion.tag,
            at,
            result: completion.result,
        }));
        Ok(())
    }

    fn method(&self) -> String {
        self.queue.method()
    }
}

/// Transfers past the page cache are whole pages, in place and length.
const PAGE: u64 = 4096;

/// One wait of the queue; the caller waits again.
const PATIENCE: Duration = Duration::from_secs(60);
