//! `--hold`: a run that is prepared, and waits to be told to begin. See `meter::fleet`.

use crate::cli::Args;
use crate::failure::Failure;
use crate::out;
use meter::fleet::{PROGRESS, READY};
use meter::streams::Progress;
use std::io::{self, BufRead};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Tells whoever holds the run how far it is.
pub(super) struct Held(Option<Instant>);

/// Says that it is ready and waits, if that is wanted. When standard input ends, so does the run.
pub(super) fn hold(args: &Args<'_>, stop: &Arc<AtomicBool>) -> Result<Held, Failure> {
    if !args.has("hold") {
        return Ok(Held(None));
    }
    out::signal(READY);
    let mut line = String::new();
    let read = io::stdin().lock().read_line(&mut line);
    if !read.is_ok_and(|bytes| bytes > 0) {
        return Err(Failure::new("standard input ended before the run began"));
    }
    let stop = Arc::clone(stop);
    // It ends with the process.
    std::thread::spawn(move || {
        let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
        stop.store(true, Ordering::Relaxed);
    });
    Ok(Held(Some(Instant::now())))
}

impl Held {
    /// Once a second.
    pub(super) fn tell(&mut self, progress: &Progress) {
        let Some(last) = &mut self.0 else { return };
        if last.elapsed() < Duration::from_secs(1) {
            return;
        }
        *last = Instant::now();
        let seconds = progress.elapsed.as_secs_f64();
        out::signal(&format!("{PROGRESS} {seconds:.1} {} {}", progress.judged, progress.late));
    }
}
