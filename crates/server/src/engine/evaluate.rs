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
//! yet, were unread; [`Approval::unchosen`] names them, and only [`Engine::adopt`] makes that true.
//!
//! Where memory is short, reads far ahead of other streams are dropped first: their data stays in
//! the cache, and their reads are booked again.

use super::disks::Chosen;
use super::failover::{EARLY_SLOTS, Placement};
use super::streams::{Stream, StreamId};
use super::{Engine, Layout, ReadId, Resource};
use scheduler::admission::Policy;
use scheduler::{
    Demand, DiskBooks, DiskState, FailoverRequest, FailoverVerdict, PlayoutClock, PolicyKind,
    Shortage, Slack, Supply, Verdict, WindowPlan,
};
use std::collections::BTreeSet;
use std::sync::Arc;
use units::{Moment, SlotIndex};

/// A reservation to be decided on: the streams of one session at one placement.
pub(super) struct Candidate {
    /// The copy that the streams are read from.
    pub(super) layout: Arc<Layout>,
    /// The disk with the copy that takes over if the first disk is lost.
    pub(super) replica: Option<usize>,
    /// All copies of the title.
    pub(super) copies: Arc<[Arc<Layout>]>,
    pub(super) streams: Vec<Stream>,
    /// What the streams ask of the disk, and the bytes that sockets may hold.
    pub(super) demand: Demand,
}

/// A positive evaluation of a demand on one disk. It is valid until the next change to the books.
pub(super) struct Approval {
    disk: usize,
    /// Where disk time is counted: the windows to be read by from now on.
    plan: WindowPlan,
    /// The time, or the reads, by which the schedule is early where it is tightest.
    pub(super) slack: Slack,
    /// Chosen reads that the plan takes for unread.
    unchosen: BTreeSet<ReadId>,
}

/// A candidate that fits, with all that booking it takes.
pub(super) struct Accepted {
    pub(super) candidate: Candidate,
    approval: Approval,
}

/// Why a demand does not fit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shortfall {
    pub(super) shortage: Shortage,
    /// The loss that the demand would not survive; `None`: it does not fit as the disks are.
    pub(super) failover: Option<FailoverShortfall>,
}

/// A disk loss after which another disk would be short.
#[derive(Clone, Copy, Debug)]
pub(super) struct FailoverShortfall {
    pub(super) lost: usize,
    pub(super) short: usize,
}

/// What the disk does besides its booked reads, and who decides.
#[derive(Clone, Copy)]
pub(super) struct Terms {
    pub(super) policy: &'static dyn Policy,
    /// Nanoseconds of other work that the device does first.
    pub(super) work: u64,
    /// Whether the loss of any one disk must be survived.
    pub(super) survive_loss: bool,
}

impl Candidate {
    pub(super) fn disk(&self) -> usize {
        usize::from(self.layout.disk.0)
    }

    pub(super) fn placement(&self) -> Placement {
        Placement { disk: self.disk(), replica: self.replica }
    }

    /// The candidate as if its viewer came `slots` later.
    pub(super) fn delay(&mut self, slots: u32) {
        self.demand.shift(u64::from(slots));
        self.streams.iter_mut().for_each(|stream| stream.delay(slots));
    }

    pub(super) fn accepted(self, approval: Approval) -> Accepted {
        Accepted { candidate: self, approval }
    }
}

impl From<Shortage> for Shortfall {
    fn from(shortage: Shortage) -> Self {
        Self { shortage, failover: None }
    }
}

impl Engine {
    pub(super) fn timing(
        &self,
        origin: Moment,
        from_ms: u32,
        replica: Option<usize>,
    ) -> PlayoutClock {
        let (startup, slot) = (self.config.startup, self.config.slot);
        let early = if replica.is_some() { EARLY_SLOTS } else { 0 };
        PlayoutClock { origin, startup, from_ms, kept_from_ms: from_ms, slot, early }
    }

    /// The demand of streams that are not booked, in a buffer from the pool. Fills in what the
    /// policies by mean rate want to know of each stream.
    pub(super) fn demand_of<'a>(
        &mut self,
        streams: impl IntoIterator<Item = &'a mut Stream>,
        reserve: u64,
    ) -> Demand {
        let mut demand = self.demands.take(self.slot);
        demand.reserve = reserve;
        for stream in streams {
            stream.summary = demand.add_track(stream.unread());
            stream.held().for_each(|(_, piece)| demand.add_held(piece));
        }
        demand
    }

    /// Whether a candidate fits on its disk and on the network; where losses must be survived, also
    /// after the loss of any one disk.
    pub(super) fn evaluate(&mut self, candidate: &Candidate) -> Result<Approval, Shortfall> {
        self.evaluate_demand(candidate.placement(), &candidate.demand)
    }

    /// [`Engine::evaluate`] of streams that are booked by the caller.
    pub(super) fn evaluate_demand(
        &mut self,
        placement: Placement,
        demand: &Demand,
    ) -> Result<Approval, Shortfall> {
        let approval = self.evaluate_disks(placement, demand, self.terms())?;
        self.check_network(demand)?;
        Ok(approval)
    }

    /// Whether a demand fits on `disk` as long as no disk is lost. The network is not looked at.
    pub(super) fn evaluate_home(
        &mut self,
        disk: usize,
        demand: &Demand,
    ) -> Result<Approval, Shortfall> {
        let terms = Terms { survive_loss: false, ..self.terms() };
        self.evaluate_disks(Placement { disk, replica: None }, demand, terms)
    }

    /// The terms of the configured policy.
    pub(super) fn terms(&self) -> Terms {
        let policy = self.config.policy.policy();
        Terms { policy, work: 0, survive_loss: self.failover.is_enabled() }
    }

    /// Whether a demand fits on the disks, by the terms given.
    pub(super) fn evaluate_disks(
        &mut self,
        placement: Placement,
        demand: &Demand,
        terms: Terms,
    ) -> Result<Approval, Shortfall> {
        let disk = placement.disk;
        if !self.refuses() {
            let (plan, unchosen) = (WindowPlan::default(), BTreeSet::new());
            return Ok(Approval { disk, plan, slack: Slack::Unknown, unchosen });
        }
        if terms.survive_loss {
            return self.evaluate_losses(placement, demand, terms);
        }
        let (verdict, unchosen) = self.with_unchosen(disk, terms.work, |books, supply| {
            terms.policy.verdict(books, supply, demand)
        });
        match verdict {
            Verdict::Admit { slack, plan } => Ok(Approval { disk, plan, slack, unchosen }),
            Verdict::Refuse(shortage) => Err(shortage.into()),
        }
    }

    /// Slots for which a refused demand cannot begin for certain, at least one. Dearer than the
    /// evaluation.
    pub(super) fn ruled_out(&mut self, disk: usize, demand: &Demand, refused: Shortage) -> u64 {
        let policy = self.config.policy.policy();
        let ask = |books: &DiskBooks, supply: &Supply<'_>| {
            policy.ruled_out(books, supply, demand, refused)
        };
        self.with_unchosen(disk, 0, ask).0
    }

    // Asks about a disk's books with all reads unread that are chosen and can become unread; says
    // which those are. Afterwards the books are as before.
    fn with_unchosen<T>(
        &mut self,
        disk: usize,
        work: u64,
        ask: impl FnOnce(&DiskBooks, &Supply<'_>) -> T,
    ) -> (T, BTreeSet<ReadId>) {
        let unchosen = self.unchoosable(disk);
        let state = &mut self.disks[disk];
        unchosen.iter().for_each(|chosen| state.dispatcher.books.undo_read(chosen.piece));
        let free_at = Moment(state.busy_until(self.now, &unchosen).0.saturating_add(work));
        let answer = ask(&state.dispatcher.books, &state.supply(free_at));
        unchosen.iter().for_each(|chosen| state.dispatcher.books.start_read(chosen.piece));
        (answer, unchosen.iter().map(|chosen| chosen.read).collect())
    }

    fn unchoosable(&self, disk: usize) -> Vec<Chosen> {
        if self.plans(disk) { self.droppable(disk) } else { Vec::new() }
    }

    // Asks the policy once for the disks as they are, and once for each loss that the demand makes
    // worse (see `scheduler::Failover`).
    fn evaluate_losses(
        &mut self,
        placement: Placement,
        demand: &Demand,
        terms: Terms,
    ) -> Result<Approval, Shortfall> {
        let Placement { disk, replica } = placement;
        let unchosen: Vec<Vec<Chosen>> =
            (0..self.disks.len()).map(|at| self.unchoosable(at)).collect();
        for (state, unchosen) in self.disks.iter_mut().zip(&unchosen) {
            unchosen.iter().for_each(|chosen| state.dispatcher.books.undo_read(chosen.piece));
        }
        let mut at_replica = demand.clone();
        at_replica.shift(u64::from(EARLY_SLOTS));
        // The failover books charge each read a visit of its own, so the newcomer is charged alike.
        at_replica.forget_visits();
        let newcomer = FailoverRequest {
            home: disk,
            at_home: demand,
            replica: replica.map(|replica| (replica, &at_replica)),
        };
        let standing = self.disks.iter().zip(&unchosen).enumerate();
        let standing = standing.map(|(number, (state, unchosen))| {
            let work = if number == disk { terms.work } else { 0 };
            let free_at = Moment(state.busy_until(self.now, unchosen).0.saturating_add(work));
            DiskState {
                books: &state.dispatcher.books,
                supply: state.supply(free_at),
                lost: state.lost,
            }
        });
        let standing: Vec<DiskState<'_>> = standing.collect();
        let books = self.failover.books_mut().expect("asked only where losses must be survived");
        let answer = books.verdict(terms.policy, &standing, newcomer);
        drop(standing);
        for (state, unchosen) in self.disks.iter_mut().zip(&unchosen) {
            unchosen.iter().for_each(|chosen| state.dispatcher.books.start_read(chosen.piece));
        }
        match answer {
            FailoverVerdict::Admit { slack, plan } => {
                let unchosen = unchosen[disk].iter().map(|chosen| chosen.read).collect();
                Ok(Approval { disk, plan, slack, unchosen })
            }
            FailoverVerdict::Refuse { lost, at, shortage } => {
                let failover = lost.map(|lost| FailoverShortfall { lost, short: at });
                Err(Shortfall { shortage, failover })
            }
        }
    }

    fn check_network(&self, demand: &Demand) -> Result<(), Shortfall> {
        let Some(rate) = self.config.network.filter(|_| self.refuses()) else { return Ok(()) };
        let short = self.network.verdict(demand, rate.bytes_in(self.config.slot).0).err();
        short.map_or(Ok(()), |(slot, missing)| {
            Err(Shortage { resource: Resource::Network, slot, missing }.into())
        })
    }

    /// Evaluates once more a candidate that memory is short for, with reads far ahead of other
    /// streams dropped. If it does not fit then either, those streams keep them.
    pub(super) fn evaluate_without_readahead(
        &mut self,
        now: Moment,
        candidate: &Candidate,
        shortfall: Shortfall,
    ) -> Result<Approval, Shortfall> {
        let disk = candidate.disk();
        let memory = shortfall.shortage.resource == Resource::Memory;
        if !memory || self.disks[disk].searches >= MAX_SEARCHES {
            return Err(shortfall);
        }
        self.disks[disk].searches += 1;
        let fits = self.drop_readahead_until(now, disk, |engine| engine.evaluate(candidate).ok());
        fits.ok_or(shortfall)
    }

    /// Drops reads far ahead on `disk`, first a little, then nearly all, until `fits` approves. If
    /// it never does, they are restored.
    pub(super) fn drop_readahead_until(
        &mut self,
        now: Moment,
        disk: usize,
        fits: impl Fn(&mut Self) -> Option<Approval>,
    ) -> Option<Approval> {
        for keep in [KEEP_SLOTS, 1] {
            let dropped = self.drop_readahead(disk, self.slot + keep);
            if dropped.is_empty() {
                continue;
            }
            if let Some(approval) = fits(self) {
                return Some(approval);
            }
            self.restore_readahead(now, &dropped);
        }
        None
    }

    /// Makes an approval's premise true, that its `unchosen` reads are unread, and follows its plan
    /// from now on.
    pub(super) fn adopt(&mut self, approval: Approval) {
        let Approval { disk, plan, slack, unchosen } = approval;
        if !self.plans(disk) {
            return;
        }
        self.unchoose_all(disk, &unchosen);
        let slack = match slack {
            Slack::Time(slack) => Some(slack),
            _ => None,
        };
        self.disks[disk].follow(self.now, plan, slack);
        if let Some(slack) = slack {
            self.lower_promised_slack(disk, slack);
        }
    }

    /// Books an accepted candidate: its streams join their session, and their reads are queued.
    pub(super) fn book(&mut self, accepted: Accepted) {
        let Accepted { candidate, approval } = accepted;
        let disk = approval.disk;
        self.adopt(approval);
        self.disks[disk].dispatcher.books.book_demand(&candidate.demand);
        self.network.book_demand(&candidate.demand);
        for mut stream in candidate.streams {
            let slack = self.disks[disk].scan.slack();
            stream.guaranteed_slack = slack.filter(|_| self.config.policy.guarantees());
            let id = StreamId(self.next_stream);
            self.next_stream += 1;
            self.disks[disk].dispatcher.books.book_summary(stream.summary);
            self.failover.book(&stream);
            self.disks[disk].dispatcher.enqueue(id, stream.next_read());
            self.sessions[&stream.session].streams.push(id);
            self.streams.insert(id, stream);
        }
        self.demands.put(candidate.demand);
    }

    /// Whether the configured policy refuses anybody at all.
    pub(super) fn refuses(&self) -> bool {
        self.config.policy != PolicyKind::None
    }
}

/// Demands that are not in use, kept for their memory. Their content means nothing.
#[derive(Debug, Default)]
pub(super) struct DemandPool(Vec<Demand>);

impl DemandPool {
    /// An empty demand, decided on in slot `current`.
    pub(super) fn take(&mut self, current: SlotIndex) -> Demand {
        let mut demand = self.0.pop().unwrap_or_default();
        demand.begin(current);
        demand
    }

    pub(super) fn put(&mut self, demand: Demand) {
        if self.0.len() < POOLED_DEMANDS {
            self.0.push(demand);
        }
    }
}

/// Read-ahead that is kept first when memory is short: what is due within 4 s of 500 ms slots.
pub(super) const KEEP_SLOTS: u64 = 8;

/// Searches for a start or for memory, per slot and disk: each tries up to seventy starts, some
/// 10 µs each, and follows up to `later::MOST_READS` future reads.
pub(super) const MAX_SEARCHES: u32 = 8;

/// Demands kept for their memory: a few placements are compared at a time.
const POOLED_DEMANDS: usize = 8;
