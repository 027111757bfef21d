//! The films that real players play, and what each player makes of each: `docs/reference/codecs.md`
//! says the same in words.

use crate::program::TestDir;

/// What the browser does with a film.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Plays it to its end without a word of complaint.
    Plays,
    /// Plays the pictures and passes over the sound.
    Silent,
    /// Plays the sound and passes over the pictures.
    Blind,
    /// Says that it cannot.
    Refuses,
}

/// One film of two seconds: 50 pictures, 96,000 instants of sound.
pub(crate) struct Film {
    pub(crate) title: &'static str,
    extension: &'static str,
    encode: &'static str,
    /// How GStreamer lays out a decoded picture in memory, as FFmpeg calls it; empty: no pictures.
    pub(crate) layout: &'static str,
    /// Chromium, from hls.js.
    pub(crate) hls_js: Verdict,
    /// Chromium, from `<video src=title.mp4>`.
    pub(crate) mp4: Verdict,
}

/// Pictures in each film.
pub(crate) const PICTURES: usize = 50;
/// Samples of sound in each film, in one channel.
pub(crate) const INSTANTS: usize = 96_000;

use Verdict::{Blind, Plays, Refuses, Silent};

/// Everything that goes in by the table of codecs.
pub(crate) const FILMS: &[Film] = &[
    film("h264-aac", "mkv", "X264 -c:a aac", "yuv420p", Plays, Plays),
    film("h264-latm", "ts", "X264 -c:a aac -mpegts_flags latm", "yuv420p", Plays, Plays),
    film("h264-mp3", "mkv", "X264 -c:a libmp3lame", "yuv420p", Refuses, Plays),
    film("h264-ac3", "mkv", "X264 -c:a ac3", "yuv420p", Refuses, Silent),
    film("h264-flac", "mkv", "X264 -c:a flac", "yuv420p", Plays, Plays),
    film("h264-opus", "mkv", "X264 -c:a libopus", "yuv420p", Plays, Plays),
    film("h264-pcm", "mkv", "X264 -c:a pcm_s16le", "yuv420p", Refuses, Plays),
    film("hevc-aac", "mkv", "X265 -c:a aac", "yuv420p", Refuses, Blind),
    film("hevc-opus", "mkv", "X265 -c:a libopus", "yuv420p", Refuses, Blind),
    film("av1-aac", "mkv", "AV1 -c:a aac", "yuv420p", Plays, Plays),
    film("av1-opus", "webm", "AV1 -c:a libopus", "yuv420p", Plays, Plays),
    film("vp9-opus", "webm", "VP9 -c:a libopus", "yuv420p", Plays, Plays),
    film("vp9-vorbis", "webm", "VP9 -ac 2 -c:a libvorbis", "yuv420p", Refuses, Plays),
    film("mpeg2-ac3", "ts", "-c:v mpeg2video -bf 2 -c:a ac3", "yuv420p", Refuses, Refuses),
    film("mpeg2-pcm", "mxf", "-c:v mpeg2video -bf 2 -c:a pcm_s16le", "yuv420p", Refuses, Blind),
    film("mpeg4-mp3", "avi", "-c:v mpeg4 -c:a libmp3lame", "yuv420p", Refuses, Blind),
    film("mjpeg-pcm", "avi", "-c:v mjpeg -pix_fmt yuvj420p -c:a pcm_s16le", "jpeg", Refuses, Blind),
    film("prores-pcm", "mov", "PRORES -c:a pcm_s24le", "yuv422p10le", Refuses, Blind),
    film("aac", "m4a", "-vn -c:a aac", "", Plays, Plays),
    film("flac", "flac", "-vn -c:a flac", "", Plays, Plays),
    film("mp3", "mp3", "-vn -c:a libmp3lame", "", Refuses, Plays),
];

pub(crate) const fn film(
    title: &'static str,
    extension: &'static str,
    encode: &'static str,
    layout: &'static str,
    hls_js: Verdict,
    mp4: Verdict,
) -> Film {
    Film { title, extension, encode, layout, hls_js, mp4 }
}

const SHORTHAND: &[(&str, &str)] = &[
    ("X264", "-c:v libx264 -preset ultrafast -bf 2 -b_strategy 0 -pix_fmt yuv420p"),
    ("X265", "-c:v libx265 -preset ultrafast -x265-params log-level=none -pix_fmt yuv420p"),
    ("AV1", "-c:v libsvtav1 -preset 12 -pix_fmt yuv420p"),
    ("VP9", "-c:v libvpx-vp9 -deadline realtime -cpu-used 8 -pix_fmt yuv420p"),
    ("PRORES", "-c:v prores_ks -pix_fmt yuv422p10le"),
];

/// Makes the films and takes them in; gives the path of each.
pub(crate) fn take_in(dir: &TestDir) -> Vec<String> {
    FILMS.iter().map(|film| film.take_in(dir)).collect()
}

impl Film {
    /// Makes the film and takes it in; gives its path.
    pub(crate) fn take_in(&self, dir: &TestDir) -> String {
        let encode = SHORTHAND
            .iter()
            .fold(self.encode.to_owned(), |words, (short, long)| words.replace(short, long));
        let words = format!("{SOURCE} {encode} -g 25 -strict -2 -shortest");
        let args: Vec<&str> = words.split_whitespace().collect();
        let path = dir.encode(&format!("{}.{}", self.title, self.extension), &args);
        dir.ingest(&path, self.title);
        path
    }
}

const SOURCE: &str = "-f lavfi -i testsrc2=s=320x180:r=25:d=2 -f lavfi -i sine=440:d=2:r=48000";
