//! All admitted streams: what each holds in memory, and what their disks read for them next.
//!
//! ```text
//!   Engine ── sessions, requests ──▶ Streams ──▶ Bookings: disks, network, failover
//!                                       │
//!        evaluate ─▶ book               ├─▶ Buffers: pieces in memory, or being read
//!        begin_slot, dispatch ─▶ Read   ├─▶ Accounts: on time, late, violations
//!        end_read ─▶ waiters to notify  └─▶ actions, sessions to serve
//! ```
//!
//! It keeps one invariant between books and memory: a stream that is here is on all books, each of
//! its held pieces is booked as held and pins its buffer once, and each disk's queue has it by its
//! next read ([`Streams::audit`]). So streams change only through methods of this module; the
//! engine above reads them, and owns a stream only while it is off the books
//! ([`Streams::remove`]).
//!
//! Knows sessions as names only. Requests are known by the pieces that they wait for.

mod accounts;
mod alone;
mod awaited;
mod beginnings;
mod best_effort;
mod evaluate;
mod feeds;
mod given_up;
mod intervals;
mod lengthening;
mod look_ahead;
mod memory;
mod placement;
mod reading;
mod recordings;
mod resident;
mod startup;
mod sweeps;
mod titles;

use super::bookings::{Bookings, Placement};
use super::buffers::{BufferState, Buffers};
use super::stream::{Stream, StreamId};
use super::table::Table;
use super::{Action, EngineConfig, ReadId, SessionId, TitleKey};
use accounts::Accounts;
use awaited::Awaited;
use beginnings::RecentTitles;
use feeds::Feed;
use scheduler::PieceDue;
use std::collections::BTreeSet;
use std::ops::{Index, Range};
use std::time::Duration;
use titles::Titles;
use units::Moment;

pub(super) use feeds::OffBooks;
pub(super) use memory::Tries;
pub(super) use placement::{Beginning, Choice, Rejected, Rejection, least_reserve, reserve_for};
pub(super) use reading::Retry;

/// All admitted streams, with everything that they hold.
#[derive(Clone, Debug)]
pub(super) struct Streams {
    /// Between two calls each is on all books, and in the list of its session.
    streams: Table<StreamId, Stream>,
    /// Streams without players, which read for several of `streams`. Ids differ from all of theirs.
    feeds: Table<StreamId, Feed>,
    pub(super) bookings: Bookings,
    /// Pinned once for each piece that a stream holds and each delivery that a socket has not
    /// taken.
    pub(super) buffers: Buffers,
    pub(super) titles: Titles,
    /// The titles for which viewers have come lately.
    recent: RecentTitles,
    pub(super) accounts: Accounts,
    pub(super) awaited: Awaited,
    /// When a repeated read last ended that nobody needed any more.
    last_vain_repeat: Option<Moment>,
    /// Sessions whose next piece may have come into memory during this call. Empty between calls.
    pub(super) to_serve: Vec<SessionId>,
    /// When delivery may open of streams that must not open before. Some may have gone since.
    openings: BTreeSet<(Moment, StreamId)>,
    /// Followers that have ended during this call, with their feeds. Empty between calls.
    leaving: Vec<(StreamId, StreamId)>,
    /// Not taken by the owner yet.
    pub(super) actions: Vec<Action>,
    next_stream: u64,
    next_permit: u64,
    next_recording: u64,
}

impl Index<&StreamId> for Streams {
    type Output = Stream;

    fn index(&self, id: &StreamId) -> &Stream {
        self.feeds.get(id).map_or_else(|| &self.streams[id], |feed| &feed.stream)
    }
}

impl Streams {
    /// No streams, and empty books.
    pub(super) fn new(config: &EngineConfig) -> Self {
        Self {
            streams: Table::default(),
            feeds: Table::default(),
            bookings: Bookings::new(config),
            buffers: Buffers::new(config.buffers.0),
            titles: Titles::default(),
            recent: RecentTitles::default(),
            accounts: Accounts::default(),
            awaited: Awaited::default(),
            last_vain_repeat: None,
            to_serve: Vec::new(),
            openings: BTreeSet::new(),
            leaving: Vec::new(),
            actions: Vec::new(),
            next_stream: 0,
            next_permit: 0,
            next_recording: 0,
        }
    }

    /// The stream or feed with this id.
    pub(super) fn get(&self, id: StreamId) -> Option<&Stream> {
        self.streams.get(&id).or_else(|| self.feeds.get(&id).map(|feed| &feed.stream))
    }

    fn get_mut(&mut self, id: StreamId) -> &mut Stream {
        match self.feeds.get_mut(&id) {
            Some(feed) => &mut feed.stream,
            None => &mut self.streams[&id],
        }
    }

    // All that is on the books of a disk: streams and feeds.
    fn booked(&self) -> impl Iterator<Item = (&StreamId, &Stream)> {
        let feeds = self.feeds.iter().map(|(id, feed)| (id, &feed.stream));
        self.streams.iter().chain(feeds)
    }

    fn next_id(&mut self) -> StreamId {
        self.next_stream += 1;
        StreamId(self.next_stream - 1)
    }

    /// The streams of sessions.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&StreamId, &Stream)> {
        self.streams.iter()
    }
}

/// On the books and off them.
impl Streams {
    /// Puts a stream back on the books, under its own id.
    pub(super) fn insert(&mut self, id: StreamId, mut stream: Stream) {
        self.bookings.insert(id, &mut stream);
        self.streams.insert(id, stream);
        self.note_opening(id);
    }

    /// Takes a stream off all books. Its buffers stay pinned.
    pub(super) fn remove(&mut self, id: StreamId) -> Stream {
        let stream = self.streams.take(&id);
        self.bookings.remove(id, &stream);
        stream
    }

    /// A stream that is off the books has ended: counts its overdue pieces and unpins its buffers.
    pub(super) fn settle(&mut self, now: Moment, id: StreamId, stream: &Stream) {
        for (_, deadline) in stream.overdue(now) {
            self.count_unserved(now, stream, deadline);
        }
        for (read, _) in stream.held() {
            self.buffers.unpin(read);
        }
        if let Some(fed) = stream.fed {
            // Not now: a newcomer that was approved may follow this feed, and is booked later.
            self.leaving.push((fed.feed, id));
        }
    }

    /// A stream no longer needs a piece. Other streams that hold it keep it.
    pub(super) fn release_piece(&mut self, id: StreamId, piece: u32) {
        let stream = &mut self.streams[&id];
        let Some((read, due, safe)) = stream.release(piece) else { return };
        self.bookings.release(stream, due, safe);
        self.buffers.unpin(read);
        let stream = &self.streams[&id];
        if let Some(fed) = stream.fed.filter(|_| stream.is_fed(piece)) {
            self.trim_feed(fed.feed, Some(piece));
            // The read serves another follower after this one.
            let kept = self.feeds.get(&fed.feed).is_some_and(|feed| feed.stream.holds(piece));
            self.accounts.counters.shared_reads += u64::from(kept);
        }
    }

    /// The stream goes on without a piece that cannot be read.
    pub(super) fn give_up_piece(&mut self, now: Moment, id: StreamId, piece: u32) {
        if self.is_feed(id) {
            return self.feed_gives_up(id, piece);
        }
        let stream = &mut self.streams[&id];
        let (session, deadline) = (stream.session, stream.deadline(piece));
        let (_, due, safe) = stream.release(piece).expect("held");
        self.bookings.release(stream, due, safe);
        // A piece that cannot be read counts as missed, also if its deadline is still to come.
        let late = now.max(deadline + Duration::from_nanos(1));
        self.accounts.count_piece(late, session, deadline);
    }

    /// A disk that a stream's replica is on is lost: the stream is read from its own disk alone.
    pub(super) fn drop_replica(&mut self, id: StreamId) {
        let mut stream = self.remove(id);
        // Off the books while this changes: the standby books have the stream by its replica.
        stream.replica = None;
        self.insert(id, stream);
    }

    /// Reads a stream as if it began now with piece `from`, whatever was read for it before. What
    /// is being read of `from` is still for it: where reads take longer than a slot, it would be
    /// read again and again, and of damaged data nobody would hear.
    pub(super) fn restart(&mut self, now: Moment, id: StreamId, from: u32) {
        let mut stream = self.remove(id);
        // What is unread is counted when it is read, if its viewer still needs it.
        let held = |(piece, _): &(u32, Moment)| *piece < stream.cursor;
        for (piece, deadline) in stream.overdue(now).into_iter().filter(held).collect::<Vec<_>>() {
            stream.account(piece);
            self.accounts.count_piece(now, stream.session, deadline);
        }
        for read in stream.restart(now, from) {
            self.buffers.unpin(read);
        }
        // Its requests may wait for pieces that are booked only now.
        self.to_serve.push(stream.session);
        self.insert(id, stream);
        let stream = &self[&id];
        let next =
            stream.next_read().map(|piece| (stream.key(piece.piece), stream.place(piece.piece)));
        let found = next.and_then(|(key, place)| self.buffers.find(key, place));
        if let Some((read, BufferState::Reading)) = found {
            self.hold_cached_piece(now, id, read);
        }
    }

    /// Moves the rest of a stream's schedule `slots` slots later, if that fits. It always does as
    /// far as the disk is concerned; memory is held for longer. Returns whether it fits.
    pub(super) fn delay(&mut self, now: Moment, id: StreamId, slots: u32) -> bool {
        if let Some(fed) = self.streams[&id].fed {
            return self.delay_fed(now, id, fed, slots);
        }
        let mut stream = self.remove(id);
        let disk = usize::from(stream.layout.disk.0);
        let placement = Placement { disk, replica: stream.replica };
        // The demand below replaces it, and after a refusal the books need the old one.
        let before = stream.summary;
        let late = stream.overdue(now);
        stream.delay(slots);
        // The memory for its session's sockets is still reserved.
        let demand = self.bookings.demand_of([&mut stream], 0);
        let approval = self.evaluate_demand(placement, &demand);
        self.bookings.put_demand(demand);
        let fits = approval.is_ok();
        if let Ok(approval) = approval {
            self.adopt(approval);
            // What was late is not made good by that.
            for (piece, deadline) in late {
                stream.account(piece);
                self.count_unserved(now, &stream, deadline);
            }
        } else {
            stream.undo_delay(slots);
            stream.summary = before;
        }
        self.insert(id, stream);
        fits
    }
}

/// The player of a stream.
impl Streams {
    /// The player of a stream requested, received or cancelled data of it.
    pub(super) fn note_activity(&mut self, now: Moment, id: StreamId) {
        self.streams[&id].last_activity = now;
    }

    /// The player requests these bytes of a track.
    pub(super) fn note_request(&mut self, id: StreamId, bytes: &Range<u64>) {
        self.streams[&id].note_request(bytes);
    }

    /// A request ended with nothing delivered from `bytes.start` on.
    pub(super) fn note_cancelled(&mut self, id: StreamId, bytes: &Range<u64>) {
        self.streams[&id].note_cancelled(bytes.start, bytes.end);
    }

    /// A piece was handed over to the player up to byte `end` of the track, which is its end or
    /// not.
    pub(super) fn note_delivered(
        &mut self,
        now: Moment,
        id: StreamId,
        (piece, end, whole): (u32, u64, bool),
        read: ReadId,
    ) {
        let stream = &self.streams[&id];
        if whole && stream.cursor == piece && !stream.is_fed(piece) {
            // It was in memory for another viewer before its turn came. Delivered in part, it
            // must wait for its turn to be held: memory is given out strictly by deadline.
            self.hold_cached_piece(now, id, read);
        }
        let stream = &mut self.streams[&id];
        stream.last_activity = now;
        stream.delivered(piece, end, whole);
        if whole {
            // Its read may have ended in this call, with this request served before the stream.
            self.record_arrival(now, id, piece);
            self.release_piece(id, piece);
        }
    }
}

/// Titles in use, so that a removed title's space is freed once no session reads it.
impl Streams {
    /// A use of a title has ended. The last use of a withdrawn title frees its buffers.
    pub(super) fn title_use_ended(&mut self, title: TitleKey) {
        if self.titles.use_ended(title) && self.titles.is_withdrawn(title) {
            self.purge(title);
            self.actions.push(Action::TitleIdle { title });
        }
    }

    /// Admits no session to a title any more; returns whether it is still in use.
    pub(super) fn withdraw(&mut self, title: TitleKey) -> bool {
        self.titles.withdraw(title);
        let in_use = self.titles.is_in_use(title);
        if !in_use {
            self.purge(title);
        }
        in_use
    }

    fn purge(&mut self, title: TitleKey) {
        let mut forgotten = Vec::new();
        self.buffers.purge(title, &mut forgotten);
        self.actions.extend(forgotten.into_iter().map(|read| Action::Forget { read }));
    }
}

/// Counting.
impl Streams {
    /// Counts a piece that a stream does not get, or gets later than it was admitted for. Past the
    /// deadline that is a violation.
    pub(super) fn count_unserved(&mut self, now: Moment, stream: &Stream, deadline: Moment) {
        self.accounts.count_piece(now, stream.session, deadline);
        // Without a guaranteed slack there is no guarantee that this would violate.
        if now > deadline && stream.guaranteed_slack.is_some() {
            let by_disk = self.is_by_disk(now, stream, deadline);
            self.accounts.count_violation(stream.session, by_disk);
        }
    }

    // Compares a piece that came into memory with the slack that the stream was admitted with.
    fn record_slack(&mut self, now: Moment, id: StreamId, piece: PieceDue) {
        let stream = &self.streams[&id];
        let Some(guaranteed) = stream.guaranteed_slack else { return };
        // The end of the due slot, not the deadline: the disk may be late before the player is.
        let due = piece.due.next().start(self.bookings.slot_length());
        let session = stream.session;
        let by_disk = now > due && self.is_by_disk(now, stream, due);
        self.accounts.record_slack(session, guaranteed, due.since(now));
        if now > due {
            self.accounts.count_violation(session, by_disk);
        }
    }

    // Whether a disk is the cause if a read that was due at `due` ends now.
    fn is_by_disk(&self, now: Moment, stream: &Stream, due: Moment) -> bool {
        // A delay at any time since the admission may have used up the slack that this read needed.
        let admitted = self.accounts.of(stream.session).admitted;
        let disk = &self.bookings.disks[usize::from(stream.layout.disk.0)];
        let held_memory =
            || self.last_vain_repeat >= Some(admitted) || self.buffers.repeats_for_nobody();
        stream.was_due_elsewhere(due) || disk.overran_since(admitted, now) || held_memory()
    }

    // Lowers the guaranteed slack of the disk's streams to that of the plan followed from now on.
    fn lower_guaranteed_slack(&mut self, disk: usize, slack: Duration) {
        if !self.bookings.policy().guarantees() {
            return;
        }
        let of_disk = |stream: &&mut Stream| usize::from(stream.layout.disk.0) == disk;
        for stream in self.streams.values_mut().filter(of_disk) {
            stream.guaranteed_slack =
                Some(stream.guaranteed_slack.map_or(slack, |before| before.min(slack)));
        }
    }
}

/// Checks.
impl Streams {
    /// Compares books and pins with the streams, the sessions' reserves, and what sockets hold;
    /// says what differs. Slow.
    pub(super) fn audit(
        &mut self,
        reserves: impl Iterator<Item = (Placement, u64)> + Clone,
        detached: impl Iterator<Item = (usize, u64)> + Clone,
        unsent: usize,
    ) -> Result<(), String> {
        let feeds = self.feeds.iter().map(|(id, feed)| (*id, &feed.stream));
        let streams = self.streams.iter().map(|(id, stream)| (*id, stream)).chain(feeds);
        self.bookings.audit(streams, reserves, detached)?;
        self.audit_feeds()?;
        let holds: usize = self.booked().map(|(_, stream)| stream.held().count()).sum();
        let pins = self.buffers.pins();
        if pins != holds + unsent {
            return Err(format!("{pins} pins for {holds} held and {unsent} unsent pieces"));
        }
        // An evaluation that took a read for unread in another slot would leave a plan with too
        // little in one window and too much in the next.
        for chosen in (0..self.bookings.disks.len()).flat_map(|disk| self.droppable(disk)) {
            let mut held = self[&chosen.stream].held();
            if !held.any(|(read, piece)| (read, piece) == (chosen.read, chosen.piece)) {
                return Err(format!("{chosen:?} is not booked in this slot"));
            }
        }
        if self.buffers.total() != self.bookings.memory() {
            return Err(format!("{} bytes of buffers are not shared out", self.buffers.total()));
        }
        if self.buffers.used() > self.buffers.total() {
            return Err(format!("{} bytes of buffers in use", self.buffers.used()));
        }
        Ok(())
    }

    /// Bytes of buffers that are in use or in the device. Memory that is set apart for a read is
    /// taken when the device is given the read.
    pub(super) fn buffers_used(&self) -> u64 {
        let unissued = self.bookings.disks.iter().map(|disk| disk.dispatcher.unissued_bytes());
        self.buffers.used() - unissued.sum::<u64>()
    }

    /// Whether a buffer that a stream holds is still being read.
    pub(super) fn is_reading(&self, read: ReadId) -> bool {
        self.buffers.get(read).expect("held").state == BufferState::Reading
    }
}
