//! Deadlines: an account from outside of what is owed to each session and what was kept, piece by
//! piece, from its admission to its end.
//!
//! ```text
//!   grant     origin o = the moment of the grant, from = where in the title:
//!               after an admission, the time at which the player asked to start;
//!               after a seek, the end of the segment that holds the next byte
//!   due       o + startup                             what is needed first
//!             o + max(startup, due - from - slot)     the rest
//!   kept      in memory at that moment, or already handed to that session
//!   ends      with a later grant or a release; `schedule` says when either is right
//! ```
//!
//! It is told what the driver of an engine is told: what was asked for, what was handed over, and
//! the answers. The deadlines that follow from an answer it computes from the title. It goes by the
//! server's contract alone: start-up and slot as configured, the segments of the player, the length
//! of a read, and at most [`SEND_WINDOW`] reads of each track in the sockets of a session.

use super::schedule::{Contract, GrantStart, TrackSchedule};
use super::seeks::{Ask, Contiguity, Segments};
use super::{Memory, Piece};
use server::engine::{Layout, Part, RequestId, SessionId, SessionSummary, TrackNumber};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use units::Moment;

/// Where an account's next due time is looked at: names the promise, so that an outdated
/// appointment is told from a good one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct DeadlineCheck {
    pub(crate) session: SessionId,
    row: usize,
    grant: u32,
}

/// A piece that was not there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Miss {
    pub(crate) session: SessionId,
    pub(crate) piece: Piece,
    pub(crate) deadline: Moment,
}

/// Where a track goes on after a seek.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SeekTarget {
    pub(crate) track: TrackNumber,
    pub(crate) byte: u64,
    /// When the segment of that byte starts and ends in the title.
    pub(crate) starts: Duration,
    pub(crate) ends: Duration,
}

#[derive(Debug)]
struct Account {
    layout: Arc<Layout>,
    segments: Arc<Segments>,
    rows: Vec<TrackSchedule>,
    missed: u64,
    /// Bytes of buffers that its sockets hold ...
    unsent: u64,
    /// ... and since when there has been room for one more.
    had_room: Moment,
}

#[derive(Debug)]
pub(crate) struct Deadlines {
    contract: Contract,
    accounts: BTreeMap<SessionId, Account>,
    /// Requests that may still get something.
    open: BTreeMap<RequestId, (SessionId, Vec<Ask>)>,
    pub(crate) on_time: u64,
    pub(crate) missed: u64,
}

impl Deadlines {
    pub(crate) fn new(contract: Contract) -> Self {
        let (accounts, open) = (BTreeMap::new(), BTreeMap::new());
        Self { contract, accounts, open, on_time: 0, missed: 0 }
    }

    /// A session was let in to play these tracks of a title from a time on. Says when to look.
    pub(crate) fn admitted(
        &mut self,
        now: Moment,
        session: SessionId,
        (layout, segments): (&Arc<Layout>, &Arc<Segments>),
        (tracks, from): (&[TrackNumber], Duration),
    ) -> Vec<(Moment, DeadlineCheck)> {
        let row = |track: &TrackNumber| {
            let byte = segments.byte_at(*track, from);
            let start = GrantStart { track: *track, byte, from_ms: millis(from) };
            TrackSchedule::admitted(now, layout, segments, &start, &self.contract)
        };
        let account = Account {
            rows: tracks.iter().map(row).collect(),
            layout: Arc::clone(layout),
            segments: Arc::clone(segments),
            missed: 0,
            unsent: 0,
            had_room: Moment::ZERO,
        };
        self.accounts.insert(session, account);
        (0..tracks.len()).filter_map(|row| self.check(session, row)).collect()
    }

    /// A session asks for something. Says of each track whether it goes on where it was.
    pub(crate) fn wants(
        &mut self,
        now: Moment,
        session: SessionId,
        (request, parts): (RequestId, &[Part]),
    ) -> Vec<(TrackNumber, Contiguity)> {
        let asks = Ask::all(parts);
        let Some(account) = self.accounts.get_mut(&session) else { return Vec::new() };
        let mut judged = Vec::new();
        for ask in &asks {
            let row = account.rows.iter_mut().find(|row| row.track == ask.track);
            let contiguity = row.map_or(Contiguity::Seeks, |row| {
                row.last_activity = now;
                let layout = &account.layout.tracks[usize::from(ask.track)];
                let contiguity = row.seeks.judge(&account.segments, layout, ask);
                if contiguity != Contiguity::Continues {
                    row.seeking = Some(request);
                }
                contiguity
            });
            judged.push((ask.track, contiguity));
        }
        self.open.insert(request, (session, asks));
        judged
    }

    /// A request was not refused at once; what it asks for of these tracks was granted anew.
    pub(crate) fn taken_on(&mut self, request: RequestId, granted: &[TrackNumber]) {
        let Some((session, asks)) = self.open.get(&request) else { return };
        let Some(account) = self.accounts.get_mut(session) else { return };
        for ask in asks.iter().filter(|ask| !granted.contains(&ask.track)) {
            if let Some(row) = account.rows.iter_mut().find(|row| row.track == ask.track) {
                // The server takes it to go on, so it does.
                row.seeking = row.seeking.filter(|seeking| *seeking != request);
                row.seeks.note_request(&account.segments, ask);
            }
        }
    }

    /// Nothing more is handed over for a request. `hung_up`: by the viewer's will.
    pub(crate) fn over(&mut self, now: Moment, request: RequestId, hung_up: bool) {
        let Some((session, asks)) = self.open.remove(&request) else { return };
        let Some(account) = self.accounts.get_mut(&session) else { return };
        for row in &mut account.rows {
            if row.seeking == Some(request) {
                row.seeking = None;
            }
            let track = row.track;
            let left = asks.iter().filter(|ask| ask.track == track && !ask.bytes.is_empty());
            for ask in left {
                row.last_activity = if hung_up { now } else { row.last_activity };
                row.seeks.stopped(&account.segments, ask);
            }
        }
    }

    /// The session's sockets were given a buffer of `len` bytes.
    pub(crate) fn given(&mut self, session: SessionId, len: u32) {
        if let Some(account) = self.accounts.get_mut(&session) {
            account.unsent += u64::from(len);
        }
    }

    /// They do not hold it any more.
    pub(crate) fn took(
        &mut self,
        now: Moment,
        session: SessionId,
        (track, len): (TrackNumber, u32),
    ) {
        let Some(account) = self.accounts.get_mut(&session) else { return };
        let pieces =
            || account.rows.iter().map(|row| &account.layout.tracks[usize::from(row.track)].piece);
        let window = pieces().map(|piece| u64::from(*piece) * SEND_WINDOW).sum::<u64>();
        let largest = pieces().copied().max().unwrap_or(0);
        if account.unsent + u64::from(largest) > window {
            account.had_room = now;
        }
        account.unsent -= u64::from(len);
        if let Some((_, row)) = self.row(session, track) {
            row.last_activity = now;
        }
    }

    /// Since when the session's sockets have had room for another piece.
    pub(crate) fn had_room(&self, session: SessionId) -> Moment {
        self.accounts.get(&session).map_or(Moment::ZERO, |account| account.had_room)
    }

    /// The next byte that a request has not been handed of a track.
    pub(crate) fn owed(&self, request: RequestId, track: TrackNumber) -> Option<u64> {
        let (_, asks) = self.open.get(&request)?;
        asks.iter().find(|ask| ask.track == track).map(|ask| ask.bytes.start)
    }

    /// Whether a request is still owed its next byte of a track by an earlier promise.
    pub(crate) fn is_owed(&self, now: Moment, request: RequestId, track: TrackNumber) -> bool {
        let Some((session, _)) = self.open.get(&request) else { return false };
        let Some(account) = self.accounts.get(session) else { return false };
        let row = account.rows.iter().find(|row| row.track == track);
        let (Some(row), Some(byte)) = (row, self.owed(request, track)) else { return false };
        row.seeking != Some(request) && row.is_owed(&account.layout, now, byte)
    }

    /// Whether a request does not jump and is owed all that it waits for: it must not be refused.
    pub(crate) fn is_all_owed(&self, now: Moment, request: RequestId) -> bool {
        let Some((session, asks)) = self.open.get(&request) else { return false };
        let Some(account) = self.accounts.get(session) else { return false };
        let jumps = account.rows.iter().any(|row| row.seeking == Some(request));
        let mut left = asks.iter().filter(|ask| !ask.bytes.is_empty());
        !jumps && left.all(|ask| self.is_owed(now, request, ask.track))
    }

    /// A request was let in anew at `place`, `wait` from now. Says when to look, and whether
    /// that replaced a promise that still held.
    pub(crate) fn readmitted(
        &mut self,
        now: Moment,
        request: RequestId,
        (target, wait): (SeekTarget, Duration),
    ) -> (Option<(Moment, DeadlineCheck)>, bool) {
        let right = !self.is_owed(now, request, target.track);
        let Some((session, asks)) = self.open.get(&request) else { return (None, right) };
        let session = *session;
        let Some(account) = self.accounts.get_mut(&session) else { return (None, right) };
        let Some(number) = account.rows.iter().position(|row| row.track == target.track) else {
            return (None, right);
        };
        let row = &mut account.rows[number];
        row.renew(now, wait, &account.layout, &account.segments, &target);
        let younger =
            self.open.range((std::ops::Bound::Excluded(request), std::ops::Bound::Unbounded));
        let younger = younger.filter(|(_, (of, _))| *of == session).flat_map(|(_, (_, asks))| asks);
        for ask in asks.iter().chain(younger) {
            if ask.track == target.track && !ask.bytes.is_empty() {
                row.seeks.note_request(&account.segments, ask);
            }
        }
        (self.check(session, number), right)
    }

    /// The rest of a track is promised `slots` later. Says whether that was right.
    pub(crate) fn delayed(
        &mut self,
        now: Moment,
        session: SessionId,
        (track, slots): (TrackNumber, u32),
    ) -> bool {
        let owed = self.least_owed(session, track);
        let Some((layout, row)) = self.row(session, track) else { return false };
        row.delayed(now, layout, owed, slots)
    }

    /// Nothing of a track is promised any more. Says whether that was right.
    pub(crate) fn released(&mut self, now: Moment, session: SessionId, track: TrackNumber) -> bool {
        let idle_after = self.contract.idle_after;
        let Some((layout, row)) = self.row(session, track) else { return false };
        row.released(now, layout, idle_after)
    }

    /// A request got bytes of a piece, up to `end` of the track, that it could have taken from
    /// `could_take` on. Says when they were promised, if they were.
    pub(crate) fn got(
        &mut self,
        request: RequestId,
        (piece, whole, end): (Piece, bool, u64),
        could_take: Moment,
    ) -> Option<Moment> {
        let (session, asks) = self.open.get_mut(&request)?;
        for ask in asks.iter_mut().filter(|ask| ask.track == piece.track) {
            ask.bytes.start = end.min(ask.bytes.end);
        }
        let account = self.accounts.get_mut(session)?;
        let row = account.rows.iter_mut().find(|row| row.track == piece.track)?;
        row.got(&account.layout, (piece.piece, whole), could_take)
    }

    /// The moment of an appointment has come: looks, and says when to look next.
    pub(crate) fn look(
        &mut self,
        now: Moment,
        check: DeadlineCheck,
        memory: &Memory,
        misses: &mut Vec<Miss>,
    ) -> Option<(Moment, DeadlineCheck)> {
        let session = check.session;
        let account = self.accounts.get_mut(&session)?;
        let layout = &account.layout;
        let row = &mut account.rows[check.row];
        if row.grant != check.grant || !row.promised {
            return None;
        }
        while let Some(deadline) = row.next_deadline(layout) {
            if deadline > now {
                return Some((deadline, check));
            }
            let piece = Piece { title: layout.title, track: row.track, piece: row.next };
            if row.looked_at_next() || memory.holds(piece) {
                self.on_time += 1;
            } else {
                account.missed += 1;
                self.missed += 1;
                misses.push(Miss { session, piece, deadline });
            }
        }
        None
    }

    /// The session is over. The engine must not have counted fewer misses (it counts more where a
    /// piece was in memory for another viewer only): otherwise returns both.
    pub(crate) fn ended(
        &mut self,
        session: SessionId,
        summary: &SessionSummary,
    ) -> Option<(u64, u64)> {
        let account = self.accounts.remove(&session)?;
        self.open.retain(|_, (of, _)| *of != session);
        let fewer = summary.deadline_misses < account.missed;
        fewer.then_some((account.missed, summary.deadline_misses))
    }

    /// The first byte of a track that an open request of the session waits for.
    fn least_owed(&self, session: SessionId, track: TrackNumber) -> Option<u64> {
        let asks = self.open.values().filter(|(of, _)| *of == session).flat_map(|(_, asks)| asks);
        let owed = asks.filter(|ask| ask.track == track && !ask.bytes.is_empty());
        owed.map(|ask| ask.bytes.start).min()
    }

    fn row(
        &mut self,
        session: SessionId,
        track: TrackNumber,
    ) -> Option<(&Layout, &mut TrackSchedule)> {
        let Account { layout, rows, .. } = self.accounts.get_mut(&session)?;
        let row = rows.iter_mut().find(|row| row.track == track)?;
        Some((layout, row))
    }

    fn check(&self, session: SessionId, row: usize) -> Option<(Moment, DeadlineCheck)> {
        let account = &self.accounts[&session];
        let grant = account.rows[row].grant;
        let deadline = account.rows[row].next_deadline(&account.layout)?;
        Some((deadline, DeadlineCheck { session, row, grant }))
    }
}

/// Reads of each track that a session's sockets may hold.
const SEND_WINDOW: u64 = 2;

pub(super) fn millis(time: Duration) -> u32 {
    u32::try_from(time.as_millis()).unwrap_or(u32::MAX)
}
