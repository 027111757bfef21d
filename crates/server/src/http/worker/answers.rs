//! Answers of the opener and the core to a waiting connection.

use super::Worker;
use crate::http::coding::negotiated;
use crate::http::connection::{ConnectionState, PendingAnswer};
use crate::http::response::Response;
use crate::http::{answer, not_admitted, not_opened};
use crate::library::{OpenError, OpenTitle};
use crate::messages::{AdmissionError, Event};
use crate::sessions::{PlayerSession, TokenLookup};
use crate::telemetry::TraceContext;
use crate::wire;
use device::sockets::ConnectionId;
use std::sync::Arc;

impl Worker {
    /// The opener has finished: the request is answered again from the start.
    pub(super) fn opened(&mut self, id: ConnectionId, result: Result<Arc<OpenTitle>, OpenError>) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        match std::mem::replace(&mut connection.state, ConnectionState::Reading) {
            ConnectionState::Waiting(exchange, request, PendingAnswer::Opener) => match result {
                Ok(title) => self.answer(id, exchange, *request, Some(title)),
                Err(why) => {
                    let segment = request.path.get(1).map_or("", String::as_str);
                    let name = segment.strip_suffix(".mp4").unwrap_or(segment);
                    self.send_response(id, exchange, not_opened(&self.shared, name, &why));
                }
            },
            state => connection.state = state,
        }
    }

    /// The core's verdict on an admission request.
    pub(super) fn admitted(
        &mut self,
        id: ConnectionId,
        result: Result<Arc<PlayerSession>, AdmissionError>,
        refusal_span: Option<TraceContext>,
    ) {
        if let Some(connection) = self.connections.get_mut(&id) {
            match std::mem::replace(&mut connection.state, ConnectionState::Reading) {
                ConnectionState::Waiting(
                    mut exchange,
                    request,
                    PendingAnswer::Admission { title, manifest },
                ) => {
                    // Another title may have its name since it was found; none has it otherwise.
                    if let Err(AdmissionError::TitleRemoved) = result {
                        return self.answer(id, exchange, *request, None);
                    }
                    match &result {
                        Ok(session) => exchange.is_of(session),
                        Err(_) => exchange.session = refusal_span,
                    }
                    // The player of a director's session has a connection of its own.
                    if let Ok(session) = &result
                        && !session.is_directed
                    {
                        self.note_session(id, session);
                    }
                    let response = answer::admitted(&self.shared, &title, manifest, result);
                    return self.send_response(id, exchange, negotiated(&request, response));
                }
                ConnectionState::Waiting(
                    mut exchange,
                    request,
                    PendingAnswer::FailOver { title },
                ) => {
                    match result {
                        Ok(session) => {
                            exchange.is_of(&session);
                            self.note_session(id, &session);
                            let title = Arc::clone(&session.title);
                            self.answer(id, exchange, *request, Some(title));
                        }
                        Err(why) => {
                            exchange.session = refusal_span;
                            self.send_response(id, exchange, not_admitted(&title, why));
                        }
                    }
                    return;
                }
                ConnectionState::Waiting(mut exchange, _, PendingAnswer::Fill { title, media }) => {
                    return match result {
                        Ok(session) => {
                            exchange.is_of(&session);
                            self.send_body(id, exchange, *media, &session);
                        }
                        Err(why) => {
                            exchange.session = refusal_span;
                            self.send_response(id, exchange, not_admitted(&title, why));
                        }
                    };
                }
                state => connection.state = state,
            }
        }
        // The player disconnected before the verdict: its reservation must not wait for a timeout.
        if let Ok(session) = result {
            self.core.send(Event::Close { session: session.id });
        }
    }

    /// A session goes on with more of its title, or with what it had: the request is answered with
    /// that.
    pub(super) fn extended(&mut self, id: ConnectionId) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        match std::mem::replace(&mut connection.state, ConnectionState::Reading) {
            ConnectionState::Waiting(exchange, request, PendingAnswer::Extension) => {
                let title = match request.query("s").map(|token| self.shared.sessions.find(token)) {
                    Some(TokenLookup::Live(session)) => Some(Arc::clone(&session.title)),
                    _ => None,
                };
                self.answer(id, exchange, *request, title);
            }
            state => connection.state = state,
        }
    }

    pub(super) fn listed(&mut self, id: ConnectionId, list: &wire::SessionList) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        match std::mem::replace(&mut connection.state, ConnectionState::Reading) {
            ConnectionState::Waiting(exchange, request, PendingAnswer::SessionList) => {
                let response = negotiated(&request, Response::json(200, list));
                self.send_response(id, exchange, response);
            }
            state => connection.state = state,
        }
    }
}
