//! Random titles: bytes per step of half a second, with scenes and peaks as in films, divided into
//! pieces for the disk and into segments for the player.
//!
//! ```text
//!   track bytes   |0 · · · · · · · ·|· · · · · ·|· · · · · · · ·     bounds[s]: first byte
//!   fetches       ├── segment 0 ────┼─ segment 1┼─ segment 2 ──       what a player asks for
//!   pieces        ├───┼───┼───┼───┼───┼───┼───┼───┼───┼───┼──         what the disk reads
//!                   0   0   0   0   0   4s  4s  8s ...                due
//! ```
//!
//! `bounds` has one entry per step and one more. A piece is due when the first segment that touches
//! it starts.

use crate::checks::Segments;
use crate::scenario::Scenario;
use engine::{DiskNumber, Layout, Lead, Part, TitleKey, TrackLayout, TrackNumber};
use player::{Timeline, TrackTimeline};
use std::ops::Range;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use units::{BitRate, ByteCount, Moment, align_up};

/// A title as the world knows it.
#[derive(Debug)]
pub(crate) struct Title {
    pub(crate) layout: Arc<Layout>,
    /// Layouts of the title's replicas on other disks.
    pub(crate) copies: Vec<Arc<Layout>>,
    /// Tracks of each offer, the best offer first.
    pub(crate) offers: Vec<Vec<TrackNumber>>,
    /// The title is fetched as one interleaved file.
    pub(crate) progressive: bool,
    steps_per_fetch: usize,
    /// Play-out time of a step.
    step: Duration,
    tracks: Vec<TrackBytes>,
    /// The segments that its player requests.
    pub(crate) segments: Arc<Segments>,
    /// The title was removed from the library; no new session may play it.
    pub(crate) withdrawn: bool,
    /// The title is being recorded; `None`: it is complete.
    growth: Option<GrowingOffer>,
}

/// What is offered of a title while it is recorded.
///
/// ```text
///   recorded   |· · · · · · · · · · · ·|           a step each half second
///   pieces     ├───┼───┼───┼───┼───┼───            whole ones can be read
///   offered    ├── fetch 0 ──┼─ fetch 1 ─┤         all of its pieces are whole
/// ```
#[derive(Debug)]
struct GrowingOffer {
    /// By fetch: when it is offered first. The last few are offered with the end of the recording.
    offered_at: Vec<Moment>,
    /// By number of fetches, from one on: the layout of what is offered then.
    layouts: Vec<Arc<Layout>>,
}

/// The bytes of a track by time.
#[derive(Debug)]
struct TrackBytes {
    /// `bounds[s]..bounds[s + 1]` are the bytes of step `s`.
    bounds: Vec<u64>,
}

impl Title {
    /// The timeline of a player: a row of fetches for each track, or one row if interleaved.
    pub(crate) fn timeline(&self, tracks: &[TrackNumber]) -> Timeline {
        let rows = if self.progressive { 1 } else { tracks.len() };
        let durations = (0..self.fetches()).map(|fetch| {
            self.step
                * u32::try_from(self.steps_of(fetch).len()).expect("bounded by the longest title")
        });
        let row = TrackTimeline::from_durations(durations);
        Timeline { tracks: vec![row; rows] }
    }

    /// Number of fetches in each row.
    pub(crate) fn fetches(&self) -> usize {
        self.steps().div_ceil(self.steps_per_fetch)
    }

    /// The bytes of fetch number `fetch` in row `row` of the timeline of `tracks`.
    pub(crate) fn parts(&self, tracks: &[TrackNumber], row: usize, fetch: usize) -> Vec<Part> {
        let steps = self.steps_of(fetch);
        let tracks_of_row = if self.progressive { tracks } else { &tracks[row..=row] };
        tracks_of_row
            .iter()
            .map(|&track| Part { track, bytes: self.tracks[usize::from(track)].bytes(&steps) })
            .filter(|part| !part.bytes.is_empty())
            .collect()
    }

    /// Whether only a part of it is offered at some time.
    pub(crate) fn grows(&self) -> bool {
        self.growth.is_some()
    }

    /// Number of fetches of each row that are offered at a time.
    pub(crate) fn offered(&self, now: Moment) -> usize {
        match &self.growth {
            None => self.fetches(),
            Some(growth) => growth.offered_at.partition_point(|at| *at <= now),
        }
    }

    /// When all of it is recorded; `None` for a title that is complete from the beginning.
    pub(crate) fn recorded_at(&self) -> Option<Moment> {
        self.growth.as_ref()?.offered_at.last().copied()
    }

    /// When a fetch is offered first.
    pub(crate) fn offered_at(&self, fetch: usize) -> Moment {
        self.growth.as_ref().map_or(Moment::ZERO, |growth| growth.offered_at[fetch])
    }

    /// The layout of so many fetches, at least one.
    pub(crate) fn layout_of(&self, fetches: usize) -> &Arc<Layout> {
        self.growth.as_ref().map_or(&self.layout, |growth| &growth.layouts[fetches - 1])
    }

    /// Media time at which fetch number `fetch` starts.
    pub(crate) fn fetch_start(&self, fetch: usize) -> Duration {
        self.step
            * u32::try_from(fetch * self.steps_per_fetch).expect("bounded by the longest title")
    }

    /// The number of the fetch that brings a byte of a track.
    pub(crate) fn fetch_of(&self, track: TrackNumber, byte: u64) -> usize {
        let bounds = &self.tracks[usize::from(track)].bounds;
        (bounds.partition_point(|bound| *bound <= byte).max(1) - 1) / self.steps_per_fetch
    }

    /// The mean rate of the offer with the lowest rate.
    pub(crate) fn lowest_rate(&self) -> BitRate {
        let rate = |offer: &Vec<TrackNumber>| {
            let bytes = offer.iter().map(|track| self.tracks[usize::from(*track)].total()).sum();
            BitRate::of(ByteCount(bytes), self.layout.duration)
        };
        self.offers.iter().map(rate).min().expect("at least one offer")
    }

    /// The rate of a link that carries the largest fetch within `time`.
    pub(crate) fn link_for(&self, time: Duration) -> BitRate {
        let fetches = (0..self.fetches()).flat_map(|fetch| {
            let rows = if self.progressive { 1 } else { self.offers[0].len() };
            (0..rows).map(move |row| self.parts(&self.offers[0], row, fetch))
        });
        let bytes = fetches.map(|parts| byte_count(&parts)).max().unwrap_or(0);
        BitRate::of(ByteCount(bytes), time).max(SLOWEST_LINK)
    }

    /// Layout of the title on a disk, if the disk has a copy.
    pub(crate) fn layout_on(&self, disk: usize) -> Option<&Layout> {
        let all = std::iter::once(&self.layout).chain(&self.copies);
        all.map(Arc::as_ref).find(|layout| usize::from(layout.disk.0) == disk)
    }

    fn steps(&self) -> usize {
        self.tracks[0].bounds.len() - 1
    }

    /// The steps of a fetch; the last fetch may have fewer.
    fn steps_of(&self, fetch: usize) -> Range<usize> {
        let start = fetch * self.steps_per_fetch;
        start..(start + self.steps_per_fetch).min(self.steps())
    }
}

impl TrackBytes {
    fn bytes(&self, steps: &Range<usize>) -> Range<u64> {
        self.bounds[steps.start]..self.bounds[steps.end]
    }

    fn total(&self) -> u64 {
        *self.bounds.last().expect("there is one bound more than there are steps")
    }

    /// Time in milliseconds at which each piece is due: the start of the first fetch that touches
    /// it.
    fn due(&self, piece: u64, lead: Lead, steps_per_fetch: usize, step: Duration) -> Vec<u32> {
        let total = self.total();
        let mut starts: Vec<u64> =
            (0..total.div_ceil(piece)).map(|number| number * piece).collect();
        if lead.end > 0 {
            starts[1] = lead.middle;
            if lead.end < total && !lead.end.is_multiple_of(piece) {
                starts.push(lead.end);
                starts.sort_unstable();
            }
        }
        let due = |start: u64| {
            let first_step = self.bounds.partition_point(|bound| *bound <= start) - 1;
            let fetch_start = first_step / steps_per_fetch * steps_per_fetch;
            u32::try_from(fetch_start as u128 * step.as_millis()).expect("at most a day")
        };
        starts.into_iter().map(due).collect()
    }

    /// Bytes up to the end of the first fetch that ends behind the first piece, in whole blocks, if
    /// those are four pieces at most. They are divided at the end of a fetch, where there is one
    /// that leaves no more than a piece behind it.
    fn lead(&self, piece: u64, steps_per_fetch: usize) -> Lead {
        let ends = self.bounds.iter().step_by(steps_per_fetch).skip(1);
        let ends: Vec<u64> = ends.map(|end| align_up(*end, BLOCK)).collect();
        let Some(end) = ends.iter().copied().find(|end| *end >= piece) else {
            return Lead::default();
        };
        if end == piece || end > 4 * piece {
            return Lead::default();
        }
        let middle = ends.into_iter().find(|middle| *middle <= piece && end - middle <= piece);
        Lead { middle: middle.unwrap_or(piece), end }
    }
}

/// Number of bytes of all parts.
pub(crate) fn byte_count(parts: &[Part]) -> u64 {
    parts.iter().map(|part| part.bytes.end - part.bytes.start).sum()
}

/// Draws all titles of a world and lays them out on its disks.
pub(crate) fn draw_library(
    scenario: &Scenario,
    capacities: &[u64],
    rng: &mut fastrand::Rng,
) -> Vec<Title> {
    let mut free: Vec<FreeSpace> = capacities
        .iter()
        .map(|&capacity| FreeSpace {
            next: 0,
            // A title has at most nine runs on a disk (three tracks of three runs), so that the
            // gaps of all titles together take at most 9/16 of it.
            largest_gap: capacity / (u64::from(scenario.titles.count) * 16),
        })
        .collect();
    (0..scenario.titles.count)
        .map(|number| {
            let disk = rng.usize(..scenario.disks.len());
            let key = TitleKey(u64::from(number));
            let mut title = draw_title(scenario, key, disk, &mut free[disk], rng);
            let share = scenario.titles.copies;
            if share > 0.0 && free.len() > 1 && rng.f64() < share {
                // Any disk but the title's own.
                let other = (disk + rng.usize(1..free.len())) % free.len();
                let copy = copy_of(&title.layout, other, &mut free[other], rng);
                title.copies.push(Arc::new(copy));
            }
            title
        })
        .collect()
}

/// Lays a title out on another disk, in pieces of equal size.
fn copy_of(layout: &Layout, disk: usize, free: &mut FreeSpace, rng: &mut fastrand::Rng) -> Layout {
    let tracks = layout.tracks.iter().map(|track| {
        let bytes = track.runs.iter().map(|run| run.end - run.start).sum();
        TrackLayout {
            bytes: track.bytes,
            piece: track.piece,
            lead: track.lead,
            runs: free.allocate(bytes, unit(track.piece.into(), track.lead), rng),
            due: track.due.clone(),
            stored: track.stored.clone(),
            key_frames_of: None,
            times: OnceLock::new(),
        }
    });
    let disk = DiskNumber(u16::try_from(disk).expect("few disks"));
    Layout { title: layout.title, disk, duration: layout.duration, tracks: tracks.collect() }
}

/// What the extents of a track are multiples of: the pieces of a lead may meet where whole ones
/// would not.
fn unit(piece: u64, lead: Lead) -> u64 {
    if lead.end > 0 { 2 * piece } else { piece }
}

fn draw_title(
    scenario: &Scenario,
    title: TitleKey,
    disk: usize,
    free: &mut FreeSpace,
    rng: &mut fastrand::Rng,
) -> Title {
    let spec = &scenario.titles;
    let progressive = rng.f64() < spec.progressive;
    let steps_per_fetch = if progressive { PROGRESSIVE_STEPS } else { steps_in(spec.segment) };
    let steps = rng.usize(steps_in(spec.shortest)..=steps_in(spec.longest));
    let rate = rng.u64(spec.slowest.0..=spec.fastest.0);
    let tracks = if rng.f64() < spec.tiny {
        vec![tiny(rng), tiny(rng)]
    } else {
        let mut tracks = vec![video(rate, steps, rng), audio(steps, rng)];
        if rng.f64() < spec.ladders {
            tracks.push(video(rate * 2 / 5, steps, rng));
        }
        tracks
    };
    // Without the share nothing is drawn, so that worlds from before this feature keep their seed.
    let part = (spec.partial > 0.0 && rng.f64() < spec.partial).then(|| PlayedPart::draw(rng));
    let grows = spec.growing > 0.0 && !progressive && part.is_none() && steps > 1;
    let grows = grows && rng.f64() < spec.growing;
    let step = part.as_ref().map_or(STEP, |part| STEP * part.quarters / 4);
    let offers = if tracks.len() > 2 { vec![vec![0, 1], vec![2, 1]] } else { vec![vec![0, 1]] };
    let layouts = tracks
        .iter()
        .enumerate()
        .map(|(number, track)| {
            let largest = largest_read(scenario, disk);
            let piece = piece_size(largest, number == AUDIO, rng);
            let size = u64::from(piece);
            let count = u32::try_from(track.total().div_ceil(size)).expect("few pieces");
            let stored = part.as_ref().map_or_else(Vec::new, |part| part.pieces(count));
            // Pieces that are not played take space on the disk, too.
            let stored_bytes = stored.iter().max().map_or(0, |last| (u64::from(*last) + 1) * size);
            let cuts = spec.leads && !progressive && part.is_none() && !grows;
            let lead = if cuts { track.lead(size, steps_per_fetch) } else { Lead::default() };
            TrackLayout {
                bytes: track.total(),
                piece,
                lead,
                runs: free.allocate(
                    align_up(track.total(), BLOCK).max(stored_bytes),
                    unit(size, lead),
                    rng,
                ),
                due: track.due(size, lead, steps_per_fetch, step),
                stored,
                key_frames_of: None,
                times: OnceLock::new(),
            }
        })
        .collect();
    let duration = step * u32::try_from(tracks[0].bounds.len() - 1).expect("at most a day");
    let disk = DiskNumber(u16::try_from(disk).expect("few disks"));
    let layout = Arc::new(Layout { title, disk, duration, tracks: layouts });
    let growth = grows.then(|| GrowingOffer::draw(&layout, &tracks, steps_per_fetch, rng));
    Title {
        layout,
        copies: Vec::new(),
        offers,
        progressive,
        steps_per_fetch,
        step,
        segments: Arc::new(segments(&tracks, steps_per_fetch, step)),
        tracks,
        withdrawn: false,
        growth,
    }
}

impl GrowingOffer {
    /// Draws how much was recorded before the world begins: at least one fetch, at most all.
    fn draw(
        whole: &Layout,
        tracks: &[TrackBytes],
        steps_per_fetch: usize,
        rng: &mut fastrand::Rng,
    ) -> Self {
        let steps = tracks[0].bounds.len() - 1;
        let fetches = steps.div_ceil(steps_per_fetch);
        // The bytes of a track up to the end of a fetch, in whole pieces.
        let bytes = |track: usize, fetch: usize| {
            let end = ((fetch + 1) * steps_per_fetch).min(steps);
            let piece = u64::from(whole.tracks[track].piece);
            align_up(tracks[track].bounds[end], piece).min(tracks[track].total())
        };
        // The steps that are recorded when a fetch is offered.
        let recorded = |fetch: usize| {
            let ends = tracks.iter().enumerate().map(|(number, track)| {
                track.bounds.partition_point(|bound| *bound < bytes(number, fetch))
            });
            ends.max().expect("there are tracks")
        };
        let before = rng.usize(recorded(0)..=steps);
        let later = |fetch: usize| u32::try_from(recorded(fetch).saturating_sub(before));
        let at = |fetch| Moment::ZERO + STEP * later(fetch).expect("at most a day");
        let layout = |fetch: usize| {
            let part = |(number, track): (usize, &TrackLayout)| {
                let bytes = bytes(number, fetch);
                let pieces = usize::try_from(bytes.div_ceil(track.piece.into()));
                let due = track.due[..pieces.expect("few pieces")].to_vec();
                TrackLayout {
                    bytes,
                    piece: track.piece,
                    lead: track.lead,
                    runs: track.runs.clone(),
                    due,
                    stored: Vec::new(),
                    key_frames_of: None,
                    times: OnceLock::new(),
                }
            };
            let end = ((fetch + 1) * steps_per_fetch).min(steps);
            let duration = STEP * u32::try_from(end).expect("at most a day");
            let tracks = whole.tracks.iter().enumerate().map(part).collect();
            Arc::new(Layout { title: whole.title, disk: whole.disk, duration, tracks })
        };
        Self {
            offered_at: (0..fetches).map(at).collect(),
            layouts: (0..fetches).map(layout).collect(),
        }
    }
}

/// The segments of a title: `steps_per_fetch` steps each, with a play-out time of `step` per step.
fn segments(tracks: &[TrackBytes], steps_per_fetch: usize, step: Duration) -> Segments {
    let starts = |track: &TrackBytes| {
        let steps = track.bounds.len() - 1;
        let fetches = (0..steps).step_by(steps_per_fetch).chain([steps]);
        fetches.map(|step| track.bounds[step]).collect()
    };
    let length = step * u32::try_from(steps_per_fetch).expect("bounded by the longest title");
    Segments { length, starts: tracks.iter().map(starts).collect() }
}

/// The part of a title that is played, and its speed.
struct PlayedPart {
    /// Every `stride`-th stored piece is played.
    stride: u32,
    backwards: bool,
    /// Play-out time of a step, in quarters of its normal time.
    quarters: u32,
}

impl PlayedPart {
    fn draw(rng: &mut fastrand::Rng) -> Self {
        let quarters = [1, 2, 4, 8][rng.usize(..4)];
        Self { stride: rng.u32(1..=4), backwards: rng.bool(), quarters }
    }

    /// Numbers of the stored pieces that are played, `count` of them.
    fn pieces(&self, count: u32) -> Vec<u32> {
        let forwards = (0..count).map(|piece| piece * self.stride);
        if self.backwards { forwards.rev().collect() } else { forwards.collect() }
    }
}

/// Draws a video track: scenes of log-normal activity, each correlated with the one before, with
/// noise in each step and occasional bursts.
fn video(rate: u64, steps: usize, rng: &mut fastrand::Rng) -> TrackBytes {
    let mean = rate as f64 / 8.0 * STEP.as_secs_f64();
    let (mut level, mut left, mut end) = (normal(rng), 0, 0.0);
    let mut bounds = vec![0];
    for _ in 0..steps {
        if left == 0 {
            left = 2 + rng.usize(..2 * SCENE_STEPS);
            // The squares of the two weights add up to one: the variance stays that of `normal`.
            level = 0.5 * level + 0.87 * normal(rng);
        }
        left -= 1;
        // One step in 32 on average is a burst.
        let burst = if rng.u8(..) < 8 { 2.5 } else { 1.0 };
        // The lower bound keeps every fetch of video from being empty: an empty fetch would not
        // reach the engine.
        end += (mean * burst * (0.35 * level + 0.15 * normal(rng)).exp()).max(200.0);
        bounds.push(whole(end));
    }
    TrackBytes { bounds }
}

fn audio(steps: usize, rng: &mut fastrand::Rng) -> TrackBytes {
    // Bits per second divided by 16 are bytes per step of half a second.
    let bytes_per_step = rng.u64(64_000..=256_000) / 16;
    TrackBytes { bounds: (0..=steps as u64).map(|step| step * bytes_per_step).collect() }
}

fn tiny(rng: &mut fastrand::Rng) -> TrackBytes {
    // One step that is smaller than the smallest piece, so that the track is one incomplete read.
    TrackBytes { bounds: vec![0, rng.u64(1..5000)] }
}

/// Draws a nearly normal number as the sum of twelve uniform ones, which is equal on every machine.
fn normal(rng: &mut fastrand::Rng) -> f64 {
    (0..12).map(|_| rng.f64()).sum::<f64>() - 6.0
}

/// The largest read of a disk; where titles may have replicas, the largest that all disks allow.
fn largest_read(scenario: &Scenario, disk: usize) -> u32 {
    let of_all = scenario.disks.iter().map(|disk| disk.read_size.0).min();
    let of_disk = scenario.disks[disk].read_size.0;
    let largest = if scenario.titles.copies > 0.0 { of_all.unwrap_or(of_disk) } else { of_disk };
    u32::try_from(largest).expect("at most 64 MiB")
}

fn piece_size(largest: u32, is_audio: bool, rng: &mut fastrand::Rng) -> u32 {
    // Tracks with different piece sizes share a disk: the largest read, a half or a quarter of it.
    let size = if is_audio { 32 << 10 } else { largest >> rng.u32(..3) };
    size.clamp(32 << 10, largest)
}

fn steps_in(time: Duration) -> usize {
    usize::try_from(time.as_millis() / STEP.as_millis()).unwrap_or(usize::MAX).max(1)
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "bytes of a title")]
fn whole(bytes: f64) -> u64 {
    bytes as u64
}

/// Free space of a disk, allocated from its start, with random gaps between the runs.
struct FreeSpace {
    next: u64,
    largest_gap: u64,
}

impl FreeSpace {
    /// Allocates one to three runs; only the last one may end within a piece.
    fn allocate(&mut self, bytes: u64, piece: u64, rng: &mut fastrand::Rng) -> Vec<Range<u64>> {
        let pieces = bytes.div_ceil(piece);
        let first = rng.u64(1..=pieces);
        let second = rng.u64(first..=pieces);
        let ends = if rng.bool() { vec![pieces] } else { vec![first, second, pieces] };
        let mut runs = Vec::new();
        let mut from = 0;
        for end in ends.into_iter().map(|end| (end * piece).min(bytes)) {
            if end > from {
                runs.push(self.allocate_run(end - from, rng));
            }
            from = end;
        }
        runs
    }

    fn allocate_run(&mut self, bytes: u64, rng: &mut fastrand::Rng) -> Range<u64> {
        let start = align_up(self.next + rng.u64(..=self.largest_gap), CHUNK);
        self.next = align_up(start + bytes, CHUNK);
        start..start + bytes
    }
}

/// The unit of media time.
pub(crate) const STEP: Duration = Duration::from_millis(500);

/// Progressive files are interleaved about every second, as `media` writes them.
const PROGRESSIVE_STEPS: usize = 2;

/// The lowest rate of a link, except for viewers drawn with a slow network.
const SLOWEST_LINK: BitRate = BitRate(20_000_000);

/// Mean length of a scene: about eight seconds.
const SCENE_STEPS: usize = 16;

/// Number of the audio track.
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
            let mut rng = fastrand::Rng::with_seed(seed);
            let mut scenario = Scenario::default();
            scenario.titles.tiny = 0.2;
            for title in draw_library(&scenario, &[1 << 40], &mut rng) {
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
                            let piece = track.piece_at(next - 1) as usize;
                            let start = title.steps_per_fetch * fetch * 500;
                            assert!(track.due[piece] as usize <= start, "seed {seed}");
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
