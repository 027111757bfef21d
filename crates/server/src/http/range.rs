//! Byte ranges (RFC 9110, section 14): a single range is served, any other field is ignored.

use std::ops::Range;

/// A requested range, before the body's length is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ByteRange {
    /// `bytes=5-`
    From(u64),
    /// `bytes=5-9`, both ends included.
    Between(u64, u64),
    /// `bytes=-5`
    Last(u64),
}

impl ByteRange {
    /// Parses a `Range` field. `None` if the field must be ignored: several ranges, another unit,
    /// or malformed. A number beyond 64 bits counts as the largest of 64 bits.
    pub(crate) fn parse(field: &str) -> Option<Self> {
        let (unit, set) = field.split_once('=')?;
        if !unit.trim().eq_ignore_ascii_case("bytes") {
            return None;
        }
        let (first, last) = set.trim().split_once('-')?;
        match (number(first.trim()), number(last.trim())) {
            (Some(first), Some(last)) if first <= last => Some(Self::Between(first, last)),
            (Some(first), None) if last.trim().is_empty() => Some(Self::From(first)),
            (None, Some(count)) if first.trim().is_empty() => Some(Self::Last(count)),
            _ => None,
        }
    }

    /// The requested bytes of a body of `length`; `None` where it has none of them (416).
    pub(crate) fn of(self, length: u64) -> Option<Range<u64>> {
        let range = match self {
            Self::From(first) => first..length,
            // The end is included in the field, and may be the largest number there is.
            Self::Between(first, last) => first..last.saturating_add(1).min(length),
            Self::Last(count) => length.saturating_sub(count)..length,
        };
        (range.start < range.end).then_some(range)
    }
}

fn number(digits: &str) -> Option<u64> {
    // `parse` would accept a sign.
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    Some(digits.parse().unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn range_fields_select_their_bytes_of_a_body_of_ten_bytes() {
        const IGNORED: Option<Option<Range<u64>>> = None;
        const NONE: Option<Option<Range<u64>>> = Some(None);
        let table = [
            ("bytes=0-", Some(Some(0..10))),
            ("bytes=0-0", Some(Some(0..1))),
            ("bytes=3-5", Some(Some(3..6))),
            ("bytes=9-99", Some(Some(9..10))),
            ("bytes=-4", Some(Some(6..10))),
            ("bytes=-99", Some(Some(0..10))),
            ("Bytes = 1 - 2", Some(Some(1..3))),
            ("bytes=3-99999999999999999999999999", Some(Some(3..10))),
            ("bytes=10-", NONE),
            ("bytes=10-20", NONE),
            ("bytes=-0", NONE),
            ("bytes=18446744073709551615-18446744073709551615", NONE),
            ("bytes=99999999999999999999999999-", NONE),
            ("bytes=5-3", IGNORED),
            ("bytes=0-1,3-4", IGNORED),
            ("bytes=--4", IGNORED),
            ("bytes=-", IGNORED),
            ("bytes=+1-2", IGNORED),
            ("bytes=a-b", IGNORED),
            ("bytes", IGNORED),
            ("lines=0-1", IGNORED),
            ("", IGNORED),
        ];
        for (field, expected) in table {
            assert_eq!(ByteRange::parse(field).map(|range| range.of(10)), expected, "{field}");
        }
        assert_eq!(ByteRange::From(0).of(0), None);
    }
}
