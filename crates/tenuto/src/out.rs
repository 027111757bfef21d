//! What a person or a program gets to see: reports on standard output, notes, errors and progress
//! on standard error.
//!
//! A reader that goes away (`tenuto ls | head`) ends the program quietly.

#![expect(clippy::print_stderr, reason = "this is where standard error is written")]

use crate::failure::Failure;
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use std::borrow::Cow;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::time::Duration;

/// Writes a report. Ends the program, as done, when nobody reads it any more.
pub(crate) fn print(text: &str) {
    let mut out = io::stdout().lock();
    if let Err(error) = out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        if error.kind() != ErrorKind::BrokenPipe {
            eprintln!("error: cannot write to standard output: {error}");
            std::process::exit(1);
        }
        std::process::exit(0);
    }
}

/// Writes a report as one JSON object.
pub(crate) fn print_json(value: &impl Serialize) {
    let text = serde_json::to_string_pretty(value).expect("a report has string keys only");
    print(&format!("{text}\n"));
}

/// Something that happened while a command with `--json` works: a line of JSON on stderr.
pub(crate) fn event(value: &impl Serialize) {
    eprintln!("{}", serde_json::to_string(value).expect("an event is plain JSON"));
}

/// Something a person should know besides the report.
pub(crate) fn note(text: &str) {
    eprintln!("note: {}", plain(text));
}

/// A line for a program that started this one.
pub(crate) fn signal(text: &str) {
    eprintln!("{text}");
}

/// Says why the command ends.
pub(crate) fn complain(failure: &Failure) {
    if !failure.sentence.is_empty() {
        eprintln!("error: {}", plain(&failure.sentence));
    }
    if let Some(hint) = &failure.hint {
        eprintln!("hint: {}", plain(hint));
    }
}

/// Names of files and what FFmpeg quotes from them are a stranger's: nothing in them may steer a
/// terminal or look like a line of ours.
fn plain(text: &str) -> Cow<'_, str> {
    if !text.contains(char::is_control) {
        return Cow::Borrowed(text);
    }
    let shown = |c: char| if c.is_control() { c.escape_default().to_string() } else { c.into() };
    Cow::Owned(text.chars().map(shown).collect())
}

/// A table for people: columns padded, numbers to the right.
pub(crate) struct Table {
    head: Vec<&'static str>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A column whose title starts with `>` is set to the right.
    pub(crate) fn new(head: &[&'static str]) -> Self {
        Self { head: head.to_vec(), rows: Vec::new() }
    }

    pub(crate) fn row(&mut self, cells: Vec<String>) {
        debug_assert_eq!(cells.len(), self.head.len(), "a cell for each column");
        self.rows.push(cells);
    }

    pub(crate) fn show(&self) -> String {
        let titles: Vec<&str> = self.head.iter().map(|h| h.trim_start_matches('>')).collect();
        let width = |column: usize| {
            let cells = self.rows.iter().map(|row| row[column].chars().count());
            cells.chain([titles[column].chars().count()]).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.head.len()).map(width).collect();
        let line = |cells: Vec<&str>| {
            let mut line = String::new();
            for (column, cell) in cells.into_iter().enumerate() {
                let width = widths[column];
                let right = self.head[column].starts_with('>');
                let cell =
                    if right { format!("{cell:>width$}") } else { format!("{cell:<width$}") };
                line += if column > 0 { "  " } else { "" };
                line += &cell;
            }
            line.trim_end().to_owned() + "\n"
        };
        let mut text = line(titles.clone());
        for row in &self.rows {
            text += &line(row.iter().map(String::as_str).collect());
        }
        text
    }
}

/// Facts for people, one per line: `label  value`.
pub(crate) fn facts(lines: &[(&str, String)]) -> String {
    let width = lines.iter().map(|(label, _)| label.len()).max().unwrap_or(0);
    lines.iter().map(|(label, value)| format!("{label:<width$}  {value}\n")).collect()
}

/// A line that stays above what is going on, on standard error where that is a terminal; nothing
/// elsewhere.
pub(crate) fn live(text: &str) {
    let mut err = io::stderr();
    if err.is_terminal() {
        // Nobody to tell it to is no reason to stop.
        let _ = writeln!(err, "{}", plain(text));
    }
}

/// A progress bar on standard error where that is a terminal; nothing elsewhere.
pub(crate) struct Bar {
    bar: ProgressBar,
}

impl Bar {
    pub(crate) fn new() -> Self {
        let bar = if io::stderr().is_terminal() {
            ProgressBar::new_spinner()
        } else {
            ProgressBar::hidden()
        };
        bar.enable_steady_tick(Duration::from_millis(120));
        Self { bar }
    }

    /// How far it has come, in bytes.
    pub(crate) fn bytes(&self, stage: &str, done: u64, total: Option<u64>) {
        let template = match total {
            Some(_) => "{msg:12} {wide_bar} {bytes}/{total_bytes} {bytes_per_sec}",
            None => "{msg:12} {spinner} {bytes} {bytes_per_sec}",
        };
        self.set(template, stage, done, total);
    }

    /// How far it has come, as a part of the whole.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 to 100")]
    pub(crate) fn percent(&self, stage: &str, part: f64) {
        let done = (part.clamp(0.0, 1.0) * 100.0) as u64;
        self.set("{msg:24} {wide_bar} {pos} %", stage, done, Some(100));
    }

    /// What it is doing just now.
    pub(crate) fn say(&self, what: &str) {
        self.set("{spinner} {msg}", what, 0, None);
    }

    fn set(&self, template: &str, stage: &str, done: u64, total: Option<u64>) {
        if self.bar.is_hidden() {
            return;
        }
        if self.bar.message() != stage {
            self.bar.set_style(ProgressStyle::with_template(template).expect("a valid template"));
            self.bar.set_message(stage.to_owned());
        }
        if let Some(total) = total {
            self.bar.set_length(total);
        }
        self.bar.set_position(done);
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    #[test]
    fn tables_line_up() {
        let mut table = Table::new(&["title", ">size"]);
        table.row(vec!["Nosferatu".into(), "1 GiB".into()]);
        table.row(vec!["Ü".into(), "12.5 GiB".into()]);
        expect![[r"
            title          size
            Nosferatu     1 GiB
            Ü          12.5 GiB
        "]]
        .assert_eq(&table.show());
    }
}
