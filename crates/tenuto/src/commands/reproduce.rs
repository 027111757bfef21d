//! `reproduce`: reproduces published results on simulated disks or on an emulated one.

use crate::args::shared::{OverwriteArgs, ReportArgs};
use crate::args::simulation::ReproduceArgs;
use crate::failure::Failure;
use crate::out::{self, Bar, Table};
use crate::stopping;
use meter::emulated::{self, EmulatedOptions, EmulatedResult, ParkOptions};
use serde::Serialize;
use serde_json::json;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;
use studies::reproduce::{self, Report};

pub(crate) fn reproduce(args: &ReproduceArgs) -> Result<(), Failure> {
    let Some(chosen) = args.name else { return list(args) };
    if let Some(dir) = &args.out {
        prepare(dir, chosen.name, &args.overwrite)?;
    }
    let (report, ended) = if args.emulation.emulated {
        let made = on_emulated(args, chosen.name)?;
        (made.report, made.ended)
    } else {
        let bar = Bar::new();
        ((chosen.run)(&mut |part| bar.percent(chosen.name, part)), None)
    };
    if let Some(dir) = &args.out {
        // Written first: a reader of standard output may close it early, which ends the program.
        write(dir, chosen.name, chosen.about, &report)?;
    }
    tell(&args.report, chosen.name, &report);
    // A run that was interrupted has a report, too, of all that was complete by then.
    ended.map_or(Ok(()), |error| Err(error.into()))
}

/// Reproduces a result on an emulated disk, in real time; a note says how long that takes.
fn on_emulated(args: &ReproduceArgs, name: &str) -> Result<EmulatedResult, Failure> {
    let Some(chosen) = emulated::Reproduction::named(name) else {
        let names = emulated::ALL.map(|one| one.name).join(", ");
        let sentence = format!("{name} cannot be reproduced on an emulated disk");
        return Err(Failure::usage(sentence)
            .hint(format!("leave out --emulated; with it there are {names}")));
    };
    let emulation = &args.emulation;
    if let Some(path) = &emulation.backing {
        args.overwrite.check(path)?;
    }
    let options = EmulatedOptions {
        block: emulation.block,
        size: None,
        backing: emulation.backing.clone().unwrap_or_else(|| {
            // The process id keeps two runs at the same time apart.
            std::env::temp_dir().join(format!("tenuto-reproduce-{}.img", std::process::id()))
        }),
        systems: emulation
            .filesystems
            .as_ref()
            .map_or(chosen.systems.into(), |list| list.0.clone()),
        rounds: emulation.rounds,
        speed: emulation.time_scale,
        park: ParkOptions {
            streams: emulation.streams.0.clone(),
            units: emulation.ldu.0.clone(),
            ..ParkOptions::default()
        },
        titles: Some(reproduce::make_titles),
        // This program; without its path a reproduction that starts it says so.
        program: std::env::current_exe().ok(),
    };
    // With a limit, because nobody may be at the terminal of a run that takes hours.
    let stop = stopping::on_signals(Some(PATIENCE))?;
    let minutes = chosen.takes(&options).as_secs().div_ceil(60);
    out::note(&format!("this takes about {minutes} min"));
    let bar = Bar::new();
    let mut show = |progress: emulated::EmulatedProgress<'_>| {
        // A result stays on the terminal; the next progress overwrites this one.
        if progress.found {
            out::note(progress.what);
        }
        bar.percent(progress.what, progress.done);
    };
    Ok(chosen.run(&options, &mut show, &stop)?)
}

/// Time for file systems to write their caches, at the speed of the backing file.
const PATIENCE: Duration = Duration::from_secs(60);

/// Prints a report.
pub(super) fn tell(args: &ReportArgs, name: &str, report: &Report) {
    args.show(&Named { name, report }, || shown(report));
}

/// A report with its name, as `--json` prints it.
#[derive(Serialize)]
struct Named<'a> {
    name: &'a str,
    #[serde(flatten)]
    report: &'a Report,
}

fn list(args: &ReproduceArgs) -> Result<(), Failure> {
    if args.out.is_some() {
        return Err(Failure::usage("--out needs the name of a reproduction")
            .hint("`tenuto reproduce` lists them"));
    }
    let all = reproduce::ALL.iter().map(|one| json!({ "name": one.name, "about": one.about }));
    let object = json!({ "reproductions": all.collect::<Vec<_>>() });
    let mut table = Table::new(&["name", "what"]);
    for one in reproduce::ALL {
        table.row(vec![one.name.to_owned(), one.about.to_owned()]);
    }
    args.report.show(&object, || table.show());
    Ok(())
}

fn shown(report: &Report) -> String {
    let mut text = format!("{}\n\n{}\n", folded(&report.source), folded(&report.method));
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

/// Text in lines that fit a terminal.
fn folded(text: &str) -> String {
    units::show::wrapped(text, crate::cli::WIDTH)
}

fn page_of(dir: &Path, name: &str) -> PathBuf {
    dir.join(format!("{name}.html"))
}

/// Makes the directory for a page, and refuses one with a page that may not be overwritten.
pub(super) fn prepare(dir: &Path, name: &str, overwrite: &OverwriteArgs) -> Result<(), Failure> {
    overwrite.check(&page_of(dir, name))?;
    std::fs::create_dir_all(dir)
        .map_err(|error| Failure::new(format!("cannot make {}: {error}", dir.display())))
}

/// Writes a report's page and its charts.
pub(super) fn write(dir: &Path, name: &str, title: &str, report: &Report) -> Result<(), Failure> {
    for figure in &report.figures {
        let svg = figure.plot.svg()?;
        out::save(&dir.join(format!("{name}-{}.svg", figure.name)), &svg)?;
    }
    // The page is written last, because it refers to the charts.
    let page = report.page(title)?;
    out::save(&page_of(dir, name), &page.html())
}
