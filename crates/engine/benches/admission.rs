//! Time of an admission decision: for one more viewer of an hour's title with 500 sessions, and
//! with as many sessions as fit. A decision includes the booking and the choice of the first reads.
//! Then for 200 arrivals a second, most of which are refused, with viewers who wait for their start
//! for at most 5 s and viewers who do not. Admitted viewers play: their players fetch what is due
//! within the next 10 s.
//!
//! `cargo bench -p engine --bench admission` prints the times.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::print_stdout,
    reason = "it measures time and prints it"
)]

use disk::DiskModel;
use engine::{
    Action, AdmissionDecision, AdmitRequest, DiskGuarantee, DiskNumber, Engine, EngineConfig,
    Layout, MaxWait, MediaRequest, Part, Priority, ReadId, ReadOutcome, RequestId, SessionId,
    TitleKey, TrackLayout,
};
use scheduler::{DiskTimings, Lead, PolicyKind};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use units::{ByteCount, Moment};

fn main() {
    let unlimited = ByteCount(1 << 50);
    let limited = ByteCount(8 << 30);
    for (policy, buffers, memory) in [
        (PolicyKind::TimeDomain, unlimited, "unlimited memory"),
        (PolicyKind::TimeDomain, limited, "8 GiB of memory"),
        (PolicyKind::VbrSim, unlimited, "unlimited memory"),
        (PolicyKind::VbrSim, limited, "8 GiB of memory"),
    ] {
        let mut fixture = Fixture::new(policy, buffers);
        while fixture.sessions() < VIEWERS && fixture.admit_next().session.is_some() {}
        let name = format!("{}, {memory}", policy.name());
        fixture.measure(&name);
        // One refusal may depend on the title drawn; three in succession mean that no more fit.
        let mut refused = 0;
        while refused < 3 {
            refused = if fixture.admit_next().session.is_some() { 0 } else { refused + 1 };
        }
        fixture.measure(&name);
        for max_wait in [Duration::ZERO, Duration::from_secs(5)] {
            fixture.measure_arrivals(&name, max_wait);
        }
    }
}

struct Fixture {
    engine: Engine,
    now: Moment,
    /// Admission requests made.
    requests: u64,
    /// Sessions admitted and not closed.
    players: BTreeMap<SessionId, Player>,
    /// Requests for media made.
    media_requests: u64,
    /// The sessions of the media requests that are not complete.
    fetching: BTreeMap<RequestId, SessionId>,
    /// Reads in the disk.
    reading: VecDeque<(ReadId, u32)>,
    disk_free: Moment,
    next_slot: Moment,
}

/// A viewer's player, which plays from the moment of its admission.
struct Player {
    layout: Arc<Layout>,
    began: Moment,
    /// Bytes of each track that were requested.
    requested: Vec<u64>,
}

impl Player {
    /// The bytes of each track that are due by `now + AHEAD` and were not requested.
    fn next_parts(&mut self, now: Moment) -> Vec<Part> {
        let until = now.since(self.began) + AHEAD;
        let tracks = (0..).zip(self.layout.tracks.iter().zip(&mut self.requested));
        tracks
            .filter_map(|(number, (track, requested))| {
                let pieces = track.due.partition_point(|due| u128::from(*due) <= until.as_millis());
                let from = std::mem::replace(requested, pieces as u64 * u64::from(track.piece));
                (from < *requested).then_some(Part { track: number, bytes: from..*requested })
            })
            .collect()
    }
}

/// One admission decision and its time.
struct Decision {
    session: Option<SessionId>,
    time: Duration,
}

impl Fixture {
    fn new(policy: PolicyKind, buffers: ByteCount) -> Self {
        let model = DiskModel::preset("ssd-sata").expect("a built-in model");
        let mut engine = Engine::new(config(policy, buffers));
        let timings = DiskTimings::of_model(&model, ByteCount::MIB, guarantee().queue_depth);
        engine.set_timings(Moment::ZERO, DiskNumber(0), timings);
        Self {
            engine,
            now: Moment::ZERO,
            requests: 0,
            players: BTreeMap::new(),
            media_requests: 0,
            fetching: BTreeMap::new(),
            reading: VecDeque::new(),
            disk_free: Moment::ZERO,
            next_slot: Moment::ZERO + SLOT,
        }
    }

    fn sessions(&self) -> usize {
        self.players.len()
    }

    /// Requests admission for one more viewer, in a slot of its own: the engine limits the searches
    /// for a later start in each slot.
    fn admit_next(&mut self) -> Decision {
        self.advance(self.next_slot);
        self.requests += 1;
        let request = request(self.requests);
        let layout = Arc::clone(&request.layout);
        let start = Instant::now();
        let answer = self.engine.admit(self.now, request);
        let time = start.elapsed();
        let session = match answer {
            AdmissionDecision::Admitted { session, .. } => Some(session),
            AdmissionDecision::Refused(_) => None,
        };
        session.into_iter().for_each(|session| self.play(session, layout.clone()));
        Decision { session, time }
    }

    /// Begins to play: a newcomer may take the place of a viewer who never does.
    fn play(&mut self, session: SessionId, layout: Arc<Layout>) {
        let requested = vec![0; layout.tracks.len()];
        self.players.insert(session, Player { layout, began: self.now, requested });
        self.fetch(session);
    }

    /// Requests what the player of a session needs next.
    fn fetch(&mut self, session: SessionId) {
        let Some(player) = self.players.get_mut(&session) else { return };
        let parts = player.next_parts(self.now);
        if !parts.is_empty() {
            self.media_requests += 1;
            let request = RequestId(self.media_requests);
            self.fetching.insert(request, session);
            self.engine.request(self.now, MediaRequest { request, session, parts });
        }
    }

    /// All players that wait for nothing request what they need next.
    fn fetch_all(&mut self) {
        let waiting: BTreeSet<SessionId> = self.fetching.values().copied().collect();
        let free: Vec<_> =
            self.players.keys().filter(|key| !waiting.contains(key)).copied().collect();
        free.into_iter().for_each(|session| self.fetch(session));
    }

    /// Advances the clock; the disk completes the reads for which it has time.
    fn advance(&mut self, to: Moment) {
        while self.next_slot <= to {
            self.run_disk(self.next_slot);
            self.now = self.next_slot;
            self.next_slot = self.now + SLOT;
            self.engine.tick(self.now);
            self.fetch_all();
        }
        self.run_disk(to);
        self.now = to;
    }

    fn run_disk(&mut self, until: Moment) {
        self.take_actions(self.now);
        while let Some((read, len)) = self.reading.front().copied() {
            let takes = Duration::from_nanos(u64::from(len) * NANOS_PER_KIB / 1024);
            let done = self.disk_free.max(self.now) + takes;
            if done > until {
                return;
            }
            self.reading.pop_front();
            self.disk_free = done;
            self.now = done;
            self.engine.read_done(done, read, ReadOutcome::Good);
            self.take_actions(done);
        }
    }

    fn take_actions(&mut self, now: Moment) {
        for action in self.engine.take_actions() {
            match action {
                Action::Read { read, len, .. } => self.reading.push_back((read, len)),
                Action::Deliver { request, read, .. } => self.engine.sent(now, request, read),
                Action::Complete { request }
                | Action::Failed { request, .. }
                | Action::Declined { request, .. }
                | Action::Refused { request, .. } => {
                    self.fetching.remove(&request);
                }
                _ => {}
            }
        }
    }

    /// Prints the times of decisions on viewers who arrive at 200 a second, whatever slot it is,
    /// and stay if they are admitted.
    fn measure_arrivals(&mut self, name: &str, max_wait: Duration) {
        let (sessions, mut admitted) = (self.sessions(), 0);
        let begin = self.now;
        let mut times: Vec<Duration> = (1..=ARRIVALS)
            .map(|number| {
                let at = begin + EVERY * number;
                self.advance(at);
                self.requests += 1;
                let max_wait = MaxWait { time: max_wait, ..MaxWait::default() };
                let request = AdmitRequest { max_wait, ..request(self.requests) };
                let layout = Arc::clone(&request.layout);
                let start = Instant::now();
                let answer = self.engine.admit(at, request);
                let time = start.elapsed();
                if let AdmissionDecision::Admitted { session, .. } = answer {
                    self.play(session, layout);
                    admitted += 1;
                }
                time
            })
            .collect();
        times.sort_unstable();
        let at = |percent: usize| times[(times.len() - 1) * percent / 100].as_secs_f64() * 1e3;
        println!(
            "{name}, {sessions} sessions, 200 arrivals/s, wait {} s: {admitted} of {ARRIVALS} \
             admitted, median {:.3} ms, p99 {:.3} ms, longest {:.3} ms",
            max_wait.as_secs(),
            at(50),
            at(99),
            at(100)
        );
    }

    /// Prints the times of decisions about viewers that leave at once.
    fn measure(&mut self, name: &str) {
        let (sessions, mut admitted) = (self.sessions(), 0);
        let mut times: Vec<Duration> = (0..DECISIONS)
            .map(|_| {
                let Decision { session, time } = self.admit_next();
                if let Some(session) = session {
                    admitted += 1;
                    self.engine.close(self.now, session);
                    self.players.remove(&session);
                }
                time
            })
            .collect();
        times.sort_unstable();
        let percentile = |percent: usize| times[times.len() * percent / 100].as_secs_f64() * 1e6;
        println!(
            "{name}, {sessions} sessions: {admitted} of {DECISIONS} admitted, median {:.1} us, \
             p99 {:.1} us",
            percentile(50),
            percentile(99)
        );
    }
}

fn request(title: u64) -> AdmitRequest {
    AdmitRequest {
        layout: Arc::new(hour(title)),
        copies: Vec::new(),
        offers: vec![vec![0, 1]],
        start: Duration::ZERO,
        max_wait: MaxWait::default(),
        replaces: None,
        fill: None,
        priority: Priority::default(),
    }
}

/// An hour of video at about 5 Mb/s, whose rate varies by half, with audio at 128 kb/s.
fn hour(title: u64) -> Layout {
    let mut random = fastrand::Rng::with_seed(title);
    let (mut due, mut at) = (Vec::new(), 0);
    while at < HOUR_MS {
        due.push(at);
        at += random.u32(800..2500);
    }
    let video = track(title << 33, 1 << 20, due);
    let audio = track((title << 33) + (1 << 32), 64 << 10, (0..HOUR_MS).step_by(4000).collect());
    Layout {
        title: TitleKey(title),
        disk: DiskNumber(0),
        duration: Duration::from_millis(u64::from(HOUR_MS)),
        tracks: vec![video, audio],
    }
}

fn track(start: u64, piece: u32, due: Vec<u32>) -> TrackLayout {
    let bytes = due.len() as u64 * u64::from(piece);
    let runs = std::iter::once(start..start + bytes).collect();
    TrackLayout {
        bytes,
        piece,
        lead: Lead::default(),
        runs,
        due,
        stored: Vec::new(),
        key_frames_of: None,
        times: OnceLock::new(),
    }
}

fn config(policy: PolicyKind, buffers: ByteCount) -> EngineConfig {
    EngineConfig {
        slot: SLOT,
        policy,
        startup: Duration::from_secs(1),
        buffers,
        network: None,
        reservation_hold: Duration::from_secs(3600),
        idle_timeout: Duration::from_secs(3600),
        session_timeout: Duration::from_secs(3600),
        survive_loss: false,
        fills: 0,
        disks: vec![guarantee()],
    }
}

/// The calibrated guarantee of `ssd-sata`.
fn guarantee() -> DiskGuarantee {
    DiskGuarantee {
        min_read: 251,
        read_size: ByteCount::MIB,
        longest_read: Duration::from_millis(8),
        queue_depth: 8,
    }
}

const VIEWERS: usize = 500;
/// How far players fetch ahead.
const AHEAD: Duration = Duration::from_secs(10);
const DECISIONS: u64 = 200;
/// Arrivals that are measured, and the time between two: 200 a second.
const ARRIVALS: u32 = 2000;
const EVERY: Duration = Duration::from_millis(5);
/// 540 MB/s: about the time that the engine charges, so that reads do not run far ahead.
const NANOS_PER_KIB: u64 = 1900;
const SLOT: Duration = Duration::from_millis(500);
const HOUR_MS: u32 = 3_600_000;
