//! What the spares would have to read: beside the books of each disk, the same streams as their spares
//! would have them if that disk were lost, kept where newcomers must survive the loss of any one.
//!
//! ```text
//!   a stream with a spare    books of its home                  standby home ▶ spare
//!   ───────────────────────────────────────────────────────────────────────────────────────────
//!   is let in                unread, due EARLY slots early      unread, due when it must be there
//!   gives a read to disk     held                               unread: what is in a lost disk is lost
//!   piece in memory          held                               held
//!   lets the buffer go       -                                  -
//! ```
//!
//! Being early is for the slot in which the loss is noticed: what the lost disk still owed is due later
//! than that. Where nobody need survive, nothing is kept and all this does nothing.

use super::Engine;
use super::streams::Stream;
use scheduler::{DiskBooks, Failover, PieceDue};
use units::SlotIndex;

/// See the head of this file.
#[derive(Debug)]
pub(super) struct Standby {
    failover: Option<Failover>,
}

impl Standby {
    pub(super) fn new(disks: usize, wanted: bool) -> Self {
        Self { failover: wanted.then(|| Failover::new(disks)) }
    }

    /// Whether newcomers must survive the loss of any one disk.
    pub(super) fn is_wanted(&self) -> bool {
        self.failover.is_some()
    }

    pub(super) fn failover(&mut self) -> Option<&mut Failover> {
        self.failover.as_mut()
    }

    pub(super) fn advance(&mut self, slot: SlotIndex) {
        if let Some(failover) = &mut self.failover {
            failover.advance(slot);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.failover.as_ref().is_none_or(Failover::is_empty)
    }

    /// Books all that a stream would have to be read, or would hold, at its spare.
    pub(super) fn book(&mut self, stream: &Stream) {
        let Some(books) = self.of(stream) else { return };
        stream.unread().for_each(|piece| books.book(at_spare(stream, piece)));
        for (piece, safe) in stream.held_and_safe() {
            let piece = at_spare(stream, piece);
            books.book(piece);
            if safe {
                books.take_up(piece);
            }
        }
        books.book_summary(stream.summary);
    }

    /// Takes all of that off.
    pub(super) fn unbook(&mut self, stream: &Stream) {
        let Some(books) = self.of(stream) else { return };
        stream.unread().for_each(|piece| books.unbook(at_spare(stream, piece)));
        for (piece, safe) in stream.held_and_safe() {
            let_go(books, at_spare(stream, piece), safe);
        }
        books.unbook_summary(stream.summary);
    }

    /// A piece of a stream is in memory.
    pub(super) fn secured(&mut self, stream: &Stream, piece: u32) {
        if let Some(books) = self.of(stream) {
            books.take_up(at_spare(stream, stream.due(piece)));
        }
    }

    /// A stream does not need a piece any more.
    pub(super) fn let_go(&mut self, stream: &Stream, piece: u32, safe: bool) {
        if let Some(books) = self.of(stream) {
            let_go(books, at_spare(stream, stream.due(piece)), safe);
        }
    }

    /// A piece of a stream is unread again.
    pub(super) fn put_back(&mut self, stream: &Stream, piece: u32, safe: bool) {
        if let Some(books) = self.of(stream).filter(|_| safe) {
            books.put_back(at_spare(stream, stream.due(piece)));
        }
    }

    /// Memory kept aside for a session's sockets.
    pub(super) fn reserve(&mut self, (home, spare): Seat, bytes: u64) {
        if let (Some(failover), Some(spare)) = (&mut self.failover, spare) {
            failover.standby(home, spare).reserve(bytes);
        }
    }

    /// It is not needed any more.
    pub(super) fn unreserve(&mut self, (home, spare): Seat, bytes: u64) {
        if let (Some(failover), Some(spare)) = (&mut self.failover, spare) {
            failover.standby(home, spare).unreserve(bytes);
        }
    }

    /// Compares with books made anew; says where they differ.
    pub(super) fn differs(&mut self, fresh: &mut Self, disks: usize) -> Option<String> {
        let (Some(these), Some(those)) = (&mut self.failover, &mut fresh.failover) else {
            return None;
        };
        let of = |books: &DiskBooks| {
            let ahead = books.ahead_of_now().to_vec();
            (ahead, books.overdue(), books.held(), books.reserved(), books.summary())
        };
        for (lost, spare) in (0..disks).flat_map(|lost| (0..disks).map(move |to| (lost, to))) {
            let (this, that) = (these.standby(lost, spare), those.standby(lost, spare));
            if of(this) != of(that) {
                return Some(format!("standby {lost} to {spare}: booked {this:?}, due {that:?}"));
            }
        }
        None
    }

    fn of(&mut self, stream: &Stream) -> Option<&mut DiskBooks> {
        let spare = stream.spare?;
        Some(self.failover.as_mut()?.standby(usize::from(stream.layout.disk.0), spare))
    }
}

/// The disk that a session is read from, and its spare.
pub(super) type Seat = (usize, Option<usize>);

impl Engine {
    /// Keeps memory aside for a session's sockets.
    pub(super) fn keep_aside(&mut self, seat: Seat, bytes: u64) {
        self.disks[seat.0].books.reserve(bytes);
        self.standby.reserve(seat, bytes);
    }

    /// Gives it back.
    pub(super) fn give_aside(&mut self, seat: Seat, bytes: u64) {
        self.disks[seat.0].books.unreserve(bytes);
        self.standby.unreserve(seat, bytes);
    }
}

fn let_go(books: &mut DiskBooks, piece: PieceDue, safe: bool) {
    match safe {
        true => books.let_go(piece),
        false => books.unbook(piece),
    }
}

// The same piece, due when it must be in memory. These books know of each piece by itself whether it is
// in memory, so that what goes on where it ends may not be to be read: each is a visit by itself.
fn at_spare(stream: &Stream, piece: PieceDue) -> PieceDue {
    let due = piece.due + u64::from(stream.timing.early);
    PieceDue { due, followed_after: None, ..piece }
}

/// Slots by which a stream with a spare is read before it must be.
pub(super) const EARLY: u32 = 1;
