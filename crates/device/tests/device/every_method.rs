//! One test body over every way of reading: whoever implements `BlockDevice` behaves like this.

use device::{
    AsDisk, BlockDevice, Completion, DeviceError, Faulty, FileDevice, MemoryDevice, Method,
    OpenOptions, Pool, Queue, SimulatedDisk, Throttled, preallocate,
};
use disk::DiskModel;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use units::{BitRate, ByteCount};

use crate::scratch::Scratch;

const SIZE: u64 = 8 << 20;
const DEPTH: u32 = 16;

/// A file's device whose queue reads by one method.
#[derive(Debug)]
struct By(FileDevice, Method);

impl BlockDevice for By {
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
        // Rings count against locked memory, which many tests at once may use up where little may
        // be locked; then this is one more test of the best method.
        self.0.queue_by(self.1, depth, pool).or_else(|_| self.0.queue_by(Method::Best, depth, pool))
    }
}

fn file(path: &Path, direct: bool, method: Method) -> Arc<dyn BlockDevice> {
    let options = OpenOptions { direct, write: true, exclusive: false };
    Arc::new(By(FileDevice::open(path, options).unwrap(), method))
}

/// The methods that this kernel allows: a container may refuse io_uring, and then there is nothing
/// to test but that the best method is another.
fn methods(scratch: &Scratch) -> Vec<(&'static str, Method)> {
    let path = scratch.path().join("methods");
    preallocate(&path, ByteCount(SIZE)).unwrap();
    let device = FileDevice::open(&path, OpenOptions::default()).unwrap();
    let allowed = |method: Method| match device.queue_by(method, 1, &pool()) {
        Ok(_) => true,
        Err(error) => {
            assert_eq!(method, Method::Uring, "{error}");
            assert!(error.to_string().contains("the kernel refuses io_uring"), "{error}");
            let best = device.queue_by(Method::Best, 1, &pool()).unwrap().method();
            assert!(best.starts_with("pread") && best.contains("no io_uring: "), "{best}");
            false
        }
    };
    Method::NAMES.into_iter().filter(|(_, method)| allowed(*method)).collect()
}

/// Every device of this room, each freshly made of `SIZE` bytes of zeros, with its name.
fn every_device(scratch: &Scratch) -> Vec<(String, Arc<dyn BlockDevice>)> {
    let mut devices: Vec<(String, Arc<dyn BlockDevice>)> = Vec::new();
    let new_file = |directory: &Path, name: &str| -> PathBuf {
        let path = directory.join(name);
        preallocate(&path, ByteCount(SIZE)).unwrap();
        path
    };
    for direct in [true, false] {
        for (name, method) in methods(scratch) {
            let name = format!("{name}-{}", if direct { "direct" } else { "buffered" });
            let path = new_file(scratch.path(), &name);
            devices.push((name, file(&path, direct, method)));
        }
    }
    let memory = || Arc::new(MemoryDevice::new(ByteCount(SIZE)));
    let wrapped = new_file(scratch.path(), "wrapped");
    let disk = DiskModel::preset("ssd-nvme").unwrap();
    devices.push(("memory".to_owned(), memory()));
    devices.push(("throttled".to_owned(), Arc::new(Throttled::new(memory(), BitRate(100 << 30)))));
    devices.push(("faulty".to_owned(), Arc::new(Faulty::new(memory()))));
    let simulated = disk.scaled_to(ByteCount(SIZE));
    devices.push(("simulated".to_owned(), Arc::new(SimulatedDisk::new(&simulated))));
    let wrapped = file(&wrapped, true, Method::Best);
    devices.push(("as disk".to_owned(), Arc::new(AsDisk::new(wrapped, &disk))));
    devices
}

/// Runs `body` on every device, naming the one it fails on.
fn on_every_device(test: &str, body: impl Fn(&Arc<dyn BlockDevice>)) {
    let scratch = Scratch::new(test);
    for (name, device) in every_device(&scratch) {
        let run = std::panic::AssertUnwindSafe(|| body(&device));
        if let Err(panic) = std::panic::catch_unwind(run) {
            let said = panic.downcast_ref::<String>().cloned().unwrap_or_default();
            panic!("{test} on {name}: {said}");
        }
    }
}

/// Every block of the pattern tells where it belongs.
fn pattern(offset: u64, len: usize) -> Vec<u8> {
    let words = (offset / 8)..(offset / 8 + len as u64 / 8);
    words.flat_map(|word| word.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes()).collect()
}

fn fill(device: &dyn BlockDevice) {
    device.write_at(0, &pattern(0, usize::try_from(SIZE).unwrap())).unwrap();
    device.flush().unwrap();
}

fn pool() -> Pool {
    Pool::new(ByteCount::mib(16), ByteCount::mib(1))
}

/// Waits until all reads are back, by tag.
fn all(queue: &mut dyn Queue) -> Vec<Completion> {
    let mut done = Vec::new();
    while queue.in_flight() > 0 {
        queue.wait(Duration::from_secs(20), &mut done).unwrap();
    }
    done.sort_by_key(|completion| completion.tag);
    done
}

#[test]
fn what_was_written_is_read_back_from_memory_anywhere() {
    on_every_device("round trip", |device| {
        let block = usize::try_from(device.geometry().block).unwrap();
        for (offset, blocks, misalign) in [(0, 1, 0), (3, 7, 1), (5, 300, 8), (1, 512, 0)] {
            let (offset, len) = (offset * block as u64, blocks * block);
            let mut from = vec![0; misalign];
            from.extend(pattern(offset, len));
            device.write_at(offset, &from[misalign..]).unwrap();
            device.flush().unwrap();
            let mut into = vec![0; len + misalign];
            device.read_at(offset, &mut into[misalign..]).unwrap();
            assert!(into == from, "{blocks} blocks at {offset} came back different");
        }
    });
}

#[test]
fn a_queue_reads_what_was_written_however_much_is_under_way() {
    on_every_device("many in flight", |device| {
        fill(&**device);
        let pool = pool();
        let mut queue = device.queue(DEPTH, &pool).unwrap();
        let mut rng = fastrand::Rng::with_seed(3);
        let mut done = Vec::new();
        let (mut submitted, mut places) = (0, Vec::new());
        while submitted < 400 || queue.in_flight() > 0 {
            while submitted < 400 && queue.in_flight() < DEPTH {
                let len = 4096 << rng.u32(0..=8);
                let offset = rng.u64(0..=(SIZE - len) / 4096) * 4096;
                let buffer = pool.take(usize::try_from(len).unwrap()).unwrap();
                places.push((offset, buffer.len()));
                queue.submit(submitted, offset, buffer).unwrap();
                submitted += 1;
            }
            queue.wait(Duration::from_secs(20), &mut done).unwrap();
            for Completion { tag, buffer, result } in done.drain(..) {
                result.unwrap();
                let (offset, len) = places[usize::try_from(tag).unwrap()];
                assert!(buffer[..] == pattern(offset, len), "read {tag}: {len} bytes at {offset}");
            }
        }
        drop(queue);
        assert_eq!(pool.used(), ByteCount::ZERO, "every buffer came back");
    });
}

#[test]
fn a_queue_can_be_handed_to_the_thread_that_will_use_it() {
    on_every_device("handed over", |device| {
        fill(&**device);
        let pool = pool();
        let mut queue = device.queue(2, &pool).unwrap();
        let done = std::thread::spawn(move || {
            queue.submit(7, 4096, pool.take(8192).unwrap()).unwrap();
            all(&mut *queue)
        });
        let done = done.join().unwrap();
        assert_eq!((done.len(), done[0].tag), (1, 7));
        assert!(done[0].buffer[..] == pattern(4096, 8192));
    });
}

#[test]
fn a_queue_that_is_dropped_gives_its_buffers_back() {
    on_every_device("dropped", |device| {
        let pool = pool();
        let mut queue = device.queue(4, &pool).unwrap();
        for tag in 0..4 {
            queue.submit(tag, tag << 20, pool.take(1 << 20).unwrap()).unwrap();
        }
        drop(queue);
        assert_eq!(pool.used(), ByteCount::ZERO);
    });
}

#[test]
fn there_is_nothing_beyond_the_end_and_nothing_between_blocks() {
    on_every_device("bounds", |device| {
        let refused = |result: Result<(), DeviceError>, named: &str| {
            let said = result.unwrap_err().to_string();
            assert!(said.contains(named), "{said:?} should say {named:?}");
        };
        let block = u64::from(device.geometry().block);
        let mut memory = vec![0; 8192];
        refused(device.read_at(SIZE - 4096, &mut memory), "it ends at 8388608");
        refused(device.write_at(SIZE, &memory), "it ends at 8388608");
        refused(device.read_at(u64::MAX - block + 1, &mut memory), "it ends at");
        refused(device.read_at(block / 2, &mut memory), "not whole blocks");
        refused(device.write_at(0, &memory[..100]), "not whole blocks");
        device.read_at(SIZE - 8192, &mut memory).unwrap();

        let pool = pool();
        let mut queue = device.queue(4, &pool).unwrap();
        for (tag, offset) in [(0, SIZE), (1, SIZE - 4096), (2, SIZE - 8192), (3, 100)] {
            queue.submit(tag, offset, pool.take(8192).unwrap()).unwrap();
        }
        let said: Vec<String> = all(&mut *queue)
            .into_iter()
            .map(|c| c.result.map_or_else(|e| e.to_string(), |()| "good".to_owned()))
            .collect();
        for (said, named) in said.iter().zip(["it ends at", "it ends at", "good", "not whole"]) {
            assert!(said.contains(named), "{said:?} should say {named:?}");
        }
    });
}

#[test]
fn waiting_for_nothing_returns_at_once() {
    on_every_device("nothing to wait for", |device| {
        let pool = pool();
        let mut queue = device.queue(4, &pool).unwrap();
        let mut done = Vec::new();
        queue.wait(Duration::from_secs(3600), &mut done).unwrap();
        assert!(done.is_empty());
        queue.submit(0, 0, pool.take(4096).unwrap()).unwrap();
        while queue.in_flight() > 0 {
            queue.wait(Duration::ZERO, &mut done).unwrap();
        }
        assert_eq!(done.len(), 1, "waiting no time at all still makes headway");
    });
}

#[test]
fn a_file_that_is_cut_short_while_open_is_named() {
    let scratch = Scratch::new("cut short");
    for (name, method) in methods(&scratch) {
        let path = scratch.path().join(name);
        preallocate(&path, ByteCount(SIZE)).unwrap();
        let device = file(&path, true, method);
        std::fs::File::options().write(true).open(&path).unwrap().set_len(10_000).unwrap();
        let said = device.read_at(8192, &mut [0; 8192]).unwrap_err().to_string();
        assert!(said.contains("ends after 1808 of them"), "{name}: {said}");
        let pool = pool();
        let mut queue = device.queue(4, &pool).unwrap();
        queue.submit(0, 8192, pool.take(8192).unwrap()).unwrap();
        queue.submit(1, 4 << 20, pool.take(8192).unwrap()).unwrap();
        queue.submit(2, 0, pool.take(8192).unwrap()).unwrap();
        let done = all(&mut *queue);
        let said: Vec<String> = done
            .iter()
            .map(|c| c.result.as_ref().map_or_else(ToString::to_string, |()| "good".to_owned()))
            .collect();
        assert!(said[0].contains(path.to_str().unwrap()), "{name}: {said:?}");
        assert!(said[0].contains("of them; has it been cut short?"), "{name}: {said:?}");
        assert!(said[1].contains("ends after 0 of them"), "{name}: {said:?}");
        assert_eq!(said[2], "good", "{name}");
    }
}
