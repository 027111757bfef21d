//! Our side: the queue in the way the server uses it.

use crate::{Course, Used};
use device::{BlockDevice, FileDevice, Method, OpenOptions, Pool, Queue};
use rustix::time::{ClockId, clock_gettime};
use std::time::{Duration, Instant};
use units::ByteCount;

pub(crate) fn turn(course: &Course) -> Used {
    let (first, reader) = cost(|| {
        let mut reader = Reader::new(course);
        reader.read(course.depth.into());
        reader
    });
    let mut reader = reader;
    let start = Instant::now();
    let wanted = reader.pieces * course.times;
    let (used, ()) = cost(|| reader.read(wanted));
    Used {
        micros: used.as_secs_f64() * 1e6 / wanted as f64,
        rate: (wanted * course.size) as f64 / start.elapsed().as_secs_f64(),
        beginning: Some(first),
    }
}

/// The read method, for the report.
pub(crate) fn method(course: &Course) -> String {
    Reader::new(course).queue.method()
}

struct Reader<'a> {
    course: &'a Course,
    pool: Pool,
    queue: Box<dyn Queue>,
    /// Number of reads in the file.
    pieces: u64,
}

impl<'a> Reader<'a> {
    fn new(course: &'a Course) -> Self {
        let device = FileDevice::open(&course.file, OpenOptions::default()).expect("a file");
        let memory = ByteCount(course.size * u64::from(course.depth));
        let pool = Pool::new(memory, ByteCount(course.size));
        let queue = device.queue_by(Method::Uring, course.depth, &pool).expect("a queue");
        let pieces = device.geometry().size.0 / course.size;
        Self { course, pool, queue, pieces }
    }

    /// Reads from the front of the file to its end, repeatedly.
    fn read(&mut self, wanted: u64) {
        let Self { course: Course { depth, size, .. }, pool, queue, pieces } = self;
        let length = usize::try_from(*size).expect("a read fits in memory");
        let (mut next, mut done) = (0, Vec::new());
        while next < wanted || queue.in_flight() > 0 {
            while next < wanted && queue.in_flight() < *depth {
                let buffer = pool.take(length).expect("a buffer for each read under way");
                queue.submit(next, next % *pieces * size, buffer).expect("a queue that takes it");
                next += 1;
            }
            queue.wait(Duration::MAX, &mut done).expect("a queue that answers");
            for completion in done.drain(..) {
                completion.result.expect("a file that can be read");
            }
        }
    }
}

/// The processor time and the result of `of`.
fn cost<T>(of: impl FnOnce() -> T) -> (Duration, T) {
    let before = processor_time();
    let made = of();
    (processor_time() - before, made)
}

/// The processor time of this process with all its threads, including the kernel's workers for it.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::try_from(time).expect("a time since the process began")
}
