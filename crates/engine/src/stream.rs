//! A stream: the delivery of one track to one session. It records which pieces are read and held,
//! which are unread, and the player's position.
//!
//! ```text
//!   pieces   first ......... base ............. cursor ............... end
//!            delivered,      held: read or      on the books,
//!            or released     being read         unread
//! ```
//!
//! A stream changes neither books nor buffers; the engine changes them in the same call.

mod handover;
mod moves;
mod sharing;

use super::buffers::{Location, PieceKey};
use super::pieces::{curve, key, place};
use super::{Layout, ReadId, SessionId, TrackNumber};
use scheduler::{PieceDue, PlayoutClock, RateSummary, TrackPieces};
use std::collections::{BTreeSet, VecDeque};
use std::ops::{Range, RangeInclusive};
use std::sync::Arc;
use std::time::Duration;
use units::{BitRate, ByteCount, Moment, SlotIndex};

/// Names a stream; older streams have smaller ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct StreamId(pub(super) u64);

pub(super) use sharing::Fed;

/// The state of a piece that was read for a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hold {
    /// The stream holds the buffer; `counted` once it is known whether it came in time.
    ///
    /// `safe`: it is in memory, so that no loss of a disk takes it away.
    Held { read: ReadId, piece: PieceDue, deadline: Moment, counted: Option<Counted>, safe: bool },
    /// Delivered whole, released, or unreadable.
    Gone,
}

/// What has been counted of a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Counted {
    /// The piece arrived in time. If it becomes unread before its deadline, it is counted again.
    OnTime,
    /// The final count of a piece: it was late, or it arrived in time and is read again after its
    /// deadline.
    ForGood,
}

/// The delivery of one track to one session: its pieces unread and held, and its player.
#[derive(Clone, Debug)]
pub(super) struct Stream {
    pub(super) session: SessionId,
    pub(super) layout: Arc<Layout>,
    pub(super) track: TrackNumber,
    pub(super) timing: PlayoutClock,
    /// The clock of the guaranteed deadlines, where reads follow a later clock (`timing`).
    guaranteed: Option<PlayoutClock>,
    /// The pieces that a feed reads and keeps for it.
    pub(super) fed: Option<Fed>,
    /// The clock by which pieces are released, where that is later than by `timing`.
    keeps: Option<PlayoutClock>,
    /// The stream reads for other streams and has no player: see `streams::feeds`.
    pub(super) is_feed: bool,
    /// Unread pieces with a final count. All are at least `cursor`.
    accounted: BTreeSet<u32>,
    /// The next piece to be read.
    pub(super) cursor: u32,
    /// The pieces before it were read from a disk that is lost since.
    read_elsewhere: u32,
    /// When it moved from there.
    moved: Option<Moment>,
    /// One past the last piece.
    pub(super) end: u32,
    /// The piece in which the player's next byte is expected.
    pub(super) position: u32,
    /// The end of the last byte that the player was given.
    delivered_to: u64,
    /// The pieces in which the first request may begin.
    start: RangeInclusive<u32>,
    /// The ends of the latest requests, oldest first; a contiguous request continues at one.
    ends: VecDeque<u64>,
    /// End of the start-up, before which delivery waits until all pieces due by then are in
    /// memory; see `streams::startup`. `None`: delivery has begun.
    pub(super) opens: Option<Moment>,
    /// The booking of policies that use only mean rates.
    pub(super) summary: RateSummary,
    /// The least slack of all decisions since it was admitted; see `streams::accounts`.
    pub(super) guaranteed_slack: Option<Duration>,
    /// When the player last requested or received data of this track.
    pub(super) last_activity: Moment,
    /// The disk with the copy that takes over after a loss; see `bookings::failover`.
    pub(super) replica: Option<usize>,
    /// The states of the pieces from `base` to `cursor`; the first is never `Gone`.
    holds: VecDeque<Hold>,
    base: u32,
}

/// A piece that was held and is unread again.
pub(super) struct UnreadPiece {
    pub(super) read: ReadId,
    pub(super) piece: PieceDue,
    /// The piece was counted as in time, which is to be taken back.
    pub(super) on_time: bool,
    pub(super) safe: bool,
}

impl Stream {
    /// Whether it holds a reservation of its disk, and does not follow another.
    pub(super) fn is_read(&self) -> bool {
        !self.is_done() && self.fed.is_none()
    }

    /// Mean rate of its track over the title.
    pub(super) fn mean_rate(&self) -> BitRate {
        let track = &self.layout.tracks[usize::from(self.track)];
        BitRate::of(ByteCount(track.bytes), self.layout.duration)
    }

    pub(super) fn new(
        session: SessionId,
        layout: Arc<Layout>,
        track: TrackNumber,
        timing: PlayoutClock,
        first: u32,
    ) -> Self {
        let curve = curve(&layout.tracks[usize::from(track)]);
        let end = curve.pieces();
        let first = first.min(end);
        let start = first..=curve.last_start(first, timing.from_ms);
        Self {
            session,
            track,
            last_activity: timing.origin,
            timing,
            guaranteed: None,
            fed: None,
            keeps: None,
            is_feed: false,
            accounted: BTreeSet::new(),
            cursor: first,
            read_elsewhere: 0,
            moved: None,
            end,
            position: first,
            delivered_to: 0,
            start,
            ends: VecDeque::new(),
            opens: Some(timing.deadline(timing.from_ms)),
            summary: RateSummary::default(),
            guaranteed_slack: None,
            replica: None,
            holds: VecDeque::new(),
            base: first,
            layout,
        }
    }

    /// The stream with more pieces at its end.
    pub(super) fn lengthened(&self, layout: &Arc<Layout>) -> Self {
        let mut longer = Self { layout: Arc::clone(layout), ..self.clone() };
        longer.end = longer.curve().pieces();
        longer
    }

    /// The piece before `end` is no longer the last one of the stream: it is kept until the next
    /// one is due, as if it were read now. Its place in the books must be changed at the same time.
    pub(super) fn hold_as_followed(&mut self, end: u32) {
        let Some(last) = end.checked_sub(1).filter(|_| end < self.end) else { return };
        let due = self.due(last);
        if let Some(Hold::Held { piece, .. }) = self.hold_mut(last) {
            piece.release = piece.release.max(due.release);
            piece.followed_after = due.followed_after;
        }
    }

    pub(super) fn curve(&self) -> TrackPieces<'_> {
        curve(&self.layout.tracks[usize::from(self.track)])
    }

    pub(super) fn key(&self, piece: u32) -> PieceKey {
        key(&self.layout, self.track, piece)
    }

    pub(super) fn place(&self, piece: u32) -> Location {
        place(&self.layout, self.track, piece)
    }

    /// The next piece to be read for it alone, with its slots.
    pub(super) fn next_read(&self) -> Option<PieceDue> {
        (self.cursor < self.booked_end()).then(|| self.due(self.cursor))
    }

    /// The clock of its player.
    pub(super) fn clock(&self) -> PlayoutClock {
        self.guaranteed.unwrap_or(self.timing)
    }

    pub(super) fn deadline(&self, piece: u32) -> Moment {
        self.clock().deadline(self.curve().due(piece))
    }

    /// The latest time at which the player needs `piece`, for the earliest possible position.
    pub(super) fn latest_need(&self, piece: u32) -> Moment {
        self.clock().kept().deadline(self.curve().due(piece))
    }

    /// Whether a request that begins at byte `start` goes on with what the player has asked for
    /// before, or begins where this schedule does. Otherwise it has jumped.
    pub(super) fn is_contiguous(&self, start: u64) -> bool {
        let piece = self.piece_at(start);
        if self.ends.is_empty() {
            // The first segment may begin in any of these pieces, so none of them is a seek.
            return self.start.contains(&piece);
        }
        let whole = self.is_whole();
        // Bytes of the same piece again are no seek: it is held until it is delivered to its end.
        let from = |end: u64| start <= end && piece == self.piece_at(end);
        self.ends
            .iter()
            // Between two segments of a presentation that skips media, a player passes over stored
            // bytes.
            .any(|end| if whole { from(*end) } else { self.skips_less_than_a_piece(*end, start) })
    }

    // Whether less than a piece lies between `end` and `start`.
    fn skips_less_than_a_piece(&self, end: u64, start: u64) -> bool {
        let last = self.piece_at(end);
        (last..=last.saturating_add(1)).contains(&self.piece_at(start))
    }

    /// Whether all stored pieces of the track are played, in stored order.
    pub(super) fn is_whole(&self) -> bool {
        self.layout.tracks[usize::from(self.track)].stored.is_empty()
    }

    /// The piece in which the player's next request begins. Before the first one it is the last at
    /// which it may begin: a player that may need no piece before it is not late for one.
    pub(super) fn expected_from(&self) -> u32 {
        // That may lie behind the end; a track that was not asked for is needed all the same.
        let last = (*self.start.end()).min(self.end.saturating_sub(1));
        if self.ends.is_empty() { self.position.max(last) } else { self.position }
    }

    /// Whether the player has asked for bytes of the track.
    pub(super) fn is_asked_for(&self) -> bool {
        !self.ends.is_empty()
    }

    /// The end of the last byte of the track that the player was given.
    pub(super) fn delivered_to(&self) -> u64 {
        self.delivered_to
    }

    /// The media time up to which the track has been delivered, by whole pieces.
    pub(super) fn delivered_until(&self) -> Duration {
        if self.position >= self.end {
            return self.layout.duration;
        }
        let from = Duration::from_millis(self.clock().from_ms.into());
        Duration::from_millis(self.curve().due(self.position).into()).max(from)
    }

    /// When the player has fetched again at the latest, if it plays on; zero at the end of a track,
    /// where nothing falls due any more.
    pub(super) fn next_need(&self) -> Moment {
        let piece = self.expected_from();
        if piece < self.end { self.latest_need(piece) } else { Moment::ZERO }
    }

    /// Notes that the player requests these bytes.
    pub(super) fn note_request(&mut self, bytes: &Range<u64>) {
        // It may begin at any of the first pieces; of those before the one it begins at it needs
        // none, so that it is not late for them.
        let first = self.piece_at(bytes.start);
        if self.start.contains(&self.position) && self.start.contains(&first) {
            self.position = self.position.max(first);
        }
        let mut ends = std::mem::take(&mut self.ends);
        let whole = self.is_whole();
        let next = |end: u64| end <= bytes.start && self.skips_less_than_a_piece(end, bytes.start);
        ends.retain(|end| if whole { *end != bytes.start } else { !next(*end) });
        self.ends = ends;
        if self.ends.len() == PARALLEL_REQUESTS {
            self.ends.pop_front();
        }
        self.ends.push_back(bytes.end);
    }

    /// Notes that the request that ended at `end` was cancelled with nothing delivered from `from`.
    pub(super) fn note_cancelled(&mut self, from: u64, end: u64) {
        for other in self.ends.iter_mut().filter(|other| **other == end) {
            *other = from;
        }
    }

    /// Pieces that are past their deadline, not in memory and not counted yet, with their
    /// deadlines.
    pub(super) fn overdue(&self, now: Moment) -> Vec<(u32, Moment)> {
        let missed = |(_, deadline): &(u32, Moment)| *deadline < now;
        let held = self.holds.iter().zip(self.base..).filter_map(|(hold, piece)| match hold {
            Hold::Held { deadline, counted: None, .. } => Some((piece, *deadline)),
            _ => None,
        });
        let unread = (self.cursor..self.end).map(|piece| (piece, self.deadline(piece)));
        // Deadlines never go back, so the first one that is not missed ends the search.
        let overdue_unread =
            unread.take_while(missed).filter(|(piece, _)| !self.accounted.contains(piece));
        held.filter(missed).chain(overdue_unread).collect()
    }

    /// Notes that a piece, held or unread, was counted as late.
    pub(super) fn account(&mut self, piece: u32) {
        if piece >= self.cursor {
            self.accounted.insert(piece);
        } else if let Some(Hold::Held { counted, .. }) = self.hold_mut(piece) {
            *counted = Some(Counted::ForGood);
        }
    }

    /// Everything unread, in order.
    pub(super) fn unread(&self) -> impl Iterator<Item = PieceDue> + '_ {
        let pieces = |clock: PlayoutClock| clock.pieces(self.curve(), self.cursor);
        let mut kept = self.keeps.map(pieces);
        let booked = pieces(self.timing).map(|piece| self.within_patch(piece));
        booked.map(move |piece| match kept.as_mut().and_then(Iterator::next) {
            None => piece,
            Some(kept) => PieceDue { release: piece.release.max(kept.release), ..piece },
        })
    }

    /// Whether a piece was read from a disk that is lost since: its read is no work of its disk.
    pub(super) fn was_read_elsewhere(&self, piece: u32) -> bool {
        piece < self.read_elsewhere
    }

    /// Everything held.
    pub(super) fn held(&self) -> impl Iterator<Item = (ReadId, PieceDue)> + '_ {
        self.holds.iter().filter_map(|hold| match hold {
            Hold::Held { read, piece, .. } => Some((*read, *piece)),
            Hold::Gone => None,
        })
    }

    /// What is held, the last piece first, until one that is not.
    pub(super) fn held_from_end(&self) -> impl Iterator<Item = (ReadId, PieceDue)> + '_ {
        self.holds.iter().rev().map_while(|hold| match hold {
            Hold::Held { read, piece, .. } => Some((*read, *piece)),
            Hold::Gone => None,
        })
    }

    /// The piece that holds the byte at `offset` of the track.
    pub(super) fn piece_at(&self, offset: u64) -> u32 {
        self.curve().piece_at(offset)
    }

    /// Whether the booking is empty: nothing unread, nothing held.
    pub(super) fn is_done(&self) -> bool {
        self.cursor == self.end && self.held().next().is_none()
    }

    /// The next piece is being read into `read`, or found there.
    pub(super) fn hold_next(&mut self, piece: PieceDue, read: ReadId) {
        let deadline = self.deadline(piece.piece);
        // The piece may have been counted as late before it became unread: once is enough.
        let counted = self.accounted.remove(&piece.piece).then_some(Counted::ForGood);
        self.holds.push_back(Hold::Held { read, piece, deadline, counted, safe: false });
        self.cursor += 1;
    }

    /// Releases `piece` if it is held; returns its buffer, its slots and whether it was safe.
    pub(super) fn release(&mut self, piece: u32) -> Option<(ReadId, PieceDue, bool)> {
        let hold = self.hold_mut(piece)?;
        let Hold::Held { read, piece, safe, .. } = *hold else { return None };
        *hold = Hold::Gone;
        // Pieces are numbered from `base`, which must be a held one for the list to stay short.
        while self.holds.front() == Some(&Hold::Gone) {
            self.holds.pop_front();
            self.base += 1;
        }
        Some((read, piece, safe))
    }

    /// Unreads the last piece taken up, if it is held.
    pub(super) fn unread_last(&mut self, now: Moment) -> Option<UnreadPiece> {
        match self.holds.back() {
            Some(Hold::Held { .. }) => self.pop_hold(now),
            _ => None,
        }
    }

    /// Unreads all pieces from the first that is still being read; returns those that were held.
    pub(super) fn unread_from(
        &mut self,
        now: Moment,
        is_reading: impl Fn(ReadId) -> bool,
    ) -> Vec<UnreadPiece> {
        let reading = |hold: &Hold| matches!(hold, Hold::Held { read, .. } if is_reading(*read));
        // Only the last pieces can become unread: what is unread is all from the cursor on.
        let first = self.holds.iter().position(reading).unwrap_or(self.holds.len());
        let mut held = Vec::new();
        while self.holds.len() > first {
            held.extend(self.pop_hold(now));
        }
        held
    }

    // Unreads the last piece. A piece that was late, that was in memory at its deadline, or that
    // was delivered is not counted again.
    fn pop_hold(&mut self, now: Moment) -> Option<UnreadPiece> {
        let last = self.holds.pop_back()?;
        self.cursor -= 1;
        self.read_elsewhere = self.read_elsewhere.min(self.cursor);
        let Hold::Held { read, piece, deadline, counted, safe } = last else {
            self.accounted.insert(self.cursor);
            return None;
        };
        // Before its deadline, which a later schedule may have moved since the piece was counted,
        // it may still become late, so its count is to be taken back.
        let last = deadline.max(self.deadline(piece.piece));
        let on_time = counted == Some(Counted::OnTime) && now <= last;
        if counted.is_some() && !on_time {
            self.accounted.insert(self.cursor);
        }
        Some(UnreadPiece { read, piece, on_time, safe })
    }

    /// Everything held, and whether it is safe.
    pub(super) fn held_and_safe(&self) -> impl Iterator<Item = (PieceDue, bool)> + '_ {
        self.holds.iter().filter_map(|hold| match hold {
            Hold::Held { piece, safe, .. } => Some((self.due(piece.piece), *safe)),
            Hold::Gone => None,
        })
    }

    /// `piece` is in memory. True the first time that a held one is.
    pub(super) fn make_safe(&mut self, piece: u32) -> bool {
        match self.hold_mut(piece) {
            Some(Hold::Held { safe, .. }) => !std::mem::replace(safe, true),
            _ => false,
        }
    }

    /// The buffer in which `piece` is held.
    pub(super) fn read_of(&self, piece: u32) -> Option<ReadId> {
        let at = usize::try_from(piece.checked_sub(self.base)?).ok()?;
        match self.holds.get(at)? {
            Hold::Held { read, .. } => Some(*read),
            Hold::Gone => None,
        }
    }

    /// The slot in which a held piece is due for the deadline by which it is counted: a later
    /// schedule moves its slots, but not that deadline.
    pub(super) fn due_of_held(&self, piece: u32) -> Option<SlotIndex> {
        let at = usize::try_from(piece.checked_sub(self.base)?).ok()?;
        let Hold::Held { deadline, .. } = self.holds.get(at)? else { return None };
        let last = SlotIndex::at(*deadline, self.timing.slot).0;
        Some(SlotIndex(last.saturating_sub(1 + u64::from(self.timing.early))))
    }

    /// The last piece taken up, if it is held.
    pub(super) fn last_held(&self) -> Option<(ReadId, PieceDue)> {
        match self.holds.back() {
            Some(Hold::Held { read, piece, .. }) => Some((*read, *piece)),
            _ => None,
        }
    }

    /// The pieces that it holds in buffer `read`: one, or two where it shows the same bytes twice.
    pub(super) fn holds_in(&self, read: ReadId) -> Vec<u32> {
        self.held().filter(|(held, _)| *held == read).map(|(_, piece)| piece.piece).collect()
    }

    /// `piece` is being read again, into another buffer.
    pub(super) fn now_reads(&mut self, piece: u32, again: ReadId) {
        if let Some(Hold::Held { read, .. }) = self.hold_mut(piece) {
            *read = again;
        }
    }

    /// The state of a piece between base and cursor.
    pub(super) fn hold_mut(&mut self, piece: u32) -> Option<&mut Hold> {
        let at = usize::try_from(piece.checked_sub(self.base)?).ok()?;
        self.holds.get_mut(at)
    }

    /// The player has taken `piece` up to byte `end` of the track, which is its end or not.
    pub(super) fn delivered(&mut self, piece: u32, end: u64, whole: bool) {
        // Two responses in parallel are delivered out of order; the position does not go back.
        self.delivered_to = self.delivered_to.max(end);
        self.position = self.position.max(if whole { piece + 1 } else { piece });
    }

    pub(super) fn due(&self, piece: u32) -> PieceDue {
        let curve = self.curve();
        let release = self.timing.release_slot(&curve, piece);
        let kept = self.keeps.map(|clock| clock.release_slot(&curve, piece));
        self.within_patch(PieceDue {
            piece,
            due: self.timing.due_slot(curve.due(piece)),
            release: kept.map_or(release, |kept| release.max(kept)),
            len: curve.len(piece),
            transfer: curve.transfer(piece),
            followed_after: self.timing.followed_after(&curve, piece),
        })
    }
}

/// Responses of one track that a player may take at the same time and still go on with each.
const PARALLEL_REQUESTS: usize = 2;
