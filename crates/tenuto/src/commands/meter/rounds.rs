//! `meter rounds`: rounds of reads on disks or files.

use super::terminal::show;
use crate::args::meter::RoundsArgs;
use crate::failure::Failure;
use meter::{RoundsConfig, run_rounds};

pub(super) fn rounds(args: &RoundsArgs) -> Result<(), Failure> {
    let config = RoundsConfig {
        targets: args.targets.clone(),
        streams: args.streams,
        block: args.block,
        rate: args.rate,
        rounds: args.rounds,
        order: args.order,
        at_once: args.iodepth,
        method: args.method,
        buffered: args.buffered,
        unpaced: args.unpaced,
        alone: args.alone,
    };
    show(&args.report, |observer| run_rounds(&config, observer))
}
