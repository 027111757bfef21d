//! The start of a schedule: nothing of a track is handed over before everything that must be in
//! memory when its start-up is over is there.
//!
//! ```text
//!   granted                                    granted + startup
//!   │ read ... read ... read: all there │ hand over          ┊ at the latest
//!   │                                   └ play-out starts, and what it needs later is promised
//!   │                                     from `granted + startup` on: never after it is needed
//! ```
//!
//! A player begins when it thinks it has enough, and what that is nobody outside knows. Were it
//! given the first second of media the moment that came from the disk, it might show that, and
//! then wait for the next one, which is promised for later: a stall within the promise.

use super::Engine;
use super::buffers::State;
use super::streams::{Stream, StreamId};
use scheduler::PolicyKind;
use units::Moment;

impl Engine {
    /// Whether a stream must not be handed over as yet.
    pub(super) fn is_held_back(&mut self, now: Moment, id: StreamId) -> bool {
        let stream = &self.streams[&id];
        let Some(opens) = stream.opens else { return false };
        let held_back = self.config.policy != PolicyKind::None
            && now < opens
            && !self.has_all_due_by(stream, opens);
        if !held_back {
            self.streams.get_mut(&id).expect("live").opens = None;
        }
        held_back
    }

    fn has_all_due_by(&self, stream: &Stream, moment: Moment) -> bool {
        let unread = stream.cursor < stream.end && stream.deadline(stream.cursor) <= moment;
        let mut held = stream.held().filter(|(_, piece)| stream.deadline(piece.piece) <= moment);
        !unread && held.all(|(read, _)| self.buffers.get(read).expect("held").state == State::Ready)
    }

    /// From now on what is in memory is handed over to those whose start-up is over, whatever else
    /// is not.
    pub(super) fn open_in_time(&mut self, now: Moment) {
        for stream in self.streams.values_mut().filter(|s| s.opens.is_some_and(|at| at <= now)) {
            stream.opens = None;
            self.to_serve.push(stream.session);
        }
    }
}
