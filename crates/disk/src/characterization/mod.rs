//! Characterization of a disk by its zones and timed reads: its revolution, its seek curve, and
//! the parameters of a [`DiskModel`](crate::DiskModel) that behaves alike.
//!
//! ```text
//!   read just before the last                time + transfer         → one revolution
//!   read anywhere else                       time - transfer          = seek(x) + U(0, revolution)
//!     grouped by x, the share of the stroke: tenth part of each group → seek(x) + 0.1 revolution
//!   reads of several sizes                   a straight line          → r0, t0 (eq. 1)
//! ```
//!
//! Times of real disks have outliers, which are always late (a retry, a busy host): medians and low
//! quantiles are used, and means only of the values that remain. The module is pure: its caller
//! makes and times the reads, one at a time and without caches. A device without an actuator shows
//! no revolution and no curve, and gets none.

use crate::actuator::Actuator;
use crate::bounds::ReadCost;
use crate::parameters::{Flash, Mechanics, Parameters, SeekTimes, Spinning, Zone};
use crate::seek::SeekCurve;
use std::collections::BTreeMap;
use std::time::Duration;
use units::{BitRate, ByteCount, float, rounded};

/// One timed read that was alone in the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimedRead {
    /// The offset of the first byte.
    pub offset: u64,
    /// The length in bytes.
    pub size: u64,
    /// The time from submission to completion.
    pub time: Duration,
    /// The offsets of the first byte and the end of the read directly before it.
    pub after: Option<(u64, u64)>,
}

/// Zones, revolution and seek curve of a disk, fitted to timed reads.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Characterization {
    /// Eq. 1 over the reads that were not sequential. `None` without two sizes of them.
    pub cost: Option<ReadCost>,
    /// Sequential rate by place, lowest offset first; empty where none was measured.
    pub zones: Vec<(ByteCount, BitRate)>,
    /// The time of one revolution, for a disk that shows one.
    pub revolution: Option<Duration>,
    /// The seek curve, whose `track_ms` includes the overhead of a command.
    pub seek: Option<SeekTimes>,
    /// The largest distance of a group of seeks above that curve, in ms: the possible error of the
    /// curve.
    pub seek_error_ms: f64,
}

impl Characterization {
    /// Characterizes a device of `capacity` bytes from timed reads and its measured zones: (offset,
    /// rate), lowest offset first.
    pub fn with_zones(
        reads: &[TimedRead],
        zones: &[(ByteCount, BitRate)],
        capacity: ByteCount,
    ) -> Self {
        let known = zones.iter().filter(|(_, rate)| rate.0 > 0);
        let mut zones: Vec<(u64, f64)> =
            known.map(|(offset, rate)| (offset.0, 8e9 / float(rate.0))).collect();
        // Bytes before the first measured place are assumed to be like those at it.
        if let Some(first) = zones.first_mut() {
            first.0 = 0;
        }
        let map = Map::new(&zones, capacity.0);
        let revolution = revolution(reads, &map);
        let seek = revolution.and_then(|revolution| seek(reads, &map, revolution));
        let seek_error_ms = seek.map_or(0.0, |(_, error)| error);
        Self {
            cost: cost(reads),
            zones: zones.iter().map(|zone| (ByteCount(zone.0), rate(zone.1))).collect(),
            revolution: revolution.map(|nanos| Duration::from_nanos(rounded(nanos))),
            seek: seek.map(|(times, _)| times),
            seek_error_ms,
        }
    }

    /// The actuator of a hard disk, never faster than observed; `None` for a device without one.
    ///
    /// The seek curve is raised by its possible error and by one shortest seek: rates are means
    /// over many tracks, and one read may cross to the next cylinder where others do not.
    pub fn arm(&self, capacity: ByteCount) -> Option<Actuator> {
        let (revolution, mut seek) = (self.revolution?, self.seek?);
        let more = self.seek_error_ms + seek.track_ms;
        seek.track_ms += more;
        seek.full_ms += more;
        Some(Actuator {
            capacity,
            revolution: revolution.mul_f64(SURE_TURN),
            seek,
            following: None,
        })
    }

    /// The parameters of a disk that behaves alike. `None` where too little is known. Head and
    /// cylinder switches are part of the zones' rates, an unknown read-ahead counts as none, and a
    /// device without an actuator is assumed to write as fast as it reads.
    pub fn parameters(&self, name: &str, capacity: ByteCount) -> Option<Parameters> {
        let mechanics = match (self.revolution, &self.seek) {
            (Some(revolution), Some(seek)) => spinning(revolution, *seek, &self.zones, capacity.0)?,
            _ => self.flash()?,
        };
        let parameters = Parameters {
            name: name.to_owned(),
            title: format!("a measured disk of {capacity}"),
            sources: vec!["fitted to timed reads of the device".to_owned()],
            capacity: capacity.0,
            mechanics,
        };
        parameters.check().is_ok().then_some(parameters)
    }

    fn flash(&self) -> Option<Mechanics> {
        let cost = self.cost?;
        let mb_s = float(cost.r0.0) / 8e6;
        let latency_ms = cost.t0.as_secs_f64() * 1e3;
        Some(Mechanics::Flash(Flash { latency_ms, lanes: 1, read_mb_s: mb_s, write_mb_s: mb_s }))
    }
}

/// The mechanics of a spinning disk of which only these values are known.
pub(crate) fn spinning(
    revolution: Duration,
    seek: SeekTimes,
    zones: &[(ByteCount, BitRate)],
    capacity: u64,
) -> Option<Mechanics> {
    let rpm = u32::try_from(rounded(60.0 / revolution.as_secs_f64())).ok()?;
    let ends = zones.iter().skip(1).map(|zone| float(zone.0.0) / float(capacity));
    let zones = zones.iter().zip(ends.chain([1.0]));
    let zones: Vec<Zone> =
        zones.map(|((_, rate), until)| Zone { until, mb_s: float(rate.0) / 8e6 }).collect();
    let fastest = zones.iter().map(|zone| zone.mb_s).fold(0.0, f64::max);
    Some(Mechanics::Spinning(Spinning {
        rpm,
        heads: 1,
        head_switch_ms: 0.0,
        cylinder_switch_ms: 0.0,
        overhead_ms: 0.0,
        seek,
        read_ahead: 0,
        write_back: 0,
        // The interface's rate is unknown: it must not limit the measured zones.
        bus_mb_s: fastest * 2.0,
        zones,
    }))
}

/// The time per byte by place, and with it the share of the stroke at which a byte is.
struct Map {
    /// Zones: offset, nanoseconds per byte, streamed time up to the zone.
    zones: Vec<(u64, f64, f64)>,
    total: f64,
}

impl Map {
    fn new(zones: &[(u64, f64)], capacity: u64) -> Self {
        let (mut all, mut total) = (Vec::with_capacity(zones.len()), 0.0);
        for (at, (offset, per_byte)) in zones.iter().enumerate() {
            all.push((*offset, *per_byte, total));
            let end = zones.get(at + 1).map_or(capacity, |next| next.0);
            total += float(end.saturating_sub(*offset)) * per_byte;
        }
        Self { zones: all, total }
    }

    fn zone(&self, offset: u64) -> Option<&(u64, f64, f64)> {
        self.zones.get(self.zones.partition_point(|zone| zone.0 <= offset).saturating_sub(1))
    }

    fn transfer(&self, read: &TimedRead) -> f64 {
        self.zone(read.offset).map_or(0.0, |zone| float(read.size) * zone.1)
    }

    /// The position of the head, 0 to 1.
    fn place(&self, offset: u64) -> f64 {
        let zone = self.zone(offset).map_or(0.0, |(from, per_byte, streamed)| {
            streamed + float(offset.saturating_sub(*from)) * per_byte
        });
        zone / self.total.max(1.0)
    }
}

impl TimedRead {
    fn nanos(&self) -> f64 {
        self.time.as_secs_f64() * 1e9
    }

    fn goes_on(&self) -> bool {
        self.after.is_some_and(|(_, end)| end == self.offset)
    }

    fn goes_back(&self) -> bool {
        self.after.is_some_and(|(first, _)| first == self.offset + self.size)
    }
}

/// The time of a revolution in nanoseconds.
fn revolution(reads: &[TimedRead], map: &Map) -> Option<f64> {
    let back = reads.iter().filter(|read| read.goes_back());
    let mut times: Vec<f64> = back.map(|read| read.nanos() + map.transfer(read)).collect();
    if times.len() < FEWEST {
        return None;
    }
    let turn = quantile(&mut times, 0.5)?;
    // Rotation gives the same time repeatedly; flash and caches do not, or give shorter ones.
    let apart = quantile(&mut times, 0.75)? - quantile(&mut times, 0.25)?;
    (apart < 0.1 * turn && TURNS.contains(&turn)).then_some(turn)
}

fn cost(reads: &[TimedRead]) -> Option<ReadCost> {
    let mut sizes: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
    for read in reads.iter().filter(|read| !read.goes_on() && !read.goes_back()) {
        sizes.entry(read.size).or_default().push(read.nanos());
    }
    let median = |(size, mut times): (u64, Vec<f64>)| {
        let time = quantile(&mut times, 0.5)?;
        Some((ByteCount(size), Duration::from_nanos(rounded(time))))
    };
    ReadCost::fit(&sizes.into_iter().filter_map(median).collect::<Vec<_>>())
}

fn seek(reads: &[TimedRead], map: &Map, revolution: f64) -> Option<(SeekTimes, f64)> {
    let mut groups: BTreeMap<u64, Vec<(f64, f64)>> = BTreeMap::new();
    for read in reads.iter().filter(|read| !read.goes_on() && !read.goes_back()) {
        let Some((_, end)) = read.after else { continue };
        let x = (map.place(read.offset) - map.place(end)).abs();
        // The curve is steepest at its start: groups have equal width in the root of the distance.
        let group = rounded((x.sqrt() * SEEK_GROUPS).floor());
        groups.entry(group).or_default().push((x, read.nanos() - map.transfer(read)));
    }
    let mut points = Vec::new();
    for group in groups.into_values().filter(|group| group.len() >= FEWEST) {
        let x = group.iter().map(|point| point.0).sum::<f64>() / float(group.len() as u64);
        let mut times: Vec<f64> = group.iter().map(|point| point.1).collect();
        let early = quantile(&mut times, EARLY)?;
        // The wait for the platter is uniform, so that its quantile is the same part of a
        // revolution.
        points.push((x, (early - EARLY * revolution) / 1e6));
    }
    let times = fit_curve(&points)?;
    let curve = SeekCurve::new(&times);
    let above = points.iter().map(|(x, ms)| ms - curve.time(*x) / 1e6);
    // Groups above the curve only: a curve that is too slow is no error for a guarantee.
    Some((times, above.fold(0.0, f64::max)))
}

/// Fits the curve of [`SeekTimes`] to points (share of the stroke, ms): linear in all but the knee,
/// of which every hundredth is tried.
fn fit_curve(points: &[(f64, f64)]) -> Option<SeekTimes> {
    if points.len() < 6 {
        return None;
    }
    let tried = (5..95).filter_map(|hundredths| {
        let knee = f64::from(hundredths) / 100.0;
        let row = |x: f64| {
            // With a fixed knee the curve is linear in its three other values: these are their
            // weights.
            let bend = ((x - knee) / (1.0 - knee)).max(0.0);
            [1.0 - bend, x.min(knee).sqrt() * (1.0 - bend), bend]
        };
        let rows: Vec<Equation> = points.iter().map(|(x, ms)| (row(*x), *ms)).collect();
        let [shortest, root, full] = least_squares(&rows)?;
        let at_knee = shortest + root * knee.sqrt();
        // Only curves that never fall with the distance are possible.
        let sound = shortest >= 0.0 && root >= 0.0 && full >= at_knee;
        let error = rows
            .iter()
            .map(|(row, ms)| (row[0] * shortest + row[1] * root + row[2] * full - ms).powi(2));
        let times =
            SeekTimes { settle_ms: 0.0, track_ms: shortest, root_ms: root, knee, full_ms: full };
        sound.then(|| (error.sum::<f64>(), times))
    });
    tried.min_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, times)| times)
}

/// Three coefficients and their sum.
type Equation = ([f64; 3], f64);

/// Solves by the normal equations and Cramer's rule. `None` where the rows do not determine a
/// solution.
fn least_squares(rows: &[Equation]) -> Option<[f64; 3]> {
    let sum = |of: &dyn Fn(&Equation) -> f64| rows.iter().map(of).sum::<f64>();
    let a: [[f64; 3]; 3] =
        std::array::from_fn(|i| std::array::from_fn(|j| sum(&|(row, _)| row[i] * row[j])));
    let b: [f64; 3] = std::array::from_fn(|i| sum(&|(row, ms)| row[i] * ms));
    let det = determinant(&a);
    let solved: [f64; 3] = std::array::from_fn(|column| {
        let mut replaced = a;
        for (row, value) in replaced.iter_mut().zip(b) {
            row[column] = value;
        }
        determinant(&replaced) / det
    });
    (det.abs() > 1e-9 && solved.iter().all(|value| value.is_finite())).then_some(solved)
}

fn determinant(m: &[[f64; 3]; 3]) -> f64 {
    m[0][0] * (m[1][1] * m[2][2] - m[1][2] * m[2][1])
        - m[0][1] * (m[1][0] * m[2][2] - m[1][2] * m[2][0])
        + m[0][2] * (m[1][0] * m[2][1] - m[1][1] * m[2][0])
}

fn quantile(values: &mut [f64], part: f64) -> Option<f64> {
    values.sort_unstable_by(f64::total_cmp);
    let last = values.len().checked_sub(1)?;
    let at = usize::try_from(rounded(float(last as u64) * part)).ok()?;
    values.get(at).copied()
}

fn rate(per_byte: f64) -> BitRate {
    BitRate(rounded(8e9 / per_byte))
}

/// The smallest number of seeks in a group whose quantiles are used.
const FEWEST: usize = 8;
const SEEK_GROUPS: f64 = 16.0;
/// The quantile of a group: robust against single early times, and far from the late ones.
const EARLY: f64 = 0.1;
/// The factor for the error of a timed revolution, which is a few tenths of a percent.
const SURE_TURN: f64 = 1.005;
/// The range of revolution times in ns: 3,000 to 30,000 revolutions per minute.
const TURNS: std::ops::RangeInclusive<f64> = 2e6..=20e6;

#[cfg(test)]
mod tests;
