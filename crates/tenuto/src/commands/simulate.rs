//! `simulate admission`: spreads scenarios over the machine's cores and reports.

use super::reproduce::{prepare, tell, write};
use crate::cli::Args;
use crate::failure::Failure;
use crate::out::Bar;
use disk::DiskModel;
use meter::viewer::Arrivals;
use scheduler::PolicyKind;
use simulator::admission::{
    BLOCK, ClipKind, Clips, Contender, Group, Kept, Preset, Rules, Setup, Slowed, Stress, Titles,
    fits, long_run, long_run_report, slowing, slowing_report, stress_report, study_report,
};
use simulator::reproduce::Report;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use store::Store;
use units::ByteCount;

pub(crate) fn admission(args: &Args<'_>) -> Result<(), Failure> {
    let preset = args.text("preset");
    let name = format!("admission-{preset}");
    let out: Option<PathBuf> = args.maybe("out");
    if let Some(dir) = &out {
        prepare(dir, &name, args.has("destroy"))?;
    }
    let wanted = Wanted::of(args)?;
    let bar = Bar::new();
    let report = match preset.as_str() {
        "large" => wanted.bands(Preset::Large, &bar)?,
        "library" => wanted.bands(Preset::Library, &bar)?,
        "stress" => wanted.stress(&bar),
        "long-run" => wanted.long_run(&bar),
        "slowing" => wanted.slowing(&bar),
        _ => wanted.bands(Preset::Paper, &bar)?,
    };
    drop(bar);
    if let Some(dir) = &out {
        write(dir, &name, "Admission, simulated", &report)?;
    }
    tell(args, &name, &report);
    Ok(())
}

/// What was asked for on the command line.
struct Wanted {
    policies: Vec<PolicyKind>,
    disk: Option<DiskModel>,
    titles: Option<Kept>,
    scenarios: Option<u64>,
    gap: Option<Duration>,
    read_size: Option<u64>,
    memory: Option<u64>,
    seed: u64,
}

impl Wanted {
    fn of(args: &Args<'_>) -> Result<Self, Failure> {
        let gap = match args.maybe::<Arrivals>("arrivals") {
            None => None,
            Some(Arrivals::Poisson(gap)) if !gap.is_zero() => Some(gap),
            Some(_) => {
                return Err(Failure::usage(
                    "--arrivals: scenarios are drawn with independent viewers",
                )
                .hint("say for instance --arrivals poisson:500ms"));
            }
        };
        let read_size = args.maybe::<ByteCount>("read-size").map(|size| size.0);
        if read_size.is_some_and(|size| !(BLOCK..=LARGEST_READ).contains(&size)) {
            return Err(Failure::usage("--read-size is between 64KiB and 64MiB"));
        }
        let mut disk = args
            .maybe::<String>("disk")
            .map(|name| DiskModel::preset(&name).expect("the table offers what there is"));
        let titles = match args.maybe::<PathBuf>("store") {
            None => None,
            Some(path) => {
                let (titles, size) = titles_of(&path)?;
                let model = disk.take().unwrap_or_else(fits::small);
                disk = Some(model.scaled_to(size));
                Some(titles)
            }
        };
        Ok(Self {
            policies: policies(args.maybe("policy"))?,
            disk,
            titles,
            scenarios: args.maybe("scenarios"),
            gap,
            read_size,
            memory: args.maybe::<ByteCount>("memory").map(|size| size.0),
            seed: args.get("seed"),
        })
    }

    fn bands(&self, preset: Preset, bar: &Bar) -> Result<Report, Failure> {
        let gaps = match (self.gap, preset) {
            (Some(gap), _) => vec![gap],
            (None, Preset::Library) => {
                vec![100, 500].into_iter().map(Duration::from_millis).collect()
            }
            (None, _) => vec![500, 1000, 2000].into_iter().map(Duration::from_millis).collect(),
        };
        let scenarios = self.scenarios.unwrap_or(match preset {
            Preset::Paper => PAPER_SCENARIOS,
            Preset::Large => LARGE_SCENARIOS,
            Preset::Library => LIBRARY_SCENARIOS,
        });
        let mut groups = Vec::new();
        for gap in gaps {
            let stage = format!("arrivals every {}", units::show_duration(gap));
            bar.say(&format!("{stage}: training"));
            let mut setup = Setup::new(preset, gap);
            setup.disk.clone_from(&self.disk);
            setup.policies.clone_from(&self.policies);
            setup.titles = self.titles.clone().map(|titles| Titles::Given(Arc::new(titles)));
            setup.read_size = self.read_size.unwrap_or(setup.read_size);
            setup.memory = self.memory.unwrap_or(setup.memory);
            setup.seed = self.seed;
            let study = setup.study(Some(clock));
            let judged = spread(scenarios, |part| bar.percent(&stage, part), |i| study.judge(i));
            groups.push(Group { study, judged });
        }
        Ok(study_report(SOURCE, &groups))
    }

    fn stress(&self, bar: &Bar) -> Report {
        let chosen = self.policies.iter().copied().map(Contender::long);
        let mut contenders: Vec<(Contender, Option<DiskModel>)> =
            chosen.map(|contender| (contender, self.disk.clone())).collect();
        if contenders.is_empty() {
            contenders.push((Contender::long(PolicyKind::TimeDomain), self.disk.clone()));
            let observed = Setup::new(Preset::Paper, Duration::from_millis(500)).study(None);
            let observed = observed.contenders.into_iter().rev().find(|c| c.blocks.is_some());
            let model = self.disk.clone().unwrap_or_else(fits::small);
            contenders.extend(observed.map(|contender| (contender, Some(model))));
        }
        let runs = self.scenarios.unwrap_or(STRESS_RUNS);
        let rows = contenders.into_iter().map(|(contender, model)| {
            let stress = Stress::new(&contender, model, self.seed);
            let name = contender.name;
            let strains = spread(runs, |part| bar.percent(&name, part), |i| stress.run(i));
            (name, strains)
        });
        stress_report(SOURCE, &rows.collect::<Vec<_>>())
    }

    fn long_run(&self, bar: &Bar) -> Report {
        let (model, titles) = self.house();
        let runs = self.scenarios.unwrap_or(3);
        let mut contenders = self.long_contenders();
        if self.policies.is_empty() {
            let study = Setup {
                disk: self.disk.clone(),
                ..Setup::new(Preset::Paper, Duration::from_millis(500))
            };
            let paper = |c: &Contender| c.policy == PolicyKind::VbrSim && c.blocks.is_some();
            contenders.extend(study.study(None).contenders.into_iter().filter(paper));
        }
        let mut rows = Vec::new();
        for contender in contenders {
            let rules = self.rules(&contender, &model);
            let name = contender.name;
            let one = |seed| long_run(&rules, &titles, OVERLOAD, LENGTH, self.seed ^ seed);
            let runs = spread(runs, |part| bar.percent(&name, part), one);
            rows.push((name, runs));
        }
        long_run_report(SOURCE, self.memory.unwrap_or(LONG_RUN_MEMORY), &rows)
    }

    fn slowing(&self, bar: &Bar) -> Report {
        let (model, titles) = self.house();
        let mut cases = Vec::new();
        for contender in self.long_contenders() {
            for guarded in [true, false] {
                cases.push((contender.name.clone(), guarded, self.rules(&contender, &model)));
            }
        }
        let runs = spread(
            cases.len() as u64,
            |part| bar.percent("a disk that slows down", part),
            |case| {
                let (name, guarded, rules) = &cases[usize::try_from(case).expect("few")];
                let rules = Rules { guarded: *guarded, ..rules.clone() };
                let phases = slowing(&rules, &titles, TIMES_SLOWER, SLOWING_STEP, self.seed);
                Slowed { name: name.clone(), guarded: *guarded, phases }
            },
        );
        slowing_report(SOURCE, TIMES_SLOWER, &runs)
    }

    /// A disk, and titles that are asked for again and again.
    fn house(&self) -> (DiskModel, Kept) {
        let model = self.disk.clone().unwrap_or_else(fits::small);
        let titles = self.titles.clone().unwrap_or_else(|| {
            let clips = Clips::fill(ClipKind::SHORT, model.capacity().0, self.seed);
            Kept::some(&clips, MOST_TITLES)
        });
        (model, titles)
    }

    /// Those named, or the default policy.
    fn long_contenders(&self) -> Vec<Contender> {
        let default = [PolicyKind::TimeDomain];
        let policies = if self.policies.is_empty() { &default[..] } else { &self.policies };
        policies.iter().copied().map(Contender::long).collect()
    }

    fn rules(&self, contender: &Contender, model: &DiskModel) -> Rules {
        Rules {
            memory: self.memory.unwrap_or(LONG_RUN_MEMORY),
            clock: Some(clock),
            ..Rules::of(contender, model, self.read_size.unwrap_or(1 << 20))
        }
    }
}

fn policies(typed: Option<String>) -> Result<Vec<PolicyKind>, Failure> {
    if typed.as_deref().map(str::trim) == Some("all") {
        return Ok(PolicyKind::all().filter(|policy| *policy != PolicyKind::None).collect());
    }
    let names = typed.iter().flat_map(|text| text.split(',')).map(str::trim);
    names
        .map(|name| {
            PolicyKind::named(name).ok_or_else(|| {
                let known: Vec<&str> = PolicyKind::all().map(PolicyKind::name).collect();
                Failure::usage(format!("--policy: '{name}' is not a policy"))
                    .hint(format!("there are {}; or 'all'", known.join(", ")))
            })
        })
        .collect()
}

/// The titles of a store with their places, and the size of what it lies on.
fn titles_of(path: &Path) -> Result<(Kept, ByteCount), Failure> {
    let store = Store::open(path)?;
    let mut titles = Vec::new();
    for record in store.titles() {
        let index = store.index(record.id)?;
        let runs = |track: u16| store.runs(record.id, track).unwrap_or_default();
        titles.extend(super::simulate_titles::title(&index, runs));
    }
    if titles.is_empty() {
        let sentence = format!("no title in {} can be played", path.display());
        return Err(Failure::new(sentence).hint("put some in with `tenuto ingest`"));
    }
    Ok((Kept(titles), store.device().geometry().size))
}

/// Does `one` for every number below `count` on all cores; the results are in order.
fn spread<T: Send>(
    count: u64,
    mut progress: impl FnMut(f64),
    one: impl Fn(u64) -> T + Sync,
) -> Vec<T> {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let next = AtomicU64::new(0);
    let (done, results) = std::sync::mpsc::channel();
    let mut all: Vec<(u64, T)> = std::thread::scope(|scope| {
        for _ in 0..cores {
            let (done, next, one) = (done.clone(), &next, &one);
            scope.spawn(move || {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= count || done.send((number, one(number))).is_err() {
                        break;
                    }
                }
            });
        }
        drop(done);
        let mut all = Vec::new();
        for result in results {
            all.push(result);
            progress(all.len() as f64 / count as f64);
        }
        all
    });
    all.sort_by_key(|(number, _)| *number);
    all.into_iter().map(|(_, result)| result).collect()
}

/// Time since the program asked for the first time: to say how long decisions take.
fn clock() -> Duration {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed()
}

const SOURCE: &str = "Admission, simulated, after Makaroff, Coutu and Liu, \"Disk Performance and VBR \
                      Admission Control for Media Servers\"";

/// As the table says.
const LARGEST_READ: u64 = 64 << 20;

/// A long run asks for titles again and again: so many are kept.
const MOST_TITLES: usize = 64;

/// So that some 1,000 or more fall into each band near the limit.
const PAPER_SCENARIOS: u64 = 10_500;
const LARGE_SCENARIOS: u64 = 3_000;
const LIBRARY_SCENARIOS: u64 = 60;
/// More than ten million reads.
const STRESS_RUNS: u64 = 360;

/// By so much the disk slows down ...
const TIMES_SLOWER: f64 = 1.5;
/// ... in a run that is looked at every ten seconds.
const SLOWING_STEP: Duration = Duration::from_secs(10);

const OVERLOAD: f64 = 2.0;
const LENGTH: Duration = Duration::from_secs(45 * 60);
const LONG_RUN_MEMORY: u64 = 125 << 20;
