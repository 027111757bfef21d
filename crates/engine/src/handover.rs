//! Sessions that go on in another engine: the server is replaced by a new one, and its viewers play
//! on.
//!
//! ```text
//!   this engine                                     the next engine, with the same clock
//!   handed_sessions ─▶ HandedSession: its id, its      take_over ─▶ the streams, from the player's next
//!                     tracks, and per stream the               bytes on, at their old deadlines
//!                     play-out clock and position     │ some could not be read in time
//!                                                     ├▶ later by that, all streams alike
//!                                                     │ it does not fit, or its viewer is silent
//!                                                     └▶ a session without a reservation
//! ```
//!
//! What was in memory is read again. A player has usually fetched ahead of its play-out clock, so
//! its next bytes are due only later; of one that has not, the schedule moves by as much as the
//! handover has taken, and what was due meanwhile counts as late.
//!
//! A session without a reservation stays, as after a long silence: its next request is evaluated as
//! a seek. Requests and detached transfers are not handed over.

use super::bookings::evaluate::Accepted;
use super::pieces::curve;
use super::sessions::{Presence, Session};
use super::stream::Stream;
use super::streams::{Beginning, Choice};
use super::{AdmitRequest, Engine, HandedSession, HandedStream, Layout, Moment, TakenOver};
use std::collections::BTreeMap;
use std::sync::Arc;

impl Engine {
    /// All sessions but fills, those furthest ahead in play-out first: they are followed by others.
    pub(super) fn states(&self) -> Vec<HandedSession> {
        let players = self.sessions.iter().filter(|(_, session)| session.fill.is_none());
        let mut states: Vec<HandedSession> = players
            .map(|(id, session)| HandedSession {
                session: *id,
                tracks: session.tracks.clone(),
                streams: session.streams.iter().map(|id| self.streams[id].state()).collect(),
                asked: session.asked,
                last_activity: session.last_activity,
                summary: *self.streams.accounts.of(*id),
            })
            .collect();
        // Media time zero of those ahead was played first.
        let zero = |state: &HandedSession| {
            let zero = |stream: &HandedStream| {
                i128::from(stream.origin.0) - i128::from(stream.from_ms) * 1_000_000
            };
            state.streams.iter().map(zero).min()
        };
        states.sort_by_key(|state| (zero(state), state.session));
        states
    }

    /// The number that the next session gets.
    pub fn next_session(&self) -> u64 {
        self.next_session
    }

    /// The next session gets this number, or a higher one: those before it were sessions of an
    /// earlier engine.
    pub fn begin_sessions_at(&mut self, number: u64) {
        self.next_session = self.next_session.max(number);
    }

    /// Goes on with a session of an earlier engine.
    pub(super) fn go_on_with(
        &mut self,
        now: Moment,
        mut state: HandedSession,
        request: AdmitRequest,
    ) -> TakenOver {
        let id = state.session;
        assert!(!self.sessions.contains_key(&id), "{id:?} is handed over once");
        self.next_session = self.next_session.max(id.0.saturating_add(1));
        // The layouts may be cut into other pieces now, which is of no importance to bytes.
        state.tracks.retain(|track| usize::from(*track) < request.layout.tracks.len());
        state.streams.retain(|stream| stream.is_of(&request.layout));
        let missed = self.missed(now, &mut state, &request.layout);
        let caught_up = self.catch_up(now, &mut state, &request.layout);
        let offers = vec![state.tracks.clone()];
        let wanted = AdmitRequest { offers, replaces: None, fill: None, ..request.clone() };
        let choice = match state.streams.is_empty() {
            true => None,
            false => Some(self.choose_singly(now, &wanted, Beginning::TakenOver(&state))),
        };
        let (accepted, taken) = match choice {
            None => (None, TakenOver::Silent),
            Some(Err(refusal)) => (None, TakenOver::Refused(refusal)),
            Some(Ok(Choice { accepted, slots, .. })) => {
                let delay = self.config.slot.saturating_mul(slots.saturating_add(caught_up));
                (Some(accepted), TakenOver::Booked { delay })
            }
        };
        self.insert_taken_over(now, state, request, accepted);
        for deadline in missed {
            self.streams.accounts.count_piece(now, id, deadline);
        }
        taken
    }

    fn insert_taken_over(
        &mut self,
        now: Moment,
        state: HandedSession,
        request: AdmitRequest,
        accepted: Option<Accepted>,
    ) {
        let mut summary = state.summary;
        summary.title = request.layout.title;
        summary.priority = request.priority;
        let session = Session {
            copies: self.streams.copies_of(&request),
            layout: request.layout,
            replica: None,
            offers: request.offers,
            tracks: state.tracks,
            streams: Vec::new(),
            requests: Vec::new(),
            reserve: 0,
            unsent: 0,
            last_activity: state.last_activity,
            asked: state.asked,
            presence: Presence::Disconnected(now),
            fill: None,
            priority: request.priority,
            seeks: BTreeMap::new(),
        };
        self.insert_session(state.session, summary, session, accepted);
    }

    // The deadlines of unread pieces that have passed. They count as late now, and not again.
    fn missed(&self, now: Moment, state: &mut HandedSession, layout: &Arc<Layout>) -> Vec<Moment> {
        let overdue =
            |of: &HandedStream| self.stream_taken_over(now, state, of, layout).overdue(now);
        let overdue: Vec<_> = state.streams.iter().map(overdue).collect();
        for (of, overdue) in state.streams.iter_mut().zip(&overdue) {
            let curve = curve(&layout.tracks[usize::from(of.track)]);
            let counted = overdue.last().map(|(piece, _)| curve.start(piece.saturating_add(1)));
            of.counted = of.counted.max(counted.unwrap_or(0)).min(of.bytes);
        }
        overdue.into_iter().flatten().map(|(_, deadline)| deadline).collect()
    }

    // Moves all streams of a session later by as many slots as the first of their pieces needs to
    // be read in; says by how many.
    fn catch_up(&self, now: Moment, state: &mut HandedSession, layout: &Arc<Layout>) -> u32 {
        let first = self.streams.bookings.slot().0 + 1;
        let late = |of: &HandedStream| {
            let next = self.stream_taken_over(now, state, of, layout).next_read();
            next.map_or(0, |next| first.saturating_sub(next.due.0))
        };
        let slots = state.streams.iter().map(late).max().unwrap_or(0);
        let slots = u32::try_from(slots).unwrap_or(u32::MAX);
        for stream in &mut state.streams {
            stream.origin = stream.origin + self.config.slot.saturating_mul(slots);
        }
        slots
    }

    fn stream_taken_over(
        &self,
        now: Moment,
        state: &HandedSession,
        of: &HandedStream,
        layout: &Arc<Layout>,
    ) -> Stream {
        let bookings = &self.streams.bookings;
        // With a replica, if there may be one: pieces are then due earliest.
        let replica = bookings.survives_loss().then_some(0);
        let timing = bookings.playout_clock(now, 0, replica);
        Stream::taken_over(state, of, Arc::clone(layout), timing)
    }
}
