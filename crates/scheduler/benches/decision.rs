//! How long a decision takes: an hour's title, seen at once, among 500 like it.
//!
//! `cargo bench -p scheduler --bench decision` prints times. What a busy machine does not change is
//! counted by `--bench instructions`.

#![allow(clippy::disallowed_methods, reason = "it measures")]

mod fixture;

use criterion::{Criterion, criterion_group, criterion_main};
use fixture::{ENOUGH, Fixture, PLENTY};
use scheduler::{Demand, PolicyKind};
use std::hint::black_box;

fn decisions(criterion: &mut Criterion) {
    let mut demand = Demand::default();
    let fixtures = [
        ("with time to spare", Fixture::new(PLENTY)),
        ("with time to spare, memory short", Fixture::new(ENOUGH)),
        ("the last to come in", Fixture::new(PLENTY).tight(true)),
        ("the last to come in, memory short", Fixture::new(ENOUGH).tight(true)),
        ("the first to be refused", Fixture::new(PLENTY).tight(false)),
    ];
    for (what, fixture) in &fixtures {
        fixture.ask(&fixture.candidate, 0, &mut demand);
        for kind in [PolicyKind::TimeDomain, PolicyKind::VbrSim] {
            criterion.bench_function(&format!("{}, {what}", kind.name()), |bench| {
                bench.iter(|| fixture.decide(kind, black_box(&demand)));
            });
        }
    }
    let fixture = Fixture::new(PLENTY);
    criterion.bench_function("a title's demand", |bench| {
        bench.iter(|| fixture.ask(&fixture.candidate, 0, black_box(&mut demand)));
    });
    let (_, refused) = &fixtures[4];
    refused.ask(&refused.candidate, 0, &mut demand);
    criterion.bench_function("120 later starts of 3 renditions", |bench| {
        bench.iter(|| black_box(refused.later(&mut demand)));
    });
}

criterion_group!(benches, decisions);
criterion_main!(benches);
