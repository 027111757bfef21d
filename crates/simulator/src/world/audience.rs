//! The viewers: they arrive, request admission, play, seek, wait and leave.

use super::{Event, World};
use crate::checks::{Admission, Wish};
use crate::viewers::Stall;
use engine::{
    AdmissionDecision, AdmitRequest, Disconnection, MaxWait, Priority, RequestId, SessionId,
};
use player::{Action as PlayerAction, Player, PlayerOptions};
use std::sync::Arc;
use std::time::Duration;
use units::Moment;

impl World<'_> {
    /// A viewer requests admission: for the first time, or again after a refusal.
    pub(super) fn arrive(&mut self, number: usize) {
        if self.viewers[number].has_left {
            return;
        }
        self.start_within_offer(number);
        let from = self.viewers[number].profile.from;
        match self.admit(number, from, None) {
            Ok(wait) => {
                let profile = &self.viewers[number].profile;
                let start = self.now + wait + profile.start_delay;
                if profile.silent {
                    // The session stays with the engine, whose time-out must end it.
                    self.depart(number);
                } else {
                    self.schedule(start, Event::StartPlayer(number));
                }
            }
            Err(wait) => self.retry_later(number, wait, Event::Arrive(number)),
        }
    }

    // A viewer of a title that is being recorded starts within what is offered.
    fn start_within_offer(&mut self, number: usize) {
        let profile = &mut self.viewers[number].profile;
        let title = &self.titles[profile.title];
        if title.grows() {
            let edge = title.fetch_start(title.offered(self.now).saturating_sub(LIVE_FETCHES));
            profile.start_at(if profile.live { edge } else { profile.from.min(edge) });
        }
    }

    /// Schedules another attempt after `wait`; after [`MAX_ATTEMPTS`] the viewer leaves.
    pub(super) fn retry_later(&mut self, number: usize, wait: Duration, event: Event) {
        self.viewers[number].attempts += 1;
        if self.viewers[number].attempts > MAX_ATTEMPTS {
            self.leave(number);
        } else {
            self.schedule(self.now + wait.clamp(SHORTEST_WAIT, LONGEST_WAIT), event);
        }
    }

    /// Requests admission to play from `from`, in place of a session if there is one. Returns the
    /// time by which the start is postponed, or the time after which to try again.
    pub(super) fn admit(
        &mut self,
        number: usize,
        from: Duration,
        replaces: Option<SessionId>,
    ) -> Result<Duration, Duration> {
        let title = &self.titles[self.viewers[number].profile.title];
        if title.withdrawn {
            // A server that has removed the title answers "not found": a viewer does not retry.
            self.viewers[number].attempts = MAX_ATTEMPTS;
            return Err(Duration::ZERO);
        }
        let patience = self.viewers[number].profile.patience;
        // A viewer that is playing does not wait for a start: it has one.
        let time = if replaces.is_some() { Duration::ZERO } else { patience };
        // Half of the viewers have chosen their wait.
        let max_wait = MaxWait { time, is_chosen: number.is_multiple_of(2), ..MaxWait::default() };
        let wish = Wish { title: self.viewers[number].profile.title, from, patience: time };
        self.asked += 1;
        let is_lowered = self.lowered == Some(self.asked);
        let own = self.viewers[number].profile.priority;
        let priority = if is_lowered { Priority::Low } else { own };
        let (grows, offered) = (title.grows(), title.offered(self.now));
        let request = AdmitRequest {
            layout: Arc::clone(title.layout_of(offered)),
            copies: title.copies.clone(),
            offers: title.offers.clone(),
            start: from,
            max_wait,
            replaces,
            fill: None,
            priority,
        };
        let answer = self.engine.admit(self.now, request);
        if is_lowered {
            self.lowered_is_admitted = Some(matches!(answer, AdmissionDecision::Admitted { .. }));
        }
        match answer {
            AdmissionDecision::Admitted { session, offer, wait, preempted } => {
                let copies = &self.titles[wish.title].copies;
                let disk = copies.is_empty().then_some(self.titles[wish.title].layout.disk);
                let disk = disk.map(|disk| usize::from(disk.0));
                let violations = &mut self.violations;
                self.priorities.admitted(session, priority, disk, &preempted, violations);
                if !preempted.is_empty() {
                    self.outcome.first_preemption.get_or_insert(self.asked);
                }
                self.violations.require(
                    wait <= patience,
                    "no viewer waits longer than it accepted",
                    || format!("{session:?}: {wait:?} of {patience:?}"),
                );
                self.outcome.waited += u64::from(!wait.is_zero());
                self.outcome.replaced += u64::from(replaces.is_some());
                self.note_progress(
                    "admitted: viewer, session",
                    [number as u64, session.0, offer as u64, 0],
                );
                self.outcome.admitted += 1;
                let with_it = |other: &usize| self.viewers[*other].profile.title == wish.title;
                let may_follow = self.sessions.values().any(with_it);
                if grows {
                    self.refusals.changed();
                } else {
                    self.refusals.accepted(number, wish, may_follow, &mut self.violations);
                }
                self.open_session(number, session, offer, from, wait);
                Ok(wait)
            }
            AdmissionDecision::Refused(refusal) => {
                // What this moment has changed, such as the schedule of a viewer who is late.
                self.take_actions();
                let resource = refusal.resource.map_or(NO_RESOURCE, |resource| resource as usize);
                if let Some(count) = self.outcome.refused.get_mut(resource) {
                    *count += 1;
                }
                self.note("not admitted: viewer, resource", [number as u64, resource as u64, 0, 0]);
                // What is refused of a title that grows is not what is asked for later.
                if replaces.is_none() && !grows {
                    let in_use = !self.sessions.is_empty() || self.memory.used() > 0;
                    let violations = &mut self.violations;
                    self.refusals.refused(number, wish, &refusal, in_use, violations);
                }
                Err(refusal.retry.after().unwrap_or(LONGEST_WAIT))
            }
        }
    }

    /// Notes the new session of a viewer, and schedules its deadline checks.
    fn open_session(
        &mut self,
        number: usize,
        session: SessionId,
        offer: usize,
        from: Duration,
        wait: Duration,
    ) {
        let viewer = &mut self.viewers[number];
        let title = &self.titles[viewer.profile.title];
        viewer.granted = title.offered(self.now);
        let admission = Admission {
            layout: title.layout_of(viewer.granted),
            segments: &title.segments,
            tracks: &title.offers[offer],
            from,
            waited: !wait.is_zero() && !self.scenario.survive_loss,
            at: self.now,
        };
        viewer.session = Some(session);
        viewer.disconnected = false;
        viewer.tracks.clone_from(&title.offers[offer]);
        let key = title.layout.title;
        // Deadlines count from the end of the agreed wait, not from the admission.
        let checks = self.deadlines.admitted(self.now + wait, session, &admission);
        self.liveness.session_opened(session, key, &mut self.violations);
        self.sessions.insert(session, number);
        self.schedule_checks(checks);
    }

    pub(super) fn start_player(&mut self, number: usize) {
        let viewer = &mut self.viewers[number];
        let profile = &viewer.profile;
        let title = &self.titles[profile.title];
        let timeline = Arc::new(title.timeline(&viewer.tracks));
        let options =
            PlayerOptions { buffer: self.scenario.viewers.buffer, ..PlayerOptions::default() };
        viewer.rows = timeline.tracks.len();
        let (cancels_at, stalls_after) = (profile.cancels_at.clone(), profile.socket_stalls_after);
        if let Some(after) = profile.replaces_after {
            viewer.replaces_at = self.now + after;
        }
        viewer.player = Some(Player::new(self.now, timeline, options, &profile.behaviour));
        for after in cancels_at {
            self.schedule(self.now + after, Event::CancelRequests(number));
        }
        if let Some(after) = self.viewers[number].profile.away_after {
            self.schedule(self.now + after, Event::GoAway(number));
        }
        if let Some(after) = stalls_after {
            self.schedule(self.now + after, Event::SocketStalls(number));
        }
        self.runnable.push_back(number);
    }

    pub(super) fn wake_player(&mut self, number: usize) {
        // An earlier wake-up may have replaced this one.
        if self.viewers[number].wake_at <= self.now {
            self.viewers[number].wake_at = Moment::MAX;
            self.runnable.push_back(number);
        }
    }

    /// Polls a player until it has no more actions, and schedules its next wake-up.
    pub(super) fn run_player(&mut self, number: usize) {
        loop {
            let viewer = &mut self.viewers[number];
            let Some(player) = viewer.player.as_mut().filter(|_| !viewer.has_left) else { return };
            match player.poll(self.now) {
                Some(PlayerAction::Fetch(fetch)) => {
                    self.fetch(number, fetch);
                    self.execute_actions();
                }
                Some(PlayerAction::Ended) => return self.leave(number),
                Some(PlayerAction::Started) => {
                    self.note("started: viewer", [number as u64, 0, 0, 0]);
                }
                Some(PlayerAction::Stalled) => {
                    self.note("stalled: viewer", [number as u64, 0, 0, 0]);
                    // Decided when the stall begins: a later seek must not excuse it.
                    let viewer = &mut self.viewers[number];
                    let guaranteed = viewer.is_guaranteed();
                    viewer.stall = Some(Stall { since: self.now, guaranteed });
                }
                Some(PlayerAction::Resumed) => {
                    self.note("resumed: viewer", [number as u64, 0, 0, 0]);
                    self.end_stall(number);
                }
                Some(PlayerAction::Speed(_)) => unreachable!("no viewer is drawn with a speed"),
                None => break,
            }
        }
        let viewer = &mut self.viewers[number];
        let wake = viewer.player.as_ref().and_then(Player::wake_at);
        if let Some(at) = wake.filter(|at| *at < viewer.wake_at) {
            viewer.wake_at = at.max(self.now);
            self.schedule(at.max(self.now), Event::WakePlayer(number));
        }
    }

    /// A stall ends: play-out resumes, or the viewer seeks or leaves.
    pub(super) fn end_stall(&mut self, number: usize) {
        let Some(Stall { since, guaranteed }) = self.viewers[number].stall.take() else { return };
        let stall = self.now.since(since);
        if guaranteed && stall > PlayerOptions::default().dead_band {
            self.break_guarantee("a guaranteed player does not stall", || {
                format!("viewer {number}: {stall:?}")
            });
        }
    }

    /// The viewer's socket takes no more data; the server's time-out will close it.
    pub(super) fn stall_socket(&mut self, number: usize) {
        if !self.viewers[number].has_left {
            self.viewers[number].socket_stalled = true;
            self.schedule(self.now + SEND_TIMEOUT, Event::SendTimeout(number));
        }
    }

    /// The viewer closes its connection, and opens another with its next request.
    pub(super) fn go_away(&mut self, number: usize) {
        if self.viewers[number].requests.is_empty() {
            self.disconnect(number, Disconnection::Left);
        }
    }

    /// The viewer's last connection ends.
    pub(super) fn disconnect(&mut self, number: usize, how: Disconnection) {
        let viewer = &mut self.viewers[number];
        let Some(session) = viewer.session.filter(|_| !viewer.disconnected) else { return };
        viewer.disconnected = true;
        self.note(
            "disconnected: session",
            [session.0, u64::from(how == Disconnection::Left), 0, 0],
        );
        self.deadlines.disconnected(session, how);
        self.engine.disconnected(self.now, session, how);
    }

    /// The viewer opens a connection for a request, if it has none.
    pub(super) fn connect(&mut self, number: usize) {
        let viewer = &mut self.viewers[number];
        let Some(session) = viewer.session.filter(|_| viewer.disconnected) else { return };
        viewer.disconnected = false;
        self.note("connected: session", [session.0, 0, 0, 0]);
        self.deadlines.connected(session);
        self.engine.connected(session);
    }

    /// The viewer leaves for good; some viewers close their session.
    pub(super) fn leave(&mut self, number: usize) {
        let viewer = &self.viewers[number];
        if viewer.has_left {
            return;
        }
        // A viewer whose connection is dead cannot send the request that closes the session.
        let closes = viewer.profile.closes_session && !viewer.socket_stalled;
        let ends = viewer.profile.ends_session && !viewer.socket_stalled;
        let hangs_up = viewer.profile.hangs_up;
        self.depart(number);
        if let Some(session) = self.viewers[number].session.filter(|_| ends) {
            self.note("ends: session", [session.0, 0, 0, 0]);
            self.engine.end(self.now, session);
            self.execute_actions();
            // The rest of what it reads is sent to the end.
            let unread = |id: &RequestId| self.requests[id].is_unread();
            let requests = self.viewers[number].requests.iter().copied().filter(unread);
            for id in requests.collect::<Vec<_>>() {
                self.cancel(id);
            }
            return self.execute_actions();
        }
        if hangs_up {
            self.disconnect(number, Disconnection::Left);
        }
        for id in self.viewers[number].requests.clone() {
            self.cancel(id);
            self.execute_actions();
        }
        if let (true, Some(session)) = (closes, self.viewers[number].session) {
            self.note("closes: session", [session.0, 0, 0, 0]);
            self.engine.close(self.now, session);
        }
    }

    /// Counts the viewer as gone and adds its report to the outcome.
    fn depart(&mut self, number: usize) {
        self.note_progress("leaves: viewer", [number as u64, 0, 0, 0]);
        self.viewers[number].has_left = true;
        self.present -= 1;
        let viewer = &mut self.viewers[number];
        let Some(report) = viewer.player.as_mut().map(|player| player.report(self.now)) else {
            return;
        };
        let guaranteed = viewer.is_guaranteed();
        self.outcome.started += u64::from(report.startup.is_some());
        if guaranteed {
            let startup = report.startup.unwrap_or_default();
            self.outcome.stalls += report.stalls.count;
            self.outcome.longest_startup = self.outcome.longest_startup.max(startup);
        } else {
            self.outcome.other_stalls += report.stalls.count;
        }
        self.end_stall(number);
    }
}

/// The place of no resource among the resources that can be short, in the trace.
pub(super) const NO_RESOURCE: usize = 3;

/// Attempts in succession after which a viewer leaves.
const MAX_ATTEMPTS: u32 = 6;

/// Fetches before the end of what is offered at which a live viewer starts.
const LIVE_FETCHES: usize = 3;

/// Bounds of the time between two attempts, whatever time the refusal names.
pub(super) const SHORTEST_WAIT: Duration = Duration::from_millis(500);
pub(super) const LONGEST_WAIT: Duration = Duration::from_secs(20);

/// Time after which the server closes a socket that takes no data.
const SEND_TIMEOUT: Duration = Duration::from_secs(20);
