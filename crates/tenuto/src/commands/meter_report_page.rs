//! The page of `meter report`: the plots of a run from its log alone, and of several runs side by side.

use super::meter_plots::{heat, number, plot, plots};
use super::meter_record::Demand;
use super::meter_report::{Counted, HEAD, lines, row};
use crate::failure::Failure;
use meter::log::{FILE, Recount};
use meter::report::{Block, Page, Plot, Series, Shape};
use meter::streams::Outcome;
use std::path::Path;
use units::BitRate;

pub(super) fn page(dir: &Path, runs: &[Counted]) -> Result<Page, Failure> {
    let operations: u64 = runs.iter().map(|run| run.counted.records).sum();
    let mut blocks = vec![Block::Text(format!(
        "Everything here is made from {FILE} alone, by nothing of what judged the operations while they \
         were made."
    ))];
    match runs {
        [run] if run.name.is_empty() => blocks.extend(one(run)?),
        runs => blocks.extend(several(runs)?),
    }
    Ok(Page {
        title: format!("The log of {}", dir.display()),
        summary: format!("{operations} operations, counted again."),
        blocks,
    })
}

fn one(run: &Counted) -> Result<Vec<Block>, Failure> {
    let rows = lines(run).into_iter().map(|(name, text)| vec![name.into(), text]);
    let mut blocks =
        vec![Block::Table { head: vec!["what".into(), "counted".into()], rows: rows.collect() }];
    blocks.extend(over_time(run)?);
    Ok(blocks)
}

fn several(runs: &[Counted]) -> Result<Vec<Block>, Failure> {
    let head = HEAD.map(|name| name.trim_start_matches('>').to_owned()).into();
    let mut blocks = vec![
        Block::Table { head, rows: runs.iter().map(row).collect() },
        plot(
            &by_streams(runs, "What came, by number of streams", "Mb/s", |outcome| {
                number(BitRate::of(outcome.bytes(), outcome.took).0) / 1e6
            }),
            "Each dot is a run. Where the dots no longer rise, the storage is at its end.",
        )?,
        plot(
            &by_streams(runs, "Responses, by number of streams", "milliseconds", |outcome| {
                outcome.response.quantile(0.99).as_secs_f64() * 1e3
            }),
            "Within so long 99 of 100 operations were over. Where it rises, they wait for each other.",
        )?,
    ];
    let storage = |run: &&Counted| run.counted.late > run.counted.late_by_meter;
    let streams = |run: &&Counted| run.outcome.streams.len();
    let failing = runs.iter().filter(storage).min_by_key(streams);
    let last = runs.last().filter(|last| failing.is_none_or(|first| first.name != last.name));
    for (run, what) in [(failing, "the fewest streams of which some were late"), (last, "the last")]
    {
        if let Some(run) = run {
            blocks.push(Block::Heading(format!("{}: {what}", run.name)));
            blocks.extend(over_time(run)?);
        }
    }
    Ok(blocks)
}

fn over_time(run: &Counted) -> Result<Vec<Block>, Failure> {
    let outcome = &run.outcome;
    if outcome.reads.operations + outcome.writes.operations == 0 {
        return Ok(vec![Block::Text("No operation came to an end.".to_owned())]);
    }
    let Some(allowed) = run.allowed else {
        return Ok(vec![heat(&outcome.heat, "Blocks over time", None)?]);
    };
    let mut blocks = vec![plot(&late_by_second(&run.counted), WHY)?];
    blocks.extend(plots(outcome, Some(Demand { allowed, rate: BitRate(0) }))?);
    Ok(blocks)
}

const WHY: &str = "By when they had to be there.";

fn late_by_second(counted: &Recount) -> Plot {
    let last = counted.late_by_second.keys().next_back().copied().unwrap_or(0).min(MONTH);
    let late = |second: u64| counted.late_by_second.get(&second).copied().unwrap_or(0);
    let points = (0..=last).map(|second| (number(second), number(late(second)))).collect();
    Plot {
        title: "Late frames by second".into(),
        x_label: "seconds since the start".into(),
        y_label: "frames".into(),
        series: vec![Series { name: "late".into(), shape: Shape::Area, points }],
    }
}

/// In seconds: no log that is sound has later ones.
const MONTH: u64 = 31 * 86_400;

fn by_streams(runs: &[Counted], title: &str, unit: &str, of: fn(&Outcome) -> f64) -> Plot {
    let point = |run: &Counted| {
        let outcome = &run.outcome;
        (number(outcome.streams.len() as u64), of(outcome))
    };
    let series = Series {
        name: "runs".into(),
        shape: Shape::Dots,
        points: runs.iter().map(point).collect(),
    };
    Plot {
        title: title.to_owned(),
        x_label: "streams".into(),
        y_label: unit.to_owned(),
        series: vec![series],
    }
}
