//! `check --rebuild`: finds titles by their labels, for a store whose catalogue is lost or does not
//! have them. The catalogue is written only with `--destroy`; without it the report is the same and
//! the store is not changed.

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
    /// Why the store does not open; `null`: it does.
    damage: Option<String>,
    /// Titles of the store's catalogue, which stay in it; `null`: it cannot be read.
    kept: Option<u64>,
    /// Whether the catalogue was written.
    written: bool,
    /// Titles that the catalogue gets.
    titles: Vec<wire::ListedTitle>,
    given_up: Vec<GivenUp>,
}

#[derive(Serialize)]
struct GivenUp {
    title: String,
    reason: String,
}

pub(super) fn rebuild(args: &CheckArgs) -> Result<(), Failure> {
    let store = args.stores.store.as_path();
    let found = scan(store)?;
    let has_work = found.report().damage.is_some() || !found.report().titles.is_empty();
    let written = args.overwrite.destroy && has_work;
    let report = if written { found.write()? } else { found.report().clone() };
    let outcome = RebuildOutcome::new(store, written, &report);
    args.report.show(&outcome, || page(&outcome));
    // Until it is written, the store is as damaged as it was.
    let is_whole = (written || !has_work) && report.given_up.is_empty();
    if is_whole { Ok(()) } else { Err(Failure::reported(Code::Damage)) }
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
    fn new(store: &Path, written: bool, report: &RebuildReport) -> Self {
        let given_up =
            |it: &store::GivenUp| GivenUp { title: it.name.clone(), reason: it.reason.clone() };
        Self {
            store: store.to_owned(),
            damage: report.damage.clone(),
            kept: report.kept,
            written,
            titles: report.titles.iter().map(wire::ListedTitle::from).collect(),
            given_up: report.given_up.iter().map(given_up).collect(),
        }
    }
}

fn page(report: &RebuildOutcome) -> String {
    let (titles, given_up) = (report.titles.len(), report.given_up.len());
    if report.damage.is_none() && titles + given_up == 0 {
        let kept = count(report.kept.unwrap_or(0), "title");
        return format!("the catalogue has all titles ({kept}): nothing to rebuild\n");
    }
    let mut page = report.damage.as_ref().map_or(String::new(), |why| format!("damage: {why}\n"));
    for title in &report.titles {
        page += &format!("title: '{}' ({})\n", title.name, ByteCount(title.bytes));
    }
    for GivenUp { title, reason } in &report.given_up {
        page += &format!("not recovered: '{title}': {reason}\n");
    }
    let found = format!("{}, {given_up} not recovered", count(titles, "title"));
    page + &match (report.kept, report.written) {
        (None, true) => format!(
            "{found}: the store has a new catalogue; `tenuto calibrate` measures the disk again\n"
        ),
        (None, false) => format!(
            "{found}: nothing was written; with --destroy this becomes the catalogue of the store\n"
        ),
        (Some(kept), written) => {
            let outcome = match written {
                true if titles == 0 => "the superblock copies are made again",
                true => "the catalogue has them now",
                false if titles > 0 => "nothing was written; with --destroy it gets them",
                false if report.damage.is_some() => {
                    "nothing was written; with --destroy the superblock copies are made again"
                }
                false => "nothing to write",
            };
            format!("{found}, beside the {kept} of the catalogue: {outcome}\n")
        }
    }
}
