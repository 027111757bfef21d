//! What whoever runs a cluster reads of it and changes in it, at etcd itself: without a director.

use crate::etcd::{EtcdClient, EtcdConfig, EtcdError, FORMAT_KEY, RecordWrite, check_format};
use cluster::{ClusterChange, ClusterName, ClusterView, NodeId};
use units::{Moment, Reason};

/// The records of a cluster in etcd.
pub struct ClusterRecords {
    client: EtcdClient,
    cluster: ClusterName,
}

/// The lease of a registered node: another one each time that its program is started, also in its
/// place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeLease(u64);

impl ClusterRecords {
    /// The records of a cluster. Nothing is asked yet.
    ///
    /// # Errors
    /// An etcd that cannot be used whatever it answers.
    pub fn new(config: &EtcdConfig) -> Result<Self, Reason> {
        Ok(Self { client: EtcdClient::new(config)?, cluster: config.cluster.clone() })
    }

    /// All records as they are now. A node whose lease has ended has no digest.
    ///
    /// # Errors
    /// An etcd that does not answer, and records of another format or none.
    pub fn view(&mut self) -> Result<ClusterView, Reason> {
        self.check()?;
        let list = self.client.list().map_err(reason)?;
        let prefix = self.client.prefix().to_owned();
        let changes = list.records.iter().filter_map(|record| {
            let key = String::from_utf8_lossy(&record.key);
            let key = key.strip_prefix(&prefix).filter(|key| *key != FORMAT_KEY)?;
            // What cannot be read is not shown; directors count it.
            ClusterChange::from_record(key, Some(&record.value)).ok()
        });
        let mut view = ClusterView::new();
        view.relist(list.stamp.revision, changes, Moment::ZERO);
        Ok(view)
    }

    /// What a node is registered under now; `None` where it is not.
    ///
    /// # Errors
    /// An etcd that does not answer, and records of another format or none.
    pub fn lease_of(&mut self, node: &NodeId) -> Result<Option<NodeLease>, Reason> {
        self.check()?;
        let (key, _) = ClusterChange::Node(node.clone(), None).to_record();
        let lease = self.client.lease_of(&format!("{}{key}", self.client.prefix()));
        Ok(lease.map_err(reason)?.map(NodeLease))
    }

    /// Sets whether a node should get no copies and lose those that it has.
    ///
    /// # Errors
    /// An etcd that does not answer, and records of another format or none.
    pub fn set_drained(&mut self, node: &NodeId, is_drained: bool) -> Result<(), Reason> {
        self.check()?;
        let change = ClusterChange::Drained(node.clone(), is_drained);
        let write = RecordWrite::of(&change, self.client.prefix(), None);
        self.client.transact(&[], &[write]).map_err(reason)?;
        Ok(())
    }

    fn check(&mut self) -> Result<(), Reason> {
        let key = format!("{}{FORMAT_KEY}", self.client.prefix());
        let (found, _) = self.client.get(&key).map_err(reason)?;
        let found = found.ok_or_else(|| {
            let message = format!("etcd has no records of a cluster '{}'", self.cluster);
            Reason::new(message, "check --cluster-name; a cluster begins with its first node")
        })?;
        check_format(&found, &self.cluster).map_err(Reason::from)
    }
}

fn reason(error: EtcdError) -> Reason {
    Reason::new(format!("etcd cannot be used: {error}"), error.hint())
}
