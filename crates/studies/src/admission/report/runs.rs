//! What came of runs under stress, in the long run, and on a disk that slows down.

use super::super::disk_server::RunCounters;
use super::super::long_run::LongRunResult;
use super::super::slowdown::{ENDS, RECOVERS, RunPhase, SLOWS, together};
use super::super::stress::StressResult;
use crate::reproduce::{Cell, Figure, Report, Table};
use meter::report::{LineShape, Plot, Series, cell};
use std::time::Duration;

/// What came of a stress: for each policy, its runs.
pub fn stress_report(source: &str, rows: &[(String, Vec<StressResult>)]) -> Report {
    let table_rows = rows.iter().map(|(name, runs)| {
        let mut result = StressResult::default();
        runs.iter().for_each(|run| result += *run);
        let counters = result.counters;
        [
            cell("policy", "policy", name.as_str()),
            cell("runs", ">runs", result.runs),
            cell("worst", ">worst rotation", result.worst),
            cell("admitted", ">admitted", counters.admitted),
            cell("refused", ">refused", counters.refused),
            cell("reads", ">reads", counters.reads),
            cell("late", ">late", counters.late),
            cell("latest_ms", ">by at most, ms", counters.latest_ms()),
            cell("broken", ">broken runs", result.broken),
            cell("broken_worst", ">of worst rotation", result.broken_worst),
        ]
    });
    let late = |(name, runs): &(String, Vec<StressResult>)| {
        // Sums over all runs: a single late read stays visible to the end of the line.
        let (mut reads, mut late, mut points) = (0, 0, vec![(0.0, 0.0)]);
        for run in runs {
            (reads, late) = (reads + run.counters.reads, late + run.counters.late);
            points.push((reads as f64 / 1e6, late as f64));
        }
        Series::new(name, LineShape::Line, points)
    };
    let (title, series) = ("Late reads of admitted viewers", rows.iter().map(late).collect());
    let figure = Figure {
        name: "late",
        plot: Plot::new(title, "reads made, millions", "of those late, so far", series),
        explanation: "Each line is a policy's runs one after another, each with its own load, \
                      memory and rotational delays. A guarantee holds where the line stays at zero."
            .into(),
    };
    Report {
        source: source.to_owned(),
        method: STRESS_METHOD.into(),
        tables: vec![Table::of("stress", "Stress runs", table_rows)],
        notes: Vec::new(),
        figures: vec![figure],
    }
}

/// What came of long runs with so much memory.
pub fn long_run_report(source: &str, memory: u64, rows: &[(String, Vec<LongRunResult>)]) -> Report {
    let table_rows = rows.iter().map(|(name, runs)| {
        let mut counters = RunCounters::default();
        runs.iter().for_each(|run| counters += run.counters);
        let mean = |of: fn(&LongRunResult) -> f64| {
            100.0 * runs.iter().map(of).sum::<f64>() / runs.len().max(1) as f64
        };
        // The mean hides a run in which a policy admits too few.
        let least = runs.iter().map(|run| 100.0 * run.load).fold(f64::INFINITY, f64::min);
        [
            cell("policy", "policy", name.as_str()),
            cell("runs", ">runs", runs.len()),
            cell("offered", ">offered", Cell::Number(mean(|run| run.offered), 1)),
            cell("load", ">accepted", Cell::Number(mean(|run| run.load), 1)),
            cell("least", ">least of a run", Cell::Number(least, 1)),
            cell("admitted", ">admitted", counters.admitted),
            cell("refused", ">refused", counters.refused),
            cell("reads", ">reads", counters.reads),
            cell("late", ">late", counters.late),
        ]
    });
    let load = |(name, runs): &(String, Vec<LongRunResult>)| {
        Series::new(name, LineShape::Line, load_by_time(runs))
    };
    let (label, series) =
        ("time in which bytes were transferred, %", rows.iter().map(load).collect());
    let figure = Figure {
        name: "load",
        plot: Plot::new("Load over time", "minutes", label, series),
        explanation: "Mean of the runs for each half minute. The rest of the time goes to seeks \
                      and rotational delays, and to the reserve that admission keeps."
            .into(),
    };
    let memory = units::ByteCount(memory);
    Report {
        source: source.to_owned(),
        method: format!(
            "45 minutes with {memory} of buffers; viewers request twice the disk's transfer rate. The \
             load is the part of the last 35 minutes in which bytes of admitted viewers were \
             transferred, computed per zone. 100 % would leave no time for seeks."
        ),
        tables: vec![Table::of(
            "long_run",
            "Load in the long run, % of the media rate",
            table_rows,
        )],
        notes: Vec::new(),
        figures: vec![figure],
    }
}

fn load_by_time(runs: &[LongRunResult]) -> Vec<(f64, f64)> {
    let steps = runs.iter().map(|run| run.by_time.len()).min().unwrap_or(0);
    let point = |step: usize| {
        let load = runs.iter().map(|run| run.by_time[step]).sum::<f64>() / runs.len() as f64;
        ((step as f64 + 0.5) / 2.0, 100.0 * load)
    };
    (0..steps).map(point).collect()
}

/// One policy on a disk that slows down: the same run with the guard, and without.
#[derive(Clone, Debug)]
pub struct SlowdownRun {
    /// The policy.
    pub name: String,
    /// Whether there was a guard.
    pub guarded: bool,
    /// Phases of the run in order of time.
    pub phases: Vec<RunPhase>,
}

/// What came of a disk that takes `times` as long for ten minutes.
pub fn slowdown_report(source: &str, times: f64, runs: &[SlowdownRun]) -> Report {
    let mut table = Table::new("slowing", "A disk that slows down, minute by minute");
    for run in runs {
        for (name, from, until) in PHASES {
            let minutes = Duration::from_secs(60);
            let Some(phase) = together(&run.phases, minutes * *from, minutes * *until) else {
                continue;
            };
            let counters = phase.counters;
            // Phases have different lengths, so counts are shown for a minute.
            let each = |count: u64| Cell::Number(count as f64 / f64::from(until - from), 1);
            table.add([
                cell("policy", "policy", run.name.as_str()),
                cell("guard", "guard", run.guard()),
                cell("phase", "when", *name),
                cell("behind", ">charged more, %", Cell::Number(100.0 * phase.behind, 1)),
                cell("admitted", ">admitted a minute", each(counters.admitted)),
                cell("refused", ">refused", each(counters.refused)),
                cell("load", ">load, %", Cell::Number(100.0 * phase.load, 1)),
                cell("reads", ">reads", counters.reads),
                cell("late", ">late", counters.late),
            ]);
        }
    }
    Report {
        source: source.to_owned(),
        method: format!(
            "The smaller disk unless another is named, 125 MiB of buffers unless stated otherwise. Viewers \
             request twice the disk's transfer rate. From minute {} to minute {} of {} each read takes \
             {times} times the time of the model. Charged more: the percentage that admission adds to \
             the cost of a read at the end of the phase.",
            SLOWS.as_secs() / 60,
            RECOVERS.as_secs() / 60,
            ENDS.as_secs() / 60,
        ),
        tables: vec![table],
        notes: vec![SLOWING_NOTE.into()],
        figures: vec![slowing_figure(runs)],
    }
}

impl SlowdownRun {
    fn guard(&self) -> &'static str {
        if self.guarded { "on" } else { "off" }
    }
}

fn slowing_figure(runs: &[SlowdownRun]) -> Figure {
    let mut series = Vec::new();
    for run in runs {
        let mut line = |what: &str, of: fn(&RunPhase) -> f64| {
            let point = |phase: &RunPhase| (phase.from.as_secs_f64() / 60.0, 100.0 * of(phase));
            let points = run.phases.iter().map(point).collect();
            series.push(Series::new(
                format!("{what}, guard {}", run.guard()),
                LineShape::Step,
                points,
            ));
        };
        line("late reads", |phase| phase.counters.late as f64 / phase.counters.reads.max(1) as f64);
        if run.guarded {
            line("charged more", |phase| phase.behind);
            line("load", |phase| phase.load);
        }
    }
    let title = "A disk that slows down from minute 10 to 20";
    Figure {
        name: "guard",
        plot: Plot::new(title, "minutes", "%", series),
        explanation: "Load: share of time in which bytes were transferred, by the model. Charged \
                      more: percentage that admission adds to the cost of a read. Late: share of \
                      all reads."
            .into(),
    }
}

/// Minutes of a run that slows down.
const PHASES: &[(&str, u32, u32)] = &[
    ("before, minutes 5 to 10", 5, 10),
    ("slow, the first minute", 10, 11),
    ("slow, minutes 11 to 15", 11, 15),
    ("slow, minutes 15 to 20", 15, 20),
    ("recovered, the first minute", 20, 21),
    ("minutes 21 to 25", 21, 25),
    ("minutes 25 to 30", 25, 30),
    ("minutes 30 to 40", 30, 40),
];

const SLOWING_NOTE: &str = "Streams that were accepted before the disk slowed down are late in any \
                            case. The guard decides whether more streams are accepted.";

const STRESS_METHOD: &str = "Each run takes 15 minutes on one of the disks, with a viewer every 0.3 to \
     30 s, 16 MB to 2 GB of buffers, a start-up of 0.5 to 3 s, and reads of at most 256 KiB to 2 MiB \
     (64 KiB where blocks are counted). Of ten events one is a viewer who leaves and one or two are \
     seeks. In two runs of five every rotational delay is a whole revolution. A late read is one that \
     an admitted viewer, still present, gets after its deadline.";
