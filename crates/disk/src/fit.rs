//! Fitting Lee and Srivastava's eq. 1 to read times.

use crate::bounds::ReadCost;
use std::time::Duration;
use units::{BitRate, ByteCount, float, rounded};

impl ReadCost {
    /// The straight line t = b/r0 + t0 with the least squared error through (bytes, time of a
    /// read). `None` without two different sizes, or if larger reads do not take longer.
    pub fn fit(reads: &[(ByteCount, Duration)]) -> Option<Self> {
        let points = reads.iter().map(|(b, t)| (float(b.0), t.as_secs_f64() * 1e9));
        Self::fit_nanos(&points.collect::<Vec<_>>())
    }

    /// As [`ReadCost::fit`], of bytes and nanoseconds. A computed time has parts of a nanosecond,
    /// without which a disk that holds a whole number of streams has a rate a little below theirs.
    pub(crate) fn fit_nanos(points: &[(f64, f64)]) -> Option<Self> {
        let count = float(points.len() as u64);
        let mean_bytes = points.iter().map(|(b, _)| b).sum::<f64>() / count;
        let mean_nanos = points.iter().map(|(_, t)| t).sum::<f64>() / count;
        let spread: f64 = points.iter().map(|(b, _)| (b - mean_bytes).powi(2)).sum();
        let slope: f64 =
            points.iter().map(|(b, t)| (b - mean_bytes) * (t - mean_nanos)).sum::<f64>() / spread;
        if !slope.is_finite() || slope <= 0.0 {
            return None;
        }
        // Measurement errors can put the line below zero at no bytes; no read has a negative cost.
        let constant = (mean_nanos - slope * mean_bytes).max(0.0);
        Some(Self {
            r0: BitRate(rounded(8e9 / slope)),
            t0: Duration::from_nanos(rounded(constant)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_recovered() {
        let cost = ReadCost { r0: BitRate(1_600_000_000), t0: Duration::from_millis(9) };
        let reads: Vec<_> =
            [1, 2, 4, 8].map(|mib| (ByteCount::mib(mib), cost.time(ByteCount::mib(mib)))).into();
        let fitted = ReadCost::fit(&reads).unwrap();
        assert_eq!(fitted.r0.0 / 1000, cost.r0.0 / 1000);
        assert_eq!(fitted.t0.as_micros(), 9000);
    }

    #[test]
    fn points_without_a_line_are_refused() {
        let (mib, time) = (ByteCount::MIB, Duration::from_millis(5));
        assert_eq!(ReadCost::fit(&[]), None);
        assert_eq!(ReadCost::fit(&[(mib, time), (mib, time * 2)]), None);
        assert_eq!(ReadCost::fit(&[(mib, time), (ByteCount::kib(1), time * 2)]), None);
        let through_zero = [(mib, time), (ByteCount::mib(3), time * 4)];
        assert_eq!(ReadCost::fit(&through_zero).unwrap().t0, Duration::ZERO);
    }
}
