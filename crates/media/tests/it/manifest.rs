//! DASH manifests: what they state of each kind of title, and the faults that the check of
//! ISO/IEC 23009-1 finds. The check runs on the titles of `playback` and `excerpts`, too.

use crate::footage::{Folder, Title, make, read, remux};
use media::Packaging;
use std::panic::{AssertUnwindSafe, catch_unwind};
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
        let tokens =
            manifest.matches(".m4s?s=T\"").count() + manifest.matches(".mp4?s=T\"").count();
        let all = manifest.matches("<Representation ").count();
        assert_eq!(tokens, 2 * all, "{name}: each address has the token\n{manifest}");
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
