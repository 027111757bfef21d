//! Traces of programs, and the profile that makes the same demand.
//!
//! ```text
//!   fio iolog (v2, v3) ─┐
//!   strace              │               ┌ kind       ┐
//!   blkparse, blktrace  ├─▶ Operations ─┤ sequential ├─ counted ─▶ profiles::Drawn ─▶ TOML
//!   tshark of NFS       │               │ size       │
//!   sar (rates only)  ──┘               └ rate       ┘
//! ```
//!
//! [`read`] recognises the format from the content. An operation is sequential if it begins where
//! one of the last 16 of its kind in its file ended, so that several players in one file count as
//! sequential each. A line that belongs to the format and is invalid ends the parsing with its
//! number: half a trace is not a profile.
//!
//! The module parses the bytes that it is given and opens no file.

mod blkparse;
mod blktrace;
mod fio;
mod sar;
mod shape;
mod strace;
mod tshark;

pub(crate) use shape::{profile, shape};

use std::collections::BTreeMap;
use std::time::Duration;
use units::Hinted;

/// The content of a trace.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Trace {
    /// The format: `strace`.
    pub format: &'static str,
    /// The operations in order of time.
    pub operations: Vec<Operation>,
    /// Mean rates, for a format that has no single operations.
    pub rates: Option<DeviceRates>,
}

/// A read or a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Operation {
    /// The time from a fixed moment; `None` if the trace has no times.
    pub at: Option<Duration>,
    /// The index of the file or device.
    pub file: u32,
    /// The offset in the file or device.
    pub offset: u64,
    /// The number of bytes read or written.
    pub bytes: u64,
    /// Whether it is a write.
    pub write: bool,
}

/// The figures that `sar` reports of a device, averaged over its lines.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct DeviceRates {
    /// Reads and writes per second.
    pub operations: f64,
    /// Bytes read per second.
    pub bytes_read: f64,
    /// Bytes written per second.
    pub bytes_written: f64,
}

/// A trace from which no profile can be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TraceError {
    /// The format is unknown.
    #[error("not a trace of fio (write_iolog), strace, blkparse, blktrace, sar -d or tshark")]
    Unknown,
    /// A line is invalid.
    #[error("line {line} is no line of {format}: {why}")]
    Line {
        /// The line number, from 1.
        line: usize,
        /// The trace format.
        format: &'static str,
        /// The expected content.
        why: &'static str,
    },
    /// A binary trace is invalid.
    #[error("at byte {at}: {why}")]
    Byte {
        /// The offset, from 0.
        at: usize,
        /// The expected content.
        why: &'static str,
    },
    /// The trace has no operations.
    #[error("no reads or writes of files in it")]
    Nothing(Option<&'static str>),
    /// The trace has several devices, which cannot be separated afterwards.
    #[error("it has several devices that moved bytes: {0}")]
    Several(String),
}

impl Hinted for TraceError {
    fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Unknown => "`tenuto meter profile-from --help` says how each is made",
            Self::Line { .. } | Self::Byte { .. } => "was the trace cut short?",
            Self::Nothing(hint) => (*hint)?,
            Self::Several(_) => "choose one with --only",
        };
        Some(hint.to_owned())
    }
}

/// Parses a trace. With `only`, files or devices whose name does not contain it are left out.
pub(crate) fn read(bytes: &[u8], only: Option<&str>) -> Result<Trace, TraceError> {
    if blktrace::is(bytes) {
        return blktrace::read(bytes).and_then(Trace::sound);
    }
    let text = String::from_utf8_lossy(bytes);
    let formats: [(Is, Read); 5] = [
        (fio::is, fio::read),
        (sar::is, sar::read),
        (strace::is, strace::read),
        (blkparse::is, blkparse::read),
        (tshark::is, tshark::read),
    ];
    let known = formats.into_iter().find(|(is, _)| is(&text));
    let (_, read) = known.ok_or(TraceError::Unknown)?;
    read(&text, only).and_then(Trace::sound)
}

type Is = fn(&str) -> bool;
type Read = fn(&str, Option<&str>) -> Result<Trace, TraceError>;

impl Trace {
    /// Checks that the trace is not empty, and sorts it by time.
    fn sound(mut self) -> Result<Self, TraceError> {
        if self.operations.is_empty() && self.rates.is_none() {
            return Err(TraceError::Nothing(match self.format {
                "strace" => Some("trace openat, too, or use strace -y, so that files are known"),
                "tshark" => Some("it wants the columns that --help names"),
                _ => None,
            }));
        }
        self.operations.sort_by_key(|operation| operation.at);
        Ok(self)
    }
}

/// Numbers for names, in order of appearance.
#[derive(Default)]
struct FileNumbers(BTreeMap<String, u32>);

impl FileNumbers {
    fn number(&mut self, name: &str) -> u32 {
        let next = u32::try_from(self.0.len()).unwrap_or(u32::MAX);
        match self.0.get(name) {
            Some(number) => *number,
            None => *self.0.entry(name.to_owned()).or_insert(next),
        }
    }
}

fn wanted(name: &str, only: Option<&str>) -> bool {
    only.is_none_or(|only| name.contains(only))
}

/// `12.345678` seconds, exactly.
fn seconds(text: &str) -> Option<Duration> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    // More digits than nanoseconds have would be cut without notice.
    if whole.is_empty() || part.len() > 9 || !digits(whole) || !digits(part) {
        return None;
    }
    let nanos: u32 = format!("{part:0<9}").parse().ok()?;
    Some(Duration::new(whole.parse().ok()?, nanos))
}

#[cfg(test)]
mod tests;
