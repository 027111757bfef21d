//! The order of the measurements and what is concluded from them. Knows no clock and makes no
//! reads: a [`Bench`] does, a real one or, in the tests, a modelled disk in its own time.

use super::places::{Places, Random};
use super::{CalibrateOptions, CalibrateProgress};
use crate::DeviceError;
use disk::{Calibration, ReadCost, ReadGuarantee, TimedRead, WriteCost};
use std::ops::Range;
use std::time::Duration;
use units::{BitRate, ByteCount};

/// Makes reads and times them.
pub(super) trait Bench {
    /// Since the start.
    fn elapsed(&self) -> Duration;

    /// Reads `size` bytes at each of these places, `depth` at once, in this order.
    fn round(&mut self, places: &[u64], size: u64, depth: u32) -> Result<Round, DeviceError>;

    /// Reads these places one after another, each alone in the device, and times each.
    fn alone(&mut self, places: &[u64], size: u64) -> Result<Vec<TimedRead>, DeviceError>;

    /// The same as a round while a writer makes these writes, one after another, and a flush; until both are
    /// done.
    fn round_with_writes(
        &mut self,
        places: &[u64],
        size: u64,
        depth: u32,
        writes: &Writes,
    ) -> Result<Round, DeviceError>;
}

/// Writes beside a round of reads.
#[derive(Clone, Debug)]
pub(super) struct Writes {
    pub(super) places: Vec<u64>,
    pub(super) size: u64,
}

/// What one round of reads showed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Round {
    /// From the first submission to the last completion.
    pub(super) took: Duration,
    /// The longest that any read was alone at the head of the line.
    pub(super) longest: Duration,
}

/// One calibration.
pub(super) struct Course<'a> {
    pub(super) bench: &'a mut dyn Bench,
    pub(super) places: &'a Places,
    pub(super) options: &'a CalibrateOptions,
    progress: &'a mut dyn FnMut(CalibrateProgress),
    pub(super) random: Random,
    pub(super) rounds: u32,
}

/// All rounds of one read size.
#[derive(Default)]
struct Tally {
    reads: u64,
    took: Duration,
    /// Of a read, in the slowest round.
    slowest: Duration,
    longest: Duration,
}

#[derive(Clone, Copy, Debug)]
enum Placement {
    Spread,
    BothEnds,
    Inner,
    Random,
}

impl<'a> Course<'a> {
    pub(super) fn new(
        bench: &'a mut dyn Bench,
        places: &'a Places,
        options: &'a CalibrateOptions,
        progress: &'a mut dyn FnMut(CalibrateProgress),
    ) -> Self {
        Self { bench, places, options, progress, random: Random::new(options.seed), rounds: 0 }
    }

    /// Measures all; `method` and `measured_at` are for the caller to complete.
    pub(super) fn run(mut self) -> Result<Calibration, DeviceError> {
        let mut sizes = self.options.read_sizes.clone();
        sizes.sort_unstable();
        sizes.dedup();
        // The smallest reads need the most at once; larger ones are none the worse for it.
        let queue_depth = self.best_depth(sizes[0].0)?;
        let mut guarantees = Vec::new();
        let mut means = Vec::new();
        for size in &sizes {
            let share = self.options.budget.mul_f64(SWEEPS / sizes.len() as f64);
            let tally = self.sweeps(size.0, queue_depth, share)?;
            means.push((*size, tally.mean()));
            guarantees.push(tally.guarantee(*size, self.options.slot));
        }
        let zones = self.zones(queue_depth)?;
        let (zones, arm) = self.arm(zones, queue_depth)?;
        let writing = self.writing(queue_depth, &means)?;
        let cost = cost(&means, &zones);
        let arm_seen = if arm.is_some() { "; arm fitted to timed reads" } else { "" };
        (self.progress)(CalibrateProgress { stage: "done", done: 1.0 });
        Ok(Calibration {
            slot: self.options.slot,
            guarantees,
            queue_depth,
            r0: cost.r0,
            t0: cost.t0,
            zones,
            arm,
            writing,
            method: format!(
                "slowest of {} rounds in 4 placements, less one longest read{arm_seen}",
                self.rounds
            ),
            measured_at: 0,
        })
    }

    /// The fewest reads at once that come near the best rate. All depths read the same places.
    fn best_depth(&mut self, size: u64) -> Result<u32, DeviceError> {
        let mut depths = self.options.depths.clone();
        depths.retain(|depth| *depth > 0);
        depths.sort_unstable();
        depths.dedup();
        let Some((&least, rest)) = depths.split_first() else { return Ok(1) };
        if rest.is_empty() {
            return Ok(least);
        }
        let share = self.options.budget.mul_f64(DEPTHS / depths.len() as f64);
        let trial = self.read(Placement::Random, 8, size, least, "queue depth")?;
        let count = reads_in(share, trial.took / 8).max(8);
        let places = self.places.random(count, size, &mut self.random);
        let mut times = Vec::new();
        for depth in &depths {
            self.report("queue depth");
            times.push(self.bench.round(&places, size, *depth)?.took);
        }
        let best = times.iter().min().copied().unwrap_or_default();
        let near = times.iter().position(|took| took.mul_f64(NEAR_BEST) <= best);
        Ok(depths[near.unwrap_or(0)])
    }

    fn sweeps(&mut self, size: u64, depth: u32, share: Duration) -> Result<Tally, DeviceError> {
        let mut tally = Tally::default();
        let trial = self.read(Placement::Spread, 4, size, depth, "sweeps")?;
        let mut each = trial.took / 4;
        let mut longest = trial.longest;
        for (placement, weight) in PLACEMENTS {
            let until = self.bench.elapsed() + share.mul_f64(weight);
            loop {
                let left = self.options.slot.saturating_sub(longest);
                let count = reads_in(left, each).max(1);
                let round = self.read(placement, count, size, depth, "sweeps")?;
                each = round.took / count;
                longest = longest.max(round.longest);
                tally.add(&round, count);
                if self.bench.elapsed() + round.took / 2 >= until {
                    break;
                }
            }
        }
        tally.longest = longest;
        Ok(tally)
    }

    /// Rounds with a writer beside the readers, in turn with rounds without. What a round with
    /// writes takes longer is what its writes cost.
    fn writing(
        &mut self,
        depth: u32,
        means: &[(ByteCount, Duration)],
    ) -> Result<Option<WriteCost>, DeviceError> {
        let size = means.iter().rfind(|(size, _)| *size <= WRITE).or(means.first());
        let (Some((size, each)), Some(scratch)) = (size.copied(), self.options.scratch.clone())
        else {
            return Ok(None);
        };
        let mut ring = Ring::new(&scratch, WRITE.0);
        if ring.places == 0 {
            return Ok(None);
        }
        let reads = reads_in(self.options.slot, each).clamp(4, MOST_BESIDE_WRITES);
        let until = self.bench.elapsed() + self.options.budget.mul_f64(WRITING);
        let (mut with, mut without) = (Duration::ZERO, Duration::ZERO);
        let (mut count, mut slowest) = (0, Duration::ZERO);
        loop {
            without += self.read(Placement::Spread, reads, size.0, depth, "writes")?.took;
            self.report("writes");
            let writes = ring.next((reads / READS_PER_WRITE).max(1));
            let places = Placement::Spread.of(self.places, reads, size.0, &mut self.random);
            let took = self.bench.round_with_writes(&places, size.0, depth, &writes)?.took;
            let made = u32::try_from(writes.places.len()).unwrap_or(u32::MAX);
            count += made;
            with += took;
            self.rounds += 1;
            slowest = slowest.max(took.saturating_sub(each * reads) / made);
            if self.bench.elapsed() >= until {
                break;
            }
        }
        let mean = with.saturating_sub(without) / count;
        let slowest = slowest.max(mean);
        Ok(Some(WriteCost { write_size: ByteCount(ring.size), mean, slowest }))
    }

    fn read(
        &mut self,
        placement: Placement,
        count: u32,
        size: u64,
        depth: u32,
        stage: &'static str,
    ) -> Result<Round, DeviceError> {
        self.report(stage);
        self.rounds += 1;
        let places = placement.of(self.places, count, size, &mut self.random);
        self.bench.round(&places, size, depth)
    }

    pub(super) fn report(&mut self, stage: &'static str) {
        let done = self.bench.elapsed().as_secs_f64() / self.options.budget.as_secs_f64().max(1e-9);
        (self.progress)(CalibrateProgress { stage, done: done.min(0.99) });
    }
}

/// Places in the scratch, one after another and round again.
struct Ring {
    start: u64,
    size: u64,
    places: u64,
    next: u64,
}

impl Ring {
    fn new(scratch: &Range<u64>, size: u64) -> Self {
        let places = scratch.end.saturating_sub(scratch.start) / size;
        Self { start: scratch.start, size, places, next: 0 }
    }

    fn next(&mut self, count: u32) -> Writes {
        let places = (0..u64::from(count)).map(|i| (self.next + i) % self.places);
        let places = places.map(|place| self.start + place * self.size).collect();
        self.next = (self.next + u64::from(count)) % self.places;
        Writes { places, size: self.size }
    }
}

impl Placement {
    fn of(self, places: &Places, count: u32, size: u64, random: &mut Random) -> Vec<u64> {
        match self {
            Self::Spread => places.spread(0.0..1.0, count, size, random),
            Self::Inner => places.spread(0.9..1.0, count, size, random),
            Self::Random => places.random(count, size, random),
            Self::BothEnds => {
                let mut both = places.spread(0.0..0.02, count.div_ceil(2), size, random);
                if count > 1 {
                    both.extend(places.spread(0.98..1.0, count / 2, size, random));
                }
                both
            }
        }
    }
}

impl Tally {
    fn add(&mut self, round: &Round, count: u32) {
        self.reads += u64::from(count);
        self.took += round.took;
        self.slowest = self.slowest.max(round.took / count);
    }

    fn mean(&self) -> Duration {
        self.took.div_f64(self.reads.max(1) as f64)
    }

    fn guarantee(&self, read_size: ByteCount, slot: Duration) -> ReadGuarantee {
        ReadGuarantee {
            read_size,
            min_read: reads_in(slot.saturating_sub(self.longest), self.slowest),
            mean_read: slot.as_secs_f64() / self.mean().as_secs_f64().max(1e-9),
            longest_read: self.longest,
        }
    }
}

/// The line through the mean times. If there is none, the rate is that of sequential reading and
/// the rest of the smallest read's time is the constant.
fn cost(means: &[(ByteCount, Duration)], zones: &[(ByteCount, BitRate)]) -> ReadCost {
    ReadCost::fit(means).unwrap_or_else(|| {
        let rates = zones.iter().map(|(_, rate)| rate.0);
        let r0 = BitRate(rates.sum::<u64>() / (zones.len() as u64).max(1));
        let (size, time) = means.first().copied().unwrap_or_default();
        ReadCost { r0, t0: time.saturating_sub(size.time_at(r0)) }
    })
}

pub(super) fn reads_in(time: Duration, each: Duration) -> u32 {
    let reads = time.as_nanos() / each.as_nanos().max(1);
    u32::try_from(reads).unwrap_or(u32::MAX).min(MOST_READS)
}

/// Each placement and its part of the time: the two that decide get most of it.
const PLACEMENTS: [(Placement, f64); 4] = [
    (Placement::Spread, 0.35),
    (Placement::BothEnds, 0.15),
    (Placement::Inner, 0.15),
    (Placement::Random, 0.35),
];

/// Parts of the budget.
const DEPTHS: f64 = 0.15;
const SWEEPS: f64 = 0.65;
/// Beside the budget, where there is a scratch.
const WRITING: f64 = 0.2;

/// What a recorder writes at once: a chunk.
const WRITE: ByteCount = ByteCount::MIB;

/// A recorder for every few viewers.
const READS_PER_WRITE: u32 = 4;

/// On a fast disk a part of a slot says as much, and wears the disk less.
const MOST_BESIDE_WRITES: u32 = 64;

/// More reads at once must be worth 5 %: each holds a buffer.
const NEAR_BEST: f64 = 0.95;

/// Of a round, however fast the device: bounds the memory of its places.
const MOST_READS: u32 = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;
    use disk::{Costs, DiskModel, Head};
    use std::collections::VecDeque;
    use units::Moment;

    /// A modelled disk in its own time.
    struct Modelled {
        head: Head,
        now: Moment,
    }

    impl Bench for Modelled {
        fn elapsed(&self) -> Duration {
            self.now.since(Moment::ZERO)
        }

        fn round(&mut self, places: &[u64], size: u64, depth: u32) -> Result<Round, DeviceError> {
            let start = self.now;
            let mut round = Round::default();
            let mut under_way: VecDeque<(Moment, Moment)> = VecDeque::new();
            let mut last_end = start;
            let mut settle = |(asked, end): (Moment, Moment)| {
                round.longest = round.longest.max(end.since(asked.max(last_end)));
                last_end = end;
                end
            };
            for place in places {
                if under_way.len() >= usize::try_from(depth).unwrap() {
                    self.now = settle(under_way.pop_front().unwrap());
                }
                let end = self.head.serve(self.now, *place, size, false).finish;
                under_way.push_back((self.now, end));
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

        /// The writes lie between the reads, evenly.
        fn round_with_writes(
            &mut self,
            places: &[u64],
            size: u64,
            depth: u32,
            writes: &Writes,
        ) -> Result<Round, DeviceError> {
            let mut whole = Round::default();
            let parts = places.chunks(places.len().div_ceil(writes.places.len()));
            for (part, write) in parts.zip(&writes.places) {
                let start = self.now;
                self.round(part, size, depth)?;
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
        let places = Places::new(whole.clone(), &[whole], 4 << 20).unwrap();
        let mut bench = Modelled { head: model.head(), now: Moment::ZERO };
        let mut stages = Vec::new();
        let mut progress = |p: CalibrateProgress| stages.push((p.stage, p.done));
        let calibration = Course::new(&mut bench, &places, &options, &mut progress).run().unwrap();
        assert!(stages.iter().all(|(_, done)| (0.0..=1.0).contains(done)), "{stages:?}");
        assert_eq!(stages.last(), Some(&("done", 1.0)));
        (calibration, bench.elapsed())
    }

    /// What was measured must lie between what is certain and what is usual, less the margin.
    #[test]
    fn a_measured_guarantee_lies_between_the_proven_and_the_usual() {
        for name in ["st318406lw", "hdd-20tb", "ssd-sata", "ssd-nvme"] {
            for (size, seed) in [(None, 1), (None, 2), (Some(ByteCount(8 << 30)), 3)] {
                let model = DiskModel::preset(name).unwrap();
                let model = size.map_or(model.clone(), |size| model.scaled_to(size));
                let (calibration, took) = calibrate(&model, seed, 12);
                assert!((8..25).contains(&took.as_secs()), "{name}: {took:?} of 12 s");
                for g in &calibration.guarantees {
                    let proven = model.guaranteed_reads(g.read_size, calibration.slot);
                    let said = format!("{name}, seed {seed}: {g:?}, {proven} proven");
                    assert!(f64::from(g.min_read) <= g.mean_read, "{said}");
                    assert!(g.longest_read <= model.worst_read(g.read_size), "{said}");
                    // The margin is one read, a count is rounded down, and the depth is one that
                    // is nearly the best.
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
        // A share of the rounds is innermost, where the disk is slower than on the mean.
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

    /// Rates within 2.5 %, and nothing charged less than the disk may take.
    #[test]
    fn a_fitted_arm_foretells_the_disk_and_is_never_quicker() {
        for (name, budget) in
            [("st39183w", 30), ("st318406lw", 12), ("atlas-iv", 12), ("hdd-20tb", 12)]
        {
            for seed in 1..=8 {
                let model = DiskModel::preset(name).unwrap();
                let (calibration, _) = calibrate(&model, seed, budget);
                let arm = calibration.arm.unwrap_or_else(|| panic!("{name} has an arm"));
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
                // A read may have a switch of heads more than its share; its positioning covers it.
                for sweep in places.chunks(8) {
                    let charge = |costs: &Costs| costs.batch(8, transfer(costs, sweep));
                    assert!(charge(&fitted) >= charge(&truth), "{name}, {seed}: {sweep:?}");
                }
                for (offset, rate) in &calibration.zones {
                    // Of what was read there, at most up to the end.
                    let from = offset.0.min(model.capacity().0 - (16 << 20));
                    let true_rate =
                        (8u64 << 20) as f64 * 8e9 / truth.transfer(from, 8 << 20) as f64;
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
            assert_eq!(calibration.arm, None, "{name}");
        }
    }

    /// A write of 1 MiB in the middle: a seek there, half a turn or so, its transfer, and the seek
    /// back that the sweep would not have made.
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
    fn writes_stay_within_the_scratch_and_too_little_of_it_is_none() {
        let mib = 1 << 20;
        let mut ring = Ring::new(&(10 * mib..13 * mib + 5), mib);
        assert_eq!(ring.next(2).places, [10 * mib, 11 * mib]);
        assert_eq!(ring.next(3).places, [12 * mib, 10 * mib, 11 * mib]);
        assert_eq!(Ring::new(&(0..mib - 1), mib).places, 0);
    }

    #[test]
    fn a_solid_state_disk_wants_more_at_once_than_an_arm() {
        let depth = |name| calibrate(&DiskModel::preset(name).unwrap(), 1, 12).0.queue_depth;
        assert_eq!(depth("hdd-20tb"), 2);
        let options =
            CalibrateOptions { read_sizes: vec![ByteCount::kib(64)], ..Default::default() };
        let model = DiskModel::preset("ssd-nvme").unwrap();
        let whole = 0..model.capacity().0;
        let places = Places::new(whole.clone(), &[whole], 4 << 20).unwrap();
        let mut bench = Modelled { head: model.head(), now: Moment::ZERO };
        let calibration = Course::new(&mut bench, &places, &options, &mut |_| {}).run().unwrap();
        assert!(calibration.queue_depth >= 8, "{}", calibration.queue_depth);
        assert!(calibration.t0 < Duration::from_millis(1));
    }
}
