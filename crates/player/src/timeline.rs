//! The timeline of a title: when each piece is to be rendered. A player needs nothing else of
//! media.

use std::time::Duration;

/// The tracks that one viewer plays together. Drift is measured on the first one, which is the
/// video track if there is one; play-out needs all of them buffered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Timeline {
    /// The tracks, indexed by [`crate::Fetch::track`].
    pub tracks: Vec<TrackTimeline>,
}

impl Timeline {
    /// Play-out time of the longest track.
    pub fn duration(&self) -> Duration {
        self.tracks.iter().map(TrackTimeline::duration).max().unwrap_or_default()
    }
}

/// One track as a sequence of pieces without gaps, from time zero. A piece is fetched by one
/// request: an HLS segment, or a byte range of a progressive file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrackTimeline {
    /// Piece `i` is `bounds[i]..bounds[i + 1]`; never decreasing.
    bounds: Vec<Duration>,
}

impl TrackTimeline {
    /// A track of pieces with these durations.
    pub fn from_durations(durations: impl IntoIterator<Item = Duration>) -> Self {
        let mut bounds = vec![Duration::ZERO];
        let mut end = Duration::ZERO;
        bounds.extend(durations.into_iter().map(|duration| {
            end = end.saturating_add(duration);
            end
        }));
        Self { bounds }
    }

    /// The track at `speed` times its normal speed; a speed that is not positive and finite is
    /// ignored.
    pub fn at_speed(&self, speed: f64) -> Self {
        if !speed.is_finite() || speed <= 0.0 {
            return self.clone();
        }
        let bounds = self.bounds.iter().map(|bound| {
            Duration::try_from_secs_f64(bound.as_secs_f64() / speed).unwrap_or(Duration::MAX)
        });
        Self { bounds: bounds.collect() }
    }

    /// Number of pieces.
    pub fn len(&self) -> usize {
        self.bounds.len() - 1
    }

    /// Whether the track has no pieces.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Play-out time of the whole track.
    pub fn duration(&self) -> Duration {
        self.bounds[self.len()]
    }

    /// When piece `i` starts; for `i == len()`, when the track ends.
    pub fn start(&self, i: usize) -> Duration {
        self.bounds[i]
    }

    /// The mean duration of a piece; zero without pieces.
    pub fn mean(&self) -> Duration {
        self.duration() / u32::try_from(self.len().max(1)).unwrap_or(u32::MAX)
    }

    /// Whether both tracks have equally many pieces, and the bounds of all pieces differ by at most
    /// `tolerance`.
    pub fn has_same_bounds(&self, other: &Self, tolerance: Duration) -> bool {
        let mut bounds = self.bounds.iter().zip(&other.bounds);
        self.len() == other.len() && bounds.all(|(a, b)| a.abs_diff(*b) <= tolerance)
    }

    /// The piece rendered at `time`; `len()` from the end of the track on.
    pub fn piece_at(&self, time: Duration) -> usize {
        // By the ends: a piece without duration is never the one that is rendered.
        self.bounds[1..].partition_point(|end| *end <= time)
    }
}
