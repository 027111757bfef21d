//! Checks from outside: what happened, counted again from the events alone.
//!
//! Nothing of the director, the view or the nodes' books is used here.

use super::FleetSetup;
use cluster::{CopyPlace, NodeNumber};
use units::index;

/// Something that happened to a viewer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FleetEvent {
    /// The viewer's stream began there.
    Began(u32, CopyPlace),
    /// The viewer's stream goes on there.
    Moved(u32, CopyPlace),
    /// The viewer has left.
    Left(u32),
    /// The node was lost; its viewers have no stream now.
    NodeLost(NodeNumber),
    /// The viewer, whose node was lost, was refused.
    GaveUp(u32),
}

/// The state of all viewers, from events.
#[derive(Debug)]
pub(super) struct FleetChecker {
    disks_of_node: usize,
    guarantee: u32,
    /// Streams on each disk.
    streams: Vec<u32>,
    /// The disk of each viewer, or [`AWAY`].
    viewers: Vec<u32>,
    /// Whether the node of each disk is lost.
    lost: Vec<bool>,
    began: u64,
    ended: u64,
}

impl FleetChecker {
    pub(super) fn new(setup: &FleetSetup) -> Self {
        let disks_of_node = usize::from(setup.disks);
        let disks = disks_of_node * index(setup.nodes);
        Self {
            disks_of_node,
            guarantee: setup.streams,
            streams: vec![0; disks],
            viewers: Vec::new(),
            lost: vec![false; disks],
            began: 0,
            ended: 0,
        }
    }

    /// Takes an event.
    ///
    /// # Panics
    /// An event that must not happen: a disk with more streams than it is guaranteed to hold, a
    /// stream on a lost node, or a viewer who is in two places or in none.
    pub(super) fn see(&mut self, event: FleetEvent) {
        match event {
            FleetEvent::Began(viewer, place) => {
                let number = index(viewer);
                if number >= self.viewers.len() {
                    self.viewers.resize(number + 1, AWAY);
                }
                assert_eq!(self.viewers[number], AWAY, "viewer {viewer} began twice");
                self.viewers[number] = self.enter(place);
                self.began += 1;
            }
            FleetEvent::Moved(viewer, place) => {
                self.leave(viewer);
                self.viewers[index(viewer)] = self.enter(place);
            }
            FleetEvent::Left(viewer) => {
                self.leave(viewer);
                self.ended += 1;
            }
            FleetEvent::NodeLost(node) => {
                let first = index(node.0) * self.disks_of_node;
                let disks = first..first + self.disks_of_node;
                self.streams[disks.clone()].fill(0);
                self.lost[disks].fill(true);
            }
            FleetEvent::GaveUp(viewer) => {
                let disk = self.leave(viewer);
                assert!(self.lost[disk], "the node of viewer {viewer} was not lost");
                self.ended += 1;
            }
        }
    }

    fn enter(&mut self, place: CopyPlace) -> u32 {
        let disk = index(place.node.0) * self.disks_of_node + usize::from(place.disk.0);
        assert!(!self.lost[disk], "a stream on disk {disk}, whose node is lost");
        self.streams[disk] += 1;
        assert!(self.streams[disk] <= self.guarantee, "disk {disk} has more than its guarantee");
        u32::try_from(disk).expect("disks have 32 bits")
    }

    fn leave(&mut self, viewer: u32) -> usize {
        let disk = std::mem::replace(&mut self.viewers[index(viewer)], AWAY);
        assert_ne!(disk, AWAY, "viewer {viewer} left, and had no stream");
        // The streams of a lost node were counted with it.
        if !self.lost[index(disk)] {
            self.streams[index(disk)] -= 1;
        }
        index(disk)
    }

    /// Checks that no viewer is lost from the books: who began and did not end is on a disk, and as
    /// many are active as the simulation says.
    ///
    /// # Panics
    /// Numbers that differ.
    pub(super) fn finish(&self, active: u64) {
        let on_disks: u64 = self.streams.iter().copied().map(u64::from).sum();
        assert_eq!((self.began - self.ended, on_disks), (active, active), "viewers are lost");
    }
}

/// A viewer without a stream.
const AWAY: u32 = u32::MAX;
