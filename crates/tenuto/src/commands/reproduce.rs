//! `reproduce`: published results again.

use crate::cli::Args;
use crate::failure::Failure;
use crate::out::{self, Bar, Table};
use serde::Serialize;
use serde_json::json;
use simulator::reproduce::{self, Report, Reproduction};
use std::fmt::Write;
use std::path::{Path, PathBuf};

pub(crate) fn reproduce(args: &Args<'_>) -> Result<(), Failure> {
    let Some(name) = args.maybe::<String>("NAME") else { return list(args) };
    let chosen = reproduce::named(&name).expect("the table offers what there is");
    let out: Option<PathBuf> = args.maybe("out");
    if let Some(dir) = &out {
        prepare(dir, &page_of(dir, chosen), args.has("destroy"))?;
    }
    let bar = Bar::new();
    let report = (chosen.run)(&mut |part| bar.percent(chosen.name, part));
    drop(bar);
    if let Some(dir) = &out {
        write(dir, chosen, &report)?;
    }
    if args.has("json") {
        out::print_json(&Named { name: chosen.name, report: &report });
    } else {
        out::print(&shown(&report));
    }
    Ok(())
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

fn page_of(dir: &Path, chosen: &Reproduction) -> PathBuf {
    dir.join(format!("{}.html", chosen.name))
}

fn prepare(dir: &Path, page: &Path, destroy: bool) -> Result<(), Failure> {
    if page.exists() && !destroy {
        let sentence = format!("{} would be overwritten", page.display());
        return Err(Failure::new(sentence).hint("if that is meant, allow it with --destroy"));
    }
    std::fs::create_dir_all(dir)
        .map_err(|error| Failure::new(format!("cannot make {}: {error}", dir.display())))
}

fn write(dir: &Path, chosen: &Reproduction, report: &Report) -> Result<(), Failure> {
    let save = |path: PathBuf, text: String| {
        std::fs::write(&path, text)
            .map_err(|error| Failure::new(format!("cannot write {}: {error}", path.display())))
    };
    for figure in &report.figures {
        let svg = figure.plot.svg().map_err(|error| Failure::new(error.to_string()))?;
        save(dir.join(format!("{}-{}.svg", chosen.name, figure.name)), svg)?;
    }
    let page = report.page(chosen.about).map_err(|error| Failure::new(error.to_string()))?;
    let path = page_of(dir, chosen);
    save(path.clone(), page.html())?;
    out::note(&format!("wrote {}", path.display()));
    Ok(())
}
