//! The directory of an experiment, and the lifetime of a run's log.
//!
//! ```text
//!   DIR/scenario.json      the configuration
//!   DIR/environment.json   the machine
//!   DIR/summary.json       the results: as --json
//!   DIR/tables/            its lists, each as CSV and as Parquet
//!   DIR/operations.parquet every operation (of `meter run`)
//!   DIR/seconds.csv        the figures of each second (of `meter run`)
//!   DIR/runs/003-64/       both of these of each run of a search: its number, its streams
//!   DIR/runs/002-ingest/   of each group of a job: its number, its name
//!   DIR/report.html        everything for people; needs no other file
//! ```

use super::run_report::growth_in_words;
use super::tables::save_tables;
use crate::error::MeterError;
use crate::log::{
    BackgroundWriter, FILE, LogSink, RecordSink, WhenFull, Written, background_writer,
};
use crate::observer::Observer;
use crate::report::{Environment, Page, time};
use crate::streams::StreamsOutcome;
use serde_json::{Value, json};
use std::fmt::Display;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;
use units::show::count;

/// The result of an experiment, for the program that started it.
pub struct ExperimentReport {
    /// The results in machine-readable form.
    pub summary: Value,
    /// The results as text for a terminal.
    pub text: String,
    /// Why the results are not valid, were interrupted, or could not be saved.
    pub verdict: Result<(), MeterError>,
}

/// The subdirectory in which a search keeps its runs.
pub(super) const RUNS: &str = "runs";

/// Makes the directory of an experiment, if it has one; refuses one that is not empty.
pub(super) fn prepare(dir: Option<&Path>) -> Result<(), MeterError> {
    dir.map_or(Ok(()), new_directory)
}

/// Makes a directory for the results of one command; refuses one that is not empty.
pub fn new_directory(dir: &Path) -> Result<(), MeterError> {
    let failed = MeterError::cannot("make", dir);
    std::fs::create_dir_all(dir).map_err(failed)?;
    let mut inside = std::fs::read_dir(dir).map_err(failed)?;
    // Results of two runs in one directory could not be told apart.
    if inside.next().is_some() {
        return Err(MeterError::new(format!("{} is not empty", dir.display()))
            .hint("name a new directory for each run"));
    }
    Ok(())
}

/// The log of a run: written in the background where the run has a directory.
pub(super) struct RunLog {
    sink: LogSink,
    writer: Option<BackgroundWriter>,
}

impl RunLog {
    /// Opens the log in `dir`. A run in virtual time waits for its log; a run in real time drops
    /// records instead, and counts them.
    pub(super) fn open(dir: Option<&Path>, virtual_time: bool) -> Result<Self, MeterError> {
        let Some(dir) = dir else { return Ok(Self { sink: LogSink::none(), writer: None }) };
        // A wait in real time would make the meter late; virtual time does not pass meanwhile.
        let room = if virtual_time { WhenFull::Wait } else { WhenFull::Count };
        let (sink, writer) = background_writer(&dir.join(FILE), BLOCKS, room)?;
        Ok(Self { sink, writer: Some(writer) })
    }

    pub(super) fn sink(&mut self) -> &mut dyn RecordSink {
        &mut self.sink
    }

    /// Waits until all records are written; `None` where there is no log.
    pub(super) fn finish(self) -> Result<Option<Written>, MeterError> {
        let Self { sink, writer } = self;
        Ok(writer.map(|writer| writer.finish(sink, &[])).transpose()?)
    }
}

/// Adds the state of the log to a run's summary.
pub(super) fn add_log(summary: &mut Value, written: &Result<Option<Written>, MeterError>) {
    match written {
        Ok(None) => {}
        Ok(Some(Written { records, lost, .. })) => {
            summary["log"] = json!({ "records": records, "lost": lost });
        }
        Err(error) => summary["log"] = json!({ "error": error.message }),
    }
}

/// The operations that are missing in a log, in words.
fn lost_records(written: &Written) -> Option<String> {
    let first = time(Duration::from_nanos(written.first_lost?));
    Some(format!(
        "{FILE} lacks {}, the first due after {first}: they came faster than the \
         log could be written",
        count(written.lost, "operation"),
    ))
}

/// Notes which operations the log of one of several runs lacks; `run` names the run.
pub(super) fn note_lost(written: Option<&Written>, run: &str, observer: &dyn Observer) {
    if let Some(sentence) = written.and_then(lost_records) {
        observer.note(&format!("{run}: {sentence}"));
    }
}

/// Refuses a run whose log is incomplete, because it cannot be recounted.
pub(super) fn check_log(written: Option<&Written>) -> Result<(), MeterError> {
    written.and_then(lost_records).map_or(Ok(()), |sentence| {
        Err(MeterError::new(format!("not valid: {sentence}"))
            .hint("put --out on faster storage that is not measured, or make the run shorter")
            .invalid())
    })
}

/// Reports a valid run in which the storage did not deliver every frame in time.
pub(super) fn check_held(outcome: &StreamsOutcome) -> Result<(), MeterError> {
    match (outcome.missed(), growth_in_words(outcome)) {
        (0, None) => Ok(()),
        (0, Some(growth)) => Err(MeterError::not_held(format!("not held: {growth}"))),
        (missed, _) => {
            let frames = outcome.frames;
            Err(MeterError::not_held(format!("not held: {missed} of {frames} frames missed")))
        }
    }
}

/// The number of blocks, of 16 Ki operations each: at most 200 MB of memory.
const BLOCKS: usize = 128;

/// Writes a summary into the directory of its command: as JSON, and its lists as tables.
pub fn save_summary(
    dir: &Path,
    summary: &Value,
    observer: &dyn Observer,
) -> Result<(), MeterError> {
    write_summary(dir, summary)?;
    observer.note(&format!("wrote {}", dir.join(SUMMARY).display()));
    Ok(())
}

/// Writes `summary.json` and the tables beside it.
pub(super) fn write_summary(dir: &Path, summary: &Value) -> Result<(), MeterError> {
    let path = dir.join(SUMMARY);
    std::fs::write(&path, format!("{summary:#}\n")).map_err(MeterError::cannot("write", &path))?;
    save_tables(dir, summary)
}

/// The name of the summary's file.
const SUMMARY: &str = "summary.json";

/// Writes the files of an experiment into its directory, if it has one.
pub(super) fn save(
    dir: Option<&Path>,
    summary: &Value,
    page: impl FnOnce() -> Result<Page, MeterError>,
    observer: &dyn Observer,
) -> Result<(), MeterError> {
    let Some(dir) = dir else { return Ok(()) };
    let mut page = page()?;
    let scenario = &summary["scenario"];
    // The target of agents is on their machines, not beneath this one.
    let local = scenario["agents"].is_null();
    // An address is no path on this machine; looking it up finds no device and does no harm.
    let target = scenario["target"].as_str().filter(|_| local).map(Path::new);
    let environment = Environment::of(target);
    page.blocks.extend(environment.blocks(!local));
    let pretty = |value: &Value| format!("{value:#}\n");
    let files = [
        ("scenario.json", pretty(scenario)),
        ("environment.json", pretty(&json!(environment))),
        ("report.html", page.html()),
    ];
    for (name, text) in files {
        let path = dir.join(name);
        std::fs::write(&path, text).map_err(MeterError::cannot("write", &path))?;
    }
    write_summary(dir, summary)?;
    // Last: the note promises that all files are there.
    observer.note(&format!("wrote {}", dir.join("report.html").display()));
    Ok(())
}

/// Makes the directory of a run of a search, or of a group of a job; they are numbered from 1.
/// `name` is the number of streams, or the group's name.
pub(super) fn run_directory(
    dir: Option<&Path>,
    number: impl Display,
    name: impl Display,
) -> Result<Option<PathBuf>, MeterError> {
    let Some(dir) = dir else { return Ok(None) };
    let path = dir.join(RUNS).join(format!("{number:0>3}-{name}"));
    std::fs::create_dir_all(&path).map_err(MeterError::cannot("write", &path))?;
    Ok(Some(path))
}

/// Writes `seconds.csv`.
pub(super) fn write_seconds(
    dir: Option<&Path>,
    outcome: &StreamsOutcome,
) -> Result<(), MeterError> {
    let Some(dir) = dir else { return Ok(()) };
    let path = dir.join("seconds.csv");
    seconds(&path, outcome).map_err(MeterError::cannot("write", &path))
}

fn seconds(path: &Path, outcome: &StreamsOutcome) -> io::Result<()> {
    let mut file = io::BufWriter::new(std::fs::File::create(path)?);
    file.write_all(
        b"second,frames_due,late,late_by_meter,bytes_read,bytes_written,longest_response_ns\n",
    )?;
    for (number, second) in outcome.seconds.iter().enumerate() {
        writeln!(
            file,
            "{number},{},{},{},{},{},{}",
            second.frames,
            second.late,
            second.late_by_meter,
            second.bytes_read.0,
            second.bytes_written.0,
            second.longest_response.as_nanos()
        )?;
    }
    file.flush()
}
