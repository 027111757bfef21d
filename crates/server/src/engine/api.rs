//! What the engine hears and says. Every method of [`super::Engine`] takes `now` first.

use std::ops::Range;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use units::{BitRate, ByteCount, Moment};

pub use scheduler::Resource;

/// One viewer's player. Never used twice by one engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(pub u64);

/// One request for bytes within a session; chosen by the caller, never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

/// One read of a piece, and afterwards the buffer that holds the piece, until [`Action::Forget`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReadId(pub u64);

/// A title of one engine, stable while the title exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TitleKey(pub u64);

/// A disk of this engine: index into the guarantees given at the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DiskNumber(pub u16);

/// A track of a title: index into [`Layout::tracks`] and `TitleIndex::tracks`.
pub type TrackNumber = u16;

/// A permit for one best-effort piece of disk work (ingest, export, check).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);

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
    /// The track's extents in order, as byte ranges of the device.
    pub runs: Vec<Range<u64>>,
    /// Per piece, when the first byte a player needs of it is due, in milliseconds of media time
    /// from the title's start (for HLS: when the segment it first serves starts). Never decreases.
    pub due: Vec<u32>,
    /// Where only parts of what is stored are read, or in another order: which of the stored
    /// pieces each of this track's pieces is. Then all bytes asked for count from piece to piece in
    /// this order, and a player that goes on may leave out less than a piece. Empty: all of them,
    /// in their order.
    pub stored: Vec<u32>,
    /// What its pieces take of their disk. Begins empty; the engine fills it in when it first
    /// decides on the track, where it knows the disk's times.
    pub times: OnceLock<PieceTimes>,
}

/// What a track's pieces take of their disk where its time is counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PieceTimes {
    /// Per piece, nanoseconds that the disk transfers.
    pub transfer: Vec<u32>,
    /// Per piece, whether the next goes on where it ends, and the disk takes the two for one visit
    /// ([`disk::Costs::shortest_following`]).
    pub followed: Vec<bool>,
}

impl PieceTimes {
    /// Of two copies of a track, so that a piece is booked alike wherever it is read: the next goes on
    /// where it ends if it does in both.
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

/// What an engine is told once.
#[derive(Clone, Debug)]
pub struct EngineConfig {
    /// The scheduling period.
    pub slot: Duration,
    /// Whom to let in.
    pub policy: scheduler::PolicyKind,
    /// From admission until the first piece must be in memory. At least two slots.
    pub startup: Duration,
    /// Memory for pieces.
    pub buffers: ByteCount,
    /// What the network may carry; `None`: not admitted by network.
    pub network: Option<BitRate>,
    /// A session that asks for nothing this long after admission is ended.
    pub reservation_hold: Duration,
    /// A session that asks for nothing while this much media time has fallen due gives back what
    /// it holds (it is asked anew when it goes on).
    pub idle_after: Duration,
    /// A session that asks for nothing at all for this long is ended.
    pub ended_after: Duration,
    /// Let in only whom the loss of any one disk makes late for nothing, as far as its title has
    /// copies on two disks that are there. `startup` is then at least three slots.
    pub survive_loss: bool,
    /// The disks.
    pub disks: Vec<DiskGuarantee>,
}

/// A viewer at the door.
#[derive(Clone, Debug)]
pub struct AdmitRequest {
    /// What it wants to see.
    pub layout: Arc<Layout>,
    /// The same title as it lies on other disks, in the same pieces; what is not that is not used. It
    /// is read from the disk with the most room, and goes on with another if that is lost.
    pub copies: Vec<Arc<Layout>>,
    /// Sets of tracks, best first; the first that fits is taken.
    pub offers: Vec<Vec<TrackNumber>>,
    /// Where it will start, in media time.
    pub from: Duration,
    /// Rather than being refused it waits so long for its start.
    pub patience: Duration,
    /// The session that ends if this one is let in, and stays as it is if not: what it holds is
    /// free to be booked by this one.
    pub instead_of: Option<SessionId>,
}

/// The answer at the door. A refusal is a value.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// Come in.
    Admitted {
        /// The new session.
        session: SessionId,
        /// Index into [`AdmitRequest::offers`].
        offer: usize,
        /// It is promised everything as if it had come so much later; at most
        /// [`AdmitRequest::patience`], zero where there is room at once.
        wait: Duration,
    },
    /// No room; nothing changed.
    Refused(Refusal),
}

/// What stands in the way, and when it may not.
#[derive(Clone, Debug, PartialEq)]
pub struct Refusal {
    /// The scarce resource.
    pub resource: Resource,
    /// The earliest start that would fit as things stand (the smallest offer), from now.
    pub retry_after: Duration,
    /// Whether that was worked out on the books: who comes back then is let in if nobody else has
    /// come in between. Otherwise it is a guess: nothing fits within the time looked at, or too
    /// many have asked in this slot.
    pub exact: bool,
    /// Reads that would be late, at worst, and in which second from now: for the log.
    pub detail: String,
}

/// What of its own session stands in a request's way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Declined {
    /// There are as many requests open as a session may have.
    TooMany {
        /// So many.
        most: usize,
    },
    /// A younger request has taken the track to another place: a session has one place in each.
    Elsewhere,
}

/// Bytes a player asked for: consecutive parts of one response body.
#[derive(Clone, Debug)]
pub struct Want {
    /// Names this request in all that follows.
    pub request: RequestId,
    /// Whose it is.
    pub session: SessionId,
    /// What, in the order in which it is to be delivered. Not empty; no part is empty.
    pub parts: Vec<Part>,
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
    /// The device said no.
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
        /// Names read and buffer.
        read: ReadId,
        /// On which disk.
        disk: DiskNumber,
        /// Where; a multiple of the block size.
        device_offset: u64,
        /// How much; a multiple of 4,096 (the tail is padded within its extent).
        len: u32,
        /// For checksums and logs.
        title: TitleKey,
        /// See `title`.
        track: TrackNumber,
        /// See `title`: at which byte of what is stored of the track it begins.
        start: u64,
    },
    /// Send these bytes of a piece in memory; say `sent` when the socket has taken them.
    Deliver {
        /// Whose.
        request: RequestId,
        /// Which buffer.
        read: ReadId,
        /// Bytes within the buffer.
        bytes: Range<u32>,
    },
    /// Everything of this request has been delivered.
    Complete {
        /// Which.
        request: RequestId,
    },
    /// The buffer is no longer needed; its memory counts as free from here.
    Forget {
        /// Which.
        read: ReadId,
    },
    /// What a session is promised has changed.
    Rescheduled {
        /// Whose.
        session: SessionId,
        /// How.
        change: Change,
    },
    /// A seek or another track does not fit now; the session keeps what it had.
    Refused {
        /// Which.
        request: RequestId,
        /// Why and until when.
        refusal: Refusal,
    },
    /// Not taken on, however much room there is: other requests of the same session stand in its
    /// way. The session keeps what it had.
    Declined {
        /// Which.
        request: RequestId,
        /// What stands in its way.
        why: Declined,
    },
    /// The bytes cannot be had.
    Failed {
        /// Which.
        request: RequestId,
        /// Why.
        outcome: ReadOutcome,
    },
    /// The session is over; its id is dead.
    Ended {
        /// Which.
        session: SessionId,
        /// What became of it.
        summary: SessionSummary,
    },
    /// A disk is lost: nothing is read from it any more. Said after all that follows from it.
    DiskLost {
        /// Which.
        disk: DiskNumber,
        /// Sessions that go on with another copy ...
        moved: u64,
        /// ... and those that have ended: there was none, or no room.
        ended: u64,
    },
    /// A lost disk is back.
    DiskBack {
        /// Which.
        disk: DiskNumber,
    },
    /// One piece of best-effort work may be done now; answer with `best_effort_done`.
    Granted {
        /// Which.
        ticket: Ticket,
    },
    /// The last session of a withdrawn title has ended: its space may be freed.
    TitleIdle {
        /// Which.
        title: TitleKey,
    },
}

/// How what a session is promised has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// It has jumped, or came back for what it no longer had, and was let in anew: for these tracks
    /// of `request`, from their next bytes on, as if it had been admitted `wait` after now.
    Anew {
        /// Which request.
        request: RequestId,
        /// For these tracks all earlier promises are over.
        tracks: Vec<TrackNumber>,
        /// Not above [`EngineConfig::startup`]; zero where there is room at once.
        wait: Duration,
    },
    /// It has not come for what was read for it: the rest of the track is promised later, by not
    /// more than it is late. Or its disk was lost, and there was no room for it at once on another.
    Later {
        /// Which track.
        track: TrackNumber,
        /// By so many slots.
        slots: u32,
    },
    /// It was silent for [`EngineConfig::idle_after`], or plays another rendition instead: nothing
    /// of this track is promised any more.
    GivenBack {
        /// Which track.
        track: TrackNumber,
    },
}

/// A session as it ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SessionSummary {
    /// Its title.
    pub title: TitleKey,
    /// When it was admitted.
    pub admitted: Moment,
    /// Pieces in memory by their deadline.
    pub on_time: u64,
    /// Pieces not in memory by their deadline, the session having done nothing wrong.
    pub glitches: u64,
    /// The worst of them.
    pub worst_lateness: Duration,
    /// The least slack of the decisions while it was in; where disk time is counted.
    pub promised_slack: Option<Duration>,
    /// By how much its reads were done before the ends of the slots they were due in, at the least.
    pub least_slack: Option<Duration>,
    /// Reads that were done after them, though the disk took no longer than it was charged. Not
    /// glitches yet: those are up to a slot later.
    pub broken: u64,
    /// The same after the disk took longer.
    pub void: u64,
    /// Bytes delivered.
    pub delivered: u64,
    /// It ended because its disk was lost.
    pub lost: bool,
}

impl Default for TitleKey {
    fn default() -> Self {
        Self(u64::MAX)
    }
}
