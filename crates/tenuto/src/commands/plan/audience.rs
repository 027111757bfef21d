//! The audience of a plan: streams of constant rate, or viewers of a title with its own demand.

use super::piece;
use crate::access::ask;
use crate::args::disks::PlanArgs;
use crate::failure::Failure;
use disk::Costs;
use media::{IndexError, Packaging, PackagingOptions, TitleIndex};
use scheduler::{TrackPieces, sending_reserve};
use server::control::{Reply, Request};
use server::wire;
use std::fmt::Display;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use studies::admission::evenly_placed;
use units::{BitRate, ByteCount, align_up};

pub(super) enum Audience {
    Rate(BitRate),
    Title { name: String, packaging: Packaging, tracks: Vec<u16>, rate: BitRate },
}

/// One viewer's tracks, cut into pieces.
pub(super) struct Viewer {
    tracks: Vec<Cut>,
}

struct Cut {
    due: Vec<u32>,
    piece: u32,
    bytes: u64,
    /// Whether the next piece lies right behind each piece.
    followed: Vec<bool>,
}

impl Audience {
    /// The audience that the command line names.
    pub(super) fn new(args: &PlanArgs) -> Result<Self, Failure> {
        match (args.rate, &args.title) {
            (Some(rate), None) if (SLOWEST..=FASTEST).contains(&rate) => Ok(Self::Rate(rate)),
            (Some(rate), None) => {
                let sentence = format!("--rate: {rate} is not the rate of a stream");
                Err(Failure::usage(sentence).hint(format!("from {SLOWEST} to {FASTEST}")))
            }
            (None, Some(title)) => Self::title(title),
            (None, None) => Err(Failure::usage("no streams to plan for: give --rate or --title")
                .hint("for example --rate 5Mbps")),
            (Some(_), Some(_)) => {
                Err(Failure::usage("--rate and --title are two audiences").hint("give one of them"))
            }
        }
    }

    fn title(typed: &str) -> Result<Self, Failure> {
        // Path and name may both contain colons: the first one that ends an existing path counts.
        let split = typed.match_indices(':').map(|(at, _)| (&typed[..at], &typed[at + 1..]));
        let Some((path, name)) = split.clone().find(|(path, _)| Path::new(path).exists()) else {
            let sentence = match split.into_iter().next() {
                Some((path, _)) => format!("--title: there is no store at {path}"),
                None => format!("--title: '{typed}' has no colon between store and title"),
            };
            return Err(Failure::new(sentence).hint("for example --title film.store:Nosferatu"));
        };
        let request = Request::Index { title: name.to_owned() };
        let Reply::Index(index) = ask(Path::new(path), &request)? else {
            crate::commands::stores::mismatched()
        };
        let failed =
            |error: &dyn Display| Failure::new(format!("'{name}' cannot be planned for: {error}"));
        let index = wire::from_hex(&index)
            .ok_or(IndexError::NotAnIndex)
            .and_then(|bytes| TitleIndex::decode(&bytes))
            .map_err(|error| failed(&error))?;
        let packaging = Packaging::new(Arc::new(index), &PackagingOptions::default())
            .map_err(|error| failed(&error))?;
        let tracks = packaging.offers().into_iter().next().unwrap_or_default();
        let rate = BitRate(tracks.iter().map(|track| packaging.mean_rate(*track).0).sum());
        Ok(Self::Title { name: name.to_owned(), packaging, tracks, rate })
    }

    /// Mean rate of a viewer, all tracks together.
    pub(super) fn rate(&self) -> BitRate {
        match self {
            Self::Rate(rate) | Self::Title { rate, .. } => *rate,
        }
    }

    /// The audience in words.
    pub(super) fn describe(&self) -> String {
        match self {
            Self::Rate(rate) => format!("streams of {rate}"),
            Self::Title { name, rate, .. } => format!("viewers of '{name}' ({rate} on average)"),
        }
    }

    /// A viewer whose reads have at most `read` bytes. `None` where no track would be read so.
    pub(super) fn with_reads_of(&self, read: ByteCount) -> Option<Viewer> {
        let tracks = match self {
            Self::Rate(rate) => vec![constant(*rate, piece(*rate, read))],
            Self::Title { packaging, tracks, .. } => {
                let cut = |track: &u16| varying(packaging, *track, read);
                tracks.iter().map(cut).collect()
            }
        };
        let largest = tracks.iter().map(|track| u64::from(track.piece)).max()?;
        // With smaller reads the figures would be those of another row.
        (largest == read.0).then_some(Viewer { tracks })
    }
}

impl Viewer {
    pub(super) fn curves(&self) -> Vec<TrackPieces<'_>> {
        let mut curves = Vec::with_capacity(self.tracks.len());
        for Cut { due, piece, bytes, followed } in &self.tracks {
            curves.push(TrackPieces {
                due,
                piece: *piece,
                bytes: *bytes,
                lead: 0,
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
        let of = |cut: &Cut| evenly_placed(costs, span, cut.piece);
        self.tracks.iter().map(of).collect()
    }

    pub(super) fn reserve(&self) -> u64 {
        sending_reserve(self.tracks.iter().map(|cut| cut.piece))
    }
}

impl Cut {
    /// A track of `bytes` bytes; without, all pieces are whole.
    fn of(due: Vec<u32>, piece: u32, bytes: Option<u64>) -> Self {
        let whole = due.len() as u64 * u64::from(piece);
        let bytes = bytes.unwrap_or(whole);
        // No piece follows the last one.
        let pairs = (bytes / u64::from(piece.max(1))).saturating_sub(1);
        Self { due, piece, bytes, followed: vec![true; usize::try_from(pairs).unwrap_or(0)] }
    }
}

/// A track of constant rate, whose pieces are due as they play.
fn constant(rate: BitRate, piece: u32) -> Cut {
    let lasts = ByteCount(u64::from(piece)).time_at(rate);
    // With one or two pieces the start-up would be most of the stream.
    let pieces = LENGTH.as_nanos().div_ceil(lasts.as_nanos().max(1)).max(FEWEST_PIECES);
    let due = |i: u128| u32::try_from(i * lasts.as_nanos() / 1_000_000).unwrap_or(u32::MAX);
    Cut::of((0..pieces).map(due).collect(), piece, None)
}

/// A track as the server sends it in segments. A short title is repeated, so that the disk fills
/// before the first viewer has left.
fn varying(packaging: &Packaging, track: u16, read: ByteCount) -> Cut {
    let piece = piece(packaging.mean_rate(track), read);
    let once = packaging.due_segmented(track, piece, 0);
    let data = packaging.index().tracks[usize::from(track)].data_len;
    let duration = packaging.duration().as_millis().max(1);
    let times = LENGTH.as_millis().div_ceil(duration);
    if times <= 1 || once.is_empty() {
        // A device reads whole blocks, so the last read ends behind the last byte of the track.
        return Cut::of(once, piece, Some(align_up(data, BLOCK)));
    }
    let again = |time: u128| {
        let start = u32::try_from(time * duration).unwrap_or(u32::MAX);
        once.iter().map(move |due| start.saturating_add(*due))
    };
    let due: Vec<u32> = (0..times).flat_map(again).collect();
    Cut::of(due, piece, None)
}

/// Length of a stream: much longer than the time in which viewers arrive, so that a second of
/// start-up is less than half a percent of it.
const LENGTH: Duration = Duration::from_secs(300);
const FEWEST_PIECES: u128 = 8;
/// Block size of devices.
const BLOCK: u64 = 4096;
/// The lowest rate of a stream: narrow-band speech.
const SLOWEST: BitRate = BitRate(8_000);
/// The highest rate of a stream: several times uncompressed 8K video.
const FASTEST: BitRate = BitRate(1_000_000_000_000);
