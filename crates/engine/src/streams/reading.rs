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

use super::Streams;
use crate::bookings::best_effort::Ends;
use crate::buffers::{BufferState, Location, PieceKey, TitlePart, Waiter};
use crate::stream::{Counted, Hold, StreamId};
use crate::{Action, ReadId, ReadOutcome, SessionId};
use scheduler::{Batch, BatchLimit, HOLD_SLOTS, NextRead, PieceDue, PolicyKind, ReadSource};
use std::ops::Range;
use units::Moment;

impl Streams {
    /// Gives each disk what it is guaranteed to do in the slot that begins now.
    pub(crate) fn begin_slot(&mut self, now: Moment) {
        for disk in 0..self.bookings.disks.len() {
            self.begin_slot_of(now, disk);
        }
    }

    fn begin_slot_of(&mut self, now: Moment, disk: usize) {
        if self.bookings.plans(disk) {
            self.sweep_on(now, disk);
            return;
        }
        // Before the batch, because what is granted is taken from the reads of the slot.
        self.grant_spare(disk);
        let state = &self.bookings.disks[disk];
        let reads = state.min_read().saturating_sub(state.busy());
        let batch = Batch::new(BatchLimit::Reads(reads)).fill(&mut self.reads_of(now, disk));
        let state = &mut self.bookings.disks[disk];
        state.batch_len = u32::try_from(batch.reads().len()).expect("bounded by min_read");
        // Fewer reads than the disk may do leave it idle for a part of the slot.
        state.has_lacked |= state.batch_len < reads;
        state.batch.extend(batch.reads().map(|chosen| chosen.read));
        state.dispatcher.choose(batch, None);
        while let Some(chosen) = self.bookings.disks[disk].dispatcher.issue() {
            self.push_read(now, chosen.read);
        }
    }

    /// The streams of `disk` as its dispatcher sees them.
    pub(super) fn reads_of(&mut self, now: Moment, disk: usize) -> DiskReads<'_> {
        DiskReads { streams: self, now, disk }
    }

    /// Uses what is left of the slot, on every disk. Sessions whose next piece turned out to be in
    /// memory on the way are to be served.
    pub(crate) fn dispatch(&mut self, now: Moment) {
        for disk in 0..self.bookings.disks.len() {
            if self.bookings.plans(disk) {
                self.sweep_on(now, disk);
                continue;
            }
            self.grant_writes(now, disk);
            while self.has_time(now, disk, 1) {
                if !self.begin_one(now, disk) {
                    self.bookings.disks[disk].has_lacked = true;
                    break;
                }
            }
        }
    }

    // Whether so many reads more are sure to end within the slot, whatever is in the device. A
    // policy that counts with what the disk does when it is never idle must not leave it idle, and
    // guarantees nothing. Nor may a disk be left idle of which recordings leave no read of a slot,
    // where nothing is refused.
    fn has_time(&self, now: Moment, disk: usize, reads: u32) -> bool {
        let state = &self.bookings.disks[disk];
        let left = self.bookings.slot_end().since(now);
        let busy = state.busy();
        let is_sure = || state.guarantee.longest_read.saturating_mul(busy + reads) < left;
        let may_be_late = match self.bookings.policy() {
            PolicyKind::Observed => true,
            PolicyKind::None => state.min_read() == 0,
            _ => false,
        };
        // Until the batch is complete, one more read could make a read of the batch late.
        state.batch.is_empty()
            && state.work.in_batch.is_empty()
            && busy < state.guarantee.queue_depth.max(1)
            && (may_be_late || is_sure())
    }

    fn begin_one(&mut self, now: Moment, disk: usize) -> bool {
        // Streams that must survive a disk loss rely on all the read-ahead there is time for.
        let survives_loss = self.bookings.survives_loss();
        let work = &mut self.bookings.disks[disk].work;
        let work_first = work.next_turn && !survives_loss;
        work.next_turn ^= true;
        let granted = work_first && self.grant_in_turn(now, disk);
        granted || self.read_ahead(now, disk) || self.grant_in_turn(now, disk)
    }

    // Grants the next permit if all reads that it counts for are sure to end within the slot, or no
    // stream is there that could be late.
    fn grant_in_turn(&mut self, now: Moment, disk: usize) -> bool {
        let state = &self.bookings.disks[disk];
        let Some(reads) = state.work.first_reads() else { return false };
        let may_begin = state.work.may_begin(now);
        if !may_begin && !state.recordings.is_empty() {
            return false;
        }
        let is_free = may_begin && state.dispatcher.books.is_empty();
        let ends = match self.has_time(now, disk, reads) {
            true => Ends::Within,
            false if is_free => Ends::Later,
            false => return false,
        };
        self.grant(disk, ends).is_some()
    }

    fn read_ahead(&mut self, now: Moment, disk: usize) -> bool {
        let mut batch = Batch::new(BatchLimit::Reads(1));
        let taken = batch.take_next(&mut self.reads_of(now, disk));
        batch.reads().for_each(|chosen| self.push_read(now, chosen.read));
        taken
    }

    // Bytes of buffers that streams of `disk` may still hold. Where no stream has a guarantee, the
    // disks' shares and the reserves have no meaning.
    fn room(&self, disk: usize) -> u64 {
        match self.bookings.policy() {
            PolicyKind::None => self.buffers.room(),
            _ => self.bookings.disks[disk].room().min(self.buffers.room()),
        }
    }

    // The most urgent piece that needs a read. Pieces before it that are in memory, or being read
    // for another stream, are held on the way.
    fn next_to_read(&mut self, now: Moment, disk: usize) -> Option<NextRead<StreamId>> {
        loop {
            let (_, id) = self.bookings.disks[disk].dispatcher.queue().first()?;
            let stream = &self[&id];
            let piece = stream.next_read().expect("queued streams have something to read");
            let (key, place) = (stream.key(piece.piece), stream.place(piece.piece));
            let Some((read, _)) = self.buffers.find(key, place) else {
                return Some(NextRead { stream: id, piece, offset: place.offset });
            };
            // Strictly in order: later pieces must not take the memory that this one waits for.
            if u64::from(piece.len) > self.room(disk) {
                return None;
            }
            self.hold_cached_piece(now, id, read);
        }
    }

    /// The next piece of a stream is in memory, or being read for another stream: it needs no read.
    pub(super) fn hold_cached_piece(&mut self, now: Moment, id: StreamId, read: ReadId) {
        self.accounts.counters.cache_hits += 1;
        self.hold_without_read(now, id, read);
        self.buffers.used_again(read);
    }

    /// The next piece of a stream is held in buffer `read`, which is in memory or being read.
    pub(super) fn hold_without_read(&mut self, now: Moment, id: StreamId, read: ReadId) {
        let piece = self[&id].next_read().expect("asked for the next piece");
        self.hold_next(id, piece, read);
        if self.buffers.get(read).expect("found just now").state == BufferState::Reading {
            self.buffers.add_waiter(read, Waiter::Stream(id));
        } else if self.is_feed(id) {
            self.feed_all(now, id);
        } else {
            self.record_arrival(now, id, piece.piece);
            self.to_serve.push(self.streams[&id].session);
            self.take_fed(now, id);
        }
    }

    // Takes a buffer for a stream's next piece, whose title is in use from now on.
    fn start_read(&mut self, next: &NextRead<StreamId>) -> Option<ReadId> {
        let NextRead { stream: id, piece, offset } = *next;
        if !self.make_room(u64::from(piece.len)) {
            return None;
        }
        let stream = &self[&id];
        let key = stream.key(piece.piece);
        let place = Location { disk: stream.layout.disk, offset, len: piece.len };
        let read =
            self.buffers.start(key, place, piece.due, false, self.part_of(stream, piece.piece));
        self.buffers.add_waiter(read, Waiter::Stream(id));
        // Requests may have waited for this piece since before it was its turn to be read.
        for request in self.awaited.of(key) {
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
        let stream = self.get_mut(id);
        stream.hold_next(piece, read);
        let (disk, after) = (usize::from(stream.layout.disk.0), stream.next_read());
        self.bookings.disks[disk].dispatcher.start_read(id, piece, after);
        self.buffers.pin(read);
    }

    /// Gives a read to the device; its title's use has begun.
    pub(super) fn push_read(&mut self, now: Moment, read: ReadId) {
        let buffer = self.buffers.get(read).expect("started");
        let (key, place) = (buffer.key, buffer.place);
        let disk = &mut self.bookings.disks[usize::from(place.disk.0)];
        disk.read_issued(now, place.offset, place.len);
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

    /// A read has ended; the caller notifies its waiters. `None`: it was never issued, or has ended
    /// before.
    pub(crate) fn end_read(
        &mut self,
        now: Moment,
        read: ReadId,
        outcome: ReadOutcome,
        device: &Range<Moment>,
    ) -> Option<EndedRead> {
        let buffer = self.buffers.get(read).filter(|b| b.state == BufferState::Reading)?;
        let (key, place, due) = (buffer.key, buffer.place, buffer.due);
        if buffer.repeats_for_nobody() {
            self.last_vain_repeat = Some(now);
        }
        let disk = &mut self.bookings.disks[usize::from(place.disk.0)];
        let good = outcome == ReadOutcome::Good;
        disk.read_ended(now, read, due, place, good, device);
        // A failed buffer keeps its waiters: the repeated read is made for them.
        let waiters = if good { self.buffers.ready(read) } else { Vec::new() };
        Some(EndedRead { key, place, waiters })
    }

    /// The pieces of a stream that are held in buffer `read` have come into memory. Returns the
    /// session to be served, if there are any.
    pub(crate) fn arrived(&mut self, now: Moment, id: StreamId, read: ReadId) -> Option<SessionId> {
        let pieces = self.get(id)?.holds_in(read);
        if self.is_feed(id) {
            // The sessions of those that take the piece are served at the end of this call.
            self.feed_all(now, id);
            return None;
        }
        for piece in &pieces {
            self.record_arrival(now, id, *piece);
        }
        let session = self.streams[&id].session;
        self.take_fed(now, id);
        (!pieces.is_empty()).then_some(session)
    }

    /// A failed read is made again, or the read of another copy is used in its place, for these
    /// holders. Returns the buffer.
    pub(crate) fn read_again(
        &mut self,
        now: Moment,
        key: PieceKey,
        place: Location,
        holders: &[(StreamId, u32)],
        waiters: Vec<Waiter>,
    ) -> (ReadId, Retry) {
        // Another viewer may have it, or wait for it.
        let found = self.buffers.find(key, place);
        let now_due = self.bookings.slot();
        let part =
            holders.first().map_or(TitlePart::Rest, |(id, piece)| self.part_of(&self[id], *piece));
        let again = match found {
            Some((read, _)) => read,
            None => self.buffers.start(key, place, now_due, true, part),
        };
        for (id, piece) in holders {
            // The pins of the failed buffer ended with it.
            self.get_mut(*id).now_reads(*piece, again);
            self.buffers.pin(again);
        }
        if matches!(found, Some((_, BufferState::Ready))) {
            return (again, Retry::InMemory(waiters));
        }
        waiters.into_iter().for_each(|who| self.buffers.add_waiter(again, who));
        if found.is_none() {
            self.titles.use_began(key.title);
            self.push_read(now, again);
            // No evaluation has counted this read, so a sweep may now take longer than it was
            // charged.
            self.bookings.disks[usize::from(place.disk.0)].note_unplanned_io(now);
        }
        (again, Retry::UnderWay)
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
        // The player needs as much time for a late piece as for any other.
        let release = piece.release.max(self.bookings.slot() + HOLD_SLOTS);
        if now > deadline && release > piece.release {
            let before = *piece;
            piece.release = release;
            match stream.fed.filter(|fed| before.piece >= fed.from) {
                Some(fed) => self.hold_of_feed_until(fed.feed, before.piece, release),
                None => self.bookings.disks[disk].dispatcher.books.hold_until(before, release),
            }
        }
        self.accounts.count_piece(now, session, deadline);
        self.record_slack(now, id, due);
    }

    // A piece that a stream holds is in memory.
    fn mark_in_memory(&mut self, id: StreamId, piece: u32) {
        if self.streams[&id].make_safe(piece) {
            self.bookings.failover.piece_in_memory(&self.streams[&id], piece);
        }
    }
}

/// One disk's streams as its dispatcher sees them: what is in memory already is not read again.
pub(super) struct DiskReads<'e> {
    streams: &'e mut Streams,
    now: Moment,
    disk: usize,
}

impl ReadSource for DiskReads<'_> {
    type Stream = StreamId;
    type Read = ReadId;

    fn most_urgent(&mut self) -> Option<NextRead<StreamId>> {
        self.streams.next_to_read(self.now, self.disk)
    }

    fn room(&self) -> u64 {
        self.streams.room(self.disk)
    }

    fn start_read(&mut self, next: &NextRead<StreamId>) -> Option<ReadId> {
        self.streams.start_read(next)
    }
}

/// A read that has ended.
pub(crate) struct EndedRead {
    pub(crate) key: PieceKey,
    pub(crate) place: Location,
    /// The streams and requests that waited for it; none where it failed.
    pub(crate) waiters: Vec<Waiter>,
}

/// How a failed read goes on.
pub(crate) enum Retry {
    /// Another copy of the piece is in memory: these waiters are to be told.
    InMemory(Vec<Waiter>),
    /// The piece is being read.
    UnderWay,
}
