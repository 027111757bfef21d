//! Guarantee violations: the slack that each stream was admitted with, compared with the slack of
//! its reads.
//!
//! ```text
//!   decision    slack: the least time between the end of a sweep and its deadline, over the whole
//!               schedule. A stream's guaranteed slack is the least of all decisions while the
//!               stream is open.
//!   completion  the time between the end of a read and the end of the slot that it was due in.
//!               Below zero, the guarantee is violated: by the disk, if since the session was
//!               admitted the disk took longer than it was charged, had to read again or was lost;
//!               by the scheduler, if none of these is the case.
//! ```
//!
//! A read is due up to a slot before it is needed, so a violation shows a disk that is slower than
//! its calibration before any deadline is missed. A violation by the scheduler is a bug. Where
//! memory is not short, reading ahead keeps slack above zero: it uses only sweeps that leave as
//! much (`scheduler::WindowPlan`). With buffers for a few pieces only, a disk that waits for a
//! buffer may use the slack up. Policies that count reads guarantee slots and no slack.

use super::streams::{Stream, StreamId};
use super::{Engine, SessionId, SessionSummary};
use scheduler::PieceDue;
use std::time::Duration;
use units::Moment;

impl Engine {
    /// Lowers the promised slack of the disk's streams to that of the plan followed from now on.
    pub(super) fn lower_promised_slack(&mut self, disk: usize, slack: Duration) {
        if !self.config.policy.guarantees() {
            return;
        }
        let of_disk = |stream: &&mut Stream| usize::from(stream.layout.disk.0) == disk;
        for stream in self.streams.values_mut().filter(of_disk) {
            stream.guaranteed_slack =
                Some(stream.guaranteed_slack.map_or(slack, |before| before.min(slack)));
        }
    }

    /// Counts a piece that a stream does not get, or gets later than it was admitted for. Past the
    /// deadline that is a violation.
    pub(super) fn count_unserved(&mut self, now: Moment, stream: &Stream, deadline: Moment) {
        self.count_unserved_by(usize::from(stream.layout.disk.0), now, stream, deadline);
    }

    /// Counts such a piece of a stream that `disk` was to be read for, which is not its disk now.
    pub(super) fn count_unserved_by(
        &mut self,
        disk: usize,
        now: Moment,
        stream: &Stream,
        deadline: Moment,
    ) {
        self.count_piece(now, stream.session, deadline);
        if now > deadline && stream.guaranteed_slack.is_some() {
            self.count_violation(now, stream.session, disk);
        }
    }

    /// Compares a piece that came into memory with the stream's promised slack.
    pub(super) fn record_slack(&mut self, now: Moment, id: StreamId, piece: PieceDue) {
        let stream = &self.streams[&id];
        let Some(promised) = stream.guaranteed_slack else { return };
        let due = piece.due.next().start(self.config.slot);
        let (session, disk) = (stream.session, usize::from(stream.layout.disk.0));
        let summary = &mut self.sessions[&session].summary;
        summary.record_slack(promised, due.since(now));
        if now > due {
            self.count_violation(now, session, disk);
        }
    }

    fn count_violation(&mut self, now: Moment, session: SessionId, disk: usize) {
        let summary = &mut self.sessions[&session].summary;
        if self.disks[disk].overran_since(summary.admitted, now) {
            summary.violations_by_disk += 1;
            self.counters.violations_by_disk += 1;
        } else {
            summary.violations_by_scheduler += 1;
            self.counters.violations_by_scheduler += 1;
        }
    }
}

impl SessionSummary {
    fn record_slack(&mut self, promised: Duration, early: Duration) {
        let least = |before: Option<Duration>, now| Some(before.map_or(now, |b| b.min(now)));
        self.guaranteed_slack = least(self.guaranteed_slack, promised);
        self.least_slack = least(self.least_slack, early);
    }
}
