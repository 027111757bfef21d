//! Random titles: bytes per half second with the scenes and peaks of films, divided into pieces for
//! the disk and into segments for the player.
//!
//! ```text
//!   track bytes   |0 · · · · · · · ·|· · · · · ·|· · · · · · · ·     bounds[h]: first byte
//!   fetches       ├── segment 0 ────┼─ segment 1┼─ segment 2 ──       what a player asks for
//!   pieces        ├───┼───┼───┼───┼───┼───┼───┼───┼───┼───┼──         what the disk reads
//!                   0   0   0   0   0   4s  4s  8s ...                due
//! ```
//!
//! `bounds` has one entry per half second. A piece is due when the first segment that touches it
//! starts.

use crate::checks::Segments;
use crate::scenario::Scenario;
use player::{Timeline, TrackTimeline};
use server::engine::{DiskNumber, Layout, Part, TitleKey, TrackLayout, TrackNumber};
use std::ops::Range;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use units::{BitRate, ByteCount, align_up};

/// A title as the world knows it.
#[derive(Debug)]
pub(crate) struct Title {
    pub(crate) layout: Arc<Layout>,
    /// Layouts of the title's replicas on other disks.
    pub(crate) copies: Vec<Arc<Layout>>,
    /// Best first.
    pub(crate) offers: Vec<Vec<TrackNumber>>,
    /// Fetched as one interleaved file.
    pub(crate) progressive: bool,
    /// Half seconds of media in one fetch.
    steps: usize,
    /// How long each of them is shown.
    step: Duration,
    tracks: Vec<Bounds>,
    /// What its player asks for.
    pub(crate) segments: Arc<Segments>,
    /// Nothing new may be read of it.
    pub(crate) withdrawn: bool,
}

/// A track's bytes in time.
#[derive(Debug)]
struct Bounds {
    /// `bounds[h]..bounds[h + 1]` are the bytes of half second `h`.
    bounds: Vec<u64>,
}

impl Title {
    /// What the player plays: a row of fetches per track, or one row if interleaved.
    pub(crate) fn timeline(&self, tracks: &[TrackNumber]) -> Timeline {
        let rows = if self.progressive { 1 } else { tracks.len() };
        let halves = self.halves();
        let durations = (0..self.fetches()).map(|fetch| {
            let steps = ((fetch + 1) * self.steps).min(halves) - fetch * self.steps;
            self.step * u32::try_from(steps).expect("bounded by the longest title")
        });
        let row = TrackTimeline::from_durations(durations);
        Timeline { tracks: vec![row; rows] }
    }

    /// Fetches in each row.
    pub(crate) fn fetches(&self) -> usize {
        self.halves().div_ceil(self.steps)
    }

    /// The bytes that fetch number `fetch` brings, of row `row` of the timeline of `tracks`.
    pub(crate) fn parts(&self, tracks: &[TrackNumber], row: usize, fetch: usize) -> Vec<Part> {
        let halves = fetch * self.steps..((fetch + 1) * self.steps).min(self.halves());
        let taken = if self.progressive { tracks } else { &tracks[row..=row] };
        taken
            .iter()
            .map(|&track| Part { track, bytes: self.tracks[usize::from(track)].bytes(&halves) })
            .filter(|part| !part.bytes.is_empty())
            .collect()
    }

    /// When fetch number `fetch` is played.
    pub(crate) fn starts(&self, fetch: usize) -> Duration {
        self.step * u32::try_from(fetch * self.steps).expect("bounded by the longest title")
    }

    /// The number of the fetch that brings a byte of a track.
    pub(crate) fn fetch_of(&self, track: TrackNumber, byte: u64) -> usize {
        let bounds = &self.tracks[usize::from(track)].bounds;
        (bounds.partition_point(|bound| *bound <= byte).max(1) - 1) / self.steps
    }

    /// The mean rates of the leanest and the richest offer.
    pub(crate) fn rates(&self) -> (BitRate, BitRate) {
        let rate = |offer: &Vec<TrackNumber>| {
            let bytes = offer.iter().map(|track| self.tracks[usize::from(*track)].total()).sum();
            BitRate::of(ByteCount(bytes), self.layout.duration)
        };
        let rates = || self.offers.iter().map(rate);
        (rates().min().expect("an offer"), rates().max().expect("an offer"))
    }

    /// A link that brings the largest fetch within `time`.
    pub(crate) fn link_for(&self, time: Duration) -> BitRate {
        let fetches = (0..self.fetches()).flat_map(|fetch| {
            let rows = if self.progressive { 1 } else { self.offers[0].len() };
            (0..rows).map(move |row| self.parts(&self.offers[0], row, fetch))
        });
        let bytes = fetches.map(|parts| bytes_of(&parts)).max().unwrap_or(0);
        BitRate::of(ByteCount(bytes), time).max(SLOWEST_LINK)
    }

    /// As it lies on this disk, if it does.
    pub(crate) fn layout_on(&self, disk: usize) -> Option<&Layout> {
        let all = std::iter::once(&self.layout).chain(&self.copies);
        all.map(Arc::as_ref).find(|layout| usize::from(layout.disk.0) == disk)
    }

    fn halves(&self) -> usize {
        self.tracks[0].bounds.len() - 1
    }
}

impl Bounds {
    fn bytes(&self, halves: &Range<usize>) -> Range<u64> {
        self.bounds[halves.start]..self.bounds[halves.end]
    }

    fn total(&self) -> u64 {
        *self.bounds.last().expect("there is a bound more than there are halves")
    }

    /// Per piece, the milliseconds at which the first fetch that touches it starts.
    fn due(&self, piece: u64, steps: usize, step: Duration) -> Vec<u32> {
        let pieces = self.total().div_ceil(piece);
        let due = |number: u64| {
            let half = self.bounds.partition_point(|bound| *bound <= number * piece) - 1;
            let fetch_starts = half / steps * steps;
            u32::try_from(fetch_starts as u128 * step.as_millis()).expect("at most a day")
        };
        (0..pieces).map(due).collect()
    }
}

/// Bytes of all parts.
pub(crate) fn bytes_of(parts: &[Part]) -> u64 {
    parts.iter().map(|part| part.bytes.end - part.bytes.start).sum()
}

/// All titles of a world, spread over its disks.
pub(crate) fn make(
    scenario: &Scenario,
    capacities: &[u64],
    chance: &mut fastrand::Rng,
) -> Vec<Title> {
    let mut places: Vec<FreeSpace> = capacities
        .iter()
        .map(|&capacity| FreeSpace {
            next: 0,
            gap: capacity / (u64::from(scenario.titles.count) * 16),
        })
        .collect();
    (0..scenario.titles.count)
        .map(|number| {
            let disk = chance.usize(..scenario.disks.len());
            let key = TitleKey(u64::from(number));
            let mut title = make_one(scenario, key, disk, &mut places[disk], chance);
            let wanted = scenario.titles.copies;
            if wanted > 0.0 && places.len() > 1 && chance.f64() < wanted {
                let other = (disk + chance.usize(1..places.len())) % places.len();
                let copy = copy_of(&title.layout, other, &mut places[other], chance);
                title.copies.push(Arc::new(copy));
            }
            title
        })
        .collect()
}

/// Lays a title out on another disk, in pieces of equal size.
fn copy_of(
    layout: &Layout,
    disk: usize,
    places: &mut FreeSpace,
    chance: &mut fastrand::Rng,
) -> Layout {
    let tracks = layout.tracks.iter().map(|track| {
        let bytes = track.runs.iter().map(|run| run.end - run.start).sum();
        TrackLayout {
            bytes: track.bytes,
            piece: track.piece,
            runs: places.take(bytes, track.piece.into(), chance),
            due: track.due.clone(),
            stored: track.stored.clone(),
            times: OnceLock::new(),
        }
    });
    let disk = DiskNumber(u16::try_from(disk).expect("few disks"));
    Layout { title: layout.title, disk, duration: layout.duration, tracks: tracks.collect() }
}

fn make_one(
    scenario: &Scenario,
    title: TitleKey,
    disk: usize,
    places: &mut FreeSpace,
    chance: &mut fastrand::Rng,
) -> Title {
    let wanted = &scenario.titles;
    let progressive = chance.f64() < wanted.progressive;
    let steps = if progressive { PROGRESSIVE_STEPS } else { steps(wanted.segment) };
    let halves = steps_between(wanted.shortest, wanted.longest, chance);
    let rate = chance.u64(wanted.slowest.0..=wanted.fastest.0);
    let sums = if chance.f64() < wanted.tiny {
        vec![tiny(chance), tiny(chance)]
    } else {
        let mut sums = vec![video(rate, halves, chance), audio(halves, chance)];
        if chance.f64() < wanted.ladders {
            sums.push(video(rate * 2 / 5, halves, chance));
        }
        sums
    };
    let part =
        (wanted.parts > 0.0 && chance.f64() < wanted.parts).then(|| PlayedPart::draw(chance));
    let step = part.as_ref().map_or(STEP, |part| STEP * part.quarters / 4);
    let offers = if sums.len() > 2 { vec![vec![0, 1], vec![2, 1]] } else { vec![vec![0, 1]] };
    let layouts = sums
        .iter()
        .enumerate()
        .map(|(number, sum)| {
            let most = largest_read(scenario, disk);
            let piece = piece_size(most, number == AUDIO, chance);
            let size = u64::from(piece);
            let count = u32::try_from(sum.total().div_ceil(size)).expect("few pieces");
            let stored = part.as_ref().map_or_else(Vec::new, |part| part.pieces(count));
            let all = stored.iter().max().map_or(0, |last| (u64::from(*last) + 1) * size);
            TrackLayout {
                bytes: sum.total(),
                piece,
                runs: places.take(align_up(sum.total(), BLOCK).max(all), size, chance),
                due: sum.due(size, steps, step),
                stored,
                times: OnceLock::new(),
            }
        })
        .collect();
    let seconds = step * u32::try_from(sums[0].bounds.len() - 1).expect("at most a day");
    let disk = DiskNumber(u16::try_from(disk).expect("few disks"));
    Title {
        layout: Arc::new(Layout { title, disk, duration: seconds, tracks: layouts }),
        copies: Vec::new(),
        offers,
        progressive,
        steps,
        step,
        segments: Arc::new(segments(&sums, steps, step)),
        tracks: sums,
        withdrawn: false,
    }
}

/// The title in fetches of `steps` half seconds, each of which is shown for `step`.
fn segments(tracks: &[Bounds], steps: usize, step: Duration) -> Segments {
    let starts = |track: &Bounds| {
        let halves = track.bounds.len() - 1;
        let fetches = (0..halves).step_by(steps).chain([halves]);
        fetches.map(|half| track.bounds[half]).collect()
    };
    let length = step * u32::try_from(steps).expect("bounded by the longest title");
    Segments { length, starts: tracks.iter().map(starts).collect() }
}

/// What of a title is played, and how fast.
struct PlayedPart {
    apart: u32,
    backwards: bool,
    /// How long something is shown, in quarters of its own time.
    quarters: u32,
}

impl PlayedPart {
    fn draw(chance: &mut fastrand::Rng) -> Self {
        let quarters = [1, 2, 4, 8][chance.usize(..4)];
        Self { apart: chance.u32(1..=4), backwards: chance.bool(), quarters }
    }

    /// Which of the stored pieces the `count` are that are played.
    fn pieces(&self, count: u32) -> Vec<u32> {
        let forwards = (0..count).map(|piece| piece * self.apart);
        if self.backwards { forwards.rev().collect() } else { forwards.collect() }
    }
}

/// Scenes of log-normal activity that remember the scene before, with some noise in each half
/// second and a burst now and then.
fn video(rate: u64, halves: usize, chance: &mut fastrand::Rng) -> Bounds {
    let mean = rate as f64 / 8.0 * STEP.as_secs_f64();
    let (mut level, mut left, mut end) = (normal(chance), 0, 0.0);
    let mut bounds = vec![0];
    for _ in 0..halves {
        if left == 0 {
            left = 2 + chance.usize(..2 * SCENE_STEPS);
            level = 0.5 * level + 0.87 * normal(chance);
        }
        left -= 1;
        let burst = if chance.u8(..) < 8 { 2.5 } else { 1.0 };
        end += (mean * burst * (0.35 * level + 0.15 * normal(chance)).exp()).max(200.0);
        bounds.push(whole(end));
    }
    Bounds { bounds }
}

fn audio(halves: usize, chance: &mut fastrand::Rng) -> Bounds {
    let half = chance.u64(64_000..=256_000) / 16;
    Bounds { bounds: (0..=halves as u64).map(|h| h * half).collect() }
}

fn tiny(chance: &mut fastrand::Rng) -> Bounds {
    Bounds { bounds: vec![0, chance.u64(1..5000)] }
}

/// The sum of twelve uniform numbers: near enough to normal, and the same on every machine.
fn normal(chance: &mut fastrand::Rng) -> f64 {
    (0..12).map(|_| chance.f64()).sum::<f64>() - 6.0
}

/// The largest read of a disk; where titles may have replicas, the largest that all disks allow.
fn largest_read(scenario: &Scenario, disk: usize) -> u32 {
    let all = scenario.disks.iter().map(|disk| disk.read_size.0).min();
    let one = scenario.disks[disk].read_size.0;
    let most = if scenario.titles.copies > 0.0 { all.unwrap_or(one) } else { one };
    u32::try_from(most).expect("at most 64 MiB")
}

fn piece_size(most: u32, audio: bool, chance: &mut fastrand::Rng) -> u32 {
    let wanted = if audio { 32 << 10 } else { most >> chance.u32(..3) };
    wanted.clamp(32 << 10, most)
}

fn steps(time: Duration) -> usize {
    usize::try_from(time.as_millis() / STEP.as_millis()).unwrap_or(usize::MAX).max(1)
}

fn steps_between(least: Duration, most: Duration, chance: &mut fastrand::Rng) -> usize {
    chance.usize(steps(least)..=steps(most))
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "bytes of a title")]
fn whole(bytes: f64) -> u64 {
    bytes as u64
}

/// Free space of a disk, given away from its start on, with holes of chance between.
struct FreeSpace {
    next: u64,
    gap: u64,
}

impl FreeSpace {
    /// One to three runs; none but the last ends within a piece.
    fn take(&mut self, bytes: u64, piece: u64, chance: &mut fastrand::Rng) -> Vec<Range<u64>> {
        let pieces = bytes.div_ceil(piece);
        let first = chance.u64(1..=pieces);
        let second = chance.u64(first..=pieces);
        let ends = if chance.bool() { vec![pieces] } else { vec![first, second, pieces] };
        let mut runs = Vec::new();
        let mut from = 0;
        for end in ends.into_iter().map(|end| (end * piece).min(bytes)) {
            if end > from {
                runs.push(self.place(end - from, chance));
            }
            from = end;
        }
        runs
    }

    fn place(&mut self, bytes: u64, chance: &mut fastrand::Rng) -> Range<u64> {
        let start = align_up(self.next + chance.u64(..=self.gap), CHUNK);
        self.next = align_up(start + bytes, CHUNK);
        start..start + bytes
    }
}

/// The grain of media time.
pub(crate) const STEP: Duration = Duration::from_millis(500);

/// Interleaved about every second, as `media` writes its progressive files.
const PROGRESSIVE_STEPS: usize = 2;

/// Nobody's network is slower, unless drawn so.
const SLOWEST_LINK: BitRate = BitRate(20_000_000);

/// Scenes last about eight seconds.
const SCENE_STEPS: usize = 16;

/// The number of the audio track.
const AUDIO: usize = 1;

/// The tail of a track is padded to whole blocks.
const BLOCK: u64 = 4096;

/// Extents begin on chunks of the store.
const CHUNK: u64 = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fetches_cover_each_track_once_and_pieces_are_due_when_first_touched() {
        for seed in 0..50 {
            let mut chance = fastrand::Rng::with_seed(seed);
            let mut scenario = Scenario::default();
            scenario.titles.tiny = 0.2;
            for title in make(&scenario, &[1 << 40], &mut chance) {
                let all: Vec<TrackNumber> = title.offers[0].clone();
                let rows = title.timeline(&all).tracks.len();
                for (number, track) in
                    all.iter().map(|n| (*n, &title.layout.tracks[usize::from(*n)]))
                {
                    let mut next = 0;
                    for fetch in 0..title.fetches() {
                        let parts = (0..rows).flat_map(|row| title.parts(&all, row, fetch));
                        for part in parts.filter(|part| part.track == number) {
                            assert_eq!(part.bytes.start, next, "seed {seed}");
                            assert_eq!(title.fetch_of(number, next), fetch, "seed {seed}");
                            next = part.bytes.end;
                            let piece =
                                usize::try_from((next - 1) / u64::from(track.piece)).unwrap();
                            let starts = title.steps * fetch * 500;
                            assert!(track.due[piece] as usize <= starts, "seed {seed}");
                        }
                    }
                    assert_eq!(next, track.bytes, "seed {seed}");
                    assert!(track.due.is_sorted());
                    let run_bytes: u64 = track.runs.iter().map(|run| run.end - run.start).sum();
                    assert_eq!(run_bytes, align_up(track.bytes, BLOCK), "seed {seed}");
                }
            }
        }
    }
}
