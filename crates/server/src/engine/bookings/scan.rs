//! The sweep under way on one disk whose time is counted: what it is charged, how long it takes,
//! and when the device is certainly done.
//!
//! ```text
//!   began                            last activity          deadline
//!   │ read │ read │ read │ ...       │ reads in the device  ┊ the whole sweep is done by its charge
//!   └ charged: nanoseconds of the whole sweep               ┊
//! ```
//!
//! Adjacent reads of one stream are charged as one visit. A sweep that took longer than its charge
//! makes the guard charge more from then on (`scheduler::TimeGuard`).

use super::disk::{Chosen, Disk};
use scheduler::{Demand, PolicyKind, Slack, SweepCharge, TimeGuard, Verdict, WindowPlan};
use std::time::Duration;
use units::{Moment, SlotIndex, nanos};

/// The sweep under way on one disk, and the charges that its duration is compared with.
#[derive(Debug, Default)]
pub(in crate::engine) struct ScanRun {
    /// The slack of the plan that is followed; see `streams::accounts`.
    slack: Option<Duration>,
    /// The slot in which best-effort work was last evaluated within a sweep.
    work_asked: Option<SlotIndex>,
    /// Reads in the device, and nanoseconds of their transfer.
    device_reads: u64,
    device_transfer: u64,
    /// When the device last began a read while idle, or ended one.
    last_activity: Moment,
    /// When the sweep under way began, and the nanoseconds that it is charged.
    began: Moment,
    charged: u64,
    /// Reads of the sweep that have not ended. Zero: the duration of this sweep is not compared.
    reads_left: u64,
    /// When the sweep is done by its charge, at the latest; `None` if other work came in between.
    deadline: Option<Moment>,
    guard: TimeGuard,
    /// When the disk last took longer than it was charged, or did work that was not charged.
    last_overrun: Option<Moment>,
}

impl ScanRun {
    /// The slack of the plan that is followed.
    pub(in crate::engine) fn slack(&self) -> Option<Duration> {
        self.slack
    }

    pub(in crate::engine) fn guard(&self) -> TimeGuard {
        self.guard
    }

    pub(in crate::engine) fn set_guard(&mut self, guard: TimeGuard) {
        self.guard = guard;
    }

    /// Whether best-effort work was not evaluated within a sweep of this slot yet; notes that it is
    /// now.
    pub(in crate::engine) fn may_ask_for_work(&mut self, slot: SlotIndex) -> bool {
        self.work_asked.replace(slot) != Some(slot)
    }

    /// A chosen read of the sweep under way is not made.
    pub(in crate::engine) fn read_is_not_made(&mut self) {
        self.reads_left = self.reads_left.saturating_sub(1);
    }
}

impl Disk {
    /// When all reads in the device, and all chosen reads except `back`, are done at the latest.
    pub(in crate::engine) fn busy_until(&self, now: Moment, back: &[Chosen]) -> Moment {
        let Some(costs) = &self.timings.costs else { return now };
        let scan = &self.scan;
        let sum = |chosen: &mut dyn Iterator<Item = &Chosen>| -> u64 {
            chosen.map(|chosen| u64::from(chosen.piece.transfer)).sum()
        };
        let mut chosen = self.dispatcher.chosen();
        let reads = scan.device_reads + (chosen.len() - back.len()) as u64;
        let transfer = scan.device_transfer + sum(&mut chosen) - sum(&mut back.iter());
        // The duration of best-effort work is unknown: each counts as the largest read.
        let work = u64::from(self.work.in_flight());
        let each =
            self.timings.charge(costs, 1, costs.slowest_transfer(self.guarantee.read_size.0));
        let reads_time = self.timings.charge(costs, reads, transfer);
        let time = reads_time.saturating_add(work.saturating_mul(each));
        // What the device does now, it does since the last activity at the latest.
        let from = if reads + work == 0 { now } else { scan.last_activity };
        let sure = Moment(from.0.saturating_add(time)).max(now);
        // The rest of a sweep was charged as part of the sweep, which may be less than its charge
        // alone. A deadline in the past is no bound: the disk was slower than charged.
        match scan.deadline {
            Some(deadline) if back.is_empty() && work == 0 && deadline >= now => sure.min(deadline),
            _ => sure,
        }
    }

    /// A sweep was chosen that the device begins when it is done at `free_at`, at the latest.
    pub(in crate::engine) fn begin_sweep(
        &mut self,
        now: Moment,
        free_at: Moment,
        charge: SweepCharge,
    ) {
        let Some(costs) = &self.timings.costs else { return };
        let (scan, work) = (&mut self.scan, self.work.in_flight());
        // Reads that are in the device already are timed with the sweep: the end of the first and
        // the beginning of the second cannot be distinguished.
        let all = charge.with(scan.device_reads, scan.device_transfer);
        scan.charged = all.nanos(costs);
        scan.began = if scan.device_reads == 0 { now } else { scan.last_activity };
        scan.deadline = Some(Moment(free_at.0.saturating_add(charge.slowed_nanos(&self.timings))));
        // Beside best-effort work a sweep's duration does not measure the disk.
        scan.reads_left = if work > 0 { 0 } else { all.reads };
    }

    /// The device was given a read, or work.
    pub(in crate::engine) fn device_takes(&mut self, now: Moment, offset: u64, len: u32) {
        let Some(costs) = &self.timings.costs else { return };
        let transfer = costs.transfer(offset, u64::from(len));
        // A busy device begins this read when it ends another, which is its own activity.
        if self.busy() == 0 {
            self.scan.last_activity = now;
        }
        self.scan.device_reads += 1;
        self.scan.device_transfer += transfer;
        self.dispatcher.head_moves_to(offset + u64::from(len));
    }

    /// The device has ended a read.
    pub(in crate::engine) fn device_ended(&mut self, now: Moment, offset: u64, len: u32) {
        // Before the counts change: they say when this read should have ended.
        self.note_overrun(now);
        let Some(costs) = &self.timings.costs else { return };
        let transfer = costs.transfer(offset, u64::from(len));
        let scan = &mut self.scan;
        scan.last_activity = now;
        // Saturating: the device may have got the read before the times of the disk were known.
        scan.device_reads = scan.device_reads.saturating_sub(1);
        scan.device_transfer = scan.device_transfer.saturating_sub(transfer);
        if scan.reads_left > 0 {
            scan.reads_left -= 1;
            if scan.reads_left == 0 {
                let took = nanos(now.since(scan.began));
                scan.guard.swept(scan.charged, took);
                self.timings.slowdown = scan.guard.slowdown();
            }
        }
    }

    /// Takes over pending timings, if there are any, and resets the guard.
    pub(in crate::engine) fn learn(&mut self) {
        if let Some(timings) = self.pending_timings.take() {
            self.timings = timings;
            // The guard's ratio is one to the charges of the old timings.
            self.scan.guard = TimeGuard::default();
        }
    }

    /// At the start of a slot: detects a sweep that takes too long before it ends.
    pub(in crate::engine) fn watch_sweep(&mut self, now: Moment) {
        self.note_overrun(now);
        let scan = &mut self.scan;
        if scan.reads_left > 0 {
            // A sweep of a disk that hangs never ends, so the guard learns from its time so far.
            let so_far = nanos(now.since(scan.began));
            scan.guard.under_way(scan.charged, so_far);
            self.timings.slowdown = scan.guard.slowdown();
        }
    }

    /// Reads by this plan from now on. What is chosen stays chosen.
    pub(in crate::engine) fn follow(
        &mut self,
        now: Moment,
        plan: WindowPlan,
        slack: Option<Duration>,
    ) {
        self.note_overrun(now);
        // The new plan may leave out reads of this sweep, so its charge does not apply any more.
        self.break_off_sweep();
        self.dispatcher.follow(plan);
        self.scan.slack = slack;
    }

    /// The sweep ends early: its duration does not measure the disk.
    pub(in crate::engine) fn break_off_sweep(&mut self) {
        (self.scan.reads_left, self.scan.deadline) = (0, None);
    }

    /// Notes a read, or a repeated read, that no booking was charged for.
    pub(in crate::engine) fn note_unplanned_io(&mut self, now: Moment) {
        self.scan.deadline = None;
        self.scan.last_overrun = Some(now);
    }

    /// Whether at any time from `since` to `now` the disk took longer than charged or did work that
    /// was not charged, or whether it is lost or slowed down now. Its guarantee does not hold then.
    pub(in crate::engine) fn overran_since(&self, since: Moment, now: Moment) -> bool {
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
        let reads = costs.batch(scan.device_reads, scan.device_transfer);
        (scan.reads_left > 0 && over(scan.began, scan.charged))
            || (self.busy() > 0 && over(scan.last_activity, reads.saturating_add(work * each)))
    }

    /// Records an overrun that has lasted until now. Call it before the state of the sweep changes.
    pub(in crate::engine) fn note_overrun(&mut self, now: Moment) {
        if self.is_over_time(now) {
            self.scan.last_overrun = Some(now);
        }
    }

    /// The device has ended best-effort work.
    pub(in crate::engine) fn work_ended(&mut self, now: Moment) {
        self.scan.last_activity = now;
    }

    /// The least slack of the schedule ahead, in reads of the largest size. `None` if nothing is to
    /// be read.
    pub(in crate::engine) fn least_spare(&self, now: Moment) -> Option<u64> {
        let costs = self.timings.costs.as_ref()?;
        let supply = self.supply(self.busy_until(now, &[]));
        // An evaluation without a newcomer yields the slack of what is booked.
        let demand = Demand::default();
        let policy = PolicyKind::TimeDomain.policy();
        let each =
            self.timings.charge(costs, 1, costs.slowest_transfer(self.guarantee.read_size.0));
        match policy.verdict(&self.dispatcher.books, &supply, &demand) {
            Verdict::Admit { slack: Slack::Time(time), .. } if time < Duration::MAX => {
                let reads = time.as_nanos() / u128::from(each.max(1));
                Some(u64::try_from(reads).unwrap_or(u64::MAX))
            }
            Verdict::Admit { .. } => None,
            Verdict::Refuse(_) => Some(0),
        }
    }
}
