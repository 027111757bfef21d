//! A lease that is renewed in time, and granted anew when it has ended.

use super::client::{EtcdClient, EtcdError, GrantedLease};
use std::time::{Duration, Instant};

/// A lease of etcd, as its holder may rely on it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HeldLease {
    pub(crate) id: u64,
    /// When the last renewal was sent.
    renewed: Instant,
    /// Until when the lease is valid: counted from the sending, because etcd renews it later.
    pub(crate) until: Instant,
}

/// The lease of one holder.
#[derive(Debug)]
pub(crate) struct LeaseKeeper {
    time: Duration,
    held: Option<HeldLease>,
}

/// Whether a lease is the one that was held before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LeaseAge {
    Kept,
    New,
}

impl LeaseKeeper {
    /// No lease yet; those to come are for so long.
    pub(crate) fn new(time: Duration) -> Self {
        Self { time, held: None }
    }

    /// The lease that was held last, whether it is valid or not.
    pub(crate) fn held(&self) -> Option<HeldLease> {
        self.held
    }

    /// Forgets the lease, which has ended.
    pub(crate) fn forget(&mut self) {
        self.held = None;
    }

    /// A lease that is valid: the present one, renewed after a third of its time, or a new one.
    pub(crate) fn hold(
        &mut self,
        client: &mut EtcdClient,
    ) -> Result<(HeldLease, LeaseAge), EtcdError> {
        let sent = Instant::now();
        if let Some(held) = self.held {
            if sent < held.renewed + self.time / 3 {
                return Ok((held, LeaseAge::Kept));
            }
            if let Some(time) = client.keep_alive(held.id)? {
                return Ok((self.take(GrantedLease { id: held.id, time }, sent), LeaseAge::Kept));
            }
            self.held = None;
        }
        let sent = Instant::now();
        let granted = client.grant(self.time)?;
        Ok((self.take(granted, sent), LeaseAge::New))
    }

    /// Gives the lease back, so that the records with it end now.
    pub(crate) fn leave(&mut self, client: &mut EtcdClient) {
        if let Some(held) = self.held.take() {
            // Where etcd does not answer, the lease ends by itself.
            let _ = client.revoke(held.id);
        }
    }

    fn take(&mut self, granted: GrantedLease, sent: Instant) -> HeldLease {
        let until = sent + granted.time.min(self.time);
        let held = HeldLease { id: granted.id, renewed: sent, until };
        self.held = Some(held);
        held
    }
}
