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
//!
//! The I-frames of a track are cut into pieces of a size of their own: that with which the disk
//! takes least time. A small piece saves bytes, a large one visits, since it may hold several
//! I-frames. For an I-frame of 100 KB each second of 5 Mb/s, what all of it takes, in bytes that
//! the disk transfers in that time:
//!
//! ```text
//!                  visits for     KB for an I-frame, if a visit costs as much as
//!   pieces of      an I-frame     1,400 KB (a hard disk)     6 KB (a solid-state disk)
//!    64 KiB           2.5            3,700                      180
//!   512 KiB           1.2            2,300                      630
//!     4 MiB           0.15             830                      630
//! ```
//! So a hard disk reads all of such a title while its viewer winds, as fast as they wind, and a
//! solid-state disk reads the I-frames. The test `disk_time_of_winding` compares both with normal
//! play.
//!
//! A fill of a cache or for another node is a presentation, too: of one response, which a session
//! delivers and ends.
//!
//! ```text
//!   stored pieces       │ 0 │ 1 │ 2 │ 3 │ 4 │ 5 │ 6 │ 7 │
//!   the response               ├──────────┤
//!   presented pieces            │ 2 │ 3 │ 4 │              all due at the start
//! ```
//!
//! A player that waits for a segment needs all of it, so its pieces are due together, in pieces
//! that cost the disk least time. A range of a file may be as long as the title: its pieces are due
//! one after another as they are played, from the first on.

use crate::access::Permit;
use crate::layout::{CopyLocation, DeliveryFormat, layouts, recording_layout};
use crate::playback_params::PlaybackParams;
use engine::{
    LARGEST_PIECE, Layout, Lead, PlayProgress, SMALLEST_PIECE, TitleKey, TrackLayout,
    TrackProgress, floor_power,
};
use media::{Body, ExcerptError, FilledPart, Packaging, Slice};
use ring::digest;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;
use units::{BitRate, ByteCount, align_up};

/// A title or a part of it, at a speed, as sessions play it.
#[derive(Debug)]
pub(crate) struct Presentation {
    pub(crate) packaging: Arc<Packaging>,
    offers: Vec<Vec<u16>>,
    file_offers: Vec<Vec<u16>>,
    // Empty where the title has no form in a transport stream.
    transport_offers: Vec<Vec<u16>>,
    // One layout for each copy.
    segmented: Vec<Arc<Layout>>,
    // One layout for each copy; empty where there is no file: groups of pictures are left out or in
    // another order.
    progressive: Vec<Arc<Layout>>,
    part_reads: PartReads,
    // Per track of the layouts; empty where the engine counts bytes as the store does.
    spans: Arc<Spans>,
    // Of the file's layouts.
    file_spans: Arc<Spans>,
    // The same for all speeds.
    files: Arc<Files>,
    // Part of entity tags: distinguishes its segments from other presentations'.
    pub(crate) tag: String,
    /// The part of the title, and its speed.
    pub(crate) params: PlaybackParams,
}

/// A file that is built once for all who play it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum BuiltFile {
    /// MP4 with these tracks, and the header of all in front.
    Movie(Vec<u16>),
    /// The segments of this track behind an index of them.
    Track(u16),
    /// The I-frames of this track behind an index of them.
    Iframes(u16),
    /// The transport stream that this track leads, at the constant rate of the presentation.
    Transport(u16),
}

type Files = Mutex<BTreeMap<BuiltFile, Arc<Body>>>;

/// What the choice of pieces for single parts of a track is made from: of all copies the narrowest
/// limit and the most expensive visit.
#[derive(Clone, Copy, Debug)]
struct PartReads {
    /// Bytes that the disk transfers in the time that it takes to come to a piece.
    visit: u64,
    /// The largest piece.
    largest: u64,
}

impl PartReads {
    fn of(copies: &[CopyLocation]) -> Self {
        let read_size = copies.iter().map(|copy| copy.read_size.0).min().unwrap_or(0);
        Self {
            visit: copies.iter().map(|copy| copy.visit.0).max().unwrap_or(0),
            largest: read_size.min(LARGEST_PIECE),
        }
    }
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
        let part_reads = PartReads::of(copies);
        let params = PlaybackParams::default();
        let iframes = iframe_tracks(&packaging, &segmented, part_reads, &params);
        append(&mut segmented, &mut spans, iframes);
        Self {
            offers: packaging.offers(),
            file_offers: packaging.file_offers(),
            transport_offers: packaging.transport_offers().unwrap_or_default(),
            part_reads,
            segmented: segmented.into_iter().map(Arc::new).collect(),
            progressive: progressive.into_iter().map(Arc::new).collect(),
            spans: Arc::new(spans),
            file_spans: Arc::default(),
            files: Arc::default(),
            tag: String::new(),
            params,
            packaging,
        }
    }

    /// A recording at normal speed, in segments alone, with pieces of these sizes for its tracks.
    pub(crate) fn of_recording(
        packaging: Arc<Packaging>,
        title: TitleKey,
        copy: &CopyLocation,
        pieces: &[u32],
    ) -> Self {
        let layout = recording_layout(title, &packaging, copy, pieces);
        Self {
            offers: packaging.offers(),
            file_offers: Vec::new(),
            transport_offers: Vec::new(),
            part_reads: PartReads::of(std::slice::from_ref(copy)),
            segmented: vec![Arc::new(layout)],
            progressive: Vec::new(),
            spans: Arc::new(vec![Vec::new(); packaging.index().tracks.len()]),
            file_spans: Arc::default(),
            files: Arc::default(),
            tag: String::new(),
            params: PlaybackParams::default(),
            packaging,
        }
    }

    /// A part of a title, or all of it at another speed. Takes time in proportion to the title's
    /// length. Fails where the title has no such part.
    pub(crate) fn part(whole: &Self, params: &PlaybackParams) -> Result<Self, ExcerptError> {
        let base = &whole.segmented;
        if params.is_all() {
            // Only due times change: segments and files have the same bytes as at normal speed, but
            // for the file at a constant rate.
            let at_speed = |layout: &Arc<Layout>| match params.speed_milli {
                1000 => Arc::clone(layout),
                _ => Arc::new(at_speed(layout, params)),
            };
            let faster = |layouts: &[Arc<Layout>]| layouts.iter().map(at_speed).collect();
            let files =
                if params.rate.is_some() { Arc::default() } else { Arc::clone(&whole.files) };
            return Ok(Self {
                packaging: Arc::clone(&whole.packaging),
                offers: whole.offers.clone(),
                file_offers: whole.file_offers.clone(),
                transport_offers: whole.transport_offers.clone(),
                segmented: faster(base),
                progressive: faster(&whole.progressive),
                part_reads: whole.part_reads,
                spans: Arc::clone(&whole.spans),
                file_spans: Arc::default(),
                files,
                tag: String::new(),
                params: *params,
            });
        }
        let packaging = Arc::new(whole.packaging.excerpt(&params.excerpt)?);
        let part_reads = whole.part_reads;
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
                pieces: if skips { PieceChoice::MeanPart } else { PieceChoice::AsStored },
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
        append(&mut segmented, &mut spans, iframe_tracks(&packaging, base, part_reads, params));
        let segmented = segmented.into_iter().map(Arc::new).collect();
        let (progressive, file_spans) =
            if skips { (Vec::new(), Spans::new()) } else { part_file(whole, &packaging, params) };
        let excerpt = &params.excerpt;
        let stop = excerpt.stop.map_or_else(String::new, |stop| stop.as_millis().to_string());
        let back = if excerpt.backwards { "b" } else { "" };
        // The speed changes no byte, so it is not part of the tag.
        let tag = format!("-{}-{stop}-{}{back}", excerpt.start.as_millis(), excerpt.skip);
        let offers = packaging.offers();
        let transport_offers = packaging.transport_offers().unwrap_or_default();
        Ok(Self {
            offers,
            file_offers: packaging.file_offers(),
            packaging,
            transport_offers,
            segmented,
            progressive,
            part_reads,
            spans: Arc::new(spans),
            file_spans: Arc::new(file_spans),
            files: Arc::default(),
            tag,
            params: *params,
        })
    }

    /// What a fill of a cache reads for `range` of a response, which has bytes of a title played
    /// whole in this format. `is_file`: it is a range of a file, read as it is played. `None`: all
    /// of it is generated, and nothing is read.
    pub(crate) fn fill(
        whole: &Self,
        format: DeliveryFormat,
        is_file: bool,
        body: &Body,
        range: Range<u64>,
    ) -> Option<Self> {
        let base = whole.layouts(format);
        let wanted = stored_ranges(&body.range(range));
        let (first, last) = (wanted.keys().next()?, wanted.keys().next_back()?);
        let stored = |number: u16| whole.packaging.stored_track(number);
        let mut copies: Vec<Layout> = base
            .iter()
            .map(|copy| Layout {
                title: copy.title,
                disk: copy.disk,
                duration: part_of_duration(copy, stored(*first), &wanted[first]),
                tracks: Vec::new(),
            })
            .collect();
        let mut spans = Spans::new();
        for number in 0..=*last {
            let (of, bytes) = (stored(number), wanted.get(&number).cloned().unwrap_or(0..0));
            let pieces = match is_file {
                true => PieceChoice::AsStored,
                false => PieceChoice::Cheapest(whole.part_reads),
            };
            let order = ReadingOrder {
                runs: vec![(bytes, 0)],
                backwards: false,
                pieces,
                speed_milli: PlaybackParams::default().speed_milli,
            };
            let key_frames_of = (of != number).then_some(of);
            append(&mut copies, &mut spans, vec![part_of(base, of, key_frames_of, &order)]);
        }
        if is_file {
            due_as_played(&mut copies, base);
        }
        let spans = Arc::new(spans);
        Some(Self {
            packaging: Arc::clone(&whole.packaging),
            offers: vec![wanted.into_keys().collect()],
            file_offers: Vec::new(),
            transport_offers: Vec::new(),
            segmented: copies.into_iter().map(Arc::new).collect(),
            progressive: Vec::new(),
            part_reads: whole.part_reads,
            file_spans: Arc::clone(&spans),
            spans,
            files: Arc::default(),
            tag: String::new(),
            params: PlaybackParams::default(),
        })
    }

    /// What a fill for another node reads, which copies the title: all of `body`, which has bytes
    /// of one track as they are stored, at a constant rate. `None`: nothing is read.
    pub(crate) fn node_fill(whole: &Self, body: &Body, rate: BitRate) -> Option<Self> {
        let format = DeliveryFormat::Progressive;
        let mut fill = Self::fill(whole, format, true, body, 0..body.len())?;
        let (_, bytes) = stored_ranges(body).pop_first()?;
        for layout in &mut fill.segmented {
            let layout = Arc::get_mut(layout).expect("a fill has its own layouts");
            layout.duration = ByteCount(body.len()).time_at(rate);
            for track in &mut layout.tracks {
                let begins = |piece: &u32| u64::from(*piece) * u64::from(track.piece);
                let before = |piece| begins(piece).saturating_sub(bytes.start);
                let due = |piece| millis_of(before(piece), rate);
                track.due = track.stored.iter().map(due).collect();
            }
        }
        Some(fill)
    }

    /// What is read of a title's file at a constant rate, from its first byte to its last. `file`
    /// has the title's bytes as they are stored.
    pub(crate) fn file_at_rate(whole: &Self, file: &Body, rate: BitRate) -> Self {
        let time_of = |bytes: u64| millis_of(bytes, rate);
        let duration = Duration::from_millis(u64::from(time_of(file.len())));
        let mut dues: Vec<Vec<u32>> = Vec::new();
        if let Some(layout) = whole.progressive.first() {
            let places = layout.tracks.iter().zip(0u16..);
            let places = places.map(|(track, number)| first_places(file, number, track));
            dues.extend(places.map(|of_track| of_track.into_iter().map(time_of).collect()));
        }
        let progressive = whole.progressive.iter().map(|layout| {
            let tracks = layout.tracks.iter().zip(&dues).map(|(track, due)| TrackLayout {
                bytes: track.bytes,
                piece: track.piece,
                lead: track.lead,
                runs: track.runs.clone(),
                due: due.clone(),
                stored: Vec::new(),
                key_frames_of: None,
                times: OnceLock::new(),
            });
            let tracks = tracks.collect();
            Arc::new(Layout { title: layout.title, disk: layout.disk, duration, tracks })
        });
        Self {
            packaging: Arc::clone(&whole.packaging),
            offers: Vec::new(),
            file_offers: whole.file_offers.clone(),
            transport_offers: Vec::new(),
            segmented: Vec::new(),
            progressive: progressive.collect(),
            part_reads: whole.part_reads,
            spans: Arc::default(),
            file_spans: Arc::default(),
            files: Arc::default(),
            tag: String::new(),
            params: PlaybackParams::default(),
        }
    }

    /// Names what players of this format have been given of it, and count on: playlists and
    /// initialization segments, or the places of all bytes in the file of these tracks. A player
    /// may go on with a presentation of the same fingerprint. Takes time in proportion to the
    /// title's length.
    pub(crate) fn fingerprint(&self, format: DeliveryFormat, tracks: &[u16]) -> String {
        let mut hash = digest::Context::new(&digest::SHA256);
        let mut add = |bytes: &[u8]| {
            hash.update(&(bytes.len() as u64).to_le_bytes());
            hash.update(bytes);
        };
        let packaging = &self.packaging;
        if format == DeliveryFormat::Progressive {
            for slice in self.build_file(&BuiltFile::Movie(tracks.to_vec())).slices() {
                match slice {
                    Slice::Generated { bytes, range } => add(&bytes[range.clone()]),
                    stored => add(format!("{stored:?}").as_bytes()),
                }
            }
            return units::to_hex(hash.finish().as_ref());
        }
        for track in (0u16..).take(packaging.index().tracks.len()) {
            let playlist = match format {
                DeliveryFormat::TransportStream => packaging.transport_playlist(track, ""),
                _ => packaging.media_playlist(track, ""),
            };
            add(playlist.unwrap_or_default().as_bytes());
            add(&packaging.init_segment(track).unwrap_or_default());
            add(&packaging.dash_init_segment(track).unwrap_or_default());
        }
        if let (Some(_), Some(lead)) = (self.params.rate, tracks.first()) {
            add(&self.build_file(&BuiltFile::Transport(*lead)).len().to_le_bytes());
        }
        units::to_hex(hash.finish().as_ref())
    }

    /// The offers to admission in this format: sets of tracks, best first.
    pub(crate) fn offers(&self, format: DeliveryFormat) -> &[Vec<u16>] {
        match format {
            DeliveryFormat::Segmented => &self.offers,
            DeliveryFormat::TransportStream => &self.transport_offers,
            DeliveryFormat::Progressive => &self.file_offers,
        }
    }

    /// The index of the best offer in this format that a token permits: all behind it are
    /// permitted, too, so that the session may go over to them. `None` if it permits none.
    pub(crate) fn best_offer(&self, format: DeliveryFormat, permit: &Permit) -> Option<usize> {
        let offers = self.offers(format);
        let permitted = |offer: &Vec<u16>| offer.iter().all(|track| self.permits(permit, *track));
        let last = offers.iter().rposition(|offer| !permitted(offer));
        let best = last.map_or(0, |last| last + 1);
        (best == 0 || best < offers.len()).then_some(best)
    }

    /// Whether a token permits a track.
    pub(crate) fn permits(&self, permit: &Permit, track: u16) -> bool {
        let track = self.packaging.index().tracks.get(usize::from(track));
        permit.allows(track.map_or(0, |track| track.description.height))
    }

    /// The layouts in this format, one for each copy; empty where the format is not available.
    pub(crate) fn layouts(&self, format: DeliveryFormat) -> &[Arc<Layout>] {
        match format {
            DeliveryFormat::Segmented | DeliveryFormat::TransportStream => &self.segmented,
            DeliveryFormat::Progressive => &self.progressive,
        }
    }

    /// Where a viewer is in what it plays, and up to where it was given all of it, by whole
    /// segments. Of pictures and of sound, the track counts that is furthest: a viewer who changes
    /// the language goes on with another one.
    pub(crate) fn position(
        &self,
        format: DeliveryFormat,
        progress: &PlayProgress,
    ) -> (Duration, Duration) {
        let spans = self.spans(format);
        let kind = |track: &TrackProgress| {
            let stored = usize::from(self.packaging.stored_track(track.track));
            self.packaging.index().tracks.get(stored).map(|track| track.description.kind)
        };
        let until = |track: &TrackProgress| {
            let count = self.packaging.segment_count(track.track);
            let end = |number| self.packaging.segment_end(track.track, number);
            let is_delivered = |number: &u32| {
                end(*number).is_some_and(|(bytes, _)| {
                    engine_range(&spans, track.track, bytes).end <= track.delivered_to
                })
            };
            let whole = first_without(count, is_delivered).checked_sub(1).and_then(end);
            let ms = whole.map_or(0, |(_, time)| u32::try_from(time.as_millis()).unwrap_or(0));
            track.delivered_until.max(Duration::from_millis(self.params.due(ms).into()))
        };
        let mut furthest = BTreeMap::new();
        for track in &progress.tracks {
            let of_kind: &mut Duration = furthest.entry(kind(track)).or_default();
            *of_kind = until(track).max(*of_kind);
        }
        let until = furthest.into_values().min().unwrap_or_default();
        (progress.clock.min(until), until)
    }

    /// Where the stored bytes of a response in this format are among the engine's bytes.
    pub(crate) fn spans(&self, format: DeliveryFormat) -> Arc<Spans> {
        Arc::clone(match format {
            DeliveryFormat::Progressive => &self.file_spans,
            _ => &self.spans,
        })
    }

    /// A file, if it has been built.
    pub(crate) fn cached_file(&self, file: &BuiltFile) -> Option<Arc<Body>> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner).get(file).cloned()
    }

    /// A file, built if necessary; empty if there is none. Takes time in proportion to the title's
    /// length: not for HTTP threads.
    pub(crate) fn build_file(&self, file: &BuiltFile) -> Arc<Body> {
        if let Some(body) = self.cached_file(file) {
            return body;
        }
        let body = match file {
            BuiltFile::Movie(tracks) => self.packaging.progressive(tracks),
            BuiltFile::Track(track) => {
                Arc::new(self.packaging.track_file(*track).unwrap_or_default())
            }
            BuiltFile::Iframes(track) => {
                Arc::new(self.packaging.iframe_file(*track).unwrap_or_default())
            }
            BuiltFile::Transport(track) => {
                let file =
                    self.params.rate.and_then(|it| self.packaging.transport_file(*track, it));
                Arc::new(file.unwrap_or_default())
            }
        };
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(files.entry(file.clone()).or_insert(body))
    }
}

/// Per piece of a track, the place in a file at which the first byte of it or of a piece behind it
/// is.
fn first_places(file: &Body, number: u16, track: &TrackLayout) -> Vec<u64> {
    let size = u64::from(track.piece.max(1));
    let pieces = usize::try_from(track.bytes.div_ceil(size)).unwrap_or(0);
    let mut places = vec![file.len(); pieces];
    let mut at = 0;
    for slice in file.slices() {
        if let Slice::Stored { track, bytes } = slice
            && *track == number
        {
            for piece in bytes.start / size..bytes.end.div_ceil(size) {
                let place = at + (piece * size).saturating_sub(bytes.start);
                let known = usize::try_from(piece).ok().and_then(|piece| places.get_mut(piece));
                known.into_iter().for_each(|known| *known = place.min(*known));
            }
        }
        at += slice.len();
    }
    // Deadlines never decrease: a piece whose bytes come later in the file is read with the next.
    let mut next = file.len();
    for place in places.iter_mut().rev() {
        next = next.min(*place);
        *place = next;
    }
    places
}

/// The layouts of the file of a part of a title, one for each copy, and its spans.
fn part_file(
    whole: &Presentation,
    packaging: &Packaging,
    params: &PlaybackParams,
) -> (Vec<Arc<Layout>>, Spans) {
    let base = &whole.progressive;
    let duration = packaging.file_duration() * 1000 / params.speed_milli.max(1);
    let copy = |copy: &Arc<Layout>| Layout {
        title: copy.title,
        disk: copy.disk,
        duration,
        tracks: Vec::new(),
    };
    let mut copies: Vec<Layout> = base.iter().map(copy).collect();
    let part = |number: u16| {
        let order = ReadingOrder {
            runs: packaging.runs_in_file(number),
            backwards: false,
            pieces: PieceChoice::AsStored,
            speed_milli: params.speed_milli,
        };
        part_of(base, number, None, &order)
    };
    let tracks = (0u16..).take(packaging.index().tracks.len());
    let mut spans = Spans::new();
    append(&mut copies, &mut spans, tracks.map(part).collect());
    (copies.into_iter().map(Arc::new).collect(), spans)
}

/// The first of so many numbers for which something is not so; it is so for all before it.
fn first_without(count: u32, is_so: impl Fn(&u32) -> bool) -> u32 {
    let (mut from, mut to) = (0, count);
    while from < to {
        let middle = from + (to - from) / 2;
        if is_so(&middle) { from = middle + 1 } else { to = middle }
    }
    from
}

/// The engine's bytes of a range of stored bytes that lies within one span of a track.
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

/// Per track as slices number it, the stored bytes of a body from the first to the last. Where a
/// part of a file at a constant rate has none, those of all of the part: it is a response like any
/// other.
fn stored_ranges(body: &Body) -> BTreeMap<u16, Range<u64>> {
    let mut ranges = BTreeMap::<u16, Range<u64>>::new();
    let mut add = |track: u16, bytes: Range<u64>| {
        let range = ranges.entry(track).or_insert_with(|| bytes.clone());
        *range = range.start.min(bytes.start)..range.end.max(bytes.end);
    };
    let mut filled = Vec::new();
    for slice in body.slices() {
        match slice {
            Slice::Stored { track, bytes } => add(*track, bytes.clone()),
            Slice::Packets { block, range } => {
                block.parts(range).into_iter().for_each(|(track, bytes)| add(track, bytes));
            }
            Slice::Filled { part, range } => filled.push((part, range)),
            Slice::Encrypted { block, range } => {
                let (track, bytes) = block.part(range);
                add(track, bytes);
            }
            Slice::Chained { segment, range } => {
                segment.parts(range).into_iter().for_each(|(track, bytes)| add(track, bytes));
            }
            Slice::Generated { .. } => {}
        }
    }
    let mut add_until_known =
        |parts: &mut dyn Iterator<Item = &(&Arc<FilledPart>, &Range<u64>)>| {
            let mut known = BTreeSet::new();
            for (part, range) in parts {
                for (track, bytes) in part.parts(range) {
                    add(track, bytes);
                    known.insert(track);
                }
                if known.len() == part.streams() {
                    break;
                }
            }
        };
    // Placing the packets of all parts again would take long: each track's first bytes are in one
    // of the first parts, its last ones in one of the last.
    add_until_known(&mut filled.iter());
    add_until_known(&mut filled.iter().rev());
    if let (true, Some((part, _))) = (ranges.is_empty(), filled.first()) {
        ranges.extend(part.parts(&(0..part.size())));
    }
    ranges
}

/// The time of so many bytes at a rate, in milliseconds.
fn millis_of(bytes: u64, rate: BitRate) -> u32 {
    let millis = u128::from(bytes) * 8000 / u128::from(rate.0.max(1));
    u32::try_from(millis).unwrap_or(u32::MAX)
}

/// As much of a title's time as these bytes are of a track.
fn part_of_duration(layout: &Layout, track: u16, bytes: &Range<u64>) -> Duration {
    let all = u128::from(layout.tracks[usize::from(track)].bytes.max(1));
    let nanos = layout.duration.as_nanos() * u128::from(bytes.end - bytes.start) / all;
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

/// Makes the pieces of parts of a file due when they are due in the file, counted from the first.
fn due_as_played(copies: &mut [Layout], base: &[Arc<Layout>]) {
    for (copy, base) in copies.iter_mut().zip(base) {
        let due = |track: usize, stored: u32| {
            let due = &base.tracks[track].due;
            due.get(stored as usize).or(due.last()).copied().unwrap_or(0)
        };
        // I-frames are pieces of their track here.
        let of = |(number, track): (usize, &TrackLayout)| {
            track.key_frames_of.map_or(number, usize::from)
        };
        let of: Vec<usize> = copy.tracks.iter().enumerate().map(of).collect();
        let starts = of.iter().zip(&copy.tracks);
        let starts = starts.filter_map(|(of, track)| Some(due(*of, *track.stored.first()?)));
        let first = starts.min().unwrap_or(0);
        for (of, track) in of.into_iter().zip(&mut copy.tracks) {
            let times = track.stored.iter().map(|stored| due(of, *stored) - first);
            track.due = times.collect();
        }
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
    reads: PartReads,
    params: &PlaybackParams,
) -> Vec<PartTrack> {
    let number = |number: u16| {
        let order = ReadingOrder {
            runs: packaging.iframe_runs(number),
            backwards: false,
            pieces: PieceChoice::Cheapest(reads),
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
    pieces: PieceChoice,
    speed_milli: u32,
}

/// The size of pieces in which parts of a stored track are read.
enum PieceChoice {
    /// As the whole track is read.
    AsStored,
    /// At most the mean length of the parts: others are left out.
    MeanPart,
    /// The size with which the disk takes least time.
    Cheapest(PartReads),
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
    let (mut stored, mut due, mut spans) = (Vec::<u32>::new(), Vec::new(), Vec::<Span>::new());
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
        match spans.last_mut().filter(|last| !order.backwards && last.stored.end == bytes.start) {
            // One slice of a body may have both.
            Some(last) => last.stored.end = bytes.end,
            None => {
                let at = at as u64 * size + bytes.start % size;
                spans.push(Span { stored: bytes.clone(), at });
            }
        }
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
        lead: Lead::default(),
        runs: copy.runs.clone(),
        due: due.clone(),
        stored: stored.clone(),
        key_frames_of,
        // The times of another disk would not apply to this copy.
        times: OnceLock::new(),
    };
    (stored_tracks.into_iter().map(in_copy).collect(), spans)
}

/// Piece size of a part, in bytes.
fn part_piece(copies: &[&TrackLayout], order: &ReadingOrder) -> u32 {
    let whole = copies[0];
    let stored = u64::from(whole.piece);
    let smallest = SMALLEST_PIECE.min(stored);
    let mut piece = match order.pieces {
        PieceChoice::AsStored => stored,
        PieceChoice::MeanPart => {
            let bytes: u64 = order.runs.iter().map(|(bytes, _)| bytes.end - bytes.start).sum();
            let mean = bytes / (order.runs.len() as u64).max(1);
            floor_power(mean).clamp(smallest, stored)
        }
        PieceChoice::Cheapest(reads) => {
            // A track of low rate is stored for smaller pieces than the disk can read at once.
            let fits = |size: &u64| *size <= stored || is_whole_in(copies, *size);
            let sizes = std::iter::successors(Some(smallest), |size| Some(size * 2));
            let sizes = sizes.take_while(|size| *size <= reads.largest.max(stored) && fits(size));
            let takes = |size: &u64| visits(&order.runs, *size).saturating_mul(reads.visit + size);
            sizes.min_by_key(takes).unwrap_or(stored)
        }
    };
    // Forwards the last stored piece, which may be shorter, comes last. Backwards it comes first,
    // and must fit into every copy's extents as a whole.
    let space = copies.iter().map(|copy| space(copy)).min().unwrap_or(0);
    while order.backwards && piece > SMALLEST_PIECE && align_up(whole.bytes, piece) > space {
        piece /= 2;
    }
    u32::try_from(piece).expect("at most a read")
}

/// Whether no piece of `size` bytes crosses the end of an extent of a copy.
fn is_whole_in(copies: &[&TrackLayout], size: u64) -> bool {
    copies.iter().all(|copy| {
        let inner = &copy.runs[..copy.runs.len().saturating_sub(1)];
        inner.iter().all(|run| (run.end - run.start).is_multiple_of(size))
    })
}

/// The number of pieces of `size` bytes that these runs of bytes, in rising order, touch.
fn visits(runs: &[(Range<u64>, u32)], size: u64) -> u64 {
    let mut behind = 0;
    let touched = runs.iter().filter(|(bytes, _)| !bytes.is_empty()).map(|(bytes, _)| {
        let first = (bytes.start / size).max(behind);
        behind = bytes.end.div_ceil(size);
        behind.saturating_sub(first)
    });
    touched.sum()
}

/// The speed at which I-frames are due, as a multiple of the session's: what is reserved for a
/// viewer who winds. A player that winds faster gets them as soon as the disk has time.
const WINDING_SPEED: u32 = 4;

#[cfg(test)]
mod tests {
    use super::*;
    use disk::{Costs, DiskModel};
    use engine::DiskNumber;
    use media::{CHECKSUM_SPAN, LduIndex, PackagingOptions, TitleIndex, TitleKind};
    use media::{TrackDescription, TrackIndex, TrackKind};
    use scheduler::DiskTimings;
    use units::{ByteCount, Timescale};

    const SECONDS: u32 = 600;

    /// Video of so many bytes a second, 25 pictures of which the first is an I-frame with 16 % of
    /// the bytes.
    fn film(bytes: u32) -> Arc<Packaging> {
        let (iframe, other) = (bytes * 16 / 100, bytes * 84 / 100 / 24);
        let mut ldus = LduIndex::default();
        for picture in 0..SECONDS * 25 {
            let sync = picture % 25 == 0;
            ldus.push(if sync { iframe } else { other }, 1, 0, sync, false);
        }
        let data_len = ldus.data_len();
        let spans = usize::try_from(data_len.div_ceil(CHECKSUM_SPAN)).unwrap();
        let description = TrackDescription::plain(TrackKind::Video, Timescale(25));
        let track = TrackIndex { description, ldus, data_len, checksums: vec![0; spans].into() };
        let index = TitleIndex {
            kind: TitleKind::Media,
            tracks: vec![track],
            texts: Vec::new(),
            thumbnails: None,
        };
        Arc::new(Packaging::new(Arc::new(index), &PackagingOptions::default()).unwrap())
    }

    /// A film in one extent in the middle of a disk.
    fn copy(model: &DiskModel, read: ByteCount, depth: u32, film: &Packaging) -> CopyLocation {
        let start = model.capacity().0 / 2 / SMALLEST_PIECE * SMALLEST_PIECE;
        let extent = start..start + align_up(film.index().tracks[0].data_len, SMALLEST_PIECE);
        let visit = crate::layout::visit(&DiskTimings::of_model(model, read, depth), read);
        CopyLocation { disk: DiskNumber(0), read_size: read, visit, runs: vec![vec![extent]] }
    }

    /// Nanoseconds that all of a track takes of its disk, in sweeps of many visits.
    fn disk_time(track: &TrackLayout, costs: &Costs) -> f64 {
        const SWEEP: u64 = 32;
        let start = |i: u32| match track.stored.get(i as usize) {
            Some(stored) => u64::from(*stored) * u64::from(track.piece),
            None => track.start(i),
        };
        let pieces = u32::try_from(track.due.len()).unwrap();
        let place = |i: u32| track.runs[0].start + start(i);
        let transfer = |i: u32| costs.transfer(place(i), u64::from(track.piece)) as f64;
        let visit = costs.positioning(SWEEP) as f64 / SWEEP as f64;
        (0..pieces).map(|i| transfer(i) + visit).sum()
    }

    /// Prints the table of `docs/concepts/admission.md`:
    /// `cargo test -p server --lib disk_time_of_winding -- --nocapture`
    #[test]
    #[expect(clippy::print_stdout, reason = "the table, with --nocapture")]
    fn disk_time_of_winding() {
        // Disk, its reads and its depth, KB a second of the rendition in which the viewer winds;
        // KiB in a piece, and the most disk time for all I-frames, as parts of normal play.
        let table = [
            ("hdd-20tb", 4 << 20, 4, 625, 4096, 1.01),
            ("hdd-20tb", 4 << 20, 4, 125, 4096, 0.22),
            ("hdd-20tb", 4 << 20, 4, 50, 4096, 0.09),
            ("ssd-sata", 1 << 20, 16, 625, 64, 0.3),
            ("ssd-sata", 1 << 20, 16, 125, 64, 0.15),
            ("ssd-sata", 1 << 20, 16, 50, 1024, 0.09),
        ];
        let played = film(625_000);
        println!("disk time of winding, in parts of that of playing 5 Mb/s");
        println!("disk      rendition  piece   I-frame each      4 x    8 x   16 x");
        for (disk, read, depth, kilobytes, piece, most) in table {
            let (model, read) = (DiskModel::preset(disk).unwrap(), ByteCount(read));
            let costs = Costs::of_model(&model, read, depth);
            let layout = |film: &Arc<Packaging>| {
                let copies = [copy(&model, read, depth, film)];
                Presentation::whole(Arc::clone(film), TitleKey(1), &copies)
            };
            let playing = layout(&played);
            let playing =
                disk_time(&playing.layouts(DeliveryFormat::Segmented)[0].tracks[0], &costs);
            let film = film(kilobytes * 1000);
            let winding = layout(&film);
            let base = &winding.segmented[..];
            for distance in [1, 2, 4, 8, 16] {
                let runs = film.iframe_runs(0).into_iter().step_by(distance).collect();
                let pieces = PieceChoice::Cheapest(winding.part_reads);
                let order = ReadingOrder { runs, backwards: false, pieces, speed_milli: 1000 };
                let track = part_of(base, 0, None, &order).0.remove(0);
                let part = disk_time(&track, &costs) / playing;
                println!(
                    "{disk}  {:>4} kb/s  {:>4} KiB  {distance:>2} s         {:>6.2} {:>6.2} {:>6.2}",
                    kilobytes * 8,
                    track.piece / 1024,
                    4.0 * part,
                    8.0 * part,
                    16.0 * part,
                );
                if distance == 1 {
                    let served = &base[0].tracks[1];
                    assert_eq!((served.piece, track.piece), (piece * 1024, piece * 1024), "{disk}");
                    assert_eq!(served.stored, track.stored, "{disk}");
                    assert!(part <= most, "{disk}, {kilobytes} KB/s: {part} of normal play");
                }
            }
        }
    }

    #[test]
    fn pieces_that_are_touched_count_once() {
        let runs = [(0..10, 0), (10..20, 0), (25..31, 0), (30..30, 0), (59..60, 0), (60..61, 0)];
        for (size, wanted) in [(1, 28), (10, 6), (20, 4), (30, 3), (64, 1)] {
            assert_eq!(visits(&runs, size), wanted, "pieces of {size}");
        }
        assert_eq!(visits(&[], 10), 0);
    }
}
