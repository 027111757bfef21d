//! `meter run` and `meter capacity`: paced streams on a disk, a file or a directory.

use crate::access::on_interrupt;
use crate::cli::Args;
use crate::commands::meter_blame::{self, Blame, believable};
use crate::commands::{meter_profiles, meter_record};
use crate::failure::{Code, Failure};
use crate::out::{self, Bar, Table, facts};
use crate::show;
use device::{BlockDevice, DeviceError, Method, SimulatedDisk};
use disk::DiskModel;
use meter::blame::{First, Sampler};
use meter::capacity::{Found, Purpose, Rule, Search, Step, Verdict};
use meter::profiles::Profile;
use meter::rounds::{DevicePort, SimulatedPort};
use meter::streams::{self, Outcome, Place, PlaceError, Plan, PlanError, Progress};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use units::{ByteCount, show_duration};

/// What is asked, the same for a run and for a search.
pub(super) struct Asked {
    pub(super) profile: Profile,
    pub(super) target: String,
    pub(super) buffer: u32,
    pub(super) duration: Duration,
    pub(super) buffered: bool,
    pub(super) method: String,
}

/// What is read.
enum Target {
    Simulated(Box<DiskModel>),
    Real { place: Box<Place>, method: Method },
}

/// A run of a search.
pub(super) struct Probe {
    pub(super) step: Step,
    pub(super) held: bool,
    pub(super) outcome: Outcome,
    /// Of real storage.
    pub(super) blame: Option<Blame>,
}

/// What stands before a model's name.
const SIMULATED: &str = "sim:";

pub(crate) fn run(args: &Args<'_>) -> Result<(), Failure> {
    let asked = Asked::new(args)?;
    let dir = meter_record::prepare(args)?;
    let stop = on_interrupt()?;
    let bar = Bar::new();
    let streams: u32 = args.count("streams");
    let target = asked.open(args, streams, &stop, &bar)?;
    let plan = asked.plan(streams, asked.duration, &target)?;
    let mut show = |progress: Progress| {
        bar.say(&format!("{}, {} late", time(progress.elapsed), progress.late));
        !stop.load(Ordering::Relaxed)
    };
    let sampler = asked.watch()?;
    let outcome = target.attempt(&plan, dir.is_some(), &mut show)?;
    let blame = sampler.map(|sampler| Blame::of(&outcome, sampler.end()));
    drop(bar);
    let summary = meter_record::summary(&asked, &plan, &outcome, blame.as_ref());
    if let Some(dir) = &dir {
        meter_record::write_run(dir, &asked, &plan, &outcome, blame.as_ref(), &summary)?;
    }
    if args.has("json") {
        out::print_json(&summary);
    } else {
        out::print(&page(&asked, &plan, &outcome, blame.as_ref()));
    }
    if !outcome.complete {
        out::note("interrupted: this is what there was until then");
        return Err(Failure::reported(Code::Invalid));
    }
    believable(&outcome, blame.as_ref())
}

pub(crate) fn capacity(args: &Args<'_>) -> Result<(), Failure> {
    let asked = Asked::new(args)?;
    let rule = match args.text("rule").as_str() {
        "strict" => Rule::Strict,
        _ => Rule::OneLateRoundOf100,
    };
    let dir = meter_record::prepare(args)?;
    let stop = on_interrupt()?;
    let bar = Bar::new();
    let target = asked.open(args, 1, &stop, &bar)?;
    let one = asked.plan(1, asked.duration, &target)?;
    let room = u32::try_from(target.size().0 / one.stride()).unwrap_or(u32::MAX);
    let most = args.count::<u32>("most").min(room);
    let mut search = Search::new(most, PROBES);
    let mut probes: Vec<Probe> = Vec::new();
    let mut trouble = None;
    while let Some(step) = search.step() {
        let made = probe(&asked, &target, rule, step, &stop, &bar);
        if stop.load(Ordering::Relaxed) {
            break;
        }
        // A machine that is too slow for the streams says nothing of the storage. What was found
        // until then is kept.
        let sound = |probe: Probe| believable(&probe.outcome, probe.blame.as_ref()).map(|()| probe);
        let probe = match made.and_then(sound) {
            Ok(probe) => probe,
            Err(failure) => {
                trouble = Some(failure);
                break;
            }
        };
        let each = one.rate().0.max(1);
        #[expect(clippy::cast_precision_loss, reason = "a ratio of rates")]
        let delivered = probe.outcome.rate().0 as f64 / each as f64;
        search.report(step, Found { held: probe.held, delivered });
        probes.push(probe);
    }
    drop(bar);
    let verdict = search.verdict();
    let confirming = confirming(&probes, verdict);
    let summary = meter_record::capacity(&asked, rule, verdict, &probes, confirming);
    if let Some(dir) = &dir {
        meter_record::write_capacity(dir, &asked, rule, verdict, &probes, &summary)?;
    }
    if args.has("json") {
        out::print_json(&summary);
    } else {
        out::print(&found(&asked, rule, verdict, &probes, confirming));
    }
    if stop.load(Ordering::Relaxed) {
        out::note("interrupted: this is what there was until then");
        return Err(Failure::reported(Code::Invalid));
    }
    if let Some(failure) = trouble {
        return Err(failure);
    }
    if !verdict.confirmed {
        return Err(Failure::new(format!(
            "no count held when asked again, in {} runs",
            verdict.probes
        ))
        .hint("let nothing else use it, or take a longer --duration")
        .code(Code::Invalid));
    }
    Ok(())
}

/// The run that the verdict stands on.
pub(super) fn confirming(probes: &[Probe], verdict: Verdict) -> Option<&Probe> {
    let of = |probe: &&Probe| {
        probe.step.purpose == Purpose::Confirm && probe.step.streams == verdict.streams
    };
    probes.iter().rev().find(of).filter(|_| verdict.confirmed)
}

/// Runs of a search at most.
const PROBES: u32 = 30;

/// A long run, as the confirming one, takes so many times as long.
const LONG: u32 = 3;

fn probe(
    asked: &Asked,
    target: &Target,
    rule: Rule,
    step: Step,
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
    let outcome = target.attempt(&plan, false, &mut go_on)?;
    let blame = sampler.map(|sampler| Blame::of(&outcome, sampler.end()));
    let held = match decided {
        Some(held) if !outcome.complete => held,
        _ => rule.holds(&outcome),
    };
    Ok(Probe { step, held, outcome, blame })
}

impl Asked {
    fn new(args: &Args<'_>) -> Result<Self, Failure> {
        let hint = "`tenuto meter profiles` lists what streams there are";
        let Some(profile) = args.maybe::<String>("profile") else {
            return Err(Failure::usage("--profile is missing").hint(hint));
        };
        let Some(target) = args.maybe::<String>("target") else {
            return Err(Failure::usage("--target is missing")
                .hint("a directory, a file or a block device, or sim:MODEL"));
        };
        Ok(Self {
            profile: meter_profiles::named(&profile)?,
            target,
            buffer: args.count("buffer"),
            duration: args.get("duration"),
            buffered: args.has("buffered"),
            method: args.text("method"),
        })
    }

    /// Watches this machine, unless the storage is not on it.
    fn watch(&self) -> Result<Option<Sampler>, Failure> {
        if self.target.starts_with(SIMULATED) {
            return Ok(None);
        }
        meter_blame::watch(Path::new(&self.target)).map(Some)
    }

    fn plan(&self, streams: u32, length: Duration, target: &Target) -> Result<Plan, Failure> {
        let mut plan = Plan::new(&self.profile, streams, self.buffer, length, target.size())?;
        plan.blocking = target.is_blocking();
        Ok(plan)
    }

    /// Makes and fills what is to be read, if there is nothing.
    fn open(
        &self,
        args: &Args<'_>,
        streams: u32,
        stop: &AtomicBool,
        bar: &Bar,
    ) -> Result<Target, Failure> {
        // Before anything is written.
        if let Some(why) = self.profile.cannot_run() {
            let name = self.profile.name.clone();
            return Err(PlanError::Profile { name, why }.into());
        }
        if let Some(name) = self.target.strip_prefix(SIMULATED) {
            if self.method != "best" || self.buffered {
                let sentence = format!("{} is not read through a kernel", self.target);
                return Err(Failure::usage(sentence).hint("leave out --method and --buffered"));
            }
            let model = DiskModel::preset(name).ok_or_else(|| {
                Failure::usage(format!("there is no disk model '{name}'"))
                    .hint("`tenuto disk models` lists them")
            })?;
            return Ok(Target::Simulated(Box::new(model)));
        }
        let size: ByteCount = args.get("size");
        let mut show = |done| {
            bar.bytes("filling", done, Some(size.0));
            !stop.load(Ordering::Relaxed)
        };
        let path = Path::new(&self.target);
        if path.is_dir() {
            Plan::new(&self.profile, streams, self.buffer, self.duration, size)?;
        }
        let place = Place::at(path, size, !self.buffered, &mut show)?;
        if !self.buffered && !place.device.is_direct() {
            out::note(&format!(
                "{} is read through the page cache, so this may be memory's speed: its file \
                 system cannot do without",
                self.target
            ));
        }
        let method = self.method.parse();
        let method = method.unwrap_or_else(|_| panic!("the table offers {}", self.method));
        Ok(Target::Real { place: Box::new(place), method })
    }
}

impl Target {
    fn size(&self) -> ByteCount {
        match self {
            Self::Simulated(model) => model.capacity(),
            Self::Real { place, .. } => place.device.geometry().size,
        }
    }

    fn is_blocking(&self) -> bool {
        let one_by_one = [Method::Pread, Method::Preadv2, Method::Mmap, Method::MmapAll];
        matches!(self, Self::Real { method, .. } if one_by_one.contains(method))
    }

    fn attempt(
        &self,
        plan: &Plan,
        log: bool,
        go_on: &mut dyn FnMut(Progress) -> bool,
    ) -> Result<Outcome, DeviceError> {
        match self {
            Self::Simulated(model) => {
                let mut port = SimulatedPort::new(SimulatedDisk::new(model));
                streams::run(plan, &mut port, log, go_on)
            }
            Self::Real { place, method } => {
                let pool = DevicePort::pool(plan.at_once, plan.frame);
                let queue = place.device.queue_by(*method, plan.at_once, &pool)?;
                let mut port = DevicePort::new(&place.device, queue, pool, Instant::now());
                streams::run(plan, &mut port, log, go_on)
            }
        }
    }
}

fn page(asked: &Asked, plan: &Plan, outcome: &Outcome, blame: Option<&Blame>) -> String {
    let worst = outcome.streams.iter().max_by_key(|stream| stream.aggregate_drift);
    let worst = worst.copied().unwrap_or_default();
    let mut lines = vec![
        (
            "streams",
            format!("{} of {}, {} together", plan.streams, asked.profile.name, plan.rate()),
        ),
        ("read by", outcome.method.clone()),
        ("read", format!("{} at {}", outcome.bytes, outcome.rate())),
        ("frames", late(outcome)),
        ("longest outage", time(outcome.longest_outage())),
        ("service", quantiles(&outcome.service)),
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
        ("the meter", format!("asks late by {}", quantiles(&outcome.issue))),
    ];
    if outcome.failed > 0 {
        lines.push(("failed", format!("{} reads", outcome.failed)));
    }
    lines.extend(blame.map(|blame| ("broke first", blame.first.sentence.clone())));
    facts(&lines)
}

pub(super) fn late(outcome: &Outcome) -> String {
    match (outcome.late_by_storage(), outcome.late_by_meter) {
        (0, 0) => format!("{}, none late", outcome.frames),
        (storage, 0) => format!("{}, {storage} late", outcome.frames),
        (storage, meter) => {
            format!("{}, {storage} late, {meter} more because of this machine", outcome.frames)
        }
    }
}

fn quantiles(times: &streams::Times) -> String {
    let [half, p99] = [0.5, 0.99].map(|share| time(times.quantile(share)));
    format!("half within {half}, 99 % within {p99}, all within {}", time(times.max()))
}

fn found(
    asked: &Asked,
    rule: Rule,
    verdict: Verdict,
    probes: &[Probe],
    confirming: Option<&Probe>,
) -> String {
    let mut table =
        Table::new(&[">streams", "why", "answer", ">took", ">frames", ">late", ">rate"]);
    for Probe { step, held, outcome, .. } in probes {
        table.row(vec![
            step.streams.to_string(),
            purpose(step.purpose).to_owned(),
            if *held { "held" } else { "not held" }.to_owned(),
            show::length(outcome.took.as_secs_f64()),
            outcome.frames.to_string(),
            outcome.late_by_storage().to_string(),
            outcome.rate().to_string(),
        ]);
    }
    format!("{}\n{}", table.show(), facts(&conclusion(asked, rule, verdict, probes, confirming)))
}

/// What was found, in words.
pub(super) fn conclusion(
    asked: &Asked,
    rule: Rule,
    verdict: Verdict,
    probes: &[Probe],
    confirming: Option<&Probe>,
) -> Vec<(&'static str, String)> {
    let count = verdict.streams;
    let name = &asked.profile.name;
    let held = match verdict {
        Verdict { at_limit: true, .. } => {
            format!("at least {count} streams of {name}; more were not tried")
        }
        Verdict { confirmed: true, too_many: Some(more), .. } if more > count + 1 => {
            format!("{count} streams of {name}; {more} are too many, those between were not tried")
        }
        Verdict { confirmed: true, .. } => format!("{count} streams of {name}"),
        Verdict { .. } => format!("about {count} streams of {name}, not confirmed"),
    };
    let mut lines = vec![
        ("holds", held),
        ("rule", rule.word().to_owned()),
        ("runs", format!("{} of {}", verdict.probes, show_duration(asked.duration))),
    ];
    if let Some(Probe { outcome, .. }) = confirming {
        let what = if rule == Rule::Strict { "frames" } else { "rounds" };
        let share = rule.certainty(outcome) * 100.0;
        lines.push((
            "certainty",
            format!("95 %: no more than {share:.4} % of {what} late, of {}", late(outcome)),
        ));
        lines.push(("read by", outcome.method.clone()));
    }
    if let Some(first) = broke_first(probes) {
        lines.push(("broke first", first.sentence.clone()));
    }
    lines
}

/// What was full in the last run that was too much; what was nearest to it where none was.
pub(super) fn broke_first(probes: &[Probe]) -> Option<&First> {
    let failed = probes.iter().rev().filter(|probe| !probe.held);
    let blame = failed.chain(probes.last()).find_map(|probe| probe.blame.as_ref());
    blame.map(|blame| &blame.first)
}

pub(super) fn purpose(purpose: Purpose) -> &'static str {
    match purpose {
        Purpose::Up => "up",
        Purpose::Narrow => "narrow",
        Purpose::Above => "above",
        Purpose::Confirm => "confirm",
    }
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

impl From<PlaceError> for Failure {
    fn from(error: PlaceError) -> Self {
        Self::of(&error.to_string())
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
