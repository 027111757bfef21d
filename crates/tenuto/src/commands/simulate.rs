//! `simulate admission`: spreads scenarios over the machine's cores and reports. `simulate ageing`:
//! lets months pass on a store. `simulate fleet`: many nodes, and a million viewers.

use super::reproduce::{prepare, tell};
use crate::args::simulation::{
    AdmissionArgs, AdmissionPreset, AgeingArgs, FleetSimulationArgs, RemovedTitle,
};
use crate::failure::{Code, Failure};
use crate::out::Bar;
use crate::spread::{compute_until, spread_until};
use crate::stopping;
use clap::ValueEnum;
use disk::DiskModel;
use scheduler::PolicyKind;
use server::ServerConfig;
use server::plan::{PlanDisk, PlannedAudience, Question, in_turn, plan};
use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use store::{FormatOptions, Store};
use studies::admission::{
    ArrivalGroup, BLOCK, ClipKind, Clips, CrowdArrivals, CrowdStudy, PolicyUnderTest, Preset,
    Rules, Setup, SlowdownRun, StoredTitles, Stress, TitleOrigin, crowd_report, fitted, long_run,
    long_run_report, slowdown_report, slowdown_run, stress_report, study_report,
};
use studies::ageing::{AgeingStudy, Removal, ageing_report};
use studies::fleet::{FleetPolicy, FleetRow, FleetSetup, fleet_report};
use studies::reproduce::Report;
use tenuto_client::Arrivals;
use units::{BitRate, ByteCount};

pub(crate) fn admission(args: &AdmissionArgs) -> Result<(), Failure> {
    // The page is named after the preset as users type it, not after the variant.
    let preset = args.preset.to_possible_value();
    let name = format!("admission-{}", preset.as_ref().map_or("", |preset| preset.get_name()));
    if let Some(dir) = &args.out {
        prepare(dir, &name, &args.overwrite)?;
    }
    refuse_unused(args, preset.as_ref().map_or("", |preset| preset.get_name()))?;
    let wanted = StudySetup::of(args)?;
    let bar = Bar::new();
    let mut report = match args.preset {
        AdmissionPreset::Paper => wanted.bands(Preset::Paper, &bar)?,
        AdmissionPreset::Large => wanted.bands(Preset::Large, &bar)?,
        AdmissionPreset::Library => wanted.bands(Preset::Library, &bar)?,
        AdmissionPreset::Stress => wanted.stress(&bar)?,
        AdmissionPreset::LongRun => wanted.long_run(&bar)?,
        AdmissionPreset::Slowing => wanted.slowing(&bar)?,
        AdmissionPreset::Crowd => wanted.crowd(&bar)?,
    };
    drop(bar);
    let ended = if_stopped(&wanted.stop, &mut report);
    tell(&args.report, args.out.as_deref(), [&name, "Admission, simulated"], &report)?;
    ended
}

/// Refuses options that the preset has no use for, which would otherwise be ignored in silence.
fn refuse_unused(args: &AdmissionArgs, preset: &str) -> Result<(), Failure> {
    use AdmissionPreset::{Crowd, Large, Library, LongRun, Paper, Slowing, Stress};
    let bands = &[Paper, Large, Library][..];
    let but_crowd = &[Paper, Large, Library, Stress, LongRun, Slowing][..];
    let of_titles = &[Paper, Large, Library, LongRun, Slowing][..];
    let but_stress = &[Paper, Large, Library, LongRun, Slowing, Crowd][..];
    let counted = &[Paper, Large, Library, Stress, LongRun][..];
    let given = [
        ("policy", args.policy.is_some(), but_crowd),
        ("store", args.store.is_some(), of_titles),
        ("scenarios", args.scenarios.is_some(), counted),
        ("arrivals", args.arrivals.is_some(), bands),
        ("read-size", args.read_size.is_some(), but_stress),
        ("memory", args.memory.is_some(), but_stress),
        ("wait", args.wait.is_some(), &[Crowd]),
    ];
    let unused = |(_, is_given, used): &(_, bool, &[_])| *is_given && !used.contains(&args.preset);
    match given.into_iter().find(unused) {
        None => Ok(()),
        Some((option, ..)) => {
            let sentence = format!("--{option} has no effect with --preset {preset}");
            Err(Failure::usage(sentence).hint("leave it out, or choose another --preset"))
        }
    }
}

pub(crate) fn ageing(args: &AgeingArgs) -> Result<(), Failure> {
    if let Some(dir) = &args.out {
        prepare(dir, AGEING, &args.overwrite)?;
    }
    check_read_size(args.read_size)?;
    let study = AgeingStudy {
        model: args.size.map_or_else(|| args.model.clone(), |size| args.model.scaled_to(size)),
        chunk: FormatOptions::default().chunk,
        read_size: args.read_size,
        full: f64::from(args.full) / 100.0,
        months: args.months,
        removal: match args.remove {
            RemovedTitle::Random => Removal::Random,
            RemovedTitle::Oldest => Removal::Oldest,
        },
        seed: args.random.seed,
    };
    stopping::end_on_signals()?;
    let bar = Bar::new();
    let months = study.run(&mut |part| bar.percent(AGEING, part))?;
    drop(bar);
    let report = ageing_report(&study, &months);
    tell(&args.report, args.out.as_deref(), [AGEING, "A store as it ages, simulated"], &report)
}

pub(crate) fn fleet(args: &FleetSimulationArgs) -> Result<(), Failure> {
    if let Some(dir) = &args.out {
        prepare(dir, FLEET, &args.overwrite)?;
    }
    check_read_size(args.read_size)?;
    let setups = fleet_setups(args)?;
    let stop = stopping::on_signals_to_runs()?;
    let bar = Bar::new();
    let (count, seeds, rows) = (setups.len() as u64 * args.seeds, args.seeds, setups.clone());
    let one = move |number| {
        let setup = &rows[usize::try_from(number / seeds).expect("a row in memory")];
        let start = clock();
        let run = FleetSetup { seed: setup.seed + number % seeds, ..setup.clone() }.run();
        (run, clock().saturating_sub(start))
    };
    let results = spread_until(&stop, count, |part| bar.percent(FLEET, part), one);
    drop(bar);
    let seeds = usize::try_from(args.seeds).expect("the runs are in memory");
    let rows = setups.into_iter().zip(results.chunks(seeds)).map(|(setup, runs)| FleetRow {
        setup,
        runs: runs.iter().map(|(run, _)| *run).collect(),
        took: runs.iter().map(|(_, took)| *took).sum(),
    });
    let mut report = fleet_report(&complete(rows.collect(), |row| row.runs.len())?);
    let ended = if_stopped(&stop, &mut report);
    tell(&args.report, args.out.as_deref(), [FLEET, "A fleet of nodes, simulated"], &report)?;
    ended
}

/// The parts of a study that have a result, of which there must be one.
fn complete<T>(mut parts: Vec<T>, results: impl Fn(&T) -> usize) -> Result<Vec<T>, Failure> {
    parts.retain(|part| results(part) > 0);
    if parts.is_empty() { Err(stopping::without_result()) } else { Ok(parts) }
}

/// How a command ends whose study may have been stopped; its report says so, too.
fn if_stopped(stop: &AtomicBool, report: &mut Report) -> Result<(), Failure> {
    if !stop.load(Ordering::Relaxed) {
        return Ok(());
    }
    report.notes.insert(0, INTERRUPTED.to_owned());
    Err(Failure::new("interrupted: the report covers the runs that were complete")
        .code(Code::Invalid))
}

/// The rows of `simulate fleet`, with the first seed of each.
fn fleet_setups(args: &FleetSimulationArgs) -> Result<Vec<FleetSetup>, Failure> {
    for (name, time, bounds) in [
        ("--time", args.time, SIMULATED),
        ("--hold", args.hold, SIMULATED),
        ("--digests", args.digests, DIGESTS),
    ] {
        if !bounds.contains(&time) {
            let [least, most] = [bounds.start(), bounds.end()].map(|t| units::show_duration(*t));
            return Err(Failure::usage(format!("{name} must be between {least} and {most}"))
                .hint(format!("for example {name} {least}")));
        }
    }
    let question = Question {
        audience: PlannedAudience::Rate(args.rate),
        memory: None,
        disks: 1,
        popularity: None,
        startup: Duration::from_secs(1),
        read: Some(args.read_size),
        policies: vec![PolicyKind::TimeDomain],
    };
    let held = plan(&PlanDisk::Model(args.model.clone()), question, &mut in_turn).held();
    let streams = held
        .and_then(|(_, held)| u32::try_from(held.streams).ok())
        .filter(|streams| (1..=MOST_STREAMS_OF_A_DISK).contains(streams))
        .ok_or_else(|| {
            let sentence = format!(
                "a disk does not hold streams of {} in reads of {}",
                args.rate, args.read_size
            );
            let hint = format!("tenuto plan --rate {}bps shows the sizes that do", args.rate.0);
            Failure::usage(sentence).hint(hint)
        })?;
    let all = u64::from(args.nodes) * u64::from(args.disks) * u64::from(streams);
    if all > MOST_STREAMS {
        let sentence = format!("{all} guaranteed streams are more than {MOST_STREAMS}");
        return Err(Failure::usage(sentence).hint("give fewer --nodes or --disks"));
    }
    let policies = if args.policy.is_empty() { &FleetPolicy::ALL[..] } else { &args.policy };
    let mut setups = Vec::new();
    for &scenario in &args.scenario {
        for &zipf in &args.zipf {
            for &policy in policies {
                setups.push(FleetSetup {
                    nodes: args.nodes,
                    rack: args.rack,
                    disks: args.disks,
                    streams,
                    rate: args.rate,
                    titles: args.titles,
                    zipf,
                    load: f64::from(args.load) / 100.0,
                    hold: args.hold,
                    time: args.time,
                    digests: args.digests,
                    policy,
                    scenario,
                    seed: args.random.seed,
                });
            }
        }
    }
    Ok(setups)
}

fn check_read_size(size: ByteCount) -> Result<(), Failure> {
    if (BLOCK..=LARGEST_READ).contains(&size.0) {
        return Ok(());
    }
    Err(Failure::usage("--read-size must be between 64KiB and 64MiB")
        .hint("for example --read-size 1MiB"))
}

/// Refuses memory in which not one read fits: an accepted scenario would never be read to its end.
fn check_memory(args: &AdmissionArgs) -> Result<(), Failure> {
    let usual = match args.preset {
        AdmissionPreset::Library | AdmissionPreset::Crowd => ByteCount::mib(4),
        _ => ByteCount::MIB,
    };
    let read = args.read_size.unwrap_or(usual);
    match args.memory {
        Some(memory) if memory < read => {
            Err(Failure::usage(format!("--memory: no read of {read} fits in {memory}"))
                .hint("give more --memory, or a smaller --read-size"))
        }
        _ => Ok(()),
    }
}

/// A study: its arguments, and what is derived from them.
struct StudySetup<'a> {
    args: &'a AdmissionArgs,
    policies: &'a [PolicyKind],
    disk: Option<DiskModel>,
    titles: Option<StoredTitles>,
    gap: Option<Duration>,
    /// Set by a signal: no run begins from then on.
    stop: Arc<AtomicBool>,
}

impl<'a> StudySetup<'a> {
    fn of(args: &'a AdmissionArgs) -> Result<Self, Failure> {
        let gap = match args.arrivals {
            None => None,
            Some(Arrivals::Poisson(gap)) if !gap.is_zero() => Some(gap),
            Some(Arrivals::Poisson(_)) => {
                let sentence = "--arrivals: the mean time between arrivals is longer than 0";
                return Err(Failure::usage(sentence).hint("for example --arrivals poisson:500ms"));
            }
            Some(_) => {
                let sentence = "--arrivals: viewers of a scenario arrive independently";
                return Err(Failure::usage(sentence).hint("for example --arrivals poisson:500ms"));
            }
        };
        args.read_size.map_or(Ok(()), check_read_size)?;
        check_memory(args)?;
        let stored = args.store.as_deref().map(titles_of).transpose()?;
        let (titles, size) = stored.unzip();
        let model = args.model.clone();
        let disk = match size {
            // The places of the titles are those on the store's device, so the model must be as
            // long.
            Some(size) => Some(model.unwrap_or_else(fitted::small).scaled_to(size)),
            None => model,
        };
        let policies = args.policy.as_ref().map_or(&[][..], |policies| &policies.0);
        let stop = stopping::on_signals_to_runs()?;
        Ok(Self { args, policies, disk, titles, gap, stop })
    }

    fn memory(&self) -> Option<u64> {
        self.args.memory.map(|size| size.0)
    }

    fn read_size(&self) -> Option<u64> {
        self.args.read_size.map(|size| size.0)
    }

    fn bands(&self, preset: Preset, bar: &Bar) -> Result<Report, Failure> {
        let gaps = match (self.gap, preset) {
            (Some(gap), _) => vec![gap],
            (None, Preset::Library) => {
                vec![100, 500].into_iter().map(Duration::from_millis).collect()
            }
            (None, _) => vec![500, 1000, 2000].into_iter().map(Duration::from_millis).collect(),
        };
        let scenarios = self.args.scenarios.unwrap_or(match preset {
            Preset::Paper => PAPER_SCENARIOS,
            Preset::Large => LARGE_SCENARIOS,
            Preset::Library => LIBRARY_SCENARIOS,
        });
        let mut groups = Vec::new();
        for gap in gaps {
            if self.stop.load(Ordering::Relaxed) {
                break;
            }
            let stage = format!("arrivals every {}", units::show_duration(gap));
            bar.say(&format!("{stage}: training"));
            let mut setup = Setup::new(preset, gap);
            setup.disk.clone_from(&self.disk);
            setup.policies = self.policies.to_vec();
            setup.titles = self.titles.clone().map(|titles| TitleOrigin::Given(Arc::new(titles)));
            setup.read_size = self.read_size().unwrap_or(setup.read_size);
            setup.memory = self.memory().unwrap_or(setup.memory);
            setup.seed = self.args.random.seed;
            // One study for all scenarios of a rate: its policies are trained once.
            let Some(study) = compute_until(&self.stop, move || setup.study(Some(clock))) else {
                break;
            };
            let judge = {
                let study = study.clone();
                move |i| study.judge(i)
            };
            let show = |part| bar.percent(&stage, part);
            let results = spread_until(&self.stop, scenarios, show, judge);
            groups.push(ArrivalGroup { study, results });
        }
        Ok(study_report(SOURCE, &complete(groups, |group| group.results.len())?))
    }

    fn stress(&self, bar: &Bar) -> Result<Report, Failure> {
        let chosen = self.policies.iter().copied().map(PolicyUnderTest::long);
        let mut tested: Vec<(PolicyUnderTest, Option<DiskModel>)> =
            chosen.map(|tested| (tested, self.disk.clone())).collect();
        if tested.is_empty() {
            tested.push((PolicyUnderTest::long(PolicyKind::TimeDomain), self.disk.clone()));
            // On another disk another number of blocks is observed.
            let observed = self.trained().into_iter().rev().find(|c| c.blocks.is_some());
            let model = self.disk.clone().unwrap_or_else(fitted::small);
            tested.extend(observed.map(|tested| (tested, Some(model))));
        }
        let runs = self.args.scenarios.unwrap_or(STRESS_RUNS);
        let rows = tested.into_iter().map(|(tested, model)| {
            let seed = self.args.random.seed;
            let name = tested.name.clone();
            let stress =
                compute_until(&self.stop, move || Stress::new(&tested, model.clone(), seed));
            let results = stress.map_or_else(Vec::new, |stress| {
                let show = |part| bar.percent(&name, part);
                spread_until(&self.stop, runs, show, move |i| stress.run(i))
            });
            (name, results)
        });
        Ok(stress_report(SOURCE, &complete(rows.collect(), |(_, results)| results.len())?))
    }

    fn long_run(&self, bar: &Bar) -> Result<Report, Failure> {
        let (model, titles) = self.house();
        let runs = self.args.scenarios.unwrap_or(3);
        let mut tested = self.long_read_policies();
        if self.policies.is_empty() {
            let paper = |c: &PolicyUnderTest| c.policy == PolicyKind::VbrSim && c.blocks.is_some();
            tested.extend(self.trained().into_iter().filter(paper));
        }
        let mut rows = Vec::new();
        for tested in tested {
            let name = tested.name.clone();
            let Some(rules) = self.rules(tested, model.clone()) else { break };
            // Every run has a seed of its own, and --seed changes all of them.
            let (titles, of_all) = (titles.clone(), self.args.random.seed);
            let one = move |seed| long_run(&rules, &titles, OVERLOAD, LENGTH, of_all ^ seed);
            let runs = spread_until(&self.stop, runs, |part| bar.percent(&name, part), one);
            rows.push((name, runs));
        }
        let rows = complete(rows, |(_, runs)| runs.len())?;
        Ok(long_run_report(SOURCE, self.memory().unwrap_or(LONG_RUN_MEMORY), &rows))
    }

    fn slowing(&self, bar: &Bar) -> Result<Report, Failure> {
        let (model, titles) = self.house();
        let mut cases = Vec::new();
        for tested in self.long_read_policies() {
            let name = tested.name.clone();
            let Some(rules) = self.rules(tested, model.clone()) else { break };
            // The same disk with and without the guard: the difference is the effect of the guard.
            for guarded in [true, false] {
                cases.push((name.clone(), guarded, rules.clone()));
            }
        }
        let (count, seed) = (cases.len() as u64, self.args.random.seed);
        let one = move |case| {
            let (name, guarded, rules) = &cases[usize::try_from(case).expect("few")];
            let rules = Rules { guarded: *guarded, ..rules.clone() };
            let phases = slowdown_run(&rules, &titles, TIMES_SLOWER, SLOWING_STEP, seed);
            SlowdownRun { name: name.clone(), guarded: *guarded, phases }
        };
        let show = |part| bar.percent("a disk that slows down", part);
        let runs = spread_until(&self.stop, count, show, one);
        Ok(slowdown_report(SOURCE, TIMES_SLOWER, &complete(runs, |_| 1)?))
    }

    fn crowd(&self, bar: &Bar) -> Result<Report, Failure> {
        let preset = |(name, read): (&str, ByteCount)| {
            Some((name.to_owned(), DiskModel::preset(name)?, read))
        };
        let disks: Vec<(String, DiskModel, ByteCount)> = match &self.disk {
            Some(model) => vec![(model.title().to_owned(), model.clone(), ByteCount::MIB)],
            None => CROWDED_DISKS.into_iter().filter_map(preset).collect(),
        };
        let server = ServerConfig::default();
        let mut studies = Vec::new();
        for (name, model, read) in disks {
            let read_size = self.args.read_size.unwrap_or(read);
            for variable in [false, true] {
                let study = CrowdStudy {
                    model: model.clone(),
                    read_size,
                    piece: engine::piece_size(CROWD_RATE, &[], read_size),
                    memory: self.args.memory.unwrap_or(CROWD_MEMORY),
                    rate: CROWD_RATE,
                    variable,
                    sound: None,
                    length: CROWD_TITLE,
                    segment: server.segment,
                    startup: server.startup,
                    wait: self.args.wait.unwrap_or(CROWD_WAIT),
                    seed: self.args.random.seed,
                };
                studies.push((name.clone(), study));
            }
        }
        bar.say("viewers that the disks hold");
        let known = studies.clone();
        let capacity = move |number| known[usize::try_from(number).expect("few")].1.capacity();
        let capacities = spread_until(&self.stop, studies.len() as u64, |_| {}, capacity);
        let crowds: Vec<_> = studies.into_iter().zip(capacities).flat_map(crowds_of).collect();
        let count = crowds.len() as u64;
        let one = move |number| {
            let (name, study, viewers, arrivals) = &crowds[usize::try_from(number).expect("few")];
            (name.clone(), study.clone(), study.run(*viewers, *arrivals))
        };
        let runs = spread_until(&self.stop, count, |part| bar.percent("crowds", part), one);
        Ok(crowd_report("Crowds, simulated", &complete(runs, |_| 1)?))
    }

    /// The disk and the titles of a long run.
    fn house(&self) -> (DiskModel, StoredTitles) {
        let model = self.disk.clone().unwrap_or_else(fitted::small);
        let titles = self.titles.clone().unwrap_or_else(|| {
            let clips = Clips::fill(ClipKind::SHORT, model.capacity().0, self.args.random.seed);
            StoredTitles::some(&clips, MOST_TITLES)
        });
        (model, titles)
    }

    /// The contenders of a long run: the policies named, or the default policy.
    fn long_read_policies(&self) -> Vec<PolicyUnderTest> {
        let default = &[PolicyKind::TimeDomain][..];
        let policies = if self.policies.is_empty() { default } else { self.policies };
        policies.iter().copied().map(PolicyUnderTest::long).collect()
    }

    /// How a policy's server uses the disk; `None` if stopped before that was known.
    fn rules(&self, tested: PolicyUnderTest, model: DiskModel) -> Option<Rules> {
        let memory = self.memory().unwrap_or(LONG_RUN_MEMORY);
        let read_size = self.read_size().unwrap_or(1 << 20);
        // Some policies watch the disk before.
        let rules = compute_until(&self.stop, move || tested.rules(&model, read_size))?;
        Some(Rules { memory, clock: Some(clock), ..rules })
    }

    /// The contenders of the paper after training on the disk; none if stopped before.
    fn trained(&self) -> Vec<PolicyUnderTest> {
        let disk = self.disk.clone();
        let setup = Setup { disk, ..Setup::new(Preset::Paper, Duration::from_millis(500)) };
        let study = compute_until(&self.stop, move || setup.study(None));
        study.map_or_else(Vec::new, |study| study.tested)
    }
}

/// A crowd to be simulated: the disk's name, the study, the viewers, and when they come.
type Crowd = (String, CrowdStudy, u64, CrowdArrivals);

/// The crowds of a study on a disk that holds so many viewers in steady state: as many come, so
/// that only the speed of their arrival is tested.
fn crowds_of(((name, study), viewers): ((String, CrowdStudy), u64)) -> Vec<Crowd> {
    let of = |study: &CrowdStudy| {
        let crowd = |within| (name.clone(), study.clone(), viewers, CrowdArrivals::Random(within));
        CROWDS.map(crowd)
    };
    let mut crowds = Vec::from(of(&study));
    if !study.variable {
        let sound = Some((SOUND_RATE, engine::piece_size(SOUND_RATE, &[], study.read_size)));
        crowds.extend(of(&CrowdStudy { sound, ..study.clone() }));
        let study = CrowdStudy { sound, length: SHORT_TITLE, ..study };
        crowds.push((name.clone(), study, 2 * viewers, CrowdArrivals::Even(OVERLOAD_TIME)));
    }
    crowds
}

/// The titles of a store with their places, and the size of its device.
fn titles_of(path: &Path) -> Result<(StoredTitles, ByteCount), Failure> {
    let store = Store::open(path)?;
    let mut titles = Vec::new();
    for record in store.titles() {
        let index = store.index(record.id)?;
        let runs = |track: u16| store.runs(record.id, track).unwrap_or_default();
        titles.extend(studies::admission::stored_title(&index, runs));
    }
    if titles.is_empty() {
        let sentence = format!("no title in {} can be played", path.display());
        return Err(Failure::new(sentence).hint("add titles with `tenuto ingest`"));
    }
    Ok((StoredTitles(titles), store.device().geometry().size))
}

/// Time since the first call: measures how long decisions take.
fn clock() -> Duration {
    static START: OnceLock<Instant> = OnceLock::new();
    // The study takes a function without state, and an `Instant` has no zero of its own.
    START.get_or_init(Instant::now).elapsed()
}

/// First of the notes of a report that a signal cut short.
const INTERRUPTED: &str = "Interrupted: this report covers the runs that were complete by then.";

const SOURCE: &str = "Admission, simulated, after Makaroff, Coutu and Liu, \"Disk Performance and VBR \
                      Admission Control for Media Servers\"";

/// Disks of the preset crowd, and the reads with which each holds most.
const CROWDED_DISKS: [(&str, ByteCount); 3] =
    [("hdd-20tb", ByteCount(4 << 20)), ("ssd-sata", ByteCount::MIB), ("st39183w", ByteCount::MIB)];
/// Times within which a crowd comes.
const CROWDS: [Duration; 4] =
    [Duration::ZERO, Duration::from_secs(10), Duration::from_secs(60), Duration::from_secs(300)];
/// Mean rate of the titles of a crowd.
const CROWD_RATE: BitRate = BitRate(5_000_000);
/// Length of the titles of a crowd: much longer than the time in which it comes.
const CROWD_TITLE: Duration = Duration::from_secs(600);
/// The time in which twice as many viewers come as a disk holds.
const OVERLOAD_TIME: Duration = Duration::from_secs(40);
/// Length of the titles of an overload: some end while others come.
const SHORT_TITLE: Duration = Duration::from_secs(60);
/// Mean rate of the sound of these titles.
const SOUND_RATE: BitRate = BitRate(128_000);
/// How long a viewer of a crowd waits, as with `tenuto serve`.
const CROWD_WAIT: Duration = Duration::from_secs(5);
const CROWD_MEMORY: ByteCount = ByteCount(4 << 30);

/// Largest value of `--read-size`.
const LARGEST_READ: u64 = 64 << 20;

/// Titles that a long run draws from.
const MOST_TITLES: usize = 64;

/// Scenarios of the paper's preset: 1,000 or more fall into each band near the limit.
const PAPER_SCENARIOS: u64 = 10_500;
const LARGE_SCENARIOS: u64 = 3_000;
const LIBRARY_SCENARIOS: u64 = 60;
/// Runs of the stress preset: more than ten million reads.
const STRESS_RUNS: u64 = 360;

/// Factor by which the disk slows down.
const TIMES_SLOWER: f64 = 1.5;
/// Time between two samples of the run in which the disk slows down.
const SLOWING_STEP: Duration = Duration::from_secs(10);

/// Name of the report and the page of ageing.
const AGEING: &str = "ageing";
/// Name of the report and the page of a fleet.
const FLEET: &str = "fleet";
/// The time of a fleet, and the mean stay of its viewers.
const SIMULATED: RangeInclusive<Duration> =
    Duration::from_secs(60)..=Duration::from_secs(31 * 24 * 3600);
/// The interval of digests.
const DIGESTS: RangeInclusive<Duration> = Duration::from_millis(100)..=Duration::from_secs(3600);
/// Most streams of one disk: memory is kept for each.
const MOST_STREAMS_OF_A_DISK: u32 = 100_000;
/// Most streams of a fleet: about a gigabyte for each run.
const MOST_STREAMS: u64 = 20_000_000;

const OVERLOAD: f64 = 2.0;
const LENGTH: Duration = Duration::from_secs(45 * 60);
const LONG_RUN_MEMORY: u64 = 125 << 20;
