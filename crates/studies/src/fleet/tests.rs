//! Small fleets: a known answer, and what copies, comparison and moves are good for. Each run is
//! checked from outside by its events. Run one again with its seed, which a failure prints.

use super::*;

/// A fleet of 20 nodes of 5 disks of 20 streams, 1,000 titles.
fn fleet(policy: &str, scenario: FleetScenario, seed: u64) -> FleetSetup {
    FleetSetup {
        nodes: 20,
        rack: 2,
        disks: 5,
        streams: 20,
        rate: BitRate(5_000_000),
        titles: 1_000,
        zipf: 0.8,
        load: 0.8,
        hold: Duration::from_secs(3600),
        time: Duration::from_secs(4 * 3600),
        digests: Duration::from_secs(1),
        policy: *FleetPolicy::ALL.iter().find(|known| known.name == policy).unwrap(),
        scenario,
        seed,
    }
}

const SEEDS: std::ops::Range<u64> = 1..4;

#[test]
fn one_title_on_one_disk_blocks_as_erlang_says() {
    // Erlang's formula B for 8 erlangs and 10 streams.
    let erlang_b = |offered: f64, streams: u32| {
        (1..=streams).fold(1.0, |b, n| offered * b / (f64::from(n) + offered * b))
    };
    let expected = erlang_b(8.0, 10);
    assert!((expected - 0.1217).abs() < 1e-4, "{expected}");
    let setup = FleetSetup {
        nodes: 1,
        rack: 1,
        disks: 1,
        streams: 10,
        titles: 1,
        load: 0.8,
        hold: Duration::from_secs(60),
        time: Duration::from_secs(3600 * 200),
        digests: Duration::from_secs(3600),
        ..fleet("moves", FleetScenario::Steady, 7)
    };
    let run = setup.run();
    // About 96,000 viewers; blocked ones come in bursts, so that three times the deviation of
    // independent ones is allowed twice over.
    let part = run.blocked_part();
    assert!((part - expected).abs() < 0.008, "seed {}: {part}, not {expected}", setup.seed);
    assert_eq!(run.timed_refusals, run.blocked, "each refusal has a time");
}

#[test]
fn popular_titles_need_copies_and_copies_are_enough() {
    for seed in SEEDS {
        let blocked = |policy: &str| {
            let run = fleet(policy, FleetScenario::Steady, seed).run();
            (run.blocked_part(), run.extra)
        };
        let ((two, none), (most, extra)) = (blocked("two-least"), blocked("moves"));
        assert!(two > 0.03 && none == 0.0, "seed {seed}: {two} blocked with two copies");
        assert!(most < 0.001 && extra < 0.2, "seed {seed}: {most} blocked, {extra} extra copies");
    }
}

#[test]
fn viewers_of_a_lost_node_are_admitted_again_by_moves() {
    let lost = |policy: &str| {
        let runs = SEEDS.map(|seed| fleet(policy, FleetScenario::NodeLoss, seed).run());
        runs.fold([0, 0, 0], |[lost, refused, moved], run| {
            assert_eq!(run.without_copy, 0, "one node of twenty leaves a copy of each title");
            [lost + run.lost, refused + run.not_again, moved + run.director.moved]
        })
    };
    let ([before, refused, none], [_, again, moved]) = (lost("proportional-least"), lost("moves"));
    assert_eq!(none, 0);
    assert!(refused * 50 > before && again * 5 < refused, "{before}: {refused}, {again}, {moved}");
}

#[test]
fn a_lost_rack_leaves_a_copy_of_each_title() {
    for seed in SEEDS {
        let run = fleet("moves", FleetScenario::RackLoss, seed).run();
        assert_eq!(run.without_copy, 0, "seed {seed}");
        assert!(run.lost > 120, "seed {seed}: two nodes with {} viewers", run.lost);
    }
}

#[test]
fn a_premiere_gets_copies_while_it_is_wanted() {
    for seed in SEEDS {
        // 64 viewers at a time, where two copies hold 40.
        let run = |policy| {
            let small = fleet(policy, FleetScenario::Premiere, seed);
            let (hold, time) = (Duration::from_secs(600), Duration::from_secs(2 * 3600));
            FleetSetup { nodes: 40, hold, time, ..small }.run()
        };
        let (run, two) = (run("moves"), run("two-least"));
        assert!(run.filled > 0 && two.filled == 0, "seed {seed}: {} fills", run.filled);
        assert_eq!(run.director.content_misses, 0, "seed {seed}");
        assert!(run.blocked_part() < 0.01, "seed {seed}: {}", run.blocked_part());
    }
}

#[test]
fn an_old_view_costs_questions_and_few_viewers() {
    for seed in SEEDS {
        let with = |seconds| {
            let digests = Duration::from_secs(seconds);
            FleetSetup { digests, ..fleet("moves", FleetScenario::Crowd, seed) }.run()
        };
        let (fresh, old) = (with(1), with(120));
        let refusals = [fresh.director.node_refusals, old.director.node_refusals];
        assert!(refusals[0] <= refusals[1], "seed {seed}: {refusals:?}");
        // Four tries and twelve moves, each with one more question: the bound.
        assert!(old.director.asked <= 28 * old.director.attempts, "seed {seed}");
        assert!(old.blocked_part() < 0.02, "seed {seed}: {}", old.blocked_part());
    }
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let run = |seed| fleet("moves", FleetScenario::NodeLoss, seed).run();
    assert_eq!(run(5), run(5));
    assert_ne!(run(5), run(6));
}
