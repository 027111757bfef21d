//! Admission: new sessions begin here, if one of their offers fits at some placement (`placement`,
//! `evaluate`). Seeks (`seek`) pass through the same evaluation.
//!
//! ```text
//!   offers, best first ── one fits ──────────────▶ admitted, now
//!        │ none            memory is short: one fits with less for sockets ──▶ admitted, now
//!        │                   or if the longest interval is given up
//!        │                 viewers have gone: one fits in their place ───────▶ admitted, now
//!        │                 a patient viewer: one fits later ──▶ admitted, booked for then
//!        │                 a higher priority: one fits in place
//!        │                   of lower ones (`preemption`) ─────▶ admitted, and these end
//!        └─────────────────────────────────────────────────────▶ refused: what is short, and when
//!   a fill of a cache, and a session of the server before (`handover`): none of the rules for
//!   viewers who start together (`choose_singly`)
//!   instead of a session (another part, another speed): that session's booking is off the books
//!   during the decision; it ends if the new one is admitted, and is resumed unchanged if not. A
//!   reservation of which nothing was used has its start: the pace of a crowd does not delay it
//! ```

use super::bookings::evaluate::{Accepted, Approval, Candidate};
use super::bookings::starts::AgreedWait;
use super::departure::GiveWay;
use super::sessions::{Presence, Session};
use super::stream::{Stream, StreamId};
use super::streams::{Beginning, Choice, OffBooks, Rejected, Rejection};
use super::{
    AdmissionDecision, AdmitRequest, Engine, FillFor, MaxWait, Refusal, RefusalCause, Resource,
    SessionId, SessionSummary,
};
use std::collections::BTreeMap;
use std::sync::Arc;
use units::Moment;

impl Engine {
    /// Decides on an admission request, and books it if it is accepted.
    pub(super) fn decide_admission(
        &mut self,
        now: Moment,
        request: AdmitRequest,
    ) -> AdmissionDecision {
        let (fill, priority) = (request.fill, request.priority);
        let waits_for_disk = waits_for_disk(&request);
        let mut decision = self.accept_or_refuse(now, request);
        if let (Some(request), AdmissionDecision::Refused(refusal)) = (waits_for_disk, &decision)
            && (refusal.cause, refusal.resource) == (RefusalCause::Title, Some(Resource::Disk))
        {
            decision = self.accept_or_refuse(now, request);
        }
        if let AdmissionDecision::Refused(refusal) = &decision {
            let counters = &mut self.streams.accounts.counters;
            match fill {
                Some(FillFor::Cache) => counters.fills_refused += 1,
                Some(FillFor::Node) => counters.node_fills_refused += 1,
                None => {}
            }
            self.count_refusal(priority, refusal);
        }
        decision
    }

    fn accept_or_refuse(&mut self, now: Moment, request: AdmitRequest) -> AdmissionDecision {
        if let Some(refusal) = self.precheck(&request) {
            return AdmissionDecision::Refused(refusal);
        }
        if let Some(fill) = request.fill
            && !self.has_room_for_fill(fill)
        {
            return AdmissionDecision::Refused(self.refusal_of_fill(now, fill));
        }
        let old = request.replaces.filter(|id| self.sessions.contains_key(id));
        // A reservation of which nothing was used is gone on with: that is one viewer admitted.
        let goes_on = self.has_reservation(&request);
        // The player goes over from one session to the other: both need not fit at the same time.
        let suspended = old.map(|id| self.suspend(id));
        let choice = match request.fill.is_some() {
            true => self
                .choose_singly(now, &request, self.newcomer())
                .map(|choice| (choice, Vec::new())),
            false => self.choose_offer(now, &request),
        };
        match choice {
            Ok((Choice { offer, accepted, slots }, preempted)) => {
                if request.fill.is_none() {
                    let agreed = self.agreed_wait(&request);
                    self.streams.bookings.note_newcomer(&accepted.candidate, agreed, Some(slots));
                }
                let session = SessionId(self.next_session);
                // Offers are in order of quality, so any but the first is a smaller one.
                self.streams.accounts.counters.admitted_downgraded += u64::from(offer > 0);
                self.begin_session(now, session, request, accepted, slots);
                self.streams.accounts.counters.admitted -= u64::from(goes_on);
                if let Some(suspended) = suspended {
                    self.end_suspended(now, suspended);
                }
                let wait = self.config.slot * slots;
                AdmissionDecision::Admitted { session, offer, wait, preempted }
            }
            Err(refusal) => {
                if let Some(suspended) = suspended {
                    self.resume(suspended);
                }
                AdmissionDecision::Refused(refusal)
            }
        }
    }

    // The best offer that fits now, also in place of viewers who have gone; if none does, the first
    // that fits within the viewer's max_wait; if none does, in place of viewers of a lower
    // priority, who have ended then.
    fn choose_offer(
        &mut self,
        now: Moment,
        request: &AdmitRequest,
    ) -> Result<(Choice, Vec<SessionId>), Refusal> {
        let session = self.newcomer();
        let max_wait = self.agreed_wait(request);
        let pace_wait = self.pace_wait(request);
        let rejected = match self.streams.choose_placement(now, request, session, true) {
            Ok(choice) if choice.offer > 0 => {
                return Ok((self.choose_better_offer(now, request, choice), Vec::new()));
            }
            Ok(choice) => {
                let choice = self.with_narrow_sockets_first(now, request, choice);
                return Ok((self.pace(choice, pace_wait), Vec::new()));
            }
            Err(Rejection::Unusable(reason)) => return Err(Self::refusal_of_unusable(reason)),
            Err(Rejection::Short(rejected)) => rejected,
        };
        let give_way = GiveWay::for_shortfalls(rejected.iter().map(|rejected| {
            (rejected.candidate.placement(), rejected.shortfall.shortage.resource)
        }));
        let rejected = match self.choose_without_harm(now, request, &give_way, rejected) {
            Ok(choice) => return Ok((choice, Vec::new())),
            Err(rejected) => rejected,
        };
        let priority = request.priority;
        let in_place = self.fit_in_place_of_lower(now, priority, &give_way, |engine| {
            let choice = engine.streams.choose_placement(now, request, session, false).ok()?;
            Some(engine.pace(choice, pace_wait))
        });
        if let Some(chosen) = in_place {
            self.put_rejected(rejected);
            return Ok(chosen);
        }
        for Rejected { candidate, .. } in &rejected {
            self.streams.bookings.note_newcomer(candidate, max_wait, None);
        }
        Err(self.refusal_of_all(now, request.max_wait.time, rejected))
    }

    // The best offer of those that do not fit as the books are, without harm to those who play: in
    // place of viewers who have gone, or later within the viewer's max_wait. If there is none, the
    // candidates.
    fn choose_without_harm(
        &mut self,
        now: Moment,
        request: &AdmitRequest,
        give_way: &GiveWay,
        mut rejected: Vec<Rejected>,
    ) -> Result<Choice, Vec<Rejected>> {
        let session = self.newcomer();
        let (max_wait, pace_wait) = (self.agreed_wait(request), self.pace_wait(request));
        let lacking = rejected.iter().filter(|rejected| rejected.lacks_memory);
        let lacking: Vec<_> =
            lacking.map(|rejected| (rejected.candidate.placement(), Resource::Memory)).collect();
        let narrowed = match lacking.is_empty() {
            true => None,
            false => self.fit_with_narrow_sockets(now, request, &GiveWay::for_shortfalls(lacking)),
        };
        // A crowd that comes when another has left starts by the pace as well.
        let in_place = || {
            self.fit_in_place_of_others(now, give_way, |engine| {
                let choice = engine.streams.choose_placement(now, request, session, false).ok()?;
                Some(engine.pace(choice, pace_wait))
            })
        };
        if let Some(choice) = narrowed.or_else(in_place) {
            self.put_rejected(rejected);
            return Ok(choice);
        }
        // The viewer has agreed to wait, so a better offer later comes before a smaller one sooner.
        for at in 0..rejected.len() {
            let later = self.start_later(&mut rejected[at].candidate, max_wait);
            if let Some((slots, approval)) = later {
                let Rejected { offer, candidate, .. } = rejected.swap_remove(at);
                return Ok(Choice { offer, accepted: candidate.accepted(approval), slots });
            }
        }
        // After a crowd has left, the next starts are full of the crowd that comes, and what is
        // booked behind them is of those who have left.
        let mut later_in_place = None;
        if max_wait.slots > 0 {
            later_in_place = self.fit_in_place_of_others(now, give_way, |engine| {
                engine.choose_later(now, request, max_wait)
            });
        }
        match later_in_place {
            Some(choice) => {
                self.put_rejected(rejected);
                Ok(choice)
            }
            None => Err(rejected),
        }
    }

    // Candidates are not used any more.
    fn put_rejected(&mut self, rejected: Vec<Rejected>) {
        for Rejected { candidate, .. } in rejected {
            self.streams.bookings.put_demand(candidate.demand);
        }
    }

    fn newcomer(&self) -> Beginning<'static> {
        Beginning::New(SessionId(self.next_session))
    }

    /// The offer of a fill, or of a session that goes on: now, also in place of viewers who have
    /// gone, or later within its wait, whoever else waits.
    pub(super) fn choose_singly(
        &mut self,
        now: Moment,
        request: &AdmitRequest,
        session: Beginning<'_>,
    ) -> Result<Choice, Refusal> {
        let mut rejected = match self.streams.choose_placement(now, request, session, true) {
            Ok(choice) => return Ok(choice),
            Err(Rejection::Unusable(reason)) => return Err(Self::refusal_of_unusable(reason)),
            Err(Rejection::Short(rejected)) => rejected,
        };
        let give_way = GiveWay::for_shortfalls(rejected.iter().map(|rejected| {
            (rejected.candidate.placement(), rejected.shortfall.shortage.resource)
        }));
        let in_place = self.fit_in_place_of_others(now, &give_way, |engine| {
            engine.streams.choose_placement(now, request, session, false).ok()
        });
        let mut chosen = in_place;
        let wait = self.agreed_wait(request).slots;
        for at in 0..rejected.len() {
            if chosen.is_some() {
                break;
            }
            let candidate = &mut rejected[at].candidate;
            let disk = candidate.disk();
            // Viewers who come in this slot look for their starts as if the fill had not come.
            let before = self.streams.bookings.disks[disk].starts.last_delay;
            let later = self.streams.delay_until_it_fits(candidate, 1, wait);
            self.streams.bookings.disks[disk].starts.last_delay = before;
            if let Some((slots, approval)) = later {
                let Rejected { offer, candidate, .. } = rejected.swap_remove(at);
                chosen = Some(Choice { offer, accepted: candidate.accepted(approval), slots });
            }
        }
        let Some(choice) = chosen else {
            return Err(self.refusal_of_all(now, request.max_wait.time, rejected));
        };
        self.put_rejected(rejected);
        Ok(choice)
    }

    // The wait that a viewer agrees to, in slots.
    fn agreed_wait(&self, request: &AdmitRequest) -> AgreedWait {
        let MaxWait { time, is_chosen, .. } = request.max_wait;
        let slots = time.as_nanos() / self.config.slot.as_nanos();
        let slots = u32::try_from(slots).unwrap_or(u32::MAX).min(MOST_PATIENCE_SLOTS);
        AgreedWait { slots, is_chosen }
    }

    // The wait of a viewer who fits now, for the sake of a crowd. One who goes on with a
    // reservation was given its start with that.
    fn pace_wait(&self, request: &AdmitRequest) -> AgreedWait {
        let agreed = self.agreed_wait(request);
        if self.has_reservation(request) { AgreedWait { slots: 0, ..agreed } } else { agreed }
    }

    // Whether a request goes on with a reservation of which nothing was used.
    fn has_reservation(&self, request: &AdmitRequest) -> bool {
        let old = request.replaces.filter(|id| self.sessions.contains_key(id));
        old.is_some_and(|id| self.streams.accounts.of(id).delivered == 0)
    }

    // The best offer that fits with the books as they are, at the first start that is possible
    // within `max_wait` slots.
    fn choose_later(
        &mut self,
        now: Moment,
        request: &AdmitRequest,
        max_wait: AgreedWait,
    ) -> Option<Choice> {
        let session = self.newcomer();
        let rejected = match self.streams.choose_placement(now, request, session, false) {
            Ok(choice) => return Some(choice),
            Err(Rejection::Unusable(_)) => return None,
            Err(Rejection::Short(rejected)) => rejected,
        };
        let mut chosen = None;
        for Rejected { offer, mut candidate, .. } in rejected {
            let later = match chosen {
                None => self.start_later(&mut candidate, max_wait),
                Some(_) => None,
            };
            match later {
                Some((slots, approval)) => {
                    chosen = Some(Choice { offer, accepted: candidate.accepted(approval), slots });
                }
                None => self.streams.bookings.put_demand(candidate.demand),
            }
        }
        chosen
    }

    // Sockets are given less before an interval is given up.
    fn with_narrow_sockets_first(
        &mut self,
        now: Moment,
        request: &AdmitRequest,
        choice: Choice,
    ) -> Choice {
        let candidate = &choice.accepted.candidate;
        if candidate.gives_up.is_none() {
            return choice;
        }
        let who = GiveWay::for_shortfalls([(candidate.placement(), Resource::Memory)]);
        self.fit_with_narrow_sockets(now, request, &who).unwrap_or(choice)
    }

    // The offer that fits if the sockets of these sessions are given one piece of each track at a
    // time from now on. If none does, they are given as many as before.
    fn fit_with_narrow_sockets(
        &mut self,
        now: Moment,
        request: &AdmitRequest,
        whose: &GiveWay,
    ) -> Option<Choice> {
        let of = self.sessions.iter().filter(|(id, session)| whose.includes(**id, session));
        // What is not sent yet stays reserved: the socket holds it now.
        let spare = |(id, session): (&SessionId, &Session)| {
            (*id, session.reserve.saturating_sub(self.least_send_memory(session)))
        };
        let narrowed: Vec<_> = of.map(spare).filter(|(_, spare)| *spare > 0).collect();
        for (id, spare) in &narrowed {
            let session = &mut self.sessions[id];
            session.reserve -= spare;
            self.streams.bookings.release_send_memory(session.placement(), *spare);
        }
        if narrowed.is_empty() {
            return None;
        }
        let session = self.newcomer();
        let choice = self.streams.choose_placement(now, request, session, true).ok();
        // A refusal must leave no trace: the sockets of other viewers stay as they were.
        if choice.is_none() {
            for (id, spare) in narrowed {
                let session = &mut self.sessions[&id];
                session.reserve += spare;
                self.streams.bookings.reserve_send_memory(session.placement(), spare);
            }
        }
        choice
    }

    // One of a crowd that fits now starts a little later, if so many start now already that there
    // would be no room for the next reads of all.
    fn pace(&mut self, choice: Choice, max_wait: AgreedWait) -> Choice {
        let Choice { offer, accepted: Accepted { mut candidate, approval }, slots } = choice;
        let bookings = &mut self.streams.bookings;
        let patience = bookings.patience(&mut candidate, max_wait);
        // Of a crowd for which all slots are taken, the last start as late as they can.
        let of_crowd = patience == max_wait.slots;
        let paced = bookings.paced_start(&candidate, max_wait, patience);
        let is_crowded = paced.map_or(of_crowd, |slots| slots > 0);
        let gathers = candidate.gathers_leads();
        // Where all are admitted, nobody waits.
        let is_free =
            candidate.starts_from_memory() || !bookings.refuses() || bookings.survives_loss();
        if max_wait.slots == 0 || is_free || !is_crowded {
            return Choice { offer, accepted: candidate.accepted(approval), slots };
        }
        if let Some((slots, approval)) = self.start_later_with_leads(&mut candidate, max_wait) {
            return Choice { offer, accepted: candidate.accepted(approval), slots };
        }
        self.streams.bookings.open_late(&mut candidate, false);
        self.streams.bookings.gather_leads(&mut candidate, gathers);
        Choice { offer, accepted: candidate.accepted(approval), slots }
    }

    // Delays a candidate until it fits, with its leads gathered or, if it never fits so, without.
    // Its viewer agrees to wait for so many slots. If it does not fit, it is as it was.
    fn start_later(
        &mut self,
        candidate: &mut Candidate,
        max_wait: AgreedWait,
    ) -> Option<(u32, Approval)> {
        if max_wait.slots == 0 {
            return None;
        }
        let later = self.start_later_with_leads(candidate, max_wait);
        if later.is_some() {
            return later;
        }
        if candidate.gathers_leads() {
            self.streams.bookings.gather_leads(candidate, false);
            let later = self.delay_in_turn(candidate, max_wait);
            if later.is_some() {
                return later;
            }
        }
        self.streams.bookings.open_late(candidate, false);
        None
    }

    // As `start_later`, with the leads gathered where there are any, but for the last of a crowd:
    // their next reads are due when nobody starts any more. If it does not fit, it still opens
    // late.
    fn start_later_with_leads(
        &mut self,
        candidate: &mut Candidate,
        max_wait: AgreedWait,
    ) -> Option<(u32, Approval)> {
        let bookings = &mut self.streams.bookings;
        bookings.open_late(candidate, true);
        let patience = bookings.patience(candidate, max_wait);
        let paced = bookings.paced_start(candidate, max_wait, patience);
        let of_crowd = patience == max_wait.slots && !bookings.survives_loss();
        let starts_early = paced.is_some_and(|slots| slots * 2 <= max_wait.slots);
        bookings.gather_leads(candidate, starts_early || !of_crowd);
        if of_crowd && paced.is_none() {
            let later = self.streams.delay_as_long_as_possible(candidate, patience);
            if later.is_some() {
                return later;
            }
            self.streams.bookings.gather_leads(candidate, true);
        }
        self.delay_in_turn(candidate, max_wait)
    }

    // Delays a candidate until it fits: not into slots in which many start already, as long as
    // there are others, and by no more than the queue of this moment allows.
    fn delay_in_turn(
        &mut self,
        candidate: &mut Candidate,
        max_wait: AgreedWait,
    ) -> Option<(u32, Approval)> {
        let bookings = &mut self.streams.bookings;
        let patience = bookings.patience(candidate, max_wait);
        let first = match bookings.survives_loss() {
            true => 1,
            false => bookings.paced_start(candidate, max_wait, patience).unwrap_or(0),
        };
        self.streams.delay_until_it_fits(candidate, first, patience)
    }

    // A better offer than the one that fits now, in place of viewers who have gone, if there is
    // one.
    fn choose_better_offer(
        &mut self,
        now: Moment,
        request: &AdmitRequest,
        smaller: Choice,
    ) -> Choice {
        let session = self.newcomer();
        let offer = smaller.offer;
        let placement = smaller.accepted.candidate.placement();
        let give_way = GiveWay::for_shortfalls([(placement, Resource::Disk)]);
        let better = self.fit_in_place_of_others(now, &give_way, |engine| {
            let choice = engine.streams.choose_placement(now, request, session, false).ok()?;
            (choice.offer < offer).then_some(choice)
        });
        better.unwrap_or(smaller)
    }

    /// Takes a session's booking off the books. Memory for what its sockets hold stays reserved.
    pub(super) fn suspend(&mut self, id: SessionId) -> SuspendedSession {
        let session = &mut self.sessions[&id];
        let placement = session.placement();
        let ids = std::mem::take(&mut session.streams);
        let reserve = session.reserve.saturating_sub(session.unsent);
        session.reserve -= reserve;
        self.streams.bookings.release_send_memory(placement, reserve);
        let streams = ids.into_iter().map(|id| (id, self.streams.remove(id))).collect();
        SuspendedSession { session: id, streams, reserve, feeds: Vec::new() }
    }

    /// Puts a suspended session back on the books, as it was.
    pub(super) fn resume(&mut self, suspended: SuspendedSession) {
        self.streams.resume_feeds(suspended.feeds);
        let session = &mut self.sessions[&suspended.session];
        let placement = session.placement();
        session.reserve += suspended.reserve;
        session.streams = suspended.streams.iter().map(|(id, _)| *id).collect();
        self.streams.bookings.reserve_send_memory(placement, suspended.reserve);
        suspended.streams.into_iter().for_each(|(id, stream)| self.streams.insert(id, stream));
    }

    fn end_suspended(&mut self, now: Moment, suspended: SuspendedSession) {
        suspended.streams.iter().for_each(|(id, stream)| self.streams.settle(now, *id, stream));
        self.end_session(now, suspended.session, false);
    }

    fn begin_session(
        &mut self,
        now: Moment,
        id: SessionId,
        request: AdmitRequest,
        accepted: Accepted,
        slots: u32,
    ) {
        let Candidate { layout, copies, streams, .. } = &accepted.candidate;
        self.next_session += 1;
        let AdmitRequest { offers, fill, priority, .. } = request;
        let counters = &mut self.streams.accounts.counters;
        counters.admitted += 1;
        match fill {
            Some(FillFor::Cache) => counters.fills_admitted += 1,
            Some(FillFor::Node) => counters.node_fills_admitted += 1,
            None => {}
        }
        self.fills.began(fill);
        let is_fill = fill.is_some();
        let summary =
            SessionSummary { admitted: now, is_fill, priority, ..SessionSummary::default() };
        let session = Session {
            tracks: streams.iter().map(|stream| stream.track).collect(),
            layout: Arc::clone(layout),
            copies: Arc::clone(copies),
            replica: None,
            offers,
            streams: Vec::new(),
            requests: Vec::new(),
            reserve: 0,
            unsent: 0,
            // A player with a later start is told of it only then, so its silence counts from then.
            last_activity: now + self.config.slot * slots,
            asked: false,
            presence: Presence::Connected,
            fill,
            priority,
            seeks: BTreeMap::new(),
        };
        self.insert_session(id, summary, session, Some(accepted));
    }

    /// A session begins, with the reservation that was accepted for it, if any.
    pub(super) fn insert_session(
        &mut self,
        id: SessionId,
        summary: SessionSummary,
        mut session: Session,
        accepted: Option<Accepted>,
    ) {
        self.streams.titles.use_began(session.layout.title);
        let title = session.layout.title;
        self.streams.accounts.open(id, SessionSummary { title, ..summary });
        if let Some(accepted) = accepted {
            let Candidate { layout, replica, demand, .. } = &accepted.candidate;
            (session.layout, session.replica) = (Arc::clone(layout), *replica);
            session.reserve = demand.reserve;
            let placement = accepted.candidate.placement();
            self.streams.bookings.reserve_send_memory(placement, session.reserve);
            session.streams = self.streams.book(accepted);
        }
        self.sessions.insert(id, session);
    }
}

/// A session whose booking is off the books while another is decided on instead of it.
pub(super) struct SuspendedSession {
    pub(super) session: SessionId,
    pub(super) streams: Vec<(StreamId, Stream)>,
    /// The part of its send memory that its sockets do not hold.
    reserve: u64,
    /// Feeds that are off the books as well: all their followers are.
    pub(super) feeds: Vec<OffBooks>,
}

/// The latest start that a patient viewer is given: five minutes of 500 ms slots, each tried.
const MOST_PATIENCE_SLOTS: u32 = 600;

/// The request with the wait that a disk may need also without other viewers, if its viewer waits
/// for that: a disk that was seen to pause for longer than the start-up.
fn waits_for_disk(request: &AdmitRequest) -> Option<AdmitRequest> {
    let time = request.max_wait.for_disk;
    let max_wait = MaxWait { time, ..MaxWait::default() };
    (time > request.max_wait.time).then(|| AdmitRequest { max_wait, ..request.clone() })
}
