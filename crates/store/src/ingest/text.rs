//! The text tracks of a file: FFmpeg converts all of them to WebVTT, in a process of its own.
//!
//! ```text
//!   file ──▶ ffmpeg -map 0:2 -map 0:5 -c:s webvtt ──Matroska──▶ cues ──▶ TextTrack, TextTrack
//! ```
//!
//! The process runs beside the one that copies pictures and sound, and reads the same parts of the
//! file at about the same time. Its times count from the same moment, the beginning of the file.
//! What is wrong with text never refuses a film: such a track is left out with the reason.

use super::matroska::{self, FoundCue};
use super::process::{Process, last_words};
use super::{IngestJob, SubtitleFile, probe};
use crate::StoreError;
use media::{TextDescription, TextTrack};
use std::ffi::OsString;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use units::{Hinted, Reason};

/// A text track of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TextStream {
    /// FFmpeg's stream index.
    pub(super) index: u32,
    /// The track in words: `subtitle stream 3 (subrip, eng)`.
    pub(super) name: String,
    pub(super) description: TextDescription,
}

/// The text of a file.
#[derive(Debug, Default)]
pub(super) struct FoundTexts {
    pub(super) tracks: Vec<TextTrack>,
    /// The tracks that are left out, each with its reason.
    pub(super) left_out: Vec<String>,
    /// FFmpeg's messages; empty if it has none.
    pub(super) said: String,
}

/// Reads these streams of a file, which `input` names to FFmpeg, until `stop`.
pub(super) fn read(
    input: Vec<OsString>,
    streams: &[TextStream],
    cpu: Duration,
    stop: &AtomicBool,
) -> FoundTexts {
    let mut found = FoundTexts::default();
    if streams.is_empty() {
        return found;
    }
    let converted = convert(input, streams, cpu, stop);
    let cues = converted.as_ref().map_err(String::clone).and_then(|(bytes, said)| {
        found.said.clone_from(said);
        matroska::cues(bytes).ok_or_else(|| "FFmpeg's output has another form".to_owned())
    });
    let mut bytes = 0;
    for (number, stream) in streams.iter().enumerate() {
        let track = cues.as_ref().map_err(String::clone).and_then(|cues| {
            let track = track(stream, number, cues)?;
            bytes += track.memory();
            if bytes > MAX_BYTES { Err(TOO_MUCH.to_owned()) } else { Ok(track) }
        });
        match track {
            Ok(track) => found.tracks.push(track),
            Err(why) => found.left_out.push(format!("{}: {why}", stream.name)),
        }
    }
    found
}

/// Reads files of subtitles beside the film. What cannot be read of them refuses the film, because
/// they were named.
pub(super) fn read_files(job: &mut IngestJob<'_>) -> Result<Vec<TextTrack>, StoreError> {
    let mut tracks = Vec::new();
    for subtitles in &job.options.subtitles {
        let SubtitleFile { file, language, forced, hearing_impaired } = subtitles;
        super::size_of_file(file)?;
        job.tell("probing", 0)?;
        let mut input: Vec<OsString> = INPUT.iter().map(OsString::from).collect();
        input.push(probe::local(file));
        let description = TextDescription {
            language: language.clone(),
            forced: *forced,
            hearing_impaired: *hearing_impaired,
            ..TextDescription::default()
        };
        let stream = TextStream { index: 0, name: String::new(), description };
        let found = read(input, std::slice::from_ref(&stream), FILE_TIME, job.cancel);
        job.tell("probing", 0)?;
        let why = found.left_out.first().map_or(&found.said, |why| why);
        if !why.is_empty() {
            let message =
                format!("it cannot be read as subtitles: {}", why.trim_start_matches(": "));
            return Err(super::refused(file, Reason::new(message, TO_TEXT)));
        }
        tracks.extend(found.tracks);
    }
    Ok(tracks)
}

/// The text track of the stream of this number.
fn track(stream: &TextStream, number: usize, cues: &[FoundCue<'_>]) -> Result<TextTrack, String> {
    let of_it = cues.iter().filter(|cue| cue.track == number);
    let cues = of_it.map(|cue| (cue.start, cue.end, cue.text.as_ref()));
    let track = TextTrack::new(stream.description.clone(), cues);
    let track = track.map_err(|error| format!("it has {error}"))?;
    if track.cues().is_empty() { Err("it has no text".to_owned()) } else { Ok(track) }
}

/// The streams as WebVTT in Matroska, and FFmpeg's messages; an error in words.
fn convert(
    input: Vec<OsString>,
    streams: &[TextStream],
    cpu: Duration,
    stop: &AtomicBool,
) -> Result<(Vec<u8>, String), String> {
    let mut words: Vec<OsString> = QUIETLY.iter().map(OsString::from).collect();
    words.extend(input);
    for stream in streams {
        words.extend(["-map".into(), format!("0:{}", stream.index).into()]);
    }
    words.extend(CONVERT.iter().map(OsString::from));
    let process = Process::start("ffmpeg", &words, cpu).map_err(|error| error.one_line())?;
    let ended = process.finish(&[], MAX_OUTPUT, || !stop.load(Ordering::Relaxed));
    let complaints = ended.complaints;
    match (ended.output, ended.status) {
        (Ok(bytes), _) if bytes.len() as u64 > MAX_OUTPUT => Err(TOO_MUCH.to_owned()),
        (Ok(bytes), Ok(status)) if status.success() => Ok((bytes, last_words(&complaints))),
        _ => Err(match last_words(&complaints) {
            said if said.is_empty() => "FFmpeg cannot convert it to WebVTT".to_owned(),
            said => format!("FFmpeg cannot convert it to WebVTT ({said})"),
        }),
    }
}

/// Demuxers of text subtitles alone, which refer to no other file.
const INPUT: &[&str] = &[
    "-protocol_whitelist",
    "file",
    "-format_whitelist",
    "srt,ass,webvtt,sami,microdvd,mpl2,jacosub,realtext,stl,subviewer,subviewer1,vplayer,pjs",
    "-i",
];

/// The most processor time for a file of subtitles.
const FILE_TIME: Duration = Duration::from_secs(60);
const TO_TEXT: &str = "convert it to SubRip or WebVTT in UTF-8 first";

const QUIETLY: &[&str] = &["-nostdin", "-hide_banner", "-v", "error"];

/// The output arguments: what is before zero stays there, instead of moving all else.
const CONVERT: &[&str] = &[
    "-c:s",
    "webvtt",
    "-map_metadata",
    "-1",
    "-map_chapters",
    "-1",
    "-avoid_negative_ts",
    "disabled",
    "-f",
    "matroska",
    "pipe:1",
];

/// The most output of FFmpeg: cues have up to 60 bytes beside their text.
const MAX_OUTPUT: u64 = 64 << 20;

/// The most memory of all text tracks of a title, which every open title takes.
const MAX_BYTES: u64 = 16 << 20;
const TOO_MUCH: &str = "the title has more than 16 MiB of text";
