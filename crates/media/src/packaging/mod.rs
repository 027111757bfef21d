//! Packaging: what a title's bytes look like to a player, computed from the index alone.
//!
//! One stored copy of each track serves HLS with fragmented MP4 and progressive MP4. The same
//! request gives the same bytes, always.

mod body;

pub use body::{Body, Slice};

use crate::TitleIndex;
use std::sync::Arc;
use std::time::Duration;
use units::BitRate;

/// How to package.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackagingOptions {
    /// Segments last at least this long where the key frames allow it.
    pub segment: Duration,
}

impl Default for PackagingOptions {
    fn default() -> Self {
        Self { segment: DEFAULT_SEGMENT }
    }
}

/// Why a title cannot be packaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotPackaged {
    /// A title of opaque bytes has no tracks with times.
    #[error("the title was taken in as a file, not as media")]
    File,
    /// Nothing to play.
    #[error("the title has no playable track")]
    NoTracks,
}

/// A title as players get it. Built once per opened title and shared.
#[derive(Debug)]
pub struct Packaging {
    index: Arc<TitleIndex>,
}

impl Packaging {
    /// Plans segments and bodies. Fails only for what has nothing to play.
    pub fn new(index: Arc<TitleIndex>, options: &PackagingOptions) -> Result<Self, NotPackaged> {
        let _ = options;
        Ok(Self { index })
    }
    /// The index it was built from.
    pub fn index(&self) -> &Arc<TitleIndex> {
        &self.index
    }
    /// How long the title plays.
    pub fn duration(&self) -> Duration {
        todo!()
    }
    /// Sets of tracks a viewer can take, best first: each video track with the default audio
    /// track; of a title without pictures each audio track.
    pub fn offers(&self) -> Vec<Vec<u16>> {
        todo!()
    }
    /// Mean bit rate of a track.
    pub fn mean_rate(&self, track: u16) -> BitRate {
        let _ = track;
        todo!()
    }
    /// The HLS multivariant playlist for these video tracks, with all audio tracks.
    pub fn multivariant_playlist(&self, videos: &[u16], query: &str) -> String {
        let _ = (videos, query);
        todo!()
    }
    /// The HLS media playlist of a track.
    pub fn media_playlist(&self, track: u16, query: &str) -> Option<String> {
        let _ = (track, query);
        todo!()
    }
    /// How many segments a track has.
    pub fn segment_count(&self, track: u16) -> u32 {
        let _ = track;
        todo!()
    }
    /// The initialization segment of a track.
    pub fn init_segment(&self, track: u16) -> Option<Arc<[u8]>> {
        let _ = track;
        todo!()
    }
    /// One media segment: `moof` and `mdat` header, then one stored slice.
    pub fn segment(&self, track: u16, number: u32) -> Option<Body> {
        let _ = (track, number);
        todo!()
    }
    /// The tracks as one MP4 file with the `moov` in front.
    pub fn progressive(&self, tracks: &[u16]) -> Arc<Body> {
        let _ = tracks;
        todo!()
    }
    /// When each piece of `piece` bytes of a track's data is due if played in segments, in ms of
    /// media time.
    pub fn due_segmented(&self, track: u16, piece: u32) -> Vec<u32> {
        let _ = (track, piece);
        todo!()
    }
    /// When each piece of `piece` bytes of a track's data is due if played progressively, in ms
    /// of media time.
    pub fn due_progressive(&self, tracks: &[u16], track: u16, piece: u32) -> Vec<u32> {
        let _ = (tracks, track, piece);
        todo!()
    }
}

/// Long enough that few requests are made, short enough that a player starts soon: what Apple's
/// authoring guide allows (6 s) and most services use (2 to 6 s).
const DEFAULT_SEGMENT: Duration = Duration::from_secs(4);
