//! Stores that could not be opened when the server started, because their disk is not there or does
//! not answer. The server starts with the others, names these, and looks for them at growing
//! intervals; when one can be opened again, the server is to start anew in its own place.
//!
//! ```text
//!   missing ──5 s──▶ open, probe ──10 s──▶ open, probe ──▶ ... at most a minute
//!                      └─ superblock, journal, catalogue; parts of titles match their checksums
//!                         ──▶ closed again ──▶ the owner of the server restarts it in place
//! ```

use crate::shared::Shared;
use serde_json::json;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;
use store::{Store, StoreError};
use units::Hinted;

/// Starts looking for the lost stores, if there are some. The thread is not joined: the server may
/// end before it.
pub(crate) fn spawn_search(shared: &Arc<Shared>) -> io::Result<()> {
    let lost = shared.info.missing.iter().filter(|store| store.is_lost);
    let lost: Vec<PathBuf> = lost.map(|store| store.path.clone()).collect();
    if !lost.is_empty() {
        let shared = Arc::downgrade(shared);
        let search = thread::Builder::new().name("search".to_owned());
        search.spawn(move || search_until_stopping(&lost, &shared))?;
    }
    Ok(())
}

fn search_until_stopping(lost: &[PathBuf], shared: &Weak<Shared>) {
    let mut interval = FIRST_INTERVAL;
    while Shared::sleep_unless_stopping(shared, interval) {
        // Goes on after a success: the server may refuse to restart at this moment.
        for path in lost {
            if let Err(error) = look(path, shared) {
                tell("store-still-missing", path, Some(&error), shared);
            }
        }
        interval = (interval * 2).min(LONGEST_INTERVAL);
    }
}

/// Opens a store that is not served, and closes it again. If its disk holds its data, the server is
/// to start anew.
///
/// # Errors
/// [`StoreError::Owned`] while this process or another one has it.
pub(crate) fn look(path: &Path, shared: &Weak<Shared>) -> Result<(), StoreError> {
    Store::open(path)?.probe()?;
    tell("store-is-back", path, None, shared);
    if let Some(shared) = shared.upgrade() {
        shared.store_is_back.store(true, Ordering::Relaxed);
    }
    Ok(())
}

/// Logs what was found of a store.
pub(crate) fn tell(event: &str, store: &Path, error: Option<&StoreError>, shared: &Weak<Shared>) {
    let Some(shared) = shared.upgrade() else { return };
    let store = store.display().to_string();
    shared.log.line(|| match error {
        Some(error) => json!({ "event": event, "store": store, "error": error.one_line() }),
        None => json!({ "event": event, "store": store }),
    });
}

const FIRST_INTERVAL: Duration = Duration::from_secs(5);
const LONGEST_INTERVAL: Duration = Duration::from_secs(60);
