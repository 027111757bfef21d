//! The log: one JSON object a line, for each request and for what the server itself has to say.
//!
//! Writers never wait: a thread of its own writes, and when it cannot follow, lines are dropped
//! and counted, and the count is a line too.

use crate::http::iso_date;
use crossbeam_channel::{Receiver, Sender, TrySendError, bounded};
use serde_json::{Value, json};
use std::fs::OpenOptions;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::SystemTime;

/// Where lines go in. Clones write to the same log.
#[derive(Clone, Debug)]
pub(crate) struct Log {
    // `None`: nobody wants to know.
    lines: Option<Sender<Value>>,
    dropped: Arc<AtomicU64>,
}

impl Log {
    /// A log to a file (appended to), to the standard error stream (`-`), or to nowhere. The
    /// thread ends when the last clone is gone.
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

    /// Adds a line; `fields` is an object.
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
        for line in queue.try_iter().take(QUEUE) {
            ok = ok.and_then(|()| writeln!(out, "{line}"));
        }
        let lost = dropped.swap(0, Ordering::Relaxed);
        if lost > 0 {
            ok =
                ok.and_then(|()| writeln!(out, "{}", json!({ "event": "log-full", "lost": lost })));
        }
        // A full disk or a closed terminal must not stop the viewers; the lines are lost.
        let _ = ok.and_then(|()| out.flush());
    }
}

/// Lines waiting to be written. At a few thousand requests a second, seconds of a stuck disk.
const QUEUE: usize = 8192;
