//! A crowd: as many viewers as a disk holds in steady state come within seconds, each for a title
//! of its own. How many are admitted, how long do they wait, and how many could it be at most?
//!
//! ```text
//!   steady state   CapacitySim           ─▶ N, the capacity that `tenuto plan` states
//!   crowd of N     the server's engine,  ─▶ admitted, start delays, late reads
//!                  a disk model
//!   bound          mechanics             ─▶ viewers that any schedule could start in that time
//! ```
//!
//! The bound counts what no scheduler that charges full revolutions can avoid. When `n` viewers
//! have started, each has been read for once, and the next read of each must be made before that
//! media is played. If one read of each covers `T` seconds of media, this takes
//!
//! ```text
//!   positioning(n) + n T × media rate / disk rate  ≤  T
//! ```
//!
//! and no first read can cover more than what is transferred by the last start. So `T` is at most
//! the time from the first arrival to the last start. Solved for `T` this is Lee and Srivastava's
//! service cycle (eq. 3).
//!
//! A viewer asks for its first byte at its start. After that the engine reads by its clock, as for
//! a player that takes everything when it is due.

use super::random::RandomSource;
use super::titles::{Clips, Track};
use crate::reproduce::{Cell, Report, Table};
use disk::{Costs, DiskModel, Head};
use meter::report::cell;
use scheduler::{CapacitySim, DiskTimings, PolicyKind, Resource, TrackPieces, sending_reserve};
use server::engine::{
    Action, AdmissionDecision, AdmitRequest, DiskGuarantee, DiskNumber, Engine, EngineConfig,
    Layout, MediaRequest, Part, ReadId, ReadOutcome, RequestId, SessionId, TitleKey, TrackLayout,
};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::RangeInclusive;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use units::{BitRate, ByteCount, Moment, align_up};

/// The disk, the titles and the promises of a study of crowds.
#[derive(Clone, Debug)]
pub struct CrowdStudy {
    /// The disk.
    pub model: DiskModel,
    /// Bytes of the largest read.
    pub read_size: ByteCount,
    /// Bytes of a piece of these titles: at most a read.
    pub piece: u32,
    /// Memory for buffers.
    pub memory: ByteCount,
    /// Mean rate of every title.
    pub rate: BitRate,
    /// Whether the rate varies as that of film does.
    pub variable: bool,
    /// Length of a segment.
    pub segment: Duration,
    /// From a viewer's admission until its first pieces must be in memory.
    pub startup: Duration,
    /// The longest time that a viewer waits for its admission.
    pub wait: Duration,
    /// All chance.
    pub seed: u64,
}

/// One crowd: who came, who was admitted, and what was possible.
#[derive(Clone, Debug)]
pub struct CrowdRun {
    /// The time in which all came.
    pub within: Duration,
    /// Viewers who came.
    pub came: u64,
    /// Viewers that any scheduler could start in that time, at most.
    pub bound: u64,
    /// What became of them.
    pub result: CrowdResult,
}

/// What became of a crowd.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CrowdResult {
    /// For each admitted viewer, the time from its arrival until all is in memory that is due at
    /// its start; in rising order.
    pub starts: Vec<Duration>,
    /// For each refused viewer, what was short.
    pub refused: Vec<Resource>,
    /// Reads that missed their deadlines, and guarantee violations.
    pub late: u64,
    /// Reads in all.
    pub reads: u64,
}

impl CrowdStudy {
    /// The viewers that the disk holds in steady state; see [`CapacitySim`].
    pub fn capacity(&self) -> u64 {
        let timings = self.timings();
        let (costs, span) = (timings.costs.as_ref(), self.model.capacity().0);
        let places = costs.map_or(Vec::new(), |costs| evenly_placed(costs, span, self.piece));
        let cut = if self.variable { self.cut(self.seed) } else { self.even_cut() };
        let pieces = usize::try_from(cut.bytes / u64::from(cut.piece)).unwrap_or(0);
        let followed = vec![true; pieces.saturating_sub(1)];
        let Cut { due, piece, lead, bytes } = &cut;
        let tracks = [TrackPieces {
            due,
            piece: *piece,
            bytes: *bytes,
            lead: *lead,
            transfer: &[],
            followed: &followed,
        }];
        let most = self.model.mean_rate().0 / self.rate.0.max(1);
        CapacitySim {
            policy: PolicyKind::TimeDomain,
            min_read: self.model.guaranteed_reads(self.read_size, SLOT),
            read_size: self.read_size.0,
            memory: self.memory.0,
            timings: &timings,
            slot: SLOT,
            startup: self.startup,
            tracks: &tracks,
            places: &[places],
            reserve: sending_reserve([self.piece]),
            narrows_sockets: true,
            arrivals: 0,
            patience: 0,
            filling: 0,
        }
        .filled_by(most)
        .run()
        .streams
    }

    /// What becomes of `viewers` who come within this time, at random.
    pub fn run(&self, viewers: u64, within: Duration) -> CrowdRun {
        let mut evening = Evening::new(self);
        evening.receive(self, 1..=viewers, within);
        evening.pass_until(evening.now + self.wait + FOLLOWED);
        CrowdRun {
            within,
            came: viewers,
            bound: self.bound(within).min(viewers),
            result: evening.end(),
        }
    }

    // The title of one viewer, at a place of its own.
    fn layout(&self, number: u64) -> Layout {
        let cut = self.cut(self.seed ^ number);
        let bytes = align_up(cut.bytes, ALIGNED);
        let room = u128::from(self.model.capacity().0.saturating_sub(bytes));
        let spread = u64::try_from((room * u128::from(number.wrapping_mul(GOLDEN))) >> 64);
        let place = spread.unwrap_or(0) / ALIGNED * ALIGNED;
        let track = TrackLayout {
            bytes: cut.bytes,
            piece: cut.piece,
            lead: cut.lead,
            runs: std::iter::once(place..place + bytes).collect(),
            due: cut.due,
            stored: Vec::new(),
            times: OnceLock::new(),
        };
        let (title, disk, tracks) = (TitleKey(number), DiskNumber(0), vec![track]);
        Layout { title, disk, duration: LENGTH, tracks }
    }

    /// The viewers that any scheduler could start who come within this time, at most.
    pub fn bound(&self, within: Duration) -> u64 {
        let time = (within + self.wait + self.startup).as_nanos() as f64;
        let costs = Costs::of_model(&self.model, self.read_size, self.depth());
        let share = self.rate.0 as f64 / self.model.mean_rate().0 as f64;
        let fits = |n: &u64| costs.positioning(*n) as f64 + *n as f64 * share * time <= time;
        (0..).take_while(fits).last().unwrap_or(0)
    }

    fn depth(&self) -> u32 {
        self.model.queue_depth(self.read_size)
    }

    fn timings(&self) -> DiskTimings {
        DiskTimings::of_model(&self.model, self.read_size, self.depth())
    }

    // A title of this seed, cut into pieces as the server cuts what it sends in segments.
    fn cut(&self, seed: u64) -> Cut {
        let mbps = self.rate.0 as f64 / 1e6;
        let track = match self.variable {
            true => Clips::one(mbps, LENGTH.as_secs_f64(), seed),
            false => Track::constant(mbps, LENGTH.as_secs_f64()),
        };
        let starts = segment_starts(&track, self.segment);
        let first = |byte: u64| starts.partition_point(|(start, _)| *start <= byte).max(1) - 1;
        let size = u64::from(self.piece);
        let end = starts.iter().skip(1).map(|(start, _)| *start).find(|end| *end >= size);
        let lead = align_up(end.unwrap_or(0), CHECKED);
        let step = usize::try_from(self.piece).unwrap_or(1).max(1);
        let mut pieces: Vec<u64> = (0..track.bytes()).step_by(step).collect();
        if !lead.is_multiple_of(size) {
            pieces.push(lead);
            pieces.sort_unstable();
        }
        // A piece is due with the first segment that has bytes of it.
        let due = pieces.into_iter().map(|byte| starts[first(byte)].1).collect();
        Cut { due, piece: self.piece, lead, bytes: track.bytes() }
    }

    // A title whose pieces are due as they play: what `tenuto plan --rate` counts.
    fn even_cut(&self) -> Cut {
        let lasts = ByteCount(self.piece.into()).time_at(self.rate).as_nanos();
        let pieces = PLANNED.as_nanos().div_ceil(lasts.max(1));
        let due_ms = |i: u128| u32::try_from(i * lasts / 1_000_000).unwrap_or(u32::MAX);
        let due: Vec<u32> = (0..pieces).map(due_ms).collect();
        Cut { bytes: due.len() as u64 * u64::from(self.piece), due, piece: self.piece, lead: 0 }
    }
}

/// The server's engine, one disk, and time.
struct Evening {
    engine: Engine,
    head: Head,
    random: RandomSource,
    now: Moment,
    reading: VecDeque<(Moment, ReadId, TitleKey, u64)>,
    /// Admitted viewers that have not asked for media, by their starts.
    asks: BTreeSet<(Moment, SessionId)>,
    /// The sessions of all admitted viewers.
    sessions: Vec<SessionId>,
    starting: BTreeMap<TitleKey, Starting>,
    result: CrowdResult,
}

/// A viewer whose first media is being read.
struct Starting {
    came: Moment,
    /// The viewer starts then, at the earliest.
    from: Moment,
    /// Pieces that are due at the start.
    left: u64,
    end: u64,
}

impl Evening {
    fn new(study: &CrowdStudy) -> Self {
        let (read_size, depth) = (study.read_size, study.depth());
        let guarantee = DiskGuarantee {
            min_read: study.model.guaranteed_reads(read_size, SLOT),
            read_size,
            longest_read: study.model.worst_read(read_size),
            queue_depth: depth,
        };
        let mut engine = Engine::new(EngineConfig {
            slot: SLOT,
            policy: PolicyKind::TimeDomain,
            startup: study.startup,
            buffers: study.memory,
            network: None,
            // Nobody leaves: a session that expired would make room that no viewer gave up.
            reservation_hold: LENGTH,
            idle_timeout: LENGTH,
            session_timeout: LENGTH,
            survive_loss: false,
            disks: vec![guarantee],
        });
        engine.set_timings(Moment::ZERO, DiskNumber(0), study.timings());
        Self {
            engine,
            head: study.model.head(),
            random: RandomSource::new(study.seed, TURNS),
            now: Moment::ZERO,
            reading: VecDeque::new(),
            asks: BTreeSet::new(),
            sessions: Vec::new(),
            starting: BTreeMap::new(),
            result: CrowdResult::default(),
        }
    }

    /// These viewers come at random times within this time from now, which then has passed.
    fn receive(&mut self, study: &CrowdStudy, numbers: RangeInclusive<u64>, within: Duration) {
        let (from, mut random) = (self.now, RandomSource::new(study.seed, ARRIVALS));
        let mut arrivals: Vec<Moment> =
            numbers.clone().map(|_| from + within.mul_f64(random.part())).collect();
        arrivals.sort_unstable();
        for (number, at) in numbers.zip(arrivals) {
            self.pass_until(at);
            self.arrive(at, Arc::new(study.layout(number)), study.wait);
        }
        self.pass_until(from + within);
    }

    fn arrive(&mut self, now: Moment, layout: Arc<Layout>, max_wait: Duration) {
        let title = layout.title;
        let track = &layout.tracks[0];
        let left = track.due.iter().take_while(|due| **due == 0).count() as u64;
        let end = track.start(u32::try_from(left).unwrap_or(u32::MAX));
        let request = AdmitRequest {
            layout,
            copies: Vec::new(),
            offers: vec![vec![0]],
            start: Duration::ZERO,
            max_wait,
            replaces: None,
        };
        match self.engine.admit(now, request) {
            AdmissionDecision::Admitted { session, wait, .. } => {
                self.sessions.push(session);
                self.asks.insert((now + wait, session));
                self.starting.insert(title, Starting { came: now, from: now + wait, left, end });
            }
            AdmissionDecision::Refused(refusal) => self.result.refused.extend(refusal.resource),
        }
        self.take_actions();
    }

    /// The disk reads, and slots pass, up to this time.
    fn pass_until(&mut self, until: Moment) {
        loop {
            let wakeup = self.engine.next_wakeup();
            let done = self.reading.front().map_or(Moment::MAX, |read| read.0);
            let asks = self.asks.first().map_or(Moment::MAX, |ask| ask.0);
            let next = wakeup.min(done).min(asks);
            if next > until {
                break;
            }
            self.now = next;
            if next == asks {
                self.ask();
            } else if next == done {
                self.read_done();
            } else {
                self.engine.tick(next);
            }
            self.take_actions();
        }
        self.now = until;
    }

    // A reservation whose viewer never asks for media may be given to another.
    fn ask(&mut self) {
        let Some((now, session)) = self.asks.pop_first() else { return };
        let parts = vec![Part { track: 0, bytes: 0..1 }];
        let media = MediaRequest { request: RequestId(session.0), session, parts };
        self.engine.request(now, media);
    }

    fn read_done(&mut self) {
        let Some((done, read, title, start)) = self.reading.pop_front() else { return };
        self.result.reads += 1;
        if let Some(viewer) = self.starting.get_mut(&title)
            && start < viewer.end
        {
            viewer.left -= 1;
            if viewer.left == 0 {
                let start = done.max(viewer.from);
                self.result.starts.push(start.since(viewer.came));
                self.starting.remove(&title);
            }
        }
        self.engine.read_done(done, read, ReadOutcome::Good);
    }

    fn take_actions(&mut self) {
        let mut actions = VecDeque::from(self.engine.take_actions());
        while let Some(action) = actions.pop_front() {
            match action {
                Action::Deliver { request, read, .. } => {
                    self.engine.sent(self.now, request, read);
                    actions.extend(self.engine.take_actions());
                }
                Action::Read { read, device_offset, len, title, start, .. } => {
                    let turn = self.random.part();
                    let service = self.head.serve_turned(self.now, device_offset, len.into(), turn);
                    let read = (service.finish, read, title, start);
                    // A solid-state disk may end a short read before a longer one that began
                    // before it.
                    let at = self.reading.partition_point(|other| other.0 <= read.0);
                    self.reading.insert(at, read);
                }
                Action::Ended { summary, .. } => {
                    self.result.late += summary.deadline_misses
                        + summary.violations_by_scheduler
                        + summary.violations_by_disk;
                }
                _ => {}
            }
        }
    }

    fn end(mut self) -> CrowdResult {
        for session in std::mem::take(&mut self.sessions) {
            self.engine.close(self.now, session);
        }
        self.take_actions();
        self.result.starts.sort_unstable();
        self.result
    }
}

/// The times in nanoseconds that a piece takes at places all over the first `span` bytes of a disk,
/// as a capacity simulation takes them.
pub fn evenly_placed(costs: &Costs, span: u64, piece: u32) -> Vec<[u32; 1]> {
    let room = u128::from(span.saturating_sub(piece.into()));
    let place = |i: u64| u64::try_from((room * u128::from(i.wrapping_mul(GOLDEN))) >> 64);
    let nanos = |at| u32::try_from(costs.transfer(at, piece.into())).unwrap_or(u32::MAX);
    (0..PLACES).map(|i| [place(i).map_or(u32::MAX, nanos)]).collect()
}

// First byte of each segment, and its start in milliseconds.
fn segment_starts(track: &Track, segment: Duration) -> Vec<(u64, u32)> {
    let (mut starts, mut next) = (Vec::new(), 0.0);
    for group in &track.groups {
        if track.at[*group] + 1e-9 >= next {
            let byte = group.checked_sub(1).map_or(0, |last| track.ends[last]);
            let ms = u32::try_from(Duration::from_secs_f64(track.at[*group]).as_millis());
            starts.push((byte, ms.unwrap_or(u32::MAX)));
            next += segment.as_secs_f64();
        }
    }
    starts
}

struct Cut {
    due: Vec<u32>,
    piece: u32,
    lead: u64,
    bytes: u64,
}

/// What became of crowds: for each, its name, its study and its run.
pub fn crowd_report(source: &str, runs: &[(String, CrowdStudy, CrowdRun)]) -> Report {
    let rows = runs.iter().map(|(disk, study, run)| {
        let CrowdResult { starts, refused, late, reads } = &run.result;
        let share = starts.len() as f64 / run.came.max(1) as f64;
        let start = |percent: usize| {
            // Starts are sorted; the index is clamped, so that the 100th percentile is the longest,
            // and an empty run has none.
            let at = starts.get((starts.len() * percent / 100).min(starts.len().max(1) - 1));
            at.map(|start| Cell::Number(start.as_secs_f64(), 1))
        };
        let short = |resource: Resource| refused.iter().filter(|of| **of == resource).count();
        [
            cell("disk", "disk", disk.as_str()),
            cell("titles", "titles", if study.variable { "variable" } else { "constant" }),
            cell("came", ">came", run.came),
            cell("within", ">within, s", run.within.as_secs()),
            cell("bound", ">possible", run.bound),
            cell("admitted", ">admitted", starts.len()),
            cell("share", ">share", Cell::Number(share, 3)),
            cell("start_p50", ">start p50, s", start(50)),
            cell("start_p99", ">p99", start(99)),
            cell("refused_disk", ">short of disk", short(Resource::Disk)),
            cell("refused_memory", ">of memory", short(Resource::Memory)),
            cell("reads", ">reads", *reads),
            cell("late", ">late", *late),
        ]
    });
    let study = runs.first().map(|(_, study, _)| study);
    let promised = study.map_or(String::new(), |study| {
        let [startup, wait] = [study.startup, study.wait].map(units::show_duration);
        format!("the start-up time is {startup}, and a viewer waits {wait} for admission at most")
    });
    Report {
        source: source.to_owned(),
        method: format!(
            "As many viewers as the disk holds in steady state (`tenuto plan`) come at random times \
             within so many seconds, each for a title of its own; {promised}. The server's engine \
             reads from a modelled disk with random rotational delays. A start is the time from \
             arrival until all that is due at the start is in memory. Possible: viewers that any \
             scheduler could start in that time, if it charges full revolutions and counts no other \
             constraint."
        ),
        tables: vec![Table::of("crowd", "Crowds", rows)],
        notes: Vec::new(),
        figures: Vec::new(),
    }
}

/// Length of the streams of a plan.
const PLANNED: Duration = Duration::from_secs(300);
/// Length of a title: much longer than the time in which a crowd comes.
const LENGTH: Duration = Duration::from_secs(600);
/// How long the admitted viewers are followed: several reads of each.
const FOLLOWED: Duration = Duration::from_secs(60);
const SLOT: Duration = Duration::from_millis(500);
/// Number of places of a piece.
const PLACES: u64 = 987;
/// The golden ratio of 2^64: its multiples, modulo that, fall evenly.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
/// Places of titles are whole chunks.
const ALIGNED: u64 = 1 << 20;
/// Bytes that have a checksum of their own: leads end at multiples.
const CHECKED: u64 = 64 << 10;
// Names of sources of chance.
const ARRIVALS: u64 = 7;
const TURNS: u64 = 8;

#[cfg(test)]
mod tests {
    use super::*;
    use server::engine::Disconnection;

    fn study(disk: &str, read_size: ByteCount, wait: u64) -> CrowdStudy {
        CrowdStudy {
            model: DiskModel::preset(disk).unwrap(),
            read_size,
            piece: u32::try_from(read_size.0).unwrap(),
            memory: ByteCount(4 << 30),
            rate: BitRate(5_000_000),
            variable: false,
            segment: Duration::from_secs(4),
            startup: Duration::from_secs(1),
            wait: Duration::from_secs(wait),
            seed: 1,
        }
    }

    #[test]
    fn a_house_comes_in_a_minute_and_most_of_it_in_ten_seconds() {
        // (disk, read in KiB, admitted at least: at once, in 10 s, in 60 s), in percent
        for (disk, read, least) in
            [("hdd-20tb", 4096, [73, 97, 100]), ("st39183w", 1024, [85, 100, 100])]
        {
            let study = study(disk, ByteCount(read << 10), 5);
            let came = study.capacity();
            for (within, percent) in [0, 10, 60].into_iter().zip(least) {
                let run = study.run(came, Duration::from_secs(within));
                let admitted = run.result.starts.len() as u64;
                let said = format!("{disk}: {admitted} of {came} within {within} s");
                assert_eq!(run.result.late, 0, "{said}");
                assert!(admitted * 100 >= came * percent, "{said}");
                assert!(admitted <= run.bound, "{said}, and {} are possible", run.bound);
                assert_eq!(admitted + run.result.refused.len() as u64, came, "{said}");
                let latest = run.result.starts.last().copied().unwrap_or_default();
                assert!(latest <= study.startup + study.wait, "{said}: {latest:?}");
            }
        }
    }

    impl CrowdStudy {
        /// What becomes of `viewers` who come at random times within this time, right after as many
        /// have left who had come within a minute. Those close their connections, or (`says_so`)
        /// end their sessions.
        fn run_after_departure(
            &self,
            viewers: u64,
            within: Duration,
            says_so: bool,
        ) -> CrowdResult {
            let mut evening = Evening::new(self);
            let minute = Duration::from_secs(60);
            evening.receive(self, 1..=viewers, minute);
            evening.pass_until(evening.now + self.wait + FOLLOWED);
            for session in std::mem::take(&mut evening.sessions) {
                if says_so {
                    evening.engine.end(evening.now, session);
                } else {
                    evening.engine.disconnected(evening.now, session, Disconnection::Left);
                }
            }
            evening.take_actions();
            // Late reads of those who have left count, their starts do not.
            evening.result = CrowdResult { late: evening.result.late, ..CrowdResult::default() };
            evening.receive(self, viewers + 1..=2 * viewers, within);
            evening.pass_until(evening.now + self.wait + FOLLOWED);
            evening.end()
        }
    }

    #[test]
    fn after_all_have_left_as_many_are_admitted_as_by_an_empty_server() {
        let within = Duration::from_secs(2);
        for (disk, read) in [("hdd-20tb", 4096), ("st39183w", 1024)] {
            let study = study(disk, ByteCount(read << 10), 5);
            let came = study.capacity();
            let empty = study.run(came, within).result.starts.len();
            for says_so in [true, false] {
                let again = study.run_after_departure(came, within, says_so);
                let said = format!("{disk}, says so: {says_so}: {} of {empty}", again.starts.len());
                assert_eq!(again.late, 0, "{said}");
                // Their titles are at other places than those of the empty server's viewers, which
                // makes a difference of a few.
                assert!((again.starts.len() + 1) * 100 >= empty * 95, "{said}");
            }
        }
    }

    #[test]
    fn the_bound_grows_with_the_time_to_the_last_start() {
        let bound = |wait| study("hdd-20tb", ByteCount(4 << 20), wait).bound(Duration::ZERO);
        assert_eq!([0, 1, 5].map(bound), [72, 122, 217]);
        // A solid-state disk positions nothing: nearly as many as it has bytes for.
        assert!(study("ssd-sata", ByteCount::MIB, 1).bound(Duration::ZERO) > 830);
    }
}
