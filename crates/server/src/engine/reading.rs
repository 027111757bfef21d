//! What the disks read and when: the batch at a slot's start, read-ahead in what is left of it,
//! and what happens when a read ends.
//!
//! ```text
//!   slot start                                             slot end
//!   │ batch: up to minRead reads, EDF, issued by place │ r │ r │ w │ ...  │
//!   │                                                  └ one or a few at a time: read-ahead (EDF)
//!   │                                                    and best-effort work in turn, begun only
//!   │                                                    if sure to end before the next slot
//! ```

use super::buffers::{Buffer, Interest, PieceKey, Place, State};
use super::pieces::{key, place};
use super::streams::{Counted, Hold, StreamId};
use super::{Action, DiskNumber, Engine, Layout, ReadId, ReadOutcome, RequestId, SessionId};
use scheduler::{Batch, HOLD_SLOTS, PieceDue, PolicyKind};
use std::sync::Arc;
use units::{Moment, SlotIndex};

impl Engine {
    /// Gives each disk what it is guaranteed to do in the slot that begins now.
    pub(super) fn begin_slot(&mut self, now: Moment, disk: usize) {
        if self.plans(disk) {
            self.sweep_on(now, disk);
            return;
        }
        self.grant_spare(disk);
        let state = &self.disks[disk];
        let reads = state.guard.min_read().saturating_sub(state.busy());
        let mut batch = Batch::new(reads);
        while let Some((id, piece, place)) = self.next_to_read(now, disk) {
            if !batch.fits(u64::from(place.len), self.room(disk)) {
                break;
            }
            let Some(read) = self.start_read(id, piece, place) else { break };
            batch.take(place.offset, read);
        }
        let state = &mut self.disks[disk];
        state.sweep = state.sweep.turned();
        let order: Vec<ReadId> = batch.in_order(state.sweep).collect();
        state.batch_len = u32::try_from(order.len()).expect("bounded by min_read");
        state.has_lacked |= state.batch_len < reads;
        state.batch.extend(order.iter().copied());
        order.into_iter().for_each(|read| self.emit_read(now, read));
    }

    /// Uses what is left of the slot, on every disk, and serves those whose next piece turned out
    /// to be in memory on the way.
    pub(super) fn use_leftovers(&mut self, now: Moment) {
        loop {
            for disk in 0..self.disks.len() {
                if self.plans(disk) {
                    self.sweep_on(now, disk);
                    continue;
                }
                while self.has_time(now, disk) {
                    if !self.begin_one(now, disk) {
                        self.disks[disk].has_lacked = true;
                        break;
                    }
                }
            }
            if self.to_serve.is_empty() {
                return;
            }
            while let Some(session) = self.to_serve.pop() {
                self.serve_session(now, session);
            }
        }
    }

    // Whether one thing more is sure to end within the slot, whatever is in the device. Who counts
    // with what a disk does when it is never idle must not leave it so, and guarantees nothing.
    fn has_time(&self, now: Moment, disk: usize) -> bool {
        let state = &self.disks[disk];
        let left = self.slot.next().start(self.config.slot).since(now);
        let busy = state.busy();
        let is_sure = || state.guarantee.longest_read.saturating_mul(busy + 1) < left;
        state.batch.is_empty()
            && !state.work.is_in_batch()
            && busy < state.guarantee.queue_depth.max(1)
            && (self.config.policy == PolicyKind::Observed || is_sure())
    }

    fn begin_one(&mut self, now: Moment, disk: usize) -> bool {
        // Who must survive a loss relies on work ahead as far as it goes.
        let work_first = self.disks[disk].work.next_turn && !self.standby.is_wanted();
        self.disks[disk].work.next_turn ^= true;
        let granted = work_first && self.grant(disk).is_some();
        granted || self.read_ahead(now, disk) || self.grant(disk).is_some()
    }

    fn read_ahead(&mut self, now: Moment, disk: usize) -> bool {
        let Some((id, piece, place)) = self.next_to_read(now, disk) else { return false };
        if u64::from(place.len) > self.room(disk) {
            return false;
        }
        let Some(read) = self.start_read(id, piece, place) else { return false };
        self.emit_read(now, read);
        true
    }

    /// Bytes of buffers that streams of `disk` may still take up.
    ///
    /// Where nobody is promised anything, the shares and reserves mean nothing either.
    pub(super) fn room(&self, disk: usize) -> u64 {
        match self.config.policy {
            PolicyKind::None => self.buffers.room(),
            _ => self.disks[disk].room().min(self.buffers.room()),
        }
    }

    // The most urgent piece that needs a read. Pieces before it that are in memory, or being read
    // for somebody else, are taken up on the way.
    pub(super) fn next_to_read(
        &mut self,
        now: Moment,
        disk: usize,
    ) -> Option<(StreamId, PieceDue, Place)> {
        loop {
            let (_, id) = self.disks[disk].queue.first()?;
            let stream = &self.streams[&id];
            let piece = stream.next_read().expect("queued streams have something to read");
            let (key, place) = (stream.key(piece.piece), stream.place(piece.piece));
            let Some((read, _)) = self.buffers.find(key, place) else {
                return Some((id, piece, place));
            };
            // Strictly in order: what comes later must not take the memory this one waits for.
            if u64::from(piece.len) > self.room(disk) {
                return None;
            }
            self.share(now, id, read);
        }
    }

    /// The next piece of a stream is in memory, or being read for somebody else: it needs no read.
    pub(super) fn share(&mut self, now: Moment, id: StreamId, read: ReadId) {
        let piece = self.streams[&id].next_read().expect("asked for the next piece");
        self.take_up(id, piece, read);
        self.counters.cache_hits += 1;
        if self.buffers.get(read).expect("found just now").state == State::Ready {
            self.count(now, id, piece.piece);
            self.to_serve.push(self.streams[&id].session);
        } else {
            self.buffers.tell(read, Interest::Stream(id));
        }
    }

    pub(super) fn start_read(
        &mut self,
        id: StreamId,
        piece: PieceDue,
        place: Place,
    ) -> Option<ReadId> {
        if !self.make_room(u64::from(place.len)) {
            return None;
        }
        let key = self.streams[&id].key(piece.piece);
        let read = self.buffers.start(key, place, false);
        self.buffers.tell(read, Interest::Stream(id));
        for request in self.waiting_for(key) {
            self.buffers.tell(read, Interest::Request(request));
        }
        self.take_up(id, piece, read);
        Some(read)
    }

    pub(super) fn make_room(&mut self, len: u64) -> bool {
        let mut forgotten = Vec::new();
        let room = self.buffers.make_room(len, &mut forgotten);
        self.actions.extend(forgotten.into_iter().map(|read| Action::Forget { read }));
        room
    }

    fn take_up(&mut self, id: StreamId, piece: PieceDue, read: ReadId) {
        let stream = self.streams.get_mut(&id).expect("live");
        let disk = &mut self.disks[usize::from(stream.layout.disk.0)];
        disk.queue.remove(piece.due, id);
        stream.take_up(piece, read);
        disk.books.take_up(piece);
        self.buffers.pin(read);
        if let Some(next) = stream.next_read() {
            disk.queue.insert(next.due, id);
        }
    }

    fn emit_read(&mut self, now: Moment, read: ReadId) {
        let key = self.buffers.get(read).expect("started just now").key;
        self.titles.began(key.title);
        self.push_read(now, read);
    }

    /// Gives a read to the device; its title's use has begun.
    pub(super) fn push_read(&mut self, now: Moment, read: ReadId) {
        let buffer = self.buffers.get(read).expect("started");
        let (key, place) = (buffer.key, buffer.place);
        let disk = &mut self.disks[usize::from(place.disk.0)];
        disk.device_takes(now, place.offset, place.len);
        disk.in_flight += 1;
        self.actions.push(Action::Read {
            read,
            disk: place.disk,
            device_offset: place.offset,
            len: place.len,
            title: key.title,
            track: key.track,
            start: key.start,
        });
    }

    /// A read has ended. Every [`Action::Read`] is answered once; one that was never asked for is
    /// ignored.
    pub fn read_done(&mut self, now: Moment, read: ReadId, outcome: ReadOutcome) {
        self.advance(now);
        let Some(buffer) = self.buffers.get(read) else { return };
        if buffer.state != State::Reading {
            return;
        }
        let (key, place) = (buffer.key, buffer.place);
        let disk = &mut self.disks[usize::from(place.disk.0)];
        disk.in_flight -= 1;
        disk.device_ended(now, place.offset, place.len);
        disk.batch.remove(&read);
        disk.reads += 1;
        disk.slot_reads += 1;
        if outcome == ReadOutcome::Good {
            disk.bytes += u64::from(place.len);
            let told = self.buffers.ready(read);
            self.tell(now, read, &told);
        } else {
            disk.failures += 1;
            disk.was_not_charged(now);
        }
        self.watch_disk(now, usize::from(place.disk.0), outcome);
        if outcome != ReadOutcome::Good {
            self.failed_read(now, read, outcome);
        }
        self.title_use_ended(key.title);
        self.use_leftovers(now);
    }

    // A piece is in memory: counts it for the streams that hold it and serves who waits.
    fn tell(&mut self, now: Moment, read: ReadId, told: &[Interest]) {
        for who in told {
            match who {
                Interest::Stream(id) => {
                    let pieces = self.streams.get(id).map(|stream| stream.holds_in(read));
                    for piece in pieces.iter().flatten() {
                        self.count(now, *id, *piece);
                    }
                    if pieces.is_some_and(|pieces| !pieces.is_empty()) {
                        self.serve_session(now, self.streams[id].session);
                    }
                }
                Interest::Request(request) => self.serve(now, *request),
            }
        }
    }

    /// Notes whether a piece that `id` holds is in memory in time. A late one is kept as long as
    /// one that came in time would have been.
    pub(super) fn count(&mut self, now: Moment, id: StreamId, piece: u32) {
        self.secure(id, piece);
        let stream = self.streams.get_mut(&id).expect("live");
        let (session, disk) = (stream.session, usize::from(stream.layout.disk.0));
        let Some(Hold::Held { deadline, counted: counted @ None, piece, .. }) =
            stream.hold_mut(piece)
        else {
            return;
        };
        let (deadline, due) = (*deadline, *piece);
        *counted = Some(if now <= deadline { Counted::OnTime } else { Counted::ForGood });
        let release = piece.release.max(self.slot + HOLD_SLOTS);
        if now > deadline && release > piece.release {
            self.disks[disk].books.keep_until(*piece, release);
            piece.release = release;
        }
        self.count_for(now, session, deadline);
        self.examine(now, id, due);
    }

    // A piece that a stream holds is in memory.
    fn secure(&mut self, id: StreamId, piece: u32) {
        if self.streams.get_mut(&id).expect("live").make_safe(piece) {
            self.standby.secured(&self.streams[&id], piece);
        }
    }

    /// Adds one piece to a session's account, in memory (or given up) `now`.
    pub(super) fn count_for(&mut self, now: Moment, session: SessionId, deadline: Moment) {
        let summary = &mut self.sessions.get_mut(&session).expect("streams have a session").summary;
        if now <= deadline {
            summary.on_time += 1;
            self.counters.on_time += 1;
        } else {
            summary.glitches += 1;
            summary.worst_lateness = summary.worst_lateness.max(now.since(deadline));
            self.counters.glitches += 1;
        }
    }

    // Once more if anybody still wants it, from another copy if there is one; then it cannot be had.
    fn failed_read(&mut self, now: Moment, read: ReadId, outcome: ReadOutcome) {
        let buffer = self.buffers.remove(read);
        self.actions.push(Action::Forget { read });
        let holders: Vec<(StreamId, u32)> = buffer
            .told
            .iter()
            .filter_map(|who| match who {
                Interest::Stream(id) => Some((*id, self.streams.get(id)?.holds_in(read))),
                Interest::Request(_) => None,
            })
            .flat_map(|(id, pieces)| pieces.into_iter().map(move |piece| (id, piece)))
            .collect();
        let waiting = self.waiting_for(buffer.key);
        if !buffer.retried && (!holders.is_empty() || !waiting.is_empty()) {
            let (key, place) = self.place_again(&buffer, &holders, &waiting);
            // Another viewer may have it, or be about to.
            let found = self.buffers.find(key, place);
            let again =
                found.map_or_else(|| self.buffers.start(key, place, true), |(read, _)| read);
            let waiting = waiting.into_iter().map(Interest::Request);
            let told: Vec<Interest> = waiting.chain(buffer.told).collect();
            for (id, piece) in holders {
                self.streams.get_mut(&id).expect("checked").now_reads(piece, again);
                self.buffers.pin(again);
            }
            if matches!(found, Some((_, State::Ready))) {
                self.tell(now, again, &told);
                return;
            }
            told.into_iter().for_each(|who| self.buffers.tell(again, who));
            if found.is_none() {
                self.emit_read(now, again);
                self.disks[usize::from(place.disk.0)].was_not_charged(now);
            }
            return;
        }
        for (id, piece) in holders {
            self.lose(now, id, piece);
        }
        for request in waiting {
            if self.is_stuck(request) {
                self.fail(request, outcome);
            }
        }
    }

    // Where to try again what could not be read: another copy, or the same place.
    fn place_again(
        &self,
        failed: &Buffer,
        holders: &[(StreamId, u32)],
        waiting: &[RequestId],
    ) -> (PieceKey, Place) {
        let holding = holders.iter().map(|(id, piece)| (self.streams[id].session, *piece));
        let wanting = waiting.iter().filter_map(|request| {
            let request = &self.requests[request];
            let id = self.stream_of(request.session, failed.key.track)?;
            Some((request.session, self.streams[&id].piece_at(request.next()?.offset)))
        });
        let track = failed.key.track;
        let elsewhere = holding.chain(wanting).find_map(|(session, piece)| {
            let mut copies = self.sessions.get(&session)?.copies.iter();
            let other = |copy: &&Arc<Layout>| copy.disk != failed.place.disk && self.is_live(copy);
            let copy = copies.find(other)?;
            let (key, place) = (key(copy, track, piece), place(copy, track, piece));
            (PieceKey { disk: failed.key.disk, ..key } == failed.key).then_some((key, place))
        });
        elsewhere.unwrap_or((failed.key, failed.place))
    }

    // The stream goes on without the piece.
    fn lose(&mut self, now: Moment, id: StreamId, piece: u32) {
        let stream = self.streams.get_mut(&id).expect("live");
        let (session, deadline) = (stream.session, stream.deadline(piece));
        let (_, due, safe) = stream.let_go(piece).expect("held");
        self.disks[usize::from(stream.layout.disk.0)].books.let_go(due);
        self.standby.let_go(stream, due.piece, safe);
        self.network.unbook(due);
        self.count_for(now.max(deadline + std::time::Duration::from_nanos(1)), session, deadline);
    }

    /// Reads ahead that need not be in memory before the end of slot `keep` are given back: the
    /// buffers become cache (those still being read when they come, which is before the next slot),
    /// the reads are booked again. Says whose and how many.
    pub(super) fn give_back_ahead(&mut self, disk: usize, keep: SlotIndex) -> Vec<(StreamId, u32)> {
        let (mut given, mut on_time) = (Vec::new(), Vec::new());
        for (id, stream) in &mut self.streams {
            if usize::from(stream.layout.disk.0) != disk {
                continue;
            }
            let next = stream.next_read();
            let mut count = 0;
            while let Some((read, piece)) = stream.last_held() {
                // What is read again, from another copy, would not be found there.
                let again = self.buffers.get(read).is_some_and(|buffer| {
                    buffer.state == State::Reading && buffer.key.disk != stream.layout.disk
                });
                if piece.due <= keep || again {
                    break;
                }
                let back = stream.put_back_last(self.now).expect("held");
                self.standby.put_back(stream, piece.piece, back.safe);
                on_time.extend(back.on_time.then_some(stream.session));
                self.disks[disk].books.put_back(piece);
                self.buffers.unpin(read);
                count += 1;
            }
            if count > 0 {
                if let Some(next) = next {
                    self.disks[disk].queue.remove(next.due, *id);
                }
                let next = stream.next_read().expect("put back just now");
                self.disks[disk].queue.insert(next.due, *id);
                given.push((*id, count));
            }
        }
        for session in on_time {
            self.uncount(session, true);
        }
        given
    }

    /// Takes up again what [`Engine::give_back_ahead`] gave; nothing was forgotten in between.
    pub(super) fn take_back(&mut self, now: Moment, given: &[(StreamId, u32)]) {
        for (id, count) in given {
            for _ in 0..*count {
                let stream = &self.streams[id];
                let piece = stream.next_read().expect("given back");
                let place = stream.place(piece.piece);
                let found = self.buffers.find(stream.key(piece.piece), place);
                let (read, _) = found.expect("nothing is forgotten while deciding");
                self.share(now, *id, read);
                self.counters.cache_hits -= 1;
            }
        }
    }

    /// The disk's number as callers know it.
    pub(super) fn disk_index(&self, disk: DiskNumber) -> Option<usize> {
        let index = usize::from(disk.0);
        (index < self.disks.len()).then_some(index)
    }
}
