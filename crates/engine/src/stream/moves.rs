//! What moves a stream's schedule: later, earlier, to another copy, or to begin anew.

use super::{Hold, Stream};
use crate::pieces::curve;
use crate::{Layout, ReadId};
use scheduler::PlayoutClock;
use std::sync::Arc;
use std::time::Duration;
use units::{Moment, SlotIndex};

impl Stream {
    /// Gives up everything held and begins anew with piece `from`, as if it had been admitted
    /// `now`. Says what was held. What was counted is not counted again.
    pub(crate) fn restart(&mut self, now: Moment, from: u32) -> Vec<ReadId> {
        let held = self.held().map(|(read, _)| read).collect();
        // Deadlines are counted by the clock of the admission, however often reading begins anew.
        self.guaranteed.get_or_insert(self.timing);
        let counted = |hold: &Hold| !matches!(hold, Hold::Held { counted: None, .. });
        let known = self.holds.iter().zip(self.base..).filter(|(hold, _)| counted(hold));
        // Pieces before `base` were counted when they were delivered or released.
        self.accounted.extend((from..self.base).chain(known.map(|(_, piece)| piece)));
        // Nothing before `from` is read again, so its counts are not needed.
        self.accounted = self.accounted.split_off(&from);
        self.holds.clear();
        (self.cursor, self.base, self.read_elsewhere) = (from, from, 0);
        let from_ms = self.curve().due(from);
        self.timing = PlayoutClock {
            origin: now,
            opens_after: Duration::ZERO,
            with_first_ms: 0,
            from_ms,
            kept_from_ms: from_ms,
            kept_longer: 0,
            ..self.timing
        };
        held
    }

    /// Moves everything `slots` slots later, held pieces too. Its place in the books must be
    /// changed at the same time.
    pub(crate) fn delay(&mut self, slots: u32) {
        for clock in self.clocks() {
            clock.origin = clock.origin + clock.slot * slots;
        }
        self.opens = self.opens.map(|at| at + self.timing.slot * slots);
        for hold in &mut self.holds {
            if let Hold::Held { piece, .. } = hold {
                piece.due = piece.due + u64::from(slots);
                piece.release = piece.release + u64::from(slots);
            }
        }
    }

    /// The slots by which pieces are kept longer than for its own deadlines.
    pub(crate) fn kept_longer(&self) -> u32 {
        self.clock().kept_longer
    }

    /// Moves all deadlines `slots` slots later, and keeps pieces `kept` slots longer than now; not
    /// less. Its place in the books must be changed at the same time.
    pub(crate) fn delay_and_keep(&mut self, slots: u32, kept: u32) {
        self.delay(slots);
        let longer = self.kept_longer() + kept - slots;
        for clock in self.clocks() {
            clock.kept_longer = longer;
        }
        for hold in &mut self.holds {
            if let Hold::Held { piece, .. } = hold {
                piece.release = SlotIndex(piece.release.0 + u64::from(kept) - u64::from(slots));
            }
        }
    }

    /// A stream that has taken over the reads of a feed ahead of it need not read what is new, from
    /// `piece` on, before `earliest`, as the feed would have: its reads move later, as far as its
    /// player's clock allows. Its place in the books must be changed at the same time.
    pub(crate) fn read_as_needed(&mut self, piece: u32, earliest: Moment) {
        if self.guaranteed.is_none() || piece >= self.end {
            return;
        }
        let reads = self.timing.deadline(self.curve().due(piece));
        let early = self.deadline(piece).min(earliest).since(reads);
        let slots = early.as_nanos() / self.timing.slot.as_nanos();
        let player = (self.guaranteed.take(), self.opens);
        self.delay(u32::try_from(slots).unwrap_or(u32::MAX));
        (self.guaranteed, self.opens) = player;
    }

    /// Takes [`Stream::delay`] back.
    pub(crate) fn undo_delay(&mut self, slots: u32) {
        for clock in self.clocks() {
            clock.origin = clock.origin - clock.slot * slots;
        }
        self.opens = self.opens.map(|at| at - self.timing.slot * slots);
        for hold in &mut self.holds {
            if let Hold::Held { piece, .. } = hold {
                piece.due = SlotIndex(piece.due.0 - u64::from(slots));
                piece.release = SlotIndex(piece.release.0 - u64::from(slots));
            }
        }
    }

    /// Whether the pieces of the track's lead are due with the first, earlier than the player needs
    /// them, so that one visit reads them and the next read may wait longest. Not after it was
    /// booked.
    pub(crate) fn gather_lead(&mut self, gather: bool) {
        let clock = self.clock();
        let track = &self.layout.tracks[usize::from(self.track)];
        let behind = self.curve().piece_at(track.lead.end);
        let lead_ms = self.curve().due(behind);
        let gathers = gather && track.lead.end > 0 && self.cursor + 1 < behind && behind < self.end;
        self.guaranteed = gathers.then_some(clock);
        let with_first_ms = if gathers { lead_ms } else { 0 };
        self.timing = PlayoutClock { with_first_ms, ..clock };
    }

    /// Whether pieces of its lead are due with the first.
    pub(crate) fn gathers_lead(&self) -> bool {
        self.timing.with_first_ms > 0
    }

    /// Nothing is delivered before so long after the admission, and deadlines count from there.
    pub(crate) fn open_after(&mut self, wait: Duration) {
        self.clocks().for_each(|clock| clock.opens_after = wait);
    }

    fn clocks(&mut self) -> impl Iterator<Item = &mut PlayoutClock> {
        std::iter::once(&mut self.timing).chain(&mut self.guaranteed).chain(&mut self.keeps)
    }

    /// Is read from another copy from now on. Its place in the books must be changed at the same
    /// time.
    pub(crate) fn move_to(&mut self, layout: Arc<Layout>) {
        self.layout = layout;
        let curve = curve(&self.layout.tracks[usize::from(self.track)]);
        for hold in &mut self.holds {
            if let Hold::Held { piece, .. } = hold {
                piece.transfer = curve.transfer(piece.piece);
                piece.followed_after = self.timing.followed_after(&curve, piece.piece);
            }
        }
    }

    /// The stream has moved from a lost disk to another: what it holds was not read there.
    pub(crate) fn has_moved(&mut self, now: Moment) {
        (self.read_elsewhere, self.moved) = (self.cursor, Some(now));
    }

    /// Whether a read that was due at `due` was due from a disk that is lost since.
    pub(crate) fn was_due_elsewhere(&self, due: Moment) -> bool {
        self.moved.is_some_and(|moved| due <= moved)
    }

    /// Is read so many slots before it must be, from now on. Its place in the books must be changed
    /// at the same time.
    pub(crate) fn set_early(&mut self, slots: u32) {
        let before = u64::from(std::mem::replace(&mut self.timing.early, slots));
        for hold in &mut self.holds {
            if let Hold::Held { piece, .. } = hold {
                piece.due = SlotIndex(piece.due.0 + before - u64::from(slots));
            }
        }
    }
}
