//! What came when, and what to say of it.

use super::RoundsPlan;
use crate::target::IoCompletion;
use std::time::Duration;
use units::{ByteCount, Moment};

/// What came of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoundsOutcome {
    /// How long a round may take: d / r.
    pub deadline: Duration,
    /// All of them, in order.
    pub rounds: Vec<Round>,
    /// All of them, in order.
    pub streams: Vec<RoundsStreamStats>,
    /// What a server needs for it, see [`RoundsPlan::memory`].
    pub memory: ByteCount,
    /// How it was read.
    pub method: String,
}

/// A round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Round {
    /// From the start of the run.
    pub began: Duration,
    /// From its beginning to its last block.
    pub took: Duration,
    /// Streams whose block came after its strict deadline.
    pub late: u32,
    /// Streams whose block could not be read.
    pub failed: u32,
}

/// What a stream saw.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RoundsStreamStats {
    /// Blocks read.
    pub blocks: u32,
    /// When its last block came, from the start of the run.
    pub last: Duration,
    /// The longest time without a block, from the start of the run on.
    pub longest_gap: Duration,
}

/// Numbers in short, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// Arithmetic mean.
    pub mean: f64,
    /// Standard deviation of these values themselves (divided by their number).
    pub sd: f64,
    /// The least.
    pub min: f64,
    /// The most.
    pub max: f64,
}

impl RoundsOutcome {
    /// Rounds in which some block was late or failed.
    pub fn late_rounds(&self) -> usize {
        self.rounds.iter().filter(|round| round.late > 0 || round.failed > 0).count()
    }

    /// Blocks that could not be read.
    pub fn failed(&self) -> u64 {
        self.rounds.iter().map(|round| u64::from(round.failed)).sum()
    }

    /// The paper's first rule: at most one round late.
    pub fn holds(&self) -> bool {
        self.late_rounds() <= 1
    }

    /// The paper's second rule: rounds take less than the deadline in the mean.
    pub fn holds_in_the_mean(&self) -> bool {
        self.round_times().mean < self.deadline.as_secs_f64()
    }

    /// As many streams as the mean round of these lets in: a round grows with its streams.
    pub fn streams_by_the_mean(&self) -> u32 {
        let mean = self.round_times().mean.max(f64::MIN_POSITIVE);
        #[expect(clippy::cast_precision_loss, reason = "few streams")]
        let streams = self.streams.len() as f64 * self.deadline.as_secs_f64() / mean;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "not negative, and what is too many to count stays the largest number"
        )]
        let streams = streams as u32;
        streams
    }

    /// How long rounds took.
    pub fn round_times(&self) -> Spread {
        Spread::of(self.rounds.iter().map(|round| round.took))
    }

    /// When the streams had all their blocks.
    pub fn stream_times(&self) -> Spread {
        Spread::of(self.streams.iter().map(|stream| stream.last))
    }

    /// The longest time that any stream was without a block.
    pub fn longest_gap(&self) -> Duration {
        self.streams.iter().map(|stream| stream.longest_gap).max().unwrap_or_default()
    }

    /// The run on several disks at once as one: a round is over when it is over everywhere. Not
    /// of nothing.
    pub fn joined(parts: &[Self]) -> Self {
        let first = parts.first().expect("at least one disk");
        let count = parts.iter().map(|part| part.rounds.len()).min().unwrap_or(0);
        let round = |number: usize| {
            let all = || parts.iter().map(|part| part.rounds[number]);
            let began = all().map(|round| round.began).min().unwrap_or_default();
            let ended = all().map(|round| round.began + round.took).max().unwrap_or_default();
            Round {
                began,
                took: ended - began,
                late: all().map(|round| round.late).sum(),
                failed: all().map(|round| round.failed).sum(),
            }
        };
        Self {
            deadline: first.deadline,
            rounds: (0..count).map(round).collect(),
            streams: parts.iter().flat_map(|part| part.streams.clone()).collect(),
            memory: ByteCount(parts.iter().map(|part| part.memory.0).sum()),
            method: first.method.clone(),
        }
    }
}

impl Spread {
    /// The statistics of these times; all zero if there are none.
    pub fn of(times: impl IntoIterator<Item = Duration>) -> Self {
        let times: Vec<f64> = times.into_iter().map(|time| time.as_secs_f64()).collect();
        if times.is_empty() {
            return Self { mean: 0.0, sd: 0.0, min: 0.0, max: 0.0 };
        }
        #[expect(clippy::cast_precision_loss, reason = "as many as rounds or streams")]
        let count = times.len() as f64;
        let mean = times.iter().sum::<f64>() / count;
        let squares: f64 = times.iter().map(|time| (time - mean).powi(2)).sum();
        Self {
            mean,
            sd: (squares / count).sqrt(),
            min: times.iter().copied().fold(f64::INFINITY, f64::min),
            max: times.iter().copied().fold(0.0, f64::max),
        }
    }
}

/// Counts while it runs.
pub(crate) struct RoundsTally {
    origin: Moment,
    outcome: RoundsOutcome,
    /// The current round.
    round: Round,
    due: Moment,
    plan: RoundsPlan,
}

impl RoundsTally {
    pub(crate) fn new(plan: &RoundsPlan, origin: Moment) -> Self {
        let outcome = RoundsOutcome {
            deadline: plan.round(),
            rounds: Vec::new(),
            streams: vec![RoundsStreamStats::default(); plan.starts.len()],
            memory: plan.memory(),
            method: String::new(),
        };
        Self { origin, outcome, round: Round::default(), due: origin, plan: plan.clone() }
    }

    pub(crate) fn origin(&self) -> Moment {
        self.origin
    }

    /// The completed rounds.
    pub(crate) fn rounds(&self) -> &[Round] {
        &self.outcome.rounds
    }

    pub(crate) fn begin(&mut self, number: u32, now: Moment) {
        self.round = Round { began: now.since(self.origin), ..Round::default() };
        self.due = self.plan.moment(self.origin, number + 1);
    }

    pub(crate) fn arrived(&mut self, arrived: &IoCompletion) {
        let stream = usize::try_from(arrived.tag).expect("tags are streams");
        let stream = &mut self.outcome.streams[stream];
        if arrived.result.is_err() {
            self.round.failed += 1;
            return;
        }
        self.round.late += u32::from(arrived.at > self.due);
        let at = arrived.at.since(self.origin);
        stream.longest_gap = stream.longest_gap.max(at.saturating_sub(stream.last));
        stream.last = at;
        stream.blocks += 1;
    }

    pub(crate) fn end(&mut self, now: Moment) {
        self.round.took = now.since(self.origin) - self.round.began;
        self.outcome.rounds.push(self.round);
    }

    pub(crate) fn outcome(self, method: String) -> RoundsOutcome {
        RoundsOutcome { method, ..self.outcome }
    }
}
