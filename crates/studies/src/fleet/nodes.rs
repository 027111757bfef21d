//! The nodes of a fleet: their books, and which viewer is on which disk.

use super::FleetSetup;
use cluster::{
    AdmissionClass, BooksAnswer, CapacityShare, CopyPlace, NodeAnswer, NodeBooks, NodeDisk,
    NodeNumber, StreamNeed,
};
use std::time::Duration;
use units::{BitRate, ByteCount, Moment, index};

/// A viewer on a disk.
#[derive(Clone, Copy, Debug)]
pub(super) struct DiskViewer {
    pub(super) viewer: u32,
    pub(super) title: u32,
    /// When the viewer will leave.
    pub(super) end: Moment,
}

/// All nodes: what answers the director.
#[derive(Debug)]
pub(super) struct FleetNodes {
    books: Vec<NodeBooks>,
    lost: Vec<bool>,
    /// Whether a node was asked or left by anybody since its last digest.
    changed: Vec<bool>,
    /// Viewers of each disk: as many entries for a disk as it holds, the first of them in use.
    viewers: Vec<DiskViewer>,
    /// Number of viewers of each disk.
    counts: Vec<u32>,
    disks_of_node: usize,
    streams: usize,
    /// Where each viewer is: the entry in `viewers`, or [`GONE`].
    entries: Vec<u32>,
    need: StreamNeed,
}

impl FleetNodes {
    pub(super) fn new(setup: &FleetSetup, need: StreamNeed) -> Self {
        let guaranteed = BitRate(u64::from(setup.streams) * need.disk.0);
        // Disks are what is short: network and memory are enough for them all.
        let network = BitRate(guaranteed.0 * u64::from(setup.disks));
        let memory = ByteCount(network.0 / need.network.0.max(1) * need.memory.0);
        let disks = (0..setup.disks).map(|_| guaranteed);
        let books = NodeBooks::new(disks, network, memory, setup.policy.settings().kept);
        let nodes = index(setup.nodes);
        let disks_of_node = usize::from(setup.disks);
        Self {
            books: vec![books; nodes],
            lost: vec![false; nodes],
            changed: vec![true; nodes],
            viewers: vec![NOBODY; nodes * disks_of_node * index(setup.streams)],
            counts: vec![0; nodes * disks_of_node],
            disks_of_node,
            streams: index(setup.streams),
            entries: Vec::new(),
            need,
        }
    }

    fn disk(&self, place: CopyPlace) -> usize {
        index(place.node.0) * self.disks_of_node + usize::from(place.disk.0)
    }

    pub(super) fn is_lost(&self, node: NodeNumber) -> bool {
        self.lost[index(node.0)]
    }

    /// The answer of a node to a request. A refusal has the time until the first viewer of the disk
    /// leaves.
    pub(super) fn reserve(
        &mut self,
        place: CopyPlace,
        class: AdmissionClass,
        now: Moment,
    ) -> NodeAnswer {
        if self.is_lost(place.node) {
            return NodeAnswer::Unreachable;
        }
        self.changed[index(place.node.0)] = true;
        match self.books[index(place.node.0)].reserve(place.disk, self.need, class) {
            BooksAnswer::Reserved => NodeAnswer::Accepted,
            BooksAnswer::Full => NodeAnswer::Refused(self.first_end(place, now)),
            BooksAnswer::NoDisk => NodeAnswer::Refused(None),
        }
    }

    fn first_end(&self, place: CopyPlace, now: Moment) -> Option<Duration> {
        let ends = self.on_disk(self.disk(place)).iter().map(|viewer| viewer.end);
        ends.min().map(|end| end.since(now))
    }

    fn on_disk(&self, disk: usize) -> &[DiskViewer] {
        &self.viewers[disk * self.streams..][..index(self.counts[disk])]
    }

    /// Enters a viewer, whose stream is reserved.
    pub(super) fn enter(&mut self, place: CopyPlace, viewer: DiskViewer) {
        let disk = self.disk(place);
        let entry = disk * self.streams + index(self.counts[disk]);
        self.counts[disk] += 1;
        self.viewers[entry] = viewer;
        let number = index(viewer.viewer);
        if number >= self.entries.len() {
            self.entries.resize(number + 1, GONE);
        }
        self.entries[number] = u32::try_from(entry).expect("streams have 32 bits");
    }

    /// Removes a viewer, and releases the stream; `None` for one who was refused after a loss.
    pub(super) fn leave(&mut self, viewer: u32) -> Option<DiskViewer> {
        let entry = std::mem::replace(&mut self.entries[index(viewer)], GONE);
        if entry == GONE {
            return None;
        }
        let disk = index(entry) / self.streams;
        self.counts[disk] -= 1;
        let last = self.viewers[disk * self.streams + index(self.counts[disk])];
        let removed = std::mem::replace(&mut self.viewers[index(entry)], last);
        assert_eq!(removed.viewer, viewer, "the list of disk {disk} is wrong");
        if last.viewer != viewer {
            self.entries[index(last.viewer)] = entry;
        }
        let number = u16::try_from(disk % self.disks_of_node).expect("disks of a node");
        self.changed[disk / self.disks_of_node] = true;
        self.books[disk / self.disks_of_node].release(NodeDisk(number), self.need);
        Some(removed)
    }

    /// Reads what the leaving of these viewers will need. Without effect but on the processor's
    /// cache: these reads wait for memory together, and those of one viewer after the other do not.
    pub(super) fn touch(&self, viewers: impl Iterator<Item = u32>) {
        let entries = viewers.map(|viewer| self.entries[index(viewer)]).filter(|e| *e != GONE);
        let last = |entry: u32| {
            let disk = index(entry) / self.streams;
            disk * self.streams + index(self.counts[disk]).saturating_sub(1)
        };
        let sum = entries.fold(0u32, |sum, entry| {
            let of_last = self.viewers.get(last(entry)).map_or(0, |viewer| viewer.viewer);
            sum ^ self.viewers[index(entry)].viewer ^ of_last
        });
        std::hint::black_box(sum);
    }

    /// Remembers a viewer who was refused after a loss, and whose time to leave is still to come.
    pub(super) fn give_up(&mut self, viewer: u32) {
        self.entries[index(viewer)] = GONE;
    }

    /// A viewer of a title on a disk.
    pub(super) fn viewer_of(&self, place: CopyPlace, title: u32) -> Option<u32> {
        let mut viewers = self.on_disk(self.disk(place)).iter();
        viewers.find(|viewer| viewer.title == title).map(|viewer| viewer.viewer)
    }

    /// Loses a node; its viewers.
    pub(super) fn lose(&mut self, node: NodeNumber) -> Vec<DiskViewer> {
        self.lost[index(node.0)] = true;
        let first = index(node.0) * self.disks_of_node;
        let disks = first..first + self.disks_of_node;
        let viewers = disks.clone().flat_map(|disk| self.on_disk(disk).to_vec()).collect();
        self.counts[disks].fill(0);
        viewers
    }

    /// Whether a node has changed since this was asked last.
    pub(super) fn take_changed(&mut self, node: NodeNumber) -> bool {
        std::mem::take(&mut self.changed[index(node.0)])
    }

    /// What a node shows of itself.
    pub(super) fn shares(
        &self,
        node: NodeNumber,
    ) -> (impl Iterator<Item = CapacityShare>, CapacityShare, CapacityShare) {
        self.books[index(node.0)].shares()
    }

    /// Viewers on all disks.
    pub(super) fn viewers(&self) -> u64 {
        self.counts.iter().copied().map(u64::from).sum()
    }
}

/// An entry that is not in use.
const NOBODY: DiskViewer = DiskViewer { viewer: 0, title: 0, end: Moment::ZERO };
/// The entry of a viewer who has no stream.
const GONE: u32 = u32::MAX;
