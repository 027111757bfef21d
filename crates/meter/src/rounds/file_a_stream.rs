//! Rounds with one file for each stream, as a media server on a file system reads.
//!
//! ```text
//!   offset  0 ............ len ............ 2 len ............       a stream's position is its
//! file
//!           └── file 0 ───┘└── file 1 ─────┘└── file 2 ─── ...
//!                  │               │               │
//!                queue           queue           queue              one read at a time in each
//! ```
//!
//! With many reads in flight, the port collects the completed ones and then waits for the oldest
//! (as the paper's programs wait for one after the other): a read that completes meanwhile is
//! noticed when the oldest one is complete. The end of a round is exact, the times within it are
//! not.

use crate::target::{IoCompletion, IoRequest, Port, QueuedPort};
use device::{DeviceError, FileDevice, Method, Pool, Queue};
use std::collections::VecDeque;
use std::time::{Duration, Instant};
use units::{ByteCount, Moment};

/// A port that reads each stream from its own file.
pub struct FileAStream {
    files: Vec<Box<dyn Queue>>,
    /// The length of each file.
    len: ByteCount,
    pool: Pool,
    origin: Instant,
    /// Files with a read in flight, the oldest first.
    under_way: VecDeque<usize>,
    done: Vec<device::Completion>,
}

impl FileAStream {
    /// Reads at least one file by `method`, each used for `len` bytes, with at most one read of
    /// `block` in flight for each file. `origin` is the zero of the port's clock.
    ///
    /// # Errors
    /// Fails if the kernel has no more threads.
    pub fn new(
        files: &[FileDevice],
        len: ByteCount,
        block: ByteCount,
        method: Method,
        origin: Instant,
    ) -> Result<Self, DeviceError> {
        assert!(!files.is_empty(), "at least one file");
        let at_once = u32::try_from(files.len()).unwrap_or(u32::MAX);
        let pool = QueuedPort::pool(at_once, block);
        let queue = |file: &FileDevice| file.queue_by(method, 1, &pool);
        let files = files.iter().map(queue).collect::<Result<Vec<_>, _>>()?;
        let (under_way, done) = (VecDeque::new(), Vec::new());
        Ok(Self { files, len, pool, origin, under_way, done })
    }

    /// Collects the completions of one file, waiting for at most `at_most`.
    fn look(&mut self, file: usize, at_most: Duration) -> Result<(), DeviceError> {
        self.files[file].wait(at_most, &mut self.done)
    }
}

impl Port for FileAStream {
    fn now(&self) -> Moment {
        Moment::ZERO + self.origin.elapsed()
    }

    fn begin(&mut self, request: IoRequest) -> Result<(), DeviceError> {
        let IoRequest { tag, offset, len, .. } = request;
        let file = usize::try_from(offset / self.len.0).expect("few files");
        let (from, len) = whole_pages(offset % self.len.0, len);
        let buffer = self.pool.take(len).expect("a buffer for each read under way");
        self.files[file].submit(tag, from, buffer)?;
        // After the submission, which may fail.
        self.under_way.push_back(file);
        Ok(())
    }

    fn wait(&mut self, until: Moment, done: &mut Vec<IoCompletion>) -> Result<(), DeviceError> {
        let Some(oldest) = self.under_way.front().copied() else {
            if until != Moment::MAX {
                std::thread::sleep(until.since(self.now()));
            }
            return Ok(());
        };
        // Looking also submits the operations that were held back.
        for file in self.under_way.clone() {
            self.look(file, Duration::ZERO)?;
        }
        if self.done.is_empty() {
            self.look(oldest, until.since(self.now()).min(PATIENCE))?;
        }
        self.under_way.retain(|file| self.files[*file].in_flight() > 0);
        let at = self.now();
        let over = self.done.drain(..);
        done.extend(
            over.map(|completion| IoCompletion::new(completion.tag, at, completion.result)),
        );
        Ok(())
    }

    fn method(&self) -> String {
        self.files[0].method()
    }
}

/// The whole pages that contain a range: offset and length.
fn whole_pages(offset: u64, len: u64) -> (u64, usize) {
    let from = units::align_down(offset, PAGE);
    let len = units::align_up(offset + len, PAGE) - from;
    (from, usize::try_from(len).expect("a block fits in memory"))
}

/// The page size, to which direct reads are aligned.
const PAGE: u64 = 4096;

/// The longest wait for a queue; the caller waits again.
const PATIENCE: Duration = Duration::from_secs(60);
