//! Media through FFmpeg: probe, remux on a pipe, read, write, seal.

use super::fragments::StreamIngest;
use super::probe::{ProbeOutput, RemuxPlan, SelectedStream, input, probe};
use super::process::{Process, last_words, tail};
use super::{IngestJob, IngestReport, renditions};
use crate::{StoreError, TitleWriter};
use media::{FragmentError, LduIndex, TrackDescription};
use std::ffi::OsString;
use std::io::{self, Read};
use std::path::PathBuf;
use std::process::{ChildStdout, ExitStatus};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

pub(super) fn ingest(
    writer: TitleWriter<'_>,
    job: &mut IngestJob<'_>,
) -> Result<IngestReport, StoreError> {
    if job.size == 0 {
        return Err(job.refused("it is empty"));
    }
    let file = job.file;
    let found = probe(job, file)?;
    let mut plan = found.plan(job.size).map_err(|reason| job.refused(reason))?;
    add_renditions(job, &found, &mut plan)?;
    let ingest =
        StreamIngest::new(writer, plan.streams.iter().map(|stream| stream.expected).collect());
    let mut pipeline = FfmpegPipeline::start(job, &found, &plan)?;
    let (filled, complaints, status) = run(&mut pipeline, ingest, job);
    job.tell("sealing", job.size)?;
    let said = last_words(&complaints);
    let ingest = match (filled, status) {
        (Err(FragmentError::Sink(error)), _) => return Err(error),
        (filled, Some(status)) if !status.success() => {
            let reason = refusal(&said, filled.err());
            return Err(job.refused(reason));
        }
        (Ok(ingest), Some(_)) => ingest,
        (Err(error), _) => return Err(job.refused(refusal(&said, Some(error)))),
        (_, None) => return Err(job.refused(refusal(&said, None))),
    };
    let mut notes = Vec::new();
    if is_damage(&complaints) {
        let text = format!("it is damaged or cut short: FFmpeg says {said}");
        if !job.options.allow_damaged {
            return Err(job.refused(format!("{text}; {ALLOW}")));
        }
        notes.push(text);
    } else if !said.is_empty() {
        notes.push(format!("FFmpeg says: {said}"));
    }
    let (writer, tracks) = ingest.finish().map_err(|error| match error {
        FragmentError::Sink(error) => error,
        FragmentError::Stream(error) => {
            job.refused(refusal(&said, Some(FragmentError::Stream(error))))
        }
    })?;
    if !job.others.is_empty()
        && let Some(reason) = renditions::misaligned(&tracks, job.file, job.others)
    {
        return Err(job.refused(reason));
    }
    if let Some(promised) = found.promised().filter(|&promised| is_short(&tracks, promised)) {
        let text = format!(
            "it is damaged or cut short: its header promises {:.1} s, it ends after {:.1} s",
            promised,
            longest(&tracks),
        );
        if !job.options.allow_damaged {
            return Err(job.refused(format!("{text}; {ALLOW}")));
        }
        notes.push(text);
    }
    Ok(IngestReport { title: writer.seal(tracks)?, left_out: plan.left_out, notes })
}

/// Takes the pictures of the title's other files into the plan.
fn add_renditions(
    job: &mut IngestJob<'_>,
    found: &ProbeOutput,
    plan: &mut RemuxPlan,
) -> Result<(), StoreError> {
    let others = job.others;
    if !others.is_empty() && !plan.streams.iter().any(|stream| stream.video) {
        return Err(job.refused("it has no pictures; the first file is the title's own"));
    }
    for (number, other) in others.iter().enumerate() {
        let name = other.display().to_string();
        let probed = probe(job, other)?;
        if found.may_pack_pictures() || probed.may_pack_pictures() {
            let reason = "MPEG-4 part 2 in AVI cannot be a rendition; remux the files first";
            return Err(job.refused(reason));
        }
        let size = std::fs::metadata(other).map_or(0, |about| about.len());
        let more = probed.plan(size).map_err(|reason| job.refused(format!("{name}: {reason}")))?;
        plan.add_rendition(more, number + 1, &name).map_err(|reason| job.refused(reason))?;
    }
    Ok(())
}

/// Lets FFmpeg run to its end, or until something fails, and says how it ended: what was filled,
/// its complaints, its exit status (`None` when it had to be killed).
fn run<'a>(
    pipeline: &mut FfmpegPipeline,
    mut ingest: StreamIngest<'a>,
    job: &mut IngestJob<'_>,
) -> (Result<StreamIngest<'a>, FragmentError<StoreError>>, String, Option<ExitStatus>) {
    let (stdout, stderr) = pipeline.remuxer.pipes();
    let unpacker_stderr = pipeline.unpacker.as_mut().and_then(Process::stderr);
    // Reading the pipe and writing the device overlap; the channels bound what is under way.
    let (full, pieces) = sync_channel(PIECES);
    let (empty, spare) = sync_channel(PIECES + 2);
    std::thread::scope(|scope| {
        scope.spawn(move || pump(stdout, &full, &spare));
        let complaints = scope.spawn(move || tail(stderr));
        let earlier = scope.spawn(move || unpacker_stderr.map(tail).unwrap_or_default());
        let drained = drain(&pieces, &empty, &mut ingest, job);
        let ended = match drained {
            Ok(true) => pipeline.wait().ok(),
            _ => {
                pipeline.kill();
                // Whatever is still in the pipe must not keep the pump from its end.
                drop(pieces);
                let _ = pipeline.wait();
                None
            }
        };
        let complaints = [earlier, complaints].map(|it| it.join().expect("it does not panic"));
        (drained.map(|_| ingest), complaints.join("\n").trim().to_owned(), ended)
    })
}

/// Feeds what comes; `Ok(false)` when nothing has come for too long.
fn drain(
    pieces: &Receiver<Vec<u8>>,
    empty: &SyncSender<Vec<u8>>,
    ingest: &mut StreamIngest<'_>,
    job: &mut IngestJob<'_>,
) -> Result<bool, FragmentError<StoreError>> {
    let (mut done, mut last) = (0u64, Instant::now());
    loop {
        match pieces.recv_timeout(GLANCE) {
            Ok(piece) => {
                ingest.push(&piece)?;
                done += piece.len() as u64;
                last = Instant::now();
                // Nobody takes it back when the pump has ended.
                let _ = empty.try_send(piece);
            }
            Err(RecvTimeoutError::Timeout) if last.elapsed() > STALLED => return Ok(false),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Ok(true),
        }
        job.tell("copying", done.min(job.size)).map_err(FragmentError::Sink)?;
    }
}

/// Reads the pipe to its end. FFmpeg writes 32 KiB at a time, so a piece is several reads.
fn pump(mut stdout: ChildStdout, full: &SyncSender<Vec<u8>>, spare: &Receiver<Vec<u8>>) {
    loop {
        let mut piece = spare.try_recv().unwrap_or_else(|_| Vec::with_capacity(PIECE));
        piece.clear();
        // The exit status tells why it ended.
        let read = stdout.by_ref().take(PIECE as u64).read_to_end(&mut piece);
        let more = read.is_ok() && !piece.is_empty();
        if !more || full.send(piece).is_err() {
            return;
        }
    }
}

/// FFmpeg as it is run: once, or twice where pictures lie packed. Their times can be worked out
/// only after they have been taken apart, and FFmpeg works out times only where it reads.
///
/// ```text
/// file ──▶ remuxer ──fragments──▶
/// file ──▶ unpacker ──AVI, a picture a packet──▶ remuxer ──fragments──▶
/// ```
struct FfmpegPipeline {
    unpacker: Option<Process>,
    remuxer: Process,
}

impl FfmpegPipeline {
    fn start(
        job: &IngestJob<'_>,
        found: &ProbeOutput,
        plan: &RemuxPlan,
    ) -> Result<Self, StoreError> {
        if !found.may_pack_pictures() {
            let files = std::iter::once(job.file).chain(job.others.iter().map(PathBuf::as_path));
            let inputs = files.map(input).collect();
            let place = |stream: &SelectedStream| format!("{}:{}", stream.file, stream.index);
            let arguments = arguments(inputs, plan, place);
            return Ok(Self { unpacker: None, remuxer: Process::start("ffmpeg", &arguments)? });
        }
        let mut unpacker = Process::start("ffmpeg", &unpacking(job, plan))?;
        let packets = unpacker.stdout().into();
        let from_pipe = PIPED_AVI.iter().map(OsString::from).collect();
        let mut place = 0..;
        let mut place = |_: &SelectedStream| format!("0:{}", place.next().expect("without end"));
        let arguments = arguments(vec![from_pipe], plan, &mut place);
        let remuxer = Process::start_reading(packets, "ffmpeg", &arguments)?;
        Ok(Self { unpacker: Some(unpacker), remuxer })
    }

    fn kill(&mut self) {
        self.unpacker.iter_mut().for_each(Process::kill);
        self.remuxer.kill();
    }

    /// Waits for the end of both; the first bad end is the pipeline's.
    fn wait(&mut self) -> io::Result<ExitStatus> {
        let last = self.remuxer.wait()?;
        match &mut self.unpacker {
            Some(unpacker) => unpacker.wait().map(|it| if it.success() { last } else { it }),
            None => Ok(last),
        }
    }
}

fn unpacking(job: &IngestJob<'_>, plan: &RemuxPlan) -> Vec<OsString> {
    let mut words: Vec<OsString> = QUIETLY.iter().map(OsString::from).collect();
    words.extend(input(job.file));
    let mut videos = 0..;
    for stream in &plan.streams {
        words.extend(["-map".into(), format!("0:{}", stream.index).into()]);
        let number = if stream.video { videos.next() } else { None };
        if let Some(number) = number.filter(|_: &u32| stream.codec == "mpeg4") {
            words.extend([format!("-bsf:v:{number}").into(), "mpeg4_unpack_bframes".into()]);
        }
    }
    words.extend(["-c", "copy", "-f", "avi", "pipe:1"].map(OsString::from));
    words
}

fn arguments(
    inputs: Vec<Vec<OsString>>,
    plan: &RemuxPlan,
    mut place: impl FnMut(&SelectedStream) -> String,
) -> Vec<OsString> {
    let mut words: Vec<OsString> = QUIETLY.iter().map(OsString::from).collect();
    for input in inputs {
        words.extend(["-fflags".into(), "+genpts".into()]);
        words.extend(input);
    }
    let (mut videos, mut sounds) = (0, 0);
    for stream in &plan.streams {
        words.extend(["-map".into(), place(stream).into()]);
        if !stream.video {
            if stream.codec == "aac" {
                // MP4 keeps the configuration apart from the packets; does nothing where the
                // source does, too.
                words.extend([format!("-bsf:a:{sounds}").into(), "aac_adtstoasc".into()]);
            }
            sounds += 1;
            continue;
        }
        if stream.codec == "hevc" {
            // Parameter sets in the sample entry: what Apple's players and CMAF want.
            words.extend([format!("-tag:v:{videos}").into(), "hvc1".into()]);
        }
        videos += 1;
    }
    words.extend(REMUX.iter().map(OsString::from));
    words.extend(["-f".into(), plan.container.into(), "pipe:1".into()]);
    words
}

/// Why, in one sentence.
fn refusal(said: &str, error: Option<FragmentError<StoreError>>) -> String {
    let reason = match (said, error) {
        ("", None) => "FFmpeg stopped half-way without a word".to_owned(),
        ("", Some(error)) => format!("FFmpeg's remux of it cannot be used: {error}"),
        (said, _) => format!("FFmpeg cannot remux it: {said}"),
    };
    format!("{reason}; if its bytes are wanted, take it in with --as file")
}

/// Whether the tracks end long before they should.
fn is_short(tracks: &[(TrackDescription, LduIndex)], promised: f64) -> bool {
    promised - longest(tracks) > ROUNDING + promised / 100.0
}

/// Seconds until the last track ends.
fn longest(tracks: &[(TrackDescription, LduIndex)]) -> f64 {
    let seconds = |(track, ldus): &(TrackDescription, LduIndex)| {
        #[expect(clippy::cast_precision_loss, reason = "to tell hours from seconds")]
        let ticks = ldus.duration_ticks() as f64;
        ticks / f64::from(track.timescale.0)
    };
    tracks.iter().map(seconds).fold(0.0, f64::max)
}

/// Whether FFmpeg complained of the file, rather than of something it made the best of.
fn is_damage(complaints: &str) -> bool {
    let complaints = complaints.to_lowercase();
    DAMAGE.iter().any(|sign| complaints.contains(sign))
}

/// What FFmpeg's demuxers and parsers say of files that are cut short or rotten.
const DAMAGE: &[&str] = &[
    "partial file",
    "ended prematurely",
    "truncat",
    "corrupt",
    "invalid",
    "missing picture",
    "error reading",
    "broken header",
    "wrong sample count",
    "error applying bitstream filters",
    "i/o error",
    "input/output error",
    "read error",
    "end of file",
];

const ALLOW: &str = "to take in what can be read of it, add --allow-damaged";

/// Seconds by which headers are wrong of files that are whole: a packet or two.
const ROUNDING: f64 = 0.5;

const QUIETLY: &[&str] = &["-nostdin", "-hide_banner", "-v", "error"];

/// What the unpacker has written.
const PIPED_AVI: &[&str] = &["-protocol_whitelist", "pipe", "-f", "avi", "-i", "pipe:0"];

/// Titles and descriptions are left out: FFmpeg cannot put a header of more than 32 KiB on a pipe.
/// Fragments of a second bound FFmpeg's memory and ours; `empty_moov` keeps samples out of the
/// header, `delay_moov` lets it say there what only the first packets tell (edit lists, AC-3's
/// configuration), in microseconds, so that no wait is rounded. Chapters and time codes
/// would become tracks of their own. FLAC in MP4 counts as experimental in FFmpeg 5.
const REMUX: &[&str] = &[
    "-c",
    "copy",
    "-map_metadata:g",
    "-1",
    "-map_chapters",
    "-1",
    "-write_tmcd",
    "0",
    "-strict",
    "experimental",
    "-movflags",
    "+empty_moov+delay_moov+default_base_moof",
    "-movie_timescale",
    "1000000",
    "-frag_duration",
    "1000000",
];

/// Bytes handed from thread to thread at once.
const PIECE: usize = 512 << 10;

/// Pieces under way between the two threads: what FFmpeg makes while one write is at the disk.
const PIECES: usize = 8;

/// How often to look whether the work has been called off.
const GLANCE: Duration = Duration::from_millis(100);

/// FFmpeg reads as fast as the source gives; so long without a byte, it will not come back.
const STALLED: Duration = Duration::from_secs(120);
