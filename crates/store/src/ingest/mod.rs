//! Taking files in, one title each.
//!
//! ```text
//!  media   ffprobe ──JSON──▶ what to take, what to leave out, what to refuse
//!          ffmpeg ──pipe──▶ FragmentReader ──payload──▶ TitleWriter ──▶ device
//!            (remux only)        └──────────LDU index──────▶ seal
//!  file    read ──────────────────────────────────────▶ TitleWriter
//! ```
//!
//! FFmpeg's programs are called, never linked: they read what strangers wrote, so they run as
//! processes of their own that can be killed and have bounds (`process`). Nothing is re-encoded.
//! A file that is refused leaves nothing behind.

mod bytes;
mod fragments;
mod probe;
mod process;
mod remux;
mod renditions;

use crate::{BackgroundIo, JobProgress, Store, StoreError, TitleRecord};
use media::TitleKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// How to take files in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IngestOptions {
    /// Media (through FFmpeg) or any bytes.
    pub kind: TitleKind,
    /// The title's name; `None`: the file's name without its extension.
    pub name: Option<String>,
    /// Take what can be read of a damaged file, with a note, instead of refusing it.
    pub allow_damaged: bool,
    /// The files are one title: the first with its sound, the others its pictures in other sizes.
    pub renditions: bool,
}

impl Default for IngestOptions {
    fn default() -> Self {
        Self { kind: TitleKind::Media, name: None, allow_damaged: false, renditions: false }
    }
}

/// A file taken in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IngestReport {
    /// The title it became.
    pub title: TitleRecord,
    /// What of the file is not in the title: `subtitle stream 3 (subrip, eng)`.
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

/// Takes in files, one title each; one that is refused does not stop the others. As renditions they
/// are one title, and one outcome: the first file's.
pub fn ingest(
    store: &Store,
    files: &[PathBuf],
    options: &IngestOptions,
    io: &dyn BackgroundIo,
    progress: &mut dyn FnMut(JobProgress),
    cancel: &AtomicBool,
) -> Vec<FileOutcome> {
    let mut one = |file: &PathBuf, others: &[PathBuf]| FileOutcome {
        file: file.clone(),
        result: ingest_with(store, (file, others), options, io, progress, cancel),
    };
    match files.split_first() {
        Some((first, others)) if options.renditions => vec![one(first, others)],
        _ => files.iter().map(|file| one(file, &[])).collect(),
    }
}

/// Takes in one file as one title.
pub fn ingest_file(
    store: &Store,
    file: &Path,
    options: &IngestOptions,
    io: &dyn BackgroundIo,
    progress: &mut dyn FnMut(JobProgress),
    cancel: &AtomicBool,
) -> Result<IngestReport, StoreError> {
    ingest_with(store, (file, &[]), options, io, progress, cancel)
}

fn ingest_with(
    store: &Store,
    (file, others): (&Path, &[PathBuf]),
    options: &IngestOptions,
    io: &dyn BackgroundIo,
    progress: &mut dyn FnMut(JobProgress),
    cancel: &AtomicBool,
) -> Result<IngestReport, StoreError> {
    let size = size_of_file(file)?;
    let more = others.iter().map(|other| size_of_file(other)).sum::<Result<u64, _>>()?;
    if !others.is_empty() && options.kind == TitleKind::File {
        return Err(refused(file, "only media has renditions; leave --as file out".to_owned()));
    }
    let name = match (&options.name, file.file_stem().and_then(|stem| stem.to_str())) {
        (Some(name), _) => name.as_str(),
        (None, Some(stem)) => stem,
        (None, None) => {
            let reason = "its name is not UTF-8; name the title yourself".to_owned();
            return Err(refused(file, reason));
        }
    };
    let writer = store.begin(name, options.kind)?.with_io(io);
    let mut job = IngestJob { file, others, size: size + more, options, progress, cancel };
    match options.kind {
        TitleKind::File => bytes::ingest(writer, &mut job),
        TitleKind::Media => remux::ingest(writer, &mut job),
    }
}

/// Bytes of a regular file.
fn size_of_file(file: &Path) -> Result<u64, StoreError> {
    let about = std::fs::metadata(file).map_err(|source| StoreError::File {
        action: "read",
        path: file.to_owned(),
        source,
    })?;
    if !about.is_file() {
        return Err(refused(file, "it is no regular file; name one that is".to_owned()));
    }
    Ok(about.len())
}

/// The ingest of one title: its files, options, and how progress is reported and cancelled.
struct IngestJob<'a> {
    file: &'a Path,
    /// The title's other renditions.
    others: &'a [PathBuf],
    /// Bytes of all files together.
    size: u64,
    options: &'a IngestOptions,
    progress: &'a mut dyn FnMut(JobProgress),
    cancel: &'a AtomicBool,
}

impl IngestJob<'_> {
    /// Tells how far it has come; an error if it has been called off.
    fn tell(&mut self, stage: &'static str, done: u64) -> Result<(), StoreError> {
        (self.progress)(JobProgress { stage, done, total: Some(self.size) });
        if self.cancel.load(Ordering::Relaxed) { Err(StoreError::Cancelled) } else { Ok(()) }
    }

    fn refused(&self, reason: impl Into<String>) -> StoreError {
        refused(self.file, reason.into())
    }
}

fn refused(file: &Path, reason: String) -> StoreError {
    StoreError::Refused { file: file.to_owned(), reason }
}
