//! One track of one session: what is promised of it, and when that may change.
//!
//! ```text
//!   a new grant is right    the viewer jumped: it asks for what does not go on where its last
//!                           requests of the track end, nor where its grant begins;
//!                           it came too late: the piece was kept until a slot after the next
//!                           one's deadline, and that is over;
//!                           it asks again for what it has been handed; nothing is promised
//!   later is right          it has not come for a piece although the next one is due already;
//!                           by no more than it is late
//!   given back is right     it has neither asked, taken nor hung up anything of the track for
//!                           `idle_after`, although what it is to ask for next was due so long ago
//! ```

use super::deadlines::{Place, millis};
use server::engine::{Layout, Part, RequestId, TrackNumber};
use std::collections::{BTreeSet, VecDeque};
use std::ops::Range;
use std::time::Duration;
use units::Moment;

/// What a request asks for of a track: all of it first, then what it has not been handed.
#[derive(Clone, Debug)]
pub(super) struct Ask {
    pub(super) track: TrackNumber,
    pub(super) bytes: Range<u64>,
}

impl Ask {
    pub(super) fn all(parts: &[Part]) -> Vec<Self> {
        let mut all: Vec<Self> = Vec::new();
        for Part { track, bytes } in parts {
            match all.iter_mut().find(|ask| ask.track == *track) {
                Some(ask) => ask.bytes.end = ask.bytes.end.max(bytes.end),
                None => all.push(Self { track: *track, bytes: bytes.clone() }),
            }
        }
        all
    }
}

#[derive(Debug)]
pub(super) struct Row {
    pub(super) track: TrackNumber,
    slot: Duration,
    startup: Duration,
    origin: Moment,
    from_ms: u32,
    /// Buffers are kept as if it were shown from here.
    kept_ms: u32,
    /// Counts the grants.
    pub(super) promise: u32,
    /// Anything is promised at all.
    pub(super) promised: bool,
    /// The first piece of the grant.
    first: u32,
    /// Where what was asked for ends.
    ends: VecDeque<u64>,
    /// The next piece to look at.
    pub(super) next: u32,
    /// Pieces from `next` on that the session got a byte of.
    got: BTreeSet<u32>,
    /// One past the last piece it got to its end.
    furthest: u32,
    /// Pieces before this were kept as long as was promised, and nobody came.
    gone: u32,
    /// When the viewer last asked for, took or hung up something.
    pub(super) sign: Moment,
    /// This request does not go on; its answer is awaited.
    pub(super) jumping: Option<RequestId>,
}

impl Row {
    pub(super) fn admitted(
        now: Moment,
        layout: &Layout,
        track: TrackNumber,
        from_ms: u32,
        (slot, startup): (Duration, Duration),
    ) -> Self {
        // The segment that holds the start, and the piece before: it may begin within that.
        let due = &layout.tracks[usize::from(track)].due;
        let on = due.partition_point(|due| *due <= from_ms);
        let segment = on.checked_sub(1).map_or(0, |last| due[last]);
        let first = count(due.partition_point(|due| *due < segment)).saturating_sub(1);
        Self {
            track,
            slot,
            startup,
            origin: now,
            from_ms,
            kept_ms: from_ms,
            promise: 0,
            promised: true,
            first,
            ends: VecDeque::new(),
            next: first,
            got: BTreeSet::new(),
            furthest: first,
            gone: first,
            sign: now,
            jumping: None,
        }
    }

    /// A new grant: all earlier promises are over.
    pub(super) fn renew(&mut self, now: Moment, wait: Duration, layout: &Layout, place: &Place) {
        let first = self.piece_at(layout, place.byte);
        self.origin = now + wait;
        (self.from_ms, self.kept_ms) = (millis(place.ends), millis(place.starts));
        (self.promise, self.promised) = (self.promise + 1, true);
        (self.first, self.next, self.furthest) = (first, first, first);
        self.gone = first;
        self.ends.clear();
        self.got.clear();
        self.jumping = None;
    }

    /// Whether a request that starts at byte `start` goes on with what was asked for before.
    pub(super) fn goes_on(&self, layout: &Layout, start: u64) -> bool {
        let piece = self.piece_at(layout, start);
        if self.ends.is_empty() {
            return piece == self.first || piece == self.first + 1;
        }
        let whole = layout.tracks[usize::from(self.track)].stored.is_empty();
        self.ends.iter().any(|end| {
            let last = self.piece_at(layout, *end);
            if whole { start <= *end && piece == last } else { piece == last || piece == last + 1 }
        })
    }

    pub(super) fn asks(&mut self, layout: &Layout, bytes: &Range<u64>) {
        let whole = layout.tracks[usize::from(self.track)].stored.is_empty();
        let mut ends = std::mem::take(&mut self.ends);
        let piece = self.piece_at(layout, bytes.start);
        let next = |end: u64| {
            let last = self.piece_at(layout, end);
            end <= bytes.start && (piece == last || piece == last + 1)
        };
        ends.retain(|end| if whole { *end != bytes.start } else { !next(*end) });
        self.ends = ends;
        if self.ends.len() == PARALLEL_REQUESTS {
            self.ends.pop_front();
        }
        self.ends.push_back(bytes.end);
    }

    /// Nothing more is handed over for a request; `left`: what of it was not.
    pub(super) fn stopped_at(&mut self, left: &Range<u64>) {
        for end in self.ends.iter_mut().filter(|end| **end == left.end) {
            *end = left.start;
        }
    }

    /// Whether the byte is promised to the viewer now.
    pub(super) fn is_owed(&self, layout: &Layout, now: Moment, byte: u64) -> bool {
        let piece = self.piece_at(layout, byte);
        self.promised
            && piece >= self.furthest.max(self.gone)
            && now <= self.kept_until(layout, piece)
    }

    /// See the head of this file.
    pub(super) fn later(
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

    /// See the head of this file.
    pub(super) fn given_back(
        &mut self,
        now: Moment,
        layout: &Layout,
        idle_after: Duration,
    ) -> bool {
        let left = self.furthest < pieces(layout, self.track);
        let due = if left { self.deadline(layout, self.furthest) } else { Moment::ZERO };
        self.promised = false;
        now.since(due.max(self.sign)) >= idle_after
    }

    /// See [`super::Deadlines::got`].
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
        let piece = byte / u64::from(layout.tracks[usize::from(self.track)].piece);
        u32::try_from(piece).expect("pieces are counted in u32")
    }
}

fn pieces(layout: &Layout, track: TrackNumber) -> u32 {
    count(layout.tracks[usize::from(track)].due.len())
}

fn count(pieces: usize) -> u32 {
    u32::try_from(pieces).expect("pieces are counted in u32")
}

/// Responses of one track that a viewer may take at the same time and still go on with each.
const PARALLEL_REQUESTS: usize = 2;
