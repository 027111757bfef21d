//! How best-effort work (ingest, export, check) asks for its turn at the disk, and says how far
//! it has come.
//!
//! The store schedules nothing: a server hands in a [`Pace`] that waits for a slot with room.

use std::any::Any;
use std::fmt;
use units::ByteCount;

/// Asked before each read or write of best-effort work.
pub trait Pace: Sync {
    /// Returns when `bytes` may be moved; the guard is dropped when they have been.
    fn wait_turn(&self, bytes: ByteCount) -> PaceGuard;
}

/// Held while one piece of best-effort work is at the disk.
#[must_use = "dropping it says that the work is done"]
pub struct PaceGuard {
    _held: Option<Box<dyn Any>>,
}

impl PaceGuard {
    /// A guard that nobody waits for.
    pub fn free() -> Self {
        Self { _held: None }
    }

    /// A guard that drops `token` when the work is done.
    pub fn holding(token: impl Any) -> Self {
        Self { _held: Some(Box::new(token)) }
    }
}

impl fmt::Debug for PaceGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PaceGuard")
    }
}

/// Never waits: for a store that nobody serves.
#[derive(Clone, Copy, Debug, Default)]
pub struct FreePace;

impl Pace for FreePace {
    fn wait_turn(&self, _bytes: ByteCount) -> PaceGuard {
        PaceGuard::free()
    }
}

/// How far a long piece of work has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// What is being done: `probing`, `copying`, `sealing`, `exporting`, `checking`, ...
    pub stage: &'static str,
    /// Bytes done.
    pub done: u64,
    /// Bytes in all, where that is known.
    pub total: Option<u64>,
}
