//! `meter run` and `meter capacity`: paced streams on a disk, a file or a directory.

use crate::WHOLE;
use crate::access::on_interrupt;
use crate::cli::Args;
use crate::commands::meter_blame::{self, Blame, believable, whole};
use crate::commands::meter_metrics::Metrics;
use crate::commands::meter_port::{Traffic, leave};
use crate::commands::meter_record::{Demand, Subject};
use crate::commands::meter_search;
use crate::commands::meter_search::{LONG, Probe};
use crate::commands::meter_target::{Spot, Target};
use crate::commands::meter_threshold::{Alarm, Watched};
use crate::commands::{
    meter_fleet, meter_hold, meter_players, meter_profiles, meter_record, renditions,
};
use crate::failure::{Code, Failure};
use crate::out::{self, Bar, facts};
use crate::show;
use device::{DeviceError, Method};
use meter::blame::{Sampler, beneath};
use meter::capacity::{Rule, Step};
use meter::live::Metered;
use meter::log::{Keep, Sink};
use meter::profiles::{Pattern, Profile};
use meter::streams::{self, Outcome, Plan, PlanError, Progress};
use meter::target::{Layout, Shape};
use serde_json::{Value, json};
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use units::ByteCount;

/// What is asked, the same for a run and for a search.
#[derive(Clone)]
pub(super) struct Asked {
    pub(super) profile: Profile,
    pub(super) spot: Spot,
    pub(super) layout: Layout,
    pub(super) buffer: u32,
    pub(super) duration: Duration,
    /// The measuring thread goes before all others of this machine.
    pub(super) realtime: bool,
    /// It watches the clock rather than sleeps to its next frame.
    pub(super) spin: bool,
    /// Told while it runs.
    pub(super) metrics: Metrics,
    /// Of a file that is larger only so much is used.
    pub(super) within: Option<ByteCount>,
}

pub(crate) fn run(args: &Args<'_>) -> Result<(), Failure> {
    if !meter_players::are_meant(args) {
        renditions::none_are_meant(args)?;
    }
    if !WHOLE {
        only_for_agents(args)?;
    } else if meter_fleet::is_wanted(args) {
        return meter_fleet::run(args);
    } else if meter_players::are_meant(args) {
        return meter_players::run(args);
    }
    let asked = Asked::new(args)?;
    let dir = meter_record::prepare(args)?;
    let stop = on_interrupt()?;
    let bar = Bar::new();
    let streams: u32 = args.count("streams");
    let target = asked.open(streams, &stop, &bar)?;
    let plan = asked.plan(streams, asked.duration, &target)?;
    let mut held = meter_hold::hold(args, &stop)?;
    let alarm = Alarm::new(args, plan.allowed(), plan.streams)?;
    let mut show = |progress: Progress| {
        held.tell(&progress);
        bar.say(&format!(
            "{} of {}: {} frames, {} late",
            show::length(progress.elapsed.as_secs_f64()),
            show::length(plan.duration.as_secs_f64()),
            show::thousands(progress.judged),
            progress.late
        ));
        alarm.look(progress.elapsed);
        !stop.load(Ordering::Relaxed)
    };
    let sampler = asked.watch()?;
    let (mut sink, behind) = meter_record::log(dir.as_deref(), asked.spot.is_simulated())?;
    let mut log = Watched { log: &mut sink, alarm: &alarm };
    let outcome = asked.attempt(&target, &plan, &mut log, &mut show, &stop);
    let written = behind.map(|behind| meter_record::end_log(behind, sink)).transpose();
    let outcome = outcome?;
    let blame = sampler.map(|sampler| Blame::of(&outcome, sampler.end()));
    drop(bar);
    let subject = asked.subject(&target);
    let demand = Demand { allowed: plan.allowed(), rate: plan.rate() };
    let mut summary = meter_record::summary(&subject, Some(demand), &outcome, blame.as_ref());
    summary["threshold"] = alarm.json();
    meter_record::tell_of_log(&mut summary, &written);
    // What cannot be saved is told all the same.
    let saved = match &dir {
        Some(dir) if WHOLE => {
            let blame = blame.as_ref();
            meter_record::write_run(dir, &subject, Some(demand), &outcome, blame, &summary)
        }
        _ => Ok(()),
    };
    if args.has("json") {
        out::print_json(&summary);
    } else {
        out::print(&page(&subject, &plan, &outcome, blame.as_ref()));
    }
    let written = written?;
    saved?;
    if !outcome.complete {
        out::note("interrupted: this is what there was until then");
        whole(&outcome)?;
        return Err(Failure::reported(Code::Invalid));
    }
    believable(&outcome, blame.as_ref())?;
    meter_record::all_written(written)
}

/// Refuses what the program for agents has no room for.
fn only_for_agents(args: &Args<'_>) -> Result<(), Failure> {
    let options = ["agents", "hosts", "out", "endpoint", "ca-file", "cert-file", "key-file"];
    let target: String = args.maybe("target").unwrap_or_default();
    let named = options.into_iter().find(|name| args.0.get_raw(name).is_some());
    let Some(what) = named
        .map(|name| format!("--{name}"))
        .or_else(|| target.contains("://").then(|| format!("a target such as {target}")))
    else {
        return Ok(());
    };
    Err(Failure::usage(format!("{what} is not in this program: it is the part for agents"))
        .hint("`make build` builds the whole program"))
}

pub(crate) fn capacity(args: &Args<'_>) -> Result<(), Failure> {
    if meter_players::are_meant(args) {
        return meter_players::capacity(args);
    }
    renditions::none_are_meant(args)?;
    let asked = Asked::new(args)?;
    let rule = meter_search::rule(args);
    let dir = meter_record::prepare(args)?;
    let stop = on_interrupt()?;
    let bar = Bar::new();
    let most = args.count::<u32>("most");
    let target = asked.open(most, &stop, &bar)?;
    let one = asked.plan(1, asked.duration, &target)?;
    let most = most.min(target.shape().most_streams(one.stride()));
    drop(bar);
    let each = one.rate();
    let mut made = 0;
    let mut run = |step: Step| {
        made += 1;
        let log = dir.as_deref().map(|dir| meter_record::run_in(dir, made, step.streams));
        let log = log.transpose()?;
        let probe = logged(&asked, &target, rule, step, &stop, log.as_deref())?;
        let delivered = probe.delivered(each);
        Ok((probe, delivered))
    };
    let subject = asked.subject(&target);
    meter_search::search(args, dir.as_deref(), &subject, (rule, most), &stop, &mut run)
}

/// A run of a search whose operations go to a log in that directory, with its seconds beside it.
fn logged(
    asked: &Asked,
    target: &Target,
    rule: Rule,
    step: Step,
    stop: &AtomicBool,
    dir: Option<&Path>,
) -> Result<Probe, Failure> {
    let (mut sink, behind) = meter_record::log(dir, asked.spot.is_simulated())?;
    let made = probe_to(asked, target, rule, step, &mut sink, stop, &Bar::new());
    let written = behind.map(|behind| meter_record::end_log(behind, sink)).transpose();
    let probe = made?;
    if let Some(sentence) = written?.as_ref().and_then(meter_record::lacks) {
        out::note(&format!("{} streams: {sentence}", step.streams));
    }
    if let Some(dir) = dir {
        meter_record::write_seconds(dir, &probe.outcome)?;
    }
    Ok(probe)
}

/// A run of a search that keeps no log.
pub(super) fn probe(
    asked: &Asked,
    target: &Target,
    rule: Rule,
    step: Step,
    stop: &AtomicBool,
    bar: &Bar,
) -> Result<Probe, Failure> {
    probe_to(asked, target, rule, step, &mut Sink::none(), stop, bar)
}

/// A run of a search. A frame that could not be read or written ends the search.
fn probe_to(
    asked: &Asked,
    target: &Target,
    rule: Rule,
    step: Step,
    log: &mut dyn Keep,
    stop: &AtomicBool,
    bar: &Bar,
) -> Result<Probe, Failure> {
    let length = if step.long { asked.duration * LONG } else { asked.duration };
    let plan = asked.plan(step.streams, length, target)?;
    // What is delivered is told from a second at least, when the buffers do no longer help.
    let enough = plan.allowed() + Duration::from_secs(1);
    let mut decided = None;
    let mut go_on = |progress: Progress| {
        bar.say(&format!(
            "{} streams: {}, {} late",
            step.streams,
            time(progress.elapsed),
            progress.late
        ));
        decided = rule.decided(&progress, step.streams);
        let over = match decided {
            Some(true) => !step.long,
            Some(false) => progress.elapsed >= enough,
            None => false,
        };
        !over && !stop.load(Ordering::Relaxed)
    };
    let sampler = asked.watch()?;
    let outcome = asked.attempt(target, &plan, log, &mut go_on, stop)?;
    let blame = sampler.map(|sampler| Blame::of(&outcome, sampler.end()));
    let held = match decided {
        Some(held) if !outcome.complete => held,
        _ => rule.holds(&outcome),
    };
    whole(&outcome)?;
    Ok(Probe { step, answer: meter_search::answer(held, &outcome), outcome, blame })
}

impl Asked {
    pub(super) fn new(args: &Args<'_>) -> Result<Self, Failure> {
        let hint = "`tenuto meter profiles` lists what streams there are";
        let Some(profile) = args.maybe::<String>("profile") else {
            return Err(Failure::usage("--profile is missing").hint(hint));
        };
        let profile = meter_profiles::named(&profile)?;
        let method = args.text("method");
        let method = method.parse().unwrap_or_else(|_| panic!("the table offers {method}"));
        let spot = Spot::new(args, method)?;
        let layout = match args.text("layout").as_str() {
            "profile" if profile.pattern == Pattern::FilePerFrame => Layout::FilePerFrame,
            "profile" => Layout::OneFile,
            named => named.parse().unwrap_or_else(|error: String| panic!("{error}")),
        };
        if !layout.is_single() && method != Method::Best && method != Method::Threads {
            return Err(Failure::usage(format!("--method {method} is for a single file"))
                .hint("many files are read and written by threads"));
        }
        let (buffer, duration) = (args.count("buffer"), args.get("duration"));
        let metrics = Metrics::serve(args)?;
        let (realtime, spin) = (args.has("realtime"), args.has("spin"));
        if realtime && spin {
            return Err(Failure::usage("--realtime and --spin exclude each other")
                .hint("what never sleeps and goes before all others lets nothing else run"));
        }
        Ok(Self { profile, spot, layout, buffer, duration, realtime, spin, metrics, within: None })
    }

    /// What is said of it wherever it is told.
    pub(super) fn subject(&self, target: &Target) -> Subject {
        Subject {
            what: format!("streams of {}", self.profile.name),
            title: self.profile.title.clone(),
            target: self.spot.target.clone(),
            each: self
                .profile
                .rate()
                .zip(self.profile.fps)
                .map(|(rate, fps)| Demand { allowed: fps.moment(self.buffer.into()), rate }),
            duration: self.duration,
            caches: target.caches().to_owned(),
            scenario: self.scenario(),
        }
    }

    pub(super) fn scenario(&self) -> Value {
        json!({
            "profile": self.profile,
            "target": self.spot.target,
            "layout": self.layout.name(),
            "size": self.spot.size.0,
            "fill_level": self.spot.fill_level,
            "buffer_frames": self.buffer,
            "duration": self.duration.as_secs_f64(),
            "buffered": self.spot.buffered,
            "drop_caches": self.spot.drop_caches,
            "destructive": self.spot.destructive,
            "method": self.spot.method.name(),
            "realtime": self.realtime,
            "spin": self.spin,
        })
    }

    /// Watches this machine, unless the storage is not on it.
    fn watch(&self) -> Result<Option<Sampler>, Failure> {
        if self.spot.is_simulated() {
            return Ok(None);
        }
        meter_blame::watch(Path::new(&self.spot.target)).map(Some)
    }

    pub(super) fn plan(
        &self,
        streams: u32,
        length: Duration,
        target: &Target,
    ) -> Result<Plan, Failure> {
        let shape = self.within(target);
        let mut plan = Plan::new(&self.profile, streams, self.buffer, length, shape)?;
        plan.blocking = target.is_blocking();
        // Past that the kernel would put the meter to sleep, and it would be late with all else.
        let path = Path::new(&self.spot.target);
        let takes = target.is_queued().then(|| beneath(path).takes(plan.frame)).flatten();
        plan.at_once = plan.at_once.min(takes.unwrap_or(u32::MAX));
        plan.spin = self.spin && !self.spot.is_simulated();
        Ok(plan)
    }

    /// Makes and fills what is to be used, if there is nothing. There will be so many streams at
    /// most.
    pub(super) fn open(
        &self,
        streams: u32,
        stop: &AtomicBool,
        bar: &Bar,
    ) -> Result<Target, Failure> {
        // Before anything is written.
        let shape = self.shape(streams)?;
        if self.spot.is_made() {
            Plan::new(&self.profile, 1, self.buffer, self.duration, shape)?;
        }
        self.spot.open(shape, self.profile.read_percent < 100, stop, bar)
    }

    /// One run of streams.
    fn attempt(
        &self,
        target: &Target,
        plan: &Plan,
        log: &mut dyn Keep,
        go_on: &mut dyn FnMut(Progress) -> bool,
        stop: &AtomicBool,
    ) -> Result<Outcome, DeviceError> {
        let mut port = target.port(&Traffic {
            at_once: plan.at_once,
            largest: plan.frame,
            writes: plan.writes(),
            opens: plan.shape.layout == Layout::FilePerFrame,
            replaces: false,
        })?;
        // The kernel otherwise lets a thread sleep 50 us longer, to wake several at once.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        let live = self.metrics.live();
        live.into_iter().for_each(|live| live.begin(plan.streams));
        let first = self.realtime && run_first();
        let outcome = streams::run(plan, &mut *port, &mut Metered { log, live }, go_on);
        if first {
            let _ = device::run_as_others();
        }
        let stuck = leave(port, stop);
        Ok(Outcome { stuck, ..outcome? })
    }

    /// What is used of the target.
    pub(super) fn within(&self, target: &Target) -> Shape {
        let shape = target.shape();
        let most = self.within.filter(|_| shape.layout.is_single()).unwrap_or(shape.each);
        Shape { each: shape.each.min(most), ..shape }
    }

    /// What there is to be, for so many streams at most.
    pub(super) fn shape(&self, streams: u32) -> Result<Shape, Failure> {
        if let Some(why) = self.profile.cannot_run() {
            let name = self.profile.name.clone();
            return Err(PlanError::Profile { name, why }.into());
        }
        let slot = self.profile.slot();
        let mut shape = self.spot.shape(self.layout, streams, slot)?;
        if self.layout == Layout::FilePerStream && shape.most_streams(slot) == 0 {
            // Fewer streams, with files that hold a frame.
            let most = u32::try_from(shape.size().0 / slot).unwrap_or(u32::MAX);
            shape = self.spot.shape(self.layout, most.clamp(1, streams), slot)?;
        }
        Ok(shape)
    }
}

fn page(subject: &Subject, plan: &Plan, outcome: &Outcome, blame: Option<&Blame>) -> String {
    let worst = outcome.streams.iter().max_by_key(|stream| stream.aggregate_drift);
    let worst = worst.copied().unwrap_or_default();
    let mut lines = vec![
        ("streams", format!("{} {}, {} together", plan.streams, subject.what, plan.rate())),
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
                time(worst.aggregate_drift),
                time(worst.consecutive_drift)
            ),
        ),
        ("the meter", meter(outcome)),
        ("caches", subject.caches.clone()),
    ];
    if outcome.failed > 0 {
        lines.push(("failed", format!("{} operations", outcome.failed)));
    }
    lines.extend(blame.map(|blame| ("broke first", blame.first.sentence.clone())));
    facts(&lines)
}

/// How the meter itself did.
fn meter(outcome: &Outcome) -> String {
    let late = format!("asks late by {}", quantiles(&outcome.issue));
    let spun = outcome.spun();
    if spun.is_zero() {
        return late;
    }
    let percent = spun.as_secs_f64() / outcome.took.as_secs_f64().max(1e-9) * 100.0;
    format!("{late}; watched the clock for {percent:.0} % of the time")
}

/// Read and written.
pub(super) fn moved(outcome: &Outcome) -> String {
    let (read, written, rate) = (outcome.reads.bytes, outcome.writes.bytes, outcome.rate());
    match (read.0, written.0) {
        (_, 0) => format!("{read} read, at {rate}"),
        (0, _) => format!("{written} written, at {rate}"),
        _ => format!("{read} read and {written} written, at {rate}"),
    }
}

pub(super) fn late(outcome: &Outcome) -> String {
    let late = late_alone(outcome);
    match outcome.below_best {
        0 => late,
        below => format!("{late}, {below} smaller than they had to be"),
    }
}

fn late_alone(outcome: &Outcome) -> String {
    match (outcome.late_by_storage(), outcome.late_by_meter) {
        (0, 0) => format!("{}, none late", outcome.frames),
        (storage, 0) => format!("{}, {storage} late", outcome.frames),
        (storage, meter) => {
            format!("{}, {storage} late, {meter} more because of this machine", outcome.frames)
        }
    }
}

pub(super) fn quantiles(times: &streams::Times) -> String {
    let [half, p99] = [0.5, 0.99].map(|share| time(times.quantile(share)));
    format!("half within {half}, 99 % within {p99}, all within {}", time(times.max()))
}

pub(super) fn time(time: Duration) -> String {
    let ms = time.as_secs_f64() * 1e3;
    if ms < 10.0 { format!("{ms:.2} ms") } else { show::millis(ms) }
}

impl From<PlanError> for Failure {
    fn from(error: PlanError) -> Self {
        Self::of(&error.to_string()).code(Code::Usage)
    }
}

/// A directory that `--out` names, if it is free for a run.
pub(super) fn free(dir: PathBuf) -> Result<PathBuf, Failure> {
    let failed = |error| Failure::new(format!("cannot make {}: {error}", dir.display()));
    std::fs::create_dir_all(&dir).map_err(failed)?;
    let mut inside = std::fs::read_dir(&dir).map_err(failed)?;
    if inside.next().is_some() {
        return Err(Failure::new(format!("{} is not empty", dir.display()))
            .hint("name a new directory for each run"));
    }
    Ok(dir)
}

/// Whether this thread goes before all others from here on.
fn run_first() -> bool {
    let done = device::run_first();
    if let Err(why) = &done {
        out::note(&format!("--realtime is not allowed ({why}): root and CAP_SYS_NICE may"));
    }
    done.is_ok()
}
