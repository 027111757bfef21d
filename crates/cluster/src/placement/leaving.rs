//! The viewers of nodes that are drained: how many of each title remain there for now, because
//! others can take the rest.
//!
//! ```text
//!   drained node: 57 viewers of a title ─────────┐
//!   other nodes: room for 20 more of the title ──┴─▶ a group of 10 may leave ──▶ 47 remain
//! ```
//!
//! A number that remains is where the node should come to, so that an order that is read twice, or
//! late, lets nobody go for whom there was no room. Half of what others have free is left to new
//! viewers. Which viewers leave is decided by the node: those that go on elsewhere by themselves.

use crate::books::StreamNeed;
use crate::director::{DirectorSettings, Headroom, room_for};
use crate::names::{NodeId, TitleName};
use crate::records::{CopyState, NodeOrders};
use crate::view::{ClusterView, CopyPlace, NodeNumber, TitleNumber};
use std::collections::BTreeMap;
use units::{BitRate, ByteCount, Moment};

/// The viewers that remain on each drained node for now, by title; a title of which nobody can
/// leave is not listed. `settings`: those of the directors that will send the viewers on.
pub fn remaining_viewers(
    view: &ClusterView,
    settings: &DirectorSettings,
    now: Moment,
) -> BTreeMap<NodeId, BTreeMap<TitleName, u32>> {
    let drained = view.nodes().filter(|(_, node)| node.is_drained());
    let with_viewers = drained.filter(|(_, node)| !node.viewers().is_empty());
    let left: Vec<_> =
        with_viewers.map(|(number, node)| (number, node.viewers().to_vec())).collect();
    let mut all = BTreeMap::new();
    if left.is_empty() {
        return all;
    }
    let mut rooms = Rooms { view: view.clone(), settings, now };
    for (node, viewers) in left {
        let mut remain = BTreeMap::new();
        for (title, count) in viewers {
            if remain.len() == NodeOrders::MOST {
                break;
            }
            let group = (count / PART).max(SMALLEST_GROUP).min(count);
            let leave = rooms.take(node, title, group);
            if leave > 0 {
                remain.insert(view.title(title).name().clone(), count - leave);
            }
        }
        if !remain.is_empty() {
            all.insert(view.node(node).id().clone(), remain);
        }
    }
    all
}

/// What the nodes that stay have free, and less with each group.
struct Rooms<'a> {
    view: ClusterView,
    settings: &'a DirectorSettings,
    now: Moment,
}

impl Rooms<'_> {
    /// Takes room for as many viewers of a title on this node as fit elsewhere, `group` at most.
    fn take(&mut self, node: NodeNumber, title: TitleNumber, group: u32) -> u32 {
        let Some(size) = self.view.title(title).size() else { return 0 };
        let streams = |count: u64| {
            let rate = BitRate(size.rate.0.saturating_mul(count));
            StreamNeed { disk: rate, network: rate, memory: ByteCount(0) }
        };
        let keeps = self.settings.headroom != Headroom::None;
        let mut left = group;
        for place in self.places(node, title) {
            let room = room_for(&self.view, place, streams(1), self.settings, self.now);
            let most = u32::try_from(room.unwrap_or(0) / 2).unwrap_or(u32::MAX);
            let takes = left.min(most);
            let need = streams(u64::from(takes) * 2);
            if takes == 0 || keeps && !self.view.survives_a_node(need) {
                continue;
            }
            self.view.booked(place, need, self.now);
            left -= takes;
        }
        group - left
    }

    /// Where viewers of a title on this node can go on: at the content that they play.
    fn places(&self, node: NodeNumber, title: TitleNumber) -> Vec<CopyPlace> {
        let copies = self.view.copies(title);
        let here = copies.iter().find(|it| it.place.node == node && it.state == CopyState::Ready);
        let content = here.and_then(|copy| copy.content);
        // The copy was removed, and what its viewers play is not known.
        if here.is_none() && self.view.title(title).contents().len() > 1 {
            return Vec::new();
        }
        let (staying, _) = self.view.staying_copies(title);
        let same = staying
            .iter()
            .filter(|copy| content.is_none() || copy.content.is_none() || copy.content == content);
        same.take(LOOKED_AT).map(|copy| copy.place).collect()
    }
}

/// The part of a title's viewers that leaves at a time: one of so many. While viewers may leave, a
/// node tells every few seconds how many are left, and then the next part does.
const PART: u32 = 4;
/// Viewers of a title that leave at a time, at least: few enough for any node.
const SMALLEST_GROUP: u32 = 4;
/// Copies that are looked at: a popular title has hundreds.
const LOOKED_AT: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CapacityShare;
    use crate::names::{ContentTag, NodeDisk};
    use crate::records::{ClusterChange, ClusterEvent, CopyRecord, NodeDigest, TitleSize};
    use crate::view::tests::digest;

    fn name(title: &str) -> TitleName {
        TitleName::new(title).unwrap()
    }

    /// Titles with their viewers.
    type Viewers<'a> = &'a [(&'a str, u32)];

    /// The node `old`, which is drained and has viewers, and `new` with so much free of 100; titles
    /// have a rate of 1.
    struct Drained {
        view: ClusterView,
    }

    impl Drained {
        fn with(viewers: Viewers<'_>, free: u64) -> Self {
            let mut drained = Self { view: ClusterView::new() };
            let disk = CapacityShare { guaranteed: 100, free };
            let new = NodeDigest { disks: vec![disk], ..digest(&[100]) };
            drained.put(ClusterChange::Node(NodeId::new("old").unwrap(), Some(digest(&[100]))));
            drained.put(ClusterChange::Node(NodeId::new("new").unwrap(), Some(new)));
            drained.put(ClusterChange::Drained(NodeId::new("old").unwrap(), true));
            for (title, _) in viewers {
                let size = TitleSize { rate: BitRate(1), size: ByteCount(1) };
                drained.put(ClusterChange::Title(name(title), Some(size)));
                drained.copy(title, "old", None);
                drained.copy(title, "new", None);
            }
            let viewers = viewers.iter().map(|(title, count)| (name(title), *count)).collect();
            drained.put(ClusterChange::Viewers(NodeId::new("old").unwrap(), viewers));
            drained
        }

        fn put(&mut self, change: ClusterChange) {
            let revision = self.view.revision() + 1;
            self.view.apply(ClusterEvent { revision, change }, Moment::ZERO);
        }

        fn copy(&mut self, title: &str, node: &str, content: Option<&str>) {
            let copy = CopyRecord::ready(NodeDisk(0), content.map(ContentTag::of));
            let node = NodeId::new(node).unwrap();
            self.put(ClusterChange::Copies(name(title), node, vec![copy]));
        }

        fn remain(&self, settings: DirectorSettings) -> String {
            let settings = DirectorSettings { headroom: Headroom::None, ..settings };
            let all = remaining_viewers(&self.view, &settings, Moment::ZERO);
            let old = all.into_iter().flat_map(|(node, remain)| {
                assert_eq!(node.as_str(), "old");
                remain
            });
            let shown = old.map(|(title, count)| format!("{} {count}", title.as_str()));
            shown.collect::<Vec<_>>().join(", ")
        }
    }

    #[test]
    fn a_group_leaves_for_whom_half_of_what_is_free_elsewhere_is_enough() {
        let kept = |kept| DirectorSettings { kept, ..DirectorSettings::default() };
        let rows: [(Viewers<'_>, u64, f64, &str); 9] = [
            (&[("a", 40)], 100, 0.0, "a 30"),
            // A small group at least, and never more than there are.
            (&[("a", 8)], 100, 0.0, "a 4"),
            (&[("a", 3)], 100, 0.0, "a 0"),
            (&[("a", 40)], 9, 0.0, "a 36"),
            (&[("a", 40)], 1, 0.0, ""),
            // What is kept for viewers who lose their node is not for these.
            (&[("a", 40)], 30, 0.26, "a 38"),
            (&[("a", 40)], 30, 0.3, ""),
            // Titles on one disk share what it has free.
            (&[("a", 40), ("b", 40)], 24, 0.0, "a 30, b 38"),
            (&[], 100, 0.0, ""),
        ];
        for (viewers, free, part, wanted) in rows {
            let found = Drained::with(viewers, free).remain(kept(part));
            assert_eq!(found, wanted, "{viewers:?}, {free} free, {part} kept");
        }
        let all = Drained::with(&[("a", 40)], 100);
        let settings = DirectorSettings::default();
        assert_eq!(remaining_viewers(&all.view, &settings, Moment::ZERO).len(), 1);
        // When the lease of the other node has ended.
        let later = Moment::from_secs(3_600);
        assert_eq!(remaining_viewers(&all.view, &settings, later), BTreeMap::new());
    }

    #[test]
    fn groups_follow_each_other_until_the_node_is_empty() {
        let (mut here, mut elsewhere, mut seen) = (100, 0, Vec::new());
        while here > 0 {
            seen.push(here);
            let drained = Drained::with(&[("a", here)], 120 - u64::from(elsewhere));
            let remain = drained.remain(DirectorSettings::default());
            let remain = remain.strip_prefix("a ").unwrap_or_else(|| panic!("{seen:?}"));
            let remain: u32 = remain.parse().unwrap();
            (here, elsewhere) = (remain, elsewhere + here - remain);
        }
        assert_eq!(seen, [100, 75, 57, 43, 33, 25, 19, 15, 11, 7, 3]);
    }

    #[test]
    fn viewers_go_on_only_with_the_content_that_they_play() {
        let mut drained = Drained::with(&[("a", 8)], 100);
        let settings = DirectorSettings::default();
        drained.copy("a", "old", Some("one"));
        drained.copy("a", "new", Some("two"));
        assert_eq!(drained.remain(settings), "");
        drained.copy("a", "new", Some("one"));
        assert_eq!(drained.remain(settings), "a 4");
        // The copy is removed while they play; the title was not replaced.
        drained.put(ClusterChange::Copies(name("a"), NodeId::new("old").unwrap(), Vec::new()));
        assert_eq!(drained.remain(settings), "a 4");
        let contents = ["one", "two"].map(ContentTag::of).to_vec();
        drained.put(ClusterChange::Contents(name("a"), contents));
        assert_eq!(drained.remain(settings), "");
        // A node that stays keeps its viewers.
        drained.put(ClusterChange::Contents(name("a"), Vec::new()));
        drained.put(ClusterChange::Drained(NodeId::new("old").unwrap(), false));
        assert_eq!(drained.remain(settings), "");
    }
}
