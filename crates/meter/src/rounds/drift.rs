//! Drift of frames that are read in blocks: how late each frame is shown, after Lee and Srivastava
//! (2001), section 5.2.
//!
//! ```text
//!   block k, frames 0 1 2 3:   strict deadline  ├─ 0 ─┼─ 1 ─┼─ 2 ─┼─ 3 ─┤   ideal times
//!   arrives late by x                           ├── x ──▶ 0, 1 shown here    drift x, x - 1 frame
//! ```
//!
//! A frame is shown at its ideal time, or when its block has arrived. The ideal time of a block's
//! first frame is the block's strict deadline, so that a frame is never early.

use super::RoundsOutcome;
use player::Drift;
use std::time::Duration;

/// The drift of the frames of several streams over a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FrameDrift {
    /// The accumulated drift factor of a stream, the mean of all.
    pub accumulated: Duration,
    /// The largest consecutive drift factor of a stream.
    pub consecutive: Duration,
    /// Frames of all streams.
    pub frames: u64,
    /// Frames that were late by a frame's time or more: the next frame was due.
    pub lost: u64,
}

impl FrameDrift {
    /// The drift of a run whose blocks are of `frames` frames each, which take `frame` to play.
    pub fn of(outcome: &RoundsOutcome, frames: u32, frame: Duration) -> Self {
        let mut all = Self::default();
        for stream in &outcome.streams {
            let mut drift = Drift::new(Duration::ZERO);
            for late_by in &stream.late_by {
                for number in 0..frames {
                    let late_by = late_by.saturating_sub(frame * number);
                    drift.push(i64::try_from(late_by.as_nanos()).unwrap_or(i64::MAX));
                    all.frames += 1;
                    all.lost += u64::from(late_by >= frame);
                }
            }
            all.accumulated += drift.accumulated();
            all.consecutive = all.consecutive.max(drift.consecutive());
        }
        all.accumulated /= u32::try_from(outcome.streams.len()).unwrap_or(u32::MAX).max(1);
        all
    }

    /// The share of frames that were lost, from 0 to 1.
    pub fn loss(&self) -> f64 {
        units::float(self.lost) / units::float(self.frames.max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rounds::RoundsStreamStats;
    use units::ByteCount;

    #[test]
    fn frames_of_a_late_block_catch_up() {
        let ms = Duration::from_millis;
        let stream = |late_by: &[u64]| RoundsStreamStats {
            late_by: late_by.iter().map(|late| ms(*late)).collect(),
            ..RoundsStreamStats::default()
        };
        // A block is late by one and a half frames: its first frame is lost, its second is late,
        // its third in time.
        let outcome = RoundsOutcome {
            deadline: ms(300),
            rounds: Vec::new(),
            streams: vec![stream(&[0, 150, 0]), stream(&[0, 0, 0])],
            memory: ByteCount::ZERO,
            method: String::new(),
        };
        let drift = FrameDrift::of(&outcome, 3, ms(100));
        let wanted = FrameDrift { accumulated: ms(100), consecutive: ms(200), frames: 18, lost: 1 };
        assert_eq!(drift, wanted);
    }
}
