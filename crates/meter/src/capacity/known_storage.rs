//! Simulated storage whose capacity is known: the meter's own streams are run on it.
//!
//! ```text
//!   Steady      ───────────────      one rate
//!   Bursty      ▔▔▔▔▔▔▔▔╲_______     a credit that is used up above the base rate and comes back
//!                                    below it (cloud volumes, caches of SSDs)
//!   Drifting    ▁▃▆█▆▃▁▃▆█▆▃▁▃▆      a sine
//!   Stalling    ██▁██████▁██████     stops for a time, again and again
//!   Declining   █▇▆▅▄▃▃▃▃▃▃▃▃▃▃▃     becomes slower, and stays so
//! ```
//!
//! All operations go through one queue in order; each has a latency of its own besides, which
//! varies and costs no capacity. What the storage holds for ever is computed in another way than it
//! serves: [`KnownStorage::capacity`] simulates the queue as a fluid, in small steps.

use crate::target::{IoCompletion, IoRequest, Port, VIRTUAL_HEARTBEAT};
use device::DeviceError;
use std::collections::BTreeMap;
use std::f64::consts::TAU;
use std::time::Duration;
use units::Moment;

/// How the rate of a simulated storage changes with time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StorageKind {
    /// One rate.
    Steady,
    /// A credit that is used up above the base rate, and comes back below it.
    Bursty,
    /// A rate that follows a sine.
    Drifting,
    /// Stops again and again.
    Stalling,
    /// Becomes slower, and stays so.
    Declining,
}

impl StorageKind {
    /// All kinds by name.
    pub const NAMES: [(&str, Self); 5] = [
        ("steady", Self::Steady),
        ("bursty", Self::Bursty),
        ("drifting", Self::Drifting),
        ("stalling", Self::Stalling),
        ("declining", Self::Declining),
    ];
}

/// The streams that a storage is made for. Times are in seconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StreamNeeds {
    /// Bytes per second of one stream.
    pub(crate) rate: f64,
    /// Time of a client's buffer.
    pub(crate) allowed: f64,
    /// Length of the shortest run of a search, and of a confirming one.
    pub(crate) run: f64,
    pub(crate) confirming: f64,
}

/// The rate over time, in streams; times are in seconds.
#[derive(Clone, Copy, Debug)]
enum Speed {
    Steady,
    /// The rate while there is credit, and the largest credit in streams times seconds.
    Bursty {
        burst: f64,
        most: f64,
        credit: f64,
    },
    /// Amplitude as a share of the rate, period and phase.
    Drifting {
        share: f64,
        period: f64,
        phase: f64,
    },
    /// Length of a stall, their distance, and the time of the first.
    Stalling {
        stall: f64,
        period: f64,
        first: f64,
    },
    /// The rate at the start, and the time in which it falls to the final one.
    Declining {
        start: f64,
        within: f64,
    },
}

/// A storage of known capacity, as a port. Its time continues from run to run.
#[derive(Clone, Debug)]
pub(crate) struct KnownStorage {
    needs: StreamNeeds,
    /// The rate in streams: the base rate, the mean, or the final one.
    streams: f64,
    speed: Speed,
    chance: fastrand::Rng,
    now: Moment,
    /// Time at which the queue is empty, in seconds.
    free: f64,
    asked: u64,
    under_way: BTreeMap<(Moment, u64), u64>,
}

impl KnownStorage {
    /// A storage of this kind that is drawn from `seed`, with a capacity of up to `most` streams.
    pub(crate) fn drawn(kind: StorageKind, needs: StreamNeeds, most: f64, seed: u64) -> Self {
        let mut chance = fastrand::Rng::with_seed(seed);
        let mut between = |least: f64, most: f64| least + (most - least) * chance.f64();
        // Uniform in powers: as many storages of a few streams as of many.
        let streams = between(1.2_f64.ln(), most.ln()).exp();
        let StreamNeeds { allowed, run, confirming, .. } = needs;
        let speed = match kind {
            StorageKind::Steady => Speed::Steady,
            StorageKind::Bursty => {
                let burst = streams * between(1.2, 3.0);
                // Up to what a confirming run uses up at the burst's rate.
                let most = (burst - streams) * confirming * between(0.05, 0.8);
                Speed::Bursty { burst, most, credit: most }
            }
            StorageKind::Drifting => Speed::Drifting {
                share: between(0.02, 0.2),
                period: between(run / 4.0, confirming),
                phase: between(0.0, TAU),
            },
            StorageKind::Stalling => {
                let period = between(4.0 * allowed, run / 2.0);
                let stall = between(0.1, 0.7) * allowed;
                Speed::Stalling { stall, period, first: between(0.0, period) }
            }
            StorageKind::Declining => {
                let start = streams * between(1.1, 2.0);
                Speed::Declining { start, within: run * between(0.5, 3.0) }
            }
        };
        Self {
            needs,
            streams,
            speed,
            chance: fastrand::Rng::with_seed(seed),
            now: Moment::ZERO,
            free: 0.0,
            asked: 0,
            under_way: BTreeMap::new(),
        }
    }

    /// Lets time pass without requests, once those under way are done.
    pub(crate) fn rest(&mut self, time: Duration) {
        self.under_way.clear();
        self.now = self.now.max(moment(self.free)) + time;
    }

    /// The largest number of streams that it holds for ever.
    pub(crate) fn capacity(&self) -> u32 {
        let (Speed::Drifting { period, .. } | Speed::Stalling { period, .. }) = self.speed else {
            return whole(self.streams);
        };
        // More streams are never late where fewer are, so the limit is found by halving.
        let (mut held, mut failed) = (0, whole(self.streams) + 2);
        while failed - held > 1 {
            let middle = held + (failed - held) / 2;
            let late = self.longest_delay(f64::from(middle), period) > self.needs.allowed;
            *(if late { &mut failed } else { &mut held }) = middle;
        }
        held
    }

    /// The longest delay of a fluid of `streams` streams: cumulative arrivals against cumulative
    /// service, in small steps over several periods.
    fn longest_delay(&self, streams: f64, period: f64) -> f64 {
        let step = period / 4000.0;
        let (mut served, mut arrived_at, mut longest) = (0.0_f64, 0.0_f64, 0.0_f64);
        for number in 0..4000 * 8 {
            let time = f64::from(number) * step;
            // Service of an empty queue is lost.
            served = (served + self.rate_at(time) * step).min(streams * (time + step));
            // The fluid that leaves now arrived when the sum of arrivals was that of service.
            arrived_at = arrived_at.max(served / streams);
            longest = longest.max(time - arrived_at);
        }
        longest
    }

    /// The rate in streams at a time.
    fn rate_at(&self, time: f64) -> f64 {
        match self.speed {
            Speed::Steady | Speed::Bursty { .. } => self.streams,
            Speed::Drifting { share, period, phase } => {
                self.streams * (1.0 + share * (TAU * time / period + phase).sin())
            }
            Speed::Stalling { stall, period, first } => {
                let since = (time - first).rem_euclid(period);
                if since < stall { 0.0 } else { self.streams }
            }
            Speed::Declining { start, within } => {
                start + (self.streams - start) * (time / within).min(1.0)
            }
        }
    }

    /// Serves `work`, in streams times seconds, from `from` on. Returns the time of its end.
    fn serve(&mut self, from: f64, mut work: f64) -> f64 {
        let idle = from - self.free;
        match &mut self.speed {
            Speed::Steady => from + work / self.streams,
            Speed::Bursty { burst, most, credit } => {
                *credit = (*credit + idle.max(0.0) * self.streams).min(*most);
                let fast = (work / *burst).min(*credit / (*burst - self.streams));
                *credit = (*credit - fast * (*burst - self.streams)).max(0.0);
                from + fast + (work - fast * *burst).max(0.0) / self.streams
            }
            Speed::Stalling { stall, period, first } => {
                let (stall, period, first) = (*stall, *period, *first);
                let mut time = from;
                loop {
                    let since = (time - first).rem_euclid(period);
                    // Steps below a nanosecond would not advance the time.
                    if since + 1e-9 < stall {
                        time += stall - since;
                        continue;
                    }
                    let until_stall = (period - since).max(1e-9);
                    if work <= until_stall * self.streams {
                        return time + work / self.streams;
                    }
                    work -= until_stall * self.streams;
                    time += until_stall;
                }
            }
            // The rate changes little during one operation, so a few steps integrate it.
            Speed::Drifting { .. } | Speed::Declining { .. } => {
                let mut time = from;
                for left in (1..=4).rev() {
                    let part = work / f64::from(left);
                    // The rate in the middle of the step.
                    let middle = time + part / self.rate_at(time) / 2.0;
                    time += part / self.rate_at(middle);
                    work -= part;
                }
                time
            }
        }
    }
}

impl Port for KnownStorage {
    fn now(&self) -> Moment {
        self.now
    }

    fn begin(&mut self, request: IoRequest) -> Result<(), DeviceError> {
        let from = seconds(self.now).max(self.free);
        #[expect(clippy::cast_precision_loss, reason = "bytes of a frame")]
        let work = request.len as f64 / self.needs.rate;
        let end = self.serve(from, work);
        self.free = end;
        let latency = self.needs.allowed / LATENCY * self.chance.f64();
        self.under_way.insert((moment(end + latency), self.asked), request.tag);
        self.asked += 1;
        Ok(())
    }

    fn wait(&mut self, until: Moment, done: &mut Vec<IoCompletion>) -> Result<(), DeviceError> {
        let next = self.under_way.first_key_value().map(|((at, _), _)| *at);
        self.now = self.now.max(next.map_or(until, |next| next.min(until)));
        while let Some(entry) = self.under_way.first_entry()
            && entry.key().0 <= self.now
        {
            let ((at, _), tag) = entry.remove_entry();
            done.push(IoCompletion::new(tag, at, Ok(())));
        }
        Ok(())
    }

    fn heartbeat(&self) -> Duration {
        VIRTUAL_HEARTBEAT
    }

    fn method(&self) -> String {
        "simulated storage of known capacity".to_owned()
    }
}

/// The part of the buffer's time, one in this number, up to which an operation's latency is.
const LATENCY: f64 = 20.0;

fn seconds(moment: Moment) -> f64 {
    units::float(moment.0) / 1e9
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "hours, not negative")]
fn moment(seconds: f64) -> Moment {
    Moment((seconds * 1e9).ceil() as u64)
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "thousands at most")]
fn whole(streams: f64) -> u32 {
    streams.floor() as u32
}
