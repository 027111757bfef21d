//! A node as a member of its cluster: it holds a lease in etcd and writes its records.
//!
//! ```text
//!   start ──▶ grant a lease ──▶ put nodes/NODE, if nobody has it ──▶ registered
//!                 ▲                   │ somebody has it: say so, try again      │
//!                 └── lost: grant again, put everything again ◀────────────────┤
//!                                                     each second: what changed ┘
//! ```
//!
//! One thread does all of it (`registration`): renewals and writes one after the other, with time
//! limits that leave a lease several tries. What is written is in `changes`.

mod changes;
mod registration;
mod state;
#[cfg(test)]
mod tests;

use crate::clock::{ClockDifference, SYNCHRONISE};
use crate::etcd::EtcdConfig;
use cluster::{CopyRecord, NodeDigest, NodeId, NodeOrders, TitleName, TitleSize};
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};
use registration::Registration;
use state::MemberState;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};
use units::Reason;

/// What a node needs to be a member.
#[derive(Clone, Debug)]
pub struct MemberConfig {
    /// The etcd, and the cluster in it.
    pub etcd: EtcdConfig,
    /// The name of the node, which no other node of the cluster has.
    pub node: NodeId,
    /// Time for which the node stays registered without a sign of life, in whole seconds.
    pub lease: Duration,
}

/// What a node shows to its cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct MemberRecords {
    /// What the node has free. The lease in it is replaced by that of the member.
    pub digest: NodeDigest,
    /// The copies on the disks of the node, by title.
    pub copies: BTreeMap<TitleName, Vec<CopyRecord>>,
    /// What the node knows of the titles that it has.
    pub titles: BTreeMap<TitleName, TitleSize>,
    /// The viewers of titles at this moment; titles without any are left out.
    pub viewers: BTreeMap<TitleName, u32>,
}

/// A change of the member's state, said once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MemberMessage {
    /// The node is registered: directors send viewers.
    Registered {
        /// The member of etcd that said so.
        etcd: String,
    },
    /// The node is not registered any more, for this reason; it tries again.
    Lost(String),
    /// Another node of this name is registered; it tries again.
    NameTaken,
    /// The records of the cluster are of another format or of another cluster: nothing is written.
    Unusable(String),
    /// etcd does not answer or refuses, for this reason; it tries again.
    Unreachable(String),
    /// The clock of etcd is this far from the clock of the node, which changes nothing of the
    /// registration.
    ClocksDiffer {
        /// The member of etcd that said its time.
        etcd: String,
        /// How far its clock is ahead.
        difference: ClockDifference,
    },
}

/// The state of a member.
#[derive(Clone, Debug)]
pub struct MemberStatus {
    /// Whether the lease is valid now.
    pub registered: bool,
    /// When the node was registered, or was lost, last.
    pub since: Instant,
    /// Time that is left of the lease; zero where there is none.
    pub lease_remaining: Duration,
    /// The member of etcd that is asked.
    pub etcd_endpoint: String,
    /// Why the last request or registration failed; `None` after one that did not.
    pub last_error: Option<String>,
    /// Transactions that changed records.
    pub writes: u64,
    /// How far the clock of etcd is ahead of this machine's; `None` where etcd did not say its
    /// time.
    pub clock: Option<ClockDifference>,
}

/// A node in its cluster, with a thread that keeps it there. Dropped, it leaves the cluster.
#[derive(Debug)]
pub struct Member {
    state: Arc<MemberState>,
    /// Dropped to end the thread.
    running: Option<Sender<()>>,
    /// Disconnected when the thread has ended.
    ended: Receiver<()>,
}

impl Member {
    /// Starts the thread. `records` is called about once a second, and what has changed is
    /// written. `say` hears of changes of the state, each once.
    ///
    /// # Errors
    /// A lease that is not from 2 s to 10 min in whole seconds, no endpoint, or no certificates for
    /// an endpoint with TLS. An etcd that does not answer is none: it is tried again.
    pub fn start(
        config: MemberConfig,
        mut records: impl FnMut() -> MemberRecords + Send + 'static,
        say: impl FnMut(MemberMessage) + Send + 'static,
    ) -> Result<Self, Reason> {
        let lease = config.lease;
        if lease < SHORTEST_LEASE || lease > LONGEST_LEASE || lease.subsec_nanos() != 0 {
            return Err("the lease of a node has from 2 s to 10 min, in whole seconds".into());
        }
        let mut registration = Registration::new(config, Box::new(say))?;
        let state = registration.state();
        let (running, stop) = bounded(0);
        let (ending, ended) = bounded(0);
        let keep = move || {
            // Dropped at the end, however the thread ends.
            let _ending: Sender<()> = ending;
            loop {
                let pause = registration.pass(&mut records);
                if stop.recv_timeout(pause) != Err(RecvTimeoutError::Timeout) {
                    return registration.leave();
                }
            }
        };
        std::thread::Builder::new()
            .name("member".to_owned())
            .spawn(keep)
            .map_err(|error| Reason::from(format!("cannot start a thread: {error}")))?;
        Ok(Self { state, running: Some(running), ended })
    }

    /// Whether the lease of the node is valid now, by the monotonic clock and from the moment at
    /// which its last renewal was sent. A node that was stopped or cut off is not registered.
    pub fn is_registered(&self) -> bool {
        !self.state.remaining().is_zero()
    }

    /// What the node should do, as it was a few seconds ago at most while etcd answers; nothing
    /// where the node is not registered.
    pub fn orders(&self) -> NodeOrders {
        if self.is_registered() { self.state.orders() } else { NodeOrders::default() }
    }

    /// The viewers that remain of each title, as [`Self::orders`] say; empty for a node that is not
    /// drained.
    pub fn remaining_viewers(&self) -> BTreeMap<String, u32> {
        if self.is_registered() { self.state.remaining_viewers() } else { BTreeMap::new() }
    }

    /// The state.
    pub fn status(&self) -> MemberStatus {
        self.state.status()
    }

    /// Leaves the cluster, so that directors stop sending at once. Takes 2 s at most.
    pub fn stop(self) {}
}

impl Drop for Member {
    fn drop(&mut self) {
        self.state.set_lost();
        self.running = None;
        // Where etcd does not answer for that long, the lease ends by itself.
        let _ = self.ended.recv_timeout(TO_LEAVE);
    }
}

/// Shortest lease: a renewal at a third of it can fail once.
const SHORTEST_LEASE: Duration = Duration::from_secs(2);
/// Longest lease: a lost node is sent viewers for that long.
const LONGEST_LEASE: Duration = Duration::from_secs(600);
/// Time for leaving, at most.
const TO_LEAVE: Duration = Duration::from_secs(2);

impl fmt::Display for MemberMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Registered { etcd } => write!(f, "registered in the cluster, at {etcd}"),
            Self::Lost(why) => write!(f, "not registered in the cluster any more: {why}"),
            Self::NameTaken => f.write_str("another node of this name is registered"),
            Self::Unusable(why) => write!(f, "the records of the cluster cannot be used: {why}"),
            Self::Unreachable(why) => write!(f, "etcd cannot be used: {why}"),
            Self::ClocksDiffer { etcd, difference } => {
                write!(f, "the clock of etcd, {etcd}, is {difference} this one's; {SYNCHRONISE}")
            }
        }
    }
}
