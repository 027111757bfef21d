//! Films as they really come: from other times, other clocks and other people's encoders. Decoded
//! from everything that comes out, they are what they were.

use crate::chromium::{Row, assert_played};
use crate::files::ADMITS_ALL;
use crate::framemd5::{self, sorted};
use crate::program::TestDir;
use crate::rules;

/// Name of the film, and how FFmpeg makes it.
const FILMS: &[(&str, &str)] = &[
    (
        "b-pyramid.mkv",
        "PICTURES SOUND -c:v libx264 -pix_fmt yuv420p -bf 8 -x264-params b-pyramid=normal:ref=6:b-adapt=0 -c:a aac",
    ),
    (
        "open-groups.ts",
        "PICTURES SOUND -c:v libx264 -pix_fmt yuv420p -x264-params open-gop=1:keyint=12:b-adapt=0 -c:a aac",
    ),
    (
        "open-groups.mkv",
        "PICTURES SOUND -c:v libx265 -preset ultrafast -x265-params log-level=none:open-gop=1:keyint=12:bframes=3:b-pyramid=1 -c:a aac",
    ),
    (
        "ten-bits.mkv",
        "PICTURES SOUND -c:v libx265 -preset ultrafast -x265-params log-level=none -pix_fmt yuv420p10le -c:a aac",
    ),
    ("full-colour.mp4", "-f lavfi -i testsrc2=s=161x91:d=1 -c:v libx264 -pix_fmt yuv444p"),
    (
        "see-through.mov",
        "PICTURES SOUND -c:v prores_ks -profile:v 4 -pix_fmt yuva444p10le -c:a pcm_s24le",
    ),
    (
        "interlaced.ts",
        "PICTURES SOUND INTERLACED -c:v mpeg2video -flags +ildct+ilme -bf 2 -c:a ac3",
    ),
    ("interlaced.mxf", "PICTURES INTERLACED -r 25 -c:v mpeg2video -flags +ildct+ilme -bf 2"),
    ("clock-wraps.ts", "PICTURES SOUND X264 -output_ts_offset 95442.7 -c:a aac"),
    ("begins-at-seven.mkv", "PICTURES SOUND X264 -output_ts_offset 7 -c:a aac"),
    ("packed.avi", "PICTURES SOUND -c:v libxvid -bf 2 -c:a libmp3lame"),
    ("unpacked.avi", "PICTURES SOUND -c:v mpeg4 -bf 2 -c:a libmp3lame"),
    // H.264 in AVI has decoding times only.
    ("in-order.avi", "PICTURES SOUND X264 -bf 0 -c:a libmp3lame"),
    (
        "odd-clock.mp4",
        "-f lavfi -i testsrc2=s=160x90:r=24000/1001:d=2 SOUND X264 -video_track_timescale 90001 -c:a aac",
    ),
    ("odd-rate.mkv", "-f lavfi -i testsrc2=s=160x90:r=30000/1001:d=2 SOUND X264 -c:a aac"),
    ("slow.mkv", "-f lavfi -i testsrc2=s=160x90:r=1/5:d=30 X264"),
    ("one-picture.mp4", "PICTURES -frames:v 1 X264"),
    ("one-picture.avi", "PICTURES -frames:v 1 -c:v mjpeg -pix_fmt yuvj420p"),
    ("two-pictures.ts", "PICTURES -frames:v 2 X264"),
    (
        "hidden-pictures.webm",
        "PICTURES -c:v libvpx-vp9 -cpu-used 8 -auto-alt-ref 1 -lag-in-frames 16",
    ),
    ("six-channels.mkv", "PICTURES SIX X264 -c:a aac"),
    ("six-channels.mov", "PICTURES SIX X264 -c:a pcm_s24le"),
    ("44100.mkv", "PICTURES SOUND X264 -ar 44100 -c:a flac"),
    ("96000.mp4", "PICTURES SOUND X264 -ar 96000 -c:a aac"),
    ("96000.mov", "PICTURES SOUND X264 -ar 96000 -c:a pcm_f32le"),
    ("short-sound.mp4", "PICTURES SOUND X264 -af atrim=duration=0.5 -c:a aac"),
    ("short-pictures.mp4", "PICTURES SOUND X264 -vf trim=duration=0.5 -c:a aac"),
    (
        "two-languages.mp4",
        "PICTURES SOUND SOUND -map 0 -map 1 -map 2 X264 -metadata:s:a:1 language=fra -c:a aac",
    ),
    ("fragments.mp4", "PICTURES SOUND X264 -movflags frag_keyframe+empty_moov -c:a aac"),
];

#[test]
fn odd_films_come_out_as_they_went_in() {
    let dir = TestDir::with_store_of(96);
    let mut films: Vec<(&str, String)> =
        FILMS.iter().map(|(name, words)| (*name, dir.encode(name, &args(words)))).collect();
    films.push(("clock-jumps.ts", jumping_clock(&dir)));
    films.push(("new-sets.ts", new_sets(&dir)));
    films.push(("described.mkv", described(&dir)));
    for (name, path) in &films {
        dir.ingest(path, name);
    }
    let server = dir.serve(ADMITS_ALL);
    let mut in_browser = Vec::new();
    for (name, path) in &films {
        rules::check(&server, name);
        let source = sorted(framemd5::decode_anyway(path));
        let export = dir.export(name);
        let progressive = server.url(&format!("/t/{name}.mp4"));
        let hls = server.url(&format!("/t/{name}/master.m3u8"));
        let got = framemd5::decode_each([&export, &progressive, &hls]).map(sorted);
        for (way, got) in ["export", "progressive", "hls"].into_iter().zip(got) {
            framemd5::assert_same(&format!("{name} by {way}"), &source, &got, TOLERANCE_MS);
        }
        if IN_BROWSER.contains(name) {
            let of = |kind: &str| source.iter().find(|stream| stream.kind == kind);
            let pictures = of("video").map_or(0, |stream| stream.frames.len());
            let sound = if of("audio").is_some() { "sound" } else { "no sound" };
            let said = format!("{pictures} pictures, {sound}, errors []");
            for (way, path) in
                [("hls", format!("/t/{name}/master.m3u8")), ("mp4", format!("/t/{name}.mp4"))]
            {
                let said = said.clone();
                // A track that ends before another: whether the other is whole in the buffer by
                // then depends on how loaded the machine is.
                let may_stall = name.starts_with("short-");
                in_browser.push(Row { title: name, way, url: server.url(&path), may_stall, said });
            }
        }
    }
    assert_eq!(in_browser.len(), 2 * IN_BROWSER.len());
    assert_played(&dir, &in_browser);
}

/// The films whose codecs the browser decodes, from HLS and MP4: it plays them to their ends with
/// every picture.
const IN_BROWSER: &[&str] = &[
    "b-pyramid.mkv",
    "open-groups.ts",
    "clock-wraps.ts",
    "begins-at-seven.mkv",
    "odd-clock.mp4",
    "odd-rate.mkv",
    "two-pictures.ts",
    "hidden-pictures.webm",
    "six-channels.mkv",
    "44100.mkv",
    "96000.mp4",
    "short-sound.mp4",
    "short-pictures.mp4",
    "two-languages.mp4",
    "fragments.mp4",
    "clock-jumps.ts",
    "new-sets.ts",
    "described.mkv",
];

/// Two recordings of one station, one after the other: its clock jumps by a minute and a half.
fn jumping_clock(dir: &TestDir) -> String {
    joined(dir, "clock-jumps.ts", ["-output_ts_offset 0", "-output_ts_offset 90"])
}

/// Two recordings with other parameter sets under the same numbers, one after the other.
fn new_sets(dir: &TestDir) -> String {
    let sets = |cabac, at| format!("-x264-params 8x8dct=1:cabac={cabac} -output_ts_offset {at}");
    joined(dir, "new-sets.ts", [&sets(0, 0), &sets(1, 90)])
}

/// Two recordings, one after the other, made with these words.
fn joined(dir: &TestDir, name: &str, words: [&str; 2]) -> String {
    let part = |part: &str, words: &str| {
        let words = format!("PICTURES SOUND X264 -c:a aac {words}");
        std::fs::read(dir.encode(&format!("{part}-{name}"), &args(&words))).expect("just made")
    };
    let both = [part("before", words[0]), part("after", words[1])].concat();
    let path = dir.at(name);
    std::fs::write(&path, both).expect("a file in the test's folder");
    path
}

/// With a description longer than FFmpeg can put into a header that goes through a pipe.
fn described(dir: &TestDir) -> String {
    let description = format!("comment={}", "words ".repeat(10_000));
    let mut args = args("PICTURES SOUND X264 -c:a aac -metadata");
    args.push(&description);
    dir.encode("described.mkv", &args)
}

fn args(words: &str) -> Vec<&str> {
    let long = |word| SHORTHAND.iter().find(|it| it.0 == word).map_or(word, |it| it.1);
    words.split(' ').flat_map(|word| long(word).split(' ')).collect()
}

const SHORTHAND: &[(&str, &str)] = &[
    ("PICTURES", "-f lavfi -i testsrc2=s=160x96:r=25:d=2"),
    ("SOUND", "-f lavfi -i sine=440:d=2:r=48000"),
    ("SIX", "-f lavfi -i anoisesrc=d=2:r=48000,aformat=channel_layouts=5.1"),
    ("X264", "-c:v libx264 -preset ultrafast -bf 2 -b_strategy 0 -g 12 -pix_fmt yuv420p"),
    ("INTERLACED", "-vf fps=50,tinterlace=interleave_top"),
];

// Matroska rounds times to a millisecond.
const TOLERANCE_MS: i64 = 2;
