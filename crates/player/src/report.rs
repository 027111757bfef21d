//! The measurements of a player: start-up, stalls, drift.

use crate::Drift;
use std::time::Duration;

/// State of play-out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PlaybackState {
    /// Buffering before the first picture, or after a seek.
    #[default]
    Waiting,
    /// The play-out clock runs.
    Playing,
    /// The next piece is missing.
    Stalled,
    /// The viewer paused.
    Paused,
    /// The title was played to its end.
    Finished,
    /// The viewer left.
    Stopped,
}

/// Measurements of one viewer, up to the moment of the report.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlayerReport {
    /// State of play-out at the time of the report.
    pub state: PlaybackState,
    /// Time from the start to the first picture; `None` before the first picture.
    pub startup: Option<Duration>,
    /// Time from each seek or change of speed to the first picture after it, without one that still
    /// waits for it.
    pub seeks: Vec<Duration>,
    /// Stalls, including one that has not ended.
    pub stalls: Stalls,
    /// Media time rendered.
    pub played: Duration,
    /// Pieces arrived.
    pub pieces: u64,
    /// Drift of the first track's pieces: actual minus ideal moment of rendering. The ideal clock
    /// starts at the first picture, restarts at each seek, and stops during pauses but not during
    /// stalls: a stall therefore adds to the drift of all pieces that follow it.
    pub drift: Drift,
    /// The least time between the arrival of a piece and its due time on the play-out clock, in
    /// nanoseconds; negative if a piece was late. Pieces that arrive during start-up or after a
    /// seek have no due time and are not counted. `None` if there were no others.
    pub least_margin: Option<i64>,
}

/// Stalls of play-out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stalls {
    /// Number of stalls longer than the dead-band.
    pub count: u64,
    /// Total time of these stalls.
    pub total: Duration,
    /// Time of the longest stall.
    pub longest: Duration,
}

impl Stalls {
    /// Adds a stall, unless it is within `dead_band`.
    pub(crate) fn add(&mut self, stall: Duration, dead_band: Duration) {
        if stall > dead_band {
            self.count += 1;
            self.total += stall;
            self.longest = self.longest.max(stall);
        }
    }
}
