//! HLS with transport streams: FFmpeg and GStreamer decode what went in, and hls.js plays it; mpv
//! and VLC are in `desktop`.

use crate::chromium::{Row, assert_played};
use crate::films::{self, FILMS, Film, PICTURES};
use crate::framemd5::{self, Frames};
use crate::gstreamer;
use crate::program::{Served, TestDir};

/// Titles whose codecs have a form in a transport stream.
pub(crate) const TITLES: &[&str] =
    &["h264-aac", "h264-latm", "h264-mp3", "h264-ac3", "hevc-aac", "mpeg2-ac3", "aac", "mp3"];

/// Two segments of each title, so that players go from one to the next; and as in `ADMITS_ALL`.
const SEGMENTS: &str = "--segment 1s --admission none";

fn films() -> Vec<&'static Film> {
    let films: Vec<&Film> = FILMS.iter().filter(|film| TITLES.contains(&film.title)).collect();
    assert_eq!(films.len(), TITLES.len());
    films
}

#[test]
fn ffmpeg_and_gstreamer_decode_the_frames_of_the_source() {
    let dir = films::stored();
    let server = dir.serve(SEGMENTS);
    for film in films() {
        let (title, source) = (film.title, &film.path(&dir));
        check_playlists(&server, title);
        let address = server.url(&format!("/t/{title}/master-ts.m3u8"));
        assert_same_frames(title, source, &address);
        let (pictures, sound) = gstreamer::play(&dir, &address);
        assert!(pictures == gstreamer::pictures_of_source(film, source), "{title} in GStreamer");
        assert!(!sound.is_empty(), "{title}: GStreamer plays sound");
        if title == "h264-aac" {
            let address =
                server.url(&format!("/t/{title}.ts?rate={}", lowest_rate(&server, title)));
            assert_same_frames(title, source, &address);
        }
    }
}

/// The lowest constant rate of a title, as the refusal of a lower one names it.
fn lowest_rate(server: &Served, title: &str) -> u64 {
    let refused = server.request(&format!("/t/{title}.ts?rate=1kbps")).expect_err("too low");
    let (_, rates) = refused.split_once("rate=").expect("a hint");
    rates.split(' ').next().and_then(|rate| rate.parse().ok()).expect("a rate")
}

/// FFmpeg decodes from a transport stream what it decodes from the source, at the same times.
pub(crate) fn assert_same_frames(title: &str, source: &str, address: &str) {
    let [wanted, got] = framemd5::decode_each([source, address]).map(framemd5::sorted);
    assert_eq!(wanted.len(), got.len(), "{title}: streams");
    let mut begins = Vec::new();
    for (wanted, got) in wanted.iter().zip(&got) {
        begins.push(match wanted.kind.as_str() {
            "audio" => assert_same_sound(title, wanted, got),
            _ => {
                let pair = [wanted, got].map(|stream| vec![stream.clone()]);
                framemd5::assert_same(title, &pair[0], &pair[1], TOLERANCE_MS);
                got.start - wanted.start
            }
        });
    }
    let apart =
        begins.iter().max().zip(begins.iter().min()).map_or(0, |(most, least)| most - least);
    assert!(apart <= TOLERANCE_MS, "{title}: sound and pictures are {apart} ms apart");
}

/// Every frame of sound but the first and last, which the source may cut, at the same times; by how
/// much they are later than in the source. A transport stream cannot say what an encoder has put
/// before and behind the sound, so that players decode that, too.
fn assert_same_sound(title: &str, wanted: &Frames, got: &Frames) -> i64 {
    let sums = |stream: &Frames| stream.frames.iter().map(|it| it.1.clone()).collect::<Vec<_>>();
    let (inner, all) = (sums(wanted)[1..wanted.frames.len() - 1].to_vec(), sums(got));
    let at = all.windows(inner.len()).position(|window| window == inner);
    let at = at.unwrap_or_else(|| panic!("{title}: other frames of sound"));
    assert!(all.len() - inner.len() <= 5, "{title}: {} frames of sound", all.len());
    let later = got.start + got.frames[at].0 - wanted.start - wanted.frames[1].0;
    for (wanted_frame, frame) in wanted.frames[1..=inner.len()].iter().zip(&got.frames[at..]) {
        let off = got.start + frame.0 - wanted.start - wanted_frame.0 - later;
        assert!(off.abs() <= TOLERANCE_MS, "{title}: sound at {} is {off} ms off", frame.0);
    }
    later
}

/// The rules of ISO/IEC 13818-1 and RFC 8216 on the served title.
fn check_playlists(server: &Served, title: &str) {
    let folder = format!("/t/{title}/");
    let multivariant = String::from_utf8(server.get(&format!("{folder}master-ts.m3u8")));
    let multivariant = multivariant.expect("a playlist is UTF-8");
    testkit::ts::check_hls(title, &multivariant, &mut |uri| server.get(&format!("{folder}{uri}")));
}

/// A title of 40 s: GStreamer 1.22's newer reader of HLS may fail with transport streams that it
/// has wholly downloaded before it begins to play, with those of FFmpeg, too.
#[test]
fn the_newer_hls_reader_of_gstreamer_plays_all_pictures() {
    let dir = TestDir::with_store_of(96);
    let words = "-f lavfi -i testsrc2=s=64x36:r=25:d=40 -f lavfi -i sine=440:d=40:r=48000 \
                 -c:v libx264 -preset ultrafast -bf 2 -g 25 -pix_fmt yuv420p -c:a aac -shortest";
    let source = dir.encode("film.mp4", &words.split_whitespace().collect::<Vec<_>>());
    dir.ingest(&source, "film");
    let server = dir.serve(SEGMENTS);
    let address = server.url("/t/film/master-ts.m3u8");
    let (pictures, sound) = gstreamer::play_by(&dir, "playbin3", &address);
    let frames = framemd5::sorted(framemd5::decode(&source)).remove(0).frames.len();
    assert_eq!((frames, pictures.len()), (1000, 1000 * 64 * 36 * 3 / 2));
    let instants = sound.len() / 2;
    assert!((40 * 48_000..40 * 48_000 + 4096).contains(&instants), "{instants} instants of sound");
}

/// Pictures, and sound whose priming begins with them: no player has a gap to skip, or to warn of.
const IN_BROWSER: &[(&str, &str)] = &[
    (
        "h264-aac.mp4",
        "-f lavfi -i testsrc2=s=320x180:r=25:d=2 -itsoffset 0.021333 -f lavfi -i sine=440:d=2:r=48000 \
         -c:v libx264 -preset ultrafast -bf 2 -g 25 -pix_fmt yuv420p -c:a aac",
    ),
    ("aac.m4a", "-f lavfi -i sine=440:d=2:r=48000 -c:a aac"),
];

#[test]
fn hls_js_plays_to_the_end_without_an_error() {
    let dir = TestDir::with_store_of(96);
    for (title, words) in IN_BROWSER {
        let words: Vec<&str> = words.split_whitespace().collect();
        dir.ingest(&dir.encode(title, &words), title);
    }
    let server = dir.serve(SEGMENTS);
    let row = |(title, _): &(&'static str, &str)| Row {
        title,
        way: "hls",
        url: server.url(&format!("/t/{title}/master-ts.m3u8")),
        may_stall: false,
        said: format!(
            "{} pictures, sound, errors []",
            if title.ends_with(".m4a") { 0 } else { PICTURES }
        ),
    };
    assert_played(&dir, &IN_BROWSER.iter().map(row).collect::<Vec<_>>());
}

// Matroska rounds times to a millisecond.
const TOLERANCE_MS: i64 = 2;
