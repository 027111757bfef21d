//! The whole system in one thread from one seed: viewers, disks, faults and checkers around the
//! very engine that ships.
//!
//! ```text
//!   Scenario + seed ─▶ titles ─▶ ┌────────┐ admit, want, sent, ... ┌────────┐
//!                      viewers ─▶│ world  │───────────────────────▶│ engine │   the one that ships
//!                      disks  ─▶ │ (time) │◀──────── actions ──────│        │
//!                                └───┬────┘                        └────────┘
//!                                    ▼
//!                     checkers ─▶ Outcome: numbers, violations, a hash of the trace
//! ```
//!
//! Nothing here is real: time is a number, a disk is arithmetic, a viewer is a state machine and
//! chance is one seed. What is real is [`server::engine`], so that what holds here holds there.
//! The same scenario gives the same trace on every machine.
//!
//! [`reproduce`] has what others published, made again on the same disks.
//!
//! It deliberately knows neither HTTP nor the store: those have tests of their own.

#![warn(missing_docs)]

pub mod admission;
mod checks;
mod disks;
mod draw;
mod outcome;
pub mod reproduce;
mod scenario;
mod titles;
mod trace;
mod viewers;
mod world;

pub use checks::Violation;
pub use draw::{Mood, draw};
pub use outcome::Outcome;
pub use scenario::{Chores, Disk, Scenario, ScenarioError, Timing, Titles, Viewers};
pub use trace::Line;
pub use world::{run, run_observed};
