//! The engine's inputs and outputs as types. Every input method of [`super::Engine`] takes `now`
//! first.

use super::pieces;
use disk::Costs;
use scheduler::Lead;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use units::{BitRate, ByteCount, Moment};

pub use scheduler::Resource;

/// One viewer's player. Never used twice by one engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SessionId(pub u64);

/// One request for bytes within a session; chosen by the caller, never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

/// One read of a piece, and afterwards the buffer that holds the piece, until [`Action::Forget`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReadId(pub u64);

/// A title of one engine, stable while the title exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TitleKey(pub u64);

/// A disk of this engine: index into the guarantees given at the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DiskNumber(pub u16);

/// A track of a title: index into [`Layout::tracks`]. The first ones are those of
/// `TitleIndex::tracks`; what is read of them otherwise follows behind.
pub type TrackNumber = u16;

/// A permit for one piece of disk work beside the streams: best-effort work (ingest, export,
/// check), or a write of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PermitId(pub u64);

/// A recording for whose writes disk time is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RecordingId(pub u64);

/// Where a title's tracks lie and when their pieces are due: all that the engine knows of media.
#[derive(Debug)]
pub struct Layout {
    /// The title.
    pub title: TitleKey,
    /// Where it lies.
    pub disk: DiskNumber,
    /// Play-out time of the whole title.
    pub duration: Duration,
    /// All tracks, also those a session does not take.
    pub tracks: Vec<TrackLayout>,
}

/// One track, cut into pieces: a piece is one read.
#[derive(Debug)]
pub struct TrackLayout {
    /// Bytes of track data.
    pub bytes: u64,
    /// Bytes of a piece; the last may be shorter. A multiple of the device's block, divides the
    /// chunk or is a multiple of it; no piece crosses the end of an extent (runs are multiples
    /// of it but for the last).
    pub piece: u32,
    /// The beginning behind which the next read may wait longest, in pieces that end where segments
    /// do: multiples of the device's block.
    pub lead: Lead,
    /// The track's extents in order, as byte ranges of the device.
    pub runs: Vec<Range<u64>>,
    /// Per piece, when the first byte a player needs of it is due, in milliseconds of media time
    /// from the title's start (for HLS: when the segment it first serves starts). Never decreases.
    pub due: Vec<u32>,
    /// Per piece of this track its number among the stored pieces, where only parts of what is
    /// stored are read, or in another order. Byte ranges of requests then count from piece to piece
    /// in this order, and a contiguous request may skip less than a piece. Empty: all stored
    /// pieces, in their order.
    pub stored: Vec<u32>,
    /// The track whose key frames alone this one has. A session that goes on with it gives back its
    /// reservation of that track, and the other way round.
    pub key_frames_of: Option<TrackNumber>,
    /// Disk time of the pieces. Empty at first; the engine fills it in when it first decides on the
    /// track, if it knows the disk's times.
    pub times: OnceLock<PieceTimes>,
}

/// Disk time of a track's pieces, where disk time is counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PieceTimes {
    /// Per piece, nanoseconds that the disk transfers.
    pub transfer: Vec<u32>,
    /// Per piece, whether the next lies directly behind it, so that the disk reads both in one
    /// visit ([`disk::Costs::shortest_following`]).
    pub followed: Vec<bool>,
}

impl TrackLayout {
    /// The first byte of a piece.
    pub fn start(&self, piece: u32) -> u64 {
        pieces::curve(self).start(piece)
    }

    /// What its pieces take of a disk that costs so much, as the engine books them.
    pub fn times_on(&self, costs: &Costs) -> PieceTimes {
        pieces::times(self, costs)
    }

    /// The piece that holds a byte.
    pub fn piece_at(&self, byte: u64) -> u32 {
        pieces::curve(self).piece_at(byte)
    }
}

impl PieceTimes {
    /// The longer times of two copies of a track, so that a piece is booked alike wherever it is
    /// read. A piece is followed by the next where it is in both.
    pub(super) fn longest(self, other: &Self) -> Self {
        let transfer = self.transfer.iter().zip(&other.transfer).map(|(a, b)| *a.max(b)).collect();
        let followed = self.followed.iter().zip(&other.followed).map(|(a, b)| a & b).collect();
        Self { transfer, followed }
    }
}

/// How many reads a disk completes in any slot, whatever their places (calibrated `minRead`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskGuarantee {
    /// Reads of at most `read_size` per slot.
    pub min_read: u32,
    /// The largest read that the guarantee covers.
    pub read_size: ByteCount,
    /// No single read takes longer than this.
    pub longest_read: Duration,
    /// Reads to keep in the device at once.
    pub queue_depth: u32,
}

/// Configuration of an engine, fixed while it lives.
#[derive(Clone, Debug)]
pub struct EngineConfig {
    /// The scheduling period.
    pub slot: Duration,
    /// The admission policy.
    pub policy: scheduler::PolicyKind,
    /// From admission until the first piece must be in memory. At least two slots.
    pub startup: Duration,
    /// Memory for pieces.
    pub buffers: ByteCount,
    /// What the network may carry; `None`: not admitted by network.
    pub network: Option<BitRate>,
    /// A session that asks for nothing this long after admission is ended.
    pub reservation_hold: Duration,
    /// A session that requests nothing while this much media time falls due loses its reservation
    /// (it is readmitted when it goes on).
    pub idle_timeout: Duration,
    /// A session that asks for nothing at all for this long is ended.
    pub session_timeout: Duration,
    /// Admit only sessions that miss no deadline if any one disk is lost, as far as their titles
    /// have copies on two disks that are there. `startup` is then at least three slots.
    pub survive_loss: bool,
    /// The most fills of caches at a time; zero: none is admitted.
    pub fills: u32,
    /// The disks.
    pub disks: Vec<DiskGuarantee>,
}

/// Who goes first where there is not room for all.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Priority {
    /// The first to give way.
    Low,
    /// As everybody who says nothing else.
    #[default]
    Normal,
    /// The last to give way.
    High,
}

impl Priority {
    /// All priorities, the lowest first.
    pub const ALL: [Self; 3] = [Self::Low, Self::Normal, Self::High];

    /// The priority's word in JSON, metrics and addresses.
    pub fn word(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Normal => "normal",
            Self::High => "high",
        }
    }
}

/// The longest time that a viewer waits for its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MaxWait {
    /// Zero: the viewer starts now or is refused.
    pub time: Duration,
    /// Whether the viewer has chosen the time. Then it waits for so long where that gives it a
    /// place; otherwise for no longer than the queue of a crowd lasts.
    pub is_chosen: bool,
    /// The longest time that it waits where the disk needs that also without other viewers, for
    /// whom it does not wait.
    pub for_disk: Duration,
}

/// An admission request: a viewer wants to play a title.
#[derive(Clone, Debug)]
pub struct AdmitRequest {
    /// One copy of the title.
    pub layout: Arc<Layout>,
    /// Copies of the title on other disks, in the same pieces; others are not used. The title is
    /// read from the disk with the most slack, and from another one if that is lost.
    pub copies: Vec<Arc<Layout>>,
    /// Sets of tracks, best first; the first that fits is taken.
    pub offers: Vec<Vec<TrackNumber>>,
    /// Where play-out starts, in media time.
    pub start: Duration,
    /// The longest time that the viewer waits for its start.
    pub max_wait: MaxWait,
    /// A session that ends if this request is accepted, and stays unchanged if not. The request is
    /// evaluated with that session's reservation off the books.
    pub replaces: Option<SessionId>,
    /// For whom it is a fill: somebody requests a few pieces once. `None`: it is that of a viewer.
    /// A fill is no start of a viewer, so the pace and the queue of a crowd know nothing of it, and
    /// it gets what is in memory at once.
    pub fill: Option<FillFor>,
    /// Who goes first: where the request does not fit otherwise, sessions of a lower priority end
    /// for it. A fill takes nobody's place, and nobody takes that of a fill.
    pub priority: Priority,
}

/// The answer to an admission request. A refusal is a value.
#[derive(Clone, Debug, PartialEq)]
pub enum AdmissionDecision {
    /// The session begins.
    Admitted {
        /// The new session.
        session: SessionId,
        /// Index into [`AdmitRequest::offers`].
        offer: usize,
        /// All deadlines are as if the request had come this much later; at most
        /// [`AdmitRequest::max_wait`], zero where there is room at once. Not zero: nothing is
        /// delivered before the start-up is over, and deadlines count from there, except where the
        /// loss of a disk must be survived, and for fills.
        wait: Duration,
        /// Sessions of a lower priority that end for it, as few as were needed.
        preempted: Vec<SessionId>,
    },
    /// No room; nothing changed.
    Refused(Refusal),
}

/// Why a request does not fit, what is short, and when the request would be accepted.
#[derive(Clone, Debug, PartialEq)]
pub struct Refusal {
    /// Why it does not fit.
    pub cause: RefusalCause,
    /// The scarce resource; `None` where none is.
    pub resource: Option<Resource>,
    /// When a request for the same would be accepted.
    pub retry: RetryAfter,
    /// Never for this viewer, and at times for one who waits for its start.
    pub waiting_helps: bool,
    /// The shortage in numbers, for the log.
    pub detail: String,
}

/// Why an admission request does not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RefusalCause {
    /// Other sessions hold what it needs. It fits on a server without sessions.
    Sessions,
    /// A disk is slower than its calibration. The request fits at the calibrated speed.
    SlowDisk,
    /// There is less memory than at the start. The request fits with as much as then.
    LessMemory,
    /// The title needs more than the server has at its best.
    Title,
    /// The title, or its place after a loss, is on a disk that is lost.
    DiskLost,
    /// Nothing is reserved: background work that the disk has begun takes the time.
    Background,
    /// The server does not admit the request whatever is reserved: it is stopping, or the title is
    /// being removed, or there are as many sessions as there can be.
    Server,
    /// The request is a fill, and there are as many as there may be.
    Fills,
}

/// Who requests a few pieces once, for others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FillFor {
    /// A cache, for all its viewers. At most [`EngineConfig::fills`] are admitted at a time.
    Cache,
    /// Another node, which writes a copy of the title. At most [`MOST_NODE_FILLS`] are admitted at
    /// a time.
    Node,
}

/// Fills for other nodes at a time: each has up to a second of reads in memory, and what is left is
/// for viewers.
pub const MOST_NODE_FILLS: u32 = 8;

impl RefusalCause {
    /// All causes, in the order of their declaration.
    pub const ALL: [Self; 8] = [
        Self::Sessions,
        Self::SlowDisk,
        Self::LessMemory,
        Self::Title,
        Self::DiskLost,
        Self::Background,
        Self::Server,
        Self::Fills,
    ];

    /// The cause's word in JSON and metrics.
    pub fn word(self) -> &'static str {
        match self {
            Self::Sessions => "sessions",
            Self::SlowDisk => "slow-disk",
            Self::LessMemory => "less-memory",
            Self::Title => "title",
            Self::DiskLost => "disk-lost",
            Self::Background => "background",
            Self::Server => "server",
            Self::Fills => "fills",
        }
    }
}

/// When a refused request would be accepted, as a time from its refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryAfter {
    /// The request fits then, if no session is admitted before, no viewer is late, no disk becomes
    /// slower, and no socket holds buffers for longer than they are reserved for it.
    Exact(Duration),
    /// The request may fit then: a search that was cut short found this start, or a reservation
    /// that is in the way ends then at the latest.
    Estimated(Duration),
    /// Nothing that would make it fit is known to happen.
    Unknown,
    /// The request will never fit with the present options and calibration, except where it can
    /// follow another viewer of the title.
    Never,
}

impl Refusal {
    /// The word in JSON for when the request would be accepted.
    pub fn retry_word(&self) -> &'static str {
        match self.retry {
            RetryAfter::Never if self.waiting_helps => "wait",
            retry => retry.word(),
        }
    }
}

impl RetryAfter {
    /// The time, where one is known.
    pub fn after(self) -> Option<Duration> {
        match self {
            Self::Exact(after) | Self::Estimated(after) => Some(after),
            Self::Unknown | Self::Never => None,
        }
    }

    /// The word for this in JSON, for a viewer who cannot wait.
    pub fn word(self) -> &'static str {
        match self {
            Self::Exact(_) => "exact",
            Self::Estimated(_) => "estimate",
            Self::Unknown => "unknown",
            Self::Never => "never",
        }
    }
}

/// What the end of a player's last connection says of its viewer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disconnection {
    /// The player has closed a connection that it would have used again: the viewer has gone.
    Left,
    /// Players that go on playing end connections like this, too, such as those with a connection
    /// for each request.
    Unclear,
}

/// Why a request is declined because of other requests of its own session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeclineReason {
    /// There are as many requests open as a session may have.
    TooManyRequests {
        /// The most requests that a session may have open.
        most: usize,
    },
    /// A younger request has moved the track to another position: a session has one position in
    /// each track.
    Superseded,
}

/// Bytes a player asked for: consecutive parts of one response body.
#[derive(Clone, Debug)]
pub struct MediaRequest {
    /// Names this request in all that follows.
    pub request: RequestId,
    /// The session that it belongs to.
    pub session: SessionId,
    /// Ranges in the order in which they are to be delivered. Not empty; no part is empty.
    pub parts: Vec<Part>,
}

/// Where a request stands in the response that it is for, which may be made of several requests. By
/// default it is the whole response.
#[derive(Clone, Debug, Default)]
pub struct ResponsePlace {
    /// The request before it in the response.
    pub before: Option<RequestId>,
    /// Where the response ends in each of its tracks, the same for all its requests. A player that
    /// asks for what follows goes on with the response, although not all of it was requested yet.
    pub ends: Arc<[(TrackNumber, u64)]>,
}

/// A range of one track's data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The track.
    pub track: TrackNumber,
    /// Bytes of the track's data.
    pub bytes: Range<u64>,
}

/// How a read ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadOutcome {
    /// In memory, checksums right.
    Good,
    /// The device returned an error.
    Failed,
    /// The device is no more.
    Gone,
    /// Read, but a checksum is wrong.
    Damaged,
}

/// What the driver must do now.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Read this; answer with `read_done`. Reads of one disk come in the order of issue.
    Read {
        /// Names the read, and afterwards its buffer.
        read: ReadId,
        /// The disk to read from.
        disk: DiskNumber,
        /// Byte offset on the device; a multiple of the block size.
        device_offset: u64,
        /// Bytes to read; a multiple of 4,096 (the tail is padded within its extent).
        len: u32,
        /// The title that is read, for checksums and logs.
        title: TitleKey,
        /// The track that is read, for checksums and logs.
        track: TrackNumber,
        /// The byte of the stored track at which the read begins, for checksums.
        start: u64,
    },
    /// Send these bytes of a piece in memory; say `sent` when the socket has taken them.
    Deliver {
        /// The request that they answer.
        request: RequestId,
        /// The buffer that holds them.
        read: ReadId,
        /// Bytes within the buffer.
        bytes: Range<u32>,
    },
    /// Everything of this request has been delivered.
    Complete {
        /// The request that is complete.
        request: RequestId,
    },
    /// The buffer is no longer needed; its memory counts as free from here.
    Forget {
        /// The read that filled the buffer.
        read: ReadId,
    },
    /// The deadlines of a session have changed.
    Rescheduled {
        /// The session whose deadlines have changed.
        session: SessionId,
        /// How they have changed.
        change: ScheduleChange,
    },
    /// A seek or another track does not fit now; the session keeps what it had.
    Refused {
        /// The request that does not fit.
        request: RequestId,
        /// The resource that is short, and when it would not be.
        refusal: Refusal,
    },
    /// Declined, however much room there is: other requests of the same session stand in its way.
    /// The session keeps what it had.
    Declined {
        /// The request that is declined.
        request: RequestId,
        /// The other requests that prevent it.
        why: DeclineReason,
    },
    /// The bytes cannot be had.
    Failed {
        /// The request that fails.
        request: RequestId,
        /// How the read ended.
        outcome: ReadOutcome,
    },
    /// The session is over; its id is dead.
    Ended {
        /// The session that is over.
        session: SessionId,
        /// The session's account.
        summary: SessionSummary,
    },
    /// A disk is lost: nothing is read from it any more. It comes after all actions that the loss
    /// causes.
    DiskLost {
        /// The lost disk.
        disk: DiskNumber,
        /// Sessions that go on with another copy.
        moved: u64,
        /// Sessions that have ended because there was no other copy, or no room for them there.
        ended: u64,
    },
    /// A lost disk is back.
    DiskBack {
        /// The disk that is in use again.
        disk: DiskNumber,
    },
    /// One piece of best-effort work, or a write, may be done now; answer with
    /// `best_effort_done`.
    Granted {
        /// The permit that is granted.
        permit: PermitId,
    },
    /// The last session of a withdrawn title has ended: its space may be freed.
    TitleIdle {
        /// The withdrawn title.
        title: TitleKey,
    },
}

/// How a session's deadlines have changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScheduleChange {
    /// After a seek, or for bytes that were released, it was readmitted for these tracks of
    /// `request`, from their next bytes on, as if it had been admitted `wait` after now.
    Readmitted {
        /// The request that the session was readmitted for.
        request: RequestId,
        /// The tracks whose earlier deadlines are void.
        tracks: Vec<TrackNumber>,
        /// Not above [`EngineConfig::startup`], except where a smaller rendition takes over the
        /// deadlines of the one before; zero where there is room at once.
        wait: Duration,
    },
    /// The rest of a track is due later: its player was late for what was read for it, by at least
    /// as much; or its disk was lost, and there was no room at once on another.
    Delayed {
        /// The track that is due later.
        track: TrackNumber,
        /// The delay in slots.
        slots: u32,
    },
    /// The reservation of a track is released: its player was silent for
    /// [`EngineConfig::idle_timeout`], or plays another rendition instead.
    Released {
        /// The track whose reservation is released.
        track: TrackNumber,
    },
}

/// A session as it ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionSummary {
    /// The session's title.
    pub title: TitleKey,
    /// When it was admitted.
    #[serde(with = "Nanoseconds")]
    pub admitted: Moment,
    /// Pieces in memory by their deadline.
    pub deadlines_met: u64,
    /// Deadline misses: pieces that were not in memory by their deadline though the player behaved.
    pub deadline_misses: u64,
    /// The longest time by which a piece missed its deadline.
    pub worst_lateness: Duration,
    /// The least slack of the decisions while it was open; where disk time is counted.
    pub guaranteed_slack: Option<Duration>,
    /// The least time between the end of a read and the end of the slot that it was due in.
    pub observed_slack: Option<Duration>,
    /// Guarantee violations, reads done after the slot that they were due in, though the disk took
    /// no longer than it was charged. No deadline misses yet: those are up to a slot later.
    pub violations_by_scheduler: u64,
    /// Guarantee violations after the disk took longer than it was charged.
    pub violations_by_disk: u64,
    /// Bytes delivered.
    pub delivered: u64,
    /// Whether it was a fill.
    pub is_fill: bool,
    /// Who went first.
    pub priority: Priority,
    /// Why the server ended it, where that was neither the viewer's doing nor its silence.
    pub cut_short: Option<CutShort>,
}

/// Why a server ends a session whose viewer plays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum CutShort {
    /// The session's disk is lost, and there is no other copy, or no room for it there.
    DiskLost,
    /// A viewer of a higher priority takes the session's place.
    Priority,
    /// The session's disk has long been slower than what is booked on it.
    Overload,
}

impl CutShort {
    /// The cause's word in JSON, metrics and the log.
    pub fn word(self) -> &'static str {
        match self {
            Self::DiskLost => "disk-lost",
            Self::Priority => "priority",
            Self::Overload => "overload",
        }
    }
}

/// A session as another engine can go on with it: see [`super::Engine::take_over`]. Moments are of
/// the engine's clock, which the other engine has to go on with, too.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HandedSession {
    /// The session's id, which it keeps.
    pub session: SessionId,
    /// The tracks that are booked, or were when the booking was released for silence.
    pub tracks: Vec<TrackNumber>,
    /// The streams of those that are booked.
    pub streams: Vec<HandedStream>,
    /// Whether its player has asked for media.
    pub asked: bool,
    /// When its player last asked, took or hung up something.
    #[serde(with = "Nanoseconds")]
    pub last_activity: Moment,
    /// The session's account so far.
    pub summary: SessionSummary,
}

/// A booked stream of a [`HandedSession`]: its player's clock ([`scheduler::PlayoutClock`]) and
/// position.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HandedStream {
    /// The track.
    pub track: TrackNumber,
    /// When the play-out was granted.
    #[serde(with = "Nanoseconds")]
    pub origin: Moment,
    /// From there until play-out starts at the earliest.
    pub opens_after: Duration,
    /// Where it starts, in milliseconds of media time, at the latest.
    pub from_ms: u32,
    /// Where it starts at the earliest.
    pub kept_from_ms: u32,
    /// The first byte of the piece in which the player's next byte is expected.
    pub position: u64,
    /// What of the pieces before this byte came in time, or did not, is counted.
    pub counted: u64,
    /// Where its latest requests ended, the oldest first.
    pub ends: Vec<u64>,
    /// Bytes of the track.
    pub bytes: u64,
    /// Bytes of a piece where only parts of what is stored are read, or in another order: bytes are
    /// counted by these pieces there. Zero elsewhere.
    pub parts: u32,
}

/// A moment in JSON.
#[derive(Serialize, Deserialize)]
#[serde(remote = "Moment")]
struct Nanoseconds(u64);

/// How a session goes on in another engine.
#[derive(Clone, Debug, PartialEq)]
pub enum TakenOver {
    /// With a reservation.
    Booked {
        /// The time by which its deadlines have moved, because its next pieces were due already,
        /// or to make it fit.
        delay: Duration,
    },
    /// Without a reservation, as it had none: its player is silent.
    Silent,
    /// Without a reservation, because it does not fit; its next request is evaluated as a seek.
    Refused(Refusal),
}

impl Default for TitleKey {
    fn default() -> Self {
        Self(u64::MAX)
    }
}

/// The reads that one permit for best-effort work counts for at most. Work of more than a few reads
/// at once was not cut into pieces by its owner.
pub const MAX_PERMIT_READS: u32 = 8;
