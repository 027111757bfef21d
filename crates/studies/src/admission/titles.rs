//! Titles as the disk and the clock see them: bytes per frame, groups of pictures, a place.
//!
//! Synthetic clips are drawn like those of Makaroff, Coutu and Liu's experiment (section 3): 2 to
//! 12 minutes of MPEG-2 at 30 frames a second and variable rate, 1.46 to 8.55 Mb/s with a mean of
//! 5.55. What the paper does not say (groups of 15 frames, I:P:B sizes of 5:2.4:1, scenes of 8 s
//! in the mean whose activity is log-normal) is chosen so that the demand per 500 ms slot has the
//! burstiness of film: peak over mean 2.3, coefficient of variation 0.36.

use super::random::RandomSource;

/// The block that the papers count in, bytes.
pub const BLOCK: u64 = 64 << 10;

/// A title: one or more tracks that are read together.
#[derive(Clone, Debug)]
pub struct Title {
    /// The title's tracks, each with its place on the disk.
    pub tracks: Vec<Track>,
}

/// A row of frames that lie one behind the other.
#[derive(Clone, Debug)]
pub struct Track {
    /// Bytes on the disk before the first frame.
    pub offset: u64,
    /// Bytes from the first frame to the end of each.
    pub ends: Vec<u64>,
    /// When each frame is shown, in seconds from the first; never decreases.
    pub at: Vec<f64>,
    /// The frames that groups of pictures begin with; the first is 0.
    pub groups: Vec<usize>,
    /// Seconds from the first frame to the end of the last.
    pub duration: f64,
}

impl Track {
    /// A title whose frames all have the same size.
    pub(crate) fn constant(mbps: f64, seconds: f64) -> Self {
        let frames = whole(seconds * FPS) / GROUP * GROUP;
        let frame = mbps * 125_000.0 / FPS;
        let end = |frame_end| whole(frame * frame_end as f64) as u64;
        Self::of_frames(0, (1..=frames).map(end).collect())
    }

    /// A title whose frames end at these bytes.
    fn of_frames(offset: u64, ends: Vec<u64>) -> Self {
        let frames = ends.len();
        Self {
            offset,
            ends,
            at: (0..frames).map(|frame| frame as f64 / FPS).collect(),
            groups: (0..frames).step_by(GROUP).collect(),
            duration: frames as f64 / FPS,
        }
    }

    /// Bytes of all frames.
    pub fn bytes(&self) -> u64 {
        self.ends.last().copied().unwrap_or(0)
    }
}

/// Where titles come from.
pub trait TitleSource: Sync {
    /// How many there are.
    fn len(&self) -> usize;
    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// One of them.
    fn title(&self, number: usize) -> std::borrow::Cow<'_, Title>;
}

/// What kind of clips are drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClipKind {
    /// The shortest and the longest, in minutes.
    pub minutes: (f64, f64),
    /// The least and the highest mean rate, in Mb/s.
    pub mbps: (f64, f64),
}

impl ClipKind {
    /// News and music clips, as in the paper.
    pub const SHORT: Self = Self { minutes: (2.0, 12.0), mbps: (1.46, 8.55) };
    /// Feature-length titles at the same rates: what the paper leaves to future work.
    pub const FEATURE: Self = Self { minutes: (80.0, 140.0), mbps: (1.46, 8.55) };
}

/// A disk full of synthetic clips, one behind the other; their frames are drawn when asked for.
#[derive(Clone, Debug)]
pub struct Clips {
    clips: Vec<Clip>,
}

#[derive(Clone, Copy, Debug)]
struct Clip {
    offset: u64,
    groups: usize,
    mbps: f64,
    seed: u64,
}

impl Clips {
    /// As many clips as fit on a disk of `capacity` bytes.
    pub fn fill(kind: ClipKind, capacity: u64, seed: u64) -> Self {
        let mut random = RandomSource::new(seed, CLIPS);
        let (mut clips, mut offset) = (Vec::new(), 0);
        // Divided first: the product could overflow.
        let most = capacity / 100 * FULL_PERCENT;
        loop {
            let (low, high) = kind.mbps;
            // This beta distribution has the mean 2 / 3.466 = 0.577, which is 5.55 Mb/s between
            // 1.46 and 8.55.
            let mbps = low + (high - low) * random.beta(2.0, 1.466);
            let seconds = 60.0 * random.between(kind.minutes.0, kind.minutes.1);
            let clip =
                Clip { offset, groups: whole(seconds * FPS) / GROUP, mbps, seed: random.seed() };
            offset += clip.bytes();
            if offset > most || clips.len() >= MOST_CLIPS {
                return Self { clips };
            }
            clips.push(clip);
        }
    }
}

impl Clips {
    /// One clip of this rate and length, at the beginning of a disk.
    pub(crate) fn one(mbps: f64, seconds: f64, seed: u64) -> Track {
        Clip { offset: 0, groups: whole(seconds * FPS) / GROUP, mbps, seed }.draw()
    }
}

impl TitleSource for Clips {
    fn len(&self) -> usize {
        self.clips.len()
    }

    fn title(&self, number: usize) -> std::borrow::Cow<'_, Title> {
        std::borrow::Cow::Owned(Title { tracks: vec![self.clips[number].draw()] })
    }
}

/// Titles that are kept, for whoever asks for the same ones again and again.
#[derive(Clone, Debug, Default)]
pub struct StoredTitles(pub Vec<Title>);

impl StoredTitles {
    /// Takes `count` titles of a source, evenly spread over it.
    pub fn some(source: &dyn TitleSource, count: usize) -> Self {
        let count = count.min(source.len());
        Self((0..count).map(|i| source.title(i * source.len() / count).into_owned()).collect())
    }
}

impl TitleSource for StoredTitles {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn title(&self, number: usize) -> std::borrow::Cow<'_, Title> {
        std::borrow::Cow::Borrowed(&self.0[number])
    }
}

impl Clip {
    /// Bytes on the disk, whole blocks.
    fn bytes(&self) -> u64 {
        let seconds = (self.groups * GROUP) as f64 / FPS;
        // 125,000 bytes per second are 1 Mb/s.
        (whole(self.mbps * 125_000.0 * seconds) as u64 + SLACK).next_multiple_of(BLOCK)
    }

    fn draw(&self) -> Track {
        let mut random = RandomSource::new(self.seed, FRAMES);
        let frames = self.groups * GROUP;
        let mut sizes = Vec::with_capacity(frames);
        let (mut mood, mut left, mut scene) = (random.normal(), 0, 1.0);
        for _ in 0..self.groups {
            if left == 0 {
                left = whole(random.exponential(SCENE_SECONDS) * FPS / GROUP as f64).max(2);
                // The squares of the factors add up to one, so that the variance stays one.
                mood = 0.5 * mood + 0.75f64.sqrt() * random.normal();
                // 0.35 here, 0.08 for a group and 0.15 for a frame together give the burstiness of
                // film that the header states; a test compares them.
                scene = (0.35 * mood).exp();
            }
            left -= 1;
            let activity = scene * (0.08 * random.normal()).exp();
            let sized = PATTERN.map(|part| part * activity * (0.15 * random.normal()).exp());
            sizes.extend(sized);
        }
        let mean = self.mbps * 125_000.0 / FPS;
        // Whatever was drawn, the clip has its mean rate.
        let scale = mean * frames as f64 / sizes.iter().sum::<f64>();
        let mut end = 0;
        let ends = sizes.iter().map(|size| {
            end += whole((size * scale).max(LEAST_FRAME)) as u64;
            end
        });
        Track::of_frames(self.offset, ends.collect())
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the cast saturates")]
pub(crate) fn whole(value: f64) -> usize {
    value as usize
}

const FPS: f64 = 30.0;
const GROUP: usize = 15;
/// I B B P B B P B B P B B P B B, in parts of a B frame.
const PATTERN: [f64; GROUP] =
    [5.0, 1.0, 1.0, 2.4, 1.0, 1.0, 2.4, 1.0, 1.0, 2.4, 1.0, 1.0, 2.4, 1.0, 1.0];
const SCENE_SECONDS: f64 = 8.0;
/// Bytes: no frame is smaller.
const LEAST_FRAME: f64 = 200.0;
/// For frames that were rounded up to the least.
const SLACK: u64 = 16 << 10;
/// What part of a disk is written.
const FULL_PERCENT: u64 = 97;
/// No library needs more, however large the disk.
const MOST_CLIPS: usize = 4096;

// Names of sources of chance.
const CLIPS: u64 = 1;
const FRAMES: u64 = 2;

#[cfg(test)]
mod tests {
    use super::*;

    fn median(mut values: Vec<f64>) -> f64 {
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    }

    #[test]
    fn clips_are_as_the_paper_says_and_as_bursty_as_film() {
        let (mut rates, mut peaks, mut spreads, mut minutes) = (vec![], vec![], vec![], vec![]);
        for seed in 0..8 {
            let clips = Clips::fill(ClipKind::SHORT, 9_200_000_000, seed);
            assert!((24..50).contains(&clips.len()), "{} clips", clips.len());
            for number in 0..clips.len() {
                let title = clips.title(number);
                let track = &title.tracks[0];
                // A slot of 500 ms is a group of 15 frames.
                let ends = || track.groups.iter().skip(1).copied().chain([track.ends.len()]);
                let mut from = 0;
                let slots: Vec<f64> = ends()
                    .map(|end| {
                        let blocks = (track.ends[end - 1] / BLOCK).saturating_sub(from / BLOCK);
                        from = track.ends[end - 1];
                        blocks as f64
                    })
                    .collect();
                let mean = slots.iter().sum::<f64>() / slots.len() as f64;
                let square = slots.iter().map(|s| (s - mean).powi(2)).sum::<f64>();
                rates.push(track.bytes() as f64 * 8e-6 / track.duration);
                minutes.push(track.duration / 60.0);
                peaks.push(slots.iter().copied().fold(0.0, f64::max) / mean);
                spreads.push((square / slots.len() as f64).sqrt() / mean);
            }
        }
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        assert!(rates.iter().all(|rate| (1.45..8.6).contains(rate)));
        assert!((5.3..5.8).contains(&mean(&rates)), "{}", mean(&rates));
        assert!((6.5..7.5).contains(&mean(&minutes)), "{}", mean(&minutes));
        let (peak, spread) = (median(peaks), median(spreads));
        assert!((2.1..2.5).contains(&peak), "peak over mean {peak}");
        assert!((0.32..0.40).contains(&spread), "coefficient of variation {spread}");
    }

    #[test]
    fn clips_do_not_overlap_and_say_the_same_each_time() {
        let clips = Clips::fill(ClipKind::SHORT, 2_000_000_000, 3);
        let mut end = 0;
        for number in 0..clips.len() {
            let track = clips.title(number).into_owned().tracks.remove(0);
            assert!(track.offset >= end, "clip {number} begins in the one before");
            end = track.offset + track.bytes();
            assert_eq!(track.ends, clips.title(number).tracks[0].ends);
        }
        assert!(end <= 2_000_000_000);
    }
}
