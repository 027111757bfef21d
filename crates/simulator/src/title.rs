//! Synthetic titles: two renditions of pictures whose rate wanders from scene to scene, one sound
//! track; cut into segments as a packager would.

use crate::scenario::Scenario;
use player::{Timeline, TrackTimeline};
use server::engine::{DiskNumber, Layout, Part, TitleKey, TrackLayout, TrackNumber};
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

/// A title as the simulated server offers it.
#[derive(Debug)]
pub(crate) struct Title {
    pub(crate) layout: Arc<Layout>,
    /// Per track and segment: the bytes of the track.
    segments: Vec<Vec<Range<u64>>>,
    durations: Vec<Duration>,
}

impl Title {
    pub(crate) fn draw(
        random: &mut fastrand::Rng,
        scenario: &Scenario,
        key: u64,
        disk: u16,
        place: &mut u64,
    ) -> Self {
        let length = scenario.length.mul_f64(0.5 + random.f64() / 2.0);
        let count = length.as_nanos().div_ceil(scenario.segment.as_nanos()).max(1);
        let mut left = length;
        let durations: Vec<Duration> = (0..count)
            .map(|_| {
                let duration = scenario.segment.min(left);
                left -= duration;
                duration
            })
            .collect();
        #[expect(clippy::cast_precision_loss, reason = "a drawn rate")]
        let rate = scenario.rate.0 as f64 * (0.5 + random.f64() / 2.0) / 8.0;
        let sound = vec![16_000.0; durations.len()];
        let high = scenes(random, rate, durations.len());
        let low: Vec<f64> = high.iter().map(|rate| rate * 0.4).collect();
        let segments: Vec<_> = [high, low, sound].iter().map(|r| cut(&durations, r)).collect();
        let pieces = [scenario.piece, scenario.piece, (scenario.piece / 4).max(BLOCK)];
        let tracks = segments
            .iter()
            .zip(pieces)
            .map(|(segments, piece)| track(segments, &durations, piece, place))
            .collect();
        let layout =
            Layout { title: TitleKey(key), disk: DiskNumber(disk), duration: length, tracks };
        Self { layout: Arc::new(layout), segments, durations }
    }

    /// Best first.
    pub(crate) fn offers() -> Vec<Vec<TrackNumber>> {
        vec![vec![0, 2], vec![1, 2]]
    }

    pub(crate) fn timeline(&self, tracks: &[TrackNumber]) -> Arc<Timeline> {
        let track = TrackTimeline::from_durations(self.durations.iter().copied());
        Arc::new(Timeline { tracks: vec![track; tracks.len()] })
    }

    /// The bytes of one segment.
    pub(crate) fn segment(&self, track: TrackNumber, number: usize) -> Part {
        Part { track, bytes: self.segments[usize::from(track)][number].clone() }
    }

    /// One body of all segments from `from` on, the tracks in turn.
    pub(crate) fn body(&self, tracks: &[TrackNumber], from: usize) -> Vec<Part> {
        (from..self.durations.len())
            .flat_map(|number| tracks.iter().map(move |track| self.segment(*track, number)))
            .collect()
    }

    /// Seconds of media in `segment`.
    pub(crate) fn duration(&self, segment: usize) -> Duration {
        self.durations[segment]
    }
}

// A random walk in log-rate with jumps at scene changes: bytes per second of each segment.
fn scenes(random: &mut fastrand::Rng, rate: f64, count: usize) -> Vec<f64> {
    let mut level: f64 = 1.0;
    (0..count)
        .map(|_| {
            if random.u8(0..3) == 0 {
                level = 0.35 + 1.6 * random.f64();
            }
            rate * level * (0.85 + 0.3 * random.f64())
        })
        .collect()
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a few megabytes, positive"
)]
fn cut(durations: &[Duration], rates: &[f64]) -> Vec<Range<u64>> {
    let mut at = 0;
    let segment = |(duration, rate): (&Duration, &f64)| {
        let start = at;
        at += ((duration.as_secs_f64() * rate) as u64).max(1);
        start..at
    };
    durations.iter().zip(rates).map(segment).collect()
}

fn track(
    segments: &[Range<u64>],
    durations: &[Duration],
    piece: u32,
    place: &mut u64,
) -> TrackLayout {
    let bytes = segments.last().map_or(0, |segment| segment.end);
    let mut due = Vec::new();
    let (mut segment, mut start) = (0, Duration::ZERO);
    for at in (0..bytes).step_by(piece as usize) {
        while segments[segment].end <= at {
            start += durations[segment];
            segment += 1;
        }
        due.push(u32::try_from(start.as_millis()).expect("a short title"));
    }
    let whole = bytes.next_multiple_of(u64::from(piece));
    // Two extents: half of the pieces here, the others a little further on.
    let half = whole / u64::from(piece) / 2 * u64::from(piece);
    let first = *place..*place + half;
    let second = first.end + GAP..first.end + GAP + (whole - half);
    *place = second.end + GAP;
    let runs = [first, second].into_iter().filter(|run| !run.is_empty()).collect();
    TrackLayout { bytes, piece, runs, due }
}

const BLOCK: u32 = 4096;
const GAP: u64 = 64 << 20;
