//! DASH manifests: what they state of each kind of title, and the faults that the check of
//! ISO/IEC 23009-1 finds. The check runs on the titles of `playback` and `excerpts`, too.

use crate::footage::{Folder, Title, make, read, remux};
use media::{Excerpt, Growth, Packaging, PackagingOptions, Slice};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

/// The file, options of FFmpeg, muxer, what each representation is, and what the manifest has.
type Row =
    (&'static str, &'static str, &'static str, &'static [&'static str], &'static [&'static str]);

const TITLES: &[Row] = &[
    (
        "plain.mkv",
        "H264 -c:a aac",
        "mp4",
        &["avc1.64000b 160x90@25", "mp4a.40.2"],
        &[
            "profiles=\"urn:mpeg:dash:profile:isoff-live:2011,urn:mpeg:dash:profile:cmaf:2019\"",
            "startWithSAP=\"1\" maxWidth=\"160\" maxHeight=\"90\"",
            "audioSamplingRate=\"48000\"",
            "<AudioChannelConfiguration schemeIdUri=\"urn:mpeg:mpegB:cicp:ChannelConfiguration\" \
             value=\"1\"/>\n<Role schemeIdUri=\"urn:mpeg:dash:role:2011\" value=\"main\"/>",
        ],
    ),
    ("ntsc.mp4", "-vf fps=30000/1001 H264 -an", "mp4", &["avc1.64000b 160x90@30000/1001"], &[]),
    (
        "open.mkv",
        "H264 -b_strategy 0 -x264-params open-gop=1 -an",
        "mp4",
        &["avc1.64000b 160x90@25"],
        &["profiles=\"urn:mpeg:dash:profile:isoff-live:2011\"", "maxWidth"],
    ),
    ("sparse.mkv", "-c:v mpeg2video -bf 2 -g 13 -an", "mp4", &["mp4v.61 160x90@25"], &[]),
    (
        "pcm.mkv",
        "H264 -c:a pcm_s16le",
        "mov",
        &["avc1.64000b 160x90@25", "sowt"],
        &["profiles=\"urn:mpeg:dash:profile:isoff-live:2011\"", "mimeType=\"audio/mp4\""],
    ),
    ("sound.mkv", "-vn -c:a flac", "mp4", &["fLaC"], &["contentType=\"audio\""]),
    (
        "pq.mkv",
        "H264 -an -color_primaries bt2020 -color_trc smpte2084 -colorspace bt2020nc",
        "mp4",
        &["avc1.64000b 160x90@25"],
        &[
            "<EssentialProperty schemeIdUri=\"urn:mpeg:mpegB:cicp:ColourPrimaries\" value=\"9\"/>",
            "<EssentialProperty schemeIdUri=\"urn:mpeg:mpegB:cicp:TransferCharacteristics\" \
             value=\"16\"/>",
            "<EssentialProperty schemeIdUri=\"urn:mpeg:mpegB:cicp:MatrixCoefficients\" value=\"9\"/>",
        ],
    ),
    (
        "sdr.mkv",
        "H264 -an -color_primaries bt709 -color_trc bt709 -colorspace bt709",
        "mp4",
        &["avc1.64000b 160x90@25"],
        &["<SupplementalProperty schemeIdUri=\"urn:mpeg:mpegB:cicp:TransferCharacteristics\" \
           value=\"1\"/>"],
    ),
    (
        "titled.mkv",
        "H264 -c:a aac -metadata:s:a:0 language=fra -metadata:s:a:0 title=Cut&<keep>",
        "mp4",
        &["avc1.64000b 160x90@25", "mp4a.40.2 fr"],
        &["<Label>Cut&amp;&lt;keep&gt;</Label>"],
    ),
];

#[test]
fn a_manifest_states_what_its_tracks_are() {
    let folder = Folder::new("manifests");
    for (name, encode, muxer, wanted, texts) in TITLES {
        let encode = encode.replace("H264", "-c:v libx264 -preset veryfast -bf 2 -g 12");
        let title = read(&remux(&make(&folder, name, &encode), muxer, ""), 1 << 16);
        let packaging = title.packaging(SECOND);
        let manifest = packaging.dash_manifest(&offered(&packaging), "?s=T");
        let found = title.check_dash(&packaging, name, &manifest.replace("?s=T", ""));
        let found: Vec<String> = found
            .iter()
            .map(|it| format!("{} {}{}", it.codec, it.picture, it.language).trim().to_owned())
            .collect();
        assert_eq!(found, *wanted, "{name}");
        for text in *texts {
            assert!(manifest.contains(text), "{name}: {text} is not in\n{manifest}");
        }
        // The check compares the times of segments with those of their pictures.
        let options = PackagingOptions {
            segment: SECOND,
            growth: Growth::Grown { began: 0 },
            encryption: None,
        };
        let grown = Packaging::new(Arc::new(title.index.clone()), &options).unwrap();
        title.check_dash(&grown, name, &grown.dash_manifest(&offered(&grown), ""));
        let tokens =
            manifest.matches(".m4s?s=T\"").count() + manifest.matches(".mp4?s=T\"").count();
        let all = manifest.matches("<Representation ").count();
        assert_eq!(tokens, 2 * all, "{name}: each address has the token\n{manifest}");
    }
}

/// The codec that adds to a base layer is beside the codec of the base layer, and nowhere else.
#[test]
fn dolby_vision_with_a_base_layer_is_named_beside_it() {
    let folder = Folder::new("supplemental");
    let how = "-c:v libx265 -x265-params log-level=none:keyint=12:open-gop=0 -tag:v hvc1 -an";
    let plain = read(&remux(&make(&folder, "source.mp4", how), "mp4", ""), 1 << 16);
    for (profile, base, wanted) in [
        (8_u16, 1, Some("dvh1.08.06\" scte214:supplementalProfiles=\"db1p")),
        (8, 4, Some("dvh1.08.06\" scte214:supplementalProfiles=\"db4h")),
        (5, 0, None),
        (7, 6, None),
    ] {
        let record = [&[0, 0, 0, 32][..], b"dvvC", &[1, 0]].concat();
        let bits = (profile << 9 | 6 << 3 | 0b101).to_be_bytes();
        let record = [&record[..], &bits, &[base << 4], &[0; 19]].concat();
        let mut title = plain.clone();
        let entry = &mut title.index.tracks[0].description.sample_entry;
        entry.extend_from_slice(&record);
        let size = u32::try_from(entry.len()).unwrap().to_be_bytes();
        entry[..4].copy_from_slice(&size);
        let packaging = title.packaging(SECOND);
        for manifest in [packaging.dash_manifest(&[0], ""), packaging.on_demand_manifest(&[0], "")]
        {
            title.check_dash(&packaging, "vision", &manifest);
            let named = manifest.matches("supplementalCodecs").count();
            // The pictures, and the I-frames.
            assert_eq!(named, if wanted.is_some() { 2 } else { 0 }, "{manifest}");
            let space = "xmlns:scte214=\"urn:scte:dash:scte214-extensions\"";
            assert_eq!(manifest.contains(space), wanted.is_some(), "{manifest}");
            let wanted = wanted.map(|it| format!(" scte214:supplementalCodecs=\"{it}\""));
            assert!(wanted.is_none_or(|it| manifest.contains(&it)), "{manifest}");
        }
    }
}

/// The media segments are those of HLS. Only the initialization segment of sound that begins with
/// priming differs: it has no note for FFmpeg.
#[test]
fn the_segments_are_those_of_hls() {
    let folder = Folder::new("same-segments");
    let how = "-c:v libx264 -preset veryfast -bf 2 -g 12 -c:a aac";
    let title = read(&remux(&make(&folder, "source.mp4", how), "mp4", ""), 1 << 16);
    let packaging = title.packaging(SECOND);
    let found = title.check_dash(&packaging, "plain", &packaging.dash_manifest(&[0], ""));
    for (track, found) in (0..).zip(found) {
        let segments: Vec<Vec<u8>> = (0..packaging.segment_count(track))
            .map(|k| title.bytes(&packaging.segment(track, k).unwrap()))
            .collect();
        assert_eq!(found.segments, segments, "track {track}");
        let noted = |init: &[u8]| init.windows(8).any(|it| it == b"iTunSMPB");
        let hls = packaging.init_segment(track).unwrap();
        assert_eq!((noted(&hls), noted(&found.init)), (track == 1, false), "track {track}");
    }
}

/// A file of a track has the bytes of its segments, in the same order, and no more is read of it
/// than of them.
#[test]
fn the_file_of_a_track_is_its_segments_behind_an_index() {
    let folder = Folder::new("track-files");
    let how = "-c:v libx264 -preset veryfast -bf 2 -g 12 -c:a aac";
    let title = read(&remux(&make(&folder, "source.mp4", how), "mp4", ""), 1 << 16);
    let whole = title.packaging(SECOND);
    let part = Excerpt { start: Duration::from_millis(600), ..Excerpt::default() };
    let skipping = Excerpt { skip: 1, ..Excerpt::default() };
    let parts = [&part, &skipping].map(|excerpt| whole.excerpt(excerpt).unwrap());
    // A presentation that skips groups of pictures has no I-frames.
    for (packaging, winds) in [(&whole, true), (&parts[0], true), (&parts[1], false)] {
        let manifest = packaging.on_demand_manifest(&[0], "?s=T");
        assert!(manifest.contains("<BaseURL>0.mp4?s=T</BaseURL>"), "{manifest}");
        let is_listed = manifest.contains("<BaseURL>0-iframes.mp4?s=T</BaseURL>");
        assert_eq!((is_listed, packaging.iframe_file(0).is_some()), (winds, winds));
        assert!(!manifest.contains("SegmentTemplate"), "{manifest}");
        let found = title.check_dash(packaging, "files", &manifest.replace("?s=T", ""));
        for found in found {
            let track: u16 = found.id.parse().unwrap();
            let segments = (0..packaging.segment_count(track))
                .map(|k| title.bytes(&packaging.segment(track, k).unwrap()));
            assert_eq!(found.segments, segments.collect::<Vec<_>>(), "track {track}");
            assert_eq!(found.init, packaging.dash_init_segment(track).unwrap().to_vec());
            // What players fetch first is generated.
            let file = packaging.track_file(track).unwrap();
            let head = file.slice_end(found.init.len() as u64);
            let slices = file.range(0..head).slices().cloned().collect::<Vec<_>>();
            assert!(slices.iter().all(|it| matches!(it, Slice::Generated { .. })), "{slices:?}");
        }
    }
    assert_eq!(
        (whole.track_file(2), whole.iframe_file(1), whole.iframe_file(2)),
        (None, None, None)
    );
}

/// The check of ISO/IEC 14496-12 finds each of these faults of an index.
#[test]
fn files_with_a_faulty_index_are_found_by_the_check() {
    let folder = Folder::new("index-faults");
    let how = "-c:v libx264 -preset veryfast -bf 2 -g 12 -an";
    let title = read(&remux(&make(&folder, "source.mp4", how), "mp4", ""), 1 << 16);
    let packaging = title.packaging(SECOND);
    let manifest = packaging.on_demand_manifest(&[0], "");
    let file = title.bytes(&packaging.track_file(0).unwrap());
    let iframes = title.bytes(&packaging.iframe_file(0).unwrap());
    let index = file.windows(4).position(|it| it == b"sidx").unwrap() - 4;
    let check = |manifest: &str, file: &[u8]| {
        let fetch = &mut |uri: &str| {
            Some(if uri == "0-iframes.mp4" { iframes.clone() } else { file.to_vec() })
        };
        catch_unwind(AssertUnwindSafe(|| testkit::dash::check("film", manifest, fetch))).is_ok()
    };
    assert!(check(&manifest, &file));
    // The byte of the index that is another one: of the type, scale, time, offset, count, and of a
    // reference its size, time and access point.
    for at in [4, 19, 23, 27, 31, 35, 39, 40] {
        let mut faulty = file.clone();
        faulty[index + at] ^= 0x11;
        assert!(!check(&manifest, &faulty), "byte {at} of the index");
    }
    let more = format!("indexRange=\"{index}-");
    let faults = [(&*more, "indexRange=\"1-"), ("range=\"0-", "range=\"1-")];
    for (from, to) in faults {
        assert!(manifest.contains(from), "{from}: {manifest}");
        assert!(!check(&manifest.replace(from, to), &file), "{to}");
    }
    assert!(!check(&manifest, &file[..file.len() - 1]) && !check(&manifest, &file[1..]));
}

/// The check of ISO/IEC 23009-1 finds each of these faults, which are made by replacing text.
#[test]
fn manifests_with_a_fault_are_found_by_the_check() {
    let folder = Folder::new("manifest-faults");
    let how = "-c:v libx264 -preset veryfast -bf 2 -g 12 -c:a aac";
    let title = read(&remux(&make(&folder, "source.mp4", how), "mp4", ""), 1 << 16);
    let packaging = title.packaging(SECOND);
    let manifest = packaging.dash_manifest(&[0], "");
    let value = |name: &str| {
        let (_, rest) = manifest.split_once(&format!(" {name}=\"")).unwrap();
        rest.split('"').next().unwrap().to_owned()
    };
    let less = |number: String| (number.parse::<u64>().unwrap() * 9 / 10).to_string();
    let table = [
        ("type=\"static\"".to_owned(), "type=\"dynamic\"".to_owned()),
        (value("mediaPresentationDuration"), "PT9S".to_owned()),
        (value("minBufferTime"), "PT0.01S".to_owned()),
        (value("maxSegmentDuration"), "PT0.1S".to_owned()),
        (value("bandwidth"), less(value("bandwidth"))),
        ("segmentAlignment=\"true\"".to_owned(), String::new()),
        (format!("<S t=\"{}\"", value("t")), "<S t=\"99\"".to_owned()),
        (format!(" d=\"{}\"", value("d")), format!(" d=\"{}\"", less(value("d")))),
        ("</SegmentTimeline>".to_owned(), "<S d=\"90\"/></SegmentTimeline>".to_owned()),
        ("startNumber=\"0\"".to_owned(), "startNumber=\"1\"".to_owned()),
        ("init-dash.mp4".to_owned(), "init.mp4".to_owned()),
        ("mimeType=\"video/mp4\"".to_owned(), "mimeType=\"audio/mp4\"".to_owned()),
        ("timescale=\"48000\"".to_owned(), "timescale=\"44100\"".to_owned()),
        ("value=\"main\"".to_owned(), "value=\"alternate\"".to_owned()),
        ("id=\"1\"".to_owned(), "id=\"0\"".to_owned()),
        (
            "guidelines/trickmode\" value=\"0\"".to_owned(),
            "guidelines/trickmode\" value=\"1\"".to_owned(),
        ),
        ("codingDependency=\"false\"".to_owned(), "codingDependency=\"true\"".to_owned()),
        (" maxPlayoutRate=\"24\"".to_owned(), String::new()),
        ("0/iframe-$Number$".to_owned(), "0/$Number$".to_owned()),
    ];
    check(&title, &packaging, &manifest);
    for (from, to) in table {
        let faulty = manifest.replace(&from, &to);
        assert_ne!(faulty, manifest, "{from} is in the manifest");
        let checked = catch_unwind(AssertUnwindSafe(|| check(&title, &packaging, &faulty)));
        assert!(checked.is_err(), "{from} replaced by {to} is not found");
    }
}

fn check(title: &Title, packaging: &Packaging, manifest: &str) {
    title.check_dash(packaging, "film", manifest);
}

/// The video track of each offer; the audio track where there is no video.
fn offered(packaging: &Packaging) -> Vec<u16> {
    packaging.offers().iter().map(|offer| offer[0]).collect()
}
