//! The pieces of a title and their times, parsed from DASH manifests (ISO/IEC 23009-1, profiles
//! `live`, `on-demand`, `main` and `full` of type `static`).
//!
//! ```text
//!   MPD ─▶ periods ─▶ video, audio: the representation with the most bits per second
//!                        │
//!                        ├─ SegmentTemplate (number, time), SegmentList ──▶ pieces
//!                        └─ SegmentBase ─▶ fetch the index range ─▶ sidx ─▶ pieces
//! ```
//!
//! The first track (the video) can use another representation of the same set, selected by its
//! rank:
//! they are the renditions that a player changes between.
//!
//! The periods of a title form one sequence of pieces for each track; where a period has its own
//! headers, they are fetched before its first piece. Remote parts of a manifest (xlink), live
//! titles and the details of codecs and protection are not supported.

mod manifest;
mod segments;
mod sidx;
mod template;
mod time;

#[cfg(test)]
mod tests;

use super::pathways::Pathways;
use super::session::LANES;
use super::source::{FetchRequest, Init, Piece, TrackSource};
use super::url::Url;
use super::{ClientError, RequestError};
use manifest::Listed;
use player::{Rendition, TrackTimeline};
use std::ops::Range;
use std::time::Duration;

/// The parsed manifest.
#[derive(Clone, Debug)]
pub(crate) struct Manifest {
    url: Url,
    /// The renditions of the first track, in ascending order of their rates.
    renditions: Vec<Rendition>,
    tracks: Vec<Vec<Part>>,
    places: Pathways,
}

/// The pieces of a track in one period.
#[derive(Clone, Debug)]
struct Part {
    init: Option<Piece>,
    pieces: Pieces,
}

#[derive(Clone, Debug)]
enum Pieces {
    Known(Vec<(Piece, Duration)>),
    /// The pieces are in a `sidx` box in this range of the file.
    Indexed {
        reference: Box<str>,
        index: Range<u64>,
    },
}

/// Whether the bytes may be the beginning of a manifest.
pub(crate) fn looks_like_a_manifest(bytes: &[u8]) -> bool {
    let start = bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes).trim_ascii_start();
    start.starts_with(b"<?xml") || start.starts_with(b"<MPD") || start.starts_with(b"<!--")
}

/// Parses a manifest that was fetched from `url`. `rank` selects the rendition of the first track,
/// as an index into [`Manifest::renditions`]; without it the best is used.
pub(crate) fn read_manifest(
    url: &Url,
    bytes: &[u8],
    rank: Option<usize>,
) -> Result<Manifest, ClientError> {
    let read = std::str::from_utf8(bytes)
        .map_err(|_| "it is not UTF-8".to_owned())
        .and_then(|text| manifest::tracks(url, text, rank));
    match read {
        Ok(Listed { renditions, mut tracks, bases, steering }) => {
            tracks.truncate(LANES);
            let places = Pathways::of_bases(&bases, steering);
            Ok(Manifest { url: url.clone(), renditions, tracks, places })
        }
        Err(reason) => Err(not_playable(url, reason)),
    }
}

fn not_playable(url: &Url, reason: String) -> ClientError {
    url.failed(RequestError::NotAManifest(reason))
}

impl Manifest {
    pub(crate) fn tracks(&self) -> usize {
        self.tracks.len()
    }

    /// The renditions of the first track, in ascending order of their rates.
    pub(crate) fn renditions(&self) -> &[Rendition] {
        &self.renditions
    }

    /// The places of the whole title, the preferred one first.
    pub(crate) fn places(&self) -> &Pathways {
        &self.places
    }

    /// The next index of a track that has to be fetched.
    pub(crate) fn wanted(&self, track: usize) -> Result<Option<FetchRequest>, ClientError> {
        let next = self.tracks[track].iter().find_map(|part| match &part.pieces {
            Pieces::Known(_) => None,
            Pieces::Indexed { reference, index } => Some((reference, index)),
        });
        let Some((reference, index)) = next else { return Ok(None) };
        Ok(Some(FetchRequest { url: self.url.join(reference)?, range: Some(index.clone()) }))
    }

    /// Takes the bytes of the index that was fetched.
    pub(crate) fn found(&mut self, track: usize, bytes: &[u8]) -> Result<(), ClientError> {
        let part = self.tracks[track].iter_mut().find_map(|part| match &part.pieces {
            Pieces::Known(_) => None,
            Pieces::Indexed { reference, index } => {
                let (reference, index) = (reference.clone(), index.clone());
                Some((part, reference, index))
            }
        });
        let (part, reference, index) = part.expect("an index that was requested");
        let found = sidx::read(bytes, index.start)
            .map_err(|reason| not_playable(&self.url, format!("{reference}: {reason}")))?;
        let piece = |(range, duration)| {
            let reference = Some(reference.clone());
            (Piece { reference, range: Some(range) }, duration)
        };
        part.pieces = Pieces::Known(found.into_iter().map(piece).collect());
        Ok(())
    }

    /// All periods of each track, once every index was fetched.
    pub(crate) fn sources(self) -> Result<Vec<TrackSource>, ClientError> {
        let Self { url, tracks, .. } = self;
        tracks.into_iter().map(|parts| source(&url, parts)).collect()
    }

    /// All periods of one track, once its indexes were fetched.
    pub(crate) fn source(mut self, track: usize) -> Result<TrackSource, ClientError> {
        source(&self.url, self.tracks.swap_remove(track))
    }
}

fn source(url: &Url, parts: Vec<Part>) -> Result<TrackSource, ClientError> {
    let (mut inits, mut pieces, mut durations) = (Vec::new(), Vec::new(), Vec::new());
    for part in parts {
        inits.extend(part.init.map(|piece| Init { before: pieces.len(), piece }));
        let Pieces::Known(known) = part.pieces else { panic!("every index has been asked for") };
        for (piece, duration) in known {
            pieces.push(piece);
            durations.push(duration);
        }
    }
    if pieces.len() > MOST_PIECES {
        return Err(not_playable(url, format!("it has more than {MOST_PIECES} segments")));
    }
    let timeline = TrackTimeline::from_durations(durations);
    if timeline.duration().is_zero() {
        return Err(not_playable(url, "its segments have no duration".to_owned()));
    }
    Ok(TrackSource { base: url.clone(), inits, pieces, timeline })
}

/// The largest number of segments of a track: more than two days of one-second segments. One line
/// of a timeline can declare a billion.
const MOST_PIECES: usize = 200_000;
