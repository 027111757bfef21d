//! A disk is lost: its reads fail, nothing is read from it any more. Its sessions go on with
//! another copy, if there is one and room for it.
//!
//! ```text
//!   Gone, or LOST_AFTER failures in a row, or no answer for HANGS_FOR
//!     │
//!     ├─ its share of the memory goes to the other disks, in equal parts
//!     ├─ each session on it, the highest priority first, of one priority the oldest first
//!     │     what it holds in memory stays; what was being read is unread again
//!     │     a copy, with the same deadlines ── fits (other streams may have to drop read-ahead)
//!     │                                                         ────▶ failed over
//!     │     a copy, with later deadlines ───── fits ────────────────▶ failed over, and due later
//!     │     no copy, or no room ────────────────────────────────────▶ ended; its summary says why
//!     ├─ reads that were chosen and not issued are forgotten
//!     └─ a disk whose new sessions hold more than its share gets memory from the others' parts
//!
//!   hung    reads are in the device, and none has ended for HANGS_FOR; if a session on the disk
//!           has a copy elsewhere, the disk counts as lost
//!   back    the driver has verified what the disk holds and all its earlier reads have ended: new
//!           sessions may be read from it; sessions that failed over stay where they are
//! ```
//!
//! Memory in use moves with the session that holds it, so that no decision on another disk counts
//! on it. Shares are even again as soon as possible (`streams::memory`).
//!
//! A piece that is not there when it is due counts as a deadline miss: the player did nothing
//! wrong. With failover books all sessions with a copy fit on it if the loss is noticed at once: so
//! a failed read is not repeated at once there (`may_wait`), which would take the time they need.
//! Where no session has another copy, the engine waits for a hung disk: ending the sessions would
//! gain nothing.

use super::bookings::Placement;
use super::buffers::{Buffer, Location, PieceKey, Waiter};
use super::pieces::{key, place};
use super::stream::{Stream, StreamId};
use super::streams::{Retry, Tries};
use super::{
    Action, CutShort, DiskNumber, Engine, Layout, ReadId, ReadOutcome, RequestId, ScheduleChange,
    SessionId,
};
use std::cmp::Reverse;
use std::sync::Arc;
use std::time::Duration;
use units::{Moment, SlotIndex};

/// Reads that fail.
impl Engine {
    /// A read of `disk` has ended: with too many failures in a row the disk is lost. A server with
    /// one disk has no other copies; there each read fails by itself.
    pub(super) fn watch_disk(&mut self, now: Moment, disk: usize, outcome: ReadOutcome) {
        let several = self.streams.bookings.disks.len() > 1;
        let state = &mut self.streams.bookings.disks[disk];
        state.failed_in_row = match outcome {
            // Damaged data was read to its end: the data is at fault, not the disk.
            ReadOutcome::Good | ReadOutcome::Damaged => 0,
            ReadOutcome::Failed => state.failed_in_row + 1,
            ReadOutcome::Gone => LOST_AFTER,
        };
        if several && state.failed_in_row >= LOST_AFTER {
            self.lose_disk_once(now, disk);
        }
    }

    /// Whether a failed read is repeated in a later slot, where a loss is survived: if it is due in
    /// one. A disk that is dying fails all its reads at once. Repeated at once, they would take
    /// time on the other disk that admission reserved for what is due earlier.
    pub(super) fn may_wait(&self, read: ReadId) -> bool {
        let bookings = &self.streams.bookings;
        let buffer = self.streams.buffers.get(read).expect("not forgotten yet");
        let lost = bookings.disks[usize::from(buffer.place.disk.0)].lost;
        let waits = bookings.survives_loss() && !lost && !buffer.retried;
        waits && self.due_of_read(read, buffer).is_some_and(|due| due > bookings.slot())
    }

    /// A slot has begun, or a disk is lost: failed reads are repeated as far as their other disk
    /// reads nothing in this slot that is due earlier. That is the order in which it would read
    /// them if the disk were lost, which it has time for. Those that nobody needs any more are
    /// forgotten.
    pub(super) fn repeat_doubtful(&mut self, now: Moment) {
        let disks = self.streams.bookings.disks.iter().enumerate();
        let reads = disks.flat_map(|(disk, state)| state.doubtful.iter().map(move |r| (disk, *r)));
        let mut doubtful: Vec<(Option<SlotIndex>, usize, ReadId)> = reads
            .map(|(disk, read)| {
                let buffer = self.streams.buffers.get(read).expect("not forgotten yet");
                (self.due_of_read(read, buffer), disk, read)
            })
            .collect();
        doubtful.sort_unstable();
        for (due, disk, read) in doubtful {
            if !self.may_wait(read) || due.is_some_and(|due| self.has_turn(read, due)) {
                let state = &mut self.streams.bookings.disks[disk];
                state.doubtful.remove(&read);
                // Streams that came after the failure wait for the repeated read, too.
                state.note_unplanned_io(now);
                self.failed_read(now, read, ReadOutcome::Failed);
            }
        }
    }

    // Whether the disk that a failed read is repeated on has time for it in this slot beside all
    // that is due there as early.
    fn has_turn(&self, read: ReadId, due: SlotIndex) -> bool {
        let bookings = &self.streams.bookings;
        let buffer = self.streams.buffers.get(read).expect("not forgotten yet");
        let (_, place) = self.place_again(buffer, &self.holders(read, buffer), &[]);
        let disk = &bookings.disks[usize::from(place.disk.0)];
        let books = &disk.dispatcher.books;
        let slots = usize::try_from(due.0 + 1 - bookings.slot().0).unwrap_or(usize::MAX);
        let ahead = books.ahead_of_now().iter().take(slots).map(|load| load.reads);
        let reads = ahead.sum::<u32>() + books.overdue().reads + disk.busy();
        reads < disk.min_read()
    }

    // The slot in which the first of those who hold a piece in this buffer needs it.
    fn due_of_read(&self, read: ReadId, buffer: &Buffer) -> Option<SlotIndex> {
        let due = |(id, piece): (StreamId, u32)| self.streams.get(id)?.due_of_held(piece);
        self.holders(read, buffer).into_iter().filter_map(due).min()
    }

    // The pieces that streams hold in a buffer that is being read, or was.
    fn holders(&self, read: ReadId, buffer: &Buffer) -> Vec<(StreamId, u32)> {
        let streams = buffer.waiters.iter().filter_map(|waiter| match waiter {
            Waiter::Stream(id) => Some((*id, self.streams.get(*id)?.holds_in(read))),
            Waiter::Request(_) => None,
        });
        streams.flat_map(|(id, pieces)| pieces.into_iter().map(move |piece| (id, piece))).collect()
    }

    /// A failed read is repeated once if anyone still needs it, from another copy if there is one;
    /// then the piece cannot be had.
    pub(super) fn failed_read(&mut self, now: Moment, read: ReadId, outcome: ReadOutcome) {
        // Nobody must find this buffer again; the holders are looked up by the read that it was
        // for.
        let buffer = self.streams.buffers.remove(read);
        self.streams.actions.push(Action::Forget { read });
        self.repeat_or_give_up(now, read, outcome, &buffer);
        // Last, because the repeated read begins a use of its own before this one ends.
        self.streams.title_use_ended(buffer.key.title);
    }

    fn repeat_or_give_up(
        &mut self,
        now: Moment,
        read: ReadId,
        outcome: ReadOutcome,
        buffer: &Buffer,
    ) {
        let holders = self.holders(read, buffer);
        let waiting = self.streams.awaited.of(buffer.key);
        // A request for a piece that its stream has still to read is served by that read.
        let is_unbooked = |request: &RequestId| {
            let request = &self.requests[request];
            let id = self.stream_of(request.session, buffer.key.track);
            id.zip(request.next()).is_none_or(|(id, next)| {
                let stream = &self.streams[&id];
                stream.piece_at(next.offset) < stream.cursor
            })
        };
        if !buffer.retried && (!holders.is_empty() || waiting.iter().any(is_unbooked)) {
            let (key, place) = self.place_again(buffer, &holders, &waiting);
            let waiters: Vec<Waiter> = waiting
                .into_iter()
                .map(Waiter::Request)
                .chain(buffer.waiters.iter().copied())
                .collect();
            let again = self.streams.read_again(now, key, place, &holders, waiters);
            if let (again, Retry::InMemory(waiters)) = again {
                self.notify_waiters(now, again, &waiters);
            }
            return;
        }
        for (id, piece) in &holders {
            self.streams.give_up_piece(now, *id, *piece);
        }
        // Only now: a follower must not come to a piece of this read that is not given up yet.
        for (id, _) in holders {
            self.streams.feed_on(now, id);
        }
        for request in waiting {
            if self.is_stuck(request) {
                self.fail(request, outcome);
            }
        }
    }

    // The place from which a failed read is repeated: another copy, or the same place.
    fn place_again(
        &self,
        failed: &Buffer,
        holders: &[(StreamId, u32)],
        waiting: &[RequestId],
    ) -> (PieceKey, Location) {
        let holding = holders.iter().map(|(id, piece)| (self.streams[id].session, *piece));
        let wanting = waiting.iter().filter_map(|request| {
            let request = &self.requests[request];
            let id = self.stream_of(request.session, failed.key.track)?;
            Some((request.session, self.streams[&id].piece_at(request.next()?.offset)))
        });
        let track = failed.key.track;
        let elsewhere = holding.chain(wanting).find_map(|(session, piece)| {
            let mut copies = self.sessions.get(&session)?.copies.iter();
            let bookings = &self.streams.bookings;
            let other =
                |copy: &&Arc<Layout>| copy.disk != failed.place.disk && bookings.is_live(copy);
            let copy = copies.find(other)?;
            let (key, place) = (key(copy, track, piece), place(copy, track, piece));
            // Another presentation counts its pieces differently, so the number alone may name
            // other bytes.
            (PieceKey { disk: failed.key.disk, ..key } == failed.key).then_some((key, place))
        });
        elsewhere.unwrap_or((failed.key, failed.place))
    }
}

/// Disks that are lost, hang, or return.
impl Engine {
    /// A disk is lost, if it was not before.
    pub(super) fn lose_disk_once(&mut self, now: Moment, lost: usize) {
        let state = &mut self.streams.bookings.disks[lost];
        if std::mem::replace(&mut state.lost, true) {
            return;
        }
        // Best-effort work must not wait for a device that may never answer.
        self.streams.grant_all(lost);
        let number = DiskNumber(u16::try_from(lost).expect("as many as disks"));
        let on_it = |id: &&SessionId| self.sessions[*id].layout.disk == number;
        let mut here: Vec<SessionId> = self.sessions.keys().filter(on_it).copied().collect();
        // Stable: of one priority the oldest stay first.
        here.sort_by_key(|id| Reverse(self.sessions[id].priority));
        // These sessions go on where they are, without protection against a further loss.
        let spared = |id: &&SessionId| self.sessions[*id].replica == Some(lost);
        let spared: Vec<SessionId> = self.sessions.keys().filter(spared).copied().collect();
        spared.into_iter().for_each(|id| self.drop_replica(id));
        // Before sessions move: they need memory on their new disks for the buffers that they keep.
        let parts = self.streams.bookings.share_lost_memory(lost);
        let (mut moved, mut ended) = (0, 0);
        for id in here {
            if self.move_session(now, id, lost, Tries::All) {
                moved += 1;
            } else {
                ended += 1;
                self.streams.accounts.cut_short(id, CutShort::DiskLost);
                // Sockets still send the buffers that they hold.
                self.end_session(now, id, false);
            }
        }
        // Only now: until their sessions moved or ended, these reads' buffers were held. By feeds,
        // too, which leave here.
        self.streams.leave_feeds(now);
        self.repeat_doubtful(now);
        self.streams.forget_chosen(lost);
        self.streams.balance_memory(now, parts);
        self.streams.accounts.counters.failed_over += moved;
        self.streams.actions.push(Action::DiskLost { disk: number, moved, ended });
    }

    // The disk of a session's replica is lost: the session is read from its own disk alone.
    fn drop_replica(&mut self, id: SessionId) {
        let session = &mut self.sessions[&id];
        let placement = session.placement();
        session.replica = None;
        self.streams.bookings.failover.unreserve(placement, session.reserve);
        for stream in &session.streams {
            self.streams.drop_replica(*stream);
        }
    }

    /// Moves a session from a disk to a copy on another; returns whether it goes on there. If it
    /// does not, it is as it was, but for what was being read for it: that is unread again.
    pub(super) fn move_session(
        &mut self,
        now: Moment,
        id: SessionId,
        from: usize,
        tries: Tries,
    ) -> bool {
        let session = &self.sessions[&id];
        let (placement, reserve, ids) =
            (session.placement(), session.reserve, session.streams.clone());
        let mut places: Vec<Arc<Layout>> = session.copies.to_vec();
        let bookings = &self.streams.bookings;
        let draining = |layout: &Layout| bookings.disks[usize::from(layout.disk.0)].draining;
        let may_move = |layout: &Layout| tries == Tries::All || !draining(layout);
        places.retain(|layout| {
            let elsewhere = usize::from(layout.disk.0) != from;
            elsewhere && bookings.is_live(layout) && may_move(layout)
        });
        // The replica's disk first: its standby books have kept room for the session.
        places.sort_by_key(|layout| placement.replica != Some(usize::from(layout.disk.0)));
        let mut streams: Vec<(StreamId, Stream)> =
            ids.iter().map(|id| (*id, self.streams.remove(*id))).collect();
        for (_, stream) in &mut streams {
            self.streams.unread_missing(now, stream);
        }
        // Before the schedule moves: by a later schedule these pieces would be on time again.
        let late: Vec<Vec<(u32, Moment)>> =
            streams.iter().map(|(_, stream)| stream.overdue(now)).collect();
        self.streams.bookings.release_send_memory(placement, reserve);
        let found = places.iter().find_map(|layout| {
            let (slots, approval) =
                self.streams.fit_on_copy(now, layout, reserve, tries, &mut streams)?;
            Some((layout, slots, approval))
        });
        let Some((layout, slots, approval)) = found else {
            // As it was, to be ended.
            self.streams.bookings.reserve_send_memory(placement, reserve);
            streams.into_iter().for_each(|(id, stream)| self.streams.insert(id, stream));
            return false;
        };
        let disk = usize::from(layout.disk.0);
        approval.into_iter().for_each(|approval| self.streams.adopt(approval));
        let placement = Placement { disk, replica: None };
        self.streams.bookings.reserve_send_memory(placement, reserve);
        let session = &mut self.sessions[&id];
        (session.layout, session.replica) = (Arc::clone(layout), None);
        if slots > 0 {
            for (_, stream) in &streams {
                let change = ScheduleChange::Delayed { track: stream.track, slots };
                self.streams.actions.push(Action::Rescheduled { session: id, change });
            }
        }
        // Without a delay the overdue pieces keep their deadlines and are counted when they arrive.
        self.streams.move_to_copy(now, streams, (slots > 0).then_some(late));
        self.streams.to_serve.push(id);
        true
    }

    /// A lost disk is used again, unless reads that it was given are still under way. Returns
    /// whether it is in use.
    pub(super) fn bring_back(&mut self, disk: DiskNumber) -> bool {
        let Some(index) = self.streams.bookings.disk_index(disk) else { return false };
        let state = &mut self.streams.bookings.disks[index];
        if state.lost {
            if state.in_flight > 0 {
                return false;
            }
            (state.lost, state.failed_in_row, state.silent_slots) = (false, 0, 0);
            // Its memory went to the other disks when it was lost, and comes back below.
            self.streams.actions.push(Action::DiskBack { disk });
            self.streams.rebalance_memory();
        }
        true
    }

    /// A slot has begun: a disk that has not answered for too long is lost, if any session gains by
    /// that.
    pub(super) fn fail_hung_disks(&mut self, now: Moment) {
        for disk in 0..self.streams.bookings.disks.len() {
            let state = &self.streams.bookings.disks[disk];
            let patience = HANGS_FOR.max(state.guarantee.longest_read * HANGS_READS);
            let slots = patience.as_nanos().div_ceil(self.config.slot.as_nanos());
            let hangs = !state.lost && u128::from(state.silent_slots) >= slots;
            if hangs && self.sessions.keys().any(|id| self.can_leave(*id, disk)) {
                self.lose_disk_once(now, disk);
            }
        }
    }

    // Whether a session is read from `disk`, and has a copy elsewhere.
    fn can_leave(&self, id: SessionId, disk: usize) -> bool {
        let session = &self.sessions[&id];
        let elsewhere = |layout: &Layout| usize::from(layout.disk.0) != disk;
        let is_live = |copy: &Layout| self.streams.bookings.is_live(copy);
        !elsewhere(&session.layout)
            && session.copies.iter().any(|copy| elsewhere(copy) && is_live(copy))
    }
}

/// Failures in a row that make a disk a lost one: a bad spot fails a few reads, and others succeed
/// in between.
const LOST_AFTER: u32 = 16;

/// Longer than a healthy disk is silent, shorter than players' buffers last. A disk that is
/// spinning up takes longer, and is brought back when it answers.
const HANGS_FOR: Duration = Duration::from_secs(5);
/// A disk whose reads take long is given the time of so many of its longest reads.
const HANGS_READS: u32 = 20;
