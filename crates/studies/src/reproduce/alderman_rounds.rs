//! Alderman and Diallo's four charts: how long each of a hundred rounds takes, at the most streams
//! whose mean round is below the deadline.
//!
//! Theirs compare file systems with raw disks on two systems. Ours compare the ways of reading a
//! raw disk, and Tenuto's scheduler.

use super::alderman::{MB, Way, most, rounds, their_disk, their_plan};
use super::scheduled::scheduled;
use super::{Cell, Report, Table};
use meter::report::rounds_chart;
use meter::rounds::{RoundsOutcome, Spread};
use std::time::Duration;
use units::ByteCount;

pub(super) fn run(progress: &mut dyn FnMut(f64)) -> Report {
    let model = their_disk();
    let mut table = Table::new(
        "rounds",
        "Most streams whose mean round is below 5.33 s, and the rounds' seconds then",
        &[
            ("method", "method"),
            ("paper", ">paper"),
            ("ours", ">ours"),
            ("mean_s", ">mean"),
            ("sd_s", ">sd"),
            ("min_s", ">min"),
            ("max_s", ">max"),
        ],
    );
    let mut figures = Vec::new();
    let mut scan_streams = 0;
    for (number, (name, file, paper, way)) in CHARTS.into_iter().enumerate() {
        let streams = most(&model, way, MB, RoundsOutcome::holds_in_the_mean).most;
        let outcome = rounds(&model, way, their_plan(&model, streams, MB));
        let times = outcome.rounds.iter().map(|round| round.took.as_secs_f64());
        row(&mut table, name, paper, streams, outcome.round_times());
        let explanation = format!("{name}: {streams} streams, raw disk, blocks of 1 MB.");
        let title = title(name, streams);
        figures.push(rounds_chart(file, title, times, outcome.deadline, explanation));
        if way == Way::Scan {
            scan_streams = streams;
        }
        #[expect(clippy::cast_precision_loss, reason = "four steps")]
        progress((number + 1) as f64 / (CHARTS.len() + 1) as f64);
    }
    let plan = their_plan(&model, scan_streams - 1, MB);
    let ours = scheduled(&model, &plan, 3);
    let spread = Spread::of(ours.ends.iter().map(|end| Duration::from_secs_f64(*end)));
    let name = "Tenuto's scheduler";
    row(&mut table, name, None, scan_streams - 1, spread);
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
    Report {
        source: "Alderman and Diallo, Optimizing Disk Performance for a Multimedia Storage \
                 Server, the four charts of section 6",
        method: "100 rounds of streams of 1.5 Mb/s on a simulated ST39183W, as in \
                 alderman-table1."
            .to_owned(),
        tables: vec![table],
        notes: vec![
            "By this rule the paper has 36 streams through Solaris's file system and 61 through FreeBSD's, \
             whose rounds vary much more than those of the raw disk. Here the rounds vary where the \
             system orders and divides the reads."
                .to_owned(),
            "In the paper the first round through a file system is the longest and the last the shortest, \
             by read-ahead. The simulated raw disk has no read-ahead; its first round begins at the \
             disk's first byte."
                .to_owned(),
        ],
        figures,
    }
}

/// Method, file, the paper's number by this rule, way.
const CHARTS: [(&str, &str, Option<u64>, Way); 4] = [
    ("read, SCAN order", "scan", Some(63), Way::Scan),
    ("read, random order", "random", None, Way::Arrival),
    ("aio, pieces of 100 KB", "aio", None, Way::AtOnce(ByteCount(100_000))),
    ("threads, pieces of 144 KB", "threads", None, Way::Threads(ByteCount(144_000))),
];

fn row(table: &mut Table, name: &str, paper: Option<u64>, streams: u32, spread: Spread) {
    let Spread { mean, sd, min, max } = spread;
    let [mean, sd, min, max] = [mean, sd, min, max].map(|time| Cell::Number(time, 2));
    table.row([name.into(), paper.into(), u64::from(streams).into(), mean, sd, min, max]);
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
