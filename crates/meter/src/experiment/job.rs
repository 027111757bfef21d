//! Jobs: groups of streams of several profiles, on one or several targets, in one run with a common
//! start (`meter run JOB.toml`).
//!
//! ```text
//!   JobFile ── prepare: open, share, plan ──▶ JobUnit, JobUnit ...
//!                                               │ a thread each, released together
//!     file, directory, bucket    one group      ├─ StreamRuns::measure ──▶ Measured
//!     sim:MODEL                  all its groups └─ one disk in virtual time ──▶ Measured, ...
//! ```
//!
//! Groups that name the same file, device or simulated disk get equal parts of it, so that none
//! reads what another has brought into a cache.

use super::agents_target::AgentsConfig;
use super::inputs::load_profile;
use super::job_agents::{JobOnAgents, run_on_agents};
use super::job_file::{Direction, GroupSpec, JobFile};
use super::job_page::{GroupResult, JobReport};
use super::metrics::MetricsServer;
use super::rate_alarm::{RateAlarm, RateAlarmConfig, WatchedLog};
use super::record::{self, ExperimentReport, RunLog};
use super::streams::{Measured, RunLength, StartGate, StreamRuns, StreamsConfig};
use super::target::{OpenTarget, TargetPath, TargetSpec};
use crate::error::MeterError;
use crate::fleet::FilePart;
use crate::live::{Live, Metered};
use crate::observer::Observer;
use crate::profiles::Profile;
use crate::progress::RunProgress;
use crate::streams::{LiveFigures, LiveSample, StreamGroup, StreamsPlan};
use crate::target::LeftBehind;
use device::Method;
use s3::S3Access;
use serde_json::Value;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;
use units::{ByteCount, Reason, locked};

/// A job file and the settings that all its groups share.
#[derive(Clone)]
pub struct JobConfig {
    /// The job file.
    pub file: PathBuf,
    /// The length of the run, instead of the job's.
    pub duration: Option<Duration>,
    /// Length of a run if neither the user nor the job says it.
    pub usual: Duration,
    /// Frames that a client buffers, of groups that do not say it.
    pub buffer: u32,
    /// The total size of the files of a group that does not say it.
    pub size: ByteCount,
    /// Overwrite existing files and devices.
    pub destructive: bool,
    /// Endpoint, keys and certificates of buckets.
    pub access: S3Access,
    /// The machines on which all groups run; `None` for this one.
    pub agents: Option<AgentsConfig>,
    /// As in [`StreamsConfig::realtime`].
    pub realtime: bool,
    /// As in [`StreamsConfig::spin`].
    pub spin: bool,
    /// Address at which counters are served during the run.
    pub metrics: Option<SocketAddr>,
    /// New directory for the report and all figures.
    pub out: Option<PathBuf>,
}

/// Groups that share a port, and the storage behind it.
struct JobUnit {
    groups: Vec<JobGroup>,
    target: OpenTarget,
}

/// A group that is ready to run.
struct JobGroup {
    /// The group's number in the job, from 0.
    number: usize,
    name: String,
    runs: StreamRuns,
    plan: StreamsPlan,
    alarm: RateAlarmConfig,
    log: RunLog,
    dir: Option<PathBuf>,
    sample: Arc<LiveSample>,
}

/// What the threads of a job share with the thread that started them.
struct JobThread {
    stop: Arc<AtomicBool>,
    /// One group cannot go on, and the run ends.
    failed: Arc<AtomicBool>,
    shown: Arc<JobShown>,
    notes: Mutex<Vec<String>>,
    left: LeftBehind,
}

/// What a thread of a job leaves to be shown while it runs.
#[derive(Default)]
struct JobShown {
    progress: Mutex<RunProgress>,
    /// Crossings of thresholds, in words and as objects.
    crossings: Mutex<Vec<(String, Value)>>,
}

impl JobShown {
    /// Shows the crossings since the last call.
    fn show_crossings(&self, observer: &dyn Observer) {
        let crossings = std::mem::take(&mut *locked(&self.crossings));
        crossings.iter().for_each(|(text, event)| observer.crossing(text, event));
    }
}

impl Observer for JobThread {
    fn note(&self, text: &str) {
        locked(&self.notes).push(text.to_owned());
    }

    fn left_behind(&self) -> LeftBehind {
        self.left.clone()
    }

    fn crossing(&self, text: &str, event: &Value) {
        let mut crossings = locked(&self.shown.crossings);
        crossings.push((text.to_owned(), event.clone()));
    }

    fn stop(&self) -> &Arc<AtomicBool> {
        &self.stop
    }
}

/// The live figures of all groups, in their order.
struct JobFigures {
    samples: Vec<(usize, String, Arc<LiveSample>)>,
    latest: Vec<LiveFigures>,
}

impl JobFigures {
    fn of(units: &[JobUnit]) -> Self {
        let groups = units.iter().flat_map(|unit| &unit.groups);
        let sample =
            |group: &JobGroup| (group.number, group.name.clone(), Arc::clone(&group.sample));
        let mut samples: Vec<_> = groups.map(sample).collect();
        samples.sort_by_key(|(number, ..)| *number);
        Self { latest: vec![LiveFigures::default(); samples.len()], samples }
    }

    /// Shows the figures if those of some group have changed.
    fn show_new(&mut self, observer: &dyn Observer) {
        let mut new = false;
        for ((_, name, sample), latest) in self.samples.iter().zip(&mut self.latest) {
            if let Some(figures) = sample.figures() {
                *latest = LiveFigures { name: name.clone(), ..figures };
                new = true;
            }
        }
        if new {
            observer.figures(&self.latest);
        }
    }
}

/// Runs all groups of a job file once, at the same time, and reports on each.
pub fn run_job(
    config: &JobConfig,
    observer: &dyn Observer,
) -> Result<ExperimentReport, MeterError> {
    let name = config.file.display().to_string();
    let text = std::fs::read_to_string(&config.file).map_err(|error| {
        MeterError::cannot("read", &config.file)(error)
            .into_usage()
            .hint("name a job file; docs/guide/measure-storage.md describes it")
    })?;
    let about = |reason: Reason| MeterError::from(reason.about(&name)).into_usage();
    let job = JobFile::read(&text).map_err(about)?;
    let specs = job.groups().map_err(about)?;
    let dir = config.out.as_deref();
    let all = runs_of(config, &job, &specs, observer)?;
    let metrics = MetricsServer::open(config.metrics, observer)?;
    record::prepare(dir)?;
    if let Some(agents) = &config.agents {
        let jobs = JobOnAgents { job: &name, agents, specs: &specs, dir };
        return run_on_agents(&jobs, all, metrics.live(), observer);
    }
    let units = prepare(all, &specs, dir, observer)?;
    let plans = units.iter().flat_map(|unit| &unit.groups).map(|group| &group.plan);
    let streams = plans.clone().map(|plan| plan.streams).sum();
    let duration = plans.map(|plan| plan.duration).max().unwrap_or_default();
    let live = metrics.live();
    live.into_iter().for_each(|live| live.begin(streams));
    let done = run_units(units, duration, live, observer)?;
    JobReport { job: &name, groups: done, agents: None }.finish(dir, observer)
}

/// The experiment of each group, all with the same length.
fn runs_of(
    config: &JobConfig,
    job: &JobFile,
    specs: &[GroupSpec],
    observer: &dyn Observer,
) -> Result<Vec<(StreamRuns, u32)>, MeterError> {
    let given = config.duration.or(job.duration);
    let duration = given.map_or(RunLength::AtLeast(config.usual), RunLength::Exactly);
    let mut all = Vec::new();
    for spec in specs {
        let of = |error| about_group(&spec.name, error);
        let streams = spec.keys.streams.unwrap_or(1);
        let profile = profile_of(spec, streams).map_err(of)?;
        let target = target_of(config, spec);
        let simulated = target.is_simulated();
        let streams_config = StreamsConfig {
            profile,
            target,
            layout: match spec.keys.layout {
                // A model of a disk has no files: their positions are those of parts of one file.
                layout if simulated => {
                    Some(layout.filter(|layout| layout.is_single()).unwrap_or_default())
                }
                layout => layout,
            },
            buffer: spec.keys.buffer_frames.unwrap_or(config.buffer),
            duration,
            realtime: config.realtime,
            spin: config.spin,
            metrics: None,
        };
        all.push((StreamRuns::new(&streams_config, observer).map_err(of)?, streams));
    }
    // On agents a threshold is refused whatever its window.
    for ((runs, _), spec) in all.iter_mut().zip(specs).filter(|_| config.agents.is_none()) {
        runs.make_room_for(&alarm_of(spec)).map_err(|error| about_group(&spec.name, error))?;
    }
    // All groups run for as long as the one with the longest buffers or window needs.
    let length = all.iter().map(|(runs, _)| runs.length).max().unwrap_or_default();
    for (number, (runs, _)) in (0..).zip(&mut all) {
        (runs.length, runs.set) = (length, number);
    }
    if let Some((runs, _)) = all.iter().max_by_key(|(runs, _)| runs.confirming()) {
        runs.note_length(length, observer);
    }
    Ok(all)
}

/// The error of one of several groups.
pub(super) fn about_group(name: &str, error: MeterError) -> MeterError {
    error.about(format!("group {name}"))
}

fn profile_of(spec: &GroupSpec, streams: u32) -> Result<Profile, MeterError> {
    let mut profile = load_profile(&spec.profile).map_err(MeterError::into_usage)?;
    match spec.keys.direction {
        Some(Direction::Read) => profile.read_percent = 100,
        Some(Direction::Write) => profile.read_percent = 0,
        None => {}
    }
    let wrong = |reason: Reason| MeterError::from(reason).into_usage();
    if let Some(frames) = spec.keys.read_frames {
        profile = profile.in_reads_of(frames).map_err(wrong)?;
    }
    let Some(rate) = spec.keys.rate else { return Ok(profile) };
    profile.at_rate(rate, streams).map_err(wrong)
}

fn target_of(config: &JobConfig, spec: &GroupSpec) -> TargetSpec {
    let keys = &spec.keys;
    TargetSpec {
        target: spec.target.clone(),
        path: TargetPath::Typed,
        size: keys.size.unwrap_or(config.size),
        fill_level: keys.fill_level,
        names: keys.names.clone(),
        existing: keys.existing.unwrap_or(false),
        buffered: keys.buffered.unwrap_or(false),
        // Of the others only those that write could overwrite anything.
        destructive: config.destructive && Path::new(&spec.target).exists(),
        method: keys.method.unwrap_or(Method::Best),
        drop_caches: keys.drop_caches.unwrap_or(false),
        verify: keys.verify.unwrap_or(false),
        access: config.access.clone(),
        agents: config.agents.clone(),
    }
}

fn alarm_of(spec: &GroupSpec) -> RateAlarmConfig {
    let keys = &spec.keys;
    RateAlarmConfig {
        rate: keys.threshold,
        window: keys.threshold_window,
        each: keys.threshold_each.unwrap_or(false),
    }
}

/// Opens the targets and plans the groups, those of one simulated disk together.
fn prepare(
    all: Vec<(StreamRuns, u32)>,
    specs: &[GroupSpec],
    dir: Option<&Path>,
    observer: &dyn Observer,
) -> Result<Vec<JobUnit>, MeterError> {
    let mut users: BTreeMap<&str, u64> = BTreeMap::new();
    specs.iter().for_each(|spec| *users.entry(&spec.target).or_default() += 1);
    let mut begun: BTreeMap<&str, u64> = BTreeMap::new();
    let mut order: Vec<(usize, (StreamRuns, u32))> = all.into_iter().enumerate().collect();
    // A device that is written is opened for writing, and only once: by its first group.
    order.sort_by_key(|(_, (runs, _))| runs.config.profile.read_percent == 100);
    let mut units: Vec<JobUnit> = Vec::new();
    for (number, (mut runs, streams)) in order {
        let GroupSpec { name, target: at, .. } = &specs[number];
        let of = |error| about_group(name, error);
        let spec = runs.config.target.clone();
        let same = units.iter().position(|unit| {
            unit.groups.first().is_some_and(|group| group.runs.config.target.target == *at)
        });
        let joined = same.filter(|_| spec.is_simulated());
        let same_file = match same {
            Some(same) if !spec.is_simulated() => units[same].target.shared(spec.method),
            _ => None,
        };
        let target = match (same_file, joined) {
            (_, Some(_)) => None,
            (Some(target), None) => Some(target),
            (None, None) => Some(runs.open(streams..=streams, observer).map_err(of)?),
        };
        let own_or_joined = target.as_ref().or(joined.map(|same| &units[same].target));
        let opened = own_or_joined.expect("a target of its own, or of the unit that it joins");
        let (users, before) = (users[&**at], begun.entry(at).or_default());
        let part = FilePart { number: *before, of: users };
        *before += 1;
        let shared = users > 1 && spec.is_one() && !spec.is_null();
        let base = if shared { runs.use_part(opened.shape(), part) } else { 0 };
        let plan = runs.plan(streams, runs.length, opened);
        let plan = plan.map_err(|error| about_group(name, error))?.from(base);
        let dir = record::run_directory(dir, number + 1, name)?;
        let log = RunLog::open(dir.as_deref(), spec.is_simulated())?;
        let sample = Arc::default();
        let alarm = alarm_of(&specs[number]);
        let group = JobGroup { number, name: name.clone(), runs, plan, alarm, log, dir, sample };
        match (target, joined) {
            (Some(target), _) => units.push(JobUnit { groups: vec![group], target }),
            (None, Some(same)) => units[same].groups.push(group),
            (None, None) => unreachable!("a group without target joins another"),
        }
    }
    Ok(units)
}

/// Runs all units from one start, and returns their groups in the order of the job.
fn run_units(
    units: Vec<JobUnit>,
    duration: Duration,
    live: Option<&Live>,
    observer: &dyn Observer,
) -> Result<Vec<GroupResult>, MeterError> {
    let gate = StartGate::new(units.len());
    let failed = Arc::new(AtomicBool::new(false));
    let wants = observer.wants_figures();
    let mut figures = JobFigures::of(&units);
    let results = thread::scope(|scope| {
        let mut threads = Vec::new();
        for unit in units {
            let mine = JobThread {
                stop: Arc::clone(observer.stop()),
                failed: Arc::clone(&failed),
                shown: Arc::default(),
                notes: Mutex::default(),
                left: observer.left_behind(),
            };
            let (gate, shown) = (&gate, Arc::clone(&mine.shown));
            threads.push((shown, scope.spawn(move || run_unit(unit, gate, live, wants, mine))));
        }
        // The measuring threads never wait for what is shown.
        while threads.iter().any(|(_, thread)| !thread.is_finished()) {
            thread::sleep(SHOWN_EVERY);
            let mut all = RunProgress::default();
            for (shown, _) in &threads {
                shown.show_crossings(observer);
                all = all.and(*locked(&shown.progress));
            }
            observer.status(&all.status(duration));
            figures.show_new(observer);
        }
        let results = threads.into_iter().map(|(shown, thread)| {
            let result = thread.join().expect("a measuring thread does not panic");
            shown.show_crossings(observer);
            result
        });
        results.collect::<Vec<_>>()
    });
    groups_of(results, observer)
}

/// The notes of a unit, and the results of its groups.
type UnitResult = (Vec<String>, Result<Vec<GroupResult>, MeterError>);

/// The groups of all units in their order; the error that ended the job, if there is one.
fn groups_of(
    results: Vec<UnitResult>,
    observer: &dyn Observer,
) -> Result<Vec<GroupResult>, MeterError> {
    let (mut done, mut first) = (Vec::new(), None);
    for (notes, result) in results {
        notes.iter().for_each(|note| observer.note(note));
        match result {
            Ok(groups) => done.extend(groups),
            // Those that stopped because of another group are no cause.
            Err(error) => {
                let cause = error.kind != crate::error::MeterErrorKind::Interrupted;
                if first.is_none() || cause {
                    first = Some(error);
                }
            }
        }
    }
    done.sort_by_key(|group: &GroupResult| group.number);
    first.map_or(Ok(done), Err)
}

/// The interval at which progress is shown.
const SHOWN_EVERY: Duration = Duration::from_millis(50);

/// Runs the groups of a unit. Returns what there is to note, and the results.
fn run_unit(
    unit: JobUnit,
    gate: &StartGate,
    live: Option<&Live>,
    wants: bool,
    thread: JobThread,
) -> UnitResult {
    let JobUnit { mut groups, target } = unit;
    let measured = {
        let runs = groups[0].runs.clone();
        let alarms: Vec<RateAlarm<'_>> = groups
            .iter()
            .map(|JobGroup { name, plan, alarm, .. }| {
                RateAlarm::new(alarm, plan.allowed(), plan.streams, &thread).of_group(name)
            })
            .collect();
        let mut watched: Vec<(&StreamsPlan, Option<&LiveSample>, WatchedLog<'_>)> = groups
            .iter_mut()
            .zip(&alarms)
            .map(|(group, alarm)| {
                let sample = wants.then_some(&*group.sample);
                (&group.plan, sample, WatchedLog { log: group.log.sink(), alarm })
            })
            .collect();
        let mut logs: Vec<(&StreamsPlan, Option<&LiveSample>, Metered<'_>)> = watched
            .iter_mut()
            .map(|(plan, sample, log)| (*plan, *sample, Metered { log, live }))
            .collect();
        let mut together: Vec<StreamGroup<'_>> = logs
            .iter_mut()
            .map(|(plan, sample, log)| StreamGroup { plan, log, sample: *sample })
            .collect();
        let mut go_on = |progress: RunProgress| {
            *locked(&thread.shown.progress) = progress;
            alarms.iter().for_each(|alarm| alarm.look(progress.elapsed));
            !thread.is_stopped() && !thread.failed.load(Ordering::Relaxed)
        };
        let measured = runs.measure(&target, &mut together, Some(gate), &mut go_on, &thread);
        let with_alarm = |(measured, alarm): (Measured, &RateAlarm<'_>)| {
            if measured.outcome.complete {
                alarm.look_at_end(runs.length);
            }
            let held = alarm.check_held().and_then(|()| match measured.outcome.complete {
                true => alarm.check_seen(),
                false => Ok(()),
            });
            (measured, (alarm.json(), held))
        };
        measured.map(|all| all.into_iter().zip(&alarms).map(with_alarm).collect::<Vec<_>>())
    };
    let measured = measured.map_err(|error| {
        thread.failed.store(true, Ordering::Relaxed);
        about_group(&groups[0].name, error)
    });
    let results = measured.map(|measured| {
        let pairs = groups.into_iter().zip(measured);
        pairs.map(|(group, (measured, alarm))| group.result(measured, alarm, &target)).collect()
    });
    (thread.notes.into_inner().unwrap_or_else(PoisonError::into_inner), results)
}

impl JobGroup {
    fn result(
        self,
        Measured { outcome, attribution }: Measured,
        (threshold, above): (Value, Result<(), MeterError>),
        target: &OpenTarget,
    ) -> GroupResult {
        GroupResult {
            number: self.number,
            name: self.name,
            subject: self.runs.subject(target.caches()),
            written: self.log.finish(),
            verified: target.verified(),
            whole: target.check_whole(),
            threshold,
            above,
            plan: self.plan,
            dir: self.dir,
            outcome,
            attribution,
        }
    }
}

#[cfg(test)]
mod tests;
