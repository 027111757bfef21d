//! What transfers gave, for people: on the terminal and in the report.

use super::meter_plots::{heat, number, plot};
use super::meter_streams::time;
use super::meter_transfers::{Asked, words};
use crate::failure::Failure;
use crate::out::{Table, facts};
use meter::report::{Block, Page, Plot, Series, Shape};
use meter::transfers::{Outcome, Row};
use std::collections::{BTreeMap, BTreeSet};
use units::ByteCount;

const HEAD: [&str; 9] = [
    "operation",
    "block",
    "transfers",
    "rate",
    "mean of rates",
    "mean latency",
    "longest",
    "99 % of blocks",
    "msMeter's filling",
];

pub(super) fn text(asked: &Asked, outcome: &Outcome) -> String {
    let filled = asked.plan.mix.ms_meter;
    let shown = if filled { HEAD.len() } else { HEAD.len() - 1 };
    let right = [
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
    let mut table = Table::new(&right[..shown]);
    for cells in rows(outcome) {
        table.row(cells[..shown].to_vec());
    }
    format!("{}\n{}", table.show(), facts(&about(asked, outcome)))
}

fn about(asked: &Asked, outcome: &Outcome) -> Vec<(&'static str, String)> {
    let all = outcome.sum(|_| true);
    let share = |part: u64| 100.0 * number(part) / number(all.transfers.max(1));
    let written = outcome.sum(|key| key.kind == meter::log::Kind::Write).transfers;
    let random = outcome.sum(|key| key.random).transfers;
    let mut lines = vec![
        ("clients", format!("{} of {}", asked.plan.clients, asked.profile.name)),
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
    if outcome.failed > 0 {
        lines.push(("failed", format!("{} transfers", outcome.failed)));
    }
    lines
}

/// By operation and block size; then by operation.
fn rows(outcome: &Outcome) -> Vec<Vec<String>> {
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

/// All block sizes together.
pub(super) fn by_operation(outcome: &Outcome) -> BTreeMap<String, Row> {
    let mut sums: BTreeMap<String, Row> = BTreeMap::new();
    for (key, row) in &outcome.rows {
        sums.entry(words(key)).or_default().add(row);
    }
    sums
}

fn cells(name: String, block: String, row: &Row) -> Vec<String> {
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

pub(super) fn report(asked: &Asked, outcome: &Outcome) -> Result<Page, Failure> {
    let about = about(asked, outcome).into_iter().map(|(name, text)| vec![name.to_owned(), text]);
    let mut blocks = vec![
        Block::Table { head: vec!["what".into(), "found".into()], rows: about.collect() },
        Block::Heading("By operation and block size".into()),
        Block::Table { head: HEAD.map(str::to_owned).into(), rows: rows(outcome) },
    ];
    let rate = |row: &Row| number(row.rate().0) / 8e6;
    let latency = |row: &Row| row.mean_latency().as_secs_f64() * 1e3;
    blocks.push(plot(
        &against_block(outcome, "Rate by block size", "MB/s", rate),
        "Larger blocks pay the way to them less often. A line that falls is storage that cuts large \
         blocks.",
    )?);
    blocks.push(plot(
        &against_block(outcome, "Mean latency by block size", "ms", latency),
        "All time of a transfer that is not in a block: opening and closing its file, and what lies \
         between blocks.",
    )?);
    let seconds = || (0u32..).map(f64::from).zip(&outcome.seconds);
    let series = |name: &str, of: fn(&meter::transfers::PerSecond) -> u64| Series {
        name: name.to_owned(),
        shape: Shape::Area,
        points: seconds().map(|(at, second)| (at, number(of(second)) / 1e6)).collect(),
    };
    let each = Plot {
        title: "Moved in each second".into(),
        x_label: "seconds since the start".into(),
        y_label: "MB".into(),
        series: vec![series("read", |s| s.read.0), series("written", |s| s.written.0)],
    };
    blocks
        .push(plot(&each, "All clients together. A cache that fills or warms shows as a slope.")?);
    blocks.push(heat(&outcome.heat, "Blocks over time", None)?);
    Ok(Page {
        title: format!("{} on {}", asked.profile.name, asked.spot.target),
        summary: format!(
            "{}: {} clients, {}.",
            asked.profile.title,
            asked.plan.clients,
            outcome.total_rate()
        ),
        blocks,
    })
}

fn against_block(outcome: &Outcome, title: &str, unit: &str, of: impl Fn(&Row) -> f64) -> Plot {
    let mut lines: BTreeMap<String, Vec<(f64, f64)>> = BTreeMap::new();
    let sizes: BTreeSet<u32> = outcome.rows.keys().map(|key| key.block).collect();
    for (key, row) in outcome.rows.iter().filter(|(_, row)| row.transfers > 0) {
        lines.entry(words(key)).or_default().push((f64::from(key.block) / 1024.0, of(row)));
    }
    let one = sizes.len() < 2;
    let shape = if one { Shape::Dots } else { Shape::Line };
    let series = lines.into_iter().map(|(name, points)| Series { name, shape, points });
    Plot {
        title: title.to_owned(),
        x_label: "block size in KiB".into(),
        y_label: unit.to_owned(),
        series: series.collect(),
    }
}
