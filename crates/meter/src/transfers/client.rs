//! A client in the middle of a transfer.

use super::Transfer;
use std::time::Duration;
use units::Moment;

/// What a client does.
#[derive(Clone, Debug)]
pub(super) enum TransferClient {
    /// It waits before it begins this transfer.
    Waits(Moment, Transfer),
    /// A block of it is under way.
    Moves(Moving),
    /// It has done all it was to do.
    Done,
}

/// A transfer under way.
#[derive(Clone, Debug)]
pub(super) struct Moving {
    pub(super) transfer: Transfer,
    /// Which of the client's.
    pub(super) number: u64,
    /// When it began.
    pub(super) began: Moment,
    /// The block that is under way, where it is, and when it was asked for.
    pub(super) block: u32,
    pub(super) offset: u64,
    pub(super) asked: Moment,
    /// What is over of it.
    pub(super) data: Duration,
    pub(super) open: Duration,
    pub(super) meter: Duration,
    /// When the block before was over.
    pub(super) over: Moment,
}
