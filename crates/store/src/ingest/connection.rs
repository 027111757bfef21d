//! One connection to a live input: FFmpeg's processes, from the first byte to the last.
//!
//! ```text
//!  address, pipe, file ──▶ receiver ──NUT──▶ head ──▶ ffprobe: which streams to record
//!                          (ffmpeg)            └─────▶ remuxer ──fragments──▶ PartsSink ──▶ device
//!                                       (ffmpeg)       commit every 0.4 s
//! ```
//!
//! An input can be opened only once, so its streams are found in the first bytes of it. Between the
//! receiver and the remuxer there is a bounded queue: it holds what arrives while the streams are
//! found, or while the disk is slow.

use super::heard::{Heard, WITH_LEVELS, listen};
use super::live::{RecordingInput, RecordingOptions};
use super::parts::{PartKeeper, PartsSink};
use super::plan::{RemuxPlan, SelectedStream, no_program};
use super::probe::{self, ProbeFailure, ProbeOutput, ProbedStream};
use super::process::{Process, failure, last_words, tail};
use super::remux::{GLANCE, PIECES, arguments};
use super::track_marks::TrackMarks;
use crate::{JobProgress, RecordingLoad, StoreError};
use media::{BadStream, FragmentError, FragmentReader, FragmentSink, LatmTracks, TrackDescription};
use std::convert::Infallible;
use std::ffi::OsString;
use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{ChildStdin, ChildStdout, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};
use units::{Reason, locked, nanos};

/// What was recorded through a connection.
pub(super) struct Connected {
    pub(super) end: ConnectionEnd,
    /// The streams of the input that are not recorded.
    pub(super) left_out: Vec<String>,
    /// What FFmpeg said; empty if nothing.
    pub(super) said: String,
}

/// Why a connection has ended.
pub(super) enum ConnectionEnd {
    /// The input ended, or the recording had the wanted length.
    Complete,
    /// The caller ended it.
    Stopped,
    /// The input cannot be recorded further.
    Lost(Reason),
    /// The input goes on in a form that the title cannot have.
    Changed(Reason),
    /// The store cannot take more.
    Full(StoreError),
}

/// Why nothing was recorded.
pub(super) enum LiveError {
    /// The input cannot be recorded.
    Input(Reason),
    Store(StoreError),
}

impl LiveError {
    /// The error of recording this input.
    pub(super) fn of_input(self, input: &RecordingInput) -> StoreError {
        match self {
            Self::Input(reason) => StoreError::NotRecorded { input: input.to_string(), reason },
            Self::Store(error) => error,
        }
    }
}

impl From<StoreError> for LiveError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

/// Records an input until it ends, `cancel` is set, or something fails.
pub(super) fn record(
    input: &RecordingInput,
    options: &RecordingOptions,
    keeper: &mut dyn PartKeeper<'_>,
    cancel: &AtomicBool,
) -> Result<Connected, LiveError> {
    let (source, stdin) = input.open()?;
    let mut receiver =
        Process::start_reading(stdin, "ffmpeg", &receiving(source, input, options), FOR_EVER)?;
    let (stdout, stderr) = receiver.pipes();
    let (heard, is_closed) = (Mutex::default(), AtomicBool::new(false));
    let mut job = LiveJob { options, cancel, silence: Silence::new(), heard: &heard };
    std::thread::scope(|scope| {
        let (arriving, pieces) = sync_channel(QUEUE);
        let (silence, is_closed) = (job.silence.clone(), &is_closed);
        scope.spawn(move || {
            // Before the queue is closed, which ends what is recorded.
            is_closed.store(receive(stdout, &arriving, || silence.end()), Ordering::Release);
            drop(arriving);
        });
        let listening = scope.spawn(|| listen(stderr, &heard));
        let recorded = job.run(&mut receiver, pieces, keeper);
        // It may be the input that has ended, or FFmpeg alone.
        let ended = is_closed.load(Ordering::Acquire).then(|| receiver.end_of_itself()).flatten();
        receiver.kill();
        let _ = receiver.wait();
        listening.join().expect("it does not panic");
        let heard = std::mem::take(&mut *locked(&heard));
        if let (Ok(None), Some(reason)) = (&recorded, absent_program(options.program, &heard)) {
            return Err(LiveError::Input(reason));
        }
        let mut others = heard.other_streams(options.program);
        others.extend(mixed_programs(options.program, &heard));
        let Heard { errors, unknown, later, .. } = heard;
        let said = last_words(&errors);
        // What FFmpeg says when nobody reads on, because the recording has its length.
        let of_input = said.split("; ").filter(|words| !words.ends_with("Broken pipe"));
        let said = input.without_secrets(&of_input.collect::<Vec<_>>().join("; "));
        let is_killed = ended.is_some_and(|status| status.signal().is_some());
        let failed = ended.and_then(|status| failure(RECEIVER, status, &said));
        match recorded {
            // Whatever else is wrong is so because of that.
            Ok(None) if is_killed => Err(LiveError::Input(failed.expect("it is a failure"))),
            Ok(None) | Err(LiveError::Input(_)) if known(&errors, input).is_some() => {
                Err(LiveError::Input(known(&errors, input).expect("tested")))
            }
            Err(LiveError::Input(_)) if failed.is_some() => {
                Err(LiveError::Input(failed.expect("tested")))
            }
            Ok(Some(mut connected)) => {
                connected.left_out.extend(others.into_iter().chain(unknown).chain(later));
                if let (Some(reason), ConnectionEnd::Complete | ConnectionEnd::Lost(_)) =
                    (&failed, &connected.end)
                {
                    let (end, said) = (ConnectionEnd::Lost(reason.clone()), String::new());
                    return Ok(Connected { end, said, ..connected });
                }
                if connected.said.is_empty() || said.is_empty() {
                    connected.said += &said;
                } else {
                    connected.said = format!("{}; {said}", connected.said);
                }
                Ok(connected)
            }
            Ok(None) => Err(LiveError::Input(match said.as_str() {
                "" => Reason::new("it ended before its first frame", HINT),
                said => Reason::new(format!("FFmpeg cannot read it ({said})"), HINT),
            })),
            Err(error) => Err(error),
        }
    })
}

/// The notes of a report on what FFmpeg said.
pub(super) fn notes(said: &str) -> Vec<String> {
    let note = (!said.is_empty()).then(|| format!("FFmpeg's message: {said}"));
    note.into_iter().collect()
}

/// Why FFmpeg passes nothing of an input on, where its errors have a known cause.
fn known(errors: &str, input: &RecordingInput) -> Option<Reason> {
    if errors.contains(NO_CODE) {
        let message = "its pictures have no code by which FFmpeg's programs could pass them on, as \
                       DNxHD in MXF";
        let hint = "ingest it when it has ended, or wrap it in QuickTime on the way: `ffmpeg -i \
                    INPUT -c copy -f mov -movflags frag_keyframe+empty_moov - | tenuto record \
                    STORE NAME -`";
        return Some(Reason::new(message, hint));
    }
    if INDEX_BEHIND.iter().any(|sign| errors.contains(sign)) {
        let message = "it is an MP4 or QuickTime file whose index (the box `moov`) is not at its \
                       beginning, so that it cannot be read from a pipe";
        let hint = "ingest the file instead, or write it with its index in front, for instance \
                    with `ffmpeg -i FILE -c copy -movflags +faststart NEW.mp4`";
        return Some(Reason::new(message, hint)).filter(|_| !input.is_regular_file());
    }
    None
}

/// Says that a title has the tracks of several programmes, and not which are of which.
fn mixed_programs(wanted: Option<u32>, heard: &Heard) -> Option<String> {
    let names = heard.program_names();
    (wanted.is_none() && names.len() > 1).then(|| {
        let (count, names) = (names.len(), names.join(", "));
        format!("which track is of which of its {count} programmes: {names}; --program takes one")
    })
}

/// Why there is nothing of the programme that is wanted, if FFmpeg says so.
fn absent_program(wanted: Option<u32>, heard: &Heard) -> Option<Reason> {
    let wanted = wanted.filter(|_| heard.errors.contains(NO_STREAMS))?;
    if heard.has_program(wanted) {
        let message = format!("nothing to record was found in its programme {wanted}");
        return Some(Reason::new(message, HINT));
    }
    Some(no_program(wanted, &heard.program_names()))
}

/// The arguments of the process that reads the input.
fn receiving(
    source: Vec<OsString>,
    input: &RecordingInput,
    options: &RecordingOptions,
) -> Vec<OsString> {
    let mut words: Vec<OsString> = WITH_LEVELS.iter().map(OsString::from).collect();
    let analysis = ANALYSIS.as_micros().to_string();
    let before = ["-fflags", "+genpts", "-analyzeduration", &analysis];
    words.extend(before.map(OsString::from));
    words.extend(source);
    let of = options.program.map_or(String::new(), |program| format!("p:{program}:"));
    if let Some(program) = options.program {
        // Fails where there is nothing of this programme: of maps that may find nothing alone,
        // FFmpeg would take what it chooses. Taken back at once, so that those below say what.
        for map in [format!("0:p:{program}:u"), format!("-0:p:{program}:u")] {
            words.extend(["-map".into(), map.into()]);
        }
    }
    for kind in ["v", "a"] {
        // Only streams with what a header needs to say of them: a transport stream may announce
        // others, of which nothing comes.
        words.extend(["-map".into(), format!("0:{of}{kind}:u?").into()]);
    }
    if input.is_rtsp() {
        words.extend(["-bsf:v", FIRST_TIME].map(OsString::from));
    }
    words.extend(NUT_OUT.iter().map(OsString::from));
    words
}

/// A connection that runs.
struct LiveJob<'a> {
    options: &'a RecordingOptions,
    cancel: &'a AtomicBool,
    silence: Silence,
    heard: &'a Mutex<Heard>,
}

impl LiveJob<'_> {
    /// Records; `None` if the input ended without anything, and the receiver has told the reason.
    fn run(
        &mut self,
        receiver: &mut Process,
        pieces: Receiver<Vec<u8>>,
        keeper: &mut dyn PartKeeper<'_>,
    ) -> Result<Option<Connected>, LiveError> {
        let Some(mut head) = self.head(&pieces, keeper)? else { return Ok(None) };
        let (plan, marks) = self.plan(&mut head, &pieces, keeper)?;
        let place = |stream: &SelectedStream| format!("0:{}", stream.index);
        let mut words = arguments(vec![nut_input()], &plan, place);
        // Before the output's name: in front of the options of a file, which has no need of them.
        let output = words.split_off(words.len() - 3);
        words.extend(LIVE.iter().map(OsString::from));
        words.extend(output);
        let mut remuxer = Process::start_reading(Stdio::piped(), "ffmpeg", &words, FOR_EVER)?;
        let stdin = remuxer.stdin().expect("it was started with a pipe");
        let (stdout, stderr) = remuxer.pipes();
        let stop = AtomicBool::new(false);
        let mut reader = FragmentReader::new().ending_at_new_format();
        if plan.streams.iter().any(is_latm) {
            reader = reader.unpacking_known_latm(self.latm_tracks(&head, &plan)?);
        }
        if let Some(length) = keeper.part_length() {
            reader = reader.cut_into(length);
        }
        let passed_over = {
            let heard = locked(self.heard);
            let mut passed_over = heard.other_streams(self.options.program);
            passed_over.extend(mixed_programs(self.options.program, &heard));
            passed_over.extend(heard.unknown.iter().cloned());
            passed_over
        };
        keeper.leave_out(plan.left_out.iter().chain(&passed_over).cloned().collect());
        let mut sink = PartsSink::new(keeper, marks);
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
            let status = remuxer.wait();
            feeding.join().expect("it does not panic");
            let said = last_words(&said.join().expect("it does not panic"));
            // The input may go on: it is not complete because FFmpeg could not go on.
            let failed = status.ok().and_then(|status| failure(REMUXER, status, &said));
            match (drained, failed) {
                (Ok(ConnectionEnd::Complete), Some(reason)) => {
                    (Ok(ConnectionEnd::Lost(reason)), String::new())
                }
                (drained, _) => (drained, said),
            }
        });
        if !sink.has_begun() {
            return Err(match end {
                Err(FragmentError::Sink(error)) => LiveError::Store(error),
                Ok(ConnectionEnd::Lost(reason)) => LiveError::Input(reason),
                _ => LiveError::Input(nothing(&said)),
            });
        }
        let opens_again = sink.keeper.opens_again();
        let end = match (end, sink.commit(&reader)) {
            (Ok(end), Ok(())) => end,
            (Err(FragmentError::Sink(error)), _) | (Ok(_), Err(error)) => {
                ConnectionEnd::Full(error)
            }
            (Err(FragmentError::Stream(error @ BadStream::NewFormat { .. })), _) => {
                let hint = (!opens_again).then(|| GO_ON.to_owned());
                ConnectionEnd::Changed(Reason { message: error.to_string(), hint })
            }
            (Err(FragmentError::Stream(error)), _) => ConnectionEnd::Lost(Reason::new(
                format!("the input cannot be recorded further: {error}"),
                HINT,
            )),
        };
        sink.finish()?;
        let mut left_out = plan.left_out;
        if reader.unreadable() > 0 {
            left_out.push(format!("{} packets of AAC that could not be read", reader.unreadable()));
        }
        Ok(Some(Connected { end, left_out, said }))
    }

    /// The first bytes of the input, in which its streams are described.
    fn head(
        &self,
        pieces: &Receiver<Vec<u8>>,
        keeper: &mut dyn PartKeeper<'_>,
    ) -> Result<Option<Vec<u8>>, LiveError> {
        let (mut head, mut first) = (Vec::new(), None);
        loop {
            match pieces.recv_timeout(GLANCE) {
                Ok(piece) => head.extend(piece),
                Err(RecvTimeoutError::Disconnected) if head.is_empty() => {
                    return Ok(None);
                }
                Err(RecvTimeoutError::Disconnected) => return Ok(Some(head)),
                Err(RecvTimeoutError::Timeout) => {}
            }
            keeper.tell(JobProgress { stage: "waiting", done: 0, total: None });
            if self.cancel.load(Ordering::Relaxed) {
                return Err(StoreError::Cancelled.into());
            }
            if head.is_empty() {
                // What begins at the end of the silence is looked at, and begins with a picture
                // that needs no other.
                let most = self.options.silence + ANALYSIS + TO_A_KEY_FRAME;
                self.silence.test(most).map_err(LiveError::Input)?;
                continue;
            }
            let first: &mut Instant = first.get_or_insert_with(Instant::now);
            if head.len() >= HEAD || first.elapsed() >= HEAD_TIME {
                return Ok(Some(head));
            }
        }
    }

    /// The plan for the streams of which something is in the head, which may get longer for that,
    /// and what is known of their tracks.
    ///
    /// FFmpeg passes nothing on before each stream that it copies has a packet: a stream that is
    /// announced and never comes would keep the whole recording in its memory.
    fn plan(
        &self,
        head: &mut Vec<u8>,
        pieces: &Receiver<Vec<u8>>,
        keeper: &mut dyn PartKeeper<'_>,
    ) -> Result<(RemuxPlan, Vec<TrackMarks>), LiveError> {
        let mut found = self.probed(|goes_on| probe::run(nut_input(), Some(head), goes_on))?;
        let silent = |found: &ProbeOutput, has: &dyn Fn(u32) -> bool| {
            found.streams.iter().any(|stream| found.is_wanted(stream) && !has(stream.index))
        };
        let in_front = |index| found.packets.iter().any(|packet| packet.stream_index == index);
        let mut left_out = Vec::new();
        if silent(&found, &in_front) {
            let begun = Instant::now();
            let with_packets = loop {
                let count = |goes_on: &mut dyn FnMut() -> bool| {
                    probe::streams_with_packets(nut_input(), head, goes_on)
                };
                let with_packets = self.probed(count)?;
                let is_all = !silent(&found, &|index| with_packets.contains(&index));
                let is_late = begun.elapsed() >= LATE_STREAMS || head.len() >= LATE_HEAD;
                if is_all || is_late || !self.lengthen(head, pieces, keeper)? {
                    break with_packets;
                }
            };
            let is_absent =
                |it: &ProbedStream| found.is_wanted(it) && !with_packets.contains(&it.index);
            let name = |it: &ProbedStream| format!("{}, of which nothing came", it.describe(""));
            let absent: Vec<&ProbedStream> =
                found.streams.iter().filter(|it| is_absent(it)).collect();
            left_out.extend(absent.iter().map(|it| name(it)));
            let absent: Vec<u32> = absent.iter().map(|it| it.index).collect();
            found.streams.retain(|it| !absent.contains(&it.index));
        }
        let mut plan = found.plan(0, None).map_err(LiveError::Input)?;
        plan.left_out.extend(left_out);
        let texts = std::mem::take(&mut plan.texts);
        plan.left_out.extend(texts.into_iter().map(|text| text.name));
        plan.ends = self.options.duration.map(|duration| duration.as_secs_f64());
        locked(self.heard).mark(&mut found.streams);
        let marks = TrackMarks::of(&found, &plan);
        Ok((plan, marks))
    }

    /// The forms of the tracks in LATM framing, which are repeated in the stream: FFmpeg copies the
    /// head for that.
    fn latm_tracks(&self, head: &[u8], plan: &RemuxPlan) -> Result<LatmTracks, LiveError> {
        let place = |stream: &SelectedStream| format!("0:{}", stream.index);
        let words = arguments(vec![nut_input()], plan, place);
        let remuxer = Process::start_reading(Stdio::piped(), "ffmpeg", &words, LATM_TIME)?;
        let goes_on = || !self.cancel.load(Ordering::Relaxed);
        let ended = remuxer.finish(head, MOST_COPIED, goes_on);
        if !goes_on() {
            return Err(StoreError::Cancelled.into());
        }
        let copied = ended.output.unwrap_or_default();
        let numbers = (0..).zip(&plan.streams).filter(|(_, stream)| is_latm(stream));
        let numbers = numbers.map(|(number, _)| number).collect();
        let mut reader = FragmentReader::new().unpacking_latm(numbers);
        let read = reader.push(&copied, &mut NoSink).and_then(|()| Ok(reader.latm_tracks()?));
        read.map_err(|error| {
            let message = format!("its AAC in LATM framing cannot be recorded: {error}");
            let hint = "convert it on the way: `ffmpeg -i INPUT -c:v copy -c:a aac -f mpegts - | \
                        tenuto record STORE NAME -`";
            LiveError::Input(Reason::new(message, hint))
        })
    }

    /// What a program says of the head, as long as the caller goes on.
    fn probed<T>(
        &self,
        ask: impl FnOnce(&mut dyn FnMut() -> bool) -> Result<Result<T, ProbeFailure>, StoreError>,
    ) -> Result<T, LiveError> {
        let cancel = self.cancel;
        let probed = ask(&mut || !cancel.load(Ordering::Relaxed))?;
        if cancel.load(Ordering::Relaxed) {
            return Err(StoreError::Cancelled.into());
        }
        probed.map_err(|failure| {
            LiveError::Input(Reason::from(match failure {
                ProbeFailure::TooLong => "its streams are not found".to_owned(),
                ProbeFailure::NotJson(words) | ProbeFailure::Said(words) => {
                    // The pipe between the processes is not the user's.
                    let of_input = words.split("; ").filter(|words| !words.starts_with("pipe:"));
                    let words = of_input.collect::<Vec<_>>().join("; ");
                    format!("its streams are not found: {words}")
                }
            }))
        })
    }

    /// Appends to the head what arrives in [`HEAD_TIME`]; false if the input has ended.
    fn lengthen(
        &self,
        head: &mut Vec<u8>,
        pieces: &Receiver<Vec<u8>>,
        keeper: &mut dyn PartKeeper<'_>,
    ) -> Result<bool, LiveError> {
        let begun = Instant::now();
        while begun.elapsed() < HEAD_TIME && head.len() < LATE_HEAD {
            match pieces.recv_timeout(GLANCE) {
                Ok(piece) => head.extend(piece),
                Err(RecvTimeoutError::Disconnected) => return Ok(false),
                Err(RecvTimeoutError::Timeout) => {}
            }
            keeper.tell(JobProgress { stage: "waiting", done: 0, total: None });
            if self.cancel.load(Ordering::Relaxed) {
                return Err(StoreError::Cancelled.into());
            }
        }
        Ok(true)
    }

    /// Records the fragments until they end.
    fn drain(
        &mut self,
        fragments: &Receiver<Vec<u8>>,
        reader: &mut FragmentReader,
        sink: &mut PartsSink<'_, '_>,
        receiver: &mut Process,
    ) -> Result<ConnectionEnd, FragmentError<StoreError>> {
        let (mut committed, mut end) = (Instant::now(), ConnectionEnd::Complete);
        loop {
            match fragments.recv_timeout(GLANCE) {
                Ok(piece) => record_piece(&piece, reader, sink)?,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Ok(end),
            }
            if sink.has_begun() && committed.elapsed() >= RecordingLoad::PERIOD {
                sink.commit(reader).map_err(FragmentError::Sink)?;
                committed = Instant::now();
            }
            // Called also while nothing comes: it is what tells that the caller has gone.
            let stage = if sink.has_begun() { "recording" } else { "waiting" };
            let done = sink.bytes();
            sink.keeper.tell(JobProgress { stage, done, total: None });
            if !matches!(end, ConnectionEnd::Complete) {
                continue;
            }
            // The remuxer ends when all that had arrived by now is recorded.
            if self.cancel.load(Ordering::Relaxed) {
                end = ConnectionEnd::Stopped;
                receiver.kill();
            } else if let Err(reason) = self.silence.test(self.options.silence) {
                end = ConnectionEnd::Lost(reason);
                receiver.kill();
            } else if let Some(stream) = self.later_stream()
                && sink.keeper.opens_again()
            {
                end = ConnectionEnd::Changed(Reason::from(format!("the input has {stream}")));
                receiver.kill();
            }
        }
    }
}

impl LiveJob<'_> {
    /// A stream that the input has had for some time only, and that is to be recorded. It may be of
    /// another programme than the one that is recorded.
    fn later_stream(&self) -> Option<String> {
        let is_of_all = self.options.program.is_none();
        locked(self.heard).later.first().filter(|_| is_of_all).cloned()
    }
}

/// Records a piece of the fragments, in which parts may end.
fn record_piece(
    mut piece: &[u8],
    reader: &mut FragmentReader,
    sink: &mut PartsSink<'_, '_>,
) -> Result<(), FragmentError<StoreError>> {
    loop {
        reader.push_part(&mut piece, sink)?;
        if !reader.has_whole_part() {
            return Ok(());
        }
        sink.end_part(reader).map_err(FragmentError::Sink)?;
        reader.forget_part();
    }
}

pub(super) fn nothing(said: &str) -> Reason {
    match said {
        "" => Reason::from("it ended before a frame was recorded"),
        said => Reason::from(format!("FFmpeg cannot copy its tracks (FFmpeg's message: {said})")),
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
        let message = format!("nothing to record came from it for {} s", most.as_secs());
        Err(Reason::new(message, "check its sender, or wait longer with --silence"))
    }
}

fn is_latm(stream: &SelectedStream) -> bool {
    stream.codec == "aac_latm"
}

/// Receives what is read only for its form.
struct NoSink;

impl FragmentSink for NoSink {
    type Error = Infallible;

    fn tracks(&mut self, _: &[TrackDescription]) -> Result<(), Infallible> {
        Ok(())
    }

    fn payload(&mut self, _: usize, _: &[u8]) -> Result<(), Infallible> {
        Ok(())
    }
}

fn nut_input() -> Vec<OsString> {
    PIPED_NUT.iter().map(OsString::from).collect()
}

/// Reads what a process writes, as it comes, into a queue; false if nobody reads the queue any
/// more before the end.
fn receive(mut stdout: ChildStdout, arriving: &SyncSender<Vec<u8>>, came: impl Fn()) -> bool {
    let mut buffer = vec![0; PIECE];
    while let Ok(got @ 1..) = stdout.read(&mut buffer) {
        came();
        if arriving.send(buffer[..got].to_vec()).is_err() {
            return false;
        }
    }
    true
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

/// The output arguments of the receiver. A stream that pauses is not waited for, as in [`LIVE`].
/// Both ends of the pipe would keep a list of syncpoints, which nobody seeks, and which grows for
/// as long as the recording.
const NUT_OUT: &[&str] = &[
    "-c",
    "copy",
    "-flush_packets",
    "1",
    "-max_interleave_delta",
    "500000",
    "-f",
    "nut",
    "-strict",
    "experimental",
    "-syncpoints",
    "none",
    "-write_index",
    "0",
    "pipe:1",
];

/// The time of a first picture, which FFmpeg's parser loses where packets have no place in a file
/// (RTP), and does not find out where pictures are sent in another order than they are shown in.
/// FFmpeg counts from zero there: the picture is shown then, and sent before.
const FIRST_TIME: &str = "setts=pts=if(eq(PTS\\,NOPTS)\\,max(DTS\\,0)\\,PTS)";

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
/// that are written at once, no long wait for a stream that pauses, and no list of all fragments.
const LIVE: &[&str] = &[
    "-frag_duration",
    "200000",
    "-flush_packets",
    "1",
    "-max_interleave_delta",
    "500000",
    "-movflags",
    "+skip_trailer",
];

/// The two processes, in errors.
const RECEIVER: &str = "FFmpeg, which read the input,";
const REMUXER: &str = "FFmpeg, which passed the frames on,";

/// What to do where an input changes its form.
const GO_ON: &str = "record it with --reconnect: what follows is a title of its own";

const HINT: &str = "try it with `ffprobe INPUT`";

/// What FFmpeg says where a map finds nothing.
const NO_STREAMS: &str = "matches no streams";

/// What it says of a codec for which the pipe between the processes has no code.
const NO_CODE: &str = "No codec tag defined";

/// What it says of an MP4 file whose index it cannot go to, or go back from.
const INDEX_BEHIND: &[&str] = &["moov atom not found", ": partial file"];

/// The time for which FFmpeg looks at an input before it passes it on.
const ANALYSIS: Duration = Duration::from_secs(3);

/// The time that an input which has begun may take to its first key frame.
const TO_A_KEY_FRAME: Duration = Duration::from_secs(4);

/// The bytes of an input, or the time of it, in which its streams are found.
const HEAD: usize = 4 << 20;
const HEAD_TIME: Duration = Duration::from_secs(1);

/// How long a stream that is announced is waited for: sound that is more behind is not in time with
/// its pictures. Meanwhile nothing is durable, so that the bytes have a bound, too.
const LATE_STREAMS: Duration = Duration::from_secs(10);
const LATE_HEAD: usize = 32 << 20;

/// The processor time of the copying of a head, and the bytes that come of it, at most.
const LATM_TIME: Duration = Duration::from_secs(60);
const MOST_COPIED: u64 = 2 * LATE_HEAD as u64;

/// The size of the pieces between processes, and how many of them wait in front of the remuxer: 64
/// MiB.
const PIECE: usize = 64 << 10;
const QUEUE: usize = 1024;

/// The processor time of a process that runs as long as a recording: without a limit.
const FOR_EVER: Duration = Duration::from_secs(u32::MAX as u64);
