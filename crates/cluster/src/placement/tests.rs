//! Placement: shares, racks, and what moves.

use super::*;
use crate::names::{NodeId, TitleName};
use crate::records::{ClusterChange, ClusterEvent, CopyRecord, TitleSize};
use crate::view::TitleDemand;
use crate::view::tests::digest;
use std::collections::BTreeMap;
use units::{BitRate, ByteCount, Moment, index};

/// A cluster whose orders are carried out at once.
#[derive(Clone, Default)]
struct Filled {
    view: ClusterView,
}

impl Filled {
    /// Nodes of four disks of 100, by weight and rack; titles by viewers of rate 1.
    fn of(nodes: &[(u32, Option<&str>)], titles: impl IntoIterator<Item = f64>) -> Self {
        let mut filled = Self::default();
        for (number, (weight, rack)) in (0..).zip(nodes) {
            filled.node(number, *weight, *rack);
        }
        for (number, viewers) in titles.into_iter().enumerate() {
            filled.title(number, viewers);
        }
        filled
    }

    fn change(&mut self, change: ClusterChange) {
        let revision = self.view.revision() + 1;
        self.view.apply(ClusterEvent { revision, change }, Moment::ZERO);
    }

    fn node(&mut self, number: u32, weight: u32, rack: Option<&str>) {
        let id = NodeId::new(format!("n{number}")).unwrap();
        let digest =
            crate::NodeDigest { weight, rack: rack.map(str::to_owned), ..digest(&[100; 4]) };
        self.change(ClusterChange::Node(id, Some(digest)));
    }

    fn title(&mut self, number: usize, viewers: f64) {
        let name = TitleName::new(format!("title {number}")).unwrap();
        let size = TitleSize { rate: BitRate(1), size: ByteCount(1) };
        self.change(ClusterChange::Title(name.clone(), Some(size)));
        let number = self.view.title_named(&name).unwrap();
        let copies = self.view.title(number).demand().copies;
        self.view.expect(number, TitleDemand { viewers, copies });
    }

    fn lose(&mut self, node: u32) {
        let id = || NodeId::new(format!("n{node}")).unwrap();
        let gone: Vec<TitleName> = self
            .view
            .titles()
            .filter(|(number, _)| self.view.copies(*number).iter().any(|c| c.place.node.0 == node))
            .map(|(_, title)| title.name().clone())
            .collect();
        self.change(ClusterChange::Node(id(), None));
        for title in gone {
            self.change(ClusterChange::Copies(title, id(), Vec::new()));
        }
    }

    fn orders(&self) -> Vec<CopyOrder> {
        self.plan().orders
    }

    fn plan(&self) -> PlacementPlan {
        let titles = self.view.titles().map(|(number, _)| number);
        plan(&self.view, &RULES, titles, |_| true)
    }

    /// Carries out orders until there are none; (fills, evictions).
    fn settle(&mut self) -> (usize, usize) {
        let (mut fills, mut evictions) = (0, 0);
        for _ in 0..3 {
            let PlacementPlan { orders, copies } = self.plan();
            for (number, copies) in copies {
                let viewers = self.view.title(number).demand().viewers;
                self.view.expect(number, TitleDemand { viewers, copies });
            }
            if orders.is_empty() {
                return (fills, evictions);
            }
            for order in orders {
                let (title, place, add) = match order {
                    CopyOrder::Fill(title, place) => (title, place, true),
                    CopyOrder::Evict(title, place) => (title, place, false),
                };
                if add {
                    fills += 1;
                } else {
                    evictions += 1;
                }
                self.carry_out(title, place, add);
            }
        }
        panic!("placement does not settle");
    }

    fn carry_out(&mut self, title: TitleNumber, place: CopyPlace, add: bool) {
        let here = self.view.copies(title).iter().filter(|c| c.place.node == place.node);
        let mut records: Vec<CopyRecord> = here
            .filter(|c| c.place != place)
            .map(|c| CopyRecord { disk: c.place.disk, state: c.state, content: c.content })
            .collect();
        if add {
            records.push(CopyRecord::ready(place.disk, None));
        }
        let (name, id) =
            (self.view.title(title).name().clone(), self.view.node(place.node).id().clone());
        self.change(ClusterChange::Copies(name, id, records));
    }

    /// Copies on each node.
    fn by_node(&self) -> Vec<usize> {
        let mut counts = vec![0; self.view.nodes().count()];
        for (title, _) in self.view.titles() {
            self.view.copies(title).iter().for_each(|copy| counts[index(copy.place.node.0)] += 1);
        }
        counts
    }
}

/// Orders as text: `+title node.disk` and `-title node.disk`.
fn shown(orders: &[CopyOrder]) -> String {
    let text = |order: &CopyOrder| {
        let (sign, title, place) = match order {
            CopyOrder::Fill(title, place) => ('+', title, place),
            CopyOrder::Evict(title, place) => ('-', title, place),
        };
        format!("{sign}{} {}.{}", title.0, place.node.0, place.disk.0)
    };
    orders.iter().map(text).collect::<Vec<_>>().join(", ")
}

/// Two nodes of one disk, with so much space in all and free of other things.
fn small(space: u64, titles: &[f64]) -> Filled {
    let mut filled = Filled::default();
    for node in 0..2 {
        let id = NodeId::new(format!("n{node}")).unwrap();
        let free = crate::CapacityShare::all_free(space);
        let digest = crate::NodeDigest { space: vec![free], ..digest(&[100]) };
        filled.change(ClusterChange::Node(id, Some(digest)));
    }
    titles.iter().enumerate().for_each(|(number, viewers)| filled.title(number, *viewers));
    filled
}

#[test]
fn the_most_popular_titles_have_the_space() {
    // A disk holds two titles.
    let mut filled = small(2, &[1.0, 5.0, 3.0]);
    assert_eq!(shown(&filled.orders()), "+1 0.0, +2 0.0, +1 1.0, +2 1.0");
    for order in filled.orders() {
        let CopyOrder::Fill(title, place) = order else { panic!("nothing is evicted") };
        filled.carry_out(title, place, true);
    }
    // What copies take is not free any more.
    let fill_up = |filled: &mut Filled| {
        for node in 0..2 {
            let id = NodeId::new(format!("n{node}")).unwrap();
            let space = vec![crate::CapacityShare { guaranteed: 2, free: 0 }];
            let digest = crate::NodeDigest { space, ..digest(&[100]) };
            filled.change(ClusterChange::Node(id, Some(digest)));
        }
    };
    fill_up(&mut filled);
    let rows: [(f64, &str); 4] = [
        (1.0, ""),
        (3.0, ""),
        (3.4, ""), // within the hysteresis
        (3.5, "+0 0.0, +0 1.0, -2 0.0, -2 1.0"),
    ];
    for (viewers, orders) in rows {
        filled.title(0, viewers);
        assert_eq!(shown(&filled.orders()), orders, "{viewers} viewers");
    }
}

#[test]
fn a_drained_node_loses_its_copies_when_others_have_them() {
    let mut filled = small(2, &[1.0, 1.0]);
    filled.settle();
    let drained = |is_drained| ClusterChange::Drained(NodeId::new("n0").unwrap(), is_drained);
    filled.change(drained(true));
    // There is no third node: two copies are wanted, and one can be.
    assert_eq!(shown(&filled.orders()), "-0 0.0, -1 0.0");
    let id = NodeId::new("n1").unwrap();
    for title in 0..2 {
        let name = TitleName::new(format!("title {title}")).unwrap();
        filled.change(ClusterChange::Copies(name, id.clone(), Vec::new()));
    }
    // The last copies stay until there are others.
    assert_eq!(shown(&filled.orders()), "+0 1.0, +1 1.0");
    filled.lose(1);
    assert_eq!(filled.orders(), []);
    filled.change(drained(false));
    assert_eq!(filled.orders(), []);
}

/// A copy for each 50 viewers.
const RULES: CopyRules = CopyRules { least: 2, share: Some(0.5), extra: 0.0, hysteresis: 0.15 };
const COLD: usize = 3_000;

fn cold() -> impl Iterator<Item = f64> {
    std::iter::repeat_n(1.0, COLD)
}

#[test]
fn a_new_node_takes_its_share_and_nothing_else_moves() {
    let mut filled = Filled::of(&[(4, None); 20], cold());
    assert_eq!(filled.settle(), (2 * COLD, 0));
    assert_eq!(filled.settle(), (0, 0));
    filled.node(20, 4, None);
    let (fills, evictions) = filled.settle();
    let taken = filled.by_node()[20];
    // Each copy on the new node had to be written: that is the minimum.
    assert!(fills * 100 <= taken * 105, "{fills} fills for {taken} copies");
    assert_eq!(fills, evictions);
    let fair = 2 * COLD / 21;
    assert!(taken.abs_diff(fair) < fair / 5, "{taken} copies of {fair}");
}

#[test]
fn what_a_lost_node_had_is_written_again_and_nothing_else() {
    let mut filled = Filled::of(&[(4, None); 20], cold());
    filled.settle();
    let lost = filled.by_node()[7];
    filled.lose(7);
    assert_eq!(filled.settle(), (lost, 0));
    filled.node(7, 4, None);
    assert_eq!(filled.settle(), (lost, lost), "and back, when the node returns");
}

#[test]
fn nodes_have_copies_by_weight_and_a_weight_of_zero_empties_one() {
    let mut filled =
        Filled::of(&[(1, None), (2, None), (4, None), (8, None), (4, None), (4, None)], cold());
    filled.settle();
    let counts = filled.by_node();
    assert!(
        counts.is_sorted_by_key(|_| 0) && counts[0] < counts[1] && counts[1] < counts[2],
        "{counts:?}"
    );
    let one = COLD / 23;
    // Two different nodes for each title: the heavy one has less than its part of the weights.
    assert!(counts[0] > one && counts[3] < 16 * one, "{counts:?}");
    filled.node(3, 0, None);
    filled.settle();
    assert_eq!(filled.by_node()[3], 0);
    assert_eq!(filled.by_node().iter().sum::<usize>(), 2 * COLD);
}

#[test]
fn copies_of_a_title_are_in_different_racks() {
    let racks: Vec<(u32, Option<&str>)> =
        ["a", "a", "a", "b", "b", "c"].iter().map(|rack| (4, Some(*rack))).collect();
    let mut filled = Filled::of(&racks, [vec![1.0; 300], vec![200.0, 800.0]].concat());
    filled.settle();
    let rack = |place: CopyPlace| racks[index(place.node.0)].1.unwrap();
    for (number, _) in filled.view.titles() {
        let mut counts = BTreeMap::new();
        filled
            .view
            .copies(number)
            .iter()
            .for_each(|c| *counts.entry(rack(c.place)).or_insert(0) += 1);
        let most = counts.values().max().unwrap();
        match number.0 {
            0..300 => assert_eq!((counts.len(), *most), (2, 1), "{counts:?}"),
            300 => assert_eq!(counts.values().sum::<usize>(), 4, "{counts:?}"),
            // The rack with one node of four disks has its four; the others share the rest.
            _ => assert_eq!(counts, BTreeMap::from([("a", 6), ("b", 6), ("c", 4)])),
        }
    }
}

#[test]
fn more_copies_than_nodes_are_on_different_disks() {
    let mut filled = Filled::of(&[(4, None); 3], [1e6, 300.0]);
    filled.settle();
    let title = |number| filled.view.copies(TitleNumber(number));
    assert_eq!(title(0).len(), 12, "one for each disk");
    let mut places: Vec<CopyPlace> = title(1).iter().map(|copy| copy.place).collect();
    places.sort_unstable();
    places.dedup();
    assert_eq!(places.len(), 6);
    assert_eq!(filled.by_node(), [6, 6, 6]);
}

#[test]
fn popularity_adds_copies_first_and_removes_them_last() {
    let mut filled = Filled::of(&[(4, None); 10], [40.0, 100.0]);
    filled.settle();
    let copies = |filled: &Filled| filled.view.copies(TitleNumber(1)).to_vec();
    let before = copies(&filled);
    filled.title(1, 110.0);
    assert_eq!(filled.orders(), [], "a small change");
    filled.title(1, 200.0);
    assert_eq!(filled.settle(), (2, 0));
    assert!(before.iter().all(|copy| copies(&filled).contains(copy)));
    filled.title(1, 60.0);
    assert_eq!(filled.settle(), (0, 2));
    assert_eq!(copies(&filled), before);
    // A copy that is being written: its title evicts nothing meanwhile.
    let spare = CopyPlace { node: NodeNumber(9), disk: crate::NodeDisk(0) };
    filled.carry_out(TitleNumber(1), spare, true);
    let place = before[0].place;
    let filling = CopyRecord::filling(place.disk);
    let id = filled.view.node(place.node).id().clone();
    let name = TitleName::new("title 1").unwrap();
    filled.change(ClusterChange::Copies(name, id, vec![filling]));
    assert_eq!(filled.orders(), []);
}

#[test]
fn a_removed_title_and_an_empty_cluster_are_no_problem() {
    let mut filled = Filled::of(&[(4, None); 3], [1.0]);
    filled.settle();
    filled.change(ClusterChange::Title(TitleName::new("title 0").unwrap(), None));
    assert_eq!(filled.settle(), (0, 2));
    let mut empty = Filled::of(&[], [1.0, 1e9]);
    assert_eq!(empty.settle(), (0, 0));
    let mut one = Filled::of(&[(4, None)], [1.0]);
    assert_eq!(one.settle(), (2, 0), "two disks of one node");
}

#[test]
fn a_title_without_a_copy_comes_before_further_copies_that_few_viewers_want() {
    let filled = Filled::of(&[(1, None); 3], [90.0, 4.0, 0.0]);
    let of = |orders: Vec<CopyOrder>| -> Vec<u32> {
        let titles = orders.into_iter().map(|order| match order {
            CopyOrder::Fill(title, _) | CopyOrder::Evict(title, _) => title.0,
        });
        titles.collect()
    };
    assert_eq!(of(filled.orders()), [0, 0, 1, 2, 1, 2]);
}
