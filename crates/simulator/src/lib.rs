//! The whole system in one thread from one seed: viewers arrive, watch, seek, pause and leave; an
//! engine admits them and reads for them; disks answer in virtual time; checkers watch.
//!
//! ```text
//!            ┌───────────── events in order of time ─────────────┐
//!            ▼                                                   │
//!   World ── admit, want, sent, read_done, tick ──▶ server::engine::Engine ── actions ──▶ Disk,
//!    │                                                                                    Viewer
//!    └── Checker: every action and every audit        all randomness: one fastrand::Rng
//! ```
//!
//! The engine and the players are the very code that ships. What is modelled here is only what
//! lies beyond them: disks, networks, people. Nothing real is touched: no clock, file or socket.

#![warn(missing_docs)]

mod check;
mod disk;
mod outcome;
mod scenario;
mod title;
mod viewer;
mod world;

pub use outcome::{Outcome, ViewerOutcome};
pub use scenario::{DiskKind, People, Scenario, Timing};

/// Plays a scenario to its end: everybody has left, everything is answered, or the time is up.
pub fn run(scenario: &Scenario) -> Outcome {
    world::World::new(scenario).run()
}
