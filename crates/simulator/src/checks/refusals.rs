//! Refusals are true: the cause exists, what never fits is never accepted, and a request that comes
//! at the exact time that it was given is accepted.
//!
//! ```text
//!   refused: never               ──▶ the same request is refused at any later time, unless there is
//!                                    another viewer of the title to be followed
//!   refused: exactly in 3 s      ──▶ the same viewer is accepted in 3 s, if nothing else changed
//!   refused because of sessions  ──▶ there is one, or data of one
//! ```

use super::ViolationLog;
use engine::{Refusal, RefusalCause, Resource, RetryAfter};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use units::Moment;

/// What viewers ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Wish {
    pub(crate) title: usize,
    pub(crate) from: Duration,
    /// The longest time that it waits for its start.
    pub(crate) patience: Duration,
}

impl Wish {
    // Whether a refusal of this for ever is one of `other`, too, who waits no longer.
    fn covers(&self, other: &Self) -> bool {
        (self.title, self.from) == (other.title, other.from) && self.patience >= other.patience
    }
}

/// The refusals of a world, kept until they can be compared with what came of them.
#[derive(Debug)]
pub(crate) struct Refusals {
    /// Whether every disk keeps its guarantee: without that, exact times are not kept either.
    guaranteed: bool,
    never: BTreeSet<Wish>,
    exact: BTreeMap<usize, ExactTime>,
    changes: u64,
    /// Refusals that said "never".
    pub(crate) for_ever: u64,
    /// Requests that came at the exact time of a refusal, with nothing changed in between.
    pub(crate) at_exact_time: u64,
}

/// A time at which a viewer is to be accepted.
#[derive(Debug)]
struct ExactTime {
    at: Moment,
    wish: Wish,
    /// The number of changes when it was given.
    changes: u64,
}

impl Refusals {
    /// No refusals yet. `guaranteed`: every disk keeps its guarantee.
    pub(crate) fn new(guaranteed: bool) -> Self {
        let (never, exact) = (BTreeSet::new(), BTreeMap::new());
        Self { guaranteed, never, exact, changes: 0, for_ever: 0, at_exact_time: 0 }
    }

    /// A viewer was refused. `in_use`: there are sessions, or data of sessions.
    pub(crate) fn refused(
        &mut self,
        viewer: usize,
        wish: Wish,
        refusal: &Refusal,
        in_use: bool,
        violations: &mut ViolationLog,
    ) {
        if let Some(told) = self.due(viewer, wish, violations.now) {
            violations.require(
                told != self.changes,
                "a viewer who comes at the exact time of its refusal is accepted",
                || format!("viewer {viewer}: {refusal:?}"),
            );
        }
        violations.require(
            in_use || refusal.cause != RefusalCause::Sessions,
            "sessions are the cause of a refusal only if there are any",
            || format!("viewer {viewer}: {refusal:?}"),
        );
        match refusal.retry {
            RetryAfter::Never => {
                self.for_ever += 1;
                self.never.insert(wish);
            }
            // Memory is not looked at: slow sockets hold buffers longer than they are reserved for.
            RetryAfter::Exact(after)
                if self.guaranteed && refusal.resource != Some(Resource::Memory) =>
            {
                let told = ExactTime { at: violations.now + after, wish, changes: self.changes };
                self.exact.insert(viewer, told);
            }
            RetryAfter::Exact(_) | RetryAfter::Estimated(_) | RetryAfter::Unknown => {}
        }
    }

    /// A viewer was accepted.
    /// `may_follow`: another viewer of the title is there, whose data it may share.
    pub(crate) fn accepted(
        &mut self,
        viewer: usize,
        wish: Wish,
        may_follow: bool,
        violations: &mut ViolationLog,
    ) {
        self.due(viewer, wish, violations.now);
        violations.require(
            may_follow || !self.never.iter().any(|other| other.covers(&wish)),
            "a request that never fits is never accepted",
            || format!("viewer {viewer}: {wish:?}"),
        );
        self.changed();
    }

    /// What is booked, or what a disk does, has changed in a way that the last refusals could not
    /// know.
    pub(crate) fn changed(&mut self) {
        self.changes += 1;
    }

    /// A disk has a new calibration, for which nothing was said.
    pub(crate) fn recalibrated(&mut self) {
        self.never.clear();
        self.changed();
    }

    // If the viewer comes at the exact time that it was given: the changes until that was given.
    fn due(&mut self, viewer: usize, wish: Wish, now: Moment) -> Option<u64> {
        let told = self.exact.remove(&viewer)?;
        if told.at != now || told.wish != wish {
            return None;
        }
        self.at_exact_time += u64::from(told.changes == self.changes);
        Some(told.changes)
    }
}
