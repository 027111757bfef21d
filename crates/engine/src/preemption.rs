//! Preemption: a viewer who would be refused takes the place of viewers of a lower priority.
//!
//! ```text
//!   a request fits neither now, nor in place of viewers who have gone, nor within its wait
//!     │
//!     │   sessions of a lower priority on the disks that are short: the lowest first, of one
//!     │   priority the newest first, at most MOST_PREEMPTED
//!     ▼
//!   as few of them as are needed are off the books
//!     ├── it fits ──▶ those without whose places it fits as well are put back, the others end
//!     └── it never fits ──▶ all are as they were; it is refused
//! ```
//!
//! - Nobody gives way to a viewer of its own priority or of a lower one.
//! - Nobody gives way for nothing: a session ends only after the request was approved without it.
//! - A session ends, and is not made smaller: which rendition is fetched next is its player's
//!   choice. A player that begins again gets the rendition for which there is room then.
//! - Fills of caches neither take places nor give way: they last for one response.
//! - Where no session has a lower priority than the request, nothing is evaluated.
//!
//! Who ends on a disk that is too slow for all is decided in `overload`, in the same order.

use super::admission::SuspendedSession;
use super::departure::GiveWay;
use super::sessions::Session;
use super::{CutShort, Engine, Priority, SessionId};
use std::cmp::Reverse;
use std::collections::BTreeSet;
use units::Moment;

impl Engine {
    /// Evaluates a request of this priority that does not fit with sessions of a lower one off the
    /// books, as few as are needed. If it fits then, they end, and are returned with what fits;
    /// otherwise all is as it was. `fit` changes no book, so that any of its results may be
    /// dropped.
    ///
    /// Their number is found by halving, and [`MOST_PREEMPTED`] bounds how often one is put back.
    pub(super) fn fit_in_place_of_lower<T>(
        &mut self,
        now: Moment,
        priority: Priority,
        who: &GiveWay,
        mut fit: impl FnMut(&mut Self) -> Option<T>,
    ) -> Option<(T, Vec<SessionId>)> {
        let lower = self.give_way_order(|session| session.priority < priority, who);
        if lower.is_empty() {
            return None;
        }
        // Those who have gone lose nothing, so they come before those who play.
        let gone = self.revocable(now, who);
        let has_gone: BTreeSet<SessionId> = gone.iter().copied().collect();
        let playing = lower.into_iter().filter(|id| !has_gone.contains(id)).take(MOST_PREEMPTED);
        let in_order: Vec<SessionId> = gone.iter().copied().chain(playing).collect();
        let (fitted, taken) = self.fit_without_fewest(&in_order, &mut fit)?;
        let (fitted, taken) = self.put_back_needless(fitted, taken, gone.len(), &mut fit)?;
        let mut preempted = Vec::new();
        for suspended in taken {
            match has_gone.contains(&suspended.session) {
                true => self.end_reservation(now, suspended),
                false => preempted.push(self.cut_short(now, suspended, CutShort::Priority)),
            }
        }
        Some((fitted, preempted))
    }

    /// The sessions with a booking that are to end for others, in the order in which they do.
    pub(super) fn give_way_order(
        &self,
        may_end: impl Fn(&Session) -> bool,
        who: &GiveWay,
    ) -> Vec<SessionId> {
        let is_booked = |session: &Session| {
            let mut streams = session.streams.iter();
            !session.streams.is_empty() && streams.all(|id| self.streams.get(*id).is_some())
        };
        let may_end = |(id, session): &(&SessionId, &Session)| {
            session.fill.is_none()
                && may_end(session)
                && who.includes(**id, session)
                && is_booked(session)
        };
        let all = self.sessions.iter().filter(may_end);
        let mut all: Vec<_> = all.map(|(id, session)| (session.priority, Reverse(*id))).collect();
        all.sort_unstable();
        all.into_iter().map(|(_, Reverse(id))| id).collect()
    }

    // Puts sessions back on the books without whose places the request fits as well: of those from
    // number `from` on, which would end, first those that would end last. `None`: it does not fit
    // any more, and all are as they were.
    fn put_back_needless<T>(
        &mut self,
        fitted: T,
        mut taken: Vec<SuspendedSession>,
        from: usize,
        fit: &mut impl FnMut(&mut Self) -> Option<T>,
    ) -> Option<(T, Vec<SuspendedSession>)> {
        let mut fitted = Some(fitted);
        // Without the last it does not fit: that is how their number was found.
        for at in (from..taken.len().saturating_sub(1)).rev() {
            // Before followers are: a feed that is off the books is with the last session.
            if let Some(last) = taken.last_mut() {
                let feeds = std::mem::take(&mut last.feeds);
                self.streams.resume_feeds(feeds);
            }
            let spared = taken.remove(at);
            let id = spared.session;
            self.resume(spared);
            fitted = self.fit_without(&mut taken, fit);
            if fitted.is_none() {
                let suspended = self.suspend(id);
                taken.insert(at, suspended);
            }
        }
        // The last evaluation must be one of the books as they are from now on.
        let fitted = fitted.or_else(|| self.fit_without(&mut taken, fit));
        if fitted.is_none() {
            taken.into_iter().rev().for_each(|suspended| self.resume(suspended));
            return None;
        }
        fitted.map(|fitted| (fitted, taken))
    }

    /// A session that is off the books ends for this reason.
    pub(super) fn cut_short(
        &mut self,
        now: Moment,
        suspended: SuspendedSession,
        why: CutShort,
    ) -> SessionId {
        let SuspendedSession { session, streams, feeds, .. } = suspended;
        self.streams.end_feeds(feeds);
        for (id, stream) in streams {
            self.streams.settle(now, id, &stream);
        }
        self.streams.accounts.cut_short(session, why);
        if let Some(ended) = self.sessions.get(&session) {
            self.streams.accounts.counters.preempted_of_priority[ended.priority as usize] += 1;
        }
        // Its sockets still send the buffers that they hold.
        self.end_session(now, session, false);
        session
    }
}

/// Sessions that may end for one request. A newcomer seldom needs more than two, and each may cost
/// an evaluation.
const MOST_PREEMPTED: usize = 16;
