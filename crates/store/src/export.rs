//! Giving titles back as files.

use crate::{Pace, Progress, Store, StoreError};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

/// A title given back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportReport {
    /// The title's name.
    pub title: String,
    /// The file made.
    pub out: PathBuf,
    /// Its bytes.
    pub bytes: u64,
    /// What a person should know.
    pub notes: Vec<String>,
}

/// Writes a title to a new file: media as a playable MP4 or MOV, files bit for bit. Never
/// overwrites; checksums are verified on the way.
pub fn export(
    store: &Store,
    name: &str,
    out: &Path,
    pace: &dyn Pace,
    progress: &mut dyn FnMut(Progress),
    cancel: &AtomicBool,
) -> Result<ExportReport, StoreError> {
    let _ = (store, name, out, pace, progress, cancel);
    todo!()
}
