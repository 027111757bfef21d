//! Standard output and standard error of agents and workers: plain lines, for the program that
//! started this one, or for people. No progress is drawn.

use meter::{LeftBehind, MeterError, Observer};
use serde_json::Value;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
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
pub(crate) struct WorkerObserver {
    stop: Arc<AtomicBool>,
    left: LeftBehind,
}

impl WorkerObserver {
    /// An observer whose run SIGINT, SIGTERM and SIGHUP stop; the run then removes its files.
    pub(crate) fn new() -> Result<Self, MeterError> {
        stop_on_signals().map(|stop| Self { stop, left: LeftBehind::default() })
    }

    /// Notes what the run could not remove.
    pub(crate) fn note_left_behind(&self) {
        self.left.take().iter().for_each(|text| note(text));
    }
}

/// A flag that SIGINT, SIGTERM and SIGHUP set; a second SIGINT or SIGTERM ends the program. SIGHUP,
/// the end of the terminal, may come twice, from the shell and from the kernel. A program for which
/// it is ignored (`nohup`) goes on.
pub fn stop_on_signals() -> Result<Arc<AtomicBool>, MeterError> {
    let stop = stop_on_interrupts()?;
    if !hangup_is_ignored() {
        signal_hook::flag::register(SIGHUP, Arc::clone(&stop)).map_err(not_handled)?;
    }
    Ok(stop)
}

/// Whether SIGHUP, the end of the terminal, is ignored by this program, as `nohup` starts it.
pub fn hangup_is_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    is_ignored(&status, SIGHUP)
}

/// A flag that SIGINT and SIGTERM set, the second of which ends the program: for servers, to which
/// SIGHUP has another meaning.
pub fn stop_on_interrupts() -> Result<Arc<AtomicBool>, MeterError> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        // Registered in this order, the first signal finds the flag unset and does not end the
        // program.
        signal_hook::flag::register_conditional_shutdown(signal, 1, Arc::clone(&stop))
            .map_err(not_handled)?;
        signal_hook::flag::register(signal, Arc::clone(&stop)).map_err(not_handled)?;
    }
    Ok(stop)
}

fn not_handled(error: io::Error) -> MeterError {
    MeterError::new(format!("cannot handle signals: {error}"))
}

/// Whether the process with this `/proc/PID/status` ignores the signal.
fn is_ignored(status: &str, signal: i32) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
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

    fn left_behind(&self) -> LeftBehind {
        self.left.clone()
    }

    fn stop(&self) -> &Arc<AtomicBool> {
        &self.stop
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hangup_that_nohup_ignores_stays_ignored() {
        let status = |mask: &str| format!("Name:\tx\nSigBlk:\t0\nSigIgn:\t{mask}\nSigCgt:\t0\n");
        for (mask, ignored) in [
            ("0000000000000000", false),
            ("0000000000000001", true),
            ("0000000000001000", false),
            ("0000000000001003", true),
        ] {
            assert_eq!(is_ignored(&status(mask), SIGHUP), ignored, "{mask}");
        }
        assert!(!is_ignored("", SIGHUP));
    }
}
