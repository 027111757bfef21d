//! What a player measured: start-up, stalls, drift.

use crate::Drift;
use std::time::Duration;

/// State of play-out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlaybackState {
    /// Buffering before the first picture, or after a seek.
    Waiting,
    /// The play-out clock runs.
    Playing,
    /// The next piece is missing.
    Stalled,
    /// The viewer paused.
    Paused,
    /// Watched to the end.
    Finished,
    /// The viewer left.
    Stopped,
}

/// Measurements of one viewer, up to the moment of the report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlayerReport {
    /// State of play-out now.
    pub stage: PlaybackState,
    /// From start to first picture; `None` if there was none yet.
    pub startup: Option<Duration>,
    /// From each seek to the picture after it; a seek that was not over is not in it.
    pub seeks: Vec<Duration>,
    /// Stalls, also one that still goes on.
    pub stalls: Stalls,
    /// Media time rendered.
    pub played: Duration,
    /// Pieces arrived.
    pub pieces: u64,
    /// Drift of the first track's pieces: actual minus ideal moment of rendering. The ideal clock
    /// starts at the first picture (and anew at each seek), stops while the viewer pauses, and does
    /// not stop for stalls: a stall therefore shows in all pieces that follow it.
    pub drift: Drift,
    /// The least time by which a piece came before it was due on the play-out clock, in
    /// nanoseconds; negative if one was late. Pieces awaited at start-up and after seeks are not
    /// in it, having no due time yet. `None` if there were no others.
    pub least_margin: Option<i64>,
}

/// Stalls of play-out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stalls {
    /// Stalls longer than the dead-band.
    pub count: u64,
    /// All of them together.
    pub total: Duration,
    /// The longest.
    pub longest: Duration,
}

impl Stalls {
    /// With one more stall, unless it was within `dead_band`.
    pub(crate) fn add(&mut self, stall: Duration, dead_band: Duration) {
        if stall > dead_band {
            self.count += 1;
            self.total += stall;
            self.longest = self.longest.max(stall);
        }
    }
}
