//! Every read and write method, and every device of this crate, for tests that all of them must
//! pass.

use crate::scratch::{LoopDevice, TempDir};
use device::{
    BlockDevice, Completion, DeviceError, FileDevice, MemoryDevice, Method, OpenOptions,
    PacedDevice, Pool, Queue, SimulatedDisk, preallocate,
};
use disk::DiskModel;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use units::{BitRate, ByteCount, Hinted};

/// Size of every device in these tests, in bytes.
pub(crate) const SIZE: u64 = 8 << 20;
/// Depth of every queue that is kept full.
pub(crate) const DEPTH: u32 = 16;

/// A file's device whose queue uses one method.
#[derive(Debug)]
struct ByMethod(FileDevice, Method);

impl BlockDevice for ByMethod {
    fn geometry(&self) -> device::Geometry {
        self.0.geometry()
    }
    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<(), DeviceError> {
        self.0.read_at(offset, into)
    }
    fn write_at(&self, offset: u64, from: &[u8]) -> Result<(), DeviceError> {
        self.0.write_at(offset, from)
    }
    fn flush(&self) -> Result<(), DeviceError> {
        self.0.flush()
    }
    fn queue(&self, depth: u32, pool: &Pool) -> Result<Box<dyn Queue>, DeviceError> {
        self.0.queue_by(self.1, depth, pool)
    }
}

pub(crate) fn file(path: &Path, direct: bool, method: Method) -> Arc<dyn BlockDevice> {
    let options = OpenOptions { direct, write: true, exclusive: false, ..OpenOptions::default() };
    Arc::new(ByMethod(FileDevice::open(path, options).unwrap(), method))
}

/// Runs `body` with every method that this kernel allows, direct and buffered, on the result of
/// `make`; `None` of it means that it is not available here. Locked memory, against which rings
/// count, may run out with many tests in parallel; a queue then uses threads, which are tested once
/// more.
pub(crate) fn by_every_method<M>(
    make: impl Fn(&str) -> Option<M>,
    body: impl Fn(&M, &Path, Arc<dyn BlockDevice>),
) where
    M: Place,
{
    for (name, method) in Method::NAMES {
        for direct in [true, false] {
            let Some(made) = make(name) else { return };
            let device = file(made.place(), direct, method);
            let name = format!("{name}, direct: {direct}, on {}", made.place().display());
            named(&name, || body(&made, made.place(), Arc::clone(&device)));
        }
    }
}

/// Something with a path.
pub(crate) trait Place {
    fn place(&self) -> &Path;
}

impl Place for PathBuf {
    fn place(&self) -> &Path {
        self
    }
}

impl Place for LoopDevice {
    fn place(&self) -> &Path {
        self.path()
    }
}

/// Names the subject of a panic in `body`.
pub(crate) fn named(name: &str, body: impl FnOnce()) {
    if let Err(panic) = std::panic::catch_unwind(std::panic::AssertUnwindSafe(body)) {
        let said = panic.downcast_ref::<String>().cloned();
        let said = said.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string));
        panic!("by {name}: {}", said.unwrap_or_default());
    }
}

pub(crate) fn new_file(directory: &Path, name: &str) -> PathBuf {
    let path = directory.join(name);
    preallocate(&path, ByteCount(SIZE)).unwrap();
    path
}

/// Runs `body` on every device of this crate with `SIZE` bytes, naming the one that it fails on;
/// files and block devices with every method.
pub(crate) fn on_every_device(test: &str, body: impl Fn(&Arc<dyn BlockDevice>)) {
    let scratch = TempDir::new(test);
    by_every_method(|name| Some(new_file(scratch.path(), name)), |_, _, device| body(&device));
    let beneath = new_file(scratch.path(), "beneath");
    by_every_method(|_| LoopDevice::over(&beneath), |_, _, device| body(&device));

    let memory = || Arc::new(MemoryDevice::new(ByteCount(SIZE)));
    let wrapped = file(&new_file(scratch.path(), "wrapped"), true, Method::Best);
    let disk = DiskModel::preset("ssd-nvme").unwrap();
    let simulated = disk.scaled_to(ByteCount(SIZE));
    let others: [(&str, Arc<dyn BlockDevice>); 4] = [
        ("memory", memory()),
        ("throttled", Arc::new(PacedDevice::throttled(memory(), BitRate(100 << 30)))),
        ("simulated", Arc::new(SimulatedDisk::new(&simulated))),
        ("as disk", Arc::new(PacedDevice::as_disk(wrapped, &disk))),
    ];
    for (name, device) in others {
        named(name, || body(&device));
    }
}

/// A pattern in which every block identifies its place.
pub(crate) fn pattern(offset: u64, len: usize) -> Vec<u8> {
    let words = (offset / 8)..(offset / 8 + len as u64 / 8);
    words.flat_map(|word| word.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes()).collect()
}

pub(crate) fn fill(device: &dyn BlockDevice) {
    device.write_at(0, &pattern(0, usize::try_from(SIZE).unwrap())).unwrap();
    device.flush().unwrap();
}

pub(crate) fn pool() -> Pool {
    Pool::new(ByteCount::mib(16), ByteCount::mib(1))
}

/// Waits until all reads are complete; returns them by tag.
pub(crate) fn all(queue: &mut dyn Queue) -> Vec<Completion> {
    let mut done = Vec::new();
    while queue.in_flight() > 0 {
        queue.wait(Duration::from_secs(20), &mut done).unwrap();
    }
    done.sort_by_key(|completion| completion.tag);
    done
}

pub(crate) fn said(done: &[Completion]) -> Vec<String> {
    let one = |c: &Completion| match &c.result {
        Ok(()) => "good".to_owned(),
        Err(error) => error.one_line(),
    };
    done.iter().map(one).collect()
}
