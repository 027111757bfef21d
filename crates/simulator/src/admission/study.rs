//! Policies compared on the same scenarios: who accepts how many of them, band by band, beside what
//! the disk would in fact have delivered.
//!
//! ```text
//!   scenario ─┬─▶ reads of one block, everybody in       BA: the axis; delivered? who would refuse?
//!             ├─▶ the same, as many as observed          who would refuse?
//!             ├─▶ long reads in windows, everybody in    delivered? promisable? whom to leave out?
//!             ├─▶ long reads, so many a slot             who would refuse?
//!             ├─▶ each policy that leaves a plan         its own run: accepted? on time?
//!             └─▶ transfers alone                        fluid: could anybody?
//! ```
//!
//! A scenario counts as accepted only if every request in it is. So policies that leave no plan,
//! and whose server reads alike, can share one run in which everybody comes in: as long as a policy
//! has refused nobody, that run is its own. Each scenario is judged by itself, from its own seed,
//! so that they can be spread over threads and the sums are the same.

use super::chance::Chance;
use super::hindsight::Hindsight;
use super::runs::{Known, Reading};
use super::scenario::{Habits, Scenario, could_be_delivered};
use super::station::Tally;
use super::titles::{ClipKind, Clips, Shelf};
use super::training::blocks_a_slot;
use disk::DiskModel;
use scheduler::PolicyKind;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

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

impl Contender {
    /// With long reads, as Tenuto's server.
    pub fn long(policy: PolicyKind) -> Self {
        Self { name: policy.name().to_owned(), policy, blocks: None }
    }
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
    /// Of the disk: read in blocks, and in long reads.
    pub(super) known: [OnceLock<Known>; 2],
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
    /// Viewers who came.
    pub came: u64,
    /// For each contender.
    pub rows: Vec<Row>,
}

/// One contender's scenario.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Row {
    /// Whether everybody was let in.
    pub accepted: bool,
    /// What happened to the end, if everybody was; otherwise only what was decided.
    pub tally: Tally,
    /// Viewers let in, where those who are refused go and the others stay; of long reads only.
    pub let_in: u64,
    /// What its scheduler would have done with everybody.
    pub hindsight: Hindsight,
}

impl Study {
    /// Judges scenario number `number`.
    pub fn judge(&self, number: u64) -> Judged {
        let (seed, scenario) = self.drawn(number);
        let mut rows = vec![Row::default(); self.contenders.len()];
        let blocks = self.rules(None, Reading::Blocks(self.min_read));
        let fluid = could_be_delivered(&scenario, &blocks);
        let by_blocks = Reading::Blocks(self.min_read);
        let axis = self.together(&scenario, by_blocks, &mut rows, seed);
        let mut known = vec![(by_blocks, Hindsight::of(axis.on_time))];
        for row in 0..rows.len() {
            let reading = self.reading(row);
            let hindsight = known.iter().find(|(of, _)| *of == reading).map(|(_, found)| *found);
            let hindsight = hindsight.unwrap_or_else(|| {
                let run = self.together(&scenario, reading, &mut rows, seed);
                let found = self.hindsight(&scenario, reading, run.on_time, seed);
                known.push((reading, found));
                found
            });
            let policy = self.contenders[row].policy;
            if reading == Reading::Windows {
                rows[row] = self.alone(&scenario, policy, reading, seed);
            } else if reading == Reading::Long {
                rows[row].let_in = self.alone(&scenario, policy, reading, seed).let_in;
            }
            rows[row].hindsight = hindsight;
        }
        let achieved = blocks_a_slot(&axis.looked_at, self.habits.slot);
        let came = scenario.arrivals.len() as u64;
        Judged { achieved, requested: scenario.requested, fluid, came, rows }
    }

    /// Scenario number `number` of those that are judged, and what seeds its platter.
    pub(super) fn drawn(&self, number: u64) -> (u64, Scenario) {
        let seed = Chance::new(self.seed, number).seed();
        (seed, self.scenario(number, seed))
    }

    pub(super) fn scenario(&self, number: u64, seed: u64) -> Scenario {
        let mut chance = Chance::new(seed, TARGET);
        let (low, high) = AIMS[usize::try_from(number % AIMS.len() as u64).expect("small")];
        let target = self.expected * chance.between(low, high);
        let costs = self.known(Reading::Long).facts.costs.as_ref();
        match &self.titles {
            Titles::Clips(kind) => {
                let clips = Clips::fill(*kind, self.model.capacity().0, seed);
                Scenario::draw(&clips, &self.habits, costs, target, seed)
            }
            Titles::Given(shelf) => Scenario::draw(&**shelf, &self.habits, costs, target, seed),
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

/// Where scenarios are aimed, as parts of the bandwidth expected: at each band alike, but most at
/// those that lose some to their neighbours.
const AIMS: [(f64, f64); 14] = [
    (0.40, 0.49),
    (0.95, 1.00),
    (1.00, 1.05),
    (1.05, 1.10),
    (0.50, 0.60),
    (0.80, 0.85),
    (0.60, 0.70),
    (0.85, 0.90),
    (0.70, 0.80),
    (0.90, 0.95),
    (0.95, 1.00),
    (1.10, 1.30),
    (1.00, 1.05),
    (1.05, 1.10),
];

// The name of a source of chance.
const TARGET: u64 = 5;
