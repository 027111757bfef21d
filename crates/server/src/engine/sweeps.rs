//! Reading where the disk's time is counted: sweeps of whole windows, chosen by the plan that
//! admission left, instead of a number of reads in each slot.
//!
//! ```text
//!   Plan::next ──▶ chosen: buffers and places known, in order of place ──▶ device (queue depth)
//!                    │                                                       │
//!                    └─ somebody is let in: back to unread ◀────────    free at: last sign of it
//!                       (whoever's read is not in the device yet)       + what is charged for it
//! ```
//!
//! A batch outlives its slot. A newcomer is decided on as if what is not in the device yet were
//! unread; only if it comes in, that is made true and the next batch chosen by the new plan.
//! Otherwise the sweep goes on as it was: broken off and begun anew it could cost more than it was
//! charged.
//!
//! Work without a deadline goes between two sweeps if the plan then still holds; when it has waited for
//! a slot, also into a sweep, which is then begun anew as for a newcomer.
//!
//! Reads of a stream that lie one behind the other stay in that order, whichever way the arm goes, and
//! are charged as one visit.

use super::disks::Disk;
use super::streams::StreamId;
use super::{Engine, ReadId};
use scheduler::admission::Policy;
use scheduler::{
    Demand, DiskBooks, Next, PieceDue, Plan, PolicyKind, Shortage, Slack, Supply, Survival, Sweep,
    TimeGuard, Verdict,
};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;
use units::{Moment, SlotIndex};

/// What a disk's planned reading knows.
#[derive(Debug, Default)]
pub(super) struct Sweeps {
    plan: Plan,
    pub(super) proposal: Plan,
    /// What each leaves to spare.
    slack: Option<Duration>,
    pub(super) proposed: Option<Duration>,
    /// The chosen reads that the proposal takes for unread.
    pub(super) back: BTreeSet<ReadId>,
    /// Chosen and not in the device, in order of issue.
    chosen: VecDeque<Chosen>,
    /// Where the last read given to the device ends.
    arm: u64,
    /// When work without a deadline last asked to go into a sweep.
    asked: Option<SlotIndex>,
    /// In the device: reads, and nanoseconds of transfer.
    reads: u64,
    transfer: u64,
    /// The device's last sign: it began a read when idle, or ended one.
    sign: Moment,
    /// The sweep that is under way: when it began, what it is charged, its reads not ended.
    began: Moment,
    charged: u64,
    to_end: u64,
    /// When it is certainly done by what it is charged, unless something came in between.
    done_by: Option<Moment>,
    guard: TimeGuard,
    /// When it last took longer than it was charged, or did what it was not charged for.
    overran: Option<Moment>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Chosen {
    id: StreamId,
    pub(super) piece: PieceDue,
    pub(super) read: ReadId,
}

impl Sweeps {
    /// What the plan that is followed leaves to spare.
    pub(super) fn slack(&self) -> Option<Duration> {
        self.slack
    }

    pub(super) fn guard(&self) -> TimeGuard {
        self.guard
    }

    pub(super) fn set_guard(&mut self, guard: TimeGuard) {
        self.guard = guard;
    }

    /// Bytes of buffers for reads that the device was not given yet.
    pub(super) fn unissued(&self) -> u64 {
        self.chosen.iter().map(|chosen| u64::from(chosen.piece.len)).sum()
    }
}

impl Disk {
    /// When everything in the device, and what is chosen but for `back`, is certainly done.
    pub(super) fn free_at(&self, now: Moment, back: &[Chosen]) -> Moment {
        let Some(costs) = &self.facts.costs else { return now };
        let sweeps = &self.sweeps;
        let sum = |chosen: &mut dyn Iterator<Item = &Chosen>| -> u64 {
            chosen.map(|chosen| u64::from(chosen.piece.transfer)).sum()
        };
        let reads = sweeps.reads + (sweeps.chosen.len() - back.len()) as u64;
        let chosen = sum(&mut sweeps.chosen.iter()) - sum(&mut back.iter());
        let work = u64::from(self.work.in_flight());
        let each = self.facts.charge(costs, 1, costs.slowest_transfer(self.guarantee.read_size.0));
        let time = self.facts.charge(costs, reads, sweeps.transfer + chosen);
        let time = time.saturating_add(work.saturating_mul(each));
        let from = if reads + work == 0 { now } else { sweeps.sign };
        let sure = Moment(from.0.saturating_add(time)).max(now);
        // What is left of a sweep was charged as a part of it, which may be less than by itself.
        match sweeps.done_by {
            Some(done_by) if back.is_empty() && work == 0 && done_by >= now => sure.min(done_by),
            _ => sure,
        }
    }

    /// The device was given a read, or work.
    pub(super) fn device_takes(&mut self, now: Moment, offset: u64, len: u32) {
        let Some(costs) = &self.facts.costs else { return };
        let transfer = costs.transfer(offset, u64::from(len));
        if self.busy() == 0 {
            self.sweeps.sign = now;
        }
        self.sweeps.reads += 1;
        self.sweeps.transfer += transfer;
        self.sweeps.arm = offset + u64::from(len);
    }

    /// The device has ended a read.
    pub(super) fn device_ended(&mut self, now: Moment, offset: u64, len: u32) {
        self.note_overrun(now);
        let Some(costs) = &self.facts.costs else { return };
        let transfer = costs.transfer(offset, u64::from(len));
        let sweeps = &mut self.sweeps;
        sweeps.sign = now;
        sweeps.reads = sweeps.reads.saturating_sub(1);
        sweeps.transfer = sweeps.transfer.saturating_sub(transfer);
        if sweeps.to_end > 0 {
            sweeps.to_end -= 1;
            if sweeps.to_end == 0 {
                let took = u64::try_from(now.since(sweeps.began).as_nanos()).unwrap_or(u64::MAX);
                sweeps.guard.swept(sweeps.charged, took);
                self.facts.behind = sweeps.guard.behind();
            }
        }
    }

    /// Goes by what was learned of the disk since, if anything; the guard begins anew.
    pub(super) fn learn(&mut self) {
        if let Some(facts) = self.new_facts.take() {
            self.facts = facts;
            self.sweeps.guard = TimeGuard::default();
        }
    }

    /// A slot begins: a sweep that takes too long is known before it ends.
    pub(super) fn watch_sweep(&mut self, now: Moment) {
        self.note_overrun(now);
        let sweeps = &mut self.sweeps;
        if sweeps.to_end > 0 {
            let so_far = u64::try_from(now.since(sweeps.began).as_nanos()).unwrap_or(u64::MAX);
            sweeps.guard.under_way(sweeps.charged, so_far);
            self.facts.behind = sweeps.guard.behind();
        }
    }

    /// Something is read, or has to be read again, that nobody was charged for.
    pub(super) fn was_not_charged(&mut self, now: Moment) {
        self.sweeps.done_by = None;
        self.sweeps.overran = Some(now);
    }

    /// Whether at any time from `since` to now the disk took longer than its model says, or had to do
    /// what nobody was charged for, or whether it was lost or behind all the while: then what it
    /// promised is void.
    pub(super) fn overran_since(&self, since: Moment, now: Moment) -> bool {
        let overran = self.sweeps.overran.is_some_and(|at| at >= since);
        self.lost || self.facts.behind > 0 || overran || self.is_over_time(now)
    }

    // Whether what is under way, the sweep or what is in the device, should be done by now.
    fn is_over_time(&self, now: Moment) -> bool {
        let Some(costs) = &self.facts.costs else { return false };
        let sweeps = &self.sweeps;
        let over = |since: Moment, charged: u64| now.0 > since.0.saturating_add(charged);
        let work = u64::from(self.work.in_flight());
        let each = costs.batch(1, costs.slowest_transfer(self.guarantee.read_size.0));
        let reads = costs.batch(sweeps.reads, sweeps.transfer);
        (sweeps.to_end > 0 && over(sweeps.began, sweeps.charged))
            || (self.busy() > 0 && over(sweeps.sign, reads.saturating_add(work * each)))
    }

    /// To be told before what is under way is looked at anew.
    pub(super) fn note_overrun(&mut self, now: Moment) {
        if self.is_over_time(now) {
            self.sweeps.overran = Some(now);
        }
    }

    /// The device has ended work without a deadline.
    pub(super) fn work_ended(&mut self, now: Moment) {
        self.sweeps.sign = now;
    }

    /// Where the schedule ahead is tightest, in reads: how many more could be made before. `None`
    /// if nothing is to be read.
    pub(super) fn least_spare(&self, now: Moment) -> Option<u64> {
        let costs = self.facts.costs.as_ref()?;
        let supply = self.supply(self.free_at(now, &[]));
        let demand = Demand::default();
        let policy = PolicyKind::TimeDomain.policy();
        let each = self.facts.charge(costs, 1, costs.slowest_transfer(self.guarantee.read_size.0));
        match policy.verdict(&self.books, &supply, &demand, &mut Plan::default()) {
            Verdict::Admit { slack: Slack::Time(time) } if time < Duration::MAX => {
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
        self.config.policy.plans(&self.disks[disk].facts)
    }

    /// Asks the policy about the demand at hand; a yes leaves its plan as the proposal.
    pub(super) fn verdict(&mut self, disk: usize) -> Verdict {
        let demand = std::mem::take(&mut self.demand);
        let verdict = self.verdict_after(disk, self.config.policy.policy(), &demand, 0);
        self.demand = demand;
        verdict
    }

    // The same, if the device first does something else for so many nanoseconds.
    pub(super) fn verdict_after(
        &mut self,
        disk: usize,
        policy: &dyn Policy,
        demand: &Demand,
        work: u64,
    ) -> Verdict {
        let (verdict, back) = self.ask_after(disk, work, |books, supply, plan| {
            policy.verdict(books, supply, demand, plan)
        });
        let sweeps = &mut self.disks[disk].sweeps;
        sweeps.proposed = match verdict {
            Verdict::Admit { slack: Slack::Time(slack) } => Some(slack),
            _ => None,
        };
        sweeps.back = back.into_iter().map(|chosen| chosen.read).collect();
        verdict
    }

    /// For how many slots the demand at hand cannot begin, which was refused for that. Dearer than the
    /// refusal.
    pub(super) fn ruled_out(&mut self, disk: usize, refused: Shortage) -> u64 {
        let (policy, demand) = (self.config.policy.policy(), std::mem::take(&mut self.demand));
        let (slots, _) = self.ask_after(disk, 0, |books, supply, _| {
            policy.ruled_out(books, supply, &demand, refused)
        });
        self.demand = demand;
        slots
    }

    // Asks as if what is chosen and can become unread were so, and says what that is.
    fn ask_after<T>(
        &mut self,
        disk: usize,
        work: u64,
        ask: impl FnOnce(&DiskBooks, &Supply<'_>, &mut Plan) -> T,
    ) -> (T, Vec<Chosen>) {
        let back = if self.plans(disk) { self.droppable(disk) } else { Vec::new() };
        let state = &mut self.disks[disk];
        back.iter().for_each(|chosen| state.books.put_back(chosen.piece));
        let free_at = Moment(state.free_at(self.now, &back).0.saturating_add(work));
        let mut proposal = std::mem::take(&mut state.sweeps.proposal);
        let answer = ask(&state.books, &state.supply(free_at), &mut proposal);
        state.sweeps.proposal = proposal;
        back.iter().for_each(|chosen| state.books.take_up(chosen.piece));
        (answer, back)
    }

    /// What was decided on last will be booked: from now on its plan is followed.
    pub(super) fn adopt_plan(&mut self, disk: usize) {
        if !self.plans(disk) {
            return;
        }
        let reads = std::mem::take(&mut self.disks[disk].sweeps.back);
        if !reads.is_empty() {
            let mut back = self.droppable(disk);
            back.retain(|chosen| reads.contains(&chosen.read));
            let reads: BTreeSet<ReadId> = back.iter().map(|chosen| chosen.read).collect();
            self.disks[disk].sweeps.chosen.retain(|chosen| !reads.contains(&chosen.read));
            back.into_iter().for_each(|chosen| self.unchoose(disk, chosen));
        }
        let now = self.now;
        self.disks[disk].note_overrun(now);
        let sweeps = &mut self.disks[disk].sweeps;
        // What a broken off sweep took says nothing.
        (sweeps.to_end, sweeps.done_by) = (0, None);
        std::mem::swap(&mut sweeps.plan, &mut sweeps.proposal);
        sweeps.slack = sweeps.proposed;
        if let Some(slack) = sweeps.slack {
            self.certify(disk, slack);
        }
    }

    // The chosen reads that can become unread again, in the order in which they can: the last
    // pieces of their streams, which nobody else waits for.
    pub(super) fn droppable(&self, disk: usize) -> Vec<Chosen> {
        let mut of = BTreeMap::<StreamId, BTreeMap<ReadId, Chosen>>::new();
        for chosen in &self.disks[disk].sweeps.chosen {
            of.entry(chosen.id).or_default().insert(chosen.read, *chosen);
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
        let stream = self.streams.get_mut(&chosen.id).expect("found there");
        let before = stream.next_read();
        let back = stream.put_back_last(self.now).expect("found there");
        let (read, piece) = (back.read, back.piece);
        assert_eq!(read, chosen.read, "the last piece of its stream");
        self.standby.put_back(stream, piece.piece, back.safe);
        let next = stream.next_read().expect("unread again");
        let state = &mut self.disks[disk];
        if let Some(before) = before {
            state.queue.remove(before.due, chosen.id);
        }
        state.queue.insert(next.due, chosen.id);
        state.books.put_back(piece);
        self.forget_unissued(read);
    }

    // A read that the device was not given, and that nobody wants any more.
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
            // Between two sweeps; after a slot of waiting, within one, if it may be begun anew.
            let between = state.sweeps.chosen.is_empty();
            let waits = state.work.in_flight() == 0 && state.work.is_waiting();
            if waits && (between || self.asks_within(disk)) && self.has_spare(disk) {
                let state = &mut self.disks[disk];
                state.note_overrun(now);
                (state.sweeps.sign, state.sweeps.to_end) = (now, 0);
                state.sweeps.done_by = None;
                self.grant(disk);
                continue;
            }
            if between {
                self.choose(now, disk);
            }
            let Some(next) = self.disks[disk].sweeps.chosen.pop_front() else { return };
            let wanted = self.buffers.is_pinned(next.read)
                || !self.waiting_for(self.buffers.get(next.read).expect("chosen").key).is_empty();
            if !wanted {
                self.forget_unissued(next.read);
                self.sweep_lost(disk);
                continue;
            }
            self.push_read(now, next.read);
        }
    }

    // Whether work has waited long enough to ask within a sweep: once a slot, because a sweep of a
    // fast disk has thousands of reads, and asking is a decision.
    fn asks_within(&mut self, disk: usize) -> bool {
        let slot = self.slot;
        let state = &mut self.disks[disk];
        let asks = state.work.has_waited(slot) && state.sweeps.asked != Some(slot);
        if asks {
            state.sweeps.asked = Some(slot);
        }
        asks
    }

    // Whether one piece of work without a deadline can be done now, everybody staying on time. If
    // so, what is chosen and not in the device is unread again, as when somebody is let in.
    fn has_spare(&mut self, disk: usize) -> bool {
        let state = &self.disks[disk];
        let Some(costs) = &state.facts.costs else { return false };
        let reads = u64::from(state.work.first_reads());
        let transfer = costs.slowest_transfer(state.guarantee.read_size.0);
        let work = state.facts.charge(costs, reads, transfer.saturating_mul(reads));
        let mut demand = std::mem::take(&mut self.demand);
        demand.begin(self.slot);
        let policy = PolicyKind::TimeDomain.policy();
        let admits = if self.standby.is_wanted() {
            self.spare = None;
            matches!(self.survival(disk, policy, &demand, work), Survival::Admit { .. })
        } else {
            self.verdict_after(disk, policy, &demand, work).is_admit()
        };
        self.demand = demand;
        if admits {
            self.adopt_plan(disk);
        }
        admits
    }

    /// What the device of a lost disk was not given is not wanted any more.
    pub(super) fn forget_chosen(&mut self, disk: usize) {
        while let Some(chosen) = self.disks[disk].sweeps.chosen.pop_front() {
            self.forget_unissued(chosen.read);
        }
        let sweeps = &mut self.disks[disk].sweeps;
        (sweeps.to_end, sweeps.done_by) = (0, None);
    }

    fn choose(&mut self, now: Moment, disk: usize) {
        let state = &self.disks[disk];
        let free_at = state.free_at(now, &[]);
        let supply = state.supply(free_at);
        let Next::Batch { through } = state.sweeps.plan.next(&state.books, &supply) else {
            return;
        };
        let mut follows = 0;
        let mut groups: Vec<(u64, Vec<Chosen>)> = Vec::new();
        let mut ends = BTreeMap::<StreamId, (u64, usize, bool)>::new();
        while let Some((id, piece, place)) = self.next_to_read(now, disk) {
            if piece.due > through || u64::from(place.len) > self.room(disk) {
                break;
            }
            let Some(read) = self.start_read(id, piece, place) else { break };
            let key = self.buffers.get(read).expect("started just now").key;
            self.titles.began(key.title);
            let chosen = Chosen { id, piece, read };
            let end = place.offset + u64::from(place.len);
            match ends.get(&id) {
                Some((before, group, followed)) if *before == place.offset => {
                    follows += u64::from(*followed);
                    groups[*group].1.push(chosen);
                    ends.insert(id, (end, *group, piece.followed_after.is_some()));
                }
                _ => {
                    ends.insert(id, (end, groups.len(), piece.followed_after.is_some()));
                    groups.push((place.offset, vec![chosen]));
                }
            }
        }
        groups.sort_by_key(|(place, _)| *place);
        let state = &mut self.disks[disk];
        if let (Some((lowest, _)), Some((highest, _)), Some(costs)) =
            (groups.first(), groups.last(), &state.facts.costs)
            && Sweep::from_nearer_end(costs, state.sweeps.arm, *lowest, *highest) == Sweep::Inward
        {
            groups.reverse();
        }
        let sweeps = &mut state.sweeps;
        sweeps.chosen.extend(groups.into_iter().flat_map(|(_, group)| group));
        if let Some(costs) = &state.facts.costs {
            let chosen = sweeps.chosen.iter().map(|chosen| u64::from(chosen.piece.transfer));
            let (reads, transfer) = (sweeps.chosen.len() as u64, chosen.sum::<u64>());
            sweeps.to_end = sweeps.reads + reads;
            sweeps.charged = costs.sweep(sweeps.to_end, follows, sweeps.transfer + transfer);
            sweeps.began = if sweeps.reads == 0 { now } else { sweeps.sign };
            let most = state.facts.charge_visits(costs, reads, follows, transfer);
            sweeps.done_by = Some(Moment(free_at.0.saturating_add(most)));
            if state.work.in_flight() > 0 {
                sweeps.to_end = 0;
            }
        }
    }

    // A read of the sweep under way will not be made.
    fn sweep_lost(&mut self, disk: usize) {
        let sweeps = &mut self.disks[disk].sweeps;
        sweeps.to_end = sweeps.to_end.saturating_sub(1);
    }
}
