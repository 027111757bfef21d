//! How a disk is used in a run: what is known of it, who is let in, how it is read, and what goes
//! wrong with it.

use super::super::requests::Read;
use disk::DiskModel;
use scheduler::{DiskTimings, PieceDue, PolicyKind};
use std::sync::Arc;
use std::time::Duration;
use units::{Moment, SlotIndex};

/// How the disk is used.
#[derive(Clone, Debug)]
pub struct Rules {
    /// The disk.
    pub model: DiskModel,
    /// What is known of it.
    pub timings: Arc<DiskTimings>,
    /// The scheduling period.
    pub slot: Duration,
    /// From a viewer's arrival to its first picture, at least.
    pub startup: Duration,
    /// The admission policy; everybody is admitted if `None`.
    pub policy: Option<PolicyKind>,
    /// Reads that a policy takes the disk to complete in any slot. Without a plan, so many are
    /// read at a time.
    pub min_read: u32,
    /// Whether windows of disk time are read; otherwise `min_read` reads at a time.
    pub windows: bool,
    /// Bytes of the largest read.
    pub read_size: u64,
    /// Bytes of buffers.
    pub memory: u64,
    /// How long the platter lets every read wait.
    pub rotation: RotationalDelay,
    /// Whether everything is charged more once the disk takes longer than it was charged.
    pub guarded: bool,
    /// A time in which the disk is slower than its model.
    pub slow_period: Option<SlowPeriod>,
    /// A clock, to say how long decisions take; without one they are taken to take none.
    pub clock: Option<fn() -> Duration>,
}

/// Rotational delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RotationalDelay {
    /// Evenly between none and a revolution.
    Random,
    /// A whole revolution, every time.
    Worst,
}

/// A disk that keeps working, slower (fail-stutter): it retries, rebuilds, wears out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SlowPeriod {
    /// From here ...
    pub from: Moment,
    /// ... to here ...
    pub until: Moment,
    /// ... each read takes so many times what the model says; at least once.
    pub times: f64,
}

impl Rules {
    /// The slot in which a viewer who came at `now` sees the first frame.
    pub(crate) fn first_slot(&self, now: Moment) -> SlotIndex {
        let ready = now + self.startup;
        let at = SlotIndex::at(ready, self.slot);
        let first = if at.start(self.slot) < ready { at.next() } else { at };
        // It must be in memory when that slot begins, and be read in a slot to come.
        first.max(SlotIndex::at(now, self.slot) + 2)
    }

    /// When a read that the model ends at `finish` is done by the disk as it is.
    pub(super) fn finish(&self, begun: Moment, finish: Moment) -> Moment {
        match self.slow_period {
            Some(slow_period) if (slow_period.from..slow_period.until).contains(&begun) => {
                begun + finish.since(begun).mul_f64(slow_period.times.max(1.0))
            }
            _ => finish,
        }
    }
}

/// Everything that is shown in a slot is in memory by the end of the one before.
pub(crate) fn due_slot(read: &Read, first: SlotIndex) -> SlotIndex {
    SlotIndex((first + u64::from(read.shown)).0 - 1)
}

/// Converts a read to the piece that is booked for a viewer whose first frame is shown in `first`.
pub(super) fn piece_of(read: &Read, number: u32, first: SlotIndex) -> PieceDue {
    PieceDue {
        piece: number,
        due: due_slot(read, first),
        release: first + u64::from(read.until),
        len: read.len,
        transfer: read.transfer,
        followed_after: read.followed_after,
    }
}
