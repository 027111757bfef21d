//! Drift: the time between the actual and the ideal delivery of each unit.
//!
//! After Lee & Srivastava (2001), section 5.2. For unit *i* with ideal moment `I_i` and actual
//! moment `A_i`:
//!
//! ```text
//!   signed drift         e_i = A_i - I_i                      late > 0, early < 0
//!   unit granule drift   d_i = |e_i|
//!   ADF                  sum of all d_i                       accumulated drift factor
//!   normalised ADF       ADF / number of units
//!   CDF                  largest sum of d_i over a run of     consecutive drift factor
//!                        consecutive units with d_i > dead-band
//! ```
//!
//! The paper has no dead-band. On a real clock no run would ever end without one, so results always
//! state the dead-band.

use std::time::Duration;

/// The drift factors of one stream, without its units: for streams of very many units.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DriftFactors {
    dead_band: Duration,
    count: u64,
    /// Units that were late by more than the dead-band.
    late: u64,
    accumulated: Duration,
    /// Sum of the current run.
    run: Duration,
    longest_run: Duration,
    largest: Duration,
}

impl DriftFactors {
    /// The factors without units. Units within `dead_band` of their ideal moment end a run.
    pub fn new(dead_band: Duration) -> Self {
        Self { dead_band, ..Self::default() }
    }

    /// Adds the next unit, delivered `nanos` after its ideal moment (before it, if negative).
    pub fn push(&mut self, nanos: i64) {
        let magnitude = Duration::from_nanos(nanos.unsigned_abs());
        let apart = magnitude > self.dead_band;
        self.count += 1;
        self.late += u64::from(apart && nanos > 0);
        self.accumulated = self.accumulated.saturating_add(magnitude);
        self.run = if apart { self.run.saturating_add(magnitude) } else { Duration::ZERO };
        self.longest_run = self.longest_run.max(self.run);
        self.largest = self.largest.max(magnitude);
    }

    /// Number of units.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Number of units that were late by more than the dead-band.
    pub fn late(&self) -> u64 {
        self.late
    }

    /// The accumulated drift factor (ADF).
    pub fn accumulated(&self) -> Duration {
        self.accumulated
    }

    /// The accumulated drift factor per unit; zero without units.
    pub fn normalised(&self) -> Duration {
        let nanos = self.accumulated.as_nanos() / u128::from(self.count.max(1));
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// The consecutive drift factor (CDF).
    pub fn consecutive(&self) -> Duration {
        self.longest_run
    }

    /// The largest unit granule drift.
    pub fn largest(&self) -> Duration {
        self.largest
    }
}

/// The drift of one stream, unit by unit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Drift {
    factors: DriftFactors,
    /// Signed, in nanoseconds, in order of the units.
    units: Vec<i64>,
}

impl Drift {
    /// A drift without units. Units within `dead_band` of their ideal moment end a run.
    pub fn new(dead_band: Duration) -> Self {
        Self { factors: DriftFactors::new(dead_band), units: Vec::new() }
    }

    /// Adds the next unit, delivered `nanos` after its ideal moment (before it, if negative).
    pub fn push(&mut self, nanos: i64) {
        self.units.push(nanos);
        self.factors.push(nanos);
    }

    /// The signed drifts `e_i` in nanoseconds, in order.
    pub fn units(&self) -> &[i64] {
        &self.units
    }

    /// The accumulated drift factor (ADF).
    pub fn accumulated(&self) -> Duration {
        self.factors.accumulated()
    }

    /// The accumulated drift factor per unit; zero without units.
    pub fn normalised(&self) -> Duration {
        self.factors.normalised()
    }

    /// The consecutive drift factor (CDF).
    pub fn consecutive(&self) -> Duration {
        self.factors.consecutive()
    }

    /// The `q`-quantile (0 to 1) of the unit granule drift `d_i`, by nearest rank.
    pub fn quantile(&self, q: f64) -> Duration {
        let mut magnitudes: Vec<u64> = self.units.iter().map(|e| e.unsigned_abs()).collect();
        magnitudes.sort_unstable();
        Duration::from_nanos(percentile(&magnitudes, q).copied().unwrap_or(0))
    }
}

/// The `q`-quantile (0 to 1) of values in ascending order by nearest rank: the smallest value that
/// at least that share of all values does not exceed. `None` without values.
pub fn percentile<T>(ascending: &[T], q: f64) -> Option<&T> {
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a rank between zero and the length"
    )]
    let rank = (q.clamp(0.0, 1.0) * ascending.len() as f64).ceil() as usize;
    ascending.get(rank.saturating_sub(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drift(dead_band_ms: u64, units_ms: &[i64]) -> Drift {
        let mut drift = Drift::new(Duration::from_millis(dead_band_ms));
        for ms in units_ms {
            drift.push(ms * 1_000_000);
        }
        drift
    }

    #[test]
    fn the_factors_follow_their_definitions() {
        //                   run of 5 + 7 + 9      ends      run of 20, early counts as well
        let drift = drift(1, &[0, 5, 7, 9, 1, -1, 0, -20, 0]);
        let ms = Duration::from_millis;
        assert_eq!(drift.accumulated(), ms(43));
        assert_eq!(drift.consecutive(), ms(21));
        assert_eq!(drift.normalised(), ms(43) / 9);
        assert_eq!([0.0, 0.5, 0.9, 1.0].map(|q| drift.quantile(q)), [ms(0), ms(1), ms(20), ms(20)]);
    }

    #[test]
    fn without_units_there_is_no_drift() {
        let drift = drift(1, &[]);
        assert_eq!((drift.accumulated(), drift.normalised()), (Duration::ZERO, Duration::ZERO));
        assert_eq!((drift.consecutive(), drift.quantile(0.99)), (Duration::ZERO, Duration::ZERO));
    }

    #[test]
    fn a_run_at_the_end_counts() {
        assert_eq!(drift(1, &[0, 2, 2, 2]).consecutive(), Duration::from_millis(6));
        assert_eq!(drift(5, &[2, 2, 2]).consecutive(), Duration::ZERO, "within the dead-band");
    }
}
