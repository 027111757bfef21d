//! `--metrics`: what runs come to while they are on.

use crate::cli::Args;
use crate::failure::Failure;
use crate::out;
use meter::live::{Endpoint, Live};
use std::net::SocketAddr;
use std::sync::Arc;

/// Counts, if anybody wants to know.
#[derive(Clone)]
pub(super) struct Metrics(Option<Arc<Served>>);

struct Served {
    live: Arc<Live>,
    /// Answers as long as it is there.
    _endpoint: Endpoint,
}

impl Metrics {
    /// Serves them where the command line says; says where that is.
    pub(super) fn serve(args: &Args<'_>) -> Result<Self, Failure> {
        let Some(listen) = args.maybe::<SocketAddr>("metrics") else { return Ok(Self(None)) };
        let live = Arc::<Live>::default();
        let endpoint = Endpoint::open(listen, Arc::clone(&live)).map_err(|error| {
            Failure::new(format!("cannot serve metrics at {listen}: {error}"))
                .hint("name an address of this machine and a port that is free, or port 0")
        })?;
        out::note(&format!("metrics at http://{}/metrics", endpoint.address()));
        Ok(Self(Some(Arc::new(Served { live, _endpoint: endpoint }))))
    }

    /// Who counts.
    pub(super) fn live(&self) -> Option<&Live> {
        self.0.as_ref().map(|served| &*served.live)
    }
}
