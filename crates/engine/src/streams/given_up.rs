//! Intervals that are given up: a follower gets a stream of its own, and what was kept for it
//! alone is free for a newcomer.
//!
//! ```text
//!   before   viewer C ▲─────────────┤ viewer B ▲──────┤ A   the feed reads at A and keeps up to C
//!   after    viewer C ▲──┤ reads on from here  ▲──────┤ A   the feed keeps up to B
//!                      due within the next slots: kept
//!                          ├────────┤ free
//! ```
//!
//! Only the last follower of a feed is given a stream of its own: the reads of the others stay
//! where they are. It is given up for a newcomer whose interval is shorter, or who cannot follow
//! and has no memory otherwise.
//!
//! # Why nobody is late
//!
//! 1. *One decision.* The newcomer, the feed without its last follower and that follower's own
//!    stream are evaluated together, with all that they replace off the books. If that fits, all of
//!    it is booked in the same call; otherwise nothing changes.
//! 2. *The follower* keeps what is due in the slots before its own reads begin, booked as what any
//!    stream holds. The rest is unread for it, and due by the clock that it had: its deadlines stay
//!    as they are. What is still in the cache when its turn comes needs no read.
//! 3. *The feed* goes on as if that follower had left: its reads stay, and each piece is let go no
//!    later than before (`feeds`).
//! 4. From then on they are a stream and a feed like any other. If both seek, pause or leave,
//!    nothing is different from others that do.

use super::Streams;
use super::feeds::Feed;
use crate::bookings::evaluate::Candidate;
use crate::stream::{Stream, StreamId};
use scheduler::PieceDue;
use units::Moment;

impl Streams {
    /// The follower whose interval is the longest that can be given up for a candidate, if it takes
    /// more than `least` bytes.
    pub(super) fn longest_interval(&self, candidate: &Candidate, least: u64) -> Option<StreamId> {
        let leads = |feed: &StreamId| {
            candidate.streams.iter().any(|stream| stream.fed.is_some_and(|fed| fed.feed == *feed))
        };
        let own = candidate.streams.first().map(|stream| stream.session);
        let intervals = self.feeds.iter().filter_map(|(id, feed)| {
            let reads = feed.stream.cursor < feed.stream.end;
            let is_near = usize::from(feed.stream.layout.disk.0) == candidate.disk();
            let (last, bytes) = if reads && is_near && !leads(id) {
                self.last_interval(feed)?
            } else {
                return None;
            };
            (bytes > least && Some(self.streams[&last].session) != own).then_some((bytes, last, id))
        });
        let (_, last, feed) = intervals.max()?;
        // A feed that is behind has reads that no evaluation looks at.
        (!self.is_behind(&self[feed])).then_some(last)
    }

    // The last follower of a feed, if it can be given a stream of its own, and the bytes that are
    // kept for it alone.
    fn last_interval(&self, feed: &Feed) -> Option<(StreamId, u64)> {
        let others = || feed.followers.iter().map(|id| Some((*id, self.streams.get(id)?)));
        // One that is off the books may come back.
        let followers = others().collect::<Option<Vec<(StreamId, &Stream)>>>()?;
        let behind = |stream: &Stream| stream.release_clock().keeps_longer_by(&feed.stream.timing);
        let (last, stream) = followers.iter().max_by_key(|(_, stream)| behind(stream))?;
        let others = followers.iter().filter(|(id, _)| id != last);
        let clocks = others.map(|(_, stream)| stream.release_clock());
        let others = clocks.reduce(|one, other| one.kept_as_long_as_both(&other))?;
        let interval = stream.release_clock().keeps_longer_by(&others);
        Some((*last, stream.bytes_in(interval)))
    }

    /// A feed without its last follower, and that follower with a stream of its own, as they are
    /// once its interval is given up.
    pub(super) fn without_interval(&self, follower: StreamId) -> (Stream, Stream) {
        let mut own = self.streams[&follower].clone();
        let now = self.bookings.now();
        while self.is_spare(&own) {
            own.unread_last(now);
        }
        let fed = own.leave_feed().expect("it follows");
        let Feed { stream, followers } = &self.feeds[&fed.feed];
        let others = followers.iter().filter(|id| **id != follower);
        let others: Vec<&Stream> = others.map(|id| &self.streams[id]).collect();
        let mut feed = stream.clone();
        feed.keep_as_need(&others, self.bookings.slot());
        let held = stream.held().map(|(_, piece)| piece.piece);
        for piece in held.filter(|piece| !others.iter().any(|other| other.needs(*piece))) {
            feed.release(piece);
        }
        (feed, own)
    }

    /// The last follower of a feed gets a stream of its own.
    pub(super) fn give_up_interval(&mut self, now: Moment, follower: StreamId) {
        let mut own = self.remove(follower);
        while self.is_spare(&own) {
            let back = own.unread_last(now).expect("held");
            self.accounts.uncount_piece(own.session, back.on_time);
            self.buffers.unpin(back.read);
        }
        let fed = own.leave_feed().expect("it follows");
        let demand = self.bookings.demand_of([&mut own], 0);
        self.bookings.put_demand(demand);
        // Its requests may wait for pieces that are booked only now.
        self.to_serve.push(own.session);
        self.insert(follower, own);
        self.feeds[&fed.feed].followers.retain(|other| *other != follower);
        self.leave_feed(now, fed.feed);
    }

    // Whether the last piece that a follower has is of its feed, and due so late that it is read
    // again once its interval is given up.
    fn is_spare(&self, follower: &Stream) -> bool {
        let keep = self.bookings.slot() + KEPT_SLOTS;
        let is_spare = |piece: PieceDue| follower.is_fed(piece.piece) && piece.due > keep;
        follower.last_held().is_some_and(|(_, piece)| is_spare(piece))
    }
}

/// Slots whose pieces a follower keeps that gets a stream of its own: a start-up of 2 s, in which
/// any other stream is first read for.
const KEPT_SLOTS: u64 = 4;
