//! Executes control requests, for a server and for a command that has opened the store itself.
//!
//! The two differ only in what [`StoreOwner`] names: a server schedules background I/O, keeps the
//! space of removed titles while they are played, and calibrates between the reads of sessions.

use super::{RecordingSeries, Reply, Request};
use crate::wire;
use bucket::PushOptions;
use media::{TitleIndex, TitleKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, SystemTime};
use store::{
    BackgroundIo, CheckOptions, IngestOptions, JobProgress, RecordingEvent, RecordingHost,
    RecordingOptions, ScrubResult, SeriesOptions, SoleOwner, Store, StoreAccess, StoreError,
    TitleOwner, TitleRecord,
};
use units::{BitRate, ByteCount};

/// The process that has a store open, as far as requests depend on it.
pub trait StoreOwner: StoreAccess {
    /// Another store of the same owner, or one that has no owner, which is opened for the time.
    fn other_store(&self, path: &Path) -> Result<Arc<dyn TitleOwner>, StoreError> {
        Ok(Arc::new(SoleOwner(Store::open(path)?)))
    }

    /// Schedules the reads and writes of one recording, for which time can be kept.
    fn recording_io(&self) -> Box<dyn BackgroundIo + '_>;

    /// Removes a title, or one copy of a title that stays elsewhere; returns it, and whether
    /// viewers keep its space for now.
    fn remove(&self, title: &str, copy_only: bool) -> Result<(TitleRecord, bool), StoreError>;

    /// Measures the device for about `budget`, and keeps the result with the store.
    fn calibrate(
        &self,
        budget: Duration,
        progress: &mut dyn FnMut(wire::Progress),
    ) -> Result<disk::Calibration, StoreError>;

    /// The file or device that the server has the store on; a failure where the owner is no server.
    fn served_file(&self) -> Result<wire::ServedFile, wire::Failure>;

    /// The server's status; a failure where the owner is no server.
    fn status(&self) -> Result<wire::ServerStatus, wire::Failure>;

    /// The server's sessions, or the one with this number if it is there, or those of one subject;
    /// a failure where the owner is no server.
    fn sessions(
        &self,
        session: Option<u64>,
        subject: Option<&str>,
    ) -> Result<wire::SessionList, wire::Failure>;

    /// The server's latest decisions on viewers; a failure where the owner is no server.
    fn decisions(&self) -> Result<wire::DecisionList, wire::Failure>;

    /// Reads the server's configuration again; a failure where it cannot be used, or the owner is
    /// no server.
    fn reload(&self) -> Result<wire::ReloadReport, wire::Failure>;

    /// Drains the disk, ends that, or neither, and reports how far it is; a failure where the owner
    /// is no server.
    fn drain(&self, drain: Option<bool>) -> Result<wire::DrainReport, wire::Failure>;

    /// Lets the program start anew in the server's place; a failure where it cannot, or the owner
    /// is no server.
    fn restart(&self) -> Result<(), wire::Failure>;

    /// Lets the server end when no session is active, at the latest after `grace`; a failure where
    /// the owner is no server.
    fn stop(&self, grace: Duration) -> Result<(), wire::Failure>;

    /// Ends a recording into the store; a failure where there is none of this name, or the owner is
    /// no server.
    fn end_recording(&self, title: &str) -> Result<(), wire::Failure>;

    /// Ends a session of the server; a failure where there is none of this number.
    fn end_session(&self, session: u64) -> Result<(), wire::Failure>;

    /// Ends the sessions that tokens of this subject began; a failure where the owner is no server.
    fn end_sessions(&self, subject: &str) -> Result<wire::EndedSessions, wire::Failure>;
}

/// Executes one request. `cancel`: set when the answer is no longer waited for. `progress`: called
/// from time to time during long requests.
pub fn execute(
    owner: &dyn StoreOwner,
    request: &Request,
    cancel: &AtomicBool,
    progress: &mut dyn FnMut(wire::Progress),
) -> Result<Reply, wire::Failure> {
    match request {
        Request::Status => return Ok(Reply::Status(Box::new(owner.status()?))),
        Request::ServedFile => return Ok(Reply::ServedFile(owner.served_file()?)),
        Request::Sessions { session: None, subject } => {
            return Ok(Reply::Sessions(owner.sessions(None, subject.as_deref())?));
        }
        Request::Sessions { session: Some(session), .. } => {
            let found = owner.sessions(Some(*session), None)?.sessions.into_iter().next();
            let report = found.ok_or_else(|| wire::Failure::no_session(*session))?;
            return Ok(Reply::Session(Box::new(report)));
        }
        Request::Decisions => return Ok(Reply::Decisions(owner.decisions()?)),
        Request::Reload => return Ok(Reply::Reloaded(owner.reload()?)),
        Request::Drain { drain } => return Ok(Reply::Drain(owner.drain(*drain)?)),
        Request::Restart => {
            owner.restart()?;
            return Ok(Reply::Restarting);
        }
        Request::Stop { seconds } => {
            let grace = Duration::try_from_secs_f64(*seconds).unwrap_or_default();
            owner.stop(grace)?;
            return Ok(Reply::Stopping);
        }
        Request::EndSession { session } => {
            owner.end_session(*session)?;
            return Ok(Reply::SessionEnded);
        }
        Request::EndSessions { subject } => {
            return Ok(Reply::SessionsEnded(owner.end_sessions(subject)?));
        }
        Request::EndRecording { title } => {
            owner.end_recording(title)?;
            return Ok(Reply::RecordingEnding);
        }
        Request::Push { title, bucket, verify } => {
            let store: &dyn StoreAccess = &(owner.store(), owner.background_io());
            let options = PushOptions { verify: *verify };
            let mut progress = |done: store::JobProgress| progress(done.into());
            let pushed = bucket.push_with(store, title, options, &mut progress, cancel)?;
            return Ok(Reply::Pushed(wire::PushedTitle::new(title, &pushed, *verify)));
        }
        Request::Fill { title, bucket } => {
            let store: &dyn StoreAccess = &(owner.store(), owner.background_io());
            let filled = bucket.fill(store, title, &mut |done| progress(done.into()), cancel)?;
            return Ok(Reply::Filled(wire::ListedTitle::from(&filled)));
        }
        _ => {}
    }
    execute_on_store(owner, request, cancel, progress).map_err(|error| {
        let error = match error {
            // `ls` does not have it yet, and whoever asks may see it grow.
            StoreError::NoTitle { name, .. } if owner.store().recording(&name).is_some() => {
                StoreError::BeingRecorded { name }
            }
            error => error,
        };
        (&error).into()
    })
}

/// The other stores of a request.
fn others(
    owner: &dyn StoreOwner,
    paths: &[PathBuf],
) -> Result<Vec<Arc<dyn TitleOwner>>, StoreError> {
    let open = |path: &PathBuf| {
        owner
            .other_store(path)
            .map_err(|error| StoreError::OtherStore { path: path.clone(), source: Box::new(error) })
    };
    paths.iter().map(open).collect()
}

/// Makes the changes that these stores missed while they were away, before titles that only they
/// have are copied from them.
fn catch_up(store: &Store, others: &[Arc<dyn TitleOwner>]) {
    let beside = others.iter().map(StoreAccess::store);
    let all: Vec<&Store> = std::iter::once(store).chain(beside).collect();
    // A change that could not be made stays noted, and the store that failed says why when it is
    // used.
    store::catch_up(&all, &|number, id| match number.checked_sub(1) {
        None => store.release(id),
        Some(other) => others[other].free_hidden(id),
    });
}

/// Keeps with a store how much damage was found, or left, when all of it was read.
fn keep_result(store: &Store, pieces: usize) {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let found = u32::try_from(pieces).unwrap_or(u32::MAX);
    // The report is what was asked for, also of a store that cannot be written any more.
    let _ = store.keep_scrub_result(ScrubResult { finished: now.as_secs(), found });
}

fn execute_on_store(
    owner: &dyn StoreOwner,
    request: &Request,
    cancel: &AtomicBool,
    progress: &mut dyn FnMut(wire::Progress),
) -> Result<Reply, StoreError> {
    let (store, io) = (owner.store(), owner.background_io());
    let mut on_bytes = |done: JobProgress| progress(done.into());
    Ok(match request {
        Request::Ls(wanted) => Reply::Titles(wire::TitleList::from(&store.page(wanted))),
        Request::Info { title: None } => Reply::Store(wire::StoreInfo::of(store)),
        Request::Info { title: Some(title) } => {
            let (record, index) = read_index(store, title, io)?;
            Reply::Title(wire::TitleDetail::new(&record, &index))
        }
        Request::Index { title } => {
            let (_, index) = read_index(store, title, io)?;
            Reply::Index(units::to_hex(&index.encode()))
        }
        Request::Ingest {
            files,
            as_file,
            title,
            allow_damaged,
            renditions,
            program,
            subtitles,
            thumbnails,
            fps,
        } => {
            let options = IngestOptions {
                kind: if *as_file { TitleKind::File } else { TitleKind::Media },
                name: title.clone(),
                allow_damaged: *allow_damaged,
                renditions: *renditions,
                program: *program,
                subtitles: subtitles.clone(),
                thumbnails: thumbnails.map(|seconds| Duration::from_secs(seconds.into())),
                fps: *fps,
            };
            let outcomes = store::ingest(store, files, &options, io, &mut on_bytes, cancel);
            // A refused file is part of the report; it does not fail the request, because others
            // may have been ingested.
            Reply::Ingest(wire::IngestReport::from(outcomes.as_slice()))
        }
        Request::Record { input, title, seconds, program, silence, rate, series } => {
            let options = RecordingOptions {
                name: title.clone(),
                duration: seconds.map(seconds_of),
                program: *program,
                silence: seconds_of(*silence),
                rate: rate.map(BitRate),
            };
            let io = owner.recording_io();
            let host = &mut RequestHost { owner, progress };
            if let Some(RecordingSeries { keep, part, reconnect }) = series {
                let series = SeriesOptions {
                    keep: keep.map(seconds_of),
                    part: seconds_of(*part),
                    reconnect: *reconnect,
                };
                let report =
                    store::record_series(store, input, &options, &series, host, &*io, cancel)?;
                let report = wire::SeriesReport::new(title, &report);
                return Ok(Reply::RecordedSeries(Box::new(report)));
            }
            let report = store::record(store, input, &options, &*io, host, cancel)?;
            Reply::Recorded(Box::new(wire::RecordingReport::from(&report)))
        }
        Request::Rm { title, copy_only } => {
            // The owner removes it, not the store: a served title may be in use and ends with its
            // last session.
            let (record, in_use) = owner.remove(title, *copy_only)?;
            Reply::Removed(wire::RemovedTitle { title: (&record).into(), in_use })
        }
        Request::Trim => Reply::Trimmed(store.trim(io, &mut on_bytes, cancel)?.into()),
        Request::Rename { old, new } => {
            store.rename(old, new)?;
            Reply::Renamed
        }
        Request::Export { title, out } => {
            let report = store::export(store, title, out, io, &mut on_bytes, cancel)?;
            Reply::Export(wire::ExportReport::from(&report))
        }
        Request::Check { scrub } => {
            let options = CheckOptions { scrub: *scrub };
            let report = store.check_with(&options, io, &mut on_bytes, cancel)?;
            if *scrub {
                keep_result(store, report.findings.len());
            }
            Reply::Check(wire::CheckReport::from(&report))
        }
        Request::Repair { from } => {
            let others = others(owner, from)?;
            let sources: Vec<_> = others.iter().map(|other| other as &dyn StoreAccess).collect();
            catch_up(store, &others);
            let target: &dyn StoreAccess = &(store, io);
            let report = store::repair(target, &sources, &mut on_bytes, cancel)?;
            keep_result(store, report.left.len());
            Reply::Repaired(wire::RepairReport::from(&report))
        }
        Request::Copy { title, from } => {
            let others = others(owner, from)?;
            let sources: Vec<_> = others.iter().map(|other| other as &dyn StoreAccess).collect();
            catch_up(store, &others);
            let target: &dyn StoreAccess = &(store, io);
            let copied = store::copy_title(target, &sources, title, &mut on_bytes, cancel)?;
            Reply::Copied(wire::ListedTitle::from(&copied))
        }
        Request::Verify { title } => {
            let verified = store.verify(title, io, &mut on_bytes, cancel)?;
            Reply::Verified(wire::ListedTitle::from(&verified))
        }
        Request::Calibrate { seconds } => {
            // An impossible number means no time of its own: the calibration then takes its
            // minimum.
            let budget = Duration::try_from_secs_f64(*seconds).unwrap_or_default();
            let calibration = owner.calibrate(budget, progress)?;
            Reply::Calibration(Box::new(wire::Calibration::from(&calibration)))
        }
        Request::Push { .. }
        | Request::Fill { .. }
        | Request::Status
        | Request::Sessions { .. }
        | Request::EndSession { .. }
        | Request::EndSessions { .. }
        | Request::EndRecording { .. }
        | Request::Decisions
        | Request::Reload
        | Request::Drain { .. }
        | Request::Restart
        | Request::Stop { .. }
        | Request::ServedFile => unreachable!("answered by `execute`"),
    })
}

fn seconds_of(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or_default()
}

/// The owner of a store as the host of a recording that a request asks for.
struct RequestHost<'a> {
    owner: &'a dyn StoreOwner,
    progress: &'a mut dyn FnMut(wire::Progress),
}

impl RecordingHost for RequestHost<'_> {
    fn progress(&mut self, progress: JobProgress) {
        (self.progress)(progress.into());
    }

    fn event(&mut self, event: RecordingEvent) {
        let stage = "recording".to_owned();
        let event = Some(wire::RecordingEvent::from(event));
        (self.progress)(wire::Progress { stage, done: 0, total: None, event });
    }

    fn remove(&mut self, title: &str) -> Result<(), StoreError> {
        self.owner.remove(title, false).map(|_| ())
    }
}

fn read_index(
    store: &Store,
    title: &str,
    io: &dyn BackgroundIo,
) -> Result<(TitleRecord, Arc<TitleIndex>), StoreError> {
    let record = store.find(title)?;
    let _permit = io.acquire(ByteCount(record.index_bytes.max(1)));
    let index = store.index(record.id)?;
    Ok((record, index))
}
