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
    end_unless_printed(try_print(text));
}

/// Writes a report; an error is that of standard output.
pub(crate) fn try_print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    // Flushed here, because the flush at the exit of the program ignores errors.
    out.write_all(text.as_bytes()).and_then(|()| out.flush())
}

/// Ends the program where a report was not written: with exit code 0 when the reader has closed its
/// end.
pub(crate) fn end_unless_printed(printed: io::Result<()>) {
    if let Err(error) = printed {
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
    print(&json(value));
}

/// A report as one JSON object, with the end of its last line.
pub(crate) fn json(value: &impl Serialize) -> String {
    let text = serde_json::to_string_pretty(value).expect("a report has string keys only");
    format!("{text}\n")
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

/// Writes a file, whole or not at all, and a note that names it.
pub(crate) fn save(path: &Path, text: &str) -> Result<(), Failure> {
    write_whole(path, text).map_err(|error| {
        Failure::new(format!("cannot write {}: {error}", path.display()))
            .hint("free space there, or name another place")
    })?;
    note(&format!("wrote {}", path.display()));
    Ok(())
}

/// Writes a file under another name and renames it when it is complete.
fn write_whole(path: &Path, text: &str) -> io::Result<()> {
    // A file of another kind, such as a pipe, cannot be replaced by one that is complete.
    if std::fs::metadata(path).is_ok_and(|found| !found.is_file()) {
        return std::fs::write(path, text);
    }
    // What a link leads to is replaced, and not the link.
    let path = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let mut part = path.clone().into_os_string();
    // The process id keeps two runs at the same time apart.
    part.push(format!(".{}.part", std::process::id()));
    let written = std::fs::write(&part, text).and_then(|()| std::fs::rename(&part, &path));
    if written.is_err() {
        // There may be none, and the error of the file says why.
        let _ = std::fs::remove_file(&part);
    }
    written
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_cannot_be_written_leaves_nothing() {
        let name = format!("tenuto-save-{}", std::process::id());
        let dir = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&dir).unwrap();
        save(&dir.join("a.svg"), "one").unwrap();
        save(&dir.join("a.svg"), "two").unwrap();
        assert_eq!(std::fs::read_to_string(dir.join("a.svg")).unwrap(), "two");
        let failure = save(&dir.join("none/b.svg"), "three").unwrap_err();
        assert!(failure.sentence.contains("b.svg") && failure.hint.is_some(), "{failure:?}");
        // A name that is a folder cannot be replaced; the complete file beside it goes, too.
        std::fs::create_dir(dir.join("c.svg")).unwrap();
        save(&dir.join("c.svg"), "four").unwrap_err();
        let left: std::collections::BTreeSet<_> =
            std::fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, ["a.svg", "c.svg"].map(Into::into).into());
        std::fs::remove_dir_all(dir).unwrap();
    }
}
