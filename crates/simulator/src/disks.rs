//! Disks in virtual time: one that keeps its promise and not a microsecond more, one that does
//! not, the disk models, and what can go wrong with each.
//!
//! The promise of N reads a slot, spelled out (what [`server::engine`] is told and relies on):
//!
//! ```text
//!  slot start                                                            slot end
//!   ├─ kept fed (queue depth, no gap): the j-th read is done by ─────▶ end − (N − j) × least
//!   └─ any read at all: done at most `longest_read` after the one before it
//! ```
//!
//! A read that was begun in the slot before counts as one of this slot's N. Reads are taken in the
//! order in which they are offered, as many at once as the device is told to hold.

use crate::scenario::{self, Scenario, Timing};
use ::disk::{DiskModel, Head};
use scheduler::{DiskTimings, ServiceCurve};
use server::engine::{DiskGuarantee, PermitId, ReadId, ReadOutcome};
use std::collections::VecDeque;
use std::time::Duration;
use units::{ByteCount, Moment, SlotIndex};

/// What a disk is asked to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Work {
    Read(ReadId),
    BestEffort(PermitId),
}

/// One disk at work.
#[derive(Debug)]
pub(crate) struct Disk {
    pub(crate) guarantee: DiskGuarantee,
    /// Times that the engine is told: of a disk model all of them, of the other kinds those of the
    /// guarantee.
    pub(crate) timings: DiskTimings,
    /// In the driver's hands: work, place and length.
    queue: VecDeque<(Work, u64, u32)>,
    in_device: u32,
    kind: Kind,
    faults: Faults,
    chance: fastrand::Rng,
}

#[derive(Debug)]
enum Kind {
    Guaranteed(GuaranteedTiming),
    Slow { service: Duration, free: Moment },
    Model(Head),
}

impl Disk {
    /// Disk `number` of the scenario.
    pub(crate) fn new(scenario: &Scenario, number: usize, mut chance: fastrand::Rng) -> Self {
        let plan = &scenario.disks[number];
        let mut guarantee = DiskGuarantee {
            min_read: plan.min_read,
            read_size: plan.read_size,
            longest_read: plan.longest_read,
            queue_depth: plan.queue_depth,
        };
        let mut timings = DiskTimings::default();
        // As a calibration would say it.
        let curve = Some(ServiceCurve::of_guarantee(plan.min_read));
        let kind = match plan.kind.as_str() {
            scenario::GUARANTEED => {
                timings.curve = curve;
                Kind::Guaranteed(GuaranteedTiming::new(scenario.slot, guarantee, plan.timing))
            }
            scenario::SLOW => {
                timings.curve = curve;
                Kind::Slow { service: scenario.slot / plan.really, free: Moment::ZERO }
            }
            name => {
                let model = DiskModel::preset(name).expect("checked when the scenario was made");
                guarantee = guarantee_of(&model, scenario.slot, plan.read_size, plan.queue_depth);
                timings = DiskTimings::of_model(&model, plan.read_size, plan.queue_depth);
                Kind::Model(model.head())
            }
        };
        let faults = Faults {
            failing: plan.failing,
            damaged: plan.damaged,
            salt: chance.u64(..),
            stall: (Moment::ZERO + plan.stalls_at, plan.stalls_for),
            slows: Slowing {
                from: Moment::ZERO + plan.slows_at,
                until: Moment::ZERO + plan.slows_at + plan.slows_for,
                times: plan.slows_times,
                before: Moment::ZERO,
                free: Moment::ZERO,
            },
            dies: (!plan.dies_at.is_zero()).then(|| Moment::ZERO + plan.dies_at),
        };
        Self { guarantee, timings, queue: VecDeque::new(), in_device: 0, kind, faults, chance }
    }

    /// Bytes that titles may lie on.
    pub(crate) fn capacity(&self) -> u64 {
        match &self.kind {
            Kind::Model(head) => head.model().capacity().0,
            _ => MADE_UP_CAPACITY,
        }
    }

    /// A new calibration: from now on it keeps this many reads.
    pub(crate) fn recalibrate(&mut self, min_read: u32) {
        self.guarantee.min_read = min_read;
        if let Kind::Guaranteed(promise) = &mut self.kind {
            promise.guarantee.min_read = min_read;
        }
    }

    /// Is asked to do something after all that it was asked before.
    pub(crate) fn offer(&mut self, work: Work, offset: u64, len: u32) {
        self.queue.push_back((work, offset, len));
    }

    /// Begins the next work, if there is room in the device: says when it ends, and how.
    pub(crate) fn begin(&mut self, now: Moment) -> Option<(Moment, Work, ReadOutcome)> {
        if self.in_device >= self.guarantee.queue_depth {
            return None;
        }
        let (work, offset, len) = self.queue.pop_front()?;
        self.in_device += 1;
        let (done, outcome) = self.submit(now, offset, len);
        Some((done, work, outcome))
    }

    /// A work has ended.
    pub(crate) fn ended(&mut self) {
        self.in_device -= 1;
    }

    /// Whether a read now would be answered, and well.
    pub(crate) fn is_readable(&self, now: Moment) -> bool {
        let Faults { stall: (at, time), dies, .. } = self.faults;
        !(at..at + time).contains(&now) && dies.is_none_or(|dies| now < dies)
    }

    fn submit(&mut self, now: Moment, offset: u64, len: u32) -> (Moment, ReadOutcome) {
        let done = match &mut self.kind {
            Kind::Guaranteed(promise) => promise.submit(now, &mut self.chance),
            Kind::Slow { service, free } => {
                *free = (*free).max(now) + *service;
                *free
            }
            Kind::Model(head) => head.serve(now, offset, u64::from(len), false).finish,
        };
        let done = self.faults.slows.slowed(now, done);
        let done = self.faults.delayed(done);
        if let Some(dead) = self.faults.dies.filter(|dies| done >= *dies) {
            return (dead.max(now) + FAILS_AFTER, self.faults.dead_outcome());
        }
        (done, self.faults.outcome(offset, &mut self.chance))
    }
}

/// What a model surely does: each read pays the longest seek, a revolution and the slowest zone.
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

/// The disk that does what it must.
#[derive(Debug)]
struct GuaranteedTiming {
    slot: Duration,
    guarantee: DiskGuarantee,
    timing: Timing,
    current: SlotIndex,
    /// Reads that count as this slot's.
    taken: u32,
    /// The device had as many reads as it can take, or all there were, ever since the slot began.
    fed: bool,
    /// When each read under way will end.
    under_way: Vec<Moment>,
    /// When the last read ended, or the slot began.
    touched: Moment,
}

impl GuaranteedTiming {
    fn new(slot: Duration, guarantee: DiskGuarantee, timing: Timing) -> Self {
        Self {
            slot,
            guarantee,
            timing,
            current: SlotIndex(0),
            taken: 0,
            fed: true,
            under_way: Vec::new(),
            touched: Moment::ZERO,
        }
    }

    fn submit(&mut self, now: Moment, chance: &mut fastrand::Rng) -> Moment {
        self.catch_up(now);
        self.taken = self.taken.saturating_add(1);
        let (earliest, latest) = (now + self.least(), self.latest(now));
        let done = match self.timing {
            Timing::Early => earliest,
            Timing::Late => latest,
            Timing::Even => {
                let each = self.slot / self.guarantee.min_read.max(1);
                let queued = u32::try_from(self.under_way.len()).unwrap_or(u32::MAX).max(1);
                now + each * queued.min(self.guarantee.queue_depth)
            }
            Timing::Mixed if chance.u8(..4) == 0 => latest,
            Timing::Mixed => Moment(chance.u64(earliest.0..=latest.0.max(earliest.0))),
        };
        let done = done.min(latest).max(now);
        self.under_way.push(done);
        done
    }

    /// Lets time pass up to `now`.
    fn catch_up(&mut self, now: Moment) {
        let slot = SlotIndex::at(now, self.slot);
        if slot != self.current {
            let start = slot.start(self.slot);
            self.current = slot;
            self.under_way.retain(|done| *done >= start);
            self.taken = u32::try_from(self.under_way.len()).unwrap_or(u32::MAX);
            (self.fed, self.touched) = (true, start);
        }
        let ended = self.under_way.iter().filter(|done| **done <= now).max();
        self.touched = self.touched.max(ended.copied().unwrap_or(self.touched));
        self.under_way.retain(|done| *done > now);
        let room = self.under_way.len() < self.guarantee.queue_depth as usize;
        // There was room for this read for some time: the slot's promise was not taken up.
        self.fed &= !(room && now > self.touched);
    }

    fn latest(&self, now: Moment) -> Moment {
        let before = self.under_way.iter().copied().max().unwrap_or(now);
        let latest = before.max(now) + self.guarantee.longest_read;
        match self.guarantee.min_read.checked_sub(self.taken) {
            Some(to_come) if self.fed => {
                let end = self.current.next().start(self.slot);
                latest.min(end - BEFORE_THE_END - self.least() * to_come)
            }
            _ => latest,
        }
    }

    /// No read is faster; the reads to come of a slot are left this time each.
    fn least(&self) -> Duration {
        self.slot / (self.guarantee.min_read.max(1) * LEAST_PART)
    }
}

#[derive(Debug)]
struct Faults {
    failing: f64,
    damaged: f64,
    salt: u64,
    stall: (Moment, Duration),
    slows: Slowing,
    dies: Option<Moment>,
}

/// A disk that keeps working, slower.
#[derive(Debug)]
struct Slowing {
    from: Moment,
    until: Moment,
    times: f64,
    /// When the last read would have ended, had nothing been slow ...
    before: Moment,
    /// ... and when the last slow one ends.
    free: Moment,
}

impl Slowing {
    /// When a read is done that would be `done`.
    fn slowed(&mut self, now: Moment, done: Moment) -> Moment {
        let service = done.since(self.before.max(now));
        self.before = self.before.max(done);
        if !(self.from..self.until).contains(&now) {
            return done;
        }
        self.free = self.free.max(now) + service.mul_f64(self.times);
        self.free
    }
}

impl Faults {
    fn delayed(&self, done: Moment) -> Moment {
        let (at, time) = self.stall;
        if done >= at && !time.is_zero() && done < at + time { done + time } else { done }
    }

    /// What a dead disk answers: of some the kernel knows that they are no more.
    fn dead_outcome(&self) -> ReadOutcome {
        if self.salt.is_multiple_of(2) { ReadOutcome::Gone } else { ReadOutcome::Failed }
    }

    fn outcome(&self, offset: u64, chance: &mut fastrand::Rng) -> ReadOutcome {
        let place = fastrand::Rng::with_seed(self.salt ^ offset).f64();
        if place < self.damaged {
            ReadOutcome::Damaged
        } else if self.failing > 0.0 && chance.f64() < self.failing {
            ReadOutcome::Failed
        } else {
            ReadOutcome::Good
        }
    }
}

/// A tebibyte: room for any library.
const MADE_UP_CAPACITY: u64 = 1 << 40;

/// So soon a dead disk fails what is asked of it.
const FAILS_AFTER: Duration = Duration::from_millis(1);

/// A disk in a hurry is this much faster than its promise.
const LEAST_PART: u32 = 16;

/// The last read of a slot ends within the slot, not with it.
const BEFORE_THE_END: Duration = Duration::from_micros(1);

#[cfg(test)]
mod tests {
    use super::*;

    /// Keeps the disk fed from the slot's start on; when does the last of `reads` end?
    fn fed(timing: Timing, reads: usize, longest_ms: u64) -> Duration {
        let guarantee = DiskGuarantee {
            min_read: 20,
            read_size: ByteCount(1 << 20),
            longest_read: Duration::from_millis(longest_ms),
            queue_depth: 4,
        };
        let slot = Duration::from_millis(500);
        let mut promise = GuaranteedTiming::new(slot, guarantee, timing);
        let mut chance = fastrand::Rng::with_seed(1);
        let start = SlotIndex(3).start(slot);
        let (mut now, mut under_way, mut last) = (start, Vec::new(), start);
        for _ in 0..reads {
            if under_way.len() == 4 {
                under_way.sort();
                now = under_way.remove(0);
            }
            let done = promise.submit(now, &mut chance);
            assert!(done.since(last.max(now)) <= guarantee.longest_read);
            last = last.max(done);
            under_way.push(done);
        }
        last.since(start)
    }

    #[test]
    fn a_fed_disk_does_what_it_promised_however_late() {
        let slot = Duration::from_millis(500);
        for timing in [Timing::Late, Timing::Even, Timing::Early, Timing::Mixed] {
            for (reads, longest) in [(1, 500), (7, 120), (20, 100), (20, 500)] {
                let time = fed(timing, reads, longest);
                assert!(time < slot, "{timing:?} {reads} {longest}: {time:?}");
            }
        }
        assert!(fed(Timing::Late, 20, 500) > slot - Duration::from_millis(1), "and hardly more");
        assert!(fed(Timing::Late, 40, 500) > slot, "nor more than it promised");
    }

    #[test]
    fn what_comes_in_the_middle_of_a_slot_takes_as_long_as_it_may() {
        let guarantee = DiskGuarantee {
            min_read: 20,
            read_size: ByteCount(1 << 20),
            longest_read: Duration::from_millis(100),
            queue_depth: 4,
        };
        let mut promise =
            GuaranteedTiming::new(Duration::from_millis(500), guarantee, Timing::Late);
        let done = promise.submit(Moment::from_millis(450), &mut fastrand::Rng::with_seed(1));
        assert_eq!(done, Moment::from_millis(550));
        // The spilled read is the first of the next slot's twenty.
        promise.submit(Moment::from_millis(500), &mut fastrand::Rng::with_seed(1));
        assert_eq!(promise.taken, 2);
    }
}
