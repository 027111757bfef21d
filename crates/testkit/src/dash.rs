//! The rules of ISO/IEC 23009-1 for the static DASH manifest of one title, checked from outside: on
//! the manifest as an independent parser reads it, and on the bytes that it names.
//!
//! It knows nothing of how manifests are made, and decodes no picture.

use crate::fragments::{Fragments, Sample, places, u32_at};
use roxmltree::{Document, Node};
use std::collections::BTreeSet;

/// A representation whose segments have been checked.
#[derive(Clone, Debug)]
pub struct CheckedRepresentation {
    /// `@id`.
    pub id: String,
    /// `@codecs`.
    pub codec: String,
    /// `@lang` of its adaptation set; empty if it has none.
    pub language: String,
    /// Whether it has pictures.
    pub video: bool,
    /// Width, height and frame rate; empty for audio.
    pub picture: String,
    /// Seconds from the start of the first segment to the end of the last.
    pub time: std::ops::Range<f64>,
    /// The initialization segment.
    pub init: Vec<u8>,
    /// All media segments.
    pub segments: Vec<Vec<u8>>,
}

/// The segments of a representation, as its template and timeline or the index of its file name
/// them.
struct SegmentTimes {
    timescale: f64,
    /// Start and end of each segment, in ticks.
    times: Vec<(u64, u64)>,
}

/// Checks the DASH manifest of a title. `fetch` returns the bytes of a URI as it stands in the
/// manifest, or `None` where there is nothing; all URIs are relative to the manifest's. Panics with
/// the violated rule.
pub fn check(
    title: &str,
    manifest: &str,
    fetch: &mut dyn FnMut(&str) -> Option<Vec<u8>>,
) -> Vec<CheckedRepresentation> {
    let document = Document::parse(manifest)
        .unwrap_or_else(|error| panic!("{title}: the manifest is not XML: {error}\n{manifest}"));
    let mpd = document.root_element();
    assert!(mpd.has_tag_name((NAMESPACE, "MPD")), "{title}: 5.3.1: the root is an MPD");
    assert_eq!(mpd.attribute("type"), Some("static"), "{title}: 5.3.1.2: @type");
    let profiles: Vec<&str> = attribute(title, mpd, "profiles").split(',').collect();
    let is_on_demand = profiles.contains(&"urn:mpeg:dash:profile:isoff-on-demand:2011");
    let live = "urn:mpeg:dash:profile:isoff-live:2011";
    assert!(is_on_demand != profiles.contains(&live), "{title}: 8.3 or 8.4: the profile");
    let duration = seconds(title, mpd, "mediaPresentationDuration");
    let periods: Vec<Node<'_, '_>> = children(mpd, "Period");
    let [period] = periods.as_slice() else { panic!("{title}: one Period: {manifest}") };
    let (mut ids, mut sets, mut mains) = (BTreeSet::new(), BTreeSet::new(), 0);
    let mut checked = Vec::new();
    let mut winding = Vec::new();
    for set in children(*period, "AdaptationSet") {
        let id = attribute(title, set, "id");
        assert!(sets.insert(id.to_owned()), "{title}: 5.3.3.2: two AdaptationSets with @id {id}");
        let id_of_set = id.to_owned();
        mains += usize::from(is_main_audio(title, set));
        let mut boundaries = Vec::new();
        if set.attribute("contentType") == Some("text") {
            ids.extend(check_text(&format!("{title}, set {id}"), set, fetch));
            continue;
        }
        if set.attribute("contentType") == Some("image") {
            let buffer = seconds(title, mpd, "minBufferTime");
            let found = crate::thumbnails::of_dash(set, duration, buffer, fetch);
            found.unwrap_or_else(|rule| panic!("{title}, set {id}: {rule}"));
            continue;
        }
        let winds = trick_mode(title, set);
        for representation in children(set, "Representation") {
            let id = attribute(title, representation, "id");
            assert!(ids.insert(id.to_owned()), "{title}: 5.3.5.2: two Representations {id}");
            let what = format!("{title}, representation {id}");
            let loaded = match is_on_demand {
                true => load_file(&what, representation, fetch),
                false => load_segments(&what, representation, fetch),
            };
            let (timeline, found) = checked_segments(&what, set, representation, loaded);
            check_rate(&what, mpd, representation, &timeline, &found.segments);
            if profiles.iter().any(|profile| profile.contains(":cmaf:")) {
                let brand = found.init.windows(4).take(64).any(|it| it == b"cmfc");
                assert!(brand, "{what}: 8.12: the brand of a CMAF track");
            }
            let in_seconds = |tick: u64| (tick as f64 / timeline.timescale * 1e6).round();
            boundaries.push(timeline.times.iter().map(|time| in_seconds(time.0)).collect());
            match winds {
                None => checked.push((id_of_set.clone(), found)),
                Some(main) => {
                    check_trick_mode(&what, set, representation);
                    winding.push((what, main, found));
                }
            }
        }
        let aligned = boundaries.windows(2).all(|pair: &[Vec<f64>]| pair[0] == pair[1]);
        let name = if is_on_demand { "subsegmentAlignment" } else { "segmentAlignment" };
        let stated = set.attribute(name) == Some("true");
        assert_eq!(stated, aligned, "{title}: 5.3.3.2: @segmentAlignment of {id}");
    }
    for (what, main, found) in &winding {
        let of = checked.iter().filter(|(set, _)| set == main).map(|(_, found)| found);
        check_iframes(what, found, of);
    }
    let checked: Vec<CheckedRepresentation> = checked.into_iter().map(|(_, found)| found).collect();
    let audible = checked.iter().any(|found| !found.video);
    assert_eq!(mains, usize::from(audible), "{title}: 5.8.5.5: one audio track is the main one");
    let end = checked.iter().map(|found| found.time.end).fold(0.0, f64::max);
    assert!(
        (end - duration).abs() < 1e-4,
        "{title}: the MPD lasts {duration} s, its media {end} s"
    );
    checked
}

/// DASH-IF IOP 4.3, 6.4.4: a set of text, each representation one file of WebVTT or TTML, or
/// segments of IMSC; gives their `@id`.
fn check_text(
    what: &str,
    set: Node<'_, '_>,
    fetch: &mut dyn FnMut(&str) -> Option<Vec<u8>>,
) -> Vec<String> {
    language(what, set);
    let roles: Vec<&str> = children(set, "Role")
        .into_iter()
        .filter(|role| role.attribute("schemeIdUri") == Some("urn:mpeg:dash:role:2011"))
        .map(|role| attribute(what, role, "value"))
        .collect();
    let kinds = ["subtitle", "caption", "forced-subtitle"];
    let kind = roles.iter().filter(|role| kinds.contains(role)).count();
    assert_eq!(kind, 1, "{what}: 5.8.5.5: the roles {roles:?}");
    let load = |representation: Node<'_, '_>| {
        let mut get = |uri: &str| fetch(uri).unwrap_or_else(|| panic!("{what}: no {uri}"));
        let checked = match attribute(what, set, "mimeType") {
            "application/mp4" => check_text_segments(what, set, representation, &mut get),
            kind => {
                let uri = only(what, representation, "BaseURL").text().unwrap_or_default();
                let cues = match kind {
                    "application/ttml+xml" => crate::ttml::parse(&get(uri)),
                    "text/vtt" => crate::webvtt::parse(&get(uri)).map(|(_, cues)| cues),
                    other => panic!("{what}: 5.3.7.2: @mimeType is {other}"),
                };
                cues.map(|cues| assert!(!cues.is_empty(), "{what}: {uri} has no cue"))
            }
        };
        checked.unwrap_or_else(|rule| panic!("{what}: {rule}"));
        let rate: u64 = attribute(what, representation, "bandwidth").parse().expect("bits");
        assert!(rate > 0, "{what}: 5.3.5.2: @bandwidth");
        attribute(what, representation, "id").to_owned()
    };
    children(set, "Representation").into_iter().map(load).collect()
}

/// DASH-IF IOP 4.3, 6.4.5: segments of IMSC, beside the file with all of it.
fn check_text_segments(
    what: &str,
    set: Node<'_, '_>,
    representation: Node<'_, '_>,
    get: &mut dyn FnMut(&str) -> Vec<u8>,
) -> Result<(), String> {
    assert_eq!(attribute(what, set, "codecs"), "stpp.ttml.im1t", "{what}: 5.3.7.2");
    let times = timeline(what, representation);
    let template = only(what, representation, "SegmentTemplate");
    assert_eq!(attribute(what, template, "timescale"), "1000", "{what}: the ticks of text are ms");
    let media = attribute(what, template, "media");
    let segments: Vec<_> = (0..)
        .zip(&times.times)
        .map(|(k, (start, end))| (*start..*end, get(&media.replace("$Number$", &format!("{k}")))))
        .collect();
    let whole = media.split_once("/$").expect("a folder").0;
    let all = crate::ttml::parse(&get(&format!("{whole}.ttml")))?;
    let init = get(attribute(what, template, "initialization"));
    crate::ttml::check_segments(&all, &init, &segments)
}

/// DASH-IF IOP 4.3, 3.2.9: the `@id` of the set whose pictures this one has for trick modes.
fn trick_mode<'a>(title: &str, set: Node<'a, '_>) -> Option<&'a str> {
    let scheme = "http://dashif.org/guidelines/trickmode";
    let properties = children(set, "EssentialProperty");
    let found = properties.into_iter().find(|it| it.attribute("schemeIdUri") == Some(scheme))?;
    Some(attribute(title, found, "value"))
}

/// DASH-IF IOP 4.3, 3.2.9, and ISO/IEC 23009-1, 5.3.7.2: the attributes of a representation for
/// trick modes.
fn check_trick_mode(what: &str, set: Node<'_, '_>, representation: Node<'_, '_>) {
    let rate: f64 = attribute(what, representation, "maxPlayoutRate").parse().expect("a number");
    assert!(rate > 1.0, "{what}: a decoder can show I-frames faster than all pictures: {rate}");
    assert_eq!(representation.attribute("codingDependency"), Some("false"), "{what}: I-frames");
    let access = ["startWithSAP", "subsegmentStartsWithSAP"].map(|name| set.attribute(name));
    assert_eq!(access.iter().flatten().count(), 1, "{what}: each segment is an I-frame");
}

/// The segments for trick modes are sync samples of a representation of the set that they are for.
fn check_iframes<'a>(
    what: &str,
    found: &CheckedRepresentation,
    mut of: impl Iterator<Item = &'a CheckedRepresentation>,
) {
    let samples = |of: &CheckedRepresentation| -> Vec<Vec<Sample>> {
        let fragments = Fragments::of(&of.init).expect("checked before");
        of.segments.iter().map(|segment| fragments.samples(segment)).collect()
    };
    let shown: Vec<i64> = samples(found)
        .iter()
        .enumerate()
        .map(|(number, samples)| {
            let [picture] = samples.as_slice() else {
                panic!("{what}: segment {number} has {} pictures", samples.len())
            };
            picture.shown()
        })
        .collect();
    let has_them = of.any(|other| {
        let all = samples(other);
        let keys: BTreeSet<i64> =
            all.iter().flatten().filter(|s| s.sync).map(Sample::shown).collect();
        let same = other.init == found.init && other.codec == found.codec;
        same && shown.iter().all(|at| keys.contains(at))
    });
    assert!(has_them, "{what}: these are the I-frames of no representation of its set");
}

/// 5.3.9.4 and 5.3.9.6: template and timeline.
fn timeline(what: &str, representation: Node<'_, '_>) -> SegmentTimes {
    let template = only(what, representation, "SegmentTemplate");
    assert_eq!(template.attribute("presentationTimeOffset"), None, "{what}: begins at zero");
    let mut times: Vec<(u64, u64)> = Vec::new();
    for row in children(only(what, template, "SegmentTimeline"), "S") {
        let until = times.last().map(|time| time.1);
        let start = row.attribute("t").map(|t| t.parse().expect("ticks")).or(until).unwrap_or(0);
        assert!(until.is_none_or(|until| until == start), "{what}: {start} follows {until:?}");
        let length: u64 = attribute(what, row, "d").parse().expect("ticks");
        assert!(length > 0, "{what}: 5.3.9.6: a segment has a duration");
        let repeated: u64 = row.attribute("r").map_or(0, |r| r.parse().expect("a count"));
        times.extend((0..=repeated).map(|k| (start + k * length, start + (k + 1) * length)));
    }
    assert!(!times.is_empty(), "{what}: 5.3.9.6: a timeline has a segment");
    SegmentTimes {
        timescale: attribute(what, template, "timescale").parse().expect("ticks"),
        times,
    }
}

/// What a representation names: the times of its segments, the initialization segment, and all
/// media segments.
type Loaded = (SegmentTimes, Vec<u8>, Vec<Vec<u8>>);

/// 5.3.9.4: each segment at an address of its own.
fn load_segments(
    what: &str,
    representation: Node<'_, '_>,
    fetch: &mut dyn FnMut(&str) -> Option<Vec<u8>>,
) -> Loaded {
    let timeline = timeline(what, representation);
    let id = attribute(what, representation, "id");
    let template = only(what, representation, "SegmentTemplate");
    let named = |name: &str| attribute(what, template, name).replace("$RepresentationID$", id);
    let init = fetch(&named("initialization")).unwrap_or_else(|| panic!("{what}: no init segment"));
    let first: usize = attribute(what, template, "startNumber").parse().expect("a number");
    let media = |k: usize| named("media").replace("$Number$", &(first + k).to_string());
    let mut get =
        |k: usize| fetch(&media(k)).unwrap_or_else(|| panic!("{what}: no segment {}", media(k)));
    let segments = (0..timeline.times.len()).map(&mut get).collect();
    let beyond = media(timeline.times.len());
    assert!(fetch(&beyond).is_none(), "{what}: {beyond} is not in the timeline, but exists");
    (timeline, init, segments)
}

/// 5.3.9.2 and 8.3: one file, of which the manifest says where its index is; what the index says of
/// sizes and times (ISO/IEC 14496-12, 8.16.3) is so of the boxes behind it.
fn load_file(
    what: &str,
    representation: Node<'_, '_>,
    fetch: &mut dyn FnMut(&str) -> Option<Vec<u8>>,
) -> Loaded {
    let uri = only(what, representation, "BaseURL").text().unwrap_or_default();
    let file = fetch(uri).unwrap_or_else(|| panic!("{what}: {uri} does not exist"));
    let base = only(what, representation, "SegmentBase");
    let range = |node: Node<'_, '_>, name: &str| {
        let (start, last) = attribute(what, node, name).split_once('-').expect("a range");
        start.parse::<usize>().expect("a byte")..last.parse::<usize>().expect("a byte") + 1
    };
    let init = range(only(what, base, "Initialization"), "range");
    let index = range(base, "indexRange");
    let found = places(&file);
    let [(ftyp, first, _), (moov, second, _), (sidx, third, _), media @ ..] = found.as_slice()
    else {
        panic!("{what}: 8.3: {} boxes", found.len())
    };
    assert_eq!([ftyp, moov, sidx], [b"ftyp", b"moov", b"sidx"], "{what}: 8.3: the first boxes");
    assert_eq!(init, first.start..second.end, "{what}: 5.3.9.2: Initialization@range");
    assert_eq!(&index, third, "{what}: 5.3.9.2: @indexRange");
    let fields = &file[index.start + 8..index.end];
    let field = |at: usize| u32_at(fields, at);
    let is_wide = fields[0] == 1;
    let wide = |at: usize| match is_wide {
        true => u64::from(field(at)) << 32 | u64::from(field(at + 4)),
        false => u64::from(field(at)),
    };
    let (scale, offset) = (field(8), wide(if is_wide { 20 } else { 16 }));
    assert_eq!(offset, 0, "{what}: 8.16.3: the first segment is behind the index");
    assert_eq!(attribute(what, base, "timescale"), scale.to_string(), "{what}: 5.3.9.2");
    let count_at = if is_wide { 28 } else { 20 };
    let count = (field(count_at) & 0xffff) as usize;
    assert_eq!(fields.len(), count_at + 4 + 12 * count, "{what}: 8.16.3: {count} references");
    let (mut at, mut time) = (index.end, wide(12));
    let (mut times, mut segments) = (Vec::new(), Vec::new());
    for reference in 0..count {
        let [size, length, access] = [0, 4, 8].map(|it| field(count_at + 4 + 12 * reference + it));
        assert_eq!(size >> 31, 0, "{what}: 8.16.3: it refers to media");
        let end = at + size as usize;
        let kinds: Vec<[u8; 4]> = media
            .iter()
            .filter(|(_, place, _)| place.start >= at && place.end <= end)
            .map(|(kind, ..)| *kind)
            .collect();
        let whole = media.iter().any(|(_, place, _)| place.end == end);
        let pairs = kinds.chunks(2).all(|pair| pair == [*b"moof", *b"mdat"]);
        assert!(whole && pairs && !kinds.is_empty(), "{what}: 8.16.3: segment {reference}");
        let sap = representation.parent().and_then(|set| set.attribute("subsegmentStartsWithSAP"));
        assert_eq!(access >> 28, if sap == Some("1") { 9 } else { 0 }, "{what}: 8.16.3: access");
        segments.push(file[at..end].to_vec());
        times.push((time, time + u64::from(length)));
        (at, time) = (end, time + u64::from(length));
    }
    assert_eq!(at, file.len(), "{what}: 8.16.3: the sizes of all segments");
    (SegmentTimes { timescale: f64::from(scale), times }, file[init].to_vec(), segments)
}

fn checked_segments(
    what: &str,
    set: Node<'_, '_>,
    representation: Node<'_, '_>,
    (timeline, init, segments): Loaded,
) -> (SegmentTimes, CheckedRepresentation) {
    let fragments = Fragments::of(&init).unwrap_or_else(|| panic!("{what}: no track in its init"));
    let kind = if fragments.video { "video" } else { "audio" };
    assert_eq!(attribute(what, set, "contentType"), kind, "{what}: 5.3.3.2");
    assert_eq!(attribute(what, set, "mimeType"), format!("{kind}/mp4"), "{what}: 5.3.7.2");
    assert_eq!(f64::from(fragments.timescale), timeline.timescale, "{what}: the track's ticks");
    let samples: Vec<Vec<Sample>> = segments.iter().map(|it| fragments.samples(it)).collect();
    check_samples(what, &timeline, &samples, fragments.shown_from);
    let access = ["startWithSAP", "subsegmentStartsWithSAP"];
    if access.iter().any(|name| set.attribute(*name) == Some("1")) {
        check_access(what, &samples);
    }
    let picture = if fragments.video {
        let [width, height, rate] = ["width", "height", "frameRate"]
            .map(|name| representation.attribute(name).unwrap_or_default());
        format!("{width}x{height}@{rate}")
    } else {
        attribute(what, representation, "audioSamplingRate").parse::<u32>().expect("a rate");
        String::new()
    };
    check_supplemental(what, representation, &init);
    let at = |tick: u64| tick as f64 / timeline.timescale;
    let (start, end) = (timeline.times[0].0, timeline.times[timeline.times.len() - 1].1);
    let found = CheckedRepresentation {
        id: attribute(what, representation, "id").to_owned(),
        codec: attribute(what, representation, "codecs").to_owned(),
        language: language(what, set),
        video: fragments.video,
        picture,
        time: at(start)..at(end),
        init,
        segments,
    };
    (timeline, found)
}

/// ANSI/SCTE 214-1 and ETSI TS 103 285: a codec that adds to that of a base layer is named with the
/// brand of the base layer, which the initialization segment has; and what has such a brand is
/// named. The schema of ISO/IEC 23009-1 allows attributes of other namespaces there.
fn check_supplemental(what: &str, representation: Node<'_, '_>, init: &[u8]) {
    let brand = representation.attribute((SCTE, "supplementalProfiles"));
    let codec = representation.attribute((SCTE, "supplementalCodecs"));
    let brands = ["db1p", "db2g", "db4h"];
    let has = |brand: &&str| init.windows(4).take(64).any(|it| it == brand.as_bytes());
    assert_eq!(brand, brands.into_iter().find(has), "{what}: supplementalProfiles");
    assert_eq!(codec.is_some(), brand.is_some(), "{what}: supplementalCodecs");
    if let Some(codec) = codec {
        let parts: Vec<&str> = codec.split('.').collect();
        let is_codec = |it: &str| ["dvh1", "dvhe", "dav1"].contains(&it);
        let two = |it: &str| it.len() == 2 && it.bytes().all(|digit| digit.is_ascii_digit());
        let fits = matches!(parts[..], [name, profile, level]
            if is_codec(name) && two(profile) && two(level));
        assert!(fits, "{what}: supplementalCodecs: {codec}");
        assert_ne!(representation.attribute("codecs"), Some(codec), "{what}: the base layer");
    }
}

/// 7.2.1 and 5.3.9.6: the earliest presentation time of each segment is its `S@t`, the samples
/// follow one another, and the last segment ends with its last sample. The durations of samples are
/// those between decode times: where they differ, the last shown one lasts no longer than the
/// longest.
fn check_samples(what: &str, timeline: &SegmentTimes, segments: &[Vec<Sample>], shown_from: i64) {
    let mut decoded_until = None;
    let (mut last, mut lengths) = (0, (i64::MAX, 0));
    for (number, (time, samples)) in timeline.times.iter().zip(segments).enumerate() {
        assert!(!samples.is_empty(), "{what}: segment {number} has no sample");
        for sample in samples {
            let time = sample.decode_time;
            let continues = decoded_until.is_none_or(|until| until == time);
            assert!(continues, "{what}: segment {number}: {time} after {decoded_until:?}");
            decoded_until = Some(time + u64::from(sample.duration));
            last = last.max(sample.shown() - shown_from);
            let length = i64::from(sample.duration);
            lengths = (lengths.0.min(length), lengths.1.max(length));
        }
        let earliest = samples.iter().map(Sample::shown).min().expect("has samples") - shown_from;
        let (stated, earliest) = (i64::try_from(time.0).expect("ticks"), earliest.max(0));
        assert_eq!(stated, earliest, "{what}: the start of segment {number}");
    }
    let stated = timeline.times[timeline.times.len() - 1].1;
    let length = i64::try_from(stated).expect("ticks") - last;
    let shortest = if lengths.0 == lengths.1 { lengths.0 } else { 1 };
    let ends = shortest - 1 <= length && length <= lengths.1 + 1;
    assert!(ends, "{what}: the timeline ends at {stated}, the last sample begins at {last}");
}

/// `@startWithSAP="1"`: each segment can be decoded by itself, and shows first what it has first.
fn check_access(what: &str, segments: &[Vec<Sample>]) {
    for (number, samples) in segments.iter().enumerate() {
        assert!(samples[0].sync, "{what}: 5.3.7.2: segment {number} begins with no sync sample");
        let leading = samples.iter().any(|sample| sample.shown() < samples[0].shown());
        assert!(!leading, "{what}: 5.3.7.2: segment {number} begins with leading samples");
    }
}

/// 5.3.5.2: a player that receives `@bandwidth` bits per second and waits for `@minBufferTime`,
/// wherever it begins, has each segment when it is due.
fn check_rate(
    what: &str,
    mpd: Node<'_, '_>,
    representation: Node<'_, '_>,
    timeline: &SegmentTimes,
    segments: &[Vec<u8>],
) {
    let rate: f64 = attribute(what, representation, "bandwidth").parse().expect("bits per second");
    let buffer = seconds(what, mpd, "minBufferTime");
    let is_file = mpd.attribute("maxSubsegmentDuration").is_some();
    let longest = if is_file { "maxSubsegmentDuration" } else { "maxSegmentDuration" };
    let longest = seconds(what, mpd, longest);
    let at = |k: usize| timeline.times[k].0 as f64 / timeline.timescale;
    for first in 0..segments.len() {
        let mut bits = 0.0;
        for (k, bytes) in segments.iter().enumerate().skip(first) {
            bits += bytes.len() as f64 * 8.0;
            let late = bits / rate - buffer - (at(k) - at(first));
            // Times of a playlist are rounded to microseconds.
            assert!(late < 1e-4, "{what}: 5.3.5.2: from {first} on, segment {k} is {late} s late");
        }
        let (start, end) = timeline.times[first];
        let length = (end - start) as f64 / timeline.timescale;
        // The first segment may begin later than the track.
        assert!(length < longest + 1e-4, "{what}: 5.3.1.2: segment {first} lasts {length} s");
    }
}

fn is_main_audio(what: &str, set: Node<'_, '_>) -> bool {
    let audio = set.attribute("contentType") == Some("audio");
    let roles = children(set, "Role");
    let role = |role: &Node<'_, '_>| attribute(what, *role, "value").to_owned();
    audio && roles.iter().map(role).any(|value| value == "main")
}

fn language(what: &str, set: Node<'_, '_>) -> String {
    let tag = set.attribute("lang").unwrap_or_default();
    let primary = tag.split('-').next().unwrap_or_default();
    let letters = primary.bytes().all(|byte| byte.is_ascii_lowercase());
    let valid = tag.is_empty() || letters && (2..=3).contains(&primary.len());
    assert!(valid, "{what}: 5.3.3.2: @lang {tag} is no tag of RFC 5646");
    tag.to_owned()
}

fn children<'a, 'i>(node: Node<'a, 'i>, name: &str) -> Vec<Node<'a, 'i>> {
    node.children().filter(|child| child.has_tag_name((NAMESPACE, name))).collect()
}

fn only<'a, 'i>(what: &str, node: Node<'a, 'i>, name: &str) -> Node<'a, 'i> {
    match children(node, name).as_slice() {
        [one] => *one,
        several => panic!("{what}: {} times {name}", several.len()),
    }
}

fn attribute<'a>(what: &str, node: Node<'a, '_>, name: &str) -> &'a str {
    node.attribute(name).unwrap_or_else(|| panic!("{what}: {:?} has no @{name}", node.tag_name()))
}

/// An `xs:duration` of seconds alone.
fn seconds(what: &str, node: Node<'_, '_>, name: &str) -> f64 {
    let text = attribute(what, node, name);
    let number = text.strip_prefix("PT").and_then(|text| text.strip_suffix('S'));
    let seconds = number.and_then(|number| number.parse().ok());
    seconds.unwrap_or_else(|| panic!("{what}: @{name}=\"{text}\""))
}

/// The namespace of codecs that add to others.
const SCTE: &str = "urn:scte:dash:scte214-extensions";
const NAMESPACE: &str = "urn:mpeg:dash:schema:mpd:2011";
