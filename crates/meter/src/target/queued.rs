//! One file or block device by one of the kernel's interfaces, in real time.

use super::layout::PAGE;
use super::sleep_clock::SleepClock;
use super::verify::Checked;
use super::{IoCompletion, IoRequest, Port, Verifier};
use crate::log::OperationKind;
use device::{BlockDevice, DeviceError, Direction, Pool, Queue, Transfer};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use units::{ByteCount, Moment};

/// A port that reads and writes through a device's queue with its own buffers. Unaligned operations
/// are extended to whole blocks of the device.
pub struct QueuedPort {
    queue: Box<dyn Queue>,
    pool: Pool,
    grain: u64,
    origin: Instant,
    done: Vec<device::Completion>,
    /// Operations that failed before they were issued.
    failed: BTreeMap<u64, DeviceError>,
    /// The number of writes so far, which makes their contents differ.
    written: u64,
    asleep: SleepClock,
    held_until: Moment,
    /// Whether no more operations are submitted.
    ends: bool,
    /// Verifies what is read from the file at this path, if that is wanted.
    verifier: Option<(Arc<Verifier>, PathBuf)>,
    /// What is verified of the operations in flight, by tag.
    checked: BTreeMap<u64, Checked>,
}

impl QueuedPort {
    /// The memory for `at_once` operations of up to `block` bytes: what [`QueuedPort::new`] needs.
    pub fn pool(at_once: u32, block: ByteCount) -> Pool {
        let largest = largest(block);
        Pool::new(ByteCount(largest.saturating_mul(at_once.into())), ByteCount(largest))
    }

    /// A port to `device` through one of its queues, made with this pool. `origin` is the zero of
    /// its clock.
    pub fn new(
        device: &dyn BlockDevice,
        queue: Box<dyn Queue>,
        pool: Pool,
        origin: Instant,
    ) -> Self {
        let grain = u64::from(device.geometry().block).max(PAGE);
        Self {
            queue,
            pool,
            grain,
            origin,
            done: Vec::new(),
            failed: BTreeMap::new(),
            written: 0,
            asleep: SleepClock::default(),
            held_until: Moment::ZERO,
            ends: false,
            verifier: None,
            checked: BTreeMap::new(),
        }
    }

    /// Verifies what is read from the file at `path`.
    #[must_use]
    pub(crate) fn verifying(self, verifier: Option<Arc<Verifier>>, path: &Path) -> Self {
        Self { verifier: verifier.map(|verifier| (verifier, path.to_owned())), ..self }
    }

    /// Fills the pool with incompressible bytes before a run that writes. `at_once` and `block` are
    /// those of [`QueuedPort::pool`].
    pub fn fill(pool: &Pool, at_once: u32, block: ByteCount) {
        let len = usize::try_from(largest(block)).expect("a block fits in memory");
        let mut chance = fastrand::Rng::with_seed(SEED);
        let mut all: Vec<_> = (0..at_once).map_while(|_| pool.take(len)).collect();
        all.iter_mut().for_each(|buffer| chance.fill(buffer));
    }
}

impl QueuedPort {
    /// Submits the pending operations without waiting for any, so that time asleep in it is a delay
    /// of the target, which has no room.
    fn hand_over(&mut self, from: Moment) -> Result<(), DeviceError> {
        self.asleep.look(from);
        self.queue.wait(Duration::ZERO, &mut self.done)?;
        let until = self.now();
        if until.since(from) >= LONG && self.asleep.through(from, until) >= until.since(from) / 2 {
            self.held_until = until;
        }
        Ok(())
    }
}

impl Port for QueuedPort {
    fn now(&self) -> Moment {
        Moment::ZERO + self.origin.elapsed()
    }

    fn begin(&mut self, request: IoRequest) -> Result<(), DeviceError> {
        let IoRequest { tag, kind, offset, len, .. } = request;
        let from = units::align_down(offset, self.grain);
        let to = units::align_up(offset + len, self.grain);
        let len = usize::try_from(to - from).expect("a block fits in memory");
        let mut buffer = self.pool.take(len).expect("a buffer for each operation under way");
        let direction = match kind {
            OperationKind::Read => Direction::Read,
            OperationKind::Write => {
                self.written += 1;
                if self.verifier.is_none() {
                    stamp(&mut buffer, self.written);
                }
                Direction::Write
            }
        };
        if let Some((verifier, _)) = &self.verifier {
            let checked = match kind {
                OperationKind::Read => verifier.read(request.file, from, len),
                OperationKind::Write => verifier.write(request.file, from, &mut buffer),
            };
            self.checked.insert(tag, checked);
        }
        match self.queue.start(Transfer { tag, direction, offset: from, buffer }) {
            Ok(()) => {}
            Err(error) => {
                self.failed.insert(tag, error);
            }
        }
        Ok(())
    }

    fn wait(&mut self, until: Moment, done: &mut Vec<IoCompletion>) -> Result<(), DeviceError> {
        let at = self.now();
        for (tag, error) in std::mem::take(&mut self.failed) {
            done.push(IoCompletion::new(tag, at, Err(error)));
        }
        if !done.is_empty() {
            return Ok(());
        }
        if self.queue.in_flight() == 0 {
            if until != Moment::MAX {
                std::thread::sleep(until.since(at));
            }
            return Ok(());
        }
        if self.queue.in_flight() > MANY {
            self.hand_over(at)?;
        }
        if self.done.is_empty() {
            let left = until.since(self.now()).min(PATIENCE);
            self.queue.wait(left, &mut self.done)?;
        }
        let at = self.now();
        let (verifier, checked) = (&self.verifier, &mut self.checked);
        done.extend(self.done.drain(..).map(|completion| {
            let device::Completion { tag, buffer, mut result, .. } = completion;
            if let Some(((verifier, path), checked)) = verifier.as_ref().zip(checked.remove(&tag)) {
                let since = at.since(Moment::ZERO);
                result = verifier.end(checked, &buffer, result, since, || path.clone());
            }
            IoCompletion::new(tag, at, result)
        }));
        Ok(())
    }

    fn held_until(&self) -> Moment {
        self.held_until
    }

    fn settle(&mut self, at_most: Duration) -> u32 {
        // Operations that cannot be cancelled or waited for remain in flight.
        if !std::mem::replace(&mut self.ends, true) {
            let _ = self.queue.cancel();
        }
        let _ = self.queue.wait(at_most, &mut self.done);
        self.done.clear();
        self.queue.in_flight()
    }

    fn method(&self) -> String {
        self.queue.method()
    }
}

/// The length of a block with its surroundings, which are less than a page on either side.
pub(super) fn largest(block: ByteCount) -> u64 {
    units::align_up(block.0, PAGE) + PAGE
}

/// Makes all pages different, so that no storage can deduplicate them.
pub(crate) fn stamp(memory: &mut [u8], number: u64) {
    for (page, memory) in (0u64..).zip(memory.chunks_mut(4096)) {
        let mark = (number << 20 | page).to_le_bytes();
        let len = memory.len().min(mark.len());
        memory[..len].copy_from_slice(&mark[..len]);
    }
}

/// The queue depth below which operations are submitted with the next wait: none waits for room
/// then, and one system call is saved.
const MANY: u32 = 32;

/// The time from which a submission counts as blocked: normally it takes microseconds.
const LONG: Duration = Duration::from_millis(1);

/// The seed of the bytes that are written.
pub(super) const SEED: u64 = 3362;

/// The longest wait for the queue; the caller waits again.
const PATIENCE: Duration = Duration::from_secs(60);
