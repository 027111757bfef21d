//! What came of runs under stress, in the long run, and on a disk that slows down.

use super::super::long_run::Sold;
use super::super::slowing::{ENDS, Phase, RECOVERS, SLOWS, together};
use super::super::station::Tally;
use super::super::stress::Strain;
use crate::reproduce::{Cell, Figure, Report, Table};
use meter::report::{Plot, Series, Shape};
use std::time::Duration;

/// What came of a stress: for each policy, its runs.
pub fn stress_report(source: &'static str, rows: &[(String, Vec<Strain>)]) -> Report {
    let mut table = Table::new("stress", "Under stress", STRESS);
    for (name, runs) in rows {
        let mut strain = Strain::default();
        runs.iter().for_each(|run| strain += *run);
        let tally = strain.tally;
        table.row([
            name.as_str().into(),
            strain.runs.into(),
            strain.worst.into(),
            tally.admitted.into(),
            tally.refused.into(),
            tally.reads.into(),
            tally.late.into(),
            Cell::Number(tally.latest.as_secs_f64() * 1e3, 1),
            strain.broken.into(),
            strain.broken_worst.into(),
        ]);
    }
    let late = |(name, runs): &(String, Vec<Strain>)| {
        let (mut reads, mut late, mut points) = (0, 0, vec![(0.0, 0.0)]);
        for run in runs {
            (reads, late) = (reads + run.tally.reads, late + run.tally.late);
            points.push((reads as f64 / 1e6, late as f64));
        }
        Series { name: name.clone(), shape: Shape::Line, points }
    };
    let figure = Figure {
        name: "late",
        plot: Plot {
            title: "Late reads of viewers who were let in".into(),
            x_label: "reads made, millions".into(),
            y_label: "of those late, so far".into(),
            series: rows.iter().map(late).collect(),
        },
        explanation:
            "Each line is a policy's runs one after another, each with its own load, memory \
                      and platter. A guarantee is a line that stays at zero."
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
pub fn long_run_report(source: &'static str, memory: u64, rows: &[(String, Vec<Sold>)]) -> Report {
    let mut table = Table::new("long_run", "Sold in the long run, % of the media rate", LONG_RUN);
    for (name, runs) in rows {
        let mut tally = Tally::default();
        runs.iter().for_each(|run| tally += run.tally);
        let mean = |of: fn(&Sold) -> f64| {
            100.0 * runs.iter().map(of).sum::<f64>() / runs.len().max(1) as f64
        };
        let least = runs.iter().map(|run| 100.0 * run.load).fold(f64::INFINITY, f64::min);
        table.row([
            name.as_str().into(),
            Cell::Count(runs.len() as u64),
            Cell::Number(mean(|run| run.offered), 1),
            Cell::Number(mean(|run| run.load), 1),
            Cell::Number(least, 1),
            tally.admitted.into(),
            tally.refused.into(),
            tally.reads.into(),
            tally.late.into(),
        ]);
    }
    let load = |(name, runs): &(String, Vec<Sold>)| Series {
        name: name.clone(),
        shape: Shape::Line,
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
            "The mean of the runs, for each half minute. What is missing to 100 % goes to \
                      the arm and the platter, and to what admission keeps back."
                .into(),
    };
    let memory = units::ByteCount(memory);
    Report {
        source,
        method: format!(
            "45 minutes with {memory} of buffers, viewers who ask for twice what the disk could \
             transfer. The load is the part of the last 35 minutes in which bytes of admitted \
             viewers passed the head, exact to the zone: 100 % would leave no time for the arm."
        ),
        tables: vec![table],
        notes: Vec::new(),
        figures: vec![figure],
    }
}

fn load_by_time(runs: &[Sold]) -> Vec<(f64, f64)> {
    let steps = runs.iter().map(|run| run.by_time.len()).min().unwrap_or(0);
    let point = |step: usize| {
        let load = runs.iter().map(|run| run.by_time[step]).sum::<f64>() / runs.len() as f64;
        ((step as f64 + 0.5) / 2.0, 100.0 * load)
    };
    (0..steps).map(point).collect()
}

/// One policy on a disk that slows down: the same run with the guard, and without.
#[derive(Clone, Debug)]
pub struct Slowed {
    /// The policy.
    pub name: String,
    /// Whether there was a guard.
    pub guarded: bool,
    /// In order of time.
    pub phases: Vec<Phase>,
}

/// What came of a disk that takes `times` as long for ten minutes.
pub fn slowing_report(source: &'static str, times: f64, runs: &[Slowed]) -> Report {
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
                each(phase.tally.admitted),
                each(phase.tally.refused),
                Cell::Number(100.0 * phase.load, 1),
                phase.tally.reads.into(),
                phase.tally.late.into(),
            ]);
        }
    }
    Report {
        source,
        method: format!(
            "The smaller disk unless another is named, 125 MiB of buffers unless said otherwise, viewers \
             who ask for twice what the disk could transfer. From minute {} to minute {} of {} each \
             read takes {times} times what the model says. Charged more: by how much admission \
             stretches what reads cost at the end of that time, in percent.",
            SLOWS.as_secs() / 60,
            RECOVERS.as_secs() / 60,
            ENDS.as_secs() / 60,
        ),
        tables: vec![table],
        notes: vec![SLOWING_NOTE.into()],
        figures: vec![slowing_figure(runs)],
    }
}

fn slowing_figure(runs: &[Slowed]) -> Figure {
    let minutes = |time: Duration| time.as_secs_f64() / 60.0;
    let mut series = Vec::new();
    for run in runs {
        let line = |what: &str, of: &dyn Fn(&Phase) -> f64| Series {
            name: format!("{what}, guard {}", if run.guarded { "on" } else { "off" }),
            shape: Shape::Step,
            points: run.phases.iter().map(|phase| (minutes(phase.from), of(phase))).collect(),
        };
        let late = |phase: &Phase| phase.tally.late as f64 / phase.tally.reads.max(1) as f64;
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
            "Load: time in which bytes were transferred, as modelled. Charged more: by how \
                      much admission stretches what reads cost. Late: of the reads made."
                .into(),
    }
}

/// Minutes of a run that slows down.
const PHASES: &[(&str, u32, u32)] = &[
    ("before, minutes 5 to 10", 5, 10),
    ("slow, the first minute", 10, 11),
    ("slow, minutes 11 to 15", 11, 15),
    ("slow, minutes 15 to 20", 15, 20),
    ("itself again, the first minute", 20, 21),
    ("minutes 21 to 25", 21, 25),
    ("minutes 25 to 30", 25, 30),
    ("minutes 30 to 40", 30, 40),
];

const SLOWING: &[(&str, &str)] = &[
    ("policy", "policy"),
    ("guard", "guard"),
    ("phase", "when"),
    ("behind", ">charged more, %"),
    ("admitted", ">let in a minute"),
    ("refused", ">refused"),
    ("load", ">load, %"),
    ("reads", ">reads"),
    ("late", ">late"),
];

const SLOWING_NOTE: &str = "Nothing helps those who came in before it slowed: the disk cannot do what it \
                            promised to them. What the guard decides is whether more come in.";

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

const STRESS_METHOD: &str = "Each run: a quarter of an hour on one of the disks, a viewer every 0.3 to \
     30 s, 16 MB to 2 GB of buffers, a start-up of 0.5 to 3 s, reads of up to 256 KiB to 2 MiB (64 KiB \
     where blocks are counted); of ten events one is a viewer who leaves and one or two are viewers \
     who jump; in two runs of five every rotation is a whole one. A late read is one of a viewer who \
     was let in and is still there, done after its deadline.";
