//! How much of a disk is sold in the long run, with more viewers coming than it holds.
//!
//! The measure is the part of the time in which bytes for admitted viewers pass the head: what is
//! accepted as a part of the media rate, exact to the zone. The rest is the arm's and the
//! platter's, and what admission must keep back.

use super::disk_server::{Rules, RunCounters, SingleDiskServer};
use super::random::RandomSource;
use super::requests::{Draw, ReadSchedule};
use super::titles::TitleSource;
use std::sync::Arc;
use std::time::Duration;
use units::Moment;

/// What came of a long run.
#[derive(Clone, Debug, PartialEq)]
pub struct LongRunResult {
    /// Part of the time, after the first ten minutes, in which bytes were transferred.
    pub load: f64,
    /// Load of each half minute from the start.
    pub by_time: Vec<f64>,
    /// What was asked for, in the same unit.
    pub offered: f64,
    /// All that happened.
    pub counters: RunCounters,
}

/// Runs `length` of viewers who ask for `overload` times what the disk could transfer.
pub fn long_run(
    rules: &Rules,
    source: &dyn TitleSource,
    overload: f64,
    length: Duration,
    seed: u64,
) -> LongRunResult {
    let mut random = RandomSource::new(seed, LONG_RUN);
    let mut arrivals = ViewerArrivals::new(rules, source, overload, &mut random);
    let mut server = SingleDiskServer::new(rules, random.seed());
    let (mut by_time, mut at) = (Vec::new(), Duration::ZERO);
    let (mut sold, mut offered) = (Duration::ZERO, 0.0);
    while at < length {
        let step = STEP.min(length - at);
        let (before, asked) = (server.counters().transfer, arrivals.asked);
        at += step;
        arrivals.come_until(&mut server, at, &mut random);
        let transfer = server.counters().transfer - before;
        by_time.push(transfer.as_secs_f64() / step.as_secs_f64());
        // The time in which the house fills would lower the load of any policy alike.
        if at > WARM_UP {
            sold += transfer;
            offered += arrivals.asked - asked;
        }
    }
    // A run that is no longer than the warm-up has the load zero: 0 / 0 would be no number.
    let measured = length.saturating_sub(WARM_UP).as_secs_f64().max(f64::MIN_POSITIVE);
    let load = sold.as_secs_f64() / measured;
    LongRunResult { load, by_time, offered: offered / measured, counters: server.counters() }
}

/// Viewers who come as a Poisson process, for titles that may be asked for again.
pub(super) struct ViewerArrivals<'a> {
    source: &'a dyn TitleSource,
    draw: Draw,
    /// Seconds between two in the mean.
    gap: f64,
    next: f64,
    /// Seconds of transfer that they have asked for.
    asked: f64,
    slot: f64,
}

impl<'a> ViewerArrivals<'a> {
    /// Viewers who ask for `overload` times what the disk could transfer.
    pub(super) fn new(
        rules: &Rules,
        source: &'a dyn TitleSource,
        overload: f64,
        random: &mut RandomSource,
    ) -> Self {
        let draw = Draw::new(source, true, random);
        let slot = rules.slot.as_secs_f64();
        let mut arrivals = Self { source, draw, gap: 0.0, next: 0.0, asked: 0.0, slot };
        // The gap follows from what a request takes on average, so that the load is the wanted
        // multiple.
        let sample: f64 = (0..SAMPLE).map(|_| seconds(&arrivals.wants(rules, random))).sum();
        arrivals.gap = sample / f64::from(SAMPLE) / overload;
        arrivals.next = random.exponential(arrivals.gap);
        arrivals
    }

    /// All who come before `end`.
    pub(super) fn come_until(
        &mut self,
        server: &mut SingleDiskServer<'_>,
        end: Duration,
        random: &mut RandomSource,
    ) {
        // The time of the next viewer is kept from call to call, so that the steps of a run do not
        // change its arrivals.
        while self.next < end.as_secs_f64() {
            server.run_until(Moment::ZERO + Duration::from_secs_f64(self.next));
            let schedule = self.wants(server.rules(), random);
            self.asked += seconds(&schedule);
            // A refusal is no error here: the server counts it.
            let _ = server.arrive(Arc::new(schedule));
            self.next += random.exponential(self.gap);
        }
        server.run_until(Moment::ZERO + end);
    }

    fn wants(&mut self, rules: &Rules, random: &mut RandomSource) -> ReadSchedule {
        let (request, title) = self.draw.next(self.source, random);
        let costs = rules.timings.costs.as_ref();
        ReadSchedule::new(&title, &request.view, rules.read_size, self.slot, costs)
    }
}

fn seconds(schedule: &ReadSchedule) -> f64 {
    let takes = schedule.reads.iter().map(|read| u64::from(read.transfer)).sum();
    Duration::from_nanos(takes).as_secs_f64()
}

/// Until then the house fills.
const WARM_UP: Duration = Duration::from_secs(600);

/// Length of one interval of the load over time.
const STEP: Duration = Duration::from_secs(30);

/// Requests drawn to know what one takes.
const SAMPLE: u32 = 200;

// The name of a source of chance.
const LONG_RUN: u64 = 6;
