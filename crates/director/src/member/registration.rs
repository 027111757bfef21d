//! The registration of a node: one pass after the other over lease, name and records.
//!
//! ```text
//!   pass:  no lease ─────────────▶ grant
//!          a third of it is over ▶ keep alive ──has ended──▶ lost; grant
//!          not registered ───────▶ format, then nodes/NODE if nobody has it ──▶ registered
//!          registered ───────────▶ what has changed, if nodes/NODE is still ours; orders
//! ```
//!
//! Every write has the condition that the node's key is held by the node's lease, so that a node
//! which was away for long writes nothing over another of its name.

use super::changes::{PendingWrite, WrittenRecords};
use super::state::MemberState;
use super::{MemberConfig, MemberMessage, MemberRecords};
use crate::etcd::{
    Condition, EtcdClient, EtcdError, FormatFailure, HeldLease, LeaseAge, LeaseKeeper, RecordWrite,
    hold_format,
};
use cluster::{ClusterChange, NodeOrders};
use std::sync::Arc;
use std::time::{Duration, Instant};
use units::Reason;

/// A node on the way to its cluster, or in it.
pub(super) struct Registration {
    config: MemberConfig,
    client: EtcdClient,
    node_key: String,
    state: Arc<MemberState>,
    lease: LeaseKeeper,
    is_registered: bool,
    written: WrittenRecords,
    /// When the orders were read.
    asked_orders: Option<Instant>,
    /// The last message, so that none is said twice in a row.
    said: Option<MemberMessage>,
    /// Whether it was said that clocks differ.
    clocks_differ: bool,
    say: Box<dyn FnMut(MemberMessage) + Send>,
}

/// A pass that did not get to its end.
enum PassError {
    Etcd(EtcdError),
    NameTaken,
    Unusable(String),
}

impl From<EtcdError> for PassError {
    fn from(error: EtcdError) -> Self {
        Self::Etcd(error)
    }
}

impl From<FormatFailure> for PassError {
    fn from(failure: FormatFailure) -> Self {
        match failure {
            FormatFailure::Etcd(error) => Self::Etcd(error),
            FormatFailure::Unusable(why) => Self::Unusable(why),
        }
    }
}

impl Registration {
    pub(super) fn new(
        config: MemberConfig,
        say: Box<dyn FnMut(MemberMessage) + Send>,
    ) -> Result<Self, Reason> {
        let client = EtcdClient::new(&config.etcd)?;
        let state = Arc::new(MemberState::new(client.member().to_string()));
        let node_key = format!("{}nodes/{}", client.prefix(), config.node);
        Ok(Self {
            client,
            node_key,
            state,
            lease: LeaseKeeper::new(config.lease),
            is_registered: false,
            written: WrittenRecords::default(),
            asked_orders: None,
            said: None,
            clocks_differ: false,
            say,
            config,
        })
    }

    pub(super) fn state(&self) -> Arc<MemberState> {
        Arc::clone(&self.state)
    }

    /// One pass; returns the time until the next one.
    pub(super) fn pass(&mut self, records: &mut dyn FnMut() -> MemberRecords) -> Duration {
        let result = self.try_pass(records);
        if let Err(PassError::Etcd(error)) = &result
            && error.is_not_found()
        {
            // The lease has ended since it was renewed, or etcd was restored without it.
            self.lease.forget();
        }
        let now = Instant::now();
        if self.is_registered && self.lease.held().is_none_or(|lease| now >= lease.until) {
            let why = match &result {
                Err(PassError::Etcd(error)) => error.to_string(),
                _ => "the lease has ended".to_owned(),
            };
            self.lose(why);
            // Said with the loss: an etcd that does not answer is one cause, and one message.
            if let Err(PassError::Etcd(error)) = &result
                && !error.is_not_found()
            {
                self.said = Some(MemberMessage::Unreachable(error.to_string()));
            }
        }
        let error = match &result {
            Ok(_) => None,
            Err(PassError::Etcd(error)) => Some(error.to_string()),
            Err(PassError::NameTaken) => Some(MemberMessage::NameTaken.to_string()),
            Err(PassError::Unusable(why)) => Some(why.clone()),
        };
        self.state.set_asked(self.client.member().as_str(), error, self.client.clock_difference());
        self.tell_clocks();
        let pause = PAUSE.min(self.config.lease / 3);
        match result {
            Ok(true) => pause,
            // The first records of a node with many titles.
            Ok(false) => Duration::ZERO,
            Err(PassError::Etcd(error)) => {
                if !self.is_registered && !error.is_not_found() {
                    self.tell(MemberMessage::Unreachable(error.to_string()));
                }
                PAUSE_AFTER_ERROR
            }
            Err(PassError::NameTaken) => {
                self.tell(MemberMessage::NameTaken);
                pause
            }
            Err(PassError::Unusable(why)) => {
                self.tell(MemberMessage::Unusable(why));
                pause
            }
        }
    }

    /// Gives the lease back, so that the records of the node end now.
    pub(super) fn leave(mut self) {
        self.state.set_lost();
        self.lease.leave(&mut self.client);
    }

    fn tell(&mut self, message: MemberMessage) {
        // The texts of one outage differ by the member that was asked.
        let same = |said: &MemberMessage| match (said, &message) {
            (MemberMessage::Unreachable(_), MemberMessage::Unreachable(_)) => true,
            (said, message) => said == message,
        };
        if !self.said.as_ref().is_some_and(same) {
            (self.say)(message.clone());
            self.said = Some(message);
        }
    }

    /// Says that clocks differ, once until they do not.
    fn tell_clocks(&mut self) {
        let Some(difference) = self.client.clock_difference() else { return };
        let did_differ = std::mem::replace(&mut self.clocks_differ, difference.is_large());
        if self.clocks_differ && !did_differ {
            let etcd = self.client.member().to_string();
            (self.say)(MemberMessage::ClocksDiffer { etcd, difference });
        }
    }

    fn lose(&mut self, why: String) {
        self.is_registered = false;
        self.written = WrittenRecords::default();
        self.state.set_lost();
        self.tell(MemberMessage::Lost(why));
    }

    /// True if everything is written.
    fn try_pass(&mut self, records: &mut dyn FnMut() -> MemberRecords) -> Result<bool, PassError> {
        let lease = self.hold_lease()?;
        let mut wanted = records();
        wanted.digest.lease = u32::try_from(self.config.lease.as_secs()).unwrap_or(u32::MAX);
        if !self.is_registered {
            self.register(lease, &wanted)?;
        }
        let is_all = self.write(&wanted)?;
        if self.asked_orders.is_none_or(|at| at.elapsed() >= ORDERS_EVERY) {
            self.read_orders()?;
            self.asked_orders = Some(Instant::now());
        }
        Ok(is_all)
    }

    /// Reads what the node should do. Orders that cannot be read are none.
    fn read_orders(&mut self) -> Result<(), EtcdError> {
        let key = format!("orders/{}", self.config.node);
        let (value, _) = self.client.get(&format!("{}{key}", self.client.prefix()))?;
        let change = ClusterChange::from_record(&key, value.as_deref());
        self.state.set_orders(match change {
            Ok(ClusterChange::Orders(_, orders)) => orders,
            _ => NodeOrders::default(),
        });
        Ok(())
    }

    /// A lease that is valid. With a new one the node is not registered any more.
    fn hold_lease(&mut self) -> Result<HeldLease, EtcdError> {
        let (lease, age) = self.lease.hold(&mut self.client)?;
        if self.is_registered {
            match age {
                LeaseAge::Kept => self.state.set_valid(lease.until),
                LeaseAge::New => self.lose("the lease has ended".to_owned()),
            }
        }
        Ok(lease)
    }

    fn register(&mut self, lease: HeldLease, wanted: &MemberRecords) -> Result<(), PassError> {
        if hold_format(&mut self.client, &self.config.etcd.cluster)? {
            self.state.count_write();
        }
        let digest = PendingWrite::Digest(wanted.digest.clone());
        let write = [digest.to_write(self.client.prefix(), &self.config.node, lease.id)];
        let absent = [Condition::Absent(&self.node_key)];
        // An answer that was lost may have been that of our own registration.
        let ours = [Condition::HeldBy(&self.node_key, lease.id)];
        if !self.client.transact(&absent, &write)? && !self.client.transact(&ours, &write)? {
            return Err(PassError::NameTaken);
        }
        self.state.count_write();
        self.written.written(digest, Instant::now());
        self.is_registered = true;
        self.state.set_valid(lease.until);
        let etcd = self.client.member().to_string();
        self.tell(MemberMessage::Registered { etcd });
        Ok(())
    }

    /// Writes what has changed, some of it where it is much.
    fn write(&mut self, wanted: &MemberRecords) -> Result<bool, PassError> {
        let may_leave = !self.state.remaining_viewers().is_empty();
        let pending = self.written.pending(wanted, self.config.lease, may_leave, Instant::now());
        let is_all = pending.len() <= MOST_OF_A_PASS;
        let mut pending = pending.into_iter().take(MOST_OF_A_PASS).peekable();
        while let Some(first) = pending.next() {
            let mut batch = vec![first];
            while batch.len() < MOST_OF_A_TRANSACTION
                && !batch[0].is_alone()
                && let Some(next) = pending.next_if(|next| !next.is_alone())
            {
                batch.push(next);
            }
            if !self.write_batch(batch)? {
                return Ok(false);
            }
        }
        // What the copies have in each group follows at once.
        Ok(is_all && self.written.is_held_told())
    }

    /// Writes records in one transaction; false if the node is not registered any more.
    fn write_batch(&mut self, batch: Vec<PendingWrite>) -> Result<bool, PassError> {
        let lease = self.hold_lease()?;
        if !self.is_registered {
            return Ok(false);
        }
        let prefix = self.client.prefix().to_owned();
        let writes: Vec<RecordWrite> = batch
            .iter()
            .map(|write| write.to_write(&prefix, &self.config.node, lease.id))
            .collect();
        let unless = batch[0].unless(&prefix);
        let held = Condition::HeldBy(&self.node_key, lease.id);
        let mut all = vec![held.clone()];
        all.extend(unless.as_deref().map(Condition::Empty));
        let mut is_done = self.client.transact(&all, &writes)?;
        let mut is_settled = is_done;
        if let Some(unless) = unless.as_deref().filter(|_| !is_done) {
            // The keys are those of another node that has the title, or of titles in its folder.
            let (is_elsewhere, stamp) = self.client.has_direct_key(unless)?;
            if !is_elsewhere {
                let same = Condition::UnchangedBelow(unless, stamp.revision);
                is_done = self.client.transact(&[held.clone(), same], &writes)?;
            }
            // If there are others by now, the next pass looks again.
            is_settled = is_done || is_elsewhere;
        }
        if is_done {
            self.state.count_write();
        } else if unless.is_none() || !self.client.transact(&[held], &[])? {
            self.lose("the record of the node is not its own any more".to_owned());
            return Ok(false);
        }
        if is_settled {
            let now = Instant::now();
            batch.into_iter().for_each(|write| self.written.written(write, now));
        }
        Ok(true)
    }
}

/// Time between passes, unless leases are shorter.
const PAUSE: Duration = Duration::from_secs(1);
/// Time between looks for orders.
const ORDERS_EVERY: Duration = Duration::from_secs(2);
/// Time to the next pass after a request that failed.
const PAUSE_AFTER_ERROR: Duration = Duration::from_millis(300);
/// Records of one transaction: etcd takes 128 unless configured otherwise.
const MOST_OF_A_TRANSACTION: usize = 100;
/// Records of one pass.
const MOST_OF_A_PASS: usize = 10_000;
