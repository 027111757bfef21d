//! HLS playlists (RFC 8216, version 7), written directly because they have few lines.
//!
//! ```text
//! master.m3u8   one variant per video track and audio group; audio tracks as EXT-X-MEDIA
//! N.m3u8        track N: N/init.mp4, N/0.m4s, N/1.m4s, ...
//! ```
//! Addresses are relative; the caller's query is appended to each. Audio tracks with one codec form
//! one group, because a variant declares the codecs of its whole group.

use super::Packaging;
use crate::{TrackDescription, TrackKind, language};
use std::fmt::Write;
use units::MediaTime;

/// The multivariant playlist for the given video tracks with all audio tracks; without video
/// tracks, for the given audio tracks, or for all.
pub(super) fn multivariant(packaging: &Packaging, wanted: &[u16], query: &str) -> String {
    let audios = packaging.audio_tracks();
    let groups = group_by_codec(packaging, &audios);
    let (heard, shown): (Vec<u16>, Vec<u16>) = wanted
        .iter()
        .filter(|&&track| packaging.track(track).is_some())
        .partition(|&&track| packaging.description(track).kind == TrackKind::Audio);
    // The tag in this playlist speaks for all media playlists (RFC 8216, 4.3.5.1).
    let mut all = shown.iter().chain(&audios);
    let mut text = head(all.all(|&track| packaging.is_independent(track)));
    if shown.is_empty() {
        for &audio in if heard.is_empty() { &audios } else { &heard } {
            variant(&mut text, packaging, audio, None, query);
        }
        return text;
    }
    for group in &groups {
        for &audio in group {
            rendition(&mut text, packaging, group, audio, query);
        }
    }
    for &video in &shown {
        if groups.is_empty() {
            variant(&mut text, packaging, video, None, query);
        }
        for group in &groups {
            variant(&mut text, packaging, video, Some(group), query);
        }
    }
    text
}

/// The media playlist of an existing track.
pub(super) fn media(packaging: &Packaging, number: u16, query: &str) -> String {
    let segments = packaging.segments(number);
    let lengths = (0..segments.count())
        .map(|k| micros(segments.time(k).end) - micros(segments.time(k).start));
    let longest = lengths.clone().max().unwrap_or(0);
    let mut text = head(packaging.is_independent(number));
    // Whole seconds, rounded up: no segment may be longer than its target (RFC 8216, 4.3.3.1).
    line(&mut text, format_args!("#EXT-X-TARGETDURATION:{}", longest.div_ceil(1_000_000).max(1)));
    line(&mut text, format_args!("#EXT-X-MEDIA-SEQUENCE:0"));
    line(&mut text, format_args!("#EXT-X-PLAYLIST-TYPE:VOD"));
    line(&mut text, format_args!("#EXT-X-MAP:URI=\"{number}/init.mp4{query}\""));
    for (k, length) in lengths.enumerate() {
        let (seconds, rest) = (length / 1_000_000, length % 1_000_000);
        line(&mut text, format_args!("#EXTINF:{seconds}.{rest:06},"));
        line(&mut text, format_args!("{number}/{k}.m4s{query}"));
    }
    line(&mut text, format_args!("#EXT-X-ENDLIST"));
    text
}

fn head(independent: bool) -> String {
    let mut text = String::from("#EXTM3U\n#EXT-X-VERSION:7\n");
    if independent {
        text.push_str("#EXT-X-INDEPENDENT-SEGMENTS\n");
    }
    text
}

/// The audio tracks by codec: the default track's group first, tracks in their order.
fn group_by_codec(packaging: &Packaging, audios: &[u16]) -> Vec<Vec<u16>> {
    let codec = |track: u16| &packaging.description(track).codec;
    let mut groups: Vec<Vec<u16>> = Vec::new();
    let default = packaging.default_audio();
    for &audio in default.iter().chain(audios.iter().filter(|&&a| Some(a) != default)) {
        match groups.iter_mut().find(|group| codec(group[0]) == codec(audio)) {
            Some(group) => group.push(audio),
            None => groups.push(vec![audio]),
        }
    }
    groups.iter_mut().for_each(|group| group.sort_unstable());
    groups
}

/// Writes an audio track as a rendition of its group.
fn rendition(text: &mut String, packaging: &Packaging, group: &[u16], audio: u16, query: &str) {
    let track = packaging.description(audio);
    let default = packaging.default_audio().filter(|default| group.contains(default));
    let yes = |it: bool| if it { "YES" } else { "NO" };
    // Each group needs a default of its own: a variant offers one group only.
    let is_default = audio == default.unwrap_or(group[0]);
    let mut attributes = format!(
        "TYPE=AUDIO,GROUP-ID=\"{}\",NAME=\"{}\"",
        track.codec,
        name(packaging, group, audio)
    );
    if let Some(tag) = language_tag(track) {
        let _ = write!(attributes, ",LANGUAGE=\"{tag}\"");
    }
    let _ = write!(attributes, ",DEFAULT={},AUTOSELECT=YES", yes(is_default));
    if track.channels > 0 {
        let _ = write!(attributes, ",CHANNELS=\"{}\"", track.channels);
    }
    line(text, format_args!("#EXT-X-MEDIA:{attributes},URI=\"{audio}.m3u8{query}\""));
}

/// The name in menus, unique in the group: the language, numbered if it occurs repeatedly.
fn name(packaging: &Packaging, group: &[u16], audio: u16) -> String {
    let label = |track: u16| {
        let track = packaging.description(track);
        language_tag(track).map_or("Audio".to_owned(), |_| track.language.clone())
    };
    let mine = label(audio);
    let earlier = group.iter().filter(|&&other| other < audio && label(other) == mine).count();
    if earlier == 0 { mine } else { format!("{mine} {}", earlier + 1) }
}

/// The language tag, if it is valid in quotes.
fn language_tag(track: &TrackDescription) -> Option<&str> {
    language::tag(&track.language)
        .filter(|tag| tag.chars().all(|c| c.is_ascii_alphanumeric() || c == '-'))
}

fn variant(
    text: &mut String,
    packaging: &Packaging,
    main: u16,
    group: Option<&Vec<u16>>,
    query: &str,
) {
    let track = packaging.description(main);
    let members = group.map_or(&[][..], Vec::as_slice);
    let highest = |rate: fn(&Packaging, u16) -> u64| {
        // A player fetches one audio track of the group, so that the largest one counts.
        rate(packaging, main) + members.iter().map(|&m| rate(packaging, m)).max().unwrap_or(0)
    };
    let mut attributes = format!(
        "BANDWIDTH={},AVERAGE-BANDWIDTH={},CODECS=\"{}",
        highest(Packaging::peak_rate),
        highest(|packaging, track| packaging.mean_rate(track).0),
        track.codec
    );
    if let Some(&member) = members.first() {
        let _ = write!(attributes, ",{}", packaging.description(member).codec);
    }
    attributes.push('"');
    if track.width > 0 && track.height > 0 {
        let _ = write!(attributes, ",RESOLUTION={}", resolution(track));
    }
    if let Some(rate) = packaging.frame_rate(main) {
        let _ = write!(attributes, ",FRAME-RATE={}.{:03}", rate / 1000, rate % 1000);
    }
    if let Some(&member) = members.first() {
        let _ = write!(attributes, ",AUDIO=\"{}\"", packaging.description(member).codec);
    }
    line(text, format_args!("#EXT-X-STREAM-INF:{attributes}"));
    line(text, format_args!("{main}.m3u8{query}"));
}

/// The size as shown: rotated where the track header rotates it by a right angle.
fn resolution(track: &TrackDescription) -> String {
    let turned = track.matrix[0] == 0 && track.matrix[4] == 0 && track.matrix[1] != 0;
    let (width, height) =
        if turned { (track.height, track.width) } else { (track.width, track.height) };
    format!("{width}x{height}")
}

/// Microseconds, rounded at each boundary, so that the lengths add up to the title's.
fn micros(time: MediaTime) -> u64 {
    u64::try_from(time.0).unwrap_or(0).saturating_add(500) / 1000
}

fn line(text: &mut String, what: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = writeln!(text, "{what}");
}
