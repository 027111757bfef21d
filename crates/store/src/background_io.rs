//! The interface through which work beside the viewers (ingest, recording, export, check) gets
//! permission to use the disk, and reports its progress.
//!
//! The store schedules nothing: a server passes a [`BackgroundIo`] that waits for a slot with room.

use crate::RecordingLoad;
use std::any::Any;
use std::fmt;
use units::{ByteCount, Reason};

/// Grants work beside the viewers permission for each of its reads and writes.
pub trait BackgroundIo: Sync {
    /// Blocks until `bytes` may be transferred. The caller drops the permit after the transfer.
    fn acquire(&self, bytes: ByteCount) -> Permit;

    /// [`BackgroundIo::acquire`] for several writes that are made one after the other, to so many
    /// places and of so many bytes in all. A flush counts as a place.
    fn acquire_writes(&self, places: u32, bytes: ByteCount) -> Permit {
        let _ = places;
        self.acquire(bytes)
    }

    /// The places of a permit for several writes, at most. More are written in turns, with a permit
    /// for each: work that is too large for the time between others' reads would wait for ever.
    fn most_places(&self) -> u32 {
        u32::MAX
    }

    /// The bytes of a track that a new title collects before it writes them; a multiple of a
    /// mebibyte.
    fn buffer_size(&self) -> ByteCount {
        ByteCount::MIB
    }

    /// The bytes of the next write of a new title, at most. May block until it is its turn.
    fn most_at_once(&self) -> ByteCount {
        ByteCount::MIB
    }

    /// Keeps time of the disk for the writes of a recording, for which permits are acquired from
    /// now on; where nothing else uses the disk there is nothing to do.
    ///
    /// # Errors
    /// What is short, and what would fit.
    fn keep_time(&self, load: RecordingLoad) -> Result<(), Reason> {
        let _ = load;
        Ok(())
    }
}

/// Permission for one transfer, held while the disk performs it.
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
