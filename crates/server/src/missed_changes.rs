//! The stores of a server as one set: a title that was removed or renamed while a store was away is
//! removed or renamed there when it is back, at the start or while the server runs.

use crate::library::StoredCopy;
use crate::log::Log;
use crate::messages::{CoreHandle, Event};
use crate::missing_stores::MissingStore;
use crate::opening::PreparedStore;
use crate::shared::Shared;
use crossbeam_channel::bounded;
use serde_json::json;
use std::path::Path;
use std::sync::Arc;
use store::{CatchUpStep, Store};
use units::Hinted;

/// Makes the changes that the opened stores missed, before anything is served of them, and lets
/// them know each other. Notes for people are added to those of the stores.
pub(crate) fn catch_up_at_start(opened: &mut [PreparedStore], missing: &[MissingStore], log: &Log) {
    let made = {
        let stores: Vec<&Store> = opened.iter().map(|it| &*it.store).collect();
        store::catch_up(&stores, &|number, id| stores[number].release(id))
    };
    for change in &made {
        let told = &mut opened[change.store];
        tell(&told.path, change, log);
        told.notes.push(note(&told.path, change));
    }
    let set: Vec<(&Path, &Arc<Store>)> =
        opened.iter().map(|it| (it.path.as_path(), &it.store)).collect();
    if let Err(error) = store::keep_siblings(&set, missing.is_empty()) {
        log.line(|| json!({ "event": "set-not-kept", "error": error.one_line() }));
    }
}

/// Makes the changes that a store missed whose disk is back.
pub(crate) fn catch_up(shared: &Shared, core: &CoreHandle) {
    let all = &shared.content.stores;
    let stores: Vec<&Store> = all.iter().map(|opened| &*opened.store).collect();
    let free = |store, id| {
        // Nobody waits for the answer: the core frees the space when no session plays the title.
        let (in_use, _) = bounded(1);
        core.send(Event::Withdraw { copy: StoredCopy { store, id }, in_use });
    };
    for change in store::catch_up(&stores, &free) {
        let path = &all[change.store].path;
        tell(path, &change, &shared.log);
        shared.notice(note(path, &change));
    }
}

fn tell(path: &Path, made: &CatchUpStep, log: &Log) {
    let (store, title) = (path.display().to_string(), &made.change.name);
    let error = made.result.as_ref().err().map(Hinted::one_line);
    log.line(|| {
        json!({
            "event": "missed-change", "store": store, "title": title,
            "new_name": made.change.new_name, "error": error,
        })
    });
}

fn note(path: &Path, made: &CatchUpStep) -> String {
    let (path, title) = (path.display(), &made.change.name);
    let what = match &made.change.new_name {
        None => "removed".to_owned(),
        Some(new) => format!("renamed to '{new}'"),
    };
    match &made.result {
        Ok(()) => format!(
            "{path}: '{title}' is {what} here, too, as it was in the other stores while this one \
             was away"
        ),
        Err(error) => format!(
            "{path}: '{title}' was {what} in the other stores while this one was away, and cannot \
             be here: {}",
            error.one_line()
        ),
    }
}
