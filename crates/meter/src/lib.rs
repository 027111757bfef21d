//! The storage meter: the rate that a storage delivers to its clients, measured from outside.
//!
//! ```text
//!   XConfig ──▶ run_x(&config, &observer) ──▶ ExperimentReport     experiment/
//!                   │
//!                   ├─ streams, transfers, rounds, viewers         the timing of reads and players
//!                   ├─ target, s3, emulated                        the storage that is measured
//!                   ├─ capacity, compare, study, bottleneck        the conclusions
//!                   ├─ blame, log, live                            records of a run
//!                   └─ report                                      text, JSON, HTML with plots
//!   console                       a web page that starts these experiments, and their reports
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
//! show their reports. [`agents`] run one experiment on many machines; [`profiles`] describe the
//! streams of known formats; [`operations`] are for programs that bring a storage of their own.
//!
//! The meter does not know the store's format and shares no code with the server: its figures of
//! the server are those that any other client would measure. It prints nothing.

mod allowed;
mod blame;
mod bottleneck;
mod bucket;
mod capacity;
pub mod compare;
pub mod console;
pub mod emulated;
mod error;
mod experiment;
mod fleet;
mod live;
mod log;
mod network;
mod observer;
pub mod profiles;
mod progress;
mod ramp;
pub mod report;
pub mod rounds;
mod streams;
pub mod study;
mod target;
mod threshold;
mod trace;
pub mod transfers;
pub mod viewers;
mod wire_pairs;

pub use capacity::{HoldRule, StorageKind};
pub use error::{MeterError, MeterErrorKind};
pub use experiment::{
    CapacityScore, ComparisonConfig, EbuConfig, ExperimentReport, JobConfig, NetworkConfig,
    PlayersConfig, RampConfig, RateAlarmConfig, RoundsConfig, RunLength, SearchConfig,
    StreamRunConfig, StreamsConfig, StudyConfig, TargetPath, TargetSpec, TransfersConfig, Variants,
    builtin_script, capacity_score, compare_runs, compare_variants, load_profile, load_script,
    new_directory, profile_from, recount_runs, run_ebu, run_job, run_players, run_ramp, run_rounds,
    run_streams, run_study, run_transfers, save_summary, search_players, search_streams,
    study_network,
};
pub use observer::Observer;
pub use s3::S3Access;
pub use target::{FrameNames, Layout, LeftBehind};

/// Runs on many machines: the controller, and the agents and workers that it directs.
pub mod agents {
    pub use crate::experiment::{
        AgentConfig, AgentsConfig, read_token, run_worker, serve_agent, serve_agent_stdio,
    };
}

/// Single operations on a target: the interface to a storage of one's own, and the records of a
/// run.
pub mod operations {
    pub use crate::log::{
        LogSink, OperationKind, Record, RecordSink, WhenFull, background_writer, read, recount,
    };
    pub use crate::streams::{BacklogGrowth, StreamsOutcome, StreamsPlan, run as run_streams};
    pub use crate::target::{
        FileSet, Handle, IoCompletion, IoRequest, NullPort, Port, QueuedPort, SimulatedPort,
        TickingPort,
    };
}
