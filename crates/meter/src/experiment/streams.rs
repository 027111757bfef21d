//! Paced streams on a target: one run (`meter run`), and the largest number that the target holds
//! (`meter capacity`).
//!
//! ```text
//!   StreamsConfig ── new: check ──▶ StreamRuns ── open ──▶ OpenTarget
//!                               plan ──▶ Plan │              │ port ──▶ Port
//!                                             └─ attempt ── streams::run ──▶ Outcome
//! ```

use super::agents_page::AgentFigures;
use super::agents_target::{AgentsConfig, WorkerResult};
use super::attribution::{self, Attribution, check_complete, check_valid};
use super::capacity::{self, SearchConfig};
use super::metrics::MetricsServer;
use super::port::{Traffic, close_port};
use super::rate_alarm::{RateAlarm, RateAlarmConfig, WatchedLog};
use super::record::{self, ExperimentReport, RunLog};
use super::run_report::{RunFigures, Subject, grows, outcome_json};
use super::search::{Probe, judge_run};
use super::start_barrier::StartBarrier;
use super::target::{FileNeeds, OpenTarget, TargetSpec};
use crate::blame::{Sampler, beneath};
use crate::capacity::{HoldRule, Purpose, SearchStep};
use crate::error::MeterError;
use crate::fleet::{FilePart, StreamsWork, WorkerWork};
use crate::live::Metered;
use crate::log::RecordSink;
use crate::observer::{Observer, StatusPace};
use crate::profiles::{self, Fps, Pattern, Profile};
use crate::progress::RunProgress;
use crate::report::{StreamDemand, facts, late, moved, quantiles, time};
use crate::streams::{
    self, CONFIRMING, LiveSample, PlanError, StreamGroup, StreamStats, StreamsOutcome, StreamsPlan,
    long_enough,
};
use crate::target::{FileSet, FrameNames, Layout, Port};
use device::Method;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::num::NonZeroU64;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Barrier, OnceLock};
use std::time::{Duration, Instant};
use units::{BitRate, ByteCount, Moment, align_down, nanos, show};

/// The settings of paced streams on a target that a run and a search share.
#[derive(Clone)]
pub struct StreamsConfig {
    /// The demand of one stream.
    pub profile: Profile,
    /// The storage that is measured.
    pub target: TargetSpec,
    /// How streams share files; `None` for the profile's layout.
    pub layout: Option<Layout>,
    /// Frames that a client buffers.
    pub buffer: u32,
    /// Length of a run.
    pub duration: RunLength,
    /// The measuring thread gets the realtime class and runs before all other threads of this
    /// machine.
    pub realtime: bool,
    /// The measuring thread polls the clock instead of sleeping until the next frame is due.
    pub spin: bool,
    /// Address at which counters are served while runs are in progress.
    pub metrics: Option<SocketAddr>,
}

/// The length of a run of streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunLength {
    /// This long, whether it shows that streams are held or not.
    Exactly(Duration),
    /// At least this long, and long enough to show whether streams are held.
    AtLeast(Duration),
}

impl RunLength {
    /// The length for clients that buffer for `allowed`.
    pub fn of(self, allowed: Duration) -> Duration {
        match self {
            Self::Exactly(length) => length,
            Self::AtLeast(length) => length.max(long_enough(allowed)),
        }
    }
}

/// One run of streams.
#[derive(Clone)]
pub struct StreamRunConfig {
    /// The streams and their target.
    pub streams: StreamsConfig,
    /// Number of streams.
    pub count: u32,
    /// The rate below which an alarm is raised.
    pub alarm: RateAlarmConfig,
    /// Wait for a line on standard input once everything is prepared.
    pub hold: bool,
    /// New directory for the report and all figures.
    pub out: Option<PathBuf>,
}

/// Runs streams once and reports which frames were late.
pub fn run_streams(
    config: &StreamRunConfig,
    observer: &dyn Observer,
) -> Result<ExperimentReport, MeterError> {
    let dir = config.out.as_deref();
    config.alarm.check()?;
    let mut runs = StreamRuns::new(&config.streams, observer)?;
    let window = runs.make_room_for(&config.alarm)?;
    record::prepare(dir)?;
    let target = runs.open(config.count..=config.count, observer)?;
    let plan = runs.plan(config.count, runs.length, &target)?;
    match window {
        None => runs.note_length(plan.duration, observer),
        Some(window) => observer.note(&format!(
            "{}, as long as the window of --threshold",
            show::length(window.as_secs_f64())
        )),
    }
    // Everything that takes time is prepared by now, so that held runs start together.
    let mut barrier = StartBarrier::wait(config.hold, observer)?;
    let alarm = RateAlarm::new(&config.alarm, plan.allowed(), plan.streams, observer);
    let mut pace = StatusPace::default();
    let mut go_on = |progress: RunProgress| {
        barrier.signal(&progress, observer);
        if pace.is_due() {
            observer.status(&progress.status(plan.duration));
        }
        alarm.look(progress.elapsed);
        !observer.is_stopped()
    };
    let mut log = RunLog::open(target.log_dir(dir), runs.config.target.is_simulated())?;
    let mut watched = WatchedLog { log: log.sink(), alarm: &alarm };
    let outcome = runs.attempt(&target, &plan, &mut watched, &mut go_on, observer);
    // The log is ended even if the run failed, so that what was measured is kept.
    let written = log.finish();
    let Measured { outcome, attribution } = outcome?;
    if outcome.complete {
        alarm.look_at_end(plan.duration);
    }

    let subject = runs.subject(target.caches());
    let demand = StreamDemand { allowed: plan.allowed(), rate: plan.rate() };
    let figures = RunFigures {
        subject: &subject,
        demand: Some(demand),
        outcome: &outcome,
        attribution: attribution.as_ref(),
    };
    let mut summary = figures.summary();
    summary["threshold"] = alarm.json();
    record::add_log(&mut summary, &written);
    target.describe(&mut summary);
    let page = || target.extend(figures.page(&summary)?);
    let saved = record::save(dir, &summary, page, observer)
        .and_then(|()| record::write_seconds(dir, &outcome));
    let text = target.text() + &text(&figures, &plan);
    // A report that cannot be saved is still shown; the verdict contains the error.
    let verdict = written.and_then(|written| {
        saved?;
        target.check_whole()?;
        if !outcome.complete {
            check_complete(&outcome)?;
            return Err(MeterError::interrupted(INTERRUPTED));
        }
        check_valid(&outcome, attribution.as_ref())?;
        record::check_log(written.as_ref())?;
        record::check_held(&outcome)?;
        alarm.check_held()?;
        alarm.check_seen()
    });
    Ok(ExperimentReport { summary, text, verdict })
}

/// The message of a run that the user interrupted.
pub(super) const INTERRUPTED: &str = "interrupted: this is what there was until then";

/// The message of a run that another one of the same job keeps from beginning.
const NOT_BEGUN: &str = "not begun: another group could not begin";

/// Searches the largest number of streams that the target holds.
pub fn search_streams(
    config: &StreamsConfig,
    search: &SearchConfig,
    observer: &dyn Observer,
) -> Result<ExperimentReport, MeterError> {
    let dir = search.out.as_deref();
    let runs = StreamRuns::new(config, observer)?;
    record::prepare(dir)?;
    let target = runs.open(1..=search.max_streams, observer)?;
    // The target may have room for fewer streams than the search was asked for.
    let one = runs.plan(1, runs.length, &target)?;
    runs.note_length(runs.confirming(), observer);
    let most = target.most_streams(target.shape(), one.stride());
    let max_streams = search.max_streams.min(most);
    let endures = |streams| runs.enduring(search.confirm, one.fps, streams);
    let mut made = 0;
    let mut run = |step: SearchStep| {
        // Counted before the run, so that the directory of a failed run keeps its number.
        made += 1;
        let dir = record::run_directory(dir, made, step.streams)?;
        let mut log = RunLog::open(target.log_dir(dir.as_deref()), config.target.is_simulated())?;
        let enduring = endures(step.streams).filter(|_| step.purpose == Purpose::Endure);
        let length = enduring.unwrap_or_else(|| runs.length_of(step));
        let probe = runs.probe(&target, search.rule, step, length, log.sink(), observer);
        let written = log.finish();
        let probe = probe?;
        record::note_lost(written?.as_ref(), &show::count(step.streams, "stream"), observer);
        record::write_seconds(dir.as_deref(), &probe.outcome)?;
        let delivered = probe.delivered(one.rate());
        Ok((probe, delivered))
    };
    let search = SearchConfig { max_streams, ..search.clone() };
    let endures = |streams| endures(streams).is_some();
    let subject = runs.subject(target.caches());
    capacity::find(&search, &subject, &mut run, &endures, Some(&target), observer)
}

/// The runs of an experiment with streams, whose configuration has been checked.
#[derive(Clone)]
pub(super) struct StreamRuns {
    pub(super) config: StreamsConfig,
    /// Length of a run.
    pub(super) length: Duration,
    /// The time of a client's buffer.
    allowed: Duration,
    /// How streams share files.
    pub(super) layout: Layout,
    /// The largest part of the target that is used.
    pub(super) within: Option<ByteCount>,
    /// No storage: only the meter is measured.
    pub(super) null: bool,
    /// All that is used is read once when the target is opened.
    pub(super) warm: bool,
    /// The number of the set of files, of those that this program makes in one directory.
    pub(super) set: u32,
    metrics: MetricsServer,
}

/// The common start of several measurements in threads of their own.
pub(super) struct StartGate {
    ready: Barrier,
    /// Whether one of them cannot begin.
    off: AtomicBool,
    at: OnceLock<Instant>,
}

impl StartGate {
    /// A gate for this number of threads.
    pub(super) fn new(threads: usize) -> Self {
        Self { ready: Barrier::new(threads), off: AtomicBool::new(false), at: OnceLock::new() }
    }

    /// Waits until all threads are here; `prepared` says whether this one can begin. Returns the
    /// common start, or `None` if one of them cannot. Every thread calls this once.
    fn pass(&self, prepared: bool) -> Option<Instant> {
        self.off.fetch_or(!prepared, Ordering::Relaxed);
        self.ready.wait();
        let start = *self.at.get_or_init(|| Instant::now() + AFTER_THE_GATE);
        (!self.off.load(Ordering::Relaxed)).then_some(start)
    }
}

/// The length of the last run of a search on a simulated disk, where it has fewer operations than
/// [`MOST_OPERATIONS`].
pub(super) const A_DAY: Duration = Duration::from_secs(24 * 3600);

/// Operations of that run at most: some seconds of simulation.
const MOST_OPERATIONS: u64 = 10_000_000;

/// The page size: parts of a file begin at whole pages.
const PAGE: u64 = 4096;

/// The time from the last preparation to the common start: long enough for every thread to wake up
/// and to start its samplers.
const AFTER_THE_GATE: Duration = Duration::from_millis(100);

/// The moment of `start` on the clock of a port. A moment that has passed stays in the past, so
/// that the delay counts as the meter's.
fn moment_of(start: Instant, port: &dyn Port) -> Moment {
    let (now, at) = (Instant::now(), port.now());
    Moment(
        (at.0 + nanos(start.saturating_duration_since(now)))
            .saturating_sub(nanos(now.saturating_duration_since(start))),
    )
}

impl StreamRuns {
    pub(super) fn new(config: &StreamsConfig, observer: &dyn Observer) -> Result<Self, MeterError> {
        let StreamsConfig { profile, target, .. } = config;
        target.check()?;
        // Only a profile of files per frame needs the file system for each frame.
        let of_profile = match profile.pattern {
            Pattern::FilePerFrame => Layout::FilePerFrame,
            _ => Layout::OneFile,
        };
        let layout = config.layout.unwrap_or(of_profile);
        let method = target.method;
        if !layout.is_single() && method != Method::Best && method != Method::Threads {
            return Err(MeterError::usage(format!("--method {method} is for a single file"))
                .hint("many files are read and written by threads"));
        }
        // A real-time thread that polls starves every other thread of its processor, this program
        // included.
        if config.realtime && config.spin {
            return Err(MeterError::usage("--realtime and --busy-poll exclude each other")
                .hint("what never sleeps and goes before all others lets nothing else run"));
        }
        // An edited file keeps the name and the source that it was printed with.
        if let Some(same) =
            profiles::named(&profile.name).filter(|same| same.bytes != profile.bytes)
        {
            observer.note(&format!(
                "profile {} has {} bytes a frame, and the built-in one of that name {}: its source \
                 does not state them",
                profile.name, profile.bytes, same.bytes
            ));
        }
        let metrics = MetricsServer::open(config.metrics, observer)?;
        // A profile without frame rate is refused when its files are planned.
        let allowed = profile.fps.map_or(Duration::ZERO, |fps| fps.moment(config.buffer.into()));
        let length = config.duration.of(allowed);
        Ok(Self {
            config: config.clone(),
            length,
            allowed,
            layout,
            within: None,
            null: false,
            warm: false,
            set: 0,
            metrics,
        })
    }

    /// Makes the run as long as the window of an alarm, and returns that length if it was shorter.
    /// A length that the user chose stays: the alarm is refused if its window is longer.
    pub(super) fn make_room_for(
        &mut self,
        alarm: &RateAlarmConfig,
    ) -> Result<Option<Duration>, MeterError> {
        if let RunLength::Exactly(_) = self.config.duration {
            alarm.check_length(self.allowed, self.length, "--duration")?;
        }
        let longer = alarm.window(self.allowed).filter(|window| *window > self.length);
        self.length = longer.unwrap_or(self.length);
        Ok(longer)
    }

    /// Length of a confirming run: long enough even if the others are not.
    pub(super) fn confirming(&self) -> Duration {
        self.length.max(long_enough(self.allowed)) * CONFIRMING
    }

    /// Length of a run of a search, before its last stage.
    pub(super) fn length_of(&self, step: SearchStep) -> Duration {
        if step.long { self.confirming() } else { self.length }
    }

    /// Length of the run in which `streams` streams of `fps` operations per second have to hold at
    /// last: as asked, or on a simulated disk a day, because virtual time costs little. `None` if
    /// a confirming run is as long.
    fn enduring(&self, asked: Option<Duration>, fps: Fps, streams: u32) -> Option<Duration> {
        let virtual_day = || fps.moment(MOST_OPERATIONS / u64::from(streams.max(1))).min(A_DAY);
        let simulated = self.config.target.is_simulated();
        let length = asked.or_else(|| simulated.then(virtual_day))?;
        (length > self.confirming()).then_some(length)
    }

    /// Notes the length of the longest run if it is not the one that users of ordinary formats
    /// expect, or if it is too short to show that streams are held.
    pub(super) fn note_length(&self, longest: Duration, observer: &dyn Observer) {
        let (needed, buffer) = (long_enough(self.allowed), time(self.allowed));
        if longest < needed {
            observer.note(&format!(
                "{} are too short to show that streams are held for longer: a client buffers for \
                 {buffer}, and a backlog takes 11 times as long to show",
                show::length(longest.as_secs_f64())
            ));
        } else if let RunLength::AtLeast(usual) = self.config.duration
            && self.length > usual
        {
            observer.note(&format!(
                "a client buffers for {buffer}, so that it takes a run of {} to show a backlog",
                show::length(longest.as_secs_f64())
            ));
        }
    }

    /// The subject of a measurement in which these caches may have answered, for reports.
    pub(super) fn subject(&self, caches: &str) -> Subject {
        let StreamsConfig { profile, .. } = &self.config;
        let rate = profile.rate().zip(profile.fps);
        Subject {
            what: format!("streams of {}", profile.name),
            title: profile.title.clone(),
            target: self.config.target.target.clone(),
            each: rate.map(|(rate, _)| StreamDemand { allowed: self.allowed, rate }),
            duration: self.length,
            confirming: self.confirming(),
            caches: caches.to_owned(),
            scenario: self.scenario(),
        }
    }

    /// The configuration as in `scenario.json`.
    pub(super) fn scenario(&self) -> Value {
        let StreamsConfig { profile, target, buffer, realtime, spin, .. } = &self.config;
        json!({
            "profile": profile,
            "target": target.target,
            "layout": self.layout.name(),
            "size": target.size.0,
            "names": target.names.as_ref().map(FrameNames::text),
            "existing": target.existing,
            "fill_level": target.fill_level,
            "buffer_frames": buffer,
            "duration": self.length.as_secs_f64(),
            "buffered": target.buffered,
            "drop_caches": target.drop_caches,
            "destroy": target.destructive,
            "verify": target.verify,
            "method": target.method.name(),
            "realtime": realtime,
            "busy_poll": spin,
            "agents": target.agents.as_ref().map(AgentsConfig::names),
            "workers": target.agents.as_ref().map(|agents| agents.workers),
        })
    }

    /// The plan of a run of `streams` streams for `length`.
    pub(super) fn plan(
        &self,
        streams: u32,
        length: Duration,
        target: &OpenTarget,
    ) -> Result<StreamsPlan, MeterError> {
        let StreamsConfig { spin, target: spec, .. } = &self.config;
        let share = target.agents().map_or(streams, |agents| agents.share(streams));
        let mut plan = self.plan_in(target.shape(), streams, share, length)?;
        plan.blocking = target.is_blocking();
        // The kernel blocks a thread that submits more than the device's queue takes, and the reads
        // of all its streams would be late.
        let queue = target.is_queued().then(|| beneath(Path::new(&spec.target)).takes(plan.frame));
        plan.at_once = plan.at_once.min(queue.flatten().unwrap_or(u32::MAX));
        // Virtual time passes only in waits, so that polling would never end.
        plan.spin = *spin && !spec.is_simulated();
        Ok(plan)
    }

    /// The plan of a run of `streams` streams in files like these, of which each worker of agents
    /// has at most `share`.
    pub(super) fn plan_in(
        &self,
        shape: FileSet,
        streams: u32,
        share: u32,
        length: Duration,
    ) -> Result<StreamsPlan, MeterError> {
        let StreamsConfig { profile, buffer, .. } = &self.config;
        let plan = StreamsPlan::new(profile, share, *buffer, length, self.part_of(shape));
        let mut plan = plan.map_err(|error| match error {
            // Frames that are there do not become more with a larger --size.
            PlanError::TooFew { files, streams } if self.config.target.existing => {
                let frames = show::count(files, "frame");
                MeterError::usage(format!("{frames} cannot be divided among {streams} streams"))
                    .hint("take fewer --streams, or a directory with more frames of these names")
            }
            error => error.into(),
        })?;
        // Agents have a part of the streams each, for which there has to be room.
        plan.streams = streams;
        Ok(plan)
    }

    /// Restricts the streams to a part of a single file or device. Returns where the part begins.
    pub(super) fn use_part(&mut self, shape: FileSet, part: FilePart) -> u64 {
        let size = align_down(shape.each.0 / part.of.max(1), PAGE);
        self.within = Some(ByteCount(size));
        part.number * size
    }

    /// The streams for which workers of `agents` prepare, at most `streams` of all of them.
    pub(super) fn work(&self, streams: u32, agents: &AgentsConfig) -> StreamsWork {
        let StreamsConfig { profile, buffer, spin, .. } = &self.config;
        StreamsWork {
            profile: profile.clone(),
            buffer: *buffer,
            layout: self.layout.name().to_owned(),
            busy_poll: *spin,
            most: streams.div_ceil(agents.all_workers()),
            within: self.within.map(|within| within.0),
            part: None,
            null: self.null,
            warm: self.warm,
        }
    }

    /// Makes and fills the files for so many streams, for the fewest of which there has to be room,
    /// and opens the target.
    pub(super) fn open(
        &self,
        streams: RangeInclusive<u32>,
        observer: &dyn Observer,
    ) -> Result<OpenTarget, MeterError> {
        let StreamsConfig { profile, target, buffer, .. } = &self.config;
        let (fewest, streams) = streams.into_inner();
        if let Some(agents) = &target.agents {
            let work = self.work(streams, agents);
            return target.open_on(agents, WorkerWork::Streams(work), observer);
        }
        let shape = self.shape(streams)?;
        if self.null {
            return Ok(OpenTarget::Null { shape });
        }
        if target.is_made() {
            // A plan that is impossible fails before anything is written.
            let plan = StreamsPlan::new(profile, fewest, *buffer, self.length, shape);
            plan.map_err(|error| match error {
                // The size as it was asked for, not rounded to whole pages.
                PlanError::TooSmall { streams, needed, .. } => {
                    PlanError::TooSmall { size: target.size, streams, needed }
                }
                error => error,
            })?;
        }
        let writes = profile.read_percent < 100;
        let files = FileNeeds { set: self.set, clips: streams, frame: ByteCount(profile.bytes) };
        let target = target.open(shape, files, writes, observer)?;
        if self.warm {
            // So that no run waits for the device.
            observer.status("reading it into memory");
            target.read_all(self.within(&target), observer.stop())?;
        }
        Ok(target)
    }

    /// Makes one run. `go_on` is called a few hundred times a second.
    pub(super) fn attempt(
        &self,
        target: &OpenTarget,
        plan: &StreamsPlan,
        log: &mut dyn RecordSink,
        go_on: &mut dyn FnMut(RunProgress) -> bool,
        observer: &dyn Observer,
    ) -> Result<Measured, MeterError> {
        let live = self.metrics.live();
        live.into_iter().for_each(|live| live.begin(plan.streams));
        if let Some(agents) = target.agents() {
            let mut measured = agents.streams(&[plan], &[], live, go_on, observer)?;
            return Ok(measured.pop().expect("a result of the one task"));
        }
        let sample = observer.wants_figures().then(LiveSample::default);
        let mut log = Metered { log, live };
        let mut groups = [StreamGroup { plan, log: &mut log, sample: sample.as_ref() }];
        let mut shown = |progress: RunProgress| {
            if let Some(figures) = sample.as_ref().and_then(LiveSample::figures) {
                observer.figures(&[figures]);
            }
            go_on(progress)
        };
        let mut measured = self.measure(target, &mut groups, None, &mut shown, observer)?;
        Ok(measured.pop().expect("one group was measured"))
    }

    /// Runs groups of streams on one open target, whose port they share. `gate` is the start that
    /// other threads share.
    pub(super) fn measure(
        &self,
        target: &OpenTarget,
        groups: &mut [StreamGroup<'_>],
        gate: Option<&StartGate>,
        go_on: &mut dyn FnMut(RunProgress) -> bool,
        observer: &dyn Observer,
    ) -> Result<Vec<Measured>, MeterError> {
        let plans = || groups.iter().map(|group| group.plan);
        let port = target.port(&Traffic {
            at_once: plans().map(|plan| plan.at_once).sum(),
            largest: plans().map(|plan| plan.frame).max().unwrap_or_default(),
            writes: plans().any(StreamsPlan::writes),
            opens: plans().any(|plan| plan.shape.layout == Layout::FilePerFrame),
            replaces: false,
        });
        // Before an error is returned: the other threads wait for this one.
        let start = gate.map(|gate| gate.pass(port.is_ok()));
        let mut port = port?;
        if start == Some(None) {
            close_port(port, observer.stop());
            return Err(MeterError::interrupted(NOT_BEGUN));
        }
        // The default timer slack of 50 us would count as lateness of the meter.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        // As late as possible, so that sample n belongs to second n of the run. A simulated disk is
        // not on this machine.
        let spec = &self.config.target;
        let real = !spec.is_simulated();
        let sampler = real.then(|| attribution::watch(Path::new(&spec.target))).transpose()?;
        let realtime = self.config.realtime && enter_realtime_class(observer);
        // Virtual time begins when it is looked at.
        let start = start.flatten().filter(|_| real);
        let origin = start.map_or_else(|| port.now(), |start| moment_of(start, &*port));
        let outcomes = streams::run_groups(groups, &mut *port, origin, go_on);
        if realtime {
            // The report is drawn by this thread and must not go before everything else on the
            // machine.
            let _ = device::leave_realtime();
        }
        // Operations that never return must not keep the report from being written.
        let stuck = close_port(port, observer.stop());
        let watched = sampler.map(Sampler::end);
        let measured = outcomes?.into_iter().map(|outcome| {
            let outcome = StreamsOutcome { stuck, ..outcome };
            let watched = watched.clone();
            let attribution = watched.map(|watched| Attribution::of(&outcome, watched));
            Measured { outcome, attribution }
        });
        Ok(measured.collect())
    }

    /// A run of a search, of this length. A frame that could not be read or written ends the
    /// search.
    pub(super) fn probe(
        &self,
        target: &OpenTarget,
        rule: HoldRule,
        step: SearchStep,
        length: Duration,
        log: &mut dyn RecordSink,
        observer: &dyn Observer,
    ) -> Result<Probe, MeterError> {
        let mut plan = self.plan(step.streams, length, target)?;
        // The last stage asks what a single run of its length says.
        plan.continues = step.purpose != Purpose::Endure;
        let mut pace = StatusPace::default();
        let mut watch = |progress: &RunProgress| {
            if pace.is_due() {
                let at = time(progress.elapsed);
                let streams = show::count(step.streams, "stream");
                observer.status(&format!("{streams}: {at}, {} late", progress.late));
            }
            !observer.is_stopped()
        };
        let mut attribution = None;
        let (answer, outcome) = judge_run(rule, step, self.allowed, &mut watch, |go_on| {
            let measured = self.attempt(target, &plan, log, go_on, observer)?;
            attribution = measured.attribution;
            Ok::<_, MeterError>(measured.outcome)
        })?;
        target.check_whole()?;
        check_complete(&outcome)?;
        Ok(Probe { step, answer, outcome, attribution })
    }

    /// The part of the target that is used.
    pub(super) fn within(&self, target: &OpenTarget) -> FileSet {
        self.part_of(target.shape())
    }

    /// The part of these files that is used.
    fn part_of(&self, shape: FileSet) -> FileSet {
        let most = self.within.filter(|_| shape.layout.is_single()).unwrap_or(shape.each);
        FileSet { each: shape.each.min(most), ..shape }
    }

    /// The files for at most `streams` streams.
    pub(super) fn shape(&self, streams: u32) -> Result<FileSet, MeterError> {
        let StreamsConfig { profile, target, .. } = &self.config;
        if let Some(why) = profile.cannot_run() {
            return Err(PlanError::Profile { name: profile.name.clone(), why }.into());
        }
        let slot = profile.slot();
        let shape = target.shape(self.layout, streams, slot)?;
        if self.layout == Layout::FilePerStream && shape.most_streams(slot) == 0 {
            // With so many streams a file has no room for a frame: use fewer, larger files.
            let most = u32::try_from(shape.size().0 / slot).unwrap_or(u32::MAX);
            return target.shape(self.layout, most.clamp(1, streams), slot);
        }
        Ok(shape)
    }
}

/// What a run measured, and what the machine did meanwhile.
#[derive(Serialize, Deserialize)]
pub(super) struct Measured {
    pub(super) outcome: StreamsOutcome,
    /// `None` for a simulated disk.
    pub(super) attribution: Option<Attribution>,
}

impl WorkerResult for Measured {
    fn add(&mut self, other: Self) {
        // The machine that was late first shows what was full.
        let first = |one: &StreamsOutcome| one.first_late().unwrap_or(usize::MAX);
        let later = first(&other.outcome) >= first(&self.outcome);
        self.attribution = match (self.attribution.take(), other.attribution) {
            (Some(ours), Some(theirs)) if later => Some(ours.with_faults_of(&theirs)),
            (Some(ours), Some(theirs)) => Some(theirs.with_faults_of(&ours)),
            (ours, theirs) => ours.or(theirs),
        };
        self.outcome.add(other.outcome);
    }

    fn name(&mut self, agent: &str) {
        if let Some(attribution) = &mut self.attribution {
            let sentence = &mut attribution.first.sentence;
            *sentence = format!("agent {agent}: {sentence}");
        }
    }

    fn incomplete(&mut self) {
        self.outcome.complete = false;
    }

    fn count(&self, figures: &mut AgentFigures) {
        let Self { outcome, attribution } = self;
        figures.streams += outcome.streams.len() as u64;
        figures.frames += outcome.frames;
        figures.late += outcome.late_by_storage();
        figures.late_by_agent += outcome.late_by_meter;
        figures.rate = BitRate(figures.rate.0 + outcome.rate().0);
        for (number, second) in outcome.seconds.iter().enumerate() {
            let late = second.late.saturating_sub(second.late_by_meter);
            figures.second(number, second.bytes(), late);
        }
        let mut worker = outcome_json(outcome);
        worker["blame"] = json!(attribution.as_ref().map(Attribution::json));
        figures.workers.push(worker);
        let first = attribution.as_ref().map(|attribution| attribution.first.sentence.clone());
        figures.broke_first = figures.broke_first.take().or(first);
    }
}

/// The report of a run for a terminal.
pub(super) fn text(figures: &RunFigures<'_>, plan: &StreamsPlan) -> String {
    let RunFigures { subject, outcome, attribution, .. } = figures;
    let drift = |stream: &StreamStats| stream.accumulated_drift;
    let worst = outcome.streams.iter().copied().max_by_key(drift).unwrap_or_default();
    let mut lines = vec![
        ("streams", format!("{}, {} together", subject.counted(plan.streams.into()), plan.rate())),
        ("done by", outcome.method.clone()),
        ("moved", moved(outcome)),
        ("frames", late(outcome)),
        ("longest outage", time(outcome.longest_outage())),
        ("service", quantiles(&outcome.service())),
        (
            "response",
            format!("{}; in time is {}", quantiles(&outcome.response), time(plan.allowed())),
        ),
        (
            "drift",
            format!(
                "of the worst stream {} in all, {} in a row",
                time(worst.accumulated_drift),
                time(worst.consecutive_drift)
            ),
        ),
        ("the meter", own_lateness(outcome)),
        ("caches", subject.caches.clone()),
    ];
    if outcome.never > 0 {
        lines.push(("never came", show::count(outcome.never, "frame")));
    }
    // Late frames make the question void, and hide the answer: they are not waited for.
    if outcome.missed() == 0 {
        lines.insert(4, ("backlog", backlog(outcome, plan)));
    }
    if outcome.failed > 0 {
        let first = outcome.first_failure.as_ref().map(|reason| format!(": {}", reason.message));
        let failed = show::count(outcome.failed, "operation");
        lines.push(("failed", failed + &first.unwrap_or_default()));
    }
    lines.extend(attribution.map(|found| ("broke first", found.first.sentence.clone())));
    facts(&lines)
}

/// Whether the backlog grows, in words.
fn backlog(outcome: &StreamsOutcome, plan: &StreamsPlan) -> String {
    match outcome.backlog_growth {
        Some(growth) => grows(growth),
        None if plan.duration < long_enough(plan.allowed()) => {
            "not known after so short a run".into()
        }
        None => "does not grow".to_owned(),
    }
}

/// The lateness of the meter itself, in words.
fn own_lateness(outcome: &StreamsOutcome) -> String {
    let late = format!("lateness of requests: {}", quantiles(&outcome.issue));
    let spun = outcome.spun();
    if spun.is_zero() {
        return late;
    }
    let percent = spun.as_secs_f64() / outcome.took.as_secs_f64().max(1e-9) * 100.0;
    format!("{late}; watched the clock for {percent:.0} % of the time")
}

/// Gives this thread the realtime class; false if the kernel refuses it.
fn enter_realtime_class(observer: &dyn Observer) -> bool {
    let done = device::enter_realtime();
    if let Err(why) = &done {
        observer.note(&format!("--realtime is not allowed ({why}): root and CAP_SYS_NICE may"));
    }
    done.is_ok()
}
