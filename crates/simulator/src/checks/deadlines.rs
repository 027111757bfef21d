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
    rows: Vec<Row>,
    /// It was one promise from admission on.
    plain: bool,
    missed: u64,
}

/// What was promised of one track.
#[derive(Debug)]
struct Row {
    track: TrackNumber,
    origin: Moment,
    from_ms: u32,
    promise: u32,
    /// The next piece to look at.
    next: u32,
    /// Pieces from `next` on that the session got a byte of.
    got: BTreeSet<u32>,
    /// One past the last piece it got to its end.
    furthest: u32,
    asked: Moment,
    /// It asked for something at all.
    asks: bool,
    /// Nothing is accounted for any more.
    given_up: bool,
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
        let row = |track: &TrackNumber| Row::new(now, layout, *track, from_ms);
        let rows = tracks.iter().map(row).collect();
        let account = Account { layout: Arc::clone(layout), rows, plain: true, missed: 0 };
        self.accounts.insert(session, account);
        let rows = 0..tracks.len();
        rows.filter_map(|row| self.appointment(session, row)).collect()
    }

    /// The session was let go on with `piece` of `track`, which is played at `from`. If that is
    /// surely a jump it is a new promise; if it may be more of the old one, nobody knows.
    pub(crate) fn moved(
        &mut self,
        now: Moment,
        session: SessionId,
        (track, piece): (TrackNumber, u32),
        from: Duration,
    ) -> Option<(Moment, Appointment)> {
        let account = self.accounts.get_mut(&session)?;
        account.plain = false;
        let number = account.rows.iter().position(|row| row.track == track)?;
        let row = &mut account.rows[number];
        if !row.is_jump(&account.layout, piece) {
            row.given_up = true;
            return None;
        }
        let from_ms = u32::try_from(from.as_millis()).unwrap_or(u32::MAX);
        let promise = row.promise + 1;
        *row = Row { promise, asks: true, ..Row::new(now, &account.layout, track, from_ms) };
        row.next = piece;
        self.appointment(session, number)
    }

    /// The session asked for `track`, from this byte on.
    pub(crate) fn asked(&mut self, now: Moment, session: SessionId, track: TrackNumber, from: u64) {
        let (slot, startup) = (self.slot, self.startup);
        let Some(account) = self.accounts.get_mut(&session) else { return };
        let layout = &account.layout;
        let Some(row) = account.rows.iter_mut().find(|row| row.track == track) else { return };
        let piece = from / u64::from(layout.tracks[usize::from(track)].piece);
        let piece = u32::try_from(piece).expect("pieces are counted in u32");
        let idle = now.since(row.asked) + slot * 2 >= self.idle_after;
        let late = row.deadline(layout, piece, slot, startup) + slot <= now;
        row.given_up |= idle || late || row.is_behind(layout, now, slot, startup);
        (row.asked, row.asks) = (now, true);
    }

    /// From here on only the engine knows what is owed.
    pub(crate) fn give_up(&mut self, session: SessionId, track: TrackNumber) {
        if let Some(row) = self.row(session, track) {
            row.given_up = true;
        }
    }

    /// The session got bytes of a piece, perhaps up to its end (`whole`), that it could have taken
    /// from `could_take` on. Says when they were promised, if they were.
    pub(crate) fn got(
        &mut self,
        now: Moment,
        session: SessionId,
        (piece, whole): (Piece, bool),
        could_take: Moment,
    ) -> Option<Moment> {
        let (slot, startup) = (self.slot, self.startup);
        let account = self.accounts.get_mut(&session)?;
        let row = account.rows.iter_mut().find(|row| row.track == piece.track)?;
        row.given_up |= row.is_behind(&account.layout, now, slot, startup);
        row.got.insert(piece.piece);
        row.furthest = row.furthest.max(piece.piece + u32::from(whole));
        let promised = row.deadline(&account.layout, piece.piece, slot, startup);
        // Who comes later than this finds the buffer let go.
        let comes_in_time = could_take <= promised + slot;
        let covered = piece.piece >= row.first(&account.layout) && !row.given_up;
        (covered && comes_in_time).then_some(promised)
    }

    /// The moment of an appointment has come: looks, and says when to look next.
    pub(crate) fn look(
        &mut self,
        now: Moment,
        appointment: Appointment,
        memory: &Memory,
        misses: &mut Vec<Miss>,
    ) -> Option<(Moment, Appointment)> {
        let (slot, startup, session) = (self.slot, self.startup, appointment.session);
        let account = self.accounts.get_mut(&session)?;
        let layout = &account.layout;
        let row = &mut account.rows[appointment.row];
        if row.promise != appointment.promise {
            return None;
        }
        while row.next < pieces(layout, row.track) {
            let deadline = row.deadline(layout, row.next, slot, startup);
            if deadline > now {
                return Some((deadline, appointment));
            }
            let piece = Piece { title: layout.title, track: row.track, piece: row.next };
            let kept = row.got.remove(&row.next) || memory.holds(piece);
            let idle = !kept && now.since(row.asked) + slot * 2 >= self.idle_after;
            row.given_up |= idle || row.is_behind(layout, now, slot, startup);
            if row.given_up {
                return None;
            }
            if kept {
                self.on_time += 1;
            } else {
                account.missed += 1;
                self.missed += 1;
                misses.push(Miss { session, piece, deadline });
            }
            row.next += 1;
        }
        None
    }

    /// The session is over. Where this account is whole, the engine must not count fewer misses (it
    /// counts more where a piece was in memory for another viewer only): otherwise returns both.
    pub(crate) fn ended(
        &mut self,
        session: SessionId,
        summary: &SessionSummary,
    ) -> Option<(u64, u64)> {
        let account = self.accounts.remove(&session)?;
        let comparable = account.plain && account.rows.iter().all(|row| !row.given_up);
        let fewer = summary.glitches < account.missed;
        (comparable && fewer).then_some((account.missed, summary.glitches))
    }

    fn row(&mut self, session: SessionId, track: TrackNumber) -> Option<&mut Row> {
        let account = self.accounts.get_mut(&session)?;
        account.rows.iter_mut().find(|row| row.track == track)
    }

    fn appointment(&self, session: SessionId, row: usize) -> Option<(Moment, Appointment)> {
        let account = &self.accounts[&session];
        let Row { track, next, promise, .. } = account.rows[row];
        let deadline =
            || account.rows[row].deadline(&account.layout, next, self.slot, self.startup);
        let any = next < pieces(&account.layout, track);
        any.then(|| (deadline(), Appointment { session, row, promise }))
    }
}

impl Row {
    fn new(now: Moment, layout: &Layout, track: TrackNumber, from_ms: u32) -> Self {
        let mut row = Self {
            track,
            origin: now,
            from_ms,
            promise: 0,
            next: 0,
            got: BTreeSet::new(),
            furthest: 0,
            asked: now,
            asks: false,
            given_up: false,
        };
        row.next = row.first(layout);
        row.furthest = row.next;
        row
    }

    fn deadline(&self, layout: &Layout, piece: u32, slot: Duration, startup: Duration) -> Moment {
        let due = layout.tracks[usize::from(self.track)].due[piece as usize];
        let ahead = Duration::from_millis(u64::from(due.saturating_sub(self.from_ms)));
        self.origin + ahead.saturating_sub(slot).max(startup)
    }

    /// The first piece of the segment that the promise starts with.
    fn first(&self, layout: &Layout) -> u32 {
        let due = &layout.tracks[usize::from(self.track)].due;
        let on = due.partition_point(|due| *due <= self.from_ms);
        let segment = on.checked_sub(1).map_or(0, |last| due[last]);
        count(due.partition_point(|due| *due < segment))
    }

    /// Whether the player is so late that the engine may have moved its schedule.
    fn is_behind(&self, layout: &Layout, now: Moment, slot: Duration, startup: Duration) -> bool {
        let next = (self.furthest + 1).min(pieces(layout, self.track) - 1);
        self.asks && self.deadline(layout, next, slot, startup) + slot <= now
    }

    /// Whether `piece` is beyond all that may come next after what the player has.
    fn is_jump(&self, layout: &Layout, piece: u32) -> bool {
        let due = &layout.tracks[usize::from(self.track)].due;
        let at = |piece: u32| due[(piece as usize).min(due.len() - 1)];
        let next_segment = at(count(due.partition_point(|due| *due <= at(self.furthest))));
        piece > self.furthest + 1 && at(piece) > next_segment
    }
}

fn pieces(layout: &Layout, track: TrackNumber) -> u32 {
    count(layout.tracks[usize::from(track)].due.len())
}

fn count(pieces: usize) -> u32 {
    u32::try_from(pieces).expect("pieces are counted in u32")
}
