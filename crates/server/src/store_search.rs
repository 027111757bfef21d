//! Stores that could not be opened when the server started, because their disk is not there or does
//! not answer. The server starts with the others, names these, and looks for them at growing
//! intervals; when one can be opened again, the server is to start anew in its own place.
//!
//! ```text
//!   missing ──5 s──▶ open, probe ──10 s──▶ open, probe ──▶ ... at most a minute
//!                      └─ superblock, journal, catalogue; parts of titles match their checksums
//!                         ──▶ closed again ──▶ the owner of the server restarts it in place
//! ```

use crate::missing_stores::MissingStore;
use crate::opening;
use crate::shared::Shared;
use serde_json::json;
use std::io;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;
use store::{Store, StoreError};
use units::{Hinted, Reason};

/// Starts looking for the lost stores, if there are some. The thread is not joined: the server may
/// end before it.
pub(crate) fn spawn_search(shared: &Arc<Shared>) -> io::Result<()> {
    let lost = shared.info.missing.iter().filter(|store| store.is_lost);
    let lost: Vec<MissingStore> = lost.cloned().collect();
    if !lost.is_empty() {
        let shared = Arc::downgrade(shared);
        let search = thread::Builder::new().name("search".to_owned());
        search.spawn(move || search_until_stopping(&lost, &shared))?;
    }
    Ok(())
}

fn search_until_stopping(lost: &[MissingStore], shared: &Weak<Shared>) {
    let mut interval = FIRST_INTERVAL;
    while Shared::sleep_unless_stopping(shared, interval) {
        // Goes on after a success: the server may refuse to restart at this moment.
        for store in lost {
            let path = &store.path;
            let reason = match look(path, shared) {
                Ok(()) => Reason::new(
                    "it is back, and is taken in when the server restarts in place",
                    "if it does not restart by itself, do it: its log has the reason (not-restarted)",
                ),
                Err(error) => {
                    tell("store-still-missing", path, Some(&error), shared);
                    error.reason()
                }
            };
            store.set_reason(opening::not_served(path, reason));
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
