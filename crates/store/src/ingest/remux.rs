//! Media through FFmpeg: probe, remux on a pipe, read, write, seal.

use super::fragments::Filling;
use super::probe::{Plan, Probe, input, probe};
use super::process::{Process, last_words, tail};
use super::{IngestReport, Job};
use crate::{StoreError, TitleWriter};
use media::FragmentError;
use std::ffi::OsString;
use std::io::Read;
use std::process::{ChildStdout, ExitStatus};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

pub(super) fn ingest(
    writer: TitleWriter<'_>,
    job: &mut Job<'_>,
) -> Result<IngestReport, StoreError> {
    if job.size == 0 {
        return Err(job.refused("it is empty"));
    }
    let found = probe(job)?;
    let plan = found.plan(job.size).map_err(|reason| job.refused(reason))?;
    let filling = Filling::new(writer, plan.streams.iter().map(|stream| stream.expected).collect());
    let mut process = Process::start("ffmpeg", &arguments(job, &found, &plan))?;
    let (filled, complaints, status) = run(&mut process, filling, job);
    job.tell("sealing", job.size)?;
    let said = last_words(&complaints);
    let filling = match (filled, status) {
        (Err(FragmentError::Sink(error)), _) => return Err(error),
        (filled, Some(status)) if !status.success() => {
            let reason = refusal(&said, filled.err());
            return Err(job.refused(reason));
        }
        (Ok(filling), Some(_)) => filling,
        (Err(error), _) => return Err(job.refused(refusal(&said, Some(error)))),
        (_, None) => return Err(job.refused(refusal(&said, None))),
    };
    let mut notes = Vec::new();
    if is_damage(&complaints) {
        let text = format!("it is damaged or cut short: FFmpeg says {said}");
        if !job.options.allow_damaged {
            let hint = "to take in what can be read of it, add --allow-damaged";
            return Err(job.refused(format!("{text}; {hint}")));
        }
        notes.push(text);
    } else if !said.is_empty() {
        notes.push(format!("FFmpeg says: {said}"));
    }
    let (writer, tracks) = filling.finish().map_err(|error| match error {
        FragmentError::Sink(error) => error,
        FragmentError::Stream(error) => {
            job.refused(refusal(&said, Some(FragmentError::Stream(error))))
        }
    })?;
    Ok(IngestReport { title: writer.seal(tracks)?, left_out: plan.left_out, notes })
}

/// Lets FFmpeg run to its end, or until something fails, and says how it ended: what was filled,
/// its complaints, its exit status (`None` when it had to be killed).
fn run<'a>(
    process: &mut Process,
    mut filling: Filling<'a>,
    job: &mut Job<'_>,
) -> (Result<Filling<'a>, FragmentError<StoreError>>, String, Option<ExitStatus>) {
    let (stdout, stderr) = process.pipes();
    // Reading the pipe and writing the device overlap; the channels bound what is under way.
    let (full, pieces) = sync_channel(PIECES);
    let (empty, spare) = sync_channel(PIECES + 2);
    std::thread::scope(|scope| {
        scope.spawn(move || pump(stdout, &full, &spare));
        let complaints = scope.spawn(move || tail(stderr));
        let drained = drain(&pieces, &empty, &mut filling, job);
        let ended = match drained {
            Ok(true) => process.wait().ok(),
            _ => {
                process.kill();
                // Whatever is still in the pipe must not keep the pump from its end.
                drop(pieces);
                let _ = process.wait();
                None
            }
        };
        let complaints = complaints.join().expect("it does not panic");
        (drained.map(|_| filling), complaints, ended)
    })
}

/// Feeds what comes; `Ok(false)` when nothing has come for too long.
fn drain(
    pieces: &Receiver<Vec<u8>>,
    empty: &SyncSender<Vec<u8>>,
    filling: &mut Filling<'_>,
    job: &mut Job<'_>,
) -> Result<bool, FragmentError<StoreError>> {
    let (mut done, mut last) = (0u64, Instant::now());
    loop {
        match pieces.recv_timeout(GLANCE) {
            Ok(piece) => {
                filling.push(&piece)?;
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

fn arguments(job: &Job<'_>, found: &Probe, plan: &Plan) -> Vec<OsString> {
    let mut words: Vec<OsString> = QUIETLY.iter().map(OsString::from).collect();
    words.extend(input(job.file));
    let (mut videos, mut sounds) = (0, 0);
    for stream in &plan.streams {
        words.extend(["-map".into(), format!("0:{}", stream.index).into()]);
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
        if stream.codec == "mpeg4" && found.may_pack_pictures() {
            words.extend([format!("-bsf:v:{videos}").into(), "mpeg4_unpack_bframes".into()]);
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

const QUIETLY: &[&str] = &["-nostdin", "-hide_banner", "-v", "error", "-fflags", "+genpts"];

/// Fragments of a second bound FFmpeg's memory and ours; `empty_moov` keeps samples out of the
/// header, `delay_moov` lets it say there what only the first packets tell (edit lists, AC-3's
/// configuration), in microseconds, so that no wait is rounded. Chapters and time codes
/// would become tracks of their own. FLAC in MP4 counts as experimental in FFmpeg 5.
const REMUX: &[&str] = &[
    "-c",
    "copy",
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
