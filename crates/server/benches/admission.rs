//! How long the door takes to decide: one viewer more of an hour's title among 500, and among as
//! many as there is room for; everything booked and the first reads chosen.
//!
//! `cargo bench -p server --bench admission` prints the times.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::print_stdout,
    reason = "it measures, and says what"
)]

use disk::DiskModel;
use scheduler::{DiskTimings, PolicyKind};
use server::engine::{
    Action, AdmissionDecision, AdmitRequest, DiskGuarantee, DiskNumber, Engine, EngineConfig,
    Layout, ReadId, ReadOutcome, SessionId, TitleKey, TrackLayout,
};
use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use units::{ByteCount, Moment};

fn main() {
    let plenty = ByteCount(1 << 50);
    let short = ByteCount(8 << 30);
    for (policy, buffers, what) in [
        (PolicyKind::TimeDomain, plenty, "plenty of memory"),
        (PolicyKind::TimeDomain, short, "8 GiB"),
        (PolicyKind::VbrSim, plenty, "plenty of memory"),
        (PolicyKind::VbrSim, short, "8 GiB"),
    ] {
        let mut fixture = Fixture::new(policy, buffers);
        while fixture.inside < VIEWERS && fixture.comes().0.is_some() {}
        let what = format!("{}, {what}", policy.name());
        fixture.measure(&what);
        // Until the house is full: three in a row are refused.
        let mut refused = 0;
        while refused < 3 {
            refused = if fixture.comes().0.is_some() { 0 } else { refused + 1 };
        }
        fixture.measure(&what);
    }
}

struct Fixture {
    engine: Engine,
    now: Moment,
    came: u64,
    inside: u64,
    /// Reads that the disk is at.
    reading: VecDeque<(ReadId, u32)>,
}

impl Fixture {
    fn new(policy: PolicyKind, buffers: ByteCount) -> Self {
        let model = DiskModel::preset("ssd-sata").expect("comes along");
        let mut engine = Engine::new(config(policy, buffers));
        let timings = DiskTimings::of_model(&model, ByteCount::MIB, guarantee().queue_depth);
        engine.set_timings(Moment::ZERO, DiskNumber(0), timings);
        Self { engine, now: Moment::ZERO, came: 0, inside: 0, reading: VecDeque::new() }
    }

    /// A viewer comes in a slot of its own, because later starts are looked for only so often in
    /// one; whether it was let in, and how long that took.
    fn comes(&mut self) -> (Option<SessionId>, Duration) {
        self.pass();
        self.came += 1;
        let request = request(self.came);
        let start = Instant::now();
        let answer = self.engine.admit(self.now, request);
        let took = start.elapsed();
        let session = match answer {
            AdmissionDecision::Admitted { session, .. } => Some(session),
            AdmissionDecision::Refused(_) => None,
        };
        self.inside += u64::from(session.is_some());
        (session, took)
    }

    /// A slot passes, in which the disk does some of what it is told to.
    fn pass(&mut self) {
        self.now = self.now + SLOT;
        self.engine.tick(self.now);
        let mut left = SLOT;
        loop {
            for action in self.engine.take_actions() {
                if let Action::Read { read, len, .. } = action {
                    self.reading.push_back((read, len));
                }
            }
            let Some((read, len)) = self.reading.pop_front() else { return };
            match left.checked_sub(Duration::from_nanos(u64::from(len) * NANOS_A_KIB / 1024)) {
                None => return self.reading.push_front((read, len)),
                Some(rest) => left = rest,
            }
            self.engine.read_done(self.now, read, ReadOutcome::Good);
        }
    }

    /// How long it takes to let somebody in who leaves at once, or not to let them in.
    fn measure(&mut self, what: &str) {
        let (inside, mut let_in) = (self.inside, 0);
        let mut times: Vec<Duration> = (0..TURNS)
            .map(|_| {
                let (session, took) = self.comes();
                if let Some(session) = session {
                    let_in += 1;
                    self.engine.close(self.now, session);
                    self.inside -= 1;
                }
                took
            })
            .collect();
        times.sort_unstable();
        let at = |part: usize| times[times.len() * part / 100].as_secs_f64() * 1e6;
        println!(
            "{what}, among {inside}: {let_in} of {TURNS} let in, median {:.1} us, p99 {:.1} us",
            at(50),
            at(99)
        );
    }
}

fn request(title: u64) -> AdmitRequest {
    AdmitRequest {
        layout: Arc::new(hour(title)),
        copies: Vec::new(),
        offers: vec![vec![0, 1]],
        start: Duration::ZERO,
        max_wait: Duration::ZERO,
        replaces: None,
    }
}

/// An hour at about 5 Mb/s whose rate wanders by half, with sound at 128 kb/s.
fn hour(title: u64) -> Layout {
    let mut random = fastrand::Rng::with_seed(title);
    let (mut due, mut at) = (Vec::new(), 0);
    while at < HOUR_MS {
        due.push(at);
        at += random.u32(800..2500);
    }
    let picture = track(title << 33, 1 << 20, due);
    let sound = track((title << 33) + (1 << 32), 64 << 10, (0..HOUR_MS).step_by(4000).collect());
    Layout {
        title: TitleKey(title),
        disk: DiskNumber(0),
        duration: Duration::from_millis(u64::from(HOUR_MS)),
        tracks: vec![picture, sound],
    }
}

fn track(start: u64, piece: u32, due: Vec<u32>) -> TrackLayout {
    let bytes = due.len() as u64 * u64::from(piece);
    let runs = std::iter::once(start..start + bytes).collect();
    TrackLayout { bytes, piece, runs, due, stored: Vec::new(), times: OnceLock::new() }
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
        disks: vec![guarantee()],
    }
}

/// What `ssd-sata` is calibrated at.
fn guarantee() -> DiskGuarantee {
    DiskGuarantee {
        min_read: 251,
        read_size: ByteCount::MIB,
        longest_read: Duration::from_millis(8),
        queue_depth: 8,
    }
}

const VIEWERS: u64 = 500;
const TURNS: u64 = 200;
/// 540 MB/s: about what it is charged, so that it is not far ahead.
const NANOS_A_KIB: u64 = 1900;
const SLOT: Duration = Duration::from_millis(500);
const HOUR_MS: u32 = 3_600_000;
