//! Reading where the disk's time is counted: sweeps of whole windows, chosen by the plan that
//! admission left, instead of a number of reads in each slot.
//!
//! ```text
//!   Dispatcher::next_sweep ──▶ chosen, in order of place ──▶ device (queue depth)
//!                                │                             │
//!                                └─ a session is admitted:     free at: its last activity
//!                                   unread again                + the charge of its reads
//! ```
//!
//! A sweep does not end with its slot. An admission request is evaluated as if chosen reads that
//! are not in the device yet were unread; only if it is accepted do they become unread, and the
//! next sweep is chosen by the new plan. Otherwise the sweep continues unchanged: a sweep that is
//! ended early and chosen again can cost more than it was charged.
//!
//! Best-effort work is done between two sweeps if the plan then still holds; after it has waited
//! for a slot, also within a sweep, which then ends early as for an accepted request.
//!
//! Adjacent reads of one stream stay in that order, in both directions of the arm, and are charged
//! as one visit.

use super::disks::{Chosen, Disk};
use super::evaluate::Terms;
use super::failover::Placement;
use super::streams::StreamId;
use super::{Engine, ReadId};
use scheduler::{Batch, Demand, PolicyKind, Slack, SweepCharge, TimeGuard, Verdict, WindowPlan};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use units::{Moment, SlotIndex, nanos};

/// The sweep under way on one disk, and the charges that its duration is compared with.
#[derive(Debug, Default)]
pub(super) struct ScanRun {
    /// The slack of the plan that is followed; see `guarantee`.
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
    pub(super) fn slack(&self) -> Option<Duration> {
        self.slack
    }

    pub(super) fn guard(&self) -> TimeGuard {
        self.guard
    }

    pub(super) fn set_guard(&mut self, guard: TimeGuard) {
        self.guard = guard;
    }
}

impl Disk {
    /// When all reads in the device, and all chosen reads except `back`, are done at the latest.
    pub(super) fn busy_until(&self, now: Moment, back: &[Chosen]) -> Moment {
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
        let time = self.timings.charge(costs, reads, transfer);
        let time = time.saturating_add(work.saturating_mul(each));
        let from = if reads + work == 0 { now } else { scan.last_activity };
        let sure = Moment(from.0.saturating_add(time)).max(now);
        // The rest of a sweep was charged as part of the sweep, which may be less than its charge
        // alone. A deadline in the past is no bound: the disk was slower than charged.
        match scan.deadline {
            Some(deadline) if back.is_empty() && work == 0 && deadline >= now => sure.min(deadline),
            _ => sure,
        }
    }

    // A sweep was chosen that the device begins when it is done at `free_at`, at the latest.
    fn begin_sweep(&mut self, now: Moment, free_at: Moment, charge: SweepCharge) {
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
    pub(super) fn device_takes(&mut self, now: Moment, offset: u64, len: u32) {
        let Some(costs) = &self.timings.costs else { return };
        let transfer = costs.transfer(offset, u64::from(len));
        if self.busy() == 0 {
            self.scan.last_activity = now;
        }
        self.scan.device_reads += 1;
        self.scan.device_transfer += transfer;
        self.dispatcher.head_moves_to(offset + u64::from(len));
    }

    /// The device has ended a read.
    pub(super) fn device_ended(&mut self, now: Moment, offset: u64, len: u32) {
        self.note_overrun(now);
        let Some(costs) = &self.timings.costs else { return };
        let transfer = costs.transfer(offset, u64::from(len));
        let scan = &mut self.scan;
        scan.last_activity = now;
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
    pub(super) fn learn(&mut self) {
        if let Some(timings) = self.pending_timings.take() {
            self.timings = timings;
            self.scan.guard = TimeGuard::default();
        }
    }

    /// At the start of a slot: detects a sweep that takes too long before it ends.
    pub(super) fn watch_sweep(&mut self, now: Moment) {
        self.note_overrun(now);
        let scan = &mut self.scan;
        if scan.reads_left > 0 {
            let so_far = nanos(now.since(scan.began));
            scan.guard.under_way(scan.charged, so_far);
            self.timings.slowdown = scan.guard.slowdown();
        }
    }

    /// Reads by this plan from now on. What is chosen stays chosen.
    pub(super) fn follow(&mut self, now: Moment, plan: WindowPlan, slack: Option<Duration>) {
        self.note_overrun(now);
        self.break_off_sweep();
        self.dispatcher.follow(plan);
        self.scan.slack = slack;
    }

    // The duration of a sweep that ended early does not measure the disk.
    fn break_off_sweep(&mut self) {
        (self.scan.reads_left, self.scan.deadline) = (0, None);
    }

    /// Notes a read, or a repeated read, that no booking was charged for.
    pub(super) fn note_unplanned_io(&mut self, now: Moment) {
        self.scan.deadline = None;
        self.scan.last_overrun = Some(now);
    }

    /// Whether at any time from `since` to `now` the disk took longer than charged or did work that
    /// was not charged, or whether it is lost or slowed down now. Its guarantee does not hold then.
    pub(super) fn overran_since(&self, since: Moment, now: Moment) -> bool {
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
    pub(super) fn note_overrun(&mut self, now: Moment) {
        if self.is_over_time(now) {
            self.scan.last_overrun = Some(now);
        }
    }

    /// The device has ended best-effort work.
    pub(super) fn work_ended(&mut self, now: Moment) {
        self.scan.last_activity = now;
    }

    /// The least slack of the schedule ahead, in reads of the largest size. `None` if nothing is to
    /// be read.
    pub(super) fn least_spare(&self, now: Moment) -> Option<u64> {
        let costs = self.timings.costs.as_ref()?;
        let supply = self.supply(self.busy_until(now, &[]));
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

impl Engine {
    /// Whether `disk` is read by plan.
    pub(super) fn plans(&self, disk: usize) -> bool {
        self.config.policy.plans(&self.disks[disk].timings)
    }

    /// Makes these chosen reads unread, as far as they can be.
    pub(super) fn unchoose_all(&mut self, disk: usize, reads: &BTreeSet<ReadId>) {
        if reads.is_empty() {
            return;
        }
        let mut unchosen = self.droppable(disk);
        unchosen.retain(|chosen| reads.contains(&chosen.read));
        let reads: BTreeSet<ReadId> = unchosen.iter().map(|chosen| chosen.read).collect();
        self.disks[disk].dispatcher.withdraw(|chosen| reads.contains(&chosen.read));
        unchosen.into_iter().for_each(|chosen| self.unchoose(disk, chosen));
    }

    // The chosen reads that can become unread, in a possible order: the last pieces of their
    // streams, as far as no other stream or socket uses their buffers.
    pub(super) fn droppable(&self, disk: usize) -> Vec<Chosen> {
        let mut of = BTreeMap::<StreamId, BTreeMap<ReadId, Chosen>>::new();
        for chosen in self.disks[disk].dispatcher.chosen() {
            of.entry(chosen.stream).or_default().insert(chosen.read, *chosen);
        }
        let mut droppable = Vec::new();
        for (id, mut reads) in of {
            let Some(stream) = self.streams.get(&id) else { continue };
            for (read, _) in stream.held_from_end() {
                match reads.remove(&read) {
                    Some(chosen) if self.buffers.has_one_pin(read) => droppable.push(chosen),
                    _ => break,
                }
            }
        }
        droppable
    }

    // A read that the device was not given becomes unread again.
    fn unchoose(&mut self, disk: usize, chosen: Chosen) {
        let stream = &mut self.streams[&chosen.stream];
        let before = stream.next_read();
        let back = stream.unread_last(self.now).expect("found there");
        let (read, piece) = (back.read, back.piece);
        assert_eq!(read, chosen.read, "the last piece of its stream");
        self.failover.unread(stream, piece.piece, back.safe);
        self.disks[disk].dispatcher.undo_read(chosen.stream, piece, before);
        self.forget_unissued(read);
    }

    // Forgets a read that is not in the device and is no longer needed.
    fn forget_unissued(&mut self, read: ReadId) {
        let buffer = self.buffers.remove(read);
        self.title_use_ended(buffer.key.title);
    }

    /// Keeps the device busy: goes on with the sweep, chooses the next one.
    pub(super) fn sweep_on(&mut self, now: Moment, disk: usize) {
        loop {
            let state = &self.disks[disk];
            if state.busy() >= state.guarantee.queue_depth.max(1) {
                return;
            }
            // Best-effort work goes between two sweeps; after a slot of waiting, also into one.
            let between = state.dispatcher.chosen().len() == 0;
            let waits = state.work.in_flight() == 0 && state.work.is_waiting();
            if waits && (between || self.asks_within(disk)) && self.has_spare(disk) {
                let state = &mut self.disks[disk];
                state.note_overrun(now);
                state.scan.last_activity = now;
                state.break_off_sweep();
                self.grant(disk);
                continue;
            }
            if between {
                self.choose_sweep(now, disk);
            }
            let Some(next) = self.disks[disk].dispatcher.issue() else { return };
            let wanted = self.buffers.is_pinned(next.read)
                || !self
                    .requests
                    .waiting_for(self.buffers.get(next.read).expect("chosen").key)
                    .is_empty();
            if !wanted {
                self.forget_unissued(next.read);
                self.sweep_lost(disk);
                continue;
            }
            self.push_read(now, next.read);
        }
    }

    // Whether best-effort work is evaluated within a sweep now: at most once a slot, because a
    // sweep of a fast disk has thousands of reads and each evaluation is an admission decision.
    fn asks_within(&mut self, disk: usize) -> bool {
        let slot = self.slot;
        let state = &mut self.disks[disk];
        let asks = state.work.has_waited(slot) && state.scan.work_asked != Some(slot);
        if asks {
            state.scan.work_asked = Some(slot);
        }
        asks
    }

    // Whether one piece of best-effort work can be done now without making a stream late. If so,
    // chosen reads that are not in the device become unread, as for an accepted request.
    fn has_spare(&mut self, disk: usize) -> bool {
        let state = &self.disks[disk];
        let Some(costs) = &state.timings.costs else { return false };
        let reads = u64::from(state.work.first_reads());
        let transfer = costs.slowest_transfer(state.guarantee.read_size.0);
        let work = state.timings.charge(costs, reads, transfer.saturating_mul(reads));
        let demand = self.demands.take(self.slot);
        let terms = Terms { policy: PolicyKind::TimeDomain.policy(), work, ..self.terms() };
        let placement = Placement { disk, replica: None };
        let approval = self.evaluate_disks(placement, &demand, terms).ok();
        self.demands.put(demand);
        let admits = approval.is_some();
        approval.into_iter().for_each(|approval| self.adopt(approval));
        admits
    }

    /// Forgets the chosen reads of a lost disk that are not in its device.
    pub(super) fn forget_chosen(&mut self, disk: usize) {
        while let Some(chosen) = self.disks[disk].dispatcher.issue() {
            self.forget_unissued(chosen.read);
        }
        self.disks[disk].break_off_sweep();
    }

    // Chooses the next sweep by the plan.
    fn choose_sweep(&mut self, now: Moment, disk: usize) {
        let state = &self.disks[disk];
        let free_at = state.busy_until(now, &[]);
        let Some(limit) = state.dispatcher.next_sweep(&state.supply(free_at)) else { return };
        let batch = Batch::new(limit).fill(&mut self.reads_of(now, disk));
        let charge = batch.charge();
        let state = &mut self.disks[disk];
        state.dispatcher.choose(batch, state.timings.costs.as_ref());
        state.begin_sweep(now, free_at, charge);
    }

    // A chosen read of the sweep under way is not made.
    fn sweep_lost(&mut self, disk: usize) {
        let scan = &mut self.disks[disk].scan;
        scan.reads_left = scan.reads_left.saturating_sub(1);
    }
}
