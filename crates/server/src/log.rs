//! The log: one JSON object in a line, for each HTTP request and each event of the server. A
//! collector of OpenTelemetry gets the same lines.
//!
//! Logging never blocks: a thread of its own writes, and lines that do not fit its queue are
//! dropped, as are those that the file does not take. The number of dropped lines is logged.

mod line_writer;

use crate::telemetry::{Telemetry, TraceContext};
use crossbeam_channel::{Receiver, Sender, TrySendError, bounded};
use line_writer::LineWriter;
use serde_json::Value;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::SystemTime;
use units::show::iso_date;
use units::{Hinted, Reason};

/// A handle to the log. Clones write to the same log.
#[derive(Clone, Debug)]
pub(crate) struct Log {
    // `None` where no log is configured.
    lines: Option<Sender<LogEntry>>,
    dropped: Arc<AtomicU64>,
    /// For people: lines cannot be written any more.
    notes: Receiver<String>,
    telemetry: Telemetry,
}

/// What the thread of the log gets.
enum LogEntry {
    Line(Arc<Value>),
    /// The lines that follow go here.
    GoOnIn(LogFile),
}

/// A file or stream that lines are appended to.
pub(crate) struct LogFile {
    out: Box<dyn Write + Send>,
    /// `None`: a stream.
    path: Option<PathBuf>,
}

impl Log {
    /// Starts a log that appends to a file or writes to the standard error stream (`-`); without a
    /// path there is none. The thread ends when the last handle is dropped.
    pub(crate) fn start(
        path: Option<&Path>,
        telemetry: Telemetry,
    ) -> Result<(Self, Option<JoinHandle<()>>), Reason> {
        let dropped = Arc::new(AtomicU64::new(0));
        let (noted, notes) = bounded(NOTES);
        let Some(path) = path else {
            return Ok((Self { lines: None, dropped, notes, telemetry }, None));
        };
        let writer = LineWriter::new(Self::open(path)?, Arc::clone(&dropped), noted);
        let (lines, queue) = bounded(QUEUE);
        let thread = thread::Builder::new()
            .name("log".to_owned())
            .spawn(move || write_lines(&queue, writer))
            .map_err(|error| error.reason().about("cannot start a thread"))?;
        Ok((Self { lines: Some(lines), dropped, notes, telemetry }, Some(thread)))
    }

    /// Opens a file to append to, or the standard error stream (`-`).
    pub(crate) fn open(path: &Path) -> Result<LogFile, Reason> {
        if path == Path::new("-") {
            return Ok(LogFile { out: Box::new(io::stderr()), path: None });
        }
        let file = OpenOptions::new().create(true).append(true).open(path);
        let file = file.map_err(|error| not_opened(path, &error))?;
        Ok(LogFile { out: Box::new(file), path: Some(path.to_owned()) })
    }

    /// Whether a file could be opened, as far as that can be told without making it.
    pub(crate) fn check(path: &Path) -> Result<(), Reason> {
        if path == Path::new("-") {
            return Ok(());
        }
        let failed = |error| not_opened(path, &error);
        match fs::metadata(path) {
            // Of a pipe the other end may not be open yet.
            Ok(found) if found.is_file() || found.is_dir() => {
                OpenOptions::new().append(true).open(path).map(drop).map_err(failed)
            }
            Ok(_) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
                fs::read_dir(parent.unwrap_or(Path::new("."))).map(drop).map_err(failed)
            }
            Err(error) => Err(failed(error)),
        }
    }

    /// Writes the lines that follow to another file. Waits while the queue is full.
    pub(crate) fn go_on_in(&self, out: LogFile) {
        if let Some(lines) = &self.lines {
            let _ = lines.send(LogEntry::GoOnIn(out));
        }
    }

    /// What people are to know of the log since the last call.
    pub(crate) fn take_notes(&self) -> Vec<String> {
        self.notes.try_iter().collect()
    }

    /// Adds a line. `fields` makes its object, and is called only where there is a log or a
    /// collector.
    pub(crate) fn line(&self, fields: impl FnOnce() -> Value) {
        self.line_of(None, fields);
    }

    /// Adds a line about a session, with the identifiers of its span.
    pub(crate) fn line_of(&self, session: Option<TraceContext>, fields: impl FnOnce() -> Value) {
        if self.lines.is_none() && !self.telemetry.is_on() {
            return;
        }
        let (mut line, now) = (fields(), SystemTime::now());
        line["time"] = iso_date(now).into();
        if let Some(TraceContext { trace, span, .. }) = session {
            // As OpenTelemetry names them in logs of other formats.
            line["trace_id"] = trace.to_string().into();
            line["span_id"] = span.to_string().into();
        }
        let line = Arc::new(line);
        self.telemetry.log(now, &line, session);
        let Some(lines) = &self.lines else { return };
        if let Err(TrySendError::Full(_)) = lines.try_send(LogEntry::Line(line)) {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

fn not_opened(path: &Path, error: &io::Error) -> Reason {
    let about = format!("--access-log {}", path.display());
    Reason::new(error.to_string(), "name a file that tenuto may write to").about(about)
}

fn write_lines(queue: &Receiver<LogEntry>, mut lines: LineWriter) {
    while let Ok(first) = queue.recv() {
        // Bounded, so that lines reach the file also while more of them keep coming.
        for entry in std::iter::once(first).chain(queue.try_iter().take(QUEUE)) {
            match entry {
                LogEntry::Line(line) => lines.push(&line),
                LogEntry::GoOnIn(file) => lines.go_on_in(file),
            }
        }
        lines.write();
    }
    lines.push_lost();
    lines.write();
}

/// Lines that wait to be written: some seconds of a blocked disk at thousands of requests a second.
const QUEUE: usize = 8192;

/// Notes that wait to be shown: each is about a time of its own in which nothing can be written.
const NOTES: usize = 8;
