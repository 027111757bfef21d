//! The streams of a title that go out over RTSP: what is described, and what can be set up.
//! Sessions and sockets are not known here.

use crate::access::Permit;
use crate::layout::DeliveryFormat;
use crate::library::OpenTitle;
use media::TrackKind;
use media::rtp::PayloadFormat;
use rtsp_message::RtspReply;
use rtsp_message::headers::{Profile, StreamName};

/// A stream of a title that can be set up.
pub(crate) struct OfferedStream {
    /// The track, or the one that leads the transport stream.
    pub(super) track: u16,
    pub(super) kind: TrackKind,
    pub(super) format: PayloadFormat,
    /// The tracks of a transport stream; empty for a track alone.
    pub(super) multiplexed: Vec<u16>,
}

impl OfferedStream {
    /// The tracks that it is made of.
    pub(crate) fn tracks(&self) -> &[u16] {
        match self.multiplexed.as_slice() {
            [] => std::slice::from_ref(&self.track),
            tracks => tracks,
        }
    }

    pub(super) fn name(&self) -> StreamName {
        match self.multiplexed.as_slice() {
            [] => StreamName::Track(self.track),
            _ => StreamName::Transport,
        }
    }
}

/// The streams that a title is described with; of the name of a transport stream that one.
pub(crate) fn described(
    title: &OpenTitle,
    name: Option<StreamName>,
    permit: &Permit,
) -> Result<Vec<OfferedStream>, RtspReply> {
    let streams = match name {
        Some(StreamName::Transport) => vec![transport_stream(title, permit)?],
        _ => sections(title, permit)?,
    };
    if streams.is_empty() {
        let text = "no track of this title has a codec that goes over RTP here; use HLS or MP4";
        return Err(RtspReply::error(415, text));
    }
    Ok(streams)
}

/// The tracks that are described: the best offer, as far as its codecs have payload formats.
fn sections(title: &OpenTitle, permit: &Permit) -> Result<Vec<OfferedStream>, RtspReply> {
    let mut best = Vec::new();
    for offer in permitted(title, DeliveryFormat::Segmented, permit)? {
        let tracks: Vec<_> = offer.iter().filter_map(|track| single_track(title, *track)).collect();
        if tracks.len() > best.len() {
            best = tracks;
        }
    }
    Ok(best)
}

/// The offers that a token permits, best first.
fn permitted<'a>(
    title: &'a OpenTitle,
    format: DeliveryFormat,
    permit: &Permit,
) -> Result<&'a [Vec<u16>], RtspReply> {
    let best = title.whole.best_offer(format, permit);
    best.map(|best| &title.whole.offers(format)[best..]).ok_or_else(not_permitted)
}

fn not_permitted() -> RtspReply {
    RtspReply::error(403, "this viewer may play lower pictures than these")
}

/// A track in packets of its own, if its codec has a payload format.
fn single_track(title: &OpenTitle, track: u16) -> Option<OfferedStream> {
    let description = &title.whole.packaging.index().tracks.get(usize::from(track))?.description;
    let dynamic = FIRST_DYNAMIC + u8::try_from(track % DYNAMIC_TYPES).unwrap_or(0);
    let format = PayloadFormat::of(description, dynamic)?;
    Some(OfferedStream { track, kind: description.kind, format, multiplexed: Vec::new() })
}

/// The best pictures and the default sound of a title in a transport stream.
fn transport_stream(title: &OpenTitle, permit: &Permit) -> Result<OfferedStream, RtspReply> {
    let offers = title.whole.packaging.transport_offers();
    offers.map_err(|why| RtspReply::error(415, &why.to_string()))?;
    let offers = permitted(title, DeliveryFormat::TransportStream, permit)?;
    let tracks = offers.first().cloned().unwrap_or_default();
    let Some(&track) = tracks.first() else { return Err(no_resource()) };
    let format = PayloadFormat::transport_stream();
    Ok(OfferedStream { track, kind: TrackKind::Video, format, multiplexed: tracks })
}

/// The stream that a SETUP names, by its address or by the profile of its transport.
pub(super) fn stream_to_set_up(
    title: &OpenTitle,
    name: Option<StreamName>,
    profile: Profile,
    permit: &Permit,
) -> Result<OfferedStream, RtspReply> {
    match name {
        Some(StreamName::Track(track)) if !title.whole.permits(permit, track) => {
            Err(not_permitted())
        }
        Some(StreamName::Track(_)) if profile != Profile::Rtp => {
            let text = "a track goes in RTP/AVP; the transport stream is at /t/TITLE/ts";
            Err(RtspReply::error(461, text))
        }
        Some(StreamName::Track(track)) => single_track(title, track)
            .ok_or_else(|| RtspReply::error(404, "there is no such track; DESCRIBE lists them")),
        Some(StreamName::Transport) => transport_stream(title, permit),
        None if profile != Profile::Rtp => transport_stream(title, permit),
        None => {
            let mut tracks = sections(title, permit)?;
            match (tracks.pop(), tracks.is_empty()) {
                (Some(track), true) => Ok(track),
                _ => Err(RtspReply::error(459, "set up each track by its own address")),
            }
        }
    }
}

pub(super) fn no_resource() -> RtspReply {
    RtspReply::error(404, "titles are at rtsp://HOST:PORT/t/TITLE")
}

/// The payload types without a static meaning.
const FIRST_DYNAMIC: u8 = 96;
const DYNAMIC_TYPES: u16 = 32;
