//! What is compared by name: the disk, its titles, and who contends.
//!
//! A preset becomes a [`Study`] by training: the bandwidth that a server like the paper's achieves
//! is measured on scenarios apart from those that are judged.

use super::disk_server::{RotationalDelay, Rules};
use super::fitted;
use super::scenario::Workload;
use super::study::ReadMode;
use super::study::{PolicyUnderTest, Study, TitleOrigin};
use super::titles::{BLOCK, ClipKind};
use disk::DiskModel;
use scheduler::{DiskTimings, PolicyKind};
use std::sync::Arc;
use std::time::Duration;
use units::ByteCount;

/// A set of scenarios and contenders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preset {
    /// The paper's smaller disk and its clips.
    Paper,
    /// The paper's larger disk.
    Large,
    /// Feature-length titles on a current disk.
    Library,
}

/// A preset, with whatever is to be different.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The preset.
    pub preset: Preset,
    /// Instead of its disk.
    pub disk: Option<DiskModel>,
    /// Instead of its clips.
    pub titles: Option<TitleOrigin>,
    /// Instead of its contenders: these, with long reads.
    pub policies: Vec<PolicyKind>,
    /// Instead of its minRead: blocks that the paper's server reads in a slot.
    pub min_read: Option<u32>,
    /// Mean time between arrivals.
    pub gap: Duration,
    /// Whether a clip may be asked for again before all others were.
    pub repeated: bool,
    /// Bytes of the largest read of those who do not read single blocks.
    pub read_size: u64,
    /// Bytes of buffers.
    pub memory: u64,
    /// From a viewer's arrival to its first picture, at least.
    pub startup: Duration,
    /// All chance.
    pub seed: u64,
}

impl Setup {
    /// The preset as it is.
    pub fn new(preset: Preset, gap: Duration) -> Self {
        Self {
            preset,
            disk: None,
            titles: None,
            policies: Vec::new(),
            min_read: None,
            gap,
            repeated: false,
            read_size: if preset == Preset::Library { 4 << 20 } else { 1 << 20 },
            memory: UNLIMITED,
            startup: Duration::from_secs(1),
            seed: 1,
        }
    }

    /// Trains, and is ready to judge.
    pub fn study(&self, clock: Option<fn() -> Duration>) -> Study {
        self.study_telling(clock, &mut |_| {})
    }

    /// As [`Setup::study`]; `progress` is called with the part of the training that is done.
    pub(crate) fn study_telling(
        &self,
        clock: Option<fn() -> Duration>,
        progress: &mut dyn FnMut(f64),
    ) -> Study {
        let model = self.disk.clone().unwrap_or_else(|| match self.preset {
            Preset::Paper => fitted::small(),
            Preset::Large => fitted::large(),
            Preset::Library => DiskModel::preset("hdd-20tb").expect("comes along"),
        });
        let slot = Duration::from_millis(500);
        let min_read = self.min_read.unwrap_or_else(|| match (&self.disk, self.preset) {
            (None, Preset::Paper) => PAPER_SMALL,
            (None, Preset::Large) => PAPER_LARGE,
            _ => fitted::pathological(&model, BLOCK, slot, 0.5),
        });
        let kind = if self.preset == Preset::Library { ClipKind::FEATURE } else { ClipKind::SHORT };
        let Self { gap, read_size, repeated, .. } = *self;
        let workload = Workload { gap, read_size, slot, repeated };
        let mut study = Study {
            // As much as the disk could transfer at best, until it is known better.
            expected: model.mean_rate().0 as f64 / 8.0 * slot.as_secs_f64() / BLOCK as f64 * 0.8,
            model,
            min_read,
            titles: self.titles.clone().unwrap_or(TitleOrigin::Clips(kind)),
            workload,
            startup: self.startup,
            memory: self.memory,
            tested: Vec::new(),
            seed: self.seed,
            clock,
            known: Default::default(),
        };
        // Scenarios of feature films take much longer to run.
        let rounds = if self.preset == Preset::Library { TRAINING / 4 } else { TRAINING };
        let least = study.learn(rounds, progress);
        // A mean that was observed may be below the guarantee by chance; the guarantee is certain.
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "blocks")]
        let observed = (least as u32).max(min_read);
        study.tested = self.tested(min_read, observed);
        study
    }

    fn tested(&self, min_read: u32, observed: u32) -> Vec<PolicyUnderTest> {
        if !self.policies.is_empty() {
            return self.policies.iter().copied().map(PolicyUnderTest::long).collect();
        }
        let blocks = |policy: PolicyKind, blocks: u32, which: &str| PolicyUnderTest {
            name: format!("{}, {which} {blocks}", policy.name()),
            policy,
            blocks: Some(blocks),
        };
        let counted = [PolicyKind::SimpleMaximum, PolicyKind::InstantaneousMaximum];
        let averaged = [PolicyKind::Average, PolicyKind::VbrSim];
        // The order is that of the rows in all results. The reproduction of the figures names its
        // two rows of vbrSim by number (`CALIBRATED`, `OBSERVED`).
        let mut all: Vec<PolicyUnderTest> = Vec::new();
        all.extend(counted.map(|policy| blocks(policy, min_read, "minRead")));
        all.extend(averaged.map(|policy| blocks(policy, min_read, "minRead")));
        all.push(blocks(PolicyKind::ServiceCurve, min_read, "minRead"));
        all.extend(averaged.map(|policy| blocks(policy, observed, "observed")));
        all.push(PolicyUnderTest::long(PolicyKind::TimeDomain));
        all
    }
}

impl PolicyUnderTest {
    /// How this policy's server uses a disk: slots of 500 ms, a second to start, buffers for
    /// everything, reads of at most `read_size` bytes unless it reads single blocks.
    pub fn rules(&self, model: &DiskModel, read_size: u64) -> Rules {
        let read_size = if self.blocks.is_some() { BLOCK } else { read_size };
        let slot = Duration::from_millis(500);
        let timings = timings(model, self.policy, read_size);
        let guaranteed = || model.guaranteed_reads(ByteCount(read_size), slot);
        Rules {
            windows: self.blocks.is_none() && self.policy.plans(&timings),
            min_read: self.blocks.unwrap_or_else(guaranteed),
            model: model.clone(),
            timings,
            slot,
            startup: Duration::from_secs(1),
            policy: Some(self.policy),
            read_size,
            memory: UNLIMITED,
            rotation: RotationalDelay::Random,
            guarded: true,
            slow_period: None,
            clock: None,
        }
    }
}

/// Timings of a disk read in long reads, as a policy is given them: those of its model, and the
/// observed ones where the policy uses them.
fn timings(model: &DiskModel, policy: PolicyKind, read_size: u64) -> Arc<DiskTimings> {
    if !matches!(policy, PolicyKind::Observed | PolicyKind::ServiceCurve) {
        return Arc::new(DiskTimings::of_model(model, ByteCount(read_size), 1));
    }
    let setup = Setup::new(Preset::Paper, Duration::from_millis(500));
    let study = Setup { disk: Some(model.clone()), read_size, ..setup }.study(None);
    Arc::clone(&study.known(ReadMode::Long).timings)
}

/// Buffers for everything: what the paper's experiments have, to see the disk alone.
const UNLIMITED: u64 = 1 << 50;

/// minRead as calibrated in the paper's Table 2: Solaris on the smaller disk ...
const PAPER_SMALL: u32 = 46;
/// ... and FreeBSD on the larger.
const PAPER_LARGE: u32 = 78;

/// Scenarios from which the bandwidth achieved is learnt.
const TRAINING: u64 = 48;
