//! The outcome of a run of transfers.

use crate::error::MeterError;
use crate::log::OperationKind;
use crate::streams::{Heat, Times};
use crate::target::check_not_stuck;
use crate::wire_pairs;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;
use units::grown;
use units::show::count;
use units::{BitRate, ByteCount, Hinted, Reason, add_fields};

/// The result of a run of transfers.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct TransfersOutcome {
    /// Totals by kind, mode and block size. Sums of rows are rows again: [`TransferRow::add`].
    #[serde(with = "wire_pairs")]
    pub rows: BTreeMap<TransferRowKey, TransferRow>,
    /// The totals of each client, in order.
    pub clients: Vec<PerClient>,
    /// The totals of each second.
    pub seconds: Vec<PerSecond>,
    /// Block times by second of their end.
    pub heat: Heat,
    /// Times of blocks from when they were due, of runs with a rate; without one from their
    /// request.
    pub response: Times,
    /// Transfers that ended with an error.
    pub failed: u64,
    /// The first error of a failed transfer, in words.
    pub first_failure: Option<Reason>,
    /// Transfers that had not ended when the run was over.
    pub unfinished: u64,
    /// Operations that never completed, because the storage hung to the end and after it. The
    /// caller adds them when it closes the target.
    pub stuck: u32,
    /// Time from the start of the run to its end.
    pub took: Duration,
    /// Whether it ran to its end; false where it was stopped.
    pub complete: bool,
    /// The read and write method.
    pub method: String,
}

/// The properties that the transfers of a row share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TransferRowKey {
    /// The direction.
    pub kind: OperationKind,
    /// Random or sequential.
    pub random: bool,
    /// The size of a block.
    pub block: u32,
}

/// Totals of transfers that share an operation and block size.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct TransferRow {
    /// Number of transfers.
    pub transfers: u64,
    /// Number of their blocks.
    pub blocks: u64,
    /// Number of their bytes.
    pub bytes: ByteCount,
    /// The total data transfer time.
    pub data: Duration,
    /// The total latency as defined.
    pub latency: Duration,
    /// The longest latency of a transfer.
    pub longest_latency: Duration,
    /// The part of the latency that the meter took between blocks.
    pub meter: Duration,
    /// The part of the latency for opening and closing files.
    pub open: Duration,
    /// The time that msMeter would have taken on this machine to fill its buffer before each
    /// transfer, which it counts as latency. Zero unless it is imitated. Not part of `latency`.
    pub fill: Duration,
    /// The sum of individual rates, in bits per second.
    pub rates: f64,
    /// The service time of each block.
    pub service: Times,
}

/// The totals of one client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PerClient {
    /// Transfers that completed without an error.
    pub transfers: u64,
    /// Number of their bytes.
    pub bytes: ByteCount,
    /// The total data transfer time.
    pub data: Duration,
    /// The total latency as defined.
    pub latency: Duration,
    /// The longest latency of a transfer.
    pub longest_latency: Duration,
}

/// The totals of one second, by the end of blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PerSecond {
    /// Bytes read.
    pub read: ByteCount,
    /// Bytes written.
    pub written: ByteCount,
    /// Number of blocks.
    pub blocks: u64,
    /// The longest time of a block.
    pub longest: Duration,
}

impl TransferRow {
    /// Adds another row to this one.
    pub fn add(&mut self, others: &Self) {
        add_fields!(self, others; transfers, blocks, bytes, data, latency, meter, open, fill, rates);
        self.longest_latency = self.longest_latency.max(others.longest_latency);
        self.service.add(&others.service);
    }

    /// All bytes divided by all data transfer time.
    pub fn rate(&self) -> BitRate {
        BitRate::of(self.bytes, self.data)
    }

    /// The mean of individual rates.
    pub fn mean_rate(&self) -> BitRate {
        #[expect(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a mean, for people"
        )]
        BitRate((self.rates / self.transfers.max(1) as f64) as u64)
    }

    /// The mean of individual latencies.
    pub fn mean_latency(&self) -> Duration {
        mean(self.latency, self.transfers)
    }

    /// The mean time that msMeter's filling would have added to the latency.
    pub fn mean_fill(&self) -> Duration {
        mean(self.fill, self.transfers)
    }
}

fn mean(sum: Duration, count: u64) -> Duration {
    // Durations divide by 32 bits only, and a long run has more transfers.
    let nanos = sum.as_nanos() / u128::from(count.max(1));
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

impl TransfersOutcome {
    /// Refuses a run with an operation that did not complete, or a transfer that failed.
    pub(crate) fn check_done(&self) -> Result<(), MeterError> {
        check_not_stuck(self.stuck)?;
        let Some(first) = &self.first_failure else { return Ok(()) };
        let failed = count(self.failed, "transfer");
        Err(MeterError::new(format!("{failed} failed; the first: {}", first.one_line()))
            .hint("the kernel's log says what the disk or the server complained of")
            .invalid())
    }

    /// Adds what clients on another machine found in the same run.
    pub(crate) fn add(&mut self, other: Self) {
        for (key, row) in &other.rows {
            self.rows.entry(*key).or_default().add(row);
        }
        self.clients.extend(other.clients);
        for (number, more) in other.seconds.iter().enumerate() {
            let second = grown(&mut self.seconds, number);
            add_fields!(second, more; read, written, blocks);
            second.longest = second.longest.max(more.longest);
        }
        self.heat.add(&other.heat);
        self.response.add(&other.response);
        add_fields!(self, other; failed, unfinished, stuck);
        self.first_failure = self.first_failure.take().or(other.first_failure);
        self.took = self.took.max(other.took);
        self.complete &= other.complete;
        if !self.method.contains(&other.method) {
            self.method = format!("{}; {}", self.method, other.method);
        }
    }

    /// The sum of all rows that `chosen` selects.
    pub fn sum(&self, chosen: impl Fn(&TransferRowKey) -> bool) -> TransferRow {
        let mut sum = TransferRow::default();
        self.rows.iter().filter(|(key, _)| chosen(key)).for_each(|(_, row)| sum.add(row));
        sum
    }

    /// The rate of all clients together over the time of the run.
    pub fn total_rate(&self) -> BitRate {
        BitRate::of(self.sum(|_| true).bytes, self.took)
    }
}
