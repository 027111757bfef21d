//! The meter's comparison of two runs, on pairs whose true difference is known: how often it cries wolf,
//! and how often it misses one.

use super::{Cell, Report, Table};
use meter::compare::{Verdict, compare, known_pair};

/// Pairs of each row.
const PAIRS: u64 = 200;
/// The chance of a false alarm that is asked for.
const LEVEL: f64 = 0.05;
/// What the second run takes of the first. The bars are about the first three.
const FACTORS: [f64; 5] = [1.0, 1.05, 0.95, 1.02, 0.98];

pub(super) fn run(progress: &mut dyn FnMut(f64)) -> Report {
    let mut table = Table::new(
        "pairs",
        "200 pairs of runs each",
        &[
            ("change_percent", ">true change, %"),
            ("better", ">called better"),
            ("worse", ">called worse"),
            ("none", ">no difference shown"),
        ],
    );
    for (at, factor) in (1u32..).zip(FACTORS) {
        let [better, worse] = pairs(factor);
        let change = Cell::Number((factor - 1.0) * 100.0, 0);
        table.row([change, better.into(), worse.into(), (PAIRS - better - worse).into()]);
        progress(f64::from(at) / 5.0);
    }
    Report {
        source: "The bar of `meter compare`: of 200 pairs without a difference no more are called \
                 different than the stated 5 % make likely, and a change of 5 % is found in 95 % of \
                 pairs",
        method: "`meter compare`'s arithmetic at a level of 5 % on pairs of runs of five minutes, whose \
                 seconds vary by a tenth, remember a third of the second before, and have a long tail. \
                 Less is better. From seeds 0 to 199."
            .to_owned(),
        tables: vec![table],
        notes: vec![
            "Of 200 false alarms at 5 %, 10 are expected; more than 17 come with a chance of 1.3 % \
             (binomial)."
                .to_owned(),
        ],
        figures: Vec::new(),
    }
}

/// Called better and worse.
fn pairs(factor: f64) -> [u64; 2] {
    let verdict = |seed| {
        let (a, b) = known_pair(factor, seed);
        let said = compare(&[a], &[b], LEVEL, seed).expect("five minutes are long enough");
        said.figures[0].verdict
    };
    let all: Vec<Verdict> = (0..PAIRS).map(verdict).collect();
    let count = |wanted| all.iter().filter(|verdict| **verdict == wanted).count() as u64;
    [Verdict::Better, Verdict::Worse].map(count)
}
