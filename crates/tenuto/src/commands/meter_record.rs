//! What a run of streams leaves: its summary, and with `--out` a directory.
//!
//! ```text
//!   DIR/scenario.json      what was asked
//!   DIR/environment.json   on which machine
//!   DIR/summary.json       what came out: as --json
//!   DIR/operations.parquet every operation (of `meter run`)
//!   DIR/seconds.csv        what came in each second (of `meter run`)
//!   DIR/runs/003-64/       both of these of each run of a search: its number, and how many streams
//!   DIR/report.html        all that for people; needs nothing beside it
//! ```

use super::meter::spread;
use super::meter_blame::Blame;
use super::meter_environment::Environment;
use super::meter_plots::{plots, round_spread};
use super::meter_report::RUNS;
use super::meter_search::{self, Probe, purpose};
use super::meter_streams::{self, late, moved, time};
use super::renditions;
use crate::cli::Args;
use crate::failure::{Code, Failure};
use crate::out;
use meter::capacity::{Answer, Rule, Verdict};
use meter::log::{Behind, FILE, LogError, Room, Sink, Written, behind};
use meter::report::{Block, Page};
use meter::streams::{Outcome, Times};
use serde_json::{Value, json};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;
use units::BitRate;

/// What is measured, as all that is told of it begins.
pub(super) struct Subject {
    /// As it reads after a number: `streams of xdcam422`, `viewers`.
    pub(super) what: String,
    /// That, for people.
    pub(super) title: String,
    pub(super) target: String,
    /// What one stream asks for, where there is a clock for it.
    pub(super) each: Option<Demand>,
    /// Of each run.
    pub(super) duration: Duration,
    /// How much of it memory on the way may have answered.
    pub(super) caches: String,
    /// All that was asked.
    pub(super) scenario: Value,
}

/// What is due, where it is due by a clock of the meter's.
#[derive(Clone, Copy)]
pub(super) struct Demand {
    /// From when a frame is to be asked for until it must be there.
    pub(super) allowed: Duration,
    pub(super) rate: BitRate,
}

/// The directory for the run, if one is wanted.
pub(super) fn prepare(args: &Args<'_>) -> Result<Option<PathBuf>, Failure> {
    args.maybe::<PathBuf>("out").map(meter_streams::free).transpose()
}

/// The log of a run, if it has a directory; of a simulated one nothing is lost.
pub(super) fn log(dir: Option<&Path>, simulated: bool) -> Result<(Sink, Option<Behind>), Failure> {
    let Some(dir) = dir else { return Ok((Sink::none(), None)) };
    // In virtual time there is nothing to be late with.
    let room = if simulated { Room::Wait } else { Room::Count };
    let (sink, behind) = behind(&dir.join(FILE), BLOCKS, room)?;
    Ok((sink, Some(behind)))
}

/// Waits until it is written.
pub(super) fn end_log(behind: Behind, sink: Sink) -> Result<Written, Failure> {
    Ok(behind.finish(sink, &[])?)
}

/// What the summary says of it, where there is one.
pub(super) fn tell_of_log(summary: &mut Value, written: &Result<Option<Written>, Failure>) {
    match written {
        Ok(None) => {}
        Ok(Some(Written { records, lost, .. })) => {
            summary["log"] = json!({ "records": records, "lost": lost });
        }
        Err(failure) => summary["log"] = json!({ "error": failure.sentence }),
    }
}

/// What a log lacks.
pub(super) fn lacks(written: &Written) -> Option<String> {
    let first = time(Duration::from_nanos(written.first_lost?));
    Some(format!(
        "{FILE} lacks {} operations, the first of them due after {first}: they came faster than the \
         log could be written",
        written.lost,
    ))
}

/// A run whose log lacks operations cannot be counted again, and is not valid.
pub(super) fn all_written(written: Option<Written>) -> Result<(), Failure> {
    written.as_ref().and_then(lacks).map_or(Ok(()), |sentence| {
        Err(Failure::new(format!("not valid: {sentence}"))
            .hint("put --out on faster storage that is not measured, or make the run shorter")
            .code(Code::Invalid))
    })
}

/// Of 16 Ki operations each: 200 MB of memory at most.
const BLOCKS: usize = 128;

impl From<LogError> for Failure {
    fn from(error: LogError) -> Self {
        Self::of(&error.to_string())
    }
}

/// What `meter run --json` prints.
pub(super) fn summary(
    subject: &Subject,
    demand: Option<Demand>,
    outcome: &Outcome,
    blame: Option<&Blame>,
) -> Value {
    let streams = outcome.streams.iter().map(|stream| {
        json!({
            "frames": stream.frames,
            "late": stream.late,
            "longest_outage": stream.longest_outage.as_secs_f64(),
            "aggregate_drift": stream.aggregate_drift.as_secs_f64(),
            "consecutive_drift": stream.consecutive_drift.as_secs_f64(),
        })
    });
    let seconds = outcome.seconds.iter().map(|second| {
        json!({
            "frames": second.frames,
        "late": second.late,
            "late_by_meter": second.late_by_meter,
            "longest_own": second.longest_own.as_secs_f64(),
            "longest_response": second.longest_response.as_secs_f64(),
            "bytes_read": second.bytes_read.0,
            "bytes_written": second.bytes_written.0,
        })
    });
    let mut all = short(outcome);
    all["scenario"] = subject.scenario.clone();
    all["caches"] = json!(subject.caches);
    all["allowed"] = json!(demand.map(|demand| demand.allowed.as_secs_f64()));
    all["demand_bits_per_s"] = json!(demand.map(|demand| demand.rate.0));
    all["seconds"] = seconds.collect();
    all["each_stream"] = streams.collect();
    all["blame"] = json!(blame.map(Blame::json));
    all
}

/// What is said of every run, of a search as well.
fn short(outcome: &Outcome) -> Value {
    json!({
        "streams": outcome.streams.len(),
        "complete": outcome.complete,
        "valid": outcome.valid(),
        "method": outcome.method,
        "took": outcome.took.as_secs_f64(),
        "frames": outcome.frames,
        "late": outcome.late,
        "late_by_storage": outcome.late_by_storage(),
        "late_by_meter": outcome.late_by_meter,
        "below_best": outcome.below_best,
        "failed": outcome.failed,
        "never_came": outcome.never,
        "stuck": outcome.stuck,
        "rounds": outcome.rounds,
        "late_rounds": outcome.late_rounds,
        "round_time": spread(round_spread(outcome)),
        "longest_outage": outcome.longest_outage().as_secs_f64(),
        "bytes": outcome.bytes().0,
        "bytes_read": outcome.reads.bytes.0,
        "bytes_written": outcome.writes.bytes.0,
        "bits_per_s": outcome.rate().0,
        "service": times(&outcome.service()),
        "read_service": times(&outcome.reads.service),
        "write_service": times(&outcome.writes.service),
        "response": times(&outcome.response),
        "meter_lateness": times(&outcome.issue),
        "meter_spun": outcome.spun().as_secs_f64(),
    })
}

pub(super) fn times(times: &Times) -> Value {
    let at = |share| times.quantile(share).as_secs_f64();
    json!({
        "count": times.count(),
        "p50": at(0.5),
        "p95": at(0.95),
        "p99": at(0.99),
        "p999": at(0.999),
        "max": at(1.0),
    })
}

/// What `meter capacity --json` prints.
pub(super) fn capacity(
    subject: &Subject,
    rule: Rule,
    verdict: Verdict,
    probes: &[Probe],
    confirming: Option<&Probe>,
) -> Value {
    let runs = probes.iter().map(of_probe);
    json!({
        "scenario": subject.scenario,
        "caches": subject.caches,
        "rule": rule.word(),
        "streams": verdict.streams,
        "confirmed": verdict.confirmed,
        "at_limit": verdict.at_limit,
        "too_many": verdict.too_many,
        "by_meter": verdict.by_meter,
        "spoilt": verdict.spoilt,
        "broke_first": meter_search::broke_first(probes, verdict),
        "late_share_at_most": confirming.map(|probe| rule.certainty(&probe.outcome)),
        "runs": runs.collect::<Vec<_>>(),
    })
}

/// A run of a search.
pub(super) fn of_probe(probe: &Probe) -> Value {
    let mut run = short(&probe.outcome);
    run["why"] = json!(purpose(probe.step.purpose));
    run["held"] = json!(probe.answer == Answer::Held);
    run["spoilt"] = json!(probe.answer == Answer::Spoilt);
    run["blame"] = json!(probe.blame.as_ref().map(Blame::json));
    run
}

pub(super) fn write_run(
    dir: &Path,
    subject: &Subject,
    demand: Option<Demand>,
    outcome: &Outcome,
    blame: Option<&Blame>,
    summary: &Value,
) -> Result<(), Failure> {
    let mut blocks = run_blocks(subject, demand, outcome)?;
    blocks.extend(renditions::block(&summary["play"]));
    if let Some(blame) = blame {
        blocks.extend(blame.blocks()?);
    }
    let page = Page {
        title: format!("{} {}", outcome.streams.len(), subject.what),
        summary: format!("{} on {}. Frames: {}.", subject.title, subject.target, late(outcome)),
        blocks,
    };
    save_all(dir, &summary["scenario"], summary, &page)?;
    write_seconds(dir, outcome)?;
    out::note(&format!("wrote {}", dir.join("report.html").display()));
    Ok(())
}

fn run_blocks(
    subject: &Subject,
    demand: Option<Demand>,
    outcome: &Outcome,
) -> Result<Vec<Block>, Failure> {
    let row = |name: &str, times: &Times| {
        let shares = [0.5, 0.95, 0.99, 0.999, 1.0].map(|share| time(times.quantile(share)));
        std::iter::once(name.to_owned()).chain(shares).collect::<Vec<_>>()
    };
    let head = ["time", "half within", "95 %", "99 %", "99.9 %", "all"];
    let in_time = demand.map_or(String::new(), |demand| {
        let allowed = time(demand.allowed);
        format!(" In time is within {allowed} of when a frame was to be asked for.")
    });
    let mut blocks = vec![
        Block::Text(format!(
            "Done by {}; {}.{in_time} Longest outage: {}. Caches: {}.",
            outcome.method,
            moved(outcome),
            time(outcome.longest_outage()),
            subject.caches,
        )),
        Block::Table {
            head: head.map(str::to_owned).into(),
            rows: vec![
                row("service: from asking to having", &outcome.service()),
                row("response: from when it was to be asked for", &outcome.response),
                row("the meter's own lateness with asking", &outcome.issue),
            ],
        },
    ];
    blocks.extend(plots(outcome, demand)?);
    Ok(blocks)
}

pub(super) fn save_all(
    dir: &Path,
    scenario: &Value,
    summary: &Value,
    page: &Page,
) -> Result<(), Failure> {
    let pretty = |value: &Value| format!("{value:#}\n");
    // What agents measure is not beneath this machine.
    let here = scenario["agents"].is_null();
    let target = scenario["target"].as_str().filter(|_| here).map(Path::new);
    let environment = Environment::of(target);
    let mut page = page.clone();
    page.blocks.extend(environment.blocks());
    let files = [
        ("scenario.json", pretty(scenario)),
        ("environment.json", pretty(&json!(environment))),
        ("summary.json", pretty(summary)),
        ("report.html", page.html()),
    ];
    for (name, text) in files {
        let path = dir.join(name);
        std::fs::write(&path, text).map_err(|error| cannot_write(&path, &error))?;
    }
    Ok(())
}

fn cannot_write(path: &Path, error: &io::Error) -> Failure {
    Failure::new(format!("cannot write {}: {error}", path.display()))
}

/// The directory of a run of a search, the first of which is 1.
pub(super) fn run_in(dir: &Path, number: u32, streams: u32) -> Result<PathBuf, Failure> {
    let path = dir.join(RUNS).join(format!("{number:03}-{streams}"));
    std::fs::create_dir_all(&path).map_err(|error| cannot_write(&path, &error))?;
    Ok(path)
}

/// `seconds.csv`.
pub(super) fn write_seconds(dir: &Path, outcome: &Outcome) -> Result<(), Failure> {
    let path = dir.join("seconds.csv");
    seconds(&path, outcome).map_err(|error| cannot_write(&path, &error))
}

/// What came in each second, for those who draw.
fn seconds(path: &Path, outcome: &Outcome) -> io::Result<()> {
    let mut file = io::BufWriter::new(std::fs::File::create(path)?);
    file.write_all(
        b"second,frames_due,late,late_by_meter,bytes_read,bytes_written,longest_response_ns\n",
    )?;
    for (number, of) in outcome.seconds.iter().enumerate() {
        writeln!(
            file,
            "{number},{},{},{},{},{},{}",
            of.frames,
            of.late,
            of.late_by_meter,
            of.bytes_read.0,
            of.bytes_written.0,
            of.longest_response.as_nanos()
        )?;
    }
    file.flush()
}
