//! A fleet of nodes in virtual time: the production code of director, placement and books, with a
//! million viewers as events.
//!
//! ```text
//!   popularity ─▶ viewers ─▶ Director (view: T seconds old) ─▶ NodeBooks of each node
//!    (Zipf)                      ▲                                  │ digests
//!                                └──────────────────────────────────┘
//!   placement::plan ─▶ copies           scenario: crowd, premiere, nodes lost
//! ```
//!
//! Streams are rates: a disk holds the number of streams that a plan guarantees, and what happens
//! within a slot is not simulated here. Popularity is known to placement, but for a premiere.
//! Nothing is shared between viewers of one title, so that each takes a stream of a disk.
//!
//! What is counted is in [`FleetRun`]; a checker that uses events alone sees every run.

mod calendar;
mod checks;
mod nodes;
mod popularity;
mod report;
mod world;

pub use report::{FleetRow, fleet_report};
pub use world::FleetRun;

use cluster::DirectorSettings;
use cluster::placement::CopyRules;
use std::time::Duration;
use units::BitRate;

/// A fleet, its viewers and what happens.
#[derive(Clone, Debug, PartialEq)]
pub struct FleetSetup {
    /// Number of nodes.
    pub nodes: u32,
    /// Nodes of a rack, which may be lost together. Copies of a title are in different racks.
    pub rack: u32,
    /// Disks of a node.
    pub disks: u16,
    /// Streams that a disk is guaranteed to hold.
    pub streams: u32,
    /// Rate of a stream.
    pub rate: BitRate,
    /// Number of titles.
    pub titles: u32,
    /// Exponent of Zipf's law.
    pub zipf: f64,
    /// Viewers at a time, as a part of the streams that all disks hold.
    pub load: f64,
    /// Mean time for which a viewer stays; exponentially distributed.
    pub hold: Duration,
    /// Time that is simulated.
    pub time: Duration,
    /// The interval of a node's digests: how old the director's view is.
    pub digests: Duration,
    /// How copies are placed and viewers directed.
    pub policy: FleetPolicy,
    /// What happens.
    pub scenario: FleetScenario,
    /// All chance.
    pub seed: u64,
}

/// How copies are placed and viewers directed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FleetPolicy {
    /// The name, as users type it.
    pub name: &'static str,
    /// The policy in a few words.
    pub about: &'static str,
    /// Whether popular titles have more copies than two.
    pub proportional: bool,
    /// Copies that are compared for a viewer.
    pub choices: usize,
    /// Moves that are tried to make room for a viewer.
    pub moves: usize,
}

/// What happens to a fleet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FleetScenario {
    /// Viewers come and go, and nothing else.
    Steady,
    /// After a quarter of the time, the fleet fills from half of its load to all of it in a minute.
    Crowd,
    /// After a quarter of the time, one viewer of fifty wants a title that nobody wanted before.
    Premiere,
    /// In the middle of the time, one node of a hundred is lost, all at once.
    NodeLoss,
    /// In the middle of the time, a rack is lost.
    RackLoss,
}

impl FleetPolicy {
    /// All policies: each has one thing more than the one before.
    pub const ALL: [Self; 5] = [
        Self {
            name: "two",
            about: "two copies of each title, a random one is asked first",
            proportional: false,
            choices: 1,
            moves: 0,
        },
        Self {
            name: "two-least",
            about: "two copies, the one with more room is asked first",
            proportional: false,
            choices: 2,
            moves: 0,
        },
        Self {
            name: "proportional",
            about: "copies in proportion to viewers, a random one first",
            proportional: true,
            choices: 1,
            moves: 0,
        },
        Self {
            name: "proportional-least",
            about: "the same, the one with most room of four first",
            proportional: true,
            choices: 4,
            moves: 0,
        },
        Self {
            name: "moves",
            about: "the same, and viewers of other titles make room",
            proportional: true,
            choices: 4,
            moves: 12,
        },
    ];

    fn rules(&self) -> CopyRules {
        let rules = CopyRules::default();
        if self.proportional { rules } else { CopyRules { share: None, extra: 0.0, ..rules } }
    }

    fn settings(&self) -> DirectorSettings {
        let Self { choices, moves, .. } = *self;
        DirectorSettings { choices, moves, ..DirectorSettings::default() }
    }
}

impl FleetScenario {
    /// All scenarios, by the names that users type.
    pub const ALL: [(&'static str, Self); 5] = [
        ("steady", Self::Steady),
        ("crowd", Self::Crowd),
        ("premiere", Self::Premiere),
        ("node-loss", Self::NodeLoss),
        ("rack-loss", Self::RackLoss),
    ];

    /// The name.
    pub fn name(self) -> &'static str {
        units::name_of(&Self::ALL, self)
    }

    /// The scenario in a few words.
    pub fn about(self) -> &'static str {
        match self {
            Self::Steady => "viewers come and go",
            Self::Crowd => "from half of the load to all of it in a minute",
            Self::Premiere => "one viewer of fifty wants a title that nobody wanted before",
            Self::NodeLoss => "one node of a hundred is lost, all at once",
            Self::RackLoss => "a rack is lost",
        }
    }
}

impl FleetSetup {
    /// Streams that all disks are guaranteed to hold.
    pub fn capacity(&self) -> u64 {
        u64::from(self.nodes) * u64::from(self.disks) * u64::from(self.streams)
    }

    /// Simulates. The same setup gives the same result on every machine.
    pub fn run(&self) -> FleetRun {
        world::run(self)
    }
}

#[cfg(test)]
mod tests;
