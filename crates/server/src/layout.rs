//! A title's layout for the engine: its tracks cut into pieces, each with its place on the device
//! and its due time.

use engine::{DiskNumber, Layout, SMALLEST_PIECE, TitleKey, TrackLayout, lead_of, piece_size};
use media::Packaging;
use scheduler::{DiskTimings, Lead, TrackPieces};
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::sync::OnceLock;
use units::ByteCount;

/// How a player fetches a title.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum DeliveryFormat {
    /// In segments of one track each (HLS, DASH).
    Segmented,
    /// In segments of a transport stream (HLS), which has the bytes of the tracks' segments.
    TransportStream,
    /// As one progressive MP4 file.
    Progressive,
}

/// The disk and the extents of one copy of a title.
#[derive(Clone, Debug)]
pub(crate) struct CopyLocation {
    pub(crate) disk: DiskNumber,
    pub(crate) read_size: ByteCount,
    /// What coming to a read costs its disk: see [`visit`].
    pub(crate) visit: ByteCount,
    /// Per track, its extents on the device, as byte ranges.
    pub(crate) runs: Vec<Vec<Range<u64>>>,
}

/// The layouts of a title in one format, one for each copy. All have the same pieces, which are as
/// large as every copy allows.
pub(crate) fn layouts(
    title: TitleKey,
    packaging: &Packaging,
    copies: &[CopyLocation],
    format: DeliveryFormat,
) -> Vec<Layout> {
    let cut_track = |number: u16| {
        let of_copy = |copy: &CopyLocation| {
            let runs = &copy.runs[usize::from(number)];
            piece_size(packaging.mean_rate(number), runs, copy.read_size)
        };
        // The copy with the narrowest limits decides: a session may move between copies.
        let piece = copies.iter().map(of_copy).min().expect("a title has a copy");
        match format {
            DeliveryFormat::Segmented | DeliveryFormat::TransportStream => {
                let lead = lead(packaging, number, piece, copies);
                (piece, lead, due_segmented(packaging, number, piece, lead))
            }
            DeliveryFormat::Progressive => {
                (piece, Lead::default(), progressive_due(packaging, number, piece))
            }
        }
    };
    cut_layouts(title, packaging, copies, cut_track)
}

/// The layout of a recording in segments, with pieces of these sizes for its tracks.
pub(crate) fn recording_layout(
    title: TitleKey,
    packaging: &Packaging,
    copy: &CopyLocation,
    pieces: &[u32],
) -> Layout {
    let cut_track = |number: u16| {
        let piece = pieces[usize::from(number)];
        let lead = Lead::default();
        (piece, lead, due_segmented(packaging, number, piece, lead))
    };
    let mut layouts = cut_layouts(title, packaging, std::slice::from_ref(copy), cut_track);
    layouts.pop().expect("one for each copy")
}

/// Layouts whose tracks have these pieces, leads and due times.
fn cut_layouts(
    title: TitleKey,
    packaging: &Packaging,
    copies: &[CopyLocation],
    cut_track: impl Fn(u16) -> (u32, Lead, Vec<u32>),
) -> Vec<Layout> {
    let numbers = (0u16..).take(packaging.index().tracks.len());
    let cut: Vec<(u32, Lead, Vec<u32>)> = numbers.map(cut_track).collect();
    let layout = |copy: &CopyLocation| {
        let cut_tracks = packaging.index().tracks.iter().zip(&cut).zip(&copy.runs);
        let tracks = cut_tracks.map(|((track, (piece, lead, due)), runs)| TrackLayout {
            bytes: track.data_len,
            piece: *piece,
            lead: *lead,
            runs: runs.clone(),
            key_frames_of: None,
            times: OnceLock::new(),
            stored: Vec::new(),
            due: due.clone(),
        });
        let (disk, duration) = (copy.disk, packaging.duration());
        Layout { title, disk, duration, tracks: tracks.collect() }
    };
    copies.iter().map(layout).collect()
}

// Due times of a track's pieces in segments.
fn due_segmented(packaging: &Packaging, track: u16, piece: u32, lead: Lead) -> Vec<u32> {
    let bytes = packaging.index().tracks[usize::from(track)].data_len;
    packaging.due_segmented(track, TrackPieces::of_size(bytes, piece, lead).starts())
}

/// The lead of a track in segments: up to the end of the first segment that ends behind the first
/// piece. Read at once, it is the most media that a player can do with before the next read.
fn lead(packaging: &Packaging, track: u16, piece: u32, copies: &[CopyLocation]) -> Lead {
    // Where the first extent ends with the first piece, the second piece begins there.
    let runs = copies.iter().map(|copy| copy.runs[usize::from(track)].first());
    let inner = runs.flatten().map(|run| run.end - run.start).min().unwrap_or(0);
    lead_of(packaging.segment_ends(track), piece, inner > u64::from(piece))
}

/// Due times of a track's pieces in a progressive file, in milliseconds. Files of different offers
/// interleave a track with different renditions, so its due times differ slightly; the earliest is
/// taken, and one layout serves all offers.
fn progressive_due(packaging: &Packaging, track: u16, piece: u32) -> Vec<u32> {
    let mut offers = packaging.file_offers();
    offers.retain(|tracks| tracks.contains(&track));
    if offers.is_empty() {
        offers.push(vec![track]);
    }
    let dues = offers.iter().map(|tracks| packaging.due_progressive(tracks, track, piece));
    dues.reduce(|a, b| a.into_iter().zip(b).map(|(a, b)| a.min(b)).collect()).unwrap_or_default()
}

/// The bytes that a disk transfers in the time that it takes to come to a read, for reads of at
/// most `read_size`: on `hdd-20tb` 1.4 MB, on `ssd-sata` a few KB. Where nothing is known, half a
/// read: reads are so large that a disk takes most of its time for transfers.
pub(crate) fn visit(timings: &DiskTimings, read_size: ByteCount) -> ByteCount {
    timings.line.map_or(ByteCount(read_size.0 / 2), |line| line.r0.bytes_in(line.t0))
}

// A piece is verified as a whole.
const _: () = assert!(SMALLEST_PIECE == media::CHECKSUM_SPAN);
