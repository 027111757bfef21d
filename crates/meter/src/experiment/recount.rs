//! The recount of a run from its log alone, independent of the run's own report; of a search or a
//! ramp, the recount of each of its runs (`meter report`).

use super::record::{ExperimentReport, RUNS};
use super::recount_page;
use super::run_report::grows;
use crate::error::MeterError;
use crate::log::{FILE, OperationKind, OutcomeFromLog, Recount, read};
use crate::observer::Observer;
use crate::report::{TextTable, facts, time};
use crate::streams::StreamsOutcome;
use serde_json::{Value, json};
use std::path::Path;
use std::time::Duration;
use units::show;
use units::{BitRate, ByteCount};

/// Number of frames by which two counts of the same run may differ.
const ONE_FRAME: u64 = 1;

/// A run recounted from its log.
pub(super) struct RecountedRun {
    /// The run's directory within the named one; empty for the named one itself.
    pub(super) name: String,
    pub(super) counted: Recount,
    pub(super) outcome: StreamsOutcome,
    /// Time from the intended start of a frame's read to its deadline.
    pub(super) allowed: Option<Duration>,
    /// Number of operations that the log lacks.
    pub(super) lost: u64,
    /// Whether the summary has the same counts; `None` without a summary.
    pub(super) agrees: Option<bool>,
}

/// Recounts the runs in `dir` and writes `recount.html` there.
pub fn recount_runs(dir: &Path, observer: &dyn Observer) -> Result<ExperimentReport, MeterError> {
    let runs = counted(dir)?;
    let html = recount_page::page(dir, &runs)?.html();
    let path = dir.join("recount.html");
    let saved = std::fs::write(&path, html).map_err(MeterError::cannot("write", &path));
    let (summary, text) = match &runs[..] {
        [run] if run.name.is_empty() => (object(run), facts(&lines(run))),
        runs => (all(runs), TextTable::with_rows(&HEAD, runs.iter().map(row).collect()).show()),
    };
    if saved.is_ok() {
        observer.note(&format!("wrote {}", path.display()));
    }
    let verdict = saved.and_then(|()| match runs.iter().any(|run| run.agrees == Some(false)) {
        false => Ok(()),
        true => Err(MeterError::new("summary.json says something else than the log")
            .hint(format!("was {FILE} or summary.json of this directory changed?"))
            .invalid()),
    });
    Ok(ExperimentReport { summary, text, verdict })
}

/// Recounts every run with a log in `dir`: its own, or those of its runs in their order.
fn counted(dir: &Path) -> Result<Vec<RecountedRun>, MeterError> {
    let said = said(dir)?;
    if dir.join(FILE).exists() || !dir.is_dir() {
        return Ok(vec![count(String::new(), dir, said.as_ref())?]);
    }
    // The steps of a ramp are directly in its directory, the runs of a search one level deeper.
    let mut names = inner(dir, "");
    names.extend(inner(dir, RUNS));
    if names.is_empty() {
        return Err(MeterError::new(format!(
            "{} has no {FILE}, nor has a run in it",
            dir.display()
        ))
        .hint("name what --out of meter run, capacity, transfers or ramp made"));
    }
    let of = |at: usize| {
        // A search lists its runs, a ramp its steps and a job its groups, in the order of the
        // directories' names.
        let steps = said.as_ref().map(|said| [&said["runs"], &said["steps"], &said["groups"]]);
        steps.into_iter().flatten().find_map(|steps| steps.get(at))
    };
    let runs = names.into_iter().enumerate();
    runs.map(|(at, name)| count(name.clone(), &dir.join(name), of(at))).collect()
}

/// Directories with a log in `dir/below`, by name.
fn inner(dir: &Path, below: &str) -> Vec<String> {
    let entries = std::fs::read_dir(dir.join(below)).into_iter().flatten().flatten();
    let name = |entry: std::fs::DirEntry| {
        let name = Path::new(below).join(entry.file_name());
        dir.join(&name).join(FILE).exists().then(|| name.display().to_string())
    };
    let mut names: Vec<String> = entries.filter_map(name).collect();
    // Run numbers have leading zeros, so the order of names is the order of the runs.
    names.sort();
    names
}

fn count(name: String, dir: &Path, said: Option<&Value>) -> Result<RecountedRun, MeterError> {
    let log = read(dir)?;
    // A log without this entry lost nothing that it knows of.
    let lost = log.about("lost").and_then(|lost| lost.parse::<u64>().ok()).unwrap_or(0);
    let (mut counted, mut again) = (Recount::default(), OutcomeFromLog::default());
    for group in log {
        for record in group? {
            counted.count(&record);
            again.count(&record);
        }
    }
    let agrees = said.map(|said| agree(said, &counted, lost));
    let allowed = again.allowed();
    Ok(RecountedRun { name, counted, outcome: again.outcome(), allowed, lost, agrees })
}

/// The summary; `None` if the run did not get so far.
fn said(dir: &Path) -> Result<Option<Value>, MeterError> {
    let path = dir.join("summary.json");
    let Ok(text) = std::fs::read_to_string(&path) else { return Ok(None) };
    let value = serde_json::from_str(&text)
        .map_err(|error| MeterError::new(format!("{} is no summary: {error}", path.display())))?;
    Ok(Some(value))
}

/// Whether the summary has the same counts, apart from the records that the log lost. Transfers are
/// compared by blocks.
fn agree(said: &Value, counted: &Recount, lost: u64) -> bool {
    let same = |said: u64, count: u64| said.abs_diff(count) <= ONE_FRAME + lost;
    // A summary without this count does not contradict the log.
    let near = |name: &str, count| said[name].as_u64().is_none_or(|said| same(said, count));
    if let Some(rows) = said["rows"].as_array() {
        let blocks = rows.iter().filter_map(|row| row["blocks"].as_u64()).sum();
        // The rows of transfers count the blocks that arrived only.
        return same(blocks, counted.records - counted.failed - counted.never);
    }
    near("failed", counted.failed)
        && near("frames", counted.frames)
        && near("late", counted.late)
        && near("late_by_meter", counted.late_by_meter)
}

pub(super) fn lines(run: &RecountedRun) -> Vec<(&'static str, String)> {
    let RecountedRun { counted, lost, agrees, .. } = run;
    let moved = |kind| ByteCount(counted.bytes.get(&kind).copied().unwrap_or(0));
    let frames = match counted.frames {
        0 => "none: nothing had a deadline".to_owned(),
        frames => format!(
            "{frames}, {} late, of these {} by no more than the meter was",
            counted.late, counted.late_by_meter
        ),
    };
    let mut lines = vec![
        ("operations", counted.records.to_string()),
        ("frames", frames),
        ("failed", counted.failed.to_string()),
        ("never came", counted.never.to_string()),
        (
            "moved",
            format!("{} read, {} written", moved(OperationKind::Read), moved(OperationKind::Write)),
        ),
        ("longest response", time(Duration::from_nanos(counted.longest_response))),
    ];
    if run.allowed.is_some() && counted.late == 0 {
        let text = run.outcome.backlog_growth.map_or("does not grow".to_owned(), grows);
        lines.push(("backlog", text));
    }
    if *lost > 0 {
        lines.push(("not in the log", show::count(*lost, "operation")));
    }
    lines.push(("summary", said_of(*agrees).to_owned()));
    lines
}

fn said_of(agrees: Option<bool>) -> &'static str {
    match agrees {
        Some(true) => "says the same",
        Some(false) => "says something else",
        None => "there is none: the run did not come to its end",
    }
}

/// The columns of the table of runs.
pub(super) const HEAD: [&str; 9] = [
    "run",
    ">streams",
    ">operations",
    ">late",
    ">by the meter",
    ">failed",
    ">rate",
    ">99 % within",
    "summary",
];

pub(super) fn row(run: &RecountedRun) -> Vec<String> {
    let outcome = &run.outcome;
    vec![
        run.name.clone(),
        outcome.streams.len().to_string(),
        run.counted.records.to_string(),
        run.counted.late.to_string(),
        run.counted.late_by_meter.to_string(),
        run.counted.failed.to_string(),
        BitRate::of(outcome.bytes(), outcome.took).to_string(),
        time(outcome.response.quantile(0.99)),
        said_of(run.agrees).to_owned(),
    ]
}

fn all(runs: &[RecountedRun]) -> Value {
    let one = |run: &RecountedRun| {
        let mut said = object(run);
        said["run"] = json!(run.name);
        said["streams"] = json!(run.outcome.streams.len());
        said
    };
    let agrees = runs.iter().all(|run| run.agrees == Some(true));
    json!({
        "runs": runs.iter().map(one).collect::<Vec<_>>(),
        "summary_agrees": agrees,
    })
}

fn object(run: &RecountedRun) -> Value {
    let RecountedRun { counted, lost, agrees, .. } = run;
    let seconds = counted.late_by_second.iter().map(|(second, late)| json!([second, late]));
    json!({
        "operations": counted.records,
        "frames": counted.frames,
        "late": counted.late,
        "late_by_meter": counted.late_by_meter,
        "failed": counted.failed,
        "never_came": counted.never,
        "backlog_grows": run.outcome.grows(),
        "bytes_read": counted.bytes.get(&OperationKind::Read).copied().unwrap_or(0),
        "bytes_written": counted.bytes.get(&OperationKind::Write).copied().unwrap_or(0),
        "longest_response": Duration::from_nanos(counted.longest_response).as_secs_f64(),
        "late_by_second": seconds.collect::<Vec<_>>(),
        "lost": lost,
        "summary_agrees": agrees,
    })
}
