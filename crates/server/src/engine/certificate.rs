//! Certificates: what each stream was promised when it was let in, audited against what came.
//!
//! ```text
//!   decision    the least time between a sweep's end and its deadline, over the schedule as it then
//!               is: the slack that it leaves. The least of all decisions while a stream is in is
//!               what it was promised.
//!   completion  the time between a read's end and the end of the slot it was due in. Below zero,
//!               the certificate is not kept: *void*, if since the session came in its disk took
//!               longer than it was charged, had to read again or was lost; *broken*, if not.
//! ```
//!
//! A glitch is a read that comes after it is needed, and a read is due up to a slot before that: a
//! void certificate shows a disk that is not what was counted with while nobody has seen anything yet.
//! A broken one would show a schedule that is not: there must be none. Slack beyond zero is kept, too, where memory is not short: the run works
//! ahead only by sweeps that leave as much to spare (`scheduler::Plan`). With buffers for a few
//! pieces only, a run that waits for one may still use it up. Only where the disk's time is counted; who counts
//! reads promises slots.

use super::streams::{Stream, StreamId};
use super::{Engine, SessionId, SessionSummary};
use scheduler::PieceDue;
use std::time::Duration;
use units::Moment;

impl Engine {
    /// The plan that is followed from now on leaves this slack.
    pub(super) fn certify(&mut self, disk: usize, slack: Duration) {
        if !self.config.policy.guarantees() {
            return;
        }
        let of_disk = |stream: &&mut Stream| usize::from(stream.layout.disk.0) == disk;
        for stream in self.streams.values_mut().filter(of_disk) {
            stream.promised = Some(stream.promised.map_or(slack, |before| before.min(slack)));
        }
    }

    /// A piece that a stream owes is given up, or promised later than it was: past its deadline no
    /// certificate is kept by that.
    pub(super) fn count_owed(&mut self, now: Moment, stream: &Stream, deadline: Moment) {
        self.count_owed_by(usize::from(stream.layout.disk.0), now, stream, deadline);
    }

    /// The same of a stream that another disk was to be read for.
    pub(super) fn count_owed_by(
        &mut self,
        disk: usize,
        now: Moment,
        stream: &Stream,
        deadline: Moment,
    ) {
        self.count_for(now, stream.session, deadline);
        if now > deadline && stream.promised.is_some() {
            self.not_kept(now, stream.session, disk);
        }
    }

    /// A piece of a stream is in memory.
    pub(super) fn examine(&mut self, now: Moment, id: StreamId, piece: PieceDue) {
        let stream = &self.streams[&id];
        let Some(promised) = stream.promised else { return };
        let due = piece.due.next().start(self.config.slot);
        let (session, disk) = (stream.session, usize::from(stream.layout.disk.0));
        let summary = &mut self.sessions.get_mut(&session).expect("live").summary;
        summary.examine(promised, due.since(now));
        if now > due {
            self.not_kept(now, session, disk);
        }
    }

    fn not_kept(&mut self, now: Moment, session: SessionId, disk: usize) {
        let summary = &mut self.sessions.get_mut(&session).expect("live").summary;
        if self.disks[disk].overran_since(summary.admitted, now) {
            summary.void += 1;
            self.counters.void += 1;
        } else {
            summary.broken += 1;
            self.counters.broken += 1;
        }
    }
}

impl SessionSummary {
    fn examine(&mut self, promised: Duration, early: Duration) {
        let least = |before: Option<Duration>, now| Some(before.map_or(now, |b| b.min(now)));
        self.promised_slack = least(self.promised_slack, promised);
        self.least_slack = least(self.least_slack, early);
    }
}
