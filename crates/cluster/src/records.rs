//! The records of a cluster: keys and JSON values, one writer for each.
//!
//! ```text
//!   key                  value                                     written by
//!   nodes/NODE           digest: what the node has free, its lease  the node
//!   copies/TITLE/NODE    the disks that have the title              the node
//!   viewers/NODE         viewers of each title at the node          the node
//!   titles/TITLE         rate and size                              a node that has it, the planner
//!   contents/TITLE       what the bucket has and had of this name   the planner
//!   orders/NODE          the next copies to fill and to evict,      the planner
//!                        and the viewers that remain
//!   planner              the director that plans placement          that director
//!   unlisted             titles on nodes that the bucket lacks    the planner
//!   unmet/DIRECTOR       viewers refused for want of copies         that director
//!   unable/DIRECTOR      a director that cannot list the bucket     that director
//!   drained/NODE         the node should get no copies, no viewers  whoever runs the cluster
//!   members/NODE         the node belongs to the cluster            the node
//!   held/NODE/GROUP      titles that the node has; GROUP: a part    the node
//!                        of all names
//!   epoch                the number of the configuration            whoever changes it
//! ```
//!
//! The last two stay when the node is away, until whoever runs the cluster has it forgotten: they
//! tell what is lost with it then.
//!
//! A change is a record that was put or deleted; an event is a change with the revision of the
//! store of records. Reservations are not records: they are in the books of each node.

use crate::chance::hash_of;
use crate::names::{BadName, ContentTag, NodeDisk, NodeId, TitleName};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;
use units::{BitRate, ByteCount};

/// A resource of a node: what it is guaranteed to hold of it and what is free. Bits per second for
/// disks and networks, bytes for memory and space.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CapacityShare {
    /// All of the resource that may be reserved.
    pub guaranteed: u64,
    /// The part that is not reserved.
    pub free: u64,
}

/// What a node shows of itself, about once a second.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeDigest {
    /// Where viewers reach the node: the beginning of its addresses.
    pub address: String,
    /// What fails together with the node, such as its rack; copies avoid the same one.
    #[serde(default)]
    pub rack: Option<String>,
    /// Share of the copies that the node gets, beside others; usually its number of disks. With 0
    /// it gets none, and those that it has go to others.
    pub weight: u32,
    /// Seconds for which the node counts as alive after this digest, without a newer one.
    pub lease: u32,
    /// Free rate of each disk, in the order of their numbers.
    pub disks: Vec<CapacityShare>,
    /// Free bytes of each disk, in the same order; empty where they do not matter.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub space: Vec<CapacityShare>,
    /// Free rate of the network.
    pub network: CapacityShare,
    /// Free buffers.
    pub memory: CapacityShare,
}

/// One copy of a title on a disk of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CopyRecord {
    /// The disk.
    pub disk: NodeDisk,
    /// Whether viewers can be sent to the copy.
    pub state: CopyState,
    /// The content of the copy; `None` while it is being written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<ContentTag>,
}

/// Whether viewers can be sent to a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CopyState {
    /// The copy is being written.
    Filling,
    /// All of the copy is on disk, with its checksums verified.
    Ready,
}

/// What all copies of a title have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TitleSize {
    /// Rate of one viewer.
    pub rate: BitRate,
    /// Size of one copy.
    pub size: ByteCount,
}

/// What a node should do next, best first. It says where the node should come to, so that what is
/// done already needs nothing, and an old one does no harm.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeOrders {
    /// Copies to write.
    #[serde(default)]
    pub fill: Vec<CopyTarget>,
    /// Copies to remove.
    #[serde(default)]
    pub evict: Vec<CopyTarget>,
    /// Copies to write after these, which are not listed yet.
    #[serde(default)]
    pub later: u32,
    /// Viewers of titles that remain on a node that is drained. Those above this number may be let
    /// go, because other nodes have room for them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub remain: BTreeMap<TitleName, u32>,
}

/// Titles that nodes have and the bucket of the planner has not, when it was last listed whole.
/// Nobody removes them: a bucket of the wrong name has none of them either.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UnlistedTitles {
    /// Number of such titles.
    pub count: u32,
    /// The first of them, in the order of their names.
    pub titles: BTreeSet<TitleName>,
}

/// A director that would plan placement, and cannot list the titles in the bucket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UnableDirector {
    /// Where it listens.
    pub address: String,
    /// Why the bucket cannot be listed.
    pub why: String,
}

/// What stays known of a node while it is away.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MemberRecord {
    /// Where viewers reached the node.
    pub address: String,
    /// What fails together with the node.
    #[serde(default)]
    pub rack: Option<String>,
}

/// Titles of which a node has ready copies, with the contents where they are known.
pub type HeldTitles = BTreeMap<TitleName, Option<ContentTag>>;

/// A part of all names of titles: the titles of a node are in one record for each group, so that
/// each fits into a request to etcd, and a change of one title writes few others again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TitleGroup(u8);

/// A title, and a disk of the node that is meant.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CopyTarget {
    /// The title.
    pub title: TitleName,
    /// The disk.
    pub disk: NodeDisk,
    /// The content of a copy that is there and that the bucket had under this name before: it may
    /// be replaced or removed. One of any other content is not touched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outdated: Option<ContentTag>,
    /// The beginning of the addresses of nodes with a ready copy, which may be asked for parts of
    /// it before the bucket is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub peers: Vec<String>,
}

/// A record that was put or deleted.
#[derive(Clone, Debug, PartialEq)]
pub enum ClusterChange {
    /// A node's digest; `None` when its lease has ended or it has left.
    Node(NodeId, Option<NodeDigest>),
    /// The copies of a title on a node; empty when it has none any more.
    Copies(TitleName, NodeId, Vec<CopyRecord>),
    /// The viewers of each title at a node; empty when it has none or has left.
    Viewers(NodeId, BTreeMap<TitleName, u32>),
    /// The viewers whom a director has lately refused for want of copies, by title; empty when it
    /// has refused none or has left.
    Unmet(String, BTreeMap<TitleName, u32>),
    /// A title; `None` when it was removed from the cluster.
    Title(TitleName, Option<TitleSize>),
    /// The contents that the bucket has had under a name, the present one first; empty when they
    /// are forgotten.
    Contents(TitleName, Vec<ContentTag>),
    /// What a node should do.
    Orders(NodeId, NodeOrders),
    /// The address of the director that plans placement; `None` where none does.
    Planner(Option<String>),
    /// The titles on nodes that the bucket lacks; `None` while no director plans, or it has not
    /// listed the bucket yet.
    Unlisted(Option<UnlistedTitles>),
    /// A director that leaves planning to others, because it cannot list the bucket; `None` when it
    /// can again or has left.
    Unable(String, Option<UnableDirector>),
    /// Whether a node should get no copies and no viewers, and lose the copies that it has.
    Drained(NodeId, bool),
    /// A node that belongs to the cluster, registered or away; `None` when it was forgotten.
    Member(NodeId, Option<MemberRecord>),
    /// The titles of one group that a node has, registered or away.
    Held(NodeId, TitleGroup, HeldTitles),
    /// The number of the configuration.
    Epoch(u64),
}

/// A change at its revision. Revisions of a store of records only rise.
#[derive(Clone, Debug, PartialEq)]
pub struct ClusterEvent {
    /// The revision.
    pub revision: u64,
    /// The change.
    pub change: ClusterChange,
}

/// A record that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The key is none of a cluster's.
    #[error("the key '{0}' is none of a cluster's")]
    UnknownKey(String),
    /// A name within the key.
    #[error("key '{key}': {source}")]
    Name {
        /// The key.
        key: String,
        /// The reason.
        source: BadName,
    },
    /// The value.
    #[error("the value of '{key}': {source}")]
    Value {
        /// The key.
        key: String,
        /// The reason.
        source: serde_json::Error,
    },
    /// A value with more disks, copies or bytes than a cluster has.
    #[error("the value of '{key}' is out of bounds: {what}")]
    OutOfBounds {
        /// The key.
        key: String,
        /// What is too large.
        what: &'static str,
    },
}

impl CapacityShare {
    /// A resource of which nothing is reserved.
    pub const fn all_free(guaranteed: u64) -> Self {
        Self { guaranteed, free: guaranteed }
    }

    /// Frees so much, at most all.
    pub(crate) fn give_back(&mut self, amount: u64) {
        self.free = self.free.saturating_add(amount).min(self.guaranteed);
    }
}

impl NodeDigest {
    /// The time for which the node counts as alive after a digest.
    pub fn lease(&self) -> Duration {
        Duration::from_secs(self.lease.into())
    }
}

impl NodeOrders {
    /// Copies to write, copies to remove, and titles whose viewers leave, that one record lists at
    /// most.
    pub const MOST: usize = 64;

    /// Whether there is no copy to write or to remove.
    pub fn has_no_copies(&self) -> bool {
        self.fill.is_empty() && self.evict.is_empty() && self.later == 0
    }
}

impl TitleGroup {
    /// Titles that one record lists at most, in the order of their names: with the longest names it
    /// still fits into a request to etcd.
    pub const MOST: usize = 4_000;

    /// The group of a title.
    pub fn of(title: &TitleName) -> Self {
        let group = hash_of(title.as_str()) % u64::from(GROUPS);
        Self(u8::try_from(group).unwrap_or_default())
    }

    /// All groups.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..GROUPS).map(Self)
    }

    /// The group with this name in a key.
    fn named(name: &str) -> Option<Self> {
        let group = u8::from_str_radix(name, 16).ok().filter(|group| *group < GROUPS)?;
        (Self(group).to_string() == name).then_some(Self(group))
    }
}

impl fmt::Display for TitleGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:02x}", self.0)
    }
}

impl CopyTarget {
    /// A copy of a title, of which nothing is known.
    pub fn new(title: TitleName, disk: NodeDisk) -> Self {
        Self { title, disk, outdated: None, peers: Vec::new() }
    }

    /// Nodes that one target names at most.
    pub const MOST_PEERS: usize = 3;
}

impl CopyRecord {
    /// A copy that viewers can be sent to.
    pub const fn ready(disk: NodeDisk, content: Option<ContentTag>) -> Self {
        Self { disk, state: CopyState::Ready, content }
    }

    /// A copy that is being written.
    pub const fn filling(disk: NodeDisk) -> Self {
        Self { disk, state: CopyState::Filling, content: None }
    }
}

impl UnableDirector {
    /// Bytes of a reason, at most.
    pub const LONGEST_WHY: usize = 1_000;
}

impl UnlistedTitles {
    /// Titles that one record names at most: it must fit into a request to etcd.
    pub const MOST: usize = 1_000;

    /// Whether a title is among them; `None`: it may be one of those that are not named.
    pub fn has(&self, title: &TitleName) -> Option<bool> {
        let is_named = self.titles.contains(title);
        let all_named = self.titles.len() as u64 >= u64::from(self.count);
        let is_before_last = || self.titles.last().is_some_and(|last| title <= last);
        (is_named || all_named || is_before_last()).then_some(is_named)
    }
}

impl ClusterChange {
    /// The change of a record, whose value is `None` where it was deleted.
    ///
    /// # Errors
    /// A key or value that is none of a cluster's, or is out of bounds.
    pub fn from_record(key: &str, value: Option<&[u8]>) -> Result<Self, RecordError> {
        let bad_name = |source| RecordError::Name { key: key.to_owned(), source };
        let node = |name: &str| NodeId::new(name).map_err(bad_name);
        let title = |name: &str| TitleName::new(name).map_err(bad_name);
        // The name of a title may have folders, that of a node has none.
        let parts: Vec<&str> = match key.split_once('/') {
            Some((kind @ ("titles" | "contents"), name)) => vec![kind, name],
            Some((kind @ "copies", copy)) => match copy.rsplit_once('/') {
                Some((name, at)) => vec![kind, name, at],
                None => vec![kind],
            },
            _ => key.split('/').collect(),
        };
        Ok(match parts[..] {
            ["nodes", name] => {
                let digest = parsed::<NodeDigest>(key, value)?;
                if let Some(what) = digest.as_ref().and_then(too_large) {
                    return Err(RecordError::OutOfBounds { key: key.to_owned(), what });
                }
                Self::Node(node(name)?, digest)
            }
            ["copies", name, at] => {
                let copies = parsed::<Vec<CopyRecord>>(key, value)?.unwrap_or_default();
                let beyond = |copy: &CopyRecord| usize::from(copy.disk.0) >= MOST_DISKS;
                if copies.len() > MOST_DISKS || copies.iter().any(beyond) {
                    let what = "copies or disks of one node";
                    return Err(RecordError::OutOfBounds { key: key.to_owned(), what });
                }
                Self::Copies(title(name)?, node(at)?, copies)
            }
            ["titles", name] => {
                let size = parsed::<TitleSize>(key, value)?;
                let most = |size: TitleSize| size.rate.0.max(size.size.0) > MOST_OF_A_SHARE;
                if size.is_some_and(most) {
                    let what = "the rate or size of a title";
                    return Err(RecordError::OutOfBounds { key: key.to_owned(), what });
                }
                Self::Title(title(name)?, size)
            }
            ["contents", name] => {
                let contents = parsed::<Vec<ContentTag>>(key, value)?.unwrap_or_default();
                if contents.len() > MOST_CONTENTS {
                    let what = "contents of one name";
                    return Err(RecordError::OutOfBounds { key: key.to_owned(), what });
                }
                Self::Contents(title(name)?, contents)
            }
            ["viewers", at] => Self::Viewers(node(at)?, parsed(key, value)?.unwrap_or_default()),
            ["unmet", director] if director.len() <= LONGEST_DIRECTOR => {
                Self::Unmet(director.to_owned(), parsed(key, value)?.unwrap_or_default())
            }
            ["orders", at] => {
                let orders = parsed::<NodeOrders>(key, value)?.unwrap_or_default();
                let NodeOrders { fill, evict, remain, .. } = &orders;
                if fill.len().max(evict.len()).max(remain.len()) > NodeOrders::MOST {
                    let what = "orders for one node";
                    return Err(RecordError::OutOfBounds { key: key.to_owned(), what });
                }
                Self::Orders(node(at)?, orders)
            }
            ["planner"] => Self::Planner(parsed(key, value)?),
            ["unlisted"] => {
                let unlisted = parsed::<UnlistedTitles>(key, value)?;
                if unlisted.as_ref().is_some_and(|it| it.titles.len() > UnlistedTitles::MOST) {
                    let what = "titles that the bucket lacks";
                    return Err(RecordError::OutOfBounds { key: key.to_owned(), what });
                }
                Self::Unlisted(unlisted)
            }
            ["unable", director] if director.len() <= LONGEST_DIRECTOR => {
                let unable = parsed::<UnableDirector>(key, value)?;
                if unable.as_ref().is_some_and(|it| it.why.len() > UnableDirector::LONGEST_WHY) {
                    let what = "why a bucket cannot be listed";
                    return Err(RecordError::OutOfBounds { key: key.to_owned(), what });
                }
                Self::Unable(director.to_owned(), unable)
            }
            ["drained", at] => Self::Drained(node(at)?, parsed(key, value)?.unwrap_or(false)),
            ["members", at] => Self::Member(node(at)?, parsed(key, value)?),
            ["held", at, group] if TitleGroup::named(group).is_some() => {
                let group = TitleGroup::named(group).unwrap_or(TitleGroup(0));
                let held = parsed::<HeldTitles>(key, value)?.unwrap_or_default();
                if held.len() > TitleGroup::MOST {
                    let what = "titles of one group";
                    return Err(RecordError::OutOfBounds { key: key.to_owned(), what });
                }
                Self::Held(node(at)?, group, held)
            }
            ["epoch"] => Self::Epoch(parsed(key, value)?.unwrap_or(0)),
            _ => return Err(RecordError::UnknownKey(key.chars().take(80).collect())),
        })
    }

    /// The record of this change: its key, and its value unless it is deleted.
    pub fn to_record(&self) -> (String, Option<String>) {
        match self {
            Self::Node(node, digest) => (format!("nodes/{node}"), digest.as_ref().map(json)),
            Self::Copies(title, node, copies) => {
                let value = (!copies.is_empty()).then(|| json(copies));
                (format!("copies/{title}/{node}"), value)
            }
            Self::Viewers(node, viewers) => {
                (format!("viewers/{node}"), (!viewers.is_empty()).then(|| json(viewers)))
            }
            Self::Unmet(director, viewers) => {
                (format!("unmet/{director}"), (!viewers.is_empty()).then(|| json(viewers)))
            }
            Self::Title(title, size) => (format!("titles/{title}"), size.as_ref().map(json)),
            Self::Contents(title, contents) => {
                (format!("contents/{title}"), (!contents.is_empty()).then(|| json(contents)))
            }
            Self::Orders(node, orders) => {
                let value = (*orders != NodeOrders::default()).then(|| json(orders));
                (format!("orders/{node}"), value)
            }
            Self::Planner(address) => ("planner".to_owned(), address.as_ref().map(json)),
            Self::Unlisted(unlisted) => ("unlisted".to_owned(), unlisted.as_ref().map(json)),
            Self::Unable(director, unable) => {
                (format!("unable/{director}"), unable.as_ref().map(json))
            }
            Self::Drained(node, drained) => {
                (format!("drained/{node}"), drained.then(|| json(&true)))
            }
            Self::Member(node, member) => (format!("members/{node}"), member.as_ref().map(json)),
            Self::Held(node, group, held) => {
                (format!("held/{node}/{group}"), (!held.is_empty()).then(|| json(held)))
            }
            Self::Epoch(epoch) => ("epoch".to_owned(), Some(json(epoch))),
        }
    }
}

fn parsed<T: for<'a> Deserialize<'a>>(
    key: &str,
    value: Option<&[u8]>,
) -> Result<Option<T>, RecordError> {
    let wrong = |source| RecordError::Value { key: key.to_owned(), source };
    value.map(|value| serde_json::from_slice(value).map_err(wrong)).transpose()
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("records have text keys only")
}

fn too_large(digest: &NodeDigest) -> Option<&'static str> {
    let shares = digest.disks.iter().chain(&digest.space);
    let shares = shares.chain([&digest.network, &digest.memory]);
    if digest.disks.len().max(digest.space.len()) > MOST_DISKS {
        return Some("disks of a node");
    }
    shares.into_iter().find_map(|share| {
        if share.guaranteed > MOST_OF_A_SHARE {
            return Some("a guaranteed rate, memory or space");
        }
        (share.free > share.guaranteed).then_some("free is more than guaranteed")
    })
}

/// Contents of one name that are remembered.
pub(crate) const MOST_CONTENTS: usize = 16;
/// Groups of titles: with 100,000 titles on a node a record has 100 kB.
const GROUPS: u8 = 64;
/// Bytes of the identity of a director.
const LONGEST_DIRECTOR: usize = 64;
/// Disks of a node: more than a chassis or a rack of disks on one controller has.
const MOST_DISKS: usize = 1024;
/// A rate, memory or space of one resource: far above any machine, and sums of it do not overflow.
const MOST_OF_A_SHARE: u64 = 1 << 50;

#[cfg(test)]
mod tests {
    use super::*;

    fn node() -> NodeDigest {
        NodeDigest {
            address: "https://n1.example:8443".to_owned(),
            rack: Some("r1".to_owned()),
            weight: 20,
            lease: 10,
            disks: vec![CapacityShare { guaranteed: 545_000_000, free: 45_000_000 }],
            network: CapacityShare::all_free(10_000_000_000),
            memory: CapacityShare::all_free(1 << 34),
            space: vec![CapacityShare { guaranteed: 1 << 40, free: 1 << 39 }],
        }
    }

    #[test]
    fn records_read_back_as_written() {
        let title = || TitleName::new("Metropolis (1927)").unwrap();
        let part = || TitleName::new("hall/20261128").unwrap();
        let id = || NodeId::new("n1").unwrap();
        let tag = ContentTag::of("1-2-3-00000004");
        let copy = CopyRecord::ready(NodeDisk(3), Some(tag));
        let size = TitleSize { rate: BitRate(5_000_000), size: ByteCount(1 << 32) };
        let evict = vec![CopyTarget::new(title(), NodeDisk(3))];
        let (outdated, peers) = (Some(tag), vec!["http://n2".to_owned()]);
        let fill = vec![CopyTarget { outdated, peers, ..evict[0].clone() }];
        let orders = NodeOrders { fill, evict, later: 7, ..NodeOrders::default() };
        let leave = NodeOrders { remain: BTreeMap::from([(title(), 4)]), ..NodeOrders::default() };
        let unable = UnableDirector { address: "d1:8090".to_owned(), why: "no keys".to_owned() };
        let changes = [
            (
                ClusterChange::Node(id(), Some(node())),
                r#"nodes/n1 {"address":"https://n1.example:8443","rack":"r1","weight":20,"lease":10,"disks":[{"guaranteed":545000000,"free":45000000}],"space":[{"guaranteed":1099511627776,"free":549755813888}],"network":{"guaranteed":10000000000,"free":10000000000},"memory":{"guaranteed":17179869184,"free":17179869184}}"#,
            ),
            (ClusterChange::Node(id(), None), "nodes/n1"),
            (
                ClusterChange::Copies(title(), id(), vec![copy]),
                r#"copies/Metropolis (1927)/n1 [{"disk":3,"state":"ready","content":"TAG"}]"#,
            ),
            (ClusterChange::Copies(title(), id(), Vec::new()), "copies/Metropolis (1927)/n1"),
            (
                ClusterChange::Title(title(), Some(size)),
                r#"titles/Metropolis (1927) {"rate":5000000,"size":4294967296}"#,
            ),
            (ClusterChange::Contents(title(), vec![tag]), r#"contents/Metropolis (1927) ["TAG"]"#),
            // Titles in folders.
            (ClusterChange::Contents(part(), Vec::new()), "contents/hall/20261128"),
            (ClusterChange::Copies(part(), id(), Vec::new()), "copies/hall/20261128/n1"),
            (ClusterChange::Title(part(), None), "titles/hall/20261128"),
            (
                ClusterChange::Unable("d1".to_owned(), Some(unable)),
                r#"unable/d1 {"address":"d1:8090","why":"no keys"}"#,
            ),
            (ClusterChange::Unable("d1".to_owned(), None), "unable/d1"),
            (
                ClusterChange::Viewers(id(), BTreeMap::from([(title(), 41)])),
                r#"viewers/n1 {"Metropolis (1927)":41}"#,
            ),
            (ClusterChange::Viewers(id(), BTreeMap::new()), "viewers/n1"),
            (
                ClusterChange::Unmet("10.0.0.5:8090".to_owned(), BTreeMap::from([(title(), 3)])),
                r#"unmet/10.0.0.5:8090 {"Metropolis (1927)":3}"#,
            ),
            (
                ClusterChange::Orders(id(), orders),
                r#"orders/n1 {"fill":[{"title":"Metropolis (1927)","disk":3,"outdated":"TAG","peers":["http://n2"]}],"evict":[{"title":"Metropolis (1927)","disk":3}],"later":7}"#,
            ),
            (
                ClusterChange::Orders(id(), leave),
                r#"orders/n1 {"fill":[],"evict":[],"later":0,"remain":{"Metropolis (1927)":4}}"#,
            ),
            (ClusterChange::Orders(id(), NodeOrders::default()), "orders/n1"),
            (
                ClusterChange::Planner(Some("10.0.0.5:8090".to_owned())),
                r#"planner "10.0.0.5:8090""#,
            ),
            (ClusterChange::Planner(None), "planner"),
            (
                ClusterChange::Unlisted(Some(UnlistedTitles {
                    count: 2,
                    titles: BTreeSet::from([title()]),
                })),
                r#"unlisted {"count":2,"titles":["Metropolis (1927)"]}"#,
            ),
            (ClusterChange::Unlisted(None), "unlisted"),
            (ClusterChange::Drained(id(), true), "drained/n1 true"),
            (ClusterChange::Drained(id(), false), "drained/n1"),
            (
                ClusterChange::Member(
                    id(),
                    Some(MemberRecord { address: "http://n1:80".to_owned(), rack: None }),
                ),
                r#"members/n1 {"address":"http://n1:80","rack":null}"#,
            ),
            (ClusterChange::Member(id(), None), "members/n1"),
            (
                ClusterChange::Held(
                    id(),
                    TitleGroup(11),
                    BTreeMap::from([(title(), Some(tag)), (part(), None)]),
                ),
                r#"held/n1/0b {"Metropolis (1927)":"TAG","hall/20261128":null}"#,
            ),
            (ClusterChange::Held(id(), TitleGroup(0), BTreeMap::new()), "held/n1/00"),
            (ClusterChange::Epoch(7), "epoch 7"),
        ];
        for (change, text) in changes {
            let text = text.replace("TAG", &tag.to_string());
            let (key, value) = change.to_record();
            let shown = value.as_ref().map_or(key.clone(), |value| format!("{key} {value}"));
            assert_eq!(shown, text);
            let read = ClusterChange::from_record(&key, value.as_deref().map(str::as_bytes));
            assert_eq!(read.unwrap(), change);
        }
    }

    #[test]
    fn records_of_others_and_damaged_ones_are_refused_with_their_key() {
        let many = format!(r#"{{"guaranteed":{},"free":0}}"#, u64::MAX);
        let digest = |disk: &str| {
            let network = r#"{"guaranteed":1,"free":1}"#;
            format!(
                r#"{{"address":"a","weight":1,"lease":1,"disks":[{disk}],"network":{network},"memory":{network}}}"#
            )
        };
        let cases: [(&str, &str, &str); 17] = [
            ("contents/a", r#"["0123456789abcde"]"#, "'0123456789abcde' is not a name"),
            ("contents/a", r#"["+123456789abcdef"]"#, "16 hexadecimal digits"),
            ("reservations/1", "1", "is none of a cluster's"),
            ("nodes/a b", &digest(""), "'a b' is not a name"),
            ("nodes/a/b/c", "{}", "is none of a cluster's"),
            ("nodes/a", "{", "the value of 'nodes/a': EOF"),
            ("nodes/a", &digest(&many), "a guaranteed rate, memory or space"),
            ("nodes/a", &digest(r#"{"guaranteed":1,"free":2}"#), "free is more than guaranteed"),
            ("titles/a", r#"{"rate":1,"size":18446744073709551615}"#, "rate or size of a title"),
            ("viewers/a", "{\"b\\nc\":1}", "'b?c' is not a name"),
            ("copies/a", "[]", "is none of a cluster's"),
            ("held/a/40", "{}", "is none of a cluster's"),
            ("held/a/b", "{}", "is none of a cluster's"),
            ("members/a", "{}", "missing field `address`"),
            ("orders/a", r#"{"fill":[{"title":"b"}]}"#, "missing field `disk`"),
            ("copies/a/b", r#"[{"disk":1,"state":"gone"}]"#, "unknown variant `gone`"),
            ("copies/a/b", r#"[{"disk":1024,"state":"ready"}]"#, "copies or disks of one node"),
        ];
        for (key, value, found) in cases {
            let error = ClusterChange::from_record(key, Some(value.as_bytes())).unwrap_err();
            assert!(error.to_string().contains(found), "{error}");
        }
    }
}
