//! How many streams a disk would hold: the bounds of `disk::plan`, and what admission policies
//! admit, simulated with the scheduler itself.
//!
//! ```text
//!   PlanDisk, Question ─▶ bounds by size of read ─▶ for each size and policy: CapacitySim ─▶ result
//!                                                    with some limits of memory (by_memory)
//! ```
//!
//! `tenuto plan` and the admin API ask the same question. A plan takes the time of many admissions;
//! it is bounded by the streams that the disk's transfer rate allows ([`most_streams`]).

mod audience;
mod by_memory;
mod popularity;

pub use audience::PlannedAudience;
pub use by_memory::HeldStreams;
pub(crate) use popularity::{LONGEST_WITHIN, MOST_EXPONENT, MOST_TITLES};
pub use popularity::{Popularity, SharedCapacity, USUAL_WITHIN, USUAL_ZIPF};

use crate::buffer_memory::usable_memory;
use audience::{PlannedViewer, USUAL_STARTUP_UP_TO};
use disk::plan::{CapacityPlan, DiskSource, PlanRow, memory_needed, plan as bounds};
use disk::{Calibration, DiskModel};
use engine::piece_size;
use scheduler::{
    CapacityResult, CapacitySim, DiskTimings, PolicyKind, Resource, viewers_of_copies,
};
use std::ops::RangeInclusive;
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
    /// For each row of the bounds the streams that each policy of the question admits, in its
    /// order. `None`: the server makes no such reads for these streams.
    pub admitted: Vec<Option<Vec<CapacityResult>>>,
    /// The row with which the first policy admits most. Rows do not count whose larger reads would
    /// hold hardly more streams if memory were no limit: smaller ones start sooner and take less
    /// memory.
    pub best: Option<usize>,
    /// The viewers that share reads, for a question with a popularity and a limit of memory; `None`
    /// where no stream is admitted.
    pub shared: Option<SharedCapacity>,
}

/// What a plan is for.
#[derive(Debug)]
pub struct Question {
    /// The streams.
    pub audience: PlannedAudience,
    /// Memory for buffers, of all disks together; `None` without limit.
    pub memory: Option<ByteCount>,
    /// Number of such disks.
    pub disks: u64,
    /// Time from admission until the first media is in memory.
    pub startup: Duration,
    /// The size of reads; `None`: all sizes are compared.
    pub read: Option<ByteCount>,
    /// How viewers choose among titles; `None`: each watches a title of its own.
    pub popularity: Option<Popularity>,
    /// The admission policies, at least one. The first decides which size of read is best.
    pub policies: Vec<PolicyKind>,
}

/// The disk of a plan.
#[derive(Debug)]
pub enum PlanDisk {
    /// A model.
    Model(DiskModel),
    /// A calibration, with the model fitted to its arm, if it has one.
    Measured(Box<Calibration>, Option<DiskModel>),
}

/// Runs simulations by their numbers, from 0 up to a count; the results are in order. Each depends
/// on its number only, so a command runs them on all cores; a server with viewers runs one after
/// the other ([`in_turn`]).
pub type Compute<'a> =
    &'a mut dyn FnMut(u64, &(dyn Fn(u64) -> HeldStreams + Sync)) -> Vec<HeldStreams>;

/// One simulation after the other.
pub fn in_turn(count: u64, one: &(dyn Fn(u64) -> HeldStreams + Sync)) -> Vec<HeldStreams> {
    (0..count).map(one).collect()
}

/// The results of `one` for each of `all`.
fn each<T: Sync>(
    all: &[T],
    compute: Compute<'_>,
    one: impl Fn(&T) -> HeldStreams + Sync,
) -> Vec<HeldStreams> {
    let at = |number| &all[usize::try_from(number).expect("as many as there are")];
    compute(all.len() as u64, &|number| one(at(number)))
}

/// Plans.
pub fn plan(disk: &PlanDisk, question: Question, compute: Compute<'_>) -> PlanResult {
    let rate = question.audience.rate();
    let sizes = question.read.map_or_else(|| disk.sizes(), |read| vec![read]);
    let bounds = bounds(disk.known(), rate, &sizes, question.memory_of_one());
    let held = simulated(disk, &question, &bounds, compute);
    let best = best_row(&held);
    let shared =
        question.popularity.as_ref().zip(question.memory).and_then(|(popularity, memory)| {
            let of_row = |held: &Option<Vec<HeldStreams>>| {
                held.as_ref().map_or(0, |held| held[0].unlimited.streams * question.disks)
            };
            let rows = bounds.rows.iter().zip(&held).map(|(row, held)| (row.read, of_row(held)));
            popularity::shared(popularity, memory, rate, rows)
        });
    let limited = |held: Vec<HeldStreams>| held.iter().map(|held| held.limited).collect();
    let admitted = held.into_iter().map(|held| held.map(limited)).collect();
    PlanResult { disk: disk.title(), slot: disk.slot(), question, bounds, admitted, best, shared }
}

/// For each row what the policies of a question hold; `None`: the server makes no such reads for
/// these streams.
type HeldByRow = Vec<Option<Vec<HeldStreams>>>;

fn simulated(
    disk: &PlanDisk,
    question: &Question,
    bounds: &CapacityPlan,
    compute: Compute<'_>,
) -> HeldByRow {
    let policies = &question.policies;
    if bounds.ratio == 0 && !policies.contains(&PolicyKind::None) {
        // The time of a simulation grows with the rate of a stream, and this one is above that of
        // the disk.
        let none = HeldStreams { limited: NOT_ONE, unlimited: NOT_ONE };
        return vec![Some(vec![none; policies.len()]); bounds.rows.len()];
    }
    let cases = bounds.rows.iter().map(|row| question.cases(disk, row, bounds.ratio));
    let cases: Vec<_> = cases.collect();
    let of_case = |case| policies.iter().map(move |policy| (case, *policy));
    let runs: Vec<_> = cases.iter().flatten().flat_map(of_case).collect();
    let mut results = each(&runs, compute, |(case, policy)| case.held(*policy)).into_iter();
    let of_row =
        |case: &Option<_>| case.as_ref().map(|_| results.by_ref().take(policies.len()).collect());
    cases.iter().map(of_row).collect()
}

/// The row with the most streams by the first policy, among those that would hold clearly more than
/// smaller reads if memory were no limit. That does not depend on the memory, so that more of it
/// never holds fewer.
fn best_row(rows: &HeldByRow) -> Option<usize> {
    let (mut best, mut most_unlimited) = (None, 0);
    for (row, held) in rows.iter().enumerate() {
        let Some(HeldStreams { limited, unlimited }) = held.as_ref().and_then(|held| held.first())
        else {
            continue;
        };
        if unlimited.streams as f64 * NEAR_MOST <= most_unlimited as f64 {
            continue;
        }
        most_unlimited = unlimited.streams;
        if limited.streams > best.map_or(0, |(_, most)| most) {
            best = Some((row, limited.streams));
        }
    }
    best.map(|(row, _)| row)
}

/// The sizes of reads that are compared for a model.
pub fn model_read_sizes() -> impl Iterator<Item = ByteCount> {
    (16..=24).map(|power| ByteCount(1 << power))
}

/// The streams for which the transfer rate of a disk suffices: more are never planned for, and the
/// time of a plan grows with them.
pub fn most_streams(disk: &PlanDisk, audience: &PlannedAudience) -> u64 {
    bounds(disk.known(), audience.rate(), &[ByteCount::MIB], None).ratio
}

impl Question {
    fn memory_of_one(&self) -> Option<ByteCount> {
        self.memory.map(|memory| ByteCount(memory.0 / self.disks))
    }

    /// The simulations with reads of the size of `row` on a disk whose transfer rate is that of
    /// `most` streams; `None` where the server would not make reads as large for these streams.
    fn cases<'a>(
        &'a self,
        disk: &'a PlanDisk,
        row: &PlanRow,
        most: u64,
    ) -> Option<ReadSizeCases<'a>> {
        // What can be read for a start within a minute is as well read for a later one, and in the
        // long run a later start adds nothing to the disk's rate.
        let first = self.case(disk, row, most, self.startup.min(USUAL_STARTUP_UP_TO))?;
        // What plays until a late start has to be in memory, where there may be no room for it.
        let later = match self.memory.is_some() && self.startup > USUAL_STARTUP_UP_TO {
            true => Some(self.case(disk, row, most, self.startup)?),
            false => None,
        };
        Some(ReadSizeCases { first, later })
    }

    /// The disk, whose transfer rate is that of `most` streams, and a viewer, with reads of
    /// the size of `row`; `None` where the server would not make reads as large for these streams.
    fn case<'a>(
        &'a self,
        disk: &'a PlanDisk,
        row: &PlanRow,
        most: u64,
        startup: Duration,
    ) -> Option<ReadSizeCase<'a>> {
        let (read, usual) = (row.read, row.usual.unwrap_or(most).max(1));
        let viewer = self.audience.with_reads_of(read, startup, most)?;
        let timings = disk.timings(read);
        // Where no arm is known, every place takes the same time.
        let places = match &timings.costs {
            Some(costs) => viewer.places(costs, disk.span()),
            None => Vec::new(),
        };
        let question = self;
        Some(ReadSizeCase { question, disk, read, most, usual, startup, viewer, timings, places })
    }
}

/// One size of read, for a start within a minute and, where that may admit fewer, a later one.
struct ReadSizeCases<'a> {
    first: ReadSizeCase<'a>,
    later: Option<ReadSizeCase<'a>>,
}

impl<'a> ReadSizeCases<'a> {
    /// The streams that a policy holds.
    fn held(&self, policy: PolicyKind) -> HeldStreams {
        let first = self.first.held(policy);
        let later = self.later.as_ref().map(|later| later.held(policy));
        later.map_or(first, |later| HeldStreams {
            limited: fewer(first.limited, later.limited),
            unlimited: fewer(first.unlimited, later.unlimited),
        })
    }
}

/// The fewer of both: where a later start holds fewer, it is for want of the memory that what plays
/// until then needs, whatever the policy names, whose reads had to wait for that memory.
fn fewer(first: CapacityResult, later: CapacityResult) -> CapacityResult {
    match later.streams < first.streams {
        true => CapacityResult { short_of: Some(Resource::Memory), ..later },
        false => first,
    }
}

/// One size of read, ready for any policy.
struct ReadSizeCase<'a> {
    question: &'a Question,
    disk: &'a PlanDisk,
    read: ByteCount,
    /// Streams by transfer rate alone.
    most: u64,
    /// Streams by mean times.
    usual: u64,
    startup: Duration,
    viewer: PlannedViewer,
    timings: DiskTimings,
    places: Vec<Vec<[u32; 1]>>,
}

impl ReadSizeCase<'_> {
    fn held(&self, policy: PolicyKind) -> HeldStreams {
        // Not more than the server's engine counts on.
        let usable = |memory| usable_memory(memory, self.read).0;
        by_memory::held(self.question.memory_of_one(), self.memory_of_use(), &|memory| {
            self.simulate(policy, usable(memory))
        })
    }

    /// More memory than all streams need, also while titles begin and where they need more than on
    /// average.
    fn memory_of_use(&self) -> ByteCount {
        let rate = self.question.audience.rate();
        let each = rate.bytes_in(self.startup + READ_AHEAD).0 + READS_AHEAD * self.read.0;
        ByteCount(each.saturating_mul(self.usual))
    }

    fn simulate(&self, policy: PolicyKind, memory: u64) -> CapacityResult {
        let slot = self.disk.slot();
        let held = CapacitySim {
            policy,
            min_read: self.disk.min_read(self.read),
            read_size: self.read.0,
            memory,
            timings: &self.timings,
            slot,
            startup: self.startup,
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
    /// The row of `best`, and the streams of one disk that the first policy admits with it.
    pub fn held(&self) -> Option<(usize, CapacityResult)> {
        let best = self.best?;
        Some((best, *self.admitted[best].as_ref()?.first()?))
    }

    /// The streams of one disk that each of these policies admits with reads of the size of `best`;
    /// none where no size is best.
    pub fn held_by(
        &self,
        disk: &PlanDisk,
        policies: &[PolicyKind],
        compute: Compute<'_>,
    ) -> Vec<CapacityResult> {
        let best = self.best.map(|best| &self.bounds.rows[best]);
        let cases = best.and_then(|row| self.question.cases(disk, row, self.bounds.ratio));
        cases.map_or_else(Vec::new, |cases| {
            let held = each(policies, compute, |policy| cases.held(*policy));
            held.into_iter().map(|held| held.limited).collect()
        })
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
    /// A calibrated disk.
    pub fn measured(calibration: Calibration) -> Self {
        let calibration = calibration.limited_to_endless_rate();
        let model = calibration.model();
        Self::Measured(Box::new(calibration), model)
    }

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
            Self::Model(_) => model_read_sizes().collect(),
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
    piece_size(rate, &[], read)
}

/// The most streams of one disk for which a server plans while it serves: the time of a plan grows
/// with them, to some seconds.
pub(crate) const MOST_STREAMS_WHILE_SERVING: u64 = 12_000;
/// The rates of streams that a plan is made for: from narrow-band speech to several times
/// uncompressed 8K video.
pub const RATES: RangeInclusive<BitRate> = BitRate(8_000)..=BitRate(1_000_000_000_000);
/// The streams of a disk that transfers less than one of them.
const NOT_ONE: CapacityResult =
    CapacityResult { streams: 0, short_of: Some(Resource::Disk), memory: 0, late: 0 };
/// Share of the most streams that counts as nearly as good.
const NEAR_MOST: f64 = 0.98;
/// What a disk reads ahead for a stream: more than that is of no use for admission.
const READ_AHEAD: Duration = Duration::from_secs(10);
const READS_AHEAD: u64 = 8;
/// The slot of a model: the default of a server.
const SLOT: Duration = Duration::from_millis(500);

#[cfg(test)]
mod tests;
