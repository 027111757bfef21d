//! Popular titles: a crowd that watches few titles is admitted whole, at little more reads than
//! generalised interval caching needs in the same memory, and nobody is late.
//!
//! ```text
//!   300 viewers in 30 s ─▶ Engine ─▶ reads ─▶ a disk of 100 MiB/s, one read after another
//!   the first 2 s are asked for on arrival, each later piece at its deadline: it must be delivered
//!   at once, or as soon as the socket has sent what it has
//!   online:  the longest interval ends where memory is short for a shorter one
//!   offline: all arrivals known, the shortest intervals first, as many as fit into all memory, and
//!            nothing is read for those who follow
//! ```
//!
//! The driver is written from the documentation of the engine and of admission control, as that of
//! `brim.rs` is.

use disk::{DiskModel, Head, Mechanics};
use engine::{
    Action, AdmissionDecision, AdmitRequest, DiskGuarantee, DiskNumber, Engine, EngineConfig,
    FillFor, Layout, MaxWait, MediaRequest, Part, Priority, ReadId, ReadOutcome, RefusalCause,
    RequestId, Resource, SessionId, TitleKey, TrackLayout,
};
use scheduler::{DiskTimings, Lead, PolicyKind};
use std::collections::BTreeMap;
use std::io::Write;
use std::ops::Range;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use units::{ByteCount, Moment};

#[test]
fn one_title_for_three_hundred_viewers_costs_the_disk_one_stream() {
    for piece in [MIB / 4, MIB] {
        let audience = Audience { piece, titles: 1, seed: 0, fills: 0 };
        let outcome = audience.run();
        audience.report(&outcome);
        assert_eq!((outcome.admitted, outcome.late), (300, 0), "{outcome:?}");
        assert_eq!(outcome.reads, audience.pieces(), "each piece is read once: {outcome:?}");
    }
}

#[test]
fn audiences_by_zipf_are_admitted_whole_with_small_reads() {
    let (mut admitted, mut reads, mut online) = (0, 0, 0);
    for seed in 0..AUDIENCES {
        let audience = Audience { piece: MIB / 4, titles: TITLES, seed, fills: 0 };
        let outcome = audience.run();
        audience.report(&outcome);
        assert_eq!(outcome.late, 0, "{outcome:?}");
        admitted += outcome.admitted;
        let offline = audience.offline_reads();
        assert!(outcome.reads * 10 <= offline * 13, "{offline} reads offline, {outcome:?}");
        (reads, online) = (reads + outcome.reads, online + audience.online_reads());
    }
    assert_eq!(admitted, AUDIENCES * VIEWERS);
    assert!(reads * 10 <= online * 11, "{reads} reads, {online} of an online interval cache");
}

#[test]
fn larger_reads_admit_fewer_of_an_audience_by_zipf_and_none_is_late() {
    for (piece, admitted) in [(MIB / 2, 290), (MIB, 200)] {
        let audience = Audience { piece, titles: TITLES, seed: 0, fills: 0 };
        let outcome = audience.run();
        audience.report(&outcome);
        assert_eq!(outcome.late, 0, "{outcome:?}");
        assert!(outcome.admitted >= admitted, "{outcome:?}");
    }
}

/// A cache fills segments of many titles beside a full house: as many at once as it may, each with
/// its bytes in time or refused, and no viewer is late for them.
#[test]
fn fills_beside_viewers_make_nobody_late_and_never_exceed_their_limit() {
    let audience = Audience { piece: MIB, titles: TITLES, seed: 0, fills: 0 };
    let alone = audience.run();
    let beside = Audience { fills: 6, ..audience };
    let outcome = beside.run();
    beside.report(&outcome);
    assert_eq!(outcome.late, 0, "{outcome:?}");
    assert_eq!(outcome.most_fills, 6, "{outcome:?}");
    assert!(outcome.fills > 300 && outcome.fills_waited > 10, "{outcome:?}");
    assert!(outcome.fills_refused > 10, "more are asked for than there may be: {outcome:?}");
    // The cache takes a part of the disk, and not the house.
    assert!(outcome.admitted * 5 >= alone.admitted * 4, "{alone:?}, {outcome:?}");
}

/// Viewers of some titles, on a server with reads of one size.
#[derive(Clone, Copy, Debug)]
struct Audience {
    piece: u32,
    titles: u64,
    /// Seed of the times of arrival and of the titles.
    seed: u64,
    /// The most fills at a time of the cache beside them; zero: there is none.
    fills: u32,
}

impl Audience {
    fn pieces(self) -> u64 {
        TITLE_BYTES.div_ceil(u64::from(self.piece))
    }

    fn due_ms(self, piece: u64) -> u32 {
        u32::try_from(piece * u64::from(self.piece) * 1000 / RATE).expect("a short title")
    }

    fn report(self, outcome: &Outcome) {
        let (online, offline) = (self.online_reads(), self.offline_reads());
        let caches = format!("online {online} reads, offline {offline}");
        writeln!(std::io::stdout(), "{self:?}: {outcome:?}, {caches}").expect("stdout is open");
    }

    /// Reads of a cache that knows all arrivals, and keeps the shortest intervals that fit.
    fn offline_reads(self) -> u64 {
        let arrivals = self.arrivals();
        let mut last = BTreeMap::new();
        let mut intervals: Vec<u64> = Vec::new();
        for (at, title) in &arrivals {
            if let Some(before) = last.insert(*title, *at) {
                let bytes = at.since(before).as_nanos() * u128::from(RATE) / 1_000_000_000;
                intervals.push(u64::try_from(bytes).expect("a short interval"));
            }
        }
        intervals.sort_unstable();
        let mut room = MEMORY;
        let cached = intervals.iter().take_while(|bytes| {
            let fits = **bytes <= room;
            room = room.saturating_sub(**bytes);
            fits
        });
        (arrivals.len() - cached.count()) as u64 * self.pieces()
    }

    /// Reads of generalised interval caching in the memory that is left beside one piece for each
    /// socket, and two for each stream of the disk: a viewer follows the one ahead, after it has
    /// read what that one has had already, and the longest interval ends at once where memory is
    /// short.
    fn online_reads(self) -> u64 {
        let piece = u64::from(self.piece);
        let bytes_in = |time: Duration| {
            u64::try_from(time.as_nanos() * u128::from(RATE) / 1_000_000_000).expect("short")
        };
        let mut last = BTreeMap::new();
        let mut intervals: Vec<(u64, Moment)> = Vec::new();
        let (mut taken, mut streams, mut read) = (0, 0, 0);
        for (now, title) in self.arrivals() {
            taken += piece;
            match last.insert(title, now) {
                Some(before) => intervals.push((bytes_in(now.since(before)), now)),
                None => (streams, read) = (streams + 1, read + TITLE_BYTES),
            }
            intervals.sort_unstable();
            let held = |intervals: &[(u64, Moment)]| intervals.iter().map(|(b, _)| b).sum::<u64>();
            while held(&intervals) + taken + 2 * piece * streams > MEMORY
                && let Some((bytes, since)) = intervals.pop()
            {
                let followed = bytes_in(now.since(since)).saturating_sub(bytes);
                (streams, read) = (streams + 1, read + TITLE_BYTES - followed);
            }
        }
        (read + intervals.iter().map(|(bytes, _)| bytes).sum::<u64>()).div_ceil(piece)
    }

    /// When each viewer comes, and which title it watches.
    fn arrivals(self) -> Vec<(Moment, u64)> {
        let mut rng = fastrand::Rng::with_seed(self.seed);
        let mut shares: Vec<f64> =
            (1..=self.titles).map(|rank| 1.0 / f64::from(u32::try_from(rank).unwrap())).collect();
        let sum: f64 = shares.iter().sum();
        shares.iter_mut().for_each(|share| *share /= sum);
        let title = |point: f64| {
            let mut left = point;
            let at = shares.iter().position(|share| {
                left -= share;
                left < 0.0
            });
            at.unwrap_or(shares.len() - 1) as u64
        };
        let mut times: Vec<u64> = (0..VIEWERS).map(|_| rng.u64(..ARRIVE_WITHIN_MS)).collect();
        times.sort_unstable();
        times.into_iter().map(|ms| (Moment::from_millis(ms), title(rng.f64()))).collect()
    }

    fn run(self) -> Outcome {
        let mut parameters = DiskModel::preset("ssd-sata").expect("built in").parameters().clone();
        if let Mechanics::Flash(flash) = &mut parameters.mechanics {
            flash.read_mb_s = DISK_MB_S;
        }
        let model = DiskModel::new(parameters).expect("possible");
        let read_size = ByteCount(u64::from(self.piece));
        let longest_read = model.worst_read(read_size);
        let min_read = u32::try_from(SLOT.as_nanos() / longest_read.as_nanos()).expect("few");
        let mut engine = Engine::new(EngineConfig {
            slot: SLOT,
            policy: PolicyKind::TimeDomain,
            startup: STARTUP,
            buffers: ByteCount(MEMORY),
            network: None,
            reservation_hold: A_DAY,
            idle_timeout: A_DAY,
            session_timeout: A_DAY,
            survive_loss: false,
            fills: self.fills,
            disks: vec![DiskGuarantee { min_read, read_size, longest_read, queue_depth: 2 }],
        });
        let timings = DiskTimings::of_model(&model, read_size, 2);
        engine.set_timings(Moment::ZERO, DiskNumber(0), timings);
        let mut run = Run {
            engine,
            head: model.head(),
            now: Moment::ZERO,
            events: BTreeMap::new(),
            scheduled: 0,
            requests: 0,
            layouts: (0..self.titles).map(|title| self.layout(title)).collect(),
            audience: self,
            asked: BTreeMap::new(),
            sending: BTreeMap::new(),
            filling: BTreeMap::new(),
            fill_requests: BTreeMap::new(),
            outcome: Outcome::default(),
        };
        for (at, title) in self.arrivals() {
            run.schedule(at, Event::Arrive(title));
        }
        for (at, title, segment) in self.fill_times() {
            run.schedule(at, Event::Fill(title, segment));
        }
        while run.step() {}
        assert!(run.filling.is_empty(), "every fill has ended");
        assert!(run.engine.is_empty(), "nothing is booked when all have left");
        let counters = run.engine.status(run.now).counters;
        run.outcome.following = counters.admitted_following;
        run.outcome.shared_reads = counters.shared_reads;
        run.outcome
    }

    /// When the cache asks for which segment of which title: twice as often as the disk could read.
    fn fill_times(self) -> Vec<(Moment, u64, u32)> {
        if self.fills == 0 {
            return Vec::new();
        }
        let mut rng = fastrand::Rng::with_seed(self.seed + 1);
        let last = u32::try_from(self.pieces()).expect("few") - SEGMENT;
        (0..FILL_REQUESTS)
            .map(|n| (Moment::from_millis(n * 20), rng.u64(..self.titles), rng.u32(..last)))
            .collect()
    }

    fn layout(self, title: u64) -> Arc<Layout> {
        let bytes = self.pieces() * u64::from(self.piece);
        let begin = title * bytes;
        let track = TrackLayout {
            bytes,
            piece: self.piece,
            lead: Lead::default(),
            runs: std::iter::once(begin..begin + bytes).collect(),
            due: (0..self.pieces()).map(|piece| self.due_ms(piece)).collect(),
            stored: Vec::new(),
            key_frames_of: None,
            times: OnceLock::new(),
        };
        Arc::new(Layout {
            title: TitleKey(title),
            disk: DiskNumber(0),
            duration: LASTS,
            tracks: vec![track],
        })
    }
}

#[derive(Debug, Default)]
struct Outcome {
    admitted: u64,
    refused_disk: u64,
    refused_memory: u64,
    reads: u64,
    /// Pieces that were not delivered when they were asked for at their deadline.
    late: u64,
    delivered: u64,
    following: u64,
    shared_reads: u64,
    peak_memory: u64,
    fills: u64,
    fills_waited: u64,
    fills_refused: u64,
    most_fills: usize,
}

#[derive(Debug)]
enum Event {
    Arrive(u64),
    Read(ReadId),
    /// A viewer asks for pieces.
    Ask(SessionId, Range<u64>),
    Sent(RequestId, ReadId),
    Leave(SessionId),
    /// The cache asks for a segment of a title, from this piece on.
    Fill(u64, u32),
}

struct Run {
    engine: Engine,
    head: Head,
    now: Moment,
    events: BTreeMap<(Moment, u64), Event>,
    scheduled: u64,
    requests: u64,
    layouts: Vec<Arc<Layout>>,
    audience: Audience,
    /// Requests for pieces that are due, which must be delivered when their sockets are free.
    asked: BTreeMap<RequestId, SessionId>,
    /// The sessions whose sockets are sending a piece.
    sending: BTreeMap<SessionId, RequestId>,
    /// The fills under way, with the pieces that the cache has not taken.
    filling: BTreeMap<SessionId, u32>,
    fill_requests: BTreeMap<RequestId, SessionId>,
    outcome: Outcome,
}

impl Run {
    fn schedule(&mut self, at: Moment, event: Event) {
        self.scheduled += 1;
        self.events.insert((at, self.scheduled), event);
    }

    fn step(&mut self) -> bool {
        while let Some(actions) = Some(self.engine.take_actions()).filter(|all| !all.is_empty()) {
            actions.into_iter().for_each(|action| self.execute(action));
        }
        let before = self.asked.len();
        self.asked.retain(|_, session| self.sending.contains_key(session));
        self.outcome.late += (before - self.asked.len()) as u64;
        let Some((at, number)) = self.events.first_key_value().map(|(key, _)| *key) else {
            return false;
        };
        let wakeup = self.engine.next_wakeup().max(self.now);
        if wakeup < at {
            self.now = wakeup;
            self.engine.tick(wakeup);
            if wakeup.0.is_multiple_of(7_000_000_000) {
                assert_eq!(self.engine.audit(), Ok(()));
            }
            let used = self.engine.status(wakeup).buffers_used;
            self.outcome.peak_memory = self.outcome.peak_memory.max(used);
            return true;
        }
        self.now = at;
        match self.events.remove(&(at, number)).expect("it is the first") {
            Event::Arrive(title) => self.arrive(title),
            Event::Read(read) => self.engine.read_done(at, read, ReadOutcome::Good),
            Event::Sent(request, read) => {
                self.sending.retain(|_, sending| *sending != request);
                self.engine.sent(at, request, read);
                self.fill_taken(request);
            }
            Event::Fill(title, piece) => self.fill(title, piece),
            Event::Leave(session) => self.engine.close(at, session),
            Event::Ask(session, pieces) => {
                self.requests += 1;
                let request = RequestId(self.requests);
                let len = u64::from(self.audience.piece);
                let bytes = pieces.start * len..pieces.end * len;
                let parts = vec![Part { track: 0, bytes }];
                if self.filling.contains_key(&session) {
                    self.fill_requests.insert(request, session);
                }
                // The first pieces are asked for before they are due.
                if pieces.start > 0 {
                    self.asked.insert(request, session);
                }
                self.engine.request(at, MediaRequest { request, session, parts });
            }
        }
        true
    }

    fn arrive(&mut self, title: u64) {
        let request = AdmitRequest {
            layout: self.layouts[usize::try_from(title).expect("few")].clone(),
            copies: Vec::new(),
            offers: vec![vec![0]],
            start: Duration::ZERO,
            max_wait: MaxWait::default(),
            replaces: None,
            fill: None,
            priority: Priority::default(),
        };
        match self.engine.admit(self.now, request) {
            AdmissionDecision::Admitted { session, .. } => {
                self.outcome.admitted += 1;
                let asked = |piece| {
                    let due = Duration::from_millis(self.audience.due_ms(piece).into());
                    due.saturating_sub(SLOT)
                };
                let pieces = self.audience.pieces();
                let first = (0..pieces).find(|piece| asked(*piece) > STARTUP).unwrap_or(pieces);
                let later: Vec<_> = (first..pieces).map(|piece| (piece, asked(piece))).collect();
                self.schedule(self.now, Event::Ask(session, 0..first));
                for (piece, at) in later {
                    self.schedule(self.now + at, Event::Ask(session, piece..piece + 1));
                }
                self.schedule(self.now + LASTS + Duration::from_secs(5), Event::Leave(session));
            }
            AdmissionDecision::Refused(refusal) => match refusal.resource {
                Some(Resource::Disk) => self.outcome.refused_disk += 1,
                Some(Resource::Memory) => self.outcome.refused_memory += 1,
                other => unreachable!("only disk and memory are limited: {other:?}"),
            },
        }
    }

    fn fill(&mut self, title: u64, piece: u32) {
        let whole = &self.layouts[usize::try_from(title).expect("few")];
        let track = TrackLayout {
            bytes: u64::from(SEGMENT) * u64::from(self.audience.piece),
            piece: self.audience.piece,
            lead: Lead::default(),
            runs: whole.tracks[0].runs.clone(),
            due: vec![0; SEGMENT as usize],
            stored: (piece..piece + SEGMENT).collect(),
            key_frames_of: None,
            times: OnceLock::new(),
        };
        let request = AdmitRequest {
            layout: Arc::new(Layout {
                title: whole.title,
                disk: whole.disk,
                duration: LASTS * SEGMENT / u32::try_from(self.audience.pieces()).expect("few"),
                tracks: vec![track],
            }),
            copies: Vec::new(),
            offers: vec![vec![0]],
            start: Duration::ZERO,
            max_wait: MaxWait {
                time: Duration::from_secs(5),
                is_chosen: true,
                ..MaxWait::default()
            },
            replaces: None,
            fill: Some(FillFor::Cache),
            priority: Priority::default(),
        };
        match self.engine.admit(self.now, request) {
            AdmissionDecision::Admitted { session, wait, .. } => {
                self.outcome.fills += 1;
                self.outcome.fills_waited += u64::from(!wait.is_zero());
                self.filling.insert(session, SEGMENT);
                self.outcome.most_fills = self.outcome.most_fills.max(self.filling.len());
                self.schedule(self.now + wait, Event::Ask(session, 0..u64::from(SEGMENT)));
            }
            AdmissionDecision::Refused(refusal) => {
                self.outcome.fills_refused += 1;
                let is_full = self.filling.len() == self.audience.fills as usize;
                assert_eq!(refusal.cause == RefusalCause::Fills, is_full, "{refusal:?}");
                assert!(refusal.retry.after().is_some(), "the time is known: {refusal:?}");
            }
        }
    }

    /// The cache has taken a piece; with the last one the fill ends.
    fn fill_taken(&mut self, request: RequestId) {
        let Some(session) = self.fill_requests.get(&request).copied() else { return };
        let left = self.filling.get_mut(&session).expect("under way");
        *left -= 1;
        if *left == 0 {
            self.fill_requests.remove(&request);
            self.filling.remove(&session);
            self.engine.end(self.now, session);
        }
    }

    fn execute(&mut self, action: Action) {
        match action {
            Action::Read { read, device_offset, len, .. } => {
                self.outcome.reads += 1;
                let finish =
                    self.head.serve_turned(self.now, device_offset, len.into(), 0.0).finish;
                self.schedule(finish, Event::Read(read));
            }
            Action::Deliver { request, read, .. } => {
                self.outcome.delivered += 1;
                if let Some(session) = self.asked.remove(&request) {
                    self.sending.insert(session, request);
                }
                let sent = self.now + SENT_WITHIN * self.audience.piece / MIB;
                self.schedule(sent, Event::Sent(request, read));
            }
            Action::Ended { summary, .. } => {
                let late = summary.deadline_misses
                    + summary.violations_by_scheduler
                    + summary.violations_by_disk;
                assert_eq!(late, 0, "{summary:?}");
            }
            Action::Complete { .. } | Action::Forget { .. } => {}
            other => panic!("a viewer who asks in time is served as admitted: {other:?}"),
        }
    }
}

/// Pieces of a segment of the cache: about 5 s.
const SEGMENT: u32 = 3;
/// A minute of fills.
const FILL_REQUESTS: u64 = 3000;
const AUDIENCES: u64 = 8;
const VIEWERS: u64 = 300;
const ARRIVE_WITHIN_MS: u64 = 30_000;
const TITLES: u64 = 200;
const MIB: u32 = 1 << 20;
const MEMORY: u64 = 512 << 20;
/// 100 MiB/s.
const DISK_MB_S: f64 = 104.8576;
/// Bytes per second of a title: 5 Mb/s.
const RATE: u64 = 625_000;
const TITLE_BYTES: u64 = 107 << 20;
/// About the time of `TITLE_BYTES` at `RATE`.
const LASTS: Duration = Duration::from_secs(180);
const SLOT: Duration = Duration::from_millis(500);
const STARTUP: Duration = Duration::from_secs(2);
/// A socket takes a piece of 1 MiB at 100 Mb/s.
const SENT_WITHIN: Duration = Duration::from_millis(84);
/// Longer than any run.
const A_DAY: Duration = Duration::from_secs(86_400);
