//! The stores of a configuration that a server starts without.

use crate::ServerConfig;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use units::{Hinted, Reason};

/// A store of the configuration that is not served.
#[derive(Clone, Debug)]
pub(crate) struct MissingStore {
    pub(crate) path: PathBuf,
    // Why it could not be opened when it was last tried.
    reason: Arc<Mutex<Reason>>,
    /// Whether its disk is lost, so that it may come back by itself.
    pub(crate) is_lost: bool,
}

impl MissingStore {
    pub(crate) fn lost(path: &Path, reason: Reason) -> Self {
        Self { is_lost: true, ..Self::refused(path, reason) }
    }

    /// A store that is not looked for.
    pub(crate) fn refused(path: &Path, reason: Reason) -> Self {
        Self { path: path.to_owned(), reason: Arc::new(Mutex::new(reason)), is_lost: false }
    }

    /// Why it could not be opened when it was last tried.
    pub(crate) fn reason(&self) -> Reason {
        self.reason.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The store was tried again, with this result.
    pub(crate) fn set_reason(&self, reason: Reason) {
        *self.reason.lock().unwrap_or_else(PoisonError::into_inner) = reason;
    }

    /// A line for people.
    pub(crate) fn note(&self) -> String {
        let later = if self.is_lost { ", and takes it in when it can be opened" } else { "" };
        format!("{}; the server starts without it{later}", self.reason().one_line())
    }
}

/// Fails with the first reason if every store is missing.
pub(crate) fn refuse_all(config: &ServerConfig, missing: &[MissingStore]) -> Result<(), Reason> {
    match missing.first() {
        Some(first) if missing.len() == config.stores.len() => Err(first.reason()),
        _ => Ok(()),
    }
}
