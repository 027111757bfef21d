//! Which rendition of a title a player asks for next, by a rule that players in use have.
//!
//! ```text
//!   rate and wait of the way ──┐
//!   media ahead of play-out ───┼─▶ next ─▶ the highest rendition that
//!   rendition of the piece ────┘            1. takes at most 95 % of the rate; 70 % where it is
//!   before                                     higher than the one before, and
//!                                           2. is here before the buffer is empty; where none is,
//!                                              before it was empty for a piece's length, 4 s at
//!                                              most; where none is, the lowest
//! ```
//!
//! After hls.js 1.7 with its defaults (`src/controller/abr-controller.ts`: `firstAutoLevel`,
//! `getNextABRAutoLevel` and `findBestLevel`). Until something has come, the way is taken to be as
//! wide as the rendition that is named first, but no less than 500 kb/s and no more than 5 Mb/s.
//!
//! Left out of hls.js: it does not break off a piece that comes too slowly to ask for a smaller
//! one, and so stands longer where a rate collapses within a piece; it does not look at the size of
//! a screen, at pictures dropped, or at errors.

use crate::throughput::{Download, Throughput};
use std::time::Duration;
use units::BitRate;

/// One size in which a title's picture is on offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rendition {
    /// The most that it takes: `BANDWIDTH` in HLS, `bandwidth` in DASH.
    pub peak: BitRate,
    /// What it takes on average: `AVERAGE-BANDWIDTH`; the peak where nobody says.
    pub mean: BitRate,
    /// The player knows where its pieces are. If not, a list of them is to be fetched first.
    pub listed: bool,
}

/// Whether, and how, a player changes between renditions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AbrRule {
    /// It stays with what it was offered first.
    #[default]
    Never,
    /// The rule of hls.js 1.7 with its defaults.
    HlsJs,
}

impl AbrRule {
    /// As people type them.
    pub const NAMES: [(&str, Self); 2] = [("never", Self::Never), ("hls.js", Self::HlsJs)];

    /// As people type it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Never => "never",
            Self::HlsJs => "hls.js",
        }
    }
}

/// Input of the adaptation rule.
#[derive(Clone, Copy, Debug)]
struct Situation<'a> {
    /// In ascending order of their peaks; at least one.
    offers: &'a [Rendition],
    /// Index of the rendition of the piece before.
    before: usize,
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

/// The rendition to ask for; an index into the offers.
fn next(situation: &Situation<'_>) -> usize {
    if !situation.ahead.is_zero()
        && let Some(found) = best(situation, Duration::ZERO)
    {
        return found;
    }
    best(situation, situation.piece.min(LONGEST_STALL)).unwrap_or(0)
}

/// The highest for which there is room, if the buffer may be empty for so long.
fn best(situation: &Situation<'_>, stall: Duration) -> Option<usize> {
    let Situation { offers, before, rate, wait, list, ahead, piece } = *situation;
    // With two pieces ahead a larger one than usual is no danger.
    let calm = stall.is_zero() && ahead >= piece * 2;
    offers.iter().enumerate().rev().find_map(|(number, offer)| {
        let percent = if number > before { UP_PERCENT } else { STAY_PERCENT };
        let usable = BitRate(rate.0 / 100 * percent + rate.0 % 100 * percent / 100);
        let takes = if calm { offer.mean } else { offer.peak };
        let listing = if offer.listed { Duration::ZERO } else { wait + list };
        let fetching = takes.bytes_in(piece).time_at(usable).saturating_add(wait + listing);
        let fits = usable >= takes && usable.0 > 0;
        (fits && (fetching <= wait || fetching < ahead + stall)).then_some(number)
    })
}

/// The rendition to begin with, where `named` is the first in the list.
fn first(offers: &[Rendition], named: usize) -> usize {
    let rate = offers[named].peak.min(MOST_AT_FIRST).max(LEAST_AT_FIRST).max(offers[0].peak);
    offers.iter().rposition(|offer| offer.peak <= rate).unwrap_or(0)
}

/// One player's renditions: what is on offer, what it knows of the way, and what it does about it.
#[derive(Clone, Debug)]
pub struct RenditionSelector {
    switching: AbrRule,
    offers: Vec<Rendition>,
    begin: usize,
    before: Option<usize>,
    throughput: Throughput,
    list: Duration,
}

impl RenditionSelector {
    /// `offers` in ascending order of their peaks, at least one, of which `named` is the first in
    /// the server's list.
    pub fn new(switching: AbrRule, offers: Vec<Rendition>, named: usize) -> Self {
        assert!(offers.is_sorted_by_key(|offer| offer.peak), "in ascending order");
        let begin = match switching {
            AbrRule::Never => named,
            AbrRule::HlsJs => first(&offers, named),
        };
        let throughput = Throughput::new();
        Self { switching, offers, begin, before: None, throughput, list: Duration::ZERO }
    }

    /// In ascending order of their peaks.
    pub fn offers(&self) -> &[Rendition] {
        &self.offers
    }

    /// The best that this player would show if nothing were short.
    pub fn best(&self) -> usize {
        match self.switching {
            AbrRule::Never => self.begin,
            AbrRule::HlsJs => self.offers.len() - 1,
        }
    }

    /// Index of the rendition of which to fetch the next piece. `ahead`: media buffered and not yet
    /// rendered; `piece`: mean duration of a piece.
    pub fn next(&self, ahead: Duration, piece: Duration) -> usize {
        match (self.switching, self.before, self.throughput.rate()) {
            (AbrRule::HlsJs, Some(before), Some(rate)) if self.offers.len() > 1 => {
                let (offers, wait, list) = (&self.offers, self.throughput.wait(), self.list);
                next(&Situation { offers, before, rate, wait, list, ahead, piece })
            }
            _ => self.begin,
        }
    }

    /// The list of this one's pieces is here; asking for it took so long.
    pub fn listed(&mut self, number: usize, took: Duration) {
        self.offers[number].listed = true;
        self.list = took;
    }

    /// A piece of this one is here.
    pub fn came(&mut self, number: usize, transfer: &Download) {
        self.before = Some(number);
        self.throughput.came(transfer);
    }
}

/// `abrBandWidthFactor`.
const STAY_PERCENT: u64 = 95;

/// `abrBandWidthUpFactor`: who goes up must not have to come down at once.
const UP_PERCENT: u64 = 70;

/// `maxStarvationDelay`.
const LONGEST_STALL: Duration = Duration::from_secs(4);

/// `abrEwmaDefaultEstimate`.
const LEAST_AT_FIRST: BitRate = BitRate(500_000);

/// `abrEwmaDefaultEstimateMax`.
const MOST_AT_FIRST: BitRate = BitRate(5_000_000);

#[cfg(test)]
mod tests;
