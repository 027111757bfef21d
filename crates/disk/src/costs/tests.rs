//! The charges compared with the times of a head, in the worst case and at random.

use super::*;
use crate::{ReadGuarantee, ReadPace};
use proptest::prelude::*;
use std::time::Duration;
use units::Moment;

const SIZES: [u64; 3] = [64 << 10, 1 << 20, 4 << 20];

#[test]
fn joining_sweeps_never_costs() {
    for model in DiskModel::presets() {
        for (size, small) in SIZES.into_iter().flat_map(|size| [(size, false), (size, true)]) {
            let model = if small { model.scaled_to(ByteCount(1 << 30)) } else { model.clone() };
            let costs = Costs::of_model(&model, ByteCount(size), 4);
            let table: Vec<u64> = (0..=2600).map(|reads| costs.positioning(reads)).collect();
            assert!(table.is_sorted(), "{}: falls", model.name());
            for a in 0..table.len() {
                for b in 0..=a.min(table.len() - 1 - a) {
                    let apart = costs.positioning_of_sweeps(2, (a + b) as u64);
                    assert!(table[a] + table[b] <= apart, "{}: {a}, {b}", model.name());
                    // A nanosecond of rounding for each.
                    assert!(
                        table[a + b] <= table[a] + table[b],
                        "{}, {size}: {a} + {b}",
                        model.name()
                    );
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn no_sweep_takes_longer_than_it_is_charged(
        model in prop::sample::select(DiskModel::presets()),
        scaled in prop_oneof![Just(None), (1u64 << 28..1 << 34).prop_map(Some)],
        size in prop::sample::select(SIZES.to_vec()),
        reads in 1usize..60,
        depth in 1usize..5,
        clustered in 1u64..64,
        wait in 0u64..1 << 25,
        seed in any::<u64>(),
    ) {
        let model = scaled.map_or(model.clone(), |size| model.scaled_to(ByteCount(size)));
        let depth32 = u32::try_from(depth).unwrap();
        let costs = Costs::of_model(&model, ByteCount(size), depth32);
        let mut rng = fastrand::Rng::with_seed(seed);
        let room = (model.capacity().0 - size) / clustered;
        let place = |rng: &mut fastrand::Rng| {
            rng.u64(0..clustered) * room + rng.u64(0..=room / clustered)
        };
        let (mut head, from) = (model.head(), place(&mut rng));
        let start = head.serve(Moment(12_345_678), from, size, false).finish
            + Duration::from_nanos(wait);
        let mut places: Vec<(u64, u64)> =
            (0..reads).map(|_| (place(&mut rng), rng.u64(1..=size / 4096) * 4096)).collect();
        places.sort_unstable();
        let arm = costs.place(from);
        let near = |place: &(u64, u64)| (costs.place(place.0) - arm).abs();
        if near(places.last().unwrap()) < near(&places[0]) {
            places.reverse();
        }
        let (mut under_way, mut now) = (std::collections::VecDeque::new(), start);
        for (place, len) in &places {
            if under_way.len() >= depth {
                now = under_way.pop_front().unwrap();
            }
            under_way.push_back(head.serve(now, *place, *len, false).finish);
        }
        let took = under_way.back().unwrap().since(start);
        let transfer = places.iter().map(|(place, len)| costs.transfer(*place, *len)).sum();
        let charged = Duration::from_nanos(costs.batch(reads as u64, transfer));
        prop_assert!(took <= charged, "{reads} reads took {took:?}, charged {charged:?}");
    }
}

#[test]
fn removing_a_read_from_a_sweep_never_costs() {
    let mut following = 0;
    for model in DiskModel::presets() {
        let costs = Costs::of_model(&model, ByteCount::MIB, 4);
        let Some(shortest) = costs.shortest_following() else { continue };
        following += 1;
        for reads in 1..=600 {
            for follows in 0..reads {
                let sweep = costs.sweep(reads, follows, reads * shortest);
                let less = (reads - 1) * shortest;
                let of = |follows| costs.sweep(reads - 1, follows, less);
                assert!(of(follows.saturating_sub(2)) <= sweep, "{}", model.name());
                assert!(of(follows.min(reads - 1)) <= sweep, "{}", model.name());
            }
        }
    }
    assert!(following > 1, "disks that read ahead");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    /// Visits of several contiguous reads, in both directions of the head, and with the worst
    /// rotation.
    #[test]
    fn no_sweep_of_visits_takes_longer_than_it_is_charged(
        model in prop::sample::select(DiskModel::presets()),
        size in prop::sample::select(SIZES.to_vec()),
        lengths in prop::collection::vec(1u64..9, 1..30),
        depth in 1usize..5,
        clustered in 1u64..64,
        worst in any::<bool>(),
        seed in any::<u64>(),
    ) {
        let costs = Costs::of_model(&model, ByteCount(size), u32::try_from(depth).unwrap());
        let mut rng = fastrand::Rng::with_seed(seed);
        let room = (model.capacity().0 - size * 9) / clustered;
        let mut place = || (rng.u64(0..clustered) * room + rng.u64(0..=room)) / 4096 * 4096;
        let (mut head, from) = (model.head(), place());
        let start = head.serve(Moment(12_345_678), from, size, false).finish;
        let mut visits: Vec<(u64, u64)> = lengths.iter().map(|reads| (place(), *reads)).collect();
        visits.sort_unstable();
        let arm = costs.place(from + size);
        let near = |visit: &(u64, u64)| (costs.place(visit.0) - arm).abs();
        if near(visits.last().unwrap()) < near(&visits[0]) {
            visits.reverse();
        }
        let (mut under_way, mut now) = (std::collections::VecDeque::new(), start);
        let (mut transfer, mut follows) = (0, 0);
        for (at, reads) in &visits {
            for read in 0..*reads {
                if under_way.len() >= depth {
                    now = under_way.pop_front().unwrap();
                }
                let offset = at + read * size;
                let service = if worst {
                    head.serve_turned(now, offset, size, 1.0)
                } else {
                    head.serve(now, offset, size, false)
                };
                under_way.push_back(service.finish);
                let takes = costs.transfer(offset, size);
                let long = costs.shortest_following().is_some_and(|least| takes >= least);
                follows += u64::from(read > 0 && long);
                transfer += takes;
            }
        }
        let took = under_way.back().unwrap().since(start);
        let reads = lengths.iter().sum();
        let charged = Duration::from_nanos(costs.sweep(reads, follows, transfer));
        prop_assert!(took <= charged, "{visits:?} took {took:?}, charged {charged:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Reads in any order, each alone beside its own charge.
    #[test]
    fn no_read_on_a_path_takes_longer_than_its_step(
        model in prop::sample::select(DiskModel::presets()),
        size in prop::sample::select(SIZES.to_vec()),
        reads in 2usize..40,
        clustered in 1u64..64,
        worst in any::<bool>(),
        seed in any::<u64>(),
    ) {
        let costs = Costs::of_model(&model, ByteCount(size), 2);
        prop_assume!(costs.has_path());
        let mut rng = fastrand::Rng::with_seed(seed);
        let room = (model.capacity().0 - size * 2) / clustered;
        let mut head = model.head();
        let (mut now, mut from) = (Moment(12_345_678), None);
        for read in 0..reads {
            let next = from.filter(|_| rng.u8(..3) == 0);
            let place = (rng.u64(0..clustered) * room + rng.u64(0..=room)) / 4096 * 4096;
            let offset = next.filter(|at| at + size <= model.capacity().0).unwrap_or(place);
            let turn = if worst { 1.0 } else { rng.f64() };
            let done = head.serve_turned(now, offset, size, turn).finish;
            let transfer = costs.transfer(offset, size);
            let anywhere = costs.step(None, offset);
            let step = costs.step(from, offset);
            prop_assert!(step <= anywhere, "no step is longer than from anywhere");
            let goes_on = costs.following().filter(|_| from == Some(offset));
            let charged = Duration::from_nanos(goes_on.unwrap_or(step) + transfer);
            let took = done.since(now);
            prop_assert!(took <= charged, "read {read} took {took:?}, charged {charged:?}");
            (now, from) = (done, Some(offset + size));
        }
    }

    /// From anywhere, in any direction.
    #[test]
    fn no_sweep_that_begins_with_its_farther_end_takes_longer_than_its_charge_from_an_unknown_start(
        model in prop::sample::select(DiskModel::presets()),
        reads in 1usize..40,
        clustered in 1u64..64,
        backwards in any::<bool>(),
        seed in any::<u64>(),
    ) {
        let size = 1 << 20;
        let costs = Costs::of_model(&model, ByteCount(size), 1);
        prop_assume!(costs.has_path());
        let mut rng = fastrand::Rng::with_seed(seed);
        let room = (model.capacity().0 - size) / clustered;
        let mut place = || rng.u64(0..clustered) * room + rng.u64(0..=room);
        let (mut head, from) = (model.head(), place());
        let start = head.serve_turned(Moment(12_345_678), from, size, 1.0).finish;
        let mut places: Vec<u64> = (0..reads).map(|_| place()).collect();
        places.sort_unstable();
        if backwards {
            places.reverse();
        }
        let serve = |now, place: &u64| head.serve_turned(now, *place, size, 1.0).finish;
        let took = places.iter().fold(start, serve).since(start);
        let transfer = places.iter().map(|place| costs.transfer(*place, size)).sum();
        let charged = Duration::from_nanos(costs.batch(reads as u64, transfer) + costs.unknown_start());
        prop_assert!(took <= charged, "{reads} reads took {took:?}, charged {charged:?}");
    }
}

/// The other side of the bound: evenly spread reads that each wait for a whole revolution take
/// within a few thousandths of their charge. No sound bound could be lower.
#[test]
fn the_worst_sweep_takes_nearly_its_charge() {
    for (name, reads) in [("hdd-20tb", 203), ("hdd-20tb", 20), ("st39183w", 62)] {
        let model = DiskModel::preset(name).unwrap();
        let size = 4 << 20;
        let costs = Costs::of_model(&model, ByteCount(size), 1);
        let mut head = model.head();
        let pitch = (model.capacity().0 - size) / (reads - 1);
        let (mut now, mut transfer) = (Moment::ZERO, 0);
        for read in 0..reads {
            now = head.serve_turned(now, read * pitch, size, 1.0).finish;
            transfer += costs.transfer(read * pitch, size);
        }
        let charged = Duration::from_nanos(costs.batch(reads, transfer));
        let beyond = charged.as_secs_f64() / now.since(Moment::ZERO).as_secs_f64() - 1.0;
        assert!((0.0..0.02).contains(&beyond), "{name}, {reads} reads: {beyond:.4}");
    }
}

#[test]
fn a_calibrated_disk_is_charged_by_zone_and_by_its_worst_placement() {
    let mbps = |mb: u64| BitRate(mb * 8_000_000);
    let (slot, longest) = (Duration::from_millis(500), Duration::from_millis(60));
    let guarantee = ReadGuarantee::of_slot(slot, ByteCount(1_000_000), 20, 30.0, longest);
    let record = Calibration {
        slot,
        guarantees: vec![guarantee],
        queue_depth: 4,
        r0: mbps(150),
        t0: Duration::from_millis(9),
        zones: vec![(ByteCount(5), mbps(200)), (ByteCount(1 << 30), mbps(100))],
        actuator: None,
        writing: None,
        method: String::new(),
        measured_at: 0,
        measured: None,
        outliers: Vec::new(),
    };
    let of = |record: &Calibration, size| Costs::of_calibration(record, ByteCount(size));
    let costs = of(&record, 500_000).unwrap();
    // 500 ms for 20 reads are 25 ms each, of which the slower zone's transfer takes 10.
    // The longest took 35 ms more, which is charged once per sweep.
    assert_eq!(costs.positioning(3), 35_000_000 + 45_000_000);
    assert_eq!(costs.positioning(5000), 5 * 35_000_000 + 5000 * 15_000_000);
    assert_eq!(costs.transfer(0, 1_000_000), 5_000_001);
    assert_eq!(costs.transfer(1 << 30, 1_000_000), 10_000_001);
    assert_eq!(costs.transfer((1 << 30) - 500_000, 1_000_000), 7_500_001, "half and half");
    assert_eq!(costs.batch(1, costs.transfer(1 << 40, 1_000_000)), 60_000_001, "the longest");
    let without = |change: fn(&mut Calibration)| {
        let mut record = record.clone();
        change(&mut record);
        of(&record, 500_000)
    };
    assert_eq!(of(&record, 2_000_000), None, "no guarantee for such reads");
    assert_eq!(without(|r| r.guarantees[0].min_read = 0), None);
    // Zones that no disk has: every place costs the same, 25 ms for a read of 1 MB.
    let flat: [fn(&mut Calibration); 5] = [
        |r| r.zones.clear(),
        |r| r.zones[1].1 = BitRate(0),
        |r| r.zones[1].1 = BitRate(80_000_000),
        |r| r.zones[1].0 = ByteCount::ZERO,
        |r| r.zones.reverse(),
    ];
    for change in flat {
        let costs = without(change).unwrap();
        for place in [0, 1 << 30, 1 << 40] {
            let read = costs.batch(1, costs.transfer(place, 1_000_000));
            assert!((60_000_000..60_000_100).contains(&read), "{read}");
        }
    }
}

#[test]
fn a_throttled_disk_is_charged_its_delay_once_in_a_sweep() {
    let ms = Duration::from_millis;
    let at_pace = |kib: u64, min_read, each| ReadGuarantee {
        pace: ReadPace { once: ms(100), each },
        ..ReadGuarantee::of_slot(ms(500), ByteCount::kib(kib), min_read, 200.0, ms(101))
    };
    let guarantees = vec![
        at_pace(64, 600, Duration::from_micros(700)),
        at_pace(256, 158, Duration::from_micros(2500)),
    ];
    let model = DiskModel::preset("ssd-sata").unwrap();
    let record = Calibration {
        guarantees,
        // Means of short bursts.
        zones: [90, 140, 100].map(|mb| (ByteCount(mb), BitRate(mb * 8_000_000))).to_vec(),
        ..Calibration::from_model(&model, ms(500), &[])
    };
    let costs = Costs::of_calibration(&record, ByteCount::kib(256)).unwrap();
    let sweep = |reads: u64, kib: u64| costs.batch(reads, reads * costs.transfer(0, kib << 10));
    let near = |time: u64, millis: u64| time.abs_diff(millis * 1_000_000) < 100_000;
    assert!(near(sweep(200, 256), 100 + 500), "{}", sweep(200, 256));
    assert!(near(sweep(200, 64), 100 + 140), "{}", sweep(200, 64));
    assert!(sweep(200, 128) < sweep(200, 256));
}

#[test]
fn absurd_places_have_a_cost() {
    let model = DiskModel::preset("st39183w").unwrap();
    let costs = Costs::of_model(&model, ByteCount::MIB, 0);
    let end = model.capacity().0;
    let last = costs.transfer(end - (1 << 20), 1 << 20);
    assert_eq!(costs.transfer(end, 1 << 20), last);
    assert_eq!(costs.transfer(u64::MAX, 1 << 20), last);
    assert!(costs.transfer(0, u64::MAX) > 0 && costs.place(u64::MAX) <= 1.0);
    assert_eq!((costs.positioning(0), costs.positioning(u64::MAX)), (0, u64::MAX));
}
