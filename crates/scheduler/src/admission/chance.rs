//! How long the platter lets a sweep's reads wait in all: the one thing about a sweep that is left
//! to chance here. Seeks are charged their bound, and each read's transfer is known.
//!
//! ```text
//!   sure     n R                    every read a whole revolution
//!   mean     n R / 2                each wait uniform in [0, R], independent of the others
//!   between  R (n/2 + what is exceeded with a chance of one in a million only)
//! ```
//!
//! Nothing of this is a guarantee: waits of a disk that reads in a regular pattern are not
//! independent, and a bad moment is as bad for all who are there.

use crate::disk_timings::DiskTimings;
use disk::Costs;

/// A number of reads, each of which waits for some part of a revolution.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waits {
    /// Nanoseconds of a revolution.
    pub(super) revolution: f64,
}

impl Waits {
    /// Where the disk's revolution is known; a disk that does not turn lets nobody wait.
    pub(super) fn of(timings: &DiskTimings) -> Option<Self> {
        let round = timings.round.as_ref()?;
        Some(Self { revolution: round.revolution.as_secs_f64() * 1e9 })
    }

    /// Nanoseconds of a sweep in which the reads wait for so long in all, and not for a revolution
    /// each.
    pub(super) fn sweep(self, costs: &Costs, reads: u64, transfer: u64, waiting: u64) -> u64 {
        self.of_sweep(costs.batch(reads, transfer), reads, waiting)
    }

    /// Nanoseconds of a sweep of `visits` positionings, of at most `sure` in any case, in which the
    /// reads wait for `waiting` in all.
    pub(super) fn of_sweep(self, sure: u64, visits: u64, waiting: u64) -> u64 {
        // `sure` contains a whole revolution for each visit; the wait replaces that part.
        let turning = self.whole(float(visits));
        sure.saturating_sub(turning).saturating_add(waiting.min(turning)).min(sure)
    }

    /// By the normal distribution with the sum's mean and variance (n R²/12), `deviations` standard
    /// deviations above the mean; nanoseconds.
    pub(super) fn normal(self, reads: u64, deviations: f64) -> u64 {
        let n = float(reads);
        // No read waits longer than a revolution, so the sum is at most n.
        self.whole((n / 2.0 + deviations * (n / 12.0).sqrt()).min(n))
    }

    /// By Chernoff's bound: the least time that is exceeded with a chance of at most e^-`exponent`.
    ///
    /// The sum of n waits exceeds n R d with a chance of at most e^(-n I(d)), where
    /// I(d) = max over x of x d - ln((e^x - 1) / x).
    pub(super) fn chernoff(self, reads: u64, exponent: f64) -> u64 {
        let n = float(reads);
        if reads == 0 {
            return 0;
        }
        // n I grows with the tilt, from 0 without bound. Halved by its logarithm: tilts differ by
        // many orders of magnitude.
        let (mut low, mut high) = (SMALLEST_TILT.ln(), LARGEST_TILT.ln());
        for _ in 0..HALVINGS {
            let middle = f64::midpoint(low, high);
            if n * rate(middle.exp()) < exponent { low = middle } else { high = middle }
        }
        // The upper end of the interval: its chance is below the bound for certain.
        self.whole(n * tilted_mean(high.exp()))
    }

    /// By Hoeffding's inequality, for as many reads as there are since some moment: exceeded with a
    /// chance of at most e^-`exponent`.
    ///
    /// n R / 2 + min( n R / 2, R √(n exponent / 2) )
    pub(super) fn hoeffding(self, reads: u64, exponent: f64) -> u64 {
        let n = float(reads);
        self.whole(n / 2.0 + (n / 2.0).min((n * exponent / 2.0).sqrt()))
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "not negative, and float to integer casts saturate"
    )]
    fn whole(self, revolutions: f64) -> u64 {
        (revolutions * self.revolution).ceil() as u64
    }
}

/// Cramér's rate function of a uniform part of one: I(d) for the d of which `x` is the tilt, at
/// which the maximum is.
fn rate(x: f64) -> f64 {
    // ln((e^x - 1) / x) without e^x, which overflows.
    (x * tilted_mean(x) - (x + (1.0 - (-x).exp()).ln() - x.ln())).max(0.0)
}

/// The mean of the uniform distribution tilted by `x`: d, from 1/2 at 0 to 1.
fn tilted_mean(x: f64) -> f64 {
    1.0 / (1.0 - (-x).exp()) - 1.0 / x
}

#[expect(clippy::cast_precision_loss, reason = "far fewer than 2^52 reads")]
fn float(reads: u64) -> f64 {
    reads as f64
}

/// To a millionth of a millionth.
const HALVINGS: u32 = 40;
/// Below, the mean of the tilted distribution is a difference of large numbers.
const SMALLEST_TILT: f64 = 1e-6;
/// Beyond, d is one for all that counts.
const LARGEST_TILT: f64 = 1e9;

/// The chance, in each slot, with which the policies by chance let its reads be late: once in six
/// days of 500 ms slots. As the exponent of e ...
pub(super) const ONE_IN_A_MILLION: f64 = 13.815_510_557_964_274;
/// ... and as standard deviations of the normal distribution.
pub(super) const DEVIATIONS: f64 = 4.753_424_308_822_899;

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Waits = Waits { revolution: 1e6 };

    #[test]
    fn what_chernoff_says_is_seldom_exceeded_is() {
        // Two waits: the sum exceeds 2 - s with a chance of s²/2. At 1 %: s = 0.141.
        let exactly = 1_858_579;
        let bound = MS.chernoff(2, 100f64.ln());
        assert!((exactly..2_000_000).contains(&bound), "{bound}");
        // I(3/4): x = 3.593, 0.75 x - ln((e^x - 1)/x) = 0.4082.
        assert!((tilted_mean(3.593) - 0.75).abs() < 1e-3, "{}", tilted_mean(3.593));
        assert!((rate(3.593) - 0.408_2).abs() < 1e-3, "{}", rate(3.593));
        assert_eq!(MS.chernoff(0, 1.0), 0);
        let whole = rate(LARGEST_TILT);
        assert!(whole > 15.0, "a whole revolution each is never exceeded: {whole}");
    }

    #[test]
    fn all_lie_between_the_mean_and_the_worst_and_come_near_the_mean() {
        for reads in [1, 2, 5, 24, 60, 250, 5000] {
            let (mean, worst) = (reads * 500_000, reads * 1_000_000);
            let all = [
                MS.normal(reads, DEVIATIONS),
                MS.chernoff(reads, ONE_IN_A_MILLION),
                MS.hoeffding(reads, ONE_IN_A_MILLION),
            ];
            for waits in all {
                assert!((mean..=worst).contains(&waits), "{reads}: {all:?}");
            }
            assert!(all[1] <= all[2], "Hoeffding's bound is the weaker: {reads}, {all:?}");
        }
        assert!(MS.chernoff(5000, ONE_IN_A_MILLION) < 5000 * 530_000);
        // 48 waits: mean 24, deviation 2.
        assert_eq!(MS.normal(48, 3.0), 30_000_000);
        // 50 waits at e^-4: 25 + √(50 × 4 / 2).
        assert_eq!(MS.hoeffding(50, 4.0), 35_000_000);
    }
}
