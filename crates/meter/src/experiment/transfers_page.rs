//! The results of transfers for readers: on the terminal and in the report.

use super::transfers::{TransferRuns, words};
use crate::error::MeterError;
use crate::log::OperationKind;
use crate::report::{
    Block, LineShape, Page, Plot, Series, TextTable, facts, heat_block, quantiles, time,
};
use crate::transfers::{PerSecond, TransferRow, TransfersOutcome};
use std::collections::{BTreeMap, BTreeSet};
use units::show::count;
use units::{ByteCount, float};

const HEAD: [&str; 9] = [
    "operation",
    ">block",
    ">transfers",
    ">rate",
    ">mean of rates",
    ">mean latency",
    ">longest",
    ">99 % of blocks",
    ">msMeter's filling",
];

/// The report for a terminal.
pub(super) fn text(runs: &TransferRuns<'_>, outcome: &TransfersOutcome) -> String {
    let filled = runs.plan.mix.ms_meter;
    // The last column is zero unless msMeter is imitated.
    let shown = if filled { HEAD.len() } else { HEAD.len() - 1 };
    let rows = rows(outcome).into_iter().map(|mut cells| {
        cells.truncate(shown);
        cells
    });
    let table = TextTable::with_rows(&HEAD[..shown], rows.collect());
    format!("{}\n{}", table.show(), facts(&about(runs, outcome)))
}

fn about(runs: &TransferRuns<'_>, outcome: &TransfersOutcome) -> Vec<(&'static str, String)> {
    let all = outcome.sum(|_| true);
    let share = |part: u64| 100.0 * float(part) / float(all.transfers.max(1));
    let written = outcome.sum(|key| key.kind == OperationKind::Write).transfers;
    let random = outcome.sum(|key| key.random).transfers;
    let mut lines = vec![
        ("clients", format!("{} of {}", runs.plan.clients, runs.config.profile.name)),
        ("done by", outcome.method.clone()),
        ("moved", format!("{}, {} by all together", all.bytes, outcome.total_rate())),
        ("mix", format!("{:.1} % written, {:.1} % at random", share(written), share(random))),
        (
            "latency",
            format!(
                "{} in all, of it {} opening and closing files, {} the meter between blocks",
                time(all.latency),
                time(all.open),
                time(all.meter)
            ),
        ),
    ];
    if let Some(rate) = runs.plan.rate {
        lines.insert(3, ("asked", rate.to_string()));
        lines.push(("response", quantiles(&outcome.response)));
    }
    if outcome.failed > 0 {
        lines.push(("failed", count(outcome.failed, "transfer")));
    }
    lines
}

/// The rows by operation and block size, then by operation.
fn rows(outcome: &TransfersOutcome) -> Vec<Vec<String>> {
    let mut rows: Vec<Vec<String>> = outcome
        .rows
        .iter()
        .map(|(key, row)| cells(words(key), ByteCount(key.block.into()).to_string(), row))
        .collect();
    for (name, row) in by_operation(outcome) {
        rows.push(cells(name, "all".to_owned(), &row));
    }
    rows
}

/// The rows of each operation, summed over all block sizes.
pub(super) fn by_operation(outcome: &TransfersOutcome) -> BTreeMap<String, TransferRow> {
    let mut sums: BTreeMap<String, TransferRow> = BTreeMap::new();
    for (key, row) in &outcome.rows {
        sums.entry(words(key)).or_default().add(row);
    }
    sums
}

fn cells(name: String, block: String, row: &TransferRow) -> Vec<String> {
    vec![
        name,
        block,
        row.transfers.to_string(),
        row.rate().to_string(),
        row.mean_rate().to_string(),
        time(row.mean_latency()),
        time(row.longest_latency),
        time(row.service.quantile(0.99)),
        time(row.mean_fill()),
    ]
}

/// The report as a page.
pub(super) fn page(
    runs: &TransferRuns<'_>,
    outcome: &TransfersOutcome,
) -> Result<Page, MeterError> {
    let mut blocks = vec![
        Block::facts(["what", "found"], about(runs, outcome)),
        Block::Heading("By operation and block size".into()),
        Block::table(&HEAD, rows(outcome)),
    ];
    let rate = |row: &TransferRow| float(row.rate().0) / 8e6;
    let latency = |row: &TransferRow| row.mean_latency().as_secs_f64() * 1e3;
    blocks.push(against_block(outcome, "Rate by block size", "MB/s", rate).block("Larger blocks pay the way to them less often. A line that falls is storage that cuts large \
         blocks.")?);
    blocks.push(against_block(outcome, "Mean latency by block size", "ms", latency).block("All time of a transfer that is not in a block: opening and closing its file, and what lies \
         between blocks.")?);
    let seconds = || (0u32..).map(f64::from).zip(&outcome.seconds);
    let series = |name: &str, of: fn(&PerSecond) -> u64| Series {
        name: name.to_owned(),
        shape: LineShape::Area,
        points: seconds().map(|(at, second)| (at, float(of(second)) / 1e6)).collect(),
    };
    let moved = vec![series("read", |s| s.read.0), series("written", |s| s.written.0)];
    let each = Plot::by_second("Moved in each second", "MB", moved);
    blocks.push(each.block("All clients together. A cache that fills or warms shows as a slope.")?);
    blocks.push(heat_block(&outcome.heat, "Blocks over time", outcome.took, None)?);
    Ok(Page {
        title: format!("{} on {}", runs.config.profile.name, runs.config.target.target),
        summary: format!(
            "{}: {}, {}.",
            runs.config.profile.title,
            count(runs.plan.clients, "client"),
            outcome.total_rate()
        ),
        blocks,
    })
}

fn against_block(
    outcome: &TransfersOutcome,
    title: &str,
    unit: &str,
    of: impl Fn(&TransferRow) -> f64,
) -> Plot {
    let sizes: BTreeSet<u32> = outcome.rows.keys().map(|key| key.block).collect();
    let rows = outcome.rows.iter().filter(|(_, row)| row.transfers > 0);
    let points = rows.map(|(key, row)| (words(key), (f64::from(key.block) / 1024.0, of(row))));
    let shape = if sizes.len() < 2 { LineShape::Dots } else { LineShape::Line };
    Plot::new(title, "block size in KiB", unit, Series::by_name(shape, points))
}
