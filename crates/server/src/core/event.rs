//! What the core hears: the one closed list of events, and the messages with which it answers.

use crate::engine::{
    Declined, DiskNumber, ReadId, ReadOutcome, Refusal, RequestId, SessionId, Want,
};
use crate::layout::Shape;
use crate::library::{OpenTitle, Place};
use crate::pace::AskId;
use crate::sessions::Session;
use crate::showing::Showing;
use crate::wire;
use crossbeam_channel::Sender;
use device::SharedBuffer;
use device::sockets::ConnectionId;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;
use units::ByteCount;

/// Whom to answer: a connection of one of the threads that speak HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Caller {
    pub(crate) worker: usize,
    pub(crate) connection: ConnectionId,
}

/// Everything that can happen to the core.
#[derive(Debug)]
pub(crate) enum Event {
    /// A viewer is at the door; answered with [`Notice::Admitted`], when its start has come.
    Admit { caller: Caller, visit: Visit },
    /// Somebody wants to know who plays what; answered with [`Notice::Listed`].
    List { caller: Caller },
    /// A viewer left before it could be told that it was admitted.
    Close { session: SessionId },
    /// A viewer asks for bytes; answered with [`Notice::Accepted`] or what stands in the way.
    Want { caller: Caller, want: Want },
    /// The socket has a delivered piece.
    Sent { request: RequestId, read: ReadId },
    /// The viewer has hung up on a request.
    Cancel { request: RequestId },
    /// A disk has finished a read.
    ReadDone { read: ReadId, result: Result<SharedBuffer, ReadOutcome> },
    /// Best-effort work wants a turn; `grant` hears when it may.
    AskTurn { ask: AskId, disk: DiskNumber, bytes: ByteCount, grant: Sender<()> },
    /// It has had it, or does not want it any more.
    TurnDone { ask: AskId },
    /// A title of a store has been hidden: its space is to be freed when nobody plays it. `in_use` hears
    /// whether somebody does.
    Withdraw { copy: Place, in_use: Sender<bool> },
    /// A disk has been calibrated anew.
    Guarantee {
        disk: DiskNumber,
        guarantee: crate::engine::DiskGuarantee,
        facts: Box<scheduler::Facts>,
    },
    /// A lost disk holds what it did; `back` hears whether it is used again.
    Restore { disk: DiskNumber, back: Sender<bool> },
    /// Let nobody in, and end when nobody plays any more, at the latest after `grace`.
    Stop { grace: Duration },
}

/// A viewer at the door.
#[derive(Debug)]
pub(crate) struct Visit {
    pub(crate) title: Arc<OpenTitle>,
    pub(crate) showing: Arc<Showing>,
    /// The title's, as the viewer asked for it.
    pub(crate) name: String,
    pub(crate) shape: Shape,
    /// Rather than being refused it waits so long.
    pub(crate) patience: Duration,
    /// The session that it has, and gives up for this one.
    pub(crate) instead_of: Option<SessionId>,
}

/// What a thread that speaks HTTP hears.
#[derive(Debug)]
pub(crate) enum Notice {
    /// From the opener: the title is open now, or is not.
    Opened { connection: ConnectionId, result: Result<Arc<OpenTitle>, crate::library::NotOpened> },
    /// The answer at the door.
    Admitted { connection: ConnectionId, result: Result<Arc<Session>, NotAdmitted> },
    /// Who plays what.
    Listed { connection: ConnectionId, list: wire::SessionList },
    /// The engine has taken a request on.
    Accepted { connection: ConnectionId, request: RequestId },
    /// Bytes of a request.
    Deliver {
        connection: ConnectionId,
        request: RequestId,
        read: ReadId,
        buffer: SharedBuffer,
        range: Range<usize>,
    },
    /// The request cannot be served now, or not at all.
    Undone { connection: ConnectionId, request: RequestId, why: Undone },
    /// Close everything and end.
    Quit,
}

/// Why a viewer was not let in.
#[derive(Debug)]
pub(crate) enum NotAdmitted {
    /// No room.
    Refused(Refusal),
    /// The title has just been removed.
    Gone,
    /// The server is about to stop.
    Stopping,
    /// It is not to be had in this shape.
    NoShape,
    /// No token could be made.
    Failed(String),
}

/// Why a request is not served.
#[derive(Clone, Debug)]
pub(crate) enum Undone {
    /// A seek or another track does not fit.
    Refused(Refusal),
    /// Other requests of the same session stand in its way.
    Declined(Declined),
    /// The bytes cannot be had.
    Failed(ReadOutcome),
    /// The session has ended.
    Ended,
    /// The disk that it was read from is lost, and no other has the title and room.
    Lost,
}
