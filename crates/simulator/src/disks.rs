//! Disks in virtual time: one that completes exactly its guarantee, one that keeps a pace in
//! bursts, one that completes less, the disk models, and the faults of each.
//!
//! They are not `device::SimulatedDisk`, because a disk that is as slow as its guarantee allows has
//! no head and no positions: only the times of the engine's reads are simulated.
//!
//! The guarantee of N reads per slot, on which [`engine`] relies:
//!
//! ```text
//!  slot start                                                            slot end
//!   ├─ queue never empty since the start: the j-th read ends by ─────▶ end − (N − j) × least
//!   └─ every read: ends at most `longest_read` after the one before it
//! ```
//!
//! A read that was started in the slot before counts as one of this slot's N. The device starts
//! reads in the order of submission, and holds at most its queue depth at once.

mod paced;

use crate::scenario::{self, Scenario, Timing};
use ::disk::{DiskModel, Head};
use engine::{DiskGuarantee, PermitId, ReadId, ReadOutcome};
use paced::PacedTiming;
use scheduler::{DiskTimings, ServiceCurve};
use std::collections::VecDeque;
use std::time::Duration;
use units::{ByteCount, Moment, SlotIndex};

/// A work item of a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Work {
    Read(ReadId),
    BestEffort(PermitId),
    /// A part of a write of a recording.
    Write(PermitId),
}

/// One disk with its queue.
#[derive(Debug)]
pub(crate) struct Disk {
    pub(crate) guarantee: DiskGuarantee,
    /// Timings that the engine is given: of a disk model all of them, of the other kinds those that
    /// follow from the guarantee.
    pub(crate) timings: DiskTimings,
    /// Work that the device has not started.
    queue: VecDeque<QueuedWork>,
    in_device: u32,
    kind: Kind,
    faults: Faults,
    rng: fastrand::Rng,
}

#[derive(Debug)]
struct QueuedWork {
    work: Work,
    offset: u64,
    len: u32,
}

/// Work that the device has started: when it ends, and how.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StartedWork {
    pub(crate) work: Work,
    pub(crate) ends: Moment,
    pub(crate) outcome: ReadOutcome,
}

#[derive(Debug)]
enum Kind {
    Guaranteed(GuaranteedTiming),
    Paced(PacedTiming),
    /// Serves one read after another, each in the time `service`; busy until `busy_until`.
    Slow {
        service: Duration,
        busy_until: Moment,
    },
    Model(Head),
}

impl Disk {
    /// Disk `number` of the scenario.
    pub(crate) fn new(scenario: &Scenario, number: usize, mut rng: fastrand::Rng) -> Self {
        let spec = &scenario.disks[number];
        let mut guarantee = DiskGuarantee {
            min_read: spec.min_read,
            read_size: spec.read_size,
            longest_read: spec.longest_read,
            queue_depth: spec.queue_depth,
        };
        let mut timings = DiskTimings::default();
        // The curve that a calibration of this disk would give.
        let curve = Some(ServiceCurve::of_guarantee(spec.min_read));
        let kind = match spec.kind.as_str() {
            scenario::GUARANTEED => {
                timings.curve = curve;
                Kind::Guaranteed(GuaranteedTiming::new(scenario.slot, guarantee, spec.timing))
            }
            scenario::PACED => {
                let record = paced::calibration_of(scenario.slot, guarantee);
                guarantee.longest_read = record.guarantees[0].longest_read;
                timings =
                    DiskTimings { curve, ..DiskTimings::of_calibration(&record, spec.read_size) };
                let pace = record.guarantees[0].pace;
                Kind::Paced(PacedTiming::new(pace, spec.read_size, spec.timing))
            }
            scenario::SLOW => {
                timings.curve = curve;
                Kind::Slow { service: scenario.slot / spec.actual_reads, busy_until: Moment::ZERO }
            }
            name => {
                let model = DiskModel::preset(name).expect("checked by the scenario");
                guarantee = guarantee_of(&model, scenario.slot, spec.read_size, spec.queue_depth);
                timings = DiskTimings::of_model(&model, spec.read_size, spec.queue_depth);
                Kind::Model(model.head())
            }
        };
        let faults = Faults {
            failing: spec.failing,
            damaged: spec.damaged,
            salt: rng.u64(..),
            hang_from: Moment::ZERO + spec.stalls_at,
            hang_time: spec.stalls_for,
            slowdown: Slowdown {
                from: Moment::ZERO + spec.slows_at,
                until: Moment::ZERO + spec.slows_at + spec.slows_for,
                factor: spec.slow_factor,
                nominal_end: Moment::ZERO,
                slowed_end: Moment::ZERO,
            },
            dies: (!spec.dies_at.is_zero()).then(|| Moment::ZERO + spec.dies_at),
        };
        Self { guarantee, timings, queue: VecDeque::new(), in_device: 0, kind, faults, rng }
    }

    /// Bytes available to titles.
    pub(crate) fn capacity(&self) -> u64 {
        match &self.kind {
            Kind::Model(head) => head.model().capacity().0,
            _ => SYNTHETIC_CAPACITY,
        }
    }

    /// A new calibration: from now on the disk guarantees `min_read` reads per slot.
    pub(crate) fn recalibrate(&mut self, min_read: u32) {
        self.guarantee.min_read = min_read;
        // This kind of disk completes exactly its guarantee, whatever it is. The speed of the other
        // kinds does not follow from their calibration.
        if let Kind::Guaranteed(timing) = &mut self.kind {
            timing.guarantee.min_read = min_read;
        }
    }

    /// Appends a work item to the queue.
    pub(crate) fn submit(&mut self, work: Work, offset: u64, len: u32) {
        self.queue.push_back(QueuedWork { work, offset, len });
    }

    /// Starts the next work item, if the device can hold one more.
    pub(crate) fn start_next(&mut self, now: Moment) -> Option<StartedWork> {
        if self.in_device >= self.guarantee.queue_depth {
            return None;
        }
        let QueuedWork { work, offset, len } = self.queue.pop_front()?;
        self.in_device += 1;
        let (ends, outcome) = self.serve(now, offset, len);
        Some(StartedWork { work, ends, outcome })
    }

    /// A work item has ended and leaves the device.
    pub(crate) fn work_ended(&mut self) {
        self.in_device -= 1;
    }

    /// Whether a read submitted now would succeed without waiting for the end of a hang.
    pub(crate) fn is_readable(&self, now: Moment) -> bool {
        let Faults { hang_from, hang_time, dies, .. } = self.faults;
        !(hang_from..hang_from + hang_time).contains(&now) && dies.is_none_or(|dies| now < dies)
    }

    /// Time and outcome of a read that the device starts now.
    fn serve(&mut self, now: Moment, offset: u64, len: u32) -> (Moment, ReadOutcome) {
        let nominal_end = match &mut self.kind {
            Kind::Guaranteed(timing) => timing.serve(now, &mut self.rng),
            Kind::Paced(timing) => timing.serve(now, len, &mut self.rng),
            Kind::Slow { service, busy_until } => {
                *busy_until = (*busy_until).max(now) + *service;
                *busy_until
            }
            Kind::Model(head) => head.serve(now, offset, u64::from(len), false).finish,
        };
        let slowed_end = self.faults.slowdown.apply(now, nominal_end);
        let end = self.faults.delay_by_hang(slowed_end);
        // A read that would end after the death of the disk fails soon after the death.
        if let Some(death) = self.faults.dies.filter(|dies| end >= *dies) {
            return (death.max(now) + FAILURE_TIME, self.faults.dead_outcome());
        }
        (end, self.faults.outcome(offset, &mut self.rng))
    }
}

/// The guarantee of a model: every read takes the longest seek, a revolution and the slowest zone.
fn guarantee_of(
    model: &DiskModel,
    slot: Duration,
    read_size: ByteCount,
    depth: u32,
) -> DiskGuarantee {
    let longest_read = model.worst_read(read_size);
    let min_read = u32::try_from(slot.as_nanos() / longest_read.as_nanos()).expect("a short slot");
    DiskGuarantee { min_read, read_size, longest_read, queue_depth: depth }
}

/// A disk that completes exactly its guarantee.
#[derive(Debug)]
struct GuaranteedTiming {
    slot: Duration,
    guarantee: DiskGuarantee,
    timing: Timing,
    current: SlotIndex,
    /// Reads that count against the guarantee of the current slot.
    taken: u32,
    /// The device was never idle with room for another read since the slot began.
    was_fed: bool,
    /// The end of each read in the device.
    in_device: Vec<Moment>,
    /// When the last read ended, or the slot began.
    last_end: Moment,
}

impl GuaranteedTiming {
    fn new(slot: Duration, guarantee: DiskGuarantee, timing: Timing) -> Self {
        Self {
            slot,
            guarantee,
            timing,
            current: SlotIndex(0),
            taken: 0,
            was_fed: true,
            in_device: Vec::new(),
            last_end: Moment::ZERO,
        }
    }

    /// The end of a read that starts now.
    fn serve(&mut self, now: Moment, rng: &mut fastrand::Rng) -> Moment {
        self.advance(now);
        self.taken = self.taken.saturating_add(1);
        let (earliest, latest) = (now + self.shortest_read(), self.latest_end(now));
        let drawn_end = match self.timing {
            Timing::Early => earliest,
            Timing::Late => latest,
            Timing::Even => {
                // One read per interval of the guarantee: this read ends behind those that are in
                // the device already.
                let each = self.slot / self.guarantee.min_read.max(1);
                let queued = u32::try_from(self.in_device.len()).unwrap_or(u32::MAX).max(1);
                now + each * queued.min(self.guarantee.queue_depth)
            }
            // The bound itself has a share of its own: a uniform draw would hardly ever reach the
            // latest end, which is the one that admission relies on.
            Timing::Mixed if rng.u8(..4) == 0 => latest,
            Timing::Mixed => Moment(rng.u64(earliest.0..=latest.0.max(earliest.0))),
        };
        let end = drawn_end.min(latest).max(now);
        self.in_device.push(end);
        end
    }

    /// Updates the state of the slot to `now`.
    fn advance(&mut self, now: Moment) {
        let slot = SlotIndex::at(now, self.slot);
        if slot != self.current {
            let start = slot.start(self.slot);
            self.current = slot;
            // Reads of the slot before count against the guarantee of this one.
            self.in_device.retain(|end| *end >= start);
            self.taken = u32::try_from(self.in_device.len()).unwrap_or(u32::MAX);
            (self.was_fed, self.last_end) = (true, start);
        }
        let ended = self.in_device.iter().filter(|end| **end <= now).max();
        self.last_end = self.last_end.max(ended.copied().unwrap_or(self.last_end));
        self.in_device.retain(|end| *end > now);
        let has_room = self.in_device.len() < self.guarantee.queue_depth as usize;
        // The device could have taken this read earlier: the guarantee of N reads in the slot no
        // longer holds, only that of the longest read.
        self.was_fed &= !(has_room && now > self.last_end);
    }

    /// The latest end that the guarantee allows.
    fn latest_end(&self, now: Moment) -> Moment {
        let previous_end = self.in_device.iter().copied().max().unwrap_or(now);
        let by_longest_read = previous_end.max(now) + self.guarantee.longest_read;
        match self.guarantee.min_read.checked_sub(self.taken) {
            Some(to_come) if self.was_fed => {
                // The other guaranteed reads of the slot must still fit behind this one.
                let slot_end = self.current.next().start(self.slot);
                by_longest_read.min(slot_end - SLOT_END_MARGIN - self.shortest_read() * to_come)
            }
            _ => by_longest_read,
        }
    }

    fn shortest_read(&self) -> Duration {
        self.slot / (self.guarantee.min_read.max(1) * FASTEST_FACTOR)
    }
}

#[derive(Debug)]
struct Faults {
    failing: f64,
    damaged: f64,
    salt: u64,
    hang_from: Moment,
    hang_time: Duration,
    slowdown: Slowdown,
    dies: Option<Moment>,
}

/// A time in which the disk keeps working at a lower rate.
#[derive(Debug)]
struct Slowdown {
    from: Moment,
    until: Moment,
    factor: f64,
    /// When the last read would have ended without the slowdown.
    nominal_end: Moment,
    /// When the last slowed read ends.
    slowed_end: Moment,
}

impl Slowdown {
    /// The end of a read that would end at `nominal_end` without the slowdown.
    fn apply(&mut self, now: Moment, nominal_end: Moment) -> Moment {
        // The nominal end includes the wait for earlier reads, which are slowed down themselves.
        // Only the time that this read adds may be multiplied.
        let service = nominal_end.since(self.nominal_end.max(now));
        self.nominal_end = self.nominal_end.max(nominal_end);
        if !(self.from..self.until).contains(&now) {
            return nominal_end;
        }
        self.slowed_end = self.slowed_end.max(now) + service.mul_f64(self.factor);
        self.slowed_end
    }
}

impl Faults {
    /// A read that would end during the hang ends later by the time of the hang.
    fn delay_by_hang(&self, end: Moment) -> Moment {
        let hangs = !self.hang_time.is_zero()
            && (self.hang_from..self.hang_from + self.hang_time).contains(&end);
        if hangs { end + self.hang_time } else { end }
    }

    /// The outcome of a read from a dead disk. The kernel reports some dead disks as removed, and
    /// only an error for others.
    fn dead_outcome(&self) -> ReadOutcome {
        if self.salt.is_multiple_of(2) { ReadOutcome::Gone } else { ReadOutcome::Failed }
    }

    fn outcome(&self, offset: u64, rng: &mut fastrand::Rng) -> ReadOutcome {
        // Drawn from the position, so that a damaged position stays damaged.
        let position = fastrand::Rng::with_seed(self.salt ^ offset).f64();
        if position < self.damaged {
            ReadOutcome::Damaged
        } else if self.failing > 0.0 && rng.f64() < self.failing {
            ReadOutcome::Failed
        } else {
            ReadOutcome::Good
        }
    }
}

/// A tebibyte: enough for any library.
const SYNTHETIC_CAPACITY: u64 = 1 << 40;

/// Time after which a dead disk fails a read.
const FAILURE_TIME: Duration = Duration::from_millis(1);

/// How many times faster than its guarantee a disk can be.
const FASTEST_FACTOR: u32 = 16;

/// The last guaranteed read of a slot ends before the end of the slot.
const SLOT_END_MARGIN: Duration = Duration::from_micros(1);

#[cfg(test)]
mod tests {
    use super::*;

    /// Keeps the queue full from the start of a slot; returns the end of the last of `reads` reads.
    fn end_of_last(timing: Timing, reads: usize, longest_ms: u64) -> Duration {
        let guarantee = DiskGuarantee {
            min_read: 20,
            read_size: ByteCount(1 << 20),
            longest_read: Duration::from_millis(longest_ms),
            queue_depth: 4,
        };
        let slot = Duration::from_millis(500);
        let mut disk = GuaranteedTiming::new(slot, guarantee, timing);
        let mut rng = fastrand::Rng::with_seed(1);
        let start = SlotIndex(3).start(slot);
        let (mut now, mut in_device, mut last) = (start, Vec::new(), start);
        for _ in 0..reads {
            if in_device.len() == 4 {
                in_device.sort();
                now = in_device.remove(0);
            }
            let end = disk.serve(now, &mut rng);
            assert!(end.since(last.max(now)) <= guarantee.longest_read);
            last = last.max(end);
            in_device.push(end);
        }
        last.since(start)
    }

    #[test]
    fn a_disk_with_a_full_queue_keeps_its_guarantee_at_every_timing() {
        let slot = Duration::from_millis(500);
        for timing in [Timing::Late, Timing::Even, Timing::Early, Timing::Mixed] {
            for (reads, longest) in [(1, 500), (7, 120), (20, 100), (20, 500)] {
                let time = end_of_last(timing, reads, longest);
                assert!(time < slot, "{timing:?} {reads} {longest}: {time:?}");
            }
        }
        let margin = Duration::from_millis(1);
        assert!(end_of_last(Timing::Late, 20, 500) > slot - margin, "as late as allowed");
        assert!(end_of_last(Timing::Late, 40, 500) > slot, "no more reads than guaranteed");
    }

    #[test]
    fn a_read_submitted_in_mid_slot_may_take_the_longest_time() {
        let guarantee = DiskGuarantee {
            min_read: 20,
            read_size: ByteCount(1 << 20),
            longest_read: Duration::from_millis(100),
            queue_depth: 4,
        };
        let slot = Duration::from_millis(500);
        let mut disk = GuaranteedTiming::new(slot, guarantee, Timing::Late);
        let end = disk.serve(Moment::from_millis(450), &mut fastrand::Rng::with_seed(1));
        assert_eq!(end, Moment::from_millis(550));
        // The read that crosses the boundary is the first of the next slot's twenty.
        disk.serve(Moment::from_millis(500), &mut fastrand::Rng::with_seed(1));
        assert_eq!(disk.taken, 2);
    }
}
