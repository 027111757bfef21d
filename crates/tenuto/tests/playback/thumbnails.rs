//! Thumbnails in real players: for each time the picture of the source.

use crate::chromium::{Row, assert_played};
use crate::files::ADMITS_ALL;
use crate::program::TestDir;
use crate::{dash, rules};
use std::process::Command;
use testkit::thumbnails::{Thumbnail, of_webvtt};

/// The length of the film in seconds: more thumbnails than an image has.
const SECONDS: usize = 30;

/// A film whose left half becomes brighter from black to white, with a key frame each second, and
/// with so many seconds of sound.
fn film(dir: &TestDir, sound: &str) -> String {
    let filter = format!(
        "color=white:s=160x180:r=25:d={SECONDS},fade=in:d={SECONDS}[a];\
         testsrc2=s=160x180:r=25:d={SECONDS}[b];[a][b]hstack"
    );
    let sound = format!("sine=440:d={sound}:r=48000");
    let words = "-c:v libx264 -preset ultrafast -g 25 -sc_threshold 0 -pix_fmt yuv420p -c:a aac";
    let mut args = vec!["-f", "lavfi", "-i", &sound, "-filter_complex", &filter];
    args.extend(words.split(' '));
    let source = dir.encode("film.mp4", &args);
    dir.ok("ingest a.store film.mp4 --thumbnails=1s");
    source
}

/// The pixels of a picture by FFmpeg, of which `filter` gives a part or a size: 20 x 20, in RGB.
fn pixels(input: &[&str], filter: &str) -> Vec<u8> {
    let filter = format!("{filter},scale=20:20:flags=area,format=rgb24");
    let output = Command::new("ffmpeg")
        .args(["-nostdin", "-v", "error"])
        .args(input)
        .args(["-vf", &filter, "-frames:v", "1", "-f", "rawvideo", "-"])
        .output()
        .expect("ffmpeg runs (apt-get install ffmpeg)");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.is_empty(), "{input:?}: {said}");
    output.stdout
}

/// The mean difference of two pictures, of 255.
fn difference(a: &[u8], b: &[u8]) -> f64 {
    assert_eq!((a.len(), b.len()), (1200, 1200));
    let sum: u32 = a.iter().zip(b).map(|(a, b)| u32::from(a.abs_diff(*b))).sum();
    f64::from(sum) / 1200.0
}

#[test]
fn thumbnails_are_the_pictures_of_the_source_at_their_times() {
    let dir = TestDir::with_store_of(96);
    // The packets of AAC end after the last picture otherwise.
    let source = film(&dir, "29.9");
    let told = dir.json("info a.store film");
    let told = ["count", "interval", "width", "height"].map(|name| &told["thumbnails"][name]);
    assert_eq!(told, [SECONDS, 1, 160, 90].map(serde_json::Value::from).each_ref());
    let server = dir.serve(ADMITS_ALL);
    rules::check(&dir, &server, "film");
    dash::check_manifest(&server, "film");
    let get = |uri: &str| server.get(&format!("/t/film/{uri}"));
    let all = of_webvtt(&get("thumbnails.vtt"), &mut |uri| Some(get(uri))).expect("valid cues");
    assert_eq!(all.len(), SECONDS);
    let sources: Vec<Vec<u8>> =
        (0..SECONDS).map(|s| pixels(&["-ss", &s.to_string(), "-i", &source], "null")).collect();
    for (number, Thumbnail { time, uri, place: [x, y, width, height] }) in all.iter().enumerate() {
        assert_eq!(time.start, number as u64 * 1000);
        let image = server.url(&format!("/t/film/{uri}"));
        let shown = pixels(&["-i", &image], &format!("crop={width}:{height}:{x}:{y}"));
        let differences: Vec<f64> = sources.iter().map(|it| difference(&shown, it)).collect();
        let nearest = (0..SECONDS).min_by(|a, b| differences[*a].total_cmp(&differences[*b]));
        assert_eq!(nearest, Some(number), "{differences:?}");
        assert!(differences[number] < 6.0, "{number}: {}", differences[number]);
    }
}

/// Each player finds the picture of a time, and shows it on a page of another origin. hls.js knows
/// no images and plays as if there were none.
#[test]
fn browsers_find_the_thumbnail_of_a_time() {
    let dir = TestDir::with_store_of(96);
    film(&dir, "30");
    let server = dir.serve(ADMITS_ALL);
    let row = |way, name: &str, said: &str| Row {
        title: "film",
        way,
        url: server.url(&format!("/t/film/{name}")),
        may_stall: false,
        said: said.to_owned(),
    };
    let found = "0 7 24 25 29, errors []";
    let rows = [
        row("dash-thumbnails", "manifest.mpd", found),
        row("shaka-thumbnails", "manifest.mpd", found),
        row("shaka-thumbnails", "master.m3u8", found),
        row("hls", "master.m3u8", "750 pictures, sound, errors []"),
    ];
    assert_played(&dir, &rows);
}
