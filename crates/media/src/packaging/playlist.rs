//! HLS playlists (RFC 8216, version 7), written directly because they have few lines.
//!
//! ```text
//! master.m3u8     one variant per video track and audio group; audio tracks as EXT-X-MEDIA;
//!                 the I-frames of the smallest video track of each codec
//! N.m3u8          track N: N/init.mp4, N/0.m4s, N/1.m4s, ...
//! N-iframes.m3u8  its I-frames: N/init.mp4, N/iframe-0.m4s, N/iframe-1.m4s, ...
//! text/N.m3u8     text track N: N/0.vtt, N/1.vtt, ...
//! text/N-imsc.m3u8  the same as IMSC: N/init.mp4, N/0.m4s, N/1.m4s, ...
//! thumbnails.m3u8 the images with thumbnails: thumbnails/0.jpg, ...
//! ```
//! Addresses are relative; the caller's query is appended to each, and the multivariant playlist
//! names the others in the caller's folder. Audio tracks with one codec form
//! one group, because a variant declares the codecs of its whole group.

use super::growing::Growth;
use super::iframes::IFrames;
use super::rates::Rates;
use super::{Links, Packaging, TextForm, encryption, imsc, picture};
use crate::codec::SampleEntry;
use crate::{
    SoundPurposes, TextDescription, Thumbnails, TrackDescription, TrackKind, dolby_vision, language,
};
use std::fmt::Write;
use units::show::iso_seconds;

/// The multivariant playlist for the given video tracks with all audio tracks; without video
/// tracks, for the given audio tracks, or for all.
pub(super) fn multivariant(packaging: &Packaging, wanted: &[u16], links: Links<'_>) -> String {
    let audios = packaging.audio_tracks();
    let groups = group_by_codec(packaging, &audios);
    let (heard, shown): (Vec<u16>, Vec<u16>) = wanted
        .iter()
        .filter(|&&track| packaging.track(track).is_some())
        .partition(|&&track| packaging.description(track).kind == TrackKind::Audio);
    // The tag in this playlist speaks for all media playlists (RFC 8216, 4.3.5.1).
    let mut all = shown.iter().chain(&audios);
    let mut text = head(all.all(|&track| packaging.is_independent(track)));
    if let Some(encryption) = packaging.encryption() {
        encryption::write_hls_session_keys(&mut text, encryption, links);
    }
    if shown.is_empty() {
        text_renditions(&mut text, packaging, links);
        for &audio in if heard.is_empty() { &audios } else { &heard } {
            variant(&mut text, packaging, audio, None, links);
        }
        return text;
    }
    for group in &groups {
        for (&audio, name) in group.iter().zip(audio_names(packaging, group)) {
            rendition(&mut text, packaging, group, audio, &name, links);
        }
    }
    text_renditions(&mut text, packaging, links);
    for &video in &shown {
        if groups.is_empty() {
            variant(&mut text, packaging, video, None, links);
        }
        for group in &groups {
            variant(&mut text, packaging, video, Some(group), links);
        }
    }
    for set in packaging.video_sets(&shown) {
        if let Some((video, iframes)) = packaging.winding(&set) {
            iframe_variant(&mut text, packaging, video, iframes, links);
        }
    }
    if let Some(thumbnails) = packaging.thumbnails() {
        image_variant(&mut text, packaging, thumbnails, links);
    }
    text
}

/// The media playlist of an existing track.
pub(super) fn media(packaging: &Packaging, number: u16, query: &str) -> String {
    let mut text = head(packaging.is_independent(number));
    playback_start(&mut text, packaging);
    let names = SegmentNames { number, before: "", after: "m4s" };
    let lengths = packaging.segments(number).lengths();
    list_head(&mut text, packaging.target_duration, packaging.growth);
    media_init(&mut text, packaging, number, query);
    if packaging.growth == Growth::Complete {
        list(&mut text, &names, lengths, query);
    } else {
        list_with_gaps(&mut text, packaging, &names, query);
    }
    list_end(&mut text, packaging.growth);
    text
}

/// Writes the segments of a title that is, or was, played while it is recorded. One that is longer
/// than the target duration has a pause before its first picture or packet, or behind its last:
/// that is listed as gaps (RFC 8216bis, 4.4.4.7). A player that does not know the tag loads the
/// initialization section again, which changes nothing.
fn list_with_gaps(text: &mut String, packaging: &Packaging, names: &SegmentNames, query: &str) {
    let SegmentNames { number, before, after } = names;
    let entries = entries_with_gaps(packaging, *number);
    let listed = match packaging.growth {
        Growth::Growing { .. } => listed_while_growing(&entries, packaging.target_duration),
        _ => entries.len(),
    };
    for PlaylistEntry { length, segment } in &entries[..listed] {
        match segment {
            Some(k) => {
                extinf(text, *length);
                line(text, format_args!("{number}/{before}{k}.{after}{query}"));
            }
            None => {
                line(text, format_args!("#EXT-X-GAP"));
                extinf(text, *length);
                line(text, format_args!("{number}/init.mp4{query}"));
            }
        }
    }
}

/// A segment of a playlist, or a part of a pause.
struct PlaylistEntry {
    /// In microseconds.
    length: u64,
    /// The number of the segment; `None` of a pause.
    segment: Option<usize>,
}

fn entries_with_gaps(packaging: &Packaging, number: u16) -> Vec<PlaylistEntry> {
    let at_most = packaging.target_duration * 1_000_000;
    let mut entries = Vec::new();
    let gap = |entries: &mut Vec<PlaylistEntry>, mut left: u64| {
        while left > 0 {
            let length = left.min(at_most);
            entries.push(PlaylistEntry { length, segment: None });
            left -= length;
        }
    };
    for (k, length) in packaging.segments(number).lengths().enumerate() {
        // Lengths count rounded to the nearest second (RFC 8216, 4.3.3.1).
        let fits = |length: u64| length < at_most + 500_000;
        let wait = if k == 0 && !fits(length) { packaging.first_shown(number) } else { 0 };
        let wait = wait.min(length);
        let rest = length - wait;
        let listed = if fits(rest) { rest } else { at_most };
        gap(&mut entries, wait);
        entries.push(PlaylistEntry { length: listed, segment: Some(k) });
        gap(&mut entries, rest - listed);
    }
    entries
}

/// The number of entries that are listed while more follow: a pause, and what is behind it, when
/// that is three target durations. Players begin there, before the end (RFC 8216, 6.3.3), and
/// hls.js waits for ever where this is in a gap. Who plays on has the last picture until then.
fn listed_while_growing(entries: &[PlaylistEntry], target_duration: u64) -> usize {
    let behind = 3 * target_duration * 1_000_000;
    let (mut listed, mut length) = (entries.len(), 0_u64);
    for (i, entry) in entries.iter().enumerate().rev() {
        match entry.segment {
            Some(_) => length += entry.length,
            None if length >= behind => break,
            // Before the first segment there is nothing to list.
            None if entries[..i].iter().all(|it| it.segment.is_none()) => break,
            None => (listed, length) = (i, 0),
        }
    }
    listed
}

/// The media playlist of a text track, of segments of these lengths.
pub(super) fn text(
    packaging: &Packaging,
    number: u16,
    form: TextForm,
    lengths: impl Iterator<Item = u64>,
    query: &str,
) -> String {
    let mut text = head(true);
    list_head(&mut text, packaging.target_duration, packaging.growth);
    let after = match form {
        TextForm::WebVtt => "vtt",
        TextForm::Imsc => {
            init(&mut text, number, query);
            "m4s"
        }
    };
    list(&mut text, &SegmentNames { number, before: "", after }, lengths, query);
    list_end(&mut text, packaging.growth);
    text
}

/// The playlist of the I-frames of an existing track.
pub(super) fn iframes(
    packaging: &Packaging,
    iframes: &IFrames,
    number: u16,
    query: &str,
) -> String {
    // Each I-frame is decoded by itself, whatever the segments of its track need.
    let mut text = head(true);
    line(&mut text, format_args!("#EXT-X-I-FRAMES-ONLY"));
    list_head(&mut text, iframes.target_duration, Growth::Complete);
    media_init(&mut text, packaging, number, query);
    let names = SegmentNames { number, before: "iframe-", after: "m4s" };
    list(&mut text, &names, iframes.lengths(), query);
    list_end(&mut text, Growth::Complete);
    text
}

/// The playlist of images with thumbnails, which last this long in microseconds. `tiles`: what each
/// states of its thumbnails.
pub(super) fn images(lengths: impl Iterator<Item = u64>, tiles: &str, query: &str) -> String {
    let lengths: Vec<u64> = lengths.collect();
    let longest = lengths.iter().max().map_or(1, |longest| longest.div_ceil(1_000_000));
    let mut text = head(true);
    list_head(&mut text, longest, Growth::Complete);
    line(&mut text, format_args!("#EXT-X-IMAGES-ONLY"));
    write_segments(&mut text, lengths.into_iter(), |text, k| {
        line(text, format_args!("#EXT-X-TILES:{tiles}"));
        line(text, format_args!("thumbnails/{k}.jpg{query}"));
    });
    list_end(&mut text, Growth::Complete);
    text
}

/// The names of a track's segments: its number, then what is before and after each segment's.
struct SegmentNames {
    number: u16,
    before: &'static str,
    after: &'static str,
}

/// Writes the segments of a playlist.
fn list(text: &mut String, names: &SegmentNames, lengths: impl Iterator<Item = u64>, query: &str) {
    let SegmentNames { number, before, after } = names;
    write_segments(text, lengths, |text, k| {
        line(text, format_args!("{number}/{before}{k}.{after}{query}"));
    });
}

/// Writes where players get the keys and the initialization segment of an existing track.
fn media_init(text: &mut String, packaging: &Packaging, number: u16, query: &str) {
    if let Some(encryption) = packaging.encryption() {
        let kind = packaging.description(number).kind;
        encryption::write_hls_keys(text, encryption, kind, query);
    }
    init(text, number, query);
}

fn init(text: &mut String, number: u16, query: &str) {
    line(text, format_args!("#EXT-X-MAP:URI=\"{number}/init.mp4{query}\""));
}

/// Writes what a playlist states before its segments.
fn list_head(text: &mut String, target_duration: u64, growth: Growth) {
    // Later editions of an EVENT playlist have more lines at the end, and are otherwise the same
    // (RFC 8216, 6.2.1). A recording that has ended stays one for the players that have begun.
    let kind = if growth == Growth::Complete { "VOD" } else { "EVENT" };
    line(text, format_args!("#EXT-X-TARGETDURATION:{target_duration}"));
    line(text, format_args!("#EXT-X-MEDIA-SEQUENCE:0"));
    line(text, format_args!("#EXT-X-PLAYLIST-TYPE:{kind}"));
    // Of the first segment; the others follow without a gap.
    if let Growth::Growing { began } | Growth::Grown { began } = growth {
        line(text, format_args!("#EXT-X-PROGRAM-DATE-TIME:{}", iso_seconds(began)));
    }
}

/// Writes the end of a playlist, unless further segments will follow.
pub(super) fn list_end(text: &mut String, growth: Growth) {
    if !matches!(growth, Growth::Growing { .. }) {
        line(text, format_args!("#EXT-X-ENDLIST"));
    }
}

/// Writes segments of these lengths in microseconds. `address` writes that of a segment.
pub(super) fn write_segments(
    text: &mut String,
    lengths: impl Iterator<Item = u64>,
    address: impl Fn(&mut String, usize),
) {
    for (k, length) in lengths.enumerate() {
        extinf(text, length);
        address(text, k);
    }
}

/// Writes the length of a segment in microseconds.
fn extinf(text: &mut String, length: u64) {
    let (seconds, rest) = (length / 1_000_000, length % 1_000_000);
    line(text, format_args!("#EXTINF:{seconds}.{rest:06},"));
}

fn head(independent: bool) -> String {
    let mut text = String::from("#EXTM3U\n#EXT-X-VERSION:7\n");
    if independent {
        text.push_str("#EXT-X-INDEPENDENT-SEGMENTS\n");
    }
    text
}

/// Writes where playback of a media playlist starts, if that is not at the beginning (RFC 8216,
/// 4.3.5.2). In a multivariant playlist FFmpeg would take the tag for an empty media playlist.
pub(super) fn playback_start(text: &mut String, packaging: &Packaging) {
    let start = packaging.playback_start.since_start();
    if !start.is_zero() {
        // Rounded up: a player that seeks to a moment before a picture shows the one before it.
        let micros = start.as_nanos().div_ceil(1000);
        let (seconds, rest) = (micros / 1_000_000, micros % 1_000_000);
        line(text, format_args!("#EXT-X-START:TIME-OFFSET={seconds}.{rest:06},PRECISE=YES"));
    }
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
    Links { folder, query, .. }: Links<'_>,
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
    let auto = is_default || is_chosen(packaging, group, audio);
    let _ = write!(attributes, ",DEFAULT={},AUTOSELECT={}", yes(is_default), yes(auto));
    if let Some(characteristics) = characteristics(track) {
        let _ = write!(attributes, ",CHARACTERISTICS=\"{characteristics}\"");
    }
    if track.channels > 0 {
        let _ = write!(attributes, ",CHANNELS=\"{}\"", track.channels);
    }
    line(text, format_args!("#EXT-X-MEDIA:{attributes},URI=\"{folder}{audio}.m3u8{query}\""));
}

/// Whether a player may choose a sound of a group by its viewer's language and needs: the default
/// one or the first of each language and purpose (4.3.4.1.1), and no commentary.
pub(super) fn is_chosen(packaging: &Packaging, group: &[u16], audio: u16) -> bool {
    let kind = |audio: u16| {
        let track = packaging.description(audio);
        (language::tag(&track.language), track.purposes)
    };
    let default = packaging.default_audio().filter(|default| group.contains(default));
    let mut candidates = default.into_iter().chain(group.iter().copied());
    let is_first = candidates.find(|&it| kind(it) == kind(audio)) == Some(audio);
    is_first && !packaging.description(audio).purposes.comment
}

/// The value of `CHARACTERISTICS` of a sound; `None` of one for every viewer.
pub(super) fn characteristics(track: &TrackDescription) -> Option<&'static str> {
    let SoundPurposes { visual_impaired, hearing_impaired, .. } = track.purposes;
    match (visual_impaired, hearing_impaired) {
        (true, true) => Some(
            "public.accessibility.describes-video,\
             public.accessibility.enhances-speech-intelligibility",
        ),
        (true, false) => Some("public.accessibility.describes-video"),
        (false, true) => Some("public.accessibility.enhances-speech-intelligibility"),
        (false, false) => None,
    }
}

/// Writes the text tracks as renditions of one group.
fn text_renditions(text: &mut String, packaging: &Packaging, links: Links<'_>) {
    let Links { folder, query, text: form, .. } = links;
    let named = if form == TextForm::Imsc { "-imsc" } else { "" };
    let default = packaging.texts().find(|(_, track)| track.default && !track.forced);
    let default = default.map(|(number, _)| number);
    // Of tracks between which a player cannot choose it takes the default one or the first
    // (4.3.4.1.1).
    let kind =
        |track: &TextDescription| (track.language.clone(), track.forced, track.hearing_impaired);
    let mut chosen: Vec<_> = packaging.texts().filter(|(n, _)| Some(*n) == default).collect();
    chosen.extend(packaging.texts().filter(|(n, _)| Some(*n) != default));
    let first = |number: u16, track: &TextDescription| {
        chosen.iter().find(|(_, it)| kind(it) == kind(track)).is_some_and(|(n, _)| *n == number)
    };
    let yes = |it: bool| if it { "YES" } else { "NO" };
    let labels = packaging.texts().map(|(_, track)| text_label(track));
    for ((number, track), name) in packaging.texts().zip(names(labels)) {
        let mut attributes = format!("TYPE=SUBTITLES,GROUP-ID=\"{TEXT}\",NAME=\"{name}\"");
        if let Some(tag) = quotable_tag(&track.language) {
            let _ = write!(attributes, ",LANGUAGE=\"{tag}\"");
        }
        let (default, auto) = (yes(Some(number) == default), yes(first(number, track)));
        let forced = yes(track.forced);
        let _ = write!(attributes, ",DEFAULT={default},AUTOSELECT={auto},FORCED={forced}");
        if track.hearing_impaired {
            let _ = write!(attributes, ",CHARACTERISTICS=\"{FOR_THE_DEAF}\"");
        }
        let uri = format_args!("{folder}text/{number}{named}.m3u8{query}");
        line(text, format_args!("#EXT-X-MEDIA:{attributes},URI=\"{uri}\""));
    }
}

/// The names of sound tracks of one group in menus.
pub(super) fn audio_names(packaging: &Packaging, group: &[u16]) -> Vec<String> {
    names(group.iter().map(|&audio| label(packaging.description(audio))))
}

/// The names of a group's tracks in menus, each once (RFC 8216, 4.3.4.1.1): numbered if a label
/// occurs repeatedly.
fn names(labels: impl Iterator<Item = String>) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for label in labels {
        let numbered = (2..).map(|number| format!("{label} {number}"));
        let mut possible = std::iter::once(label.clone()).chain(numbered);
        names.extend(possible.find(|name| !names.contains(name)));
    }
    names
}

/// The name of a sound track in menus: its title, else its language and what it is for.
fn label(track: &TrackDescription) -> String {
    let named = || {
        let name = language::name(&track.language).and_then(quotable);
        let what = match track.purposes {
            SoundPurposes { comment: true, .. } => " (commentary)",
            SoundPurposes { visual_impaired: true, .. } => " (audio description)",
            SoundPurposes { hearing_impaired: true, .. } => " (clear speech)",
            _ => "",
        };
        name.unwrap_or_else(|| "Audio".to_owned()) + what
    };
    quotable(&track.title).unwrap_or_else(named)
}

/// The name of a text track in menus: its title, else its language and what it is for.
pub(super) fn text_label(track: &TextDescription) -> String {
    let named = || {
        let name = language::name(&track.language).and_then(quotable);
        let name = name.unwrap_or_else(|| "Subtitles".to_owned());
        let what = match (track.forced, track.hearing_impaired) {
            (true, _) => " (forced)",
            (false, true) => " (SDH)",
            (false, false) => "",
        };
        name + what
    };
    quotable(&track.title).unwrap_or_else(named)
}

/// Text without characters that quotes must not contain; `None` if nothing is left.
fn quotable(text: &str) -> Option<String> {
    let kept = text.trim().chars().filter(|c| !c.is_control());
    let kept: String = kept.map(|c| if c == '"' { '\'' } else { c }).collect();
    Some(kept).filter(|kept| !kept.is_empty())
}

/// The language tag of a track, if it is valid in quotes.
pub(super) fn language_tag(track: &TrackDescription) -> Option<&str> {
    quotable_tag(&track.language)
}

/// The tag of a language, if it is valid in quotes.
pub(super) fn quotable_tag(language: &str) -> Option<&str> {
    language::tag(language).filter(|tag| tag.chars().all(|c| c.is_ascii_alphanumeric() || c == '-'))
}

fn variant(
    text: &mut String,
    packaging: &Packaging,
    main: u16,
    group: Option<&Vec<u16>>,
    Links { folder, query, text: form, .. }: Links<'_>,
) {
    let track = packaging.description(main);
    let members = group.map_or(&[][..], Vec::as_slice);
    let highest = |rate: fn(&Rates) -> u64| {
        // A player fetches one audio track of the group and one text track, so that the largest
        // ones count.
        let heard = members.iter().map(|&member| rate(&packaging.rates(member))).max();
        let text = packaging.highest_text_rate(form, rate);
        rate(&packaging.rates(main)) + heard.unwrap_or(0) + text
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
    if form == TextForm::Imsc && packaging.texts().next().is_some() {
        let _ = write!(attributes, ",{}", imsc::CODEC);
    }
    attributes.push('"');
    if track.kind == TrackKind::Video {
        let frame_rate = packaging.track(main).and_then(|track| track.frame_rate);
        picture_attributes(&mut attributes, track, frame_rate);
        supplemental_codec(&mut attributes, track);
    }
    if let Some(&member) = members.first() {
        let _ = write!(attributes, ",AUDIO=\"{}\"", packaging.description(member).codec);
    }
    if packaging.texts().next().is_some() {
        let _ = write!(attributes, ",SUBTITLES=\"{TEXT}\"");
    }
    line(text, format_args!("#EXT-X-STREAM-INF:{attributes}"));
    line(text, format_args!("{folder}{main}.m3u8{query}"));
}

/// Writes the I-frames of a video track as a variant for winding (RFC 8216, 4.3.4.3).
fn iframe_variant(
    text: &mut String,
    packaging: &Packaging,
    video: u16,
    iframes: &IFrames,
    Links { folder, query, .. }: Links<'_>,
) {
    let track = packaging.description(video);
    let (peak, average) = (iframes.rates.peak, iframes.rates.average);
    let mut attributes =
        format!("BANDWIDTH={peak},AVERAGE-BANDWIDTH={average},CODECS=\"{}\"", codec(track));
    picture_attributes(&mut attributes, track, None);
    supplemental_codec(&mut attributes, track);
    let uri = format_args!("{folder}{video}-iframes.m3u8{query}");
    line(text, format_args!("#EXT-X-I-FRAME-STREAM-INF:{attributes},URI=\"{uri}\""));
}

/// Writes the images with thumbnails as a variant, which only players that know it take.
fn image_variant(
    text: &mut String,
    packaging: &Packaging,
    thumbnails: &Thumbnails,
    Links { folder, query, .. }: Links<'_>,
) {
    let (width, height) = thumbnails.size();
    line(
        text,
        format_args!(
            "#EXT-X-IMAGE-STREAM-INF:BANDWIDTH={},RESOLUTION={width}x{height},CODECS=\"jpeg\",\
             URI=\"{folder}thumbnails.m3u8{query}\"",
            packaging.thumbnail_rate(thumbnails)
        ),
    );
}

/// Appends what a variant states of its pictures.
pub(super) fn picture_attributes(
    attributes: &mut String,
    track: &TrackDescription,
    frame_rate: Option<u64>,
) {
    if let Some((width, height)) = track.resolution() {
        let _ = write!(attributes, ",RESOLUTION={width}x{height}");
    }
    if let Some(rate) = frame_rate {
        let _ = write!(attributes, ",FRAME-RATE={}.{:03}", rate / 1000, rate % 1000);
    }
    if let Some(range) = picture::video_range(track) {
        let _ = write!(attributes, ",VIDEO-RANGE={range}");
    }
}

/// Appends the codec that adds to the base layer of a variant's pictures, if there is one.
fn supplemental_codec(attributes: &mut String, track: &TrackDescription) {
    let found = dolby_vision::supplemental_codec(SampleEntry(&track.sample_entry));
    if let Some((codec, brand)) = found {
        let _ = write!(attributes, ",SUPPLEMENTAL-CODECS=\"{codec}/{brand}\"");
    }
}

/// The codec as players know it. Browsers and GStreamer know Opus by its name in lower case, though
/// its sample entry is `Opus`; all other names are those of the sample entries.
pub(super) fn codec(track: &TrackDescription) -> &str {
    if track.codec == "Opus" { "opus" } else { &track.codec }
}

/// The group of all text tracks.
const TEXT: &str = "text";
/// Subtitles for viewers who do not hear (HLS authoring specification for Apple devices, 5.6).
const FOR_THE_DEAF: &str = "public.accessibility.transcribes-spoken-dialog,\
                            public.accessibility.describes-music-and-sound";

pub(super) fn line(text: &mut String, what: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = writeln!(text, "{what}");
}
