//! Admission policies compared in virtual time: how much load of a disk each policy accepts, and
//! whether the accepted streams are served on time.
//!
//! ```text
//!   titles ─▶ requests ─▶ scenario ─▶ study: bands of load      (the papers' tables and figures)
//!   (clips)   (views)         │     ─▶ stress: is anybody late?
//!                             │     ─▶ long run: what is sold?
//!                             ▼
//!             disk server: the scheduler's policies and dispatcher, and one disk model
//! ```
//!
//! The scenarios are those of Dwight Makaroff, Jason Coutu and Fujian Liu, *Disk Performance and
//! VBR Admission Control for Media Servers*. The code under test is the production code: the
//! policies and the dispatcher of `scheduler`. Clips, requests and disk times are simulated.
//!
//! These studies omit the engine, its sessions, faults and the titles' indexes. The crate
//! `simulator` has them, at a cost that rules out tens of thousands of scenarios.

mod crowd;
mod disk_server;
pub mod fitted;
mod long_run;
mod presets;
mod random;
mod report;
mod requests;
mod scenario;
mod slowdown;
mod stored_title;
mod stress;
mod study;
mod titles;

pub use crowd::{CrowdArrivals, CrowdResult, CrowdRun, CrowdStudy, crowd_report};
pub use disk_server::{
    RotationalDelay, Rules, RunCounters, SingleDiskServer, SlowPeriod, ViewerNumber,
};
pub use long_run::{LongRunResult, long_run};
pub use presets::{Preset, Setup};
pub(crate) use random::RandomSource;
pub use report::{
    ArrivalGroup, SlowdownRun, long_run_report, slowdown_report, stress_report, study_report,
};
pub use requests::{Read, ReadSchedule, Request, View};
pub use scenario::{Arrival, Scenario, Workload};
pub use slowdown::{ENDS, RECOVERS, RunPhase, SLOWS, slowdown_run, together};
pub use stored_title::stored_title;
pub use stress::{Stress, StressResult};
pub use study::{OfflineResult, PolicyResult, PolicyUnderTest, ScenarioResult, Study, TitleOrigin};
pub(crate) use titles::whole;
pub use titles::{BLOCK, ClipKind, Clips, StoredTitles, Title, TitleSource, Track};
