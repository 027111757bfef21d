//! The storage meter: the rate that a storage delivers to its clients, measured from outside.
//!
//! ```text
//!   XConfig ──▶ run_x(&config, &observer) ──▶ ExperimentReport     experiment/
//!                   │
//!                   ├─ streams, transfers, rounds, viewer          the timing of reads and players
//!                   ├─ target, s3, emulated                        the storage that is measured
//!                   ├─ capacity, compare, study, bottleneck        the conclusions
//!                   ├─ blame, log, live                            records of a run
//!                   └─ report                                      text, JSON, HTML with plots
//! ```
//!
//! The path of `tenuto meter run`, in reading order:
//!
//! ```text
//!   tenuto: commands/meter/streams.rs    arguments to a configuration, and the report on screen
//!   experiment/streams.rs                prepares, runs, checks and saves
//!   experiment/port.rs                   the interface to the target
//!   streams/mod.rs                       the loop: submit, wait, judge
//!   experiment/run_report.rs             text, JSON and page
//! ```
//!
//! The functions and types at this root are those that a program needs to run experiments and to
//! show their reports. [`fleet`] runs one experiment on many machines; [`profiles`] describe the
//! streams of known formats.
//!
//! The meter does not know the store's format and shares no code with the server: its figures of
//! the server are those that any other client would measure. It prints nothing.

mod blame;
mod bottleneck;
pub mod capacity;
pub mod compare;
pub mod emulated;
mod error;
mod experiment;
pub mod fleet;
mod live;
pub mod log;
mod network;
mod observer;
pub mod profiles;
mod ramp;
pub mod report;
pub mod rounds;
pub mod s3;
pub mod streams;
pub mod study;
pub mod target;
mod threshold;
pub mod tls;
pub mod trace;
pub mod transfers;
pub mod viewer;

pub use error::{MeterError, MeterErrorKind};
pub use experiment::{
    AgentConfig, ComparisonConfig, ExperimentReport, FleetConfig, NetworkConfig, PlayersConfig,
    RampConfig, RateAlarmConfig, RoundsConfig, SearchConfig, StreamRunConfig, StreamsConfig,
    StudyConfig, TargetSpec, TransfersConfig, Variants, builtin_script, compare_runs,
    compare_variants, load_profile, load_profile_text, load_script, read_token, recount_runs,
    run_fleet, run_players, run_ramp, run_rounds, run_streams, run_study, run_transfers,
    run_worker, search_players, search_streams, serve_agent, serve_agent_stdio, study_network,
};
pub use observer::Observer;
pub use ramp::Script;
