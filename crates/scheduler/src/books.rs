//! What is booked on one disk and on the network, slot by slot.
//!
//! A read is on the books from the admission of its stream until it is issued (or found in memory);
//! its buffer from the issue until it is let go. Streams book and cancel with numbers computed the
//! same way ([`PlayoutClock::pieces`](crate::Timing::pieces)), so when all have left every sum is
//! zero: [`DiskBooks::is_empty`] is checked by tests and the simulator.

use crate::blocks::Block;
use crate::demand::{Demand, RateSummary};
use crate::ledger::{BookedLoad, Ledger, SlotLoad};
use crate::piece::PieceDue;
use units::SlotIndex;

/// One disk's books.
#[derive(Clone, Debug, Default)]
pub struct DiskBooks {
    ledger: Ledger<SlotLoad>,
    planned: Ledger<BookedLoad>,
    // The ledger's unread pieces, by blocks of slots.
    blocks: Ledger<Block>,
    // Bytes of the ledger's unread pieces, kept so that no decision has to add them up.
    unread: u64,
    held: u64,
    reserved: u64,
    summary: RateSummary,
}

impl DiskBooks {
    /// Time has come to `current`.
    pub fn advance(&mut self, current: SlotIndex) {
        self.ledger.advance(current);
        self.planned.advance(current);
        self.blocks.advance(Block::number(current));
    }

    /// The slot that is running.
    pub fn current(&self) -> SlotIndex {
        self.ledger.current()
    }

    /// Books a demand that was just decided on, whole. The same as booking each of its pieces.
    pub fn book_demand(&mut self, demand: &Demand) {
        self.ledger.add_all(demand.first(), demand.slots().iter().copied());
        self.planned.add_all(demand.first(), demand.slots().iter().map(BookedLoad::of));
        // Blocks are summed anew: the demand's own may be shifted against the books'.
        for (number, block) in Block::all(demand.first(), demand.slots()) {
            self.blocks.add(number, block);
        }
        self.unread += demand.bytes();
    }

    /// Books an unread piece.
    pub fn book(&mut self, piece: PieceDue) {
        self.add_unread(piece);
        self.planned.add(piece.due, planned(piece));
        // The release is booked with the read: an evaluation counts what an unread piece frees
        // later.
        self.ledger.add(piece.release, freed(piece.len));
    }

    /// Takes an unread piece off.
    pub fn unbook(&mut self, piece: PieceDue) {
        self.sub_unread(piece);
        self.planned.sub(piece.due, planned(piece));
        self.ledger.sub(piece.release, freed(piece.len));
    }

    /// The piece is being read, or was found in memory: it now holds a buffer.
    pub fn start_read(&mut self, piece: PieceDue) {
        self.sub_unread(piece);
        // `planned` and the release stay booked: a policy without credit for reading ahead still
        // counts the piece, and the clock still frees its buffer.
        self.held += u64::from(piece.len);
    }

    /// The piece was read from another disk: it holds a buffer, and was no work of this disk.
    pub fn not_planned(&mut self, piece: PieceDue) {
        self.planned.sub(piece.due, planned(piece));
    }

    /// The reverse of [`DiskBooks::not_planned`].
    pub fn planned_again(&mut self, piece: PieceDue) {
        self.planned.add(piece.due, planned(piece));
    }

    /// The reverse of [`DiskBooks::start_read`]: the buffer may go, the piece is to be read again.
    pub fn undo_read(&mut self, piece: PieceDue) {
        self.add_unread(piece);
        self.held -= u64::from(piece.len);
    }

    fn add_unread(&mut self, piece: PieceDue) {
        self.ledger.add(piece.due, unread(piece));
        self.blocks.add(Block::number(piece.due), Block::of_piece(&piece));
        self.unread += u64::from(piece.len);
        // The piece that goes on where this one ends is unread, too: pieces are taken up in order.
        if let Some((due, follows)) = piece.follower() {
            self.ledger.add(due, SlotLoad { follows, ..SlotLoad::default() });
        }
    }

    fn sub_unread(&mut self, piece: PieceDue) {
        self.ledger.sub(piece.due, unread(piece));
        self.blocks.sub(Block::number(piece.due), Block::of_piece(&piece));
        self.unread -= u64::from(piece.len);
        if let Some((due, follows)) = piece.follower() {
            self.ledger.sub(due, SlotLoad { follows, ..SlotLoad::default() });
        }
    }

    /// The stream no longer needs the buffer of a piece that was taken up.
    pub fn release(&mut self, piece: PieceDue) {
        self.ledger.sub(piece.release, freed(piece.len));
        self.planned.sub(piece.due, planned(piece));
        self.held -= u64::from(piece.len);
    }

    /// A piece that was taken up is let go at the end of `slot` instead.
    pub fn hold_until(&mut self, piece: PieceDue, slot: SlotIndex) {
        self.ledger.sub(piece.release, freed(piece.len));
        self.ledger.add(slot, freed(piece.len));
    }

    /// Memory beside the schedule that a session takes: see
    /// [`sending_reserve`](crate::sending_reserve).
    pub fn reserve(&mut self, bytes: u64) {
        self.reserved += bytes;
    }

    /// The session has left.
    pub fn unreserve(&mut self, bytes: u64) {
        self.reserved -= bytes;
    }

    /// A stream's peak and mean, for the policies that look at nothing else.
    pub fn book_summary(&mut self, summary: RateSummary) {
        self.summary += summary;
    }

    /// Takes the same numbers off.
    pub fn unbook_summary(&mut self, summary: RateSummary) {
        self.summary -= summary;
    }

    /// Sums from the current slot on.
    pub fn ahead_of_now(&self) -> &[SlotLoad] {
        self.ledger.ahead_of_now()
    }

    /// Sums of unread pieces by blocks of slots, from that on which the current slot is in.
    pub(crate) fn blocks(&self) -> &[Block] {
        self.blocks.ahead_of_now()
    }

    /// What was booked for the slots from the current one on, read already or not.
    pub fn booked_ahead(&self) -> &[BookedLoad] {
        self.planned.ahead_of_now()
    }

    /// Reads and bytes whose slot is past; zero while the disk keeps its guarantee.
    pub fn overdue(&self) -> SlotLoad {
        self.ledger.past()
    }

    /// Bytes of all pieces that have not been issued.
    pub fn unread(&self) -> u64 {
        self.unread
    }

    /// Bytes of buffers that streams hold.
    pub fn held(&self) -> u64 {
        self.held
    }

    /// Bytes kept aside for sockets.
    pub fn reserved(&self) -> u64 {
        self.reserved
    }

    /// The streams' peaks and means added up.
    pub fn summary(&self) -> RateSummary {
        self.summary
    }

    /// Everything that is booked.
    pub fn total(&self) -> SlotLoad {
        self.ledger.total()
    }

    /// Whether nothing at all is booked.
    pub fn is_empty(&self) -> bool {
        self.total() == SlotLoad::default()
            && self.planned.total() == BookedLoad::default()
            && self.blocks.total() == Block::default()
            && (self.unread, self.held, self.reserved) == (0, 0, 0)
            && self.summary == RateSummary::default()
    }
}

/// The network's books: bytes to be sent per slot.
#[derive(Clone, Debug, Default)]
pub struct NetworkBooks {
    ledger: Ledger<u64>,
}

impl NetworkBooks {
    /// Time has come to `current`: what should have been sent before is nobody's promise any more.
    pub fn advance(&mut self, current: SlotIndex) {
        self.ledger.advance(current);
        self.ledger.forget_past();
    }

    /// Books a demand that was just decided on, whole. The same as booking each of its pieces.
    pub fn book_demand(&mut self, demand: &Demand) {
        self.ledger.add_all(demand.first(), demand.slots().iter().map(|load| load.bytes));
    }

    /// Books a piece's bytes.
    pub fn book(&mut self, piece: PieceDue) {
        if piece.due >= self.ledger.current() {
            self.ledger.add(piece.due, u64::from(piece.len));
        }
    }

    /// Takes them off, if their slot is not over.
    pub fn unbook(&mut self, piece: PieceDue) {
        // `advance` has forgotten past slots, so their bytes cannot be taken off again.
        if piece.due >= self.ledger.current() {
            self.ledger.sub(piece.due, u64::from(piece.len));
        }
    }

    /// Whether `demand` fits into `per_slot` bytes with what is booked, sending ahead at most
    /// [`AHEAD_SLOTS`] slots' worth. If not: the slot and the bytes that are too many.
    ///
    /// The same arithmetic as for the disk in its incremental form: slack is carried forward,
    /// up to what players are taken to buffer.
    pub fn verdict(&self, demand: &Demand, per_slot: u64) -> Result<u64, (SlotIndex, u64)> {
        let booked = self.ledger.ahead_of_now();
        let current = self.ledger.current();
        let lead = demand.first().0.saturating_sub(current.0);
        let end = (lead + demand.slots().len() as u64).max(booked.len() as u64);
        let most = per_slot.saturating_mul(AHEAD_SLOTS);
        // What is due by the end of a slot is sent in the next: one slot's worth to start with.
        let mut ahead = per_slot;
        let mut least = u64::MAX;
        for i in 1..end {
            let theirs = usize::try_from(i).ok().and_then(|i| booked.get(i)).copied().unwrap_or(0);
            let ours =
                i.checked_sub(lead).and_then(|i| demand.slots().get(usize::try_from(i).ok()?));
            let due = theirs + ours.map_or(0, |load| load.bytes);
            // Players buffer only so much, so unused supply is not carried forward without limit.
            let supply = ahead.saturating_add(per_slot).min(most);
            ahead = supply.checked_sub(due).ok_or((current + i, due.saturating_sub(supply)))?;
            least = least.min(ahead);
        }
        Ok(least)
    }

    /// Bytes booked, from the current slot on.
    pub fn ahead_of_now(&self) -> &[u64] {
        self.ledger.ahead_of_now()
    }

    /// Bytes booked in all.
    pub fn total(&self) -> u64 {
        self.ledger.total()
    }
}

fn unread(piece: PieceDue) -> SlotLoad {
    SlotLoad {
        reads: 1,
        bytes: u64::from(piece.len),
        transfer: u64::from(piece.transfer),
        ..SlotLoad::default()
    }
}

fn freed(len: u32) -> SlotLoad {
    SlotLoad { freed: u64::from(len), ..SlotLoad::default() }
}

fn planned(piece: PieceDue) -> BookedLoad {
    BookedLoad::of(&unread(piece))
}

/// Slots' worth of the network that may be used ahead of need: 10 s of 500 ms slots, what the
/// smaller of the usual players' buffers hold.
const AHEAD_SLOTS: u64 = 20;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::playout::{Lead, PlayoutClock, TrackPieces};
    use std::time::Duration;
    use units::Moment;

    #[test]
    fn whatever_a_stream_did_the_books_are_empty_when_it_has_left() {
        for seed in 0..300 {
            let mut random = fastrand::Rng::with_seed(seed);
            let due: Vec<u32> = (0..random.u32(1..40)).map(|i| i * 700).collect();
            let transfer: Vec<u32> = due.iter().map(|_| random.u32(..100)).collect();
            let followed: Vec<bool> = due.iter().map(|_| random.bool()).collect();
            let bytes = 10 * due.len() as u64 - 3;
            let curve = TrackPieces {
                due: &due,
                piece: 10,
                bytes,
                lead: Lead::default(),
                transfer: &transfer,
                followed: &followed,
            };
            let timing = PlayoutClock {
                origin: Moment::from_millis(random.u64(0..5000)),
                startup: Duration::from_secs(2),
                opens_after: Duration::ZERO,
                with_first_ms: 0,
                from_ms: 0,
                kept_from_ms: 0,
                kept_longer: 0,
                slot: Duration::from_millis(500),
                early: 0,
            };
            let mut books = DiskBooks::default();
            let pieces: Vec<PieceDue> = timing.pieces(curve, 0).collect();
            pieces.iter().for_each(|piece| books.book(*piece));
            let (mut held, mut unread) = (Vec::new(), pieces.into_iter().collect::<Vec<_>>());
            for step in 0..100u64 {
                books.advance(SlotIndex(step / 2));
                match random.u8(0..4) {
                    0 if !unread.is_empty() => {
                        let piece = unread.remove(0);
                        books.start_read(piece);
                        held.push(piece);
                    }
                    1 if !held.is_empty() => books.release(held.remove(0)),
                    2 => {
                        if let Some(piece) = held.pop() {
                            books.undo_read(piece);
                            unread.insert(0, piece);
                        }
                    }
                    _ => {}
                }
                assert_eq!(books.held(), held.iter().map(|p| u64::from(p.len)).sum::<u64>());
                assert_eq!(u64::from(books.total().reads), unread.len() as u64, "seed {seed}");
                assert_eq!(books.total().bytes, books.unread(), "seed {seed}");
            }
            held.into_iter().for_each(|piece| books.release(piece));
            unread.into_iter().for_each(|piece| books.unbook(piece));
            assert!(books.is_empty(), "seed {seed}: {:?}", books.total());
        }
    }

    #[test]
    fn the_network_carries_slack_forward_but_not_for_ever() {
        let piece = |due, len| PieceDue {
            piece: 0,
            due: SlotIndex(due),
            release: SlotIndex(due),
            len,
            transfer: 0,
            followed_after: None,
        };
        let verdict = |pieces: &[(u64, u32)], per_slot| {
            let mut demand = Demand::default();
            demand.add_track(pieces.iter().map(|(due, len)| piece(*due, *len)));
            NetworkBooks::default().verdict(&demand, per_slot)
        };
        assert_eq!(verdict(&[(1, 20)], 10), Ok(0), "due by the end of 1, sent by the end of 2");
        assert_eq!(verdict(&[(1, 21)], 10), Err((SlotIndex(1), 1)));
        assert_eq!(verdict(&[(4, 50), (5, 10)], 10), Ok(0), "sent ahead");
        assert_eq!(verdict(&[(60, 200)], 10), Ok(0), "as much as players buffer");
        assert_eq!(verdict(&[(60, 201)], 10), Err((SlotIndex(60), 1)), "and no more");
        assert_eq!(verdict(&[(3, 1)], 0), Err((SlotIndex(3), 1)), "no network");
    }
}
