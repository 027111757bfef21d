//! The page of a recount: the plots of a run from its log alone, and of several runs side by side.

use super::recount::{HEAD, RecountedRun, lines, row};
use crate::error::MeterError;
use crate::log::{FILE, Recount};
use crate::report::{Block, LineShape, Page, Plot, Series, StreamDemand, heat_block, run_plots};
use crate::streams::StreamsOutcome;
use std::path::Path;
use units::show::count;
use units::{BitRate, float};

pub(super) fn page(dir: &Path, runs: &[RecountedRun]) -> Result<Page, MeterError> {
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
        summary: format!("{}, counted again.", count(operations, "operation")),
        blocks,
    })
}

fn one(run: &RecountedRun) -> Result<Vec<Block>, MeterError> {
    let mut blocks = vec![Block::facts(["what", "counted"], lines(run))];
    blocks.extend(over_time(run)?);
    Ok(blocks)
}

fn several(runs: &[RecountedRun]) -> Result<Vec<Block>, MeterError> {
    let mut blocks = vec![
        Block::table(&HEAD, runs.iter().map(row).collect()),
        by_streams(runs, "What came, by number of streams", "Mb/s", |outcome| {
                float(BitRate::of(outcome.bytes(), outcome.took).0) / 1e6
            }).block("Each dot is a run. Where the dots no longer rise, the storage is at its end.")?,
        by_streams(runs, "Responses, by number of streams", "milliseconds", |outcome| {
                outcome.response.quantile(0.99).as_secs_f64() * 1e3
            }).block("Within so long 99 of 100 operations were over. Where it rises, they wait for each other.")?,
    ];
    let storage = |run: &&RecountedRun| run.counted.late > run.counted.late_by_meter;
    let streams = |run: &&RecountedRun| run.outcome.streams.len();
    let failing = runs.iter().filter(storage).min_by_key(streams);
    // The last run is usually the confirming one; it is not drawn twice.
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

fn over_time(run: &RecountedRun) -> Result<Vec<Block>, MeterError> {
    let outcome = &run.outcome;
    if outcome.reads.operations + outcome.writes.operations == 0 {
        return Ok(vec![Block::Text("No operation came to an end.".to_owned())]);
    }
    let Some(allowed) = run.allowed else {
        return Ok(vec![heat_block(&outcome.heat, "Blocks over time", outcome.took, None)?]);
    };
    let mut blocks = vec![late_by_second(&run.counted).block(WHY)?];
    blocks.extend(run_plots(outcome, Some(StreamDemand { allowed, rate: BitRate(0) }))?);
    Ok(blocks)
}

const WHY: &str = "By when they had to be there.";

fn late_by_second(counted: &Recount) -> Plot {
    // The keys come from a file; a damaged one must not draw years of seconds.
    let last = counted.late_by_second.keys().next_back().copied().unwrap_or(0).min(MONTH);
    let late = |second: u64| counted.late_by_second.get(&second).copied().unwrap_or(0);
    let points = (0..=last).map(|second| (float(second), float(late(second)))).collect();
    let series = vec![Series::new("late", LineShape::Area, points)];
    Plot::by_second("Late frames by second", "frames", series)
}

/// The longest run in seconds: no valid log has later records.
const MONTH: u64 = 31 * 86_400;

fn by_streams(
    runs: &[RecountedRun],
    title: &str,
    unit: &str,
    of: fn(&StreamsOutcome) -> f64,
) -> Plot {
    let point = |run: &RecountedRun| {
        let outcome = &run.outcome;
        (float(outcome.streams.len() as u64), of(outcome))
    };
    let series = Series::new("runs", LineShape::Dots, runs.iter().map(point).collect());
    Plot::new(title, "streams", unit, vec![series])
}
