//! A device in memory, for tests. Its queue completes reads and writes immediately.

use crate::block::ByteSpan;
use crate::{
    BlockDevice, Completion, DeviceError, DeviceKind, Direction, Geometry, Pool, Queue, Transfer,
};
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;
use units::ByteCount;

/// A device in memory, for tests. Clones share the same bytes.
#[derive(Clone)]
pub struct MemoryDevice {
    bytes: Arc<RwLock<Vec<u8>>>,
    geometry: Geometry,
}

impl MemoryDevice {
    /// A device of `size` bytes, rounded down to blocks of 4,096; all zero.
    pub fn new(size: ByteCount) -> Self {
        let size = units::align_down(size.0, BLOCK.into());
        let length = usize::try_from(size).expect("a size that fits in memory");
        let geometry = Geometry {
            size: ByteCount(size),
            block: BLOCK,
            rotational: false,
            kind: DeviceKind::Memory,
        };
        Self { bytes: Arc::new(RwLock::new(vec![0; length])), geometry }
    }

    /// A copy of all its bytes.
    pub fn snapshot(&self) -> Vec<u8> {
        self.bytes.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl std::fmt::Debug for MemoryDevice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "MemoryDevice({})", self.geometry.size)
    }
}

impl BlockDevice for MemoryDevice {
    fn geometry(&self) -> Geometry {
        self.geometry.clone()
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<(), DeviceError> {
        self.geometry.check(Direction::Read, Path::new(NAME), ByteSpan::new(offset, into.len()))?;
        let bytes = self.bytes.read().unwrap_or_else(PoisonError::into_inner);
        let start = usize::try_from(offset).expect("checked against the length");
        into.copy_from_slice(&bytes[start..start + into.len()]);
        Ok(())
    }

    fn write_at(&self, offset: u64, from: &[u8]) -> Result<(), DeviceError> {
        self.geometry.check(
            Direction::Write,
            Path::new(NAME),
            ByteSpan::new(offset, from.len()),
        )?;
        let mut bytes = self.bytes.write().unwrap_or_else(PoisonError::into_inner);
        let start = usize::try_from(offset).expect("checked against the length");
        bytes[start..start + from.len()].copy_from_slice(from);
        Ok(())
    }

    fn flush(&self) -> Result<(), DeviceError> {
        Ok(())
    }

    fn queue(&self, _depth: u32, _pool: &Pool) -> Result<Box<dyn Queue>, DeviceError> {
        Ok(Box::new(MemoryQueue { device: self.clone(), ready: Vec::new() }))
    }
}

struct MemoryQueue {
    device: MemoryDevice,
    ready: Vec<Completion>,
}

impl Queue for MemoryQueue {
    fn start(&mut self, mut transfer: Transfer) -> Result<(), DeviceError> {
        let result = match transfer.direction {
            Direction::Read => self.device.read_at(transfer.offset, &mut transfer.buffer),
            Direction::Write => self.device.write_at(transfer.offset, &transfer.buffer),
        };
        self.ready.push(transfer.ended(result));
        Ok(())
    }

    fn wait(&mut self, _at_most: Duration, done: &mut Vec<Completion>) -> Result<(), DeviceError> {
        done.append(&mut self.ready);
        Ok(())
    }

    fn in_flight(&self) -> u32 {
        u32::try_from(self.ready.len()).unwrap_or(u32::MAX)
    }

    fn method(&self) -> String {
        "memory".to_owned()
    }
}

/// The block size: the largest, so that tests on it are valid for every disk.
const BLOCK: u32 = 4096;

/// The name in error messages.
const NAME: &str = "(memory)";
