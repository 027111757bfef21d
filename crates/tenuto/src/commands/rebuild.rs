//! `check --rebuild`: a new catalogue for a store that lost its own, from its titles' labels.
//! Written only with `--destroy`; without it the same report, and nothing is changed.

use crate::access::on_interrupt;
use crate::args::stores::CheckArgs;
use crate::failure::{Code, Failure};
use crate::out::Bar;
use serde::Serialize;
use server::wire;
use std::path::{Path, PathBuf};
use store::{JobProgress, Rebuild, RebuildReport, StoreError};
use units::ByteCount;

/// The outcome of a rebuild, as `--json` prints it.
#[derive(Serialize)]
struct RebuildOutcome {
    store: PathBuf,
    /// Why the store's catalogue cannot be used; `null`: it can, and nothing is rebuilt.
    damage: Option<String>,
    /// Whether the new catalogue was written.
    written: bool,
    /// Titles of the new catalogue.
    titles: Vec<wire::Title>,
    given_up: Vec<GivenUp>,
}

#[derive(Serialize)]
struct GivenUp {
    title: String,
    reason: String,
}

pub(super) fn rebuild(args: &CheckArgs) -> Result<(), Failure> {
    let (store, write) = (args.stores.store.as_path(), args.overwrite.destroy);
    let Some(damage) = Rebuild::needed(store).map_err(in_use)? else {
        let outcome = RebuildOutcome::nothing_to_do(store);
        args.report.show(&outcome, || page(&outcome));
        return Ok(());
    };
    let found = scan(store)?;
    let report = if write { found.write()? } else { found.report().clone() };
    let outcome = RebuildOutcome::new(store, damage, write, &report);
    args.report.show(&outcome, || page(&outcome));
    // Until it is written, the store is as damaged as it was.
    if write { Ok(()) } else { Err(Failure::reported(Code::Damage)) }
}

fn scan(store: &Path) -> Result<Rebuild, Failure> {
    let (bar, cancel) = (Bar::new(), on_interrupt()?);
    let progress = &mut |p: JobProgress| bar.bytes(p.stage, p.done, p.total);
    Rebuild::scan(store, progress, &cancel).map_err(in_use)
}

fn in_use(error: StoreError) -> Failure {
    match error {
        StoreError::Owned { .. } => Failure::from(error)
            .hint("stop the server or command that has it: a rebuild needs the store to itself"),
        other => other.into(),
    }
}

impl RebuildOutcome {
    fn nothing_to_do(store: &Path) -> Self {
        let (titles, given_up) = (Vec::new(), Vec::new());
        Self { store: store.to_owned(), damage: None, written: false, titles, given_up }
    }

    fn new(store: &Path, damage: String, written: bool, report: &RebuildReport) -> Self {
        let given_up = report
            .given_up
            .iter()
            .map(|it| GivenUp { title: it.name.clone(), reason: it.reason.clone() });
        Self {
            store: store.to_owned(),
            damage: Some(damage),
            written,
            titles: report.titles.iter().map(wire::Title::from).collect(),
            given_up: given_up.collect(),
        }
    }
}

fn page(report: &RebuildOutcome) -> String {
    let Some(damage) = &report.damage else {
        return "the catalogue can be read: nothing to rebuild\n".to_owned();
    };
    let mut page = format!("damage: {damage}\n");
    for title in &report.titles {
        page += &format!("title: '{}' ({})\n", title.name, ByteCount(title.bytes));
    }
    for GivenUp { title, reason } in &report.given_up {
        page += &format!("given up: '{title}': {reason}\n");
    }
    let (titles, given_up) = (report.titles.len(), report.given_up.len());
    let what_now = if report.written {
        "the store has a new catalogue; `tenuto calibrate` measures the disk again"
    } else {
        "nothing was written; to give the store this catalogue, add --destroy"
    };
    page + &format!("{titles} titles, {given_up} given up: {what_now}\n")
}
