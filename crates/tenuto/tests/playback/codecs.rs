//! Every codec and container that goes in, decoded from everything that comes out: same frames,
//! same number, same order, same times as the source.

use crate::framemd5::{self, Frames};
use crate::house::House;

/// One film: how FFmpeg makes it, and how its audio may honestly differ.
struct Film {
    name: &'static str,
    extension: &'static str,
    encode: &'static str,
    trimmed_end: bool,
    regrouped: bool,
    unprimed_hls: bool,
}

const fn film(name: &'static str, extension: &'static str, encode: &'static str) -> Film {
    Film { name, extension, encode, trimmed_end: false, regrouped: false, unprimed_hls: false }
}

/// The source cuts its last audio packet short (Matroska's discard padding, LAME's tag), which no
/// edit list can tell FFmpeg's MP4 reader: the last frame is whole on our side.
const fn trimmed(film: Film) -> Film {
    Film { trimmed_end: true, ..film }
}

/// PCM has no frames of its own: each reader cuts it as it likes. Its samples are compared as one.
const fn pcm(film: Film) -> Film {
    Film { regrouped: true, ..film }
}

/// FFmpeg's reader of fragmented MP4 does not skip the priming within MP3's first frame, wherever
/// it is told of it: in HLS that frame is longer.
const fn unprimed(film: Film) -> Film {
    Film { unprimed_hls: true, ..film }
}

const X264: &str = "-c:v libx264 -preset ultrafast -bf 2 -b_strategy 0 -g 25 -pix_fmt yuv420p";

#[test]
fn h264() {
    round_trips(&[
        film("h264-aac", "mp4", "X264 -c:a aac"),
        film("h264-aac", "mov", "X264 -c:a aac"),
        film("h264-aac", "mkv", "X264 -c:a aac"),
        film("h264-aac", "ts", "X264 -c:a aac"),
        trimmed(film("h264-mp3", "mkv", "X264 -c:a libmp3lame")),
        film("h264-ac3", "mkv", "X264 -c:a ac3"),
        film("h264-flac", "mkv", "X264 -c:a flac"),
        pcm(film("h264-pcm", "mkv", "X264 -c:a pcm_s16le")),
    ]);
}

#[test]
fn hevc() {
    round_trips(&[
        film("hevc-aac", "mp4", "X265 -c:a aac"),
        trimmed(film("hevc-opus", "mkv", "X265 -c:a libopus")),
    ]);
}

#[test]
fn av1_and_vp9() {
    round_trips(&[
        film("av1-aac", "mp4", "-c:v libsvtav1 -preset 12 -g 25 -c:a aac"),
        trimmed(film("av1-opus", "webm", "-c:v libsvtav1 -preset 12 -g 25 -c:a libopus")),
        trimmed(film(
            "vp9-opus",
            "webm",
            "-c:v libvpx-vp9 -deadline realtime -cpu-used 8 -g 25 -c:a libopus",
        )),
    ]);
}

#[test]
fn mpeg_2_and_4() {
    round_trips(&[
        film("mpeg2-ac3", "ts", "-c:v mpeg2video -bf 2 -g 12 -c:a ac3"),
        film("mpeg2-ac3", "vob", "-f vob -c:v mpeg2video -bf 2 -g 12 -c:a ac3"),
        pcm(film("mpeg2-pcm", "mxf", "-c:v mpeg2video -bf 2 -g 12 -c:a pcm_s16le")),
        film("mpeg4-mp3", "avi", "-c:v mpeg4 -g 12 -c:a libmp3lame"),
    ]);
}

#[test]
fn intra_only() {
    round_trips(&[
        pcm(film("mjpeg-pcm", "avi", "-c:v mjpeg -pix_fmt yuvj420p -c:a pcm_s16le")),
        pcm(film("mjpeg-pcm", "mov", "-c:v mjpeg -pix_fmt yuvj420p -c:a pcm_s16le")),
        pcm(film("prores-pcm24", "mov", "-c:v prores_ks -pix_fmt yuv422p10le -c:a pcm_s24le")),
    ]);
}

#[test]
fn sound_only() {
    round_trips(&[
        film("aac", "m4a", "-vn -c:a aac"),
        film("flac", "flac", "-vn -c:a flac"),
        unprimed(trimmed(film("mp3", "mp3", "-vn -c:a libmp3lame"))),
    ]);
}

fn round_trips(films: &[Film]) {
    let house = House::new(96);
    let sources: Vec<(String, String)> = films
        .iter()
        .map(|film| {
            let title = format!("{}.{}", film.name, film.extension);
            (title.clone(), house.film(&title, &encode(film)))
        })
        .collect();
    for (title, path) in &sources {
        house.tenuto(&["ingest", &house.store(), path, "--title", title]);
    }
    let server = house.serve(&[]);
    for (film, (title, path)) in films.iter().zip(&sources) {
        let source = framemd5::decode(path);
        let out = house.path(&format!("{title}.out.mov"));
        house.tenuto(&["export", &house.store(), title, &out]);
        for (way, input) in [
            ("export", out),
            ("progressive", server.url(&format!("/t/{title}.mp4"))),
            ("hls", server.url(&format!("/t/{title}/master.m3u8"))),
        ] {
            let got = framemd5::decode(&input);
            let (mut wanted, mut got) = (by_kind(&source, film), by_kind(&got, film));
            if film.unprimed_hls && way == "hls" {
                wanted.iter_mut().chain(&mut got).for_each(Frames::behead);
            }
            framemd5::assert_same(&format!("{title} by {way}"), &wanted, &got, TOLERANCE_MS);
            if film.regrouped {
                assert_eq!(framemd5::sound(&input), framemd5::sound(path), "{title} by {way}");
            }
        }
    }
}

// Packets, not decoded frames: a quarter of a million of them, untouched, is the point here.
#[test]
fn three_hours_and_one_byte_frames() {
    let house = House::new(256);
    let minute = house.film(
        "minute.mp4",
        &words(
            "-f lavfi -i testsrc2=s=64x36:r=25:d=60 -f lavfi -i sine=440:d=60 -c:v libx264 \
                -preset ultrafast -g 50 -c:a aac -b:a 32k",
        ),
    );
    let loops = format!("-stream_loop 179 -i {minute} -c copy");
    let long = house.film("long.mkv", &words(&loops));
    let bytes = house.film(
        "bytes.mov",
        &words(
            "-f lavfi -i color=gray:s=2x2:r=100 -vf scale=1:1 -pix_fmt gray -frames:v 10000 \
                -c:v rawvideo",
        ),
    );
    for (title, path) in [("long", &long), ("bytes", &bytes)] {
        house.tenuto(&["ingest", &house.store(), path, "--title", title]);
    }
    let server = house.serve(&[]);
    for (title, path) in [("long", &long), ("bytes", &bytes)] {
        let out = house.path(&format!("{title}.out.mov"));
        house.tenuto(&["export", &house.store(), title, &out]);
        let source = framemd5::packets(path);
        for (way, input) in [
            ("export", out),
            ("progressive", server.url(&format!("/t/{title}.mp4"))),
            ("hls", server.url(&format!("/t/{title}/master.m3u8"))),
        ] {
            assert_eq!(framemd5::packets(&input), source, "{title} by {way}");
        }
    }
}

fn words(text: &str) -> Vec<&str> {
    text.split_whitespace().collect()
}

fn encode(film: &Film) -> Vec<&'static str> {
    let picture = "-f lavfi -i testsrc2=s=160x90:r=25:d=2";
    let sound = "-f lavfi -i sine=440:d=2:r=48000 -shortest";
    let mut args: Vec<&str> = Vec::new();
    args.extend(picture.split(' '));
    args.extend(sound.split(' ').take(4));
    for word in film.encode.split(' ') {
        match word {
            "X264" => args.extend(X264.split(' ')),
            "X265" => args.extend(
                "-c:v libx265 -preset ultrafast -x265-params log-level=none:keyint=25:bframes=2"
                    .split(' '),
            ),
            word => args.push(word),
        }
    }
    args.push("-shortest");
    args
}

// Streams in the order video, audio (containers order them as they like), without what the film's
// row says may differ.
fn by_kind(streams: &[Frames], film: &Film) -> Vec<Frames> {
    let mut sorted: Vec<Frames> = streams
        .iter()
        .map(|stream| Frames {
            kind: stream.kind.clone(),
            frames: stream.frames.clone(),
            ..*stream
        })
        .collect();
    sorted.sort_by(|a, b| b.kind.cmp(&a.kind));
    sorted.retain(|stream| !(film.regrouped && stream.kind == "audio"));
    for stream in &mut sorted {
        if film.trimmed_end
            && stream.kind == "audio"
            && let Some(last) = stream.frames.last_mut()
        {
            last.1 = "trimmed".to_owned();
        }
    }
    sorted
}

// Matroska rounds times to a millisecond, MPEG program streams stamp only some frames.
const TOLERANCE_MS: i64 = 2;
