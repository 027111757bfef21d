//! How long the door takes to decide: one viewer more of an hour's title among 500.
//!
//! `cargo bench -p server --bench admission` prints the times;
//! `valgrind --tool=callgrind target/release/deps/admission-*` counts instructions, which a busy
//! machine does not change.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::print_stdout,
    reason = "it measures, and says what"
)]

use server::engine::{
    Action, AdmitRequest, Answer, DiskGuarantee, DiskNumber, Engine, EngineConfig, Layout,
    ReadOutcome, TitleKey, TrackLayout,
};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use units::{ByteCount, Moment};

fn main() {
    // A disk that holds them and one more; and the same disk found to be slower, so that a later
    // start is looked for, in vain.
    for (what, min_read) in [("admitted", 400), ("refused", 200)] {
        let (mut engine, mut now, mut inside) = (Engine::new(config(400)), Moment::ZERO, 0);
        for title in 0..VIEWERS {
            now = now + SLOT;
            pass(&mut engine, now);
            let answer = engine.admit(now, request(title));
            inside += u64::from(matches!(answer, Answer::Admitted { .. }));
        }
        engine.set_guarantee(now, DiskNumber(0), guarantee(min_read));
        let mut times: Vec<Duration> = (0..TURNS)
            .map(|turn| {
                // Each in a slot of its own: later starts are looked for only so often in a slot.
                now = now + SLOT;
                pass(&mut engine, now);
                let request = request(VIEWERS + turn);
                let start = Instant::now();
                let answer = engine.admit(now, request);
                let took = start.elapsed();
                match answer {
                    Answer::Admitted { session, .. } => {
                        assert_eq!(what, "admitted");
                        engine.close(now, session);
                    }
                    Answer::Refused(_) => assert_eq!(what, "refused"),
                }
                took
            })
            .collect();
        times.sort_unstable();
        let at = |part: usize| times[times.len() * part / 100].as_secs_f64() * 1e6;
        println!("{what} among {inside}: median {:.1} us, p99 {:.1} us", at(50), at(99));
    }
}

/// Time passes; the disk reads whatever it is told to.
fn pass(engine: &mut Engine, now: Moment) {
    engine.tick(now);
    loop {
        let actions = engine.take_actions();
        let reads: Vec<_> = actions
            .iter()
            .filter_map(|action| match action {
                Action::Read { read, .. } => Some(*read),
                _ => None,
            })
            .collect();
        if reads.is_empty() {
            return;
        }
        reads.into_iter().for_each(|read| engine.read_done(now, read, ReadOutcome::Good));
    }
}

fn request(title: u64) -> AdmitRequest {
    AdmitRequest {
        layout: Arc::new(hour(title)),
        copies: Vec::new(),
        offers: vec![vec![0, 1]],
        from: Duration::ZERO,
        patience: Duration::ZERO,
        instead_of: None,
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

fn config(min_read: u32) -> EngineConfig {
    EngineConfig {
        slot: SLOT,
        policy: scheduler::PolicyKind::VbrSim,
        startup: Duration::from_secs(1),
        buffers: ByteCount(4 << 30),
        network: None,
        reservation_hold: Duration::from_secs(3600),
        idle_after: Duration::from_secs(3600),
        ended_after: Duration::from_secs(3600),
        survive_loss: false,
        disks: vec![guarantee(min_read)],
    }
}

fn guarantee(min_read: u32) -> DiskGuarantee {
    DiskGuarantee {
        min_read,
        read_size: ByteCount::MIB,
        longest_read: Duration::from_millis(1),
        queue_depth: 8,
    }
}

const VIEWERS: u64 = 500;
const TURNS: u64 = 200;
const SLOT: Duration = Duration::from_millis(500);
const HOUR_MS: u32 = 3_600_000;
