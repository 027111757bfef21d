//! Ingest of real files through FFmpeg, and export: the decoded frames of an export are those of
//! its source; a file that cannot be ingested is refused by name and leaves nothing.
//!
//! The clips are made with FFmpeg, which must be installed, as for ingest.

#![expect(clippy::cast_possible_truncation, reason = "times and sizes of clips of two seconds")]

mod clips;
mod temp_dir;

use clips::{STSD, add_to_sample_entry, boxed, give, take, take_with, with_content};
use media::{Packaging, PackagingOptions, SoundPurposes, TitleKind, TrackDescription};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use store::{
    CheckOptions, FormatOptions, IngestOptions, IngestReport, JobProgress, RecordingEvent,
    RecordingHost, RecordingInput, RecordingOptions, Store, StoreError, SubtitleFile, TitleRecord,
    Unthrottled, ingest, record,
};
use temp_dir::TempDir;
use units::{ByteCount, Hinted};

/// A decoded frame.
struct DecodedFrame {
    /// The time from the file's first frame.
    ms: i64,
    bytes: u64,
    checksum: String,
}

type DecodedStreams = BTreeMap<String, Vec<DecodedFrame>>;

/// The decoded frames of a file, by stream.
fn decoded(file: &Path) -> DecodedStreams {
    let sound = match file.to_string_lossy() {
        // In MP4 FFmpeg takes MPEG-1 layer II for layer III, whose decoder rounds differently.
        name if name.contains("mp2") => "-c:a copy",
        // PCM has no frames of its own, so that containers divide it differently.
        name if name.contains("pcm") => "-af asetnsamples=n=1024:p=0",
        _ => "",
    };
    let done = Command::new("ffmpeg")
        .args(["-v", "error", "-nostdin", "-i"])
        .arg(file)
        .args(["-map", "0:v:?", "-map", "0:a?", "-map", "-0:d?", "-fps_mode", "passthrough"])
        .args(sound.split_whitespace())
        .args(["-f", "framemd5", "-"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success() && said.is_empty(), "{}: {said}", file.display());
    let text = String::from_utf8(done.stdout).unwrap();
    let mut scales: BTreeMap<String, f64> = BTreeMap::new();
    let mut streams = DecodedStreams::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("#tb ") {
            let (stream, scale) = rest.split_once(": ").unwrap();
            let (over, under) = scale.split_once('/').unwrap();
            let scale = over.parse::<f64>().unwrap() / under.parse::<f64>().unwrap();
            scales.insert(stream.to_owned(), scale);
        }
        if line.starts_with('#') {
            continue;
        }
        let fields: Vec<&str> = line.split(',').map(str::trim).collect();
        let ticks: i64 = fields[2].parse().unwrap();
        let ms = (ticks as f64 * scales[fields[0]] * 1000.0).round() as i64;
        let (bytes, checksum) = (fields[4].parse().unwrap(), fields[5].to_owned());
        streams.entry(fields[0].to_owned()).or_default().push(DecodedFrame { ms, bytes, checksum });
    }
    let first = streams.values().map(|frames| frames[0].ms).min().unwrap();
    for frame in streams.values_mut().flatten() {
        frame.ms -= first;
    }
    streams
}

/// Asserts that streams and frames are equal and in the same order, with times within a
/// millisecond. Matroska can mark the end of the last audio packet as not to be played; FFmpeg's
/// MP4 reader ignores the equivalent in MP4, so that the last frame may be longer there.
fn assert_same(source: &Path, exported: &Path, context: &str) {
    let (source, exported) = (decoded(source), decoded(exported));
    let counts = |streams: &DecodedStreams| -> Vec<String> {
        streams.iter().map(|(stream, frames)| format!("{stream}: {}", frames.len())).collect()
    };
    assert_eq!(counts(&source), counts(&exported), "{context}: streams and frames");
    for (stream, frames) in &source {
        for (i, (one, other)) in frames.iter().zip(&exported[stream]).enumerate() {
            let context = format!("{context}: stream {stream}, frame {i}");
            let cut = i + 1 == frames.len() && one.bytes < other.bytes;
            assert!(cut || one.checksum == other.checksum, "{context} differs");
            assert!((one.ms - other.ms).abs() <= 1, "{context}: {} and {} ms", one.ms, other.ms);
        }
    }
}

/// A clip for every supported codec and container: its name, and how to make it.
const CLIPS: &[(&str, &str)] = &[
    ("h264-aac.mp4", "-c:v libx264 -bf 2 -g 12 -c:a aac"),
    ("h264-mp3.mkv", "-c:v libx264 -bf 2 -g 12 -c:a libmp3lame"),
    ("h264-ac3.ts", "-c:v libx264 -bf 2 -g 12 -c:a ac3"),
    ("h264-flac.mkv", "-c:v libx264 -g 12 -c:a flac"),
    ("h264-aac.mov", "-c:v libx264 -bf 2 -g 12 -c:a aac"),
    ("h264-pcm.mov", "-c:v libx264 -bf 2 -g 12 -c:a pcm_s24le"),
    ("hevc-aac.mp4", "-c:v libx265 -preset ultrafast -x265-params log-level=error -c:a aac"),
    ("vp9-opus.webm", "-c:v libvpx-vp9 -deadline realtime -cpu-used 8 -g 12 -c:a libopus"),
    ("mpeg2-ac3.mpg", "-c:v mpeg2video -bf 2 -g 12 -c:a ac3 -f vob"),
    ("mpeg2-mp2.ts", "-c:v mpeg2video -bf 2 -g 12 -c:a mp2"),
    ("mpeg2-pcm.mxf", "-c:v mpeg2video -bf 2 -g 12 -c:a pcm_s16le"),
    ("mpeg4-mp3.avi", "-c:v mpeg4 -bf 2 -g 12 -c:a libmp3lame"),
    ("mpeg4-aac.mp4", "-c:v mpeg4 -g 12 -c:a aac"),
    ("mjpeg-pcm.avi", "-c:v mjpeg -c:a pcm_s16le"),
    ("prores-pcm.mov", "-c:v prores_ks -c:a pcm_s24le"),
    ("video-only.mp4", "-map 0:v -c:v libx264 -bf 2"),
    ("audio-only.m4a", "-map 1:a -c:a aac"),
    ("audio-only.flac", "-map 1:a -c:a flac"),
    ("audio-only-pcm.wav", "-map 1:a -c:a pcm_s16le"),
    (
        "variable-rate.mkv",
        "-vf select='not(mod(n\\,3))+not(mod(n\\,7))' -fps_mode vfr -c:v libx264 -bf 2 -c:a aac",
    ),
    (
        "two-languages.mkv",
        "-map 0:v -map 1:a -map 1:a -c:v libx264 -c:a aac -metadata:s:a:0 language=eng -metadata:s:a:1 language=deu",
    ),
];

#[test]
fn exported_frames_are_those_of_the_source() {
    let dir = TempDir::new("codecs");
    let store = dir.store();
    let mut taken = Vec::new();
    for (name, arguments) in CLIPS {
        let source = dir.clip(name, arguments);
        let options = IngestOptions { name: Some((*name).to_owned()), ..IngestOptions::default() };
        let report =
            take_with(&store, &source, &options).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(report.left_out, [""; 0], "{name}");
        assert_eq!(report.notes, [""; 0], "{name}");
        let seconds = report.title.duration.as_secs_f64();
        assert!((1.9..2.2).contains(&seconds), "{name} plays {seconds} s");
        taken.push((*name, source));
    }
    drop(store);
    let store = Store::open(&dir.file("store")).unwrap();
    for (name, source) in taken {
        let out = dir.file(&format!("out-{name}.mov"));
        give(&store, name, &out).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_same(&source, &out, name);
    }
    let report = store.check(&CheckOptions { scrub: true }, &mut |_| {}).unwrap();
    assert_eq!(report.findings, []);
}

#[test]
fn rotated_and_edited_files_play_as_before() {
    let dir = TempDir::new("edits");
    let store = dir.store();
    let plain = dir.clip("plain.mp4", "-c:v libx264 -bf 2 -g 12 -c:a aac");
    let turned = dir.ffmpeg("-i plain.mp4 -c copy -metadata:s:v rotate=90", "turned.mp4");
    // Cut in the middle of a group of pictures: an edit list hides the pictures before it.
    let edited = dir.ffmpeg("-ss 0.7 -i plain.mp4 -c copy", "edited.mp4");
    for source in [plain, turned, edited] {
        let report = take(&store, &source).unwrap();
        let out = dir.file(&format!("out-{}.mp4", report.title.name));
        give(&store, &report.title.name, &out).unwrap();
        assert_same(&source, &out, &report.title.name);
    }
}

#[test]
fn what_an_edit_list_cuts_off_is_not_kept_and_what_it_cuts_out_is_refused() {
    let dir = TempDir::new("cuts");
    let store = dir.store();
    let plain = dir.clip("plain.mp4", "-c:v libx264 -bf 2 -g 12 -c:a aac");
    let plain = std::fs::read(plain).unwrap();
    // FFmpeg's durations of edits are in milliseconds.
    let edited = |name: &str, length: u32| {
        let mut bytes = plain.clone();
        let lists: Vec<usize> =
            (0..bytes.len() - 4).filter(|at| bytes[*at..].starts_with(b"elst")).collect();
        for at in lists {
            assert_eq!(bytes[at + 8..at + 12], [0, 0, 0, 1], "one edit");
            bytes[at + 12..at + 16].copy_from_slice(&length.to_be_bytes());
        }
        std::fs::write(dir.file(name), bytes).unwrap();
        dir.file(name)
    };
    let whole = take(&store, &edited("whole.mp4", 2000)).unwrap();
    assert!(whole.title.duration.as_secs_f64() > 1.99, "{whole:?}");
    let short = take(&store, &edited("short.mp4", 1000)).unwrap();
    let seconds = short.title.duration.as_secs_f64();
    assert!((1.0..1.2).contains(&seconds), "{seconds} s: a second of 2, and a few pictures");
    let out = dir.file("short-out.mp4");
    give(&store, "short", &out).unwrap();
    assert_same(&dir.file("short.mp4"), &out, "short");

    // Two edits in place of one.
    let mut bytes = plain.clone();
    let at = bytes.windows(4).position(|bytes| bytes == b"edts").unwrap();
    let list = [(500, 1024_u32), (500, 1024 + 12_800)].map(|(length, place): (u32, u32)| {
        [&length.to_be_bytes()[..], &place.to_be_bytes(), &[0, 1, 0, 0]].concat()
    });
    let box_size = u32::from_be_bytes(*bytes[at - 4..].first_chunk().unwrap()) + 12;
    let mut edits = box_size.to_be_bytes().to_vec();
    edits.extend(b"edts");
    edits.extend((box_size - 8).to_be_bytes());
    edits.extend(b"elst\0\0\0\0\0\0\0\x02");
    edits.extend(list.concat());
    bytes.splice(at - 4..at - 4 + 36, edits);
    for kind in [b"moov", b"trak"] {
        let at = bytes.windows(4).position(|bytes| bytes == kind).unwrap();
        let size = u32::from_be_bytes(*bytes[at - 4..].first_chunk().unwrap()) + 12;
        bytes[at - 4..at].copy_from_slice(&size.to_be_bytes());
    }
    std::fs::write(dir.file("cut.mp4"), bytes).unwrap();
    let error = take(&store, &dir.file("cut.mp4")).unwrap_err().to_string();
    assert!(error.contains("its edit list cuts out or repeats a part in the middle"), "{error}");
}

#[test]
fn unsupported_streams_are_left_out_by_name() {
    let dir = TempDir::new("left-out");
    let store = dir.store();
    // Presentation graphics of a Blu-ray disc: a composition of no pictures, and its end.
    let screen =
        b"PG\0\0\0\0\0\0\0\0\x16\0\x0b\0\xa0\0\x5a\x10\0\0\x80\0\0\0PG\0\0\0\0\0\0\0\0\x80\0\0";
    std::fs::write(dir.file("words.sup"), screen).unwrap();
    dir.clip("plain.mkv", "-c:v libx264 -c:a aac");
    let source = dir.ffmpeg(
        "-i plain.mkv -i words.sup -map 0 -map 1 -c copy -metadata:s:s:0 language=eng",
        "with words.mkv",
    );
    let report = take(&store, &source).unwrap();
    let left_out = "subtitle stream 2 (hdmv_pgs_subtitle, eng), which is pictures and not text";
    assert_eq!(report.left_out, [left_out]);
    assert_eq!(report.title.tracks.len(), 2);
    let picture = dir.ffmpeg("-f lavfi -i color=red:size=64x64:duration=0.04", "cover.png");
    assert!(picture.is_file());
    let covered = dir.ffmpeg(
        "-i plain.mkv -i cover.png -map 0:a -map 1:v -c:a libmp3lame -c:v copy \
         -disposition:v attached_pic",
        "covered.mp3",
    );
    let report = take(&store, &covered).unwrap();
    assert_eq!(report.left_out, ["cover picture stream 1 (png)"]);
    assert_eq!(report.title.tracks.len(), 1);
}

/// SubRip with what FFmpeg passes on: overlapping cues, one of no duration, and text that ends a
/// cue of WebVTT unless it is escaped.
const WORDS: &str = "1\n00:00:00,200 --> 00:00:00,900\n<i>One</i> & two\n\n\
                     2\n00:00:00,500 --> 00:00:01,500\n1 --> 2 < 3\nsecond line\n\n\
                     3\n00:00:01,000 --> 00:00:01,000\nnever\n\n\
                     4\n00:00:01,200 --> 00:00:09,000\nÜbrig\n";

#[test]
fn text_tracks_are_what_ffmpeg_converts_them_to() {
    let dir = TempDir::new("text");
    let store = dir.store();
    std::fs::write(dir.file("words.srt"), WORDS).unwrap();
    let inputs = "-i plain.mp4 -i words.srt -map 0 -map 1 -map 1 -map 1 -c copy";
    let about = "-metadata:s:s:0 language=eng -metadata:s:s:0 title=For_all \
                 -disposition:s:0 default -metadata:s:s:1 language=ger \
                 -disposition:s:1 hearing_impaired -disposition:s:2 forced";
    dir.clip("plain.mp4", "-c:v libx264 -bf 2 -c:a aac");
    let table = [
        ("text.mkv", "-c:s:0 srt -c:s:1 ass -c:s:2 webvtt"),
        ("text.mp4", "-c:s mov_text"),
        // The file begins at three seconds, and all of it is moved to zero.
        ("late.mkv", "-c:s srt -output_ts_offset 3"),
    ];
    for (name, codecs) in table {
        let source = dir.ffmpeg(&format!("{inputs} {codecs} {about}"), name);
        let options = IngestOptions { name: Some(name.to_owned()), ..IngestOptions::default() };
        let report = take_with(&store, &source, &options).unwrap();
        assert_eq!(report.left_out, [""; 0], "{name}");
        let index = store.index(report.title.id).unwrap();
        let about: Vec<String> = index.texts.iter().map(described).collect();
        // Not every FFmpeg writes titles into MP4.
        let about = about.join("; ").replace(" For_all", "");
        assert_eq!(about, "eng default; ger hearing_impaired; und forced", "{name}");
        let title = &index.texts[0].description.title;
        assert!(title == "For_all" || name == "text.mp4", "{name}: {title}");
        for (number, text) in index.texts.iter().enumerate() {
            let cues: Vec<(u32, u32, String)> =
                text.cues().iter().map(|cue| (cue.start, cue.end, plain(&cue.text))).collect();
            assert_eq!(cues, by_ffmpeg(&source, number), "{name}, text track {number}");
            assert!(cues.len() >= 3, "{name}: {cues:?}");
        }
    }
    assert!(store.check(&CheckOptions { scrub: true }, &mut |_| {}).unwrap().is_clean());
}

/// Takes in a clip with a sound for each of these options of FFmpeg; returns what is known of the
/// sounds.
fn take_sounds(
    dir: &TempDir,
    store: &Store,
    options: &[(&str, String)],
) -> (IngestReport, Vec<TrackDescription>) {
    let sounds = options.iter().enumerate();
    let words =
        sounds.map(|(number, (option, value))| format!(" -map 1:a -{option}:{number} {value}"));
    let words = "-map 0:v -c:v libx264 -c:a aac".to_owned() + &words.collect::<String>();
    let report = take(store, &dir.clip("sounds.mkv", &words)).unwrap();
    let index = store.index(report.title.id).unwrap();
    let sounds = index.tracks.iter().skip(1).map(|track| track.description.clone()).collect();
    (report, sounds)
}

#[test]
fn languages_that_mp4_has_no_place_for_become_codes() {
    let dir = TempDir::new("languages");
    let store = dir.store();
    let tags = ["en", "pt-BR", "zh", "iw", "mul", "x-mine", "fre"];
    let words = tags.map(|tag| ("metadata:s:a", format!("language={tag}")));
    let (report, sounds) = take_sounds(&dir, &store, &words);
    let found: Vec<&str> = sounds.iter().map(|sound| sound.language.as_str()).collect();
    assert_eq!(found, ["eng", "por", "zho", "heb", "mul", "und", "fre"]);
    let note = "the language \"x-mine\" of stream 6 is no code of ISO 639 and is left out";
    assert_eq!(report.notes, [note]);
}

/// Two clips of a transport stream in one: the second of other parameter sets.
fn joined(dir: &TempDir, codec: &str, first: &str, second: &str) -> std::path::PathBuf {
    for (name, words) in [("one.ts", first), ("two.ts", second)] {
        dir.clip(name, &format!("-map 0:v -c:v {codec} {words}"));
    }
    dir.ffmpeg("-i concat:one.ts|two.ts -c copy", "joined.ts")
}

/// The description of the pictures of a title.
fn pictures(store: &Store, report: &IngestReport) -> TrackDescription {
    store.index(report.title.id).unwrap().tracks[0].description.clone()
}

#[test]
fn parameter_sets_that_change_stay_among_the_pictures() {
    let dir = TempDir::new("sets");
    let store = dir.store();
    let x265 = "-x265-params log-level=none:keyint=25:repeat-headers=1";
    for (codec, first, second, name) in [
        ("libx264", "-coder 0", "-coder 1 -g 25", "avc3."),
        ("libx265", &format!("{x265}:sao=0"), &format!("{x265}:sao=1"), "hev1."),
    ] {
        let source = joined(&dir, codec, first, second);
        let options = IngestOptions { name: Some(codec.to_owned()), ..IngestOptions::default() };
        let report = take_with(&store, &source, &options).unwrap();
        let found = pictures(&store, &report);
        assert!(found.codec.starts_with(name), "{}", found.codec);
        assert_eq!(report.notes, [""; 0]);
        let out = dir.file("out.mp4");
        give(&store, codec, &out).unwrap();
        assert_same(&source, &out, codec);
        std::fs::remove_file(out).unwrap();
    }
}

#[test]
fn key_frames_without_their_parameter_sets_are_told() {
    let dir = TempDir::new("unrepeated");
    let store = dir.store();
    joined(&dir, "libx264", "-coder 0", "-coder 1 -g 25");
    let without = "-bsf:v filter_units=remove_types=7-8";
    dir.ffmpeg(&format!("-i two.ts -c copy {without}"), "bare.ts");
    let source = dir.ffmpeg("-i concat:one.ts|two.ts|bare.ts -c copy", "all.ts");
    let report = take(&store, &source).unwrap();
    let note = "track 0 changes its parameter sets and does not repeat them at 2 of its key \
                frames, with which no player can begin";
    assert_eq!(report.notes, [note]);
}

#[test]
fn gradual_refresh_has_no_i_frames() {
    let dir = TempDir::new("gradual");
    let store = dir.store();
    let x264 = |more: &str| {
        format!("-map 0:v -c:v libx264 -vf scale=160:96 -x264-params bframes=0:keyint=25{more}")
    };
    for (name, more, is_gradual) in [
        ("whole.ts", "", false),
        ("fields.ts", ":tff=1", false),
        ("gradual.ts", ":intra-refresh=1", true),
    ] {
        let report = take(&store, &dir.clip(name, &x264(more))).unwrap();
        assert_eq!(pictures(&store, &report).gradual_refresh, is_gradual, "{name}");
        let note = "track 0 has key frames whose pictures are complete only after further ones \
                    (gradual refresh): it has no I-frames for winding";
        assert_eq!(report.notes.iter().any(|it| it == note), is_gradual, "{:?}", report.notes);
    }
}

#[test]
fn parameter_sets_of_further_numbers_are_in_the_sample_entry() {
    let dir = TempDir::new("more-sets");
    let store = dir.store();
    let x264 = "-preset ultrafast -x264-params sps-id";
    let source = joined(&dir, "libx264", &format!("{x264}=0"), &format!("{x264}=3"));
    let report = take(&store, &source).unwrap();
    let found = pictures(&store, &report);
    assert!(found.codec.starts_with("avc1."), "{}", found.codec);
    let record = found.sample_entry.windows(4).position(|it| it == b"avcC").unwrap() + 4;
    assert_eq!(found.sample_entry[record + 5] & 0x1f, 2, "sequence parameter sets");
    assert_eq!(report.notes, [""; 0]);
}

#[test]
fn pictures_that_change_are_told() {
    let dir = TempDir::new("changes");
    let store = dir.store();
    let source = joined(&dir, "libx264", "-preset ultrafast", "-preset ultrafast -s 320x180");
    let report = take(&store, &source).unwrap();
    let note = "track 0 changes from pictures of 160x90 (4:2:0, 8 bit, profile 66) to pictures of \
                320x180 (4:2:0, 8 bit, profile 66): not all players go on there";
    assert_eq!(report.notes, [note]);
}

#[test]
fn a_film_whose_pictures_need_a_second_sample_entry_is_refused() {
    let dir = TempDir::new("entries");
    let store = dir.store();
    let film = dir.clip("film.mp4", "-c:v libx264 -c:a aac");
    let bytes = std::fs::read(&film).unwrap();
    let twice = |change: u8| {
        let twice = |stsd: &[u8]| {
            let mut second = stsd[8..].to_vec();
            let record = second.windows(4).position(|it| it == b"avcC").unwrap() + 4;
            // In the sequence parameter set.
            second[record + 20] ^= change;
            [&[0, 0, 0, 0, 0, 0, 0, 2], &stsd[8..], &second].concat()
        };
        with_content(&bytes, STSD, &twice)
    };
    let in_use = |file: &[u8]| {
        let path = [&STSD[..5], &[b"stsc"]].concat();
        let run = |chunk: u8, entry: u8| [0, 0, 0, chunk, 0, 0, 0, 1, 0, 0, 0, entry];
        let runs = [&[0, 0, 0, 0, 0, 0, 0, 2][..], &run(1, 1), &run(2, 2)].concat();
        with_content(file, &path, &|_| runs.clone())
    };
    std::fs::write(&film, in_use(&twice(1))).unwrap();
    let error = take(&store, &film).unwrap_err().one_line();
    let told = "video stream 0 (h264) changes its parameter sets in the middle";
    assert!(error.contains(told) && error.contains("--as file"), "{error}");
    // One that is not used, and one that is the same, change nothing.
    std::fs::write(&film, twice(1)).unwrap();
    take(&store, &film).unwrap();
    std::fs::write(dir.file("same.mp4"), twice(0)).unwrap();
    take(&store, &dir.file("same.mp4")).unwrap();
}

#[test]
fn a_clean_aperture_is_kept() {
    let dir = TempDir::new("aperture");
    let store = dir.store();
    let film = dir.clip("film.mp4", "-map 0:v -c:v libx264");
    let clap = |width: u32| {
        let parts = [width, 1, 80, 1, 0, 1, 0, 1];
        boxed(b"clap", &parts.map(u32::to_be_bytes).concat())
    };
    add_to_sample_entry(&film, &clap(152));
    let report = take(&store, &film).unwrap();
    let found = pictures(&store, &report);
    assert_eq!((found.width, found.height), (152, 80));
    let out = dir.file("out.mp4");
    give(&store, "film", &out).unwrap();
    let bytes = std::fs::read(&out).unwrap();
    assert!(bytes.windows(40).any(|it| it == clap(152)));
    assert_same(&film, &out, "clap");
    assert_eq!(report.left_out, [""; 0]);
    // One that is larger than the picture.
    let film = dir.clip("other.mp4", "-map 0:v -c:v libx264");
    add_to_sample_entry(&film, &clap(161));
    let report = take(&store, &film).unwrap();
    assert_eq!(report.left_out, ["the clean aperture of video stream 0"]);
}

#[test]
fn cropping_of_matroska_is_told() {
    let dir = TempDir::new("cropping");
    let store = dir.store();
    let film = dir.clip("film.mkv", "-c:v libx264 -c:a aac -aspect 2:1");
    let mut bytes = std::fs::read(&film).unwrap();
    // The width as shown becomes rows that are cropped at the top.
    let at = bytes.windows(3).position(|it| it == [0x54, 0xb0, 0x81]).unwrap();
    bytes[at + 1] = 0xbb;
    std::fs::write(&film, bytes).unwrap();
    let report = take(&store, &film).unwrap();
    assert_eq!(report.left_out, ["the cropping of video stream 0 (h264)"]);
}

#[test]
fn dolby_vision_is_told_to_players() {
    let dir = TempDir::new("vision");
    let store = dir.store();
    let base = "players without Dolby Vision show its base layer";
    for (profile, compatible, box_name, codec, told) in [
        (5_u16, 0, b"dvcC", "dvh1.05.06", "only players of Dolby Vision show its colours"),
        (7, 6, b"dvcC", "hvc1.", base),
        (8, 1, b"dvvC", "hvc1.", base),
    ] {
        let name = format!("profile{profile}");
        let words = "-c:v libx265 -x265-params log-level=none -c:a aac -tag:v hvc1";
        let film = dir.clip(&format!("{name}.mp4"), words);
        let bits = (profile << 9 | 6 << 3 | 0b101).to_be_bytes();
        let record = [&[1, 0][..], &bits, &[compatible << 4], &[0; 19]].concat();
        add_to_sample_entry(&film, &boxed(box_name, &record));
        let thumbnails = Some(Duration::from_secs(1));
        let options = IngestOptions { thumbnails, ..IngestOptions::default() };
        let report = take_with(&store, &film, &options).unwrap();
        let found = pictures(&store, &report);
        assert!(found.codec.starts_with(codec), "{}", found.codec);
        let note = format!("track 0 is Dolby Vision of profile {profile}: {told}");
        assert_eq!(report.notes, [note]);
        let without = "thumbnails: FFmpeg does not show the colours of its Dolby Vision";
        assert_eq!(report.left_out.iter().any(|it| it == without), profile == 5);
        let index = store.index(report.title.id).unwrap();
        let packaging = Packaging::new(index, &PackagingOptions::default()).unwrap();
        let playlist = packaging.multivariant_playlist(&[0], "");
        assert_eq!(playlist.contains(",VIDEO-RANGE=PQ"), profile == 5, "{playlist}");
        let more = ",SUPPLEMENTAL-CODECS=\"dvh1.08.06/db1p\"";
        assert_eq!(playlist.contains(more), profile == 8, "{playlist}");
        let init = packaging.init_segment(0).unwrap();
        assert_eq!(init.windows(4).any(|it| it == b"db1p"), profile == 8);
        let out = dir.file("out.mp4");
        give(&store, &name, &out).unwrap();
        let bytes = std::fs::read(&out).unwrap();
        assert!(bytes.windows(32).any(|it| it == boxed(box_name, &record)), "{profile}");
        assert_same(&film, &out, &name);
        std::fs::remove_file(out).unwrap();
    }
}

/// A host that nothing is told of.
struct Unheard;

impl RecordingHost for Unheard {
    fn progress(&mut self, _: JobProgress) {}

    fn event(&mut self, _: RecordingEvent) {}

    fn remove(&mut self, _: &str) -> Result<(), StoreError> {
        unreachable!("one title has no parts")
    }
}

/// The title of all of an input that was recorded.
fn recorded(store: &Store, input: &RecordingInput, name: &str) -> TitleRecord {
    let options = RecordingOptions {
        name: name.to_owned(),
        duration: None,
        program: None,
        silence: Duration::from_secs(30),
        rate: None,
    };
    let cancel = AtomicBool::new(false);
    record(store, input, &options, &Unthrottled, &mut Unheard, &cancel).unwrap().title
}

#[test]
fn titles_that_were_recorded_say_what_is_in_all_of_them() {
    let dir = TempDir::new("recorded-sets");
    let store = dir.store();
    let x265 = "-x265-params log-level=none:keyint=25:repeat-headers=1";
    let x264 = "-vf scale=160:96 -x264-params bframes=0:keyint=25";
    for (codec, first, second, name, is_gradual) in [
        ("libx264", "-coder 0 -g 25", "-coder 0 -g 25", "avc1.", false),
        ("libx264", "-coder 0 -g 25", "-coder 1 -g 25", "avc3.", false),
        ("libx265", &format!("{x265}:sao=0"), &format!("{x265}:sao=1"), "hev1.", false),
        ("libx264", x264, &format!("{x264}:intra-refresh=1"), "avc", true),
    ] {
        let source = joined(&dir, codec, first, second);
        let ingested = take(&store, &source).unwrap();
        let title = recorded(&store, &RecordingInput::File(source), "recorded");
        let found = store.index(title.id).unwrap().tracks[0].description.clone();
        let wanted = pictures(&store, &ingested);
        assert!(found.codec.starts_with(name), "{first} | {second}: {}", found.codec);
        assert_eq!(found.gradual_refresh, is_gradual, "{first} | {second}");
        let same = (wanted.codec, wanted.gradual_refresh, wanted.sample_entry);
        assert_eq!((found.codec, found.gradual_refresh, found.sample_entry), same);
        for name in [&ingested.title.name, &title.name] {
            store.remove(name).unwrap();
        }
        std::fs::remove_file(dir.file("joined.ts")).unwrap();
    }
}

/// The pictures of another form, at which a recording ends, are not in it.
#[test]
fn what_a_recording_ends_at_says_nothing_of_it() {
    let dir = TempDir::new("recorded-forms");
    let store = dir.store();
    let source = joined(&dir, "libx264", "-coder 0 -g 25", "-coder 0 -g 25 -s 160x96");
    let title = recorded(&store, &RecordingInput::File(source), "recorded");
    let found = store.index(title.id).unwrap().tracks[0].description.clone();
    assert!(found.codec.starts_with("avc1."), "{}", found.codec);
}

#[test]
fn recordings_keep_languages_and_the_purposes_of_sound() {
    let dir = TempDir::new("recorded-sounds");
    let store = dir.store();
    let sounds = [
        ("pt-BR", "visual_impaired"),
        ("iw", "hearing_impaired"),
        ("fre", "dub+comment"),
        ("x-mine", "default"),
    ];
    let words = (0..).zip(sounds).map(|(number, (language, purpose))| {
        format!(
            " -map 1:a -metadata:s:a:{number} language={language} -disposition:a:{number} {purpose}"
        )
    });
    let words = "-map 0:v -c:v libx264 -c:a aac".to_owned() + &words.collect::<String>();
    let input = RecordingInput::File(dir.clip("sounds.mkv", &words));
    let title = recorded(&store, &input, "recorded");
    let index = store.index(title.id).unwrap();
    let found = index.tracks.iter().skip(1).map(|track| {
        let SoundPurposes { visual_impaired, hearing_impaired, comment, dub } =
            track.description.purposes;
        (&track.description.language[..], [visual_impaired, hearing_impaired, comment, dub])
    });
    let wanted = [
        ("por", [true, false, false, false]),
        ("heb", [false, true, false, false]),
        ("fre", [false, false, true, true]),
        ("und", [false; 4]),
    ];
    assert_eq!(found.collect::<Vec<_>>(), wanted);
}

#[test]
fn the_purposes_of_sound_are_kept() {
    let dir = TempDir::new("purposes");
    let store = dir.store();
    let marks = ["default", "visual_impaired", "hearing_impaired", "comment", "dub+comment"];
    let words = marks.map(|mark| ("disposition:a", mark.to_owned()));
    let (_, sounds) = take_sounds(&dir, &store, &words);
    let found: Vec<SoundPurposes> = sounds.iter().map(|sound| sound.purposes).collect();
    let none = SoundPurposes::default();
    let expected = [
        none,
        SoundPurposes { visual_impaired: true, ..none },
        SoundPurposes { hearing_impaired: true, ..none },
        SoundPurposes { comment: true, ..none },
        SoundPurposes { comment: true, dub: true, ..none },
    ];
    assert_eq!(found, expected);
}

fn described(text: &media::TextTrack) -> String {
    let about = &text.description;
    let words = [
        (about.default, "default"),
        (about.forced, "forced"),
        (about.hearing_impaired, "hearing_impaired"),
    ];
    let words = words.iter().filter(|(is, _)| *is).map(|(_, word)| *word);
    let all = [about.language.as_str(), &about.title].into_iter().chain(words);
    all.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

/// The cues that FFmpeg itself writes as WebVTT, without those that last no time.
fn by_ffmpeg(source: &Path, number: usize) -> Vec<(u32, u32, String)> {
    let done = Command::new("ffmpeg")
        .args(["-v", "error", "-nostdin", "-i"])
        .arg(source)
        .args(["-map", &format!("0:s:{number}"), "-f", "webvtt", "-"])
        .output()
        .unwrap();
    let text = String::from_utf8(done.stdout).unwrap();
    let cues = text.split("\n\n").filter_map(|block| block.trim_matches('\n').split_once('\n'));
    let cues = cues.filter_map(|(times, text)| {
        let (start, end) = times.split_once(" --> ")?;
        let ms = |time: &str| {
            let digits: Vec<u32> =
                time.split([':', '.']).map(|part| part.parse().unwrap()).collect();
            let &[.., minutes, seconds, ms] = digits.as_slice() else { panic!("{time}") };
            (minutes * 60 + seconds) * 1000 + ms
        };
        Some((ms(start), ms(end), plain(text)))
    });
    cues.filter(|(start, end, _)| start < end).collect()
}

/// Text of a cue without tags and escapes.
fn plain(text: &str) -> String {
    let tags = ["<i>", "</i>", "<b>", "</b>", "<u>", "</u>"];
    let text = tags.iter().fold(text.to_owned(), |text, tag| text.replace(tag, ""));
    text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
}

#[test]
fn files_of_subtitles_are_taken_with_a_film_or_refuse_it() {
    let dir = TempDir::new("text-files");
    let store = dir.store();
    let film = dir.clip("plain.mp4", "-c:v libx264 -c:a aac");
    std::fs::write(dir.file("words.srt"), WORDS).unwrap();
    dir.ffmpeg("-i words.srt", "words.ass");
    dir.ffmpeg("-i words.srt", "words.vtt");
    std::fs::write(dir.file("latin.srt"), b"1\n00:00:00,100 --> 00:00:01,000\n\xdcbrig\n").unwrap();
    std::fs::write(dir.file("empty.srt"), b"").unwrap();
    std::fs::write(dir.file("list.m3u8"), b"#EXTM3U\n#EXTINF:2,\nwords.vtt\n").unwrap();
    let with = |names: &[&str]| {
        let file = |name: &&str| SubtitleFile {
            file: dir.file(name),
            language: "de".to_owned(),
            forced: *name == "words.ass",
            hearing_impaired: *name == "words.vtt",
        };
        let subtitles = names.iter().map(file).collect();
        take_with(&store, &film, &IngestOptions { subtitles, ..IngestOptions::default() })
    };
    let before = store.info();
    for name in ["latin.srt", "empty.srt", "list.m3u8", "plain.mp4", "missing.srt"] {
        let error = with(&["words.srt", name]).unwrap_err().to_string();
        assert!(error.contains(name), "{error}");
        assert_eq!(store.info(), before, "{name} left something behind");
    }
    let report = with(&["words.srt", "words.ass", "words.vtt"]).unwrap();
    let index = store.index(report.title.id).unwrap();
    assert_eq!(index.texts.len(), 3);
    for text in &index.texts {
        let cues: Vec<(u32, u32, String)> =
            text.cues().iter().map(|cue| (cue.start, cue.end, plain(&cue.text))).collect();
        assert_eq!(cues.len(), 3, "{cues:?}");
        assert_eq!(cues[0], (200, 900, "One & two".to_owned()));
    }
    let described: Vec<String> = index.texts.iter().map(described).collect();
    assert_eq!(described, ["de", "de forced", "de hearing_impaired"]);
    let out = dir.file("out.mp4");
    give(&store, "plain", &out).unwrap();
    for number in 0..3 {
        let text = std::fs::read_to_string(dir.file(&format!("out.{number}.de.vtt"))).unwrap();
        let (head, cues) = text.split_at(8);
        assert_eq!(head, "WEBVTT\n\n");
        assert!(
            cues.starts_with("00:00:00.200 --> 00:00:00.900\n<i>One</i> &amp; two\n\n"),
            "{text}"
        );
    }
    std::fs::remove_file(&out).unwrap();
    let again = give(&store, "plain", &out).unwrap_err();
    assert_eq!(again.code(), "file", "never overwrites: {again}");
    assert!(!out.exists(), "not without its text");
}

#[test]
fn text_that_is_too_much_is_left_out_with_the_reason() {
    let dir = TempDir::new("much-text");
    let store = dir.store();
    dir.clip("plain.mp4", "-c:v libx264 -c:a aac");
    for (name, text) in [("good.srt", "Good"), ("long.srt", &*"x".repeat(20_000))] {
        let cue = format!("1\n00:00:00,100 --> 00:00:01,900\n{text}\n\n");
        std::fs::write(dir.file(name), cue).unwrap();
    }
    let source = dir.ffmpeg(
        "-i plain.mp4 -i good.srt -i long.srt -map 0 -map 1 -map 2 -c copy -c:s srt",
        "much.mkv",
    );
    let report = take(&store, &source).unwrap();
    assert_eq!(report.left_out, ["subtitle stream 3 (subrip): it has a cue of more than 16 KiB"]);
    let index = store.index(report.title.id).unwrap();
    assert_eq!(index.texts.len(), 1);
    assert_eq!(&*index.texts[0].cues()[0].text, "Good");
}

/// Options that ask for a thumbnail each second.
fn with_thumbnails() -> IngestOptions {
    IngestOptions { thumbnails: Some(Duration::from_secs(1)), ..IngestOptions::default() }
}

#[test]
fn thumbnails_are_made_of_any_pictures() {
    let dir = TempDir::new("thumbnails");
    let store = dir.store();
    let clips = [
        ("keys.mp4", "-c:v libx264 -g 25 -c:a aac", (160, 90)),
        // One key frame, so that all pictures are decoded.
        ("one-key.mkv", "-t 4 -vf tpad=stop=50 -c:v libx264 -g 999 -c:a aac", (160, 90)),
        ("interlaced.ts", "-c:v mpeg2video -flags +ilme+ildct -c:a mp2", (160, 90)),
        ("wide.mp4", "-vf setsar=2 -c:v libx264 -c:a aac", (160, 46)),
        (
            "ten-bits.mkv",
            "-c:v libx265 -preset ultrafast -x265-params log-level=none \
          -pix_fmt yuv420p10le -c:a aac",
            (160, 90),
        ),
        ("all-keys.mov", "-c:v prores_ks -c:a pcm_s16le", (160, 90)),
        ("packed.avi", "-c:v mpeg4 -bf 2 -c:a libmp3lame", (160, 90)),
    ];
    dir.clip("plain.mp4", "-c:v libx264 -c:a aac");
    let turned = dir.ffmpeg("-i plain.mp4 -c copy -metadata:s:v rotate=90", "turned.mp4");
    let made = clips.map(|(name, how, size)| (dir.clip(name, how), size));
    for (source, size) in made.into_iter().chain([(turned, (90, 160))]) {
        let report = take_with(&store, &source, &with_thumbnails()).unwrap();
        let name = source.display();
        assert_eq!(report.left_out, [""; 0], "{name}");
        let index = store.index(report.title.id).unwrap();
        let made = index.thumbnails.as_ref().expect("thumbnails");
        assert_eq!((made.size(), made.images().len()), (size, 1), "{name}");
        let seconds = u32::try_from(report.title.duration.as_secs()).unwrap();
        assert!((seconds..=seconds + 1).contains(&made.count()), "{name}: {}", made.count());
    }
    assert!(store.check(&CheckOptions { scrub: true }, &mut |_| {}).unwrap().is_clean());
}

#[test]
fn a_title_without_thumbnails_says_why() {
    let dir = TempDir::new("no-thumbnails");
    let store = dir.store();
    let sound = dir.clip("sound.m4a", "-vn -c:a aac");
    let report = take_with(&store, &sound, &with_thumbnails()).unwrap();
    assert_eq!(report.left_out, ["thumbnails: it has no pictures"]);
    // The header is whole, and the pictures are anything.
    let film = dir.clip("film.mov", "-an -c:v prores_ks -movflags +faststart");
    let mut bytes = std::fs::read(&film).unwrap();
    let data = bytes.windows(4).position(|name| name == b"mdat").unwrap() + 4;
    bytes[data..].fill(0);
    std::fs::write(&film, &bytes).unwrap();
    let options = IngestOptions { allow_damaged: true, ..with_thumbnails() };
    let report = take_with(&store, &film, &options).unwrap();
    let said = &report.left_out;
    assert!(said.len() == 1 && said[0].starts_with("thumbnails: FFmpeg "), "{said:?}");
    assert_eq!(store.index(report.title.id).unwrap().thumbnails, None);
    let options = IngestOptions { kind: TitleKind::File, ..with_thumbnails() };
    let error = take_with(&store, &film, &options).unwrap_err();
    assert!(error.to_string().contains("only media has thumbnails"), "{error}");
}

#[test]
fn bad_files_are_refused_by_name_and_leave_nothing() {
    let dir = TempDir::new("bad");
    let store = dir.store();
    let whole = dir.clip("whole.mp4", "-c:v libx264 -g 12 -c:a aac -movflags +faststart");
    let mkv = dir.ffmpeg("-i whole.mp4 -c copy", "whole.mkv");
    let cut = |source: &Path, name: &str, part: f64| {
        let bytes = std::fs::read(source).unwrap();
        let keep = (bytes.len() as f64 * part) as usize;
        std::fs::write(dir.file(name), &bytes[..keep]).unwrap();
    };
    cut(&whole, "cut.mp4", 0.6);
    cut(&whole, "nearly nothing.mp4", 0.01);
    cut(&mkv, "cut.mkv", 0.6);
    let ogg = dir.ffmpeg("-f lavfi -i sine -t 2 -c:a libvorbis", "whole.ogg");
    cut(&ogg, "cut.ogg", 0.7);
    std::fs::write(dir.file("empty.mp4"), b"").unwrap();
    std::fs::write(dir.file("noise.mp4"), [0xa5; 100_000]).unwrap();
    let mut huge = b"\x00\x00\x00\x18ftypisom\x00\x00\x02\x00isomiso2\x7f\xff\xff\xffmoov".to_vec();
    huge.extend([0; 5000]);
    std::fs::write(dir.file("huge header.mp4"), huge).unwrap();
    std::fs::write(dir.file("words.srt"), "1\n00:00:00,000 --> 00:00:01,000\nWords\n").unwrap();
    dir.ffmpeg("-i words.srt -c:s srt", "words.mkv");
    std::fs::write(dir.file("list.m3u8"), "#EXTM3U\n#EXTINF:2,\nwhole.mp4\n").unwrap();
    std::fs::write(dir.file("list.ffconcat"), "ffconcat version 1.0\nfile whole.mp4\n").unwrap();
    dir.ffmpeg(
        "-i whole.mp4 -c copy -encryption_scheme cenc-aes-ctr \
         -encryption_key 76a6c65c5ea762046bd749a2e632ccbb \
         -encryption_kid a7e61c373e219033c21091fa607bf3b8",
        "locked.mp4",
    );
    dir.clip("mixed.mkv", "-c:v libvpx-vp9 -deadline realtime -cpu-used 8 -c:a pcm_s16le");
    let cases = [
        ("empty.mp4", "it is empty"),
        ("noise.mp4", "FFmpeg cannot read it"),
        ("huge header.mp4", "neither pictures nor sound in it"),
        ("nearly nothing.mp4", "FFmpeg cannot read it"),
        ("cut.mp4", "it is damaged or cut short"),
        ("cut.mkv", "it is damaged or cut short"),
        ("cut.ogg", "it was cut short"),
        ("words.mkv", "neither pictures nor sound in it, but subtitle stream 0 (subrip)"),
        ("list.m3u8", "it is a playlist"),
        ("list.ffconcat", "it is a playlist"),
        ("locked.mp4", "it is encrypted"),
        ("mixed.mkv", "only MP4 holds its vp9 and only QuickTime its pcm_s16le"),
    ];
    let before = store.info();
    for (name, reason) in cases {
        let error = take(&store, &dir.file(name)).unwrap_err();
        let told = error.to_string();
        assert_eq!(error.code(), "refused", "{told}");
        assert!(told.contains(name) && told.contains(reason), "{name}: {told}");
        assert_eq!(store.info(), before, "{name} left something behind");
    }
    let missing = take(&store, &dir.file("missing.mp4")).unwrap_err();
    assert_eq!(missing.code(), "file", "{missing}");
    let folder_itself = take(&store, &dir.0).unwrap_err();
    assert_eq!(folder_itself.code(), "refused", "{folder_itself}");

    let options = IngestOptions { allow_damaged: true, ..IngestOptions::default() };
    let report = take_with(&store, &dir.file("cut.mp4"), &options).unwrap();
    assert!(report.notes[0].contains("damaged or cut short"), "{:?}", report.notes);
    assert!(report.title.duration.as_secs_f64() > 0.5, "{:?}", report.title);
    give(&store, "cut", &dir.file("out.mp4")).unwrap();

    take(&store, &whole).unwrap();
    let again = take(&store, &whole).unwrap_err();
    assert_eq!(again.code(), "exists", "{again}");
}

#[test]
fn a_full_store_reports_the_missing_space_and_stays_unchanged() {
    let dir = TempDir::new("full");
    let options = FormatOptions {
        size: Some(ByteCount::mib(4)),
        chunk: ByteCount::kib(64),
        ..FormatOptions::default()
    };
    Store::format(&dir.file("store"), &options).unwrap();
    let store = Store::open(&dir.file("store")).unwrap();
    let before = store.info();
    let source =
        dir.clip("long.avi", "-vf scale=640:360 -c:v rawvideo -pix_fmt yuyv422 -c:a pcm_s16le");
    for kind in [TitleKind::Media, TitleKind::File] {
        let options = IngestOptions { kind, ..IngestOptions::default() };
        let error = take_with(&store, &source, &options).unwrap_err();
        let StoreError::Full { missing, free } = error else { panic!("{error}") };
        assert!(missing > ByteCount::ZERO && free.0 == before.free_chunks << 16);
        assert_eq!(store.info(), before);
    }
}

#[test]
fn a_store_that_the_thumbnails_fill_stays_unchanged() {
    let dir = TempDir::new("full-of-thumbnails");
    let source = dir.clip(
        "noise.mp4",
        "-t 30 -vf tpad=stop=-1,noise=alls=99:allf=t -r 1 -g 1 \
                               -c:v libx264 -preset ultrafast -crf 20 -c:a aac",
    );
    let store = |name: &str| {
        let (size, chunk) = (Some(ByteCount::mib(8)), ByteCount::kib(64));
        let options = FormatOptions { size, chunk, ..FormatOptions::default() };
        let path = dir.file(name);
        Store::format(&path, &options).unwrap();
        Store::open(&path).unwrap()
    };
    let chunks = |name: &str, options: &IngestOptions| {
        let store = store(name);
        let before = store.info().free_chunks;
        take_with(&store, &source, options).unwrap();
        before - store.info().free_chunks
    };
    let (with, without) = (with_thumbnails(), IngestOptions::default());
    let needed = [chunks("without", &without), chunks("with", &with)];
    assert!(needed[0] < needed[1], "{needed:?}");
    let store = store("full");
    // What is left is enough for the film alone.
    let file = dir.file("rest.bin");
    let rest = store.info().free_chunks - needed[1] + 1;
    std::fs::write(&file, vec![0; usize::try_from((rest - 1) << 16).unwrap()]).unwrap();
    let kind = TitleKind::File;
    take_with(&store, &file, &IngestOptions { kind, ..IngestOptions::default() }).unwrap();
    let before = store.info();
    assert_eq!(before.free_chunks, needed[1] - 1);
    let error = take_with(&store, &source, &with).unwrap_err();
    assert!(matches!(error, StoreError::Full { .. }), "{error}");
    assert_eq!(store.info(), before);
    take_with(&store, &source, &without).unwrap();
}

#[test]
fn any_file_is_exported_bit_for_bit() {
    let dir = TempDir::new("files");
    let store = dir.store();
    let mut random = fastrand::Rng::with_seed(7);
    for length in [0, 1, 4095, 65_536, 65_537, 1 << 20, 5_000_001] {
        let mut bytes = vec![0; length];
        random.fill(&mut bytes);
        let source = dir.file(&format!("{length}.bin"));
        std::fs::write(&source, &bytes).unwrap();
        let options = IngestOptions { kind: TitleKind::File, ..IngestOptions::default() };
        take_with(&store, &source, &options).unwrap();
        let out = dir.file("out");
        give(&store, &length.to_string(), &out).unwrap();
        assert!(std::fs::read(&out).unwrap() == bytes, "{length} bytes");
        let again = give(&store, &length.to_string(), &out).unwrap_err();
        assert_eq!(again.code(), "file", "never overwrites: {again}");
        std::fs::remove_file(&out).unwrap();
    }
    let left: Vec<_> = std::fs::read_dir(&dir.0)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.contains("part"))
        .collect();
    assert_eq!(left, [""; 0]);
}

#[test]
fn cancelled_work_leaves_nothing() {
    let dir = TempDir::new("cancel");
    let store = dir.store();
    let before = store.info();
    let source = dir.clip("clip.mp4", "-c:v libx264 -c:a aac");
    for stage in ["probing", "copying", "sealing"] {
        let cancel = AtomicBool::new(false);
        let outcomes = ingest(
            &store,
            std::slice::from_ref(&source),
            &IngestOptions::default(),
            &Unthrottled,
            &mut |progress| {
                if progress.stage == stage {
                    cancel.store(true, Ordering::Relaxed);
                }
            },
            &cancel,
        );
        assert_eq!(outcomes[0].result.as_ref().unwrap_err().code(), "cancelled", "{stage}");
        assert_eq!(store.info(), before, "{stage}");
    }
}
