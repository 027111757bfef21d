//! The distributions that clips, requests and arrivals are drawn from, on one seeded source.
//!
//! Textbook methods; nothing here knows what is drawn.

use std::f64::consts::TAU;

/// A source of numbers. The same seed gives the same numbers.
#[derive(Clone, Debug)]
pub(crate) struct RandomSource {
    source: fastrand::Rng,
    /// Normal numbers come in pairs: the other one.
    normal: Option<f64>,
}

impl RandomSource {
    /// The source of this name, independent of those of other names.
    pub(crate) fn new(seed: u64, name: u64) -> Self {
        // 2^64 divided by the golden ratio: names that are small numbers change all bits of the
        // seed.
        let seed = seed ^ name.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Self { source: fastrand::Rng::with_seed(seed), normal: None }
    }

    /// Any number, to seed something else with.
    pub(crate) fn seed(&mut self) -> u64 {
        self.source.u64(..)
    }

    /// Evenly from 0 to 1, 1 excluded.
    pub(crate) fn part(&mut self) -> f64 {
        self.source.f64()
    }

    /// Evenly between these.
    pub(crate) fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.part()
    }

    /// True with this probability.
    pub(crate) fn happens(&mut self, probability: f64) -> bool {
        self.part() < probability
    }

    /// One of so many.
    pub(crate) fn below(&mut self, count: usize) -> usize {
        self.source.usize(..count)
    }

    /// Mean 0, standard deviation 1 (Box and Muller).
    pub(crate) fn normal(&mut self) -> f64 {
        if let Some(other) = self.normal.take() {
            return other;
        }
        // `part` may be zero but not one: so the logarithm is finite.
        let radius = (-2.0 * (1.0 - self.part()).ln()).sqrt();
        let (sine, cosine) = (TAU * self.part()).sin_cos();
        self.normal = Some(radius * sine);
        radius * cosine
    }

    /// The time to the next of events that come on their own, `mean` apart.
    pub(crate) fn exponential(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.part()).ln()
    }

    /// Between 0 and 1, as the part that one of two gamma variables has of their sum.
    pub(crate) fn beta(&mut self, a: f64, b: f64) -> f64 {
        let (x, y) = (self.gamma(a), self.gamma(b));
        x / (x + y)
    }

    /// Shape at least 1 (Marsaglia and Tsang).
    fn gamma(&mut self, shape: f64) -> f64 {
        let d = shape - 1.0 / 3.0;
        let c = 1.0 / (9.0 * d).sqrt();
        loop {
            let x = self.normal();
            let v = (1.0 + c * x).powi(3);
            // Accepted with the ratio of the two densities; otherwise drawn again.
            if v > 0.0 && (1.0 - self.part()).ln() < 0.5 * x * x + d - d * v + d * v.ln() {
                return d * v;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_moments_are_those_of_the_textbook() {
        let moments = |draw: &mut dyn FnMut() -> f64| {
            let values: Vec<f64> = (0..40_000).map(|_| draw()).collect();
            let mean = values.iter().sum::<f64>() / values.len() as f64;
            let square = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>();
            (mean, (square / values.len() as f64).sqrt())
        };
        let mut random = RandomSource::new(1, 0);
        let near = |given: (f64, f64), mean: f64, deviation: f64| {
            assert!(
                (given.0 - mean).abs() < 0.02 && (given.1 - deviation).abs() < 0.02,
                "{given:?}"
            );
        };
        near(moments(&mut || random.normal()), 0.0, 1.0);
        near(moments(&mut || random.exponential(1.0)), 1.0, 1.0);
        near(moments(&mut || random.between(2.0, 4.0)), 3.0, 2.0 / 12f64.sqrt());
        let (a, b) = (2.0, 1.466);
        let variance = a * b / ((a + b) * (a + b) * (a + b + 1.0));
        near(moments(&mut || random.beta(a, b)), a / (a + b), variance.sqrt());
    }
}
