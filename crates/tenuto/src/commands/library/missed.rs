//! What the stores of a library missed while they were away.

use super::{DONE, FAILED, LibraryMember, PLANNED};
use crate::args::stores::LibraryArgs;
use crate::out;
use serde::Serialize;
use server::wire;
use std::path::{Path, PathBuf};
use store::{MissedChange, Store};
use units::Hinted;

/// A title that was removed or renamed while a store was away, and that is to be there, too.
#[derive(Serialize)]
pub(super) struct MissedReport {
    store: PathBuf,
    title: String,
    /// `null`: it is removed.
    new_name: Option<String>,
    /// `planned`, `done` or `failed`.
    pub(super) state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(skip)]
    uuid: String,
    #[serde(skip)]
    content: String,
}

impl MissedReport {
    fn new(store: &Path, change: MissedChange) -> Self {
        let MissedChange { store: uuid, content, name: title, new_name, .. } = change;
        let (store, uuid) = (store.to_owned(), uuid.to_string());
        Self { store, title, new_name, state: PLANNED, error: None, uuid, content }
    }

    /// The titles of the stores as they are after the change.
    pub(super) fn apply_to(&self, stores: &mut [LibraryMember]) {
        let Some(store) = stores.iter_mut().find(|it| it.info.uuid == self.uuid) else { return };
        let is_it = |it: &wire::ListedTitle| it.name == self.title && it.content == self.content;
        match &self.new_name {
            _ if self.state != PLANNED => {}
            None => store.titles.retain(|title| !is_it(title)),
            Some(new) => {
                store
                    .titles
                    .iter_mut()
                    .filter(|it| is_it(it))
                    .for_each(|it| it.name.clone_from(new));
            }
        }
    }

    pub(super) fn line(&self) -> String {
        let (state, title, store) = (self.state, &self.title, self.store.display());
        let what = match &self.new_name {
            None => format!("remove '{title}' from {store}"),
            Some(new) => format!("rename '{title}' to '{new}' in {store}"),
        };
        let why = "as in the other stores while it was away";
        let error = self.error.as_ref().map_or(String::new(), |error| format!(": {error}"));
        format!("{state}: {what}, {why}{error}")
    }
}

/// The changes that the stores missed, made with `--apply`. None where a server has a store: it has
/// made them.
pub(super) fn missed_changes(args: &LibraryArgs) -> Vec<MissedReport> {
    let paths: Vec<&PathBuf> = args.stores.iter().chain(&args.empty).collect();
    let open = |path: &&PathBuf| match args.apply {
        true => Store::open(path),
        false => Store::open_read_only(path),
    };
    // An error is told when the titles of the store are listed.
    let Ok(stores) = paths.iter().map(open).collect::<Result<Vec<Store>, _>>() else {
        return Vec::new();
    };
    let all: Vec<&Store> = stores.iter().collect();
    if !args.apply {
        let missed = paths.iter().zip(&stores).flat_map(|(path, store)| {
            let missed = store::missed_by(store, &all).into_iter();
            missed.map(|change| MissedReport::new(path, change))
        });
        return missed.collect();
    }
    let made = store::catch_up(&all, &|store, id| stores[store].release(id));
    let made = made.into_iter().map(|it| {
        let error = it.result.as_ref().err().map(Hinted::one_line);
        let state = if error.is_some() { FAILED } else { DONE };
        let report = MissedReport::new(paths[it.store], it.change);
        let report = MissedReport { state, error, ..report };
        out::note(&report.line());
        report
    });
    made.collect()
}
