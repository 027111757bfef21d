//! I-frames: those that a player shows while its viewer winds are the key frames of the source, at
//! their times, and each is decoded by itself.

use crate::footage::{Folder, Title, make, read, remux};
use crate::playback::{Frame, decode, decode_ours};
use media::{Excerpt, Packaging};
use std::process::Command;
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

/// The file, its encoder's options, muxer of the remux, and the numbers of the listed pictures of
/// 60 of 25 in a second.
type Row = (&'static str, &'static str, &'static str, &'static [usize]);

const TITLES: &[Row] = &[
    ("plain.mp4", "-c:v libx264 -preset veryfast -bf 2 -g 25", "mp4", &[0, 25]),
    // Two key frames in a second: one of them is listed.
    ("dense.mp4", "-c:v libx264 -preset veryfast -bf 2 -g 12", "mp4", &[0, 24]),
    ("sparse.mp4", "-c:v libx264 -preset veryfast -bf 2 -g 40", "mp4", &[0, 40]),
    (
        "hevc.mkv",
        "-c:v libx265 -preset ultrafast -x265-params log-level=none:keyint=25:open-gop=0",
        "mp4",
        &[0, 25],
    ),
    ("vp9.mkv", "-c:v libvpx-vp9 -deadline realtime -cpu-used 8 -g 20", "mp4", &[0, 20, 40]),
    ("av1.mkv", "-c:v libsvtav1 -preset 12 -g 25", "mp4", &[0, 25]),
    ("mpeg2.mkv", "-c:v mpeg2video -bf 0 -g 13", "mp4", &[0, 26]),
    ("prores.mov", "-c:v prores_ks -profile:v 0", "mov", &[0, 25]),
];

#[test]
fn the_iframes_of_each_codec_are_key_frames_of_the_source_at_their_times() {
    for (name, encode, muxer, wanted) in TITLES {
        let folder = Folder::new(&format!("iframes-{name}"));
        let source = make(&folder, name, &format!("{encode} -an"));
        let title = read(&remux(&source, muxer, ""), 1 << 16);
        let packaging = title.packaging(SECOND);
        title.write_hls(&packaging, &folder);
        let all = &decode(&source)[0];
        let keys = key_frames(&source);
        assert!(wanted.iter().all(|i| keys.contains(i)), "{name}: {wanted:?} of {keys:?}");
        let wanted: Vec<&Frame> = wanted.iter().map(|i| &all[*i]).collect();
        let shown = &decode_ours(&folder.file("0-iframes.m3u8"))[0];
        assert_eq!(shown.len(), wanted.len(), "{name}: I-frames");
        for (shown, wanted) in shown.iter().zip(wanted) {
            assert_eq!(shown.1, wanted.1, "{name}: the picture at {} s", wanted.0);
            assert!((shown.0 - wanted.0).abs() < 0.0015, "{name}: {} s: {}", wanted.0, shown.0);
        }
    }
}

/// The numbers of the source's key frames in the order in which pictures are shown.
fn key_frames(source: &std::path::Path) -> Vec<usize> {
    let output = Command::new("ffprobe")
        .args(["-v", "error", "-select_streams", "v", "-of", "csv=p=0"])
        .args(["-show_entries", "packet=pts_time,flags"])
        .arg(source)
        .output()
        .expect("ffprobe runs (apt-get install ffmpeg)");
    let text = String::from_utf8(output.stdout).unwrap();
    let mut pictures: Vec<(f64, bool)> = text
        .lines()
        .map(|line| {
            let (time, flags) = line.split_once(',').unwrap();
            (time.parse().unwrap(), flags.starts_with('K'))
        })
        .collect();
    pictures.sort_by(|a, b| a.0.total_cmp(&b.0));
    pictures.iter().enumerate().filter(|(_, picture)| picture.1).map(|(i, _)| i).collect()
}

fn footage(name: &str, encode: &str) -> (Folder, Title) {
    let folder = Folder::new(name);
    let source = make(&folder, "source.mp4", encode);
    let title = read(&remux(&source, "mp4", ""), 1 << 16);
    (folder, title)
}

#[test]
fn the_iframe_playlist_as_text() {
    let (_folder, title) = footage("iframe-text", "-c:v libx264 -preset veryfast -g 25 -an");
    let playlist = "\
#EXTM3U
#EXT-X-VERSION:7
#EXT-X-INDEPENDENT-SEGMENTS
#EXT-X-I-FRAMES-ONLY
#EXT-X-TARGETDURATION:1
#EXT-X-MEDIA-SEQUENCE:0
#EXT-X-PLAYLIST-TYPE:VOD
#EXT-X-MAP:URI=\"0/init.mp4?s=T\"
#EXTINF:1.000000,
0/iframe-0.m4s?s=T
#EXTINF:1.400000,
0/iframe-1.m4s?s=T
#EXT-X-ENDLIST
";
    let packaging = title.packaging(SECOND);
    assert_eq!(packaging.iframe_playlist(0, "?s=T").as_deref(), Some(playlist));
    let manifest = packaging.dash_manifest(&[0], "?s=T");
    let set = "\
<AdaptationSet id=\"1\" contentType=\"video\" mimeType=\"video/mp4\" segmentAlignment=\"true\" \
startWithSAP=\"1\" maxWidth=\"160\" maxHeight=\"90\">
<EssentialProperty schemeIdUri=\"http://dashif.org/guidelines/trickmode\" value=\"0\"/>
<Representation id=\"0-iframes\" codecs=\"avc1.64000b\" ";
    let (_, set) = manifest.split_once(set).unwrap_or_else(|| panic!("{set}\n{manifest}"));
    let rest = " width=\"160\" height=\"90\" maxPlayoutRate=\"25\" codingDependency=\"false\">
<SegmentTemplate timescale=\"12800\" startNumber=\"0\" initialization=\"0/init-dash.mp4?s=T\" \
media=\"0/iframe-$Number$.m4s?s=T\">
<SegmentTimeline>
<S t=\"0\" d=\"12800\"/>
<S d=\"17920\"/>
</SegmentTimeline>
</SegmentTemplate>
</Representation>
</AdaptationSet>
";
    assert!(set.contains(rest), "{rest}\n{manifest}");
}

#[test]
fn a_part_of_a_title_has_the_iframes_of_that_part() {
    let (folder, title) = footage("iframe-parts", "-c:v libx264 -preset veryfast -g 12 -c:a aac");
    let whole = title.packaging(SECOND);
    let start = Duration::from_millis(480);
    let part = whole.excerpt(&Excerpt { start, ..Excerpt::default() }).unwrap();
    title.write_hls(&part, &folder);
    let shown = decode_ours(&folder.file("0-iframes.m3u8"));
    let times: Vec<f64> = shown[0].iter().map(|frame| (frame.0 * 100.0).round()).collect();
    assert_eq!(times, [0.0, 96.0], "counted from the start of the part");
    // Pieces are due when a picture is shown, and the bytes are those of key frames.
    let due: Vec<u32> = part.iframe_runs(0).iter().map(|(_, due)| *due).collect();
    assert_eq!(due, [0, 960]);
}

#[test]
fn titles_without_a_second_key_frame_and_parts_that_skip_have_no_iframes() {
    let has = |packaging: &Packaging| {
        let manifests =
            packaging.multivariant_playlist(&[0], "") + &packaging.dash_manifest(&[0], "");
        let named = manifests.contains("I-FRAME") || manifests.contains("trickmode");
        let exists = packaging.iframe_playlist(0, "").is_some();
        assert!(named == exists && exists == packaging.iframe(0, 0).is_some(), "{manifests}");
        assert!(packaging.iframe(1, 0).is_none() && packaging.iframe_runs(1).is_empty(), "sound");
        assert!(packaging.iframe(0, u32::MAX).is_none() && packaging.iframe(9, 0).is_none());
        exists
    };
    let x264 = "-c:v libx264 -preset veryfast -c:a aac";
    let (_folder, title) = footage("iframe-many", &format!("{x264} -g 12"));
    let whole = title.packaging(SECOND);
    assert!(has(&whole));
    let skips = Excerpt { skip: 1, ..Excerpt::default() };
    assert!(!has(&whole.excerpt(&skips).unwrap()));
    let backwards = Excerpt { backwards: true, ..Excerpt::default() };
    assert!(!has(&whole.excerpt(&backwards).unwrap()));
    // Key frames of open groups follow pictures that a player which winds does not decode.
    let open = format!("{x264} -bf 2 -b_strategy 0 -g 24 -x264-params open-gop=1");
    let (_folder, title) = footage("iframe-open", &open);
    assert!(!has(&title.packaging(SECOND)));
    let (_folder, title) = footage("iframe-one", &format!("{x264} -g 250"));
    assert!(!has(&title.packaging(SECOND)));
}
