//! `meter run`, `meter capacity`, `meter bottleneck` and `meter methods`: streams or players on a
//! target.

use super::options::{
    Given, SIZE, agents, alarm, first_given, not_for_agents, note_unused_size, required, target,
};
use super::terminal::{show, show_live};
use crate::args::meter::{
    CapacityArgs, RunArgs, StreamsArgs, StreamsOnTarget, TargetArgs, VariantsArgs,
};
use crate::args::shared::SwitchingArgs;
use crate::failure::Failure;
use crate::limits;
use device::Method;
use meter::agents::AgentsConfig;
use meter::{
    JobConfig, MeterError, MeterErrorKind, PlayersConfig, RunLength, StreamRunConfig,
    StreamsConfig, Variants, compare_variants, load_profile, run_job, run_players, run_streams,
    search_players, search_streams,
};
use player::AbrRule;
use std::path::PathBuf;
use std::time::Duration;
use units::Reason;

pub(super) fn run(args: &RunArgs) -> Result<(), Failure> {
    let RunArgs { on, switching, duration, .. } = args;
    if let Some(file) = &args.job {
        let config = job_config(file.clone(), args)?;
        return show_live(&on.output.report, on.streams.view.live, |observer| {
            run_job(&config, observer)
        });
    }
    let count = args.count.unwrap_or(1);
    // The address decides, because a title's rate and frames come from the server.
    let players = are_players(&on.target);
    if !players {
        no_switching(switching)?;
    }
    let out = on.output.out.clone();
    if players {
        let length = duration.unwrap_or(RUN);
        let config = players_config(on, switching, length, &given_for_run(args))?;
        return show(&on.output.report, |observer| run_players(&config, count, out, observer));
    }
    let mut streams = streams_config(on, *duration, RUN)?;
    if let Some(rate) = args.rate {
        streams.profile = streams.profile.at_rate(rate, count).map_err(usage)?;
    }
    if args.hold && streams.target.agents.is_some() {
        return Err(not_for_agents("hold"));
    }
    let config = StreamRunConfig {
        alarm: alarm(&args.threshold, &streams.target)?,
        streams,
        count,
        hold: args.hold,
        out,
    };
    show_live(&on.output.report, on.streams.view.live, |observer| run_streams(&config, observer))
}

/// The options on files and on the way of reading them.
fn of_files(StreamsOnTarget { streams, target, .. }: &StreamsOnTarget) -> [Given; 11] {
    [
        ("layout", streams.layout.is_some()),
        ("read-frames", streams.read_frames.is_some()),
        ("buffer-frames", streams.buffer_frames.is_some()),
        ("method", streams.method.is_some()),
        ("size", target.size.is_some()),
        ("fill-level", target.fill_level.is_some()),
        ("names", target.names.is_some()),
        ("existing", target.existing),
        ("buffered", target.buffered),
        ("drop-caches", target.drop_caches),
        ("verify", target.verify),
    ]
}

/// The job and what the command line says for all its groups. An option that a group has is refused
/// rather than ignored.
fn job_config(file: PathBuf, args: &RunArgs) -> Result<JobConfig, Failure> {
    let StreamsOnTarget { streams, target, output } = &args.on;
    let of_groups = [
        ("streams", args.count.is_some()),
        ("rate", args.rate.is_some()),
        ("profile", streams.profile.is_some()),
        ("target", target.target.is_some()),
        ("threshold", args.threshold.threshold.is_some()),
        ("threshold-window", args.threshold.threshold_window.is_some()),
        ("threshold-each", args.threshold.threshold_each),
    ];
    if let Some(name) = first_given(&of_groups).or_else(|| first_given(&of_files(&args.on))) {
        let key = name.replace('-', "_");
        return Err(Failure::usage(format!("--{name} is for runs without a job file"))
            .hint(format!("write `{key} = ...` into the job, under [global] or [[group]]")));
    }
    let of_one = [("switching", args.switching.switching != AbrRule::Never), ("hold", args.hold)];
    if let Some(name) = first_given(&of_one) {
        return Err(Failure::usage(format!("--{name} is not for jobs"))
            .hint("leave it out, or run one group without a job file"));
    }
    let agents = agents(target)?;
    check_agents(streams, &agents)?;
    Ok(JobConfig {
        file,
        duration: args.duration,
        usual: RUN,
        buffer: BUFFER_FRAMES,
        size: SIZE,
        destructive: target.overwrite.destroy,
        access: target.endpoint.access(&target.tls)?,
        agents,
        realtime: streams.realtime,
        spin: streams.busy_poll,
        metrics: output.metrics,
        out: output.out.clone(),
    })
}

pub(super) fn capacity(args: &CapacityArgs) -> Result<(), Failure> {
    let CapacityArgs { on, switching, duration, confirm, .. } = args;
    let search = args.search.config(*confirm, on.output.out.clone());
    if are_players(&on.target) {
        let config = players_config(on, switching, duration.unwrap_or(SEARCH), &[])?;
        return show(&on.output.report, |observer| search_players(&config, &search, observer));
    }
    no_switching(switching)?;
    let config = streams_config(on, *duration, SEARCH)?;
    show_live(&on.output.report, on.streams.view.live, |observer| {
        search_streams(&config, &search, observer)
    })
}

pub(super) fn compare(args: &VariantsArgs, variants: Variants) -> Result<(), Failure> {
    let VariantsArgs { on, .. } = args;
    if variants == Variants::Methods && on.streams.method.is_some() {
        return Err(Failure::usage("--method: the command tries all methods")
            .hint("leave it out, or use `meter capacity --method`"));
    }
    let config = streams_config(on, args.duration, VARIANTS)?;
    let search = args.search.config(None, on.output.out.clone());
    show_live(&on.output.report, on.streams.view.live, |observer| {
        compare_variants(&config, variants, &search, observer)
    })
}

/// The hint where a profile is missing.
const PROFILES: &str = "`tenuto meter profiles` lists the profiles of streams";

/// Frames that a client buffers, unless --buffer-frames is given.
const BUFFER_FRAMES: u32 = 8;

/// The lengths of runs of `meter run`, of searches, and of searches that are compared, unless
/// --duration is given or the buffers of clients need longer ones.
const RUN: Duration = Duration::from_secs(60);
const SEARCH: Duration = Duration::from_secs(20);
const VARIANTS: Duration = Duration::from_secs(5);

fn run_length(given: Option<Duration>, usual: Duration) -> RunLength {
    given.map_or(RunLength::AtLeast(usual), RunLength::Exactly)
}

fn streams_config(
    on: &StreamsOnTarget,
    duration: Option<Duration>,
    usual: Duration,
) -> Result<StreamsConfig, Failure> {
    let streams = &on.streams;
    let mut profile = load_profile(required("profile", streams.profile.as_deref(), PROFILES)?)?;
    if let Some(frames) = streams.read_frames {
        profile = profile.in_reads_of(frames).map_err(usage)?;
    }
    let target = target(&on.target, streams.method.unwrap_or(Method::Best))?;
    check_agents(streams, &target.agents)?;
    note_unused_size(&on.target, &target);
    Ok(StreamsConfig {
        profile,
        target,
        layout: streams.layout,
        buffer: streams.buffer_frames.unwrap_or(BUFFER_FRAMES),
        duration: run_length(duration, usual),
        realtime: streams.realtime,
        spin: streams.busy_poll,
        metrics: on.output.metrics,
    })
}

/// Refuses options of streams that agents do not have.
fn check_agents(streams: &StreamsArgs, agents: &Option<AgentsConfig>) -> Result<(), Failure> {
    streams.view.check(agents)?;
    if agents.is_some() && streams.realtime {
        return Err(Failure::usage("--realtime is not for agents")
            .hint("start the agents with `chrt -f 20`"));
    }
    Ok(())
}

/// The error of an option that does not fit the profile.
fn usage(error: Reason) -> Failure {
    MeterError { kind: MeterErrorKind::Usage, ..MeterError::of(&error) }.into()
}

/// Whether the target is a title's address.
fn are_players(target: &TargetArgs) -> bool {
    let target = target.target.as_deref().unwrap_or_default();
    target.starts_with("http://") || target.starts_with("https://")
}

/// Refuses `--switching` where nothing is played.
fn no_switching(switching: &SwitchingArgs) -> Result<(), Failure> {
    if switching.switching == AbrRule::Never {
        return Ok(());
    }
    Err(Failure::usage("--switching is for players, and the target is not the address of a title")
        .hint("leave it out, or give an http(s):// address as the target"))
}

/// Options of `meter run` alone that players do not have.
fn given_for_run(args: &RunArgs) -> [Given; 5] {
    [
        ("rate", args.rate.is_some()),
        ("threshold", args.threshold.threshold.is_some()),
        ("threshold-window", args.threshold.threshold_window.is_some()),
        ("threshold-each", args.threshold.threshold_each),
        ("hold", args.hold),
    ]
}

fn players_config(
    on: &StreamsOnTarget,
    switching: &SwitchingArgs,
    duration: Duration,
    of_run: &[Given],
) -> Result<PlayersConfig, Failure> {
    let StreamsOnTarget { streams, target, output } = on;
    if streams.profile.is_some() {
        return Err(Failure::usage("a title has its own rate").hint("leave out --profile"));
    }
    // Refused rather than ignored: a figure measured without them would be taken for one with them.
    let of_storage = [
        ("realtime", streams.realtime),
        ("busy-poll", streams.busy_poll),
        ("live", streams.view.live),
        ("endpoint", target.endpoint.endpoint.is_some()),
        ("region", target.endpoint.region.is_some()),
        ("destroy", target.overwrite.destroy),
        ("agents", target.fleet.agents.is_some()),
        ("hosts", target.fleet.hosts.is_some()),
    ];
    let given = first_given(of_run)
        .or_else(|| first_given(&of_files(on)))
        .or_else(|| first_given(&of_storage));
    if let Some(name) = given {
        return Err(Failure::usage(format!("--{name} is not for players"))
            .hint("leave it out: titles are fetched as by `tenuto play`"));
    }
    // Each player has a connection of its own.
    limits::raise_open_files();
    Ok(PlayersConfig {
        address: target.target.clone().unwrap_or_default(),
        duration,
        switching: switching.switching,
        trust: target.tls.trust()?,
        identity: target.tls.identity()?,
        metrics: output.metrics,
    })
}
