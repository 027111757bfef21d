//! A crowd: as many viewers as a disk holds in steady state come within seconds, each for a title
//! of its own. How many are admitted, how long do they wait, and how many could it be at most?
//!
//! ```text
//!   steady state   CapacitySim           ─▶ N, the capacity for titles of this length
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
//! A player gets a segment as a whole, so that all of a first segment is in memory at its start.
//! With segments of `S` seconds
//!
//! ```text
//!   positioning(n) + n S × media rate / disk rate  ≤  the time to the last start
//! ```
//!
//! An overload that lasts is studied in the same way: more viewers than the disk holds come evenly,
//! and titles end while others come. What counts there is how long those wait who are admitted.
//!
//! A viewer asks for its first byte at its start. After that the engine reads by its clock, as for
//! a player that takes everything when it is due.

use super::random::RandomSource;
use super::titles::{Clips, Track};
use crate::reproduce::{Cell, Report, Table};
use disk::plan::evenly_placed;
use disk::{Costs, DiskModel, Head};
use engine::lead_of;
use engine::{
    Action, AdmissionDecision, AdmitRequest, DiskGuarantee, DiskNumber, Engine, EngineConfig,
    Layout, MaxWait, MediaRequest, Part, Priority, ReadId, ReadOutcome, RequestId, SessionId,
    TitleKey, TrackLayout,
};
use meter::report::cell;
use scheduler::{
    CapacitySim, DiskTimings, Lead, PolicyKind, Resource, TrackPieces, sending_reserve,
    viewers_of_copies,
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
    /// Rate of the sound track and bytes of its pieces, where the titles have one.
    pub sound: Option<(BitRate, u32)>,
    /// Length of a title.
    pub length: Duration,
    /// Length of a segment.
    pub segment: Duration,
    /// From a viewer's admission until its first pieces must be in memory.
    pub startup: Duration,
    /// The longest time that a viewer waits for its admission.
    pub wait: Duration,
    /// All chance.
    pub seed: u64,
}

/// When the viewers of a crowd come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CrowdArrivals {
    /// At random times within so long.
    Random(Duration),
    /// One after another, evenly within so long.
    Even(Duration),
}

/// One crowd: who came, who was admitted, and what was possible.
#[derive(Clone, Debug)]
pub struct CrowdRun {
    /// When all came.
    pub arrivals: CrowdArrivals,
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
    /// For each admitted viewer, the time from its arrival until all that is due at its start is in
    /// memory and may be sent; in rising order.
    pub starts: Vec<Duration>,
    /// For each refused viewer, what was short.
    pub refused: Vec<Resource>,
    /// Reads that missed their deadlines, and guarantee violations.
    pub late: u64,
    /// Reads in all.
    pub reads: u64,
}

impl CrowdArrivals {
    /// The time in which all come.
    pub fn within(self) -> Duration {
        match self {
            Self::Random(within) | Self::Even(within) => within,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Random(_) => "random",
            Self::Even(_) => "even",
        }
    }
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
            viewers: &viewers_of_copies(&tracks, &[places], costs),
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

    /// What becomes of `viewers` who come at these times.
    pub fn run(&self, viewers: u64, arrivals: CrowdArrivals) -> CrowdRun {
        CrowdRun {
            arrivals,
            came: viewers,
            bound: self.bound(arrivals.within()).min(viewers),
            result: self.receive(viewers, arrivals, &|number| self.layout(number)),
        }
    }

    /// What becomes of `viewers` who come at these times, each for the title of its number.
    pub(crate) fn receive(
        &self,
        viewers: u64,
        arrivals: CrowdArrivals,
        title: &dyn Fn(u64) -> Layout,
    ) -> CrowdResult {
        let mut evening = Evening::new(self);
        evening.receive(self, 1..=viewers, arrivals, title);
        evening.pass_until(evening.now + self.wait + FOLLOWED);
        evening.end()
    }

    // What the titles are like, in a word.
    fn titles(&self) -> &'static str {
        match (self.variable, self.sound) {
            (true, _) => "variable",
            (false, None) => "constant",
            (false, Some(_)) => "with sound",
        }
    }

    // The title of one viewer, at a place of its own.
    fn layout(&self, number: u64) -> Layout {
        let mut cuts = vec![self.cut(self.seed ^ number)];
        cuts.extend(self.sound.map(|(rate, piece)| {
            let track = Track::constant(rate.0 as f64 / 1e6, self.length.as_secs_f64());
            self.cut_track(&track, piece)
        }));
        let bytes = |cut: &Cut| align_up(cut.bytes, ALIGNED);
        let room = self.model.capacity().0.saturating_sub(cuts.iter().map(bytes).sum());
        let spread = (u128::from(room) * u128::from(number.wrapping_mul(GOLDEN))) >> 64;
        let mut place = u64::try_from(spread).unwrap_or(0) / ALIGNED * ALIGNED;
        let tracks = cuts.into_iter().map(|cut| {
            let begins = place;
            place += bytes(&cut);
            TrackLayout {
                bytes: cut.bytes,
                piece: cut.piece,
                lead: cut.lead,
                runs: std::iter::once(begins..place).collect(),
                due: cut.due,
                stored: Vec::new(),
                key_frames_of: None,
                times: OnceLock::new(),
            }
        });
        let (title, disk, tracks) = (TitleKey(number), DiskNumber(0), tracks.collect());
        Layout { title, disk, duration: self.length, tracks }
    }

    /// The viewers that any scheduler could start who come within this time, at most.
    pub fn bound(&self, within: Duration) -> u64 {
        let time = (within + self.wait + self.startup).as_nanos() as f64;
        let costs = Costs::of_model(&self.model, self.read_size, self.depth());
        let share = self.rate.0 as f64 / self.model.mean_rate().0 as f64;
        // First segments of a variable rate are of any size.
        let segment = if self.variable { 0.0 } else { self.segment.as_nanos() as f64 };
        let covered = time.max(segment);
        let fits = |n: &u64| costs.positioning(*n) as f64 + *n as f64 * share * covered <= time;
        (0..).take_while(fits).last().unwrap_or(0)
    }

    fn depth(&self) -> u32 {
        self.model.queue_depth(self.read_size)
    }

    fn timings(&self) -> DiskTimings {
        DiskTimings::of_model(&self.model, self.read_size, self.depth())
    }

    // The pictures of a title of this seed.
    fn cut(&self, seed: u64) -> Cut {
        let mbps = self.rate.0 as f64 / 1e6;
        let track = match self.variable {
            true => Clips::one(mbps, self.length.as_secs_f64(), seed),
            false => Track::constant(mbps, self.length.as_secs_f64()),
        };
        self.cut_track(&track, self.piece)
    }

    // A track, cut into pieces as the server cuts what it sends in segments.
    fn cut_track(&self, track: &Track, piece: u32) -> Cut {
        let starts = segment_starts(track, self.segment);
        let first = |byte: u64| starts.partition_point(|(start, _)| *start <= byte).max(1) - 1;
        let ends = starts.iter().skip(1).map(|(start, _)| *start);
        let lead = lead_of(ends, piece, true);
        let pieces = TrackPieces::of_size(track.bytes(), piece, lead);
        // A piece is due with the first segment that has bytes of it.
        let due = pieces.starts().map(|byte| starts[first(byte)].1).collect();
        Cut { due, piece, lead, bytes: track.bytes() }
    }

    // A title whose pieces are due as they play: what `tenuto plan --rate` counts.
    fn even_cut(&self) -> Cut {
        let lasts = ByteCount(self.piece.into()).time_at(self.rate).as_nanos();
        let pieces = PLANNED.as_nanos().div_ceil(lasts.max(1));
        let due_ms = |i: u128| u32::try_from(i * lasts / 1_000_000).unwrap_or(u32::MAX);
        let due: Vec<u32> = (0..pieces).map(due_ms).collect();
        Cut {
            bytes: due.len() as u64 * u64::from(self.piece),
            due,
            piece: self.piece,
            lead: Lead::default(),
        }
    }
}

/// The server's engine, one disk, and time.
struct Evening {
    engine: Engine,
    head: Head,
    random: RandomSource,
    now: Moment,
    reading: VecDeque<(Moment, ReadId, Place)>,
    /// Admitted viewers that have not asked for media, by their starts.
    asks: BTreeSet<(Moment, SessionId)>,
    /// The sessions of all admitted viewers.
    sessions: Vec<SessionId>,
    starting: BTreeMap<TitleKey, Starting>,
    result: CrowdResult,
}

/// The title, the track and the first byte of a read.
type Place = (TitleKey, u16, u64);

/// A viewer whose first media is being read.
struct Starting {
    came: Moment,
    /// The viewer starts then, at the earliest.
    from: Moment,
    /// Pieces that are due at the start.
    left: u64,
    /// Per track, the byte behind them.
    ends: Vec<u64>,
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
            reservation_hold: HELD,
            idle_timeout: HELD,
            session_timeout: HELD,
            survive_loss: false,
            fills: 0,
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

    /// These viewers come from now on, and the time in which they come has passed then.
    fn receive(
        &mut self,
        study: &CrowdStudy,
        numbers: RangeInclusive<u64>,
        arrivals: CrowdArrivals,
        title: &dyn Fn(u64) -> Layout,
    ) {
        let (from, mut random) = (self.now, RandomSource::new(study.seed, ARRIVALS));
        let viewers = numbers.clone().count() as f64;
        let mut times: Vec<Moment> = (0u32..)
            .zip(numbers.clone())
            .map(|(before, _)| match arrivals {
                CrowdArrivals::Random(within) => from + within.mul_f64(random.part()),
                CrowdArrivals::Even(within) => from + within.mul_f64(f64::from(before) / viewers),
            })
            .collect();
        times.sort_unstable();
        for (number, at) in numbers.zip(times) {
            self.pass_until(at);
            self.arrive(at, Arc::new(title(number)), study);
        }
        self.pass_until(from + arrivals.within());
    }

    fn arrive(&mut self, now: Moment, layout: Arc<Layout>, study: &CrowdStudy) {
        let max_wait = MaxWait { time: study.wait, ..MaxWait::default() };
        let title = layout.title;
        let tracks = 0..u16::try_from(layout.tracks.len()).unwrap_or(u16::MAX);
        let first = |track: &TrackLayout| track.due.iter().take_while(|due| **due == 0).count();
        let left: u64 = layout.tracks.iter().map(|track| first(track) as u64).sum();
        let behind =
            |track: &TrackLayout| track.start(u32::try_from(first(track)).unwrap_or(u32::MAX));
        let ends = layout.tracks.iter().map(behind).collect();
        let request = AdmitRequest {
            layout,
            copies: Vec::new(),
            offers: vec![tracks.collect()],
            start: Duration::ZERO,
            max_wait,
            replaces: None,
            fill: None,
            priority: Priority::default(),
        };
        match self.engine.admit(now, request) {
            AdmissionDecision::Admitted { session, wait, .. } => {
                self.sessions.push(session);
                self.asks.insert((now + wait, session));
                // A viewer who has waited is sent nothing before its start-up is over.
                let opens = if wait.is_zero() { wait } else { wait + study.startup };
                self.starting.insert(title, Starting { came: now, from: now + opens, left, ends });
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
        let Some((done, read, place)) = self.reading.pop_front() else { return };
        self.result.reads += 1;
        let (title, track, start) = place;
        if let Some(viewer) = self.starting.get_mut(&title)
            && start < viewer.ends[usize::from(track)]
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
                Action::Read { read, device_offset, len, title, track, start, .. } => {
                    let turn = self.random.part();
                    let service = self.head.serve_turned(self.now, device_offset, len.into(), turn);
                    let read = (service.finish, read, (title, track, start));
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
    lead: Lead,
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
            cell("titles", "titles", study.titles()),
            cell("came", ">came", run.came),
            cell("arrivals", "arrivals", run.arrivals.name()),
            cell("within", ">within, s", run.arrivals.within().as_secs()),
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
            "As many viewers as the disk holds in steady state come at random times \
             within so many seconds, each for a title of its own; then twice as many come evenly, \
             for titles with sound; {promised}. The server's engine reads from a modelled disk with \
             random rotational delays. A start is the time from arrival until all that is due at \
             the start is in memory and may be sent. Possible: viewers that any \
             scheduler could start in that time, if it charges full revolutions and counts nothing \
             but their first segments and their next reads."
        ),
        tables: vec![Table::of("crowd", "Crowds", rows)],
        notes: Vec::new(),
        figures: Vec::new(),
    }
}

/// Length of the streams of a plan.
const PLANNED: Duration = Duration::from_secs(300);
/// How long a place is kept for a silent viewer: nobody leaves during a study.
const HELD: Duration = Duration::from_secs(600);
/// How long the admitted viewers are followed: several reads of each.
const FOLLOWED: Duration = Duration::from_secs(60);
const SLOT: Duration = Duration::from_millis(500);
/// The golden ratio of 2^64: its multiples, modulo that, fall evenly.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
/// Places of titles are whole chunks.
const ALIGNED: u64 = 1 << 20;
// Names of sources of chance.
const ARRIVALS: u64 = 7;
const TURNS: u64 = 8;

#[cfg(test)]
mod tests {
    use super::*;
    use engine::Disconnection;

    fn study(disk: &str, read_size: ByteCount, wait: u64) -> CrowdStudy {
        CrowdStudy {
            model: DiskModel::preset(disk).unwrap(),
            read_size,
            piece: u32::try_from(read_size.0).unwrap(),
            memory: ByteCount(4 << 30),
            rate: BitRate(5_000_000),
            variable: false,
            sound: None,
            length: Duration::from_secs(600),
            segment: Duration::from_secs(4),
            startup: Duration::from_secs(1),
            wait: Duration::from_secs(wait),
            seed: 1,
        }
    }

    /// The sound of a title, as the server cuts it.
    fn sound(read_size: ByteCount) -> (BitRate, u32) {
        let rate = BitRate(128_000);
        (rate, engine::piece_size(rate, &[], read_size))
    }

    fn random(seconds: u64) -> CrowdArrivals {
        CrowdArrivals::Random(Duration::from_secs(seconds))
    }

    #[test]
    fn in_an_overload_that_lasts_nobody_waits_for_long() {
        let study = |wait| CrowdStudy {
            sound: Some(sound(ByteCount(4 << 20))),
            length: Duration::from_secs(60),
            ..study("hdd-20tb", ByteCount(4 << 20), wait)
        };
        // Ten viewers a second, of whom so many at least are admitted.
        for (came, least) in [(200, 165), (400, 190), (900, 340)] {
            let arrivals = CrowdArrivals::Even(Duration::from_millis(came * 100));
            let [waits, none] = [5, 0].map(|wait| study(wait).run(came, arrivals).result);
            let said =
                format!("{} of {came}, {} if none wait", waits.starts.len(), none.starts.len());
            assert_eq!((waits.late, none.late), (0, 0), "{said}");
            assert!(waits.starts.len() >= least.max(none.starts.len()), "{said}");
            let within = |percent: usize| waits.starts[waits.starts.len() * percent / 100];
            assert!(within(99) <= Duration::from_secs(2), "{said}: {:?}", within(99));
        }
    }

    #[test]
    fn with_sound_a_disk_holds_nine_tenths_as_many_viewers() {
        let read_size = ByteCount(4 << 20);
        let silent = study("hdd-20tb", read_size, 5);
        let came = silent.capacity() * 5 / 4;
        let with = |sound| CrowdStudy { sound, ..silent.clone() }.run(came, random(240)).result;
        let [silent, heard] = [None, Some(sound(read_size))].map(with);
        let held = [silent.starts.len(), heard.starts.len()];
        assert_eq!((silent.late, heard.late), (0, 0), "{held:?}");
        assert!(held[1] * 10 >= held[0] * 9, "{held:?}");
    }

    #[test]
    fn a_house_comes_in_a_minute_and_most_of_it_in_ten_seconds() {
        // (disk, read in KiB, whether the rate varies; admitted at least: at once, in 10 s, in
        // 60 s), in percent
        let houses = [
            ("hdd-20tb", 4096, false, [77, 97, 100]),
            ("hdd-20tb", 4096, true, [90, 100, 100]),
            ("st39183w", 1024, false, [94, 100, 100]),
            ("st39183w", 1024, true, [94, 100, 100]),
        ];
        for (disk, read, variable, least) in houses {
            let study = CrowdStudy { variable, ..study(disk, ByteCount(read << 10), 5) };
            let came = study.capacity();
            for (within, percent) in [0, 10, 60].into_iter().zip(least) {
                let run = study.run(came, random(within));
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
        /// What becomes of `viewers` who come at these times, right after as many
        /// have left who had come within a minute. Those close their connections, or (`says_so`)
        /// end their sessions.
        fn run_after_departure(
            &self,
            viewers: u64,
            arrivals: CrowdArrivals,
            says_so: bool,
        ) -> CrowdResult {
            let mut evening = Evening::new(self);
            let title = |number| self.layout(number);
            evening.receive(self, 1..=viewers, random(60), &title);
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
            evening.receive(self, viewers + 1..=2 * viewers, arrivals, &title);
            evening.pass_until(evening.now + self.wait + FOLLOWED);
            evening.end()
        }
    }

    #[test]
    fn after_all_have_left_as_many_are_admitted_as_by_an_empty_server() {
        let within = random(2);
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

    impl CrowdStudy {
        /// How many of a house that comes at once are admitted, of whom `known` come for titles
        /// that two viewers each have had before, and late reads. Beside them `few` viewers play
        /// other titles.
        fn admitted_with_known(&self, viewers: u64, known: u64, few: u64) -> (u64, u64) {
            let mut evening = Evening::new(self);
            // Viewers from 1001 on are the second of the same titles, from 2001 on the house.
            let title = |number: u64| self.layout(number % 1000);
            evening.receive(self, 901..=900 + few, random(0), &title);
            let few = std::mem::take(&mut evening.sessions);
            for first in [1, 1001] {
                evening.receive(self, first..=first - 1 + known, random(60), &title);
                evening.pass_until(evening.now + FOLLOWED);
                for session in std::mem::take(&mut evening.sessions) {
                    evening.engine.end(evening.now, session);
                }
                evening.take_actions();
            }
            // Time in which those who are still there read ahead.
            evening.pass_until(evening.now + 5 * FOLLOWED);
            evening.receive(self, 2001..=2000 + viewers, random(0), &title);
            evening.pass_until(evening.now + self.wait + FOLLOWED);
            let admitted = evening.sessions.len() + few.len();
            (admitted as u64, evening.end().late)
        }
    }

    /// `cargo test -p studies --lib known -- --nocapture` shows the numbers.
    #[expect(clippy::print_stdout, reason = "the numbers, with --nocapture")]
    #[test]
    fn viewers_of_known_titles_start_beside_a_crowd_of_others() {
        for wait in [0, 5] {
            // Films that end, so that what is read ahead leaves memory for their beginnings.
            let length = Duration::from_secs(60);
            let study = CrowdStudy { length, ..study("hdd-20tb", ByteCount(4 << 20), wait) };
            let viewers = study.capacity();
            let admitted = [0, 50, 100].map(|known| {
                let (admitted, late) = study.admitted_with_known(viewers, known, 0);
                assert_eq!(late, 0, "{known} known titles, {wait} s");
                admitted
            });
            println!(
                "of {viewers} with 0, 50 and 100 known titles, who wait {wait} s: {admitted:?}"
            );
            assert!(admitted[1] >= admitted[0] + 30 || admitted[1] >= viewers, "{admitted:?}");
        }
    }

    /// A few viewers have read ahead into all memory when a house comes at once.
    ///
    /// `cargo test -p studies --lib read_ahead -- --nocapture` shows the numbers.
    #[expect(clippy::print_stdout, reason = "the numbers, with --nocapture")]
    #[test]
    fn a_crowd_loses_nothing_to_read_ahead_of_others() {
        let study = study("hdd-20tb", ByteCount(4 << 20), 5);
        let viewers = study.capacity();
        let admitted = [0, 20].map(|few| {
            [0, 50].map(|known| {
                let (admitted, late) = study.admitted_with_known(viewers, known, few);
                assert_eq!(late, 0, "{known} known titles beside {few} viewers");
                admitted
            })
        });
        println!("of {viewers} beside 0 and 20 others, with 0 and 50 known titles: {admitted:?}");
        let [alone, beside] = admitted;
        assert!(beside[0] >= alone[0] && beside[1] >= alone[1], "{admitted:?}");
        assert!(beside[1] >= beside[0] + 20, "from memory: {admitted:?}");
    }

    #[test]
    fn the_bound_grows_with_the_time_to_the_last_start() {
        let bound = |wait| study("hdd-20tb", ByteCount(4 << 20), wait).bound(Duration::ZERO);
        // Within one and two seconds the first segments of 4 s are the limit.
        assert_eq!([0, 1, 5].map(bound), [43, 89, 217]);
        // A solid-state disk positions nothing: nearly as many as it has bytes for.
        let bound = |wait| study("ssd-sata", ByteCount::MIB, wait).bound(Duration::ZERO);
        assert!(bound(5) > 830);
        assert!((420..450).contains(&bound(1)), "{}: half of the bytes of 4 s in 2 s", bound(1));
    }
}
