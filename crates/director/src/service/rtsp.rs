//! Players of RTSP: a description or a set-up is answered with the address of a node that has
//! reserved. Nothing is described here, and there are no sessions.
//!
//! ```text
//!   player ──DESCRIBE rtsp://director/t/film──▶ question: GET /t/film/rtsp ──▶ nodes, one by one
//!   player ◀──302, Location: rtsp://node/t/film?ticket=..───────────────────── one has reserved
//!          ◀──453, Retry-After───────────────────────────────────────────────── none has
//! ```
//!
//! A player that has lost its node asks with the ticket that it had for it, which shows that it was
//! admitted: what new viewers leave free is for such.
//!
//! A player waits on its connection while nodes are asked, as one of HTTP does.

use super::ServiceState;
use super::admission::{Outcome, Viewer, problem};
use super::counters::Cause;
use super::pages::{self, PageKind};
use super::steering::ESCAPED;
use cluster::{AdmissionClass, TitleName};
use http_service::{Connection, ConnectionHandler};
use percent_encoding::utf8_percent_encode;
use rtsp_message::headers::{StreamName, Target, range, seconds, target};
use rtsp_message::names::{
    ALLOW, AUTHORIZATION, CONTENT_TYPE, LOCATION, PUBLIC, RANGE, RETRY_AFTER, WWW_AUTHENTICATE,
};
use rtsp_message::tunnel;
use rtsp_message::{Incoming, Method, NOT_ENOUGH_BANDWIDTH, Request, RtspReply, next, value};
use std::io::{ErrorKind, Read, Write};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Answers players of RTSP.
pub(super) struct RtspHandler(pub(super) Arc<ServiceState>);

impl ConnectionHandler for RtspHandler {
    fn serve(&self, connection: &mut Connection, client: IpAddr, stopping: &AtomicBool) {
        let mut input: Vec<u8> = Vec::with_capacity(2048);
        connection.limit(PATIENCE);
        while !stopping.load(Ordering::Acquire) {
            let (bytes, goes_on) = match next(&input) {
                Incoming::Partial if receive(connection, &mut input) => continue,
                Incoming::Partial => return,
                // Packets keep no connection open: the time goes on.
                Incoming::Other(length) => {
                    drop(input.drain(..length));
                    continue;
                }
                Incoming::Request(request, length) => {
                    drop(input.drain(..length));
                    let reply = self.answer(&request, client).to_request(&request);
                    self.0.counters.replied_over_rtsp(reply.status);
                    (reply.to_bytes(), true)
                }
                Incoming::Tunnel(..) => {
                    let text = "a director has no tunnel through HTTP; use rtsp://, or begin the \
                                tunnel at a node";
                    (tunnel::refusal(text), false)
                }
                Incoming::Rejected(reply) => {
                    self.0.counters.replied_over_rtsp(reply.status);
                    (reply.to_bytes(), false)
                }
            };
            connection.limit(PATIENCE);
            let sent = connection.write_all(&bytes).and_then(|()| connection.flush());
            if sent.is_err() || !goes_on {
                return;
            }
        }
    }

    fn refuse_clear_text(&self, connection: &mut Connection) {
        let text = "this port speaks RTSP over TLS; use an address that begins with rtsps://";
        let _ = connection.write_all(&RtspReply::error(400, text).to_bytes());
    }

    // Told by the end alone: a reply answers a request, and none has come.
    fn too_many(&self) -> Vec<u8> {
        Vec::new()
    }
}

impl RtspHandler {
    fn answer(&self, request: &Request<Vec<u8>>, client: IpAddr) -> RtspReply {
        if let Some(reply) = RtspReply::to_unusable(request) {
            return reply;
        }
        match request.method() {
            Method::Options => RtspReply::new(200).field(PUBLIC, METHODS),
            Method::Describe | Method::Setup => self.send(request, client),
            Method::Play
            | Method::Pause
            | Method::Teardown
            | Method::GetParameter
            | Method::SetParameter => {
                let text = "a director has no sessions; DESCRIBE names the node to go to";
                RtspReply::error(454, text)
            }
            _ => {
                let text = format!("a director does not do this; use one of {METHODS}");
                RtspReply::error(501, &text).field(ALLOW, METHODS)
            }
        }
    }

    /// Sends a player to a node.
    fn send(&self, request: &Request<Vec<u8>>, client: IpAddr) -> RtspReply {
        let uri = request.request_uri();
        let found = uri.and_then(|uri| target(uri.path())).and_then(|target| {
            let name = TitleName::new(target.title.clone()).ok()?;
            Some((target, name))
        });
        let Some((Target { title, stream }, name)) = found else {
            return RtspReply::error(404, "titles are at rtsp://HOST:PORT/t/TITLE");
        };
        let is_transport = stream == Some(StreamName::Transport);
        let path = if is_transport { "rtsp-ts" } else { "rtsp" };
        let parameter = |of: &str| {
            let found = uri.and_then(|uri| uri.query_pairs().find(|(name, _)| name == of));
            found.map(|(_, value)| value)
        };
        let plain = parameter("token");
        let token =
            plain.as_ref().map(|token| format!("token={}", utf8_percent_encode(token, ESCAPED)));
        // A player that has lost its node goes on from here, so that this is reserved.
        let start = value(request, &RANGE).and_then(range).and_then(|range| range.start);
        let ticket = parameter("ticket");
        let goes_on = ticket.is_some_and(|ticket| self.0.admission.has_admitted(&ticket, &name));
        let class = if goes_on { AdmissionClass::Again } else { AdmissionClass::New };
        let start = start.map(|start| format!("start={}", seconds(start)));
        let field = value(request, &AUTHORIZATION);
        let bearer = field.and_then(pages::bearer).or(plain.as_deref());
        let kind = PageKind::Title(name.as_str());
        let refused = pages::refusal_of(&self.0, kind, bearer, client).filter(|_| !goes_on);
        if let Some(refused) = refused {
            self.0.counters.refused(Cause::NotAllowed);
            let reply = RtspReply::error(refused.status, &refused.message);
            return reply.field(WWW_AUTHENTICATE, refused.challenge);
        }
        let query = token.into_iter().chain(start).collect::<Vec<_>>().join("&");
        let mark = if query.is_empty() { "" } else { "?" };
        let title = Target { title, stream: None };
        let asked = format!("{}/{path}{mark}{query}", title.path());
        let viewer = Viewer {
            target: &asked,
            authorization: value(request, &AUTHORIZATION).map(str::as_bytes).filter(|value| {
                // A field over several lines would become fields of the question.
                value.iter().all(|byte| *byte == b' ' || byte.is_ascii_graphic())
            }),
            traceparent: None,
            client,
            base: None,
            class,
        };
        let outcome = self.0.admission.admit(&name, &viewer, &self.0.counters);
        reply(outcome, stream)
    }
}

/// The reply to a player that has asked for a title, or for this stream of it.
fn reply(outcome: Outcome, stream: Option<StreamName>) -> RtspReply {
    match outcome {
        Outcome::Sent(location) => {
            let location = match (stream, location.split_once('?')) {
                (Some(track @ StreamName::Track(_)), Some((title, ticket))) => {
                    format!("{title}/{track}?{ticket}")
                }
                _ => location,
            };
            RtspReply::new(302).field(LOCATION, location)
        }
        Outcome::Refused(cause, message, time) => {
            let reply = match cause {
                Cause::NoTitle => RtspReply::new(404),
                Cause::NotReady => RtspReply::new(503).retry_after(time),
                _ => RtspReply::new(NOT_ENOUGH_BANDWIDTH).retry_after(time),
            };
            let problem = problem(cause, message, time).to_string();
            reply.field(CONTENT_TYPE, "application/json").body(problem)
        }
        Outcome::ByNode(node) => {
            let status = if node.status == 429 { NOT_ENOUGH_BANDWIDTH } else { node.status };
            let content_type = node.content_type.as_deref().unwrap_or("application/json");
            let reply = RtspReply::new(status).field(CONTENT_TYPE, content_type);
            let fields = [
                (WWW_AUTHENTICATE, node.authenticate),
                (RETRY_AFTER, node.retry_after.map(|secs| secs.to_string())),
            ];
            let with = |reply: RtspReply, (name, value)| match value {
                Some(value) => reply.field(name, value),
                None => reply,
            };
            fields.into_iter().fold(reply, with).body(node.body)
        }
    }
}

/// Adds what comes to the input; false where nothing more does in time.
fn receive(connection: &mut Connection, input: &mut Vec<u8>) -> bool {
    let mut memory = [0; 4096];
    loop {
        match connection.read(&mut memory) {
            Ok(0) => return false,
            Ok(length) => {
                input.extend_from_slice(&memory[..length]);
                return true;
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => return false,
        }
    }
}

const METHODS: &str = "OPTIONS, DESCRIBE, SETUP";
/// Time for a request, and for taking its reply.
const PATIENCE: Duration = Duration::from_secs(10);
