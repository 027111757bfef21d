//! The rules of RFC 8216 for the HLS of one title, checked from outside: on the playlists as an
//! independent parser reads them, and on the bytes that they name.
//!
//! It knows nothing of how playlists are made, and decodes no picture.

use crate::fragments::{Fragments, Sample};
use m3u8_rs::{
    AlternativeMedia, AlternativeMediaType, MasterPlaylist, MediaPlaylist, MediaPlaylistType,
    VariantStream,
};
use std::collections::{BTreeMap, BTreeSet};

/// A track whose playlist and segments have been checked.
#[derive(Clone, Debug)]
pub struct CheckedTrack {
    /// The URI of its media playlist, as the multivariant playlist states it.
    pub uri: String,
    /// The track's part of the `CODECS` attribute.
    pub codec: String,
    /// Whether it has pictures.
    pub video: bool,
}

/// A media playlist with the sizes and the content of its segments.
struct PlaylistTrack {
    uri: String,
    playlist: MediaPlaylist,
    sizes: Vec<usize>,
    segments: Vec<Vec<Sample>>,
    timescale: f64,
    video: bool,
}

/// Checks the HLS of a title. `fetch` returns the bytes of a URI as it stands in a playlist; all
/// URIs are relative to the multivariant playlist's. Panics with the violated rule.
pub fn check(
    title: &str,
    multivariant: &str,
    fetch: &mut dyn FnMut(&str) -> Vec<u8>,
) -> Vec<CheckedTrack> {
    let master: MasterPlaylist = m3u8_rs::parse_master_playlist_res(multivariant.as_bytes())
        .unwrap_or_else(|error| panic!("{title}: not a multivariant playlist: {error}"));
    check_version(title, multivariant, master.version);
    check_renditions(title, &master.alternatives);
    let mut tracks: BTreeMap<String, PlaylistTrack> = BTreeMap::new();
    let (winding, variants): (Vec<_>, Vec<_>) =
        master.variants.iter().partition(|variant| variant.is_i_frame);
    let uris = variants.iter().map(|variant| variant.uri.clone());
    let (texts, sounds): (Vec<&AlternativeMedia>, Vec<&AlternativeMedia>) =
        master.alternatives.iter().partition(|it| it.media_type == AlternativeMediaType::Subtitles);
    let renditions = sounds.iter().filter_map(|rendition| rendition.uri.clone());
    for uri in uris.chain(renditions) {
        tracks.entry(uri.clone()).or_insert_with(|| load(title, uri, fetch));
    }
    assert!(!tracks.is_empty(), "{title}: 4.3.4.2: a multivariant playlist has variants");
    for track in tracks.values() {
        check_media(&format!("{title}, {}", track.uri), track, master.independent_segments);
    }
    let texts: Vec<PlaylistTrack> =
        texts.into_iter().map(|text| load_text(title, text, fetch)).collect();
    check_equal_content(title, &variants, &tracks, &texts);
    let mut codecs: BTreeMap<String, String> = BTreeMap::new();
    for variant in variants {
        check_variant(title, variant, &master, &tracks, &texts, &mut codecs);
    }
    for variant in winding {
        let iframes = load(title, variant.uri.clone(), fetch);
        check_iframes(&format!("{title}, {}", variant.uri), variant, &iframes, &tracks);
    }
    let longest = tracks.values().map(length).fold(0.0, f64::max);
    for line in multivariant.lines() {
        if let Some(attributes) = line.strip_prefix("#EXT-X-IMAGE-STREAM-INF:") {
            check_images(title, attributes, longest, fetch);
        }
    }
    let checked = |track: PlaylistTrack| CheckedTrack {
        codec: codecs.remove(&track.uri).expect("each track is in a variant"),
        uri: track.uri,
        video: track.video,
    };
    tracks.into_values().map(checked).collect()
}

fn check_version(what: &str, text: &str, version: Option<usize>) {
    assert!(text.starts_with("#EXTM3U\n"), "{what}: 4.3.1.1: the first line is EXTM3U");
    // EXT-X-MAP in a playlist that is not of I-frames alone needs version 6 (7).
    assert!(version.is_some_and(|it| (6..=7).contains(&it)), "{what}: 7: version {version:?}");
}

fn load(title: &str, uri: String, fetch: &mut dyn FnMut(&str) -> Vec<u8>) -> PlaylistTrack {
    let what = format!("{title}, {uri}");
    let text = String::from_utf8(fetch(&uri)).expect("a playlist is UTF-8");
    let playlist: MediaPlaylist = m3u8_rs::parse_media_playlist_res(text.as_bytes())
        .unwrap_or_else(|error| panic!("{what}: not a media playlist: {error}"));
    check_version(&what, &text, playlist.version);
    let map = playlist.segments.first().and_then(|segment| segment.map.as_ref());
    let init = fetch(&map.unwrap_or_else(|| panic!("{what}: 4.3.2.5: no EXT-X-MAP")).uri);
    let fragments = Fragments::of(&init).unwrap_or_else(|| panic!("{what}: no track in its init"));
    let (mut sizes, mut segments) = (Vec::new(), Vec::new());
    for (number, segment) in playlist.segments.iter().enumerate() {
        let bytes = fetch(&segment.uri);
        sizes.push(bytes.len());
        let samples = fragments.samples(&bytes);
        assert!(!samples.is_empty(), "{what}: segment {number} has no sample");
        segments.push(samples);
    }
    let (timescale, video) = (f64::from(fragments.timescale), fragments.video);
    PlaylistTrack { uri, playlist, sizes, segments, timescale, video }
}

/// 3.5: the playlist of a text track, whose segments have the cues of the whole track.
fn load_text(
    title: &str,
    rendition: &AlternativeMedia,
    fetch: &mut dyn FnMut(&str) -> Vec<u8>,
) -> PlaylistTrack {
    let uri = rendition.uri.clone().expect("a rendition of subtitles has a URI");
    let what = format!("{title}, {uri}");
    let text = String::from_utf8(fetch(&uri)).expect("a playlist is UTF-8");
    let playlist: MediaPlaylist = m3u8_rs::parse_media_playlist_res(text.as_bytes())
        .unwrap_or_else(|error| panic!("{what}: not a media playlist: {error}"));
    check_version(&what, &text, playlist.version);
    assert!(playlist.end_list, "{what}: 4.3.3.4: a complete playlist has EXT-X-ENDLIST");
    assert_eq!(playlist.playlist_type, Some(MediaPlaylistType::Vod), "{what}: 4.3.3.5");
    let imsc = uri.strip_suffix("-imsc.m3u8");
    let whole = imsc.map_or_else(|| uri.replacen(".m3u8", ".vtt", 1), |it| format!("{it}.ttml"));
    let whole = fetch(&whole);
    let all = match imsc {
        Some(_) => crate::ttml::parse(&whole),
        None => crate::webvtt::parse(&whole).map(|(_, cues)| cues),
    };
    let all = all.unwrap_or_else(|rule| panic!("{what}: {rule}"));
    let folder = uri.rsplit_once('/').map_or(String::new(), |(folder, _)| format!("{folder}/"));
    let (mut from, mut segments) = (0.0, Vec::new());
    for segment in &playlist.segments {
        // To the millisecond, as cues are.
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a title")]
        let ms = |seconds: f64| (seconds * 1000.0).round() as u64;
        let length = f64::from(segment.duration);
        segments.push((ms(from)..ms(from + length), fetch(&format!("{folder}{}", segment.uri))));
        from += length;
    }
    let checked = match playlist.segments.first().and_then(|first| first.map.as_ref()) {
        Some(map) => {
            let init = fetch(&format!("{folder}{}", map.uri));
            crate::ttml::check_segments(&all, &init, &segments)
        }
        None => crate::webvtt::check_segments(&all, &segments),
    };
    checked.unwrap_or_else(|rule| panic!("{what}: {rule}"));
    let sizes = segments.iter().map(|(_, bytes)| bytes.len()).collect();
    PlaylistTrack { uri, playlist, sizes, segments: Vec::new(), timescale: 1.0, video: false }
}

/// The images with thumbnails, which are there for the whole presentation.
fn check_images(
    title: &str,
    attributes: &str,
    length: f64,
    fetch: &mut dyn FnMut(&str) -> Vec<u8>,
) {
    let found = crate::thumbnails::of_hls(attributes, &mut |uri| Some(fetch(uri)));
    let found = found.unwrap_or_else(|rule| panic!("{title}: thumbnails: {rule}"));
    let end = found.last().map_or(0.0, |last| last.time.end as f64 / 1000.0);
    assert!((end - length).abs() < 0.1, "{title}: thumbnails until {end} s of {length}");
}

/// 4.3.4.1: the attributes of renditions.
fn check_renditions(title: &str, renditions: &[AlternativeMedia]) {
    let (mut names, mut defaults) = (BTreeSet::new(), BTreeSet::new());
    let mut chosen = BTreeSet::new();
    for rendition in renditions {
        let is_text = rendition.media_type == AlternativeMediaType::Subtitles;
        let (group, name) = ((is_text, &rendition.group_id), &rendition.name);
        assert!(is_text || !rendition.forced, "{title}: 4.3.4.1: FORCED of no subtitles");
        if is_text && rendition.autoselect {
            let kind = (&rendition.language, rendition.forced, &rendition.characteristics);
            assert!(chosen.insert(kind), "{title}: 4.3.4.1.1: {name} is selected like another");
        }
        assert!(names.insert((group, name)), "{title}: 4.3.4.1.1: two renditions named {name}");
        if rendition.default {
            assert!(defaults.insert(group), "{title}: 4.3.4.1.1: two defaults in {group:?}");
            assert!(rendition.autoselect, "{title}: 4.3.4.1: a default without AUTOSELECT");
        }
        if let Some(tag) = &rendition.language {
            let primary = tag.split('-').next().unwrap_or_default();
            let letters = primary.bytes().all(|byte| byte.is_ascii_lowercase());
            let valid = letters && (2..=3).contains(&primary.len());
            assert!(valid, "{title}: 4.3.4.1: LANGUAGE {tag} is no tag of RFC 5646");
        }
    }
}

fn check_media(what: &str, track: &PlaylistTrack, all_independent: bool) {
    let playlist = &track.playlist;
    assert!(playlist.end_list, "{what}: 4.3.3.4: a complete playlist has EXT-X-ENDLIST");
    assert_eq!(playlist.playlist_type, Some(MediaPlaylistType::Vod), "{what}: 4.3.3.5");
    assert_eq!(playlist.media_sequence, 0, "{what}: 4.3.3.2");
    assert!(!playlist.i_frames_only, "{what}: 4.3.3.6: a variant that plays has all pictures");
    let target = playlist.target_duration;
    let mut decoded_until = None;
    let mut from = 0.0;
    let mut shift: Option<f64> = None;
    for (number, (segment, samples)) in playlist.segments.iter().zip(&track.segments).enumerate() {
        let length = f64::from(segment.duration);
        assert!(length.round() <= target as f64, "{what}: 4.3.3.1: segment {number}: {length} s");
        for sample in samples {
            let time = sample.decode_time;
            let continues = decoded_until.is_none_or(|until| until == time);
            assert!(continues, "{what}: segment {number}: {time} after {decoded_until:?}");
            decoded_until = Some(time + u64::from(sample.duration));
        }
        let shown = samples[0].shown() as f64 / track.timescale;
        if number > 0 {
            // Playlists begin at zero, media where its first sample is shown.
            let shift = *shift.get_or_insert(shown - from);
            let off = (shown - from - shift).abs();
            assert!(off < 0.002, "{what}: 3: segment {number} begins {off:.4} s off its EXTINF");
        }
        from += length;
        if all_independent || playlist.independent_segments {
            let sync = samples[0].sync;
            assert!(sync, "{what}: 4.3.5.1: segment {number} begins with no sync sample");
            let leading = samples.iter().any(|sample| sample.shown() < samples[0].shown());
            assert!(!leading, "{what}: 4.3.5.1: segment {number} needs the one before");
        }
    }
}

/// 6.2.4: variants have the same content and one target duration.
fn check_equal_content(
    title: &str,
    variants: &[&VariantStream],
    tracks: &BTreeMap<String, PlaylistTrack>,
    texts: &[PlaylistTrack],
) {
    let targets: BTreeSet<u64> =
        tracks.values().chain(texts).map(|track| track.playlist.target_duration).collect();
    assert_eq!(targets.len(), 1, "{title}: 6.2.4: target durations {targets:?}");
    let target = *targets.first().expect("one") as f64;
    let lengths = variants.iter().map(|variant| length(&tracks[&variant.uri]));
    let (shortest, longest) =
        lengths.fold((f64::MAX, 0.0), |(least, most), it| (it.min(least), it.max(most)));
    assert!(longest - shortest <= target, "{title}: 6.2.4: variants of {shortest} and {longest} s");
}

/// The play-out time of a playlist in seconds.
fn length(track: &PlaylistTrack) -> f64 {
    track.playlist.segments.iter().map(|segment| f64::from(segment.duration)).sum()
}

/// 4.3.4.3 and 4.3.3.6: a variant of I-frames, each of which is a sync sample of a variant that
/// plays, and its playlist.
fn check_iframes(
    what: &str,
    variant: &VariantStream,
    iframes: &PlaylistTrack,
    tracks: &BTreeMap<String, PlaylistTrack>,
) {
    assert!(variant.frame_rate.is_none(), "{what}: 4.3.4.3: FRAME-RATE");
    let named = [&variant.audio, &variant.subtitles].into_iter().any(Option::is_some);
    assert!(!named && variant.closed_captions.is_none(), "{what}: 4.3.4.3: names a group");
    assert!(variant.resolution.is_some(), "{what}: RESOLUTION");
    let codec = variant.codecs.as_deref().unwrap_or_else(|| panic!("{what}: no CODECS"));
    assert!(!codec.contains(','), "{what}: I-frames have one codec: {codec}");
    let playlist = &iframes.playlist;
    assert!(playlist.i_frames_only, "{what}: 4.3.4.3: the playlist has EXT-X-I-FRAMES-ONLY");
    assert!(playlist.end_list, "{what}: 4.3.3.4: a complete playlist has EXT-X-ENDLIST");
    // 6.2.4: without this type it would need the target duration of the other playlists.
    assert_eq!(playlist.playlist_type, Some(MediaPlaylistType::Vod), "{what}: 4.3.3.5");
    let target = playlist.target_duration as f64;
    // The I-frames of a track have its initialization section.
    let map = |track: &PlaylistTrack| {
        track.playlist.segments[0].map.as_ref().map(|map| map.uri.clone()).expect("was loaded")
    };
    let source = tracks.values().find(|track| map(track) == map(iframes));
    let source = source.unwrap_or_else(|| panic!("{what}: the I-frames of no variant"));
    let keys: BTreeSet<i64> =
        source.segments.iter().flatten().filter(|s| s.sync).map(Sample::shown).collect();
    let mut ends = None;
    for (number, (segment, samples)) in playlist.segments.iter().zip(&iframes.segments).enumerate()
    {
        let [picture] = samples.as_slice() else {
            panic!("{what}: 4.3.3.6: segment {number} has {} pictures", samples.len())
        };
        assert!(picture.sync, "{what}: 4.3.3.6: segment {number} is no I-frame");
        let shown = picture.shown();
        assert!(keys.contains(&shown), "{what}: no key frame is shown at tick {shown}");
        assert!(ends.is_none_or(|end| end == shown), "{what}: {number} does not follow {ends:?}");
        ends = Some(shown + i64::from(picture.duration));
        let (stated, lasts) =
            (f64::from(segment.duration), f64::from(picture.duration) / iframes.timescale);
        assert!(stated.round() <= target, "{what}: 4.3.3.1: segment {number}: {stated} s");
        // Before the first picture nothing is shown, and a playlist begins at zero.
        let off = if number == 0 { (lasts - stated).max(0.0) } else { (stated - lasts).abs() };
        assert!(off < 0.002, "{what}: 4.3.3.6: {number} lasts {lasts} s, EXTINF is {stated}");
    }
    let off = (length(iframes) - length(source)).abs();
    assert!(off < 0.002, "{what}: 6.2.4: it is {off} s longer or shorter than its track");
    let (bandwidth, wanted) = (variant.bandwidth, peak(iframes).max(mean(iframes)));
    assert!(
        is_bound(bandwidth, wanted),
        "{what}: 4.3.4.3: BANDWIDTH={bandwidth}, but the peak is {wanted:.0}"
    );
    let average = variant.average_bandwidth.unwrap_or_else(|| panic!("{what}: no average"));
    assert!(
        is_bound(average, mean(iframes)),
        "{what}: 4.3.4.3: AVERAGE-BANDWIDTH={average}, but the average is {:.0}",
        mean(iframes)
    );
}

/// 4.3.4.2: the attributes of a variant.
fn check_variant(
    title: &str,
    variant: &VariantStream,
    master: &MasterPlaylist,
    tracks: &BTreeMap<String, PlaylistTrack>,
    texts: &[PlaylistTrack],
    codecs: &mut BTreeMap<String, String>,
) {
    let what = format!("{title}, variant {}", variant.uri);
    let own = &tracks[&variant.uri];
    let named = variant.codecs.as_deref().unwrap_or_else(|| panic!("{what}: no CODECS"));
    let mut named: Vec<&str> = named.split(',').collect();
    if texts.iter().any(|text| text.uri.ends_with("-imsc.m3u8")) {
        assert_eq!(named.pop(), Some("stpp.ttml.im1t"), "{what}: CODECS has that of its subtitles");
    }
    codecs.insert(variant.uri.clone(), named[0].to_owned());
    let members: Vec<&PlaylistTrack> = master
        .alternatives
        .iter()
        .filter(|it| it.media_type != AlternativeMediaType::Subtitles)
        .filter(|rendition| Some(&rendition.group_id) == variant.audio.as_ref())
        .filter_map(|rendition| rendition.uri.as_ref())
        .map(|uri| &tracks[uri])
        .collect();
    assert_eq!(variant.audio.is_some(), !members.is_empty(), "{what}: AUDIO names no group");
    assert_eq!(named.len(), 1 + usize::from(!members.is_empty()), "{what}: CODECS {named:?}");
    for member in &members {
        codecs.insert(member.uri.clone(), named[1].to_owned());
    }
    assert_eq!(variant.resolution.is_some(), own.video, "{what}: RESOLUTION");
    assert_eq!(variant.frame_rate.is_some(), own.video, "{what}: FRAME-RATE");
    assert_eq!(variant.subtitles.is_some(), !texts.is_empty(), "{what}: SUBTITLES");
    let most = |rate: fn(&PlaylistTrack) -> f64| {
        let text = texts.iter().map(rate).fold(0.0, f64::max);
        rate(own) + members.iter().map(|member| rate(member)).fold(0.0, f64::max) + text
    };
    let average = variant.average_bandwidth.unwrap_or_else(|| panic!("{what}: no average"));
    let bandwidth = variant.bandwidth;
    let (wanted, wanted_average) = (most(peak), most(mean));
    assert!(
        is_bound(bandwidth, wanted.max(wanted_average)),
        "{what}: 4.3.4.2: BANDWIDTH={bandwidth}, but the peak is {wanted:.0}"
    );
    assert!(
        is_bound(average, wanted_average),
        "{what}: 4.3.4.2: AVERAGE-BANDWIDTH={average}, but the average is {wanted_average:.0}"
    );
}

/// Whether `stated` is `rate` rounded up. The parser's durations have 24 bits.
fn is_bound(stated: u64, rate: f64) -> bool {
    let stated = stated as f64;
    stated >= rate * (1.0 - 1e-6) && stated <= rate * (1.0 + 1e-6) + 3.0
}

fn mean(track: &PlaylistTrack) -> f64 {
    rate(track, 0..track.sizes.len()).0
}

/// 4.1: the largest rate of any contiguous set of segments that lasts between half and one and a
/// half target durations.
fn peak(track: &PlaylistTrack) -> f64 {
    let target = track.playlist.target_duration as f64;
    let mut most = mean(track);
    for first in 0..track.sizes.len() {
        for end in first + 1..=track.sizes.len() {
            let (rate, length) = rate(track, first..end);
            if (0.5 * target..=1.5 * target).contains(&length) {
                most = most.max(rate);
            } else if length > 1.5 * target {
                break;
            }
        }
    }
    most
}

/// Bits per second of a set of segments, and its length in seconds.
fn rate(track: &PlaylistTrack, set: std::ops::Range<usize>) -> (f64, f64) {
    let bytes: usize = track.sizes[set.clone()].iter().sum();
    let segments = &track.playlist.segments[set];
    let length: f64 = segments.iter().map(|segment| f64::from(segment.duration)).sum();
    (if length > 0.0 { bytes as f64 * 8.0 / length } else { 0.0 }, length)
}
