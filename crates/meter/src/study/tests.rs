//! Every study on a tiny directory and on a simulated disk: the operations and their order, never
//! the speed. Verdicts from given figures.

use super::*;
use crate::error::MeterError;
use crate::target::LeftBehind;
use crate::transfers::Length;
use disk::DiskModel;
use std::path::PathBuf;
use std::time::Duration;
use units::{ByteCount, Hinted};

fn named(name: &str) -> &'static Study {
    Study::named(name).unwrap()
}

fn plan(repeats: u32) -> StudyPlan {
    let size = Some(ByteCount::mib(48));
    StudyPlan { size, clients: 2, length: Duration::from_millis(10), repeats, seed: 7 }
}

/// Makes a study whose files can all be removed.
fn run(
    study: &Study,
    target: &StudyTarget,
    plan: &StudyPlan,
    go_on: &mut dyn FnMut(StudyProgress<'_>) -> bool,
) -> Result<Done, MeterError> {
    let left = LeftBehind::default();
    let done = super::run(study, target, plan, &left, go_on);
    assert_eq!(left.take(), Vec::<String>::new());
    done
}

/// A directory that is empty before and after.
struct TestDir(PathBuf);

impl TestDir {
    fn new(name: &str) -> Self {
        let dir = std::env::temp_dir().join(format!("tenuto-study-{}-{name}", std::process::id()));
        std::fs::create_dir(&dir).unwrap();
        Self(dir)
    }
}

impl Drop for TestDir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn every_study_runs_on_a_directory_and_leaves_nothing() {
    // The fill level study would fill the file system that other tests use.
    for study in ALL.iter().filter(|study| study.name != "fill-level") {
        let (first, second) =
            (TestDir::new(&study.name), TestDir::new(&format!("{}-2", study.name)));
        let mut dirs = vec![first.0.clone()];
        dirs.extend(study.two_nodes.then(|| second.0.clone()));
        let target = StudyTarget::at(dirs).unwrap();
        let done = run(study, &target, &plan(2), &mut |_| true).unwrap();
        assert!(done.complete, "{}", study.name);
        assert_eq!(done.runs.len(), done.settings.len() * 2, "{}", study.name);
        for run in &done.runs {
            assert!(run.measured.transfers > 0, "{}: {run:?}", study.name);
        }
        for answer in answers(study, &done) {
            assert_ne!(
                answer.verdict,
                ClaimVerdict::Yes,
                "two repetitions prove nothing: {answer:?}"
            );
        }
        for dir in [&first.0, &second.0] {
            assert_eq!(std::fs::read_dir(dir).unwrap().count(), 0, "{}", study.name);
        }
    }
}

#[test]
fn the_mechanics_of_a_simulated_disk_show_in_the_results() {
    let target = StudyTarget::Simulated(Box::new(DiskModel::preset("hdd-20tb").unwrap()));
    // One client where reads continue: the disk reads ahead for one client at a time.
    for (study, clients, wanted) in [
        (named("position"), 4, vec![ClaimVerdict::Yes]),
        (named("fill-level"), 4, vec![ClaimVerdict::Yes]),
        (named("fragmentation"), 1, vec![ClaimVerdict::Yes]),
        (named("random"), 1, vec![ClaimVerdict::Yes; 2]),
        (named("length"), 1, vec![ClaimVerdict::Yes; 2]),
        (named("nodes"), 4, vec![ClaimVerdict::Yes; 4]),
    ] {
        let size = Some(ByteCount::mib(10_000_000));
        let length = Duration::from_secs(4);
        let plan = StudyPlan { size, clients, length, repeats: 6, seed: 1 };
        let done = run(study, &target, &plan, &mut |_| true).unwrap();
        let answers = answers(study, &done);
        let verdicts: Vec<ClaimVerdict> = answers.iter().map(|answer| answer.verdict).collect();
        assert_eq!(verdicts, wanted, "{}: {answers:#?}", study.name);
    }
}

#[test]
fn places_are_compared_on_a_whole_simulated_disk() {
    let model = DiskModel::preset("hdd-20tb").unwrap();
    let target = StudyTarget::Simulated(Box::new(model.clone()));
    for (study, size, used) in [
        ("position", None, model.capacity()),
        ("position", Some(ByteCount::mib(64)), ByteCount::mib(64)),
        ("length", None, StudyTarget::USUAL_SIZE),
    ] {
        let plan = StudyPlan { size, ..plan(1) };
        let done = run(named(study), &target, &plan, &mut |_| true).unwrap();
        assert_eq!(done.scale.size, used, "{study}");
        let ends = done.settings.iter().map(|setting| setting.mix.from + setting.mix.each.0);
        let end = ends.max().unwrap();
        assert!(used.0 - end < used.0 / 50, "{study}: {end} of {used}");
    }
}

#[test]
fn the_same_seed_gives_the_same_figures() {
    let target = StudyTarget::Simulated(Box::new(DiskModel::preset("hdd-20tb").unwrap()));
    let figures = |seed| {
        let plan = StudyPlan { seed, length: Duration::from_secs(1), ..plan(2) };
        let done = run(named("random"), &target, &plan, &mut |_| true).unwrap();
        done.runs.into_iter().map(|run| (run.setting, run.measured)).collect::<Vec<_>>()
    };
    assert_eq!(figures(1), figures(1));
    assert_ne!(figures(1), figures(2));
}

#[test]
fn claims_name_existing_settings() {
    let scale = Scale { size: ByteCount::mib(64), clients: 3 };
    for study in ALL.iter() {
        let settings = study.settings(&scale);
        let named = |name: &str| settings.iter().filter(|setting| setting.name == name).count();
        assert!(!study.claims.is_empty() && settings.len() > 1, "{}", study.name);
        for claim in &study.claims {
            assert_eq!((named(&claim.from), named(&claim.to)), (1, 1), "{}: {claim:?}", study.name);
        }
        for setting in &settings {
            assert_eq!(setting.mix.check(3), Ok(()), "{}: {}", study.name, setting.name);
            assert!(setting.mix.from + setting.mix.each.0 <= setting.whole, "{setting:?}");
        }
        assert_eq!(Study::named(&study.name).unwrap().about, study.about);
    }
    let whole = &named("writes").settings(&scale)[1];
    assert_eq!((whole.mix.length, whole.name.as_str()), (Length::Whole, "whole files"));
}

#[test]
fn every_repetition_has_every_setting_once_in_its_own_order() {
    let target = StudyTarget::Simulated(Box::new(DiskModel::preset("ssd-sata").unwrap()));
    let done = run(named("block-size"), &target, &plan(8), &mut |_| true).unwrap();
    let orders: Vec<Vec<usize>> =
        done.runs.chunks(6).map(|runs| runs.iter().map(|run| run.setting).collect()).collect();
    assert_eq!(orders.len(), 8);
    for order in &orders {
        let mut sorted = order.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, [0, 1, 2, 3, 4, 5]);
    }
    assert!(orders.iter().any(|order| order != &orders[0]), "{orders:?}");
    let mut left = 5;
    let stopped = run(named("block-size"), &target, &plan(8), &mut |progress| {
        left = 5 - progress.runs.min(5);
        left > 0
    });
    let stopped = stopped.unwrap();
    assert_eq!((stopped.complete, stopped.runs.len()), (false, 5));
}

#[test]
fn an_unsuitable_target_is_refused_with_the_reason() {
    let disk = StudyTarget::Simulated(Box::new(DiskModel::preset("ssd-sata").unwrap()));
    let test_dir = TestDir::new("unfit");
    let dir = StudyTarget::at(vec![test_dir.0.clone()]).unwrap();
    let file = test_dir.0.join("mine");
    std::fs::write(&file, vec![1; 48 << 20]).unwrap();
    let one = StudyTarget::at(vec![file.clone()]).unwrap();
    let fails = |study, target: &StudyTarget| {
        run(study, target, &plan(1), &mut |_| true).expect_err("cannot be").one_line()
    };
    assert!(fails(named("cache"), &disk).contains("no page cache"));
    assert!(fails(named("nodes"), &dir).contains("--second"));
    assert!(fails(named("writes"), &one).contains("name a directory"));
    let mut small = plan(1);
    small.size = Some(ByteCount::mib(1));
    let error = run(named("block-size"), &dir, &small, &mut |_| true).expect_err("too small");
    assert!(error.one_line().contains("make --size larger"), "{error}");
    assert!(StudyTarget::at(vec![test_dir.0.clone(), file.clone()]).is_err());
    assert!(
        StudyTarget::at(vec![test_dir.0.clone(), test_dir.0.join(".")]).is_err(),
        "it is one node"
    );
    for study in [named("position"), named("random"), named("cache")] {
        let done = run(study, &one, &plan(1), &mut |_| true).unwrap();
        assert!(done.complete, "{}", study.name);
    }
    assert!(std::fs::read(&file).unwrap() == vec![1; 48 << 20]);
}

/// Settings 0 and 1 of the cache study with these rates.
fn made_up(pairs: &[(f64, f64)]) -> Done {
    let settings = named("cache").settings(&Scale { size: ByteCount::mib(64), clients: 1 });
    let run = |setting, repeat, rate| StudyRun {
        setting,
        repeat,
        measured: MeasuredFigures {
            figures: [None, Some(rate), None, None, None],
            transfers: 1,
            method: String::new(),
            fragments: None,
        },
    };
    let runs = (0u32..).zip(pairs);
    let runs = runs.flat_map(|(at, (cold, warm))| [run(0, at, *cold), run(1, at, *warm)]).collect();
    let scale = Scale { size: ByteCount::mib(48), clients: 2 };
    Done { scale, settings, runs, complete: true, trouble: None }
}

#[test]
fn a_verdict_takes_six_repetitions_and_one_direction() {
    let verdict = |pairs: &[(f64, f64)]| answers(named("cache"), &made_up(pairs))[0].verdict;
    assert_eq!(verdict(&[(100.0, 120.0); 6]), ClaimVerdict::Yes);
    assert_eq!(verdict(&[(100.0, 120.0); 5]), ClaimVerdict::NotShown);
    assert_eq!(verdict(&[(120.0, 100.0); 6]), ClaimVerdict::Opposite);
    let drifting = [(1.0, 1.2), (2.0, 2.4), (4.0, 4.4), (8.0, 9.9), (16.0, 17.0), (32.0, 40.0)];
    assert_eq!(verdict(&drifting), ClaimVerdict::Yes, "the storage became faster all the time");
    let mut once = [(100.0, 120.0); 6];
    once[3] = (100.0, 99.0);
    assert_eq!(verdict(&once), ClaimVerdict::NotShown);
    assert_eq!(verdict(&[]), ClaimVerdict::NotMeasured);
}

#[test]
fn the_interval_of_a_median_matches_the_published_table() {
    let of = |count: u32| median((1..=count).map(f64::from).collect()).unwrap();
    // David and Nagaraja, table of nonparametric intervals of the median.
    for (count, low, high, sure) in [
        (5, 1.0, 5.0, 0.9375),
        (6, 1.0, 6.0, 0.96875),
        (10, 2.0, 9.0, 0.978_515_625),
        (20, 6.0, 15.0, 0.958_610_5),
    ] {
        let found = of(count);
        assert_eq!((found.low, found.high), (low, high), "{count}");
        assert!((found.sure - sure).abs() < 1e-6, "{count}: {found:?}");
    }
    assert_eq!(of(4).median, 2.5);
    assert_eq!(median(Vec::new()), None);
}
