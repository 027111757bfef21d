//! Calibrations of modelled disks in their own time: the result matches the model.

use super::*;
use disk::{Costs, DiskModel, Head};
use std::collections::VecDeque;
use units::Moment;

/// A modelled disk in its own time.
struct Modelled {
    head: Head,
    now: Moment,
}

impl ReadTimer for Modelled {
    fn elapsed(&self) -> Duration {
        self.now.since(Moment::ZERO)
    }

    fn round(&mut self, places: &[u64], size: u64, depth: u32) -> Result<RoundTimes, DeviceError> {
        let start = self.now;
        let mut round = RoundTimes::default();
        let mut under_way: VecDeque<(Moment, Moment, bool)> = VecDeque::new();
        let mut last_end = start;
        let mut settle = |(asked, end, goes_on): (Moment, Moment, bool)| {
            let alone = end.since(asked.max(last_end));
            round.longest = round.longest.max(alone);
            if goes_on {
                round.following = round.following.max(alone);
            }
            last_end = end;
            round.ends.push(end.since(start));
            end
        };
        let mut before = None;
        for place in places {
            if under_way.len() >= usize::try_from(depth).unwrap() {
                self.now = settle(under_way.pop_front().unwrap());
            }
            let end = self.head.serve(self.now, *place, size, false).finish;
            under_way.push_back((self.now, end, before == Some(*place)));
            before = Some(*place + size);
        }
        for read in under_way {
            self.now = settle(read);
        }
        round.took = self.now.since(start);
        Ok(round)
    }

    fn alone(&mut self, places: &[u64], size: u64) -> Result<Vec<TimedRead>, DeviceError> {
        let mut after = None;
        let one = |place: &u64| {
            let end = self.head.serve(self.now, *place, size, false).finish;
            let read = TimedRead { offset: *place, size, time: end.since(self.now), after };
            (self.now, after) = (end, Some((*place, *place + size)));
            read
        };
        Ok(places.iter().map(one).collect())
    }

    /// The writes are evenly distributed between the reads.
    fn round_with_writes(
        &mut self,
        places: &[u64],
        size: u64,
        depth: u32,
        writes: &WriteBatch,
    ) -> Result<RoundTimes, DeviceError> {
        let mut whole = RoundTimes::default();
        let parts = places.chunks(places.len().div_ceil(writes.places.len()));
        for (part, write) in parts.zip(&writes.places) {
            let start = self.now;
            let times = self.round(part, size, depth)?;
            whole.ends.extend(times.ends.iter().map(|end| whole.took + *end));
            self.now = self.head.serve(self.now, *write, writes.size, true).finish;
            whole.took += self.now.since(start);
        }
        Ok(whole)
    }
}

fn calibrate(model: &DiskModel, seed: u64, budget: u64) -> (Calibration, Duration) {
    let middle = units::align_down(model.capacity().0 / 2, 1 << 20);
    let options = CalibrateOptions {
        seed,
        budget: Duration::from_secs(budget),
        scratch: Some(middle..middle + (64 << 20)),
        ..CalibrateOptions::default()
    };
    let whole = 0..model.capacity().0;
    let places = ReadableArea::new(whole.clone(), &[whole], 4 << 20).unwrap();
    let mut bench = Modelled { head: model.head(), now: Moment::ZERO };
    let mut stages = Vec::new();
    let mut progress = |p: CalibrateProgress| stages.push((p.stage, p.done));
    let calibration = Procedure::new(&mut bench, &places, &options, &mut progress).run().unwrap();
    assert!(stages.iter().all(|(_, done)| (0.0..=1.0).contains(done)), "{stages:?}");
    assert_eq!(stages.last(), Some(&("done", 1.0)));
    (calibration, bench.elapsed())
}

/// The measured guarantee is between the proven and the usual number of reads, less the margin.
#[test]
fn a_measured_guarantee_lies_between_the_proven_and_the_usual() {
    for name in ["st318406lw", "hdd-20tb", "ssd-sata", "ssd-nvme"] {
        for (size, seed) in [(None, 1), (None, 2), (Some(ByteCount(8 << 30)), 3)] {
            let model = DiskModel::preset(name).unwrap();
            let model = size.map_or(model.clone(), |size| model.scaled_to(size));
            let (calibration, took) = calibrate(&model, seed, 12);
            assert!((8..30).contains(&took.as_secs()), "{name}: {took:?} of 12 s");
            for g in &calibration.guarantees {
                let proven = model.guaranteed_reads(g.read_size, calibration.slot);
                let said = format!("{name}, seed {seed}: {g:?}, {proven} proven");
                assert!(f64::from(g.min_read) <= g.mean_read, "{said}");
                assert!(g.longest_read <= model.worst_read(g.read_size), "{said}");
                // The margin is one read, a count is rounded down, and the depth is only nearly the
                // best.
                assert!(f64::from(g.min_read + 2) >= f64::from(proven) * NEAR_BEST, "{said}");
            }
        }
    }
}

#[test]
fn the_fitted_line_and_the_zones_are_those_of_the_disk() {
    let model = DiskModel::preset("hdd-20tb").unwrap();
    let (calibration, _) = calibrate(&model, 1, 60);
    let near = |measured: BitRate, real: BitRate, part: f64| {
        (measured.0 as f64 / real.0 as f64 - 1.0).abs() < part
    };
    // Some of the rounds are at the inner end, where the disk is slower than the mean.
    assert!(near(calibration.r0, model.mean_rate(), 0.2), "{}", calibration.r0);
    let t0 = calibration.t0.as_secs_f64() * 1e3;
    assert!((6.0..12.0).contains(&t0), "4.2 ms of turning and a short seek: {t0}");
    let zones = model.zones();
    assert!((16..32).contains(&calibration.zones.len()), "and more where rates change");
    for (offset, measured) in &calibration.zones {
        let real = zones.iter().rfind(|(start, _)| start <= offset).unwrap().1;
        assert!(near(*measured, real, 0.03), "{measured} at {offset}, in truth {real}");
    }
}

/// Rates are within 2.5 %, and no charge is below what the disk may take.
#[test]
fn a_fitted_arm_predicts_the_disk_and_is_never_faster() {
    for (name, budget) in [("st39183w", 30), ("st318406lw", 12), ("atlas-iv", 12), ("hdd-20tb", 12)]
    {
        for seed in 1..=8 {
            let model = DiskModel::preset(name).unwrap();
            let (calibration, _) = calibrate(&model, seed, budget);
            let arm = calibration.actuator.unwrap_or_else(|| panic!("{name} has an arm"));
            let size = ByteCount::MIB;
            let truth = Costs::of_model(&model, size, 1);
            let fitted = Costs::of_calibration(&calibration, size).unwrap();
            for reads in [1, 2, 4, 8, 16, 32, 64, 256] {
                let part = fitted.positioning(reads) as f64 / truth.positioning(reads) as f64;
                assert!((1.0..1.5).contains(&part), "{name}, {seed}: {reads}: {part}, {arm:?}");
            }
            let step = (model.capacity().0 - size.0) / 511;
            let places: Vec<u64> =
                (0..512u64).map(|i| units::align_down(i * 37 % 512 * step, 4096)).collect();
            let transfer = |costs: &Costs, places: &[u64]| {
                places.iter().map(|place| costs.transfer(*place, size.0)).sum::<u64>()
            };
            let mean = transfer(&fitted, &places) as f64 / transfer(&truth, &places) as f64;
            assert!((1.0..1.05).contains(&mean), "{name}, {seed}: {mean}");
            // A read may have one more head switch than its share; its positioning covers that.
            for sweep in places.chunks(8) {
                let charge = |costs: &Costs| costs.batch(8, transfer(costs, sweep));
                assert!(charge(&fitted) >= charge(&truth), "{name}, {seed}: {sweep:?}");
            }
            for (offset, rate) in &calibration.zones {
                // The last read at a place ends at the end of the disk.
                let from = offset.0.min(model.capacity().0 - (16 << 20));
                let true_rate = (8u64 << 20) as f64 * 8e9 / truth.transfer(from, 8 << 20) as f64;
                let part = rate.0 as f64 / true_rate;
                assert!((part - 1.0).abs() < 0.025, "{name}, {seed}: {part} at {offset}");
            }
            for place in (0..=500).map(|i| units::align_down(i * step, 4096)) {
                let charge = |costs: &Costs| costs.batch(1, costs.transfer(place, size.0));
                assert!(charge(&fitted) >= charge(&truth), "{name}, {seed}: {place}");
            }
        }
    }
    for name in ["ssd-sata", "ssd-nvme"] {
        let (calibration, _) = calibrate(&DiskModel::preset(name).unwrap(), 1, 12);
        assert_eq!(calibration.actuator, None, "{name}");
    }
}

/// Sweeps of grouped reads on the disk itself, with the worst and with random rotation and in both
/// directions, compared with the charges of the calibrated disk.
#[test]
fn no_sweep_of_visits_takes_longer_than_a_fitted_disk_is_charged() {
    for (name, budget) in [("st39183w", 30), ("st318406lw", 12), ("atlas-iv", 12), ("hdd-20tb", 12)]
    {
        let mut most = 0.0_f64;
        for seed in 1..=8 {
            let model = DiskModel::preset(name).unwrap();
            let (calibration, _) = calibrate(&model, seed, budget);
            let mut random = fastrand::Rng::with_seed(seed);
            for size in [ByteCount::kib(256), ByteCount::MIB, ByteCount::mib(4)] {
                // Reads of 4 MiB cannot be guaranteed within a slot on the oldest disk.
                let Some(costs) = Costs::of_calibration(&calibration, size) else { continue };
                let mut saved = 0.0;
                for round in 0..40 {
                    let sweep = visits(&mut random, model.capacity().0, size.0, &costs);
                    let (took, follows) = made(
                        &model,
                        &sweep,
                        size.0,
                        &costs,
                        round % 2 == 0,
                        calibration.queue_depth,
                    );
                    let reads: u64 = sweep.iter().map(|(_, reads)| reads).sum();
                    let places =
                        sweep.iter().flat_map(|(at, n)| (0..*n).map(move |i| at + i * size.0));
                    let transfer = places.map(|place| costs.transfer(place, size.0)).sum();
                    let charged = Duration::from_nanos(costs.sweep(reads, follows, transfer));
                    let arm = calibration.actuator;
                    assert!(
                        took <= charged,
                        "{name}, {seed}: {took:?}, {charged:?} {sweep:?} {arm:?}"
                    );
                    let apart = costs.batch(reads, transfer) as f64;
                    saved += 1.0 - charged.as_nanos() as f64 / apart;
                }
                most = most.max(saved / 40.0);
            }
        }
        assert!(most > 0.05, "{name}: visits are worth it: {most}");
    }
}

/// Groups of reads in the order in which they are made; the arm starts at the middle.
fn visits(random: &mut fastrand::Rng, capacity: u64, size: u64, costs: &Costs) -> Vec<(u64, u64)> {
    let mut visits: Vec<(u64, u64)> = (0..random.usize(1..20))
        .map(|_| (units::align_down(random.u64(..capacity - 9 * size), 4096), random.u64(1..9)))
        .collect();
    visits.sort_unstable();
    // The arm is at the middle, so the nearer end goes first.
    let near = |visit: &(u64, u64)| (costs.place(visit.0) - 0.5).abs();
    if near(visits.last().unwrap()) < near(&visits[0]) {
        visits.reverse();
    }
    visits
}

/// The time that the disk takes for them, and the number of sequential reads among them.
fn made(
    model: &DiskModel,
    visits: &[(u64, u64)],
    size: u64,
    costs: &Costs,
    worst: bool,
    depth: u32,
) -> (Duration, u64) {
    let mut head = model.head();
    let mut middle = (0..1000).map(|i| model.capacity().0 / 1000 * i);
    let middle = middle.rfind(|place| costs.place(*place) <= 0.5).unwrap();
    let start = head.serve(Moment(12_345_678), units::align_down(middle, 4096), 4096, false).finish;
    let (mut now, mut follows) = (start, 0);
    let mut under_way = VecDeque::new();
    for (at, reads) in visits {
        for read in 0..*reads {
            if under_way.len() >= usize::try_from(depth).unwrap() {
                now = under_way.pop_front().unwrap();
            }
            let offset = at + read * size;
            let end = match worst {
                true => head.serve_turned(now, offset, size, 1.0).finish,
                false => head.serve(now, offset, size, false).finish,
            };
            under_way.push_back(end);
            let long =
                costs.shortest_following().is_some_and(|l| costs.transfer(offset, size) >= l);
            follows += u64::from(read > 0 && long);
        }
    }
    (under_way.back().unwrap().since(start), follows)
}

/// A write of 1 MiB in the middle costs a seek to it, half a turn, its transfer, and a seek back.
#[test]
fn a_writer_costs_what_the_arm_does_for_it() {
    let model = DiskModel::preset("hdd-20tb").unwrap();
    let (calibration, _) = calibrate(&model, 1, 60);
    let cost = calibration.writing.unwrap();
    let transfer = ByteCount::MIB.time_at(model.mean_rate());
    assert_eq!(cost.write_size, ByteCount::MIB);
    assert!(cost.mean > transfer && cost.mean < Duration::from_millis(40), "{cost:?}");
    assert!(cost.slowest >= cost.mean && cost.slowest < Duration::from_millis(80), "{cost:?}");
    let fast = calibrate(&DiskModel::preset("ssd-nvme").unwrap(), 1, 12).0.writing.unwrap();
    assert!(fast.mean < Duration::from_millis(2), "{fast:?}");
}

#[test]
fn writes_stay_within_the_scratch_range_and_a_small_one_gets_none() {
    let mib = 1 << 20;
    let mut ring = ScratchRing::new(&(10 * mib..13 * mib + 5), mib);
    assert_eq!(ring.next(2).places, [10 * mib, 11 * mib]);
    assert_eq!(ring.next(3).places, [12 * mib, 10 * mib, 11 * mib]);
    assert_eq!(ScratchRing::new(&(0..mib - 1), mib).places, 0);
}

#[test]
fn a_solid_state_disk_needs_more_depth_than_a_hard_disk() {
    let depth = |name| calibrate(&DiskModel::preset(name).unwrap(), 1, 12).0.queue_depth;
    assert_eq!(depth("hdd-20tb"), 2);
    let options = CalibrateOptions { read_sizes: vec![ByteCount::kib(64)], ..Default::default() };
    let model = DiskModel::preset("ssd-nvme").unwrap();
    let whole = 0..model.capacity().0;
    let places = ReadableArea::new(whole.clone(), &[whole], 4 << 20).unwrap();
    let mut bench = Modelled { head: model.head(), now: Moment::ZERO };
    let calibration = Procedure::new(&mut bench, &places, &options, &mut |_| {}).run().unwrap();
    assert!(calibration.queue_depth >= 8, "{}", calibration.queue_depth);
    assert!(calibration.t0 < Duration::from_millis(1));
}
