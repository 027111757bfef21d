//! How best-effort work (ingest, export, check) gets permission to use the disk, and reports its
//! progress.
//!
//! The store schedules nothing: a server passes a [`BackgroundIo`] that waits for a slot with room.

use std::any::Any;
use std::fmt;
use units::ByteCount;

/// Grants best-effort work permission for each of its reads and writes.
pub trait BackgroundIo: Sync {
    /// Blocks until `bytes` may be moved. The caller drops the permit when they have been.
    fn acquire(&self, bytes: ByteCount) -> Permit;
}

/// Permission for one piece of best-effort work, held while the disk does it.
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

/// Grants everything at once: for a store that no server has open.
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
    /// What is being done: `probing`, `copying`, `sealing`, `exporting`, `checking`, ...
    pub stage: &'static str,
    /// Bytes done.
    pub done: u64,
    /// Bytes in all, where that is known.
    pub total: Option<u64>,
}
