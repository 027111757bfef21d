//! The director as a service: viewers ask it for a title, and are sent to a node that has reserved.
//!
//! ```text
//!   viewer ──▶ connections ──▶ routes ──▶ admission ──▶ nodes ──▶ a node
//!                  │             │            │           transport, reply
//!               request          │         WatchedCluster ◀── etcd
//!               answer        status, metrics
//! ```
//!
//! A director has no state but its view and its counters. Any number of them run beside each other,
//! with nothing between them, and a director that has stopped is replaced by another at once.

mod admission;
mod answer;
mod connections;
mod counters;
mod metrics;
mod nodes;
mod reply;
mod request;
mod routes;
mod status;
mod steering;
mod transport;

use crate::etcd::EtcdConfig;
use crate::planning::{Planning, PlanningConfig, PlanningDirector};
use crate::secret::ClusterSecret;
use crate::unmet::UnmetDemand;
use crate::watching::{Say, WatchedCluster};
use admission::Admission;
use cluster::{ClusterName, DirectorSettings};
use connections::OpenConnections;
use counters::ServiceCounters;
use nodes::Nodes;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use units::Reason;

/// What a director needs.
#[derive(Debug)]
pub struct ServiceConfig {
    /// Where viewers connect; port 0 takes any free port.
    pub listen: SocketAddr,
    /// The etcd, and the cluster in it.
    pub etcd: EtcdConfig,
    /// The secret that the nodes of the cluster know.
    pub secret: ClusterSecret,
    /// Whether new viewers leave enough free for the streams of any one node.
    pub survive_loss: bool,
    /// The part of each disk and network that new viewers leave free, for viewers whose node is
    /// lost.
    pub keep_free: f64,
    /// What the director needs to plan placement; `None`: others do, or nobody.
    pub planning: Option<PlanningConfig>,
    /// The version that the status shows.
    pub version: String,
}

/// A director that runs. Dropped, it stops.
pub struct DirectorService {
    state: Arc<ServiceState>,
    address: SocketAddr,
    accepting: Option<JoinHandle<()>>,
}

/// What the threads of a director share.
struct ServiceState {
    watched: Arc<WatchedCluster>,
    admission: Admission,
    planning: Option<Planning>,
    counters: ServiceCounters,
    open: OpenConnections,
    cluster: ClusterName,
    version: String,
    /// Pages that are being made or sent.
    pages: AtomicUsize,
    stopping: AtomicBool,
}

/// The right to make and send one page, which may be large.
struct PagePermit<'a>(&'a AtomicUsize);

impl Drop for PagePermit<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

impl ServiceState {
    fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    fn connections(&self) -> usize {
        self.open.count()
    }

    /// The right to a page; `None` while there are as many as may be.
    fn page(&self) -> Option<PagePermit<'_>> {
        let before = self.pages.fetch_add(1, Ordering::AcqRel);
        let permit = PagePermit(&self.pages);
        (before < MOST_PAGES).then_some(permit)
    }
}

impl DirectorService {
    /// Starts a director. `say` takes texts for whoever runs it: when etcd cannot be used, when it
    /// can again, and when a node does not take the director for one of its cluster.
    ///
    /// # Errors
    /// An address that cannot be listened at, and an etcd that cannot be used whatever it answers.
    /// One that does not answer is tried again.
    pub fn start(
        config: ServiceConfig,
        say: impl Fn(&str) + Send + Sync + 'static,
    ) -> Result<Self, Reason> {
        let say: Say = Arc::new(say);
        let listener = TcpListener::bind(config.listen)
            .and_then(|listener| Ok((listener.local_addr()?, listener)));
        let (address, listener) = listener
            .map_err(|error| Reason::from(error.to_string()).about(config.listen.to_string()))?;
        let watched = WatchedCluster::start(&config.etcd, Arc::clone(&say))?;
        let nodes = Nodes::new(config.secret);
        let unmet = Arc::new(UnmetDemand::new(Instant::now()));
        let plan = |planning| {
            let (watched, say) = (Arc::clone(&watched), Arc::clone(&say));
            let director =
                PlanningDirector { address: address.to_string(), unmet: Arc::clone(&unmet) };
            Planning::start(&config.etcd, director, watched, planning, say)
        };
        let planning = config.planning.map(plan).transpose()?;
        let settings = DirectorSettings {
            survive_node: config.survive_loss,
            kept: config.keep_free,
            // Viewers are not moved: a node answers questions about its own viewers only.
            moves: 0,
            ..DirectorSettings::default()
        };
        let state = Arc::new(ServiceState {
            admission: Admission::new(Arc::clone(&watched), nodes, settings, unmet, say),
            watched,
            planning,
            counters: ServiceCounters::default(),
            open: OpenConnections::default(),
            cluster: config.etcd.cluster,
            version: config.version,
            pages: AtomicUsize::new(0),
            stopping: AtomicBool::new(false),
        });
        let of_thread = Arc::clone(&state);
        let accepting = std::thread::Builder::new()
            .name("accept".to_owned())
            .spawn(move || connections::accept(&listener, &of_thread))
            .map_err(|error| Reason::from(format!("cannot start a thread: {error}")))?;
        Ok(Self { state, address, accepting: Some(accepting) })
    }

    /// Where viewers connect.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Whether the records of the cluster were listed, so that viewers can be admitted.
    pub fn is_ready(&self) -> bool {
        self.state.watched.is_listed()
    }

    /// Accepts nobody any more, and waits for the viewers who have asked, 2 s at most.
    pub fn stop(self) {}
}

impl Drop for DirectorService {
    fn drop(&mut self) {
        self.state.stopping.store(true, Ordering::Release);
        let Some(accepting) = self.accepting.take() else { return };
        let here: IpAddr = match self.address {
            SocketAddr::V4(_) if self.address.ip().is_unspecified() => Ipv4Addr::LOCALHOST.into(),
            SocketAddr::V6(_) if self.address.ip().is_unspecified() => Ipv6Addr::LOCALHOST.into(),
            address => address.ip(),
        };
        // The connection ends the wait of the thread that accepts.
        let at = SocketAddr::new(here, self.address.port());
        if TcpStream::connect_timeout(&at, TO_STOP).is_ok() {
            let _ = accepting.join();
        }
        let start = Instant::now();
        while self.state.admission.is_busy() && start.elapsed() < TO_STOP {
            std::thread::sleep(LOOK_AGAIN);
        }
    }
}

/// Pages at a time: a list of many titles has some megabytes.
const MOST_PAGES: usize = 8;
/// Time for the viewers who have asked, at the end.
const TO_STOP: Duration = Duration::from_secs(2);
/// Time between looks for the last of them.
const LOOK_AGAIN: Duration = Duration::from_millis(5);
