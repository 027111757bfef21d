//! Times in manifests: `PT1H2M3.5S`, and ticks of a timescale.

use std::time::Duration;

/// Parses an `xs:duration` without years and months, whose length is not defined.
pub(super) fn duration(text: &str) -> Option<Duration> {
    let rest = text.trim().strip_prefix('P')?;
    let (days, clock) = match rest.split_once('T') {
        Some((days, clock)) if !clock.is_empty() => (days, clock),
        Some(_) => return None,
        None if rest.is_empty() => return None,
        None => (rest, ""),
    };
    let mut seconds = parts(days, &[('D', 86_400.0)])?;
    seconds += parts(clock, &[('H', 3600.0), ('M', 60.0), ('S', 1.0)])?;
    Duration::try_from_secs_f64(seconds).ok()
}

/// The sum of the numbers followed by these letters, each at most once and in this order.
fn parts(mut text: &str, units: &[(char, f64)]) -> Option<f64> {
    let mut sum = 0.0;
    for (letter, seconds) in units {
        let Some((number, rest)) = text.split_once(*letter) else { continue };
        let plain = number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
        sum += number.parse::<f64>().ok().filter(|_| plain)? * seconds;
        text = rest;
    }
    text.is_empty().then_some(sum)
}

/// The number of ticks of `scale` that begin in this time.
pub(super) fn to_ticks(time: Duration, scale: u64) -> u64 {
    let ticks = (time.as_nanos() * u128::from(scale)).div_ceil(1_000_000_000);
    u64::try_from(ticks).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::boxes::ticks;

    #[test]
    fn durations_are_parsed() {
        let cases = [
            ("PT1H2M3.5S", Some(3723.5)),
            ("PT0S", Some(0.0)),
            ("PT90M", Some(5400.0)),
            ("P1DT1S", Some(86_401.0)),
            ("P2D", Some(172_800.0)),
        ];
        for (text, wanted) in cases {
            assert_eq!(duration(text).map(|time| time.as_secs_f64()), wanted, "{text}");
        }
        for bad in ["", "P", "PT", "10", "P1Y", "PT1S1M", "-PT1S", "PT-1S", "PT1e9S", "PT1.1.1S"] {
            assert_eq!(duration(bad), None, "{bad}");
        }
    }

    #[test]
    fn ticks_are_converted_in_both_directions() {
        assert_eq!(ticks(90_000 * 3, 90_000), Duration::from_secs(3));
        assert_eq!(to_ticks(Duration::from_secs(3), 48_000), 144_000);
        assert_eq!(ticks(1, 0), Duration::from_secs(1));
        assert_eq!(ticks(u64::MAX, 1), Duration::from_nanos(u64::MAX));
    }
}
