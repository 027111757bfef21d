//! The renditions in which viewers received their pieces, and which of these were lower than
//! necessary.
//!
//! ```text
//!   best of an address       the best rendition that any of its viewers was offered
//!   a piece below the best   of a lower rendition, and
//!                             - after one of the best, or
//!                             - from 10 s of the title on, or
//!                             - of a viewer that never got one of the best
//! ```
//!
//! The renditions that a player uses while it measures its throughput do not count against the
//! server; the later ones do. For a viewer who is offered only a lower rendition all pieces are
//! below the best. Where rates are not declared (a file, a single playlist), nothing is counted.

use super::outcome::RenditionReport;
use std::collections::BTreeMap;
use std::time::Duration;
use units::BitRate;

/// The renditions that a viewer was offered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OfferedRenditions {
    /// The peak rate of each rendition, ascending.
    pub(crate) peaks: Vec<BitRate>,
    /// The rendition that its player would use if nothing were scarce.
    pub(crate) best: usize,
}

/// The renditions that one or several viewers received.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct RenditionStats {
    /// Changes to a higher rendition from one piece to the next.
    pub(crate) up: u64,
    pub(crate) down: u64,
    /// The numbers of the pieces below the best.
    pub(crate) below: Vec<usize>,
    /// The number of pieces and their length, by peak rate.
    each: BTreeMap<BitRate, (u64, Duration)>,
    /// The bits that the best rendition would have had, times 10^9: whole numbers, so that pieces
    /// that are all of the best rendition are all of it.
    possible: u128,
}

impl RenditionStats {
    pub(crate) fn reports(&self) -> Vec<RenditionReport> {
        let report = |(rate, (pieces, media)): (&BitRate, &(u64, Duration))| RenditionReport {
            bits_per_s: rate.0,
            pieces: *pieces,
            media_s: media.as_secs_f64(),
        };
        self.each.iter().map(report).collect()
    }

    /// The mean of the segments' peak rates, weighted by length.
    pub(crate) fn mean(&self) -> Option<f64> {
        let length: u128 = self.each.values().map(|(_, media)| media.as_nanos()).sum();
        (length > 0).then(|| ratio(self.bits(), length))
    }

    /// The mean rate as a share of the best rendition's.
    pub(crate) fn share_of_best(&self) -> Option<f64> {
        (self.possible > 0).then(|| ratio(self.bits(), self.possible))
    }

    // The bits of the pieces, times 10^9.
    fn bits(&self) -> u128 {
        self.each.iter().map(|(rate, (_, media))| bits(*rate, *media)).sum()
    }

    /// Adds the account of another viewer.
    pub(crate) fn and(mut self, other: &Self) -> Self {
        self.up += other.up;
        self.down += other.down;
        self.below.extend(&other.below);
        self.possible += other.possible;
        for (rate, (pieces, media)) in &other.each {
            let sum = self.each.entry(*rate).or_default();
            *sum = (sum.0 + pieces, sum.1 + *media);
        }
        self
    }
}

/// The bits of media of this peak rate and length, times 10^9.
fn bits(rate: BitRate, media: Duration) -> u128 {
    u128::from(rate.0) * media.as_nanos()
}

#[expect(clippy::cast_precision_loss, reason = "a ratio of bits")]
fn ratio(part: u128, whole: u128) -> f64 {
    part as f64 / whole as f64
}

/// A received segment.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReceivedSegment {
    pub(super) piece: usize,
    pub(super) rate: BitRate,
    pub(super) start: Duration,
    pub(super) length: Duration,
}

/// The account of one viewer's segments, in the order of arrival.
pub(super) fn of_viewer(pieces: &[ReceivedSegment], best: BitRate) -> RenditionStats {
    let mut shown = RenditionStats::default();
    // From here on the player knew that the best rendition is possible.
    let first_of_best = pieces.iter().position(|got| got.rate >= best);
    for (number, got) in pieces.iter().enumerate() {
        let settled = match first_of_best {
            Some(first) => number > first || got.start >= SETTLING,
            None => true,
        };
        if got.rate < best && settled {
            shown.below.push(got.piece);
        }
        let sum = shown.each.entry(got.rate).or_default();
        *sum = (sum.0 + 1, sum.1 + got.length);
        shown.possible += bits(best, got.length);
    }
    for pair in pieces.windows(2) {
        shown.up += u64::from(pair[1].rate > pair[0].rate);
        shown.down += u64::from(pair[1].rate < pair[0].rate);
    }
    shown
}

/// The start phase in title time, after which a player has measured the throughput.
const SETTLING: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;

    /// The account of a viewer for pieces of 4 s with these rates in Mb/s, where 6 is the best.
    fn got(rates: &[u64]) -> RenditionStats {
        let second = Duration::from_secs(4);
        let got = rates.iter().zip(0..).map(|(rate, piece)| ReceivedSegment {
            piece,
            rate: BitRate(rate * 1_000_000),
            start: second * u32::try_from(piece).unwrap(),
            length: second,
        });
        of_viewer(&got.collect::<Vec<_>>(), BitRate(6_000_000))
    }

    #[test]
    fn a_fall_from_the_best_counts_and_the_first_seconds_do_not() {
        let cases: [(&[u64], &[usize]); 6] = [
            (&[6, 6, 6, 6], &[]),
            // On the way up, in the first ten seconds.
            (&[1, 3, 3, 6, 6], &[]),
            // After the first ten seconds.
            (&[1, 3, 3, 3, 6, 6], &[3]),
            (&[1, 6, 3, 6, 1], &[2, 4]),
            // A viewer that never reaches the best has no start phase.
            (&[1, 3, 3], &[0, 1, 2]),
            (&[], &[]),
        ];
        for (rates, below) in cases {
            assert_eq!(got(rates).below, below, "{rates:?}");
        }
    }

    #[test]
    fn changes_means_and_lengths_are_reported() {
        let shown = got(&[1, 6, 3, 6, 6]).and(&got(&[6]));
        assert_eq!((shown.up, shown.down), (2, 1));
        let each: Vec<_> = shown.reports().iter().map(|r| (r.bits_per_s, r.pieces)).collect();
        assert_eq!(each, [(1_000_000, 1), (3_000_000, 1), (6_000_000, 4)]);
        let (mean, share) = (shown.mean().unwrap(), shown.share_of_best().unwrap());
        assert!(
            (mean - 28e6 / 6.0).abs() < 1.0 && (share - 28.0 / 36.0).abs() < 1e-9,
            "{mean} {share}"
        );
        assert_eq!((got(&[]).mean(), got(&[]).share_of_best()), (None, None));
    }
}
