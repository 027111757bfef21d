//! The order of the measurements and the conclusions. It has no clock and makes no reads: a
//! [`ReadTimer`] does, a real one or, in tests, a modelled disk in its own time.

use super::offsets::{Random, ReadableArea};
use super::pace::{PAUSE, ReadRound, Stretch, Stretches};
use super::{CalibrateOptions, CalibrateProgress};
use crate::DeviceError;
use disk::{Calibration, Outlier, ReadCost, ReadGuarantee, ReadPace, TimedRead, WriteCost};
use std::ops::Range;
use std::time::Duration;
use units::{BitRate, ByteCount};

/// Makes reads and times them.
pub(super) trait ReadTimer {
    /// Time since the calibration began.
    fn elapsed(&self) -> Duration;

    /// Reads `size` bytes at each of these places in this order, `depth` at a time.
    fn round(&mut self, places: &[u64], size: u64, depth: u32) -> Result<RoundTimes, DeviceError>;

    /// Reads these places one after another, with one read in flight, and times each.
    fn alone(&mut self, places: &[u64], size: u64) -> Result<Vec<TimedRead>, DeviceError>;

    /// Makes a round of reads while a writer makes these writes, one after another, and a flush.
    /// Returns when both are complete.
    fn round_with_writes(
        &mut self,
        places: &[u64],
        size: u64,
        depth: u32,
        writes: &WriteBatch,
    ) -> Result<RoundTimes, DeviceError>;
}

/// Writes that are made beside a round of reads.
#[derive(Clone, Debug)]
pub(super) struct WriteBatch {
    pub(super) places: Vec<u64>,
    pub(super) size: u64,
}

/// The times of one round of reads.
#[derive(Clone, Debug, Default)]
pub(super) struct RoundTimes {
    /// Time from the first submission to the last completion.
    pub(super) took: Duration,
    /// The longest time that a read took after the completion before it.
    pub(super) longest: Duration,
    /// The longest such time of a sequential read: one that begins where the read before it ended,
    /// requested without a pause. Zero if there was none.
    pub(super) following: Duration,
    /// When each read ended, from the first submission on; in order of time.
    pub(super) ends: Vec<Duration>,
}

/// Sequential reads of `size` bytes each, and the longest time of one of them.
#[derive(Clone, Copy, Debug)]
pub(super) struct SequentialReads {
    pub(super) places: (u64, u64),
    pub(super) size: u64,
    pub(super) longest: Duration,
}

/// One calibration.
pub(super) struct Procedure<'a> {
    pub(super) bench: &'a mut dyn ReadTimer,
    pub(super) places: &'a ReadableArea,
    pub(super) options: &'a CalibrateOptions,
    progress: &'a mut dyn FnMut(CalibrateProgress),
    pub(super) random: Random,
    pub(super) rounds: u32,
    pub(super) followings: Vec<SequentialReads>,
}

#[derive(Clone, Copy, Debug)]
enum ReadPattern {
    Spread,
    BothEnds,
    Inner,
    Random,
}

impl<'a> Procedure<'a> {
    pub(super) fn new(
        bench: &'a mut dyn ReadTimer,
        places: &'a ReadableArea,
        options: &'a CalibrateOptions,
        progress: &'a mut dyn FnMut(CalibrateProgress),
    ) -> Self {
        let (random, followings) = (Random::new(options.seed), Vec::new());
        Self { bench, places, options, progress, random, rounds: 0, followings }
    }

    /// Measures everything; the caller completes `method` and `measured_at`.
    pub(super) fn run(mut self) -> Result<Calibration, DeviceError> {
        let mut sizes = self.options.read_sizes.clone();
        sizes.sort_unstable();
        sizes.dedup();
        // The smallest reads need the largest depth, and it does not slow larger ones.
        let queue_depth = self.best_depth(sizes[0].0)?;
        let mut guarantees = Vec::new();
        let mut means = Vec::new();
        let mut outliers = Vec::new();
        for size in &sizes {
            let share = self.options.budget.mul_f64(SWEEPS / sizes.len() as f64);
            let (measured, outlier) = self.sweeps(*size, queue_depth, share)?;
            outliers.extend(outlier);
            means.push((*size, measured.mean()));
            guarantees.push(measured.guarantee(*size, self.options.slot));
        }
        let sustained = self.long_run(&mut guarantees, queue_depth, &mut outliers)?;
        let zones = self.zones(queue_depth)?;
        let (mut zones, arm) = self.arm(zones, queue_depth)?;
        let in_bursts = |g: &ReadGuarantee| g.longest_read > g.pace.each * PAUSE;
        if arm.is_none() && guarantees.iter().any(in_bursts) {
            // The few reads at each place were timed between the pauses, or with one: no rates.
            zones.clear();
        }
        let writing = self.writing(queue_depth, &means)?;
        let cost = faster(cost(&means, &zones), guarantees.iter().filter(|g| in_bursts(g)));
        let arm_seen = if arm.is_some() { "; arm fitted to timed reads" } else { "" };
        (self.progress)(CalibrateProgress { stage: "done", done: 1.0 });
        let calibration = Calibration {
            slot: self.options.slot,
            guarantees,
            queue_depth,
            r0: cost.r0,
            t0: cost.t0,
            zones,
            actuator: arm,
            writing,
            method: format!(
                "slowest of {} rounds in 4 placements, less one longest read{arm_seen}{sustained}",
                self.rounds
            ),
            measured_at: 0,
            measured: None,
            outliers,
        };
        Ok(self.with_following(calibration).limited_to_endless_rate())
    }

    /// The smallest queue depth that comes near the best rate. All depths read the same places.
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
        let trial = self.read(ReadPattern::Random, 8, size, least, "queue depth")?;
        // The trial sets the number of reads, so that all depths together take their share of the
        // budget.
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

    /// Measures reads of one size in all placements: all of it again if one delay stands out.
    /// Returns also the delay that did not recur.
    fn sweeps(
        &mut self,
        size: ByteCount,
        depth: u32,
        share: Duration,
    ) -> Result<(Stretches, Option<Outlier>), DeviceError> {
        let measured = self.placements(size.0, depth, share)?;
        let Some(suspect) = measured.suspect() else { return Ok((measured, None)) };
        let repeat = self.placements(size.0, depth, share)?;
        let outlier = (!suspect.recurs_in(&repeat)).then(|| suspect.outlier(size));
        let mut all = if outlier.is_some() { suspect.others } else { measured };
        // What was measured in short rounds before the disk was seen to work in bursts counts less
        // than the long stretch.
        if bursts(&repeat) {
            return Ok((repeat, outlier));
        }
        all.0.extend(repeat.0);
        Ok((all, outlier))
    }

    /// A stretch of reads in each placement. On a disk that works in bursts the placements cannot
    /// be told apart in a short time: there one stretch is measured that lasts for many bursts.
    fn placements(
        &mut self,
        size: u64,
        depth: u32,
        share: Duration,
    ) -> Result<Stretches, DeviceError> {
        let begun = self.bench.elapsed();
        let mut measured = Stretches::default();
        let trial = self.read(ReadPattern::Spread, 4, size, depth, "sweeps")?;
        let (mut each, mut longest) = (trial.took / 4, trial.longest);
        for (placement, weight) in PLACEMENTS {
            let until = self.bench.elapsed() + share.mul_f64(weight);
            let mut stretch = Stretch::new();
            loop {
                let round = self.sweep(placement, size, depth, longest, each)?;
                let took = round.took;
                // Follows the placement, so that rounds of a slow zone do not exceed a slot.
                each = took.div_f64(round.ends.len().max(1) as f64);
                stretch.push(round);
                // Half a round: the next one would end further behind the share than this one
                // before it.
                if self.bench.elapsed() + took / 2 >= until {
                    break;
                }
            }
            measured.0.push(stretch);
            longest = longest.max(measured.longest());
        }
        if bursts(&measured) {
            let most = (begun + share * MOST_SHARES).saturating_sub(self.bench.elapsed());
            let time = (measured.longest() * BURSTS).clamp(share, most.max(share));
            return self.without_pause(size, depth, time, measured.mean());
        }
        Ok(measured)
    }

    /// Random reads for about `time`, as few rounds as possible: where one ends, the disk is idle.
    fn without_pause(
        &mut self,
        size: u64,
        depth: u32,
        time: Duration,
        mut each: Duration,
    ) -> Result<Stretches, DeviceError> {
        let mut measured = Stretches::default();
        loop {
            let at = self.bench.elapsed();
            let count = reads_in(time.saturating_sub(measured.time()), each).max(4);
            let RoundTimes { took, ends, .. } =
                self.read(ReadPattern::Random, count, size, depth, "sweeps")?;
            // A stretch each: what is between them is a pause.
            measured.0.push(vec![ReadRound { at, took, ends }]);
            each = measured.mean();
            if measured.time() >= time * 3 / 4 {
                return Ok(measured);
            }
        }
    }

    /// A round of about minRead reads: as many as fit into a slot less the longest read.
    fn sweep(
        &mut self,
        placement: ReadPattern,
        size: u64,
        depth: u32,
        longest: Duration,
        each: Duration,
    ) -> Result<ReadRound, DeviceError> {
        let at = self.bench.elapsed();
        let left = self.options.slot.saturating_sub(longest);
        let count = reads_in(left, each).max(1);
        let RoundTimes { took, ends, .. } = self.read(placement, count, size, depth, "sweeps")?;
        Ok(ReadRound { at, took, ends })
    }

    /// Reads of about 1 MiB without a pause, for as long as is asked for. It shows the fewest
    /// reads in many slots, and a disk that does not keep the pace of its first seconds: then
    /// every guarantee is reduced to the pace of the second half. Returns a remark for the
    /// method.
    fn long_run(
        &mut self,
        guarantees: &mut [ReadGuarantee],
        depth: u32,
        outliers: &mut Vec<Outlier>,
    ) -> Result<String, DeviceError> {
        let slot = self.options.slot;
        let size = |g: &ReadGuarantee| g.read_size;
        let of = guarantees.iter().rposition(|g| size(g) <= ByteCount::MIB).unwrap_or(0);
        let (read_size, before) = (size(&guarantees[of]), guarantees[of]);
        if self.options.long_run.is_zero() {
            return Ok(String::new());
        }
        let begun = self.bench.elapsed();
        // One more slot: the last one must be whole.
        let time = self.options.long_run + slot;
        let mut measured = if before.longest_read > before.pace.each * PAUSE {
            self.without_pause(read_size.0, depth, time, before.pace.each)?
        } else {
            let mut stretch = Stretch::new();
            while self.bench.elapsed() < begun + time {
                let ReadPace { each, .. } = before.pace;
                let (size, longest) = (read_size.0, Duration::ZERO);
                stretch.push(self.sweep(ReadPattern::Random, size, depth, longest, each)?);
            }
            Stretches(vec![stretch])
        };
        let time = self.bench.elapsed() - begun;
        if let Some(suspect) = measured.suspect() {
            outliers.push(suspect.outlier(read_size));
            measured = suspect.others;
        }
        // A disk that falls behind after its first seconds: the mean of the second half is what it
        // keeps.
        let lasting = measured.later_mean();
        let usual = before.pace.each;
        let part = usual.as_secs_f64() / lasting.as_secs_f64().max(1e-9);
        let kept = part >= SUSTAINED;
        let run = measured.guarantee(read_size, slot);
        let known = &mut guarantees[of];
        // What the long run shows of more slots than the sweeps, and where it shows less.
        for (known, run) in known.longer.iter_mut().zip(run.longer) {
            *known = if *known == 0 { run } else { run.min(*known) };
        }
        if bursts(&measured) {
            known.min_read = known.min_read.min(run.min_read);
            known.longest_read = known.longest_read.max(run.longest_read);
            known.pace.once = known.pace.once.max(run.pace.once);
            known.pace.each = known.pace.each.max(run.pace.each);
        }
        if kept {
            return Ok(format!("; the pace held for {}", units::show_duration(time)));
        }
        for guarantee in guarantees {
            guarantee.pace.each = guarantee.pace.each.div_f64(part);
            guarantee.mean_read *= part;
            let least = guarantee.pace.reads_in(slot);
            guarantee.min_read = guarantee.min_read.min(least);
            for (slots, reads) in (1..).map(|power| 1u32 << power).zip(&mut guarantee.longer) {
                *reads = (*reads).min(guarantee.pace.reads_in(slot * slots));
            }
        }
        let percent = 100.0 * part;
        Ok(format!(
            "; after {} the disk kept {percent:.0} % of its pace, which the guarantees are",
            units::show_duration(time / 2)
        ))
    }

    /// Measures rounds with a writer beside the readers, alternating with rounds without. The
    /// additional time is the cost of the writes.
    fn writing(
        &mut self,
        depth: u32,
        means: &[(ByteCount, Duration)],
    ) -> Result<Option<WriteCost>, DeviceError> {
        // Reads about as large as the writes, so that both move the arm as often.
        let size = means.iter().rfind(|(size, _)| *size <= WRITE).or(means.first());
        let (Some((size, each)), Some(scratch)) = (size.copied(), self.options.scratch.clone())
        else {
            return Ok(None);
        };
        let mut ring = ScratchRing::new(&scratch, WRITE.0);
        if ring.places == 0 {
            return Ok(None);
        }
        let reads = reads_in(self.options.slot, each).clamp(4, MOST_BESIDE_WRITES);
        let until = self.bench.elapsed() + self.options.budget.mul_f64(WRITING);
        let (mut with, mut without) = (Duration::ZERO, Duration::ZERO);
        let (mut count, mut slowest) = (0, Duration::ZERO);
        loop {
            without += self.read(ReadPattern::Spread, reads, size.0, depth, "writes")?.took;
            self.report("writes");
            let writes = ring.next((reads / READS_PER_WRITE).max(1));
            let places = ReadPattern::Spread.of(self.places, reads, size.0, &mut self.random);
            let took = self.bench.round_with_writes(&places, size.0, depth, &writes)?.took;
            let made = u32::try_from(writes.places.len()).unwrap_or(u32::MAX);
            count += made;
            with += took;
            self.rounds += 1;
            // By the mean time of a read: the round without writes may itself have been slow.
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
        placement: ReadPattern,
        count: u32,
        size: u64,
        depth: u32,
        stage: &'static str,
    ) -> Result<RoundTimes, DeviceError> {
        self.report(stage);
        self.rounds += 1;
        let places = placement.of(self.places, count, size, &mut self.random);
        self.bench.round(&places, size, depth)
    }

    pub(super) fn report(&mut self, stage: &'static str) {
        let done = self.bench.elapsed().as_secs_f64() / self.options.budget.as_secs_f64().max(1e-9);
        // Slow disks take longer than the budget; only the end reports 1.
        (self.progress)(CalibrateProgress { stage, done: done.min(0.99) });
    }
}

/// Consecutive places in the scratch range, which wrap around at its end.
struct ScratchRing {
    start: u64,
    size: u64,
    places: u64,
    next: u64,
}

impl ScratchRing {
    fn new(scratch: &Range<u64>, size: u64) -> Self {
        let places = scratch.end.saturating_sub(scratch.start) / size;
        Self { start: scratch.start, size, places, next: 0 }
    }

    fn next(&mut self, count: u32) -> WriteBatch {
        let numbers = (0..u64::from(count)).map(|i| (self.next + i) % self.places);
        let places = numbers.map(|number| self.start + number * self.size).collect();
        self.next = (self.next + u64::from(count)) % self.places;
        WriteBatch { places, size: self.size }
    }
}

impl ReadPattern {
    fn of(self, places: &ReadableArea, count: u32, size: u64, random: &mut Random) -> Vec<u64> {
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

/// Whether a disk works in bursts: it pauses for much longer than its reads take.
fn bursts(measured: &Stretches) -> bool {
    measured.longest() > measured.mean() * PAUSE
}

/// The cost with the rate of the fastest of these reads, if the line is slower than they: kernels
/// count a large read that they split more than once in a throttle.
fn faster<'a>(line: ReadCost, measured: impl Iterator<Item = &'a ReadGuarantee>) -> ReadCost {
    let fastest = measured.map(|g| BitRate::of(g.read_size, g.pace.each)).max();
    match fastest.filter(|rate| *rate > line.r0) {
        Some(r0) => ReadCost { r0, t0: Duration::ZERO },
        None => line,
    }
}

/// The line through the mean times. If there is none, the rate is that of sequential reads, and
/// the rest of the smallest read's time is the constant. Without either, the rate is that of the
/// reads themselves.
fn cost(means: &[(ByteCount, Duration)], zones: &[(ByteCount, BitRate)]) -> ReadCost {
    ReadCost::fit(means).unwrap_or_else(|| {
        let (size, time) = means.first().copied().unwrap_or_default();
        let rates: u64 = zones.iter().map(|(_, rate)| rate.0).sum();
        let zones = rates.checked_div(zones.len() as u64).map(BitRate);
        let r0 = zones.unwrap_or_else(|| BitRate::of(size, time));
        ReadCost { r0, t0: time.saturating_sub(size.time_at(r0)) }
    })
}

pub(super) fn reads_in(time: Duration, each: Duration) -> u32 {
    let reads = time.as_nanos() / each.as_nanos().max(1);
    u32::try_from(reads).unwrap_or(u32::MAX).min(MOST_READS)
}

/// Each placement with its share of the time: the two that decide the guarantee get most of it.
const PLACEMENTS: [(ReadPattern, f64); 4] = [
    (ReadPattern::Spread, 0.35),
    (ReadPattern::BothEnds, 0.15),
    (ReadPattern::Inner, 0.15),
    (ReadPattern::Random, 0.35),
];

/// The share of the budget for the queue depth.
const DEPTHS: f64 = 0.15;
const SWEEPS: f64 = 0.65;

/// The longest pauses that a disk which works in bursts is measured for: then its mean is known
/// within 5 %.
const BURSTS: u32 = 20;

/// The number of shares of its time that such a disk is measured for at most.
const MOST_SHARES: u32 = 6;

/// The part of its first pace that a disk keeps in a long run; less, and the guarantees are
/// reduced.
const SUSTAINED: f64 = 0.9;
/// The share for writes, in addition to the budget, where there is a scratch range.
const WRITING: f64 = 0.2;

/// The size of a recorder's write: a chunk.
const WRITE: ByteCount = ByteCount::MIB;

/// The number of reads per write: one recorder for every few viewers.
const READS_PER_WRITE: u32 = 4;

/// The largest number of reads beside writes: on a fast disk a part of a slot suffices, and wears
/// the disk less.
const MOST_BESIDE_WRITES: u32 = 64;

/// The share of the best rate that counts as near: more depth must gain 5 %, because each read
/// holds a buffer.
const NEAR_BEST: f64 = 0.95;

/// The largest number of reads of one round, however fast the device: bounds the memory of its
/// offsets.
const MOST_READS: u32 = 1 << 20;

#[cfg(test)]
mod tests;
