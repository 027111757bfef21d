//! Taking files in.

use crate::{Pace, Progress, Store, StoreError, TitleRecord};
use media::TitleKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

/// How to take files in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IngestOptions {
    /// Media (through FFmpeg) or any bytes.
    pub kind: TitleKind,
    /// The title's name; `None`: the file's name without its extension.
    pub name: Option<String>,
    /// Take what can be read of a damaged file, with a note, instead of refusing it.
    pub allow_damaged: bool,
}

impl Default for IngestOptions {
    fn default() -> Self {
        Self { kind: TitleKind::Media, name: None, allow_damaged: false }
    }
}

/// A file taken in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IngestReport {
    /// The title it became.
    pub title: TitleRecord,
    /// What of the file is not in the title: `subtitle track 3 (subrip, eng)`.
    pub left_out: Vec<String>,
    /// What else a person should know.
    pub notes: Vec<String>,
}

/// What became of one file.
#[derive(Debug)]
pub struct FileOutcome {
    /// The file.
    pub file: PathBuf,
    /// What became of it.
    pub result: Result<IngestReport, StoreError>,
}

/// Takes in files, one title each; one that is refused does not stop the others.
pub fn ingest(
    store: &Store,
    files: &[PathBuf],
    options: &IngestOptions,
    pace: &dyn Pace,
    progress: &mut dyn FnMut(Progress),
    cancel: &AtomicBool,
) -> Vec<FileOutcome> {
    let _ = (store, files, options, pace, progress, cancel);
    todo!()
}

/// Takes in one file as one title.
pub fn ingest_file(
    store: &Store,
    file: &Path,
    options: &IngestOptions,
    pace: &dyn Pace,
    progress: &mut dyn FnMut(Progress),
    cancel: &AtomicBool,
) -> Result<IngestReport, StoreError> {
    let _ = (store, file, options, pace, progress, cancel);
    todo!()
}
