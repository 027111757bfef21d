//! The expected load of each disk, and its space: which disk of a node gets a new copy.
//!
//! A copy's load is its part of the rate of all viewers of its title. Space is that which titles
//! under placement may have: what is free, and what their present copies take.

use super::copies::expected_rate;
use crate::names::NodeDisk;
use crate::records::CapacityShare;
use crate::view::{ClusterView, CopyPlace, NodeNumber, TitleNumber};
use units::{BitRate, ByteCount, float, index};

/// A disk: its guaranteed rate, the rate of the viewers that are expected, the bytes for which
/// there is room, and its copies.
#[derive(Clone, Copy, Debug)]
struct DiskLoad {
    guaranteed: f64,
    expected: f64,
    room: u64,
    copies: u32,
}

/// The expected load of each disk.
#[derive(Clone, Debug)]
pub(super) struct DiskLoads {
    nodes: Vec<Vec<DiskLoad>>,
    mean_rate: BitRate,
    /// Whether any node tells its space.
    has_space: bool,
}

impl DiskLoads {
    /// The loads with the present copies.
    pub(super) fn of(view: &ClusterView) -> Self {
        let mut nodes = Vec::new();
        let (mut sum, mut count) = (0, 0);
        let mut has_space = false;
        for (_, node) in view.nodes() {
            let disks = node.digest().map_or(&[][..], |digest| &digest.disks);
            let guaranteed = disks.iter().map(|disk| disk.guaranteed);
            sum += guaranteed.clone().sum::<u64>();
            // A lost disk is no measure of what a disk holds.
            count += guaranteed.clone().filter(|rate| *rate > 0).count() as u64;
            let space = node.digest().map_or(&[][..], |digest| &digest.space);
            has_space |= !space.is_empty();
            let load = |(disk, rate)| DiskLoad {
                guaranteed: float(rate),
                expected: 0.0,
                copies: 0,
                room: space.get(disk).map_or(u64::MAX, |space: &CapacityShare| space.free),
            };
            nodes.push(guaranteed.enumerate().map(load).collect());
        }
        let mut loads = Self { nodes, mean_rate: BitRate(sum / count.max(1)), has_space };
        for (title, _) in view.titles() {
            for (place, load) in present(view, title) {
                loads.add(place, load);
            }
        }
        loads
    }

    /// The mean guaranteed rate of a disk.
    pub(super) fn mean_rate(&self) -> BitRate {
        self.mean_rate
    }

    /// Removes the load of a title's present copies.
    pub(super) fn remove(&mut self, view: &ClusterView, title: TitleNumber) {
        for (place, load) in present(view, title) {
            if let Some(disk) = self.disk(place) {
                disk.expected -= load;
                disk.copies -= 1;
            }
        }
    }

    /// Adds a copy with this load.
    pub(super) fn add(&mut self, place: CopyPlace, load: f64) {
        // A node that has left has no disks here.
        if let Some(disk) = self.disk(place) {
            disk.expected += load;
            disk.copies += 1;
        }
    }

    /// Counts what a title's present copies take as room: they stay only where the plan keeps them.
    pub(super) fn free(&mut self, view: &ClusterView, title: TitleNumber) {
        let Some(size) = view.title(title).size() else { return };
        for copy in view.copies(title) {
            if let Some(disk) = self.disk(copy.place) {
                disk.room = disk.room.saturating_add(size.size.0);
            }
        }
    }

    /// Takes the room for a copy; false where there is none.
    pub(super) fn take_room(&mut self, place: CopyPlace, size: ByteCount) -> bool {
        let fits = self.has_room(place, size);
        if let Some(disk) = self.disk(place).filter(|disk| fits && disk.room < u64::MAX) {
            disk.room -= size.0;
        }
        fits
    }

    /// Whether there is room for a copy.
    pub(super) fn has_room(&self, place: CopyPlace, size: ByteCount) -> bool {
        let disk = self.nodes[index(place.node.0)].get(usize::from(place.disk.0));
        disk.is_some_and(|disk| disk.room >= size.0)
    }

    /// Number of disks of a node with room for a copy; `None` where space does not matter.
    pub(super) fn disks_with_room(&self, node: NodeNumber, size: ByteCount) -> Option<usize> {
        let fits = |disk: &&DiskLoad| disk.guaranteed > 0.0 && disk.room >= size.0;
        self.has_space.then(|| self.nodes[index(node.0)].iter().filter(fits).count())
    }

    fn disk(&mut self, place: CopyPlace) -> Option<&mut DiskLoad> {
        self.nodes[index(place.node.0)].get_mut(usize::from(place.disk.0))
    }

    /// The disk of a node with the lowest load for its guaranteed rate, and the fewest copies of
    /// those, with room for the copy, but for those that are taken.
    pub(super) fn least_loaded<'a>(
        &self,
        node: NodeNumber,
        size: ByteCount,
        taken: impl Iterator<Item = &'a CopyPlace> + Clone,
    ) -> Option<CopyPlace> {
        let disks = (0..).map(NodeDisk).zip(&self.nodes[index(node.0)]);
        let free = disks.filter(|(disk, load)| {
            load.guaranteed > 0.0
                && load.room >= size.0
                && !taken.clone().any(|p| p.node == node && p.disk == *disk)
        });
        let part = |load: &DiskLoad| load.expected / load.guaranteed;
        let order =
            |a: &DiskLoad, b: &DiskLoad| part(a).total_cmp(&part(b)).then(a.copies.cmp(&b.copies));
        let least = free.min_by(|(_, a), (_, b)| order(a, b));
        least.map(|(disk, _)| CopyPlace { node, disk })
    }
}

/// The present copies of a title, with the load of each.
fn present(view: &ClusterView, title: TitleNumber) -> impl Iterator<Item = (CopyPlace, f64)> {
    let copies = view.copies(title);
    let each = expected_rate(view.title(title)) / float(copies.len().max(1) as u64);
    copies.iter().map(move |copy| (copy.place, each))
}
