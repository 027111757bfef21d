//! Quantities in the form in which users type them: `40GiB`, `8.5Mbps`, `500ms`.

use crate::{BitRate, ByteCount};
use std::str::FromStr;
use std::time::Duration;

/// A quantity that could not be parsed, with the expected form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseQuantityError {
    given: String,
    wanted: &'static str,
}

impl std::fmt::Display for ParseQuantityError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "'{}' is not {}", self.given, self.wanted)
    }
}

impl std::error::Error for ParseQuantityError {}

/// Parses `1024`, `64KiB`, `1.5GiB`, `2TB`: binary with `i`, decimal without; plain numbers are
/// bytes.
impl FromStr for ByteCount {
    type Err = ParseQuantityError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const UNITS: &[(&str, f64)] = &[
            ("", 1.0),
            ("b", 1.0),
            ("kib", 1024.0),
            ("mib", 1_048_576.0),
            ("gib", 1_073_741_824.0),
            ("tib", 1_099_511_627_776.0),
            ("pib", 1_125_899_906_842_624.0),
            ("kb", 1e3),
            ("mb", 1e6),
            ("gb", 1e9),
            ("tb", 1e12),
            ("pb", 1e15),
        ];
        parse(text, UNITS, "a size such as 64KiB, 40GiB or 2TB").map(Self)
    }
}

/// Parses `1500000`, `800kbps`, `8.5Mbps`, `10Gb/s`; plain numbers are bits per second. A capital
/// `B` means bytes: `100MB/s` and `100MBps` are 800 Mb/s.
impl FromStr for BitRate {
    type Err = ParseQuantityError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const UNITS: &[(&str, f64)] = &[
            ("", 1.0),
            ("bps", 1.0),
            ("b/s", 1.0),
            ("kbps", 1e3),
            ("kb/s", 1e3),
            ("mbps", 1e6),
            ("mb/s", 1e6),
            ("gbps", 1e9),
            ("gb/s", 1e9),
        ];
        let wanted = "a bit rate such as 800kbps, 8.5Mbps or 10Gbps, or with bytes 100MB/s";
        let bits = parse(text, UNITS, wanted)?;
        if !text.contains('B') {
            return Ok(Self(bits));
        }
        // All capitals may mean bits or bytes.
        let bytes = (!text.contains('S')).then_some(bits);
        let error = ParseQuantityError { given: text.to_owned(), wanted };
        bytes.and_then(|bytes| bytes.checked_mul(8)).map(Self).ok_or(error)
    }
}

/// Parses `500ms`, `2s`, `1.5min` or `1.5m`, `1h`, `30d`. A unit is required.
pub fn parse_duration(text: &str) -> Result<Duration, ParseQuantityError> {
    const UNITS: &[(&str, f64)] = &[
        ("ns", 1.0),
        ("us", 1e3),
        ("ms", 1e6),
        ("s", 1e9),
        ("min", 60e9),
        ("m", 60e9),
        ("h", 3600e9),
        ("d", 86_400e9),
    ];
    parse(text, UNITS, "a time such as 500ms, 2s or 1h").map(Duration::from_nanos)
}

/// A duration in the form in which users type it: `500ms`, `2s`, `1h`.
pub fn show_duration(time: Duration) -> String {
    let nanos = time.as_nanos();
    // Whole multiples only, so that parsing the text gives the same duration.
    for (unit, size) in [("h", 3_600_000_000_000), ("min", 60_000_000_000), ("s", 1_000_000_000)] {
        if nanos >= size && nanos.is_multiple_of(size) {
            return format!("{}{unit}", nanos / size);
        }
    }
    if nanos >= 1_000_000_000 {
        return format!("{:.2}s", time.as_secs_f64());
    }
    if nanos >= 1_000_000 {
        return format!("{}ms", time.as_millis());
    }
    format!("{}us", time.as_micros())
}

fn parse(
    text: &str,
    units: &[(&str, f64)],
    wanted: &'static str,
) -> Result<u64, ParseQuantityError> {
    let error = || ParseQuantityError { given: text.to_owned(), wanted };
    let text = text.trim();
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let unit = unit.trim().to_ascii_lowercase();
    let factor = units.iter().find(|(name, _)| *name == unit).ok_or_else(error)?.1;
    // Whole numbers stay exact: a float loses digits beyond 2^53.
    if factor == 1.0 {
        return number.parse().map_err(|_| error());
    }
    let value: f64 = number.parse().map_err(|_| error())?;
    let product = value * factor;
    // The cast below would saturate without an error.
    if !product.is_finite() || product >= 9.0e18 {
        return Err(error());
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "checked above; digits only, so not negative"
    )]
    Ok(product.round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_parsed_as_typed() {
        assert_eq!("40GiB".parse(), Ok(ByteCount(40 << 30)));
        assert_eq!("1.5 MiB".parse(), Ok(ByteCount(3 << 19)));
        assert_eq!("2TB".parse(), Ok(ByteCount(2_000_000_000_000)));
        assert_eq!("4096".parse(), Ok(ByteCount(4096)));
        assert_eq!("8.5Mbps".parse(), Ok(BitRate(8_500_000)));
        assert_eq!("10Gb/s".parse(), Ok(BitRate(10_000_000_000)));
        assert_eq!("100MB/s".parse(), Ok(BitRate(800_000_000)));
        assert_eq!("1.5GBps".parse(), Ok(BitRate(12_000_000_000)));
        assert!("100MBPS".parse::<BitRate>().is_err(), "bits or bytes");
        assert_eq!(parse_duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(parse_duration("1.5min"), Ok(Duration::from_secs(90)));
        assert_eq!(parse_duration("10m"), Ok(Duration::from_secs(600)));
        assert_eq!(parse_duration("30d"), Ok(Duration::from_secs(30 * 86_400)));
    }

    #[test]
    fn texts_that_are_no_quantity_are_refused() {
        for text in ["", "GiB", "-1", "1e9", "12QiB", "1..5MiB", "99999999999TiB"] {
            let error = text.parse::<ByteCount>().unwrap_err().to_string();
            assert!(error.starts_with(&format!("'{text}' is not a size")), "{error}");
        }
        assert!(parse_duration("5").is_err(), "a bare number is no time");
    }

    #[test]
    fn durations_are_formatted_as_typed() {
        let shown =
            [500, 2_000, 2_500, 3_600_000].map(|ms| show_duration(Duration::from_millis(ms)));
        assert_eq!(shown, ["500ms", "2s", "2.50s", "1h"]);
    }
}
