//! What a stream does not read itself: a feed reads and keeps it. See `streams::feeds`.

use super::{Counted, Hold, Stream, StreamId};
use crate::ReadId;
use scheduler::{PieceDue, PlayoutClock, RateSummary};
use std::time::Duration;
use units::{Moment, SlotIndex};

/// Which pieces of a stream are read and kept by a feed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fed {
    /// The feed. Of a candidate: the feed, or the stream that becomes one.
    pub(crate) feed: StreamId,
    /// The first of these pieces. What comes before it, the stream reads itself (the patch).
    pub(crate) from: u32,
}

/// What a stream that goes on without its feed has taken from it.
#[derive(Default)]
pub(crate) struct Absorbed {
    /// The buffers that it goes on with and did not hold itself.
    pub(crate) taken: Vec<ReadId>,
    /// The buffers that it does not need.
    pub(crate) spare: Vec<ReadId>,
    /// The deadlines of pieces that the feed has released, and that were not counted.
    pub(crate) missed: Vec<Moment>,
}

/// What is on the books for it.
impl Stream {
    /// One past the last piece that is on its disk's books for it.
    pub(super) fn booked_end(&self) -> u32 {
        self.fed.map_or(self.end, |fed| fed.from.min(self.end))
    }

    /// Whether a feed reads and keeps `piece` for it.
    pub(crate) fn is_fed(&self, piece: u32) -> bool {
        self.fed.is_some_and(|fed| piece >= fed.from)
    }

    /// What is unread and read for it alone, in order.
    pub(crate) fn booked_unread(&self) -> impl Iterator<Item = PieceDue> + '_ {
        let pieces = self.booked_end().saturating_sub(self.cursor);
        self.unread().take(usize::try_from(pieces).unwrap_or(usize::MAX))
    }

    /// What it holds and has read itself.
    pub(crate) fn booked_held(&self) -> impl Iterator<Item = PieceDue> + '_ {
        self.held().map(|(_, piece)| piece).filter(|piece| !self.is_fed(piece.piece))
    }

    /// What its player has not been sent: unread, or held until it is released.
    pub(crate) fn to_be_sent(&self) -> impl Iterator<Item = PieceDue> + '_ {
        let has_player = !self.is_feed;
        self.unread().chain(self.held().map(|(_, piece)| piece)).filter(move |_| has_player)
    }
}

/// Leaders and followers.
impl Stream {
    /// The clock by which its pieces are released.
    pub(crate) fn release_clock(&self) -> PlayoutClock {
        self.keeps.unwrap_or(self.timing)
    }

    /// Keeps all its pieces also as long as `follower` does. Its place in the books must be changed
    /// at the same time.
    pub(crate) fn keep_as_long_as(&mut self, follower: &Self) {
        self.keeps = Some(self.release_clock().kept_as_long_as_both(&follower.release_clock()));
        for at in 0..self.holds.len() {
            let Hold::Held { piece, .. } = self.holds[at] else { continue };
            let release = self.due(piece.piece).release;
            if let Hold::Held { piece, .. } = &mut self.holds[at] {
                // A piece that came late may be kept for longer still.
                piece.release = piece.release.max(release);
            }
        }
        for (_, piece) in follower.held() {
            self.hold_until(piece.piece, piece.release);
        }
    }

    /// The stream with all pieces of a follower that knows more of their title. Its place in the
    /// books must be changed at the same time.
    pub(crate) fn lengthened_for(&self, follower: &Self) -> Self {
        if self.end >= follower.end {
            return self.clone();
        }
        let mut longer = self.lengthened(&follower.layout);
        longer.hold_as_followed(self.end);
        longer
    }

    /// Keeps its pieces as long as these followers need them, and those that it holds at least to
    /// the end of slot `earliest`. Its place in the books must be changed at the same time. Returns
    /// whether anything changes.
    pub(crate) fn keep_as_need(&mut self, followers: &[&Self], earliest: SlotIndex) -> bool {
        let clocks = followers.iter().map(|follower| follower.release_clock());
        let keeps = clocks.reduce(|one, other| one.kept_as_long_as_both(&other));
        let keeps = keeps.map(|clock| self.timing.kept_as_long_as_both(&clock));
        // Of unread pieces and of held ones the release moves the same way, if at all.
        if keeps.is_none_or(|keeps| keeps == self.release_clock()) {
            return false;
        }
        self.keeps = keeps;
        let held: Vec<u32> = self.held().map(|(_, piece)| piece.piece).collect();
        for number in held {
            // A follower may hold a piece for longer that came late.
            let holds = |follower: &&Self| follower.held_piece(number).map(|held| held.release);
            let late = followers.iter().filter_map(holds).max();
            let release = self.due(number).release.max(earliest);
            if let Some(Hold::Held { piece, .. }) = self.hold_mut(number) {
                piece.release = late.map_or(release, |late| release.max(late));
            }
        }
        true
    }

    /// A piece that it holds, with its slots.
    pub(crate) fn held_piece(&self, piece: u32) -> Option<PieceDue> {
        let at = usize::try_from(piece.checked_sub(self.base)?).ok()?;
        match self.holds.get(at)? {
            Hold::Held { piece, .. } => Some(*piece),
            Hold::Gone => None,
        }
    }

    /// The first piece from which on it holds everything that it has taken up.
    pub(crate) fn holds_all_from(&self) -> u32 {
        let held = self.holds.iter().rev().take_while(|hold| matches!(hold, Hold::Held { .. }));
        self.cursor - u32::try_from(held.count()).expect("fewer than pieces")
    }

    /// Splits the stream into a feed, which is returned, and its first follower: the feed has its
    /// reads and what it holds, with pins of its own to be set. The follower keeps its player's
    /// clock. It must hold nothing that is being read.
    pub(crate) fn become_follower(&mut self, feed: StreamId, held: Self) -> Self {
        let from = self.base;
        self.fed = Some(Fed { feed, from });
        self.keeps = None;
        self.summary = RateSummary::default();
        if let Some(clock) = self.guaranteed.take() {
            self.timing = clock;
            for at in 0..self.holds.len() {
                if let Hold::Held { piece, .. } = self.holds[at] {
                    let own = self.due(piece.piece);
                    if let Hold::Held { piece, .. } = &mut self.holds[at] {
                        *piece = own;
                    }
                }
            }
        }
        Self { is_feed: true, guaranteed: None, guaranteed_slack: None, opens: None, ..held }
    }

    /// Goes on alone with what a feed has read and booked, at the feed's slots: earlier than its
    /// own, so its deadlines stay as they are.
    pub(crate) fn absorb(&mut self, feed: Self) -> Absorbed {
        self.guaranteed = Some(self.timing);
        (self.timing, self.keeps, self.fed) = (feed.timing, feed.keeps, None);
        let mut absorbed = Absorbed::default();
        for (hold, number) in feed.holds.iter().zip(feed.base..) {
            let Hold::Held { read, piece, safe, .. } = *hold else {
                if number == self.cursor {
                    absorbed.missed.extend(self.skip_next());
                }
                continue;
            };
            if number == self.cursor {
                let deadline = self.deadline(number);
                let counted = self.accounted.remove(&number).then_some(Counted::ForGood);
                self.holds.push_back(Hold::Held { read, piece, deadline, counted, safe });
                self.cursor += 1;
                absorbed.taken.push(read);
                continue;
            }
            absorbed.spare.push(read);
            if let Some(Hold::Held { piece: own, .. }) = self.hold_mut(number) {
                *own = piece;
            }
        }
        absorbed
    }

    /// Goes on without its feed, and reads what is unread itself. Its place in the books must be
    /// changed at the same time. Returns what it followed.
    pub(crate) fn leave_feed(&mut self) -> Option<Fed> {
        let fed = self.fed.take()?;
        // The last piece of its patch is followed by a read of the same stream again.
        let last = fed.from.saturating_sub(1);
        let followed_after = self.due(last).followed_after;
        if let Some(Hold::Held { piece, .. }) = self.hold_mut(last) {
            piece.followed_after = followed_after;
        }
        Some(fed)
    }

    /// The next piece cannot be had. Returns its deadline, unless it was counted before.
    pub(crate) fn skip_next(&mut self) -> Option<Moment> {
        let counted = self.accounted.remove(&self.cursor);
        let deadline = self.deadline(self.cursor);
        if self.holds.is_empty() {
            self.base += 1;
        } else {
            self.holds.push_back(Hold::Gone);
        }
        self.cursor += 1;
        (!counted).then_some(deadline)
    }

    /// Bytes of its track that are played in so much time.
    pub(crate) fn bytes_in(&self, time: Duration) -> u64 {
        let track = &self.layout.tracks[usize::from(self.track)];
        let lasts = self.layout.duration.max(Duration::from_millis(1));
        let part = time.min(lasts).as_nanos() * u128::from(track.bytes) / lasts.as_nanos();
        u64::try_from(part).unwrap_or(u64::MAX)
    }

    /// Whether it holds `piece`.
    pub(crate) fn holds(&self, piece: u32) -> bool {
        self.read_of(piece).is_some()
    }

    /// Whether it needs `piece` of its feed.
    pub(crate) fn needs(&self, piece: u32) -> bool {
        self.is_fed(piece) && (piece >= self.cursor || self.holds(piece))
    }

    /// The next piece that it needs of its feed, if it follows one.
    pub(crate) fn next_fed(&self) -> Option<u32> {
        self.fed.map(|fed| fed.from.max(self.cursor))
    }

    /// Goes on with `piece`, which is behind all that it has taken up, and reads none before. It
    /// holds nothing. Its place in the books must be changed at the same time.
    pub(crate) fn skip_to(&mut self, piece: u32) {
        assert!(self.holds.is_empty(), "the pieces before are needed by nobody");
        let piece = piece.min(self.end);
        self.accounted = self.accounted.split_off(&piece);
        (self.cursor, self.base) = (piece, piece);
    }

    /// Whether it neither holds nor will read a piece that its feed does not.
    pub(crate) fn is_past_patch(&self) -> bool {
        self.is_fed(self.base)
    }

    // A piece as it is booked: the last of a patch is not followed by a read of the same stream.
    pub(super) fn within_patch(&self, piece: PieceDue) -> PieceDue {
        let is_last = self.fed.is_some_and(|fed| piece.piece + 1 == fed.from);
        let followed_after = piece.followed_after.filter(|_| !is_last);
        PieceDue { followed_after, ..piece }
    }

    /// A held piece is kept at least to the end of `slot`. Returns the piece as it was, if it was
    /// kept for less.
    pub(crate) fn hold_until(&mut self, piece: u32, slot: SlotIndex) -> Option<PieceDue> {
        match self.hold_mut(piece) {
            Some(Hold::Held { piece, .. }) if piece.release < slot => {
                let before = *piece;
                piece.release = slot;
                Some(before)
            }
            _ => None,
        }
    }
}
