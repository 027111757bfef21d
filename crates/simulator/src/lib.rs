//! The whole system in one thread from one seed: viewers, disks, faults and checkers around the
//! very engine that ships.
//!
//! ```text
//!   Scenario + seed ─▶ titles ─▶ ┌────────┐ admit, want, sent, ... ┌────────┐
//!                      viewers ─▶│ world  │───────────────────────▶│ engine │   the one that ships
//!                      disks  ─▶ │ (time) │◀──────── actions ──────│        │
//!                                └───┬────┘                        └────────┘
//!                                    ▼
//!                     checkers ─▶ WorldOutcome: numbers, violations, a hash of the trace
//! ```
//!
//! Nothing here is real: time is a number, a disk is arithmetic, a viewer is a state machine and
//! chance is one seed. What is real is [`server::engine`], so that what holds here holds there.
//! The same scenario gives the same trace on every machine.
//!
//! It deliberately knows neither HTTP nor the store: those have tests of their own.

#![warn(missing_docs)]

mod checks;
mod disks;
mod draw;
mod outcome;
mod scenario;
mod titles;
mod trace;
mod viewers;
mod world;

pub use checks::Violation;
pub use draw::{FaultClass, draw};
pub use outcome::WorldOutcome;
pub use scenario::{BackgroundWork, DiskSpec, Scenario, ScenarioError, Timing, Titles, Viewers};
pub use trace::TraceLine;
pub use world::{run, run_observed};
