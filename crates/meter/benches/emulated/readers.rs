//! The readers: in rounds on the bare disk, and a thread for each file of a file system.

use crate::{FILE, RANGE, STREAMS};
use device::{BlockDevice, EmulatedDisk, FileDevice, OpenOptions};
use meter::emulated::{MPEG1, Mounted};
use meter::operations::QueuedPort;
use meter::rounds::{Order, RoundPace, RoundsPlan, RoundsStreamStats, run};
use std::fs::File;
use std::io::Read;
use std::path::PathBuf;
use std::sync::Barrier;
use std::time::{Duration, Instant};
use units::ByteCount;

/// Rounds as Tenuto runs them: in each, one direct read for every stream, from the front of the
/// disk to the back, with a fixed queue depth and no pause between rounds. Each stream has as many
/// contiguous bytes as a file; the streams are spread evenly over the range. `halved` splits the
/// last round in two with half a block each.
pub(crate) fn in_rounds(
    disk: &EmulatedDisk,
    block: ByteCount,
    at_once: u32,
    halved: bool,
) -> Vec<RoundsStreamStats> {
    let path = disk.device().expect("attached");
    let device = FileDevice::open(path, OpenOptions::default()).expect("the disk opens");
    let pool = QueuedPort::pool(at_once, block);
    let queue = device.queue(at_once, &pool).expect("the disk can be read");
    let start = Instant::now();
    let mut port = QueuedPort::new(&device, queue, pool, start);
    let half = ByteCount(block.0 / 2);
    let parts = match (FILE.0 / block.0, halved) {
        (rounds, false) => vec![(0, rounds, block)],
        (rounds, true) => vec![(0, rounds - 1, block), (FILE.0 - block.0, 2, half)],
    };
    let mut streams = vec![RoundsStreamStats::default(); STREAMS as usize];
    let pitch = units::align_down(RANGE.0 / u64::from(STREAMS), 4096);
    for (from, rounds, block) in parts {
        let before = start.elapsed();
        let round = |round| {
            (0..u64::from(STREAMS)).map(move |stream| stream * pitch + from + round * block.0)
        };
        // Each read is modelled as a stream of one block, so that no round waits for the last read
        // of the round before.
        let plan = RoundsPlan {
            starts: (0..rounds).flat_map(round).collect(),
            block,
            rounds: 1,
            order: Order::Streams,
            at_once,
            pace: RoundPace::Free,
            ..RoundsPlan::spread(STREAMS, RANGE, block, MPEG1)
        };
        let reads = run(&plan, &mut port, &mut |_| true).expect("the disk is read").streams;
        for (number, read) in reads.iter().enumerate() {
            came(&mut streams[number % STREAMS as usize], before + read.last);
        }
    }
    streams
}

/// Notes that bytes of `stream` arrived at `at`, counted from the start.
fn came(stream: &mut RoundsStreamStats, at: Duration) {
    stream.longest_gap = stream.longest_gap.max(at.saturating_sub(stream.last));
    stream.last = stream.last.max(at);
    stream.blocks += 1;
}

/// Creates one file for each reader, one after the other.
pub(crate) fn fill(on: &Mounted) -> Vec<PathBuf> {
    let path = |number: u32| on.folder().join(format!("film-{number:02}"));
    let files: Vec<PathBuf> = (0..STREAMS).map(path).collect();
    for path in &files {
        on.write(path, FILE.0, &|| true).unwrap_or_else(|error| panic!("{error}"));
    }
    files
}

/// Reads each file with its own thread, 32 KiB at a time; all threads begin at once.
pub(crate) fn of_files(files: &[PathBuf]) -> Vec<RoundsStreamStats> {
    let barrier = &Barrier::new(files.len());
    std::thread::scope(|scope| {
        let read = |path| {
            scope.spawn(move || {
                let mut file = File::open(path).expect("it was written");
                let mut piece = vec![0; 32 << 10];
                let mut stream = RoundsStreamStats::default();
                barrier.wait();
                let start = Instant::now();
                while file.read(&mut piece).expect("it is read") > 0 {
                    came(&mut stream, start.elapsed());
                }
                stream
            })
        };
        let threads: Vec<_> = files.iter().map(read).collect();
        threads.into_iter().map(|thread| thread.join().expect("it reads")).collect()
    })
}
