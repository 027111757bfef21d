//! The configuration of a server, with the reason for each default.

use crate::address_prefix::AddressPrefix;
use crate::copy_source::CopySource;
use crate::telemetry::OtlpTarget;
use cluster::{ClusterName, NodeId};
use director::etcd::{EtcdAccess, EtcdAddress};
use disk::DiskModel;
use http_service::TlsFiles;
use scheduler::PolicyKind;
use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;
use store::ReservedRate;
use units::{BitRate, ByteCount, Reason};

/// The configuration of [`crate::Server::start`].
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// The stores to serve: devices or files. Titles of the same name and content are copies of one
    /// title; where the content differs, the first store's title is served.
    pub stores: Vec<PathBuf>,
    /// The address to listen on. Port 0 takes any free port, which [`crate::Server::address`]
    /// returns.
    pub listen: SocketAddr,
    /// The address for RTSP; `None`: no RTSP. Port 0 takes any free port, which
    /// [`crate::Server::rtsp_address`] returns.
    pub rtsp: Option<SocketAddr>,
    /// The admission policy.
    pub policy: PolicyKind,
    /// Whether admission also guarantees sessions of titles in two stores for the loss of any one
    /// disk.
    pub survive_loss: bool,
    /// Memory for read buffers; `None`: a quarter of the memory that the process may use. Indexes
    /// of open titles and sockets use further memory.
    pub memory: Option<ByteCount>,
    /// The rate that sessions may reserve of the network together; `None` for no limit.
    pub network: Option<BitRate>,
    /// The scheduling period.
    pub slot: Duration,
    /// Time from admission until the first piece must be in memory. At least two slots.
    pub startup: Duration,
    /// How long a player waits for its admission that does not say so itself (`?wait=`): at most
    /// [`ServerConfig::LONGEST_WAIT`].
    pub wait: Duration,
    /// Bytes of one read; `None`: chosen from the calibration, the titles and the memory.
    pub read_size: Option<ByteCount>,
    /// Length of an HLS segment; segments end at the nearest key frame.
    pub segment: Duration,
    /// Age from which a calibration is measured again at a quiet time, as a provisional one is when
    /// more was stored; `None`: none is ever measured again while the server runs.
    pub recalibrate_after: Option<Duration>,
    /// Period in which all titles of each store are read once and compared with their checksums,
    /// in disk time that no session has reserved; `None`: they are not.
    pub scrub: Option<Duration>,
    /// Slow each store down to this rate.
    pub throttle: Option<BitRate>,
    /// Slow each store down to this disk model, seeks included.
    pub as_disk: Option<DiskModel>,
    /// Read stores through the kernel's page cache. Their disks then have no guarantee, so that the
    /// policy must be `none`.
    pub buffered: bool,
    /// The certificate with which the server answers over TLS on both addresses; `None`: it answers
    /// in the clear.
    pub tls: Option<TlsFiles>,
    /// Whether clients may speak HTTP/2 over TLS.
    pub http2: bool,
    /// Whether it may listen on a public address without TLS or without tokens.
    pub insecure: bool,
    /// The most fills of caches in front at a time, of media under addresses without sessions;
    /// `None`: there are no such addresses.
    pub fills: Option<u32>,
    /// The JSON Web Key Set of the tokens that admit viewers; `None`: everybody is admitted.
    pub tokens: Option<PathBuf>,
    /// The directory in which uploaded files are until they are ingested; `None`: there are no
    /// uploads.
    pub uploads: Option<PathBuf>,
    /// The beginnings of addresses that titles may be ingested from, by way of the directory of
    /// uploads; empty: there are no such addresses.
    pub ingest_from: Vec<AddressPrefix>,
    /// The directory in which the process of the server mounts its stores.
    pub mount: Option<PathBuf>,
    /// The rate at which files of the mounts are read, as far as it is admitted.
    pub mount_rate: Option<ReservedRate>,
    /// The directory for the bytes of files that are being written to the mounts.
    pub mount_spool: PathBuf,
    /// Where events are sent; `None`: nowhere.
    pub webhook: Option<WebhookTarget>,
    /// The service that is asked whether a viewer may begin; `None`: none is.
    pub auth_request: Option<AuthRequestTarget>,
    /// The collector that gets spans of sessions and lines of the log; `None`: none does.
    pub otlp: Option<OtlpTarget>,
    /// The cluster whose node the server is; `None`: it is alone.
    pub cluster: Option<ClusterConfig>,
    /// Where a node gets the copies of titles that placement orders; `None`: it carries out no
    /// orders.
    pub copies: Option<CopySource>,
    /// The file of the keys with which titles are encrypted; `None`: all are sent in the clear.
    pub title_keys: Option<PathBuf>,
    /// The file of the log; `-` is the standard error stream.
    pub access_log: Option<PathBuf>,
    /// Time for which viewers may continue after a request to stop, where that does not say.
    pub grace: Duration,
    /// The most connections at a time; further ones are answered with a 503.
    pub max_connections: usize,
    /// The most connections of one client at a time; further ones are answered with a 429. A client
    /// is an IPv4 address or an IPv6 network of 64 bits. `None`: 1,000, and no limit for this
    /// machine.
    pub max_client_connections: Option<usize>,
    /// The most sessions of one client that have played nothing yet; further admission requests are
    /// answered with a 429. `None`: 16, and no limit for this machine.
    pub max_client_unplayed: Option<usize>,
    /// Number of HTTP threads; 0 for one per core, at most [`MAX_HTTP_THREADS`].
    pub http_threads: usize,
    /// A connection is closed when its peer takes fewer than 16 KiB of a response in this time.
    pub send_timeout: Duration,
    /// The time for a request head, from its first byte (on a new connection, from its start).
    pub head_timeout: Duration,
    /// A connection is closed after this long without a request.
    pub idle_timeout: Duration,
    /// An RTSP session ends when its player is silent for this long, except while it plays over its
    /// connection.
    pub rtsp_timeout: Duration,
    /// Memory for open titles (indexes, packaging, playlists); the least recently used is evicted.
    pub title_memory: ByteCount,
    /// A session ends when it makes no request for this long after its admission.
    pub reservation_hold: Duration,
    /// A session's reservation is released when it makes no request while this much media falls
    /// due; its next request needs a new admission.
    pub idle_after: Duration,
    /// A session ends when it makes no request for this long.
    pub session_timeout: Duration,
}

/// Where events are sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookTarget {
    /// An address of HTTP or HTTPS.
    pub url: String,
    /// A file with the secret that requests are signed with; `None`: they are not signed.
    pub secret: Option<PathBuf>,
}

/// A service that is asked whether a viewer may begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuthRequestTarget {
    /// An address of HTTP or HTTPS.
    pub url: String,
    /// The longest time that a viewer waits for the answer.
    pub timeout: Duration,
    /// What becomes of a viewer for whom there is no answer.
    pub unanswered: Unanswered,
    /// A file with the secret that questions are signed with; `None`: they are not signed.
    pub secret: Option<PathBuf>,
}

/// What becomes of a viewer for whom a service gives no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unanswered {
    /// The viewer is refused.
    Refuse,
    /// The viewer may begin.
    Allow,
}

/// A server's place in a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterConfig {
    /// The members of etcd.
    pub etcd: Vec<EtcdAddress>,
    /// What etcd is shown of the node.
    pub etcd_access: EtcdAccess,
    /// The name of the cluster.
    pub name: ClusterName,
    /// The name of the node, which no other node of the cluster has.
    pub node: NodeId,
    /// Where viewers reach the node: the beginning of its addresses.
    pub address: String,
    /// Where viewers reach it over RTSP; `None`: at the host of `address` and the port of `rtsp`.
    pub rtsp_address: Option<String>,
    /// What fails together with the node; `None`: nothing that is known.
    pub rack: Option<String>,
    /// The file with the secret that nodes and directors share.
    pub secret: PathBuf,
}

/// The most HTTP threads: one core thread cannot supply more.
pub const MAX_HTTP_THREADS: usize = 16;

impl ServerConfig {
    /// The longest time that a player may wait for its admission: players give up on a manifest
    /// after about half a minute.
    pub const LONGEST_WAIT: Duration = Duration::from_secs(30);

    /// Checks options that exclude each other. `memory`: what the buffers would get.
    pub(crate) fn check(&self, memory: ByteCount) -> Result<(), Reason> {
        let refuse = |why: &str| Err(Reason::from(why));
        let refuse_with = |why: &str, hint: &str| Err(Reason::new(why, hint));
        if self.stores.is_empty() {
            return refuse("there is no store to serve");
        }
        if self.stores.len() > MAX_STORES {
            return refuse("more stores than one server can serve (256)");
        }
        let places = self.stores.iter().map(|path| path.canonicalize().unwrap_or(path.clone()));
        let mut known = BTreeSet::new();
        for (path, place) in self.stores.iter().zip(places) {
            if !known.insert(place) {
                return refuse(&format!("the store {} is named twice", path.display()));
            }
        }
        if self.rtsp.is_some_and(|rtsp| are_one_socket(rtsp, self.listen)) {
            let why = format!("--rtsp and --listen have one port, {}", self.listen.port());
            return refuse_with(&why, "choose another for one of them");
        }
        if self.survive_loss && self.stores.len() < 2 {
            return refuse_with("--survive-loss needs a second store", "name one on another disk");
        }
        if self.survive_loss && self.policy == PolicyKind::None {
            let why = "--survive-loss needs a policy that guarantees";
            return refuse_with(why, "choose another than none");
        }
        if self.buffered && self.policy != PolicyKind::None {
            let why = "--buffered guarantees nothing: what is in the page cache is not known";
            return refuse_with(why, "add --admission none, or leave out --buffered");
        }
        if self.buffered && (self.throttle.is_some() || self.as_disk.is_some()) {
            let why = "--buffered reads at the speed of the page cache and of the disk";
            return refuse_with(why, "leave out --throttle and --as-disk, or --buffered");
        }
        if self.slot < SHORTEST_SLOT || self.slot > LONGEST_SLOT {
            return refuse("a slot must be from 10 ms to 1 min");
        }
        if self.segment < SHORTEST_SEGMENT {
            return refuse("a segment must be at least 100 ms");
        }
        let nothing = Some(BitRate(0));
        if self.network == nothing || self.throttle == nothing {
            let option = if self.network == nothing { "network" } else { "throttle" };
            let why = format!("--{option} 0 serves nobody");
            return refuse_with(&why, "leave it out for no limit");
        }
        // Without a configured size a calibration chooses it, and `pool` checks the memory again.
        let read = self.read_size.unwrap_or(ByteCount::MIB).0;
        if !read.is_power_of_two() || !(media::CHECKSUM_SPAN..=LARGEST_READ.0).contains(&read) {
            return refuse("a read size must be a power of two from 64 KiB to 16 MiB");
        }
        if memory.0 / (self.stores.len() as u64) < 8 * read {
            return refuse_with(
                "the memory must be at least 8 reads for each store",
                "raise --memory",
            );
        }
        Ok(())
    }
}

// Whether two sockets cannot both listen: on one port of one address, or of all.
fn are_one_socket(one: SocketAddr, other: SocketAddr) -> bool {
    let is_all = one.ip().is_unspecified() || other.ip().is_unspecified();
    one.port() != 0 && one.port() == other.port() && (is_all || one.ip() == other.ip())
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            stores: Vec::new(),
            // Local only: serving to a network is the operator's decision.
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 8080)),
            rtsp: None,
            // Counts disk time where the disk's times are known, and reads elsewhere.
            policy: PolicyKind::TimeDomain,
            survive_loss: false,
            memory: None,
            network: None,
            slot: Duration::from_millis(500),
            startup: Duration::from_secs(1),
            // Players wait longer than this for a manifest: ExoPlayer 8 s, hls.js 10 or 20 s by
            // version, GStreamer 15 s, others longer. A second or two remain for the way.
            wait: Duration::from_secs(5),
            read_size: None,
            // Short enough for a quick start and for switching, long enough that a segment of a
            // film is a few reads.
            segment: Duration::from_secs(4),
            // A disk that wears out does so over months; a week costs a minute of its idle time.
            recalibrate_after: Some(Duration::from_secs(7 * 24 * 3600)),
            // Monthly, as Linux distributions read RAID arrays and ZFS pools: 8 MB/s on a disk of
            // 20 TB.
            scrub: Some(Duration::from_secs(30 * 24 * 3600)),
            throttle: None,
            as_disk: None,
            buffered: false,
            tls: None,
            // Browsers ask for it, and go on over one connection.
            http2: true,
            insecure: false,
            fills: None,
            tokens: None,
            uploads: None,
            ingest_from: Vec::new(),
            mount: None,
            mount_rate: None,
            mount_spool: "/var/tmp".into(),
            webhook: None,
            auth_request: None,
            otlp: None,
            cluster: None,
            copies: None,
            title_keys: None,
            access_log: None,
            grace: Duration::from_secs(10),
            max_connections: 10_000,
            max_client_connections: None,
            max_client_unplayed: None,
            http_threads: 0,
            send_timeout: Duration::from_secs(20),
            head_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(60),
            // The default of RFC 2326; players send something every half of it.
            rtsp_timeout: Duration::from_secs(60),
            title_memory: ByteCount::mib(256),
            // A player requests media within a second or two of the master playlist; other clients
            // that fetch the playlist may never request any.
            reservation_hold: Duration::from_secs(15),
            // Players buffer up to a minute ahead and then fetch a segment at a time; one that is
            // silent for longer is paused.
            idle_after: Duration::from_secs(30),
            session_timeout: Duration::from_secs(300),
        }
    }
}

/// A disk's number has 16 bits; no machine has more disks than this.
const MAX_STORES: usize = 256;
const SHORTEST_SLOT: Duration = Duration::from_millis(10);
const LONGEST_SLOT: Duration = Duration::from_secs(60);
/// A few pictures: players ask for each segment by itself.
const SHORTEST_SEGMENT: Duration = Duration::from_millis(100);
const LARGEST_READ: ByteCount = ByteCount::mib(16);
