//! `reproduce`: published results again, on simulated disks or on an emulated one.

use crate::cli::Args;
use crate::failure::{Code, Failure};
use crate::out::{self, Bar, Table};
use crate::stopping;
use meter::emulated::{self, EmulatedError, EmulatedOptions, Made, System};
use serde::Serialize;
use serde_json::json;
use simulator::reproduce::{self, Report};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub(crate) fn reproduce(args: &Args<'_>) -> Result<(), Failure> {
    let Some(name) = args.maybe::<String>("NAME") else { return list(args) };
    let chosen = reproduce::named(&name).expect("the table offers what there is");
    let out: Option<PathBuf> = args.maybe("out");
    if let Some(dir) = &out {
        prepare(dir, chosen.name, args.has("destroy"))?;
    }
    let (report, ended) = if args.has("emulated") {
        let made = on_emulated(args, chosen.name)?;
        (made.report, made.ended)
    } else {
        let bar = Bar::new();
        ((chosen.run)(&mut |part| bar.percent(chosen.name, part)), None)
    };
    if let Some(dir) = &out {
        write(dir, chosen.name, chosen.about, &report)?;
    }
    tell(args, chosen.name, &report);
    ended.map_or(Ok(()), |error| Err(failure(error)))
}

fn failure(error: EmulatedError) -> Failure {
    match error {
        EmulatedError::Interrupted => Failure::new("interrupted").code(Code::Invalid),
        EmulatedError::Device(error) => error.into(),
        other => Failure::of(&other.to_string()),
    }
}

/// In real time; says how long that will be.
fn on_emulated(args: &Args<'_>, name: &str) -> Result<Made, Failure> {
    let Some(chosen) = emulated::Reproduction::named(name) else {
        let names = emulated::ALL.map(|one| one.name).join(" and ");
        let sentence = format!("{name} is not made on an emulated disk");
        return Err(Failure::usage(sentence).hint(format!("{names} can be; leave --emulated out")));
    };
    let systems = args.text("on");
    let systems = systems.split(',').map(|word| word.trim().parse::<System>());
    let systems = systems
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| Failure::usage(format!("--on: {error}")))?;
    let given = args.maybe::<PathBuf>("backing");
    if let Some(path) = given.as_deref().filter(|path| path.exists() && !args.has("destroy")) {
        let sentence = format!("{} would be overwritten", path.display());
        return Err(Failure::new(sentence).hint("if that is meant, allow it with --destroy"));
    }
    let options = EmulatedOptions {
        block: args.get("block"),
        size: None,
        backing: given.unwrap_or_else(|| {
            std::env::temp_dir().join(format!("tenuto-reproduce-{}.img", std::process::id()))
        }),
        systems,
        rounds: args.count("rounds"),
        speed: args.count("speed"),
    };
    let stop = stopping::by_signals(Some(PATIENCE))?;
    let minutes = chosen.takes(&options).as_secs().div_ceil(60);
    out::note(&format!("this takes about {minutes} min"));
    let bar = Bar::new();
    let mut show = |progress: emulated::Progress<'_>| {
        if progress.found {
            out::note(progress.what);
        }
        bar.percent(progress.what, progress.done);
    };
    chosen.run(&options, &mut show, &stop).map_err(failure)
}

/// For file systems to write what they hold, at the speed of the backing file.
const PATIENCE: Duration = Duration::from_secs(60);

/// Prints a report, as people or as programs want it.
pub(super) fn tell(args: &Args<'_>, name: &str, report: &Report) {
    if args.has("json") {
        out::print_json(&Named { name, report });
    } else {
        out::print(&shown(report));
    }
}

/// What `--json` prints.
#[derive(Serialize)]
struct Named<'a> {
    name: &'a str,
    #[serde(flatten)]
    report: &'a Report,
}

fn list(args: &Args<'_>) -> Result<(), Failure> {
    if args.maybe::<PathBuf>("out").is_some() {
        return Err(Failure::usage("--out is for one reproduction, and none is named")
            .hint("`tenuto reproduce` lists them"));
    }
    if args.has("json") {
        let all = reproduce::ALL.iter().map(|one| json!({ "name": one.name, "about": one.about }));
        out::print_json(&json!({ "reproductions": all.collect::<Vec<_>>() }));
        return Ok(());
    }
    let mut table = Table::new(&["name", "what"]);
    for one in reproduce::ALL {
        table.row(vec![one.name.to_owned(), one.about.to_owned()]);
    }
    out::print(&table.show());
    Ok(())
}

fn shown(report: &Report) -> String {
    let mut text = format!("{}\n\n{}\n", folded(report.source), folded(&report.method));
    for part in &report.tables {
        let head: Vec<&'static str> = part.columns.iter().map(|(_, title)| *title).collect();
        let mut table = Table::new(&head);
        for row in part.shown() {
            table.row(row);
        }
        let _ = write!(text, "\n{}\n{}", part.title, table.show());
    }
    for note in &report.notes {
        let _ = write!(text, "\n{}\n", folded(note));
    }
    text
}

/// In lines that fit a terminal.
fn folded(text: &str) -> String {
    crate::cli::wrapped(text, crate::cli::WIDTH)
}

fn page_of(dir: &Path, name: &str) -> PathBuf {
    dir.join(format!("{name}.html"))
}

/// Sees that there is a directory, and nothing in it that would be overwritten.
pub(super) fn prepare(dir: &Path, name: &str, destroy: bool) -> Result<(), Failure> {
    let page = page_of(dir, name);
    if page.exists() && !destroy {
        let sentence = format!("{} would be overwritten", page.display());
        return Err(Failure::new(sentence).hint("if that is meant, allow it with --destroy"));
    }
    std::fs::create_dir_all(dir)
        .map_err(|error| Failure::new(format!("cannot make {}: {error}", dir.display())))
}

/// Writes a report's page and its charts.
pub(super) fn write(dir: &Path, name: &str, title: &str, report: &Report) -> Result<(), Failure> {
    let save = |path: PathBuf, text: String| {
        std::fs::write(&path, text)
            .map_err(|error| Failure::new(format!("cannot write {}: {error}", path.display())))
    };
    for figure in &report.figures {
        let svg = figure.plot.svg().map_err(|error| Failure::new(error.to_string()))?;
        save(dir.join(format!("{name}-{}.svg", figure.name)), svg)?;
    }
    let page = report.page(title).map_err(|error| Failure::new(error.to_string()))?;
    let path = page_of(dir, name);
    save(path.clone(), page.html())?;
    out::note(&format!("wrote {}", path.display()));
    Ok(())
}
