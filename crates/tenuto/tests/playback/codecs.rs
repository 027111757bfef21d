//! Every codec and container that goes in, decoded from everything that comes out: same frames,
//! same number, same order, same times as the source.
//!
//! Where a container or FFmpeg's reader of it cannot say what the source says, FFmpeg's own remux
//! of the same source is the witness: what is decoded from it must differ in just the same way.

use crate::files::ADMITS_ALL;
use crate::framemd5::{self, Frames, sorted};
use crate::program::TestDir;
use crate::rules;

/// One film: how FFmpeg makes it, and where no remux of it can be told from ours.
struct Film {
    name: &'static str,
    extension: &'static str,
    encode: &'static str,
    limits: &'static [Limit],
}

/// What MP4, or FFmpeg's reader of it, cannot do.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Limit {
    /// The source cuts its last audio packet short (Matroska's discard padding, LAME's tag), which
    /// no edit list can tell FFmpeg's MP4 reader: the last frame is whole.
    TrimmedEnd,
    /// PCM has no packets of its own: from QuickTime FFmpeg reads it by 1024 instants at most,
    /// whatever the packets were. In HLS they are the source's.
    Regrouped,
    /// FFmpeg's reader of fragmented MP4 does not skip the priming within MP3's first frame,
    /// wherever it is told of it: in HLS that frame is longer.
    UnprimedHls,
    /// Where frames last differently long and are reordered, `ffmpeg` takes the first one of an HLS
    /// stream for shorter than it is; all others keep their distances. (`ffprobe` shows the right
    /// times.)
    HastyHls,
}

const fn film(name: &'static str, extension: &'static str, encode: &'static str) -> Film {
    Film { name, extension, encode, limits: &[] }
}

const fn limited(film: Film, limits: &'static [Limit]) -> Film {
    Film { limits, ..film }
}

const TRIMMED: &[Limit] = &[Limit::TrimmedEnd];

impl Film {
    fn has(&self, limit: Limit) -> bool {
        self.limits.contains(&limit)
    }

    /// Whether what is decoded of this form, a file or HLS, may differ from the source.
    fn is_limited(&self, form: &str) -> bool {
        self.limits.iter().any(|limit| match limit {
            Limit::TrimmedEnd => true,
            Limit::Regrouped => form != "hls",
            Limit::UnprimedHls | Limit::HastyHls => form == "hls",
        })
    }
}

const X264: &str = "-c:v libx264 -preset ultrafast -bf 2 -b_strategy 0 -g 25 -pix_fmt yuv420p";

#[test]
fn h264() {
    round_trips(&[
        film("h264-aac", "mp4", "X264 -c:a aac"),
        film("h264-aac", "mov", "X264 -c:a aac"),
        film("h264-aac", "mkv", "X264 -c:a aac"),
        film("h264-aac", "ts", "X264 -c:a aac"),
        film("h264-latm", "ts", "X264 -c:a aac -mpegts_flags latm"),
        limited(film("h264-mp3", "mkv", "X264 -c:a libmp3lame"), TRIMMED),
        film("h264-ac3", "mkv", "X264 -c:a ac3"),
        film("h264-flac", "mkv", "X264 -c:a flac"),
        limited(film("uneven", "mp4", "-vf UNEVEN -fps_mode vfr X264 -an"), &[Limit::HastyHls]),
        film("h264-pcm", "mkv", "X264 -c:a pcm_s16le"),
    ]);
}

#[test]
fn hevc() {
    round_trips(&[
        film("hevc-aac", "mp4", "X265 -c:a aac"),
        limited(film("hevc-opus", "mkv", "X265 -c:a libopus"), TRIMMED),
    ]);
}

#[test]
fn av1_and_vp9() {
    round_trips(&[
        film("av1-aac", "mp4", "-c:v libsvtav1 -preset 12 -g 25 -c:a aac"),
        limited(film("av1-opus", "webm", "-c:v libsvtav1 -preset 12 -g 25 -c:a libopus"), TRIMMED),
        limited(
            film(
                "vp9-opus",
                "webm",
                "-c:v libvpx-vp9 -deadline realtime -cpu-used 8 -g 25 -c:a libopus",
            ),
            TRIMMED,
        ),
        limited(
            film(
                "vp9-vorbis",
                "webm",
                "-c:v libvpx-vp9 -deadline realtime -cpu-used 8 -g 25 -ac 2 -c:a libvorbis",
            ),
            TRIMMED,
        ),
    ]);
}

#[test]
fn mpeg_2_and_4() {
    round_trips(&[
        film("mpeg2-ac3", "ts", "-c:v mpeg2video -bf 2 -g 12 -c:a ac3"),
        film("mpeg2-ac3", "vob", "-f vob -c:v mpeg2video -bf 2 -g 12 -c:a ac3"),
        limited(
            film("mpeg2-pcm", "mxf", "-c:v mpeg2video -bf 2 -g 12 -c:a pcm_s16le"),
            &[Limit::Regrouped],
        ),
        film("mpeg4-mp3", "avi", "-c:v mpeg4 -g 12 -c:a libmp3lame"),
    ]);
}

#[test]
fn intra_only() {
    round_trips(&[
        film("mjpeg-pcm", "avi", "-c:v mjpeg -pix_fmt yuvj420p -c:a pcm_s16le"),
        film("mjpeg-pcm", "mov", "-c:v mjpeg -pix_fmt yuvj420p -c:a pcm_s16le"),
        film("raw-pcm", "avi", "-vf scale=128:64 -c:v rawvideo -pix_fmt bgr24 -c:a pcm_u8"),
        film("prores-pcm24", "mov", "-c:v prores_ks -pix_fmt yuv422p10le -c:a pcm_s24le"),
    ]);
}

#[test]
fn sound_only() {
    round_trips(&[
        film("aac", "m4a", "-vn -c:a aac"),
        film("flac", "flac", "-vn -c:a flac"),
        limited(
            film("mp3", "mp3", "-vn -c:a libmp3lame"),
            &[Limit::TrimmedEnd, Limit::UnprimedHls],
        ),
    ]);
}

fn round_trips(films: &[Film]) {
    let dir = TestDir::with_store_of(96);
    let sources: Vec<(String, String)> = films
        .iter()
        .map(|film| {
            let title = format!("{}.{}", film.name, film.extension);
            (title.clone(), dir.encode(&title, &encode(film)))
        })
        .collect();
    for (title, path) in &sources {
        dir.ingest(path, title);
    }
    let server = dir.serve(ADMITS_ALL);
    for (film, (title, path)) in films.iter().zip(&sources) {
        rules::check(&server, title);
        let export = dir.export(title);
        let progressive = server.url(&format!("/t/{title}.mp4"));
        let hls = server.url(&format!("/t/{title}/master.m3u8"));
        let [source, exported, file, segments] =
            framemd5::decode_each([path, &export, &progressive, &hls]).map(sorted);
        let [own_file, own_hls] = ["file", "hls"].map(|form| {
            film.is_limited(form).then(|| sorted(framemd5::decode(&dir.remux(path, form))))
        });
        for (way, input, got, own) in [
            ("export", &export, exported, &own_file),
            ("progressive", &progressive, file, &own_file),
            ("hls", &hls, segments, &own_hls),
        ] {
            let context = format!("{title} by {way}");
            if let Some(own) = own.clone() {
                let (own, got) = (without_last(own, film), without_last(got.clone(), film));
                let context = format!("{context}, beside FFmpeg's own remux");
                framemd5::assert_same(&context, &own, &got, TOLERANCE_MS);
            }
            if film.has(Limit::Regrouped) && way != "hls" {
                let [source, got] = framemd5::decode_regrouped([path, input]).map(sorted);
                framemd5::assert_same(&context, &source, &got, TOLERANCE_MS);
            } else {
                let (source, got) = (comparable(&source, film, way), comparable(&got, film, way));
                framemd5::assert_same(&context, &source, &got, TOLERANCE_MS);
            }
        }
    }
}

// Packets, not decoded frames: a quarter of a million of them, untouched, is the point here.
#[test]
fn three_hours_and_one_byte_frames() {
    let dir = TestDir::with_store_of(256);
    let minute = dir.encode(
        "minute.mp4",
        &words(
            "-f lavfi -i testsrc2=s=64x36:r=25:d=60 -f lavfi -i sine=440:d=60 -c:v libx264 \
                -preset ultrafast -g 50 -c:a aac -ar 8000 -b:a 24k",
        ),
    );
    let loops = format!("-stream_loop 179 -i {minute} -c copy");
    let long = dir.encode("long.mkv", &words(&loops));
    let bytes = dir.encode(
        "bytes.mov",
        &words(
            "-f lavfi -i color=gray:s=2x2:r=100 -vf scale=1:1 -pix_fmt gray -frames:v 10000 \
                -c:v rawvideo",
        ),
    );
    for (title, path) in [("long", &long), ("bytes", &bytes)] {
        dir.ingest(path, title);
    }
    let server = dir.serve(ADMITS_ALL);
    for (title, path) in [("long", &long), ("bytes", &bytes)] {
        let out = dir.export(title);
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
            "UNEVEN" => args.push("select='not(mod(n\\,3))+not(mod(n\\,7))'"),
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

// FFmpeg ends PCM with a chunk in which it gathers what is left.
fn without_last(mut streams: Vec<Frames>, film: &Film) -> Vec<Frames> {
    for stream in &mut streams {
        if film.has(Limit::Regrouped) && stream.kind == "audio" {
            stream.frames.truncate(stream.frames.len() - 4);
        }
    }
    streams
}

// Without what the film's limits say may differ from the source.
fn comparable(streams: &[Frames], film: &Film, way: &str) -> Vec<Frames> {
    let mut streams = streams.to_vec();
    for stream in &mut streams {
        let sound = stream.kind == "audio";
        if film.has(Limit::TrimmedEnd)
            && sound
            && let Some(last) = stream.frames.last_mut()
        {
            last.1 = "trimmed".to_owned();
        }
        let unprimed = film.has(Limit::UnprimedHls) && sound;
        let hasty = film.has(Limit::HastyHls) && !sound;
        if way == "hls" && (unprimed || hasty) {
            stream.behead();
        }
    }
    streams
}

// Matroska rounds times to a millisecond, MPEG program streams stamp only some frames.
const TOLERANCE_MS: i64 = 2;
