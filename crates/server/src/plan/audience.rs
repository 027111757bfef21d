//! The audience of a plan: streams of constant rate, or viewers of a title with its own demand.

use super::piece;
use disk::Costs;
use disk::plan::evenly_placed;
use media::{Packaging, PackagingError, PackagingOptions, TitleIndex};
use scheduler::{Lead, TrackPieces, sending_reserve};
use std::sync::Arc;
use std::time::Duration;
use units::{BitRate, ByteCount, align_up};

/// The streams that a plan is for.
#[derive(Debug)]
pub enum PlannedAudience {
    /// Streams of this constant rate.
    Rate(BitRate),
    /// Viewers of a title.
    Title {
        /// The title's name.
        name: String,
        /// The title as it is sent.
        packaging: Arc<Packaging>,
        /// Numbers of the tracks that each viewer receives.
        tracks: Vec<u16>,
        /// Mean rate of these tracks together.
        rate: BitRate,
    },
}

/// One viewer's tracks, cut into pieces.
pub(super) struct PlannedViewer {
    tracks: Vec<PlannedTrack>,
}

struct PlannedTrack {
    due: Vec<u32>,
    piece: u32,
    bytes: u64,
    /// Whether the next piece lies right behind each piece.
    followed: Vec<bool>,
}

impl PlannedAudience {
    /// Viewers of a title, in the rendition that a player is offered first.
    pub fn of_title(name: String, index: TitleIndex) -> Result<Self, PackagingError> {
        let packaging = Packaging::new(Arc::new(index), &PackagingOptions::default())?;
        Ok(Self::of_packaging(name, Arc::new(packaging)))
    }

    /// Viewers of a title that is open.
    pub(crate) fn of_packaging(name: String, packaging: Arc<Packaging>) -> Self {
        let tracks = packaging.offers().into_iter().next().unwrap_or_default();
        let rate = BitRate(tracks.iter().map(|track| packaging.mean_rate(*track).0).sum());
        Self::Title { name, packaging, tracks, rate }
    }

    /// Mean rate of a viewer, all tracks together.
    pub fn rate(&self) -> BitRate {
        match self {
            Self::Rate(rate) | Self::Title { rate, .. } => *rate,
        }
    }

    /// The audience in words.
    pub fn describe(&self) -> String {
        match self {
            Self::Rate(rate) => format!("streams of {rate}"),
            Self::Title { name, rate, .. } => format!("viewers of '{name}' ({rate} on average)"),
        }
    }

    /// A viewer whose reads have at most `read` bytes, and whose first media is due `startup` after
    /// the admission, one of at most `most`. `None` where no track would be read so.
    pub(super) fn with_reads_of(
        &self,
        read: ByteCount,
        startup: Duration,
        most: u64,
    ) -> Option<PlannedViewer> {
        let lasts = ByteCount(u64::from(piece(self.rate(), read))).time_at(self.rate());
        let pieces = u32::try_from(PIECES_OF_ALL / most.max(1)).unwrap_or(MOST_PIECES);
        let longest = lasts * pieces.min(MOST_PIECES);
        let length = LENGTH.min(longest).max(LEAST_LENGTH.max(startup + BEHIND_STARTUP));
        let tracks = match self {
            Self::Rate(rate) => vec![constant(*rate, piece(*rate, read), length)],
            Self::Title { packaging, tracks, .. } => {
                let cut = |track: &u16| varying(packaging, *track, read, length);
                tracks.iter().map(cut).collect()
            }
        };
        let largest = tracks.iter().map(|track| u64::from(track.piece)).max()?;
        // With smaller reads the figures would be those of another row.
        (largest == read.0).then_some(PlannedViewer { tracks })
    }
}

impl PlannedViewer {
    pub(super) fn curves(&self) -> Vec<TrackPieces<'_>> {
        let mut curves = Vec::with_capacity(self.tracks.len());
        for PlannedTrack { due, piece, bytes, followed } in &self.tracks {
            curves.push(TrackPieces {
                due,
                piece: *piece,
                bytes: *bytes,
                lead: Lead::default(),
                transfer: &[],
                followed,
            });
        }
        curves
    }

    /// Transfer time of a piece of each track at the place of the first, second, ... viewer's copy
    /// on a disk of `span` bytes. Places are spread evenly over the disk, for any number of
    /// viewers.
    pub(super) fn places(&self, costs: &Costs, span: u64) -> Vec<Vec<[u32; 1]>> {
        let of = |cut: &PlannedTrack| evenly_placed(costs, span, cut.piece);
        self.tracks.iter().map(of).collect()
    }

    pub(super) fn reserve(&self) -> u64 {
        sending_reserve(self.tracks.iter().map(|cut| cut.piece))
    }
}

impl PlannedTrack {
    /// A track of `bytes` bytes; without, all pieces are whole.
    fn of(due: Vec<u32>, piece: u32, bytes: Option<u64>) -> Self {
        let whole = due.len() as u64 * u64::from(piece);
        let bytes = bytes.unwrap_or(whole);
        // No piece follows the last one.
        let pairs = (bytes / u64::from(piece.max(1))).saturating_sub(1);
        Self { due, piece, bytes, followed: vec![true; usize::try_from(pairs).unwrap_or(0)] }
    }
}

/// A track of constant rate and at least `length`, whose pieces are due as they play.
fn constant(rate: BitRate, piece: u32, length: Duration) -> PlannedTrack {
    let lasts = ByteCount(u64::from(piece)).time_at(rate);
    // With one or two pieces the start-up would be most of the stream.
    let pieces = length.as_nanos().div_ceil(lasts.as_nanos().max(1)).max(FEWEST_PIECES);
    let due = |i: u128| u32::try_from(i * lasts.as_nanos() / 1_000_000).unwrap_or(u32::MAX);
    PlannedTrack::of((0..pieces).map(due).collect(), piece, None)
}

/// A track as the server sends it in segments. A title shorter than `length` is repeated, so that
/// the disk fills before the first viewer has left.
fn varying(packaging: &Packaging, track: u16, read: ByteCount, length: Duration) -> PlannedTrack {
    let piece = piece(packaging.mean_rate(track), read);
    let data = packaging.index().tracks[usize::from(track)].data_len;
    let pieces = TrackPieces::of_size(data, piece, Lead::default());
    let once = packaging.due_segmented(track, pieces.starts());
    let duration = packaging.duration().as_millis().max(1);
    let times = length.as_millis().div_ceil(duration);
    if times <= 1 || once.is_empty() {
        // A device reads whole blocks, so the last read ends behind the last byte of the track.
        return PlannedTrack::of(once, piece, Some(align_up(data, BLOCK)));
    }
    let again = |time: u128| {
        let start = u32::try_from(time * duration).unwrap_or(u32::MAX);
        once.iter().map(move |due| start.saturating_add(*due))
    };
    let due: Vec<u32> = (0..times).flat_map(again).collect();
    PlannedTrack::of(due, piece, None)
}

/// Shortest length of a stream: that of a film, and much longer than the time in which viewers
/// arrive. What the disk reads ahead meanwhile pays for streams beyond its rate until it is used
/// up: of five minutes it would be a twentieth, which none of the longer titles of a library has.
const LENGTH: Duration = Duration::from_secs(2 * 3600);
/// Pieces of one stream, and of all, after which streams may be shorter than that: more small reads
/// would take a simulation minutes.
const MOST_PIECES: u32 = 200_000;
const PIECES_OF_ALL: u64 = 8_000_000;
/// Shortest length of such streams.
const LEAST_LENGTH: Duration = Duration::from_secs(300);
/// The longest start-up time that is simulated where memory is no limit. What plays within it is
/// read for a start, and is small beside a stream.
pub(super) const USUAL_STARTUP_UP_TO: Duration = Duration::from_secs(60);
/// Shortest length behind the start-up time. All that plays within that time is due at its end, so
/// that the disk may read it for the first viewers before it reads anything for the others: a
/// stream that is no longer would be over before the disk is full.
const BEHIND_STARTUP: Duration = Duration::from_secs(240);
const FEWEST_PIECES: u128 = 8;
/// Block size of devices.
const BLOCK: u64 = 4096;
