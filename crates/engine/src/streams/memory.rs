//! Memory that streams hold: read-ahead that is dropped for others, shares that move between disks,
//! memory that shrinks and grows, and streams that move to another copy.
//!
//! ```text
//!   drop_readahead ── buffers become cache, reads are booked again ──▶ memory for a newcomer
//!   restore_readahead ── the newcomer does not fit after all
//!
//!   lost disk's share ─▶ equal parts for the other disks ─▶ a disk whose streams hold more than
//!   its share gets the difference from the others' parts (balance_memory)
//!   the disk is back ─▶ disks with more than their share return what they can spare, once a slot
//!   (rebalance_memory)
//!
//!   memory shrinks ─▶ disks give back what their streams are on time without, once a slot
//!   (give_back_memory)
//! ```

use super::Streams;
use super::evaluate::KEEP_SLOTS;
use super::feeds::Feed;
use crate::bookings::Placement;
use crate::bookings::evaluate::Approval;
use crate::buffers::BufferState;
use crate::stream::{Stream, StreamId};
use crate::{Layout, ReadId, Resource};
use scheduler::PlayoutClock;
use std::collections::BTreeSet;
use std::sync::Arc;
use units::{Moment, SlotIndex};

/// Read-ahead that was dropped: of which streams, and how many pieces of each.
pub(super) type Dropped = Vec<(StreamId, u32)>;

/// Read-ahead.
impl Streams {
    /// Drops reads of `disk` that need not be in memory before the end of slot `keep`: the buffers
    /// become cache (those still being read become cache when the read ends, which is before the
    /// next slot), and the reads are booked again.
    pub(super) fn drop_readahead(&mut self, disk: usize, keep: SlotIndex) -> Dropped {
        let now = self.bookings.now();
        let (mut dropped, mut on_time) = (Vec::new(), Vec::new());
        for (id, stream) in self.streams.iter_mut() {
            if usize::from(stream.layout.disk.0) != disk {
                continue;
            }
            // The queue has the stream by its next read, which changes below.
            let next = stream.next_read();
            let mut count = 0;
            while let Some((read, piece)) = stream.last_held() {
                // A read that is repeated from another copy would not be found again there, and one
                // that is still to be repeated keeps its memory.
                let again = self.buffers.get(read).is_some_and(|buffer| {
                    buffer.state == BufferState::Reading && buffer.key.disk != stream.layout.disk
                }) || self.bookings.disks[disk].doubtful.contains(&read);
                // What a feed keeps for it is dropped with the feed's, below.
                if piece.due <= keep || again || stream.is_fed(piece.piece) {
                    break;
                }
                let books = &mut self.bookings.disks[disk].dispatcher.books;
                if stream.was_read_elsewhere(piece.piece) {
                    books.planned_again(piece);
                }
                books.undo_read(piece);
                let back = stream.unread_last(now).expect("held");
                // A piece that came late was held for longer, which moved with a later schedule.
                let unread = stream.next_read().expect("unread just now");
                books.hold_until(piece, unread.release);
                self.bookings.failover.unread(stream, piece.piece, back.safe);
                on_time.extend(back.on_time.then_some(stream.session));
                self.buffers.unpin(read);
                count += 1;
            }
            if count > 0 {
                let dispatcher = &mut self.bookings.disks[disk].dispatcher;
                dispatcher.dequeue(*id, next);
                dispatcher.enqueue(*id, stream.next_read());
                dropped.push((*id, count));
            }
        }
        for session in on_time {
            self.accounts.uncount_piece(session, true);
        }
        let of_disk = |feed: &Feed| usize::from(feed.stream.layout.disk.0) == disk;
        let feeds = self.feeds.iter().filter(|(_, feed)| of_disk(feed));
        let feeds: Vec<StreamId> = feeds.map(|(id, _)| *id).collect();
        for id in feeds {
            let next = self[&id].next_read();
            let mut count = 0;
            while self.drop_last_of_feed(id, keep) {
                count += 1;
            }
            if count > 0 {
                let after = self[&id].next_read();
                let dispatcher = &mut self.bookings.disks[disk].dispatcher;
                dispatcher.dequeue(id, next);
                dispatcher.enqueue(id, after);
                dropped.push((id, count));
            }
        }
        dropped
    }

    /// Holds again what [`Streams::drop_readahead`] dropped; nothing was forgotten in between.
    pub(super) fn restore_readahead(&mut self, now: Moment, dropped: &[(StreamId, u32)]) {
        for (id, count) in dropped {
            for _ in 0..*count {
                let stream = &self[id];
                let piece = stream.next_read().expect("given back");
                let place = stream.place(piece.piece);
                let found = self.buffers.find(stream.key(piece.piece), place);
                let (read, _) = found.expect("nothing is forgotten while deciding");
                self.hold_without_read(now, *id, read);
            }
        }
    }
}

/// Shares of the disks.
impl Streams {
    /// After a loss: sessions that moved took along the buffers that they hold, so a disk may hold
    /// more than its share. It gets the difference from the `parts` of the lost disk's memory that
    /// other disks were given, which is enough, since all of it was memory of the lost disk. Each
    /// disk that gave is decided on again, without a newcomer, for a plan that needs no more than
    /// is left.
    pub(crate) fn balance_memory(&mut self, now: Moment, mut parts: Vec<u64>) {
        let mut gave = BTreeSet::new();
        let disks = self.bookings.disks.len();
        for disk in 0..disks {
            loop {
                let lacks = self.bookings.disks[disk].lacks();
                // Only memory that is free can be given.
                let can = |other: &usize| parts[*other].min(self.bookings.disks[*other].room());
                let others = (0..disks).filter(|other| *other != disk);
                let Some(other) = others.max_by_key(can) else { break };
                let given = can(&other).min(lacks);
                // Nothing is lacking any more, or no other disk has free memory of the lost one's.
                if given == 0 {
                    break;
                }
                parts[other] -= given;
                self.bookings.move_memory(other, disk, given);
                gave.insert(other);
            }
        }
        for disk in gave {
            let demand = self.bookings.empty_demand();
            let fits = self.evaluate_home(disk, &demand).ok();
            let fits = fits.or_else(|| {
                let fits = |streams: &mut Self| streams.evaluate_home(disk, &demand).ok();
                self.drop_readahead_until(now, disk, fits)
            });
            self.bookings.put_demand(demand);
            fits.into_iter().for_each(|approval| self.adopt(approval));
        }
    }

    /// Disks with more than their share of the memory give to those with less what they can spare.
    /// The share of a lost disk is divided among the others.
    pub(crate) fn rebalance_memory(&mut self) {
        let disks = self.bookings.disks.len();
        let share: Vec<u64> = (0..disks).map(|disk| self.bookings.share_of_memory(disk)).collect();
        for poor in 0..disks {
            for rich in 0..disks {
                let wanted = share[poor].saturating_sub(self.bookings.disks[poor].all_memory());
                if wanted == 0 {
                    break;
                }
                let has = self.bookings.disks[rich].all_memory();
                let most = wanted.min(has.saturating_sub(share[rich]));
                // A disk that cannot give all may give a part; each attempt is an evaluation, so
                // they are few.
                let parts = [most, most / 4, most / 16];
                let given =
                    parts.into_iter().find(|part| *part > 0 && self.take_memory_from(rich, *part));
                self.bookings.disks[poor].memory += given.unwrap_or(0);
            }
        }
    }

    // Takes so much memory from a disk, if all its streams are on time with the rest.
    fn take_memory_from(&mut self, disk: usize, bytes: u64) -> bool {
        if self.bookings.disks[disk].lost {
            // Nothing is read into its memory any more, but sockets may hold some of it.
            let state = &mut self.bookings.disks[disk];
            let has = state.room() >= bytes;
            state.memory -= if has { bytes } else { 0 };
            return has;
        }
        let approval = self.fits_with_less(disk, bytes);
        let fits = approval.is_some();
        approval.into_iter().for_each(|approval| self.adopt(approval));
        fits
    }

    /// Takes so much memory from a disk that is there, if all its streams are on time with the rest
    /// by the plan that is returned.
    pub(super) fn fits_with_less(&mut self, disk: usize, bytes: u64) -> Option<Approval> {
        let state = &mut self.bookings.disks[disk];
        if state.room() < bytes {
            return None;
        }
        // Before the evaluation, which must count with the rest only.
        state.memory -= bytes;
        let demand = self.bookings.empty_demand();
        let placement = Placement { disk, replica: None };
        let approval =
            self.evaluate_beside_beginnings(placement, &demand, self.bookings.terms()).ok();
        self.bookings.put_demand(demand);
        if approval.is_none() {
            self.bookings.disks[disk].memory += bytes;
        }
        approval
    }
}

/// Memory that is to shrink or grow.
///
/// ```text
///   set_memory ── more ─▶ the disks have it at once
///              └─ less ─▶ newcomers are evaluated with what is to be left; what all streams are on
///                         time without is given back at once, and each time a slot begins
/// ```
///
/// Admitted reservations are kept, whatever they need: memory is given back by the evaluation that
/// decides on newcomers, with less memory instead of more streams. Idle buffers go first, then
/// read-ahead, then what ends with the streams that have it.
impl Streams {
    /// All memory for buffers is to be `bytes` from now on.
    pub(crate) fn set_memory(&mut self, now: Moment, bytes: u64) {
        self.bookings.set_memory_limit(bytes);
        self.buffers.set_total(self.bookings.memory());
        self.give_back_memory(now);
    }

    /// The disks give back what they have beyond the limit, as far as their streams are on time
    /// without.
    pub(crate) fn give_back_memory(&mut self, now: Moment) {
        for disk in 0..self.bookings.disks.len() {
            let owed = self.bookings.owed_by(disk);
            if owed > 0 {
                self.give_back_beginnings(disk);
            }
            // Each attempt is an evaluation, so they are few.
            for part in [owed, owed / 4, owed / 16] {
                if part > 0 && self.give_back(now, disk, part) {
                    break;
                }
            }
        }
    }

    fn give_back(&mut self, now: Moment, disk: usize, bytes: u64) -> bool {
        if !self.survives_with_less(disk, bytes) {
            return false;
        }
        let mut given = self.is_free(bytes) && self.take_memory_from(disk, bytes);
        if !given && !self.bookings.disks[disk].lost {
            let fits = |streams: &mut Self| {
                if streams.is_free(bytes) { streams.fits_with_less(disk, bytes) } else { None }
            };
            let approval = self.drop_readahead_until(now, disk, fits);
            given = approval.is_some();
            approval.into_iter().for_each(|approval| self.adopt(approval));
        }
        if given {
            self.buffers.set_total(self.bookings.memory());
            self.make_room(0);
        }
        given
    }

    // Whether buffers of so much can be taken back now: reads that nobody needs any more have
    // theirs until they end.
    fn is_free(&self, bytes: u64) -> bool {
        self.buffers.room() >= bytes
    }

    // Whether the others still survive the loss of a disk, of whose memory they would then get
    // less. Without that rule: yes.
    fn survives_with_less(&mut self, disk: usize, bytes: u64) -> bool {
        if !self.bookings.survives_loss() || self.bookings.disks[disk].lost {
            return true;
        }
        self.bookings.disks[disk].memory -= bytes;
        let demand = self.bookings.empty_demand();
        let others = (0..self.bookings.disks.len())
            .filter(|other| *other != disk && !self.bookings.disks[*other].lost);
        let others: Vec<usize> = others.collect();
        let survive = others.into_iter().all(|other| {
            let placement = Placement { disk: other, replica: None };
            self.evaluate_disks(placement, &demand, self.bookings.terms()).is_ok()
        });
        self.bookings.put_demand(demand);
        self.bookings.disks[disk].memory += bytes;
        survive
    }
}

/// Streams that are off the books, and are to be read from another copy.
impl Streams {
    /// Moves streams that are off the books to a copy, at their deadlines or somewhat later, if
    /// they fit there; returns by how many slots later, and the approval, unless they read nothing
    /// more. Otherwise they are as they were. The network carries what it did, whichever disk that
    /// comes from.
    pub(crate) fn fit_on_copy(
        &mut self,
        now: Moment,
        layout: &Arc<Layout>,
        reserve: u64,
        tries: Tries,
        streams: &mut [(StreamId, Stream)],
    ) -> Option<(u32, Option<Approval>)> {
        let disk = usize::from(layout.disk.0);
        layout.tracks.iter().for_each(|track| self.bookings.time_track(disk, track));
        let before: Vec<(Arc<Layout>, PlayoutClock, Option<usize>)> = streams
            .iter()
            .map(|(_, stream)| (Arc::clone(&stream.layout), stream.timing, stream.replica))
            .collect();
        for (_, stream) in streams.iter_mut() {
            // After a loss no second one is survived, so there is no replica and no reason to read
            // early.
            stream.move_to(Arc::clone(layout));
            stream.set_early(0);
            stream.replica = None;
        }
        let mut slots = 0;
        for (step, keep) in tries.list() {
            for (_, stream) in streams.iter_mut() {
                if let Some(keep) = keep {
                    self.unread_ahead(now, stream, self.bookings.slot() + keep);
                }
                stream.delay(step);
            }
            slots += step;
            // A loss gives this disk the memory that they hold, and what its own sessions read is
            // booked already, however full that is.
            let reads_on = |(_, stream): &(StreamId, Stream)| stream.next_read().is_some();
            if tries == Tries::All && !streams.iter().any(reads_on) {
                return Some((slots, None));
            }
            if let Some(approval) = self.fit_as_they_are(now, disk, reserve, streams) {
                return Some((slots, Some(approval)));
            }
        }
        for ((_, stream), (layout, timing, replica)) in streams.iter_mut().zip(before) {
            // Read-ahead that was dropped stays dropped: its data is in the cache.
            stream.undo_delay(slots);
            stream.move_to(layout);
            stream.replica = replica;
            stream.set_early(timing.early);
        }
        None
    }

    // Whether streams that are off the books fit on a disk, if other streams drop read-ahead where
    // memory is short.
    fn fit_as_they_are(
        &mut self,
        now: Moment,
        disk: usize,
        reserve: u64,
        streams: &mut [(StreamId, Stream)],
    ) -> Option<Approval> {
        let demand = self.bookings.demand_of(streams.iter_mut().map(|(_, stream)| stream), reserve);
        let fits = match self.evaluate_home(disk, &demand) {
            Err(short) if short.shortage.resource == Resource::Memory => {
                let fits = |streams: &mut Self| streams.evaluate_home(disk, &demand).ok();
                self.drop_readahead_until(now, disk, fits)
            }
            answer => answer.ok(),
        };
        self.bookings.put_demand(demand);
        fits
    }

    /// Puts streams that fit on a copy ([`Streams::fit_on_copy`]) on its disk's books. `late` are
    /// the pieces of each that are overdue, if the streams have moved to a later schedule.
    pub(crate) fn move_to_copy(
        &mut self,
        now: Moment,
        streams: Vec<(StreamId, Stream)>,
        late: Option<Vec<Vec<(u32, Moment)>>>,
    ) {
        let mut late = late.into_iter().flatten();
        for (id, mut stream) in streams {
            stream.has_moved(now);
            for (piece, deadline) in late.next().unwrap_or_default() {
                // With the later schedule they would count as on time when they arrive.
                stream.account(piece);
                self.count_unserved(now, &stream, deadline);
            }
            // The slack was one of the lost disk's plan.
            stream.guaranteed_slack = None;
            self.insert(id, stream);
        }
    }

    /// A stream that is off the books holds nothing from the first piece on that is still being
    /// read from its disk. Pieces of it that are in memory are found there when their turn comes.
    pub(crate) fn unread_missing(&mut self, now: Moment, stream: &mut Stream) {
        let (buffers, disk) = (&self.buffers, stream.layout.disk);
        let is_reading = |read: ReadId| {
            buffers.get(read).is_some_and(|buffer| {
                // What is being repeated from another copy comes from there in time.
                buffer.state == BufferState::Reading && buffer.place.disk == disk
            })
        };
        // These pieces are counted again when they come, so their present counts are taken back.
        for back in stream.unread_from(now, is_reading) {
            self.accounts.uncount_piece(stream.session, back.on_time);
            self.buffers.unpin(back.read);
        }
    }

    // A stream that is off the books holds nothing that need not be in memory before the end of
    // slot `keep`: its new disk has less memory for it than the old one had.
    fn unread_ahead(&mut self, now: Moment, stream: &mut Stream, keep: SlotIndex) {
        while stream.last_held().is_some_and(|(_, piece)| piece.due > keep) {
            let back = stream.unread_last(now).expect("held");
            self.accounts.uncount_piece(stream.session, back.on_time);
            self.buffers.unpin(back.read);
        }
    }
}

/// What is tried for a session that moves to another copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tries {
    /// The session's disk is lost: whatever lets it go on.
    All,
    /// The session's disk is still there: it moves without a change to its schedule.
    AtItsDeadlines,
}

impl Tries {
    fn list(self) -> impl Iterator<Item = (u32, Option<u64>)> {
        let most = if self == Self::All { TRIES.len() } else { 1 };
        TRIES.into_iter().take(most)
    }
}

/// What is tried for a session that moves, one after the other: slots later than before, and the
/// slots of its own read-ahead that it keeps. In all 15 s of 500 ms slots, less than what players
/// hold in their buffers.
const TRIES: [(u32, Option<u64>); 9] = [
    (0, None),
    (0, Some(KEEP_SLOTS)),
    (0, Some(1)),
    (1, None),
    (1, None),
    (2, None),
    (4, None),
    (8, None),
    (14, None),
];
