//! The meter's search for a capacity, with the streams and verdicts of `meter capacity`, on
//! simulated storage of known capacity: how often it is right, and how often it states too much.

use super::{Cell, Report, Table, texts};
use meter::report::{NamedCell, cell};
use meter::{StorageKind, capacity_score};

/// Storages of each kind for each built-in profile.
const SEEDS: u32 = 20;

pub(super) fn run(progress: &mut dyn FnMut(f64)) -> Report {
    let kinds = StorageKind::NAMES;
    let rows = (0_u32..).zip(kinds).map(|(number, (name, kind))| {
        row(name, kind, SEEDS, &mut |share| {
            progress((f64::from(number) + share) / kinds.len() as f64);
        })
    });
    let table = Table::of("searches", "20 storages of each kind for each profile", rows);
    texts::report("meter-capacity", vec![table], Vec::new())
}

fn row(name: &str, kind: StorageKind, seeds: u32, progress: &mut dyn FnMut(f64)) -> [NamedCell; 7] {
    let score = capacity_score(kind, seeds, progress).expect("built-in profiles can be run");
    let runs = f64::from(score.runs) / f64::from(score.searches.max(1));
    [
        cell("storage", "storage", name),
        cell("searches", ">searches", score.searches),
        cell("right", ">right", score.right),
        cell("overstated", ">overstated", score.overstated),
        cell("above", ">above at all", score.above),
        cell("unconfirmed", ">not confirmed", score.unconfirmed),
        cell("runs_mean", ">runs, mean", Cell::Number(runs, 1)),
    ]
}
