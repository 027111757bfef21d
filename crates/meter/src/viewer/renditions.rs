//! In which renditions viewers got their pieces, and which of these were smaller than they had to
//! be.
//!
//! ```text
//!   best of an address       the best rendition that any of its viewers was offered
//!   a piece below the best   of a lower rendition, and
//!                             - after one of the best, or
//!                             - from 10 s of the title on, or
//!                             - of a viewer that never got one of the best
//! ```
//!
//! What a player takes while it finds out how wide its way is, is not held against the server; what
//! it is left with then is. A viewer who is offered no more than a smaller rendition has all its
//! pieces below the best. Where nobody says how large renditions are (a file, a single playlist),
//! nothing is said here.

use super::outcome::RenditionReport;
use std::collections::BTreeMap;
use std::time::Duration;
use units::BitRate;

/// What a viewer was offered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OfferedRenditions {
    /// The peak of each rendition, ascending.
    pub(crate) peaks: Vec<BitRate>,
    /// The one that its player would show if nothing were short.
    pub(crate) best: usize,
}

/// What a viewer, or several, got.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct RenditionStats {
    /// From one piece to the next.
    pub(crate) up: u64,
    pub(crate) down: u64,
    /// Numbers of the pieces below the best.
    pub(crate) below: Vec<usize>,
    /// By peak: how many pieces, and how much of the title.
    each: BTreeMap<BitRate, (u64, Duration)>,
    /// What it would have been of the best: bits.
    possible: f64,
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
        let length: f64 = self.each.values().map(|(_, media)| media.as_secs_f64()).sum();
        (length > 0.0).then(|| self.bits() / length)
    }

    /// The mean rate as a share of what the best rendition would have had.
    pub(crate) fn share_of_best(&self) -> Option<f64> {
        (self.possible > 0.0).then(|| self.bits() / self.possible)
    }

    fn bits(&self) -> f64 {
        self.each.iter().map(|(rate, (_, media))| number(*rate) * media.as_secs_f64()).sum()
    }

    /// With what another got.
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
        shown.possible += self::number(best) * got.length.as_secs_f64();
    }
    for pair in pieces.windows(2) {
        shown.up += u64::from(pair[1].rate > pair[0].rate);
        shown.down += u64::from(pair[1].rate < pair[0].rate);
    }
    shown
}

#[expect(clippy::cast_precision_loss, reason = "a mean for people")]
fn number(rate: BitRate) -> f64 {
    rate.0 as f64
}

/// The start phase in title time, after which a player has measured the throughput.
const SETTLING: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;

    /// What a viewer got of pieces of 4 s with these rates in Mb/s, where 6 is the best.
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
    fn who_goes_down_after_the_best_is_below_it_and_who_finds_its_way_is_not() {
        let cases: [(&[u64], &[usize]); 6] = [
            (&[6, 6, 6, 6], &[]),
            // On the way up, in the first ten seconds.
            (&[1, 3, 3, 6, 6], &[]),
            // Later than that.
            (&[1, 3, 3, 3, 6, 6], &[3]),
            (&[1, 6, 3, 6, 1], &[2, 4]),
            // Never there: no grace.
            (&[1, 3, 3], &[0, 1, 2]),
            (&[], &[]),
        ];
        for (rates, below) in cases {
            assert_eq!(got(rates).below, below, "{rates:?}");
        }
    }

    #[test]
    fn changes_means_and_times_are_told() {
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
