//! One client connection, or one lane of it (HTTP/2): received input, the request being answered,
//! and time limits.
//!
//! State and bookkeeping only; `worker.rs` moves the bytes.

use super::cmcd::Cmcd;
use super::ranged::MediaBody;
use super::request::{HttpRequest, LoggedFields, Method};
use super::transfer::Transfer;
use super::watch::Watch;
use crate::admin::ApiCall;
use crate::messages::Manifest;
use crate::sessions::PlayerSession;
use crate::telemetry::TraceContext;
use crossbeam_channel::Sender;
use device::sockets::ConnectionId;
use engine::SessionId;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

/// One client connection of an HTTP thread.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) peer: SocketAddr,
    /// The connection that it is a lane of (HTTP/2); `None`: it is a connection.
    pub(super) carrier: Option<ConnectionId>,
    /// The limit that it is above: its first request is answered with that.
    pub(super) above: Option<ExceededLimit>,
    /// Received bytes that have not been parsed.
    pub(super) input: Vec<u8>,
    /// Whether the socket loop holds a receive buffer of this connection.
    pub(super) receiving: bool,
    /// Whether the peer has closed its sending side, or all of the connection.
    pub(super) ended: bool,
    /// Whether it did so during a response, or while it waited for one.
    pub(super) hung_up: bool,
    /// The sessions that it has carried requests of, at most [`SESSIONS_NOTED`] living ones.
    pub(super) sessions: Vec<SessionUse>,
    pub(super) state: ConnectionState,
    /// When the peer must have sent something; not used while sending to the peer.
    pub(super) deadline: Instant,
    /// Bytes that the kernel had taken at `progress_at`, or before.
    pub(super) taken: u64,
    /// When the kernel had last taken enough bytes, or a send began.
    pub(super) progress_at: Instant,
    /// Number of the next send.
    pub(super) next_number: u64,
}

/// A session's use of a connection.
#[derive(Debug)]
pub(super) struct SessionUse {
    pub(super) session: Arc<PlayerSession>,
    /// Requests of the session that the connection has carried.
    pub(super) requests: u32,
}

/// A limit that a connection is above.
#[derive(Clone, Copy, Debug)]
pub(super) enum ExceededLimit {
    /// The limit of its client.
    OfClient { most: usize },
    /// The limit of the server.
    OfServer,
}

/// What a connection is doing.
#[derive(Debug)]
pub(super) enum ConnectionState {
    /// Waiting for a request, or for the rest of one.
    Reading,
    /// Carrying requests of HTTP/2, each in a lane.
    Carrying {
        lanes: Vec<ConnectionId>,
        /// Whether the peer was told to begin no further one.
        is_retired: bool,
    },
    /// Taking the body of a request to the admin API.
    ReceivingBody(Exchange, Box<HttpRequest>, Box<IncomingBody>),
    /// Waiting for the answer of the opener, the core or the operator's service.
    Waiting(Exchange, Box<HttpRequest>, PendingAnswer),
    /// Sending a response made in one piece; the number of its send.
    SendingResponse(Exchange, u64),
    /// Sending a body of media.
    SendingBody(Exchange, Box<Transfer>),
    /// Sending events, without an end.
    Watching(Exchange, Box<Watch>),
    /// The last response is with the kernel. The peer gets time to read it before the connection
    /// is closed.
    Lingering,
}

/// The answer that a waiting connection needs.
#[derive(Debug)]
pub(super) enum PendingAnswer {
    /// The opener's, for a title, a file or a presentation.
    Opener,
    /// The answer of the operator's service on whether the viewer may begin.
    Authorization { title: String },
    /// The core's verdict on an admission request.
    Admission { title: String, manifest: Manifest },
    /// The core's verdict on a viewer of another node, for whom the request is decided again.
    FailOver { title: String },
    /// The core's, on whether a session goes on with more of its title.
    Extension,
    /// The core's verdict on a fill, of which this is sent.
    Fill { title: String, media: Box<MediaBody> },
    /// The core's list of sessions.
    SessionList,
    /// The admin API's.
    Api,
}

/// The body of a request to the admin API as it arrives.
#[derive(Debug)]
pub(super) struct IncomingBody {
    /// Bytes that have not been handed on.
    pub(super) left: u64,
    /// What `left` was when the peer had last sent enough bytes.
    pub(super) marked: u64,
    pub(super) target: BodyTarget,
}

/// Where the bytes of a body go.
#[derive(Debug)]
pub(super) enum BodyTarget {
    /// Collected for the operation, which begins when all of them are there.
    Json(ApiCall),
    /// To the operation, piece by piece.
    Pieces {
        sender: Sender<Vec<u8>>,
        /// Whether it has not taken the last piece yet.
        taking: bool,
        /// Set where the pieces end because the client is too slow.
        is_slow: Arc<AtomicBool>,
    },
}

/// A request and its response, for the access log.
#[derive(Debug)]
pub(super) struct Exchange {
    pub(super) started: Instant,
    pub(super) method: Method,
    pub(super) target: String,
    pub(super) logged: LoggedFields,
    pub(super) status: u16,
    pub(super) keep_alive: bool,
    /// Bytes sent so far, head included.
    pub(super) bytes: u64,
    /// What the player reported with the request.
    pub(super) cmcd: Option<Box<Cmcd>>,
    /// The span of its session, or of its refusal.
    pub(super) session: Option<TraceContext>,
    /// The number of that session.
    pub(super) number: Option<SessionId>,
}

impl Exchange {
    pub(super) fn new(request: &HttpRequest) -> Self {
        Self {
            method: request.method,
            target: request.target.clone(),
            logged: request.logged.clone(),
            cmcd: request.cmcd.clone(),
            keep_alive: request.keep_alive,
            ..Self::unparsed()
        }
    }

    /// The exchange is of this session.
    pub(super) fn is_of(&mut self, session: &PlayerSession) {
        self.session = session.trace.map(|trace| trace.context());
        self.number = Some(session.id);
    }

    /// An exchange whose request could not be parsed, or was not read. The connection is closed
    /// after its response.
    pub(super) fn unparsed() -> Self {
        Self {
            started: Instant::now(),
            method: Method::Get,
            target: String::new(),
            logged: LoggedFields::default(),
            status: 0,
            keep_alive: false,
            bytes: 0,
            cmcd: None,
            session: None,
            number: None,
        }
    }
}

impl Connection {
    pub(super) fn new(peer: SocketAddr, carrier: Option<ConnectionId>, deadline: Instant) -> Self {
        Self {
            peer,
            carrier,
            above: None,
            input: Vec::new(),
            receiving: false,
            ended: false,
            hung_up: false,
            sessions: Vec::new(),
            state: ConnectionState::Reading,
            deadline,
            taken: 0,
            progress_at: Instant::now(),
            next_number: 0,
        }
    }

    /// Whether a request is being answered.
    pub(super) fn is_answering(&self) -> bool {
        use ConnectionState::{Carrying, Lingering, Reading, ReceivingBody};
        !matches!(self.state, Reading | Carrying { .. } | ReceivingBody(..) | Lingering)
    }

    /// Whether all of a body has been received that is still being handed to its operation.
    pub(super) fn has_whole_body(&self) -> bool {
        match &self.state {
            ConnectionState::ReceivingBody(_, _, body) => self.input.len() as u64 >= body.left,
            _ => false,
        }
    }

    /// Whether an operation is under way that has all of its body, or a short response is sent.
    pub(super) fn is_operating(&self) -> bool {
        use ConnectionState::{SendingResponse, Waiting};
        matches!(self.state, Waiting(_, _, PendingAnswer::Api) | SendingResponse(..))
    }

    /// Whether bytes wait for the peer to take them.
    pub(super) fn is_sending(&self) -> bool {
        match &self.state {
            ConnectionState::SendingResponse(..) => true,
            ConnectionState::SendingBody(_, transfer) => transfer.is_sending(),
            ConnectionState::Watching(_, watch) => watch.sending.is_some(),
            ConnectionState::Reading
            | ConnectionState::Carrying { .. }
            | ConnectionState::ReceivingBody(..)
            | ConnectionState::Waiting(..)
            | ConnectionState::Lingering => false,
        }
    }
}
