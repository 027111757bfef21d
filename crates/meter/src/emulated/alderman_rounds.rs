//! Alderman and Diallo's four charts on the emulated disk: how long each round takes, at the most
//! streams whose mean round is in time, raw and through file systems.

use super::alderman_table1::said;
use super::bench::{Bench, Filled, Way};
use super::{EmulatedError, EmulatedOptions, ways};
use crate::report::{Cell, Figure, Plot, Report, Series, Shape, Table};
use crate::rounds::{Outcome, Spread};

/// A search, and a whole run, for each system.
pub(super) fn ways(options: &EmulatedOptions) -> u32 {
    u32::try_from(options.systems.len()).expect("a few")
}

pub(super) fn run(bench: &mut Bench<'_>) -> Result<Report, EmulatedError> {
    let mut table = Table::new(
        "rounds",
        "Most streams whose mean round is below 5.33 s, and the rounds' seconds then",
        &[
            ("system", "system"),
            ("solaris", ">Solaris"),
            ("freebsd", ">FreeBSD"),
            ("emulated", ">emulated"),
            ("late", ">late rounds"),
            ("mean_s", ">mean"),
            ("sd_s", ">sd"),
            ("min_s", ">min"),
            ("max_s", ">max"),
        ],
    );
    let mut figures = Vec::new();
    let mut one = |bench: &mut Bench<'_>,
                   name: &'static str,
                   way: &Way,
                   paper: [Option<u64>; 2],
                   filled: Option<&mut Filled>|
     -> Result<(), EmulatedError> {
        let outcome = at_the_mean(bench, way, filled)?;
        let Spread { mean, sd, min, max } = outcome.round_times();
        let [mean, sd, min, max] = [mean, sd, min, max].map(|time| Cell::Number(time, 2));
        let [solaris, freebsd] = paper.map(Cell::from);
        let count = |n: usize| Cell::from(n as u64);
        let streams = outcome.streams.len();
        let (held, late) = (count(streams), count(outcome.late_rounds()));
        table.row([name.into(), solaris, freebsd, held, late, mean, sd, min, max]);
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
    let mut notes = said(bench);
    notes.push(
        "In the paper the first round through a file system is the longest and the last the \
         shortest; it takes that for reading ahead. The charts show what file systems of today do."
            .to_owned(),
    );
    Ok(Report {
        source: "Alderman and Diallo, Optimizing Disk Performance for a Multimedia Storage \
                 Server, the four charts of section 6",
        method: format!(
            "{} rounds of streams of 1.5 Mb/s, blocks of 1 MB read one by one, on an emulated \
             ST39183W and on file systems on it, {} times as fast as the disk; all figures in the \
             disk's time.",
            bench.options.rounds, bench.options.speed
        ),
        tables: vec![table],
        notes,
        figures,
    })
}

/// The run with the most streams whose mean round is in time.
fn at_the_mean(
    bench: &mut Bench<'_>,
    way: &Way,
    mut filled: Option<&mut Filled>,
) -> Result<Outcome, EmulatedError> {
    let found = bench.most(way, filled.as_deref_mut(), ABOUT, Outcome::holds_in_the_mean)?;
    bench.rounds(way, filled, found.most.max(1), false)
}

fn chart(name: &'static str, outcome: &Outcome) -> Figure {
    let streams = outcome.streams.len();
    let times = outcome.rounds.iter().map(|round| round.took.as_secs_f64());
    let points = (1..).map(f64::from).zip(times).collect();
    let plot = Plot {
        title: format!("{name}: {streams} streams"),
        x_label: "round".to_owned(),
        y_label: "seconds".to_owned(),
        series: vec![
            Series { name: "round".to_owned(), shape: Shape::Line, points },
            Series {
                name: "deadline".to_owned(),
                shape: Shape::Limit,
                points: vec![(0.0, outcome.deadline.as_secs_f64())],
            },
        ],
    };
    let explanation = format!("{name}, read one by one: {streams} streams, blocks of 1 MB.");
    Figure { name, plot, explanation }
}

/// Where the searches begin.
const ABOUT: u32 = 61;
