//! Placement over time: from views of the cluster to the orders of each node.
//!
//! ```text
//!   titles of record ─┐
//!   view ─────────────┼──▶ expected viewers, nodes that are away ──▶ plan ──▶ orders of each node
//!                     └── now
//! ```
//!
//! Viewers who come are expected at once, also those who were refused for want of copies, and are
//! forgotten slowly: a title that was watched this
//! evening has its copies tomorrow, unless others need the space. A node that is away keeps its
//! copies in the plan for some minutes, because a restart should move nothing; one that was
//! forgotten has none.
//!
//! What is remembered is not a record: a planner that starts takes the present copies for wanted.

use super::{CopyOrder, CopyRules, plan};
use crate::names::{NodeId, TitleName};
use crate::records::{
    ClusterChange, ClusterEvent, CopyRecord, CopyTarget, NodeDigest, NodeOrders, TitleSize,
};
use crate::view::{ClusterView, CopyVersion, CopyView, NodeNumber, TitleDemand, TitleNumber};
use std::collections::BTreeMap;
use std::time::Duration;
use units::Moment;

/// Plans placement again and again.
#[derive(Clone, Debug)]
pub struct PlacementPlanner {
    rules: CopyRules,
    expected: BTreeMap<TitleName, TitleDemand>,
    nodes: BTreeMap<NodeId, KnownNode>,
    planned: Option<Moment>,
}

/// A node as it was when it was last there.
#[derive(Clone, Debug)]
struct KnownNode {
    digest: NodeDigest,
    copies: BTreeMap<TitleName, Vec<CopyRecord>>,
    /// Whether it had the record that goes when the node is forgotten.
    was_member: bool,
    seen: Moment,
}

impl PlacementPlanner {
    /// A planner that knows nothing yet.
    pub fn new(rules: CopyRules) -> Self {
        Self { rules, expected: BTreeMap::new(), nodes: BTreeMap::new(), planned: None }
    }

    /// The orders of all nodes that have any, where these are the titles of record. Copies of other
    /// titles are left as they are.
    pub fn plan(
        &mut self,
        mut view: ClusterView,
        titles: &BTreeMap<TitleName, TitleSize>,
        now: Moment,
    ) -> BTreeMap<NodeId, NodeOrders> {
        self.remember_nodes(&mut view, now);
        for (name, size) in titles {
            apply(&mut view, ClusterChange::Title(name.clone(), Some(*size)), now);
        }
        let numbers = titles.keys().filter_map(|name| view.title_named(name));
        let numbers: Vec<TitleNumber> = numbers.collect();
        self.expect_viewers(&mut view, &numbers, now);
        let planned = plan(&view, &self.rules, numbers, |_| true);
        for (number, copies) in planned.copies {
            if let Some(demand) = self.expected.get_mut(view.title(number).name()) {
                demand.copies = copies;
            }
        }
        let mut orders = BTreeMap::new();
        for order in planned.orders {
            add(&mut orders, &view, order);
        }
        orders
    }

    /// Nodes that are away for a moment are in the view as they were.
    fn remember_nodes(&mut self, view: &mut ClusterView, now: Moment) {
        let mut copies: BTreeMap<NodeNumber, BTreeMap<TitleName, Vec<CopyRecord>>> =
            BTreeMap::new();
        for (number, title) in view.titles() {
            for copy in view.copies(number) {
                let of_node = copies.entry(copy.place.node).or_default();
                let records = of_node.entry(title.name().clone()).or_default();
                let (disk, CopyView { state, content, .. }) = (copy.place.disk, *copy);
                records.push(CopyRecord { disk, state, content });
            }
        }
        for (number, node) in view.nodes() {
            let Some(digest) = node.digest().cloned() else { continue };
            let copies = copies.remove(&number).unwrap_or_default();
            let was_member = node.member().is_some();
            let known = KnownNode { digest, copies, was_member, seen: now };
            self.nodes.insert(node.id().clone(), known);
        }
        let is_forgotten = |id: &NodeId| {
            view.node_named(id).is_none_or(|number| view.node(number).member().is_none())
        };
        self.nodes.retain(|id, node| {
            now.since(node.seen) < AWAY && !(node.was_member && is_forgotten(id))
        });
        for (id, node) in self.nodes.iter().filter(|(_, node)| node.seen < now) {
            apply(view, ClusterChange::Node(id.clone(), Some(node.digest.clone())), now);
            for (title, copies) in &node.copies {
                let change = ClusterChange::Copies(title.clone(), id.clone(), copies.clone());
                apply(view, change, now);
            }
        }
    }

    /// How many viewers a title is expected to have: those whom it has, or had not long ago.
    fn expect_viewers(&mut self, view: &mut ClusterView, titles: &[TitleNumber], now: Moment) {
        let mut present: BTreeMap<TitleNumber, f64> = BTreeMap::new();
        for (_, node) in view.nodes() {
            for (title, viewers) in node.viewers() {
                *present.entry(*title).or_default() += f64::from(*viewers);
            }
        }
        for (title, viewers) in view.unmet() {
            *present.entry(title).or_default() += f64::from(viewers);
        }
        let since = self.planned.map_or(Duration::ZERO, |planned| now.since(planned));
        let kept = 0.5_f64.powf(since.as_secs_f64() / HALF_FORGOTTEN.as_secs_f64());
        self.planned = Some(now);
        let mut expected = BTreeMap::new();
        for number in titles {
            let name = view.title(*number).name().clone();
            let copies = u32::try_from(view.ready_copies(*number).len()).unwrap_or(u32::MAX);
            let known = self.expected.get(&name).copied();
            let known = known.unwrap_or(TitleDemand { viewers: 0.0, copies });
            let here = present.get(number).copied().unwrap_or(0.0);
            let demand = TitleDemand { viewers: here.max(known.viewers * kept), ..known };
            view.expect(*number, demand);
            expected.insert(name, demand);
        }
        self.expected = expected;
    }
}

/// Adds an order to those of its node, or counts it where there are enough for the disk.
fn add(orders: &mut BTreeMap<NodeId, NodeOrders>, view: &ClusterView, order: CopyOrder) {
    let (CopyOrder::Fill(title, place) | CopyOrder::Evict(title, place)) = order;
    let node = view.node(place.node);
    let disks = node.digest().map_or(0, |digest| digest.disks.len());
    let of_node = orders.entry(node.id().clone()).or_default();
    let is_fill = matches!(order, CopyOrder::Fill(..));
    let different = view.different_copies(title).find(|(copy, _)| copy.place == place);
    let outdated = different.filter(|(_, version)| *version == CopyVersion::Outdated);
    let peers = if is_fill { view.peers(title, place.node) } else { Vec::new() };
    let address = |peer: NodeNumber| Some(view.node(peer).digest()?.address.clone());
    let target = CopyTarget {
        title: view.title(title).name().clone(),
        disk: place.disk,
        outdated: outdated.and_then(|(copy, _)| copy.content),
        peers: peers.into_iter().filter_map(address).collect(),
    };
    let list = if is_fill { &mut of_node.fill } else { &mut of_node.evict };
    // So that no disk waits for the orders of another.
    let most = (NodeOrders::MOST / disks.max(1)).max(2);
    let of_disk = list.iter().filter(|known| known.disk == target.disk).count();
    if of_disk < most && list.len() < NodeOrders::MOST {
        list.push(target);
    } else if is_fill {
        of_node.later = of_node.later.saturating_add(1);
    }
}

fn apply(view: &mut ClusterView, change: ClusterChange, now: Moment) {
    view.apply(ClusterEvent { revision: view.revision(), change }, now);
}

/// Time for which a node that is away keeps its copies in the plan: longer than a restart.
const AWAY: Duration = Duration::from_secs(600);
/// Time after which half of the viewers who have left are still expected.
const HALF_FORGOTTEN: Duration = Duration::from_secs(1800);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::{ContentTag, NodeDisk};
    use crate::placement::{content_changes, unlisted_titles};
    use crate::records::{CopyState, MemberRecord, UnlistedTitles};
    use crate::view::tests::digest;
    use units::{BitRate, ByteCount};

    fn id(node: u32) -> NodeId {
        NodeId::new(format!("n{node}")).unwrap()
    }

    fn name(title: usize) -> TitleName {
        TitleName::new(format!("t{title}")).unwrap()
    }

    /// Titles of rate 1; a disk holds 100.
    fn titles(count: usize) -> BTreeMap<TitleName, TitleSize> {
        let size = TitleSize { rate: BitRate(1), size: ByteCount(1) };
        (0..count).map(|title| (name(title), size)).collect()
    }

    fn nodes(count: u32) -> ClusterView {
        let mut view = ClusterView::new();
        for node in 0..count {
            let change = ClusterChange::Node(id(node), Some(digest(&[100, 100])));
            apply(&mut view, change, Moment::ZERO);
        }
        view
    }

    /// Carries out all orders.
    fn carry_out(view: &mut ClusterView, orders: &BTreeMap<NodeId, NodeOrders>) {
        for (node, orders) in orders {
            for target in &orders.fill {
                let copy = CopyRecord::ready(target.disk, None);
                let change = ClusterChange::Copies(target.title.clone(), node.clone(), vec![copy]);
                apply(view, change, Moment::ZERO);
            }
            for target in &orders.evict {
                let change = ClusterChange::Copies(target.title.clone(), node.clone(), Vec::new());
                apply(view, change, Moment::ZERO);
            }
        }
    }

    /// (fills, evictions, later) of all nodes.
    fn counts(orders: &BTreeMap<NodeId, NodeOrders>) -> (usize, usize, u32) {
        let sum = |of: fn(&NodeOrders) -> usize| orders.values().map(of).sum();
        let later = orders.values().map(|orders| orders.later).sum();
        (sum(|orders| orders.fill.len()), sum(|orders| orders.evict.len()), later)
    }

    #[test]
    fn orders_come_in_portions_until_all_is_there() {
        let rules = CopyRules { extra: 0.0, ..CopyRules::default() };
        let mut planner = PlacementPlanner::new(rules);
        let (mut view, titles) = (nodes(3), titles(300));
        let mut seen = Vec::new();
        loop {
            let orders = planner.plan(view.clone(), &titles, Moment::ZERO);
            let (fills, evictions, later) = counts(&orders);
            assert_eq!(evictions, 0);
            if fills == 0 {
                break;
            }
            for of_node in orders.values() {
                assert!(of_node.fill.len() <= NodeOrders::MOST);
            }
            seen.push(fills + later as usize);
            carry_out(&mut view, &orders);
        }
        // Six disks get up to 32 orders at a time.
        assert_eq!(seen, [600, 408, 216, 30]);
        assert_eq!(view.copies(TitleNumber(7)).len(), 2);
    }

    #[test]
    fn a_node_that_is_away_for_a_moment_costs_nothing() {
        let mut planner = PlacementPlanner::new(CopyRules::default());
        let (mut view, titles) = (nodes(3), titles(20));
        let orders = planner.plan(view.clone(), &titles, Moment::ZERO);
        carry_out(&mut view, &orders);
        let at = Moment::from_secs;
        assert_eq!(planner.plan(view.clone(), &titles, at(1)), BTreeMap::new());
        // Its records end with its lease.
        apply(&mut view, ClusterChange::Node(id(1), None), at(2));
        for title in 0..20 {
            apply(&mut view, ClusterChange::Copies(name(title), id(1), Vec::new()), at(2));
        }
        assert_eq!(planner.plan(view.clone(), &titles, at(600)), BTreeMap::new());
        let (fills, evictions, _) = counts(&planner.plan(view.clone(), &titles, at(602)));
        assert!(fills > 5 && evictions == 0, "{fills} copies are missing");
    }

    #[test]
    fn a_node_that_was_forgotten_is_replaced_at_once() {
        let mut planner = PlacementPlanner::new(CopyRules::default());
        let (mut view, titles) = (nodes(3), titles(20));
        let at = Moment::from_secs;
        let record = MemberRecord { address: String::new(), rack: None };
        let member = |member| ClusterChange::Member(id(1), member);
        apply(&mut view, member(Some(record)), at(0));
        let orders = planner.plan(view.clone(), &titles, Moment::ZERO);
        carry_out(&mut view, &orders);
        assert_eq!(planner.plan(view.clone(), &titles, at(1)), BTreeMap::new());
        apply(&mut view, ClusterChange::Node(id(1), None), at(2));
        for title in 0..20 {
            apply(&mut view, ClusterChange::Copies(name(title), id(1), Vec::new()), at(2));
        }
        assert_eq!(planner.plan(view.clone(), &titles, at(3)), BTreeMap::new());
        apply(&mut view, member(None), at(4));
        let orders = planner.plan(view.clone(), &titles, at(4));
        let (fills, evictions, _) = counts(&orders);
        assert!(fills > 5 && evictions == 0, "{fills} copies are missing");
        assert!(!orders.contains_key(&id(1)), "{orders:?}");
    }

    #[test]
    fn viewers_bring_copies_at_once_and_take_them_away_late() {
        let rules = CopyRules { extra: 0.0, ..CopyRules::default() };
        let mut planner = PlacementPlanner::new(rules);
        let (mut view, titles) = (nodes(4), titles(2));
        let orders = planner.plan(view.clone(), &titles, Moment::ZERO);
        carry_out(&mut view, &orders);
        let at = |minutes: u64| Moment::from_secs(minutes * 60);
        // 50 viewers for each copy.
        let viewers = |view: &mut ClusterView, count| {
            let viewers = BTreeMap::from([(name(0), count)]);
            apply(view, ClusterChange::Viewers(id(0), viewers), Moment::ZERO);
        };
        viewers(&mut view, 200);
        let orders = planner.plan(view.clone(), &titles, at(1));
        assert_eq!(counts(&orders), (2, 0, 0));
        carry_out(&mut view, &orders);
        viewers(&mut view, 0);
        // 200 wanted four copies; below 150 by the hysteresis three, below 100 two.
        let rows = [(2, 0), (10, 0), (20, 1), (60, 2), (600, 2)];
        for (minute, evicted) in rows {
            let orders = planner.plan(view.clone(), &titles, at(minute));
            assert_eq!(counts(&orders), (0, evicted, 0), "minute {minute}");
        }
        // A planner that starts takes what is there for wanted.
        let mut another = PlacementPlanner::new(rules);
        viewers(&mut view, 170);
        assert_eq!(another.plan(view.clone(), &titles, at(0)), BTreeMap::new());
    }

    #[test]
    fn a_title_that_viewers_are_refused_gets_its_copies() {
        let rules = CopyRules { least: 1, extra: 0.0, ..CopyRules::default() };
        let mut planner = PlacementPlanner::new(rules);
        let mut view = ClusterView::new();
        // There is space for one of two titles.
        let full = |free| crate::NodeDigest {
            space: vec![crate::CapacityShare { guaranteed: 1, free }],
            ..digest(&[100])
        };
        let node = |free| ClusterChange::Node(id(0), Some(full(free)));
        apply(&mut view, node(1), Moment::ZERO);
        let orders = planner.plan(view.clone(), &titles(2), Moment::ZERO);
        carry_out(&mut view, &orders);
        apply(&mut view, node(0), Moment::ZERO);
        let here = |view: &ClusterView| {
            let copies = |number| view.copies(number).len();
            [0, 1].map(|title| view.title_named(&name(title)).map_or(0, copies))
        };
        assert_eq!(here(&view), [1, 0]);
        assert_eq!(planner.plan(view.clone(), &titles(2), Moment::ZERO), BTreeMap::new());
        let unmet = BTreeMap::from([(name(1), 1)]);
        apply(&mut view, ClusterChange::Unmet("d".to_owned(), unmet), Moment::ZERO);
        let orders = planner.plan(view.clone(), &titles(2), Moment::ZERO);
        assert_eq!(counts(&orders), (1, 1, 0));
        carry_out(&mut view, &orders);
        assert_eq!(here(&view), [0, 1]);
        // Remembered when the refusals are over.
        apply(&mut view, ClusterChange::Unmet("d".to_owned(), BTreeMap::new()), Moment::ZERO);
        let later = Moment::from_secs(900);
        assert_eq!(planner.plan(view.clone(), &titles(2), later), BTreeMap::new());
    }

    #[test]
    fn titles_on_nodes_that_are_not_listed_are_named_up_to_a_number() {
        let mut view = nodes(1);
        let mut has = |number, state| {
            let copy = vec![CopyRecord { disk: NodeDisk(0), state, content: None }];
            apply(&mut view, ClusterChange::Copies(name(number), id(0), copy), Moment::ZERO);
        };
        (0..4).for_each(|number| has(number, CopyState::Ready));
        has(9, CopyState::Filling);
        let listed = titles(3);
        let found = unlisted_titles(&view, |name| listed.contains_key(name));
        assert_eq!((found.count, Vec::from_iter(&found.titles)), (1, vec![&name(3)]));
        assert_eq!([found.has(&name(3)), found.has(&name(2))], [Some(true), Some(false)]);
        // More than are named.
        let some = UnlistedTitles { count: 5, ..found };
        let rows = [(3, Some(true)), (2, Some(false)), (4, None)];
        rows.iter().for_each(|(title, has)| assert_eq!(some.has(&name(*title)), *has));
        assert_eq!(unlisted_titles(&view, |_| true), UnlistedTitles::default());
    }

    #[test]
    fn titles_that_are_not_of_record_are_left_alone() {
        let mut planner = PlacementPlanner::new(CopyRules::default());
        let mut view = nodes(3);
        let copy = CopyRecord::ready(NodeDisk(0), None);
        apply(&mut view, ClusterChange::Copies(name(9), id(0), vec![copy]), Moment::ZERO);
        assert_eq!(planner.plan(view, &titles(0), Moment::ZERO), BTreeMap::new());
    }

    #[test]
    fn a_copy_of_replaced_content_is_written_anew_and_another_is_left_alone() {
        let rules = CopyRules { extra: 0.0, ..CopyRules::default() };
        let (mut planner, mut view) = (PlacementPlanner::new(rules), nodes(2));
        let [old, new, own] = ["old", "new", "own"].map(ContentTag::of);
        let has = |view: &mut ClusterView, node, content| {
            let copy = CopyRecord::ready(NodeDisk(1), Some(content));
            apply(view, ClusterChange::Copies(name(0), id(node), vec![copy]), Moment::ZERO);
        };
        let bucket = |view: &mut ClusterView, contents: &[ContentTag]| {
            apply(view, ClusterChange::Contents(name(0), contents.to_vec()), Moment::ZERO);
        };
        let mut orders = |view: &ClusterView| planner.plan(view.clone(), &titles(1), Moment::ZERO);
        has(&mut view, 0, old);
        has(&mut view, 1, own);
        // Nobody knows what the bucket had before: both may be the only copies.
        bucket(&mut view, &[new]);
        assert_eq!(orders(&view), BTreeMap::new());
        bucket(&mut view, &[new, old]);
        let planned = orders(&view);
        let target = CopyTarget { outdated: Some(old), ..CopyTarget::new(name(0), NodeDisk(1)) };
        assert_eq!(planned.keys().collect::<Vec<_>>(), [&id(0)]);
        assert_eq!(planned[&id(0)].fill, std::slice::from_ref(&target));
        // A copy that is not wanted goes when the wanted ones have the new content, not before.
        has(&mut view, 1, old);
        has(&mut view, 2, old);
        let come = ClusterChange::Node(id(2), Some(digest(&[100, 100])));
        apply(&mut view, come, Moment::ZERO);
        let drained = ClusterChange::Drained(id(0), true);
        apply(&mut view, drained, Moment::ZERO);
        let planned = orders(&view);
        assert_eq!(counts(&planned), (2, 0, 0), "{planned:?}");
        has(&mut view, 1, new);
        let planned = orders(&view);
        assert_eq!(counts(&planned), (1, 0, 0), "{planned:?}");
        // Filled from the one that has it already.
        assert_eq!(planned[&id(2)].fill[0].peers, [String::new()]);
        has(&mut view, 2, new);
        let planned = orders(&view);
        assert_eq!((counts(&planned), &planned[&id(0)].evict), ((0, 1, 0), &vec![target]));
    }

    #[test]
    fn contents_that_the_bucket_had_are_remembered_while_a_node_may_have_them() {
        let mut view = nodes(1);
        let after = |view: &mut ClusterView, present: &[&str]| {
            let present: BTreeMap<TitleName, ContentTag> =
                present.iter().map(|content| (name(0), ContentTag::of(content))).collect();
            let changes = content_changes(view, &present, |title| present.contains_key(title));
            let told: Vec<Vec<ContentTag>> = changes
                .into_iter()
                .map(|change| {
                    apply(view, change.clone(), Moment::ZERO);
                    let ClusterChange::Contents(_, contents) = change else { unreachable!() };
                    contents
                })
                .collect();
            told.concat()
        };
        let tags = |contents: &[&str]| -> Vec<ContentTag> {
            contents.iter().map(|content| ContentTag::of(content)).collect()
        };
        assert_eq!(after(&mut view, &["a"]), tags(&["a"]));
        assert_eq!(after(&mut view, &["a"]), []);
        assert_eq!(after(&mut view, &["b"]), tags(&["b", "a"]));
        assert_eq!(after(&mut view, &["a"]), tags(&["a", "b"]));
        let copy = vec![CopyRecord::ready(NodeDisk(0), None)];
        apply(&mut view, ClusterChange::Copies(name(0), id(0), copy), Moment::ZERO);
        after(&mut view, &[]);
        assert_eq!(view.title(view.title_named(&name(0)).unwrap()).contents().len(), 2);
        apply(&mut view, ClusterChange::Copies(name(0), id(0), Vec::new()), Moment::ZERO);
        after(&mut view, &[]);
        assert_eq!(view.title(view.title_named(&name(0)).unwrap()).contents(), []);
        for number in 0..40 {
            after(&mut view, &[&number.to_string()]);
        }
        assert_eq!(view.title(view.title_named(&name(0)).unwrap()).contents().len(), 16);
    }
}
