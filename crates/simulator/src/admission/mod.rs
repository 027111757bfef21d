//! Admission policies compared in virtual time: how much of a disk each lets in, and whether those
//! who were let in are served in time.
//!
//! ```text
//!   titles ─▶ requests ─▶ scenario ─▶ study: bands of load      (the papers' tables and figures)
//!   (clips)   (views)         │     ─▶ stress: is anybody late?
//!                             │     ─▶ long run: what is sold?
//!                             ▼
//!             station: the scheduler's policies, books and plans, and one disk model
//! ```
//!
//! The scenarios are those of Dwight Makaroff, Jason Coutu and Fujian Liu, *Disk Performance and VBR
//! Admission Control for Media Servers*. What is under test is the code that ships: `scheduler`'s
//! policies and its rule of what is read next. What is made up is clips, requests and the time that
//! a disk takes.
//!
//! It deliberately does without the engine, its sessions, faults and titles' indexes: those are
//! simulated by [`crate::run`], at a cost that forbids tens of thousands of scenarios.

mod chance;
pub mod fits;
mod hindsight;
mod long_run;
mod presets;
mod report;
mod requests;
mod runs;
mod scenario;
mod slowing;
mod station;
mod stress;
mod study;
mod titles;
mod training;

pub use hindsight::Hindsight;
pub use long_run::{Sold, long_run};
pub use presets::{Preset, Setup};
pub use report::{Group, Slowed, long_run_report, slowing_report, stress_report, study_report};
pub use requests::{Read, Request, View, Wanted};
pub use scenario::{Arrival, Habits, Scenario};
pub use slowing::{ENDS, Phase, RECOVERS, SLOWS, slowing, together};
pub use station::{Rules, Station, Tally, Trouble, Turns, Viewer};
pub use stress::{Strain, Stress};
pub use study::{Contender, Judged, Row, Study, Titles};
pub use titles::{BLOCK, ClipKind, Clips, Kept, Shelf, Title, Track};
