//! Failure slack: where titles have copies on several disks, only so many come in that the loss of
//! any one disk makes nobody late.
//!
//! ```text
//!   a stream is read from its home, 0, and has a copy at its replica, 2
//!
//!   books of 0          its reads, as disk 0 makes them
//!   standby 0 ▶ 2       the same reads, as disk 2 would make them if 0 were lost
//!
//!   a newcomer comes in if, with it,   0 keeps its own books               nothing is lost
//!                                      0 keeps its own + standby f ▶ 0     f is lost, for each f
//!                                      2 keeps its own + standby 0 ▶ 2     0 is lost
//! ```
//!
//! Nothing else changes with a newcomer, so nothing else is tested: as many decisions as there are
//! disks. The loss is taken to come now. If it comes later, at t, what is due by x is on time, too:
//!
//! ```text
//!   the replica has not done all of    it was busy with that from the decision on, and the
//!   its own that is due by x           decision was for all
//!   it has                             left is what the lost disk had not read by t, and would
//!                                      have by x: so will a replica that is as fast
//! ```
//!
//! A replica that is slower must be able to read its standby in each slot what is due in that slot.
//! What is booked for a loss is charged a visit for each read: what a replica lacks of a stream
//! need not lie one behind the other. The disks' own reads are charged by visits, where two copies
//! lie alike. Both assume memory to work ahead in. Where that is short, a loss may come at a bad
//! moment; the simulator looks for those. A disk that is lost leaves its share of the memory to the
//! others.
//!
//! It moves nothing: whoever notices the loss books the standby with the spares. Two losses at a
//! time are beyond it. Sources: W. J. Bolosky et al., "Distributed schedule management in the Tiger
//! video fileserver" (ACM SOSP, 1997), whose declustered mirrors keep room in the same way.

use crate::admission::{Policy, PolicyKind, Shortage, Slack, Supply, Verdict};
use crate::books::DiskBooks;
use crate::demand::Demand;
use crate::windows::WindowPlan;
use disk::Costs;
use units::SlotIndex;

/// What each disk would have to do beside its own if another were lost.
#[derive(Clone, Debug)]
pub struct Failover {
    disks: usize,
    // From `lost` to `to`: lost * disks + to.
    standby: Vec<DiskBooks>,
    scratch: Demand,
}

/// A disk as it stands.
#[derive(Clone, Copy, Debug)]
pub struct DiskState<'a> {
    /// What is booked on it.
    pub books: &'a DiskBooks,
    /// What it can give.
    pub supply: Supply<'a>,
    /// The disk is lost already: nothing is read from it.
    pub lost: bool,
}

/// The candidate of a request, and from which disks it could be read.
#[derive(Clone, Copy, Debug)]
pub struct FailoverRequest<'a> {
    /// The disk it is read from.
    pub home: usize,
    /// The candidate's demand on its primary disk.
    pub at_home: &'a Demand,
    /// The disk with its other copy, not its home; and its demand there: the same pieces, as they
    /// lie on that disk. `None`: there is no other copy, and whoever loses its home is lost with
    /// it.
    pub replica: Option<(usize, &'a Demand)>,
}

/// Answer of admission control for disks of which any one may be lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FailoverVerdict {
    /// The demand fits.
    Admit {
        /// What the schedule of the home disk has to spare as long as no disk is lost.
        slack: Slack,
        /// What the home disk must follow if the demand is booked.
        plan: WindowPlan,
    },
    /// The demand does not fit.
    Refuse {
        /// The disk without which it does not fit; `None`: it does not fit as it is.
        lost: Option<usize>,
        /// The disk that would be short.
        at: usize,
        /// The resource that is short, when, and by how much.
        shortage: Shortage,
    },
}

impl Failover {
    /// For so many disks; nothing is booked.
    pub fn new(disks: usize) -> Self {
        let standby = vec![DiskBooks::default(); disks * disks];
        Self { disks, standby, scratch: Demand::default() }
    }

    /// Time has come to `current`.
    pub fn advance(&mut self, current: SlotIndex) {
        self.standby.iter_mut().for_each(|books| books.advance(current));
    }

    /// What `replica` would have to do if `lost` were lost. A stream's pieces are booked when it
    /// comes in, as they lie on the replica, and taken off as they have been read (not before: what
    /// is in a disk that is lost is to be read again), or when it leaves.
    pub fn standby(&mut self, lost: usize, replica: usize) -> &mut DiskBooks {
        &mut self.standby[lost * self.disks + replica]
    }

    /// Whether the candidate fits on its home disk, without a loss and after the loss of any one
    /// disk.
    pub fn verdict(
        &mut self,
        policy: &dyn Policy,
        disks: &[DiskState<'_>],
        newcomer: FailoverRequest<'_>,
    ) -> FailoverVerdict {
        let FailoverRequest { home, at_home, replica } = newcomer;
        let apart = replica.is_none_or(|(replica, _)| replica != home);
        assert!(apart && disks.len() == self.disks, "a replica is another disk");
        let refused = |lost, at, shortage| FailoverVerdict::Refuse { lost, at, shortage };
        // The test without a loss gives the plan and the slack; the tests after it only accept or
        // refuse.
        let DiskState { books, supply, .. } = &disks[home];
        let (slack, plan) = match policy.verdict(books, supply, at_home) {
            Verdict::Admit { slack, plan } => (slack, plan),
            Verdict::Refuse(shortage) => return refused(None, home, shortage),
        };
        // The candidate's home must do its work beside the standby work for each other disk.
        for lost in (0..self.disks).filter(|lost| *lost != home && !disks[*lost].lost) {
            // Without standby work, this loss only adds memory to a schedule that fits already.
            if self.standby[lost * self.disks + home].is_empty() {
                continue;
            }
            if let Some(shortage) = self.short(policy, disks, lost, home, at_home) {
                return refused(Some(lost), home, shortage);
            }
        }
        // No disk takes this stream over, so no other disk changes with it.
        let Some((replica, at_replica)) = replica else {
            return FailoverVerdict::Admit { slack, plan };
        };
        // The copy's disk must do the candidate's reads if its home is lost, and nothing else of
        // it.
        let short = self.short(policy, disks, home, replica, at_replica);
        match short.or_else(|| self.too_slow(disks, home, replica, at_replica)) {
            Some(shortage) => refused(Some(home), replica, shortage),
            None => FailoverVerdict::Admit { slack, plan },
        }
    }

    /// Whether nothing is booked.
    pub fn is_empty(&self) -> bool {
        self.standby.iter().all(DiskBooks::is_empty)
    }

    // What is short at `to` with the newcomer, if `lost` is lost.
    fn short(
        &mut self,
        policy: &dyn Policy,
        disks: &[DiskState<'_>],
        lost: usize,
        to: usize,
        newcomer: &Demand,
    ) -> Option<Shortage> {
        let DiskState { books, supply, .. } = &disks[to];
        // A lost disk's share of memory goes to the others.
        let memory = supply.memory.saturating_add(inheritance(disks, lost));
        let supply = Supply { memory, ..*supply };
        self.scratch.sum(books.current(), newcomer, &self.standby[lost * self.disks + to]);
        match policy.verdict(books, &supply, &self.scratch) {
            Verdict::Admit { .. } => None,
            Verdict::Refuse(shortage) => Some(shortage),
        }
    }

    // What a replica that is slower than the disk that is lost cannot read in its own slot.
    fn too_slow(
        &mut self,
        disks: &[DiskState<'_>],
        lost: usize,
        to: usize,
        newcomer: &Demand,
    ) -> Option<Shortage> {
        let (home, supply) = (&disks[lost].supply, disks[to].supply);
        if !is_slower(&supply, home) {
            return None;
        }
        // A slower replica must read its standby in the slot in which it is due. Nothing read ahead
        // is credited, hence empty books and a policy without carry-over.
        let mut nothing = DiskBooks::default();
        nothing.advance(disks[to].books.current());
        // Only the disk's time is asked about here; memory was tested with the policy.
        let supply = Supply { memory: u64::MAX >> 1, ..supply };
        self.scratch.sum(nothing.current(), newcomer, &self.standby[lost * self.disks + to]);
        let policy = PolicyKind::InstantaneousMaximum.policy();
        match policy.verdict(&nothing, &supply, &self.scratch) {
            Verdict::Admit { .. } => None,
            Verdict::Refuse(shortage) => Some(shortage),
        }
    }
}

/// The part of a lost disk's memory that each of the others gets.
fn inheritance(disks: &[DiskState<'_>], lost: usize) -> u64 {
    let others = (0..disks.len()).filter(|disk| *disk != lost && !disks[*disk].lost).count();
    disks[lost].supply.memory / (others as u64).max(1)
}

/// Whether one disk takes longer than another for pieces that are booked as if they lay equally
/// well on both.
fn is_slower(one: &Supply<'_>, other: &Supply<'_>) -> bool {
    match (&one.timings.costs, &other.timings.costs) {
        (Some(one), Some(other)) => {
            // Two cost curves may cross, so sweeps of several sizes are compared, with none, half
            // and all but one of the reads sequential.
            let sweeps = [1, 8, 64].into_iter().flat_map(|n| [(n, 0), (n, n / 2), (n, n - 1)]);
            let cost = |costs: &Costs, (reads, follow)| costs.sweep(reads, follow, 0);
            sweeps.into_iter().any(|sweep| cost(one, sweep) > cost(other, sweep))
        }
        (None, None) => one.min_read < other.min_read,
        // Reads and nanoseconds are not comparable: the stricter test applies.
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DiskTimings, PieceDue, PolicyKind};
    use std::time::Duration;
    use units::Moment;

    const DISKS: usize = 3;

    struct Stream {
        home: usize,
        replica: usize,
        due: Vec<u64>,
    }

    fn pieces(due: &[u64]) -> impl Iterator<Item = PieceDue> {
        due.iter().map(|due| {
            let due = SlotIndex(*due);
            PieceDue { piece: 0, due, release: due, len: 1, transfer: 0, followed_after: None }
        })
    }

    /// Each disk reads the earliest due first, `rates` in a slot; at the beginning of slot `when`
    /// the disk `lost` is no more, and what it has not read is its spares'.
    fn all_on_time(streams: &[Stream], rates: [u64; DISKS], lost: usize, when: u64) -> bool {
        let mut queues: [Vec<(u64, usize)>; DISKS] = Default::default();
        for stream in streams {
            queues[stream.home].extend(stream.due.iter().map(|due| (*due, stream.replica)));
        }
        queues.iter_mut().for_each(|queue| queue.sort_unstable());
        for slot in 1..40 {
            if slot == when {
                for (due, replica) in std::mem::take(&mut queues[lost]) {
                    queues[replica].push((due, replica));
                }
                queues.iter_mut().for_each(|queue| queue.sort_unstable());
            }
            for (queue, rate) in queues.iter_mut().zip(rates) {
                queue.drain(..queue.len().min(usize::try_from(rate).unwrap()));
                if queue.first().is_some_and(|(due, _)| *due <= slot) {
                    return false;
                }
            }
        }
        true
    }

    #[test]
    fn whoever_is_let_in_survives_any_loss_at_any_time_and_nobody_is_refused_in_vain() {
        let timings = DiskTimings::default();
        let (mut came, mut for_a_loss, mut anyway) = (0, 0, 0);
        for seed in 0..3000 {
            let mut random = fastrand::Rng::with_seed(seed);
            let (one, alike) = (random.u64(1..4), random.bool());
            let rates: [u64; DISKS] =
                std::array::from_fn(|_| if alike { one } else { random.u64(1..4) });
            let last = [5, 8, 12][random.usize(..3)];
            let mut books = vec![DiskBooks::default(); DISKS];
            let mut failover = Failover::new(DISKS);
            let mut streams: Vec<Stream> = Vec::new();
            for _ in 0..9 {
                let home = random.usize(..DISKS);
                let replica = (home + random.usize(1..DISKS)) % DISKS;
                let mut due: Vec<u64> =
                    (0..random.usize(1..6)).map(|_| random.u64(1..last)).collect();
                due.sort_unstable();
                let mut demand = Demand::default();
                demand.add_track(pieces(&due));
                let disks: Vec<DiskState<'_>> = books
                    .iter()
                    .zip(rates)
                    .map(|(books, rate)| DiskState {
                        books,
                        supply: Supply {
                            min_read: u32::try_from(rate).unwrap(),
                            read_size: 1,
                            memory: 1 << 30,
                            slot: Duration::from_millis(500),
                            free_at: Moment::ZERO,
                            owed: 0,
                            timings: &timings,
                        },
                        lost: false,
                    })
                    .collect();
                let placed =
                    FailoverRequest { home, at_home: &demand, replica: Some((replica, &demand)) };
                let policy = PolicyKind::VbrSim.policy();
                let answer = failover.verdict(policy, &disks, placed);
                streams.push(Stream { home, replica, due });
                match answer {
                    FailoverVerdict::Admit { .. } => {
                        came += 1;
                        books[home].book_demand(&demand);
                        failover.standby(home, replica).book_demand(&demand);
                        for (lost, when) in (0..DISKS).flat_map(|d| (1..14).map(move |w| (d, w))) {
                            assert!(
                                all_on_time(&streams, rates, lost, when),
                                "seed {seed}: {lost} lost in slot {when}"
                            );
                        }
                    }
                    FailoverVerdict::Refuse { lost, .. } => {
                        match lost {
                            Some(_) => for_a_loss += 1,
                            None => anyway += 1,
                        }
                        let (lost, when) = lost.map_or((0, 99), |lost| (lost, 1));
                        let slower = rates[replica] < rates[home];
                        let late = !all_on_time(&streams, rates, lost, when);
                        assert!(slower || late, "seed {seed}: in vain");
                        streams.pop();
                    }
                }
            }
            for stream in &streams {
                let standby = failover.standby(stream.home, stream.replica);
                pieces(&stream.due).for_each(|piece| standby.unbook(piece));
            }
            assert!(failover.is_empty(), "seed {seed}");
        }
        assert!(came > 3000 && for_a_loss > 2000 && anyway > 500, "{came} {for_a_loss} {anyway}");
    }
}
