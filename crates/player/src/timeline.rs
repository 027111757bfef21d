//! When each piece of a title is to be rendered: all that a player knows of media.

use std::time::Duration;

/// The tracks that one viewer plays together. The first sets the pace of the report (video, when
/// there is any); all must be buffered for play-out to go on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Timeline {
    /// In the order in which [`crate::Fetch::track`] counts.
    pub tracks: Vec<TrackTimeline>,
}

impl Timeline {
    /// Play-out time of the longest track.
    pub fn duration(&self) -> Duration {
        self.tracks.iter().map(TrackTimeline::duration).max().unwrap_or_default()
    }
}

/// One track as a row of pieces without gaps, the first at zero. A piece is what one request
/// brings: an HLS segment, or a byte range of a progressive file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrackTimeline {
    /// `bounds[i]..bounds[i + 1]` is piece `i`: one more than there are pieces, never decreasing.
    bounds: Vec<Duration>,
}

impl TrackTimeline {
    /// From the duration of each piece, in order.
    pub fn from_durations(durations: impl IntoIterator<Item = Duration>) -> Self {
        let mut bounds = vec![Duration::ZERO];
        let mut end = Duration::ZERO;
        bounds.extend(durations.into_iter().map(|duration| {
            end = end.saturating_add(duration);
            end
        }));
        Self { bounds }
    }

    /// This track played at `speed` times its pace; a speed that is not positive and finite changes
    /// nothing.
    pub fn at_speed(&self, speed: f64) -> Self {
        if !speed.is_finite() || speed <= 0.0 {
            return self.clone();
        }
        let bounds = self.bounds.iter().map(|bound| {
            Duration::try_from_secs_f64(bound.as_secs_f64() / speed).unwrap_or(Duration::MAX)
        });
        Self { bounds: bounds.collect() }
    }

    /// How many pieces.
    pub fn len(&self) -> usize {
        self.bounds.len() - 1
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// When all is rendered.
    pub fn duration(&self) -> Duration {
        self.bounds[self.len()]
    }

    /// When piece `i` starts; for `i == len()`, when the track ends.
    pub fn start(&self, i: usize) -> Duration {
        self.bounds[i]
    }

    /// The mean duration of a piece; zero when there are none.
    pub fn mean(&self) -> Duration {
        self.duration() / u32::try_from(self.len().max(1)).unwrap_or(u32::MAX)
    }

    /// Whether it has the same pieces as the other, each beginning and ending no further than
    /// `within` from where the other's does.
    pub fn is_cut_as(&self, other: &Self, within: Duration) -> bool {
        let mut bounds = self.bounds.iter().zip(&other.bounds);
        self.len() == other.len() && bounds.all(|(one, two)| one.abs_diff(*two) <= within)
    }

    /// The piece that is on at `time`; `len()` from the end on.
    pub fn piece_at(&self, time: Duration) -> usize {
        self.bounds[1..].partition_point(|end| *end <= time)
    }
}
