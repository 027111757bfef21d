//! Placement: which nodes keep a copy of which title, and the orders that lead there.
//!
//! ```text
//!   viewers of a title ──CopyRules──▶ how many ──rendezvous──▶ which nodes ──loads──▶ which disks
//!                                                                  │
//!                present copies ───────────────compare─────────────┘──▶ fill, evict
//! ```
//!
//! The orders are for nodes: a node fills a copy as an admitted stream, in its own time. A copy is
//! evicted only when every wanted copy of its title is ready. Which nodes are members is an
//! argument, because a node that is away for a moment should cost no copies.

mod copies;
mod loads;
mod rendezvous;

pub use copies::CopyRules;

use crate::view::{ClusterView, CopyPlace, CopyView, NodeNumber, TitleNumber};
use loads::DiskLoads;
use rendezvous::{Chooser, Member};
use units::float;

/// An order to a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CopyOrder {
    /// Write a copy of the title to this disk.
    Fill(TitleNumber, CopyPlace),
    /// Remove the copy of the title from this disk, when no viewer reads it.
    Evict(TitleNumber, CopyPlace),
}

/// What leads from the present placement to the wanted one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlacementPlan {
    /// Orders to nodes, those for the most popular titles first.
    pub orders: Vec<CopyOrder>,
    /// Titles of which another number of copies is wanted than before: the number belongs to the
    /// title's record, for the next plan.
    pub copies: Vec<(TitleNumber, u32)>,
}

/// Plans the copies of these titles. Members are the nodes with a digest, disks, a weight above
/// zero, and `is_member`.
pub fn plan(
    view: &ClusterView,
    rules: &CopyRules,
    titles: impl IntoIterator<Item = TitleNumber>,
    is_member: impl Fn(NodeNumber) -> bool,
) -> PlacementPlan {
    let mut members = Vec::new();
    for (number, node) in view.nodes() {
        let digest = node.digest().filter(|digest| digest.weight > 0 && !digest.disks.is_empty());
        if let Some(digest) = digest.filter(|_| is_member(number)) {
            members.push(Member::new(number, node.id(), digest));
        }
    }
    let mut chooser = Chooser::new(members);
    let mut loads = DiskLoads::of(view);
    let mean = loads.mean_rate();
    let demands = view.titles().filter_map(|(_, title)| title.demand());
    let spare_above = rules.spare_above(demands.map(|demand| CopyRules::load(demand, mean)));
    let mut titles: Vec<TitleNumber> = titles.into_iter().collect();
    let viewers = |title: &TitleNumber| view.title(*title).demand().map_or(0.0, |d| d.viewers);
    // Large loads are easier to spread while disks are still empty.
    titles.sort_by(|a, b| viewers(b).total_cmp(&viewers(a)).then(a.cmp(b)));
    let PlacementPlan { mut orders, copies: mut changed } = PlacementPlan::default();
    for number in titles {
        let (title, copies) = (view.title(number), view.copies(number));
        let Some(demand) = title.demand() else {
            orders.extend(copies.iter().map(|copy| CopyOrder::Evict(number, copy.place)));
            continue;
        };
        let wanted = rules.copies(demand, mean, spare_above, chooser.disks());
        let count = u32::try_from(wanted).unwrap_or(u32::MAX);
        if count != demand.copies {
            changed.push((number, count));
        }
        let nodes = chooser.choose(title.name(), wanted);
        let load = demand.viewers * float(demand.rate.0) / float(wanted.max(1) as u64);
        loads.remove(view, number);
        compare(number, copies, nodes, load, &mut loads, &mut orders);
    }
    PlacementPlan { orders, copies: changed }
}

/// Orders for one title, whose copies are wanted on `nodes` (one entry a copy), with this load on
/// each copy.
fn compare(
    title: TitleNumber,
    present: &[CopyView],
    nodes: &[NodeNumber],
    load: f64,
    loads: &mut DiskLoads,
    orders: &mut Vec<CopyOrder>,
) {
    let mut wanted = nodes.to_vec();
    let (mut unwanted, mut here) = (Vec::new(), Vec::new());
    let mut all_ready = true;
    // Of several copies on one node, those stay that are ready.
    for copy in
        present.iter().filter(|c| c.is_ready()).chain(present.iter().filter(|c| !c.is_ready()))
    {
        match wanted.iter().position(|node| *node == copy.place.node) {
            Some(found) => {
                wanted.swap_remove(found);
                all_ready &= copy.is_ready();
                loads.add(copy.place, load);
                here.push(copy.place);
            }
            None => unwanted.push(copy.place),
        }
    }
    // In the order of the ranking: the disks do not depend on what was removed above.
    for node in nodes {
        let Some(found) = wanted.iter().position(|other| other == node) else { continue };
        wanted.swap_remove(found);
        let taken = here.iter().chain(&unwanted);
        if let Some(place) = loads.least_loaded(*node, taken) {
            all_ready = false;
            loads.add(place, load);
            here.push(place);
            orders.push(CopyOrder::Fill(title, place));
        }
    }
    if all_ready {
        orders.extend(unwanted.into_iter().map(|place| CopyOrder::Evict(title, place)));
    }
}

#[cfg(test)]
mod tests;
