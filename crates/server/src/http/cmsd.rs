//! What this server tells players and caches of a piece of media: Common Media Server Data
//! (CTA-5006), in two fields of the response.
//!
//! ```text
//!   CMSD-Static: br=1400,d=4000,ot=v,st=v      the object: bit rate, duration, type
//!   CMSD-Dynamic: "tenuto";mb=1600             the highest rate that is reserved for the player
//! ```
//!
//! A player that heeds `mb` never switches to a rendition for which it would have to be admitted
//! again. Caches get the first field alone.

use super::response::Head;
use crate::layout::DeliveryFormat;
use crate::sessions::PlayerSession;
use media::{Packaging, TrackKind};
use std::fmt;
use std::time::Duration;
use units::BitRate;

/// The fields of one response.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cmsd {
    object: &'static str,
    bit_rate: Option<BitRate>,
    duration: Option<Duration>,
    // Only where the address tells: segments are the same bytes for HLS and DASH.
    format: Option<&'static str>,
    // Only where a session has reserved something.
    reserved: Option<BitRate>,
}

impl Cmsd {
    /// The fields of a media segment.
    pub(super) fn of_segment(packaging: &Packaging, track: u16, number: u32) -> Self {
        Self {
            object: object(packaging, &[track]),
            bit_rate: Some(packaging.mean_rate(track)),
            duration: packaging.segment_duration(track, number),
            format: None,
            reserved: None,
        }
    }

    /// The fields of a segment of a transport stream with these tracks.
    pub(super) fn of_transport(
        packaging: &Packaging,
        tracks: &[u16],
        duration: Option<Duration>,
    ) -> Self {
        Self {
            object: object(packaging, tracks),
            bit_rate: Some(sum(tracks, |track| packaging.mean_rate(track))),
            duration,
            format: Some("h"),
            reserved: None,
        }
    }

    /// The fields of an initialization segment for HLS (`h`) or DASH (`d`).
    pub(super) fn of_init(format: &'static str) -> Self {
        Self { object: "i", bit_rate: None, duration: None, format: Some(format), reserved: None }
    }

    /// The fields of the whole title as a file of these tracks.
    pub(super) fn of_file(packaging: &Packaging, tracks: &[u16]) -> Self {
        Self {
            object: object(packaging, tracks),
            bit_rate: Some(sum(tracks, |track| packaging.mean_rate(track))),
            duration: Some(packaging.file_duration()),
            format: Some("o"),
            reserved: None,
        }
    }

    /// The fields of a track as a file of its segments.
    pub(super) fn of_track_file(packaging: &Packaging, track: u16) -> Self {
        let duration = Some(packaging.duration());
        Self { duration, format: Some("d"), ..Self::of_file(packaging, &[track]) }
    }

    /// With what this session has reserved.
    pub(super) fn reserved_by(self, session: &PlayerSession) -> Self {
        Self { reserved: Some(reserved(session)), ..self }
    }

    /// Adds the fields to a response.
    pub(super) fn add_to(&self, head: &mut Head) {
        head.add("CMSD-Static", self);
        if let Some(reserved) = self.reserved {
            head.add("CMSD-Dynamic", format_args!("\"tenuto\";mb={}", kilobits(reserved)));
        }
    }
}

/// The value of `CMSD-Static`: its keys in alphabetical order. All titles are on demand.
impl fmt::Display for Cmsd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(rate) = self.bit_rate {
            write!(f, "br={},", kilobits(rate))?;
        }
        if let Some(duration) = self.duration {
            write!(f, "d={},", duration.as_millis())?;
        }
        write!(f, "ot={},", self.object)?;
        if let Some(format) = self.format {
            write!(f, "sf={format},")?;
        }
        f.write_str("st=v")
    }
}

fn object(packaging: &Packaging, tracks: &[u16]) -> &'static str {
    let has = |kind: TrackKind| {
        let all = &packaging.index().tracks;
        tracks.iter().any(|&t| all.get(usize::from(t)).is_some_and(|t| t.description.kind == kind))
    };
    match (has(TrackKind::Video), has(TrackKind::Audio)) {
        (true, true) => "av",
        (true, false) => "v",
        (false, true) => "a",
        (false, false) => "o",
    }
}

/// The peak rate of what was admitted, with the largest audio track in place of the default one and
/// with text: at least what manifests say of the rendition, so that no player takes it for a reason
/// to switch down.
fn reserved(session: &PlayerSession) -> BitRate {
    let packaging = &session.presentation.packaging;
    let all = &packaging.index().tracks;
    let is_audio = |track: u16| {
        all.get(usize::from(track)).is_some_and(|t| t.description.kind == TrackKind::Audio)
    };
    let tracks = session.tracks();
    let of_tracks = || sum(tracks, |track| packaging.peak_rate(track));
    if session.format == DeliveryFormat::Progressive {
        return of_tracks();
    }
    let text = packaging.text_rate().0;
    if tracks.iter().all(|&t| is_audio(t)) {
        return BitRate(of_tracks().0 + text);
    }
    let heard = (0..).take(all.len()).filter(|&track| is_audio(track));
    let largest = heard.map(|track| packaging.peak_rate(track).0).max().unwrap_or(0);
    let seen = sum(tracks, |track| match is_audio(track) {
        true => BitRate(0),
        false => packaging.peak_rate(track),
    });
    BitRate(seen.0 + largest + text)
}

fn sum(tracks: &[u16], rate: impl Fn(u16) -> BitRate) -> BitRate {
    BitRate(tracks.iter().map(|&track| rate(track).0).sum())
}

/// Rounded up: a limit that is rounded down would exclude the rendition that it is of.
fn kilobits(rate: BitRate) -> u64 {
    rate.0.div_ceil(1000)
}
