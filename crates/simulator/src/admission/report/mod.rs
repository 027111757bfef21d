//! Judged scenarios and runs as tables and figures.

mod bands;
mod runs;

pub use bands::{Group, study_report};
pub use runs::{Slowed, long_run_report, slowing_report, stress_report};
