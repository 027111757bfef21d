//! What is owed to one track of one session, and when that may change.
//!
//! ```text
//!   a new grant is right    the player seeks (see `seeks`);
//!                           it came too late: the piece was kept until a slot after the deadline
//!                           of the next one, and that is over;
//!                           it asks again for what it has been handed; nothing is owed
//!   a delay is right        the player has not come for a piece although the next one is due
//!                           already; by no more than it is late
//!   a release is right      the player has neither asked for, taken nor hung up anything of the
//!                           track for `idle_after`, although what it is to ask for next was due
//!                           that long ago
//! ```

use super::deadlines::{SeekTarget, millis};
use super::seeks::{SeekRule, Segments};
use server::engine::{Layout, RequestId, TrackNumber};
use std::collections::BTreeSet;
use std::time::Duration;
use units::Moment;

/// Times that the server's configuration states, the same for every session.
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
}

#[derive(Debug)]
pub(super) struct TrackSchedule {
    pub(super) track: TrackNumber,
    slot: Duration,
    startup: Duration,
    origin: Moment,
    from_ms: u32,
    /// Buffers are kept as if it were shown from here.
    kept_ms: u32,
    /// Counts the grants.
    pub(super) grant: u32,
    /// Anything is promised at all.
    pub(super) promised: bool,
    /// Where the player may go on without a seek.
    pub(super) seeks: SeekRule,
    /// The next piece to look at.
    pub(super) next: u32,
    /// Pieces from `next` on that the session got a byte of.
    got: BTreeSet<u32>,
    /// One past the last piece it got to its end.
    furthest: u32,
    /// Pieces before this were kept as long as was promised, and nobody came.
    gone: u32,
    /// When the viewer last asked for, took or hung up something.
    pub(super) last_activity: Moment,
    /// A request that seeks, or may: the server's answer is awaited.
    pub(super) seeking: Option<RequestId>,
}

impl TrackSchedule {
    /// A session was let in to start with the segment whose first byte is `byte`.
    pub(super) fn admitted(
        now: Moment,
        layout: &Layout,
        segments: &Segments,
        start: &GrantStart,
        contract: &Contract,
    ) -> Self {
        let &GrantStart { track, byte, from_ms } = start;
        let first = piece_at(layout, track, byte);
        Self {
            track,
            slot: contract.slot,
            startup: contract.startup,
            origin: now,
            from_ms,
            kept_ms: from_ms,
            grant: 0,
            promised: true,
            seeks: SeekRule::granted(segments, track, byte),
            next: first,
            got: BTreeSet::new(),
            furthest: first,
            gone: first,
            last_activity: now,
            seeking: None,
        }
    }

    /// A new grant: nothing of the earlier ones is owed any more.
    pub(super) fn renew(
        &mut self,
        now: Moment,
        wait: Duration,
        layout: &Layout,
        segments: &Segments,
        target: &SeekTarget,
    ) {
        let first = piece_at(layout, self.track, target.byte);
        self.origin = now + wait;
        (self.from_ms, self.kept_ms) = (millis(target.ends), millis(target.starts));
        (self.grant, self.promised) = (self.grant + 1, true);
        (self.next, self.furthest, self.gone) = (first, first, first);
        self.seeks = SeekRule::granted(segments, self.track, target.byte);
        self.got.clear();
        self.seeking = None;
    }

    /// Whether the byte is promised to the viewer now.
    pub(super) fn is_owed(&self, layout: &Layout, now: Moment, byte: u64) -> bool {
        let piece = self.piece_at(layout, byte);
        self.promised
            && piece >= self.furthest.max(self.gone)
            && now <= self.kept_until(layout, piece)
    }

    /// The rest of the track is owed `slots` later. Says whether that was right.
    pub(super) fn delayed(
        &mut self,
        now: Moment,
        layout: &Layout,
        owed: Option<u64>,
        slots: u32,
    ) -> bool {
        let owed = owed.map_or(self.furthest, |byte| self.piece_at(layout, byte));
        let next_due = self.next_due(layout, owed.min(self.furthest));
        let by = self.slot * slots;
        let right = self.promised && next_due < now && by < now.since(next_due) + self.slot;
        // Only the rest is later: what nobody came for in time is gone all the same.
        while self.gone < pieces(layout, self.track) && self.kept_until(layout, self.gone) < now {
            self.gone += 1;
        }
        self.origin = self.origin + by;
        right
    }

    /// Nothing of the track is owed any more. Says whether that was right.
    pub(super) fn released(&mut self, now: Moment, layout: &Layout, idle_after: Duration) -> bool {
        let left = self.furthest < pieces(layout, self.track);
        let due = if left { self.deadline(layout, self.furthest) } else { Moment::ZERO };
        self.promised = false;
        now.since(due.max(self.last_activity)) >= idle_after
    }

    /// The session got bytes of a piece, the rest of it included if `whole`, that it could have
    /// taken from `could_take` on. Says when they were owed, if they were.
    pub(super) fn got(
        &mut self,
        layout: &Layout,
        (piece, whole): (u32, bool),
        could_take: Moment,
    ) -> Option<Moment> {
        let owed = piece >= self.furthest.max(self.gone) && self.promised;
        let in_time = could_take <= self.kept_until(layout, piece);
        self.got.insert(piece);
        self.furthest = self.furthest.max(piece + u32::from(whole));
        (owed && in_time).then(|| self.deadline(layout, piece))
    }

    /// When to look next.
    pub(super) fn next_deadline(&self, layout: &Layout) -> Option<Moment> {
        (self.next < pieces(layout, self.track)).then(|| self.deadline(layout, self.next))
    }

    /// Goes on to the next; says whether the session got some of it.
    pub(super) fn looked_at_next(&mut self) -> bool {
        self.next += 1;
        self.got.remove(&(self.next - 1))
    }

    fn deadline(&self, layout: &Layout, piece: u32) -> Moment {
        self.deadline_from(layout, piece, self.from_ms)
    }

    fn deadline_from(&self, layout: &Layout, piece: u32, from_ms: u32) -> Moment {
        let due = layout.tracks[usize::from(self.track)].due[piece as usize];
        let ahead = Duration::from_millis(u64::from(due.saturating_sub(from_ms)));
        self.origin + ahead.saturating_sub(self.slot).max(self.startup)
    }

    /// When the piece after `piece` is due, if what was asked for is shown whole.
    fn next_due(&self, layout: &Layout, piece: u32) -> Moment {
        let next = (piece + 1).min(pieces(layout, self.track) - 1);
        self.deadline_from(layout, next, self.kept_ms)
    }

    fn kept_until(&self, layout: &Layout, piece: u32) -> Moment {
        self.next_due(layout, piece) + self.slot
    }

    fn piece_at(&self, layout: &Layout, byte: u64) -> u32 {
        piece_at(layout, self.track, byte)
    }
}

fn piece_at(layout: &Layout, track: TrackNumber, byte: u64) -> u32 {
    let piece = byte / u64::from(layout.tracks[usize::from(track)].piece);
    u32::try_from(piece).expect("pieces are counted in u32")
}

fn pieces(layout: &Layout, track: TrackNumber) -> u32 {
    count(layout.tracks[usize::from(track)].due.len())
}

fn count(pieces: usize) -> u32 {
    u32::try_from(pieces).expect("pieces are counted in u32")
}
