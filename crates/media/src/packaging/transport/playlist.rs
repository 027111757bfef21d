//! HLS playlists of transport streams (RFC 8216).
//!
//! ```text
//! master-ts.m3u8   one variant per video track, with the default sound; further sounds of its
//!                  codec as EXT-X-MEDIA
//! N-ts.m3u8        the transport stream that track N leads: N/0.ts, N/1.ts, ...
//! ```
//! Encrypted segments are AES-128 with the key of the track that leads, and their number is the
//! vector. Version 3, the lowest with lengths that are not whole seconds, and 4 with EXT-X-MEDIA:
//! old players refuse versions that they do not know. Sounds of another codec than that of the
//! default one are left out, because a variant would have to declare their codec, too.

use super::plan::Rendition;
use crate::TrackKind;
use crate::packaging::encryption::key_address;
use crate::packaging::playlist::{
    audio_names, characteristics, codec, is_chosen, language_tag, line, list_end,
    picture_attributes, playback_start, write_segments,
};
use crate::packaging::rates::Rates;
use crate::packaging::{Links, Packaging};
use std::fmt::Write;

/// The multivariant playlist for the given video tracks; without video tracks, for the given audio
/// tracks, or for all.
pub(super) fn multivariant(packaging: &Packaging, wanted: &[u16], links: Links<'_>) -> String {
    let has_form = |track: &u16| packaging.rendition(*track).is_some();
    let (heard, shown): (Vec<u16>, Vec<u16>) = wanted
        .iter()
        .filter(|track| has_form(track))
        .partition(|&&track| packaging.description(track).kind == TrackKind::Audio);
    let sounds: Vec<u16> = packaging.audio_tracks().into_iter().filter(has_form).collect();
    let leads = match (shown.is_empty(), heard.is_empty()) {
        (false, _) => shown,
        (true, false) => heard,
        (true, true) => sounds.clone(),
    };
    let group = group(packaging, &leads, sounds);
    let all_independent = leads.iter().all(|&track| packaging.is_independent(track));
    let mut text = head(if group.is_empty() { 3 } else { 4 }, all_independent);
    for (&sound, name) in group.iter().zip(audio_names(packaging, &group)) {
        rendition(&mut text, packaging, &group, sound, &name, links);
    }
    for lead in leads {
        variant(&mut text, packaging, lead, &group, links);
    }
    text
}

/// The sounds between which a viewer of pictures can choose; empty if there is no choice.
fn group(packaging: &Packaging, leads: &[u16], mut sounds: Vec<u16>) -> Vec<u16> {
    let has_pictures =
        leads.iter().any(|&lead| packaging.description(lead).kind == TrackKind::Video);
    let Some(default) = packaging.transport_sound().filter(|_| has_pictures) else {
        return Vec::new();
    };
    sounds.retain(|&sound| {
        packaging.description(sound).codec == packaging.description(default).codec
    });
    if sounds.len() > 1 { sounds } else { Vec::new() }
}

/// The media playlist of the transport stream that a track leads.
pub(super) fn media(packaging: &Packaging, rendition: &Rendition, query: &str) -> String {
    let plan = packaging.transport_plan();
    let number = rendition.tracks[0];
    let mut text = head(3, packaging.is_independent(number));
    playback_start(&mut text, packaging);
    line(&mut text, format_args!("#EXT-X-TARGETDURATION:{}", plan.target_duration));
    line(&mut text, format_args!("#EXT-X-MEDIA-SEQUENCE:0"));
    line(&mut text, format_args!("#EXT-X-PLAYLIST-TYPE:VOD"));
    if let Some(encryption) = packaging.encryption() {
        let key = encryption.key(packaging.description(number).kind);
        // Without an address there are no transport streams.
        if let Some(address) = key_address(key, query.into()) {
            line(&mut text, format_args!("#EXT-X-KEY:METHOD=AES-128,URI=\"{address}\""));
        }
    }
    write_segments(&mut text, rendition.lengths.iter().copied(), |text, k| {
        line(text, format_args!("{number}/{k}.ts{query}"));
    });
    list_end(&mut text, packaging.growth);
    text
}

fn head(version: u32, independent: bool) -> String {
    let mut text = format!("#EXTM3U\n#EXT-X-VERSION:{version}\n");
    if independent {
        text.push_str("#EXT-X-INDEPENDENT-SEGMENTS\n");
    }
    text
}

/// Writes a sound of the group. The one that goes out with the pictures has no address of its own.
fn rendition(
    text: &mut String,
    packaging: &Packaging,
    group: &[u16],
    sound: u16,
    name: &str,
    Links { folder, query, .. }: Links<'_>,
) {
    let track = packaging.description(sound);
    let is_default = Some(sound) == packaging.transport_sound();
    let mut attributes = format!("TYPE=AUDIO,GROUP-ID=\"{GROUP}\",NAME=\"{name}\"");
    if let Some(tag) = language_tag(track) {
        let _ = write!(attributes, ",LANGUAGE=\"{tag}\"");
    }
    let default = if is_default { "YES" } else { "NO" };
    let auto = if is_default || is_chosen(packaging, group, sound) { "YES" } else { "NO" };
    let _ = write!(attributes, ",DEFAULT={default},AUTOSELECT={auto}");
    if let Some(characteristics) = characteristics(track) {
        let _ = write!(attributes, ",CHARACTERISTICS=\"{characteristics}\"");
    }
    if !is_default {
        let _ = write!(attributes, ",URI=\"{folder}{sound}-ts.m3u8{query}\"");
    }
    line(text, format_args!("#EXT-X-MEDIA:{attributes}"));
}

fn variant(
    text: &mut String,
    packaging: &Packaging,
    lead: u16,
    group: &[u16],
    Links { folder, query, .. }: Links<'_>,
) {
    let Some(rendition) = packaging.rendition(lead) else { return };
    let highest = |rate: fn(Rates) -> u64| {
        // A sound that is chosen is fetched beside the one that goes out with the pictures.
        let others = group.iter().filter(|sound| !rendition.tracks.contains(sound));
        let others = others.filter_map(|sound| packaging.rendition(*sound));
        rate(rendition.rates) + others.map(|other| rate(other.rates)).max().unwrap_or(0)
    };
    let codecs: Vec<&str> =
        rendition.tracks.iter().map(|track| codec(packaging.description(*track))).collect();
    let mut attributes = format!(
        "BANDWIDTH={},AVERAGE-BANDWIDTH={},CODECS=\"{}\"",
        highest(|rates| rates.peak),
        highest(|rates| rates.average),
        codecs.join(",")
    );
    let track = packaging.description(lead);
    if track.kind == TrackKind::Video {
        let frame_rate = packaging.track(lead).and_then(|track| track.frame_rate);
        picture_attributes(&mut attributes, track, frame_rate);
        if !group.is_empty() {
            let _ = write!(attributes, ",AUDIO=\"{GROUP}\"");
        }
    }
    line(text, format_args!("#EXT-X-STREAM-INF:{attributes}"));
    line(text, format_args!("{folder}{lead}-ts.m3u8{query}"));
}

const GROUP: &str = "audio";
