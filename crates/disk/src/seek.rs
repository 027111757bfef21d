//! The seek time, and a concave curve above it.
//!
//! ```text
//!   ms                                   · full       The time of n movements that together cover
//!    │                             ·  ´               a distance D is at most n × bound(D/n): true
//!    │        knee          ·  ´                      of any concave curve (Jensen). A straight
//!    │          ·   ·  ´                              tail steeper than the root at the knee
//!    │     ·  ´                                       breaks concavity; the bound then takes the
//!    │  ·                                             tangent from `full` to the root instead.
//!    └──────────┴─────────────────────────┴ x = 1
//! ```

use crate::parameters::SeekTimes;

/// A seek curve in nanoseconds over the share of the stroke that is crossed.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SeekCurve {
    shortest: f64,
    root: f64,
    knee: f64,
    full: f64,
    /// The point where the concave bound leaves the root for a straight line to `full`.
    tangent: f64,
}

impl SeekCurve {
    pub(crate) fn new(times: &SeekTimes) -> Self {
        let shortest = (times.settle_ms + times.track_ms) * 1e6;
        let (root, knee, full) = (times.root_ms * 1e6, times.knee, times.full_ms * 1e6);
        let tangent = tangent(full - shortest, root).min(knee);
        Self { shortest, root, knee, full, tangent }
    }

    /// Nanoseconds of a seek over `x` of the stroke, 0 <= x <= 1; zero for zero.
    pub(crate) fn time(&self, x: f64) -> f64 {
        if x <= 0.0 { 0.0 } else { self.root_then_line(x, self.knee) }
    }

    /// The concave bound: never below [`SeekCurve::time`], never falling.
    pub(crate) fn bound(&self, x: f64) -> f64 {
        self.root_then_line(x.clamp(0.0, 1.0), self.tangent)
    }

    /// The steepest slope of the bound from `x` on, in nanoseconds per stroke.
    pub(crate) fn steepest_from(&self, x: f64) -> f64 {
        // The root is infinitely steep at zero, so that the distance must stay positive.
        let at_tangent = x.clamp(f64::MIN_POSITIVE, self.tangent.max(f64::MIN_POSITIVE));
        let line =
            (self.full - self.bound(self.tangent)) / (1.0 - self.tangent).max(f64::MIN_POSITIVE);
        let root = self.root / (2.0 * at_tangent.sqrt());
        if self.tangent < 1.0 { root.max(line) } else { root }
    }

    fn root_then_line(&self, x: f64, knee: f64) -> f64 {
        let at = |x: f64| self.shortest + self.root * x.sqrt();
        if x <= knee {
            return at(x);
        }
        at(knee) + (self.full - at(knee)) * (x - knee) / (1.0 - knee)
    }
}

/// The point where the line from (1, `rise`) touches root × √x: the smaller solution of root u² - 2
/// rise u + root = 0, u = √x. If the root at 1 is above `rise`, there is none before 1, and the
/// curve as given (up to its knee) is concave.
fn tangent(rise: f64, root: f64) -> f64 {
    if root <= 0.0 || rise <= root {
        return 1.0;
    }
    // The larger solution lies beyond the full stroke.
    let u = (rise - (rise * rise - root * root).sqrt()) / root;
    u * u
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DiskModel;
    use crate::parameters::Mechanics;

    #[test]
    fn the_bound_is_above_the_curve_and_concave_for_every_disk() {
        for model in DiskModel::presets() {
            let parameters = model.parameters();
            let Mechanics::Spinning(spinning) = &parameters.mechanics else { continue };
            let curve = SeekCurve::new(&spinning.seek);
            let steps: Vec<f64> = (0..=1000).map(|i| f64::from(i) / 1000.0).collect();
            for x in &steps {
                assert!(curve.bound(*x) + 1e-6 >= curve.time(*x), "{} at {x}", parameters.name);
            }
            for w in steps.windows(3) {
                let (a, b, c) = (curve.bound(w[0]), curve.bound(w[1]), curve.bound(w[2]));
                assert!(a <= b && b <= c, "{} falls at {}", parameters.name, w[1]);
                assert!(2.0 * b + 1e-6 >= a + c, "{} not concave at {}", parameters.name, w[1]);
            }
            assert_eq!(curve.bound(1.0), spinning.seek.full_ms * 1e6);
        }
    }

    #[test]
    fn a_tail_steeper_than_the_root_is_bridged() {
        let steep = SeekTimes {
            settle_ms: 0.6,
            track_ms: 0.25,
            root_ms: 12.385,
            knee: 1.0 / 3.0,
            full_ms: 17.0,
        };
        let curve = SeekCurve::new(&steep);
        assert!(curve.bound(0.3) > curve.time(0.3) + 1e3, "a third is below the tangent");
        assert_eq!(curve.bound(0.05), curve.time(0.05));
    }
}
