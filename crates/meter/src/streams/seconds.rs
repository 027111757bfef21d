//! The counts of each second of a run.
//!
//! Times are nanoseconds from the start of the run; [`Seconds::all`] has them as durations.

use super::tally::Judged;
use super::{Heat, Second};
use crate::log::OperationKind;
use std::time::Duration;
use units::ByteCount;

/// The counts of each second of a run.
#[derive(Default)]
pub(super) struct Seconds {
    counts: Vec<Counts>,
    /// Responses of the frames that arrived in each second.
    pub(super) heat: Heat,
}

/// The counts of one second, which become a [`Second`].
#[derive(Clone, Copy, Default)]
struct Counts {
    frames: u64,
    late: u64,
    late_by_meter: u64,
    longest_own: u64,
    longest_response: u64,
    bytes_read: u64,
    bytes_written: u64,
    spun: u64,
}

impl Seconds {
    fn at(&mut self, nanos: u64) -> &mut Counts {
        let number = usize::try_from(nanos / 1_000_000_000).unwrap_or(usize::MAX);
        if self.counts.len() <= number {
            self.counts.resize(number + 1, Counts::default());
        }
        &mut self.counts[number]
    }

    /// Counts an operation that completed at `at` with this response time.
    pub(super) fn moved(&mut self, at: u64, kind: OperationKind, bytes: u64, response: u64) {
        self.heat.count(at / 1_000_000_000, response);
        let second = self.at(at);
        match kind {
            OperationKind::Read => second.bytes_read += bytes,
            OperationKind::Write => second.bytes_written += bytes,
        }
    }

    /// Adds polling time that ended at `at`.
    pub(super) fn watched(&mut self, at: u64, nanos: u64) {
        self.at(at).spun += nanos;
    }

    /// Counts a frame with this deadline.
    pub(super) fn judged(&mut self, deadline: u64, judged: &Judged) {
        let second = self.at(deadline);
        second.frames += 1;
        second.late += u64::from(judged.late);
        second.late_by_meter += u64::from(judged.by_meter);
        second.longest_own = second.longest_own.max(judged.own);
        second.longest_response = second.longest_response.max(judged.response);
    }

    /// All seconds in order.
    pub(super) fn all(&self) -> Vec<Second> {
        let second = |counts: &Counts| Second {
            frames: counts.frames,
            late: counts.late,
            late_by_meter: counts.late_by_meter,
            longest_own: Duration::from_nanos(counts.longest_own),
            longest_response: Duration::from_nanos(counts.longest_response),
            bytes_read: ByteCount(counts.bytes_read),
            bytes_written: ByteCount(counts.bytes_written),
            spun: Duration::from_nanos(counts.spun),
        };
        self.counts.iter().map(second).collect()
    }
}
