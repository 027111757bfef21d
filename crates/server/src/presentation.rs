//! A title as one session plays it: whole or a part of it, at a speed. Its packaging for the
//! player, and its layouts for the engine.
//!
//! ```text
//!   stored pieces       │ 0 │ 1 │ 2 │ 3 │ 4 │ 5 │ 6 │ 7 │      skip 1: groups g0, g2, g4
//!   groups              ├─g0──┼─g1──┼──g2─┼─g3──┼─g4─────
//!   presented pieces    │ 0 │ 1 │ 3 │ 4 │ 6 │ 7 │              each that a presented group touches
//!                         └g0┘    └─g2─┘  └─g4──
//! ```
//!
//! The engine counts bytes along the presented pieces; slices of bodies count along the stored
//! bytes. [`engine_range`] maps the second to the first. Forwards, two groups share the piece in
//! which one ends and the next begins. Backwards each group has its own copy of that piece, which
//! is usually still in memory.

use crate::engine::{Layout, TitleKey, TrackLayout};
use crate::layout::{CopyLocation, DeliveryFormat, SMALLEST_PIECE, floor_power, layouts};
use crate::playback_params::PlaybackParams;
use media::{ExcerptError, Packaging};
use std::ops::Range;
use std::sync::{Arc, OnceLock};
use units::align_up;

/// A title or a part of it, at a speed, as sessions play it.
#[derive(Debug)]
pub(crate) struct Presentation {
    pub(crate) packaging: Arc<Packaging>,
    offers: Vec<Vec<u16>>,
    file_offers: Vec<Vec<u16>>,
    // One layout for each copy.
    segmented: Vec<Arc<Layout>>,
    // One layout for each copy; empty for a part, because a file is always the whole title.
    progressive: Vec<Arc<Layout>>,
    // Per track; empty where the engine counts bytes as the store does.
    pub(crate) spans: Arc<Spans>,
    // Part of entity tags: distinguishes its segments from other presentations'.
    pub(crate) tag: String,
}

/// Per track, its presented spans in the order of their stored bytes.
pub(crate) type Spans = Vec<Vec<Span>>;

/// A run of stored bytes, and where it begins among the engine's bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    stored: Range<u64>,
    at: u64,
}

impl Presentation {
    /// The whole title at normal speed.
    pub(crate) fn whole(
        packaging: Arc<Packaging>,
        title: TitleKey,
        copies: &[CopyLocation],
    ) -> Self {
        Self {
            offers: packaging.offers(),
            file_offers: packaging.file_offers(),
            segmented: layouts(title, &packaging, copies, DeliveryFormat::Segmented),
            progressive: layouts(title, &packaging, copies, DeliveryFormat::Progressive),
            spans: Arc::default(),
            tag: String::new(),
            packaging,
        }
    }

    /// A part of a title, or all of it at another speed. Takes time in proportion to the title's
    /// length. Fails where the title has no such part.
    pub(crate) fn part(whole: &Self, params: &PlaybackParams) -> Result<Self, ExcerptError> {
        let base = &whole.segmented;
        if params.is_all() {
            // Only due times change: segments and files have the same bytes as at normal speed.
            let faster = |layouts: &[Arc<Layout>]| {
                layouts.iter().map(|layout| Arc::new(at_speed(layout, params))).collect()
            };
            return Ok(Self {
                packaging: Arc::clone(&whole.packaging),
                offers: whole.offers.clone(),
                file_offers: whole.file_offers.clone(),
                segmented: faster(base),
                progressive: faster(&whole.progressive),
                spans: Arc::default(),
                tag: String::new(),
            });
        }
        let packaging = Arc::new(whole.packaging.excerpt(&params.excerpt)?);
        // Every copy gets the same pieces, so that a session can go on with another copy.
        let (mut tracks, mut spans) = (Vec::new(), Vec::new());
        let first = base.first().ok_or(ExcerptError::Empty)?;
        for (number, stored) in (0u16..).zip(&first.tracks) {
            let runs = packaging.runs_shown(number);
            let spaces = base.iter().map(|copy| space(&copy.tracks[usize::from(number)]));
            let space = spaces.min().unwrap_or(0);
            let (track, of_track) = part_of(stored, &runs, params, space);
            tracks.push(track);
            spans.push(of_track);
        }
        let duration = packaging.duration() * 1000 / params.speed_milli.max(1);
        let copy = |copy: &Arc<Layout>| {
            let pairs = tracks.iter().zip(&copy.tracks);
            let tracks = pairs.map(|(track, stored)| with_runs_of(track, stored)).collect();
            Arc::new(Layout { title: copy.title, disk: copy.disk, duration, tracks })
        };
        let segmented = base.iter().map(copy).collect();
        let excerpt = &params.excerpt;
        let stop = excerpt.stop.map_or_else(String::new, |stop| stop.as_millis().to_string());
        let back = if excerpt.backwards { "b" } else { "" };
        // The speed changes no byte, so it is not part of the tag.
        let tag = format!("-{}-{stop}-{}{back}", excerpt.start.as_millis(), excerpt.skip);
        let offers = packaging.offers();
        let (file_offers, progressive) = (Vec::new(), Vec::new());
        let spans = spans.into();
        Ok(Self { packaging, offers, file_offers, segmented, progressive, spans, tag })
    }

    /// The offers to admission in this format: sets of tracks, best first.
    pub(crate) fn offers(&self, format: DeliveryFormat) -> &[Vec<u16>] {
        match format {
            DeliveryFormat::Segmented => &self.offers,
            DeliveryFormat::Progressive => &self.file_offers,
        }
    }

    /// The layouts in this format, one for each copy; empty where the format is not available.
    pub(crate) fn layouts(&self, format: DeliveryFormat) -> &[Arc<Layout>] {
        match format {
            DeliveryFormat::Segmented => &self.segmented,
            DeliveryFormat::Progressive => &self.progressive,
        }
    }
}

/// The engine's bytes of a range of stored bytes that lies within one group of a track.
pub(crate) fn engine_range(spans: &Spans, track: u16, bytes: Range<u64>) -> Range<u64> {
    let Some(of_track) = spans.get(usize::from(track)) else { return bytes };
    // Spans are sorted by stored bytes: only the last one that starts at or before the range can
    // contain it.
    let after = of_track.partition_point(|span| span.stored.start <= bytes.start);
    let span = after.checked_sub(1).map(|i| &of_track[i]);
    let Some(span) = span.filter(|span| bytes.end <= span.stored.end) else { return bytes };
    let start = span.at + (bytes.start - span.stored.start);
    start..start + (bytes.end - bytes.start)
}

fn at_speed(layout: &Layout, params: &PlaybackParams) -> Layout {
    let tracks = layout.tracks.iter().map(|track| TrackLayout {
        bytes: track.bytes,
        piece: track.piece,
        first_ends: track.first_ends.clone(),
        runs: track.runs.clone(),
        due: track.due.iter().map(|due| params.due(*due)).collect(),
        stored: track.stored.clone(),
        times: OnceLock::new(),
    });
    Layout {
        title: layout.title,
        disk: layout.disk,
        duration: layout.duration * 1000 / params.speed_milli.max(1),
        tracks: tracks.collect(),
    }
}

/// Bytes of a track's extents.
fn space(track: &TrackLayout) -> u64 {
    track.runs.iter().map(|run| run.end - run.start).sum()
}

/// The pieces of `track` in the extents of another copy, `stored`.
fn with_runs_of(track: &TrackLayout, stored: &TrackLayout) -> TrackLayout {
    TrackLayout {
        bytes: track.bytes,
        piece: track.piece,
        first_ends: track.first_ends.clone(),
        runs: stored.runs.clone(),
        due: track.due.clone(),
        stored: track.stored.clone(),
        // The times of another disk do not apply to this copy.
        times: OnceLock::new(),
    }
}

/// The layout and the spans of a track of which only the groups `shown` (bytes, and start in
/// milliseconds) are played. `space`: bytes of the smallest copy's extents.
fn part_of(
    whole: &TrackLayout,
    shown: &[(Range<u64>, u32)],
    params: &PlaybackParams,
    space: u64,
) -> (TrackLayout, Vec<Span>) {
    let backwards = params.excerpt.backwards;
    let piece = part_piece(whole, shown, params, space);
    let size = u64::from(piece);
    let (mut stored, mut due, mut spans) = (Vec::<u32>::new(), Vec::new(), Vec::new());
    for (bytes, ms) in shown.iter().filter(|(bytes, _)| !bytes.is_empty()) {
        let number = |byte: u64| u32::try_from(byte / size).expect("within a sound track");
        let (first, last) = (number(bytes.start), number(bytes.end - 1));
        // Forwards, the piece in which the last group ended is read once for both groups.
        let shared = !backwards && stored.last() == Some(&first);
        let at = stored.len() - usize::from(shared);
        let new = if shared { first + 1..last + 1 } else { first..last + 1 };
        // All pieces of a group are due at its start.
        due.resize(due.len() + new.len(), params.due(*ms));
        stored.extend(new);
        spans.push(Span { stored: bytes.clone(), at: at as u64 * size + bytes.start % size });
    }
    // Backwards the groups come in falling order, and look-ups need a rising one.
    spans.sort_by_key(|span| span.stored.start);
    // The track's last stored piece may be shorter than the others.
    let all = stored.len() as u64 * size;
    let beyond = |last: &u32| (u64::from(*last) + 1) * size;
    let short = stored.last().map_or(0, |last| beyond(last).saturating_sub(whole.bytes));
    let track = TrackLayout {
        bytes: all - short,
        piece,
        first_ends: Vec::new(),
        runs: whole.runs.clone(),
        due,
        stored,
        times: OnceLock::new(),
    };
    (track, spans)
}

/// Piece size of a part, in bytes. Where groups are left out it is at most the mean group, because
/// larger pieces would read the groups between. The last stored piece must fit into every copy's
/// extents as a whole, because it may come anywhere in the order.
fn part_piece(
    whole: &TrackLayout,
    shown: &[(Range<u64>, u32)],
    params: &PlaybackParams,
    space: u64,
) -> u32 {
    let mut piece = u64::from(whole.piece);
    if params.excerpt.skip > 0 || params.excerpt.backwards {
        let bytes: u64 = shown.iter().map(|(bytes, _)| bytes.end - bytes.start).sum();
        let mean = bytes / (shown.len() as u64).max(1);
        piece = floor_power(mean).clamp(SMALLEST_PIECE.min(piece), piece);
    }
    while piece > SMALLEST_PIECE && align_up(whole.bytes, piece) > space {
        piece /= 2;
    }
    u32::try_from(piece).expect("at most the whole title's piece")
}
