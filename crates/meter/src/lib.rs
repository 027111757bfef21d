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
pub use experiment::*;
pub use observer::Observer;
pub use ramp::Script;

/// The element of `list` at `index`; a list that is too short is extended by default values.
fn grown<T: Clone + Default>(list: &mut Vec<T>, index: usize) -> &mut T {
    if list.len() <= index {
        list.resize(index + 1, T::default());
    }
    &mut list[index]
}
