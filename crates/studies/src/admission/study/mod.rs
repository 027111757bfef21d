//! Policies compared on the same scenarios: how many of them each accepts, by bands of load, beside
//! those that the disk could in fact have delivered.
//!
//! ```text
//!   scenario ─┬─▶ reads of one block, all accepted       BA (the axis); delivered? refusals?
//!             ├─▶ the same reads, counted as observed    refusals?
//!             ├─▶ long reads in windows, all accepted    delivered? promisable? fewest left out?
//!             ├─▶ long reads, a fixed number per slot    refusals?
//!             ├─▶ each policy that leaves a plan         its own run: accepted? on time?
//!             └─▶ transfers alone                        fluid limit
//! ```
//!
//! A scenario counts as accepted only if every request in it is. Policies that leave no plan, and
//! whose servers read alike, share one run in which all viewers are accepted: until a policy
//! refuses a viewer, that run is its own. Each scenario is evaluated on its own, from its own seed,
//! so that the results do not depend on the number of threads.

mod offline;
mod runs;
mod training;

pub use offline::OfflineResult;
pub(crate) use runs::ReadMode;

use super::disk_server::RunCounters;
use super::random::RandomSource;
use super::scenario::{Scenario, Workload, could_be_delivered};
use super::titles::{ClipKind, Clips, TitleSource};
use disk::DiskModel;
use runs::KnownDisk;
use scheduler::PolicyKind;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use training::blocks_a_slot;

/// A policy and how its disk is read.
#[derive(Clone, Debug, PartialEq)]
pub struct PolicyUnderTest {
    /// For tables.
    pub name: String,
    /// The policy that decides on admission.
    pub policy: PolicyKind,
    /// Reads of one block, so many in a slot: the paper's server. Otherwise long reads, and the
    /// reads that the model guarantees.
    pub blocks: Option<u32>,
}

impl PolicyUnderTest {
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
    pub titles: TitleOrigin,
    /// What scenarios are like.
    pub workload: Workload,
    /// From a viewer's arrival to its first picture.
    pub startup: Duration,
    /// Bytes of buffers.
    pub memory: u64,
    /// The policies that are compared.
    pub tested: Vec<PolicyUnderTest>,
    /// BA as it is in the mean, to aim scenarios at bands: blocks a slot.
    pub expected: f64,
    /// All chance.
    pub seed: u64,
    /// To time decisions.
    pub clock: Option<fn() -> Duration>,
    /// Properties of the disk, read in blocks and in long reads.
    pub(super) known: [OnceLock<KnownDisk>; 2],
}

/// Where titles come from.
#[derive(Clone)]
pub enum TitleOrigin {
    /// Synthetic clips.
    Clips(ClipKind),
    /// Titles from this source.
    Given(Arc<dyn TitleSource + Send>),
}

/// One scenario, judged.
#[derive(Clone, Debug, PartialEq)]
pub struct ScenarioResult {
    /// BA: blocks a slot.
    pub achieved: f64,
    /// CABR: blocks a slot.
    pub requested: f64,
    /// Whether transfers alone could have been delivered.
    pub fluid: bool,
    /// Viewers who came.
    pub arrived: u64,
    /// For each contender.
    pub rows: Vec<PolicyResult>,
}

/// One contender's scenario.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PolicyResult {
    /// Whether everybody was let in.
    pub accepted: bool,
    /// What happened to the end, if everybody was; otherwise only what was decided.
    pub counters: RunCounters,
    /// Viewers let in, where those who are refused go and the others stay; of long reads only.
    pub admitted: u64,
    /// What its scheduler would have done with everybody.
    pub offline: OfflineResult,
}

impl Study {
    /// Judges scenario number `number`.
    pub fn judge(&self, number: u64) -> ScenarioResult {
        let (seed, scenario) = self.drawn(number);
        let mut rows = vec![PolicyResult::default(); self.tested.len()];
        let blocks = self.rules(None, ReadMode::Blocks(self.min_read));
        let fluid = could_be_delivered(&scenario, &blocks);
        let by_blocks = ReadMode::Blocks(self.min_read);
        let axis = self.together(&scenario, by_blocks, &mut rows, seed);
        // Rows whose servers read alike share one offline result.
        let mut known = vec![(by_blocks, OfflineResult::of(axis.on_time))];
        for row in 0..rows.len() {
            let mode = self.read_mode(row);
            let shared = known.iter().find(|(of, _)| *of == mode).map(|(_, found)| *found);
            let offline = shared.unwrap_or_else(|| {
                let run = self.together(&scenario, mode, &mut rows, seed);
                let found = self.offline(&scenario, mode, run.on_time, seed);
                known.push((mode, found));
                found
            });
            let policy = self.tested[row].policy;
            // A policy that leaves a plan changes what is read when, so that it needs its own run.
            if mode == ReadMode::Windows {
                rows[row] = self.alone(&scenario, policy, mode, seed);
            } else if mode == ReadMode::Long {
                rows[row].admitted = self.alone(&scenario, policy, mode, seed).admitted;
            }
            rows[row].offline = offline;
        }
        let achieved = blocks_a_slot(&axis.looked_at, self.workload.slot);
        let arrived = scenario.arrivals.len() as u64;
        ScenarioResult { achieved, requested: scenario.requested, fluid, arrived, rows }
    }

    /// Scenario number `number` of those that are judged, and what seeds its platter.
    pub(super) fn drawn(&self, number: u64) -> (u64, Scenario) {
        let seed = RandomSource::new(self.seed, number).seed();
        (seed, self.scenario(number, seed))
    }

    pub(super) fn scenario(&self, number: u64, seed: u64) -> Scenario {
        let mut random = RandomSource::new(seed, TARGET);
        let (low, high) = AIMS[usize::try_from(number % AIMS.len() as u64).expect("small")];
        let target = self.expected * random.between(low, high);
        let costs = self.known(ReadMode::Long).timings.costs.as_ref();
        match &self.titles {
            TitleOrigin::Clips(kind) => {
                let clips = Clips::fill(*kind, self.model.capacity().0, seed);
                Scenario::draw(&clips, &self.workload, costs, target, seed)
            }
            TitleOrigin::Given(source) => {
                Scenario::draw(&**source, &self.workload, costs, target, seed)
            }
        }
    }
}

impl std::fmt::Display for TitleOrigin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Clips(ClipKind { minutes, mbps }) => {
                let ((short, long), (low, high)) = (minutes, mbps);
                write!(f, "clips of {short} to {long} minutes, {low} to {high} Mb/s")
            }
            Self::Given(source) => write!(f, "{} titles of a store", source.len()),
        }
    }
}

impl std::fmt::Debug for TitleOrigin {
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
