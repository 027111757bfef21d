//! What a run counts.

use crate::reproduce::Cell;
use std::time::Duration;
use units::{Moment, add_fields};

/// What happened.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RunCounters {
    /// Viewers let in.
    pub admitted: u64,
    /// Viewers refused.
    pub refused: u64,
    /// Decisions made, of whichever policy ...
    pub decisions: u64,
    /// ... and the time that they took.
    pub deciding: Duration,
    /// Reads made.
    pub reads: u64,
    /// Bytes read.
    pub bytes: u64,
    /// Reads that ended after their deadline.
    pub late: u64,
    /// The longest time after a deadline.
    pub latest: Duration,
    /// The most bytes of buffers held at once.
    pub buffers: u64,
    /// Time that the disk worked.
    pub busy: Duration,
    /// Part of the busy time in which bytes were transferred.
    pub transfer: Duration,
    /// The least of the mean bytes a slot since the start, looked at after each slot from the
    /// tenth second on, while the disk was never idle.
    pub least_mean: Option<f64>,
}

impl RunCounters {
    /// The longest time after a deadline, in ms, as a table shows it.
    pub(crate) fn latest_ms(&self) -> Cell {
        Cell::Number(self.latest.as_secs_f64() * 1e3, 1)
    }

    /// What has happened since `before`; extremes are those of the whole time.
    pub(crate) fn since(&self, before: &Self) -> Self {
        Self {
            admitted: self.admitted - before.admitted,
            refused: self.refused - before.refused,
            decisions: self.decisions - before.decisions,
            deciding: self.deciding - before.deciding,
            reads: self.reads - before.reads,
            bytes: self.bytes - before.bytes,
            late: self.late - before.late,
            busy: self.busy - before.busy,
            transfer: self.transfer - before.transfer,
            ..*self
        }
    }
}

impl std::ops::AddAssign for RunCounters {
    fn add_assign(&mut self, other: Self) {
        add_fields!(self, other; admitted, refused, decisions, deciding);
        add_fields!(self, other; reads, bytes, late, busy, transfer);
        self.latest = self.latest.max(other.latest);
        self.buffers = self.buffers.max(other.buffers);
        // A run without a stable mean must not count as one with a mean of zero.
        self.least_mean = match (self.least_mean, other.least_mean) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
    }
}

/// How long the disk has been busy without a pause since it began.
#[derive(Clone, Debug, Default)]
pub(super) struct BusyTime {
    began: Option<Moment>,
    paused: bool,
    /// In this slot.
    idle: bool,
    reads: u32,
    stretches: Vec<Vec<u32>>,
}

impl BusyTime {
    /// There is something to read; the first time counts.
    pub(super) fn begins(&mut self, now: Moment) {
        self.began.get_or_insert(now);
    }

    /// There is nothing to read.
    pub(super) fn pauses(&mut self) {
        (self.paused, self.idle) = (true, true);
    }

    /// A read is complete.
    pub(super) fn reads(&mut self) {
        self.reads += 1;
    }

    /// A slot has ended: notes its reads and the mean.
    pub(super) fn slot_ends(&mut self, now: Moment, slot: Duration, counters: &mut RunCounters) {
        // A slot with idle time ends the stretch: a service curve is about slots that were busy
        // throughout.
        match self.stretches.last_mut() {
            Some(stretch) if !self.idle => stretch.push(self.reads),
            Some(stretch) if stretch.is_empty() => {}
            _ => self.stretches.push(Vec::new()),
        }
        (self.idle, self.reads) = (false, 0);
        let Some(began) = self.began else { return };
        let ran = now.since(began);
        // After a pause the mean says what was requested, not what the disk can do.
        if self.paused || ran < STABLE {
            return;
        }
        let mean = counters.bytes as f64 / (ran.as_secs_f64() / slot.as_secs_f64());
        counters.least_mean = Some(counters.least_mean.map_or(mean, |least| least.min(mean)));
    }

    /// Stretches of whole slots in which the disk was never idle: the reads completed in each.
    pub(super) fn into_stretches(self) -> Vec<Vec<u32>> {
        self.stretches
    }
}

/// Means before are those of the first requests' quiet.
const STABLE: Duration = Duration::from_secs(10);
