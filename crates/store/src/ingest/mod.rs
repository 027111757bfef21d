//! Ingest of files, one title each.
//!
//! ```text
//!  media   ffprobe ──JSON──▶ which streams to take, to leave out, or to refuse
//!          ffmpeg ──pipe──▶ FragmentReader ──payload──▶ TitleWriter ──▶ device
//!            (remux only)        └──────────LDU index──────▶ seal
//!          ffmpeg ──pipe──▶ cues of its text tracks ───────────┤
//!          ffmpeg ──pipe──▶ thumbnails, if they are wanted ────┘
//!  file    read ──────────────────────────────────────▶ TitleWriter
//! ```
//!
//! FFmpeg's programs are called, never linked: they read untrusted files, so they run as separate
//! processes that can be killed and have limits (`process`). Pictures and sound are never encoded
//! again. A refused file leaves nothing behind.

mod address;
mod bytes;
mod codecs;
mod connection;
mod damage;
mod fragments;
mod heard;
mod kinds;
mod live;
mod matroska;
mod metadata;
mod movie;
mod numbered;
mod parts;
mod picture_end;
mod picture_size;
mod plan;
mod probe;
mod process;
mod remux;
mod renditions;
mod series;
mod text;
mod thumbnails;
mod track_marks;
mod transport;

pub use live::{RecordingEnd, RecordingInput, RecordingOptions, RecordingReport, record};
pub use numbered::PictureRate;
pub use series::{RecordingEvent, RecordingHost, SeriesOptions, SeriesReport, record_series};

use numbered::NumberedPictures;

use crate::{BackgroundIo, JobProgress, Store, StoreError, TitleRecord};
use media::TitleKind;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use units::Reason;

/// The options of an ingest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IngestOptions {
    /// Media (through FFmpeg) or opaque bytes.
    pub kind: TitleKind,
    /// The title's name; `None` for the file's name without its extension.
    pub name: Option<String>,
    /// Take the readable part of a damaged file, with a note, instead of refusing the file.
    pub allow_damaged: bool,
    /// The files are one title: the first with its sound, the others with its pictures in other
    /// sizes.
    pub renditions: bool,
    /// The programme to take from a file with several; `None` if it has one.
    pub program: Option<u32>,
    /// Files of subtitles for the title, in addition to its own.
    pub subtitles: Vec<SubtitleFile>,
    /// The time from one thumbnail to the next, in whole seconds; `None` for no thumbnails. A long
    /// title has them at a multiple of it.
    pub thumbnails: Option<Duration>,
    /// How many pictures are shown in a second: each file is a pattern of numbered pictures, such
    /// as `shot.%06d.dpx`. `None` for files that are media.
    pub fps: Option<PictureRate>,
}

/// A file of subtitles beside a film.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubtitleFile {
    /// A text file in a format that FFmpeg reads.
    pub file: PathBuf,
    /// The language: a code of ISO 639 or a tag of BCP 47.
    pub language: String,
    /// Whether players show it also if subtitles are off.
    pub forced: bool,
    /// Whether it describes sounds, too (SDH).
    pub hearing_impaired: bool,
}

/// The result of the ingest of one title.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IngestReport {
    /// The new title.
    pub title: TitleRecord,
    /// The streams that are not in the title: `subtitle stream 3 (subrip, eng)`.
    pub left_out: Vec<String>,
    /// Further notes for the user.
    pub notes: Vec<String>,
}

/// The outcome of one file.
#[derive(Debug)]
pub struct FileOutcome {
    /// The file.
    pub file: PathBuf,
    /// The report, or the reason of the failure.
    pub result: Result<IngestReport, StoreError>,
}

/// Ingests files, one title each; a refused file does not stop the others. With
/// `options.renditions` they become one title, and the outcome is that of the first file.
pub fn ingest(
    store: &Store,
    files: &[PathBuf],
    options: &IngestOptions,
    io: &dyn BackgroundIo,
    progress: &mut dyn FnMut(JobProgress),
    cancel: &AtomicBool,
) -> Vec<FileOutcome> {
    let mut one = |source: TitleSource<'_>| FileOutcome {
        file: source.file.to_owned(),
        result: ingest_title(store, source, options, io, progress, cancel),
    };
    match files.split_first() {
        Some((file, others)) if options.renditions => vec![one(TitleSource { file, others })],
        _ => files.iter().map(|file| one(TitleSource { file, others: &[] })).collect(),
    }
}

fn ingest_title(
    store: &Store,
    source: TitleSource<'_>,
    options: &IngestOptions,
    io: &dyn BackgroundIo,
    progress: &mut dyn FnMut(JobProgress),
    cancel: &AtomicBool,
) -> Result<IngestReport, StoreError> {
    let TitleSource { file, others } = source;
    let pictures = options.fps.map(|rate| NumberedPictures::find(file, rate)).transpose();
    let pictures = pictures.map_err(|reason| refused(file, reason))?;
    let own_size = match &pictures {
        Some(pictures) => pictures.bytes,
        None => size_of_file(file)?,
    };
    let other_sizes = others.iter().map(|other| size_of_file(other)).sum::<Result<u64, _>>()?;
    let of_media = [
        (!others.is_empty(), "only media has renditions"),
        (!options.subtitles.is_empty(), "only media has subtitles"),
        (options.thumbnails.is_some(), "only media has thumbnails"),
        (options.fps.is_some(), "only media has pictures in a second"),
    ];
    let asked = of_media.into_iter().find(|(is_asked, _)| *is_asked);
    if let (Some((_, message)), TitleKind::File) = (asked, options.kind) {
        return Err(refused(file, Reason::new(message, "leave --as file out")));
    }
    let own = match pictures {
        Some(_) => numbered::title_of(file).ok_or("its name is a number only"),
        None => {
            let stem = file.file_stem().and_then(|stem| stem.to_str());
            stem.map(str::to_owned).ok_or("its name is not UTF-8")
        }
    };
    let name = match (&options.name, own) {
        (Some(name), _) => name.clone(),
        (None, Ok(own)) => own,
        (None, Err(message)) => {
            return Err(refused(file, Reason::new(message, "name the title yourself")));
        }
    };
    let size = own_size + other_sizes;
    // Reserves the name before the work, so that two jobs cannot collide at its end.
    let writer = store.begin(&name, options.kind)?.with_io(io);
    let mut job = IngestJob { file, pictures, others, size, options, progress, cancel };
    match options.kind {
        TitleKind::File => bytes::ingest(writer, &mut job),
        TitleKind::Media => remux::ingest(writer, &mut job),
    }
}

/// The files of one title.
#[derive(Clone, Copy)]
struct TitleSource<'a> {
    /// The file that names the title and has its sound.
    file: &'a Path,
    /// The files of the title's other renditions.
    others: &'a [PathBuf],
}

/// The length of a regular file.
fn size_of_file(file: &Path) -> Result<u64, StoreError> {
    let about = match std::fs::metadata(file) {
        Err(_) if numbered::is_pattern(file) => {
            let hint = "say it with --fps, for instance --fps 25";
            let message = "it names numbered pictures, but not how many are shown in a second";
            return Err(refused(file, Reason::new(message, hint)));
        }
        about => about.map_err(StoreError::file("read", file))?,
    };
    if !about.is_file() {
        return Err(refused(file, Reason::new("it is not a regular file", "name one that is")));
    }
    Ok(about.len())
}

/// The ingest of one title: its files, options, and how progress is reported and cancelled.
struct IngestJob<'a> {
    file: &'a Path,
    /// The pictures, if the file is the pattern of their names.
    pictures: Option<NumberedPictures>,
    /// The title's other renditions.
    others: &'a [PathBuf],
    /// Bytes of all files together.
    size: u64,
    options: &'a IngestOptions,
    progress: &'a mut dyn FnMut(JobProgress),
    cancel: &'a AtomicBool,
}

impl IngestJob<'_> {
    /// The input arguments for FFmpeg of the title's file.
    fn input(&self) -> Vec<OsString> {
        self.pictures.as_ref().map_or_else(|| probe::input(self.file), NumberedPictures::input)
    }

    /// Reports progress; an error if the caller has cancelled the ingest.
    fn tell(&mut self, stage: &'static str, done: u64) -> Result<(), StoreError> {
        debug_assert!(INGEST_STAGES.contains(&stage), "{stage} is in the list of stages");
        (self.progress)(JobProgress { stage, done, total: Some(self.size) });
        if self.cancel.load(Ordering::Relaxed) { Err(StoreError::Cancelled) } else { Ok(()) }
    }

    fn refused(&self, reason: impl Into<Reason>) -> StoreError {
        refused(self.file, reason.into())
    }
}

fn refused(file: &Path, reason: Reason) -> StoreError {
    StoreError::Refused { file: file.to_owned(), reason }
}

/// The stages of an ingest, as its progress tells them, in their order; a stage may come again.
pub const INGEST_STAGES: [&str; 4] = ["probing", "copying", "sealing", thumbnails::STAGE];
