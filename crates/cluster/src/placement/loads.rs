//! The expected load of each disk: which disk of a node gets a new copy.
//!
//! A copy's load is its part of the rate of all viewers of its title.

use crate::names::NodeDisk;
use crate::view::{ClusterView, CopyPlace, NodeNumber, TitleNumber};
use units::{BitRate, float, index};

/// A disk: its guaranteed rate, and the rate of the viewers that are expected.
#[derive(Clone, Copy, Debug)]
struct DiskLoad {
    guaranteed: f64,
    expected: f64,
}

/// The expected load of each disk.
#[derive(Clone, Debug)]
pub(super) struct DiskLoads {
    nodes: Vec<Vec<DiskLoad>>,
    mean_rate: BitRate,
}

impl DiskLoads {
    /// The loads with the present copies.
    pub(super) fn of(view: &ClusterView) -> Self {
        let mut nodes = Vec::new();
        let (mut sum, mut count) = (0, 0);
        for (_, node) in view.nodes() {
            let disks = node.digest().map_or(&[][..], |digest| &digest.disks);
            let guaranteed = disks.iter().map(|disk| disk.guaranteed);
            sum += guaranteed.clone().sum::<u64>();
            // A lost disk is no measure of what a disk holds.
            count += guaranteed.clone().filter(|rate| *rate > 0).count() as u64;
            let load = |rate| DiskLoad { guaranteed: float(rate), expected: 0.0 };
            nodes.push(guaranteed.map(load).collect());
        }
        let mut loads = Self { nodes, mean_rate: BitRate(sum / count.max(1)) };
        for (title, _) in view.titles() {
            loads.add_title(view, title, 1.0);
        }
        loads
    }

    /// The mean guaranteed rate of a disk.
    pub(super) fn mean_rate(&self) -> BitRate {
        self.mean_rate
    }

    /// Removes the load of a title's present copies.
    pub(super) fn remove(&mut self, view: &ClusterView, title: TitleNumber) {
        self.add_title(view, title, -1.0);
    }

    fn add_title(&mut self, view: &ClusterView, title: TitleNumber, sign: f64) {
        let copies = view.copies(title);
        let rate = view.title(title).demand().map_or(0.0, |d| d.viewers * float(d.rate.0));
        let each = sign * rate / float(copies.len().max(1) as u64);
        copies.iter().for_each(|copy| self.add(copy.place, each));
    }

    pub(super) fn add(&mut self, place: CopyPlace, load: f64) {
        let node = &mut self.nodes[index(place.node.0)];
        // A node that has left has no disks here.
        if let Some(disk) = node.get_mut(usize::from(place.disk.0)) {
            disk.expected += load;
        }
    }

    /// The disk of a node with the lowest load for its guaranteed rate, but for those that are
    /// taken.
    pub(super) fn least_loaded<'a>(
        &self,
        node: NodeNumber,
        taken: impl Iterator<Item = &'a CopyPlace> + Clone,
    ) -> Option<CopyPlace> {
        let disks = (0..).map(NodeDisk).zip(&self.nodes[index(node.0)]);
        let free = disks.filter(|(disk, load)| {
            load.guaranteed > 0.0 && !taken.clone().any(|p| p.node == node && p.disk == *disk)
        });
        let part = |load: &DiskLoad| load.expected / load.guaranteed;
        let least = free.min_by(|(_, a), (_, b)| part(a).total_cmp(&part(b)));
        least.map(|(disk, _)| CopyPlace { node, disk })
    }
}
