//! The door through which operations, and time, come in.

use crate::log::OperationKind;
use device::DeviceError;
use std::time::Duration;
use units::Moment;

/// What is measured - files, a device, a simulated disk - and the clock it goes by.
pub trait Port {
    /// The time.
    fn now(&self) -> Moment;

    /// Asks for an operation. Never waits.
    fn begin(&mut self, request: IoRequest) -> Result<(), DeviceError>;

    /// Waits until something arrives, which is appended to `done`, or until `until`; may return
    /// early with nothing. With nothing under way and no end to wait for, returns at once.
    fn wait(&mut self, until: Moment, done: &mut Vec<IoCompletion>) -> Result<(), DeviceError>;

    /// The last moment until which whoever asks was kept asleep because the target took no more:
    /// what came due meanwhile waited for the target and not for who asks.
    fn held_until(&self) -> Moment {
        Moment::ZERO
    }

    /// When its run is over: calls off what has not begun, waits at most so long for what has, and
    /// says how much of that has not come back. Nothing is asked for afterwards.
    fn settle(&mut self, _at_most: Duration) -> u32 {
        0
    }

    /// How it is done, for reports.
    fn method(&self) -> String;
}

/// An operation that is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IoRequest {
    /// Its name until it has arrived.
    pub tag: u64,
    /// Read or write.
    pub kind: OperationKind,
    /// Which of the target's files, from 0.
    pub file: u32,
    /// Where in it; need not be whole blocks.
    pub offset: u64,
    /// How many bytes; need not be whole blocks.
    pub len: u64,
    /// Whose opening of the file is used. A target that is one file for all ignores it.
    pub handle: Handle,
}

/// Whose opening of a file an operation uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Handle {
    /// The one that was made before the run.
    #[default]
    Kept,
    /// One of a client's own: made for this operation and closed after it, or kept by the client
    /// between its first and its last.
    Own {
        /// Whose.
        client: u32,
        /// Opened before the operation.
        open: bool,
        /// Closed after it.
        close: bool,
    },
}

/// An operation that is over.
#[derive(Debug)]
pub struct IoCompletion {
    /// As in its [`IoRequest`].
    pub tag: u64,
    /// When, closing included.
    pub at: Moment,
    /// How it went. The error lies elsewhere: there are thousands of these at a time, and next to
    /// none fails.
    pub result: Result<(), Box<DeviceError>>,
    /// When the first byte arrived, where that is known.
    pub first: Option<Moment>,
    /// What opening the file took.
    pub open: Duration,
    /// What closing it took.
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
