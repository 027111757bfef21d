//! Recording of a live input for ever, as a folder of titles of which the last ones are kept.
//!
//! ```text
//!   connection ──▶ part, part, part ──input lost──▶ wait 1 s .. 30 s ──▶ connection ──▶ part, ...
//!   each second ──▶ parts that ended before the time that is kept are removed
//!   store full ──▶ the oldest part is removed
//! ```
//!
//! Parts without a connection between them have a gap in their names' times, and no more: the disk
//! keeps time for the recording from the first connection to the end of the series.

use super::connection::{self, Connected, ConnectionEnd, LiveError};
use super::live::{KeptTime, RecordingEnd, RecordingInput, RecordingOptions};
use super::parts::PartKeeper;
use super::remux::GLANCE;
use crate::format::record::check_new_name;
use crate::series::{BackOff, ShortWarning, part_name};
use crate::writer::unix_now;
use crate::{
    BackgroundIo, JobProgress, Store, StoreError, TitleRecord, TitleRecorder, TitleWriter,
};
use media::{TitleKind, TrackDescription};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use units::{Hinted, Reason};

/// How a series of titles is recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeriesOptions {
    /// How long a part stays after its end; `None`: for ever.
    pub keep: Option<Duration>,
    /// The play-out time after which the next key frame begins a part.
    pub part: Duration,
    /// Whether an input that was lost is opened again.
    pub reconnect: bool,
}

/// What happens during a recording; of one title only that streams are left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordingEvent {
    /// A part has ended, and is a title.
    Part(Box<TitleRecord>),
    /// A part was removed.
    Removed {
        /// The title's name.
        title: String,
        /// Whether it was kept as long as wanted; otherwise the store was full.
        is_expired: bool,
    },
    /// The store is too small for what is to be kept.
    Short {
        /// The time for which parts are there.
        kept: Duration,
        /// The time for which they were to be there.
        wanted: Duration,
    },
    /// Streams of the input are not in what is recorded from now on.
    LeftOut {
        /// What they are, in words.
        streams: Vec<String>,
    },
    /// The input was lost, has changed its form, or could not be opened.
    Lost {
        /// The reason and the remedy.
        reason: Reason,
        /// The time after which it is opened again.
        wait: Duration,
    },
}

/// The process that records.
pub trait RecordingHost {
    /// Is told of progress, also while nothing comes.
    fn progress(&mut self, progress: JobProgress);

    /// Is told what has happened.
    fn event(&mut self, event: RecordingEvent);

    /// Removes a part, whose space may be kept while it is played.
    fn remove(&mut self, title: &str) -> Result<(), StoreError>;
}

/// The result of a series.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeriesReport {
    /// The number of parts that were recorded.
    pub parts: u64,
    /// The number of parts that were removed, of an earlier recording of the series also.
    pub removed: u64,
    /// The bytes of all parts that were recorded.
    pub bytes: u64,
    /// The play-out time of all parts that were recorded.
    pub duration: Duration,
    /// Why it ended.
    pub end: RecordingEnd,
    /// The streams of the input that are not in the parts.
    pub left_out: Vec<String>,
    /// Further notes for the user.
    pub notes: Vec<String>,
}

/// Records an input into titles of the folder `options.name`, until it ends and is not to be opened
/// again, `cancel` is set, or something fails. It is an error if nothing was recorded.
pub fn record_series(
    store: &Store,
    input: &RecordingInput,
    options: &RecordingOptions,
    series: &SeriesOptions,
    host: &mut dyn RecordingHost,
    io: &dyn BackgroundIo,
    cancel: &AtomicBool,
) -> Result<SeriesReport, StoreError> {
    check_new_name(&part_name(&options.name, unix_now(), None, |_| false).0)?;
    if series.reconnect {
        refuse_what_ends(input)?;
    }
    // The name is the folder's while the series goes on.
    let _folder = store.begin(&options.name, TitleKind::Media).map_err(|error| match error {
        StoreError::BeingWritten { name } => StoreError::BeingRecorded { name },
        other => other,
    })?;
    let keeper = SeriesKeeper::new(store, options, series, host, io, &unix_now)?;
    keeper.run(input, cancel)
}

/// Refuses an input that is not there again after its end.
fn refuse_what_ends(input: &RecordingInput) -> Result<(), StoreError> {
    let what = match input {
        RecordingInput::StandardInput => "the standard input cannot be opened again",
        input if input.is_regular_file() => "it is a file, and would be recorded again",
        _ => return Ok(()),
    };
    let reason = Reason::new(what, "record it without --reconnect, or through a named pipe");
    Err(StoreError::NotRecorded { input: input.to_string(), reason })
}

#[cfg(test)]
mod tests;

/// Makes titles of the parts, and removes those that are too old.
struct SeriesKeeper<'a, 'p> {
    store: &'a Store,
    io: &'a dyn BackgroundIo,
    options: &'a RecordingOptions,
    series: &'a SeriesOptions,
    host: &'p mut dyn RecordingHost,
    /// The Unix time in seconds.
    clock: &'p dyn Fn() -> u64,
    kept: KeptTime<'a>,
    warning: ShortWarning,
    /// The second in which old parts were looked for.
    looked: Option<u64>,
    /// The bytes that were recorded through earlier connections.
    earlier: u64,
    /// The Unix time in seconds at which the first part of this recording began.
    begun: Option<u64>,
    /// The Unix time in the name of the latest part.
    latest: Option<u64>,
    /// The streams of which the host was told last that they are left out.
    left_out: Vec<String>,
    report: SeriesReport,
}

impl<'a, 'p> SeriesKeeper<'a, 'p> {
    fn new(
        store: &'a Store,
        options: &'a RecordingOptions,
        series: &'a SeriesOptions,
        host: &'p mut dyn RecordingHost,
        io: &'a dyn BackgroundIo,
        clock: &'p dyn Fn() -> u64,
    ) -> Result<Self, StoreError> {
        let report = SeriesReport {
            parts: 0,
            removed: 0,
            bytes: 0,
            duration: Duration::ZERO,
            end: RecordingEnd::Complete,
            left_out: Vec::new(),
            notes: Vec::new(),
        };
        Ok(Self {
            store,
            io,
            options,
            series,
            host,
            clock,
            kept: KeptTime::begin(io, options.rate)?,
            warning: ShortWarning::default(),
            looked: None,
            earlier: 0,
            begun: None,
            latest: None,
            left_out: Vec::new(),
            report,
        })
    }

    fn run(
        mut self,
        input: &RecordingInput,
        cancel: &AtomicBool,
    ) -> Result<SeriesReport, StoreError> {
        let mut back_off = BackOff::default();
        let mut told = None;
        loop {
            let before = self.report.parts;
            self.earlier = self.report.bytes;
            let (opened, mut is_change) = (Instant::now(), false);
            let mut options = self.options.clone();
            if let Some(whole) = options.duration {
                options.duration = Some(whole.saturating_sub(self.report.duration));
            }
            let reason = match connection::record(input, &options, &mut self, cancel) {
                Ok(Connected { end, left_out, said }) => {
                    self.report.left_out = left_out;
                    self.report.notes = connection::notes(&said);
                    match end {
                        ConnectionEnd::Complete => {
                            Reason::new("the input has ended", "look after its sender")
                        }
                        ConnectionEnd::Stopped => {
                            self.report.end = RecordingEnd::Stopped;
                            break;
                        }
                        ConnectionEnd::Full(error) => {
                            self.report.end = RecordingEnd::Failed(error.reason());
                            break;
                        }
                        ConnectionEnd::Lost(reason) => {
                            self.report.end = RecordingEnd::Failed(reason.clone());
                            reason
                        }
                        ConnectionEnd::Changed(reason) => {
                            is_change = true;
                            self.report.end = RecordingEnd::Failed(reason.clone());
                            reason
                        }
                    }
                }
                Err(LiveError::Store(StoreError::Cancelled)) => {
                    self.report.end = RecordingEnd::Stopped;
                    break;
                }
                Err(LiveError::Input(reason)) => {
                    self.report.end = RecordingEnd::Failed(reason.clone());
                    reason
                }
                // A named pipe may be made again.
                Err(LiveError::Store(error @ StoreError::File { .. })) if self.series.reconnect => {
                    let reason = error.reason();
                    self.report.end = RecordingEnd::Failed(reason.clone());
                    reason
                }
                Err(LiveError::Store(error)) if self.report.parts == 0 => return Err(error),
                // Parts are there: the report has them, and why there are no more.
                Err(LiveError::Store(error)) => {
                    self.report.end = RecordingEnd::Failed(error.reason());
                    break;
                }
            };
            if self.has_length() {
                self.report.end = RecordingEnd::Complete;
                break;
            }
            if !self.series.reconnect {
                break;
            }
            if self.report.parts > before {
                (back_off, told) = (BackOff::default(), None);
            }
            let wait = match is_change {
                true => back_off.wait_after_change(opened.elapsed()),
                // Asks nothing of a sender that is away.
                false if input.is_listened_at() => BackOff::default().next_wait(),
                false => back_off.next_wait(),
            };
            // An input that is away for days is told of once.
            if told.as_ref() != Some(&reason) {
                told = Some(reason.clone());
                self.host.event(RecordingEvent::Lost { reason, wait });
            }
            if !self.wait(wait, cancel) {
                self.report.end = RecordingEnd::Stopped;
                break;
            }
            self.report.end = RecordingEnd::Complete;
        }
        if self.report.parts > 0 {
            return Ok(self.report);
        }
        Err(match self.report.end {
            RecordingEnd::Stopped => StoreError::Cancelled,
            RecordingEnd::Failed(reason) => {
                StoreError::NotRecorded { input: input.to_string(), reason }
            }
            RecordingEnd::Complete => {
                let reason = connection::nothing("");
                StoreError::NotRecorded { input: input.to_string(), reason }
            }
        })
    }

    /// Whether all of the wanted duration is recorded, but for what a frame may be long.
    fn has_length(&self) -> bool {
        let wanted = self.options.duration;
        wanted.is_some_and(|wanted| self.report.duration + A_FRAME >= wanted)
    }

    /// Waits; false if the caller ends the recording meanwhile.
    fn wait(&mut self, wait: Duration, cancel: &AtomicBool) -> bool {
        let begun = Instant::now();
        while begun.elapsed() < wait {
            self.tell(JobProgress { stage: "reconnecting", done: 0, total: None });
            if cancel.load(Ordering::Relaxed) {
                return false;
            }
            std::thread::sleep(GLANCE);
        }
        !cancel.load(Ordering::Relaxed)
    }

    fn remove(&mut self, title: String, is_expired: bool) -> bool {
        match self.host.remove(&title) {
            Ok(()) => {
                self.report.removed += 1;
                self.host.event(RecordingEvent::Removed { title, is_expired });
                true
            }
            // Somebody has removed or renamed it.
            Err(StoreError::NoTitle { .. }) => true,
            // The store tells of it when it is written to.
            Err(_) => false,
        }
    }

    fn remove_expired(&mut self) {
        let Some(keep) = self.series.keep else { return };
        let now = (self.clock)();
        if self.looked.replace(now) == Some(now) {
            return;
        }
        let old = self.store.parts_of(&self.options.name).into_iter();
        for part in old.filter(|part| part.is_expired(keep, now)) {
            self.remove(part.name, true);
        }
    }
}

impl<'a> PartKeeper<'a> for SeriesKeeper<'a, '_> {
    fn begin(&mut self, tracks: &[TrackDescription]) -> Result<TitleRecorder<'a>, StoreError> {
        let load = self.kept.for_tracks(tracks)?;
        loop {
            let is_taken = |name: &str| self.store.is_taken(name);
            let (name, begins) =
                part_name(&self.options.name, (self.clock)(), self.latest, is_taken);
            let writer: TitleWriter<'a> =
                self.store.begin(&name, TitleKind::Media)?.with_io(self.io);
            match TitleRecorder::start(writer, tracks, load) {
                Err(error) if self.make_room(&error) => {}
                started => {
                    self.latest = Some(begins);
                    self.begun.get_or_insert(begins);
                    return started;
                }
            }
        }
    }

    fn end(&mut self, recorder: TitleRecorder<'a>) -> Result<Option<TitleRecord>, StoreError> {
        let id = recorder.id();
        let mut ended = recorder.finish();
        while let Err(error) = &ended {
            if !self.make_room(error) {
                break;
            }
            ended = self.store.seal_recording(id, self.io);
        }
        let title = ended?;
        if let Some(title) = &title {
            self.report.parts += 1;
            self.report.bytes += title.bytes;
            self.report.duration += title.duration;
            self.host.event(RecordingEvent::Part(Box::new(title.clone())));
        }
        Ok(title)
    }

    fn make_room(&mut self, error: &StoreError) -> bool {
        let Some(wanted) = self.series.keep else { return false };
        if !matches!(error, StoreError::Full { .. } | StoreError::CatalogueFull { .. }) {
            return false;
        }
        let mut parts = self.store.parts_of(&self.options.name).into_iter();
        let Some(oldest) = parts.next() else { return false };
        if !self.remove(oldest.name, false) {
            return false;
        }
        let first = parts.next().map(|part| part.begins).or(self.begun);
        let now = (self.clock)();
        let kept = Duration::from_secs(now.saturating_sub(first.unwrap_or(now)));
        if kept < wanted && self.warning.is_news(kept) {
            self.host.event(RecordingEvent::Short { kept, wanted });
        }
        true
    }

    fn tell(&mut self, progress: JobProgress) {
        self.remove_expired();
        let done = self.earlier + progress.done;
        self.host.progress(JobProgress { done, ..progress });
    }

    fn leave_out(&mut self, streams: Vec<String>) {
        if self.left_out == streams {
            return;
        }
        self.left_out.clone_from(&streams);
        if !streams.is_empty() {
            self.host.event(RecordingEvent::LeftOut { streams });
        }
    }

    fn opens_again(&self) -> bool {
        self.series.reconnect
    }

    fn part_length(&self) -> Option<Duration> {
        Some(self.series.part)
    }
}

/// The most that the parts of a recording of a given duration are shorter together.
const A_FRAME: Duration = Duration::from_millis(500);
