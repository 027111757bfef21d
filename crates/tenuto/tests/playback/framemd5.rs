//! What a decoder makes of a file or URL: one MD5 per decoded frame, by FFmpeg's `framemd5`.
//!
//! A start of FFmpeg takes longer than the decoding of a short clip, so one run decodes several.

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

/// The decoded frames of one stream, in presentation order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Frames {
    /// `video` or `audio`.
    pub(crate) kind: String,
    /// Milliseconds from the first frame of this stream, and the MD5 of the decoded frame.
    pub(crate) frames: Vec<(i64, String)>,
    /// Milliseconds from the start of the file to this stream's first frame.
    pub(crate) start: i64,
}

impl Frames {
    /// Forgets the first frame; times begin with the second.
    pub(crate) fn behead(&mut self) {
        self.frames.remove(0);
        self.rebase();
    }

    fn rebase(&mut self) {
        let first = self.frames.first().map_or(0, |frame| frame.0);
        self.frames.iter_mut().for_each(|frame| frame.0 -= first);
        self.start += first;
    }
}

/// Streams in one order, video first: containers order them as they like.
pub(crate) fn sorted(mut streams: Vec<Frames>) -> Vec<Frames> {
    streams.sort_by(|a, b| b.kind.cmp(&a.kind));
    streams
}

/// Decodes every video and audio stream of `input`; of DASH without the I-frames for trick modes,
/// which FFmpeg takes for a second stream of video.
///
/// Panics with FFmpeg's own words if it complains at all: a warning while playing is a failure.
pub(crate) fn decode(input: &str) -> Vec<Frames> {
    let [frames] = decode_each([input]);
    frames
}

/// As [`decode`], of each input, by one run of FFmpeg.
pub(crate) fn decode_each<const N: usize>(inputs: [&str; N]) -> [Vec<Frames>; N] {
    decode_with(inputs, &[], &[])
}

/// As [`decode_each`], of encrypted titles.
pub(crate) fn decode_encrypted<const N: usize>(inputs: [&str; N], key: &str) -> [Vec<Frames>; N] {
    decode_with(inputs, &["-cenc_decryption_key", key], &[])
}

/// As [`decode_encrypted`], without the sound, which has a key of its own: FFmpeg complains about
/// what it finds there when it looks for streams.
pub(crate) fn decode_encrypted_pictures(input: &str, key: &str) -> Vec<Frames> {
    let words = ["-v", "quiet", "-an"];
    let [frames] = decode_with([input], &["-cenc_decryption_key", key], &words);
    frames
}

/// As [`decode_each`], with sound cut anew into frames of 1024 instants: for PCM, which readers cut
/// as they like.
pub(crate) fn decode_regrouped<const N: usize>(inputs: [&str; N]) -> [Vec<Frames>; N] {
    decode_with(inputs, &[], &["-af", "asetnsamples=n=1024:p=0"])
}

/// As [`decode`], of a source that FFmpeg complains about.
pub(crate) fn decode_anyway(input: &str) -> Vec<Frames> {
    let [frames] = decode_with([input], &[], &["-v", "quiet"]);
    frames
}

/// As [`decode_each`], with options of the readers, and of what is read.
fn decode_with<const N: usize>(
    inputs: [&str; N],
    before: &[&str],
    words: &[&str],
) -> [Vec<Frames>; N] {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let lists = inputs.map(|_| {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        std::env::temp_dir().join(format!("tenuto-framemd5-{}-{number}", std::process::id()))
    });
    let mut ffmpeg = Command::new("ffmpeg");
    ffmpeg.args(["-nostdin", "-v", "warning"]);
    for input in inputs {
        // One input is read while another is decoded: FFmpeg warns of a queue that is full.
        ffmpeg.args(["-thread_queue_size", "4096"]).args(before).args(["-i", input]);
    }
    for (number, (input, list)) in inputs.iter().zip(&lists).enumerate() {
        let map = |streams: &str| ["-map".to_owned(), streams.replace('N', &number.to_string())];
        ffmpeg.args(map("N:v?")).args(map("N:a?"));
        if input.ends_with(".mpd") {
            ffmpeg.args(map("-N:v:1?"));
        }
        ffmpeg.args(words);
        ffmpeg.args(["-fps_mode", "passthrough", "-enc_time_base:v", "-1", "-f", "framemd5"]);
        ffmpeg.arg(list);
    }
    let output = ffmpeg.output().expect("ffmpeg runs (apt-get install ffmpeg)");
    let found = lists.map(|list| {
        let text = std::fs::read_to_string(&list).unwrap_or_default();
        let _ = std::fs::remove_file(list);
        text
    });
    let said = String::from_utf8_lossy(&output.stderr);
    let complaints: Vec<&str> = said.lines().filter(|line| !is_harmless(line)).collect();
    if output.status.success() && complaints.is_empty() {
        return found.map(|text| read(&text));
    }
    // Alone, the one that it is about is named.
    if N > 1 {
        inputs.iter().for_each(|input| drop(decode_with([*input], before, words)));
    }
    let all = inputs.join(", ");
    assert!(output.status.success(), "ffmpeg cannot decode {all}:\n{said}{}", refusal(inputs[0]));
    panic!("ffmpeg complains about {all}:\n{}", complaints.join("\n"));
}

/// What a server says at this address, of which FFmpeg shows the status alone.
fn refusal(address: &str) -> String {
    let curl = Command::new("curl").args(["-s", "--max-filesize", "100000", address]).output();
    curl.map_or_else(
        |error| error.to_string(),
        |said| String::from_utf8_lossy(&said.stdout).chars().take(1000).collect(),
    )
}

/// Number of packets and their checksums in order, of the pictures and of the sound, without
/// decoding. CRC-32, which takes FFmpeg half the time of MD5 to write.
pub(crate) fn packets(input: &str) -> [(usize, String); 2] {
    let output = Command::new("ffmpeg")
        .args(["-nostdin", "-v", "error", "-i", input, "-map", "0:v?", "-map", "0:a?"])
        .args(["-c", "copy", "-f", "framehash", "-hash", "crc32", "-"])
        .output()
        .expect("ffmpeg runs (apt-get install ffmpeg)");
    let text = String::from_utf8(output.stdout).expect("framehash is text");
    let mut streams = <[(usize, String); 2]>::default();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        // Pictures alone, or pictures before sound.
        let (stream, rest) = line.split_once(',').expect("fields");
        let (packets, sums) = &mut streams[stream.parse::<usize>().expect("a stream's number")];
        *packets += 1;
        sums.push_str(rest.rsplit(',').next().expect("a checksum"));
    }
    streams
}

/// Asserts that two inputs decode to the same frames: same streams, count, order, content, and
/// times within `tolerance_ms` once both files start at zero.
pub(crate) fn assert_same(what: &str, wanted: &[Frames], got: &[Frames], tolerance_ms: i64) {
    let kinds = |frames: &[Frames]| frames.iter().map(|f| f.kind.clone()).collect::<Vec<_>>();
    assert_eq!(kinds(wanted), kinds(got), "{what}: streams differ");
    let together = |all: &[Frames]| all.first().map_or(0, |first| first.start);
    let (wanted_start, got_start) = (together(wanted), together(got));
    for (number, (wanted, got)) in wanted.iter().zip(got).enumerate() {
        let stream = format!("{what}: stream {number} ({})", wanted.kind);
        let first = wanted.frames.iter().zip(&got.frames).position(|(a, b)| a.1 != b.1);
        assert_eq!(first, None, "{stream}: the decoded frame of this number differs");
        assert_eq!(wanted.frames.len(), got.frames.len(), "{stream}: number of frames");
        let (should, is) = (wanted.start - wanted_start, got.start - got_start);
        assert!((should - is).abs() <= tolerance_ms, "{stream} begins {is} ms, not {should} ms in");
        let late = wanted
            .frames
            .iter()
            .zip(&got.frames)
            .position(|(a, b)| (a.0 - b.0).abs() > tolerance_ms);
        if let Some(at) = late {
            panic!(
                "{stream}: frame {at} is at {} ms, in the source at {} ms",
                got.frames[at].0, wanted.frames[at].0
            );
        }
    }
}

// FFmpeg remarks on its own encoder of the MD5 list, on the source, or on subtitles, which its HLS
// reader leaves out; never on what is wrong with a served file.
fn is_harmless(line: &str) -> bool {
    const REMARKS: &[&str] = &[
        "deprecated pixel format used",
        "Guessed Channel Layout",
        "Last message repeated",
        "Application provided duration",
        "Estimating duration from bitrate",
        "Can't support the subtitle",
    ];
    line.trim().is_empty() || REMARKS.iter().any(|remark| line.contains(remark))
}

fn read(text: &str) -> Vec<Frames> {
    let mut timebase: BTreeMap<usize, f64> = BTreeMap::new();
    let mut streams: BTreeMap<usize, Frames> = BTreeMap::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("#tb ") {
            let (number, base) = rest.split_once(": ").expect("#tb N: a/b");
            let (a, b) = base.split_once('/').expect("a/b");
            let seconds = a.parse::<f64>().expect("number") / b.parse::<f64>().expect("number");
            timebase.insert(number.parse().expect("number"), seconds);
        } else if let Some(rest) = line.strip_prefix("#media_type ") {
            let (number, kind) = rest.split_once(": ").expect("#media_type N: kind");
            let frames = Frames { kind: kind.to_owned(), frames: Vec::new(), start: 0 };
            streams.insert(number.parse().expect("number"), frames);
        } else if !line.starts_with('#') {
            let fields: Vec<&str> = line.split(',').map(str::trim).collect();
            let number: usize = fields[0].parse().expect("stream number");
            let pts: f64 = fields[2].parse().expect("pts");
            #[expect(clippy::cast_possible_truncation, reason = "milliseconds of a short clip")]
            let millis = (pts * timebase[&number] * 1000.0).round() as i64;
            let frames = &mut streams.get_mut(&number).expect("declared").frames;
            frames.push((millis, fields[5].to_owned()));
        }
    }
    streams.values_mut().for_each(Frames::rebase);
    streams.into_values().collect()
}
