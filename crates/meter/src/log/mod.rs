//! The log of a measurement: one record for each operation, in a Parquet file that DuckDB, pandas
//! and [`read`] understand.
//!
//! ```text
//!   measuring thread             writing thread
//!   Sink::keep ─▶ block of 16 Ki ─▶ bounded channel ─▶ Parquet, a row group a block ─▶ footer
//!                records           (Ring::blocks)                                    at the end
//! ```
//!
//! [`Record`] is the schema; its documentation describes each column. [`LogSink`] keeps records in
//! memory and never touches a file; a record that finds no room is counted and reported, never
//! forgotten ([`Written::lost`]). [`recount`] computes from the records alone which were late: a
//! second verdict that shares no code with the first.
//!
//! The module measures nothing and uses neither a clock nor a target.

mod background_writer;
mod columns;
mod outcome_from_log;
mod read;
mod recount;
mod schema;
mod write;

pub(crate) use background_writer::{BackgroundWriter, Written};
pub use background_writer::{LogSink, WhenFull, background_writer};
pub(crate) use outcome_from_log::OutcomeFromLog;
pub(crate) use read::LogReader;
pub use read::read;
pub(crate) use recount::Recount;
pub use recount::recount;
pub(crate) use write::LogWriter;

use device::DeviceError;

/// One operation, or one that was due and never started.
///
/// Times are nanoseconds from the start of the run, on one monotonic clock. A missing time
/// (`Option` in the file: null) is [`NONE`].
///
/// A frame that was due and never requested has a record without `start`; an operation that was not
/// complete at the end of the run has one without `end`. So the records of a run are all the frames
/// that were judged: a frame is late where `errno` is not 0, `end` is missing, or `end > deadline`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// The index of the stream or client.
    pub stream: u32,
    /// The index of the target's file.
    pub file: u32,
    /// The index of the stream's frame or transfer.
    pub frame: u64,
    /// The index of the transfer's block; 0 in streams.
    pub block: u32,
    /// The length in bytes.
    pub bytes: u32,
    /// The offset in the file.
    pub offset: u64,
    /// The time at which the schedule starts it, however late earlier operations were. Without a
    /// schedule: `start`.
    pub intended: u64,
    /// The time at which it was started.
    pub start: u64,
    /// When the first byte arrived, where the port can tell.
    pub first: u64,
    /// The time at which it completed or failed.
    pub end: u64,
    /// The latest time at which it may complete; none where there is no deadline.
    pub deadline: u64,
    /// The part of the time between blocks spent opening the file, in nanoseconds.
    pub open: u64,
    /// The part of the time between blocks spent closing the file, in nanoseconds.
    pub close: u64,
    /// The meter's own lateness: in starting (its own and inherited) and in noticing completion. Of
    /// an operation that never completed: if that explains that it was late, otherwise 0.
    pub meter: u64,
    /// The operating system's error number, 0 for none ([`NO_ERRNO`] where it named none).
    pub errno: i32,
    /// Read or write.
    pub kind: OperationKind,
    /// Whether the position is random, rather than after the operation before.
    pub random: bool,
}

/// The direction of an operation.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    serde::Serialize,
    serde::Deserialize,
)]
pub enum OperationKind {
    /// From the storage.
    #[default]
    Read,
    /// To the storage.
    Write,
}

/// The value of a missing time in a [`Record`].
pub(crate) const NONE: u64 = u64::MAX;

/// The value of `errno` in a [`Record`] that failed without an error number.
pub(crate) const NO_ERRNO: i32 = -1;

/// The name of the file in a run's directory.
pub(crate) const FILE: &str = "operations.parquet";

/// The version of the columns, in the file's metadata under `tenuto.schema`.
pub(crate) const VERSION: u32 = 1;

/// A consumer of records.
pub trait RecordSink {
    /// Takes one record.
    fn keep(&mut self, record: &Record);
}

/// Keeps all records in memory: for tests and for short runs.
impl RecordSink for Vec<Record> {
    fn keep(&mut self, record: &Record) {
        self.push(*record);
    }
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
    /// Whether it completed late, failed, or never completed. Without a deadline: whether it
    /// failed.
    pub fn is_late(&self) -> bool {
        self.errno != 0 || self.end == NONE || self.end > self.deadline
    }

    /// Whether it was late by no more than the meter's own lateness.
    pub fn is_late_by_meter(&self) -> bool {
        let explained = self.end == NONE && self.meter > 0;
        let came = self.end != NONE && self.end > self.deadline;
        self.errno == 0 && (explained || came && self.end - self.deadline <= self.meter)
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
    /// The word in the file.
    pub fn word(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
        }
    }
}

#[cfg(test)]
mod tests;
