//! What is counted of each session and of all: pieces on time, deadline misses, guarantee
//! violations.
//!
//! ```text
//!   decision    slack: the least time between the end of a sweep and its deadline, over the whole
//!               schedule. A stream's guaranteed slack is the least of all decisions while the
//!               stream is open.
//!   completion  the time between the end of a read and the end of the slot that it was due in.
//!               Below zero, the guarantee is violated: by the disk, if since the session was
//!               admitted the disk took longer than it was charged, had to read again or was lost,
//!               or if a failed read that is repeated on any disk still had memory when nobody
//!               needed it any more; by the scheduler, if none of these is the case.
//! ```
//!
//! A read is due up to a slot before it is needed, so a violation shows a disk that is slower than
//! its calibration before any deadline is missed. A violation by the scheduler is a bug. Where
//! memory is not short, reading ahead keeps slack above zero: it uses only sweeps that leave as
//! much (`scheduler::WindowPlan`). With buffers for a few pieces only, a disk that waits for a
//! buffer may use the slack up. Policies that count reads guarantee slots and no slack.

use crate::table::Table;
use crate::{Counters, CutShort, SessionId, SessionSummary};
use scheduler::Slack;
use std::time::Duration;
use units::Moment;

/// The accounts of the open sessions, and the counters of all sessions since the start.
#[derive(Clone, Debug, Default)]
pub(crate) struct Accounts {
    sessions: Table<SessionId, SessionSummary>,
    pub(crate) counters: Counters,
}

impl Accounts {
    pub(crate) fn open(&mut self, session: SessionId, summary: SessionSummary) {
        self.sessions.insert(session, summary);
    }

    pub(crate) fn close(&mut self, session: SessionId) -> SessionSummary {
        self.sessions.take(&session)
    }

    pub(crate) fn of(&self, session: SessionId) -> &SessionSummary {
        &self.sessions[&session]
    }

    /// Counts one piece, in memory (or given up) `now`.
    pub(crate) fn count_piece(&mut self, now: Moment, session: SessionId, deadline: Moment) {
        let summary = &mut self.sessions[&session];
        if now <= deadline {
            summary.deadlines_met += 1;
            self.counters.deadlines_met += 1;
        } else {
            summary.deadline_misses += 1;
            let late = now.since(deadline);
            summary.worst_lateness = summary.worst_lateness.max(late);
            self.counters.worst_lateness = self.counters.worst_lateness.max(late);
            self.counters.deadline_misses += 1;
        }
    }

    /// A piece that is unread again and was counted as `on_time` is counted when it comes again.
    pub(crate) fn uncount_piece(&mut self, session: SessionId, on_time: bool) {
        self.sessions[&session].deadlines_met -= u64::from(on_time);
        self.counters.deadlines_met -= u64::from(on_time);
    }

    /// Notes a read that ended `early` before the slot that it was due in was over.
    pub(crate) fn record_slack(
        &mut self,
        session: SessionId,
        guaranteed: Duration,
        early: Duration,
    ) {
        let least = |before: Option<Duration>, now| Some(before.map_or(now, |b| b.min(now)));
        let summary = &mut self.sessions[&session];
        // A plan in which nothing is due leaves no slack that could be told.
        if guaranteed < Slack::NOTHING_DUE {
            summary.guaranteed_slack = least(summary.guaranteed_slack, guaranteed);
        }
        summary.observed_slack = least(summary.observed_slack, early);
    }

    /// Counts a guarantee violation; `by_disk`: the disk took longer than it was charged.
    pub(crate) fn count_violation(&mut self, session: SessionId, by_disk: bool) {
        let summary = &mut self.sessions[&session];
        if by_disk {
            summary.violations_by_disk += 1;
            self.counters.violations_by_disk += 1;
        } else {
            summary.violations_by_scheduler += 1;
            self.counters.violations_by_scheduler += 1;
        }
    }

    pub(crate) fn count_delivered(&mut self, session: SessionId, bytes: u64) {
        self.sessions[&session].delivered += bytes;
    }

    /// The session ends for this reason.
    pub(crate) fn cut_short(&mut self, session: SessionId, why: CutShort) {
        self.sessions[&session].cut_short = Some(why);
        match why {
            CutShort::DiskLost => self.counters.ended_by_disk_loss += 1,
            CutShort::Priority => self.counters.preempted_by_priority += 1,
            CutShort::Overload => self.counters.preempted_by_overload += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_piece_is_counted_while_its_session_is_open() {
        let mut accounts = Accounts::default();
        let session = SessionId(1);
        accounts.open(session, SessionSummary::default());
        let at = |ms: u64| Moment(ms * 1_000_000);
        for (now, deadline) in [(at(900), at(1000)), (at(1300), at(1000)), (at(1100), at(1000))] {
            accounts.count_piece(now, session, deadline);
        }
        let counters = accounts.counters;
        assert_eq!((counters.deadlines_met, counters.deadline_misses), (1, 2));
        assert_eq!(counters.worst_lateness, Duration::from_millis(300));
        accounts.close(session);
        assert_eq!(accounts.counters, counters, "counted once");
    }
}
