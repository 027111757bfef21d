//! What a recording of a given rate asks of its disk.

use crate::format::BLOCK;
use crate::writer::{COMMIT_INTERVAL, WRITE};
use units::{BitRate, ByteCount};

/// The writes of a recording, which come again every [`RecordingLoad::PERIOD`].
///
/// ```text
///   full buffers     1 place each     1 MiB of one track
///   commit           a place a track  whole blocks of what has come since
///                    3 places         flush, journal entry, flush
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordingLoad {
    /// The highest rate of all tracks together.
    pub rate: BitRate,
    /// The number of tracks.
    pub tracks: u32,
}

impl RecordingLoad {
    /// The time from one commit to the next.
    pub const PERIOD: std::time::Duration = COMMIT_INTERVAL;

    /// The writes of one period, as places and bytes.
    pub fn writes(self) -> Vec<(u32, ByteCount)> {
        let bytes = self.rate.bytes_in(Self::PERIOD).0;
        let (full, rest) = (bytes / WRITE as u64, bytes % WRITE as u64);
        // Each track is cut at another block.
        let blocks = rest + u64::from(self.tracks) * BLOCK;
        let commits = [(self.tracks.max(1), ByteCount(blocks)), COMMIT];
        let full = usize::try_from(full).unwrap_or(usize::MAX);
        std::iter::repeat_n((1, ByteCount(WRITE as u64)), full).chain(commits).collect()
    }
}

/// A flush of the data, an entry of the journal, and its flush.
pub(crate) const COMMIT: (u32, ByteCount) = (3, ByteCount(BLOCK * 8));

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recording_writes_full_buffers_what_is_left_at_a_commit_and_the_commit() {
        let load = |bits, tracks| RecordingLoad { rate: BitRate(bits), tracks }.writes();
        // 0.3 s of 8 Mb/s are 300 kB, of 100 Mb/s three buffers and some more.
        assert_eq!(load(8_000_000, 2), [(2, ByteCount(308_192)), COMMIT]);
        let full = (1, ByteCount::MIB);
        assert_eq!(load(100_000_000, 1), [full, full, full, (1, ByteCount(608_368)), COMMIT]);
        assert_eq!(load(0, 0), [(1, ByteCount(0)), COMMIT]);
    }
}
