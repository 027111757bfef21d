//! The metrics endpoint of an experiment, which serves counters while its runs are in progress.

use crate::error::MeterError;
use crate::live::{Endpoint, Live};
use crate::observer::Observer;
use std::net::SocketAddr;
use std::sync::Arc;

/// Serves counters as OpenMetrics text, if the user wants it; clones share one endpoint.
#[derive(Clone)]
pub(super) struct MetricsServer(Option<Arc<Endpoint>>);

impl MetricsServer {
    /// Opens the endpoint at `listen` and notes its address.
    pub(super) fn open(
        listen: Option<SocketAddr>,
        observer: &dyn Observer,
    ) -> Result<Self, MeterError> {
        let Some(listen) = listen else { return Ok(Self(None)) };
        let endpoint = Endpoint::open(listen).map_err(|error| {
            MeterError::new(format!("cannot serve metrics at {listen}: {error}"))
                .hint("name an address of this machine and a port that is free, or port 0")
        })?;
        observer.note(&format!("metrics at http://{}/metrics", endpoint.address()));
        Ok(Self(Some(Arc::new(endpoint))))
    }

    /// The counters, if they are served.
    pub(super) fn live(&self) -> Option<&Live> {
        self.0.as_ref().map(|endpoint| endpoint.live())
    }
}
