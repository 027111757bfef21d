//! How many streams a disk would hold: the bounds of `disk::plan`, and what each admission policy
//! admits, simulated with the scheduler itself.

mod audience;

pub use audience::Audience;

use audience::PlannedViewer;
use disk::plan::{CapacityPlan, DiskSource, memory_needed, plan as bounds};
use disk::{Calibration, DiskModel};
use scheduler::{
    CapacityResult, CapacitySim, DiskTimings, PolicyKind, Resource, viewers_of_copies,
};
use std::time::Duration;
use units::{BitRate, ByteCount};

/// A plan.
#[derive(Debug)]
pub struct PlanResult {
    /// What the plan is for.
    pub question: Question,
    /// The disk in words.
    pub disk: String,
    /// The scheduling period.
    pub slot: Duration,
    /// Bounds that follow from the disk's rates alone.
    pub bounds: CapacityPlan,
    /// For each row of the bounds the streams that each policy of [`SHOWN`] admits. `None`: the
    /// server makes no such reads for these streams.
    pub admitted: Vec<Option<[CapacityResult; SHOWN.len()]>>,
    /// The row with which the first policy of [`SHOWN`] admits most; of rows that are nearly as
    /// good the one with the smallest reads, which start soonest and take the least memory.
    pub best: Option<usize>,
    /// The other policies with reads of the size of `best`.
    pub others: Vec<(PolicyKind, CapacityResult)>,
}

/// What a plan is for.
#[derive(Debug)]
pub struct Question {
    /// The streams.
    pub audience: Audience,
    /// Memory for buffers, of all disks together; `None` without limit.
    pub memory: Option<ByteCount>,
    /// Number of such disks.
    pub disks: u64,
    /// Time from admission until the first media is in memory.
    pub startup: Duration,
}

/// The disk of a plan.
#[derive(Debug)]
pub enum PlanDisk {
    /// A model.
    Model(DiskModel),
    /// A calibration, with the model fitted to its arm, if it has one.
    Measured(Box<Calibration>, Option<DiskModel>),
}

/// Plans; `progress` gets the share that is done, from 0 to 1.
pub fn plan(disk: &PlanDisk, question: Question, progress: &dyn Fn(f64)) -> PlanResult {
    let rate = question.audience.rate();
    let bounds = bounds(disk.known(), rate, &disk.sizes(), question.memory_of_one());
    let mut admitted = Vec::new();
    for (row, done) in bounds.rows.iter().zip(0u32..) {
        // The last step is that of the other policies.
        progress(f64::from(done) / (bounds.rows.len() + 1) as f64);
        let stage = question.stage(disk, row.read, bounds.ratio);
        admitted.push(stage.map(|stage| SHOWN.map(|policy| stage.simulate(policy))));
    }
    let streams =
        |held: &Option<[CapacityResult; SHOWN.len()]>| held.map_or(0, |held| held[0].streams);
    let most = admitted.iter().map(streams).max().unwrap_or(0);
    let near = |held: &Option<_>| most > 0 && streams(held) as f64 >= NEAR_MOST * most as f64;
    let best = admitted.iter().position(near);
    let mut others = Vec::new();
    let stage = best.and_then(|best| question.stage(disk, bounds.rows[best].read, bounds.ratio));
    if let Some(stage) = stage {
        progress(bounds.rows.len() as f64 / (bounds.rows.len() + 1) as f64);
        // The policy `none` admits every viewer, so its number tells nothing about the disk.
        let unseen = |policy: &PolicyKind| !SHOWN.contains(policy) && *policy != PolicyKind::None;
        others.extend(PolicyKind::all().filter(unseen).map(|p| (p, stage.simulate(p))));
    }
    PlanResult { disk: disk.title(), slot: disk.slot(), question, bounds, admitted, best, others }
}

/// Streams that one disk holds with a guarantee in reads of this size, by the first policy of
/// [`SHOWN`]; `None` where the server would not make such reads.
pub fn streams_in_reads_of(disk: &PlanDisk, question: &Question, read: ByteCount) -> Option<u64> {
    let rate = question.audience.rate();
    let most = bounds(disk.known(), rate, &[read], question.memory_of_one()).ratio;
    Some(question.stage(disk, read, most)?.simulate(SHOWN[0]).streams)
}

impl Question {
    fn memory_of_one(&self) -> Option<ByteCount> {
        self.memory.map(|memory| ByteCount(memory.0 / self.disks))
    }

    /// The disk, whose transfer rate is that of `most` streams, and a viewer, with reads of `read`;
    /// `None` where the server would not make reads as large for these streams.
    fn stage<'a>(
        &'a self,
        disk: &'a PlanDisk,
        read: ByteCount,
        most: u64,
    ) -> Option<ReadSizeCase<'a>> {
        let viewer = self.audience.with_reads_of(read)?;
        let timings = disk.timings(read);
        // Where no arm is known, every place takes the same time.
        let places = match &timings.costs {
            Some(costs) => viewer.places(costs, disk.span()),
            None => Vec::new(),
        };
        Some(ReadSizeCase { question: self, disk, read, most, viewer, timings, places })
    }
}

/// One size of read, ready for any policy.
struct ReadSizeCase<'a> {
    question: &'a Question,
    disk: &'a PlanDisk,
    read: ByteCount,
    /// Streams by transfer rate alone.
    most: u64,
    viewer: PlannedViewer,
    timings: DiskTimings,
    places: Vec<Vec<[u32; 1]>>,
}

impl ReadSizeCase<'_> {
    fn simulate(&self, policy: PolicyKind) -> CapacityResult {
        let slot = self.disk.slot();
        let held = CapacitySim {
            policy,
            min_read: self.disk.min_read(self.read),
            read_size: self.read.0,
            // Not more than the server's engine counts on.
            memory: self
                .question
                .memory_of_one()
                .map_or(UNBOUNDED, |memory| server::usable_memory(memory, self.read).0),
            timings: &self.timings,
            slot,
            startup: self.question.startup,
            viewers: &viewers_of_copies(
                &self.viewer.curves(),
                &self.places,
                self.timings.costs.as_ref(),
            ),
            reserve: self.viewer.reserve(),
            narrows_sockets: true,
            arrivals: 0,
            patience: 0,
            filling: 0,
        }
        .filled_by(self.most)
        .run();
        // While the streams begin, the disk reads ahead, and for a while more can be admitted than
        // it can transfer for.
        match held.streams > self.most && policy != PolicyKind::None {
            true => CapacityResult { streams: self.most, short_of: Some(Resource::Disk), ..held },
            false => held,
        }
    }
}

impl PlanResult {
    /// The row of `best`, and the streams of one disk that are admitted with it.
    pub fn held(&self) -> Option<(usize, CapacityResult)> {
        let best = self.best?;
        Some((best, self.admitted[best]?[0]))
    }

    /// Memory for two reads of each stream of all disks.
    pub fn memory_needed(&self) -> Option<ByteCount> {
        let (row, held) = self.held()?;
        Some(memory_needed(self.bounds.rows[row].read, held.streams * self.question.disks))
    }

    /// Service cycle and buffer (eq. 3 and 4) for the streams that are admitted.
    pub fn cycle(&self) -> Option<(Duration, ByteCount)> {
        let streams = u32::try_from(self.held()?.1.streams).ok()?;
        let (cost, rate) = (&self.bounds.cost, self.question.audience.rate());
        Some((cost.cycle(streams, rate)?, cost.buffer(streams, rate)?))
    }
}

impl PlanDisk {
    fn known(&self) -> DiskSource<'_> {
        match self {
            Self::Model(model) => DiskSource::Model(model),
            // The fitted model also has seeks and zones, which the counts of the record do not
            // show.
            Self::Measured(_, Some(model)) => DiskSource::Model(model),
            Self::Measured(record, None) => DiskSource::Measured(record),
        }
    }

    fn title(&self) -> String {
        match self {
            Self::Model(model) => model.title().to_owned(),
            Self::Measured(record, _) => {
                let kind = if record.is_provisional() { "provisionally " } else { "" };
                format!("a {kind}measured disk ({})", record.method)
            }
        }
    }

    /// The scheduling period.
    pub fn slot(&self) -> Duration {
        match self {
            Self::Model(_) => SLOT,
            Self::Measured(record, _) => record.slot,
        }
    }

    fn sizes(&self) -> Vec<ByteCount> {
        match self {
            Self::Model(_) => (16..=24).map(|power| ByteCount(1 << power)).collect(),
            Self::Measured(record, _) => record.guarantees.iter().map(|g| g.read_size).collect(),
        }
    }

    fn timings(&self, read: ByteCount) -> DiskTimings {
        match self {
            Self::Model(model) => DiskTimings::of_model(model, read, model.queue_depth(read)),
            Self::Measured(record, _) => DiskTimings::of_calibration(record, read),
        }
    }

    /// Bytes of the disk.
    fn span(&self) -> u64 {
        match self {
            Self::Model(model) => model.capacity().0,
            // Zones were measured evenly over it; the last has a length like the others'.
            Self::Measured(record, _) => match record.zones.as_slice() {
                [.., before, last] => last.0.0 + (last.0.0 - before.0.0),
                _ => 0,
            },
        }
    }

    fn min_read(&self, read: ByteCount) -> u32 {
        match self {
            Self::Model(model) => model.guaranteed_reads(read, SLOT),
            Self::Measured(record, _) => record.guarantee_for(read).map_or(0, |g| g.min_read),
        }
    }
}

/// Bytes of a piece, as the server cuts tracks.
fn piece(rate: BitRate, read: ByteCount) -> u32 {
    server::piece_size(rate, &[], read)
}

/// Policies with a column of their own: the two that look ahead.
pub const SHOWN: [PolicyKind; 2] = [PolicyKind::TimeDomain, PolicyKind::VbrSim];
/// Share of the most streams that counts as nearly as good.
const NEAR_MOST: f64 = 0.98;
/// Memory that is never the limit, and whose sums do not overflow.
const UNBOUNDED: u64 = u64::MAX >> 8;
/// The slot of a model: the default of a server.
const SLOT: Duration = Duration::from_millis(500);
