//! The geometry of a disk: its rates by place and its arm, from reads that are timed one by one.
//!
//! ```text
//!   zones   a few sequential reads at places all over the area              → rate of the place,
//!                                                          and the time of a sequential read
//!   turns   a place, the one before it, the one before that                 → one revolution
//!   seeks   from place to place, short and long distances alike             → the seek curve
//! ```
//!
//! Without a revolution there is no arm, and no seeks are timed. With one, places between which the
//! rate changes much get another place between them.

use super::procedure::{Procedure, SequentialReads, reads_in};
use crate::DeviceError;
use disk::{Actuator, Calibration, Characterization, Costs, TimedRead};
use std::time::Duration;
use units::{BitRate, ByteCount};

type Zones = Vec<(ByteCount, BitRate)>;

impl Procedure<'_> {
    /// Times sequential reads at places all over the area. The first read at a place moves the arm
    /// there and is not counted.
    pub(super) fn zones(&mut self, depth: u32) -> Result<Vec<(ByteCount, BitRate)>, DeviceError> {
        let share = self.options.budget.mul_f64(ZONES / f64::from(ZONE_PLACES));
        let largest = self.options.read_sizes.iter().max().copied().unwrap_or_default();
        let size = largest.min(ByteCount::MIB).0;
        let room = self.places.bytes() / size / u64::from(ZONE_PLACES);
        let most = u32::try_from(room).unwrap_or(u32::MAX).max(ZONE_READS);
        let mut zones: Vec<(ByteCount, BitRate)> = Vec::new();
        let mut count = ZONE_READS;
        for i in 0..ZONE_PLACES {
            self.report("zones");
            let part = f64::from(i) / f64::from(ZONE_PLACES - 1);
            let run = self.places.run(part, count, size);
            let Some((first, rest)) = run.split_first().filter(|(_, rest)| !rest.is_empty()) else {
                continue;
            };
            // Places in a hole move to the nearest written one, which may be the place before.
            if zones.last().is_some_and(|(offset, _)| offset.0 >= *first) {
                continue;
            }
            let took = self.time_run(*first, rest, size, depth)?;
            zones.push((ByteCount(*first), BitRate::of(ByteCount(rest.len() as u64 * size), took)));
            let each = took.div_f64(rest.len() as f64);
            // As many reads as the share allows at this rate, and not beyond the next place.
            count = reads_in(share, each).clamp(ZONE_READS, most);
        }
        Ok(zones)
    }

    // The rest of a run, timed when the arm is already there.
    fn time_run(
        &mut self,
        first: u64,
        rest: &[u64],
        size: u64,
        depth: u32,
    ) -> Result<Duration, DeviceError> {
        self.bench.round(&[first], size, depth)?;
        let round = self.bench.round(rest, size, depth)?;
        self.rounds += 1;
        if round.following > Duration::ZERO {
            let last = rest.last().copied().unwrap_or(first);
            let longest = round.following;
            self.followings.push(SequentialReads { places: (first, last), size, longest });
        }
        Ok(round.took.max(Duration::from_nanos(1)))
    }

    /// Adds the cost of a sequential read beside its transfer, as admission counts it: the largest
    /// one that was seen, plus one shortest seek with the overhead of a command. The margin is
    /// needed because rates are means of a few reads: one read may have an additional head switch,
    /// and smaller reads have more commands.
    pub(super) fn with_following(&self, calibration: Calibration) -> Calibration {
        let Some(arm) = calibration.actuator else { return calibration };
        let beyond = |run: &SequentialReads| {
            let costs = Costs::of_calibration(&calibration, ByteCount(run.size))?;
            let (first, last) = run.places;
            // The faster end: what is then left over is at least the true extra cost.
            let transfer = costs.transfer(first, run.size).min(costs.transfer(last, run.size));
            Some(run.longest.saturating_sub(Duration::from_nanos(transfer)))
        };
        let most = self.followings.iter().filter_map(beyond).max();
        let movement = Duration::from_secs_f64((arm.seek.settle_ms + arm.seek.track_ms) / 1e3);
        let following = most.map(|most| most + movement);
        Calibration { actuator: Some(Actuator { following, ..arm }), ..calibration }
    }

    /// Fits the arm, if there is one, and refines the zones as far as the arm needs it.
    pub(super) fn arm(
        &mut self,
        zones: Zones,
        depth: u32,
    ) -> Result<(Zones, Option<Actuator>), DeviceError> {
        let mut reads = self.turns()?;
        let capacity = ByteCount(self.options.area.end.min(self.places.end()));
        let timed = |reads: &[TimedRead]| Characterization::with_zones(reads, &zones, capacity);
        // No platter turns, so there is no arm: the rest of the time is better not spent.
        if timed(&reads).revolution.is_none() {
            return Ok((zones, None));
        }
        reads.extend(self.seeks()?);
        let arm = timed(&reads).arm(capacity);
        let zones = if arm.is_some() { self.finer(zones, depth)? } else { zones };
        Ok((zones, arm))
    }

    /// Times reads that are each a few blocks before the last one, for which the platter must make
    /// a full turn.
    fn turns(&mut self) -> Result<Vec<TimedRead>, DeviceError> {
        self.report("turns");
        let mut reads = Vec::new();
        for _ in 0..TURN_PLACES {
            let place = self.places.at(self.random.next(), TURNS * SMALL);
            let back: Vec<u64> = (0..TURNS).rev().map(|block| place + block * SMALL).collect();
            reads.extend(self.bench.alone(&back, SMALL)?);
        }
        Ok(reads)
    }

    /// Times seeks from place to place. Distances are evenly spaced by their square root, because
    /// the curve is steepest at its start.
    fn seeks(&mut self) -> Result<Vec<TimedRead>, DeviceError> {
        let until = self.bench.elapsed() + self.options.budget.mul_f64(ARM);
        let (mut reads, mut at) = (Vec::new(), 0.5);
        while reads.len() < FEWEST_SEEKS
            || (self.bench.elapsed() < until && reads.len() < MOST_SEEKS)
        {
            self.report("seeks");
            let mut parts = Vec::new();
            for _ in 0..SEEKS_AT_ONCE {
                let distance = self.random.next().powi(2);
                // A distance that fits in neither direction starts at the nearer end.
                if at + distance > 1.0 && distance > at {
                    at = f64::from(at > 0.5);
                    parts.push(at);
                }
                at = if at + distance <= 1.0 { at + distance } else { at - distance };
                parts.push(at);
            }
            let places: Vec<u64> = parts.iter().map(|part| self.places.at(*part, SMALL)).collect();
            reads.extend(self.bench.alone(&places, SMALL)?);
        }
        Ok(reads)
    }

    fn finer(&mut self, zones: Zones, depth: u32) -> Result<Zones, DeviceError> {
        let mut finer = Zones::new();
        let size = ByteCount::MIB.0;
        for (i, zone) in zones.iter().enumerate() {
            finer.push(*zone);
            let Some(next) = zones.get(i + 1) else { continue };
            #[expect(clippy::cast_precision_loss, reason = "rates, compared roughly")]
            let change = 1.0 - next.1.0 as f64 / zone.1.0.max(1) as f64;
            let between = units::align_down(zone.0.0.midpoint(next.0.0), size);
            if change.abs() < SAME_RATE || between <= zone.0.0 {
                continue;
            }
            self.report("zones");
            let run = self.places.run_at(between, BETWEEN_READS, size);
            let Some((first, rest)) = run.split_first().filter(|(_, rest)| !rest.is_empty()) else {
                continue;
            };
            // The nearest written place is outside the gap, where the rate is known already.
            if *first <= zone.0.0 || *first >= next.0.0 {
                continue;
            }
            let took = self.time_run(*first, rest, size, depth)?;
            finer.push((ByteCount(*first), BitRate::of(ByteCount(rest.len() as u64 * size), took)));
        }
        Ok(finer)
    }
}

/// The share of the budget for zones.
const ZONES: f64 = 0.2;

/// Number of places: enough to show a hard disk's zones, which change slowly.
const ZONE_PLACES: u32 = 16;

/// Number of reads at a place: enough that one late completion does not determine the rate.
const ZONE_READS: u32 = 9;

/// The relative difference of rates below which two places need none between them.
const SAME_RATE: f64 = 0.02;

/// Number of reads between two known places: enough to exceed what the disk has read ahead.
const BETWEEN_READS: u32 = ZONE_READS + 4;

/// The share of the budget for the arm, in addition to the budget itself.
const ARM: f64 = 0.3;

/// The size of a read with hardly any transfer time.
const SMALL: u64 = 4096;

/// The distance of two reads, in blocks.
const TURNS: u64 = 4;

/// Number of reads per place; each gives one time less than this number of turns.
const TURN_PLACES: u32 = 8;

/// The smallest number of seeks: the curve needs eight in each of its groups.
const FEWEST_SEEKS: usize = 240;

/// The largest number of seeks; more give no more precision.
const MOST_SEEKS: usize = 1200;

/// The number of seeks between two readings of the clock.
const SEEKS_AT_ONCE: usize = 16;
