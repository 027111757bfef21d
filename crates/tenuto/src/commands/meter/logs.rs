//! `meter report` and `meter compare`: what the directories of runs say.

use super::terminal::show;
use crate::args::meter::{CompareArgs, RecountArgs};
use crate::failure::Failure;
use meter::{ComparisonConfig, compare_runs, recount_runs};

pub(super) fn report(args: &RecountArgs) -> Result<(), Failure> {
    show(&args.report, |observer| recount_runs(&args.dir, observer))
}

pub(super) fn compare(args: &CompareArgs) -> Result<(), Failure> {
    let config = ComparisonConfig {
        a: args.a.clone(),
        b: args.b.clone(),
        confidence_percent: args.confidence,
        seed: args.random.seed,
    };
    show(&args.report, |observer| compare_runs(&config, observer))
}
