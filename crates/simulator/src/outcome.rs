//! What came of it.

use player::PlayerReport;
use server::engine::{SessionSummary, Status};
use std::time::Duration;

/// The end of a world.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The books after everybody had left.
    pub status: Status,
    /// Broken promises and broken rules, in words; empty is good.
    pub violations: Vec<String>,
    /// Pieces late for admitted viewers, as the engine counted.
    pub glitches: u64,
    /// Everybody who was let in.
    pub viewers: Vec<ViewerOutcome>,
    /// Turned away at the door.
    pub refused: u64,
    /// Bytes that sockets took.
    pub delivered: u64,
    /// Best-effort pieces of work done.
    pub best_effort: u64,
    /// The most bytes of buffers alive at any moment.
    pub most_buffers: u64,
    /// When the last thing happened.
    pub ended: Duration,
    /// A number that any other course of events would have changed.
    pub trace: u64,
}

/// One viewer's end.
#[derive(Clone, Debug)]
pub struct ViewerOutcome {
    /// It watched from start to end over a good network: nothing may have gone wrong.
    pub good: bool,
    /// What its player says.
    pub report: Option<PlayerReport>,
    /// What the engine says.
    pub summary: Option<SessionSummary>,
    /// Requests refused half-way (seeks that did not fit, returns after a long pause).
    pub refused: u32,
}

impl Outcome {
    /// Stalls that viewers saw who had done nothing to earn them.
    pub fn stalls(&self) -> u64 {
        let reports = self.viewers.iter().filter(|viewer| viewer.good);
        reports.filter_map(|viewer| viewer.report.as_ref()).map(|r| r.glitches.count).sum()
    }
}
