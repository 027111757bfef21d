//! The kernel's methods for reading a file, by name, and which of them it allows here.
//!
//! ```text
//!   asynchronous   io_uring (io_uring-poll)   libaio   posix-aio   many reads from one thread
//!   blocking       threads                             as many threads as reads at once
//!                  pread   preadv2   mmap   mmap-all   one read after another
//! ```
//!
//! Scheduled reads use io_uring. The others exist for comparison, and because containers (Docker's
//! default profile) and hardened kernels refuse some of them: a queue with a refused method uses
//! threads instead and reports that in [`Queue::method`]. A read tests whether a method works.

mod asynchronous;
mod in_flight;
mod libaio;
mod mmap;
mod posix_aio;
mod pread;
mod preadv2;
mod serial;
mod threads;
mod uring;

use crate::open_file::OpenFile;
use crate::{Buffer, DeviceError, Pool, Queue};
use serial::SerialQueue;
use std::fmt;
use std::io;
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;
use units::{ByteCount, Reason, name_of};

/// The read method of a file's queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Method {
    /// io_uring, or threads where the kernel refuses that.
    #[default]
    Best,
    /// io_uring: registered file and buffers, one call for many reads.
    Uring,
    /// A pool of threads that call `pread`.
    Threads,
    /// `pread`, one after another.
    Pread,
    /// `preadv2`, one after another: cached data is read without waiting.
    Preadv2,
    /// Each read is mapped and touched, one after another.
    Mmap,
    /// All submitted reads are mapped, then touched one after another.
    MmapAll,
    /// The kernel's older asynchronous reads (`io_submit`).
    Libaio,
    /// The C library's `aio_read`.
    PosixAio,
    /// io_uring that polls for completions, on a disk with queues for that.
    UringPoll,
}

impl Method {
    /// All methods by the names that users type.
    pub const NAMES: [(&str, Self); 10] = [
        ("best", Self::Best),
        ("io_uring", Self::Uring),
        ("threads", Self::Threads),
        ("pread", Self::Pread),
        ("preadv2", Self::Preadv2),
        ("mmap", Self::Mmap),
        ("mmap-all", Self::MmapAll),
        ("libaio", Self::Libaio),
        ("posix-aio", Self::PosixAio),
        ("io_uring-poll", Self::UringPoll),
    ];

    /// The name that users type.
    pub fn name(self) -> &'static str {
        name_of(&Self::NAMES, self)
    }

    /// A description in one line.
    pub fn description(self) -> &'static str {
        match self {
            Self::Best => "io_uring, or threads where the kernel refuses that",
            Self::Uring => "io_uring: registered file and buffers, one call for many reads",
            Self::Threads => "a pool of threads, each in a pread",
            Self::Pread => "pread, one read after another",
            Self::Preadv2 => "preadv2: what is cached at once; one read after another",
            Self::Mmap => "map a read, touch its pages, unmap; one after another",
            Self::MmapAll => "map all reads, then touch their pages one after another",
            Self::Libaio => "io_submit, the kernel's older asynchronous reads",
            Self::PosixAio => "the C library's aio_read (threads behind the scenes)",
            Self::UringPoll => "io_uring that polls, where the disk has queues for it",
        }
    }

    /// The method in `TENUTO_IO`; the best one if it is not set.
    pub(crate) fn from_environment(path: &Path) -> Result<Self, DeviceError> {
        let Some(said) = std::env::var_os(VARIABLE) else { return Ok(Self::Best) };
        let method = said.to_string_lossy().parse();
        method.map_err(|error: Reason| DeviceError::unusable(path, error.about(VARIABLE)))
    }

    /// A queue with this method, or with threads if the kernel refuses it.
    pub(crate) fn queue(
        self,
        file: &Arc<OpenFile>,
        depth: u32,
        pool: &Pool,
    ) -> Result<Box<dyn Queue>, DeviceError> {
        self.open(file, depth, pool).or_else(|refused| {
            let instead = format!(" (no {}: {refused})", self.wanted().name());
            let queue = threads::ThreadsQueue::new(file, depth, &instead);
            Ok(Box::new(queue.map_err(|source| {
                DeviceError::open(&file.path, "no more threads for its reads", source)
            })?) as Box<dyn Queue>)
        })
    }

    /// Whether this method reads this file, and the kernel's reason if not.
    pub(crate) fn probe(self, file: &Arc<OpenFile>) -> io::Result<()> {
        let pool = Pool::new(ByteCount::mib(2), ByteCount::mib(2));
        self.open(file, 1, &pool).map(drop)
    }

    fn open(self, file: &Arc<OpenFile>, depth: u32, pool: &Pool) -> io::Result<Box<dyn Queue>> {
        Ok(match self.wanted() {
            Self::Best | Self::Uring => Box::new(uring::Uring::queue(file, depth, pool, false)?),
            Self::UringPoll => Box::new(uring::Uring::queue(file, depth, pool, true)?),
            Self::Threads => Box::new(threads::ThreadsQueue::new(file, depth, "")?),
            Self::Pread => Box::new(SerialQueue::new(file, pread::Pread)),
            Self::Preadv2 => Box::new(SerialQueue::new(file, preadv2::Preadv2::new(file)?)),
            Self::Mmap => Box::new(SerialQueue::new(file, mmap::Mmap::in_turn(file, pool)?)),
            Self::MmapAll => Box::new(SerialQueue::new(file, mmap::Mmap::all(file, pool)?)),
            Self::Libaio => Box::new(libaio::Libaio::queue(file, depth, pool)?),
            Self::PosixAio => Box::new(posix_aio::PosixAio::queue(file, depth)),
        })
    }

    fn wanted(self) -> Self {
        if self == Self::Best { Self::Uring } else { self }
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Method {
    type Err = Reason;

    fn from_str(text: &str) -> Result<Self, Reason> {
        let named = Self::NAMES.iter().find(|(name, _)| *name == text);
        named.map(|(_, method)| *method).ok_or_else(|| {
            let names = Self::NAMES.map(|(name, _)| name);
            let (last, others) = names.split_last().expect("there are some");
            let hint = format!("say {} or {last}", others.join(", "));
            Reason::new(format!("'{text}' is no way to read"), hint)
        })
    }
}

/// The use of the page cache by a file's reads, for [`Queue::method`].
fn cached(file: &OpenFile) -> &'static str {
    if file.direct { "direct" } else { "buffered" }
}

/// A buffer for a test read, and its pool: the caller's, or an own one if that is empty.
fn probe_buffer(pool: &Pool) -> (Pool, Buffer) {
    let of = |pool: &Pool| pool.take(PROBE).map(|buffer| (pool.clone(), buffer));
    let spare = || of(&Pool::new(ByteCount::mib(2), ByteCount::mib(2)));
    of(pool).or_else(spare).expect("a pool of its own")
}

/// Bytes of a test read.
const PROBE: usize = 4096;

/// The environment variable that overrides the choice.
const VARIABLE: &str = "TENUTO_IO";
