//! The two faces of a device: [`BlockDevice`], positional and blocking, and [`Queue`], which reads
//! and writes many places at once.
//!
//! ```text
//!   submit(tag, offset, buffer)        read  ─┐
//!   submit_write(tag, offset, buffer)  write ─┴▶ start(Transfer) ──▶ device
//!   wait(at most) ◀── Completion { tag, buffer, result } ◀──────────────┘
//! ```
//!
//! A write takes its buffer along and brings it back, as a read does; it is durable after the next
//! [`BlockDevice::flush`]. Transfers of one queue end in any order: who reads what is being written
//! gets the old or the new. What must not happen (a write to a device that was opened for reading,
//! a place beyond the end) is the result of that transfer, not of the queue.

use crate::{Buffer, Lateness, Pool};
use std::fmt::Debug;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;
use units::ByteCount;

/// What kind of thing the bytes lie on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceKind {
    /// A regular file.
    File,
    /// A block device.
    Block,
    /// Memory (tests).
    Memory,
}

/// What a device says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Bytes, a multiple of `block`.
    pub size: ByteCount,
    /// Offsets and lengths of every transfer are multiples of this (512 or 4,096).
    pub block: u32,
    /// Whether seeks cost time.
    pub rotational: bool,
    /// Whether it is a file, a block device or memory.
    pub kind: DeviceKind,
}

/// Which way bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the device.
    Read,
    /// To the device.
    Write,
}

impl Direction {
    /// For errors.
    pub(crate) fn action(self) -> &'static str {
        match self {
            Self::Read => "reading",
            Self::Write => "writing",
        }
    }
}

/// What a [`Queue`] is asked for.
#[derive(Debug)]
pub struct Transfer {
    /// The caller's name for it, see [`Completion::tag`].
    pub tag: u64,
    /// Whether bytes are read or written.
    pub direction: Direction,
    /// Byte offset on the device, a multiple of [`Geometry::block`].
    pub offset: u64,
    /// Room for what is read, or what is to be written; all of it.
    pub buffer: Buffer,
}

/// Where a transfer lies on a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ByteSpan {
    /// Bytes from the start of the device.
    pub(crate) offset: u64,
    /// Bytes moved.
    pub(crate) len: usize,
}

impl ByteSpan {
    /// The place of what has none: a flush, or a failure of the whole device.
    pub(crate) const NONE: Self = Self::new(0, 0);

    pub(crate) const fn new(offset: u64, len: usize) -> Self {
        Self { offset, len }
    }
}

impl Transfer {
    /// Where it lies.
    pub(crate) fn place(&self) -> ByteSpan {
        ByteSpan::new(self.offset, self.buffer.len())
    }

    /// The completion that reports this result.
    pub(crate) fn ended(self, result: Result<(), DeviceError>) -> Completion {
        Completion { tag: self.tag, direction: self.direction, buffer: self.buffer, result }
    }
}

/// A transfer that did not happen.
#[derive(Debug, thiserror::Error)]
pub enum DeviceError {
    /// The kernel or the disk said no.
    #[error(
        "{action} {length} bytes at {offset} of {}: {source}{}", path.display(), room_hint(source)
    )]
    Io {
        /// `reading`, `writing`, `flushing`, ...
        action: &'static str,
        /// Which device.
        path: PathBuf,
        /// Where.
        offset: u64,
        /// How much.
        length: u64,
        /// What the kernel said.
        source: std::io::Error,
    },
    /// Opening or asking about it failed.
    #[error("cannot open {}: {source}{}", path.display(), hint)]
    Open {
        /// Which.
        path: PathBuf,
        /// What to do about it, starting with `; `, or empty.
        hint: String,
        /// What the kernel said.
        source: std::io::Error,
    },
    /// It is mounted, swap, or part of another device.
    #[error("{} is in use: it is {by}; release it first, or name another", path.display())]
    Occupied {
        /// Which.
        path: PathBuf,
        /// By what, each as [`Use`](crate::DeviceUse) shows it.
        by: String,
    },
    /// Another process has it.
    #[error("{} is in use: {by}", path.display())]
    InUse {
        /// Which.
        path: PathBuf,
        /// By whom, as far as can be told, and what to do about it.
        by: &'static str,
    },
    /// It is not something that can be used so.
    #[error("{}: {reason}", path.display())]
    Unusable {
        /// Which.
        path: PathBuf,
        /// Why, and what to do about it.
        reason: String,
    },
}

/// What to do about a write that found no room, starting with `; `; empty for all else.
pub fn room_hint(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "; free some space there",
        io::ErrorKind::FileTooLarge => "; no file may be as large there, or by this process",
        _ => "",
    }
}

impl DeviceError {
    pub(crate) fn io(
        action: &'static str,
        path: &Path,
        place: ByteSpan,
        source: io::Error,
    ) -> Self {
        let (offset, length) = (place.offset, place.len as u64);
        Self::Io { action, path: path.to_owned(), offset, length, source }
    }

    /// It was called off before it began ([`Queue::cancel`]).
    pub(crate) fn cancelled(direction: Direction, path: &Path, place: ByteSpan) -> Self {
        Self::io(direction.action(), path, place, rustix::io::Errno::CANCELED.into())
    }

    /// Whether it was called off before it began ([`Queue::cancel`]).
    pub fn is_cancelled(&self) -> bool {
        let Self::Io { source, .. } = self else { return false };
        rustix::io::Errno::from_io_error(source) == Some(rustix::io::Errno::CANCELED)
    }

    /// The device ends before it should.
    pub(crate) fn ends_early(
        direction: Direction,
        path: &Path,
        place: ByteSpan,
        got: usize,
    ) -> Self {
        let said = format!("it ends after {got} of them; has it been cut short?");
        let source = io::Error::new(io::ErrorKind::UnexpectedEof, said);
        Self::io(direction.action(), path, place, source)
    }
}

impl Geometry {
    /// Whether a transfer lies within the device, on block boundaries. Checked by every device, so
    /// that what works on one works on all.
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

/// A device, positional and blocking. Offsets and lengths are multiples of the geometry's block;
/// memory may lie anywhere (unaligned memory is copied through an aligned buffer).
pub trait BlockDevice: Send + Sync + Debug {
    /// What the device says of itself.
    fn geometry(&self) -> Geometry;

    /// Fills `into` from `offset`, wholly or not at all.
    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<(), DeviceError>;

    /// Writes all of `from` at `offset`. Not durable before [`BlockDevice::flush`].
    fn write_at(&self, offset: u64, from: &[u8]) -> Result<(), DeviceError>;

    /// Everything written before is durable when this returns.
    fn flush(&self) -> Result<(), DeviceError>;

    /// The parts of `area` that hold something, in order: a read of any other place does not
    /// reach the disk (a file system answers it from its own books), so that it says nothing of
    /// the disk's speed. All of it, where the device cannot tell.
    fn written(&self, area: Range<u64>) -> Result<Vec<Range<u64>>, DeviceError> {
        Ok(vec![area])
    }

    /// How late it hands out what it reads, if it stands in for a slower device and so keeps times
    /// of its own.
    fn lateness(&self) -> Option<Lateness> {
        None
    }

    /// A queue of reads and writes on this device that takes its buffers from `pool`.
    fn queue(&self, depth: u32, pool: &Pool) -> Result<Box<dyn Queue>, DeviceError>;
}

/// A finished transfer.
#[derive(Debug)]
pub struct Completion {
    /// As given to [`Queue::submit`].
    pub tag: u64,
    /// What it was.
    pub direction: Direction,
    /// The bytes: what was read, if `result` is good; what was to be written.
    pub buffer: Buffer,
    /// How it went. Of a write that failed any part may have been written.
    pub result: Result<(), DeviceError>,
}

/// Transfers under way on one device, owned by one thread.
pub trait Queue: Send {
    /// Starts a transfer of all of its buffer; a queue may hold it back until the next
    /// [`Queue::wait`] (of any time, zero as well), to hand several to the kernel at once. Never
    /// blocks for the device. The caller keeps at most `depth` transfers in flight.
    fn start(&mut self, transfer: Transfer) -> Result<(), DeviceError>;

    /// [`Queue::start`]s reading `buffer.len()` bytes at `offset`.
    fn submit(&mut self, tag: u64, offset: u64, buffer: Buffer) -> Result<(), DeviceError> {
        self.start(Transfer { tag, direction: Direction::Read, offset, buffer })
    }

    /// [`Queue::start`]s writing the buffer at `offset`. What is flushed after it has ended
    /// ([`BlockDevice::flush`]) is durable. Of a device that was opened for reading it is refused.
    fn submit_write(&mut self, tag: u64, offset: u64, buffer: Buffer) -> Result<(), DeviceError> {
        self.start(Transfer { tag, direction: Direction::Write, offset, buffer })
    }

    /// Waits until at least one transfer is finished, or `at_most` has passed (`Duration::MAX`: as
    /// long as it takes), or none is in flight, and appends what is finished to `done`: all of it,
    /// or a few, where others can be started sooner for it, and the rest at the next call.
    fn wait(&mut self, at_most: Duration, done: &mut Vec<Completion>) -> Result<(), DeviceError>;

    /// Calls off what has not begun: `wait` hands each back with an error that
    /// [`DeviceError::is_cancelled`]. What has begun goes on to its end, and a way of reading that
    /// cannot tell takes all for begun.
    fn cancel(&mut self) -> Result<(), DeviceError> {
        Ok(())
    }

    /// Transfers submitted and not yet handed out by `wait`.
    fn in_flight(&self) -> u32;

    /// How the transfers are made, for reports: `io_uring, direct, registered buffers`.
    fn method(&self) -> String;
}
