//! What a recording of a given rate asks of its disk.

use crate::format::BLOCK;
use std::time::Duration;
use units::{BitRate, ByteCount};

/// The writes of a recording, which come again every [`RecordingLoad::PERIOD`].
///
/// ```text
///   full buffers   1 place each      1 MiB of one track
///   a commit       a place a track   whole blocks of what has come since the last
///                  3 places          flush, journal entry, flush: once for all recordings
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordingLoad {
    /// The highest rate of all tracks together.
    pub rate: BitRate,
    /// The number of tracks.
    pub tracks: u32,
}

impl RecordingLoad {
    /// The time from one commit to the next. With the length of a fragment, and the time that a
    /// commit takes, it is the most that a power cut takes of what had arrived.
    pub const PERIOD: Duration = Duration::from_millis(400);

    /// The bytes of a track that are written when they are together, before a commit.
    pub const BUFFER: ByteCount = ByteCount::MIB;

    /// The places and bytes of what recordings that commit together write once.
    pub const COMMIT: (u32, ByteCount) = (3, ByteCount(BLOCK * 8));

    /// The full buffers of one period.
    pub fn full_buffers(self) -> usize {
        let full = self.rate.bytes_in(Self::PERIOD).0 / Self::BUFFER.0;
        usize::try_from(full).unwrap_or(usize::MAX)
    }

    /// The places and bytes of the blocks that a commit writes.
    pub fn blocks(self) -> (u32, ByteCount) {
        let rest = self.rate.bytes_in(Self::PERIOD).0 % Self::BUFFER.0;
        // Each track is cut at another block.
        (self.tracks.max(1), ByteCount(rest + u64::from(self.tracks) * BLOCK))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recording_writes_full_buffers_and_what_is_left_at_a_commit() {
        let load = |bits, tracks| {
            let load = RecordingLoad { rate: BitRate(bits), tracks };
            (load.full_buffers(), load.blocks().0, load.blocks().1.0)
        };
        // 0.4 s of 8 Mb/s are 400 kB, of 75 Mb/s three buffers and some more.
        assert_eq!(load(8_000_000, 2), (0, 2, 408_192));
        assert_eq!(load(75_000_000, 1), (3, 1, 608_368));
        assert_eq!(load(0, 0), (0, 1, 0));
    }
}
