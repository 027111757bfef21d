//! A served store as the owner of its control requests: background I/O takes permits from the
//! engine, and removal and calibration involve the core.

use super::{Reply, Request, StoreOwner, execute};
use crate::background_io::{EngineBackgroundIo, RecordingIo};
use crate::damage::{FoundBy, TOLD};
use crate::library::{OpenStore, StoredCopy};
use crate::messages::{CoreHandle, Event, StopBy};
use crate::reload::Reloader;
use crate::running_writes::{RunningWrites, WriteGuard, WriteKind};
use crate::shared::Shared;
use crate::title_owner::EngineTitleOwner;
use crate::{ServerConfig, opening, wire};
use crossbeam_channel::bounded;
use device::{CalibrateOptions, CalibrateProgress, DiskAccess};
use disk::Calibration;
use engine::SessionId;
use serde_json::json;
use std::any::Any;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use store::{
    BackgroundIo, RecordingInput, SoleOwner, Store, StoreAccess, StoreError, TitleId, TitleOwner,
    TitleRecord,
};
use units::{ByteCount, Hinted, Reason};

/// One store of a running server.
#[derive(Debug)]
pub(crate) struct ServedStore {
    /// Index of the store in the library.
    number: usize,
    shared: Arc<Shared>,
    core: CoreHandle,
    config: Arc<ServerConfig>,
    reloader: Arc<Reloader>,
    io: EngineBackgroundIo,
}

impl ServedStore {
    /// The store with this index in the library.
    pub(crate) fn new(
        number: usize,
        shared: Arc<Shared>,
        core: CoreHandle,
        config: Arc<ServerConfig>,
        reloader: Arc<Reloader>,
    ) -> Self {
        let io = EngineBackgroundIo::new(core.clone(), &shared.content.stores[number]);
        Self { number, shared, core, config, reloader, io }
    }

    /// Frees the space of a hidden title when no session plays it any more; whether one does now.
    pub(crate) fn withdraw(&self, id: TitleId) -> bool {
        let copy = StoredCopy { store: self.number, id };
        let (answer, in_use) = bounded(1);
        self.core.send(Event::Withdraw { copy, in_use: answer });
        // A core that has ended plays nothing.
        in_use.recv().unwrap_or(false)
    }

    /// Executes a request, as [`execute`] does, and tells the outcome of an ingest or a recording.
    /// No title is written to a disk that is drained.
    pub(crate) fn execute(
        &self,
        request: &Request,
        cancel: &AtomicBool,
        progress: &mut dyn FnMut(wire::Progress),
    ) -> Result<Reply, wire::Failure> {
        if let Request::Record { input: RecordingInput::StandardInput, .. } = request {
            let message = "the store is served, and its server has no standard input";
            let hint = "make a named pipe (mkfifo), record it, and write into it";
            return Err(wire::Failure::new("not-recorded", message, hint));
        }
        let begun = self.begin_writes(request).map_err(|error| wire::Failure::from(&error));
        let result = begun.and_then(|writes| self.execute_begun(request, writes, cancel, progress));
        if let Request::Record { title, .. } = request {
            self.tell_recording(title, &result);
        }
        result
    }

    /// Executes a request that writes the titles of `writes`, for which it had leave before.
    pub(crate) fn execute_begun(
        &self,
        request: &Request,
        writes: Vec<WriteGuard>,
        cancel: &AtomicBool,
        progress: &mut dyn FnMut(wire::Progress),
    ) -> Result<Reply, wire::Failure> {
        let _working = request.takes_long().then(|| Arc::clone(&self.shared.work));
        let is_ended = || writes.iter().any(WriteGuard::is_ended);
        let mut told = |now: wire::Progress| {
            if is_ended() {
                cancel.store(true, Ordering::Relaxed);
            }
            if let (Request::Record { title, .. }, Some(event)) = (request, &now.event) {
                self.tell_event(title, event);
            }
            progress(now);
        };
        let mut result = execute(self, request, cancel, &mut told);
        if is_ended() {
            say_who_ended(&mut result);
        }
        match &result {
            Ok(Reply::Check(report)) => {
                for (number, finding) in report.findings.iter().enumerate() {
                    let what = (finding.title.as_deref(), &*finding.text);
                    self.shared.damage_found(self.number, FoundBy::Check, what, number < TOLD);
                }
            }
            Ok(Reply::Repaired(_)) => self.opened().damage.forget_places(),
            _ => {}
        }
        if let (Request::Ingest { title, .. }, Ok(Reply::Ingest(report))) = (request, &result) {
            report.files.iter().for_each(|file| self.tell_ingest(title.as_deref(), file));
        }
        result
    }

    /// What new titles are written into the store.
    pub(crate) fn writes(&self) -> &Arc<RunningWrites> {
        &self.opened().writes
    }

    /// The recordings that run on the store.
    pub(crate) fn recordings(&self) -> Vec<wire::Recording> {
        self.opened().recordings()
    }

    /// Leave to write the titles of a request, if it writes any.
    fn begin_writes(&self, request: &Request) -> Result<Vec<WriteGuard>, StoreError> {
        let begin = |kind, title: &str| self.writes().begin(kind, title);
        Ok(match request {
            Request::Record { title, .. } => vec![begin(WriteKind::Recording, title)?],
            Request::Ingest { title: Some(title), .. } => vec![begin(WriteKind::Ingest, title)?],
            Request::Ingest { files, .. } => {
                // Titles as they will be called.
                let begin = |file: &PathBuf| {
                    let stem = file.file_stem().unwrap_or_default();
                    begin(WriteKind::Ingest, &stem.to_string_lossy())
                };
                files.iter().map(begin).collect::<Result<_, _>>()?
            }
            Request::Copy { title, .. } | Request::Fill { title, .. } => {
                vec![begin(WriteKind::Copy, title)?]
            }
            Request::Repair { .. } => vec![begin(WriteKind::Repair, "")?],
            _ => Vec::new(),
        })
    }

    fn tell_recording(&self, title: &str, result: &Result<Reply, wire::Failure>) {
        let store = self.path().display().to_string();
        let failure = match result {
            Ok(Reply::Recorded(report)) => {
                self.tell_recorded(&report.title);
                report.error.as_ref()
            }
            Ok(Reply::RecordedSeries(report)) => report.error.as_ref(),
            Ok(_) => None,
            Err(failure) => Some(failure),
        };
        if let Some(failure) = failure {
            let (error, message) = (&failure.code, &failure.message);
            self.shared.recordings.failed.fetch_add(1, Ordering::Relaxed);
            self.shared.tell(
                "recording-failed",
                || json!({ "store": store, "title": title, "error": error, "message": message }),
            );
        }
    }

    /// Tells of a recording that has ended, and lets its players go on to its end.
    fn tell_recorded(&self, title: &wire::ListedTitle) {
        if let Some(record) = self.store().title(&title.name) {
            let copy = StoredCopy { store: self.number, id: record.id };
            self.shared.content.look_at_end(copy, &title.name, &self.core);
        }
        let store = self.path().display().to_string();
        let (title, bytes, duration) = (&title.name, title.bytes, title.duration);
        self.shared.recordings.done.fetch_add(1, Ordering::Relaxed);
        self.shared.tell(
            "recording-done",
            || json!({ "store": store, "title": title, "bytes": bytes, "duration": duration }),
        );
    }

    /// Tells what happens while a folder of parts is recorded.
    fn tell_event(&self, folder: &str, event: &wire::RecordingEvent) {
        let store = self.path().display().to_string();
        match event {
            wire::RecordingEvent::Part { title } => self.tell_recorded(title),
            wire::RecordingEvent::InputLost { message, wait, .. } => {
                self.shared.recordings.interrupted.fetch_add(1, Ordering::Relaxed);
                self.shared.tell(
                    "recording-interrupted",
                    || json!({ "store": store, "title": folder, "message": message, "wait": wait }),
                );
            }
            wire::RecordingEvent::KeptShort { kept, wanted } => {
                self.shared.tell(
                    "recording-kept-short",
                    || json!({ "store": store, "title": folder, "kept": kept, "wanted": wanted }),
                );
            }
            wire::RecordingEvent::StreamsLeftOut { streams } => self.shared.log.line(|| {
                json!({
                    "event": "streams-left-out", "store": store, "title": folder,
                    "streams": streams,
                })
            }),
            wire::RecordingEvent::PartRemoved { title, why } => self.shared.log.line(
                || json!({ "event": "part-removed", "store": store, "title": title, "why": why }),
            ),
        }
    }

    fn tell_ingest(&self, name: Option<&str>, file: &wire::IngestedFile) {
        let store = self.path().display().to_string();
        if let Some(title) = &file.title {
            let (title, bytes) = (title.name.clone(), title.bytes);
            self.shared
                .tell("ingest-done", || json!({ "store": store, "title": title, "bytes": bytes }));
        } else if let Some(failure) = &file.error {
            // The title as it would have been called.
            let stem = || file.file.file_stem().unwrap_or_default().display().to_string();
            let title = name.map_or_else(stem, str::to_owned);
            // The name of an upload means nothing to its sender, or to anybody later.
            let uploads = self.config.uploads.as_ref();
            let is_upload = uploads.is_some_and(|uploads| file.file.starts_with(uploads));
            let path = file.file.display().to_string();
            let message = failure.message.replace(&path, "the file");
            let unnamed = wire::Failure { message, ..failure.clone() };
            self.tell_not_ingested(&title, if is_upload { &unnamed } else { failure });
        }
    }

    /// Tells that a file has not become the title of this name.
    pub(crate) fn tell_not_ingested(&self, title: &str, failure: &wire::Failure) {
        let store = self.path().display().to_string();
        let (error, message) = (&failure.code, &failure.message);
        self.shared.tell(
            "ingest-failed",
            || json!({ "store": store, "title": title, "error": error, "message": message }),
        );
    }

    /// Index of the store in the library, which is its disk's number.
    pub(crate) fn number(&self) -> usize {
        self.number
    }

    /// The store's path, as the server was given it.
    pub(crate) fn path(&self) -> &Path {
        &self.opened().path
    }

    fn opened(&self) -> &OpenStore {
        &self.shared.content.stores[self.number]
    }

    /// Stores a calibration and hands it to the engine.
    fn adopt(&self, calibration: &Calibration) -> Result<(), StoreError> {
        let opened = self.opened();
        let (store, read_size) = (&opened.store, opened.read_size);
        let adopted = opening::adopt(store, &self.config, read_size, calibration)?;
        opened.provisional.store(calibration.is_provisional(), Ordering::Relaxed);
        if let Some((guarantee, timings)) = adopted {
            let timings = Box::new(timings);
            self.core.send(Event::Guarantee { disk: opened.disk, guarantee, timings });
        }
        Ok(())
    }

    /// Measures the disk again if it is due and nobody watches, and ends the measurement when
    /// somebody comes or `stop` says so; then nothing changes. Measured in turns, a disk does not
    /// show more than it can do, but it may show less: a result below a calibration that is kept is
    /// only logged. `now`: Unix seconds. Returns whether a measurement was made.
    pub(crate) fn recalibrate_if_due(&self, now: u64, stop: &dyn Fn() -> bool) -> bool {
        let opened = self.opened();
        if !opening::is_due(&opened.store, &self.config, now) {
            return false;
        }
        // A viewer takes time of the disk, so that the result would be too low.
        let disturbed = || stop() || self.shared.snapshot().engine.active > 0;
        let permit = |bytes: ByteCount| -> Option<Box<dyn Any>> {
            if disturbed() {
                return None;
            }
            Some(Box::new(self.io.permit_for_all(bytes)))
        };
        let measured = opening::recalibrate(
            &opened.store,
            &self.config,
            opened.read_size,
            CalibrateOptions::default().budget,
            DiskAccess::Shared { permit: &permit, turn: self.io.most_at_once() },
            &mut |_| {},
        );
        if disturbed() {
            return false;
        }
        let before = opened.store.calibration();
        // A provisional calibration may be too high, and gives way to any result.
        let adopt = |calibration: Calibration| {
            let reads = |record: &Calibration| {
                record.guarantee_for(opened.read_size).map_or(0, |g| g.min_read)
            };
            let kept = before.as_ref().filter(|before| !before.is_provisional());
            let used = kept.is_none_or(|kept| reads(&calibration) >= reads(kept));
            if used {
                self.adopt(&calibration)?;
            }
            Ok((reads(&calibration), used))
        };
        let store = opened.path.display().to_string();
        let event = match measured.and_then(adopt) {
            Ok((reads, used)) => json!({
                "event": "disk-recalibrated",
                "store": store,
                "min_read": reads,
                "used": used,
            }),
            Err(failure) => json!({
                "event": "disk-not-recalibrated",
                "store": store,
                "error": failure.one_line(),
            }),
        };
        self.shared.log.line(|| event);
        true
    }
}

impl StoreAccess for ServedStore {
    fn store(&self) -> &Store {
        &self.opened().store
    }

    fn background_io(&self) -> &dyn BackgroundIo {
        &self.io
    }
}

impl StoreOwner for ServedStore {
    fn other_store(&self, path: &Path) -> Result<Arc<dyn TitleOwner>, StoreError> {
        let uuid = Store::peek(path)?.uuid;
        let all = self.shared.content.stores.iter().enumerate();
        let found = all.into_iter().find(|(_, opened)| opened.store.info().uuid == uuid);
        match found {
            Some((number, opened)) => {
                Ok(Arc::new(EngineTitleOwner::new(number, opened, self.core.clone(), None)))
            }
            None => Ok(Arc::new(SoleOwner(Store::open(path)?))),
        }
    }

    fn recording_io(&self) -> Box<dyn BackgroundIo + '_> {
        Box::new(RecordingIo::new(&self.io))
    }

    /// Hides the title. The core frees its space when no session plays it any more.
    fn remove(&self, title: &str, copy_only: bool) -> Result<(TitleRecord, bool), StoreError> {
        // Hidden first, so that no new request finds the title after the core has counted its uses.
        let record = match copy_only {
            true => self.store().hide_copy(title)?,
            false => self.store().hide(title)?,
        };
        let in_use = self.withdraw(record.id) || self.store().is_kept(record.id);
        Ok((record, in_use))
    }

    /// Every batch of reads waits for a permit, so that no session is disturbed. A measurement
    /// during sessions shows less than the disk can do: it is returned, but stored only if the
    /// store has no calibration, or a provisional one.
    fn calibrate(
        &self,
        budget: Duration,
        progress: &mut dyn FnMut(wire::Progress),
    ) -> Result<Calibration, StoreError> {
        let opened = self.opened();
        let store = &opened.store;
        let active = || self.shared.snapshot().engine.active;
        let mut most_active = active();
        let permit = |bytes: ByteCount| -> Option<Box<dyn Any>> {
            Some(Box::new(self.io.permit_for_all(bytes)))
        };
        let turns = DiskAccess::Shared { permit: &permit, turn: self.io.most_at_once() };
        let mut on_progress = |done: CalibrateProgress| {
            // A session that comes and goes while the disk is measured disturbs the measurement,
            // too.
            most_active = most_active.max(active());
            progress(wire::Progress::of_part(done.stage, done.done));
        };
        let mut calibration = opening::recalibrate(
            store,
            &self.config,
            opened.read_size,
            budget,
            turns,
            &mut on_progress,
        )?;
        if most_active > 0 {
            calibration.method.push_str(&format!("; during up to {most_active} sessions"));
        }
        let replaceable = store.calibration().is_none_or(|stored| stored.is_provisional());
        if most_active == 0 || replaceable {
            self.adopt(&calibration)?;
        } else {
            calibration.method.push_str("; not stored: measure again while no session is active");
        }
        Ok(calibration)
    }

    fn served_file(&self) -> Result<wire::ServedFile, wire::Failure> {
        let opened = self.opened();
        let path = opened.path.display().to_string();
        Ok(wire::ServedFile { path, file: opened.file.to_string() })
    }

    fn status(&self) -> Result<wire::ServerStatus, wire::Failure> {
        Ok(self.shared.status())
    }

    fn sessions(
        &self,
        session: Option<u64>,
        subject: Option<&str>,
    ) -> Result<wire::SessionList, wire::Failure> {
        let (answer, list) = bounded(1);
        let (session, subject) = (session.map(SessionId), subject.map(str::to_owned));
        self.core.send(Event::ReportSessions { session, subject, answer });
        // A core that has ended has no sessions.
        Ok(list.recv().unwrap_or_default())
    }

    fn decisions(&self) -> Result<wire::DecisionList, wire::Failure> {
        Ok(self.shared.decisions())
    }

    fn reload(&self) -> Result<wire::ReloadReport, wire::Failure> {
        self.reloader.reload().map_err(|Reason { message, hint }| wire::Failure {
            code: "not-reloaded".to_owned(),
            message: format!("nothing has changed: {message}"),
            hint,
        })
    }

    fn drain(&self, drain: Option<bool>) -> Result<wire::DrainReport, wire::Failure> {
        if let Some(drains) = drain {
            let (done, is_done) = bounded(1);
            self.core.send(Event::Drain { disk: self.opened().disk, drains, done });
            // A core that has ended reads nothing from any disk.
            let _ = is_done.recv();
        }
        Ok(self.shared.drain_report(self.number))
    }

    fn restart(&self) -> Result<(), wire::Failure> {
        self.reloader.restart().map_err(|Reason { message, hint }| wire::Failure {
            code: "not-restarted".to_owned(),
            message: format!("the server goes on as it is: {message}"),
            hint,
        })
    }

    fn stop(&self, grace: Duration) -> Result<(), wire::Failure> {
        if !self.shared.stopping.load(Ordering::Relaxed) {
            self.shared
                .notice("stopping, as it was asked to: no new viewer is admitted".to_owned());
        }
        self.core.send(Event::Stop { grace, by: StopBy::Operator });
        Ok(())
    }

    fn end_recording(&self, title: &str) -> Result<(), wire::Failure> {
        if !self.writes().end_recordings(title) {
            return Err(wire::Failure::no_recording(title));
        }
        let store = self.path().display().to_string();
        self.shared.log.line(
            || json!({ "event": "recording-ended", "store": store, "title": title, "by": OPERATOR }),
        );
        Ok(())
    }

    fn end_session(&self, session: u64) -> Result<(), wire::Failure> {
        let number = SessionId(session);
        // A channel may have no session now, and begin again.
        let is_channel = self.shared.channels.end(number);
        if !is_channel && self.sessions(Some(session), None)?.sessions.is_empty() {
            return Err(wire::Failure::no_session(session));
        }
        self.core.send(Event::EndListed { number });
        Ok(())
    }

    fn end_sessions(&self, subject: &str) -> Result<wire::EndedSessions, wire::Failure> {
        let (answer, ended) = bounded(1);
        self.core.send(Event::EndOfSubject { subject: subject.to_owned(), answer });
        // A core that has ended has no sessions.
        Ok(wire::EndedSessions { ended: ended.recv().unwrap_or_default() })
    }
}

/// Adds to the report of a recording that an operator has ended it. Without a title there is none:
/// the failure says so.
fn say_who_ended(result: &mut Result<Reply, wire::Failure>) {
    let (end, ended_by) = match result {
        Ok(Reply::Recorded(report)) => (&report.end, &mut report.ended_by),
        Ok(Reply::RecordedSeries(report)) => (&report.end, &mut report.ended_by),
        Ok(_) => return,
        Err(failure) if !["cancelled", "not-recorded"].contains(&&*failure.code) => return,
        Err(failure) => {
            let message = "an operator of the server has ended the recording over its admin API \
                           before anything of it was recorded";
            *failure = wire::Failure::new("ended-by-operator", message, "record it again");
            return;
        }
    };
    if end == "stopped" {
        *ended_by = Some(OPERATOR.to_owned());
    }
}

/// Who ends recordings over the admin API.
const OPERATOR: &str = "operator";
