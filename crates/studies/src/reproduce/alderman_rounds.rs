//! Alderman and Diallo's four charts: how long each of a hundred rounds takes, at the most streams
//! whose mean round is below the deadline.
//!
//! Theirs compare file systems with raw disks on two systems. Ours compare the ways of reading a
//! raw disk, and Tenuto's scheduler.

use super::alderman::{MB, Way, most, rounds, their_disk, their_plan};
use super::scheduled::scheduled;
use super::{Report, Table, texts};
use meter::report::{NamedCell, cell, rounds_chart, spread_cells};
use meter::rounds::{RoundsOutcome, Spread};
use std::time::Duration;
use units::ByteCount;

pub(super) fn run(progress: &mut dyn FnMut(f64)) -> Report {
    let model = their_disk();
    let heading = "Most streams whose mean round is below 5.33 s, and the rounds' seconds then";
    let mut table = Table::new("rounds", heading);
    let mut figures = Vec::new();
    let mut scan_streams = 0;
    for (number, (name, file, paper, way)) in CHARTS.into_iter().enumerate() {
        let streams = most(&model, way, MB, RoundsOutcome::holds_in_the_mean).most;
        let outcome = rounds(&model, way, their_plan(&model, streams, MB));
        let times = outcome.rounds.iter().map(|round| round.took.as_secs_f64());
        table.add(row(name, paper, streams, outcome.round_times()));
        let explanation = format!("{name}: {streams} streams, raw disk, blocks of 1 MB.");
        let title = title(name, streams);
        figures.push(rounds_chart(file, title, times, outcome.deadline, explanation));
        if way == Way::Scan {
            scan_streams = streams;
        }
        progress((number + 1) as f64 / (CHARTS.len() + 1) as f64);
    }
    // One stream fewer than SCAN holds in the mean: with as many, a round would leave no time for
    // reading ahead.
    let plan = their_plan(&model, scan_streams - 1, MB);
    let ours = scheduled(&model, &plan, 3);
    let spread = Spread::of(ours.ends.iter().map(|end| Duration::from_secs_f64(*end)));
    let name = "Tenuto's scheduler";
    table.add(row(name, None, scan_streams - 1, spread));
    figures.push(rounds_chart(
        "tenuto",
        title(name, scan_streams - 1),
        ours.ends,
        plan.round(),
        "Time from the beginning of a round until its last block is in memory. The scheduler reads \
         ahead when there is time, so that rounds end earlier and earlier, until its memory (three \
         blocks per stream) is full. Zero: all blocks were in memory before the round began."
            .to_owned(),
    ));
    texts::report("alderman-rounds", vec![table], figures)
}

/// Method, file, the paper's number by this rule, way.
const CHARTS: [(&str, &str, Option<u64>, Way); 4] = [
    ("read, SCAN order", "scan", Some(63), Way::Scan),
    ("read, random order", "random", None, Way::Arrival),
    ("aio, pieces of 100 KB", "aio", None, Way::AtOnce(ByteCount(100_000))),
    ("threads, pieces of 144 KB", "threads", None, Way::Threads(ByteCount(144_000))),
];

fn row(name: &str, paper: Option<u64>, streams: u32, spread: Spread) -> Vec<NamedCell> {
    let mut cells = vec![
        cell("method", "method", name),
        cell("paper", ">paper", paper),
        cell("ours", ">ours", streams),
    ];
    cells.extend(spread_cells(spread));
    cells
}

fn title(name: &str, streams: u32) -> String {
    format!("{name}: {streams} streams")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_charts_and_ours_in_the_papers_terms() {
        let report = run(&mut |_| {});
        let scan = report.tables[0].cell("read, SCAN order", "ours").unwrap().to_string();
        assert!(["62", "63", "64"].contains(&&*scan), "63 in the paper: {scan}");
        assert_eq!(report.figures.len(), 5);
        for figure in &report.figures {
            assert_eq!(figure.plot.series[0].points.len(), 100, "{}", figure.name);
            assert!(figure.plot.svg().unwrap().contains("deadline"));
        }
    }
}
