//! The failover books: what the replicas' disks would have to read if a disk were lost. Kept beside
//! the books of each disk where admitted streams must survive the loss of any one disk.
//!
//! ```text
//!   a stream with a replica  books of its disk               failover books disk ▶ replica's disk
//!   ────────────────────────────────────────────────────────────────────────────────────────────
//!   is admitted              unread, EARLY_SLOTS early       unread, due when it is needed
//!   its read is issued       held                            unread: a lost disk loses it
//!   its piece is in memory   held                            held
//!   releases the buffer      -                               -
//! ```
//!
//! Reads are early for the slot in which a loss is noticed: what the lost disk had not read is due
//! later than that. Where no loss need be survived, there are no such books and nothing is done.

use super::Placement;
use crate::stream::Stream;
use scheduler::{DiskBooks, Failover, PieceDue};
use units::SlotIndex;

/// What each disk would have to read if another were lost; empty where no loss is survived.
#[derive(Clone, Debug)]
pub(crate) struct FailoverBooks {
    pub(crate) books: Option<Failover>,
}

impl FailoverBooks {
    pub(crate) fn new(disks: usize, wanted: bool) -> Self {
        Self { books: wanted.then(|| Failover::new(disks)) }
    }

    pub(crate) fn advance(&mut self, slot: SlotIndex) {
        if let Some(books) = &mut self.books {
            books.advance(slot);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.books.as_ref().is_none_or(Failover::is_empty)
    }

    /// Books all pieces that a stream would read, or hold, at its replica.
    pub(crate) fn book(&mut self, stream: &Stream) {
        let Some(books) = self.of(stream) else { return };
        stream.unread().for_each(|piece| books.book(at_replica(stream, piece)));
        for (piece, safe) in stream.held_and_safe() {
            let piece = at_replica(stream, piece);
            books.book(piece);
            // What is still being read from the disk would be lost with it and be read at the
            // replica.
            if safe {
                books.start_read(piece);
            }
        }
        books.book_summary(stream.summary);
    }

    /// Takes off all that `book` has booked for a stream.
    pub(crate) fn unbook(&mut self, stream: &Stream) {
        let Some(books) = self.of(stream) else { return };
        stream.unread().for_each(|piece| books.unbook(at_replica(stream, piece)));
        for (piece, safe) in stream.held_and_safe() {
            release_from(books, at_replica(stream, piece), safe);
        }
        books.unbook_summary(stream.summary);
    }

    /// A piece of a stream is in memory: no loss takes it away.
    pub(crate) fn piece_in_memory(&mut self, stream: &Stream, piece: u32) {
        if let Some(books) = self.of(stream) {
            books.start_read(at_replica(stream, stream.due(piece)));
        }
    }

    /// A stream does not need a piece any more.
    pub(crate) fn release(&mut self, stream: &Stream, piece: u32, safe: bool) {
        if let Some(books) = self.of(stream) {
            release_from(books, at_replica(stream, stream.due(piece)), safe);
        }
    }

    /// A piece of a stream is unread again.
    pub(crate) fn unread(&mut self, stream: &Stream, piece: u32, safe: bool) {
        // A piece that was not in memory is booked as unread here already.
        if let Some(books) = self.of(stream).filter(|_| safe) {
            books.undo_read(at_replica(stream, stream.due(piece)));
        }
    }

    /// Reserves memory for a session's sockets.
    pub(crate) fn reserve(&mut self, placement: Placement, bytes: u64) {
        if let (Some(books), Some(replica)) = (&mut self.books, placement.replica) {
            books.standby(placement.disk, replica).reserve(bytes);
        }
    }

    /// Releases memory that was reserved for a session's sockets.
    pub(crate) fn unreserve(&mut self, placement: Placement, bytes: u64) {
        if let (Some(books), Some(replica)) = (&mut self.books, placement.replica) {
            books.standby(placement.disk, replica).unreserve(bytes);
        }
    }

    /// Compares with books made anew; says where they differ.
    pub(crate) fn differs(&mut self, fresh: &mut Self, disks: usize) -> Option<String> {
        let (Some(these), Some(those)) = (&mut self.books, &mut fresh.books) else {
            return None;
        };
        let of = |books: &DiskBooks| {
            let ahead = books.ahead_of_now().to_vec();
            (ahead, books.overdue(), books.held(), books.reserved(), books.summary())
        };
        for (lost, replica) in (0..disks).flat_map(|lost| (0..disks).map(move |to| (lost, to))) {
            let (this, that) = (these.standby(lost, replica), those.standby(lost, replica));
            if of(this) != of(that) {
                return Some(format!("standby {lost} to {replica}: booked {this:?}, due {that:?}"));
            }
        }
        None
    }

    fn of(&mut self, stream: &Stream) -> Option<&mut DiskBooks> {
        let replica = stream.replica?;
        Some(self.books.as_mut()?.standby(usize::from(stream.layout.disk.0), replica))
    }
}

fn release_from(books: &mut DiskBooks, piece: PieceDue, safe: bool) {
    match safe {
        true => books.release(piece),
        // Not in memory, so its read was never marked as made in these books.
        false => books.unbook(piece),
    }
}

// A stream's piece as the failover books have it: due when it is needed, and a visit by itself. The
// piece before it may be in memory already, so nothing can count on reading both in one visit.
fn at_replica(stream: &Stream, piece: PieceDue) -> PieceDue {
    let due = piece.due + u64::from(stream.timing.early);
    PieceDue { due, followed_after: None, ..piece }
}

/// Slots by which a stream with a replica is read before it must be.
pub(crate) const EARLY_SLOTS: u32 = 1;
