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
#[derive(Clone, Debug, PartialEq)]
pub struct Sold {
    /// Part of the time, after the first ten minutes, in which bytes were transferred.
    pub load: f64,
    /// The same for each half minute from the start.
    pub by_time: Vec<f64>,
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
    let mut visitors = Visitors::new(rules, shelf, overload, &mut chance);
    let mut station = Station::new(rules, chance.seed());
    let (mut by_time, mut at) = (Vec::new(), Duration::ZERO);
    let (mut sold, mut offered) = (Duration::ZERO, 0.0);
    while at < length {
        let step = STEP.min(length - at);
        let (before, asked) = (station.tally().transfer, visitors.asked);
        at += step;
        visitors.come_until(&mut station, at, &mut chance);
        let transfer = station.tally().transfer - before;
        by_time.push(transfer.as_secs_f64() / step.as_secs_f64());
        if at > WARM_UP {
            sold += transfer;
            offered += visitors.asked - asked;
        }
    }
    let measured = length.saturating_sub(WARM_UP).as_secs_f64().max(f64::MIN_POSITIVE);
    let load = sold.as_secs_f64() / measured;
    Sold { load, by_time, offered: offered / measured, tally: station.tally() }
}

/// Viewers who come as a Poisson process, for titles that may be asked for again.
pub(super) struct Visitors<'a> {
    shelf: &'a dyn Shelf,
    draw: Draw,
    /// Seconds between two in the mean.
    gap: f64,
    next: f64,
    /// Seconds of transfer that they have asked for.
    asked: f64,
    slot: f64,
}

impl<'a> Visitors<'a> {
    /// They ask for `overload` times what the disk could transfer.
    pub(super) fn new(
        rules: &Rules,
        shelf: &'a dyn Shelf,
        overload: f64,
        chance: &mut Chance,
    ) -> Self {
        let draw = Draw::new(shelf, true, chance);
        let slot = rules.slot.as_secs_f64();
        let mut visitors = Self { shelf, draw, gap: 0.0, next: 0.0, asked: 0.0, slot };
        let sample: f64 = (0..SAMPLE).map(|_| seconds(&visitors.wants(rules, chance))).sum();
        visitors.gap = sample / f64::from(SAMPLE) / overload;
        visitors.next = chance.exponential(visitors.gap);
        visitors
    }

    /// All who come before `end`.
    pub(super) fn come_until(
        &mut self,
        station: &mut Station<'_>,
        end: Duration,
        chance: &mut Chance,
    ) {
        while self.next < end.as_secs_f64() {
            station.run_until(Moment::ZERO + Duration::from_secs_f64(self.next));
            let wanted = self.wants(station.rules(), chance);
            self.asked += seconds(&wanted);
            let _ = station.arrive(Arc::new(wanted));
            self.next += chance.exponential(self.gap);
        }
        station.run_until(Moment::ZERO + end);
    }

    fn wants(&mut self, rules: &Rules, chance: &mut Chance) -> Wanted {
        let (request, title) = self.draw.next(self.shelf, chance);
        let costs = rules.facts.costs.as_ref();
        Wanted::new(&title, &request.view, rules.read_size, self.slot, costs)
    }
}

fn seconds(wanted: &Wanted) -> f64 {
    let takes = wanted.reads.iter().map(|read| u64::from(read.transfer)).sum();
    Duration::from_nanos(takes).as_secs_f64()
}

/// Until then the house fills.
const WARM_UP: Duration = Duration::from_secs(600);

/// Of the curve over time.
const STEP: Duration = Duration::from_secs(30);

/// Requests drawn to know what one takes.
const SAMPLE: u32 = 200;

// The name of a source of chance.
const LONG_RUN: u64 = 6;
