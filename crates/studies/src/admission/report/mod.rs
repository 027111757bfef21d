//! Results of scenarios and runs as tables and figures.

mod bands;
mod runs;

pub use bands::{ArrivalGroup, study_report};
pub use runs::{SlowdownRun, long_run_report, slowdown_report, stress_report};
