//! Discards the free chunks of a store, as `fstrim` does for a file system: a disk need not keep
//! what was in them, and a thin volume or the file system of the store's file gets the space back.
//!
//! ```text
//!   permit ──▶ a free piece is taken ──▶ discarded ──▶ free again ──▶ the next one
//! ```
//!
//! A chunk is free only after its title's removal is durable and its last reader has gone. A piece
//! is taken while it is discarded, so that no writer gets it meanwhile.

use crate::{BackgroundIo, JobProgress, Store, StoreError};
use device::DeviceKind;
use std::sync::atomic::{AtomicBool, Ordering};
use units::{ByteCount, ChunkIndex};

/// The result of a trim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrimReport {
    /// Bytes that were discarded.
    pub bytes: ByteCount,
    /// Whether the store is a file that has no longer all of its space: writes may fill the file
    /// system.
    pub sparse: bool,
}

impl Store {
    /// Discards all free chunks, piece by piece, and asks `io` for a permit before each.
    ///
    /// # Errors
    /// [`StoreError::NoDiscard`] where the device cannot; [`StoreError::Cancelled`]: what was
    /// discarded before stays so.
    pub fn trim(
        &self,
        io: &dyn BackgroundIo,
        progress: &mut dyn FnMut(JobProgress),
        cancel: &AtomicBool,
    ) -> Result<TrimReport, StoreError> {
        let chunk = self.layout().chunk;
        let most = (PIECE / chunk).max(1);
        let total = Some(self.info().free_chunks * chunk);
        let (mut at, mut bytes) = (ChunkIndex(0), 0);
        loop {
            if cancel.load(Ordering::Relaxed) {
                return Err(StoreError::Cancelled);
            }
            self.refuse_if_stopped()?;
            // Waited for before a piece is taken: a writer must not find the store fuller for long.
            let permit = io.acquire(ByteCount(most * chunk));
            let Some(piece) = self.state_mut().free.take_next(at, most) else { break };
            let area = piece.start.0 * chunk..piece.end().0 * chunk;
            let length = area.end - area.start;
            let discarded = self.device().discard(area);
            self.state_mut().free.give(piece);
            drop(permit);
            if !discarded? {
                return Err(StoreError::NoDiscard);
            }
            at = piece.end();
            bytes += length;
            progress(JobProgress { stage: "trimming", done: bytes, total });
        }
        if bytes > 0 && self.device().geometry().kind == DeviceKind::File {
            self.is_now_sparse();
        }
        Ok(TrimReport { bytes: ByteCount(bytes), sparse: self.info().sparse })
    }
}

/// Bytes that are discarded at a time, if a chunk is not larger: a disk that discards does nothing
/// else.
const PIECE: u64 = 16 << 20;
