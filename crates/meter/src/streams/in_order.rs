//! A stream as its viewer sees it: frames in their order, whatever the order of their arrival.

use super::StreamStats;
use std::collections::BTreeMap;
use std::time::Duration;
use units::Moment;

/// A stream and the state of its account in frame order.
#[derive(Default)]
pub(super) struct OrderedStream {
    stats: StreamStats,
    /// Frames that arrived before an earlier frame.
    early: BTreeMap<u64, FrameArrival>,
    /// The current or last outage: its start, and the arrival of the missing frame.
    outage: Option<(Moment, Moment)>,
    /// The sum of lateness over the late frames directly before.
    run: Duration,
}

/// The arrival of a frame.
#[derive(Clone, Copy)]
pub(super) struct FrameArrival {
    pub(super) at: Moment,
    pub(super) late: bool,
}

impl OrderedStream {
    /// The frame that is shown next.
    pub(super) fn next(&self) -> u64 {
        self.stats.frames
    }

    /// Keeps a frame that arrived before its turn.
    pub(super) fn waits(&mut self, frame: u64, came: FrameArrival) {
        // The client's buffer bounds how many frames can be early.
        self.early.insert(frame, came);
    }

    /// The next frame to be shown, if it arrived before its turn.
    pub(super) fn next_early(&mut self) -> Option<FrameArrival> {
        // Most frames arrive in order.
        if self.early.is_empty() { None } else { self.early.remove(&self.stats.frames) }
    }

    /// Shows the next frame, whose time is `due`.
    #[inline]
    pub(super) fn shows(&mut self, due: Moment, came: FrameArrival) {
        let stats = &mut self.stats;
        stats.frames += 1;
        if !came.late {
            self.run = Duration::ZERO;
            return;
        }
        let drift = came.at.since(due);
        stats.late += 1;
        stats.accumulated_drift += drift;
        self.run += drift;
        stats.consecutive_drift = stats.consecutive_drift.max(self.run);
        let (from, until) = match self.outage {
            // Due before the missing frame arrived: for the viewer it is one outage, not two.
            Some((from, until)) if due <= until => (from, until.max(came.at)),
            _ => (due, came.at),
        };
        self.outage = Some((from, until));
        stats.longest_outage = stats.longest_outage.max(until.since(from));
    }

    /// The statistics so far.
    pub(super) fn so_far(&self) -> StreamStats {
        self.stats
    }
}
