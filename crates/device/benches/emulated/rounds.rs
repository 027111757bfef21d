//! Rounds as Tenuto makes them: in each, one read for every stream, in the order of place, direct,
//! some in the disk at once.

use crate::RANGE;
use crate::spread::{Spread, Stream};
use device::{BlockDevice, EmulatedDisk, FileDevice, OpenOptions, Pool, Queue};
use std::time::{Duration, Instant};
use units::ByteCount;

/// The disk and a queue on it.
pub(crate) struct Reader {
    pool: Pool,
    queue: Box<dyn Queue>,
    block: usize,
    in_flight: u32,
}

impl Reader {
    /// At least two reads in flight, or the disk waits for this program.
    pub(crate) fn new(disk: &EmulatedDisk, block: u64, in_flight: u32) -> Self {
        let path = disk.device().expect("attached");
        let device = FileDevice::open(path, OpenOptions::default()).expect("the disk opens");
        let pool = Pool::new(ByteCount(block * u64::from(in_flight)), ByteCount(block));
        let queue = device.queue(in_flight, &pool).expect("the disk can be read");
        let block = usize::try_from(block).expect("blocks are small");
        Self { pool, queue, block, in_flight }
    }

    /// Reads a block at each of these places, in this order; `came` hears of each by its number, of
    /// the last ones in the next round or at the end.
    pub(crate) fn round(&mut self, places: &[u64], mut came: impl FnMut(usize)) {
        let mut done = Vec::new();
        for (number, place) in places.iter().enumerate() {
            while self.queue.in_flight() >= self.in_flight {
                self.wait(&mut done, &mut came);
            }
            let buffer = self.pool.take(self.block).expect("more buffers than reads");
            self.queue.submit(number as u64, *place, buffer).expect("it is taken");
        }
    }

    /// Waits for what is under way.
    pub(crate) fn end(&mut self, mut came: impl FnMut(usize)) {
        let mut done = Vec::new();
        while self.queue.in_flight() > 0 {
            self.wait(&mut done, &mut came);
        }
    }

    fn wait(&mut self, done: &mut Vec<device::Completion>, came: &mut impl FnMut(usize)) {
        self.queue.wait(Duration::from_secs(10), done).expect("the disk answers");
        for completion in done.drain(..) {
            completion.result.expect("it is read");
            came(usize::try_from(completion.tag).expect("a stream's number"));
        }
    }
}

/// Every stream reads `len` contiguous bytes, the streams spread evenly over the range.
pub(crate) fn read_all(
    disk: &EmulatedDisk,
    streams: usize,
    len: u64,
    block: u64,
    in_flight: u32,
) -> Spread {
    let mut reader = Reader::new(disk, block, in_flight);
    let pitch = RANGE / streams as u64 / 4096 * 4096;
    let mut places: Vec<u64> = (0..streams as u64).map(|stream| stream * pitch).collect();
    let mut spread = vec![Stream::default(); streams];
    let start = Instant::now();
    for _ in 0..len / block {
        reader.round(&places, |stream| spread[stream].came(start.elapsed()));
        places.iter_mut().for_each(|place| *place += block);
    }
    reader.end(|stream| spread[stream].came(start.elapsed()));
    Spread(spread)
}
