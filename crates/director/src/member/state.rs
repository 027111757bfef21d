//! What the member's thread knows and others ask for: the lease, and how it went.

use super::MemberStatus;
use crate::clock::ClockDifference;
use cluster::NodeOrders;
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use units::{locked, nanos};

/// The state that the member's thread and its owner share.
#[derive(Debug)]
pub(super) struct MemberState {
    start: Instant,
    /// Until when the lease of a registered node is valid, in nanoseconds from the start; 0 for a
    /// node that is not registered.
    valid_until: AtomicU64,
    writes: AtomicU64,
    shown: Mutex<ShownState>,
}

#[derive(Debug)]
struct ShownState {
    since: Instant,
    endpoint: String,
    error: Option<String>,
    clock: Option<ClockDifference>,
    orders: NodeOrders,
}

impl MemberState {
    pub(super) fn new(endpoint: String) -> Self {
        let start = Instant::now();
        let orders = NodeOrders::default();
        let shown = ShownState { since: start, endpoint, error: None, clock: None, orders };
        Self {
            start,
            valid_until: AtomicU64::new(0),
            writes: AtomicU64::new(0),
            shown: Mutex::new(shown),
        }
    }

    /// The node is registered, with a lease that is valid until then.
    pub(super) fn set_valid(&self, until: Instant) {
        let until = nanos(until.duration_since(self.start));
        if self.valid_until.swap(until, Ordering::Release) == 0 {
            locked(&self.shown).since = Instant::now();
        }
    }

    /// The node is not registered.
    pub(super) fn set_lost(&self) {
        if self.valid_until.swap(0, Ordering::Release) != 0 {
            locked(&self.shown).since = Instant::now();
        }
    }

    pub(super) fn set_asked(
        &self,
        endpoint: &str,
        error: Option<String>,
        clock: Option<ClockDifference>,
    ) {
        let mut shown = locked(&self.shown);
        if shown.endpoint != endpoint {
            endpoint.clone_into(&mut shown.endpoint);
        }
        (shown.error, shown.clock) = (error, clock);
    }

    pub(super) fn set_orders(&self, orders: NodeOrders) {
        locked(&self.shown).orders = orders;
    }

    pub(super) fn orders(&self) -> NodeOrders {
        locked(&self.shown).orders.clone()
    }

    pub(super) fn remaining_viewers(&self) -> BTreeMap<String, u32> {
        let shown = locked(&self.shown);
        let remain = shown.orders.remain.iter();
        remain.map(|(title, count)| (title.as_str().to_owned(), *count)).collect()
    }

    pub(super) fn count_write(&self) {
        self.writes.fetch_add(1, Ordering::Relaxed);
    }

    /// Time that is left of the lease.
    pub(super) fn remaining(&self) -> Duration {
        let until = self.valid_until.load(Ordering::Acquire);
        Duration::from_nanos(until.saturating_sub(nanos(self.start.elapsed())))
    }

    pub(super) fn status(&self) -> MemberStatus {
        let remaining = self.remaining();
        let shown = locked(&self.shown);
        MemberStatus {
            registered: !remaining.is_zero(),
            since: shown.since,
            lease_remaining: remaining,
            etcd_endpoint: shown.endpoint.clone(),
            last_error: shown.error.clone(),
            writes: self.writes.load(Ordering::Relaxed),
            clock: shown.clock,
        }
    }
}
