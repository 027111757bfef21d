//! Reading and writing devices and files, and moving bytes to sockets: everything that talks to
//! the kernel about bytes, and the only room with `unsafe`.
//!
//! Two faces. [`BlockDevice`] is positional and blocking: the store's catalogue, ingest and tools
//! use it. [`Queue`] submits and completes, reads and writes: the schedule's reads use it. Wrappers (throttle, disk
//! model in real time, faults) stand in front of either. It knows nothing of titles or streams.

#![warn(missing_docs)]

mod as_disk;
mod block;
mod bounce;
mod calibrate;
mod describe;
mod emulated;
mod faulty;
mod file;
mod fragments;
mod frames;
mod lateness;
mod memory;
mod method;
mod opening;
mod paced;
mod plain;
mod pool;
mod preallocate;
mod realtime;
mod refusal;
mod simulated;
pub mod sockets;
mod space;
mod sysfs;
mod throttled;

pub use as_disk::AsDisk;
pub use block::{
    BlockDevice, Completion, DeviceError, DeviceKind, Direction, Geometry, Queue, Transfer,
    room_hint,
};
pub use calibrate::{CalibrateOptions, CalibrateProgress, Turns, calibrate};
pub use describe::{Description, DiskFacts, QueueLimits, Use, describe};
pub use emulated::{DiskStatistics, DiskStop, EmulateOptions, EmulatedDisk, clear_left_over};
pub use faulty::{Access, Fault, Faulty, Rule};
pub use file::{FileDevice, OpenOptions};
pub use fragments::fragments;
pub use lateness::Lateness;
pub use memory::MemoryDevice;
pub use method::{Method, UnknownMethod};
pub use plain::{Opening, PlainFile};
pub use pool::{Buffer, Pool, SharedBuffer};
pub use preallocate::{preallocate, preallocate_part};
pub use realtime::{enter as run_first, leave as run_as_others};
pub use simulated::SimulatedDisk;
pub use space::{Space, space};
pub use throttled::Throttled;
