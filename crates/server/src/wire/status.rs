//! JSON of a running server: `/status`, `/sessions`, and `status` on the control socket. The names
//! are documented and stable.

use super::{Scrub, words};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A server at one moment (`/status`). Counters count since the server's start.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ServerStatus {
    /// The program's version.
    pub version: String,
    /// Seconds since the server's start.
    pub uptime: f64,
    /// Whether it admits no new session because it is stopping.
    pub stopping: bool,
    /// Whether admission guarantees every session also for the loss of any one disk.
    pub survive_loss: bool,
    /// The server's place in its cluster; `null` where it is alone.
    #[serde(default)]
    pub cluster: Option<ClusterMembership>,
    /// Name of the admission policy.
    pub policy: String,
    /// The scheduling period in seconds.
    pub slot: f64,
    /// Description of the socket method.
    pub socket_method: String,
    /// Sessions admitted and not ended.
    pub sessions: u64,
    /// Sessions that hold a reservation.
    pub active: u64,
    /// Sessions among them whose viewers have gone or never played: a newcomer who does not fit
    /// otherwise takes their reservations.
    #[serde(default)]
    pub revocable: u64,
    /// Reservations that newcomers took in this way.
    #[serde(default)]
    pub revoked: u64,
    /// Sessions admitted and not ended, by priority.
    #[serde(default)]
    pub sessions_by_priority: ByPriority,
    /// Sessions that the server ended although their viewers played.
    #[serde(default)]
    pub sessions_preempted: Preempted,
    /// Sessions admitted.
    pub admitted: u64,
    /// Sessions admitted to a smaller rendition than the best.
    pub admitted_downgraded: u64,
    /// Admission requests refused, by resource.
    pub refused: RefusedCounts,
    /// Admission requests refused, by cause.
    #[serde(default)]
    pub refused_by_cause: RefusedCauses,
    /// Admission requests and seeks refused, by priority.
    #[serde(default)]
    pub refused_by_priority: ByPriority,
    /// What caches in front of the server have fetched; each fill counts as a session above.
    #[serde(default)]
    pub fills: Fills,
    /// Refused admission requests that would have been accepted without `--survive-loss`.
    pub refused_for_failover: u64,
    /// Sessions that continued with another copy when their disk was lost.
    pub sessions_failed_over: u64,
    /// Sessions that ended because their disk was lost.
    pub sessions_ended_by_disk_loss: u64,
    /// Pieces in memory by their deadline.
    pub deadlines_met: u64,
    /// Pieces of admitted streams that were not in memory by their deadline.
    pub deadline_misses: u64,
    /// Reads completed after the slot in which they were due.
    pub guarantee_violations: Violations,
    /// The worst lateness of a piece, in seconds.
    pub worst_lateness: f64,
    /// Bytes of read buffers in use.
    pub buffers_used: u64,
    /// Bytes of all read buffers.
    pub buffers_limit: u64,
    /// Bytes of read buffers that the memory limit allows at present. Less than `buffers_limit`
    /// while admitted sessions need more; nobody is admitted to the difference.
    #[serde(default)]
    pub buffers_target: u64,
    /// Pieces found in memory when their viewer came or their read was due.
    pub cache_hits: u64,
    /// Sessions of which a track follows a viewer ahead.
    pub sessions_following: u64,
    /// Bytes of read buffers that are kept for viewers who follow another.
    pub intervals: u64,
    /// Pieces used again by a viewer who follows another: reads saved.
    pub shared_reads: u64,
    /// Decisions of the operator's service on viewers; `null` where none is asked.
    #[serde(default)]
    pub authorizations: Option<Authorizations>,
    /// Open HTTP connections.
    pub connections: u64,
    /// Bytes sent to players.
    pub sent_bytes: u64,
    /// The disks, in the order of the stores.
    pub disks: Vec<DiskReport>,
    /// Stores of the configuration that could not be opened at the start.
    #[serde(default)]
    pub missing_stores: Vec<MissingStoreReport>,
    /// Titles with sessions.
    pub playing: Vec<TitleSessions>,
}

/// Decisions of the operator's service on viewers, since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Authorizations {
    /// Viewers who might begin.
    pub allowed: u64,
    /// Viewers who might not.
    pub refused: u64,
    /// Viewers for whom it gave no answer that could be used.
    pub unanswered: u64,
    /// Viewers who were refused because too many waited for answers.
    pub busy: u64,
    /// Viewers who wait for an answer now.
    pub waiting: u64,
}

/// A number for each priority.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ByPriority {
    /// The number for viewers who give way first.
    pub low: u64,
    /// The number for viewers who say nothing else.
    pub normal: u64,
    /// The number for viewers who give way last.
    pub high: u64,
}

/// Sessions that ended although their viewers played, by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Preempted {
    /// A viewer of a higher priority took their places.
    pub priority: u64,
    /// The disk of these sessions had long been slower than what was booked on it.
    pub overload: u64,
}

/// Refused admission requests by the resource that was short.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusedCounts {
    /// Short of disk time, or of reads per slot.
    pub disk: u64,
    /// Short of read buffers.
    pub memory: u64,
    /// Short of network rate.
    pub network: u64,
}

/// Refused admission requests by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusedCauses {
    /// Other sessions hold what is needed.
    pub sessions: u64,
    /// A disk is slower than its calibration.
    pub slow_disk: u64,
    /// There is less memory than at the start.
    #[serde(default)]
    pub less_memory: u64,
    /// The title needs more than the server has without other sessions.
    pub title: u64,
    /// A disk with the title is lost.
    pub disk_lost: u64,
    /// Nothing is reserved, but background work has the disk.
    pub background: u64,
    /// The server stops, removes the title, or has as many sessions as it can have.
    pub server: u64,
    /// Caches in front have as many fills under way as they may.
    #[serde(default)]
    pub fills: u64,
}

/// Fills of caches in front of a server (`--origin`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fills {
    /// The most at a time; `None`: the server has no addresses for caches.
    pub limit: Option<u32>,
    /// Fills admitted and not ended.
    pub active: u64,
    /// Fills admitted.
    pub admitted: u64,
    /// Fills refused, after they have waited.
    pub refused: u64,
    /// Bytes sent to fills that have ended.
    pub sent_bytes: u64,
}

/// Guarantee violations: reads completed after the slot in which they were due, by cause. A viewer
/// sees a late read only if it is late by up to another slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Violations {
    /// The disk took longer than it was charged, or had to repeat a read.
    pub disk: u64,
    /// The disk took no longer than it was charged: a bug of the scheduler.
    pub scheduler: u64,
}

/// A server's place in its cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClusterMembership {
    /// The name of the cluster.
    pub cluster: String,
    /// The name of the node.
    pub node: String,
    /// Where viewers reach the node.
    pub address: String,
    /// Whether its lease is valid: directors send viewers.
    pub registered: bool,
    /// The member of etcd that is asked; `null` before the first.
    pub etcd: Option<String>,
    /// Why the last request to etcd failed; `null` after one that did not.
    pub error: Option<String>,
    /// Transactions that changed records in etcd.
    pub writes: u64,
    /// Seconds by which the clock of etcd is ahead of the server's, negative where it is behind;
    /// `null` where etcd did not say its time.
    #[serde(default)]
    pub clock_difference: Option<f64>,
    /// Copies of titles that the placement of the cluster orders (`--bucket`); `null` where the
    /// node carries out no orders.
    #[serde(default)]
    pub copies: Option<CopyReport>,
}

/// The copies of titles that a node of a cluster writes and removes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CopyReport {
    /// Copies that are ordered and not written yet.
    pub ordered: u64,
    /// Copies that are being written.
    pub filling: Vec<FillingCopy>,
    /// Orders that failed last time, and are tried again.
    pub failed: Vec<FailedCopy>,
    /// Copies written since the start.
    pub filled: u64,
    /// Bytes of the copies written.
    pub filled_bytes: u64,
    /// Bytes among them that came from other nodes, and not from the bucket.
    #[serde(default)]
    pub filled_bytes_of_peers: u64,
    /// Copies among those written that took the place of an outdated one.
    #[serde(default)]
    pub replaced: u64,
    /// Copies removed since the start.
    pub evicted: u64,
    /// Failures since the start.
    pub failures: u64,
}

/// A copy of a title that is being written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FillingCopy {
    /// The title's name.
    pub title: String,
    /// Number of the disk, from 0.
    pub disk: u16,
    /// Bytes written.
    pub done: u64,
    /// Bytes of the title; `null` until they are known.
    pub bytes: Option<u64>,
    /// The rate in bits per second for which time of the disk is kept; `null`: the writes use what
    /// is left over.
    pub kept_rate: Option<u64>,
    /// Whether it is to take the place of an outdated copy, which is served until then.
    #[serde(default)]
    pub replaces: bool,
}

/// An order that failed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedCopy {
    /// The title's name.
    pub title: String,
    /// Why, and what to do.
    pub message: String,
}

/// A store that is not served.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MissingStoreReport {
    /// The path.
    pub store: String,
    /// Why it could not be opened when it was last tried.
    pub reason: String,
}

/// One disk of a server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DiskReport {
    /// Path of the store on it.
    pub store: String,
    /// The store's uuid.
    pub uuid: String,
    /// Description of the read method.
    pub read_method: String,
    /// Bytes of the largest read.
    pub read_size: u64,
    /// Guaranteed reads per slot now.
    pub min_read: u32,
    /// Whether the guarantee is provisional: too little was stored on the disk to measure it.
    pub provisional: bool,
    /// Reads completed.
    pub reads: u64,
    /// Bytes read.
    pub bytes: u64,
    /// Reads that failed or were damaged.
    pub failures: u64,
    /// Reads in the device.
    pub in_flight: u32,
    /// Sessions that are read from it.
    pub sessions: u64,
    /// Whether the disk is lost: nothing is read from it, and it is probed from time to time.
    pub lost: bool,
    /// Why nothing more is written to the store, until the server is restarted; `null`: it is
    /// written to.
    #[serde(default)]
    pub write_failure: Option<String>,
    /// Whether the disk is drained: sessions leave it for copies on other disks.
    #[serde(default)]
    pub draining: bool,
    /// Recordings for which disk time is kept.
    #[serde(default)]
    pub recordings: u64,
    /// The part of the disk's time that is kept for their writes.
    #[serde(default)]
    pub recording_share: f64,
    /// By which part its reads lately take longer than calibrated: 0.25 is a quarter, 0 as
    /// calibrated.
    pub slowdown: f64,
    /// Seconds since the start for which the thread that reads it was ready to run and had no
    /// processor. They are no part of `slowdown`.
    #[serde(default)]
    pub thread_delay: f64,
    /// Mean rate, in bits per second, of the sessions that are read from the disk themselves and
    /// hold a reservation which newcomers cannot take.
    pub booked_rate: u64,
    /// The fewest reads that it completed in a slot in the last minutes, at most the guarantee.
    /// Only where admission counts reads.
    pub slowest_slot_reads: u32,
    /// The fewest reads that it completed in a slot in which it was never idle, in the last half
    /// hour of such slots; `null` before half a minute of them. Only where admission counts reads.
    pub observed_slot_reads: Option<u32>,
    /// The smallest slack of the schedule ahead, in reads.
    pub slack_reads: u64,
    /// Seconds of slack that the last admission left where the schedule is tightest; `null` where
    /// admission does not count disk time, or before the first admission.
    pub guaranteed_slack: Option<f64>,
    /// The regular reading of all its titles; `null` before the first.
    #[serde(default)]
    pub scrub: Option<Scrub>,
    /// Accuracy of a slowed disk (`--as-disk`, `--throttle`); `null` for a disk at its own speed.
    pub emulation: Option<EmulationLateness>,
    /// The last slots, oldest first.
    pub slots: Vec<SlotUse>,
}

/// By how many seconds a slowed disk completes reads later than its model. This part of a read's
/// lateness is caused by the emulation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EmulationLateness {
    /// Completed reads.
    pub requests: u64,
    /// The median.
    pub late_median: f64,
    /// The 99th percentile.
    pub late_p99: f64,
    /// The maximum.
    pub late_max: f64,
}

/// One slot of one disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlotUse {
    /// The slot's number, counted from the server's start.
    pub slot: u64,
    /// Reads completed in it.
    pub reads: u32,
    /// Reads completed in it whose pieces were due by its end; part of `reads`.
    #[serde(default)]
    pub due: u32,
    /// Reads completed in it whose pieces are due later; part of `reads`.
    #[serde(default)]
    pub ahead: u32,
    /// Pieces of best-effort work completed in it: ingest, export, check, scrub.
    #[serde(default)]
    pub best_effort: u32,
    /// Writes of recordings completed in it in the time that is kept for them.
    #[serde(default)]
    pub writes: u32,
    /// Guaranteed reads per slot at that time.
    pub min_read: u32,
    /// Sessions of the server that held a reservation at that time.
    pub active: u64,
}

/// A configuration that was read again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReloadReport {
    /// The options that have another value from now on.
    pub changed: Vec<String>,
    /// The options that keep their value until the server is started again.
    pub needs_restart: Vec<String>,
    /// New stores that are not there, so that the next start would be without them.
    #[serde(default)]
    pub missing_stores: Vec<MissingStoreReport>,
}

/// The sessions of a server (`/sessions`), or those of one subject, the oldest first.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SessionList {
    /// Number of all these sessions; at most 1,000 are listed.
    pub total: u64,
    /// The listed sessions.
    pub sessions: Vec<SessionReport>,
}

/// A session that an operator has begun.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StartedSession {
    /// The session's number, counted from the server's start.
    pub session: u64,
}

/// The sessions that an operator has ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EndedSessions {
    /// How many there were.
    pub ended: u64,
}

/// One session of a server. It does not contain the session's token.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SessionReport {
    /// The session's number, counted from the server's start.
    pub session: u64,
    /// Whether it is the fill of a cache, which lasts for one response.
    #[serde(default)]
    pub fill: bool,
    /// The title's name.
    pub title: String,
    /// Where it is sent, `ADDRESS:PORT`, if an operator has named an address; else `null`.
    #[serde(default)]
    pub sent_to: Option<String>,
    /// Whether it is a file of a mount that a program reads at a reserved rate.
    #[serde(default)]
    pub mount: bool,
    /// Path of the store that it is read from.
    pub store: String,
    /// The session's priority: `low`, `normal` or `high`.
    #[serde(default)]
    #[schemars(extend("enum" = words::priorities()))]
    pub priority: String,
    /// Whose access token began it, by its claim `sub`; `null` without one.
    #[serde(default)]
    pub subject: Option<String>,
    /// The own name of that token, its claim `jti`; `null` without one.
    #[serde(default)]
    pub token_id: Option<String>,
    /// When it ends, in seconds since 1970, as the service of `--auth-request` has said; `null`
    /// without such an end.
    #[serde(default)]
    pub until: Option<u64>,
    /// Seconds since its admission.
    pub age: f64,
    /// Seconds until the start that was promised to its player, which waits for it; `null` once the
    /// session has started.
    #[serde(default)]
    pub starts_in: Option<f64>,
    /// Seconds into what it plays (from its `start`, at its `speed`) at which a player is that has
    /// never paused; at most `delivered_until`. `null` while it holds no reservation, and for
    /// fills.
    #[serde(default)]
    pub position: Option<f64>,
    /// Seconds of what it plays that were delivered, by whole segments, of the tracks that its
    /// player has asked for; `null` as for `position`. The player has what is between `position`
    /// and this in its buffer.
    #[serde(default)]
    pub delivered_until: Option<f64>,
    /// Length of what it plays, in seconds.
    #[serde(default)]
    pub duration: f64,
    /// The picture that it has reserved; `null` where it has none.
    #[serde(default)]
    pub rendition: Option<SessionRendition>,
    /// Bytes read or being read for it that have not been delivered.
    pub buffered: u64,
    /// Bytes delivered.
    pub delivered: u64,
    /// Seconds of slack that admission left its reads, at the least, over all admissions during the
    /// session; `null` where admission does not count disk time, or before its first read.
    pub guaranteed_slack: Option<f64>,
    /// Seconds by which its reads were complete before they were due, at the least; `null` as for
    /// `guaranteed_slack`.
    pub observed_slack: Option<f64>,
    /// The session's reads completed after the slot in which they were due.
    pub guarantee_violations: Violations,
    /// The session's pieces in memory by their deadline.
    pub deadlines_met: u64,
    /// The session's pieces not in memory by their deadline.
    pub deadline_misses: u64,
    /// The longest time in seconds by which a piece was later in memory than its deadline; zero if
    /// none was.
    #[serde(default)]
    pub drift: f64,
    /// What its player reports of itself; `null` where it reports nothing.
    #[serde(default)]
    pub cmcd: Option<CmcdReport>,
}

/// The picture that a session has reserved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SessionRendition {
    /// Number of its track, as in the addresses of the title.
    pub track: u16,
    /// Width in pixels.
    pub width: u32,
    /// Height in pixels.
    pub height: u32,
    /// Mean rate in bits per second.
    pub bit_rate: u64,
}

/// What the player of a session reports of itself with its requests (CMCD, CTA-5004): the last of
/// each value; `null` where it has not reported one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CmcdReport {
    /// The player's name for the playback (`sid`).
    pub sid: Option<String>,
    /// The player's name for the content (`cid`).
    pub cid: Option<String>,
    /// Requests with a report.
    pub requests: u64,
    /// Requests which reported that the player's buffer had run empty (`bs`).
    pub starvations: u64,
    /// Seconds of media in the player's buffer (`bl`), of the picture if it names the track.
    pub buffer: Option<f64>,
    /// Seconds in which it needs what it requested (`dl`).
    pub deadline: Option<f64>,
    /// Bit rate of what it requested (`br`).
    pub bit_rate: Option<u64>,
    /// The highest bit rate that it may choose (`tb`).
    pub top_bit_rate: Option<u64>,
    /// Throughput that it measured, bits per second (`mtp`).
    pub throughput: Option<u64>,
    /// The speed at which it plays, 0 while it is paused (`pr`).
    pub speed: Option<f64>,
    /// Whether it needed its last request at once (`su`).
    pub startup: bool,
    /// Type of what it requested: `v` video, `a` audio, `av` both, `m` a playlist, `i` an
    /// initialization segment (`ot`).
    pub object: Option<String>,
    /// Format of the stream: `h` HLS, `d` DASH (`sf`).
    pub format: Option<String>,
}

/// The sessions of one title.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TitleSessions {
    /// The title's name.
    pub title: String,
    /// Number of sessions.
    pub sessions: u64,
    /// Viewers who are there: those have a reservation that newcomers cannot take. The other
    /// sessions are fills of caches and of other nodes, and those of viewers who have gone or
    /// pause.
    pub viewers: u64,
}
