//! Policies compared on the same scenarios: who accepts how many of them, band by band, beside what
//! the disk would in fact have delivered.
//!
//! ```text
//!   scenario ─┬─▶ a server like the paper's, everybody in      BA: the axis
//!             ├─▶ each contender: policy + how it reads         accepted? on time? buffers?
//!             ├─▶ each contender's scheduler, everybody in      clairvoyant: all on time?
//!             └─▶ transfers alone                               fluid: could anybody?
//! ```
//!
//! A scenario counts as accepted only if every request in it is. Each is judged by itself, from its
//! own seed, so that they can be spread over threads and the sums are the same.

use super::chance::Chance;
use super::scenario::{Habits, Scenario, could_be_delivered};
use super::station::{Rules, Station, Tally, Turns};
use super::titles::{BLOCK, ClipKind, Clips, Shelf};
use disk::DiskModel;
use scheduler::{Facts, PolicyKind};
use std::sync::Arc;
use std::time::Duration;
use units::ByteCount;

/// A policy and how its disk is read.
#[derive(Clone, Debug, PartialEq)]
pub struct Contender {
    /// For tables.
    pub name: String,
    /// Who is let in.
    pub policy: PolicyKind,
    /// Reads of one block, so many in a slot: the paper's server. Otherwise long reads, and the
    /// reads that the model guarantees.
    pub blocks: Option<u32>,
}

/// What is studied.
#[derive(Clone, Debug)]
pub struct Study {
    /// The disk.
    pub model: DiskModel,
    /// minRead of the server that makes the axis, in blocks.
    pub min_read: u32,
    /// What clips it is full of, drawn anew for each scenario; or titles that are given.
    pub titles: Titles,
    /// What scenarios are like.
    pub habits: Habits,
    /// From a viewer's arrival to its first picture.
    pub startup: Duration,
    /// Bytes of buffers.
    pub memory: u64,
    /// Who is compared.
    pub contenders: Vec<Contender>,
    /// BA as it is in the mean, to aim scenarios at bands: blocks a slot.
    pub expected: f64,
    /// All chance.
    pub seed: u64,
    /// To time decisions.
    pub clock: Option<fn() -> Duration>,
}

/// Where titles come from.
#[derive(Clone)]
pub enum Titles {
    /// Synthetic clips.
    Clips(ClipKind),
    /// These.
    Given(Arc<dyn Shelf + Send>),
}

/// One scenario, judged.
#[derive(Clone, Debug, PartialEq)]
pub struct Judged {
    /// BA: blocks a slot.
    pub achieved: f64,
    /// CABR: blocks a slot.
    pub requested: f64,
    /// Whether transfers alone could have been delivered.
    pub fluid: bool,
    /// For each contender.
    pub rows: Vec<Row>,
}

/// One contender's scenario.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Row {
    /// Whether everybody was let in.
    pub accepted: bool,
    /// What happened, to the end or to the first refusal.
    pub tally: Tally,
    /// Whether its scheduler would have delivered to everybody in time.
    pub clairvoyant: bool,
}

impl Study {
    /// Judges scenario number `number`.
    pub fn judge(&self, number: u64) -> Judged {
        let seed = Chance::new(self.seed, number).seed();
        let scenario = self.scenario(number, seed);
        let achieved = self.achieved(&scenario, seed);
        let blocks = self.rules(None, Some(self.min_read));
        let costs = blocks.facts.costs.as_ref().expect("facts of a model");
        let fluid = could_be_delivered(&scenario, &blocks, costs);
        let mut delivered = [None, None];
        let rows = self.contenders.iter().map(|contender| {
            let (accepted, tally) = self.run(&scenario, contender, seed);
            let known = &mut delivered[usize::from(contender.blocks.is_some())];
            let clairvoyant = *known.get_or_insert_with(|| {
                let blocks = contender.blocks.map(|_| self.min_read);
                let (_, tally) = self.play(&scenario, &self.rules(None, blocks), seed);
                tally.late == 0
            });
            Row { accepted, tally, clairvoyant }
        });
        let rows = rows.collect();
        Judged { achieved, requested: scenario.requested, fluid, rows }
    }

    /// What a server like the paper's achieves on scenario `number` of a set apart from those that
    /// are judged: blocks a slot.
    pub fn train(&self, number: u64) -> f64 {
        let seed = Chance::new(self.seed ^ TRAINING, number).seed();
        self.achieved(&self.scenario(number, seed), seed)
    }

    fn scenario(&self, number: u64, seed: u64) -> Scenario {
        let mut chance = Chance::new(seed, TARGET);
        let (low, high) = AIMS[usize::try_from(number % AIMS.len() as u64).expect("small")];
        let target = self.expected * chance.between(low, high);
        match &self.titles {
            Titles::Clips(kind) => {
                let clips = Clips::fill(*kind, self.model.capacity().0, seed);
                Scenario::draw(&clips, &self.habits, target, seed)
            }
            Titles::Given(shelf) => Scenario::draw(&**shelf, &self.habits, target, seed),
        }
    }

    /// BA: the least stable mean of a server like the paper's that lets everybody in.
    fn achieved(&self, scenario: &Scenario, seed: u64) -> f64 {
        let rules = self.rules(None, Some(self.min_read));
        let mut station = Station::new(&rules, seed);
        for arrival in &scenario.arrivals {
            station.run_until(arrival.at);
            let _ = station.arrive(Arc::clone(&arrival.blocks));
        }
        station.run_until(station.now() + LOOKED_AT);
        let tally = station.tally();
        let slots = tally.busy.as_secs_f64() / self.habits.slot.as_secs_f64();
        tally.least_mean.unwrap_or(tally.bytes as f64 / slots) / BLOCK as f64
    }

    fn run(&self, scenario: &Scenario, contender: &Contender, seed: u64) -> (bool, Tally) {
        self.play(scenario, &self.rules(Some(contender.policy), contender.blocks), seed)
    }

    fn play(&self, scenario: &Scenario, rules: &Rules, seed: u64) -> (bool, Tally) {
        let mut station = Station::new(rules, seed);
        for arrival in &scenario.arrivals {
            station.run_until(arrival.at);
            let wanted = if rules.read_size == BLOCK { &arrival.blocks } else { &arrival.reads };
            if station.arrive(Arc::clone(wanted)).is_err() {
                return (false, station.tally());
            }
        }
        station.finish();
        (true, station.tally())
    }

    fn rules(&self, policy: Option<PolicyKind>, blocks: Option<u32>) -> Rules {
        let read_size = if blocks.is_some() { BLOCK } else { self.habits.read_size };
        let facts = Facts::of_model(&self.model, ByteCount(read_size), 1);
        let guaranteed = || self.model.guaranteed_reads(ByteCount(read_size), self.habits.slot);
        Rules {
            model: self.model.clone(),
            windows: blocks.is_none() && policy.is_none_or(|policy| policy.plans(&facts)),
            facts: Arc::new(facts),
            slot: self.habits.slot,
            startup: self.startup,
            policy,
            min_read: blocks.unwrap_or_else(guaranteed),
            read_size,
            memory: self.memory,
            turns: Turns::Random,
            clock: self.clock,
        }
    }
}

impl std::fmt::Display for Titles {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Clips(ClipKind { minutes, mbps }) => {
                let ((short, long), (low, high)) = (minutes, mbps);
                write!(f, "clips of {short} to {long} minutes, {low} to {high} Mb/s")
            }
            Self::Given(shelf) => write!(f, "{} titles of a store", shelf.len()),
        }
    }
}

impl std::fmt::Debug for Titles {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{self}")
    }
}

/// Where scenarios are aimed, as parts of the bandwidth expected: mostly at what is hard.
const AIMS: [(f64, f64); 16] = [
    (0.40, 0.50),
    (0.95, 1.00),
    (1.00, 1.05),
    (1.05, 1.10),
    (0.50, 0.70),
    (0.95, 1.00),
    (1.00, 1.05),
    (1.05, 1.10),
    (0.70, 0.80),
    (0.90, 0.95),
    (1.00, 1.05),
    (1.10, 1.30),
    (0.80, 0.85),
    (0.85, 0.90),
    (0.90, 0.95),
    (1.05, 1.10),
];

/// How long after the last arrival the bandwidth achieved is looked at: by then it has had its
/// least, because from then on there are ever fewer streams.
const LOOKED_AT: Duration = Duration::from_secs(120);

// Names of sources of chance.
const TARGET: u64 = 5;
const TRAINING: u64 = 0x7472_6169_6e00_0000;
