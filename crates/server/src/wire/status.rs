//! What a running server says of itself (`/status`, `status`): names as promised as those beside.

use serde::{Deserialize, Serialize};

/// A server at one moment (`/status`, `status`).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// The program's version.
    pub version: String,
    /// Since its start.
    pub uptime: f64,
    /// Whether it lets nobody in because it is about to stop.
    pub stopping: bool,
    /// Whether it lets in only whom the loss of any one disk makes late for nothing.
    #[serde(default)]
    pub survive_loss: bool,
    /// The admission policy.
    pub policy: String,
    /// The scheduling period.
    pub slot: f64,
    /// How sockets are driven.
    pub network: String,
    /// Sessions admitted and not ended.
    pub sessions: u64,
    /// Of those, holding a reservation.
    pub active: u64,
    /// Since the start.
    pub admitted: u64,
    /// Of those, let in to a smaller rendition than the best there is, for want of room.
    #[serde(default)]
    pub admitted_smaller: u64,
    /// Since the start, by resource.
    pub refused: Refused,
    /// Of those, who would have come in if no disk could be lost.
    #[serde(default)]
    pub refused_for_loss: u64,
    /// Sessions that went on with another copy when their disk was lost.
    #[serde(default)]
    pub moved: u64,
    /// Sessions that ended when it was.
    #[serde(default)]
    pub ended_by_loss: u64,
    /// Pieces late for admitted streams.
    pub glitches: u64,
    /// Pieces on time.
    pub on_time: u64,
    /// Reads done after the slot that they were due in, up to a slot before a glitch, by a disk that took
    /// no longer than it was charged.
    #[serde(default)]
    pub broken_certificates: u64,
    /// The same by a disk that took longer.
    #[serde(default)]
    pub void_certificates: u64,
    /// The worst lateness of an ended session.
    pub worst_lateness: f64,
    /// Bytes of read buffers in use.
    pub buffers_used: u64,
    /// Bytes of read buffers there are.
    pub buffers_total: u64,
    /// Pieces found in memory when their turn to be read came.
    pub cache_hits: u64,
    /// Open connections.
    pub connections: u64,
    /// Bytes sent to viewers.
    pub sent_bytes: u64,
    /// The disks.
    pub disks: Vec<DiskStatus>,
    /// Titles being watched.
    pub watched: Vec<Watched>,
}

/// Refusals by resource.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused {
    /// Reads per slot.
    pub disk: u64,
    /// Buffers.
    pub memory: u64,
    /// Bits per second.
    pub network: u64,
}

/// One disk of a server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DiskStatus {
    /// The store on it.
    pub store: String,
    /// Its uuid.
    pub uuid: String,
    /// How its reads are made.
    pub method: String,
    /// Bytes of the largest read.
    pub read_size: u64,
    /// Guaranteed reads per slot now.
    pub min_read: u32,
    /// Reads completed.
    pub reads: u64,
    /// Bytes read.
    pub bytes: u64,
    /// Reads failed or damaged.
    pub failures: u64,
    /// Reads in the device.
    pub in_flight: u32,
    /// Sessions that are read from it.
    #[serde(default)]
    pub sessions: u64,
    /// Nothing is read from it: see to it. It is looked at again from time to time.
    #[serde(default)]
    pub lost: bool,
    /// By how much longer than it is counted with it lately takes: 0.25 is a quarter. Zero while it
    /// keeps its word.
    #[serde(default)]
    pub behind: f64,
    /// The fewest reads that it did in a slot in the last minutes; as guaranteed where it never did
    /// fewer. Only where reads are counted.
    #[serde(default)]
    pub slowest_slot: u32,
    /// The fewest reads in a slot in which it was never without any to make, in the last half hour of such;
    /// `null` before half a minute of them was seen. Only where reads are counted.
    #[serde(default)]
    pub observed: Option<u32>,
    /// The smallest slack of the admitted schedule ahead, in reads.
    pub least_slack: u64,
    /// Seconds that the last decision left to spare where the schedule is tightest; `null` where
    /// disk time is not counted, or nobody was let in yet.
    #[serde(default)]
    pub promised_slack: Option<f64>,
    /// How well a disk slowed down (`--as-disk`, `--throttle`) keeps the times that it should;
    /// `null` for a disk as it is.
    #[serde(default)]
    pub slowed: Option<Slowed>,
    /// The last slots, oldest first.
    pub slots: Vec<SlotUse>,
}

/// How late a slowed disk hands out what it reads, in seconds after the moment that its model says:
/// what of the server's lateness is not the model's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Slowed {
    /// Requests handed out.
    pub requests: u64,
    /// Half of them were at most so late.
    pub late_median: f64,
    /// 99 of 100.
    pub late_p99: f64,
    /// The worst.
    pub late_longest: f64,
}

/// One slot of one disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlotUse {
    /// Which, counted from the server's start.
    pub slot: u64,
    /// Reads completed in it.
    pub reads: u32,
    /// Guaranteed then.
    pub min_read: u32,
    /// Sessions holding a reservation then.
    pub active: u64,
}

/// The sessions of a server (`/sessions`), the oldest first.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SessionList {
    /// All there are; at most 1,000 are listed.
    pub total: u64,
    /// Those listed.
    pub sessions: Vec<SessionStatus>,
}

/// One session of a server. Nothing here lets anybody play in its place.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SessionStatus {
    /// Its number, counted from the server's start.
    pub session: u64,
    /// The title's name.
    pub title: String,
    /// The store that it is read from.
    pub store: String,
    /// Seconds since it was admitted.
    pub age: f64,
    /// Bytes read or being read for it that it has not been handed.
    pub buffered: u64,
    /// Bytes handed over.
    pub delivered: u64,
    /// Seconds that the decisions to let it and others in left it to spare, at the least; `null` where
    /// disk time is not counted, or nothing was read yet.
    pub promised_slack: Option<f64>,
    /// Seconds by which its reads were done before they were due, at the least; as `promised_slack`.
    pub least_slack: Option<f64>,
    /// Reads done after that though the disk took no longer than it was charged.
    pub broken_certificates: u64,
    /// The same by a disk that took longer.
    pub void_certificates: u64,
    /// Pieces on time.
    pub on_time: u64,
    /// Pieces late.
    pub glitches: u64,
}

/// Viewers of one title.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Watched {
    /// Its name.
    pub title: String,
    /// Sessions.
    pub sessions: u64,
}
