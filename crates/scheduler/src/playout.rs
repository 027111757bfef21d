//! The play-out clock of one viewer: by when each piece of a track must be in memory, and until
//! when its buffer is kept.
//!
//! ```text
//!   due (ms of media)      0   0   0   4000  4000  8000 ...
//!   deadline (clock)       o+startup    o+max(startup, 4 s − slot)  ...
//!   due slot               the last slot that ends by the deadline
//!   released               HOLD_SLOTS after the *next* piece's due slot: a segment's end and the
//!                          next one's start share a piece
//! ```
//!
//! A piece is due one slot before a player that started the moment it was admitted would play it
//! (double buffering: read in one slot, sent in the next). It is deliberately ignorant of what the
//! player has asked for.

use crate::piece::PieceDue;
use std::time::Duration;
use units::{Moment, SlotIndex, nanos};

/// A track as demand sees it: pieces of one size, and when each is due.
#[derive(Clone, Copy, Debug)]
pub struct TrackPieces<'a> {
    /// Per piece, media time in milliseconds; never decreases.
    pub due: &'a [u32],
    /// Bytes of a piece; not zero.
    pub piece: u32,
    /// Bytes of the track; the last piece has what is left.
    pub bytes: u64,
    /// The beginning, whose pieces end where segments do.
    pub lead: Lead,
    /// Per piece, nanoseconds that its disk transfers ([`disk::Costs::transfer`]); empty where disk
    /// time is not counted.
    pub transfer: &'a [u32],
    /// Per piece, whether the next one goes on where it ends, and both are long enough for their
    /// disk to take them for one visit ([`disk::Costs::shortest_following`]). Where the list is
    /// too short, it does not.
    pub followed: &'a [bool],
}

/// The beginning of a track, which ends where a segment does. By default there is none.
///
/// ```text
///   pieces          ├── piece ──┼── piece ──┼── piece ──┼ ...
///   with a lead     ├────┼──────────┼───────┼── piece ──┼ ...      of two pieces
///                      middle      end
///                   ├── piece ──┼── piece ──┼───┼───────┼ ...      of more
///                            middle            end
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lead {
    /// The first byte of its second piece: a piece from the start, or where a segment ends before,
    /// if what is left of the lead is one piece.
    pub middle: u64,
    /// The byte behind it, where the piece that contains it is cut in two. More than a piece; zero:
    /// there is no lead.
    pub end: u64,
}

impl<'a> TrackPieces<'a> {
    /// A track of which only the pieces are known.
    pub fn of_size(bytes: u64, piece: u32, lead: Lead) -> Self {
        Self { due: &[], piece, bytes, lead, transfer: &[], followed: &[] }
    }

    /// A track whose pieces are due at these times.
    #[must_use]
    pub fn due_at(self, due: &'a [u32]) -> Self {
        Self { due, ..self }
    }
}

impl TrackPieces<'_> {
    /// How many pieces there are.
    pub fn pieces(&self) -> u32 {
        let pieces = self.bytes.div_ceil(u64::from(self.piece.max(1)));
        u32::try_from(pieces + u64::from(self.cut().is_some())).unwrap_or(u32::MAX)
    }

    // The number of the piece that is cut in two.
    fn cut(&self) -> Option<u64> {
        let (piece, end) = (u64::from(self.piece.max(1)), self.lead.end);
        let cuts = end < self.bytes && !end.is_multiple_of(piece);
        cuts.then(|| end / piece)
    }

    /// The first byte of `piece`.
    pub fn start(&self, piece: u32) -> u64 {
        let (number, size) = (u64::from(piece), u64::from(self.piece));
        match self.cut() {
            _ if number == 1 && self.lead.end > 0 => self.lead.middle,
            Some(cut) if number == cut + 1 => self.lead.end,
            Some(cut) if number > cut => (number - 1) * size,
            _ => number * size,
        }
    }

    /// The piece that holds a byte.
    pub fn piece_at(&self, byte: u64) -> u32 {
        let number = byte / u64::from(self.piece.max(1));
        let number = match self.lead {
            Lead { middle, .. } if byte < middle => 0,
            Lead { end, .. } if byte < end => number.max(1),
            _ => number + u64::from(self.cut().is_some()),
        };
        u32::try_from(number).unwrap_or(u32::MAX)
    }

    /// The first byte of each piece, in order.
    pub fn starts(&self) -> impl Iterator<Item = u64> {
        (0..self.pieces()).map(|piece| self.start(piece))
    }

    /// Bytes of `piece`; zero beyond the end.
    pub fn len(&self, piece: u32) -> u32 {
        let end = self.start(piece.saturating_add(1)).min(self.bytes);
        u32::try_from(end.saturating_sub(self.start(piece))).expect("not above a piece")
    }

    /// Nanoseconds that the disk transfers for `piece`; nothing where that is not counted.
    pub fn transfer(&self, piece: u32) -> u32 {
        let i = usize::try_from(piece).unwrap_or(usize::MAX);
        // One entry serves a track whose pieces all take the same transfer.
        self.transfer.get(i).or(self.transfer.last()).copied().unwrap_or(0)
    }

    /// Whether the next piece goes on where `piece` ends.
    pub fn is_followed(&self, piece: u32) -> bool {
        let i = usize::try_from(piece).unwrap_or(usize::MAX);
        // The last piece has no next one, whatever the list says.
        self.followed.get(i).copied().unwrap_or(false) && piece.saturating_add(1) < self.pieces()
    }

    /// Whether the track has no bytes.
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// When `piece` is due in media time. A list that is too short goes on with its last entry.
    pub fn due(&self, piece: u32) -> u32 {
        let i = usize::try_from(piece).unwrap_or(usize::MAX);
        self.due.get(i).or(self.due.last()).copied().unwrap_or(0)
    }

    /// Whether this is a track at all: pieces of some size, a lead that is some of them, due times
    /// that never decrease.
    pub fn is_valid(&self) -> bool {
        let (piece, Lead { middle, end }) = (u64::from(self.piece), self.lead);
        let is_divided = (1..piece).contains(&middle) && end <= middle + piece;
        let has_pieces = end > piece && (middle == piece || is_divided);
        piece > 0 && (self.lead == Lead::default() || has_pieces) && self.due.is_sorted()
    }

    /// The first piece that is needed to play from `from_ms`: of all pieces due by then, the one
    /// before the first of the last due time (a segment starts within the piece before its own).
    pub fn first_needed(&self, from_ms: u32) -> u32 {
        let after = self.due.partition_point(|due| *due <= from_ms);
        let Some(last_due) = after.checked_sub(1).map(|i| self.due[i]) else { return 0 };
        let first = self.due.partition_point(|due| *due < last_due).saturating_sub(1);
        let pieces = self.pieces();
        // A due list that is longer than the track must not name a piece beyond its end.
        u32::try_from(first).unwrap_or(u32::MAX).min(pieces.saturating_sub(1))
    }

    /// The last piece in which a segment that starts at `from_ms` may begin; `first` is the first
    /// piece needed. The segment begins within the piece before the first that is due with it. A
    /// segment that lies wholly in the last piece of a longer one has no piece due with it: it
    /// begins in the last piece that is due before.
    pub fn last_start(&self, first: u32, from_ms: u32) -> u32 {
        let next = first.saturating_add(1);
        let due_by = self.due.partition_point(|due| *due <= from_ms);
        match due_by.checked_sub(1) {
            Some(last) if self.due[last] < from_ms => {
                u32::try_from(last).unwrap_or(u32::MAX).max(next)
            }
            _ => next,
        }
    }
}

/// How media time becomes the clock's time for one play-out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlayoutClock {
    /// When the play-out was granted.
    pub origin: Moment,
    /// From there until the first piece must be in memory.
    pub startup: Duration,
    /// From `origin` until play-out starts at the earliest, because nothing is delivered before;
    /// at most `startup`. Deadlines after the first count from there.
    pub opens_after: Duration,
    /// Pieces due before this media time, in milliseconds, are due with the first, so that one
    /// visit reads them. Zero: none are. Buffers are kept as if it were zero.
    pub with_first_ms: u32,
    /// Where it starts, in milliseconds of media time, at the latest: pieces are due as if here.
    pub from_ms: u32,
    /// Where it starts at the earliest: buffers are kept as if here. Not above `from_ms`.
    pub kept_from_ms: u32,
    /// Slots by which buffers are kept longer than that.
    pub kept_longer: u32,
    /// The scheduling period.
    pub slot: Duration,
    /// Slots by which pieces are due before the last that would do; not more than lie between
    /// `origin` and the first deadline. Buffers are kept as if it were zero.
    pub early: u32,
}

impl PlayoutClock {
    /// When a piece due at `due_ms` of media time must be in memory.
    pub fn deadline(&self, due_ms: u32) -> Moment {
        let due_ms = if due_ms < self.with_first_ms { self.from_ms } else { due_ms };
        let ahead = Duration::from_millis(u64::from(due_ms.saturating_sub(self.from_ms)));
        let ahead = ahead + self.opens_after;
        // Not before the first piece: a promise of a later one earlier would turn EDF round.
        let wait = ahead.saturating_sub(self.slot).max(self.startup);
        self.origin + wait.min(self.horizon())
    }

    /// The media time that a player has come to at `now`, which began as soon as it could.
    pub fn media_time(&self, now: Moment) -> Duration {
        let from = Duration::from_millis(self.from_ms.into());
        let played = i128::from(now.0) - self.zero();
        Duration::from_nanos(u64::try_from(played).unwrap_or(0)).max(from)
    }

    /// The last slot that ends by the deadline, or so much earlier.
    pub fn due_slot(&self, due_ms: u32) -> SlotIndex {
        let last = SlotIndex::at(self.deadline(due_ms), self.slot).0;
        // The slot that contains the deadline ends after it, so the one before is the last in time.
        SlotIndex(last.saturating_sub(1 + u64::from(self.early)))
    }

    /// At the end of which slot the buffer of `piece` is let go if nobody came for it.
    pub fn release_slot(&self, curve: &TrackPieces<'_>, piece: u32) -> SlotIndex {
        let next = piece.saturating_add(1).min(curve.pieces().saturating_sub(1)).max(piece);
        // Reads are made early, but the player does not play early: releases ignore `early`.
        Self { early: 0, ..self.kept() }.due_slot(curve.due(next)) + HOLD_SLOTS
    }

    /// How many slots after `piece` the next one is due, if that goes on where it ends.
    pub fn followed_after(&self, curve: &TrackPieces<'_>, piece: u32) -> Option<u8> {
        let due = |piece| self.due_slot(curve.due(piece));
        gap(curve, piece, due(piece), due(piece.saturating_add(1)))
    }

    /// Whether no piece is due sooner by this clock than by `other`. Both are of one server, with
    /// one start-up and one slot.
    pub fn is_not_before(&self, other: &Self) -> bool {
        self.origin >= other.origin && self.zero() >= other.zero()
    }

    /// The clock by which a buffer is kept as long as by this clock and as by `other`, whichever
    /// keeps it longer. Both are of one server, with one start-up and one slot.
    ///
    /// A deadline is the later of `origin + startup` and `origin - from + due - slot`. The later of
    /// two clocks' deadlines therefore has the later `origin` and the later `origin - from`.
    #[must_use]
    pub fn kept_as_long_as_both(&self, other: &Self) -> Self {
        let (one, two) = (self.kept(), other.kept());
        let origin = one.origin.max(two.origin);
        let ahead = i128::from(origin.0) - one.zero().max(two.zero());
        let opens_after = one.opens_after.max(two.opens_after);
        let ahead = ahead + i128::from(nanos(opens_after));
        // Rounded down: media time that starts earlier keeps a buffer longer.
        let from_ms = u32::try_from(ahead / 1_000_000).expect("not above the larger of both");
        Self { origin, from_ms, kept_from_ms: from_ms, opens_after, early: 0, ..one }
    }

    /// How much longer buffers are kept by this clock than by `other`, far from their starts.
    pub fn keeps_longer_by(&self, other: &Self) -> Duration {
        let longer = self.kept().zero() - other.kept().zero();
        Duration::from_nanos(u64::try_from(longer).unwrap_or(0))
    }

    // When media time 0 would be played, in nanoseconds.
    fn zero(&self) -> i128 {
        let opens = self.origin + self.opens_after;
        i128::from(opens.0) - i128::from(self.from_ms) * 1_000_000
    }

    /// The play-out by which buffers are kept: as if it started as early as it may.
    pub fn kept(&self) -> Self {
        let origin = self.origin + self.slot.saturating_mul(self.kept_longer);
        let from_ms = self.kept_from_ms.min(self.from_ms);
        Self { origin, from_ms, with_first_ms: 0, kept_longer: 0, ..*self }
    }

    /// All pieces from `first` on with their slots, in order. The same numbers as the methods
    /// above, without a division per piece.
    pub fn pieces<'a>(
        &self,
        curve: TrackPieces<'a>,
        first: u32,
    ) -> impl Iterator<Item = PieceDue> + use<'a> {
        // `early` is subtracted from due slots at the end, because releases are computed without
        // it.
        let (early, walked) = (u64::from(self.early), Self { early: 0, ..*self });
        let mut walk = SlotWalk::new(walked);
        // Usually the same walk.
        let mut kept = (walked.kept() != walked).then(|| SlotWalk::new(walked.kept()));
        let end = curve.pieces();
        let mut next_due = walk.slot(curve.due(first));
        let even = curve.lead.end == 0;
        let mut left = curve.bytes.saturating_sub(curve.start(first));
        let one_transfer = (curve.transfer.len() == 1).then(|| curve.transfer(0));
        // What has a due time of its own after it, and what a list that is too short says nothing
        // of, or comes last.
        let listed = curve.due.get(usize::try_from(first).unwrap_or(usize::MAX)..);
        let mut nexts = listed.unwrap_or(&[]).iter().skip(1);
        let mut last_ms = curve.due(first);
        (first..end).map(move |piece| {
            last_ms = nexts.next().copied().unwrap_or(last_ms);
            let next_ms = if piece + 1 < end { last_ms } else { curve.due(piece) };
            let due = std::mem::replace(&mut next_due, walk.slot(next_ms));
            let next = kept.as_mut().map_or(next_due, |kept| kept.slot(next_ms));
            let len = match even {
                true => u32::try_from(left).unwrap_or(u32::MAX).min(curve.piece),
                false => curve.len(piece),
            };
            left -= u64::from(len);
            let transfer = one_transfer.unwrap_or_else(|| curve.transfer(piece));
            let early = |slot: SlotIndex| SlotIndex(slot.0.saturating_sub(early));
            let followed_after = gap(&curve, piece, early(due), early(next_due));
            let (due, release) = (early(due), next + HOLD_SLOTS);
            PieceDue { piece, due, release, len, transfer, followed_after }
        })
    }

    fn horizon(&self) -> Duration {
        self.slot.saturating_mul(MAX_HORIZON_SLOTS)
    }
}

// Slots from a piece to the one that goes on where it ends, if that is not too far off to matter.
fn gap(curve: &TrackPieces<'_>, piece: u32, due: SlotIndex, next_due: SlotIndex) -> Option<u8> {
    let followed = curve.is_followed(piece);
    followed.then(|| u8::try_from(next_due.0.saturating_sub(due.0)).ok()).flatten()
}

// Finds the slots of a never decreasing sequence of due times by walking forward. The same numbers
// as `PlayoutClock`'s methods, in plain nanoseconds: an hour's title has thousands of pieces, and
// whoever decides on it asks for all of them several times.
struct SlotWalk {
    from_ms: u32,
    with_first_ms: u32,
    /// When media time `from_ms` is played.
    opens: u64,
    slot_nanos: u64,
    /// No deadline is before the first of these times, and none after the second.
    bounds: (u64, u64),
    slot: SlotIndex,
    next_start: u64,
}

impl SlotWalk {
    fn new(timing: PlayoutClock) -> Self {
        let slot_nanos = nanos(timing.slot);
        let slot = timing.due_slot(timing.from_ms);
        let after = |time| timing.origin.0.saturating_add(nanos(time));
        Self {
            from_ms: timing.from_ms,
            with_first_ms: timing.with_first_ms,
            // Any media time in milliseconds can be added, in nanoseconds.
            opens: after(timing.opens_after).min(u64::MAX / 2),
            slot_nanos,
            bounds: (after(timing.startup.min(timing.horizon())), after(timing.horizon())),
            slot,
            // `slot` stays the last that ends by the deadline until slot + 1 ends, where slot + 2
            // starts.
            next_start: (slot.0 + 2).saturating_mul(slot_nanos),
        }
    }

    fn deadline(&self, due_ms: u32) -> u64 {
        let due_ms = if due_ms < self.with_first_ms { self.from_ms } else { due_ms };
        let ahead = u64::from(due_ms.saturating_sub(self.from_ms)) * 1_000_000;
        let (earliest, latest) = self.bounds;
        (self.opens + ahead).saturating_sub(self.slot_nanos).max(earliest).min(latest)
    }

    fn slot(&mut self, due_ms: u32) -> SlotIndex {
        let deadline = self.deadline(due_ms);
        // At u64::MAX the start has saturated: the walk stays in the last slot that it can name.
        if deadline >= self.next_start && self.next_start != u64::MAX {
            // One division costs fewer instructions than a loop over slots.
            let slots = (deadline - self.next_start) / self.slot_nanos + 1;
            self.slot = self.slot + slots;
            self.next_start = self.next_start.saturating_add(slots.saturating_mul(self.slot_nanos));
        }
        self.slot
    }
}

/// Slots that a buffer is kept after the next piece is due: one in which an on-time player
/// fetches it, one for the socket to take it.
pub const HOLD_SLOTS: u64 = 2;

/// No deadline lies further ahead than this (three days of 500 ms slots): bounds the books of a
/// title with absurd times. What is due later is due then, which only asks more of the disk.
pub const MAX_HORIZON_SLOTS: u32 = 1 << 19;

#[cfg(test)]
mod tests {
    use super::*;

    const SLOT: Duration = Duration::from_millis(500);

    fn timing(origin_ms: u64, from_ms: u32) -> PlayoutClock {
        PlayoutClock {
            origin: Moment::from_millis(origin_ms),
            startup: Duration::from_secs(2),
            opens_after: Duration::ZERO,
            with_first_ms: 0,
            from_ms,
            kept_from_ms: from_ms,
            kept_longer: 0,
            slot: SLOT,
            early: 0,
        }
    }

    #[test]
    fn pieces_are_due_a_slot_before_they_are_played_and_never_before_the_first() {
        let due = [0, 0, 4000, 4200, 8000];
        let curve = TrackPieces::of_size(450, 100, Lead::default()).due_at(&due);
        let table: Vec<_> = timing(10_250, 0)
            .pieces(curve, 0)
            .map(|p| (p.piece, p.due.0, p.release.0, p.len))
            .collect();
        // Admitted at 10.25 s, in slot 20. The first segment must be there at 12.25 s: by the end
        // of slot 23 (12.0 s). The second is played at 14.25 s, so it is there by 13.75 s.
        assert_eq!(
            table,
            [
                (0, 23, 25, 100),
                (1, 23, 28, 100),
                (2, 26, 28, 100),
                (3, 26, 36, 100),
                (4, 34, 36, 50)
            ]
        );
    }

    #[test]
    fn a_lead_is_some_pieces_and_the_others_end_where_they_would_without_it() {
        let starts = |bytes, middle, end| {
            let curve = TrackPieces::of_size(bytes, 100, Lead { middle, end });
            assert!(curve.is_valid());
            let starts: Vec<u64> = curve.starts().collect();
            for byte in 0..bytes {
                let piece = starts.partition_point(|start| *start <= byte) - 1;
                assert_eq!(curve.piece_at(byte), u32::try_from(piece).unwrap(), "byte {byte}");
            }
            let lens = (0..curve.pieces()).map(|piece| u64::from(curve.len(piece)));
            assert_eq!(lens.sum::<u64>(), bytes);
            starts
        };
        assert_eq!(starts(350, 0, 0), [0, 100, 200, 300]);
        assert_eq!(starts(350, 60, 120), [0, 60, 120, 200, 300]);
        assert_eq!(starts(350, 100, 120), [0, 100, 120, 200, 300]);
        assert_eq!(starts(350, 100, 200), [0, 100, 200, 300]);
        assert_eq!(starts(150, 60, 150), [0, 60]);
        assert_eq!(starts(450, 100, 220), [0, 100, 200, 220, 300, 400]);
        assert_eq!(starts(450, 100, 300), [0, 100, 200, 300, 400]);
        for (middle, end) in
            [(0, 120), (101, 150), (60, 60), (60, 161), (20, 100), (90, 201), (5, 0)]
        {
            let curve = TrackPieces::of_size(350, 100, Lead { middle, end });
            assert!(!curve.is_valid(), "{middle} {end}");
        }
    }

    #[test]
    fn walking_gives_the_same_slots_as_computing_each() {
        for seed in 0..300 {
            let mut random = fastrand::Rng::with_seed(seed);
            let mut ms = 0;
            let due: Vec<u32> = (0..random.u32(1..60))
                .map(|_| {
                    ms += random.u32(0..3000);
                    ms
                })
                .collect();
            let followed: Vec<bool> = due.iter().map(|_| random.bool()).collect();
            let end = random.u64(65..=128);
            let lead = Lead { middle: random.u64((end - 64)..=64), end };
            let curve = TrackPieces {
                due: &due,
                piece: 64,
                bytes: 64 * due.len() as u64 - 7,
                lead: if random.bool() { lead } else { Lead::default() },
                transfer: &[],
                followed: &followed,
            };
            let from_ms = random.u32(0..20_000);
            let timing = PlayoutClock {
                kept_from_ms: random.u32(0..=from_ms),
                kept_longer: random.u32(0..5),
                early: random.u32(0..3),
                opens_after: SLOT * random.u32(0..3),
                with_first_ms: random.u32(0..40_000) * random.u32(0..2),
                ..timing(random.u64(0..9999), from_ms)
            };
            let first = random.u32(0..curve.pieces());
            for piece in timing.pieces(curve, first) {
                let followed_after = timing.followed_after(&curve, piece.piece);
                assert_eq!(piece.followed_after, followed_after, "seed {seed}");
                assert_eq!(piece.due, timing.due_slot(curve.due(piece.piece)), "seed {seed}");
                assert_eq!(piece.release, timing.release_slot(&curve, piece.piece), "seed {seed}");
                assert!(
                    (piece.due + 1).start(SLOT) <= timing.deadline(curve.due(piece.piece)),
                    "the due slot ends by the deadline; seed {seed}"
                );
                let late = PlayoutClock { early: 0, ..timing };
                let due = late.due_slot(curve.due(piece.piece));
                assert_eq!(piece.due + u64::from(timing.early), due, "seed {seed}");
                assert_eq!(piece.release, late.release_slot(&curve, piece.piece), "seed {seed}");
            }
        }
    }

    #[test]
    fn where_the_start_is_not_known_pieces_come_early_and_stay_late() {
        let due = [0, 4000, 8000, 12_000];
        let curve = TrackPieces::of_size(400, 100, Lead::default()).due_at(&due);
        let slots = |from_ms, kept_from_ms| -> Vec<_> {
            let timing = PlayoutClock { kept_from_ms, ..timing(0, from_ms) };
            timing.pieces(curve, 0).map(|p| (p.due.0, p.release.0)).collect()
        };
        assert_eq!(slots(0, 0), [(3, 8), (6, 16), (14, 24), (22, 24)]);
        assert_eq!(slots(4000, 4000), [(3, 5), (3, 8), (6, 16), (14, 16)]);
        assert_eq!(slots(4000, 0), [(3, 8), (3, 16), (6, 24), (14, 24)]);
    }

    #[test]
    fn playing_from_the_middle_starts_with_the_segment_that_holds_it() {
        let due = [0, 0, 4000, 4000, 8000];
        let curve = TrackPieces::of_size(500, 100, Lead::default()).due_at(&due);
        let first: Vec<u32> =
            [0, 3999, 4000, 7999, 8000, 99_999].map(|ms| curve.first_needed(ms)).into();
        assert_eq!(first, [0, 0, 1, 1, 3, 3]);
    }

    #[test]
    fn absurd_tracks_give_defined_answers() {
        let empty = TrackPieces::of_size(0, 100, Lead::default());
        assert_eq!((empty.pieces(), empty.first_needed(5), empty.len(3)), (0, 0, 0));
        let no_times = TrackPieces::of_size(250, 100, Lead::default());
        assert_eq!((no_times.pieces(), no_times.due(2), no_times.len(2)), (3, 0, 50));
        assert!(!TrackPieces::of_size(200, 100, Lead::default()).due_at(&[5, 4]).is_valid());
        assert!(!TrackPieces::of_size(200, 0, Lead::default()).is_valid());
        let far = timing(0, 0).due_slot(u32::MAX);
        assert!(far.0 <= u64::from(MAX_HORIZON_SLOTS) + 4, "{far:?}");
    }
}
