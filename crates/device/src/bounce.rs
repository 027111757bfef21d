//! Aligned memory between a direct file and a caller whose memory lies anywhere.
//!
//! Costs a copy; the schedule's reads never come here (their buffers are aligned).

use crate::DeviceError;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

/// A few aligned pieces of memory, kept for the next caller.
#[derive(Debug, Default)]
pub(crate) struct Bounce {
    idle: Mutex<Vec<Vec<u8>>>,
}

impl Bounce {
    /// Enough for every disk's direct memory access.
    pub(crate) const ALIGNMENT: usize = 4096;

    /// Calls `transfer` for consecutive pieces of `length` bytes, with aligned memory of each
    /// piece's size, until one fails.
    pub(crate) fn pieces(
        &self,
        length: usize,
        mut transfer: impl FnMut(Range<usize>, &mut [u8]) -> Result<(), DeviceError>,
    ) -> Result<(), DeviceError> {
        let mut memory = self.idle().pop().unwrap_or_else(|| vec![0; PIECE + Self::ALIGNMENT]);
        let skip = memory.as_ptr().align_offset(Self::ALIGNMENT);
        let aligned = &mut memory[skip..skip + PIECE];
        let mut start = 0;
        let mut result = Ok(());
        while start < length && result.is_ok() {
            let end = length.min(start + PIECE);
            result = transfer(start..end, &mut aligned[..end - start]);
            start = end;
        }
        let mut idle = self.idle();
        if idle.len() < MOST_IDLE {
            idle.push(memory);
        }
        result
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<Vec<u8>>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Large enough that the disk, not the call, is what takes time.
const PIECE: usize = 1 << 20;

/// Memory kept: this many pieces. More callers at once than that are rare, and only allocate.
const MOST_IDLE: usize = 4;
