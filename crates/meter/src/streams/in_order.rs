//! What a viewer sees: a stream's frames in their order, however they came.
//!
//! Times are nanoseconds; [`Viewer::so_far`] has them as durations.

use super::StreamStats;
use std::collections::BTreeMap;
use std::time::Duration;
use units::Moment;

/// A stream and the state of its account in frame order.
#[derive(Default)]
pub(super) struct Viewer {
    frames: u64,
    late: u64,
    /// Came before a frame before them.
    early: BTreeMap<u64, FrameArrival>,
    /// The outage that is on, or was last: from when, until when the frame came.
    outage: Option<(Moment, Moment)>,
    longest_outage: u64,
    aggregate: u64,
    /// The sum of lateness over the late frames just before.
    run: u64,
    longest_run: u64,
}

/// When a frame was there.
#[derive(Clone, Copy)]
pub(super) struct FrameArrival {
    pub(super) at: Moment,
    pub(super) late: bool,
}

impl Viewer {
    /// The frame that is shown next.
    pub(super) fn next(&self) -> u64 {
        self.frames
    }

    /// Came before its turn.
    pub(super) fn waits(&mut self, frame: u64, came: FrameArrival) {
        self.early.insert(frame, came);
    }

    /// The frame that is shown next, if it came before its turn.
    pub(super) fn next_early(&mut self) -> Option<FrameArrival> {
        // Most frames come in their order.
        if self.early.is_empty() { None } else { self.early.remove(&self.frames) }
    }

    /// The next frame, to be shown at `due`.
    pub(super) fn shows(&mut self, due: Moment, came: FrameArrival) {
        self.frames += 1;
        if !came.late {
            self.run = 0;
            return;
        }
        let drift = came.at.0.saturating_sub(due.0);
        self.late += 1;
        self.aggregate += drift;
        self.run += drift;
        self.longest_run = self.longest_run.max(self.run);
        let (from, until) = match self.outage {
            Some((from, until)) if due <= until => (from, until.max(came.at)),
            _ => (due, came.at),
        };
        self.outage = Some((from, until));
        self.longest_outage = self.longest_outage.max(until.0.saturating_sub(from.0));
    }

    /// What it saw.
    pub(super) fn so_far(&self) -> StreamStats {
        StreamStats {
            frames: self.frames,
            late: self.late,
            longest_outage: Duration::from_nanos(self.longest_outage),
            aggregate_drift: Duration::from_nanos(self.aggregate),
            consecutive_drift: Duration::from_nanos(self.longest_run),
        }
    }
}
