//! Conversions between integers, floats and durations that cannot fail: they saturate.

use std::time::Duration;

/// Nanoseconds of `time`, at most `u64::MAX` (584 years).
#[inline]
pub fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Whole milliseconds of `time`, at most `u64::MAX`.
#[inline]
pub fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// `number` as an index. Panics on machines with fewer than 32 bits.
#[inline]
pub fn index(number: u32) -> usize {
    usize::try_from(number).expect("a machine with 32 bits or more")
}

/// `value` as a float; beyond 2^53 the nearest one.
#[inline]
#[expect(clippy::cast_precision_loss, reason = "the nearest float is what is asked for")]
pub fn float(value: u64) -> f64 {
    value as f64
}

/// The whole number nearest to `value`: zero for negative values and for NaN, at most `u64::MAX`.
#[inline]
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "casts from float to integer saturate"
)]
pub fn rounded(value: f64) -> u64 {
    value.round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conversions_saturate() {
        assert_eq!([nanos(Duration::MAX), millis(Duration::MAX)], [u64::MAX; 2]);
        assert_eq!([millis(Duration::from_micros(2999)), index(7) as u64], [2, 7]);
        assert_eq!([f64::NAN, -1.0, 1.5, f64::INFINITY].map(rounded), [0, 0, 2, u64::MAX]);
        assert!(float(u64::MAX) >= 1.8e19);
    }
}
