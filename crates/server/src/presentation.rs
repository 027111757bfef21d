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
//!
//! Behind the tracks of the title stand the I-frames of its video tracks, in the same way: of each
//! listed I-frame the pieces that it touches, due at the speed that is reserved for winding.
//!
//! ```text
//!   stored pieces       │ 0 │ 1 │ 2 │ 3 │ 4 │ 5 │ 6 │ 7 │
//!   I-frames            ├i0           ├i1         ├i2
//!   presented pieces    │ 0 │         │ 3 │       │ 5 │
//! ```

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
    // Per track of the layouts; empty where the engine counts bytes as the store does.
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
        let mut segmented = layouts(title, &packaging, copies, DeliveryFormat::Segmented);
        let progressive = layouts(title, &packaging, copies, DeliveryFormat::Progressive);
        let mut spans = vec![Vec::new(); packaging.index().tracks.len()];
        let iframes = iframe_tracks(&packaging, &segmented, &PlaybackParams::default());
        append(&mut segmented, &mut spans, iframes);
        Self {
            offers: packaging.offers(),
            file_offers: packaging.file_offers(),
            segmented: segmented.into_iter().map(Arc::new).collect(),
            progressive: progressive.into_iter().map(Arc::new).collect(),
            spans: Arc::new(spans),
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
                spans: Arc::clone(&whole.spans),
                tag: String::new(),
            });
        }
        let packaging = Arc::new(whole.packaging.excerpt(&params.excerpt)?);
        if base.is_empty() {
            return Err(ExcerptError::Empty);
        }
        let stored = || (0u16..).take(packaging.index().tracks.len());
        let skips = params.excerpt.skip > 0 || params.excerpt.backwards;
        let parts = stored().map(|number| {
            let order = ReadingOrder {
                runs: packaging.runs_shown(number),
                backwards: params.excerpt.backwards,
                // A larger piece than the mean group would read the groups between.
                wanted_piece: skips.then_some(floor_power),
                speed_milli: params.speed_milli,
            };
            part_of(base, number, None, &order)
        });
        let duration = packaging.duration() * 1000 / params.speed_milli.max(1);
        let copy = |copy: &Arc<Layout>| Layout {
            title: copy.title,
            disk: copy.disk,
            duration,
            tracks: Vec::new(),
        };
        let mut segmented: Vec<Layout> = base.iter().map(copy).collect();
        let mut spans = Vec::new();
        append(&mut segmented, &mut spans, parts.collect());
        append(&mut segmented, &mut spans, iframe_tracks(&packaging, base, params));
        let segmented = segmented.into_iter().map(Arc::new).collect();
        let excerpt = &params.excerpt;
        let stop = excerpt.stop.map_or_else(String::new, |stop| stop.as_millis().to_string());
        let back = if excerpt.backwards { "b" } else { "" };
        // The speed changes no byte, so it is not part of the tag.
        let tag = format!("-{}-{stop}-{}{back}", excerpt.start.as_millis(), excerpt.skip);
        let offers = packaging.offers();
        let (file_offers, progressive) = (Vec::new(), Vec::new());
        let spans = Arc::new(spans);
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
        lead: track.lead,
        runs: track.runs.clone(),
        due: track.due.iter().map(|due| params.due(*due)).collect(),
        stored: track.stored.clone(),
        key_frames_of: track.key_frames_of,
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

/// A track that reads parts of what is stored: its layout in each copy, and its spans.
type PartTrack = (Vec<TrackLayout>, Vec<Span>);

/// Adds tracks to the layouts of all copies.
fn append(layouts: &mut [Layout], spans: &mut Spans, tracks: Vec<PartTrack>) {
    for (of_copies, of_track) in tracks {
        for (layout, track) in layouts.iter_mut().zip(of_copies) {
            layout.tracks.push(track);
        }
        spans.push(of_track);
    }
}

/// The I-frames of each track of a title, as [`Packaging::iframe_track`] numbers them. `copies`:
/// the title's layouts. Tracks without I-frames are empty.
fn iframe_tracks<L: std::borrow::Borrow<Layout>>(
    packaging: &Packaging,
    copies: &[L],
    params: &PlaybackParams,
) -> Vec<PartTrack> {
    let number = |number: u16| {
        let order = ReadingOrder {
            runs: packaging.iframe_runs(number),
            backwards: false,
            // Most I-frames lie in one piece or two: on a disk with an arm a second visit costs
            // more than the bytes around.
            wanted_piece: Some(|mean| floor_power(2 * mean)),
            speed_milli: params.speed_milli.saturating_mul(WINDING_SPEED),
        };
        part_of(copies, number, Some(number), &order)
    };
    (0u16..).take(packaging.index().tracks.len()).map(number).collect()
}

/// Which parts of a stored track are read, in which order and how fast.
struct ReadingOrder {
    /// Bytes, and when they are due in milliseconds at normal speed.
    runs: Vec<(Range<u64>, u32)>,
    /// Whether the parts come in falling order.
    backwards: bool,
    /// The piece size for this mean length of the parts, where other parts are left out.
    wanted_piece: Option<fn(u64) -> u64>,
    speed_milli: u32,
}

/// A track of which only parts are read. Every copy gets the same pieces, so that a session can go
/// on with another copy.
fn part_of<L: std::borrow::Borrow<Layout>>(
    copies: &[L],
    number: u16,
    key_frames_of: Option<u16>,
    order: &ReadingOrder,
) -> PartTrack {
    let stored_tracks: Vec<&TrackLayout> =
        copies.iter().map(|copy| &copy.borrow().tracks[usize::from(number)]).collect();
    let whole = stored_tracks[0];
    let piece = part_piece(&stored_tracks, order);
    let size = u64::from(piece);
    let params = PlaybackParams { speed_milli: order.speed_milli, ..PlaybackParams::default() };
    let (mut stored, mut due, mut spans) = (Vec::<u32>::new(), Vec::new(), Vec::new());
    for (bytes, ms) in order.runs.iter().filter(|(bytes, _)| !bytes.is_empty()) {
        let number = |byte: u64| u32::try_from(byte / size).expect("within a sound track");
        let (first, last) = (number(bytes.start), number(bytes.end - 1));
        // Forwards, the piece in which the last group ended is read once for both groups.
        let shared = !order.backwards && stored.last() == Some(&first);
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
    let in_copy = |copy: &TrackLayout| TrackLayout {
        bytes: all - short,
        piece,
        lead: 0,
        runs: copy.runs.clone(),
        due: due.clone(),
        stored: stored.clone(),
        key_frames_of,
        // The times of another disk would not apply to this copy.
        times: OnceLock::new(),
    };
    (stored_tracks.into_iter().map(in_copy).collect(), spans)
}

/// Piece size of a part, in bytes. The last stored piece must fit into every copy's extents as a
/// whole, because it may come anywhere in the order.
fn part_piece(copies: &[&TrackLayout], order: &ReadingOrder) -> u32 {
    let whole = copies[0];
    let mut piece = u64::from(whole.piece);
    if let Some(wanted) = order.wanted_piece {
        let bytes: u64 = order.runs.iter().map(|(bytes, _)| bytes.end - bytes.start).sum();
        let mean = bytes / (order.runs.len() as u64).max(1);
        piece = wanted(mean).clamp(SMALLEST_PIECE.min(piece), piece);
    }
    let space = copies.iter().map(|copy| space(copy)).min().unwrap_or(0);
    while piece > SMALLEST_PIECE && align_up(whole.bytes, piece) > space {
        piece /= 2;
    }
    u32::try_from(piece).expect("at most the whole title's piece")
}

/// The speed at which I-frames are due, as a multiple of the session's: what is reserved for a
/// viewer who winds. A player that winds faster gets them as soon as the disk has time.
const WINDING_SPEED: u32 = 4;
