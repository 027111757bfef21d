//! Options that several commands of the meter share, as the experiments take them.

use crate::args::meter::{FleetArgs, LiveArgs, TargetArgs, ThresholdArgs};
use crate::args::values::CommaList;
use crate::failure::Failure;
use crate::out;
use device::Method;
use meter::agents::{AgentsConfig, read_token};
use meter::{RateAlarmConfig, TargetPath, TargetSpec};
use units::ByteCount;

/// Bytes of the files that are made, unless --size is given.
pub(super) const SIZE: ByteCount = ByteCount(4 << 30);

/// The value of an option that must be given; `hint` says what would do.
pub(super) fn required<'a>(
    option: &str,
    value: Option<&'a str>,
    hint: &str,
) -> Result<&'a str, Failure> {
    // Not `required` in the parser, whose error names the option but none of its values.
    value.ok_or_else(|| Failure::usage(format!("--{option} is missing")).hint(hint))
}

/// `--target` and the options that say how it is used.
pub(super) fn target(args: &TargetArgs, method: Method) -> Result<TargetSpec, Failure> {
    let hint = "a directory, a file, a block device, s3://BUCKET, a title's address, sim:MODEL, \
                or null:";
    let agents = agents(args)?;
    Ok(TargetSpec {
        target: required("target", args.target.as_deref(), hint)?.to_owned(),
        path: TargetPath::Typed,
        size: args.size.unwrap_or(SIZE),
        fill_level: args.fill_level,
        names: args.names.clone(),
        existing: args.existing,
        buffered: args.buffered,
        destructive: args.overwrite.destroy,
        method,
        drop_caches: args.drop_caches,
        verify: args.verify,
        access: args.endpoint.access(&args.tls)?,
        agents,
    })
}

/// Tells that `--size` changes nothing where no files are made.
pub(super) fn note_unused_size(args: &TargetArgs, target: &TargetSpec) {
    if args.size.is_some() && target.is_used_whole() {
        let name = &target.target;
        out::note(&format!("--size is for files that are made: all of {name} is used"));
    }
}

/// `--agents`, `--hosts` and their options; `None` to measure from this machine.
pub(super) fn agents(args: &TargetArgs) -> Result<Option<AgentsConfig>, Failure> {
    let fleet = &args.fleet;
    if fleet.agents.is_none() && fleet.hosts.is_none() {
        return Ok(None);
    }
    // Options that agents do not have would otherwise be ignored in silence.
    let refused = first_given(&[
        ("destroy", args.overwrite.destroy),
        ("names", args.names.is_some()),
        ("endpoint", args.endpoint.endpoint.is_some()),
        ("region", args.endpoint.region.is_some()),
        ("ca-file", args.tls.ca_file.is_some()),
        ("insecure", args.tls.insecure),
        ("cert-file", args.tls.cert_file.is_some()),
        ("key-file", args.tls.key_file.is_some()),
    ]);
    if let Some(name) = refused {
        return Err(not_for_agents(name));
    }
    let names = |list: &Option<CommaList<String>>| {
        list.as_ref().map(|list| list.0.clone()).unwrap_or_default()
    };
    let (agents, hosts) = (names(&fleet.agents), names(&fleet.hosts));
    if agents.is_empty() && hosts.is_empty() {
        return Err(
            Failure::usage("no agent is named").hint("--agents 10.0.0.1:7070,10.0.0.2:7070")
        );
    }
    if hosts.is_empty() && fleet.program.is_some() {
        return Err(Failure::usage("--program is for --hosts")
            .hint("leave it out: agents are started with their own program"));
    }
    // Agents on --hosts get a token of their own through ssh.
    let token =
        (!agents.is_empty()).then(|| read_token(fleet.token_file.as_deref())).transpose()?;
    let FleetArgs { ssh, program, workers, .. } = fleet;
    let (ssh, program, workers) = (ssh.clone(), program.clone(), *workers);
    Ok(Some(AgentsConfig { agents, token, hosts, ssh, program, workers }))
}

/// The error of an option that agents do not have.
pub(super) fn not_for_agents(name: &str) -> Failure {
    Failure::usage(format!("--{name} is not for agents"))
        .hint("leave it out, or measure from this machine, without --agents and --hosts")
}

/// An option's name, and whether it is given.
pub(super) type Given = (&'static str, bool);

/// The name of the first of these options that is given.
pub(super) fn first_given(options: &[Given]) -> Option<&'static str> {
    options.iter().find(|(_, given)| *given).map(|(name, _)| *name)
}

impl LiveArgs {
    /// Refuses `--live` together with agents, which send no figures while they measure.
    pub(super) fn check(&self, agents: &Option<AgentsConfig>) -> Result<(), Failure> {
        if self.live && agents.is_some() { Err(not_for_agents("live")) } else { Ok(()) }
    }
}

/// `--threshold`, `--threshold-window` and `--threshold-each`, which need the log of operations on
/// this machine.
pub(super) fn alarm(args: &ThresholdArgs, target: &TargetSpec) -> Result<RateAlarmConfig, Failure> {
    let given = first_given(&[
        ("threshold", args.threshold.is_some()),
        ("threshold-each", args.threshold_each),
        ("threshold-window", args.threshold_window.is_some()),
    ]);
    match given.filter(|_| target.agents.is_some()) {
        Some(name) => Err(not_for_agents(name)),
        None => Ok(RateAlarmConfig {
            rate: args.threshold,
            window: args.threshold_window,
            each: args.threshold_each,
        }),
    }
}
