//! To follow another viewer, or to have a stream of one's own: what a newcomer is tried as first.
//!
//! ```text
//!   follow     memory: the interval, and what its sockets may hold       disk: nothing
//!   alone      memory: what a stream holds, and what its sockets may     disk: its share
//!
//!   memory     │ sockets │ streams │ intervals │ room for intervals │ as many more streams as │
//!              │         │         │           │                    │ the disk has room for   │
//! ```
//!
//! An interval of ten seconds saves as many reads as one of a second, so short ones are to be taken
//! first (generalised interval caching: see `feeds`). A cache that has filled may drop a long one
//! for a short one; here each interval is kept to its end, and nobody knows which will come. Two
//! rules take the place of that knowledge:
//!
//! - The memory that a full disk needs for its streams is kept for them. Otherwise intervals would
//!   fill it, and viewers who cannot follow would be refused beside an idle disk.
//! - An interval may take a part of the room that is left, so the fuller memory is, the shorter an
//!   interval must be.
//!
//! A newcomer that does not fit in the way that is tried first is evaluated in the other, so the
//! rules decide on what it costs, not on whether it is admitted.

use super::{Streams, least_reserve};
use crate::engine::bookings::disk::{Playing, WHOLE_DISK};
use crate::engine::bookings::evaluate::Candidate;
use crate::engine::stream::Stream;

impl Streams {
    /// Whether a newcomer is to follow rather than to have a stream of its own, if both fit.
    pub(super) fn follows_first(&self, alone: &Candidate, following: &Candidate) -> bool {
        let interval = |stream: &Stream| {
            let leader = &self[&stream.fed?.feed];
            Some(stream.bytes_in(stream.timing.keeps_longer_by(&leader.release_clock())))
        };
        let intervals: u64 = following.streams.iter().filter_map(interval).sum();
        let takes = intervals + following.demand.reserve;
        let own = held_by(alone) + least_reserve(alone.demand.reserve);
        takes <= own + self.room_for_intervals(alone, own) / LONGEST_INTERVAL_PART
    }

    // Bytes that are left for intervals, if as many more viewers like this one come as the disk has
    // room for, each with a stream of its own that needs so many bytes.
    fn room_for_intervals(&self, alone: &Candidate, own: u64) -> u64 {
        let disk = &self.bookings.disks[alone.disk()];
        let Playing { rate, intervals } = disk.playing;
        let each: u64 = alone.streams.iter().map(|stream| Playing::of(stream).rate).sum();
        let streams = rate / each.max(1);
        let share = disk.share_of(&alone.demand);
        let more = (WHOLE_DISK / share.max(1)).saturating_sub(streams);
        let kept = streams.saturating_mul(held_by(alone)).saturating_add(more.saturating_mul(own));
        let taken = disk.dispatcher.books.reserved() + intervals;
        disk.memory.saturating_sub(taken.saturating_add(kept))
    }

    /// Bytes of buffers that feeds keep for their followers.
    pub(in crate::engine) fn interval_bytes_held(&self) -> u64 {
        let held = self.feeds.values().flat_map(|feed| feed.stream.held());
        held.map(|(_, piece)| u64::from(piece.len)).sum()
    }
}

// Bytes that the schedule holds for streams of their own, about: of each track a piece that is
// being sent, and what is read for the next two slots.
fn held_by(alone: &Candidate) -> u64 {
    let of = |stream: &Stream| {
        let piece = stream.layout.tracks[usize::from(stream.track)].piece;
        u64::from(piece) + stream.bytes_in(stream.timing.slot * 2)
    };
    alone.streams.iter().map(of).sum()
}

/// An interval takes at most this part of the room that is left for intervals. The smaller it is,
/// the more are admitted of an audience by Zipf, and the more the disk reads for each: see the
/// simulator's test `popular`.
const LONGEST_INTERVAL_PART: u64 = 16;
