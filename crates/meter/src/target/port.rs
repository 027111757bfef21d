//! The interface through which operations are issued and time is read.

use crate::log::OperationKind;
use device::DeviceError;
use std::time::Duration;
use units::Moment;

/// A target (files, a device, a simulated disk) with its clock.
pub trait Port {
    /// The time on the port's clock.
    fn now(&self) -> Moment;

    /// Submits an operation. Never waits for it.
    fn begin(&mut self, request: IoRequest) -> Result<(), DeviceError>;

    /// Waits until operations complete, which are appended to `done`, or until `until`; may return
    /// early with nothing. With nothing in flight and no end of the wait it returns immediately.
    fn wait(&mut self, until: Moment, done: &mut Vec<IoCompletion>) -> Result<(), DeviceError>;

    /// The longest wait of a run: how often its caller hears of it and may end it. In virtual time,
    /// where no wait takes any, that is longer.
    fn heartbeat(&self) -> Duration {
        HEARTBEAT
    }

    /// The last moment until which the target blocked the issuing thread because it took no more: a
    /// delay until then is the target's and not the meter's.
    fn held_until(&self) -> Moment {
        Moment::ZERO
    }

    /// Ends the run: cancels operations that have not begun, waits at most `at_most` for the
    /// others, and returns how many of them did not complete. Nothing is submitted afterwards.
    fn settle(&mut self, _at_most: Duration) -> u32 {
        0
    }

    /// The read and write method, for reports.
    fn method(&self) -> String;
}

/// Short enough to notice arrivals, long enough to cost nothing.
const HEARTBEAT: Duration = Duration::from_millis(5);

/// The heartbeat in virtual time: a day of it has 17 million intervals of 5 ms, and hardly any of
/// them has an operation.
pub(crate) const VIRTUAL_HEARTBEAT: Duration = Duration::from_millis(250);

/// An operation to be submitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IoRequest {
    /// The identifier of the operation until it completes.
    pub tag: u64,
    /// The direction.
    pub kind: OperationKind,
    /// The index of the target's file.
    pub file: u32,
    /// The offset in the file; need not be a multiple of the block size.
    pub offset: u64,
    /// The length in bytes; need not be a multiple of the block size.
    pub len: u64,
    /// The file handle that is used. A target with one file for all ignores it.
    pub handle: Handle,
}

/// The file handle that an operation uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Handle {
    /// The handle that was opened before the run.
    #[default]
    Kept,
    /// A handle of the client: opened for this operation and closed after it, or kept by the client
    /// between its first operation and its last.
    Own {
        /// The client's number.
        client: u32,
        /// Whether the file is opened before the operation.
        open: bool,
        /// Whether the file is closed after the operation.
        close: bool,
    },
}

/// A completed operation.
#[derive(Debug)]
pub struct IoCompletion {
    /// The tag of its [`IoRequest`].
    pub tag: u64,
    /// The time of completion, closing included.
    pub at: Moment,
    /// The result. The error is boxed, because there are thousands of completions at a time and
    /// hardly any fails.
    pub result: Result<(), Box<DeviceError>>,
    /// The arrival of the first byte, where that is known.
    pub first: Option<Moment>,
    /// The time spent on opening the file.
    pub open: Duration,
    /// The time spent on closing the file.
    pub close: Duration,
}

impl IoRequest {
    /// A read of a target that is one file.
    pub fn read(tag: u64, offset: u64, len: u64) -> Self {
        Self { tag, kind: OperationKind::Read, file: 0, offset, len, handle: Handle::Kept }
    }
}

impl IoCompletion {
    /// A completion without opening and closing times and without the time of the first byte.
    pub fn new(tag: u64, at: Moment, result: Result<(), DeviceError>) -> Self {
        let (open, close) = (Duration::ZERO, Duration::ZERO);
        Self { tag, at, result: result.map_err(Box::new), first: None, open, close }
    }
}
