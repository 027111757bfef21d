//! How much of a disk is sold in the long run, with more viewers coming than it holds.
//!
//! The measure is the part of the time in which bytes for admitted viewers pass the head: what is
//! accepted as a part of the media rate, exact to the zone. The rest is the arm's and the
//! platter's, and what admission must keep back.

use super::chance::Chance;
use super::requests::{Draw, Wanted};
use super::station::{Rules, Station, Tally};
use super::titles::Shelf;
use std::sync::Arc;
use std::time::Duration;
use units::Moment;

/// What came of a long run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sold {
    /// Part of the time, after the first ten minutes, in which bytes were transferred.
    pub load: f64,
    /// What was asked for, in the same unit.
    pub offered: f64,
    /// All that happened.
    pub tally: Tally,
}

/// Runs `length` of viewers who ask for `overload` times what the disk could transfer.
pub fn long_run(
    rules: &Rules,
    shelf: &dyn Shelf,
    overload: f64,
    length: Duration,
    seed: u64,
) -> Sold {
    let mut chance = Chance::new(seed, LONG_RUN);
    let slot = rules.slot.as_secs_f64();
    let costs = rules.facts.costs.as_ref();
    let seconds = |wanted: &Wanted| {
        let takes = wanted.reads.iter().map(|read| u64::from(read.transfer)).sum();
        Duration::from_nanos(takes).as_secs_f64()
    };
    let mut draw = Draw::new(shelf, true, &mut chance);
    let mut next = |chance: &mut Chance| {
        let (request, title) = draw.next(shelf, chance);
        Wanted::new(&title, &request.view, rules.read_size, slot, costs)
    };
    let sample: f64 = (0..SAMPLE).map(|_| seconds(&next(&mut chance))).sum();
    let gap = sample / f64::from(SAMPLE) / overload;
    let mut station = Station::new(rules, chance.seed());
    let (warm, end) = (WARM_UP.as_secs_f64(), length.as_secs_f64());
    let (mut now, mut offered, mut before) = (0.0, 0.0, None);
    loop {
        now += chance.exponential(gap);
        if now > warm && before.is_none() {
            station.run_until(Moment::ZERO + WARM_UP);
            before = Some(station.tally());
        }
        if now > end {
            break;
        }
        station.run_until(Moment::ZERO + Duration::from_secs_f64(now));
        let wanted = next(&mut chance);
        if now > warm {
            offered += seconds(&wanted);
        }
        let _ = station.arrive(Arc::new(wanted));
    }
    station.run_until(Moment::ZERO + length);
    let tally = station.tally();
    let transferred = tally.transfer - before.map_or(Duration::ZERO, |before| before.transfer);
    let measured = (end - warm).max(f64::MIN_POSITIVE);
    Sold { load: transferred.as_secs_f64() / measured, offered: offered / measured, tally }
}

/// Until then the house fills.
const WARM_UP: Duration = Duration::from_secs(600);

/// Requests drawn to know what one takes.
const SAMPLE: u32 = 200;

// The name of a source of chance.
const LONG_RUN: u64 = 6;
