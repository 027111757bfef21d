//! The meter's comparison of two runs, on pairs whose true difference is known: its rates of false
//! positives and false negatives.

use super::{Cell, Report, Table, texts};
use meter::compare::{DifferenceVerdict, compare, known_pair};
use meter::report::cell;

/// Pairs of each row.
const PAIRS: u64 = 200;
/// Requested probability of a false positive.
const LEVEL: f64 = 0.05;
/// Ratio of the second run to the first. The requirements are about the first three.
const FACTORS: [f64; 5] = [1.0, 1.05, 0.95, 1.02, 0.98];

pub(super) fn run(progress: &mut dyn FnMut(f64)) -> Report {
    let rows = (1_u32..).zip(FACTORS).map(|(number, factor)| {
        let [better, worse] = pairs(factor);
        progress(f64::from(number) / 5.0);
        [
            cell("change_percent", ">true change, %", Cell::Number((factor - 1.0) * 100.0, 0)),
            cell("better", ">called better", better),
            cell("worse", ">called worse", worse),
            cell("none", ">no difference shown", PAIRS - better - worse),
        ]
    });
    let table = Table::of("pairs", "200 pairs of runs each", rows);
    texts::report("meter-compare", vec![table], Vec::new())
}

/// Numbers of pairs judged better and worse.
fn pairs(factor: f64) -> [u64; 2] {
    let verdict = |seed| {
        let (a, b) = known_pair(factor, seed);
        let said = compare(&[a], &[b], LEVEL, seed).expect("five minutes are long enough");
        said.figures[0].verdict
    };
    let all: Vec<DifferenceVerdict> = (0..PAIRS).map(verdict).collect();
    let count = |wanted| all.iter().filter(|verdict| **verdict == wanted).count() as u64;
    [DifferenceVerdict::Better, DifferenceVerdict::Worse].map(count)
}
