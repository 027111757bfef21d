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
//! A seek may be granted from a later moment on. All that it needs first may be in memory before
//! that, from other viewers, and a player would start with it and stall until the first deadline
//! behind it. So it gets nothing before that moment.
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
            self.bookings.refuses() && now < opens && !self.may_open_early(now, stream, opens);
        if !held_back {
            // For good: read-ahead that is dropped later must not hold back delivery again.
            self.streams[&id].opens = None;
        }
        held_back
    }

    fn may_open_early(&self, now: Moment, stream: &Stream, opens: Moment) -> bool {
        opens_first(stream, opens) <= now && self.has_all_due_by(stream, opens)
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
        self.openings.first().map_or(Moment::MAX, |(at, _)| *at)
    }

    /// Notes when delivery of a stream may open, if it must not open before.
    pub(super) fn note_opening(&mut self, id: StreamId) {
        let stream = &self.streams[&id];
        let opens = stream.opens.map(|opens| opens_first(stream, opens));
        let opens = opens.filter(|at| *at > self.bookings.now());
        self.openings.extend(opens.map(|at| (at, id)));
    }

    /// Opens delivery of the streams whose start-up time is over, whatever is not in memory.
    pub(crate) fn open_due(&mut self, now: Moment) {
        for stream in self.streams.values_mut().filter(|s| s.opens.is_some_and(|at| at <= now)) {
            stream.opens = None;
            self.to_serve.push(stream.session);
        }
        while self.openings.first().is_some_and(|(at, _)| *at <= now) {
            let (_, id) = self.openings.pop_first().expect("there is a first");
            // It may have gone since, or may have become later.
            if let Some(stream) = self.streams.get(&id) {
                self.to_serve.push(stream.session);
                self.note_opening(id);
            }
        }
    }
}

// When delivery of a stream may open first, whose start-up ends at `opens`. Where deadlines count
// from the end of the start-up, or from a later start, a player must not start before.
fn opens_first(stream: &Stream, opens: Moment) -> Moment {
    let clock = stream.clock();
    if clock.opens_after.is_zero() { clock.origin } else { opens }
}
