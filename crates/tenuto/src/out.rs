//! Output: reports on standard output; notes, errors and progress on standard error.
//!
//! When the reader of a report closes its end (`tenuto ls | head`), the program ends quietly.

#![expect(clippy::print_stderr, reason = "this is where standard error is written")]

pub(crate) use meter::report::{TextTable as Table, facts};

use crate::failure::Failure;
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::path::Path;
use std::time::Duration;
use units::show::escaped;

/// Writes a report. Ends the program with exit code 0 when the reader has closed its end.
pub(crate) fn print(text: &str) {
    let mut out = io::stdout().lock();
    // Flushed here, because the flush at the exit of the program ignores errors.
    if let Err(error) = out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        if error.kind() != ErrorKind::BrokenPipe {
            eprintln!("error: cannot write to standard output: {error}");
            std::process::exit(1);
        }
        // The reader has all that it wanted, so a script with `pipefail` must not fail here.
        std::process::exit(0);
    }
}

/// Writes a report as one JSON object.
pub(crate) fn print_json(value: &impl Serialize) {
    let text = serde_json::to_string_pretty(value).expect("a report has string keys only");
    print(&format!("{text}\n"));
}

/// Writes an event of a running command with `--json`: a line of JSON on standard error.
pub(crate) fn event(value: &impl Serialize) {
    eprintln!("{}", event_line(value));
}

/// Writes an event as [`event`] does; false where nobody reads standard error any more.
pub(crate) fn try_event(value: &impl Serialize) -> bool {
    writeln!(io::stderr(), "{}", event_line(value)).is_ok()
}

fn event_line(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("an event is plain JSON")
}

/// Writes a file, and a note that names it.
pub(crate) fn save(path: &Path, text: &str) -> Result<(), Failure> {
    std::fs::write(path, text)
        .map_err(|error| Failure::new(format!("cannot write {}: {error}", path.display())))?;
    note(&format!("wrote {}", path.display()));
    Ok(())
}

/// Reads a text file.
pub(crate) fn read_text(path: &Path) -> Result<String, Failure> {
    std::fs::read_to_string(path)
        .map_err(|error| Failure::new(format!("cannot read {}: {error}", path.display())))
}

/// Writes a note on standard error.
pub(crate) fn note(text: &str) {
    eprintln!("note: {}", escaped(text));
}

/// Writes a line on standard error for the program that started this one.
pub(crate) fn signal(text: &str) {
    eprintln!("{text}");
}

/// Writes an error and its hint on standard error.
pub(crate) fn complain(failure: &Failure) {
    if !failure.sentence.is_empty() {
        eprintln!("error: {}", escaped(&failure.sentence));
    }
    if let Some(hint) = &failure.hint {
        eprintln!("hint: {}", escaped(hint));
    }
}

/// Writes a line that stays above the progress bar, on standard error where that is a terminal;
/// nothing elsewhere.
pub(crate) fn live(text: &str) {
    let mut err = io::stderr();
    if err.is_terminal() {
        // A closed standard error is no reason to stop.
        let _ = writeln!(err, "{}", escaped(text));
    }
}

/// The width of the terminal of standard error, in characters.
pub(crate) fn width() -> usize {
    let (_, columns) = console::Term::stderr().size();
    usize::from(columns).clamp(40, 400)
}

/// Whether standard error is a terminal.
pub(crate) fn is_terminal() -> bool {
    io::stderr().is_terminal()
}

/// Writes lines on standard error in place of the last `above` lines.
pub(crate) fn redraw(above: usize, lines: &[String]) {
    let mut text = String::new();
    if above > 0 {
        // Up to the first of them, and clear from there.
        text = format!("\x1b[{above}A\x1b[J");
    }
    for line in lines {
        text += line;
        text.push('\n');
    }
    // A closed standard error is no reason to stop.
    let _ = io::stderr().write_all(text.as_bytes());
}

/// A progress bar on standard error where that is a terminal; nothing elsewhere.
pub(crate) struct Bar(ProgressBar);

impl Bar {
    pub(crate) fn new() -> Self {
        let bar = if io::stderr().is_terminal() {
            ProgressBar::new_spinner()
        } else {
            ProgressBar::hidden()
        };
        // Some stages report nothing for seconds; the spinner shows that the program runs.
        bar.enable_steady_tick(Duration::from_millis(120));
        Self(bar)
    }

    /// Writes lines that stay above the bar.
    pub(crate) fn above(&self, write: impl FnOnce()) {
        self.0.suspend(write);
    }

    /// Shows progress in bytes.
    pub(crate) fn bytes(&self, stage: &str, done: u64, total: Option<u64>) {
        let template = match total {
            Some(_) => "{msg:12} {wide_bar} {bytes}/{total_bytes} {bytes_per_sec}",
            None => "{msg:12} {spinner} {bytes} {bytes_per_sec}",
        };
        self.set(template, stage, done, total);
    }

    /// Shows progress as a part of the whole, from 0 to 1.
    pub(crate) fn percent(&self, stage: &str, part: f64) {
        let done = units::rounded(part.clamp(0.0, 1.0) * 100.0);
        self.set("{msg:24} {wide_bar} {pos} %", stage, done, Some(100));
    }

    /// Shows the present state in one line.
    pub(crate) fn say(&self, what: &str) {
        self.set("{spinner} {msg}", what, 0, None);
    }

    fn set(&self, template: &str, stage: &str, done: u64, total: Option<u64>) {
        if self.0.is_hidden() {
            return;
        }
        // Progress is reported thousands of times in a stage; its template is parsed once.
        if self.0.message() != stage {
            self.0.set_style(ProgressStyle::with_template(template).expect("a valid template"));
            self.0.set_message(stage.to_owned());
        }
        if let Some(total) = total {
            self.0.set_length(total);
        }
        self.0.set_position(done);
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
