//! The lateness of a paced device: it shows whether its times can be relied on.
//!
//! Lateness is counted by atomics in buckets a quarter wider each, from 1 us to about 20 minutes:
//! no lock in the path of a read, and constant memory.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The lateness counted so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lateness {
    /// Number of requests handed out.
    pub requests: u64,
    /// The median lateness, to a quarter.
    pub median: Duration,
    /// The 99th percentile of the lateness.
    pub p99: Duration,
    /// The longest lateness, exactly.
    pub longest: Duration,
}

/// The counters.
#[derive(Debug)]
pub(crate) struct LatenessCounter {
    buckets: [AtomicU64; BUCKETS],
    /// The longest lateness in nanoseconds.
    longest: AtomicU64,
}

impl Default for LatenessCounter {
    fn default() -> Self {
        Self { buckets: [const { AtomicU64::new(0) }; BUCKETS], longest: AtomicU64::new(0) }
    }
}

impl LatenessCounter {
    pub(crate) fn count(&self, late: Duration) {
        self.buckets[bucket(late)].fetch_add(1, Ordering::Relaxed);
        let nanos = units::nanos(late);
        self.longest.fetch_max(nanos, Ordering::Relaxed);
    }

    pub(crate) fn so_far(&self) -> Lateness {
        let counts: Vec<u64> = self.buckets.iter().map(|n| n.load(Ordering::Relaxed)).collect();
        let requests: u64 = counts.iter().sum();
        let longest = Duration::from_nanos(self.longest.load(Ordering::Relaxed));
        // The upper edge of the bucket that contains the value of this rank.
        let at = |rank: u64| {
            let mut below = 0;
            let reached = counts.iter().position(|count| {
                below += count;
                below >= rank.max(1)
            });
            // The upper edge of the last bucket can lie above the exact maximum.
            reached.map_or(Duration::ZERO, edge).min(longest)
        };
        let (median, p99) = (requests.div_ceil(2), requests - requests / 100);
        Lateness { requests, median: at(median), p99: at(p99), longest }
    }
}

/// The first bucket whose upper edge is not below `late`.
fn bucket(late: Duration) -> usize {
    // Rounded up everywhere: a reported lateness is never less than the real one.
    let micros = u64::try_from(late.as_nanos().div_ceil(1000)).unwrap_or(u64::MAX).max(1);
    let power = usize::try_from(micros.ilog2()).expect("below 64");
    // The quarter of the way from this power of two to the next.
    let quarter = ((micros - (1 << power)) * 4).div_ceil(1 << power);
    (power * 4 + usize::try_from(quarter).expect("at most 4")).min(BUCKETS - 1)
}

/// The upper edge of a bucket.
fn edge(bucket: usize) -> Duration {
    let (power, quarter) = (bucket / 4, bucket as u64 % 4);
    let base = 1000u64 << power;
    Duration::from_nanos(base + base / 4 * quarter)
}

/// The number of buckets, up to 2^30 us.
const BUCKETS: usize = 121;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_holds_times_up_to_its_edge() {
        for micros in [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 44, 140, 1000, 4300, 1_000_000] {
            let late = Duration::from_micros(micros);
            let bucket = bucket(late);
            assert!(edge(bucket) >= late, "{late:?} in a bucket to {:?}", edge(bucket));
            assert!(bucket == 0 || edge(bucket - 1) < late, "{late:?}");
            assert!(edge(bucket) <= late * 5 / 4 || micros < 4, "{late:?}: {:?}", edge(bucket));
        }
        assert_eq!(bucket(Duration::from_secs(1 << 40)), BUCKETS - 1);
    }

    #[test]
    fn the_quantiles_of_many_times_are_right() {
        let counter = LatenessCounter::default();
        assert_eq!(counter.so_far(), Lateness::default());
        for _ in 0..98 {
            counter.count(Duration::from_micros(40));
        }
        counter.count(Duration::from_micros(500));
        counter.count(Duration::from_micros(20_001));
        let us = Duration::from_micros;
        let so_far = counter.so_far();
        assert_eq!((so_far.requests, so_far.median), (100, us(40)));
        assert_eq!((so_far.p99, so_far.longest), (us(512), us(20_001)));
    }
}
