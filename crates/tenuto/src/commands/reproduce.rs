//! `reproduce`: reproduces published results on simulated disks or on an emulated one.

use crate::args::shared::{OverwriteArgs, ReportArgs};
use crate::args::simulation::{EmulationArgs, ReproduceArgs};
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
use units::ByteCount;

pub(crate) fn reproduce(args: &ReproduceArgs) -> Result<(), Failure> {
    let Some(chosen) = args.name else { return list(args) };
    if let Some(dir) = &args.out {
        prepare(dir, chosen.name, &args.overwrite)?;
    }
    let (report, ended) = if args.emulation.emulated {
        let made = on_emulated(args, chosen.name)?;
        (made.report, made.ended)
    } else {
        stopping::end_on_signals()?;
        let bar = Bar::new();
        ((chosen.run)(&mut |part| bar.percent(chosen.name, part)), None)
    };
    let files = args.out.as_deref();
    tell(&args.report, files, [chosen.name, chosen.about], &report)?;
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
    refuse_unused(emulation, name)?;
    if let Some(path) = &emulation.backing {
        args.overwrite.check(path)?;
    }
    let park = ParkOptions::default();
    let options = EmulatedOptions {
        block: emulation.block.unwrap_or(BLOCK),
        size: None,
        backing: emulation.backing.clone().unwrap_or_else(|| {
            // The process id keeps two runs at the same time apart.
            std::env::temp_dir().join(format!("tenuto-reproduce-{}.img", std::process::id()))
        }),
        systems: emulation
            .filesystems
            .as_ref()
            .map_or(chosen.systems.into(), |list| list.0.clone()),
        rounds: emulation.rounds.unwrap_or(ROUNDS),
        speed: emulation.time_scale.unwrap_or(SPEED),
        park: ParkOptions {
            streams: emulation.streams.as_ref().map_or(park.streams, |list| list.0.clone()),
            units: emulation.ldu.as_ref().map_or(park.units, |list| list.0.clone()),
            ..park
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

/// Refuses options that the reproduction has no use for, which would otherwise be ignored in
/// silence.
fn refuse_unused(given: &EmulationArgs, name: &str) -> Result<(), Failure> {
    let rounds = &["alderman-table1", "alderman-rounds"][..];
    let counted = &["alderman-table1", "alderman-rounds", "lee-drift"][..];
    let scaled = &["alderman-table1", "alderman-rounds", "lee-drift", "park-figures"][..];
    let park = &["park-figures"][..];
    let unused = [
        ("rounds", given.rounds.is_some(), counted),
        ("time-scale", given.time_scale.is_some(), scaled),
        ("block", given.block.is_some(), rounds),
        ("streams", given.streams.is_some(), park),
        ("ldu", given.ldu.is_some(), park),
    ];
    let unused = unused.into_iter().find(|(_, is_given, used)| *is_given && !used.contains(&name));
    match unused {
        None => Ok(()),
        Some((option, _, used)) => {
            let sentence = format!("--{option} has no effect on {name}");
            Err(Failure::usage(sentence)
                .hint(format!("leave it out: --{option} is for {}", used.join(", "))))
        }
    }
}

/// The bytes that a stream reads in a round, and the rounds of an attempt, as in the paper.
const BLOCK: ByteCount = ByteCount(1_000_000);
const ROUNDS: u32 = 100;
/// The factor by which the emulated disk is faster than the real one.
const SPEED: u32 = 4;

/// Time for file systems to write their caches, at the speed of the backing file.
const PATIENCE: Duration = Duration::from_secs(60);

/// Prints a report, then writes its page and its charts to `dir`, if one is given.
pub(super) fn tell(
    args: &ReportArgs,
    dir: Option<&Path>,
    [name, title]: [&str; 2],
    report: &Report,
) -> Result<(), Failure> {
    let files = || dir.map_or(Ok(()), |dir| write(dir, name, title, report));
    args.show_then(&Named { name, report }, || shown(report), files)
}

/// A report with its name, as `--json` prints it.
#[derive(Serialize)]
struct Named<'a> {
    name: &'a str,
    #[serde(flatten)]
    report: &'a Report,
}

fn list(args: &ReproduceArgs) -> Result<(), Failure> {
    if args.emulation.emulated {
        return Err(Failure::usage("--emulated needs the name of a reproduction")
            .hint("`tenuto reproduce` lists them"));
    }
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

/// Makes the directory for a page, and refuses one with a page or a chart that may not be
/// overwritten.
pub(super) fn prepare(dir: &Path, name: &str, overwrite: &OverwriteArgs) -> Result<(), Failure> {
    overwrite.check(&page_of(dir, name))?;
    let failed = |what: &str, error: std::io::Error| {
        Failure::new(format!("cannot {what} {}: {error}", dir.display()))
            .hint("name a directory that you may write to")
    };
    std::fs::create_dir_all(dir).map_err(|error| failed("make", error))?;
    // Which charts a report has is known at its end, which is too late to refuse: every chart under
    // its name counts, also that of a run with other options.
    for entry in std::fs::read_dir(dir).map_err(|error| failed("read", error))? {
        let entry = entry.map_err(|error| failed("read", error))?;
        if is_chart_of(name, &entry.file_name().to_string_lossy()) {
            overwrite.check(&entry.path())?;
        }
    }
    Ok(())
}

/// Whether a file name is that of a chart of the report `name`.
fn is_chart_of(name: &str, file: &str) -> bool {
    file.strip_prefix(name).is_some_and(|rest| rest.starts_with('-') && rest.ends_with(".svg"))
}

/// Writes a report's page and its charts.
fn write(dir: &Path, name: &str, title: &str, report: &Report) -> Result<(), Failure> {
    for figure in &report.figures {
        let svg = figure.plot.svg()?;
        out::save(&dir.join(format!("{name}-{}.svg", figure.name)), &svg)?;
    }
    // The page is written last, because it refers to the charts.
    let page = report.page(title)?;
    out::save(&page_of(dir, name), &page.html())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chart_is_not_overwritten_and_what_belongs_to_others_does_not_matter() {
        let dir = std::env::temp_dir().join(format!("tenuto-charts-{}", std::process::id()));
        let [careful, destructive] = [false, true].map(|destroy| OverwriteArgs { destroy });
        prepare(&dir, "fleet", &careful).unwrap();
        for other in ["fleet.svg", "fleets-a.svg", "fleet-a.html", "ageing-fleet-a.svg"] {
            std::fs::write(dir.join(other), "mine").unwrap();
        }
        prepare(&dir, "fleet", &careful).unwrap();
        for mine in ["fleet-a.svg", "fleet.html"] {
            std::fs::write(dir.join(mine), "mine").unwrap();
            let failure = prepare(&dir, "fleet", &careful).unwrap_err();
            let sentence = format!("{} would be overwritten", dir.join(mine).display());
            assert_eq!(failure.sentence, sentence);
            prepare(&dir, "fleet", &destructive).unwrap();
            std::fs::remove_file(dir.join(mine)).unwrap();
        }
        std::fs::remove_dir_all(dir).unwrap();
    }
}
