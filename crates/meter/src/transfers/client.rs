//! The state of a client between and during transfers.

use super::Transfer;
use std::time::Duration;
use units::Moment;

/// The state of a client.
#[derive(Clone, Debug)]
pub(super) enum TransferClient {
    /// It waits until a moment and then begins this transfer.
    Waits(Moment, Transfer),
    /// A block of a transfer is in flight.
    Moves(Moving),
    /// It has made all its transfers.
    Done,
}

/// A transfer in progress.
#[derive(Clone, Debug)]
pub(super) struct Moving {
    pub(super) transfer: Transfer,
    /// The number of the transfer among the client's.
    pub(super) number: u64,
    /// The moment at which it began.
    pub(super) began: Moment,
    /// The block in flight, its offset, and the time of its request.
    pub(super) block: u32,
    pub(super) offset: u64,
    pub(super) asked: Moment,
    /// The total time of the completed blocks.
    pub(super) data: Duration,
    pub(super) open: Duration,
    pub(super) meter: Duration,
    /// The time at which the block before was complete.
    pub(super) over: Moment,
}
