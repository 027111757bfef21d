//! What time does: slots begin, buffers that nobody came for are let go, silent viewers give back
//! what they hold and in the end leave.

use super::buffers::BufferState;
use super::disks::Disk;
use super::failover::Placement;
use super::sessions::Session;
use super::streams::{Stream, StreamId};
use super::{Action, Engine, ReadId, RequestId, ScheduleChange, SessionId};
use scheduler::{PieceDue, PolicyKind};
use units::{Moment, SlotIndex};

impl Engine {
    /// Whether time changes nothing until something else happens.
    pub(super) fn is_quiet(&self) -> bool {
        self.sessions.is_empty()
            && self.requests.is_empty()
            && self.disks.iter().all(|disk| disk.busy() == 0 && !disk.work.is_waiting())
    }

    /// Takes over the disks' new timings where no session or request is open.
    pub(super) fn apply_timings(&mut self) {
        if self.sessions.is_empty() && self.requests.is_empty() {
            self.disks.iter_mut().for_each(Disk::learn);
        }
    }

    /// Brings the engine to `now`: if a slot has begun since, everything that slots begin with.
    pub(super) fn advance(&mut self, now: Moment) {
        self.now = self.now.max(now);
        let slot = SlotIndex::at(now, self.config.slot);
        if slot <= self.slot {
            return;
        }
        self.slot = slot;
        for disk in 0..self.disks.len() {
            let plans = self.plans(disk);
            self.disks[disk].roll(slot, plans);
        }
        self.failover.advance(slot);
        self.apply_timings();
        self.network.advance(slot);
        self.release_expired(now);
        self.end_idle_sessions(now);
        for disk in 0..self.disks.len() {
            self.begin_slot(now, disk);
        }
        self.open_due_streams(now);
        // Decided like all else on the slots after this one, so only now.
        self.extend_late_streams(now);
        if self.disks.len() > 1 {
            self.fail_hung_disks(now);
            self.rebalance_memory();
        }
    }

    // Buffers whose time was up when the last slot ended. Not in order only: what came late is kept
    // for longer than what is behind it, and plans count on the memory of that.
    fn release_expired(&mut self, now: Moment) {
        let over = SlotIndex(self.slot.0 - 1);
        for id in self.streams_with(|stream| stream.held().any(|held| self.is_expired(held, over)))
        {
            let stream = &self.streams[&id];
            if self.config.policy == PolicyKind::None && self.needed_until(stream, over).is_some() {
                self.restart(now, id);
                continue;
            }
            let up: Vec<u32> = stream
                .held()
                .filter(|held| self.is_expired(*held, over))
                .map(|(_, piece)| piece.piece)
                .collect();
            up.into_iter().for_each(|piece| self.release_piece(id, piece));
        }
    }

    // Where nobody is refused all may be late for ever, and the latest first: reading ahead for a
    // viewer who waits for something else, and letting it go unseen. So a late stream is read for
    // as if it began now, from where its viewer is; what was promised stays what it was.
    fn restart(&mut self, now: Moment, id: StreamId) {
        let mut stream = self.remove_stream(id);
        // What is unread is counted when it is read, if its viewer still needs it.
        let held = |(piece, _): &(u32, Moment)| *piece < stream.cursor;
        for (piece, deadline) in stream.overdue(now).into_iter().filter(held).collect::<Vec<_>>() {
            stream.account(piece);
            self.count_piece(now, stream.session, deadline);
        }
        let needed = self.needed_from(&stream);
        for read in stream.restart(now, needed) {
            self.buffers.unpin(read);
        }
        self.to_serve.push(stream.session);
        self.insert_stream(id, stream);
    }

    // A viewer who is fetching, but so late that what it needs next would be let go when this slot
    // ends, gets a later schedule, if that fits.
    fn extend_late_streams(&mut self, now: Moment) {
        if self.config.policy == PolicyKind::None {
            return;
        }
        let late = |stream: &Stream| {
            stream.opens.is_none()
                && self.needed_until(stream, self.slot).is_some()
                && self.is_fetching(stream, now)
        };
        for id in self.streams_with(late) {
            self.delay_stream(now, id);
        }
    }

    // When the first is let go, at the end of `slot` or before, of the pieces held that the viewer
    // may still ask for.
    fn needed_until(&self, stream: &Stream, slot: SlotIndex) -> Option<SlotIndex> {
        let from = self.needed_from(stream);
        let up = stream.held().filter(|held| held.1.piece >= from && self.is_expired(*held, slot));
        up.map(|(_, piece)| piece.release).min()
    }

    // The earliest piece that a viewer who goes on as it does may ask for.
    fn needed_from(&self, stream: &Stream) -> u32 {
        let session = &self.sessions[&stream.session];
        let open = session.requests.iter().filter_map(|request| self.requests[request].next());
        let open = open.filter(|next| next.track == stream.track);
        open.map(|next| stream.piece_at(next.offset)).min().unwrap_or(stream.position)
    }

    fn streams_with(&self, is: impl Fn(&Stream) -> bool) -> Vec<StreamId> {
        self.streams.iter().filter(|(_, stream)| is(stream)).map(|(id, _)| *id).collect()
    }

    // Whether a buffer is to be let go at the end of `slot` or before.
    fn is_expired(&self, (read, piece): (ReadId, PieceDue), slot: SlotIndex) -> bool {
        piece.release <= slot && !self.is_reading(read)
    }

    fn is_reading(&self, read: ReadId) -> bool {
        self.buffers.get(read).expect("held").state == BufferState::Reading
    }

    fn is_fetching(&self, stream: &Stream, now: Moment) -> bool {
        let took = stream.last_activity > stream.timing.origin;
        let recently = now.since(stream.last_activity) <= self.config.slot * FETCHING_SLOTS;
        took && recently || self.is_waited_for(&self.sessions[&stream.session])
    }

    // Whether a request of the session waits for the engine: not while its sockets have something
    // to take.
    fn is_waited_for(&self, session: &Session) -> bool {
        let open = |request: &RequestId| !self.requests[request].over;
        session.unsent == 0 && session.requests.iter().any(open)
    }

    // Moves the rest of a stream's schedule later, if that fits. It always does as far as the disk
    // is concerned; memory is held for longer. Never by more than the viewer is late, or its next
    // pieces would be late for it.
    fn delay_stream(&mut self, now: Moment, id: StreamId) {
        let until =
            self.needed_until(&self.streams[&id], self.slot).expect("the late hold a buffer");
        let mut stream = self.remove_stream(id);
        let disk = usize::from(stream.layout.disk.0);
        let placement = Placement { disk, replica: stream.replica };
        let before = stream.summary;
        let slots = u32::try_from(self.slot.0 + 1 - until.0).unwrap_or(u32::MAX);
        let late = stream.overdue(now);
        stream.delay(slots);
        let demand = self.demand_of([&mut stream], 0);
        let approval = self.evaluate_demand(placement, &demand);
        self.demands.put(demand);
        if let Ok(approval) = approval {
            self.adopt(approval);
            let change = ScheduleChange::Delayed { track: stream.track, slots };
            self.actions.push(Action::Rescheduled { session: stream.session, change });
            // What was late is not made good by that.
            for (piece, deadline) in late {
                stream.account(piece);
                self.count_unserved(now, &stream, deadline);
            }
        } else {
            stream.undo_delay(slots);
            stream.summary = before;
        }
        self.insert_stream(id, stream);
    }

    fn end_idle_sessions(&mut self, now: Moment) {
        let mut leaving = Vec::new();
        let mut idle = Vec::new();
        for (id, session) in self.sessions.iter() {
            if self.is_waited_for(session) {
                continue;
            }
            if self.has_left(session, now) {
                leaving.push(*id);
                continue;
            }
            let silent = |id: &&StreamId| session.asked && self.is_silent(&self.streams[*id], now);
            idle.extend(session.streams.iter().filter(silent).copied());
        }
        for id in idle {
            let stream = &self.streams[&id];
            let (session, change) =
                (stream.session, ScheduleChange::Released { track: stream.track });
            self.actions.push(Action::Rescheduled { session, change });
            self.drop_stream(now, id);
        }
        for id in leaving {
            self.end_session(now, id, false);
        }
    }

    fn has_left(&self, session: &Session, now: Moment) -> bool {
        let patience =
            if session.asked { self.config.session_timeout } else { self.config.reservation_hold };
        now.since(session.last_activity) >= patience
    }

    // Nothing asked while `idle_timeout` of media has fallen due.
    fn is_silent(&self, stream: &Stream, now: Moment) -> bool {
        let ahead = stream.position < stream.end;
        let due = if ahead { stream.latest_need(stream.position) } else { Moment::ZERO };
        now.since(due.max(stream.last_activity)) >= self.config.idle_timeout
    }

    /// A stream gives back its booking and its buffers.
    pub(super) fn drop_stream(&mut self, now: Moment, id: StreamId) {
        let stream = self.remove_stream(id);
        let session = &mut self.sessions[&stream.session];
        session.streams.retain(|other| *other != id);
        if session.streams.is_empty() {
            // What its sockets hold is all that it still takes.
            let spare = session.reserve.saturating_sub(session.unsent);
            session.reserve -= spare;
            let placement = session.placement();
            self.release_send_memory(placement, spare);
        }
        self.settle_stream(now, stream);
    }

    // `hung_up`: nothing of its requests is in use any more. Otherwise their sockets may still
    // hold buffers, until they are sent or cancelled.
    pub(super) fn end_session(&mut self, now: Moment, id: SessionId, hung_up: bool) {
        for request in self.sessions[&id].requests.clone() {
            if hung_up {
                self.drop_request(request);
            }
        }
        for stream in self.sessions[&id].streams.clone() {
            self.drop_stream(now, stream);
        }
        let session = self.sessions.take(&id);
        let (title, disk) = (session.layout.title, usize::from(session.layout.disk.0));
        self.release_send_memory(session.placement(), session.reserve);
        for request in session.requests {
            self.detach(request, disk, title);
        }
        self.actions.push(Action::Ended { session: id, summary: session.summary });
        self.title_use_ended(title);
    }
}

/// A viewer who took something within these last slots is fetching, not away.
const FETCHING_SLOTS: u32 = 8;
