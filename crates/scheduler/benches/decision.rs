//! How long a decision takes: an hour's title, seen at once, among 500 like it.
//!
//! `cargo bench -p scheduler --bench decision` prints times. Instructions, which a busy machine does
//! not change: `valgrind --tool=callgrind --toggle-collect='decision::*' target/release/deps/decision-*
//! --bench --profile-time 1` and `callgrind_annotate`.

#![allow(clippy::disallowed_methods, reason = "it measures")]

use criterion::{Criterion, criterion_group, criterion_main};
use disk::DiskModel;
use scheduler::admission::earliest_shift;
use scheduler::{
    Curve, Demand, DiskBooks, Facts, PieceDue, Plan, PolicyKind, Supply, Timing, Verdict,
};
use std::hint::black_box;
use std::time::Duration;
use units::{ByteCount, Moment, SlotIndex};

/// A disk with 500 streams of an hour on it, each begun in a slot of its own, and one at the door.
struct House {
    facts: Facts,
    books: DiskBooks,
    memory: u64,
    candidate: Vec<(Vec<u32>, u32)>,
    transfer: Vec<u32>,
}

impl House {
    fn new(memory: u64) -> Self {
        let model = DiskModel::preset("ssd-nvme").expect("comes along");
        let facts = Facts::of_model(&model, ByteCount::MIB, 16);
        let transfer = facts.costs.as_ref().expect("of a model").transfer(0, 1 << 20);
        let transfer = vec![u32::try_from(transfer).expect("short")];
        let mut house =
            Self { facts, books: DiskBooks::default(), memory, candidate: hour(0), transfer };
        for viewer in 0..VIEWERS {
            let mut demand = Demand::default();
            house.ask(&hour(viewer), viewer, &mut demand);
            house.books.book_demand(&demand);
        }
        // Everything that ended before the last began is past.
        house
    }

    fn ask(&self, title: &[(Vec<u32>, u32)], at: u64, demand: &mut Demand) {
        demand.begin(SlotIndex(at));
        for (due, piece) in title {
            let bytes = due.len() as u64 * u64::from(*piece);
            let curve = Curve { due, piece: *piece, bytes, transfer: &self.transfer };
            let pieces: Vec<PieceDue> = timing(at).pieces(curve, 0).collect();
            demand.add_track(pieces.into_iter());
        }
    }

    fn decide(&self, kind: PolicyKind, demand: &Demand, plan: &mut Plan) -> Verdict {
        let supply = Supply {
            min_read: 600,
            read_size: 1 << 20,
            memory: self.memory,
            slot: SLOT,
            free_at: Moment::ZERO,
            facts: &self.facts,
        };
        kind.policy().verdict(&self.books, &supply, demand, plan)
    }
}

fn timing(at: u64) -> Timing {
    Timing {
        origin: SlotIndex(at).start(SLOT),
        startup: Duration::from_secs(1),
        from_ms: 0,
        kept_from_ms: 0,
        slot: SLOT,
    }
}

/// An hour at about 5 Mb/s whose rate wanders by half, with sound at 128 kb/s.
fn hour(title: u64) -> Vec<(Vec<u32>, u32)> {
    let mut random = fastrand::Rng::with_seed(title);
    let (mut due, mut at) = (Vec::new(), 0);
    while at < HOUR_MS {
        due.push(at);
        at += random.u32(800..2500);
    }
    vec![(due, 1 << 20), ((0..HOUR_MS).step_by(4000).collect(), 64 << 10)]
}

fn decisions(criterion: &mut Criterion) {
    let (mut demand, mut plan) = (Demand::default(), Plan::default());
    for (what, memory) in [("plenty of memory", 1 << 50), ("as much memory as is needed", 4 << 30)]
    {
        let house = House::new(memory);
        for kind in [PolicyKind::TimeDomain, PolicyKind::VbrSim] {
            house.ask(&house.candidate, 0, &mut demand);
            assert!(house.decide(kind, &demand, &mut plan).is_admit(), "{}", kind.name());
            criterion.bench_function(&format!("{}, {what}", kind.name()), |bench| {
                bench.iter(|| house.decide(kind, black_box(&demand), &mut plan));
            });
        }
    }
    let house = House::new(1 << 50);
    criterion.bench_function("a title's demand", |bench| {
        bench.iter(|| house.ask(&house.candidate, 0, black_box(&mut demand)));
    });
    // 120 later starts of three renditions, none of which fits.
    house.ask(&house.candidate, 0, &mut demand);
    criterion.bench_function("120 later starts of 3 renditions", |bench| {
        bench.iter(|| {
            (0..3)
                .filter_map(|_| {
                    earliest_shift(120, |slots| {
                        demand.shift(slots);
                        black_box(house.decide(PolicyKind::TimeDomain, &demand, &mut plan));
                        demand.unshift(slots);
                        Err(1)
                    })
                })
                .count()
        });
    });
}

criterion_group!(benches, decisions);
criterion_main!(benches);

const VIEWERS: u64 = 500;
const SLOT: Duration = Duration::from_millis(500);
const HOUR_MS: u32 = 3_600_000;
