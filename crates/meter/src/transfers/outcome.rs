//! What came of a run of transfers.

use crate::log::OperationKind;
use crate::streams::{Heat, Times};
use std::collections::BTreeMap;
use std::time::Duration;
use units::{BitRate, ByteCount};

/// The result of a run of transfers.
#[derive(Clone, Debug, Default)]
pub struct TransfersOutcome {
    /// By kind, mode and block size. Sums over rows are rows, too: [`TransferRow::add`].
    pub rows: BTreeMap<TransferRowKey, TransferRow>,
    /// Each, in order.
    pub clients: Vec<PerClient>,
    /// What was moved in each.
    pub seconds: Vec<PerSecond>,
    /// What blocks took, by second of their end.
    pub heat: Heat,
    /// Transfers that ended with an error.
    pub failed: u64,
    /// The first error of a failed transfer, in words.
    pub first_failure: Option<String>,
    /// Transfers that had not ended when the run was over.
    pub unfinished: u64,
    /// Operations that the storage kept for good: it hung when the run was over, and went on to.
    /// Whoever left the target says so.
    pub stuck: u32,
    /// From the start of the run to its end.
    pub took: Duration,
    /// False where it was stopped.
    pub complete: bool,
    /// How it was done.
    pub method: String,
}

/// What transfers have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TransferRowKey {
    /// Read or write.
    pub kind: OperationKind,
    /// Random or sequential.
    pub random: bool,
    /// Bytes of a block.
    pub block: u32,
}

/// Totals of transfers that share an operation and block size.
#[derive(Clone, Debug, Default)]
pub struct TransferRow {
    /// How many.
    pub transfers: u64,
    /// Blocks of them.
    pub blocks: u64,
    /// Bytes of them.
    pub bytes: ByteCount,
    /// The total data transfer time.
    pub data: Duration,
    /// The total latency as defined.
    pub latency: Duration,
    /// The longest.
    pub longest_latency: Duration,
    /// The part of the latency that the meter took between blocks.
    pub meter: Duration,
    /// The part of the latency for opening and closing files.
    pub open: Duration,
    /// What msMeter would have taken on this machine to fill its buffer before each transfer, which
    /// it counts as latency. Zero unless it is imitated. Not in `latency`.
    pub fill: Duration,
    /// The sum of individual rates, in bits a second.
    pub rates: f64,
    /// The service time of each block.
    pub service: Times,
}

/// What a client moved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PerClient {
    /// Transfers that ended well.
    pub transfers: u64,
    /// Bytes of them.
    pub bytes: ByteCount,
    /// Data transfer time.
    pub data: Duration,
    /// Latency as defined.
    pub latency: Duration,
    /// The longest.
    pub longest_latency: Duration,
}

/// What was moved in a second, by when blocks were over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PerSecond {
    /// Bytes.
    pub read: ByteCount,
    /// Bytes.
    pub written: ByteCount,
    /// Blocks.
    pub blocks: u64,
    /// The longest that any block took.
    pub longest: Duration,
}

impl TransferRow {
    /// These too.
    pub fn add(&mut self, others: &Self) {
        self.transfers += others.transfers;
        self.blocks += others.blocks;
        self.bytes += others.bytes;
        self.data += others.data;
        self.latency += others.latency;
        self.longest_latency = self.longest_latency.max(others.longest_latency);
        self.meter += others.meter;
        self.open += others.open;
        self.fill += others.fill;
        self.rates += others.rates;
        self.service.add(&others.service);
    }

    /// All bytes over all data transfer time.
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

    /// What msMeter's filling would have added to it.
    pub fn mean_fill(&self) -> Duration {
        mean(self.fill, self.transfers)
    }
}

fn mean(sum: Duration, count: u64) -> Duration {
    let nanos = sum.as_nanos() / u128::from(count.max(1));
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

impl TransfersOutcome {
    /// All rows that the choice takes, as one.
    pub fn sum(&self, chosen: impl Fn(&TransferRowKey) -> bool) -> TransferRow {
        let mut sum = TransferRow::default();
        self.rows.iter().filter(|(key, _)| chosen(key)).for_each(|(_, row)| sum.add(row));
        sum
    }

    /// What all clients moved together, over the time of the run.
    pub fn total_rate(&self) -> BitRate {
        BitRate::of(self.sum(|_| true).bytes, self.took)
    }
}
