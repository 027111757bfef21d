//! A disk is drained: it is to be taken out, and no viewer is to notice.
//!
//! ```text
//!   a new session     is read from a copy on another disk; where there is none, from here
//!   a session here    with a copy elsewhere: goes on there at its deadlines, as soon as it fits and
//!                     nothing is being read for it
//!                     without one: stays to its end
//! ```
//!
//! Nothing else changes: the disk keeps its books and its memory, and a drain can be taken back at
//! any time. Sessions that have moved stay where they are then.
//!
//! A move is an evaluation, so that a slot has a few of them. Those that did not fit are tried
//! again when all others were.

use super::streams::Tries;
use super::{DiskNumber, Engine, SessionId};
use units::Moment;

impl Engine {
    /// Begins to drain a disk, or ends that. False: there is no such disk.
    pub(super) fn set_draining(&mut self, disk: DiskNumber, drains: bool) -> bool {
        let bookings = &mut self.streams.bookings;
        let Some(disk) = bookings.disk_index(disk) else { return false };
        bookings.disks[disk].draining = drains;
        true
    }

    /// A slot has begun: some sessions leave the disks that are drained.
    pub(super) fn leave_draining(&mut self, now: Moment) {
        let disks = &self.streams.bookings.disks;
        if disks.iter().all(|disk| !disk.draining || disk.lost) {
            return;
        }
        let after = self.last_moved.map_or(0, |SessionId(last)| last.saturating_add(1));
        // From the one behind the last that was tried, once around.
        let (behind, before) = (SessionId(after).., ..SessionId(after));
        let ids = self.sessions.range(behind).chain(self.sessions.range(before));
        let ids: Vec<SessionId> =
            ids.map(|(id, _)| *id).filter(|id| self.may_move(*id)).take(MOVES).collect();
        for id in ids {
            let from = usize::from(self.sessions[&id].layout.disk.0);
            self.move_session(now, id, from, Tries::AtItsDeadlines);
            self.last_moved = Some(id);
        }
    }

    // Whether a session is read from a disk that is drained, has a copy on one that is not, and
    // waits for no read.
    fn may_move(&self, id: SessionId) -> bool {
        let (session, bookings) = (&self.sessions[&id], &self.streams.bookings);
        let drains = |disk: DiskNumber| bookings.disks[usize::from(disk.0)].draining;
        let is_quiet = |stream| {
            let mut held = self.streams[stream].held();
            held.all(|(read, _)| !self.streams.is_reading(read))
        };
        drains(session.layout.disk)
            && session.copies.iter().any(|copy| bookings.is_live(copy) && !drains(copy.disk))
            && session.streams.iter().all(is_quiet)
    }
}

/// Sessions that may move in one slot.
const MOVES: usize = 8;
