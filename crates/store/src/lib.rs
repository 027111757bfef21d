//! Media on a raw disk or in one preallocated file: format, allocation, catalogue, ingest,
//! recording, export, check.
//!
//! All device access is through `device::BlockDevice`. The store schedules nothing: the server
//! computes from [`Store::runs`] where to read, and writers ask a [`BackgroundIo`] before each
//! transfer.

#![warn(missing_docs)]

// The tests' device and titles name the crate, as other programs do.
#[cfg(test)]
extern crate self as store;

mod background_io;
mod byte_runs;
mod catalogue;
mod check;
mod commit_group;
#[cfg(test)]
#[path = "../tests/common/mod.rs"]
mod common;
mod copying;
mod error;
mod export;
mod finding;
mod format;
mod free;
mod ingest;
mod library_plan;
mod log;
mod nearest;
mod open;
mod open_store;
mod owner;
mod reader;
mod rebuild;
mod record;
mod recording;
mod recording_file;
mod recording_load;
mod recording_reader;
mod repair;
mod scrub;
mod series;
mod siblings;
mod space;
mod title_file;
mod title_index;
mod trim;
mod writer;

pub use background_io::{BackgroundIo, JobProgress, Permit, Unthrottled};
pub use check::{CheckOptions, CheckReport};
pub use copying::copy_title;
pub use error::StoreError;
pub use export::{ExportReport, export};
pub use finding::{Finding, FindingKind};
pub use format::record::check_name;
pub use free::{AllocError, FreeMap};
pub use ingest::{
    FileOutcome, INGEST_STAGES, IngestOptions, IngestReport, PictureRate, RecordingEnd,
    RecordingEvent, RecordingHost, RecordingInput, RecordingOptions, RecordingReport,
    SeriesOptions, SeriesReport, SubtitleFile, ingest, record, record_series,
};
pub use library_plan::{
    LibraryGoal, LibraryPlan, LibraryStep, LibraryStore, LibraryTitle, TitleLeft,
};
pub use nearest::nearest;
pub use open_store::Store;
pub use owner::{
    RateReservations, ReserveError, ReservedRate, ReservedReadError, ReservedReader, SoleOwner,
    StoreAccess, TitleLeave, TitleOwner,
};
pub use reader::{BorrowedReader, TitleReader, VerifiedBytes};
pub use rebuild::{GivenUp, Rebuild, RebuildReport};
pub use record::{
    Content, FormatOptions, MissedChange, RunningRecording, ScrubPosition, ScrubResult, ScrubState,
    Sibling, StoreIdentity, StoreInfo, TitleId, TitlePage, TitleRecord, TitleSelection,
    TrackRecord,
};
pub use recording_file::{RecordingFile, RecordingLook};
pub use recording_load::RecordingLoad;
pub use recording_reader::{RecordingReader, RecordingSnapshot, time_of_look};
pub use repair::{NotCopied, RepairReport, repair};
pub use scrub::ScrubStep;
pub use siblings::{CatchUpStep, catch_up, keep_siblings, missed_by};
pub use space::{Growth, TrackSpace};
pub use trim::TrimReport;
pub use writer::{TitleRecorder, TitleWriter};
