//! The start barrier (`--hold`): a prepared run waits for a line on standard input.
//!
//! For programs that start several runs at once. Agents start their workers by orders of their own.

use crate::error::MeterError;
use crate::observer::Observer;
use crate::progress::RunProgress;
use std::io::{self, BufRead};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// The line that a held run prints when it is prepared.
const READY: &str = "ready";
/// The first word of a line of progress.
const PROGRESS: &str = "progress";

/// Reports the progress of a run to the program that released it; `None` if the run is not held.
pub(super) struct StartBarrier(Option<Instant>);

impl StartBarrier {
    /// Signals that the run is ready, and waits for a line. The run stops when standard input
    /// ends.
    pub(super) fn wait(hold: bool, observer: &dyn Observer) -> Result<Self, MeterError> {
        if !hold {
            return Ok(Self(None));
        }
        observer.signal(READY);
        let mut line = String::new();
        let read = io::stdin().lock().read_line(&mut line);
        if !read.is_ok_and(|bytes| bytes > 0) {
            return Err(MeterError::new("standard input ended before the run began"));
        }
        let stop = Arc::clone(observer.stop());
        // The thread ends with the process.
        std::thread::spawn(move || {
            // The agent closes standard input to stop its worker; nothing else is sent.
            let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
            stop.store(true, Ordering::Relaxed);
        });
        Ok(Self(Some(Instant::now())))
    }

    /// Signals the progress once a second.
    pub(super) fn signal(&mut self, progress: &RunProgress, observer: &dyn Observer) {
        let Some(last) = &mut self.0 else { return };
        if last.elapsed() < Duration::from_secs(1) {
            return;
        }
        *last = Instant::now();
        let seconds = progress.elapsed.as_secs_f64();
        let line = format!("{PROGRESS} {seconds:.1} {} {}", progress.judged, progress.late);
        observer.signal(&line);
    }
}
