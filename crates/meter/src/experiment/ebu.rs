//! The procedure of EBU TECH 3362 as one experiment (`meter ebu`): its ramps and comparisons one
//! after another, and one report in the order of the paper's chapters.
//!
//! Each part is an experiment of its own with its own directory and report; here they are only
//! called, and their results put side by side. A part that the target does not allow is left out
//! with the reason.

use super::inputs::{load_profile, load_script};
use super::ramp::{RampConfig, run_ramp};
use super::rate_alarm::RateAlarmConfig;
use super::record::{self, ExperimentReport};
use super::study::{StudyConfig, run_study};
use super::target::TargetSpec;
use crate::blame::beneath;
use crate::error::{MeterError, MeterErrorKind};
use crate::observer::Observer;
use crate::report::{Block, LineShape, Page, Plot, Series, TextTable, time};
use crate::study::{Study, StudyPlan};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::Duration;
use units::show::count;
use units::{BitRate, ByteCount};

/// The procedure on a target.
pub struct EbuConfig {
    /// The storage that is measured.
    pub target: TargetSpec,
    /// A directory on a second node; without it the comparison of nodes is left out.
    pub second: Option<PathBuf>,
    /// Length of each step of a ramp, instead of an hour.
    pub step: Option<Duration>,
    /// Runs of each setting of a comparison.
    pub repeats: u32,
    /// Seed of all random choices.
    pub seed: u64,
    /// New directory for the report, and for the directories of the parts.
    pub out: Option<PathBuf>,
}

/// A chapter: its heading, what it shows, and its parts by the names of scripts and studies.
struct Chapter(&'static str, &'static str, &'static [EbuPart]);

#[derive(Clone, Copy)]
enum EbuPart {
    /// The ramp of readers of a file that is so small that the server has it in its memory.
    Network,
    Ramp(&'static str),
    Study(&'static str),
}

use EbuPart::{Network, Ramp, Study as Compared};

/// The chapters in the order of the paper.
const CHAPTERS: [Chapter; 8] = [
    Chapter(
        "The network",
        "One to ten clients on a file that was just written and that the server has in its \
         memory, as for figures 29 to 32: what network and protocol deliver, without disks.",
        &[Network],
    ),
    Chapter(
        "Access profiles",
        "Length of transfers, random access and block size (figures 19 to 22).",
        &[Compared("length"), Compared("random"), Compared("block-size")],
    ),
    Chapter(
        "A single file",
        "One to ten clients on one file: reading, writing, production edit.",
        &[Ramp("ebu-single-read"), Ramp("ebu-single-write"), Ramp("ebu-single-edit")],
    ),
    Chapter(
        "A file for each client",
        "Four to forty clients with a file each, and whole files written.",
        &[
            Ramp("ebu-multi-read"),
            Ramp("ebu-multi-write"),
            Ramp("ebu-multi-edit"),
            Ramp("ebu-multi-file-write"),
            Ramp("ebu-multi-file-replace"),
        ],
    ),
    Chapter(
        "Caches",
        "Cold and warm caches, and what writing costs.",
        &[Compared("cache"), Compared("buffering"), Compared("writes")],
    ),
    Chapter(
        "Fill level and position",
        "A full file system, and the place on the disk.",
        &[Compared("fill-level"), Compared("position")],
    ),
    Chapter("Fragmentation", "Files in one piece and in many.", &[Compared("fragmentation")]),
    Chapter(
        "One node and several",
        "A file that clients share, and a second node.",
        &[Compared("sharing"), Compared("nodes")],
    ),
];

impl EbuPart {
    fn name(self) -> &'static str {
        match self {
            Network => "network",
            Ramp(name) | Compared(name) => name,
        }
    }
}

/// The result of a part: its sentences, and its summary; the reason where it is left out.
struct PartResult {
    part: EbuPart,
    found: Result<(Vec<String>, Value), MeterError>,
}

impl PartResult {
    /// What was found, in one line.
    fn said(&self) -> String {
        match &self.found {
            Ok((sentences, _)) => sentences.join("; "),
            Err(error) => format!("left out: {}", error.message),
        }
    }
}

/// Runs all parts of the procedure and reports them together.
pub fn run_ebu(
    config: &EbuConfig,
    observer: &dyn Observer,
) -> Result<ExperimentReport, MeterError> {
    config.target.check()?;
    record::prepare(config.out.as_deref())?;
    let mut done: Vec<PartResult> = Vec::new();
    for part in CHAPTERS.iter().flat_map(|chapter| chapter.2.iter().copied()) {
        let found = run_part(config, part, observer);
        // The parts until here are reported.
        if observer.is_stopped() {
            break;
        }
        if let Err(error) = &found
            && done.iter().all(|before| before.found.is_err())
            && error.kind != MeterErrorKind::Usage
        {
            // Nothing was measured: the target cannot be used at all.
            return Err(error.clone());
        }
        let result = PartResult { part, found };
        observer.run_done(&format!("{}: {}", part.name(), result.said()));
        done.push(result);
    }
    let summary = summary(config, &done);
    let saved = record::save(config.out.as_deref(), &summary, || page(config, &done), observer);
    let text = text(&done);
    let verdict = saved.and_then(|()| verdict(&done, observer));
    Ok(ExperimentReport { summary, text, verdict })
}

fn run_part(
    config: &EbuConfig,
    part: EbuPart,
    observer: &dyn Observer,
) -> Result<(Vec<String>, Value), MeterError> {
    let EbuConfig { target, step, seed, .. } = config;
    let out = config.out.as_ref().map(|out| out.join(part.name()));
    let ramp = |name: &str, target: TargetSpec, out| {
        let script = load_script(name)?;
        let config = RampConfig {
            profile: load_profile(&script.profile)?,
            script,
            target,
            step_length: *step,
            seed: *seed,
            alarm: RateAlarmConfig::default(),
            metrics: None,
            out,
        };
        run_ramp(&config, observer)
    };
    let report = match part {
        Network => {
            check_network(target)?;
            // A file that the server caches: the network is the limit, not its disks.
            let size = target.size.min(SMALL);
            ramp("ebu-single-read", TargetSpec { size, ..target.clone() }, out)?
        }
        Ramp(name) => ramp(name, target.clone(), out)?,
        Compared(name) => {
            let study = Study::named(name).expect("each chapter names studies that there are");
            if target.agents.is_some() {
                return Err(MeterError::usage("comparisons are made from one machine")
                    .hint("run the procedure there, without --agents and --hosts"));
            }
            if study.two_nodes && config.second.is_none() {
                return Err(MeterError::usage("it needs a second node")
                    .hint("name a directory there with --second"));
            }
            // Two settings are compared, so that neither needs the length of a ramp's step.
            let length = step.map_or(COMPARED, |step| step.min(COMPARED));
            // A simulated disk is whole where the places on it are compared.
            let whole = study.whole_disk && target.is_simulated();
            let size = (!whole).then_some(ByteCount(target.size.0 / 4));
            let repeats = config.repeats;
            let plan = StudyPlan { size, clients: 4, length, repeats, seed: *seed };
            let second = config.second.clone().filter(|_| study.two_nodes);
            let target = target.target.clone();
            run_study(&StudyConfig { study, target, second, plan, out }, observer)?
        }
    };
    report.verdict?;
    let sentences = match part {
        Network | Ramp(_) => vec![of_ramp(&report.summary)],
        Compared(_) => of_study(&report.summary),
    };
    Ok((sentences, report.summary))
}

/// Refuses to measure a network where there is none. Agents are taken for clients of a server.
fn check_network(target: &TargetSpec) -> Result<(), MeterError> {
    let stack = beneath(Path::new(&target.target));
    let here = target.is_simulated() || target.is_null() || stack.is_local();
    if target.agents.is_none() && here && !target.is_bucket() {
        return Err(MeterError::usage("the storage is in this machine")
            .hint("measure from a client of the storage"));
    }
    if target.agents.is_none() && !target.is_made() {
        return Err(MeterError::usage("it needs a file of its own size")
            .hint("name a directory as --target"));
    }
    Ok(())
}

/// The size of a file that every server keeps in its memory.
const SMALL: ByteCount = ByteCount(256 << 20);

/// The length of a run of a comparison.
const COMPARED: Duration = Duration::from_secs(10);

fn steps(summary: &Value) -> impl Iterator<Item = &Value> {
    summary["steps"].as_array().into_iter().flatten()
}

fn seconds(step: &Value, name: &str) -> Duration {
    Duration::from_secs_f64(step["all"][name].as_f64().unwrap_or_default())
}

/// What a ramp shows, in a sentence: where more clients add less than one part in twenty.
fn of_ramp(summary: &Value) -> String {
    let total = |step: &Value| step["total_bits_per_s"].as_u64().unwrap_or_default();
    let best = steps(summary).map(total).max().unwrap_or_default();
    let (first, last) = (steps(summary).next(), steps(summary).last());
    let full = steps(summary).find(|step| total(step) * 20 >= best * 19);
    let (Some(first), Some(full), Some(last)) = (first, full, last) else {
        return "no step is complete".to_owned();
    };
    let clients = |step: &Value| count(step["clients"].as_u64().unwrap_or_default(), "client");
    let most = match full["clients"] == last["clients"] {
        true => format!("rises to {} with {}", BitRate(best), clients(last)),
        false => {
            format!("{} with {}, and no more with {}", BitRate(best), clients(full), clients(last))
        }
    };
    format!(
        "{most}; mean latency {} with {} and {} with {}, the longest {}",
        time(seconds(first, "mean_latency")),
        clients(first),
        time(seconds(last, "mean_latency")),
        clients(last),
        time(steps(summary).map(|step| seconds(step, "longest_latency")).max().unwrap_or_default()),
    )
}

/// The claims of the paper, each with the verdict here.
fn of_study(summary: &Value) -> Vec<String> {
    let answers = summary["answers"].as_array().into_iter().flatten();
    let word = |answer: &Value, name: &str| answer[name].as_str().unwrap_or_default().to_owned();
    let one = |answer: &Value| format!("{}: {}", word(answer, "verdict"), word(answer, "says"));
    answers.map(one).collect()
}

fn summary(config: &EbuConfig, done: &[PartResult]) -> Value {
    let parts = done.iter().map(|PartResult { part, found }| {
        let (found, left_out) = (found.as_ref().ok(), found.as_ref().err());
        json!({
            "name": part.name(),
            "found": found.map(|(sentences, _)| sentences),
            "left_out": left_out.map(|error| &error.message),
            "summary": found.map(|(_, summary)| summary),
        })
    });
    let EbuConfig { target, second, step, repeats, seed, .. } = config;
    json!({
        "scenario": {
            "target": target.target,
            "second": second,
            "step": step.map(|step| step.as_secs_f64()),
            "size": target.size.0,
            "repeats": repeats,
            "seed": seed,
            "agents": target.agents.as_ref().map(super::agents_target::AgentsConfig::names),
        },
        "parts": parts.collect::<Vec<_>>(),
    })
}

fn rows(done: &[PartResult]) -> Vec<Vec<String>> {
    done.iter().map(|one| vec![one.part.name().to_owned(), one.said()]).collect()
}

const HEAD: [&str; 2] = ["part", "found"];

fn text(done: &[PartResult]) -> String {
    TextTable::with_rows(&HEAD, rows(done)).show()
}

fn verdict(done: &[PartResult], observer: &dyn Observer) -> Result<(), MeterError> {
    if observer.is_stopped() {
        return Err(MeterError::interrupted("interrupted: these are the parts until then"));
    }
    // What the target does not allow is said in the report; what failed makes it incomplete.
    let failed = |one: &&PartResult| {
        one.found.as_ref().is_err_and(|error| error.kind != MeterErrorKind::Usage)
    };
    let names: Vec<_> = done.iter().filter(failed).map(|one| one.part.name()).collect();
    if names.is_empty() {
        return Ok(());
    }
    let message = format!("not valid: {} did not come to an end", names.join(", "));
    Err(MeterError::new(message).hint("the report has the reason of each").invalid())
}

fn page(config: &EbuConfig, done: &[PartResult]) -> Result<Page, MeterError> {
    let mut blocks = vec![Block::table(&HEAD, rows(done))];
    for Chapter(title, about, parts) in &CHAPTERS {
        let of_chapter =
            |one: &&PartResult| parts.iter().any(|part| part.name() == one.part.name());
        let own: Vec<&PartResult> = done.iter().filter(of_chapter).collect();
        blocks.push(Block::Heading((*title).to_owned()));
        blocks.push(Block::Text((*about).to_owned()));
        for one in &own {
            let name = one.part.name();
            blocks.extend(match &one.found {
                Ok((sentences, _)) => sentences
                    .iter()
                    .map(|sentence| Block::Text(format!("{name}: {sentence}.")))
                    .collect(),
                Err(error) => vec![Block::Text(format!("{name} is left out: {}.", error.message))],
            });
        }
        let ramps = || own.iter().filter(|one| matches!(one.part, Network | Ramp(_)));
        if ramps().any(|one| one.found.is_ok()) {
            let plot = |title: &str, unit: &str, of: fn(&Value) -> f64| {
                let line = |one: &&&PartResult| {
                    let (_, summary) = one.found.as_ref().ok()?;
                    let point = |step: &Value| (step["clients"].as_f64().unwrap_or(0.0), of(step));
                    let points = steps(summary).map(point).collect();
                    Some(Series::new(one.part.name(), LineShape::Line, points))
                };
                let lines: Vec<Series> = ramps().filter_map(|one| line(&one)).collect();
                Plot::new(title, "clients", unit, lines)
            };
            let megabytes = |step: &Value| step["total_bits_per_s"].as_f64().unwrap_or(0.0) / 8e6;
            let rate = plot("Rate of all clients together", "MB/s", megabytes);
            blocks.push(rate.block("Where a line no longer rises, more clients get no more.")?);
            let longest = |step: &Value| seconds(step, "longest_latency").as_secs_f64() * 1e3;
            let latency = plot("Largest latency of a transfer", "ms", longest);
            blocks
                .push(latency.block("As in figures 51, 52, 75 and 76: what an editor waits for.")?);
            let blocks_99 =
                |step: &Value| step["all"]["block_service"]["p99"].as_f64().unwrap_or(0.0) * 1e3;
            let service = plot("99 of 100 blocks took at most", "ms", blocks_99);
            blocks.push(service.block("The time of single blocks, without opening and closing.")?);
        }
    }
    blocks.push(Block::Text(
        "Each part has its own report, in the directory of its name beside this one. What is not \
         covered: storage of which a disk has failed. `meter bottleneck` tells which part of the path \
         limits."
            .to_owned(),
    ));
    Ok(Page {
        title: format!("EBU TECH 3362 on {}", config.target.target),
        summary: "The published procedure: access profiles, ramps of clients on one file and on \
                  many, caches, fill level, fragmentation, nodes."
            .to_owned(),
        blocks,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_is_a_script_or_a_study_that_comes_along() {
        for part in CHAPTERS.iter().flat_map(|chapter| chapter.2) {
            match part {
                Ramp(name) => assert!(load_script(name).is_ok(), "{name}"),
                Network => {}
                Compared(name) => assert!(Study::named(name).is_some(), "{name}"),
            }
        }
    }

    #[test]
    fn a_ramp_is_full_where_more_clients_add_nothing() {
        let step = |clients: u64, total: u64| {
            json!({
                "clients": clients,
                "total_bits_per_s": total,
                "all": { "mean_latency": 0.01, "longest_latency": 0.3 },
            })
        };
        let of = |steps: Vec<Value>| of_ramp(&json!({ "steps": steps }));
        let level = of(vec![step(1, 400), step(2, 780), step(3, 800), step(4, 790)]);
        assert!(
            level.starts_with("800 b/s with 2 clients, and no more with 4 clients;"),
            "{level}"
        );
        assert!(level.ends_with("the longest 300 ms"), "{level}");
        let rising = of(vec![step(1, 400), step(2, 800)]);
        assert!(rising.starts_with("rises to 800 b/s with 2 clients;"), "{rising}");
        assert_eq!(of(Vec::new()), "no step is complete");
    }
}
