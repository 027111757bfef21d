//! The log of a measurement: one record for each operation, in a Parquet file that DuckDB, pandas
//! and [`read`] understand.
//!
//! ```text
//!   measuring thread             writing thread
//!   Sink::keep ─▶ block of 16 Ki ─▶ bounded channel ─▶ Parquet, a row group a block ─▶ footer
//!                records           (Ring::blocks)                                    at the end
//! ```
//!
//! [`Record`] is the schema; its head says what each column means. [`LogSink`] takes records in
//! memory and never touches a file; a record that finds no room is counted and named, never
//! forgotten ([`Written::lost`]). [`recount`] says from the records alone what was late: the same
//! verdict once more, by nothing of what gave the first.
//!
//! It measures nothing and uses neither a clock nor a target.

mod background_writer;
mod columns;
mod outcome_from_log;
mod read;
mod recount;
mod schema;
mod write;

pub use background_writer::{BackgroundWriter, LogSink, WhenFull, Written, background_writer};
pub use outcome_from_log::OutcomeFromLog;
pub use read::{LogReader, read};
pub use recount::{Recount, recount};
pub use write::LogWriter;

use device::DeviceError;

/// An operation, or one that was to be and was not.
///
/// Times are nanoseconds from the start of the run, on one clock that only goes forward. Where
/// there is none (`Option` in the file: null) it is [`NONE`].
///
/// A frame that was due and never asked for has a record without `start`; what was asked for and
/// had not come when the run was over has one without `end`. So the records of a run are all the
/// frames that were judged: it is late where `errno` is not 0, `end` is missing, or
/// `end > deadline`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// Which stream or client, from 0.
    pub stream: u32,
    /// Which of the target's files, from 0.
    pub file: u32,
    /// Which of the stream's frames or transfers, from 0.
    pub frame: u64,
    /// Which block of the transfer, from 0; 0 in streams.
    pub block: u32,
    /// Bytes asked for.
    pub bytes: u32,
    /// Where in the file.
    pub offset: u64,
    /// When it was to be asked for, however late all before it was. Without a schedule: `start`.
    pub intended: u64,
    /// When it was asked for.
    pub start: u64,
    /// When the first byte arrived, where the port can tell.
    pub first: u64,
    /// When all of it was there, or was written, or it failed.
    pub end: u64,
    /// By when it had to be there; none where nothing is ever late.
    pub deadline: u64,
    /// The part of the time between blocks spent opening the file, in nanoseconds.
    pub open: u64,
    /// The part of the time between blocks spent closing the file, in nanoseconds.
    pub close: u64,
    /// How late the meter itself was: with asking (its own and inherited) and with noticing.
    pub meter: u64,
    /// What the system said: 0, or its number for the error ([`NO_ERRNO`] where it named none).
    pub errno: i32,
    /// Read or write.
    pub kind: OperationKind,
    /// At a random place, rather than after the one before.
    pub random: bool,
}

/// What an operation did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum OperationKind {
    /// From the storage.
    #[default]
    Read,
    /// To the storage.
    Write,
}

/// In a [`Record`]: there is no such time.
pub const NONE: u64 = u64::MAX;

/// In a [`Record`]: it failed, and the system gave no number.
pub const NO_ERRNO: i32 = -1;

/// The name of the file in a run's directory.
pub const FILE: &str = "operations.parquet";

/// The version of the columns, in the file's metadata under `tenuto.schema`.
pub const VERSION: u32 = 1;

/// Where records go.
pub trait RecordSink {
    /// One more.
    fn keep(&mut self, record: &Record);
}

/// All in memory: for tests, and for short runs.
impl RecordSink for Vec<Record> {
    fn keep(&mut self, record: &Record) {
        self.push(*record);
    }
}

/// A log that cannot be written or read.
#[derive(Debug, thiserror::Error)]
#[error("{}: {reason}", path.display())]
pub struct LogError {
    /// Which file.
    pub path: std::path::PathBuf,
    /// Why, and what to do about it.
    pub reason: String,
}

/// The outcome of an operation in a record.
pub(crate) fn errno(result: &Result<(), Box<DeviceError>>) -> i32 {
    let Err(error) = result else { return 0 };
    match &**error {
        DeviceError::Io { source, .. } | DeviceError::Open { source, .. } => {
            source.raw_os_error().unwrap_or(NO_ERRNO)
        }
        _ => NO_ERRNO,
    }
}

impl Record {
    /// Whether it was late, or failed, or never came. Where there is no deadline: whether it
    /// failed.
    pub fn is_late(&self) -> bool {
        self.errno != 0 || self.end == NONE || self.end > self.deadline
    }

    /// Whether it came, and was late by no more than the meter itself was.
    pub fn is_late_by_meter(&self) -> bool {
        let came = self.errno == 0 && self.end != NONE;
        came && self.is_late() && self.end - self.deadline <= self.meter
    }
}

impl Default for Record {
    fn default() -> Self {
        Self {
            stream: 0,
            file: 0,
            frame: 0,
            block: 0,
            bytes: 0,
            offset: 0,
            intended: 0,
            start: NONE,
            first: NONE,
            end: NONE,
            deadline: NONE,
            open: 0,
            close: 0,
            meter: 0,
            errno: 0,
            kind: OperationKind::Read,
            random: false,
        }
    }
}

impl OperationKind {
    /// As the file has it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
        }
    }
}

#[cfg(test)]
mod tests;
