//! What has changed of a node's records since they were written: as few writes as possible.
//!
//! ```text
//!   digest            when it differs, and after a third of the lease also when it does not
//!   copies/TITLE      when they differ
//!   titles/TITLE      when they differ
//!   members/NODE      when it differs
//!   held/NODE/GROUP   when titles of the group have come or gone, after their copies
//!   viewers/NODE      when they differ, and the last ones are a minute old, or 5 s on a node that
//!                     viewers may leave
//! ```
//!
//! Directors count a node as alive for one lease after its digest, which is why the digest is
//! repeated. Nothing here is written per viewer.

use super::MemberRecords;
use crate::etcd::RecordWrite;
use cluster::{
    ClusterChange, CopyRecord, CopyState, HeldTitles, MemberRecord, NodeDigest, NodeId, TitleGroup,
    TitleName, TitleSize,
};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// The records of a node as they are in etcd.
#[derive(Debug, Default)]
pub(super) struct WrittenRecords {
    digest: Option<(NodeDigest, Instant)>,
    copies: BTreeMap<TitleName, Vec<CopyRecord>>,
    titles: BTreeMap<TitleName, TitleSize>,
    /// The viewers of titles, and when they were written.
    viewers: Option<(BTreeMap<TitleName, u32>, Instant)>,
    member: Option<MemberRecord>,
    /// What the copies that are written have in each group.
    held: BTreeMap<TitleGroup, HeldTitles>,
    /// Groups whose records say that.
    told_groups: BTreeSet<TitleGroup>,
}

/// One record to be written.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum PendingWrite {
    Digest(NodeDigest),
    Copies(TitleName, Vec<CopyRecord>),
    Title(TitleName, TitleSize),
    Viewers(BTreeMap<TitleName, u32>),
    Member(MemberRecord),
    Held(TitleGroup, HeldTitles),
    /// The title has left the node. Where no other node has it, it has left the cluster.
    TitleGone(TitleName),
}

impl WrittenRecords {
    /// The writes after which etcd has these records. The digest comes first, and of a title that
    /// leaves the copies go before the title. `may_leave`: viewers may leave the node, which is
    /// drained.
    pub(super) fn pending(
        &self,
        wanted: &MemberRecords,
        lease: Duration,
        may_leave: bool,
        now: Instant,
    ) -> Vec<PendingWrite> {
        let mut writes = Vec::new();
        let is_fresh = |(known, at): &(NodeDigest, Instant)| {
            *known == wanted.digest && now.duration_since(*at) < lease / 3
        };
        if !self.digest.as_ref().is_some_and(is_fresh) {
            writes.push(PendingWrite::Digest(wanted.digest.clone()));
        }
        let NodeDigest { address, rack, .. } = &wanted.digest;
        let member = MemberRecord { address: address.clone(), rack: rack.clone() };
        if self.member.as_ref() != Some(&member) {
            writes.push(PendingWrite::Member(member));
        }
        let before = writes.len();
        for (title, copies) in &wanted.copies {
            if self.copies.get(title) != Some(copies) {
                writes.push(PendingWrite::Copies(title.clone(), copies.clone()));
            }
        }
        let are_copies_told = writes.len() == before;
        for (title, size) in &wanted.titles {
            if self.titles.get(title) != Some(size) {
                writes.push(PendingWrite::Title(title.clone(), *size));
            }
        }
        let differ = match &self.viewers {
            None => !wanted.viewers.is_empty(),
            Some((known, at)) => {
                let every = if may_leave { LEAVING_VIEWERS_EVERY } else { VIEWERS_EVERY };
                *known != wanted.viewers && now.duration_since(*at) >= every
            }
        };
        if differ {
            writes.push(PendingWrite::Viewers(wanted.viewers.clone()));
        }
        let before = writes.len();
        let gone = self.copies.keys().filter(|title| !wanted.copies.contains_key(*title));
        writes.extend(gone.map(|title| PendingWrite::Copies(title.clone(), Vec::new())));
        if are_copies_told && writes.len() == before {
            let old = TitleGroup::all().filter(|group| !self.told_groups.contains(group));
            writes.extend(old.map(|group| {
                let titles = self.held.get(&group).into_iter().flatten().take(TitleGroup::MOST);
                let titles = titles.map(|(title, content)| (title.clone(), *content)).collect();
                PendingWrite::Held(group, titles)
            }));
        }
        let gone = self.titles.keys().filter(|title| !wanted.titles.contains_key(*title));
        writes.extend(gone.map(|title| PendingWrite::TitleGone(title.clone())));
        writes
    }

    /// Takes note of a write that etcd has carried out.
    pub(super) fn written(&mut self, write: PendingWrite, now: Instant) {
        match write {
            PendingWrite::Digest(digest) => self.digest = Some((digest, now)),
            PendingWrite::Copies(title, copies) => {
                self.hold(&title, &copies);
                match copies.is_empty() {
                    true => drop(self.copies.remove(&title)),
                    false => drop(self.copies.insert(title, copies)),
                }
            }
            PendingWrite::Member(member) => self.member = Some(member),
            PendingWrite::Held(group, _) => {
                self.told_groups.insert(group);
            }
            PendingWrite::Title(title, size) => {
                self.titles.insert(title, size);
            }
            PendingWrite::Viewers(viewers) => self.viewers = Some((viewers, now)),
            PendingWrite::TitleGone(title) => {
                self.titles.remove(&title);
            }
        }
    }
}

impl WrittenRecords {
    /// Whether the records of all groups say what the copies have.
    pub(super) fn is_held_told(&self) -> bool {
        TitleGroup::all().all(|group| self.told_groups.contains(&group))
    }

    /// Takes note of the copies of a title in its group.
    fn hold(&mut self, title: &TitleName, copies: &[CopyRecord]) {
        let group = TitleGroup::of(title);
        let titles = self.held.entry(group).or_default();
        let ready = copies.iter().find(|copy| copy.state == CopyState::Ready);
        let before = match ready {
            Some(copy) => titles.insert(title.clone(), copy.content),
            None => titles.remove(title),
        };
        if before != ready.map(|copy| copy.content) {
            self.told_groups.remove(&group);
        }
    }
}

impl PendingWrite {
    /// Whether the write has a transaction of its own, because of its condition or its size.
    pub(super) fn is_alone(&self) -> bool {
        match self {
            Self::TitleGone(_) => true,
            Self::Held(_, titles) => titles.len() > FEW_TITLES,
            _ => false,
        }
    }

    /// The write, below the prefix of the cluster. What the node has ends with its lease; a title
    /// stays known when all nodes that have it are away, and which node had it until that is
    /// forgotten.
    pub(super) fn to_write(&self, prefix: &str, node: &NodeId, lease: u64) -> RecordWrite {
        let (change, lease) = match self.clone() {
            Self::Digest(digest) => (ClusterChange::Node(node.clone(), Some(digest)), Some(lease)),
            Self::Copies(title, copies) => {
                (ClusterChange::Copies(title, node.clone(), copies), Some(lease))
            }
            Self::Title(title, size) => (ClusterChange::Title(title, Some(size)), None),
            Self::Viewers(viewers) => (ClusterChange::Viewers(node.clone(), viewers), Some(lease)),
            Self::TitleGone(title) => (ClusterChange::Title(title, None), None),
            Self::Member(member) => (ClusterChange::Member(node.clone(), Some(member)), None),
            Self::Held(group, titles) => (ClusterChange::Held(node.clone(), group, titles), None),
        };
        RecordWrite::of(&change, prefix, lease)
    }

    /// The prefix of the keys that must not be there for this write, but for those of titles in a
    /// folder of the same name: `copies/a/b/n` is of the title `a/b`.
    pub(super) fn unless(&self, prefix: &str) -> Option<String> {
        match self {
            Self::TitleGone(title) => Some(format!("{prefix}copies/{title}/")),
            _ => None,
        }
    }
}

/// Time between writes of numbers of viewers: popularity changes slowly, and viewers come by the
/// second.
const VIEWERS_EVERY: Duration = Duration::from_secs(60);
/// Time between such writes while viewers may leave: the next do when others are known to have
/// left.
const LEAVING_VIEWERS_EVERY: Duration = Duration::from_secs(5);

/// Titles of a group that may be written with other records: a request to etcd has 1.5 MiB at most.
const FEW_TITLES: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;
    use cluster::{CapacityShare, NodeDisk};
    use units::{BitRate, ByteCount};

    fn records(free: u64, titles: &[(&str, u64, u32)]) -> MemberRecords {
        let share = CapacityShare { guaranteed: 100, free };
        let name = |name: &str| TitleName::new(name).unwrap();
        let copy = CopyRecord::ready(NodeDisk(0), None);
        let size = |rate| TitleSize { rate: BitRate(rate), size: ByteCount(9) };
        MemberRecords {
            digest: NodeDigest {
                address: "http://a".to_owned(),
                rack: None,
                weight: 1,
                lease: 9,
                disks: vec![share],
                network: share,
                memory: share,
                space: Vec::new(),
            },
            copies: titles.iter().map(|(title, ..)| (name(title), vec![copy])).collect(),
            titles: titles.iter().map(|&(title, rate, _)| (name(title), size(rate))).collect(),
            viewers: titles
                .iter()
                .filter(|(_, _, viewers)| *viewers > 0)
                .map(|&(title, _, viewers)| (name(title), viewers))
                .collect(),
        }
    }

    /// What is written when a node shows these records after so many seconds.
    fn written(steps: &[(u64, MemberRecords)]) -> Vec<String> {
        let (start, lease) = (Instant::now(), Duration::from_secs(9));
        let mut written = WrittenRecords::default();
        let (mut shown, mut empty_groups) = (Vec::new(), Vec::new());
        for (secs, wanted) in steps {
            let now = start + Duration::from_secs(*secs);
            let node = NodeId::new("n").unwrap();
            let may_leave = *secs >= LEAVING;
            let pending = written.pending(wanted, lease, may_leave, now);
            // Groups without titles are written once, because an earlier life may have had some.
            let is_shown = |it: &PendingWrite| !matches!(it, PendingWrite::Held(_, titles) if titles.is_empty());
            let empty = pending.iter().filter(|write| !is_shown(write)).count();
            empty_groups.push(empty);
            let keys = pending.into_iter().filter_map(|write| {
                let is_shown = is_shown(&write);
                let key = match write.to_write("/", &node, 1) {
                    RecordWrite::Put { key, .. } => key,
                    RecordWrite::Delete { key } => format!("-{key}"),
                };
                written.written(write, now);
                is_shown.then_some(key)
            });
            shown.push(keys.collect::<Vec<_>>().join(" "));
        }
        assert_eq!(empty_groups.iter().filter(|empty| **empty > 0).count(), 2, "{empty_groups:?}");
        shown
    }

    /// The second from which on viewers may leave.
    const LEAVING: u64 = 200;

    #[test]
    fn only_what_has_changed_is_written() {
        let steps = [
            (0, records(50, &[("a", 5, 0), ("b", 5, 0)])),
            (1, records(50, &[("a", 5, 0), ("b", 5, 0)])),
            (2, records(49, &[("a", 5, 2), ("b", 5, 1)])),
            (3, records(49, &[("a", 5, 3), ("b", 5, 1)])),
            (4, records(49, &[("a", 6, 3)])),
            (5, records(49, &[("a", 6, 3)])),
            (62, records(49, &[("a", 6, 3)])),
            (63, records(49, &[("a", 6, 0)])),
            (122, records(49, &[("a", 6, 0)])),
            (LEAVING - 1, records(49, &[("a", 6, 9)])),
            (LEAVING, records(49, &[("a", 6, 8)])),
            (LEAVING + 3, records(49, &[("a", 6, 7)])),
            (LEAVING + 4, records(49, &[("a", 6, 6)])),
        ];
        let wanted = [
            "/nodes/n /members/n /copies/a/n /copies/b/n /titles/a /titles/b",
            "/held/n/05 /held/n/38",
            "/nodes/n /viewers/n",
            "",
            "/titles/a -/copies/b/n -/titles/b",
            "/nodes/n",
            "/nodes/n /viewers/n",
            "",
            "/nodes/n -/viewers/n",
            "/nodes/n /viewers/n",
            "",
            "/nodes/n",
            "/viewers/n",
        ];
        // The viewers of 3 s are written a minute after those of 2 s.
        assert_eq!(written(&steps), wanted);
    }
}
