//! `plan`: how many streams a disk would hold, by `server::plan`.

mod report;

use crate::access::ask;
use crate::args::disks::PlanArgs;
use crate::failure::{Code, Failure};
use crate::out::{self, Bar};
use crate::spread::spread;
use crate::stopping;
use disk::Calibration;
use media::{IndexError, TitleIndex};
use scheduler::PolicyKind;
use server::control::{Reply, Request};
use server::plan::{
    HeldStreams, PlanDisk, PlannedAudience, Popularity, Question, RATES, USUAL_WITHIN, USUAL_ZIPF,
    plan as answer,
};
use server::wire;
use std::fmt::Display;
use std::path::Path;
use std::time::Duration;
use units::Hinted;

pub(crate) fn plan(args: &PlanArgs) -> Result<(), Failure> {
    let disk = disk(args)?;
    let slot = disk.slot();
    if args.startup > LONGEST_STARTUP {
        return Err(Failure::usage("--startup: an hour at most")
            .hint("a stream starts within seconds, 1s unless said otherwise"));
    }
    // A stream is read in one slot and sent in the next.
    let startup = args.startup.max(slot * 2);
    if let Some(path) = &args.plot {
        // Tested before the simulation, whose time would otherwise be lost.
        args.overwrite.check(path)?;
    }
    let question = Question {
        popularity: popularity(args)?,
        audience: audience(args)?,
        memory: args.memory,
        disks: args.disks,
        startup,
        read: None,
        policies: SHOWN.to_vec(),
    };
    stopping::end_on_signals()?;
    let bar = Bar::new();
    let on_all_cores = |stage: &'static str| {
        let bar = &bar;
        move |count, one: &(dyn Fn(u64) -> HeldStreams + Sync)| {
            spread(count, |part| bar.percent(stage, part), one)
        }
    };
    let answer = answer(&disk, question, &mut on_all_cores("admission"));
    // The policy `none` admits every viewer, so its number tells nothing about the disk.
    let unseen = |policy: &PolicyKind| !SHOWN.contains(policy) && *policy != PolicyKind::None;
    let others: Vec<_> = PolicyKind::all().filter(unseen).collect();
    let held = answer.held_by(&disk, &others, &mut on_all_cores("other policies"));
    let others: Vec<_> = others.into_iter().zip(held).collect();
    drop(bar);
    let plot = || {
        let Some(path) = &args.plot else { return Ok(()) };
        let svg = report::plot(&answer).svg().map_err(|error| Failure::new(error.to_string()))?;
        out::save(path, &svg)
    };
    let text = || report::text(&answer, &others);
    args.report.show_then(&report::json(&answer, &others), text, plot)?;
    match answer.held() {
        Some(_) => Ok(()),
        None => Err(Failure::reported(Code::Refused)),
    }
}

/// How viewers choose among titles, if the command line says so.
fn popularity(args: &PlanArgs) -> Result<Option<Popularity>, Failure> {
    let Some(titles) = args.titles else {
        let given = [("--zipf", args.zipf.is_some()), ("--within", args.within.is_some())];
        return match given.into_iter().find(|(_, is_given)| *is_given) {
            None => Ok(None),
            Some((option, _)) => Err(Failure::usage(format!("{option} needs --titles"))
                .hint("for example --titles 1000 --memory 16GiB")),
        };
    };
    if args.memory.is_none() {
        return Err(Failure::usage("--titles needs --memory")
            .hint("viewers share what is in memory: give its size, for example --memory 16GiB"));
    }
    let (zipf, within) = (args.zipf.unwrap_or(USUAL_ZIPF), args.within.unwrap_or(USUAL_WITHIN));
    let popularity = Popularity { titles, exponent: zipf, within };
    match popularity.check() {
        Ok(()) => Ok(Some(popularity)),
        Err(reason) => Err(Failure { hint: reason.hint, ..Failure::usage(reason.message) }),
    }
}

/// The audience that the command line names.
fn audience(args: &PlanArgs) -> Result<PlannedAudience, Failure> {
    match (args.rate, &args.title) {
        (Some(rate), None) if RATES.contains(&rate) => Ok(PlannedAudience::Rate(rate)),
        (Some(rate), None) => {
            let sentence = format!("--rate: {rate} is not the rate of a stream");
            Err(Failure::usage(sentence).hint(format!("from {} to {}", RATES.start(), RATES.end())))
        }
        (None, Some(title)) => viewers_of(title),
        (None, None) => Err(Failure::usage("no streams to plan for: give --rate or --title")
            .hint("for example --rate 5Mbps")),
        (Some(_), Some(_)) => {
            Err(Failure::usage("--rate and --title are two audiences").hint("give one of them"))
        }
    }
}

fn viewers_of(typed: &str) -> Result<PlannedAudience, Failure> {
    // Path and name may both contain colons: the first one that ends an existing path counts.
    let split = typed.match_indices(':').map(|(at, _)| (&typed[..at], &typed[at + 1..]));
    let Some((path, name)) = split.clone().find(|(path, _)| Path::new(path).exists()) else {
        let failure = match split.into_iter().next() {
            Some((path, _)) => Failure::new(format!("--title: there is no store at {path}")),
            None => {
                let sentence = format!("--title: '{typed}' has no colon between store and title");
                Failure::usage(sentence)
            }
        };
        return Err(failure.hint("for example --title film.store:Nosferatu"));
    };
    if name.is_empty() {
        return Err(Failure::usage(format!("--title: '{typed}' names no title of the store"))
            .hint(format!("`tenuto ls {path}` lists them")));
    }
    let request = Request::Index { title: name.to_owned() };
    let Reply::Index(index) = ask(Path::new(path), &request)? else { super::stores::mismatched() };
    let failed =
        |error: &dyn Display| Failure::new(format!("'{name}' cannot be planned for: {error}"));
    let index = units::from_hex(&index)
        .ok_or(IndexError::NotAnIndex)
        .and_then(|bytes| TitleIndex::decode(&bytes))
        .map_err(|error| failed(&error))?;
    PlannedAudience::of_title(name.to_owned(), index).map_err(|error| failed(&error))
}

fn disk(args: &PlanArgs) -> Result<PlanDisk, Failure> {
    match (&args.model, &args.calibration) {
        (Some(model), None) => Ok(PlanDisk::Model(model.clone())),
        (None, Some(path)) => Ok(PlanDisk::measured(calibration(path)?)),
        (None, None) => Err(Failure::usage("no disk to plan with: give --model or --calibration")
            .hint("`tenuto disk models` lists the built-in models")),
        (Some(_), Some(_)) => {
            Err(Failure::usage("--model and --calibration are two disks").hint("give one of them"))
        }
    }
}

/// The calibration kept with a store, or in a file as `tenuto calibrate --json` prints it.
fn calibration(path: &Path) -> Result<Calibration, Failure> {
    let record = match saved(path)? {
        Some(record) => record,
        None => {
            let Reply::Store(info) = ask(path, &Request::Info { title: None })? else {
                super::stores::mismatched()
            };
            info.calibration.ok_or_else(|| {
                Failure::new(format!("{} is not calibrated", path.display()))
                    .hint(format!("run `tenuto calibrate {}`", path.display()))
            })?
        }
    };
    let record = Calibration::from(&record);
    // Decoding tests the record, which may have been edited by hand.
    Calibration::decode(&record.encode())
        .map_err(|error| error.reason().about(path.display()).into())
}

/// The calibration in a JSON file; `None` where the file is no JSON.
fn saved(path: &Path) -> Result<Option<wire::Calibration>, Failure> {
    // The path may be a store of terabytes, which must not be read to learn that it is no JSON.
    let small =
        std::fs::metadata(path).is_ok_and(|file| file.is_file() && file.len() < LARGEST_JSON);
    if !path.exists() && device::disk_model(&path.to_string_lossy()).is_ok() {
        // The name of a built-in model.
        return Err(a_model(path));
    }
    let Some(text) = small.then(|| std::fs::read_to_string(path).ok()).flatten() else {
        return Ok(None);
    };
    if !text.trim_start().starts_with('{') {
        return match device::disk_model(&path.to_string_lossy()) {
            Ok(_) => Err(a_model(path)),
            Err(_) => Ok(None),
        };
    }
    let parsed = serde_json::from_str(&text).map_err(|error| {
        Failure::new(format!("{} is not a calibration: {error}", path.display()))
            .hint("`tenuto calibrate STORE --json` prints one")
    });
    parsed.map(Some)
}

fn a_model(path: &Path) -> Failure {
    let path = path.display();
    Failure::usage(format!("--calibration: {path} is a disk model, not a calibration"))
        .hint(format!("give it with --model {path}"))
}

/// The longest start-up.
const LONGEST_STARTUP: Duration = Duration::from_secs(3600);
/// Size limit of a calibration in JSON, which has a few hundred lines.
const LARGEST_JSON: u64 = 1 << 20;
/// Policies with a column of their own: the two that look ahead.
const SHOWN: [PolicyKind; 2] = [PolicyKind::TimeDomain, PolicyKind::VbrSim];
