//! The progress of a run of streams or transfers, on this host and on others.

use serde::{Deserialize, Serialize};
use std::time::Duration;
use units::ByteCount;

/// The progress of a run, for the decision whether to continue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunProgress {
    /// Time since the start of the run.
    pub elapsed: Duration,
    /// Frames whose verdict is known, or completed transfers.
    pub judged: u64,
    /// Frames that were late, not counting those that the meter delayed.
    pub late: u64,
    /// Frame numbers with at least one late frame, not counting those that the meter delayed.
    pub late_rounds: u64,
    /// Bytes of transfers, read and written.
    pub bytes: ByteCount,
}

impl RunProgress {
    /// Adds the progress of other streams of the same run.
    pub(crate) fn add(&mut self, other: &Self) {
        self.elapsed = self.elapsed.max(other.elapsed);
        self.judged += other.judged;
        self.late += other.late;
        self.late_rounds += other.late_rounds;
        self.bytes += other.bytes;
    }
}
