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

/// The pixels of pictures by FFmpeg, which `filters` make of the inputs: 20 x 20 each, in RGB.
fn pixels(inputs: &[String], filters: &str) -> Vec<Vec<u8>> {
    let filters = format!("{filters},scale=20:20:flags=area,format=rgb24");
    let mut ffmpeg = Command::new("ffmpeg");
    ffmpeg.args(["-nostdin", "-v", "error"]);
    for input in inputs {
        ffmpeg.args(["-i", input]);
    }
    ffmpeg.args(["-filter_complex", &filters, "-fps_mode", "passthrough", "-f", "rawvideo", "-"]);
    let output = ffmpeg.output().expect("ffmpeg runs (apt-get install ffmpeg)");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.is_empty(), "{inputs:?}: {said}");
    output.stdout.chunks(20 * 20 * 3).map(<[u8]>::to_owned).collect()
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
    rules::check(&server, "film");
    dash::check_manifest(&server, "film");
    let get = |uri: &str| server.get(&format!("/t/film/{uri}"));
    let all = of_webvtt(&get("thumbnails.vtt"), &mut |uri| Some(get(uri))).expect("valid cues");
    assert_eq!(all.len(), SECONDS);
    let sources = pixels(&[source], "select=not(mod(n\\,25))");
    assert_eq!(sources.len(), SECONDS);
    // The image of each thumbnail is an input, of which one picture is a part.
    let images: Vec<String> =
        all.iter().map(|it| server.url(&format!("/t/film/{}", it.uri))).collect();
    let part = |(number, Thumbnail { place: [x, y, width, height], .. }): (usize, &Thumbnail)| {
        format!("[{number}]crop={width}:{height}:{x}:{y}[part{number}];")
    };
    let parts: String = all.iter().enumerate().map(part).collect();
    let labels: String = (0..SECONDS).map(|number| format!("[part{number}]")).collect();
    let shown = pixels(&images, &format!("{parts}{labels}concat=n={SECONDS}"));
    assert_eq!(shown.len(), SECONDS);
    for (number, (Thumbnail { time, .. }, shown)) in all.iter().zip(&shown).enumerate() {
        assert_eq!(time.start, number as u64 * 1000);
        let differences: Vec<f64> = sources.iter().map(|it| difference(shown, it)).collect();
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
