//! `meter study NAME` and `meter study network`: what one factor does, other things being equal.

use super::options::required;
use super::terminal::show;
use crate::args::meter::{NetworkArgs, StudyArgs};
use crate::failure::Failure;
use meter::study::{Scale, Study, StudyPlan};
use meter::{NetworkConfig, StudyConfig, run_study, study_network};

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
            scale: Scale { size: args.size, clients: args.clients },
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
    show(&args.report, |observer| study_network(&config, observer))
}
