//! What time does: slots begin, buffers that were not requested are released, silent viewers lose
//! their reservation and in the end their session.
//!
//! ```text
//!   a slot begins ─▶ buffers expire ─▶ idle sessions ─▶ overloaded ─▶ reads of ─▶ late viewers get
//!                                                       disks         the slot    a later schedule
//!                                                                     (per disk)
//! ```

use super::sessions::Session;
use super::stream::{Stream, StreamId};
use super::{Action, Engine, FillFor, ReadId, RequestId, ScheduleChange, SessionId};
use scheduler::{PieceDue, PolicyKind};
use units::{Moment, SlotIndex};

impl Engine {
    /// Whether time changes nothing until something else happens.
    pub(super) fn is_quiet(&self) -> bool {
        let idle = |disk: &super::bookings::disk::Disk| {
            disk.busy() == 0 && disk.doubtful.is_empty() && !disk.work.is_waiting()
        };
        self.sessions.is_empty()
            && self.requests.is_empty()
            && self.streams.bookings.disks.iter().all(idle)
            // What nobody needs any more is given back when the next slot begins.
            && !self.streams.bookings.owes_memory()
    }

    /// Takes over the disks' new timings where no session or request is open.
    pub(super) fn apply_timings(&mut self) {
        if self.sessions.is_empty() && self.requests.is_empty() {
            self.streams.bookings.learn_timings();
        }
    }

    /// Brings the engine to `now`: if a slot has begun since, everything that slots begin with.
    pub(super) fn advance(&mut self, now: Moment) {
        if !self.streams.bookings.advance(now) {
            if self.streams.next_opening() <= now {
                self.streams.open_due(now);
            }
            return;
        }
        // New timings wait until the last session has ended, which each slot may find.
        self.apply_timings();
        // Before the reads of this slot, which need the memory; idle sessions must not cause reads.
        self.release_expired(now);
        self.end_idle_sessions(now);
        self.streams.leave_feeds(now);
        // Before the reads of this slot, because they take its time.
        self.repeat_doubtful(now);
        // What its sessions would have read in this slot, others read.
        self.relieve_overloaded(now);
        self.streams.begin_slot(now);
        self.streams.open_due(now);
        // A later schedule is decided, as all else, on the slots after this one: so only now.
        self.extend_late_streams(now);
        self.streams.give_back_memory(now);
        self.streams.keep_beginnings(now);
        // A single disk has no other copies for its sessions and no memory to share.
        if self.streams.bookings.disks.len() > 1 {
            self.fail_hung_disks(now);
            self.leave_draining(now);
            self.streams.rebalance_memory();
        }
    }

    // Releases the buffers whose time was up when the last slot ended. Not only the first of each
    // stream: a piece that arrived late is kept for longer than the pieces after it, and plans
    // count on the memory of those.
    fn release_expired(&mut self, now: Moment) {
        // The slot is at least 1: `Bookings::advance` reports only slots after slot 0.
        let over = SlotIndex(self.streams.bookings.slot().0 - 1);
        let holds_expired =
            |stream: &Stream| stream.held().any(|(read, piece)| self.is_expired(read, piece, over));
        for id in self.streams_with(holds_expired) {
            let stream = &self.streams[&id];
            let admits_all = self.config.policy == PolicyKind::None;
            if admits_all && self.needed_until(stream, over).is_some() {
                // Without admission control all streams may be late for ever: read ahead for
                // players that wait for something else, and released unseen. So a late stream
                // begins anew where its player is; its guaranteed deadlines stay as they were.
                let from = self.needed_from(stream);
                self.streams.restart(now, id, from);
                continue;
            }
            let expired: Vec<u32> = stream
                .held()
                .filter(|(read, piece)| self.is_expired(*read, *piece, over))
                .map(|(_, piece)| piece.piece)
                .collect();
            expired.into_iter().for_each(|piece| self.streams.release_piece(id, piece));
        }
        self.streams.expire_feeds(now, over);
    }

    // A player that is fetching, but so late that the next pieces it needs would be released when
    // this slot ends, gets a later schedule, if that fits. Never by more than the player is late,
    // or its next pieces would be late for it.
    fn extend_late_streams(&mut self, now: Moment) {
        // Here late streams begin anew instead (`release_expired`).
        if self.config.policy == PolicyKind::None {
            return;
        }
        let slot = self.streams.bookings.slot();
        let late = |stream: &Stream| {
            // Before the start-up is over nothing is delivered, so no player is late.
            stream.opens.is_none()
                && self.needed_until(stream, slot).is_some()
                && self.is_fetching(stream, now)
        };
        for id in self.streams_with(late) {
            let stream = &self.streams[&id];
            let (session, track) = (stream.session, stream.track);
            let until = self.needed_until(stream, slot).expect("late streams hold a buffer");
            // At least one slot, because `until` is not after `slot`; then the piece outlives the
            // slot.
            let slots = u32::try_from(slot.0 + 1 - until.0).unwrap_or(u32::MAX);
            if self.streams.delay(now, id, slots) {
                let change = ScheduleChange::Delayed { track, slots };
                self.streams.actions.push(Action::Rescheduled { session, change });
            }
        }
    }

    // Of the held pieces that the player may still request, the slot at whose end the first is
    // released, if that is `slot` or before.
    fn needed_until(&self, stream: &Stream, slot: SlotIndex) -> Option<SlotIndex> {
        let from = self.needed_from(stream);
        let up = stream
            .held()
            .filter(|(read, piece)| piece.piece >= from && self.is_expired(*read, *piece, slot));
        up.map(|(_, piece)| piece.release).min()
    }

    // The earliest piece that a player may request which goes on as it does.
    fn needed_from(&self, stream: &Stream) -> u32 {
        let session = &self.sessions[&stream.session];
        let open = session.requests.iter().filter_map(|request| self.requests[request].next());
        let of_track = open.filter(|next| next.track == stream.track);
        // Without an open request the player continues where its last delivery ended.
        of_track.map(|next| stream.piece_at(next.offset)).min().unwrap_or(stream.expected_from())
    }

    fn streams_with(&self, is: impl Fn(&Stream) -> bool) -> Vec<StreamId> {
        self.streams.iter().filter(|(_, stream)| is(stream)).map(|(id, _)| *id).collect()
    }

    // Whether a buffer is to be released at the end of `slot` or before.
    fn is_expired(&self, read: ReadId, piece: PieceDue, slot: SlotIndex) -> bool {
        // A piece that is still being read is late, and its player waits for it.
        piece.release <= slot && !self.streams.is_reading(read)
    }

    fn is_fetching(&self, stream: &Stream, now: Moment) -> bool {
        // A new stream's activity begins at its origin: only a later one is the player's.
        let took = stream.last_activity > stream.clock().origin;
        let recently = now.since(stream.last_activity) <= self.config.slot * FETCHING_SLOTS;
        took && recently || self.is_waited_for(&self.sessions[&stream.session])
    }

    /// Whether a request of the session waits for the engine: not while its sockets have something
    /// to take.
    pub(super) fn is_waited_for(&self, session: &Session) -> bool {
        let open = |request: &RequestId| !self.requests[request].over;
        session.unsent == 0 && session.requests.iter().any(open)
    }

    fn end_idle_sessions(&mut self, now: Moment) {
        let mut leaving = Vec::new();
        let mut idle = Vec::new();
        for (id, session) in self.sessions.iter() {
            // The player is silent because the engine owes it bytes.
            if self.is_waited_for(session) {
                continue;
            }
            if self.has_left(session, now) {
                leaving.push(*id);
                continue;
            }
            // Before the first request `reservation_hold` decides, not the media that falls due.
            let silent = |id: &&StreamId| session.asked && self.is_silent(&self.streams[*id], now);
            idle.extend(session.streams.iter().filter(silent).copied());
        }
        for id in idle {
            let stream = &self.streams[&id];
            let (session, change) =
                (stream.session, ScheduleChange::Released { track: stream.track });
            self.streams.actions.push(Action::Rescheduled { session, change });
            self.drop_stream(now, id);
        }
        for id in leaving {
            self.end_session(now, id, false);
        }
    }

    fn has_left(&self, session: &Session, now: Moment) -> bool {
        // A reservation that was never used keeps others out for nothing, so it ends sooner.
        let patience =
            if session.asked { self.config.session_timeout } else { self.config.reservation_hold };
        now.since(session.last_activity) >= patience
    }

    // Whether nothing was requested while `idle_timeout` of media has fallen due.
    fn is_silent(&self, stream: &Stream, now: Moment) -> bool {
        // A player that has buffered far ahead is silent for good reason until it needs the next
        // piece.
        now.since(stream.next_need().max(stream.last_activity)) >= self.config.idle_timeout
    }

    /// A stream gives back its booking and its buffers.
    pub(super) fn drop_stream(&mut self, now: Moment, id: StreamId) {
        let stream = self.streams.remove(id);
        let session = &mut self.sessions[&stream.session];
        session.streams.retain(|other| *other != id);
        if session.streams.is_empty() {
            // Without a stream the session reserves only what its sockets hold.
            let spare = session.reserve.saturating_sub(session.unsent);
            session.reserve -= spare;
            let placement = session.placement();
            self.streams.bookings.release_send_memory(placement, spare);
        }
        self.streams.settle(now, id, &stream);
    }

    /// Ends a session. `hung_up`: nothing of its requests is in use any more. Otherwise their
    /// sockets may still hold buffers, until they are sent or cancelled.
    pub(super) fn end_session(&mut self, now: Moment, id: SessionId, hung_up: bool) {
        for request in self.sessions[&id].requests.clone() {
            if hung_up {
                self.drop_request(request);
            }
        }
        for stream in self.sessions[&id].streams.clone() {
            self.drop_stream(now, stream);
        }
        // From here on each transfer that continues reserves its own memory and uses the title
        // itself.
        let session = self.sessions.take(&id);
        self.fills.ended(session.fill);
        let (title, disk) = (session.layout.title, usize::from(session.layout.disk.0));
        self.streams.bookings.release_send_memory(session.placement(), session.reserve);
        for request in session.requests {
            self.detach(request, disk, title);
        }
        let summary = self.streams.accounts.close(id);
        let counters = &mut self.streams.accounts.counters;
        match session.fill {
            Some(FillFor::Cache) => counters.fill_bytes += summary.delivered,
            Some(FillFor::Node) => counters.node_fill_bytes += summary.delivered,
            None => {}
        }
        self.streams.actions.push(Action::Ended { session: id, summary });
        self.streams.title_use_ended(title);
    }
}

/// A viewer whose player took something within these last slots is fetching.
const FETCHING_SLOTS: u32 = 8;
