//! Commands of the meter whose arguments are the configuration of one experiment: `meter report`,
//! `meter compare`, `meter rounds`, `meter profile-from`, `meter study NAME` and `meter study
//! network`.

use super::options::required;
use super::terminal::{show, show_saved};
use crate::args::meter::{
    CompareArgs, NetworkArgs, ProfileFromArgs, RecountArgs, RoundsArgs, StudyArgs,
};
use crate::failure::Failure;
use meter::study::{Study, StudyPlan};
use meter::{
    ComparisonConfig, NetworkConfig, RoundsConfig, StudyConfig, compare_runs, recount_runs,
    run_rounds, run_study, study_network,
};

pub(super) fn report(args: &RecountArgs) -> Result<(), Failure> {
    show_saved(&args.saved, |observer| recount_runs(&args.dir, observer))
}

pub(super) fn compare(args: &CompareArgs) -> Result<(), Failure> {
    let config = ComparisonConfig {
        a: args.a.clone(),
        b: args.b.clone(),
        confidence_percent: args.confidence,
        seed: args.random.seed,
    };
    show_saved(&args.saved, |observer| compare_runs(&config, observer))
}

pub(super) fn profile_from(args: &ProfileFromArgs) -> Result<(), Failure> {
    let stem = args.trace.file_stem().unwrap_or_default().to_string_lossy();
    let (name, only) = (args.name.as_deref().unwrap_or(&stem), args.only.as_deref());
    show_saved(&args.saved, |observer| meter::profile_from(&args.trace, name, only, observer))
}

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
    show_saved(&args.saved, |observer| run_rounds(&config, observer))
}

pub(super) fn study(study: &'static Study, args: &StudyArgs) -> Result<(), Failure> {
    let hint = "a directory, a file, a block device, or sim:MODEL";
    let target = required("target", args.target.as_deref(), hint)?.to_owned();
    if args.second.is_some() && !study.two_nodes {
        return Err(Failure::usage("--second is for the study `nodes`").hint("leave it out"));
    }
    let config = StudyConfig {
        study,
        target,
        second: args.second.clone(),
        plan: StudyPlan {
            size: args.size,
            clients: args.clients,
            length: args.duration,
            repeats: args.repeats,
            seed: args.random.seed,
        },
        out: args.out.clone(),
    };
    show(&args.report, |observer| run_study(&config, observer))
}

pub(super) fn network(args: &NetworkArgs) -> Result<(), Failure> {
    let config = NetworkConfig { link: args.link, clients: args.clients, duration: args.duration };
    show_saved(&args.saved, |observer| study_network(&config, observer))
}
