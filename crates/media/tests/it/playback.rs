//! The frames that players decode from the packaging are those of the source: every frame, in order
//! and at its time, for each kind of codec and container.
//!
//! They are compared by `ffmpeg -f framemd5`: the MD5 and the time of each decoded frame, per
//! stream. Times are counted from the earliest of the title, because containers begin at different
//! ones.

use crate::footage::{Folder, ffmpeg, ffmpeg_strict, make, read, remux};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A decoded frame: its time in seconds, and the MD5 of its samples.
pub(crate) type Frame = (f64, String);

/// Decodes all streams of a source, video first. Times count from the earliest frame.
pub(crate) fn decode(path: &Path) -> Vec<Vec<Frame>> {
    from_earliest(frames(ffmpeg(DECODE, &[path])))
}

/// Decodes a file of the packaging, in which no warnings are allowed.
pub(crate) fn decode_ours(path: &Path) -> Vec<Vec<Frame>> {
    from_earliest(frames(ffmpeg_strict(DECODE, &[path])))
}

/// As [`decode_ours`], of each file, by one run of FFmpeg.
pub(crate) fn decode_each_of_ours(paths: &[PathBuf]) -> Vec<Vec<Vec<Frame>>> {
    decode_at_once("warning", paths).into_iter().map(from_earliest).collect()
}

/// Decodes files of the packaging that may begin with an open group: a decoder complains about the
/// pictures that are shown before its key frame. Times are those of the file.
pub(crate) fn decode_parts(paths: &[PathBuf]) -> Vec<Vec<Vec<Frame>>> {
    decode_at_once("fatal", paths)
}

/// The frames of each file, whose list is written beside it.
fn decode_at_once(verbosity: &str, paths: &[PathBuf]) -> Vec<Vec<Vec<Frame>>> {
    let how = "-map N:v? -map N:a? -fps_mode passthrough -enc_time_base 1:90000 -f framemd5";
    convert_at_once(&format!("-v {verbosity} -copyts"), how, paths)
        .into_iter()
        .map(frames)
        .collect()
}

/// What FFmpeg makes of each file by one run: `how`, in which `N` is the number of the input. An
/// input is read while others are decoded; FFmpeg warns of a queue that is full.
pub(crate) fn convert_at_once(before: &str, how: &str, paths: &[PathBuf]) -> Vec<Vec<u8>> {
    let made: Vec<PathBuf> = paths.iter().map(|path| path.with_extension("made")).collect();
    let inputs = "-thread_queue_size 4096 -i FILE ".repeat(paths.len());
    let outputs: String = (0..paths.len())
        .map(|number| format!("{} FILE ", how.replace('N', &number.to_string())))
        .collect();
    let files: Vec<&Path> = paths.iter().chain(&made).map(PathBuf::as_path).collect();
    ffmpeg_strict(&format!("{before} {inputs}{outputs}"), &files);
    made.iter().map(|made| std::fs::read(made).expect("FFmpeg made it")).collect()
}

const DECODE: &str = "-copyts -i FILE -map 0:v? -map 0:a? -fps_mode passthrough \
                      -enc_time_base 1:90000 -f framemd5 -";

pub(crate) fn frames(text: Vec<u8>) -> Vec<Vec<Frame>> {
    let text = String::from_utf8(text).unwrap();
    let mut bases: Vec<f64> = Vec::new();
    let mut streams: Vec<Vec<Frame>> = Vec::new();
    for line in text.lines() {
        if let Some((_, base)) = line.strip_prefix("#tb ").and_then(|tb| tb.split_once(": ")) {
            let (num, den) = base.split_once('/').unwrap();
            bases.push(num.parse::<f64>().unwrap() / den.parse::<f64>().unwrap());
            streams.push(Vec::new());
        } else if !line.starts_with('#') {
            let fields: Vec<&str> = line.split(',').map(str::trim).collect();
            let stream: usize = fields[0].parse().unwrap();
            let time = fields[2].parse::<f64>().unwrap() * bases[stream];
            streams[stream].push((time, fields[5].to_owned()));
        }
    }
    streams
}

pub(crate) fn from_earliest(mut streams: Vec<Vec<Frame>>) -> Vec<Vec<Frame>> {
    let earliest = streams.iter().filter_map(|s| s.first()).map(|f| f.0).fold(f64::MAX, f64::min);
    streams.iter_mut().flatten().for_each(|frame| frame.0 -= earliest);
    streams
}

/// The properties of audio that a container cannot express.
#[derive(Clone, Copy, PartialEq)]
enum Sound {
    Exact,
    /// Matroska can shorten the last packet; MP4 as FFmpeg reads it cannot, so that the last frame
    /// keeps its padding.
    PaddedEnd,
}

fn assert_same(wanted: &[Vec<Frame>], given: &[Vec<Frame>], sound: Sound, what: &str) {
    assert_eq!(given.len(), wanted.len(), "{what}: streams");
    for (stream, (wanted, given)) in wanted.iter().zip(given).enumerate() {
        assert_eq!(given.len(), wanted.len(), "{what}: frames of stream {stream}");
        for (i, (wanted_frame, frame)) in wanted.iter().zip(given).enumerate() {
            let padded = sound == Sound::PaddedEnd && i + 1 == wanted.len();
            assert!(
                padded || frame.1 == wanted_frame.1,
                "{what}: stream {stream}, frame {i} differs"
            );
            let off = (frame.0 - wanted_frame.0).abs();
            assert!(off < 0.0015, "{what}: stream {stream}, frame {i} is {off:.4} s off");
        }
    }
}

/// A source file by name and encoder options, and how it is remuxed.
struct Case<'a> {
    file: &'a str,
    encode: &'a str,
    muxer: &'a str,
    extra: &'a str,
    sound: Sound,
    codecs: &'a [&'a str],
}

fn check(case: &Case<'_>) {
    let folder = Folder::new(&case.file.replace('.', "-"));
    let source = make(&folder, case.file, case.encode);
    check_source(case, &folder, &source);
}

fn check_source(case: &Case<'_>, folder: &Folder, source: &Path) {
    let wanted = decode(source);
    assert!(wanted.iter().all(|stream| stream.len() > 10), "{}: too little footage", case.file);
    let title = read(&remux(source, case.muxer, case.extra), 4096);
    let codecs: Vec<&str> =
        title.index.tracks.iter().map(|track| track.description.codec.as_str()).collect();
    assert_eq!(codecs, case.codecs, "{}", case.file);
    let packaging = title.packaging(Duration::from_secs(1));
    let progressive = title.write_progressive(&packaging, folder);
    let hls = title.write_hls(&packaging, folder);
    let played = decode_each_of_ours(&[progressive, hls]);
    for (played, way) in played.iter().zip(["progressive", "HLS"]) {
        assert_same(&wanted, played, case.sound, way);
    }
}

const H264: &str = "-c:v libx264 -preset veryfast -bf 2 -g 12";

#[test]
fn h264_with_b_frames_and_aac_in_mp4() {
    check(&Case {
        file: "h264.mp4",
        encode: &format!("{H264} -c:a aac"),
        muxer: "mp4",
        extra: "",
        sound: Sound::Exact,
        codecs: &["avc1.64000b", "mp4a.40.2"],
    });
}

#[test]
fn h264_and_aac_in_a_transport_stream() {
    check(&Case {
        file: "h264.ts",
        encode: &format!("{H264} -c:a aac"),
        muxer: "mp4",
        extra: "-bsf:a aac_adtstoasc",
        sound: Sound::Exact,
        codecs: &["avc1.64000b", "mp4a.40.2"],
    });
}

#[test]
fn hevc_and_aac_in_matroska() {
    check(&Case {
        file: "hevc.mkv",
        encode: "-c:v libx265 -preset ultrafast -x265-params log-level=none:keyint=12 -c:a aac",
        muxer: "mp4",
        extra: "-tag:v hvc1",
        sound: Sound::Exact,
        codecs: &["hvc1.1.6.L30.90", "mp4a.40.2"],
    });
}

#[test]
fn av1_and_flac_in_matroska() {
    check(&Case {
        file: "av1.mkv",
        encode: "-c:v libsvtav1 -preset 12 -g 12 -c:a flac",
        muxer: "mp4",
        extra: "",
        sound: Sound::Exact,
        codecs: &["av01.0.00M.08", "fLaC"],
    });
}

#[test]
fn vp9_and_opus_in_webm() {
    check(&Case {
        file: "vp9.webm",
        encode: "-c:v libvpx-vp9 -deadline realtime -cpu-used 8 -g 12 -c:a libopus",
        muxer: "mp4",
        extra: "",
        sound: Sound::PaddedEnd,
        codecs: &["vp09.00.10.08", "Opus"],
    });
}

#[test]
fn mpeg2_and_ac3_in_a_transport_stream() {
    check(&Case {
        file: "mpeg2.ts",
        encode: "-c:v mpeg2video -bf 2 -g 12 -c:a ac3",
        muxer: "mp4",
        extra: "",
        sound: Sound::Exact,
        codecs: &["mp4v.61", "ac-3"],
    });
}

#[test]
fn mpeg2_and_ac3_in_a_program_stream() {
    check(&Case {
        file: "mpeg2.vob",
        encode: "-c:v mpeg2video -bf 2 -g 12 -c:a ac3",
        muxer: "mp4",
        extra: "",
        sound: Sound::Exact,
        codecs: &["mp4v.61", "ac-3"],
    });
}

#[test]
fn mpeg4_and_mp3_in_avi() {
    check(&Case {
        file: "mpeg4.avi",
        encode: "-c:v mpeg4 -bf 2 -g 12 -c:a libmp3lame",
        muxer: "mp4",
        extra: "",
        sound: Sound::Exact,
        codecs: &["mp4v.20.241", "mp4a.6B"],
    });
}

#[test]
fn mjpeg_and_pcm_in_avi() {
    check(&Case {
        file: "mjpeg.avi",
        encode: "-c:v mjpeg -pix_fmt yuvj420p -c:a pcm_s16le",
        muxer: "mov",
        extra: "",
        sound: Sound::Exact,
        codecs: &["jpeg", "sowt"],
    });
}

#[test]
fn prores_and_pcm_in_quicktime() {
    check(&Case {
        file: "prores.mov",
        encode: "-c:v prores_ks -c:a pcm_s24le",
        muxer: "mov",
        extra: "",
        sound: Sound::Exact,
        codecs: &["apch", "in24"],
    });
}

#[test]
fn eac3_beside_h264() {
    check(&Case {
        file: "eac3.mkv",
        encode: &format!("{H264} -c:a eac3 -ac 6"),
        muxer: "mp4",
        extra: "",
        sound: Sound::Exact,
        codecs: &["avc1.64000b", "ec-3"],
    });
}

/// Checks a source that is made from another one, or by its own options.
fn check_odd(name: &str, how: impl Fn(&Folder, &Path), codecs: &[&str], sound: Sound) {
    let folder = Folder::new(&name.replace('.', "-"));
    let source = folder.file(name);
    how(&folder, &source);
    let case = Case { file: name, encode: "", muxer: "mp4", extra: "", sound, codecs };
    check_source(&case, &folder, &source);
}

const AVC_AAC: &[&str] = &["avc1.64000b", "mp4a.40.2"];

#[test]
fn video_with_uneven_frame_lengths() {
    let how = "-vf select=not(mod(n\\,3))+lt(n\\,20) -fps_mode vfr";
    let how = |folder: &Folder, _: &Path| {
        make(folder, "vfr.mkv", &format!("{how} {H264} -c:a aac"));
    };
    check_odd("vfr.mkv", how, AVC_AAC, Sound::Exact);
}

#[test]
fn audio_that_starts_late_and_in_two_languages() {
    let how = |_: &Folder, source: &Path| {
        let inputs = "-f lavfi -i testsrc2=s=160x90:r=25:d=3 -itsoffset 0.7 \
                      -f lavfi -i sine=d=2:r=48000 -f lavfi -i sine=f=300:d=3:r=44100";
        let languages = "-metadata:s:a:0 language=deu -metadata:s:a:1 language=eng";
        let maps = "-map 0 -map 1 -map 2";
        let args = format!("{inputs} {maps} {H264} -c:a aac {languages} FILE");
        ffmpeg(&args, &[source]);
    };
    check_odd("late.mp4", how, &["avc1.64000b", "mp4a.40.2", "mp4a.40.2"], Sound::Exact);
}

#[test]
fn video_that_starts_late() {
    let how = |_: &Folder, source: &Path| {
        let inputs = "-itsoffset 0.7 -f lavfi -i testsrc2=s=160x90:r=25:d=2 \
                      -f lavfi -i sine=d=3:r=48000";
        ffmpeg(&format!("{inputs} {H264} -c:a aac FILE"), &[source]);
    };
    check_odd("late-pictures.mkv", how, AVC_AAC, Sound::Exact);
}

#[test]
fn audio_alone_and_video_alone() {
    let sound = |_: &Folder, source: &Path| {
        ffmpeg("-f lavfi -i sine=d=3:r=44100 -c:a aac FILE", &[source]);
    };
    check_odd("sound.m4a", sound, &["mp4a.40.2"], Sound::Exact);
    let pictures = |folder: &Folder, _: &Path| {
        make(folder, "pictures.mp4", &format!("-map 0 {H264}"));
    };
    check_odd("pictures.mp4", pictures, &["avc1.64000b"], Sound::Exact);
}

#[test]
fn video_rotated_by_its_header() {
    let how = |folder: &Folder, source: &Path| {
        let upright = make(folder, "upright.mp4", &format!("{H264} -c:a aac"));
        ffmpeg("-i FILE -c copy -metadata:s:v rotate=90 FILE", &[&upright, source]);
    };
    check_odd("turned.mp4", how, AVC_AAC, Sound::Exact);
}

/// A file cut without encoding: it holds pictures from the key frame before the cut, and an edit
/// list that hides them. Segments show them, because a browser can only show pictures or not decode
/// them.
#[test]
fn a_cut_inside_a_group_of_pictures() {
    let folder = Folder::new("cut");
    let whole = make(&folder, "whole.mp4", &format!("{H264} -c:a aac"));
    let source = folder.file("cut.mp4");
    ffmpeg("-ss 0.6 -i FILE -c copy FILE", &[&whole, &source]);
    let wanted = decode(&source);
    let title = read(&remux(&source, "mp4", ""), 1 << 16);
    let packaging = title.packaging(Duration::from_secs(1));
    let progressive = title.write_progressive(&packaging, &folder);
    assert_same(&wanted, &decode_ours(&progressive), Sound::Exact, "progressive");
    let hls = decode_ours(&title.write_hls(&packaging, &folder));
    let hidden = hls[0].len() - wanted[0].len();
    assert_eq!(hidden, 3, "0.48 s is the key frame before 0.6 s");
    // All frames of the source are there, with all streams moved by the same time. Its first audio
    // packet is cut and not compared.
    let moved = hls[0][hidden].0 - wanted[0][0].0;
    for (wanted, given) in wanted.iter().zip(&hls) {
        for (wanted, given) in wanted.iter().skip(1).rev().zip(given.iter().rev()) {
            assert_eq!(given.1, wanted.1);
            assert!((given.0 - moved - wanted.0).abs() < 0.0015);
        }
    }
}
