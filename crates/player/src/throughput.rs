//! What a player believes its way to the server to give: averages over the pieces that came, the
//! younger the heavier.
//!
//! ```text
//!   bits of a piece / (its time - the usual wait) ─┬─▶ fast, half-life 3 s ─┐
//!                                                  └─▶ slow, half-life 9 s ─┴─▶ rate: the lesser
//!   wait for its first byte ───────────────────────────▶ half-life 9 ─────────▶ wait
//! ```
//!
//! As hls.js 1.7 estimates (`src/utils/ewma.ts` and `ewma-bandwidth-estimator.ts`): exponentially
//! weighted moving averages that begin without a bias to zero. A piece weighs as many seconds as it
//! took, so that half-lives are in seconds of fetching, not of life. It forgets nothing while
//! nothing is fetched.

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
    /// Nothing has come as yet.
    pub(crate) const fn new() -> Self {
        Self { fast: Average::new(FAST), slow: Average::new(SLOW), wait: Average::new(SLOW) }
    }

    /// A piece has come.
    pub(crate) fn came(&mut self, transfer: &Download) {
        let waited = transfer.waited.as_secs_f64();
        // Long waits are the exception, and weigh less.
        let weight = std::f64::consts::SQRT_2 * (-waited * waited / 2.0).exp();
        self.wait.add(weight, waited.max(LEAST_WAIT));
        let usual = self.wait().min(transfer.waited);
        let took = transfer.took.saturating_sub(usual).max(LEAST_TIME).as_secs_f64();
        #[expect(clippy::cast_precision_loss, reason = "bytes of a piece")]
        let bits = transfer.bytes.0 as f64 * 8.0;
        self.fast.add(took, bits / took);
        self.slow.add(took, bits / took);
    }

    /// What is to be expected; `None` before the first piece.
    pub(crate) fn rate(&self) -> Option<BitRate> {
        let rate = self.fast.value()?.min(self.slow.value()?);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a rate")]
        let rate = rate.round() as u64;
        Some(BitRate(rate))
    }

    /// How long the first byte of an answer is to be waited for.
    pub(crate) fn wait(&self) -> Duration {
        self.wait.value().map_or(UNKNOWN_WAIT, Duration::from_secs_f64)
    }
}

/// An exponentially weighted moving average.
#[derive(Clone, Copy, Debug)]
struct Average {
    /// Weight after which what was before counts for half.
    half_life: f64,
    /// As if it had begun with zero.
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
        // What is left of the zero it began with is taken out.
        let filled = 1.0 - 0.5f64.powf(self.weight / self.half_life);
        (filled > 0.0).then(|| self.sum / filled)
    }
}

/// `abrEwmaFastVoD`: follows a fall.
const FAST: f64 = 3.0;

/// `abrEwmaSlowVoD`: is not taken in by a short rise.
const SLOW: f64 = 9.0;

/// Least time that a piece is taken to have needed: quicker ones say nothing about the rate.
const LEAST_TIME: Duration = Duration::from_millis(50);

/// Least time to first byte, in seconds.
const LEAST_WAIT: f64 = 0.005;

/// Until there is one.
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

    /// The rate in kb/s after each.
    fn rates(transfers: &[Download]) -> Vec<u64> {
        let mut throughput = Throughput::new();
        let rate = |transfer: &Download| {
            throughput.came(transfer);
            (throughput.rate().unwrap().0 + 500) / 1000
        };
        transfers.iter().map(rate).collect()
    }

    #[test]
    fn nothing_is_believed_of_a_way_not_gone() {
        let throughput = Throughput::new();
        assert_eq!((throughput.rate(), throughput.wait()), (None, UNKNOWN_WAIT));
    }

    /// By hand. Three seconds at 8 Mb/s: both averages are 8. Then three at 2 Mb/s: fast is
    /// (8 x 1/2 x 1/2 + 2 x 1/2) / (3/4) = 4; slow, with k = 2^(-1/3), (8k + 2) / (1 + k) = 4.655.
    /// Then three at 8: fast (4 x 3/4 x 1/2 + 8 x 1/2) / (7/8) = 6.286; slow
    /// (8k^2 + 2k + 8) / (k^2 + k + 1) = 6.035, which is the lesser.
    #[test]
    fn it_falls_at_once_and_rises_slowly() {
        let seconds = [transfer(3000, 3000, 0), transfer(750, 3000, 0), transfer(3000, 3000, 0)];
        assert_eq!(rates(&seconds), [8000, 4000, 6035]);
    }

    #[test]
    fn the_usual_wait_for_a_first_byte_is_not_the_ways_width() {
        // A megabyte in a second, half of it waited: 16 Mb/s once waiting is usual.
        assert_eq!(rates(&[transfer(1000, 1000, 500)]), [16_000]);
        // One that is not usual counts for what it is beyond that.
        assert_eq!(rates(&[transfer(1000, 1000, 0), transfer(1000, 2000, 1000)]), [8000, 5950]);
        // What came at once came in 50 ms.
        assert_eq!(rates(&[transfer(100, 1, 1)]), [16_000]);
    }
}
