//! What decisions are measured on: a disk with 500 streams of an hour, each begun in a slot of its own,
//! and one at the door. With time to spare, or with so little that the one at the door is the last.

#![allow(dead_code, reason = "each bench uses a part")]

use disk::DiskModel;
use scheduler::admission::earliest_shift;
use scheduler::{
    Curve, Demand, DiskBooks, Facts, Failover, PieceDue, Placed, Plan, PolicyKind, Standing,
    Supply, Survival, Timing, Verdict,
};
use std::time::Duration;
use units::{ByteCount, Moment, SlotIndex};

/// A disk with 500 streams of an hour on it, each begun in a slot of its own, and one at the door.
pub(crate) struct House {
    pub(crate) facts: Facts,
    pub(crate) books: DiskBooks,
    pub(crate) memory: u64,
    pub(crate) candidate: Vec<(Vec<u32>, u32)>,
    transfer: Vec<u32>,
    /// Whether a title's reads lie one behind the other, on a disk where that matters.
    followed: Vec<bool>,
}

impl House {
    pub(crate) fn new(memory: u64) -> Self {
        Self::on("ssd-nvme", VIEWERS, memory)
    }

    /// A disk with an arm, and as many viewers as it holds.
    pub(crate) fn with_arm(memory: u64) -> Self {
        Self::on("hdd-20tb", VIEWERS_OF_AN_ARM, memory)
    }

    fn on(disk: &str, viewers: u64, memory: u64) -> Self {
        let model = DiskModel::preset(disk).expect("comes along");
        let facts = Facts::of_model(&model, ByteCount::MIB, 16);
        let costs = facts.costs.as_ref().expect("of a model");
        let transfer = vec![u32::try_from(costs.transfer(0, 1 << 20)).expect("short")];
        let followed = vec![costs.shortest_following().is_some(); PIECES];
        let (books, candidate) = (DiskBooks::default(), hour(0));
        let mut house = Self { facts, books, memory, candidate, transfer, followed };
        for viewer in 0..viewers {
            let mut demand = Demand::default();
            house.ask(&hour(viewer), viewer, &mut demand);
            house.books.book_demand(&demand);
        }
        // Everything that ended before the last began is past.
        house
    }

    pub(crate) fn ask(&self, title: &[(Vec<u32>, u32)], at: u64, demand: &mut Demand) {
        demand.begin(SlotIndex(at));
        for (due, piece) in title {
            let bytes = due.len() as u64 * u64::from(*piece);
            let (transfer, followed) = (&self.transfer, &self.followed);
            let curve = Curve { due, piece: *piece, bytes, transfer, followed };
            let pieces: Vec<PieceDue> = timing(at).pieces(curve, 0).collect();
            demand.add_track(pieces.into_iter());
        }
    }

    /// The same house on a disk so slow that the candidate is only just let in; or, one step slower,
    /// just not.
    pub(crate) fn tight(self, lets_in: bool) -> Self {
        let mut house = self;
        let (mut demand, mut plan) = (Demand::default(), Plan::default());
        house.ask(&house.candidate, 0, &mut demand);
        let (mut fits, mut too_slow) = (0, 1 << 20);
        while too_slow - fits > 1 {
            house.facts.behind = u64::midpoint(fits, too_slow);
            let verdict = house.decide(PolicyKind::TimeDomain, &demand, &mut plan);
            if verdict.is_admit() {
                fits = house.facts.behind;
            } else {
                too_slow = house.facts.behind;
            }
        }
        house.facts.behind = if lets_in { fits } else { too_slow };
        house
    }

    /// The earliest of 120 later starts for each of three renditions.
    pub(crate) fn later(&self, demand: &mut Demand, plan: &mut Plan) -> [Option<u64>; 3] {
        let policy = PolicyKind::TimeDomain.policy();
        let supply = self.supply();
        [0, 1, 2].map(|_| {
            earliest_shift(120, |slots| {
                demand.shift(slots);
                let answer = match policy.verdict(&self.books, &supply, demand, plan) {
                    Verdict::Admit { .. } => Ok(()),
                    Verdict::Refuse(shortage) => {
                        Err(policy.ruled_out(&self.books, &supply, demand, shortage))
                    }
                };
                demand.unshift(slots);
                answer
            })
        })
    }

    /// What each of two such disks would have to do beside its own if the other were lost.
    pub(crate) fn standby(&self) -> Failover {
        let (mut failover, mut demand) = (Failover::new(2), Demand::default());
        for viewer in 0..VIEWERS {
            self.ask(&hour(viewer), viewer, &mut demand);
            failover.standby(0, 1).book_demand(&demand);
            failover.standby(1, 0).book_demand(&demand);
        }
        failover
    }

    /// Whether the candidate comes in on one of two such disks if either may be lost.
    pub(crate) fn survives(
        &self,
        failover: &mut Failover,
        demand: &Demand,
        plan: &mut Plan,
    ) -> Survival {
        let standing = Standing { books: &self.books, supply: self.supply(), lost: false };
        let newcomer = Placed { home: 0, at_home: demand, spare: Some((1, demand)) };
        failover.verdict(PolicyKind::TimeDomain.policy(), &[standing; 2], newcomer, plan)
    }

    fn supply(&self) -> Supply<'_> {
        Supply {
            min_read: 600,
            read_size: 1 << 20,
            memory: self.memory,
            slot: SLOT,
            free_at: Moment::ZERO,
            facts: &self.facts,
        }
    }

    pub(crate) fn decide(&self, kind: PolicyKind, demand: &Demand, plan: &mut Plan) -> Verdict {
        kind.policy().verdict(&self.books, &self.supply(), demand, plan)
    }
}

fn timing(at: u64) -> Timing {
    Timing {
        origin: SlotIndex(at).start(SLOT),
        startup: Duration::from_secs(1),
        from_ms: 0,
        kept_from_ms: 0,
        slot: SLOT,
        early: 0,
    }
}

/// An hour at about 5 Mb/s whose rate wanders by half, with sound at 128 kb/s.
pub(crate) fn hour(title: u64) -> Vec<(Vec<u32>, u32)> {
    let mut random = fastrand::Rng::with_seed(title);
    let (mut due, mut at) = (Vec::new(), 0);
    while at < HOUR_MS {
        due.push(at);
        at += random.u32(800..2500);
    }
    vec![(due, 1 << 20), ((0..HOUR_MS).step_by(4000).collect(), 64 << 10)]
}

const VIEWERS: u64 = 500;
const VIEWERS_OF_AN_ARM: u64 = 50;
/// More than any title has.
const PIECES: usize = 10_000;
const SLOT: Duration = Duration::from_millis(500);
const HOUR_MS: u32 = 3_600_000;

/// More memory than anybody needs ...
pub(crate) const PLENTY: u64 = 1 << 50;
/// ... and about as much as these do.
pub(crate) const ENOUGH: u64 = 4 << 30;
