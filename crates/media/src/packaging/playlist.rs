//! HLS playlists (RFC 8216, version 7), written directly because they have few lines.
//!
//! ```text
//! master.m3u8     one variant per video track and audio group; audio tracks as EXT-X-MEDIA;
//!                 the I-frames of the smallest video track of each codec
//! N.m3u8          track N: N/init.mp4, N/0.m4s, N/1.m4s, ...
//! N-iframes.m3u8  its I-frames: N/init.mp4, N/iframe-0.m4s, N/iframe-1.m4s, ...
//! ```
//! Addresses are relative; the caller's query is appended to each. Audio tracks with one codec form
//! one group, because a variant declares the codecs of its whole group.

use super::iframes::IFrames;
use super::rates::Rates;
use super::{Packaging, picture};
use crate::{TrackDescription, TrackKind, language};
use std::fmt::Write;

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
        for (&audio, name) in group.iter().zip(names(packaging, group)) {
            rendition(&mut text, packaging, group, audio, &name, query);
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
    for set in packaging.video_sets(&shown) {
        if let Some((video, iframes)) = packaging.winding(&set) {
            iframe_variant(&mut text, packaging, video, iframes, query);
        }
    }
    text
}

/// The media playlist of an existing track.
pub(super) fn media(packaging: &Packaging, number: u16, query: &str) -> String {
    let mut text = head(packaging.is_independent(number));
    let lengths = packaging.segments(number).lengths();
    list(&mut text, packaging.target_duration, number, "", lengths, query);
    text
}

/// The I-frame playlist of an existing track.
pub(super) fn iframes(iframes: &IFrames, number: u16, query: &str) -> String {
    // Each I-frame is decoded by itself, whatever the segments of its track need.
    let mut text = head(true);
    line(&mut text, format_args!("#EXT-X-I-FRAMES-ONLY"));
    list(&mut text, iframes.target_duration, number, "iframe-", iframes.lengths(), query);
    text
}

/// Writes the segments of a playlist of track `number`: `N/` and `name` and a number each.
fn list(
    text: &mut String,
    target_duration: u64,
    number: u16,
    name: &str,
    lengths: impl Iterator<Item = u64>,
    query: &str,
) {
    line(text, format_args!("#EXT-X-TARGETDURATION:{target_duration}"));
    line(text, format_args!("#EXT-X-MEDIA-SEQUENCE:0"));
    line(text, format_args!("#EXT-X-PLAYLIST-TYPE:VOD"));
    line(text, format_args!("#EXT-X-MAP:URI=\"{number}/init.mp4{query}\""));
    write_segments(text, lengths, |text, k| {
        line(text, format_args!("{number}/{name}{k}.m4s{query}"));
    });
}

/// Writes segments of these lengths in microseconds, and the end of a playlist. `address` writes
/// that of a segment.
pub(super) fn write_segments(
    text: &mut String,
    lengths: impl Iterator<Item = u64>,
    address: impl Fn(&mut String, usize),
) {
    for (k, length) in lengths.enumerate() {
        let (seconds, rest) = (length / 1_000_000, length % 1_000_000);
        line(text, format_args!("#EXTINF:{seconds}.{rest:06},"));
        address(text, k);
    }
    line(text, format_args!("#EXT-X-ENDLIST"));
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

/// Writes an audio track, under a name, as a rendition of its group.
fn rendition(
    text: &mut String,
    packaging: &Packaging,
    group: &[u16],
    audio: u16,
    name: &str,
    query: &str,
) {
    let track = packaging.description(audio);
    let default = packaging.default_audio().filter(|default| group.contains(default));
    let yes = |it: bool| if it { "YES" } else { "NO" };
    // Each group needs a default of its own: a variant offers one group only.
    let is_default = audio == default.unwrap_or(group[0]);
    let mut attributes = format!("TYPE=AUDIO,GROUP-ID=\"{}\",NAME=\"{name}\"", track.codec);
    if let Some(tag) = language_tag(track) {
        let _ = write!(attributes, ",LANGUAGE=\"{tag}\"");
    }
    let _ = write!(attributes, ",DEFAULT={},AUTOSELECT=YES", yes(is_default));
    if track.channels > 0 {
        let _ = write!(attributes, ",CHANNELS=\"{}\"", track.channels);
    }
    line(text, format_args!("#EXT-X-MEDIA:{attributes},URI=\"{audio}.m3u8{query}\""));
}

/// The names of a group's tracks in menus, each once (RFC 8216, 4.3.4.1.1): the track's title, else
/// its language, numbered if it occurs repeatedly.
pub(super) fn names(packaging: &Packaging, group: &[u16]) -> Vec<String> {
    let mut names: Vec<String> = Vec::with_capacity(group.len());
    for &audio in group {
        let label = label(packaging.description(audio));
        let numbered = (2..).map(|number| format!("{label} {number}"));
        let mut possible = std::iter::once(label.clone()).chain(numbered);
        names.extend(possible.find(|name| !names.contains(name)));
    }
    names
}

/// The name of a track in menus; it has no character that quotes must not contain.
fn label(track: &TrackDescription) -> String {
    let quotable = |text: &str| -> String {
        let kept = text.chars().filter(|c| !c.is_control());
        kept.map(|c| if c == '"' { '\'' } else { c }).collect()
    };
    let title = quotable(track.title.trim());
    let spoken = || language::name(&track.language).map(quotable);
    let label = Some(title).filter(|title| !title.is_empty()).or_else(spoken);
    label.unwrap_or_else(|| "Audio".to_owned())
}

/// The language tag, if it is valid in quotes.
pub(super) fn language_tag(track: &TrackDescription) -> Option<&str> {
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
    let highest = |rate: fn(Rates) -> u64| {
        // A player fetches one audio track of the group, so that the largest one counts.
        let heard = members.iter().map(|&member| rate(packaging.rates(member))).max();
        rate(packaging.rates(main)) + heard.unwrap_or(0)
    };
    let mut attributes = format!(
        "BANDWIDTH={},AVERAGE-BANDWIDTH={},CODECS=\"{}",
        highest(|rates| rates.peak),
        highest(|rates| rates.average),
        codec(track)
    );
    if let Some(&member) = members.first() {
        let _ = write!(attributes, ",{}", codec(packaging.description(member)));
    }
    attributes.push('"');
    if track.kind == TrackKind::Video {
        let frame_rate = packaging.track(main).and_then(|track| track.frame_rate);
        picture_attributes(&mut attributes, track, frame_rate);
    }
    if let Some(&member) = members.first() {
        let _ = write!(attributes, ",AUDIO=\"{}\"", packaging.description(member).codec);
    }
    line(text, format_args!("#EXT-X-STREAM-INF:{attributes}"));
    line(text, format_args!("{main}.m3u8{query}"));
}

/// Writes the I-frames of a video track as a variant for winding (RFC 8216, 4.3.4.3).
fn iframe_variant(
    text: &mut String,
    packaging: &Packaging,
    video: u16,
    iframes: &IFrames,
    query: &str,
) {
    let track = packaging.description(video);
    let (peak, average) = (iframes.rates.peak, iframes.rates.average);
    let mut attributes =
        format!("BANDWIDTH={peak},AVERAGE-BANDWIDTH={average},CODECS=\"{}\"", codec(track));
    picture_attributes(&mut attributes, track, None);
    line(
        text,
        format_args!("#EXT-X-I-FRAME-STREAM-INF:{attributes},URI=\"{video}-iframes.m3u8{query}\""),
    );
}

/// Appends what a variant states of its pictures.
pub(super) fn picture_attributes(
    attributes: &mut String,
    track: &TrackDescription,
    frame_rate: Option<u64>,
) {
    if let Some((width, height)) = picture::resolution(track) {
        let _ = write!(attributes, ",RESOLUTION={width}x{height}");
    }
    if let Some(rate) = frame_rate {
        let _ = write!(attributes, ",FRAME-RATE={}.{:03}", rate / 1000, rate % 1000);
    }
    if let Some(range) = picture::video_range(track) {
        let _ = write!(attributes, ",VIDEO-RANGE={range}");
    }
}

/// The codec as players know it. Browsers and GStreamer know Opus by its name in lower case, though
/// its sample entry is `Opus`; all other names are those of the sample entries.
pub(super) fn codec(track: &TrackDescription) -> &str {
    if track.codec == "Opus" { "opus" } else { &track.codec }
}

pub(super) fn line(text: &mut String, what: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = writeln!(text, "{what}");
}
