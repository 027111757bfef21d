//! How many viewers of popular titles disks and memory hold together: an estimate of what shared
//! reads save.
//!
//! ```text
//!   viewers of one title:   ──a──────b───c─────────d──▶ time      3 intervals
//!   memory keeps the shortest intervals of all titles: whoever ends one follows, and needs no disk
//!
//!   V viewers fit, if for some number N of streams that disks read
//!     N ≤ what the disks hold,  and  N + followers(memory − V·S − N·2S) ≥ V
//! ```
//!
//! Viewers come at random within a time, and choose titles by Zipf's law. S is the size of a read:
//! each viewer's socket holds one, and each stream of a disk two (`docs/concepts/admission.md`).
//!
//! The engine decides on what there is, and this is a mean, so that it is no guarantee. For the
//! audiences of `cargo test -p simulator --test popular` the engine reads as much as this says,
//! within a twentieth.

use crate::buffer_memory::usable_memory;
use std::time::Duration;
use units::{BitRate, ByteCount, Reason};

/// How viewers choose among titles, and when they come.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Popularity {
    /// Number of titles, at least one.
    pub titles: u64,
    /// Exponent of Zipf's law: a title of rank k has a share proportional to k to the power of
    /// minus this. Zero: all are equally popular.
    pub exponent: f64,
    /// Time within which the viewers who watch at the same time have come: the length of titles, or
    /// less where viewers come together.
    pub within: Duration,
}

impl Popularity {
    /// # Errors
    /// A value that no library has.
    pub fn check(&self) -> Result<(), Reason> {
        let within = self.within.as_secs();
        if !(1..=MOST_TITLES).contains(&self.titles) {
            let hint = format!("from 1 to {MOST_TITLES}");
            return Err(Reason::new(format!("{} is not a number of titles", self.titles), hint));
        }
        if !(0.0..=MOST_EXPONENT).contains(&self.exponent) {
            let hint = format!("from 0 to {MOST_EXPONENT}; libraries have 0.6 to 1.2");
            let what = format!("{} is not an exponent of Zipf's law", self.exponent);
            return Err(Reason::new(what, hint));
        }
        if !(1..=LONGEST_WITHIN).contains(&within) {
            let hint = "from 1 s to a day; the length of titles is usual";
            let what = format!("{within} s is not a time within which viewers come");
            return Err(Reason::new(what, hint));
        }
        Ok(())
    }
}

/// An estimate of the viewers that disks and memory hold together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedCapacity {
    /// Bytes of a read.
    pub read: ByteCount,
    /// Viewers in all.
    pub viewers: u64,
    /// Streams that the disks read for them; the others follow one of these.
    pub streams: u64,
    /// Whether memory is what is short for more; otherwise it is the disks.
    pub short_of_memory: bool,
}

/// The viewers that disks and memory hold, with the size of read that is best for them. Per size of
/// read: the streams of all disks without a limit of memory. `None` where no stream is admitted.
pub(super) fn shared(
    popularity: &Popularity,
    memory: ByteCount,
    rate: BitRate,
    rows: impl Iterator<Item = (ByteCount, u64)>,
) -> Option<SharedCapacity> {
    let audience = TitleShares::of(popularity);
    let all = rows.filter(|(_, streams)| *streams > 0).map(|(read, streams)| {
        Room { read, memory: usable_memory(memory, read).0 as f64, streams, rate }
            .viewers(&audience)
    });
    // Of equal ones the smallest reads, which start soonest.
    all.reduce(|best, next| if next.viewers > best.viewers { next } else { best })
}

/// Titles in groups of about the same share.
struct TitleShares {
    /// Number of titles, and the share of the viewers of each.
    groups: Vec<(f64, f64)>,
    within: Duration,
}

impl TitleShares {
    fn of(popularity: &Popularity) -> Self {
        let mut groups = Vec::new();
        let mut first = 1;
        while first <= popularity.titles {
            // The first titles each alone, the others together with those of a similar rank.
            let last = (first + first / GROUP).min(popularity.titles);
            let count = (last - first + 1) as f64;
            let middle = (first as f64 * last as f64).sqrt();
            groups.push((count, middle.powf(-popularity.exponent)));
            first = last + 1;
        }
        let sum: f64 = groups.iter().map(|(count, weight)| count * weight).sum();
        groups.iter_mut().for_each(|(_, weight)| *weight /= sum);
        Self { groups, within: popularity.within }
    }

    /// The viewers among `viewers` who follow another, if memory keeps all intervals up to
    /// `longest` seconds, and the seconds of media in these intervals.
    fn kept(&self, viewers: f64, longest: f64) -> (f64, f64) {
        let (mut followers, mut seconds) = (0.0, 0.0);
        for (titles, share) in &self.groups {
            // Poisson arrivals: one less than the viewers where there are any.
            let of_title = viewers * share;
            let intervals = titles * (of_title + (-of_title).exp_m1());
            let mean = self.within.as_secs_f64() / of_title;
            let longer = (-longest / mean).exp();
            followers += intervals * (1.0 - longer);
            seconds += intervals * (mean * (1.0 - longer) - longest * longer);
        }
        (followers, seconds)
    }

    /// The viewers who follow another where `seconds` of media are kept.
    fn followers(&self, viewers: f64, seconds: f64) -> f64 {
        if seconds <= 0.0 || viewers <= 0.0 {
            return 0.0;
        }
        let (mut least, mut most) = (0.0, self.within.as_secs_f64());
        if self.kept(viewers, most).1 <= seconds {
            return self.kept(viewers, most).0;
        }
        for _ in 0..HALVINGS {
            let middle = f64::midpoint(least, most);
            if self.kept(viewers, middle).1 <= seconds { least = middle } else { most = middle }
        }
        self.kept(viewers, least).0
    }
}

/// What viewers share.
struct Room {
    read: ByteCount,
    /// Bytes of buffers.
    memory: f64,
    /// Streams that the disks hold, if memory is no limit.
    streams: u64,
    rate: BitRate,
}

impl Room {
    fn viewers(&self, audience: &TitleShares) -> SharedCapacity {
        let mut fits = 0;
        let mut too_many = 1;
        while too_many < MOST_VIEWERS && self.streams_of(audience, too_many).is_some() {
            (fits, too_many) = (too_many, too_many * 2);
        }
        while too_many - fits > 1 + fits / EXACT {
            let middle = u64::midpoint(fits, too_many);
            match self.streams_of(audience, middle) {
                Some(_) => fits = middle,
                None => too_many = middle,
            }
        }
        let streams = self.streams_of(audience, fits).unwrap_or(0);
        // With as much memory as there may be the disks are what is short.
        let endless = Self { memory: f64::MAX, ..*self };
        let short_of_memory = endless.streams_of(audience, too_many).is_some();
        SharedCapacity { read: self.read, viewers: fits, streams, short_of_memory }
    }

    /// The fewest streams of disks with which as many viewers fit; `None` if they do not.
    fn streams_of(&self, audience: &TitleShares, viewers: u64) -> Option<u64> {
        let (all, read) = (viewers as f64, self.read.0 as f64);
        let most = self.streams.min(viewers);
        let holds = |streams: u64| {
            let sockets = all * read + streams as f64 * 2.0 * read;
            let left = self.memory - sockets;
            let seconds = left * 8.0 / self.rate.0 as f64;
            left >= 0.0 && streams as f64 + audience.followers(all, seconds) >= all
        };
        let step = |step| most * step / STEPS;
        let first = (0..=STEPS).find(|number| holds(step(*number)))?;
        let (mut too_few, mut enough) = (step(first.saturating_sub(1)), step(first));
        while enough > too_few + 1 {
            let middle = u64::midpoint(too_few, enough);
            if holds(middle) { enough = middle } else { too_few = middle }
        }
        Some(enough)
    }
}

/// The exponent that was measured most often for films on demand.
pub const USUAL_ZIPF: f64 = 0.8;
/// The length of a film.
pub const USUAL_WITHIN: Duration = Duration::from_secs(7200);
/// The most titles.
pub(crate) const MOST_TITLES: u64 = 100_000_000;
/// Beyond, everybody watches the first title.
pub(crate) const MOST_EXPONENT: f64 = 10.0;
/// The longest time within which viewers come, in seconds.
pub(crate) const LONGEST_WITHIN: u64 = 86_400;
/// Ranks up to this are groups of their own; a group later is this part of its rank.
const GROUP: u64 = 32;
/// Halvings of the longest interval that is kept.
const HALVINGS: u32 = 24;
/// Numbers of streams that are tried between none and what the disks hold.
const STEPS: u64 = 32;
/// Viewers are estimated to this part of them.
const EXACT: u64 = 256;
/// More viewers are not estimated.
const MOST_VIEWERS: u64 = 1 << 24;

#[cfg(test)]
mod tests {
    use super::*;

    fn room(read: u64, memory_mib: u64, streams: u64) -> Room {
        let memory = (memory_mib << 20) as f64;
        Room { read: ByteCount(read << 10), memory, streams, rate: BitRate(5_000_000) }
    }

    fn audience(titles: u64, exponent: f64, within: u64) -> TitleShares {
        TitleShares::of(&Popularity { titles, exponent, within: Duration::from_secs(within) })
    }

    /// The audiences of the simulator's test of popular titles: the streams that 300 viewers need.
    /// With reads of 256 KiB the engine read 38.3 % of what they played, the mean of eight
    /// audiences; with 512 KiB 45.6 % for one audience.
    #[test]
    fn as_many_reads_are_shared_as_by_the_engine() {
        let zipf = audience(200, 1.0, 30);
        for (read, measured) in [(256, 0.383), (512, 0.456)] {
            let streams = room(read, 512, 300).streams_of(&zipf, 300).unwrap() as f64 / 300.0;
            assert!((streams / measured - 1.0).abs() < 0.06, "{read} KiB: {streams}");
        }
        // As in the test, 300 viewers do not fit with reads of a mebibyte.
        let larger = room(1024, 512, 300).viewers(&zipf);
        assert!((160..=280).contains(&larger.viewers) && larger.short_of_memory, "{larger:?}");
        let one = room(256, 512, 300).viewers(&audience(1, 1.0, 30));
        assert!(one.streams <= 10 && one.viewers > 1500, "{one:?}");
    }

    #[test]
    fn more_of_everything_holds_more_viewers() {
        let usual = room(1024, 16 << 10, 226).viewers(&audience(1000, 0.8, 7200));
        assert!(usual.viewers > 226 && usual.streams <= 226, "{usual:?}");
        let rows = [
            (room(1024, 32 << 10, 226), audience(1000, 0.8, 7200), "memory"),
            (room(1024, 16 << 10, 452), audience(1000, 0.8, 7200), "disks"),
            (room(1024, 16 << 10, 226), audience(1000, 1.2, 7200), "popular titles"),
            (room(1024, 16 << 10, 226), audience(1000, 0.8, 3600), "viewers who come together"),
            (room(1024, 16 << 10, 226), audience(500, 0.8, 7200), "fewer titles"),
        ];
        for (room, audience, what) in rows {
            let more = room.viewers(&audience);
            assert!(more.viewers > usual.viewers, "{what}: {more:?} {usual:?}");
        }
        // Nobody shares where each has a title of its own, or there is no memory to keep anything.
        let alone = room(1024, 16 << 10, 226).viewers(&audience(100_000_000, 0.0, 7200));
        assert!((226..=232).contains(&alone.viewers), "{alone:?}");
        let bare = room(1024, 8, 226).viewers(&audience(1000, 0.8, 7200));
        assert!(bare.viewers <= 2 && bare.short_of_memory, "{bare:?}");
    }
}
