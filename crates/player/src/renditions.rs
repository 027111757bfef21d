//! The choice of the rendition for the next piece, by a rule of existing players.
//!
//! ```text
//!   throughput and wait ───────┐
//!   media ahead of play-out ───┼─▶ next ─▶ the highest rendition that
//!   previous rendition ────────┘            1. needs at most 95 % of the throughput, or 70 % if it
//!                                              is higher than the previous one, and
//!                                           2. arrives before the buffer is empty; if none does,
//!                                              before a stall of one piece, at most 4 s; if none
//!                                              does, the lowest
//! ```
//!
//! After hls.js 1.7 with its defaults (`src/controller/abr-controller.ts`: `firstAutoLevel`,
//! `getNextABRAutoLevel` and `findBestLevel`). Before the first piece, the throughput is assumed to
//! be the rate of the rendition listed first, but at least 500 kb/s and at most 5 Mb/s.
//!
//! Not implemented from hls.js: aborting a slow piece in favour of a smaller one (stalls are longer
//! where the rate collapses within a piece), and the limits by screen size, dropped frames and
//! errors.

use crate::throughput::{Download, Throughput};
use std::time::Duration;
use units::{BitRate, name_of};

/// A video rendition of a title.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rendition {
    /// Peak rate: `BANDWIDTH` in HLS, `bandwidth` in DASH.
    pub peak: BitRate,
    /// Mean rate: `AVERAGE-BANDWIDTH` in HLS; the peak where the manifest states none.
    pub mean: BitRate,
    /// The player has its media playlist; otherwise the playlist must be fetched first.
    pub listed: bool,
}

/// The rule by which a player switches between renditions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AbrRule {
    /// The player stays with the rendition listed first.
    #[default]
    Never,
    /// The rule of hls.js 1.7 with its defaults.
    HlsJs,
}

impl AbrRule {
    /// The rules by their names.
    pub const NAMES: [(&str, Self); 2] = [("never", Self::Never), ("hls.js", Self::HlsJs)];

    /// Name of the rule.
    pub fn name(self) -> &'static str {
        name_of(&Self::NAMES, self)
    }
}

/// Input of the adaptation rule.
#[derive(Clone, Copy, Debug)]
struct Situation<'a> {
    /// The renditions in ascending order of their peaks; at least one.
    offers: &'a [Rendition],
    /// Index of the rendition of the previous piece.
    previous: usize,
    /// Estimated throughput of the network path.
    rate: BitRate,
    /// Time to the first byte of a response.
    wait: Duration,
    /// Time that fetching the last media playlist took.
    list: Duration,
    /// Media buffered and not yet rendered.
    ahead: Duration,
    /// The mean length of a piece.
    piece: Duration,
}

/// Index of the rendition to fetch.
fn next(situation: &Situation<'_>) -> usize {
    // With an empty buffer no fetch is without a stall.
    if !situation.ahead.is_zero()
        && let Some(best) = highest_within(situation, Duration::ZERO)
    {
        return best;
    }
    highest_within(situation, situation.piece.min(LONGEST_STALL)).unwrap_or(0)
}

/// Index of the highest rendition that can be fetched with a stall of at most `stall`.
fn highest_within(situation: &Situation<'_>, stall: Duration) -> Option<usize> {
    let Situation { offers, previous, rate, wait, list, ahead, piece } = *situation;
    // With two buffered pieces, one piece above the mean size causes no stall.
    let is_safe = stall.is_zero() && ahead >= piece * 2;
    offers.iter().enumerate().rev().find_map(|(number, offer)| {
        let percent = if number > previous { UP_PERCENT } else { STAY_PERCENT };
        // In two parts, so that the product does not overflow.
        let usable = BitRate(rate.0 / 100 * percent + rate.0 % 100 * percent / 100);
        let needed = if is_safe { offer.mean } else { offer.peak };
        let listing = if offer.listed { Duration::ZERO } else { wait + list };
        let fetching = needed.bytes_in(piece).time_at(usable).saturating_add(wait + listing);
        let fits = usable >= needed && usable.0 > 0;
        // As in hls.js, a fetch that takes no longer than the wait for its first byte always
        // passes.
        (fits && (fetching <= wait || fetching < ahead + stall)).then_some(number)
    })
}

/// Index of the rendition of the first piece; `listed_first` is the first in the server's list.
fn first(offers: &[Rendition], listed_first: usize) -> usize {
    // The lowest rendition is always possible, whatever rate is assumed.
    let rate = offers[listed_first].peak.min(MOST_AT_FIRST).max(LEAST_AT_FIRST).max(offers[0].peak);
    offers.iter().rposition(|offer| offer.peak <= rate).unwrap_or(0)
}

/// Chooses the renditions of one player, from the offers and the observed throughput.
#[derive(Clone, Debug)]
pub struct RenditionSelector {
    rule: AbrRule,
    offers: Vec<Rendition>,
    begin: usize,
    previous: Option<usize>,
    throughput: Throughput,
    list: Duration,
}

impl RenditionSelector {
    /// A selector for `offers`, which are in ascending order of their peaks, at least one;
    /// `listed_first` is the first in the server's list.
    pub fn new(rule: AbrRule, offers: Vec<Rendition>, listed_first: usize) -> Self {
        assert!(offers.is_sorted_by_key(|offer| offer.peak), "in ascending order");
        let begin = match rule {
            AbrRule::Never => listed_first,
            AbrRule::HlsJs => first(&offers, listed_first),
        };
        let throughput = Throughput::new();
        Self { rule, offers, begin, previous: None, throughput, list: Duration::ZERO }
    }

    /// The offered renditions in ascending order of their peaks.
    pub fn offers(&self) -> &[Rendition] {
        &self.offers
    }

    /// Index of the rendition that the player would use with unlimited throughput.
    pub fn best(&self) -> usize {
        match self.rule {
            AbrRule::Never => self.begin,
            AbrRule::HlsJs => self.offers.len() - 1,
        }
    }

    /// Index of the rendition of the next piece. `ahead`: media buffered and not yet rendered;
    /// `piece`: mean duration of a piece.
    pub fn next(&self, ahead: Duration, piece: Duration) -> usize {
        match (self.rule, self.previous, self.throughput.rate()) {
            (AbrRule::HlsJs, Some(previous), Some(rate)) if self.offers.len() > 1 => {
                let (offers, wait, list) = (&self.offers, self.throughput.wait(), self.list);
                next(&Situation { offers, previous, rate, wait, list, ahead, piece })
            }
            // Nothing is known of the network path before the first piece.
            _ => self.begin,
        }
    }

    /// The media playlist of rendition `number` has arrived, after the time `took`.
    pub fn playlist_received(&mut self, number: usize, took: Duration) {
        self.offers[number].listed = true;
        self.list = took;
    }

    /// A piece of rendition `number` has arrived.
    pub fn piece_received(&mut self, number: usize, transfer: &Download) {
        self.previous = Some(number);
        self.throughput.piece_received(transfer);
    }
}

/// `abrBandWidthFactor`.
const STAY_PERCENT: u64 = 95;

/// `abrBandWidthUpFactor`: a margin against switching down again soon after switching up.
const UP_PERCENT: u64 = 70;

/// `maxStarvationDelay`.
const LONGEST_STALL: Duration = Duration::from_secs(4);

/// `abrEwmaDefaultEstimate`.
const LEAST_AT_FIRST: BitRate = BitRate(500_000);

/// `abrEwmaDefaultEstimateMax`.
const MOST_AT_FIRST: BitRate = BitRate(5_000_000);

#[cfg(test)]
mod tests;
