//! The bit rates of a track's segments by RFC 8216, 4.1, headers included.

use super::media_segment;
use super::segments::Segments;
use crate::LduIndex;

/// Bit rates in bits per second, rounded up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Rates {
    /// The largest rate of any contiguous set of segments that lasts between half and one and a
    /// half target durations; at least the average.
    pub(super) peak: u64,
    /// The rate of all segments together.
    pub(super) average: u64,
}

impl Rates {
    /// The rates of these segments in a playlist with this target duration in seconds.
    pub(super) fn of(index: &LduIndex, segments: &Segments, target_duration: u64) -> Self {
        let sizes: Vec<u64> = (0..segments.count())
            .map(|number| {
                let parts = segments.parts(number).unwrap_or_default();
                parts.iter().map(|part| media_segment::size(index, part)).sum()
            })
            .collect();
        let lengths: Vec<u64> = segments.lengths().collect();
        Self::of_segments(&sizes, &lengths, target_duration)
    }

    /// The rates of segments with these sizes in bytes and lengths in microseconds.
    fn of_segments(sizes: &[u64], lengths: &[u64], target_duration: u64) -> Self {
        let average = rate(sizes.iter().sum(), lengths.iter().sum());
        let (shortest, longest) = (target_duration * 500_000, target_duration * 1_500_000);
        let mut peak = average;
        for first in 0..sizes.len() {
            let (mut bytes, mut length) = (0, 0);
            for (more_bytes, more) in sizes[first..].iter().zip(&lengths[first..]) {
                bytes += more_bytes;
                length += more;
                if length > longest {
                    break;
                }
                if length >= shortest {
                    peak = peak.max(rate(bytes, length));
                }
            }
        }
        Self { peak, average }
    }
}

/// Bits per second, rounded up; zero for no time.
fn rate(bytes: u64, micros: u64) -> u64 {
    if micros == 0 {
        return 0;
    }
    let bits = (u128::from(bytes) * 8 * 1_000_000).div_ceil(u128::from(micros));
    u64::try_from(bits).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peak_is_that_of_the_densest_set_near_the_target_duration() {
        const S: u64 = 1_000_000;
        // (sizes, lengths, target duration in seconds, peak, average)
        type Row<'a> = (&'a [u64], &'a [u64], u64, u64, u64);
        let table: &[Row<'_>] = &[
            (&[1000, 2000, 1000], &[4 * S, 4 * S, 4 * S], 4, 4000, 2667),
            // A short dense segment counts together with its neighbours only.
            (&[1000, 1000, 1000], &[4 * S, S, 4 * S], 4, 3200, 2667),
            (&[100, 300, 300, 100], &[S, S, S, S], 2, 2400, 1600),
            // No set is long enough: the average.
            (&[1000], &[S], 4, 8000, 8000),
            // A rest that fits into no set still counts in the average.
            (&[100, 10_000], &[5 * S + S / 2, S], 4, 12_431, 12_431),
            (&[], &[], 1, 0, 0),
            (&[5], &[0], 1, 0, 0),
        ];
        for (sizes, lengths, target, peak, average) in table {
            let wanted = Rates { peak: *peak, average: *average };
            assert_eq!(Rates::of_segments(sizes, lengths, *target), wanted, "{sizes:?}");
        }
    }
}
