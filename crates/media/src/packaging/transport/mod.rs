//! HLS with MPEG transport streams (ISO/IEC 13818-1), for players that know no fragmented MP4.
//!
//! Renditions are made from the same stored tracks, with the segments and presentation times of the
//! fragmented MP4, [`ORIGIN`] later on the clock of 90 kHz. A video track goes out together with
//! the default sound; the other sounds of its codec, and those of a title without video, alone.
//!
//! ```text
//!   TrackIndex ─ form ───▶ StreamForm     the stream type, and what is put in front of an LDU
//!              ─ schedule ▶ Unit, Unit..  PES packets and clock times in the order of sending
//!              ─ plan ───▶ Plan           per segment: length, time, continuity counters
//!
//!   segment    PAT | PMT | block | block ...
//!   block      a list of units: its length is known, its bytes are made by a PacketWriter
//! ```
//!
//! The continuity counters of a segment follow from the number of packets before it, so that any
//! segment can be made alone. Codecs without a form in a transport stream are not listed; a title
//! without any picture or sound of such a form is refused with the reason.
//!
//! [`TransportPush`] has the units of the segments one by one, for a sender with its own pace, and
//! [`ConstantRate`] fills the stream up to a rate. A [`FilledPart`] is a part of a file with the
//! packets of that.
//!
//! Not made: lists of I-frames, and repeated tables within a segment (HLS needs them at its start).

mod adts;
mod block;
mod constant_rate;
mod filled;
mod form;
mod plan;
mod playlist;
mod push;
mod schedule;
mod tables;
mod writer;

pub use block::PacketBlock;
pub use constant_rate::ConstantRate;
pub use filled::{FilledPart, FilledWriter};
pub use form::NoTransportForm;
pub use push::{TransportCounters, TransportPush, TransportUnit};
pub use writer::PacketWriter;

pub(super) use form::StreamForm;
pub(super) use plan::Plan;

use super::body::Body;
use super::encryption::ChainedSegment;
use super::{Links, Packaging};
use plan::Rendition;
use std::sync::Arc;
use std::time::Duration;

impl Packaging {
    /// The combinations of tracks that a viewer of transport streams can choose, best first, as
    /// [`Packaging::offers`]. Fails where the title has pictures or sound of which none has a form
    /// in a transport stream.
    pub fn transport_offers(&self) -> Result<Vec<Vec<u16>>, NoTransportForm> {
        let mut sounds = self.with_form(&self.audio_tracks())?;
        let default = self.transport_sound();
        let videos = self.with_form(&self.videos())?;
        if !videos.is_empty() {
            return Ok(videos.iter().map(|&v| [v].into_iter().chain(default).collect()).collect());
        }
        // `false` sorts first: the default track leads.
        sounds.sort_by_key(|&a| (Some(a) != default, std::cmp::Reverse(self.mean_rate(a))));
        Ok(sounds.into_iter().map(|sound| vec![sound]).collect())
    }

    /// Whether the segments of transport streams have been planned.
    pub fn is_transport_planned(&self) -> bool {
        self.transport.get().is_some()
    }

    /// Plans the segments of transport streams, if that has not been done. Takes time in proportion
    /// to the title's LDUs.
    pub fn plan_transport(&self) {
        self.transport_plan();
    }

    /// The HLS multivariant playlist of transport streams for these tracks, as
    /// [`Packaging::multivariant_playlist`].
    pub fn transport_multivariant<'a>(
        &self,
        wanted: &[u16],
        links: impl Into<Links<'a>>,
    ) -> String {
        playlist::multivariant(self, wanted, links.into())
    }

    /// The HLS media playlist of the transport stream that this track leads: a video track with the
    /// default sound, or a sound alone. `None` if the track has no form in a transport stream.
    pub fn transport_playlist(&self, track: u16, query: &str) -> Option<String> {
        Some(playlist::media(self, self.rendition(track)?, query))
    }

    /// The tracks of the transport stream that this track leads.
    pub fn transport_tracks(&self, track: u16) -> Option<Vec<u16>> {
        self.rendition(track).map(|rendition| rendition.tracks.clone())
    }

    /// The duration of a segment of the transport stream that this track leads.
    pub fn transport_segment_duration(&self, track: u16, number: u32) -> Option<Duration> {
        let length = *self.rendition(track)?.lengths.get(usize::try_from(number).ok()?)?;
        Some(Duration::from_micros(length))
    }

    /// A segment of the transport stream that this track leads.
    pub fn transport_segment(&self, track: u16, number: u32) -> Option<Body> {
        let clear = self.rendition(track)?.segment(self, number)?;
        let cipher = self.tracks[usize::from(track)].cipher.as_ref();
        Some(match cipher {
            Some(cipher) => ChainedSegment::body(clear, cipher, number),
            None => clear,
        })
    }

    fn rendition(&self, track: u16) -> Option<&Rendition> {
        self.transport_plan().renditions.get(usize::from(track))?.as_ref()
    }

    fn transport_plan(&self) -> &Plan {
        self.transport.get_or_init(|| Plan::of(self))
    }

    /// The sound that goes out with pictures.
    fn transport_sound(&self) -> Option<u16> {
        let sounds = self.with_form(&self.audio_tracks()).unwrap_or_default();
        let default = sounds.iter().copied().find(|&sound| self.description(sound).default);
        default.or(sounds.first().copied())
    }

    /// The tracks among these that have a form. Fails where there are tracks and none has.
    fn with_form(&self, tracks: &[u16]) -> Result<Vec<u16>, NoTransportForm> {
        let has_form = |track: &&u16| self.form(**track).is_ok();
        let found: Vec<u16> = tracks.iter().filter(has_form).copied().collect();
        // The reason is that of the track that would be played.
        let default = tracks.iter().find(|track| Some(**track) == self.default_audio());
        match default.or(tracks.first()) {
            Some(&track) if found.is_empty() => Err(self.form(track).expect_err("none has one")),
            _ => Ok(found),
        }
    }

    /// The form of an existing track.
    fn form(&self, track: u16) -> Result<&Arc<StreamForm>, NoTransportForm> {
        self.tracks[usize::from(track)].form.as_ref().map_err(Clone::clone)
    }
}

/// Bytes of a packet.
const PACKET: usize = 188;
/// Bytes of a packet behind its header.
const PAYLOAD: usize = 184;
/// Ticks per second of time stamps.
const CLOCK: i64 = 90_000;
/// The time stamp of the title's start: what is decoded before it has room, and it is the value
/// that Apple's tools and WebVTT examples use (10 s).
const ORIGIN: i64 = 10 * CLOCK;
