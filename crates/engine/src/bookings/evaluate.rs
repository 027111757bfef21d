//! Admission control: does a demand fit beside what is booked, and the plan that follows if it
//! does.
//!
//! ```text
//!   Candidate ──evaluate──▶ Approval ──▶ Accepted ──book──▶ booked, and the disk follows the plan
//!      │                       (changes no booking)
//!      └─▶ Shortfall: what is short, when, and which disk loss would make it so
//! ```
//!
//! An evaluation leaves the books as they were; its whole result is the value that it returns. A
//! newcomer is evaluated as if the reads that were chosen for a sweep, and not given to the device
//! yet, were unread ([`Unissued`]); [`Approval::unchosen`] names them, and only `Streams::adopt`
//! makes that true.

use super::disk::{Chosen, Disk};
use super::starts::{AgreedWait, Newcomer};
use super::{Bookings, EARLY_SLOTS, Placement};
use crate::stream::{Stream, StreamId};
use crate::{Layout, ReadId, Resource};
use scheduler::admission::Policy;
use scheduler::{
    Demand, DiskBooks, DiskState, DiskTimings, FailoverRequest, FailoverVerdict, NetworkBooks,
    Shortage, Slack, Supply, Verdict, WindowPlan, WriteShare,
};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use units::SlotIndex;

/// A reservation to be decided on: the streams of one session at one placement.
pub(crate) struct Candidate {
    /// The copy that the streams are read from.
    pub(crate) layout: Arc<Layout>,
    /// The disk with the copy that takes over if the first disk is lost.
    pub(crate) replica: Option<usize>,
    /// All copies of the title.
    pub(crate) copies: Arc<[Arc<Layout>]>,
    pub(crate) streams: Vec<Stream>,
    /// What the streams ask of the disk, and the bytes that sockets may hold.
    pub(crate) demand: Demand,
    /// Where streams follow others, or find their first media in memory: what the streams ask of
    /// the network, which is more than they ask of the disk.
    pub(crate) sent: Option<Demand>,
    /// Whether it is a new session: of memory that a disk is to give back it gets nothing.
    pub(crate) is_new: bool,
    /// The follower whose interval is given up for it: see `streams::given_up`.
    pub(crate) gives_up: Option<StreamId>,
}

/// A positive evaluation of a demand on one disk. It is valid until the next change to the books.
pub(crate) struct Approval {
    pub(crate) disk: usize,
    /// Where disk time is counted: the windows to be read by from now on.
    pub(crate) plan: WindowPlan,
    /// The time, or the reads, by which the schedule is early where it is tightest.
    pub(crate) slack: Slack,
    /// Chosen reads that the plan takes for unread.
    pub(crate) unchosen: BTreeSet<ReadId>,
}

/// The speed that a disk is taken to have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Speed {
    /// As the guards believe now.
    Now,
    /// As calibrated.
    Calibrated,
}

/// A candidate that fits, with all that booking it takes.
pub(crate) struct Accepted {
    pub(crate) candidate: Candidate,
    pub(crate) approval: Approval,
}

/// Why a demand does not fit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shortfall {
    pub(crate) shortage: Shortage,
    /// The loss that the demand would not survive; `None`: it does not fit as the disks are.
    pub(crate) failover: Option<FailoverShortfall>,
}

/// A disk loss after which another disk would be short.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FailoverShortfall {
    pub(crate) lost: usize,
    pub(crate) short: usize,
}

/// The policy that decides, and what the disk does besides its booked reads.
#[derive(Clone, Copy)]
pub(crate) struct Terms {
    pub(crate) policy: &'static dyn Policy,
    /// Nanoseconds of other work that the device does first.
    pub(crate) work: u64,
    /// Whether the loss of any one disk must be survived.
    pub(crate) survive_loss: bool,
    /// Whether the memory that disks are to give back counts as gone already.
    pub(crate) within_limit: bool,
}

impl Candidate {
    pub(crate) fn disk(&self) -> usize {
        usize::from(self.layout.disk.0)
    }

    pub(crate) fn placement(&self) -> Placement {
        Placement { disk: self.disk(), replica: self.replica }
    }

    /// Whether its start takes nothing of the disk: its streams follow others, or find their first
    /// media in memory.
    pub(crate) fn starts_from_memory(&self) -> bool {
        self.sent.is_some()
    }

    /// Whether leads of its tracks are gathered.
    pub(crate) fn gathers_leads(&self) -> bool {
        self.streams.iter().any(Stream::gathers_lead)
    }

    /// The candidate as if its viewer came `slots` later.
    pub(crate) fn delay(&mut self, slots: u32) {
        self.demand.shift(u64::from(slots));
        self.streams.iter_mut().for_each(|stream| stream.delay(slots));
    }

    pub(crate) fn accepted(self, approval: Approval) -> Accepted {
        Accepted { candidate: self, approval }
    }
}

impl Shortfall {
    pub(crate) fn lacks_memory(&self) -> bool {
        self.shortage.resource == Resource::Memory
    }
}

impl From<Shortage> for Shortfall {
    fn from(shortage: Shortage) -> Self {
        Self { shortage, failover: None }
    }
}

impl Bookings {
    /// The demand of streams that are not booked, in a buffer from the pool. Fills in what the
    /// policies by mean rate want to know of each stream.
    pub(crate) fn demand_of<'a>(
        &mut self,
        streams: impl IntoIterator<Item = &'a mut Stream>,
        reserve: u64,
    ) -> Demand {
        let mut demand = self.demands.take(self.slot);
        demand.reserve = reserve;
        for stream in streams {
            stream.summary = demand.add_track(stream.booked_unread());
            // A stream that was on the books before brings the buffers that it holds.
            stream.booked_held().for_each(|piece| demand.add_held(piece));
        }
        demand
    }

    /// Whether a candidate's viewer is given nothing before its start-up is over. Its deadlines
    /// count from there then.
    pub(crate) fn open_late(&mut self, candidate: &mut Candidate, late: bool) {
        // A session that moves to another disk needs the time until its start.
        let late = late && !self.survives_loss();
        let opens_after = if late { self.startup } else { Duration::ZERO };
        candidate.streams.iter_mut().for_each(|stream| stream.open_after(opens_after));
        self.renew_demand(candidate);
    }

    /// Whether the leads of a candidate's tracks are read in one visit each.
    pub(crate) fn gather_leads(&mut self, candidate: &mut Candidate, gather: bool) {
        let gather = gather && self.gathers(candidate.disk());
        candidate.streams.iter_mut().for_each(|stream| stream.gather_lead(gather));
        self.renew_demand(candidate);
    }

    /// Whether leads may be gathered: where a visit has a price, and reads stay on their disk.
    pub(crate) fn gathers(&self, disk: usize) -> bool {
        self.plans(disk) && !self.survives_loss()
    }

    /// A candidate's viewer, who agrees to this wait, starts so many from now, or not
    /// at all.
    pub(crate) fn note_newcomer(
        &mut self,
        candidate: &Candidate,
        agreed: AgreedWait,
        starts: Option<u32>,
    ) {
        let newcomer = self.newcomer(candidate, agreed);
        self.disks[candidate.disk()].starts.note(newcomer, starts);
    }

    /// The slots for which a candidate's viewer may be made to wait, who agrees to this wait.
    pub(crate) fn patience(&mut self, candidate: &mut Candidate, agreed: AgreedWait) -> u32 {
        let newcomer = self.newcomer(candidate, agreed);
        let disk = candidate.disk();
        let patience = self.disks[disk].starts.patience(newcomer, 0);
        if patience >= agreed.slots {
            return patience;
        }
        let alone = match self.disks[disk].starts.alone {
            Some(alone) => alone,
            None => self.wait_alone(candidate, agreed.slots),
        };
        let starts = &mut self.disks[disk].starts;
        starts.alone = Some(alone);
        starts.patience(newcomer, alone)
    }

    // The slots, at most `limit`, for which a candidate's viewer would wait if nothing else were
    // booked on the disk: a disk that may pause for longer than the start-up needs some. Zero if it
    // does not fit with any of them.
    fn wait_alone(&self, candidate: &mut Candidate, limit: u32) -> u32 {
        let disk = candidate.disk();
        let fits = |slots: &u32| {
            candidate.demand.shift((*slots).into());
            let fits = self.fits_alone(disk, &candidate.demand, Speed::Now);
            candidate.demand.unshift((*slots).into());
            fits
        };
        (0..=limit).find(fits).unwrap_or(0)
    }

    /// The first slot in which a candidate's viewer may start, who agrees to this wait: see
    /// [`Starts::paced_start`](super::starts::Starts::paced_start).
    pub(crate) fn paced_start(
        &self,
        candidate: &Candidate,
        agreed: AgreedWait,
        patience: u32,
    ) -> Option<u32> {
        let newcomer = self.newcomer(candidate, agreed);
        self.disks[candidate.disk()].starts.paced_start(newcomer, patience)
    }

    fn newcomer(&self, candidate: &Candidate, agreed: AgreedWait) -> Newcomer {
        let disk = &self.disks[candidate.disk()];
        let share = match candidate.starts_from_memory() {
            true => 0,
            false => disk.share_of(&candidate.demand),
        };
        let length = self.slot_length;
        Newcomer { now: self.now, slot: self.slot, length, share, agreed }
    }

    fn renew_demand(&mut self, candidate: &mut Candidate) {
        let demand = self.demand_of(&mut candidate.streams, candidate.demand.reserve);
        self.put_demand(std::mem::replace(&mut candidate.demand, demand));
    }

    /// An empty demand, from the pool: what is booked is to be decided on without a newcomer.
    pub(crate) fn empty_demand(&mut self) -> Demand {
        self.demands.take(self.slot)
    }

    /// Gives a demand back to the pool.
    pub(crate) fn put_demand(&mut self, demand: Demand) {
        self.demands.put(demand);
    }

    /// The terms of the configured policy.
    pub(crate) fn terms(&self) -> Terms {
        let policy = self.policy.policy();
        Terms { policy, work: 0, survive_loss: self.survives_loss(), within_limit: false }
    }

    /// Whether a demand fits on the disks, by the terms given.
    pub(crate) fn evaluate(
        &mut self,
        placement: Placement,
        demand: &Demand,
        terms: Terms,
        unissued: &Unissued,
    ) -> Result<Approval, Shortfall> {
        let disk = placement.disk;
        if !self.refuses() {
            // Where nothing is refused, reads follow their deadlines and no plan.
            let (plan, unchosen) = (WindowPlan::default(), BTreeSet::new());
            return Ok(Approval { disk, plan, slack: Slack::Unknown, unchosen });
        }
        if terms.survive_loss {
            return self.evaluate_losses(placement, demand, terms, unissued);
        }
        let verdict = self.with_unissued_unread(disk, terms, unissued, |books, supply| {
            terms.policy.verdict(books, supply, demand)
        });
        match verdict {
            Verdict::Admit { slack, plan } => {
                Ok(Approval { disk, plan, slack, unchosen: unissued.reads(disk) })
            }
            Verdict::Refuse(shortage) => Err(shortage.into()),
        }
    }

    /// Slots for which a refused demand cannot begin for certain, at least one. Dearer than the
    /// evaluation.
    pub(crate) fn ruled_out(
        &mut self,
        disk: usize,
        demand: &Demand,
        refused: Shortage,
        terms: Terms,
        unissued: &Unissued,
    ) -> u64 {
        self.with_unissued_unread(disk, terms, unissued, |books, supply| {
            terms.policy.ruled_out(books, supply, demand, refused)
        })
    }

    // Asks about a disk's books with its unissued reads unread. Afterwards the books are as before.
    fn with_unissued_unread<T>(
        &mut self,
        disk: usize,
        terms: Terms,
        unissued: &Unissued,
        ask: impl FnOnce(&DiskBooks, &Supply<'_>) -> T,
    ) -> T {
        // If the demand is accepted these reads become unread, so their time and memory are free
        // for it.
        let unread = unissued.of(disk);
        let memory = self.memory_beside_beginnings(disk, terms.within_limit);
        let state = &mut self.disks[disk];
        unread.iter().for_each(|chosen| state.dispatcher.books.undo_read(chosen.piece));
        // Other work goes into the device first, and the next sweep begins after it.
        let free_at = state.busy_until(self.now, unread, terms.work);
        let supply = Supply { memory, ..state.supply(free_at) };
        let answer = ask(&state.dispatcher.books, &supply);
        unread.iter().for_each(|chosen| state.dispatcher.books.start_read(chosen.piece));
        answer
    }

    // Asks the policy once for the disks as they are, and once for each loss that the demand makes
    // worse (see `scheduler::Failover`).
    fn evaluate_losses(
        &mut self,
        placement: Placement,
        demand: &Demand,
        terms: Terms,
        unissued: &Unissued,
    ) -> Result<Approval, Shortfall> {
        let Placement { disk, replica } = placement;
        // A loss concerns all disks, so the chosen reads of all of them are taken for unread.
        for (number, state) in self.disks.iter_mut().enumerate() {
            let unread = unissued.of(number);
            unread.iter().for_each(|chosen| state.dispatcher.books.undo_read(chosen.piece));
        }
        let mut at_replica = demand.clone();
        // At home reads are early by so much; at the replica they are due when they are needed.
        at_replica.shift(u64::from(EARLY_SLOTS));
        // The failover books charge each read a visit of its own, so the newcomer is charged alike.
        at_replica.forget_visits();
        let newcomer = FailoverRequest {
            home: disk,
            at_home: demand,
            replica: replica.map(|replica| (replica, &at_replica)),
        };
        let standing = self.disks.iter().enumerate().map(|(number, state)| {
            // The other work is work of the candidate's disk only.
            let work = if number == disk { terms.work } else { 0 };
            let free_at = state.busy_until(self.now, unissued.of(number), work);
            let memory = self.memory_beside_beginnings(number, terms.within_limit);
            let supply = Supply { memory, ..state.supply(free_at) };
            let books = &state.dispatcher.books;
            DiskState { books, supply, lost: state.lost }
        });
        let standing: Vec<DiskState<'_>> = standing.collect();
        let books = self.failover.books.as_mut().expect("asked only where losses must be survived");
        let answer = books.verdict(terms.policy, &standing, newcomer);
        drop(standing);
        for (number, state) in self.disks.iter_mut().enumerate() {
            let unread = unissued.of(number);
            unread.iter().for_each(|chosen| state.dispatcher.books.start_read(chosen.piece));
        }
        match answer {
            FailoverVerdict::Admit { slack, plan } => {
                Ok(Approval { disk, plan, slack, unchosen: unissued.reads(disk) })
            }
            FailoverVerdict::Refuse { lost, at, shortage } => {
                let failover = lost.map(|lost| FailoverShortfall { lost, short: at });
                Err(Shortfall { shortage, failover })
            }
        }
    }

    /// Whether the network has room for a demand beside what it carries.
    pub(crate) fn check_network(&self, demand: &Demand) -> Result<(), Shortfall> {
        let Some(rate) = self.network_rate.filter(|_| self.refuses()) else { return Ok(()) };
        let short = self.network.verdict(demand, rate.bytes_in(self.slot_length).0).err();
        short.map_or(Ok(()), |(slot, missing)| {
            Err(Shortage { resource: Resource::Network, slot, missing }.into())
        })
    }

    /// Whether a demand fits on a disk on which nothing is booked, from now on.
    pub(crate) fn fits_alone(&self, disk: usize, demand: &Demand, speed: Speed) -> bool {
        let memory = self.memory_within(disk, true);
        self.fits_alone_in(memory, disk, demand, speed)
    }

    /// [`Bookings::fits_alone`] with the disk's memory at the start, where that was more.
    pub(crate) fn fitted_alone(&self, disk: usize, demand: &Demand) -> bool {
        let memory = self.memory_within(disk, true).max(self.disks[disk].first_memory);
        self.fits_alone_in(memory, disk, demand, Speed::Now)
    }

    fn fits_alone_in(&self, memory: u64, disk: usize, demand: &Demand, speed: Speed) -> bool {
        let state = &self.disks[disk];
        let supply = Supply { memory, owed: 0, ..state.supply(self.now) };
        self.alone(state, supply, demand, speed)
    }

    /// Whether a request for this demand ever fits, if it is that of the last request of the
    /// present slot: see `streams::alone`. `None` if the policy does not tell.
    pub(crate) fn fits_ever(&self, disk: usize, demand: &Demand) -> Option<bool> {
        if !self.policy.is_monotone() {
            return None;
        }
        let state = &self.disks[disk];
        let slot_start = self.slot.start(self.slot_length);
        let supply = Supply { memory: u64::MAX, owed: 0, ..state.supply(slot_start) };
        let fits = self.alone(state, supply, demand, Speed::Calibrated);
        Some(fits && self.network_carries_sum(demand))
    }

    fn alone(&self, disk: &Disk, supply: Supply<'_>, demand: &Demand, speed: Speed) -> bool {
        let mut books = DiskBooks::default();
        books.advance(self.slot);
        let policy = self.policy.policy();
        // Recordings end, as sessions do.
        let write_share = WriteShare::NONE;
        let timings = match speed {
            Speed::Calibrated if disk.timings.is_behind() => {
                let calibrated = disk.timings.clone();
                &DiskTimings { slowdown: 0, observed_curve: None, write_share, ..calibrated }
            }
            _ if disk.timings.write_share.is_some() => {
                &DiskTimings { write_share, ..disk.timings.clone() }
            }
            _ => &disk.timings,
        };
        let min_read = match speed {
            Speed::Now => disk.guard.min_read(),
            Speed::Calibrated => disk.guarantee.min_read,
        };
        policy.verdict(&books, &Supply { min_read, timings, ..supply }, demand).is_admit()
    }

    /// Whether the network has room for a demand if it carries nothing else.
    pub(crate) fn network_carries_alone(&self, demand: &Demand) -> bool {
        let Some(rate) = self.network_rate else { return true };
        let mut network = NetworkBooks::default();
        network.advance(self.slot);
        network.verdict(demand, rate.bytes_in(self.slot_length).0).is_ok()
    }

    // Whether the network can have carried, by the end of each slot, what is to be sent by then.
    fn network_carries_sum(&self, demand: &Demand) -> bool {
        let Some(rate) = self.network_rate else { return true };
        let per_slot = rate.bytes_in(self.slot_length).0;
        let lead = demand.first().0.saturating_sub(self.slot.0);
        let mut sum = 0;
        demand.slots().iter().zip(lead + 1..).all(|(load, slots)| {
            sum += load.bytes;
            sum <= per_slot.saturating_mul(slots)
        })
    }

    /// Whether memory is held or reserved, which it may be for sockets after their session's end.
    pub(crate) fn holds_or_reserves(&self) -> bool {
        let books = self.disks.iter().map(|disk| &disk.dispatcher.books);
        books.into_iter().any(|books| (books.held(), books.reserved()) != (0, 0))
    }

    /// The most memory for buffers that there was or is to be, in bytes.
    pub(crate) fn most_memory(&self) -> u64 {
        let first = self.disks.iter().map(|disk| disk.first_memory).sum();
        self.memory_limit().max(first)
    }

    /// Whether the network has room for a demand that is booked when slot `current` runs.
    pub(crate) fn network_carries_from(&self, demand: &Demand, current: SlotIndex) -> bool {
        let Some(rate) = self.network_rate else { return true };
        // A copy, because books cannot go back from a later slot to the present one.
        let mut network = self.network.clone();
        network.advance(current);
        network.verdict(demand, rate.bytes_in(self.slot_length).0).is_ok()
    }
}

/// Per disk, the reads that are chosen, that the device was not given, and that can become unread:
/// evaluations take them for unread.
#[derive(Clone, Debug)]
pub(crate) struct Unissued(Vec<Vec<Chosen>>);

impl Unissued {
    /// Per disk its reads, in an order in which they can become unread.
    pub(crate) fn new(by_disk: Vec<Vec<Chosen>>) -> Self {
        Self(by_disk)
    }

    fn of(&self, disk: usize) -> &[Chosen] {
        &self.0[disk]
    }

    fn reads(&self, disk: usize) -> BTreeSet<ReadId> {
        self.of(disk).iter().map(|chosen| chosen.read).collect()
    }
}

/// Demands that are not in use, kept for their memory. Their content means nothing.
#[derive(Clone, Debug, Default)]
pub(crate) struct DemandPool(Vec<Demand>);

impl DemandPool {
    /// An empty demand, decided on in slot `current`.
    pub(crate) fn take(&mut self, current: SlotIndex) -> Demand {
        let mut demand = self.0.pop().unwrap_or_default();
        demand.begin(current);
        demand
    }

    pub(crate) fn put(&mut self, demand: Demand) {
        if self.0.len() < POOLED_DEMANDS {
            self.0.push(demand);
        }
    }
}

/// Demands kept for their memory: a few placements are compared at a time.
const POOLED_DEMANDS: usize = 8;
