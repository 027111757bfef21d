//! Priorities: a session ends for another one only if that has a higher priority, and on a disk
//! that is too slow the lowest priority ends first, of one priority the newest.
//!
//! ```text
//!   admitted, and these end for it ──▶ each of them is open, lower, and ends at this moment
//!   ended for a priority           ──▶ announced so; or a session of a higher one has sought
//!   ended for an overload          ──▶ after no session of a higher priority or an older one of
//!                                      the same, on this disk at this moment; one stays
//! ```
//!
//! That a viewer would have been refused without those who ended is checked by a second run of the
//! world: [`would_be_admitted_as_lowest`](crate::would_be_admitted_as_lowest).

use super::ViolationLog;
use engine::{CutShort, Priority, SessionId, SessionSummary};
use std::collections::{BTreeMap, BTreeSet};
use units::Moment;

/// An open session.
#[derive(Clone, Copy, Debug)]
struct Open {
    priority: Priority,
    /// The disk that it is read from; `None` where its title has several.
    disk: Option<usize>,
}

#[derive(Debug, Default)]
pub(crate) struct Priorities {
    open: BTreeMap<SessionId, Open>,
    /// Sessions that an admission named, and that have not ended yet.
    named: BTreeSet<SessionId>,
    /// Per disk, the last session that ended for its overload, and when.
    overloads: BTreeMap<usize, (Moment, Priority, SessionId)>,
    /// Sessions that ended for a higher priority, and for an overload.
    pub(crate) preempted: u64,
    pub(crate) overloaded: u64,
}

impl Priorities {
    /// A viewer was admitted, for whom others end.
    pub(crate) fn admitted(
        &mut self,
        session: SessionId,
        priority: Priority,
        disk: Option<usize>,
        preempted: &[SessionId],
        violations: &mut ViolationLog,
    ) {
        for other in preempted {
            let is_lower = self.open.get(other).is_some_and(|open| open.priority < priority);
            violations.require(
                is_lower && self.named.insert(*other),
                "a viewer takes the places of open sessions of a lower priority, each once",
                || format!("{session:?}, {priority:?}: {other:?} {:?}", self.open.get(other)),
            );
        }
        self.open.insert(session, Open { priority, disk });
    }

    /// A session has ended.
    pub(crate) fn ended(
        &mut self,
        session: SessionId,
        summary: &SessionSummary,
        violations: &mut ViolationLog,
    ) {
        let Some(ended) = self.open.remove(&session) else { return };
        violations.require(
            summary.priority == ended.priority,
            "a session keeps its priority",
            || format!("{session:?}: {ended:?}, {:?}", summary.priority),
        );
        let was_named = self.named.remove(&session);
        let for_priority = summary.cut_short == Some(CutShort::Priority);
        let is_lower = || self.open.values().any(|other| other.priority > ended.priority);
        violations.require(
            if for_priority { was_named || is_lower() } else { !was_named },
            "a session ends for one of a higher priority, as it was named",
            || format!("{session:?}: {ended:?}, {:?}", summary.cut_short),
        );
        self.preempted += u64::from(for_priority);
        if summary.cut_short == Some(CutShort::Overload) {
            self.overloaded += 1;
            self.ended_for_overload(session, ended, violations);
        }
    }

    fn ended_for_overload(
        &mut self,
        session: SessionId,
        ended: Open,
        violations: &mut ViolationLog,
    ) {
        let Some(disk) = ended.disk else { return };
        let (now, priority) = (violations.now, ended.priority);
        let before = self.overloads.insert(disk, (now, priority, session));
        let in_order = before.is_none_or(|(at, before, other)| {
            at < now || before < priority || (before == priority && other > session)
        });
        violations.require(
            in_order,
            "on an overloaded disk the lowest priority ends first, and of one the newest",
            || format!("disk {disk}: {session:?} {priority:?} after {before:?}"),
        );
        let stays = self.open.values().any(|other| other.disk.is_none_or(|other| other == disk));
        violations.require(stays, "on an overloaded disk one session stays", || {
            format!("disk {disk}: {session:?} was the last")
        });
    }
}
