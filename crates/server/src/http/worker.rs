//! An HTTP thread: its socket loop and its connections.
//!
//! ```text
//!   Reading ──request──▶ answer ──┬─ response ─▶ SendingResponse ─┐
//!      ▲                 ▲        ├─ body ─────▶ SendingBody ─────┤ keep-alive
//!      │                 └ Waiting ◀─ ask                         │
//!      └──────────────────────────────────────────────────────────┘  else ─▶ Lingering ─▶ closed
//!                                Watching (events, no end) ─▶ closed
//! ```
//!
//! Read from top to bottom, the methods follow a request for a segment: received, parsed, answered
//! (`answer` decides, this file executes), its body requested from the core piece by piece,
//! delivered by the core, sent, finished. Answers of the opener and the core to other requests are
//! in `answers`, those of the operator's service in `authorizing`, new connections in `accepting`,
//! those of HTTP/2 in `carrying`, the admin API and its bodies in `admin`, clients that watch in
//! `watching`, the end in `leaving` and `ending`.
//!
//! A connection answers one request at a time; pipelined ones wait in the input. Everything that a
//! peer can hold (input, send windows, time) is bounded.

mod accepting;
mod admin;
mod answers;
mod authorizing;
mod carrying;
mod ending;
mod leaving;
mod presence;
mod timeouts;
mod watching;

use super::answer::{self, Decision};
use super::authorize;
use super::coding::negotiated;
use super::connection::{Connection, ConnectionState, Exchange, PendingAnswer};
use super::error_response;
use super::ranged::MediaBody;
use super::request::{HeadError, HttpRequest, LoggedFields, MAX_HEAD, Method, Parsed, parse};
use super::response::Response;
use super::transfer::Transfer;
use crate::access::CheckedToken;
use crate::admin::{AdminApi, Problem};
use crate::client_thread::ClientService;
use crate::clients::ClientAddress;
use crate::http2::{HttpEvent, HttpSockets};
use crate::library::OpenTitle;
use crate::messages::{
    Caller, CoreHandle, EndOfFill, Event, RequestError, WorkerMessage, next_request_id,
};
use crate::opener::{Opener, Task};
use crate::sessions::{PlayerSession, TokenLookup};
use crate::shared::Shared;
use crate::tls::is_clear_text;
use crossbeam_channel::Receiver;
use device::sockets::{ConnectionId, SendSlice, SocketEvent};
use ending::Ending;
use engine::{RequestId, SessionId};
use leaving::Leaving;
use serde_json::json;
use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

/// Limits of an HTTP thread's connections, as in [`crate::ServerConfig`].
#[derive(Clone, Debug)]
pub(crate) struct ConnectionLimits {
    pub(crate) send_timeout: Duration,
    pub(crate) head_timeout: Duration,
    pub(crate) idle_timeout: Duration,
}

struct Worker {
    number: usize,
    sockets: HttpSockets,
    messages: Receiver<WorkerMessage>,
    shared: Arc<Shared>,
    core: CoreHandle,
    opener: Opener,
    api: Arc<AdminApi>,
    limits: ConnectionLimits,
    connections: HashMap<ConnectionId, Connection>,
    // Requests of closed connections whose buffers the kernel may still hold.
    closing: HashMap<ConnectionId, Vec<RequestId>>,
    next_timeout_check: Instant,
    leaving: Option<Leaving>,
    ending: Option<Ending>,
}

/// Serves HTTP until the server stops.
pub(crate) fn serve(service: ClientService<ConnectionLimits>) {
    let ClientService { number, sockets, messages, shared, core, opener, api, limits } = service;
    let worker = Worker {
        number,
        sockets: HttpSockets::new(sockets),
        messages,
        shared,
        core,
        opener,
        api,
        limits,
        connections: HashMap::new(),
        closing: HashMap::new(),
        next_timeout_check: Instant::now(),
        leaving: None,
        ending: None,
    };
    worker.run();
}

impl Worker {
    fn run(mut self) {
        let mut events = Vec::new();
        loop {
            let is_brief = self.leaving.is_some() || self.ending.is_some();
            let pause = if is_brief { leaving::LOOK } else { CHECK_INTERVAL };
            if let Err(error) = self.sockets.wait(pause, &mut events) {
                self.shared
                    .log
                    .line(|| json!({ "event": "socket-wait-failed", "error": error.to_string() }));
                // A socket loop that fails at once must not use up the processor.
                thread::sleep(CHECK_INTERVAL);
            }
            for event in events.drain(..) {
                match event {
                    HttpEvent::Socket(event) => self.handle_socket_event(event),
                    HttpEvent::Carries { carrier } => self.begin_to_carry(carrier),
                    HttpEvent::Lane { carrier, lane } => self.lane_opened(carrier, lane),
                    HttpEvent::Over { carrier } => self.carrier_over(carrier),
                }
            }
            while let Ok(message) = self.messages.try_recv() {
                self.handle_message(message);
            }
            if self.has_ended() {
                return;
            }
            self.leave();
            if Instant::now() >= self.next_timeout_check {
                self.check_timeouts();
                self.send_events();
                self.next_timeout_check = Instant::now() + CHECK_INTERVAL;
            }
        }
    }

    fn handle_socket_event(&mut self, event: SocketEvent) {
        match event {
            SocketEvent::Accepted { connection, peer } => {
                self.accepted_over(connection, peer, None);
            }
            SocketEvent::AcceptFailed { error } => {
                self.shared
                    .log
                    .line(|| json!({ "event": "accept-failed", "error": error.to_string() }));
            }
            SocketEvent::Received { connection, buffer, outcome } => {
                self.received(connection, &buffer, outcome);
            }
            SocketEvent::Sent { connection, tag } => self.sent(connection, tag),
            SocketEvent::SendFailed { connection, error } => {
                let open = self.connections.get(&connection);
                // The operation goes on with a body of which all has come.
                let is_complete = open.is_some_and(Connection::has_whole_body);
                self.hung_up(connection);
                if !is_complete && !self.goes_on_without_peer(connection, false) {
                    self.abandon(connection, &error.to_string());
                }
            }
            SocketEvent::Closed { connection } => {
                for request in self.closing.remove(&connection).unwrap_or_default() {
                    self.core.send(Event::Cancel { request });
                }
            }
            SocketEvent::Woken => {}
        }
    }

    /// Keeps a receive pending, so that a disconnect is noticed, unless the peer has sent more than
    /// a request head beyond the request being answered.
    fn receive(&mut self, id: ConnectionId) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        let lingering = matches!(connection.state, ConnectionState::Lingering);
        if connection.receiving || connection.ended {
            return;
        }
        let (most, size) = match connection.state {
            ConnectionState::ReceivingBody(..) => (BODY_BYTES, BODY_BYTES),
            _ => (MAX_HEAD, RECEIVE_BYTES),
        };
        if lingering || connection.input.len() < most {
            connection.receiving = true;
            self.sockets.recv(id, Vec::with_capacity(size));
        }
    }

    fn received(&mut self, id: ConnectionId, bytes: &[u8], outcome: io::Result<usize>) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        connection.receiving = false;
        match outcome {
            Err(error) if is_clear_text(&error) => return self.refuse_clear_text(id),
            Err(error) => {
                let is_complete = connection.has_whole_body();
                self.hung_up(id);
                // The operation goes on with a body of which all has come.
                if !is_complete && !self.goes_on_without_peer(id, false) {
                    self.abandon(id, &error.to_string());
                }
                return;
            }
            Ok(0) => {
                let answering = connection.is_answering() || connection.has_whole_body();
                self.hung_up(id);
                // The peer may still take the response to what it has sent.
                if !answering && !self.goes_on_without_peer(id, true) {
                    self.close(id);
                }
                return;
            }
            Ok(_) => {}
        }
        if !matches!(connection.state, ConnectionState::Lingering) {
            // The time limit of a head begins with its first byte, not with the connection.
            let first = connection.input.is_empty();
            if let Some(limit) = connection.above {
                if matches!(connection.state, ConnectionState::Reading) {
                    self.refuse_connection(id, limit);
                }
                return;
            }
            connection.input.extend_from_slice(bytes);
            if matches!(connection.state, ConnectionState::Reading) {
                if first {
                    connection.deadline = Instant::now() + self.limits.head_timeout;
                }
                self.read_request(id);
            } else {
                self.take_body(id);
            }
        }
        self.receive(id);
    }

    /// The peer has closed its side of a connection, or all of it.
    fn hung_up(&mut self, id: ConnectionId) {
        let Some(mut connection) = self.connections.remove(&id) else { return };
        connection.hung_up |= self.is_answering(&connection);
        connection.ended = true;
        // Media that nobody is there for must not wait for the disk before its viewer counts as
        // gone.
        if matches!(connection.state, ConnectionState::SendingBody(..)) {
            self.forget_sessions(&mut connection);
        }
        self.connections.insert(id, connection);
    }

    /// Parses the input, and answers it where it has a whole request.
    fn read_request(&mut self, id: ConnectionId) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        match parse(&connection.input) {
            Parsed::Partial => {
                if connection.ended {
                    self.close(id);
                }
            }
            Parsed::Rejected(rejection) => {
                connection.input.clear();
                self.send_response(id, Exchange::unparsed(), rejected(&rejection));
            }
            Parsed::Request(mut request, length) => {
                connection.input.drain(..length);
                let (mut exchange, peer) = (Exchange::new(&request), connection.peer.ip());
                if request.is_for_api() {
                    return self.admin_request(id, exchange, *request);
                }
                request.peer = Some(peer);
                match authorize::viewer(&self.shared, &request) {
                    Ok(viewer) => request.viewer = viewer,
                    Err(denied) => return self.send_response(id, exchange, denied),
                }
                let peer = request.viewer.unwrap_or(peer);
                match authorize::permit(&self.shared, &request, peer) {
                    Ok(CheckedToken { permit, claims }) => {
                        (request.permit, request.claims) = (permit, claims);
                    }
                    Err(denied) => return self.send_response(id, exchange, denied),
                }
                let token = request.query("s").map(|token| self.shared.sessions.find(token));
                let session = match token {
                    Some(TokenLookup::Live(session)) => Some(session),
                    _ => None,
                };
                if let Some(session) = &session {
                    if !session.permit.is_for(peer) {
                        return self.send_response(id, exchange, authorize::other_client(peer));
                    }
                    exchange.is_of(session);
                    self.note_session(id, session);
                }
                if let Some(report) = &request.cmcd {
                    self.shared.reports.note(report, session.as_deref());
                }
                self.answer(id, exchange, *request, None);
            }
        }
    }

    /// Executes the decision of [`answer`]. `opened`: the request's title, where it has just been
    /// opened.
    fn answer(
        &mut self,
        id: ConnectionId,
        exchange: Exchange,
        request: HttpRequest,
        opened: Option<Arc<OpenTitle>>,
    ) {
        let caller = Caller { worker: self.number, connection: id };
        let task = match answer::answer(&self.shared, &request, opened) {
            Decision::Respond(response) => {
                return self.send_response(id, exchange, negotiated(&request, response));
            }
            Decision::SendBody(media, session) => {
                return self.send_body(id, exchange, media, &session);
            }
            Decision::Fill(mut play, media) => {
                play.parent = request.parent;
                let Some(connection) = self.connections.get(&id) else { return };
                let client = ClientAddress::of(connection.peer.ip());
                let pending =
                    PendingAnswer::Fill { title: play.name.clone(), media: Box::new(media) };
                self.wait_for(id, exchange, request, pending);
                return self.core.send(Event::Admit { caller, client, request: play });
            }
            Decision::Admit(play, manifest) if self.is_to_ask(&request) => {
                return self.ask_first(id, exchange, request, &play, manifest);
            }
            Decision::Admit(mut play, manifest) => {
                (play.protocol, play.parent) = (manifest.protocol(), request.parent);
                let Some(connection) = self.connections.get(&id) else { return };
                let viewer = request.viewer.unwrap_or_else(|| connection.peer.ip());
                let client = ClientAddress::of(viewer);
                let pending = PendingAnswer::Admission { title: play.name.clone(), manifest };
                self.wait_for(id, exchange, request, pending);
                return self.core.send(Event::Admit { caller, client, request: play });
            }
            Decision::FailOver(mut play) => {
                play.parent = request.parent;
                let Some(connection) = self.connections.get(&id) else { return };
                let client = ClientAddress::of(connection.peer.ip());
                let pending = PendingAnswer::FailOver { title: play.name.clone() };
                self.wait_for(id, exchange, request, pending);
                return self.core.send(Event::Admit { caller, client, request: play });
            }
            Decision::Extend(session, title) => {
                self.wait_for(id, exchange, request, PendingAnswer::Extension);
                return self.core.send(Event::Extend { caller, session, title });
            }
            Decision::ListSessions => {
                self.wait_for(id, exchange, request, PendingAnswer::SessionList);
                return self.core.send(Event::List { caller });
            }
            Decision::EndSession(session) => {
                // Before the response: a request that follows it finds the session's place free.
                self.core.send(Event::End { session });
                return self.send_response(id, exchange, Response::no_content());
            }
            Decision::BuildPresentation(title, params) => {
                Task::BuildPresentation { caller, title, params }
            }
            Decision::Open(name) => Task::Open { caller, name },
            Decision::Look(copy, name) => Task::Look { caller, copy, name },
            Decision::BuildFile(title, presentation, file) => {
                Task::BuildFile { caller, title, presentation, file }
            }
            Decision::PlanTransport(title, presentation) => {
                Task::PlanTransport { caller, title, presentation }
            }
        };
        if self.opener.submit(task) {
            self.wait_for(id, exchange, request, PendingAnswer::Opener);
        } else {
            let message = "too many requests wait for titles to be opened; try again later";
            self.send_response(id, exchange, Response::unavailable("busy", message, RETRY_AFTER));
        }
    }

    fn wait_for(
        &mut self,
        id: ConnectionId,
        exchange: Exchange,
        request: HttpRequest,
        pending: PendingAnswer,
    ) {
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.state = ConnectionState::Waiting(exchange, Box::new(request), pending);
        }
    }

    /// Sends a response made in one piece.
    fn send_response(&mut self, id: ConnectionId, mut exchange: Exchange, response: Response) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        let status = response.head.status();
        // After a rejected head, the start of the next request cannot be found.
        exchange.keep_alive &= !matches!(status, 400 | 405 | 408 | 411 | 414 | 431 | 501 | 505);
        exchange.keep_alive &= self.leaving.is_none();
        exchange.status = status;
        let mut slices: Vec<SendSlice> =
            vec![response.head.finish(response.length, exchange.keep_alive).into()];
        if exchange.method != Method::Head {
            slices.push(response.body.into());
        }
        exchange.bytes = slices.iter().map(|slice| slice.len() as u64).sum();
        self.shared.http.sent_bytes.fetch_add(exchange.bytes, Ordering::Relaxed);
        let number = connection.next_number;
        connection.next_number += 1;
        connection.progress_at = Instant::now();
        connection.state = ConnectionState::SendingResponse(exchange, number);
        self.sockets.send(id, slices, number);
    }

    fn send_body(
        &mut self,
        id: ConnectionId,
        mut exchange: Exchange,
        media: MediaBody,
        session: &PlayerSession,
    ) {
        let end = session.is_fill().then(|| self.end_of_fill(session.id));
        let Some(connection) = self.connections.get_mut(&id) else { return };
        let MediaBody { head, body, range, ends } = media;
        exchange.status = head.status();
        exchange.keep_alive &= self.leaving.is_none();
        let head_bytes = head.finish(range.end - range.start, exchange.keep_alive);
        let held = (Arc::clone(&self.shared.http.under_way), end);
        let spans = session.presentation.spans(session.format);
        let number = connection.next_number;
        let mut transfer = Transfer::new(session.id, spans, head_bytes, body, range, number, held);
        transfer.end_windows_at(ends);
        connection.state = ConnectionState::SendingBody(exchange, Box::new(transfer));
        connection.progress_at = Instant::now();
        self.pump(id);
    }

    /// Ends a fill when the value is dropped.
    fn end_of_fill(&self, session: SessionId) -> EndOfFill {
        EndOfFill { core: self.core.clone(), session }
    }

    /// Requests the bytes that a transfer needs next, and sends those that it has.
    fn pump(&mut self, id: ConnectionId) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        let ConnectionState::SendingBody(_, transfer) = &mut connection.state else { return };
        let caller = Caller { worker: self.number, connection: id };
        while let Some((place, request)) = transfer.next_request(next_request_id) {
            self.core.send(Event::Request { caller, place, request });
        }
        let was_idle = !transfer.is_sending();
        let Ok(outgoing) = transfer.outgoing() else {
            return self.abandon(id, "the engine delivered out of order");
        };
        for (request, read) in transfer.used() {
            self.core.send(Event::Sent { request, read });
        }
        // The send timeout counts from here: before, the peer had nothing to take.
        if was_idle && !outgoing.is_empty() {
            connection.progress_at = Instant::now();
        }
        for out in outgoing {
            self.sockets.send(id, out.slices, out.number);
        }
        if transfer.is_done() {
            self.finished(id);
        }
    }

    fn handle_message(&mut self, message: WorkerMessage) {
        match message {
            WorkerMessage::Accepted { connection, request } => {
                if let Some(transfer) = self.transfer(connection) {
                    transfer.accepted(request);
                    self.pump(connection);
                }
            }
            WorkerMessage::Deliver { connection, request, read, buffer, range } => {
                if let Some(transfer) = self.transfer(connection) {
                    transfer.deliver(request, read, buffer, range);
                    self.pump(connection);
                }
            }
            WorkerMessage::RequestFailed { connection, request, why } => {
                self.request_failed(connection, request, &why);
            }
            WorkerMessage::Opened { connection, result } => self.opened(connection, result),
            WorkerMessage::Authorized { connection, answer } => {
                self.authorized(connection, *answer);
            }
            WorkerMessage::Admitted { connection, result, refusal_span } => {
                self.admitted(connection, result, refusal_span);
            }
            WorkerMessage::Extended { connection } => self.extended(connection),
            WorkerMessage::Listed { connection, list } => self.listed(connection, &list),
            WorkerMessage::BodyTaken { connection } => self.piece_taken(connection),
            WorkerMessage::Answered { connection, response } => {
                self.admin_answered(connection, *response);
            }
            WorkerMessage::HandOver => self.begin_to_leave(),
            WorkerMessage::Quit => self.begin_to_end(),
            WorkerMessage::Begin(_) | WorkerMessage::Dismiss { .. } => {}
        }
    }

    fn transfer(&mut self, id: ConnectionId) -> Option<&mut Transfer> {
        match &mut self.connections.get_mut(&id)?.state {
            ConnectionState::SendingBody(_, transfer) => Some(transfer),
            _ => None,
        }
    }

    /// A request of a transfer is not served: an error response if nothing has been sent yet,
    /// otherwise the end of the connection, by which HTTP/1.1 marks an incomplete body.
    fn request_failed(&mut self, id: ConnectionId, request: RequestId, why: &RequestError) {
        let Some(transfer) = self.transfer(id) else { return };
        // The failure may be of an earlier transfer of this connection.
        if !transfer.open_requests().contains(&request) {
            return;
        }
        if transfer.begun() {
            // Bytes that have been delivered are still sent.
            transfer.stop();
            if transfer.is_cut_off() {
                self.abandon(id, CUT_OFF);
            }
            self.shared.http.aborted.fetch_add(1, Ordering::Relaxed);
            return;
        }
        // The engine waits for `Sent` or `Cancel` for everything it has delivered.
        for request in transfer.open_requests() {
            self.core.send(Event::Cancel { request });
        }
        let Some(connection) = self.connections.get_mut(&id) else { return };
        if let ConnectionState::SendingBody(exchange, transfer) =
            std::mem::replace(&mut connection.state, ConnectionState::Reading)
        {
            // Sends are numbered for the connection, across its responses.
            connection.next_number = transfer.next_number();
            self.send_response(id, exchange, error_response::of(why));
        }
    }

    /// The kernel has taken the send with this number.
    fn sent(&mut self, id: ConnectionId, number: u64) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        connection.progress_at = Instant::now();
        match &mut connection.state {
            ConnectionState::SendingResponse(_, awaited) if *awaited == number => self.finished(id),
            ConnectionState::Watching(_, watch) if watch.sending == Some(number) => {
                watch.sending = None;
            }
            ConnectionState::SendingBody(exchange, transfer) => {
                let (bytes, piece) = transfer.sent(number);
                exchange.bytes += bytes;
                self.shared.http.sent_bytes.fetch_add(bytes, Ordering::Relaxed);
                if let Some((request, read)) = piece {
                    self.core.send(Event::Sent { request, read });
                }
                if transfer.is_cut_off() {
                    return self.abandon(id, CUT_OFF);
                }
                self.pump(id);
            }
            _ => {}
        }
    }

    /// The response is with the kernel: the connection goes on with its next request, or ends.
    fn finished(&mut self, id: ConnectionId) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        let exchange = match std::mem::replace(&mut connection.state, ConnectionState::Reading) {
            ConnectionState::SendingResponse(exchange, _) => exchange,
            ConnectionState::SendingBody(exchange, transfer) => {
                connection.next_number = transfer.next_number();
                exchange
            }
            state => return connection.state = state,
        };
        let peer = connection.peer;
        let (keep_alive, now) = (exchange.keep_alive && self.leaving.is_none(), Instant::now());
        if keep_alive {
            // A pipelined request may have begun already.
            let started = !connection.input.is_empty();
            let limit = if started { self.limits.head_timeout } else { self.limits.idle_timeout };
            connection.deadline = now + limit;
        } else {
            connection.state = ConnectionState::Lingering;
            connection.deadline = now + LINGER;
            // What the peer sends from now on is not read as a request.
            connection.input = Vec::new();
        }
        self.log_exchange(peer, &exchange, None);
        if keep_alive {
            self.read_request(id);
        } else {
            self.sockets.finish(id);
            // Both directions have ended, so there is no unread input to wait for.
            if self.connections.get(&id).is_some_and(|connection| connection.ended) {
                return self.close(id);
            }
        }
        self.receive(id);
    }

    /// Ends a connection before its exchange is complete.
    fn abandon(&mut self, id: ConnectionId, why: &str) {
        let Some(connection) = self.connections.get(&id) else { return };
        if let ConnectionState::SendingBody(exchange, _)
        | ConnectionState::SendingResponse(exchange, _)
        | ConnectionState::Watching(exchange, _)
        | ConnectionState::ReceivingBody(exchange, ..)
        | ConnectionState::Waiting(exchange, ..) = &connection.state
        {
            self.log_exchange(connection.peer, exchange, Some(why));
        }
        self.close(id);
    }

    fn close(&mut self, id: ConnectionId) {
        let Some(mut connection) = self.connections.remove(&id) else { return };
        self.abandon_lanes(&connection.state);
        self.forget_sessions(&mut connection);
        match connection.carrier {
            None => self.shared.http.connections.fetch_sub(1, Ordering::Relaxed),
            Some(carrier) => {
                self.lane_closed(carrier, id);
                self.shared.http.lanes.fetch_sub(1, Ordering::Relaxed)
            }
        };
        self.shared.http.disconnected(ClientAddress::of(connection.peer.ip()));
        if let ConnectionState::SendingBody(_, transfer) = connection.state {
            // Cancelled only when the kernel has released the buffers: the engine reuses them.
            self.closing.insert(id, transfer.open_requests());
        }
        self.sockets.close(id);
        if let Some(carrier) = connection.carrier {
            self.close_unused(carrier);
        }
    }

    /// Counts and logs an exchange that has ended. `aborted`: why, where it is incomplete.
    fn log_exchange(&self, peer: SocketAddr, exchange: &Exchange, aborted: Option<&str>) {
        let http = &self.shared.http;
        // An exchange that ends before its status is known counts in the first class.
        let class = usize::from(exchange.status / 100).clamp(1, 5) - 1;
        http.responses[class].fetch_add(1, Ordering::Relaxed);
        self.shared.log.line_of(exchange.session, || {
            let mut line = json!({
                "peer": peer.to_string(),
                "method": exchange.method.name(),
                "target": exchange.target,
                "status": exchange.status,
                "bytes": exchange.bytes,
                "seconds": exchange.started.elapsed().as_secs_f64(),
            });
            let LoggedFields { user_agent, range, forwarded_for } = &exchange.logged;
            let fields =
                [("user_agent", user_agent), ("range", range), ("forwarded_for", forwarded_for)];
            if let Some(session) = exchange.number {
                line["session"] = session.0.into();
            }
            for (name, value) in fields {
                if let Some(value) = value {
                    line[name] = value.as_str().into();
                }
            }
            if let Some(report) = &exchange.cmcd {
                line["cmcd"] = json!(report);
            }
            if let Some(why) = aborted {
                line["aborted"] = why.into();
            }
            line
        });
    }
}

/// The error for a request head that was rejected.
fn rejected(rejection: &HeadError) -> Response {
    let HeadError { status, code, message, is_for_api } = *rejection;
    if is_for_api {
        let hint = "/api/v1/openapi.json describes the API";
        return Problem::new(status, code, message, hint).into_response();
    }
    Response::error(status, code, message)
}

/// The log's reason for a response that ended early.
const CUT_OFF: &str = "the rest of the bytes could not be read";
/// How often time limits are checked; a limit is exceeded by at most this.
const CHECK_INTERVAL: Duration = Duration::from_millis(250);
/// Bytes of one receive; most request heads are smaller.
const RECEIVE_BYTES: usize = 4096;
/// Bytes of one receive of a body, and of a body that wait to be taken.
const BODY_BYTES: usize = 256 * 1024;
/// Time for a peer to read the last response: closing a socket that has unread input resets the
/// connection, and the response would be lost on its way.
const LINGER: Duration = Duration::from_secs(2);
const RETRY_AFTER: Duration = Duration::from_secs(2);
