//! Departures: reservations that a newcomer may take, because their viewers seem to have gone.
//!
//! ```text
//!   the player                                             its reservation is revocable
//!   ──────────────────────────────────────────────────────────────────────────────────────────────
//!   has left (it closed a connection that it would         at once
//!     have used again)
//!   has no connection, for whatever reason                 once its clock says that it should have
//!                                                          fetched again, and nothing is asked for
//!   has a connection, and never asked for media            a start-up time after its admission
//!   has a connection, and takes next to nothing            once eight times the media that it took
//!                                                          have passed since its admission
//!   has a connection, and plays                            never
//! ```
//!
//! A revocable reservation is kept as long as nobody needs it: a player that comes back finds it as
//! it was. A request that does not fit is decided on once more with revocable reservations off the
//! books, and those end if it is accepted. Their sessions stay, and are readmitted when they go on,
//! as after a long silence.

use super::admission::SuspendedSession;
use super::bookings::Placement;
use super::sessions::{Presence, Session};
use super::{
    Action, Disconnection, Engine, Resource, ScheduleChange, SessionId, StreamId, TrackNumber,
};
use std::collections::BTreeSet;
use std::time::Duration;
use units::{Moment, nanos};

/// The sessions that may give way to a request.
#[derive(Debug)]
pub(super) struct GiveWay {
    /// Disks on any of which they have a booking; `None`: all sessions, the network is short.
    disks: Option<BTreeSet<usize>>,
    /// The session whose request it is, which does not give way to itself.
    except: Option<SessionId>,
}

impl GiveWay {
    /// Sessions on the disks that candidates were short of; all, if one was short of the network.
    pub(super) fn for_shortfalls(short: impl IntoIterator<Item = (Placement, Resource)>) -> Self {
        let mut disks = Some(BTreeSet::new());
        for (Placement { disk, replica }, resource) in short {
            disks = disks.filter(|_| resource != Resource::Network);
            disks.iter_mut().for_each(|disks| disks.extend([disk].into_iter().chain(replica)));
        }
        Self { disks, except: None }
    }

    /// All of these but one.
    pub(super) fn except(self, session: SessionId) -> Self {
        Self { except: Some(session), ..self }
    }

    /// Whether this session is one of them.
    pub(super) fn includes(&self, id: SessionId, session: &Session) -> bool {
        let Placement { disk, replica } = session.placement();
        let of = |disks: &BTreeSet<usize>| {
            disks.contains(&disk) || replica.is_some_and(|replica| disks.contains(&replica))
        };
        self.except != Some(id) && self.disks.as_ref().is_none_or(of)
    }
}

impl Engine {
    /// The player of a session has a connection.
    pub(super) fn note_connected(&mut self, session: SessionId) {
        if let Some(session) = self.sessions.get_mut(&session) {
            session.presence = Presence::Connected;
        }
    }

    /// The player of a session has no connection any more.
    pub(super) fn note_disconnected(
        &mut self,
        now: Moment,
        session: SessionId,
        how: Disconnection,
    ) {
        if let Some(session) = self.sessions.get_mut(&session) {
            session.presence = match how {
                Disconnection::Left => Presence::Left(now),
                Disconnection::Unclear => Presence::Disconnected(now),
            };
        }
    }

    /// Since when the reservation of a session may be given to another; `None`: it may not, or
    /// there is none.
    pub(super) fn revocable_since(&self, session: &Session, now: Moment) -> Option<Moment> {
        let since = self.revocable_from(session)?;
        (since <= now).then_some(since)
    }

    /// When the reservation of a session becomes revocable if nothing more is heard of its player.
    pub(super) fn revocable_from(&self, session: &Session) -> Option<Moment> {
        // A session that is being decided on has streams that are off the books.
        let is_booked = |id: &StreamId| self.streams.get(*id).is_some();
        if session.streams.is_empty() || !session.streams.iter().all(is_booked) {
            return None;
        }
        let gone = match session.presence {
            // What its sockets still have is of no use to anybody.
            Presence::Left(at) => Some(at),
            _ if !session.requests.is_empty() => None,
            // A player asks for media within the time in which it was promised some.
            _ if !session.asked => Some(session.last_activity + self.config.startup),
            Presence::Disconnected(at) => Some(at.max(self.next_fetch(session))),
            Presence::Connected => None,
        };
        let idle = (session.asked && !self.is_waited_for(session)).then(|| self.outlasts(session));
        [gone, idle].into_iter().flatten().min()
    }

    // When a session has lasted longer than any player needs for the media that it has taken. One
    // that takes less, a byte now and then, only holds a place.
    fn outlasts(&self, session: &Session) -> Moment {
        let summary = self.streams.accounts.of(self.streams[&session.streams[0]].session);
        let bytes = |track: &TrackNumber| session.layout.tracks[usize::from(*track)].bytes;
        let bytes = session.tracks.iter().map(bytes).sum::<u64>().max(1);
        let taken = nanos(session.layout.duration);
        let taken = u128::from(taken) * u128::from(summary.delivered) / u128::from(bytes);
        let taken = Duration::from_nanos(u64::try_from(taken).unwrap_or(u64::MAX));
        let lasts = taken.saturating_mul(SLOWEST_PLAYER).max(self.config.idle_timeout);
        Moment(summary.admitted.0.saturating_add(nanos(lasts)))
    }

    // When the player has fetched again at the latest, if it plays on: a piece is due a slot before
    // it is shown, and the player has another slot to fetch it in.
    fn next_fetch(&self, session: &Session) -> Moment {
        let due = session.streams.iter().map(|id| self.streams[id].next_need()).max();
        due.unwrap_or(Moment::ZERO) + self.config.slot * 2
    }

    /// Evaluates a request that does not fit with revocable reservations off the books: those that
    /// have been revocable longest, and as few as are needed. If it fits then, they end; otherwise
    /// all is as it was. `fit` changes no book, so that any of its results may be dropped.
    pub(super) fn fit_in_place_of_others<T>(
        &mut self,
        now: Moment,
        who: &GiveWay,
        mut fit: impl FnMut(&mut Self) -> Option<T>,
    ) -> Option<T> {
        let revocable = self.revocable(now, who);
        let (fitted, taken) = self.fit_without_fewest(&revocable, &mut fit)?;
        for suspended in taken {
            self.end_reservation(now, suspended);
        }
        Some(fitted)
    }

    /// Evaluates a request with sessions off the books: the first of these, and as few as are
    /// needed. Returns what fits, and the sessions that are off the books for it; `None`: it does
    /// not fit, and all are as they were.
    pub(super) fn fit_without_fewest<T>(
        &mut self,
        sessions: &[SessionId],
        fit: &mut impl FnMut(&mut Self) -> Option<T>,
    ) -> Option<(T, Vec<SuspendedSession>)> {
        let (mut taken, mut fitted) = (Vec::new(), None);
        // `enough` fit, or nothing is known to be enough; so many as `short` do not.
        let (mut short, mut enough) = (0, sessions.len() + 1);
        while enough - short > 1 {
            // Twice as many each time until it fits, then halfway between too few and enough.
            let count = match enough > sessions.len() {
                true => (short * 2).clamp(1, sessions.len()),
                false => short + (enough - short) / 2,
            };
            self.suspend_first(sessions, count, &mut taken);
            fitted = self.fit_without(&mut taken, fit);
            *(if fitted.is_some() { &mut enough } else { &mut short }) = count;
        }
        if fitted.is_none() && enough <= sessions.len() {
            // The last evaluation must be one of the books as they are from now on.
            self.suspend_first(sessions, enough, &mut taken);
            fitted = self.fit_without(&mut taken, fit);
        }
        if fitted.is_none() {
            self.suspend_first(sessions, 0, &mut taken);
        }
        fitted.map(|fitted| (fitted, taken))
    }

    /// Evaluates with these sessions off the books. If the request does not fit so, it may still
    /// fit without the feeds that read for nobody but them.
    pub(super) fn fit_without<T>(
        &mut self,
        taken: &mut [SuspendedSession],
        fit: &mut impl FnMut(&mut Self) -> Option<T>,
    ) -> Option<T> {
        let fitted = fit(self);
        if fitted.is_some() {
            return fitted;
        }
        // Resumed first, so that these feeds are on the books again before any follower is.
        let last = taken.last_mut()?;
        let feeds = self.streams.suspend_idle_feeds();
        if feeds.is_empty() {
            return None;
        }
        let fitted = fit(self);
        match &fitted {
            Some(_) => last.feeds = feeds,
            None => self.streams.resume_feeds(feeds),
        }
        fitted
    }

    /// The sessions whose reservations may be taken for a request, in the order in which they are.
    pub(super) fn revocable(&self, now: Moment, who: &GiveWay) -> Vec<SessionId> {
        let since = |(id, session): (&SessionId, &Session)| {
            Some((self.revocable_since(session, now).filter(|_| who.includes(*id, session))?, *id))
        };
        let mut all: Vec<(Moment, SessionId)> = self.sessions.iter().filter_map(since).collect();
        all.sort_unstable();
        all.into_iter().take(MOST_REVOKED).map(|(_, id)| id).collect()
    }

    // Takes the first `count` of these sessions off the books, and no others.
    fn suspend_first(
        &mut self,
        sessions: &[SessionId],
        count: usize,
        taken: &mut Vec<SuspendedSession>,
    ) {
        while taken.len() > count {
            let last = taken.pop().expect("more than none");
            self.resume(last);
        }
        while taken.len() < count {
            let next = self.suspend(sessions[taken.len()]);
            taken.push(next);
        }
    }

    /// The reservation of a session that is off the books ends; the session stays.
    pub(super) fn end_reservation(&mut self, now: Moment, suspended: SuspendedSession) {
        self.streams.accounts.counters.revoked += 1;
        let session = suspended.session;
        self.streams.end_feeds(suspended.feeds);
        for (id, stream) in suspended.streams {
            let change = ScheduleChange::Released { track: stream.track };
            self.streams.actions.push(Action::Rescheduled { session, change });
            self.streams.settle(now, id, &stream);
        }
    }
}

/// Reservations that one request may take. A newcomer seldom needs more than two, and each costs
/// some time to take off the books.
const MOST_REVOKED: usize = 64;

/// How many times as long as its media a player may take for it, with pauses, and keep its place
/// from those who do not fit.
const SLOWEST_PLAYER: u32 = 8;
