//! The door through which reads, and time, come in.

use device::DeviceError;
use units::Moment;

/// Reads from one disk, file or file system, and the clock they go by.
pub trait Port {
    /// The time.
    fn now(&self) -> Moment;

    /// Asks for `len` bytes at `offset`; need not be whole blocks. `tag` names the read until it
    /// has arrived. Never waits.
    fn begin(&mut self, tag: u64, offset: u64, len: u64) -> Result<(), DeviceError>;

    /// Waits until something arrives, which is appended to `done`, or until `until`; may return
    /// early with nothing. With nothing under way and no end to wait for, returns at once.
    fn wait(&mut self, until: Moment, done: &mut Vec<Arrived>) -> Result<(), DeviceError>;

    /// How it reads, for reports.
    fn method(&self) -> String;
}

/// A read that is over.
#[derive(Debug)]
pub struct Arrived {
    /// As given to [`Port::begin`].
    pub tag: u64,
    /// When.
    pub at: Moment,
    /// How it went.
    pub result: Result<(), DeviceError>,
}
