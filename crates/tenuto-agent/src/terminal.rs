//! Standard output and standard error of agents and workers: plain lines, for the program that
//! started this one, or for people. No progress is drawn.

use meter::{MeterError, Observer};
use serde_json::Value;
use signal_hook::consts::{SIGINT, SIGTERM};
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use units::show::escaped;

/// Writes a line on standard output. A reader that has closed its end is no error.
pub(crate) fn print(line: &str) {
    let mut out = io::stdout().lock();
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

fn print_error(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// Writes a note on standard error.
pub(crate) fn note(text: &str) {
    print_error(&format!("note: {}", escaped(text)));
}

/// Writes an error and its hint on standard error.
pub fn complain(error: &MeterError) {
    print_error(&format!("error: {}", escaped(&error.message)));
    if let Some(hint) = &error.hint {
        print_error(&format!("hint: {}", escaped(hint)));
    }
}

/// The observer of a worker's run: passes on the lines that its agent reads.
pub(crate) struct WorkerObserver(Arc<AtomicBool>);

impl WorkerObserver {
    /// An observer whose run SIGINT and SIGTERM stop; the run then removes its files.
    pub(crate) fn new() -> Result<Self, MeterError> {
        stop_on_signals().map(Self)
    }
}

/// A flag that SIGINT and SIGTERM set; a second signal ends the program.
pub fn stop_on_signals() -> Result<Arc<AtomicBool>, MeterError> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        let failed = |error: io::Error| MeterError::new(format!("cannot handle signals: {error}"));
        // Registered in this order, the first signal finds the flag unset and does not end the
        // program.
        signal_hook::flag::register_conditional_shutdown(signal, 1, Arc::clone(&stop))
            .map_err(failed)?;
        signal_hook::flag::register(signal, Arc::clone(&stop)).map_err(failed)?;
    }
    Ok(stop)
}

impl Observer for WorkerObserver {
    fn note(&self, text: &str) {
        note(text);
    }

    fn signal(&self, line: &str) {
        print(line);
    }

    fn crossing(&self, text: &str, _event: &Value) {
        note(text);
    }

    fn stop(&self) -> &Arc<AtomicBool> {
        &self.0
    }
}
