//! The viewers' requests: from a player's fetch to the last byte that its socket takes, and what
//! becomes of them when they are refused, fail or are cancelled.

use super::actions::request_of;
use super::audience::SHORTEST_WAIT;
use super::{Event, World};
use crate::checks::{Contiguity, SeekTarget};
use crate::titles::byte_count;
use crate::viewers::{FetchRange, ViewerRequest, Windows};
use engine::{
    Action, Disconnection, MediaRequest, ReadId, RequestId, ScheduleChange, SessionId, TrackNumber,
};
use player::{Fetch, PlaybackState};
use std::sync::Arc;
use std::time::Duration;
use units::{ByteCount, Moment, nanos};

impl World<'_> {
    /// Serves a player's fetch: by a request that is open already, or by a new one.
    pub(super) fn fetch(&mut self, number: usize, fetch: Fetch) {
        let viewer = &mut self.viewers[number];
        let extended =
            viewer.requests.iter().copied().find(|id| {
                self.requests.get_mut(id).is_some_and(|request| request.extend_to(fetch))
            });
        if let Some(request) = extended {
            if viewer.rows_after_seek.remove(&fetch.track) {
                viewer.rows_without_guarantee.insert(fetch.track);
            }
            self.advance_request(request);
            return self.read_ahead(number, fetch);
        }
        if !self.is_granted(number, fetch) {
            return;
        }
        let viewer = &mut self.viewers[number];
        let title = &self.titles[viewer.profile.title];
        let count = if title.progressive { viewer.profile.fetches_per_request } else { 1 };
        let end = fetch.piece.saturating_add(count).min(title.fetches());
        let start = title.fetch_start(fetch.piece);
        if viewer.session.is_some() && viewer.replaces_at <= self.now {
            viewer.replaces_at = Moment::MAX;
            // The viewer still has its old session, so that a refusal of the new one must not count
            // towards the attempts after which it leaves.
            let attempts = viewer.attempts;
            // The old session stays if the new one is refused.
            if self.admit(number, start, self.viewers[number].session).is_ok() {
                self.viewers[number].rows_without_guarantee = self.viewers[number].all_rows();
            }
            self.viewers[number].attempts = attempts;
            // What became of the old session until now, before it has a connection again.
            self.execute_actions();
            // What became of another request may have made the viewer leave.
            if self.viewers[number].has_left {
                return;
            }
        }
        let viewer = &mut self.viewers[number];
        if viewer.session.is_none() {
            viewer.rows_without_guarantee = viewer.all_rows();
            if let Err(wait) = self.admit(number, start, None) {
                self.viewers[number].to_retry.push(fetch);
                return self.retry_later(number, wait, Event::Retry(number));
            }
        }
        self.send_request(number, fetch, end, false);
        self.read_ahead(number, fetch);
    }

    /// Asks for the segment after the one that the player has asked for, if it is a player that
    /// does so.
    fn read_ahead(&mut self, number: usize, fetch: Fetch) {
        if !self.viewers[number].profile.reads_ahead {
            return;
        }
        // What became of the player's own request.
        self.execute_actions();
        let viewer = &self.viewers[number];
        let title = &self.titles[viewer.profile.title];
        let next = Fetch { piece: fetch.piece + 1, ..fetch };
        let offered = if title.grows() { viewer.granted } else { title.fetches() };
        let is_open = |id: &RequestId| self.requests[id].fetches.includes(next);
        let reads_ahead = !title.progressive
            && viewer.session.is_some()
            && !viewer.has_left
            // Refused or failed: the player asks for it once more, and reads nothing meanwhile.
            && !viewer.to_retry.contains(&fetch)
            && next.piece < offered
            && !viewer.requests.iter().any(is_open);
        if reads_ahead {
            self.send_request(number, next, next.piece + 1, true);
        }
    }

    /// Whether a viewer may ask for a fetch of a title that is being recorded. If it is not offered
    /// yet, or the session cannot be extended to it, the player tries again later.
    fn is_granted(&mut self, number: usize, fetch: Fetch) -> bool {
        let viewer = &self.viewers[number];
        let title = &self.titles[viewer.profile.title];
        if !title.grows() {
            return true;
        }
        let offered = title.offered(self.now);
        if fetch.piece >= offered {
            let at = title.offered_at(fetch.piece) + POLL.mul_f64(self.rng.f64());
            let viewer = &mut self.viewers[number];
            viewer.rows_without_guarantee = viewer.all_rows();
            viewer.to_retry.push(fetch);
            // Each repeats all that waits, and what is still not offered needs one more.
            if viewer.polls < MOST_POLLS {
                viewer.polls += 1;
                self.schedule(at, Event::Poll(number));
            }
            return false;
        }
        let Some(session) = viewer.session.filter(|_| fetch.piece >= viewer.granted) else {
            return true;
        };
        let layout = Arc::clone(title.layout_of(offered));
        self.refusals.changed();
        let extended = self.engine.extend(self.now, session, Arc::clone(&layout));
        let word = u64::from(extended.is_ok());
        self.note("extension: session, fetches, done", [session.0, offered as u64, word, 0]);
        if let Ok(later) = extended {
            self.outcome.extended += 1;
            self.viewers[number].granted = offered;
            let checks = self.deadlines.extended(self.now, session, &layout, later);
            self.schedule_checks(checks);
        } else {
            self.outcome.refused_extensions += 1;
            let viewer = &mut self.viewers[number];
            viewer.rows_without_guarantee = viewer.all_rows();
            viewer.to_retry.push(fetch);
            self.retry_later(number, POLL, Event::Retry(number));
        }
        // Who makes room for it, and what is delivered.
        self.execute_actions();
        extended.is_ok()
    }

    /// Sends one request for the fetches from this one to `end`. `ahead`: the player does not read
    /// the response before it asks for the fetch.
    fn send_request(&mut self, number: usize, fetch: Fetch, end: usize, ahead: bool) {
        let id = self.name_request();
        let viewer = &mut self.viewers[number];
        let title = &self.titles[viewer.profile.title];
        let session = viewer.session.expect("a viewer requests admission before media");
        let (mut parts, mut ends) = (Vec::new(), Vec::new());
        for piece in fetch.piece..end {
            parts.extend(title.parts(&viewer.tracks, fetch.track, piece));
            ends.push(byte_count(&parts));
        }
        let read =
            parts.first().map_or(0, |part| title.layout.tracks[usize::from(part.track)].piece);
        let window = match self.scenario.viewers.reads_per_request {
            0 => u64::MAX,
            reads => u64::from(reads) * u64::from(read),
        };
        let mut windows = Windows::divide(&parts, window, &ends, title.progressive);
        let first = windows.next(id);
        let fetches = FetchRange { row: fetch.track, first: fetch.piece, ends };
        let mut request = ViewerRequest::new(number, session, fetches, windows, self.now);
        if !ahead {
            request.extend_to(fetch);
        }
        request.closed = parts.is_empty();
        self.requests.insert(id, request);
        viewer.requests.push(id);
        let title = viewer.profile.title;
        let numbers = [id.0, session.0, fetch.track as u64, fetch.piece as u64];
        self.note("request: request, session, row, fetch", numbers);
        self.connect(number);
        // A fetch may have no bytes. The engine would fail such a request as invalid, and a server
        // has nothing to read for it.
        let Some((place, window)) = first else {
            return self.advance_request(id);
        };
        let key = self.titles[title].layout.title;
        self.liveness.request_opened(id);
        self.deliveries.expect(id, key, parts.clone());
        // Judged before the engine is called: a grant or a delivery of this call changes what
        // continues.
        let judged = self.deadlines.requested(self.now, session, id, &parts);
        let in_window = |track: TrackNumber| window.iter().any(|part| part.track == track);
        let judged: Vec<(TrackNumber, Contiguity)> =
            judged.into_iter().filter(|(track, _)| in_window(*track)).collect();
        let media = MediaRequest { request: id, session, parts: window };
        self.engine.request_for(self.now, place, media);
        let actions = self.engine.take_actions();
        let granted = granted_tracks(&actions, id);
        // A request of which bytes were delivered was accepted, whatever became of its rest.
        let is_accepted = !actions.iter().any(|action| is_rejection(action, id))
            || actions
                .iter()
                .any(|action| matches!(action, Action::Deliver { request, .. } if *request == id));
        if is_accepted {
            self.deadlines.accepted(id, &granted);
            let decided = |(track, contiguity): &(TrackNumber, Contiguity)| {
                *contiguity != Contiguity::Seeks || granted.contains(track)
            };
            self.violations.require(
                judged.iter().all(decided),
                "a seek is readmitted or refused at once",
                || format!("{id:?} of {session:?}: {judged:?}, granted {granted:?}"),
            );
        }
        let seeks = judged.iter().any(|(_, contiguity)| *contiguity == Contiguity::Seeks);
        let viewer = &mut self.viewers[number];
        if viewer.rows_after_seek.remove(&fetch.track) && !seeks && granted.is_empty() {
            // A seek within the player's buffer: the server sees a request that continues, and the
            // player needs it earlier than its schedule.
            viewer.rows_without_guarantee.insert(fetch.track);
        }
        self.queue_actions(actions);
    }

    fn name_request(&mut self) -> RequestId {
        self.last_request += 1;
        RequestId(self.last_request)
    }

    /// Asks the engine for the next window of a response, when it is time.
    fn request_window(&mut self, id: RequestId) {
        let may_request = |request: &&mut ViewerRequest| request.may_request();
        if self.requests.get_mut(&id).filter(may_request).is_none() {
            return;
        }
        let window = self.name_request();
        let request = self.requests.get_mut(&id).expect("looked up just now");
        let Some((place, parts)) = request.windows.next(window) else { return };
        request.requested_at = self.now;
        let session = request.session;
        self.responses.insert(window, id);
        self.note("window: request, window", [id.0, window.0, 0, 0]);
        self.engine.request_for(self.now, place, MediaRequest { request: window, session, parts });
        self.take_actions();
    }

    /// The engine has delivered all of a window. Returns whether that is the whole response.
    pub(super) fn window_delivered(&mut self, id: RequestId) -> bool {
        let Some(request) = self.requests.get_mut(&id) else { return true };
        request.windows.delivered = true;
        request.windows.is_requested()
    }

    /// Checks a change of the engine's guarantee for a session.
    pub(super) fn rescheduled(&mut self, session: SessionId, change: &ScheduleChange) {
        let justified = match change {
            ScheduleChange::Readmitted { request, tracks, wait } => {
                let wait_ns = nanos(*wait);
                let numbers = [session.0, request.0, tracks.len() as u64, wait_ns];
                self.note("readmitted: session, request, tracks, wait", numbers);
                self.readmitted(self.response(*request), tracks, *wait)
            }
            &ScheduleChange::Delayed { track, slots } => {
                let numbers = [session.0, track.into(), slots.into(), 0];
                self.note("delayed: session, track, slots", numbers);
                self.deadlines.delayed(self.now, session, track, slots)
            }
            &ScheduleChange::Released { track } => {
                let numbers = [session.0, track.into(), 0, 0];
                self.note("reservation released: session, track", numbers);
                self.deadlines.released(self.now, session, track)
            }
        };
        if !justified {
            let rule = "a guarantee changes only when the viewer seeks, is late or is idle";
            self.break_guarantee(rule, || format!("{session:?}: {change:?}"));
        }
    }

    /// Notes the readmission of a request. Returns whether it is justified.
    fn readmitted(&mut self, request: RequestId, tracks: &[TrackNumber], wait: Duration) -> bool {
        let mut all_justified = wait <= self.scenario.startup;
        for &track in tracks {
            let Some(byte) = self.deadlines.next_byte(request, track) else { continue };
            let Some(open) = self.requests.get(&request) else { continue };
            let title = &self.titles[self.viewers[open.viewer].profile.title];
            let fetch = title.fetch_of(track, byte);
            let (start, end) = (title.fetch_start(fetch), title.fetch_start(fetch + 1));
            let target = SeekTarget { track, byte, start, end, wait };
            let (check, justified) = self.deadlines.readmitted(self.now, request, &target);
            all_justified &= justified;
            self.schedule_checks(check);
        }
        if let Some(open) = self.requests.get_mut(&request) {
            // The new grant guarantees all that the request still waits for.
            open.guaranteed_by = Some(Moment::ZERO);
            let viewer = &mut self.viewers[open.viewer];
            let row = open.fetches.row;
            // What it has of the row already, it may show before the grant begins.
            let is_waiting = viewer.player.as_ref().is_some_and(|player| {
                player.state() == PlaybackState::Waiting && player.ahead(row).is_zero()
            });
            let tracks_of_row = if viewer.rows == 1 { viewer.tracks.len() } else { 1 };
            // The grant counts from now. A player that shows nothing starts with it; one that
            // plays may need the bytes earlier.
            if is_waiting && tracks.len() == tracks_of_row {
                viewer.rows_without_guarantee.remove(&row);
            } else {
                viewer.rows_without_guarantee.insert(row);
            }
        }
        all_justified
    }

    /// Gives the player the fetches that have arrived, sends what can be sent, and removes a
    /// request that has ended.
    pub(super) fn advance_request(&mut self, id: RequestId) {
        while let Some(fetch) = self.requests.get_mut(&id).and_then(ViewerRequest::next_arrival) {
            let number = self.requests[&id].viewer;
            let viewer = &mut self.viewers[number];
            if let Some(player) = viewer.player.as_mut().filter(|_| !viewer.has_left) {
                player.arrived(self.now, fetch);
                viewer.attempts = 0;
                self.runnable.push_back(number);
            }
        }
        self.request_window(id);
        self.transmit(id);
        self.remove_finished(id);
    }

    pub(super) fn transmit(&mut self, id: RequestId) {
        let Some(request) = self.requests.get_mut(&id) else { return };
        let viewer = &self.viewers[request.viewer];
        if let Some(len) = request.next_to_send().filter(|_| !viewer.socket_stalled) {
            request.sending = true;
            let time = ByteCount(len.into()).time_at(viewer.profile.link);
            self.schedule(self.now + time, Event::Sent(id));
        }
    }

    /// A socket has taken a delivery.
    pub(super) fn delivery_sent(&mut self, id: RequestId) {
        let Some(request) = self.requests.get_mut(&id).filter(|request| request.sending) else {
            return;
        };
        if self.viewers[request.viewer].socket_stalled {
            return;
        }
        let session = request.session;
        let sent = request.finish_sending(self.now);
        let window = sent.window;
        self.note("sent: request, read, bytes", [window.0, sent.read.0, sent.len.into(), 0]);
        self.release_buffer(session, sent.read);
        self.engine.sent(self.now, window, sent.read);
        self.advance_request(id);
    }

    /// A socket of the session no longer holds a buffer.
    fn release_buffer(&mut self, session: SessionId, read: ReadId) {
        if let Some((track, len)) = self.memory.track_and_len(read) {
            self.deadlines.buffer_sent(self.now, session, track, len);
        }
        self.memory.unpin(read);
    }

    /// Removes a request that waits for nothing more.
    fn remove_finished(&mut self, id: RequestId) {
        let finished = self.requests.get(&id).filter(|request| request.is_finished());
        if let Some(request) = finished {
            let viewer = &mut self.viewers[request.viewer];
            viewer.requests.retain(|other| *other != id);
            let is_last = viewer.requests.is_empty();
            let request = self.requests.remove(&id).expect("looked up just now");
            request.windows.requested.iter().for_each(|window| _ = self.responses.remove(window));
            let profile = &self.viewers[request.viewer].profile;
            if is_last && profile.reconnects {
                self.disconnect(request.viewer, Disconnection::Unclear);
            }
        }
    }

    /// The engine has ended the request; deliveries may still be in the socket's queue.
    pub(super) fn close_request(&mut self, id: RequestId) {
        self.liveness.request_closed(id);
        self.deadlines.closed(self.now, id, false);
        if let Some(request) = self.requests.get_mut(&id) {
            request.closed = true;
        }
        self.advance_request(id);
    }

    pub(super) fn request_refused(&mut self, id: RequestId, wait: Duration) {
        self.outcome.refused_seeks += 1;
        self.deliveries.close(id);
        if self.deadlines.is_all_guaranteed(self.now, id) {
            self.break_guarantee("a guaranteed request is not refused", || format!("{id:?}"));
        }
        self.retry_request(id, wait);
    }

    pub(super) fn request_failed(&mut self, id: RequestId) {
        self.retry_request(id, SHORTEST_WAIT);
    }

    /// Closes a request that will not be completed, and schedules a retry of the fetch that the
    /// player waits for.
    fn retry_request(&mut self, id: RequestId, wait: Duration) {
        let Some(request) = self.requests.get_mut(&id) else { return self.close_request(id) };
        // Asked before the request is abandoned, because an abandoned request awaits nothing.
        let (number, fetch) = (request.viewer, request.awaited());
        request.abandoned = true;
        self.close_request(id);
        let viewer = &mut self.viewers[number];
        viewer.rows_without_guarantee = viewer.all_rows();
        if let Some(fetch) = fetch {
            viewer.to_retry.push(fetch);
            self.retry_later(number, wait, Event::Retry(number));
        }
    }

    /// Makes the player repeat the fetches that were refused or failed.
    pub(super) fn retry(&mut self, number: usize) {
        let viewer = &mut self.viewers[number];
        let Some(player) = viewer.player.as_mut().filter(|_| !viewer.has_left) else { return };
        for fetch in std::mem::take(&mut viewer.to_retry) {
            player.failed(self.now, fetch);
        }
        self.runnable.push_back(number);
    }

    /// The viewer seeks or leaves: its open requests are cancelled.
    pub(super) fn cancel_requests(&mut self, number: usize) {
        self.end_stall(number);
        self.viewers[number].rows_after_seek = self.viewers[number].all_rows();
        for id in self.viewers[number].requests.clone() {
            // The actions that followed the previous cancellation may have ended this request.
            let Some(request) = self.requests.get(&id) else { continue };
            let awaited = request.awaited();
            self.cancel(id);
            self.execute_actions();
            let viewer = &mut self.viewers[number];
            let awaited_once = awaited.filter(|fetch| !viewer.to_retry.contains(fetch));
            if let (Some(player), Some(fetch)) = (viewer.player.as_mut(), awaited_once) {
                player.failed(self.now, fetch);
            }
        }
        self.retry(number);
    }

    pub(super) fn cancel(&mut self, id: RequestId) {
        let Some(request) = self.requests.remove(&id) else { return };
        self.note("cancelled: request", [id.0, 0, 0, 0]);
        let viewer = &mut self.viewers[request.viewer];
        viewer.requests.retain(|other| *other != id);
        if viewer.requests.is_empty() && viewer.profile.reconnects {
            self.disconnect(request.viewer, Disconnection::Left);
        }
        for buffer in &request.unsent {
            self.release_buffer(request.session, buffer.read);
        }
        self.deliveries.close(id);
        self.deadlines.closed(self.now, id, true);
        self.liveness.request_closed(id);
        // The checkers above are told first: what the engine does in the call below comes after the
        // cancellation.
        for window in &request.windows.requested {
            self.responses.remove(window);
            self.cancelled.insert(*window);
        }
        // The latest first, as the server does: nothing more is delivered for it meanwhile.
        for window in request.open_windows().into_iter().rev() {
            self.engine.cancel(self.now, window);
        }
    }

    /// The engine has ended a session. A viewer that is still present requests a new one.
    pub(super) fn end_session(&mut self, session: SessionId) {
        let Some(number) = self.sessions.remove(&session) else { return };
        let viewer = &mut self.viewers[number];
        if viewer.session == Some(session) {
            viewer.session = None;
            viewer.rows_without_guarantee = viewer.all_rows();
        }
        let of_session = |id: &RequestId| self.requests[id].session == session;
        let ids: Vec<RequestId> = viewer.requests.iter().copied().filter(of_session).collect();
        for id in ids {
            self.deliveries.close(id);
            if self.requests.get(&id).is_none_or(|request| request.closed) {
                continue;
            }
            // A server may close the connection or answer with an error: both must work.
            if self.rng.bool() {
                self.retry_request(id, SHORTEST_WAIT);
            } else {
                let awaited = self.requests[&id].awaited();
                self.cancel(id);
                if let Some(fetch) = awaited {
                    self.viewers[number].to_retry.push(fetch);
                    self.retry_later(number, SHORTEST_WAIT, Event::Retry(number));
                }
            }
        }
    }
}

/// Time after which a player asks again for what is new of a title that is being recorded.
const POLL: Duration = Duration::from_secs(2);

/// Moments at which a viewer asks again, at a time. Each thing that it waits for draws one.
const MOST_POLLS: u32 = 16;

/// Whether an action ends the request: it was not accepted, or its session ended at this moment.
fn is_rejection(action: &Action, id: RequestId) -> bool {
    use Action::{Declined, Failed, Refused};
    request_of(action) == Some(id)
        && matches!(action, Refused { .. } | Declined { .. } | Failed { .. })
}

/// The tracks for which a request was readmitted.
fn granted_tracks(actions: &[Action], id: RequestId) -> Vec<TrackNumber> {
    let tracks = actions.iter().filter_map(|action| match action {
        Action::Rescheduled {
            change: ScheduleChange::Readmitted { request, tracks, .. }, ..
        } if *request == id => Some(tracks.iter().copied()),
        _ => None,
    });
    tracks.flatten().collect()
}
