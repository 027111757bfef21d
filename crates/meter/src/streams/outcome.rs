//! The outcome of a run of streams.

use super::{BacklogGrowth, Heat, Times};
use crate::log::OperationKind;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use units::grown;
use units::{BitRate, ByteCount, Reason, add_fields, nanos};

/// The result of a run of paced streams.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct StreamsOutcome {
    /// Frames that were due and judged.
    pub frames: u64,
    /// Frames that were not in memory by their deadline, whatever the cause.
    pub late: u64,
    /// Late frames that would have been in time without the meter's own delay.
    pub late_by_meter: u64,
    /// Late frames whose operation failed.
    pub failed: u64,
    /// The first error of a failed operation, in words.
    pub first_failure: Option<Reason>,
    /// Late frames that had not arrived at the end of the run.
    pub never: u64,
    /// Operations that never completed, because the storage hung to the end and after it. The
    /// caller adds them when it closes the target.
    pub stuck: u32,
    /// With players: segments in a lower rendition than the best on offer, late or not.
    pub below_best: u64,
    /// Rounds: a round is the frames with one number of all streams.
    pub rounds: u64,
    /// Rounds with at least one frame that was late (not by the meter) or below the best rendition.
    pub late_rounds: u64,
    /// The longest response of any frame in each round; the time waited for a frame that never
    /// arrived.
    pub round_times: Vec<Duration>,
    /// The backlog grew until the end of the run; `None` for a run that was stopped before.
    pub backlog_growth: Option<BacklogGrowth>,
    /// Response times by second of their end.
    pub heat: Heat,
    /// The completed reads.
    pub reads: Moved,
    /// The completed writes.
    pub writes: Moved,
    /// Response times, from intended start to end, of completed operations; the time waited for
    /// those that never completed.
    pub response: Times,
    /// The meter's own lateness: from the time at which an operation could be submitted until it
    /// was.
    pub issue: Times,
    /// The statistics of each stream, in order.
    pub streams: Vec<StreamStats>,
    /// The statistics of each second, from the start.
    pub seconds: Vec<Second>,
    /// Time from the start of the run to its end.
    pub took: Duration,
    /// Whether it ran to its end; false where it was stopped.
    pub complete: bool,
    /// The read method.
    pub method: String,
    /// A part of it, which ran on another machine, tells nothing about the storage.
    pub invalid_part: bool,
}

/// The statistics of one stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamStats {
    /// Frames that were judged.
    pub frames: u64,
    /// Late frames, whatever the cause.
    pub late: u64,
    /// The longest time in which the frame to be shown was missing.
    pub longest_outage: Duration,
    /// Accumulated drift factor: the sum of the times by which frames were late. An early frame
    /// waits in the buffer and is not early for the viewer.
    pub accumulated_drift: Duration,
    /// Consecutive drift factor: the largest such sum over consecutive late frames.
    pub consecutive_drift: Duration,
}

/// The statistics of one second of a run; frames belong to the second of their deadline.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Second {
    /// Frames due in this second.
    pub frames: u64,
    /// Late frames.
    pub late: u64,
    /// Late frames that would have been in time without the meter's own delay.
    pub late_by_meter: u64,
    /// The longest lateness of the meter itself with any frame.
    pub longest_own: Duration,
    /// The longest response time of any frame; of one that never arrived, the time that it was
    /// waited for.
    pub longest_response: Duration,
    /// Bytes read in this second, whenever they were due.
    pub bytes_read: ByteCount,
    /// Bytes written in this second, whenever they were due.
    pub bytes_written: ByteCount,
    /// The time in this second in which the meter polled the clock.
    pub spun: Duration,
}

/// The completed operations in one direction.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Moved {
    /// The number of operations.
    pub operations: u64,
    /// The number of bytes.
    pub bytes: ByteCount,
    /// Service times, from start to end of each.
    pub service: Times,
}

/// The verdict on a frame.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FrameVerdict {
    pub(crate) late: bool,
    /// Whether the meter's own lateness explains the miss.
    pub(crate) by_meter: bool,
    /// The meter's own lateness, in nanoseconds.
    pub(crate) own: u64,
    /// The response time in nanoseconds; the time waited, if the frame never arrived; zero if it
    /// failed.
    pub(crate) response: u64,
}

/// An operation that has completed; its times are in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CompletedOperation {
    pub(crate) kind: OperationKind,
    pub(crate) bytes: ByteCount,
    /// The time at the storage.
    pub(crate) service: u64,
    /// The time from when it was due to be issued.
    pub(crate) response: u64,
}

/// Raises `longest` to a time in nanoseconds, if that is longer. Most are not, and comparing
/// nanoseconds takes less time than comparing durations.
#[inline]
fn raise(longest: &mut Duration, time: u64) {
    if time > nanos(*longest) {
        *longest = Duration::from_nanos(time);
    }
}

impl Second {
    /// Bytes read and written in this second.
    pub fn bytes(&self) -> u64 {
        self.bytes_read.0 + self.bytes_written.0
    }

    fn add(&mut self, other: &Self) {
        add_fields!(self, other; frames, late, late_by_meter, bytes_read, bytes_written, spun);
        self.longest_own = self.longest_own.max(other.longest_own);
        self.longest_response = self.longest_response.max(other.longest_response);
    }
}

impl Moved {
    fn add(&mut self, other: &Self) {
        self.operations += other.operations;
        self.bytes += other.bytes;
        self.service.add(&other.service);
    }
}

impl StreamsOutcome {
    /// Counts a completed operation in the second of its end.
    #[inline]
    pub(crate) fn count_operation(&mut self, second: usize, operation: CompletedOperation) {
        let CompletedOperation { kind, bytes, service, response } = operation;
        let in_second = grown(&mut self.seconds, second);
        let (in_second, moved) = match kind {
            OperationKind::Read => (&mut in_second.bytes_read, &mut self.reads),
            OperationKind::Write => (&mut in_second.bytes_written, &mut self.writes),
        };
        *in_second += bytes;
        moved.operations += 1;
        moved.bytes += bytes;
        moved.service.record_nanos(service);
        self.response.record_nanos(response);
        self.heat.count(second as u64, response);
    }

    /// Counts a frame in the second of its deadline.
    #[inline]
    pub(crate) fn count_frame(&mut self, second: usize, judged: &FrameVerdict) {
        self.frames += 1;
        self.late += u64::from(judged.late);
        self.late_by_meter += u64::from(judged.by_meter);
        let second = grown(&mut self.seconds, second);
        second.frames += 1;
        second.late += u64::from(judged.late);
        second.late_by_meter += u64::from(judged.by_meter);
        raise(&mut second.longest_own, judged.own);
        raise(&mut second.longest_response, judged.response);
    }

    /// Raises the time of a round to that of one of its frames, in nanoseconds.
    #[inline]
    pub(crate) fn raise_round(&mut self, round: usize, response: u64) {
        raise(grown(&mut self.round_times, round), response);
    }

    /// Adds what streams on another machine, or of another process, found in the same run. A round
    /// that was late in both counts twice, at most as often as there are rounds.
    pub(crate) fn add(&mut self, other: Self) {
        self.invalid_part |= !self.valid() || !other.valid();
        add_fields!(self, other; frames, late, late_by_meter, failed, never, stuck, below_best);
        self.first_failure = self.first_failure.take().or(other.first_failure);
        self.rounds = self.rounds.max(other.rounds);
        self.late_rounds = (self.late_rounds + other.late_rounds).min(self.rounds);
        for (round, time) in other.round_times.into_iter().enumerate() {
            self.raise_round(round, nanos(time));
        }
        // A backlog on one machine is enough: its streams are not held.
        self.backlog_growth = self.backlog_growth.or(other.backlog_growth);
        self.heat.add(&other.heat);
        self.reads.add(&other.reads);
        self.writes.add(&other.writes);
        self.response.add(&other.response);
        self.issue.add(&other.issue);
        self.streams.extend(other.streams);
        for (number, second) in other.seconds.iter().enumerate() {
            grown(&mut self.seconds, number).add(second);
        }
        self.took = self.took.max(other.took);
        self.complete &= other.complete;
        if !self.method.contains(&other.method) {
            self.method = format!("{}; {}", self.method, other.method);
        }
    }

    /// Whether the run tells something about the storage: at most one in a thousand frames was late
    /// because of the meter, or ten times as many because of the storage.
    pub fn valid(&self) -> bool {
        // In whole numbers, so that a run without frames is valid. Ten times: then the storage has
        // failed whatever the meter added.
        let few = self.late_by_meter * 1000 <= self.frames;
        !self.invalid_part && (few || self.late_by_storage() >= 10 * self.late_by_meter)
    }

    /// Late frames that count as the storage's.
    pub fn late_by_storage(&self) -> u64 {
        self.late - self.late_by_meter
    }

    /// The first second with a frame that was late because of the storage.
    pub(crate) fn first_late(&self) -> Option<usize> {
        self.seconds.iter().position(|second| second.late > second.late_by_meter)
    }

    /// Whether the backlog grows; `None` where this cannot be seen. Where frames are late in each
    /// of the last seconds, they wait for as long as a client waits for any.
    pub(crate) fn grows(&self) -> Option<bool> {
        let judged: Vec<&Second> = self.seconds.iter().filter(|second| second.frames > 0).collect();
        let last = &judged[judged.len() - judged.len().div_ceil(4)..];
        let hidden =
            !last.is_empty() && last.iter().all(|second| second.late > second.late_by_meter);
        match self.backlog_growth {
            None if hidden => None,
            growth => Some(growth.is_some()),
        }
    }

    /// Frames that count against the storage: late, or below the best rendition.
    pub fn missed(&self) -> u64 {
        self.late_by_storage() + self.below_best
    }

    /// Whether no frame counts against the storage and the backlog does not grow.
    pub fn is_held(&self) -> bool {
        self.missed() == 0 && self.backlog_growth.is_none()
    }

    /// The bytes read and written.
    pub fn bytes(&self) -> ByteCount {
        self.reads.bytes + self.writes.bytes
    }

    /// The mean rate delivered.
    pub fn rate(&self) -> BitRate {
        BitRate::of(self.bytes(), self.took)
    }

    /// Service times, from start to end, of all completed operations.
    pub fn service(&self) -> Times {
        let mut all = self.reads.service.clone();
        all.add(&self.writes.service);
        all
    }

    /// The time in which the meter polled the clock.
    pub fn spun(&self) -> Duration {
        self.seconds.iter().map(|second| second.spun).sum()
    }

    /// The longest outage of any stream.
    pub fn longest_outage(&self) -> Duration {
        self.streams.iter().map(|stream| stream.longest_outage).max().unwrap_or_default()
    }
}
