//! The `Range` field (RFC 9110, section 14): one byte range, or several.
//!
//! Several ranges are sent in ascending order. Ranges that overlap, or with fewer bytes between
//! them than a part's head has, are sent as one, so that a response has at most few bytes more than
//! the body. A field that asks for more ranges than [`MAX_RANGES`] is ignored, as 14.2 allows.

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

/// The ranges of a `Range` field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RangeField {
    One(ByteRange),
    Several(Vec<ByteRange>),
}

/// The part of a body that a `Range` field asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum BodyPart {
    One(Range<u64>),
    /// At least two ranges, ascending, with bytes between them.
    Several(Vec<Range<u64>>),
    /// The body has none of the bytes: 416.
    Nothing,
}

impl RangeField {
    /// Parses a `Range` field. `None` if the field must be ignored: another unit, malformed, or too
    /// many ranges. A number beyond 64 bits counts as the largest of 64 bits.
    pub(crate) fn parse(field: &str) -> Option<Self> {
        let (unit, set) = field.split_once('=')?;
        if !unit.trim().eq_ignore_ascii_case("bytes") {
            return None;
        }
        if !set.contains(',') {
            return ByteRange::parse(set).map(Self::One);
        }
        // Empty elements of a list are ignored (RFC 9110, 5.6.1.2).
        let elements = || set.split(',').filter(|element| !element.trim().is_empty());
        if elements().count() > MAX_RANGES {
            return None;
        }
        let ranges: Vec<_> = elements().map(ByteRange::parse).collect::<Option<_>>()?;
        match ranges[..] {
            [] => None,
            [one] => Some(Self::One(one)),
            _ => Some(Self::Several(ranges)),
        }
    }

    /// The part of a body of `length` bytes.
    pub(crate) fn of(&self, length: u64) -> BodyPart {
        let mut ranges = match self {
            Self::One(range) => return range.of(length).map_or(BodyPart::Nothing, BodyPart::One),
            Self::Several(ranges) => {
                ranges.iter().filter_map(|range| range.of(length)).collect::<Vec<_>>()
            }
        };
        ranges.sort_unstable_by_key(|range| range.start);
        ranges.dedup_by(|next, before| {
            let joined = next.start <= before.end.saturating_add(JOINED_GAP);
            if joined {
                before.end = before.end.max(next.end);
            }
            joined
        });
        match &mut ranges[..] {
            [] => BodyPart::Nothing,
            [one] => BodyPart::One(one.clone()),
            _ => BodyPart::Several(ranges),
        }
    }
}

impl ByteRange {
    fn parse(range: &str) -> Option<Self> {
        let (first, last) = range.trim().split_once('-')?;
        match (number(first.trim()), number(last.trim())) {
            (Some(first), Some(last)) if first <= last => Some(Self::Between(first, last)),
            (Some(first), None) if last.trim().is_empty() => Some(Self::From(first)),
            (None, Some(count)) if first.trim().is_empty() => Some(Self::Last(count)),
            _ => None,
        }
    }

    /// The requested bytes of a body of `length`; `None` where it has none of them.
    fn of(self, length: u64) -> Option<Range<u64>> {
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

/// The most ranges of a field. Readers of documents ask for some; players ask for one.
const MAX_RANGES: usize = 16;
/// Ranges with at most as many bytes between them are sent as one: a part's head has about as many.
const JOINED_GAP: u64 = 128;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn range_fields_select_their_bytes_of_a_body_of_ten_bytes() {
        let one = |range| Some(BodyPart::One(range));
        let nothing = || Some(BodyPart::Nothing);
        let table = [
            ("bytes=0-", one(0..10)),
            ("bytes=0-0", one(0..1)),
            ("bytes=3-5", one(3..6)),
            ("bytes=9-99", one(9..10)),
            ("bytes=-4", one(6..10)),
            ("bytes=-99", one(0..10)),
            ("Bytes = 1 - 2", one(1..3)),
            ("bytes=3-99999999999999999999999999", one(3..10)),
            ("bytes=10-", nothing()),
            ("bytes=10-20", nothing()),
            ("bytes=-0", nothing()),
            ("bytes=18446744073709551615-18446744073709551615", nothing()),
            ("bytes=99999999999999999999999999-", nothing()),
            ("bytes=5-3", None),
            ("bytes=--4", None),
            ("bytes=-", None),
            ("bytes=+1-2", None),
            ("bytes=a-b", None),
            ("bytes", None),
            ("lines=0-1", None),
            ("", None),
        ];
        for (field, expected) in table {
            assert_eq!(RangeField::parse(field).map(|range| range.of(10)), expected, "{field}");
        }
        assert_eq!(RangeField::One(ByteRange::From(0)).of(0), BodyPart::Nothing);
    }

    #[test]
    fn several_ranges_are_ascending_and_joined_where_they_are_close() {
        let several = |ranges: &[Range<u64>]| Some(BodyPart::Several(ranges.to_vec()));
        let one = |range| Some(BodyPart::One(range));
        let table = [
            ("bytes=0-9,500-509", several(&[0..10, 500..510])),
            ("bytes= 0-9 , , 500-509,", several(&[0..10, 500..510])),
            ("bytes=500-509,0-9,-100", several(&[0..10, 500..510, 900..1000])),
            ("bytes=0-9,5-20", one(0..21)),
            ("bytes=0-9,0-9,0-9", one(0..10)),
            ("bytes=0-600,100-200,700-", one(0..1000)),
            ("bytes=0-9,138-140", one(0..141)),
            ("bytes=0-9,139-140", several(&[0..10, 139..141])),
            ("bytes=0-9,2000-", one(0..10)),
            ("bytes=2000-,3000-4000", Some(BodyPart::Nothing)),
            ("bytes=0-9,", one(0..10)),
            ("bytes=,", None),
            ("bytes=0-9,x", None),
            ("bytes=0-9,9-5", None),
        ];
        for (field, expected) in table {
            assert_eq!(RangeField::parse(field).map(|set| set.of(1000)), expected, "{field}");
        }
        let ranges = |count: u64| {
            let all: Vec<_> = (0..count).map(|i| format!("{}-{}", i * 1000, i * 1000)).collect();
            RangeField::parse(&format!("bytes={}", all.join(","))).map(|set| set.of(1 << 20))
        };
        let Some(BodyPart::Several(all)) = ranges(MAX_RANGES as u64) else { panic!("too few") };
        assert_eq!((all.len(), all[15].clone()), (MAX_RANGES, 15_000..15_001));
        assert_eq!(ranges(MAX_RANGES as u64 + 1), None);
    }
}
