//! Experiments: each takes a configuration, measures, and returns a report.
//!
//! ```text
//!   XConfig ──▶ run_x(config, observer) ──▶ ExperimentReport { summary, text, verdict }
//!                   │          ▲ status, notes; stop
//!                   │          └ the program that started it
//!                   ├─ target, port      open the target, choose the port
//!                   ├─ search            runs one after another, within a time budget
//!                   ├─ attribution       which resource was full when reads were late
//!                   └─ record            the log of a run, and the files of --out
//! ```
//!
//! There is one file for each kind of experiment, with its page beside it. Nothing here prints or
//! parses a command line; the timing of streams, transfers and rounds is in the modules of these
//! names.

mod agent_process;
mod agents_page;
mod agents_target;
mod attribution;
mod capacity;
mod capacity_page;
mod compare_runs;
mod compare_variants;
mod ebu;
mod inputs;
mod job;
mod job_agents;
mod job_file;
mod job_page;
mod metrics;
mod network;
mod players;
mod port;
mod profile_from;
mod ramp;
mod rate_alarm;
mod record;
mod recount;
mod recount_page;
mod remote_deploy;
mod rounds;
mod run_report;
mod search;
mod self_test;
mod start_barrier;
mod streams;
mod study;
mod study_page;
mod tables;
mod target;
mod transfers;
mod transfers_page;

pub use agent_process::{AgentConfig, read_token, run_worker, serve_agent, serve_agent_stdio};
pub use agents_target::AgentsConfig;
pub use capacity::SearchConfig;
pub use compare_runs::{ComparisonConfig, compare_runs};
pub use compare_variants::{Variants, compare_variants};
pub use ebu::{EbuConfig, run_ebu};
pub use inputs::{builtin_script, load_profile, load_script};
pub use job::{JobConfig, run_job};
pub use network::{NetworkConfig, study_network};
pub use players::{PlayersConfig, run_players, search_players};
pub use profile_from::profile_from;
pub use ramp::{RampConfig, run_ramp};
pub use rate_alarm::RateAlarmConfig;
pub use record::{ExperimentReport, new_directory, save_summary};
pub use recount::recount_runs;
pub use rounds::{RoundsConfig, run_rounds};
pub use self_test::{CapacityScore, capacity_score};
pub use streams::{RunLength, StreamRunConfig, StreamsConfig, run_streams, search_streams};
pub use study::{StudyConfig, run_study};
pub use target::{TargetPath, TargetSpec};
pub use transfers::{TransfersConfig, run_transfers};
