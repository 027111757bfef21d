//! The two interfaces of a device: [`BlockDevice`], positional and blocking, and [`Queue`], which
//! reads and writes many places in parallel.
//!
//! ```text
//!   submit(tag, offset, buffer)        read  ─┐
//!   submit_write(tag, offset, buffer)  write ─┴▶ start(Transfer) ──▶ device
//!   wait(at most) ◀── Completion { tag, buffer, result } ◀──────────────┘
//! ```
//!
//! A transfer takes its buffer along and returns it; a write is durable after the next
//! [`BlockDevice::flush`]. Transfers of one queue complete in any order: a read of a place that is
//! being written returns the old or the new bytes. An invalid transfer (a write to a device opened
//! for reading, a place beyond the end) fails by itself, without affecting the queue.

use crate::{Buffer, KernelCounters, Lateness, Pool};
use std::fmt::Debug;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;
use units::{ByteCount, Hinted, Reason};

/// The kind of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceKind {
    /// A regular file.
    File,
    /// A block device.
    Block,
    /// Memory, for tests.
    Memory,
}

/// The size and block structure of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// The size in bytes, a multiple of `block`.
    pub size: ByteCount,
    /// The block size: offsets and lengths of every transfer are multiples of it (512 or 4,096).
    pub block: u32,
    /// Whether seeks cost time.
    pub rotational: bool,
    /// Whether it is a file, a block device or memory.
    pub kind: DeviceKind,
}

/// The direction of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the device.
    Read,
    /// To the device.
    Write,
}

impl Direction {
    /// The verb for error messages.
    pub(crate) fn action(self) -> &'static str {
        match self {
            Self::Read => "reading",
            Self::Write => "writing",
        }
    }
}

/// A transfer to be submitted to a [`Queue`].
#[derive(Debug)]
pub struct Transfer {
    /// The caller's identifier, returned as [`Completion::tag`].
    pub tag: u64,
    /// Whether bytes are read or written.
    pub direction: Direction,
    /// Byte offset on the device, a multiple of [`Geometry::block`].
    pub offset: u64,
    /// The memory for the bytes to be read, or the bytes to be written; its whole length is
    /// transferred.
    pub buffer: Buffer,
}

/// The byte range of a transfer on a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ByteSpan {
    /// The offset from the start of the device.
    pub(crate) offset: u64,
    /// The number of bytes.
    pub(crate) len: usize,
}

impl ByteSpan {
    /// The empty span of an operation without a place: a flush, or a failure of the whole device.
    pub(crate) const NONE: Self = Self::new(0, 0);

    pub(crate) const fn new(offset: u64, len: usize) -> Self {
        Self { offset, len }
    }
}

impl Transfer {
    /// The byte range of the transfer.
    pub(crate) fn place(&self) -> ByteSpan {
        ByteSpan::new(self.offset, self.buffer.len())
    }

    /// The completion that reports this result.
    pub(crate) fn ended(self, result: Result<(), DeviceError>) -> Completion {
        Completion { tag: self.tag, direction: self.direction, buffer: self.buffer, result }
    }
}

/// An error of a device.
#[derive(Debug, thiserror::Error)]
pub enum DeviceError {
    /// The kernel or the disk reported an error.
    #[error("{action} {length} bytes at {offset} of {}: {source}", path.display())]
    Io {
        /// The operation: `reading`, `writing`, `flushing`, ...
        action: &'static str,
        /// The path of the device.
        path: PathBuf,
        /// The offset on the device.
        offset: u64,
        /// The number of bytes.
        length: u64,
        /// The kernel's error.
        source: std::io::Error,
    },
    /// The device could not be opened or queried.
    #[error("cannot open {}: {source}", path.display())]
    Open {
        /// The path of the device.
        path: PathBuf,
        /// The remedy, where one is known.
        hint: Option<String>,
        /// The kernel's error.
        source: std::io::Error,
    },
    /// The device is mounted, used as swap, or part of another device.
    #[error("{} is in use: it is {by}", path.display())]
    Occupied {
        /// The path of the device.
        path: PathBuf,
        /// The device's users, each as formatted by [`Use`](crate::DeviceUse).
        by: String,
    },
    /// Another process has the device open.
    #[error("{} is in use: {by}", path.display())]
    InUse {
        /// The path of the device.
        path: PathBuf,
        /// The user, as far as it is known, and the remedy.
        by: Reason,
    },
    /// Too little was ever written to it for measuring its reads.
    #[error("{}: {reason}", path.display())]
    NotWritten {
        /// The path.
        path: PathBuf,
        /// The reason and the remedy.
        reason: Reason,
    },
    /// The path is not usable as a device.
    #[error("{}: {reason}", path.display())]
    Unusable {
        /// The path.
        path: PathBuf,
        /// The reason and the remedy.
        reason: Reason,
    },
}

/// The remedy for a write that found no space; `None` for other errors.
pub fn room_hint(error: &io::Error) -> Option<&'static str> {
    Some(match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "free some space there",
        io::ErrorKind::FileTooLarge => "no file may be as large there, or by this process",
        _ => return None,
    })
}

impl Hinted for DeviceError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::Io { source, .. } => {
                source.hint().or_else(|| room_hint(source).map(str::to_owned))
            }
            Self::Open { hint, .. } => hint.clone(),
            Self::Occupied { .. } => Some("release it first, or name another".to_owned()),
            Self::InUse { by: reason, .. }
            | Self::NotWritten { reason, .. }
            | Self::Unusable { reason, .. } => reason.hint.clone(),
        }
    }
}

impl DeviceError {
    pub(crate) fn open<'a>(
        path: &Path,
        hint: impl Into<Option<&'a str>>,
        source: io::Error,
    ) -> Self {
        Self::Open { path: path.to_owned(), hint: hint.into().map(str::to_owned), source }
    }

    pub(crate) fn in_use(path: &Path, by: &str, hint: &str) -> Self {
        Self::InUse { path: path.to_owned(), by: Reason::new(by, hint) }
    }

    pub(crate) fn unusable(path: impl Into<PathBuf>, reason: impl Into<Reason>) -> Self {
        Self::Unusable { path: path.into(), reason: reason.into() }
    }

    pub(crate) fn io(
        action: &'static str,
        path: &Path,
        place: ByteSpan,
        source: io::Error,
    ) -> Self {
        let (offset, length) = (place.offset, place.len as u64);
        Self::Io { action, path: path.to_owned(), offset, length, source }
    }

    /// The error of a transfer that was cancelled before it began ([`Queue::cancel`]).
    pub(crate) fn cancelled(direction: Direction, path: &Path, place: ByteSpan) -> Self {
        Self::io(direction.action(), path, place, rustix::io::Errno::CANCELED.into())
    }

    /// Whether the transfer was cancelled before it began ([`Queue::cancel`]).
    pub fn is_cancelled(&self) -> bool {
        let Self::Io { source, .. } = self else { return false };
        rustix::io::Errno::from_io_error(source) == Some(rustix::io::Errno::CANCELED)
    }

    /// Whether the device is not there any more: it was removed, or ends before the transfer.
    pub fn is_of_gone_device(&self) -> bool {
        let Self::Io { source, .. } = self else { return false };
        let removed = [
            rustix::io::Errno::NODEV,
            rustix::io::Errno::NXIO,
            rustix::io::Errno::SHUTDOWN,
            rustix::io::Errno::NOMEDIUM,
        ];
        source.kind() == io::ErrorKind::UnexpectedEof
            || rustix::io::Errno::from_io_error(source).is_some_and(|it| removed.contains(&it))
    }

    /// The error of a device that ends before the transfer.
    pub(crate) fn ends_early(
        direction: Direction,
        path: &Path,
        place: ByteSpan,
        got: usize,
    ) -> Self {
        let message = format!("it ends after {got} of them");
        let reason = Reason::new(message, "has it been cut short?");
        let source = io::Error::new(io::ErrorKind::UnexpectedEof, reason);
        Self::io(direction.action(), path, place, source)
    }
}

impl Geometry {
    /// Checks that a transfer is within the device and on block boundaries. Every device uses this
    /// check, so that they all behave alike.
    pub(crate) fn check(
        &self,
        direction: Direction,
        path: &Path,
        place: ByteSpan,
    ) -> Result<(), DeviceError> {
        let refuse = |kind, said: String| {
            Err(DeviceError::io(direction.action(), path, place, io::Error::new(kind, said)))
        };
        let block = u64::from(self.block);
        let ByteSpan { offset, len: length } = place;
        if !offset.is_multiple_of(block) || !(length as u64).is_multiple_of(block) {
            return refuse(io::ErrorKind::InvalidInput, format!("not whole blocks of {block}"));
        }
        match offset.checked_add(length as u64) {
            Some(end) if end <= self.size.0 => Ok(()),
            _ => refuse(io::ErrorKind::UnexpectedEof, format!("it ends at {}", self.size.0)),
        }
    }
}

/// A device with positional, blocking operations. Offsets and lengths are multiples of the
/// geometry's block; memory may be at any address (unaligned memory is copied through an aligned
/// buffer).
pub trait BlockDevice: Send + Sync + Debug {
    /// The size and block structure of the device.
    fn geometry(&self) -> Geometry;

    /// Fills `into` from `offset`, completely or not at all.
    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<(), DeviceError>;

    /// Writes all of `from` at `offset`. Not durable before [`BlockDevice::flush`].
    fn write_at(&self, offset: u64, from: &[u8]) -> Result<(), DeviceError>;

    /// Returns when all earlier writes are durable.
    fn flush(&self) -> Result<(), DeviceError>;

    /// The parts of `area` that were written, in order: a read of any other place does not reach
    /// the disk (a file system answers it from its metadata) and tells nothing about the disk's
    /// speed. Returns all of `area` where the device cannot tell.
    fn written(&self, area: Range<u64>) -> Result<Vec<Range<u64>>, DeviceError> {
        Ok(vec![area])
    }

    /// Discards `area`, which is of whole blocks: reads of it return any bytes until it is written
    /// again. Returns false where the device has no such operation; then nothing is changed.
    fn discard(&self, area: Range<u64>) -> Result<bool, DeviceError> {
        let _ = area;
        Ok(false)
    }

    /// The kernel's counters of the disks beneath it; all `None` for a device that the kernel does
    /// not know.
    fn kernel_counters(&self) -> KernelCounters {
        KernelCounters::default()
    }

    /// The lateness of its completions, for a device that imitates a slower one.
    fn lateness(&self) -> Option<Lateness> {
        None
    }

    /// A queue of reads and writes on this device that takes its buffers from `pool`.
    fn queue(&self, depth: u32, pool: &Pool) -> Result<Box<dyn Queue>, DeviceError>;
}

/// A completed transfer.
#[derive(Debug)]
pub struct Completion {
    /// The tag of the transfer.
    pub tag: u64,
    /// The direction of the transfer.
    pub direction: Direction,
    /// The buffer: the bytes that were read, if `result` is good, or that were to be written.
    pub buffer: Buffer,
    /// The result. Any part of a failed write may have been written.
    pub result: Result<(), DeviceError>,
}

/// Transfers in flight on one device, owned by one thread.
pub trait Queue: Send {
    /// Starts a transfer of the whole buffer. A queue may delay it until the next [`Queue::wait`]
    /// (with any time, also zero), to submit several together. It never blocks for the device. The
    /// caller keeps at most `depth` transfers in flight.
    fn start(&mut self, transfer: Transfer) -> Result<(), DeviceError>;

    /// Starts a read of `buffer.len()` bytes at `offset`.
    fn submit(&mut self, tag: u64, offset: u64, buffer: Buffer) -> Result<(), DeviceError> {
        self.start(Transfer { tag, direction: Direction::Read, offset, buffer })
    }

    /// Starts a write of the buffer at `offset`. It is durable after a [`BlockDevice::flush`] that
    /// follows its completion. A device that was opened for reading refuses it.
    fn submit_write(&mut self, tag: u64, offset: u64, buffer: Buffer) -> Result<(), DeviceError> {
        self.start(Transfer { tag, direction: Direction::Write, offset, buffer })
    }

    /// Waits until at least one transfer is complete, `at_most` has passed (`Duration::MAX`: no
    /// limit), or none is in flight. Appends completed transfers to `done`: all of them, or only a
    /// few if others can start sooner that way, and the rest in the next call.
    fn wait(&mut self, at_most: Duration, done: &mut Vec<Completion>) -> Result<(), DeviceError>;

    /// Cancels transfers that have not begun: `wait` returns each with an error for which
    /// [`DeviceError::is_cancelled`] is true. Others run to their end, and a method that cannot
    /// tell treats all as begun.
    fn cancel(&mut self) -> Result<(), DeviceError> {
        Ok(())
    }

    /// Unregisters memory that the pool has returned to the kernel ([`Pool::keep_at_most`]): until
    /// then it stays pinned, and in use for everybody else. A queue does that with its next
    /// transfer too; this is for queues that may have none for long.
    fn release_returned(&mut self) {}

    /// Number of transfers that were submitted and not yet returned by `wait`.
    fn in_flight(&self) -> u32;

    /// The transfer method, for reports: `io_uring, direct, registered buffers`.
    fn method(&self) -> String;
}
