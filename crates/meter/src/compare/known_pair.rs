//! Pairs of runs whose true difference is known, to count how often
//! [`compare`](super::compare) is right.

use super::FigureSeries;

/// The length of a run in seconds: five minutes.
const SECONDS: u32 = 300;

/// The correlation of the values of neighbouring seconds.
const MEMORY: f64 = 0.35;

/// The standard deviation of the values' logarithms.
const SPREAD: f64 = 0.1;

/// One figure of two runs. Its values have a relative standard deviation of a tenth, a correlation
/// of a third from second to second, and a lognormal distribution. In the second run it is `factor`
/// times as large.
pub fn known_pair(factor: f64, seed: u64) -> (FigureSeries, FigureSeries) {
    let mut chance = fastrand::Rng::with_seed(seed);
    let [a, b] =
        [1.0, factor].map(|factor| FigureSeries::of_values(&run(0.020 * factor, &mut chance)));
    (a, b)
}

fn run(mean: f64, chance: &mut fastrand::Rng) -> Vec<f64> {
    let mut normal = || {
        let (u, v) = (1.0 - chance.f64(), chance.f64());
        (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
    };
    let mut level = normal();
    (0..SECONDS)
        .map(|_| {
            level = MEMORY * level + (1.0 - MEMORY * MEMORY).sqrt() * normal();
            mean * (SPREAD * level - SPREAD * SPREAD / 2.0).exp()
        })
        .collect()
}
