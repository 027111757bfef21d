//! A device with scripted faults, for tests.
//!
//! Faults are scripted by place and kind of access, each a number of times; the first that applies
//! is used. Nothing is random: a latency tail counts accesses. Transfers of a queue follow the same
//! script as blocking ones; a torn write, including the read of the rest of its block, is made when
//! it is submitted.

use crate::block::ByteSpan;
use crate::{BlockDevice, Completion, DeviceError, Direction, Geometry, Pool, Queue, Transfer};
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

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

/// A device with scripted faults.
#[derive(Debug)]
pub struct Faulty {
    inner: Arc<dyn BlockDevice>,
    script: Arc<FaultScript>,
}

impl Faulty {
    /// Wraps `device`, without faults at first.
    pub fn new(device: Arc<dyn BlockDevice>) -> Self {
        Self { inner: device, script: Arc::default() }
    }

    /// Adds a rule to the script; it applies from the next access on.
    pub fn add(&self, rule: FaultRule) {
        self.script.add(rule);
    }

    /// Removes all rules.
    pub fn heal(&self) {
        self.script.lines().clear();
    }
}

impl BlockDevice for Faulty {
    fn geometry(&self) -> Geometry {
        self.inner.geometry()
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<(), DeviceError> {
        let place = ByteSpan::new(offset, into.len());
        let fault = self.script.next(Access::Read, place);
        match fault {
            Some(Fault::Errno(errno)) => return Err(failed(NAME, Access::Read, place, errno)),
            Some(Fault::Stall(time)) => std::thread::sleep(time),
            _ => {}
        }
        self.inner.read_at(offset, into)?;
        spoil(fault, Path::new(NAME), offset, into)
    }

    fn write_at(&self, offset: u64, from: &[u8]) -> Result<(), DeviceError> {
        let place = ByteSpan::new(offset, from.len());
        match self.script.next(Access::Write, place) {
            Some(Fault::Errno(errno)) => return Err(failed(NAME, Access::Write, place, errno)),
            Some(Fault::Torn { kept }) => {
                return tear(&*self.inner, offset, from, kept);
            }
            Some(Fault::Stall(time)) => std::thread::sleep(time),
            _ => {}
        }
        self.inner.write_at(offset, from)
    }

    fn flush(&self) -> Result<(), DeviceError> {
        match self.script.next(Access::Flush, ByteSpan::NONE) {
            Some(Fault::Errno(errno)) => {
                return Err(failed(NAME, Access::Flush, ByteSpan::NONE, errno));
            }
            Some(Fault::Stall(time)) => std::thread::sleep(time),
            _ => {}
        }
        self.inner.flush()
    }

    fn written(&self, area: Range<u64>) -> Result<Vec<Range<u64>>, DeviceError> {
        self.inner.written(area)
    }

    fn queue(&self, depth: u32, pool: &Pool) -> Result<Box<dyn Queue>, DeviceError> {
        Ok(Box::new(FaultyQueue {
            device: Arc::clone(&self.inner),
            inner: self.inner.queue(depth, pool)?,
            script: Arc::clone(&self.script),
            under_way: Vec::new(),
            held: Vec::new(),
            fresh: Vec::new(),
        }))
    }
}

/// Writes the first `kept` bytes, leaves the rest of their last block unchanged, and fails.
fn tear(
    device: &dyn BlockDevice,
    offset: u64,
    from: &[u8],
    kept: usize,
) -> Result<(), DeviceError> {
    let kept = &from[..kept.min(from.len())];
    let block = usize::try_from(device.geometry().block).expect("blocks are small");
    let (whole, rest) = kept.split_at(kept.len() - kept.len() % block);
    device.write_at(offset, whole)?;
    if !rest.is_empty() {
        let (at, mut last) = (offset + whole.len() as u64, vec![0; block]);
        device.read_at(at, &mut last)?;
        last[..rest.len()].copy_from_slice(rest);
        device.write_at(at, &last)?;
    }
    Err(failed(NAME, Access::Write, ByteSpan::new(offset, from.len()), libc::EIO))
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
        self.lines().push(ScriptLine { rule, met: 0 });
    }

    fn lines(&self) -> std::sync::MutexGuard<'_, Vec<ScriptLine>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The fault of this access, which counts as one use of its rule.
    pub(crate) fn next(&self, access: Access, place: ByteSpan) -> Option<Fault> {
        let end = place.offset.saturating_add(place.len as u64);
        for ScriptLine { rule, met } in self.lines().iter_mut() {
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

struct FaultyQueue {
    device: Arc<dyn BlockDevice>,
    inner: Box<dyn Queue>,
    script: Arc<FaultScript>,
    /// Transfers with a fault in the device below: tag, offset, fault, time of completion.
    under_way: Vec<(u64, u64, Fault, Instant)>,
    held: Vec<(Instant, Completion)>,
    fresh: Vec<Completion>,
}

impl FaultyQueue {
    fn collect(&mut self, at_most: Duration) -> Result<(), DeviceError> {
        let waited = self.inner.wait(at_most, &mut self.fresh);
        for mut completion in self.fresh.drain(..) {
            let marked = self.under_way.iter().position(|(tag, ..)| *tag == completion.tag);
            let mut due = Instant::now();
            if let Some(i) = marked {
                let (_, offset, fault, until) = self.under_way.swap_remove(i);
                let Completion { direction, buffer, result, .. } = &mut completion;
                if result.is_ok() && *direction == Direction::Read {
                    *result = spoil(Some(fault), Path::new(NAME), offset, buffer);
                }
                due = until;
            }
            self.held.push((due, completion));
        }
        waited
    }
}

impl Queue for FaultyQueue {
    fn start(&mut self, transfer: Transfer) -> Result<(), DeviceError> {
        let (access, place, now) =
            (Access::from(transfer.direction), transfer.place(), Instant::now());
        let failed = match self.script.next(access, place) {
            Some(Fault::Errno(errno)) => Err(failed(NAME, access, place, errno)),
            Some(Fault::Torn { kept }) if access == Access::Write => {
                tear(&*self.device, place.offset, &transfer.buffer, kept)
            }
            Some(fault) => {
                let longer = if let Fault::Stall(time) = fault { time } else { Duration::ZERO };
                self.under_way.push((transfer.tag, place.offset, fault, now + longer));
                Ok(())
            }
            None => Ok(()),
        };
        if failed.is_err() {
            // Held instead of returned: a transfer's failure is its completion, as with a real
            // device.
            self.held.push((now, transfer.ended(failed)));
            return Ok(());
        }
        self.inner.start(transfer)
    }

    fn wait(&mut self, at_most: Duration, done: &mut Vec<Completion>) -> Result<(), DeviceError> {
        let (before, start) = (done.len(), Instant::now());
        let mut patience = Duration::ZERO;
        loop {
            self.collect(patience)?;
            let now = Instant::now();
            // Backwards, so that removing one does not move those still to be looked at.
            for i in (0..self.held.len()).rev() {
                if self.held[i].0 <= now {
                    done.push(self.held.remove(i).1);
                }
            }
            let left = at_most.saturating_sub(start.elapsed());
            if done.len() > before || left.is_zero() || self.in_flight() == 0 {
                return Ok(());
            }
            let next = self.held.iter().map(|(due, _)| due.saturating_duration_since(now)).min();
            patience = next.unwrap_or(left).min(left);
            // The inner queue would return at once without waiting.
            if self.inner.in_flight() == 0 {
                std::thread::sleep(patience);
            }
        }
    }

    fn cancel(&mut self) -> Result<(), DeviceError> {
        self.inner.cancel()
    }

    fn in_flight(&self) -> u32 {
        self.inner.in_flight() + u32::try_from(self.held.len()).unwrap_or(u32::MAX)
    }

    fn method(&self) -> String {
        format!("faulty, over {}", self.inner.method())
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

/// The name in error messages.
const NAME: &str = "(faulty)";
