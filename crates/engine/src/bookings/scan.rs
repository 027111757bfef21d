//! The sweep under way on one disk whose time is counted: what it is charged, how long it takes,
//! and when the device is certainly done.
//!
//! ```text
//!   began                            last activity          deadline
//!   │ read │ read │ read │ ...       │ reads in the device  ┊ the whole sweep is done by its charge
//!   └ charged: nanoseconds of the whole sweep               ┊
//! ```
//!
//! Adjacent reads of one stream are charged as one visit. What is left of a sweep, and what the
//! device has of the next, is charged along the path of the head (`scheduler::PathCharge`).
//! Best-effort work leaves the head anywhere: until a read follows, the device counts as done only
//! after the way back, too. A sweep that took longer than its charge makes the guard charge more
//! from then on (`scheduler::TimeGuard`).
//!
//! On a busy machine the end of a read is seen late by some milliseconds that nobody counts:
//! the kernel handles interrupts late, and a hypervisor stops processors. A read of a fast disk
//! takes some microseconds. What short sweeps exceed their charges by is therefore added up
//! over a slot, and compared with a sixteenth of the slot at least. A disk eight times as slow
//! as calibrated, the most that the guard believes, is done with so much in half a slot.

use super::disk::{Chosen, Disk};
use crate::ReadId;
use crate::buffers::Location;
use disk::Costs;
use scheduler::{
    Demand, PathCharge, PolicyKind, Slack, SweepCharge, TimeGuard, Verdict, WindowPlan,
};
use std::collections::{BTreeSet, VecDeque};
use std::ops::Range;
use std::time::Duration;
use units::{Moment, SlotIndex, nanos};

/// The sweep under way on one disk, and the charges that its duration is compared with.
#[derive(Clone, Debug, Default)]
pub(crate) struct ScanRun {
    /// The slack of the plan that is followed; see `streams::accounts`.
    slack: Option<Duration>,
    /// The slot in which best-effort work was last evaluated within a sweep.
    work_asked: Option<SlotIndex>,
    /// Reads in the device, in order of issue, and their charges.
    device_reads: VecDeque<DeviceRead>,
    /// The sum of their charges.
    device_charge: PathCharge,
    /// When the device last began a read while idle, or ended one.
    last_activity: Moment,
    /// Nanoseconds for which the device has had reads so far, and when that was counted last. Time
    /// in which threads were not run, and the device had nothing to do for that, is not in it.
    busy: u64,
    counted_at: Moment,
    /// When the sweep under way began, by the clock and by `busy`, and the nanoseconds that it is
    /// charged.
    began: Moment,
    began_busy: u64,
    charged: u64,
    /// What those of its reads are charged that have ended.
    ended_charge: PathCharge,
    /// Reads of the sweep that have not ended. Zero: the duration of this sweep is not compared.
    reads_left: u64,
    /// When the sweep is done by its charge, at the latest; `None` if other work came in between.
    deadline: Option<Moment>,
    pub(crate) guard: TimeGuard,
    /// Charges of the short sweeps of this slot that took longer, and the time beyond them.
    short: Excess,
    /// The guard knows of all time until then.
    guarded_until: Moment,
    /// When the disk last took longer than it was charged, or did work that was not charged.
    last_overrun: Option<Moment>,
}

/// Sweeps that took longer than they were charged: nanoseconds charged, and nanoseconds beyond.
#[derive(Clone, Copy, Debug, Default)]
struct Excess {
    charged: u64,
    beyond: u64,
}

impl Excess {
    /// With a sweep of this charge that took so long: the charge and the time that the guard is to
    /// compare, where sweeps of less than `least` are short.
    fn with(&mut self, charged: u64, took: u64, least: u64) -> (u64, u64) {
        if charged >= least || took <= charged {
            return (charged, took);
        }
        self.charged = self.charged.saturating_add(charged);
        self.beyond = self.beyond.saturating_add(took - charged);
        let charged = self.charged.max(least);
        (charged, charged.saturating_add(self.beyond))
    }
}

/// A read in the device: its place and its charge.
#[derive(Clone, Copy, Debug)]
struct DeviceRead {
    offset: u64,
    len: u32,
    charge: PathCharge,
}

impl ScanRun {
    /// The slack of the plan that is followed.
    pub(crate) fn slack(&self) -> Option<Duration> {
        self.slack
    }

    /// Whether best-effort work was not evaluated within a sweep of this slot yet; notes that it is
    /// now.
    pub(crate) fn may_ask_for_work(&mut self, slot: SlotIndex) -> bool {
        self.work_asked.replace(slot) != Some(slot)
    }

    // The guard is told of the time until now, in which reads have ended. Those of one sweep say
    // nothing about a long time before.
    fn sweeps_have_ended(&mut self, now: Moment) {
        self.guarded_until = self.guarded_until.max(Moment(now.0.saturating_sub(ONE_SWEEP_SHOWS)));
        self.time_has_passed(now);
    }

    /// The guard is told of the time until now, in which nothing was booked.
    pub(crate) fn time_has_passed(&mut self, now: Moment) {
        self.guard.passed(now.since(self.guarded_until));
        self.guarded_until = now;
    }

    /// A chosen read of the sweep under way is not made.
    pub(crate) fn read_is_not_made(&mut self) {
        self.reads_left = self.reads_left.saturating_sub(1);
    }
}

impl Disk {
    /// When all reads in the device, all chosen reads except `back`, so many nanoseconds of other
    /// work, and the writes of recordings that may come by then, are done at the latest.
    pub(crate) fn busy_until(&self, now: Moment, back: &[Chosen], work: u64) -> Moment {
        let other = self.reads_done(now, back).since(now);
        let other = nanos(other).saturating_add(work);
        let writes = self.timings.slowed(self.tokens.left(now));
        let time = self.timings.beside_writes(other.saturating_add(writes));
        Moment(now.0.saturating_add(time))
    }

    // When all that is in the device, and all chosen reads except `back`, are done at the latest,
    // if no write of a recording comes between.
    fn reads_done(&self, now: Moment, back: &[Chosen]) -> Moment {
        let Some(costs) = &self.timings.costs else { return now };
        let scan = &self.scan;
        let left = self.dispatcher.chosen().len() - back.len();
        let mut reads = scan.device_charge;
        if left > 0 {
            let back: BTreeSet<ReadId> = back.iter().map(|chosen| chosen.read).collect();
            let is_back = |chosen: &Chosen| back.contains(&chosen.read);
            reads += self.dispatcher.path_of_chosen(costs, self.is_busy_until(now), is_back);
        }
        // The next sweep begins where the last read ends; after other work, anywhere.
        let unknown_start = if left == 0 { self.unknown_start(costs) } else { 0 };
        let work = u64::from(self.work.in_flight());
        let writes = self.work.charged_writes();
        let time = reads.nanos(costs).saturating_add(unknown_start).saturating_add(writes);
        let time = self.timings.slowed(time).saturating_add(self.work_time(costs, work));
        // What the device does now, it does since the last activity at the latest.
        let from = if reads.reads() + work + writes == 0 { now } else { scan.last_activity };
        let sure = Moment(from.0.saturating_add(time)).max(now);
        // The rest of a sweep was charged as part of the sweep, which may be less than the charges
        // of its reads. A deadline in the past is no bound: the disk was slower than charged.
        match scan.deadline {
            Some(deadline) if back.is_empty() && work == 0 && deadline >= now => sure.min(deadline),
            _ => sure,
        }
    }

    /// Nanoseconds by which best-effort work of so many reads delays the next sweep at most: the
    /// way there and the work, and the way back to the sweep.
    pub(crate) fn work_delay(&self, reads: u64) -> u64 {
        let Some(costs) = &self.timings.costs else { return 0 };
        // Where the head is anywhere already, the way back is in `busy_until`.
        let back = if self.dispatcher.head().is_some() { costs.unknown_start() } else { 0 };
        self.work_time(costs, reads).saturating_add(self.timings.slowed(back))
    }

    /// What the device may have to do at any later moment: as many reads as it is given at once, if
    /// it has reads, and the writes that may come at once.
    pub(crate) fn most_in_device(&self, has_reads: bool) -> Duration {
        let Some(costs) = &self.timings.costs else { return Duration::ZERO };
        let depth = u64::from(self.guarantee.queue_depth.max(1));
        let reads = if has_reads { self.work_time(costs, depth) } else { 0 };
        let time = self.timings.beside_writes(reads).saturating_add(self.timings.writes_at_once());
        Duration::from_nanos(time)
    }

    // The duration of best-effort work is unknown: each read of it counts as the largest, and may
    // be anywhere.
    fn work_time(&self, costs: &Costs, reads: u64) -> u64 {
        let largest = costs.slowest_transfer(self.guarantee.read_size.0);
        self.timings.charge(costs, 1, largest).saturating_mul(reads)
    }

    // The surcharge of the next sweep where best-effort work has left the head anywhere.
    fn unknown_start(&self, costs: &Costs) -> u64 {
        if self.dispatcher.head().is_none() { costs.unknown_start() } else { 0 }
    }

    // Whether the device has been busy until now.
    fn is_busy_until(&self, now: Moment) -> bool {
        self.busy() > 0 || self.scan.last_activity == now
    }

    /// A sweep is to be chosen: when the device can begin with it at the latest, and the same if no
    /// write of a recording comes before it.
    pub(crate) fn sweep_begins(&self, now: Moment) -> (Moment, Moment) {
        (self.busy_until(now, &[], 0), self.reads_done(now, &[]))
    }

    /// A sweep was chosen that the device begins when it is done at `free_at`, at the latest, if no
    /// write of a recording comes before it.
    pub(crate) fn begin_sweep(&mut self, now: Moment, free_at: Moment, charge: SweepCharge) {
        let Some(costs) = &self.timings.costs else { return };
        let (unknown_start, work) = (self.unknown_start(costs), self.work.in_flight());
        let scan = &mut self.scan;
        // Reads that are in the device already are timed with the sweep: the end of the first and
        // the beginning of the second cannot be distinguished.
        let before = scan.device_charge;
        scan.charged = before.nanos(costs).saturating_add(unknown_start) + charge.nanos(costs);
        scan.began = if before.reads() == 0 { now } else { scan.last_activity };
        (scan.began_busy, scan.ended_charge) = (scan.busy, PathCharge::default());
        scan.deadline = Some(Moment(free_at.0.saturating_add(charge.slowed_nanos(&self.timings))));
        // Beside best-effort work a sweep's duration does not measure the disk.
        scan.reads_left = if work > 0 { 0 } else { before.reads() + charge.reads };
    }

    /// The device was given a read, or work.
    pub(crate) fn device_takes(&mut self, now: Moment, offset: u64, len: u32) {
        let Some(costs) = &self.timings.costs else { return };
        let head = self.dispatcher.head();
        let sequel = head.filter(|_| self.is_busy_until(now));
        let transfer = costs.transfer(offset, u64::from(len));
        let charge = PathCharge::of_read(costs, head, sequel, offset, transfer);
        // A busy device begins this read when it ends another, which is its own activity.
        if self.busy() == 0 {
            (self.scan.last_activity, self.scan.counted_at) = (now, now);
        }
        self.scan.device_reads.push_back(DeviceRead { offset, len, charge });
        self.scan.device_charge += charge;
        self.dispatcher.head_moves_to(offset + u64::from(len));
    }

    /// The device has ended a read, which it had in this time at least.
    pub(crate) fn device_ended(&mut self, now: Moment, place: Location, device: &Range<Moment>) {
        // Before the counts change: they say when this read should have ended.
        self.note_overrun(now);
        let least = self.shortest_compared();
        let scan = &mut self.scan;
        scan.last_activity = now;
        let ended = device.end.min(now).max(scan.counted_at);
        scan.busy += nanos(ended.since(device.start.max(scan.counted_at)));
        scan.counted_at = ended;
        let is_it = |read: &DeviceRead| (read.offset, read.len) == (place.offset, place.len);
        // The device may have got the read before the times of the disk were known.
        if let Some(at) = scan.device_reads.iter().position(is_it) {
            let ended = scan.device_reads.remove(at).expect("found there");
            scan.device_charge -= ended.charge;
            scan.ended_charge += ended.charge;
        }
        if scan.reads_left > 0 {
            scan.reads_left -= 1;
            if scan.reads_left == 0 {
                scan.sweeps_have_ended(now);
                let took = scan.busy - scan.began_busy;
                let (charged, took) = scan.short.with(scan.charged, took, least);
                scan.guard.swept(charged, took);
                self.timings.slowdown = scan.guard.slowdown();
            }
        }
    }

    // Nanoseconds of charges that an excess is compared with at least.
    fn shortest_compared(&self) -> u64 {
        nanos(self.slot) / SHORT_PART
    }

    /// Takes over pending timings, if there are any, and resets the guard.
    pub(crate) fn learn(&mut self, now: Moment) {
        if let Some(timings) = self.pending_timings.take() {
            self.timings = timings;
            self.keep_for_recordings(now);
            // The guard's ratio is one to the charges of the old timings.
            self.scan.guard = TimeGuard::default();
        }
    }

    /// At the start of a slot: detects a sweep that takes too long before it ends.
    pub(crate) fn watch_sweep(&mut self, now: Moment) {
        self.note_overrun(now);
        let least = self.shortest_compared();
        let scan = &mut self.scan;
        scan.short = Excess::default();
        if scan.reads_left > 0 {
            // A sweep of a disk that hangs never ends, so the guard learns from its time so far.
            let in_device = if scan.device_reads.is_empty() { scan.counted_at } else { now };
            let so_far = scan.busy - scan.began_busy + nanos(in_device.since(scan.counted_at));
            // What is known so far is no part of the slot's sum: it counts when the sweep ends.
            let (charged, so_far) = Excess::default().with(scan.charged, so_far, least);
            scan.guard.under_way(charged, so_far);
            self.timings.slowdown = scan.guard.slowdown();
        }
    }

    /// Reads by this plan from now on. What is chosen stays chosen.
    pub(crate) fn follow(&mut self, now: Moment, plan: WindowPlan, slack: Option<Duration>) {
        self.note_overrun(now);
        // The new plan may leave out reads of this sweep, so its duration is not compared with its
        // charge any more. It is done by its deadline all the sooner. What has ended of it shows
        // at least whether the disk was as fast as calibrated: where viewers come one after the
        // other, no sweep is left whole.
        if let Some(costs) = &self.timings.costs
            && self.scan.reads_left > 0
        {
            let took = self.scan.busy - self.scan.began_busy;
            if took > 0 && took <= self.scan.ended_charge.nanos(costs) {
                self.scan.sweeps_have_ended(now);
                self.timings.slowdown = self.scan.guard.slowdown();
            }
        }
        self.scan.reads_left = 0;
        self.dispatcher.follow(plan);
        self.scan.slack = slack;
    }

    /// The sweep ends early: its duration does not measure the disk.
    pub(crate) fn break_off_sweep(&mut self) {
        (self.scan.reads_left, self.scan.deadline) = (0, None);
    }

    /// Notes a read, or a repeated read, that no booking was charged for.
    pub(crate) fn note_unplanned_io(&mut self, now: Moment) {
        self.scan.deadline = None;
        self.scan.last_overrun = Some(now);
    }

    /// Whether at any time from `since` to `now` the disk took longer than charged or did work that
    /// was not charged, or whether it is lost or slowed down now. Its guarantee does not hold then.
    pub(crate) fn overran_since(&self, since: Moment, now: Moment) -> bool {
        let overran = self.scan.last_overrun.is_some_and(|at| at >= since);
        self.lost || self.timings.slowdown > 0 || overran || self.is_over_time(now)
    }

    // Whether the sweep under way, or the reads in the device, should be done by now.
    fn is_over_time(&self, now: Moment) -> bool {
        let Some(costs) = &self.timings.costs else { return false };
        let scan = &self.scan;
        let over = |since: Moment, charged: u64| now.0 > since.0.saturating_add(charged);
        let work = u64::from(self.work.in_flight());
        let each = costs.batch(1, costs.slowest_transfer(self.guarantee.read_size.0));
        let reads = scan.device_charge.nanos(costs).saturating_add(self.work.charged_writes());
        let in_device = reads.saturating_add(work * each);
        (scan.reads_left > 0 && over(scan.began, scan.charged))
            || (self.busy() > 0 && over(scan.last_activity, in_device))
    }

    /// Records an overrun that has lasted until now. Call it before the state of the sweep changes.
    pub(crate) fn note_overrun(&mut self, now: Moment) {
        if self.is_over_time(now) {
            self.scan.last_overrun = Some(now);
        }
    }

    /// The device is given best-effort work behind all that is in it.
    pub(crate) fn work_begins(&mut self, now: Moment) {
        self.note_overrun(now);
        // A busy device begins the work when it ends a read, which is its own activity.
        if self.busy() == 0 {
            self.scan.last_activity = now;
        }
        // The sweep was not charged for this work, so its duration is not compared after it.
        self.break_off_sweep();
    }

    /// The device is given a write of a recording, for which time is kept.
    pub(crate) fn write_begins(&mut self, now: Moment, charge: u64) {
        self.note_overrun(now);
        if self.busy() == 0 {
            (self.scan.last_activity, self.scan.counted_at) = (now, now);
        }
        // The sweep under way takes as much longer.
        let slowed = self.timings.slowed(charge);
        let scan = &mut self.scan;
        scan.deadline = scan.deadline.map(|at| Moment(at.0.saturating_add(slowed)));
        scan.charged = scan.charged.saturating_add(charge);
    }

    /// The device has ended best-effort work, or a write of a recording.
    pub(crate) fn work_ended(&mut self, now: Moment) {
        (self.scan.last_activity, self.scan.counted_at) = (now, now);
    }

    /// The least slack of the schedule ahead, in reads of the largest size. `None` if nothing is to
    /// be read.
    pub(crate) fn least_spare(&self, now: Moment) -> Option<u64> {
        let costs = self.timings.costs.as_ref()?;
        let supply = self.supply(self.busy_until(now, &[], 0));
        // An evaluation without a newcomer yields the slack of what is booked.
        let demand = Demand::default();
        let policy = PolicyKind::TimeDomain.policy();
        let each =
            self.timings.charge(costs, 1, costs.slowest_transfer(self.guarantee.read_size.0));
        match policy.verdict(&self.dispatcher.books, &supply, &demand) {
            Verdict::Admit { slack: Slack::Time(time), .. } if time < Slack::NOTHING_DUE => {
                let reads = time.as_nanos() / u128::from(each.max(1));
                Some(u64::try_from(reads).unwrap_or(u64::MAX))
            }
            Verdict::Admit { .. } => None,
            Verdict::Refuse(_) => Some(0),
        }
    }
}

/// The part of a slot below which the charge of a sweep is short: 31 ms of 500 ms. A tick of a
/// kernel is 1 to 10 ms.
const SHORT_PART: u64 = 16;

/// Nanoseconds of which one sweep is taken to show how fast the disk was.
const ONE_SWEEP_SHOWS: u64 = 4_000_000_000;
