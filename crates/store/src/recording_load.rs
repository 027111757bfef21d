//! What a recording of a given rate asks of its disk.

use crate::format::BLOCK;
use std::time::Duration;
use units::{BitRate, ByteCount};

/// The writes of a recording, which come again every [`RecordingLoad::PERIOD`].
///
/// ```text
///   blocks    a place a track   what has come since the last commit; one sweep for all recordings
///   commit    3 places          flush, journal entry, flush; once for all recordings
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

    /// The places and bytes of what recordings that commit together write once.
    pub const COMMIT: (u32, ByteCount) = (3, ByteCount(BLOCK * 8));

    /// The places and bytes of the blocks that a commit writes.
    pub fn blocks(self) -> (u32, ByteCount) {
        let bytes = self.rate.bytes_in(Self::PERIOD).0;
        // Each track is cut at another block.
        (self.tracks.max(1), ByteCount(bytes + u64::from(self.tracks) * BLOCK))
    }

    /// The bytes that wait for a commit at most; with more, their blocks are written before it.
    /// More than two rounds wait only where more comes than the rate.
    pub(crate) fn most_waiting(self) -> ByteCount {
        ByteCount(self.blocks().1.0.saturating_mul(2))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recording_writes_what_came_in_a_period() {
        let blocks = |bits, tracks| {
            let (places, bytes) = RecordingLoad { rate: BitRate(bits), tracks }.blocks();
            (places, bytes.0)
        };
        // 0.4 s of 8 Mb/s are 400 kB.
        assert_eq!(blocks(8_000_000, 2), (2, 408_192));
        assert_eq!(blocks(75_000_000, 1), (1, 3_754_096));
        assert_eq!(blocks(0, 0), (1, 0));
    }
}
