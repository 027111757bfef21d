//! What came of runs under stress, in the long run, and on a disk that slows down.

use super::super::disk_server::RunCounters;
use super::super::long_run::LongRunResult;
use super::super::slowdown::{ENDS, RECOVERS, RunPhase, SLOWS, together};
use super::super::stress::StressResult;
use crate::reproduce::{Cell, Figure, Report, Table};
use meter::report::{LineShape, Plot, Series};
use std::time::Duration;

/// What came of a stress: for each policy, its runs.
pub fn stress_report(source: &'static str, rows: &[(String, Vec<StressResult>)]) -> Report {
    let mut table = Table::new("stress", "Stress runs", STRESS);
    for (name, runs) in rows {
        let mut result = StressResult::default();
        runs.iter().for_each(|run| result += *run);
        let counters = result.counters;
        table.row([
            name.as_str().into(),
            result.runs.into(),
            result.worst.into(),
            counters.admitted.into(),
            counters.refused.into(),
            counters.reads.into(),
            counters.late.into(),
            Cell::Number(counters.latest.as_secs_f64() * 1e3, 1),
            result.broken.into(),
            result.broken_worst.into(),
        ]);
    }
    let late = |(name, runs): &(String, Vec<StressResult>)| {
        let (mut reads, mut late, mut points) = (0, 0, vec![(0.0, 0.0)]);
        for run in runs {
            (reads, late) = (reads + run.counters.reads, late + run.counters.late);
            points.push((reads as f64 / 1e6, late as f64));
        }
        Series { name: name.clone(), shape: LineShape::Line, points }
    };
    let figure = Figure {
        name: "late",
        plot: Plot {
            title: "Late reads of admitted viewers".into(),
            x_label: "reads made, millions".into(),
            y_label: "of those late, so far".into(),
            series: rows.iter().map(late).collect(),
        },
        explanation:
            "Each line is a policy's runs one after another, each with its own load, memory \
                      and rotational delays. A guarantee holds where the line stays at zero."
                .into(),
    };
    Report {
        source,
        method: STRESS_METHOD.into(),
        tables: vec![table],
        notes: Vec::new(),
        figures: vec![figure],
    }
}

/// What came of long runs with so much memory.
pub fn long_run_report(
    source: &'static str,
    memory: u64,
    rows: &[(String, Vec<LongRunResult>)],
) -> Report {
    let mut table = Table::new("long_run", "Load in the long run, % of the media rate", LONG_RUN);
    for (name, runs) in rows {
        let mut counters = RunCounters::default();
        runs.iter().for_each(|run| counters += run.counters);
        let mean = |of: fn(&LongRunResult) -> f64| {
            100.0 * runs.iter().map(of).sum::<f64>() / runs.len().max(1) as f64
        };
        let least = runs.iter().map(|run| 100.0 * run.load).fold(f64::INFINITY, f64::min);
        table.row([
            name.as_str().into(),
            Cell::Count(runs.len() as u64),
            Cell::Number(mean(|run| run.offered), 1),
            Cell::Number(mean(|run| run.load), 1),
            Cell::Number(least, 1),
            counters.admitted.into(),
            counters.refused.into(),
            counters.reads.into(),
            counters.late.into(),
        ]);
    }
    let load = |(name, runs): &(String, Vec<LongRunResult>)| Series {
        name: name.clone(),
        shape: LineShape::Line,
        points: load_by_time(runs),
    };
    let figure = Figure {
        name: "load",
        plot: Plot {
            title: "Load over time".into(),
            x_label: "minutes".into(),
            y_label: "time in which bytes were transferred, %".into(),
            series: rows.iter().map(load).collect(),
        },
        explanation:
            "Mean of the runs for each half minute. The rest of the time goes to seeks and \
                      rotational delays, and to the reserve that admission keeps."
                .into(),
    };
    let memory = units::ByteCount(memory);
    Report {
        source,
        method: format!(
            "45 minutes with {memory} of buffers; viewers request twice the disk's transfer rate. The \
             load is the part of the last 35 minutes in which bytes of admitted viewers were \
             transferred, computed per zone. 100 % would leave no time for seeks."
        ),
        tables: vec![table],
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
    /// In order of time.
    pub phases: Vec<RunPhase>,
}

/// What came of a disk that takes `times` as long for ten minutes.
pub fn slowdown_report(source: &'static str, times: f64, runs: &[SlowdownRun]) -> Report {
    let mut table = Table::new("slowing", "A disk that slows down, minute by minute", SLOWING);
    for run in runs {
        let guard = if run.guarded { "on" } else { "off" };
        for (name, from, until) in PHASES {
            let minutes = Duration::from_secs(60);
            let Some(phase) = together(&run.phases, minutes * *from, minutes * *until) else {
                continue;
            };
            let each = |count: u64| Cell::Number(count as f64 / f64::from(until - from), 1);
            table.row([
                run.name.as_str().into(),
                guard.into(),
                (*name).into(),
                Cell::Number(100.0 * phase.behind, 1),
                each(phase.counters.admitted),
                each(phase.counters.refused),
                Cell::Number(100.0 * phase.load, 1),
                phase.counters.reads.into(),
                phase.counters.late.into(),
            ]);
        }
    }
    Report {
        source,
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

fn slowing_figure(runs: &[SlowdownRun]) -> Figure {
    let minutes = |time: Duration| time.as_secs_f64() / 60.0;
    let mut series = Vec::new();
    for run in runs {
        let line = |what: &str, of: &dyn Fn(&RunPhase) -> f64| Series {
            name: format!("{what}, guard {}", if run.guarded { "on" } else { "off" }),
            shape: LineShape::Step,
            points: run.phases.iter().map(|phase| (minutes(phase.from), of(phase))).collect(),
        };
        let late =
            |phase: &RunPhase| phase.counters.late as f64 / phase.counters.reads.max(1) as f64;
        series.push(line("late reads", &|phase| 100.0 * late(phase)));
        if run.guarded {
            series.push(line("charged more", &|phase| 100.0 * phase.behind));
            series.push(line("load", &|phase| 100.0 * phase.load));
        }
    }
    Figure {
        name: "guard",
        plot: Plot {
            title: "A disk that slows down from minute 10 to 20".into(),
            x_label: "minutes".into(),
            y_label: "%".into(),
            series,
        },
        explanation:
            "Load: share of time in which bytes were transferred, by the model. Charged more: \
                      percentage that admission adds to the cost of a read. Late: share of all reads."
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

const SLOWING: &[(&str, &str)] = &[
    ("policy", "policy"),
    ("guard", "guard"),
    ("phase", "when"),
    ("behind", ">charged more, %"),
    ("admitted", ">admitted a minute"),
    ("refused", ">refused"),
    ("load", ">load, %"),
    ("reads", ">reads"),
    ("late", ">late"),
];

const SLOWING_NOTE: &str = "Streams that were accepted before the disk slowed down are late in any \
                            case. The guard decides whether more streams are accepted.";

const LONG_RUN: &[(&str, &str)] = &[
    ("policy", "policy"),
    ("runs", ">runs"),
    ("offered", ">offered"),
    ("load", ">accepted"),
    ("least", ">least of a run"),
    ("admitted", ">admitted"),
    ("refused", ">refused"),
    ("reads", ">reads"),
    ("late", ">late"),
];

const STRESS: &[(&str, &str)] = &[
    ("policy", "policy"),
    ("runs", ">runs"),
    ("worst", ">worst rotation"),
    ("admitted", ">admitted"),
    ("refused", ">refused"),
    ("reads", ">reads"),
    ("late", ">late"),
    ("latest_ms", ">by at most, ms"),
    ("broken", ">broken runs"),
    ("broken_worst", ">of worst rotation"),
];

const STRESS_METHOD: &str = "Each run takes 15 minutes on one of the disks, with a viewer every 0.3 to \
     30 s, 16 MB to 2 GB of buffers, a start-up of 0.5 to 3 s, and reads of at most 256 KiB to 2 MiB \
     (64 KiB where blocks are counted). Of ten events one is a viewer who leaves and one or two are \
     seeks. In two runs of five every rotational delay is a whole revolution. A late read is one that \
     an admitted viewer, still present, gets after its deadline.";
