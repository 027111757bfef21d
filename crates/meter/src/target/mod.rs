//! Targets: what is measured, one small file for each way of doing it.
//!
//! ```text
//!   streams, transfers, rounds
//!        │ begin(Request: read or write, file, offset, length)      ▲ Arrived: when, how it went
//!        ▼                                                          │
//!   Port ─┬─ QueuedPort      one file or block device by any of the kernel's ways (device::Queue)
//!         ├─ files_port      many files, or files opened and closed each time: threads
//!         ├─ s3::bucket_port objects in a bucket, by range: threads
//!         ├─ SimulatedPort   a disk model in virtual time
//!         ├─ NullPort        nothing at all: what the meter itself costs
//!         └─ TickingPort     the same by a clock that moves when it is looked at: for counting
//! ```
//!
//! [`Place`] is where: something that is there already, or files that are made and filled for the
//! run and gone afterwards, laid out as [`Layout`] says. Nothing is written to what was not made
//! for the run unless the caller says [`Writing::Destructive`].

mod asleep;
mod ballast;
mod crew;
mod files;
mod layout;
mod leave;
mod made;
mod null;
mod place;
mod port;
mod queued;
mod simulated;
mod ticking;

pub use ballast::Ballast;
pub(crate) use crew::{Crew, Worker};
pub use files::{Anew, Use, files_port};
pub(crate) use layout::slot;
pub use layout::{Layout, Places, Shape};
pub use leave::{in_time, leave};
pub use made::MadeFiles;
pub use null::NullPort;
pub use place::{Place, PlaceError, Wanted, Writing};
pub use port::{Arrived, Handle, Port, Request};
pub use queued::QueuedPort;
pub(crate) use queued::stamp;
pub use simulated::SimulatedPort;
pub use ticking::TickingPort;

#[cfg(test)]
mod tests;
