//! Jobs on many machines: the groups of a job file on agents, each group with workers of its own.
//!
//! ```text
//!   group ── WorkerTask ──▶ every agent: --workers processes of that group
//!   all groups ── AgentsTarget::streams, from one start ──▶ a result of each group
//! ```

use super::agents_target::{AgentsConfig, AgentsTarget};
use super::job::about_group;
use super::job_file::GroupSpec;
use super::job_page::{GroupResult, JobReport};
use super::record::{self, ExperimentReport};
use super::streams::{Measured, StreamRuns};
use super::target::verified_whole;
use crate::error::MeterError;
use crate::fleet::{FilePart, StreamsWork, WorkerTask, WorkerWork};
use crate::live::Live;
use crate::observer::Observer;
use crate::progress::RunProgress;
use crate::streams::StreamsPlan;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

/// A job and the agents that run it.
pub(super) struct JobOnAgents<'a> {
    /// The job file's name.
    pub(super) job: &'a str,
    pub(super) agents: &'a AgentsConfig,
    pub(super) specs: &'a [GroupSpec],
    /// The directory of the report.
    pub(super) dir: Option<&'a Path>,
}

/// Runs all groups on all agents at the same time, and reports on each.
pub(super) fn run_on_agents(
    JobOnAgents { job, agents, specs, dir }: &JobOnAgents<'_>,
    all: Vec<(StreamRuns, u32)>,
    live: Option<&Live>,
    observer: &dyn Observer,
) -> Result<ExperimentReport, MeterError> {
    specs.iter().try_for_each(check_keys)?;
    let target = AgentsTarget::open(agents, &tasks(&all, specs, agents), observer)?;
    let mut plans: Vec<StreamsPlan> = Vec::new();
    for (((runs, streams), spec), facts) in all.iter().zip(*specs).zip(target.all_facts()) {
        let share = target.share(*streams);
        let plan = runs.plan_in(facts.shape, *streams, share, runs.length);
        plans.push(plan.map_err(|error| about_group(&spec.name, error))?);
    }
    live.into_iter().for_each(|live| live.begin(plans.iter().map(|plan| plan.streams).sum()));
    let names: Vec<&str> = specs.iter().map(|spec| &*spec.name).collect();
    let mut go_on = |_: RunProgress| true;
    let each: Vec<&StreamsPlan> = plans.iter().collect();
    let measured: Vec<Measured> = target.streams(&each, &names, live, &mut go_on, observer)?;
    let mut groups = Vec::new();
    for (number, (((runs, _), plan), measured)) in all.iter().zip(plans).zip(measured).enumerate() {
        let Measured { outcome, attribution } = measured;
        let verified = target.verified_of_task(number);
        groups.push(GroupResult {
            number,
            name: specs[number].name.clone(),
            subject: runs.subject(&target.all_facts()[number].caches),
            dir: record::run_directory(*dir, number + 1, &specs[number].name)?,
            // Agents keep no log.
            written: Ok(None),
            whole: verified.as_ref().map_or(Ok(()), verified_whole),
            verified,
            threshold: Value::Null,
            above: Ok(()),
            plan,
            outcome,
            attribution,
        });
    }
    JobReport { job, groups, agents: Some(&target) }.finish(*dir, observer)
}

/// What the workers of each group prepare.
fn tasks(all: &[(StreamRuns, u32)], specs: &[GroupSpec], agents: &AgentsConfig) -> Vec<WorkerTask> {
    let mut users: BTreeMap<&str, u64> = BTreeMap::new();
    specs.iter().for_each(|spec| *users.entry(&spec.target).or_default() += 1);
    let mut begun: BTreeMap<&str, u64> = BTreeMap::new();
    let mut tasks = Vec::new();
    for ((runs, streams), spec) in all.iter().zip(specs) {
        let target = spec.target.as_str();
        let number = begun.entry(target).or_default();
        // Each agent knows whether its target is one file, which groups share.
        let part = FilePart { number: *number, of: users[target] };
        *number += 1;
        let work = StreamsWork { part: Some(part), ..runs.work(*streams, agents) };
        tasks.push(runs.config.target.task(WorkerWork::Streams(work)));
    }
    tasks
}

/// Refuses a group with a key that agents do not have.
fn check_keys(spec: &GroupSpec) -> Result<(), MeterError> {
    let keys = &spec.keys;
    let refused = [
        ("names", keys.names.is_some()),
        ("existing", keys.existing == Some(true)),
        ("threshold", keys.threshold.is_some()),
    ];
    let Some((key, _)) = refused.iter().find(|(_, given)| *given) else { return Ok(()) };
    let error = MeterError::usage(format!("{key} is not for agents"))
        .hint("leave it out, or measure from this machine, without --agents and --hosts");
    Err(about_group(&spec.name, error))
}
