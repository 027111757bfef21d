//! Messages between the server's threads, and the handles through which they are sent.
//!
//! ```text
//!   HTTP threads ──Event──▶ core ──WorkerMessage──▶ HTTP threads
//!   opener ─────────────────────────WorkerMessage──▶ HTTP threads
//! ```

use crate::access::Permit;
use crate::auth_request::answer::AuthAnswer;
use crate::background_io::GuaranteedWrites;
use crate::clients::{ClientAddress, ClientLimit};
use crate::damage::DamagedPlace;
use crate::handover::LeftState;
use crate::http::Response;
use crate::layout::DeliveryFormat;
use crate::library::{OpenError, OpenTitle, StoredCopy};
use crate::presentation::Presentation;
use crate::sessions::{FailoverNodes, PlayerSession, Token};
use crate::telemetry::{Protocol, TraceContext};
use crate::wire;
use crossbeam_channel::{Receiver, Sender, unbounded};
use device::SharedBuffer;
use device::sockets::{ConnectionId, Waker};
use engine::{
    CutShort, DeclineReason, Disconnection, DiskGuarantee, DiskNumber, Engine, FillFor, MaxWait,
    MediaRequest, ReadId, ReadOutcome, RecordingId, Refusal, RequestId, Resource, ResponsePlace,
    SessionId,
};
use media::TextForm;
use scheduler::WriteJob;
use std::net::{SocketAddr, UdpSocket};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};
use units::{BitRate, ByteCount, Moment};

/// Sends events to the core. Clones send to the same core.
#[derive(Clone, Debug)]
pub(crate) struct CoreHandle {
    // Unbounded: connections, send windows and queue depths bound the number of events under way.
    events: Sender<Event>,
}

impl CoreHandle {
    /// A handle and the queue that it feeds.
    pub(crate) fn new() -> (Self, Receiver<Event>) {
        let (events, queue) = unbounded();
        (Self { events }, queue)
    }

    /// Queues an event. An event sent after the core has ended is dropped.
    pub(crate) fn send(&self, event: Event) {
        let _ = self.events.send(event);
    }
}

/// Sends messages to one HTTP thread.
#[derive(Clone, Debug)]
pub(crate) struct WorkerHandle {
    pub(crate) messages: Sender<WorkerMessage>,
    /// `None`: the thread has no sockets, and waits for messages.
    pub(crate) waker: Option<Waker>,
}

impl WorkerHandle {
    /// Queues a message and wakes the thread.
    pub(crate) fn send(&self, message: WorkerMessage) {
        let _ = self.messages.send(message);
        self.waker.iter().for_each(Waker::wake);
    }
}

/// The connection to answer: an HTTP thread's number and the connection within it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Caller {
    pub(crate) worker: usize,
    pub(crate) connection: ConnectionId,
}

/// A new request number. Requests are numbered across all threads.
pub(crate) fn next_request_id() -> RequestId {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    RequestId(NEXT.fetch_add(1, Ordering::Relaxed))
}

/// Why no time is kept for a recording.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RateRefusal {
    /// What is short.
    pub(crate) resource: Resource,
    /// A rate that would be held; `None`: none worth mentioning.
    pub(crate) holds: Option<BitRate>,
}

/// Names one request for a background I/O permit; never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct PermitRequestId(pub(crate) u64);

/// Every input of the core.
#[derive(Debug)]
pub(crate) enum Event {
    /// A player requests admission, or a cache a fill. Answered with [`WorkerMessage::Admitted`]
    /// when the session's start time has come.
    Admit { caller: Caller, client: ClientAddress, request: Box<PlayRequest> },
    /// The player of a session of a recording asks for what has come since. Answered with
    /// [`WorkerMessage::Extended`].
    Extend { caller: Caller, session: SessionId, title: Arc<OpenTitle> },
    /// A client requests the list of sessions. Answered with [`WorkerMessage::Listed`].
    List { caller: Caller },
    /// The list of sessions is needed outside of HTTP threads, or the session of this number alone,
    /// or those of one subject. The core sends it on `answer`.
    ReportSessions {
        session: Option<SessionId>,
        subject: Option<String>,
        answer: Sender<wire::SessionList>,
    },
    /// The state of the engine is needed outside of the core, which sends a copy on `answer`.
    CopyEngine { answer: Sender<Box<Engine>> },
    /// The player disconnected before it received the answer to its admission request.
    Close { session: SessionId },
    /// The player has ended its session.
    End { session: SessionId },
    /// An operator ends the session that is listed with this number.
    EndListed { number: SessionId },
    /// An operator ends the sessions that tokens of this subject began. The core sends their number
    /// on `answer`.
    EndOfSubject { subject: String, answer: Sender<u64> },
    /// A connection carries its first request of a session.
    Connected { session: SessionId },
    /// A connection that carried requests of a session has ended, or its peer has closed its side
    /// during a response.
    Disconnected { session: SessionId, how: Disconnection },
    /// A player requests bytes. Answered with [`WorkerMessage::Accepted`] or
    /// [`WorkerMessage::RequestFailed`].
    Request { caller: Caller, place: ResponsePlace, request: MediaRequest },
    /// The socket has taken a delivered piece.
    Sent { request: RequestId, read: ReadId },
    /// The player disconnected during a request.
    Cancel { request: RequestId },
    /// A disk has finished a read, which the device had in `device` at least.
    ReadDone { read: ReadId, result: Result<SharedBuffer, ReadOutcome>, device: Range<Moment> },
    /// The checksum of what was read for a session is wrong.
    Damaged { disk: DiskNumber, title: Arc<OpenTitle>, place: DamagedPlace },
    /// A read or a write that is for no session has found that the device of a disk is gone.
    DeviceGone { disk: DiskNumber },
    /// Background work requests a permit for a read or write of `bytes`. The core sends on `grant`
    /// when the work may start.
    RequestPermit { id: PermitRequestId, disk: DiskNumber, bytes: ByteCount, grant: Sender<()> },
    /// A recording requests a permit for a write. The core sends on `grant` when it may start.
    RequestWrite {
        id: PermitRequestId,
        disk: DiskNumber,
        recording: Option<RecordingId>,
        job: WriteJob,
        grant: Sender<()>,
    },
    /// A recording or a copy asks for time of a disk. The core answers whether it is kept.
    AdmitRecording {
        disk: DiskNumber,
        writes: GuaranteedWrites,
        answer: Sender<Result<RecordingId, RateRefusal>>,
    },
    /// A recording for which time is kept has ended.
    EndRecording { recording: RecordingId },
    /// Background work has finished, or no longer waits for its permit.
    ReleasePermit { id: PermitRequestId },
    /// A title's copy has been hidden. Its space is freed when no session plays it. The core sends
    /// on `in_use` whether a session plays it now.
    Withdraw { copy: StoredCopy, in_use: Sender<bool> },
    /// A disk has a new calibration.
    Guarantee { disk: DiskNumber, guarantee: DiskGuarantee, timings: Box<scheduler::DiskTimings> },
    /// A lost disk answers again and holds its data. The core sends on `restored` whether the disk
    /// is used again.
    Restore { disk: DiskNumber, restored: Sender<bool> },
    /// A disk is drained from now on, or no longer. The core answers on `done` when it is.
    Drain { disk: DiskNumber, drains: bool, done: Sender<()> },
    /// The configuration has changed.
    Reconfigure {
        /// The rate that sessions may reserve of the network together.
        network: Option<BitRate>,
        /// The most fills of caches at a time.
        fills: u32,
        /// The most sessions of one client that have delivered nothing.
        unplayed: ClientLimit,
    },
    /// Admit no new session; end when no session is active, at the latest after `grace`.
    Stop { grace: Duration, by: StopBy },
    /// End when all requests are answered, at the latest `within` this time, and send the sessions
    /// to the next server. Each thread is told by [`WorkerMessage::HandOver`].
    HandOver { within: Duration, to: Sender<LeftState> },
    /// A thread that was told to hand over has answered all requests.
    Answered,
}

/// The answer that a player wants to its request for admission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manifest {
    /// An HLS playlist, with text in this form.
    Hls(TextForm),
    /// An HLS playlist of MPEG transport streams.
    HlsTransport,
    /// A DASH manifest, with text in this form.
    Dash(TextForm),
    /// A DASH manifest of files, with text in this form.
    OnDemand(TextForm),
    /// The address of a progressive MP4 file.
    File,
    /// The address of a file with a transport stream at a constant rate.
    TransportFile,
    /// The address at which a player of RTSP goes on; of a transport stream or of tracks.
    OverRtsp { is_transport: bool },
}

impl Manifest {
    /// How the player will fetch the title.
    pub(crate) fn format(self) -> DeliveryFormat {
        match self {
            Self::Hls(_)
            | Self::Dash(_)
            | Self::OnDemand(_)
            | Self::OverRtsp { is_transport: false } => DeliveryFormat::Segmented,
            Self::HlsTransport | Self::TransportFile | Self::OverRtsp { is_transport: true } => {
                DeliveryFormat::TransportStream
            }
            Self::File => DeliveryFormat::Progressive,
        }
    }

    /// How the player will fetch the title, as its trace has it.
    pub(crate) fn protocol(self) -> Protocol {
        match self {
            Self::Hls(_) => Protocol::Hls,
            Self::HlsTransport => Protocol::HlsTransport,
            Self::Dash(_) => Protocol::Dash,
            Self::OnDemand(_) => Protocol::OnDemand,
            Self::File => Protocol::File,
            Self::TransportFile => Protocol::TransportFile,
            Self::OverRtsp { .. } => Protocol::Rtsp,
        }
    }
}

/// Who has asked a server to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StopBy {
    /// Whoever runs it, mostly by a signal.
    Signal,
    /// An operator, over the admin API or the control socket.
    Operator,
}

impl StopBy {
    /// The word in the log.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Signal => "signal",
            Self::Operator => "operator",
        }
    }
}

/// A player's request for admission.
#[derive(Debug)]
pub(crate) struct PlayRequest {
    pub(crate) title: Arc<OpenTitle>,
    pub(crate) presentation: Arc<Presentation>,
    /// The title's name in the request's URL.
    pub(crate) name: String,
    pub(crate) format: DeliveryFormat,
    /// How the player will fetch it.
    pub(crate) protocol: Protocol,
    /// When the player asked.
    pub(crate) asked: SystemTime,
    /// The span of the player or of a proxy that it has named.
    pub(crate) parent: Option<TraceContext>,
    /// The tracks to be played, where the player has chosen them; `None`: the best offer that fits.
    pub(crate) tracks: Option<Vec<u16>>,
    /// Where play-out starts, in media time.
    pub(crate) start: Duration,
    /// The longest time that the player waits for its start.
    pub(crate) max_wait: MaxWait,
    /// The player's present session, which ends if this request is accepted.
    pub(crate) replaces: Option<SessionId>,
    /// For whom it is a fill, which ends with its response.
    pub(crate) fill: Option<FillFor>,
    /// What the player is permitted by its token and by the operator's service.
    pub(crate) permit: Permit,
    /// Where it is sent, if an operator has named an address.
    pub(crate) sent_to: Option<SocketAddr>,
    /// The number by which operators know it, where that is of an earlier session.
    pub(crate) listed_as: Option<SessionId>,
    /// Whether it is read as a file of a mount.
    pub(crate) in_mount: bool,
    /// Whether a director asks for the viewer.
    pub(crate) is_directed: bool,
    /// Where the viewer may go on, if this node is lost; `None`: nowhere.
    pub(crate) failover: Option<Arc<FailoverNodes>>,
    /// The token of the session, if another node has begun it; `None`: a new one.
    pub(crate) token: Option<Token>,
}

impl PlayRequest {
    /// A request for all of a presentation from its start, by a viewer whose token permits all.
    pub(crate) fn new(
        title: Arc<OpenTitle>,
        presentation: Arc<Presentation>,
        name: String,
        format: DeliveryFormat,
        max_wait: MaxWait,
    ) -> Self {
        Self {
            title,
            presentation,
            name,
            format,
            protocol: match format {
                DeliveryFormat::Segmented => Protocol::Segments,
                DeliveryFormat::TransportStream => Protocol::HlsTransport,
                DeliveryFormat::Progressive => Protocol::File,
            },
            asked: SystemTime::now(),
            parent: None,
            tracks: None,
            start: Duration::ZERO,
            max_wait,
            replaces: None,
            fill: None,
            permit: Permit::default(),
            sent_to: None,
            listed_as: None,
            in_mount: false,
            is_directed: false,
            failover: None,
            token: None,
        }
    }
}

/// Ends a fill's session when the transfer of its response is over, however that ends.
#[derive(Debug)]
pub(crate) struct EndOfFill {
    pub(crate) core: CoreHandle,
    pub(crate) session: SessionId,
}

impl Drop for EndOfFill {
    fn drop(&mut self) {
        self.core.send(Event::End { session: self.session });
    }
}

/// Every message to an HTTP thread.
#[derive(Debug)]
pub(crate) enum WorkerMessage {
    /// From the opener: the result of opening a title.
    Opened { connection: ConnectionId, result: Result<Arc<OpenTitle>, OpenError> },
    /// The operator's service has decided whether a viewer may begin.
    Authorized { connection: ConnectionId, answer: Box<AuthAnswer> },
    /// The verdict on an admission request. `refusal_span`: of a
    /// viewer that is traced and not admitted.
    Admitted {
        connection: ConnectionId,
        result: Result<Arc<PlayerSession>, AdmissionError>,
        refusal_span: Option<TraceContext>,
    },
    /// A session goes on with more of its title if that fits, else with what it has.
    Extended { connection: ConnectionId },
    /// The list of sessions.
    Listed { connection: ConnectionId, list: wire::SessionList },
    /// The engine has accepted a request for bytes.
    Accepted { connection: ConnectionId, request: RequestId },
    /// `range` of a read's buffer, for a request.
    Deliver {
        connection: ConnectionId,
        request: RequestId,
        read: ReadId,
        buffer: SharedBuffer,
        range: Range<usize>,
    },
    /// The request is not served, now or at all.
    RequestFailed { connection: ConnectionId, request: RequestId, why: RequestError },
    /// To the thread that sends channels: begin this one.
    Begin(Box<NewChannel>),
    /// The admin API has taken a piece of a request's body, and takes the next one.
    BodyTaken { connection: ConnectionId },
    /// The admin API's answer to a request.
    Answered { connection: ConnectionId, response: Box<Response> },
    /// Accept no connection, and close those that have no request to be answered.
    HandOver,
    /// The server ends after this time: let players that cannot ask for another node go.
    Dismiss { within: Duration },
    /// Close all connections and end, an HTTP thread when the answers of the admin API are sent.
    Quit,
}

/// A title that an operator sends to an address.
#[derive(Debug)]
pub(crate) struct NewChannel {
    pub(crate) title: Arc<OpenTitle>,
    pub(crate) name: String,
    /// The tracks of the transport stream, the one that leads first.
    pub(crate) tracks: Vec<u16>,
    /// Connected to `to`.
    pub(crate) socket: UdpSocket,
    pub(crate) to: SocketAddr,
    /// Whether packets go in RTP (RFC 2250).
    pub(crate) in_rtp: bool,
    /// The rate up to which null packets fill it; `None`: packets go out at their times.
    pub(crate) rate: Option<BitRate>,
    /// Whether the title begins again at its end.
    pub(crate) repeats: bool,
    /// Gets the number of the session, or why there is none.
    pub(crate) answer: Sender<Result<u64, ChannelError>>,
}

/// Why a channel has not begun.
#[derive(Debug)]
pub(crate) enum ChannelError {
    /// There are as many as there may be.
    TooMany,
    /// The session was not admitted.
    NotAdmitted(AdmissionError),
    /// The first bytes are not served.
    NotServed(RequestError),
}

/// Why an admission request was not accepted.
#[derive(Debug)]
pub(crate) enum AdmissionError {
    /// A resource is fully reserved.
    Refused(Refusal),
    /// The title was removed after the player's request.
    TitleRemoved,
    /// The server is stopping.
    Stopping,
    /// The client has this many sessions that it has not begun to play, the most that it may have.
    TooManyUnplayed { client: ClientAddress, most: usize },
    /// The presentation is not available in the requested delivery format.
    FormatUnavailable,
    /// The player is permitted no rendition of the title.
    NotPermitted(Permit),
    /// The session was admitted for a later start, and has ended before it.
    Ended(RequestError),
    /// No session token could be made; the reason.
    Failed(String),
}

impl AdmissionError {
    /// A stable word for it, and what it is in words.
    pub(crate) fn reason(&self) -> (&'static str, String) {
        let text = |word, detail: &str| (word, detail.to_owned());
        match self {
            Self::Refused(refusal) => (refusal.cause.word(), refusal.detail.clone()),
            Self::TitleRemoved => text("no-title", "the title was removed"),
            Self::Stopping => text("stopping", "the server is stopping"),
            Self::TooManyUnplayed { client, most } => {
                ("too-many-unplayed", format!("{client} has {most} sessions that it does not play"))
            }
            Self::FormatUnavailable => text("format", "the title has no such form"),
            Self::NotPermitted(_) => {
                text("token-not-allowed", "the viewer is permitted no rendition")
            }
            Self::Ended(_) => text("session-ended", "the session has ended before its start"),
            Self::Failed(error) => text("internal", error),
        }
    }
}

/// Why a request for bytes is not served.
#[derive(Clone, Debug)]
pub(crate) enum RequestError {
    /// A seek or a change of tracks needs a new reservation, and a resource is fully reserved.
    Refused(Refusal),
    /// Another request of the same session conflicts with it.
    Declined(DeclineReason),
    /// The bytes cannot be read.
    ReadFailed(ReadOutcome),
    /// The session has ended.
    SessionEnded,
    /// The server has ended the session although its viewer played.
    CutShort(CutShort),
}
