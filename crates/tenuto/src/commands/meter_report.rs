//! `meter report`: what a run's log says, whatever was said while it ran.

use crate::cli::Args;
use crate::commands::meter_plots::{number, plot};
use crate::commands::meter_streams::time;
use crate::failure::{Code, Failure};
use crate::out::{self, facts};
use meter::log::{FILE, Kind, Recount, read, recount};
use meter::report::{Block, Page, Plot, Series, Shape};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::Duration;
use units::ByteCount;

/// Frames by which two counts of the same run may differ.
const ONE_FRAME: u64 = 1;

pub(crate) fn report(args: &Args<'_>) -> Result<(), Failure> {
    let dir: PathBuf = args.get("DIR");
    let log = read(&dir)?;
    let lost = log.about("lost").and_then(|lost| lost.parse::<u64>().ok()).unwrap_or(0);
    let counted = recount(log)?;
    let said = said(&dir)?;
    let agrees = said.as_ref().map(|said| agree(said, &counted, lost));
    let page = page(&dir, &counted, lost, agrees)?;
    let path = dir.join("recount.html");
    std::fs::write(&path, page.html())
        .map_err(|error| Failure::new(format!("cannot write {}: {error}", path.display())))?;
    if args.has("json") {
        out::print_json(&object(&counted, lost, agrees));
    } else {
        out::print(&facts(&lines(&counted, lost, agrees)));
    }
    out::note(&format!("wrote {}", path.display()));
    if agrees == Some(false) {
        return Err(Failure::new("summary.json says something else than the log")
            .hint(format!("was {FILE} or summary.json of this directory changed?"))
            .code(Code::Invalid));
    }
    Ok(())
}

/// The summary, if the run came so far.
fn said(dir: &Path) -> Result<Option<Value>, Failure> {
    let path = dir.join("summary.json");
    let Ok(text) = std::fs::read_to_string(&path) else { return Ok(None) };
    let value = serde_json::from_str(&text)
        .map_err(|error| Failure::new(format!("{} is no summary: {error}", path.display())))?;
    Ok(Some(value))
}

/// Whether it counts the same, but for what the log lost. Of transfers: bytes.
fn agree(said: &Value, counted: &Recount, lost: u64) -> bool {
    let near = |name: &str, count: u64| {
        said[name].as_u64().is_none_or(|said| said.abs_diff(count) <= ONE_FRAME + lost)
    };
    let failed = said["rows"].is_array() || near("failed", counted.failed);
    failed
        && near("frames", counted.frames)
        && near("late", counted.late)
        && near("late_by_meter", counted.late_by_meter)
}

fn lines(counted: &Recount, lost: u64, agrees: Option<bool>) -> Vec<(&'static str, String)> {
    let moved = |kind| ByteCount(counted.bytes.get(&kind).copied().unwrap_or(0));
    let frames = match counted.frames {
        0 => "none: nothing had a deadline".to_owned(),
        frames => format!(
            "{frames}, {} late, of these {} by no more than the meter was",
            counted.late, counted.late_by_meter
        ),
    };
    let mut lines = vec![
        ("operations", counted.records.to_string()),
        ("frames", frames),
        ("failed", counted.failed.to_string()),
        ("never came", counted.never.to_string()),
        ("moved", format!("{} read, {} written", moved(Kind::Read), moved(Kind::Write))),
        ("longest response", time(Duration::from_nanos(counted.longest_response))),
    ];
    if lost > 0 {
        lines.push(("not in the log", format!("{lost} operations")));
    }
    lines.push((
        "summary",
        match agrees {
            Some(true) => "says the same".to_owned(),
            Some(false) => "says something else".to_owned(),
            None => "there is none: the run did not come to its end".to_owned(),
        },
    ));
    lines
}

fn object(counted: &Recount, lost: u64, agrees: Option<bool>) -> Value {
    let seconds = counted.late_by_second.iter().map(|(second, late)| json!([second, late]));
    json!({
        "operations": counted.records,
        "frames": counted.frames,
        "late": counted.late,
        "late_by_meter": counted.late_by_meter,
        "failed": counted.failed,
        "never_came": counted.never,
        "bytes_read": counted.bytes.get(&Kind::Read).copied().unwrap_or(0),
        "bytes_written": counted.bytes.get(&Kind::Write).copied().unwrap_or(0),
        "longest_response": Duration::from_nanos(counted.longest_response).as_secs_f64(),
        "late_by_second": seconds.collect::<Vec<_>>(),
        "lost": lost,
        "summary_agrees": agrees,
    })
}

fn page(dir: &Path, counted: &Recount, lost: u64, agrees: Option<bool>) -> Result<Page, Failure> {
    let rows = lines(counted, lost, agrees).into_iter().map(|(name, text)| vec![name.into(), text]);
    let last = counted.late_by_second.keys().next_back().copied().unwrap_or(0);
    let late = |second: u64| counted.late_by_second.get(&second).copied().unwrap_or(0);
    let points = (0..=last).map(|second| (number(second), number(late(second)))).collect();
    let seconds = Plot {
        title: "Late frames by second".into(),
        x_label: "seconds since the start".into(),
        y_label: "frames".into(),
        series: vec![Series { name: "late".into(), shape: Shape::Area, points }],
    };
    let why = "By when they had to be there. Counted from the log of operations, by nothing of what \
               judged them while the run was on.";
    Ok(Page {
        title: format!("The log of {}", dir.display()),
        summary: format!("{} operations, counted again.", counted.records),
        blocks: vec![
            Block::Table { head: vec!["what".into(), "counted".into()], rows: rows.collect() },
            plot(&seconds, why)?,
        ],
    })
}
