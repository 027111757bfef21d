//! What a server is told at its start, with the reason for each default.
//!
//! Plain values: reading them from a command line or a file is the program's work.

use scheduler::PolicyKind;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;
use units::{BitRate, ByteCount};

/// Everything [`crate::Server::start`] needs to know.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// The stores to serve: devices or files. Titles of one name that hold the same are copies of one;
    /// where they hold different things the first store's is served.
    pub stores: Vec<PathBuf>,
    /// Where viewers connect. Port 0 takes any free one; [`crate::Server::address`] tells which.
    pub listen: SocketAddr,
    /// Whom to let in.
    pub policy: PolicyKind,
    /// Let in only whom the loss of any one disk makes late for nothing, as far as its title is in
    /// two stores.
    pub survive_loss: bool,
    /// Memory for media in flight. Indexes of opened titles and sockets come on top.
    pub memory: ByteCount,
    /// What the network may carry; `None`: not admitted by network.
    pub network: Option<BitRate>,
    /// The scheduling period.
    pub slot: Duration,
    /// From admission until the first piece must be in memory. At least two slots.
    pub startup: Duration,
    /// Bytes of one read; `None`: chosen from the calibration, the titles and the memory.
    pub read_size: Option<ByteCount>,
    /// Length of an HLS segment, as nearly as the key frames allow.
    pub segment: Duration,
    /// Slow each store down to this rate.
    pub throttle: Option<BitRate>,
    /// Slow each store down to this disk model, seeks included.
    pub as_disk: Option<String>,
    /// Where to write one line per request; `-` is the standard error stream.
    pub access_log: Option<PathBuf>,
    /// Connections at once; one more is told so with a 503.
    pub max_connections: usize,
    /// Threads that speak HTTP; 0: one per core, at most [`MAX_HTTP_THREADS`].
    pub http_threads: usize,
    /// A viewer that takes nothing for this long, while there is something to take, is cut off.
    pub send_timeout: Duration,
    /// A request head must be complete this long after its first byte (and a new connection's
    /// first request this long after the connection).
    pub head_timeout: Duration,
    /// A connection without a request for this long is closed.
    pub idle_timeout: Duration,
    /// Memory for what opened titles need (indexes, packaging, playlists), least recently used
    /// first out.
    pub title_memory: ByteCount,
    /// A session that asks for nothing this long after its admission is ended.
    pub reservation_hold: Duration,
    /// A session that asks for nothing while this much media has fallen due gives back what it
    /// holds, and is admitted anew when it goes on.
    pub idle_after: Duration,
    /// A session that asks for nothing for this long is ended.
    pub ended_after: Duration,
}

/// Beyond this many, one core thread cannot feed them.
pub const MAX_HTTP_THREADS: usize = 16;

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            stores: Vec::new(),
            // Local only, until somebody decides that the world may look.
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 8080)),
            // Counts what the disk's time is known for, and reads elsewhere.
            policy: PolicyKind::TimeDomain,
            survive_loss: false,
            memory: ByteCount::mib(512),
            network: None,
            slot: Duration::from_millis(500),
            startup: Duration::from_secs(1),
            read_size: None,
            // Short enough to start soon and to switch, long enough that a segment of a film is
            // a few reads.
            segment: Duration::from_secs(4),
            throttle: None,
            as_disk: None,
            access_log: None,
            max_connections: 10_000,
            http_threads: 0,
            send_timeout: Duration::from_secs(20),
            head_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(60),
            title_memory: ByteCount::mib(256),
            // A player that read a master playlist asks for media within a second or two; a
            // person who pasted the address somewhere may not come at all.
            reservation_hold: Duration::from_secs(15),
            // Players buffer up to a minute ahead and then fetch a segment at a time; what is
            // silent for longer than a full buffer is paused.
            idle_after: Duration::from_secs(30),
            ended_after: Duration::from_secs(300),
        }
    }
}
