//! Placement: which nodes keep a copy of which title, and the orders that lead there.
//!
//! ```text
//!   viewers of a title ──CopyRules──▶ how many ──rendezvous──▶ which nodes ──loads──▶ which disks
//!                                                                  │
//!                present copies ───────────────compare─────────────┘──▶ fill, evict
//! ```
//!
//! The orders are for nodes: a node fills a copy as an admitted stream, in its own time. A copy is
//! evicted only when every wanted copy of its title is ready, or when more popular titles need its
//! space. Which nodes are members is an argument, because a node that is away for a moment should
//! cost no copies.
//!
//! A wanted copy of a content that the bucket has replaced is filled again in its place. What a
//! node has under the name and the bucket never had is left as it is.
//!
//! The copy comes first that has the most viewers for each copy that is ready or ordered before it;
//! a title's first one counts for more, because nobody can watch the title without it.
//!
//! Where the disks have not space for all, the most popular titles have their copies. A title that
//! has copies counts for more by the hysteresis, so that equally popular ones do not take turns.

mod copies;
mod leaving;
mod loads;
mod planner;
mod rendezvous;

pub use copies::CopyRules;
pub use leaving::remaining_viewers;
pub use planner::PlacementPlanner;

use crate::names::{ContentTag, TitleName};
use crate::records::{ClusterChange, MOST_CONTENTS, UnlistedTitles};
use crate::view::{
    ClusterView, CopyPlace, CopyVersion, CopyView, NodeNumber, TitleNumber, TitleView,
};
use copies::expected_rate;
use loads::DiskLoads;
use rendezvous::{Chooser, Member};
use std::collections::{BTreeMap, BTreeSet};
use units::{ByteCount, float};

/// An order to a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CopyOrder {
    /// Write a copy of the title to this disk, in the place of an outdated one if one is there.
    Fill(TitleNumber, CopyPlace),
    /// Remove the copy of the title from this disk, when no viewer reads it.
    Evict(TitleNumber, CopyPlace),
}

/// What leads from the present placement to the wanted one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlacementPlan {
    /// Orders to nodes: copies to write, the most urgent first, and copies to remove.
    pub orders: Vec<CopyOrder>,
    /// Titles of which another number of copies is wanted than before: the number belongs to the
    /// title's record, for the next plan.
    pub copies: Vec<(TitleNumber, u32)>,
}

/// Plans the copies of these titles. Members are the nodes with a digest, disks, a weight above
/// zero, and `is_member`, which are not drained.
pub fn plan(
    view: &ClusterView,
    rules: &CopyRules,
    titles: impl IntoIterator<Item = TitleNumber>,
    is_member: impl Fn(NodeNumber) -> bool,
) -> PlacementPlan {
    let mut members = Vec::new();
    for (number, node) in view.nodes() {
        let digest = node.digest().filter(|digest| digest.weight > 0 && !digest.disks.is_empty());
        if let Some(digest) = digest.filter(|_| is_member(number) && !node.is_drained()) {
            members.push(Member::new(number, node.id(), digest));
        }
    }
    let mut chooser = Chooser::new(members);
    let mut loads = DiskLoads::of(view);
    let mean = loads.mean_rate();
    let known = view.titles().filter(|(_, title)| title.size().is_some());
    let spare_above = rules.spare_above(known.map(|(_, title)| CopyRules::load(title, mean)));
    let mut titles: Vec<TitleNumber> = titles.into_iter().collect();
    titles.iter().for_each(|title| loads.free(view, *title));
    let viewers = |title: &TitleNumber| {
        let held = if view.copies(*title).is_empty() { 0.0 } else { rules.hysteresis.max(0.0) };
        view.title(*title).demand().viewers * (1.0 + held)
    };
    // Large loads are easier to spread while disks are still empty.
    let order = |title: &TitleNumber| (view.copies(*title).is_empty(), *title);
    titles.sort_by(|a, b| viewers(b).total_cmp(&viewers(a)).then(order(a).cmp(&order(b))));
    let PlacementPlan { mut orders, copies: mut changed } = PlacementPlan::default();
    for number in titles {
        let (title, copies) = (view.title(number), view.copies(number));
        let Some(size) = title.size().map(|size| size.size) else {
            orders.extend(copies.iter().map(|copy| CopyOrder::Evict(number, copy.place)));
            continue;
        };
        let wanted = rules.copies(title, mean, spare_above, chooser.disks());
        let count = u32::try_from(wanted).unwrap_or(u32::MAX);
        if count != title.demand().copies {
            changed.push((number, count));
        }
        let room = |node| loads.disks_with_room(node, size);
        let nodes = chooser.choose(title.name(), wanted, room);
        let load = expected_rate(title) / float(wanted.max(1) as u64);
        loads.remove(view, number);
        let planned = PlannedTitle { number, title, size, load, nodes };
        planned.compare(copies, &mut loads, &mut orders);
    }
    PlacementPlan { orders: most_urgent_first(view, orders), copies: changed }
}

// Copies to write, then copies to remove. Of equal ones those of the more popular titles first, in
// whose order they come.
fn most_urgent_first(view: &ClusterView, orders: Vec<CopyOrder>) -> Vec<CopyOrder> {
    let mut copies: BTreeMap<TitleNumber, u32> = BTreeMap::new();
    let mut urgencies: Vec<(f64, CopyOrder)> = Vec::with_capacity(orders.len());
    for order in orders {
        let urgency = match order {
            CopyOrder::Evict(..) => f64::NEG_INFINITY,
            CopyOrder::Fill(title, _) => {
                let ready = || u32::try_from(view.ready_copies(title).len()).unwrap_or(u32::MAX);
                let before = copies.entry(title).or_insert_with(ready);
                let each = if *before == 0 { FIRST_COPY } else { 1.0 / f64::from(*before) };
                *before = before.saturating_add(1);
                (view.title(title).demand().viewers + 1.0) * each
            }
        };
        urgencies.push((urgency, order));
    }
    urgencies.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    urgencies.into_iter().map(|(_, order)| order).collect()
}

/// How many times more a title's first copy counts than its second one would.
const FIRST_COPY: f64 = 10.0;

/// The titles of the cluster that are not listed where titles of record are. Of some all nodes may
/// be away.
pub fn unlisted_titles(
    view: &ClusterView,
    is_listed: impl Fn(&TitleName) -> bool,
) -> UnlistedTitles {
    let is_known =
        |number, title: &TitleView| title.size().is_some() || !view.ready_copies(number).is_empty();
    let known = view.titles().filter(|(number, title)| is_known(*number, title));
    let names = known.map(|(_, title)| title.name()).filter(|name| !is_listed(name));
    let names: BTreeSet<&TitleName> = names.collect();
    UnlistedTitles {
        count: u32::try_from(names.len()).unwrap_or(u32::MAX),
        titles: names.into_iter().take(UnlistedTitles::MOST).cloned().collect(),
    }
}

/// The records of what the bucket has and had under each name, where they are to change. `present`:
/// the contents that it has now; a name that is not `is_listed` and is on no node is forgotten.
pub fn content_changes(
    view: &ClusterView,
    present: &BTreeMap<TitleName, ContentTag>,
    is_listed: impl Fn(&TitleName) -> bool,
) -> Vec<ClusterChange> {
    let known = |name: &TitleName| {
        view.title_named(name).map_or(&[][..], |number| view.title(number).contents())
    };
    let newer = present.iter().filter(|(name, content)| known(name).first() != Some(*content));
    let newer = newer.map(|(name, content)| {
        let before = known(name).iter().filter(|it| *it != content);
        let all = std::iter::once(content).chain(before).take(MOST_CONTENTS);
        ClusterChange::Contents(name.clone(), all.copied().collect())
    });
    let gone = view.titles().filter(|(number, title)| {
        let is_known = !title.contents().is_empty();
        is_known && view.copies(*number).is_empty() && !is_listed(title.name())
    });
    let gone = gone.map(|(_, title)| ClusterChange::Contents(title.name().clone(), Vec::new()));
    newer.chain(gone).collect()
}

/// A title whose copies are wanted on these nodes, one entry a copy.
struct PlannedTitle<'a> {
    number: TitleNumber,
    title: &'a TitleView,
    size: ByteCount,
    /// The expected load of each copy.
    load: f64,
    nodes: &'a [NodeNumber],
}

impl PlannedTitle<'_> {
    /// The orders that lead from the present copies to the wanted ones.
    fn compare(&self, present: &[CopyView], loads: &mut DiskLoads, orders: &mut Vec<CopyOrder>) {
        let Self { number, title, size, load, nodes } = *self;
        let mut wanted = nodes.to_vec();
        let (mut unwanted, mut here) = (Vec::new(), Vec::new());
        let mut all_ready = true;
        // Of several copies on one node, those stay that are ready.
        for copy in
            present.iter().filter(|c| c.is_ready()).chain(present.iter().filter(|c| !c.is_ready()))
        {
            match wanted.iter().position(|node| *node == copy.place.node) {
                Some(found) if loads.take_room(copy.place, size) => {
                    wanted.swap_remove(found);
                    let outdated =
                        copy.is_ready() && title.version_of(copy) == CopyVersion::Outdated;
                    all_ready &= copy.is_ready() && !outdated;
                    if outdated {
                        orders.push(CopyOrder::Fill(number, copy.place));
                    }
                    loads.add(copy.place, load);
                    here.push(copy.place);
                }
                _ => unwanted.push(copy.place),
            }
        }
        // In the order of the ranking: the disks do not depend on what was removed above.
        for node in nodes {
            let Some(found) = wanted.iter().position(|other| other == node) else { continue };
            wanted.swap_remove(found);
            let taken = here.iter().chain(&unwanted);
            if let Some(place) = loads.least_loaded(*node, size, taken) {
                all_ready = false;
                loads.take_room(place, size);
                loads.add(place, load);
                here.push(place);
                orders.push(CopyOrder::Fill(number, place));
            }
        }
        if !all_ready {
            return;
        }
        // The last copies of a title stay, unless others have their space.
        let is_last = here.is_empty();
        unwanted.retain(|place| !is_last || !loads.has_room(*place, size));
        orders.extend(unwanted.into_iter().map(|place| CopyOrder::Evict(number, place)));
    }
}

#[cfg(test)]
mod tests;
