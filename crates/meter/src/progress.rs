//! The progress of a run of streams or transfers, on this host and on others.

use serde::{Deserialize, Serialize};
use std::time::Duration;
use units::{ByteCount, show};

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
    /// Adds the progress of other streams of the same run. The numbers of the rounds are not known,
    /// so that a round may be counted twice: never are too many streams taken for held.
    #[must_use]
    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            elapsed: self.elapsed.max(other.elapsed),
            judged: self.judged + other.judged,
            late: self.late + other.late,
            late_rounds: self.late_rounds + other.late_rounds,
            bytes: self.bytes + other.bytes,
        }
    }

    /// The line that shows how far a run of streams is, which lasts for `duration`.
    pub(crate) fn status(&self, duration: Duration) -> String {
        let (elapsed, all) = (self.elapsed.as_secs_f64(), duration.as_secs_f64());
        let (elapsed, all) = (show::length(elapsed), show::length(all));
        let (judged, frames) = (show::thousands(self.judged), show::plural(&self.judged, "frame"));
        format!("{elapsed} of {all}: {judged} {frames}, {} late", self.late)
    }
}
