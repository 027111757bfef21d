//! The whole system in one thread from one seed: viewers, disks, faults and checkers around the
//! production engine.
//!
//! ```text
//!   Scenario + seed ─▶ titles ─▶ ┌────────┐ admit, request, ...    ┌────────┐
//!                      viewers ─▶│ world  │───────────────────────▶│ engine │   production code
//!                      disks  ─▶ │ (time) │◀──────── actions ──────│        │
//!                                └───┬────┘                        └────────┘
//!                                    ▼
//!                     checkers ─▶ WorldOutcome: numbers, violations, a hash of the trace
//! ```
//!
//! Time is a number, a disk is arithmetic, a viewer is a state machine, and all random numbers come
//! from one seed. Only [`engine`] is production code, so that a rule that holds here holds
//! in a server. One scenario gives the same trace on every machine.
//!
//! The checkers are written from outside the engine: they judge its answers by the titles, the
//! segments and the configuration, and share no code with it. The crate deliberately contains
//! neither HTTP nor the store: those have tests of their own.

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
pub use scenario::{BackgroundWork, DiskSpec, Scenario, Timing, Titles, Viewers};
pub use trace::TraceLine;
pub use world::{run, run_observed, would_be_admitted_as_lowest};
