//! Scripted faults of a [`SimulatedDisk`](crate::SimulatedDisk), for tests.
//!
//! Faults are scripted by place and kind of access, each a number of times; the first that applies
//! is used. Nothing is random: a latency tail counts accesses. Transfers of a queue follow the same
//! script as blocking ones.

use crate::block::ByteSpan;
use crate::{DeviceError, Direction};
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;
use units::locked;

/// A fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The access fails with this error number: `libc::EIO`, `libc::ENOSPC`, ...
    Errno(i32),
    /// The byte at this offset of the device is read with these bits flipped.
    BitRot {
        /// The offset of the byte.
        at: u64,
        /// The flipped bits.
        bits: u8,
    },
    /// Only the first `kept` bytes arrive: the read fails as at the end of a device.
    Short {
        /// The number of bytes that arrive.
        kept: usize,
    },
    /// The access takes longer by this time.
    Stall(Duration),
    /// One in `one_in` of the accesses that the rule applies to takes longer, the last of each such
    /// number; the others go on to the next rule.
    Tail {
        /// The period; 100 gives the 99th percentile.
        one_in: u32,
        /// The additional time.
        longer: Duration,
    },
    /// Only the first `kept` bytes of a write arrive, then the device is gone: `EIO`.
    Torn {
        /// The number of bytes that arrive.
        kept: usize,
    },
}

/// The kind of access that a rule applies to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Reads, blocking or through a queue.
    Read,
    /// Writes, blocking or through a queue.
    Write,
    /// Flushes, which have no place.
    Flush,
}

impl From<Direction> for Access {
    fn from(direction: Direction) -> Self {
        match direction {
            Direction::Read => Self::Read,
            Direction::Write => Self::Write,
        }
    }
}

impl Access {
    /// The verb for error messages.
    pub(crate) fn action(self) -> &'static str {
        match self {
            Self::Read => Direction::Read.action(),
            Self::Write => Direction::Write.action(),
            Self::Flush => "flushing",
        }
    }
}

/// One rule of the script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FaultRule {
    /// The kind of access that the rule applies to.
    pub access: Access,
    /// The bytes that the access must touch.
    pub area: Range<u64>,
    /// How often the rule applies; `u32::MAX` for an unlimited number.
    pub times: u32,
    /// The fault.
    pub fault: Fault,
}

#[derive(Debug, Default)]
pub(crate) struct FaultScript(Mutex<Vec<ScriptLine>>);

#[derive(Debug)]
struct ScriptLine {
    rule: FaultRule,
    /// The number of accesses that the rule applied to.
    met: u32,
}

impl FaultScript {
    pub(crate) fn add(&self, rule: FaultRule) {
        locked(&self.0).push(ScriptLine { rule, met: 0 });
    }

    /// The fault of this access, which counts as one use of its rule.
    pub(crate) fn next(&self, access: Access, place: ByteSpan) -> Option<Fault> {
        let end = place.offset.saturating_add(place.len as u64);
        for ScriptLine { rule, met } in locked(&self.0).iter_mut() {
            let touched = rule.area.start < end && place.offset < rule.area.end;
            let fits = rule.access == access && (touched || access == Access::Flush);
            if !fits || rule.times == 0 {
                continue;
            }
            // Counted before the decision, so that a tail of one in 100 meets the hundredth access.
            *met = met.wrapping_add(1);
            let fault = match rule.fault {
                Fault::Tail { one_in, .. } if !met.is_multiple_of(one_in.max(1)) => continue,
                Fault::Tail { longer, .. } => Fault::Stall(longer),
                fault => fault,
            };
            if rule.times != u32::MAX {
                rule.times -= 1;
            }
            return Some(fault);
        }
        None
    }
}

/// The error that the kernel would report for a transfer.
pub(crate) fn failed(name: &str, access: Access, place: ByteSpan, errno: i32) -> DeviceError {
    DeviceError::io(access.action(), Path::new(name), place, io::Error::from_raw_os_error(errno))
}

/// Applies a fault to a read that succeeded.
pub(crate) fn spoil(
    fault: Option<Fault>,
    path: &Path,
    offset: u64,
    read: &mut [u8],
) -> Result<(), DeviceError> {
    match fault {
        Some(Fault::Short { kept }) if kept < read.len() => Err(DeviceError::ends_early(
            Direction::Read,
            path,
            ByteSpan::new(offset, read.len()),
            kept,
        )),
        Some(Fault::BitRot { at, bits }) => {
            let place = at.checked_sub(offset).and_then(|place| usize::try_from(place).ok());
            if let Some(byte) = place.and_then(|place| read.get_mut(place)) {
                *byte ^= bits;
            }
            Ok(())
        }
        _ => Ok(()),
    }
}
