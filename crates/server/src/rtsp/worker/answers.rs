//! Answers of the opener and the core to a waiting request, and deliveries of bytes.

use super::requests::reply_of_http;
use super::{LoggedSession, RtspWorker, WaitingRequest};
use crate::http::{not_admitted, not_opened, request_failed};
use crate::library::{OpenError, OpenTitle};
use crate::messages::{AdmissionError, Caller, CoreHandle, Event, RequestError, WorkerMessage};
use crate::rtsp::deliveries::PlaybackThread;
use crate::rtsp::playback::Playback;
use crate::rtsp::session::SessionState;
use crate::sessions::PlayerSession;
use crate::telemetry::TraceContext;
use device::sockets::ConnectionId;
use rtsp_message::headers::target;
use serde_json::json;
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

impl RtspWorker {
    pub(super) fn handle_message(&mut self, message: WorkerMessage) {
        let Some(message) = self.handle_delivery(message) else { return };
        match message {
            WorkerMessage::Opened { connection, result } => self.opened(connection, result),
            WorkerMessage::Authorized { connection, answer } => {
                self.authorized(connection, *answer);
            }
            WorkerMessage::Admitted { connection, result, refusal_span } => {
                self.admitted(connection, result, refusal_span);
            }
            WorkerMessage::HandOver => self.leave(),
            WorkerMessage::Dismiss { within } => self.begin_to_dismiss(within),
            WorkerMessage::Accepted { .. }
            | WorkerMessage::Deliver { .. }
            | WorkerMessage::RequestFailed { .. }
            | WorkerMessage::Extended { .. }
            | WorkerMessage::Listed { .. }
            | WorkerMessage::Begin(_)
            | WorkerMessage::BodyTaken { .. }
            | WorkerMessage::Answered { .. }
            | WorkerMessage::Quit => {}
        }
    }

    /// Another server takes this one's place. What a player has set up on its connection ends with
    /// that.
    fn leave(&mut self) {
        self.sockets.stop_accepting();
        let all: Vec<ConnectionId> = self.connections.keys().copied().collect();
        for id in all {
            self.log_end(id, "restart");
            self.close(id);
        }
        self.core.send(Event::Answered);
    }

    /// Logs that a session ends before its player or its title does.
    pub(super) fn log_end(&self, id: ConnectionId, why: &str) {
        let Some(connection) = self.connections.get(&id) else { return };
        if let Some(session) = &connection.session {
            let (peer, title) = (connection.peer.to_string(), session.name.clone());
            let number = session.engine.map(|session| session.0);
            self.shared.log.line_of(connection.logged.span, || {
                json!({ "event": "rtsp-session-ended", "session": number, "why": why, "peer": peer, "title": title })
            });
        }
    }

    fn opened(&mut self, id: ConnectionId, result: Result<Arc<OpenTitle>, OpenError>) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        match connection.waiting.take() {
            Some(WaitingRequest::Opener(request)) => match result {
                Ok(title) => self.handle(id, request, Some(title)),
                Err(why) => {
                    let named = request.request_uri().and_then(|uri| target(uri.path()));
                    let name = named.map_or_else(String::new, |target| target.title);
                    let reply = reply_of_http(not_opened(&self.shared, &name, &why), false);
                    self.reply(id, &request, reply);
                }
            },
            other => connection.waiting = other,
        }
        self.read_requests(id);
    }

    fn admitted(
        &mut self,
        id: ConnectionId,
        result: Result<Arc<PlayerSession>, AdmissionError>,
        refusal_span: Option<TraceContext>,
    ) {
        let waiting = self.connections.get_mut(&id).and_then(|c| match c.waiting.take() {
            Some(WaitingRequest::Admission(request, plan)) => Some((request, plan)),
            other => {
                c.waiting = other;
                None
            }
        });
        let name = self.session(id).map(|session| session.name.clone());
        let (Some((request, plan)), Some(name)) = (waiting, name) else {
            // The player has gone before the verdict.
            if let Ok(session) = result {
                self.core.send(Event::End { session: session.id });
            }
            return;
        };
        match result {
            Ok(session) => {
                // Until here it went on as before, which a refusal leaves so. What is sent of the
                // old position must not come behind what is sent of the new one.
                self.stop_playback(id);
                let origin = session.admitted + session.wait + self.limits.startup;
                let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
                self.core.send(Event::Connected { session: session.id });
                let Some(rtsp) = self.session(id) else { return };
                rtsp.engine = Some(session.id);
                let span = session.trace.map(|trace| trace.context());
                let logged = LoggedSession { session: Some(session.id), span };
                let playback = Playback::new(session, plan, &rtsp.tracks, origin, unix);
                rtsp.state = SessionState::Starting(Box::new(playback));
                if let Some(connection) = self.connections.get_mut(&id) {
                    // It has ended: this one was admitted in its place.
                    connection.adopted.iter_mut().for_each(|adopted| adopted.session = None);
                    connection.waiting = Some(WaitingRequest::Start(request));
                    connection.logged = logged;
                }
                self.request_bytes(id);
                self.start_if_accepted(id);
            }
            Err(why) => {
                let Some(connection) = self.connections.get_mut(&id) else { return };
                let refusal = LoggedSession { session: None, span: refusal_span };
                let before = std::mem::replace(&mut connection.logged, refusal);
                let has_no_room = matches!(why, AdmissionError::Refused(_));
                let response = not_admitted(&name, why);
                self.reply(id, &request, reply_of_http(response, has_no_room));
                if let Some(connection) = self.connections.get_mut(&id) {
                    connection.logged = before;
                }
                self.read_requests(id);
            }
        }
    }
}

impl PlaybackThread for RtspWorker {
    fn core(&self) -> &CoreHandle {
        &self.core
    }

    fn caller(&self, connection: ConnectionId) -> Caller {
        Caller { worker: self.number, connection }
    }

    fn playback(&mut self, id: ConnectionId) -> Option<&mut Playback> {
        match &mut self.connections.get_mut(&id)?.session.as_mut()?.state {
            SessionState::Starting(playback) | SessionState::Playing(playback) => Some(playback),
            SessionState::Ready => None,
        }
    }

    fn send_due(&mut self, id: ConnectionId) {
        self.pump(id);
    }

    // The start is the answer to PLAY.
    fn start_if_accepted(&mut self, id: ConnectionId) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        let Some(session) = &mut connection.session else { return };
        let SessionState::Starting(playback) = &session.state else { return };
        if !playback.is_accepted() {
            return;
        }
        let Some(WaitingRequest::Start(request)) = connection.waiting.take() else { return };
        match std::mem::replace(&mut session.state, SessionState::Ready) {
            SessionState::Starting(playback) => session.state = SessionState::Playing(playback),
            state => session.state = state,
        }
        connection.wake = Some(Instant::now());
        connection.goodbye_at = None;
        session.tracks.iter_mut().for_each(|track| track.packetizer.resume());
        let reply = super::requests::playing(&request, session, self.sockets.is_secure());
        self.playing.insert(id);
        self.shared
            .rtsp
            .playing
            .store(self.playing.len() as u64, std::sync::atomic::Ordering::Relaxed);
        self.reply(id, &request, reply);
        self.send_due(id);
        self.read_requests(id);
    }

    // The reply to PLAY, or the end of the streams.
    fn failed(&mut self, id: ConnectionId, why: RequestError) {
        let refused = matches!(why, RequestError::Refused(_));
        let Some(connection) = self.connections.get_mut(&id) else { return };
        match connection.waiting.take() {
            Some(WaitingRequest::Start(request)) => {
                self.stop_playback(id);
                self.end_engine_session(id);
                self.reply(id, &request, reply_of_http(request_failed(&why), refused));
                self.read_requests(id);
            }
            // Its session was replaced, of which the answer comes next.
            Some(WaitingRequest::Admission(request, plan)) => {
                connection.waiting = Some(WaitingRequest::Admission(request, plan));
                self.stop_playback(id);
            }
            other => {
                connection.waiting = other;
                self.finish(id);
            }
        }
    }
}
