//! A newcomer whose first media is in memory needs the disk later.
//!
//! ```text
//!   pieces      │ 0 1 2 3 4 5 6 ...
//!   in memory   │ ■ ■ ■ ■ · ■ ·         idle, or held for other viewers
//!   newcomer    │ held    │ unread      what it holds takes memory until it is released, and the
//!                                       disk reads for it from the first gap on
//! ```
//!
//! The pieces stay where they are: they are pinned in the call in which the newcomer is admitted,
//! so that none can be taken back before it is delivered. Admission evaluates the newcomer as a
//! stream that has read them, which is what it is from then on: its disk time and its deadlines are
//! those of the rest, and its memory is that of what it holds. A piece that another viewer holds as
//! well is counted for both, which is never too little.
//!
//! Only the media of the first seconds is taken. A reservation needs no more to start, and what a
//! viewer holds is kept from all others. A newcomer that must wait for its start takes none: it
//! would hold memory in which others can start now. Nor does one that follows another viewer, whose
//! first reads find in memory what is there.
//!
//! This holds where disk time is planned, and no loss of a disk has to be survived: the standby
//! books count with pieces that each stream has read from its own disk.

use super::Streams;
use crate::ReadId;
use crate::bookings::evaluate::{Accepted, Candidate};
use crate::buffers::BufferState;
use crate::stream::{Stream, StreamId};
use scheduler::PieceDue;
use std::sync::Arc;
use std::time::Duration;

impl Streams {
    /// The candidate with what is in memory of its first media, where any is and it fits so.
    pub(super) fn evaluate_resident(&mut self, candidate: &Candidate) -> Option<Accepted> {
        // Where leads may be gathered, time is planned and no loss is survived.
        if !candidate.is_new || !self.bookings.gathers(candidate.disk()) {
            return None;
        }
        let mut streams = candidate.streams.clone();
        let in_memory = |stream: &Stream, piece| {
            let found = self.buffers.find(stream.key(piece), stream.place(piece));
            found.filter(|(_, state)| *state == BufferState::Ready).map(|(read, _)| read)
        };
        let taken: u32 = streams.iter_mut().map(|stream| stream.take_resident(in_memory)).sum();
        // What never fits without others is refused as that, whatever happens to be in memory.
        if taken == 0 || self.fits_ever(candidate, Duration::ZERO) == Some(false) {
            return None;
        }
        // All of it is sent, whoever has read it.
        let mut sent = self.bookings.empty_demand();
        for stream in &candidate.streams {
            sent.add_track(stream.unread());
        }
        let demand = self.bookings.demand_of(&mut streams, candidate.demand.reserve);
        let resident = Candidate {
            layout: Arc::clone(&candidate.layout),
            replica: None,
            copies: Arc::clone(&candidate.copies),
            streams,
            demand,
            sent: Some(sent),
            is_new: true,
            gives_up: None,
        };
        match self.evaluate(&resident) {
            Ok(approval) => Some(resident.accepted(approval)),
            Err(_) => {
                self.put_candidate(resident);
                None
            }
        }
    }

    /// Pins a piece that a new stream has taken from memory. The stream is on the books.
    pub(super) fn pin_resident(&mut self, id: StreamId, piece: PieceDue, read: ReadId) {
        self.buffers.pin(read);
        self.buffers.used_again(read);
        self.accounts.counters.cache_hits += 1;
        self.record_arrival(self.bookings.now(), id, piece.piece);
        self.to_serve.push(self.streams[&id].session);
    }
}

impl Stream {
    /// Holds the pieces of its first media from its next one on, as far as `in_memory` names their
    /// buffers; says how many. Not after it was booked.
    fn take_resident(&mut self, in_memory: impl Fn(&Self, u32) -> Option<ReadId>) -> u32 {
        let until_ms = self.clock().from_ms.saturating_add(FIRST_MS);
        let mut taken = 0;
        // Of a stream that has read all, nothing would be booked: the last piece is left unread.
        while self.cursor.saturating_add(1) < self.end
            && self.curve().due(self.cursor) < until_ms
            && let Some(read) = in_memory(self, self.cursor)
        {
            self.hold_next(self.due(self.cursor), read);
            taken += 1;
        }
        taken
    }

    /// Whether a piece is of what a viewer of its title needs first. The first pieces of a
    /// presentation that skips media need not be.
    pub(super) fn is_of_beginning(&self, piece: u32) -> bool {
        self.is_whole() && self.curve().due(piece) < FIRST_MS
    }
}

/// Media that counts as the first: a read of 4 MiB at 5 Mb/s is 6.7 s, and the segment after it
/// ends within 12 s.
const FIRST_MS: u32 = 12_000;
