//! Ingest of media through FFmpeg: probe, remux into a pipe, parse, write, seal.

use super::fragments::StreamIngest;
use super::numbered::CutPictures;
use super::plan::{RemuxPlan, SelectedStream};
use super::probe::{ProbeOutput, ProbedStream, input, probe};
use super::process::{Process, last_words, tail};
use super::text::{self, FoundTexts, TextStream};
use super::track_marks::{self, TrackMarks};
use super::{IngestJob, IngestReport, damage, kinds, metadata, renditions, thumbnails};
use crate::{StoreError, TitleWriter};
use media::{BadStream, Edit, FragmentError, LduIndex, TextTrack, TrackDescription};
use std::ffi::OsString;
use std::io::{self, Read};
use std::path::Path;
use std::process::{ChildStdout, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};
use units::{MediaTime, Reason};

pub(super) fn ingest(
    writer: TitleWriter<'_>,
    job: &mut IngestJob<'_>,
) -> Result<IngestReport, StoreError> {
    if job.size == 0 {
        return Err(job.refused("it is empty"));
    }
    let mut cut = CutPictures::default();
    if let Some(pictures) = job.pictures.take() {
        let checked = pictures.check_all(|| job.tell("probing", 0))?;
        job.pictures = Some(pictures);
        cut = checked.map_err(|reason| job.refused(reason))?;
        // Before all of them are copied.
        damage_notes(job, "", &Vec::from_iter(cut.missing()))?;
    }
    let file = job.file;
    let found = probe(job, file)?;
    let mut plan =
        found.plan(job.size, job.options.program).map_err(|reason| job.refused(reason))?;
    add_renditions(job, &found, &mut plan)?;
    let named = text::read_files(job)?;
    let expected = plan.streams.iter().map(|stream| stream.expected).collect();
    let streams = plan.streams.iter().enumerate();
    let latm = streams.filter(|(_, it)| it.codec == "aac_latm").map(|(number, _)| number);
    let ingest = StreamIngest::new(writer, expected, latm.collect());
    let mut pipeline = FfmpegPipeline::start(job, &found, &plan)?;
    let ((filled, complaints, status), texts) = beside_text(job, &plan.texts, |job| {
        let ran = run(&mut pipeline, ingest, job);
        let whole = ran.0.is_ok() && ran.2.is_some_and(|status| status.success());
        (ran, whole)
    });
    job.tell("sealing", job.size)?;
    let late_start = found.starts_late(&plan);
    let complaints = damage::serious(&complaints, late_start);
    let said = last_words(&complaints);
    // The store's own error comes first: FFmpeg was killed because of it, so its end explains
    // nothing. FFmpeg's bad end comes before a broken stream, which is its consequence.
    let ingest = match (filled, status) {
        // A failure of the store is not the file's fault, whatever FFmpeg said when it was killed.
        (Err(FragmentError::Sink(error)), _) => return Err(error),
        // FFmpeg's own reason explains more than the broken stream that it left.
        (filled, Some(status)) if !status.success() => {
            return Err(job.refused(refusal(job.file, &said, filled.err())));
        }
        (Ok(ingest), Some(_)) => ingest,
        (Err(error), _) => return Err(job.refused(refusal(job.file, &said, Some(error)))),
        (_, None) => return Err(job.refused(refusal(job.file, &said, None))),
    };
    let (unreadable, changes) = (ingest.unreadable(), ingest.changes());
    let (mut writer, mut tracks) = ingest.finish().map_err(|error| match error {
        FragmentError::Sink(error) => error,
        FragmentError::Stream(error) => {
            job.refused(refusal(job.file, &said, Some(FragmentError::Stream(error))))
        }
    })?;
    if !job.others.is_empty()
        && let Some(reason) = renditions::misaligned(&tracks, job.file, job.others)
    {
        return Err(job.refused(reason));
    }
    if plan.ends.is_some() {
        end_with_the_edits(&found, &plan, &mut tracks);
    }
    for (marks, (track, _)) in TrackMarks::of(&found, &plan).iter().zip(&mut tracks) {
        marks.complete(track);
    }
    plan.left_out.extend(keep_apertures(&plan, &mut tracks));
    let mut missing = damage::missing(&found, &plan, &tracks, job.file);
    if let Some(pictures) = &job.pictures {
        let there = tracks.first().map_or(0, |(_, ldus)| ldus.len());
        if there != pictures.count as usize {
            missing.push(format!("FFmpeg reads {there} of {} pictures", pictures.count));
        }
    }
    missing.extend(cut.missing());
    if unreadable > 0 {
        missing.push(format!("{unreadable} audio packets cannot be read"));
    }
    let mut notes = damage_notes(job, &complaints, &missing)?;
    if late_start {
        notes.push(LATE_START.to_owned());
    }
    notes.extend(damage::early_end(&tracks));
    notes.extend(changes);
    notes.extend(tracks.iter().enumerate().filter_map(|(i, (track, _))| dolby_vision(i, track)));
    notes.extend(track_marks::unknown_languages(&found, &plan));
    notes.extend(damage::unmarked_end(&found.format.format_name, job.file));
    if !texts.said.is_empty() {
        notes.push(format!("FFmpeg's message on its subtitles: {}", texts.said));
    }
    plan.left_out.extend(texts.left_out);
    let all: Vec<TextTrack> = texts.tracks.into_iter().chain(named).collect();
    plan.left_out.extend(metadata::left_out(&found, &tracks, &all));
    writer.set_texts(all);
    add_thumbnails(job, &mut plan, &tracks, &mut writer)?;
    Ok(IngestReport { title: writer.seal(tracks)?, left_out: plan.left_out, notes })
}

/// Gives the title thumbnails, if they are wanted and can be made.
fn add_thumbnails(
    job: &mut IngestJob<'_>,
    plan: &mut RemuxPlan,
    tracks: &[(TrackDescription, LduIndex)],
    writer: &mut TitleWriter<'_>,
) -> Result<(), StoreError> {
    let Some(interval) = job.options.thumbnails else { return Ok(()) };
    match thumbnails::make(job, plan, tracks, interval)? {
        Ok(made) => writer.set_thumbnails(made),
        Err(why) => plan.left_out.push(format!("thumbnails: {why}")),
    }
    job.tell("sealing", job.size)
}

/// Does the `work` of copying while the text tracks of the title's own file are read. The work says
/// whether text is of use then.
fn beside_text<T>(
    job: &mut IngestJob<'_>,
    streams: &[TextStream],
    work: impl FnOnce(&mut IngestJob<'_>) -> (T, bool),
) -> (T, FoundTexts) {
    let (words, cpu, stop) = (job.input(), cpu_time(job), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let texts = scope.spawn(|| text::read(words, streams, cpu, &stop));
        let (done, is_of_use) = work(job);
        while !texts.is_finished() {
            if !is_of_use || job.tell("copying", job.size).is_err() {
                stop.store(true, Ordering::Relaxed);
            }
            std::thread::sleep(SHORT_GLANCE);
        }
        (done, texts.join().expect("it does not panic"))
    })
}

/// Hides the few pictures behind the end of the source's edit lists that were copied, because
/// others are decoded from them or by rounding.
fn end_with_the_edits(
    found: &ProbeOutput,
    plan: &RemuxPlan,
    tracks: &mut [(TrackDescription, LduIndex)],
) {
    for (taken, (track, _)) in plan.streams.iter().zip(tracks) {
        let stream = found.streams.iter().find(|s| taken.file == 0 && s.index == taken.index);
        let Some(seconds) = stream.and_then(ProbedStream::seconds) else { continue };
        #[expect(clippy::cast_possible_truncation, reason = "nanoseconds of a title")]
        let duration = Some(MediaTime((seconds * 1e9).round() as i64));
        match track.edits.last_mut() {
            Some(edit) if edit.media_time.is_some() => edit.duration = duration,
            _ => track.edits.push(Edit { duration, media_time: Some(0) }),
        }
    }
}

/// Gives pictures their clean apertures back; returns those that are no part of the pictures.
fn keep_apertures(plan: &RemuxPlan, tracks: &mut [(TrackDescription, LduIndex)]) -> Vec<String> {
    let mut lost = Vec::new();
    for (taken, (track, _)) in plan.streams.iter().zip(tracks) {
        if taken.aperture.is_some_and(|aperture| !track.set_clean_aperture(&aperture)) {
            lost.push(format!("the clean aperture of video stream {}", taken.index));
        }
    }
    lost
}

/// The note on a track of Dolby Vision.
fn dolby_vision(number: usize, track: &TrackDescription) -> Option<String> {
    let vision = track.dolby_vision()?;
    let shown = match vision.has_own_colours() {
        true => "only players of Dolby Vision show its colours",
        false => "players without Dolby Vision show its base layer",
    };
    Some(format!("track {number} is Dolby Vision of profile {}: {shown}", vision.profile))
}

/// The notes on what is wrong with a file; an error if it is damaged and that is not allowed.
fn damage_notes(
    job: &IngestJob<'_>,
    complaints: &str,
    missing: &[String],
) -> Result<Vec<String>, StoreError> {
    let said = last_words(complaints);
    let damaged = damage::is_damage(complaints);
    if !damaged && missing.is_empty() {
        let note = (!said.is_empty()).then(|| format!("FFmpeg's message: {said}"));
        return Ok(note.into_iter().collect());
    }
    let what = match missing.join(", ") {
        what if what.is_empty() => String::new(),
        what => format!(": {what}"),
    };
    let detail = if damaged { format!(" (FFmpeg's message: {said})") } else { String::new() };
    if job.options.allow_damaged {
        return Ok(vec![format!("it is damaged or cut short{what}{detail}")]);
    }
    let message = format!("it is damaged or cut short{what}");
    Err(job.refused(Reason::new(message, format!("{ALLOW}{detail}"))))
}

/// Adds the video of the title's other files to the plan.
fn add_renditions(
    job: &mut IngestJob<'_>,
    found: &ProbeOutput,
    plan: &mut RemuxPlan,
) -> Result<(), StoreError> {
    let others = job.others;
    if !others.is_empty() && !plan.streams.iter().any(|stream| stream.video) {
        let hint = "name a file with the title's video and audio first";
        return Err(job.refused(Reason::new("it has no video", hint)));
    }
    for (number, other) in others.iter().enumerate() {
        let name = other.display().to_string();
        let probed = probe(job, other)?;
        if found.may_pack_pictures() || probed.may_pack_pictures() {
            let message = "MPEG-4 part 2 in AVI cannot be a rendition";
            return Err(job.refused(Reason::new(message, "remux the files first")));
        }
        let size = std::fs::metadata(other).map_or(0, |about| about.len());
        let more = probed.plan(size, None).map_err(|reason| job.refused(reason.about(&name)))?;
        plan.later.push(found.first_picture(plan) - probed.first_picture(&more));
        plan.add_rendition(more, number + 1, &name).map_err(|reason| job.refused(reason))?;
    }
    Ok(())
}

/// Runs FFmpeg to its end, or until something fails. Returns the ingested stream, FFmpeg's
/// messages, and its exit status (`None` if it had to be killed).
fn run<'a>(
    pipeline: &mut FfmpegPipeline,
    mut ingest: StreamIngest<'a>,
    job: &mut IngestJob<'_>,
) -> (Result<StreamIngest<'a>, FragmentError<StoreError>>, String, Option<ExitStatus>) {
    let (stdout, stderr) = pipeline.remuxer.pipes();
    let unpacker_stderr = pipeline.unpacker.as_mut().and_then(Process::stderr);
    // Reading the pipe and writing the device overlap; the channels bound the data between them.
    let (full, pieces) = sync_channel(PIECES);
    // Two more than are under way: one in the hands of each thread, so a piece given back always
    // fits.
    let (empty, spare) = sync_channel(PIECES + 2);
    std::thread::scope(|scope| {
        scope.spawn(move || pump(stdout, &full, &spare));
        // Read all the time: FFmpeg blocks when its standard error is full.
        let complaints = scope.spawn(move || damage::telling(stderr));
        let earlier = scope.spawn(move || unpacker_stderr.map(tail).unwrap_or_default());
        let drained = drain(&pieces, &empty, &mut ingest, job);
        let ended = match drained {
            Ok(true) => pipeline.wait().ok(),
            _ => {
                pipeline.kill();
                // A pump that waits for room in the channel must see that nobody receives any more.
                drop(pieces);
                let _ = pipeline.wait();
                None
            }
        };
        let complaints = [earlier, complaints].map(|it| it.join().expect("it does not panic"));
        (drained.map(|_| ingest), complaints.join("\n").trim().to_owned(), ended)
    })
}

/// Ingests the pieces of the pipe; `Ok(false)` if nothing arrived for too long.
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
                // After the write: a slow disk is not FFmpeg's silence.
                last = Instant::now();
                // The pump, which would reuse the buffer, may have ended.
                let _ = empty.try_send(piece);
            }
            Err(RecvTimeoutError::Timeout) if last.elapsed() > STALLED => return Ok(false),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Ok(true),
        }
        job.tell("copying", done.min(job.size)).map_err(FragmentError::Sink)?;
    }
}

/// Reads the pipe to its end. FFmpeg writes 32 KiB at a time, so that a piece is several reads.
fn pump(mut stdout: ChildStdout, full: &SyncSender<Vec<u8>>, spare: &Receiver<Vec<u8>>) {
    loop {
        // Does not wait for a spare one: `full` already bounds the pieces that exist.
        let mut piece = spare.try_recv().unwrap_or_else(|_| Vec::with_capacity(PIECE));
        piece.clear();
        // FFmpeg's exit status tells why the pipe ended.
        let read = stdout.by_ref().take(PIECE as u64).read_to_end(&mut piece);
        let more = read.is_ok() && !piece.is_empty();
        if !more || full.send(piece).is_err() {
            return;
        }
    }
}

/// One FFmpeg process, or two where packets contain several pictures: their times can be computed
/// only after they have been separated, and FFmpeg computes times only while reading.
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
        let cpu = cpu_time(job);
        if !found.may_pack_pictures() {
            let others = job.others.iter().zip(&plan.later).map(|(other, later)| {
                let offset = ["-itsoffset".into(), format!("{later:.6}").into()];
                offset.into_iter().chain(input(other)).collect()
            });
            let inputs = std::iter::once(with_levels(job.input())).chain(others).collect();
            let place = |stream: &SelectedStream| format!("{}:{}", stream.file, stream.index);
            let arguments = arguments(inputs, plan, place);
            return Ok(Self {
                unpacker: None,
                remuxer: Process::start("ffmpeg", &arguments, cpu)?,
            });
        }
        let mut unpacker = Process::start("ffmpeg", &unpacking(job, plan), cpu)?;
        let packets = unpacker.stdout().into();
        let from_pipe = PIPED_AVI.iter().map(OsString::from).collect();
        // The AVI between the two has only the chosen streams, numbered from zero in the plan's
        // order.
        let mut numbers = 0..;
        let mut place = |_: &SelectedStream| format!("0:{}", numbers.next().expect("endless"));
        let arguments = arguments(vec![with_levels(from_pipe)], plan, &mut place);
        let remuxer = Process::start_reading(packets, "ffmpeg", &arguments, cpu)?;
        Ok(Self { unpacker: Some(unpacker), remuxer })
    }

    fn kill(&mut self) {
        self.unpacker.iter_mut().for_each(Process::kill);
        self.remuxer.kill();
    }

    /// Waits for the end of both processes; returns the first failure, if there is one.
    fn wait(&mut self) -> io::Result<ExitStatus> {
        let last = self.remuxer.wait()?;
        match &mut self.unpacker {
            Some(unpacker) => unpacker.wait().map(|it| if it.success() { last } else { it }),
            None => Ok(last),
        }
    }
}

/// The most processor time of an FFmpeg process.
pub(super) fn cpu_time(job: &IngestJob<'_>) -> Duration {
    CPU_TIME + Duration::from_secs(job.size / CPU_RATE)
}

fn unpacking(job: &IngestJob<'_>, plan: &RemuxPlan) -> Vec<OsString> {
    let mut words: Vec<OsString> = QUIETLY.iter().map(OsString::from).collect();
    words.extend(input(job.file));
    let mut videos = 0..;
    for stream in &plan.streams {
        words.extend(["-map".into(), format!("0:{}", stream.index).into()]);
        // FFmpeg counts `-bsf:v` among the video streams of the output, not among all streams.
        let number = if stream.video { videos.next() } else { None };
        if let Some(number) = number.filter(|_: &u32| stream.codec == "mpeg4") {
            words.extend([format!("-bsf:v:{number}").into(), "mpeg4_unpack_bframes".into()]);
        }
    }
    words.extend(["-c", "copy", "-f", "avi", "pipe:1"].map(OsString::from));
    words
}

/// The first input of a process whose messages are read with their levels: the last word counts.
fn with_levels(input: Vec<OsString>) -> Vec<OsString> {
    WARNINGS.iter().map(OsString::from).chain(input).collect()
}

/// The arguments of the process that copies the streams of a plan into a fragmented stream.
pub(super) fn arguments(
    inputs: Vec<Vec<OsString>>,
    plan: &RemuxPlan,
    mut place: impl FnMut(&SelectedStream) -> String,
) -> Vec<OsString> {
    let mut words: Vec<OsString> = QUIETLY.iter().map(OsString::from).collect();
    for input in inputs {
        // Some containers (AVI) have decode times only, and fragments need presentation times, too.
        words.extend(["-fflags".into(), "+genpts".into()]);
        words.extend(input);
    }
    let (mut videos, mut sounds) = (0, 0);
    for stream in &plan.streams {
        words.extend(["-map".into(), place(stream).into()]);
        if !stream.video {
            if stream.codec == "aac" {
                // MP4 keeps the configuration apart from the packets; the filter changes nothing
                // where the source does too.
                words.extend([format!("-bsf:a:{sounds}").into(), "aac_adtstoasc".into()]);
            }
            sounds += 1;
            continue;
        }
        if stream.codec == "hevc" {
            // Parameter sets in the sample entry, as Apple's players and CMAF require.
            words.extend([format!("-tag:v:{videos}").into(), "hvc1".into()]);
        }
        if stream.decoding_times_only {
            words.extend([format!("-bsf:v:{videos}").into(), "setts=pts=DTS".into()]);
        }
        videos += 1;
    }
    if let Some(seconds) = plan.ends {
        words.extend(["-t".into(), format!("{seconds:.3}").into()]);
    }
    words.extend(REMUX.iter().map(OsString::from));
    words.extend(["-f".into(), plan.container.into(), "pipe:1".into()]);
    words
}

/// The reason of a refusal.
fn refusal(file: &Path, said: &str, error: Option<FragmentError<StoreError>>) -> Reason {
    if said.to_lowercase().contains("encryption") {
        return kinds::encrypted();
    }
    if let Some(reason) = kinds::uncopied(said) {
        return reason;
    }
    match (said, error) {
        ("", Some(FragmentError::Stream(BadStream::NoTracks))) => kinds::no_frames(file),
        ("", Some(FragmentError::Stream(error @ BadStream::Latm(_)))) => Reason::new(
            error.to_string(),
            "convert it first, for instance with `ffmpeg -i FILE -c:v copy -c:a aac NEW.mkv`, or \
             take it in with --as file",
        ),
        ("", Some(error)) => {
            Reason::new(format!("it cannot be kept as a title: {error}"), kinds::KEEP)
        }
        (said, _) if damage::is_damage(said) => kinds::unknown(
            "FFmpeg cannot copy its tracks, which are damaged or in no usual form",
            said,
        ),
        (said, _) => kinds::unknown("FFmpeg cannot copy its tracks", said),
    }
}

const LATE_START: &str =
    "it begins between two key frames: its video begins with the first key frame";

const ALLOW: &str = "to take in what can be read of it, add --allow-damaged";

/// Each message with its level, down to warnings.
const WARNINGS: &[&str] = &["-v", "level+warning"];

pub(super) const QUIETLY: &[&str] = &["-nostdin", "-hide_banner", "-v", "error"];

/// The input arguments for the output of the unpacker.
const PIPED_AVI: &[&str] = &["-protocol_whitelist", "pipe", "-f", "avi", "-i", "pipe:0"];

/// The output arguments. Titles and descriptions are left out, because FFmpeg cannot write a header
/// of more than 32 KiB to a pipe. Fragments of a second bound FFmpeg's memory and ours;
/// `empty_moov` keeps samples out of the header, and `delay_moov` lets the header contain what only
/// the first packets tell (edit lists, AC-3's configuration). The timescale in microseconds avoids
/// rounded edit lists. Chapters and time codes would become tracks. FLAC in MP4 counts as
/// experimental in FFmpeg 5.
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

/// The size of the pieces that pass from thread to thread.
const PIECE: usize = 512 << 10;

/// The number of pieces between the two threads: as many as FFmpeg makes during one write to the
/// disk.
pub(super) const PIECES: usize = 8;

/// The interval at which cancellation is checked.
pub(super) const GLANCE: Duration = Duration::from_millis(100);

/// The interval at which it is seen that the text has been read.
const SHORT_GLANCE: Duration = Duration::from_millis(5);

/// The processor time of FFmpeg beside the copying: probing the file again.
const CPU_TIME: Duration = Duration::from_secs(300);

/// The bytes for which FFmpeg gets one more second of processor time: it copies a hundred times as
/// many on a slow machine.
const CPU_RATE: u64 = 1 << 20;

/// The time without a byte after which FFmpeg is killed: it reads as fast as the source allows.
const STALLED: Duration = Duration::from_secs(120);
