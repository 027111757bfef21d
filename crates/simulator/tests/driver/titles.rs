//! Titles whose rate over time has a certain shape, laid out on a disk.

use super::Brim;
use engine::{DiskNumber, Layout, Lead, TitleKey, TrackLayout, TrackNumber};
use std::ops::Range;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use units::{Moment, rounded};

/// The rate of a title over time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    Constant,
    /// Some seconds at one rate, then at another.
    Scenes,
    /// Independent steps with rare large ones.
    Pareto,
    /// Half of the titles have their peaks where the others have none.
    AntiCorrelated,
    /// All titles have their peaks at the same time.
    AlignedPeaks,
    FrontLoaded,
    Spikes,
    /// Each title has one of the shapes.
    Mixed,
}

impl Shape {
    pub(super) const ALL: [Self; 8] = [
        Self::Constant,
        Self::Scenes,
        Self::Pareto,
        Self::AntiCorrelated,
        Self::AlignedPeaks,
        Self::FrontLoaded,
        Self::Spikes,
        Self::Mixed,
    ];

    /// The rate of each step as a multiple of the mean rate, about.
    fn steps(self, steps: usize, start: Moment, rng: &mut fastrand::Rng) -> Vec<f64> {
        let odd = rng.bool();
        let mut scene = (0, 1.0);
        // The number of the step in time, not in the title, so that peaks of all titles coincide.
        let first = usize::try_from(start.0 / STEP_NANOS).expect("a short run");
        let step = |step: usize| match self {
            Self::Constant => 1.0,
            Self::Scenes => {
                if scene.0 == 0 {
                    scene = (rng.usize(4..40), [0.3, 0.7, 1.0, 2.5][rng.usize(..4)]);
                }
                scene.0 -= 1;
                scene.1
            }
            Self::Pareto => (0.4 / (1.0 - rng.f64()).powf(0.6)).min(20.0),
            Self::AntiCorrelated => {
                if ((first + step) / 10).is_multiple_of(2) == odd {
                    1.8
                } else {
                    0.2
                }
            }
            Self::AlignedPeaks => {
                if (first + step) % 20 < 3 {
                    5.0
                } else {
                    0.3
                }
            }
            Self::FrontLoaded => {
                if step < 16 {
                    4.0
                } else {
                    0.5
                }
            }
            Self::Spikes | Self::Mixed => {
                if rng.u8(..24) == 0 {
                    12.0
                } else {
                    0.5
                }
            }
        };
        (0..steps).map(step).collect()
    }
}

/// A title as a viewer knows it.
pub(super) struct Film {
    pub(super) layout: Arc<Layout>,
}

impl Film {
    pub(super) fn draw(
        brim: &Brim,
        title: TitleKey,
        capacity: u64,
        start: Moment,
        rng: &mut fastrand::Rng,
    ) -> Self {
        let shape = match brim.shape {
            Shape::Mixed => Shape::ALL[rng.usize(..Shape::ALL.len() - 1)],
            shape => shape,
        };
        let steps = rng.usize(40..160);
        // A piece of the largest size lasts for so many seconds of a mean title.
        let lasts = 0.5 + 5.5 * rng.f64();
        let mean = f64::from(brim.read) / lasts;
        let mut tracks = vec![track(brim.read, mean, shape, steps, capacity, start, rng)];
        if rng.bool() {
            let small = brim.read >> 3;
            tracks.push(track(small, mean / 12.0, Shape::Constant, steps, capacity, start, rng));
        }
        let duration = STEP * u32::try_from(steps).expect("few steps");
        Self { layout: Arc::new(Layout { title, disk: DiskNumber(0), duration, tracks }) }
    }

    pub(super) fn tracks(&self) -> impl Iterator<Item = TrackNumber> {
        (0..self.layout.tracks.len()).map(|track| u16::try_from(track).expect("two tracks"))
    }

    fn track(&self, track: TrackNumber) -> &TrackLayout {
        &self.layout.tracks[usize::from(track)]
    }

    pub(super) fn pieces(&self, track: TrackNumber) -> usize {
        self.track(track).due.len()
    }

    /// The media time at which the first byte of a piece is played.
    pub(super) fn needed(&self, track: TrackNumber, piece: usize) -> Duration {
        Duration::from_millis(self.track(track).due[piece].into())
    }

    /// The bytes of consecutive pieces.
    pub(super) fn bytes(&self, track: TrackNumber, pieces: &Range<usize>) -> Range<u64> {
        let track = self.track(track);
        let start = |piece: usize| piece as u64 * u64::from(track.piece);
        start(pieces.start)..start(pieces.end).min(track.bytes)
    }
}

fn track(
    piece: u32,
    mean: f64,
    shape: Shape,
    steps: usize,
    capacity: u64,
    start: Moment,
    rng: &mut fastrand::Rng,
) -> TrackLayout {
    let each = mean * STEP.as_secs_f64();
    let mut bounds = vec![0u64];
    for factor in shape.steps(steps, start, rng) {
        let bytes = rounded((each * factor).max(1.0).floor());
        bounds.push(bounds[bounds.len() - 1] + bytes);
    }
    let bytes = bounds[steps];
    let size = u64::from(piece);
    let due = (0..bytes.div_ceil(size)).map(|number| {
        let step = bounds.partition_point(|bound| *bound <= number * size) - 1;
        u32::try_from(step as u128 * STEP.as_millis()).expect("a short title")
    });
    let due: Vec<u32> = due.collect();
    TrackLayout {
        bytes,
        piece,
        lead: Lead::default(),
        runs: runs(bytes, size, capacity, rng),
        due,
        stored: Vec::new(),
        key_frames_of: None,
        times: OnceLock::new(),
    }
}

/// Extents of one piece, of some, or of all.
fn runs(bytes: u64, piece: u64, capacity: u64, rng: &mut fastrand::Rng) -> Vec<Range<u64>> {
    let most = [1, 4, u64::MAX][rng.usize(..3)];
    let mut left = bytes.div_ceil(4096) * 4096;
    let mut runs = Vec::new();
    while left > 0 {
        let len = left.min(piece.saturating_mul(most));
        let begin = rng.u64(..=(capacity - len) / 4096) * 4096;
        runs.push(begin..begin + len);
        left -= len;
    }
    runs
}

const STEP: Duration = Duration::from_millis(500);
const STEP_NANOS: u64 = 500_000_000;
