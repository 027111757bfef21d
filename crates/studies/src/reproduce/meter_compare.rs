//! The meter's comparison of two runs, on pairs whose true difference is known: its rates of false
//! positives and false negatives.

use super::{Cell, Report, Table};
use meter::compare::{DifferenceVerdict, compare, known_pair};

/// Pairs of each row.
const PAIRS: u64 = 200;
/// Requested probability of a false positive.
const LEVEL: f64 = 0.05;
/// Ratio of the second run to the first. The requirements are about the first three.
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
        source: "The requirement for `meter compare`: of 200 pairs without a difference no more are called \
                 different than the stated 5 % make likely, and a change of 5 % is found in 95 % of \
                 pairs",
        method: "`meter compare`'s arithmetic at a level of 5 % on pairs of runs of five minutes, whose \
                 seconds vary by a tenth, remember a third of the second before, and have a long tail. \
                 Less is better. From seeds 0 to 199."
            .to_owned(),
        tables: vec![table],
        notes: vec![
            "Of 200 pairs at 5 %, 10 false positives are expected; more than 17 have a probability of 1.3 % \
             (binomial)."
                .to_owned(),
        ],
        figures: Vec::new(),
    }
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
