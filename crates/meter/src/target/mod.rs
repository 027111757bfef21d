//! Targets: the storage that is measured, one small file for each kind.
//!
//! ```text
//!   streams, transfers, rounds
//!        │ begin(IoRequest: read or write, file, offset, length)      ▲ IoCompletion: time, result
//!        ▼                                                          │
//!   Port ─┬─ QueuedPort      one file or block device by a kernel interface (device::Queue)
//!         ├─ files_port      many files, or files opened and closed each time: threads
//!         ├─ bucket::bucket_port objects in a bucket, by range: threads
//!         ├─ SimulatedPort   a disk model in virtual time
//!         ├─ NullPort        nothing: the cost of the meter itself
//!         └─ TickingPort     nothing, with a clock that advances on each reading: for tests
//! ```
//!
//! [`TargetStorage`] is the storage itself: an existing file or device, or files that are made and
//! filled for the run and removed afterwards, in the given [`Layout`]. Nothing that was not made
//! for the run is written unless the caller allows it by [`WriteAccess::Destructive`].

mod close_port;
mod files;
mod fill_level;
mod filling;
mod frame_names;
mod layout;
mod left_behind;
mod null;
mod port;
mod queued;
mod simulated;
mod sleep_clock;
mod storage;
mod test_files;
mod thread_pool;
mod ticking;
mod verify;

pub(crate) use close_port::{check_not_stuck, close_port, in_time};
pub(crate) use files::{Anew, Use, files_port};
pub(crate) use fill_level::FillLevel;
pub(crate) use filling::Filling;
pub(crate) use filling::{FILL_PATIENCE, fill_aside};
pub use frame_names::FrameNames;
pub(crate) use layout::FilePositions;
pub(crate) use layout::slot;
pub use layout::{FileSet, Layout};
pub use left_behind::LeftBehind;
pub use null::NullPort;
pub(crate) use port::VIRTUAL_HEARTBEAT;
pub use port::{Handle, IoCompletion, IoRequest, Port};
pub use queued::QueuedPort;
pub(crate) use queued::stamp;
pub use simulated::SimulatedPort;
pub(crate) use storage::{NamedFiles, TargetNeeds, TargetStorage, WriteAccess};
pub(crate) use test_files::{FileNames, TestFiles};
pub(crate) use thread_pool::{PoolWorker, ThreadPool};
pub use ticking::TickingPort;
pub(crate) use verify::{Verifier, VerifyReport};

#[cfg(test)]
mod tests;
