//! Sessions: admission, the list of sessions, their end, and titles that are removed while played.
//! Fills of caches are sessions of one response. One that comes beside as many as there may be
//! waits for the end of another, in the order of arrival.

use super::tracing::Applicant;
use super::{Core, decisions};
use crate::clients::ClientAddress;
use crate::library::{OpenTitle, StoredCopy};
use crate::membership::unix_now;
use crate::messages::{AdmissionError, Caller, PlayRequest, RequestError, WorkerMessage};
use crate::sessions::{PlayerSession, Token};
use crate::telemetry::{SessionTrace, TraceContext};
use crate::wire;
use crossbeam_channel::Sender;
use engine::{
    AdmissionDecision, AdmitRequest, Disconnection, FillFor, RequestId, SessionId, SessionStatus,
    TitleKey,
};
use media::TrackKind;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};
use units::{BitRate, ByteCount, Moment};

/// A session and its pending requests.
pub(super) struct OpenSession {
    pub(super) session: Arc<PlayerSession>,
    pub(super) requests: HashSet<RequestId>,
    /// Open connections that have carried requests of it.
    connections: u32,
    /// The session's player has closed a connection as a player does that leaves.
    left: bool,
    /// The time until which its viewer was allowed to play is over.
    pub(super) is_expired: bool,
}

impl OpenSession {
    pub(super) fn new(session: Arc<PlayerSession>) -> Self {
        Self { session, requests: HashSet::new(), connections: 0, left: false, is_expired: false }
    }
}

/// A fill that waits for the end of another.
pub(super) struct WaitingFill {
    /// When the fill is decided on, whatever the others do.
    pub(super) until: Moment,
    caller: Caller,
    client: ClientAddress,
    request: PlayRequest,
}

/// A title with sessions.
pub(super) struct PlayingTitle {
    pub(super) title: Arc<OpenTitle>,
    /// The name in the URL of the newest session.
    pub(super) name: String,
    pub(super) sessions: u64,
}

impl PlayingTitle {
    /// A session has this much of the title. What is read for any of its sessions is verified by
    /// the longest of their indexes.
    pub(super) fn lengthen(&mut self, title: &Arc<OpenTitle>) {
        if title.bytes() > self.title.bytes() {
            self.title = Arc::clone(title);
        }
    }
}

impl Core {
    /// Answers an admission request now, or when the session's start time has come, or a fill when
    /// there is a place for it.
    pub(super) fn admit(&mut self, caller: Caller, client: ClientAddress, request: PlayRequest) {
        let is_of_cache = request.fill == Some(FillFor::Cache);
        let has_room = || self.engine.has_room_for_fill(FillFor::Cache);
        if is_of_cache && !has_room() && self.stop_at.is_none() {
            let until = self.clock.now() + request.max_wait.time;
            return self.waiting_fills.push_back(WaitingFill { until, caller, client, request });
        }
        self.decide(caller, client, request);
    }

    /// Decides on the fills that have waited long enough, or that there is a place for.
    pub(super) fn decide_waiting_fills(&mut self, now: Moment) {
        while let Some(first) = self.waiting_fills.front() {
            let has_room = self.engine.has_room_for_fill(FillFor::Cache) || self.stop_at.is_some();
            if !has_room && now < first.until {
                return;
            }
            let Some(fill) = self.waiting_fills.pop_front() else { return };
            let WaitingFill { until, caller, client, mut request } = fill;
            request.max_wait.time = until.since(now);
            self.decide(caller, client, request);
        }
    }

    fn decide(&mut self, caller: Caller, client: ClientAddress, request: PlayRequest) {
        let (result, refusal_span) = match self.try_admit(client, request) {
            Ok((session, wait)) if wait > Duration::ZERO => {
                // The player gets its answer at its start, so that it requests nothing before.
                return self.deferred.push((self.clock.now() + wait, caller, session));
            }
            Ok((session, _)) => (Ok(session), None),
            Err((why, span)) => (Err(why), span),
        };
        let connection = caller.connection;
        self.send(caller.worker, WorkerMessage::Admitted { connection, result, refusal_span });
    }

    /// Answers admission requests whose start time has come.
    pub(super) fn notify_deferred_admissions(&mut self, now: Moment) {
        let due: Vec<_> = self.deferred.extract_if(.., |(at, ..)| *at <= now).collect();
        for (_, caller, session) in due {
            self.trace_admission(&session);
            self.workers[caller.worker].send(WorkerMessage::Admitted {
                connection: caller.connection,
                result: Ok(session),
                refusal_span: None,
            });
        }
    }

    /// Evaluates an admission request. Accepted: the session and the time until its start; not
    /// accepted: why, and the span.
    fn try_admit(
        &mut self,
        client: ClientAddress,
        request: PlayRequest,
    ) -> Result<(Arc<PlayerSession>, Duration), (AdmissionError, Option<TraceContext>)> {
        // Requests of one viewer for sound and pictures come at the same time.
        if let Some(session) = request.token.and_then(|token| self.shared.sessions.live(token)) {
            return Ok((session, Duration::ZERO));
        }
        let PlayRequest { asked, protocol, parent, .. } = request;
        let trace = self.shared.telemetry.begin(asked, protocol, parent);
        let applicant = trace.map(|_| Applicant::new(client, &request));
        let result = self.try_admit_new(client, request, trace);
        match (&result, applicant) {
            (Ok((session, Duration::ZERO)), _) => self.trace_admission(session),
            (Err(why), Some(applicant)) => self.trace_refusal(trace, &applicant, why),
            _ => {}
        }
        result.map_err(|why| (why, trace.map(|trace| trace.context())))
    }

    fn try_admit_new(
        &mut self,
        client: ClientAddress,
        request: PlayRequest,
        trace: Option<SessionTrace>,
    ) -> Result<(Arc<PlayerSession>, Duration), AdmissionError> {
        let PlayRequest { title, presentation, name, format, tracks, .. } = request;
        let PlayRequest { start, max_wait, replaces, fill, permit, sent_to, in_mount, .. } =
            request;
        let PlayRequest { is_directed, failover, token, listed_as, .. } = request;
        if self.withdrawn.contains(&title.key) {
            return Err(AdmissionError::TitleRemoved);
        }
        // The HTTP threads refuse this, too, but the request may have been on its way.
        if self.stop_at.is_some() {
            self.shared.refuse_at_stop(&name, Some(client), permit.priority, fill);
            return Err(AdmissionError::Stopping);
        }
        let token = match fill {
            Some(_) => None,
            None => Some(self.token_for(client, replaces, token)?),
        };
        let (layout, copies) =
            presentation.layouts(format).split_first().ok_or(AdmissionError::FormatUnavailable)?;
        let best = presentation.best_offer(format, &permit);
        let best = best.ok_or_else(|| AdmissionError::NotPermitted(permit.clone()))?;
        let (best, offers) = match tracks {
            Some(tracks) => (0, vec![tracks]),
            None => (best, presentation.offers(format)[best..].to_vec()),
        };
        let request = AdmitRequest {
            layout: Arc::clone(layout),
            copies: copies.to_vec(),
            offers,
            start,
            max_wait,
            replaces,
            fill,
            priority: permit.priority,
        };
        let answer = self.engine.admit(self.clock.now(), request);
        let about = decisions::of_request(&name, client.to_string(), permit.priority, best);
        let span = trace.map(|trace| trace.context());
        self.show_admission(about, fill, span, &answer);
        match answer {
            AdmissionDecision::Refused(refusal) => Err(AdmissionError::Refused(refusal)),
            AdmissionDecision::Admitted { session: id, offer, wait, .. } => {
                let session = Arc::new(PlayerSession {
                    id,
                    token,
                    title,
                    presentation,
                    name,
                    format,
                    offer: best + offer,
                    permit,
                    client,
                    sent_to,
                    listed_as,
                    in_mount,
                    is_directed,
                    failover,
                    admitted: Instant::now(),
                    trace,
                    wait,
                    started: Arc::default(),
                    reported: Arc::default(),
                });
                self.open_session(&session);
                Ok((session, wait))
            }
        }
    }

    /// A session's title has become longer: the session goes on with all of it, if that fits.
    pub(super) fn extend(&mut self, caller: Caller, session: SessionId, title: &Arc<OpenTitle>) {
        if let Some(open) = self.sessions.get_mut(&session)
            && let Some(layout) = title.whole.layouts(open.session.format).first()
            && self.engine.extend(self.clock.now(), session, Arc::clone(layout)).is_ok()
        {
            let longer = Arc::new(open.session.extended(title));
            open.session = Arc::clone(&longer);
            self.shared.sessions.insert(&longer);
            if let Some(playing) = self.titles.get_mut(&title.key) {
                playing.lengthen(title);
            }
        }
        self.send(caller.worker, WorkerMessage::Extended { connection: caller.connection });
    }

    // The token of a player's new session. Before admission: a session that no token names could
    // not be used.
    fn token_for(
        &self,
        client: ClientAddress,
        replaces: Option<SessionId>,
        given: Option<Token>,
    ) -> Result<Token, AdmissionError> {
        self.check_unplayed(client, replaces)?;
        let token = given.map_or_else(|| self.shared.sessions.new_token(), Ok);
        token.map_err(|error| AdmissionError::Failed(error.to_string()))
    }

    /// Refuses a client that has as many sessions as it may have without playing them. `replaces`:
    /// the session that ends if the request is accepted.
    fn check_unplayed(
        &self,
        client: ClientAddress,
        replaces: Option<SessionId>,
    ) -> Result<(), AdmissionError> {
        let replaced = replaces
            .and_then(|id| self.sessions.get(&id))
            .is_some_and(|open| open.session.client == client && !open.session.has_played());
        let most = self.unplayed_limit.of(client);
        if self.unplayed.held(client) - usize::from(replaced) < most {
            return Ok(());
        }
        Err(AdmissionError::TooManyUnplayed { client, most })
    }

    /// A connection carries requests of a session.
    pub(super) fn session_connected(&mut self, id: SessionId) {
        let Some(open) = self.sessions.get_mut(&id) else { return };
        open.connections += 1;
        open.left = false;
        if open.connections == 1 {
            self.engine.connected(id);
        }
    }

    /// A connection of a session has ended.
    pub(super) fn session_disconnected(&mut self, now: Moment, id: SessionId, how: Disconnection) {
        let Some(open) = self.sessions.get_mut(&id) else { return };
        open.connections -= 1;
        // A player that leaves closes all its connections, some of them after one request.
        open.left |= how == Disconnection::Left;
        if open.connections == 0 {
            let how = if open.left { Disconnection::Left } else { Disconnection::Unclear };
            self.engine.disconnected(now, id, how);
        }
    }

    /// Ends the sessions whose viewers were allowed to play until now.
    pub(super) fn end_expired(&mut self, now: Moment) {
        let Some((first, _)) = self.ends.first() else { return };
        let second = unix_now();
        if *first > second {
            return;
        }
        let later = self.ends.split_off(&(second + 1, SessionId(0)));
        for (_, session) in std::mem::replace(&mut self.ends, later) {
            if let Some(open) = self.sessions.get_mut(&session) {
                open.is_expired = true;
            }
            self.engine.end(now, session);
        }
        self.execute_actions();
    }

    /// Ends a session: its token becomes invalid and its pending requests are answered with `why`.
    pub(super) fn end_session(&mut self, id: SessionId, why: RequestError) {
        let Some(open) = self.sessions.remove(&id) else { return };
        if let Some(until) = open.session.permit.until {
            self.ends.remove(&(until, id));
        }
        if let Some(token) = open.session.token {
            self.shared.sessions.remove(token);
        }
        if !open.session.is_fill() && !open.session.has_played() {
            self.unplayed.remove(open.session.client);
        }
        for request in open.requests {
            self.request_failed(request, why.clone());
        }
        // Its player waits for its start, which does not come.
        for (_, caller, _) in self.deferred.extract_if(.., |(_, _, session)| session.id == id) {
            self.workers[caller.worker].send(WorkerMessage::Admitted {
                connection: caller.connection,
                result: Err(AdmissionError::Ended(why.clone())),
                refusal_span: open.session.trace.map(|trace| trace.context()),
            });
        }
        let key = open.session.title.key;
        if let Some(playing) = self.titles.get_mut(&key) {
            playing.sessions -= 1;
            if playing.sessions == 0 {
                self.titles.remove(&key);
            }
        }
    }

    /// Handles the removal of a title's copy: admits no new session for it, and frees its space
    /// when no session plays a title that it was a copy of.
    pub(super) fn withdraw(&mut self, copy: StoredCopy, in_use: &Sender<bool>) {
        let mut used = HashSet::new();
        for title in self.shared.content.withdraw(copy) {
            // A player may have looked the title up just before, and its admission request come
            // after.
            self.withdrawn.insert(title);
            self.shared.content.forget(title);
            if self.engine.withdraw_title(self.clock.now(), title) {
                used.insert(title);
            } else {
                self.shared.content.forget_withdrawn(title);
            }
        }
        let _ = in_use.send(!used.is_empty());
        if used.is_empty() {
            self.release(copy);
        } else {
            self.leaving.push((copy, used));
        }
    }

    /// The last session of a withdrawn title has ended.
    pub(super) fn title_idle(&mut self, title: TitleKey) {
        self.shared.content.forget_withdrawn(title);
        for (_, used) in &mut self.leaving {
            used.remove(&title);
        }
        let unused: Vec<_> = self.leaving.extract_if(.., |(_, used)| used.is_empty()).collect();
        unused.into_iter().for_each(|(copy, _)| self.release(copy));
    }

    fn release(&self, copy: StoredCopy) {
        self.shared.content.stores[copy.store].store.release(copy.id);
    }

    /// All sessions, or those of one `subject`, as far as they are listed; or the one of this
    /// number if it is there.
    pub(super) fn session_list(
        &self,
        only: Option<SessionId>,
        subject: Option<&str>,
    ) -> wire::SessionList {
        let now = self.clock.now();
        let mut total = self.sessions.len();
        let statuses = match (only, subject) {
            (Some(number), _) => {
                self.engine.session(now, self.listed(number)).into_iter().collect()
            }
            (None, None) => self.engine.sessions(now, SESSIONS_LISTED),
            (None, Some(subject)) => {
                let mut numbers = self.sessions_of(subject);
                total = numbers.len();
                numbers.truncate(SESSIONS_LISTED);
                numbers.into_iter().filter_map(|number| self.engine.session(now, number)).collect()
            }
        };
        let sessions = statuses.iter().filter_map(|status| self.session_report(status)).collect();
        wire::SessionList { total: total as u64, sessions }
    }

    /// The sessions that tokens of this subject began, the oldest first.
    pub(super) fn sessions_of(&self, subject: &str) -> Vec<SessionId> {
        let is_of = |open: &OpenSession| open.session.permit.subject() == Some(subject);
        let of_subject = self.sessions.iter().filter(|(_, open)| is_of(open));
        let mut numbers: Vec<SessionId> = of_subject.map(|(number, _)| *number).collect();
        numbers.sort_unstable();
        numbers
    }

    /// The session that is listed with this number.
    pub(super) fn listed(&self, number: SessionId) -> SessionId {
        if self.sessions.contains_key(&number) {
            return number;
        }
        let mut all = self.sessions.iter();
        let found = all.find(|(_, open)| open.session.listed_as == Some(number));
        found.map_or(number, |(session, _)| *session)
    }

    fn session_report(&self, status: &SessionStatus) -> Option<wire::SessionReport> {
        let SessionStatus { session, disk, duration, buffered, tracks, progress, summary } = status;
        let player = &self.sessions.get(session)?.session;
        let progress = progress.as_ref().filter(|_| !player.is_fill());
        let at = progress.map(|progress| player.presentation.position(player.format, progress));
        let store = &self.shared.content.stores[usize::from(disk.0)].path;
        Some(wire::SessionReport {
            session: player.listed_as.unwrap_or(*session).0,
            fill: player.is_fill(),
            title: player.name.clone(),
            sent_to: player.sent_to.map(|to| to.to_string()),
            mount: player.in_mount,
            store: store.display().to_string(),
            priority: summary.priority.word().to_owned(),
            subject: player.permit.subject().map(str::to_owned),
            token_id: player.permit.token_id().map(str::to_owned),
            until: player.permit.until,
            age: player.admitted.elapsed().as_secs_f64(),
            starts_in: player.starts_in().map(|time| time.as_secs_f64()),
            position: at.map(|(position, _)| position.as_secs_f64()),
            delivered_until: at.map(|(_, until)| until.as_secs_f64()),
            duration: duration.as_secs_f64(),
            rendition: rendition_of(player, tracks),
            buffered: *buffered,
            delivered: summary.delivered,
            guaranteed_slack: summary.guaranteed_slack.map(|slack| slack.as_secs_f64()),
            observed_slack: summary.observed_slack.map(|slack| slack.as_secs_f64()),
            guarantee_violations: wire::Violations {
                disk: summary.violations_by_disk,
                scheduler: summary.violations_by_scheduler,
            },
            deadlines_met: summary.deadlines_met,
            deadline_misses: summary.deadline_misses,
            drift: summary.worst_lateness.as_secs_f64(),
            cmcd: player.reported.shown(),
        })
    }
}

/// The picture among the tracks that a session has reserved.
fn rendition_of(player: &PlayerSession, tracks: &[u16]) -> Option<wire::SessionRendition> {
    let packaging = &player.presentation.packaging;
    let numbers = tracks.iter().map(|track| packaging.stored_track(*track));
    numbers
        .filter_map(|number| Some((number, packaging.index().tracks.get(usize::from(number))?)))
        .find(|(_, track)| track.description.kind == TrackKind::Video)
        .map(|(number, track)| wire::SessionRendition {
            track: number,
            width: track.description.width,
            height: track.description.height,
            bit_rate: BitRate::of(ByteCount(track.data_len), packaging.duration()).0,
        })
}

/// Sessions that `/sessions` lists one by one.
const SESSIONS_LISTED: usize = 1000;
