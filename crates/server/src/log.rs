//! The log: one JSON object in a line, for each HTTP request and each event of the server.
//!
//! Logging never blocks: a thread of its own writes, and lines that do not fit its queue are
//! dropped. The number of dropped lines is logged.

use crossbeam_channel::{Receiver, Sender, TrySendError, bounded};
use serde_json::{Value, json};
use std::fs::OpenOptions;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::SystemTime;
use units::show::iso_date;

/// A handle to the log. Clones write to the same log.
#[derive(Clone, Debug)]
pub(crate) struct Log {
    // `None` where no log is configured.
    lines: Option<Sender<Value>>,
    dropped: Arc<AtomicU64>,
}

impl Log {
    /// Starts a log that appends to a file or writes to the standard error stream (`-`); without a
    /// path lines are discarded. The thread ends when the last handle is dropped.
    pub(crate) fn start(path: Option<&Path>) -> io::Result<(Self, Option<JoinHandle<()>>)> {
        let dropped = Arc::new(AtomicU64::new(0));
        let Some(path) = path else { return Ok((Self { lines: None, dropped }, None)) };
        let out: Box<dyn Write + Send> = if path == Path::new("-") {
            Box::new(io::stderr())
        } else {
            Box::new(OpenOptions::new().create(true).append(true).open(path)?)
        };
        let (lines, queue) = bounded(QUEUE);
        let counter = Arc::clone(&dropped);
        let thread = thread::Builder::new()
            .name("log".to_owned())
            .spawn(move || write_lines(&queue, BufWriter::new(out), &counter))?;
        Ok((Self { lines: Some(lines), dropped }, Some(thread)))
    }

    /// Adds a line. `fields` makes its object, and is called only where there is a log.
    pub(crate) fn line(&self, fields: impl FnOnce() -> Value) {
        let Some(lines) = &self.lines else { return };
        let mut line = fields();
        line["time"] = iso_date(SystemTime::now()).into();
        if let Err(TrySendError::Full(_)) = lines.try_send(line) {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

fn write_lines(queue: &Receiver<Value>, mut out: impl Write, dropped: &AtomicU64) {
    while let Ok(first) = queue.recv() {
        let mut ok = writeln!(out, "{first}");
        // Bounded, so that lines reach the file also while more of them keep coming.
        for line in queue.try_iter().take(QUEUE) {
            ok = ok.and_then(|()| writeln!(out, "{line}"));
        }
        let dropped = dropped.swap(0, Ordering::Relaxed);
        if dropped > 0 {
            ok = ok.and_then(|()| {
                writeln!(out, "{}", json!({ "event": "log-lines-dropped", "lines": dropped }))
            });
        }
        // A full disk or a closed terminal must not stop the server; these lines are lost.
        let _ = ok.and_then(|()| out.flush());
    }
}

/// Lines that wait to be written: some seconds of a blocked disk at thousands of requests a second.
const QUEUE: usize = 8192;
