//! A ramp: the same transfers with an increasing number of clients (`meter ramp`).

use super::agents_target::AgentsConfig;
use super::metrics::MetricsServer;
use super::rate_alarm::{RateAlarm, RateAlarmConfig, WatchedLog};
use super::record::{self, ExperimentReport, RunLog};
use super::target::{OpenTarget, TargetSpec};
use super::transfers::{SECOND, attempt, check_valid, figures, file_size, fit, open};
use super::transfers_page::by_operation;
use crate::error::MeterError;
use crate::observer::Observer;
use crate::profiles::Profile;
use crate::progress::RunProgress;
use crate::ramp::{FileSharing, RampStep, Script};
use crate::report::{Block, LineShape, Page, Plot, Series, TextTable, time};
use crate::transfers::{Length, TransferMix, TransferRow, TransfersOutcome, TransfersPlan};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;
use units::float;
use units::show::count;

/// A ramp of transfers on a target.
#[derive(Clone)]
pub struct RampConfig {
    /// The steps of the ramp.
    pub script: Script,
    /// The profile of a transfer; the script names it.
    pub profile: Profile,
    /// The storage that is measured.
    pub target: TargetSpec,
    /// Length of a step, instead of the script's.
    pub step_length: Option<Duration>,
    /// Seed of all random choices.
    pub seed: u64,
    /// The rate below which an alarm is raised.
    pub alarm: RateAlarmConfig,
    /// Address at which counters are served while the ramp is in progress.
    pub metrics: Option<SocketAddr>,
    /// New directory for the report and all figures.
    pub out: Option<PathBuf>,
}

/// The result of a step.
struct StepResult {
    step: RampStep,
    outcome: TransfersOutcome,
    /// Crossings of the alarm's threshold.
    threshold: Value,
    /// Whether the rate stayed above it.
    held: Result<(), MeterError>,
}

/// Runs the steps of a ramp one after another and reports rate and latency of each.
pub fn run_ramp(
    config: &RampConfig,
    observer: &dyn Observer,
) -> Result<ExperimentReport, MeterError> {
    config.target.check()?;
    config.alarm.check()?;
    for step in config.script.steps(config.step_length, config.seed).take(1) {
        config.alarm.check_length(SECOND, step.length, "--step")?;
    }
    let metrics = MetricsServer::open(config.metrics, observer)?;
    record::prepare(config.out.as_deref())?;
    let mix = mix(config)?;
    let target = open(&config.target, &mix, observer)?;
    let ramp = Ramp { config, metrics, mix, target };
    let (mut done, mut failed) = (Vec::new(), None);
    for step in config.script.steps(config.step_length, config.seed) {
        // One for each step: the windows of a step must not hold bytes of the step before.
        let alarm = RateAlarm::new(&config.alarm, SECOND, step.clients, observer);
        let alarm = alarm.of_run(step.clients);
        let complete = match ramp.step(step, &alarm, observer) {
            Ok(outcome) => {
                // A storage that answers nothing would keep the ramp busy for the remaining hours.
                let gone = outcome.failed > 0 && outcome.sum(|_| true).blocks == 0;
                let complete = outcome.complete && !gone;
                if complete && outcome.took >= step.length {
                    alarm.look_at_end(step.length);
                }
                let held = alarm.check_held().and_then(|()| match complete {
                    true => alarm.check_seen(),
                    false => Ok(()),
                });
                let threshold = alarm.json();
                done.push(StepResult { step, outcome, threshold, held });
                complete
            }
            // No step is complete, so there are no results to keep.
            Err(error) if done.is_empty() => return Err(error),
            Err(error) => {
                failed = Some(error);
                false
            }
        };
        if !complete {
            break;
        }
    }
    let mut summary = summary(config, &done);
    // Each of the steps that are kept is complete, but the ramp is not.
    if failed.is_some() {
        summary["complete"] = json!(false);
    }
    ramp.target.describe(&mut summary);
    let page = || ramp.target.extend(page(config, &done)?);
    let saved = record::save(config.out.as_deref(), &summary, page, observer);
    let text = TextTable::with_rows(&HEAD, rows(&done)).show();
    let verdict = saved.and_then(|()| ramp.target.check_whole()).and_then(|()| match failed {
        Some(error) => {
            observer.note("this is what there was until then");
            Err(error)
        }
        // A ramp that is not valid does not tell what is held.
        None => done
            .iter()
            .try_for_each(|step| check_valid(&step.outcome))
            .and_then(|()| done.into_iter().try_for_each(|step| step.held)),
    });
    Ok(ExperimentReport { summary, text, verdict })
}

fn mix(config: &RampConfig) -> Result<TransferMix, MeterError> {
    let RampConfig { script, profile, target, .. } = config;
    let files = script.file_count();
    let mut mix = TransferMix::of(profile, files, file_size(target.size()?, files));
    // The files are made for the last step; earlier steps use the first of them.
    mix.own_file = script.files == FileSharing::Own;
    if script.whole_files {
        mix.length = Length::Whole;
        mix.replace = script.replace;
    }
    Ok(mix)
}

/// A ramp whose target is open.
struct Ramp<'a> {
    config: &'a RampConfig,
    metrics: MetricsServer,
    mix: TransferMix,
    target: OpenTarget,
}

impl Ramp<'_> {
    fn step(
        &self,
        step: RampStep,
        alarm: &RateAlarm<'_>,
        observer: &dyn Observer,
    ) -> Result<TransfersOutcome, MeterError> {
        let RampStep { clients, length: duration, seed } = step;
        let (mix, most, rate) = (self.mix.clone(), None, None);
        let wanted = TransfersPlan { mix, clients, duration, most, seed, rate };
        // Files that exist may have another size than those that would be made.
        let plan = fit(&self.target, &wanted)?;
        let out = self.config.out.as_ref();
        let dir: Option<PathBuf> = out.map(|dir| dir.join(format!("clients-{clients:03}")));
        if let Some(dir) = &dir {
            std::fs::create_dir(dir).map_err(MeterError::cannot("make", dir))?;
        }
        let mut log =
            RunLog::open(self.target.log_dir(dir.as_deref()), self.config.target.is_simulated())?;
        let mut watched = WatchedLog { log: log.sink(), alarm };
        let go_on = &mut |progress: RunProgress| {
            alarm.look(progress.elapsed);
            let elapsed = time(progress.elapsed);
            let clients = count(clients, "client");
            observer.status(&format!("{clients}: {elapsed}, {}", progress.bytes));
            !observer.is_stopped()
        };
        let live = self.metrics.live();
        let outcome = attempt(&self.target, &plan, &mut watched, live, go_on, observer);
        record::note_lost(log.finish()?.as_ref(), &count(clients, "client"), observer);
        outcome
    }
}

const HEAD: [&str; 7] = [
    ">clients",
    "operation",
    ">transfers",
    ">rate of a client",
    ">mean latency",
    ">longest",
    ">rate of all",
];

/// One row for each step and operation.
fn rows(done: &[StepResult]) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    for StepResult { step, outcome, .. } in done {
        let mut total = outcome.total_rate().to_string();
        for (name, row) in by_operation(outcome) {
            rows.push(vec![
                step.clients.to_string(),
                name,
                row.transfers.to_string(),
                row.rate().to_string(),
                time(row.mean_latency()),
                time(row.longest_latency),
                // The total stands once per step, in its first row.
                std::mem::take(&mut total),
            ]);
        }
    }
    rows
}

fn summary(config: &RampConfig, done: &[StepResult]) -> Value {
    let RampConfig { script, profile, target, step_length, seed, .. } = config;
    let length = step_length.unwrap_or(Duration::from_secs(script.step_s));
    let steps = done.iter().map(|StepResult { step, outcome, threshold, .. }| {
        let mut object = figures(outcome);
        object["threshold"] = threshold.clone();
        object["clients"] = json!(step.clients);
        object
    });
    json!({
        "scenario": {
            "script": script,
            "profile": profile,
            "target": target.target,
            "step": length.as_secs_f64(),
            "size": target.size.0,
            "fill_level": target.fill_level,
            "buffered": target.buffered,
            "seed": seed,
            "agents": target.agents.as_ref().map(AgentsConfig::names),
            "workers": target.agents.as_ref().map(|agents| agents.workers),
        },
        "complete": done.iter().all(|done| done.outcome.complete),
        "steps": steps.collect::<Vec<_>>(),
    })
}

fn page(config: &RampConfig, done: &[StepResult]) -> Result<Page, MeterError> {
    let mut head = HEAD;
    head[5] = "longest latency";
    let rate = plot_of(done, "Rate of a client, by number of clients", "MB/s", |row| {
        float(row.rate().0) / 8e6
    });
    let latency = plot_of(done, "Mean latency, by number of clients", "ms", |row| {
        row.mean_latency().as_secs_f64() * 1e3
    });
    // Beside the rate of a client: the sum shows where more clients add nothing.
    let total = |done: &StepResult| {
        (f64::from(done.step.clients), float(done.outcome.total_rate().0) / 8e6)
    };
    let totals = Series::new("all", LineShape::Line, done.iter().map(total).collect());
    let all = Plot::new("Rate of all clients together", "clients", "MB/s", vec![totals]);
    Ok(Page {
        title: config.script.title.clone(),
        summary: format!(
            "{} on {}. {}",
            config.profile.title, config.target.target, config.script.source
        ),
        blocks: vec![
            rate.block(
                "Bytes over the time in block transfers. Level: the storage has more to give. \
                         Falling as one over the number: clients share what there is.",
            )?,
            latency.block(
                "What a transfer takes beside its blocks. Rising steeply: the storage is at \
                            its end.",
            )?,
            all.block("Where it no longer rises, more clients get no more out of it.")?,
            Block::table(&head, rows(done)),
        ],
    })
}

fn plot_of(done: &[StepResult], title: &str, unit: &str, of: impl Fn(&TransferRow) -> f64) -> Plot {
    let points = done.iter().flat_map(|StepResult { step, outcome, .. }| {
        let rows = by_operation(outcome).into_iter();
        rows.map(|(name, row)| (name, (f64::from(step.clients), of(&row))))
    });
    Plot::new(title, "clients", unit, Series::by_name(LineShape::Line, points))
}
