//! The RTSP thread: its socket loop, connections and timers. Methods are in `requests`, the answers
//! of core and opener in `answers`, that of the operator's service in `authorizing`, the sending of
//! packets in `playing`.
//!
//! ```text
//!   Received ─▶ input ─▶ request ─▶ reply           at once, or after core or opener have answered
//!   timer ────▶ playback ─▶ packets ─▶ connection    bounded by what the peer takes
//!                                  └─▶ UDP sockets   bounded by packets in each tick
//! ```
//!
//! A connection answers one request at a time, and has at most one session. Everything that a peer
//! can hold (input, queued packets, time, tracks) is bounded.

mod answers;
mod authorizing;
mod dismissal;
mod playing;
mod requests;

use super::playback::Plan;
use super::session::{RtspSession, Wire};
use crate::access::Permit;
use crate::client_thread::ClientService;
use crate::clients::ClientAddress;
use crate::http::without_token;
use crate::messages::{CoreHandle, WorkerMessage};
use crate::opener::Opener;
use crate::shared::Shared;
use crate::telemetry::TraceContext;
use crate::tls::{ClientSockets, is_clear_text};
use crossbeam_channel::Receiver;
use device::sockets::{ConnectionId, SendSlice, SocketEvent};
use engine::SessionId;
use rtsp_message::names::SESSION;
use rtsp_message::tunnel::{self, TunnelDecoder, TunnelHalf, TunnelHead};
use rtsp_message::{Incoming, MAX_INPUT, Request, RtspReply, next};
use serde_json::{Map, Value, json};
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

/// Limits of the RTSP thread's connections, as in [`crate::ServerConfig`].
#[derive(Clone, Debug)]
pub(crate) struct RtspLimits {
    /// From admission until play-out starts.
    pub(crate) startup: Duration,
    /// Where UDP sockets are bound.
    pub(crate) local: IpAddr,
    pub(crate) send_timeout: Duration,
    /// The time for a message, from its first byte.
    pub(crate) head_timeout: Duration,
    /// A session ends when its player is silent for this long, except while it plays over its
    /// connection; so does a connection without a session.
    pub(crate) session_timeout: Duration,
}

struct RtspWorker {
    /// The number of this thread among those that the core sends to.
    number: usize,
    sockets: ClientSockets,
    messages: Receiver<WorkerMessage>,
    shared: Arc<Shared>,
    core: CoreHandle,
    opener: Opener,
    limits: RtspLimits,
    connections: HashMap<ConnectionId, RtspConnection>,
    /// The connections that have the replies of a tunnel, by its cookie.
    tunnels: HashMap<String, ConnectionId>,
    playing: BTreeSet<ConnectionId>,
    next_check: Instant,
    /// When the last player must have been let go, before the server ends.
    dismiss_by: Option<Instant>,
}

/// Serves RTSP until the server stops.
pub(crate) fn serve(service: ClientService<RtspLimits>) {
    let ClientService { number, sockets, messages, shared, core, opener, limits, .. } = service;
    let worker = RtspWorker {
        number,
        sockets,
        messages,
        shared,
        core,
        opener,
        limits,
        connections: HashMap::new(),
        tunnels: HashMap::new(),
        playing: BTreeSet::new(),
        next_check: Instant::now(),
        dismiss_by: None,
    };
    worker.run();
}

/// One connection.
struct RtspConnection {
    peer: SocketAddr,
    input: Vec<u8>,
    /// When the unread input began to come.
    input_since: Instant,
    receiving: bool,
    role: Role,
    /// No request is read any more; the connection ends when its last reply is sent.
    closing: bool,
    /// When the peer was last heard of.
    heard: Instant,
    /// When its last request came; without one, when it connected.
    asked: Instant,
    session: Option<RtspSession>,
    /// What lines of the log about its requests name.
    logged: LoggedSession,
    /// The title that a token of this player has opened.
    allowed: Option<AllowedTitle>,
    /// The reservation that a director has asked for.
    adopted: Option<AdoptedTicket>,
    /// Whether the player goes on through its director when the stream ends early.
    goes_on: bool,
    waiting: Option<WaitingRequest>,
    /// Sends that the socket has not taken, and their number so far.
    outstanding: usize,
    sends: u64,
    /// Bytes given to the socket so far.
    queued: u64,
    /// Bytes that the kernel had taken at `progress_at`, or before.
    taken: u64,
    progress_at: Instant,
    /// When the playback has something to do next; `None`: when something comes.
    wake: Option<Instant>,
    /// Packets for UDP that are not sent yet.
    packets: VecDeque<UdpPacket>,
    /// When the end of the streams is announced.
    goodbye_at: Option<Instant>,
}

/// The session of the engine that requests are of, as the log names it.
#[derive(Clone, Copy, Debug, Default)]
struct LoggedSession {
    /// `None`: the player was refused, or has asked for none.
    session: Option<SessionId>,
    /// The span of the session, or of the refusal.
    span: Option<TraceContext>,
}

/// What a connection is for.
enum Role {
    /// Requests and replies.
    Whole,
    /// The replies of the tunnel with this cookie.
    Replies(String),
    /// The requests of a tunnel, whose replies are on this connection.
    Requests(ConnectionId, TunnelDecoder),
}

/// A title that a player may play.
struct AllowedTitle {
    name: String,
    /// What the token permits that opened it.
    of_token: Permit,
    /// What of that the operator's service has allowed.
    permit: Permit,
    /// The claims of the token that opened it, where one was needed.
    claims: Option<Arc<Map<String, Value>>>,
    /// Whether the operator's service has allowed the player's session.
    is_authorized: bool,
}

/// The ticket of a director that a player has come with.
struct AdoptedTicket {
    /// The token of the session that the ticket names.
    ticket: String,
    /// The session; `None`: it was played.
    session: Option<SessionId>,
}

/// A packet for one of the sockets of a track.
struct UdpPacket {
    setup: usize,
    is_rtcp: bool,
    bytes: Vec<u8>,
}

/// A request that waits for an answer.
enum WaitingRequest {
    /// The opener's, after which it is answered from the start.
    Opener(Box<Request<Vec<u8>>>),
    /// The answer of the operator's service, after which the request is answered from the start.
    Authorization(Box<Request<Vec<u8>>>),
    /// The core's verdict.
    Admission(Box<Request<Vec<u8>>>, Plan),
    /// The engine's, to the first requests for bytes.
    Start(Box<Request<Vec<u8>>>),
}

impl RtspConnection {
    /// Removes a message from the input.
    fn consume(&mut self, length: usize) {
        self.input.drain(..length);
        self.input_since = Instant::now();
    }
}

impl RtspWorker {
    fn run(mut self) {
        let mut events = Vec::new();
        loop {
            if let Err(error) = self.sockets.wait(self.pause(), &mut events) {
                self.shared
                    .log
                    .line(|| json!({ "event": "socket-wait-failed", "error": error.to_string() }));
                thread::sleep(CHECK_INTERVAL);
            }
            for event in events.drain(..) {
                self.handle_socket_event(event);
            }
            while let Ok(message) = self.messages.try_recv() {
                if matches!(message, WorkerMessage::Quit) {
                    return;
                }
                self.handle_message(message);
            }
            let now = Instant::now();
            let is_due = |id: &&ConnectionId| {
                let connection = self.connections.get(*id);
                connection.is_some_and(|c| c.wake.is_some_and(|wake| wake <= now))
            };
            let due: Vec<ConnectionId> = self.playing.iter().filter(is_due).copied().collect();
            due.into_iter().for_each(|id| self.pump(id));
            if now >= self.next_check {
                self.check_timeouts(now);
                self.dismiss_some(now);
                self.next_check = now + CHECK_INTERVAL;
            }
        }
    }

    /// How long the loop may wait: LDUs that are due within a tick are sent together.
    fn pause(&self) -> Duration {
        let wakes = self.playing.iter().filter_map(|id| self.connections.get(id)?.wake);
        let until = wakes
            .min()
            .map_or(CHECK_INTERVAL, |wake| wake.saturating_duration_since(Instant::now()));
        until.clamp(TICK, CHECK_INTERVAL)
    }

    fn handle_socket_event(&mut self, event: SocketEvent) {
        match event {
            SocketEvent::Accepted { connection, peer } => self.accepted(connection, peer),
            SocketEvent::AcceptFailed { error } => {
                self.shared
                    .log
                    .line(|| json!({ "event": "accept-failed", "error": error.to_string() }));
            }
            SocketEvent::Received { connection, buffer, outcome } => match outcome {
                Ok(length) => self.received(connection, &buffer, length == 0),
                Err(error) if is_clear_text(&error) => self.refuse_clear_text(connection),
                Err(_) => self.close(connection),
            },
            SocketEvent::Sent { connection, .. } => {
                let Some(sent) = self.connections.get_mut(&connection) else { return };
                sent.outstanding -= 1;
                sent.progress_at = Instant::now();
                if sent.closing && sent.outstanding == 0 {
                    return self.close(connection);
                }
                self.pump(connection);
            }
            SocketEvent::SendFailed { connection, .. } => self.close(connection),
            SocketEvent::Closed { .. } | SocketEvent::Woken => {}
        }
    }

    fn accepted(&mut self, id: ConnectionId, peer: SocketAddr) {
        let client = ClientAddress::of(peer.ip());
        let settings = self.shared.settings();
        let most = settings.client_connections.of(client);
        let open = self.shared.rtsp.connections.fetch_add(1, Ordering::Relaxed)
            + self.shared.http.connections.load(Ordering::Relaxed);
        let held = self.shared.http.connected(client);
        let now = Instant::now();
        let connection = RtspConnection {
            peer,
            input: Vec::new(),
            input_since: now,
            receiving: false,
            role: Role::Whole,
            closing: false,
            heard: now,
            asked: now,
            session: None,
            logged: LoggedSession::default(),
            allowed: None,
            adopted: None,
            goes_on: false,
            waiting: None,
            outstanding: 0,
            sends: 0,
            queued: 0,
            taken: 0,
            progress_at: now,
            wake: None,
            packets: VecDeque::new(),
            goodbye_at: None,
        };
        self.connections.insert(id, connection);
        // Told by the end alone: a reply answers a request, and none has come.
        if held >= most || open >= settings.max_connections {
            return self.close(id);
        }
        self.receive(id);
    }

    fn receive(&mut self, id: ConnectionId) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        if connection.receiving || connection.input.len() >= MAX_INPUT {
            return;
        }
        connection.receiving = true;
        self.sockets.recv(id, Vec::with_capacity(RECEIVE_BYTES));
    }

    fn received(&mut self, id: ConnectionId, bytes: &[u8], ended: bool) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        connection.receiving = false;
        connection.heard = Instant::now();
        // A player that ends the connection, or one direction of it, has left: it could neither
        // pause nor keep its session.
        if ended {
            return self.close(id);
        }
        match &mut connection.role {
            _ if connection.closing => {}
            Role::Whole => self.take_input(id, bytes),
            // The player speaks on the other connection of the tunnel.
            Role::Replies(_) => {}
            Role::Requests(replies, decoder) => {
                let (replies, mut requests) = (*replies, Vec::new());
                if !decoder.decode(bytes, &mut requests) {
                    return self.close(replies);
                }
                self.take_input(replies, &requests);
            }
        }
        self.receive(id);
    }

    /// Adds bytes of the player to the input of a connection, and answers what is complete.
    fn take_input(&mut self, id: ConnectionId, bytes: &[u8]) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        connection.heard = Instant::now();
        if connection.input.is_empty() {
            connection.input_since = connection.heard;
        }
        connection.input.extend_from_slice(bytes);
        // Only a tunnel brings more than is received at once while a request waits.
        if connection.input.len() > MAX_INPUT + RECEIVE_BYTES {
            return self.close(id);
        }
        self.read_requests(id);
    }

    /// Answers a request in the clear on a port for TLS, in the clear. The request is not read.
    fn refuse_clear_text(&mut self, id: ConnectionId) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        connection.receiving = false;
        connection.closing = true;
        let text = "this port speaks RTSP over TLS; use an address that begins with rtsps://";
        self.send_reply(id, None, &RtspReply::error(400, text));
    }

    /// Answers the requests in the input, until one has to wait.
    fn read_requests(&mut self, id: ConnectionId) {
        while let Some(connection) = self.connections.get_mut(&id) {
            if connection.waiting.is_some() || connection.closing {
                return;
            }
            match next(&connection.input) {
                Incoming::Partial => return,
                Incoming::Other(length) => connection.consume(length),
                Incoming::Request(request, length) => {
                    connection.consume(length);
                    connection.asked = Instant::now();
                    self.handle(id, request, None);
                }
                Incoming::Tunnel(head, length) => {
                    connection.consume(length);
                    self.join_tunnel(id, head);
                }
                Incoming::Rejected(reply) => {
                    connection.input.clear();
                    connection.closing = true;
                    self.send_reply(id, None, &reply);
                }
            }
        }
    }

    /// Makes a connection one half of a tunnel.
    fn join_tunnel(&mut self, id: ConnectionId, TunnelHead { half, cookie }: TunnelHead) {
        let Some(connection) = self.connections.get(&id) else { return };
        let peer = connection.peer;
        let is_first = matches!(connection.role, Role::Whole) && connection.session.is_none();
        let replies = self.tunnels.get(&cookie).copied();
        let has_peer =
            |id| self.connections.get(&id).is_some_and(|other| other.peer.ip() == peer.ip());
        let role = match (half, replies) {
            (TunnelHalf::Get, None) if is_first => Role::Replies(cookie.clone()),
            // A cookie is no secret: only its player may add requests.
            (TunnelHalf::Post, Some(replies)) if is_first && has_peer(replies) => {
                Role::Requests(replies, TunnelDecoder::default())
            }
            (TunnelHalf::Get, _) => return self.refuse_tunnel(id, "this cookie is in use"),
            (TunnelHalf::Post, _) => {
                return self
                    .refuse_tunnel(id, "begin a tunnel with its GET, from the same address");
            }
        };
        let Some(connection) = self.connections.get_mut(&id) else { return };
        connection.role = role;
        let behind = std::mem::take(&mut connection.input);
        match half {
            TunnelHalf::Get => {
                self.tunnels.insert(cookie, id);
                self.send_bytes(id, tunnel::REPLY.to_vec());
            }
            TunnelHalf::Post => {
                connection.receiving = true;
                self.received(id, &behind, false);
            }
        }
    }

    fn refuse_tunnel(&mut self, id: ConnectionId, why: &str) {
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.input.clear();
            connection.closing = true;
            self.send_bytes(id, tunnel::refusal(why));
        }
    }

    /// Sends the reply to a request, with its sequence number and the session.
    fn reply(&mut self, id: ConnectionId, request: &Request<Vec<u8>>, mut reply: RtspReply) {
        let Some(connection) = self.connections.get(&id) else { return };
        reply = reply.to_request(request);
        if let Some(session) = connection.session.as_ref().filter(|_| reply.status == 200) {
            let timeout = self.limits.session_timeout.as_secs();
            reply = reply.field(SESSION, format!("{};timeout={timeout}", session.id));
        }
        self.send_reply(id, Some(request), &reply);
    }

    fn send_reply(
        &mut self,
        id: ConnectionId,
        request: Option<&Request<Vec<u8>>>,
        reply: &RtspReply,
    ) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        let (peer, logged) = (connection.peer, connection.logged);
        if connection.session.as_ref().is_none_or(|session| session.engine.is_none()) {
            connection.logged = LoggedSession::default();
        }
        let class = usize::from(reply.status / 100).clamp(1, 5) - 1;
        self.shared.rtsp.responses[class].fetch_add(1, Ordering::Relaxed);
        self.shared.log.line_of(logged.span, || {
            let mut line = json!({
                "protocol": "RTSP",
                "peer": peer.to_string(),
                "method": request.map_or("", |request| <&str>::from(request.method())),
                "target": request
                    .and_then(|request| request.request_uri())
                    .map_or("*".to_owned(), |uri| without_token(uri.as_str())),
                "status": reply.status,
            });
            if let Some(session) = logged.session {
                line["session"] = session.0.into();
            }
            line
        });
        self.send_bytes(id, reply.to_bytes());
    }

    fn send_bytes(&mut self, id: ConnectionId, bytes: Vec<u8>) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        if bytes.is_empty() {
            return;
        }
        if connection.outstanding == 0 {
            connection.progress_at = Instant::now();
        }
        let length = bytes.len() as u64;
        connection.queued += length;
        connection.outstanding += 1;
        connection.sends += 1;
        let number = connection.sends;
        self.shared.rtsp.sent_bytes.fetch_add(length, Ordering::Relaxed);
        self.sockets.send(id, vec![SendSlice::from(bytes)], number);
    }

    fn close(&mut self, id: ConnectionId) {
        self.end_session(id);
        let Some(connection) = self.connections.remove(&id) else { return };
        self.shared.rtsp.connections.fetch_sub(1, Ordering::Relaxed);
        self.shared.http.disconnected(ClientAddress::of(connection.peer.ip()));
        self.sockets.close(id);
        if let Role::Replies(cookie) = connection.role {
            self.tunnels.remove(&cookie);
            let requests =
                |other: &RtspConnection| matches!(other.role, Role::Requests(to, _) if to == id);
            let others = self.connections.iter().filter(|(_, other)| requests(other));
            let others: Vec<ConnectionId> = others.map(|(id, _)| *id).collect();
            others.into_iter().for_each(|id| self.close(id));
        }
    }

    /// Ends sessions and connections that have exceeded a time limit.
    fn check_timeouts(&mut self, now: Instant) {
        let (mut silent, mut idle, mut stalled) = (Vec::new(), Vec::new(), Vec::new());
        for (id, connection) in &mut self.connections {
            if connection.outstanding > 0 {
                let taken = self.sockets.taken(*id);
                if taken - connection.taken >= LEAST_PROGRESS {
                    (connection.taken, connection.progress_at) = (taken, now);
                } else if now - connection.progress_at > self.limits.send_timeout {
                    stalled.push(*id);
                    continue;
                }
            }
            let is_slow = now - connection.input_since > self.limits.head_timeout;
            if !connection.input.is_empty() && connection.waiting.is_none() && is_slow {
                idle.push(*id);
                continue;
            }
            let is_silent =
                |heard: Instant| now.saturating_duration_since(heard) > self.limits.session_timeout;
            match &mut connection.session {
                Some(session) => {
                    for track in &session.tracks {
                        if let Wire::Udp(pair) = &track.wire
                            && pair.has_heard()
                        {
                            session.heard = now;
                        }
                    }
                    let heard = session.heard.max(connection.heard);
                    let is_kept = session.is_playing() && !session.has_udp();
                    if !is_kept && connection.waiting.is_none() && is_silent(heard) {
                        silent.push(*id);
                    }
                }
                // The requests of a tunnel end with its replies.
                None if matches!(connection.role, Role::Requests(..)) => {}
                // Whatever else comes: what is between requests is no request.
                None if connection.waiting.is_none() && is_silent(connection.asked) => {
                    idle.push(*id);
                }
                None => {}
            }
        }
        for id in stalled {
            self.shared.rtsp.send_timeouts.fetch_add(1, Ordering::Relaxed);
            self.close(id);
        }
        for id in silent {
            self.shared.rtsp.session_timeouts.fetch_add(1, Ordering::Relaxed);
            self.end_session(id);
        }
        idle.into_iter().for_each(|id| self.close(id));
    }
}

/// How often time limits are checked.
const CHECK_INTERVAL: Duration = Duration::from_millis(250);
/// The pace of packets: LDUs that are due within a tick are sent together. Far below the delay that
/// a receiver's buffer evens out, and at most 250 turns of the loop in a second.
const TICK: Duration = Duration::from_millis(4);
/// Bytes of one receive; most requests are smaller.
const RECEIVE_BYTES: usize = 4096;
/// Bytes that a peer takes at least in each send timeout, as for HTTP.
const LEAST_PROGRESS: u64 = 16 * 1024;
