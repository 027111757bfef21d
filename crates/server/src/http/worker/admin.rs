//! Requests to the admin API: what may not be done is refused before the body is read, and the body
//! is taken as far as the operation has room for it.

use super::Worker;
use crate::admin::{self, ApiCall, BodyPieces, NoOperation, Problem, RequestBody};
use crate::http::coding::negotiated;
use crate::http::connection::{BodyTarget, ConnectionState, Exchange, IncomingBody, PendingAnswer};
use crate::http::request::{HttpRequest, Method};
use crate::http::response::Response;
use crate::messages::Caller;
use crossbeam_channel::bounded;
use device::sockets::ConnectionId;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

impl Worker {
    /// Performs a request to the API, or begins to take its body.
    pub(super) fn admin_request(
        &mut self,
        id: ConnectionId,
        mut exchange: Exchange,
        request: HttpRequest,
    ) {
        let Some(connection) = self.connections.get(&id) else { return };
        let call = match self.permitted(&request, connection.peer.ip()) {
            Ok(call) => call,
            Err(response) => {
                // The body is not read, and would be parsed as the next request.
                exchange.keep_alive &= request.body.length == 0;
                return self.send_response(id, exchange, response);
            }
        };
        if call.is_watch() {
            return self.begin_watch(id, exchange);
        }
        let target = match call.operation.body() {
            RequestBody::None => {
                let started = self.api.start(call, None, self.caller(id));
                return self.after_start(id, exchange, request, started);
            }
            RequestBody::Json(_) => BodyTarget::Json(call),
            RequestBody::File => {
                // One piece is on its way at a time.
                let (sender, pieces) = bounded(1);
                let (length, worker) = (request.body.length, self.api.worker(self.number));
                let is_slow = Arc::new(AtomicBool::new(false));
                let told = Arc::clone(&is_slow);
                let body = BodyPieces { length, pieces, is_slow: told, worker, connection: id };
                if let Err(why) = self.api.start(call, Some(body), self.caller(id)) {
                    exchange.keep_alive = false;
                    return self.send_response(id, exchange, why.into_response());
                }
                BodyTarget::Pieces { sender, taking: false, is_slow }
            }
        };
        let Some(connection) = self.connections.get_mut(&id) else { return };
        let length = request.body.length;
        let is_awaited = request.body.is_announced && connection.input.is_empty();
        let body = IncomingBody { left: length, marked: length, target };
        connection.progress_at = Instant::now();
        connection.state =
            ConnectionState::ReceivingBody(exchange, Box::new(request), Box::new(body));
        if is_awaited {
            let number = connection.next_number;
            connection.next_number += 1;
            self.sockets.send(id, vec![CONTINUE.to_vec().into()], number);
        }
        self.take_body(id);
    }

    /// The operation that a request is for, if the client may have it performed.
    fn permitted(&self, request: &HttpRequest, peer: IpAddr) -> Result<ApiCall, Response> {
        let call = match admin::find(request) {
            Ok(call) => call,
            Err(NoOperation::Path) => {
                let hint = "/api/v1/openapi.json describes the API";
                let problem = Problem::new(404, "not-found", "the API has no such address", hint);
                return Err(problem.into_response());
            }
            Err(NoOperation::Method(methods)) if request.method == Method::Options => {
                let mut response = Response::api_done();
                response.head.add("Allow", methods);
                return Err(response);
            }
            Err(NoOperation::Method(methods)) => {
                let message = format!("this address has other methods: {methods}");
                let hint = "/api/v1/openapi.json describes the API";
                let problem = Problem::new(405, "method-not-allowed", message, hint);
                let mut response = problem.into_response();
                response.head.add("Allow", methods);
                return Err(response);
            }
        };
        if let Some(denied) = admin::denied(&self.shared, call.operation, request, peer) {
            return Err(denied);
        }
        let checked = check_conditions(request)
            .and_then(|()| call.check_query())
            .and_then(|()| self.check_body(&call, request));
        checked.map_err(Problem::into_response)?;
        Ok(call)
    }

    fn check_body(&self, call: &ApiCall, request: &HttpRequest) -> Result<(), Problem> {
        let body = &request.body;
        match call.operation.body() {
            RequestBody::None if body.length == 0 => Ok(()),
            RequestBody::None => {
                let message = "this operation takes no body";
                Err(Problem::new(400, "body-not-allowed", message, "send none"))
            }
            // Pages of other origins can send forms and text without being asked, and no JSON.
            RequestBody::Json(_) if !body.is_json => {
                let message = "this operation takes a JSON object";
                let hint = "send it with Content-Type: application/json";
                Err(Problem::new(415, "not-json", message, hint))
            }
            RequestBody::Json(_) if body.is_encoded => Err(encoded("send the JSON as it is")),
            RequestBody::Json(_) if body.length > LONGEST_JSON => {
                let message = "the body is longer than 16 KiB";
                let hint = "/api/v1/openapi.json has what this operation takes";
                Err(Problem::new(413, "too-large", message, hint))
            }
            RequestBody::Json(_) => Ok(()),
            // RFC 9110, 14.5: a part must not be taken for the whole.
            RequestBody::File if body.is_part => {
                let message = "a part of a file (Content-Range) is not taken";
                Err(Problem::new(400, "part-of-file", message, "send the whole file"))
            }
            RequestBody::File if body.is_encoded => Err(encoded("send the file as it is")),
            RequestBody::File if body.is_form => {
                let message = "a form (multipart) is not taken";
                Err(Problem::new(415, "form", message, "send the file itself as the body"))
            }
            RequestBody::File => {
                self.api.check_upload(call, body.is_counted.then_some(body.length))
            }
        }
    }

    /// Hands what has been received of a body to the operation.
    pub(super) fn take_body(&mut self, id: ConnectionId) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        let ConnectionState::ReceivingBody(_, _, body) = &mut connection.state else { return };
        let wanted = usize::try_from(body.left).unwrap_or(usize::MAX);
        let count = connection.input.len().min(wanted);
        match &mut body.target {
            BodyTarget::Json(call) => call.json.extend(connection.input.drain(..count)),
            BodyTarget::Pieces { taking: true, .. } => return,
            BodyTarget::Pieces { .. } if count == 0 => return,
            BodyTarget::Pieces { sender, taking, .. } => {
                // A job that has ended with an error takes nothing; its answer is on its way.
                let _ = sender.send(connection.input.drain(..count).collect());
                *taking = true;
            }
        }
        body.left -= count as u64;
        if body.left == 0 {
            self.body_taken_whole(id);
        }
    }

    /// Tells the operation that takes a body why the rest of it does not come.
    pub(super) fn tell_slow(&self, id: ConnectionId) {
        if let Some(connection) = self.connections.get(&id)
            && let ConnectionState::ReceivingBody(_, _, body) = &connection.state
            && let BodyTarget::Pieces { is_slow, .. } = &body.target
        {
            is_slow.store(true, Ordering::Relaxed);
        }
    }

    fn body_taken_whole(&mut self, id: ConnectionId) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        match std::mem::replace(&mut connection.state, ConnectionState::Reading) {
            ConnectionState::ReceivingBody(exchange, request, body) => match body.target {
                BodyTarget::Json(call) => {
                    let started = self.api.start(call, None, self.caller(id));
                    self.after_start(id, exchange, *request, started);
                }
                BodyTarget::Pieces { .. } => {
                    self.wait_for(id, exchange, *request, PendingAnswer::Api);
                }
            },
            state => connection.state = state,
        }
    }

    /// The operation has taken a piece of its body.
    pub(super) fn piece_taken(&mut self, id: ConnectionId) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        let ConnectionState::ReceivingBody(_, _, body) = &mut connection.state else { return };
        if let BodyTarget::Pieces { taking, .. } = &mut body.target {
            *taking = false;
            // The time of the disk is not the client's.
            connection.progress_at = Instant::now();
        }
        self.take_body(id);
        self.receive(id);
    }

    /// The operation of a connection's request is done, or has failed, perhaps before it had all of
    /// its body.
    pub(super) fn admin_answered(&mut self, id: ConnectionId, response: Response) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        match std::mem::replace(&mut connection.state, ConnectionState::Reading) {
            ConnectionState::Waiting(exchange, request, PendingAnswer::Api) => {
                self.send_response(id, exchange, negotiated(&request, response));
            }
            ConnectionState::ReceivingBody(mut exchange, ..) => {
                exchange.keep_alive = false;
                self.send_response(id, exchange, response);
            }
            state => connection.state = state,
        }
    }

    fn after_start(
        &mut self,
        id: ConnectionId,
        exchange: Exchange,
        request: HttpRequest,
        started: Result<(), Problem>,
    ) {
        match started {
            Ok(()) => self.wait_for(id, exchange, request, PendingAnswer::Api),
            Err(why) => self.send_response(id, exchange, why.into_response()),
        }
    }

    fn caller(&self, connection: ConnectionId) -> Caller {
        Caller { worker: self.number, connection }
    }
}

/// Refuses a change under a condition: resources of the API have no entity tags and no dates.
fn check_conditions(request: &HttpRequest) -> Result<(), Problem> {
    let is_read = matches!(request.method, Method::Get | Method::Head);
    if is_read || !request.conditions.bind_change(request.method == Method::Put) {
        return Ok(());
    }
    let message = "conditions (If-Match, If-None-Match, If-Unmodified-Since) are not supported";
    let hint = "ask without them; a PUT never replaces a title";
    Err(Problem::new(412, "conditions-not-supported", message, hint))
}

fn encoded(hint: &str) -> Problem {
    let message = "a compressed body (Content-Encoding) is not taken";
    Problem::new(415, "encoded", message, hint)
}

/// The longest JSON body in bytes; a name and a few numbers.
const LONGEST_JSON: u64 = 16 * 1024;
/// Tells a client that asks first (`Expect`) to send its body.
const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";
