//! What whoever runs a cluster reads of it and changes in it, at etcd itself: without a director.

use crate::etcd::{
    Condition, EtcdClient, EtcdConfig, EtcdError, FORMAT_KEY, RecordWrite, check_format,
};
use cluster::forgetting::Forgetting;
use cluster::{ClusterChange, ClusterName, ClusterView, NodeId, TitleName};
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

    /// Removes the records that are to be forgotten, as they were found in `view`: those of titles
    /// first, so that an interrupted call can be repeated. False if a node has registered, or has
    /// got one of the titles, since: then some may be left.
    ///
    /// # Errors
    /// An etcd that does not answer, and records of another format or none.
    pub fn forget(
        &mut self,
        node: Option<&NodeId>,
        forgetting: &Forgetting,
        view: &ClusterView,
    ) -> Result<bool, Reason> {
        self.check()?;
        let prefix = self.client.prefix().to_owned();
        let key = |change: ClusterChange| format!("{prefix}{}", change.to_record().0);
        let node_key = node.map(|node| key(ClusterChange::Node(node.clone(), None)));
        let absent: Vec<Condition<'_>> =
            node_key.iter().map(|key| Condition::Absent(key)).collect();
        let titles: Vec<_> = forgetting.records.iter().collect();
        for batch in titles.chunks(MOST_OF_A_TRANSACTION / 2) {
            let title = |name: &TitleName| ClusterChange::Title(name.clone(), None);
            let contents = |name: &TitleName| ClusterChange::Contents(name.clone(), Vec::new());
            let keys: Vec<String> = batch.iter().map(|name| key(title(name))).collect();
            // A node that gets a title writes its record.
            let unchanged = keys.iter().map(|key| Condition::Unchanged(key, view.revision()));
            let conditions: Vec<_> = absent.iter().cloned().chain(unchanged).collect();
            let changes = batch.iter().flat_map(|name| [title(name), contents(name)]);
            let writes: Vec<_> =
                changes.map(|change| RecordWrite::of(&change, &prefix, None)).collect();
            if !self.client.transact(&conditions, &writes).map_err(reason)? {
                return Ok(false);
            }
        }
        for batch in forgetting.of_node.chunks(MOST_OF_A_TRANSACTION) {
            let writes: Vec<_> =
                batch.iter().map(|change| RecordWrite::of(change, &prefix, None)).collect();
            if !self.client.transact(&absent, &writes).map_err(reason)? {
                return Ok(false);
            }
        }
        Ok(true)
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

/// Records of one transaction: etcd takes 128 unless configured otherwise.
const MOST_OF_A_TRANSACTION: usize = 100;

fn reason(error: EtcdError) -> Reason {
    Reason::new(format!("etcd cannot be used: {error}"), error.hint())
}
