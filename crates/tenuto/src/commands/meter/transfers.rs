//! `meter transfers`, `meter ramp` and `meter ebu`: transfers as fast as the storage allows.

use super::options::{alarm, note_unused_size, required, target};
use super::terminal::{show, show_live};
use crate::args::meter::{EbuArgs, RampArgs, TransfersArgs};
use crate::failure::Failure;
use crate::out;
use device::Method;
use meter::{
    EbuConfig, RampConfig, TransfersConfig, builtin_script, load_profile, load_script, run_ebu,
    run_ramp, run_transfers,
};

pub(super) fn transfers(args: &TransfersArgs) -> Result<(), Failure> {
    let hint = "ebu3362-edit, ebu3362-read and ebu3362-write are those of EBU TECH 3362";
    let profile = load_profile(required("profile", args.profile.as_deref(), hint)?)?;
    let target = target(&args.target, Method::Best)?;
    args.view.check(&target.agents)?;
    note_unused_size(&args.target, &target);
    let config = TransfersConfig {
        profile,
        alarm: alarm(&args.threshold, &target)?,
        target,
        clients: args.clients,
        files: args.files,
        own_files: args.file_per_client,
        unrepeated: args.no_repeat,
        think: args.think.unwrap_or_default(),
        replace: args.replace,
        length: args.length,
        block: args.block,
        frames: args.frames,
        duration: args.duration,
        max_transfers: args.transfers,
        rate: args.rate,
        seed: args.random.seed,
        metrics: args.output.metrics,
        out: args.output.out.clone(),
    };
    show_live(&args.output.report, args.view.live, |observer| run_transfers(&config, observer))
}

pub(super) fn ramp(args: &RampArgs) -> Result<(), Failure> {
    if args.toml {
        out::print(builtin_script(&args.script)?);
        return Ok(());
    }
    let script = load_script(&args.script)?;
    let target = target(&args.target, Method::Best)?;
    args.view.check(&target.agents)?;
    note_unused_size(&args.target, &target);
    let config = RampConfig {
        profile: load_profile(&script.profile)?,
        script,
        alarm: alarm(&args.threshold, &target)?,
        target,
        step_length: args.step,
        seed: args.random.seed,
        metrics: args.output.metrics,
        out: args.output.out.clone(),
    };
    show_live(&args.output.report, args.view.live, |observer| run_ramp(&config, observer))
}

pub(super) fn ebu(args: &EbuArgs) -> Result<(), Failure> {
    let config = EbuConfig {
        target: target(&args.target, Method::Best)?,
        second: args.second.clone(),
        step: args.step,
        repeats: args.repeats,
        seed: args.random.seed,
        out: args.out.clone(),
    };
    show(&args.report, |observer| run_ebu(&config, observer))
}
