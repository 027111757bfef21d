//! What becomes of the mounts of a server's stores, in its log and metrics. The program that has
//! mounted them tells.

use crate::shared::Shared;
use serde_json::{Value, json};
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

/// The log of a server for what its mounts have to tell.
#[derive(Clone, Debug)]
pub struct MountLog {
    // Weak: a mount that is in use must not keep a server that has ended.
    shared: Weak<Shared>,
}

impl MountLog {
    pub(crate) fn new(shared: &Arc<Shared>) -> Self {
        Self { shared: Arc::downgrade(shared) }
    }

    /// The mount of a store has something to tell people, which `note` is.
    pub fn note(&self, store: &Path, note: &str) {
        let store = store.display().to_string();
        self.line(json!({ "event": "mount-note", "store": store, "note": note }));
    }

    /// A store is not mounted on a directory any more, though the server has not unmounted it.
    pub fn unmounted(&self, store: &Path, directory: &Path) {
        if let Some(shared) = self.shared.upgrade() {
            shared.readers.unmounted.fetch_add(1, Ordering::Relaxed);
        }
        let [store, directory] = [store, directory].map(|path| path.display().to_string());
        self.line(json!({ "event": "unmounted", "store": store, "directory": directory }));
    }

    fn line(&self, line: Value) {
        if let Some(shared) = self.shared.upgrade() {
            shared.log.line(|| line);
        }
    }
}
