//! Times in constant memory: a histogram whose buckets are a thousandth wide.
//!
//! ```text
//!   nanoseconds    0 .. 2047     2048 .. 4095    4096 .. 8191    ...    an hour
//!   a bucket is         1               2               4         ...      2^31 wide
//!   place               n      1024 + n / 2    2048 + n / 4      ...
//! ```
//!
//! The buckets of an HDR histogram (G. Tene) with three digits. Finding the bucket takes three bit
//! operations: it happens three times for every frame.

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// A histogram of times in constant memory, with buckets of 0.1 %.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "FilledBuckets", into = "FilledBuckets")]
pub struct Times {
    counts: Vec<u64>,
    longest: u64,
}

/// The buckets with times in them, and the longest time: the form in messages.
#[derive(Serialize, Deserialize)]
struct FilledBuckets(u64, Vec<(usize, u64)>);

impl From<Times> for FilledBuckets {
    fn from(times: Times) -> Self {
        let filled = times.counts.into_iter().enumerate().filter(|(_, count)| *count > 0);
        Self(times.longest, filled.collect())
    }
}

impl From<FilledBuckets> for Times {
    fn from(FilledBuckets(longest, filled): FilledBuckets) -> Self {
        let mut times = Self { longest, ..Self::default() };
        for (place, more) in filled {
            // From another machine: a place that does not exist must not end this program.
            if let Some(count) = times.counts.get_mut(place) {
                *count += more;
            }
        }
        times
    }
}

impl Default for Times {
    fn default() -> Self {
        Self { counts: vec![0; place(LONGEST) + 1], longest: 0 }
    }
}

impl Times {
    /// Adds one time. Times above an hour count as an hour.
    pub fn record(&mut self, time: Duration) {
        self.record_nanos(crate::nanos(time));
    }

    /// Adds one time in nanoseconds.
    #[inline]
    pub fn record_nanos(&mut self, nanos: u64) {
        let nanos = nanos.min(LONGEST);
        self.counts[place(nanos)] += 1;
        self.longest = self.longest.max(nanos);
    }

    /// Adds all times of another histogram.
    pub fn add(&mut self, others: &Self) {
        for (count, more) in self.counts.iter_mut().zip(&others.counts) {
            *count += more;
        }
        self.longest = self.longest.max(others.longest);
    }

    /// The number of times.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// The time that this share (0 to 1) did not exceed; zero where there are none.
    #[expect(clippy::cast_precision_loss, reason = "a share of a count")]
    pub fn quantile(&self, share: f64) -> Duration {
        // A share from a caller's arithmetic may be slightly outside of the range.
        let least = share.clamp(0.0, 1.0) * self.count() as f64;
        let mut so_far = 0;
        let reached = self.counts.iter().position(|count| {
            so_far += count;
            // A share of zero asks for the shortest time and not for the first, empty bucket.
            so_far > 0 && so_far as f64 >= least
        });
        // The end of a bucket may exceed the longest time in it.
        Duration::from_nanos(reached.map_or(0, end).min(self.longest))
    }

    /// Two quantiles, the smaller share first, in one pass over the buckets.
    #[expect(clippy::cast_precision_loss, reason = "a share of a count")]
    pub fn two_quantiles(&self, shares: [f64; 2]) -> [Duration; 2] {
        let all = self.count() as f64;
        let (mut found, mut next, mut so_far) = ([Duration::ZERO; 2], 0, 0);
        for (place, count) in self.counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            so_far += count;
            while next < 2 && so_far as f64 >= shares[next] * all {
                found[next] = Duration::from_nanos(end(place).min(self.longest));
                next += 1;
            }
            if next == 2 {
                break;
            }
        }
        found
    }

    /// The longest time.
    pub fn max(&self) -> Duration {
        Duration::from_nanos(self.longest)
    }
}

/// The index of the bucket.
fn place(nanos: u64) -> usize {
    // All times below two halves are in octave zero, where a bucket is one nanosecond.
    let octave = (nanos | (2 * HALF - 1)).ilog2() - HALF.ilog2();
    usize::try_from(u64::from(octave) * HALF + (nanos >> octave)).expect("a few ten thousand")
}

/// The longest time in a bucket.
fn end(place: usize) -> u64 {
    let place = place as u64;
    let octave = (place / HALF).saturating_sub(1);
    ((place - octave * HALF + 1) << octave) - 1
}

/// Buckets of an octave: each is one part in 1,024 wide, or a nanosecond.
const HALF: u64 = 1024;

/// An hour, in nanoseconds.
const LONGEST: u64 = 3_600_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_time_is_within_a_thousandth_of_its_bucket() {
        for nanos in (0..5_000).chain((0..41).flat_map(|bit| [(1 << bit) - 1, 1 << bit, 3 << bit]))
        {
            let place = place(nanos);
            let begins = if place == 0 { 0 } else { end(place - 1) + 1 };
            assert!((begins..=end(place)).contains(&nanos), "{nanos} in {begins}..={}", end(place));
            assert!((end(place) - begins) * 1000 <= nanos, "{nanos}");
        }
        let ends: Vec<u64> = (0..place(LONGEST)).map(end).collect();
        assert!(ends.is_sorted_by(|one, next| one < next), "none is empty");
    }

    #[test]
    fn quantiles_are_those_of_the_sorted_times() {
        let mut chance = fastrand::Rng::with_seed(7);
        let mut drawn = || chance.u64(..) >> chance.u32(24..64);
        let mut all: Vec<u64> = (0..1001).map(|_| drawn()).collect();
        let (mut times, mut half) = (Times::default(), Times::default());
        let (ones, others) = all.split_at(300);
        ones.iter().for_each(|nanos| times.record_nanos(*nanos));
        others.iter().for_each(|nanos| half.record(Duration::from_nanos(*nanos)));
        times.add(&half);
        all.sort_unstable();
        for percent in [1u16, 10, 50, 90, 99, 100] {
            let exact = all[(usize::from(percent) * 1001).div_ceil(100) - 1];
            let found = crate::nanos(times.quantile(f64::from(percent) / 100.0));
            assert!((exact..=exact + exact / 1000 + 1).contains(&found), "{percent} %: {found}");
        }
        let two = [0.5, 0.99];
        assert_eq!(times.two_quantiles(two), two.map(|share| times.quantile(share)));
        assert_eq!((times.count(), times.max()), (1001, Duration::from_nanos(all[1000])));
        assert_eq!(Times::default().quantile(0.5), Duration::ZERO);
        let text = serde_json::to_string(&times).unwrap();
        assert_eq!(serde_json::from_str::<Times>(&text).unwrap(), times);
        times.record(Duration::from_secs(7200));
        assert_eq!(times.max(), Duration::from_secs(3600));
    }
}
