//! The cluster as one process knows it, fed by events.
//!
//! ```text
//!   watch ──ClusterEvent──▶ apply ──▶ nodes:  [0] n1  alive until, free rates
//!   list  ──changes───────▶ relist            [1] n2  ...
//!                                     titles: [0] Metropolis  copies (node 1, disk 3, ready), ...
//!   director's own answers ─────────▶ booked, sent, found_full, found_unreachable
//! ```
//!
//! A view may be seconds old, which is normal: nodes decide, and the view only ranks them. What the
//! director learns from answers corrects the view until the next digest of the node.
//!
//! Names have numbers within a view, which are never given to another name, so that whoever holds
//! one may keep it while events arrive. A view is not a record: numbers of two views differ.

use crate::books::StreamNeed;
use crate::chance::hash_of;
use crate::names::{ContentTag, NodeDisk, NodeId, TitleName};
use crate::records::{
    CapacityShare, ClusterChange, ClusterEvent, CopyRecord, CopyState, CopyTarget, HeldTitles,
    MemberRecord, NodeDigest, NodeOrders, TitleGroup, TitleSize, UnableDirector, UnlistedTitles,
};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use units::{BitRate, Moment, index};

/// The number of a node within a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeNumber(pub u32);

/// The number of a title within a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TitleNumber(pub u32);

/// A disk of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CopyPlace {
    /// The node.
    pub node: NodeNumber,
    /// The disk within the node.
    pub disk: NodeDisk,
}

/// A copy of a title.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyView {
    /// Where the copy is.
    pub place: CopyPlace,
    /// Whether viewers can be sent to it.
    pub state: CopyState,
    /// The content; `None`: it is not known.
    pub content: Option<ContentTag>,
}

/// How the content of a copy compares with what the bucket has under the name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyVersion {
    /// The content of the bucket, or one that is not known.
    Current,
    /// The bucket had this content under the name, and has another one now.
    Outdated,
    /// The bucket has another content, and never had this one under the name, as far as is known:
    /// it may be the only copy.
    Own,
}

/// A node, as known.
#[derive(Clone, Debug)]
pub struct NodeView {
    id: NodeId,
    digest: Option<NodeDigest>,
    /// What stays known of it while it is away; `None` for one that was forgotten.
    member: Option<MemberRecord>,
    /// Titles that it has, also while it is away.
    held: BTreeMap<TitleGroup, Vec<(TitleNumber, Option<ContentTag>)>>,
    told: ToldShares,
    alive_until: Moment,
    avoided_until: Moment,
    /// Whether the last question to it had no answer.
    is_silent: bool,
    /// Whether the node should get no copies and no viewers.
    is_drained: bool,
    orders: NodeOrders,
    /// Viewers of titles at the node, by the titles' numbers.
    viewers: Vec<(TitleNumber, u32)>,
    sent: SentViewers,
    /// Titles with a copy on each disk.
    titles: Vec<Vec<TitleNumber>>,
}

/// What a digest told, without what was booked or has left since.
#[derive(Clone, Debug, Default)]
struct ToldShares {
    /// When that began; `None`: there was nothing, and the rest is old.
    since: Option<Moment>,
    disks: Vec<CapacityShare>,
    network: CapacityShare,
    memory: CapacityShare,
}

impl ToldShares {
    /// Called before each change of the digest's shares.
    fn keep(&mut self, digest: &NodeDigest, now: Moment) {
        if self.since.is_none() {
            self.since = Some(now);
            self.disks.clone_from(&digest.disks);
            (self.network, self.memory) = (digest.network, digest.memory);
        }
    }
}

/// Viewers who were sent to a node since it has told of its viewers, which it does once a minute at
/// most, and only where there are others or more of them.
#[derive(Clone, Debug, Default)]
struct SentViewers {
    /// By title: those of the present time, and those of the one before.
    viewers: [BTreeMap<TitleNumber, u32>; 2],
    /// When the present time began.
    since: Moment,
}

impl SentViewers {
    /// Forgets who has either been told of by now, or has left before.
    fn forget(&mut self, now: Moment) {
        if now.since(self.since) >= TOLD_WITHIN {
            let is_long = now.since(self.since) >= TOLD_WITHIN * 2;
            let last = std::mem::take(&mut self.viewers[0]);
            self.viewers[1] = if is_long { BTreeMap::new() } else { last };
            self.since = now;
        }
    }
}

/// A title, as known.
#[derive(Clone, Debug)]
pub struct TitleView {
    name: TitleName,
    size: Option<TitleSize>,
    /// What the bucket has had under the name, the present content first.
    contents: Vec<ContentTag>,
    demand: TitleDemand,
}

/// What is expected of a title: known to whoever plans placement, and no record.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TitleDemand {
    /// Viewers at the same time that are expected: popularity.
    pub viewers: f64,
    /// Copies that were wanted when placement last looked, 0 before: small changes of popularity do
    /// not change it.
    pub copies: u32,
}

/// The cluster as one process knows it.
#[derive(Clone, Debug, Default)]
pub struct ClusterView {
    revision: u64,
    epoch: u64,
    planner: Option<String>,
    unlisted: Option<UnlistedTitles>,
    /// Viewers whom each director has lately refused for want of copies.
    unmet: BTreeMap<String, Vec<(TitleNumber, u32)>>,
    /// Directors that cannot list the bucket.
    unable: BTreeMap<String, UnableDirector>,
    nodes: Vec<NodeView>,
    titles: Vec<TitleView>,
    /// Copies of each title; apart from the rest, because every viewer needs them and nothing else.
    copies: Vec<Vec<CopyView>>,
    node_numbers: BTreeMap<NodeId, NodeNumber>,
    title_numbers: BTreeMap<TitleName, TitleNumber>,
    totals: Totals,
    ignored: u64,
}

/// Sums over all nodes with a digest that are not drained.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Totals {
    disks: CapacityShare,
    /// The node whose disks hold most.
    largest: u64,
}

impl ClusterView {
    /// A view that knows nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Applies an event, received at `now`. An event older than the view is ignored: a watch that
    /// begins again repeats some.
    pub fn apply(&mut self, event: ClusterEvent, now: Moment) {
        // Changes of one transaction have the same revision.
        if event.revision >= self.revision {
            self.revision = event.revision;
            self.change(event.change, now);
        }
    }

    /// Replaces everything by a list of all records at a revision: after the start, and where a
    /// watch cannot go on. A list older than the view is taken, too: records that were restored
    /// from a backup are the truth.
    pub fn relist(
        &mut self,
        revision: u64,
        records: impl IntoIterator<Item = ClusterChange>,
        now: Moment,
    ) {
        for node in &mut self.nodes {
            (node.digest, node.alive_until) = (None, Moment::ZERO);
            node.told.since = None;
            (node.is_drained, node.orders) = (false, NodeOrders::default());
            node.member = None;
            node.held.clear();
            node.viewers.clear();
            node.sent = SentViewers::default();
            node.titles.iter_mut().for_each(Vec::clear);
        }
        for title in &mut self.titles {
            title.size = None;
            title.contents.clear();
        }
        self.copies.iter_mut().for_each(Vec::clear);
        (self.revision, self.epoch, self.planner) = (revision, 0, None);
        self.unmet.clear();
        self.unable.clear();
        self.unlisted = None;
        self.count();
        for record in records {
            self.change(record, now);
        }
    }

    fn change(&mut self, change: ClusterChange, now: Moment) {
        match change {
            ClusterChange::Node(id, digest) => {
                if let Some(number) = self.node_number(&id) {
                    self.set_digest(number, digest, now);
                }
            }
            ClusterChange::Copies(title, node, copies) => {
                let numbers = (self.title_number(&title), self.node_number(&node));
                if let (Some(title), Some(node)) = numbers {
                    self.set_copies(title, node, &copies);
                }
            }
            ClusterChange::Viewers(id, viewers) => {
                let Some(node) = self.node_number(&id) else { return };
                let mut viewers = self.numbered(&viewers);
                viewers.sort_unstable();
                let node = &mut self.nodes[index(node.0)];
                (node.viewers, node.sent) = (viewers, SentViewers::default());
            }
            ClusterChange::Unmet(director, viewers) => {
                self.unmet.remove(&director);
                // A director that has refused nobody has no entry.
                if !viewers.is_empty() && self.unmet.len() < MOST_DIRECTORS {
                    let viewers = self.numbered(&viewers);
                    self.unmet.insert(director, viewers);
                }
            }
            ClusterChange::Title(name, size) => {
                if let Some(number) = self.title_number(&name) {
                    self.titles[index(number.0)].size = size;
                }
            }
            ClusterChange::Contents(name, contents) => {
                if let Some(number) = self.title_number(&name) {
                    self.titles[index(number.0)].contents = contents;
                }
            }
            ClusterChange::Orders(id, orders) => {
                if let Some(number) = self.node_number(&id) {
                    self.nodes[index(number.0)].orders = orders;
                }
            }
            ClusterChange::Planner(address) => self.planner = address,
            ClusterChange::Unlisted(unlisted) => self.unlisted = unlisted,
            ClusterChange::Unable(director, unable) => {
                self.unable.remove(&director);
                if let Some(unable) = unable.filter(|_| self.unable.len() < MOST_DIRECTORS) {
                    self.unable.insert(director, unable);
                }
            }
            ClusterChange::Drained(id, is_drained) => {
                if let Some(number) = self.node_number(&id) {
                    self.set_drained(number, is_drained);
                }
            }
            ClusterChange::Member(id, member) => {
                if let Some(number) = self.node_number(&id) {
                    self.nodes[index(number.0)].member = member;
                }
            }
            ClusterChange::Held(id, group, titles) => {
                if let Some(number) = self.node_number(&id) {
                    self.set_held(number, group, &titles);
                }
            }
            ClusterChange::Epoch(epoch) => self.epoch = epoch,
        }
    }

    fn set_held(&mut self, node: NodeNumber, group: TitleGroup, titles: &HeldTitles) {
        let of_title = |(title, content): (&TitleName, &Option<ContentTag>)| {
            Some((self.title_number(title)?, *content))
        };
        let titles: Vec<_> = titles.iter().filter_map(of_title).collect();
        let held = &mut self.nodes[index(node.0)].held;
        match titles.is_empty() {
            true => drop(held.remove(&group)),
            false => drop(held.insert(group, titles)),
        }
    }

    fn numbered(&mut self, viewers: &BTreeMap<TitleName, u32>) -> Vec<(TitleNumber, u32)> {
        let of_title =
            |(title, viewers): (&TitleName, &u32)| Some((self.title_number(title)?, *viewers));
        viewers.iter().filter_map(of_title).collect()
    }

    /// The number of a node, given at its first mention; `None` beyond the bound.
    fn node_number(&mut self, id: &NodeId) -> Option<NodeNumber> {
        if let Some(number) = self.node_numbers.get(id) {
            return Some(*number);
        }
        let Some(number) = free_number(self.nodes.len(), MOST_NODES) else {
            self.ignored += 1;
            return None;
        };
        self.node_numbers.insert(id.clone(), NodeNumber(number));
        self.nodes.push(NodeView {
            id: id.clone(),
            digest: None,
            member: None,
            held: BTreeMap::new(),
            told: ToldShares::default(),
            alive_until: Moment::ZERO,
            avoided_until: Moment::ZERO,
            is_silent: false,
            is_drained: false,
            orders: NodeOrders::default(),
            viewers: Vec::new(),
            sent: SentViewers::default(),
            titles: Vec::new(),
        });
        Some(NodeNumber(number))
    }

    fn title_number(&mut self, name: &TitleName) -> Option<TitleNumber> {
        if let Some(number) = self.title_numbers.get(name) {
            return Some(*number);
        }
        let Some(number) = free_number(self.titles.len(), MOST_TITLES) else {
            self.ignored += 1;
            return None;
        };
        self.title_numbers.insert(name.clone(), TitleNumber(number));
        let (contents, demand) = (Vec::new(), TitleDemand::default());
        let title = TitleView { name: name.clone(), size: None, contents, demand };
        self.titles.push(title);
        self.copies.push(Vec::new());
        Some(TitleNumber(number))
    }

    fn set_digest(&mut self, number: NodeNumber, digest: Option<NodeDigest>, now: Moment) {
        let node = &mut self.nodes[index(number.0)];
        node.alive_until = digest.as_ref().map_or(Moment::ZERO, |digest| now + digest.lease());
        // A digest says that the node reaches the records, not that it can be reached from here:
        // only a node that was gone is asked at once.
        if node.digest.is_none() {
            (node.avoided_until, node.is_silent) = (Moment::ZERO, false);
        }
        node.digest = digest;
        node.told.since = None;
        self.count();
    }

    fn set_drained(&mut self, number: NodeNumber, is_drained: bool) {
        let node = &mut self.nodes[index(number.0)];
        if std::mem::replace(&mut node.is_drained, is_drained) == is_drained {
            return;
        }
        let titles: Vec<TitleNumber> = node.titles.iter().flatten().copied().collect();
        for title in titles {
            sort_by_use(&mut self.copies[index(title.0)], &self.nodes);
        }
        self.count();
    }

    /// Takes newer shares of a node that is known, in place: as an event with a digest that differs
    /// in nothing else. For those who have many nodes in one process.
    pub fn refresh(
        &mut self,
        node: NodeNumber,
        disks: impl IntoIterator<Item = CapacityShare>,
        network: CapacityShare,
        memory: CapacityShare,
        now: Moment,
    ) {
        let node = &mut self.nodes[index(node.0)];
        let Some(digest) = &mut node.digest else { return };
        let totals = &mut self.totals.disks;
        for (known, newer) in digest.disks.iter_mut().zip(disks) {
            if !node.is_drained {
                totals.free = totals.free + newer.free - known.free;
            }
            known.free = newer.free;
        }
        (digest.network, digest.memory) = (network, memory);
        node.told.since = None;
        node.alive_until = now + digest.lease();
    }

    /// Counts every node that has a digest as alive until `until` at least. For a process that
    /// hears no events any more: what it knows is old, and the nodes decide.
    pub fn prolong(&mut self, until: Moment) {
        for node in self.nodes.iter_mut().filter(|node| node.digest.is_some()) {
            node.alive_until = node.alive_until.max(until);
        }
    }

    fn set_copies(&mut self, title: TitleNumber, node: NodeNumber, copies: &[CopyRecord]) {
        let of_title = &mut self.copies[index(title.0)];
        let known = &mut self.nodes[index(node.0)];
        for copy in of_title.iter().filter(|copy| copy.place.node == node) {
            known.titles[usize::from(copy.place.disk.0)].retain(|on_disk| *on_disk != title);
        }
        of_title.retain(|copy| copy.place.node != node);
        for copy in copies {
            let disk = usize::from(copy.disk.0);
            let wanted = known.titles.len().max(disk + 1);
            known.titles.resize_with(wanted, Vec::new);
            if !known.titles[disk].contains(&title) {
                known.titles[disk].push(title);
                let place = CopyPlace { node, disk: copy.disk };
                of_title.push(CopyView { place, state: copy.state, content: copy.content });
            }
        }
        sort_by_use(of_title, &self.nodes);
    }

    fn count(&mut self) {
        self.totals = Totals::default();
        let stay = self.nodes.iter().filter(|node| !node.is_drained);
        for digest in stay.filter_map(|node| node.digest.as_ref()) {
            let sum = |of: fn(&CapacityShare) -> u64| digest.disks.iter().map(of).sum::<u64>();
            let guaranteed = sum(|disk| disk.guaranteed);
            self.totals.disks.guaranteed += guaranteed;
            self.totals.disks.free += sum(|disk| disk.free);
            self.totals.largest = self.totals.largest.max(guaranteed);
        }
    }

    /// Counts a stream that a node has just accepted, until its next digest.
    pub fn booked(&mut self, place: CopyPlace, need: StreamNeed, now: Moment) {
        self.take(place, [need.disk.0, need.network.0, need.memory.0], now);
    }

    /// Forgets what was booked at nodes that have told nothing for long since, which they do within
    /// seconds where they can write records: who has left meanwhile is not known, and the nodes
    /// decide.
    pub fn forget_bookings(&mut self, now: Moment) {
        let mut changed = false;
        for node in &mut self.nodes {
            let is_old = |since: &mut Moment| now.since(*since) >= BOOKED;
            if let Some(digest) = &mut node.digest
                && node.told.since.take_if(is_old).is_some()
            {
                digest.disks.clone_from(&node.told.disks);
                (digest.network, digest.memory) = (node.told.network, node.told.memory);
                changed = true;
            }
        }
        if changed {
            self.count();
        }
    }

    /// Counts a viewer of a title whom a node has just accepted, until it tells of its viewers.
    pub(crate) fn sent(&mut self, title: TitleNumber, node: NodeNumber, now: Moment) {
        let sent = &mut self.nodes[index(node.0)].sent;
        sent.forget(now);
        *sent.viewers[0].entry(title).or_insert(0) += 1;
    }

    /// Remembers that a disk had no more free than this, until the next digest of its node.
    pub fn found_full(&mut self, place: CopyPlace, free: BitRate, now: Moment) {
        let node = self.node(place.node);
        let disk = node.digest().and_then(|digest| digest.disks.get(usize::from(place.disk.0)));
        let surplus = disk.map_or(0, |disk| disk.free.saturating_sub(free.0));
        self.take(place, [surplus, 0, 0], now);
    }

    /// Counts a stream fewer on a disk, until the next digest of its node.
    pub(crate) fn left(&mut self, place: CopyPlace, need: StreamNeed, now: Moment) {
        let node = &mut self.nodes[index(place.node.0)];
        let Some(digest) = &mut node.digest else { return };
        node.told.keep(digest, now);
        if let Some(disk) = digest.disks.get_mut(usize::from(place.disk.0)) {
            let before = disk.free;
            disk.give_back(need.disk.0);
            if !node.is_drained {
                self.totals.disks.free += disk.free - before;
            }
        }
        digest.network.give_back(need.network.0);
        digest.memory.give_back(need.memory.0);
    }

    fn take(&mut self, place: CopyPlace, [disk_rate, network, memory]: [u64; 3], now: Moment) {
        let node = &mut self.nodes[index(place.node.0)];
        let Some(digest) = &mut node.digest else { return };
        node.told.keep(digest, now);
        if let Some(disk) = digest.disks.get_mut(usize::from(place.disk.0)) {
            let taken = disk.free.min(disk_rate);
            disk.free -= taken;
            if !node.is_drained {
                self.totals.disks.free -= taken;
            }
        }
        digest.network.free = digest.network.free.saturating_sub(network);
        digest.memory.free = digest.memory.free.saturating_sub(memory);
    }

    /// Sets what is expected of a title.
    pub fn expect(&mut self, title: TitleNumber, demand: TitleDemand) {
        self.titles[index(title.0)].demand = demand;
    }

    /// Avoids a node that did not answer, for a time or until it has left and come again.
    pub fn found_unreachable(&mut self, node: NodeNumber, now: Moment) {
        let node = &mut self.nodes[index(node.0)];
        (node.avoided_until, node.is_silent) = (now + AVOIDED, true);
    }

    /// Remembers that a node has answered.
    pub fn found_reachable(&mut self, node: NodeNumber) {
        self.nodes[index(node.0)].is_silent = false;
    }

    /// The revision of the newest event.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// The number of the configuration.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// The address of the director that plans placement.
    pub fn planner(&self) -> Option<&str> {
        self.planner.as_deref()
    }

    /// The titles on nodes that the bucket lacks; `None`: nobody knows.
    pub fn unlisted(&self) -> Option<&UnlistedTitles> {
        self.unlisted.as_ref()
    }

    /// The directors that leave planning to others, because they cannot list the bucket.
    pub fn unable(&self) -> impl Iterator<Item = &UnableDirector> {
        self.unable.values()
    }

    /// Viewers who were lately refused for want of copies, by title and director.
    pub fn unmet(&self) -> impl Iterator<Item = (TitleNumber, u32)> {
        self.unmet.values().flatten().copied()
    }

    /// Changes that were ignored, because they name more nodes or titles than a view holds.
    pub fn ignored(&self) -> u64 {
        self.ignored
    }

    /// The number of a title.
    pub fn title_named(&self, name: &TitleName) -> Option<TitleNumber> {
        self.title_numbers.get(name).copied()
    }

    /// The number of a node.
    pub fn node_named(&self, id: &NodeId) -> Option<NodeNumber> {
        self.node_numbers.get(id).copied()
    }

    /// A title.
    #[inline]
    pub fn title(&self, number: TitleNumber) -> &TitleView {
        &self.titles[index(number.0)]
    }

    /// The copies of a title that viewers can be sent to.
    #[inline]
    pub fn ready_copies(&self, title: TitleNumber) -> &[CopyView] {
        let copies = self.copies(title);
        &copies[..copies.partition_point(CopyView::is_ready)]
    }

    /// The copies of a title that viewers can be sent to: those on nodes that stay, and those on
    /// nodes that are drained.
    #[inline]
    pub fn staying_copies(&self, title: TitleNumber) -> (&[CopyView], &[CopyView]) {
        let ready = self.ready_copies(title);
        ready.split_at(ready.partition_point(|copy| !self.node(copy.place.node).is_drained))
    }

    /// The copies of a title, in any state; those that are ready first, and of these those on nodes
    /// that are not drained.
    #[inline]
    pub fn copies(&self, title: TitleNumber) -> &[CopyView] {
        &self.copies[index(title.0)]
    }

    /// The ready copies of a title whose content is not that of the bucket, with what it is.
    pub fn different_copies(
        &self,
        title: TitleNumber,
    ) -> impl Iterator<Item = (CopyView, CopyVersion)> {
        let versions = self.ready_copies(title).iter();
        let versions = versions.map(move |copy| (*copy, self.title(title).version_of(copy)));
        versions.filter(|(_, version)| *version != CopyVersion::Current)
    }

    /// The nodes other than `node` that have a ready copy of what the bucket has, a few of them:
    /// for each node other ones, so that not all ask the same.
    pub fn peers(&self, title: TitleNumber, node: NodeNumber) -> Vec<NodeNumber> {
        let present = self.title(title).contents.first().copied();
        let with = self.ready_copies(title).iter().filter(|copy| {
            copy.place.node != node && copy.content.is_some() && copy.content == present
        });
        let mut nodes: Vec<NodeNumber> = with.map(|copy| copy.place.node).collect();
        let asks = self.node(node).id.as_str();
        nodes.sort_by_cached_key(|other| {
            (hash_of(&format!("{asks} {}", self.node(*other).id)), *other)
        });
        nodes.dedup();
        nodes.truncate(CopyTarget::MOST_PEERS);
        nodes
    }

    /// A node.
    #[inline]
    pub fn node(&self, number: NodeNumber) -> &NodeView {
        &self.nodes[index(number.0)]
    }

    /// All nodes that were ever mentioned, also those that have left.
    pub fn nodes(&self) -> impl Iterator<Item = (NodeNumber, &NodeView)> {
        (0..).map(NodeNumber).zip(&self.nodes)
    }

    /// All titles that were ever mentioned, also those that were removed.
    pub fn titles(&self) -> impl Iterator<Item = (TitleNumber, &TitleView)> {
        (0..).map(TitleNumber).zip(&self.titles)
    }

    /// Whether the free rate of all disks is enough for the streams of the node that holds most,
    /// if that one were lost, and for this stream. Nodes that are drained do not count. True for a
    /// cluster of one node, where it would never be so.
    pub fn survives_a_node(&self, need: StreamNeed) -> bool {
        let Totals { disks, largest } = self.totals;
        disks.guaranteed == largest || disks.free >= largest.saturating_add(need.disk.0)
    }
}

impl NodeView {
    /// The node's name.
    pub fn id(&self) -> &NodeId {
        &self.id
    }

    /// The newest digest; `None` for a node that has left or is only mentioned.
    pub fn digest(&self) -> Option<&NodeDigest> {
        self.digest.as_ref()
    }

    /// What stays known of the node while it is away; `None` for one that was forgotten, or that
    /// is only mentioned.
    pub fn member(&self) -> Option<&MemberRecord> {
        self.member.as_ref()
    }

    /// Titles of which the node has ready copies, with the contents where they are known: also
    /// while the node is away.
    pub fn held(&self) -> impl Iterator<Item = (TitleNumber, Option<ContentTag>)> {
        self.held.values().flatten().copied()
    }

    /// Whether the cluster has any record of the node.
    pub fn is_known(&self) -> bool {
        self.digest.is_some()
            || self.member.is_some()
            || !self.held.is_empty()
            || self.is_drained
            || self.orders != NodeOrders::default()
    }

    /// Whether the node belongs to the cluster, and is not registered at present.
    pub fn is_away(&self) -> bool {
        self.digest.is_none() && self.is_known()
    }

    /// Until when the node counts as alive.
    pub fn alive_until(&self) -> Moment {
        self.alive_until
    }

    /// Whether the node is there as far as is known: its lease has not ended, and it has answered
    /// the last question, or was not asked since it came.
    pub fn is_well(&self, now: Moment) -> bool {
        now < self.alive_until && !self.is_silent
    }

    /// Whether viewers may be sent to the node: its lease has not ended, and it answers. A node
    /// that did not is asked again after a while.
    #[inline]
    pub fn answers(&self, now: Moment) -> bool {
        now < self.alive_until && now >= self.avoided_until
    }

    /// Whether the node should get no copies and no viewers, and lose the copies that it has.
    pub fn is_drained(&self) -> bool {
        self.is_drained
    }

    /// What the node should do next.
    pub fn orders(&self) -> &NodeOrders {
        &self.orders
    }

    /// Viewers at the node by title, as it has told; titles without any are left out.
    pub fn viewers(&self) -> &[(TitleNumber, u32)] {
        &self.viewers
    }

    /// Viewers of a title at the node, with those who were sent there since it has told of them.
    pub(crate) fn viewers_of(&self, title: TitleNumber, now: Moment) -> u32 {
        let told = self.viewers.binary_search_by_key(&title, |(title, _)| *title);
        let told = told.map_or(0, |at| self.viewers[at].1);
        let times = match now.since(self.sent.since) {
            since if since < TOLD_WITHIN => 2,
            since if since < TOLD_WITHIN * 2 => 1,
            _ => 0,
        };
        let sent = self.sent.viewers.iter().take(times);
        sent.filter_map(|viewers| viewers.get(&title)).fold(told, |sum, sent| sum + sent)
    }

    /// Titles that have viewers at the node, as it has told, or to whom some were sent since.
    pub(crate) fn viewed_titles(&self) -> impl Iterator<Item = TitleNumber> {
        let sent = self.sent.viewers.iter().flat_map(BTreeMap::keys).copied();
        let is_told = |title: &TitleNumber| {
            self.viewers.binary_search_by_key(title, |(title, _)| *title).is_ok()
        };
        let sent: BTreeSet<TitleNumber> = sent.filter(|title| !is_told(title)).collect();
        self.viewers.iter().map(|(title, _)| *title).chain(sent)
    }

    /// Titles with a copy on a disk.
    pub fn titles_on(&self, disk: NodeDisk) -> &[TitleNumber] {
        self.titles.get(usize::from(disk.0)).map_or(&[], Vec::as_slice)
    }
}

impl TitleView {
    /// The title's name.
    pub fn name(&self) -> &TitleName {
        &self.name
    }

    /// What all copies of the title have in common; `None` for a title that was removed.
    pub fn size(&self) -> Option<TitleSize> {
        self.size
    }

    /// What the bucket has had under the name, the present content first; empty: it is not known.
    pub fn contents(&self) -> &[ContentTag] {
        &self.contents
    }

    /// How a copy of the title compares with what the bucket has.
    pub fn version_of(&self, copy: &CopyView) -> CopyVersion {
        match (copy.content, self.contents.first()) {
            (Some(content), Some(present)) if content != *present => {
                match self.contents.contains(&content) {
                    true => CopyVersion::Outdated,
                    false => CopyVersion::Own,
                }
            }
            _ => CopyVersion::Current,
        }
    }

    /// What is expected of the title.
    pub fn demand(&self) -> TitleDemand {
        self.demand
    }
}

impl CopyView {
    /// Whether viewers can be sent to the copy, as far as the copy is concerned.
    #[inline]
    pub fn is_ready(&self) -> bool {
        self.state == CopyState::Ready
    }
}

fn sort_by_use(copies: &mut [CopyView], nodes: &[NodeView]) {
    copies.sort_by_key(|copy| (!copy.is_ready(), nodes[index(copy.place.node.0)].is_drained));
}

fn free_number(used: usize, most: u32) -> Option<u32> {
    u32::try_from(used).ok().filter(|number| *number < most)
}

/// Nodes that a view ever mentions: far more than a cluster has in a director's life.
const MOST_NODES: u32 = 100_000;
/// Directors whose refusals and troubles a view knows.
const MOST_DIRECTORS: usize = 1_000;
/// The time within which a node has told of a viewer who came, and is there still.
const TOLD_WITHIN: Duration = Duration::from_secs(65);
/// Titles that a view ever mentions.
const MOST_TITLES: u32 = 10_000_000;
/// The time for which a booking counts without a digest: longer than any digest takes that comes.
const BOOKED: Duration = Duration::from_secs(60);
/// The time for which a node that did not answer is not asked again: shorter than a lease, so that
/// a lost packet costs little; a dead node's lease ends meanwhile.
const AVOIDED: Duration = Duration::from_secs(2);

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::names::NodeId;
    use units::ByteCount;

    pub(crate) const NEED: StreamNeed =
        StreamNeed { disk: BitRate(5), network: BitRate(5), memory: ByteCount(1) };

    pub(crate) fn digest(free: &[u64]) -> NodeDigest {
        NodeDigest {
            address: String::new(),
            rack: None,
            weight: 1,
            lease: 10,
            disks: free.iter().map(|free| CapacityShare { guaranteed: 100, free: *free }).collect(),
            network: CapacityShare::all_free(1_000),
            memory: CapacityShare::all_free(1_000),
            space: Vec::new(),
        }
    }

    /// A view of these nodes, by the free rates of their disks, and these titles, by their copies:
    /// (node, disk).
    pub(crate) fn view(nodes: &[&[u64]], titles: &[&[(u32, u16)]]) -> ClusterView {
        let mut view = ClusterView::new();
        let id = |number: u32| NodeId::new(format!("n{number}")).unwrap();
        let mut change = |change| {
            let revision = view.revision() + 1;
            view.apply(ClusterEvent { revision, change }, Moment::ZERO);
        };
        for (number, free) in (0..).zip(nodes) {
            change(ClusterChange::Node(id(number), Some(digest(free))));
        }
        for (number, copies) in titles.iter().enumerate() {
            let title = || TitleName::new(format!("t{number}")).unwrap();
            let size = TitleSize { rate: BitRate(5), size: ByteCount(1) };
            change(ClusterChange::Title(title(), Some(size)));
            let mut nodes: Vec<u32> = copies.iter().map(|(node, _)| *node).collect();
            nodes.dedup();
            for node in nodes {
                let here = copies.iter().filter(|(at, _)| *at == node);
                let record = |disk: u16| CopyRecord::ready(NodeDisk(disk), None);
                let records = here.map(|(_, disk)| record(*disk)).collect();
                change(ClusterChange::Copies(title(), id(node), records));
            }
        }
        view
    }

    fn shown(view: &ClusterView, now: Moment) -> String {
        let node = |(number, node): (NodeNumber, &NodeView)| {
            let free: Vec<u64> = node
                .digest()
                .map_or(Vec::new(), |digest| digest.disks.iter().map(|disk| disk.free).collect());
            let mark = if node.answers(now) { "" } else { " away" };
            format!("{}{free:?}{mark}", number.0)
        };
        let title = |(number, title): (TitleNumber, &TitleView)| {
            let places = view.copies(number).iter().map(|copy| {
                let CopyPlace { node, disk } = copy.place;
                format!("{}.{}", node.0, disk.0)
            });
            format!("{}: {}", title.name(), places.collect::<Vec<_>>().join(" "))
        };
        let nodes = view.nodes().map(node).collect::<Vec<_>>().join(" ");
        let titles = view.titles().map(title).collect::<Vec<_>>().join(", ");
        format!("{nodes} | {titles}")
    }

    #[test]
    fn events_change_the_view_and_old_ones_do_not() {
        let mut view = view(&[&[10, 20], &[30]], &[&[(0, 1), (1, 0)]]);
        let secs = Moment::from_secs;
        assert_eq!(shown(&view, secs(1)), "0[10, 20] 1[30] | t0: 0.1 1.0");
        assert_eq!(shown(&view, secs(10)), "0[10, 20] away 1[30] away | t0: 0.1 1.0");
        let node = |number: u32| NodeId::new(format!("n{number}")).unwrap();
        let mut old = view.clone();
        old.prolong(secs(20));
        assert_eq!(shown(&old, secs(19)), "0[10, 20] 1[30] | t0: 0.1 1.0", "the view is old");
        let put = |revision, change| ClusterEvent { revision, change };
        view.apply(put(1, ClusterChange::Node(node(0), None)), secs(1));
        assert_eq!(shown(&view, secs(1)), "0[10, 20] 1[30] | t0: 0.1 1.0", "an old event");
        view.apply(put(50, ClusterChange::Node(node(0), None)), secs(1));
        let title = TitleName::new("t0").unwrap();
        view.apply(put(50, ClusterChange::Copies(title, node(1), Vec::new())), secs(1));
        assert_eq!(shown(&view, secs(1)), "0[] away 1[30] | t0: 0.1");
        view.relist(9, [ClusterChange::Node(node(7), Some(digest(&[1])))], secs(1));
        assert_eq!(shown(&view, secs(1)), "0[] away 1[] away 2[1] | t0: ");
        assert_eq!((view.revision(), view.ignored()), (9, 0));
    }

    #[test]
    fn answers_correct_the_view_until_the_next_digest() {
        let mut view = view(&[&[10, 20]], &[]);
        let place = |disk| CopyPlace { node: NodeNumber(0), disk: NodeDisk(disk) };
        view.booked(place(0), NEED, Moment::ZERO);
        view.found_full(place(1), BitRate(3), Moment::ZERO);
        assert_eq!(shown(&view, Moment::ZERO), "0[5, 3] | ");
        view.left(place(1), NEED, Moment::ZERO);
        assert_eq!(shown(&view, Moment::ZERO), "0[5, 8] | ");
        assert_eq!(view.totals.disks.free, 13);
        view.found_unreachable(NodeNumber(0), Moment::from_secs(1));
        assert_eq!(shown(&view, Moment::from_secs(1)), "0[5, 8] away | ");
        assert_eq!(shown(&view, Moment::from_secs(3)), "0[5, 8] | ", "it is tried again");
        let is_well = |view: &ClusterView| view.node(NodeNumber(0)).is_well(Moment::from_secs(3));
        assert!(!is_well(&view), "and has not answered yet");
        view.found_reachable(NodeNumber(0));
        assert!(is_well(&view));
        view.found_unreachable(NodeNumber(0), Moment::from_secs(3));
        let share = |free| CapacityShare { guaranteed: 100, free };
        let spare = CapacityShare::all_free(1_000);
        view.refresh(NodeNumber(0), [share(7), share(8)], spare, spare, Moment::from_secs(3));
        assert_eq!(shown(&view, Moment::from_secs(12)), "0[7, 8] | ");
        assert_eq!(view.totals.disks.free, 15);
    }

    #[test]
    fn bookings_are_forgotten_where_no_digest_comes() {
        let mut view = view(&[&[10, 20], &[30]], &[]);
        let place = |node| CopyPlace { node: NodeNumber(node), disk: NodeDisk(0) };
        let at = Moment::from_secs;
        view.booked(place(0), NEED, at(1));
        view.booked(place(1), NEED, at(2));
        view.booked(place(0), NEED, at(40));
        view.forget_bookings(at(60));
        assert_eq!(shown(&view, Moment::ZERO), "0[0, 20] 1[25] | ");
        view.forget_bookings(at(61));
        assert_eq!(shown(&view, Moment::ZERO), "0[10, 20] 1[25] | ");
        assert_eq!(view.totals.disks.free, 55);
        // With a digest they are in what the node has told.
        let event = ClusterChange::Node(NodeId::new("n1").unwrap(), Some(digest(&[25])));
        view.apply(ClusterEvent { revision: 99, change: event }, Moment::ZERO);
        view.forget_bookings(at(900));
        assert_eq!(shown(&view, Moment::ZERO), "0[10, 20] 1[25] | ");
    }

    #[test]
    fn the_loss_of_the_largest_node_is_survived_while_its_streams_fit_elsewhere() {
        // Of 400 the largest node has 200: half of all must be free.
        let need = |disk| StreamNeed { disk: BitRate(disk), ..NEED };
        let view = view(&[&[60, 50], &[50], &[50]], &[]);
        assert!(view.survives_a_node(need(10)));
        assert!(!view.survives_a_node(need(11)));
        assert!(self::view(&[&[0]], &[]).survives_a_node(NEED), "one node has no other");
    }
}
