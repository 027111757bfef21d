//! Aligned memory between a direct file and a caller whose memory is not aligned.
//!
//! It costs a copy; scheduled reads do not use it, because their buffers are aligned.

use crate::DeviceError;
use std::ops::Range;
use std::sync::Mutex;
use units::locked;

/// A few aligned pieces of memory, kept for reuse.
#[derive(Debug, Default)]
pub(crate) struct Bounce {
    idle: Mutex<Vec<Vec<u8>>>,
}

impl Bounce {
    /// The alignment that suffices for every disk's direct memory access.
    pub(crate) const ALIGNMENT: usize = 4096;

    /// Calls `transfer` for consecutive pieces of `length` bytes, with aligned memory of each
    /// piece's size, until one fails.
    pub(crate) fn pieces(
        &self,
        length: usize,
        mut transfer: impl FnMut(Range<usize>, &mut [u8]) -> Result<(), DeviceError>,
    ) -> Result<(), DeviceError> {
        // The lock ends here: several callers transfer at once, each in its own memory.
        let mut memory =
            locked(&self.idle).pop().unwrap_or_else(|| vec![0; PIECE + Self::ALIGNMENT]);
        let skip = memory.as_ptr().align_offset(Self::ALIGNMENT);
        let aligned = &mut memory[skip..skip + PIECE];
        let mut start = 0;
        let mut result = Ok(());
        while start < length && result.is_ok() {
            let end = length.min(start + PIECE);
            result = transfer(start..end, &mut aligned[..end - start]);
            start = end;
        }
        let mut idle = locked(&self.idle);
        if idle.len() < MOST_IDLE {
            idle.push(memory);
        }
        result
    }
}

/// The size of a piece: large enough that the disk and not the call takes the time.
const PIECE: usize = 1 << 20;

/// The number of pieces that are kept. More callers at a time are rare, and only allocate.
const MOST_IDLE: usize = 4;
