//! What came of a run of streams.

use super::{Heat, Times};
use std::time::Duration;
use units::{BitRate, ByteCount};

/// The result of a run of paced streams.
#[derive(Clone, Debug, Default)]
pub struct StreamsOutcome {
    /// Frames that were due and are known to be late or not.
    pub frames: u64,
    /// Frames that were not in memory by their deadline, whatever the cause.
    pub late: u64,
    /// Late frames that would have been in time without the meter's own delay.
    pub late_by_meter: u64,
    /// Late frames whose operation failed.
    pub failed: u64,
    /// The first error of a failed operation, in words.
    pub first_failure: Option<String>,
    /// Late frames that had not arrived at the end of the run.
    pub never: u64,
    /// Operations that the storage kept for good: it hung when the run was over, and went on to.
    /// Whoever left the target says so.
    pub stuck: u32,
    /// With players: segments in a lower rendition than the best on offer, late or not.
    pub below_best: u64,
    /// Frame numbers: the frames of this number of all streams are a round.
    pub rounds: u64,
    /// Rounds in which some frame was late, and not by the meter; or below the best.
    pub late_rounds: u64,
    /// The longest response of any frame in each round; the time waited for a frame that never
    /// arrived.
    pub round_times: Vec<Duration>,
    /// Responses by second of their end.
    pub heat: Heat,
    /// The reads that came.
    pub reads: Moved,
    /// The writes that were done.
    pub writes: Moved,
    /// From intended start to end of all that came.
    pub response: Times,
    /// From when an operation could be asked for until the meter did.
    pub issue: Times,
    /// Each, in order.
    pub streams: Vec<StreamStats>,
    /// What happened in each, from the start on.
    pub seconds: Vec<Second>,
    /// From the start of the run to its end.
    pub took: Duration,
    /// False where it was stopped.
    pub complete: bool,
    /// How it was done.
    pub method: String,
}

/// What a stream saw.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamStats {
    /// As in [`StreamsOutcome`].
    pub frames: u64,
    /// As in [`StreamsOutcome`].
    pub late: u64,
    /// The longest time in which the frame to be shown was not there.
    pub longest_outage: Duration,
    /// Aggregate drift factor: the sum of the times by which frames were late. An early frame
    /// waits in the buffer and is not early for the viewer.
    pub aggregate_drift: Duration,
    /// Consecutive drift factor: the largest such sum over frames late one after another.
    pub consecutive_drift: Duration,
}

/// A second of a run, by when frames were due (their deadline).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Second {
    /// Frames due in it.
    pub frames: u64,
    /// Late frames of the stream.
    pub late: u64,
    /// Late frames of the stream that would have been in time without the meter's own delay.
    pub late_by_meter: u64,
    /// The most that the meter itself was late with any.
    pub longest_own: Duration,
    /// The longest response time of any; of one that never came so long as it was waited for.
    pub longest_response: Duration,
    /// What came in it, whenever it was due.
    pub bytes_read: ByteCount,
    /// What was written in it, whenever it was due.
    pub bytes_written: ByteCount,
    /// How long the meter watched the clock in it, rather than slept or worked.
    pub spun: Duration,
}

/// What was moved in one direction.
#[derive(Clone, Debug, Default)]
pub struct Moved {
    /// How often.
    pub operations: u64,
    /// How much.
    pub bytes: ByteCount,
    /// From start to end of each.
    pub service: Times,
}

impl StreamsOutcome {
    /// Misses that are the meter's own are at most one in a thousand frames.
    pub fn valid(&self) -> bool {
        self.late_by_meter * 1000 <= self.frames
    }

    /// Late frames that are the storage's.
    pub fn late_by_storage(&self) -> u64 {
        self.late - self.late_by_meter
    }

    /// Frames for which the storage did not hold: late, or below the best.
    pub fn missed(&self) -> u64 {
        self.late_by_storage() + self.below_best
    }

    /// What was read and written.
    pub fn bytes(&self) -> ByteCount {
        self.reads.bytes + self.writes.bytes
    }

    /// The mean rate delivered.
    pub fn rate(&self) -> BitRate {
        BitRate::of(self.bytes(), self.took)
    }

    /// From start to end of all that came.
    pub fn service(&self) -> Times {
        let mut all = self.reads.service.clone();
        all.add(&self.writes.service);
        all
    }

    /// How long the meter watched the clock, rather than slept or worked.
    pub fn spun(&self) -> Duration {
        self.seconds.iter().map(|second| second.spun).sum()
    }

    /// The longest outage of any stream.
    pub fn longest_outage(&self) -> Duration {
        self.streams.iter().map(|stream| stream.longest_outage).max().unwrap_or_default()
    }
}
