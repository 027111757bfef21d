//! What one track of one session is guaranteed, and when the engine may change it.
//!
//! Written from outside the engine: start-up and slot come from the configuration, the time at
//! which each piece is due from the title. A piece is the unit of a deadline here; whether a
//! request seeks is decided by segments, in `seeks`.
//!
//! ```text
//!   a new grant is justified   the player seeks (see `seeks`);
//!                              the player is too late: a piece is kept until one slot after the
//!                              deadline of the next piece;
//!                              the player requests again what was delivered;
//!                              the track has no guarantee
//!   a delay is justified       the player has not requested a piece although the next one is due;
//!                              the delay is at most the time by which the player is late
//!   a release is justified     the player has not requested, received or cancelled anything of
//!                              the track for `idle_after`, and its next piece was due at least
//!                              that long ago; or the viewer has gone (see `deadlines`)
//! ```

use super::deadlines::{SeekTarget, millis};
use super::seeks::{SeekRule, Segments};
use engine::{Layout, RequestId, TrackNumber};
use std::collections::BTreeSet;
use std::time::Duration;
use units::Moment;

/// Times that the server's configuration states, equal for all sessions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Contract {
    pub(crate) slot: Duration,
    pub(crate) startup: Duration,
    pub(crate) idle_after: Duration,
}

/// Where a track begins after an admission.
#[derive(Clone, Copy, Debug)]
pub(super) struct GrantStart {
    pub(super) track: TrackNumber,
    /// The first byte of the segment that holds the time at which the player starts.
    pub(super) byte: u64,
    pub(super) from_ms: u32,
    /// The viewer has waited for its start.
    pub(super) waited: bool,
}

#[derive(Debug)]
pub(super) struct TrackSchedule {
    pub(super) track: TrackNumber,
    slot: Duration,
    startup: Duration,
    /// From `origin` until the viewer is given data at the earliest. A viewer who has waited for
    /// its start is given none before the start-up is over.
    opens_after: Duration,
    /// The time from which deadlines count.
    origin: Moment,
    /// Media time that is due at `origin`.
    from_ms: u32,
    /// Media time from which buffers are kept. After a seek it is earlier than `from_ms`: the
    /// segment of the seek is kept as if it were played whole.
    kept_from_ms: u32,
    /// Number of the current grant.
    pub(super) grant: u32,
    /// The current grant was not released.
    pub(super) is_guaranteed: bool,
    /// Where the player may continue without a seek.
    pub(super) seeks: SeekRule,
    /// The next piece whose deadline is checked.
    pub(super) next: u32,
    /// Pieces from `next` on of which the session has received a byte.
    received: BTreeSet<u32>,
    /// One past the last piece that was delivered to its end.
    delivered_end: u32,
    /// Pieces before this one were kept as long as guaranteed and were not requested in time.
    expired_end: u32,
    /// When the viewer last requested, received or cancelled something.
    pub(super) last_activity: Moment,
    /// A request that seeks, or may seek, and is not decided yet.
    pub(super) seeking: Option<RequestId>,
    /// Pieces that were the last one of a title that has grown since: they are kept as the last one
    /// is.
    once_last: BTreeSet<u32>,
}

impl TrackSchedule {
    /// The schedule of a session admitted to start with the segment whose first byte is
    /// `start.byte`.
    pub(super) fn admitted(
        now: Moment,
        layout: &Layout,
        segments: &Segments,
        start: &GrantStart,
        contract: &Contract,
    ) -> Self {
        let &GrantStart { track, byte, from_ms, waited } = start;
        let first = piece_at(layout, track, byte);
        Self {
            track,
            slot: contract.slot,
            startup: contract.startup,
            opens_after: if waited { contract.startup } else { Duration::ZERO },
            origin: now,
            from_ms,
            kept_from_ms: from_ms,
            grant: 0,
            is_guaranteed: true,
            seeks: SeekRule::granted(segments, track, byte),
            next: first,
            received: BTreeSet::new(),
            delivered_end: first,
            expired_end: first,
            last_activity: now,
            seeking: None,
            once_last: BTreeSet::new(),
        }
    }

    /// The deadline of the first piece that a title did not have `before`, if it has one more.
    pub(super) fn first_new(&self, before: &Layout, layout: &Layout) -> Option<Moment> {
        let first = piece_count(before, self.track);
        let has_more = self.is_guaranteed && first < piece_count(layout, self.track);
        has_more.then(|| self.deadline(layout, first))
    }

    /// The title is longer than `before`, and the schedule moves `later`. Returns whether all of
    /// what there was had been checked.
    pub(super) fn extended(
        &mut self,
        now: Moment,
        before: &Layout,
        layout: &Layout,
        later: Duration,
    ) -> bool {
        let pieces = piece_count(before, self.track);
        if pieces < piece_count(layout, self.track) {
            self.once_last.extend(pieces.checked_sub(1));
        }
        self.expire(now, layout, pieces);
        self.origin = self.origin + later;
        self.is_guaranteed && self.next >= pieces
    }

    // Of the first pieces, those that have expired stay expired, whatever becomes of the schedule.
    fn expire(&mut self, now: Moment, layout: &Layout, pieces: u32) {
        while self.expired_end < pieces && self.kept_until(layout, self.expired_end) < now {
            self.expired_end += 1;
        }
    }

    /// A new grant, which replaces all earlier guarantees of the track.
    pub(super) fn readmitted(
        &mut self,
        now: Moment,
        layout: &Layout,
        segments: &Segments,
        target: &SeekTarget,
    ) {
        let first = piece_at(layout, self.track, target.byte);
        (self.origin, self.opens_after) = (now + target.wait, Duration::ZERO);
        // The viewer may have sought to the end of the segment and need the next one at once.
        // Deadlines therefore count from the end of the segment, and buffers are kept from its
        // start.
        (self.from_ms, self.kept_from_ms) = (millis(target.end), millis(target.start));
        (self.grant, self.is_guaranteed) = (self.grant + 1, true);
        (self.next, self.delivered_end, self.expired_end) = (first, first, first);
        self.seeks = SeekRule::granted(segments, self.track, target.byte);
        self.received.clear();
        self.seeking = None;
    }

    /// Whether the viewer is guaranteed the byte now.
    pub(super) fn guarantees(&self, layout: &Layout, now: Moment, byte: u64) -> bool {
        let piece = self.piece_at(layout, byte);
        self.is_guaranteed
            && piece >= self.delivered_end.max(self.expired_end)
            && now <= self.kept_until(layout, piece)
    }

    /// The rest of the track is due `slots` later. `awaited` is the first byte that an open
    /// request waits for. Returns whether the delay is justified.
    pub(super) fn delayed(
        &mut self,
        now: Moment,
        layout: &Layout,
        awaited: Option<u64>,
        slots: u32,
    ) -> bool {
        let awaited = awaited.map_or(self.delivered_end, |byte| self.piece_at(layout, byte));
        let next_due = self.next_due(layout, awaited.min(self.delivered_end));
        let by = self.slot * slots;
        // The engine delays by whole slots, so that the last of them may exceed the lateness of the
        // viewer by less than a slot.
        let justified =
            self.is_guaranteed && next_due < now && by < now.since(next_due) + self.slot;
        self.expire(now, layout, piece_count(layout, self.track));
        self.origin = self.origin + by;
        justified
    }

    /// When the piece that the viewer fetches next is due; zero at the end of the track.
    pub(super) fn next_fetch(&self, layout: &Layout) -> Moment {
        let has_rest = self.delivered_end < piece_count(layout, self.track);
        if has_rest { self.deadline(layout, self.delivered_end) } else { Moment::ZERO }
    }

    /// The guarantee of the track ends. Returns whether the release is justified.
    pub(super) fn released(&mut self, now: Moment, layout: &Layout, idle_after: Duration) -> bool {
        let due = self.next_fetch(layout);
        self.is_guaranteed = false;
        now.since(due.max(self.last_activity)) >= idle_after
    }

    /// The session has received bytes of a piece; `to_its_end`: including the last one. It could
    /// have taken them from `takeable_from` on. Returns the deadline, if one was guaranteed.
    pub(super) fn received(
        &mut self,
        layout: &Layout,
        piece: u32,
        to_its_end: bool,
        takeable_from: Moment,
    ) -> Option<Moment> {
        let guaranteed = piece >= self.delivered_end.max(self.expired_end) && self.is_guaranteed;
        let in_time = takeable_from <= self.kept_until(layout, piece);
        self.received.insert(piece);
        self.delivered_end = self.delivered_end.max(piece + u32::from(to_its_end));
        (guaranteed && in_time).then(|| self.deadline(layout, piece))
    }

    /// The deadline of the next piece to check.
    pub(super) fn next_deadline(&self, layout: &Layout) -> Option<Moment> {
        (self.next < piece_count(layout, self.track)).then(|| self.deadline(layout, self.next))
    }

    /// Ends the check of piece `next`; returns whether the session has received some of it.
    pub(super) fn finish_check(&mut self) -> bool {
        self.next += 1;
        self.received.remove(&(self.next - 1))
    }

    fn deadline(&self, layout: &Layout, piece: u32) -> Moment {
        self.deadline_from(layout, piece, self.from_ms)
    }

    fn deadline_from(&self, layout: &Layout, piece: u32, from_ms: u32) -> Moment {
        let due = layout.tracks[usize::from(self.track)].due[piece as usize];
        let until_due = Duration::from_millis(u64::from(due.saturating_sub(from_ms)));
        // In memory one slot before it is played, because reads are guaranteed by the end of a
        // slot; nothing is guaranteed before the end of the start-up.
        let until_played = until_due + self.opens_after;
        self.origin + until_played.saturating_sub(self.slot).max(self.startup)
    }

    /// When the piece after `piece` is due, if the segment of the grant is played whole.
    fn next_due(&self, layout: &Layout, piece: u32) -> Moment {
        let step = u32::from(!self.once_last.contains(&piece));
        let next = (piece + step).min(piece_count(layout, self.track) - 1);
        self.deadline_from(layout, next, self.kept_from_ms)
    }

    fn kept_until(&self, layout: &Layout, piece: u32) -> Moment {
        self.next_due(layout, piece) + self.slot
    }

    fn piece_at(&self, layout: &Layout, byte: u64) -> u32 {
        piece_at(layout, self.track, byte)
    }
}

fn piece_at(layout: &Layout, track: TrackNumber, byte: u64) -> u32 {
    layout.tracks[usize::from(track)].piece_at(byte)
}

fn piece_count(layout: &Layout, track: TrackNumber) -> u32 {
    let pieces = layout.tracks[usize::from(track)].due.len();
    u32::try_from(pieces).expect("pieces are counted in u32")
}
