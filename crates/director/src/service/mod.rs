//! The director as a service: viewers ask it for a title, and are sent to a node that has reserved.
//!
//! ```text
//!   viewer ──▶ HttpService ──▶ routes ──▶ admission ──▶ nodes ──▶ a node
//!                                │ request    ▲ │         transport, reply
//!                                │            │ WatchedCluster ◀── etcd
//!                             status, metrics │
//!   player of RTSP ──▶ ConnectionService ──▶ rtsp
//! ```
//!
//! A director has no state but its view, its counters, and what it wishes for the next minute
//! (`moves`). Any number of them run beside each other, with nothing between them, and a director
//! that has stopped is replaced by another at once.

mod admission;
mod caches;
mod counters;
mod metrics;
mod moves;
mod nodes;
mod pages;
mod reply;
mod request;
mod routes;
mod rtsp;
mod status;
mod steering;
mod transport;

pub use pages::{PageCheck, PageKind, PageRefusal};

use crate::etcd::EtcdConfig;
use crate::planning::{Planning, PlanningConfig, PlanningDirector};
use crate::secret::ClusterSecret;
use crate::unmet::UnmetDemand;
use crate::watching::{Say, WatchedCluster};
use admission::Admission;
use cluster::{ClusterName, DirectorSettings, Headroom};
use counters::ServiceCounters;
use http_service::{
    AcceptSetup, ConnectionService, HttpRequest, HttpService, OpenConnections, ServiceSetup,
    TlsFiles,
};
use nodes::Nodes;
use rtsp::RtspHandler;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use units::{Hinted, Reason};

/// What a director needs.
#[derive(Debug)]
pub struct ServiceConfig {
    /// Where viewers connect; port 0 takes any free port.
    pub listen: SocketAddr,
    /// Where players of RTSP connect; `None`: they do not.
    pub rtsp: Option<SocketAddr>,
    /// The certificate with which the director answers; `None`: it speaks in the clear.
    pub tls: Option<TlsFiles>,
    /// The etcd, and the cluster in it.
    pub etcd: EtcdConfig,
    /// The secret that the nodes of the cluster know.
    pub secret: ClusterSecret,
    /// What new viewers leave free, so that the loss of any one node is survived.
    pub headroom: Headroom,
    /// The part of each disk and network that new viewers leave free, for viewers whose node is
    /// lost.
    pub keep_free: f64,
    /// What the director needs to plan placement; `None`: others do, or nobody.
    pub planning: Option<PlanningConfig>,
    /// Who may see the status, the metrics and the list of titles; `None`: whoever can connect.
    pub check: Option<PageCheck>,
    /// The version that the status shows.
    pub version: String,
}

/// A director that runs. Dropped, it stops.
pub struct DirectorService {
    state: Arc<ServiceState>,
    address: SocketAddr,
    rtsp_address: Option<SocketAddr>,
    /// `None` from the moment at which the director stops.
    http: Option<HttpService>,
    /// `None` also where players of RTSP do not connect.
    rtsp: Option<ConnectionService>,
}

/// What the threads of a director share.
struct ServiceState {
    watched: Arc<WatchedCluster>,
    admission: Admission,
    planning: Option<Planning>,
    check: Option<PageCheck>,
    counters: ServiceCounters,
    open: Arc<OpenConnections>,
    cluster: ClusterName,
    version: String,
    /// Pages that are being made or sent.
    pages: Arc<AtomicUsize>,
    stopping: AtomicBool,
}

/// The right to make and send one page, which may be large.
struct PagePermit(Arc<AtomicUsize>);

impl Drop for PagePermit {
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
    fn page(&self) -> Option<PagePermit> {
        let before = self.pages.fetch_add(1, Ordering::AcqRel);
        let permit = PagePermit(Arc::clone(&self.pages));
        (before < MOST_PAGES).then_some(permit)
    }
}

impl DirectorService {
    /// Starts a director. `say` takes texts for whoever runs it: when etcd cannot be used, when it
    /// can again, and when a node does not take the director for one of its cluster.
    ///
    /// # Errors
    /// An address that cannot be listened at, a certificate that cannot be used, an etcd that
    /// cannot be used whatever it answers. One that does not answer is tried again.
    pub fn start(
        config: ServiceConfig,
        say: impl Fn(&str) + Send + Sync + 'static,
    ) -> Result<Self, Reason> {
        let say: Say = Arc::new(say);
        let (address, listener) = listen(config.listen)?;
        let rtsp = config.rtsp.map(listen).transpose()?;
        let of_tls = Arc::clone(&say);
        let tls = config.tls.map(|files| files.http_config(move |text| of_tls(text)));
        let tls = tls.transpose()?;
        let watched = WatchedCluster::start(&config.etcd, Arc::clone(&say))?;
        let of_secret = Arc::clone(&say);
        config.secret.tell_changes(move |text| of_secret(&format!("cluster secret: {text}")));
        let nodes = Nodes::new(config.secret);
        let unmet = Arc::new(UnmetDemand::new(Instant::now()));
        let settings = DirectorSettings {
            headroom: config.headroom,
            kept: config.keep_free,
            // Players move when they ask where to be, which is long after an attempt (`moves`).
            moves: 0,
            ..DirectorSettings::default()
        };
        let plan = |planning| {
            let (watched, say) = (Arc::clone(&watched), Arc::clone(&say));
            let unmet = Arc::clone(&unmet);
            let director = PlanningDirector::new(address, unmet, settings)?;
            Planning::start(&config.etcd, director, watched, planning, say)
        };
        let planning = config.planning.map(plan).transpose()?;
        let state = Arc::new(ServiceState {
            admission: Admission::new(Arc::clone(&watched), nodes, settings, unmet, say),
            watched,
            planning,
            check: config.check,
            counters: ServiceCounters::default(),
            open: Arc::new(OpenConnections::new(MOST_CONNECTIONS, MOST_OF_A_CLIENT)),
            cluster: config.etcd.cluster,
            version: config.version,
            pages: Arc::default(),
            stopping: AtomicBool::new(false),
        });
        let rtsp_address = rtsp.as_ref().map(|(address, _)| *address);
        let rtsp = rtsp.map(|(_, listener)| {
            let (thread, open, tls) = ("rtsp-viewer", Arc::clone(&state.open), tls.clone());
            let handler = RtspHandler(Arc::clone(&state));
            ConnectionService::start(listener, AcceptSetup { thread, open, tls }, handler)
        });
        let no_thread = |error: io::Error| error.reason().about("cannot start a thread");
        let rtsp = rtsp.transpose().map_err(no_thread)?;
        let setup = ServiceSetup {
            thread: "viewer",
            open: Arc::clone(&state.open),
            largest_body: 0,
            fields_of_all: "Access-Control-Allow-Origin: *\r\n\
                            Access-Control-Expose-Headers: Retry-After\r\n",
            tls,
        };
        let of_requests = Arc::clone(&state);
        let answer = move |request: &HttpRequest<'_>| routes::answer(&of_requests, request);
        let http = HttpService::start(listener, setup, answer).map_err(no_thread)?;
        Ok(Self { state, address, rtsp_address, http: Some(http), rtsp })
    }

    /// Where viewers connect.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where players of RTSP connect; `None`: they do not.
    pub fn rtsp_address(&self) -> Option<SocketAddr> {
        self.rtsp_address
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
        (self.http, self.rtsp) = (None, None);
        let start = Instant::now();
        while self.state.admission.is_busy() && start.elapsed() < TO_STOP {
            std::thread::sleep(LOOK_AGAIN);
        }
    }
}

fn listen(address: SocketAddr) -> Result<(SocketAddr, TcpListener), Reason> {
    let listener =
        TcpListener::bind(address).and_then(|listener| Ok((listener.local_addr()?, listener)));
    listener.map_err(|error| Reason::from(error.to_string()).about(address.to_string()))
}

/// Connections of all viewers.
const MOST_CONNECTIONS: usize = 4096;
/// Connections of one client.
const MOST_OF_A_CLIENT: usize = 512;
/// Pages at a time: a list of many titles has some megabytes.
const MOST_PAGES: usize = 8;
/// Time for the viewers who have asked, at the end.
const TO_STOP: Duration = Duration::from_secs(2);
/// Time between looks for the last of them.
const LOOK_AGAIN: Duration = Duration::from_millis(5);
