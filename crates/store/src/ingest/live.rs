//! Recording of a live input through FFmpeg, without encoding.
//!
//! ```text
//!  address, pipe, file ──▶ receiver ──NUT──▶ head ──▶ ffprobe: which streams to record
//!                          (ffmpeg)            └─────▶ remuxer ──fragments──▶ TitleRecorder ──▶ device
//!                                       (ffmpeg)       commit every 0.4 s
//! ```
//!
//! An input can be opened only once, so its streams are found in the first bytes of it. Between the
//! receiver and the remuxer there is a bounded queue: it holds what arrives while the streams are
//! found, or while the disk is slow.

use super::plan::{RemuxPlan, SelectedStream};
use super::probe::{self, FORMATS, ProbeFailure, ProbeOutput, local};
use super::process::{Process, last_words, tail};
use super::remux::{GLANCE, PIECES, QUIETLY, arguments};
use crate::{
    BackgroundIo, JobProgress, RecordingLoad, Store, StoreError, TitleRecord, TitleRecorder,
    TitleWriter,
};
use media::{FragmentError, FragmentReader, FragmentSink, TitleKind, TrackDescription};
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::fmt;
use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::{ChildStdin, ChildStdout, Stdio};
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};
use units::{BitRate, Reason, nanos};

/// What is recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RecordingInput {
    /// The standard input of this process.
    StandardInput,
    /// A named pipe, or a file, which is read to its end.
    File(PathBuf),
    /// An address with one of the schemes of [`RecordingInput::SCHEMES`].
    Address(String),
}

impl RecordingInput {
    /// The schemes of addresses that can be recorded, each with the protocols that FFmpeg may use
    /// for it.
    pub const SCHEMES: &'static [(&'static str, &'static str)] = &[
        ("rtsp", "rtsp,rtp,udp,tcp"),
        ("rtsps", "rtsps,rtp,udp,tcp,tls"),
        ("srt", "srt"),
        ("udp", "udp"),
        ("rtp", "rtp,udp"),
        ("tcp", "tcp"),
    ];

    /// The input arguments, and what the receiver has as its standard input.
    fn open(&self) -> Result<(Vec<OsString>, Stdio), StoreError> {
        let piped = |stdin| {
            let words =
                ["-protocol_whitelist", "pipe", "-format_whitelist", FORMATS, "-i", "pipe:0"];
            (words.iter().map(OsString::from).collect(), stdin)
        };
        Ok(match self {
            Self::StandardInput => piped(Stdio::inherit()),
            Self::File(path) => {
                std::fs::metadata(path).map_err(StoreError::file("open", path))?;
                // FFmpeg opens it, because opening a named pipe waits for its writer, and the
                // process can be killed while it waits.
                let words = ["-protocol_whitelist", "file", "-format_whitelist", FORMATS, "-i"];
                let words = words.iter().map(OsString::from).chain([local(path)]);
                (words.collect(), Stdio::null())
            }
            Self::Address(address) => {
                let scheme = address.split_once("://").map_or("", |(scheme, _)| scheme);
                let known = Self::SCHEMES.iter().find(|(name, _)| *name == scheme);
                let protocols = known.expect("an input that was parsed").1;
                let mut words = vec!["-protocol_whitelist", protocols];
                if scheme.starts_with("rtsp") {
                    // Over UDP a lost packet is a damaged picture.
                    words.extend(["-rtsp_flags", "prefer_tcp"]);
                } else if scheme != "rtp" {
                    words.extend(["-format_whitelist", FORMATS]);
                }
                words.extend(["-i", address]);
                (words.into_iter().map(OsString::from).collect(), Stdio::null())
            }
        })
    }
}

impl FromStr for RecordingInput {
    type Err = Reason;

    fn from_str(text: &str) -> Result<Self, Reason> {
        let Some((scheme, rest)) = text.split_once("://") else {
            return Ok(match text {
                "-" => Self::StandardInput,
                path => Self::File(path.into()),
            });
        };
        if !Self::SCHEMES.iter().any(|(name, _)| *name == scheme) || rest.is_empty() {
            let names: Vec<String> =
                Self::SCHEMES.iter().map(|(name, _)| format!("{name}://")).collect();
            let hint = format!("an address begins with one of {}", names.join(", "));
            return Err(Reason::new(format!("'{text}' is no address that can be recorded"), hint));
        }
        Ok(Self::Address(text.to_owned()))
    }
}

impl RecordingInput {
    /// The user and the password of an address, with the `@` behind them; empty if it has none.
    fn credentials(&self) -> &str {
        let Self::Address(address) = self else { return "" };
        let (_, rest) = address.split_once("://").unwrap_or_default();
        let host = &rest[..rest.find('/').unwrap_or(rest.len())];
        host.rfind('@').map_or("", |at| &host[..=at])
    }

    /// What FFmpeg says, which may have the whole address in it, without a password.
    fn without_password(&self, said: &str) -> String {
        match self.credentials() {
            "" => said.to_owned(),
            credentials => said.replace(credentials, ""),
        }
    }
}

/// The input without a password.
impl fmt::Display for RecordingInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::StandardInput => f.write_str("the standard input"),
            Self::File(path) => path.display().fmt(f),
            Self::Address(address) => f.write_str(&self.without_password(address)),
        }
    }
}

/// The options of a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordingOptions {
    /// The title's name.
    pub name: String,
    /// The play-out time after which the recording ends; `None`: when the input ends.
    pub duration: Option<Duration>,
    /// The programme to record of an input with several; `None`: all streams.
    pub program: Option<u32>,
    /// The time without a byte after which an input counts as lost.
    pub silence: Duration,
    /// The rate that the disk is to hold for it; `None`: what others leave.
    pub rate: Option<BitRate>,
}

/// Why a recording ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordingEnd {
    /// The input ended, or the recording had the wanted length.
    Complete,
    /// The caller ended it.
    Stopped,
    /// The input or the store failed, for this reason.
    Failed(Reason),
}

/// The result of a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordingReport {
    /// The new title.
    pub title: TitleRecord,
    /// Why it is not longer.
    pub end: RecordingEnd,
    /// The streams of the input that are not in the title.
    pub left_out: Vec<String>,
    /// Further notes for the user.
    pub notes: Vec<String>,
}

impl RecordingReport {
    fn with_note(mut self, said: &str) -> Self {
        if !said.is_empty() {
            self.notes.push(format!("FFmpeg's message: {said}"));
        }
        self
    }
}

/// Records an input until it ends, `cancel` is set, or something fails. What has been recorded is a
/// title in each case; it is an error if that is nothing.
pub fn record(
    store: &Store,
    input: &RecordingInput,
    options: &RecordingOptions,
    io: &dyn BackgroundIo,
    progress: &mut dyn FnMut(JobProgress),
    cancel: &AtomicBool,
) -> Result<RecordingReport, StoreError> {
    // Reserves the name before the input is opened.
    let writer = store.begin(&options.name, TitleKind::Media)?.with_io(io);
    let (source, stdin) = input.open()?;
    let mut receiver =
        Process::start_reading(stdin, "ffmpeg", &receiving(source, options), FOR_EVER)?;
    let (stdout, stderr) = receiver.pipes();
    let mut job = LiveJob { input, options, io, progress, cancel, silence: Silence::new() };
    std::thread::scope(|scope| {
        let (arriving, pieces) = sync_channel(QUEUE);
        let silence = job.silence.clone();
        scope.spawn(move || receive(stdout, &arriving, || silence.end()));
        let said = scope.spawn(move || tail(stderr));
        let recorded = job.run(&mut receiver, pieces, writer);
        receiver.kill();
        let _ = receiver.wait();
        let said = last_words(&said.join().expect("it does not panic"));
        // What FFmpeg says when nobody reads on, because the recording has its length.
        let of_input = said.split("; ").filter(|words| !words.ends_with("Broken pipe"));
        let said = input.without_password(&of_input.collect::<Vec<_>>().join("; "));
        recorded.map(|report| report.with_note(&said)).map_err(|error| match error {
            LiveError::Store(error) => error,
            LiveError::Input(reason) => job.not_recorded(reason),
            LiveError::Nothing => job.not_recorded(match said.as_str() {
                "" => Reason::new("it ended before its first frame", HINT),
                said => Reason::new(format!("FFmpeg cannot read it ({said})"), HINT),
            }),
        })
    })
}

/// The arguments of the process that reads the input.
fn receiving(source: Vec<OsString>, options: &RecordingOptions) -> Vec<OsString> {
    let mut words: Vec<OsString> = QUIETLY.iter().map(OsString::from).collect();
    let analysis = ANALYSIS.as_micros().to_string();
    let before = ["-fflags", "+genpts", "-analyzeduration", &analysis];
    words.extend(before.map(OsString::from));
    words.extend(source);
    let of = options.program.map_or(String::new(), |program| format!("p:{program}:"));
    for kind in ["v", "a"] {
        words.extend(["-map".into(), format!("0:{of}{kind}?").into()]);
    }
    words.extend(["-c", "copy", "-flush_packets", "1", "-f", "nut", "pipe:1"].map(OsString::from));
    words
}

/// A recording that runs.
struct LiveJob<'a> {
    input: &'a RecordingInput,
    options: &'a RecordingOptions,
    io: &'a dyn BackgroundIo,
    progress: &'a mut dyn FnMut(JobProgress),
    cancel: &'a AtomicBool,
    silence: Silence,
}

/// Why nothing was recorded.
enum LiveError {
    /// The input ended without anything, and FFmpeg has told the reason.
    Nothing,
    Input(Reason),
    Store(StoreError),
}

impl From<StoreError> for LiveError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl LiveJob<'_> {
    fn not_recorded(&self, reason: Reason) -> StoreError {
        StoreError::NotRecorded { input: self.input.to_string(), reason }
    }

    fn run(
        &mut self,
        receiver: &mut Process,
        pieces: Receiver<Vec<u8>>,
        writer: TitleWriter<'_>,
    ) -> Result<RecordingReport, LiveError> {
        let head = self.head(&pieces)?;
        let plan = self.plan(&head)?;
        let place = |stream: &SelectedStream| format!("0:{}", stream.index);
        let mut words =
            arguments(vec![PIPED_NUT.iter().map(OsString::from).collect()], &plan, place);
        // Before the output's name: in front of the options of a file, which has no need of them.
        let output = words.split_off(words.len() - 3);
        words.extend(LIVE.iter().map(OsString::from));
        words.extend(output);
        let mut remuxer = Process::start_reading(Stdio::piped(), "ffmpeg", &words, FOR_EVER)?;
        let stdin = remuxer.stdin().expect("it was started with a pipe");
        let (stdout, stderr) = remuxer.pipes();
        let stop = AtomicBool::new(false);
        let mut reader = FragmentReader::new();
        let rate = self.options.rate;
        let (writer, recorder) = (Some(writer), None);
        let mut sink = RecordingSink { io: self.io, rate, writer, recorder };
        let (end, said) = std::thread::scope(|scope| {
            let (full, fragments) = sync_channel(PIECES);
            let stop = &stop;
            let feeding = scope.spawn(move || feed(stdin, head, &pieces, stop));
            scope.spawn(move || receive(stdout, &full, || {}));
            let said = scope.spawn(move || tail(stderr));
            let drained = self.drain(&fragments, &mut reader, &mut sink, receiver);
            stop.store(true, Ordering::Relaxed);
            drop(fragments);
            if drained.is_err() {
                remuxer.kill();
            }
            let failed = remuxer.wait().is_ok_and(|status| !status.success());
            feeding.join().expect("it does not panic");
            let said = last_words(&said.join().expect("it does not panic"));
            // The input may go on: it is not complete because FFmpeg could not go on.
            let drained = match drained {
                Ok(RecordingEnd::Complete) if failed => Ok(RecordingEnd::Failed(nothing(&said))),
                other => other,
            };
            (drained, said)
        });
        let Some(mut recorder) = sink.recorder else {
            return Err(match end {
                Err(FragmentError::Sink(error)) => LiveError::Store(error),
                Ok(RecordingEnd::Failed(reason)) => LiveError::Input(reason),
                _ => LiveError::Input(nothing(&said)),
            });
        };
        let end = match (end, commit(&mut recorder, &reader)) {
            (Ok(end), Ok(())) => end,
            (Err(FragmentError::Sink(error)), _) | (Ok(_), Err(error)) => {
                RecordingEnd::Failed(reason_of(&error))
            }
            (Err(FragmentError::Stream(error)), _) => RecordingEnd::Failed(Reason::new(
                format!("the input cannot be recorded further: {error}"),
                "record it again under another name",
            )),
        };
        let Some(title) = recorder.finish()? else {
            return Err(LiveError::Input(match end {
                RecordingEnd::Failed(reason) => reason,
                _ => nothing(&said),
            }));
        };
        let (left_out, notes) = (plan.left_out, Vec::new());
        Ok(RecordingReport { title, end, left_out, notes }.with_note(&said))
    }

    /// The first bytes of the input, in which its streams are described.
    fn head(&mut self, pieces: &Receiver<Vec<u8>>) -> Result<Vec<u8>, LiveError> {
        let (mut head, mut first) = (Vec::new(), None);
        loop {
            match pieces.recv_timeout(GLANCE) {
                Ok(piece) => head.extend(piece),
                Err(RecvTimeoutError::Disconnected) if head.is_empty() => {
                    return Err(LiveError::Nothing);
                }
                Err(RecvTimeoutError::Disconnected) => return Ok(head),
                Err(RecvTimeoutError::Timeout) => {}
            }
            (self.progress)(JobProgress { stage: "waiting", done: 0, total: None });
            if self.cancel.load(Ordering::Relaxed) {
                return Err(StoreError::Cancelled.into());
            }
            if head.is_empty() {
                let most = self.options.silence + ANALYSIS;
                self.silence.test(most).map_err(LiveError::Input)?;
                continue;
            }
            let first: &mut Instant = first.get_or_insert_with(Instant::now);
            if head.len() >= HEAD || first.elapsed() >= HEAD_TIME {
                return Ok(head);
            }
        }
    }

    fn plan(&mut self, head: &[u8]) -> Result<RemuxPlan, LiveError> {
        let cancel = self.cancel;
        let words = PIPED_NUT.iter().map(OsString::from).collect();
        let probed = probe::run(words, Some(head), &mut || !cancel.load(Ordering::Relaxed))?;
        if cancel.load(Ordering::Relaxed) {
            return Err(StoreError::Cancelled.into());
        }
        let found: ProbeOutput = probed.map_err(|failure| {
            LiveError::Input(Reason::from(match failure {
                ProbeFailure::TooLong => "its streams are not found".to_owned(),
                ProbeFailure::NotJson(words) | ProbeFailure::Said(words) => {
                    format!("its streams are not found: {words}")
                }
            }))
        })?;
        let mut plan = found.plan(0, None).map_err(LiveError::Input)?;
        if plan.streams.iter().any(|stream| stream.codec == "aac_latm") {
            let message = "it has AAC in LATM framing, which cannot be recorded";
            let hint = "convert it on the way: `ffmpeg -i INPUT -c:v copy -c:a aac -f mpegts - | \
                        tenuto record STORE NAME -`";
            return Err(LiveError::Input(Reason::new(message, hint)));
        }
        let texts = std::mem::take(&mut plan.texts);
        plan.left_out.extend(texts.into_iter().map(|text| text.name));
        plan.ends = self.options.duration.map(|duration| duration.as_secs_f64());
        Ok(plan)
    }

    /// Records the fragments until they end.
    fn drain(
        &mut self,
        fragments: &Receiver<Vec<u8>>,
        reader: &mut FragmentReader,
        sink: &mut RecordingSink<'_>,
        receiver: &mut Process,
    ) -> Result<RecordingEnd, FragmentError<StoreError>> {
        let (mut committed, mut end) = (Instant::now(), RecordingEnd::Complete);
        loop {
            match fragments.recv_timeout(GLANCE) {
                Ok(piece) => reader.push(&piece, sink)?,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Ok(end),
            }
            if let Some(recorder) = &mut sink.recorder
                && committed.elapsed() >= RecordingLoad::PERIOD
            {
                commit(recorder, reader).map_err(FragmentError::Sink)?;
                committed = Instant::now();
            }
            // Called also while nothing comes: it is what tells that the caller has gone.
            let recorder = sink.recorder.as_ref();
            let stage = if recorder.is_some() { "recording" } else { "waiting" };
            let done = recorder.map_or(0, TitleRecorder::bytes);
            (self.progress)(JobProgress { stage, done, total: None });
            if end != RecordingEnd::Complete {
                continue;
            }
            // The remuxer ends when all that had arrived by now is recorded.
            if self.cancel.load(Ordering::Relaxed) {
                end = RecordingEnd::Stopped;
                receiver.kill();
            } else if let Err(reason) = self.silence.test(self.options.silence) {
                end = RecordingEnd::Failed(reason);
                receiver.kill();
            }
        }
    }
}

/// Makes durable what has arrived.
fn commit(recorder: &mut TitleRecorder<'_>, reader: &FragmentReader) -> Result<(), StoreError> {
    recorder.commit(&mut |track, from, arrived| reader.part(track, from, arrived))
}

fn nothing(said: &str) -> Reason {
    match said {
        "" => Reason::from("it ended before a frame was recorded"),
        said => Reason::from(format!("FFmpeg cannot copy its tracks (FFmpeg's message: {said})")),
    }
}

fn reason_of(error: &StoreError) -> Reason {
    use units::Hinted;
    match error.hint() {
        Some(hint) => Reason::new(error.to_string(), hint),
        None => Reason::from(error.to_string()),
    }
}

/// Begins the recording when the tracks are known, and writes their payload.
struct RecordingSink<'a> {
    io: &'a dyn BackgroundIo,
    rate: Option<BitRate>,
    writer: Option<TitleWriter<'a>>,
    recorder: Option<TitleRecorder<'a>>,
}

impl FragmentSink for RecordingSink<'_> {
    type Error = StoreError;

    fn tracks(&mut self, tracks: &[TrackDescription]) -> Result<(), StoreError> {
        let writer = self.writer.take().expect("the tracks come once");
        let count = u32::try_from(tracks.len()).expect("tracks are few");
        let load = self.rate.map(|rate| RecordingLoad { rate, tracks: count });
        if let Some(load) = load {
            let kept = self.io.keep_time(load);
            kept.map_err(|reason| StoreError::RateNotHeld { rate: load.rate, reason })?;
        }
        self.recorder = Some(TitleRecorder::start(writer, tracks, load)?);
        Ok(())
    }

    fn payload(&mut self, track: usize, bytes: &[u8]) -> Result<(), StoreError> {
        let recorder = self.recorder.as_mut().expect("the tracks come first");
        recorder.write(u16::try_from(track).expect("tracks are few"), bytes)
    }
}

/// When the last byte of the input arrived.
#[derive(Clone)]
struct Silence {
    start: Instant,
    /// Nanoseconds after the start.
    last: std::sync::Arc<AtomicU64>,
}

impl Silence {
    fn new() -> Self {
        Self { start: Instant::now(), last: std::sync::Arc::default() }
    }

    fn end(&self) {
        self.last.store(nanos(self.start.elapsed()), Ordering::Relaxed);
    }

    /// An error if it has lasted for `most`.
    fn test(&self, most: Duration) -> Result<(), Reason> {
        let last = Duration::from_nanos(self.last.load(Ordering::Relaxed));
        if self.start.elapsed().saturating_sub(last) < most {
            return Ok(());
        }
        let message = format!("nothing came from it for {} s", most.as_secs());
        Err(Reason::new(message, "check its sender, or wait longer with --silence"))
    }
}

/// Reads what a process writes, as it comes, into a queue.
fn receive(mut stdout: ChildStdout, arriving: &SyncSender<Vec<u8>>, came: impl Fn()) {
    let mut buffer = vec![0; PIECE];
    while let Ok(got @ 1..) = stdout.read(&mut buffer) {
        came();
        if arriving.send(buffer[..got].to_vec()).is_err() {
            return;
        }
    }
}

/// Writes the head and then the queue to the remuxer, until the input ends or `stop` is set.
fn feed(mut stdin: ChildStdin, head: Vec<u8>, pieces: &Receiver<Vec<u8>>, stop: &AtomicBool) {
    let mut next = Some(head);
    while let Some(piece) = next.take() {
        // It fails when the remuxer has ended, because the recording has its length.
        if stdin.write_all(&piece).is_err() {
            return;
        }
        while next.is_none() {
            match pieces.recv_timeout(GLANCE) {
                Ok(piece) => next = Some(piece),
                Err(RecvTimeoutError::Timeout) if !stop.load(Ordering::Relaxed) => {}
                Err(_) => return,
            }
        }
    }
}

/// The input arguments for what the receiver writes.
/// Its header describes the streams, so that there is little to find out.
const PIPED_NUT: &[&str] = &[
    "-protocol_whitelist",
    "pipe",
    "-f",
    "nut",
    "-analyzeduration",
    "500000",
    "-fpsprobesize",
    "0",
    "-i",
    "pipe:0",
];

/// The output arguments of a recording, in addition to those of an ingest: fragments of 0.2 s
/// that are written at once, and no long wait for a stream that pauses.
const LIVE: &[&str] =
    &["-frag_duration", "200000", "-flush_packets", "1", "-max_interleave_delta", "500000"];

const HINT: &str = "try it with `ffprobe INPUT`";

/// The time for which FFmpeg looks at an input before it passes it on.
const ANALYSIS: Duration = Duration::from_secs(3);

/// The bytes of an input, or the time of it, in which its streams are found.
const HEAD: usize = 4 << 20;
const HEAD_TIME: Duration = Duration::from_secs(1);

/// The size of the pieces between processes, and how many of them wait in front of the remuxer: 64
/// MiB.
const PIECE: usize = 64 << 10;
const QUEUE: usize = 1024;

/// The processor time of a process that runs as long as a recording: without a limit.
const FOR_EVER: Duration = Duration::from_secs(u32::MAX as u64);
