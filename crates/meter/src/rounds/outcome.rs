//! The outcome of rounds, and its statistics.

use super::RoundsPlan;
use crate::target::IoCompletion;
use serde::Serialize;
use std::time::Duration;
use units::{ByteCount, Moment};

/// The outcome of a run in rounds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoundsOutcome {
    /// The longest allowed time of a round: d / r.
    pub deadline: Duration,
    /// All rounds in order.
    pub rounds: Vec<Round>,
    /// All streams in order.
    pub streams: Vec<RoundsStreamStats>,
    /// The memory that a server needs for these rounds, see [`RoundsPlan::memory`].
    pub memory: ByteCount,
    /// The read method.
    pub method: String,
}

/// The outcome of one round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Round {
    /// Time from the start of the run to the round's beginning.
    pub began: Duration,
    /// Time from its beginning to its last block.
    pub took: Duration,
    /// Streams whose block arrived after its strict deadline.
    pub late: u32,
    /// Streams whose block could not be read.
    pub failed: u32,
}

/// The outcome of one stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RoundsStreamStats {
    /// Blocks read.
    pub blocks: u32,
    /// Time from the start of the run to the last block's arrival.
    pub last: Duration,
    /// The longest time without a block, from the start of the run.
    pub longest_gap: Duration,
    /// Lateness of each block after its strict deadline, in order; zero if it was in time.
    pub late_by: Vec<Duration>,
}

/// Statistics of times, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    /// Arithmetic mean.
    pub mean: f64,
    /// Standard deviation of the values themselves (divided by their number).
    pub sd: f64,
    /// The smallest value.
    pub min: f64,
    /// The largest value.
    pub max: f64,
}

impl RoundsOutcome {
    /// Number of rounds in which at least one block was late or failed.
    pub fn late_rounds(&self) -> usize {
        self.rounds.iter().filter(|round| round.late > 0 || round.failed > 0).count()
    }

    /// Blocks that could not be read.
    pub fn failed(&self) -> u64 {
        self.rounds.iter().map(|round| u64::from(round.failed)).sum()
    }

    /// The paper's first rule: at most one late round.
    pub fn holds(&self) -> bool {
        self.late_rounds() <= 1
    }

    /// The paper's second rule: the mean round is shorter than the deadline.
    pub fn holds_in_the_mean(&self) -> bool {
        self.round_times().mean < self.deadline.as_secs_f64()
    }

    /// The number of streams that the mean round time allows: the time of a round grows with its
    /// streams.
    pub fn streams_by_the_mean(&self) -> u32 {
        let mean = self.round_times().mean.max(f64::MIN_POSITIVE);
        #[expect(clippy::cast_precision_loss, reason = "few streams")]
        let exact = self.streams.len() as f64 * self.deadline.as_secs_f64() / mean;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "not negative, and what is too many to count stays the largest number"
        )]
        let streams = exact as u32;
        streams
    }

    /// The statistics of the rounds' times.
    pub fn round_times(&self) -> Spread {
        Spread::of(self.rounds.iter().map(|round| round.took))
    }

    /// The statistics of the times at which streams had all their blocks.
    pub fn stream_times(&self) -> Spread {
        Spread::of(self.streams.iter().map(|stream| stream.last))
    }

    /// The longest time that a stream was without a block.
    pub fn longest_gap(&self) -> Duration {
        self.streams.iter().map(|stream| stream.longest_gap).max().unwrap_or_default()
    }

    /// Joins parallel runs on several disks into one: a round ends when it has ended on every disk.
    /// `parts` is not empty.
    pub fn joined(parts: &[Self]) -> Self {
        let first = parts.first().expect("at least one disk");
        let count = parts.iter().map(|part| part.rounds.len()).min().unwrap_or(0);
        let round = |number: usize| {
            let all = || parts.iter().map(|part| part.rounds[number]);
            let began = all().map(|round| round.began).min().unwrap_or_default();
            // The slowest disk ends the round for all streams together.
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
    /// The statistics of `times`; all zero if there are none.
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

/// Counts the rounds of a run in progress.
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
        let number = usize::try_from(arrived.tag).expect("tags are streams");
        let stream = &mut self.outcome.streams[number];
        if arrived.result.is_err() {
            self.round.failed += 1;
            return;
        }
        let late_by = arrived.at.since(self.due);
        self.round.late += u32::from(!late_by.is_zero());
        stream.late_by.push(late_by);
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
