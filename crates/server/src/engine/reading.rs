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

use super::buffers::{Buffer, BufferState, Location, PieceKey, Waiter};
use super::pieces::{key, place};
use super::streams::{Counted, Hold, StreamId};
use super::{Action, Engine, Layout, ReadId, ReadOutcome, RequestId, SessionId};
use scheduler::{Batch, BatchLimit, HOLD_SLOTS, NextRead, PieceDue, PolicyKind, ReadSource};
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
        let batch = Batch::new(BatchLimit::Reads(reads)).fill(&mut self.reads_of(now, disk));
        let state = &mut self.disks[disk];
        state.batch_len = u32::try_from(batch.reads().len()).expect("bounded by min_read");
        state.has_lacked |= state.batch_len < reads;
        state.batch.extend(batch.reads().map(|chosen| chosen.read));
        state.dispatcher.choose(batch, None);
        while let Some(chosen) = self.disks[disk].dispatcher.issue() {
            self.push_read(now, chosen.read);
        }
    }

    /// The streams of `disk` as its dispatcher sees them.
    pub(super) fn reads_of(&mut self, now: Moment, disk: usize) -> DiskReads<'_> {
        DiskReads { engine: self, now, disk }
    }

    /// Uses what is left of the slot, on every disk, and serves those whose next piece turned out
    /// to be in memory on the way.
    pub(super) fn dispatch_and_serve(&mut self, now: Moment) {
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
        let work_first = self.disks[disk].work.next_turn && !self.failover.is_enabled();
        self.disks[disk].work.next_turn ^= true;
        let granted = work_first && self.grant(disk).is_some();
        granted || self.read_ahead(now, disk) || self.grant(disk).is_some()
    }

    fn read_ahead(&mut self, now: Moment, disk: usize) -> bool {
        let mut batch = Batch::new(BatchLimit::Reads(1));
        let taken = batch.take_next(&mut self.reads_of(now, disk));
        batch.reads().for_each(|chosen| self.push_read(now, chosen.read));
        taken
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
    fn next_to_read(&mut self, now: Moment, disk: usize) -> Option<NextRead<StreamId>> {
        loop {
            let (_, id) = self.disks[disk].dispatcher.queue().first()?;
            let stream = &self.streams[&id];
            let piece = stream.next_read().expect("queued streams have something to read");
            let (key, place) = (stream.key(piece.piece), stream.place(piece.piece));
            let Some((read, _)) = self.buffers.find(key, place) else {
                return Some(NextRead { stream: id, piece, offset: place.offset });
            };
            // Strictly in order: what comes later must not take the memory this one waits for.
            if u64::from(piece.len) > self.room(disk) {
                return None;
            }
            self.hold_cached_piece(now, id, read);
        }
    }

    /// The next piece of a stream is in memory, or being read for somebody else: it needs no read.
    pub(super) fn hold_cached_piece(&mut self, now: Moment, id: StreamId, read: ReadId) {
        let piece = self.streams[&id].next_read().expect("asked for the next piece");
        self.hold_next(id, piece, read);
        self.counters.cache_hits += 1;
        if self.buffers.get(read).expect("found just now").state == BufferState::Ready {
            self.record_arrival(now, id, piece.piece);
            self.to_serve.push(self.streams[&id].session);
        } else {
            self.buffers.add_waiter(read, Waiter::Stream(id));
        }
    }

    // Takes a buffer for a stream's next piece, whose title is in use from now on.
    fn start_read(&mut self, next: &NextRead<StreamId>) -> Option<ReadId> {
        let NextRead { stream: id, piece, offset } = *next;
        if !self.make_room(u64::from(piece.len)) {
            return None;
        }
        let stream = &self.streams[&id];
        let key = stream.key(piece.piece);
        let place = Location { disk: stream.layout.disk, offset, len: piece.len };
        let read = self.buffers.start(key, place, false);
        self.buffers.add_waiter(read, Waiter::Stream(id));
        for request in self.requests.waiting_for(key) {
            self.buffers.add_waiter(read, Waiter::Request(request));
        }
        self.hold_next(id, piece, read);
        self.titles.use_began(key.title);
        Some(read)
    }

    pub(super) fn make_room(&mut self, len: u64) -> bool {
        let mut forgotten = Vec::new();
        let room = self.buffers.make_room(len, &mut forgotten);
        self.actions.extend(forgotten.into_iter().map(|read| Action::Forget { read }));
        room
    }

    fn hold_next(&mut self, id: StreamId, piece: PieceDue, read: ReadId) {
        let stream = &mut self.streams[&id];
        let disk = &mut self.disks[usize::from(stream.layout.disk.0)];
        stream.hold_next(piece, read);
        disk.dispatcher.start_read(id, piece, stream.next_read());
        self.buffers.pin(read);
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

    /// A read has ended; one that was never issued is ignored.
    pub(super) fn end_read(&mut self, now: Moment, read: ReadId, outcome: ReadOutcome) {
        let Some(buffer) = self.buffers.get(read) else { return };
        if buffer.state != BufferState::Reading {
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
            let waiters = self.buffers.ready(read);
            self.notify_waiters(now, read, &waiters);
        } else {
            disk.failures += 1;
            disk.note_unplanned_io(now);
        }
        self.watch_disk(now, usize::from(place.disk.0), outcome);
        if outcome != ReadOutcome::Good {
            self.failed_read(now, read, outcome);
        }
        self.title_use_ended(key.title);
    }

    // A piece is in memory: counts it for the streams that hold it and serves who waits.
    fn notify_waiters(&mut self, now: Moment, read: ReadId, waiters: &[Waiter]) {
        for who in waiters {
            match who {
                Waiter::Stream(id) => {
                    let pieces = self.streams.get(id).map(|stream| stream.holds_in(read));
                    for piece in pieces.iter().flatten() {
                        self.record_arrival(now, *id, *piece);
                    }
                    if pieces.is_some_and(|pieces| !pieces.is_empty()) {
                        self.serve_session(now, self.streams[id].session);
                    }
                }
                Waiter::Request(request) => self.serve(now, *request),
            }
        }
    }

    /// Notes whether a piece that `id` holds is in memory in time. A late one is kept as long as
    /// one that came in time would have been.
    pub(super) fn record_arrival(&mut self, now: Moment, id: StreamId, piece: u32) {
        self.mark_in_memory(id, piece);
        let stream = &mut self.streams[&id];
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
            self.disks[disk].dispatcher.books.hold_until(*piece, release);
            piece.release = release;
        }
        self.count_piece(now, session, deadline);
        self.record_slack(now, id, due);
    }

    // A piece that a stream holds is in memory.
    fn mark_in_memory(&mut self, id: StreamId, piece: u32) {
        if self.streams[&id].make_safe(piece) {
            self.failover.piece_in_memory(&self.streams[&id], piece);
        }
    }

    /// Adds one piece to a session's account, in memory (or given up) `now`.
    pub(super) fn count_piece(&mut self, now: Moment, session: SessionId, deadline: Moment) {
        let summary = &mut self.sessions[&session].summary;
        if now <= deadline {
            summary.on_time += 1;
            self.counters.on_time += 1;
        } else {
            summary.deadline_misses += 1;
            summary.worst_lateness = summary.worst_lateness.max(now.since(deadline));
            self.counters.deadline_misses += 1;
        }
    }

    // Once more if anybody still wants it, from another copy if there is one; then it cannot be
    // had.
    fn failed_read(&mut self, now: Moment, read: ReadId, outcome: ReadOutcome) {
        let buffer = self.buffers.remove(read);
        self.actions.push(Action::Forget { read });
        let holders: Vec<(StreamId, u32)> = buffer
            .waiters
            .iter()
            .filter_map(|who| match who {
                Waiter::Stream(id) => Some((*id, self.streams.get(id)?.holds_in(read))),
                Waiter::Request(_) => None,
            })
            .flat_map(|(id, pieces)| pieces.into_iter().map(move |piece| (id, piece)))
            .collect();
        let waiting = self.requests.waiting_for(buffer.key);
        if !buffer.retried && (!holders.is_empty() || !waiting.is_empty()) {
            let (key, place) = self.place_again(&buffer, &holders, &waiting);
            // Another viewer may have it, or be about to.
            let found = self.buffers.find(key, place);
            let again =
                found.map_or_else(|| self.buffers.start(key, place, true), |(read, _)| read);
            let waiting = waiting.into_iter().map(Waiter::Request);
            let waiters: Vec<Waiter> = waiting.chain(buffer.waiters).collect();
            for (id, piece) in holders {
                self.streams[&id].now_reads(piece, again);
                self.buffers.pin(again);
            }
            if matches!(found, Some((_, BufferState::Ready))) {
                self.notify_waiters(now, again, &waiters);
                return;
            }
            waiters.into_iter().for_each(|who| self.buffers.add_waiter(again, who));
            if found.is_none() {
                self.titles.use_began(key.title);
                self.push_read(now, again);
                self.disks[usize::from(place.disk.0)].note_unplanned_io(now);
            }
            return;
        }
        for (id, piece) in holders {
            self.give_up_piece(now, id, piece);
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
            let other = |copy: &&Arc<Layout>| copy.disk != failed.place.disk && self.is_live(copy);
            let copy = copies.find(other)?;
            let (key, place) = (key(copy, track, piece), place(copy, track, piece));
            (PieceKey { disk: failed.key.disk, ..key } == failed.key).then_some((key, place))
        });
        elsewhere.unwrap_or((failed.key, failed.place))
    }

    // The stream goes on without the piece.
    fn give_up_piece(&mut self, now: Moment, id: StreamId, piece: u32) {
        let stream = &mut self.streams[&id];
        let (session, deadline) = (stream.session, stream.deadline(piece));
        let (_, due, safe) = stream.release(piece).expect("held");
        self.disks[usize::from(stream.layout.disk.0)].dispatcher.books.release(due);
        self.failover.release(stream, due.piece, safe);
        self.network.unbook(due);
        self.count_piece(now.max(deadline + std::time::Duration::from_nanos(1)), session, deadline);
    }

    /// Reads ahead that need not be in memory before the end of slot `keep` are given back: the
    /// buffers become cache (those still being read when they come, which is before the next slot),
    /// the reads are booked again. Says whose and how many.
    pub(super) fn drop_readahead(&mut self, disk: usize, keep: SlotIndex) -> Vec<(StreamId, u32)> {
        let (mut given, mut on_time) = (Vec::new(), Vec::new());
        for (id, stream) in self.streams.iter_mut() {
            if usize::from(stream.layout.disk.0) != disk {
                continue;
            }
            let next = stream.next_read();
            let mut count = 0;
            while let Some((read, piece)) = stream.last_held() {
                // What is read again, from another copy, would not be found there.
                let again = self.buffers.get(read).is_some_and(|buffer| {
                    buffer.state == BufferState::Reading && buffer.key.disk != stream.layout.disk
                });
                if piece.due <= keep || again {
                    break;
                }
                let back = stream.unread_last(self.now).expect("held");
                self.failover.unread(stream, piece.piece, back.safe);
                on_time.extend(back.on_time.then_some(stream.session));
                self.disks[disk].dispatcher.books.undo_read(piece);
                self.buffers.unpin(read);
                count += 1;
            }
            if count > 0 {
                let dispatcher = &mut self.disks[disk].dispatcher;
                dispatcher.dequeue(*id, next);
                dispatcher.enqueue(*id, stream.next_read());
                given.push((*id, count));
            }
        }
        for session in on_time {
            self.uncount_piece(session, true);
        }
        given
    }

    /// Takes up again what [`Engine::drop_readahead`] gave; nothing was forgotten in between.
    pub(super) fn restore_readahead(&mut self, now: Moment, given: &[(StreamId, u32)]) {
        for (id, count) in given {
            for _ in 0..*count {
                let stream = &self.streams[id];
                let piece = stream.next_read().expect("given back");
                let place = stream.place(piece.piece);
                let found = self.buffers.find(stream.key(piece.piece), place);
                let (read, _) = found.expect("nothing is forgotten while deciding");
                self.hold_cached_piece(now, *id, read);
                self.counters.cache_hits -= 1;
            }
        }
    }
}

/// One disk's streams as its dispatcher sees them: what is in memory already is not read again.
pub(super) struct DiskReads<'e> {
    engine: &'e mut Engine,
    now: Moment,
    disk: usize,
}

impl ReadSource for DiskReads<'_> {
    type Stream = StreamId;
    type Read = ReadId;

    fn most_urgent(&mut self) -> Option<NextRead<StreamId>> {
        self.engine.next_to_read(self.now, self.disk)
    }

    fn room(&self) -> u64 {
        self.engine.room(self.disk)
    }

    fn start_read(&mut self, next: &NextRead<StreamId>) -> Option<ReadId> {
        self.engine.start_read(next)
    }
}
