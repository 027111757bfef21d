//! Measures the time of opening connections (TCP and TLS) separately from the time of requests.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use ureq::Error;
use ureq::unversioned::transport::{ConnectionDetails, Connector, Transport};

/// A connector that measures the time of its inner connector.
#[derive(Debug)]
pub(crate) struct Clocked<C> {
    inner: C,
    spent: Spent,
}

/// The time spent since the last call of [`Spent::take`], in nanoseconds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Spent(Arc<AtomicU64>);

impl<C> Clocked<C> {
    pub(crate) fn new(inner: C, spent: Spent) -> Self {
        Self { inner, spent }
    }
}

impl Spent {
    pub(crate) fn take(&self) -> Duration {
        Duration::from_nanos(self.0.swap(0, Ordering::Relaxed))
    }
}

impl<In: Transport, C: Connector<In>> Connector<In> for Clocked<C> {
    type Out = C::Out;

    fn connect(
        &self,
        details: &ConnectionDetails<'_>,
        chained: Option<In>,
    ) -> Result<Option<C::Out>, Error> {
        let begun = Instant::now();
        let made = self.inner.connect(details, chained);
        let nanos = units::nanos(begun.elapsed());
        self.spent.0.fetch_add(nanos, Ordering::Relaxed);
        made
    }
}
