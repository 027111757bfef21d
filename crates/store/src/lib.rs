//! Media on a raw disk or in one preallocated file: format, allocation, catalogue, ingest, export,
//! check.
//!
//! Devices only through `device::BlockDevice`. It schedules nothing: whoever serves computes from
//! [`Store::runs`] where to read, and writers ask a [`Pace`] before each piece of disk work.

#![warn(missing_docs)]

mod catalogue;
mod check;
mod error;
mod export;
mod format;
mod free;
mod ingest;
mod log;
mod open;
mod pace;
mod reader;
mod rebuild;
mod record;
mod runs;
mod store;
mod writer;

pub use check::{CheckOptions, CheckReport, Finding, FindingKind};
pub use error::StoreError;
pub use export::{ExportReport, export};
pub use ingest::{FileOutcome, IngestOptions, IngestReport, ingest, ingest_file};
pub use pace::{FreePace, Pace, PaceGuard, Progress};
pub use reader::TitleReader;
pub use rebuild::RebuildReport;
pub use record::{
    Content, FormatOptions, StoreIdentity, StoreInfo, TitleId, TitleRecord, TrackRecord,
};
pub use store::Store;
pub use writer::TitleWriter;
