//! A stream as its viewer sees it: frames in their order, whatever the order of their arrival.
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
    /// Frames that arrived before an earlier frame.
    early: BTreeMap<u64, FrameArrival>,
    /// The current or last outage: its start, and the arrival of the missing frame.
    outage: Option<(Moment, Moment)>,
    longest_outage: u64,
    aggregate: u64,
    /// The sum of lateness over the late frames directly before.
    run: u64,
    longest_run: u64,
}

/// The arrival of a frame.
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

    /// Keeps a frame that arrived before its turn.
    pub(super) fn waits(&mut self, frame: u64, came: FrameArrival) {
        self.early.insert(frame, came);
    }

    /// The next frame to be shown, if it arrived before its turn.
    pub(super) fn next_early(&mut self) -> Option<FrameArrival> {
        // Most frames arrive in order.
        if self.early.is_empty() { None } else { self.early.remove(&self.frames) }
    }

    /// Shows the next frame, whose time is `due`.
    pub(super) fn shows(&mut self, due: Moment, came: FrameArrival) {
        self.frames += 1;
        if !came.late {
            self.run = 0;
            return;
        }
        // A failed frame can arrive before its time; it is late without drift.
        let drift = came.at.0.saturating_sub(due.0);
        self.late += 1;
        self.aggregate += drift;
        self.run += drift;
        self.longest_run = self.longest_run.max(self.run);
        let (from, until) = match self.outage {
            // Due before the missing frame arrived: for the viewer it is one outage, not two.
            Some((from, until)) if due <= until => (from, until.max(came.at)),
            _ => (due, came.at),
        };
        self.outage = Some((from, until));
        self.longest_outage = self.longest_outage.max(until.0.saturating_sub(from.0));
    }

    /// The statistics so far.
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
