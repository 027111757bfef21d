//! The lateness of a paced device: it shows whether its times can be relied on.

use std::time::Duration;
use units::Times;

/// The lateness counted so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lateness {
    /// Number of requests handed out.
    pub requests: u64,
    /// The median lateness.
    pub median: Duration,
    /// The 99th percentile of the lateness.
    pub p99: Duration,
    /// The longest lateness, exactly.
    pub longest: Duration,
}

impl Lateness {
    pub(crate) fn of(times: &Times) -> Self {
        let [median, p99] = times.two_quantiles([0.5, 0.99]);
        Self { requests: times.count(), median, p99, longest: times.max() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_quantiles_of_many_times_are_right() {
        let mut times = Times::default();
        assert_eq!(Lateness::of(&times), Lateness::default());
        let us = Duration::from_micros;
        (0..98).for_each(|_| times.record(us(40)));
        [500, 20_001].into_iter().for_each(|late| times.record(us(late)));
        let Lateness { requests, median, p99, longest } = Lateness::of(&times);
        let near =
            |time: Duration, wanted: Duration| time >= wanted && time <= wanted.mul_f64(1.001);
        assert_eq!((requests, longest), (100, us(20_001)));
        assert!(near(median, us(40)) && near(p99, us(500)), "{median:?}, {p99:?}");
    }
}
