//! Sharing that admission knows: viewers of one title, close behind each other, cost the disk one
//! stream, and memory the interval between them, once.
//!
//! ```text
//!   pieces      │ 0 1 2 3 4 5 6 7 8 9 ...
//!   viewer A    │               ▲ A is here             one feed: reads once, by the clock of the
//!   viewer B    │       ▲───────┤ interval in memory    first viewer (A); keeps each piece by the
//!   viewer C    │   ▲───┤                               clock of the last (C)
//!   newcomer D  │ ▲─┤ patch: what the feed no longer holds, D reads itself
//! ```
//!
//! The method is interval caching (A. Dan, D. Sitaram, *A Generalized Interval Caching Policy for
//! Mixed Interactive and Long Video Workloads*, MMCN 1996), with patching (K. A. Hua, Y. Cai,
//! S. Sheu, *Patching: A Multicast Technique for True Video-on-Demand Services*, ACM Multimedia
//! 1998) for what a newcomer has missed. New here is that both are booked: a deadline of a follower
//! is guaranteed as any other.
//!
//! # What is booked
//!
//! A *feed* is a stream without a player. On the books of its disk it is one stream: its reads are
//! due by the clock of the viewer who was the first (`timing`), its buffers are released by a clock
//! (`keeps`) that is at no time before any follower's. Followers have, from their piece `from` on,
//! nothing on the books of the disk; what comes before is their own, booked as any stream's.
//!
//! # Why no follower is late
//!
//! 1. *Due.* A newcomer follows only if its clock is at no media time before the feed's
//!    ([`PlayoutClock::is_not_before`](scheduler::PlayoutClock::is_not_before)). So each piece is
//!    due for the feed no later than for the newcomer, and the plan that makes no read of the feed
//!    late makes none of the follower's late.
//! 2. *Kept.* The release of a piece is the latest of all followers'
//!    ([`kept_as_long_as_both`](scheduler::PlayoutClock::kept_as_long_as_both) is exact but for a
//!    millisecond). Admission evaluates the feed with that release before it is booked, so there is
//!    memory for the interval. The first piece that a newcomer takes from the feed is one that the
//!    feed holds, and from which on it holds all that it has read; the feed keeps a piece until its
//!    release or until no follower needs it. So it is in memory when the follower comes to it.
//!    A feed that is behind, because its disk was slower than its model, is followed by nobody.
//! 3. *The one ahead seeks, pauses, leaves or is ended.* Nothing of the feed changes but what 4
//!    says: its reads, their slots and its memory are booked, and the plan stays as it was proven.
//!    The next follower is read for earlier than it needs. Nothing is evaluated, so nothing can be
//!    refused. When one follower is left, it takes the feed over as it is and is a stream like any
//!    other, with its deadlines by its own clock and its reads by the feed's.
//! 4. *A follower that is late* gets a later schedule only if the feed fits with the later releases
//!    (`delay`). Its due slots never move, and its releases never move earlier while the follower
//!    that needs them is there.
//!    When a follower leaves, the feed keeps its pieces as long as the others need them
//!    (`keep_as_followers_need`), and reads no piece that all of them have skipped
//!    (`skip_what_nobody_needs`). Its other reads stay where they are, and each piece is let go no
//!    later than before: the disk has no more to do, and at no time more memory is in use, than the
//!    plan counts with.
//! 5. *Buffers.* A piece that a follower holds is held by the feed, so memory in use is what the
//!    books say, and what sockets hold beyond that is reserved per session as for all. One piece
//!    for each socket is needed: sockets that stop one after another, while the others play on,
//!    hold pieces of different places, which the feed has let go since.
//! 6. *All have gone.* A feed whose followers are all revocable is off the books while a newcomer
//!    is decided on, if it does not fit otherwise. It ends with them, or is back as it was.
//! 7. *Longer than a follower.* Of a title that is still being recorded viewers know different
//!    ends. A feed reads to the latest of them ([`Streams::lengthened_leader`]): what is new of it
//!    is evaluated with the viewer that is the first to know of it, and due by the clock of the
//!    feed, if that leaves time. For the others it is kept as if they knew of it, so that they go
//!    on following when they do.
//! 8. *Given up.* Where memory is short, the last follower of a feed may get a stream of its own:
//!    see `given_up`.
//!
//! Policies that look at each slot alone do not share: they count what was booked for a slot, read
//! or not, and a feed is off their books while a newcomer that follows it is decided on.
//!
//! Streams that must survive the loss of a disk, and titles with other copies, do not share: their
//! reads would have to move to another disk together, which no evaluation covers.

use super::Streams;
use crate::bookings::Placement;
use crate::bookings::evaluate::{Approval, Candidate, Shortfall};
use crate::buffers::Waiter;
use crate::stream::{Fed, Stream, StreamId};
use crate::{Layout, ReadId, SessionId, TrackLayout};
use scheduler::{PolicyKind, SEND_WINDOW};
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;
use units::{Moment, SlotIndex};

/// A stream that reads for others, and those for which it reads.
#[derive(Clone, Debug)]
pub(crate) struct Feed {
    pub(super) stream: Stream,
    /// The feed's followers. One that is off the books during a decision is in the list.
    pub(super) followers: Vec<StreamId>,
}

/// Newcomers that follow.
impl Streams {
    /// The candidate as it is if its streams follow others, where they can: of each track the
    /// viewer ahead that is nearest. `None`: none can.
    pub(super) fn following(&mut self, candidate: &Candidate) -> Option<Candidate> {
        // Reads that may have to move to another disk are not shared.
        let alone = candidate.copies.len() == 1 && candidate.replica.is_none();
        if !alone || self.bookings.survives_loss() || !looks_ahead(self.bookings.policy()) {
            return None;
        }
        let leaders: Vec<Option<StreamId>> =
            candidate.streams.iter().map(|stream| self.nearest_ahead(stream)).collect();
        if leaders.iter().all(Option::is_none) {
            return None;
        }
        let mut streams = candidate.streams.clone();
        for (stream, leader) in streams.iter_mut().zip(&leaders) {
            let Some(leader) = leader else { continue };
            stream.gather_lead(false);
            let from = self[leader].holds_all_from().max(stream.cursor);
            stream.fed = Some(Fed { feed: *leader, from });
        }
        let mut sent = self.bookings.empty_demand();
        for stream in &streams {
            sent.add_track(stream.unread());
        }
        let reserve = streams.iter().map(send_window).sum();
        let demand = self.bookings.demand_of(&mut streams, reserve);
        let (layout, copies) = (Arc::clone(&candidate.layout), Arc::clone(&candidate.copies));
        let (replica, sent, is_new) = (None, Some(sent), candidate.is_new);
        let gives_up = None;
        Some(Candidate { layout, replica, copies, streams, demand, sent, is_new, gives_up })
    }

    // The stream or feed that reads a track for a viewer ahead of this one, with the least interval
    // between them.
    fn nearest_ahead(&self, stream: &Stream) -> Option<StreamId> {
        let leads = |(_, other): &(&StreamId, &Stream)| {
            // The cheapest first, which rules out nearly all: this is asked of every stream.
            other.layout.title == stream.layout.title
                && other.track == stream.track
                && other.session != stream.session
                && other.fed.is_none()
                && other.replica.is_none()
                && is_same_track(other, stream)
                && stream.timing.is_not_before(&other.timing)
                // It has something unread, or still holds the end.
                && other.holds_all_from() < stream.end
                && can_read_to_end_of(other, stream, stream.deadline(stream.cursor))
                && !self.is_behind(other)
        };
        let interval = |(_, other): &(&StreamId, &Stream)| {
            stream.timing.keeps_longer_by(&other.release_clock())
        };
        self.booked().filter(leads).min_by_key(interval).map(|(id, _)| *id)
    }

    // Whether a stream waits for a read that was due before the present slot. No evaluation looks
    // at when such a read is made, and a follower may need it in time.
    pub(super) fn is_behind(&self, stream: &Stream) -> bool {
        let slot = self.bookings.slot();
        let mut late = stream.held().filter(|(_, piece)| piece.due < slot);
        stream.next_read().is_some_and(|piece| piece.due < slot)
            || late.any(|(read, _)| self.is_reading(read))
    }

    /// Whether a candidate fits that follows, or that another follower gives up its interval for:
    /// with the streams ahead of it kept for as long as it needs them, and that one's feed without
    /// it.
    pub(super) fn evaluate_with_feeds(
        &mut self,
        candidate: &Candidate,
    ) -> Result<Approval, Shortfall> {
        self.bookings.check_network(candidate.sent.as_ref().unwrap_or(&candidate.demand))?;
        // With all that changes off the books, and what it becomes in the demand.
        let mut demand = candidate.demand.clone();
        let mut off = Vec::new();
        if let Some(follower) = candidate.gives_up {
            let (feed, own) = self.without_interval(follower);
            for stream in [&feed, &own] {
                demand.add_track(stream.booked_unread());
                stream.booked_held().for_each(|piece| demand.add_held(piece));
            }
            let fed = self[&follower].fed.expect("it follows");
            off.extend([self.take_off(fed.feed), self.take_off(follower)]);
        }
        for follower in &candidate.streams {
            let Some(Fed { feed, .. }) = follower.fed else { continue };
            let mut changed = self[&feed].lengthened_for(follower);
            changed.keep_as_long_as(follower);
            demand.add_track(changed.booked_unread());
            changed.booked_held().for_each(|piece| demand.add_held(piece));
            off.push(self.take_off(feed));
        }
        let terms = self.terms_for(candidate);
        let approval = self.evaluate_disks(candidate.placement(), &demand, terms);
        off.into_iter().for_each(|off| self.put_on(off));
        approval
    }

    /// Books a new stream that follows another, which becomes a feed if it is none yet.
    pub(super) fn follow(&mut self, now: Moment, id: StreamId, mut stream: Stream) {
        let Some(fed) = &mut stream.fed else { return self.insert(id, stream) };
        if !self.feeds.contains_key(&fed.feed) {
            fed.feed = self.make_feed(now, fed.feed);
        }
        let feed = fed.feed;
        self.keep_feed_as_long_as(feed, &stream);
        self.feeds[&feed].followers.push(id);
        self.accounts.counters.admitted_following += 1;
        self.insert(id, stream);
        self.feed_all(now, feed);
    }

    fn keep_feed_as_long_as(&mut self, feed: StreamId, follower: &Stream) {
        let off = self.take_off(feed);
        let OffBooks::Feed(id, mut changed) = off else { unreachable!("it is a feed") };
        changed.stream = changed.stream.lengthened_for(follower);
        changed.stream.keep_as_long_as(follower);
        self.put_on(OffBooks::Feed(id, changed));
    }

    // Makes a feed of what a stream reads, with the stream as its first follower.
    fn make_feed(&mut self, now: Moment, leader: StreamId) -> StreamId {
        let id = self.next_id();
        let mut follower = self.remove(leader);
        let before = follower.clone();
        // A follower holds what is in memory. It takes the rest again when that has come.
        self.unread_missing(now, &mut follower);
        let mut stream = follower.become_follower(id, before);
        for (read, _) in stream.held() {
            self.buffers.pin(read);
            if self.is_reading(read) {
                self.buffers.add_waiter(read, Waiter::Stream(id));
            }
        }
        let disk = &mut self.bookings.disks[usize::from(stream.layout.disk.0)];
        disk.dispatcher.rename_chosen(leader, id);
        self.bookings.insert(id, &mut stream);
        self.feeds.insert(id, Feed { stream, followers: vec![leader] });
        self.insert(leader, follower);
        id
    }
}

/// Pieces on their way to followers.
impl Streams {
    /// Whether `id` is a feed.
    pub(super) fn is_feed(&self, id: StreamId) -> bool {
        self.feeds.contains_key(&id)
    }

    /// Each follower of a feed takes what has come into memory.
    pub(super) fn feed_all(&mut self, now: Moment, feed: StreamId) {
        let Some(followers) = self.feeds.get(&feed).map(|feed| feed.followers.clone()) else {
            return;
        };
        followers.into_iter().for_each(|id| self.take_fed(now, id));
    }

    /// A follower takes the next pieces of its feed, as far as they are in memory.
    pub(super) fn take_fed(&mut self, now: Moment, id: StreamId) {
        // A follower may be off the books during a decision on it.
        while let Some(stream) = self.streams.get(&id)
            && let Some(Fed { feed, from }) = stream.fed
        {
            let (piece, feed) = (stream.cursor, &self.feeds[&feed].stream);
            // The feed may know more of a title that grows.
            if piece >= stream.end {
                return;
            }
            // The patch comes first, in memory as well: only the last pieces of a stream can become
            // unread.
            let patching = stream.last_held().is_some_and(|(read, _)| self.is_reading(read));
            if piece < from || patching || piece >= feed.cursor {
                return;
            }
            match feed.read_of(piece) {
                Some(read) if self.is_reading(read) => return,
                Some(read) => {
                    let due = stream.due(piece);
                    let session = stream.session;
                    self.streams[&id].hold_next(due, read);
                    self.buffers.pin(read);
                    self.buffers.used_again(read);
                    self.record_arrival(now, id, piece);
                    self.to_serve.push(session);
                }
                // It could not be read.
                None => {
                    let session = stream.session;
                    self.bookings.release(stream, stream.due(piece), false);
                    let missed = self.streams[&id].skip_next();
                    self.count_missing(now, session, missed);
                    self.to_serve.push(session);
                }
            }
        }
    }

    // Pieces that a follower cannot have count as late, whenever they are due.
    fn count_missing(
        &mut self,
        now: Moment,
        session: SessionId,
        deadlines: impl IntoIterator<Item = Moment>,
    ) {
        for deadline in deadlines {
            let late = now.max(deadline + Duration::from_nanos(1));
            self.accounts.count_piece(late, session, deadline);
        }
    }

    /// A follower has released a piece, or has left: the feed releases what nobody needs any more.
    pub(super) fn trim_feed(&mut self, feed: StreamId, piece: Option<u32>) {
        let Some(Feed { stream, followers }) = self.feeds.get(&feed) else { return };
        // One that is off the books may come back.
        let needs = |piece: u32| {
            let of = |id: &StreamId| self.streams.get(id).is_none_or(|stream| stream.needs(piece));
            followers.iter().any(of)
        };
        let held = stream.held().map(|(_, held)| held.piece);
        let wanted = |held: &u32| piece.is_none_or(|piece| piece == *held);
        let spare: Vec<u32> = held.filter(wanted).filter(|held| !needs(*held)).collect();
        spare.into_iter().for_each(|piece| self.release_of_feed(feed, piece));
    }

    fn release_of_feed(&mut self, feed: StreamId, piece: u32) {
        let stream = &mut self.feeds[&feed].stream;
        let Some((read, due, safe)) = stream.release(piece) else { return };
        self.bookings.release(stream, due, safe);
        self.buffers.unpin(read);
    }

    /// The feed goes on without a piece that cannot be read.
    pub(super) fn feed_gives_up(&mut self, feed: StreamId, piece: u32) {
        let stream = &mut self.feeds[&feed].stream;
        let (_, due, safe) = stream.release(piece).expect("held");
        self.bookings.release(stream, due, safe);
    }

    /// The followers of a feed that has given up pieces, or a follower that has given up some of
    /// its patch, take what comes after them.
    pub(crate) fn feed_on(&mut self, now: Moment, id: StreamId) {
        match self.is_feed(id) {
            true => self.feed_all(now, id),
            false => self.take_fed(now, id),
        }
    }

    /// Feeds release the buffers whose time was up at the end of slot `over`. A feed of one
    /// follower ends.
    pub(crate) fn expire_feeds(&mut self, now: Moment, over: SlotIndex) {
        let feeds: Vec<StreamId> = self.feeds.keys().copied().collect();
        for feed in feeds {
            let is_up = |(read, piece): &(ReadId, scheduler::PieceDue)| {
                piece.release <= over && !self.is_reading(*read)
            };
            let expired: Vec<u32> =
                self.feeds[&feed].stream.held().filter(is_up).map(|(_, held)| held.piece).collect();
            if !expired.is_empty() {
                expired.into_iter().for_each(|piece| self.release_of_feed(feed, piece));
                self.feed_all(now, feed);
            }
            self.dissolve_if_alone(now, feed);
        }
    }

    /// A follower came to hold a piece late, and holds it to the end of `slot`; so does its feed.
    pub(super) fn hold_of_feed_until(&mut self, feed: StreamId, piece: u32, slot: SlotIndex) {
        let stream = &mut self.feeds[&feed].stream;
        let disk = usize::from(stream.layout.disk.0);
        if let Some(before) = stream.hold_until(piece, slot) {
            self.bookings.disks[disk].dispatcher.books.hold_until(before, slot);
        }
    }
}

/// Followers that leave, or are late.
impl Streams {
    /// Feeds go on without the followers that have ended, or end with the last.
    pub(crate) fn leave_feeds(&mut self, now: Moment) {
        let mut left = BTreeSet::new();
        for (feed, id) in std::mem::take(&mut self.leaving) {
            // It may have ended before its followers: see `end_feeds`.
            if let Some(state) = self.feeds.get_mut(&feed) {
                state.followers.retain(|other| *other != id);
                left.insert(feed);
            }
        }
        left.into_iter().for_each(|feed| self.leave_feed(now, feed));
    }

    // Some of the followers of a feed have left.
    pub(super) fn leave_feed(&mut self, now: Moment, feed: StreamId) {
        if self.feeds[&feed].followers.is_empty() {
            let off = self.take_off(feed);
            return self.end_feeds(vec![off]);
        }
        self.keep_as_followers_need(feed);
        self.trim_feed(feed, None);
        self.skip_what_nobody_needs(feed);
        self.dissolve_if_alone(now, feed);
    }

    // A feed goes on with the first piece that one of its present followers needs. Those who have
    // left may have needed earlier ones.
    fn skip_what_nobody_needs(&mut self, feed: StreamId) {
        let Feed { stream, followers } = &self.feeds[&feed];
        let here: Vec<&Stream> = followers.iter().filter_map(|id| self.streams.get(id)).collect();
        // One that is off the books may come back.
        if here.len() < followers.len() {
            return;
        }
        let next = here.iter().filter_map(|follower| follower.next_fed()).min();
        if let Some(next) = next.filter(|next| *next > stream.cursor) {
            let mut off = self.take_off(feed);
            if let OffBooks::Feed(_, Feed { stream, .. }) = &mut off {
                stream.skip_to(next);
            }
            self.put_on(off);
        }
    }

    // A feed keeps its pieces as long as its present followers need them. Those who have left may
    // have needed them for longer.
    fn keep_as_followers_need(&mut self, feed: StreamId) {
        let Feed { stream, followers } = &self.feeds[&feed];
        let here: Vec<&Stream> = followers.iter().filter_map(|id| self.streams.get(id)).collect();
        // One that is off the books may come back.
        if here.len() < followers.len() {
            return;
        }
        let mut changed = stream.clone();
        if changed.keep_as_need(&here, self.bookings.slot()) {
            let OffBooks::Feed(id, off) = self.take_off(feed) else { unreachable!("it is a feed") };
            self.put_on(OffBooks::Feed(id, Feed { stream: changed, ..off }));
        }
    }

    /// Takes the feeds off the books all of whose followers are off them.
    pub(crate) fn suspend_idle_feeds(&mut self) -> Vec<OffBooks> {
        let is_idle = |feed: &Feed| feed.followers.iter().all(|id| self.streams.get(id).is_none());
        let idle = self.feeds.iter().filter(|(_, feed)| is_idle(feed)).map(|(id, _)| *id);
        let idle: Vec<StreamId> = idle.collect();
        idle.into_iter().map(|feed| self.take_off(feed)).collect()
    }

    /// Puts feeds back on the books, as they were.
    pub(crate) fn resume_feeds(&mut self, feeds: Vec<OffBooks>) {
        feeds.into_iter().for_each(|off| self.put_on(off));
    }

    /// Feeds that are off the books have ended, or end before the last of their followers.
    pub(crate) fn end_feeds(&mut self, feeds: Vec<OffBooks>) {
        for off in feeds {
            let OffBooks::Feed(_, Feed { stream, .. }) = off else { unreachable!("it is a feed") };
            stream.held().for_each(|(read, _)| self.buffers.unpin(read));
        }
    }

    // The only follower of a feed takes it over as it is booked, once it is done with its patch,
    // whose pieces have slots of another clock.
    fn dissolve_if_alone(&mut self, now: Moment, feed: StreamId) {
        let Some(state) = self.feeds.get(&feed) else { return };
        let [last] = state.followers[..] else { return };
        // It may be off the books during a decision on it, or not know the end that the feed knows.
        let reads_all = |stream: &Stream| stream.is_past_patch() && stream.end >= state.stream.end;
        if !self.streams.get(&last).is_some_and(reads_all) {
            return;
        }
        let mut stream = self.remove(last);
        let OffBooks::Feed(_, Feed { stream: feed_stream, .. }) = self.take_off(feed) else {
            unreachable!("it is a feed")
        };
        let disk = usize::from(stream.layout.disk.0);
        let summary = feed_stream.summary;
        let absorbed = stream.absorb(feed_stream);
        stream.summary = summary;
        self.count_missing(now, stream.session, absorbed.missed);
        for read in absorbed.taken {
            if self.is_reading(read) {
                self.buffers.add_waiter(read, Waiter::Stream(last));
            }
        }
        absorbed.spare.into_iter().for_each(|read| self.buffers.unpin(read));
        self.bookings.disks[disk].dispatcher.rename_chosen(feed, last);
        self.insert(last, stream);
        // What the feed held behind a piece that was still being read may be in memory.
        let ready: Vec<u32> = self.streams[&last]
            .held()
            .filter(|(read, _)| !self.is_reading(*read))
            .map(|(_, piece)| piece.piece)
            .collect();
        ready.into_iter().for_each(|piece| self.record_arrival(now, last, piece));
    }

    /// [`Streams::delay`] of a follower: the feed's reads stay, and its buffers are kept for
    /// longer.
    pub(super) fn delay_fed(&mut self, now: Moment, id: StreamId, fed: Fed, slots: u32) -> bool {
        let mut stream = self.remove(id);
        let before = stream.clone();
        let late = stream.overdue(now);
        stream.delay(slots);
        let mut changed = self.feeds[&fed.feed].stream.clone();
        changed.keep_as_long_as(&stream);
        // The changed feed is evaluated in place of the booked one: it is not counted twice.
        let off = self.take_off(fed.feed);
        let demand = self.bookings.demand_of([&mut stream, &mut changed], 0);
        // The feed sends nothing: the network carries the follower alone.
        let mut sent = self.bookings.empty_demand();
        sent.add_track(stream.unread());
        let disk = usize::from(stream.layout.disk.0);
        let network = self.bookings.check_network(&sent).is_ok();
        let approval = if network { self.evaluate_home(disk, &demand).ok() } else { None };
        self.bookings.put_demand(demand);
        self.bookings.put_demand(sent);
        self.put_on(off);
        let Some(approval) = approval else {
            self.insert(id, before);
            return false;
        };
        self.adopt(approval);
        self.keep_feed_as_long_as(fed.feed, &stream);
        for (piece, deadline) in late {
            stream.account(piece);
            self.count_unserved(now, &stream, deadline);
        }
        self.insert(id, stream);
        true
    }
}

/// A stream or feed that is off the books during a decision.
pub(crate) enum OffBooks {
    Stream(StreamId, Stream),
    Feed(StreamId, Feed),
}

/// Off the books and on them again.
impl Streams {
    fn take_off(&mut self, id: StreamId) -> OffBooks {
        if !self.feeds.contains_key(&id) {
            return OffBooks::Stream(id, self.remove(id));
        }
        let feed = self.feeds.take(&id);
        self.bookings.remove(id, &feed.stream);
        OffBooks::Feed(id, feed)
    }

    fn put_on(&mut self, off: OffBooks) {
        match off {
            OffBooks::Stream(id, stream) => self.insert(id, stream),
            OffBooks::Feed(id, mut feed) => {
                self.bookings.insert(id, &mut feed.stream);
                self.feeds.insert(id, feed);
            }
        }
    }
}

/// Titles that become longer.
impl Streams {
    /// Lengthens streams of which some follow others, together with what these read: they go on
    /// following. What is new is due at `earliest` or later. Returns whether that fits; if not,
    /// nothing has changed.
    pub(crate) fn lengthen_with_feeds(
        &mut self,
        now: Moment,
        placement: Placement,
        ids: &[StreamId],
        layout: &Arc<Layout>,
        earliest: Moment,
    ) -> bool {
        if ids.iter().all(|id| self[id].fed.is_none()) {
            return false;
        }
        let mut longer: Vec<Stream> = Vec::with_capacity(ids.len());
        for id in ids {
            let before = &self[id];
            let mut stream = before.lengthened(layout);
            stream.hold_as_followed(before.end);
            let reader = before.fed.map_or(before, |fed| &self[&fed.feed]);
            // Its player has come to the end and waits, or the one that the feed reads for has.
            let has_more = before.end < stream.end;
            if has_more && stream.deadline(before.end) < earliest
                || !can_read_to_end_of(reader, &stream, earliest)
            {
                return false;
            }
            longer.push(stream);
        }
        let followed = longer.iter().filter_map(|stream| Some((stream.fed?.feed, stream)));
        let mut changed: Vec<Stream> = Vec::new();
        let mut off_feeds = Vec::new();
        for (feed, follower) in followed {
            if self[&feed].end < follower.end {
                changed.push(self[&feed].lengthened_for(follower));
                off_feeds.push(feed);
            }
        }
        let before: Vec<(StreamId, Stream)> =
            ids.iter().map(|id| (*id, self.remove(*id))).collect();
        let off: Vec<OffBooks> = off_feeds.iter().map(|feed| self.take_off(*feed)).collect();
        let demand = self.bookings.demand_of(longer.iter_mut().chain(&mut changed), 0);
        let mut sent = self.bookings.empty_demand();
        for stream in &longer {
            sent.add_track(stream.unread());
        }
        let network = self.bookings.check_network(&sent).is_ok();
        let terms = self.bookings.terms();
        let approval = match network {
            true => self.evaluate_disks(placement, &demand, terms).ok(),
            false => None,
        };
        self.bookings.put_demand(demand);
        self.bookings.put_demand(sent);
        off.into_iter().for_each(|off| self.put_on(off));
        let Some(approval) = approval else {
            before.into_iter().for_each(|(id, stream)| self.insert(id, stream));
            return false;
        };
        self.adopt(approval);
        for ((id, before), mut stream) in before.into_iter().zip(longer) {
            if let Some(fed) = stream.fed {
                self.lengthen_feed(fed.feed, &stream);
            }
            let slack = self.bookings.slack_of_plan(&stream);
            stream.guaranteed_slack = before.guaranteed_slack.into_iter().chain(slack).min();
            self.to_serve.push(stream.session);
            self.insert(id, stream);
            self.take_fed(now, id);
        }
        true
    }

    fn lengthen_feed(&mut self, feed: StreamId, follower: &Stream) {
        if self[&feed].end < follower.end {
            let OffBooks::Feed(id, off) = self.take_off(feed) else { unreachable!("it is a feed") };
            let stream = off.stream.lengthened_for(follower);
            self.put_on(OffBooks::Feed(id, Feed { stream, ..off }));
        }
    }
}

/// Read-ahead of feeds.
impl Streams {
    /// The last piece of a feed becomes unread, for its followers as well, if it is due after slot
    /// `keep`. Returns whether it does.
    pub(super) fn drop_last_of_feed(&mut self, feed: StreamId, keep: SlotIndex) -> bool {
        let now = self.bookings.now();
        let Feed { stream, followers } = &mut self.feeds[&feed];
        let Some((read, piece)) = stream.last_held().filter(|(_, piece)| piece.due > keep) else {
            return false;
        };
        let followers = followers.clone();
        let holds = |stream: &Stream| {
            stream.cursor <= piece.piece
                || stream.last_held().is_some_and(|(_, last)| last.piece == piece.piece)
        };
        // A follower that was given the piece and has released it does not need it again.
        if !followers.iter().all(|id| self.streams.get(id).is_none_or(holds)) {
            return false;
        }
        self.feeds[&feed].stream.unread_last(now);
        for id in followers {
            let Some(stream) = self.streams.get_mut(&id) else { continue };
            if stream.cursor > piece.piece {
                let back = stream.unread_last(now).expect("held");
                self.buffers.unpin(back.read);
                if back.on_time {
                    self.accounts.uncount_piece(stream.session, true);
                }
            }
        }
        let stream = &self.feeds[&feed].stream;
        let unread = stream.next_read().expect("unread just now");
        let books = &mut self.bookings.disks[usize::from(stream.layout.disk.0)].dispatcher.books;
        books.undo_read(piece);
        books.hold_until(piece, unread.release);
        self.buffers.unpin(read);
        true
    }
}

/// Checks.
impl Streams {
    /// Says where feeds and followers do not agree. Slow.
    pub(super) fn audit_feeds(&self) -> Result<(), String> {
        for (id, stream) in self.streams.iter() {
            let Some(Fed { feed, from }) = stream.fed else { continue };
            let Some(state) = self.feeds.get(&feed) else {
                return Err(format!("{id:?} follows {feed:?}, which is none"));
            };
            if state.followers.iter().filter(|other| *other == id).count() != 1 {
                return Err(format!("{feed:?} does not list {id:?}"));
            }
            if stream.cursor > state.stream.cursor.max(from) {
                return Err(format!("{id:?} is ahead of {feed:?}"));
            }
            if stream.end > state.stream.end {
                return Err(format!("{feed:?} ends before {id:?}"));
            }
            let kept = state.stream.release_clock();
            if !kept.is_not_before(&stream.timing.kept_as_long_as_both(&stream.timing)) {
                return Err(format!("{feed:?} keeps pieces for less than {id:?}"));
            }
            for (read, piece) in stream.held().filter(|(_, piece)| stream.is_fed(piece.piece)) {
                if state.stream.read_of(piece.piece) != Some(read) {
                    return Err(format!("{feed:?} does not hold piece {} of {id:?}", piece.piece));
                }
            }
        }
        for (id, Feed { stream, followers }) in self.feeds.iter() {
            let is_here = |other: &StreamId| {
                self.streams.get(other).is_some_and(|s| s.fed.is_some_and(|fed| fed.feed == *id))
            };
            if followers.is_empty() || !followers.iter().all(is_here) {
                return Err(format!("{id:?} lists {followers:?}"));
            }
            let idle =
                |piece: &u32| followers.iter().all(|other| !self.streams[other].needs(*piece));
            if let Some(piece) = stream.held().map(|(_, piece)| piece.piece).find(idle) {
                return Err(format!("{id:?} holds piece {piece} for nobody"));
            }
        }
        Ok(())
    }
}

// Whether a policy decides by what is unread. Those that look at each slot alone count what was
// booked for it, read or not; what a feed holds is off their books while a newcomer is decided on,
// and would be missing if it became unread later.
fn looks_ahead(policy: PolicyKind) -> bool {
    use PolicyKind::{Observed, ServiceCurve, TimeDomain, VbrSim};
    matches!(policy, TimeDomain | ServiceCurve | VbrSim | Observed)
}

// Bytes that the sockets of a session may hold of a track beside the schedule. A follower's socket
// gets the next piece when it has taken the last: the piece is in memory anyway, for the feed keeps
// it until its release, so nothing is gained by a second one on its way.
fn send_window(stream: &Stream) -> u64 {
    let pieces = if stream.fed.is_some() { 1 } else { SEND_WINDOW };
    u64::from(stream.layout.tracks[usize::from(stream.track)].piece) * pieces
}

// Whether two streams deliver the same pieces, from the same places, at the same times, as far as
// both know their title.
fn is_same_track(one: &Stream, two: &Stream) -> bool {
    if Arc::ptr_eq(&one.layout, &two.layout) {
        return true;
    }
    let track = |stream: &Stream| usize::from(stream.track);
    let (a, b) = (&one.layout.tracks[track(one)], &two.layout.tracks[track(two)]);
    if one.layout.title != two.layout.title || one.layout.disk != two.layout.disk {
        return false;
    }
    if a.bytes == b.bytes {
        return (a.piece, a.lead) == (b.piece, b.lead)
            && a.runs == b.runs
            && a.stored == b.stored
            && a.due == b.due;
    }
    let (shorter, longer) = if a.bytes < b.bytes { (a, b) } else { (b, a) };
    let places = |track: &TrackLayout| {
        let mut left = shorter.bytes;
        let runs: Vec<Range<u64>> = track
            .runs
            .iter()
            .map(|run| {
                let taken = left.min(run.end - run.start);
                left -= taken;
                run.start..run.start + taken
            })
            .filter(|run| !run.is_empty())
            .collect();
        runs
    };
    shorter.is_continued_by(longer)
        && shorter.stored.is_empty()
        && longer.stored.is_empty()
        && places(shorter) == places(longer)
}

// Whether there is nothing that `stream` would read and `leader` would not, or it is due at
// `earliest` or later for the leader: no evaluation looks at when an earlier read is made.
fn can_read_to_end_of(leader: &Stream, stream: &Stream, earliest: Moment) -> bool {
    let first = stream.curve().due(leader.end);
    leader.end >= stream.end || leader.timing.deadline(first) >= earliest
}
