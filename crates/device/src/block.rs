//! The two faces of a device.

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
    /// See [`DeviceKind`].
    pub kind: DeviceKind,
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
    /// Somebody else has it.
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
        (offset, length): (u64, usize),
        source: io::Error,
    ) -> Self {
        let length = length as u64;
        Self::Io { action, path: path.to_owned(), offset, length, source }
    }

    /// It was called off before it began ([`Queue::cancel`]).
    pub(crate) fn cancelled(path: &Path, place: (u64, usize)) -> Self {
        Self::io("reading", path, place, rustix::io::Errno::CANCELED.into())
    }

    /// Whether it was called off before it began ([`Queue::cancel`]).
    pub fn is_cancelled(&self) -> bool {
        let Self::Io { source, .. } = self else { return false };
        rustix::io::Errno::from_io_error(source) == Some(rustix::io::Errno::CANCELED)
    }

    /// What was read ends before it should.
    pub(crate) fn ends_early(path: &Path, place: (u64, usize), got: usize) -> Self {
        let said = format!("it ends after {got} of them; has it been cut short?");
        Self::io("reading", path, place, io::Error::new(io::ErrorKind::UnexpectedEof, said))
    }
}

impl Geometry {
    /// Whether a transfer lies within the device, on block boundaries. Checked by every device, so
    /// that what works on one works on all.
    pub(crate) fn check(
        &self,
        action: &'static str,
        path: &Path,
        (offset, length): (u64, usize),
    ) -> Result<(), DeviceError> {
        let refuse = |kind, said: String| {
            Err(DeviceError::io(action, path, (offset, length), io::Error::new(kind, said)))
        };
        let block = u64::from(self.block);
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

    /// A queue of reads on this device that takes its buffers from `pool`.
    fn queue(&self, depth: u32, pool: &Pool) -> Result<Box<dyn Queue>, DeviceError>;
}

/// A finished read.
#[derive(Debug)]
pub struct Completion {
    /// As given to [`Queue::submit`].
    pub tag: u64,
    /// The bytes, if `result` is good.
    pub buffer: Buffer,
    /// How it went.
    pub result: Result<(), DeviceError>,
}

/// Reads under way on one device, owned by one thread.
pub trait Queue: Send {
    /// Starts reading `buffer.len()` bytes at `offset`; a queue may hold the read back until the
    /// next [`Queue::wait`] (of any time, zero as well), to hand several to the kernel at once.
    /// Never blocks for the device. The caller keeps at most `depth` reads in flight.
    fn submit(&mut self, tag: u64, offset: u64, buffer: Buffer) -> Result<(), DeviceError>;

    /// Waits until at least one read is finished, or `at_most` has passed, or none is in flight,
    /// and appends what is finished to `done`.
    fn wait(&mut self, at_most: Duration, done: &mut Vec<Completion>) -> Result<(), DeviceError>;

    /// Calls off what has not begun: `wait` hands each back with an error that
    /// [`DeviceError::is_cancelled`]. What has begun goes on to its end, and a way of reading that
    /// cannot tell takes all for begun.
    fn cancel(&mut self) -> Result<(), DeviceError> {
        Ok(())
    }

    /// Reads submitted and not yet handed out by `wait`.
    fn in_flight(&self) -> u32;

    /// How the reads are made, for reports: `io_uring, direct, registered buffers`.
    fn method(&self) -> String;
}
