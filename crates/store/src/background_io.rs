//! The interface through which best-effort work (ingest, export, check) gets permission to use the
//! disk, and reports its progress.
//!
//! The store schedules nothing: a server passes a [`BackgroundIo`] that waits for a slot with room.

use std::any::Any;
use std::fmt;
use units::ByteCount;

/// Grants best-effort work permission for each of its reads and writes.
pub trait BackgroundIo: Sync {
    /// Blocks until `bytes` may be transferred. The caller drops the permit after the transfer.
    fn acquire(&self, bytes: ByteCount) -> Permit;
}

/// Permission for one transfer of best-effort work, held while the disk performs it.
#[must_use = "dropping it ends the permission"]
pub struct Permit {
    _held: Option<Box<dyn Any>>,
}

impl Permit {
    /// A permit of a source without a limit.
    pub fn unlimited() -> Self {
        Self { _held: None }
    }

    /// A permit that drops `token` when the work is done.
    pub fn holding(token: impl Any) -> Self {
        Self { _held: Some(Box::new(token)) }
    }
}

impl fmt::Debug for Permit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Permit")
    }
}

/// Grants all requests immediately: for a store that no server has open.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unthrottled;

impl BackgroundIo for Unthrottled {
    fn acquire(&self, _bytes: ByteCount) -> Permit {
        Permit::unlimited()
    }
}

/// Progress of a long piece of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobProgress {
    /// The current phase: `probing`, `copying`, `sealing`, `exporting`, `checking`, ...
    pub stage: &'static str,
    /// Bytes done.
    pub done: u64,
    /// The total of bytes, where it is known.
    pub total: Option<u64>,
}
