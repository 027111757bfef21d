//! A title as one viewer sees it: whole, or a part of it, at its speed. What players are offered,
//! and where the bytes of that lie as the engine books them.
//!
//! ```text
//!   stored pieces         │ 0 │ 1 │ 2 │ 3 │ 4 │ 5 │ 6 │ 7 │      skip 1, groups g0, g2, g4
//!   groups                ├─g0──┼─g1──┼──g2─┼─g3──┼─g4─────
//!   pieces of the showing │ 0 │ 1 │ 3 │ 4 │ 6 │ 7 │              each that a shown group touches
//!                           └g0┘    └─g2─┘  └─g4──
//! ```
//!
//! The engine counts bytes along the pieces of the showing; slices of bodies count along what is
//! stored: [`Showing::place`] leads from one to the other. Forwards, two groups share the piece in
//! which one ends and the next begins; backwards each has its own, which is mostly in memory still.

use crate::engine::{Layout, TitleKey, TrackLayout};
use crate::layout::{Copied, SMALLEST_PIECE, Shape, floor_power, layouts};
use crate::wanted::Wanted;
use media::{NoExcerpt, Packaging};
use std::ops::Range;
use std::sync::{Arc, OnceLock};
use units::align_up;

/// See the head of this file.
#[derive(Debug)]
pub(crate) struct Showing {
    pub(crate) packaging: Arc<Packaging>,
    offers: Vec<Vec<u16>>,
    /// One for each copy, as the next.
    segmented: Vec<Arc<Layout>>,
    /// Empty for a part: a file is whole.
    progressive: Vec<Arc<Layout>>,
    /// Per track; empty where the engine counts as the store does.
    spans: Arc<Spans>,
    /// Tells its segments from those of other showings of the title.
    tag: String,
}

/// Per track, runs of stored bytes and where the engine counts them from, by stored place.
pub(crate) type Spans = Vec<Vec<Span>>;

/// See [`Spans`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    stored: Range<u64>,
    at: u64,
}

impl Showing {
    /// The whole title.
    pub(crate) fn whole(packaging: Arc<Packaging>, title: TitleKey, copies: &[Copied]) -> Self {
        Self {
            offers: packaging.offers(),
            segmented: layouts(title, &packaging, copies, Shape::Segmented),
            progressive: layouts(title, &packaging, copies, Shape::Progressive),
            spans: Arc::default(),
            tag: String::new(),
            packaging,
        }
    }

    /// What a viewer wants of a whole title. Takes time in proportion to the title's length.
    pub(crate) fn part(whole: &Self, wanted: &Wanted) -> Result<Self, NoExcerpt> {
        let base = &whole.segmented;
        if wanted.is_all() {
            let faster = |layouts: &[Arc<Layout>]| {
                layouts.iter().map(|layout| Arc::new(at_speed(layout, wanted))).collect()
            };
            return Ok(Self {
                packaging: Arc::clone(&whole.packaging),
                offers: whole.offers.clone(),
                segmented: faster(base),
                progressive: faster(&whole.progressive),
                spans: Arc::default(),
                tag: String::new(),
            });
        }
        let packaging = Arc::new(whole.packaging.excerpt(&wanted.excerpt)?);
        let (mut tracks, mut spans) = (Vec::new(), Vec::new());
        let first = base.first().ok_or(NoExcerpt::Empty)?;
        for (number, stored) in (0u16..).zip(&first.tracks) {
            let runs = packaging.runs_shown(number);
            let spaces = base.iter().map(|copy| space(&copy.tracks[usize::from(number)]));
            let space = spaces.min().unwrap_or(0);
            let (track, of_track) = part_of(stored, &runs, wanted, space);
            tracks.push(track);
            spans.push(of_track);
        }
        let duration = packaging.duration() * 1000 / wanted.speed_milli.max(1);
        let copy = |copy: &Arc<Layout>| {
            let tracks = tracks.iter().zip(&copy.tracks);
            let tracks = tracks.map(|(track, stored)| elsewhere(track, stored)).collect();
            Arc::new(Layout { title: copy.title, disk: copy.disk, duration, tracks })
        };
        let segmented = base.iter().map(copy).collect();
        let excerpt = &wanted.excerpt;
        let stop = excerpt.stop.map_or_else(String::new, |stop| stop.as_millis().to_string());
        let back = if excerpt.backwards { "b" } else { "" };
        let tag = format!("-{}-{stop}-{}{back}", excerpt.start.as_millis(), excerpt.skip);
        let offers = packaging.offers();
        let progressive = Vec::new();
        Ok(Self { packaging, offers, segmented, progressive, spans: spans.into(), tag })
    }

    /// Sets of tracks, best first.
    pub(crate) fn offers(&self) -> &[Vec<u16>] {
        &self.offers
    }

    /// One for each copy; empty: there is none in this shape.
    pub(crate) fn layouts(&self, shape: Shape) -> &[Arc<Layout>] {
        match shape {
            Shape::Segmented => &self.segmented,
            Shape::Progressive => &self.progressive,
        }
    }

    pub(crate) fn spans(&self) -> &Arc<Spans> {
        &self.spans
    }

    pub(crate) fn tag(&self) -> &str {
        &self.tag
    }
}

/// Where the engine counts stored bytes that one group has.
pub(crate) fn place(spans: &Spans, track: u16, bytes: Range<u64>) -> Range<u64> {
    let Some(of_track) = spans.get(usize::from(track)) else { return bytes };
    let after = of_track.partition_point(|span| span.stored.start <= bytes.start);
    let span = after.checked_sub(1).map(|i| &of_track[i]);
    let Some(span) = span.filter(|span| bytes.end <= span.stored.end) else { return bytes };
    let start = span.at + (bytes.start - span.stored.start);
    start..start + (bytes.end - bytes.start)
}

fn at_speed(layout: &Layout, wanted: &Wanted) -> Layout {
    let tracks = layout.tracks.iter().map(|track| TrackLayout {
        bytes: track.bytes,
        piece: track.piece,
        runs: track.runs.clone(),
        due: track.due.iter().map(|due| wanted.due(*due)).collect(),
        stored: track.stored.clone(),
        times: OnceLock::new(),
    });
    Layout {
        title: layout.title,
        disk: layout.disk,
        duration: layout.duration * 1000 / wanted.speed_milli.max(1),
        tracks: tracks.collect(),
    }
}

/// Bytes that a track has its place in.
fn space(track: &TrackLayout) -> u64 {
    track.runs.iter().map(|run| run.end - run.start).sum()
}

/// The same pieces where another copy has them.
fn elsewhere(track: &TrackLayout, stored: &TrackLayout) -> TrackLayout {
    TrackLayout {
        bytes: track.bytes,
        piece: track.piece,
        runs: stored.runs.clone(),
        due: track.due.clone(),
        stored: track.stored.clone(),
        times: OnceLock::new(),
    }
}

/// A track of which only `shown` is played. `space`: what every copy has room for.
fn part_of(
    whole: &TrackLayout,
    shown: &[(Range<u64>, u32)],
    wanted: &Wanted,
    space: u64,
) -> (TrackLayout, Vec<Span>) {
    let backwards = wanted.excerpt.backwards;
    let piece = part_piece(whole, shown, wanted, space);
    let size = u64::from(piece);
    let (mut stored, mut due, mut spans) = (Vec::<u32>::new(), Vec::new(), Vec::new());
    for (bytes, ms) in shown.iter().filter(|(bytes, _)| !bytes.is_empty()) {
        let number = |byte: u64| u32::try_from(byte / size).expect("within a sound track");
        let (first, last) = (number(bytes.start), number(bytes.end - 1));
        let shared = !backwards && stored.last() == Some(&first);
        let at = stored.len() - usize::from(shared);
        let new = if shared { first + 1..last + 1 } else { first..last + 1 };
        due.resize(due.len() + new.len(), wanted.due(*ms));
        stored.extend(new);
        spans.push(Span { stored: bytes.clone(), at: at as u64 * size + bytes.start % size });
    }
    spans.sort_by_key(|span| span.stored.start);
    let all = stored.len() as u64 * size;
    let beyond = |last: &u32| (u64::from(*last) + 1) * size;
    let short = stored.last().map_or(0, |last| beyond(last).saturating_sub(whole.bytes));
    let track = TrackLayout {
        bytes: all - short,
        piece,
        runs: whole.runs.clone(),
        due,
        stored,
        times: OnceLock::new(),
    };
    (track, spans)
}

/// Bytes of a piece: where groups are left out not more than one of them, or all would be read
/// that lies between; and a whole one must have its place, wherever in the order it comes.
fn part_piece(
    whole: &TrackLayout,
    shown: &[(Range<u64>, u32)],
    wanted: &Wanted,
    space: u64,
) -> u32 {
    let mut piece = u64::from(whole.piece);
    if wanted.excerpt.skip > 0 || wanted.excerpt.backwards {
        let bytes: u64 = shown.iter().map(|(bytes, _)| bytes.end - bytes.start).sum();
        let mean = bytes / (shown.len() as u64).max(1);
        piece = floor_power(mean).clamp(SMALLEST_PIECE.min(piece), piece);
    }
    while piece > SMALLEST_PIECE && align_up(whole.bytes, piece) > space {
        piece /= 2;
    }
    u32::try_from(piece).expect("not above the whole title's")
}
