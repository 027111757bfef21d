//! Makes a fast device take the time of a slow one: that of a modelled disk
//! ([`PacedDevice::as_disk`]), or of a limited rate ([`PacedDevice::throttled`]).
//!
//! ```text
//!   request ─┬─▶ timing: when would it be complete? ───────────┐
//!            └─▶ the device below makes it now ──▶ complete ──▶ held until then ──▶ returned
//! ```
//!
//! No completion is early. A late completion of the device below is returned late, but the timing
//! continues from its own moments, so that lateness does not accumulate.

use crate::block::ByteSpan;
use crate::{
    BlockDevice, Completion, DeviceError, Direction, Geometry, KernelCounters, Lateness, Pool,
    Queue, Transfer,
};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroU64;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use units::{Moment, Times, locked};

/// The completion times of requests, in the order of their submission.
pub(crate) trait Timing: Send + fmt::Debug {
    /// The completion time of a transfer of this place that is requested now. `now` never
    /// decreases.
    fn finish(&mut self, now: Moment, place: ByteSpan, direction: Direction) -> Moment;

    /// The time at which all writes are safe from a power cut, if a flush is requested now.
    fn flush(&mut self, now: Moment) -> Moment;
}

/// A device that takes the time of a slower one, in real time. The device below must be the faster
/// of the two: its late completions are returned late, and [`BlockDevice::lateness`] counts them.
pub struct PacedDevice {
    inner: Arc<dyn BlockDevice>,
    clock: Arc<PacedClock>,
    slow: SlowDevice,
    pass_through: AtomicBool,
}

/// The slow device, as it is seen from outside.
pub(crate) struct SlowDevice {
    /// The timing in words, for reports.
    pub(crate) name: String,
    pub(crate) rotational: bool,
    /// Whether the times depend on what was written to the device below.
    pub(crate) depends_on_data: bool,
}

struct PacedClock {
    origin: Instant,
    timing: Mutex<Box<dyn Timing>>,
    lateness: Mutex<Times>,
}

impl PacedDevice {
    pub(crate) fn new(
        inner: Arc<dyn BlockDevice>,
        timing: Box<dyn Timing>,
        slow: SlowDevice,
    ) -> Self {
        let (origin, timing) = (Instant::now(), Mutex::new(timing));
        let clock = Arc::new(PacedClock { origin, timing, lateness: Mutex::default() });
        Self { inner, clock, slow, pass_through: AtomicBool::new(false) }
    }

    /// Switches pass-through: while it is set, blocking reads, writes and flushes have the speed of
    /// the device below and do not affect the timing, for filling a store. Queues keep the timing.
    pub fn set_pass_through(&self, on: bool) {
        self.pass_through.store(on, Ordering::Relaxed);
    }

    /// Makes a blocking transfer by the device below and returns when it is due.
    fn pace(
        &self,
        direction: Direction,
        place: ByteSpan,
        transfer: impl FnOnce() -> Result<(), DeviceError>,
    ) -> Result<(), DeviceError> {
        if self.pass_through.load(Ordering::Relaxed) {
            return transfer();
        }
        // Asked before the transfer, whose own time then counts as part of the modelled time.
        let due = self.clock.ask(&self.inner.geometry(), direction, place);
        transfer()?;
        self.clock.sleep_until(due);
        self.clock.handed_out(due);
        Ok(())
    }
}

impl BlockDevice for PacedDevice {
    fn geometry(&self) -> Geometry {
        Geometry { rotational: self.slow.rotational, ..self.inner.geometry() }
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<(), DeviceError> {
        let place = ByteSpan::new(offset, into.len());
        self.pace(Direction::Read, place, || self.inner.read_at(offset, into))
    }

    fn write_at(&self, offset: u64, from: &[u8]) -> Result<(), DeviceError> {
        let place = ByteSpan::new(offset, from.len());
        self.pace(Direction::Write, place, || self.inner.write_at(offset, from))
    }

    /// Takes the time that a modelled disk needs to empty its write-back cache, if it has one.
    fn flush(&self) -> Result<(), DeviceError> {
        if self.pass_through.load(Ordering::Relaxed) {
            return self.inner.flush();
        }
        let due = self.clock.flush();
        self.inner.flush()?;
        self.clock.sleep_until(due);
        Ok(())
    }

    /// All of `area` where the times do not depend on what was written.
    fn written(&self, area: Range<u64>) -> Result<Vec<Range<u64>>, DeviceError> {
        if self.slow.depends_on_data { self.inner.written(area) } else { Ok(vec![area]) }
    }

    fn discard(&self, area: Range<u64>) -> Result<bool, DeviceError> {
        self.inner.discard(area)
    }

    fn kernel_counters(&self) -> KernelCounters {
        self.inner.kernel_counters()
    }

    /// Lateness after the timing's moments. Requests that pass through are not counted.
    fn lateness(&self) -> Option<Lateness> {
        Some(Lateness::of(&locked(&self.clock.lateness)))
    }

    fn queue(&self, depth: u32, pool: &Pool) -> Result<Box<dyn Queue>, DeviceError> {
        Ok(Box::new(PacedQueue {
            inner: self.inner.queue(depth, pool)?,
            geometry: self.inner.geometry(),
            clock: Arc::clone(&self.clock),
            name: self.slow.name.clone(),
            submitted: 0,
            under_way: BTreeMap::new(),
            held: Vec::new(),
            fresh: Vec::new(),
        }))
    }
}

impl fmt::Debug for PacedDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let timing = locked(&self.clock.timing);
        write!(f, "{timing:?} over {:?}", self.inner)
    }
}

impl PacedClock {
    fn now(&self) -> Moment {
        Moment::ZERO + self.origin.elapsed()
    }

    fn ask(&self, geometry: &Geometry, direction: Direction, place: ByteSpan) -> Moment {
        let mut timing = locked(&self.timing);
        // The time is taken under the lock, so that requests are in order.
        let now = self.now();
        if geometry.check(direction, Path::new(""), place).is_err() {
            // The device below will refuse it.
            return now;
        }
        timing.finish(now, place, direction)
    }

    fn flush(&self) -> Moment {
        let mut timing = locked(&self.timing);
        timing.flush(self.now())
    }

    fn handed_out(&self, due: Moment) {
        let mut lateness = locked(&self.lateness);
        lateness.record(self.now().since(due));
    }

    fn sleep_until(&self, moment: Moment) {
        sharpen_timers();
        loop {
            let left = moment.since(self.now());
            if left.is_zero() {
                return;
            }
            // In a loop, because the clock may be short of the moment when the sleep ends.
            std::thread::sleep(left);
        }
    }
}

/// A queue whose completions are held until the timing's moment.
struct PacedQueue {
    inner: Box<dyn Queue>,
    geometry: Geometry,
    clock: Arc<PacedClock>,
    name: String,
    submitted: u64,
    /// Transfers in the device below, by their number there: the caller's tag, and the due time.
    under_way: BTreeMap<u64, (u64, Moment)>,
    /// Completed transfers that are not yet due.
    held: Vec<(Moment, Completion)>,
    /// The reusable memory of `collect`.
    fresh: Vec<Completion>,
}

impl PacedQueue {
    /// Collects completions of the device below, waiting at most `at_most` for one.
    fn collect(&mut self, at_most: Duration) -> Result<(), DeviceError> {
        // An error is returned only after the completions that came with it are taken over.
        let waited = self.inner.wait(at_most, &mut self.fresh);
        for mut completion in self.fresh.drain(..) {
            let known = self.under_way.remove(&completion.tag);
            let (tag, mut due) = known.expect("the device below returns what it was given");
            completion.tag = tag;
            if completion.result.as_ref().is_err_and(DeviceError::is_cancelled) {
                // The modelled disk did not do it either, so nobody waits for its time.
                due = Moment::ZERO;
            }
            self.held.push((due, completion));
        }
        waited
    }

    /// Returns due completions in the order of their due times.
    fn hand_out(&mut self, now: Moment, done: &mut Vec<Completion>) {
        self.held.sort_by_key(|(due, _)| *due);
        let due = self.held.partition_point(|(due, _)| *due <= now);
        for (due, completion) in self.held.drain(..due) {
            // A failed or cancelled transfer took no modelled time, so its lateness means nothing.
            if completion.result.is_ok() {
                self.clock.handed_out(due);
            }
            done.push(completion);
        }
    }
}

impl Queue for PacedQueue {
    fn start(&mut self, transfer: Transfer) -> Result<(), DeviceError> {
        let due = self.clock.ask(&self.geometry, transfer.direction, transfer.place());
        let tag = transfer.tag;
        // A number of our own as the tag: callers may use one tag for several transfers.
        self.inner.start(Transfer { tag: self.submitted, ..transfer })?;
        self.under_way.insert(self.submitted, (tag, due));
        self.submitted += 1;
        Ok(())
    }

    fn wait(&mut self, at_most: Duration, done: &mut Vec<Completion>) -> Result<(), DeviceError> {
        sharpen_timers();
        let (before, until) = (done.len(), self.clock.now() + at_most);
        // The first look does not wait: something may be due already.
        let mut patience = Duration::ZERO;
        loop {
            self.collect(patience)?;
            let now = self.clock.now();
            self.hand_out(now, done);
            if done.len() > before || now >= until || self.in_flight() == 0 {
                return Ok(());
            }
            let next = self.held.first().map_or(Moment::MAX, |(due, _)| *due);
            patience = next.min(until).since(now);
            // The device below has nothing to wait for and would return at once, in a busy loop.
            if self.under_way.is_empty() {
                self.clock.sleep_until(now + patience);
                patience = Duration::ZERO;
            }
        }
    }

    /// Cancels in the device below only: the timing has already counted the transfers.
    fn cancel(&mut self) -> Result<(), DeviceError> {
        self.inner.cancel()
    }

    fn release_returned(&mut self) {
        self.inner.release_returned();
    }

    fn in_flight(&self) -> u32 {
        u32::try_from(self.under_way.len() + self.held.len()).unwrap_or(u32::MAX)
    }

    fn method(&self) -> String {
        format!("{}, over {}", self.name, self.inner.method())
    }
}

/// Sets this thread's timer slack to its minimum; by default the kernel may add 50 µs to each wait
/// to save wake-ups.
pub(crate) fn sharpen_timers() {
    thread_local!(static SHARP: Cell<bool> = const { Cell::new(false) });
    if !SHARP.replace(true) {
        // If the kernel refuses, waits end a little later.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
    }
}
