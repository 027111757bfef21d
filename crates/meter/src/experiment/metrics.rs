//! The metrics endpoint of an experiment, which serves counters while its runs are in progress.

use crate::error::MeterError;
use crate::live::{Endpoint, Live};
use crate::observer::Observer;
use std::net::SocketAddr;
use std::sync::Arc;

/// Serves counters as OpenMetrics text, if the user wants it; clones share one endpoint.
#[derive(Clone)]
pub(super) struct MetricsServer(Option<Arc<Served>>);

struct Served {
    live: Arc<Live>,
    /// The endpoint, which answers until it is dropped.
    _endpoint: Endpoint,
}

impl MetricsServer {
    /// Opens the endpoint at `listen` and notes its address.
    pub(super) fn open(
        listen: Option<SocketAddr>,
        observer: &dyn Observer,
    ) -> Result<Self, MeterError> {
        let Some(listen) = listen else { return Ok(Self(None)) };
        let live = Arc::<Live>::default();
        let endpoint = Endpoint::open(listen, Arc::clone(&live)).map_err(|error| {
            MeterError::new(format!("cannot serve metrics at {listen}: {error}"))
                .hint("name an address of this machine and a port that is free, or port 0")
        })?;
        observer.note(&format!("metrics at http://{}/metrics", endpoint.address()));
        Ok(Self(Some(Arc::new(Served { live, _endpoint: endpoint }))))
    }

    /// The counters, if they are served.
    pub(super) fn live(&self) -> Option<&Live> {
        self.0.as_ref().map(|served| &*served.live)
    }
}
