//! Transfers as fast as the storage allows, by the definitions of EBU TECH 3362 (`meter
//! transfers`).

use super::agents_page::AgentFigures;
use super::agents_target::{AgentsConfig, WorkerResult};
use super::metrics::MetricsServer;
use super::port::{Traffic, close_port};
use super::rate_alarm::{RateAlarm, RateAlarmConfig, WatchedLog};
use super::record::{self, ExperimentReport, RunLog};
use super::streams::INTERRUPTED;
use super::target::{FileNeeds, OpenTarget, TargetSpec};
use super::transfers_page;
use crate::error::MeterError;
use crate::fleet::WorkerWork;
use crate::live::{Live, Metered};
use crate::log::RecordSink;
use crate::observer::Observer;
use crate::profiles::Profile;
use crate::progress::RunProgress;
use crate::report::times_json;
use crate::target::{self, FileSet, Layout};
use crate::transfers::{
    self, CountedLog, Length, LiveTally, TransferMix, TransferRow, TransferRowKey,
    TransfersOutcome, TransfersPlan,
};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;
use units::show::count;
use units::{BitRate, ByteCount};

/// Transfers on a target, one after another in each client.
#[derive(Clone)]
pub struct TransfersConfig {
    /// The profile of a transfer.
    pub profile: Profile,
    /// The storage that is measured.
    pub target: TargetSpec,
    /// Number of clients in parallel.
    pub clients: u32,
    /// Number of files to choose from.
    pub files: u32,
    /// Each client has its own file; `files` is ignored then.
    pub own_files: bool,
    /// No client reads the same position twice until all positions are read.
    pub unrepeated: bool,
    /// Pause between two transfers of a client.
    pub think: Duration,
    /// Each transfer is a whole file; a written file replaces the old one.
    pub replace: bool,
    /// Bytes of a transfer, instead of the profile's.
    pub length: Option<ByteCount>,
    /// Bytes of a block, instead of the profile's.
    pub block: Option<ByteCount>,
    /// Frames of a transfer, instead of the profile's length.
    pub frames: Option<u32>,
    /// Time after which no transfer begins.
    pub duration: Duration,
    /// Largest number of transfers of each client.
    pub max_transfers: Option<u64>,
    /// The rate of all clients together, at which blocks are due by the clock.
    pub rate: Option<BitRate>,
    /// Seed of all random choices.
    pub seed: u64,
    /// The rate below which an alarm is raised.
    pub alarm: RateAlarmConfig,
    /// Address at which counters are served while the run is in progress.
    pub metrics: Option<SocketAddr>,
    /// New directory for the report and all figures.
    pub out: Option<PathBuf>,
}

/// A checked configuration and its plan.
pub(super) struct TransferRuns<'a> {
    pub(super) config: &'a TransfersConfig,
    pub(super) plan: TransfersPlan,
}

/// Makes transfers and reports rate and latency by operation and block size.
pub fn run_transfers(
    config: &TransfersConfig,
    observer: &dyn Observer,
) -> Result<ExperimentReport, MeterError> {
    let dir = config.out.as_deref();
    config.alarm.check()?;
    config.alarm.check_length(SECOND, config.duration, "--duration")?;
    let runs = TransferRuns { plan: plan(config)?, config };
    let metrics = MetricsServer::open(config.metrics, observer)?;
    record::prepare(dir)?;
    let target = open(&config.target, &runs.plan.mix, observer)?;
    let plan = fit(&target, &runs.plan)?;
    let mut log = RunLog::open(target.log_dir(dir), config.target.is_simulated())?;
    let alarm = RateAlarm::new(&config.alarm, SECOND, plan.clients, observer);
    let mut watched = WatchedLog { log: log.sink(), alarm: &alarm };
    let go_on = &mut |progress: RunProgress| {
        alarm.look(progress.elapsed);
        let transfers = count(progress.judged, "transfer");
        observer.status(&format!("{transfers}, {}", progress.bytes));
        !observer.is_stopped()
    };
    let outcome = attempt(&target, &plan, &mut watched, metrics.live(), go_on, observer);
    // The log is ended even if the run failed, so that what was measured is kept.
    let written = log.finish();
    let outcome = outcome?;
    if outcome.complete && outcome.took >= plan.duration {
        alarm.look_at_end(plan.duration);
    }
    let mut summary = summary(&runs, &outcome);
    summary["threshold"] = alarm.json();
    record::add_log(&mut summary, &written);
    target.describe(&mut summary);
    let page = || target.extend(transfers_page::page(&runs, &outcome)?);
    let saved = record::save(dir, &summary, page, observer);
    let text = target.text() + &transfers_page::text(&runs, &outcome);
    let verdict = written.and_then(|written| {
        saved?;
        target.check_whole()?;
        check_valid(&outcome)?;
        record::check_log(written.as_ref())?;
        alarm.check_held()?;
        alarm.check_seen()
    });
    Ok(ExperimentReport { summary, text, verdict })
}

/// The default window of an alarm, because transfers have no client buffer.
pub(super) const SECOND: Duration = Duration::from_secs(1);

/// Refuses a run whose results cannot be relied on.
pub(super) fn check_valid(outcome: &TransfersOutcome) -> Result<(), MeterError> {
    outcome.check_done()?;
    if !outcome.complete {
        return Err(MeterError::interrupted(INTERRUPTED));
    }
    Ok(())
}

/// Checks the configuration and makes the plan, for files of the size that will be made.
fn plan(config: &TransfersConfig) -> Result<TransfersPlan, MeterError> {
    let TransfersConfig { profile, target, clients, .. } = config;
    target.check()?;
    let files = if config.own_files { *clients } else { config.files };
    let mut mix = TransferMix::of(profile, files, file_size(target.size()?, files));
    mix.own_file = config.own_files;
    mix.unrepeated = config.unrepeated;
    mix.delay = config.think;
    let shaped = config.length.is_some() || config.block.is_some();
    // A profile from a trace has its own sizes; options that change them would be ignored.
    if mix.drawn.is_some() && (shaped || mix.unrepeated) {
        return Err(MeterError::usage(format!("profile {} says all sizes itself", profile.name))
            .hint("leave out --length, --block and --no-repeat"));
    }
    if config.replace {
        if mix.drawn.is_some() {
            return Err(MeterError::usage(format!("profile {} writes parts", profile.name))
                .hint("--replace is for profiles with frames or transfers"));
        }
        // A file of which only a part is written could not take the place of the old one.
        (mix.replace, mix.length) = (true, Length::Whole);
    }
    if let Some(length) = config.length {
        mix.length = Length::UpTo(length.0);
    }
    if let Some(block) = config.block {
        mix.blocks = vec![u32::try_from(block.0).unwrap_or(u32::MAX)];
    }
    if let Some(frames) = config.frames {
        if profile.fps.is_none() {
            return Err(MeterError::usage(format!("profile {} has no frames", profile.name))
                .hint("`tenuto meter profiles` lists those that have"));
        }
        mix.length = Length::Frames(profile.read().0, frames);
    }
    let TransfersConfig { duration, max_transfers: most, seed, rate, .. } = *config;
    if rate == Some(BitRate(0)) {
        return Err(MeterError::usage("at 0 b/s no block is ever due").hint("take more"));
    }
    Ok(TransfersPlan { mix, clients: *clients, duration, most, seed, rate })
}

/// The size of each of `files` files that together take `size`.
pub(super) fn file_size(size: ByteCount, files: u32) -> ByteCount {
    FileSet::of(Layout::FilePerStream, size, files, 1).each
}

/// Makes and fills the files of a mix where they do not exist, and opens the target.
pub(super) fn open(
    target: &TargetSpec,
    mix: &TransferMix,
    observer: &dyn Observer,
) -> Result<OpenTarget, MeterError> {
    if let Some(agents) = &target.agents {
        let files = match mix.own_file {
            true => mix.files.div_ceil(agents.all_workers()),
            false => mix.files,
        };
        let mix = TransferMix { files, each: file_size(target.size, files), ..mix.clone() };
        return target.open_on(agents, WorkerWork::Transfers(mix), observer);
    }
    let mut shape = FileSet { layout: Layout::FilePerStream, files: mix.files, each: mix.each };
    if mix.replace && target.verify {
        return Err(MeterError::usage("--verify cannot follow files that are replaced")
            .hint("leave out --replace, or --verify"));
    }
    if mix.replace && !Path::new(&target.target).is_dir() {
        return Err(MeterError::usage("a file is replaced only where files are made")
            .hint("name a directory as --target"));
    }
    if target.is_one() && mix.files == 1 {
        shape.layout = Layout::SharedFile;
    } else if target.is_one() || Path::new(&target.target).is_dir() {
        // A mix that is impossible fails before anything is written.
        mix.check(mix.files)?;
    }
    target.open(shape, FileNeeds::default(), mix.writes(), observer)
}

/// The plan with the file size of the open target.
pub(super) fn fit(target: &OpenTarget, plan: &TransfersPlan) -> Result<TransfersPlan, MeterError> {
    let (mut plan, shape) = (plan.clone(), target.shape());
    plan.mix.each = shape.each;
    let mut clients = plan.clients;
    if let Some(agents) = target.agents() {
        // Each worker has files of its own, for its part of the clients.
        (plan.mix.files, clients) = (shape.files, agents.share(clients));
    }
    // Again, because existing files may be smaller than those that would be made.
    plan.mix.check(clients)?;
    Ok(plan)
}

/// Makes one run.
pub(super) fn attempt(
    target: &OpenTarget,
    plan: &TransfersPlan,
    log: &mut dyn RecordSink,
    live: Option<&Live>,
    go_on: &mut dyn FnMut(RunProgress) -> bool,
    observer: &dyn Observer,
) -> Result<TransfersOutcome, MeterError> {
    live.into_iter().for_each(|live| live.begin(plan.clients));
    if let Some(agents) = target.agents() {
        return agents.transfers(plan, live, go_on, observer);
    }
    let mut port = target.port(&Traffic {
        at_once: plan.clients,
        largest: ByteCount(plan.mix.largest_block().into()),
        writes: plan.mix.writes(),
        opens: true,
        replaces: plan.mix.replace,
    })?;
    let tally = observer.wants_figures().then(|| LiveTally::new(plan));
    let mut metered = Metered { log, live };
    let mut counted = CountedLog { log: &mut metered, tally: tally.as_ref() };
    let mut stopped = false;
    let mut shown = |progress: RunProgress| {
        let figures = tally.as_ref().and_then(|tally| tally.figures(&progress));
        figures.into_iter().for_each(|figures| observer.figures(&[figures]));
        let goes_on = go_on(progress);
        stopped |= !goes_on;
        goes_on
    };
    let outcome = transfers::run(plan, &mut *port, &mut counted, &mut shown);
    let waited = !stopped && outcome.as_ref().is_ok_and(|outcome| !outcome.complete);
    // Closed before an error is returned, because operations may still be in flight.
    let stuck = match waited {
        // The run has waited for the storage already.
        true => target::close_port(port, &|| Duration::ZERO),
        false => close_port(port, observer.stop()),
    };
    Ok(TransfersOutcome { stuck, ..outcome? })
}

/// The content of `summary.json`.
fn summary(runs: &TransferRuns<'_>, outcome: &TransfersOutcome) -> Value {
    let mut all = figures(outcome);
    all["scenario"] = scenario(runs);
    let clients = outcome.clients.iter().map(|client| {
        json!({
            "transfers": client.transfers,
            "bytes": client.bytes.0,
            "bits_per_s": BitRate::of(client.bytes, client.data).0,
            "latency": client.latency.as_secs_f64(),
            "longest_latency": client.longest_latency.as_secs_f64(),
        })
    });
    all["each_client"] = clients.collect();
    let seconds = outcome.seconds.iter().map(|second| {
        json!({
            "bytes_read": second.read.0,
            "bytes_written": second.written.0,
            "blocks": second.blocks,
            "longest": second.longest.as_secs_f64(),
        })
    });
    all["seconds"] = seconds.collect();
    all
}

/// The figures of a run, or of a step of a ramp.
pub(super) fn figures(outcome: &TransfersOutcome) -> Value {
    let rows = outcome.rows.iter().map(|(key, row)| {
        let mut object = of_row(row);
        object["kind"] = json!(key.kind.word());
        object["random"] = json!(key.random);
        object["block"] = json!(key.block);
        object
    });
    json!({
        "complete": outcome.complete,
        "method": outcome.method,
        "took": outcome.took.as_secs_f64(),
        "failed": outcome.failed,
        "unfinished": outcome.unfinished,
        "stuck": outcome.stuck,
        "total_bits_per_s": outcome.total_rate().0,
        "response": times_json(&outcome.response),
        "all": of_row(&outcome.sum(|_| true)),
        "rows": rows.collect::<Vec<_>>(),
    })
}

fn of_row(row: &TransferRow) -> Value {
    json!({
        "transfers": row.transfers,
        "blocks": row.blocks,
        "bytes": row.bytes.0,
        "bits_per_s": row.rate().0,
        "mean_bits_per_s": row.mean_rate().0,
        "mean_latency": row.mean_latency().as_secs_f64(),
        "longest_latency": row.longest_latency.as_secs_f64(),
        "meter": row.meter.as_secs_f64(),
        "open_and_close": row.open.as_secs_f64(),
        "mean_fill": row.mean_fill().as_secs_f64(),
        "block_service": times_json(&row.service),
    })
}

fn scenario(runs: &TransferRuns<'_>) -> Value {
    let TransferRuns { config: TransfersConfig { profile, target, .. }, plan, .. } = runs;
    let TransfersPlan { mix, clients, duration, most, seed, rate } = plan;
    json!({
        "profile": profile,
        "target": target.target,
        "clients": clients,
        "duration": duration.as_secs_f64(),
        "transfers": most,
        "seed": seed,
        "rate_bits_per_s": rate.map(|rate| rate.0),
        "size": target.size.0,
        "files": mix.files,
        "file_per_client": mix.own_file,
        "write_percent": mix.write_percent,
        "random_percent": mix.random_percent,
        "longest": mix.length.most(),
        "blocks": mix.blocks,
        "think": mix.delay.as_secs_f64(),
        "no_repeat": mix.unrepeated,
        "replace": mix.replace,
        "fill_level": target.fill_level,
        "buffered": target.buffered,
        "destroy": target.destructive,
        "verify": target.verify,
        "agents": target.agents.as_ref().map(AgentsConfig::names),
        "workers": target.agents.as_ref().map(|agents| agents.workers),
    })
}

impl WorkerResult for TransfersOutcome {
    fn add(&mut self, other: Self) {
        Self::add(self, other);
    }

    fn name(&mut self, _agent: &str) {}

    fn incomplete(&mut self) {
        self.complete = false;
    }

    fn count(&self, of_agent: &mut AgentFigures) {
        of_agent.streams += self.clients.len() as u64;
        of_agent.frames += self.sum(|_| true).transfers;
        of_agent.rate = BitRate(of_agent.rate.0 + self.total_rate().0);
        for (number, second) in self.seconds.iter().enumerate() {
            of_agent.second(number, second.read.0 + second.written.0, 0);
        }
        of_agent.workers.push(figures(self));
    }
}

/// The operation of a row, in words.
pub(super) fn words(key: &TransferRowKey) -> String {
    format!("{} {}", if key.random { "random" } else { "sequential" }, key.kind.word())
}
