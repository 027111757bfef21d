//! `check --rebuild`: makes a new catalogue for a store from the labels of its titles. It is
//! written only with `--destroy`; without it the report is the same and the store is not changed.

use crate::args::stores::CheckArgs;
use crate::failure::{Code, Failure};
use crate::out::Bar;
use serde::Serialize;
use server::wire;
use std::path::{Path, PathBuf};
use store::{JobProgress, Rebuild, RebuildReport, StoreError};
use tenuto_agent::stop_on_signals;
use units::ByteCount;
use units::show::count;

/// The outcome of a rebuild, as `--json` prints it.
#[derive(Serialize)]
struct RebuildOutcome {
    store: PathBuf,
    /// Why the store's catalogue cannot be used; `null`: it can, and nothing is rebuilt.
    damage: Option<String>,
    /// Whether the new catalogue was written.
    written: bool,
    /// Titles of the new catalogue.
    titles: Vec<wire::ListedTitle>,
    given_up: Vec<GivenUp>,
}

#[derive(Serialize)]
struct GivenUp {
    title: String,
    reason: String,
}

pub(super) fn rebuild(args: &CheckArgs) -> Result<(), Failure> {
    let (store, write) = (args.stores.store.as_path(), args.overwrite.destroy);
    // A catalogue that can be read is newer than the labels: it has the renames and the
    // calibration.
    let Some(damage) = Rebuild::needed(store).map_err(in_use)? else {
        let outcome = RebuildOutcome::new(store, None, false, &RebuildReport::default());
        args.report.show(&outcome, || page(&outcome));
        return Ok(());
    };
    let found = scan(store)?;
    let report = if write { found.write()? } else { found.report().clone() };
    let outcome = RebuildOutcome::new(store, Some(damage), write, &report);
    args.report.show(&outcome, || page(&outcome));
    // Until it is written, the store is as damaged as it was.
    if write { Ok(()) } else { Err(Failure::reported(Code::Damage)) }
}

fn scan(store: &Path) -> Result<Rebuild, Failure> {
    let (bar, cancel) = (Bar::new(), stop_on_signals()?);
    let progress = &mut |p: JobProgress| bar.bytes(p.stage, p.done, p.total);
    Rebuild::scan(store, progress, &cancel).map_err(in_use)
}

fn in_use(error: StoreError) -> Failure {
    match error {
        StoreError::Owned { .. } => Failure::from(error)
            .hint("stop the server or command that uses it: a rebuild needs exclusive access"),
        other => other.into(),
    }
}

impl RebuildOutcome {
    fn new(store: &Path, damage: Option<String>, written: bool, report: &RebuildReport) -> Self {
        let given_up =
            |it: &store::GivenUp| GivenUp { title: it.name.clone(), reason: it.reason.clone() };
        Self {
            store: store.to_owned(),
            damage,
            written,
            titles: report.titles.iter().map(wire::ListedTitle::from).collect(),
            given_up: report.given_up.iter().map(given_up).collect(),
        }
    }
}

fn page(report: &RebuildOutcome) -> String {
    let Some(damage) = &report.damage else {
        return "the catalogue is readable: nothing to rebuild\n".to_owned();
    };
    let mut page = format!("damage: {damage}\n");
    for title in &report.titles {
        page += &format!("title: '{}' ({})\n", title.name, ByteCount(title.bytes));
    }
    for GivenUp { title, reason } in &report.given_up {
        page += &format!("not recovered: '{title}': {reason}\n");
    }
    let (titles, given_up) = (report.titles.len(), report.given_up.len());
    let what_now = if report.written {
        "the store has a new catalogue; `tenuto calibrate` measures the disk again"
    } else {
        "nothing was written; with --destroy this becomes the catalogue of the store"
    };
    page + &format!("{}, {given_up} not recovered: {what_now}\n", count(titles, "title"))
}
