//! DASH: FFmpeg, GStreamer, and dash.js and Shaka in Chromium decode what went in.
//!
//! FFmpeg's DASH reader ends when one track has ended, and leaves out what is left of the others:
//! what it reads from its own DASH of the same source shows how much.

use crate::chromium::{Row, assert_played, assert_reported};
use crate::films::{self, FILMS, Film, PICTURES};
use crate::framemd5::{self, Frames};
use crate::gstreamer;
use crate::program::{Served, TestDir};

/// A title of each video codec that FFmpeg writes into DASH, and of sound alone.
const TITLES: &[&str] = &["h264-aac", "h264-flac", "hevc-opus", "av1-aac", "vp9-opus", "aac"];

/// Two segments of each title, so that players go from one to the next; and as in `ADMITS_ALL`.
const SEGMENTS: &str = "--segment 1s --admission none --buffered";

#[test]
fn ffmpeg_and_gstreamer_decode_the_frames_of_the_source() {
    let dir = films::stored();
    let films: Vec<&Film> = FILMS.iter().filter(|film| TITLES.contains(&film.title)).collect();
    assert_eq!(films.len(), TITLES.len());
    let server = dir.serve(SEGMENTS);
    for film in films {
        let (title, source) = (film.title, &film.path(&dir));
        check_manifest(&server, title);
        let address = server.url(&format!("/t/{title}/manifest.mpd"));
        let own = dir.remux(source, "dash");
        let [wanted, own, got] =
            framemd5::decode_each([source, &own, &address]).map(framemd5::sorted);
        let by_number = got.clone();
        for ((wanted, mut own), mut got) in wanted.iter().zip(own).zip(got) {
            let content = |stream: &Frames| stream.frames[0].1.clone();
            // FFmpeg applies no edit list to AAC in fragments, so that it decodes the priming, too.
            if content(&got) != content(wanted) && content(&got) == content(&own) {
                got.behead();
                own.behead();
            }
            let what = format!("{title} by dash ({})", wanted.kind);
            let (count, least) = (got.frames.len(), own.frames.len());
            assert!(count >= least, "{what}: {count} frames, {least} from FFmpeg's own DASH");
            let wanted = vec![without_lost(&what, wanted, &got)];
            framemd5::assert_same(&what, &wanted, &[cut_last(&got)], TOLERANCE_MS);
        }
        assert_plays_in_gstreamer(&dir, (film, source), "playbin3", &address);
        if film.title == "h264-aac" {
            let files = server.url(&format!("/t/{title}/ondemand.mpd"));
            let whole = framemd5::sorted(framemd5::decode(&files));
            assert!(whole.iter().all(|stream| stream.frames.len() > TAIL), "{files}");
            framemd5::assert_same(&files, &by_number, &whole, TOLERANCE_MS);
            // The DASH of playbin3 ends after the first segment of files with an index, FFmpeg's
            // own as well.
            assert_plays_in_gstreamer(&dir, (film, source), "playbin", &files);
        }
    }
}

fn assert_plays_in_gstreamer(
    dir: &TestDir,
    (film, source): (&Film, &str),
    player: &str,
    address: &str,
) {
    let (pictures, sound) = gstreamer::play_by(dir, player, address);
    assert!(pictures == gstreamer::pictures_of_source(film, source), "{address} in GStreamer");
    assert!(!sound.is_empty(), "{address}: GStreamer plays sound");
}

/// The frames of the source that were read: those that were not are among the last.
fn without_lost(what: &str, wanted: &Frames, got: &Frames) -> Frames {
    let mut stream = cut_last(wanted);
    if stream.frames.len() > got.frames.len() {
        let last = stream.frames.len() - TAIL;
        let read: Vec<&String> = got.frames.iter().map(|frame| &frame.1).collect();
        let mut number = 0;
        stream.frames.retain(|frame| {
            number += 1;
            number <= last || read.contains(&&frame.1)
        });
    }
    assert_eq!(stream.frames.len(), got.frames.len(), "{what}: frames");
    cut_last(&stream)
}

/// Without the content of the last frame of sound, which an edit list or a trimmed end may cut.
fn cut_last(stream: &Frames) -> Frames {
    let mut stream = stream.clone();
    if let Some(last) = stream.frames.last_mut().filter(|_| stream.kind == "audio") {
        last.1 = "cut".to_owned();
    }
    stream
}

/// The number of last frames of a stream of which FFmpeg's DASH reader may lose some.
const TAIL: usize = 6;

/// The rules of ISO/IEC 23009-1 on the served title.
pub(crate) fn check_manifest(server: &Served, title: &str) {
    let folder = format!("/t/{title}/");
    for name in ["manifest.mpd", "ondemand.mpd"] {
        let manifest = String::from_utf8(server.get(&format!("{folder}{name}")));
        let manifest = manifest.expect("a manifest is UTF-8");
        let fetch = &mut |uri: &str| server.find(&format!("{folder}{uri}")).ok();
        testkit::dash::check(title, &manifest, fetch);
    }
}

/// Titles whose tracks begin together, so that no player has a gap to skip, or to warn of.
const IN_BROWSER: &[(&str, &str)] = &[
    ("h264-aac.mp4", "PICTURES SOUND X264 -c:a aac"),
    ("h264-flac.mp4", "PICTURES SOUND X264 -c:a flac"),
    ("h264-opus.mp4", "PICTURES SOUND X264 -c:a libopus"),
    ("av1-aac.mp4", "PICTURES SOUND -c:v libsvtav1 -preset 12 -g 25 -pix_fmt yuv420p -c:a aac"),
    (
        "vp9-opus.mp4",
        "PICTURES SOUND -c:v libvpx-vp9 -deadline realtime -cpu-used 8 -g 25 -c:a libopus",
    ),
    (
        "two-languages.mp4",
        "PICTURES SOUND SOUND -map 0 -map 1 -map 2 X264 -metadata:s:a:1 language=fra -c:a aac",
    ),
    ("aac.m4a", "SOUND -c:a aac"),
];

/// Titles that are played as files with an index, too.
const FILES: [&str; 3] = ["h264-aac.mp4", "vp9-opus.mp4", "aac.m4a"];
const MANIFESTS: [&str; 2] = ["manifest.mpd", "ondemand.mpd"];

const SHORTHAND: &[(&str, &str)] = &[
    ("PICTURES", "-f lavfi -i testsrc2=s=320x180:r=25:d=2"),
    ("SOUND", "-f lavfi -i sine=440:d=2:r=48000"),
    ("X264", "-c:v libx264 -preset ultrafast -bf 2 -b_strategy 0 -g 25 -pix_fmt yuv420p"),
];

#[test]
fn dash_js_and_shaka_play_to_the_end_without_a_warning() {
    let dir = TestDir::with_store_of(96);
    for (title, words) in IN_BROWSER {
        let words = SHORTHAND.iter().fold((*words).to_owned(), |w, (a, b)| w.replace(a, b));
        let args: Vec<&str> = words.split(' ').chain(["-strict", "-2"]).collect();
        dir.ingest(&dir.encode(title, &args), title);
    }
    let server = dir.serve(SEGMENTS);
    let mut rows = Vec::new();
    for (title, _) in IN_BROWSER {
        check_manifest(&server, title);
        let pictures = if title.ends_with(".m4a") { 0 } else { PICTURES };
        let manifests = if FILES.contains(title) { &MANIFESTS[..] } else { &MANIFESTS[..1] };
        for (name, way) in manifests.iter().flat_map(|name| [(name, "dash"), (name, "shaka")]) {
            let url = server.url(&format!("/t/{title}/{name}"));
            let said = format!("{pictures} pictures, sound, errors []");
            rows.push(Row { title, way, url, may_stall: false, said });
        }
    }
    assert_played(&dir, &rows);
    assert_reported(&server);
}

/// A player that winds gets I-frames instead of all pictures, in DASH and in HLS.
#[test]
fn shaka_winds_with_iframes() {
    let dir = TestDir::with_store_of(96);
    // Longer than Shaka fetches ahead before it winds.
    let words =
        "-f lavfi -i testsrc2=s=320x180:r=25:d=20 -f lavfi -i sine=440:d=20:r=48000 X264 -c:a aac";
    let words = SHORTHAND.iter().fold(words.to_owned(), |w, (a, b)| w.replace(a, b));
    let args: Vec<&str> = words.split(' ').collect();
    dir.ingest(&dir.encode("film.mp4", &args), "film");
    let server = dir.serve(SEGMENTS);
    check_manifest(&server, "film");
    let row = |name: &str| Row {
        title: "film",
        way: "shaka-winds",
        url: server.url(&format!("/t/film/{name}")),
        may_stall: false,
        said: "I-frames, errors []".to_owned(),
    };
    assert_played(&dir, &[row("manifest.mpd"), row("master.m3u8")]);
}

/// `tenuto play` counts the same play-out time from DASH as from HLS.
#[test]
fn tenuto_play_plays_dash() {
    let dir = TestDir::with_store_of(96);
    let film = FILMS.iter().find(|film| film.title == "h264-aac").expect("a film");
    film.take_in(&dir);
    let server = dir.serve(SEGMENTS);
    let played = |address: &str, form: &str| {
        let report = dir.tenuto(&["play", address, "--form", form, "--strict", "--json"]);
        let report: serde_json::Value = serde_json::from_str(&report).expect("JSON");
        let totals = &report["totals"];
        assert_eq!((&totals["stalls"], &totals["refused"]), (&0.into(), &0.into()), "{report}");
        totals["bytes"].as_u64().expect("a number")
    };
    let hls = played(&server.url("/"), "hls");
    let dash = played(&server.url("/"), "dash");
    let single = played(&server.url("/t/h264-aac/manifest.mpd"), "hls");
    assert_eq!(dash, single);
    // Manifests and initialization segments differ, the media does not.
    assert!(hls.abs_diff(dash) < 4096, "{hls} bytes of HLS, {dash} of DASH");
}

// Matroska rounds times to a millisecond.
const TOLERANCE_MS: i64 = 2;
