//! Viewers of whom the operator's service is asked before their session begins.
//!
//! All that can be refused without it is refused before: what is asked for is a title that is
//! there, by a client whose token opens it. The request is decided again with the answer, since a
//! smaller rendition may be the best one then.

use super::Worker;
use crate::auth_request::answer::AuthAnswer;
use crate::auth_request::{ViewerQuestion, decision};
use crate::http::answer::BEFORE_A_DIRECTOR;
use crate::http::coding::negotiated;
use crate::http::connection::{ConnectionState, Exchange, PendingAnswer};
use crate::http::request::{HttpRequest, LoggedFields};
use crate::messages::{Caller, Manifest, PlayRequest};
use device::sockets::ConnectionId;
use std::net::IpAddr;

impl Worker {
    /// Whether the service has still to be asked for a request that would begin a session.
    pub(super) fn is_to_ask(&self, request: &HttpRequest) -> bool {
        request.authorized.is_none() && self.shared.auth.is_on()
    }

    /// Asks the service for a request that would begin a session.
    pub(super) fn ask_first(
        &mut self,
        id: ConnectionId,
        exchange: Exchange,
        request: HttpRequest,
        play: &PlayRequest,
        manifest: Manifest,
    ) {
        let Some(client) = self.viewer_of(id, &request) else { return };
        let LoggedFields { user_agent, forwarded_for, .. } = &request.logged;
        let question = ViewerQuestion {
            title: &play.name,
            protocol: manifest.protocol(),
            client,
            priority: play.permit.priority,
            user_agent: user_agent.as_deref(),
            forwarded_for: forwarded_for.as_deref(),
            claims: request.claims.as_deref(),
        };
        // A director asks another node when it has no answer in time.
        let patience = request.viewer.map(|_| BEFORE_A_DIRECTOR);
        let caller = Caller { worker: self.number, connection: id };
        let at_once = self.shared.auth.ask(caller, &question, patience);
        let title = play.name.clone();
        match at_once {
            Some(answer) => self.go_on(id, exchange, request, &title, answer),
            None => self.wait_for(id, exchange, request, PendingAnswer::Authorization { title }),
        }
    }

    /// The service has decided on a request.
    pub(super) fn authorized(&mut self, id: ConnectionId, answer: AuthAnswer) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        match std::mem::replace(&mut connection.state, ConnectionState::Reading) {
            ConnectionState::Waiting(exchange, request, PendingAnswer::Authorization { title }) => {
                self.go_on(id, exchange, *request, &title, answer);
            }
            state => connection.state = state,
        }
    }

    fn go_on(
        &mut self,
        id: ConnectionId,
        exchange: Exchange,
        mut request: HttpRequest,
        title: &str,
        answer: AuthAnswer,
    ) {
        let Some(client) = self.viewer_of(id, &request) else { return };
        match decision::allowance(&self.shared, answer, title, client) {
            Ok(allowance) => {
                request.permit = request.permit.within(allowance);
                request.authorized = Some(exchange.started.elapsed());
                self.answer(id, exchange, request, None);
            }
            Err(refusal) => self.send_response(id, exchange, negotiated(&request, refusal)),
        }
    }

    /// The viewer who asks, or for whom a director does.
    fn viewer_of(&self, id: ConnectionId, request: &HttpRequest) -> Option<IpAddr> {
        let connection = self.connections.get(&id)?;
        Some(request.viewer.unwrap_or_else(|| connection.peer.ip()))
    }
}
