//! Parts of a film in GStreamer, in FFmpeg and in `tenuto play`: the very pictures that were asked
//! for, and no others.

use crate::chromium::{Row, assert_played_over};
use crate::files::ADMITS_ALL;
use crate::gstreamer;
use crate::program::TestDir;
use serde_json::Value;
use std::process::Command;

/// Six seconds with a key frame in each.
const FILM: &str = "-f lavfi -i testsrc2=s=320x180:r=25:d=6 -f lavfi -i sine=440:d=6:r=48000 \
    -c:v libx264 -preset ultrafast -bf 2 -g 25 -sc_threshold 0 -pix_fmt yuv420p -c:a aac";
const GROUP: usize = 25;

/// A query, `tenuto play`'s words for it, and the seconds that are shown.
const PARTS: &[(&str, &[&str], &[usize])] = &[
    ("start=2&stop=4", &["--from", "2s", "--to", "4s"], &[2, 3]),
    ("skip=1", &["--skip", "1"], &[0, 2, 4]),
    ("speed=-2&skip=2", &["--speed", "-2", "--skip", "2"], &[3, 0]),
    ("speed=2", &["--speed", "2"], &[0, 1, 2, 3, 4, 5]),
];

#[test]
fn parts_are_played_by_real_players() {
    let dir = TestDir::with_store_of(96);
    let source = dir.encode("film.mkv", &FILM.split_whitespace().collect::<Vec<_>>());
    dir.ingest(&source, "film");
    let server = dir.serve(ADMITS_ALL);
    let whole = pictures(&source);
    let size = whole.len() / (6 * GROUP);
    for (query, words, seconds) in PARTS {
        let second = |s: &usize| &whole[s * GROUP * size..(s + 1) * GROUP * size];
        let wanted: Vec<u8> = seconds.iter().flat_map(second).copied().collect();
        let address = server.url(&format!("/t/film/master.m3u8?{query}"));
        let (shown, _) = gstreamer::play(&dir, &address);
        assert_eq!(shown.len() / size, wanted.len() / size, "{query}: pictures");
        assert!(shown == wanted, "{query}: GStreamer shows other pictures");

        let saved = dir.at("saved.mp4");
        let address = server.url("/t/film/master.m3u8");
        let mut args = vec!["play", &address, "--save", &saved, "--destroy", "--json"];
        args.extend(*words);
        let report = dir.tenuto(&args);
        let report: Value = serde_json::from_str(&report).expect("JSON");
        assert_eq!(report["parameters"]["view"], *query);
        let track = [dir.at("saved.video.mp4"), saved];
        let track = track.iter().find(|path| std::path::Path::new(path).exists());
        let kept = pictures(track.expect("what was seen is kept"));
        assert!(kept == wanted, "{query}: tenuto play saved other pictures");
        for name in ["saved.mp4", "saved.video.mp4", "saved.audio.mp4"] {
            let _ = std::fs::remove_file(dir.at(name));
        }
    }
}

/// Viewers in each protocol change the speed while they watch, and come to the end, or backwards
/// to the start.
#[test]
fn viewers_change_the_speed_while_they_watch() {
    let dir = TestDir::with_store_of(96);
    let source = dir.encode("film.mkv", &FILM.split_whitespace().collect::<Vec<_>>());
    dir.ingest(&source, "film");
    let [_, _, high, low] = std::process::id().to_be_bytes();
    let listen = format!("127.{high}.{low}.3:8554");
    let server = dir.serve(&format!("{ADMITS_ALL} --rtsp {listen}"));
    let pull = ["master.m3u8", "manifest.mpd"].map(|name| server.url(&format!("/t/film/{name}")));
    let forwards = [server.url("/t/film.mp4"), format!("rtsp://{listen}/t/film")];
    let all = pull.iter().chain(&forwards).collect();
    let rows: [(&str, Vec<&String>, &str); 2] = [
        ("forwards", all, "2500ms speed 4"),
        ("backwards", pull.iter().collect(), "2s speed 0.5; 3s speed -4"),
    ];
    std::thread::scope(|scope| {
        for (name, addresses, behaviour) in rows {
            let dir = &dir;
            scope.spawn(move || {
                let file = dir.at(name);
                std::fs::write(&file, behaviour).expect("the test's folder");
                let viewers = addresses.len().to_string();
                let mut args = vec!["play", "--behaviour", &file, "--viewers", &viewers, "--json"];
                args.extend(addresses.iter().map(|address| address.as_str()));
                let report: Value = serde_json::from_str(&dir.tenuto(&args)).expect("JSON");
                assert_eq!(report["totals"]["finished"], addresses.len(), "{name}: {report:#}");
                assert_eq!(report["totals"]["refused_speeds"], 0, "{name}");
            });
        }
    });
}

/// Six seconds of about 1.4 Mb/s.
const PICTURES: &str = "-f lavfi -i testsrc2=s=480x270:r=25:d=6,noise=alls=12:allf=t \
    -c:v libx264 -preset veryfast -b:v 1400k -g 25 -sc_threshold 0 -bf 2";

/// A viewer of RTSP whose new speed is refused watches to the end as before.
#[test]
fn a_refused_speed_leaves_a_viewer_of_rtsp_as_it_was() {
    let dir = TestDir::with_store_of(96);
    let source = dir.encode("film.mkv", &PICTURES.split_whitespace().collect::<Vec<_>>());
    dir.ingest(&source, "film");
    let [_, _, high, low] = std::process::id().to_be_bytes();
    let listen = format!("127.{high}.{low}.4:8554");
    // Enough for a read in the start-up time, and for no higher speed.
    let limits = "--network 4500kbps --segment 1s --read-size 256KiB --wait 0s";
    let server = dir.serve(&format!("{limits} --rtsp {listen}"));
    let file = dir.at("faster");
    std::fs::write(&file, "800ms speed 64").expect("the test's folder");
    let address = format!("rtsp://{listen}/t/film");
    let args = ["play", "--behaviour", &file, "--start-buffer", "200ms", "--json", &address];
    let report: Value = serde_json::from_str(&dir.tenuto(&args)).expect("JSON");
    let totals = ["finished", "failed", "refused_speeds"].map(|name| &report["totals"][name]);
    assert_eq!(totals, [1, 0, 1], "{report:#}");
    let played = report["totals"]["played_s"].as_f64().unwrap();
    assert!((5.9..6.1).contains(&played), "{report:#}");

    // Over an access of half the rate a viewer gets everything, later.
    let args = ["play", "--to", "1s", "--bandwidth", "700kbps", "--start-buffer", "200ms"];
    let report = dir.tenuto(&[&args[..], &["--json", &address]].concat());
    let report: Value = serde_json::from_str(&report).expect("JSON");
    assert_eq!(report["totals"]["finished"], 1, "{report:#}");
    assert!(report["totals"]["stalled_s"].as_f64() > Some(0.3), "{report:#}");
    drop(server);
}

/// Pictures of which each is a little brighter than the one before: 70 of 25 in a second, with a
/// key frame each 12, and a tone.
const BRIGHTER: &str = "-f lavfi -i nullsrc=s=64x64:r=25:d=2.8,format=gray,geq=lum=16+3*N \
    -f lavfi -i sine=440:d=2.8:r=48000 -c:v libx264 -preset veryfast -crf 4 -bf 2 -g 12 \
    -sc_threshold 0 -pix_fmt yuv420p -c:a aac";

/// In a browser, the first and the last picture of a clip from the middle of one group of pictures
/// to the middle of another, 15 to 43. DASH has no means to start later than with a key frame, the
/// 12th; segments have what is decoded before the last picture, here until the 45th. Of transport
/// streams hls.js counts times from the first decode time, which two B-frames put two pictures
/// before the first picture.
///
/// The whole title is sought in. All of it goes over TLS, where browsers speak HTTP/2.
#[test]
fn a_clip_is_exact_in_chromium() {
    let dir = TestDir::with_store_of(96);
    let source = dir.encode("clip.mp4", &BRIGHTER.split_whitespace().collect::<Vec<_>>());
    dir.ingest(&source, "clip");
    let made = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
    std::fs::write(dir.path("cert.pem"), made.cert.pem()).expect("the test's folder");
    std::fs::write(dir.path("key.pem"), made.signing_key.serialize_pem()).expect("the same");
    let tls = "--tls-certificate cert.pem --tls-key key.pem";
    let server = dir.serve(&format!("{ADMITS_ALL} --segment 1s {tls}"));
    let clip = "?start=0.6&stop=1.76";
    let ways = [
        ("mp4-clip", "/t/clip.mp4", clip, "15 to 43"),
        ("hls-clip", "/t/clip/master.m3u8", clip, "15 to 45"),
        ("hls-clip", "/t/clip/master-ts.m3u8", clip, "13 to 45"),
        ("shaka-clip", "/t/clip/master.m3u8", clip, "15 to 45"),
        ("dash-clip", "/t/clip/manifest.mpd", clip, "12 to 45"),
        ("shaka-clip", "/t/clip/manifest.mpd", clip, "12 to 45"),
        ("hls-seek", "/t/clip/master.m3u8", "", "0 to 69 by way of 38"),
        ("dash-seek", "/t/clip/manifest.mpd", "", "0 to 69 by way of 38"),
        ("shaka-seek", "/t/clip/manifest.mpd", "", "0 to 69 by way of 38"),
    ];
    let rows: Vec<Row<'_>> = ways
        .into_iter()
        .map(|(way, path, query, pictures)| Row {
            title: path,
            way,
            url: server.url(&format!("{path}{query}")),
            may_stall: false,
            said: format!("pictures {pictures}, errors []"),
        })
        .collect();
    assert_played_over(&dir, &rows, &["h2: m3u8 m4s mp4 mpd ts"]);
}

/// All pictures that FFmpeg decodes, one after the other.
fn pictures(source: &str) -> Vec<u8> {
    let output = Command::new("ffmpeg")
        .args(["-nostdin", "-v", "error", "-i", source, "-fps_mode", "passthrough"])
        .args(["-f", "rawvideo", "-pix_fmt", "yuv420p", "-"])
        .output()
        .expect("ffmpeg runs (apt-get install ffmpeg)");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}
