//! The copies that a node must have again after it was started anew: those that it had, but for
//! those that placement does not want there any more.
//!
//! ```text
//!   a copy that is missing:   evict is ordered, was ordered ──▶ not awaited
//!                             fill is ordered ────────────────▶ awaited
//!                             neither, for a few plans ───────▶ not awaited, if it is the planner's
//! ```
//!
//! Placement decides about titles that the bucket has, while a director plans. All other copies are
//! awaited until they are there.

use crate::{ClusterView, NodeDisk, NodeId, NodeNumber, NodeView, TitleName};
use std::collections::BTreeSet;
use units::index;

/// The copies that a node must have again.
#[derive(Debug)]
pub struct AwaitedCopies {
    node: NodeId,
    copies: BTreeSet<(TitleName, NodeDisk)>,
    /// Looks in a row at which the planner could have ordered what is missing, and had not.
    looks: u32,
}

impl AwaitedCopies {
    /// The copies that the node has now.
    pub fn of(view: &ClusterView, number: NodeNumber) -> Self {
        let node = view.node(number);
        let mut awaited =
            Self { node: node.id().clone(), copies: ready_on(view, number), looks: 0 };
        awaited.forget_evicted(node);
        awaited
    }

    /// Whether the node has all copies that are awaited. To be asked once a second.
    pub fn are_there(&mut self, view: &ClusterView) -> bool {
        let Some(number) = view.node_named(&self.node) else { return false };
        let node = view.node(number);
        self.forget_evicted(node);
        if node.digest().is_none() {
            self.looks = 0;
            return false;
        }
        let ready = ready_on(view, number);
        let orders = node.orders();
        // Which copies are ordered later is not known.
        let mut is_unwanted = view.planner().is_some() && orders.later == 0;
        let mut missing = self.copies.difference(&ready).peekable();
        if missing.peek().is_none() {
            return true;
        }
        is_unwanted &= missing.all(|(title, _)| {
            is_in_bucket(view, title) && !orders.fill.iter().any(|fill| fill.title == *title)
        });
        self.looks = if is_unwanted { self.looks + 1 } else { 0 };
        self.looks >= SOME_PLANS
    }

    /// A copy that is to be removed need not come back.
    fn forget_evicted(&mut self, node: &NodeView) {
        let evict = &node.orders().evict;
        self.copies.retain(|(title, disk)| {
            !evict.iter().any(|target| target.title == *title && target.disk == *disk)
        });
    }
}

/// The ready copies on a registered node.
fn ready_on(view: &ClusterView, number: NodeNumber) -> BTreeSet<(TitleName, NodeDisk)> {
    let mut ready = BTreeSet::new();
    let node = view.node(number);
    let disks = node.digest().map_or(0, |digest| digest.disks.len());
    for disk in (0..u16::try_from(disks).unwrap_or(u16::MAX)).map(NodeDisk) {
        for title in node.titles_on(disk) {
            let mut copies = view.ready_copies(*title).iter().map(|copy| copy.place);
            if copies.any(|place| place.node == number && place.disk == disk) {
                ready.insert((view.title(*title).name().clone(), disk));
            }
        }
    }
    ready
}

/// Whether the bucket has a title, as far as the director that plans has told.
fn is_in_bucket(view: &ClusterView, title: &TitleName) -> bool {
    let had = view.title_named(title).is_some_and(|it| !view.title(it).contents().is_empty());
    let lacks = view.unlisted().is_none_or(|unlisted| {
        // Beyond the first ones, their names are not known.
        unlisted.titles.contains(title) || index(unlisted.count) > unlisted.titles.len()
    });
    had && !lacks
}

/// Looks, a second apart, in which a director plans a few times.
const SOME_PLANS: u32 = 10;

#[cfg(test)]
mod tests {
    //! Views of one node before and after its start, and how many looks it takes until nothing is
    //! awaited.

    use super::*;
    use crate::{
        CapacityShare, ClusterChange, ContentTag, CopyRecord, CopyTarget, NodeDigest, NodeOrders,
        TitleSize, UnlistedTitles,
    };
    use units::{BitRate, ByteCount, Moment};

    /// What etcd says of the node.
    #[derive(Clone, Copy, Default)]
    struct Shown<'a> {
        /// Ready copies; `None`: the node is not registered.
        ready: Option<&'a str>,
        fill: &'a str,
        evict: &'a str,
        /// Titles on nodes that the bucket lacks; `None`: nobody plans.
        unlisted: Option<&'a str>,
    }

    fn view(shown: Shown<'_>) -> ClusterView {
        let title = |name: &str| TitleName::new(name).unwrap();
        let node = || NodeId::new("n1").unwrap();
        let share = CapacityShare { guaranteed: 100, free: 100 };
        let digest = NodeDigest {
            address: "http://10.0.0.1:8080".to_owned(),
            rack: None,
            weight: 1,
            lease: 10,
            disks: vec![share],
            network: share,
            memory: share,
            space: Vec::new(),
        };
        let targets = |names: &str| -> Vec<CopyTarget> {
            let target = |name: &str| CopyTarget {
                title: title(name),
                disk: NodeDisk(0),
                outdated: None,
                peers: Vec::new(),
            };
            names.split_whitespace().map(target).collect()
        };
        let orders = NodeOrders {
            fill: targets(shown.fill),
            evict: targets(shown.evict),
            ..NodeOrders::default()
        };
        let mut records = vec![ClusterChange::Orders(node(), orders)];
        for name in ["a", "b", "c"] {
            let size = TitleSize { rate: BitRate(1), size: ByteCount(1) };
            records.push(ClusterChange::Title(title(name), Some(size)));
            records.push(ClusterChange::Contents(title(name), vec![ContentTag::of("x")]));
        }
        if let Some(ready) = shown.ready {
            records.push(ClusterChange::Node(node(), Some(digest)));
            for name in ready.split_whitespace() {
                let copies = vec![CopyRecord::ready(NodeDisk(0), None)];
                records.push(ClusterChange::Copies(title(name), node(), copies));
            }
        }
        if let Some(unlisted) = shown.unlisted {
            let titles: BTreeSet<TitleName> = unlisted.split_whitespace().map(title).collect();
            let count = u32::try_from(titles.len()).unwrap();
            let unlisted = UnlistedTitles { count, titles };
            records.push(ClusterChange::Unlisted(Some(unlisted)));
            records.push(ClusterChange::Planner(Some("d".to_owned())));
        }
        let mut view = ClusterView::new();
        view.relist(1, records, Moment::ZERO);
        view
    }

    /// What is shown before the start, between, and afterwards; the look at which it is done.
    type Row<'a> = (&'a str, Shown<'a>, &'a [Shown<'a>], Shown<'a>, Option<u32>);

    #[test]
    fn copies_that_placement_does_not_want_are_not_awaited() {
        let all = Shown { ready: Some("a b c"), unlisted: Some(""), ..Shown::default() };
        let two = Shown { ready: Some("a b"), ..all };
        let away = Shown { ready: None, ..all };
        let evicted = Shown { evict: "c", ..all };
        let rows: [Row<'_>; 9] = [
            ("all are there", all, &[away], all, Some(1)),
            ("it is away", all, &[], away, None),
            ("one is to be removed before", evicted, &[away], two, Some(1)),
            ("one is to be removed meanwhile", all, &[away, evicted], two, Some(1)),
            ("one was removed, unseen", all, &[away], two, Some(SOME_PLANS)),
            ("one is written again", all, &[away], Shown { fill: "c", ..two }, None),
            ("one is not in the bucket", all, &[], Shown { unlisted: Some("c"), ..two }, None),
            ("nobody plans", all, &[], Shown { unlisted: None, ..two }, None),
            ("another one is ordered", all, &[], Shown { fill: "d", ..two }, Some(SOME_PLANS)),
        ];
        for (name, before, between, after, wanted) in rows {
            let before = view(before);
            let number = before.node_named(&NodeId::new("n1").unwrap()).unwrap();
            let mut awaited = AwaitedCopies::of(&before, number);
            for shown in between {
                awaited.are_there(&view(*shown));
            }
            let after = view(after);
            let done = (1..=2 * SOME_PLANS).find(|_| awaited.are_there(&after));
            assert_eq!(done, wanted, "{name}");
        }
    }
}
