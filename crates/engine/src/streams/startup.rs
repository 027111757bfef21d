//! Start-up: nothing of a track is delivered before everything that must be in memory when its
//! start-up time is over is there.
//!
//! ```text
//!   admitted                               admitted + startup
//!   │ read ... read ... read: all there │ deliver            ┊ at the latest
//!   │                                   └ play-out starts; deadlines are those of a play-out that
//!   │                                     starts at `admitted + startup`: never too late
//! ```
//!
//! A player starts play-out when it thinks it has enough, and the server cannot know when that is.
//! Were the first second of media delivered the moment that it came from the disk, a player might
//! show it, and then wait for the next second, whose deadline is later: a stall without any
//! deadline miss.
//!
//! A viewer who has waited for its start gets nothing before its start-up is over, so its later
//! deadlines count from there: later by the start-up time, which is what a crowd is short of.

use super::Streams;
use crate::buffers::BufferState;
use crate::stream::{Stream, StreamId};
use units::Moment;

impl Streams {
    /// Whether delivery of a stream must wait for its start-up.
    pub(crate) fn is_held_back(&mut self, now: Moment, id: StreamId) -> bool {
        let stream = &self.streams[&id];
        let Some(opens) = stream.opens else { return false };
        let held_back =
            self.bookings.refuses() && now < opens && !self.may_open_early(stream, opens);
        if !held_back {
            // For good: read-ahead that is dropped later must not hold back delivery again.
            self.streams[&id].opens = None;
        }
        held_back
    }

    fn may_open_early(&self, stream: &Stream, opens: Moment) -> bool {
        // Where deadlines count from the end of the start-up, a player must not start before.
        stream.clock().opens_after.is_zero() && self.has_all_due_by(stream, opens)
    }

    fn has_all_due_by(&self, stream: &Stream, moment: Moment) -> bool {
        let unread = stream.cursor < stream.end && stream.deadline(stream.cursor) <= moment;
        let mut held = stream.held().filter(|(_, piece)| stream.deadline(piece.piece) <= moment);
        !unread
            && held
                .all(|(read, _)| self.buffers.get(read).expect("held").state == BufferState::Ready)
    }

    /// When delivery opens next that must not open before; the end of time if none waits for that.
    pub(crate) fn next_opening(&self) -> Moment {
        self.openings.first().copied().unwrap_or(Moment::MAX)
    }

    /// Notes when delivery of a stream opens, if it must not open before.
    pub(super) fn note_opening(&mut self, id: StreamId) {
        let stream = &self.streams[&id];
        self.openings.extend(stream.opens.filter(|_| !stream.clock().opens_after.is_zero()));
    }

    /// Opens delivery of the streams whose start-up time is over, whatever is not in memory.
    pub(crate) fn open_due(&mut self, now: Moment) {
        while self.openings.first().is_some_and(|at| *at <= now) {
            self.openings.pop_first();
        }
        for stream in self.streams.values_mut().filter(|s| s.opens.is_some_and(|at| at <= now)) {
            stream.opens = None;
            self.to_serve.push(stream.session);
        }
    }
}
