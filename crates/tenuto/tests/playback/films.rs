//! The films that real players play, and what each player makes of each: `docs/reference/codecs.md`
//! says the same in words.

use crate::program::TestDir;
use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

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

/// The size of the store with all films.
const STORE: usize = 96 << 20;

/// A folder with all films, and with `a.store`, which holds them. They are taken in once for all
/// tests; each has a store of its own.
pub(crate) fn stored() -> TestDir {
    // Most of the store was never written: the parts that were, and where they are.
    static WRITTEN: OnceLock<Vec<(usize, Vec<u8>)>> = OnceLock::new();
    let written = WRITTEN.get_or_init(|| {
        let dir = TestDir::with_store_of(u32::try_from(STORE >> 20).expect("small"));
        FILMS.iter().for_each(|film| film.take_in(&dir));
        const PART: usize = 64 << 10;
        let store = dir.read("a.store");
        let parts = store.chunks(PART).enumerate().filter(|(_, bytes)| *bytes != [0; PART]);
        parts.map(|(number, bytes)| (number * PART, bytes.to_owned())).collect()
    });
    let dir = TestDir::new();
    let store = File::create(dir.path("a.store")).expect("a file in the test's folder");
    store.set_len(STORE as u64).expect("a sparse file");
    for (at, bytes) in written {
        store.write_all_at(bytes, *at as u64).expect("room on the disk");
    }
    FILMS.iter().for_each(|film| film.make(&dir));
    dir
}

/// What is found out of each film, once for all tests.
pub(crate) struct OnceEach<T>(Mutex<BTreeMap<&'static str, Arc<OnceLock<T>>>>);

impl<T: Clone> OnceEach<T> {
    pub(crate) const fn new() -> Self {
        Self(Mutex::new(BTreeMap::new()))
    }

    pub(crate) fn get(&self, film: &Film, find_out: impl FnOnce() -> T) -> T {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let of_film = Arc::clone(all.entry(film.title).or_default());
        drop(all);
        of_film.get_or_init(find_out).clone()
    }
}

impl Film {
    /// The film's file.
    pub(crate) fn path(&self, dir: &TestDir) -> String {
        dir.at(&format!("{}.{}", self.title, self.extension))
    }

    /// Makes the film and takes it in.
    pub(crate) fn take_in(&self, dir: &TestDir) {
        self.make(dir);
        dir.ingest(&self.path(dir), self.title);
    }

    fn make(&self, dir: &TestDir) {
        let encode = SHORTHAND
            .iter()
            .fold(self.encode.to_owned(), |words, (short, long)| words.replace(short, long));
        let words = format!("{SOURCE} {encode} -g 25 -strict -2 -shortest");
        let args: Vec<&str> = words.split_whitespace().collect();
        dir.encode(&format!("{}.{}", self.title, self.extension), &args);
    }
}

const SOURCE: &str = "-f lavfi -i testsrc2=s=320x180:r=25:d=2 -f lavfi -i sine=440:d=2:r=48000";
