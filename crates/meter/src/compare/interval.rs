//! The difference of two ratios and its confidence interval.

use super::blocks::{Point, blocks, total};
use serde::Serialize;

/// An estimate of a figure, or of a difference of two, with its confidence interval from `low` to
/// `high`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Interval {
    /// The measured value.
    pub estimate: f64,
    /// The lower end of the interval.
    pub low: f64,
    /// The upper end of the interval.
    pub high: f64,
}

/// Number of replicates: enough for the 0.5 % ends to be stable.
const REPLICATES: usize = 2000;

/// The interval of B's ratio less A's by block resampling; `outside` is the accepted probability
/// that the true value is outside. With `log` it is the difference of logarithms, that is, a
/// relative difference.
pub(super) fn difference(a: &[Point], b: &[Point], log: bool, outside: f64, seed: u64) -> Interval {
    let scale = |ratio: f64| if log { ratio.ln() } else { ratio };
    let (a, b) = (blocks(a), blocks(b));
    let (of_a, of_b) = (Ratio::of(&a, log), Ratio::of(&b, log));
    let estimate = scale(of_b.ratio) - scale(of_a.ratio);
    // The runs are independent, so their variances add up.
    let error = of_a.error.hypot(of_b.error);
    if !estimate.is_finite() || error == 0.0 {
        return Interval { estimate, low: estimate, high: estimate };
    }
    let mut chance = fastrand::Rng::with_seed(seed);
    let mut drawn = |from: &[Point]| -> Ratio {
        let draw = |_| from[chance.usize(..from.len())];
        Ratio::of(&(0..from.len()).map(draw).collect::<Vec<_>>(), log)
    };
    let mut distances: Vec<f64> = (0..REPLICATES)
        .filter_map(|_| {
            let (again_a, again_b) = (drawn(&a), drawn(&b));
            let again = scale(again_b.ratio) - scale(again_a.ratio);
            let distance = (again - estimate) / again_a.error.hypot(again_b.error);
            distance.is_finite().then_some(distance)
        })
        .collect();
    if distances.len() < REPLICATES / 2 {
        // All differences are in one or two blocks: no conclusion is possible.
        return Interval { estimate, low: f64::NEG_INFINITY, high: f64::INFINITY };
    }
    distances.sort_by(f64::total_cmp);
    let at = |share: f64| distances[rank(share, distances.len())];
    let low = estimate - at(1.0 - outside / 2.0) * error;
    let high = estimate - at(outside / 2.0) * error;
    Interval { estimate, low, high }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "an index among a few thousand"
)]
fn rank(share: f64, count: usize) -> usize {
    ((share * count as f64) as usize).min(count - 1)
}

/// A ratio of sums, and its standard error from how blocks differ (the delta method).
struct Ratio {
    ratio: f64,
    /// The standard error, of the logarithm if `log` was set.
    error: f64,
}

impl Ratio {
    fn of(blocks: &[Point], log: bool) -> Self {
        let all = total(blocks);
        let ratio = all.sum / all.of;
        let count = f64::from(u32::try_from(blocks.len()).unwrap_or(u32::MAX));
        let squares: f64 = blocks.iter().map(|block| (block.sum - ratio * block.of).powi(2)).sum();
        let error = (squares * count / (count - 1.0).max(1.0)).sqrt() / all.of;
        Self { ratio, error: if log { error / ratio } else { error } }
    }
}
