//! Alderman and Diallo's four charts on the emulated disk: the time of each round at the largest
//! number of streams whose mean round is in time, raw and through file systems.

use super::bench::{Bench, MostStreams, RoundRule};
use super::filled::Filled;
use super::ways::{self, Way};
use super::{Cost, EmulatedOptions, EmulatedResult, lateness, papers};
use crate::error::MeterError;
use crate::report::{Figure, Report, Table, cell, rounds_chart, spread_cells};
use crate::rounds::RoundsOutcome;

/// The cost of one search for each system.
pub(super) fn cost(options: &EmulatedOptions) -> Cost {
    let systems = u32::try_from(options.systems.len()).expect("a few");
    // The counts that hold and one that does not, each to the end.
    Cost { ways: systems, rounds: systems * options.rounds * 5 / 2, sequential: 0 }
}

pub(super) fn run(bench: &mut Bench<'_>) -> Result<EmulatedResult, MeterError> {
    let title = "Most streams whose mean round is in time, and the rounds' seconds then";
    let (mut table, mut figures) = (Table::new("rounds", title), Vec::new());
    let done = fill(bench, &mut table, &mut figures);
    let report = Report {
        source: "Alderman and Diallo, Optimizing Disk Performance for a Multimedia Storage \
                 Server, the four charts of section 6"
            .to_owned(),
        method: format!(
            "{} rounds of streams of 1.5 Mb/s, blocks of {} read one by one, on an emulated \
             ST39183W and on file systems on it, {} times as fast as the disk; all figures in the \
             disk's time.",
            bench.options.rounds,
            super::decimal(bench.options.block),
            bench.options.speed
        ),
        tables: vec![table],
        notes: lateness(bench),
        figures,
    };
    let mut made = EmulatedResult::of(bench, report, done)?;
    made.report.notes.push(
        "In the paper the first round through a file system is the longest and the last the \
         shortest; it takes that for reading ahead. The charts show what file systems of today do."
            .to_owned(),
    );
    Ok(made)
}

fn fill(
    bench: &mut Bench<'_>,
    table: &mut Table,
    figures: &mut Vec<Figure>,
) -> Result<(), MeterError> {
    let mut one = |bench: &mut Bench<'_>,
                   name: &'static str,
                   way: &Way,
                   paper: [Option<u64>; 2],
                   filled: Option<&mut Filled>|
     -> Result<(), MeterError> {
        let MostStreams { capacity, disk } = bench.most(way, filled, RoundRule::Mean)?;
        // Where not even one stream is in time, the failing attempt shows by how much.
        let outcome = capacity.held.unwrap_or(capacity.failing);
        let [solaris, freebsd] = papers(bench.options, paper);
        let streams = [
            cell("system", "system", name),
            cell("solaris", ">Solaris", solaris),
            cell("freebsd", ">FreeBSD", freebsd),
            cell("emulated", ">emulated", capacity.most),
            cell("late", ">late rounds", outcome.late_rounds()),
        ];
        let late = cell("disk_late_p99_ms", ">late p99, ms", super::p99_ms(&disk));
        table.add(streams.into_iter().chain(spread_cells(outcome.round_times())).chain([late]));
        figures.push(chart(name, &outcome));
        Ok(())
    };
    if bench.options.has_raw() {
        one(bench, "raw", &ways::SCAN, [None, Some(63)], None)?;
    }
    for kind in bench.options.file_systems().collect::<Vec<_>>() {
        let mut filled = bench.fill(kind)?;
        one(bench, kind.name(), &ways::READ, [Some(36), Some(61)], Some(&mut filled))?;
    }
    Ok(())
}

fn chart(name: &'static str, outcome: &RoundsOutcome) -> Figure {
    let title = format!("{name}: {} streams", outcome.streams.len());
    let seconds = outcome.rounds.iter().map(|round| round.took.as_secs_f64());
    let explanation = format!("{title}, read one by one.");
    rounds_chart(name, title, seconds, outcome.deadline, explanation)
}
