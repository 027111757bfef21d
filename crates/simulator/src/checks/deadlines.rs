//! Deadlines: an own account, from outside, of what was promised to each session and what was
//! kept, piece by piece.
//!
//! ```text
//!   promise   origin o = the moment of admission (or of the seek), from = where in the title
//!   due       o + startup                             what is needed first
//!             o + max(startup, due − from − slot)     the rest
//!   kept      in memory at that moment, or already handed to that session
//! ```
//!
//! It stops accounting for a session that did something after which its promise is the engine's
//! own business (asked for nothing so long that it may have lost its booking, came back late).

use super::{Memory, Piece};
use server::engine::{Layout, SessionId, SessionSummary, TrackNumber};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use units::Moment;

/// Where an account's next due time is looked at: names the promise, so that an outdated
/// appointment is told from a good one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Appointment {
    pub(crate) session: SessionId,
    row: usize,
    promise: u32,
}

/// A piece that was not there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Miss {
    pub(crate) session: SessionId,
    pub(crate) piece: Piece,
    pub(crate) deadline: Moment,
}

#[derive(Debug)]
struct Account {
    layout: Arc<Layout>,
    tracks: Vec<TrackNumber>,
    origin: Moment,
    from_ms: u32,
    promise: u32,
    /// Per track of `tracks`, the next piece to look at.
    next: Vec<u32>,
    /// Pieces from `next` on that the session got a byte of.
    got: BTreeSet<(TrackNumber, u32)>,
    asked: Moment,
    /// Since when nothing is accounted for.
    given_up: bool,
    /// It was one promise from admission on, and it was looked after to the end.
    plain: bool,
    on_time: u64,
    missed: u64,
}

#[derive(Debug)]
pub(crate) struct Deadlines {
    slot: Duration,
    startup: Duration,
    idle_after: Duration,
    accounts: BTreeMap<SessionId, Account>,
    pub(crate) on_time: u64,
    pub(crate) missed: u64,
}

impl Deadlines {
    pub(crate) fn new(slot: Duration, startup: Duration, idle_after: Duration) -> Self {
        Self { slot, startup, idle_after, accounts: BTreeMap::new(), on_time: 0, missed: 0 }
    }

    /// A session was let in; says when to look.
    pub(crate) fn admitted(
        &mut self,
        now: Moment,
        session: SessionId,
        layout: &Arc<Layout>,
        (tracks, from): (&[TrackNumber], Duration),
    ) -> Vec<(Moment, Appointment)> {
        let from_ms = u32::try_from(from.as_millis()).unwrap_or(u32::MAX);
        let account = Account {
            layout: Arc::clone(layout),
            tracks: tracks.to_vec(),
            origin: now,
            from_ms,
            promise: 0,
            next: first_needed(layout, tracks, from_ms),
            got: BTreeSet::new(),
            asked: now,
            given_up: false,
            plain: true,
            on_time: 0,
            missed: 0,
        };
        self.accounts.insert(session, account);
        self.appointments(session)
    }

    /// The session was let go on at another place: a new promise from there on.
    pub(crate) fn moved(
        &mut self,
        now: Moment,
        session: SessionId,
        from_ms: u32,
    ) -> Vec<(Moment, Appointment)> {
        let Some(account) = self.accounts.get_mut(&session) else { return Vec::new() };
        account.plain = false;
        account.promise += 1;
        (account.origin, account.from_ms) = (now, from_ms);
        account.next = first_needed(&account.layout, &account.tracks, from_ms);
        account.got.clear();
        self.appointments(session)
    }

    /// The session asked for something.
    pub(crate) fn asked(&mut self, now: Moment, session: SessionId) {
        if let Some(account) = self.accounts.get_mut(&session) {
            let idle = now.since(account.asked) + self.slot * 2 >= self.idle_after;
            account.given_up |= idle;
            account.asked = now;
        }
    }

    /// From here on only the engine knows what is owed.
    pub(crate) fn give_up(&mut self, session: SessionId) {
        if let Some(account) = self.accounts.get_mut(&session) {
            account.given_up = true;
        }
    }

    /// The session got bytes of a piece. Says by how much that was later than promised, given
    /// that it could have been taken from `could_take` on.
    pub(crate) fn got(
        &mut self,
        now: Moment,
        session: SessionId,
        piece: Piece,
        could_take: Moment,
    ) -> Option<Duration> {
        let (slot, startup) = (self.slot, self.startup);
        let account = self.accounts.get_mut(&session)?;
        account.got.insert((piece.track, piece.piece));
        if account.given_up {
            return None;
        }
        let promised = account.deadline(piece.track, piece.piece, slot, startup);
        // Behind the place that the promise starts from there is none.
        let covered = account.covers(piece.track, piece.piece);
        let late = now.since(promised.max(could_take));
        (covered && !late.is_zero()).then_some(late)
    }

    /// The moment of an appointment has come: looks, and says when to look next.
    pub(crate) fn look(
        &mut self,
        now: Moment,
        appointment: Appointment,
        memory: &Memory,
        misses: &mut Vec<Miss>,
    ) -> Option<(Moment, Appointment)> {
        let (slot, startup) = (self.slot, self.startup);
        let account = self.accounts.get_mut(&appointment.session)?;
        if account.promise != appointment.promise {
            return None;
        }
        let row = appointment.row;
        let track = account.tracks[row];
        while let Some(deadline) = account.next_deadline(row, slot, startup) {
            if deadline > now {
                return Some((deadline, appointment));
            }
            let number = account.next[row];
            let piece = Piece { title: account.layout.title, track, piece: number };
            let kept = account.got.remove(&(track, number)) || memory.holds(piece);
            account.given_up |= !kept && now.since(account.asked) + slot * 2 >= self.idle_after;
            if account.given_up {
                return None;
            }
            if kept {
                account.on_time += 1;
                self.on_time += 1;
            } else {
                account.missed += 1;
                self.missed += 1;
                misses.push(Miss { session: appointment.session, piece, deadline });
            }
            account.next[row] += 1;
        }
        None
    }

    /// The session is over. Where this account is whole, what it says must be what the engine
    /// says: otherwise returns both.
    pub(crate) fn ended(
        &mut self,
        session: SessionId,
        summary: &SessionSummary,
    ) -> Option<(u64, u64)> {
        let account = self.accounts.remove(&session)?;
        let comparable = account.plain && !account.given_up;
        let differs = account.missed != summary.glitches;
        (comparable && differs).then_some((account.missed, summary.glitches))
    }

    fn appointments(&self, session: SessionId) -> Vec<(Moment, Appointment)> {
        let account = &self.accounts[&session];
        (0..account.tracks.len())
            .filter_map(|row| {
                let at = account.next_deadline(row, self.slot, self.startup)?;
                Some((at, Appointment { session, row, promise: account.promise }))
            })
            .collect()
    }
}

impl Account {
    fn next_deadline(&self, row: usize, slot: Duration, startup: Duration) -> Option<Moment> {
        let track = &self.layout.tracks[usize::from(self.tracks[row])];
        let pieces = track.bytes.div_ceil(u64::from(track.piece));
        let next = self.next[row];
        (u64::from(next) < pieces).then(|| self.deadline(self.tracks[row], next, slot, startup))
    }

    fn deadline(
        &self,
        track: TrackNumber,
        piece: u32,
        slot: Duration,
        startup: Duration,
    ) -> Moment {
        let due = self.layout.tracks[usize::from(track)].due[piece as usize];
        let ahead = Duration::from_millis(u64::from(due.saturating_sub(self.from_ms)));
        self.origin + ahead.saturating_sub(slot).max(startup)
    }

    fn covers(&self, track: TrackNumber, piece: u32) -> bool {
        let due = &self.layout.tracks[usize::from(track)].due;
        self.tracks.contains(&track) && piece >= first_of(due, self.from_ms)
    }
}

fn first_needed(layout: &Layout, tracks: &[TrackNumber], from_ms: u32) -> Vec<u32> {
    tracks.iter().map(|track| first_of(&layout.tracks[usize::from(*track)].due, from_ms)).collect()
}

/// The first piece of the segment that is on at `from_ms`.
fn first_of(due: &[u32], from_ms: u32) -> u32 {
    let segment = due.iter().rev().find(|due| **due <= from_ms).copied().unwrap_or(0);
    let first = due.partition_point(|due| *due < segment);
    u32::try_from(first).expect("pieces are counted in u32")
}
