//! Reading and writing devices and files, and moving bytes to sockets: all system calls that
//! transfer bytes, and the only crate with `unsafe`.
//!
//! There are two interfaces. [`BlockDevice`] is positional and blocking: the store's catalogue,
//! ingest and tools use it. [`Queue`] submits and completes reads and writes: scheduled reads use
//! it. Wrappers (throttle, disk model in real time, faults) work with both. The crate knows nothing
//! of titles or streams.

#![warn(missing_docs)]

mod block;
mod bounce;
mod calibrate;
mod describe;
mod discard;
mod disk_model;
mod emulated;
mod faulty;
mod file;
mod fragments;
mod frames;
mod identity;
mod kernel_counters;
mod kind;
mod lateness;
mod machine_memory;
mod memory;
mod method;
mod mounts;
pub mod no_links;
mod open_file;
mod opening;
mod paced;
mod paced_disk;
mod pool;
mod preallocate;
mod raw_file;
mod realtime;
mod refusal;
mod replacement;
mod simulated;
pub mod sockets;
mod space;
mod sysfs;
mod throttled;

pub use block::{
    BlockDevice, Completion, DeviceError, DeviceKind, Direction, Geometry, Queue, Transfer,
    room_hint,
};
pub use calibrate::{CalibrateOptions, CalibrateProgress, DiskAccess, calibrate};
pub use describe::{Description, DeviceUse, DiskFacts, QueueLimits, describe};
pub use disk_model::disk_model;
pub use emulated::{DiskStatistics, DiskStop, EmulateOptions, EmulatedDisk, remove_stale_disks};
pub use faulty::{Access, Fault, FaultRule};
pub use file::FileDevice;
pub use fragments::fragments;
pub use identity::FileIdentity;
pub use kernel_counters::KernelCounters;
pub use lateness::Lateness;
pub use machine_memory::{MachineMemory, MemoryLimits};
pub use memory::MemoryDevice;
pub use method::Method;
pub use no_links::Links;
pub use opening::OpenOptions;
pub use paced::PacedDevice;
pub use pool::{Buffer, Pool, SharedBuffer};
pub use preallocate::{preallocate, preallocate_part};
pub use raw_file::{OpenMode, RawFile};
pub use realtime::{enter as enter_realtime, leave as leave_realtime};
pub use replacement::{keep_open, monotonic_clock, take_kept};
pub use simulated::SimulatedDisk;
pub use space::{Space, space};
