//! To follow another viewer, or to have a stream of one's own: what a newcomer is tried as first.
//!
//! ```text
//!   follow     memory: the interval, and what its sockets may hold       disk: nothing
//!   alone      memory: what a stream holds, and what its sockets may     disk: its share
//!
//!   memory     │ sockets │ streams │ intervals │ room for intervals │ a third of the streams that │
//!              │         │         │           │                    │ the disk still has room for │
//! ```
//!
//! An interval of ten seconds saves as many reads as one of a second, so the shortest are to be
//! kept (generalised interval caching: see `feeds`). A newcomer follows if there is room for its
//! interval. If there is not, a longer interval is given up for it (`given_up`). If there is none,
//! the newcomer gets a stream of its own.
//!
//! Of the memory that a full disk needs for its streams a part is kept ([`KEPT_PART`]): one that
//! comes when all is full of intervals has one given up for it, but the disk then needs room for
//! two. Where intervals would have to be given up, sockets are first given less (`admission`).
//!
//! A newcomer that does not fit in the way that is tried first is evaluated in the other, so the
//! rules decide on what it costs, not on whether it is admitted.

use super::{Streams, least_reserve};
use crate::bookings::disk::Playing;
use crate::bookings::evaluate::{Approval, Candidate};
use crate::bookings::starts::WHOLE_DISK;
use crate::stream::Stream;

impl Streams {
    /// The approval of a newcomer that follows, if that is to be tried before a stream of its own:
    /// there is room for its interval, or a longer one is given up for it.
    pub(super) fn evaluate_following_first(
        &mut self,
        alone: &Candidate,
        following: &mut Candidate,
    ) -> Option<Approval> {
        let interval = |stream: &Stream| {
            let leader = &self[&stream.fed?.feed];
            Some(stream.bytes_in(stream.timing.keeps_longer_by(&leader.release_clock())))
        };
        let intervals: u64 = following.streams.iter().filter_map(interval).sum();
        let takes = intervals + following.demand.reserve;
        let own = own_bytes(alone);
        if takes <= own.max(self.room_for_intervals(alone)) {
            return self.evaluate(following).ok();
        }
        // Shorter by what the stream takes that the other then needs, so that memory is won.
        self.evaluate_giving_up(following, takes + own)
    }

    /// The approval of a candidate that memory is short for, if an interval of more than `least`
    /// bytes is given up for it.
    pub(super) fn evaluate_giving_up(
        &mut self,
        candidate: &mut Candidate,
        least: u64,
    ) -> Option<Approval> {
        candidate.gives_up = self.longest_interval(candidate, least);
        candidate.gives_up?;
        let approval = self.evaluate(candidate).ok();
        candidate.gives_up = candidate.gives_up.filter(|_| approval.is_some());
        approval
    }

    /// Whether intervals leave no room for a stream of its own.
    pub(super) fn lacks_room(&self, alone: &Candidate) -> bool {
        let intervals = self.bookings.disks[alone.disk()].playing.intervals;
        intervals > 0 && self.room_for_intervals(alone) < own_bytes(alone)
    }

    // Bytes that are left for intervals, if a part of the viewers like this one come that the disk
    // has room for, each with a stream of its own.
    fn room_for_intervals(&self, alone: &Candidate) -> u64 {
        let disk = &self.bookings.disks[alone.disk()];
        let Playing { rate, intervals } = disk.playing;
        let each: u64 = alone.streams.iter().map(|stream| Playing::of(stream).rate).sum();
        let streams = rate / each.max(1);
        let share = disk.share_of(&alone.demand);
        let more = (WHOLE_DISK / share.max(1)).saturating_sub(streams);
        let later = (more / KEPT_PART).saturating_mul(own_bytes(alone));
        let kept = streams.saturating_mul(held_by(alone)).saturating_add(later);
        let taken = disk.dispatcher.books.reserved() + intervals;
        disk.all_memory().saturating_sub(taken.saturating_add(kept))
    }

    /// Bytes of buffers that feeds keep for their followers.
    pub(crate) fn interval_bytes_held(&self) -> u64 {
        let held = self.feeds.values().flat_map(|feed| feed.stream.held());
        held.map(|(_, piece)| u64::from(piece.len)).sum()
    }
}

/// Bytes that a stream of its own takes at least, about.
pub(crate) fn own_bytes(alone: &Candidate) -> u64 {
    held_by(alone) + least_reserve(alone.demand.reserve)
}

// Bytes that the schedule holds for streams of their own, about: of each track a piece that is
// being sent, one that is being read, and what is due in the next two slots.
fn held_by(alone: &Candidate) -> u64 {
    let of = |stream: &Stream| {
        let piece = stream.layout.tracks[usize::from(stream.track)].piece;
        u64::from(piece) * 2 + stream.bytes_in(stream.timing.slot * 2)
    };
    alone.streams.iter().map(of).sum()
}

/// Memory is kept for one in so many of the streams that the disk has room for beside those that it
/// reads for. The larger this is, the less the disk reads for an audience that shares titles, and
/// the fewer are admitted of one that nearly fills the disk: see the simulator's test `popular`.
const KEPT_PART: u64 = 3;
