//! Players of whom the operator's service is asked, at DESCRIBE or at the first SETUP: which tracks
//! a player is told of depends on the answer, and PLAY follows it. The answer stands for the
//! session that is set up, and for none after it.

use super::requests::reply_of_http;
use super::{RtspWorker, WaitingRequest};
use crate::auth_request::answer::AuthAnswer;
use crate::auth_request::{ViewerQuestion, decision};
use crate::rtsp::deliveries::PlaybackThread;
use crate::telemetry::Protocol;
use device::sockets::ConnectionId;
use rtsp_message::headers::target;
use rtsp_message::names::USER_AGENT;
use rtsp_message::{Request, value};

impl RtspWorker {
    /// Whether the service has still to be asked for the title that a connection has opened.
    pub(super) fn is_to_ask(&self, id: ConnectionId) -> bool {
        let allowed = self.connections.get(&id).and_then(|it| it.allowed.as_ref());
        allowed.is_some_and(|allowed| !allowed.is_authorized) && self.shared.auth.is_on()
    }

    /// Asks the service for a player of this title, before the request is handled.
    pub(super) fn ask_first(
        &mut self,
        id: ConnectionId,
        request: Box<Request<Vec<u8>>>,
        title: &str,
    ) {
        let caller = self.caller(id);
        let Some(connection) = self.connections.get_mut(&id) else { return };
        let Some(allowed) = &connection.allowed else { return };
        let question = ViewerQuestion {
            title,
            protocol: Protocol::Rtsp,
            client: connection.peer.ip(),
            priority: allowed.permit.priority,
            user_agent: value(&request, &USER_AGENT),
            forwarded_for: None,
            claims: allowed.claims.as_deref(),
        };
        match self.shared.auth.ask(caller, &question, None) {
            Some(answer) => self.go_on(id, request, answer),
            None => connection.waiting = Some(WaitingRequest::Authorization(request)),
        }
    }

    /// The service has decided on a player.
    pub(super) fn authorized(&mut self, id: ConnectionId, answer: AuthAnswer) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        match connection.waiting.take() {
            Some(WaitingRequest::Authorization(request)) => {
                self.go_on(id, request, answer);
                self.read_requests(id);
            }
            other => connection.waiting = other,
        }
    }

    fn go_on(&mut self, id: ConnectionId, request: Box<Request<Vec<u8>>>, answer: AuthAnswer) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        let named = request.request_uri().and_then(|uri| target(uri.path()));
        let title = named.map_or_else(String::new, |target| target.title);
        match decision::allowance(&self.shared, answer, &title, connection.peer.ip()) {
            Ok(allowance) => {
                if let Some(allowed) = &mut connection.allowed {
                    allowed.permit = allowed.of_token.within(allowance);
                    allowed.is_authorized = true;
                }
                self.handle(id, request, None);
            }
            Err(refusal) => self.reply(id, &request, reply_of_http(refusal, false)),
        }
    }
}
