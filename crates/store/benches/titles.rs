//! A store with many titles: what opening it, a title, a page of its list and adding titles cost.
//!
//! `cargo bench -p store --bench titles -- 1000000` prints, for a store in memory with 10,000 tiny
//! titles and then with tenfold as many up to that number (100,000 unless said otherwise), the
//! processor time of each of them, and what the device reads and writes meanwhile. The times of the
//! device itself are no part of it.

#![allow(clippy::print_stdout, reason = "it prints what it measures")]

use device::{BlockDevice, DeviceError, DeviceKind, Geometry, Pool, Queue};
use media::{LduIndex, TitleKind, TrackDescription, TrackKind};
use std::num::NonZeroU32;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;
use store::{FormatOptions, Store, TitleSelection};
use units::{ByteCount, Timescale, float};

fn main() {
    let asked = std::env::args().skip(1).find_map(|word| word.parse().ok());
    let most: u64 = asked.unwrap_or(100_000);
    println!(
        "{:>9}  {:>12}  {:>16}  {:>20}  {:>10}  {:>14}",
        "titles", "add one", "written for one", "open the store", "first page", "open a title"
    );
    let mut titles = FIRST;
    while titles <= most {
        measure(titles);
        titles *= 10;
    }
}

fn measure(titles: u64) {
    let device = Arc::new(FrontAndMetadata::new(titles * 2 * CHUNK.0 + SPARE));
    let options = FormatOptions { chunk: CHUNK, ..FormatOptions::default() };
    Store::format_on(Arc::clone(&device) as _, &options).expect("a format");
    let store = Store::open_on(Arc::clone(&device) as _).expect("a store");
    for number in 0..titles - LAST {
        add(&store, number);
    }
    let before = device.written.load(Ordering::Relaxed);
    let adding = timed(|| (titles - LAST..titles).for_each(|number| add(&store, number))).1;
    let written = (device.written.load(Ordering::Relaxed) - before) / LAST;
    drop(store);

    let read = device.read.load(Ordering::Relaxed);
    let (store, opening) = timed(|| Store::open_on(Arc::clone(&device) as _).expect("a store"));
    let read = ByteCount(device.read.load(Ordering::Relaxed) - read);
    let wanted = TitleSelection { limit: NonZeroU32::new(100), ..TitleSelection::default() };
    let (page, first) =
        timed(|| (0..PAGES).map(|_| store.page(&wanted).titles.len()).sum::<usize>());
    assert_eq!(page, 100 * PAGES);
    let reads = device.reads.load(Ordering::Relaxed);
    let open = |number: u64| {
        let record = store.find(&name(number)).expect("a title");
        store.index(record.id).expect("an index")
    };
    let one = timed(|| (0..OPENED).for_each(|number| drop(open(number % IN_FRONT)))).1;
    let reads = (device.reads.load(Ordering::Relaxed) - reads) / OPENED;
    println!(
        "{titles:>9}  {:>9.3} ms  {:>16}  {:>7.0} ms, {:>8}  {:>7.3} ms  {:>6.3} ms, {reads} read",
        millis(adding) / float(LAST),
        ByteCount(written).to_string(),
        millis(opening),
        read.to_string(),
        millis(first) / float(PAGES as u64),
        millis(one) / float(OPENED),
    );
}

/// The names of titles, 100 in a folder.
fn name(number: u64) -> String {
    format!("folder-{:05}/title-{:02}", number / 100, number % 100)
}

fn add(store: &Store, number: u64) {
    let mut writer = store.begin(&name(number), TitleKind::Media).expect("a name");
    writer.declare(&[ByteCount(1000)]).expect("room");
    writer.write(0, &[7; 1000]).expect("a write");
    let mut ldus = LduIndex::default();
    ldus.push(1000, 1, 0, true, false);
    let track = TrackDescription::plain(TrackKind::Video, Timescale(25));
    writer.seal(vec![(track, ldus)]).expect("a title");
}

/// What `act` returns, and the processor time of this thread for it.
fn timed<T>(act: impl FnOnce() -> T) -> (T, Duration) {
    let before = processor_time();
    let result = act();
    (result, processor_time().saturating_sub(before))
}

/// Processor time of this process until now.
fn processor_time() -> Duration {
    // Nanoseconds on the processor, nanoseconds in the queue, turns.
    let stat = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    let spent = stat.split(' ').next().and_then(|text| text.parse().ok());
    Duration::from_nanos(spent.unwrap_or(0))
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// A device in memory that keeps its front, its middle with the metadata, and its end. It forgets
/// what is written elsewhere: a million titles need hundreds of gigabytes.
#[derive(Debug)]
struct FrontAndMetadata {
    size: u64,
    kept: RwLock<Vec<(u64, Vec<u8>)>>,
    reads: AtomicU64,
    read: AtomicU64,
    written: AtomicU64,
}

impl FrontAndMetadata {
    fn new(size: u64) -> Self {
        let size = units::align_down(size, BLOCK);
        let middle = units::align_down(size / 2, BLOCK);
        let area = |range: Range<u64>| {
            let length = usize::try_from(range.end - range.start).expect("a size in memory");
            (range.start, vec![0; length])
        };
        let (front, end) = (FRONT.min(middle), size - BLOCK);
        let kept = [0..front, middle..(middle + METADATA).min(end), end..size];
        let kept = RwLock::new(kept.into_iter().map(area).collect());
        Self { size, kept, reads: <_>::default(), read: <_>::default(), written: <_>::default() }
    }
}

impl BlockDevice for FrontAndMetadata {
    fn geometry(&self) -> Geometry {
        let (size, kind) = (ByteCount(self.size), DeviceKind::Memory);
        Geometry { size, block: 4096, rotational: false, kind }
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<(), DeviceError> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.read.fetch_add(into.len() as u64, Ordering::Relaxed);
        into.fill(0);
        for (start, bytes) in self.kept.read().unwrap_or_else(PoisonError::into_inner).iter() {
            if let Some(at) = place(*start, bytes.len(), offset, into.len()) {
                into.copy_from_slice(&bytes[at]);
            }
        }
        Ok(())
    }

    fn write_at(&self, offset: u64, from: &[u8]) -> Result<(), DeviceError> {
        self.written.fetch_add(from.len() as u64, Ordering::Relaxed);
        let mut kept = self.kept.write().unwrap_or_else(PoisonError::into_inner);
        for (start, bytes) in kept.iter_mut() {
            if let Some(at) = place(*start, bytes.len(), offset, from.len()) {
                bytes[at].copy_from_slice(from);
            }
        }
        Ok(())
    }

    fn flush(&self) -> Result<(), DeviceError> {
        Ok(())
    }

    fn queue(&self, _: u32, _: &Pool) -> Result<Box<dyn Queue>, DeviceError> {
        let (path, reason) = (PathBuf::from("memory"), "it has no queue".into());
        Err(DeviceError::Unusable { path, reason })
    }
}

/// Where a transfer is in an area of `length` bytes from `start`, if it is all in it.
fn place(start: u64, length: usize, offset: u64, bytes: usize) -> Option<Range<usize>> {
    let at = usize::try_from(offset.checked_sub(start)?).ok()?;
    (at + bytes <= length).then_some(at..at + bytes)
}

/// The smallest store that is measured.
const FIRST: u64 = 10_000;
/// The titles whose adding is measured: as many as a checkpoint is written for once.
const LAST: u64 = 2000;
/// Titles whose bytes are kept.
const IN_FRONT: u64 = 500;
/// Titles and pages that are measured: the kernel counts processor time in ticks of some ms.
const OPENED: u64 = 50_000;
const PAGES: usize = 5000;
/// The smallest chunk, so that the most titles fit.
const CHUNK: ByteCount = ByteCount::kib(64);
/// Superblocks are at multiples of it.
const BLOCK: u64 = 64 << 10;
/// Bytes of the front that are kept.
const FRONT: u64 = 256 << 20;
/// Bytes of the largest metadata: a superblock, the journal, two checkpoints.
const METADATA: u64 = (64 << 10) + (16 << 20) + (512 << 20);
/// Room of the device beside that of the titles.
const SPARE: u64 = 1 << 30;
