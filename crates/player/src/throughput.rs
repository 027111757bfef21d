//! A player's estimate of its throughput: averages over the received pieces, in which later pieces
//! weigh more.
//!
//! ```text
//!   bits of a piece / (its time - the mean wait) ──┬─▶ fast, half-life 3 s ─┐
//!                                                  └─▶ slow, half-life 9 s ─┴─▶ rate: the lesser
//!   wait for its first byte ───────────────────────────▶ half-life 9 ─────────▶ wait
//! ```
//!
//! The method of hls.js 1.7 (`src/utils/ewma.ts` and `ewma-bandwidth-estimator.ts`): exponentially
//! weighted moving averages without a bias to their initial zero. The weight of a piece is its
//! fetch time in seconds, so that half-lives count time spent fetching; while nothing is fetched,
//! the estimate does not change.

use std::time::Duration;
use units::{BitRate, ByteCount};

/// Size and timing of one completed request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Download {
    /// Bytes received.
    pub bytes: ByteCount,
    /// From the request to the last byte.
    pub took: Duration,
    /// From the request to the first byte.
    pub waited: Duration,
}

/// Estimate of throughput and time to first byte: exponentially weighted moving averages as in
/// hls.js 1.7.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Throughput {
    fast: Average,
    slow: Average,
    wait: Average,
}

impl Throughput {
    /// An estimate without any piece.
    pub(crate) const fn new() -> Self {
        Self { fast: Average::new(FAST), slow: Average::new(SLOW), wait: Average::new(SLOW) }
    }

    /// Adds a received piece.
    pub(crate) fn piece_received(&mut self, transfer: &Download) {
        let waited = transfer.waited.as_secs_f64();
        // Long waits are exceptions and weigh less.
        let weight = std::f64::consts::SQRT_2 * (-waited * waited / 2.0).exp();
        self.wait.add(weight, waited.max(LEAST_WAIT));
        // This response may have begun sooner than the mean: its transfer must not look shorter
        // than it was.
        let wait = self.wait().min(transfer.waited);
        let took = transfer.took.saturating_sub(wait).max(LEAST_TIME).as_secs_f64();
        #[expect(clippy::cast_precision_loss, reason = "bytes of a piece")]
        let bits = transfer.bytes.0 as f64 * 8.0;
        self.fast.add(took, bits / took);
        self.slow.add(took, bits / took);
    }

    /// The estimated rate; `None` before the first piece.
    pub(crate) fn rate(&self) -> Option<BitRate> {
        let lesser = self.fast.value()?.min(self.slow.value()?);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a rate")]
        let rate = lesser.round() as u64;
        Some(BitRate(rate))
    }

    /// The estimated time to the first byte of a response.
    pub(crate) fn wait(&self) -> Duration {
        self.wait.value().map_or(UNKNOWN_WAIT, Duration::from_secs_f64)
    }
}

/// An exponentially weighted moving average.
#[derive(Clone, Copy, Debug)]
struct Average {
    /// Weight after which earlier values count for half.
    half_life: f64,
    /// Weighted sum that starts with a zero value.
    sum: f64,
    weight: f64,
}

impl Average {
    const fn new(half_life: f64) -> Self {
        Self { half_life, sum: 0.0, weight: 0.0 }
    }

    fn add(&mut self, weight: f64, value: f64) {
        let kept = 0.5f64.powf(weight / self.half_life);
        self.sum = value * (1.0 - kept) + self.sum * kept;
        self.weight += weight;
    }

    fn value(&self) -> Option<f64> {
        // Removes the remaining weight of the initial zero.
        let filled = 1.0 - 0.5f64.powf(self.weight / self.half_life);
        (filled > 0.0).then(|| self.sum / filled)
    }
}

/// `abrEwmaFastVoD`: follows a falling rate.
const FAST: f64 = 3.0;

/// `abrEwmaSlowVoD`: ignores a short rise of the rate.
const SLOW: f64 = 9.0;

/// Shortest fetch time that counts: a shorter one is dominated by latency.
const LEAST_TIME: Duration = Duration::from_millis(50);

/// Shortest time to first byte that counts, in seconds.
const LEAST_WAIT: f64 = 0.005;

/// The time to first byte before the first piece.
const UNKNOWN_WAIT: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use super::*;

    fn transfer(kilobytes: u64, took_ms: u64, waited_ms: u64) -> Download {
        Download {
            bytes: ByteCount(kilobytes * 1000),
            took: Duration::from_millis(took_ms),
            waited: Duration::from_millis(waited_ms),
        }
    }

    /// The estimated rate in kb/s after each transfer.
    fn rates(transfers: &[Download]) -> Vec<u64> {
        let mut throughput = Throughput::new();
        let rate = |transfer: &Download| {
            throughput.piece_received(transfer);
            (throughput.rate().unwrap().0 + 500) / 1000
        };
        transfers.iter().map(rate).collect()
    }

    #[test]
    fn without_a_piece_there_is_no_estimated_rate() {
        let throughput = Throughput::new();
        assert_eq!((throughput.rate(), throughput.wait()), (None, UNKNOWN_WAIT));
    }

    /// By hand. Three seconds at 8 Mb/s: both averages are 8. Then three at 2 Mb/s: fast is (8 x
    /// 1/2 x 1/2 + 2 x 1/2) / (3/4) = 4; slow, with k = 2^(-1/3), (8k + 2) / (1 + k) = 4.655. Then
    /// three at 8: fast (4 x 3/4 x 1/2 + 8 x 1/2) / (7/8) = 6.286; slow (8k^2 + 2k + 8) / (k^2 + k
    /// + 1) = 6.035, which is the lesser.
    #[test]
    fn the_estimate_falls_at_once_and_rises_slowly() {
        let seconds = [transfer(3000, 3000, 0), transfer(750, 3000, 0), transfer(3000, 3000, 0)];
        assert_eq!(rates(&seconds), [8000, 4000, 6035]);
    }

    #[test]
    fn the_mean_time_to_first_byte_does_not_reduce_the_rate() {
        // A megabyte in a second, half of which is waiting: 16 Mb/s.
        assert_eq!(rates(&[transfer(1000, 1000, 500)]), [16_000]);
        // A wait above the mean counts with the part above the mean.
        assert_eq!(rates(&[transfer(1000, 1000, 0), transfer(1000, 2000, 1000)]), [8000, 5950]);
        // The shortest fetch time that counts is 50 ms.
        assert_eq!(rates(&[transfer(100, 1, 1)]), [16_000]);
    }
}
