//! The viewers' side: they come, ask, watch, seek, wait and leave.

use super::{Event, World};
use crate::checks::{Contiguity, SeekTarget};
use crate::titles::bytes_of;
use crate::viewers::Request;
use player::{Action as Cue, Fetch, PlaybackState, Player, PlayerOptions};
use server::engine::{
    Action, AdmissionDecision, AdmitRequest, MediaRequest, Part, ReadId, RequestId, Resource,
    ScheduleChange, SessionId, TrackNumber,
};
use std::sync::Arc;
use std::time::Duration;
use units::{Moment, nanos};

impl World<'_> {
    /// At the door: for the first time, or again after a refusal.
    pub(super) fn arrive(&mut self, number: usize) {
        if self.viewers[number].gone {
            return;
        }
        let from = self.viewers[number].profile.from;
        match self.admit(number, from, None) {
            Ok(wait) => {
                let profile = &self.viewers[number].profile;
                let (hesitates, silent) = (profile.hesitates, profile.silent);
                self.viewers[number].came = self.now;
                if silent {
                    self.disappear(number);
                } else {
                    self.at(self.now + wait + hesitates, Event::StartPlayer(number));
                }
            }
            Err(wait) => self.retry_later(number, wait, Event::Arrive(number)),
        }
    }

    /// Tries again after `wait`, a few times.
    fn retry_later(&mut self, number: usize, wait: Duration, event: Event) {
        self.viewers[number].tries += 1;
        if self.viewers[number].tries > MOST_TRIES {
            self.leave(number);
        } else {
            self.at(self.now + wait.clamp(SHORTEST_WAIT, LONGEST_WAIT), event);
        }
    }

    /// Asks to be let in to go on at `from`, in place of a session if it has one. Says how long its
    /// start is put off, or when to ask again.
    fn admit(
        &mut self,
        number: usize,
        from: Duration,
        replaces: Option<SessionId>,
    ) -> Result<Duration, Duration> {
        let title = &self.titles[self.viewers[number].profile.title];
        if title.withdrawn {
            self.viewers[number].tries = MOST_TRIES;
            return Err(Duration::ZERO);
        }
        let patience = self.viewers[number].profile.patience;
        let layout = Arc::clone(&title.layout);
        let (offers, segments) = (title.offers.clone(), Arc::clone(&title.segments));
        let request = AdmitRequest {
            layout: Arc::clone(&layout),
            copies: title.copies.clone(),
            offers: offers.clone(),
            start: from,
            max_wait: if replaces.is_some() { Duration::ZERO } else { patience },
            replaces,
        };
        match self.engine.admit(self.now, request) {
            AdmissionDecision::Admitted { session, offer, wait } => {
                self.violations.require(
                    wait <= patience,
                    "nobody waits longer than it would",
                    || format!("{session:?}: {wait:?} of {patience:?}"),
                );
                self.outcome.waited += u64::from(!wait.is_zero());
                self.outcome.replaced += u64::from(replaces.is_some());
                self.note_progress(
                    "admitted: viewer, session",
                    [number as u64, session.0, offer as u64, 0],
                );
                self.outcome.admitted += 1;
                self.liveness.admitted(session, layout.title, &mut self.violations);
                self.sessions.insert(session, number);
                let tracks = offers[offer].clone();
                let looks = self.deadlines.admitted(
                    self.now + wait,
                    session,
                    (&layout, &segments),
                    (&tracks, from),
                );
                self.schedule_checks(looks);
                let viewer = &mut self.viewers[number];
                (viewer.session, viewer.tracks) = (Some(session), tracks);
                Ok(wait)
            }
            AdmissionDecision::Refused(refusal) => {
                let resource = match refusal.resource {
                    Resource::Disk => 0,
                    Resource::Memory => 1,
                    Resource::Network => 2,
                };
                self.outcome.refused[resource] += 1;
                self.note("turned away: viewer, why", [number as u64, resource as u64, 0, 0]);
                Err(refusal.retry_after)
            }
        }
    }

    /// The player is started.
    pub(super) fn begin(&mut self, number: usize) {
        let viewer = &mut self.viewers[number];
        let profile = &viewer.profile;
        let title = &self.titles[profile.title];
        let timeline = Arc::new(title.timeline(&viewer.tracks));
        let options =
            PlayerOptions { buffer: self.scenario.viewers.buffer, ..PlayerOptions::default() };
        viewer.rows = timeline.tracks.len();
        let (drops, stuck) = (profile.drops.clone(), profile.stuck);
        if let Some(after) = profile.replaces {
            viewer.replaces_at = self.now + after;
        }
        viewer.player = Some(Player::new(self.now, timeline, options, &profile.behaviour));
        for after in drops {
            self.at(self.now + after, Event::CancelRequests(number));
        }
        if let Some(after) = stuck {
            self.at(self.now + after, Event::SocketStalls(number));
        }
        self.runnable.push_back(number);
    }

    pub(super) fn wake(&mut self, number: usize) {
        if self.viewers[number].wakes <= self.now {
            self.viewers[number].wakes = Moment::MAX;
            self.runnable.push_back(number);
        }
    }

    /// Does what its player says.
    pub(super) fn run_player(&mut self, number: usize) {
        loop {
            let viewer = &mut self.viewers[number];
            let Some(player) = viewer.player.as_mut().filter(|_| !viewer.gone) else { return };
            match player.poll(self.now) {
                Some(Cue::Fetch(fetch)) => {
                    self.fetch(number, fetch);
                    self.execute_actions();
                }
                Some(Cue::Over) => return self.leave(number),
                Some(Cue::Started) => self.note("started: viewer", [number as u64, 0, 0, 0]),
                Some(Cue::Stalled) => {
                    self.note("stalled: viewer", [number as u64, 0, 0, 0]);
                    let viewer = &mut self.viewers[number];
                    let promised = viewer.profile.steady && viewer.ahead.is_empty();
                    viewer.stalls = Some((self.now, promised));
                }
                Some(Cue::Resumed) => {
                    self.note("resumed: viewer", [number as u64, 0, 0, 0]);
                    self.end_stall(number);
                }
                None => break,
            }
        }
        let viewer = &mut self.viewers[number];
        let wake = viewer.player.as_ref().and_then(Player::wake_at);
        if let Some(at) = wake.filter(|at| *at < viewer.wakes) {
            viewer.wakes = at.max(self.now);
            self.at(at.max(self.now), Event::WakePlayer(number));
        }
    }

    /// A viewer goes on, or does not wait any longer.
    fn end_stall(&mut self, number: usize) {
        let Some((since, promised)) = self.viewers[number].stalls.take() else { return };
        let stall = self.now.since(since);
        let seen = stall > PlayerOptions::default().dead_band;
        let broken = seen && promised && self.scenario.guarantees_deadlines();
        self.violations.require(!broken, "a good player sees no stall", || {
            format!("viewer {number}: {stall:?}")
        });
    }

    fn fetch(&mut self, number: usize, fetch: Fetch) {
        let viewer = &mut self.viewers[number];
        let goes_on = viewer.requests.iter().copied().find(|id| {
            self.requests.get_mut(id).is_some_and(|request| request.goes_on_with(fetch))
        });
        if let Some(request) = goes_on {
            if viewer.sought.remove(&fetch.track) {
                viewer.ahead.insert(fetch.track);
            }
            return self.progress(request);
        }
        let title = &self.titles[viewer.profile.title];
        let count = if title.progressive { viewer.profile.fetches_per_request } else { 1 };
        let until = fetch.piece.saturating_add(count).min(title.fetches());
        let starts = title.starts(fetch.piece);
        if viewer.session.is_none() {
            viewer.ahead = viewer.all_rows();
            if let Err(wait) = self.admit(number, starts, None) {
                self.viewers[number].waiting.push(fetch);
                return self.retry_later(number, wait, Event::Retry(number));
            }
        } else if viewer.replaces_at <= self.now {
            viewer.replaces_at = Moment::MAX;
            let tries = viewer.tries;
            // The old session stays if the new one is refused.
            if self.admit(number, starts, self.viewers[number].session).is_ok() {
                self.viewers[number].ahead = self.viewers[number].all_rows();
            }
            self.viewers[number].tries = tries;
        }
        let viewer = &self.viewers[number];
        let title = &self.titles[viewer.profile.title];
        let mut parts = Vec::new();
        let mut ends = Vec::new();
        for piece in fetch.piece..until {
            parts.extend(title.parts(&viewer.tracks, fetch.track, piece));
            ends.push(bytes_of(&parts));
        }
        self.ask(number, fetch, parts, ends);
    }

    /// One request: `parts`, in which the player's fetches end at `ends`.
    fn ask(&mut self, number: usize, fetch: Fetch, parts: Vec<Part>, ends: Vec<u64>) {
        self.last_request += 1;
        let id = RequestId(self.last_request);
        let viewer = &mut self.viewers[number];
        let session = viewer.session.expect("admitted just now, if not before");
        let place = (fetch.track, fetch.piece);
        let mut request = Request::new(number, session, place, ends, self.now);
        request.over = parts.is_empty();
        self.requests.insert(id, request);
        viewer.requests.push(id);
        let title = viewer.profile.title;
        let numbers = [id.0, session.0, fetch.track as u64, fetch.piece as u64];
        self.note("wants: request, session, row, fetch", numbers);
        if parts.is_empty() {
            return self.progress(id);
        }
        let key = self.titles[title].layout.title;
        self.liveness.wanted(id);
        self.deliveries.want(id, key, parts.clone());
        let judged = self.deadlines.wants(self.now, session, (id, &parts));
        self.engine.request(self.now, MediaRequest { request: id, session, parts });
        let answers = self.engine.take_actions();
        let granted = granted_at_once(&answers, id);
        // Failed: the session has ended at this very moment.
        let not_taken = |action: &Action| {
            matches!(action, Action::Refused { request, .. } | Action::Declined { request, .. }
                | Action::Failed { request, .. } if *request == id)
        };
        if !answers.iter().any(not_taken) {
            self.deadlines.taken_on(id, &granted);
            let decided = |(track, contiguity): &(TrackNumber, Contiguity)| {
                *contiguity != Contiguity::Seeks || granted.contains(track)
            };
            self.violations.require(judged.iter().all(decided), "a seek is decided anew", || {
                format!("{id:?} of {session:?}: {judged:?}, granted {granted:?}")
            });
        }
        let seeks = judged.iter().any(|(_, contiguity)| *contiguity == Contiguity::Seeks);
        let viewer = &mut self.viewers[number];
        if viewer.sought.remove(&fetch.track) && !seeks && granted.is_empty() {
            // A seek within what it holds: it goes on where it was, only sooner.
            viewer.ahead.insert(fetch.track);
        }
        self.actions.extend(answers);
    }

    /// What a session is promised has changed.
    pub(super) fn rescheduled(&mut self, session: SessionId, change: &ScheduleChange) {
        let right = match change {
            ScheduleChange::Readmitted { request, tracks, wait } => {
                let wait_ns = nanos(*wait);
                let numbers = [session.0, request.0, tracks.len() as u64, wait_ns];
                self.note("anew: session, request, tracks, wait", numbers);
                self.readmitted(*request, tracks, *wait)
            }
            ScheduleChange::Delayed { track, slots } => {
                let numbers = [session.0, (*track).into(), (*slots).into(), 0];
                self.note("later: session, track, slots", numbers);
                self.deadlines.delayed(self.now, session, (*track, *slots))
            }
            ScheduleChange::Released { track } => {
                self.note("given back: session, track", [session.0, (*track).into(), 0, 0]);
                self.deadlines.released(self.now, session, *track)
            }
        };
        let held = right || !self.scenario.guarantees_deadlines();
        self.violations
            .require(held, "no promise is taken back", || format!("{session:?}: {change:?}"));
    }

    /// The engine took a jump on: what it promises from here on. Says whether it was right to.
    fn readmitted(&mut self, request: RequestId, tracks: &[TrackNumber], wait: Duration) -> bool {
        let mut right = wait <= self.scenario.startup;
        for &track in tracks {
            let Some(byte) = self.deadlines.owed(request, track) else { continue };
            let Some(open) = self.requests.get(&request) else { continue };
            let title = &self.titles[self.viewers[open.viewer].profile.title];
            let fetch = title.fetch_of(track, byte);
            let (starts, ends) = (title.starts(fetch), title.starts(fetch + 1));
            let target = SeekTarget { track, byte, starts, ends };
            let (look, fair) = self.deadlines.readmitted(self.now, request, (target, wait));
            right &= fair;
            self.schedule_checks(look);
        }
        if let Some(open) = self.requests.get_mut(&request) {
            // What it is owed now it is owed from now on.
            open.promised = Some(Moment::ZERO);
            let viewer = &mut self.viewers[open.viewer];
            let waits = viewer.player.as_ref().is_some_and(|p| p.stage() == PlaybackState::Waiting);
            let rows = if viewer.rows == 1 { viewer.tracks.len() } else { 1 };
            if waits && tracks.len() == rows {
                viewer.ahead.remove(&open.row);
            } else {
                viewer.ahead.insert(open.row);
            }
        }
        right
    }

    /// Whatever can be sent is sent, whatever is here is given to the player.
    fn progress(&mut self, id: RequestId) {
        while let Some(fetch) = self.requests.get_mut(&id).and_then(Request::next_arrival) {
            let number = self.requests[&id].viewer;
            let viewer = &mut self.viewers[number];
            if let Some(player) = viewer.player.as_mut().filter(|_| !viewer.gone) {
                player.arrived(self.now, fetch);
                viewer.tries = 0;
                self.runnable.push_back(number);
            }
        }
        self.transmit(id);
        self.tidy(id);
    }

    pub(super) fn transmit(&mut self, id: RequestId) {
        let Some(request) = self.requests.get_mut(&id) else { return };
        let viewer = &self.viewers[request.viewer];
        if let Some(len) = request.next_to_send().filter(|_| !viewer.stuck) {
            request.sending = true;
            let time = units::ByteCount(len.into()).time_at(viewer.profile.link);
            self.at(self.now + time, Event::Sent(id));
        }
    }

    /// The socket has taken a delivery.
    pub(super) fn sent(&mut self, id: RequestId) {
        let Some(request) = self.requests.get_mut(&id).filter(|request| request.sending) else {
            return;
        };
        if self.viewers[request.viewer].stuck {
            return;
        }
        let (session, (read, len)) = (request.session, request.sent(self.now));
        self.note("sent: request, read, bytes", [id.0, read.0, len.into(), 0]);
        self.took(session, read);
        self.engine.sent(self.now, id, read);
        self.progress(id);
    }

    /// A socket of the session does not hold a buffer any more.
    fn took(&mut self, session: SessionId, read: ReadId) {
        if let Some((track, len)) = self.memory.holds_of(read) {
            self.deadlines.took(self.now, session, (track, len));
        }
        self.memory.unpin(read);
    }

    /// Forgets a request of which nothing more can come.
    fn tidy(&mut self, id: RequestId) {
        let spent = self.requests.get(&id).filter(|request| request.is_spent());
        if let Some(request) = spent {
            let viewer = &mut self.viewers[request.viewer];
            viewer.requests.retain(|other| *other != id);
            self.requests.remove(&id);
        }
    }

    /// The engine is done with it; what was handed over may still be on its way.
    pub(super) fn settled(&mut self, id: RequestId) {
        self.liveness.settled(id);
        self.deadlines.over(self.now, id, false);
        if let Some(request) = self.requests.get_mut(&id) {
            request.over = true;
        }
        self.progress(id);
    }

    pub(super) fn request_refused(&mut self, id: RequestId, wait: Duration) {
        self.outcome.refused_seeks += 1;
        self.deliveries.over(id);
        let broken =
            self.deadlines.is_all_owed(self.now, id) && self.scenario.guarantees_deadlines();
        self.violations.require(!broken, "what was admitted is not refused", || format!("{id:?}"));
        self.retry_request(id, wait);
    }

    pub(super) fn request_failed(&mut self, id: RequestId) {
        self.retry_request(id, SHORTEST_WAIT);
    }

    /// Nothing more comes of this request: what the player waits for is tried again later.
    fn retry_request(&mut self, id: RequestId, wait: Duration) {
        let Some(request) = self.requests.get_mut(&id) else { return self.settled(id) };
        let (number, fetch) = (request.viewer, request.awaited());
        request.abandoned = true;
        self.settled(id);
        let viewer = &mut self.viewers[number];
        viewer.ahead = viewer.all_rows();
        if let Some(fetch) = fetch {
            viewer.waiting.push(fetch);
            self.retry_later(number, wait, Event::Retry(number));
        }
    }

    /// What the player waits for is asked for again.
    pub(super) fn retry(&mut self, number: usize) {
        let viewer = &mut self.viewers[number];
        let Some(player) = viewer.player.as_mut().filter(|_| !viewer.gone) else { return };
        for fetch in std::mem::take(&mut viewer.waiting) {
            player.failed(self.now, fetch);
        }
        self.runnable.push_back(number);
    }

    /// The viewer seeks or leaves: what is under way is not wanted any more.
    pub(super) fn drop_requests(&mut self, number: usize) {
        self.end_stall(number);
        self.viewers[number].sought = self.viewers[number].all_rows();
        for id in self.viewers[number].requests.clone() {
            // What was said about it when the one before was dropped may have been its end.
            let Some(request) = self.requests.get(&id) else { continue };
            let awaited = request.awaited();
            self.cancel(id);
            self.execute_actions();
            let viewer = &mut self.viewers[number];
            let awaited = awaited.filter(|fetch| !viewer.waiting.contains(fetch));
            if let (Some(player), Some(fetch)) = (viewer.player.as_mut(), awaited) {
                player.failed(self.now, fetch);
            }
        }
        self.retry(number);
    }

    fn cancel(&mut self, id: RequestId) {
        let Some(request) = self.requests.remove(&id) else { return };
        self.note("cancelled: request", [id.0, 0, 0, 0]);
        self.viewers[request.viewer].requests.retain(|other| *other != id);
        for (read, _) in &request.queue {
            self.took(request.session, *read);
        }
        self.deliveries.over(id);
        self.deadlines.over(self.now, id, true);
        self.liveness.settled(id);
        self.cancelled.insert(id);
        self.engine.cancel(self.now, id);
    }

    /// Its session has ended. If the viewer is still there, it goes on with a new one.
    pub(super) fn drop_session(&mut self, session: SessionId) {
        let Some(number) = self.sessions.remove(&session) else { return };
        let viewer = &mut self.viewers[number];
        if viewer.session == Some(session) {
            viewer.session = None;
            viewer.ahead = viewer.all_rows();
        }
        let of_session = |id: &RequestId| self.requests[id].session == session;
        let ids: Vec<RequestId> = viewer.requests.iter().copied().filter(of_session).collect();
        for id in ids {
            self.deliveries.over(id);
            if self.requests.get(&id).is_none_or(|request| request.over) {
                continue;
            }
            if self.chance.bool() {
                self.retry_request(id, SHORTEST_WAIT);
            } else {
                let awaited = self.requests[&id].awaited();
                self.cancel(id);
                if let Some(fetch) = awaited {
                    self.viewers[number].waiting.push(fetch);
                    self.retry_later(number, SHORTEST_WAIT, Event::Retry(number));
                }
            }
        }
    }

    pub(super) fn stuck(&mut self, number: usize) {
        if !self.viewers[number].gone {
            self.viewers[number].stuck = true;
            self.at(self.now + SEND_PATIENCE, Event::SendTimeout(number));
        }
    }

    /// Leaves for good; says goodbye if it is one of those.
    pub(super) fn leave(&mut self, number: usize) {
        if self.viewers[number].gone {
            return;
        }
        let polite = self.viewers[number].profile.polite && !self.viewers[number].stuck;
        self.disappear(number);
        for id in self.viewers[number].requests.clone() {
            self.cancel(id);
            self.execute_actions();
        }
        if let (true, Some(session)) = (polite, self.viewers[number].session) {
            self.note("closes: session", [session.0, 0, 0, 0]);
            self.engine.close(self.now, session);
        }
    }

    fn disappear(&mut self, number: usize) {
        self.note_progress("leaves: viewer", [number as u64, 0, 0, 0]);
        self.viewers[number].gone = true;
        self.present -= 1;
        let viewer = &mut self.viewers[number];
        let Some(report) = viewer.player.as_mut().map(|player| player.report(self.now)) else {
            return;
        };
        let steady = viewer.profile.steady && viewer.ahead.is_empty();
        self.outcome.started += u64::from(report.startup.is_some());
        let stalls = report.stalls.count;
        let counter =
            if steady { &mut self.outcome.stalls } else { &mut self.outcome.other_stalls };
        *counter += stalls;
        if steady {
            let startup = report.startup.unwrap_or_default();
            self.outcome.longest_startup = self.outcome.longest_startup.max(startup);
        }
        self.end_stall(number);
    }
}

/// The tracks for which a request was let in anew.
fn granted_at_once(answers: &[Action], id: RequestId) -> Vec<TrackNumber> {
    let tracks = answers.iter().filter_map(|answer| match answer {
        Action::Rescheduled {
            change: ScheduleChange::Readmitted { request, tracks, .. }, ..
        } if *request == id => Some(tracks.iter().copied()),
        _ => None,
    });
    tracks.flatten().collect()
}

/// In vain, one after the other; then a viewer gives up.
const MOST_TRIES: u32 = 6;

/// Between two tries, whatever the answer said.
const SHORTEST_WAIT: Duration = Duration::from_millis(500);
const LONGEST_WAIT: Duration = Duration::from_secs(20);

/// What a server's shell gives a socket that takes nothing.
const SEND_PATIENCE: Duration = Duration::from_secs(20);
